"""Damping and velocity limits of links and of the whole robot: closed forms, and what the rows must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.settings import DEFAULT_RECORD
from tests.simulation import Array, Run, box_link, joint, robot_file, simulate, urdf

G = 9.81
BOX = robot_file("floating_box")  # 6 kg; 0.025, 0.05, 0.065 kg m²
MASS, INERTIA = 6.0, np.array([0.025, 0.05, 0.065])
DT = 0.002
CHAIN = urdf(
    box_link("upper", 1.5, com=(0, 0, -0.2), size=(0.05, 0.05, 0.4)),
    box_link("lower", 0.7, com=(0.02, 0, -0.15), size=(0.04, 0.06, 0.3)),
    box_link("hand", 0.2, com=(0, 0.01, -0.05), size=(0.03, 0.05, 0.1)),
    joint("shoulder", "revolute", "base", "upper"),
    joint("elbow", "revolute", "upper", "lower", at=(0, 0, -0.4), axis=(0.6, 0.8, 0)),
    joint("wrist", "revolute", "lower", "hand", at=(0, 0, -0.3), axis=(0, 0, 1)),
)
SWUNG = {"shoulder": 1.5, "elbow": 0.7, "wrist": 0.3}
FORCES = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit")


def link_twists(run: Run) -> Array:
    """Velocity of every link's centre of mass, and its angular velocity, after each step: (steps - 1, nl, 6)."""
    computed = run.robot.compute(run["qpos"], run["qvel"], quantities=["link_velocity"], at="com")
    return computed["link_velocity"][1:]


def unbalance(run: Run) -> float:
    """Largest |M q̈ + bias - Σ tau|, relative to the largest force."""
    computed = run.robot.compute(run["qpos"], run["qvel"], run["qacc"], quantities=["mass_matrix", "bias"])
    inertial = np.einsum("tij,tj->ti", computed["mass_matrix"], run["qacc"]) + computed["bias"]
    total = sum(run[name] for name in FORCES)
    return float(np.abs(inertial - total).max() / np.abs(inertial).max())


# ------------------------------------------------------------------ damping


def test_a_damped_fall_is_that_of_the_closed_form() -> None:
    """v⁺ = (v - g h) / (1 + c h), towards g / c; a spin about a principal axis decays by 1 / (1 + c h)."""
    c, spin = 3.0, 5.0
    run = simulate(BOX, steps=2000, dt=DT, link_damping={"b*": (c, 0.7)}, v0={"floating_joint.wz": spin})
    n = np.arange(2000)
    falling = -(G / c) * (1 - (1 + c * DT) ** -n)
    assert np.abs(run["qvel"][:, 2] - falling).max() < 1e-12 * G
    assert np.abs(run["qvel"][:, 5] - spin * (1 + 0.7 * DT) ** -n).max() < 1e-12 * spin
    assert run["qvel"][-1, 2] == pytest.approx(-G / c, rel=1e-4)
    after = run["qvel"][1:]
    assert run["tau_passive"][:-1, 2] == pytest.approx(-c * MASS * after[:, 2], rel=1e-12)
    assert run["tau_passive"][:-1, 5] == pytest.approx(-0.7 * INERTIA[2] * after[:, 5], rel=1e-12)
    assert unbalance(run) < 1e-12


def test_rk4_follows_a_damped_fall_to_fourth_order() -> None:
    """v = -(g / c) (1 - exp(-c t)), and a spin about a principal axis decays as exp(-c t)."""
    c, spin, errors = 3.0, 5.0, []
    for steps in (50, 100):
        given: dict[str, Any] = {"link_damping": {"b*": (c, 0.7)}, "v0": {"floating_joint.wz": spin}}
        run = simulate(BOX, steps=steps + 1, dt=2.0 / steps, integrator="rk4", **given)
        t = np.linspace(0.0, 2.0, steps + 1)
        falling = run["qvel"][:, 2] + (G / c) * (1 - np.exp(-c * t))
        turning = run["qvel"][:, 5] - spin * np.exp(-0.7 * t)
        errors.append([np.abs(falling).max(), np.abs(turning).max()])
        assert run["tau_passive"][:, 2] == pytest.approx(-c * MASS * run["qvel"][:, 2], rel=1e-12)
        assert run["tau_passive"][:, 5] == pytest.approx(-0.7 * INERTIA[2] * run["qvel"][:, 5], rel=1e-12)
        assert unbalance(run) < 1e-12
    assert np.all(np.array(errors[0]) < 1e-4)
    assert np.log2(np.divide(errors[0], errors[1])) == pytest.approx([4.0, 4.0], abs=0.2)


