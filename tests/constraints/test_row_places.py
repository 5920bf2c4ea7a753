"""The places of rows in State.impulse that packs know are those at which a single robot's rows stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import held_controls, prepare
from artsim.sim.constraints.kinds import (
    AT_LONGEST,
    AT_LOWER,
    AT_SHORTEST,
    AT_UPPER,
    AXIS_ROW,
    COUPLING_ROW,
    DRIVE_ROW,
    FRICTION_ROW,
    POSITION_ROW,
    TENDON_ROW,
    TENDON_SPRING,
    VELOCITY_ROW,
)
from artsim.sim.run_data.run_records import LASTING_ROWS
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.packable import places_of
from tests.runs.test_packed_rows import MODELS, arm

MODELS = MODELS | {
    "limits of tendons": arm(
        t='range="-.2 .3" frictionloss=".1"',
        u='range="-9 .5" armature=".1"',
        equality='<joint joint1="b" joint2="c" solref=".01 1"/>',
    ).replace('"c" axis', '"c" range="-20 30" axis')
}
SIDES = {(POSITION_ROW, AT_LOWER), (POSITION_ROW, AT_UPPER), (VELOCITY_ROW, AT_LOWER), (VELOCITY_ROW, AT_UPPER)}
SIDES |= {(TENDON_ROW, AT_SHORTEST), (TENDON_ROW, AT_LONGEST)}
FIRST = {COUPLING_ROW: 0, AXIS_ROW: 1, POSITION_ROW: 2}
"""Of the rows that are found lane by lane those of other kinds come after these, in the order of their places."""


@pytest.mark.small
@pytest.mark.parametrize("name", MODELS)
def test_places_are_those_of_a_single_robot(name: str, tmp_path: Path) -> None:
    """By a solver that has all limits as rows in every step."""
    path = tmp_path / ("model.urdf" if MODELS[name].lstrip().startswith("<robot") else "model.xml")
    path.write_text(MODELS[name])
    robot = artsim.load(path)
    options: dict[str, Any] = {
        "solver": "pgs",
        "record": (),
        "steps": 1,
        "joint_friction": {robot.dofs[0].split(".")[0]: 0.1},
    }
    if robot.dofs[0] == "ball.wx":  # turned, since a swing of zero has no row
        options["q0"] = {"ball.qw": np.sqrt(0.97), **dict.fromkeys(("ball.qx", "ball.qy", "ball.qz"), 0.1)}
    if {"a", "b", "c"} <= set(robot.dofs):
        options |= {"friction_coefficient": {"b": 0.1}, "drive_limit": {"a": 0.5, "c": 0.5}}
        options |= {"stiffness": {"a": 9.0}, "damping": {"c": 1.0}}
    plan = prepare(robot.articulation, RunConfig(**options))
    single, places = simulation_of(plan, held_controls(plan)), places_of(plan)
    list(single.blocks())
    rows, sides, own = single._rows, list[int](), list[tuple[int, int]]()
    for n in range(rows.number[LASTING_ROWS]):
        kind, part, place = int(rows.kind[n]), int(rows.part[n]), int(rows.place[n])
        if kind == FRICTION_ROW:
            assert place == places.friction[rows.dof[n]]
        elif kind == DRIVE_ROW:
            assert place == places.drive[rows.dof[n]]
        elif (kind, part) in SIDES:
            sides.append(place)
        elif (kind, part) == (TENDON_ROW, TENDON_SPRING):
            assert place >= places.end
        else:
            own.append((FIRST.get(kind, 3), place))
    assert sides == places.sides.tolist()
    assert [place for _, place in sorted(own)] == places.own.tolist()
    found = np.concatenate([places.friction, places.drive, places.sides, places.own])
    assert sorted(found[found >= 0]) == list(range(places.end))
