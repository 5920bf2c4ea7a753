"""Loops as full joints: against the same mechanism cut elsewhere, closed forms, Newton and Euler, MuJoCo."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.loops import with_loops
from artsim.sim.articulation.description import LOOP_AXES, Articulation, Loop, Pose
from artsim.sim.constraints.kinds import LOOP_ROW
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.cli.test_cli_run import good, refused
from tests.constraints.test_hinges_and_springs import BODY, TWO
from tests.equipment.equipment_kernels import Bench
from tests.equipment.wrench_balance import RECORD as BALANCE
from tests.equipment.wrench_balance import imbalance
from tests.simulation import Run, simulate

G = 9.81
AXIS = (0.6, 0.0, 0.8)
OWN = ("qpos", "qvel", "tendon_length", "tendon_velocity", "tendon_force", "actuator_force", "loop_wrench")


def table(kind: str, body: str = "", **keys: Any) -> str:
    """A [[loop]] and what follows it."""
    values = {"kind": kind, "name": "l"} | keys
    lines = ["[[loop]]", *(f"{key} = {value!r}".replace("'", '"') for key, value in values.items())]
    return "\n".join([*lines, body, ""])


# --- one body, on a joint of the tree or of a loop -------------------------------------------------------------------

KINDS = {"slider": ("prismatic", "z", "v"), "hinge": ("revolute", "rz", "w")}


def on_tree(kind: str, *, lower: float = -9, upper: float = 9, dynamics: str = "", **config: Any) -> Run:
    """The body on a joint of the tree that starts at 1 m/s or rad/s."""
    text = (
        f'<robot name="r"><link name="base"/>{BODY.format("body", "0.3 0.1 0.2")}<joint name="j" '
        f'type="{KINDS[kind][0]}"><parent link="base"/><child link="body"/><axis xyz="0.6 0 0.8"/>'
        f'<limit lower="{lower}" upper="{upper}" effort="1e9" velocity="1e9"/>{dynamics}</joint></robot>'
    )
    record = ("qpos", "qvel", "tau_drive", "tau_limit", "tau_passive", "incoming_wrench")
    return simulate(text, v0={"j": 1.0}, record=record, **config)


def on_loop(kind: str, body: str = "", **config: Any) -> Run:
    """The same body, free but for a loop."""
    _, axis, rate = KINDS[kind]
    robot = load_text(f'<robot name="r">{BODY.format("body", "0.3 0.1 0.2")}</robot>', name="r.urdf", base="floating")
    text = table(kind, f"[loop.{axis}]\n{body}", link_a="world", link_b="body", axis_a=list(AXIS))
    start = {f"root.{rate}{name}": part for name, part in zip("xyz", AXIS, strict=True)}
    return simulate(with_loops(robot, text, file="l"), base="floating", v0=start, record=OWN, **config)


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "limit": ({"upper": 0.02}, "upper = 0.02"),
    "friction": ({"dynamics": '<dynamics friction="0.5"/>'}, "friction = 0.5"),
    "drive": (
        {"stiffness": {"j": 2000.0}, "damping": {"j": 30.0}, "target": {"j": 0.1}},
        "drive = { stiffness = 2000.0, damping = 30.0, target = 0.1 }",
    ),
    "velocity": (
        {"damping": {"j": 30.0}, "target_velocity": {"j": 2.0}},
        "drive = { damping = 30.0, velocity = 2.0 }",
    ),
    "bounded": (
        {"stiffness": {"j": 2000.0}, "damping": {"j": 30.0}, "target": {"j": 0.1}, "drive_limit": {"j": 20.0}},
        "drive = { stiffness = 2000.0, damping = 30.0, target = 0.1, max_force = 20.0 }",
    ),
    "acceleration": (
        {"stiffness": {"j": 400.0}, "damping": {"j": 30.0}, "target": {"j": 0.1}, "drive_mode": "acceleration"},
        'drive = { stiffness = 400.0, damping = 30.0, target = 0.1, mode = "acceleration" }',
    ),
    "bounded acceleration": (
        {
            "stiffness": {"j": 4e4},
            "damping": {"j": 400.0},
            "target": {"j": 1.0},
            "drive_mode": "acceleration",
            "drive_limit": {"j": 1.5},
        },
        'drive = { stiffness = 40000.0, damping = 400.0, target = 1.0, mode = "acceleration", max_force = 1.5 }',
    ),
}


def differences(kind: str, case: str, dt: float) -> tuple[float, float, float]:
    """The largest difference of coordinate, velocity and force of the axis over 0.12 s, and the largest force."""
    options, body = CASES[case]
    steps = round(0.12 / dt)
    tree, loop = on_tree(kind, steps=steps, dt=dt, **options), on_loop(kind, body, steps=steps, dt=dt)
    q = np.abs(loop["tendon_length"][:, 0] - tree["qpos"][:, 0]).max()
    v = np.abs(loop["tendon_velocity"][:, 0] - tree["qvel"][:, 0]).max()
    force = (tree["tau_drive"] + tree["tau_limit"] + (tree["tau_passive"] if case == "friction" else 0.0))[:, 0]
    assert case == "nothing" or np.abs(force).max() > 0.4
    return float(q), float(v), float(np.abs(loop["tendon_force"][:, 0] - force).max())


@pytest.mark.parametrize("case", CASES)
def test_a_body_on_a_sliding_loop_moves_as_on_a_joint(case: str) -> None:
    """Lines that do not turn: to rounding, but for the yield of the rows (2e-6 of a mobility)."""
    q, v, force = differences("slider", case, 1e-3)
    assert q < 2e-9
    assert v < 2e-7
    assert force < 1e-4 if case != "limit" else 1e-3


@pytest.mark.parametrize("case", CASES)
def test_a_body_on_a_turning_loop_moves_as_on_a_joint(case: str) -> None:
    """A line that turns within a step: the difference vanishes with the step, in first order or better."""
    coarse, fine = (differences("hinge", case, dt) for dt in (2e-3, 2.5e-4))
    assert coarse[0] < 2e-5
    assert fine[0] < max(coarse[0] / 6, 5e-8)  # the yield of the rows
    assert fine[1] < max(coarse[1] / 4, 1e-5)
    assert fine[2] < max(coarse[2] / 4, 1e-3) or case == "limit"  # an impact is an impulse of its own step


def test_damping_of_a_loop_is_that_of_a_joint_in_first_order() -> None:
    """A damper of a tendon acts at the step's start, one of a joint at its end."""
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        steps = round(0.12 / dt)
        tree = on_tree("slider", steps=steps, dt=dt, dynamics='<dynamics damping="8"/>')
        loop = on_loop("slider", "damping = 8.0", steps=steps, dt=dt)
        errors.append(np.abs(loop["tendon_length"][:, 0] - tree["qpos"][:, 0]).max())
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.05)
    assert errors[2] / errors[1] == pytest.approx(0.5, abs=0.05)


