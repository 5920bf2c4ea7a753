"""Edits of how a robot stands in the world: a joint below its root, a ground, its height; and names, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from artsim.loaders.scene import renamed_by
from artsim.sim.articulation.description import Articulation, Geom, Joint, JointKind, Link, Pose
from artsim.sim.foundation.errors import UsageError, nearest

BaseJoint = Literal["fixed", "floating", "planar"]
_KINDS: Mapping[str, JointKind] = {"fixed": "fixed", "floating": "free", "planar": "planar"}
WORLD = "world"


def root_of(robot: Articulation) -> Link:
    """The link that carries all others but the world. Raises UsageError for a model with several."""
    held = {joint.child for joint in robot.joints if joint.parent != WORLD}
    roots = [link for link in robot.links if link.name not in held and link.name != WORLD]
    if len(roots) != 1:
        raise UsageError(f"{robot.name!r} has {len(roots)} root links; this edit wants one")
    return roots[0]


def with_base_joint(robot: Articulation, kind: BaseJoint) -> Articulation:
    """The robot with a joint of this kind between the world and its root, in place of the one that is there."""
    root = root_of(robot)
    old = [joint for joint in robot.joints if joint.child == root.name]
    if any(joint.kind not in ("fixed", "free") for joint in old):
        raise UsageError(f"--base-joint: {root.name!r} moves in the world by joint {old[0].name!r} already")
    pose = old[0].pose if old else Pose()
    name = next((joint.name for joint in old if joint.name), f"{WORLD}_to_{root.name}")
    joint = Joint(name, _KINDS[kind], WORLD, root.name, pose, source=root.source)
    others = tuple(one for one in robot.joints if one not in old)
    return replace(_with_world(robot), joints=(joint, *others), base="fixed", keyframes=())


def _with_world(robot: Articulation) -> Articulation:
    if any(link.name == WORLD for link in robot.links):
        return robot
    return replace(robot, links=(Link(WORLD, source=robot.source), *robot.links))


def with_ground(robot: Articulation, height: float) -> Articulation:
    """The robot on a level ground at this height [m], a plane of the world; a root that nothing holds is fixed."""
    names = {geom.name for link in robot.links for geom in link.geoms}
    name = "ground"
    while name in names:
        name += "_"
    root = root_of(robot)
    if not any(joint.child == root.name for joint in robot.joints):
        robot = with_base_joint(robot, "floating" if robot.base == "floating" else "fixed")
    made = _with_world(robot)
    plane = Geom(name, "plane", "collision", (0.0, 0.0, 1.0), Pose((0.0, 0.0, height)), source=robot.source)
    links = tuple(replace(link, geoms=(*link.geoms, plane)) if link.name == WORLD else link for link in made.links)
    return replace(made, links=links)


def lifted(robot: Articulation, height: float) -> Articulation:
    """The robot with its root, and its keyframes, this much higher [m]. Raises UsageError for a root that the file
    does not place."""
    root = root_of(robot)
    joint = next((joint for joint in robot.joints if joint.child == root.name), None)
    if joint is None or joint.kind not in ("fixed", "free"):
        raise UsageError(f"--lift: the file does not place {root.name!r}; --base-joint adds a joint that does")
    x, y, z = joint.pose.position
    higher = replace(joint, pose=replace(joint.pose, position=(x, y, z + height)))
    keys = robot.keyframes
    if joint.kind == "free" and keys:
        from artsim.sim.articulation.compile_model import compile_model

        at = compile_model(robot).labels.joint_coords[joint.name].start + 2
        keys = tuple(
            replace(key, qpos=(*key.qpos[:at], key.qpos[at] + height, *key.qpos[at + 1 :])) if key.qpos else key
            for key in keys
        )
    joints = tuple(higher if one is joint else one for one in robot.joints)
    return replace(robot, joints=joints, keyframes=keys)


def with_names(robot: Articulation, names: Mapping[str, str]) -> Articulation:
    """The robot with other names, by the old ones: OLD of all that is called so, `joint:OLD` of a joint alone.

    Raises UsageError for a name that nothing has, and for a new one that is taken.
    """
    for key, new in names.items():
        kind, _, old = key.rpartition(":")
        joints = [joint.name for joint in robot.joints]
        known = {*joints} if kind == "joint" else {*joints, *_names(robot)}
        if kind not in ("", "joint") or old not in known:
            raise UsageError(f"--rename: nothing is called {key!r}{nearest(old, known)}")
        if not new or new in known:
            raise UsageError(f"--rename: the name {new!r} is taken" if new else f"--rename: no new name for {old!r}")
        if kind != "joint":
            robot = renamed_by(robot, partial(_instead, old, new))
        else:
            robot = _with_joint_name(robot, old, new)
    return robot


def _instead(old: str, new: str, name: str) -> str:
    return new if name == old else name


def _names(robot: Articulation) -> set[str]:
    items = (robot.links, robot.loops, robot.tendons, robot.actuators, robot.sites, robot.sensors, robot.keyframes)
    geoms = {geom.name for link in robot.links for geom in link.geoms}
    return {item.name for group in items for item in group} | geoms - {""}


def _with_joint_name(robot: Articulation, old: str, new: str) -> Articulation:
    """The robot with another name of a joint, and of no link, site or actuator that has the old one, too."""

    def of(name: str, kind: str = "joint") -> str:
        return new if name == old and kind in ("joint", "jointinparent") else name

    return replace(
        robot,
        joints=tuple(replace(joint, name=of(joint.name)) for joint in robot.joints),
        couplings=tuple(
            replace(c, follower=of(c.follower), leader=None if c.leader is None else of(c.leader))
            for c in robot.couplings
        ),
        tendons=tuple(
            replace(t, path=tuple(replace(point, name=of(point.name, point.kind)) for point in t.path))
            for t in robot.tendons
        ),
        actuators=tuple(replace(a, target=of(a.target, a.transmission)) for a in robot.actuators),
        sensors=tuple(
            replace(s, object=of(s.object, s.object_kind), reference=of(s.reference, s.reference_kind))
            for s in robot.sensors
        ),
    )
