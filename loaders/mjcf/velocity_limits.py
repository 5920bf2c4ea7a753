"""Velocity limits of joints in <custom>, where `artsim convert` writes what MuJoCo does not have."""

from __future__ import annotations

from dataclasses import replace

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.reading import Item, dict_of

VELOCITY_LIMIT = "velocity_limit:"  # before the name of a joint


def is_velocity_limit(element: Element) -> bool:
    """True for a number that says the velocity limit of a joint."""
    return tag(element) == "numeric" and element.get("name", "").startswith(VELOCITY_LIMIT)


def read_velocity_limits(bodies: Bodies, root: Element) -> None:
    """<numeric name="velocity_limit:JOINT" data="…">: the velocity [rad/s or m/s] that a run enforces on request."""
    place = {joint.name: n for n, joint in enumerate(bodies.joints)}
    for section in children(root, "custom"):
        for element in children(section, "numeric"):
            name = element.get("name", "").removeprefix(VELOCITY_LIMIT)
            if not is_velocity_limit(element) or name not in place:
                continue
            item = Item(bodies.reading, element, dict_of(element))
            limit, n = item.number("data", least=0.0), place[name]
            bodies.joints[n] = replace(bodies.joints[n], velocity=limit or None)
