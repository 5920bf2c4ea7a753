"""Edits of a robot's description: branches dropped, joints fixed, shapes removed, and all that acts on them.

Items that act on a removed link, joint or shape are removed, too, and notes name them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from artsim.sim.articulation.description import (
    Actuator,
    Articulation,
    Coupling,
    Joint,
    Keyframe,
    Note,
    Pose,
    Sensor,
    Tendon,
)
from artsim.sim.articulation.pose_algebra import compose
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.runs.patterns import meant_by

_BODIES = ("body", "xbody", "subtree")


def matching(what: str, pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a name or pattern means. Raises UsageError if there is none."""
    found = meant_by(pattern, names)
    if not found:
        raise UsageError(f"no {what} {pattern!r}{nearest(pattern, names)}")
    return found


def without_branches(robot: Articulation, patterns: Sequence[str]) -> Articulation:
    """The robot without these links and all that they carry."""
    links = [link.name for link in robot.links]
    gone = {name for pattern in patterns for name in matching("link", pattern, links)}
    parent = {joint.child: joint.parent for joint in robot.joints}
    for name in links:  # parents come first
        if parent.get(name, "") in gone:
            gone.add(name)
    if len(gone) == len(links):
        raise UsageError("nothing would be left of the robot")
    joints = {joint.name for joint in robot.joints if joint.child in gone or joint.parent in gone}
    return _without(robot, gone, joints)


def with_fixed_joints(robot: Articulation, places: Mapping[str, float]) -> Articulation:
    """The robot with joints of one dof fixed at these coordinates [rad or m], by names or patterns; followers of a
    fixed joint are fixed where it puts them."""
    moving = [joint.name for joint in robot.joints if joint.kind in ("revolute", "continuous", "prismatic")]
    values = {
        name: value for pattern, value in places.items() for name in matching("joint of one dof", pattern, moving)
    }
    leads = [coupling for coupling in robot.couplings if coupling.leader is not None and not coupling.axis]
    for _ in leads:  # followers may lead others
        for coupling in leads:
            if coupling.leader in values and coupling.follower not in values and coupling.frequency is None:
                x = values[coupling.leader]
                values[coupling.follower] = sum(c * x**k for k, c in enumerate(coupling.coefficients))
    children = [joint.child for joint in robot.joints]
    for name in values:
        joint = next(joint for joint in robot.joints if joint.name == name)
        if children.count(joint.child) > 1:
            raise UsageError(f"joint {name!r} is one of several joints of link {joint.child!r}: it cannot be fixed")
    made = tuple(_fixed(joint, values[joint.name]) if joint.name in values else joint for joint in robot.joints)
    return replace(_without(robot, set(), set(values)), joints=made)


def _fixed(joint: Joint, value: float) -> Joint:
    """The joint held at a coordinate."""
    moved = value - joint.reference
    x, y, z = joint.axis
    if joint.kind == "prismatic":
        turn = Pose((moved * x, moved * y, moved * z))
    else:
        s, c = math.sin(0.5 * moved), math.cos(0.5 * moved)
        a, b, d = joint.anchor
        turn = compose(Pose(joint.anchor, (c, s * x, s * y, s * z)), Pose((-a, -b, -d)))
    return Joint(joint.name, "fixed", joint.parent, joint.child, compose(joint.pose, turn), source=joint.source)


def without_shapes(robot: Articulation, role: Literal["visual", "collision"], patterns: Sequence[str]) -> Articulation:
    """The robot without the visual or collision shapes of these links."""
    links = [link.name for link in robot.links]
    chosen = {name for pattern in patterns for name in matching("link", pattern, links)}
    bare = tuple(
        replace(link, geoms=tuple(geom for geom in link.geoms if geom.role != role)) if link.name in chosen else link
        for link in robot.links
    )
    return _without(replace(robot, links=bare), set(), set())


# ------------------------------------------------------------------ what refers to what is gone


