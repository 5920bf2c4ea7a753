"""A Robot from a file, for Python: read, compiled, and kept with the options that its runs take over."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, Unpack

from artsim.loaders.load import ReadOptions, load_articulation
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import compiled_robot
from artsim.sim.runs.start import find_keyframe


class ModelWarning(UserWarning):
    """A flaw of a robot file that is accepted: `file:line: flaw, and remedy`."""


def load_robot(
    path: str | PathLike[str],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    packages: Mapping[str, str | PathLike[str]] | None = None,
    coupling: Literal["auto", "exact", "rows", "compliant"] = "auto",
    coupling_frequency: float | None = None,
    coupling_damping: float = 1.0,
    gravity: Sequence[float] | None = None,
    keyframe: str = "",
    mesh_root: str | PathLike[str] | None = None,
    loops: str | PathLike[str] | None = None,
    balance_inertia: bool = False,
    ignore_unsupported: bool = False,
    **options: Unpack[ReadOptions],
) -> Robot:
    """Load a robot file (URDF, MJCF or SDFormat), or a robot by name: a bundled one, or a cached one of
    robot_descriptions.

    Args:
        path: the file; "-" reads standard input.
        base: the root link is fixed to the world ("fixed") or free ("floating").
        packages: the folders of package://NAME/, by name.
        coupling: of mimic joints and equalities of joints and tendons. "auto": eliminated exactly (tendons: hard rows),
            or springs where the file gives a softness (MJCF solref); "exact": exactly all, "rows": hard constraint
            rows, "compliant": springs.
        coupling_frequency: natural frequency of compliant couplings [Hz].
        coupling_damping: their damping ratio.
        gravity: (3,) [m/s²]; None: the file's, else (0, 0, -9.81).
        keyframe: the keyframe of the file from which runs of this robot start.
        mesh_root: a further folder that meshes may come from.
        loops: a TOML file of loops that close the model's tree (see artsim/loaders/loops.py).
        balance_inertia: replace inertias that no body can have by the nearest that one can.
        ignore_unsupported: leave out, with a warning, parts of an MJCF file that are not supported, and from a URDF
            reversed limits and mimics whose leader does not exist.
        options: meshes=False: do not search for meshes; strict: refuse files for which artsim would guess; xacro:
            expand macros, which can read files of this machine; max_xml_mb (64), max_faces (2 million): refuse larger
            files and meshes; density: density [kg/m³] of the shapes of links without mass in a URDF; arguments: values
            of the macros' arguments, by name.

    Each accepted flaw of the file is a ModelWarning.

    Raises:
        MissingInputError: no such file. ModelError: `file:line: reason`. UsageError: a wrong argument.
    """
    settings = {
        "base": base,
        "balance_inertia": balance_inertia,
        "ignore_unsupported": ignore_unsupported,
        "coupling": coupling,
        "coupling_frequency": coupling_frequency,
        "coupling_damping": coupling_damping,
        "keyframe": keyframe,
        "density": options.get("density"),
        "gravity": None if gravity is None else tuple(float(x) for x in gravity),
    }
    config = RunConfig.from_mapping(settings)
    where = {name: Path(folder) for name, folder in (packages or {}).items()}
    articulation = load_articulation(
        path if isinstance(path, str) else Path(path),
        base=base,
        packages=where,
        mesh_root=None if mesh_root is None else fspath(mesh_root),
        balance_inertia=balance_inertia,
        ignore_unsupported=ignore_unsupported,
        loops=None if loops is None else fspath(loops),
        **options,
    )
    for note in articulation.notes:
        warnings.warn(ModelWarning(str(note)), stacklevel=3)  # at the line that calls artsim.load
    find_keyframe(articulation, keyframe)
    return dataclasses.replace(compiled_robot(articulation, config, locks=False), loaded_with=settings)
