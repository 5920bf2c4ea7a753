"""The SDF reader: against Drake's values, against equal URDFs written by hand, element by element, and its refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import SceneEntry, load_articulation, load_scene, load_text
from artsim.loaders.stored import load_stored
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Pose, Source
from artsim.sim.foundation.errors import ArtsimError, ModelError
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.geometry.collision_pairs import collision_pairs
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from tests.loaders.sdf_models import ANGLES, DRAKE, MODELS, inertial

pytestmark = pytest.mark.small


def read(content: str, version: str = "1.11", **options: Any) -> Articulation:
    """A model r of this content."""
    return load_text(f'<sdf version="{version}"><model name="r">{content}</model></sdf>', name="r.sdf", **options)


def link(name: str, pose: str = "", mass: float = 1.0, more: str = "") -> str:
    """A link whose inertia is asymmetric."""
    place = f"<pose>{pose}</pose>" if pose else ""
    return f'<link name="{name}">{place}{inertial(mass, "0.1 0.02 -0.03 0.2 0 0.1")}{more}</link>'


def joint(name: str, kind: str, parent: str, child: str, axis: str = "", more: str = "") -> str:
    """A joint, about or along an axis of its own frame."""
    about = f"<axis><xyz>{axis}</xyz></axis>" if axis else ""
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{about}{more}</joint>'


def base(name: str = "base") -> str:
    """A link that stands in the world."""
    return link(name) + joint(f"hold_{name}", "fixed", "world", name)


def urdf_link(name: str, mass: float = 1.0) -> str:
    """The link that `link` makes, in URDF."""
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 0.02 -0.03" rpy="0.2 0 0.1"/><mass value="{mass}"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.025" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>'
    )


def urdf(*joints: str, links: str = "base", bare: str = "") -> Articulation:
    """A URDF of these joints; `bare` links weigh nothing."""
    made = "".join(map(urdf_link, links.split())) + "".join(f'<link name="{name}"/>' for name in bare.split())
    return load_text(f'<robot name="r">{made}{"".join(joints)}</robot>', name="r.urdf")


def urdf_joint(name: str, kind: str, parent: str, child: str, origin: str, axis: str, more: str = "") -> str:
    """A joint in URDF; origin: x y z, and roll pitch yaw after a comma."""
    xyz, _, rpy = origin.partition(",")
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy or "0 0 0"}"/><axis xyz="{axis}"/>{more}</joint>'
    )


WIDE = '<limit lower="-9" upper="9" effort="1"/>'


def assert_equal_robots(one: Articulation, other: Articulation, seed: int = 0) -> None:
    """At random coordinates: the poses of links that both have, reduced mass matrices and gravity, dof by dof."""
    a, b = Robot.of(one), Robot.of(other)
    assert set(a.independent_dofs) == set(b.independent_dofs)
    rng = np.random.default_rng(seed)
    values = {name: rng.uniform(-0.8, 0.8) for name in (*a.coords, *b.coords)}
    found = []
    for robot in (a, b):
        q = np.array([values[name] for name in robot.coords])
        q = np.where([name.endswith((".qw", ".qx", ".qy", ".qz")) for name in robot.coords], robot.reference, q)
        names = ("link_position", "link_quaternion", "mass_matrix", "gravity")
        found.append(robot.compute(q, quantities=names, reduced=True))
    order = [b.independent_dofs.index(name) for name in a.independent_dofs]
    np.testing.assert_allclose(found[0]["mass_matrix"], found[1]["mass_matrix"][order][:, order], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found[0]["gravity"], found[1]["gravity"][order], rtol=0, atol=1e-13)
    shared = [name for name in a.links if name in b.links]
    assert shared
    for name in shared:
        i, j = a.links.index(name), b.links.index(name)
        np.testing.assert_allclose(found[0]["link_position"][i], found[1]["link_position"][j], rtol=0, atol=1e-14)
        np.testing.assert_allclose(
            rotation_matrix(found[0]["link_quaternion"][i]), rotation_matrix(found[1]["link_quaternion"][j]), atol=1e-14
        )


# --- Drake -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_poses_masses_and_matrices_are_drakes(name: str) -> None:
    values = json.loads(DRAKE.read_text())[name]
    articulation = load_text(MODELS[name], name=name)
    robot = Robot.of(articulation, gravity=(0, 0, -9.81))
    assert {link.name: link.inertial.mass for link in articulation.links if link.inertial} | {
        name: mass for name, mass in values["mass"].items() if name == "floor::slab"
    } == values["mass"]
    q = robot.reference.copy()
    assert_poses(robot, q, values["poses"])
    for joint_name, angle in ANGLES[name].items():
        q[robot.labels.joint_coords[joint_name]] = angle
    for coupling in articulation.couplings:
        leader = q[robot.labels.joint_coords[coupling.leader or ""]]
        q[robot.labels.joint_coords[coupling.follower]] = coupling.coefficients[0] + coupling.coefficients[1] * leader
    assert_poses(robot, q, values["moved"])
    found = robot.compute(q, quantities=("mass_matrix", "gravity"), reduced=True)
    order = [robot.independent_dofs.index(joint_name) for joint_name in ANGLES[name]]
    np.testing.assert_allclose(found["mass_matrix"][order][:, order], values["mass_matrix"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["gravity"][order], values["gravity"], rtol=0, atol=1e-12)


def assert_poses(robot: Robot, q: Any, poses: dict[str, list[float]]) -> None:
    """Each link's pose, [R | p] by rows."""
    found = robot.compute(q, quantities=("link_position", "link_quaternion"))
    for name, numbers in poses.items():
        n, wanted = robot.links.index(name), np.array(numbers).reshape(3, 4)
        np.testing.assert_allclose(found["link_position"][n], wanted[:, 3], rtol=0, atol=1e-13)
        np.testing.assert_allclose(rotation_matrix(found["link_quaternion"][n]), wanted[:, :3], rtol=0, atol=1e-13)


