"""<joint> of a URDF: kinds, axes, limits, dynamics, and <mimic>."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from artsim.loaders.elements import (
    Element,
    Reading,
    child,
    children,
    convert,
    describe,
    named,
    read_number,
    read_pose,
    read_vector,
    required,
)
from artsim.loaders.urdf_unknown import BALL_LIMITS
from artsim.sim.articulation.description import Coupling, Joint, JointKind, TurnLimits, Vector3
from artsim.sim.foundation.errors import nearest

JOINT_KINDS: dict[str, JointKind] = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "floating": "free",
    "planar": "planar",
    "spherical": "ball",  # Bullet's
}
FAR = 1e10  # [rad or m] from which on a limit is none: urdfdom wants one of every prismatic joint
MIMIC_AXES: dict[str | None, Literal["x", "y", "z"]] = {"x": "x", "y": "y", "z": "z"}
SINGLE = ("revolute", "continuous", "prismatic")  # the kinds with one coordinate, which can mimic and be mimicked


def read_joint(reading: Reading, element: Element) -> Joint:
    """<joint>."""
    name = named(reading, element)
    kind = read_kind(reading, element)
    joint = Joint(
        name=name,
        kind=kind,
        parent=read_end(reading, element, "parent"),
        child=read_end(reading, element, "child"),
        pose=read_pose(reading, child(reading, element, "origin")),
        # urdfdom ignores the axis of these two kinds as well
        axis=(0.0, 0.0, 1.0) if kind in ("fixed", "free") else read_axis(reading, child(reading, element, "axis")),
        source=reading.at(element),
    )
    if kind in ("fixed", "free"):
        return joint
    if kind == "ball":
        joint = read_turn_limits(reading, child(reading, element, "limit"), joint)
        return read_dynamics(reading, child(reading, element, "dynamics"), joint)
    joint = read_limit(reading, element, child(reading, element, "limit"), joint)
    return read_dynamics(reading, child(reading, element, "dynamics"), joint)


def read_kind(reading: Reading, element: Element) -> JointKind:
    """The joint's type."""
    kind = element.get("type")
    legal = ", ".join(JOINT_KINDS)
    if kind is None:
        reading.refuse(element, f"{describe(element)} has no type; legal: {legal}")
    if kind not in JOINT_KINDS:
        reading.refuse(element, f"{describe(element)} has unknown type {kind!r}; legal: {legal}")
    return JOINT_KINDS[kind]


def read_end(reading: Reading, element: Element, role: str) -> str:
    """The link that <parent link> or <child link> names."""
    item = child(reading, element, role)
    if item is None:
        reading.refuse(element, f"{describe(element)} has no <{role}>")
    return required(reading, item, "link")


def read_axis(reading: Reading, element: Element | None) -> Vector3:
    """The unit vector along <axis xyz>; (1, 0, 0) without an <axis>."""
    if element is None:
        return (1.0, 0.0, 0.0)
    if element.get("xyz") is None:
        reading.note(element, f"{describe(element)} has no xyz: taken as 1 0 0", guess=True)
        return (1.0, 0.0, 0.0)
    x, y, z = read_vector(reading, element, "xyz")
    length = math.hypot(x, y, z)
    if length < 1e-12:
        reading.refuse(element, f"{describe(element)} is zero")
    if not math.isfinite(length):
        reading.refuse(element, f"{describe(element)} is too long")
    if abs(length - 1.0) > 1e-3:  # rounding of the digits needs no warning
        reading.note(element, f"{describe(element)} has length {length:.6g}: normalised")
    return (x / length, y / length, z / length)


def read_limit(reading: Reading, joint_element: Element, element: Element | None, joint: Joint) -> Joint:
    """<limit lower upper effort velocity>: [rad] or [m], [N m] or [N], per second."""
    if element is None:
        if joint.kind == "prismatic":
            reading.refuse(joint_element, f"joint {joint.name!r} is prismatic and has no <limit>")
        if joint.kind == "revolute":
            reading.note(joint_element, f"joint {joint.name!r} is revolute and has no <limit>: unlimited", guess=True)
        return joint
    lower, upper = read_range(reading, element, joint)
    return dataclasses.replace(
        joint,
        lower=lower,
        upper=upper,
        effort=read_effort(reading, element),
        velocity=read_bound(reading, element, "velocity", element.get("velocity")),
    )


