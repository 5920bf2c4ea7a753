"""<link> and <material> of a URDF: inertias, shapes, meshes, colours."""

from __future__ import annotations

import dataclasses
import math

from artsim.loaders.assets import AssetMissingError, AssetOutsideError, AssetRefusedError
from artsim.loaders.elements import (
    Element,
    Reading,
    check_sizes,
    child,
    children,
    convert,
    describe,
    named,
    read_number,
    read_pose,
    read_vector,
    required,
    tag,
)
from artsim.loaders.inertia import principal_moments
from artsim.sim.articulation.description import Geom, GeomRole, Inertial, Link, Material, Pose, Vector3
from artsim.sim.articulation.pose_algebra import multiply, quaternion_from_z

IMPLAUSIBLE_MASS = 1e9  # [kg], ten aircraft carriers
ROLES: tuple[GeomRole, GeomRole] = ("visual", "collision")


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