def test_the_stored_values_are_those_of_the_installed_drake() -> None:
    pytest.importorskip("pydrake")
    from tests.loaders.sdf_models import drake_values

    for name, text in MODELS.items():
        assert drake_values(text, ANGLES[name]) == json.loads(DRAKE.read_text())[name]


# --- equal URDFs -----------------------------------------------------------------------------------------------------


def test_a_joint_away_from_its_link_is_a_urdf_joint_with_a_link_fixed_to_it() -> None:
    sdf = read(
        base()
        + link("arm", "0.5 0.1 0.2 0.3 0 0.4")
        # the joint's frame, in the arm's
        + joint("j", "revolute", "base", "arm", "0 0.6 0.8", "<pose>-0.2 0.05 0 0 0.5 0</pose>")
    )
    placed = urdf(
        urdf_joint("at", "fixed", "base", "arm_0", "0.5 0.1 0.2,0.3 0 0.4", "0 0 1"),
        urdf_joint("j", "continuous", "arm_0", "turning", "-0.2 0.05 0,0 0.5 0", "0 0.6 0.8"),
        urdf_joint("back", "fixed", "turning", "arm", BACK, "0 0 1"),
        links="base arm",
        bare="arm_0 turning",
    )
    assert_equal_robots(sdf, placed)


# the inverse of "-0.2 0.05 0, 0 0.5 0": Ry(-0.5) and -Ry(-0.5) p
BACK = f"{0.2 * np.cos(0.5)!r} -0.05 {0.2 * np.sin(0.5)!r},0 -0.5 0".replace("np.float64(", "").replace(")", "")


def test_a_universal_joint_is_two_revolute_ones() -> None:
    second = "<axis2><xyz>0 1 0</xyz></axis2>"
    for kind in ("universal", "revolute2"):
        sdf = read(base() + link("arm", "0.3 0 0 0 0 0.2") + joint("u", kind, "base", "arm", "1 0 0", second))
        twice = urdf(
            urdf_joint("u", "continuous", "base", "cross", "0.3 0 0,0 0 0.2", "1 0 0"),
            urdf_joint("u.axis2", "continuous", "cross", "arm", "0 0 0", "0 1 0"),
            links="base arm",
            bare="cross",
        )
        assert_equal_robots(sdf, twice)


@pytest.mark.parametrize(
    ("pitch", "ratio"),
    [
        ("<screw_thread_pitch>0.3</screw_thread_pitch>", 0.3 / (2 * np.pi)),
        ("<thread_pitch>25</thread_pitch>", -1 / 25),  # rad/m, positive for left-handed threads
        ("", 1 / (2 * np.pi)),
    ],
)
def test_a_screw_is_a_slide_that_follows_a_turn(pitch: str, ratio: float) -> None:
    sdf = read(base() + link("nut", "0 0.2 0 0.1 0 0") + joint("s", "screw", "base", "nut", "0 0 1", pitch))
    geared = urdf(
        urdf_joint("s", "continuous", "base", "turned", "0 0.2 0,0.1 0 0", "0 0 1"),
        urdf_joint("s.slide", "prismatic", "turned", "nut", "0 0 0", "0 0 1", WIDE + mimic("s", ratio)),
        links="base nut",
        bare="turned",
    )
    assert_equal_robots(sdf, geared)


def mimic(leader: str, ratio: float, offset: float = 0.0) -> str:
    """URDF's <mimic>."""
    return f'<mimic joint="{leader}" multiplier="{float(ratio)!r}" offset="{offset!r}"/>'


def test_mimics_have_a_reference_and_axes() -> None:
    """follower = multiplier (leader - reference) + offset, by any axis of a universal joint."""
    numbers = "<multiplier>2</multiplier><offset>0.3</offset><reference>0.1</reference>"
    follows = f'<axis><xyz>0 0 1</xyz><mimic joint="u" axis="axis2">{numbers}</mimic></axis>'
    second = "<axis2><xyz>0 1 0</xyz></axis2>"
    sdf = read(
        base()
        + link("arm", "0.3 0 0 0 0 0")
        + link("jaw", "0.7 0 0 0 0 0")
        + joint("u", "universal", "base", "arm", "1 0 0", second)
        + joint("j", "revolute", "arm", "jaw", "", follows)
    )
    equal = urdf(
        urdf_joint("u", "continuous", "base", "cross", "0.3 0 0", "1 0 0"),
        urdf_joint("u.axis2", "continuous", "cross", "arm", "0 0 0", "0 1 0"),
        urdf_joint("j", "continuous", "arm", "jaw", "0.4 0 0", "0 0 1", mimic("u.axis2", 2.0, 0.1)),
        links="base arm jaw",
        bare="cross",
    )
    assert_equal_robots(sdf, equal)


