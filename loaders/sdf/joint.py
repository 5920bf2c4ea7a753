"""<joint> of SDFormat: the motion between two links, as one or two joints of the description.

A universal joint and a revolute2 are two revolute joints in series, a screw is a revolute joint and a slide that
follows it. The second of two joints has the name `<name>.axis2`, the slide of a screw `<name>.slide`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from artsim.loaders.elements import Element, child, content_number, describe, direction, read_number, required, tag
from artsim.loaders.sdf import supported
from artsim.loaders.sdf.frames import WORLD, Scope
from artsim.loaders.sdf.reading import (
    SdfReading,
    bound_of,
    flag_of,
    listed,
    number_of,
    text_of,
    vector_of,
)
from artsim.sim.articulation.description import Coupling, Joint, JointKind, Pose, Vector3
from artsim.sim.articulation.pose_algebra import compose, inverse, multiply, rotate
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

SdfKind = Literal["revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "screw", "gearbox", "fixed"]
KINDS: tuple[SdfKind, ...] = (
    *("revolute", "continuous", "prismatic", "ball", "universal", "revolute2"),
    *("screw", "gearbox", "fixed"),
)
AXES: dict[SdfKind, tuple[str, ...]] = {
    "ball": (),
    "fixed": (),
    "universal": ("axis", "axis2"),
    "revolute2": ("axis", "axis2"),
}  # other kinds: axis alone
SECOND, SLIDE = ".axis2", ".slide"
TURN = 2.0 * math.pi


@dataclass(frozen=True, slots=True)
class Hinge:
    """A joint of the file between two links, by their names in the whole model ("world": the world).

    `frame` is the pose of the joint in the world, `axes` are unit vectors in the world; `movable` are the joints of the
    description that it becomes, with parent, child, pose and axis still to be set.
    """

    name: str
    kind: SdfKind
    element: Element
    scope: Scope
    parent: str
    child: str
    frame: Pose
    axes: tuple[Vector3, ...]
    movable: tuple[Joint, ...]
    must_close: bool = False  # Simbody's must_be_loop_joint

    @property
    def ends(self) -> tuple[str, str]:
        """Parent and child."""
        return self.parent, self.child


def read_joint(reading: SdfReading, name: str, scope: Scope, pose: Pose) -> Hinge:
    """<joint> `name` of a scope that is at `pose` in the world."""
    element = scope.names[name].element
    if child(reading, element, "physics") is not None:
        reading.silent.setdefault("<physics> of joints", supported.TUNING)
    kind = read_kind(reading, element)
    ends = [read_end(reading, element, scope, role) for role in ("parent", "child")]
    whole = scope.prefix + name
    if ends[0] == ends[1]:
        reading.refuse(element, f"{describe(element)} connects link {ends[0]!r} to itself")
    axes = [read_axis(reading, element, axis, name, scope) for axis in AXES.get(kind, ("axis",))]
    return Hinge(
        whole,
        kind,
        element,
        scope,
        ends[0],
        ends[1],
        compose(pose, scope.pose_of(name, element)),
        tuple(rotate(pose.rotation, axis) for axis in axes),
        movable(reading, element, kind, whole),
        flag_of(reading, descend(reading, element, "physics", "simbody"), "must_be_loop_joint"),
    )


def descend(reading: SdfReading, element: Element, *names: str) -> Element | None:
    """The child of a child; None where one of them is missing."""
    node: Element | None = element
    for name in names:
        node = None if node is None else child(reading, node, name)
    return node


def read_kind(reading: SdfReading, element: Element) -> SdfKind:
    """The joint's type."""
    kind = required(reading, element, "type")
    if kind not in KINDS:
        reading.refuse(element, f"{describe(element)} has unknown type {kind[:40]!r}{nearest(kind[:40], KINDS)}")
    return kind


def read_end(reading: SdfReading, element: Element, scope: Scope, role: str) -> str:
    """The link that <parent> or <child> names, or the link that the named frame moves with."""
    name = text_of(reading, element, role)
    item = child(reading, element, role)
    assert item is not None
    if name == WORLD:
        return WORLD
    if name in scope.names and scope.names[name].element is element:
        reading.refuse(item, f"{describe(item)} is the joint itself")
    owner, link = scope.link_of(name, item)
    return WORLD if link == WORLD and owner.own == WORLD else owner.prefix + link


