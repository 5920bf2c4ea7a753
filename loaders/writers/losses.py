"""Losses of a written file, told by kind and name, and found by structure where a writer does not know a field."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from artsim.sim.articulation.description import Articulation

Outcome = Literal["lost", "changed", "added"]
ITEMS = {
    "links": "link",
    "joints": "joint",
    "couplings": "coupling",
    "loops": "loop",
    "tendons": "tendon",
    "tendon_couplings": "tendon coupling",
    "wrap_geoms": "wrap geom",
    "actuators": "actuator",
    "sites": "site",
    "contact_pairs": "contact pair",
    "no_contact": "excluded pair",
    "sensors": "sensor",
    "keyframes": "keyframe",
}
"""The kinds of items, by the field of Articulation that holds them."""
OF_READING = frozenset(
    "source notes ignored text path format conventions base max_faces parts name".split()
    + "mesh_uri mesh_absent pieces sights hidden".split()
)
"""Fields that no file says, but the reading of one."""
WHOLE = "*"  # the field of a loss of everything about an item
Said = Mapping[str, frozenset[str]]  # by class, the fields that a writer says, or tells of itself


class Loss(NamedTuple):
    """A part of a robot that the written file lacks or says in another way.

    `field` is that of the description, "*" for the whole item; `physical`: it affects motion, forces or contacts.
    """

    outcome: Outcome
    kind: str
    name: str
    field: str
    told: str
    physical: bool = True

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}: {self.told}" if self.name else f"{self.kind}: {self.told}"


class Losses:
    """The losses of one writing, in the order in which they were found."""

    def __init__(self) -> None:
        self.entries: list[Loss] = []
        self.known: dict[tuple[str, str, str], Loss] = {}
        self.names: dict[tuple[str, str], str] = {}  # the robot's names of renamed items, by kind and written name

    def add(self, outcome: Outcome, kind: str, name: str, field: str, told: str, *, physical: bool = True) -> None:
        """Tell of a loss once per item and field."""
        key = (kind, name, field)
        if key not in self.known:
            self.known[key] = loss = Loss(outcome, kind, name, field, told, physical and outcome != "added")
            self.entries.append(loss)

    def lost(self, kind: str, name: str, field: str, told: str, *, physical: bool = True) -> None:
        """Tell of a field that is not said."""
        self.add("lost", kind, name, field, told, physical=physical)

    def changed(self, kind: str, name: str, field: str, told: str, *, physical: bool = True) -> None:
        """Tell of a field that is said with another value."""
        self.add("changed", kind, name, field, told, physical=physical)

    def rename(self, kind: str, name: str, written: str, why: str) -> None:
        """Tell of another name."""
        self.names[kind, written] = name
        self.changed(kind, name, "name", f"is called {written!r}, {why}", physical=False)

    def prefix(self, prefix: str, names: Iterable[str], why: str) -> None:
        """Tell that the names of all links and joints have a prefix."""
        for kind in ("link", "joint", "loop"):
            self.names |= {(kind, prefix + name): self.names.get((kind, name), name) for name in names}
            self.changed(kind, "", "name", f"all names begin with {prefix!r}, {why}", physical=False)

    def own_name(self, kind: str, name: str) -> str:
        """The robot's name of what is called `name` in the written file."""
        if kind == "geom":
            link, _, geom = name.partition("/")
            return f"{self.own_name('link', link)}/{geom}"
        if kind in ("excluded pair", "contact"):
            return " - ".join(sorted(self.own_name("link", link) for link in name.split(" - ")))
        return self.names.get((kind, name), name)

    def then(self, later: Losses) -> None:
        """Add the losses of another writing of what was read from the file."""
        renamed = {(kind, new): self.own_name(kind, name) for (kind, new), name in later.names.items()}
        for loss in later.entries:
            self.add(*loss[:2], self.own_name(loss.kind, loss.name), *loss[3:5], physical=loss.physical)
        self.names = {**self.names, **renamed}

    def covers(self, kind: str, name: str, field: str) -> bool:
        """True if a difference of this field was told."""
        return self.of(kind, name, field) is not None

    def of(self, kind: str, name: str, field: str) -> Loss | None:
        """The loss that tells of a field, of one that holds it, or of the whole item; None without one."""
        parts = field.split(".")
        fields = [".".join(parts[:n]) for n in range(len(parts), 0, -1)] + [WHOLE]
        keys = ((kind, of, what) for of in dict.fromkeys((name, "")) for what in fields)
        return next((self.known[key] for key in keys if key in self.known), None)

    @property
    def physical(self) -> list[Loss]:
        """The losses that affect motion, forces or contacts; what was only added is none."""
        return [loss for loss in self.entries if loss.physical]