def _without(robot: Articulation, links: Collection[str], joints: Collection[str]) -> Articulation:
    """The robot without links, joints, and everything that refers to them, or to shapes that are there no more."""
    kept = tuple(link for link in robot.links if link.name not in links)
    geoms = {geom.name for link in kept for geom in link.geoms}
    named = {geom.name for link in robot.links for geom in link.geoms}
    sites = {site.name for site in robot.sites if site.link in links}
    wraps = {geom.name for geom in robot.wrap_geoms if geom.link in links}
    gone: dict[str, Collection[str]] = {"joint": joints, "site": sites, "geom": {*(named - geoms), *wraps}}
    gone |= dict.fromkeys(_BODIES, links)
    loops = {loop.name for loop in robot.loops if loop.link_a in links or loop.link_b in links}
    gone["loop"] = loops
    tendons = {tendon.name for tendon in robot.tendons if _tendon_ends(tendon, gone)}
    gone["tendon"] = tendons
    actuators = {actuator.name for actuator in robot.actuators if _actuator_ends(actuator, gone)}
    gone["actuator"] = actuators
    sensors = {sensor.name for sensor in robot.sensors if _sensor_ends(sensor, gone)}
    couplings = [c for c in robot.couplings if c.follower in joints or c.leader in joints]
    made = replace(
        robot,
        links=kept,
        joints=tuple(joint for joint in robot.joints if joint.name not in joints),
        couplings=tuple(c for c in robot.couplings if c not in couplings),
        loops=tuple(loop for loop in robot.loops if loop.name not in loops),
        tendons=tuple(tendon for tendon in robot.tendons if tendon.name not in tendons),
        tendon_couplings=tuple(
            c for c in robot.tendon_couplings if c.follower not in tendons and c.leader not in tendons
        ),
        wrap_geoms=tuple(geom for geom in robot.wrap_geoms if geom.name not in wraps),
        sites=tuple(site for site in robot.sites if site.name not in sites),
        actuators=tuple(actuator for actuator in robot.actuators if actuator.name not in actuators),
        sensors=tuple(sensor for sensor in robot.sensors if sensor.name not in sensors),
        contact_pairs=tuple(p for p in robot.contact_pairs if {p.geom_a, p.geom_b} <= geoms),
        no_contact=tuple(pair for pair in robot.no_contact if not {*pair} & {*links}),
        keyframes=(),
    )
    told = {
        "couplings": [_called(c) for c in couplings],
        "loops": sorted(loops),
        "tendons": sorted(tendons),
        "actuators": sorted(actuators),
        "sensors": sorted(sensors),
    }
    notes = [
        Note(robot.source, f"{kind} that act on what is gone are left out: {', '.join(map(repr, names))}")
        for kind, names in told.items()
        if names
    ]
    keys = tuple(_keyframes(robot, made, joints))
    return replace(made, keyframes=keys, notes=(*robot.notes, *notes))


def _called(coupling: Coupling) -> str:
    return coupling.follower if coupling.leader is None else f"{coupling.leader} - {coupling.follower}"


def _tendon_ends(tendon: Tendon, gone: Mapping[str, Collection[str]]) -> bool:
    return any(point.name in gone.get(point.kind, ()) or point.side_site in gone["site"] for point in tendon.path)


def _actuator_ends(actuator: Actuator, gone: Mapping[str, Collection[str]]) -> bool:
    kind = {"jointinparent": "joint", "slidercrank": "site"}.get(actuator.transmission, actuator.transmission)
    return actuator.target in gone[kind] or bool(actuator.reference and actuator.reference in gone["site"])


def _sensor_ends(sensor: Sensor, gone: Mapping[str, Collection[str]]) -> bool:
    ends = (sensor.object_kind, sensor.object), (sensor.reference_kind, sensor.reference)
    return any(name in gone.get(kind, ()) for kind, name in ends if name)


def _keyframes(robot: Articulation, made: Articulation, joints: Collection[str]) -> Iterator[Keyframe]:
    """The keyframes, with the coordinates that are left."""
    if not robot.keyframes:
        return
    from artsim.sim.articulation.compile_model import compile_model
    from artsim.sim.equipment.equip import labels_of

    labels, active = compile_model(robot).labels, labels_of(robot).activations
    left = {joint.name for joint in made.joints} - {*joints}
    owners = {"qpos": labels.joint_coords, "qvel": labels.joint_dofs}
    places = {
        name: [k for joint, part in found.items() if joint in left for k in range(part.start, part.stop)]
        for name, found in owners.items()
    }
    acts = [actuator.name for actuator in made.actuators]
    places["control"] = [k for k, actuator in enumerate(robot.actuators) if actuator.name in acts]
    kept = labels_of(made).activations
    places["activation"] = [k for k, name in enumerate(active) if name in kept]
    for key in robot.keyframes:
        values: dict[str, Any] = {name: getattr(key, name) for name in places}
        if values["control"] and len(values["control"]) != len(robot.actuators):
            continue  # actuators of several controls
        left_over: dict[str, Any] = {name: tuple(v[k] for k in places[name]) if v else () for name, v in values.items()}
        yield replace(key, **left_over)
