"""The recorded joint forces: they add up to M q̈ + bias with Pinocchio's M and bias, and each does what its source says.

`python -m pytest tests/stepping/test_forces.py -s` prints the figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.simulation import (
    FORCES,
    Mimics,
    Run,
    Truth,
    box_link,
    joint,
    relative,
    robot_file,
    simulate,
    slider,
    source_text,
    urdf,
    without,
)

G = 9.81
DT = 0.002

# Everything at once: an arm with a limited and an unlimited drive, friction, damping, a limit it falls into, a slide,
# mimics in a chain and across the branches, and a leader declared after its follower.
BUSY = urdf(
    box_link("upper", 2.0, (0.1, 0.02, -0.2), (0.05, 0.06, 0.4)),
    box_link("fore", 1.0, (0.0, 0.03, -0.15), (0.05, 0.04, 0.3)),
    box_link("hand", 0.4, (0.02, 0, -0.05), (0.1, 0.05, 0.1)),
    box_link("finger_1", 0.1, (0, 0, -0.03), (0.02, 0.02, 0.06)),
    box_link("finger_2", 0.15, (0, 0.01, -0.03), (0.02, 0.02, 0.06)),
    box_link("tail", 1.5, (0.2, 0, 0.05), (0.4, 0.05, 0.05)),
    box_link("weight", 0.5, (0, 0, 0.01), (0.05, 0.05, 0.05)),
    joint("shoulder", "revolute", "base", "upper", axis=(0.1, 1, 0.2), limit=(-0.6, 2.0), damping=0.2),
    joint("elbow", "revolute", "upper", "fore", at=(0, 0, -0.4), axis=(0.3, 1, 0), friction=0.3),
    joint("wrist", "revolute", "fore", "hand", at=(0, 0, -0.3), axis=(0, 0.2, 1), mimic=("tail_swing", -0.8, 0.1)),
    joint("slide_1", "prismatic", "hand", "finger_1", at=(0.03, 0, -0.1), axis=(1, 0, 0), limit=(-0.02, 0.03)),
    joint(
        "slide_2",
        "prismatic",
        "hand",
        "finger_2",
        at=(-0.03, 0, -0.1),
        axis=(-1, 0, 0.1),
        damping=3.0,
        mimic=("slide_1", 1.2, 0.002),
    ),
    joint("tail_swing", "revolute", "base", "tail", at=(0, 0.6, 0), axis=(0, 1, 0.1), damping=0.01, velocity=2.0),
    joint("weight_slide", "prismatic", "tail", "weight", at=(0.3, 0, 0), axis=(1, 0, 0), friction=1.0),
)
BUSY_CONFIG: dict[str, Any] = {
    "dt": DT,
    "q0": {"shoulder": 0.4, "elbow": 0.3, "slide_1": 0.01},
    "v0": {"elbow": 1.0, "shoulder": -6.0},
    "stiffness": {"elbow": 40.0, "slide_1": 500.0},
    "damping": {"elbow": 1.0, "slide_1": 20.0},
    "target": {"elbow": -0.8, "slide_1": 0.2},
    "target_velocity": {"slide_1": 0.1},
    "drive_limit": {"elbow": 2.5},
    "torque": {"tail_swing": 1.0, "slide_2": 0.5},
    "friction_coefficient": {"weight_slide": 0.1},
    "velocity_limits": True,
}


def balance(run: Run, truth: Truth) -> float:
    """Worst |M q̈ + bias - Σ tau| over the rows, relative to the largest entry of M q̈ and bias in its row."""
    worst = 0.0
    for q, v, a, tau in zip(
        run["qpos"], run["qvel"], run["qacc"], np.sum([run[name] for name in FORCES], axis=0), strict=True
    ):
        bias = truth.bias(q, v)
        total = truth.inverse_dynamics(q, v, a)
        worst = max(worst, relative(tau - total, np.concatenate([bias, total - bias])))
    return worst


CASES: dict[str, tuple[str | Path, dict[str, Any]]] = {
    "busy": (BUSY, BUSY_CONFIG),
    "busy, coupling rows": (BUSY, {**BUSY_CONFIG, "coupling": "rows"}),
    "busy, compliant": (BUSY, {**BUSY_CONFIG, "coupling": "compliant", "coupling_frequency": 5.0}),
    "busy, pgs": (BUSY, {**BUSY_CONFIG, "coupling": "rows", "solver": "pgs", "iterations": 20}),
    "acceleration drives": (BUSY, {**BUSY_CONFIG, "drive_mode": "acceleration", "drive_limit": {}}),
    "two_finger_gripper": (robot_file("two_finger_gripper"), {"stiffness": {"*": 2.0}, "damping": {"*": 0.1}}),
    "arm7": (robot_file("arm7"), {"controller": "hold"}),
    "arm7, gravity compensation": (robot_file("arm7"), {"controller": "gravity-compensation", "q0": {"joint_2": 0.5}}),
    "arm7, computed torque": (
        robot_file("arm7"),
        {"controller": "computed-torque", "target": {"joint_2": 0.5, "joint_4": -0.4}},
    ),
    "quadruped": (robot_file("quadruped"), {"base": "floating", "v0": {"root.wx": 3.0, "front_left_hip": 4.0}}),
    "planar_base": (robot_file("planar_base"), {"v0": {"planar_joint.angle": 2.0, "arm_joint": 1.0}}),
    "floating_box": (robot_file("floating_box"), {"v0": {"floating_joint.vx": 2.0, "floating_joint.wy": 5.0}}),
    "rk4": (robot_file("two_finger_gripper"), {"integrator": "rk4", "q0": {"left_driver_joint": 0.3}, "dt": 0.0005}),
    "rk4, coupling rows": (
        robot_file("rack_and_pinion"),
        {"integrator": "rk4", "coupling": "rows", "v0": {"pinion_joint": 1.0, "rack_joint": 0.02}, "dt": 0.0005},
    ),
}


@pytest.mark.parametrize(
    ("model", "config", "steps"),
    [pytest.param(*case, 10, id=f"{name}, 10 steps", marks=pytest.mark.small) for name, case in CASES.items()]
    + [pytest.param(*case, 600, id=name) for name, case in CASES.items()],
)
def test_balance(model: str | Path, config: dict[str, Any], steps: int, request: pytest.FixtureRequest) -> None:
    run = simulate(model, steps=steps, **config)
    truth = Truth(model, run.robot, base=config.get("base", "fixed"))
    worst = balance(run, truth)
    G = np.eye(run.robot.nv)
    if run.robot.model.coupling_follower.size:
        G = Mimics(model, run.robot).G
    power = float(np.abs(run["tau_coupling"] @ G).max()) if config.get("coupling", "auto") in ("auto", "exact") else 0.0
    print(f"\n{request.node.callspec.id:45} balance {worst:.1e}   Gᵀ tau_coupling {power:.1e}", end="")
    assert worst <= 1e-9
    assert power <= 1e-9


def test_busy_is_busy() -> None:
    """The case above has every source at work, limits open and closed, the drive saturated and not."""
    run = simulate(BUSY, steps=600, **BUSY_CONFIG)
    dof = {name: k for k, name in enumerate(run.robot.dofs)}
    drive = np.abs(run["tau_drive"][:, dof["elbow"]])
    assert drive.max() == pytest.approx(2.5, rel=1e-12)
    assert drive.min() < 2.0
    hit = run["tau_limit"] != 0
    for name in ("shoulder", "slide_1", "tail_swing"):
        assert 0 < np.count_nonzero(hit[:, dof[name]]) < 600, name
    for name in FORCES:
        assert np.abs(run[name]).max() > 0.1, name


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (robot_file("two_finger_gripper"), {"stiffness": {"*": 2.0}, "target": {"left_driver_joint": 0.4}}),
        (robot_file("rack_and_pinion"), {"v0": {"pinion_joint": 2.0}}),
        (robot_file("stiff_drive_chain"), {"q0": {"joint_1": 1.0}, "stiffness": {"joint_1": 1e5}}),
        (
            without(BUSY, "dynamics", "limit").replace(
                "<axis", '<limit effort="1e6" velocity="1e6" lower="-1e3" upper="1e3"/><axis'
            ),
            {"q0": {"shoulder": 0.4, "elbow": 0.3}, "v0": {"elbow": 1.0}},
        ),
    ],
    ids=["two_finger_gripper", "rack_and_pinion", "stiff_drive_chain", "busy"],
)
@pytest.mark.small
def test_coupling_forces_are_the_multipliers_of_rows(model: str | Path, config: dict[str, Any]) -> None:
    """Exact couplings record a remainder; the same run with rows and the direct solver has them as multipliers."""
    exact = simulate(model, steps=30, dt=DT, **config)
    rows = simulate(model, steps=30, dt=DT, coupling="rows", solver="newton", **config)
    assert not np.any(exact["tau_limit"])
    assert np.abs(rows["tau_coupling"]).max() > 1e-3
    assert relative(exact["tau_coupling"] - rows["tau_coupling"], rows["tau_coupling"]) <= 1e-9
    assert relative(exact["qacc"] - rows["qacc"], rows["qacc"]) <= 1e-9


# ------------------------------------------------------------------ wrenches through the joints


def masses(model: str | Path) -> list[float]:
    root = ElementTree.fromstring(source_text(model).encode())
    return [float(mass.get("value", 0)) for mass in root.iter("mass")]


@pytest.mark.small
@pytest.mark.parametrize("name", ["arm7", "two_finger_gripper", "double_pendulum", "chain20"])
def test_root_carries_the_weight(name: str) -> None:
    """At rest the world pushes the root up with m g; for chain and pendulum, hanging straight, without a torque."""
    model = robot_file(name)
    run = simulate(model, steps=1, q0={}, controller="gravity-compensation")
    root = run["incoming_wrench"][0, 0]
    assert np.abs(run["qacc"]).max() <= 1e-9
    assert root[:3] == pytest.approx([0, 0, sum(masses(model)) * G], rel=1e-12, abs=1e-10)
    if name in ("double_pendulum", "chain20"):
        assert np.abs(root[3:]).max() <= 1e-9


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (BUSY, BUSY_CONFIG),
        (robot_file("arm7"), {"v0": {"joint_2": 1.0, "joint_5": -2.0}, "q0": {"joint_4": 0.7}}),
        (robot_file("quadruped"), {"base": "floating", "v0": {"root.wx": 3.0, "front_left_hip": 4.0}}),
        (robot_file("planar_base"), {"v0": {"planar_joint.angle": 2.0, "arm_joint": 1.0}}),
    ],
    ids=["busy", "arm7", "quadruped", "planar_base"],
)
@pytest.mark.small
def test_incoming_wrenches_are_pinocchio_s(model: str | Path, config: dict[str, Any]) -> None:
    run = simulate(model, steps=8, **config)
    truth = Truth(model, run.robot, base=config.get("base", "fixed"))
    child = {j.name: j.child for j in run.robot.articulation.joints} | {"root_joint": run.robot.links[0]}
    for q, v, a, wrench in zip(*(run[n] for n in ("qpos", "qvel", "qacc", "incoming_wrench")), strict=True):
        for name, want in truth.wrenches(q, v, a).items():
            got = wrench[run.robot.links.index(child[name])]
            assert np.abs(got - want).max() <= 1e-9 * np.abs(want).max() + 1e-12, name


@pytest.mark.small
def test_incoming_wrench_is_mujoco_s() -> None:
    """cfrc_int is torque, then force, about the tree's centre of mass."""
    model = robot_file("arm7")
    text = without(source_text(model), "visual", "collision")
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    run = simulate(model, steps=5, v0={"joint_2": 1.0, "joint_5": -2.0}, q0={"joint_4": 0.7})
    for row in range(5):
        data.qpos[:], data.qvel[:], data.qacc[:] = run["qpos"][row], run["qvel"][row], run["qacc"][row]
        mujoco.mj_inverse(compiled, data)
        mujoco.mj_rnePostConstraint(compiled, data)
        for k in range(1, 8):
            body = compiled.body(f"link_{k}").id
            torque, force = data.cfrc_int[body][:3], data.cfrc_int[body][3:]
            shift = data.subtree_com[compiled.body_rootid[body]] - data.xpos[body]
            want = np.concatenate([force, torque + np.cross(shift, force)])
            got = run["incoming_wrench"][row, run.robot.links.index(f"link_{k}")]
            assert relative(got - want, want) <= 1e-9, k


