"""An Articulation as USD with UsdPhysics: rigid bodies in one flat list, joints between them, one articulation.

Attributes of PhysX and of Newton (newton-usd-schemas) say armature, damping, friction, velocity limits and mimics.
USD has degrees and, of joints, masses and drives, numbers of 32 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from artsim.loaders.mjcf.own_inertials import GHOST as NO_MASS
from artsim.loaders.mjcf.own_inertials import raised_by
from artsim.loaders.writers.frames_out import chain, is_identity
from artsim.loaders.writers.losses import WHOLE, Losses, Said, name_of, tell_unsaid
from artsim.loaders.writers.sdf_loops import poses_at_zero
from artsim.loaders.writers.usd_prims import UsdStage, apply, free_path, named_path, place
from artsim.loaders.writers.usd_shapes import write_geom, write_site
from artsim.sim.articulation.description import (
    LOOP_AXES,
    Actuator,
    Articulation,
    Coupling,
    Inertial,
    Joint,
    Link,
    Loop,
    Pose,
)
from artsim.sim.articulation.pose_algebra import compose, quaternion_from_z
from artsim.sim.foundation.errors import UsageError

WORLD = "world"
GRAVITY = (0.0, 0.0, -9.81)  # [m/s²] of robots that give none
LEAST_MASS = 1e-9  # [kg, kg m²] of bodies without mass, which USD takes for "not given"
LARGEST = 3e38 / 60.0  # of numbers of 32 bits, before they are turned to degrees
AXES = {(1.0, 0.0, 0.0): "X", (0.0, 1.0, 0.0): "Y", (0.0, 0.0, 1.0): "Z"}
TURNING = ("revolute", "continuous", "ball")
HINGES = ("revolute", "continuous")
SAID: Said = {
    "Articulation": frozenset(("no_contact",)),
    "Link": frozenset("name inertial geoms self_collide model".split()),
    "Inertial": frozenset("mass pose inertia".split()),
    "Joint": frozenset(
        "name kind parent child pose axis anchor lower upper turning effort velocity damping friction stiffness "
        "spring_reference reference armature actuator_range".split()
    ),
    "TurnLimits": frozenset(("swing", "axis")),
    "Geom": frozenset(
        "name kind role size pose mesh vertices faces most_hull_vertices mesh_pose scale material friction surface "
        "group".split()
    ),
    "Surface": frozenset("type_bits affinity_bits restitution dimension".split()),
    "Material": frozenset(("name", "rgba")),
    "Site": frozenset("name link pose kind size".split()),
    "Coupling": frozenset("follower leader coefficients".split()),
    "Loop": frozenset("name kind link_a link_b frame_a frame_b active free".split()),
    "Actuator": frozenset(
        "name target gear gain gain_parameters bias bias_parameters inputs force_range acts held_inputs".split()
    ),
    "FileOptions": frozenset(("gravity", "timestep")),
}


def usd_stage(robot: Articulation, losses: Losses, touching: Set[tuple[str, str]]) -> Any:
    """The stage of a robot, in memory; `touching`: the pairs of its links that may touch.

    Raises UsageError without usd-core, and for a robot that no USD can say.
    """
    try:
        from pxr import Usd, UsdGeom, UsdPhysics
    except ImportError:
        raise UsageError("USD needs usd-core: `pip install artsim[usd]`") from None
    stage = Usd.Stage.CreateInMemory("robot.usda")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    file = UsdStage(robot, losses, stage, "")
    file.root = free_path(file, "", robot.name)
    top = UsdGeom.Xform.Define(stage, file.root).GetPrim()
    stage.SetDefaultPrim(top)
    write_scene(file)
    write_bodies(file)
    write_joints(file)
    write_loops(file)
    write_mimics(file)
    write_actuators(file)
    write_contacts(file, top, touching)
    tell_unsaid(robot, SAID, losses)
    return stage


def write_scene(file: UsdStage) -> None:
    """PhysicsScene: gravity, and the time step for Newton."""
    from pxr import Gf, UsdPhysics

    options = file.robot.options
    scene = UsdPhysics.Scene.Define(file.stage, free_path(file, file.root, "physicsScene"))
    gravity = options.gravity or GRAVITY
    size = math.hypot(*gravity)
    scene.CreateGravityMagnitudeAttr(size)
    scene.CreateGravityDirectionAttr(Gf.Vec3f(*(x / size for x in gravity)) if size else Gf.Vec3f(0, 0, -1))
    if options.timestep:
        per_second = round(1.0 / options.timestep)
        apply(scene.GetPrim(), "NewtonSceneAPI", {"newton:timeStepsPerSecond": ("Int", per_second)})
        if abs(per_second * options.timestep - 1.0) > 1e-9:
            file.losses.changed("option", "", "timestep", f"timestep is 1/{per_second} s", physical=False)


# --- bodies ----------------------------------------------------------------------------------------------------------


def write_bodies(file: UsdStage) -> None:
    """A rigid body for each link, where it is when all coordinates are 0; the world's shapes in no body."""
    from pxr import UsdGeom, UsdPhysics

    robot = file.robot
    UsdGeom.Scope.Define(file.stage, f"{file.root}/links")
    poses = poses_at_zero(robot)
    held = {joint.child: joint for joint in robot.joints}
    for link in robot.links:
        path = named_path(file, "links", "link", link.name)
        prim = UsdGeom.Xform.Define(file.stage, path).GetPrim()
        place(prim, poses[link.name])
        above = held.get(link.name)
        still = robot.base == "fixed" if above is None else above.kind == "fixed"
        if link.name != WORLD or not still:
            UsdPhysics.RigidBodyAPI.Apply(prim)
            write_mass(file, link, prim, still=still)
            file.bodies[link.name] = path
        elif link.inertial is not None:
            file.losses.lost("link", link.name, "inertial", "the world has no mass", physical=False)
        for count, geom in enumerate(link.geoms):
            write_geom(file, link, geom, count, path)
        for site in robot.sites:
            if site.link == link.name:
                write_site(file, site, path)


