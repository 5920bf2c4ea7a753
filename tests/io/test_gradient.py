"""Gradients of a cost over a run, against differences of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.articulation.tangent import moved
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from tests.conftest import ROOT

Array = np.ndarray[Any, Any]
CART = """<mujoco><option timestep="0.01"/><worldbody><body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .1" mass="1" contype="0" conaffinity="0"/><body name="pole">
<joint name="hinge" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 1" size=".02" mass=".3" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><motor name="push" joint="slide"/></actuator></mujoco>"""
GRIPPER = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="2 2 .1" friction=".8"/>
<body name="wrist" pos="0 0 .3"><joint name="lift" type="slide" axis="0 0 1"/>
<geom type="box" size=".08 .02 .02" mass=".5" contype="0" conaffinity="0"/>
<body name="left" pos="-.06 0 -.12"><joint name="left" type="slide" axis="1 0 0"/>
<geom type="box" size=".01 .02 .08" mass=".1" friction=".8"/></body>
<body name="right" pos=".06 0 -.12"><joint name="right" type="slide" axis="-1 0 0"/>
<geom type="box" size=".01 .02 .08" mass=".1" friction=".8"/></body></body>
<body name="load" pos="0 0 .0499"><freejoint name="load"/>
<geom type="sphere" size=".05" mass=".2" friction=".8"/></body></worldbody>
<actuator><position name="up" joint="lift" kp="800" kv="40"/><position name="l" joint="left" kp="300" kv="10"/>
<position name="r" joint="right" kp="300" kv="10"/></actuator></mujoco>"""


def _cost_of(simulation: artsim.Simulation, cost: Callable[..., float], name: str, table: Array) -> float:
    snapshot = simulation.save()
    total = cost(0, simulation.qpos, simulation.qvel)
    for k, row in enumerate(table, 1):
        simulation.give(name, row)
        simulation.step()
        total += cost(k, simulation.qpos, simulation.qvel)
    simulation.restore(snapshot)
    return total


def close(
    simulation: artsim.Simulation, cost: Callable[..., float], name: str, table: Array, columns: Array, share: float
) -> Any:
    """The gradient along random directions of all inputs, and along one of the start, agrees with differences."""
    before = simulation.save()
    found = artsim.gradient(simulation, cost, len(table), controls={name: table})
    for key, values in simulation.save().items():
        np.testing.assert_array_equal(values, before[key], err_msg=key)
    assert found.cost == pytest.approx(_cost_of(simulation, cost, name, table), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(3):
        along = np.zeros(table.shape)
        along[:, columns] = rng.normal(size=(len(table), len(columns)))
        up, down = (_cost_of(simulation, cost, name, table + sign * 1e-5 * along) for sign in (1.0, -1.0))
        want = (up - down) / 2e-5
        assert np.sum(found.by_inputs * along[:, columns]) == pytest.approx(want, rel=share)
    return found


@pytest.mark.small
@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler"])
def test_a_cart_with_a_pole(tmp_path: Path, integrator: str) -> None:
    """Of the midpoint integrator the changes of velocities that it expects have adjoints, too."""
    (tmp_path / "cart.xml").write_text(CART)
    robot = artsim.load(tmp_path / "cart.xml")
    steps = 20 if disabled() else 200
    simulation = artsim.Simulation(robot, q0={"hinge": 2.0}, integrator=integrator)
    table = np.random.default_rng(1).normal(size=(steps, 1))
    cost = lambda k, q, v: float(0.1 * q[0] ** 2 + 1 - np.cos(q[1]) + 0.01 * v @ v) / steps  # noqa: E731
    found = close(simulation, cost, "control", table, np.arange(1), 2e-6)
    assert found.kinked <= 2 and found.inputs == ("control:push",)  # where the number of evaluations changes
    start, robot_model = simulation.save(), robot.model
    along = np.array([0.4, -0.7, 0.3, 0.6])

    def at(share: float) -> float:
        simulation.restore(start)
        simulation._simulation.state[0][:] = moved(robot_model, np.array(simulation.qpos), share * along[:2])
        simulation._simulation.state[1][:] += share * along[2:]
        total = _cost_of(simulation, cost, "control", table)
        simulation.restore(start)
        return total

    want = (at(1e-6) - at(-1e-6)) / 2e-6
    assert found.by_start @ along == pytest.approx(want, rel=1e-6)


@pytest.mark.skipif(disabled(), reason="hundreds of steps")
def test_a_gripper_that_lifts(tmp_path: Path) -> None:
    (tmp_path / "gripper.xml").write_text(GRIPPER)
    robot = artsim.load(tmp_path / "gripper.xml")
    simulation = artsim.Simulation(robot, contact_law="coulomb", q0={"lift": -0.079})
    simulation.step(300, control=[-0.075, 0.03, 0.03])
    simulation.step(150, control=[-0.04, 0.03, 0.03])
    assert {"contact:load/left holds", "contact:load/right holds"} == set(simulation.derivatives().active)
    table = np.repeat([[-0.04, 0.03, 0.03]], 200, axis=0)
    table[:, 0] += 5e-4 * np.arange(200)
    height = robot.labels.coords.index("load.z")
    cost = lambda k, q, v: float((q[height] - 0.1) ** 2 + 0.01 * v @ v) / 200  # noqa: E731
    found = close(simulation, cost, "control", table, np.arange(3), 1e-7)
    assert found.qpos[-1, height] > found.qpos[0, height] + 0.05


@pytest.mark.skipif(disabled(), reason="hundreds of steps")
def test_a_quadruped_that_stands() -> None:
    pose = {"*_hip": 0.6, "*_knee": -1.2}
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    settings: dict[str, Any] = {"ground": True, "on_ground": 0.0, "q0": pose, "target": pose}
    simulation = artsim.Simulation(robot, stiffness=60.0, damping=2.0, **settings)
    simulation.step(100)
    table = np.repeat(np.array(simulation._simulation.acting("target"))[None], 200, axis=0)
    swing = np.sin(0.03 * np.arange(200)[:, None] + np.arange(12))
    table[:, 6:] += 0.05 * swing * np.minimum(1, np.arange(200) / 50)[:, None]
    cost = lambda k, q, v: float((q[2] - 0.3) ** 2 + q[4] ** 2 + 0.01 * v @ v) / 200  # noqa: E731
    close(simulation, cost, "target", table, np.arange(6, 18), 5e-4)  # differences of the run are no better


@pytest.mark.small
def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "cart.xml").write_text(CART)
    simulation = artsim.Simulation(artsim.load(tmp_path / "cart.xml"))
    cost = lambda k, q, v: float(q[0])  # noqa: E731
    with pytest.raises(UsageError, match=r"controls: control has shape \(3, 2\), want \(4, 1\)"):
        artsim.gradient(simulation, cost, 4, controls={"control": np.zeros((3, 2))})
    with pytest.raises(UsageError, match="controls: 'torqe' is not known"):
        artsim.gradient(simulation, cost, 4, controls={"torqe": np.zeros((4, 1))})
    with pytest.raises(UsageError, match="controls: control is not finite"):
        artsim.gradient(simulation, cost, 1, controls={"control": [[np.nan]]})
    with pytest.raises(UsageError, match="got 0 steps"):
        artsim.gradient(simulation, cost, 0)