# ------------------------------------------------------------------ drives


@pytest.mark.small
@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_drive_saturates_exactly(solver: str) -> None:
    """Far from its target the drive gives its limit and no more; near it, what its spring and damper say."""
    gains: dict[str, Any] = {"stiffness": {"x": 400.0}, "damping": {"x": 60.0}, "target": {"x": 0.3}}
    run = simulate(slider(), steps=600, dt=DT, solver=solver, drive_limit={"x": 5.0}, **gains)
    force, q, v = run["tau_drive"][:, 0], run["qpos"][:, 0], run["qvel"][:, 0]
    end_v = v + DT * run["qacc"][:, 0]
    felt = DT * end_v if solver == "pgs" else 0.25 * DT * (end_v - v)  # actuation.py: this spring is slow for the step
    asked = 400.0 * (0.3 - (q + felt)) - 60.0 * end_v
    assert force == pytest.approx(np.clip(asked, -5.0, 5.0), abs=1e-9)
    limited = np.abs(asked) > 5.0
    assert np.abs(force[limited]) == pytest.approx(5.0, rel=1e-14)
    assert {1.0, -1.0} == set(np.sign(force[limited]))
    assert run["qacc"][limited, 0] == pytest.approx(force[limited] / 2.0, rel=1e-10)
    assert 0 < np.count_nonzero(limited) < 600
    assert q[-1] == pytest.approx(0.3, abs=1e-3)