def write_mass(file: UsdStage, link: Link, prim: Any, *, still: bool) -> None:
    """MassAPI: mass, centre, principal moments and axes; the whole inertia in 64 bits for Newton."""
    import numpy as np
    from pxr import Gf, UsdPhysics

    from artsim.loaders.mjcf.mass import along_axes
    from artsim.sim.foundation.rotations import rotation_matrix, symmetric

    inertial = link.inertial or Inertial(0.0)
    if inertial.mass <= NO_MASS or max(inertial.inertia[0], inertial.inertia[3], inertial.inertia[5]) <= NO_MASS:
        told = f"has no mass or inertia, which USD takes for not given: it has at least {LEAST_MASS:g} kg and kg m²"
        file.losses.changed("link", link.name, "inertial", told, physical=not still)
        raised = raised_by(inertial, LEAST_MASS)
        inertial = Inertial(max(inertial.mass, LEAST_MASS), inertial.pose, raised)
    mass = UsdPhysics.MassAPI.Apply(prim)
    mass.CreateMassAttr(inertial.mass)
    mass.CreateCenterOfMassAttr(Gf.Vec3f(*inertial.pose.position))
    R = rotation_matrix(inertial.pose.rotation)
    whole = R @ symmetric(inertial.inertia) @ R.T
    own = along_axes(inertial)
    w, *xyz = own.pose.rotation
    mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*(own.inertia[k] for k in (0, 3, 5))))
    mass.CreatePrincipalAxesAttr(Gf.Quatf(w, *xyz))
    six = np.array([whole[0, 0], whole[1, 1], whole[2, 2], whole[0, 1], whole[0, 2], whole[1, 2]])
    apply(prim, "NewtonMassAPI", {"newton:inertia": ("DoubleArray", six.tolist())})


# --- joints ----------------------------------------------------------------------------------------------------------