@pytest.mark.parametrize(("axis", "axis2", "sign"), [("0 0 1", "0 0 1", 1), ("0 0 -1", "0 0 1", -1)])
def test_a_gearbox_turns_its_child_against_its_parent(axis: str, axis2: str, sign: int) -> None:
    """θ₂ = -ratio θ₁ about the gearbox's axes, here of two wheels on one base; the joint of one leads to the base."""
    box = "<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
    sdf = read(
        base()
        + link("sun", "0.2 0 0 0 0 0")
        + link("planet", "0.5 0 0 0 0 0")
        + joint("s", "revolute", "base", "sun", "0 0 1")
        + joint("p", "revolute", "base", "planet", "0 0 1")
        + joint("g", "gearbox", "sun", "planet", axis, f"<axis2><xyz>{axis2}</xyz></axis2>{box}")
    )
    equal = urdf(
        urdf_joint("s", "continuous", "base", "sun", "0.2 0 0", "0 0 1"),
        urdf_joint("p", "continuous", "base", "planet", "0.5 0 0", "0 0 1", mimic("s", -3.0 * sign)),
        links="base sun planet",
    )
    assert_equal_robots(sdf, equal)


def test_joints_that_lead_towards_the_root_are_turned_round() -> None:
    """The far link is the parent of the joint by which it hangs: the coordinate keeps its meaning."""
    sdf = read(
        base()
        + link("near", "0.3 0 0 0 0 0")
        + link("far", "0.3 0.4 0 0 0 0.5")
        + joint("a", "revolute", "base", "near", "0 1 0")
        + joint("b", "revolute", "far", "near", "0 0 1", "<pose>0 0.1 0 0.2 0 0</pose>")
    )
    assert [(j.name, j.parent, j.child) for j in sdf.joints] == [
        ("hold_base", "world", "base"),
        ("a", "base", "near"),
        ("b", "near", "far"),
    ]
    # about the axis of the joint in the world, at its place there, the other way
    s, c = np.sin(0.2), np.cos(0.2)
    equal = urdf(
        urdf_joint("a", "continuous", "base", "near", "0.3 0 0", "0 1 0"),
        urdf_joint("b", "continuous", "near", "hinge", "0 0.1 0", f"0 {s} {-c}"),
        urdf_joint("c", "fixed", "hinge", "far", "0 0.3 0,0 0 0.5", "0 0 1"),
        links="base near far",
        bare="hinge",
    )
    assert_equal_robots(sdf, equal)


def test_free_models_start_where_the_file_puts_them() -> None:
    """A link that nothing holds is free; its coordinates are its pose in the world."""
    robot = Robot.of(read("<pose>1 2 3 0 0 0.5</pose>" + link("a", "0.1 0 0 0 0 0") + link("b", "0 1 0 0 0 0")))
    assert [joint.name for joint in robot.articulation.joints] == ["a_root", "b_root"]
    first = robot.reference[:7]
    np.testing.assert_allclose(first[:3], [1 + 0.1 * np.cos(0.5), 2 + 0.1 * np.sin(0.5), 3.0])
    np.testing.assert_allclose(first[3:], [np.cos(0.25), 0, 0, np.sin(0.25)])


def test_what_models_say_of_dynamics() -> None:
    inside = """<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper><effort>3</effort><velocity>4</velocity>
      </limit><dynamics><damping>0.1</damping><friction>0.2</friction><spring_stiffness>5</spring_stiffness>
      <spring_reference>0.3</spring_reference></dynamics></axis>
      <drake:rotor_inertia>0.01</drake:rotor_inertia><drake:gear_ratio>10</drake:gear_ratio>"""
    j = read(base() + link("arm", more="<gravity>false</gravity>") + joint("j", "revolute", "base", "arm", "", inside))
    joints = {item.name: item for item in j.joints}
    found = joints["j"]
    assert (found.lower, found.upper, found.effort, found.velocity) == (-1, 2, 3, 4)
    assert (found.damping, found.friction, found.stiffness, found.spring_reference) == (0.1, 0.2, 5, 0.3)
    assert found.armature == 1.0
    assert j.links[1].gravity_compensation == 1.0
    limit = "<limit><lower>-inf</lower><upper>1e16</upper><effort>-1</effort><velocity>-1</velocity></limit>"
    free = read(
        base() + link("arm") + joint("j", "revolute", "base", "arm", "", f"<axis><xyz>0 0 1</xyz>{limit}</axis>")
    )
    assert [getattr(free.joints[1], name) for name in ("lower", "upper", "effort", "velocity")] == [None] * 4
    assert free.notes == ()


def test_inertials_have_the_specifications_defaults() -> None:
    robot = read('<link name="a"/><link name="b"><inertial><mass>3</mass></inertial></link>')
    a, b = (link.inertial for link in robot.links)
    assert a is not None and b is not None
    assert (a.mass, a.inertia) == (1.0, (1, 0, 0, 1, 0, 1))
    assert (b.mass, b.inertia) == (3.0, (1, 0, 0, 1, 0, 1))
    assert [note.message for note in robot.notes] == [
        "link 'a' has no <inertial>: 1 kg and 1 kg m² about each axis, SDFormat's default"
    ]
    with pytest.raises(ModelError, match="strict"):
        read('<link name="a"/>', strict=True)


