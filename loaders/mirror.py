"""A robot mirrored left to right: reflected in the plane y = 0, with names of sides exchanged.

Coordinates keep their values and limits: axes of rotation turn as axial vectors do, those of slides as arrows. M,
gravity forces and the like are those of the robot, and places of links its reflections.
"""

from __future__ import annotations

import re
from dataclasses import replace

from artsim.loaders.scene import renamed_by
from artsim.sim.articulation.description import Articulation, Geom, Inertial, Joint, Link, Note, Pose, Vector3
from artsim.sim.foundation.errors import UsageError

SIDES = {"left": "right", "right": "left", "l": "r", "r": "l"}
_WORD = re.compile(r"left|right", re.IGNORECASE)
_LETTER = re.compile(r"(?<![A-Za-z0-9])(?P<front>[fhrb]?)(?P<side>[lr])(?![A-Za-z0-9])", re.IGNORECASE)


def other_side(name: str) -> str:
    """The name with left and right exchanged: as words, and as letters of their own (l_knee, FR_hip)."""
    if _WORD.search(name):
        return _WORD.sub(lambda m: _alike(m.group(), SIDES[m.group().lower()]), name)
    return _LETTER.sub(lambda m: m.group("front") + _alike(m.group("side"), SIDES[m.group("side").lower()]), name)


def _alike(model: str, word: str) -> str:
    return word.upper() if model.isupper() else word.capitalize() if model[0].isupper() else word


def mirrored(robot: Articulation) -> Articulation:
    """The robot reflected in the plane y = 0.

    Raises UsageError for actuators and loops that act along axes of frames.
    """
    for actuator in robot.actuators:
        if actuator.transmission in ("site", "body", "slidercrank") or actuator.gain == "rotation":
            raise UsageError(f"--mirror: actuator {actuator.name!r} acts on a {actuator.transmission}")
    odd = next((loop for loop in robot.loops if loop.kind == "joint"), None)
    if odd is not None:
        raise UsageError(f"--mirror: loop {odd.name!r} has free axes of its own")
    options = robot.options
    turned = any(joint.kind in ("free", "ball", "planar") for joint in robot.joints)
    notes = [Note(robot.source, "keyframes are left out of a mirrored robot with free, ball or planar joints")]
    made = replace(
        robot,
        links=tuple(map(_link, robot.links)),
        joints=tuple(map(_joint, robot.joints)),
        sites=tuple(replace(site, pose=_pose(site.pose)) for site in robot.sites),
        wrap_geoms=tuple(replace(geom, pose=_pose(geom.pose)) for geom in robot.wrap_geoms),
        loops=tuple(replace(loop, frame_a=_pose(loop.frame_a), frame_b=_pose(loop.frame_b)) for loop in robot.loops),
        keyframes=() if turned else robot.keyframes,
        notes=(*robot.notes, *(notes if turned and robot.keyframes else ())),
        options=replace(
            options,
            gravity=None if options.gravity is None else _arrow(options.gravity),
            wind=_arrow(options.wind),
        ),
    )
    return renamed_by(made, other_side)


def _arrow(v: Vector3) -> Vector3:
    x, y, z = v
    return x, 0.0 - y, z


def _axial(v: Vector3) -> Vector3:
    x, y, z = v
    return 0.0 - x, y, 0.0 - z


def _pose(pose: Pose) -> Pose:
    w, x, y, z = pose.rotation
    return Pose(_arrow(pose.position), (w, 0.0 - x, y, 0.0 - z))


def _link(link: Link) -> Link:
    inertial = link.inertial
    return replace(
        link,
        inertial=None if inertial is None else _inertial(inertial),
        geoms=tuple(map(_geom, link.geoms)),
    )


def _inertial(inertial: Inertial) -> Inertial:
    xx, xy, xz, yy, yz, zz = inertial.inertia
    return replace(inertial, pose=_pose(inertial.pose), inertia=(xx, 0.0 - xy, xz, yy, 0.0 - yz, zz))


def _geom(geom: Geom) -> Geom:
    a, b, c = geom.scale
    scale = (a, -b, c) if geom.kind == "mesh" else geom.scale
    velocity = geom.surface.velocity
    belt = (*_arrow(velocity[:3]), *_axial(velocity[3:6])) if any(velocity) else velocity  # type: ignore[arg-type]
    return replace(
        geom,
        pose=_pose(geom.pose),
        scale=scale,
        heights=geom.heights[::-1],  # rows along y
        surface=replace(geom.surface, velocity=belt),
        fluid=None if geom.fluid is None else replace(geom.fluid, pose=_pose(geom.fluid.pose)),
    )


def _joint(joint: Joint) -> Joint:
    axis = _arrow(joint.axis) if joint.kind == "prismatic" else _axial(joint.axis)
    turning = replace(joint.turning, axis=_axial(joint.turning.axis)) if joint.turning.given else joint.turning
    return replace(joint, pose=_pose(joint.pose), anchor=_arrow(joint.anchor), axis=axis, turning=turning)