def test_the_wrench_of_a_slider_is_that_of_a_joint_of_the_tree() -> None:
    """At a point of the world, whatever the distance slid; without the force along the axis, which is the drive's."""
    options, body = CASES["drive"]
    tree, loop = on_tree("slider", steps=200, dt=1e-3, **options), on_loop("slider", body, steps=200, dt=1e-3)
    incoming = tree["incoming_wrench"][:, 1]  # at the body's origin, with the drive's force
    axis = np.array(AXIS)
    force = incoming[:, :3] - np.outer(incoming[:, :3] @ axis, axis)
    torque = incoming[:, 3:] + np.cross(np.outer(tree["qpos"][:, 0], axis), force)
    wanted = -np.hstack([force, torque])  # on the world, at the loop's point there
    np.testing.assert_allclose(loop["loop_wrench"][:, 0], wanted, rtol=0, atol=2e-4)
    assert np.abs(wanted).max() > 10


@pytest.mark.parametrize("damping", [0.0, 30.0])
def test_a_soft_limit_is_a_spring_that_never_pulls(damping: float) -> None:
    """A body falls onto it: k (x - x0) at rest; where it bounces, energy comes back and no more."""
    robot = load_text(f'<robot name="r">{BODY.format("body", "0 0 0")}</robot>', name="r.urdf", base="floating")
    soft = f"[loop.z]\nlower = -0.05\nlimit_stiffness = 800.0\nlimit_damping = {damping}"
    text = table("slider", soft, link_a="world", link_b="body", axis_a=[0.0, 0.0, 1.0])
    run = simulate(with_loops(robot, text, file="l"), base="floating", steps=8000, dt=5e-4, record=OWN)
    z, force = run["tendon_length"][:, 0], run["tendon_force"][:, 0]
    assert np.all(force >= 0.0)
    beyond = z[1:] < -0.05
    wanted = 800 * (-0.05 - z[1:]) - damping * run["tendon_velocity"][1:, 0]  # rows hold the state before the step
    wanted = np.where(beyond, wanted, 0.0)
    held = (force[:-1] > 0) & (wanted > 0)
    assert held.sum() > 100
    np.testing.assert_allclose(force[:-1][held], wanted[held], rtol=1e-3, atol=0.05 * 2 * G)
    if damping:
        assert z[-1] == pytest.approx(-0.05 - 2 * G / 800, rel=2e-3)
    else:
        fallen = 0.05 + (G + np.sqrt(G * G + 2 * G * 0.05 * 400)) / 400  # ½ k x² = m g (0.05 + x), k / m = 400
        assert z[:800].min() == pytest.approx(-fallen, rel=0.02)
        assert z.max() < 2.5e-5 * fallen  # h² k / 4 m, by where in a step it is met


