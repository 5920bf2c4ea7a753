"""The mobility that `artsim check` counts, of linkages with a known one: beside Gruebler's count, and the rank of their
closure's derivative by SVD, from differences of the places that MuJoCo finds for sites."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.sim.ik.loop_freedom import freedom
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.closed_start import assembled
from tests.conftest import corpus_entries
from tests.ik.test_closing import PIN, bennett, linkage
from tests.simulation import Array

pytestmark = pytest.mark.small


class Linkage(NamedTuple):
    """A mechanism with its parts as a textbook counts them."""

    text: str
    links: int  # with the ground
    joints: tuple[int, ...]  # the freedom of each, those that loops close among them; a gear leaves all but one
    mobility: int
    gruebler: int

    def gruebler_s_count(self) -> int:
        """6 (links - 1) - Σ (6 - freedom)."""
        return 6 * (self.links - 1) - sum(6 - freedom_of_joint for freedom_of_joint in self.joints)


def sarrus() -> str:
    """Two pairs of links that fold in planes across each other, and so lift a platform straight up (Sarrus 1853)."""

    def leg(name: str, axis: str, place: str, inner: str) -> str:
        elbow = ".5 0 .5" if axis == "0 1 0" else "0 .5 .5"
        return f"""<body name="{name}1" pos="{place}"><joint name="{name}1" axis="{axis}"/>{GEOM}
          <body name="{name}2" pos="{elbow}"><joint name="{name}2" axis="{axis}"/>{GEOM}{inner}</body></body>"""

    platform = f"""<body name="platform" pos="-.5 0 .5"><joint name="a3" axis="0 1 0"/>{GEOM}
      <site name="one" pos="-1 1 0" euler="0 1.5707963267948966 0"/></body>"""
    tip = '<site name="other" pos="0 -.5 .5" euler="0 1.5707963267948966 0"/>'
    return mechanism(
        leg("a", "0 1 0", "1 0 0", platform) + leg("b", "1 0 0", "0 1 0", tip), '<weld site1="one" site2="other"/>'
    )


def stewart() -> str:
    """Six legs of a universal joint, a slide and a ball between the ground and a platform."""
    legs, sites, loops = "", "", ""
    for n in range(6):
        at = math.pi / 3 * (n + (0.2 if n % 2 else -0.2))
        over = math.pi / 3 * (n + (-0.3 if n % 2 else 0.3))
        legs += f"""<body name="leg{n}" pos="{math.cos(at)} {math.sin(at)} 0">
          <joint name="u{n}" axis="1 0 0"/><joint name="v{n}" axis="0 1 0"/>{GEOM}
          <body name="rod{n}"><joint name="s{n}" type="slide" axis="0 0 1"/>{GEOM}<site name="rod{n}" pos="0 0 1"/>
          </body></body>"""
        sites += f'<site name="eye{n}" pos="{0.6 * math.cos(over)} {0.6 * math.sin(over)} 0"/>'
        loops += f'<connect site1="rod{n}" site2="eye{n}"/>'
    platform = f'<body name="platform" pos=".05 -.03 1.1"><freejoint name="platform"/>{GEOM}{sites}</body>'
    return mechanism(platform + legs, loops)


def six_bar() -> str:
    """Stephenson's: a four-bar linkage whose coupler swings two further bars."""
    text = linkage((0.4, 1.2), (0.9, -0.9), (0.5, -1.4), loop=PIN + '<connect site1="tip" site2="post"/>')
    dyad = f"""<body name="e" pos=".4 .3 0"><joint name="e" axis="0 0 1"/>{GEOM}
      <body name="f" pos=".6 0 0"><joint name="f" axis="0 0 1"/>{GEOM}<site name="tip" pos=".7 0 0"/></body></body>"""
    coupler = '<joint name="j1" axis="0 0 1"/>'
    assert coupler in text
    return text.replace(coupler, coupler + dyad).replace("<worldbody>", '<worldbody><site name="post" pos="1.3 .8 0"/>')


