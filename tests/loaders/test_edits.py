"""`artsim edit`: branches, joints, shapes and values, against the robot as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.loaders.edits import with_fixed_joints, without_branches, without_shapes
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import UsageError

ROBOTS = Path(artsim.__file__).parents[2] / "robots"
ARM, LEG = ROBOTS / "arm7.urdf", ROBOTS / "leg.xml"
BESIDE = """<mujoco><worldbody><body name="a" pos="0 0 1" euler="10 20 30">
<joint name="p" pos=".1 .2 -.1" axis="1 2 2"/><geom size=".1" mass="1"/>
<body name="b" pos=".3 0 .1"><joint name="s" type="slide" axis="0 3 4" ref=".2"/>
<geom size=".05" mass="2" pos=".02 .01 0"/></body></body></worldbody></mujoco>"""
TWO = """<mujoco><worldbody><body name="a"><joint name="p" axis="1 0 0"/><joint name="r" axis="0 1 0"/>
<geom size=".1" mass="1"/></body></worldbody></mujoco>"""


def edited(model: Path, out: Path, *words: str) -> artsim.Robot:
    done = CliRunner().invoke(cli, ["edit", str(model), *words, "-o", str(out)])
    assert done.exit_code == 0, done.output
    return artsim.load(out)


@pytest.mark.small
@pytest.mark.parametrize("suffix", ["urdf", "xml", "sdf"])
def test_fixed_joints_leave_the_others_as_they_move(suffix: str, tmp_path: Path) -> None:
    """The mass matrix, gravity and places of links are those of the whole robot at these coordinates."""
    robot = artsim.load(ARM)
    made = edited(ARM, tmp_path / f"arm.{suffix}", "--fix", "joint_5=0.4", "--fix", "joint_2=-30deg")
    left = [name for name in robot.labels.coords if name not in ("joint_2", "joint_5")]
    assert tuple(made.labels.coords) == tuple(left)
    q = np.random.default_rng(2).uniform(-1, 1, (5, 7))
    q[:, 1], q[:, 4] = np.deg2rad(-30), 0.4
    rest = [robot.labels.coords.index(name) for name in left]
    quantities = ["mass_matrix", "gravity", "link_position"]
    want, found = robot.compute(q, quantities=quantities), made.compute(q[:, rest], quantities=quantities)
    np.testing.assert_allclose(found["mass_matrix"], want["mass_matrix"][:, rest][:, :, rest], atol=1e-12)
    np.testing.assert_allclose(found["gravity"], want["gravity"][:, rest], atol=1e-12)
    places = [made.links.index(name) for name in robot.links]
    np.testing.assert_allclose(found["link_position"][:, places], want["link_position"], atol=1e-12)


@pytest.mark.small
def test_joints_beside_their_frame_and_with_a_reference(tmp_path: Path) -> None:
    path = tmp_path / "beside.xml"
    path.write_text(BESIDE)
    robot = artsim.load(path)
    made = edited(path, tmp_path / "fixed.xml", "--fix", "p=0.7", "--fix", "s=0.5")
    want = robot.compute(np.array([0.7, 0.5]), quantities=["link_position", "link_quaternion"])
    found = made.compute(np.zeros(0), quantities=["link_position", "link_quaternion"])
    places = [made.links.index(name) for name in robot.links]
    np.testing.assert_allclose(found["link_position"][places], want["link_position"], atol=1e-12)
    turned = np.abs((found["link_quaternion"][places] * want["link_quaternion"]).sum(axis=-1))
    np.testing.assert_allclose(turned, 1.0, atol=1e-12)


@pytest.mark.small
def test_a_fixed_leader_fixes_its_follower_and_ends_what_acts_on_them() -> None:
    leg = load_articulation(LEG)
    made = with_fixed_joints(leg, {"knee": 0.6})
    kinds = {joint.name: joint.kind for joint in made.joints}
    assert kinds["knee"] == kinds["toe"] == "fixed"
    assert kinds["hip_pitch"] == "revolute"
    assert not made.couplings
    assert "knee" not in {actuator.name for actuator in made.actuators}
    told = [str(note) for note in made.notes]
    assert any("couplings that act on what is gone are left out: 'knee - toe'" in line for line in told)
    assert any("actuators that act on what is gone are left out: 'knee'" in line for line in told)
    (key,), (before,) = made.keyframes, leg.keyframes
    assert len(key.qpos) == len(before.qpos) - 2


@pytest.mark.small
def test_branches_go_with_all_that_they_carry(tmp_path: Path) -> None:
    leg = load_articulation(LEG)
    made = without_branches(leg, ["sh*"])
    left = {link.name for link in made.links}
    assert left < {link.name for link in leg.links}
    assert all(joint.child in left for joint in made.joints)
    bare = without_shapes(load_articulation(ARM), "collision", ["link_[1-3]"])
    shown = [geom.role for link in bare.links if link.name in ("link_1", "link_2") for geom in link.geoms]
    assert set(shown) == {"visual"}
    arm = edited(ARM, tmp_path / "arm.urdf", "--drop", "link_6", "--prefix", "l_", "--mass", "link_3=2.5")
    assert arm.links == tuple(f"l_link_{k}" for k in range(6))
    inertial = arm.articulation.links[3].inertial
    assert inertial is not None
    assert inertial.mass == 2.5


@pytest.mark.small
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--drop", "link_9"), "no link 'link_9'; did you mean"),
        (("--fix", "joint_9"), "no joint of one dof 'joint_9'"),
        (("--fix", "joint_1=x"), "--fix: 'x' is not a number"),
        (("--limits", "joint_1=1"), "want JOINT=LOW,HIGH"),
        (("--limits", "joint_1=1,-1"), "the lower 1 is greater than the upper -1"),
        (("--mass", "link_1"), "want NAME=VALUE"),
        (("--drop", "link_0"), "nothing would be left"),
    ],
)
def test_wrong_edits_are_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["edit", str(ARM), *words, "-o", str(tmp_path / "x.urdf")])
    assert refused.exit_code == 2, refused.output
    assert said in refused.output
    assert not (tmp_path / "x.urdf").exists()


@pytest.mark.small
def test_one_of_several_joints_of_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "two.xml").write_text(TWO)
    with pytest.raises(UsageError, match="one of several joints"):
        with_fixed_joints(load_articulation(tmp_path / "two.xml"), {"p": 0.0})
