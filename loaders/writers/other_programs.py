"""Written files in other programs: the number of degrees of freedom and the mass that they find there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from artsim.sim.foundation.errors import UsageError

FORMATS = {"mujoco": (".xml", ".mjcf", ".urdf"), "pinocchio": (".urdf", ".xml", ".mjcf")}
"""The suffixes of the files that each program reads."""


class Opinion(NamedTuple):
    """The reading of a file by another program: why it does not load, or its degrees of freedom and mass [kg]."""

    program: str
    flaw: str
    nv: int = 0
    mass: float = 0.0

    def __str__(self) -> str:
        return f"{self.program}: {self.flaw or f'loads it, {self.nv} dofs, {self.mass:.6g} kg'}"


def opinion(program: str, path: Path) -> Opinion:
    """Load a file in another program. Raises UsageError if the program is not installed or does not read the format."""
    if path.suffix.lower() not in FORMATS[program]:
        raise UsageError(f"--check-with {program}: it reads {', '.join(FORMATS[program])}, not {path.suffix}")
    load = LOADERS[program]
    try:
        nv, mass = load(path)
    except ImportError:
        package = {"pinocchio": "pin"}.get(program, program)
        raise UsageError(f"--check-with {program}: it is not installed; pip install {package}") from None
    except Exception as error:  # whatever the program raises
        return Opinion(program, f"does not load it: {' '.join(str(error).split())[:300]}")
    return Opinion(program, "", nv, mass)


def in_mujoco(path: Path) -> tuple[int, float]:
    """Degrees of freedom and mass [kg] of MuJoCo's model."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    return int(model.nv), float(model.body_mass.sum())


def in_pinocchio(path: Path) -> tuple[int, float]:
    """Degrees of freedom and mass [kg] of Pinocchio's model; what stands in the world has none there."""
    import pinocchio

    build: Any = pinocchio.buildModelFromUrdf if path.suffix.lower() == ".urdf" else pinocchio.buildModelFromMJCF
    model = build(str(path))
    return int(model.nv), float(sum(inertia.mass for inertia in list(model.inertias)[1:]))


LOADERS: dict[str, Callable[[Path], tuple[int, float]]] = {"mujoco": in_mujoco, "pinocchio": in_pinocchio}
