"""Small functions of T, a float or 8 lanes: the larger and the smaller of two, signs, an inverse that may be of 0."""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.records import Real


@inlined
def largest(a: Real, b: Real) -> Real:
    """The larger of two T, lane by lane; b where they are equal or one of them is not a number."""
    return where_greater(a, b, a, b)


@inlined
def least(a: Real, b: Real) -> Real:
    """The smaller of two T, lane by lane; a where they are equal or one of them is not a number."""
    return where_greater(a, b, b, a)


@inlined
def is_positive(x: Real) -> Real:
    """1 where a T is more than 0, else 0."""
    zero = zero_like(x)
    return where_greater(x, zero, zero + 1.0, zero)


@inlined
def inverse_or_zero(x: Real) -> Real:
    """1 / x of a T that is not negative; 0 for 0."""
    zero = zero_like(x)
    return where_greater(x, zero, 1.0 / where_greater(x, zero, x, zero + 1.0), zero)


@inlined
def divisor(x: Real) -> Real:
    """A T that is not negative, to divide by; 1 for 0, where the dividend is 0 too."""
    zero = zero_like(x)
    return where_greater(x, zero, x, zero + 1.0)
