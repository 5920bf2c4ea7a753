"""Configurations for poses against Pinocchio and closed forms; limits, followers, loops, paths, refusals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pinocchio as pin
import pytest

import artsim
from artsim import Target
from artsim.io.inputs.sampling import open_samples
from artsim.loaders.load import load_text
from artsim.sim.articulation.narrowed_limits import narrowed_limits
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.robot import Robot
from tests.constraints.test_axis_couplings import follows, leads, twist_about
from tests.constraints.test_turn_limits import matrix
from tests.ik.ik_models import EXCAVATOR, LINK, MIMIC_ARM, SCARA, planar_arm
from tests.simulation import ROBOTS, Array

pytestmark = pytest.mark.small
BALLS = """<mujoco><compiler angle="radian"/><worldbody><body name="float"><freejoint name="free"/><geom size=".1"/>
  <body name="arm" pos=".2 0 0"><joint name="shoulder" type="ball"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".02"/>
    <body name="hand" pos=".4 0 0"><joint name="slide" type="slide" axis="1 0 0" range="-.1 .2" limited="true"/>
      <geom size=".03"/></body></body></body></worldbody></mujoco>"""


def robot_of(text: str) -> Robot:
    return Robot.of(load_text(text, name="robot.xml" if text.startswith("<mujoco") else "robot.urdf", meshes=False))


def drawn(robot: Robot, rows: int, seed: int = 0) -> Array:
    """Configurations within the limits, followers included."""
    q = np.empty((rows, robot.nq))
    open_samples(robot.model, robot.labels, ("qpos",), robot.links, rows=rows, seed=seed).read(0, rows, {"qpos": q})
    return q


def poses(robot: Robot, q: Array, link: str) -> tuple[Array, Array]:
    found = robot.compute(q, quantities=["link_pose"], links=[link])
    return found["link_position"][..., 0, :], found["link_quaternion"][..., 0, :]


def apart(robot: Robot, q: Array, link: str, position: Array, quaternion: Array) -> tuple[Array, Array]:
    """Distances [m] and angles [rad] of a link's poses at q from those wanted."""
    p, r = poses(robot, q, link)
    cosine = np.abs((r * quaternion).sum(axis=-1)).clip(0, 1)
    sine = np.linalg.norm(r - np.sign((r * quaternion).sum(axis=-1))[..., None] * quaternion, axis=-1)
    return np.linalg.norm(p - position, axis=-1), 2 * np.where(cosine > 0.9, sine, np.arccos(cosine))


def keeps_limits(robot: Robot, q: Array) -> bool:
    inside = [
        (q[..., coord] >= robot.model.lower[k] - 1e-12) & (q[..., coord] <= robot.model.upper[k] + 1e-12)
        for k, coord in enumerate(robot.model.dof_coord)
        if coord >= 0
    ]
    return bool(np.all(inside))


# ------------------------------------------------------------------ poses of one link


def test_poses_are_those_that_pinocchio_finds_there() -> None:
    path = ROBOTS / "arm7.urdf"
    robot = artsim.load(path)
    link = robot.links[-1]
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    frame = model.getFrameId(link)
    position, quaternion = poses(robot, drawn(robot, 24), link)
    found = robot.ik(link, position, quaternion)
    assert (found["status"] == 0).all()
    assert keeps_limits(robot, found["qpos"])
    for k, q in enumerate(found["qpos"]):
        by_name = dict(zip(robot.coords, q, strict=True))
        theirs = np.array([by_name[name] for name in model.names if name in by_name])
        pin.framesForwardKinematics(model, data, theirs)
        wanted = pin.SE3(pin.Quaternion(*quaternion[k]), position[k])
        miss = pin.log6(wanted.actInv(data.oMf[frame])).vector
        assert np.linalg.norm(miss[:3]) < 1.5e-6
        assert np.linalg.norm(miss[3:]) < 1.5e-6
        assert np.linalg.norm(data.oMf[frame].translation - position[k]) == pytest.approx(
            found["position_error"][k], abs=1e-12
        )