def write_joints(file: UsdStage) -> None:
    """The joints of the tree; a root without a joint stands in the world, or is free without one."""
    from pxr import UsdGeom

    robot = file.robot
    UsdGeom.Scope.Define(file.stage, f"{file.root}/joints")
    above: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        above.setdefault(joint.child, []).append(joint)
    for link in robot.links:
        own = above.get(link.name)
        if own is None:
            own = [] if robot.base == "floating" else [Joint("root_joint", "fixed", WORLD, link.name)]
        if link.name not in file.bodies or not own:
            continue
        if len(own) > 1:
            told = f"hangs on {len(own)} joints from one link, which Newton reads as written and others may not"
            file.losses.changed("link", link.name, "joints", told)
        for count, step in enumerate(chain(own, set(), anchored=True)):
            joint = own[count]
            if count and not is_identity(step.joint.pose):
                raise UsageError(f"joint {joint.name!r}: USD has no frames between the joints of a body")
            write_joint(file, joint, own[0].parent, step.joint.pose if not count else None, own, count)


def write_joint(file: UsdStage, joint: Joint, parent: str, pose: Pose | None, own: Sequence[Joint], count: int) -> None:
    """A joint of the tree, its frames where its coordinate is 0; `pose`: of the body in its parent by its first one."""
    if joint.kind == "free":
        if parent != WORLD and parent in file.bodies:
            file.losses.changed("joint", joint.name, "parent", "is free in the world", physical=False)
        return
    if pose is None:
        pose = next(iter(chain(own, set(), anchored=True))).joint.pose
    token = AXES.get(joint.axis, "Z")
    turn = Pose(rotation=(1.0, 0.0, 0.0, 0.0) if joint.axis in AXES else quaternion_from_z(joint.axis))
    frame = compose(Pose(joint.anchor), turn)
    path = named_path(file, "joints", "joint", joint.name)
    prim = define_joint(file, joint.kind, path, token)
    file.joints[joint.name] = path
    connect(file, prim, (parent, joint.child), (compose(pose, frame), frame))
    if joint.kind in (*HINGES, "prismatic"):
        write_limits(file, joint, prim)
        write_drive(file, joint, prim)
    elif joint.kind == "ball":
        write_cone(file, joint, prim)
    elif joint.kind == "planar":
        lock(prim, ("transZ", "rotX", "rotY"))
    if joint.kind not in ("fixed", *HINGES, "prismatic"):
        for name in ("stiffness", "effort", "lower", "upper", "actuator_range", "velocity"):
            if getattr(joint, name):
                file.losses.lost("joint", joint.name, name, f"{name} is not said of a {joint.kind} joint")
    if joint.kind != "fixed":
        write_dynamics(file, joint, prim)


def define_joint(file: UsdStage, kind: str, path: str, token: str) -> Any:
    """The prim of a joint: of a type of its own, or a joint whose axes are locked one by one."""
    from pxr import UsdPhysics

    made = {
        "fixed": UsdPhysics.FixedJoint,
        "revolute": UsdPhysics.RevoluteJoint,
        "continuous": UsdPhysics.RevoluteJoint,
        "prismatic": UsdPhysics.PrismaticJoint,
        "ball": UsdPhysics.SphericalJoint,
    }
    joint = made.get(kind, UsdPhysics.Joint).Define(file.stage, path)
    if kind in (*HINGES, "prismatic"):
        joint.CreateAxisAttr(token)
    return joint.GetPrim()


def connect(file: UsdStage, prim: Any, links: tuple[str, str], frames: tuple[Pose, Pose]) -> None:
    """Bodies of a joint and its frames in them; the world is no body."""
    from pxr import Gf, Sdf, UsdPhysics

    joint = UsdPhysics.Joint(prim)
    for link, frame, relation, position, rotation in zip(
        links,
        frames,
        (joint.CreateBody0Rel, joint.CreateBody1Rel),
        (joint.CreateLocalPos0Attr, joint.CreateLocalPos1Attr),
        (joint.CreateLocalRot0Attr, joint.CreateLocalRot1Attr),
        strict=True,
    ):
        if link in file.bodies:
            relation().SetTargets([Sdf.Path(file.bodies[link])])
        w, *xyz = frame.rotation
        position(Gf.Vec3f(*frame.position))
        rotation(Gf.Quatf(w, *xyz))


