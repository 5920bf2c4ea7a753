"""<default>: nested classes of attribute values; each inherits the values that it does not set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from itertools import chain

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.orientation import ALTERNATIVES
from artsim.loaders.mjcf.reading import Item, MjcfReading, describe, dict_of
from artsim.sim.foundation.errors import nearest

MAIN = "main"
ACTUATORS = frozenset(
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor".split()
)
EQUALITIES = frozenset(("connect", "weld", "flex", "flexstrain"))
TENDONS = frozenset(("spatial", "fixed"))
PARTIAL = frozenset(
    "size friction solref solimp solreffriction solimpfriction solreflimit solimplimit surfacevel gear user "
    "damping stiffness".split()
)  # of a shorter list, the later numbers are those of the class
Class = dict[str, dict[str, str]]  # by section (joint, geom, …), then by attribute


class Defaults:
    """The classes of a model, by name."""

    def __init__(self, reading: MjcfReading, root: Element) -> None:
        """Read every <default> of the root; each is the class `main`, from which the nested ones inherit."""
        self.reading = reading
        self.classes: dict[str, Class] = {MAIN: {}}
        self.actuators: dict[str, tuple[tuple[Element, ...], ...]] = {MAIN: ()}
        stack: list[tuple[Element, str, str]] = []
        for element in children(root, "default"):
            name = element.get("class", MAIN)
            if name != MAIN:
                reading.refuse(element, f"the top-level default class is {MAIN!r} and cannot be called {name!r}")
            stack.append((element, MAIN, MAIN))
            while stack:
                stack.extend(reversed(self.read_class(*stack.pop())))

    def read_class(self, element: Element, name: str, parent: str) -> list[tuple[Element, str, str]]:
        """One class from its element; returns the classes nested in it."""
        if name != MAIN and name in self.classes:
            self.reading.refuse(element, f"default class {name!r} is already defined")
        self.classes[name] = {section: dict(values) for section, values in self.classes[parent].items()}
        kinds = tuple(item for item in element if tag(item) in ACTUATORS)
        if name == MAIN:
            self.actuators[MAIN] = ((*chain(*self.actuators[MAIN]), *kinds),)
        else:
            self.actuators[name] = (*self.actuators[parent], kinds)
        inner: list[tuple[Element, str, str]] = []
        kinds_seen: set[str] = set()
        for item in element:
            if tag(item) != "default":
                if tag(item) in kinds_seen:
                    self.reading.refuse(item, f"{describe(item)} is the second of its kind in its class")
                kinds_seen.add(tag(item))
                section = section_of(item)
                own = self.classes[name]
                own[section] = overlay(own.get(section, {}), item)
                if tag(item) in ACTUATORS and tag(item) != "general":  # discards actdim of an earlier actuator
                    own[section].pop("actdim", None)
                continue
            new = item.get("class", "")
            if not new:
                self.reading.refuse(item, "<default> in a <default> has no class")
            inner.append((item, new, name))
        return inner

    def item(self, element: Element, childclass: str | None = None) -> Item:
        """The element with the defaults of its class, else of its body's childclass, in the model of its origin."""
        if element in self.reading.classless:
            return Item(self.reading, element, dict_of(element))
        scope = self.reading.scope_of(element)
        if scope is not None and scope.defaults is not self:
            return scope.defaults.item(element, childclass)
        name = element.get("class") or childclass or MAIN
        if name not in self.classes:
            known = nearest(name, sorted(self.classes))
            self.reading.refuse(element, f"{describe(element)}: default class {name[:80]!r} does not exist{known}")
        return Item(self.reading, element, overlay(self.classes[name].get(section_of(element), {}), element))

    def prefixed(self, prefix: str, kinds: Collection[str]) -> Defaults:
        """The classes with the prefix before the names of assets in them."""
        made = copy(self)
        made.classes = {
            name: {
                section: {key: prefix + value if key in kinds else value for key, value in values.items()}
                for section, values in sections.items()
            }
            for name, sections in self.classes.items()
        }
        return made

    def actuator_classes(self, element: Element) -> tuple[tuple[Element, ...], ...]:
        """The actuator elements in the classes of an actuator, outermost class first (actuator_kinds.py)."""
        scope = self.reading.scope_of(element)
        if scope is not None and scope.defaults is not self:
            return scope.defaults.actuator_classes(element)
        return self.actuators.get(element.get("class") or MAIN, ())


def section_of(element: Element) -> str:
    """The section with the defaults of an element: all actuators share one, and so do equalities and tendons."""
    name = tag(element)
    parent = element.getparent()
    if parent is not None and tag(parent) == "equality":
        return "equality"
    for kinds, section in ((ACTUATORS, "general"), (EQUALITIES, "equality"), (TENDONS, "tendon")):
        if name in kinds:
            return section
    return name


def overlay(inherited: Mapping[str, str], element: Element) -> dict[str, str]:
    """Inherited attributes, overridden by the element's own; one form of rotation, quat included, replaces another."""
    own = dict_of(element)
    if any(name in own for name in ("quat", *ALTERNATIVES)):
        inherited = {key: value for key, value in inherited.items() if key not in ALTERNATIVES}
    for name in PARTIAL & own.keys() & inherited.keys():
        words, rest = own[name].split(), inherited[name].split()
        own[name] = " ".join(words + rest[len(words) :])
    return {**inherited, **own}