@pytest.mark.small
def test_impulse_limit_is_force_limit_times_dt() -> None:
    gains: dict[str, Any] = {"stiffness": {"*": 400.0}, "damping": {"*": 60.0}, "target": {"x": 0.3}, "steps": 100}
    force = simulate(slider(), dt=DT, drive_limit={"*": 5.0}, **gains)
    impulse = simulate(slider(), dt=DT, drive_limit={"*": 5.0 * DT}, drive_limit_kind="impulse", **gains)
    assert np.abs(force["tau_drive"]).max() == pytest.approx(5.0, rel=1e-14)
    assert impulse["tau_drive"] == pytest.approx(force["tau_drive"], rel=1e-12)


@pytest.mark.small
def test_effort_bounds_drives() -> None:
    text = slider().replace('effort="1e6"', 'effort="3"')
    run = simulate(text, steps=10, dt=DT, stiffness={"*": 1e4}, target={"x": 1.0}, drive_limit={"*": 100.0})
    assert run["tau_drive"][:, 0] == pytest.approx(np.full(10, 3.0), rel=1e-14)


@pytest.mark.small
@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_acceleration_drives_do_not_feel_inertia(solver: str) -> None:
    """Gains in 1/s² and 1/s: the same motion for 0.1 kg and 1000 kg; force drives differ."""
    gains: dict[str, Any] = {"stiffness": {"*": 90.0}, "damping": {"*": 12.0}, "target": {"x": 0.3}, "steps": 60}
    for mode, same in (("acceleration", True), ("force", False)):
        light, heavy = (simulate(slider(mass), drive_mode=mode, solver=solver, **gains) for mass in (0.1, 1000.0))
        assert (relative(light["qpos"] - heavy["qpos"], heavy["qpos"]) < 1e-12) == same
        if same:
            assert heavy["tau_drive"] == pytest.approx(1e4 * light["tau_drive"], rel=1e-9)


