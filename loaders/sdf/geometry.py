"""<collision> and <visual> of SDFormat: shapes, surfaces, colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from artsim.loaders.assets import AssetMissingError, AssetOutsideError, AssetRefusedError
from artsim.loaders.elements import Element, check_sizes, child, children, convert, describe, direction, named, tag
from artsim.loaders.sdf.frames import Scope
from artsim.loaders.sdf.include import NET
from artsim.loaders.sdf.reading import SdfReading, flag_of, number_of, read_pose, text_of, vector_of
from artsim.sim.articulation.description import Geom, GeomRole, Link, Material, Pose, Surface
from artsim.sim.articulation.pose_algebra import compose, inverse, multiply, quaternion_from_z

ROLES: tuple[GeomRole, GeomRole] = ("visual", "collision")
BITS = 0xFFFF  # SDFormat's default of collide_bitmask, and all its bits that count
FRICTION = (1.0, 0.0, 0.0)  # SDFormat's default
UNBOUNDED = 100.0  # friction in place of unbounded friction
STICKS = 10.0  # friction: with more, a contact whose normal is within 84° of the force does not slide
DISC = 3.0 * math.pi / 16.0  # torque of a turning patch, divided by its radius and its friction force


def read_geoms(reading: SdfReading, element: Element, scope: Scope, link: str) -> list[Geom]:
    """The shapes of a <link>, whose name in the whole model is `link`."""
    geoms: list[Geom] = []
    for role in ROLES:
        seen: set[str] = set()
        for item in children(element, role):
            geom = read_geom(reading, item, scope, link, role)
            if named(reading, item) in seen:
                reading.refuse(item, f"{describe(item)}: the link has another <{role}> {item.get('name')!r}")
            seen.add(item.get("name", ""))
            geoms += [] if geom is None else [geom]
    return geoms


def read_geom(reading: SdfReading, element: Element, scope: Scope, link: str, role: GeomRole) -> Geom | None:
    """The geom of <collision> or <visual>; None if its shape has no extent or is left out."""
    geometry = child(reading, element, "geometry")
    if geometry is None and role == "visual":
        reading.note(element, f"{describe(element)} has no <geometry>: not drawn", once="visual without geometry")
        return None
    if geometry is None:
        reading.refuse(element, f"{describe(element)} has no <geometry>")
    plain = Geom(
        name=f"{link}::{named(reading, element)}",
        kind="box",
        role=role,
        pose=pose_in_link(reading, element, scope),
        material=read_material(reading, child(reading, element, "material")),
        source=reading.at(element),
    )
    if role == "collision":
        plain = read_surface(reading, child(reading, element, "surface"), plain)
    return read_geometry(reading, geometry, plain)


def pose_in_link(reading: SdfReading, element: Element, scope: Scope) -> Pose:
    """The <pose> of a child of <link>, in that link's frame."""
    item = child(reading, element, "pose")
    pose, relative_to = read_pose(reading, item), "" if item is None else item.get("relative_to", "")
    link = element.getparent()
    assert link is not None
    if item is None or relative_to in ("", link.get("name", "")):
        return pose
    return compose(inverse(scope.pose_of(link.get("name", ""), link)), compose(scope.pose_of(relative_to, item), pose))


# --- shapes ----------------------------------------------------------------------------------------------------------


def read_geometry(reading: SdfReading, element: Element, plain: Geom) -> Geom | None:
    """The geom of the shape in <geometry>; None if the shape has no extent or is left out."""
    shapes = [item for item in element if tag(item) in SHAPES or tag(item) in MISSING or tag(item) == "empty"]
    kinds = list(dict.fromkeys(map(tag, shapes)))
    if len(shapes) != 1 and kinds != ["polyline"]:  # several polylines may be one shape of several outlines
        told = f"{len(shapes)} shapes" if shapes else "no shape"
        told = f"{describe(element)} holds {told}, want one of {', '.join(SHAPES)}"
        if plain.role == "collision":
            reading.refuse(element, told)
        reading.note(element, f"{told}: not drawn", once="visual of several shapes")
        return None
    shape, kind = shapes[0], kinds[0]
    if kind == "empty":
        return None
    if kind in MISSING:
        told = f"{describe(shape)} is not supported"
        if plain.role == "collision":
            reading.leave_out(shape, told, "the shape")
        else:
            reading.note(shape, f"{told}: not drawn", once=f"visual <{kind}>")
        return None
    geom = SHAPES[kind](reading, shape, plain)
    if geom is None or geom.kind in ("plane", "mesh") or min(geom.size) > 0:
        return geom
    if geom.kind == "capsule" and geom.size[0] > 0:
        return replace(geom, kind="sphere", size=geom.size[:1])
    reading.note(shape, f"{describe(shape)}: size 0 m; the shape is left out", guess=geom.role == "collision")
    return None