def read_turn_limits(reading: Reading, element: Element | None, joint: Joint) -> Joint:
    """<limit swing1 swing2 twist_lower twist_upper effort velocity> of a spherical joint, as PhysX has them: half
    angles of the cone about y and z, and the twist about <axis> [rad].

    All may be left out; a single swing holds for both axes.
    """
    if element is None:
        return joint
    first, second, lower, upper = (
        read_number(reading, element, name) if element.get(name) is not None else None for name in BALL_LIMITS[:4]
    )
    if (lower is None) != (upper is None):
        reading.refuse(element, f"{describe(element)} has one of twist_lower and twist_upper, want both")
    first, second = second if first is None else first, first if second is None else second
    swing = None if first is None or second is None else (first, second)
    turning = TurnLimits(swing, None if lower is None or upper is None else (lower, upper), joint.axis)
    if turning.flaw:
        reading.refuse(element, f"{describe(element)}: {turning.flaw}")
    effort, velocity = (
        None if element.get(name) is None else read_bound(reading, element, name, element.get(name))
        for name in ("effort", "velocity")
    )
    return dataclasses.replace(joint, turning=turning, effort=effort, velocity=velocity)


def read_range(reading: Reading, element: Element, joint: Joint) -> tuple[float | None, float | None]:
    """The range of lower and upper; a missing bound is 0, as in urdfdom, and one beyond FAR is none. Continuous and
    planar joints have no range.
    """
    lower, upper = read_number(reading, element, "lower", 0.0), read_number(reading, element, "upper", 0.0)
    given = element.get("lower") is not None or element.get("upper") is not None
    if joint.kind not in ("revolute", "prismatic"):
        if lower or upper:
            reading.note(element, f"{describe(element)}: a {joint.kind} joint has no position limits; ignored")
        return None, None
    if lower > upper:
        told = f"{describe(element)}: lower {lower:g} is greater than upper {upper:g}"
        reading.leave_out(element, told, "the range")
        return None, None
    if not given:
        reading.note(
            element, f"{describe(element)} has neither lower nor upper: both 0, the joint is locked", guess=True
        )
    elif lower == upper:
        reading.note(element, f"{describe(element)}: lower = upper = {lower:g}, the joint is locked")
    return None if lower <= -FAR else lower, None if upper >= FAR else upper


def read_effort(reading: Reading, element: Element) -> float | None:
    """The largest force or torque of a <limit>, which URDF requires; on request None where it is missing."""
    if element.get("effort") is None:
        reading.leave_out(element, f"{describe(element)} has no 'effort' attribute", "the bound in effort")
        return None
    return read_bound(reading, element, "effort", element.get("effort"))


def read_bound(reading: Reading, element: Element, name: str, text: str | None) -> float | None:
    """The bound in effort or velocity, None if unlimited; so is 0, which means "not known" in 56 public models."""
    if text is None:
        reading.note(element, f"{describe(element)} has no {name}: unlimited", guess=True)
        return None
    bound = convert(reading, element, name, text, 1)[0]
    if bound < 0:
        reading.refuse(element, f"{describe(element)}: {name} {bound:g} is negative")
    if bound == 0:
        reading.note(element, f"{describe(element)}: {name} 0 means unlimited")
        return None
    return bound


def read_dynamics(reading: Reading, element: Element | None, joint: Joint) -> Joint:
    """<dynamics damping friction> [N m s/rad or N s/m; N m or N]."""
    if element is None:
        return joint
    damping, friction = read_number(reading, element, "damping", 0.0), read_number(reading, element, "friction", 0.0)
    for name, value in (("damping", damping), ("friction", friction)):
        if value < 0:
            reading.refuse(element, f"{describe(element)}: {name} {value:g} is negative")
    return dataclasses.replace(joint, damping=damping, friction=friction)


