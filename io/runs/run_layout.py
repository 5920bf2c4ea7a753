"""RunLayout: the datasets of a run file with their shapes and chunks, and the rows that fit them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import EQUIPMENT, NUMBERED, Labels, labels_of
from artsim.io.format.variable import Variable
from artsim.io.output_file.layout import Section
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array

CHUNK_BYTES = 1 << 21  # a block has some 13 datasets: with 1 << 20, recording Jacobians takes twice as long
CHANGE_BYTES = 4096  # in a chunk
MARGIN_BYTES = 128 << 10  # metadata that HDF5 writes beside a block and on closing
_FINAL_CONTACTS = 64  # in a chunk of /final and /checkpoint
_CHECKPOINTS = 16  # in a chunk
_BLOCKS = 16  # smallest number of blocks that fit into the free space
_CHECKPOINT_STEPS = 10_000


class RunLayout:
    """The datasets of a run file. `labels` … `changing`: as for Recorder.

    `control_rows`: the number of inputs known in advance; `free`: bytes that the disk has room for.
    """

    def __init__(
        self,
        path: Path,
        labels: Labels,
        variables: Sequence[str],
        state: Mapping[str, Array],
        *,
        dt: float,
        every: int,
        steps_total: int | None,
        checkpoint: int | None,
        compress: str | None,
        changing: bool,
        control_rows: int,
        free: int,
    ) -> None:
        self.path, self.labels, self.dt, self.every, self.compress = path, labels, dt, every, compress
        self.steps_total, self.state, self.changing = steps_total, state, changing
        self.rows_total = None if steps_total is None else -(-steps_total // every)
        self.variables = tuple(name for name in _known(variables) if _has_entries(name, labels))
        self.tables = _tables(variables)  # groups of schema.RAGGED
        self.shapes = _row_shapes(self.variables, labels)
        self.chunk = 0  # rows in a chunk of the file that is continued
        self.checkpoint_steps = self._steps_between(checkpoint)
        self._block_bytes = free // _BLOCKS  # for which a small disk has room before it is full
        nv, actuators = len(labels.dof), len(labels.controls)
        self.control_names: tuple[str, ...] = schema.CONTROL_VALUES if actuators else schema.CONTROL_VALUES[:-1]
        self.control_row_bytes = 16 + 32 * nv + 8 * actuators
        self.control_chunk = max(1, min(CHUNK_BYTES // (8 * max(1, nv, actuators)), control_rows or self.block_rows))

    # sizes

    @property
    def block_rows(self) -> int:
        """Rows per chunk: blocks of this size are written fastest, each chunk once. At most 2 MiB per variable."""
        if self.chunk:
            return self.chunk
        widest = max([8, *(8 * math.prod(shape) for shape in self.shapes.values())])
        rows = max(1, min(CHUNK_BYTES // widest, self._block_bytes // self.row_bytes))
        return rows if self.rows_total is None else max(1, min(rows, self.rows_total))

    @property
    def bytes_needed(self) -> int | None:
        """Uncompressed size of the whole run [bytes]; None if its length is not known."""
        if self.rows_total is None:
            return None
        return self.rows_total * self.row_bytes + MARGIN_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of all variables, with the count and time of each table."""
        return _row_bytes(self.shapes, self.tables)

    def table_chunk(self, group: str) -> int:
        """Rows per chunk of a table of contacts or constraints; a few for each step of a short run."""
        most = max(1, min(CHUNK_BYTES // 24, self._block_bytes // schema.RAGGED[group].bytes))
        return most if self.rows_total is None else min(most, 4 * self.rows_total)

    def _steps_between(self, wanted: int | None) -> int:
        """Steps between checkpoints: few enough to lose only seconds of work, while states take 1 % of the file."""
        if wanted is None:
            size = sum(values.nbytes for values in self.state.values())
            return max(_CHECKPOINT_STEPS, -(-100 * size // self.row_bytes) * self.every)
        return wanted

    @property
    def checkpoints_total(self) -> int:
        """The number of checkpoints of the run; the state at its end is /final instead."""
        if not self.checkpoint_steps:
            return 0
        return sys.maxsize if self.steps_total is None else (self.steps_total - 1) // self.checkpoint_steps

    # laying out

    def lay_out_rows(self, root: Any, datasets: dict[str, Any]) -> None:
        """Create /trajectory and the tables in an open file; `datasets` collects them by path."""
        self._lay_out_trajectory(Section(root, "trajectory", self.labels, datasets))
        labels = self.labels._replace(link=self.labels.touching_link)
        for group in self.tables:
            self._lay_out_table(Section(root, group, labels, datasets), group)

    def _lay_out_trajectory(self, section: Section) -> None:
        facts: dict[str, str | int | float] = {"dt": float(self.dt), "every": int(self.every)}
        facts["checkpoint_steps"] = int(self.checkpoint_steps)
        if self.steps_total is not None:
            facts["steps_total"] = int(self.steps_total)
        section.set_attributes(facts)
        section.growing("time", (), self.block_rows, self.compress)
        dims = [dim for name in self.variables for dim in schema.TABLE[f"trajectory/{name}"].dims[1:]]
        # also when nothing recorded needs them
        more = [dim for dim in EQUIPMENT if getattr(self.labels, dim)]
        section.scales([*dims, "coord", "dof", "independent_dof", "link", *more])
        for name in self.variables:
            section.growing(name, self.shapes[name], self.block_rows, self.compress)
        section.fixed("n_valid", np.int64(0))
        section.fixed("status", np.int8(schema.RUNNING))

    def _lay_out_table(self, section: Section, group: str) -> None:
        ragged, chunk = schema.RAGGED[group], self.table_chunk(group)
        section.growing("time", (), self.block_rows, self.compress)
        section.numbers("row", chunk, self.compress)
        section.scales(ragged.labels)
        section.growing(ragged.counted_by, (), self.block_rows, self.compress)
        for name in ragged.table:
            shape = _row_shape(schema.TABLE[f"{group}/{name}"], self.labels)
            section.growing(name, shape, chunk, self.compress)
        section.fixed("n_valid", np.int64(0))

    def lay_out_controls(self, root: Any, datasets: dict[str, Any]) -> None:
        """Create /controls, without rows."""
        labels, rows = self.labels.of_controls, self.control_chunk
        section = Section(root, "controls", labels, datasets)
        section.growing("time", (), rows, self.compress)
        section.scales(["dof"] + ["actuator"] * bool(self.labels.controls))
        section.growing("start_step", (), rows, self.compress)
        for name in self.control_names:
            section.growing(name, _row_shape(schema.TABLE[f"controls/{name}"], labels), rows, self.compress)
        if self.changing:
            section.growing("changes", (), CHANGE_BYTES, None)
        section.fixed("n_valid", np.int64(0))

    def lay_out_final(self, root: Any, datasets: dict[str, Any]) -> None:
        """Create /final, without values."""
        section = Section(root, "final", self.labels, datasets)
        self._lay_out_dimensions(section, "final")
        for name, values in self.state.items():
            if name == "contact":
                section.growing(name, values.shape[1:], _FINAL_CONTACTS, None)
            else:
                unknown = 0 if schema.TABLE[f"final/{name}"].dtype == "i8" else np.nan
                section.fixed(name, np.full(values.shape, unknown, schema.TABLE[f"final/{name}"].dtype))

    def lay_out_checkpoints(self, root: Any, datasets: dict[str, Any]) -> None:
        """Create /checkpoint, without rows, if the run makes checkpoints."""
        if not self.checkpoints_total:
            return
        section = Section(root, "checkpoint", self.labels, datasets)
        rows = min(_CHECKPOINTS, self.checkpoints_total)
        section.numbers("checkpoint", rows, None)
        self._lay_out_dimensions(section, "checkpoint")
        for name, values in self.state.items():
            if name == "contact":
                section.growing(name, values.shape[1:], _FINAL_CONTACTS, self.compress)
                section.growing("contact_count", (), rows, None)
            else:
                section.growing(name, values.shape, rows, self.compress)
        section.fixed("n_valid", np.int64(0))

    def _lay_out_dimensions(self, section: Section, group: str) -> None:
        """The dimensions of a state."""
        sizes: dict[str, int] = {}
        for name, values in self.state.items():
            dims = [dim for dim in schema.TABLE[f"{group}/{name}"].dims if dim != "checkpoint"]
            sizes |= dict(zip(dims, values.shape, strict=True))
        section.scales(dim for dim in sizes if dim not in NUMBERED)
        for dim, size in sizes.items():
            if dim == "contact_row":
                section.numbers(dim, _FINAL_CONTACTS, None)
            elif dim in NUMBERED:
                attributes = {"units": "1", "long_name": f"{NUMBERED[dim]} number"}
                section.group.fixed(dim, np.arange(size), [dim], attributes)

    # rows that fit

    def checked(
        self, block: Mapping[str, Array], tables: Mapping[str, Mapping[str, Array]]
    ) -> tuple[int, dict[str, Array]]:
        """The number of rows of a block, and its arrays in the file's types and order."""
        if set(block) != set(self.variables):
            odd = sorted(set(block) ^ set(self.variables))
            raise UsageError(f"{self.path}: a block must hold exactly the recorded variables; differing: {odd}")
        if set(tables) != set(self.tables):
            odd = sorted(set(tables) ^ set(self.tables))
            raise UsageError(f"{self.path}: a block must hold exactly the recorded tables; differing: {odd}")
        counts = [tables[group][schema.RAGGED[group].counted_by] for group in tables]
        rows = len(next(iter((*block.values(), *counts)), ()))
        values = {}
        for name in self.variables:
            dtype = schema.TABLE[f"trajectory/{name}"].dtype
            values[name] = np.ascontiguousarray(block[name], dtype=dtype)
            want = (rows, *self.shapes[name])
            if values[name].shape != want:
                raise UsageError(f"{self.path}: {name} has shape {values[name].shape}, want {want}")
        return rows, values

    def checked_table(self, group: str, table: Mapping[str, Array], rows: int) -> dict[str, Array]:
        """A table of a block in the file's types."""
        ragged = schema.RAGGED[group]
        wanted = (ragged.counted_by, *ragged.table)
        if set(table) != set(wanted):
            odd = sorted(set(table) ^ set(wanted))
            raise UsageError(f"{self.path}: /{group} of a block must hold exactly its table; differing: {odd}")
        values: dict[str, Array] = {}
        for name in wanted:
            variable = schema.TABLE[f"{group}/{name}"]
            values[name] = np.ascontiguousarray(table[name], dtype=variable.dtype)
            count = rows if name == ragged.counted_by else int(values[ragged.counted_by].sum())
            want = (count, *_row_shape(variable, self.labels))
            if values[name].shape != want:
                raise UsageError(f"{self.path}: /{group}/{name} has shape {values[name].shape}, want {want}")
        return values


def bytes_of_rows(variables: Sequence[str], labels: Labels, rows: int) -> int:
    """Uncompressed size of this many rows of a run [bytes], without the entries of tables."""
    known = tuple(name for name in _known(variables) if _has_entries(name, labels))
    return rows * _row_bytes(_row_shapes(known, labels), _tables(variables))


def _row_bytes(shapes: Mapping[str, tuple[int, ...]], tables: Sequence[str]) -> int:
    return 8 + 16 * len(tables) + sum(8 * math.prod(shape) for shape in shapes.values())


def _row_shapes(variables: Sequence[str], labels: Labels) -> dict[str, tuple[int, ...]]:
    return {name: _row_shape(schema.TABLE[f"trajectory/{name}"], labels) for name in variables}


def _tables(variables: Sequence[str]) -> tuple[str, ...]:
    """The groups of schema.RAGGED that hold these variables."""
    groups = (schema.RAGGED_BY_NAME.get(name, ()) for name in variables)
    return tuple(dict.fromkeys(group for found in groups for group in found))


def _known(variables: Sequence[str]) -> tuple[str, ...]:
    """The variables in the table's order. Raises UsageError for an unknown one."""
    for name in variables:
        known = (*schema.RECORDED, *schema.RAGGED_BY_NAME)
        if name not in known:
            raise UsageError(f"cannot record {name!r}{nearest(name, known)}")
    return tuple(name for name in schema.RECORDED if name in variables)


def is_row(path: str) -> bool:
    """True for a dataset that grows with the run and can be computed again."""
    group, _, name = path.partition("/")
    dims = schema.TABLE[path].dims if path in schema.TABLE else (name,)
    return group in ("trajectory", *schema.RAGGED) and dims[:1] in (("time",), ("row",))


def _has_entries(name: str, labels: Labels) -> bool:
    """True if a variable has entries; False for actuators or tendons of a robot without any."""
    dims = schema.TABLE[f"trajectory/{name}"].dims
    return all(labels_of(dim, labels) for dim in dims if dim in EQUIPMENT)


def _row_shape(variable: Variable, labels: Labels) -> tuple[int, ...]:
    return tuple(len(labels_of(dim, labels)) for dim in variable.dims[1:])
