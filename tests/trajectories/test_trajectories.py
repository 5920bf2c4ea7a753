"""Trajectories: times of closed forms and of toppra, limits, straight lines, followers, jerk, and runs that follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import artsim
from artsim.sim.articulation.narrowed_limits import affinely_narrowed, finite_range
from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.quantities.robot import Robot
from artsim.sim.quantities.trajectory import WITH_COMPUTED_TORQUE, WITH_DRIVES, Trajectory
from artsim.sim.trajectories.curves import smooth, straight
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
GRIPPER = ROOT / "robots" / "two_finger_gripper.urdf"

LIFT = """<mujoco><option gravity="0 0 -10"/><worldbody><body>
  <joint name="z" type="slide" axis="0 0 1" damping="{damping}" frictionloss="{friction}"/>
  <geom size=".1" mass="2"/></body></worldbody></mujoco>"""


def lift(folder: Path, damping: float = 0.0, friction: float = 0.0) -> Robot:
    (folder / "lift.xml").write_text(LIFT.format(damping=damping, friction=friction))
    return artsim.load(folder / "lift.xml")


def random_points(robot: Robot, rows: int, seed: int, share: float = 0.25) -> np.ndarray:
    """Way points about the middle of the limits."""
    model, generator = robot.model, np.random.default_rng(seed)
    low, high = affinely_narrowed(model)
    points = np.repeat(robot.reference[None], rows, axis=0)
    for k in model.independent_dof.tolist():
        a, b = finite_range(float(low[k]), float(high[k]), bool(model.dof_linear[k]))
        points[:, model.dof_coord[k]] = (a + b) / 2 + generator.uniform(-share, share, rows) * (b - a)
    return np.array([robot.to_full(robot_coordinates(robot, q))[0] for q in points])


def robot_coordinates(robot: Robot, q: np.ndarray) -> np.ndarray:
    return np.array(q[robot.model.dof_coord[robot.model.independent_dof]])


def shares(found: Trajectory) -> float:
    return max(share for kind in found.used.values() for share in kind.values())


# ------------------------------------------------------------------ time


@pytest.mark.small
def test_a_trapezoid_and_a_triangle() -> None:
    """One joint with limits of velocity and acceleration: L / v + v / a, and 2 √(L / a) where v is not reached."""
    robot = artsim.load(ARM)
    goal = robot.reference.copy()
    goal[0] = 1.5
    options: Any = {"max_velocity": 1.0, "max_acceleration": 4.0, "max_torque": 1e6}
    found = robot.trajectory([robot.reference, goal], **options)
    assert found.duration == pytest.approx(1.5 / 1.0 + 1.0 / 4.0, rel=1e-5)
    found = robot.trajectory([robot.reference, goal], **options | {"max_acceleration": 0.5})
    assert found.duration == pytest.approx(2 * np.sqrt(1.5 / 0.5), rel=1e-5)
    np.testing.assert_allclose(found.qpos[[0, -1]], [robot.reference, goal], atol=1e-12)
    np.testing.assert_array_equal(found.qvel[-1], 0.0)


def test_shares_and_way_points_do_not_depend_on_rows() -> None:
    """Of a motion whose rows are at its ends alone; corners that are rounded are passed, too."""
    robot = artsim.load(ARM)
    points = np.zeros((4, 7))
    points[1:, 0] = 1.0, 0.5, 1.2
    points[2:, 3] = -1.0
    options: Any = {"lines": True, "blend": 0.1, "max_acceleration": 5.0}
    fine, coarse = (robot.trajectory(points, dt=dt, **options) for dt in (1e-3, 10.0))
    assert len(coarse.time) == 2 and len(fine.way_points) == 4
    np.testing.assert_array_equal(coarse.way_points, fine.way_points)
    for kind, shares in fine.used.items():
        assert dict(coarse.used[kind]) == pytest.approx(dict(shares), rel=1e-2, abs=1e-6)
    at = np.searchsorted(fine.time, fine.way_points[1:3])
    for row, corner in zip(at, points[1:3], strict=True):
        away = np.linalg.norm(fine.qpos - corner, axis=1)
        assert 1e-3 < away.min() <= away[row] < 1.2 * away.min()


@pytest.mark.small
def test_a_motor_lifts_against_weight_and_friction(tmp_path: Path) -> None:
    """Bang-bang: up with (F - f) / m - g, to rest with (F + f) / m + g."""
    robot = lift(tmp_path, friction=4.0)
    found = robot.trajectory([[0.0], [3.0]], max_torque=40.0)
    up, down = (40 - 4) / 2 - 10, (40 + 4) / 2 + 10
    speed = np.sqrt(2 * 3.0 / (1 / up + 1 / down))
    assert found.duration == pytest.approx(speed / up + speed / down, rel=1e-5)
    np.testing.assert_allclose(np.abs(found.torque[:-1]), 40.0, rtol=1e-6)
    assert found.torque[-1, 0] == pytest.approx(20.0)  # at rest friction holds nothing


@pytest.mark.small
def test_a_damper_takes_a_part_of_the_force(tmp_path: Path) -> None:
    """m v̇ = F - m g - d v, then m v̇ = - F - m g - d v, integrated by scipy: within a twentieth of the shortest time,
    for the damper's help in braking is not counted in full."""
    robot, force = lift(tmp_path, damping=5.0), 40.0
    found = robot.trajectory([[0.0], [3.0]], max_torque=force, max_velocity=5.0)
    assert shares(found) <= 1 + 1e-6

    def reached(switch: float) -> tuple[float, float]:
        """Where and when the motion ends that brakes at x = switch."""

        def at_switch(t: float, s: np.ndarray) -> float:
            return float(s[0] - switch)

        def at_rest(t: float, s: np.ndarray) -> float:
            return float(s[1])

        at_switch.terminal = at_rest.terminal = True  # type: ignore[attr-defined]
        ends: Any = {"rtol": 1e-10, "atol": 1e-12}
        up = solve_ivp(lambda t, s: [s[1], (force - 20 - 5 * s[1]) / 2], (0, 9), [0, 0], events=at_switch, **ends)
        down = solve_ivp(lambda t, s: [s[1], (-force - 20 - 5 * s[1]) / 2], (0, 9), up.y[:, -1], events=at_rest, **ends)
        return down.y[0, -1], up.t[-1] + down.t[-1]

    low, high = 0.1, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle)[0] < 3.0 else (low, middle)
    best = reached(low)[1]
    assert best * (1 - 1e-5) <= found.duration < 1.05 * best


