"""Typed reading of XML elements: numbers, names, children, with errors and warnings that give file and line.

`Reading` is the state that a reader passes on: the file's name, the options, the notes so far. Names taken from a file
are always printed with repr, which escapes control characters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import NoReturn, cast

from lxml import etree

from artsim.loaders.assets import Assets
from artsim.sim.articulation.description import Note, Pose, Quaternion, Source, Vector3
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError

Element = etree._Element
LARGEST = 1e30  # nothing in SI units is larger, and no product that an inertia needs overflows below
UNBOUNDED = ("effort", "velocity", "value")  # float's largest means unlimited; of a mass (`value`) it is a warning
ROUNDED = 1e-3  # deviation of a direction's length from 1 that is accepted without a warning
NAMED = frozenset(
    ("link", "joint", "transmission", "material", "model", "world", "frame", "loop_joint")
)  # elements that messages identify by their name
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(slots=True)
class Reading:
    """One file being read: options, and the warnings collected on the way."""

    file: str
    assets: Assets | None = None  # None: meshes are not searched for
    strict: bool = False
    balance_inertia: bool = False
    ignore_unsupported: bool = False  # leave out unsupported parts where possible
    density: float | None = None  # [kg/m³] of links without mass
    max_faces: int | None = None  # of a mesh; None: the default cap
    notes: list[Note] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    missing: dict[str, list[tuple[Element, str, str]]] = field(default_factory=dict)  # meshes not found, by why
    lines: Mapping[int, Source] = field(default_factory=dict)  # sources of the lines of a text that xacro made
    macros: Mapping[Source, str] = field(default_factory=dict)  # the macro around a source, for messages

    def at(self, element: Element) -> Source:
        """File and line of the element."""
        line = cast(int, element.sourceline or 0)  # lxml-stubs gives it no type
        return self.lines.get(line) or Source(self.file, line)

    def note(
        self, element: Element | Source, message: str, *, guess: bool = False, once: str = "", left_out: bool = False
    ) -> None:
        """Warn. A `guess` decides physics that the file leaves open: --strict refuses it. One note per key `once`.
        `left_out`: of physics of the file that the robot lacks, which conversions tell.
        """
        if guess and self.strict:
            self.refuse(element, f"{message} (--strict)")
        if once and once in self.said:
            return
        self.said.add(once)
        source = element if isinstance(element, Source) else self.at(element)
        self.notes.append(Note(source, message + self.macros.get(source, ""), left_out))

    def note_missing_meshes(self) -> None:
        """Warn once of all meshes that are missing for one reason, since a robot has hundreds of meshes."""
        for why, meshes in self.missing.items():
            element, uri, alone = meshes[0]
            others = len(dict.fromkeys(uri for _, uri, _ in meshes)) - 1
            what = f"{uri!r} and {others} more not found: {why}" if others else f"{uri!r} not found: {alone}"
            self.note(element, f"{describe(element)}: {what}")
        self.missing.clear()

    def leave_out(self, element: Element | Source, message: str, what: str) -> None:
        """Refuse an element that cannot be used as written; on request its part `what` is left out, a guess."""
        if not self.ignore_unsupported:
            self.refuse(element, f"{message} (--ignore-unsupported leaves {what} out)")
        self.note(element, f"{message}: {what} is left out", guess=True, left_out=True)

    def refuse(self, element: Element | Source, message: str) -> NoReturn:
        """Raise ModelError with one line: file, line and message."""
        source = element if isinstance(element, Source) else self.at(element)
        raise ModelError(f"{source}: {message}{self.macros.get(source, '')}")


def tag(element: Element) -> str:
    """The tag as written: a default namespace is dropped, a prefix is kept (`drake:capsule`)."""
    name = str(element.tag)
    if not name.startswith("{"):
        return name
    local = name.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def children(element: Element, name: str) -> Iterator[Element]:
    """The element's children of that tag, in file order."""
    # libxml2 finds a name in any namespace faster than a comparison of `tag`; the prefix may belong to none
    local = "*" if ":" in name else "{*}" + name
    return (child for child in element.iterchildren(local) if tag(child) == name)


def child(reading: Reading, element: Element, name: str) -> Element | None:
    """The child of that tag, None without one; of several the first counts, with a warning."""
    found = [item for item in element if (kind := item.tag) == name or (kind[0] == "{" and tag(item) == name)]
    if len(found) > 1:
        reading.note(found[1], f"{describe(element)}: {len(found)} <{name}> elements; the first counts")
    return found[0] if found else None


def describe(element: Element) -> str:
    """The element's name in messages: `link 'arm'`, or `<origin> of joint 'elbow'` for an element without a name."""
    parts: list[str] = []
    node: Element | None = element
    while node is not None and node.getparent() is not None:
        name = node.get("name")
        if name is not None and tag(node) in NAMED:
            parts.append(f"{tag(node)} {name!r}")
            break
        if tag(node) != "geometry" or not parts:  # <geometry> adds nothing to the shape in it
            parts.append(f"<{tag(node)}>")
        node = node.getparent()
    return " of ".join(parts) or f"<{tag(element)}>"


def required(reading: Reading, element: Element, attribute: str) -> str:
    """The text of a required attribute."""
    value = element.get(attribute)
    if value is None:
        reading.refuse(element, f"{describe(element)} has no {attribute!r} attribute")
    return value


