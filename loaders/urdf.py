"""URDF to an Articulation: one function per element, no value computed that the file does not give.

The meaning follows urdfdom (the ROS parser), its refusals of malformed values included. Values that urdfdom accepts and
no engine can use (a leader that does not exist, a zero axis, reversed limits) are refused here.
"""

from __future__ import annotations

import dataclasses
import re

from lxml import etree

from artsim.loaders import urdf_gazebo, urdf_gazebo_loops, urdf_loops, urdf_mujoco
from artsim.loaders.elements import (
    Element,
    Reading,
    child,
    children,
    content_number,
    convert,
    describe,
    named,
    parse_numbers,
    tag,
)
from artsim.loaders.impossible import judge_inertias
from artsim.loaders.tree import order_tree
from artsim.loaders.urdf_joint import SINGLE, read_joint, read_mimics
from artsim.loaders.urdf_link import read_link, read_material
from artsim.loaders.urdf_unknown import DRAKE_TIES, is_macro, note_unknown
from artsim.sim.articulation.description import Actuator, Articulation, Joint
from artsim.sim.foundation.errors import nearest

# elements without moving parts, and names of macros that stand for them
UNMOVED = frozenset(("visual", "sensor", "plugin", "transmission", "ros2_control", "gazebo"))
UNMOVED_MACROS = re.compile(
    r"(?:^|_)(?:sensors?|cameras?|imus?|lidars?|lasers?|plugins?|gazebo|transmissions?)(?:_|$)|^(?:property|arg)$"
)


def read_urdf(root: Element, reading: Reading) -> Articulation:
    """<robot>: the whole model. Raises ModelError with file and line."""
    refuse_xacro(reading, root)
    extension = urdf_mujoco.read_extension(reading, root)
    if reading.assets is not None:
        reading.assets.mesh_dir, reading.assets.strip_path = extension.mesh_dir, extension.strip_path
    materials = dict(read_material(reading, element) for element in children(root, "material"))
    links = [read_link(reading, element, materials) for element in children(root, "link")]
    if not links:
        reading.refuse(root, "<robot> has no links")
    joints = [read_joint(reading, element) for element in children(root, "joint")]
    refuse_duplicates(reading, root, "link")
    refuse_duplicates(reading, root, "joint")
    for element in root:
        if tag(element) in DRAKE_TIES:
            reading.leave_out(element, f"{describe(element)} is not supported; a file of --loops may say it", "it")
    note_unknown(reading, root)
    couplings = read_mimics(reading, root, joints)
    loops, tendons, drives = urdf_loops.read_loop_joints(reading, root, links)
    actuators, joints = read_transmissions(reading, root, joints)
    links, joints = urdf_gazebo.apply(reading, root, links, joints)
    links = urdf_mujoco.corrected_inertials(reading, extension, links)
    ordered_links, ordered_joints = order_tree(links, joints)
    more, of_axes = urdf_gazebo_loops.read_gazebo_joints(reading, root, ordered_links, ordered_joints, loops)
    elements = {element.get("name", ""): element for element in children(root, "link")}
    ordered_links = judge_inertias(reading, elements, ordered_links, ordered_joints)
    text = ""
    if reading.density is not None:
        from artsim.loaders.density import with_density  # numpy

        ordered_links = with_density(reading, root, ordered_links, reading.density)
        text = etree.tostring(root, encoding="unicode")
    reading.note_missing_meshes()
    return Articulation(
        name=read_name(reading, root),
        format="urdf",
        links=ordered_links,
        joints=ordered_joints,
        couplings=tuple(couplings),
        loops=(*loops, *more),
        tendons=(*tendons, *of_axes),
        actuators=(*actuators, *drives),
        options=extension.options,
        notes=tuple(reading.notes),
        text=text,
        path=reading.file,
    )


def read_name(reading: Reading, root: Element) -> str:
    """The robot's name; urdfdom requires it, other readers do not."""
    if root.get("name") is None:
        reading.note(root, "<robot> has no name")
        return "robot"
    return named(reading, root)


