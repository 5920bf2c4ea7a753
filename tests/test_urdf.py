"""The URDF reader, element by element, and against Pinocchio on random files."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from artsim.loaders.elements import parse_number, parse_numbers, quaternion_from_rpy
from artsim.loaders.inertia import balanced, breaks_triangle, is_negative, principal_moments
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.urdf import quaternion_from_z
from artsim.sim.description import Articulation, Geom, Joint
from artsim.sim.errors import ModelError

LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def read(*parts: str) -> Articulation:
    """A robot of these elements."""
    return load_text(f'<robot name="r">{"".join(parts)}</robot>', name="r.urdf")


def one_joint(inside: str, kind: str = "revolute", *more: str) -> tuple[Joint, Articulation]:
    """A joint j between links a and b."""
    ends = '<parent link="a"/><child link="b"/>'
    articulation = read(
        '<link name="a"/><link name="b"/>', f'<joint name="j" type="{kind}">{ends}{inside}</joint>', *more
    )
    return articulation.joints[0], articulation


def one_geom(geometry: str, role: str = "collision", more: str = "", *others: str) -> Geom:
    """A link with one shape."""
    articulation = read(f'<link name="a"><{role}>{more}<geometry>{geometry}</geometry></{role}></link>', *others)
    return articulation.links[0].geoms[0]


# --- numbers and rotations -------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_is_read_back(value: float) -> None:
    assert parse_number(repr(value)) == value
    assert parse_number(f"  {value:+.17e}\n") == value


@given(st.text(max_size=12))
def test_whatever_is_read_as_a_number_is_a_finite_one(text: str) -> None:
    try:
        value = parse_number(text)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert math.isfinite(value)
    assert value == float(text)
    assert text.isascii() or text.strip().isascii()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6), st.sampled_from([" ", "\t", "\n", "   "]))
def test_vectors_split_at_white_space_of_any_kind(values: list[float], space: str) -> None:
    text = space.join(map(repr, values))
    assert parse_numbers(text, len(values)) == tuple(values)
    with pytest.raises(ValueError, match="want"):
        parse_numbers(text, len(values) + 1)


@given(*[st.floats(-10, 10)] * 3)
def test_rpy_is_yaw_after_pitch_after_roll(roll: float, pitch: float, yaw: float) -> None:
    cr, sr, cp, sp, cy, sy = (f(x) for x in (roll, pitch, yaw) for f in (math.cos, math.sin))
    rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    q = np.array(quaternion_from_rpy(roll, pitch, yaw))
    assert abs(np.linalg.norm(q) - 1) < 4e-16
    np.testing.assert_allclose(matrix(q), rz @ ry @ rx, rtol=0, atol=2e-15)


def matrix(q: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The rotation of a unit quaternion (w, x, y, z)."""
    w, x, y, z = q
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + 2 * w * cross + 2 * cross @ cross)


@given(st.integers(0, 10_000))
def test_principal_moments_are_the_eigenvalues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-6, 3)
    a = a + a.T if seed % 2 else a @ a.T
    moments = principal_moments((a[0, 0], a[0, 1], a[0, 2], a[1, 1], a[1, 2], a[2, 2]))
    np.testing.assert_allclose(moments, np.linalg.eigvalsh(a), rtol=0, atol=3e-15 * np.abs(a).max() * 3)


def test_which_inertias_are_possible() -> None:
    assert not is_negative((-1e-9, 1.0, 1.0))  # six digits in a file make this of a rod
    assert is_negative((-1e-3, 1.0, 1.0))
    assert is_negative((-1.0, -1.0, -1.0))
    assert not breaks_triangle((1.0, 2.0, 3.0))
    assert breaks_triangle((1.0, 2.0, 3.1))
    assert balanced((1.0, 1.0, 4.0)) == (2.0, 0.0, 0.0, 2.0, 0.0, 2.0)