# --- mechanisms, cut elsewhere ---------------------------------------------------------------------------------------

CRANK = '<joint name="crank" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 1 0"/></joint>'
ROD = (
    '<joint name="rod" type="continuous"><parent link="crank"/><child link="rod"/>'
    '<origin xyz="0.2 0 0"/><axis xyz="0 1 0"/></joint>'
)
ACROSS, ALONG = 0.2, 0.5  # lengths of crank and rod
START = 0.6  # [rad] of the crank
ROD_START = START + float(np.arcsin(ACROSS * np.sin(START) / ALONG))  # back by this the rod ends on the line
REACH = ACROSS * float(np.cos(START)) + float(np.sqrt(ALONG**2 - (ACROSS * np.sin(START)) ** 2))


def links() -> str:
    parts = [BODY.format(name, "0.1 0 0") for name in ("crank", "rod")] + [BODY.format("cart", "0 0 0")]
    return '<link name="base"/>' + "".join(parts)


def cut_at_pin(of_slide: str = "", **config: Any) -> Run:
    """The slider-crank with the cart on a joint of the tree, and the pin between rod and cart as the loop."""
    joint = (
        f'<joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><origin xyz="{REACH!r} 0 0"/>'
        f'<axis xyz="1 0 0"/>{of_slide}</joint>'
    )
    robot = load_text(f'<robot name="r">{links()}{CRANK}{ROD}{joint}</robot>', name="r.urdf")
    text = table(
        "hinge",
        "[loop.rz]",
        link_a="rod",
        link_b="cart",
        point_a=[ALONG, 0, 0],
        point_b=[0, 0, 0],
        axis_a=[0, 1, 0],
        axis_b=[0, 1, 0],
    )
    record = ("qpos", "qvel", "tau_drive", "tau_limit", "tau_passive", "tendon_length", "incoming_wrench")
    start = {"crank": START, "rod": -ROD_START}
    return simulate(with_loops(robot, text, file="l"), q0=start, record=record, **config)


def cut_at_slide(of_slide: str = "", of_pin: str = "", **config: Any) -> Run:
    """The same with the cart on the rod, and the slide as the loop."""
    joint = (
        f'<joint name="pin" type="continuous"><parent link="rod"/><child link="cart"/><origin xyz="{ALONG} 0 0"/>'
        f'<axis xyz="0 1 0"/>{of_pin}</joint>'
    )
    robot = load_text(f'<robot name="r">{links()}{CRANK}{ROD}{joint}</robot>', name="r.urdf")
    ends = {"point_a": [REACH, 0, 0], "point_b": [0, 0, 0], "axis_a": [1, 0, 0], "axis_b": [1, 0, 0]}
    text = table("slider", f"[loop.z]\n{of_slide}", link_a="base", link_b="cart", **ends)
    start = {"crank": START, "rod": -ROD_START, "pin": ROD_START - START}
    return simulate(with_loops(robot, text, file="l"), q0=start, record=(*OWN, "tau_passive"), **config)