def gripper() -> str:
    """Two fingers of a five-bar linkage each, whose drivers turn alike, with the lengths of a Robotiq 2F-85."""
    fingers, loops = "", '<joint joint1="driver0" joint2="driver1"/>'
    for n in range(2):
        fingers += f"""<body name="side{n}" euler="0 0 {n * math.pi}">
          <body name="driver{n}" pos="0 .0306 .0548"><joint name="driver{n}" axis="1 0 0"/>{GEOM}
            <body name="coupler{n}" pos="0 .0315 -.0041"><joint name="coupler{n}" axis="1 0 0"/>{GEOM}
              <site name="coupler{n}" pos="0 .0051 .0513"/></body></body>
          <body name="spring{n}" pos="0 .0132 .0609"><joint name="spring{n}" axis="1 0 0"/>{GEOM}
            <body name="follower{n}" pos="0 .055 .0375"><joint name="follower{n}" axis="1 0 0"/>{GEOM}
              <site name="follower{n}" pos="0 -.001 .002"/></body></body></body>"""
        loops += f'<connect site1="coupler{n}" site2="follower{n}"/>'
    return mechanism(fingers, loops)


GEOM = '<geom size=".01"/>'


def mechanism(bodies: str, loops: str) -> str:
    """A model in MJCF."""
    return f"""<mujoco><compiler angle="radian" eulerseq="xyz"/><worldbody>{bodies}</worldbody>
      <equality>{loops}</equality></mujoco>"""


LINKAGES = {
    "bennett": Linkage(bennett(0.5, 0.3, 0.9), 4, (1,) * 4, 1, -2),
    "sarrus": Linkage(sarrus(), 6, (1,) * 6, 1, 0),
    "stewart": Linkage(stewart(), 14, (2, 1, 3) * 6, 6, 6),
    # pins that close loops are counted as balls here, which is how files have them, and drivers as geared
    "six-bar": Linkage(six_bar(), 6, (*(1,) * 5, 3, 3), 1, -1),
    "2F-85": Linkage(gripper(), 9, (*(1,) * 8, 3, 3, 5), 3, 1),
}


def robot_of(text: str) -> Robot:
    """The robot, whose welds are hinges about z: MJCF has none."""
    read = load_text(text, name="robot.xml")
    return Robot.of(replace(read, loops=tuple(replace(l, kind="hinge") if l.kind == "weld" else l for l in read.loops)))


def rank(text: str, robot: Robot, q: Array) -> tuple[int, Array, int]:
    """The rank of the closure's derivative at q by SVD, singular values over the largest, and the number of dofs."""
    model = mujoco.MjModel.from_xml_string(text)
    data, here = mujoco.MjData(model), np.zeros(model.nq)
    for n in range(model.njnt):
        name = model.joint(n).name
        coords = q[robot.labels.joint_coords[name]]
        here[model.jnt_qposadr[n] : model.jnt_qposadr[n] + len(coords)] = coords
    h, columns = 1e-6, []
    for k in range(model.nv):
        ends = []
        for sign in (1.0, -1.0):
            moved, step = here.copy(), np.zeros(model.nv)
            step[k] = 1.0
            mujoco.mj_integratePos(model, moved, step, sign * h)
            ends.append(closure(model, data, moved))
        columns.append((ends[0] - ends[1]) / (2 * h))
    assert np.abs(closure(model, data, here)).max() < 1e-9
    sizes = np.linalg.svd(np.array(columns).T, compute_uv=False)
    return int(np.count_nonzero(sizes > 1e-6 * sizes[0])), sizes / sizes[0], model.nv


def closure(model: Any, data: Any, q: Array) -> Array:
    """The errors of a model's equalities, of which welds are hinges about z of their sites."""
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    found: list[float] = []
    for n in range(model.neq):
        one, other = int(model.eq_obj1id[n]), int(model.eq_obj2id[n])
        if model.eq_type[n] == mujoco.mjtEq.mjEQ_JOINT:
            found.append(q[model.jnt_qposadr[one]] - q[model.jnt_qposadr[other]])
            continue
        found += (data.site_xpos[one] - data.site_xpos[other]).tolist()
        if model.eq_type[n] == mujoco.mjtEq.mjEQ_WELD:
            turn = data.site_xmat[one].reshape(3, 3).T @ data.site_xmat[other].reshape(3, 3)
            found += turn[:2, 2].tolist()
    return np.array(found)


