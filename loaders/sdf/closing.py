"""Joints of SDF that close loops: constraints between two frames, with tendons for forces along their axes."""

from __future__ import annotations

from dataclasses import replace

from artsim.loaders.elements import describe
from artsim.loaders.loop_motion import Motion, parts_of
from artsim.loaders.sdf.joint import Hinge
from artsim.loaders.sdf.reading import SdfReading
from artsim.sim.articulation.description import Loop, Pose, Tendon
from artsim.sim.articulation.pose_algebra import compose, inverse, quaternion_from_z

LOOPS = {"fixed": "weld", "ball": "connect", "revolute": "hinge", "continuous": "hinge", "prismatic": "joint"}
FREE_AXIS = {"hinge": "rz", "joint": "z"}  # along or about the joint's axis, which is the z axis of the loop's frames


def close(reading: SdfReading, hinge: Hinge, links: dict[str, Pose]) -> Loop | None:
    """A joint that closes a loop, as a constraint: its z axis is the hinge's."""
    what = f"{describe(hinge.element)} closes a loop"
    kind = LOOPS.get(hinge.kind)
    if kind is None:
        legal = ", ".join(LOOPS)
        reading.leave_out(hinge.element, f"{what}, which a {hinge.kind} joint cannot do here ({legal} can)", "it")
        return None
    frame = hinge.frame
    if kind in FREE_AXIS:
        frame = Pose(frame.position, quaternion_from_z(hinge.axes[0]))
    ends = [compose(inverse(links.get(name, Pose())), frame) for name in (hinge.parent, hinge.child)]
    return Loop(
        hinge.name,
        kind,  # type: ignore[arg-type]
        hinge.parent,
        hinge.child,
        ends[0],
        ends[1],
        source=reading.at(hinge.element),
        free=("z",) if kind == "joint" else (),
    )


def tendons_of(reading: SdfReading, hinge: Hinge, loop: Loop) -> list[Tendon]:
    """Limits, friction, damping and spring of a joint that closes a loop, along or about its axis."""
    (joint,) = hinge.movable
    said = (joint.lower is not None, joint.upper is not None, joint.damping, joint.friction, joint.stiffness)
    axis = FREE_AXIS.get(loop.kind, "")
    what = f"{describe(hinge.element)} closes a loop"
    if joint.armature or (any(said) and not axis):
        told = "armature is" if axis else "limits, damping, friction and springs are"
        reading.leave_out(hinge.element, f"{what}, whose {told} not supported there", "them")
    if not any(said) or not axis:
        return []
    motion = Motion(
        lower=joint.lower,
        upper=joint.upper,
        friction=joint.friction,
        damping=joint.damping,
        stiffness=joint.stiffness,
        rest=joint.spring_reference,
    )
    if motion.flaw(axis):
        reading.leave_out(hinge.element, f"{what}: {motion.flaw(axis)}", "them")
        motion = replace(motion, lower=None, upper=None)
    return parts_of(loop.name, (axis,), {axis: motion}, loop.source)[0]
