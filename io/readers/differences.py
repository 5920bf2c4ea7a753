"""The first difference between two runs, and between a file and results computed again."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, NUMBERED, Labels, labels_of
from artsim.io.gate.values import read_count
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.readers.sampled_output import SampledOutput
from artsim.sim.foundation.records import Array

_BLOCK_BYTES = 1 << 22


class Difference(NamedTuple):
    """The first place where two recordings differ: dataset path, step (None without time), name of the entry."""

    dataset: str
    step: int | None
    name: str


def first_difference(a: Recording, b: Recording, tolerance: float = 0.0) -> Difference | None:
    """The first difference between two runs, byte by byte (a NaN equals the same NaN), or None.

    Compared are time step and row interval, labels, recorded variables, their rows in step order, the inputs, and the
    states at the end and at checkpoints, in blocks of 4 MB. `tolerance`: accepted difference of rows, relative to the
    variable's largest value in the block; contacts and states are then not compared.
    """
    for name in ("dt", "every"):
        if getattr(a, name) != getattr(b, name):
            return Difference(name, None, f"{getattr(a, name)}, {getattr(b, name)}")
    if a.labels != b.labels:
        return Difference("labels", None, _differing_label(a.labels, b.labels))
    if a.tables != b.tables:
        return Difference("variables", None, ", ".join(sorted(set(a.tables) ^ set(b.tables))))
    if a.variables != b.variables:
        return Difference("variables", None, ", ".join(sorted(set(a.variables) ^ set(b.variables))))
    found = _first_row(a, b, tolerance)
    if found is not None:
        return found
    if a.n_valid != b.n_valid:
        return Difference("n_valid", min(a.n_valid, b.n_valid) * a.every, f"{a.n_valid} rows, {b.n_valid} rows")
    if a.changes != b.changes:
        return Difference("controls/changes", None, "")
    return _in_controls(a, b) or (None if tolerance else _in_final(a, b) or _in_checkpoints(a, b))


def _differing_label(a: Labels, b: Labels) -> str:
    return next(name for name in Labels._fields if getattr(a, name) != getattr(b, name))


def _first_row(a: Recording, b: Recording, tolerance: float) -> Difference | None:
    rows = min(a.n_valid, b.n_valid)
    for start in range(0, rows, (step := _rows_per_block(a))):
        stop = min(start + step, rows)
        found = [_in_block(a, b, name, start, stop, tolerance) for name in ("time", *a.variables)]
        if not tolerance:
            for group in a.tables:
                found += [_in_table(a, b, group, start, stop), _in_table_times(a, b, group, start, stop)]
        differences = [difference for difference in found if difference is not None]
        if differences:
            return min(differences, key=lambda difference: difference.step or 0)
    return None


def _rows_per_block(a: Recording) -> int:
    widths = [8 * int(np.prod([len(a.names_of(dim)) for dim in _row_dims(name)])) for name in a.variables]
    return max(1, _BLOCK_BYTES // max([8, *widths]))


def _row_dims(name: str) -> tuple[str, ...]:
    return schema.TABLE[f"trajectory/{name}"].dims[1:]


def _in_block(a: Recording, b: Recording, name: str, start: int, stop: int, tolerance: float) -> Difference | None:
    left, right = a.read_stored(name, start, stop), b.read_stored(name, start, stop)
    where = first_beyond(name, left, right, tolerance) if tolerance else first_byte(left, right)
    if where is None:
        return None
    labels = [a.names_of(dim)[index] for dim, index in zip(_row_dims(name), where[1:], strict=True)]
    return Difference(name, (start + where[0]) * a.every, ", ".join(labels))


def first_beyond(name: str, left: Array, right: Array, tolerance: float) -> tuple[int, ...] | None:
    """Index of the first entry that differs by more than the tolerance; statistics of the solver may differ."""
    if name in ("solver_iterations", "solver_residual"):
        return None
    largest = float(np.max(np.abs(left), initial=0.0, where=np.isfinite(left)))
    wrong = ~np.isclose(right, left, rtol=0.0, atol=tolerance * largest, equal_nan=True)
    return tuple(int(index) for index in np.argwhere(wrong)[0]) if wrong.any() else None


def _in_table(a: Recording, b: Recording, group: str, start: int, stop: int) -> Difference | None:
    """The first difference between the tables of rows start … stop."""
    if group == "contact":
        left, right = a.read_contacts(start, stop), b.read_contacts(start, stop)
    else:
        left, right = a.read_table(group, start, stop), b.read_table(group, start, stop)
    found: list[Difference] = []
    for name in left:
        if left[name].shape != right[name].shape:
            continue  # then their counts differ
        where = first_byte(left[name], right[name])
        if where is None:
            continue
        if name == schema.RAGGED[group].counted_by:
            return Difference(
                f"{group}/{name}", (start + where[0]) * a.every, f"{left[name][where]}, {right[name][where]}"
            )
        entry = ", ".join(a.labels.geom[left[side][where[0]]] for side in ("geom_a", "geom_b") if side in left)
        found.append(Difference(f"{group}/{name}", int(left["step"][where[0]]), entry))
    return min(found, key=lambda difference: difference.step or 0, default=None)


def _in_table_times(a: Recording, b: Recording, group: str, start: int, stop: int) -> Difference | None:
    """The first difference between the row times stored with a table."""
    times = [run.group(group) for run in (a, b)]
    if times[0] is None or times[1] is None:
        return None
    where = first_byte(*(found["time"][start:stop] for found in times if found is not None))
    return None if where is None else Difference(f"{group}/time", (start + where[0]) * a.every, "")


def first_byte(left: Array, right: Array) -> tuple[int, ...] | None:
    """Index of the first entry whose bytes differ; the shapes are equal."""
    if left.tobytes() == right.tobytes():
        return None
    if left.shape != right.shape or left.dtype != right.dtype:
        return (0,) * left.ndim
    bits = f"u{left.itemsize}"
    flat = int(np.flatnonzero(left.reshape(-1).view(bits) != right.reshape(-1).view(bits))[0])
    return tuple(int(index) for index in np.unravel_index(flat, left.shape))


def _in_controls(a: Recording, b: Recording) -> Difference | None:
    controls_a, controls_b = a.controls, b.controls
    for name in ("start_step", *schema.CONTROL_VALUES):
        left, right = getattr(controls_a, name), getattr(controls_b, name)
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            return Difference(f"controls/{name}", None, "")
    return None


def _in_final(a: Recording, b: Recording) -> Difference | None:
    """The first difference between two final states."""
    left, right = a.final, b.final
    for name in schema.STATE:
        if (name in left) != (name in right):
            return Difference(f"final/{name}", None, "")
        if name in left and left[name].tobytes() != right[name].tobytes():
            return Difference(f"final/{name}", None, _entry_of_state(a, name, left[name], right[name]))
    return None


def _in_checkpoints(a: Recording, b: Recording) -> Difference | None:
    """The first difference between the checkpoints that both have."""
    groups = a.group("checkpoint"), b.group("checkpoint")
    if groups[0] is None or groups[1] is None:
        return None
    count = min(read_count(a.path, group["n_valid"]) for group in groups if group is not None)
    for name in ("contact_count", *schema.STATE):
        if any(name not in group for group in groups if group is not None):
            continue
        stop = count if name != "contact" else int(groups[0]["contact_count"][:count].sum())
        left, right = (group[name][:stop] for group in groups if group is not None)
        if left.tobytes() != right.tobytes():
            where = first_byte(left, right) if left.shape == right.shape else None
            known = where is not None and name not in ("contact", "contact_count")
            step = int(groups[0]["step"][where[0]]) if known and where else None
            entry = _entry_of_state(a, name, left[where[0]], right[where[0]]) if known and where else ""
            return Difference(f"checkpoint/{name}", step, entry)
    return None


def _entry_of_state(a: Recording, name: str, left: Array, right: Array) -> str:
    """The name of the first entry that differs, if entries have names."""
    dims = schema.TABLE[f"final/{name}"].dims
    if left.shape != right.shape or len(dims) != 1 or dims[0] in NUMBERED:
        return ""
    where = first_byte(left, right)
    return labels_of(dims[0], a.labels)[where[0]] if where else ""


class Comparison:
    """Finds the first difference between a file and results computed again; its `step` is the sample."""

    def __init__(self, stored: SampledOutput, tolerance: float) -> None:
        """`tolerance`: 0 compares bytes; else the accepted difference, relative to a variable's largest value."""
        self._stored, self._tolerance = stored, tolerance
        self._found: list[Difference] = []
        self._lock = threading.Lock()

    @property
    def first(self) -> Difference | None:
        """The difference at the lowest sample, or None."""
        return min(self._found, key=lambda found: found.step or 0, default=None)

    def compare(self, start: int, block: Mapping[str, Array]) -> None:
        """Compare the samples from `start` on, counted from the file's first, but for those of a rollout that were not
        simulated."""
        done = None
        if isinstance(self._stored, RolloutRecording):
            with self._lock:
                done = self._stored.read_stored("status", start, start + len(block["status"])) != schema.RUNNING
        for name in self._stored.variables:
            with self._lock:
                there = self._stored.read_stored(name, start, start + len(block[name]))
            here = block[name].astype(there.dtype, copy=False)
            if done is not None and not done.all():
                here = np.where(done.reshape(-1, *[1] * (here.ndim - 1)), here, there)
            where = first_beyond(name, there, here, self._tolerance) if self._tolerance else first_byte(there, here)
            if where is not None:
                self._found.append(Difference(name, start + where[0], self._entry(name, where)))
        if isinstance(self._stored, RolloutRecording) and self._stored.has_contacts and not self._tolerance:
            self._compare_contacts(self._stored, start, block)

    def _compare_contacts(self, stored: RolloutRecording, start: int, block: Mapping[str, Array]) -> None:
        """Compare the contacts of samples that have as many as in the file; others are found by their counts."""
        with self._lock:
            there = stored.read_contacts(start, start + len(block["status"]))
        there.pop("contact_count")
        done = np.isin(block["contact/sample"], there["sample"])  # those that were not simulated have none
        for name, left in there.items():
            right = block[f"contact/{name}"][done]
            if left.shape == right.shape and (where := first_byte(left, right)) is not None:
                sample = int(there["sample"][where[0]]) - stored.first_row
                pair = (stored.labels.geom[there[side][where[0]]] for side in ("geom_a", "geom_b"))
                self._found.append(Difference(f"contact/{name}", sample, ", ".join(pair)))

    def _entry(self, name: str, where: tuple[int, ...]) -> str:
        """The labels of an entry."""
        dims = self._stored.stored_variable(name).dims
        named = [(dim, k) for dim, k in zip(dims, where, strict=True) if dim in DIMENSIONS]
        return ", ".join(self._stored.names_of(dim)[k] for dim, k in named)