@pytest.mark.parametrize("which", ["position", "quaternion"])
def test_a_position_or_a_rotation_alone(which: str) -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    link = robot.links[-1]
    wanted = dict(zip(("position", "quaternion"), poses(robot, drawn(robot, 8), link), strict=True))
    found = robot.ik(link, **{which: wanted[which]})
    assert (found["status"] == 0).all()
    miss = apart(robot, found["qpos"], link, wanted["position"], wanted["quaternion"])
    assert miss[which == "quaternion"].max() < 1e-6
    assert miss[which == "position"].min() > 1e-3
    assert ("position_error" in found, "rotation_error" in found) == (which == "position", which == "quaternion")


def test_a_single_pose_and_rows_of_it() -> None:
    robot = robot_of(SCARA)
    position, quaternion = poses(robot, drawn(robot, 9), "tool")
    many = robot.ik("tool", position, quaternion)
    assert many["qpos"].shape == (9, robot.nq)
    one = robot.ik("tool", position[0], quaternion[0])
    assert one["qpos"].shape == (robot.nq,)
    assert one["status"].shape == ()
    assert one["qpos"].tobytes() == many["qpos"][0].tobytes()
    again = robot.ik("tool", position[0], quaternion[0], start=many["qpos"])
    assert again["qpos"].shape == many["qpos"].shape
    assert (again["status"] == 0).all()


def test_results_do_not_depend_on_threads_nor_on_the_rows_beside() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    link = robot.links[-1]
    position, quaternion = poses(robot, drawn(robot, 40), link)
    position[::3] += 0.2  # of which some are out of reach
    one = robot.ik(link, position, quaternion, attempts=3, threads=1)
    assert 0 < np.count_nonzero(one["status"]) < 40
    three = robot.ik(link, position, quaternion, attempts=3, threads=3)
    fewer = robot.ik(link, position[:13], quaternion[:13], attempts=3)
    for name, values in one.items():
        assert values.tobytes() == three[name].tobytes(), name
        assert values[:13].tobytes() == fewer[name].tobytes(), name
    assert one["qpos"].tobytes() != robot.ik(link, position, quaternion, attempts=3, seed=1)["qpos"].tobytes()
    assert pickle.loads(pickle.dumps(robot)).ik(link, position[0])["status"] == robot.ik(link, position[0])["status"]


# ------------------------------------------------------------------ out of reach


def test_a_point_out_of_reach_is_pointed_at() -> None:
    """The nearest point of an arm of two links to one at a distance d > l1 + l2 is at d - l1 - l2."""
    robot = robot_of(planar_arm(0.5, 0.4))
    angle = np.linspace(-2.8, 2.8, 5)
    point = 1.3 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    found = robot.ik("tip", position=point)
    assert (found["status"] == 1).all()
    assert found["position_error"] == pytest.approx(1.3 - 0.9, abs=1e-9)
    assert found["qpos"][:, 0] == pytest.approx(angle, abs=1e-4)
    assert found["qpos"][:, 1] == pytest.approx(0, abs=1e-4)


def test_a_point_inside_the_hole_and_one_beside_the_plane() -> None:
    robot = robot_of(planar_arm(0.5, 0.3, limit=3.5))
    found = robot.ik("tip", position=[[0.05, 0, 0], [0.6, 0.1, 0.25]])
    assert (found["status"] == 1).all()
    assert found["position_error"] == pytest.approx([0.2 - 0.05, 0.25], abs=1e-6)


def test_a_joint_at_its_limit() -> None:
    """One joint with a limit of 0.5 rad: the nearest to an angle beyond is the limit; beyond half a turn the other."""
    robot = robot_of(planar_arm(1.0, limit=0.5))
    turn = np.array([0.3, 0.9, math.pi - 0.1, math.pi + 0.2])
    half = np.stack([np.cos(turn / 2), 0 * turn, 0 * turn, np.sin(turn / 2)], axis=1)
    found = robot.ik("tip", quaternion=half)
    assert found["status"].tolist() == [0, 1, 1, 1]
    assert found["qpos"][:, 0] == pytest.approx([0.3, 0.5, 0.5, -0.5], abs=1e-6)
    assert found["rotation_error"] == pytest.approx([0, 0.4, math.pi - 0.6, math.pi - 0.7], abs=1e-6)