@pytest.mark.parametrize(("robot", "acceleration"), [(ARM, None), (ARM, 8.0), (GRIPPER, 5.0)])
def test_times_are_those_of_toppra(robot: Path, acceleration: float | None) -> None:
    """The same spline and limits, by toppra's own analysis: within 2 %, and not faster than its grid allows."""
    ta = pytest.importorskip("toppra")
    constraint, algorithm = ta.constraint, ta.algorithm
    loaded = artsim.load(robot)
    model, between = loaded.model, ta.constraint.DiscretizationType.Interpolation
    columns = model.independent_dof
    velocity = np.array([joint.velocity for joint in loaded.articulation.joints if joint.name in loaded.dofs])[columns]
    for seed in range(3):
        points = random_points(loaded, 4, seed)
        y = points[:, model.dof_coord[columns]]
        path = ta.SplineInterpolator(smooth(y, velocity).knots, y, bc_type="natural")

        def forces(y: np.ndarray, u: np.ndarray, a: np.ndarray) -> np.ndarray:
            q, v = loaded.to_full(y, u)
            full = np.zeros(loaded.nv)
            full[columns] = a
            return loaded.compute(q, v, full, quantities=["inverse_dynamics"], reduced=True)["inverse_dynamics"]

        effort = np.stack([-model.effort[columns], model.effort[columns]], axis=1)
        limits = [
            constraint.JointVelocityConstraint(velocity),
            constraint.JointTorqueConstraint(forces, effort, np.zeros(len(y[0])), discretization_scheme=between),
        ]
        if acceleration is not None:
            bounds = np.tile([-acceleration, acceleration], (len(y[0]), 1))
            limits.append(constraint.JointAccelerationConstraint(bounds, discretization_scheme=between))
        grid = np.linspace(0, path.duration, 1001)
        theirs = algorithm.TOPPRA(limits, path, grid, solver_wrapper="seidel", parametrizer="ParametrizeConstAccel")
        duration = theirs.compute_trajectory(0, 0).duration
        found = loaded.trajectory(points, max_acceleration=acceleration)
        assert 0.998 * duration < found.duration < 1.02 * duration
        assert shares(found) <= 1 + 1e-6


