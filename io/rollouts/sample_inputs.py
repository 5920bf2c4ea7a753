"""Inputs over time of the samples of a rollout: from arrays (samples, rows, n), one file, or a file for each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from artsim.io.inputs.control_arrays import ARRAYS, npz_arrays
from artsim.io.inputs.control_files import for_every_step, read_sample_controls
from artsim.io.inputs.input_table import SUFFIXES
from artsim.io.inputs.interpolation import Interpolation
from artsim.io.inputs.output_inputs import variables_named
from artsim.io.runs.held_inputs import action_of, input_names, numbers_of
from artsim.io.runs.prepare import check_driven, plan_controls
from artsim.sim.foundation.errors import MissingInputError, ModelError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import HOLD
from artsim.sim.runs.wrench_inputs import with_pushes

File = str | os.PathLike[str]
_OF_FILES = {SUFFIXES.get(name, name): name for name in ARRAYS}  # names of arrays in files, by those in Controls


class SampleControls(Sequence[Controls]):
    """The controls of each sample, views of arrays (samples, rows, ·) by name; others are those of the first."""

    def __init__(self, first: Controls, arrays: Mapping[str, Array]) -> None:
        self.first, self.arrays = first, arrays
        for values in arrays.values():
            values.setflags(write=False)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    @overload
    def __getitem__(self, k: int) -> Controls: ...

    @overload
    def __getitem__(self, k: slice) -> SampleControls: ...

    def __getitem__(self, k: int | slice) -> Controls | SampleControls:
        own = {name: values[k] for name, values in self.arrays.items()}
        return SampleControls(self.first, own) if isinstance(k, slice) else self.first.with_values(own)

    def __iter__(self) -> Iterator[Controls]:
        return (self[k] for k in range(len(self)))


def array_controls(plan: Plan, given: Mapping[str, Any], samples: int, where: str = "") -> Sequence[Controls]:
    """The controls that arrays (samples, rows, n) by name give; rows hold equally long, one per step or fewer.

    `where`: the file that they are from. Raises UsageError, naming the shape that is wanted.
    """
    arrays, rows = dict[str, Array](), 0
    for name, values in given.items():
        own, entries = _numbers(plan, where + name, name, values, samples)
        if rows not in (0, own.shape[1]):
            raise UsageError(f"{where}{name} has {own.shape[1]} rows, other inputs have {rows}")
        rows = own.shape[1]
        whole = np.tile(getattr(plan, name), (samples, rows, 1))
        whole[:, :, entries] = own
        arrays[name] = whole
    if not rows or plan.config.steps % rows:
        raise UsageError(
            f"{where}{next(iter(given))} has {rows} rows for {plan.config.steps} steps: want one per step, or a number "
            "that divides them"
        )
    start = np.arange(rows) * (plan.config.steps // rows)
    first = Controls(start, **{name: np.tile(getattr(plan, name), (rows, 1)) for name in VALUES})
    every = {name: values.reshape(samples * rows, -1) for name, values in arrays.items()}
    held = {name: np.tile(getattr(plan, name), (samples * rows, 1)) for name in VALUES}
    check_driven(plan, Controls(np.arange(samples * rows), **{**held, **every}), where.removesuffix(": ") or "controls")
    made = SampleControls(first, arrays)
    if plan.config.interpolate == HOLD and not plan.pushed.pushes:
        return made
    interpolation = Interpolation(plan.config.interpolate, plan.config.steps)
    return [with_pushes(for_every_step(one, plan.dt, interpolation), plan.pushed, plan.dt) for one in made]


def _numbers(plan: Plan, what: str, name: str, values: Any, samples: int) -> tuple[Array, list[int]]:
    """The numbers (samples, rows, entries) of an input, and which of its entries these are. Raises UsageError."""
    names, numbers = input_names(plan, name), np.asarray(numbers_of(what, values))
    free = [names.index(dof) for dof in plan.robot.independent_dofs] if name != "control" else []
    entries = free if numbers.shape[-1:] == (len(free),) else [*range(len(names))]
    if numbers.ndim != 3 or len(numbers) != samples or numbers.shape[2] != len(entries):
        noun = "actuators" if name == "control" else "degrees of freedom"
        want = f"({samples}, rows, {len(names)}): samples, rows, {noun}"
        raise UsageError(f"{what} has shape {numbers.shape}, want {want}")
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        sample, row, entry = bad[0]
        which = f"sample {sample}, row {row}, {names[entries[entry]]!r}"
        raise UsageError(f"{what} of {which}: {numbers[tuple(bad[0])]} is not a finite number")
    return numbers, entries


def file_controls(plan: Plan, files: File | Sequence[File], samples: int) -> Sequence[Controls]:
    """Read control files: one Controls for all samples, or one per sample, from arrays (samples, rows, ·) of one file,
    or from as many files as there are samples. Raises the errors of plan_controls, UsageError."""
    several = [files] if isinstance(files, str | os.PathLike) else list(files)
    if len(several) > 1:
        if len(several) != samples:
            raise UsageError(f"controls: there are {len(several)} files for {samples} samples; want one, or one each")
        return [plan_controls(plan, file) for file in several]
    path = several[0]
    if (arrays := _arrays_without_time(plan, path)) is not None:
        return array_controls(plan, arrays, samples, f"{path}: ")
    names = () if plan.equipped is None else plan.equipped.labels.controls
    held = {name: getattr(plan, name) for name in VALUES}
    interpolation = Interpolation(plan.config.interpolate, plan.config.steps)
    if variables_named(str(path)) is not None:
        return [plan_controls(plan, path)]
    controls = read_sample_controls(
        path, samples, plan.robot.dofs, plan.dt, actuators=names, interpolation=interpolation, **held
    )
    controls = [with_pushes(one, plan.pushed, plan.dt) for one in controls]
    different = {(id(one.target), id(one.target_velocity), id(one.target_acceleration)): one for one in controls}
    for one in different.values():
        check_driven(plan, one, path)
    return controls


def _arrays_without_time(plan: Plan, path: File) -> dict[str, Array] | None:
    """The arrays of a .npy file, or of a .npz file without times, by their names in Controls; None: another file."""
    where = Path(path)
    if where.suffix.lower() == ".npy":
        try:
            array = np.load(where, allow_pickle=False)
        except OSError as error:
            raise MissingInputError(f"{path}: cannot read: {error.strerror or error}") from None
        except ValueError as error:
            raise ModelError(f"{path}: no array of numbers: {error}") from None
        return {action_of(plan): array}
    if where.suffix.lower() != ".npz" or not where.is_file():
        return None
    arrays, present = npz_arrays(where, {*_OF_FILES.values()}.__contains__)
    beside = {*present} - {*arrays}
    return None if beside or not arrays else {name: arrays[of] for name, of in _OF_FILES.items() if of in arrays}
