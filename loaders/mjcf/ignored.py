"""Parts of an MJCF file that artsim does not use, and the reasons; `check` lists them, since none moves the robot."""

from __future__ import annotations

from artsim.loaders.elements import Element, tag
from artsim.loaders.mjcf.own_inertials import is_own_inertial
from artsim.loaders.mjcf.supported import ATTRIBUTES, ELEMENTS, without_effect
from artsim.loaders.mjcf.velocity_limits import is_velocity_limit
from artsim.sim.articulation.description import Ignored


def ignored_parts(root: Element) -> list[Ignored]:
    """Each kind of unused element and attribute in the file, once."""
    found: dict[str, str] = {}
    for element in root.iter(*ELEMENTS):
        if tag(element) == "custom" and all(is_velocity_limit(item) or is_own_inertial(item) for item in element):
            continue
        found.setdefault(f"<{tag(element)}>", ELEMENTS[tag(element)])
    kinds: dict[tuple[tuple[str, ...], str], None] = {}
    for element in root.iter():
        name, parent = tag(element), element.getparent()
        path = (name,) if parent is None else (tag(parent), name)
        kinds.update(dict.fromkeys((path, str(attribute)) for attribute in element.attrib))
    for tags, attribute in kinds:
        why = without_effect(tags, attribute)
        if why:
            everywhere = attribute in ATTRIBUTES["*"]
            found.setdefault(attribute if everywhere else f"{tags[-1]} {attribute}", why)
    return [Ignored(what, why) for what, why in found.items()]
