"""URDF to an Articulation: one function per element, no value computed that the file does not give.

The meaning follows urdfdom (the ROS parser), its refusals of malformed values included. Values that urdfdom accepts and
no engine can use (a leader that does not exist, a zero axis, reversed limits) are refused here.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Literal

from lxml import etree

from artsim.loaders import urdf_gazebo, urdf_loops, urdf_mujoco
from artsim.loaders.assets import AssetMissingError, AssetOutsideError, AssetRefusedError
from artsim.loaders.elements import (
    Element,
    Reading,
    check_sizes,
    child,
    children,
    content_number,
    convert,
    describe,
    named,
    parse_numbers,
    read_number,
    read_pose,
    read_vector,
    required,
    tag,
)
from artsim.loaders.impossible import judge_inertias
from artsim.loaders.inertia import principal_moments
from artsim.loaders.tree import order_tree
from artsim.loaders.urdf_unknown import BALL_LIMITS, DRAKE_TIES, is_macro, note_unknown
from artsim.sim.articulation.description import (
    Actuator,
    Articulation,
    Coupling,
    Geom,
    GeomRole,
    Inertial,
    Joint,
    JointKind,
    Link,
    Material,
    Pose,
    TurnLimits,
    Vector3,
)
from artsim.sim.articulation.pose_algebra import multiply, quaternion_from_z
from artsim.sim.foundation.errors import nearest

JOINT_KINDS: dict[str, JointKind] = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "free",
    "planar": "planar",
    "spherical": "ball",  # Bullet's
}
MIMIC_AXES: dict[str | None, Literal["x", "y", "z"]] = {"x": "x", "y": "y", "z": "z"}
SINGLE = ("revolute", "continuous", "prismatic")  # the kinds with one coordinate, which can mimic and be mimicked
IMPLAUSIBLE_MASS = 1e9  # [kg], ten aircraft carriers
# elements without moving parts, and names of macros that stand for them
UNMOVED = frozenset(("visual", "sensor", "plugin", "transmission", "ros2_control", "gazebo"))
UNMOVED_MACROS = re.compile(
    r"(?:^|_)(?:sensors?|cameras?|imus?|lidars?|lasers?|plugins?|gazebo|transmissions?)(?:_|$)|^(?:property|arg)$"
)
ROLES: tuple[GeomRole, GeomRole] = ("visual", "collision")


def read_urdf(root: Element, reading: Reading) -> Articulation:
    """<robot>: the whole model. Raises ModelError with file and line."""
    refuse_xacro(reading, root)
    extension = urdf_mujoco.read_extension(reading, root)
    if reading.assets is not None:
        reading.assets.mesh_dir, reading.assets.strip_path = extension.mesh_dir, extension.strip_path
    materials = dict(read_material(reading, element) for element in children(root, "material"))
    links = [read_link(reading, element, materials) for element in children(root, "link")]
    if not links:
        reading.refuse(root, "<robot> has no links")
    joints = [read_joint(reading, element) for element in children(root, "joint")]
    refuse_duplicates(reading, root, "link")
    refuse_duplicates(reading, root, "joint")
    for element in root:
        if tag(element) in DRAKE_TIES:
            reading.leave_out(element, f"{describe(element)} is not supported; a file of --loops may say it", "it")
    note_unknown(reading, root)
    couplings = read_mimics(reading, root, joints)
    loops, tendons, drives = urdf_loops.read_loop_joints(reading, root, links)
    actuators, joints = read_transmissions(reading, root, joints)
    links, joints = urdf_gazebo.apply(reading, root, links, joints)
    links = urdf_mujoco.corrected_inertials(reading, extension, links)
    ordered_links, ordered_joints = order_tree(links, joints)
    elements = {element.get("name", ""): element for element in children(root, "link")}
    ordered_links = judge_inertias(reading, elements, ordered_links, ordered_joints)
    text = ""
    if reading.density is not None:
        from artsim.loaders.density import with_density  # numpy

        ordered_links = with_density(reading, root, ordered_links, reading.density)
        text = etree.tostring(root, encoding="unicode")
    reading.note_missing_meshes()
    return Articulation(
        name=read_name(reading, root),
        format="urdf",
        links=ordered_links,
        joints=ordered_joints,
        couplings=tuple(couplings),
        loops=tuple(loops),
        tendons=tuple(tendons),
        actuators=(*actuators, *drives),
        options=extension.options,
        notes=tuple(reading.notes),
        text=text,
        path=reading.file,
    )


def read_name(reading: Reading, root: Element) -> str:
    """The robot's name; urdfdom requires it, other readers do not."""
    if root.get("name") is None:
        reading.note(root, "<robot> has no name")
        return "robot"
    return named(reading, root)


