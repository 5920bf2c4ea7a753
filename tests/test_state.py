"""State: saved at any step and restored anywhere, what follows has the same bytes."""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.runs import prepare
from artsim.loaders.load import load_articulation
from artsim.sim.configuration import RunConfig
from artsim.sim.controls import Controls
from artsim.sim.plan import Plan
from artsim.sim.run import RECORDED
from artsim.sim.simulate import Simulation
from tests.conftest import ROOT

Array = np.ndarray[Any, Any]
STEPS = 24
ROBOTS = sorted(path.name for path in (ROOT / "robots").glob("*.*") if path.suffix in (".urdf", ".xml"))
CORPUS = [
    "menagerie-fork/robotiq_2f85/2f85.xml",
]
DRIVEN: dict[str, Any] = {"stiffness": {"*": 50.0}, "damping": {"*": 2.0}, "drive_limit": {"*": 8.0}}
VARIANTS: dict[str, dict[str, Any]] = {
    "free": {},
    "driven": DRIVEN,
    "rows": DRIVEN | {"coupling": "rows", "velocity_limits": True, "friction_coefficient": {"*": 0.01}},
    "pgs": DRIVEN | {"coupling": "rows", "solver": "pgs", "iterations": 5},
    "rk4": {"integrator": "rk4"},
    "ground": {"ground": True, "friction_coefficient": {"*": 0.02}},
}


def disturbed(plan: Plan, seed: int) -> tuple[Plan, Controls]:
    """The plan from a random start, with inputs that change on the way."""
    random = np.random.default_rng(seed)
    qvel = np.where(plan.robot.model.dof_independent >= 0, random.normal(scale=0.5, size=plan.robot.nv), 0.0)
    nv, starts = plan.robot.nv, np.array([0, 5, 11, 12, 19])
    held = plan.control[None] + random.uniform(-0.2, 0.2, (len(starts), len(plan.control)))
    torque, target, rate = (random.normal(scale=scale, size=(len(starts), nv)) for scale in (0.1, 0.3, 0.1))
    return dataclasses.replace(plan, qvel=qvel), Controls(starts, torque, target, rate, held)


def rows_of(simulation: Simulation, steps: int) -> tuple[bytes, ...]:
    """The bytes of the next steps' rows, and those of the whole state after them."""
    parts = [{k: v.copy() for k, v in block.rows.items()} for block in simulation.blocks(steps)]
    rows = [np.concatenate([part[name] for part in parts]).tobytes() for name in simulation.plan.config.record]
    return (*rows, *(values.tobytes() for values in simulation.save().values()))


def check_continuation(plan: Plan, controls: Controls, seed: int) -> None:
    """Save after k steps; go on here, in a fresh simulation, and here again: the same bytes."""
    k = 1 + seed % (STEPS - 2)
    one = Simulation(plan, controls)
    rows_of(one, k)
    snapshot = one.save()
    if one.stop_reason:
        return
    first = rows_of(one, STEPS - k)
    fresh = Simulation(plan, controls)
    fresh.restore(snapshot)
    named = [*plan.config.record, *snapshot]
    assert [n for n, a, b in zip(named, first, rows_of(fresh, STEPS - k), strict=True) if a != b] == []
    one.restore(snapshot)
    assert [n for n, a, b in zip(named, first, rows_of(one, STEPS - k), strict=True) if a != b] == []


def planned(path: Path, settings: dict[str, Any]) -> Plan:
    config = RunConfig.from_mapping({"steps": STEPS, "dt": 0.002, "record": RECORDED, **settings})
    return prepare(load_articulation(path, meshes=False), config)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_restored_runs_have_the_same_bytes(robot: str, variant: str) -> None:
    seed = zlib.crc32(f"{robot} {variant}".encode())
    try:
        plan = planned(ROOT / "robots" / robot, VARIANTS[variant])
    except artsim.UsageError as error:
        assert variant in ("rk4", "ground"), error  # friction that rk4 has no rows for
        return
    check_continuation(*disturbed(plan, seed), seed)