LIMIT = '<limit lower="{}" upper="{}" effort="1e9" velocity="1e9"/>'
FAR = LIMIT.format(-9, 9)
EXCHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"of_slide": FAR}, ""),
    "limit": ({"of_slide": LIMIT.format(-0.05, 9)}, "lower = -0.05"),
    "friction": ({"of_slide": FAR + '<dynamics friction="3"/>'}, "friction = 3.0"),
    "drive": (
        {"of_slide": FAR, "stiffness": {"slide": 900.0}, "damping": {"slide": 40.0}, "target": {"slide": -0.1}},
        "drive = { stiffness = 900.0, damping = 40.0, target = -0.1 }",
    ),
    "bounded": (
        {
            "of_slide": FAR,
            "stiffness": {"slide": 900.0},
            "damping": {"slide": 40.0},
            "target": {"slide": -0.1},
            "drive_limit": {"slide": 25.0},
        },
        "drive = { stiffness = 900.0, damping = 40.0, target = -0.1, max_force = 25.0 }",
    ),
}


@pytest.mark.parametrize("case", EXCHANGED)
def test_joint_and_loop_exchanged(case: str) -> None:
    """A slider-crank swings for 0.4 s: coordinates, forces of the slide along and across, whichever joint is the cut.

    The two differ in what they know exactly, the slide or the pin, by O(h) of the step's curvature.
    """
    options, body = EXCHANGED[case]
    errors = []
    for dt in (1e-3, 2.5e-4):
        steps = round(0.4 / dt)
        tree, loop = cut_at_pin(steps=steps, dt=dt, **options), cut_at_slide(body, steps=steps, dt=dt)
        every = round(1e-3 / dt)
        np.testing.assert_allclose(tree["tendon_length"][0, 0], loop["qpos"][0, 2], rtol=0, atol=1e-12)
        pairs = {
            "slide": (loop["tendon_length"][::every, 0], tree["qpos"][::every, 2]),
            "pin": (loop["qpos"][::every, 2], tree["tendon_length"][::every, 0]),
            "crank": (loop["qpos"][::every, 0], tree["qpos"][::every, 0]),
        }
        worst = {name: float(np.abs(a - b).max()) for name, (a, b) in pairs.items()}
        force = (tree["tau_drive"] + tree["tau_limit"] + tree["tau_passive"] * (case == "friction"))[:, 2]
        own = loop["tendon_force"][:, 0]
        worst["impulse"] = float(np.abs(np.sum(own - force)) * dt)  # an impact has other shares in two steps
        across = tree["incoming_wrench"][::every, 3, 2] + loop["loop_wrench"][::every, 0, 2]
        worst["across"] = float(np.median(np.abs(across)))
        worst["scale"] = float(np.abs(tree["incoming_wrench"][:, 3, 2]).max())
        errors.append(worst)
        assert case == "nothing" or np.abs(force).max() > 2.5
    assert np.ptp(tree["qpos"][:, 0]) > 0.5 or case in ("drive", "limit")
    coarse, fine = errors
    for name in ("slide", "pin", "crank"):
        assert coarse[name] < 1e-3, (name, coarse[name])
        assert fine[name] == pytest.approx(coarse[name] / 4, rel=0.15, abs=1e-6), (name, errors)
    assert fine["across"] < 1e-3 * fine["scale"]
    assert fine["impulse"] < 5e-4 * max(1.0, np.abs(force).sum() * 2.5e-4)


# --- any set of axes -------------------------------------------------------------------------------------------------

SETS = [free for n in range(1, 6) for free in itertools.combinations(LOOP_AXES, n)]


