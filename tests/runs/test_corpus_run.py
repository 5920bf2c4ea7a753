"""Every public URDF with dynamics runs: 100 steps with the defaults, a finite state, balanced forces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.io.runs.prepare import prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ArtsimError, ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.simulate import Simulation
from tests.conftest import corpus

STEPS = 100


def run_all(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Outcome class → (id, detail) for every URDF that a peer loads."""
    table: dict[str, list[tuple[str, str]]] = {"ran": [], "refused by the reader": [], "singular": [], "failed": []}
    for entry in json.loads((folder / "index.json").read_text()):
        if entry["format"] != "urdf" or entry["expect"] != "load":
            continue
        try:
            articulation = load_articulation(folder / entry["path"])
        except ModelError as error:
            table["refused by the reader"].append((entry["id"], str(error).partition(":")[2]))
            continue
        try:
            plan = planned(folder / entry["path"], articulation)
        except ModelError as error:
            table["singular"].append((entry["id"], str(error)))
            continue
        table["failed" if (why := simulate(plan)) else "ran"].append((entry["id"], why))
    return table


def planned(path: Path, articulation: Any) -> Any:
    """The run's plan; without meshes where one that collides is missing."""
    config = RunConfig(steps=STEPS, record=("qpos", "qvel"))
    try:
        return prepare(articulation, config)
    except ModelError as error:
        if "--no-meshes" not in str(error):
            raise
        return prepare(load_articulation(path, meshes=False), config)


def simulate(plan: Any) -> str:
    """What went wrong in STEPS steps, '' for nothing."""
    held = Controls(np.zeros(1, np.int64), plan.torque[None], plan.target[None], plan.target_velocity[None])
    simulation = Simulation(plan, held)
    try:
        rows = [block.rows for block in simulation.blocks()]
        simulation.check()
    except ArtsimError as error:
        return str(error)
    finite = all(np.all(np.isfinite(block[name])) for block in rows for name in block)
    return "" if finite and simulation.step == STEPS else "not finite"


@pytest.mark.corpus
@pytest.mark.skipif(corpus() is None, reason="no corpus; set ARTSIM_CORPUS")
def test_every_public_robot_with_dynamics_runs() -> None:
    folder = corpus()
    assert folder is not None
    table = run_all(folder)
    assert table["failed"] == []
    assert len(table["singular"]) == 57  # massless moving subtrees, each refused with the link's name
    assert len(table["ran"]) >= 254


if __name__ == "__main__":
    import sys

    for outcome, models in run_all(Path(sys.argv[1])).items():
        print(f"{outcome}: {len(models)}")
        for ident, why in models if outcome not in ("ran", "singular") else []:
            print(f"    {ident}: {why[-140:]}")