def test_automatic_inertials_are_those_of_the_shapes() -> None:
    """A box of 0.2 m × 0.4 m × 0.6 m at 500 kg/m³, and a sphere that has its own density."""
    box = '<collision name="b"><geometry><box><size>0.2 0.4 0.6</size></box></geometry></collision>'
    ball = (
        '<collision name="s"><density>200</density><pose>0 0 1 0 0 0</pose>'
        "<geometry><sphere><radius>0.1</radius></sphere></geometry></collision>"
    )
    robot = read(f'<link name="a"><inertial auto="true"><density>500</density></inertial>{box}{ball}</link>')
    found = robot.links[0].inertial
    m, n = 500 * 0.048, 200 * 4 / 3 * np.pi * 1e-3
    assert found is not None
    assert found.mass == pytest.approx(m + n, rel=1e-14)
    assert found.pose.position == pytest.approx((0, 0, n / (m + n)))
    apart = m * n / (m + n)  # of two points a metre apart
    moments = (m / 12 * (0.4**2 + 0.6**2), m / 12 * (0.2**2 + 0.6**2), m / 12 * (0.2**2 + 0.4**2))
    own = 0.4 * n * 0.01
    assert [found.inertia[k] for k in (0, 3, 5)] == pytest.approx(
        [moments[0] + own + apart, moments[1] + own + apart, moments[2] + own]
    )
    again = load_text(robot.text, name="stored").links[0].inertial
    assert again is not None
    assert (again.mass, again.pose, again.inertia) == (found.mass, found.pose, found.inertia), "outputs need no meshes"
    with pytest.raises(ModelError, match="none has a volume"):
        read('<link name="a"><inertial auto="true"/></link>')


# --- shapes ----------------------------------------------------------------------------------------------------------


def one_geom(geometry: str, role: str = "collision", more: str = "", **options: Any) -> Any:
    """The shape of a link that has one."""
    content = f'<link name="a">{inertial(1.0)}<{role} name="g">{more}<geometry>{geometry}</geometry></{role}></link>'
    geoms = read(content, **options).links[0].geoms
    return geoms[0] if geoms else None


@pytest.mark.parametrize(
    ("geometry", "kind", "size"),
    [
        ("<box><size>2 4 6</size></box>", "box", (1, 2, 3)),
        ("<sphere><radius>2</radius></sphere>", "sphere", (2,)),
        ("<cylinder><radius>1</radius><length>4</length></cylinder>", "cylinder", (1, 2)),
        ("<capsule><radius>1</radius><length>4</length></capsule>", "capsule", (1, 2)),
        ("<capsule><radius>1</radius><length>0</length></capsule>", "sphere", (1,)),
        ("<ellipsoid><radii>1 2 3</radii></ellipsoid>", "ellipsoid", (1, 2, 3)),
        ("<plane><normal>0 0 1</normal><size>4 6</size></plane>", "plane", (0, 0)),
        ("<sphere/>", "sphere", (1,)),
    ],
)
def test_shapes(geometry: str, kind: str, size: tuple[float, ...]) -> None:
    geom = one_geom(geometry)
    assert (geom.kind, geom.size, geom.name, geom.role) == (kind, size, "a::g", "collision")


def test_planes_face_their_normal() -> None:
    geom = one_geom("<plane><normal>0 1 0</normal><size>4 6</size></plane>", "visual", "<pose>0 0 0 0 0 1.5</pose>")
    assert geom.size == (2, 3)
    np.testing.assert_allclose(rotation_matrix(geom.pose.rotation)[:, 2], [-np.sin(1.5), np.cos(1.5), 0], atol=1e-15)


def test_shapes_may_stand_in_other_frames() -> None:
    frame = '<frame name="tip" attached_to="a"><pose>1 0 0 0 0 1</pose></frame>'
    shape = '<collision name="g"><pose relative_to="tip">0 2 0 0 0 0</pose><geometry><sphere/></geometry></collision>'
    robot = read(frame + f'<link name="a"><pose>3 0 0 0.3 0.2 0.1</pose>{inertial(1.0)}{shape}</link>')
    place = robot.links[0].geoms[0].pose.position
    np.testing.assert_allclose(place, [1 - 2 * np.sin(1), 2 * np.cos(1), 0], atol=1e-15)


def test_surfaces() -> None:
    def surface(inside: str) -> Any:
        return one_geom("<sphere/>", more=f"<surface>{inside}</surface>")

    friction = "<ode><mu>0.4</mu><mu2>0.4</mu2></ode>"
    turning = "<torsional><coefficient>0.5</coefficient><patch_radius>0.2</patch_radius></torsional>"
    geom = surface(
        f"<friction>{friction}{turning}</friction><bounce><restitution_coefficient>0.7"
        "</restitution_coefficient></bounce>"
    )
    assert geom.friction == pytest.approx((0.4, 3 * np.pi / 16 * 0.2 * 0.5, 0.0))
    assert (geom.surface.restitution, geom.surface.dimension) == (0.7, 4)
    assert one_geom("<sphere/>").friction is None
    assert surface("<friction><bullet><friction>0.3</friction></bullet></friction>").friction == (0.3, 0, 0)


@pytest.mark.parametrize(
    ("first", "second", "touch"),
    [("", "", True), ("0x01", "0x02", False), ("0x03", "2", True), ("0x02", "", True), ("0", "", False)],
)
def test_masks_say_what_touches(first: str, second: str, touch: bool) -> None:
    """Two free links of a model that collides with itself; a mask of 0 touches nothing."""

    def ball(name: str, mask: str) -> str:
        bits = f"<surface><contact><collide_bitmask>{mask}</collide_bitmask></contact></surface>" if mask else ""
        shape = f'<collision name="c">{bits}<geometry><sphere/></geometry></collision>'
        return f'<link name="{name}">{inertial(1.0)}{shape}</link>'

    robot = read("<self_collide>true</self_collide>" + ball("a", first) + ball("b", second))
    assert bool(collision_pairs(robot, compile_model(robot)).allowed.any()) is touch


