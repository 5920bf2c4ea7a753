"""Inverse dynamics with loops, mimics and contacts: forward dynamics gives the motion back; statics by virtual work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import prepared
from artsim.sim.articulation.tangent import follow_leaders, moved
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.cone_programme import least_in_cones
from artsim.sim.runs.copied_steps import Starts
from artsim.sim.runs.rigid_accelerations import Accelerations
from tests.conftest import ROOT
from tests.runs.test_linearize import FOUR_BAR, STANDING, G, robot_of

Array = np.ndarray[Any, Any]


def quadruped() -> tuple[artsim.Robot, Array, tuple[str, ...]]:
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    q = np.array(artsim.Simulation(robot, ground=True, on_ground=0.0, q0=STANDING).qpos)
    return robot, q, tuple(link for link in robot.links if link.endswith("foot"))


def accelerations(robot: artsim.Robot, q: Array, v: Array, found: Any, feet: tuple[str, ...]) -> Array:
    """Forward dynamics with the torques and forces that were found."""
    tau = np.zeros(robot.nv)
    tau[[robot.dofs.index(name) for name in found.actuated]] = found.torque
    wrench = np.zeros((len(robot.links), 6))
    for link, force in zip(feet, found.contact, strict=True):
        wrench[robot.links.index(link), :3] += force
    return robot.compute(q, v, None, tau, wrench, quantities=["forward_dynamics"], at="origin")["forward_dynamics"]


def largest_slopes(contact: Array) -> Array:
    return np.hypot(contact[..., 0], contact[..., 1]) / contact[..., 2]


# ------------------------------------------------------------------ contacts


@pytest.mark.small
def test_a_quadruped_on_its_feet() -> None:
    """18 dofs, 12 torques, 12 forces: six are open, and the torques are those of least norm."""
    robot, q, feet = quadruped()
    rng = np.random.default_rng(1)
    for _ in range(5):
        v, a = 0.5 * rng.normal(size=(2, robot.nv))
        found = robot.inverse_dynamics(q, v, a, actuated=robot.dofs[6:], contacts=feet)
        np.testing.assert_allclose(accelerations(robot, q, v, found, feet), a, atol=1e-9)
        mass, com = robot.model.link_mass.sum(), robot.compute(q, v, a, quantities=["centroidal_bias"])
        A = robot.compute(q, quantities=["centroidal_momentum_matrix"])["centroidal_momentum_matrix"]
        rate = A @ a + com["centroidal_bias"]
        np.testing.assert_allclose(found.contact.sum(axis=0), rate[:3] + np.array([0, 0, mass * G]), atol=1e-9)
        more = found.torque + 1e-3 * rng.normal(size=12)
        assert np.linalg.norm(found.torque) <= np.linalg.norm(more) + 1e-2
    still = robot.inverse_dynamics(q, actuated=robot.dofs[6:], contacts=feet)
    left = _others(robot, q, still, feet)
    assert np.abs(still.torque @ left).max() < 1e-9


def _others(robot: artsim.Robot, q: Array, found: Any, feet: tuple[str, ...]) -> Array:
    """Torques (12, k) that with some forces of contacts change nothing, of which those of least norm have no part."""
    J = robot.compute(q, quantities=["jacobian"], at="origin", links=feet)["jacobian"][:, :3].reshape(-1, robot.nv)
    whole = np.concatenate([np.eye(robot.nv)[:, 6:], J.T], axis=1)
    _, sizes, V = np.linalg.svd(whole)
    return V[np.count_nonzero(sizes > 1e-9) :, :12].T


@pytest.mark.parametrize("friction", [0.27, 0.2, 0.1])
def test_forces_within_friction_cones(friction: float) -> None:
    robot, q, feet = quadruped()
    free = robot.inverse_dynamics(q, actuated=robot.dofs[6:], contacts=feet)
    assert largest_slopes(free.contact).max() > 0.25
    found = robot.inverse_dynamics(q, actuated=robot.dofs[6:], contacts=feet, friction=friction)
    assert largest_slopes(found.contact).max() <= friction * (1 + 1e-9)
    np.testing.assert_allclose(accelerations(robot, q, np.zeros(robot.nv), found, feet), 0.0, atol=1e-9)
    grippy = robot.inverse_dynamics(q, actuated=robot.dofs[6:], contacts=feet, friction=0.8)
    np.testing.assert_array_equal(grippy.torque, free.torque)
    if friction == 0.27:
        np.testing.assert_array_equal(found.torque, free.torque)
    else:
        assert np.linalg.norm(found.torque) > np.linalg.norm(free.torque)


def test_the_programme_as_by_another_method() -> None:
    """Against scipy's SLSQP, of three contacts that carry a load."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    for _ in range(4):
        P = np.diag(rng.uniform(0.5, 2.0, 9))
        E = np.concatenate([np.tile(np.eye(3), 3), rng.normal(size=(1, 9))])
        r = np.array([10.0, 2.0, 1.0, 0.5])
        cones, friction = np.arange(9).reshape(3, 3), np.full(3, 0.3)
        x, shift = least_in_cones(P, E, r, cones, friction)
        assert x is not None and shift < 0
        bounds = [
            {"type": "ineq", "fun": lambda y, k=k: 0.3 * y[3 * k] - np.hypot(y[3 * k + 1], y[3 * k + 2])}
            for k in range(3)
        ]
        other = minimize(
            lambda y, P=P: 0.5 * y @ P @ y,
            x,
            jac=lambda y, P=P: P @ y,
            constraints=[*bounds, {"type": "eq", "fun": lambda y, E=E, r=r: E @ y - r}],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert 0.5 * x @ P @ x <= other.fun * (1 + 1e-7)
        np.testing.assert_allclose(E @ x, r, atol=1e-10)
        np.testing.assert_allclose(x, other.x, atol=2e-3)


@pytest.mark.small
def test_a_ladder(tmp_path: Path) -> None:
    """A rod on the floor at a wall without friction: N = m g, wall and friction m g / (2 tan α)."""
    text = """<mujoco><worldbody><body name="rod"><freejoint name="root"/>
    <geom type="capsule" size=".01" fromto="0 0 0 0 0 2" mass="3"/></body></worldbody></mujoco>"""
    robot, angle = robot_of(tmp_path, text), np.radians(60)
    half = 0.5 * (np.pi / 2 - angle)
    q = np.array([0, 0, 0, np.cos(half), 0, np.sin(half), 0])
    foot = artsim.ContactPoint("rod", (0, 0, 0), (0, 0, 1), 0.5)
    head = artsim.ContactPoint("rod", (0, 0, 2), (-1, 0, 0), 0.0)
    found = robot.inverse_dynamics(q, actuated=[], contacts=[foot, head])
    wall = 3 * G / (2 * np.tan(angle))
    np.testing.assert_allclose(found.contact, [[wall, 0, 3 * G], [-wall, 0, 0]], atol=1e-4)
    slippery = artsim.ContactPoint("rod", (0, 0, 0), (0, 0, 1), 0.25)
    with pytest.raises(UsageError, match="no forces of the contacts within their friction cones"):
        robot.inverse_dynamics(q, actuated=[], contacts=[slippery, head])


# ------------------------------------------------------------------ loops and mimics


@pytest.mark.small
def test_statics_of_a_four_bar_by_virtual_work(tmp_path: Path) -> None:
    """One crank carries (m + m_c) g l sin θ; of two each half, which has the least norm."""
    robot = robot_of(tmp_path, FOUR_BAR)
    angle = 0.4
    q = np.array([angle, -angle, angle])
    whole = (2.0 + 0.3) * G * 0.5 * np.sin(angle)
    one = robot.inverse_dynamics(q, actuated=["left"])
    assert one["left"] == pytest.approx(whole, rel=1e-10)
    both = robot.inverse_dynamics(q, actuated=["left", "right"])
    np.testing.assert_allclose(both.torque, [0.5 * whole, 0.5 * whole], rtol=1e-9)
    assert one.constraints and one.constraint.shape == (len(one.constraints),)
    with pytest.raises(UsageError, match=r"the velocity breaks 'loop:pin"):
        robot.inverse_dynamics(q, [1.0, 0.0, 0.0])
    with pytest.raises(UsageError, match="actuated: 'lift' is not a dof of this robot; did you mean 'left'"):
        robot.inverse_dynamics(q, actuated=["lift"])
    with pytest.raises(UsageError, match="has no source"):
        robot.inverse_dynamics(q, actuated=[])


@pytest.mark.parametrize(
    ("name", "actuated"),
    [("clamp.xml", ["crank_left", "crank_right"]), ("parallel_gripper.urdf", None), ("rack_and_pinion.urdf", None)],
)
def test_forward_dynamics_gives_the_torques_back(name: str, actuated: list[str] | None) -> None:
    """The accelerations that rk4 finds with torques and without, in motion, loops closed rigidly: their torques differ
    by these, whatever springs, dampers and actuators exert."""
    robot = artsim.load(ROOT / "robots" / name, coupling="exact")
    plan, _, _ = prepared(robot, "none", None, {"steps": 2})
    forces, rng = Accelerations(plan), np.random.default_rng(0)
    dofs = actuated or [robot.independent_dofs[0]]
    torque = np.zeros((2, robot.nv))
    torque[0, [robot.dofs.index(joint) for joint in dofs]] = given = rng.normal(size=len(dofs))
    q, v, a = np.array(plan.qpos), np.zeros(robot.nv), np.zeros((2, robot.nv))
    ways = np.eye(len(robot.independent_dofs))
    if robot.has_constraints:
        J = robot.compute(q, quantities=["constraint_jacobian"], reduced=True)["constraint_jacobian"]
        _, sizes, V = np.linalg.svd(J)
        ways = V[np.count_nonzero(sizes > 1e-9) :].T
    v[robot.model.independent_dof] = ways @ rng.normal(size=ways.shape[1])
    follow_leaders(robot.model, q, v)
    states = (np.tile(values, (2, 1)) for values in (q, v, plan.activation))
    a[:, robot.model.independent_dof] = forces.of(Starts(*states, {"torque": torque}, {}))[0]
    assert np.abs(a[0] - a[1]).max() > 1e-3
    found = robot.inverse_dynamics(np.tile(q, (2, 1)), np.tile(v, (2, 1)), a, actuated=dofs)
    np.testing.assert_allclose(
        found.torque[0] - found.torque[1], given, atol=1e-9 * max(1.0, np.abs(found.torque).max())
    )


@pytest.mark.small
def test_rows_of_a_table_are_single_motions() -> None:
    robot = artsim.load(ROOT / "robots" / "two_finger_gripper.urdf")
    rng = np.random.default_rng(4)
    q = moved(robot.model, robot.reference, 0.2 * rng.normal(size=(4, robot.nv)))
    v, a = rng.normal(size=(2, 4, robot.nv))
    follow_leaders(robot.model, q, v)
    whole = robot.inverse_dynamics(q, v, a)
    reduced = robot.compute(q, v, a, quantities=["inverse_dynamics"], reduced=True)["inverse_dynamics"]
    np.testing.assert_allclose(whole.torque, reduced, atol=1e-10)
    for n in range(4):
        one = robot.inverse_dynamics(q[n], v[n], a[n])
        np.testing.assert_allclose(one.torque, whole.torque[n], atol=1e-12)
    with pytest.raises(UsageError, match=r"qvel has shape \(3,\)"):
        robot.inverse_dynamics(q, [1, 2, 3])
