"""An Articulation as URDF: links, joints one by one, and the extensions that artsim, Gazebo and MuJoCo read.

A body with several joints, or with a joint beside its frame, becomes a chain of links. A robot that stands in the
world of another format has a root link called world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lxml import etree

from artsim.loaders.elements import Element
from artsim.loaders.loop_motion import FREE
from artsim.loaders.urdf_joint import FAR
from artsim.loaders.writers.comments import carry_comments
from artsim.loaders.writers.elements_out import add, document, numbers, say
from artsim.loaders.writers.frames_out import chain, plain_mesh, rpy_of
from artsim.loaders.writers.losses import WHOLE, Losses, Said, geom_name, name_of, tell_unsaid
from artsim.loaders.writers.mesh_files import MeshFiles, absence, placed_points
from artsim.loaders.writers.sdf_loops import flaw_of_form, poses_at_zero, write_loop
from artsim.sim.articulation.description import (
    LOOP_AXES,
    Actuator,
    Articulation,
    Coupling,
    Geom,
    Joint,
    Link,
    Loop,
    Material,
    Pose,
    Tendon,
)
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError

WORLD = "world"
FORMATS = (".stl", ".obj", ".dae", ".ply", ".glb")  # each one file: a .gltf has buffers beside it
FRICTION = (1.0, 0.005, 0.0001)  # of geoms that give none
TYPES = {"free": "floating", "ball": "spherical"}
SINGLE = ("revolute", "continuous", "prismatic")
LOOP_TYPES = {"connect": "spherical", "weld": "fixed", "hinge": "revolute", "joint": "joint"}
SAID: Said = {
    "Articulation": frozenset(("no_contact",)),
    "Link": frozenset("name inertial geoms self_collide".split()),
    "Inertial": frozenset("mass pose inertia".split()),
    "Joint": frozenset(
        "name kind parent child pose axis anchor lower upper turning effort velocity actuator_range damping friction "
        "stiffness spring_reference reference armature".split()
    ),
    "Geom": frozenset("name kind role size pose mesh vertices faces mesh_pose scale material friction surface".split()),
    "Surface": frozenset("type_bits affinity_bits restitution".split()),
    "Material": frozenset("name rgba texture".split()),
    "TurnLimits": frozenset("swing twist axis".split()),
    "Coupling": frozenset("follower leader coefficients axis".split()),
    "Loop": frozenset("name kind link_a link_b frame_a frame_b active free".split()),
    "Tendon": frozenset("name kind path lower upper damping friction limit_spring".split()),
    "TendonPoint": frozenset("kind name value side_site".split()),
    "Actuator": frozenset(
        "name target gear transmission gain gain_parameters bias bias_parameters inputs control_ranges held_inputs "
        "force_range by_inertia acts".split()
    ),
    "FileOptions": frozenset(("timestep", "gravity", "integrator")),
}


@dataclass(slots=True)
class UrdfText:
    """The file as far as it is written."""

    robot: Articulation
    losses: Losses
    meshes: MeshFiles
    root: Element
    joints: dict[str, list[Joint]] = field(default_factory=dict)  # above each link
    links: set[str] = field(default_factory=set)  # names of links, those added among them
    materials: dict[str, Material] = field(default_factory=dict)
    mimics: dict[str, Coupling] = field(default_factory=dict)


def urdf_text(robot: Articulation, losses: Losses, meshes: MeshFiles) -> str:
    """The text of a URDF. Raises UsageError for a robot that no URDF can say."""
    root = etree.Element("robot", name=robot.name)
    file = UrdfText(robot, losses, meshes, root, links={link.name for link in robot.links})
    for joint in robot.joints:
        file.joints.setdefault(joint.child, []).append(joint)
    sort_couplings(file)
    write_options(file)
    write_tree(file)
    write_loops(file)
    write_transmissions(file)
    write_extensions(file)
    tell_unsaid(robot, SAID, losses)
    for pair in robot.no_contact:
        losses.lost(
            "excluded pair", name_of(pair), WHOLE, "is not said", physical=False
        )  # where it counts, tell_contacts does
    carry_comments(robot.text, root)
    return document(root)


def write_options(file: UrdfText) -> None:
    """<mujoco>: the options that artsim reads there, as MuJoCo does."""
    options = file.robot.options
    said = {"timestep": options.timestep, "gravity": options.gravity, "integrator": options.integrator}
    if all(value is None for value in said.values()):
        return
    element = add(file.root, "mujoco")
    add(element, "compiler", strippath="false", discardvisual="false", fusestatic="false")
    option = add(element, "option")
    for name, value in said.items():
        say(option, name, value)


# --- links and joints ------------------------------------------------------------------------------------------------


def write_tree(file: UrdfText) -> None:
    """Links with the joints above them, in the order of the description; a world where links stand in one."""
    robot, losses = file.robot, file.losses
    roots = [link.name for link in robot.links if link.name not in file.joints]
    if any(joint.parent == WORLD for joint in robot.joints) and WORLD not in file.links:
        file.links.add(WORLD)
        roots.append(WORLD)
        add(file.root, "link", name=WORLD)
        losses.add("added", "link", WORLD, WHOLE, "is the root, in which the others stand")
    if len(roots) != 1:
        raise UsageError(f"{robot.name!r} has {len(roots)} root links, and a URDF one")
    for link in robot.links:
        above = file.joints.get(link.name)
        steps = list(chain(above, file.links)) if above else []
        for step in steps:
            if step.added:
                add(file.root, "link", name=step.joint.child)
                losses.add("added", "link", step.joint.child, WHOLE, f"stands between the joints of link {link.name!r}")
            elif step.joint.kind == "fixed" and step.joint.name not in {joint.name for joint in above or ()}:
                losses.add(
                    "added", "joint", step.joint.name, WHOLE, f"holds link {link.name!r} beside its joint's axis"
                )
        write_link(file, link)
        for step in steps:
            write_joint(file, step.joint)


def write_link(file: UrdfText, link: Link) -> None:
    """<link>."""
    element = add(file.root, "link", name=link.name)
    inertial = link.inertial
    if inertial is not None:
        part = add(element, "inertial")
        say_origin(part, inertial.pose)
        add(part, "mass", value=inertial.mass)
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        add(part, "inertia", **dict(zip(names, inertial.inertia, strict=True)))
    for count, geom in enumerate(link.geoms):
        write_geom(file, link, geom, count, element)
    write_friction(file, link, element)


def say_origin(parent: Element, pose: Pose) -> None:
    """<origin xyz rpy>, unless it is the identity."""
    angles = rpy_of(pose.rotation)
    if any(pose.position) or any(angles):
        element = add(parent, "origin")
        say(element, "xyz", pose.position)
        say(element, "rpy", angles)


def write_joint(file: UrdfText, joint: Joint) -> None:
    """<joint>: with <limit>, <dynamics> and <mimic>."""
    kind = joint.kind
    unlimited = joint.lower is None and joint.upper is None
    if kind in ("revolute", "continuous"):
        kind = "continuous" if unlimited else "revolute"
    element = add(file.root, "joint", name=joint.name, type=TYPES.get(kind, kind))
    say_origin(element, joint.pose)
    add(element, "parent", link=joint.parent)
    add(element, "child", link=joint.child)
    if joint.kind not in SINGLE and joint.actuator_range is not None:
        told = f"the bounds of its actuators' forces are not said of a {joint.kind} joint"
        file.losses.lost("joint", joint.name, "actuator_range", told)
    if kind in ("fixed", "free"):
        for name in ("damping", "friction", "effort", "velocity"):
            if getattr(joint, name):
                file.losses.lost(
                    "joint", joint.name, name, f"{name} {getattr(joint, name):g} is not said of a free joint"
                )
        return
    if kind == "ball":
        write_turn_limits(file, joint, element)
    else:
        add(element, "axis", xyz=joint.axis)
        write_limit(file, joint, kind, element)
    if joint.damping or joint.friction:
        dynamics = add(element, "dynamics")
        say(dynamics, "damping", joint.damping, 0.0)
        say(dynamics, "friction", joint.friction, 0.0)
    coupling = file.mimics.get(joint.name)
    if coupling is not None:
        offset, multiplier = (*coupling.coefficients, 0.0, 0.0)[:2]
        mimic = add(element, "mimic", joint=coupling.leader, multiplier=multiplier, offset=offset)
        say(mimic, "axis", coupling.axis or None)


def write_limit(file: UrdfText, joint: Joint, kind: str, element: Element) -> None:
    """<limit>; 0 stands for bounds that the joint does not have, as urdfdom wants both."""
    lower, upper, effort = joint.lower, joint.upper, effort_of(file, joint)
    if kind == "prismatic" or (kind == "revolute" and (lower is None or upper is None)):
        lower, upper = -FAR if lower is None else lower, FAR if upper is None else upper
    if lower is None and effort is None and joint.velocity is None:
        return
    limit = add(element, "limit")
    say(limit, "lower", lower)
    say(limit, "upper", upper)
    say(limit, "effort", effort or 0.0)
    say(limit, "velocity", joint.velocity or 0.0)


def effort_of(file: UrdfText, joint: Joint) -> float | None:
    """The bound of the joint's drive; of the sum of its actuators' forces, one that is the same in both directions."""
    bounds = joint.actuator_range
    if joint.effort is None and bounds is not None:
        told = f"its actuators' forces are bounded by {bounds[0]:g} and {bounds[1]:g}, which a URDF does not say"
        file.losses.lost("joint", joint.name, "actuator_range", told)
    return joint.effort


def write_turn_limits(file: UrdfText, joint: Joint, element: Element) -> None:
    """<axis> and <limit swing1 swing2 twist_lower twist_upper> of a spherical joint."""
    if joint.upper is not None:
        told = f"the angle of a ball joint, at most {joint.upper:g} rad, is not said"
        file.losses.lost("joint", joint.name, "upper", told)
    turning = joint.turning
    if not turning.given and joint.effort is None and joint.velocity is None:
        return
    add(element, "axis", xyz=turning.axis)
    limit = add(element, "limit")
    if turning.swing is not None:
        say(limit, "swing1", turning.swing[0])
        say(limit, "swing2", turning.swing[1])
    if turning.twist is not None:
        say(limit, "twist_lower", turning.twist[0])
        say(limit, "twist_upper", turning.twist[1])
    say(limit, "effort", joint.effort)
    say(limit, "velocity", joint.velocity)


def sort_couplings(file: UrdfText) -> None:
    """The couplings that <mimic> can say, by their followers."""
    for coupling in file.robot.couplings:
        name = name_of(coupling)
        if any(coupling.coefficients[2:]):
            file.losses.lost(
                "coupling", name, WHOLE, f"is a polynomial of degree {degree(coupling)}; <mimic> has lines"
            )
        elif coupling.leader is None:
            file.losses.lost("coupling", name, WHOLE, "holds a joint in its place, which <mimic> does not")
        elif coupling.follower in file.mimics:
            file.losses.lost("coupling", name, WHOLE, "is the second one of its joint, which has one <mimic>")
        else:
            file.mimics[coupling.follower] = coupling


def degree(coupling: Coupling) -> int:
    """The degree of a coupling's polynomial."""
    return max((k for k, c in enumerate(coupling.coefficients) if c), default=0)


