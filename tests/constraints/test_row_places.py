"""The places of rows in State.impulse are the same in packs as for a single robot, whichever limits press."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import held_controls, prepare
from artsim.sim.constraints.kinds import (
    AT_LONGEST,
    AT_SHORTEST,
    DRIVE_ROW,
    POSITION_ROW,
    TENDON_ROW,
    VELOCITY_ROW,
)
from artsim.sim.run_data.run_records import LASTING_ROWS, Rows
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.sampled_runs import PackRoller, Results
from artsim.sim.runs.varied import Variations
from tests.runs.test_packed_rows import MODELS, arm

MODELS = MODELS | {
    "limits of tendons": arm(
        t='range="-.2 .3" frictionloss=".1"',
        u='range="-9 .5" armature=".1"',
        equality='<joint joint1="b" joint2="c" solref=".01 1"/>',
    ).replace('"c" axis', '"c" range="-20 30" axis')
}


def places(rows: Rows) -> dict[tuple[int, int, int], int]:
    """The places of all rows but those of contacts, by kind, owner and part."""
    lasting = range(int(rows.number[LASTING_ROWS]))
    return {(int(rows.kind[n]), int(rows.dof[n]), int(rows.part[n])): int(rows.place[n]) for n in lasting}


@pytest.mark.small
@pytest.mark.parametrize("name", MODELS)
def test_places_are_those_of_a_single_robot(name: str, tmp_path: Path) -> None:
    """By pgs a single robot has all limits as rows in every step, but no springs of tendons."""
    path = tmp_path / ("model.urdf" if MODELS[name].lstrip().startswith("<robot") else "model.xml")
    path.write_text(MODELS[name])
    robot = artsim.load(path)
    options: dict[str, Any] = {"record": (), "steps": 1, "joint_friction": {robot.dofs[0].split(".")[0]: 0.1}}
    if robot.dofs[0] == "ball.wx":  # turned, since a swing of zero has no row
        options["q0"] = {"ball.qw": np.sqrt(0.97), **dict.fromkeys(("ball.qx", "ball.qy", "ball.qz"), 0.1)}
    if {"a", "b", "c"} <= set(robot.dofs):
        options |= {"friction_coefficient": {"b": 0.1}, "drive_limit": {"a": 0.5, "c": 0.5}}
        options |= {"stiffness": {"a": 9.0}, "damping": {"c": 1.0}}
    wanted: dict[tuple[int, int, int], int] = {}
    for solver in ("newton", "pgs"):
        plan = prepare(robot.articulation, RunConfig(solver=solver, **options))
        single = simulation_of(plan, held_controls(plan))
        list(single.blocks())
        wanted |= places(single._rows)
    plan = prepare(robot.articulation, RunConfig(**options))
    roller = PackRoller(plan, held_controls(plan), Results.of(plan, 1))
    assert roller.run(Variations(plan.qpos[None], plan.qvel[None]), lambda: False)
    found = places(roller._turns.scratch.rows)
    assert found and found.items() <= wanted.items()
    missing = {kind for kind, *_ in wanted.keys() - found.keys()}
    assert missing <= {POSITION_ROW, VELOCITY_ROW, TENDON_ROW, DRIVE_ROW}  # drives are part of M̂ in packs


@pytest.mark.small
@pytest.mark.parametrize("speed, sides", [(0.0, set()), (200.0, {AT_LONGEST}), (-200.0, {AT_SHORTEST})])
def test_limits_of_tendons_have_rows_where_they_press(speed: float, sides: set[int], tmp_path: Path) -> None:
    """A step that would take the first tendon beyond a limit has the row of that limit alone."""
    path = tmp_path / "model.xml"
    path.write_text(MODELS["limits of tendons"])
    robot = artsim.load(path)
    plan = prepare(robot.articulation, RunConfig(record=(), steps=1, v0={"a": speed}))
    single = simulation_of(plan, held_controls(plan))
    list(single.blocks())
    found = {(dof, part) for kind, dof, part in places(single._rows) if kind == TENDON_ROW}
    assert {part for dof, part in found if dof == 0} & {AT_SHORTEST, AT_LONGEST} == sides
