"""The robot of an output file, for commands that draw or simulate it again."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from artsim.cli.terminal import warn
from artsim.io.readers.recording import Recording
from artsim.io.runs.replay import Load
from artsim.loaders.load import load_articulation
from artsim.loaders.stored import StoredReader, load_stored
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.geometry.solids import with_pieces
from artsim.sim.runs.configuration import RunConfig


def stored_robot(
    recording: Recording, packages: Mapping[str, Path], mesh_root: Path | None, load: Load | None = None
) -> Articulation:
    """Load the stored robot, with its meshes if they are available, else with their collision shapes.

    `load`, made by `loaded_instead`, reads another file in its place. Raises ModelError.
    """
    config, model = RunConfig.from_mapping(recording.config), recording.model
    text, name = recording.model_text, str(model.get("name", "model"))
    if load is None:
        robot = StoredReader(config, packages, mesh_root).read(text, name, str(model.get("path", "")))
    else:
        robot = load(text, name, config)
    return with_pieces(robot, recording.kept)


def loaded_instead(
    model: str, packages: Mapping[str, Path], mesh_root: Path | None, *, force: bool, meshes: bool
) -> Load:
    """Make a loader that reads a given file in place of stored models.

    The file must have the stored text or, with `force`, the stored links, joints and actuators; otherwise the loader
    raises ModelError.
    """

    def load(text: str, name: str, config: RunConfig) -> Articulation:
        robot = load_articulation(
            model,
            base=config.base,  # type: ignore[arg-type]
            packages=packages,
            mesh_root=mesh_root,
            meshes=meshes,
            balance_inertia=config.balance_inertia,
            ignore_unsupported=config.ignore_unsupported,
            density=config.density,
        )
        if robot.text == text:
            return robot
        told = (
            f"{model}: is another model than the stored {name!r} (SHA-256 {_digest(robot.text)}, there {_digest(text)})"
        )
        if not force:
            raise ModelError(f"{told}; --force goes on with it")
        if _parts(robot) != _parts(load_stored(text, name, config)):
            raise ModelError(f"{told}, and has other links, joints, loops or actuators")
        warn([told])
        return robot

    return load


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12] + "…"


def _parts(robot: Articulation) -> tuple[Any, ...]:
    """The parts after which the entries of arrays are named."""
    joints = [(joint.name, joint.kind, joint.parent, joint.child) for joint in robot.joints]
    couplings = [(coupling.follower, coupling.leader) for coupling in robot.couplings]
    named = (robot.links, robot.actuators, robot.loops, robot.tendons)
    return joints, couplings, *([part.name for part in parts] for parts in named)
