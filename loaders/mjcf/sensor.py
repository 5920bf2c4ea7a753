"""<sensor>: the measurements that the file defines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.delay import read_delay
from artsim.loaders.mjcf.reading import Item, describe, dict_of
from artsim.loaders.mjcf.supported import SENSORS
from artsim.sim.articulation.description import REDUCTIONS, SENSOR_DATA, SENSOR_KINDS, Actuator, Sensor
from artsim.sim.foundation.errors import nearest

MOST_SLOTS = 10_000  # contacts of one sensor
FRAMES = ("body", "xbody", "geom", "site")


def read_sensors(bodies: Bodies, root: Element, actuators: Sequence[Actuator]) -> list[Sensor]:
    """Every sensor that can be evaluated; a note for each kind that cannot."""
    outputs = {actuator.name: actuator.outputs for actuator in actuators}
    sensors: list[Sensor] = []
    count = 0
    for section in children(root, "sensor"):
        for element in section:
            sensor = read_sensor(bodies, element, count)
            count += 1
            if sensor is not None and sensor.object_kind == "actuator":
                sensor = replace(sensor, components=outputs[sensor.object])
            if sensor is not None:
                sensors.append(sensor)
    return sensors


def read_sensor(bodies: Bodies, element: Element, count: int) -> Sensor | None:
    """One sensor, whose object is in the attribute of its kind; None if it cannot be evaluated."""
    kind = tag(element)
    item = Item(bodies.reading, element, dict_of(element))
    known = SENSOR_KINDS.get(kind)
    if known is None:
        left_out(bodies, element, SENSORS[kind])
        return None
    if kind == "contact":
        return contact_sensor(bodies, item, count)
    object_kind = known.object
    if kind == "rangefinder" and not item.has("site") and item.has("camera"):
        object_kind = "camera"
    if object_kind == "frame":
        object_kind, name = item.word("objtype", (*FRAMES, "camera"), ""), item.text("objname")
    else:
        name = item.text(object_kind)
        if object_kind and not name:
            item.refuse(f"has no {object_kind!r} attribute")
    reference_kind = item.text("reftype") if item.text("refname") else ""
    if "camera" in (object_kind, reference_kind):
        left_out(bodies, element, SENSORS["camprojection"])
        return None
    return Sensor(
        name=name_of(bodies, item, count),
        kind=kind,
        object_kind=object_kind,
        object=name,
        reference_kind=reference_kind,
        reference=item.text("refname"),
        cutoff=item.number("cutoff", 0.0, least=0.0),
        noise=item.number("noise", 0.0, least=0.0),
        data=wanted_data(item, kind) if kind in SENSOR_DATA else (),
        source=bodies.reading.at(element),
        delay=read_delay(item),
    )


def contact_sensor(bodies: Bodies, item: Item, count: int) -> Sensor:
    """A sensor of some contacts between two objects, each a geom, a body, a subtree or anything, and of chosen data."""
    slots = item.whole("num", 1)
    if not 0 < slots <= MOST_SLOTS:
        item.refuse(f"num is {slots}, want 1 to {MOST_SLOTS}")
    first, second = (
        one_of(item, names) for names in (("site", "body1", "subtree1", "geom1"), ("body2", "subtree2", "geom2"))
    )
    return Sensor(
        name=name_of(bodies, item, count),
        kind="contact",
        object_kind=first.rstrip("12"),
        object=item.text(first),
        reference_kind=second.rstrip("12"),
        reference=item.text(second),
        data=wanted_data(item, "contact"),
        slots=slots,
        reduction=item.word("reduce", REDUCTIONS, "none"),
        source=bodies.reading.at(item.element),
        delay=read_delay(item),
    )


def one_of(item: Item, names: Sequence[str]) -> str:
    """The name among `names` of the attribute that is given; "" for none."""
    given = [name for name in names if item.has(name)]
    if len(given) > 1:
        item.refuse(f"has {given[0]!r} and {given[1]!r}, want one of them")
    return given[0] if given else ""


def wanted_data(item: Item, kind: str) -> tuple[str, ...]:
    """The words of `data`, each once and in the order of SENSOR_DATA."""
    known = list(SENSOR_DATA[kind])
    words = item.text("data").split() or known[:1]
    for word in words:
        if word not in known:
            item.refuse(f"data is {word[:40]!r}{nearest(word[:40], known)}")
    places = [known.index(word) for word in words]
    if places != sorted(set(places)):
        item.refuse(f"data is {' '.join(words)!r}, want each once and in the order {' '.join(known)}")
    return tuple(words)


def name_of(bodies: Bodies, item: Item, count: int) -> str:
    """The sensor's name, or one made of its kind and its index in the file."""
    return item.text("name") or bodies.free_name("sensor", f"{tag(item.element)}_{count}")


def left_out(bodies: Bodies, element: Element, why: str) -> None:
    """Warn, once per kind, that a sensor is not evaluated."""
    bodies.reading.note(
        element, f"{describe(element)}: a sensor of kind {tag(element)!r} is not evaluated: {why}", once=tag(element)
    )