def refuse_xacro(reading: Reading, root: Element) -> None:
    """Refuse macros that were not expanded, whose links and joints would be missing; warn of macros of UNMOVED."""
    for element in root.iter():
        for name, value in element.attrib.items():
            if "${" in value and (is_macro(element) or name in ("name", "link", "joint")):
                told = f"{describe(element)}: {value!r} is a xacro expression"
                reading.refuse(element, f"{told}; --xacro expands it, where you trust the file")
        if not is_macro(element):
            continue
        local = str(element.tag).rpartition("}")[2].removeprefix("xacro:")
        macro = f"<xacro:{local[:40]}>"
        above = next((tag(item) for item in element.iterancestors() if tag(item) in UNMOVED), "")
        if above == "visual":
            reading.note(element, f"{macro} is a macro that was not expanded; ignored below <visual>")
        elif above or UNMOVED_MACROS.search(local):
            reading.note(element, f"{macro} is a macro that was not expanded; ignored, as it moves nothing", guess=True)
        else:
            reading.refuse(element, f"{macro} is a macro; --xacro expands it, where you trust the file")


def refuse_duplicates(reading: Reading, root: Element, kind: str) -> None:
    """Refuse a name that two links, or two joints, have."""
    lines: dict[str, int] = {}
    for element in children(root, kind):
        name = element.get("name", "")
        if name in lines:
            reading.refuse(element, f"{kind} {name!r} is already defined at line {lines[name]}")
        lines[name] = reading.at(element).line


# --- transmissions ---------------------------------------------------------------------------------------------------


def read_transmissions(reading: Reading, root: Element, joints: list[Joint]) -> tuple[list[Actuator], list[Joint]]:
    """Every <transmission>: its actuators, and the joints with the inertia of their rotors."""
    by_name = {joint.name: joint for joint in joints}
    actuators: list[Actuator] = []
    for element in children(root, "transmission"):
        actuators += read_transmission(reading, element, by_name)
    return actuators, list(by_name.values())


def read_transmission(reading: Reading, element: Element, joints: dict[str, Joint]) -> list[Actuator]:
    """One actuator, with the reduction, for each joint of a <transmission>."""
    targets = [item.get("name", "") for item in children(element, "joint")]
    motors = list(children(element, "actuator"))
    if not targets or len(motors) not in (1, len(targets)):
        reading.note(element, f"{describe(element)} has {len(motors)} actuators for {len(targets)} joints: ignored")
        return []
    actuators: list[Actuator] = []
    for position, target in enumerate(targets):
        if target not in joints:
            reading.note(
                element, f"{describe(element)}: joint {target!r} does not exist{nearest(target, joints)}: ignored"
            )
            continue
        motor = motors[min(position, len(motors) - 1)]
        places = (element, motor, list(children(element, "joint"))[position])
        reduction = read_reduction(reading, *places, used=child(reading, motor, "motorInertia") is not None)
        name = motor.get("name") or f"{target}_motor"
        actuators.append(Actuator(name, target, (reduction,), reading.at(motor), acts=False))
        joints[target] = read_rotor(reading, motor, joints[target], reduction)
    return actuators


def read_reduction(reading: Reading, *places: Element, used: bool) -> float:
    """<mechanicalReduction> of the transmission itself (ROS 1), its actuator or its joint; 1 if there is none.

    Only a rotor's inertia needs the reduction: if it is not `used`, text that is no number is a warning.
    """
    for place in places:
        item = child(reading, place, "mechanicalReduction")
        text = "" if item is None else (item.text or "").strip()
        if item is None or not text:
            continue
        if used:
            return convert(reading, item, "content", text, 1)[0]
        try:
            return parse_numbers(text, 1)[0]
        except ValueError as error:
            reading.note(item, f"{describe(item)}: content {error}; taken as 1, nothing depends on it", guess=True)
    return 1.0


def read_rotor(reading: Reading, motor: Element, joint: Joint, reduction: float) -> Joint:
    """The joint's armature [kg m²], rotor inertia * ratio²: <motorInertia>, or Drake's rotor_inertia and gear_ratio."""
    inertia = child(reading, motor, "motorInertia")
    if inertia is None:
        inertia, ratio = child(reading, motor, "drake:rotor_inertia"), child(reading, motor, "drake:gear_ratio")
        reduction = 1.0 if ratio is None else content_number(reading, ratio, 1.0)
    if inertia is None or joint.kind not in SINGLE:
        return joint
    value = content_number(reading, inertia, 0.0)
    if value < 0:
        reading.refuse(inertia, f"{describe(inertia)}: rotor inertia {value:g} is negative")
    return dataclasses.replace(joint, armature=value * reduction * reduction)
