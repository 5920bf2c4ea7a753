"""Spheres on the ground: contacts and rows beside MuJoCo's Jacobians, closed forms of friction, forces that add up."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.simulate import Simulation
from tests.contact.contact_kernels import Bench
from tests.simulation import FORCES, ROBOTS, Array, Run, box_link, load, relative, simulate, slider

DT = 1 / 240
G = 9.81
RECORD = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "incoming_wrench", *FORCES, "tau_contact")

# --- rows ------------------------------------------------------------------------------------------------------------

TREE = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="1 2 3" euler=".3 .4 .5"><freejoint name="a"/><geom name="a" size=".3" pos=".1 .2 .3" contype="0"/>
    <body name="b" pos="0 .3 0"><joint name="b1" axis="1 2 3" ref=".2"/><joint name="b2" type="slide" axis="0 1 1"/>
      <geom type="box" size=".1 .1 .1" contype="0" conaffinity="0"/>
      <body name="c" pos=".4 0 .1" euler="0 .7 0"><joint name="c" type="ball"/>
        <geom name="c" size=".2" pos="0 .1 .5" friction=".4 .1 .1" contype="0"/></body></body></body>
  <body name="d" pos="-1 0 1"><joint name="d" axis="0 1 0"/>
    <geom name="d" size=".1" pos=".5 0 0" friction="1.5" contype="0"/></body>
</worldbody>{}</mujoco>"""
COUPLED = '<equality><joint joint1="d" joint2="b1" polycoef=".1 .7 .3 0 0"/></equality>'
SPHERES = ("a", "c", "d")


def tree_plan(more: str = "", **config: Any) -> Plan:
    given: dict[str, Any] = {"ground": True, "ground_height": 0.3, "ground_friction": 0.5, "dt": DT}
    return plan_run(load_text(TREE.format(more), name="model.xml"), RunConfig(**(given | config)))


@pytest.mark.small
def test_points_and_jacobians_are_mujoco_s() -> None:
    bench = Bench(tree_plan())
    model = mujoco.MjModel.from_xml_string(TREE.format(""))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    radius = [model.geom(name).size[0] for name in SPHERES]
    for _ in range(4):
        data.qpos[:] = rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        bench.evaluate(data.qpos, rng.normal(size=model.nv))
        r, t = bench.rows, bench.contacts
        want = []
        for n, name in enumerate(SPHERES):
            lowest = data.geom(name).xpos - [0, 0, radius[n]]
            middle = np.array([*lowest[:2], (lowest[2] + 0.3) / 2])
            J = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, J, None, middle, model.geom(name).bodyid[0])
            want += [J[2], J[1], -J[0]]  # normal z, tangents y and -x
            assert t.gap[n] == pytest.approx(lowest[2] - 0.3, abs=1e-14)
            assert t.point[n] == pytest.approx(middle, abs=1e-14)
        assert np.abs(bench.jacobian() - want).max() <= 1e-13
        assert list(r.kind[:9]) == [CONTACT_ROW] * 9
        assert list(r.cone[:9]) == [3, -1, -1] * 3
        assert list(r.slope[:9:3]) == [1.0, 0.5, 1.5]  # the larger of the ground's and the sphere's


@pytest.mark.small
@pytest.mark.parametrize("more", ["", COUPLED], ids=["free", "coupled"])
def test_drift_is_the_gap_s_second_derivative(more: str) -> None:
    """At constant independent velocities, by differences of MuJoCo's positions; a follower moves by its polynomial."""
    plan = tree_plan(more)
    bench = Bench(plan)
    model = mujoco.MjModel.from_xml_string(TREE.format(more))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(4)
    start, speed, leader, follower = rng.normal(size=model.nq), rng.normal(size=model.nv), 7, 13
    mujoco.mj_normalizeQuat(model, start)

    def gaps(time: float) -> Array:
        q = start.copy()
        mujoco.mj_integratePos(model, q, speed, time)
        if more:
            x = q[leader] - 0.2  # from the pose of the file
            q[follower] = 0.1 + 0.7 * x + 0.3 * x * x
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        return np.array([data.geom(name).xpos[2] - model.geom(name).size[0] - 0.3 for name in SPHERES])

    small = 1e-4
    before, now, after = gaps(-small), gaps(0.0), gaps(small)
    bench.evaluate(start, speed)
    n = bench.contacts.number[0]
    assert bench.contacts.gap[:n] == pytest.approx(now, abs=1e-13)
    assert bench.contacts.drift[:n] == pytest.approx((after - 2 * now + before) / small**2, abs=1e-6)
    assert np.abs(bench.contacts.drift).max() > 0.1


