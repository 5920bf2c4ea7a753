"""<sensor>: what the file measures."""

from __future__ import annotations

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.reading import Item, describe
from artsim.sim.description import SENSOR_KINDS, Sensor

FRAMES = ("body", "xbody", "geom", "site")
# what a sensor needs that a run does not have: said when the file is read
MISSING = {
    **dict.fromkeys(("contact", "tactile"), "--record contacts has what touches"),
    **dict.fromkeys(("rangefinder", "distance", "normal", "fromto", "insidesite"), "shapes do not meet yet"),
    "camprojection": "cameras are not kept",
    "user": "its values come from a program",
    "plugin": "plugins are not run",
    **dict.fromkeys(("e_potential", "e_kinetic"), "--record energy has it"),
}


def read_sensors(bodies: Bodies, root: Element) -> list[Sensor]:
    """Every sensor that can be evaluated; a note for each kind that cannot."""
    sensors: list[Sensor] = []
    count = 0
    for section in children(root, "sensor"):
        for element in section:
            sensor = read_sensor(bodies, element, count)
            count += 1
            if sensor is not None:
                sensors.append(sensor)
    return sensors


def read_sensor(bodies: Bodies, element: Element, count: int) -> Sensor | None:
    """One sensor: its object is under the attribute that the kind asks for."""
    kind = tag(element)
    item = Item(bodies.reading, element, {str(key): str(value) for key, value in element.attrib.items()})
    known = SENSOR_KINDS.get(kind)
    if known is None or item.number("delay"):
        left_out(bodies, element, MISSING.get(kind, "delays are not kept"))
        return None
    object_kind = known.object
    if object_kind == "frame":
        object_kind, name = item.word("objtype", (*FRAMES, "camera"), ""), item.text("objname")
    else:
        name = item.text(object_kind)
        if object_kind and not name:
            item.refuse(f"has no {object_kind!r} attribute")
    reference_kind = item.text("reftype") if item.text("refname") else ""
    if "camera" in (object_kind, reference_kind):
        left_out(bodies, element, MISSING["camprojection"])
        return None
    return Sensor(
        name=item.text("name") or bodies.free_name("sensor", f"{kind}_{count}"),
        kind=kind,
        object_kind=object_kind,
        object=name,
        reference_kind=reference_kind,
        reference=item.text("refname"),
        cutoff=item.number("cutoff", 0.0, least=0.0),
        source=bodies.reading.at(element),
    )


def left_out(bodies: Bodies, element: Element, why: str) -> None:
    """Say, once per kind, that a sensor is not evaluated."""
    bodies.reading.note(
        element, f"{describe(element)}: a sensor of kind {tag(element)!r} is not evaluated: {why}", once=tag(element)
    )
