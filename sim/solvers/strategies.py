"""The strategies of the newton solver, tried on an island in this order until one of them solves it.

| strategy            | trigger                                   | costs at most                    |
|---------------------|-------------------------------------------|----------------------------------|
| `_slide_on`         | contacts slid in the last step and still  | 8 Coulomb steps, 20 sweeps where |
|                     | do; free bodies roll: several contacts,   | bodies roll                      |
|                     | with no more rows than dofs               |                                  |
| `_convex`           | always; of bodies that roll the first and | 100 Newton steps; with contacts  |
|                     | the last one                              | 30, first of a robot 8, of       |
|                     |                                           | bodies that roll 2               |
| `_share`            | that is solved, contacts slip, and rows   | 60 Coulomb steps                 |
|                     | leave their loads open                    |                                  |
| `_coulomb`          | always                                    | 500 sweeps, 120 Coulomb steps;   |
|                     |                                           | 60 more where loads are open     |
| regularise_crowd    | more than 60 units of free bodies         | 900 iterations of crowd.py       |
| regularise          | at most 60 units                          | 200 sweeps, 120 Coulomb steps    |
| `_keep_penetration` | the same, and a row separates bodies      | the first three, fewer attempts  |
| sink                | always                                    | 200 sweeps, 120 Coulomb steps    |
| `_sweep_long`       | at most 60 units, no contradiction        | 2000 sweeps, 300 Coulomb steps   |
| `_freeze_shifts`    | always; the last one                      | 200 sweeps, 200 Newton steps     |

A crowd (elimination.py: more than 300 units of more than 100 bodies) is solved by crowd.py alone: `solve_hard_crowd`,
then `regularise_crowd`, with at most 1200 iterations of O(contacts) together.

The docstring of a strategy gives its method, its turn, its highest cost, the condition on which it gives up, and the
test that fails without it. A Newton step costs a factorisation of the island's matrix, a Coulomb step one without
symmetry, a sweep O(contacts). Every strategy returns the residual of the rows [rad/s or m/s], most of them also True if
the island is solved.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import BEGIN, NEWTON_STEPS, NewtonWork, SolverBundle
from artsim.sim.solvers.attempts import (
    CLOSE,
    FAR,
    RESTING,
    SLIDING_STEPS,
    attempt,
    begin,
    count_cones,
    is_articulated,
    note_start,
    restart,
)
from artsim.sim.solvers.blocks import times_inertia
from artsim.sim.solvers.coulomb import balance, coulomb
from artsim.sim.solvers.crowd import has_hard_contacts, solve_hard_crowd
from artsim.sim.solvers.delassus import MOST_PULL
from artsim.sim.solvers.impulses import set_gradient
from artsim.sim.solvers.loads import is_redundant, loads_are_open, rub
from artsim.sim.solvers.multipliers import iterate
from artsim.sim.solvers.nsgs import sweep_island
from artsim.sim.solvers.regularisation import (
    is_retried,
    mark_regularised,
    regularise,
    regularise_crowd,
    steps_regularised,
)
from artsim.sim.solvers.shift import drop_large_shifts, farthest_shift, slides, wanted_shift
from artsim.sim.solvers.tolerance import (
    CONTRADICTION,
    TOLERANCE,
    UNBOUNDED,
    UNTRIED,
    is_solved,
    largest_pull,
    largest_speed,
    natural_impulse,
    tolerance_of,
)

_FEW = 60  # units: with more, some attempts would take too long

_SWEEPS = 20  # of `_slide_on` for free bodies: more cost as much as the Coulomb steps that they save

# `_convex`: Newton steps at most
_STEPS_OF_ROWS = 40  # without contacts, if other strategies are tried afterwards
_STEPS_WITHOUT_CONTACTS = 400  # without contacts, if no other strategy is
_STEPS_OF_ONE = 100  # with one contact, whose shift is bracketed
_STEPS_OF_CONTACTS = 30
_STEPS_OF_ROLLING = 2  # where all may stick as before
_STEPS_OF_ROBOT = 8  # of several contacts before `_coulomb`, which has more steps in hand there; then once more

# `_coulomb`: efforts of its attempts, one after the other
_SHARING = (60, CLOSE, False, False, True)  # of `_share`, too
_EFFORTS = ((100, 20, CLOSE), (0, 60, FAR), (400, 40, FAR))
_WITHOUT_SWEEPS = (0, 20, CLOSE)  # first effort for articulated islands
_MANY_ATTEMPTS = 2  # at most with more than _FEW units

# where contacts cannot be solved as hard ones
_SINKING = 0.1  # [m/s] fastest sinking of regularised contacts
_ATTEMPTS_INSIDE = 2  # of `_coulomb` in `_keep_penetration`
_LONG_EFFORT = (2000, 300, FAR)  # of `_sweep_long`
_LAST_SWEEPS = 200  # of `_freeze_shifts`, before its Newton steps
_LAST_STEPS = 100  # of its Newton steps, twice


@njit
def settle_island(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int) -> float:
    """Find x and λ of the island by the first strategy that solves it; return the residual of its rows [rad/s or m/s].

    Contacts that have been regularised are tried as hard ones again only now and then.
    """
    work = solver.newton
    note_start(rows, work, island)
    if work.crowded[island] == 1:
        return _settle_crowd(robot.model, robot.data, rows, step, solver, island)
    steps = steps_regularised(rows, work, island)
    few = work.unit_start[island + 1] - work.unit_start[island] <= _FEW
    if is_retried(steps, False):
        left, solved = _solve_as_hard(robot, rows, step, solver, island, len(_EFFORTS))
        if solved:
            mark_regularised(rows, work, island, 0)
            return left
    if not few and not is_articulated(robot.model, work, island):
        return regularise_crowd(robot.model, robot.data, rows, step, solver, island)
    tolerance = tolerance_of(rows, step.next, work, island)
    if few:
        left = regularise(robot, rows, step, solver, island, tolerance, 0.0)
        if is_solved(left, tolerance):
            return left
        left, solved = _keep_penetration(robot, rows, step, solver, island)
        if solved:
            mark_regularised(rows, work, island, steps + 1)
            return left
        tolerance = tolerance_of(rows, step.next, work, island)
    left = regularise(robot, rows, step, solver, island, tolerance, _SINKING)
    if is_solved(left, tolerance):
        return left
    if few and left < CONTRADICTION:
        left = _sweep_long(robot, rows, step, solver, island, tolerance)
        if is_solved(left, tolerance):
            mark_regularised(rows, work, island, 0)
            return left
    left = _freeze_shifts(robot, rows, step, solver, island)
    if left > _SINKING and not is_articulated(robot.model, work, island):
        return regularise_crowd(robot.model, robot.data, rows, step, solver, island)
    return left


@njit
def settle_rows(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int) -> float:
    """Find x and λ of the island, which has no contacts and is no crowd: a convex problem. Return the residual
    [rad/s or m/s]."""
    note_start(rows, solver.newton, island)
    left, _ = _convex(robot, rows, step, solver, island, 0, _STEPS_WITHOUT_CONTACTS)
    return left


@njit
def _settle_crowd(model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int) -> float:
    """Find x and λ of the island, a crowd; return the residual of its rows [rad/s or m/s]."""
    work = solver.newton
    hard = has_hard_contacts(rows, work, island)
    if not hard or is_retried(steps_regularised(rows, work, island), True):
        left, solved = solve_hard_crowd(model, data, rows, step, solver, island)
        if solved:
            if hard or work.again[0] == BEGIN:  # else contacts are soft since they were regularised in this step
                mark_regularised(rows, work, island, 0)
            return left
    return regularise_crowd(model, data, rows, step, solver, island)


# ------------------------------------------------------------------ contacts as hard as they are


@njit
def _solve_as_hard(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, attempts: int
) -> tuple[float, bool]:
    """The first three strategies; return the residual of the island [rad/s or m/s], and True if it is solved."""
    model = robot.model
    work = solver.newton
    cones = count_cones(rows, work, island)
    most = _convex_steps(cones)
    articulated = is_articulated(model, work, island)
    rolling = cones > 1 and not articulated and not is_redundant(rows, work, island)
    sliding = cones > 0 and slides(rows, work, island, RESTING * largest_speed(step.next, work, island)) > 0.0
    if rolling and not sliding:
        left, solved = _convex(robot, rows, step, solver, island, cones, _STEPS_OF_ROLLING)
        if solved:
            return left, True
        restart(model, robot.data, rows, step, solver, island)
    if rolling or sliding:
        left, solved = _slide_on(robot, rows, step, work, island, _SWEEPS if rolling else 0)
        if solved:
            return left, True
        restart(model, robot.data, rows, step, solver, island)
    brief = cones > 1 and (articulated or sliding or rolling)
    if not rolling:
        before = work.sizes[NEWTON_STEPS]
        left, solved = _convex(robot, rows, step, solver, island, cones, _STEPS_OF_ROBOT if brief else most)
        loaded = work.sizes[NEWTON_STEPS] - before > 1  # else by the loads of the step before, shared there
        if solved and (
            not brief or left <= tolerance_of(rows, step.next, work, island)
        ):  # `_coulomb` does better than good
            return _share(robot, rows, step, solver, island, left) if loaded else left, True
    left, solved = _coulomb(robot, rows, step, solver, island, attempts)
    if solved or not brief:
        return left, solved
    restart(model, robot.data, rows, step, solver, island)
    left, solved = _convex(robot, rows, step, solver, island, cones, most)
    return _share(robot, rows, step, solver, island, left) if solved else left, solved


@njit
def _slide_on(
    robot: RobotBundle, rows: Rows, step: Step, work: NewtonWork, island: int, sweeps: int
) -> tuple[float, bool]:
    """Coulomb's law from the impulses of the last step, after `sweeps` sweeps, λ_k following every good step of
    coulomb.py.

    Turn: a contact slid in the last step and still does; without that, after sweeps, free bodies that roll and knock:
    several contacts that determine all impulses. Costs: 8 Coulomb steps and the sweeps. Gives up: after these, or where
    two steps have brought nothing. Needed by test_strategies.py::test_contacts_that_slid_go_on_sliding_in_few_steps and
    test_balls_that_roll_into_each_other_take_few_steps.
    """
    tolerance = TOLERANCE * largest_speed(step.next, work, island)
    set_gradient(rows, step.free, work, island)
    if sweeps > 0:
        sweep_island(robot.model, robot.data, rows, work, island, tolerance, sweeps)
    limit = natural_impulse(robot.data, rows, step, work, island, tolerance)
    left = coulomb(robot, rows, step, work, island, (tolerance, limit), (SLIDING_STEPS, CLOSE, True, sweeps > 0, True))
    return left, is_solved(left, tolerance)


@njit
def _convex(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, k: int, cones: int, most: int
) -> tuple[float, bool]:
    """The method of multipliers with shifts that follow the velocities: for rows without contacts, and for contacts
    that stick or slide each by itself. Contacts share the loads that they hold.

    Turn: always. Costs: `most` Newton steps, 2 to 6 as a rule. Gives up: where those will not be enough, or rows
    contradict each other; rows without contacts count as solved then. Needed by
    test_stuck.py::test_contacts_share_what_they_hold.
    """
    left, ended = iterate(robot, rows, step, solver, k, most, True, cones > 1)
    return left, (cones == 0 and ended) or is_solved(left, tolerance_of(rows, step.next, solver.newton, k))


@njit
def _share(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, left: float) -> float:
    """Coulomb's law from a solution of it that leaves `left`: of those that rows leave open, the one of loads.py.

    Turn: contacts are solved of which some slip or are about to, and whose rows leave loads open; not where a stiff
    drive presses so hard that loads cannot be told apart. Costs: 60 Coulomb steps, 12 as a rule. Gives up: after these,
    or after 15 with the same ε; the solution then stays as it was. Needed by
    test_loads.py::test_pads_that_slip_bear_alike and test_solvers_slip_alike.
    """
    model, data, work = robot.model, robot.data, solver.newton
    shared = largest_pull(rows, work, island) <= MOST_PULL and loads_are_open(rows, work, island) > 0.0
    if not shared or rub(rows, work, island, rows.impulse) <= 0.0:
        return left
    _copy(rows, work, island, rows.impulse, work.solution)
    begin(model, data, rows, step, solver, island)
    tolerance = tolerance_of(rows, step.next, work, island)
    limit = natural_impulse(data, rows, step, work, island, tolerance)
    then = coulomb(robot, rows, step, work, island, (tolerance, limit), _SHARING)
    if is_solved(then, TOLERANCE * largest_speed(step.next, work, island)):  # not by rounding of large impulses alone
        return then
    _copy(rows, work, island, work.solution, rows.impulse)
    begin(model, data, rows, step, solver, island)
    balance(model, data, rows, work, island)
    return left


@inlined
def _copy(rows: Rows, work: NewtonWork, island: int, source: Reals1, target: Reals1) -> None:
    """Copy the entries (rows,) of the island."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            target[row] = source[row]