# --- geoms -----------------------------------------------------------------------------------------------------------


def write_geom(file: UrdfText, link: Link, geom: Geom, count: int, parent: Element) -> None:
    """<visual> or <collision>."""
    called, losses = geom_name(link.name, geom, count), file.losses
    if geom.kind == "heightfield":
        losses.lost("geom", called, WHOLE, "is a height field, which a URDF does not have; it is left out")
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
    role = "visual" if geom.surface.type_bits == geom.surface.affinity_bits == 0 else geom.role
    element = add(parent, role, name=geom.name or None)
    say_origin(element, geom.pose)
    shape = add(element, "geometry")
    size = geom.size
    if geom.kind == "box":
        add(shape, "box", size=tuple(2.0 * half for half in size))
    elif geom.kind == "sphere":
        add(shape, "sphere", radius=size[0])
    elif geom.kind in ("cylinder", "capsule"):
        add(shape, geom.kind, radius=size[0], length=2.0 * size[1])
    elif geom.kind == "ellipsoid":
        add(shape, "ellipsoid", **dict(zip("abc", size, strict=True)))
    elif geom.kind == "plane":
        add(shape, "plane", normal=(0.0, 0.0, 1.0))
    else:
        mesh = add(shape, "mesh", filename=geom.mesh_uri if absent else mesh_file(file, geom, called))
        say(mesh, "scale", geom.scale, (1.0, 1.0, 1.0))
    if geom.material is not None:
        write_material(file, geom.material, called, element)