# --- what takes part -------------------------------------------------------------------------------------------------


BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
MASS = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (slider(), "it has no collision geometry"),
        (
            f'<robot name="r"><link name="b">{MASS}{BOX}</link></robot>',
            "it has no collision geometry that moves; --base floating frees its root",
        ),
        (
            '<mujoco><worldbody><body><geom size="1"/></body></worldbody></mujoco>',
            "it has no collision geometry that moves; a <freejoint> frees a body",
        ),
        (
            '<mujoco><worldbody><body><joint/><geom size="1" contype="0" conaffinity="2"/></body></worldbody></mujoco>',
            "its file lets none of its collision geometry that moves touch it",
        ),
    ],
)
def test_what_does_not_touch_is_told(text: str, why: str) -> None:
    plan = plan_run(load_text(text, name="model"), RunConfig(ground=True))
    assert plan.touching is None
    assert f"nothing of this robot touches the ground: {why}" in plan.notes
    assert "tau_contact" not in plan.config.record


@pytest.mark.small
def test_a_ground_without_contacts_is_told() -> None:
    plan = plan_run(load_text(TREE.format(""), name="model.xml"), RunConfig(ground=True, contacts=False))
    assert plan.touching is None
    assert plan.notes == ("the ground is left out, as all contacts are",)


@pytest.mark.small
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ground": True, "integrator": "rk4"}, "'rk4' has no inequality rows, which --ground needs"),
        ({"ground": True, "ground_friction": -0.1}, "ground_friction is -0.1, want a finite number from 0"),
        ({"ground": True, "ground_height": math.inf}, "ground_height is inf, want a finite number in metres"),
        ({"ground": 1}, "ground is 1, want true or false"),
    ],
)
def test_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_run(load(ball()), RunConfig(**config))


# --- motion ----------------------------------------------------------------------------------------------------------

RADIUS = 0.1
BALL_MASS = 2.0


def ball(friction: str = "") -> str:
    """A solid ball, whose file may say how much it rubs."""
    inertia = 0.4 * BALL_MASS * RADIUS**2
    return (
        f'<robot name="ball"><link name="ball"><inertial><mass value="{BALL_MASS}"/><inertia ixx="{inertia!r}" '
        f'iyy="{inertia!r}" izz="{inertia!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision><geometry><sphere radius="{RADIUS}"/></geometry></collision></link>{friction}</robot>'
    )


def rub(coefficient: float, link: str = "ball") -> str:
    return f'<gazebo reference="{link}"><mu1>{coefficient!r}</mu1></gazebo>'


def roll(text: str, start: dict[str, float], **config: Any) -> Run:
    return simulate(text, base="floating", ground=True, dt=DT, q0=start, record=RECORD, **config)


@pytest.mark.small
def test_a_ball_lands_and_stays() -> None:
    """It falls freely, is not in the ground at any step, and does not bounce."""
    run = roll(ball(), {"root.z": 0.5}, steps=120)
    z, falls = run["qpos"][:, 2], run["tau_contact"][:, 2] == 0.0
    landing = int(np.argmin(falls))
    steps = np.arange(landing)
    assert z[:landing] == pytest.approx(0.5 - G * DT**2 * steps * (steps + 1) / 2, abs=1e-12)
    assert z.min() >= RADIUS - 1e-9
    assert z[landing + 1 :] == pytest.approx(RADIUS, abs=1e-9)
    assert run["tau_contact"][landing + 2 :, 2] == pytest.approx(BALL_MASS * G, rel=1e-9)
    assert np.abs(run["incoming_wrench"]).max() <= 1e-9  # nothing but the ground holds it


@pytest.mark.small
@pytest.mark.parametrize("direction", [0.0, 0.7])
def test_a_sliding_ball_comes_to_roll(direction: float) -> None:
    """Slowed by μ g until it rolls at 5/7 of its speed, after 2 v / (7 μ g); then nothing slows it."""
    friction, speed = 0.3, 2.0
    along = np.array([math.cos(direction), math.sin(direction)])
    start = {"root.vx": speed * along[0], "root.vy": speed * along[1]}
    text = ball(rub(friction))
    run = roll(text, {"root.z": RADIUS}, v0=start, ground_friction=0.1, steps=120)
    v = run["qvel"][:, :2] @ along
    change = 2 * speed / (7 * friction * G)
    slides = np.arange(120) * DT < change - DT
    assert v[slides] == pytest.approx(speed - friction * G * DT * np.arange(120)[slides], rel=1e-9)
    rolls = np.arange(120) * DT > change + DT
    assert v[rolls] == pytest.approx(5 / 7 * speed, rel=1e-8)
    assert np.abs(run["qvel"][:, :2] @ [-along[1], along[0]]).max() <= 1e-9
    assert np.linalg.norm(run["tau_contact"][slides, :2], axis=1) == pytest.approx(friction * BALL_MASS * G, rel=1e-9)
    assert run["tau_contact"][rolls][:, :2] == pytest.approx(0, abs=1e-8)
    assert run["qpos"][:, 2] == pytest.approx(RADIUS, abs=1e-9)