@pytest.mark.small
def test_acceleration_drive_of_an_arm_scales_with_the_articulated_inertia() -> None:
    """The gain is 1 / (M⁻¹)_kk of the bare M: what the rest of the arm, free to move, resists with."""
    model = robot_file("arm7")
    q0 = {"joint_2": 0.4, "joint_4": 0.6}
    run = simulate(
        model, steps=1, dt=1e-6, q0=q0, drive_mode="acceleration", stiffness={"joint_4": 50.0}, target={"joint_4": 1.0}
    )
    k = run.robot.dofs.index("joint_4")
    inertia = 1.0 / np.linalg.inv(Truth(model, run.robot).mass_matrix(run["qpos"][0]))[k, k]
    assert run["tau_drive"][0, k] == pytest.approx(50.0 * inertia * 0.4, rel=1e-5)


@pytest.mark.small
def test_drive_and_damping_are_implicit() -> None:
    """v⁺ = (m v + h (K (target - q + h b v) + D target velocity)) / (m + h (D + d) + h² a K): stable at any gain.

    With s = min(1, 1 / (h² K / m)), a = 1 - ¾ s and b = ¼ s.
    """
    m, d, h = 2.0, 3.0, 0.01
    for K, D, rate in ((50.0, 4.0, 0.0), (1e8, 1e6, 0.5), (0.0, 1e9, -0.2)):
        run = simulate(
            slider(m, damping=d),
            steps=20,
            dt=h,
            v0={"x": 1.0},
            stiffness={"x": K},
            damping={"x": D},
            target={"x": 0.4},
            target_velocity={"x": rate},
        )
        q, v = 0.0, 1.0
        for row in range(20):
            assert run["qpos"][row, 0] == pytest.approx(q, rel=1e-12, abs=1e-15)
            assert run["qvel"][row, 0] == pytest.approx(v, rel=1e-10, abs=1e-13)
            share = 1.0 / max(1.0, h * h * K / m)
            a, b, before = 1.0 - 0.75 * share, 0.25 * share, v
            v = (m * v + h * (K * (0.4 - q + h * b * v) + D * rate)) / (m + h * (D + d) + h * h * a * K)
            drive = K * (0.4 - q - h * (a * v - b * before)) + D * (rate - v)
            q += h * v
            assert run["tau_passive"][row, 0] == pytest.approx(-d * v, rel=1e-9, abs=1e-12)
            assert run["tau_drive"][row, 0] == pytest.approx(drive, rel=1e-6, abs=(K + D) * 1e-12)