def read_mimics(reading: Reading, root: Element, joints: list[Joint]) -> list[Coupling]:
    """The couplings of every <mimic>; a leader that does not exist, and a cycle of leaders, are refused."""
    by_name = {joint.name: joint for joint in joints}
    couplings: list[Coupling] = []
    for element in children(root, "joint"):
        item = child(reading, element, "mimic")
        if item is not None:
            couplings += read_mimic(reading, item, by_name[element.get("name", "")], by_name)
    refuse_mimic_cycles(reading, couplings)
    return couplings


def read_mimic(reading: Reading, element: Element, follower: Joint, joints: dict[str, Joint]) -> list[Coupling]:
    """<mimic joint multiplier offset axis>: follower = multiplier * leader + offset.

    A spherical joint may lead or follow: its coordinate is the twist about `axis` (x, y or z of its frame).
    """
    name = required(reading, element, "joint")
    multiplier = read_number(reading, element, "multiplier", 1.0)
    offset = read_number(reading, element, "offset", 0.0)
    what = f"joint {follower.name!r} mimics {name!r}"
    if follower.kind == "fixed":
        reading.note(element, f"{what} but is fixed: the mimic is ignored")
        return []
    if name not in joints:
        reading.leave_out(element, f"{what}, which does not exist{nearest(name, joints)}", "the mimic")
        return []
    leader = joints[name]
    if leader is follower:
        reading.refuse(element, f"{what}, that is itself")
    axis = read_mimic_axis(reading, element, follower, leader)
    if follower.kind not in SINGLE and not axis:
        reading.refuse(element, f"{what} but is {follower.kind}: only joints with one coordinate can mimic")
    if leader.kind == "fixed":
        reading.note(element, f"{what}, which is fixed: held at {offset:g}")
        return [Coupling(follower.name, None, (offset,), source=reading.at(element))]
    if leader.kind not in SINGLE and not axis:
        reading.refuse(element, f"{what}, which is {leader.kind}: only joints with one coordinate can be mimicked")
    return [Coupling(follower.name, leader.name, (offset, multiplier), axis=axis, source=reading.at(element))]


def read_mimic_axis(reading: Reading, element: Element, follower: Joint, leader: Joint) -> Literal["", "x", "y", "z"]:
    """The `axis` of <mimic>: the axis of the spherical joint, leader or follower, whose twist is coupled."""
    axis = element.get("axis")
    what = f"joint {follower.name!r} mimics {leader.name!r}"
    balls = [joint for joint in (follower, leader) if joint.kind == "ball"]
    if len(balls) == 2:
        reading.refuse(element, f"{what}: both are spherical, want one of them with one coordinate")
    if not balls:
        if axis is not None:
            reading.note(element, f"{what}: axis={axis!r} is for spherical joints; ignored", guess=True)
        return ""
    other = leader if balls[0] is follower else follower
    if other.kind not in SINGLE:
        reading.refuse(
            element,
            f"{what}: joint {other.name!r} is {other.kind}; an axis of a spherical joint follows, or is "
            "followed by, a joint with one coordinate",
        )
    if axis not in MIMIC_AXES:
        given = "no axis" if axis is None else f"axis {axis!r}"
        reading.refuse(element, f'{what}, with {given}: want axis="x", "y" or "z" of spherical joint {balls[0].name!r}')
    return MIMIC_AXES[axis]


def refuse_mimic_cycles(reading: Reading, couplings: list[Coupling]) -> None:
    """Refuse a cycle of mimics, found by following each follower to its last leader."""
    by_follower = {coupling.follower: coupling for coupling in couplings}
    done: set[str] = set()
    for start in by_follower:
        path: dict[str, None] = {}  # an ordered set
        name: str | None = start
        while name is not None and name in by_follower and name not in done:
            if name in path:
                names = list(path)
                cycle = [*names[names.index(name) :], name]
                shown = " -> ".join(map(repr, cycle[:12])) + (" …" if len(cycle) > 12 else "")
                reading.refuse(by_follower[name].source, f"mimic joints form a cycle: {shown}")
            path[name] = None
            name = by_follower[name].leader
        done |= path.keys()
