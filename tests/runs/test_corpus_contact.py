"""Public MJCF robots and examples with contacts, 1000 steps beside MuJoCo (tests/benchmarks/corpus_contact.py).

All stay finite, with no more kinetic energy than MuJoCo's run ever had, and no deeper in each other. Those that come to
rest in both have the same height of their centre of mass, unless the reason why not is named here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.corpus_contact import Row, compare, entries
from tests.conftest import corpus

pytestmark = pytest.mark.corpus
DOFS = 110  # larger ones take minutes: the benchmark has them all
CHUNKS = 8
STILL = 1e-3  # [J] kinetic energy of what is at rest
NEAR = 0.005  # [m] between two heights

# other heights, at rest in one of them or in both
HEIGHTS = {
    "mjcf.toddlerbot.sysID_2XL430_sysID_2XL430_fixed": "dry friction holds the arm; MuJoCo's soft one creeps",
    "mjcf.toddlerbot.sysID_2XL430_sysID_2XL430_fixed_scene": "dry friction holds the arm; MuJoCo's soft one creeps",
    "mjcf.mujoco.model_balloons_balloons": "swinging still; at rest in the same place after 6 s",
    "mjcf.mujoco_warp.benchmarks_humanoid_three_humanoids": "falls from a squat to the other side",
}
DEPTHS = {"mjcf.mujoco_warp.benchmarks_humanoid_three_humanoids"}  # falls to the other side, onto other soft parts
RESTLESS = {
    # links overlap deep at the pose: MuJoCo's soft contacts rest there, hard ones push without end
    "mjcf.dm_control.locomotion_walkers_assets_humanoid_CMU_V2020",
    # one of them falls from its squat, and when it does is up to rounding: still after 2 s, moving after 2.4 and 2.8
    "mjcf.mujoco_warp.benchmarks_humanoid_three_humanoids",
}


def chosen() -> list[dict[str, Any]]:
    folder = corpus()
    if folder is None:
        return []
    return [entry | {"path": str(folder / entry["path"])} for entry in entries(folder) if 0 < entry["nv"] <= DOFS]


def wrong(row: Row) -> list[str]:
    """What is wrong with a model's run."""
    assert row.ours is not None and row.theirs is not None
    a, b = row.ours, row.theirs
    found = [row.failed] if row.failed else []
    if a.steps != b.steps:
        found.append(f"{a.steps} steps, MuJoCo {b.steps}")
    if not row.residual <= 1e-6:
        found.append(f"residual {row.residual:.1e}")
    if not a.most_energy <= 2 * b.most_energy + 0.1:
        found.append(f"kinetic energy up to {a.most_energy:.3g} J, MuJoCo {b.most_energy:.3g} J")
    if row.model not in DEPTHS and not a.depth <= 1.1 * b.depth + 1e-4:
        found.append(f"depth {a.depth:.2g} m, MuJoCo {b.depth:.2g} m")
    if row.model not in RESTLESS and b.energy < STILL and not a.energy <= 10 * STILL:
        found.append(f"moves on with {a.energy:.2g} J, MuJoCo rests")
    rests = a.energy < STILL and b.energy < STILL
    if rests and row.model not in HEIGHTS and abs(a.height - b.height) > NEAR:
        found.append(f"rests at {a.height:.4f} m, MuJoCo at {b.height:.4f} m")
    return [f"{row.model}: {what}" for what in found]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_runs_beside_mujoco(chunk: int) -> None:
    models = chosen()[chunk::CHUNKS]
    if not models:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    errors = []
    for entry in models:
        row = compare(entry["id"], entry["path"])
        if row.refused:
            assert "not supported yet" in row.refused or row.refused == "nothing moves", row
        else:
            errors += wrong(row)
    assert errors == []