def test_no_neighbour_of_a_row_out_of_reach_is_nearer() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    link = robot.links[-1]
    position, quaternion = poses(robot, drawn(robot, 6), link)
    position *= 2.0
    found = robot.ik(link, position, quaternion)
    assert (found["status"] == 1).all()
    assert keeps_limits(robot, found["qpos"])

    def cost(q: Array) -> Array:
        away, turned = apart(robot, q, link, position, quaternion)
        return 0.5 * (away**2 + turned**2)

    least = cost(found["qpos"])
    generator = np.random.default_rng(0)
    for _ in range(50):
        beside = found["qpos"] + generator.normal(0, 1e-3, found["qpos"].shape)
        beside = beside.clip(robot.model.lower, robot.model.upper)
        assert (cost(beside) > least - 1e-9).all()


# ------------------------------------------------------------------ kinds of joints


def test_ball_free_and_sliding_joints() -> None:
    robot = robot_of(BALLS)
    position, quaternion = poses(robot, drawn(robot, 8), "hand")
    found = robot.ik("hand", position, quaternion)
    assert (found["status"] == 0).all()
    assert keeps_limits(robot, found["qpos"])
    away, turned = apart(robot, found["qpos"], "hand", position, quaternion)
    assert max(away.max(), turned.max()) < 1e-6
    for first in (3, 7):
        assert np.linalg.norm(found["qpos"][:, first : first + 4], axis=1) == pytest.approx(1.0, abs=1e-14)
    still = robot.ik("hand", position * 0 + [0.55, 0.1, 0], move=["shoulder", "slide"])
    assert (still["status"] == 0).all()
    assert still["qpos"][:, :7].tolist() == [robot.reference[:7].tolist()] * 8


def test_planar_base() -> None:
    robot = artsim.load(ROBOTS / "planar_base.urdf")
    link = robot.links[-1]
    position, quaternion = poses(robot, drawn(robot, 8), link)
    found = robot.ik(link, position, quaternion)
    assert (found["status"] == 0).all()
    assert apart(robot, found["qpos"], link, position, quaternion)[0].max() < 1e-6


def test_a_joint_without_limits_ends_within_half_a_turn_of_its_start() -> None:
    robot = robot_of(SCARA)
    start = robot.reference + np.array([0, 0, 0, 31.0])
    position, quaternion = poses(robot, drawn(robot, 16), "tool")
    found = robot.ik("tool", position, quaternion, start=start)
    assert (found["status"] == 0).all()
    assert np.abs(found["qpos"][:, 3] - 31.0).max() <= math.pi + 1e-9


def test_a_range_of_more_than_a_turn_has_no_end_on_the_way() -> None:
    """From 3 rad to an angle of -3 rad a joint of ±2π goes on to 2π - 3, or once round."""
    robot = robot_of(planar_arm(1.0, limit=2 * math.pi))
    for turn in (-3.0, 2.5, 6.2):
        found = robot.ik("tip", quaternion=[math.cos(turn / 2), 0, 0, math.sin(turn / 2)], start=[6.0], attempts=1)
        assert found["status"] == 0
        assert math.cos(found["qpos"][0] - turn) == pytest.approx(1.0, abs=1e-9)


# ------------------------------------------------------------------ followers


def test_followers_are_exact_and_keep_their_limits() -> None:
    robot = robot_of(MIMIC_ARM)
    position, quaternion = poses(robot, drawn(robot, 24), "right")
    found = robot.ik("right", position, quaternion)
    assert (found["status"] == 0).all()
    assert keeps_limits(robot, found["qpos"])
    left, right = robot.coords.index("left"), robot.coords.index("right")
    assert found["qpos"][:, left].tolist() == found["qpos"][:, right].tolist()
    assert apart(robot, found["qpos"], "right", position, quaternion)[0].max() < 1e-6


def test_a_follower_s_limit_bounds_its_leader() -> None:
    """The right finger may open by 0.03 m alone, so that the left one does not open by 0.04 m."""
    robot = robot_of(MIMIC_ARM)
    q = robot.reference.copy()
    position, _ = poses(robot, q, "left")
    found = robot.ik("left", position + np.array([0, 0.04, 0]), move=["left"])
    assert found["status"] == 1
    assert found["position_error"] == pytest.approx(0.01, abs=1e-9)
    assert found["qpos"][robot.coords.index("left")] == pytest.approx(0.03, abs=1e-12)


