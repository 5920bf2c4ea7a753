"""Files of loops, and <loop_joint>: what each kind becomes, that it is kept in outputs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.loaders.load import SceneEntry, load_scene, load_text
from artsim.loaders.loops import with_loops
from artsim.loaders.stored import load_stored
from artsim.sim.articulation.description import Articulation, Loop, LoopSpring, Pose
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.runs.configuration import RunConfig

pytestmark = pytest.mark.small

MASS = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
BARS = (
    '<robot name="bars"><link name="base"/>'
    + "".join(f'<link name="{name}">{MASS}</link>' for name in ("crank", "rod", "rocker", "plate"))
    + '<joint name="j1" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 1 0"/></joint>'
    '<joint name="j2" type="continuous"><parent link="crank"/><child link="rod"/><origin xyz="0.2 0 0" rpy="0 -0.9 0"/>'
    '<axis xyz="0 1 0"/></joint>'
    '<joint name="j3" type="continuous"><parent link="base"/><child link="rocker"/><origin xyz="0.5 0 0" '
    'rpy="0 -1.7 0"/><axis xyz="0 1 0"/></joint>'
    '<joint name="stuck" type="fixed"><parent link="rocker"/><child link="plate"/></joint>{}</robot>'
)
MJCF = """<mujoco><worldbody>
  <body name="a" pos=".1 .2 .3" euler="30 40 50"><joint name="ja" axis="1 2 3"/><geom size=".1"/></body>
  <body name="b" pos="1 0 0" euler="10 0 0"><joint name="jb" axis="0 1 0"/><geom size=".1"/></body>
</worldbody>{}</mujoco>"""


def bars(text: str) -> Articulation:
    """The bars with the loops of this text."""
    return with_loops(load_text(BARS.format(""), name="bars.urdf"), text, file="loops.toml")


def loop(kind: str, **keys: Any) -> str:
    """A [[loop]] between rod and rocker, unless keys say otherwise."""
    values = {"kind": kind, "link_a": "rod", "link_b": "rocker"} | keys
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in values.items() if value is not None]
    return "\n".join(["[[loop]]", *lines, ""])


def only(text: str) -> Loop:
    """The one loop of the bars."""
    (found,) = bars(text).loops
    return found


# --- kinds -----------------------------------------------------------------------------------------------------------


def test_a_connect_is_mjcfs() -> None:
    plain = load_text(MJCF.format(""), name="m.xml")
    ours = with_loops(plain, loop("connect", name="c", link_a="a", link_b="b", point_a=[0.1, 0.2, 0.3]), file="l")
    equality = '<equality><connect name="c" body1="a" body2="b" anchor=".1 .2 .3"/></equality>'
    (theirs,) = load_text(MJCF.format(equality), name="m.xml").loops
    (mine,) = ours.loops
    assert (mine.kind, mine.link_a, mine.link_b, mine.frame_a) == ("connect", "a", "b", theirs.frame_a)
    np.testing.assert_allclose(mine.frame_b.position, theirs.frame_b.position, rtol=0, atol=1e-15)


def test_a_weld_is_mjcfs() -> None:
    """MuJoCo puts the anchor into the second body; both frames are the same at the file's pose."""
    plain = load_text(MJCF.format(""), name="m.xml")
    (mine,) = with_loops(plain, loop("weld", link_a="a", link_b="b"), file="l").loops
    (theirs,) = load_text(MJCF.format('<equality><weld body1="a" body2="b"/></equality>'), name="m.xml").loops

    def relative(a: Pose, b: Pose) -> Any:
        return rotation_matrix(a.rotation) @ rotation_matrix(b.rotation).T

    np.testing.assert_allclose(
        relative(mine.frame_a, mine.frame_b), relative(theirs.frame_a, theirs.frame_b), rtol=0, atol=1e-15
    )
    assert mine.frame_a == Pose()


def test_a_hinge_has_its_axis_in_both_links() -> None:
    found = only(loop("hinge", point_a=[0.4, 0, 0], axis_a=[0, 2, 0]))
    assert (found.kind, found.link_a, found.link_b) == ("hinge", "rod", "rocker")
    for frame in (found.frame_a, found.frame_b):
        np.testing.assert_allclose(rotation_matrix(frame.rotation)[:, 2], [0, 1, 0], atol=1e-15)
    other = only(loop("hinge", point_a=[0.4, 0, 0], axis_a=[0, 1, 0], point_b=[0.3, 0, 0], axis_b=[1, 0, 0]))
    assert other.frame_b.position == (0.3, 0, 0)
    np.testing.assert_allclose(rotation_matrix(other.frame_b.rotation)[:, 2], [1, 0, 0], atol=1e-15)


