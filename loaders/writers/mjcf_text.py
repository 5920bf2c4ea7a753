"""An Articulation as MJCF: sections in the order in which MuJoCo's manual has them, everything explicit.

Masses are written as they are, in <inertial>, so that no geom adds any (inertiafromgeom="false"); angles are radians.
The bits of geoms say which models touch themselves: those of a robot that does not have the type 1 and the affinity 0.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from pathlib import Path

from lxml import etree

from artsim.loaders.elements import LARGEST, Element
from artsim.loaders.inertia import principal_moments
from artsim.loaders.mjcf.mass import along_axes, has_inertia
from artsim.loaders.mjcf.option import INTEGRATORS
from artsim.loaders.mjcf.own_inertials import OWN_INERTIAL, numbers_of, possible, with_ghost
from artsim.loaders.mjcf.velocity_limits import VELOCITY_LIMIT
from artsim.loaders.writers.comments import carry_comments
from artsim.loaders.writers.elements_out import IDENTITY, add, document, number, say, say_pose
from artsim.loaders.writers.frames_out import planar_parts
from artsim.loaders.writers.losses import WHOLE, Losses, Said, geom_name, tell_unsaid
from artsim.loaders.writers.mesh_files import MeshFiles, absence
from artsim.loaders.writers.mjcf_defaults import group_defaults
from artsim.loaders.writers.mjcf_equipment import EQUIPMENT_SAID, write_equipment
from artsim.sim.articulation.description import (
    Articulation,
    FileOptions,
    Geom,
    Inertial,
    Joint,
    Link,
    Material,
    Pose,
    Site,
    Softness,
    Surface,
)
from artsim.sim.articulation.pose_algebra import compose
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import rotation_matrix, symmetric

WORLD = "world"
FORMATS = (".stl", ".obj", ".msh")  # that MuJoCo reads
TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "ball": "ball", "free": "free"}
POSITIVE = 1e-13  # [kg m²] of a moment, below which MuJoCo takes fullinertia for one of no body
SAID: Said = {
    **EQUIPMENT_SAID,
    "Articulation": frozenset(("no_contact",)),
    "Link": frozenset("name inertial geoms self_collide model gravity_compensation".split()),
    "Inertial": frozenset("mass pose inertia".split()),
    "Joint": frozenset(
        "name kind parent child pose axis anchor lower upper turning effort velocity actuator_range damping "
        "actuator_gravity_compensation damping_polynomial friction stiffness stiffness_polynomial spring_reference "
        "reference armature limit_softness limit_margin friction_softness".split()
    ),
    "Softness": frozenset(("reference", "impedance")),
    "Geom": frozenset(
        "name kind role size pose mesh vertices faces most_hull_vertices heights mesh_pose scale material group "
        "friction surface fluid".split()
    ),
    "Material": frozenset(("name", "rgba")),
    "Surface": frozenset(
        "type_bits affinity_bits dimension priority mix softness margin gap adhesion velocity".split()
    ),
    "Site": frozenset("name link pose kind size".split()),
    "FileOptions": frozenset(
        "timestep gravity integrator density viscosity wind magnetic contact filter_parent contact_override "
        "euler_damping cone friction_stiffness".split()
    ),
    "WrapGeom": frozenset("name link kind radius pose".split()),
    "ContactPair": frozenset(
        "name geom_a geom_b dimension friction softness friction_reference margin gap adhesion".split()
    ),
    "Keyframe": frozenset("name qpos qvel control activation".split()),
}
PLAIN = Surface()


@dataclass(slots=True)
class MjcfText:
    """The file as far as it is written."""

    robot: Articulation
    losses: Losses
    meshes: MeshFiles
    root: Element
    custom: Element
    asset: Element
    bodies: dict[str, Element] = field(default_factory=dict)  # by the names of links
    materials: dict[Material, str] = field(default_factory=dict)
    mesh_names: dict[tuple[object, ...], str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # "kind name" of what is written


def mjcf_text(robot: Articulation, losses: Losses, meshes: MeshFiles) -> str:
    """The text of an MJCF file. Raises UsageError for a robot that no MJCF file can say."""
    root = etree.Element("mujoco", model=robot.name)
    add(root, "compiler", angle="radian", inertiafromgeom="false")
    write_options(robot, root, losses)
    file = MjcfText(robot, losses, meshes, root, add(root, "custom"), add(root, "asset"))
    write_velocities(file)
    write_bodies(file)
    write_equipment(robot, root, losses)
    tell_unsaid(robot, SAID, losses)
    for empty in [element for element in root if not len(element) and not element.attrib]:
        root.remove(empty)
    group_defaults(root)
    carry_comments(robot.text, root)
    return document(root)


def write_velocities(file: MjcfText) -> None:
    """<custom>: velocity limits, which MuJoCo does not have, as numbers of a name that artsim reads."""
    for joint in file.robot.joints:
        if joint.velocity is None or joint.kind not in ("revolute", "continuous", "prismatic"):
            continue
        if joint.velocity > LARGEST:
            told = f"velocity {joint.velocity:g} is beyond every motion: not said, which is unlimited"
            file.losses.changed("joint", joint.name, "velocity", told)
        else:
            add(file.custom, "numeric", name=f"{VELOCITY_LIMIT}{joint.name}", data=joint.velocity)


def write_options(robot: Articulation, root: Element, losses: Losses) -> None:
    """<option> and its <flag>."""
    options, plain = robot.options, FileOptions()
    option = add(root, "option")
    for name in ("timestep", "gravity", "density", "viscosity", "wind", "magnetic", "cone"):
        say(option, name, getattr(options, name), getattr(plain, name))
    say(option, "impratio", options.friction_stiffness, plain.friction_stiffness)
    if options.integrator in INTEGRATORS:
        option.set("integrator", str(options.integrator))
    elif options.integrator is not None:
        losses.lost("option", "", "integrator", f"integrator {options.integrator!r} is none of MuJoCo's")
    if any(actuator.disabled for actuator in robot.actuators) and not all(a.frozen for a in robot.actuators):
        option.set("actuatorgroupdisable", "1")
    flags = {
        "contact": options.contact,
        "filterparent": options.filter_parent,
        "eulerdamp": options.euler_damping,
        "actuation": not robot.actuators or not all(actuator.frozen for actuator in robot.actuators),
    }
    off = {name: "disable" for name, on in flags.items() if not on}
    override = options.contact_override
    if override is not None:
        off["override"] = "enable"
        say(option, "o_margin", override.margin, 0.0)
        say(option, "o_solref", override.reference)
        say(option, "o_solimp", override.impedance)
        say(option, "o_friction", override.friction)
    if off:
        add(option, "flag", **off)


# --- bodies ----------------------------------------------------------------------------------------------------------


def write_bodies(file: MjcfText) -> None:
    """<worldbody>: links as bodies, in the order of the description."""
    robot = file.robot
    world = add(file.root, "worldbody")
    joints: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        joints.setdefault(joint.child, []).append(joint)
    massive = massive_links(robot, joints)
    file.bodies[WORLD] = world
    poses: dict[str, Pose] = {WORLD: Pose()}  # of links that stand still, in the world
    for link in robot.links:
        above = joints.get(link.name) or [root_joint(robot, link)]
        if link.name == WORLD and above[0].kind == "fixed" and above[0].parent == WORLD:
            if link.inertial is not None:
                file.losses.lost("link", link.name, "inertial", "the world has no mass", physical=False)
            body = world
        else:
            body = write_body(file, link, above, poses)
            write_inertial(file, link, body, still=link.name in massive)
        for count, geom in enumerate(link.geoms):
            write_geom(file, link, geom, count, body)
        for site in robot.sites:
            if site.link == link.name:
                write_site(site, body)


def root_joint(robot: Articulation, link: Link) -> Joint:
    """The joint of a link that none holds, as the engine has it."""
    return Joint("root", "free" if robot.base == "floating" else "fixed", WORLD, link.name, source=link.source)


def massive_links(robot: Articulation, joints: dict[str, list[Joint]]) -> set[str]:
    """The links that move with inertia, their own or of what is fixed to them, and those that stand still."""
    massive = {link.name for link in robot.links if has_inertia(link)}
    for link in reversed(robot.links):
        above = joints.get(link.name) or [root_joint(robot, link)]
        if all(joint.kind == "fixed" for joint in above):
            if link.name in massive:
                massive.add(above[0].parent)
            else:
                massive.add(link.name)  # needs none
    return massive


def write_body(file: MjcfText, link: Link, above: list[Joint], poses: dict[str, Pose]) -> Element:
    """<body> with the joints above it."""
    first, parent = above[0], above[0].parent
    pose = first.pose
    if all(joint.kind == "fixed" for joint in above) and parent in poses:
        poses[link.name] = compose(poses[parent], pose)
    if first.kind == "free" and parent != WORLD:
        if parent not in poses:
            raise UsageError(
                f"joint {first.name!r} is free below link {parent!r}, which moves: MJCF has free joints in the world "
                "alone"
            )
        told = f"is free in the world, not below {parent!r}, which stands still"
        file.losses.changed("link", link.name, "parent", told, physical=False)
        pose, parent = compose(poses[parent], pose), WORLD
    name = link.name
    if name == WORLD:
        name = "world_"
        file.losses.rename("link", link.name, name, "since MJCF's world has its name")
    body = add(file.bodies.get(parent, file.bodies[WORLD]), "body", name=name)
    file.bodies[link.name] = body
    say_pose(body, pose)
    say(body, "gravcomp", link.gravity_compensation, 0.0)
    for count, joint in enumerate(above):
        if joint.kind == "fixed" and len(above) == 1:
            if joint.name not in (link.name, "root"):
                file.losses.lost(
                    "joint",
                    joint.name,
                    "name",
                    "is fixed, and has no name in MJCF",
                    physical=False,
                )
        elif joint.kind == "fixed" or (count and joint.pose != Pose()):
            raise UsageError(f"joint {joint.name!r}: MJCF has no frames between the joints of a body")
        else:
            write_joint(file, joint, body)
    return body


def write_inertial(file: MjcfText, link: Link, body: Element, *, still: bool) -> None:
    """<inertial>: diagonal in its own frame, or whole in the body's axes; with inertia where MuJoCo wants some."""
    inertial, ghost = link.inertial, ""
    if not still:
        inertial, ghost = with_ghost(inertial or Inertial(0.0))
    if inertial is None:
        return
    inertial, told = possible(inertial)
    if ghost or told:
        kept = f"{told or ghost}; artsim reads its own from <custom>"
        file.losses.changed("link", link.name, "inertial", kept)
        add(file.custom, "numeric", name=f"{OWN_INERTIAL}{body.get('name')}", data=numbers_of(link.inertial))
    xx, xy, xz, yy, yz, zz = inertial.inertia
    element = add(body, "inertial", pos=inertial.pose.position, mass=inertial.mass)
    if (xy, xz, yz) == (0.0, 0.0, 0.0) or principal_moments(inertial.inertia)[0] < POSITIVE:
        inertial = along_axes(inertial)
        say(element, "quat", inertial.pose.rotation, IDENTITY)
        say(element, "diaginertia", tuple(max(inertial.inertia[k], 0.0) for k in (0, 3, 5)))
        return
    if inertial.pose.rotation != IDENTITY:
        R = rotation_matrix(inertial.pose.rotation)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = (R @ symmetric(inertial.inertia) @ R.T).tolist()
    say(element, "fullinertia", (xx, yy, zz, xy, xz, yz))


