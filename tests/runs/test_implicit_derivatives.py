"""Derivatives of steps by the implicit function theorem: closed forms, differences of steps, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.step_derivatives import DIFFERENCES, IMPLICIT
from tests.benchmarks.step_derivatives import _moving
from tests.conftest import ROOT

H = 0.01
BLOCK = """<mujoco><worldbody><geom type="plane" size="9 9 .1" friction=".5"/>
<body pos="0 0 .1"><freejoint name="root"/>
<geom type="box" size=".3 .3 .1" mass="2" friction=".5"/></body></worldbody></mujoco>"""
BALL = """<mujoco><worldbody><geom type="plane" size="9 9 .1" friction=".5"/>
<body pos="0 0 .1"><freejoint name="root"/>
<geom type="sphere" size=".1" mass="2" friction=".5"/></body></worldbody></mujoco>"""
MUSCLE = """<mujoco><worldbody><body><joint name="elbow" type="hinge"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><muscle name="biceps" joint="elbow" lengthrange="0.1 0.3"/></actuator></mujoco>"""
LOOP = """<mujoco><option timestep="0.002"/><worldbody><body name="a"><joint name="a" type="hinge" axis="0 1 0"/>
<geom contype="0" conaffinity="0" type="capsule" fromto="0 0 0 0 0 .3" size=".02"/>
<body name="b" pos="0 0 .3"><joint name="b" type="hinge" axis="0 1 0"/>
<geom contype="0" conaffinity="0" type="capsule" fromto="0 0 0 .4 0 0" size=".02"/></body></body>
<body name="c" pos=".4 0 0"><joint name="c" type="hinge" axis="0 1 0"/>
<geom contype="0" conaffinity="0" type="capsule" fromto="0 0 0 0 0 .3" size=".02"/></body></worldbody>
<equality><connect body1="b" body2="c" anchor=".4 0 0"/></equality></mujoco>"""


def made(folder: Path, text: str, **settings: Any) -> artsim.Simulation:
    (folder / "model.xml").write_text(text)
    return artsim.Simulation(artsim.load(folder / "model.xml"), **settings)


def close(simulation: artsim.Simulation, share: float, parameters: tuple[str, ...] = ()) -> None:
    """Columns of which differences tell no kink agree with them, but for what these tell to be uncertain."""
    implicit = simulation.derivatives(parameters=parameters, method=IMPLICIT)
    want = simulation.derivatives(parameters=parameters, method=DIFFERENCES)
    assert (implicit.method, implicit.reason, want.method) == (IMPLICIT, "", DIFFERENCES)
    assert implicit.columns == want.columns and implicit.active == want.active
    compared = 0
    for n, column in enumerate(want.columns):
        size = max(1.0, float(np.abs(want.forward[:, n]).max()))
        if want.side[n] == 0 and column not in implicit.differenced and want.error[n] < 1e-6 * size:
            compared += 1
            apart = np.abs(implicit.forward[:, n] - want.forward[:, n]).max()
            assert apart <= share * size, (column, apart, size)
    assert compared > 0.5 * len(want.columns)


@pytest.mark.small
def test_a_block_that_slides(tmp_path: Path) -> None:
    """v⁺ = v (1 - μ g h / |v|): the friction turns with the velocity and is independent of its size."""
    v = np.array([0.8, -0.6])
    simulation = made(tmp_path, BLOCK, dt=H, contact_law="coulomb", v0={"root.vx": v[0], "root.vy": v[1]})
    found = simulation.derivatives([], ["friction", "gravity"], method=IMPLICIT)
    rows = [found.states.index(f"v:root.v{x}") for x in "xy"]
    slope = 0.5 * 9.81 * H
    across = np.eye(2) - np.outer(v, v)
    want = np.eye(2) - slope * across
    columns = [found.states.index(f"v:root.v{x}") for x in "xy"]
    np.testing.assert_allclose(found.A[np.ix_(rows, columns)], want, atol=1e-8)
    by = dict(zip(found.parameters, found.P.T, strict=True))
    np.testing.assert_allclose(by["friction"][rows], -slope * v, atol=1e-9)
    np.testing.assert_allclose(by["gravity.z"][rows], 0.5 * H * v, atol=1e-9)
    assert all(state.endswith("slides") for state in found.active)


@pytest.mark.small
def test_a_ball_that_rolls(tmp_path: Path) -> None:
    """Sticking, its contact point follows the surface: v⁺ = (5 v + 2 ω r) / 7 of the velocities before."""
    simulation = made(tmp_path, BALL, dt=H, contact_law="coulomb", v0={"root.vx": 0.3, "root.wy": 3.0})
    found = simulation.derivatives([], method=IMPLICIT)
    row = found.states.index("v:root.vx")
    by = dict(zip(found.states, found.A[row], strict=True))
    assert by["v:root.vx"] == pytest.approx(5 / 7, abs=1e-8)
    assert by["v:root.wy"] == pytest.approx(2 * 0.1 / 7, abs=1e-8)
    assert found.active == ("contact:world/body_1 holds",)


@pytest.mark.small
@pytest.mark.parametrize("name", ["double_pendulum.urdf", "parallel_gripper.urdf", "rack_and_pinion.urdf"])
def test_as_differences_of_steps(name: str) -> None:
    simulation = _moving(ROOT / "robots" / name)
    simulation.step(3)
    close(simulation, 1e-6, ("mass",))


@pytest.mark.skipif(disabled(), reason="hundreds of steps")
@pytest.mark.parametrize("step", [1, 20, 100])
def test_a_quadruped_on_its_feet(step: int) -> None:
    pose = {"*_hip": 0.6, "*_knee": -1.2}
    settings: dict[str, Any] = {"ground": True, "on_ground": 0.0, "q0": pose, "target": pose, "stiffness": 60.0}
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    simulation = artsim.Simulation(robot, damping=2.0, **settings)
    simulation.step(step)
    close(simulation, 1e-6, ("friction", "mass:trunk"))


def test_a_loop(tmp_path: Path) -> None:
    simulation = made(tmp_path, LOOP)
    simulation.step(5)  # afterwards it turns so fast that the loop is aimed
    close(simulation, 1e-6)


@pytest.mark.small
def test_the_change_that_a_step_expects(tmp_path: Path) -> None:
    """The midpoint integrator evaluates its bias at v + ½ of the change that it expects."""
    robot = artsim.load(ROOT / "robots" / "double_pendulum.urdf")
    simulation = artsim.Simulation(robot, q0=[0.4, 0.8], v0=[1.0, -2.0])
    simulation.step(5)
    implicit, differences = (simulation.derivatives([], method=m, expected=True) for m in (IMPLICIT, DIFFERENCES))
    assert np.abs(differences.E).max() > 1e-5
    np.testing.assert_allclose(implicit.E, differences.E, atol=1e-9)
    assert simulation.derivatives([]).E.shape == (4, 0)


@pytest.mark.small
def test_what_the_equations_lack_is_told(tmp_path: Path) -> None:
    muscle = made(tmp_path, MUSCLE)
    found = muscle.derivatives()
    assert (found.method, found.reason) == (DIFFERENCES, "activations of actuators")
    with pytest.raises(UsageError, match="does not follow its equations, because of activations of actuators"):
        muscle.derivatives(method=IMPLICIT)
    with pytest.raises(UsageError, match=r"method 'exact' is not known.*implicit, differences"):
        muscle.derivatives(method="exact")
    gripper = artsim.load(ROOT / "robots" / "parallel_gripper.urdf")
    at_limit = artsim.Simulation(gripper, q0={"left_finger_joint": 0.05}, gravity=(0, 0, 0)).derivatives()
    assert (at_limit.method, at_limit.reason) == (DIFFERENCES, "limits that are just reached")
    assert at_limit.kinks
