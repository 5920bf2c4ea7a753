"""springdamper of a joint: the stiffness and damping that give its motion a time constant and a damping ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from artsim.sim.articulation.description import Joint, Link, Pose, Tendon
from artsim.sim.articulation.sliders import sliding_masses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Real = NDArray[np.float64]


def with_springs(
    links: Sequence[Link],
    joints: Sequence[Joint],
    poses: Mapping[str, Pose],
    wanted: Mapping[str, tuple[float, float]],
    tendons: Sequence[Tendon] = (),
) -> list[Joint]:
    """The joints, with stiffness and damping where `wanted` gives a time constant [s] and a damping ratio.

    k = I / (tc ratio)² and b = 2 I / tc of a mass-spring-damper. I is the inertia that the joint's dofs feel with all
    others free: one over the mean of their diagonal elements of M⁻¹, in the pose of the file (`poses` in the world).
    The inertia of a body that only slides is its mass. Of tendons, the armature of fixed ones counts.
    """
    if not wanted:
        return list(joints)
    import numpy as np

    places, M = mass_matrix(links, joints, poses)
    add_tendons(M, {joint.name: place for joint, place in zip(joints, places, strict=True)}, tendons)
    try:
        felt = np.diag(np.linalg.inv(M))
    except np.linalg.LinAlgError:  # no run is possible then, but the file can be viewed
        felt = np.diag(np.linalg.pinv(M))
    sliding = sliding_masses(links, joints)
    made = []
    for joint, place in zip(joints, places, strict=True):
        if joint.name in wanted:
            time, ratio = wanted[joint.name]
            inertia = sliding.get(joint.child) or 1.0 / float(felt[place].mean())
            joint = replace(joint, stiffness=inertia / (time * ratio) ** 2, damping=2.0 * inertia / time)
        made.append(joint)
    return made


def mass_matrix(links: Sequence[Link], joints: Sequence[Joint], poses: Mapping[str, Pose]) -> tuple[list[slice], Real]:
    """The dofs of each joint, and M (nv, nv) with armature: composite bodies about the world's origin."""
    import numpy as np

    composite = {link.name: spatial_inertia(link, poses[link.name]) for link in links}
    parents = {joint.child: joint.parent for joint in joints}
    for link in reversed(links):
        if link.name in parents:
            composite[parents[link.name]] = composite[parents[link.name]] + composite[link.name]
    columns = [motions(joint, poses[joint.child]) for joint in joints]
    ends = np.cumsum([0, *(len(twists) for twists in columns)]).tolist()
    places = [slice(start, end) for start, end in pairwise(ends)]
    of_link: dict[str, list[int]] = {}
    for number, joint in enumerate(joints):
        of_link.setdefault(joint.child, []).append(number)
    M = np.zeros((ends[-1], ends[-1]))
    for number, joint in enumerate(joints):
        momentum = columns[number] @ composite[joint.child]
        M[places[number], places[number]] += joint.armature * np.eye(len(columns[number]))
        name: str | None = joint.child
        while name is not None:
            for other in of_link.get(name, ()):
                if other <= number:
                    block = momentum @ columns[other].T
                    M[places[number], places[other]] += block
                    if other < number:
                        M[places[other], places[number]] += block.T
            name = parents.get(name)
    return places, M


def add_tendons(M: Real, places: Mapping[str, slice], tendons: Sequence[Tendon]) -> None:
    """M += Jᵀ armature J of fixed tendons, whose moment arms J are the coefficients of their path."""
    import numpy as np

    for tendon in tendons:
        if tendon.kind == "fixed" and tendon.armature:
            arms = np.zeros(len(M))
            for point in tendon.path:
                arms[places[point.name]] += point.value
            M += tendon.armature * np.outer(arms, arms)


def spatial_inertia(link: Link, pose: Pose) -> Real:
    """Inertia (6, 6) of a body about the world's origin, for twists of linear, then angular velocity."""
    import numpy as np

    from artsim.sim.foundation.rotations import rotation_matrix, symmetric

    made: Any = np.zeros((6, 6))
    if link.inertial is None:
        return made  # type: ignore[no-any-return]
    R = rotation_matrix(pose.rotation)
    centre = np.array(pose.position) + R @ link.inertial.pose.position
    turned = R @ rotation_matrix(link.inertial.pose.rotation)
    shift = np.vstack([np.eye(3), skew(centre)])  # force at the centre of mass as a wrench at the origin
    made[3:, 3:] = turned @ symmetric(link.inertial.inertia) @ turned.T
    made += link.inertial.mass * shift @ shift.T
    return made  # type: ignore[no-any-return]


def motions(joint: Joint, pose: Pose) -> Real:
    """The twist (n, 6) of the child for each of the joint's dofs: velocity of its point at the world's origin, spin."""
    import numpy as np

    from artsim.sim.foundation.rotations import rotation_matrix

    R = rotation_matrix(pose.rotation)
    if joint.kind == "prismatic":
        return np.array([[*(R @ joint.axis), 0.0, 0.0, 0.0]])
    if joint.kind == "fixed":
        return np.zeros((0, 6))
    anchor = np.array(pose.position) + R @ joint.anchor
    axes = [R @ joint.axis] if joint.kind == "revolute" else list(R.T)
    turns = np.array([[*np.cross(anchor, axis), *axis] for axis in axes])
    return turns if joint.kind != "free" else np.vstack([np.eye(3, 6), turns])


def skew(p: Real) -> Real:
    """The matrix of p ×."""
    import numpy as np

    x, y, z = p
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