def test_every_set_of_axes_holds_and_frees_what_it_says() -> None:
    """A ball of unit inertia drifts along free axes at its speed and stays at 0 along held ones, in skew frames."""
    inertia = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
    text = (
        f'<robot name="r"><link name="body"><inertial><mass value="1"/><inertia {inertia}/></inertial></link></robot>'
    )
    robot = load_text(text, name="r.urdf", base="floating")
    turn = np.array([0.3, -0.4, 0.5])
    for free in SETS:
        said = "\n".join(f"[loop.{axis}]" for axis in free)
        loop = table("joint", said, free=list(free), link_a="world", link_b="body", rpy_a=turn.tolist())
        looped = with_loops(robot, loop, file="l")
        w, x, y, z = looped.loops[0].frame_a.rotation
        frame = np.zeros(9)
        mujoco.mju_quat2Mat(frame, np.array([w, x, y, z]))
        frame = frame.reshape(3, 3)
        rates = np.array([0.5 * (axis in free) for axis in LOOP_AXES]) * [1, -0.7, 0.4, 0.6, -1, 0.8]
        world = np.concatenate([frame @ rates[:3], frame @ rates[3:]])
        names = ("vx", "vy", "vz", "wx", "wy", "wz")
        start = {f"root.{name}": float(value) for name, value in zip(names, world, strict=True)}
        run = simulate(looped, base="floating", gravity=(0, 0, 0), steps=100, dt=1e-3, v0=start, record=OWN)
        assert run["loop_wrench"].shape[1] == 1
        moved = frame.T @ run["qpos"][-1, :3]
        turned = frame.T @ run["qpos"][-1, 4:] * 2.0  # half-angle sines, near enough angles
        np.testing.assert_allclose(moved, rates[:3] * 0.099, rtol=0, atol=1e-9, err_msg=str(free))
        turning = [axis for axis in free if axis.startswith("r")]
        if len(turning) != 2:
            np.testing.assert_allclose(turned, rates[3:] * 0.099, rtol=0, atol=2e-5, err_msg=str(free))
        for axis, value in zip(LOOP_AXES[3:], turned, strict=True):
            if axis not in free:
                assert abs(value) < 1e-7, (free, axis)
        for axis, length in zip([axis for axis in LOOP_AXES if axis in free], run["tendon_length"][-1], strict=True):
            k = LOOP_AXES.index(axis)
            assert length == pytest.approx(rates[k] * 0.099, abs=2e-4 if k > 2 else 1e-9), (free, axis)


def bench_of(loop: Loop) -> Bench:
    robot = load_text(TWO, name="two.xml")
    return Bench(plan_run(replace(robot, loops=(loop,)), RunConfig()))


def test_lines_of_a_loop_joint_are_those_of_connect_and_weld_turned() -> None:
    """MuJoCo's connect and weld are checked elsewhere: in frame a's axes, where closed, the lines are the same."""
    frames = Pose((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, 0.5)), Pose((0.0, 0.1, 0.0), (0.8, 0.0, 0.6, 0.0))
    weld = bench_of(Loop("l", "weld", "a", "c", *frames))
    rng = np.random.default_rng(4)
    for free in SETS:
        joint = bench_of(Loop("l", "joint", "a", "c", *frames, free=free))
        q = rng.normal(size=8)
        q[4:] /= np.linalg.norm(q[4:])
        for bench in (weld, joint):
            bench.evaluate(q)
        held = [k for k, axis in enumerate(LOOP_AXES) if axis not in free]
        assert joint.jacobian(LOOP_ROW).shape == (len(held), 7)
        turns, slides = [k for k in held if k > 2], [k for k in held if k < 3]
        lines = joint.jacobian(LOOP_ROW)
        np.testing.assert_allclose(lines[len(slides) :], weld.jacobian(LOOP_ROW)[turns], rtol=0, atol=1e-12)
        e = joint.plan.equipped.arrays  # type: ignore[union-attr]
        frame = joint.work.rotation[e.loop_body[0, 0]] @ e.loop_rotation[0]
        apart = frame.T @ weld.equipment.loop_error[0, :3]
        np.testing.assert_allclose(joint.equipment.loop_error[0, slides], apart[slides], rtol=0, atol=1e-12)
        assert not joint.equipment.loop_error[0, [LOOP_AXES.index(axis) for axis in free]].any()


