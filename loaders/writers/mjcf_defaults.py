"""Defaults of a written MJCF file: attributes that most elements of a kind share are said once.

Every element keeps the values that it had: one that lacks a shared attribute gets MuJoCo's own default in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lxml import etree

from artsim.loaders.elements import Element
from artsim.loaders.writers.elements_out import add

SHARED: Mapping[str, Mapping[str, str]] = {
    "joint": {"damping": "0", "armature": "0", "frictionloss": "0", "stiffness": "0", "margin": "0"},
    "geom": {"contype": "1", "conaffinity": "1", "condim": "3", "friction": "1 0.005 0.0001", "margin": "0"},
    "position": {"kp": "1", "kv": "0"},
    "velocity": {"kv": "1"},
}
"""Attributes that may be shared, with MuJoCo's defaults, by the tags of elements."""
LEAST = 3  # elements of a kind from which on defaults are worth a line
VISUAL = "visual"  # the class of geoms that are only seen
UNTOUCHED = {"contype": "0", "conaffinity": "0"}  # attributes of these


def group_defaults(root: Element) -> None:
    """Add a <default> to the file, if anything is shared."""
    section = etree.Element("default")
    seen_only = [geom for geom in root.iter("geom") if is_seen_only(geom)]
    for tag, shared in SHARED.items():
        elements = [element for element in root.iter(tag) if element.getparent() is not None and in_body(element)]
        elements = [element for element in elements if not (tag == "geom" and is_seen_only(element))]
        common = shared_by_most(elements, shared)
        if common:
            add(section, tag, **common)
            for element in elements:
                say_others(element, common, shared)
    if len(seen_only) >= LEAST:
        add(add(section, "default", class_=VISUAL), "geom", **UNTOUCHED)
        for geom in seen_only:
            for name in UNTOUCHED:
                del geom.attrib[name]
            geom.set("class", VISUAL)
    if len(section):
        compiler = root.find("compiler")
        root.insert(0 if compiler is None else root.index(compiler) + 1, section)


def in_body(element: Element) -> bool:
    """True for an element that defaults serve: of a body, or an actuator; <joint> of tendons and equalities is none."""
    above = element.getparent()
    return above is not None and above.tag in ("body", "worldbody", "actuator")


def is_seen_only(geom: Element) -> bool:
    """True for a geom that touches nothing."""
    return in_body(geom) and all(geom.get(name) == value for name, value in UNTOUCHED.items())


def shared_by_most(elements: Sequence[Element], shared: Mapping[str, str]) -> dict[str, str]:
    """The attributes, and their values, that more than half of the elements have, other than MuJoCo's own."""
    common: dict[str, str] = {}
    for name, plain in shared.items():
        counts = Counter(element.get(name, plain) for element in elements)
        value, count = counts.most_common(1)[0] if counts else (plain, 0)
        partly = " " in value and name != "friction"  # of several numbers, those left out would be the class's
        if not partly and count >= LEAST and 2 * count > len(elements) and value != plain:
            common[name] = value
    return common


def say_others(element: Element, common: Mapping[str, str], shared: Mapping[str, str]) -> None:
    """Leave out shared values, and say those that are not."""
    for name, value in common.items():
        own = element.get(name, shared[name])
        if own == value:
            element.attrib.pop(name, "")
        else:
            element.set(name, own)
