"""An Articulation as SDFormat 1.12: one model, links placed in the frames of those above them.

Joints stand at their anchors. A link with several joints becomes a chain of links without mass. A link that no joint
holds is free; what stands in the world is held by a fixed joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lxml import etree

from artsim.loaders.elements import Element
from artsim.loaders.sdf.geometry import DISC
from artsim.loaders.sdf.geometry import FRICTION as PLAIN_FRICTION
from artsim.loaders.writers.comments import carry_comments
from artsim.loaders.writers.elements_out import document, numbers
from artsim.loaders.writers.frames_out import chain, free_name, plain_mesh, planar_parts
from artsim.loaders.writers.losses import WHOLE, Losses, Said, geom_name, name_of, tell_unsaid
from artsim.loaders.writers.mesh_files import MeshFiles, absence, placed_points
from artsim.loaders.writers.sdf_elements import put, put_pose, write_values
from artsim.loaders.writers.sdf_loops import flaw_of_form, poses_at_zero, write_loop
from artsim.sim.articulation.description import (
    Articulation,
    Coupling,
    Geom,
    Inertial,
    Joint,
    Link,
    Loop,
    Pose,
)
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError

UNBOUNDED = 1e16  # from which on a bound is none
GRAVITY = (0.0, 0.0, -9.81)  # where a model stands in no world
WORLD = "world"
DRAKE = "http://drake.mit.edu"
FORMATS = (".stl", ".obj", ".dae", ".glb")  # each one file: a .gltf has buffers beside it
FRICTION = (1.0, 0.005, 0.0001)  # of geoms of other formats that give none
SAID: Said = {
    "Articulation": frozenset(("no_contact",)),
    "Link": frozenset("name inertial geoms self_collide gravity_compensation model".split()),
    "Inertial": frozenset("mass pose inertia".split()),
    "Joint": frozenset(
        "name kind parent child pose axis anchor lower upper effort velocity actuator_range damping friction "
        "stiffness spring_reference reference armature".split()
    ),
    "Geom": frozenset("name kind role size pose mesh vertices faces mesh_pose scale material friction surface".split()),
    "Surface": frozenset("type_bits affinity_bits restitution dimension priority".split()),
    "Material": frozenset("name rgba texture".split()),
    "Coupling": frozenset("follower leader coefficients".split()),
    "Loop": frozenset("name kind link_a link_b frame_a frame_b active free".split()),
    "Tendon": frozenset("name kind path lower upper damping friction stiffness spring_length".split()),
    "TendonPoint": frozenset("kind name value side_site".split()),
    "FileOptions": frozenset(("gravity",)),
}


@dataclass(slots=True)
class SdfText:
    """The file as far as it is written."""

    robot: Articulation
    losses: Losses
    meshes: MeshFiles
    model: Element
    links: set[str]  # names of links and joints, which share a scope
    joints: dict[str, list[Joint]] = field(default_factory=dict)  # above each link
    mimics: dict[str, Coupling] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of links and joints, where they differ from the robot's


def sdf_text(robot: Articulation, losses: Losses, meshes: MeshFiles) -> str:
    """The text of an SDF file. Raises UsageError for a robot that no SDF file can say."""
    root = etree.Element("sdf", {"version": "1.12"}, nsmap={"drake": DRAKE})
    called = robot.name if robot.name not in ("", WORLD) else "robot"
    place, prefix = root, ""
    gravity = robot.options.gravity
    if gravity is not None and gravity != GRAVITY:
        place = put(root, "world", name="world_of_" + called)
        put(place, "gravity", numbers(gravity))
        prefix = f"{called}::"
    model = put(place, "model", name=called)
    if not any(link.geoms or link.name != WORLD for link in robot.links):
        raise UsageError(f"{robot.name!r} has no links, and a model of SDF wants one")
    file = SdfText(robot, losses, meshes, model, {link.name for link in robot.links})
    for joint in robot.joints:
        file.joints.setdefault(joint.child, []).append(joint)
    name_joints(file)
    sort_couplings(file)
    if robot.self_collide:
        put(model, "self_collide", "true")
    tell_friction(file)
    write_tree(file)
    write_loops(file)
    write_sites(file)
    for kind, items in (("actuator", robot.actuators), ("tendon", [t for t in robot.tendons if t.kind != "loop"])):
        for item in items:
            losses.lost(kind, item.name, WHOLE, "is not said", physical=getattr(item, "acts", True))
    tell_unsaid(robot, SAID, losses)
    if prefix:
        joints = {file.names.get(f"joint {joint.name}", joint.name) for joint in robot.joints}
        roots = {"root", *(f"{link.name}_root" for link in robot.links)}
        losses.prefix(prefix, file.links | joints | roots, "since a world, by which SDF says gravity, holds the model")
    for pair in robot.no_contact:
        losses.lost(
            "excluded pair", name_of(pair), WHOLE, "is not said", physical=False
        )  # where it counts, tell_contacts does
    carry_comments(robot.text, root)
    return document(root)


def name_joints(file: SdfText) -> None:
    """Names of joints that differ from those of links, which share a scope in SDF; free roots are called root."""
    free = [joint for joint in file.robot.joints if joint.kind == "free"]
    for joint in file.robot.joints:
        name = joint.name
        if joint.kind == "free":
            name = "root" if len(free) == 1 else f"{joint.child}_root"
            if name != joint.name:
                file.losses.rename("joint", joint.name, name, "since SDF has no joint of a link that is free")
            continue
        if name in file.links:
            name = free_name(f"{name}_joint", file.links)
            if joint.kind != "fixed":
                file.losses.rename("joint", joint.name, name, "since a link or joint has its name")
        file.links.add(name)
        file.names[f"joint {joint.name}"] = name


def sort_couplings(file: SdfText) -> None:
    """The couplings that <mimic> can say, by their followers."""
    for coupling in file.robot.couplings:
        name = name_of(coupling)
        if any(coupling.coefficients[2:]):
            file.losses.lost("coupling", name, WHOLE, "is a polynomial; <mimic> has lines")
        elif coupling.leader is None or coupling.axis:
            file.losses.lost("coupling", name, WHOLE, "is not said by <mimic>")
        elif coupling.follower in file.mimics:
            file.losses.lost("coupling", name, WHOLE, "is the second one of its joint, which has one <mimic>")
        else:
            file.mimics[coupling.follower] = coupling


# --- links and joints ------------------------------------------------------------------------------------------------


def write_tree(file: SdfText) -> None:
    """Links with the joints above them, in the order of the description."""
    robot, losses = file.robot, file.losses
    for link in robot.links:
        above = file.joints.get(link.name)
        if above is None:
            write_root(file, link)
            continue
        if any(joint.kind == "planar" for joint in above):
            for joint in above:
                if joint.kind == "planar":
                    told = "is planar: two slides and a hinge stand for it"
                    losses.changed("joint", joint.name, WHOLE, told, physical=False)
                    for part in planar_parts(joint):
                        losses.add("added", "joint", part.name, WHOLE, f"is a part of planar joint {joint.name!r}")
            above = [part for joint in above for part in (planar_parts(joint) if joint.kind == "planar" else [joint])]
        for step in chain(above, file.links, anchored=True):
            joint = step.joint
            if step.added:
                element = put(file.model, "link", name=joint.child)
                put_pose(element, joint.pose, parent_name(file, joint.parent))
                write_inertial(Inertial(0.0), element)
                losses.add("added", "link", joint.child, WHOLE, f"stands between the joints of link {link.name!r}")
            else:
                write_link(file, link, link.name, joint)
            write_joint(file, joint)


def write_root(file: SdfText, link: Link) -> None:
    """A link that no joint holds: the world of another format, or the root of a URDF."""
    if link.name == WORLD:
        if not link.geoms:
            file.names[WORLD] = ""
            return
        name = free_name("world_link", file.links)
        file.names[WORLD] = name
        file.losses.rename("link", WORLD, name, "since SDF's world has no shapes of its own here")
        write_link(file, link, name, Joint("", "fixed", "", name))
    else:
        name = link.name
        write_link(file, link, name, Joint("", "fixed", "", name))
    if file.robot.base == "fixed" or link.name == WORLD:
        held = put(file.model, "joint", name=free_name(f"{name}_fixed", file.links), type="fixed")
        put(held, "parent", WORLD)
        put(held, "child", name)


def parent_name(file: SdfText, name: str) -> str:
    """The name of a link as it is written, "" for the world."""
    return "" if name == WORLD and not file.names.get(WORLD) else file.names.get(name, name)


def write_link(file: SdfText, link: Link, name: str, joint: Joint) -> None:
    """<link>, placed in the frame of the link above it."""
    element = put(file.model, "link", name=name)
    put_pose(element, joint.pose, parent_name(file, joint.parent))
    compensation = link.gravity_compensation
    if compensation == 1.0:
        put(element, "gravity", "false")
    elif compensation:
        told = f"of its weight {compensation:g} is compensated; SDF has all or nothing"
        file.losses.lost("link", link.name, "gravity_compensation", told)
    if link.self_collide is not None and link.self_collide != file.robot.self_collide:
        put(element, "self_collide", "true" if link.self_collide else "false")
    write_inertial(link.inertial or Inertial(0.0), element)
    taken: dict[str, set[str]] = {"visual": set(), "collision": set()}
    for count, geom in enumerate(link.geoms):
        write_geom(file, link, geom, count, element, taken)


def write_inertial(inertial: Inertial, parent: Element) -> None:
    """<inertial>, which is 1 kg where it is left out."""
    element = put(parent, "inertial")
    put_pose(element, inertial.pose)
    put(element, "mass", inertial.mass)
    tensor = put(element, "inertia")
    for name, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertial.inertia, strict=True):
        put(tensor, name, value)


def write_joint(file: SdfText, joint: Joint) -> None:
    """<joint> with its axis; nothing for a link that is free in the world."""
    if joint.kind in ("ball", "free") and joint.actuator_range is not None:
        told = f"the bounds of its actuators' forces are not said of a {joint.kind} joint"
        file.losses.lost("joint", joint.name, "actuator_range", told)
    if joint.kind == "free":
        if not stands_still(file, joint.parent):
            told = f"joint {joint.name!r} is free below link {joint.parent!r}, which moves"
            raise UsageError(f"{told}; SDF frees links in the world alone")
        if joint.parent != WORLD:
            told = f"is free in the world, not below {joint.parent!r}, which stands still"
            file.losses.changed("link", joint.child, "parent", told, physical=False)
        for name in ("damping", "friction", "stiffness", "armature", "effort", "velocity"):
            if getattr(joint, name):
                told = f"{name} {getattr(joint, name):g} is not said of a free link"
                file.losses.lost("joint", joint.name, name, told)
        return
    unlimited = joint.kind == "revolute" and joint.lower is None and joint.upper is None
    kind = "continuous" if unlimited else joint.kind
    element = put(file.model, "joint", name=file.names.get(f"joint {joint.name}", joint.name), type=kind)
    put_pose(element, Pose(joint.anchor))
    put(element, "parent", parent_name(file, joint.parent) or WORLD)
    put(element, "child", parent_name(file, joint.child))
    if joint.reference:
        told = f"the file's pose has it at {joint.reference:g}; a model of SDF is drawn at 0"
        file.losses.changed("joint", joint.name, "reference", told, physical=False)
    if joint.kind == "ball":
        for name in ("upper", "damping", "friction", "stiffness", "armature", "effort", "velocity"):
            if getattr(joint, name) or (name == "upper" and joint.upper is not None):
                told = f"{name} {getattr(joint, name):g} is not said of a ball joint"
                file.losses.lost("joint", joint.name, name, told)
    elif joint.kind != "fixed":
        write_axis(file, joint, element)


def write_axis(file: SdfText, joint: Joint, element: Element) -> None:
    """<axis> with limits, dynamics and <mimic>; the rotor as Drake has it."""
    axis = put(element, "axis")
    put(axis, "xyz", numbers(joint.axis))
    coupling = file.mimics.get(joint.name)
    if coupling is not None:
        offset, multiplier = (*coupling.coefficients, 0.0, 0.0)[:2]
        leader = str(coupling.leader)
        mimic = put(axis, "mimic", joint=file.names.get(f"joint {leader}", leader))
        put(mimic, "multiplier", multiplier)
        put(mimic, "offset", offset)
        put(mimic, "reference", 0.0)
    if joint.effort is None and joint.actuator_range is not None:
        low, high = joint.actuator_range
        told = f"its actuators' forces are bounded by {low:g} and {high:g}, which SDF does not say"
        file.losses.lost("joint", joint.name, "actuator_range", told)
    for name in ("lower", "upper", "effort", "velocity"):
        if abs(getattr(joint, name) or 0.0) >= UNBOUNDED:
            told = f"{name} {getattr(joint, name):g} is infinite in SDF"
            file.losses.changed("joint", joint.name, name, told)
            if name == "effort":
                file.losses.changed("joint", joint.name, "actuator_range", told)
    bounds = {"lower": joint.lower, "upper": joint.upper, "effort": joint.effort, "velocity": joint.velocity}
    write_values(axis, "limit", bounds)
    springs = {
        "damping": joint.damping or None,
        "friction": joint.friction or None,
        "spring_reference": joint.spring_reference or None,
        "spring_stiffness": joint.stiffness or None,
    }
    write_values(axis, "dynamics", springs)
    if joint.armature:
        put(element, f"{{{DRAKE}}}rotor_inertia", joint.armature)
        put(element, f"{{{DRAKE}}}gear_ratio", 1.0)


# --- geoms -----------------------------------------------------------------------------------------------------------


def write_geom(
    file: SdfText, link: Link, geom: Geom, count: int, parent: Element, taken: Mapping[str, set[str]]
) -> None:
    """<visual> or <collision>."""
    called, losses = geom_name(link.name, geom, count), file.losses
    if geom.kind == "heightfield":
        losses.lost("geom", called, WHOLE, "is a height field, which is not written as SDF; it is left out")
        return
    absent = absence(file.meshes, geom)
    if absent and not geom.mesh_uri:
        losses.lost("geom", called, WHOLE, f"its mesh {absent}; it is left out", physical=geom.role == "collision")
        return
    if absent and geom.mesh is not None:
        losses.lost("geom", called, "mesh", f"its mesh {absent}; it has the name that it had")
    if geom.kind == "mesh" and not absent:
        plain = plain_mesh(geom)
        geom = placed_points(geom) if plain is None else plain
    surface = geom.surface
    role = "visual" if surface.type_bits == surface.affinity_bits == 0 else geom.role
    name = free_name(geom.name.removeprefix(f"{link.name}::") or f"{role}_{count}", taken[role])
    element = put(parent, role, name=name)
    put_pose(element, geom.pose)
    write_shape(file, geom, called, put(element, "geometry"), absent)
    if role == "collision":
        write_surface(file, geom, called, element)
    elif geom.material is not None and geom.material.rgba is not None:
        colour = numbers(geom.material.rgba)
        material = put(element, "material")
        put(material, "ambient", colour)
        put(material, "diffuse", colour)
    if geom.material is not None and (geom.material.texture or role == "collision" or geom.material.rgba is None):
        losses.lost("geom", called, "material", "its material is not said in full", physical=False)


def write_shape(file: SdfText, geom: Geom, called: str, parent: Element, absent: str) -> None:
    """The shape of <geometry>."""
    size = geom.size
    element = put(parent, geom.kind)
    if geom.kind == "box":
        put(element, "size", numbers(tuple(2.0 * half for half in size)))
    elif geom.kind == "sphere":
        put(element, "radius", size[0])
    elif geom.kind in ("cylinder", "capsule"):
        put(element, "radius", size[0])
        put(element, "length", 2.0 * size[1])
    elif geom.kind == "ellipsoid":
        put(element, "radii", numbers(size))
    elif geom.kind == "plane":
        put(element, "normal", "0 0 1")
        if any(size[:2]):
            put(element, "size", numbers(tuple(2.0 * half for half in size[:2])))
    else:
        uri = geom.mesh_uri
        if not absent:
            name = called.partition("/")[2]
            uri = file.meshes.name_of(geom.mesh) if geom.mesh else file.meshes.name_of_vertices(geom, name)
        put(element, "uri", uri)
        if geom.scale != (1.0, 1.0, 1.0):
            put(element, "scale", numbers(geom.scale))


def write_surface(file: SdfText, geom: Geom, called: str, parent: Element) -> None:
    """<surface>: friction, bounce and masks."""
    losses, surface = file.losses, geom.surface
    sliding, torsional, rolling = geom.friction or FRICTION
    given = geom.friction is not None and geom.friction != FRICTION
    element = etree.Element("surface")
    if given:
        friction = put(element, "friction")
        ode = put(friction, "ode")
        put(ode, "mu", sliding)
        put(ode, "mu2", sliding)
        if torsional and surface.dimension > 3:
            turning = put(friction, "torsional")
            put(turning, "coefficient", 1.0)
            put(turning, "use_patch_radius", "true")
            put(turning, "patch_radius", torsional / DISC)
        elif torsional:
            losses.lost(
                "geom",
                called,
                "friction",
                "its coefficients of torsion and rolling, which do not act, are not said",
                physical=False,
            )
        if rolling:
            losses.lost(
                "geom", called, "friction", f"rolling friction {rolling:g} is not said", physical=surface.dimension > 4
            )
    wanted = 4 if given and torsional and surface.dimension > 3 else 3
    if surface.dimension != wanted:
        told = f"its contacts resist in {surface.dimension} directions; here in {wanted}"
        losses.changed("geom", called, "surface.dimension", told)
    if surface.restitution:
        put(put(element, "bounce"), "restitution_coefficient", surface.restitution)
    masks = masks_of(file, geom)
    if masks is not None:
        contact = put(element, "contact")
        put(contact, "collide_bitmask", f"0x{masks[1]:04x}")
        put(contact, "category_bitmask", f"0x{masks[0]:04x}")
    if len(element):
        parent.append(element)


def masks_of(file: SdfText, geom: Geom) -> tuple[int, int] | None:
    """Category and collide masks; None for a shape that touches as all others do."""
    kind, affinity = geom.surface.type_bits, geom.surface.affinity_bits
    if file.robot.format == "sdf":
        kind, affinity = kind >> 1, affinity >> 1
        return None if kind == affinity == 0xFFFF else (kind, affinity)
    bits = {
        (g.surface.type_bits, g.surface.affinity_bits)
        for link in file.robot.links
        for g in link.geoms
        if g.role == "collision"
    }
    return None if bits <= {(1, 1), (0, 0)} else (kind & 0xFFFF, affinity & 0xFFFF)


def tell_friction(file: SdfText) -> None:
    """Tell where the smaller coefficient of friction of two shapes counts, as in Gazebo, in place of the larger."""
    robot = file.robot
    geoms = [
        (geom_name(link.name, geom, count), geom)
        for link in robot.links
        for count, geom in enumerate(link.geoms)
        if geom.role == "collision"
    ]
    sliding = {(geom.friction or PLAIN_FRICTION)[0] for _, geom in geoms}
    if robot.format == "sdf":
        return
    for name, geom in geoms:
        if len(sliding) > 1 or geom.surface.priority:
            told = "the smaller coefficient of friction of two shapes counts in SDF, in place of the larger"
            file.losses.changed("geom", name, "surface.priority", told)


# --- sites -----------------------------------------------------------------------------------------------------------


def write_sites(file: SdfText) -> None:
    """<frame attached_to>: the places of sites, which artsim does not read from SDF."""
    for site in file.robot.sites:
        parent = parent_name(file, site.link)
        if not parent:
            file.losses.lost("site", site.name, WHOLE, "stands in the world, and frames of a model move with a link")
            continue
        name = free_name(site.name or "site", file.links)
        element = put(file.model, "frame", name=name, attached_to=parent)
        put_pose(element, site.pose)
        file.losses.changed("site", site.name, WHOLE, "is a frame, without a shape, which artsim does not read")


# --- loops -----------------------------------------------------------------------------------------------------------


def write_loops(file: SdfText) -> None:
    """Joints that close loops, which SDF has where their frames meet in the file's pose."""
    poses = poses_at_zero(file.robot)
    tendons = {tendon.path[0].name: tendon for tendon in file.robot.tendons if tendon.kind == "loop"}
    for loop in file.robot.loops:
        why = flaw_of(file, loop, poses)
        if why:
            file.losses.lost("loop", loop.name, WHOLE, why)
            for tendon in file.robot.tendons:
                if tendon.kind == "loop" and tendon.path[0].name == loop.name:
                    file.losses.lost("tendon", tendon.name, WHOLE, "acts along an axis of a loop that is left out")
            continue
        name = free_name(loop.name, file.links)
        if name != loop.name:
            file.losses.rename("loop", loop.name, name, "since a link or joint has its name")
        parent, child = parent_name(file, loop.link_a) or WORLD, parent_name(file, loop.link_b)
        write_loop(file.model, loop, name, parent, child, tendons.get(loop.name))


def flaw_of(file: SdfText, loop: Loop, poses: Mapping[str, Pose]) -> str:
    """The reason why SDF cannot say a loop; "" if it can."""
    told = flaw_of_form(loop, poses)
    root = root_of(file, loop.link_b)
    if loop.active and loop.link_b != WORLD and (loop.link_b == root or root_of(file, loop.link_a) != root):
        told = "holds links of different trees, which in SDF makes them one"
    return told


def stands_still(file: SdfText, name: str) -> bool:
    """True for the world and for links that fixed joints hold in it."""
    while name != WORLD:
        above = file.joints.get(name)
        if above is None:
            return file.robot.base == "fixed"
        if any(joint.kind != "fixed" for joint in above):
            return False
        name = above[0].parent
    return True


def root_of(file: SdfText, name: str) -> str:
    """The free link, or the world, on which a link stands by other joints."""
    while name != WORLD:
        above = file.joints.get(name)
        if above is None:
            return WORLD if file.robot.base == "fixed" else name
        if above[0].kind == "free":
            return name
        name = above[0].parent
    return name
