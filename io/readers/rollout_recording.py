"""RolloutRecording reads files of `artsim rollout`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.format import schema
from artsim.io.format.variable import Variable
from artsim.io.gate.values import ROWS_BYTES, read_texts, read_whole, reading, refuse_unpacking, row_bytes
from artsim.io.readers.contact_table import check_contacts, check_table_shape
from artsim.io.readers.output import read_labels
from artsim.io.readers.sampled_output import SampledOutput
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import VALUES, Controls

if TYPE_CHECKING:
    import h5py

_BLOCK_SAMPLES = 1 << 20


class RolloutRecording(SampledOutput):
    """Many runs of one robot: `rollout["qpos"]` is (samples, rows, nq), NaN from row `n_valid` of a sample on.

    `rollout["time"]` is (rows,) [s].
    """

    group_name = "rollout"
    unlisted = ("time",)

    def __init__(self, path: Path, file: h5py.File) -> None:
        """Use open_output: `file` must have passed the gate."""
        super().__init__(path, file, ("rollout", "controls", "model", "provenance"))
        group = file["rollout"]
        self.labels = read_labels(path, group)
        if "actuator" in file["controls"]:
            self.labels = self.labels.with_controls(read_texts(path, file["controls/actuator"]))
        self.variables = tuple(name for name in schema.ROLLED if name in group)
        self.samples = int(group["status"].shape[0])
        self.rows = int(group["time"].shape[0])
        for name in self.variables:
            self._check_shape(name, group[name])
        self.has_contacts = "contact" in file
        self._contact_ends: Array | None = None
        if self.has_contacts:
            self._check_contacts()

    def __len__(self) -> int:
        return self.samples

    def _extent(self) -> str:
        return f"{self.samples} samples of {self.rows} rows"

    def variable(self, name: str) -> Variable:
        """The schema's entry of a variable, with dense Jacobians."""
        return schema.dense_variable(name, "rollout")

    def stored_variable(self, name: str) -> Variable:
        """The schema's entry of a variable as stored."""
        return schema.TABLE[f"rollout/{name}"]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read samples start … stop of a variable, Jacobians dense. Raises UsageError for one that the file lacks."""
        return self.dense(name, self.read_stored(name, start, stop))

    @property
    def contacts(self) -> dict[str, Array]:
        """All contacts; see read_contacts."""
        return self.read_contacts()

    @property
    def contact_total(self) -> int:
        """Number of recorded contacts."""
        return int(self._ends_of_contacts()[-1]) if self.has_contacts else 0

    def read_contacts(self, start: int = 0, stop: int | None = None) -> dict[str, Array]:
        """Read the contacts of samples start … stop, sample after sample and row after row; empty if none were
        recorded.

        `contact_count` is (samples, rows), -1 from row n_valid of a sample on; `sample` is that of each contact,
        counted from the first of the job; the other columns are as in Recording.contacts. Raises ModelError for invalid
        counts or indices.
        """
        if not self.has_contacts:
            return {}
        start, stop, _ = slice(start, stop).indices(self.samples)
        ends, stop = self._ends_of_contacts(), max(start, stop)
        found = {"contact_count": self.read_stored("contact_count", start, stop)}
        with reading(self.path):
            rows = slice(int(ends[start]), int(ends[stop]))
            for name in schema.SAMPLE_CONTACT_TABLE:
                dataset = self._file["contact"][name]
                if not dataset.is_virtual:  # those of shards have been checked
                    refuse_unpacking(self.path, dataset, (rows.stop - rows.start) * row_bytes(dataset), ROWS_BYTES)
                found[name] = dataset[rows]
        check_contacts(self.path, self.labels, found)
        return found

    def _check_contacts(self) -> None:
        """Refuse contacts of wrong types or shapes, or without their counts."""
        with reading(self.path):
            group = self._file["contact"]
            self.labels = self.labels._replace(geom=read_texts(self.path, group["geom"]))
            for name in schema.SAMPLE_CONTACT_TABLE:
                variable = schema.TABLE[f"contact/{name}"]
                row = tuple(len(self.names_of(dim)) for dim in variable.dims[1:])
                check_table_shape(self.path, group[name], variable, row)
        if "contact_count" not in self.variables:
            raise ModelError(f"{self.path}: has contacts, but not how many of each row")

    def _ends_of_contacts(self) -> Array:
        """The ends of the samples' contacts in the table, beginning with 0 (samples + 1,)."""
        if self._contact_ends is None:
            with reading(self.path):
                there = {len(self._file["contact"][name]) for name in schema.SAMPLE_CONTACT_TABLE}
            size, most = max(1, _BLOCK_SAMPLES // max(1, self.rows)), max(there)
            of_samples = [np.zeros(0, np.int64)]
            for start in range(0, self.samples, size):
                count = np.maximum(self.read_stored("contact_count", start, start + size), 0)
                of_samples.append(np.minimum(count, most + 1).sum(axis=1))  # whose sum does not overflow
            ends = np.concatenate([[0], np.cumsum(np.concatenate(of_samples))])
            if there != {int(ends[-1])}:
                raise ModelError(f"{self.path}: /rollout/contact_count does not fit the contacts in the file")
            self._contact_ends = ends
        return self._contact_ends

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs by name: (rows, n) of one for all samples, or (samples, rows, n)."""
        with reading(self.path):
            group = self._file["controls"]
            return {name: group[name].shape for name in VALUES if name in group}

    def inputs(self, names: Iterable[str] = VALUES) -> dict[str, Array]:
        """Read inputs as they acted, as input_shapes has them, and their rows' first steps, start_step (rows,)."""
        with reading(self.path):
            group = self._file["controls"]
            start = read_whole(self.path, group["start_step"])
            found = {
                name: self._input(name, read_whole(self.path, group[name]), len(start))
                for name in names
                if name in group
            }
        return {"start_step": start, **found}

    @property
    def controls(self) -> list[Controls]:
        """Read the inputs as they acted, bit for bit: one for all samples, or one per sample. Raises ModelError."""
        found = self.inputs()
        start = found.pop("start_step")
        each = any(values.ndim == 3 for values in found.values())
        return [
            Controls(start, **{name: values[k] if values.ndim == 3 else values for name, values in found.items()})
            for k in range(self.samples if each else 1)
        ]

    def _input(self, name: str, values: Array, rows: int) -> Array:
        wide = name == "control" or values.shape[-1] == len(self.labels.dof)
        if values.ndim not in (2, 3) or values.shape[-2] != rows or (values.ndim == 3 and len(values) != self.samples):
            wide = False
        if not wide:
            raise ModelError(f"{self.path}: /controls/{name} has shape {values.shape}, for {rows} rows")
        return values

    @property
    def stopped(self) -> int:
        """Number of samples that stopped early."""
        return self._count(schema.NON_FINITE) + self._count(schema.INTERRUPTED)

    @property
    def ended(self) -> int:
        """Number of samples that ended where they were to."""
        return self._count(schema.ENDED)

    @property
    def missing(self) -> int:
        """Number of samples that were not simulated, since the rollout was interrupted."""
        return self._count(schema.RUNNING)

    @property
    def interrupted(self) -> bool:
        """True if samples are missing."""
        return self.missing > 0

    def _count(self, status: int) -> int:
        """Number of samples of this status."""
        starts = range(0, self.samples, _BLOCK_SAMPLES)
        return sum(int(np.count_nonzero(self.read("status", k, k + _BLOCK_SAMPLES) == status)) for k in starts)

    def summary(self) -> dict[str, Any]:
        """The content that `artsim info FILE` prints, as plain data."""
        return {
            "file": str(self.path),
            "bytes": self._bytes,
            **self.attrs,
            "model": self.model,
            "warnings": self.warnings,
            "samples": self.samples,
            "rows": self.rows,
            "first_row": self.first_row,
            "rows_of_job": self.rows_of_job,
            "shards": [shard.name for shard in self.shards],
            "stopped": self.stopped,
            "ended": self.ended,
            "missing": self.missing,
            **self.names_told(),
            "variables": self._variables_told() | self._contacts_told(),
            "provenance": self.provenance,
        }

    def _contacts_told(self) -> dict[str, Any]:
        """The part of `summary` about contacts."""
        told, rows = dict[str, Any](), self.contact_total
        for name in schema.SAMPLE_CONTACT_TABLE if self.has_contacts else ():
            variable = schema.TABLE[f"contact/{name}"]
            meaning = {"units": variable.unit, "long_name": variable.meaning, "comment": variable.comment}
            shape = [rows, *(3 for _ in variable.dims[1:])]
            told[f"contact/{name}"] = {"dims": list(variable.dims), "shape": shape, **meaning}
        return told

    def _check_shape(self, name: str, dataset: h5py.Dataset) -> None:
        """Refuse a variable whose type and shape do not fit the labels."""
        variable = self.stored_variable(name)
        sizes = {"sample": self.samples, "time": self.rows}
        want = tuple(sizes[dim] if dim in sizes else len(self.names_of(dim)) for dim in variable.dims)
        if dataset.shape != want or dataset.dtype != variable.dtype:
            raise ModelError(
                f"{self.path}: /rollout/{name} is {dataset.dtype} {dataset.shape}, want {variable.dtype} {want}"
            )
