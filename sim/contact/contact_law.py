"""The laws of contact as small functions of values of type T: floats for one robot, packs of 8 values for a pack.

The gap between two surfaces [m], along the normal N from the first body to the second, must not close; it opens at J v
[m/s]. contact_rows.py builds rows from these laws in both widths; detection.py computes the quantities that do not
follow from velocities. A condition that holds in some lanes only is a T that is 1 there and 0 elsewhere.
"""

from __future__ import annotations

from artsim.sim.constraints.row import RECOVERY
from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.lanes import sqrt, where_greater, zero_like
from artsim.sim.foundation.records import ConstReals1, Lanes1, Lanes2, Real, Vec3
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.foundation.vec3 import cross, dot, plus, plus_times

_ACROSS = 1e-7  # sine of the angle to the surface up to which a motion counts as tangential
_ACROSS_INSIDE = 1e-3  # that sine for surfaces that penetrate: links that overlap where they are hinged
_LOST = 1e-11  # share of its terms below which a sum is rounding
_WORK = 1e-6  # share of the sizes of its terms below which the work of an impulse counts as none
_PARTING = 1.0  # [rad] by which penetration may turn a dof in the time of its removal: some of it no joint can separate
_LEVERAGE = 100.0  # times the speed at which penetration is removed: the largest change of a linear dof by the removal
_FARTHEST = 10.0  # [rad or m] farthest motion of a dof
_SLOW = 1e-3  # [m/s] separation speed that does not matter
_SLOWEST_BOUNCE = 0.05  # [m/s] arrival speed below which a contact does not bounce
_LASTING = 0.1  # 1 - e below which slower arrivals do bounce, so that a ball that loses no energy bounces on
_ROUNDING = 1e-3  # share of _SLOWEST_BOUNCE

# ------------------------------------------------------------------ direction of motion


@inlined
def centre_of_curvature(arm: Vec3, N: Vec3, sign: float, distance: Real, rounding: float) -> Vec3:
    """The centre of curvature of a body's surface at the contact, from where `arm` to the contact point starts.

    The point lies midway between the surfaces, which are `distance` apart; sign: 1 for the second body, -1 for the
    first; rounding: the surface's radius, 0 unless the shape is a ball or a capsule.
    """
    return plus_times(arm, sign * (0.5 * distance + rounding), N)


@inlined
def point_velocity(linear: Vec3, angular: Vec3, x: Vec3) -> Vec3:
    """Velocity of the point at x of a body with this velocity at, and angular velocity about, the origin of x."""
    return plus(cross(angular, x), linear)


@inlined
def in_direction(frame: Lanes2, j: int, linear: Vec3, sign: float, angular: Vec3) -> Real:
    """Component of a velocity, `linear` and `sign` times `angular`, in direction j of a contact: along normal and
    tangents, frame's rows, then about them.

    The sign comes last: LLVM joins two branches that are alike, and contracts their products to other FMAs.
    """
    if j < 3:
        return dot(frame[j], linear)
    return sign * dot(frame[j - 3], angular)


@inlined
def parts(N: Vec3, linear: Vec3, angular: Vec3, x: Vec3, inside: Real) -> Real:
    """1 where a dof, with this motion about the origin of x, moves the point at x along N by more than rounding;
    inside: 1 where surfaces penetrate already.
    """
    v = point_velocity(linear, angular, x)
    terms = dot(angular, angular) * dot(x, x) + linear[0] * linear[0] + linear[1] * linear[1] + linear[2] * linear[2]
    along = dot(N, v)
    zero = zero_like(along)
    across = where_greater(inside, zero, zero + _ACROSS_INSIDE, zero + _ACROSS)
    lost = across * across * dot(v, v) + _LOST * _LOST * terms
    return where_greater(along * along, lost, zero + 1.0, zero)


@inlined
def overlaps(gap: Real) -> Real:
    """1 where penetration is so deep that removing it takes several steps."""
    zero = zero_like(gap)
    return where_greater(zero - _SLOW * RECOVERY, gap, zero + 1.0, zero)


# ------------------------------------------------------------------ the gap


@inlined
def is_stuck(gap: Real, reach: Real) -> Real:
    """1 where penetration would remain however far the dofs move; reach is Σ |J|."""
    zero = zero_like(gap)
    return where_greater(-gap, _FARTHEST * reach, zero + 1.0, zero)


@inlined
def second_order(h: float, drift: Real) -> Real:
    """The mean rate that a gap's second derivative, under the present forces without impulses, adds over the step
    [m/s]; only the part that closes the gap counts.
    """
    return 0.5 * h * least(drift, zero_like(drift))


# ------------------------------------------------------------------ restitution


@inlined
def slowest_bounce(e: Real) -> Real:
    """The arrival speed below which contacts do not bounce [m/s]; without this bound, a bouncing body would never come
    to rest."""
    one = zero_like(e) + 1.0
    return _SLOWEST_BOUNCE * largest(least((one - e) / _LASTING, one), _ROUNDING * one)


@inlined
def bounce_margin(gap: Real, e: Real, rate: Real, h: float) -> Real:
    """At least 0 if a contact that closes at -rate is met in this step, fast enough to bounce [m/s or m]."""
    zero = zero_like(gap)
    return least(-rate - slowest_bounce(e), -(where_greater(zero, gap, zero, gap) + h * rate))


@inlined
def rebound(gap: Real, N: Lanes1, gravity: ConstReals1, e: Real, rate: Real) -> Real:
    """The speed at which a contact that closes at -rate opens after the impact.

    Newton's law with e holds at the surface and is transferred to the height at which the body turns round. The body
    keeps this height, so that it returns to e² of the height from which it fell, for any time step.
    """
    zero = zero_like(gap)
    gap = largest(gap, zero)
    fall = largest(-dot(N, gravity), zero)
    square = e * e * rate * rate - 2.0 * (1.0 - e * e) * fall * gap
    return sqrt(largest(square, zero))


# ------------------------------------------------------------------ energy


@inlined
def does_work(work: Real, size: Real) -> Real:
    """1 where impulses do positive work on the mean of the velocities before and after; size: of the terms of
    `work`."""
    zero = zero_like(work)
    return where_greater(work, _WORK * size, zero + 1.0, zero)


@inlined
def brings_apart(rate: Real, gap: Real) -> Real:
    """1 where a row that removes penetration at this share per second does so fast enough to matter."""
    zero = zero_like(gap)
    return where_greater(-rate * gap, zero + _SLOW, zero + 1.0, zero)


@inlined
def is_thrown(change: Real, opening: Real, linear: int) -> Real:
    """1 where the velocity of a dof changes by more than the removal of penetration, which opens at this speed, may
    change it.
    """
    zero = zero_like(change)
    most = _LEVERAGE * opening if linear == 1 else zero + _PARTING / RECOVERY
    return where_greater(change, most, zero + 1.0, zero)


# ------------------------------------------------------------------ softness


@inlined
def held_beyond(slack: float, cfm: Real, start: Real) -> Real:
    """The velocity by which a friction row of this softness would yield under the last step's impulse, less the share
    `slack` that is allowed [m/s]: friction is stiffer than the cone in which it is solved.
    """
    return (1.0 - slack) * cfm * start
