"""Every worked example of the inverse-dynamics section of PhysX's articulation guide, figure by figure.

The guide's pendulum is a rod of 1 kg on a pivot at the origin that turns about z, its centre 1 m away; gravity is
10 m/s² along -y. Its angle is counted from upright, where the rod points along +y.
"""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation, Inertial, Joint, Link, Pose
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.naive import Twin
from tests.tree_quantities import TREE_QUANTITIES

Array = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = pytest.mark.small

MASS, DISTANCE, GRAVITY = 1.0, 1.0, 10.0  # [kg], pivot to centre of mass [m], [m/s²]
INERTIA_AT_COM = DISTANCE**2 * MASS / 3
INERTIA_AT_PIVOT = INERTIA_AT_COM + DISTANCE**2 * MASS
DOWN = (0.0, -GRAVITY, 0.0)
WEIGHTLESS = (0.0, 0.0, 0.0)


def rod(name: str, direction: float) -> Link:
    """A thin rod along ±y from its link's origin."""
    inertia = (INERTIA_AT_COM, 0.0, 0.0, 1e-3, 0.0, INERTIA_AT_COM)
    return Link(name, Inertial(MASS, Pose((0.0, direction * DISTANCE, 0.0)), inertia))


def pendulum(gravity: tuple[float, float, float] = DOWN, *, direction: float = 1.0) -> Robot:
    """The guide's pendulum: upright at zero, or hanging with direction -1."""
    joint = Joint("pivot", "revolute", "base", "rod")
    articulation = Articulation("pendulum", "urdf", (Link("base"), rod("rod", direction)), (joint,))
    return Robot.of(articulation, gravity=gravity)


def double_pendulum() -> Articulation:
    """Two such rods, the second hinged to the first's end."""
    joints = (
        Joint("first", "revolute", "base", "upper"),
        Joint("second", "revolute", "upper", "lower", Pose((0.0, 2 * DISTANCE, 0.0))),
    )
    return Articulation("double", "urdf", (Link("base"), rod("upper", 1.0), rod("lower", 1.0)), joints)


def compute(robot: Robot, qpos: list[float], **inputs: list[float]) -> dict[str, Array]:
    """All quantities of one configuration; a table of it must say the same in packs."""
    out = robot.compute(np.array(qpos), **{k: np.array(x) for k, x in inputs.items()}, quantities=TREE_QUANTITIES)
    if not disabled():
        rows = {name: np.tile(x, (WIDTH, 1)) for name, x in {"qpos": qpos, **inputs}.items()}
        for name, values in robot.compute(**rows, quantities=TREE_QUANTITIES).items():
            np.testing.assert_allclose(values[WIDTH - 1], out[name], rtol=1e-12, atol=1e-13, err_msg=name)
    return out


def after_one_step(
    articulation: Articulation, qpos: dict[str, float], qvel: dict[str, float], torque: dict[str, float]
) -> Array:
    """Velocities after a step of 10 ms under constant joint forces."""
    config = RunConfig(steps=1, dt=0.01, q0=qpos, v0=qvel, torque=torque, gravity=DOWN, record=("qvel",))
    plan = plan_run(articulation, config)
    rows = Controls(np.zeros(1, np.int64), *(x[None] for x in (plan.torque, plan.target, plan.target_velocity)))
    simulation = Simulation(plan, rows)
    for _ in simulation.blocks():
        pass
    simulation.check()
    return simulation.qvel


@pytest.mark.parametrize(("direction", "holding"), [(-1.0, 10.0), (1.0, -10.0)], ids=["hanging", "upright"])
def test_holding_torque_of_the_pendulum(direction: float, holding: float) -> None:
    """10 N m when perpendicular to gravity; against it when the angle is counted from hanging, else with it."""
    robot = pendulum(direction=direction)
    assert compute(robot, [pi / 2])["gravity"] == pytest.approx([holding], rel=1e-14)
    assert after_one_step(robot.articulation, {"pivot": pi / 2}, {}, {"pivot": holding}) == pytest.approx(
        [0.0], abs=1e-14
    )


@pytest.mark.parametrize("first", [0.0, 0.7, -2.0])
def test_centrifugal_torque_of_the_double_pendulum(first: float) -> None:
    """First link at 1 rad/s, second perpendicular to it and at rest: with C v + g applied, velocities stay."""
    articulation = double_pendulum()
    robot = Robot.of(articulation, gravity=DOWN)
    qpos, qvel = [first, pi / 2], [1.0, 0.0]
    out = compute(robot, qpos, qvel=qvel)
    coriolis = out["bias"] - out["gravity"]
    assert coriolis == pytest.approx([0.0, MASS * 2 * DISTANCE * DISTANCE], rel=1e-13, abs=1e-13)
    held = compute(robot, qpos, qvel=qvel, tau=[float(x) for x in out["bias"]])
    assert held["forward_dynamics"] == pytest.approx([0.0, 0.0], abs=1e-13)
    torque = dict(zip(robot.dofs, map(float, out["bias"]), strict=True))
    after = after_one_step(articulation, dict(zip(robot.coords, qpos, strict=True)), {"first": 1.0}, torque)
    assert after == pytest.approx([1.0, 0.0], abs=1e-13)


