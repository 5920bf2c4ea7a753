"""The <loop_joint> elements of a URDF, by which Drake and Isaac Sim close loops: between frames of two links."""

from __future__ import annotations

from artsim.loaders.elements import (
    Element,
    Reading,
    child,
    children,
    describe,
    direction,
    named,
    quaternion_from_z,
    read_pose,
    read_vector,
    required,
)
from artsim.loaders.mjcf.orientation import compose
from artsim.sim.articulation.description import Link, Loop, Pose
from artsim.sim.foundation.errors import nearest

KINDS = {
    "fixed": "weld",
    "spherical": "connect",
    "ball": "connect",
    "revolute": "hinge",
    "continuous": "hinge",
}
READ = ("link1", "link2", "axis")


def read_loop_joints(reading: Reading, root: Element, links: list[Link]) -> list[Loop]:
    """Every <loop_joint>; their names differ."""
    names = [link.name for link in links]
    loops: dict[str, Loop] = {}
    for element in children(root, "loop_joint"):
        loop = read_loop_joint(reading, element, names)
        if loop.name in loops:
            told = f"{describe(element)} is already defined at line {loops[loop.name].source.line}"
            reading.refuse(element, told)
        loops[loop.name] = loop
    return list(loops.values())


def read_loop_joint(reading: Reading, element: Element, links: list[str]) -> Loop:
    """<loop_joint name type>: the frames of <link1> and <link2>, and of a revolute one the <axis> in both of them."""
    name, kind = named(reading, element), required(reading, element, "type")
    if kind not in KINDS:
        reading.refuse(element, f"{describe(element)} has unknown type {kind[:40]!r}{nearest(kind[:40], KINDS)}")
    for item in element:
        if str(item.tag) not in READ:
            reading.refuse(item, f"{describe(item)}: want {', '.join(f'<{tag}>' for tag in READ)}")
    (a, frame_a), (b, frame_b) = (read_end(reading, element, role, links) for role in ("link1", "link2"))
    if a == b:
        reading.refuse(element, f"{describe(element)} connects link {a!r} to itself")
    if KINDS[kind] == "hinge":
        axis = child(reading, element, "axis")
        vector = (1.0, 0.0, 0.0) if axis is None else read_vector(reading, axis, "xyz")
        turn = Pose(rotation=quaternion_from_z(direction(reading, element if axis is None else axis, vector)))
        frame_a, frame_b = compose(frame_a, turn), compose(frame_b, turn)
    made = KINDS[kind]
    return Loop(name, made, a, b, frame_a, frame_b, source=reading.at(element))  # type: ignore[arg-type]


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