# ------------------------------------------------------------------ friction


@pytest.mark.small
@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_friction_holds_below_and_slides_above(solver: str) -> None:
    for push, moves in ((4.99, False), (-4.99, False), (6.0, True), (-6.0, True)):
        run = simulate(slider(friction=5.0), steps=50, dt=DT, torque={"x": push}, solver=solver)
        if moves:
            assert run["tau_passive"] == pytest.approx(-5.0 * np.sign(push), rel=1e-14)
            assert run["qacc"] == pytest.approx(0.5 * np.sign(push), rel=1e-10)
        else:
            assert np.abs(run["qpos"]).max() <= 1e-13
            assert run["tau_passive"] == pytest.approx(-push, rel=1e-12)


@pytest.mark.small
def test_friction_stops_a_motion_and_holds_it() -> None:
    run = simulate(slider(friction=5.0), steps=100, dt=DT, v0={"x": 0.1})
    v, force = run["qvel"][:, 0], run["tau_passive"][:, 0]
    stop = int(np.argmax(v <= 1e-13))
    assert stop == round(0.1 / 2.5 / DT)  # m v / friction
    assert force[: stop - 1] == pytest.approx(-5.0, rel=1e-13)
    assert np.abs(v[stop:]).max() <= 1e-13
    assert np.abs(force[stop:]).max() <= 1e-10


@pytest.mark.small
def test_friction_grows_with_the_load() -> None:
    """PhysX's coefficient: friction is the coefficient times the force that the joint carried a step before."""
    mu, push = 0.2, 12.0
    run = simulate(slider(), steps=40, dt=DT, torque={"x": push}, friction_coefficient={"x": mu})
    load = np.linalg.norm(run["incoming_wrench"][:, run.robot.links.index("cart"), :3], axis=1)
    assert run["tau_passive"][1:, 0] == pytest.approx(-mu * load[:-1], rel=1e-12)
    assert load[-1] == pytest.approx(np.hypot(2.0 * G, push + run["tau_passive"][-1, 0]), rel=1e-12)
    held = simulate(slider(), steps=40, dt=DT, torque={"x": 3.0}, friction_coefficient={"x": mu})
    assert np.abs(held["qvel"]).max() <= 1e-13
    tilted = simulate(slider(), steps=400, dt=DT, gravity=(1.5, 0.0, -9.0), friction_coefficient={"x": mu})
    assert np.abs(tilted["qvel"]).max() <= 1e-13  # tan of the slope 1/6 < 0.2


ROTOR = """<mujoco><option gravity="0 0 {gravity}"/><worldbody><body>
  <joint name="j" axis="0 0 1" frictionloss="{constant}"/>
  <inertial pos="{arm} 0 0" mass="2" diaginertia=".01 .01 .01"/></body></worldbody></mujoco>"""
