"""The plugin mujoco.pid, read as the actuator <pid>, its successor in MuJoCo 4.

The servos differ in two ways: <pid> uses the integral at the step's start, not at its end, and with slewmax it
approaches the first setpoint from 0 instead of taking it at once. Both differences vanish with the time step, or in a
run that starts at its setpoint.
"""

from __future__ import annotations

from lxml import etree

from artsim.loaders.elements import Element, children
from artsim.loaders.mjcf.mjcf_schema import MJCF
from artsim.loaders.mjcf.reading import Item, MjcfReading, describe

PLUGIN = "mujoco.pid"
OWN = frozenset(("plugin", "instance", "actdim", "actlimited", "actrange", "class"))
GAINS = {"kp": "kp", "ki": "ki", "kd": "kv", "imax": "imax", "slewmax": "slewmax"}  # plugin's key: attribute of <pid>


def as_servo(reading: MjcfReading, root: Element, element: Element) -> Element:
    """A <plugin> of <actuator> as <pid>, if it is mujoco.pid and <pid> can express it; else the element unchanged."""
    given = configuration(root, element)
    servo = MJCF.children["actuator"].children["pid"].attributes
    attributes = {str(name): str(value) for name, value in element.attrib.items() if name not in OWN}
    if given is None or not attributes.keys() <= servo | {"dyntype"} or attributes.pop("dyntype", "none") != "none":
        return element
    item = Item(reading, element, given)
    unknown = next((key for key in given if key not in GAINS), None)
    if unknown is not None:
        item.refuse(f"config key {unknown[:40]!r} is not one of {', '.join(GAINS)}")
    gains = {GAINS[key]: item.number(key) for key in given}
    for name, least in (("imax", 0.0), ("slewmax", 0.0)):
        if gains.get(name, 0.0) < least:
            item.refuse(f"{name} is {gains[name]:g}, want at least 0")
    integral = gains.get("ki", 0.0)
    if integral and "imax" in gains:
        gains["imax"] /= integral  # a force in the plugin, the integral in <pid>
    if not integral:
        gains.pop("imax", None)
    made = etree.Element("pid", attributes | {"kp": "0", "input": "pos"} | {k: repr(v) for k, v in gains.items()})
    made.sourceline = element.sourceline
    parent = element.getparent()
    assert parent is not None
    parent.replace(element, made)
    if reading.included:
        reading.included[made] = item.reading.at(element).file
    reading.note(made, f"{describe(made)}: the plugin {PLUGIN} is read as <pid>", once="pid plugin")
    return made


def configuration(root: Element, element: Element) -> dict[str, str] | None:
    """Keys and values of the element or of the instance that it names; None for another plugin."""
    place = element
    if element.get("instance") is not None:
        named = (
            (plugin.get("plugin"), instance)
            for section in children(root, "extension")
            for plugin in children(section, "plugin")
            for instance in children(plugin, "instance")
            if instance.get("name") == element.get("instance")
        )
        kind, place = next(named, ("", element))
    else:
        kind = element.get("plugin")
    if kind != PLUGIN:
        return None
    return {item.get("key", ""): item.get("value", "") for item in children(place, "config")}
