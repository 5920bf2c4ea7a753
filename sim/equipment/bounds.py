"""Forces at their bounds, for both widths: held there as constants, and released.

The forces held are the active set of a linear complementarity problem. All forces on the wrong side of their bounds
change sides at once, which rarely takes more than two rounds but may cycle; later rounds change one force each.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real

SLACK = 1e-12  # relative: excess over a bound that counts as rounding


@inlined
def at_bound(side: Real, lower: float, upper: float, free: Real) -> Real:
    """The bound at which a force is held: `lower` where `side` is -1, `upper` where `side` is 1, elsewhere `free`."""
    zero = zero_like(side)
    return where_greater(side, zero, zero + upper, where_greater(zero, side, zero + lower, free))


@inlined
def still_free(chosen: Real, one: Real, changed: Real) -> Real:
    """1 in the chosen lanes that may still change a force: those where `one` is 0, or no force has changed yet."""
    return chosen - chosen * one * changed


@inlined
def side_of(force: Real, bounds: tuple[float, float], before: Real) -> Real:
    """1 where an unbounded force exceeds its upper bound, -1 where it exceeds its lower one, else 0. A force that was
    not held `before` may exceed its bound by rounding.
    """
    lower, upper = bounds
    zero = zero_like(force)
    one, slack = zero + 1.0, SLACK * absolute(force)
    above = where_greater(force, upper + where_greater(before, zero, zero, slack), one, zero)
    below = where_greater(lower - where_greater(zero, before, zero, slack), force, one, zero)
    return above - below


@njit
def hold(held: Lanes1, n: int, force: Real, bounds: tuple[float, float], chosen: Real) -> Real:
    """Set held[n] to the bound that the unbounded force exceeds, or to 0 if the force was held at a bound that it no
    longer exceeds; 1 where held[n] changes. Only lanes where `chosen` is 1 change.
    """
    zero, before = zero_like(force), held[n]
    # a force that leaves its bound is released first, even if it would be beyond the other bound: fewer rounds cycle
    side = side_of(force, bounds, before)
    staying = where_greater(before * side, zero, before, zero)
    now = where_greater(absolute(before), zero, staying, side)
    now = where_greater(chosen, zero, now, before)
    held[n] = now
    return where_greater(absolute(now - before), zero, zero + 1.0, zero)