@njit
def _convex_steps(cones: int) -> int:
    """The number of Newton steps of `_convex` that are worthwhile before `_coulomb`."""
    if cones == 0:
        return _STEPS_OF_ROWS
    return _STEPS_OF_ONE if cones == 1 else _STEPS_OF_CONTACTS


@njit
def _coulomb(
    robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int, attempts: int
) -> tuple[float, bool]:
    """Attempts at Coulomb's law from where the step began, for contacts that slide together: where rows leave loads
    open, one that shares them; then, with loads as they come, one near, after sweeps or, where these are slow, without;
    then from afar; then after more sweeps.

    Turn: always. Costs: 500 sweeps and 120 Coulomb steps, and 60 that share loads. Gives up: after `attempts` attempts,
    or where impulses grow without end. Needed by test_stuck.py::test_arches_stand_by_the_friction_they_need and
    test_loads.py::test_lanes_slip_as_single_runs.
    """
    work = solver.newton
    tolerance = tolerance_of(rows, step.next, work, island)
    limit = natural_impulse(robot.data, rows, step, work, island, tolerance)
    left = UNTRIED
    begin = 0
    restart(robot.model, robot.data, rows, step, solver, island)
    if largest_pull(rows, work, island) <= MOST_PULL and loads_are_open(rows, work, island) > 0.0:
        left = coulomb(robot, rows, step, work, island, (tolerance, limit), _SHARING)
        if is_solved(
            left, TOLERANCE * largest_speed(step.next, work, island)
        ):  # not by rounding of large impulses alone
            return left, True
    if is_articulated(robot.model, work, island):
        begin = 1
        left = attempt(robot, rows, step, solver, island, tolerance, limit, _WITHOUT_SWEEPS)
        if is_solved(left, tolerance):
            return left, True
    many = work.unit_start[island + 1] - work.unit_start[island] > _FEW
    for n in range(begin, min(attempts, _MANY_ATTEMPTS) if many else attempts):
        left = attempt(robot, rows, step, solver, island, tolerance, limit, _EFFORTS[n])
        if is_solved(left, tolerance) or left >= CONTRADICTION:
            break
    return left, is_solved(left, tolerance)


