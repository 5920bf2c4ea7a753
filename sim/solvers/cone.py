"""The cone |t| ≤ μ n of Coulomb friction, and small functions of T that solvers share."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined
from artsim.sim.lanes import where_greater


@inlined
def cone_projection(mu: Any, normal: Any, length: Any, per_length: Any) -> Any:
    """The projection P of (normal, z_t) with |z_t| = length, and its derivative.

    c0 to c3 of [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1], e = z_t / |z_t|; then P's normal and tangential lengths.
    """
    zero = normal - normal
    one = zero + 1.0
    g = 1.0 / (1.0 + mu * mu)
    a = (normal + mu * length) * g
    c3 = mu * a * per_length
    outside = where_greater(length, mu * normal, one, zero)  # of the cone
    above = where_greater(mu * length, -normal, one, zero)  # not in the polar one
    edge = outside * above
    inside = one - outside
    return (
        inside + edge * g,
        edge * mu * g,
        edge * (mu * mu * g - c3),
        inside + edge * c3,
        inside * normal + edge * a,
        inside * length + edge * mu * a,
    )


@inlined
def largest(a: Any, b: Any) -> Any:
    """The larger of two T."""
    return where_greater(a, b, a, b)


@inlined
def least(a: Any, b: Any) -> Any:
    """The smaller of two T."""
    return where_greater(a, b, b, a)


@inlined
def inverse_or_zero(x: Any) -> Any:
    """1 / x of a T that is not negative; 0 for 0."""
    zero = x - x
    return where_greater(x, zero, 1.0 / where_greater(x, zero, x, zero + 1.0), zero)
