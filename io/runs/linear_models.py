"""`artsim.linearize`: linear models about a state, from Python, and the files that hold them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from artsim.io.output_file.claim import check_output
from artsim.io.output_file.whole_file import written_whole
from artsim.io.runs.held_inputs import action_of
from artsim.io.runs.prepare import prepared
from artsim.io.runs.progress import warm
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.linearization import LinearModel, linearised
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import RunSettings
from artsim.sim.runs.step_derivatives import STEP

SUFFIXES = (".npz", ".mat", ".h5", ".hdf5")


def linearize(
    robot: Robot,
    inputs: Sequence[str] | None = None,
    *,
    trim: bool = False,
    hold_contacts: bool = True,
    step: float = STEP,
    controller: str = "none",
    **settings: Unpack[RunSettings],
) -> LinearModel:
    """Linear models of a robot; `artsim.linearize` describes arguments, results and errors."""
    given: dict[str, Any] = {"record": outputs_of(robot.articulation), **settings, "steps": 2}
    plan, _, _ = prepared(robot, controller, None, given)
    return of_plan(plan, inputs, trim=trim, hold_contacts=hold_contacts, step=step)


def outputs_of(articulation: Articulation) -> tuple[str, ...]:
    """The variables of a run that are outputs of its linear models."""
    return ("sensors",) if articulation.sensors else ()


def of_plan(
    plan: Plan,
    inputs: Sequence[str] | None = None,
    *,
    trim: bool = False,
    hold_contacts: bool = True,
    step: float = STEP,
) -> LinearModel:
    """The linear models of a plan, about the state in which it starts."""
    warm((entry, 1) for entry in plan.entries)
    wanted = (action_of(plan),) if inputs is None else inputs
    return linearised(plan, wanted, trim=trim, hold_contacts=hold_contacts, step=step)


def check_name(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse a file whose suffix is none of SUFFIXES, or that cannot be written."""
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"{path}: want a name that ends in {', '.join(SUFFIXES)}")
    check_output(path, force=force)


def arrays_of(model: LinearModel, gains: tuple[Array | None, Array | None] = (None, None)) -> dict[str, Any]:
    """The arrays and names of both models by name, as files hold them: A, B, C, D, states, …; those of a step and what
    belongs to it end in `_step`. `gains`: of regulators of both."""
    found: dict[str, Any] = {}
    for system, ending, gain in zip((model.continuous, model.discrete), ("", "_step"), gains, strict=True):
        found |= {f"{name}{ending}": getattr(system, name) for name in ("A", "B", "C", "D")}
        found |= {f"{name}{ending}": np.array(getattr(system, name), str) for name in ("states", "outputs")}
        if gain is not None:
            found[f"K{ending}"] = gain
    found["inputs"] = np.array(model.continuous.inputs, str)
    found |= {"dt": np.array(model.discrete.dt), "qpos": model.qpos, "qvel": model.qvel}
    return found | {"activation": model.activation, "u": model.u, "acceleration": model.acceleration}


def save(
    model: LinearModel,
    path: str | os.PathLike[str],
    gains: tuple[Array | None, Array | None] = (None, None),
    *,
    force: bool = False,
) -> None:
    """Write both models with their names: .npz, .mat (MATLAB 5) or .h5, whole or not at all.

    Raises UsageError for another suffix; OutputError for a file that is there, without `force`, or cannot be written.
    """
    check_name(path, force=force)
    output, arrays = Path(path), arrays_of(model, gains)
    with written_whole(output) as partial:
        if output.suffix == ".npz":
            with partial.open("wb") as file:
                np.savez(file, **arrays)
        elif output.suffix == ".mat":
            from scipy.io import savemat

            texts = {name: np.array(values.tolist(), object) for name, values in arrays.items() if _is_text(values)}
            savemat(partial, {**arrays, **texts}, appendmat=False)
        else:
            import h5py

            with h5py.File(partial, "w") as file:
                for name, values in arrays.items():
                    file[name] = values.astype(h5py.string_dtype()) if _is_text(values) else values


def _is_text(values: Array) -> bool:
    return np.asarray(values).dtype.kind == "U"