@pytest.mark.parametrize("model", ["two_finger_gripper", "finger", "rack_and_pinion"])
def test_chains_of_followers(model: str) -> None:
    robot = artsim.load(ROBOTS / f"{model}.urdf")
    link = robot.links[-1]
    q = drawn(robot, 6)
    position, quaternion = poses(robot, q, link)
    found = robot.ik(link, position, quaternion)
    assert (found["status"] == 0).all()
    for row in found["qpos"]:
        assert robot.to_full(*robot.to_independent(row))[0] == pytest.approx(row, abs=1e-12)


@pytest.mark.parametrize("model", ["two_finger_gripper", "rack_and_pinion", "parallel_gripper"])
def test_couplings_that_are_rows_hold(model: str) -> None:
    robot = artsim.load(ROBOTS / f"{model}.urdf", coupling="rows")
    whole = artsim.load(ROBOTS / f"{model}.urdf")
    assert len(robot.model.row_follower) > 0
    link = robot.links[-1]
    position, quaternion = poses(whole, drawn(whole, 6), link)
    found = robot.ik(link, position, quaternion)
    assert (found["status"] == 0).all()
    assert found["constraint_error"].max() < 1e-10
    for row in found["qpos"]:
        assert whole.to_full(*whole.to_independent(row))[0] == pytest.approx(row, abs=1e-9)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("ball_leads", [True, False])
def test_axes_of_balls_hold_their_couplings(axis: str, ball_leads: bool) -> None:
    robot = robot_of(leads(axis) if ball_leads else follows(axis))
    links = [joint.child for joint in robot.articulation.joints if joint.name in ("ball", "hinge")]
    q = drawn(robot, 8)
    found = robot.ik([Target(link, *poses(robot, q, link)) for link in links])
    assert (found["status"] == 0).all()
    assert found["constraint_error"].max() < 1e-10
    for row in found["qpos"]:
        turn, place = twist_about(axis, matrix(row[:4])), row[4]
        error = place - 2.0 * turn - 0.3 if ball_leads else turn - 0.5 * place + 0.2
        period = 2 * math.pi * (2.0 if ball_leads else 1.0)
        assert abs(error - period * round(error / period)) < 1e-9


def test_a_polynomial_follower_narrows_its_leader() -> None:
    """y = x² within 0 … 0.25 keeps x within ±0.5; y = x - x³ within 0.1 … 1 keeps it in one of two intervals."""
    text = """<mujoco><worldbody><body name="a"><joint name="x" type="slide" axis="1 0 0" range="-2 2" limited="true"/>
      <geom size=".1"/><body name="b"><joint name="y" type="slide" axis="0 1 0" range="{}" limited="true"/>
      <geom size=".1"/></body></body></worldbody>
      <equality><joint joint1="y" joint2="x" polycoef="{}" solref="-1e9 -1e4"/></equality></mujoco>"""
    for limits, polynomial, near, wanted in (
        ("0 .25", "0 0 1 0 0", 0.0, (-0.5, 0.5)),
        ("0.1 1", "0 1 0 -1 0", 0.0, (0.1010312, 0.9456492)),
        ("0.1 1", "0 1 0 -1 0", -1.0, (-1.3247180, -1.0466805)),
    ):
        robot = robot_of(text.format(limits, polynomial).replace(' solref="-1e9 -1e4"', ""))
        if len(robot.model.coupling_follower) == 0:
            robot = Robot.of(robot.articulation, coupling="eliminate")
        low, high, hopeless = narrowed_limits(robot.model, np.array([near, 0.0]))
        assert (low[0], high[0]) == pytest.approx(wanted, abs=1e-6)
        assert not hopeless


# ------------------------------------------------------------------ several targets, other frames, other aims


def test_two_links_at_once_and_weights() -> None:
    robot = artsim.load(ROBOTS / "quadruped.urdf", base="floating")
    feet = [link for link in robot.links if link.endswith("foot")][:2]
    assert len(feet) == 2
    q = drawn(robot, 6)
    wanted = [poses(robot, q, foot)[0] for foot in feet]
    found = robot.ik([Target(foot, position) for foot, position in zip(feet, wanted, strict=True)])
    assert (found["status"] == 0).all()
    for foot, position in zip(feet, wanted, strict=True):
        assert np.linalg.norm(poses(robot, found["qpos"], foot)[0] - position, axis=1).max() < 1e-6


