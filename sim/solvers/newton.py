"""The default solver: a proximal Newton method on velocities, exact for hard and soft rows and friction cones together.

A step asks for the change x of the velocities u with M̂ x = f + Jᵀλ and, for every row, its velocity J (u + x) + bias +
cfm λ complementary to λ in its bounds or its cone. Outer iterations are the method of multipliers (proximal point,
Rockafellar 1976): a row may deviate by ε (λ - λ_k), and λ_k becomes λ. That converges fast for ε far below J M̂⁻¹ Jᵀ,
also for redundant rows. With λ_k fixed the step is the minimum of a convex function, found by Newton steps:
multipliers.py.

Coulomb friction is a cone |λ_t| ≤ μ λ_n with De Saxcé's shift: the normal velocity carries μ |v_t|, which the outer
iterations hold fixed, so that the inner problem stays convex (Acary, Cadoux, Lemaréchal, Malick 2011): shift.py.
Contacts that stick or slide independently converge in a step or two; several that slide together take coulomb.py. What
that does not solve either may have no solution: bodies wedged by friction cannot be separated. strategies.py lists what
is tried, in order.

Islands, rows and dofs that nothing couples to others, are solved separately (elimination.py).

Impulses that a stiff drive transmits through light links lose the digits of their velocities: ε falls where rounds
converge slowly, and a row's residual is measured beyond the rounding of its impulse (tolerance.py).
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.foundation.jit import njit
from artsim.sim.run_data.run_records import ITERATIONS, RESIDUAL
from artsim.sim.run_data.scratch import ISLANDS, NEWTON_STEPS
from artsim.sim.solvers.attempts import count_cones, note_start
from artsim.sim.solvers.elimination import find_structure, one_island
from artsim.sim.solvers.multipliers import iterate, prepare_island
from artsim.sim.solvers.strategies import settle_island, settle_rows

_STEPS = 100  # Newton steps at most without M̂ as a matrix; two to six are the rule


@njit
def newton(robot: Any, rows: Any, step: Any, solver: Any, contacts: Any) -> None:
    """Change step.next (nu,) from u to u + x [rad/s or m/s] and rows.impulse (rows,) from its warm start to λ [N s or N
    m s].

    Where solver.tree or solver.graph is not None, this scratch of propagation or direct does the linear algebra instead
    (data.factor is then not read, and contacts get convex steps only: see solve.py for the rest); which one is decided
    at compile time.

    contacts: None where no row is a contact's, so that the code for these is left out.

    step.free (nu,): the impulse of all other forces. data.factor holds M̂, the lower triangle over the model's
    elimination tree, not factorised. rows.report: the number of Newton steps (the most of any island), the rows'
    residual [rad/s or m/s].
    """
    model = robot.model
    work = solver.newton
    if solver.tree is None and solver.graph is None:
        find_structure(model, rows, work, False, False)
    else:
        one_island(model, rows, work)
    for k in range(work.sizes[ISLANDS]):
        work.factorised[k] = 0
        prepare_island(model, robot.data, rows, step.next, solver, k)
    _settle_islands(robot, rows, step, solver, contacts)


@njit
def newton_again(robot: Any, rows: Any, step: Any, solver: Any, contacts: Any) -> None:
    """Continue from where `newton` ended, with rows.bias changed since; u holds its velocities."""
    work = solver.newton
    anew = rows.report[RESIDUAL] > UNSOLVED
    for a in range(step.next.shape[0]):
        step.next[a] = step.next[a] - work.change[a]
    for k in range(work.sizes[ISLANDS]):
        if anew or count_cones(rows, work, k) > 0:
            work.factorised[k] = 0
            prepare_island(robot.model, robot.data, rows, step.next, solver, k)
        else:
            for q in range(work.unit_start[k], work.unit_start[k + 1]):
                n = work.listed[q]
                work.velocity[n] = rows.bias[n]
                for e in range(rows.start[n], rows.stop[n]):
                    work.velocity[n] = work.velocity[n] + rows.value[e] * (
                        step.next[rows.column[e]] + work.change[rows.column[e]]
                    )
    _settle_islands(robot, rows, step, solver, contacts)


@njit
def _settle_islands(robot: Any, rows: Any, step: Any, solver: Any, contacts: Any) -> None:
    """Find x and λ island by island, then u."""
    work = solver.newton
    most = 0
    rows.report[RESIDUAL] = 0.0
    for k in range(work.sizes[ISLANDS]):
        work.sizes[NEWTON_STEPS] = 0
        if solver.tree is None and solver.graph is None:
            if contacts is None:
                left = settle_rows(robot, rows, step, solver, k)
            else:
                left = settle_island(robot, rows, step, solver, k)
        else:
            note_start(rows, work, k)
            left, _ = iterate(robot, rows, step, solver, k, _STEPS, True, False)
        rows.report[RESIDUAL] = max(rows.report[RESIDUAL], left)
        most = max(most, work.sizes[NEWTON_STEPS])
    rows.report[ITERATIONS] += most
    for a in range(step.next.shape[0]):
        step.next[a] = step.next[a] + work.change[a]