def read_axis(reading: SdfReading, element: Element, which: str, name: str, scope: Scope) -> Vector3:
    """The unit vector of <axis> or <axis2> in the scope's frame."""
    axis = child(reading, element, which)
    if axis is None:
        reading.refuse(element, f"{describe(element)} has no <{which}>")
    xyz = child(reading, axis, "xyz")
    if xyz is None:
        reading.note(axis, f"{describe(axis)} has no <xyz>: taken as 0 0 1", guess=True)
    vector = direction(reading, axis if xyz is None else xyz, vector_of(reading, axis, "xyz", (0.0, 0.0, 1.0)))
    frame = name if xyz is None else xyz.get("expressed_in") or name
    return rotate(scope.pose_of(frame, element if xyz is None else xyz).rotation, vector)


# --- properties of the joints of the description ---------------------------------------------------------------------


def movable(reading: SdfReading, element: Element, kind: SdfKind, name: str) -> tuple[Joint, ...]:
    """The joints of the description, with limits, damping, friction, springs and armature."""
    source = reading.at(element)

    def one(called: str, made: JointKind, which: str) -> Joint:
        joint = Joint(called, made, "", "", source=source)
        return joint if not which else read_dynamics(reading, child(reading, element, which), joint)

    if kind in ("universal", "revolute2"):
        return one(name, "revolute", "axis"), one(name + SECOND, "revolute", "axis2")
    if kind == "screw":
        return with_rotor(reading, element, one(name, "revolute", "axis")), one(name + SLIDE, "prismatic", "")
    if kind in ("ball", "fixed", "gearbox"):
        return (one(name, "ball" if kind == "ball" else "fixed", ""),)
    return (with_rotor(reading, element, one(name, kind, "axis")),)  # type: ignore[arg-type]


def read_dynamics(reading: SdfReading, axis: Element | None, joint: Joint) -> Joint:
    """<limit> and <dynamics> of an axis: [rad] or [m], [N m] or [N], per second."""
    if axis is None:
        return joint
    joint = read_limit(reading, child(reading, axis, "limit"), joint)
    item = child(reading, axis, "dynamics")
    if item is None:
        return joint
    return replace(
        joint,
        damping=number_of(reading, item, "damping", 0.0, least=0.0),
        friction=number_of(reading, item, "friction", 0.0, least=0.0),
        stiffness=number_of(reading, item, "spring_stiffness", 0.0, least=0.0),
        spring_reference=number_of(reading, item, "spring_reference", 0.0),
    )


def read_limit(reading: SdfReading, element: Element | None, joint: Joint) -> Joint:
    """The joint with its <limit>; a missing bound, and a negative effort or velocity, means unlimited."""
    if element is None:
        return joint
    lower, upper = bound_of(reading, element, "lower"), bound_of(reading, element, "upper")
    if joint.kind == "continuous":
        if lower is not None or upper is not None:
            reading.note(element, f"{describe(element)}: a continuous joint has no position limits; ignored")
        lower = upper = None
    if lower is not None and upper is not None and lower > upper:
        reading.leave_out(element, f"{describe(element)}: lower {lower:g} is greater than upper {upper:g}", "the range")
        lower = upper = None
    if lower is not None and lower == upper:
        reading.note(element, f"{describe(element)}: lower = upper = {lower:g}, the joint is locked")
    effort, velocity = (bound_of(reading, element, name) for name in ("effort", "velocity"))
    if effort == 0:
        reading.idle[element] = joint.name
    return replace(
        joint,
        lower=lower,
        upper=upper,
        effort=None if effort is None or effort < 0 else effort,
        velocity=None if velocity is None or velocity < 0 else positive(reading, element, velocity),
    )


def note_idle(reading: SdfReading) -> None:
    """One warning for all joints with effort 0, which nothing can drive."""
    if reading.idle:
        names = list(reading.idle.values())
        which = f"joint {listed(names)} has" if len(names) == 1 else f"{len(names)} joints ({listed(names)}) have"
        told = f"{which} effort 0: drives and controllers exert nothing there"
        reading.note(next(iter(reading.idle)), told)


def positive(reading: SdfReading, element: Element, velocity: float) -> float | None:
    """A velocity limit, None if unlimited; so is 0, which means "not known" in public models."""
    if velocity == 0:
        reading.note(element, f"{describe(element)}: velocity 0 means unlimited")
        return None
    return velocity


def with_rotor(reading: SdfReading, element: Element, joint: Joint) -> Joint:
    """The joint's armature [kg m² or kg] by Drake's rotor_inertia and gear_ratio."""
    inertia, ratio = child(reading, element, "drake:rotor_inertia"), child(reading, element, "drake:gear_ratio")
    if inertia is None:
        return joint
    value = content_number(reading, inertia, 0.0)
    if value < 0:
        reading.refuse(inertia, f"{describe(inertia)}: rotor inertia {value:g} is negative")
    gear = 1.0 if ratio is None else content_number(reading, ratio, 1.0)
    return replace(joint, armature=value * gear * gear)