def refuse_xacro(reading: Reading, root: Element) -> None:
    """Refuse macros that were not expanded, whose links and joints would be missing; warn of macros of UNMOVED."""
    for element in root.iter():
        for name, value in element.attrib.items():
            if "${" in value and (is_macro(element) or name in ("name", "link", "joint")):
                reading.refuse(
                    element,
                    f"{describe(element)}: {value!r} is a xacro expression: run xacro first, where you trust the file",
                )
        if not is_macro(element):
            continue
        local = str(element.tag).rpartition("}")[2].removeprefix("xacro:")
        macro = f"<xacro:{local[:40]}>"
        above = next((tag(item) for item in element.iterancestors() if tag(item) in UNMOVED), "")
        if above == "visual":
            reading.note(element, f"{macro} is a macro that was not expanded; ignored below <visual>")
        elif above or UNMOVED_MACROS.search(local):
            reading.note(element, f"{macro} is a macro that was not expanded; ignored, as it moves nothing", guess=True)
        else:
            reading.refuse(
                element, f"{macro} is a macro: run xacro first, or install artsim[xacro], where you trust the file"
            )


def refuse_duplicates(reading: Reading, root: Element, kind: str) -> None:
    """Refuse a name that two links, or two joints, have."""
    lines: dict[str, int] = {}
    for element in children(root, kind):
        name = element.get("name", "")
        if name in lines:
            reading.refuse(element, f"{kind} {name!r} is already defined at line {lines[name]}")
        lines[name] = reading.at(element).line


# --- links -----------------------------------------------------------------------------------------------------------


def read_link(reading: Reading, element: Element, materials: dict[str, Material]) -> Link:
    """<link>."""
    name = named(reading, element)
    friction = read_contact(reading, child(reading, element, "contact"))
    geoms: list[Geom] = []
    for role in ROLES:
        for count, item in enumerate(children(element, role)):
            geom = read_geom(reading, item, materials, name, role, count, friction if role == "collision" else None)
            geoms += [] if geom is None else [geom]
    return Link(
        name=name,
        inertial=read_inertial(reading, child(reading, element, "inertial")),
        geoms=tuple(geoms),
        source=reading.at(element),
    )


def read_inertial(reading: Reading, element: Element | None) -> Inertial | None:
    """<inertial>: mass [kg], the centre of mass frame, the inertia in that frame [kg m²]."""
    if element is None:
        return None
    mass = read_mass(reading, element)
    tensor = child(reading, element, "inertia")
    inertia = (0.0,) * 6 if tensor is None else read_inertia(reading, tensor)
    if tensor is None:
        reading.note(element, f"{describe(element)} has no <inertia>: taken as zero", guess=True)
    return Inertial(mass, read_pose(reading, child(reading, element, "origin")), inertia, reading.at(element))