# ------------------------------------------------------------------ contacts without a solution as hard ones


@njit
def _keep_penetration(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, k: int) -> tuple[float, bool]:
    """The first three strategies, with rows that separate nothing and push nothing away before it arrives.

    The velocity 0 then breaks no contact and no limit, and Coulomb's problem has a solution (Klarbring and Pang 1998;
    Acary, Cadoux, Lemaréchal and Malick 2011): otherwise there may be none, as for wedged bodies.

    Turn: a row separates bodies, and units are few. Costs: those of the first three, less 400 sweeps and 40 Coulomb
    steps. Gives up: as they do. Needed by test_contact_hard.py::test_contacts_that_contradict_each_other.
    """
    if not _spare(rows, solver.newton, k):
        return UNTRIED, False
    restart(robot.model, robot.data, rows, step, solver, k)
    return _solve_as_hard(robot, rows, step, solver, k, _ATTEMPTS_INSIDE)


@njit
def _spare(rows: Rows, work: NewtonWork, island: int) -> bool:
    """Clear the bias of hard rows of the island that separate bodies; True if there are any."""
    spared = False
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        if abs(rows.lower[n]) <= 0.0 and -rows.bias[n] > 0.0 and rows.cfm[n] <= 0.0:
            rows.bias[n] = 0.0
            rows.rate[n] = 0.0
            spared = True
    return spared