# --- as joints of a tree ---------------------------------------------------------------------------------------------


def as_joints(hinge: Hinge, links: dict[str, Pose], *, reverse: bool) -> list[Joint]:
    """The joints of the description between the hinge's links, whose poses in the world are `links`.

    With `reverse`, the tree reaches the child first, and the parent hangs on the child: X⁻¹ = … R(-a₂, q₂) R(-a₁, q₁)
    …, so the coordinates keep their meaning if the axes are negated and in the opposite order.
    """
    parent, below = (hinge.child, hinge.parent) if reverse else (hinge.parent, hinge.child)
    above = links.get(parent, Pose())
    pose = compose(inverse(above), links[below])
    back = inverse(links[below])
    anchor = compose(back, hinge.frame).position
    sign = -1.0 if reverse else 1.0
    axes = [hinge.axes[0]] * len(hinge.movable) if hinge.kind == "screw" else list(hinge.axes)
    made: list[Joint] = []
    for n, joint in enumerate(hinge.movable):
        placed = replace(joint, parent=parent, child=below, anchor=anchor)
        if axes:
            x, y, z = rotate(back.rotation, axes[n])
            placed = replace(placed, axis=(sign * x, sign * y, sign * z))
        made.append(placed if hinge.kind != "fixed" else replace(placed, anchor=(0.0, 0.0, 0.0)))
    if reverse:
        made.reverse()
    return [replace(made[0], pose=pose), *made[1:]]


def pitch_of(reading: SdfReading, element: Element) -> float:
    """The travel of a screw along its axis for each turn [m]."""
    if child(reading, element, "screw_thread_pitch") is None:
        old = child(reading, element, "thread_pitch")
        if old is not None:  # the old element is in rad/m, positive for left-handed threads
            value = number_of(reading, element, "thread_pitch", 1.0)
            if value == 0:
                reading.refuse(old, f"{describe(old)} is 0 rad/m: the joint would slide without end")
            return -TURN / value
    return number_of(reading, element, "screw_thread_pitch", 1.0)


# --- couplings -------------------------------------------------------------------------------------------------------


def read_couplings(reading: SdfReading, hinges: dict[str, Hinge], inner: set[str]) -> list[Coupling]:
    """Every screw, <mimic> and gearbox; `inner` are the hinges that are joints of the tree."""
    couplings: list[Coupling] = []
    turning = turning_joints(hinges, inner)
    for hinge in hinges.values():
        if hinge.kind == "screw" and hinge.name in inner:
            ratio = pitch_of(reading, hinge.element) / TURN
            source = reading.at(hinge.element)
            couplings.append(Coupling(hinge.name + SLIDE, hinge.name, (0.0, ratio), source=source))
        for which, suffix in (("axis", ""), ("axis2", SECOND)):
            item = descend(reading, hinge.element, which, "mimic")
            if item is not None:
                couplings += read_mimic(reading, item, hinge, suffix, hinges, inner)
        item = child(reading, hinge.element, "drake:mimic")
        if item is not None:
            couplings += read_mimic(reading, item, hinge, "", hinges, inner)
        if hinge.kind == "gearbox":
            couplings.append(read_gearbox(reading, hinge, turning))
    refuse_two_leaders(reading, couplings)
    return couplings


def refuse_two_leaders(reading: SdfReading, couplings: list[Coupling]) -> None:
    """Refuse a joint that follows more than one other."""
    seen: dict[str, Coupling] = {}
    for coupling in couplings:
        first = seen.setdefault(coupling.follower, coupling)
        if first is not coupling:
            told = f"joint {coupling.follower!r} already follows {first.leader!r} (line {first.source.line})"
            reading.refuse(coupling.source, told)


