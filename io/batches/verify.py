"""Computes a file of `artsim batch` again, from its own inputs or draws of the same seed, and compares the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artsim.io.batches.batch import Job, block_rows, check_memory, prepare, stream_rows
from artsim.io.batches.configuration import BatchConfig
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.differences import Comparison, Difference
from artsim.io.readers.facts import first_sampled_fact
from artsim.io.readers.output import opened
from artsim.io.runs.provenance import made_elsewhere
from artsim.io.runs.replay import TOLERANCE, Load
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.catalogue import INPUTS
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig


class StoredRows:
    """The inputs stored in a file, as a Source."""

    threads = False

    def __init__(self, stored: BatchRecording) -> None:
        self._stored = stored
        self.rows = stored.rows
        self.inputs = tuple(name for name in INPUTS if name in stored)
        self.identity: dict[str, Any] = {"kind": "batch"}

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        """Read rows start … stop."""
        for name in self.inputs:
            if name in out:
                out[name][: stop - start] = self._stored.read(name, start, stop)

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def verify_batch(
    path: str | os.PathLike[str], load: Load, *, threads: int = 1, tolerance: float = TOLERANCE
) -> Difference | None:
    """Verify a batch, or a shard or an index of one, as runs.verify does; `step` is the row, counted from the file's
    first.

    Drawn inputs are drawn again; inputs from a file are taken as stored.
    """
    with opened(Path(path), lambda where, file, _: BatchRecording(where, file)) as stored:
        found = Comparison(stored, tolerance if made_elsewhere(stored) else 0.0)
        if not stored.rows:
            return None
        job, first = _job(stored, load)
        with job:
            rows = block_rows(job, stored.rows, None)
            slots = min(max(1, threads) + 1, -(-stored.rows // rows))
            check_memory(job, slots, rows)

            def write(start: int, count: int, block: Mapping[str, Array]) -> None:
                found.compare(start, {name: values[:count] for name, values in block.items()})

            stream_rows(job, write, range(first, first + stored.rows, rows), slots)
        facts = None if made_elsewhere(stored) else first_sampled_fact(stored, job.robot.articulation)
        return found.first or facts


def _job(stored: BatchRecording, load: Load) -> tuple[Job, int]:
    """The job of a file, and the number of the file's first row in it."""
    config = BatchConfig.from_json(stored.provenance.get("config", "{}"))
    articulation = _robot(stored, config, load)
    if config.samples is not None or config.grid:
        return prepare(articulation, config), stored.first_row
    return Job(config, Robot.of(articulation, gravity=config.gravity), StoredRows(stored)), 0


def _robot(stored: BatchRecording, config: BatchConfig, load: Load) -> Articulation:
    options = ("base", "balance_inertia", "ignore_unsupported", "density")
    settings = RunConfig.from_mapping({name: config.load[name] for name in options if name in config.load})
    return load(stored.model_text, str(stored.model.get("name", "model")), settings)