@pytest.mark.parametrize("robot", [ARM, GRIPPER])
def test_limits_hold_between_rows_too(robot: Path) -> None:
    """Every 10 µs, by numpy's differences of positions and the robot's own inverse dynamics in full coordinates."""
    loaded = artsim.load(robot)
    found = loaded.trajectory(random_points(loaded, 3, 7), max_acceleration=6.0, dt=1e-5)
    q, v, a, dt = found.qpos, found.qvel, found.qacc, 1e-5
    middle = slice(1, -2)
    np.testing.assert_allclose(np.gradient(q, dt, axis=0)[middle], v[middle], atol=2e-4)
    for joint in loaded.articulation.joints:
        if joint.name in loaded.dofs and joint.velocity:
            assert np.abs(v[:, loaded.dofs.index(joint.name)]).max() <= joint.velocity * (1 + 1e-6)
    assert np.abs(a[:, loaded.model.independent_dof]).max() <= 6.0 * (1 + 1e-6)
    G = loaded.compute(q[0], quantities=["coupling_matrix"])["coupling_matrix"]  # constant: mimics are linear
    rigid = loaded.compute(q, v, a, quantities=["inverse_dynamics"])["inverse_dynamics"]
    forces = (rigid + loaded.model.damping * v) @ G
    independent = loaded.model.independent_dof
    np.testing.assert_allclose(found.torque[:-1, independent], forces[:-1], atol=1e-8)
    assert (np.abs(forces) <= loaded.model.effort[independent] * (1 + 1e-6)).all()


def test_forces_are_those_of_mujoco_s_inverse_dynamics(tmp_path: Path) -> None:
    """With springs, dampers and armature."""
    text = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" stiffness="7" springref="0.4" damping="0.6"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/><body pos=".4 0 0">
      <joint name="b" axis="0 1 0" armature="0.02" damping="0.3"/>
      <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".03"/></body></body></worldbody></mujoco>"""
    (tmp_path / "two.xml").write_text(text)
    robot = artsim.load(tmp_path / "two.xml")
    found = robot.trajectory([[0, 0], [0.8, -1], [0.2, 0.5]], max_torque=30.0, max_velocity=4.0)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for row in range(0, len(found.time) - 1, 7):
        data.qpos[:], data.qvel[:], data.qacc[:] = found.qpos[row], found.qvel[row], found.qacc[row]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(found.torque[row], data.qfrc_inverse, rtol=1e-6, atol=1e-6)


# ------------------------------------------------------------------ paths


def test_followers_follow_curves_and_keep_their_limits(tmp_path: Path) -> None:
    """A quadratic equality: v and a by its derivatives, and the follower's velocity limit holds the leader back."""
    text = """<robot name="r"><link name="w"/>{}</robot>"""
    link = """<link name="{0}l"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
      </inertial></link><joint name="{0}" type="prismatic"><parent link="w"/><child link="{0}l"/><axis xyz="1 0 0"/>
      <limit lower="-9" upper="9" effort="100" velocity="{1}"/>{2}</joint>"""
    mimic = '<mimic joint="a" multiplier="-2" offset="0.1"/>'
    (tmp_path / "r.urdf").write_text(text.format(link.format("a", 5, "") + link.format("b", 3, mimic)))
    robot = artsim.load(tmp_path / "r.urdf")
    found = robot.trajectory([robot.to_full(np.array([x]))[0] for x in (0.0, 4.0)], max_acceleration=20.0)
    assert found.duration == pytest.approx(4 / 1.5 + 1.5 / 20, rel=1e-4)  # the follower's 3 m/s are the leader's 1.5
    np.testing.assert_allclose(found.qpos[:, 1], -2 * found.qpos[:, 0] + 0.1, atol=1e-12)
    assert found.driven == ("a",) and not found.torque[:, 1].any()
    slide = '<body><joint name="{}" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>'
    (tmp_path / "bent.xml").write_text(
        f"<mujoco><worldbody>{slide.format('a')}{slide.format('b')}</worldbody><equality>"
        '<joint joint1="b" joint2="a" polycoef="0 0.5 0.3 0 0" solref="-1e9 -1e5"/></equality></mujoco>'
    )
    bent = artsim.load(tmp_path / "bent.xml", coupling="exact")
    found = bent.trajectory([bent.to_full(np.array([x]))[0] for x in (-1.0, 2.0)], max_acceleration=3.0, dt=1e-4)
    x, v, a = (table[:, 0] for table in (found.qpos, found.qvel, found.qacc))
    np.testing.assert_allclose(found.qpos[:, 1], 0.5 * x + 0.3 * x**2, atol=1e-12)
    np.testing.assert_allclose(found.qvel[:, 1], (0.5 + 0.6 * x) * v, atol=1e-12)
    np.testing.assert_allclose(found.qacc[:, 1], (0.5 + 0.6 * x) * a + 0.6 * v**2, atol=1e-12)
    slope = 0.5 + 0.6 * x  # (1 + G²) m a + G m G' v²
    np.testing.assert_allclose(found.torque[:-1, 0], ((1 + slope**2) * a + slope * 0.6 * v**2)[:-1], atol=1e-9)