# --- links -----------------------------------------------------------------------------------------------------------


def test_inertial_with_its_own_frame() -> None:
    inertia = '<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/>'
    link = read(
        f'<link name="a"><inertial><origin xyz="1 2 3" rpy="0 0 {math.pi / 2!r}"/><mass value="4"/>{inertia}</inertial>'
        "</link>"
    ).links[0]
    assert link.inertial is not None
    assert link.inertial.mass == 4
    assert link.inertial.pose.position == (1, 2, 3)
    assert link.inertial.pose.rotation == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5)), abs=1e-15)
    assert link.inertial.inertia == (1, 0.1, 0.2, 2, 0.3, 2.5)


def test_massless_links_load_and_a_second_inertial_is_ignored() -> None:
    zero = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    articulation = read(
        f'<link name="a"><inertial><mass value="0"/>{zero}</inertial><inertial><mass value="9"/>{zero}</inertial>'
        "</link>"
    )
    assert articulation.links[0].inertial is not None
    assert articulation.links[0].inertial.mass == 0
    assert [note.message for note in articulation.notes] == ["link 'a': 2 <inertial> elements; the first counts"]
    assert read('<link name="a"/>').links[0].inertial is None


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ('<box size="1 2 3"/>', "box", (0.5, 1.0, 1.5)),
        ('<sphere radius="2"/>', "sphere", (2.0,)),
        ('<cylinder radius="2" length="3"/>', "cylinder", (2.0, 1.5)),
        ('<capsule radius="2" length="3"/>', "capsule", (2.0, 1.5)),
        ('<ellipsoid a="1" b="2" c="3"/>', "ellipsoid", (1.0, 2.0, 3.0)),
        ("<plane/>", "plane", (0.0, 0.0)),
        ('<mesh filename="a.stl" scale="1 -2 3"/>', "mesh", ()),
    ],
)
def test_shapes(geometry: str, kind: str, size: tuple[float, ...]) -> None:
    geom = one_geom(geometry, more='<origin xyz="1 2 3"/>')
    assert (geom.kind, geom.size, geom.pose.position) == (kind, size, (1, 2, 3))
    assert geom.scale == ((1, -2, 3) if kind == "mesh" else (1, 1, 1))


@given(*[st.floats(-1, 1)] * 3)
@example(1e-9, 2e-7, -1.0)
@example(0.0, 1e-200, -1.0)
@example(0.0, 0.0, -1.0)
def test_a_plane_faces_its_normal(x: float, y: float, z: float) -> None:
    assume(math.hypot(x, y, z) > 1e-3)
    normal = np.array([x, y, z]) / math.hypot(x, y, z)
    np.testing.assert_allclose(matrix(np.array(quaternion_from_z(tuple(normal))))[:, 2], normal, rtol=0, atol=2e-15)


def test_several_visuals_and_collisions_keep_their_order_and_names() -> None:
    box = '<geometry><box size="1 1 1"/></geometry>'
    link = read(
        f'<link name="a"><collision>{box}</collision><visual>{box}</visual><collision name="c">{box}</collision>'
        f"<visual>{box}</visual><collision>{box}</collision></link>"
    ).links[0]
    assert [geom.name for geom in link.geoms] == ["a_visual", "a_visual_1", "a_collision", "c", "a_collision_2"]
    assert [geom.role for geom in link.geoms] == ["visual"] * 2 + ["collision"] * 3


def test_materials_by_name_and_of_their_own() -> None:
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    for material, rgba in (
        ('<material name="red"/>', (1, 0, 0, 1)),
        ('<material name=""><color rgba="0 1 0 0.5"/></material>', (0, 1, 0, 0.5)),
        ('<material name="unknown"/>', None),
    ):
        geom = one_geom('<sphere radius="1"/>', "visual", material, red)
        assert geom.material is not None
        assert geom.material.rgba == rgba