FRICTION = ("qpos", "qvel", "tau_passive", "incoming_wrench", "friction_constant", "friction_by_load")


def _spun(constant: float, mu: float, gravity: float, arm: float, speed: float, dt: float, seconds: float) -> Run:
    return simulate(
        load_text(ROTOR.format(gravity=gravity, constant=constant, arm=arm), name="rotor.xml"),
        steps=round(seconds / dt),
        dt=dt,
        v0={"j": speed},
        friction_coefficient={"j": mu},
        record=FRICTION,
    )


@pytest.mark.parametrize("speed", [90.0, -90.0])
def test_a_rotor_under_its_weight_spins_down(speed: float) -> None:
    """What its bearing carries is √((m g)² + τ²), so that τ = c + μ √((m g)² + τ²) from the third step or so on."""
    constant, mu, weight, inertia = 0.5, 0.3, 2.0 * G, 0.01
    run = _spun(constant, mu, -G, 0.0, speed, 0.001, 0.1)
    a, b = 1.0 - mu * mu, constant
    torque = (b + np.sqrt(b * b - a * (b * b - mu * mu * weight * weight))) / a
    assert torque == pytest.approx(constant + mu * np.hypot(weight, torque), rel=1e-12)
    way = np.sign(speed)
    assert run["tau_passive"][30:, 0] == pytest.approx(-way * torque, rel=1e-9)
    assert run["friction_constant"][:, 0] == pytest.approx(-way * constant, rel=1e-9)
    assert run["friction_by_load"][30:, 0] == pytest.approx(-way * (torque - constant), rel=1e-9)
    assert run.simulation.qvel[0] == pytest.approx(speed - way * torque / inertia * 0.1, abs=0.05)  # the first steps


def test_a_rotor_with_its_mass_beside_the_axis_spins_down() -> None:
    """Without weight I ω̇ = -μ √((m r ω²)² + (m r ω̇)² + (I ω̇)²), so 1/ω grows evenly; to the first order of the step."""
    mass, arm, mu, speed, errors = 2.0, 0.1, 0.05, 20.0, []
    inertia = 0.01 + mass * arm * arm
    rate = mu * mass * arm / inertia / np.sqrt(1.0 - mu * mu * (1.0 + (mass * arm / inertia) ** 2))
    for dt in (0.001, 0.0005):
        run = _spun(0.0, mu, 0.0, arm, speed, dt, 1.0)
        errors.append(abs(run.simulation.qvel[0] * (1.0 / speed + rate) - 1.0))
        load = np.linalg.norm(run["incoming_wrench"][:, run.robot.links.index(run.robot.links[-1])], axis=1)
        assert run["friction_by_load"][1:, 0] == pytest.approx(-mu * load[:-1], rel=1e-3)
        assert not np.any(run["friction_constant"])
    assert errors[1] < 4e-3
    assert errors[1] < 0.6 * errors[0]


def test_friction_that_holds_is_parted_by_its_bounds() -> None:
    """Held by less than it could: both parts in the ratio of c and μ F, and together what pulls."""
    run = simulate(
        slider(friction=3.0), steps=20, dt=DT, torque={"x": 2.0}, friction_coefficient={"x": 0.2}, record=FRICTION
    )
    load = np.linalg.norm(run["incoming_wrench"][:-1, run.robot.links.index("cart"), :3], axis=1)
    share = 3.0 / (3.0 + 0.2 * load)
    assert run["friction_constant"][1:, 0] == pytest.approx(-2.0 * share, rel=1e-9)
    assert run["friction_by_load"][1:, 0] == pytest.approx(-2.0 * (1.0 - share), rel=1e-9)


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
@pytest.mark.parametrize("steps", [pytest.param(40, marks=pytest.mark.small), 2000])
def test_position_limits(solver: str, steps: int) -> None:
    """Thrown against both ends: never beyond, pushed only inwards, untouched in between."""
    low, high = -0.05, 0.08
    text = slider(limit=(low, high))
    run = simulate(text, steps=steps, dt=DT, v0={"x": 3.0}, gravity=(-20.0, 0.0, 0.0), solver=solver)
    q, force = run["qpos"][:, 0], run["tau_limit"][:, 0]
    end = np.append(q[1:], run.simulation.qpos[0])
    assert q.min() >= low - 1e-12
    assert q.max() <= high + 1e-12
    assert np.any(force < 0)
    assert (end[force < 0] == pytest.approx(high, abs=1e-12)) and np.all(force[np.abs(end - high) > 1e-12] >= 0)
    assert np.all(force[(end > low + 1e-12) & (end < high - 1e-12)] == 0)
    if steps > 100:
        assert force[-1] == pytest.approx(40.0, rel=1e-9)  # rests on the lower limit with its weight
        assert np.abs(run["qvel"][-1]).max() <= 1e-12