def unit_of(joint: Joint) -> float:
    """USD's unit of the joint's coordinate in artsim's: degrees in a radian, or 1."""
    return math.degrees(1.0) if joint.kind in TURNING else 1.0


def write_limits(file: UsdStage, joint: Joint, prim: Any) -> None:
    """lowerLimit and upperLimit [degrees or m]; ±infinity for bounds that the joint does not have."""
    from pxr import UsdPhysics

    made = UsdPhysics.PrismaticJoint if joint.kind == "prismatic" else UsdPhysics.RevoluteJoint
    for value, create in ((joint.lower, "CreateLowerLimitAttr"), (joint.upper, "CreateUpperLimitAttr")):
        bound = math.inf if create.startswith("CreateUpper") else -math.inf
        getattr(made(prim), create)(bound if value is None else value * unit_of(joint))


def write_drive(file: UsdStage, joint: Joint, prim: Any) -> None:
    """DriveAPI: the spring of a joint, and the largest force of its motor."""
    from pxr import UsdPhysics

    if joint.actuator_range is not None:
        told = f"its actuators' forces are bounded by {joint.actuator_range[0]:g} and {joint.actuator_range[1]:g}"
        file.losses.lost("joint", joint.name, "actuator_range", told)
    if joint.effort is None and not joint.stiffness:
        if joint.spring_reference:
            file.losses.lost("joint", joint.name, "spring_reference", "is not said without a spring")
        return
    drive = UsdPhysics.DriveAPI.Apply(prim, "linear" if joint.kind == "prismatic" else "angular")
    drive.CreateTypeAttr("force")
    drive.CreateStiffnessAttr(joint.stiffness / unit_of(joint))
    drive.CreateDampingAttr(0.0)
    if joint.stiffness:
        drive.CreateTargetPositionAttr(joint.spring_reference * unit_of(joint))
        if joint.effort is not None:
            told = f"effort {joint.effort:g} is not said beside a spring, which takes the drive's place"
            file.losses.lost("joint", joint.name, "effort", told)
    elif joint.effort is not None:
        drive.CreateMaxForceAttr(joint.effort)
        if joint.spring_reference:
            file.losses.lost("joint", joint.name, "spring_reference", "is not said without a spring")


def write_cone(file: UsdStage, joint: Joint, prim: Any) -> None:
    """The swing of a ball joint, about its x axis; the twist has no attribute."""
    from pxr import UsdPhysics

    swing = joint.turning.swing
    ball = UsdPhysics.SphericalJoint(prim)
    if joint.turning.twist is not None:
        file.losses.lost("joint", joint.name, "turning.twist", "limits of a ball joint's twist are not said")
    if swing is not None:
        if joint.turning.axis != (1.0, 0.0, 0.0):
            file.losses.lost("joint", joint.name, "turning", "its swing is about another axis than x")
            return
        ball.CreateAxisAttr("X")
        ball.CreateConeAngle0LimitAttr(math.degrees(swing[0]))
        ball.CreateConeAngle1LimitAttr(math.degrees(swing[1]))


def lock(prim: Any, axes: Sequence[str]) -> None:
    """LimitAPI with the lower bound above the upper one: the axis is locked."""
    from pxr import UsdPhysics

    for axis in axes:
        limit = UsdPhysics.LimitAPI.Apply(prim, axis)
        limit.CreateLowAttr(1.0)
        limit.CreateHighAttr(-1.0)