def test_weights_share_out_what_cannot_be_had() -> None:
    """A slide that is wanted at 0 and at 1 by weights a and b ends at b² / (a² + b²)."""
    text = f"""<robot name="s"><link name="base">{LINK}</link><link name="a">{LINK}</link>
      <joint name="s" type="prismatic"><parent link="base"/><child link="a"/><axis xyz="1 0 0"/>
      <limit lower="-5" upper="5" effort="1" velocity="1"/></joint></robot>"""
    robot = robot_of(text)
    found = robot.ik([Target("a", [0, 0, 0], weight=2.0), Target("a", [1.0, 0, 0], weight=1.0)])
    assert found["status"] == 1
    assert found["qpos"][0] == pytest.approx(1 / 5, abs=1e-6)
    assert found["position_error"] == pytest.approx(4 / 5, abs=1e-6)


def test_a_pose_in_the_frame_of_another_link() -> None:
    robot = robot_of(MIMIC_ARM)
    q = drawn(robot, 8)
    seat, turn = poses(robot, q, "b")
    position, quaternion = poses(robot, q, "palm")
    inverse = turn * np.array([1, -1, -1, -1])
    there = np.array([pin.Quaternion(*r).toRotationMatrix() @ p for r, p in zip(inverse, position - seat, strict=True)])
    product = [pin.Quaternion(*a) * pin.Quaternion(*b) for a, b in zip(inverse, quaternion, strict=True)]
    turned = np.array([[r.w, r.x, r.y, r.z] for r in product])
    found = robot.ik(Target("palm", there, turned, frame="b"))
    assert (found["status"] == 0).all()
    p, r = poses(robot, found["qpos"], "b")
    back = np.array([pin.Quaternion(*a).toRotationMatrix() @ b for a, b in zip(r, there, strict=True)]) + p
    assert np.linalg.norm(back - poses(robot, found["qpos"], "palm")[0], axis=1).max() < 1e-6
    assert (found["qpos"][:, :2] == robot.reference[:2]).all()  # a and b move both frames alike


def test_looking_at_a_point() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    link = robot.links[-1]
    points = np.random.default_rng(0).normal((2.0, 0, 1), 1.0, (8, 3))
    axis = np.array([1.0, 0, 0])
    found = robot.ik(Target(link, look_at=points, axis=axis))
    assert (found["status"] == 0).all()
    p, r = poses(robot, found["qpos"], link)
    for k in range(8):
        looks = pin.Quaternion(*r[k]).toRotationMatrix() @ axis
        way = (points[k] - p[k]) / np.linalg.norm(points[k] - p[k])
        assert np.linalg.norm(np.cross(looks, way)) < 1e-6
        assert looks @ way > 0
    both = robot.ik([Target(link, p), Target(link, look_at=points, axis=axis)])
    assert (both["status"] == 0).all()


def test_the_centre_of_mass() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    q = drawn(robot, 6)
    wanted = robot.compute(q, quantities=["com"])["com"]
    found = robot.ik(Target(None, wanted))
    assert (found["status"] == 0).all()
    assert np.linalg.norm(robot.compute(found["qpos"], quantities=["com"])["com"] - wanted, axis=1).max() < 1e-6


def test_a_posture_is_kept_as_far_as_the_target_allows() -> None:
    """The targets are reached as without it, and among their configurations the one found is a nearest one."""
    robot = robot_of(planar_arm(0.4, 0.3, 0.3, 0.2))
    position, _ = poses(robot, drawn(robot, 6), "tip")
    wish = {"j0": 0.3, "j1": 0.4, "j2": 0.5, "j3": 0.2}
    found = robot.ik("tip", position=position, posture=wish)
    assert (found["status"] == 0).all()
    away = found["qpos"] - [*wish.values()]
    plain = robot.ik("tip", position=position)["qpos"] - [*wish.values()]
    assert (np.linalg.norm(away, axis=1) <= np.linalg.norm(plain, axis=1) + 1e-2).all()
    J = robot.compute(found["qpos"], quantities=["jacobian"], links=["tip"], at="origin")["jacobian"][:, 0, :2]
    for k in range(6):  # what is left of the wish has no part that the target leaves free
        free = np.eye(4) - np.linalg.pinv(J[k]) @ J[k]
        assert np.linalg.norm(free @ away[k]) < 0.05