def mesh_file(file: UrdfText, geom: Geom, called: str) -> str:
    """The name of the file with a mesh."""
    if geom.mesh is not None:
        return file.meshes.name_of(geom.mesh)
    return file.meshes.name_of_vertices(geom, called.partition("/")[2])


def write_material(file: UrdfText, material: Material, called: str, element: Element) -> None:
    """<material>, whole where it is first named."""
    known = file.materials.setdefault(material.name, material) if material.name else material
    part = add(element, "material", name=material.name)
    if known is material or known != material:
        if material.rgba is not None:
            add(part, "color", rgba=material.rgba)
        if material.texture is not None:
            add(part, "texture", filename=material.texture)


def write_friction(file: UrdfText, link: Link, element: Element) -> None:
    """Bullet's <contact>: one friction for all collision geoms of a link."""
    own = {geom.friction or FRICTION for geom in link.geoms if geom.role == "collision"}
    if own <= {FRICTION}:
        return
    chosen = next(geom.friction or FRICTION for geom in link.geoms if geom.role == "collision")
    for count, geom in enumerate(link.geoms):
        if geom.role == "collision" and (geom.friction or FRICTION) != chosen:
            told = f"its friction {numbers(geom.friction or FRICTION)} differs from that of the link's first geom"
            file.losses.changed("geom", geom_name(link.name, geom, count), "friction", told)
    contact = add(element, "contact")
    for name, value in zip(("lateral_friction", "spinning_friction", "rolling_friction"), chosen, strict=True):
        add(contact, name, value=value)