def test_a_point_is_by_default_where_the_other_is_in_the_file() -> None:
    found = only(loop("connect", point_a=[0.4, 0, 0], link_b="world"))
    tip = [0.2 + 0.4 * np.cos(0.9), 0.0, 0.4 * np.sin(0.9)]
    np.testing.assert_allclose(found.frame_b.position, tip, rtol=0, atol=1e-15)


def test_springs() -> None:
    assert only(loop("connect")).spring is None
    assert only(loop("connect", frequency=20.0)).spring == LoopSpring(20.0, 1.0)
    assert only(loop("weld", frequency=20.0, damping_ratio=0.3)).spring == LoopSpring(20.0, 0.3)
    assert only(loop("connect", k=1e4, d=10.0)).spring == LoopSpring(stiffness=(1e4, 0), damping=(10, 0))
    stiff = only(loop("hinge", axis_a=[0, 1, 0], k=1e4, k_rotation=50.0, d_rotation=0.1)).spring
    assert stiff == LoopSpring(stiffness=(1e4, 50), damping=(0, 0.1))


def test_a_gear_is_a_mimic() -> None:
    gear = {"link_a": None, "link_b": None, "follower": "j3", "leader": "j1", "ratio": -2.0, "offset": 0.1}
    (mine,) = bars(loop("gear", **gear)).couplings
    mimic = '<joint name="{}" type="continuous"><parent link="base"/>'
    text = BARS.format("").replace(
        mimic.format("j3"), mimic.format("j3") + '<mimic joint="j1" multiplier="-2" offset="0.1"/>'
    )
    (theirs,) = load_text(text, name="bars.urdf").couplings
    assert (mine.follower, mine.leader, mine.coefficients) == (theirs.follower, theirs.leader, theirs.coefficients)
    (soft,) = bars(loop("gear", **gear, frequency=5.0, damping_ratio=0.2)).couplings
    assert (soft.frequency, soft.damping_ratio) == (5.0, 0.2)
    (sprung,) = bars(loop("gear", **gear, k=30.0, d=0.5)).tendons
    assert [(point.name, point.value) for point in sprung.path] == [("j3", 1.0), ("j1", 2.0)]
    assert (sprung.kind, sprung.stiffness, sprung.damping, sprung.spring_length) == ("fixed", 30.0, 0.5, (0.1, 0.1))


def test_a_distance_is_a_tendon_between_two_sites() -> None:
    robot = bars(loop("distance", name="d", point_a=[0.4, 0, 0], link_b="base", length=0.7))
    (tendon,), (held,) = robot.tendons, robot.tendon_couplings
    now = np.hypot(0.2 + 0.4 * np.cos(0.9), 0.4 * np.sin(0.9))
    assert [(site.name, site.link, site.pose.position) for site in robot.sites] == [
        ("d_a", "rod", (0.4, 0, 0)),
        ("d_b", "base", (0, 0, 0)),
    ]
    assert [point.name for point in tendon.path] == ["d_a", "d_b"]
    assert held.coefficients[0] == pytest.approx(0.7 - now, abs=1e-15)
    (sprung,) = bars(loop("distance", point_a=[0.4, 0, 0], link_b="base", k=100.0)).tendons
    assert sprung.stiffness == 100.0
    assert sprung.spring_length == pytest.approx((now, now), abs=1e-15)


def test_loop_joints_of_a_urdf() -> None:
    ends = '<link1 link="rod" xyz="0.4 0 0" rpy="0 0 0.3"/><link2 link="rocker" xyz="0.3 0 0"/>'
    text = '<loop_joint name="{0}" type="{0}">' + ends + '<axis xyz="0 0 1"/></loop_joint>'
    kinds = ("spherical", "fixed", "revolute", "prismatic", "cylindrical", "planar")
    robot = load_text(BARS.format("".join(map(text.format, kinds))), name="bars.urdf")
    assert [(item.name, item.kind) for item in robot.loops] == [
        ("spherical", "connect"),
        ("fixed", "weld"),
        ("revolute", "hinge"),
        *((kind, "joint") for kind in kinds[3:]),
    ]
    assert [item.free for item in robot.loops[3:]] == [("z",), ("z", "rz"), ("x", "y", "rz")]
    for item in robot.loops:
        assert (item.link_a, item.link_b) == ("rod", "rocker")
        assert (item.frame_a.position, item.frame_b.position) == ((0.4, 0, 0), (0.3, 0, 0))
    assert robot.notes == ()


