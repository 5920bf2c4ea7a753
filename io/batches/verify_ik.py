"""Finds the rows of a file of `artsim ik` again, from its own poses, and compares them."""

from __future__ import annotations

import os
from pathlib import Path

from artsim.io.batches.ik import IkJob
from artsim.io.batches.ik_config import IkConfig
from artsim.io.batches.ik_rows import Poses
from artsim.io.readers.differences import Comparison, Difference
from artsim.io.readers.facts import first_sampled_fact
from artsim.io.readers.ik_recording import IkRecording
from artsim.io.readers.output import opened
from artsim.io.runs.provenance import made_elsewhere
from artsim.io.runs.replay import TOLERANCE, Load
from artsim.sim.foundation.records import Array
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig


class StoredPoses(Poses):
    """The poses stored in a file."""

    def __init__(self, stored: IkRecording) -> None:
        self._stored = stored
        self.rows = stored.rows
        self.names = tuple(name for name in ("position", "quaternion", "point") if f"target_{name}" in stored)

    def read(self, start: int, stop: int) -> dict[str, Array]:
        return {name: self._stored.read(f"target_{name}", start, stop) for name in self.names}

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def verify_ik(
    path: str | os.PathLike[str], load: Load, *, threads: int = 1, tolerance: float = TOLERANCE
) -> Difference | None:
    """Verify an inverse kinematics, as runs.verify does; `step` is the row."""
    with opened(Path(path), lambda where, file, _: IkRecording(where, file)) as stored:
        elsewhere = made_elsewhere(stored)
        found = Comparison(stored, tolerance if elsewhere else 0.0)
        config = IkConfig.from_json(stored.provenance.get("config", "{}"))
        options = ("base", "balance_inertia", "ignore_unsupported", "density")
        settings = RunConfig.from_mapping({name: config.load[name] for name in options if name in config.load})
        articulation = with_pieces(
            load(stored.model_text, str(stored.model.get("name", "model")), settings), stored.kept
        )
        job = IkJob(config, Robot.of(articulation), StoredPoses(stored))
        for first, results in job.found(threads):
            found.compare(first, results)
        return found.first or (None if elsewhere else first_sampled_fact(stored, articulation))