@njit
def _sweep_long(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, k: int, tolerance: float) -> float:
    """One more attempt at Coulomb's law, with sweeps for as long as it takes, in which any impulse will do.

    Turn: units are few, and their impulses did not grow without end before. Costs: 2000 sweeps and 300 Coulomb steps.
    Gives up: after these. Needed by test_strategies.py::test_long_sweeps_solve_what_nothing_else_does.
    """
    return attempt(robot, rows, step, solver, k, tolerance, UNBOUNDED, _LONG_EFFORT)


@njit
def _freeze_shifts(robot: RobotBundle, rows: Rows, step: Step, solver: SolverBundle, island: int) -> float:
    """The convex problem with shifts as sweeps leave them; if these shifts let contacts sink, once more without them.

    Turn: always; it is the last one, but for free bodies that it leaves as fast as contacts may sink.
    Costs: 200 sweeps and 200 Newton steps. Gives up: never, the residual includes the distance of shifts from those
    wanted. Needed by test_strategies.py::test_what_nothing_solves_is_a_compromise.
    """
    model, data = robot.model, robot.data
    work = solver.newton
    restart(model, data, rows, step, solver, island)
    sweep_island(model, data, rows, work, island, TOLERANCE * largest_speed(step.next, work, island), _LAST_SWEEPS)
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, island, work.change, work.product)
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = rows.impulse[row]
        if rows.cone[n] > 1:
            work.shift[n] = wanted_shift(rows, work, n)
    left = 0.0
    for _ in range(2):
        left, _ = iterate(robot, rows, step, solver, island, _LAST_STEPS, False, False)
        if not drop_large_shifts(rows, work, island):
            break
    return max(farthest_shift(rows, work, island), left)
