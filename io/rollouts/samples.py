"""A sample of a rollout as a run: its stored rows in a run file, which everything that reads runs can show."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from artsim.io.format import schema
from artsim.io.output_file.model_record import model_record
from artsim.io.readers.open_output import open_output
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.given import COLUMNS
from artsim.io.runs.recorder import Recorder
from artsim.io.runs.replay import Load
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.varied import PUSHES
from artsim.sim.runs.wrench_inputs import link_wrenches, with_own_pushes

OWN_PUSHES = tuple(COLUMNS[name] for name in PUSHES)


@contextlib.contextmanager
def opened_runs(
    paths: Sequence[str | os.PathLike[str]], samples: Sequence[int], load: Load
) -> Iterator[list[Recording]]:
    """Open runs, and each of these samples of rollouts as a run in a temporary file, `rollout-sample-3.h5`.

    `load(text, name, config)` reads a stored model. Raises UsageError: a rollout without samples, samples of a run, a
    number that no sample has, an output of `artsim batch`; what open_output raises.
    """
    with contextlib.ExitStack() as stack:
        found: list[Recording] = []
        for path in paths:
            output = stack.enter_context(open_output(path))
            if isinstance(output, Recording):
                if samples:
                    raise UsageError(f"{path}: is a run; --sample is for outputs of `artsim rollout`")
                found.append(output)
                continue
            if not isinstance(output, RolloutRecording):
                raise UsageError(f"{path}: is an output of `artsim batch`, whose rows are no motion")
            if not samples:
                raise UsageError(f"{path}: is a rollout of {output.samples} samples; --sample K takes one, from 0")
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="artsim-sample-")))
            for sample in samples:
                run = folder / f"{output.path.stem}-sample-{sample}.h5"
                write_sample(output, sample, run, load)
                found.append(stack.enter_context(open_recording(run)))
        yield found


def write_sample(rollout: RolloutRecording, sample: int, path: str | os.PathLike[str], load: Load) -> None:
    """Write the rows of a sample as a run file: its recorded variables and inputs, as far as it came.

    Of --randomise only pushes are in it: the model is that of the rollout. Raises UsageError, ModelError, and what
    Recorder raises.
    """
    if not 0 <= sample < rollout.samples:
        raise UsageError(f"{rollout.path}: has no sample {sample}; there are {rollout.samples}, from 0")
    settings = rollout.config.get("run", {})
    config = RunConfig.from_mapping(settings)
    if config.dt is None:
        raise ModelError(f"{rollout.path}: does not say its time step")
    rows = int(rollout.read("n_valid", sample, sample + 1)[0])
    variables = [name for name in schema.RECORDED if name in rollout]
    tables = _tables_of(rollout, sample, rows)
    robot = with_pieces(load(rollout.model_text, str(rollout.model.get("name", "model")), config), rollout.kept)
    model = model_record(robot, rollout.kept)._replace(path=str(rollout.model.get("path", "")))
    controls = _controls_of(rollout, sample, config)
    provenance = {**rollout.provenance, "config": json.dumps(settings, sort_keys=True), "sample": sample}
    with Recorder(
        path,
        labels=rollout.labels,
        dt=config.dt,
        every=config.every,
        model=model,
        controls=controls,
        provenance=provenance,
        variables=[*variables, *(["contacts"] if tables else [])],
        steps_total=max(1, (rows - 1) * config.every + 1),
        state={},
    ) as recorder:
        recorder.write(
            {name: np.ascontiguousarray(rollout.read_stored(name, sample, sample + 1)[0, :rows]) for name in variables},
            tables=tables,
        )
        status = int(rollout.read("status", sample, sample + 1)[0])
        recorder.close(schema.COMPLETE if status in (schema.COMPLETE, schema.ENDED) else schema.NON_FINITE)


def _controls_of(rollout: RolloutRecording, sample: int, config: RunConfig) -> Controls:
    """The inputs of a sample as they acted, with the pushes that it has of its own."""
    each = rollout.controls
    controls = each[sample] if len(each) > 1 else each[0]
    if not {*OWN_PUSHES} & {*rollout.variables}:
        return controls
    acting = link_wrenches(rollout.labels.link, config)
    impulses, times = (
        rollout.read(name, sample, sample + 1) if name in rollout else values[None]
        for name, values in zip(OWN_PUSHES, (acting.impulses, acting.times), strict=True)
    )
    if impulses.shape[1] != len(acting.pushes) or times.shape[1] != len(acting.pushes):
        raise ModelError(f"{rollout.path}: has not the pushes that its configuration names")
    assert config.dt is not None
    return with_own_pushes([controls], acting, impulses, times, config.dt)[0]


def _tables_of(rollout: RolloutRecording, sample: int, rows: int) -> dict[str, dict[str, Array]]:
    """The contacts of a sample as a run has them; empty if none were recorded."""
    found = rollout.read_contacts(sample, sample + 1)
    if not found:
        return {}
    del found["sample"]
    return {"contact": {**found, "contact_count": found["contact_count"][0, :rows]}}
