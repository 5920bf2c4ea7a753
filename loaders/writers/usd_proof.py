"""The proof of a file of USD: the stage is read back by usd-core, and compared with the robot that was written.

Bodies and joints become an Articulation again, whose masses, forces and poses are compared at random states. USD keeps
32 bits of joints and masses, so that numbers count as equal up to SINGLE.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from artsim.loaders.writers.losses import WHOLE, Losses, name_of
from artsim.loaders.writers.proof import STATES, Proof, Row, drawn, matched, quantity_rows, verdict
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import (
    Articulation,
    Coupling,
    Inertial,
    Joint,
    JointKind,
    Link,
    Loop,
    Pose,
    Quaternion,
)
from artsim.sim.articulation.pose_algebra import compose, inverse, rotate
from artsim.sim.foundation.errors import ArtsimError, OutputError
from artsim.sim.quantities.robot import Robot

SINGLE = 2e-5  # relative, of quantities that chain numbers of 32 bits
FIELDS = 1e-6  # relative, of single numbers
KINDS: dict[str, JointKind] = {
    "PhysicsFixedJoint": "fixed",
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "ball",
    "PhysicsJoint": "planar",
}
VECTORS = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
COMPARED = ("lower", "upper", "damping", "friction", "armature", "velocity", "stiffness", "spring_reference", "effort")
WORLD = "world"


def prove_usd(robot: Articulation, place: Path, losses: Losses) -> Proof:
    """Read a stage back and compare it with the robot that was written."""
    from pxr import Sdf, Usd

    layer = Sdf.Layer.OpenAsAnonymous(str(place))  # a layer by its name may still be that of a file replaced since
    if layer is None:
        raise OutputError(f"{place}: usd-core does not open it")
    stage = Usd.Stage.Open(layer)
    after = read_stage(stage, robot, losses)
    rows = [*field_rows(robot, after, losses), *shape_rows(robot, stage, losses)]
    try:
        first, second = compile_model(robot), compile_model(after)
    except ArtsimError as error:
        return Proof([*rows, Row("quantities", 0, None, f"not computed: {error}")], [])
    order = matched(first.labels.coords, second.labels.coords)
    if order is None:
        return Proof([*rows, Row("coordinates", len(first.labels.coords), None, verdict(losses))], [])
    robots = Robot(robot, first), Robot(after, second)
    for row in quantity_rows(robots, drawn(first, STATES, 0), order, losses, []):
        equal = row.distance is not None and row.distance <= SINGLE
        rows.append(row._replace(verdict="equal") if equal else row)
    return Proof(rows, [])


# --- from the stage --------------------------------------------------------------------------------------------------


def read_stage(stage: Any, robot: Articulation, losses: Losses) -> Articulation:
    """The robot that a stage of usd_stage.py says; options and names of free joints are those of the one written."""
    from pxr import UsdPhysics

    root = stage.GetDefaultPrim()
    names: dict[str, str] = {}  # links by the paths of their prims
    links: list[Link] = []
    poses: dict[str, Pose] = {WORLD: Pose()}
    for prim in stage.GetPrimAtPath(root.GetPath().AppendChild("links")).GetChildren():
        name = losses.own_name("link", prim.GetName())
        names[str(prim.GetPath())] = name
        poses[name] = pose_of(prim)
        body = prim.HasAPI(UsdPhysics.RigidBodyAPI)
        links.append(Link(name, inertial_of(prim) if body else None))
    joints: list[Joint] = []
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    for prim in stage.GetPrimAtPath(root.GetPath().AppendChild("joints")).GetChildren():
        joint = joint_of(prim, names, losses)
        if UsdPhysics.Joint(prim).GetExcludeFromArticulationAttr().Get():
            loops.append(Loop(losses.own_name("loop", prim.GetName()), "weld", joint.parent, joint.child))
            continue
        joints.append(joint if joint.child not in {other.child for other in joints} else replace(joint, pose=Pose()))
        couplings += couplings_of(prim, joint, losses)
    own = {joint.child: joint for joint in robot.joints}
    held = {joint.child for joint in joints}
    for link in links:
        if link.name not in held and link.name in own:
            free = own[link.name]
            at = compose(inverse(poses[free.parent]), poses[link.name])
            joints.append(replace(free, pose=at) if free.kind == "free" else free)
    place = {link.name: n for n, link in enumerate(links)}
    joints.sort(key=lambda joint: place[joint.child])
    joints = [joint for joint in joints if joint.name != "root_joint" or joint.child in own]
    return replace(
        robot,
        links=tuple(links),
        joints=tuple(joints),
        couplings=tuple(couplings),
        loops=tuple(loops),
        tendons=(),
        tendon_couplings=(),
        actuators=(),
        sensors=(),
        sites=(),
        contact_pairs=(),
        no_contact=(),
        keyframes=(),
        wrap_geoms=(),
        text="",
    )


def quaternion(value: Any) -> Quaternion:
    """A rotation of USD, normalised."""
    parts = (float(value.GetReal()), *map(float, value.GetImaginary()))
    size = math.hypot(*parts)
    w, x, y, z = (part / size for part in parts)
    return (w, x, y, z)


def pose_of(prim: Any) -> Pose:
    """The place of a prim in its parent."""
    x, y, z = prim.GetAttribute("xformOp:translate").Get()
    return Pose((x, y, z), quaternion(prim.GetAttribute("xformOp:orient").Get()))


def inertial_of(prim: Any) -> Inertial:
    """MassAPI: principal moments along their axes."""
    from pxr import UsdPhysics

    mass = UsdPhysics.MassAPI(prim)
    x, y, z = map(float, mass.GetCenterOfMassAttr().Get())
    a, b, c = map(float, mass.GetDiagonalInertiaAttr().Get())
    pose = Pose((x, y, z), quaternion(mass.GetPrincipalAxesAttr().Get()))
    return Inertial(float(mass.GetMassAttr().Get()), pose, (a, 0.0, 0.0, b, 0.0, c))


def joint_of(prim: Any, names: dict[str, str], losses: Losses) -> Joint:
    """A joint by its two bodies and its frames in them."""
    from pxr import UsdPhysics

    own = UsdPhysics.Joint(prim)
    ends = [relation.GetTargets() for relation in (own.GetBody0Rel(), own.GetBody1Rel())]
    parent, child = (names[str(target[0])] if target else WORLD for target in ends)
    frames = []
    for position, rotation in (
        (own.GetLocalPos0Attr(), own.GetLocalRot0Attr()),
        (own.GetLocalPos1Attr(), own.GetLocalRot1Attr()),
    ):
        x, y, z = map(float, position.Get())
        frames.append(Pose((x, y, z), quaternion(rotation.Get())))
    kind = KINDS[prim.GetTypeName()]
    axis = VECTORS[prim.GetAttribute("physics:axis").Get() if kind in ("revolute", "prismatic") else "Z"]
    joint = Joint(
        losses.own_name("joint", prim.GetName()),
        kind,
        parent,
        child,
        compose(frames[0], inverse(frames[1])),
        rotate(frames[1].rotation, axis),
        frames[1].position,
    )
    return with_values(prim, joint) if kind in ("revolute", "prismatic") else joint


def with_values(prim: Any, joint: Joint) -> Joint:
    """The joint with its limits, its drive and the attributes of Newton, from degrees to radians."""
    unit = 1.0 if joint.kind == "prismatic" else math.degrees(1.0)

    def read(name: str, factor: float = 1.0) -> float | None:
        attribute = prim.GetAttribute(name)
        value = attribute.Get() if attribute else None
        return None if value is None or not math.isfinite(value) else float(value) * factor

    drive = "drive:linear:physics:" if joint.kind == "prismatic" else "drive:angular:physics:"
    return replace(
        joint,
        lower=read("physics:lowerLimit", 1.0 / unit),
        upper=read("physics:upperLimit", 1.0 / unit),
        damping=read("newton:damping", unit) or 0.0,
        friction=read("newton:friction") or 0.0,
        armature=read("newton:armature") or 0.0,
        velocity=read("newton:velocityLimit", 1.0 / unit),
        stiffness=read(drive + "stiffness", unit) or 0.0,
        spring_reference=read(drive + "targetPosition", 1.0 / unit) or 0.0,
        effort=read(drive + "maxForce"),
    )


def couplings_of(prim: Any, joint: Joint, losses: Losses) -> Iterator[Coupling]:
    """The mimic of a joint."""
    targets = prim.GetRelationship("newton:mimicJoint")
    if targets:
        unit = 1.0 if joint.kind == "prismatic" else math.degrees(1.0)
        leader = losses.own_name("joint", targets.GetTargets()[0].name)
        offset, ratio = (float(prim.GetAttribute(f"newton:mimicCoef{k}").Get()) for k in (0, 1))
        yield Coupling(joint.name, leader, (offset / unit, ratio))


# --- rows ------------------------------------------------------------------------------------------------------------


def near(a: float | None, b: float | None) -> bool:
    """True if two numbers agree to 32 bits."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= FIELDS * max(1.0, abs(a))