def test_models_of_a_world_touch_each_other_and_not_themselves() -> None:
    shape = '<collision name="c"><geometry><sphere/></geometry></collision>'

    def model(name: str, more: str = "") -> str:
        return f'<model name="{name}">{more}{link("a", more=shape)}{link("b", more=shape)}</model>'

    text = f'<sdf version="1.11"><world name="w">{model("m")}{model("n")}{{}}</world></sdf>'
    robot = load_text(text.format(""), name="w.sdf")
    assert touching(robot) == {("m::a", "n::a"), ("m::a", "n::b"), ("m::b", "n::a"), ("m::b", "n::b")}
    robot = load_text(text.format(model("o", "<self_collide>1</self_collide>")), name="w.sdf")
    assert ("o::a", "o::b") in touching(robot)
    assert ("m::a", "m::b") not in touching(robot)


def touching(robot: Articulation) -> set[tuple[str, str]]:
    """Pairs of links that may touch."""
    pairs = collision_pairs(robot, compile_model(robot))
    names = [robot.links[n].name for n, _ in pairs.geoms]
    return {(names[a], names[b]) for a, b in np.argwhere(np.triu(pairs.allowed))}


# --- versions --------------------------------------------------------------------------------------------------------


def test_axes_of_older_versions() -> None:
    """Until 1.4 axes are the model's; in 1.5 and 1.6 use_parent_model_frame says so; poses had @frame until 1.6."""
    arm = link("arm", "0 0 0 0 0 1")

    def axis(version: str, more: str = "") -> tuple[float, ...]:
        inside = f"<axis><xyz>1 0 0</xyz>{more}</axis>"
        return read(base() + arm + joint("j", "revolute", "base", "arm", "", inside), version).joints[1].axis

    own, models = (1, 0, 0), pytest.approx((np.cos(1), -np.sin(1), 0), abs=1e-15)
    assert axis("1.11") == axis("1.6") == pytest.approx(own)
    assert axis("1.4") == models
    assert axis("1.5", "<use_parent_model_frame>1</use_parent_model_frame>") == models
    framed = read(link("a", "1 0 0 0 0 0") + '<link name="b"><pose frame="a">0 1 0 0 0 0</pose></link>', "1.6")
    assert framed.joints[1].pose.position == (1, 1, 0)


# --- several files ---------------------------------------------------------------------------------------------------


GRIPPER = f"""<sdf version="1.7"><model name="gripper"><pose>9 9 9 0 0 0</pose>
  <frame name="mount" attached_to="palm"><pose>0 0 -0.1 0 0 0</pose></frame>
  <link name="palm">{inertial(0.5)}
    <visual name="v"><geometry><mesh><uri>meshes/palm.stl</uri></mesh></geometry></visual></link>
  <link name="finger"><pose>0 0.05 0.1 0 0 0</pose>{inertial(0.1)}</link>
  <joint name="close" type="prismatic"><parent>palm</parent><child>finger</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""
ARM = """<sdf version="1.11"><model name="arm">
  {base}
  <include{merge}><uri>{uri}</uri>{more}</include>
  <joint name="flange" type="revolute"><parent>base</parent><child>{child}</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></sdf>"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with the models arm and gripper, which has a mesh."""
    gripper = tmp_path / "models" / "gripper"
    (gripper / "meshes").mkdir(parents=True)
    (gripper / "gripper_old.sdf").write_text(GRIPPER.replace('"palm"', '"old_palm"'))
    (gripper / "gripper.sdf").write_text(GRIPPER)
    (gripper / "model.config").write_text(
        '<model><sdf version="1.4">gripper_old.sdf</sdf><sdf version="1.7">gripper.sdf</sdf></model>'
    )
    (gripper / "meshes" / "palm.stl").write_text("solid s\nendsolid s\n")
    (tmp_path / "models" / "arm").mkdir()
    return tmp_path / "models"


def arm_text(uri: str, more: str = "", merge: str = "", child: str = "gripper::palm") -> str:
    """An arm that includes the gripper."""
    return ARM.format(base=base(), uri=uri, more=more, merge=merge, child=child)


def written(models: Path, text: str) -> Path:
    """The arm's file."""
    path = models / "arm" / "arm.sdf"
    path.write_text(text)
    return path


PLACED = '<pose relative_to="base">0.3 0 0 0.2 0 0</pose><placement_frame>mount</placement_frame>'


def inline(place: str, model: str = "gripper") -> str:
    """The same arm in one file, with the gripper as a nested model."""
    nested = GRIPPER.partition(">")[2].removesuffix("</sdf>").replace("<pose>9 9 9 0 0 0</pose>", place)
    nested = nested.replace('<model name="gripper">', f'<model name="{model}" placement_frame="mount">')
    text = arm_text("x", child=f"{model}::palm")
    start, end = text.index("<include>"), text.index("</include>") + len("</include>")
    return text[:start] + nested + text[end:]