def test_scale_of_one_number_and_of_four() -> None:
    assert one_geom('<mesh filename="a.stl" scale="0.001"/>').scale == (0.001, 0.001, 0.001)
    assert one_geom('<mesh filename="a.stl" scale="1 2 3 1"/>').scale == (1, 2, 3)
    with pytest.raises(ModelError, match="flattens"):
        one_geom('<mesh filename="a.stl" scale="1 0 1"/>')


# --- joints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected", "axis", "limits"),
    [
        ("fixed", "fixed", (0, 0, 1), (None, None, None, None)),
        ("revolute", "revolute", (0, 0.6, 0.8), (-1, 2, 3, 4)),
        ("continuous", "continuous", (0, 0.6, 0.8), (None, None, 3, 4)),
        ("prismatic", "prismatic", (0, 0.6, 0.8), (-1, 2, 3, 4)),
        ("floating", "free", (0, 0, 1), (None, None, None, None)),
        ("planar", "planar", (0, 0.6, 0.8), (None, None, 3, 4)),
    ],
)
def test_joint_types(kind: str, expected: str, axis: object, limits: object) -> None:
    joint, _ = one_joint(f'<axis xyz="0 0.6 0.8"/>{LIMIT}', kind)
    assert (joint.kind, joint.parent, joint.child) == (expected, "a", "b")
    assert joint.axis == pytest.approx(axis, abs=1e-16)
    assert (joint.lower, joint.upper, joint.effort, joint.velocity) == limits


def test_what_is_missing_is_as_urdfdom_has_it() -> None:
    joint, _ = one_joint('<limit effort="1" velocity="1" upper="2"/>')
    assert joint.axis == (1, 0, 0)
    assert joint.pose.position == (0, 0, 0)
    assert joint.pose.rotation == (1, 0, 0, 0)
    assert (joint.lower, joint.upper) == (0, 2)
    locked, articulation = one_joint('<limit effort="1" velocity="1"/>')
    assert (locked.lower, locked.upper) == (0, 0)
    assert "locked" in articulation.notes[0].message
    unbounded, _ = one_joint('<limit effort="0" velocity="0" lower="-1" upper="1"/>')
    assert (unbounded.effort, unbounded.velocity) == (None, None)


def test_dynamics_and_a_spring_of_gazebo() -> None:
    spring = "<springStiffness>7</springStiffness><springReference>0.5</springReference>"
    joint, _ = one_joint(
        f'{LIMIT}<dynamics damping="0.3" friction="0.4"/>', "revolute", f'<gazebo reference="j">{spring}</gazebo>'
    )
    assert (joint.damping, joint.friction, joint.stiffness, joint.spring_reference) == (0.3, 0.4, 7, 0.5)
    with pytest.raises(ModelError, match="friction -1 is negative"):
        one_joint(f'{LIMIT}<dynamics friction="-1"/>')


def test_quaternion_of_urdf_1_2() -> None:
    joint, _ = one_joint(f'{LIMIT}<origin quat_xyzw="0 0 3 4"/>')
    assert joint.pose.rotation == pytest.approx((0.8, 0, 0, 0.6), abs=1e-16)
    with pytest.raises(ModelError, match="both"):
        one_joint(f'{LIMIT}<origin quat_xyzw="0 0 3 4" rpy="0 0 0"/>')


def test_mimic_of_a_fixed_leader_and_of_a_fixed_follower() -> None:
    ends = '<parent link="a"/><child link="{}"/>'
    fixed = f'<joint name="f" type="fixed">{ends.format("b")}{{}}</joint>'
    moving = f'<joint name="j" type="revolute">{ends.format("c")}{LIMIT}{{}}</joint>'
    links = '<link name="a"/><link name="b"/><link name="c"/>'
    held = read(links, fixed.format(""), moving.format('<mimic joint="f" multiplier="2" offset="0.5"/>'))
    assert [(c.follower, c.leader, c.coefficients) for c in held.couplings] == [("j", None, (0.5,))]
    ignored = read(links, fixed.format('<mimic joint="j"/>'), moving.format(""))
    assert ignored.couplings == ()
    assert "ignored" in ignored.notes[0].message


