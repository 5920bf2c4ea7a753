"""What an MJCF file may hold and artsim does not use, and why: told by `check`, since none of it moves the robot."""

from __future__ import annotations

from artsim.loaders.elements import Element, tag
from artsim.loaders.mjcf.support import ATTRIBUTES, ELEMENTS
from artsim.sim.description import Ignored


def ignored_parts(root: Element) -> list[Ignored]:
    """Each kind of element and attribute that is there, once."""
    found: dict[str, str] = {}
    for element in root.iter(*ELEMENTS):
        found.setdefault(f"<{tag(element)}>", ELEMENTS[tag(element)])
    everywhere = ATTRIBUTES["*"]
    for element in root.iter():
        name, parent = tag(element), element.getparent()
        section = "" if parent is None else tag(parent)
        unused = {} if name == "contact" and section != "flexcomp" else ATTRIBUTES.get(name, {})
        for attribute in map(str, element.attrib):
            if attribute in unused:
                found.setdefault(f"{name} {attribute}", unused[attribute])
            elif attribute in everywhere:
                found.setdefault(attribute, everywhere[attribute])
    return [Ignored(what, why) for what, why in found.items()]