@pytest.mark.parametrize("uri", ["model://gripper", "../gripper", "file://../gripper", "model://gripper/gripper.sdf"])
def test_includes_are_nested_models(uri: str, models: Path) -> None:
    path = written(models, arm_text(uri, PLACED))
    robot = load_articulation(path)
    equal = load_text(inline('<pose relative_to="base">0.3 0 0 0.2 0 0</pose>'), name="inline.sdf")
    assert [link.name for link in robot.links] == ["base", "gripper::palm", "gripper::finger"]
    assert_equal_robots(robot, equal)
    geom = robot.links[1].geoms[0]
    assert geom.mesh == models / "gripper" / "meshes" / "palm.stl"
    assert robot.links[1].source.file.endswith("gripper.sdf")
    assert robot.links[1].source.line == 3


def test_includes_may_rename_and_hold(models: Path) -> None:
    more = "<name>claw</name><static>true</static><pose>0 0 1 0 0 0</pose>"
    robot = load_articulation(written(models, arm_text("model://gripper", more, child="claw::palm")))
    assert {(joint.child, joint.kind, joint.parent) for joint in robot.joints} == {
        ("base", "fixed", "world"),
        ("claw::palm", "fixed", "world"),
        ("claw::finger", "fixed", "world"),
    }
    palm = next(joint for joint in robot.joints if joint.child == "claw::palm")
    assert palm.pose.position == (0, 0, 1)
    assert any("between links that stand still" in note.message for note in robot.notes)


def test_merged_models_are_part_of_the_model(models: Path) -> None:
    merged = load_articulation(written(models, arm_text("model://gripper", PLACED, ' merge="true"', "palm")))
    assert [link.name for link in merged.links] == ["base", "palm", "finger"]
    nested = load_articulation(written(models, arm_text("model://gripper", PLACED)))
    renamed = replace(
        nested,
        links=tuple(replace(link, name=link.name.removeprefix("gripper::")) for link in nested.links),
        joints=tuple(
            replace(
                joint,
                name=joint.name.removeprefix("gripper::"),
                parent=joint.parent.removeprefix("gripper::"),
                child=joint.child.removeprefix("gripper::"),
            )
            for joint in nested.joints
        ),
    )
    assert_equal_robots(merged, renamed)


def test_the_stored_text_of_several_files_is_one(models: Path) -> None:
    robot = load_articulation(written(models, arm_text("model://gripper", PLACED)), meshes=False)
    again = load_stored(robot.text, "arm", RunConfig())
    assert [replace(link, source=Source(), geoms=(), inertial=None) for link in again.links] == [
        replace(link, source=Source(), geoms=(), inertial=None) for link in robot.links
    ]
    assert_equal_robots(robot, again)
    assert [joint.pose for joint in again.joints] == [joint.pose for joint in robot.joints], "to the last bit"


def test_models_are_looked_for_in_given_folders(models: Path, tmp_path: Path) -> None:
    alone = tmp_path / "elsewhere" / "deep" / "arm.sdf"
    alone.parent.mkdir(parents=True)
    alone.write_text(arm_text("model://gripper"))
    with pytest.raises(ModelError, match=r"<include>: 'model://gripper' not found"):
        load_articulation(alone)
    for options in ({"mesh_root": models}, {"packages": {"gripper": models / "gripper"}}):
        assert len(load_articulation(alone, **options).links) == 3