def test_generalized_external_force() -> None:
    """A wrench at the centre of mass, taken through Jᵀ: what the pivot must give against it."""
    angle = pi / 4
    force, torque = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    robot = pendulum()
    J = compute(robot, [angle])["jacobian"][robot.links.index("rod")]
    counter = -J.T @ np.concatenate([force, torque])
    assert counter == pytest.approx([cos(angle) * DISTANCE * force[0] - torque[2]], rel=1e-14)


@pytest.mark.parametrize("case", ["free fall", "held"])
def test_joint_acceleration_from_force_and_gravity(case: str) -> None:
    """Perpendicular to gravity, which turns it the positive way; cases 1 and 2."""
    due_to_gravity = GRAVITY * MASS * DISTANCE
    force, acceleration = {"free fall": (0.0, due_to_gravity / INERTIA_AT_PIVOT), "held": (-due_to_gravity, 0.0)}[case]
    out = compute(pendulum(), [pi / 2], tau=[force])
    assert out["forward_dynamics"] == pytest.approx([acceleration], rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1.1, pi / 2])
def test_joint_force_for_a_target_acceleration(angle: float) -> None:
    """Without gravity 1 rad/s² takes the inertia at the pivot, at any angle."""
    out = compute(pendulum(WEIGHTLESS), [angle], qacc=[1.0])
    assert out["inverse_dynamics"] == pytest.approx([INERTIA_AT_PIVOT], rel=1e-14)


def test_centre_of_mass_of_the_articulation() -> None:
    out = compute(pendulum(), [pi / 4])
    assert out["com"] == pytest.approx([-sin(pi / 4) * DISTANCE, cos(pi / 4) * DISTANCE, 0.0], abs=1e-15)


def test_mass_matrix_turns_accelerations_into_forces() -> None:
    """forces = M · accelerations without gravity and at rest; (nv + 6) square with a floating root."""
    robot = Robot.of(double_pendulum(), gravity=WEIGHTLESS)
    out = compute(robot, [0.3, -1.2], qacc=[0.5, -2.0])
    assert out["mass_matrix"] @ [0.5, -2.0] == pytest.approx(out["inverse_dynamics"], rel=1e-13)
    assert compute(pendulum(), [0.4])["mass_matrix"] == pytest.approx(np.array([[INERTIA_AT_PIVOT]]), rel=1e-14)
    floating = Robot.of(load_articulation(_ROBOTS / "quadruped.urdf", base="floating"), gravity=WEIGHTLESS)
    assert floating.dofs[:6] == tuple(f"root.{name}" for name in ("vx", "vy", "vz", "wx", "wy", "wz"))
    acceleration = [0.1 * k for k in range(18)]
    out = compute(floating, _standing(floating), qacc=acceleration)
    assert out["mass_matrix"].shape == (18, 18)
    assert out["mass_matrix"] @ acceleration == pytest.approx(out["inverse_dynamics"], rel=1e-12)


def test_jacobian_of_the_pendulum() -> None:
    """Perpendicular to gravity, pointing along -x: at 1 rad/s its centre moves down at `distance` per second."""
    robot = pendulum()
    J = compute(robot, [pi / 2])["jacobian"][robot.links.index("rod")]
    assert J.shape == (6, 1)
    jac10, jac50 = J[1, 0], J[5, 0]
    assert jac10 == -DISTANCE
    assert jac50 == 1.0
    assert J[[0, 2, 3, 4], 0] == pytest.approx(np.zeros(4), abs=1e-15)


def test_centroidal_momentum_and_its_rate() -> None:
    """h = A v; ḣ = A v̇ + Ȧ v: joint forces change nothing, gravity changes what it pulls at."""
    articulation = load_articulation(_ROBOTS / "quadruped.urdf", base="floating")
    robot, twin = Robot.of(articulation, gravity=DOWN), Twin(articulation)
    rng = np.random.default_rng(5)
    q, v = twin.random_coordinates(rng), rng.normal(size=18)
    tau = np.concatenate([np.zeros(6), rng.normal(size=12)])
    out = compute(robot, list(q), qvel=list(v), tau=list(tau))
    A, a = out["centroidal_momentum_matrix"], out["forward_dynamics"]
    assert out["momentum"] == pytest.approx(A @ v, rel=1e-13, abs=1e-13)

    h = 1e-4
    times = np.array([-2 * h, -h, h, 2 * h])
    after = [compute(robot, list(twin.moved(q, v * t + a * t * t / 2, 1.0)), qvel=list(v + a * t)) for t in times]
    fourth_order = np.array([1.0, -8.0, 8.0, -1.0]) / (12 * h)
    rate = fourth_order @ np.array([x["momentum"] for x in after])
    turning = np.tensordot(fourth_order, np.array([x["centroidal_momentum_matrix"] for x in after]), 1)
    mass = float(robot.model.link_mass.sum())
    expected = np.array([*(mass * np.array(DOWN)), 0.0, 0.0, 0.0])
    assert rate == pytest.approx(expected, abs=1e-8 * mass)
    assert A @ a + turning @ v == pytest.approx(expected, abs=1e-8 * mass)


_ROBOTS = Path(__file__).resolve().parents[2] / "robots"


def _standing(robot: Robot) -> list[float]:
    """A pose with a turned root and bent legs."""
    qpos = np.linspace(-0.5, 0.5, robot.nq)
    qpos[3:7] = 0.8, 0.2, -0.4, 0.4
    return list(qpos)