def test_lines_are_rates_of_their_errors() -> None:
    """J v = Ċ by central differences, for open loops in any pose; and the coordinates' moments likewise."""
    frames = Pose((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, 0.5)), Pose((0.0, 0.1, 0.0), (0.8, 0.0, 0.6, 0.0))
    loop = Loop("l", "joint", "a", "c", *frames, torque_scale=0.7, free=("ry",))
    robot = replace(load_text(TWO, name="two.xml"), loops=(loop,))
    from artsim.loaders.loop_motion import Motion, parts_of

    tendons, _ = parts_of("l", ("ry", "z"), dict.fromkeys(LOOP_AXES, Motion()), loop.source)
    bench = Bench(plan_run(replace(robot, tendons=tuple(tendons)), RunConfig()))
    rng = np.random.default_rng(7)
    step = 1e-6
    for _ in range(4):
        q, v = rng.normal(size=8), rng.normal(size=7)
        q[4:] /= np.linalg.norm(q[4:])
        errors, lengths = [], []
        for sign in (-1, 1):
            bench.evaluate(moved(q, v, sign * step))
            errors.append(bench.equipment.loop_error[0].copy())
            lengths.append(bench.equipment.tendon_length.copy())
        bench.evaluate(q)
        rate = (errors[1] - errors[0]) / (2 * step)
        np.testing.assert_allclose(bench.jacobian(LOOP_ROW) @ v, rate[[0, 1, 2, 3, 5]], rtol=0, atol=1e-7)
        J = np.zeros((6, 7))
        e = bench.plan.equipped.arrays  # type: ignore[union-attr]
        for t in range(6):
            for entry in range(e.tendon_entry[t], e.tendon_entry[t + 1]):
                J[t, e.tendon_dof[entry]] = bench.equipment.tendon_moment[entry]
        np.testing.assert_allclose(J @ v, (lengths[1] - lengths[0]) / (2 * step), rtol=0, atol=1e-6)


def moved(q: Any, v: Any, h: float) -> Any:
    """q moved by v for h: a hinge and a free joint, whose angular velocity is in the world's or the body's axes."""
    model = mujoco.MjModel.from_xml_string(TWO)
    out = q.copy()
    mujoco.mj_integratePos(model, out, v, h)
    return out


# --- links as free bodies --------------------------------------------------------------------------------------------

ARMS = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 .5"><joint axis="0 1 .1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
    <body name="b" pos=".3 0 0"><joint type="ball"/><geom type="box" size=".1 .03 .02" pos=".1 0 0"/></body></body>
  <body name="c" pos=".5 .1 .6" euler=".2 .1 .3"><freejoint/><geom type="box" size=".05 .06 .07" pos=".02 0 0"/></body>
</worldbody></mujoco>"""
DRIVEN = "drive = { stiffness = 300.0, damping = 5.0, target = 0.2, max_force = 40.0 }\nfriction = 0.2\nupper = 0.3"


@pytest.mark.parametrize(
    ("kind", "axes", "more"),
    [
        ("slider", ("z",), {"axis_a": [1.0, 0.2, 0.0]}),
        ("cylindrical", ("z", "rz"), {"axis_a": [1.0, 0.2, 0.0]}),
        ("planar", ("x", "y", "rz"), {"axis_a": [0.0, 0.2, 1.0]}),
        ("connect", ("rx", "ry", "rz"), {}),
        ("joint", ("x", "ry", "rz"), {"free": ["x", "ry", "rz"]}),
    ],
)
def test_every_link_is_moved_by_what_acts_on_it(tmp_path: Path, kind: str, axes: tuple[str, ...], more: Any) -> None:
    """Newton and Euler for all links, with MuJoCo's accelerations: forces along and across the axes are all booked."""
    (tmp_path / "arms.xml").write_text(ARMS)
    text = table(kind, "\n".join(f"[loop.{axis}]\n{DRIVEN}" for axis in axes), link_a="b", link_b="c", **more)
    robot = with_loops(load_articulation(tmp_path / "arms.xml"), text, file="l")
    record = (*BALANCE, "tendon_force", "actuator_force", "loop_wrench")
    run = simulate(robot, steps=60, v0={"c.vx": 0.4, "c.wy": 1.0}, record=record)
    model = mujoco.MjModel.from_xml_string(ARMS)
    for row in (0, 1, 30, 59):
        assert imbalance(model, run.rows, row) < 1e-9
    assert np.abs(run["actuator_force"]).max(axis=0).min() > 0.1
    assert np.abs(run["loop_wrench"]).max() > 1