def write_dynamics(file: UsdStage, joint: Joint, prim: Any) -> None:
    """Armature, damping, friction and velocity limit, for Newton; for PhysX those that it means alike."""
    for name in ("effort", "velocity"):
        if (getattr(joint, name) or 0.0) > LARGEST:
            file.losses.changed("joint", joint.name, name, f"{name} is beyond 32 bits: unlimited", physical=False)
    unit = unit_of(joint)
    newton, physx = {}, {}
    if joint.armature:
        newton["newton:armature"] = physx["physxJoint:armature"] = ("Float", joint.armature)
    if joint.damping:
        newton["newton:damping"] = ("Float", joint.damping / unit)
    if joint.friction:
        newton["newton:friction"] = ("Float", joint.friction)
    if joint.velocity is not None:
        newton["newton:velocityLimit"] = physx["physxJoint:maxJointVelocity"] = ("Float", joint.velocity * unit)
    if newton:
        apply(prim, "NewtonJointAPI", newton)
    if physx:
        apply(prim, "PhysxJointAPI", physx)


# --- beside the tree -------------------------------------------------------------------------------------------------


def write_loops(file: UsdStage) -> None:
    """Joints that are no part of the articulation."""
    from pxr import UsdPhysics

    kinds = {"connect": "ball", "weld": "fixed", "hinge": "revolute"}
    for loop in file.robot.loops:
        if not loop.active:
            file.losses.lost("loop", loop.name, WHOLE, "is not active, and left out")
            continue
        kind = "prismatic" if loop.free == ("z",) else kinds.get(loop.kind, "d6")
        path = named_path(file, "joints", "loop", loop.name)
        prim = define_joint(file, kind, path, "Z")
        if kind == "d6":
            lock(prim, held_axes(loop))
        connect(file, prim, (loop.link_a, loop.link_b), (loop.frame_a, loop.frame_b))
        UsdPhysics.Joint(prim).CreateExcludeFromArticulationAttr(True)


def held_axes(loop: Loop) -> list[str]:
    """UsdPhysics' names of the axes that a loop holds."""
    names = [f"{'rot' if axis.startswith('r') else 'trans'}{axis[-1].upper()}" for axis in LOOP_AXES]
    return [name for name, held in zip(names, loop.held, strict=True) if held]


def write_mimics(file: UsdStage) -> None:
    """NewtonMimicAPI, follower = coef0 + coef1 leader, and PhysX's, follower + gearing leader + offset = 0."""
    from pxr import Sdf

    joints = {joint.name: joint for joint in file.robot.joints}
    done: set[str] = set()
    for coupling in file.robot.couplings:
        flaw = flaw_of(coupling, joints, done)
        if flaw:
            file.losses.lost("coupling", name_of(coupling), WHOLE, flaw)
            continue
        assert coupling.leader is not None
        done.add(coupling.follower)
        follower = joints[coupling.follower]
        prim = file.stage.GetPrimAtPath(file.joints[coupling.follower])
        leader = Sdf.Path(file.joints[coupling.leader])
        offset, ratio = (*coupling.coefficients, 0.0, 0.0)[:2]
        offset *= unit_of(follower)
        apply(prim, "NewtonMimicAPI", {"newton:mimicCoef0": ("Float", offset), "newton:mimicCoef1": ("Float", ratio)})
        prim.CreateRelationship("newton:mimicJoint", custom=False).SetTargets([leader])
        axis = "rotX" if follower.kind in HINGES else "transX"  # PhysX turns every joint's axis to X
        name = f"physxMimicJoint:{axis}"
        values = {f"{name}:gearing": ("Float", -ratio), f"{name}:offset": ("Float", -offset)}
        apply(prim, f"PhysxMimicJointAPI:{axis}", values)
        prim.CreateRelationship(f"{name}:referenceJoint", custom=False).SetTargets([leader])


def flaw_of(coupling: Coupling, joints: Mapping[str, Joint], done: set[str]) -> str:
    """The reason why no mimic says a coupling; "" if one does."""
    if any(coupling.coefficients[2:]):
        return "is no line, and mimics are"
    if coupling.leader is None:
        return "holds a joint in its place, which mimics do not"
    if coupling.follower in done:
        return "is the second one of its joint, which has one mimic"
    follower, leader = joints[coupling.follower], joints[coupling.leader]
    if not all(joint.kind in (*HINGES, "prismatic") for joint in (follower, leader)):
        return "is between joints of several axes"
    if (follower.kind in HINGES) != (leader.kind in HINGES):
        return "is between a slide and a hinge, and mimics are between joints of one type"
    return ""


