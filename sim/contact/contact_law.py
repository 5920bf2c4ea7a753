"""What a contact means, as small functions of values: of floats for one robot, of packs for 8 at once, in T.

The gap between two surfaces [m], along the normal N from the first body to the second, must not close; it opens at J v
[m/s]. contact_rows.py makes rows of this for both widths; detection.py finds what of it does not follow from
velocities. What holds in some lanes only is a T that is 1 there and 0 elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.row import RECOVERY
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.scalars import least
from artsim.sim.foundation.vec3 import crossed, dot, plus, plus_times

_ACROSS = 1e-7  # sine of the angle to the surface up to which a motion counts as one along it
_ACROSS_INSIDE = 1e-3  # the same of what is inside: links that overlap where they are hinged
_LOST = 1e-11  # share of its terms below which a sum is rounding
_WORK = 1e-6  # share of what an impulse moves that counts as no work
_PARTING = 10.0  # [rad/s or m/s] no dof faster to bring apart what is inside: some of it no joint can part
_FARTHEST = 10.0  # [rad or m] no dof farther
_SLOW = 1e-3  # [m/s] bringing apart that does not matter
_SLOWEST_BOUNCE = 0.05  # [m/s] an arrival below it does not bounce
_LASTING = 0.1  # 1 - e below which slower ones do: a ball that keeps its energy keeps it
_ROUNDING = 1e-3  # of that speed

# ------------------------------------------------------------------ which way it moves


@inlined
def centre_of_curvature(arm: Any, N: Any, sign: Any, distance: Any, rounding: Any) -> Any:
    """The centre about which a body's surface is round at the contact, from where `arm` to the contact's point starts.

    The point lies midway between the surfaces, which are `distance` apart; sign: 1 for the second body, -1 for the
    first; rounding: the surface's radius, 0 of what is not a ball or a capsule.
    """
    return plus_times(arm, sign * (0.5 * distance + rounding), N)


@inlined
def point_velocity(linear: Any, angular: Any, x: Any) -> Any:
    """Velocity of the point at x of what moves and turns like this about the origin of x."""
    return plus(crossed(angular, x), linear)


@inlined
def in_direction(frame: Any, j: Any, linear: Any, angular: Any) -> Any:
    """A velocity in direction j of a contact: along normal and tangents, frame's rows, then about them."""
    if j < 3:
        return dot(frame[j], linear)
    return dot(frame[j - 3], angular)


@inlined
def parts(N: Any, linear: Any, angular: Any, x: Any, inside: Any) -> Any:
    """1 where a dof, which moves like this about the origin of x, moves the point at x along N, and by more than what
    rounding loses; inside: 1 where surfaces overlap already."""
    v = point_velocity(linear, angular, x)
    terms = dot(angular, angular) * dot(x, x) + linear[0] * linear[0] + linear[1] * linear[1] + linear[2] * linear[2]
    along = dot(N, v)
    zero = zero_like(along)
    across = where_greater(inside, zero, zero + _ACROSS_INSIDE, zero + _ACROSS)
    lost = across * across * dot(v, v) + _LOST * _LOST * terms
    return where_greater(along * along, lost, zero + 1.0, zero)


@inlined
def overlaps(gap: Any) -> Any:
    """1 where surfaces are so far inside each other that it takes a while to bring them apart."""
    zero = zero_like(gap)
    return where_greater(zero - _SLOW * RECOVERY, gap, zero + 1.0, zero)


# ------------------------------------------------------------------ the gap


@inlined
def is_stuck(gap: Any, reach: Any) -> Any:
    """1 where what is inside would stay there however far the dofs turn, of which reach is Σ |J|."""
    zero = zero_like(gap)
    return where_greater(-gap, _FARTHEST * reach, zero + 1.0, zero)


@inlined
def second_order(h: Any, drift: Any) -> Any:
    """What a gap's second derivative, at the forces at hand and without impulses, adds to its rate over the step: of
    that only what closes the gap counts."""
    return 0.5 * h * least(drift, zero_like(drift))


# ------------------------------------------------------------------ restitution


@inlined
def slowest_bounce(e: Any) -> Any:
    """The arrival below which nothing bounces [m/s]: else nothing came to rest, as what loses nothing never does."""
    return _SLOWEST_BOUNCE * max(min(1.0, (1.0 - e) / _LASTING), _ROUNDING)


@inlined
def bounce_margin(gap: Any, e: Any, rate: Any, h: Any) -> Any:
    """From 0 where what closes at -rate is met in this step, and fast enough to bounce [m/s or m]."""
    zero = zero_like(gap)
    return least(-rate - slowest_bounce(e), -(where_greater(zero, gap, zero, gap) + h * rate))


@inlined
def rebound(gap: Any, N: Any, gravity: Any, e: Any, rate: Any) -> Any:
    """The speed at which what closes at -rate opens after it is met; of floats.

    Newton's law e at the surface, taken to where the body is when it turns round: it keeps the height it has there, so
    that e² of the height it fell from is what it comes back to, and no step length adds to it.
    """
    gap = max(gap, 0.0)
    fall = max(-(N[0] * gravity[0] + N[1] * gravity[1] + N[2] * gravity[2]), 0.0)
    square = e * e * rate * rate - 2.0 * (1.0 - e * e) * fall * gap
    return math.sqrt(max(square, 0.0))


# ------------------------------------------------------------------ energy


@inlined
def does_work(work: Any, size: Any) -> Any:
    """1 where impulses gain from the mean of the velocities before and after them; size: of the terms of `work`."""
    zero = zero_like(work)
    return where_greater(work, _WORK * size, zero + 1.0, zero)


@inlined
def brings_apart(rate: Any, gap: Any) -> Any:
    """1 where a row brings back what is inside, at this share of the gap per second, fast enough to matter."""
    zero = zero_like(gap)
    return where_greater(-rate * gap, zero + _SLOW, zero + 1.0, zero)


@inlined
def is_thrown(fastest: Any) -> Any:
    """1 where a dof is faster than what is inside may be brought apart."""
    zero = zero_like(fastest)
    return where_greater(fastest, zero + _PARTING, zero + 1.0, zero)


# ------------------------------------------------------------------ softness


@inlined
def stiffness_and_damping(time: Any, ratio: Any, most: Any, h: Any) -> Any:
    """K [1/s²] and B [1/s] of a solref; most: of solimp. Times are two steps at least (MuJoCo: modeling chapter, Solver
    parameters)."""
    if time > 0.0:
        time = max(time, 2.0 * h)
        return 1.0 / (most * most * time * time * ratio * ratio), 2.0 / (most * time)
    return -time / (most * most), -ratio / most


@inlined
def held_beyond(slack: Any, cfm: Any, start: Any) -> Any:
    """By how much a friction row of this softness would give way under the last step's impulse beyond what `slack` of
    it allows [m/s]: friction is less soft than the cone that it is solved in."""
    return (1.0 - slack) * cfm * start
