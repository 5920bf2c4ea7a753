"""<option> of a model and of models attached to it: the choice between their values by <compiler conflict>."""

from __future__ import annotations

from lxml import etree

from artsim.loaders.elements import Element, children, parse_number
from artsim.loaders.mjcf.reading import MjcfReading, describe

POLICIES = ("warning", "merge", "error")
LEAST = frozenset("timestep tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance".split())
MOST = frozenset("iterations ls_iterations noslip_iterations ccd_iterations sdf_iterations sdf_initpoints".split())
Settings = dict[str, dict[str, str]]  # of option and of its flag


def settle_options(reading: MjcfReading, root: Element, attached: Element, element: Element) -> None:
    """Set the options of `root`, to which `attached` is attached at `element`: its own, or both models' merged."""
    policies = [compiler.get("conflict", "") for compiler in children(root, "compiler")]
    policy = next((policy for policy in reversed(policies) if policy), "warning")
    if policy not in POLICIES:
        reading.refuse(next(children(root, "compiler")), f"<compiler>: conflict is {policy[:40]!r}")
    own, others = settings_of(root), settings_of(attached)
    for place, values in others.items():
        for name, value in values.items():
            mine = own[place].get(name)
            if mine is None and policy == "merge":
                own[place][name] = value
            elif mine is not None and not same(mine, value) and policy != "warning":
                if policy == "error" or place == "option":
                    value = chosen(reading, element, name, (mine, value), policy)
                own[place][name] = "disable" if place == "flag" else value
            elif mine is None or not same(mine, value):
                what = f"{describe(element)}: <option> of the attached model does not count ({name} and more)"
                reading.note(element, what, once="attached option")
    if policy == "merge":
        option = etree.SubElement(root, "option", own["option"])
        etree.SubElement(option, "flag", own["flag"])


def settings_of(root: Element) -> Settings:
    """The attributes of every <option> and its <flag>; later elements override earlier ones."""
    settings: Settings = {"option": {}, "flag": {}}
    for option in children(root, "option"):
        settings["option"].update({str(name): str(value) for name, value in option.attrib.items()})
        for flag in children(option, "flag"):
            settings["flag"].update({str(name): str(value) for name, value in flag.attrib.items()})
    return settings


def same(a: str, b: str) -> bool:
    """True if two values are equal as words or as numbers."""
    try:
        return [parse_number(word) for word in a.split()] == [parse_number(word) for word in b.split()]
    except ValueError:
        return a.split() == b.split()


def chosen(reading: MjcfReading, element: Element, name: str, values: tuple[str, str], policy: str) -> str:
    """The stricter of two numbers; refused if neither is stricter, or if `policy` allows no choice."""
    if policy == "merge" and name in LEAST | MOST:
        try:
            return (min if name in LEAST else max)(values, key=parse_number)
        except ValueError as error:
            reading.refuse(element, f"{describe(element)}: option {name} {error}")
    mine, other = (value[:40] for value in values)
    return reading.refuse(
        element, f"{describe(element)}: option {name} is {mine!r} here and {other!r} in the attached model (conflict)"
    )