# --- where they are kept ---------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with bars.urdf and loops.toml."""
    (tmp_path / "bars.urdf").write_text(BARS.format(""))
    gear = {"link_a": None, "link_b": None, "follower": "j3", "leader": "j1"}
    parts = [
        loop("hinge", name="shut", point_a=[0.4, 0, 0], axis_a=[0, 1, 0]),
        loop("gear", name="gear", **gear, k=1.0),
        loop("distance", name="tie", link_b="world", k=5.0),
    ]
    (tmp_path / "loops.toml").write_text("# größe\n" + "\n".join(parts))
    return tmp_path


def test_outputs_hold_the_file_of_loops(files: Path) -> None:
    entry = SceneEntry("m", str(files / "bars.urdf"), place=Pose((1.0, 0.0, 0.0)), loops=str(files / "loops.toml"))
    robot = load_scene([entry])
    again = load_stored(robot.text, "m", RunConfig())
    assert (again.loops, again.tendons, again.sites) == (robot.loops, robot.tendons, robot.sites)
    assert [item.name for item in robot.loops] == ["m/shut"]
    assert [site.pose.position[0] for site in robot.sites] == [0, 1], "the world's end stands in the placed model"


def test_loops_in_python(files: Path) -> None:
    robot = artsim.load(files / "bars.urdf", loops=files / "loops.toml")
    assert [item.name for item in robot.articulation.loops] == ["shut"]
    assert robot.nv == 3


