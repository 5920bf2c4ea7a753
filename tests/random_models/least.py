"""The smallest part of a model that still differs: elements and attributes are left out, one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring, indent, tostring

from artsim.sim.foundation.errors import ArtsimError
from tests.random_models.compare import LIMIT, LIMITS, Skipped, compare_model
from tests.random_models.random_mjcf import Drawn

KEPT = ("option", "flag")  # contacts stay off


def least(drawn: Drawn, seeds: list[int]) -> str:
    """The model's text. What is compared is the first quantity in which the whole model differs, or its refusal."""
    with tempfile.TemporaryDirectory() as folder:
        root = fromstring(drawn.text)
        wanted = finding(drawn, root, seeds, Path(folder))
        if not wanted:
            return "the model agrees"
        smaller = True
        while smaller:
            smaller = without_elements(drawn, root, seeds, Path(folder), wanted)
            smaller |= without_attributes(drawn, root, seeds, Path(folder), wanted)
        indent(root)
        return f"<!-- {wanted} -->\n{tostring(root, encoding='unicode')}"


def finding(drawn: Drawn, root: Element, seeds: list[int], folder: Path) -> str:
    """What differs first; "" where nothing does."""
    try:
        found = compare_model(drawn._replace(text=tostring(root, encoding="unicode")), seeds, folder)
    except Skipped:
        return ""
    except ArtsimError as error:
        return str(error).split(": ")[-1][:40]
    return next((name for name, value in found.items() if value > LIMITS.get(name, LIMIT)), "")


def without_elements(drawn: Drawn, root: Element, seeds: list[int], folder: Path, wanted: str) -> bool:
    """Leave out what can be, larger parts first. Whether anything could be."""
    smaller = False
    stack = [root]
    while stack:
        parent = stack.pop()
        for place, child in reversed(list(enumerate(parent))):
            if child.tag in KEPT:
                stack.append(child)
                continue
            parent.remove(child)
            if finding(drawn, root, seeds, folder) == wanted:
                smaller = True
            else:
                parent.insert(place, child)
                stack.append(child)
    return smaller


def without_attributes(drawn: Drawn, root: Element, seeds: list[int], folder: Path, wanted: str) -> bool:
    """The same with attributes."""
    smaller = False
    for element in root.iter():
        if element.tag in KEPT:
            continue
        for name in list(element.attrib):
            value = element.attrib.pop(name)
            if finding(drawn, root, seeds, folder) == wanted:
                smaller = True
            else:
                element.set(name, value)
    return smaller
