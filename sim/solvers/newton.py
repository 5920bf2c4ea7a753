"""The default solver: a proximal Newton method on velocities, exact for hard and soft rows and friction cones together.

A step asks for the change x of the velocities u with M̂ x = f + Jᵀλ and, for every row, its velocity J (u + x) + bias +
cfm λ complementary to λ in its bounds or its cone. Outer iterations are the method of multipliers (proximal point,
Rockafellar 1976): a row may deviate by ε (λ - λ_k), and λ_k becomes λ. They converge fast for ε far below J M̂⁻¹ Jᵀ,
also for redundant rows. With λ_k fixed the step is the minimum of a convex function, found by Newton steps:
multipliers.py.

Coulomb friction is a cone |λ_t| ≤ μ λ_n with De Saxcé's shift: the normal velocity carries μ |v_t|, which the outer
iterations hold fixed, so that the inner problem stays convex (Acary, Cadoux, Lemaréchal, Malick 2011): shift.py.
Contacts that stick or slide independently converge in a step or two; several that slide together take coulomb.py. Rows
that coulomb.py does not solve either may have no solution: bodies wedged by friction cannot be separated. strategies.py
lists all strategies, in order.

Islands, groups of rows and dofs that no row or body couples to others, are solved separately (elimination.py).

Impulses that a stiff drive transmits through light links lose the digits of their velocities: ε falls where rounds
converge slowly, and a row's residual is measured beyond the rounding of its impulse (tolerance.py).
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.foundation.atomic import take_next
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, LARGE, RESIDUAL, Rows, Step
from artsim.sim.run_data.scratch import (
    BEGIN,
    BEGIN_ANEW,
    GO_ON,
    ISLANDS,
    LARGEST,
    NEWTON_STEPS,
    TURN,
    NewtonWork,
    SolverBundle,
)
from artsim.sim.solvers.attempts import count_cones
from artsim.sim.solvers.elimination import find_structure
from artsim.sim.solvers.multipliers import prepare_island
from artsim.sim.solvers.strategies import settle_island, settle_rows

_HUGE = 1e6  # [rad/s or m/s] pull of impulses from which a step that is solved again does not start
_SHARED = 500  # units outside the largest island above which a solution of islands side by side pays


@njit
def newton(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, contacts: bool | None) -> None:
    """Change step.next (nu,) from u to u + x [rad/s or m/s] and rows.impulse (rows,) from its warm start to λ [N s or N
    m s].

    contacts: None where no row is a contact's, so that the code for these is left out.

    step.free (nu,): the impulse of all other forces. data.factor holds M̂, the lower triangle over the model's
    elimination tree, not factorised. rows.report: the number of Newton steps (the most of any island), the rows'
    residual [rad/s or m/s].
    """
    work = solver.newton
    work.again[0] = BEGIN
    find_structure(robot.model, rows, work, False, False)
    _settle_islands(robot, rows, step, solver, contacts)
    note_large_pulls(rows, work)


@njit
def note_large_pulls(rows: Rows, work: NewtonWork) -> None:
    """rows.report[LARGE] = 1 where an impulse is so large that f + Jᵀλ, from which a solution starts, loses digits of
    velocities, else 0.
    """
    rows.report[LARGE] = 0.0
    for n in range(rows.number[ALL_ROWS]):
        if abs(rows.impulse[n]) > _HUGE * work.rho[n]:
            rows.report[LARGE] = 1.0


@njit
def newton_again(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, contacts: bool | None) -> None:
    """Continue from where `newton` ended, with rows.bias changed since; u holds its velocities."""
    begin_again(rows, step, solver.newton)
    _settle_islands(robot, rows, step, solver, contacts)


@njit
def begin_again(rows: Rows, step: Step, work: NewtonWork) -> None:
    """Restore the velocities from which the last solution started; work.change holds the change that it made."""
    work.again[0] = BEGIN_ANEW if rows.report[RESIDUAL] > UNSOLVED else GO_ON
    for a in range(step.next.shape[0]):
        step.next[a] = step.next[a] - work.change[a]


@njit
def _settle_islands(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, contacts: bool | None) -> None:
    """Find x and λ island by island, then u. Other threads, if there are any, help if that pays."""
    work = solver.newton
    work.taken[TURN] = 0
    work.taken[LARGEST] = 0
    helped = connected(work.start_helpers) and _find_largest(work) >= _SHARED
    if helped:
        run_entry(work.start_helpers)
    take_islands(robot, rows, step, solver, contacts)
    if helped:
        run_entry(work.await_helpers)
    rows.report[ITERATIONS] += work.sizes[NEWTON_STEPS]
    for a in range(step.next.shape[0]):
        step.next[a] = step.next[a] + work.change[a]


@njit
def _find_largest(work: NewtonWork) -> int:
    """Set work.taken[LARGEST]; return the number of units outside that island."""
    most = 0
    for island in range(work.sizes[ISLANDS]):
        units = work.unit_start[island + 1] - work.unit_start[island]
        if units > most:
            work.taken[LARGEST] = island
            most = units
    return work.unit_start[work.sizes[ISLANDS]] - most


@njit
def take_islands(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, contacts: bool | None) -> None:
    """Find x and λ of one island after the other that no thread has taken yet, the largest first.

    rows.report[RESIDUAL] and work.sizes[NEWTON_STEPS] get the largest values of any of these islands. The result of an
    island depends neither on other islands nor on earlier content of this scratch.
    """
    work = solver.newton
    most = 0
    rows.report[RESIDUAL] = 0.0
    turn = take_next(work.taken)
    while turn < work.sizes[ISLANDS]:
        k = turn if turn > work.taken[LARGEST] else turn - 1
        k = work.taken[LARGEST] if turn == 0 else k
        begin_island(robot, rows, step, solver, k)
        work.sizes[NEWTON_STEPS] = 0
        if contacts is None:
            left = settle_rows(robot, rows, step, solver, k)
        else:
            left = settle_island(robot, rows, step, solver, k)
        rows.report[RESIDUAL] = max(rows.report[RESIDUAL], left)
        most = max(most, work.sizes[NEWTON_STEPS])
        turn = take_next(work.taken)
    work.sizes[NEWTON_STEPS] = most


@njit
def begin_island(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int) -> None:
    """Set the island to x = 0 and its warm start, or to the solution with another bias, if no new start is needed."""
    work = solver.newton
    if work.again[0] != GO_ON or count_cones(rows, work, island) > 0:
        work.factorised[island] = 0
        prepare_island(robot.data, rows, step, solver, island)
        return
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        work.velocity[n] = rows.bias[n]
        for e in range(rows.start[n], rows.stop[n]):
            work.velocity[n] = work.velocity[n] + rows.value[e] * (
                step.next[rows.column[e]] + work.change[rows.column[e]]
            )
