"""The <gazebo> elements of a URDF: contact properties of links and springs of joints."""

from __future__ import annotations

import dataclasses

from artsim.loaders.elements import Element, Reading, children, content_flag, content_number, describe, tag
from artsim.sim.articulation.description import Joint, Link
from artsim.sim.foundation.errors import nearest

# Looks, sensors, code, and settings of Gazebo's own solver have no meaning here.
SILENT = frozenset(
    (
        *("material", "visual", "sensor", "laserRetro", "canonicalBody", "provideFeedback", "implicitSpringDamper"),
        *("cfmDamping", "minDepth", "maxVel", "maxContacts", "fdir1", "disableFixedJointLumping", "robotNamespace"),
        *("preserveFixedJoint", "dampingFactor"),
    )
)
SELF_COLLIDE = ("selfCollide", "self_collide")
# Physics that artsim solves in its own way, or not at all: one warning each.
IGNORED = {
    "kp": "contacts are rigid",
    "kd": "contacts are rigid",
    "stopKp": "joint limits are rigid",
    "stopKd": "joint limits are rigid",
    "stopCfm": "joint limits are rigid",
    "stopErp": "joint limits are rigid",
    "fudgeFactor": "joint limits are rigid",
    "initial_joint_position": "give a start state to run",
    "initialJointPosition": "give a start state to run",
    "gravity": "gravity acts on every link",
    "turnGravityOff": "gravity acts on every link",
    "joint": "in a <gazebo> without a reference it would close a loop",
    "plugin": "Gazebo's plugins are not run",
}


def apply(reading: Reading, root: Element, links: list[Link], joints: list[Joint]) -> tuple[list[Link], list[Joint]]:
    """Every <gazebo reference="…">; of an element without a reference only <selfCollide> counts."""
    link_by_name = {link.name: link for link in links}
    joint_by_name = {joint.name: joint for joint in joints}
    for element in children(root, "gazebo"):
        name = element.get("reference")
        if name is None:
            link_by_name = {key: with_self_collide(element, link) for key, link in link_by_name.items()}
            for item in element:
                if tag(item) not in (*SELF_COLLIDE, "joint"):  # joints close loops: urdf_gazebo_loops.py
                    note_ignored(reading, item)
        elif name in link_by_name or name in joint_by_name:
            if name in link_by_name:
                link_by_name[name] = apply_to_link(reading, element, link_by_name[name])
            if name in joint_by_name:  # 24 public files have a link and a joint of one name
                joint_by_name[name] = apply_to_joint(reading, element, joint_by_name[name])
            note_rest(reading, element)
        else:
            known = [*link_by_name, *joint_by_name]
            reading.note(element, f"<gazebo> refers to {name!r}, which does not exist{nearest(name, known)}: ignored")
    return list(link_by_name.values()), list(joint_by_name.values())


def apply_to_link(reading: Reading, element: Element, link: Link) -> Link:
    """The link with the element's friction and restitution on its collision geoms, and its <selfCollide>."""
    sliding = read_friction(reading, element)
    if sliding is not None:
        geoms = (
            dataclasses.replace(geom, friction=(sliding, 0.0, 0.0)) if geom.role == "collision" else geom
            for geom in link.geoms
        )
        link = dataclasses.replace(link, geoms=tuple(geoms))
    for item in children(element, "restitution_coefficient"):
        bounce = content_number(reading, item, 0.0)
        if not 0 <= bounce <= 1:
            reading.refuse(item, f"{describe(item)}: restitution {bounce:g} is not between 0 and 1")
        geoms = (dataclasses.replace(g, surface=dataclasses.replace(g.surface, restitution=bounce)) for g in link.geoms)
        link = dataclasses.replace(link, geoms=tuple(geoms))
    return with_self_collide(element, link)


def with_self_collide(element: Element, link: Link) -> Link:
    """The link with the element's <selfCollide>: contacts between this link and others of the robot."""
    for name in SELF_COLLIDE:
        for item in children(element, name):
            link = dataclasses.replace(link, self_collide=content_flag(item))
    return link


def read_friction(reading: Reading, element: Element) -> float | None:
    """<mu1> and <mu2>: the coefficients along two directions; artsim's cone is round and takes the first."""
    values: dict[str, float] = {}
    for name in ("mu1", "mu2"):
        for item in children(element, name):
            values[name] = content_number(reading, item, 1.0)
            if values[name] < 0:
                reading.refuse(item, f"{describe(item)}: friction {values[name]:g} is negative")
    first = values.get("mu1", values.get("mu2"))
    if first is not None and values.get("mu2", first) != first:
        link = element.get("reference")
        reading.note(
            element, f"<gazebo> of link {link!r}: mu1 and mu2 differ; mu1 = {first:g} counts in all directions"
        )
    return first


def apply_to_joint(reading: Reading, element: Element, joint: Joint) -> Joint:
    """<springStiffness> [N m/rad or N/m] and <springReference> [rad or m]."""
    for item in children(element, "springStiffness"):
        stiffness = content_number(reading, item, 0.0)
        if stiffness < 0:
            reading.refuse(item, f"{describe(item)}: stiffness {stiffness:g} is negative")
        joint = dataclasses.replace(joint, stiffness=stiffness)
    for item in children(element, "springReference"):
        joint = dataclasses.replace(joint, spring_reference=content_number(reading, item, 0.0))
    return joint


def note_rest(reading: Reading, element: Element) -> None:
    """Warn of the children that were not applied."""
    applied = ("mu1", "mu2", "restitution_coefficient", *SELF_COLLIDE, "springStiffness", "springReference")
    for item in element:
        if tag(item) not in applied:
            note_ignored(reading, item)


def note_ignored(reading: Reading, item: Element) -> None:
    """Warn of ignored physics, once per tag; elements without physics need no warning."""
    name = tag(item)
    if name in SILENT or ":" in name:
        return
    if name in ("gravity", "turnGravityOff") and content_flag(item) == (name == "gravity"):
        return  # gravity on is the default
    if name == "plugin" and not any(word in item.get("filename", "") for word in ("mimic", "roboticsgroup", "spring")):
        return  # control and sensor code; only plugins that add forces or constraints are missed
    reason = IGNORED.get(name, "not known")
    told = f"<gazebo><{name}> is ignored: {reason}"
    reading.note(item, told, guess=name == "joint", once=f"<gazebo><{name}>")
