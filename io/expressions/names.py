"""The names that expressions can use, and the columns of tables for which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from artsim.io.format.labels import FIXED_LABELS, Labels
from artsim.io.format.schema import RECORDED, TABLE
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import TABLES_OF

LINK_PARTS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    **{name: ("link_position", (k,)) for k, name in enumerate("xyz")},
    **{f"q{name}": ("link_quaternion", (k,)) for k, name in enumerate("wxyz")},
    **{name: ("link_velocity", (k,)) for k, name in enumerate(FIXED_LABELS["twist"])},
    "position": ("link_position", (0, 1, 2)),
    "quaternion": ("link_quaternion", (0, 1, 2, 3)),
    "velocity": ("link_velocity", (0, 1, 2)),
    "angular_velocity": ("link_velocity", (3, 4, 5)),
}
"""Attributes of a link: the variable and its entries."""
OF_LINKS = {"link_position": "position", "link_quaternion": "quaternion", "link_velocity": "velocity"}
"""The tables of variables that are computed from the state, whatever is recorded."""
_OF_STATE = {"qpos": ("coord",), "qvel": ("dof",), "activation": ("actuator_state",)}
_JOINT_PARTS = {"position": "qpos", "velocity": "qvel"}
_NOT_NAMED = {"time", "jacobian", *_OF_STATE, *OF_LINKS, *TABLES_OF}


class Named(NamedTuple):
    """A variable or a part of it: its table and columns there, an array of as many axes, and the labels of each."""

    title: str
    table: str  # one of sim/quantities/program.py: TABLES
    columns: Array
    labels: tuple[tuple[str, ...], ...]

    def at(self, index: object) -> Named:
        """The part at an index: per axis a label, a pattern of labels, a number or a slice. Raises UsageError."""
        steps = index if isinstance(index, tuple) else (index,)
        if len(steps) > self.columns.ndim:
            raise UsageError(f"{self.title!r} has {self.columns.ndim} axes, not {len(steps)}")
        columns, labels, axis = self.columns, list[tuple[str, ...]](), 0
        for names, step in zip(self.labels, steps, strict=False):
            found = self._places(names, step) if isinstance(step, str) else step
            if isinstance(found, int) and not -len(names) <= found < len(names):
                raise UsageError(f"{self.title!r} has {len(names)} entries, there is no number {found}")
            kept = np.arange(len(names))[found]
            columns = np.take(columns, kept, axis=axis)
            if np.ndim(kept):
                labels.append(tuple(names[k] for k in kept))
                axis += 1
        return Named(self.title, self.table, columns, (*labels, *self.labels[len(steps) :]))

    def part(self, path: str) -> Named:
        """The part that a dotted path names: labels of the axes, one after the other. Raises UsageError."""
        if not self.labels:
            raise UsageError(f"{self.title!r} has no part {path!r}")
        for name in sorted(self.labels[0], key=len, reverse=True):
            if path == name:
                return self.at(name)
            if path.startswith(f"{name}."):
                return self.at(name).part(path[len(name) + 1 :])
        raise UsageError(f"{self.title!r} has no {path!r}{nearest(path, self.labels[0])}")

    def _places(self, names: tuple[str, ...], asked: str) -> int | list[int]:
        if asked in names:
            return names.index(asked)
        matching = [k for k, name in enumerate(names) if fnmatchcase(name, asked)]
        if not matching:
            raise UsageError(f"{self.title!r} has no {asked!r}{nearest(asked, names)}")
        return matching


class Names:
    """The names of a robot's run. `used`: names of the variables that expressions have asked for; `links`: those of
    links."""

    def __init__(self, labels: Labels, actions: tuple[str, ...]) -> None:
        self._labels, self.used, self.links = labels, dict[str, None](), labels.link
        tables: dict[str, tuple[str, tuple[str, ...]]] = {name: (name, dims) for name, dims in _OF_STATE.items()}
        tables |= {name: (OF_LINKS[name], ("link", kind)) for name, kind in zip(OF_LINKS, _KINDS, strict=True)}
        self._variables = {name: _whole(name, table, self._axes(dims)) for name, (table, dims) in tables.items()}
        self._variables["action"] = _whole("action", "action", (actions,))
        self._variables["time"] = Named("time", "time", np.array(0), ())
        end = 0
        for name in RECORDED:
            if name not in _NOT_NAMED:
                made = _whole(name, "recorded", self._axes(TABLE[f"trajectory/{name}"].dims[1:]))
                self._variables[name] = made._replace(columns=made.columns + end)
                end += made.columns.size
        self.recorded_columns = end

    def _axes(self, dims: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(FIXED_LABELS.get(dim) or getattr(self._labels, dim.removesuffix("2")) for dim in dims)

    def recorded(self) -> dict[str, slice]:
        """The recorded variables that expressions use, and their columns in the table `recorded`."""
        found = {}
        for name in self.used:
            variable = self._variables[name]
            if variable.table == "recorded" and variable.columns.size:
                first = int(variable.columns.min())
                found[name] = slice(first, first + variable.columns.size)
        return found

    def variable(self, name: str) -> Named | None:
        """A variable by its name."""
        if name in self._variables:
            self.used[name] = None
        return self._variables.get(name)

    def find(self, path: str) -> Named | None:
        """The meaning of a dotted name, or None: a variable or a part of one, a coordinate, a velocity, a part of a
        link or a joint. Raises UsageError for one that has several meanings, and for parts that do not exist."""
        head, _, rest = path.partition(".")
        if head in self._variables:
            whole = self.variable(head)
            assert whole is not None
            return whole.part(rest) if rest else whole
        for variable, names in (("qpos", self._labels.coord), ("qvel", self._labels.dof)):
            if path in names:
                return self._entry(variable, path)
        owner, _, part = path.rpartition(".")
        joint = _JOINT_PARTS.get(part, "")
        of_joint = joint and owner in (self._labels.coord if joint == "qpos" else self._labels.dof)
        of_link = part in LINK_PARTS and owner in self._labels.link
        if of_joint and of_link:
            raise UsageError(
                f"{path!r} is of a link and of a joint: write link[{owner!r}].{part} or {joint}[{owner!r}]"
            )
        if of_joint:
            return self._entry(joint, owner)
        return self.of_link(owner, part) if of_link else None

    def of_link(self, link: str, part: str) -> Named:
        """A part of a link. Raises UsageError for an unknown link or part."""
        if link not in self._labels.link:
            raise UsageError(f"there is no link {link!r}{nearest(link, self._labels.link)}")
        if part not in LINK_PARTS:
            raise UsageError(f"a link has no {part!r}{nearest(part, LINK_PARTS)}")
        name, entries = LINK_PARTS[part]
        variable = self.variable(name)
        assert variable is not None
        found = variable.at(link)
        return found.at(entries[0]) if len(entries) == 1 else found.at(slice(entries[0], entries[-1] + 1))

    def _entry(self, variable: str, name: str) -> Named:
        whole = self.variable(variable)
        assert whole is not None
        return whole.at(name)

    def known(self, path: str) -> Iterator[str]:
        """Names that may have been meant by an unknown one."""
        head, _, part = path.rpartition(".")
        parts = (part,) if part in LINK_PARTS else tuple(LINK_PARTS)
        yield from (f"{link}.{part}" for link in self.links for part in (parts if head else ()))
        yield from self._labels.coord
        yield from (name for name in self._labels.dof if name not in self._labels.coord)
        yield from self._variables


_KINDS = ("xyz", "quat", "twist")


def _whole(name: str, table: str, labels: tuple[tuple[str, ...], ...]) -> Named:
    shape = tuple(map(len, labels))
    return Named(name, table, np.arange(int(np.prod(shape))).reshape(shape), labels)
