"""A Robot from a file, for Python: read, compiled, and kept with the options that its runs take over."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Unpack

from artsim.loaders.load import load_articulation
from artsim.loaders.read_options import ReadOptions, whole
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.compiled_robot import compiled_robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.reading import OF_MODEL
from artsim.sim.runs.start import find_keyframe


class ModelWarning(UserWarning):
    """A flaw of a robot file that is accepted: `file:line: flaw, and remedy`."""


def load_robot(
    path: str | PathLike[str],
    *,
    coupling: Literal["auto", "exact", "rows", "compliant"] = "auto",
    coupling_frequency: float | None = None,
    coupling_damping: float = 1.0,
    gravity: Sequence[float] | None = None,
    keyframe: str = "",
    loops: str | PathLike[str] | None = None,
    **options: Unpack[ReadOptions],
) -> Robot:
    """Load a robot file (URDF, MJCF or SDFormat), or a robot by name: a bundled one, or a cached one of
    robot_descriptions.

    Args:
        path: the file; "-" reads standard input.
        coupling: of mimic joints and equalities of joints and tendons. "auto": eliminated exactly (tendons: hard rows),
            or springs where the file gives a softness (MJCF solref); "exact": exactly all, "rows": hard constraint
            rows, "compliant": springs.
        coupling_frequency: natural frequency of compliant couplings [Hz].
        coupling_damping: their damping ratio.
        gravity: (3,) [m/s²]; None: the file's, else (0, 0, -9.81).
        keyframe: the keyframe of the file from which runs of this robot start.
        loops: a TOML file of loops that close the model's tree (see artsim/loaders/loops.py).
        options: how the file is read (artsim.loaders.read_options.ReadOptions): base, packages, mesh_root, meshes,
            max_xml_mb, max_faces, strict, balance_inertia, ignore_unsupported, xacro, arguments, density.

    Each accepted flaw of the file is a ModelWarning.

    Raises:
        MissingInputError: no such file. ModelError: `file:line: reason`. UsageError: a wrong argument.
    """
    how = whole(options)
    settings: dict[str, Any] = {
        **{name: how[name] for name in OF_MODEL},
        "coupling": coupling,
        "coupling_frequency": coupling_frequency,
        "coupling_damping": coupling_damping,
        "keyframe": keyframe,
        "gravity": None if gravity is None else tuple(float(x) for x in gravity),
    }
    config = RunConfig.from_mapping(settings)
    file = path if isinstance(path, str) else Path(path)
    articulation = load_articulation(file, loops=None if loops is None else fspath(loops), **how)
    for note in articulation.notes:
        warnings.warn(ModelWarning(str(note)), stacklevel=3)  # at the line that calls artsim.load
    find_keyframe(articulation, keyframe)
    return dataclasses.replace(compiled_robot(articulation, config, locks=False), loaded_with=settings)
