"""What moves nothing changes nothing, and what is refused is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from artsim.loaders.load import load_articulation
from artsim.loaders.mjcf.supported import ELEMENTS, SENSORS
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from tests.random_models.random_mjcf import Drawn
from tests.random_models.share import elements, group_of, paths, places

NAMED = {"texture", "camera"}  # others refer to them
WORTH = {"name": "q", "joint": "j", "body": "b0", "plugin": "mujoco.elasticity.cable", "count": "3 1 1", "key": "k"}
IDLE = {("default", "orientation")}  # of a class that nothing is of


def stripped(drawn: Drawn) -> Drawn:
    """The model without attributes and elements that have no effect."""
    root = fromstring(drawn.text)
    for element, kind in elements(root):
        path = paths()[id(kind)]
        for name in list(element.attrib):
            idle = (path, name) in places() and group_of(path, name) == "without effect"
            if idle and name != "name" and element.tag not in NAMED:
                del element.attrib[name]
        for child in list(element):
            if child.tag in ELEMENTS and child.tag not in NAMED:
                element.remove(child)
    return drawn._replace(text=tostring(root, encoding="unicode"))


def robot_of(drawn: Drawn, folder: Any) -> Articulation:
    """What artsim reads, without what is only told."""
    return dataclasses.replace(load_articulation(drawn.write(folder)), notes=(), ignored=(), text="", path="")


def compare_stripped(drawn: Drawn, folder: Any) -> dict[str, float]:
    """1 where what has no effect makes another robot."""
    return {"without effect": float(robot_of(drawn, folder) != robot_of(stripped(drawn), folder))}


def refused_places() -> list[tuple[tuple[str, ...], str]]:
    """All that is refused."""
    return [place for place, group in places().items() if group == "refused"]


def with_refused(drawn: Drawn, path: tuple[str, ...], attribute: str) -> Drawn:
    """The model with an element or attribute that is refused, in elements of its own below the sections."""
    root = fromstring(drawn.text)
    parent = root
    for depth, tag in enumerate(path):
        found = parent.find(tag) if depth == 0 or tag == "body" else None
        if found is None:
            found = SubElement(parent, tag)
            dress(found, path[: depth + 1], root)
        parent = found
    if attribute:
        parent.set(attribute, WORTH.get(attribute, "1"))
    return drawn._replace(text=tostring(root, encoding="unicode"))


def dress(element: Element, path: tuple[str, ...], root: Element) -> None:
    """The least that an element which is read must have, for what is refused in it to be reached."""
    if path[0] == "sensor":
        return
    body = next(root.iter("body"))
    joint = next((joint.get("name", "") for joint in body.iter("joint") if joint.get("type") in ("hinge", "slide")), "")
    least: dict[str, dict[str, str]] = {
        "flexcomp": {"name": "refused", "count": "3 3 1", "spacing": ".1 .1 .1"},
        "mesh": {"name": "refused"},
        "geom": {"size": "1"},
        "replicate": {"count": "2"},
        "instance": {"name": "q"},
    }
    if element.tag == "fixed":
        SubElement(element, "joint", joint=joint, coef="1")
    if path[-1] == "spatial":
        for site in list(root.iter("site"))[:2]:
            SubElement(element, "site", site=site.get("name", ""))
    element.attrib.update(least.get(element.tag, {}))


def compare_refused(drawn: Drawn, number: int, folder: Any) -> dict[str, float]:
    """1 where one thing that is refused, a different one for each number, is not refused or told by its name."""
    wanted = refused_places()
    path, attribute = wanted[number % len(wanted)]
    given = with_refused(drawn, path, attribute)
    names = {attribute, *path} - {""}
    try:
        robot = load_articulation(given.write(folder))
    except ModelError as error:
        return {"refused": float(not any(name in str(error) for name in names))}
    left_out = any(tag in SENSORS for tag in path[1:]) or path[0] == "equality"  # where a class has them inactive
    told = any(name in note.message for note in robot.notes for name in names)
    return {"refused": float(not (told and left_out) and path not in IDLE and path[:1] != ("extension",))}