# --- inputs and words ------------------------------------------------------------------------------------------------

GUIDED = (
    f'<robot name="r">{links()}{CRANK}{ROD}<joint name="pin" type="continuous"><parent link="rod"/>'
    f'<child link="cart"/><origin xyz="{ALONG} 0 0"/><axis xyz="0 1 0"/></joint>'
    f'<loop_joint name="guide" type="prismatic"><link1 link="base" xyz="{REACH!r} 0 0"/><link2 link="cart"/>'
    '<axis xyz="1 0 0"/><limit lower="-0.2" upper="0.1" effort="50"/><dynamics friction="0.1" damping="0.2"/>'
    '<drive stiffness="500" damping="20" target="-0.03"/></loop_joint></robot>'
)
Q0 = ("--q0", f"crank={START}", "--q0", f"rod={-ROD_START}", "--q0", f"pin={ROD_START - START}")


def test_a_loop_joint_of_a_urdf_says_what_a_file_says() -> None:
    urdf = load_text(GUIDED, name="r.urdf")
    said = (
        "[loop.z]\nlower = -0.2\nupper = 0.1\nfriction = 0.1\ndamping = 0.2\n"
        "drive = { stiffness = 500, damping = 20, target = -0.03, max_force = 50 }"
    )
    ends = {"point_a": [REACH, 0, 0], "point_b": [0, 0, 0], "axis_a": [1, 0, 0], "axis_b": [1, 0, 0]}
    text = table("slider", said, link_a="base", link_b="cart", **ends | {"name": "guide"})
    bare = GUIDED[: GUIDED.index("<loop_joint")] + "</robot>"
    filed = with_loops(load_text(bare, name="r.urdf"), text, file="l")

    def plain(robot: Articulation) -> list[Any]:
        return [
            [replace(item, source=robot.source) for item in items]
            for items in (robot.loops, robot.tendons, robot.actuators)
        ]

    assert plain(urdf) == plain(replace(filed, path=urdf.path))
    for kind, free in (("cylindrical", "z rz"), ("planar", "x y rz")):
        text = GUIDED.replace('type="prismatic"', f'type="{kind}"').replace("<limit", '<limit axis="rz"')
        text = text.replace("<drive", '<drive axis="rz"').replace("<dynamics", '<dynamics axis="rz"')
        assert load_text(text, name="r").loops[0].free == tuple(free.split())
        assert load_text(text, name="r").actuators[0].name == "guide.rz"


def test_targets_from_the_command_line_and_from_a_file(tmp_path: Path) -> None:
    model, table_of, output = tmp_path / "g.urdf", tmp_path / "c.csv", tmp_path / "r.h5"
    model.write_text(GUIDED)
    table_of.write_text("time,guide.target\n0,-0.05\n0.2,-0.1\n")
    run = ("run", model, *Q0, "--steps", "4000", "--gravity", "0,0,0", "-o", output, "--force")
    for given, wanted in (((), -0.03), (("--target", "guide=-0.05"), -0.05), (("--control", table_of), -0.1)):
        good(*run, *given, "--record", "+tendon_length")
        with artsim.open(output) as recording:
            assert recording.labels.tendon == ("guide",)
            assert recording["tendon_length"][-1, 0] == pytest.approx(wanted, abs=2e-3)
        assert "every byte equal" in good("replay", "--verify", output).stdout
    moving = good(*run, "--target-velocity", "guide=0.1", "--json")
    assert moving.returncode == 0
    assert "did you mean 'guide'" in refused(2, *run, "--target", "guid=0.1")
    assert "maximal has nothing for loop 'guide', which is a joint" in refused(2, *run, "--coordinates", "maximal")
    both = ("--target", "guide=-0.05", "--control", "guide.target=-0.05")
    assert "'guide' is given as control guide.target too" in refused(2, *run, *both)


