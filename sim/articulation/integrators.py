"""Integrates velocities to positions, on the group where there are rotations."""

from __future__ import annotations

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import real, sqrt, where_greater
from artsim.sim.foundation.quaternions import turn_quaternion
from artsim.sim.foundation.records import Lanes1
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.sincos import sincos
from artsim.sim.foundation.vec3 import combined, cross, dot, plus, put_at, triple_at

_SERIES = 1e-2  # square of an angle [rad²] up to which the series of c is exact to rounding


@njit
def move(model: Model, q: Lanes1, v: Lanes1, h: float) -> None:
    """q ← q ⊕ h v: coordinates add, quaternions turn by exp(h ω), ω in the body's axes."""
    for i in range(1, model.body_parent.shape[0]):
        k = model.body_dof[i]
        n = model.body_coord[i]
        kind = model.joint_type[i]
        if kind == BALL or kind == FREE:
            if kind == FREE:
                for axis in range(3):
                    q[n + axis] += h * v[k + axis]
                n += 3
                k += 3
            turn_quaternion(q, n, h * v[k], h * v[k + 1], h * v[k + 2])
        else:
            for axis in range(model.body_dof[i + 1] - k):
                q[n + axis] += h * v[k + axis]


@njit
def inverse_tangent(model: Model, x: Lanes1, v: Lanes1) -> None:
    """v ← dexp⁻¹(x) v for the rotations: the rate of the rotation vector x of a body with angular velocity v
    (Munthe-Kaas 1999).

    R = R₀ exp(x) and ω in body axes give ẋ = ω + ½ x × ω + c x × (x × ω), c = (1 - ½|x| cot ½|x|) / |x|²; other
    coordinates are flat. In both widths.
    """
    for i in range(1, model.body_parent.shape[0]):
        kind = model.joint_type[i]
        if kind != BALL and kind != FREE:
            continue
        k = model.body_dof[i] + (3 if kind == FREE else 0)
        turn, w = triple_at(x, k), triple_at(v, k)
        square = dot(turn, turn)
        few = real(_SERIES, square)
        series = 1.0 / 12.0 + square / 720.0 + square * square / 30240.0 + square * square * square / 1209600.0
        large = largest(square, few)
        half = 0.5 * sqrt(large)
        sine, cosine = sincos(half)
        c = where_greater(few, square, series, (1.0 - half * cosine / sine) / large)
        a = cross(turn, w)
        put_at(v, k, plus(w, combined(0.5, a, c, cross(turn, a))))