@pytest.mark.parametrize(("integrator", "after"), [("semi-implicit-euler", 1), ("rk4", 0)])
def test_equal_damping_of_all_links_is_that_share_of_the_mass_matrix(integrator: str, after: int) -> None:
    """With the bias at the step's start, tau_passive has nothing else; `after`: steps to the velocity that it damps."""
    c = 2.0
    config: dict[str, Any] = {"link_damping": {"*": (c, c)}, "q0": SWUNG, "integrator": integrator}
    run = simulate(CHAIN, steps=300, dt=DT, **config)
    M = run.robot.compute(run["qpos"], quantities=["mass_matrix"])["mass_matrix"]
    want = -c * np.einsum("tij,tj->ti", M[:-1], run["qvel"][after : 299 + after])
    assert run["tau_passive"][:-1] == pytest.approx(want, rel=1e-10, abs=1e-12)
    assert unbalance(run) < 1e-12


def test_strong_damping_is_stable_and_later_patterns_win() -> None:
    run = simulate(CHAIN, steps=200, dt=0.01, link_damping={"*": (1e6, 1e6), "hand": (0.0, None)}, q0=SWUNG)
    assert np.abs(run["qvel"][:, :2]).max() < 1e-4  # what moves the upper links stands still
    assert unbalance(run) < 1e-8
    coupled = simulate(robot_file("parallel_gripper"), steps=50, link_damping={"*": (50.0, 5.0)})
    assert unbalance(coupled) < 1e-10


# ------------------------------------------------------------------ limits


def test_a_falling_body_stays_at_its_bound_and_its_weight_is_held() -> None:
    run = simulate(BOX, steps=400, dt=DT, link_velocity_limit={"box": (2.0, None)}, v0={"floating_joint.vx": 0.5})
    speed = np.linalg.norm(link_twists(run)[:, -1, :3], axis=1)
    assert speed.max() <= 2.0 * (1 + 1e-12)
    assert speed[-1] == pytest.approx(2.0, rel=1e-12)
    assert run["tau_limit"][-1, 2] == pytest.approx(MASS * G, rel=1e-3)  # it falls almost straight by then
    assert np.all(run["tau_limit"][:20] == 0.0)
    assert unbalance(run) < 1e-11


def test_a_tumbling_body_turns_no_faster_than_its_bound() -> None:
    spin = {"floating_joint.wx": 0.1, "floating_joint.wy": 5.0}
    options: dict[str, Any] = {"torque": {"floating_joint.wy": 0.8, "floating_joint.wx": 0.3}, "v0": spin}
    free = simulate(BOX, steps=600, dt=DT, **options)
    run = simulate(BOX, steps=600, dt=DT, link_velocity_limit={"*": (None, 6.0)}, **options)
    speed = np.linalg.norm(run["qvel"][1:, 3:], axis=1)
    assert np.linalg.norm(free["qvel"][:, 3:], axis=1).max() > 12
    assert speed.max() <= 6.0 * (1 + 1e-12)
    assert np.mean(speed > 6.0 * (1 - 1e-12)) > 0.5
    assert unbalance(run) < 1e-10


@pytest.mark.parametrize("solver", ["newton", "pgs", "tgs", "block-gs"])
def test_links_of_a_falling_chain_keep_to_their_bounds(solver: str) -> None:
    bounds = {"upper": (0.5, 2.0), "lower": (0.8, None), "hand": (1.0, 3.0)}
    options: dict[str, Any] = {"steps": 1500, "dt": DT, "q0": SWUNG, "record": (*DEFAULT_RECORD, "energy")}
    run = simulate(CHAIN, link_velocity_limit=bounds, solver=solver, iterations=100, **options)
    twists = link_twists(run)
    most = {name: twists[:, run.robot.links.index(name)] for name in bounds}
    free = link_twists(simulate(CHAIN, **options))
    reached, slack = 0, 1e-3 if solver == "tgs" else 1e-11  # tgs moves by its sub-steps' mean velocity
    for name, (linear, angular) in bounds.items():
        for bound, part in ((linear, slice(0, 3)), (angular, slice(3, 6))):
            if bound is not None:
                speed = np.linalg.norm(most[name][:, part], axis=1)
                assert speed.max() <= bound * (1 + slack), name
                assert np.linalg.norm(free[:, run.robot.links.index(name), part], axis=1).max() > 1.2 * bound
                reached += bool(speed.max() > bound * (1 - 1e-9))
    assert reached >= 3
    assert unbalance(run) < 1e-9
    energy = run["energy"].sum(axis=1)
    assert energy.max() - energy[0] < 0.02 * abs(np.ptp(energy))


