"""SRDF: pairs that do not touch, and the words with which wrong files are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.loaders.srdf import with_srdf
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.geometry.collision_pairs import collision_pairs

SHAPE = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
MASS = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LINKS = ("base", "upper", "fore", "hand")
URDF = (
    '<robot name="arm">'
    + "".join(f'<link name="{name}">{MASS}{SHAPE}</link>' for name in LINKS)
    + "".join(
        f'<joint name="{child}" type="continuous"><parent link="{parent}"/><child link="{child}"/></joint>'
        for parent, child in pairwise(LINKS)
    )
    + "</robot>"
)
APART = {"base fore", "base hand", "upper hand"}  # no joint between them


def read(content: str, name: str = "arm") -> Articulation:
    robot = load_text(URDF, name="arm.urdf")
    return with_srdf(robot, f'<robot name="{name}">\n{content}\n</robot>', file="arm.srdf")


def touching(robot: Articulation) -> set[str]:
    pairs = collision_pairs(robot, compile_model(robot))
    names = [robot.links[n].name for n, _ in pairs.geoms]
    return {f"{names[a]} {names[b]}" for a, b in np.argwhere(np.triu(pairs.allowed))}


DISABLE = '<disable_collisions link1="{}" link2="{}" reason="Never"/>'
DEFAULT = '<disable_default_collisions link="hand"/>'


@pytest.mark.parametrize(
    "content, want",
    [
        ("", APART),
        (DISABLE.format("base", "upper"), APART),
        (DISABLE.format("hand", "base"), {"base fore", "upper hand"}),
        (DISABLE.format("hand", "base") + DISABLE.format("base", "fore"), {"upper hand"}),
        (DEFAULT, {"base fore"}),
        (DEFAULT + '<enable_collisions link1="base" link2="hand"/>', {"base fore", "base hand"}),
        ('<enable_collisions link1="hand" link2="base"/>' + DEFAULT, {"base fore", "base hand"}),
        (DEFAULT + '<enable_collisions link1="base" link2="hand"/>' + DISABLE.format("base", "hand"), {"base fore"}),
    ],
)
def test_what_does_not_touch(content: str, want: set[str]) -> None:
    assert touching(read(content)) == want


def test_without_an_srdf_nothing_of_a_robot_touches_it() -> None:
    assert touching(load_text(URDF, name="arm.urdf")) == set()


def test_plans_and_poses_are_passed_over_in_a_word() -> None:
    content = (
        '<group name="g"><chain base_link="base" tip_link="hand"/></group><group_state name="home" group="g"/>'
        '<group_state name="ready" group="g"/><virtual_joint name="v"/><end_effector name="e"/>'
    )
    robot = read(content)
    assert [str(note) for note in robot.notes] == ["arm.srdf:2: group states are not read: give a start by --q0"]
    assert touching(robot) == APART


def test_odd_files_are_warned_of() -> None:
    notes = [str(note) for note in read("<magic/>", name="leg").notes]
    assert notes == [
        "arm.srdf:1: is about robot 'leg', the model is 'arm'",
        "arm.srdf:2: <magic> is ignored: not known",
    ]


@pytest.mark.parametrize(
    "content, words",
    [
        (DISABLE.format("hadn", "base"), "arm.srdf:2: .*link 'hadn' does not exist; did you mean 'hand'"),
        ('<enable_collisions link1="hand" link2="x"/>', "arm.srdf:2: .*link 'x' does not exist"),
        ('<disable_default_collisions link="foree"/>', "arm.srdf:2: .*did you mean 'fore'"),
        ('<disable_collisions link1="hand"/>', "arm.srdf:2: .*has no 'link2' attribute"),
        ("<disable_collisions", "arm.srdf:3: not well-formed"),
    ],
)
def test_wrong_files_are_refused(content: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read(content)


def test_something_else_than_an_srdf_is_refused() -> None:
    with pytest.raises(ModelError, match=r"x.srdf:1: root is <mujoco>, want <robot>"):
        with_srdf(load_text(URDF, name="arm.urdf"), "<mujoco/>", file="x.srdf")
