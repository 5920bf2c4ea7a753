"""Slopes: scratch of derivatives.py, and its allocation. No numba here."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.records import Lanes1, Lanes2, allocate


class Slopes(NamedTuple):
    """Scratch of derivatives.py for nb bodies and nv dofs; motions are those of the tree's reference point.

    A map takes angular velocities to forces, ω → (ω × P, C ω); its twelve numbers are P, then C by rows.
    """

    psi_rate: Lanes2  # (nv, 6) Ψ̇ = v × S, with the velocity v of the frame before the joint
    psi_bend: Lanes2  # (nv, 6) Ψ̈ = a × S + v × Ψ̇, with that frame's acceleration a
    column_rate: Lanes2  # (nv, 6) Ψ̇ + Ṡ
    coriolis_map: Lanes2  # (nb, 12) 2 B of the body and all below it, about its origin
    wrench_map: Lanes2  # (nb, 12) of external wrenches on the body and all below it
    dq: Lanes2  # (nv, nv) ∂τ/∂q: entries of dofs on one chain only
    dv: Lanes2  # (nv, nv) ∂τ/∂v
    tau: Lanes1  # (nv,) joint forces
    acceleration: Lanes1  # (nv,) at which derivatives of forward dynamics are taken
    columns_dq: Lanes2  # (6, nv) derivatives of a motion or a momentum
    columns_dv: Lanes2  # (6, nv)
    bend: Lanes1  # (nv,) d²q/dy² of each dof by the independent one that moves it
    velocity_slope: Lanes1  # (nv,) ∂v/∂y, and half of ∂a/∂u
    acceleration_slope: Lanes1  # (nv,) ∂a/∂y
    twice: Lanes1  # (nv,) ∂a/∂u = 2 ∂v/∂y


def make_slopes(model: Model, width: int) -> Slopes:
    """Allocate the scratch for a model."""
    nb, nv = len(model.body_parent), len(model.dof_body)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("psi_rate", "psi_bend", "column_rate"), (nv, 6)),
        **dict.fromkeys(("coriolis_map", "wrench_map"), (nb, 12)),
        **dict.fromkeys(("dq", "dv"), (nv, nv)),
        **dict.fromkeys(("columns_dq", "columns_dv"), (6, nv)),
        **dict.fromkeys(("tau", "acceleration", "bend", "velocity_slope", "acceleration_slope", "twice"), (nv,)),
    }
    slopes: Slopes = allocate(Slopes, shapes, width)
    return slopes