def field_rows(before: Articulation, after: Articulation, losses: Losses) -> list[Row]:
    """Joints, couplings and loops one by one; drives of servos are not those of joints' springs."""
    servos = {actuator.target for actuator in before.actuators if actuator.acts}
    found = {joint.name: joint for joint in after.joints}
    faults: list[tuple[str, str, str]] = []
    for joint in before.joints:
        other = found.get(joint.name)
        if joint.kind not in ("revolute", "continuous", "prismatic"):
            continue
        if other is None or (joint.parent, joint.child) != (other.parent, other.child):
            faults.append(("joint", joint.name, WHOLE))
            continue
        for name in COMPARED:
            if name in ("stiffness", "effort", "spring_reference") and joint.name in servos:
                continue
            if not near(getattr(joint, name), getattr(other, name)):
                faults.append(("joint", joint.name, name))
    lines = {name_of(coupling): coupling.coefficients for coupling in after.couplings}
    wrong: list[tuple[str, str, str]] = []
    for coupling in before.couplings:
        own = (*coupling.coefficients, 0.0, 0.0)[:2]
        if not all(map(near, own, lines.get(name_of(coupling), (math.inf, math.inf)))):
            wrong.append(("coupling", name_of(coupling), WHOLE))
    missing = [
        ("loop", loop.name, WHOLE) for loop in before.loops if loop.name not in {other.name for other in after.loops}
    ]
    heavy = {link.name: link.inertial for link in after.links}
    odd = [
        ("link", link.name, "inertial")
        for link in before.links
        if link.name not in heavy or not same_inertial(link.inertial, heavy[link.name])
    ]
    rows = [row_of("links", len(before.links), odd, losses), row_of("joints", len(before.joints), faults, losses)]
    rows += [row_of("couplings", len(before.couplings), wrong, losses)] if before.couplings else []
    return rows + ([row_of("loops", len(before.loops), missing, losses)] if before.loops else [])