@pytest.mark.parametrize("uri", ["model://gripper", "gripper", "file://gripper", "gripper/gripper.sdf"])
def test_gazebos_folders_are_looked_in(uri: str, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = tmp_path / "elsewhere" / "deep" / "arm.sdf"
    alone.parent.mkdir(parents=True)
    alone.write_text(arm_text(uri))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", f"/nowhere:{models}")
    assert len(load_articulation(alone).links) == 3


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("/etc", "outside the allowed roots"),
        ("../../../etc/hosts", "outside the allowed roots"),
        ("model://gripper/../../secret.sdf", "outside the allowed roots"),
        ("https://fuel.gazebosim.org/1.0/x/models/y", "https:// is not read: includes are files on this machine"),
        ("model://griper", "not found"),
        ("link", "outside the allowed roots"),
        ("x" * 300, "File name too long"),
        ("x/" * 3000, "6000 characters"),
        ("huge", "above the cap of 1 MB"),
        ("loop", "includes itself"),
        ("two", "holds 2 models, want one"),
        ("urdf", "root of the included 'model.sdf' is <robot>, want <sdf>"),
        ("mute", "<include> of model 'mute' has no <uri>"),
    ],
)
def test_includes_that_are_refused(uri: str, message: str, models: Path, tmp_path: Path) -> None:
    arm = models / "arm"
    (tmp_path / "secret.sdf").write_text(GRIPPER)
    (arm / "link").symlink_to("/etc")
    (arm / "huge").mkdir()
    (arm / "huge" / "model.config").write_text(" " * 1_100_000)
    for name, text in {
        "loop": '<sdf version="1.9"><model name="loop"><include><uri>../loop</uri></include></model></sdf>',
        "two": GRIPPER.replace("</sdf>", '<model name="b"/></sdf>'),
        "urdf": "<robot/>",
        "mute": '<sdf version="1.9"><model name="mute"><include/></model></sdf>',
    }.items():
        (arm / name).mkdir()
        (arm / name / "model.sdf").write_text(text)
    with pytest.raises(ModelError) as caught:
        load_articulation(written(models, arm_text(uri)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_includes_that_multiply_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artsim.loaders.sdf.include.MAX_ELEMENTS", 5000)
    for n in range(30):
        more = f"<include><uri>../m{n + 1}</uri><name>{{}}</name></include>" if n < 29 else ""
        (tmp_path / f"m{n}").mkdir()
        text = f'<sdf version="1.9"><model name="m">{link("a")}{more.format("x")}{more.format("y")}</model></sdf>'
        (tmp_path / f"m{n}" / "model.sdf").write_text(text)
    with pytest.raises(ModelError, match="limit of 5000 elements"):
        load_articulation(tmp_path / "m0" / "model.sdf")


def test_text_includes_nothing() -> None:
    with pytest.raises(ModelError, match="not in a file"):
        load_text(arm_text("model://gripper"), name="<stdin>")


# --- scenes ----------------------------------------------------------------------------------------------------------


def test_a_placed_model_moves_with_its_ties_to_the_world(tmp_path: Path) -> None:
    path = tmp_path / "arm.sdf"
    path.write_text(MODELS["frames"])
    place = Pose((1.0, 2.0, 3.0), (0.8, 0.0, 0.6, 0.0))
    alone, moved = Robot.of(load_articulation(path)), Robot.of(load_scene([SceneEntry("a", str(path), place=place)]))
    q = np.full(alone.nq, 0.3)
    names = ("link_position", "mass_matrix")
    first, second = (robot.compute(q, quantities=names) for robot in (alone, moved))
    turned = first["link_position"] @ rotation_matrix(place.rotation).T + place.position
    np.testing.assert_allclose(second["link_position"], turned, rtol=0, atol=1e-14)
    np.testing.assert_allclose(second["mass_matrix"], first["mass_matrix"], rtol=0, atol=1e-14)
    assert moved.links == tuple(f"a/{name}" for name in alone.links)


def test_the_base_is_the_files() -> None:
    with pytest.raises(ModelError, match="SDF says itself what is free"):
        read(link("a"), base="floating")


# --- what is left out, and refusals ----------------------------------------------------------------------------------


def test_what_moves_nothing_is_told_by_check() -> None:
    robot = read(link("a", more='<sensor name="s" type="imu"/><light name="l"/>') + '<plugin name="p" filename="x"/>')
    assert {item.what for item in robot.ignored} == {"<sensor>", "<light>", "<plugin>"}
    assert robot.notes == ()


def test_worlds_say_gravity_and_steps() -> None:
    text = (
        '<sdf version="1.9"><world name="w"><gravity>0 0 -1.6</gravity><physics type="ode"><max_step_size>0.004'
        f'</max_step_size></physics><model name="m">{link("a")}</model></world></sdf>'
    )
    options = load_text(text, name="w.sdf").options
    assert (options.gravity, options.timestep) == ((0, 0, -1.6), 0.004)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<link/>", "r.sdf:1: <link> has no name"),
        ("", "r.sdf:1: model 'r' has no links"),
        (link("a") + "\n" + link("a"), "r.sdf:2: link 'a' is already defined at line 1"),
        (link("a") + '<frame name="a"/>', "r.sdf:1: frame 'a' has the name of a link at line 1"),
        (link("world"), "r.sdf:1: link 'world': the name 'world' is reserved"),
        (link("__x__"), "r.sdf:1: link '__x__': the name '__x__' is reserved"),
        (
            link("arm") + '\n<link name="b"><pose relative_to="amr"/></link>',
            "r.sdf:2: link 'b' names 'amr', which does not exist; did you mean 'arm'?",
        ),
        (
            '<frame name="f"><pose relative_to="g"/></frame><frame name="g"><pose relative_to="f"/></frame>'
            + link("a"),
            "frames form a cycle: 'f' -> 'g' -> 'f'",
        ),
        (
            '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'
            + base("a")
            + joint("j", "fixed", "f", "a"),
            "cycle",
        ),
        (base("a") + joint("j", "hinge", "a", "a"), "joint 'j' has unknown type 'hinge'; known: revolute"),
        (base("a") + joint("j", "fixed", "a", "a"), "joint 'j' connects link 'a' to itself"),
        (base("a") + joint("j", "fixed", "a", "world"), "<child> of joint 'j' is the world"),
        (base("a") + link("b") + joint("j", "revolute", "a", "b"), "joint 'j' has no <axis>"),
        (base("a") + link("b") + joint("j", "revolute", "a", "b", "0 0 0"), "is zero, want a direction"),
        (base("a") + link("b") + joint("j", "revolute", "a", "b", "0 0"), "holds 2 numbers, want 3"),
        ('<link name="a"><pose>1 2 3</pose></link>', "<pose> of link 'a': content '1 2 3' holds 3 numbers, want 6"),
        ('<link name="a"><inertial><mass>-1</mass></inertial></link>', "<mass> of <inertial> of link 'a' is -1"),
        (
            f'<link name="a">{inertial(1.0, moments="1 -1 1 0 0 0")}</link>',
            "<inertia> of <inertial> of link 'a' has principal moments -1, 1, 1",
        ),
        (
            '<link name="a"><collision name="c"><geometry><heightmap/></geometry></collision></link>',
            "<heightmap> of <collision> of link 'a' is not supported",
        ),
        ('<link name="a"><collision name="c"/></link>', "<collision> of link 'a' has no <geometry>"),
        ('<link name="a"><kinematic>1</kinematic></link>', "<kinematic> is not supported"),
        ('<link name="a"><kinematic>maybe</kinematic></link>', "is 'maybe', want true or false"),
        (link("a") + '<drake:joint name="p" type="planar"/>', "<drake:joint> of model 'r' is not supported"),
        (
            base("a")
            + link("b")
            + joint("j", "revolute", "a", "b", "", '<axis><xyz>0 0 1</xyz><mimic joint="k"/></axis>'),
            "joint 'j' mimics 'k', which does not exist",
        ),
        (
            base("a")
            + link("b")
            + joint("j", "ball", "a", "b")
            + link("c")
            + joint("k", "revolute", "b", "c", "", '<axis><xyz>0 0 1</xyz><mimic joint="j"/></axis>'),
            "ball joint 'j' has no axis that can take part",
        ),
        (
            base("a")
            + link("b")
            + joint("j", "revolute", "a", "b", "0 0 1")
            + joint("k", "universal", "a", "b", "0 0 1", "<axis2><xyz>1 0 0</xyz></axis2>"),
            "joint 'k' closes a loop, which a universal joint cannot do here",
        ),
        (
            base("a")
            + link("b")
            + joint("j", "gearbox", "a", "b", "0 0 1", "<gearbox_reference_body>a</gearbox_reference_body>"),
            "turns by no revolute joint on 'a'",
        ),
    ],
)
def test_what_is_refused(content: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(content)
    assert message in str(caught.value)
    assert str(caught.value).startswith("r.sdf:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf/>", "<sdf> holds nothing; want one <model> or one <world>"),
        ('<sdf version="1.3"><model name="a"/></sdf>', "<sdf> has version '1.3'; 1.4 to 1.12 are read"),
        ('<sdf version="x"><model name="a"/></sdf>', "<sdf> has version 'x', want 1.4 to 1.12"),
        ('<sdf version="1.9"><model name="a"/><model name="b"/></sdf>', "holds model 'a', model 'b'"),
        ('<sdf version="1.9"><model/></sdf>', "<model> has no"),
        ("<sdformat/>", "root is <sdformat>, want <robot>, <mujoco> or <sdf>"),
    ],
)
def test_files_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_text(text, name="r.sdf")
    assert message in str(caught.value)


