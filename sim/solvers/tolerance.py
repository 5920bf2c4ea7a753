"""Decides when rows count as solved, and which impulses count as a solution.

The residual of rows is a velocity [rad/s or m/s]: the motion of the rows when impulses and velocities are made
consistent. The residual is compared with a tolerance that follows from the island's largest velocity and from the
digits of its impulses. Impulses are in N s or N m s.
"""

from __future__ import annotations

from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.foundation.scalars import inverse_or_zero, largest, least
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NewtonWork

TOLERANCE = 1e-14  # relative to the largest velocity: rounding of velocities
AT_REST = 32.0  # times the velocity that forces alone would add in the step to a dof at rest, at most 1 [rad/s or m/s]
ENOUGH = 1e4  # tolerances that may remain where nothing improves
UNTRIED = 1e300  # [rad/s or m/s] residual of rows that have not been tried, or not successfully
CONTRADICTION = 1e301  # [rad/s or m/s] residual of rows whose impulses grew without bound
# [rad/s or m/s] by which an impulse would move its row alone if rows contradict each other; a drive of 1e8 N m/rad
# against a light link pulls by 1e10
ABSURD = 1e13
UNBOUNDED = 1e300  # [N s or N m s] the natural impulse of rows that may press without bound
_ROUNDING = 1e-22  # rounding of the largest pull, divided by ENOUGH, as a share of that pull
_LARGEST_PULL = 1e11  # [rad/s or m/s] of a stiff drive that presses on a light link; no more is taken for rounding
_NATURAL_CHANGE = 30.0  # largest expected motion of rows by impulses of contacts, as a multiple of the largest velocity


@inlined
def is_solved(left: float, tolerance: float) -> bool:
    """True if the residual `left` of rows is as good as it gets, both in rad/s or m/s."""
    return left <= ENOUGH * tolerance


@njit
def largest_speed(u: Lanes1, work: NewtonWork, island: int) -> Real:
    """The velocity that sets the scale of rounding in the island, a T: the largest of its dofs' [rad/s or m/s] at the
    start u (nu,) or the end u + x of the step, at least that of a dof that starts from rest.
    """
    size = work.resting[island]
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            size = largest(size, largest(absolute(u[a]), absolute(u[a] + work.change[a])))
    return size


@njit
def tolerance_of(rows: Rows, u: Lanes1, work: NewtonWork, island: int) -> Real:
    """The tolerance of the rows of the island [rad/s or m/s]: rounding of velocities, or of the effects of impulses."""
    return largest(rounding(rows, work, island), TOLERANCE * largest_speed(u, work, island))


@njit
def rounding(rows: Rows, work: NewtonWork, island: int) -> Real:
    """The tolerance [rad/s or m/s] of which ENOUGH equal the rounding of the island's impulses."""
    return rounding_of(largest_pull(rows, work, island))


@inlined
def rounding_of(pull: Real) -> Real:
    """The tolerance [rad/s or m/s] of which ENOUGH equal the rounding of impulses with this largest pull [rad/s or
    m/s]."""
    return _ROUNDING * least(pull, zero_like(pull) + _LARGEST_PULL)


@njit
def largest_pull(rows: Rows, work: NewtonWork, island: int) -> Real:
    """The largest velocity that an impulse of the island would give its row alone, about [rad/s or m/s]."""
    most = zero_like(work.change[0])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = largest(absolute(rows.impulse[row]) * inverse_or_zero(work.rho[row]), most)
    return most


@njit
def largest_impulse(rows: Rows, work: NewtonWork, island: int) -> Real:
    """The largest impulse of the island's rows [N s or N m s]."""
    most = zero_like(work.change[0])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = largest(absolute(rows.impulse[row]), most)
    return most


@njit
def natural_impulse(data: Workspace, rows: Rows, step: Step, work: NewtonWork, island: int, tolerance: Real) -> Real:
    """The largest impulse to be expected in the island [N s or N m s], from loads, motion and previous impulses.

    Friction can hold a body by arbitrarily large forces (a ball between floor and wall): impulses beyond the demand of
    loads and motion are no solution. Rows other than contacts, of a stiff drive or a limit, may press without bound.
    """
    zero = zero_like(work.change[0])
    before, others = zero, zero
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] != CONTACT_ROW:
            others = where_greater(rows.upper[n], rows.lower[n], zero + UNBOUNDED, others)
        for row in range(n, n + max(rows.cone[n], 1)):
            before = largest(absolute(work.first[row]), before)
    return others + largest(demanded_impulse(rows, data, step, work, island, tolerance), 2.0 * before)


@njit
def demanded_impulse(rows: Rows, data: Workspace, step: Step, work: NewtonWork, island: int, tolerance: Real) -> Real:
    """The largest impulse to be expected in the island [N s or N m s], from loads and motion alone."""
    heaviest = zero_like(work.change[0])
    momentum = zero_like(work.change[0])
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW:
            heaviest = largest(work.rho[n], heaviest)
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            momentum = largest(absolute(step.free[a]) + data.factor[a, a] * absolute(step.next[a]), momentum)
    return (_NATURAL_CHANGE / TOLERANCE) * tolerance * heaviest + 2.0 * momentum