# ------------------------------------------------------------------ paths


def test_a_path_is_continuous_and_tells_its_jumps() -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    link = robot.links[-1]
    a, b = drawn(robot, 2, seed=3)
    q = a + np.linspace(0, 1, 60)[:, None] * (b - a)
    position, quaternion = poses(robot, q, link)
    found = robot.ik(link, position, quaternion, start=a, path=True)
    assert (found["status"] == 0).all()
    assert found["jump"] == pytest.approx(np.abs(np.diff(found["qpos"], axis=0, prepend=a[None])).max(axis=1))
    assert found["jump"][1:].max() < 0.5
    assert (found["attempts"] == 1).all()
    position[30:] = position[30:][::-1]
    torn = robot.ik(link, position, quaternion, start=a, path=True)
    assert torn["jump"].max() > 0.5


def test_speeds_bound_a_path() -> None:
    """The joints of the planar arm turn by 2 rad/s: within 0.1 s by 0.2 rad."""
    robot = robot_of(planar_arm(0.5, 0.4))
    q = np.array([[turn, 0.6] for turn in (0.1, 0.25, *[1.0] * 8)])
    found = robot.ik("tip", position=poses(robot, q, "tip")[0], start=[0.05, 0.6], path=True, dt=0.1)
    steps = np.abs(np.diff(found["qpos"], axis=0, prepend=[[0.05, 0.6]]))
    assert steps.max() == pytest.approx(0.2, abs=1e-9)
    assert found["status"][:3].tolist() == [0, 0, 1]
    assert found["status"][-1] == 0
    assert found["qpos"][-1] == pytest.approx([1.0, 0.6], abs=1e-5)


# ------------------------------------------------------------------ loops


def test_loops_are_closed_and_their_limits_kept() -> None:
    robot = robot_of(EXCAVATOR)
    q = closed_excavator(robot, 12)
    position, quaternion = poses(robot, q, "tooth")
    found = robot.ik("tooth", position, quaternion)
    assert (found["status"] == 0).all()
    assert keeps_limits(robot, found["qpos"])
    assert found["constraint_error"].max() < 1e-10
    for rod, eye, point in (("boom_rod", "boom", (0.9, 0, -0.1)), ("stick_rod", "stick", (-0.3, 0, 0.1))):
        p, r = poses(robot, found["qpos"], eye)
        there = np.array([pin.Quaternion(*turn).toRotationMatrix() @ point for turn in r]) + p
        assert np.abs(poses(robot, found["qpos"], rod)[0] - there).max() < 1e-9


def test_loops_stay_closed_where_the_target_is_out_of_reach() -> None:
    robot = robot_of(EXCAVATOR)
    found = robot.ik("tooth", position=[[6.0, 0, 3.0], [0.0, 7.0, 0.5]])
    assert (found["status"] == 1).all()
    assert found["constraint_error"].max() < 1e-10
    assert (found["position_error"] > 1.0).all()
    assert keeps_limits(robot, found["qpos"])


