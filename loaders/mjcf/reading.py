"""State of the MJCF reader, and typed reading of attributes with their defaults merged in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar, cast

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Element, Reading, parse_number, tag
from artsim.sim.articulation.description import Source
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, nearest

MOST = 60_000  # elements that copies may add: nested replicates and models multiply
ELEMENT_BYTES = 200  # bytes of attributes that count as one more element
PLAIN = re.compile(r"(?:\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?(?:\s+|\Z))*+")
LONG_NAME = 256  # characters that copying may add to a name
LARGEST = 1e30  # nothing in SI units is larger, and no product that an inertia needs overflows below
Result = TypeVar("Result")
States = dict[str, dict[str, tuple[float, ...]]]  # by keyframe, then by attribute (qpos, qvel, ctrl)


class Classes(Protocol):
    """The default classes of a model (defaults.py)."""

    def item(self, element: Element, childclass: str | None = None) -> Item: ...

    def actuator_classes(self, element: Element) -> tuple[tuple[Element, ...], ...]: ...


class Origin(Protocol):
    """The attached model that an element came from: its settings and classes (scope.py)."""

    @property
    def defaults(self) -> Classes: ...

    def prefixed(self, prefix: str, kinds: Collection[str]) -> Origin: ...


@dataclass(slots=True)
class MjcfReading(Reading):
    """A model being read, which may consist of several files: `included` gives the file of an element."""

    included: dict[Element, str] = field(default_factory=dict)
    folders: Assets | None = None  # for includes, which are read even if meshes are not searched for
    scopes: dict[Element, Origin] = field(default_factory=dict)  # of elements from an attached model
    meshes: dict[Element, str] = field(default_factory=dict)  # a number for each mesh, which its copies share
    states: dict[Element, States] = field(default_factory=dict)  # of joints and actuators of attached models
    classless: dict[Element, bool] = field(default_factory=dict)  # sites, tendons and equalities made of flexcomps
    flexes: list[str] = field(default_factory=list)  # names of flexcomps made into bodies, sites and tendons
    outside: dict[Element, str] = field(default_factory=dict)  # meshes that may not be read, and the reasons
    copied: list[int] = field(default_factory=lambda: [0])  # elements that copies have added so far

    @classmethod
    def of(cls, plain: Reading, folders: Assets) -> MjcfReading:
        """The reading of a file as one of MJCF; `folders`: where includes may be."""
        return cls(
            plain.file,
            assets=plain.assets,
            strict=plain.strict,
            balance_inertia=plain.balance_inertia,
            max_faces=plain.max_faces,
            notes=plain.notes,
            folders=folders,
            ignore_unsupported=plain.ignore_unsupported,
            lines=plain.lines,
            macros=plain.macros,
        )

    def scope_of(self, element: Element) -> Origin | None:
        """The settings of the attached model that the element comes from; None for an element of the model itself."""
        node = element if self.scopes else None
        while node is not None and node not in self.scopes:
            node = node.getparent()
        return None if node is None else self.scopes[node]

    def claim(self, element: Element, count: int) -> None:
        """Refuse more copies than can be read within seconds, before they are made."""
        self.copied[0] += count
        if self.copied[0] > allowed(MOST):
            told = f"{describe(element)}: beyond the limit of {allowed(MOST):.0f} elements that copies may add; {MORE}"
            self.refuse(element, told)

    def copy(self, element: Element) -> Element:
        """A copy with the file and settings of the element."""
        made = deepcopy(element)
        if self.included or self.scopes or self.meshes or self.states or self.classless:
            tables: tuple[dict[Element, Any], ...] = (
                self.included,
                self.scopes,
                self.meshes,
                self.states,
                self.classless,
            )
            for old, new in zip(element.iter(), made.iter(), strict=True):
                for known in tables:
                    if old in known:
                        known[new] = known[old]
        return made

    def at(self, element: Element) -> Source:
        """File and line of the element; the file is that of the nearest included element above it."""
        file = self.file
        if self.included:
            node: Element | None = element
            while node is not None and node not in self.included:
                node = node.getparent()
            file = self.file if node is None else self.included[node]
        line = cast(int, element.sourceline or 0)
        return (self.lines.get(line) if file == self.file else None) or Source(file, line)

    def folder_of(self, element: Element) -> Path | None:
        """The folder of the included file that holds the element; None if the model's own file holds it."""
        file = self.at(element).file
        return None if file == self.file else Path(file).parent

    def later(self, element: Element, what: str) -> None:
        """Refuse an unsupported part, without which the robot would be another; on request it is left out."""
        if self.ignore_unsupported:
            self.note(element, f"{describe(element)}: {what} is not supported yet and is left out", left_out=True)
        else:
            self.refuse(
                element,
                f"{describe(element)}: {what} is not supported yet (--ignore-unsupported leaves it out)",
            )