def read_mimic(
    reading: SdfReading, element: Element, hinge: Hinge, suffix: str, hinges: dict[str, Hinge], inner: set[str]
) -> list[Coupling]:
    """<mimic joint axis>: position = multiplier (leader's position - reference) + offset; Drake's has attributes."""
    name = required(reading, element, "joint")
    axis = element.get("axis", "axis")
    what = f"joint {hinge.name + suffix!r} mimics {name[:80]!r}"
    if tag(element) == "drake:mimic":
        multiplier, offset = read_number(reading, element, "multiplier"), read_number(reading, element, "offset")
        reference = 0.0
    else:
        multiplier, offset = number_of(reading, element, "multiplier", 1.0), number_of(reading, element, "offset", 0.0)
        reference = number_of(reading, element, "reference", 0.0)
    if axis not in ("axis", "axis2"):
        reading.refuse(element, f"{describe(element)}: axis is {axis[:40]!r}, want axis or axis2")
    leader = leader_named(reading, element, hinge, name, hinges, what)
    if leader is None:
        return []
    called = leader.name + (SECOND if axis == "axis2" else "")
    for joint, moved in ((hinge, hinge.name + suffix), (leader, called)):
        own = next((item for item in joint.movable if item.name == moved), None)
        if own is None or own.kind not in ("revolute", "continuous", "prismatic"):
            reading.refuse(element, f"{what}: {joint.kind} joint {joint.name!r} has no axis that can take part")
        if joint.name not in inner:
            reading.refuse(element, f"{what}: joint {joint.name!r} closes a loop, or is of a static model")
    if called == hinge.name + suffix:
        reading.refuse(element, f"{what}, that is itself")
    constant = offset - multiplier * reference
    return [Coupling(hinge.name + suffix, called, (constant, multiplier), source=reading.at(element))]


def leader_named(
    reading: SdfReading, element: Element, hinge: Hinge, name: str, hinges: dict[str, Hinge], what: str
) -> Hinge | None:
    """The joint of the same scope, or of one nested in it, that a follower names."""
    found = hinges.get(hinge.scope.prefix + name)
    if found is None:
        prefix = hinge.scope.prefix
        known = [key.removeprefix(prefix) for key in hinges if key.startswith(prefix)]
        hint = "" if reading.ignore_unsupported else nearest(name[:80], known)  # a slow search, for one refusal only
        reading.leave_out(element, f"{what}, which does not exist{hint}", "the mimic")
    return found


def read_gearbox(reading: SdfReading, hinge: Hinge, turning: dict[frozenset[str], Hinge]) -> Coupling:
    """A gearbox between two links that turn on a third: θ₂ = -ratio θ₁, the angles of parent and child on it.

    θ₁ is about <axis>, θ₂ about <axis2>, each along the axis of the joint by which the link turns on the third.
    """
    element, scope = hinge.element, hinge.scope
    ratio = number_of(reading, element, "gearbox_ratio", 1.0)
    name = text_of(reading, element, "gearbox_reference_body")
    item = child(reading, element, "gearbox_reference_body")
    assert item is not None
    if name == WORLD:
        body = WORLD
    else:
        owner, link = scope.link_of(name, item)
        body = owner.prefix + link
    found: list[tuple[Hinge, float]] = []
    for link, which in ((hinge.parent, "axis"), (hinge.child, "axis2" if has(reading, element, "axis2") else "axis")):
        local = read_axis(reading, element, which, hinge.name.removeprefix(scope.prefix), scope)
        joint = turning.get(frozenset((body, link)))
        if joint is None:
            told = f"link {link!r} turns by no revolute joint on {body!r}, the <gearbox_reference_body>"
            reading.refuse(element, f"{describe(element)}: {told}")
        world = rotate(world_rotation(reading, hinge), local)
        along = sum(x * y for x, y in zip(world, joint.axes[0], strict=True))
        if abs(abs(along) - 1.0) > 1e-6:
            reading.refuse(element, f"{describe(element)}: <{which}> is not along the axis of joint {joint.name!r}")
        found.append((joint, math.copysign(1.0, along) * (1.0 if joint.child == link else -1.0)))
    (first, one), (second, other) = found
    if first is second:
        reading.refuse(element, f"{describe(element)} gears joint {first.name!r} to itself")
    return Coupling(second.name, first.name, (0.0, -ratio * one * other), source=reading.at(element))


def has(reading: SdfReading, element: Element, name: str) -> bool:
    """True if the element has a child of that tag."""
    return child(reading, element, name) is not None


def world_rotation(reading: SdfReading, hinge: Hinge) -> tuple[float, float, float, float]:
    """The rotation of the hinge's scope in the world."""
    own = hinge.scope.pose_of(hinge.name.removeprefix(hinge.scope.prefix), hinge.element)
    return multiply(hinge.frame.rotation, inverse(Pose(rotation=own.rotation)).rotation)


def turning_joints(hinges: dict[str, Hinge], inner: set[str]) -> dict[frozenset[str], Hinge]:
    """The revolute joints of the tree by the two links that they are between; of several the first."""
    found: dict[frozenset[str], Hinge] = {}
    for hinge in hinges.values():
        if hinge.kind in ("revolute", "continuous") and hinge.name in inner:
            found.setdefault(frozenset(hinge.ends), hinge)
    return found
