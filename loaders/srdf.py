"""SRDF: the pairs of a robot's links that need no collision check, as MoveIt's setup assistant writes them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from artsim.loaders.elements import Element, Reading, describe, required, tag
from artsim.loaders.xml import parse
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

# planning groups, tools and other elements without a meaning for a simulation
SILENT = frozenset(
    (
        *("group", "end_effector", "virtual_joint", "passive_joint", "joint_property", "planning_frame"),
        *("link_sphere_approximation", "chained_end_effector", "group_state"),
    )
)
Pair = tuple[str, str]


@dataclass(slots=True)
class Disabled:
    """Pairs of links by the kind of element that holds them; a later element overrides an earlier one of its kind."""

    links: tuple[str, ...]
    pairs: dict[Pair, None]
    enabled: dict[Pair, None]
    defaults: dict[str, None]

    def result(self) -> tuple[Pair, ...]:
        """The pairs without contact: the pairs of disabled links unless enabled, and the disabled pairs."""
        found = {
            pair: None
            for pair in combinations(self.links, 2)
            if (pair[0] in self.defaults or pair[1] in self.defaults) and ordered(*pair) not in self.enabled
        }
        return tuple({ordered(*pair): None for pair in (*found, *self.pairs)})


def with_srdf(articulation: Articulation, text: bytes | str, *, file: str, max_mb: float = 64.0) -> Articulation:
    """The robot without the contacts that an SRDF disables; all other links of a URDF may touch each other.

    Raises ModelError: no SRDF, or a link that the robot does not have.
    """
    document = parse(text, file=file, max_mb=max_mb)
    reading = Reading(file, notes=list(document.notes))
    if tag(document.root) != "robot":
        reading.refuse(document.root, f"root is <{tag(document.root)[:40]}>, want <robot>")
    name = document.root.get("name", articulation.name)
    if name != articulation.name:
        reading.note(document.root, f"is about robot {name[:80]!r}, the model is {articulation.name[:80]!r}")
    disabled = Disabled(tuple(link.name for link in articulation.links), {}, {}, {})
    for element in document.root:
        read_element(reading, element, disabled)
    return replace(
        articulation,
        no_contact=(*articulation.no_contact, *disabled.result()),
        self_collide=True,
        notes=(*articulation.notes, *reading.notes),
    )


def read_element(reading: Reading, element: Element, disabled: Disabled) -> None:
    """One element of the SRDF."""
    name = tag(element)
    if name in ("disable_collisions", "enable_collisions"):
        first, second = (link_named(reading, element, key, disabled) for key in ("link1", "link2"))
        chosen = disabled.pairs if name == "disable_collisions" else disabled.enabled
        chosen[ordered(first, second)] = None
    elif name == "disable_default_collisions":
        disabled.defaults[link_named(reading, element, "link", disabled)] = None
    elif name == "group_state":
        reading.note(element, "group states are not read: give a start by --q0", once=name)
    elif name not in SILENT:
        reading.note(element, f"<{name[:40]}> is ignored: not known", once=name)


def link_named(reading: Reading, element: Element, attribute: str, disabled: Disabled) -> str:
    """A link of the robot."""
    name = required(reading, element, attribute)
    if name not in disabled.links:
        close = nearest(name[:80], disabled.links)
        reading.refuse(element, f"{describe(element)}: link {name[:80]!r} does not exist{close}")
    return name


def ordered(first: str, second: str) -> Pair:
    """The pair in a fixed order, independent of the order in the file."""
    return (first, second) if first < second else (second, first)