FEET = [(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)]


def table(friction: float) -> str:
    """A slab on four balls that do not turn: statically indeterminate."""
    feet = "".join(
        f'<collision><origin xyz="{x} {y} -0.2"/><geometry><sphere radius="0.05"/></geometry></collision>'
        for x, y in FEET
    )
    slab = box_link("slab", 8.0, size=(0.8, 0.6, 0.1)).replace("</link>", f"{feet}</link>")
    return f'<robot name="table">{slab}{rub(friction, "slab")}</robot>'


@pytest.mark.small
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_a_table_slips_beyond_the_angle_of_friction(share: float) -> None:
    """On a slope of atan(0.999 μ) it stands still, on one of atan(1.001 μ) it slides as it must."""
    friction = 0.4
    slope = math.atan(share * friction)
    gravity = (G * math.sin(slope), 0.0, -G * math.cos(slope))
    run = roll(table(friction), {"root.z": 0.25}, gravity=gravity, ground_friction=0.0, steps=240)
    speed = run["qvel"][:, 0]
    if share < 1:
        assert np.abs(run["qvel"]).max() <= 1e-8
    else:
        pull = G * (math.sin(slope) - friction * math.cos(slope))
        assert speed == pytest.approx(pull * DT * np.arange(240), abs=1e-7)
    assert run["qpos"][:, 2] == pytest.approx(0.25, abs=1e-8)
    assert run["tau_contact"][:, 2] == pytest.approx(8.0 * G * math.cos(slope), rel=1e-7)
    assert np.abs(run["incoming_wrench"]).max() <= 1e-7


@pytest.mark.small
@pytest.mark.parametrize(("height", "start", "speed"), [(-0.3, 0.3, 12.0), (-0.44, 0.02, 3.0), (0.05, 0.3, 8.0)])
def test_what_falls_over_is_not_in_the_ground(height: float, start: float, speed: float) -> None:
    """A mast whose top comes down on an arc: velocities alone would take it below by the arc's rise, 0.04 to 0.6 mm."""
    text = f"""<mujoco><worldbody><body pos="0 0 {height}"><joint name="q" axis="0 1 0"/>
      <geom size=".05" pos="0 0 .5" mass=".2"/></body></worldbody></mujoco>"""
    run = simulate(
        load_text(text, name="mast.xml"), ground=True, dt=DT, steps=240, q0={"q": start}, v0={"q": speed}, record=RECORD
    )
    gap = height + 0.5 * np.cos(run["qpos"][:, 0]) - 0.05
    assert gap[0] > 0
    assert gap.min() >= -1e-8
    assert gap[-1] <= 1e-8
    assert np.abs(run["tau_contact"]).max() > 0


# --- forces ----------------------------------------------------------------------------------------------------------

LEG = """<mujoco><compiler angle="radian"/><worldbody><body name="hip" pos="0 0 .5">
  <joint name="hip" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 -.3" contype="0" conaffinity="0"/>
  <body name="shin" pos=".1 0 -.3"><joint name="knee" axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 -.1 0 -.3" contype="0" conaffinity="0"/>
    <geom name="foot" size=".04" pos="-.1 0 -.2" mass=".1" friction=".6"/></body></body></worldbody></mujoco>"""