def test_the_centre_of_mass_of_a_chain_keeps_to_its_bounds() -> None:
    spin = {"root.wx": 6.0, "root.wy": 3.0, "elbow": 4.0}
    run = simulate(CHAIN.replace("<link name=\"base\"/>", box_link("base", 1.0)), base="floating", steps=600, dt=DT,
                   com_velocity_limit=(1.2, 2.5), v0=spin, q0=SWUNG)  # fmt: skip
    computed = run.robot.compute(
        run["qpos"][2:], run["qvel"][2:], quantities=["momentum", "centroidal_momentum_matrix", "mass_matrix"]
    )
    mass = sum(link.inertial.mass for link in run.robot.articulation.links if link.inertial)
    linear = np.linalg.norm(computed["momentum"][:, :3], axis=1) / mass
    assert linear.max() <= 1.2 * (1 + 1e-11)
    assert linear[-1] == pytest.approx(1.2, rel=1e-11)
    angular = np.array([mean_spin(run, q, v) for q, v in zip(run["qpos"][2::20], run["qvel"][2::20], strict=True)])
    assert 2.5 * (1 - 1e-9) <= angular.max() <= 2.5 * (1 + 1e-9)
    assert unbalance(run) < 1e-9


def mean_spin(run: Run, q: Array, v: Array) -> float:
    """|I⁻¹ L| about the centre of mass, link by link."""
    computed = run.robot.compute(q, v, quantities=["com", "momentum", "link_pose", "jacobian"])
    inertia = np.zeros((3, 3))
    for n, name in enumerate(run.robot.links):
        inertial = next(link for link in run.robot.articulation.links if link.name == name).inertial
        if inertial is None:
            continue
        w, x, y, z = computed["link_quaternion"][n]
        R = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        arm = computed["link_position"][n] + R @ np.array(inertial.pose.position) - computed["com"]
        xx, xy, xz, yy, yz, zz = inertial.inertia
        inertia += R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        inertia += inertial.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return float(np.linalg.norm(np.linalg.solve(inertia, computed["momentum"][3:])))


def test_a_start_far_above_a_bound_comes_down_and_is_told_of() -> None:
    fast = {"shoulder": 20.0, "elbow": 30.0}
    run = simulate(CHAIN, steps=20, dt=DT, q0=SWUNG, v0=fast, link_velocity_limit={"*": (1.0, None)})
    speed = np.linalg.norm(link_twists(run)[:, :, :3], axis=2).max(axis=1)
    assert speed[0] - 1.0 == pytest.approx(run.simulation.worst_residual, abs=1e-3)
    assert speed[3:].max() <= 1.0 + 1e-11


# ------------------------------------------------------------------ what is refused


def test_wrong_rules_are_refused() -> None:
    for config, words in (
        ({"link_damping": {"bux": (1.0, 1.0)}}, "is no link of this robot"),
        ({"link_damping": {"box": (1.0,)}}, "two numbers"),
        ({"link_velocity_limit": {"box": (-1.0, None)}}, "two numbers"),
        ({"com_velocity_limit": 3.0}, "two numbers"),
        ({"link_velocity_limit": {"box": (1.0, None)}, "integrator": "rk4"}, "rk4"),
    ):
        with pytest.raises(UsageError, match=words):
            simulate(BOX, steps=1, **config)  # type: ignore[arg-type]


def test_rules_are_part_of_a_configuration() -> None:
    config = RunConfig(link_damping={"*": (1.0, None)}, com_velocity_limit=(None, 2.0))
    assert RunConfig.from_json(config.to_json()) == config
