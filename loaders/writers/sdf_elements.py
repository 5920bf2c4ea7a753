"""Elements of SDF, which hold their values as text."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from artsim.loaders.elements import Element
from artsim.loaders.writers.elements_out import number, numbers
from artsim.loaders.writers.frames_out import is_identity, rpy_of
from artsim.sim.articulation.description import Pose


def put(parent: Element, tag: str, text: str | float | None = None, **attributes: str) -> Element:
    """Append an element with a text."""
    element = etree.SubElement(parent, tag, attributes)
    if text is not None:
        element.text = text if isinstance(text, str) else number(text)
    return element


def put_pose(parent: Element, pose: Pose, relative_to: str = "") -> None:
    """<pose relative_to>: x y z roll pitch yaw; none for the identity."""
    if not is_identity(pose) or relative_to:
        attributes = {"relative_to": relative_to} if relative_to else {}
        put(parent, "pose", numbers((*pose.position, *rpy_of(pose.rotation))), **attributes)


def write_values(parent: Element, tag: str, values: Mapping[str, float | None]) -> None:
    """An element with a child for each value; nothing without values."""
    if any(value is not None for value in values.values()):
        element = put(parent, tag)
        for name, value in values.items():
            if value is not None:
                put(element, name, value)
