"""Accelerated nonsmooth Gauss-Seidel for crowds: hundreds to thousands of contacts whose matrix would take too long.

An iteration visits all units twice (Jean 1999). A contact's three rows get the impulse that satisfies Coulomb's law
exactly at the current velocities of its two bodies (Bonnefon and Daviet 2011 list the cases); other units take a
projection step. The motion of λ in the two sweeps is then combined with the motions of earlier iterations so that the
least motion is left (Anderson 1965; Walker and Ni 2011), and the result is projected onto the cones. Where this mixture
does not help, sweeps go on without it for a while. J M̂⁻¹ Jᵀ is never formed: an iteration costs O(contacts) for any
connections. Units are visited by colours, none of which moves a body twice, WIDTH abreast (crowd_order.py); that takes
as many iterations as the order in which they are listed, or a few fewer. Visits are in crowd_visits.py, over the law of
crowd_law.py and the products of crowd_matrix.py and crowd_lanes.py; the mixture is in crowd_mixture.py.

Sweeps alone reduce the residual of softness ε, relative to a contact's mobility, by a share of about ε; mixed, by the
root of ε. Measured on 216 to 1000 spheres and boxes poured into a box, friction 0.5, warm: 50 iterations to 1e-7 m/s at
ε = 0.01 (sweeps alone: 400), 20 at 0.1, 180 at 0.001; cold 100 to 260. Several contacts of two bodies count as one:
with ε for each of them, boxes take twice as many. An iteration takes longest where contacts slide. Without ε these
heaps take more than 10,000 sweeps: the impulses that wedge them build up slowly. Conjugate gradients on the sweeps
(Silcowitz, Niebe, Erleben 2010), ADMM, Newton's method on each convex problem of De Saxcé's shift, and on the law
itself, all stall at 1e-4 m/s there. Sweeps forwards and backwards took a fifth more time, and did not converge on a
castle of sand.

Impulses are in N s or N m s, velocities of rows in rad/s or m/s; a unit is identified by its first row, n.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import MIXED, NEWTON_STEPS, NewtonWork, SolverBundle
from artsim.sim.solvers.attempts import begin, restart
from artsim.sim.solvers.crowd_matrix import begin_crowd, end_crowd
from artsim.sim.solvers.crowd_mixture import copy, measure, mix, remember
from artsim.sim.solvers.crowd_visits import residual, set_impulses, sweep
from artsim.sim.solvers.tolerance import UNTRIED

SOLVED_CROWD = 0.1 * UNSOLVED  # [rad/s or m/s] residual at which iterations end
SOLVED_FEW = 1e-3 * UNSOLVED  # [rad/s or m/s] residual at which iterations end for islands that are no crowds
_HARD_ITERATIONS = 300  # in all rounds with contacts as hard as they are
_PROXIMAL = 0.01  # ε of the first round, relative to a row's mobility
_HARDER = 0.1  # factor on ε in every further round
_LONGER = 3.0  # iterations of a further round, as a multiple of those of the round before
_WINDOW = 20  # iterations in which a mixture must help: else as many go without it, then twice as many
_PROGRESS = 0.5  # share of the motion that a mixture may leave at most in these iterations
_RISING = 2.0  # a mixture is taken back if the next pair of sweeps moves λ by more than this multiple of the last one


@njit
def solve_hard_crowd(
    model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int
) -> tuple[float, bool]:
    """Solve Coulomb's law of the island, a crowd, with contacts as hard as they are, by the proximal point method:
    rounds with ever smaller ε, each about the impulses of the one before. Returns the residual [rad/s or m/s], and True
    if the island is solved.

    Turn: first; every 64 steps where contacts are regularised. Costs: 300 iterations. Gives up: after these, or where
    the next round would take more. Needed by test_crowd.py::test_what_newton_solves_comes_out_the_same.
    """
    work = solver.newton
    restart(model, data, rows, step, solver, island)
    share, steps, left = _PROXIMAL, 0, UNTRIED
    while True:
        _set_proximal(rows, work, island, share)
        before = work.sizes[NEWTON_STEPS]
        left = sweep_crowd(model, data, rows, work, island, SOLVED_CROWD, _HARD_ITERATIONS - steps)
        taken = work.sizes[NEWTON_STEPS] - before
        if left > SOLVED_CROWD:
            return left, False
        left = max(_give(rows, work, island), left)
        if left <= SOLVED_CROWD:
            return left, True
        steps += taken
        if steps + int(_LONGER * taken) >= _HARD_ITERATIONS:
            return left, False
        share = _HARDER * share
        begin(model, data, rows, step, solver, island)


@njit
def has_hard_contacts(rows: Rows, work: NewtonWork, island: int) -> bool:
    """True if any contact of the island has no compliance of its own."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if rows.kind[n] == CONTACT_ROW and work.given[n] <= 0.0:
            return True
    return False