def weight(*elements: Element) -> int:
    """The weight of elements in the limit on copies: the number of elements in them, more for long attributes."""
    return sum(
        1 + sum(len(value) for value in below.attrib.values()) // ELEMENT_BYTES
        for element in elements
        for below in element.iter()
    )


def dict_of(element: Element) -> dict[str, str]:
    """The element's own attributes."""
    return cast(dict[str, str], dict(element.attrib))


def describe(element: Element) -> str:
    """The element's name in messages: `geom 'palm'`, `<inertial> of body 'palm'`, `<option>`."""
    parts: list[str] = []
    node: Element | None = element
    while node is not None and node.getparent() is not None:
        name = node.get("name") or (node.get("class") if tag(node) == "default" else None)
        parts.append(f"<{tag(node)[:40]}>" if name is None else f"{tag(node)[:40]} {name!r}")
        if name is not None or len(parts) == 2:
            break
        node = node.getparent()
    return " of ".join(parts) or f"<{tag(element)[:40]}>"


PLENTY = 100_000  # characters: a list of numbers this long is not taken apart beyond the numbers that it may hold


def is_plain(text: str) -> bool:
    """True if `float` reads all numbers of a list as `parse_number` does; `float` is ten times as fast."""
    return PLAIN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Item:
    """An element with its attributes, those of its default classes included."""

    reading: MjcfReading
    element: Element
    attributes: Mapping[str, str]

    def refuse(self, message: str) -> NoReturn:
        """Raise one line that names the element."""
        self.reading.refuse(self.element, f"{describe(self.element)}: {message}")

    def has(self, name: str) -> bool:
        """True if the attribute is given, by the element or by a default class."""
        return name in self.attributes

    def text(self, name: str, default: str = "") -> str:
        """The text of the attribute."""
        return self.attributes.get(name, default)

    def number(self, name: str, default: float = 0.0, *, least: float | None = None) -> float:
        """A number, refused below `least`."""
        value = self.numbers(name, 1, 1, (default,))[0]
        if least is not None and value < least:
            self.refuse(f"{name} is {value:g}, want at least {least:g}")
        return value

    def whole(self, name: str, default: int = 0) -> int:
        """A whole number."""
        value = self.number(name, default)
        if value != int(value):
            self.refuse(f"{name} is {value:g}, want a whole number")
        if abs(value) >= 2**31 + (value < 0):
            self.refuse(f"{name} is {value:g}, want a whole number of 32 bits")
        return int(value)

    def numbers(self, name: str, least: int, most: int, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """`least` to `most` numbers; the attribute is required without a default."""
        if name not in self.attributes:
            if default is None:
                self.refuse(f"has no {name!r} attribute")
            return tuple(default)
        text = self.attributes[name]
        words = text.split(None, most if len(text) > PLENTY else -1)
        if len(words) > most and len(text) > PLENTY:
            self.refuse(f"{name} {text[:60]!r} holds more than {most} numbers")
        try:
            values = tuple(map(float, words)) if is_plain(text) else tuple(parse_number(word) for word in words)
        except ValueError as error:
            self.refuse(f"{name} {error}")
        if max(map(abs, values), default=0.0) > LARGEST:
            self.refuse(f"{name} {text[:60]!r} holds a number beyond {LARGEST:g}")
        if not least <= len(values) <= most:
            want = str(least) if least == most else f"{least} to {most}"
            self.refuse(f"{name} {text[:60]!r} holds {len(values)} number{'s' * (len(values) != 1)}, want {want}")
        return values

    def vector(self, name: str, default: tuple[float, float, float] | None = None) -> tuple[float, float, float]:
        """Three numbers."""
        x, y, z = self.numbers(name, 3, 3, default)
        return (x, y, z)

    def filled(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """At most as many numbers as the default has; missing ones are the default's."""
        given = self.numbers(name, 1, len(default), default)
        return given + default[len(given) :]

    def word(self, name: str, known: Sequence[str], default: str) -> str:
        """One of the known words."""
        text = self.attributes.get(name, default)
        if text not in known:
            self.refuse(f"{name} is {text[:40]!r}{nearest(text[:40], known)}")
        return text

    def flag(self, name: str, default: bool = False) -> bool:
        """true or false."""
        return self.word(name, ("true", "false"), "true" if default else "false") == "true"

    def tried(self, compute: Callable[[], Result]) -> Result:
        """The result of `compute`; its ValueErrors, which have no place, become refusals of this element."""
        try:
            return compute()
        except ArtsimError:
            raise
        except ValueError as error:
            self.refuse(str(error))