@pytest.mark.parametrize("name", [*LINKAGES])
def test_mobility_is_the_known_one(name: str) -> None:
    case = LINKAGES[name]
    robot = robot_of(case.text)
    found = freedom(robot.compiled, robot.equipped, robot.reference)
    assert found is not None
    assert case.gruebler_s_count() == case.gruebler == found.dofs - found.rows
    assert found.left == case.mobility
    assert len(found.redundant) == case.mobility - case.gruebler
    q = assembled(robot, robot.equipped, "*", (), robot.reference)
    independent, sizes, dofs = rank(case.text, robot, q)
    assert dofs - independent == case.mobility
    assert sizes[independent - 1] > 1e-3  # no doubt about the rank
    assert sizes[independent:].max(initial=0.0) < 1e-8


def test_mobility_of_a_public_gripper() -> None:
    entries = [entry for entry in corpus_entries("mjcf") if entry["path"].endswith("robotiq_2f85/2f85.xml")]
    if not entries:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    from tests.conftest import corpus

    robot = artsim.load(Path(str(corpus()), entries[0]["path"]))
    found = freedom(robot.compiled, robot.equipped, robot.reference)
    assert found is not None
    # its drivers' coupling is soft, and a row beside those of two pins in a plane
    assert (found.dofs, found.rows, found.independent_rows, found.left) == (8, 7, 5, 3)
    assert found.redundant == ("loop:connect_0.y", "loop:connect_1.y")


def test_a_soft_coupling_holds_as_soft_loops_do() -> None:
    text = gripper().replace('joint2="driver1"/>', 'joint2="driver1" solref=".005 1"/>')
    robot = robot_of(text)
    q = robot.reference.copy()
    for name, value in (("driver0", 0.2), ("driver1", 0.5)):
        q[robot.labels.joint_coords[name]] = value
    closed = assembled(robot, robot.equipped, "*", (), q)
    assert dict(zip(robot.coords, closed, strict=True))["driver0"] == pytest.approx(
        closed[robot.coords.index("driver1")]
    )
    assert rank(text, robot, closed)[0] == 5


def test_a_weld_without_torque_leaves_rotations_free() -> None:
    """torquescale 0, as in MuJoCo: only the anchor holds."""
    body = f'<body name="ball"><freejoint name="ball"/>{GEOM}</body>'
    for scale, left in ((1, 0), (0, 3)):
        robot = Robot.of(load_text(mechanism(body, f'<weld body1="ball" torquescale="{scale}"/>'), name="robot.xml"))
        found = freedom(robot.compiled, robot.equipped, robot.reference)
        assert found is not None
        assert found.left == left


def test_a_free_base_moves_where_a_loop_ties_it_to_the_world() -> None:
    """The platform of six legs comes to where they can hold it; a base that nothing ties stays."""
    robot = robot_of(stewart())
    q = robot.reference.copy()
    q[robot.labels.joint_coords["platform"]] = [3.0, -2.0, 5.0, 0.5, 0.5, -0.5, 0.5]
    for n in range(6):
        q[robot.labels.joint_coords[f"s{n}"]] = 0.1
    closed = assembled(robot, robot.equipped, "*", (), q)
    assert np.abs(closed - q).max() > 0.01
    rank(stewart(), robot, closed)  # closed for MuJoCo, too
    body = f'<body name="box"><freejoint name="box"/>{GEOM}'
    tied = (
        body
        + linkage((0.4, 1.2), (0.9, -0.9), (0.5, -1.4), loop=PIN)
        .partition("<worldbody>")[2]
        .partition("</worldbody>")[0]
    )
    free = robot_of(mechanism(tied + "</body>", PIN))
    start = free.reference.copy()
    start[free.labels.joint_coords["box"]] = [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]
    at_rest = assembled(free, free.equipped, "*", (), start)
    box = free.labels.joint_coords["box"]
    assert at_rest[box].tolist() == start[box].tolist()
