"""<actuator>: what turns a control into a force. Kept in the description; the rotor's inertia goes to its joint."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.joint import MOVING, SCALAR
from artsim.loaders.mjcf.reading import Item
from artsim.sim.description import Actuator, Tendon
from artsim.sim.errors import nearest

TRANSMISSIONS = ("joint", "jointinparent", "tendon", "site", "body", "cranksite")


def read_actuators(bodies: Bodies, tendons: Sequence[Tendon], root: Element) -> list[Actuator]:
    """Every <actuator>."""
    actuators: list[Actuator] = []
    names = {tendon.name for tendon in tendons}
    for section in children(root, "actuator"):
        for element in section:
            if tag(element) == "plugin":
                bodies.reading.later(element, "a plugin")
                continue
            actuators.append(read_actuator(bodies, names, bodies.defaults.item(element), len(actuators)))
    if actuators:
        first = next(element for section in children(root, "actuator") for element in section)
        many = f"{len(actuators)} actuators of this model" if len(actuators) > 1 else "the actuator"
        bodies.reading.note(first, f"<actuator>: {many} do{'es' * (len(actuators) == 1)} not act yet", guess=True)
    return actuators


def read_actuator(bodies: Bodies, tendons: Collection[str], item: Item, count: int) -> Actuator:
    """One actuator of any kind: its transmission and gear."""
    given = [name for name in TRANSMISSIONS if name in item.element.attrib]
    if len(given) != 1:
        item.refuse(f"has {len(given)} transmissions, want one of {', '.join(TRANSMISSIONS)}")
    target = item.text(given[0])
    known = {
        "joint": bodies.names(*MOVING).keys(),
        "tendon": tendons,
        "site": bodies.sites.keys(),
        "body": bodies.poses.keys(),
    }[{"jointinparent": "joint", "cranksite": "site"}.get(given[0], given[0])]
    if target not in known:
        item.refuse(f"{given[0]} {target[:80]!r} does not exist{nearest(target, sorted(known))}")
    gear = item.filled("gear", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    add_rotor(bodies, item, given[0], target, gear[0])
    return Actuator(item.text("name") or f"actuator_{count}", target, gear, source=item.reading.at(item.element))


def add_rotor(bodies: Bodies, item: Item, transmission: str, target: str, gear: float) -> None:
    """armature, the inertia of a rotor that turns `gear` times as fast as its joint."""
    rotor = item.number("armature", least=0.0)
    if not rotor:
        return
    place = bodies.names(*SCALAR).get(target)
    if transmission not in ("joint", "jointinparent") or place is None:
        item.reading.later(item.element, f"armature of an actuator on a {transmission}")
        return
    joint = bodies.joints[place]
    bodies.joints[place] = replace(joint, armature=joint.armature + gear * gear * rotor)