def same_inertial(own: Inertial | None, other: Inertial | None) -> bool:
    """True if masses, centres and inertias agree to 32 bits; the world has none."""
    from artsim.sim.foundation.rotations import rotation_matrix, symmetric

    if own is None or other is None:
        return other is None
    first, second = (
        rotation_matrix(one.pose.rotation) @ symmetric(one.inertia) @ rotation_matrix(one.pose.rotation).T
        for one in (own, other)
    )
    places = all(map(near, own.pose.position, other.pose.position))
    mass = abs(own.mass - other.mass) <= FIELDS * own.mass
    return places and mass and bool(abs(first - second).max() <= FIELDS * abs(first).max())


def shape_rows(robot: Articulation, stage: Any, losses: Losses) -> list[Row]:
    """The number of colliders and looks of every body."""
    from pxr import UsdGeom, UsdPhysics

    shapes = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Gprim) and "NewtonSiteAPI" not in applied(prim)]
    colliders = sum(prim.HasAPI(UsdPhysics.CollisionAPI) for prim in shapes)
    geoms = [geom for link in robot.links for geom in link.geoms]
    lost = sum(loss.kind == "geom" and loss.field == WHOLE for loss in losses.entries)
    collide = [g for g in geoms if g.role == "collision" and (g.surface.type_bits or g.surface.affinity_bits)]
    same = len(shapes) == len(geoms) - lost and len(collide) - lost <= colliders <= len(collide)
    return [Row("geoms", len(geoms), None, "equal" if same and not lost else "told" if same else "not told")]


def applied(prim: Any) -> list[str]:
    """The names of the schemas that a prim has, those that are not installed among them."""
    listed = prim.GetMetadata("apiSchemas")
    return [] if listed is None else [str(name) for name in listed.GetAddedOrExplicitItems()]


def row_of(subject: str, count: int, faults: list[tuple[str, str, str]], losses: Losses) -> Row:
    """A row: equal without faults, told if a loss tells of each."""
    told = all(losses.covers(*fault) for fault in faults)
    return Row(subject, count, None, "equal" if not faults else "told" if told else "not told")
