"""The <loop_joint> elements of a URDF, by which Drake and Isaac Sim close loops: between frames of two links.

The type is one of TYPES, or `joint` with the axes that are free: <loop_joint name="l" type="joint" free="x rz">. The
motion of the free axes is in <limit lower upper effort stiffness damping>, <dynamics friction damping> and <drive
stiffness damping target velocity max_force mode>, with axis="x" if several axes are free; the effort bounds the drive.
"""

from __future__ import annotations

from dataclasses import replace

from artsim.loaders.elements import (
    Element,
    Reading,
    child,
    children,
    describe,
    direction,
    named,
    read_number,
    read_pose,
    read_vector,
    required,
)
from artsim.loaders.loop_motion import FREE, MODES, Drive, Motion, parts_of
from artsim.sim.articulation.description import LOOP_AXES, Actuator, Link, Loop, Pose, Tendon
from artsim.sim.articulation.pose_algebra import compose, quaternion_from_z
from artsim.sim.foundation.errors import nearest

TYPES = {
    "fixed": "weld",
    "spherical": "connect",
    "ball": "connect",
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "cylindrical": "cylindrical",
    "planar": "planar",
    "joint": "joint",
}
READ = ("link1", "link2", "axis", "limit", "dynamics", "drive")
AXIS_KINDS = ("hinge", "slider", "cylindrical", "planar")


def read_loop_joints(
    reading: Reading, root: Element, links: list[Link]
) -> tuple[list[Loop], list[Tendon], list[Actuator]]:
    """Every <loop_joint>, with the tendons and actuators of its free axes; a name used twice is refused."""
    names = [link.name for link in links]
    loops: dict[str, Loop] = {}
    tendons: list[Tendon] = []
    actuators: list[Actuator] = []
    for element in children(root, "loop_joint"):
        loop, free = read_loop_joint(reading, element, names)
        if loop.name in loops:
            told = f"{describe(element)} is already defined at line {loops[loop.name].source.line}"
            reading.refuse(element, told)
        loops[loop.name] = loop
        of_axes, drives = parts_of(loop.name, free, read_motions(reading, element, free), loop.source)
        tendons += of_axes
        actuators += drives
    return list(loops.values()), tendons, actuators


def read_loop_joint(reading: Reading, element: Element, links: list[str]) -> tuple[Loop, tuple[str, ...]]:
    """<loop_joint name type>: the frames of <link1> and <link2>, with z along the <axis> in both; its free axes."""
    name, kind = named(reading, element), required(reading, element, "type")
    if kind not in TYPES:
        reading.refuse(element, f"{describe(element)} has unknown type {kind[:40]!r}{nearest(kind[:40], TYPES)}")
    for item in element:
        if str(item.tag) not in READ:
            reading.refuse(item, f"{describe(item)}: want {', '.join(f'<{tag}>' for tag in READ)}")
    (a, frame_a), (b, frame_b) = (read_end(reading, element, role, links) for role in ("link1", "link2"))
    if a == b:
        reading.refuse(element, f"{describe(element)} connects link {a!r} to itself")
    made = TYPES[kind]
    if made in AXIS_KINDS:
        axis = child(reading, element, "axis")
        vector = (1.0, 0.0, 0.0) if axis is None else read_vector(reading, axis, "xyz")
        turn = Pose(rotation=quaternion_from_z(direction(reading, element if axis is None else axis, vector)))
        frame_a, frame_b = compose(frame_a, turn), compose(frame_b, turn)
    free = read_free(reading, element) if made == "joint" else FREE[made]
    own = made not in ("connect", "weld", "hinge")
    loop = Loop(
        name,
        "joint" if own else made,  # type: ignore[arg-type]
        a,
        b,
        frame_a,
        frame_b,
        source=reading.at(element),
        free=free if own else (),
    )
    return loop, free


def read_free(reading: Reading, element: Element) -> tuple[str, ...]:
    """free="x rz": the axes along and about which a loop_joint of type joint moves."""
    words = required(reading, element, "free").replace(",", " ").split()
    unknown = next((word for word in words if word not in LOOP_AXES), None)
    if unknown is not None:
        reading.refuse(element, f"{describe(element)} has no axis {unknown[:40]!r}{nearest(unknown[:40], LOOP_AXES)}")
    if not words or len(set(words)) != len(words) or len(words) == len(LOOP_AXES):
        reading.refuse(element, f"{describe(element)}: want some of {', '.join(LOOP_AXES)} as free, each once")
    return tuple(axis for axis in LOOP_AXES if axis in words)