def named(reading: Reading, element: Element) -> str:
    """The element's name, which is required and not empty."""
    name = element.get("name")
    if name is None:
        reading.refuse(element, f"<{tag(element)}> has no name")
    if not name.strip():
        reading.refuse(element, f"<{tag(element)}> has an empty name")
    return name


def parse_number(text: str) -> float:
    """The finite number that is the whole text, independent of the locale. Raises ValueError with the reason."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
        raise ValueError(f"{text[:40]!r} is too large for a number")
    if "," in text and NUMBER.fullmatch(text.replace(",", ".", 1).rstrip(",.") or "x"):
        raise ValueError(f"{text[:40]!r} is not a number: use a dot for decimals and spaces between numbers")
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise ValueError(f"{text!r} is not a finite number")
    if "${" in text or "$(" in text:
        raise ValueError(f"{text[:40]!r} is a xacro expression; --xacro expands it, where you trust the file")
    raise ValueError(f"{text[:40]!r} is not a number")


def parse_numbers(text: str, count: int) -> tuple[float, ...]:
    """`count` numbers separated by white space. Raises ValueError with the reason."""
    if len(text) > 100_000 and len(text.split(None, count)) > count:
        raise ValueError(f"{text[:60]!r} holds more than {count} number{'s' * (count != 1)}")
    numbers = tuple(parse_number(word) for word in text.split())
    if len(numbers) != count:
        raise ValueError(f"{text[:60]!r} holds {len(numbers)} number{'s' * (len(numbers) != 1)}, want {count}")
    return numbers


def read_number(reading: Reading, element: Element, attribute: str, default: float | None = None) -> float:
    """The number in an attribute, which is required without a default."""
    text = element.get(attribute)
    if text is None and default is not None:
        return default
    if text is not None and NUMBER.fullmatch(text) and abs(value := float(text)) <= LARGEST:
        return value
    return convert(reading, element, attribute, required(reading, element, attribute), 1)[0]


def read_vector(reading: Reading, element: Element, attribute: str, default: Vector3 | None = None) -> Vector3:
    """The three numbers in an attribute, which is required without a default."""
    text = element.get(attribute)
    if text is None and default is not None:
        return default
    x, y, z = convert(reading, element, attribute, required(reading, element, attribute), 3)
    return (x, y, z)


def convert(reading: Reading, element: Element, attribute: str, text: str, count: int) -> tuple[float, ...]:
    """Text to `count` numbers, or a refusal that names element and attribute."""
    try:
        numbers = parse_numbers(text, count)
    except ValueError as error:
        reading.refuse(element, f"{describe(element)}: {attribute} {error}")
    if attribute not in UNBOUNDED and any(abs(number) > LARGEST for number in numbers):
        reading.refuse(element, f"{describe(element)}: {attribute} {text[:40]!r} is beyond {LARGEST:g}")
    return numbers


def content_number(reading: Reading, element: Element, default: float) -> float:
    """A number written as text (`<mu1>0.9</mu1>`) or as `value=`; `default` where it is empty."""
    text = element.get("value", element.text or "")
    return convert(reading, element, "content", text, 1)[0] if text.strip() else default


def content_flag(element: Element) -> bool:
    """A flag written as text or as `value=`: 1, true, yes, on."""
    return element.get("value", element.text or "").strip().lower() in ("1", "true", "yes", "on")


def read_pose(reading: Reading, element: Element | None) -> Pose:
    """The pose in <origin>: xyz [m] and rpy [rad] (or quat_xyzw, URDF 1.2); the identity without an <origin>."""
    if element is None:
        return Pose()
    position = read_vector(reading, element, "xyz", (0.0, 0.0, 0.0))
    if element.get("quat_xyzw") is not None:
        return Pose(position, read_quaternion(reading, element))
    return Pose(position, quaternion_from_rpy(*read_vector(reading, element, "rpy", (0.0, 0.0, 0.0))))


def read_quaternion(reading: Reading, element: Element) -> Quaternion:
    """The rotation in quat_xyzw, normalised; refused beside rpy."""
    if element.get("rpy") is not None:
        reading.refuse(element, f"{describe(element)} has both rpy and quat_xyzw")
    x, y, z, w = convert(reading, element, "quat_xyzw", element.get("quat_xyzw", ""), 4)
    norm = math.hypot(x, y, z, w)
    if not 1e-9 < norm < 1e9:
        reading.refuse(element, f"{describe(element)}: quat_xyzw has length {norm:g}")
    return (w / norm, x / norm, y / norm, z / norm)


def direction(reading: Reading, element: Element, vector: Vector3) -> Vector3:
    """The unit vector along `vector`, which the element holds; a zero vector is refused."""
    x, y, z = normalised(reading, element, vector, describe(element), "a direction")
    return (x, y, z)


def normalised(
    reading: Reading, element: Element, values: tuple[float, ...], name: str, wanted: str
) -> tuple[float, ...]:
    """`values` of the element divided by their length. A length of zero is refused; one that differs from 1 is a
    warning. `name` and `wanted`, for messages: the values' name and the form that they should have.
    """
    length = math.hypot(*values)
    if length < 1e-12:
        reading.refuse(element, f"{name} is zero, want {wanted}")
    if abs(length - 1.0) > ROUNDED:
        reading.note(element, f"{name} has length {length:.6g}: normalised")
    return tuple(value / length for value in values)


def check_sizes(reading: Reading, element: Element, sizes: tuple[float, ...]) -> None:
    """Refuse negative sizes."""
    worst = min(sizes)
    if worst < 0:
        reading.refuse(element, f"{describe(element)}: size {worst:g} m, want more than 0")