def write_actuators(file: UsdStage) -> None:
    """Servos of joints as drives; motors that do not act are told without being missed."""
    from pxr import UsdPhysics

    joints = {joint.name: joint for joint in file.robot.joints}
    driven: set[str] = set()
    for actuator in file.robot.actuators:
        joint = joints.get(actuator.target) if actuator.transmission == "joint" else None
        if not actuator.acts:
            file.losses.lost("actuator", actuator.name, WHOLE, "is not said: it does not act", physical=False)
            continue
        gains = servo_gains(actuator) if joint is not None else None
        if joint is None or gains is None or joint.name in driven or joint.kind not in (*HINGES, "prismatic"):
            file.losses.lost("actuator", actuator.name, WHOLE, "is no servo of a joint, and drives of USD are")
            continue
        if joint.stiffness:
            file.losses.lost("actuator", actuator.name, WHOLE, "has no drive, which says its joint's spring")
            continue
        driven.add(joint.name)
        prim = file.stage.GetPrimAtPath(file.joints[joint.name])
        drive = UsdPhysics.DriveAPI.Apply(prim, "linear" if joint.kind == "prismatic" else "angular")
        drive.CreateTypeAttr("force")
        drive.CreateStiffnessAttr(gains[0] / unit_of(joint))
        drive.CreateDampingAttr(gains[1] / unit_of(joint))
        if actuator.force_range is not None:
            drive.CreateMaxForceAttr(max(map(abs, actuator.force_range)))


def servo_gains(actuator: Actuator) -> tuple[float, float] | None:
    """Stiffness and damping of a servo of gear 1, force = kp (target - q) - kv v; None for other actuators."""
    if actuator.gear[0] != 1.0 or any(actuator.gear[1:]) or actuator.gain != "fixed" or actuator.bias != "affine":
        return None
    gain = (*actuator.gain_parameters, 0.0)[0]
    rest, stiffness, damping = (*actuator.bias_parameters, 0.0, 0.0, 0.0)[:3]
    even = actuator.force_range is None or actuator.force_range[0] == -actuator.force_range[1]
    return (gain, -damping) if rest == 0.0 and gain == -stiffness and even else None


def write_contacts(file: UsdStage, top: Any, touching: Set[tuple[str, str]]) -> None:
    """The articulation: without contacts of its own links, or with the pairs that do not touch filtered."""
    from pxr import Sdf, UsdPhysics

    UsdPhysics.ArticulationRootAPI.Apply(top)
    several = len({joint.child for joint in file.robot.joints}) < len(file.robot.joints)
    newton: dict[str, tuple[str, Any]] = {"newton:selfCollisionEnabled": ("Bool", bool(touching))}
    if several:
        newton["newton:jointsAddMobility"] = ("Bool", True)
    apply(top, "NewtonArticulationRootAPI", newton)
    apply(top, "PhysxArticulationAPI", {"physxArticulation:enabledSelfCollisions": ("Bool", bool(touching))})
    if not touching:
        return
    shaped = [link.name for link in file.robot.links if any(geom.role == "collision" for geom in link.geoms)]
    joined = {frozenset((joint.parent, joint.child)): joint.name for joint in file.robot.joints}
    for count, first in enumerate(shaped):
        apart = [second for second in shaped[count + 1 :] if (min(first, second), max(first, second)) not in touching]
        paths = [file.bodies[name] for name in apart if name in file.bodies]
        if paths and first in file.bodies:
            pairs = UsdPhysics.FilteredPairsAPI.Apply(file.stage.GetPrimAtPath(file.bodies[first]))
            pairs.CreateFilteredPairsRel().SetTargets([Sdf.Path(path) for path in paths])
    for pair in touching:
        if (name := joined.get(frozenset(pair))) in file.joints:
            UsdPhysics.Joint(file.stage.GetPrimAtPath(file.joints[str(name)])).CreateCollisionEnabledAttr(True)
