"""Scratch of an integrator of many stages: the slopes of each, and the error of the step. Does not import numba."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.records import Reals1, Reals2, allocate

STAGES = 7  # of dormand_prince.py


class StageSlopes(NamedTuple):
    """Slopes of the stages of a step as tangents at the step's start, and differences of two orders at its end."""

    velocity: Reals2  # (7, nv) [rad/s or m/s]
    acceleration: Reals2  # (7, nv) [rad/s² or m/s²]
    error: Reals1  # (nv,) of the coordinates [rad or m]
    velocity_error: Reals1  # (nv,) [rad/s or m/s]


def make_stage_slopes(model: Model) -> StageSlopes:
    """Allocate the scratch for a model."""
    nv = len(model.dof_body)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("velocity", "acceleration"), (STAGES, nv))
    slopes: StageSlopes = allocate(StageSlopes, shapes | dict.fromkeys(("error", "velocity_error"), (nv,)))
    return slopes