@pytest.mark.parametrize(
    ("name", "torque"), [("parallel_gripper", {}), ("two_finger_gripper", {"left_driver_joint": 1.0})]
)
def test_grippers_come_to_rest_at_their_limits(name: str, torque: dict[str, float]) -> None:
    run = simulate(robot_file(name), steps=3000, dt=DT, torque=torque)
    model = run.robot.model
    assert np.all(run["qpos"] >= model.lower - 1e-12)
    assert np.all(run["qpos"] <= model.upper + 1e-12)
    assert np.any(run["tau_limit"][-1])
    assert np.abs(run["qvel"][-1]).max() <= 1e-9


@pytest.mark.parametrize("steps", [pytest.param(60, marks=pytest.mark.small), 3000])
def test_limits_of_an_arm_that_falls(steps: int) -> None:
    run = simulate(robot_file("arm7"), steps=steps, dt=DT, q0={"joint_2": 1.9, "joint_4": 2.0, "joint_6": 1.5})
    model = run.robot.model
    assert np.any(run["tau_limit"])
    beyond = max((model.lower - run["qpos"]).max(), (run["qpos"] - model.upper).max())
    print(f"\narm7 falls into its limits: worst {beyond:.1e} rad beyond")
    assert beyond <= 1e-12
    away = (run["qpos"] > model.lower + 0.5) & (run["qpos"] < model.upper - 0.5)
    assert not np.any(run["tau_limit"][away])