@njit
def _set_proximal(rows: Rows, work: NewtonWork, island: int, share: float) -> None:
    """Set ε of the hard rows of the island, which have one, to a share of their mobility."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if work.eps[n] > 0.0:
            for row in range(n, n + max(rows.cone[n], 1)):
                work.eps[row] = share * inverse_or_zero(work.rho[n])


@njit
def _give(rows: Rows, work: NewtonWork, island: int) -> float:
    """The largest velocity by which rows of the island yield since λ is not λ_k [rad/s or m/s]."""
    most = 0.0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            most = max(work.eps[row] * abs(rows.impulse[row] - work.centre[row]), most)
    return most


# ------------------------------------------------------------------ the iteration


@njit
def sweep_crowd(
    model: Model, data: Workspace, rows: Rows, work: NewtonWork, island: int, tolerance: float, most: int
) -> float:
    """Iterate on the rows of the island, `most` times at most, from x = 0 and its λ; work.gradient holds -f - Jᵀλ.

    The rows' law has their cfm and the proximal term of work.eps and work.centre. Returns its residual [rad/s or m/s];
    x, work.velocity and λ are consistent. Iterations are added to work.sizes[NEWTON_STEPS].
    """
    parent = model.independent_parent
    visits, places = begin_crowd(model, data, rows, work, island)
    left = residual(parent, rows, work, visits)
    differences, last = 0, -1.0  # number of differences in the mixture; motion of the last sweeps, -1: not comparable
    plain, rest = False, _WINDOW  # True while iterations go without a mixture; for how many iterations
    bar, since = UNTRIED, 0  # motion of the sweeps before these iterations, and the number of iterations since
    steps = 0
    while steps < most and left > tolerance:
        steps += 1
        copy(work.impulse, work.motion, places)
        for _ in range(2):
            sweep(parent, rows, work, visits)
        moved, most_moved = measure(work, places)
        if most_moved <= tolerance:
            left = residual(parent, rows, work, visits)
            if left <= tolerance:
                break
        since += 1
        if since == (rest if plain else _WINDOW):
            rest = 2 * rest if plain else rest
            plain = not plain and moved > _PROGRESS * bar
            bar, since = moved, 0
            if plain:
                differences, last = 0, -1.0
        if plain:
            continue
        if last >= 0.0 and moved > _RISING * last:
            copy(work.result, work.wanted, places)
            set_impulses(parent, rows, work, visits)
            differences, last = 0, -1.0
            continue
        if last >= 0.0:
            remember(work, places, differences)
            differences += 1
        copy(work.motion, work.last_motion, places)
        copy(work.impulse, work.result, places)
        last = moved
        if differences > 0 and steps < most:
            mix(work, places, min(differences, MIXED))
            set_impulses(parent, rows, work, visits)
    if steps == most:
        left = residual(parent, rows, work, visits)
    end_crowd(model, rows, work, island, visits)
    work.sizes[NEWTON_STEPS] += steps
    return left