def read_box(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<box><size> [m]: full lengths in the file, half here."""
    size = vector_of(reading, element, "size", (1.0, 1.0, 1.0))
    check_sizes(reading, element, size)
    return replace(plain, kind="box", size=tuple(length / 2 for length in size))


def read_sphere(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<sphere><radius> [m]."""
    return replace(plain, kind="sphere", size=(number_of(reading, element, "radius", 1.0, least=0.0),))


def read_cylinder(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<cylinder><radius><length> [m], along z."""
    radius = number_of(reading, element, "radius", 1.0, least=0.0)
    return replace(plain, kind="cylinder", size=(radius, number_of(reading, element, "length", 1.0, least=0.0) / 2))


def read_capsule(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<capsule><radius><length> [m], along z; the length is measured between the centres of the caps."""
    radius = number_of(reading, element, "radius", 0.5, least=0.0)
    return replace(plain, kind="capsule", size=(radius, number_of(reading, element, "length", 1.0, least=0.0) / 2))


def read_ellipsoid(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<ellipsoid><radii> [m]."""
    radii = vector_of(reading, element, "radii", (1.0, 1.0, 1.0))
    check_sizes(reading, element, radii)
    return replace(plain, kind="ellipsoid", size=radii)


def read_plane(reading: SdfReading, element: Element, plain: Geom) -> Geom:
    """<plane><normal><size>: unbounded in a <collision>; drawn with the full lengths `size` [m]."""
    item = child(reading, element, "normal")
    normal = (0.0, 0.0, 1.0) if item is None else vector_of(reading, element, "normal", (0.0, 0.0, 1.0))
    turn = quaternion_from_z(direction(reading, element if item is None else item, normal))
    pose = Pose(plain.pose.position, multiply(plain.pose.rotation, turn))
    size = child(reading, element, "size")
    half = (0.0, 0.0)
    if size is not None and plain.role == "visual":
        x, y = convert(reading, size, "content", size.text or "", 2)
        check_sizes(reading, size, (x, y))
        half = (x / 2, y / 2)
    return replace(plain, kind="plane", size=half, pose=pose)


def read_mesh(reading: SdfReading, element: Element, plain: Geom) -> Geom | None:
    """<mesh><uri><scale>: the name is resolved, the file is not read here."""
    part = child(reading, element, "submesh")
    if part is not None:
        if plain.role == "collision":
            reading.leave_out(part, f"{describe(part)}: a part of a mesh is not supported", "the shape")
        else:
            reading.note(part, f"{describe(part)}: a part of a mesh is not drawn", once="visual <submesh>")
        return None
    if element.get("optimization"):
        reading.silent.setdefault("mesh optimization", "--decompose says how meshes collide")
    uri = text_of(reading, element, "uri")
    scale = vector_of(reading, element, "scale", (1.0, 1.0, 1.0))
    if 0.0 in scale:
        reading.refuse(element, f"{describe(element)}: scale {' '.join(f'{x:g}' for x in scale)} flattens the mesh")
    geom = replace(plain, kind="mesh", mesh_uri=uri, scale=scale)
    assets = reading.assets_of(element)
    if assets is None:
        return geom
    try:
        return replace(geom, mesh=assets.resolve(uri))
    except AssetOutsideError as error:
        if plain.role == "collision":
            reading.refuse(element, f"{describe(element)}: {uri!r}: {error}")
        reading.note(element, f"{describe(element)}: {uri!r} is not opened: {error}", guess=True)
        return replace(geom, mesh_absent=f"not opened: {error}")
    except AssetRefusedError as error:
        if not NET.match(uri):
            reading.refuse(element, f"{describe(element)}: {uri!r}: {error}")
        if plain.role == "collision":
            reading.leave_out(element, f"{describe(element)}: {uri!r}: {error}", "the shape")
        else:
            reading.note(element, f"{describe(element)}: {uri!r} is not drawn: {error}", once="visuals in the net")
        return replace(geom, mesh_absent=f"not read: {error}") if plain.role == "visual" else None
    except AssetMissingError as error:
        reading.missing.setdefault(error.why, []).append((element, uri, str(error)))
        return replace(geom, mesh_absent=f"not found: {error}")


SHAPES: dict[str, Callable[[SdfReading, Element, Geom], Geom | None]] = {
    "box": read_box,
    "sphere": read_sphere,
    "cylinder": read_cylinder,
    "capsule": read_capsule,
    "drake:capsule": read_capsule,
    "ellipsoid": read_ellipsoid,
    "plane": read_plane,
    "mesh": read_mesh,
}
MISSING = frozenset(("heightmap", "image", "polyline", "cone", "drake:ellipsoid"))


# --- surfaces --------------------------------------------------------------------------------------------------------


def read_surface(reading: SdfReading, element: Element | None, geom: Geom) -> Geom:
    """The geom with its <surface>: friction, restitution and collision masks."""
    if element is None:
        return replace(geom, surface=surface_of(BITS, BITS))
    if child(reading, element, "soft_contact") is not None:
        reading.note(
            element, f"{describe(element)}: <soft_contact> is ignored: contacts are rigid", once="soft_contact"
        )
    bounce = child(reading, element, "bounce")
    restitution = number_of(reading, bounce, "restitution_coefficient", 0.0, least=0.0)
    if restitution > 1:
        reading.refuse(element, f"{describe(element)}: restitution {restitution:g} is not between 0 and 1")
    if restitution > 0 and number_of(reading, bounce, "threshold", 0.0) > 0:
        told = f"{describe(element)}: <threshold> is ignored: impacts bounce at any speed"
        reading.note(element, told, once="<threshold>")
    friction = read_friction(reading, child(reading, element, "friction"))
    surface = replace(
        read_contact(reading, child(reading, element, "contact")),
        restitution=restitution,
        dimension=4 if friction is not None and friction[1] > 0 else 3,
    )
    return replace(geom, surface=surface, friction=friction)


def surface_of(category: int, collide: int) -> Surface:
    """The surface of a shape with these masks: two shapes touch if one collides with a category of the other. A shape
    without masks (a ground, models of other formats) has all categories and collides with all.
    """
    return Surface(type_bits=category << 1 | int(category | collide != 0), affinity_bits=collide << 1)


def read_contact(reading: SdfReading, element: Element | None) -> Surface:
    """<contact>: masks; the rest tunes soft contacts."""
    if element is None:
        return surface_of(BITS, BITS)
    for engine in ("ode", "bullet"):
        item = child(reading, element, engine)
        for gain in (name for name in ("kp", "kd") if item is not None and child(reading, item, name) is not None):
            reading.note(element, f"{describe(element)}: <{gain}> is ignored: contacts are rigid", once=f"<{gain}>")
    if number_of(reading, element, "elastic_modulus", -1.0) > 0:
        told = f"{describe(element)}: <elastic_modulus> is ignored: contacts are rigid"
        reading.note(element, told, once="<elastic_modulus>")
    collide = read_bits(reading, element, "collide_bitmask", BITS)
    category = read_bits(reading, element, "category_bitmask", collide)
    if flag_of(reading, element, "collide_without_contact"):
        told = f"{describe(element)}: <collide_without_contact>: the shape touches nothing, and no contacts are told"
        reading.note(element, told, once="<collide_without_contact>")
        collide = category = 0
    return surface_of(category, collide)


def read_bits(reading: SdfReading, element: Element, name: str, default: int) -> int:
    """A mask, of which 16 bits count."""
    text = text_of(reading, element, name, str(default))
    try:
        bits = int(text, 16 if text.lower().startswith("0x") else 10) if len(text) < 20 else -1
    except ValueError:
        bits = -1
    if not 0 <= bits < 2**32:
        reading.refuse(element, f"{describe(element)}: {name} {text[:40]!r}, want a whole number of 32 bits")
    if bits > BITS and bits & BITS != BITS:
        reading.note(element, f"{describe(element)}: {name} {text[:40]!r}: 16 bits count, {bits & BITS:#06x}")
    return bits & BITS


def read_friction(reading: SdfReading, element: Element | None) -> tuple[float, float, float] | None:
    """<friction>: sliding, torsional [m] and rolling [m] coefficients; None if the file gives none.

    ODE's mu counts, else Bullet's friction. A turning patch of radius a resists with 3π/16 a μ N.
    """
    if element is None:
        return None
    sliding: float | None = None
    for engine, first, second in (("ode", "mu", "mu2"), ("bullet", "friction", "friction2")):
        item = child(reading, element, engine)
        for name in ("slip1", "slip2"):
            if item is not None and number_of(reading, item, name, 0.0):
                reading.note(item, f"{describe(item)}: <{name}> is ignored", once=f"<{name}>")
        if sliding is None and item is not None and child(reading, item, first) is not None:
            sliding = read_coefficient(reading, item, first, 1.0)
            across = read_coefficient(reading, item, second, sliding)
            if across != sliding and min(across, sliding) < STICKS:
                told = f"{describe(item)}: {first} and {second} differ; {first} = {sliding:g} counts in all directions"
                reading.note(item, told, once=f"<{first}> and <{second}>")
    turning = child(reading, element, "torsional")
    torsional = 0.0
    if turning is not None and flag_of(reading, turning, "use_patch_radius", True):
        radius = number_of(reading, turning, "patch_radius", 0.0, least=0.0)
        torsional = DISC * radius * number_of(reading, turning, "coefficient", 1.0, least=0.0)
    elif number_of(reading, turning, "surface_radius", 0.0) > 0:
        assert turning is not None
        told = f"{describe(turning)}: torsional friction by the depth of contacts is not supported"
        reading.note(turning, f"{told}: none", guess=True)
    if number_of(reading, None if turning is None else child(reading, turning, "ode"), "slip", 0.0):
        reading.note(element, f"{describe(element)}: <slip> of <torsional> is ignored", once="<slip>")
    if sliding is None and not torsional:
        return None
    return (1.0 if sliding is None else sliding, torsional, 0.0)


def read_coefficient(reading: SdfReading, element: Element, name: str, default: float) -> float:
    """A coefficient of friction; a negative one means unbounded friction, as in Gazebo."""
    value = number_of(reading, element, name, default)
    if value < 0:
        told = f"{describe(element)}: {name} = {value:g} is without bound in Gazebo; {UNBOUNDED:g} here"
        reading.note(element, told, once="friction without bound")
    return UNBOUNDED if value < 0 else value


def rank_friction(links: Sequence[Link]) -> tuple[Link, ...]:
    """The links with priorities by which the smaller coefficient of friction of two touching shapes counts, as in
    Gazebo. Shapes with the largest coefficient have priority 0, like shapes of other models.
    """
    slides = {(geom.friction or FRICTION)[0] for link in links for geom in link.geoms if geom.role == "collision"}
    rank = {value: n for n, value in enumerate(sorted(slides, reverse=True))}

    def ranked(geom: Geom) -> Geom:
        value = (geom.friction or FRICTION)[0]
        return replace(geom, surface=replace(geom.surface, priority=rank.get(value, 0)))

    if len(rank) < 2:
        return tuple(links)
    return tuple(replace(link, geoms=tuple(map(ranked, link.geoms))) for link in links)


def read_material(reading: SdfReading, element: Element | None) -> Material | None:
    """<material>: its diffuse colour, for the viewer."""
    colour = None if element is None else child(reading, element, "diffuse")
    if colour is None:
        return None
    words = (colour.text or "").split()
    r, g, b, *a = convert(reading, colour, "content", " ".join(words), 3 if len(words) == 3 else 4)
    return Material(rgba=(r, g, b, a[0] if a else 1.0))