# --- loops -----------------------------------------------------------------------------------------------------------


def write_loops(file: UrdfText) -> None:
    """<loop_joint>, with the motions along and about the free axes of loops."""
    tendons: dict[str, list[Tendon]] = {}
    for tendon in file.robot.tendons:
        if tendon.kind == "loop":
            tendons.setdefault(tendon.path[0].name, []).append(tendon)
        else:
            file.losses.lost("tendon", tendon.name, WHOLE, "is not said: a URDF has no tendons")
    for loop in file.robot.loops:
        if not loop.active:
            file.losses.lost("loop", loop.name, WHOLE, "is not active, and left out")
            continue
        element = add(file.root, "loop_joint", name=loop.name, type=LOOP_TYPES[loop.kind])
        if loop.kind == "joint":
            element.set("free", " ".join(loop.free))
        for tag, link, frame in (("link1", loop.link_a, loop.frame_a), ("link2", loop.link_b, loop.frame_b)):
            if link == WORLD and WORLD not in file.links:
                raise UsageError(f"loop {loop.name!r} ends in the world, which this URDF lacks")
            end = add(element, tag, link=link)
            say(end, "xyz", frame.position)
            say(end, "rpy", rpy_of(frame.rotation))
        if loop.kind == "hinge":
            add(element, "axis", xyz=(0.0, 0.0, 1.0))
        for tendon in tendons.get(loop.name, ()):
            write_motion(file, loop, tendon, element)
    write_gazebo_loops(file, tendons)


def write_gazebo_loops(file: UrdfText, tendons: Mapping[str, list[Tendon]]) -> None:
    """<gazebo><joint>: the loops that Gazebo can close, once more, under the names by which artsim knows them."""
    taken = file.links | {joint.name for joint in file.robot.joints}
    poses = poses_at_zero(file.robot)
    own = [loop for loop in file.robot.loops if loop.name not in taken and not flaw_of_form(loop, poses)]
    if own:
        element = add(file.root, "gazebo")
        for loop in own:
            write_loop(element, loop, loop.name, loop.link_a, loop.link_b, next(iter(tendons.get(loop.name, ())), None))


def write_motion(file: UrdfText, loop: Loop, tendon: Tendon, element: Element) -> None:
    """<limit>, <dynamics> and <drive> of a free axis."""
    axis = LOOP_AXES[int(tendon.path[0].value)]
    free = loop.free if loop.kind == "joint" else FREE[loop.kind]
    attribute = {} if len(free) == 1 else {"axis": axis}
    if tendon.lower is not None or tendon.upper is not None:
        limit = add(element, "limit", **attribute)
        say(limit, "lower", tendon.lower)
        say(limit, "upper", tendon.upper)
        if tendon.limit_spring is not None:
            say(limit, "stiffness", tendon.limit_spring[0])
            say(limit, "damping", tendon.limit_spring[1])
    if tendon.friction or tendon.damping:
        add(element, "dynamics", **attribute, friction=tendon.friction, damping=tendon.damping)
    for actuator in file.robot.actuators:
        if actuator.transmission == "tendon" and actuator.target == tendon.name:
            write_drive(actuator, attribute, element)