# --- joints ----------------------------------------------------------------------------------------------------------


def write_joint(file: MjcfText, joint: Joint, body: Element) -> None:
    """<joint>, or <freejoint>; the three joints that a planar one stands for."""
    if joint.kind == "planar":
        write_planar(file, joint, body)
        return
    if joint.kind == "free" and replace(joint, pose=Pose(), source=Joint("", "free", "", "").source) == Joint(
        joint.name, "free", joint.parent, joint.child
    ):
        add(body, "freejoint", name=joint.name)
        return
    element = add(body, "joint", name=joint.name)
    say(element, "type", TYPES[joint.kind], "hinge")
    scalar = joint.kind in ("revolute", "continuous", "prismatic")
    if scalar:
        say(element, "axis", joint.axis, (0.0, 0.0, 1.0))
    if joint.kind != "free":
        say(element, "pos", joint.anchor, (0.0, 0.0, 0.0))
    say_limits(file, joint, element)
    if scalar:
        say(element, "ref", joint.reference, 0.0)
        say(element, "springref", joint.spring_reference, 0.0)
    say_passive(file, joint, element)
    bounds = joint.actuator_range
    if scalar and bounds is None and joint.effort is not None and joint.effort > LARGEST:
        told = f"effort {joint.effort:g} is beyond every motor: not said, which is unlimited"
        file.losses.changed("joint", joint.name, "effort", told)
        file.losses.changed("joint", joint.name, "actuator_range", told)
    elif scalar and bounds is None and joint.effort is not None:
        bounds = (-joint.effort, joint.effort)
    elif not scalar and joint.effort is not None:
        file.losses.lost("joint", joint.name, "effort", f"effort {joint.effort:g} is not said of a {joint.kind} joint")
    if not scalar and joint.velocity is not None:
        told = f"velocity {joint.velocity:g} is not said of a {joint.kind} joint"
        file.losses.lost("joint", joint.name, "velocity", told)
    say(element, "actuatorfrcrange", bounds)
    say(element, "actuatorgravcomp", joint.actuator_gravity_compensation, False)