def test_rk4_has_no_acceleration_drives() -> None:
    robot = load_text(GUIDED.replace('target="-0.03"', 'mode="acceleration"'), name="r")
    loose = replace(robot, tendons=tuple(replace(t, friction=0.0, lower=None, upper=None) for t in robot.tendons))
    with pytest.raises(UsageError, match="'rk4' has no acceleration drive of loop 'guide'"):
        plan_run(loose, RunConfig(integrator="rk4", contacts=False))


@pytest.mark.parametrize("solver", ["pgs", "propagation", "direct", "brute"])
def test_other_solvers_drive_the_same_loop(solver: str) -> None:
    text = GUIDED.replace('stiffness="500" damping="20"', 'stiffness="60" damping="4" mode="acceleration"')
    start = {"crank": START, "rod": -ROD_START, "pin": ROD_START - START}
    config: dict[str, Any] = {"q0": start, "steps": 60, "dt": 1e-3, "record": ("qpos", "actuator_force")}
    if solver == "pgs":
        config["integrator"] = "semi-implicit-euler"
    runs = [simulate(text, solver=name, iterations=400, **config) for name in ("newton", solver)]
    close = 1e-5 if solver == "pgs" else 1e-9
    np.testing.assert_allclose(runs[1]["qpos"], runs[0]["qpos"], rtol=0, atol=close)
    assert np.abs(runs[0]["actuator_force"]).max() > 1.0


def test_rk4_holds_a_line_that_moves() -> None:
    """The slide between two links or the pin as the loop: RK4 does not see the difference."""
    tree = cut_at_pin(FAR, steps=100, dt=2e-3, integrator="rk4")
    loop = cut_at_slide("", steps=100, dt=2e-3, integrator="rk4")
    np.testing.assert_allclose(loop["tendon_length"][:, 0], tree["qpos"][:, 2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(loop["qpos"][:, 0], tree["qpos"][:, 0], rtol=0, atol=1e-6)
    assert np.ptp(tree["qpos"][:, 0]) > 0.3


RAGDOLL = f'<robot name="r">{BODY.format("torso", "0 0 0.1")}' + "".join(
    f'{BODY.format(side, "0.2 0 0")}<joint name="{side}_arm" type="continuous"><parent link="torso"/>'
    f'<child link="{side}"/><origin xyz="0 {y} 0" rpy="0 0 {turn}"/><axis xyz="0 0 1"/></joint>'
    for side, y, turn in (("left", 0.2, -0.3), ("right", -0.2, 0.3))
)


@pytest.mark.parametrize("rope", [False, True])
def test_what_ties_two_hands_gives_no_momentum(rope: bool) -> None:
    """A floating ragdoll at rest: a driven pin that slides, or a taut rope, between its hands."""
    robot = load_text(RAGDOLL + "</robot>", name="r.urdf", base="floating")
    hands = {"link_a": "left", "link_b": "right", "point_a": [0.4, 0, 0]}
    if rope:
        text = table("distance", f"upper = {0.4 - 0.8 * np.sin(0.3)}\n", point_b=[0.4, 0, 0], **hands)
    else:
        drive = "drive = { stiffness = 200.0, damping = 5.0, target = 0.1 }\nfriction = 0.3"
        text = table("joint", f"[loop.x]\n{drive}\n[loop.rz]\nfriction = 0.02", free=["x", "rz"], **hands)
    h = 1e-5
    run = simulate(
        with_loops(robot, text, file="l"),
        base="floating",
        gravity=(0, 0, 0),
        steps=3,
        dt=h,
        torque={"left_arm": 5.0} if rope else {},
        record=("momentum", "tendon_force", "qvel"),
    )
    impulse = h * np.abs(run["tendon_force"]).max()
    assert impulse > 5 * h
    assert np.abs(run["qvel"][1:]).max() > impulse
    np.testing.assert_allclose(run["momentum"], 0.0, rtol=0, atol=1e-6 * impulse)