def write_drive(actuator: Actuator, attribute: dict[str, str], element: Element) -> None:
    """<drive>: the servo of a loop's axis."""
    _, stiffness, damping = (*actuator.bias_parameters, 0.0, 0.0, 0.0)[:3]
    target, velocity = (*actuator.held_inputs, 0.0, 0.0)[:2]
    drive = add(element, "drive", **attribute, stiffness=-stiffness, damping=-damping, target=target, velocity=velocity)
    say(drive, "max_force", None if actuator.force_range is None else actuator.force_range[1])
    say(drive, "mode", "acceleration" if actuator.by_inertia else None)


# --- beside the tree -------------------------------------------------------------------------------------------------


def write_transmissions(file: UrdfText) -> None:
    """<transmission>: reductions, and the inertia of rotors."""
    joints = {joint.name: joint for joint in file.robot.joints}
    loops = {tendon.name for tendon in file.robot.tendons if tendon.kind == "loop"}
    said: set[str] = set()
    for actuator in file.robot.actuators:
        if not actuator.acts and actuator.target in joints:
            first = actuator.target not in said
            write_transmission(file, actuator.name, joints[actuator.target], actuator.gear[0], rotor=first)
            said.add(actuator.target)
        elif actuator.target not in loops or actuator.transmission != "tendon":
            file.losses.lost("actuator", actuator.name, WHOLE, "is not said: motors of a URDF do not act")
    for joint in file.robot.joints:
        if joint.armature and joint.name not in said:
            if joint.kind not in SINGLE:
                told = f"armature {joint.armature:g} is not said of a {joint.kind} joint"
                file.losses.lost("joint", joint.name, "armature", told)
                continue
            write_transmission(file, f"{joint.name}_rotor", joint, 1.0, rotor=True)
            file.losses.add("added", "actuator", f"{joint.name}_rotor", WHOLE, "states the inertia of a rotor")


def write_transmission(file: UrdfText, name: str, joint: Joint, reduction: float, *, rotor: bool) -> None:
    """One transmission of a joint, with the inertia of its rotor before the reduction."""
    element = add(file.root, "transmission", name=f"{name}_transmission")
    add(element, "type").text = "transmission_interface/SimpleTransmission"
    add(element, "joint", name=joint.name)
    motor = add(element, "actuator", name=name)
    add(motor, "mechanicalReduction").text = numbers((reduction,))
    if rotor and joint.armature:
        add(motor, "motorInertia").text = numbers((joint.armature / (reduction * reduction),))


def write_extensions(file: UrdfText) -> None:
    """<gazebo>: which links touch each other, bounces of links, springs of joints."""
    for link in file.robot.links:
        collide = self_collides(file, link)
        bounces = [geom.surface.restitution for geom in link.geoms if geom.role == "collision"]
        if collide is None and not any(bounces):
            continue
        element = add(file.root, "gazebo", reference=link.name)
        if collide is not None:
            add(element, "selfCollide").text = "true" if collide else "false"
        if any(bounces):
            add(element, "restitution_coefficient").text = numbers(bounces[:1])
            for count, geom in enumerate(link.geoms):
                if geom.role == "collision" and geom.surface.restitution != bounces[0]:
                    told = "its restitution differs from that of the link's first geom"
                    file.losses.changed("geom", geom_name(link.name, geom, count), "surface.restitution", told)
    for joint in file.robot.joints:
        if joint.stiffness or joint.spring_reference:
            element = add(file.root, "gazebo", reference=joint.name)
            add(element, "springStiffness").text = numbers((joint.stiffness,))
            add(element, "springReference").text = numbers((joint.spring_reference,))
        if joint.reference:
            told = f"the file's pose has it at {joint.reference:g}; a URDF is drawn at 0"
            file.losses.changed("joint", joint.name, "reference", told, physical=False)


def self_collides(file: UrdfText, link: Link) -> bool | None:
    """<selfCollide> of a link; None: as a URDF is without. Of formats whose geoms have bits, these say it."""
    robot = file.robot
    if robot.format == "urdf":
        return link.self_collide
    bits = {(geom.surface.type_bits, geom.surface.affinity_bits) for geom in link.geoms if geom.role == "collision"} - {
        (0, 0)
    }
    if robot.format == "mjcf":
        for count, geom in enumerate(link.geoms):
            own = (geom.surface.type_bits, geom.surface.affinity_bits)
            if own not in ((0, 0), (1, 0), (1, 1)) or (len(bits) > 1 and own != (0, 0)):
                told = f"contype {own[0]} and conaffinity {own[1]} are not said"
                file.losses.lost("geom", geom_name(link.name, geom, count), "surface.type_bits", told)
        return True if bits and bits != {(1, 0)} else None
    return link.self_collide