@pytest.mark.small
def test_corners_are_rounded_with_two_continuous_derivatives() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [3.0, 2.5]])
    (piece,) = straight(points, np.ones(2), 0.3)
    s = np.linspace(0.0, piece.knots[-1], 40001)
    curve, bend = piece.curve(s), piece.curve(s, 2)
    np.testing.assert_allclose(np.gradient(curve, s, axis=0), piece.curve(s, 1), atol=1e-6)
    assert np.abs(np.diff(bend, axis=0)).max() < 40 * s[1]
    nearest = np.linalg.norm(curve - points[1], axis=1).min()
    assert nearest == pytest.approx(3 / 16 * 0.3 * np.sqrt(2), rel=1e-4)  # of a right angle
    assert len(straight(points, np.ones(2), 0.0)) == 3
    (crowded,) = straight(points, np.ones(2), 9.0)  # half of each line bounds the rounding
    np.testing.assert_allclose(crowded.curve([0.0, crowded.knots[-1]]), points[[0, -1]], atol=1e-12)


def test_a_tool_goes_straight() -> None:
    """Between corners at 1e-6 m and rad, by the forward kinematics of all rows; rotations about one axis each."""
    robot = artsim.load(ARM)
    corners = np.array([[0.5, -0.3, 0.4], [0.5, 0.3, 0.4], [0.4, 0.2, 0.7]])
    turn = np.array([[0, 1, 0, 0], [0, np.cos(0.2), np.sin(0.2), 0], [0, 1, 0, 0.0]])
    found = robot.trajectory(corners, link="link_7", quaternion=turn, lines=True)
    assert shares(found) <= 1 + 1e-6
    pose = robot.compute(found.qpos, quantities=["link_pose"], links=["link_7"])
    position, rotation = pose["link_position"][:, 0], pose["link_quaternion"][:, 0]
    first = found.time <= found.way_points[1]
    for rows, (a, b), (p, r) in ((first, corners[:2], turn[:2]), (~first, corners[1:], turn[1:])):
        along = (b - a) / np.linalg.norm(b - a)
        way = (position[rows] - a) @ along
        assert np.linalg.norm(position[rows] - a - way[:, None] * along, axis=1).max() < 1e-6
        share = way / np.linalg.norm(b - a)
        angle = np.arccos(p @ r)
        want = (np.sin((1 - share) * angle)[:, None] * p + np.sin(share * angle)[:, None] * r) / np.sin(angle)
        assert (1 - np.abs((rotation[rows] * want).sum(axis=1))).max() < 1e-12
    at_corner = np.searchsorted(found.time, found.way_points[1])
    assert np.abs(found.qvel[at_corner]).max() < 0.1  # it stops there, between two rows
    blended = robot.trajectory(corners, link="link_7", quaternion=turn, lines=True, blend=0.05)
    assert blended.duration < found.duration
    position = robot.compute(blended.qpos, quantities=["link_position"], links=["link_7"])["link_position"][:, 0]
    far = np.linalg.norm(position - corners[1], axis=1) > 0.0501
    for rows, (a, b) in (
        (blended.time < blended.way_points[1], corners[:2]),
        (blended.time > blended.way_points[1], corners[1:]),
    ):
        along = (b - a) / np.linalg.norm(b - a)
        off = position - a - ((position - a) @ along)[:, None] * along
        assert np.linalg.norm(off[rows & far], axis=1).max() < 1e-6
    assert 0.002 < np.linalg.norm(position - corners[1], axis=1).min() < 0.02


def test_a_path_of_poses_passes_them() -> None:
    robot = artsim.load(ARM)
    poses = np.array([[0.5, 0.1, 0.4], [0.5, 0.3, 0.4], [0.45, 0.4, 0.5]])
    found = robot.trajectory(poses, link="link_7", dt=1e-4)
    at = np.searchsorted(found.time, found.way_points - 1e-9)
    position = robot.compute(found.qpos[at], quantities=["link_position"], links=["link_7"])["link_position"][:, 0]
    np.testing.assert_allclose(position, poses, atol=3e-4)  # within the row