def say_limits(file: MjcfText, joint: Joint, element: Element) -> None:
    """range; one-sided ones have a far end, and locked joints a narrow range."""
    if joint.turning.given:
        told = "limits of swing and twist are not said; MJCF bounds the whole angle of a ball joint"
        file.losses.lost("joint", joint.name, "turning", told)
    lower, upper = joint.lower, joint.upper
    if joint.kind == "ball":
        if upper is not None and upper > 0:
            say(element, "range", (0.0, upper))
        elif upper is not None:
            say(element, "range", (0.0, 0.0))
            element.set("limited", "true")
        return
    if lower is None and upper is None:
        return
    if lower is None or upper is None:
        lower, upper = -1e10 if lower is None else lower, 1e10 if upper is None else upper
        file.losses.changed("joint", joint.name, "lower", "is limited on one side: the other limit is 1e10")
        file.losses.changed("joint", joint.name, "upper", "is limited on one side: the other limit is 1e10")
    if lower >= upper:
        file.losses.changed(
            "joint", joint.name, "upper", f"is locked at {lower:g}: MJCF has no empty range; it is {LOCK:g} wide"
        )
        upper = lower + max(LOCK, 4 * math.ulp(lower))
    say(element, "range", (lower, upper))


LOCK = 1e-14  # [rad or m] width of the range of a locked joint