def test_comments_with_two_hyphens_are_passed_over() -> None:
    """As Gazebo's reader has it, which many of its worlds need; lines are those of the file."""
    robot = read("<!-- gz sim -- run -->\n<!-- a --\n<link/> -->\n" + link("a"))
    assert [note.message for note in robot.notes] == ["a comment holds '--', which XML does not allow; passed over"]
    assert (robot.links[0].source.line, robot.text.count("--")) == (4, 6)
    with pytest.raises(ModelError, match="DOCTYPE"):
        load_text("<!-- -- --><!DOCTYPE r [<!ENTITY a 'b'>]><sdf/>", name="r.sdf")
    with pytest.raises(ModelError, match="not well-formed"):
        read("<!-- -- <link name='a'>")


def test_deep_models_and_long_chains() -> None:
    deep = "<model name='m'>" * 100 + link("a") + "</model>" * 100
    with pytest.raises(ModelError, match="nest deeper"):
        load_text(f'<sdf version="1.9">{deep}</sdf>', name="deep.sdf")
    count = 3000
    chain = "".join(link(f"l{n}") for n in range(count))
    chain += "".join(joint(f"j{n}", "revolute", f"l{n}", f"l{n + 1}", "0 0 1") for n in range(count - 1))
    assert len(read(base() + chain).joints) == count + 1
    frames = "".join(
        f'<frame name="f{n}"><pose relative_to="f{n + 1}">1 0 0 0 0 0</pose></frame>' for n in range(count)
    )
    robot = read(f'{frames}<frame name="f{count}"/><link name="a"><pose relative_to="f0"/></link>')
    assert robot.joints[0].pose.position == (count, 0, 0)


@pytest.mark.parametrize("cut", range(40, 3000, 61))
def test_damaged_files_are_refused_in_a_line(cut: int) -> None:
    text = MODELS["frames"].replace("relative_to", "relative_to" if cut % 2 else "rel")
    text = text[:cut] + text[cut + 7 :]
    try:
        load_text(text, name="r.sdf")
    except ArtsimError as error:
        assert "\n" not in str(error)


def test_a_joint_that_closes_a_loop_keeps_what_it_has() -> None:
    """Limits, friction, damping and spring of a slide and of a hinge, as a tendon along or about the axis."""
    held = "<limit><lower>-0.2</lower><upper>0.3</upper></limit>"
    rub = (
        "<dynamics><friction>0.5</friction><damping>0.1</damping><spring_stiffness>4</spring_stiffness>"
        "<spring_reference>0.05</spring_reference></dynamics>"
    )
    axis = f"<axis><xyz>0 0 1</xyz>{held}{rub}</axis>"
    for kind, made, number in (("prismatic", "joint", 2.0), ("revolute", "hinge", 5.0)):
        arms = base("a") + link("b") + joint("j", "revolute", "a", "b", "0 0 1") + link("c")
        arms += joint("k", "revolute", "b", "c", "0 0 1") + joint("l", kind, "a", "c", "", axis)
        robot = read(arms)
        (loop,), (tendon,) = robot.loops, robot.tendons
        assert (loop.name, loop.kind) == ("l", made)
        assert (tendon.name, tendon.kind, tendon.path[0].value) == ("l", "loop", number)
        assert (tendon.lower, tendon.upper, tendon.friction, tendon.damping) == (-0.2, 0.3, 0.5, 0.1)
        assert (tendon.stiffness, tendon.spring_length) == (4.0, (0.05, 0.05))
        assert not [note for note in robot.notes if "loop" in str(note)]
