"""The robot of an output file, for commands that draw it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from artsim.io.reader import Recording
from artsim.loaders.stored import StoredReader
from artsim.sim.configuration import RunConfig
from artsim.sim.description import Articulation
from artsim.sim.solids import with_pieces


def stored_robot(recording: Recording, packages: Mapping[str, Path], mesh_root: Path | None) -> Articulation:
    """The stored robot, with its meshes where they are at hand, else with what they collided as. Raises ModelError."""
    reader = StoredReader(RunConfig.from_mapping(recording.config), packages, mesh_root)
    model = recording.model
    robot = reader.read(recording.model_text, str(model.get("name", "model")), str(model.get("path", "")))
    return with_pieces(robot, recording.kept)
