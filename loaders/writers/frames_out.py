"""Frames for formats that have Euler angles, joints at their axes and one joint for a link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from artsim.sim.articulation.description import Geom, Joint, Pose, Quaternion, Vector3
from artsim.sim.articulation.pose_algebra import about, compose, conjugate, quaternion_from_rpy, rotate
from artsim.sim.foundation.rotations import frame_with_z, rotation_matrix

NEAR_LOCK = 1e-4  # cosine of a pitch below which roll and yaw are not told apart well
EXACT = 4e-16  # largest deviation of a quaternion's numbers for which fewer digits of its angles are taken


class Step(NamedTuple):
    """A joint between two links of a chain: parent and child by name, the joint in the frame of its parent."""

    joint: Joint
    added: bool  # the child is a link that the robot does not have


def rpy_of(q: Quaternion) -> Vector3:
    """Roll, pitch and yaw [rad] of a rotation, with as few digits as say it."""
    if q in ((1.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0)):
        return (0.0, 0.0, 0.0)
    R = rotation_matrix(q)
    yaw = math.atan2(R[1, 0], R[0, 0])
    s, c = math.sin(yaw), math.cos(yaw)
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    turned = (opposite(roll), math.copysign(math.pi, pitch) - pitch, opposite(yaw))  # the other angles that say it
    found = [(roll, pitch, yaw), turned]
    if abs(math.cos(pitch)) < NEAR_LOCK:  # roll and yaw turn about nearly the same axis, so that either may be rounded
        near = (round(roll, 9), round(turned[0], 9))
        found += [(x, p, z + math.copysign(1.0, p) * (x - r)) for x, (r, p, z) in zip(near, list(found), strict=True)]
    found = [angles for three in found for angles in product(turns(three[0]), three[1:2], turns(three[2]))]
    for digits in range(4, 17):
        for angles in found:
            r, p, y = (0.0 if abs(angle) < 1e-15 else float(f"{angle:.{digits}g}") for angle in angles)
            if same_rotation(quaternion_from_rpy(r, p, y), q):
                return r, p, y
    return (roll, pitch, yaw)


def turns(angle: float) -> tuple[float, ...]:
    """The angle [rad], and near half a turn the one that says the same from the other side, as 3.1416 does."""
    return (angle,) if abs(angle) < 3.1 else (angle, angle - math.copysign(2.0 * math.pi, angle))


def opposite(angle: float) -> float:
    """The angle [rad] half a turn away, from -pi to pi."""
    return angle - math.copysign(math.pi, angle)


def same_rotation(a: Quaternion, b: Quaternion) -> bool:
    """True if two quaternions say one rotation, but for rounding."""
    sign = 1.0 if sum(x * y for x, y in zip(a, b, strict=True)) >= 0 else -1.0
    return max(abs(x - sign * y) for x, y in zip(a, b, strict=True)) <= EXACT


def is_identity(pose: Pose) -> bool:
    """True for a frame that lies in its parent."""
    return pose.position == (0.0, 0.0, 0.0) and pose.rotation in ((1.0, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0))


def chain(above: Sequence[Joint], taken: set[str], *, anchored: bool = False) -> Iterator[Step]:
    """The joints of a link as a chain of single ones; links are added between them.

    `anchored`: joints may stand beside the frames of their links. Otherwise a joint whose axis does not pass through
    the link's frame is followed by a fixed one. Coordinates stay what they are: a joint with a reference begins where
    its coordinate is 0.
    """
    carried = Pose()  # of the body, in the frame of the last link
    parent = above[0].parent
    for count, joint in enumerate(above):
        anchor, back = Pose(joint.anchor), Pose(tuple(0.0 - x for x in joint.anchor))  # type: ignore[arg-type]
        at = at_zero(joint, compose(compose(carried, joint.pose), anchor))
        carried = Pose() if anchored else back
        last = count == len(above) - 1 and is_identity(carried)
        child = joint.child if last else free_name(f"{joint.name}_frame", taken)
        pose = compose(at, back) if anchored and any(joint.anchor) else at
        kept = joint.anchor if anchored else (0.0, 0.0, 0.0)
        yield Step(replace(joint, parent=parent, child=child, pose=pose, anchor=kept), not last)
        parent = child
    if not is_identity(carried):
        link = above[-1].child
        name = free_name(f"{link}_fixed", taken)
        yield Step(Joint(name, "fixed", parent, link, carried, source=above[-1].source), False)


def planar_parts(joint: Joint) -> list[Joint]:
    """Two slides and a hinge with the coordinates of a planar joint."""
    columns = frame_with_z(joint.axis).T.tolist()
    parts: list[Joint] = []
    for name, column in zip(("x", "y", "angle"), columns, strict=True):
        parts.append(
            replace(
                joint,
                name=f"{joint.name}.{name}",
                kind="revolute" if name == "angle" else "prismatic",
                pose=Pose() if parts else joint.pose,
                axis=(column[0], column[1], column[2]),
            )
        )
    return parts


def at_zero(joint: Joint, pose: Pose) -> Pose:
    """The joint's frame where its coordinate is 0, of its frame in the file's pose."""
    if not joint.reference:
        return pose
    x, y, z = joint.axis
    if joint.kind == "prismatic":
        r = joint.reference
        return compose(pose, Pose((-r * x, -r * y, -r * z)))
    return compose(pose, Pose(rotation=about(joint.axis, -joint.reference)))


def free_name(wanted: str, taken: set[str]) -> str:
    """A name that is not taken, which is then."""
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted


def plain_mesh(geom: Geom) -> Geom | None:
    """The geom with the frame of its mesh (MJCF refpos, refquat) in its pose; None if only other points can say it."""
    p, q = geom.mesh_pose.position, geom.mesh_pose.rotation
    if geom.mesh_pose == Pose():
        return geom
    back = conjugate(q)
    a, b, c = geom.scale
    if a == b == c:
        moved = rotate(back, (-a * p[0], -a * p[1], -a * p[2]))
        return replace(geom, pose=compose(geom.pose, Pose(moved, back)), mesh_pose=Pose())
    if q == (1.0, 0.0, 0.0, 0.0):
        moved = (-a * p[0], -b * p[1], -c * p[2])
        return replace(geom, pose=compose(geom.pose, Pose(moved)), mesh_pose=Pose())
    return None