# ------------------------------------------------------------------ jerk


def test_ruckig_keeps_limits_of_jerk() -> None:
    pytest.importorskip("ruckig")
    robot = artsim.load(ARM)
    points = random_points(robot, 3, 3)
    found = robot.trajectory(points, max_acceleration=6.0, max_jerk=40.0, timing="ruckig", dt=1e-4)
    assert shares(found) <= 1 + 1e-6
    jerk = np.diff(found.qacc[:-1], axis=0) / 1e-4
    assert np.abs(jerk).max() <= 40.0 * (1 + 1e-6)
    at = np.searchsorted(found.time, found.way_points)
    np.testing.assert_allclose(found.qpos[np.minimum(at, len(found.time) - 1)], points, atol=1e-4)
    assert np.abs(found.qvel[at[1]]).max() < 1e-3
    slower = robot.trajectory(
        points, max_acceleration=6.0, max_jerk=40.0, timing="ruckig", max_torque={"joint_1": 10.0, "joint_3": 8.0}
    )
    assert slower.duration > 1.05 * found.duration and shares(slower) <= 1 + 1e-6


# ------------------------------------------------------------------ runs, refusals


def test_a_run_follows(tmp_path: Path) -> None:
    """By computed torque, and by drives with its torques, to less than 5 mrad."""
    robot = artsim.load(ARM)
    found = robot.trajectory(random_points(robot, 4, 5), max_acceleration=10.0)
    options: Any = {"q0": found.qpos[0], "controls": tmp_path / "move.npz", "interpolate": "linear"}
    drives: Any = {"stiffness": 300.0, "damping": 30.0}
    for kinds, how in ((WITH_COMPUTED_TORQUE, {"controller": "computed-torque"}), (WITH_DRIVES, drives)):
        np.savez(tmp_path / "move.npz", **found.inputs(kinds))  # type: ignore[arg-type]
        run = artsim.simulate(robot, steps=len(found.time) - 1, **options, **how)
        assert np.abs(run["qpos"][: len(found.time) - 1] - found.qpos[:-1]).max() < 5e-3


FLOATING = ROOT / "robots" / "quadruped.urdf"
REFUSED = [
    ({"points": [[0] * 7]}, "two different way points"),
    ({"points": [[0] * 6, [1] * 6]}, "way points has shape (2, 6), want (N, 7)"),
    ({"points": [[0] * 7, [9, *[0] * 6]]}, "joint_1 is 6.04 beyond its limit at way point 1"),
    ({"max_velocity": {"joint_9": 1.0}}, "--max-velocity: 'joint_9' is not a joint"),
    ({"max_torque": -1.0}, "--max-torque joint_1 is -1.0, want a number above 0"),
    ({"blend": 0.1}, "--blend rounds the corners of straight lines"),
    ({"timing": "ruckig"}, "--max-jerk"),
    ({"max_jerk": 3.0}, "--max-jerk is for --timing ruckig"),
    ({"timing": "fast"}, "timing is 'fast'"),
    ({"dt": 0.0}, "dt is 0.0"),
    ({"quaternion": [1, 0, 0, 0]}, "give its name"),
    ({"points": [[0, 0, 0, 0, 0, 0, np.nan], [0] * 7]}, "row 0 is not finite"),
    ({"points": [[3, 0, 0.5], [0.5, 0, 0.5]], "link": "link_7"}, "way point 0 (counted from 0) is not reached"),
    ({"points": [[0.5, 0, 0.5], [3, 0, 0.5]], "link": "link_7", "lines": True}, "leaves the reach at way point 0."),
    ({"max_torque": {"joint_2": 5.0}}, "joint_2 is too weak for the robot's weight"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_refusals(given: dict[str, Any], told: str) -> None:
    robot = artsim.load(ARM)
    options: dict[str, Any] = {"points": [[0] * 7, [0.4, 0.8, 0.2, -1, 0, 0, 0]], **given}
    with pytest.raises((UsageError, StoppedError), match="") as refusal:
        robot.trajectory(options.pop("points"), **options)
    assert told in str(refusal.value)


def test_robots_without_motors_are_refused() -> None:
    with pytest.raises(UsageError, match="a floating base has no motor"):
        artsim.load(FLOATING, base="floating").trajectory([[0.0]])
    with pytest.raises(UsageError, match="robots without loops"):
        artsim.load(ROOT / "robots" / "clamp.xml").trajectory([[0.0]])