def read_motions(reading: Reading, element: Element, free: tuple[str, ...]) -> dict[str, Motion]:
    """The motions of the free axes, by axis, from <limit>, <dynamics> and <drive>."""
    motions: dict[str, Motion] = {}
    efforts: dict[str, float] = {}
    given: set[tuple[str, str]] = set()
    for item in element:
        what = str(item.tag)
        if what not in ("limit", "dynamics", "drive"):
            continue
        axis = axis_of(reading, item, free)
        if (what, axis) in given:
            reading.refuse(item, f"{describe(item)}: {axis} has a second <{what}>")
        given.add((what, axis))
        motion = motions.get(axis, Motion())
        if what == "limit":
            motion = with_limit(reading, item, motion, bounded=element.get("type") != "continuous")
            if item.get("effort") is not None:
                efforts[axis] = at_least_0(reading, item, "effort", 0.0)
        elif what == "dynamics":
            friction, damping = (at_least_0(reading, item, name, 0.0) for name in ("friction", "damping"))
            motion = replace(motion, friction=friction, damping=damping)
        else:
            motion = replace(motion, drive=read_drive(reading, item))
        if motion.flaw(axis):
            reading.refuse(item, f"{describe(item)}: {motion.flaw(axis)}")
        motions[axis] = motion
    for axis, effort in efforts.items():
        drive = motions[axis].drive
        if drive is not None and effort > 0.0:
            most = effort if drive.most is None else min(effort, drive.most)
            motions[axis] = replace(motions[axis], drive=replace(drive, most=most))
    return motions


def axis_of(reading: Reading, item: Element, free: tuple[str, ...]) -> str:
    """The free axis that an element belongs to."""
    axis = item.get("axis", free[0] if len(free) == 1 else "")
    if axis not in free:
        wanted = f"want one of {', '.join(free)}" if free else "nothing is free"
        reading.refuse(item, f"{describe(item)}: axis is {axis[:40]!r}, {wanted}")
    return axis


def at_least_0(reading: Reading, item: Element, name: str, default: float | None = None) -> float:
    """The number in an attribute, refused below 0."""
    value = read_number(reading, item, name, default)
    if value < 0.0:
        reading.refuse(item, f"{describe(item)}: {name} is {value:g}, want at least 0")
    return value


def with_limit(reading: Reading, item: Element, motion: Motion, *, bounded: bool) -> Motion:
    """The motion with <limit lower upper>; with stiffness and damping the limits are springs."""
    lower, upper = (
        read_number(reading, item, name) if bounded and item.get(name) is not None else None
        for name in ("lower", "upper")
    )
    spring = None
    if item.get("stiffness") is not None:
        spring = at_least_0(reading, item, "stiffness"), at_least_0(reading, item, "damping", 0.0)
        if spring[0] <= 0.0:
            reading.refuse(item, f"{describe(item)}: stiffness is 0, want more; without it the limit is hard")
    if item.get("velocity") is not None:
        reading.note(
            item, f"{describe(item)}: the velocity limit of a loop joint is not enforced", once="loop velocity"
        )
    return replace(motion, lower=lower, upper=upper, limit_spring=spring)


def read_drive(reading: Reading, item: Element) -> Drive:
    """<drive stiffness damping target velocity max_force mode>."""
    mode = item.get("mode", "force")
    if mode not in MODES:
        reading.refuse(item, f"{describe(item)}: mode is {mode[:40]!r}, want {' or '.join(MODES)}")
    drive = Drive(
        at_least_0(reading, item, "stiffness", 0.0),
        at_least_0(reading, item, "damping", 0.0),
        read_number(reading, item, "target", 0.0),
        read_number(reading, item, "velocity", 0.0),
        at_least_0(reading, item, "max_force") if item.get("max_force") is not None else None,
        mode,
    )
    if drive.stiffness + drive.damping <= 0.0:
        reading.refuse(item, f"{describe(item)} has neither stiffness nor damping")
    return drive


def read_end(reading: Reading, element: Element, role: str, links: list[str]) -> tuple[str, Pose]:
    """<link1 link xyz rpy> or <link2 …>: the link and a frame of it."""
    item = child(reading, element, role)
    if item is None:
        reading.refuse(element, f"{describe(element)} has no <{role}>")
    name = required(reading, item, "link")
    if name not in links:
        told = f"{describe(item)} names link {name[:80]!r}, which does not exist{nearest(name[:80], links)}"
        reading.refuse(item, told)
    return name, read_pose(reading, item)