@pytest.mark.small
def test_forces_add_up() -> None:
    """M qacc + bias = Σ tau, and tau_contact = Jᵀ f with the wrench through the hip that f leaves."""
    run = simulate(
        load_text(LEG, name="leg.xml"),
        ground=True,
        ground_friction=0.2,
        dt=DT,
        steps=60,
        v0={"hip": 1.0, "knee": -2.0},
        record=RECORD,
    )
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
    right = sum(run[name] for name in (*FORCES, "tau_contact"))
    assert relative(left - right, run["tau_contact"]) <= 1e-12
    model = mujoco.MjModel.from_xml_string(LEG)
    data = mujoco.MjData(model)
    touches = np.flatnonzero(np.abs(run["tau_contact"]).max(axis=1) > 0)
    assert len(touches) > 5
    for row in touches:
        data.qpos[:], data.qvel[:], data.qacc[:] = run["qpos"][row], run["qvel"][row], run["qacc"][row]
        mujoco.mj_fwdPosition(model, data)
        lowest = (data.geom("foot").xpos - [0, 0, 0.04]) * [1, 1, 0.5]  # half way to the ground
        J = np.zeros((3, 2))
        mujoco.mj_jac(model, data, J, None, lowest, model.body("shin").id)
        f = np.linalg.lstsq(J.T, run["tau_contact"][row])[0]  # in the plane: two equations, two forces
        assert f[2] > 0
        assert abs(f[0]) <= 0.6 * f[2] * (1 + 1e-9)
        for name, part in (("hip", (0, 0, 0.5)), ("shin", data.body("shin").xpos)):
            alone = run["incoming_wrench"][row, run.robot.links.index(name)]
            data.xfrc_applied[:] = 0
            shin = model.body("shin").id
            data.xfrc_applied[shin, :3] = f
            data.xfrc_applied[shin, 3:] = np.cross(lowest - data.xipos[shin], f)
            mujoco.mj_inverse(model, data)
            mujoco.mj_rnePostConstraint(model, data)
            body = model.body(name).id
            torque, force = data.cfrc_int[body][:3], data.cfrc_int[body][3:]
            shift = data.subtree_com[model.body_rootid[body]] - np.array(part)
            want = np.concatenate([force, torque + np.cross(shift, force)])
            assert relative(alone - want, want) <= 1e-8, name


def test_a_leg_with_actuators_and_a_coupling_stands_on_its_foot() -> None:
    """Contacts beside equipment: all forces add up, and the ground gives the trunk its weight.

    Nothing holds the trunk: what goes through its joint is by how much the step's inertial forces were others than at
    its start (tau_passive): little midway in steps of 2 ms, nothing where they act at the start of steps.
    """
    given: dict[str, Any] = {"keyframe": "crouched", "v0": {"root.vz": -0.5}, "record": (*RECORD, "link_quaternion")}
    held = []
    for integrator, dt in (("midpoint", 0.002), ("semi-implicit-euler", 0.0005)):
        given |= {"dt": dt, "steps": round(0.6 / dt), "integrator": integrator}
        run = simulate(load_articulation(ROBOTS / "leg.xml"), ground=True, ground_height=0.0, **given)
        left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
        right = sum(run[name] for name in (*FORCES, "tau_contact"))
        assert run["tau_contact"][:, 2].max() > 50
        assert relative(left - right, run["tau_contact"]) <= 1e-9
        trunk = run.robot.links.index("trunk")
        turn = Rotation.from_quat(run["link_quaternion"][:, trunk], scalar_first=True)
        root = run["tau_passive"][:, :6]
        booked = np.hstack([root[:, :3], turn.apply(root[:, 3:])])
        assert np.abs(run["incoming_wrench"][:, trunk] - booked).max() <= 1e-6
        held.append(np.abs(booked).max() / np.abs(run["tau_contact"]).max())
    assert held[0] <= 0.01 and held[1] <= 1e-9


@pytest.mark.small
def test_without_ground_nothing_touches() -> None:
    run = simulate(ball(), base="floating", q0={"root.z": 0.05}, steps=10)
    assert "tau_contact" not in run.rows
    assert run["qvel"][-1, 2] == pytest.approx(-G * 0.002 * 9, rel=1e-12)


BOXES = """<mujoco><option timestep=".004"/>
  <worldbody><geom type="plane" size="1 1 1" condim="1"/>{}</worldbody></mujoco>"""
CUBE = '<body pos="0 0 {}"><freejoint/><geom type="box" size=".05 .05 .05" condim="1"/></body>'


def test_boxes_that_fall_together_touch_when_the_lowest_lands() -> None:
    """20 m/s, 8 cm a step, 2 cm between them: no contacts in the air, none deep in another afterwards."""
    start = 8.0 + 0.12 * np.arange(4)
    plan = plan_run(
        load_text(BOXES.format("".join(CUBE.format(z) for z in start)), name="model.xml"),
        RunConfig(steps=150, gravity=(0.0, 0.0, 0.0), record=("qpos",)),
    )
    plan.qvel[2::6] = -20.0
    simulation = Simulation(plan, held_controls(plan))
    most = [0, 0]
    for _ in range(150):
        for block in simulation.blocks(1):
            heights = block.rows["qpos"][0, 2::7]
            landed = int(heights[0] < 0.5)
            assert np.all(np.diff(heights) > 0.1 - 1e-6) and heights[0] > 0.05 - 1e-6
        most[landed] = max(most[landed], simulation.effort[1])
    assert most[0] == 0 and most[1] >= 16
    assert np.abs(simulation.qvel[2::6]).max() < 1e-9
