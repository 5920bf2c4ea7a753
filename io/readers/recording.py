"""Recording, a run file read by the names of its variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import FIXED_LABELS, NUMBERED, labels_of
from artsim.io.gate.values import (
    CACHED_BYTES,
    ROWS_BYTES,
    attributes_of,
    read_count,
    read_texts,
    read_whole,
    reading,
    refuse_unpacking,
    row_bytes,
)
from artsim.io.readers.contact_table import check_contacts, check_table_shape
from artsim.io.readers.delassus import Delassus, delassus_of
from artsim.io.readers.labelled_rows import LabelledRows
from artsim.io.readers.output import Output, opened, read_labels
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.errors import ModelError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.changes import Change
from artsim.sim.runs.controls import VALUES, Controls

if TYPE_CHECKING:
    import h5py

_MOST_PACKED = 64  # times its stored bytes that a run of more than ROWS_BYTES may unpack to


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a run file: complete, being written, or left by a killed writer.

    Raises the errors of `open_checked`; also ModelError, with the kind of file, for HDF5 that is not an artsim run.
    """
    return opened(Path(path), Recording)


class Recording(Output, LabelledRows):
    """A run, addressed by name: `recording["qpos"]` is (n_valid, nq). Close it, or use it as a context manager.

    Only the `n_valid` rows that were written in full are ever returned.
    """

    def __init__(self, path: Path, file: h5py.File, written: bool) -> None:
        """Use open_recording: `file` must have passed the gate; `written`: a living process is writing it."""
        super().__init__(path, file, "run", ("trajectory", "controls", "final", "model", "provenance"))
        self._written = written
        group = file["trajectory"]
        self.status = read_count(path, group["status"])
        self.n_valid = read_count(path, group["n_valid"])
        facts = attributes_of(group)
        self.dt, self.every = float(facts["dt"]), int(facts["every"])
        if not (0 < self.dt < np.inf and self.every >= 1):
            raise ModelError(f"{path}: dt is {self.dt:g} and every {self.every}, want numbers above 0")
        self.steps_total: int | None = facts.get("steps_total")
        self.labels = read_labels(path, group)
        if "actuator" in file["controls"]:
            self.labels = self.labels.with_controls(read_texts(path, file["controls/actuator"]))
        self.tables = tuple(name for name in schema.RAGGED if name in file)
        self.has_contacts = "contact" in file
        if self.has_contacts:
            self.labels = self.labels._replace(geom=read_texts(path, file["contact/geom"]))
        if ("constraint" in file) != ("delassus" in file):
            raise ModelError(f"{path}: has only one of the groups /constraint and /delassus")
        if "constraint" in file:
            self.labels = self.labels._replace(constraint=read_texts(path, file["constraint/constraint"]))
        self.variables = tuple(name for name in schema.RECORDED if name in group)
        self._ends: dict[str, Array] = {}  # by table
        self._check_shapes()

    # the rows

    def _extent(self) -> str:
        return f"{self.n_valid} rows"

    def __getitem__(self, name: str) -> Array:
        """Every valid row of a recorded variable, or `time` (n_valid,) [s]."""
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        return name == "time" or name in self.variables

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read the valid rows in start … stop of a variable. Raises UsageError for a variable that was not recorded."""
        return self.dense(name, self.read_stored(name, start, stop))

    def read_stored(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read rows as stored: for Jacobians only the columns that labels.jacobian_link and jacobian_dof name."""
        if name not in self:
            raise UsageError(f"{self.path}: has no {name!r}{nearest(name, self.variables)}")
        stop = self.n_valid if stop is None else min(stop, self.n_valid)
        with reading(self.path):
            dataset = self._file["trajectory"][name]
            refuse_unpacking(self.path, dataset, (stop - start) * row_bytes(dataset), ROWS_BYTES)
            values: Array = dataset[start : max(start, stop)]
        return values

    def check_size(self) -> None:
        """Raise ModelError if the rows of all variables unpack to far more than is stored.

        Commands that read all rows write as many, and a small file can hold rows without end.
        """
        with reading(self.path):
            rows = [self._file["trajectory"][name] for name in ("time", *self.variables)]
            tables = [self._file[group][name] for group in self.tables for name in schema.RAGGED[group].table]
            size = sum(self.n_valid * row_bytes(dataset) for dataset in rows) + sum(int(t.nbytes) for t in tables)
            stored = sum(int(dataset.id.get_storage_size()) for dataset in (*rows, *tables))
        if size > allowed(ROWS_BYTES) and size > _MOST_PACKED * stored:
            raise ModelError(
                f"{self.path}: refused: its rows unpack from {stored / 1e6:.3g} MB to {size / 1e9:.3g} GB; {MORE}"
            )

    def check_packing(self, name: str, rows: int | None = None) -> None:
        """Raise ModelError if reading a variable, or `rows` single rows of it, unpacks far more than is stored."""
        with reading(self.path):
            dataset = self._file["trajectory"][name]
            size = self.n_valid * row_bytes(dataset)
            if rows is not None and dataset.chunks:
                chunk = dataset.chunks[0] * row_bytes(dataset)
                size = rows * chunk if chunk > CACHED_BYTES else min(size, rows * chunk)
            refuse_unpacking(self.path, dataset, size, ROWS_BYTES)

    @property
    def contacts(self) -> dict[str, Array]:
        """The content of /contact: contact_count (n_valid,), and for all contacts in order the fields of
        schema.CONTACT_TABLE (`step`, `link_a`, `point`, …). labels.touching_link and labels.geom name the indices.
        """
        return self.read_contacts()

    def read_contacts(self, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """Read the contacts of the valid rows in start … stop; empty if none were recorded.

        Raises ModelError for invalid counts or indices.
        """
        found = self.read_table("contact", start, stop) if self.has_contacts else {}
        check_contacts(self.path, self.labels, found)
        return found

    def has_tables(self, name: str) -> bool:
        """True if the groups of schema.RAGGED_BY_NAME[name] are in the file."""
        return set(schema.RAGGED_BY_NAME[name]) <= set(self.tables)

    def read_table(self, group: str, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """Read the count of a group of schema.RAGGED for the valid rows in start … stop, and its table of these rows.

        Raises UsageError for a group that was not recorded, ModelError for counts that do not fit.
        """
        if group not in self.tables:
            raise UsageError(f"{self.path}: holds no {group}{nearest(group, self.tables)}")
        stop = self.n_valid if stop is None else min(stop, self.n_valid)
        ragged, ends = schema.RAGGED[group], self._ends_of(group)
        rows = slice(int(ends[start]), int(ends[max(start, stop)]))
        with reading(self.path):
            found = {ragged.counted_by: np.diff(ends[start : max(start, stop) + 1])}
            found |= {name: self._file[group][name][rows] for name in ragged.table}
        return found

    def delassus(self, row: int) -> Delassus:
        """The constraint rows of a recorded row, and their K, dense.

        Raises UsageError where K was not recorded, ModelError for numbers that fit no rows.
        """
        if not 0 <= row < self.n_valid:
            raise UsageError(f"{self.path}: has no row {row}; there are {self.n_valid}, from 0")
        constraints, entries = (self.read_table(group, row, row + 1) for group in ("constraint", "delassus"))
        return delassus_of(self.labels, constraints, entries, str(self.path))

    def _ends_of(self, name: str) -> Array:
        """The ends of the rows' entries in a table, beginning with 0 (n_valid + 1,)."""
        if name not in self._ends:
            ragged = schema.RAGGED[name]
            with reading(self.path):
                group = self._file[name]
                for dataset in (group[ragged.counted_by], *(group[entry] for entry in ragged.table)):
                    refuse_unpacking(self.path, dataset, int(dataset.nbytes), ROWS_BYTES)
                counts: Array = group[ragged.counted_by][: self.n_valid]
                ends = np.concatenate([[0], np.cumsum(counts)])
                there = min(len(group[entry]) for entry in ragged.table)
            if len(counts) < self.n_valid or (len(counts) and int(counts.min()) < 0) or not 0 <= ends[-1] <= there:
                what = "contacts" if name == "contact" else "rows"
                what = f"{there} {what} in the file"
                raise ModelError(f"{self.path}: /{name}/{ragged.counted_by} does not fit the {what}")
            self._ends[name] = ends
        return self._ends[name]

    # the rest of the file

    def group(self, name: str) -> h5py.Group | None:
        """A group of the file, or None."""
        import h5py

        found = self._file.get(name)
        return found if isinstance(found, h5py.Group) else None

    @property
    def checkpoint_steps(self) -> int:
        """Number of steps between checkpoints; 0 without checkpoints."""
        with reading(self.path):
            return max(0, int(attributes_of(self._file["trajectory"]).get("checkpoint_steps", 0)))

    @property
    def controls(self) -> Controls:
        """The inputs as they acted, bit for bit."""
        with reading(self.path):
            return controls_from_file(self._file)

    @property
    def changes(self) -> list[Change]:
        """Changes of state and settings between steps, in their order. Raises ModelError for text that is none."""
        group = self._file["controls"]
        if "changes" not in group:
            return []
        with reading(self.path):
            text = read_whole(self.path, group["changes"]).tobytes().decode("utf-8", "replace")
        return [Change.from_json(line) for line in text.splitlines()]

    @property
    def final(self) -> dict[str, Array]:
        """The full state after the last step (schema: final/…); NaN if the run did not end properly."""
        with reading(self.path):
            group = self._file["final"]
            state = {name: self._of_state(group[name], name) for name in schema.STATE if name in group}
        if not {"time", "step"} <= set(state):
            raise ModelError(f"{self.path}: /final has no time or no step")
        read_count(self.path, self._file["final/step"])
        return state

    @property
    def state(self) -> str:
        """complete, stopped, interrupted, running (its writer was alive when the file was opened) or killed."""
        if self.status == schema.RUNNING:
            return "running" if self._written else "killed"
        words = {schema.COMPLETE: "complete", schema.NON_FINITE: "stopped", schema.INTERRUPTED: "interrupted"}
        return words.get(self.status, f"unknown ({self.status})")

    def summary(self) -> dict[str, Any]:
        """The content that `artsim info FILE` prints, as plain data."""
        group = self._file["trajectory"]
        variables = {
            name: {
                "dims": list(schema.TABLE[f"trajectory/{name}"].dims),
                "shape": [self.n_valid, *group[name].shape[1:]],
                **self.meaning(name),
            }
            for name in self.variables
        }
        for group in self.tables:
            variables |= self._table_told(group)
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            **self.attrs,
            "state": self.state,
            "model": self.model,
            "warnings": self.warnings,
            "rows": self.n_valid,
            "steps_total": self.steps_total,
            "dt": self.dt,
            "every": self.every,
            "duration": self.n_valid * self.every * self.dt,
            **self.names_told(),
            "variables": variables,
            "provenance": self.provenance,
        }

    # inside

    def _of_state(self, dataset: Any, name: str) -> Array:
        """Read a field of /final; the schema gives its type and, for labelled dimensions, the labels give its shape."""
        variable = schema.TABLE[f"final/{name}"]
        fixed = {*NUMBERED, *FIXED_LABELS}
        known = [None if dim in fixed else len(labels_of(dim, self.labels)) for dim in variable.dims]
        right = dataset.ndim == len(known) and dataset.dtype == np.dtype(variable.dtype)
        if not right or any(n is not None and n != m for n, m in zip(known, dataset.shape, strict=True)):
            raise ModelError(f"{self.path}: {dataset.name} is {dataset.dtype} {dataset.shape}, which fits no state")
        return read_whole(self.path, dataset)

    def _table_told(self, group: str) -> dict[str, Any]:
        """The part of `summary` about a group of schema.RAGGED."""
        ragged = schema.RAGGED[group]
        rows = int(self._ends_of(group)[-1])
        told = {}
        for name in (ragged.counted_by, *ragged.table):
            variable = schema.TABLE[f"{group}/{name}"]
            shape = [rows if dim == "row" else self.n_valid if dim == "time" else 3 for dim in variable.dims]
            meaning = {"units": variable.unit, "long_name": variable.meaning, "comment": variable.comment}
            told[f"{group}/{name}"] = {"dims": list(variable.dims), "shape": shape, **meaning}
        return told

    def _check_shapes(self) -> None:
        """Refuse known variables whose type, shape or number of rows do not fit the labels and n_valid."""
        self._check_table_shapes()
        group = self._file["trajectory"]
        for name in ("time", *self.variables):
            variable = schema.TABLE[f"trajectory/{name}"]
            want = tuple(len(self.names_of(dim)) for dim in variable.dims[1:])
            dataset = group[name]
            if dataset.ndim >= 1 and dataset.shape[0] < self.n_valid:
                dataset.refresh()  # a writer may have grown it since the file was opened
            wrong_rows = dataset.ndim == 0 or not 0 <= self.n_valid <= dataset.shape[0]
            if wrong_rows or dataset.shape[1:] != want or dataset.dtype != np.dtype(variable.dtype):
                shape = (self.n_valid, *want)
                raise ModelError(
                    f"{self.path}: /trajectory/{name} is {dataset.dtype} {dataset.shape}, want {variable.dtype} {shape}"
                )

    def _check_table_shapes(self) -> None:
        """Refuse tables of schema.RAGGED of wrong types or shapes."""
        for group in self.tables:
            for name in (schema.RAGGED[group].counted_by, *schema.RAGGED[group].table):
                variable = schema.TABLE[f"{group}/{name}"]
                want = tuple(len(self.names_of(dim)) for dim in variable.dims[1:])
                dataset = self._file[group][name]
                if self._written:
                    dataset.refresh()  # it may have grown since the file was opened
                check_table_shape(self.path, dataset, variable, want)


def controls_from_file(file: h5py.File) -> Controls:
    """Read the inputs in /controls of a run file, bit for bit; `file` must have passed the gate."""
    group, path = file["controls"], Path(str(file.filename))
    rows = read_count(path, group["n_valid"])
    values = {name: read_whole(path, group[name])[:rows] for name in ("start_step", *VALUES) if name in group}
    return Controls(**values)
