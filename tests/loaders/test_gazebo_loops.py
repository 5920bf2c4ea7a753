"""Joints of SDF in a URDF's <gazebo>, which close loops: beside <loop_joint>, beside SDF's own, and refused forms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.writers.write import write_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.pose_algebra import rotate
from artsim.sim.foundation.errors import ModelError

LINKS = "".join(
    f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial></link>"
    for name in ("base", "crank", "rod", "rocker")
)


def joint(name: str, parent: str, child: str, xyz: str, rpy: str = "0 0 0") -> str:
    """A continuous joint about y."""
    return (
        f'<joint name="{name}" type="continuous"><origin xyz="{xyz}" rpy="{rpy}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="0 1 0"/></joint>'
    )


TREE = (
    joint("turn", "base", "crank", "0 0 0", "0 0.3 0")
    + joint("knee", "crank", "rod", "0.2 0 0", "0 -0.3 0")
    + joint("swing", "base", "rocker", "0.6 0 0", "0 0 0.4")
)


def fourbar(*more: str) -> Articulation:
    """A crank, a rod and a rocker, whose loop is still open."""
    return load_text(f'<robot name="r">{LINKS}{TREE}{"".join(more)}</robot>', name="r.urdf")


def gazebo(inside: str = "<axis><xyz>0 1 0</xyz></axis>", kind: str = "revolute", ends: str = "") -> str:
    """A <gazebo> with the joint that closes the loop."""
    ends = ends or "<parent>rod</parent><child>rocker</child>"
    return f'<gazebo><joint name="shut" type="{kind}">{ends}<pose>0 0 0.1 0 0 0</pose>{inside}</joint></gazebo>'


def test_frames_meet_where_all_joints_are_at_0() -> None:
    robot = fourbar(gazebo())
    (loop,) = robot.loops
    assert (loop.name, loop.kind, loop.link_a, loop.link_b) == ("shut", "hinge", "rod", "rocker")
    assert loop.frame_b.position == (0.0, 0.0, 0.1)
    # the rod is at crank's end, 0.2 along x turned by 0.3 about y, with axes of the base; the rocker at 0.6
    end = (0.2 * math.cos(0.3), 0.0, -0.2 * math.sin(0.3))
    assert loop.frame_a.position == pytest.approx((0.6 - end[0], 0.0, 0.1 - end[2]), abs=1e-15)
    turned = (-math.sin(0.4), math.cos(0.4), 0.0)  # y of the rocker, which is turned by 0.4 about z
    assert rotate(loop.frame_a.rotation, (0.0, 0.0, 1.0)) == pytest.approx(turned, abs=1e-15)
    assert rotate(loop.frame_b.rotation, (0.0, 0.0, 1.0)) == pytest.approx((0.0, 1.0, 0.0), abs=1e-15)


@pytest.mark.parametrize("axis", ['<xyz expressed_in="__model__">0 1 0</xyz>', "<xyz>0 1 0</xyz>"])
def test_axes_are_in_the_joint_unless_another_frame_is_named(axis: str) -> None:
    (loop,) = fourbar(gazebo(f"<axis>{axis}</axis>")).loops
    in_base = (0.0, 1.0, 0.0) if "model" in axis else (-math.sin(0.4), math.cos(0.4), 0.0)
    assert rotate(loop.frame_a.rotation, (0.0, 0.0, 1.0)) == pytest.approx(in_base, abs=1e-15)  # the rod is not turned


def test_old_axes_of_the_model() -> None:
    old = "<axis><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>"
    new = '<axis><xyz expressed_in="__model__">0 1 0</xyz></axis>'
    assert fourbar(gazebo(old)).loops[0].frame_a == fourbar(gazebo(new)).loops[0].frame_a


def test_limits_friction_and_springs_act_along_the_axis() -> None:
    inside = (
        "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper></limit><dynamics><damping>0.2</damping>"
        "<friction>0.3</friction><spring_stiffness>4</spring_stiffness><spring_reference>0.5</spring_reference>"
        "</dynamics></axis>"
    )
    (tendon,) = fourbar(gazebo(inside)).tendons
    assert (tendon.lower, tendon.upper, tendon.damping, tendon.friction) == (-1.0, 2.0, 0.2, 0.3)
    assert (tendon.stiffness, tendon.spring_length) == (4.0, (0.5, 0.5))


@pytest.mark.parametrize(
    ("kind", "made"), [("fixed", "weld"), ("ball", "connect"), ("prismatic", "joint"), ("continuous", "hinge")]
)
def test_kinds(kind: str, made: str) -> None:
    (loop,) = fourbar(gazebo(kind=kind)).loops
    assert loop.kind == made


@pytest.mark.parametrize("kind", ["screw", "gearbox", "universal", "gear"])
def test_kinds_that_close_no_loop_are_told(kind: str) -> None:
    robot = fourbar(gazebo(kind=kind))
    assert not robot.loops
    assert [note.message for note in robot.notes] == [
        f"<gazebo>: joint 'shut' closes a loop, which a {kind} joint cannot do here: ignored"
    ]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (gazebo(ends="<parent>rood</parent><child>rocker</child>"), "names 'rood', which does not exist; did you"),
        (gazebo(ends="<parent>rod</parent><child>rod</child>"), "connects link 'rod' to itself"),
        (gazebo(ends="<parent>rod</parent>"), "has no <child>"),
        (gazebo(inside=""), "has no <axis>"),
        (gazebo("<axis><xyz>0 0 0</xyz></axis>"), "is zero, want a direction"),
        ('<gazebo><joint type="revolute"/></gazebo>', "has no name"),
    ],
)
def test_refused_with_file_and_line(element: str, message: str) -> None:
    with pytest.raises(ModelError, match=r"^r\.urdf:1: ") as caught:
        fourbar(element)
    assert message in str(caught.value)


def test_the_name_of_a_joint_is_told() -> None:
    robot = fourbar(gazebo().replace('"shut"', '"knee"'))
    assert not robot.loops
    assert [note.message for note in robot.notes] == ["<gazebo>: joint 'knee' has the name of a joint: ignored"]


def test_a_run_is_that_of_the_loop_joint(tmp_path: Path) -> None:
    flat = TREE.replace('rpy="0 0 0.4"', 'rpy="0 0 0"')  # which leaves a four-bar that moves
    (loop,) = load_text(f'<robot name="r">{LINKS}{flat}{gazebo()}</robot>', name="r.urdf").loops
    ends = "".join(
        f'<link{n} link="{link}" xyz="{" ".join(map(repr, frame.position))}"/>'
        for n, link, frame in ((1, loop.link_a, loop.frame_a), (2, loop.link_b, loop.frame_b))
    )
    other = f'<loop_joint name="shut" type="revolute">{ends}<axis xyz="0 1 0"/></loop_joint>'
    runs = []
    for count, closing in enumerate((gazebo(), other)):
        path = tmp_path / f"{count}.urdf"
        path.write_text(f'<robot name="r">{LINKS}{flat}{closing}</robot>')
        runs.append(artsim.simulate(artsim.load(path), steps=100, dt=1e-3)["qpos"])
    assert np.abs(runs[0] - runs[1]).max() < 1e-9
    assert np.ptp(runs[0], axis=0).min() > 1e-3


# --- written ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["revolute", "ball", "fixed", "prismatic"])
def test_written_as_both_and_read_as_one(kind: str, tmp_path: Path) -> None:
    made = write_articulation(fourbar(gazebo(kind=kind)), tmp_path / "out.urdf")
    assert made.proof is not None
    assert made.proof.holds
    assert not made.losses.physical
    text = made.path.read_text()
    assert text.count('name="shut"') == 2
    again = load_articulation(made.path)
    assert not again.notes
    assert len(again.loops) == 1
    alone = load_text(text.partition("<loop_joint")[0] + text.partition("</loop_joint>")[2], name="r.urdf")
    (first,), (second,) = again.loops, alone.loops
    assert (first.kind, first.link_a, first.link_b) == (second.kind, second.link_a, second.link_b)
    assert first.frame_a.position == pytest.approx(second.frame_a.position, abs=1e-12)
    assert first.frame_b.position == pytest.approx(second.frame_b.position, abs=1e-12)


def test_a_twin_that_says_something_else_is_told(tmp_path: Path) -> None:
    made = write_articulation(fourbar(gazebo()), tmp_path / "out.urdf")
    moved = made.path.read_text().replace("<pose>0 0 0.1", "<pose>0 0 0.2")
    robot = load_text(moved, name="r.urdf")
    assert [note.message for note in robot.notes] == [
        "<gazebo>: joint 'shut' differs from <loop_joint> 'shut', which counts"
    ]
    assert robot.loops[0].frame_b.position == pytest.approx((0.0, 0.0, 0.1))


def test_a_loop_that_is_open_at_0_is_written_as_a_loop_joint_alone(tmp_path: Path) -> None:
    ends = '<link1 link="rod" xyz="0.3 0 0"/><link2 link="rocker"/><axis xyz="0 1 0"/>'
    robot = fourbar(f'<loop_joint name="shut" type="revolute">{ends}</loop_joint>')
    made = write_articulation(robot, tmp_path / "out.urdf")
    assert made.proof is not None
    assert made.proof.holds
    assert "<gazebo>" not in made.path.read_text()