JOINED = '<loop_joint name="l" type="{}" {}><link1 link="rod"/><link2 link="rocker"/>{}</loop_joint>'


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "loops.toml: holds no [[loop]] tables"),
        ("loop = 3", "loops.toml: holds no [[loop]] tables"),
        ("[[loop]\n", "loops.toml: not TOML: "),
        ("[[lop]]\n", "loops.toml: 'lop' is not known"),
        ("\n\n[[loop]]\n", "loops.toml:3: loop 'loop_0': has no 'kind'"),
        (loop("conect"), "loops.toml:1: loop 'loop_0': kind is 'conect'; did you mean 'connect'?"),
        (loop("connect", link_a="rot"), "link_a is 'rot', which is no link; did you mean 'rod'?"),
        (loop("connect", link_b=None), "has no 'link_b'"),
        (loop("connect", link_b="rod"), "joins link 'rod' to itself"),
        (loop("connect", link_a="plate"), "links 'plate' and 'rocker' do not move against each other"),
        (loop("connect", link_a="base", link_b="world"), "do not move against each other"),
        (loop("connect", point_a=[1, 2]), "point_a is [1, 2], want three numbers"),
        (loop("connect", point_a=[1, 2, "x"]), "point_a holds 'x'"),
        ('[[loop]]\nkind="connect"\nlink_a="rod"\nlink_b="rocker"\npoint_a=[nan,0,0]', "point_a holds nan"),
        (loop("connect", poin_a=[1, 2, 3]), "a connect has no 'poin_a'; did you mean 'point_a'?"),
        (loop("connect", axis_a=[1, 2, 3]), "a connect has no 'axis_a'"),
        (loop("hinge"), "has no 'axis_a'"),
        (loop("hinge", axis_a=[0, 0, 0]), "axis_a is zero, want a direction"),
        (loop("weld", frequency=0.0), "frequency is 0 Hz, want more than 0"),
        (loop("weld", frequency=1.0, k=1.0), "has both a frequency and a stiffness"),
        (loop("weld", damping_ratio=1.0), "has a damping_ratio and no frequency"),
        (loop("weld", k=1.0), "has no 'k_rotation'"),
        (loop("weld", k=-1.0, k_rotation=1.0), "k is -1, want more than 0"),
        (loop("connect", d=1.0), "has a damping or a rotation's stiffness and no stiffness k"),
        (loop("connect", k=1.0, d=-1.0), "d is -1, want at least 0"),
        (loop("connect") + "k = true", "k is True, want a number"),
        (loop("distance", link_b="crank", point_b=[0.2, 0, 0]), "the points coincide in the file's pose"),
        (loop("distance", length=0.0), "length is 0 m, want more than 0"),
        (loop("connect", name=""), "want a text"),
        (loop("slider"), "has no 'axis_a'"),
        (loop("joint"), "free is None, want a list of some of x, y, z, rx, ry, rz"),
        (loop("joint", free=["x", "u"]), "free is ['x', 'u'], want a list of some of x, y"),
        (loop("joint", free=["x", "x"]), "want each axis once and not all of them"),
        (loop("joint", free=["x"]) + "[loop.rz]", "rz is held; its free axes are x"),
        (loop("weld", free=["x"]), "a weld has no 'free'"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.z]", "a hinge has no 'z'"),
        (loop("hinge", axis_a=[0, 1, 0]) + "rz = 3", "rz is 3, want a table of lower, upper"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nlowr = 1", "rz has no 'lowr'; did you mean 'lower'?"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nlower = 2\nupper = 1", "rz: the lower limit 2 is greater than"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nupper = 4", "limits -inf and 4: want ±pi rad at most"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nfriction = -1", "friction is -1, want at least 0"),
        (
            loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nlimit_stiffness = 1",
            "a limit's stiffness and no lower",
        ),
        (
            loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz]\nlimit_damping = 1",
            "rz has a limit_damping and no",
        ),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz.drive]", "rz.drive has neither stiffness nor damping"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz.drive]\nmode = 'forse'", "mode is 'forse', want force or"),
        (loop("hinge", axis_a=[0, 1, 0]) + "[loop.rz.drive]\nkp = 1", "rz.drive has no 'kp'"),
        (loop("distance", upper=1.0, length=2.0), "has limits, between which it is free, and a length that it keeps"),
        (loop("connect", name="x") + loop("weld", name="x"), "loops.toml:6: loop 'x': the name is taken"),
        ('[[loop]]\nkind="gear"\nfollower="j1"\nleader="j4"', "leader is 'j4', which is no joint with one coordinate"),
        ('[[loop]]\nkind="gear"\nfollower="stuck"\nleader="j1"', "follower is 'stuck', which is no joint with one"),
        ('[[loop]]\nkind="gear"\nfollower="j1"\nleader="j1"', "joint 'j1' follows itself"),
        (
            '[[loop]]\nkind="gear"\nfollower="j1"\nleader="j2"\n[[loop]]\nkind="gear"\nfollower="j1"\nleader="j3"',
            "loops.toml:5: loop 'loop_1': joint 'j1' already follows 'j2' (loops.toml:1)",
        ),
        (
            '[[loop]]\nkind="gear"\nfollower="j1"\nleader="j2"\n[[loop]]\nkind="gear"\nfollower="j2"\nleader="j1"',
            "mimic joints form a cycle",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        bars(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("loops.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ('<loop_joint type="fixed"/>', "<loop_joint> has no name"),
        ('<loop_joint name="l" type="joint"><link1 link="rod"/><link2 link="rocker"/></loop_joint>', "no 'free'"),
        (JOINED.format("joint", 'free="x q"', ""), "loop_joint 'l' has no axis 'q'"),
        (JOINED.format("joint", 'free="x x"', ""), "want some of x, y, z, rx, ry, rz as free, each once"),
        (JOINED.format("fixed", "", "<limit lower='0'/>"), "axis is '', nothing is free"),
        (JOINED.format("cylindrical", "", "<limit lower='0'/>"), "axis is '', want one of z, rz"),
        (JOINED.format("prismatic", "", "<limit lower='1' upper='0'/>"), "the lower limit 1 is greater than the upper"),
        (JOINED.format("prismatic", "", "<limit/><limit/>"), "z has a second <limit>"),
        (JOINED.format("prismatic", "", "<drive damping='-1'/>"), "damping is -1, want at least 0"),
        (JOINED.format("prismatic", "", "<drive/>"), "has neither stiffness nor damping"),
        (JOINED.format("prismatic", "", "<drive mode='a'/>"), "mode is 'a', want force or acceleration"),
        ('<loop_joint name="l" type="screw"/>', "loop_joint 'l' has unknown type 'screw'; known: fixed"),
        ('<loop_joint name="l" type="fixed"><link1 link="rod"/></loop_joint>', "loop_joint 'l' has no <link2>"),
        (
            '<loop_joint name="l" type="fixed"><link1 link="rot"/><link2 link="rocker"/></loop_joint>',
            "<link1> of loop_joint 'l' names link 'rot', which does not exist; did you mean 'rod'?",
        ),
        (
            '<loop_joint name="l" type="fixed"><link1 link="rod"/><link2 link="rod"/></loop_joint>',
            "connects link 'rod' to itself",
        ),
        (
            '<loop_joint name="l" type="revolute"><link1 link="rod"/><link2 link="rocker"/><axis xyz="0 0 0"/>'
            "</loop_joint>",
            "<axis> of loop_joint 'l' is zero",
        ),
        ('<loop_joint name="l" type="fixed"><origin/></loop_joint>', "want <link1>, <link2>, <axis>"),
        ("<drake:ball_constraint/>", "<drake:ball_constraint> is not supported; a file of --loops may say it"),
    ],
)
def test_loop_joints_that_are_refused(element: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_text(BARS.format(element), name="bars.urdf")
    assert message in str(caught.value)
