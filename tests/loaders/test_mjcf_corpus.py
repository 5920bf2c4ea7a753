"""Every public MJCF file loads or is refused for a reason: a table by source with `pytest -q -s`.

Robots and objects that MuJoCo loads are read, so are most examples and nearly all of the engine's own tests; each other
one is refused by the name of what is not supported. What MuJoCo refuses is refused, unless that is a limit of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from tests.conftest import corpus_entries

Array = np.ndarray[Any, np.dtype[np.float64]]

pytestmark = pytest.mark.corpus
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

ENTRIES = corpus_entries("mjcf")
CHUNKS = 10
LEAST_READ = {"robot": 1.0, "object": 1.0, "example": 0.65, "test": 0.99}  # of what MuJoCo loads; only ever more
# MuJoCo refuses these, artsim reads them
ACCEPTED = {"mjcf.pinocchio.models_simple_humanoid": "its meshes are STL in text, which MuJoCo does not read"}

outcomes: dict[str, tuple[dict[str, Any], str]] = {}


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """The table, after all models."""
    yield
    rows: dict[tuple[str, str], Counter[str]] = {}
    for entry, refusal in outcomes.values():
        row = rows.setdefault((entry["source"], entry["tier"]), Counter())
        row[f"{entry['expect']} {'refused' if refusal else 'read'}"] += 1
    print(f"\n{'source':46}{'tier':9}{'good: read':>12}{'refused':>9}{'bad: refused':>14}{'read':>6}")
    for (source, tier), row in sorted(rows.items()):
        columns = [row[name] for name in ("load read", "load refused", "reject refused", "reject read")]
        print(f"{source:46}{tier:9}{columns[0]:12}{columns[1]:9}{columns[2]:14}{columns[3]:6}")
    why = Counter(refusal.rsplit(": ", 1)[-1] for entry, refusal in outcomes.values() if entry["expect"] == "load")
    for reason, count in why.most_common():
        if reason:
            print(f"{count:4} {reason}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_models_are_read_or_refused_for_a_reason(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in ENTRIES[chunk::CHUNKS]:
        refusal = outcome(entry["path"])
        outcomes[entry["id"]] = (entry, refusal)
        if entry["expect"] == "reject":
            good = bool(refusal) != (entry["id"] in ACCEPTED)
        else:
            good = not refusal or "not supported yet" in refusal
        if not good or "\n" in refusal:
            wrong.append((entry["id"], refusal))
    assert wrong == []


def outcome(path: str) -> str:
    """Why a model is refused; '' where it is read."""
    try:
        load_articulation(path)
    except ModelError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("tier", LEAST_READ)
def test_as_many_are_read_as_before(tier: str) -> None:
    if not ENTRIES or len(outcomes) < len(ENTRIES):
        pytest.skip("not all models were tried")
    found = [refusal for entry, refusal in outcomes.values() if (entry["tier"], entry["expect"]) == (tier, "load")]
    assert found.count("") >= LEAST_READ[tier] * len(found)


SURFACE = {
    "geom_contype": "type_bits",
    "geom_conaffinity": "affinity_bits",
    "geom_condim": "dimension",
    "geom_priority": "priority",
    "geom_solmix": "mix",
    "geom_margin": "margin",
    "geom_gap": "gap",
    "geom_adhesion": "adhesion",
}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_keyframes_and_geoms_are_mujoco_s(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in [entry for entry in ENTRIES if entry["expect"] == "load"][chunk::CHUNKS]:
        try:
            articulation = load_articulation(entry["path"])
        except ModelError:
            continue
        model = mujoco.MjModel.from_xml_path(entry["path"])
        wrong += [
            f"{entry['id']}: {what}"
            for what in (*differing_keys(articulation, model), *differing_geoms(articulation, model))
        ]
    assert wrong == []


def differing_keys(articulation: Articulation, model: mujoco.MjModel) -> Iterator[str]:
    """Keyframes that are not MuJoCo's; <size nkey> gives it empty ones besides."""
    for number, key in enumerate(articulation.keyframes):
        qpos = np.array(key.qpos or model.qpos0)
        mujoco.mj_normalizeQuat(model, qpos)
        pairs = (
            (qpos, model.key_qpos),
            (key.qvel or 0, model.key_qvel),
            (key.control or 0, model.key_ctrl),
            (key.activation or 0, model.key_act),
        )
        if model.key(number).name not in ("", key.name) or not all(np.allclose(a, b[number]) for a, b in pairs):
            yield f"key {key.name!r}"


def size_of(model: mujoco.MjModel, number: int) -> Array:
    """A geom's size; of a height field half lengths and the depth of its base, where geom_size has half its height."""
    if model.geom_type[number] == mujoco.mjtGeom.mjGEOM_HFIELD:
        return np.asarray(model.hfield_size[model.geom_dataid[number], [0, 1, 3]])
    return np.asarray(model.geom_size[number])


def differing_geoms(articulation: Articulation, model: mujoco.MjModel) -> Iterator[str]:
    """Contact attributes and sizes, pairs and exclusions."""
    geoms = [geom for link in articulation.links for geom in link.geoms]
    if len(geoms) != model.ngeom:
        yield f"{len(geoms)} geoms, not {model.ngeom}"
        return
    for name, ours in SURFACE.items():
        if not np.allclose([getattr(geom.surface, ours) for geom in geoms], getattr(model, name)):
            yield name
    for number, geom in enumerate(geoms):
        softness = geom.surface.softness
        same = (
            np.allclose(geom.friction or (), model.geom_friction[number])
            and np.allclose(softness.reference or (0.02, 1.0), model.geom_solref[number])
            and np.allclose(softness.impedance or (0.9, 0.95, 0.001, 0.5, 2.0), model.geom_solimp[number])
            and (geom.kind == "mesh" or np.allclose(geom.size, size_of(model, number)[: len(geom.size)], atol=1e-7))
            and (geom.kind == "mesh" or np.allclose(geom.pose.position, model.geom_pos[number], atol=1e-7))
        )
        if not same:
            yield f"geom {number} {geom.name!r}"
    if (len(articulation.contact_pairs), len(articulation.no_contact)) != (model.npair, model.nexclude):
        yield "pairs, exclusions"
