"""Attributes that name another element, the kind of that element, and the check that it exists."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from artsim.loaders.elements import Element, children
from artsim.loaders.mjcf.reading import MjcfReading, describe
from artsim.sim.foundation.errors import nearest

KINDS = {
    **dict.fromkeys(("joint", "joint1", "joint2", "jointinparent"), "joint"),
    **dict.fromkeys(("site", "site1", "site2", "refsite", "cranksite", "slidersite", "sidesite"), "site"),
    **dict.fromkeys(("body", "body1", "body2", "subtree1", "subtree2"), "body"),
    **dict.fromkeys(("geom", "geom1", "geom2"), "geom"),
    **dict.fromkeys(("tendon", "tendon1", "tendon2"), "tendon"),
    "actuator": "actuator",
    "camera": "camera",
    "target": "body",  # of cameras and lights
    **{kind: kind for kind in ("mesh", "material", "hfield", "texture")},
}
TYPES = {"objname": "objtype", "refname": "reftype"}  # of sensors: a second attribute gives the kind


def kind_of(element: Element, attribute: str) -> str:
    """The kind of element that an attribute names; '' for one that names none."""
    kind = element.get(TYPES[attribute], "") if attribute in TYPES else KINDS.get(attribute, "")
    return "body" if kind == "xbody" else kind


def check_references(reading: MjcfReading, root: Element, known: Mapping[str, Collection[str]]) -> None:
    """Refuse sensors and contacts of elements that do not exist; `known` holds the names of each kind."""
    for name in ("contact", "sensor"):
        for section in children(root, name):
            for element in section:
                for attribute, value in ((str(key), str(text)) for key, text in element.attrib.items()):
                    kind = kind_of(element, attribute)
                    if kind in known and value not in known[kind]:
                        close = nearest(value[:80], sorted(known[kind]))
                        what = f"{attribute} {value[:80]!r} does not exist{close}"
                        reading.refuse(element, f"{describe(element)}: {what}")