def test_transmissions_and_rotors() -> None:
    drake = 'xmlns:drake="http://drake.mit.edu"'
    forms = {
        '<type>T</type><joint name="j"/><actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>': (
            50,
            0,
        ),
        '<joint name="j"/><actuator name="m"/><mechanicalReduction>-2</mechanicalReduction>': (-2, 0),
        '<joint name="j"><mechanicalReduction>3</mechanicalReduction></joint><actuator name="m"/>': (3, 0),
        '<joint name="j"/><actuator name="m"><motorInertia>0.5</motorInertia>'
        "<mechanicalReduction>4</mechanicalReduction></actuator>": (4, 8),
        f'<joint name="j"/><actuator name="m" {drake}><drake:rotor_inertia value="0.5"/>'
        '<drake:gear_ratio value="2"/></actuator>': (1, 2),
    }
    for inside, (gear, armature) in forms.items():
        joint, articulation = one_joint(LIMIT, "revolute", f'<transmission name="t">{inside}</transmission>')
        assert [(a.name, a.target, a.gear) for a in articulation.actuators] == [("m", "j", (gear,))]
        assert joint.armature == armature


# --- extensions ------------------------------------------------------------------------------------------------------


def test_gazebo_friction_and_self_collision() -> None:
    link = '<link name="a"><collision><geometry><sphere radius="1"/></geometry></collision></link>'
    gazebo = (
        '<gazebo reference="a"><mu1>0.3</mu1><mu2 value="0.3"/><selfCollide>true</selfCollide><kp>1e5</kp></gazebo>'
    )
    articulation = read(link, gazebo)
    assert articulation.links[0].geoms[0].friction == (0.3, 0, 0)
    assert articulation.links[0].self_collide is True
    assert [note.message for note in articulation.notes] == ["<gazebo><kp> is ignored: contacts are rigid"]


def test_bullet_friction() -> None:
    values = {"lateral_friction": 0.5, "rolling_friction": 0.1, "spinning_friction": 0.2}
    contact = "".join(f'<{name} value="{value}"/>' for name, value in values.items())
    ball = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    link = f'<link name="a"><contact>{contact}</contact>{ball}</link>'
    assert read(link).links[0].geoms[0].friction == (0.5, 0.2, 0.1)


def test_mujoco_extension() -> None:
    plate = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="4"/></inertial>'
    extension = (
        '<mujoco><compiler balanceinertia="true" boundmass="2" discardvisual="false"/>'
        '<option timestep="0.01" gravity="0 0 -1" integrator="RK4" cone="elliptic"/></mujoco>'
    )
    articulation = read(f'<link name="a">{plate}</link>', extension)
    inertial = articulation.links[0].inertial
    assert inertial is not None
    assert (inertial.mass, inertial.inertia) == (2, (2, 0, 0, 2, 0, 2))
    assert (articulation.options.timestep, articulation.options.gravity) == (0.01, (0, 0, -1))
    assert articulation.options.integrator == "RK4"
    assert any("'cone' is ignored" in note.message for note in articulation.notes)


def test_what_is_not_read_is_said() -> None:
    drake = 'xmlns:drake="http://drake.mit.edu"'
    articulation = read('<link name="a"><safety/></link>', "<loop_joint/>", f'<drake:joint {drake} name="x"/>')
    assert {note.message.split(" is not part")[0] for note in articulation.notes} == {
        "<safety> of link 'a'",
        "<loop_joint>",
        "<drake:joint>",
    }


def test_a_default_namespace_and_comments_change_nothing() -> None:
    text = '<robot name="r" xmlns="http://drake.mit.edu"><!-- a --><link name="a"/><?go on?></robot>'
    assert [link.name for link in load_text(text, name="r").links] == ["a"]