def say_passive(file: MjcfText, joint: Joint, element: Element) -> None:
    """Stiffness, damping, friction, armature and the softness of limits and friction."""
    say_polynomial(element, "stiffness", joint.stiffness, joint.stiffness_polynomial)
    say_polynomial(element, "damping", joint.damping, joint.damping_polynomial)
    say(element, "frictionloss", joint.friction, 0.0)
    say(element, "armature", joint.armature, 0.0)
    say(element, "margin", joint.limit_margin, 0.0)
    say_softness(element, joint.limit_softness, "solreflimit", "solimplimit")
    say_softness(element, joint.friction_softness, "solreffriction", "solimpfriction")


def say_polynomial(element: Element, name: str, linear: float, others: tuple[float, float]) -> None:
    """Stiffness or damping: one number, or three."""
    if any(others):
        say(element, name, (linear, *others))
    else:
        say(element, name, linear, 0.0)


def say_softness(element: Element, softness: Softness, reference: str, impedance: str) -> None:
    """solref and solimp."""
    say(element, reference, softness.reference)
    say(element, impedance, softness.impedance)


def write_planar(file: MjcfText, joint: Joint, body: Element) -> None:
    """Two slides and a hinge with the coordinates of a planar joint."""
    file.losses.changed("joint", joint.name, WHOLE, "is planar: two slides and a hinge stand for it", physical=False)
    for part in planar_parts(joint):
        file.losses.add("added", "joint", part.name, WHOLE, f"is a part of planar joint {joint.name!r}")
        write_joint(file, part, body)


