"""Loops closed before a run (`--assemble`), and the freedom that loops leave: known linkages, the engine's own rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.loaders.load import load_text
from artsim.sim.equipment.build_loops import open_loops
from artsim.sim.foundation.errors import UsageError
from artsim.sim.ik.loop_freedom import _Rows, freedom
from artsim.sim.quantities.robot import Robot
from tests.ik.ik_models import EXCAVATOR
from tests.simulation import ROBOTS, Array

pytestmark = pytest.mark.small


def robot_of(text: str) -> Robot:
    return Robot.of(load_text(text, name="robot.xml"))


def linkage(*bars: tuple[float, float], loop: str, alpha: tuple[float, ...] = ()) -> str:
    """A chain of bars that turn about z, each of a length and drawn at an angle to the one before, whose end is closed
    to the ground by a loop at the point (1, 0); `alpha` twists the axes of further bars about x."""
    head, tail, x = "", "", 0.0
    for n, (length, angle) in enumerate(bars):
        twist = alpha[n - 1] if n and alpha else 0.0
        head += (
            f'<body name="bar{n}" pos="{x} 0 0" euler="{twist} 0 {angle}"><joint name="j{n}" axis="0 0 1"/>'
            f'<geom type="capsule" fromto="0 0 0 {length} 0 0" size=".01"/>'
        )
        tail, x = "</body>" + tail, length
    site = f'<site name="end" pos="{x} 0 0"/>'
    return f"""<mujoco><compiler angle="radian" eulerseq="xyz"/><worldbody><site name="pin" pos="1 0 0"/>
      {head}{site}{tail}</worldbody><equality>{loop}</equality></mujoco>"""


PIN = '<connect name="pin" site1="end" site2="pin"/>'
FOUR_BAR = linkage((0.4, 1.2), (0.9, -0.9), (0.5, -1.4), loop=PIN)
TRIANGLE = linkage((0.8, 0.7), (0.6, -1.5), loop=PIN)


def bennett(length: float, other: float, twist: float) -> str:
    """A Bennett linkage: lengths a, b, a, b and twists α, β, α, β with sin α / a = sin β / b, cut at a hinge."""
    beta = np.arcsin(np.sin(twist) * other / length)
    theta = 1.0
    ratio = np.sin((beta + twist) / 2) / np.sin((beta - twist) / 2)
    phi = 2 * np.arctan2(ratio, np.tan(theta / 2))
    angles, sides, twists = (theta, phi, 2 * np.pi - theta), (length, other, length), (twist, beta, twist)
    head, tail, x, bend = "", "", 0.0, 0.0
    for n, (angle, side, turned) in enumerate(zip(angles, sides, twists, strict=True)):
        head += f"""<body name="b{n}" pos="{x} 0 0" euler="{bend} 0 0"><joint name="j{n}" axis="0 0 1" ref="{angle}"/>
          <body name="c{n}" euler="0 0 {angle}"><geom type="capsule" fromto="0 0 0 {side} 0 0" size=".01"/>"""
        tail, x, bend = "</body></body>" + tail, side, turned
    end = f'<site name="end" pos="{x} 0 0" euler="{bend} 0 0"/>'
    start = f'<site name="start" pos="{-other} 0 0" euler="{-beta} 0 0"/>'
    return f"""<mujoco><compiler angle="radian" eulerseq="xyz"/><worldbody>{start}{head}{end}{tail}</worldbody>
      <equality><weld name="hinge" site1="end" site2="start"/></equality></mujoco>"""


# ------------------------------------------------------------------ freedom


@pytest.mark.parametrize(
    ("text", "independent", "left", "redundant"),
    [
        (FOUR_BAR, 2, 1, ("loop:pin.z",)),
        (TRIANGLE, 2, 0, ("loop:pin.z",)),
        (EXCAVATOR, 4, 4, ("loop:boom_pin.y", "loop:stick_pin.y")),
    ],
    ids=["four-bar", "triangle", "excavator"],
)
def test_the_freedom_of_planar_linkages(text: str, independent: int, left: int, redundant: tuple[str, ...]) -> None:
    """Gruebler's count would have one dof less per loop."""
    robot = robot_of(text)
    found = freedom(robot.compiled, robot.equipped, robot.reference)
    assert found is not None
    assert (found.independent_rows, found.left, found.redundant) == (independent, left, redundant)
    assert found.gap < 1e-9


def test_a_straight_linkage_is_not_told_to_be_freer_than_it_is() -> None:
    """At its dead centre the rows of a stretched triangle are one less, beside it they are not."""
    robot = robot_of(linkage((0.6, 0.0), (0.4, 0.0), (0.3, 2.0), (0.3, np.pi), loop=PIN))
    found = freedom(robot.compiled, robot.equipped, robot.reference)
    assert found is not None
    assert (found.independent_rows, found.left) == (2, 2)


def test_a_bennett_linkage_moves_against_the_count() -> None:
    """4 hinges in space whose lengths and twists fit: 3 dofs less 5 rows, and yet one is left (Bennett 1903)."""
    for twist, left in ((0.9, 1), (0.5, 1)):
        cut = load_text(bennett(0.5, 0.3, twist), name="robot.xml")
        robot = Robot.of(replace(cut, loops=(replace(cut.loops[0], kind="hinge"),)))
        found = freedom(robot.compiled, robot.equipped, robot.reference)
        assert found is not None
        assert (found.rows, found.left) == (5, left)
        assert found.gap < 1e-9