# --- order, text, other engines --------------------------------------------------------------------------------------


def test_links_are_depth_first_with_children_in_file_order() -> None:
    edges = [("r", "x"), ("r", "y"), ("x", "p"), ("y", "q"), ("x", "s"), ("p", "t")]
    links = "".join(f'<link name="{name}"/>' for name in "tsqpyxr")
    joints = [f'<joint name="to_{b}" type="fixed"><parent link="{a}"/><child link="{b}"/></joint>' for a, b in edges]
    articulation = read(links, *joints)
    assert [link.name for link in articulation.links] == list("rxptsyq")
    assert [joint.child for joint in articulation.joints] == list("xptsyq")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_stored_text_reads_as_the_file_did(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<robot name="r"><link name="größe"/></robot>'
    path.write_bytes(text.encode(encoding))
    first = load_articulation(path, base="floating")
    again = load_text(first.text, name=str(path), base="floating")
    assert again == first
    assert first.base == "floating"
    assert load_text(first.text.encode(), name=str(path), base="floating") == first


@pytest.mark.parametrize("seed", range(5))
def test_random_robots_are_pinocchios(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    text = random_robot(seed)
    articulation = load_text(text, name="random.urdf")
    model = pin.buildModelFromXML(text)
    assert len(articulation.joints) == model.njoints - 1
    for joint in articulation.joints:
        index = model.getJointId(joint.name)
        placement = model.jointPlacements[index]
        np.testing.assert_allclose(matrix(np.array(joint.pose.rotation)), placement.rotation, rtol=0, atol=2e-15)
        np.testing.assert_allclose(joint.pose.position, placement.translation, rtol=0, atol=1e-15)
        link = next(link for link in articulation.links if link.name == joint.child)
        assert link.inertial is not None
        rotation = matrix(np.array(link.inertial.pose.rotation))
        xx, xy, xz, yy, yz, zz = link.inertial.inertia
        inertia = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
        np.testing.assert_allclose(inertia, model.inertias[index].inertia, rtol=0, atol=2e-14)
        np.testing.assert_allclose(link.inertial.pose.position, model.inertias[index].lever, rtol=0, atol=1e-15)
        assert model.inertias[index].mass == link.inertial.mass
        column = model.idx_qs[index]
        assert (model.lowerPositionLimit[column], model.upperPositionLimit[column]) == (joint.lower, joint.upper)
        assert (model.effortLimit[model.idx_vs[index]], model.damping[model.idx_vs[index]]) == (
            joint.effort,
            joint.damping,
        )


def random_robot(seed: int, count: int = 20) -> str:
    """A tree of moving links with everything random."""
    rng = random.Random(seed)

    def vector(scale: float = 1.0) -> str:
        return " ".join(repr(rng.uniform(-scale, scale)) for _ in range(3))

    parts = ['<link name="l0"/>']
    for i in range(1, count + 1):
        a, b, c = sorted(rng.uniform(0.5, 1) for _ in range(3))
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="{vector()}" rpy="{vector(4)}"/><mass value="{rng.random()!r}"/>'
            f'<inertia ixx="{a!r}" ixy="0.01" ixz="-0.02" iyy="{b!r}" iyz="0.03" izz="{c!r}"/></inertial></link>'
            f'<joint name="j{i}" type="{rng.choice(["revolute", "prismatic"])}"><parent link="l{rng.randrange(i)}"/>'
            f'<child link="l{i}"/><origin xyz="{vector()}" rpy="{vector(4)}"/><axis xyz="{vector()}"/>'
            f'<limit lower="{rng.uniform(-2, 0)!r}" upper="{rng.uniform(0, 2)!r}" effort="{i}" velocity="1"/>'
            f'<dynamics damping="{rng.random()!r}"/></joint>'
        )
    return f'<robot name="random">{"".join(parts)}</robot>'