# --- geoms -----------------------------------------------------------------------------------------------------------


def write_geom(file: MjcfText, link: Link, geom: Geom, count: int, body: Element) -> None:
    """<geom>; one whose mesh or heights are missing is left out."""
    called = geom_name(link.name, geom, count)
    absent = absence(file.meshes, geom)
    if absent:
        told = f"its mesh {geom.mesh_uri!r} {absent}; it is left out"
        file.losses.lost("geom", called, WHOLE, told, physical=geom.role == "collision")
        return
    if geom.kind == "heightfield" and not geom.heights:
        file.losses.lost("geom", called, WHOLE, "its heights are not at hand; it is left out")
        return
    element = add(body, "geom")
    if geom.name:
        name = free(file, "geom", geom.name)
        if name != geom.name:
            told = f"is called {name!r}, since MJCF has one geom of a name"
            file.losses.changed("geom", called, "name", told, physical=False)
        element.set("name", name)
    say(element, "type", "hfield" if geom.kind == "heightfield" else geom.kind, "sphere")
    pose, size = geom.pose, geom.size
    if geom.kind == "mesh":
        element.set("mesh", mesh_name(file, geom))
    elif geom.kind == "heightfield":
        name, lowest = field_name(file, geom, called)
        element.set("hfield", name)
        pose = compose(pose, Pose((0.0, 0.0, lowest)))
    elif geom.kind == "plane":
        element.set("size", " ".join(map(number, (*size[:2], size[2] if len(size) > 2 else 1.0))))
    else:
        say(element, "size", size)
    say_pose(element, pose)
    say_surface(file, link, geom, called, element)
    say_looks(file, geom, called, element)
    say(element, "group", float(geom.group), 0.0)
    if geom.fluid is not None:
        fluid = geom.fluid
        element.set("fluidshape", "ellipsoid")
        drag = (fluid.blunt_drag, fluid.slender_drag, fluid.angular_drag, fluid.kutta_lift, fluid.magnus_lift)
        say(element, "fluidcoef", drag, (0.5, 0.25, 1.5, 1.0, 1.0))


def say_surface(file: MjcfText, link: Link, geom: Geom, called: str, element: Element) -> None:
    """Bits, friction, softness and the other properties of contacts."""
    surface = geom.surface
    kind, affinity = bits_of(file.robot, link, geom)
    say(element, "contype", float(kind), 1.0)
    say(element, "conaffinity", float(affinity), 1.0)
    say(element, "condim", float(surface.dimension), 3.0)
    say(element, "priority", float(surface.priority), 0.0)
    say(element, "solmix", surface.mix, 1.0)
    say_softness(element, surface.softness, "solref", "solimp")
    say(element, "margin", surface.margin, 0.0)
    say(element, "gap", surface.gap, 0.0)
    say(element, "adhesion", surface.adhesion, 0.0)
    say(element, "surfacevel", surface.velocity, PLAIN.velocity)
    say(element, "friction", geom.friction, (1.0, 0.005, 0.0001))


def bits_of(robot: Articulation, link: Link, geom: Geom) -> tuple[int, int]:
    """contype and conaffinity: none of what is only seen; of robots that do not touch themselves no affinity."""
    if geom.role == "visual":
        return 0, 0
    kind, affinity = geom.surface.type_bits, geom.surface.affinity_bits
    if robot.format == "mjcf" or robot.self_collide:
        return kind, affinity
    if (kind & affinity) or (kind, affinity) == (1, 1):
        return (1, 1) if link.self_collide else (1, 0)
    return kind, affinity


