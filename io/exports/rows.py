"""Gives runs as rows of named numbers, block by block, from which tables and messages are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import entry_names
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.records import Array

_BLOCK_BYTES = 1 << 23


class Column(NamedTuple):
    """A column of a table: `qpos.joint_1` [rad]."""

    name: str
    unit: str


def names_of_entries(recording: Recording, name: str) -> list[str]:
    """The labels of a variable's stored entries, joined by dots for several dimensions."""
    return entry_names(recording.names_of(dim) for dim in schema.TABLE[f"trajectory/{name}"].dims[1:])


def columns_of(recording: Recording) -> list[Column]:
    """time, then every entry of every variable; `contact_count` where contacts are recorded."""
    columns = [Column("time", "s")]
    for name in recording.variables:
        unit = recording.meaning(name)["units"]
        columns += [Column(f"{name}.{entry}" if entry else name, unit) for entry in names_of_entries(recording, name)]
    return [*columns, Column("contact_count", "1")] if recording.has_contacts else columns


def contact_columns(recording: Recording) -> list[Column]:
    """Columns of the contacts: `time`, `step`, the names of links and geoms, then every entry, `point.x` and so on."""
    columns = [Column("time", "s")]
    for name in schema.CONTACT_TABLE:
        variable = schema.TABLE[f"contact/{name}"]
        entries = [f".{entry}" for dim in variable.dims[1:] for entry in recording.names_of(dim)]
        columns += [Column(f"{name}{entry}", variable.unit) for entry in entries or [""]]
    return columns


def contact_rows(recording: Recording, start: int, stop: int) -> list[Array]:
    """The contacts of rows start … stop, an array for each of `contact_columns`."""
    found = recording.read_contacts(start, stop)
    columns: list[Array] = [found["step"] * recording.dt]
    for name in schema.CONTACT_TABLE:
        what, side, _ = name.partition("_")
        if side:
            names = recording.labels.geom if what == "geom" else recording.labels.touching_link
            columns.append(np.array(names, dtype=object)[found[name]])
        else:
            columns += [found[name]] if found[name].ndim == 1 else list(found[name].T)
    return columns


def blocks_of(recording: Recording, variables: Sequence[str] | None = None) -> Iterator[tuple[int, int]]:
    """First and last row (exclusive) of blocks that are much smaller than the memory."""
    names = recording.variables if variables is None else variables
    width = 8 + sum(8 * len(names_of_entries(recording, name)) for name in names)
    step = max(1, _BLOCK_BYTES // width)
    for start in range(0, recording.n_valid, step):
        yield start, min(start + step, recording.n_valid)


def table_rows(recording: Recording, start: int, stop: int) -> Array:
    """Rows start … stop of the table of `columns_of` as float64 (rows, columns)."""
    parts = [recording.read("time", start, stop)]
    parts += [recording.read_stored(name, start, stop) for name in recording.variables]
    if recording.has_contacts:
        parts.append(recording.read_contacts(start, stop)["contact_count"])
    return np.concatenate([part.reshape(stop - start, -1) for part in parts], axis=1, dtype=np.float64)
