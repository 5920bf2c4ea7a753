"""Elements of XML with numbers as short as they can be without a change, and the indentation of the file."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from artsim.loaders.elements import Element
from artsim.sim.articulation.description import Pose, Quaternion

Value = float | bool | str | Sequence[float] | None
IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)


def number(value: float) -> str:
    """The shortest text that reads as this number: 1 for 1.0, 0 for -0.0."""
    text = repr(float(value))
    if text.endswith(".0"):
        text = text[:-2]
    return "0" if text == "-0" else text.replace("e-0", "e-").replace("e+", "e")


def numbers(values: Sequence[float]) -> str:
    """Numbers separated by spaces."""
    return " ".join(map(number, values))


def text_of(value: Value) -> str:
    """A value as the text of an attribute."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    assert value is not None
    return numbers(value)


def add(parent: Element, tag: str, **attributes: Value) -> Element:
    """Append an element; attributes that are None are left out."""
    return etree.SubElement(
        parent, tag, {name.rstrip("_"): text_of(value) for name, value in attributes.items() if value is not None}
    )


def say(element: Element, name: str, value: Value, default: Value = None) -> None:
    """Set an attribute unless the value is None or the default of the format."""
    if value is not None and value != default:
        element.set(name, text_of(value))


def say_pose(element: Element, pose: Pose) -> None:
    """MJCF's pos and quat, unless they are those of the identity."""
    say(element, "pos", pose.position, (0.0, 0.0, 0.0))
    say(element, "quat", pose.rotation, IDENTITY)


def trimmed(values: Sequence[float], least: int = 1) -> tuple[float, ...]:
    """The values without zeros at the end; `least` of them stay."""
    end = len(values)
    while end > least and values[end - 1] == 0.0:
        end -= 1
    return tuple(values[:end])


def document(root: Element) -> str:
    """The text of a file."""
    etree.indent(root, "  ")
    return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"