def closed_excavator(robot: Robot, rows: int) -> Array:
    """Configurations within the joints' limits whose cylinders are placed by their triangles' closed form."""
    q = np.zeros((rows, robot.nq))
    place = {name: n for n, name in enumerate(robot.coords)}
    generator = np.random.default_rng(0)
    for name in ("swing", "boom", "stick", "bucket"):
        k = robot.dofs.index(name)
        q[:, place[name]] = generator.uniform(robot.model.lower[k], robot.model.upper[k], rows)
    for name, (x, z), (a, b) in (("boom", (0.9, -0.1), (-0.15, 0.3)), ("stick", (-0.3, 0.1), (1.1, -0.2))):
        c, s = np.cos(q[:, place[name]]), np.sin(q[:, place[name]])
        along, up = c * x - s * z + a, s * x + c * z + b
        q[:, place[f"{name}_rod"]], q[:, place[f"{name}_barrel"]] = np.hypot(along, up), np.arctan2(up, along)
    assert keeps_limits(robot, q)
    return q


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("tol", [0, 0, 0]), {}, "link 'tol' does not exist; did you mean 'tool'?"),
        (("tool",), {}, "target 'tool': give a position, a quaternion or both, or a point to look at"),
        (("tool", [0, 0]), {}, r"target 'tool': position has shape (2,), want (3,) or (N, 3)"),
        (("tool", [[0, 0, 0], [0, math.nan, 0]]), {}, "target 'tool': position of row 1 is not finite"),
        (("tool", "here"), {}, "target 'tool': position is not a table of numbers"),
        (("tool", None, [[1, 0, 0, 0], [1, 1, 0, 0]]), {}, "quaternion of row 1 has length 1.41421, want 1"),
        (("tool", None, [0, 0, 0, 0]), {}, "quaternion has length 0, want 1"),
        (("tool", [[0, 0, 0]] * 2, [[1, 0, 0, 0]] * 3), {}, "targets have different numbers of rows"),
        (("base", [0, 0, 0]), {}, "target 'base': no joint moves it"),
        (("arm", [0, 0, 0]), {"move": ["j2"]}, "target 'arm': none of j2 moves it"),
        (("tool", [0, 0, 0]), {"move": ["joint"]}, "joint 'joint' does not exist; known: j1, j2, j3, j4"),
        (("tool", [0, 0, 0]), {"move": "j1"}, "move: want a list of names, not the text 'j1'"),
        (("tool", [0, 0, 0]), {"start": [0, 0]}, r"start has shape (2,), want (4,) or (N, 4)"),
        (("tool", [0, 0, 0]), {"start": [0, 0, math.inf, 0]}, "start: row 0 is not finite"),
        (("tool", [[0, 0, 0]] * 3), {"start": [[0] * 4] * 2}, "start has 2 rows, the targets 3"),
        (("tool", [0, 0, 0]), {"tolerance": (1e-6, 0)}, "tolerance is (1e-06, 0), want two numbers from 1e-12"),
        (("tool", [0, 0, 0]), {"tolerance": 1e-6}, "tolerance is 1e-06, want two numbers from 1e-12"),
        (("tool", [0, 0, 0]), {"attempts": 0}, "attempts is 0, want a whole number from 1"),
        (("tool", [0, 0, 0]), {"iterations": 2.5}, "iterations is 2.5, want a whole number from 1"),
        (("tool", [0, 0, 0]), {"seed": -1}, "seed is -1, want a whole number from 0"),
        (("tool", [0, 0, 0]), {"posture": {"j1": "a"}}, "posture: j1 is 'a', want a finite number"),
        (("tool", [0, 0, 0]), {"posture": [0.0] * 4}, "posture is [0.0, 0.0, 0.0, 0.0], want coordinates by name"),
        (("tool", [[0, 0, 0]] * 2), {"start": [[0] * 4] * 2, "path": True}, "start: a path has one, (nq,)"),
        (("tool", [0, 0, 0]), {"dt": 0.0}, "dt is 0.0, want a time above 0"),
        (("tool", [0, 0, 0]), {"posture": {"j9": 1.0}}, "posture: 'j9' is not a coordinate of this robot; known: j1"),
        ((Target("tool", [0, 0, 0], frame="x"),), {}, "link 'x' does not exist"),
        ((Target("tool", [0, 0, 0], frame="tool"),), {}, "target 'tool': no joint moves it"),
        ((Target("tool", [0, 0, 0], weight=0),), {}, "target 'tool': weight is 0, want a number above 0"),
        ((Target("tool", look_at=[1, 0, 0], axis=(0, 0, 2)),), {}, "want a direction of length 1"),
        ((Target(None, quaternion=[1, 0, 0, 0]),), {}, "the target of the centre of mass is a position"),
        (([],), {}, "targets: none is given"),
        ((5,), {}, "targets: want the name of a link"),
    ],
)
def test_wrong_arguments_get_their_line(arguments: tuple[object, ...], options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        robot_of(SCARA).ik(*arguments, **options)  # type: ignore[arg-type]
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_limits_of_balls_and_equalities_of_tendons_are_refused() -> None:
    text = BALLS.replace('name="shoulder" type="ball"', 'name="shoulder" type="ball" range="0 .5" limited="true"')
    with pytest.raises(UsageError, match="joint 'shoulder' is a ball with limits"):
        robot_of(text).ik("hand", [0, 0, 0])
    assert robot_of(text).ik("hand", [0.5, 0.1, 0], move=["free"])["status"] == 0
