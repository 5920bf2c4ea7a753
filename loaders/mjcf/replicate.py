"""<replicate>: many copies of a subtree, each in a frame of its own; replaced by the frames before bodies are read."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.orientation import Angles, from_euler
from artsim.loaders.mjcf.reading import LONG_NAME, Item, MjcfReading, dict_of, weight
from artsim.loaders.mjcf.references import kind_of
from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.pose_algebra import compose

NAMED = ("body", "frame", "joint", "freejoint", "geom", "site", "camera", "light")
SECTIONS = ("tendon", "equality", "contact", "actuator", "sensor")  # each may refer to those before it
Names = dict[str, set[str]]  # names of copied elements, by kind


def expand_replicates(reading: MjcfReading, root: Element, angles: Angles) -> None:
    """Replace every <replicate>, inner ones first, by frames with copies."""
    found = [element for world in children(root, "worldbody") for element in world.iter("replicate")]
    copies: set[Element] = set()
    for element in reversed(found):
        replicate(Item(reading, element, dict_of(element)), root, angles, copies)


def replicate(item: Item, root: Element, angles: Angles, copies: set[Element]) -> None:
    """Replace one <replicate> that holds no other. `copies`: copies of elements that refer to later replicates."""
    reading, element, parent = item.reading, item.element, item.element.getparent()
    assert parent is not None
    count = item.whole("count")
    if "count" not in item.attributes or count < 1:
        item.refuse(f"count is {item.text('count', 'missing')[:20]}, want a whole number from 1")
    if len(item.text("sep")) > LONG_NAME:
        item.refuse(f"sep has {len(item.text('sep'))} characters; at most {LONG_NAME} are read")
    reading.claim(element, count * weight(element))
    step, (a, b, c) = Pose(item.vector("offset", (0.0, 0.0, 0.0))), item.vector("euler", (0.0, 0.0, 0.0))
    names = names_in(element)
    suffixes = [f"{item.text('sep')}{index:0{len(str(count))}d}" for index in range(count)]
    place, frames = Pose(), []
    for offset, suffix in enumerate(suffixes):
        frame = framed(reading, element, place)
        for below in frame.iter(*NAMED):
            rename(below, "name", suffix)
            if offset:  # keyframes set the first copy only
                reading.states.pop(below, None)
        frames.append(frame)
        if reading.included:
            reading.included[frame] = reading.at(element).file
        # each copy is offset from the one before; its rotation is that of the multiplied Euler angles, not a repeated
        # rotation
        turned = from_euler(((offset + 1) * a, (offset + 1) * b, (offset + 1) * c), angles)
        place = Pose(compose(place, step).position, turned)
    position = parent.index(element)
    parent[position : position + 1] = frames
    copy_references(reading, root, names, suffixes, copies)


def framed(reading: MjcfReading, element: Element, place: Pose) -> Element:
    """A <frame> at that place with copies of the element's children."""
    frame = etree.Element("frame")
    frame.set("pos", " ".join(map(repr, place.position)))
    frame.set("quat", " ".join(map(repr, place.rotation)))
    frame.sourceline = element.sourceline
    frame.extend(reading.copy(below) for below in element)
    return frame


def names_in(element: Element) -> Names:
    """The names of all elements that get copies, by kind."""
    names: Names = {}
    for below in element.iter(*NAMED):
        if below.get("name"):
            kind = "joint" if tag(below) == "freejoint" else tag(below)
            names.setdefault(kind, set()).add(str(below.get("name")))
    return names


def rename(element: Element, attribute: str, suffix: str) -> None:
    """Append the suffix to the name in an attribute, if there is one."""
    name = element.get(attribute)
    if name:
        element.set(attribute, name + suffix)


def copy_references(
    reading: MjcfReading, root: Element, names: Names, suffixes: Sequence[str], copies: set[Element]
) -> None:
    """Copy the elements that refer to a copied element, once for each copy.

    The order is MuJoCo's: elements without copies, then all of the first copy, all of the second, and so on.
    """
    for name in SECTIONS:
        for section in children(root, name):
            found = [element for element in section if refers(element, names)]
            if found:
                reading.claim(section, len(suffixes) * weight(*found))
            made = [referring(reading, element, names, suffix) for suffix in suffixes for element in found]
            for element in found:
                section.remove(element)
                copies.discard(element)
                if name in ("tendon", "actuator") and element.get("name"):
                    names.setdefault(name, set()).add(str(element.get("name")))
            place = next((n for n, element in enumerate(section) if element in copies), len(section))
            section[place:place] = made
            copies.update(made)


def refers(element: Element, names: Names) -> bool:
    """True if the element, or one in it, names a copied element."""
    return any(
        value in names.get(kind_of(below, str(attribute)), ())
        for below in element.iter()
        for attribute, value in below.attrib.items()
    )


def referring(reading: MjcfReading, element: Element, names: Names, suffix: str) -> Element:
    """A copy of the element that refers to the copies with this suffix."""
    copy = reading.copy(element)
    for below in copy.iter():
        for attribute, value in below.attrib.items():
            if value in names.get(kind_of(below, str(attribute)), ()):
                rename(below, str(attribute), suffix)
    rename(copy, "name", suffix)
    return copy