def say_looks(file: MjcfText, geom: Geom, called: str, element: Element) -> None:
    """material and rgba."""
    material = geom.material
    if material is None:
        return
    if material.texture:
        told = f"the texture {Path(material.texture).name!r} of material {material.name!r} is not kept"
        file.losses.lost("geom", called, "material", told, physical=False)
    if not material.name:
        say(element, "rgba", material.rgba)
        return
    plain = replace(material, texture=None)
    if plain not in file.materials:
        file.materials[plain] = name = free(file, "material", material.name)
        made = add(file.asset, "material", name=name)
        say(made, "rgba", material.rgba, (1.0, 1.0, 1.0, 1.0))
    if material.rgba is None:
        told = f"material {material.name!r} has no colour; MJCF's is white"
        file.losses.changed("geom", called, "material", told, physical=False)
    if file.materials[plain] != material.name:
        told = f"its material is called {file.materials[plain]!r}, since another one has its name"
        file.losses.changed("geom", called, "material", told, physical=False)
    element.set("material", file.materials[plain])


def mesh_name(file: MjcfText, geom: Geom) -> str:
    """The name of the <mesh> of a geom."""
    key = (geom.mesh, geom.vertices, geom.faces, geom.scale, geom.mesh_pose, geom.most_hull_vertices)
    if key not in file.mesh_names:
        stem = geom.mesh.stem if geom.mesh is not None else f"{geom.name or 'mesh'}"
        file.mesh_names[key] = name = free(file, "mesh", stem)
        element = add(file.asset, "mesh", name=name)
        if geom.mesh is not None:
            element.set("file", file.meshes.name_of(geom.mesh))
        else:
            say(element, "vertex", geom.vertices)
            if geom.faces:
                element.set("face", " ".join(map(str, geom.faces)))
        say(element, "inertia", "shell" if is_flat(geom) else None)
        say(element, "scale", geom.scale, (1.0, 1.0, 1.0))
        say(element, "refpos", geom.mesh_pose.position, (0.0, 0.0, 0.0))
        say(element, "refquat", geom.mesh_pose.rotation, IDENTITY)
        say(element, "maxhullvert", float(geom.most_hull_vertices), -1.0)
    return file.mesh_names[key]


def is_flat(geom: Geom) -> bool:
    """True for a mesh without volume, which MuJoCo takes as a shell only."""
    import numpy as np

    from artsim.loaders.mjcf.mesh_inertia import mesh_shape, read_mesh_shape

    try:
        if geom.mesh is not None:
            read_mesh_shape(geom.mesh, scale=geom.scale)
        else:
            mesh_shape(np.array(geom.vertices), np.array(geom.faces, int), scale=geom.scale)
    except ValueError as error:
        return "no volume" in str(error)
    return False


def field_name(file: MjcfText, geom: Geom, called: str) -> tuple[str, float]:
    """The name of the <hfield> of a geom, and its lowest height [m], by which the geom is moved."""
    lowest = min(map(min, geom.heights))
    highest = max(map(max, geom.heights))
    key = ("hfield", tuple(map(tuple, geom.heights)), geom.size)
    if key not in file.mesh_names:
        file.mesh_names[key] = name = free(file, "hfield", geom.name or "heights")
        element = add(file.asset, "hfield", name=name)
        element.set("nrow", str(len(geom.heights)))
        element.set("ncol", str(len(geom.heights[0])))
        x, y, depth = geom.size
        say(element, "size", (x, y, highest - lowest or 1.0, depth))
        values = [height - lowest for row in reversed(geom.heights) for height in row]
        element.set("elevation", " ".join(map(number, values)))
    return file.mesh_names[key], lowest


def free(file: MjcfText, kind: str, wanted: str) -> str:
    """A name of this kind that is not taken: `wanted`, or with a number."""
    name, count = wanted, 1
    while f"{kind} {name}" in file.names:
        name, count = f"{wanted}_{count}", count + 1
    file.names.add(f"{kind} {name}")
    return name


def write_site(site: Site, body: Element) -> None:
    """<site>."""
    element = add(body, "site", name=site.name)
    say(element, "type", site.kind, "sphere")
    say(element, "size", site.size, (0.005, 0.005, 0.005))
    say_pose(element, site.pose)