def test_a_robot_without_loops_has_none_to_count() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    assert freedom(robot.compiled, robot.equipped, robot.reference) is None


@pytest.mark.parametrize("model", ["clamp", "excavator", "four-bar"])
def test_its_rows_are_those_of_the_engine(model: str) -> None:
    """The Jacobian in numpy against `constraint_jacobian`, where the loops are closed; errors against the gaps."""
    robot = (
        artsim.load(ROBOTS / "clamp.xml")
        if model == "clamp"
        else robot_of({"excavator": EXCAVATOR}.get(model, FOUR_BAR))
    )
    rows = _Rows(robot.compiled, robot.equipped)
    assert rows.names == [*robot.constraints(reduced=True)]
    q = robot.reference
    for _ in range(20):
        C, J = rows.at(q)
        q = rows.moved(q, -np.linalg.lstsq(J, C, rcond=1e-9)[0])
    C, J = rows.at(q)
    assert np.abs(C).max() < 1e-12
    theirs = robot.compute(q, quantities=["constraint_jacobian"], reduced=True)["constraint_jacobian"]
    assert pytest.approx(theirs, abs=1e-9) == J


# ------------------------------------------------------------------ before a run


def gap(robot: Robot, q: Array) -> float:
    assert robot.equipped is not None
    return max(open_loops(robot.model, robot.equipped, q, 0.0).values(), default=0.0)


def test_a_loop_that_is_wide_open_is_closed_before_the_first_row() -> None:
    robot = robot_of(FOUR_BAR.replace('pos="1 0 0"', 'pos="0.7 -0.2 0"'))
    assert gap(robot, robot.reference) > 0.3
    run = artsim.simulate(robot, steps=1, assemble="*")
    assert gap(robot, run["qpos"][0]) < 1e-12
    some = artsim.simulate(robot, steps=1, assemble="j1,j2", q0={"j0": 0.3})
    assert some["qpos"][0, 0] == 0.3
    assert gap(robot, some["qpos"][0]) < 1e-12
    kept = artsim.simulate(robot, steps=1, assemble="*", q0={"j0": 0.3})
    assert kept["qpos"][0].tolist() == some["qpos"][0].tolist()


def test_limits_are_kept_and_what_cannot_close_is_told(tmp_path: Path) -> None:
    robot = robot_of(EXCAVATOR)
    q = artsim.simulate(robot, steps=1, assemble="*")["qpos"][0]
    assert gap(robot, q) < 1e-12
    for k, coord in enumerate(robot.model.dof_coord):
        assert robot.model.lower[k] - 1e-12 <= q[coord] <= robot.model.upper[k] + 1e-12
    short = robot_of(TRIANGLE.replace('pos="1 0 0"', 'pos="2 0 0"'))
    with pytest.raises(UsageError, match=r"--assemble: loop 'pin' stays open by 0\.6 m or rad"):
        artsim.simulate(short, steps=1, assemble="*")
    with pytest.raises(UsageError, match="'elbow' is not a joint of this robot"):
        artsim.simulate(robot, steps=1, assemble="elbow")


def test_a_robot_without_loops_has_none_to_close() -> None:
    with pytest.raises(UsageError, match="--assemble: no loop or coupling"):
        artsim.simulate(ROBOTS / "arm7.urdf", steps=1, assemble="*")


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


def test_from_the_command_line(tmp_path: Path) -> None:
    path, output = tmp_path / "excavator.xml", tmp_path / "a.h5"
    path.write_text(EXCAVATOR)
    done = run("run", path, "--assemble", "--steps", 3, "-o", output)
    assert done.exit_code == 0, done.output
    assert "starts open" not in done.stderr
    with artsim.open(output) as file:
        assert gap(robot_of(EXCAVATOR), file["qpos"][0]) < 1e-12
    assert run("replay", output, "--verify").exit_code == 0
    assert "starts open" in run("run", path, "--steps", 3, "-o", output, "--force").stderr
    done = run("run", "--assemble", path, "--steps", 3, "-o", output, "--force")
    assert done.exit_code == 2
    assert "names no joints; give MODEL first, or --assemble='*'" in done.stderr


def test_check_counts_the_freedom_and_tells_what_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(FOUR_BAR)
    told = run("check", path)
    assert (
        "3 rows of loops and couplings, 2 independent: 1 of 3 independent dofs is left to move; "
        "repeated by others: loop:pin.z" in told.stdout
    )
    assert "locked" not in told.stderr
    path.write_text(TRIANGLE)
    told = run("check", path)
    assert "0 of 2 independent dofs are left to move" in told.stdout
    assert "the loops leave nothing to move: this mechanism is locked" in told.stderr
    content: dict[str, Any] = json.loads(run("check", path, "--json").stdout)
    assert (content["freedom"]["left"], content["freedom"]["redundant"]) == (0, ["loop:pin.z"])
    assert json.loads(run("check", ROBOTS / "arm7.urdf", "--json").stdout)["freedom"] is None
    done = run("run", path, "--steps", 2, "--assemble", "-o", tmp_path / "a.h5")
    assert "this mechanism is locked" in done.stderr
