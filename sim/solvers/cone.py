"""The cone |t| ≤ μ n of Coulomb friction, and its projection for a T (a float, or a pack of 8 lanes)."""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.records import Real, Vec6


@inlined
def cone_projection(mu: Real, normal: Real, length: Real, per_length: Real) -> Vec6:
    """The projection P of z = (normal, z_t) on the cone, with |z_t| = length, per_length = 1 / |z_t| or 0, and its
    derivative.

    Returns c0 to c3 of P' = [c0, c1 eᵀ; c1 e, c2 e eᵀ + c3 1] with e = z_t / |z_t|, then the normal component of P(z)
    and the length of its tangential one, in z's unit (Alart and Curnier 1991).
    """
    zero = zero_like(normal)
    one = zero + 1.0
    g = 1.0 / (1.0 + mu * mu)
    a = (normal + mu * length) * g
    c3 = mu * a * per_length
    outside = where_greater(length, mu * normal, one, zero)  # outside the cone
    above = where_greater(mu * length, -normal, one, zero)  # outside the polar cone
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