def items_of(articulation: Articulation) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and description of every item of a robot, geoms of links included."""
    for field, kind in ITEMS.items():
        for item in getattr(articulation, field):
            yield kind, name_of(item), item
            if kind == "link":
                for count, geom in enumerate(item.geoms):
                    yield "geom", geom_name(item.name, geom, count), geom


def geom_name(link: str, geom: Any, count: int) -> str:
    """The name by which losses tell of a geom."""
    return f"{link}/{geom.name or f'[{count}]'}"


def name_of(item: Any) -> str:
    """The name by which losses tell of an item: its own, or those of what it joins."""
    if isinstance(item, tuple) and not hasattr(item, "_fields"):
        return " - ".join(sorted(item))
    own = getattr(item, "name", "")
    if own:
        return str(own)
    if hasattr(item, "geom_a"):
        return f"{item.geom_a} - {item.geom_b}"
    return f"{item.follower} <- {item.leader}" if hasattr(item, "follower") else ""


def tell_unsaid(articulation: Articulation, said: Said, losses: Losses) -> None:
    """Tell of every field that has not its default and that the writer neither says nor tells of.

    A class that `said` lacks is not said at all: each of its items is told as left out.
    """
    for kind, name, item in items_of(articulation):
        if not dataclasses.is_dataclass(item):
            if "no_contact" not in said["Articulation"]:
                losses.lost(kind, name, WHOLE, "is not said")
        elif type(item).__name__ not in said:
            losses.lost(kind, name, WHOLE, "is not said")
        elif (kind, name, WHOLE) not in losses.known:
            for path, value in unsaid_fields(item, said):
                losses.lost(kind, name, path, f"{path} {shown(value)} is not said", physical=is_physical(path))
    for path, value in unsaid_fields(articulation.options, said):
        losses.lost("option", "", path, f"{path} {shown(value)} is not said")
    for note in articulation.notes:
        if note.left_out:
            losses.lost("reading", "", note.message, f"{note.message} (line {note.source.line} of the source)")
    for ignored in articulation.ignored:
        losses.lost("reading", "", ignored.what, f"{ignored.what} is not kept: {ignored.why}", physical=False)


def unsaid_fields(item: Any, said: Said, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of the fields of a dataclass that are not at their default and not said."""
    own = said.get(type(item).__name__, frozenset())
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if field.name in OF_READING or value == default_of(field):
            continue
        if field.name not in own:
            yield prefix + field.name, value
        elif dataclasses.is_dataclass(value) and type(value).__name__ in said:
            yield from unsaid_fields(value, said, f"{prefix}{field.name}.")


def default_of(field: dataclasses.Field[Any]) -> Any:
    """The default of a dataclass's field; None without one."""
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()


def is_physical(path: str) -> bool:
    """False for fields that are only seen."""
    return path.partition(".")[0] not in ("material", "group", "hidden")


def shown(value: Any) -> str:
    """A value for a message."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple) and all(isinstance(x, float) for x in value):
        return " ".join(f"{x:.6g}" for x in value[:8]) + (" …" if len(value) > 8 else "")
    if dataclasses.is_dataclass(value):
        parts = (
            f"{field.name} {shown(getattr(value, field.name))}"
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != default_of(field) and field.name != "source"
        )
        return ", ".join(parts)
    return str(value)[:80]