def read_mass(reading: Reading, element: Element) -> float:
    """<mass value="…">; a massless link is legal."""
    item = child(reading, element, "mass")
    if item is None:
        reading.note(element, f"{describe(element)} has no <mass>: taken as zero", guess=True)
        return 0.0
    mass = read_number(reading, item, "value")
    if mass < 0:
        reading.refuse(item, f"{describe(item)}: mass {mass:g} kg is negative")
    if mass > IMPLAUSIBLE_MASS:
        reading.note(item, f"{describe(item)}: mass {mass:g} kg is implausible")
    return mass


def read_inertia(reading: Reading, element: Element) -> tuple[float, float, float, float, float, float]:
    """<inertia ixx ixy ixz iyy iyz izz> [kg m²]; judge_inertias refuses those that no body can have."""
    xx, xy, xz, yy, yz, zz = (
        read_number(reading, element, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    inertia = (xx, xy, xz, yy, yz, zz)
    if not all(map(math.isfinite, principal_moments(inertia))):
        reading.refuse(element, f"{describe(element)} is too large")
    return inertia


def read_contact(reading: Reading, element: Element | None) -> tuple[float, float, float] | None:
    """Bullet's <contact>: friction of the link's collision geoms; stiffness and damping are ignored."""
    if element is None:
        return None
    values = {"lateral_friction": 1.0, "spinning_friction": 0.0, "rolling_friction": 0.0}
    for item in element:
        name = tag(item)
        if name not in values:
            reading.note(item, f"{describe(item)} is ignored", once=f"<contact><{name}>")
            continue
        values[name] = read_number(reading, item, "value")
        if values[name] < 0:
            reading.refuse(item, f"{describe(item)}: {values[name]:g} is negative")
    return (values["lateral_friction"], values["spinning_friction"], values["rolling_friction"])


# --- geometry --------------------------------------------------------------------------------------------------------


def read_geom(
    reading: Reading,
    element: Element,
    materials: dict[str, Material],
    link: str,
    role: GeomRole,
    count: int,
    friction: tuple[float, float, float] | None,
) -> Geom | None:
    """The geom of <visual> or <collision>; None if its shape has no extent."""
    geometry = child(reading, element, "geometry")
    if geometry is None:
        reading.refuse(element, f"{describe(element)} has no <geometry>")
    name = element.get("name") or geometry.get("name") or f"{link}_{role}" + (f"_{count}" if count else "")
    pose = read_pose(reading, child(reading, element, "origin"))
    material = child(reading, element, "material")
    plain = Geom(
        name=name,
        kind="box",
        role=role,
        pose=pose,
        material=None if material is None else resolve_material(reading, material, materials),
        friction=friction,
        source=reading.at(element),
    )
    return read_geometry(reading, geometry, plain)


def read_geometry(reading: Reading, element: Element, plain: Geom) -> Geom | None:
    """The geom of the first shape in <geometry>; None if it has no extent."""
    shape: Element | None = None
    for item in element:
        if shape is None and tag(item) in SHAPES:
            shape = item
        elif tag(item) in SHAPES:
            reading.note(item, f"{describe(item)}: a second shape; the first counts")
    if shape is None:
        found = f"<{tag(element[0])}>" if len(element) else "nothing"
        reading.refuse(element, f"{describe(element)} holds {found}, want one of {', '.join(SHAPE_NAMES)}")
    geom = SHAPES[tag(shape)](reading, shape, plain)
    if geom.kind in ("plane", "mesh") or min(geom.size) > 0:
        return geom
    if geom.kind == "capsule" and geom.size[0] > 0:
        return dataclasses.replace(geom, kind="sphere", size=geom.size[:1])
    reading.note(shape, f"{describe(shape)}: size 0 m; the shape is left out", guess=geom.role == "collision")
    return None


def read_box(reading: Reading, element: Element, plain: Geom) -> Geom:
    """<box size="x y z"> [m]: full lengths in the file, half here."""
    size = read_vector(reading, element, "size")
    check_sizes(reading, element, size)
    return dataclasses.replace(plain, kind="box", size=tuple(length / 2 for length in size))


def read_sphere(reading: Reading, element: Element, plain: Geom) -> Geom:
    """<sphere radius> [m]."""
    radius = read_number(reading, element, "radius")
    check_sizes(reading, element, (radius,))
    return dataclasses.replace(plain, kind="sphere", size=(radius,))


def read_cylinder(reading: Reading, element: Element, plain: Geom) -> Geom:
    """<cylinder radius length> [m], along z."""
    radius, length = read_number(reading, element, "radius"), read_number(reading, element, "length")
    check_sizes(reading, element, (radius, length))
    return dataclasses.replace(plain, kind="cylinder", size=(radius, length / 2))


def read_capsule(reading: Reading, element: Element, plain: Geom) -> Geom:
    """<capsule radius length> [m], along z; the length is measured between the centres of the caps."""
    return dataclasses.replace(read_cylinder(reading, element, plain), kind="capsule")


def read_ellipsoid(reading: Reading, element: Element, plain: Geom) -> Geom:
    """Drake's <ellipsoid a b c>: semi-axes [m]."""
    axes = tuple(read_number(reading, element, name) for name in "abc")
    check_sizes(reading, element, axes)
    return dataclasses.replace(plain, kind="ellipsoid", size=axes)


def read_plane(reading: Reading, element: Element, plain: Geom) -> Geom:
    """Bullet's <plane normal="x y z">, unbounded: sizes 0, the z axis turned to the normal."""
    normal = read_vector(reading, element, "normal", (0.0, 0.0, 1.0))
    length = math.hypot(*normal)
    if not 1e-9 < length < 1e9:
        reading.refuse(element, f"{describe(element)}: normal has length {length:g}")
    turn = quaternion_from_z(tuple(n / length for n in normal))
    pose = Pose(plain.pose.position, multiply(plain.pose.rotation, turn))
    return dataclasses.replace(plain, kind="plane", size=(0.0, 0.0), pose=pose)


def read_mesh(reading: Reading, element: Element, plain: Geom) -> Geom:
    """<mesh filename scale>: the name is resolved, the file is not read here."""
    uri = required(reading, element, "filename")
    scale = read_scale(reading, element)
    geom = dataclasses.replace(plain, kind="mesh", mesh_uri=uri, scale=scale)
    if reading.assets is None:
        return geom
    try:
        return dataclasses.replace(geom, mesh=reading.assets.resolve(uri))
    except AssetOutsideError as error:
        if plain.role == "collision":
            reading.refuse(element, f"{describe(element)}: {uri!r}: {error}")
        told = f"{describe(element)}: {uri!r} is not opened, nor is any other visual mesh of its folder: {error}"
        reading.note(element, told, guess=True, once=error.why)
        return dataclasses.replace(geom, mesh_absent=f"not opened: {error}")
    except AssetRefusedError as error:
        reading.refuse(element, f"{describe(element)}: {uri!r}: {error}")
    except AssetMissingError as error:
        reading.missing.setdefault(error.why, []).append((element, uri, str(error)))
        return dataclasses.replace(geom, mesh_absent=f"not found: {error}")


def read_scale(reading: Reading, element: Element) -> Vector3:
    """scale="x y z", or one number for all three; mirrored meshes have negative ones."""
    text = element.get("scale")
    if text is None:
        return (1.0, 1.0, 1.0)
    words = text.split()
    if len(words) == 1:
        factor = read_number(reading, element, "scale")
        reading.note(element, f"{describe(element)}: one number as scale; used for x, y and z")
        scale: Vector3 = (factor, factor, factor)
    elif len(words) > 3:
        reading.note(element, f"{describe(element)}: scale {text!r} holds {len(words)} numbers; the first three count")
        x, y, z = convert(reading, element, "scale", " ".join(words[:3]), 3)
        scale = (x, y, z)
    else:
        scale = read_vector(reading, element, "scale")
    if 0.0 in scale:
        reading.refuse(element, f"{describe(element)}: scale {text!r} flattens the mesh")
    return scale


SHAPES = {
    "box": read_box,
    "sphere": read_sphere,
    "cylinder": read_cylinder,
    "capsule": read_capsule,
    "drake:capsule": read_capsule,
    "ellipsoid": read_ellipsoid,
    "drake:ellipsoid": read_ellipsoid,
    "plane": read_plane,
    "mesh": read_mesh,
}
SHAPE_NAMES = tuple(f"<{name}>" for name in SHAPES if ":" not in name)


def read_material(reading: Reading, element: Element) -> tuple[str, Material]:
    """<material>: name, colour and texture, for the viewer."""
    name = element.get("name", "")
    colour, texture = child(reading, element, "color"), child(reading, element, "texture")
    rgba = None
    if colour is not None:
        r, g, b, a = convert(reading, colour, "rgba", required(reading, colour, "rgba"), 4)
        rgba = (r, g, b, a)
    return name, Material(name, rgba, None if texture is None else texture.get("filename"))


def resolve_material(reading: Reading, element: Element, materials: dict[str, Material]) -> Material:
    """The material of a geom: its own, or the robot's one of that name. The first definition serves later uses."""
    name, material = read_material(reading, element)
    if material.rgba is None and material.texture is None:
        return materials.get(name, material)
    if name:
        materials.setdefault(name, material)
    return material


# --- joints ----------------------------------------------------------------------------------------------------------


def read_joint(reading: Reading, element: Element) -> Joint:
    """<joint>."""
    name = named(reading, element)
    kind = read_kind(reading, element)
    joint = Joint(
        name=name,
        kind=kind,
        parent=read_end(reading, element, "parent"),
        child=read_end(reading, element, "child"),
        pose=read_pose(reading, child(reading, element, "origin")),
        # urdfdom ignores the axis of these two kinds as well
        axis=(0.0, 0.0, 1.0) if kind in ("fixed", "free") else read_axis(reading, child(reading, element, "axis")),
        source=reading.at(element),
    )
    if kind in ("fixed", "free"):
        return joint
    if kind == "ball":
        joint = read_turn_limits(reading, child(reading, element, "limit"), joint)
        return read_dynamics(reading, child(reading, element, "dynamics"), joint)
    joint = read_limit(reading, element, child(reading, element, "limit"), joint)
    return read_dynamics(reading, child(reading, element, "dynamics"), joint)


def read_kind(reading: Reading, element: Element) -> JointKind:
    """The joint's type."""
    kind = element.get("type")
    legal = ", ".join(JOINT_KINDS)
    if kind is None:
        reading.refuse(element, f"{describe(element)} has no type; legal: {legal}")
    if kind not in JOINT_KINDS:
        reading.refuse(element, f"{describe(element)} has unknown type {kind!r}; legal: {legal}")
    return JOINT_KINDS[kind]


def read_end(reading: Reading, element: Element, role: str) -> str:
    """The link that <parent link> or <child link> names."""
    item = child(reading, element, role)
    if item is None:
        reading.refuse(element, f"{describe(element)} has no <{role}>")
    return required(reading, item, "link")


def read_axis(reading: Reading, element: Element | None) -> Vector3:
    """The unit vector along <axis xyz>; (1, 0, 0) without an <axis>."""
    if element is None:
        return (1.0, 0.0, 0.0)
    if element.get("xyz") is None:
        reading.note(element, f"{describe(element)} has no xyz: taken as 1 0 0", guess=True)
        return (1.0, 0.0, 0.0)
    x, y, z = read_vector(reading, element, "xyz")
    length = math.hypot(x, y, z)
    if length < 1e-12:
        reading.refuse(element, f"{describe(element)} is zero")
    if not math.isfinite(length):
        reading.refuse(element, f"{describe(element)} is too long")
    if abs(length - 1.0) > 1e-3:  # rounding of the digits needs no warning
        reading.note(element, f"{describe(element)} has length {length:.6g}: normalised")
    return (x / length, y / length, z / length)


def read_limit(reading: Reading, joint_element: Element, element: Element | None, joint: Joint) -> Joint:
    """<limit lower upper effort velocity>: [rad] or [m], [N m] or [N], per second."""
    if element is None:
        if joint.kind == "prismatic":
            reading.refuse(joint_element, f"joint {joint.name!r} is prismatic and has no <limit>")
        if joint.kind == "revolute":
            reading.note(joint_element, f"joint {joint.name!r} is revolute and has no <limit>: unlimited", guess=True)
        return joint
    lower, upper = read_range(reading, element, joint)
    return dataclasses.replace(
        joint,
        lower=lower,
        upper=upper,
        effort=read_bound(reading, element, "effort", required(reading, element, "effort")),
        velocity=read_bound(reading, element, "velocity", element.get("velocity")),
    )


def read_turn_limits(reading: Reading, element: Element | None, joint: Joint) -> Joint:
    """<limit swing1 swing2 twist_lower twist_upper effort velocity> of a spherical joint, as PhysX has them: half
    angles of the cone about y and z, and the twist about <axis> [rad].

    All may be left out; a single swing holds for both axes.
    """
    if element is None:
        return joint
    first, second, lower, upper = (
        read_number(reading, element, name) if element.get(name) is not None else None for name in BALL_LIMITS[:4]
    )
    if (lower is None) != (upper is None):
        reading.refuse(element, f"{describe(element)} has one of twist_lower and twist_upper, want both")
    first, second = second if first is None else first, first if second is None else second
    swing = None if first is None or second is None else (first, second)
    turning = TurnLimits(swing, None if lower is None or upper is None else (lower, upper), joint.axis)
    if turning.flaw:
        reading.refuse(element, f"{describe(element)}: {turning.flaw}")
    effort, velocity = (
        None if element.get(name) is None else read_bound(reading, element, name, element.get(name))
        for name in ("effort", "velocity")
    )
    return dataclasses.replace(joint, turning=turning, effort=effort, velocity=velocity)


def read_range(reading: Reading, element: Element, joint: Joint) -> tuple[float | None, float | None]:
    """The range of lower and upper; a missing bound is 0, as in urdfdom. Continuous and planar joints have no range."""
    lower, upper = read_number(reading, element, "lower", 0.0), read_number(reading, element, "upper", 0.0)
    given = element.get("lower") is not None or element.get("upper") is not None
    if joint.kind not in ("revolute", "prismatic"):
        if lower or upper:
            reading.note(element, f"{describe(element)}: a {joint.kind} joint has no position limits; ignored")
        return None, None
    if lower > upper:
        told = f"{describe(element)}: lower {lower:g} is greater than upper {upper:g}"
        reading.leave_out(element, told, "the range")
        return None, None
    if not given:
        reading.note(
            element, f"{describe(element)} has neither lower nor upper: both 0, the joint is locked", guess=True
        )
    elif lower == upper:
        reading.note(element, f"{describe(element)}: lower = upper = {lower:g}, the joint is locked")
    return lower, upper


def read_bound(reading: Reading, element: Element, name: str, text: str | None) -> float | None:
    """The bound in effort or velocity, None if unlimited; so is 0, which means "not known" in 56 public models."""
    if text is None:
        reading.note(element, f"{describe(element)} has no {name}: unlimited", guess=True)
        return None
    bound = convert(reading, element, name, text, 1)[0]
    if bound < 0:
        reading.refuse(element, f"{describe(element)}: {name} {bound:g} is negative")
    if bound == 0:
        reading.note(element, f"{describe(element)}: {name} 0 means unlimited")
        return None
    return bound


def read_dynamics(reading: Reading, element: Element | None, joint: Joint) -> Joint:
    """<dynamics damping friction> [N m s/rad or N s/m; N m or N]."""
    if element is None:
        return joint
    damping, friction = read_number(reading, element, "damping", 0.0), read_number(reading, element, "friction", 0.0)
    for name, value in (("damping", damping), ("friction", friction)):
        if value < 0:
            reading.refuse(element, f"{describe(element)}: {name} {value:g} is negative")
    return dataclasses.replace(joint, damping=damping, friction=friction)


# --- mimic -----------------------------------------------------------------------------------------------------------


def read_mimics(reading: Reading, root: Element, joints: list[Joint]) -> list[Coupling]:
    """The couplings of every <mimic>; a leader that does not exist, and a cycle of leaders, are refused."""
    by_name = {joint.name: joint for joint in joints}
    couplings: list[Coupling] = []
    for element in children(root, "joint"):
        item = child(reading, element, "mimic")
        if item is not None:
            couplings += read_mimic(reading, item, by_name[element.get("name", "")], by_name)
    refuse_mimic_cycles(reading, couplings)
    return couplings


def read_mimic(reading: Reading, element: Element, follower: Joint, joints: dict[str, Joint]) -> list[Coupling]:
    """<mimic joint multiplier offset axis>: follower = multiplier * leader + offset.

    A spherical joint may lead or follow: its coordinate is the twist about `axis` (x, y or z of its frame).
    """
    name = required(reading, element, "joint")
    multiplier = read_number(reading, element, "multiplier", 1.0)
    offset = read_number(reading, element, "offset", 0.0)
    what = f"joint {follower.name!r} mimics {name!r}"
    if follower.kind == "fixed":
        reading.note(element, f"{what} but is fixed: the mimic is ignored")
        return []
    if name not in joints:
        reading.leave_out(element, f"{what}, which does not exist{nearest(name, joints)}", "the mimic")
        return []
    leader = joints[name]
    if leader is follower:
        reading.refuse(element, f"{what}, that is itself")
    axis = read_mimic_axis(reading, element, follower, leader)
    if follower.kind not in SINGLE and not axis:
        reading.refuse(element, f"{what} but is {follower.kind}: only joints with one coordinate can mimic")
    if leader.kind == "fixed":
        reading.note(element, f"{what}, which is fixed: held at {offset:g}")
        return [Coupling(follower.name, None, (offset,), source=reading.at(element))]
    if leader.kind not in SINGLE and not axis:
        reading.refuse(element, f"{what}, which is {leader.kind}: only joints with one coordinate can be mimicked")
    return [Coupling(follower.name, leader.name, (offset, multiplier), axis=axis, source=reading.at(element))]


def read_mimic_axis(reading: Reading, element: Element, follower: Joint, leader: Joint) -> Literal["", "x", "y", "z"]:
    """The `axis` of <mimic>: the axis of the spherical joint, leader or follower, whose twist is coupled."""
    axis = element.get("axis")
    what = f"joint {follower.name!r} mimics {leader.name!r}"
    balls = [joint for joint in (follower, leader) if joint.kind == "ball"]
    if len(balls) == 2:
        reading.refuse(element, f"{what}: both are spherical, want one of them with one coordinate")
    if not balls:
        if axis is not None:
            reading.note(element, f"{what}: axis={axis!r} is for spherical joints; ignored", guess=True)
        return ""
    other = leader if balls[0] is follower else follower
    if other.kind not in SINGLE:
        reading.refuse(
            element,
            f"{what}: joint {other.name!r} is {other.kind}; an axis of a spherical joint follows, or is "
            "followed by, a joint with one coordinate",
        )
    if axis not in MIMIC_AXES:
        given = "no axis" if axis is None else f"axis {axis!r}"
        reading.refuse(element, f'{what}, with {given}: want axis="x", "y" or "z" of spherical joint {balls[0].name!r}')
    return MIMIC_AXES[axis]


def refuse_mimic_cycles(reading: Reading, couplings: list[Coupling]) -> None:
    """Refuse a cycle of mimics, found by following each follower to its last leader."""
    by_follower = {coupling.follower: coupling for coupling in couplings}
    done: set[str] = set()
    for start in by_follower:
        path: dict[str, None] = {}  # an ordered set
        name: str | None = start
        while name is not None and name in by_follower and name not in done:
            if name in path:
                names = list(path)
                cycle = [*names[names.index(name) :], name]
                shown = " -> ".join(map(repr, cycle[:12])) + (" …" if len(cycle) > 12 else "")
                reading.refuse(by_follower[name].source, f"mimic joints form a cycle: {shown}")
            path[name] = None
            name = by_follower[name].leader
        done |= path.keys()


# --- transmissions ---------------------------------------------------------------------------------------------------


def read_transmissions(reading: Reading, root: Element, joints: list[Joint]) -> tuple[list[Actuator], list[Joint]]:
    """Every <transmission>: its actuators, and the joints with the inertia of their rotors."""
    by_name = {joint.name: joint for joint in joints}
    actuators: list[Actuator] = []
    for element in children(root, "transmission"):
        actuators += read_transmission(reading, element, by_name)
    return actuators, list(by_name.values())


def read_transmission(reading: Reading, element: Element, joints: dict[str, Joint]) -> list[Actuator]:
    """One actuator, with the reduction, for each joint of a <transmission>."""
    targets = [item.get("name", "") for item in children(element, "joint")]
    motors = list(children(element, "actuator"))
    if not targets or len(motors) not in (1, len(targets)):
        reading.note(element, f"{describe(element)} has {len(motors)} actuators for {len(targets)} joints: ignored")
        return []
    actuators: list[Actuator] = []
    for position, target in enumerate(targets):
        if target not in joints:
            reading.note(
                element, f"{describe(element)}: joint {target!r} does not exist{nearest(target, joints)}: ignored"
            )
            continue
        motor = motors[min(position, len(motors) - 1)]
        places = (element, motor, list(children(element, "joint"))[position])
        reduction = read_reduction(reading, *places, used=child(reading, motor, "motorInertia") is not None)
        name = motor.get("name") or f"{target}_motor"
        actuators.append(Actuator(name, target, (reduction,), reading.at(motor), acts=False))
        joints[target] = read_rotor(reading, motor, joints[target], reduction)
    return actuators


def read_reduction(reading: Reading, *places: Element, used: bool) -> float:
    """<mechanicalReduction> of the transmission itself (ROS 1), its actuator or its joint; 1 if there is none.

    Only a rotor's inertia needs the reduction: if it is not `used`, text that is no number is a warning.
    """
    for place in places:
        item = child(reading, place, "mechanicalReduction")
        text = "" if item is None else (item.text or "").strip()
        if item is None or not text:
            continue
        if used:
            return convert(reading, item, "content", text, 1)[0]
        try:
            return parse_numbers(text, 1)[0]
        except ValueError as error:
            reading.note(item, f"{describe(item)}: content {error}; taken as 1, nothing depends on it", guess=True)
    return 1.0


def read_rotor(reading: Reading, motor: Element, joint: Joint, reduction: float) -> Joint:
    """The joint's armature [kg m²], rotor inertia * ratio²: <motorInertia>, or Drake's rotor_inertia and gear_ratio."""
    inertia = child(reading, motor, "motorInertia")
    if inertia is None:
        inertia, ratio = child(reading, motor, "drake:rotor_inertia"), child(reading, motor, "drake:gear_ratio")
        reduction = 1.0 if ratio is None else content_number(reading, ratio, 1.0)
    if inertia is None or joint.kind not in SINGLE:
        return joint
    value = content_number(reading, inertia, 0.0)
    if value < 0:
        reading.refuse(inertia, f"{describe(inertia)}: rotor inertia {value:g} is negative")
    return dataclasses.replace(joint, armature=value * reduction * reduction)
