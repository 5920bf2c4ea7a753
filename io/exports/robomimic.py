"""Exports runs as robomimic datasets: /data/demo_0 with actions, observations, states, rewards and dones."""

from __future__ import annotations

import json
import math

import numpy as np

from artsim.io.exports.request import Export
from artsim.io.exports.rows import blocks_of
from artsim.io.output_file.whole_file import written_whole
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import Controls

_TABLES = 1 << 16  # bytes of a file besides its numbers
_OBSERVED = ("qpos", "qvel", "link_position", "link_quaternion", "sensors", "activation", "tau_contact")


def write_robomimic(export: Export) -> list[str]:
    """Write one demonstration: actions are the inputs as they acted (names in env_args), rewards 0, done at the end.

    Raises UsageError for a run without qpos and qvel.
    """
    import h5py

    recording = export.recording
    if not {"qpos", "qvel"} <= set(recording.variables):
        raise UsageError(f"{recording.path}: a demonstration needs qpos and qvel; record them")
    kinds = _acting(recording)
    rows = recording.n_valid
    actions = _actions(recording, kinds)
    seen = [name for name in _OBSERVED if name in recording]
    shapes = {name: (rows, *recording.read(name, 0, 1).shape[1:]) for name in seen}
    width = shapes["qpos"][1] + shapes["qvel"][1]
    numbers = actions.size + rows * (2 + width) + sum(math.prod(shape) for shape in shapes.values())
    size = 8 * numbers + len(recording.model_text) + _TABLES  # HDF5 crashes if a write fails
    with written_whole(export.output, size, written=export.written) as path, h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = rows
        names = [f"{kind}.{name}" for kind in kinds for name in _entries(recording, kind)]
        about = {"env_name": str(recording.model.get("name", "")), "type": 0, "env_kwargs": {"dt": recording.dt}}
        data.attrs["env_args"] = json.dumps({**about, "action_names": names})
        demo = data.create_group("demo_0")
        demo.attrs["num_samples"] = rows
        demo.attrs["model_file"] = recording.model_text
        demo["actions"] = actions
        demo["rewards"] = np.zeros(rows)
        demo["dones"] = (np.arange(rows) == rows - 1).astype(np.int64)
        observed = {name: demo.create_dataset(f"obs/{name}", shape, "f8") for name, shape in shapes.items()}
        states = demo.create_dataset("states", (rows, width), "f8")
        for start, stop in blocks_of(recording, seen):
            for name, dataset in observed.items():
                dataset[start:stop] = recording.read(name, start, stop)
            both = [recording.read(name, start, stop) for name in ("qpos", "qvel")]
            states[start:stop] = np.concatenate(both, axis=1)
    return []


def _acting(recording: Recording) -> list[str]:
    """The inputs that are ever non-zero, and `control` for any robot with actuators."""
    controls = recording.controls
    used = [
        name
        for name in ("torque", "target", "target_velocity", "target_acceleration")
        if np.any(getattr(controls, name))
    ]
    return [*(["control"] if recording.labels.controls else []), *used] or ["torque"]


def _entries(recording: Recording, kind: str) -> tuple[str, ...]:
    if kind != "control":
        return recording.labels.dof
    return recording.labels.controls


def _actions(recording: Recording, kinds: list[str]) -> Array:
    """The inputs of the step that follows each row (rows, inputs)."""
    controls: Controls = recording.controls
    if not len(controls.start_step):
        return np.zeros((recording.n_valid, sum(getattr(controls, kind).shape[1] for kind in kinds)))
    steps = np.arange(recording.n_valid) * recording.every
    row = np.maximum(np.searchsorted(controls.start_step, steps, side="right") - 1, 0)
    actions: Array = np.concatenate([getattr(controls, kind)[row] for kind in kinds], axis=1)
    return actions
