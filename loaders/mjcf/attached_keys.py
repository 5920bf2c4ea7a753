"""Keyframes of attached models: each joint and actuator keeps its part of them, which its copies take along."""

from __future__ import annotations

from collections.abc import Iterator

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.joint import kind_of
from artsim.loaders.mjcf.reading import Item
from artsim.loaders.mjcf.scope import Scope

SIZES = {"hinge": (1, 1), "slide": (1, 1), "ball": (4, 3), "free": (7, 6)}  # coordinates and dofs


def carry_keyframes(scope: Scope, root: Element) -> None:
    """Cut the keyframes of a model that may be attached into the parts of its joints and actuators."""
    keys = [element for section in children(root, "keyframe") for element in section]
    if not keys:
        return
    joints = [(joint, *SIZES[kind_of(item_of(scope, joint))]) for joint in joints_in_order(root)]
    actuators = [(element, 1) for section in children(root, "actuator") for element in section]
    states = scope.reading.states
    for number, element in enumerate(keys):
        key = Item(scope.reading, element, {str(name): str(value) for name, value in element.attrib.items()})
        name = key.text("name") or f"key_{number}"
        parts = {
            "qpos": [(joint, coordinates) for joint, coordinates, _ in joints],
            "qvel": [(joint, dofs) for joint, _, dofs in joints],
            "ctrl": actuators,
        }
        for attribute, owners in parts.items():
            count = sum(size for _, size in owners)
            values = iter(key.numbers(attribute, count, count) if key.text(attribute).strip() else ())
            for owner, size in owners:
                part = tuple(value for _, value in zip(range(size), values, strict=False))
                states.setdefault(owner, {}).setdefault(name, {})[attribute] = part
        if key.text("act").strip():
            scope.reading.note(element, "activations in keyframes of attached models are left out", once="attached act")


def item_of(scope: Scope, joint: Element) -> Item:
    """A joint with the default classes of its body."""
    node = joint.getparent()
    while node is not None and not node.get("childclass") and node not in scope.reading.scopes:
        node = node.getparent()
    return scope.defaults.item(joint, None if node is None else node.get("childclass"))


def joints_in_order(root: Element) -> Iterator[Element]:
    """The joints in the order of the model's coordinates: joints of a body before joints of the bodies in it."""
    stack = list(reversed(list(children(root, "worldbody"))))
    while stack:
        inside = list(stack.pop())
        bodies: list[Element] = []
        while inside:
            element = inside.pop(0)
            if tag(element) in ("joint", "freejoint"):
                yield element
            elif tag(element) == "body":
                bodies.append(element)
            elif tag(element) == "frame":
                inside[:0] = list(element)
        stack.extend(reversed(bodies))
