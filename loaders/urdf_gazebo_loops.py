"""Joints of SDF within a URDF's <gazebo>, by which Gazebo closes loops: a joint between two links of the tree.

They are read as SDF 1.7 has them: poses in the child link, axes in the joint's frame, or in the frame that relative_to
and expressed_in name; loops are closed where all joints of the tree are at 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from artsim.loaders.elements import Element, Reading, children, describe, named
from artsim.loaders.sdf.closing import LOOPS, close, tendons_of
from artsim.loaders.sdf.frames import MODEL, Named, Scope, read_named
from artsim.loaders.sdf.joint import read_joint
from artsim.loaders.sdf.reading import SdfReading, flag_of
from artsim.sim.articulation.description import Joint, Link, Loop, Pose, Tendon
from artsim.sim.articulation.pose_algebra import compose, inverse, rotate

APART = 1e-9  # [m, or of a rotation's quaternion] by which two frames count as different


def read_gazebo_joints(
    reading: Reading, root: Element, links: Sequence[Link], joints: Sequence[Joint], known: Sequence[Loop]
) -> tuple[list[Loop], list[Tendon]]:
    """The loops of every <gazebo><joint>, with tendons for the forces along their axes.

    `links` and `joints` are those of the tree, parents first, `known` the loops of <loop_joint>: one with the name of
    a joint here says the same for artsim, in more detail, and counts in its place. Raises ModelError.
    """
    holders = [item for item in children(root, "gazebo") if item.get("reference") is None]
    found = [item for holder in holders for item in children(holder, "joint")]
    if not found:
        return [], []
    own = sdf_reading(reading)
    poses = poses_at_zero(links, joints)
    taken = {link.name: "link" for link in links} | {joint.name: "joint" for joint in joints}
    loops = {loop.name: loop for loop in known}
    made: list[Loop] = []
    tendons: list[Tendon] = []
    for element in found:
        name, kind = named(own, element), element.get("type", "")
        if name in taken:
            told = f"<gazebo>: {describe(element)} has the name of a {taken[name]}: ignored"
            own.note(element, told, guess=True)
            continue
        if kind not in LOOPS:
            told = f"<gazebo>: {describe(element)} closes a loop, which a {kind[:40]} joint cannot do here: ignored"
            own.note(element, told, guess=True)
            continue
        scope = scope_with(own, root, name, element, poses)
        hinge = read_joint(own, name, scope, Pose())
        loop = close(own, hinge, poses)
        assert loop is not None
        if name in loops:
            if differs(loop, loops[name]):
                own.note(element, f"<gazebo>: {describe(element)} differs from <loop_joint> {name!r}, which counts")
            continue
        taken[name] = "joint"
        made.append(loop)
        tendons += tendons_of(own, hinge, loop)
    return made, tendons


def sdf_reading(reading: Reading) -> SdfReading:
    """The state of the URDF's reader for functions of SDF: the same file, options and notes."""
    return SdfReading(
        reading.file,
        strict=reading.strict,
        ignore_unsupported=reading.ignore_unsupported,
        notes=reading.notes,
        said=reading.said,
        lines=reading.lines,
        macros=reading.macros,
    )


def poses_at_zero(links: Sequence[Link], joints: Sequence[Joint]) -> dict[str, Pose]:
    """Poses of the links in the frame of the root, all coordinates 0."""
    above = {joint.child: joint for joint in joints}
    poses: dict[str, Pose] = {}
    for link in links:
        joint = above.get(link.name)
        poses[link.name] = Pose() if joint is None else compose(poses[joint.parent], joint.pose)
    return poses


def scope_with(reading: SdfReading, root: Element, name: str, element: Element, poses: dict[str, Pose]) -> Scope:
    """The links as the named elements of a model, and the joint among them; older files express axes in the model."""
    for item in element.iter("use_parent_model_frame"):
        above = item.getparent()
        if above is not None and flag_of(reading, above, "use_parent_model_frame"):
            for xyz in children(above, "xyz"):
                xyz.set("expressed_in", MODEL)
    scope = Scope(reading, root, MODEL, poses=dict(poses))
    scope.names |= {link: Named("link", root, pose, MODEL) for link, pose in poses.items()}
    scope.names[name] = read_named(reading, element, scope, name)
    return scope


def differs(loop: Loop, other: Loop) -> bool:
    """True unless two loops hold the same points, axes and turns of the same links."""
    if (loop.kind, loop.link_a, loop.link_b, loop.free) != (other.kind, other.link_a, other.link_b, other.free):
        return True
    return any(abs(a - b) > APART for a, b in zip(held_by(loop), held_by(other), strict=True))


def held_by(loop: Loop) -> list[float]:
    """The points that a loop holds, z axes of its frames unless they turn, the turn between links unless it is free."""
    frames = (loop.frame_a, loop.frame_b)
    values = [x for frame in frames for x in frame.position]
    if loop.kind in ("hinge", "joint"):
        values += [x for frame in frames for x in rotate(frame.rotation, (0.0, 0.0, 1.0))]
    if loop.kind in ("weld", "joint"):
        turn = compose(loop.frame_a, inverse(loop.frame_b)).rotation
        values += rotate(turn, (1.0, 0.0, 0.0)) + rotate(turn, (0.0, 1.0, 0.0))
    return values