@pytest.mark.small
def test_velocity_limits() -> None:
    text = slider(velocity=0.5)
    run = simulate(text, steps=100, dt=0.01, torque={"x": 4.0}, velocity_limits=True)
    assert run["qvel"].max() == pytest.approx(0.5, rel=1e-12)
    assert np.all(run["tau_limit"] <= 0)
    assert run["tau_limit"][-1, 0] == pytest.approx(-4.0, rel=1e-12)
    assert run["tau_limit"][:20, 0] == pytest.approx(0, abs=0)
    free = simulate(text, steps=100, dt=0.01, torque={"x": 4.0})
    assert free["qvel"].max() == pytest.approx(2.0 * 0.99, rel=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("pull", [0.0, -5.0, 5.0, -500.0])
def test_start_outside_is_brought_back_gently(pull: float) -> None:
    """A start beyond a limit is noted; the joint comes back at its distance over 0.1 s, whatever pulls it out."""
    run = simulate(slider(limit=(0.0, 1.0)), steps=30, dt=DT, q0={"x": -0.1}, gravity=(pull, 0.0, 0.0))
    assert run["qpos"].min() == -0.1
    assert np.all(run["tau_limit"] >= 0)
    held = -0.1 * (1 - DT / 0.1) ** np.arange(30)  # ẋ = -x / 0.1 s, step by step
    assert np.all(run["qpos"][:, 0] >= held - 1e-12)
    assert run["qvel"][1, 0] == pytest.approx(1.0, rel=1e-12)
    if pull == -500.0:  # pulls harder than it would coast
        assert run["qpos"][:, 0] == pytest.approx(held, abs=1e-12)
    assert "x starts at -0.1, outside its limits [0, 1]" in run.plan.notes[0]


@pytest.mark.small
def test_equal_limits_lock() -> None:
    text = urdf(
        box_link("a", 1.0, (0, 0, -0.2)),
        box_link("b", 1.0, (0, 0, -0.2)),
        joint("first", "revolute", "base", "a", limit=(0.3, 0.3)),
        joint("second", "revolute", "a", "b", at=(0, 0, -0.4)),
    )
    run = simulate(text, steps=30, dt=DT, torque={"first": 50.0})
    assert np.all(run["qpos"][:, 0] == 0.3)
    assert not np.any(run["qvel"][:, 0])
    assert np.ptp(run["qpos"][:, 1]) > 1e-4
    assert balance(run, Truth(text, run.robot)) <= 1e-9


# Narrow limits and a stiff drive that would cross their whole range in a step.
NARROW = urdf(
    box_link("a", 0.5, (0, 0, -0.1)),
    box_link("b", 0.5, (0, 0, -0.1)),
    joint("first", "revolute", "base", "a", limit=(-0.01, 0.02), velocity=2.0),
    joint("second", "revolute", "a", "b", at=(0, 0, -0.2), limit=(-0.03, 0.01), velocity=2.0),
)


@pytest.mark.small
@pytest.mark.parametrize("pull", [20.0, -20.0])
@pytest.mark.parametrize("velocity_limits", [False, True])
def test_limits_on_the_other_side_of_a_saturated_drive(pull: float, velocity_limits: bool) -> None:
    """The drive, unlimited, would overshoot one limit; limited, it loses to the load, which the other limit holds."""
    run = simulate(
        NARROW,
        steps=60,
        dt=0.01,
        gravity=(pull, 0.0, 0.0),
        stiffness={"*": 1e6},
        drive_limit={"*": 0.05},
        target={"first": 0.5 * np.sign(pull), "second": 0.5 * np.sign(pull)},
        velocity_limits=velocity_limits,
        iterations=400,
    )
    model = run.robot.model
    assert np.any(run["tau_limit"])
    assert np.abs(np.abs(run["tau_drive"]) - 0.05).max() <= 1e-9
    ends = np.vstack([run["qpos"], run.simulation.qpos])
    assert np.all(ends >= model.lower - 1e-12)
    assert np.all(ends <= model.upper + 1e-12)
    if velocity_limits:
        assert np.abs(run["qvel"]).max() <= 2.0 + 1e-12


@pytest.mark.small
def test_a_step_at_two_limits_counts_once() -> None:
    """Thrown at its limit faster than allowed; then it swings back."""
    config: dict[str, Any] = {"q0": {"x": 0.0995}, "v0": {"x": 3.0}, "gravity": (-1.0, 0.0, 0.0)}
    run = simulate(slider(limit=(-1.0, 0.1), velocity=1.0), steps=10, velocity_limits=True, **config)
    assert run["tau_limit"][0, 0] < 0
    assert run.simulation.limit_steps == {"x": np.count_nonzero(run["tau_limit"])}


@pytest.mark.small
def test_friction_beyond_all_forces_holds() -> None:
    """A bound on the impulse, however large, is no equality: `direct` has room for couplings only."""
    run = simulate(slider(friction=9e29), steps=5, v0={"x": 1.0})
    assert np.abs(run["qvel"][1:]).max() <= 1e-15


@pytest.mark.small
def test_acceleration_drive_on_what_nothing_moves() -> None:
    """No force, where the inertia that its gains are scaled by does not exist."""
    still = {"first": (0.1, 0.1), "second": (-1.0, 1.0)}
    text = urdf(
        *(box_link(name, 1.0, (0, 0, -0.2)) for name in ("a", "b")),
        joint("first", "revolute", "base", "a", limit=still["first"]),
        joint("second", "revolute", "a", "b", at=(0, 0, -0.4), mimic=("first", 2.0, 0.0)),
        box_link("c", 1.0, (0, 0, -0.2)),
        joint("third", "revolute", "b", "c", at=(0, 0, -0.4)),
    )
    run = simulate(
        text, steps=10, dt=DT, stiffness={"first": 9.0, "second": 9.0, "third": 9.0}, drive_mode="acceleration"
    )
    assert not np.any(run["tau_drive"][:, :2])
    assert np.any(run["tau_drive"][:, 2])
    assert balance(run, Truth(text, run.robot)) <= 1e-9


@pytest.mark.small
def test_computed_torque_asks_nothing_of_the_base() -> None:
    """What no motor moves has no target: the joints' torques do not grow with the way the base has fallen."""
    config: dict[str, Any] = {"steps": 3, "base": "floating", "controller": "computed-torque"}
    model = robot_file("quadruped")
    low, high = (simulate(model, target={"root.vx": x}, **config)["tau_applied"] for x in (0.0, 5.0))
    assert np.any(low)
    assert np.array_equal(low, high)
