"""Loops as joints of SDF, which are closed in the file's pose: in SDF itself, and in a URDF's <gazebo>."""

from __future__ import annotations

from collections.abc import Mapping

from artsim.loaders.elements import Element
from artsim.loaders.writers.frames_out import chain
from artsim.loaders.writers.sdf_elements import put, put_pose, write_values
from artsim.sim.articulation.description import Articulation, Joint, Loop, Pose, Tendon
from artsim.sim.articulation.pose_algebra import compose, inverse

CLOSED = 1e-9  # [m, or of rotation matrices] largest gap of a loop that closes in the file's pose
LOOP_TYPES = {"weld": "fixed", "connect": "ball", "hinge": "revolute", "joint": "prismatic"}
WORLD = "world"


def write_loop(model: Element, loop: Loop, name: str, parent: str, child: str, tendon: Tendon | None) -> None:
    """<joint>, of a loop that is a weld, a point, a hinge or a slide along z; `tendon`: what acts along its axis."""
    element = put(model, "joint", name=name, type=LOOP_TYPES[loop.kind])
    put_pose(element, loop.frame_b)
    put(element, "parent", parent)
    put(element, "child", child)
    if loop.kind in ("hinge", "joint"):
        axis = put(element, "axis")
        put(axis, "xyz", "0 0 1")
        write_motion(tendon, axis)
    put(put(put(element, "physics"), "simbody"), "must_be_loop_joint", "true")


def write_motion(tendon: Tendon | None, axis: Element) -> None:
    """Limits, friction, damping and spring along or about the axis of a loop."""
    if tendon is None:
        return
    write_values(axis, "limit", {"lower": tendon.lower, "upper": tendon.upper})
    springs = {
        "damping": tendon.damping or None,
        "friction": tendon.friction or None,
        "spring_reference": tendon.spring_length[0] if tendon.spring_length and tendon.stiffness else None,
        "spring_stiffness": tendon.stiffness or None,
    }
    write_values(axis, "dynamics", springs)


def flaw_of_form(loop: Loop, poses: Mapping[str, Pose]) -> str:
    """The reason why no joint of SDF is this loop; "" if one is. `poses`: of links in the world, all coordinates 0."""
    if not loop.active:
        return "is not active, and left out"
    if loop.kind == "joint" and loop.free != ("z",):
        return f"is free along {', '.join(loop.free)}; SDF closes loops by slides along z alone"
    if loop.link_b == WORLD:
        return "ends in the world, which is no child in SDF"
    first, second = (
        compose(poses[link], frame) for link, frame in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b))
    )
    gap = compose(inverse(first), second)
    apart = max(map(abs, gap.position))
    turned = 0.0 if loop.kind == "connect" else max(map(abs, gap.rotation[1:]))
    if max(apart, turned) > CLOSED:
        return f"is open by {max(apart, turned):.3g} where all joints are at 0; SDF has loops closed there"
    return ""


def poses_at_zero(robot: Articulation) -> dict[str, Pose]:
    """Poses of links in the world, all coordinates 0."""
    poses = {WORLD: Pose()}
    chained: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        chained.setdefault(joint.child, []).append(joint)
    for link in robot.links:
        above = chained.get(link.name)
        if above is None:
            poses[link.name] = Pose()
            continue
        pose = poses[above[0].parent]
        for step in chain(above, set(), anchored=True):
            pose = compose(pose, step.joint.pose)
        poses[link.name] = pose
    return poses
