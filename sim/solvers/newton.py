"""The default: a proximal Newton method on velocities, exact for hard and soft rows together, friction cones too.

A step asks for the change x of the velocities u with M̂ x = f + Jᵀλ and, for every row, its velocity J (u + x) + bias
+ cfm λ complementary to λ in its bounds or its cone. Outer iterations are the method of multipliers (proximal point,
Rockafellar 1976): a row may differ by ε (λ - λ_k) and λ_k becomes λ. That converges fast for ε far below J M̂⁻¹ Jᵀ, for
rows that say the same thing twice too. With λ_k fixed λ is a function of x, the projection on the bounds of
(ε λ_k - velocity) / (cfm + ε), and the step is the minimum of a convex, piecewise quadratic function of x: Newton with
an exact line search (so for soft rows alone: Todorov 2014, Castro 2022). Its matrix is M̂ + Jᵀ D J, which has the tree's
sparsity but for what a row ties across branches; D is 1 / (cfm + ε) where a row is within its bounds, else 0.

Coulomb's friction is a cone |λ_t| ≤ μ λ_n with De Saxcé's shift: the normal velocity carries μ |v_t|, which the outer
iterations hold fixed, so that the inner problem stays convex (Acary, Cadoux, Lemaréchal, Malick 2011). Contacts that
stick or slide alone settle so in a step or two; several that slide together take coulomb.py. What that does not solve
either may have no solution: what friction wedges together cannot be parted. Rows that ask for that leave what is inside
where it is (`_spare`), and the problem has one. Contacts crowded together give way (`_eased`, `_crowd`).

Impulses that a stiff drive presses through light links lose the digits of their velocities: ε falls where rows agree
slowly, and what is left of a row is counted beyond the rounding of its impulse.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import like
from artsim.sim.lanes import absolute, highest, where_greater
from artsim.sim.solvers.blocks import add_product, factorise_blocks, set_inertia, solve_blocks, times_inertia
from artsim.sim.solvers.cone import inverse_or_zero, largest, least
from artsim.sim.solvers.conjugate import descend
from artsim.sim.solvers.coulomb import ABSURD, CONTRADICTION, ENOUGH, coulomb, rounding
from artsim.sim.solvers.direct import factorise_graph, solve_graph
from artsim.sim.solvers.elimination import find_structure, one_island
from artsim.sim.solvers.full_coordinates import mass_times, note_couplings, note_rows
from artsim.sim.solvers.impulses import (
    follow_shift,
    hold,
    project,
    set_gradient,
    set_lines,
    start_shift,
    times,
    wanted_shift,
    weigh_lines,
)
from artsim.sim.solvers.line_search import EXACT, leap, take
from artsim.sim.solvers.nsgs import sweep
from artsim.sim.solvers.propagation import factorise_tree, solve_tree

PROXIMAL = 1e-6  # ε relative to a row's mobility
_LEAST_PROXIMAL = 1e-13  # to which ε falls where rows agree slowly: something much heavier than a row moves presses
_SLOWLY = 0.1  # of what impulses left open in the round before
_HARDLY = 0.7  # of what was left in the round before
_DIGITS = 10.0  # tolerances that impulses may leave open: less is rounding, which a smaller ε does not mend
_STIFF = 1e5  # times a soft row's impulse
_SOFT = 1e-10  # a row that gives way by more of its mobility needs no ε
TOLERANCE = 1e-14  # of rows' velocities, relative to the largest velocity
_STEPS = 100  # Newton steps at most; two to six are the rule
_CONTACT_STEPS = 30  # at first, where there are contacts; one in a crowd
_FIRST_STEPS = 40  # and where there are none, before coulomb.py has its turn
_MANY = 60  # contacts, for which a second attempt would take too long
# attempts at Coulomb's law: so many sweeps, so many steps
_SWEEPS = (100, 0, 400, 2000)
_COULOMB_STEPS = (20, 60, 40, 300)
_SLIDING_STEPS = 8  # from λ of the step before, where contacts slid
_EDGE = 0.999  # of the square of the largest friction
_SPARED_ATTEMPTS = 2
_BEYOND = 1e-12  # [m/s] that a shift may be too large
_RESTING = 1e-9  # of the largest velocity: sliding slower is rest
_CLOSE = 0.1  # ε at the start, relative to PROXIMAL, where sweeps have come near
_FAR = 1e3
_GIVE = (0.01, 0.1)  # of a row's mobility: how much contacts give way that are not solved otherwise
_KEPT = 0.9  # of the normal impulse before, to which they give way
_LESS = math.sqrt(_GIVE[0] / _GIVE[1])  # of that where they give way by more
_SINKING = 0.1  # [m/s] no faster
_ROUNDED = 1e-9  # [m/s] that counts as going nowhere
_EASED_STEPS = 30
_EASED_FOR = 64  # steps, then they are tried again as they are; at first earlier
_LAST_SWEEPS = 200
_CROWD = 300  # contacts
_CROWD_STEPS = 150
_CROWD_TOLERANCE = 1e-6  # of the largest velocity
_CROWD_TURNS = 4
_CROWD_NEAR = 1e-3  # of the largest velocity: shifts that are as good
_THROWING = 100.0  # times what is to be expected: impulses to be forgotten
_NATURAL = 30.0  # times the largest velocity: what an impulse may do to a row alone before one looks for another
_STALLED = 8  # rounds that hardly help
_STUCK = 4  # steps that hardly help: within what is lost in the digits of the impulses that is all there is


@njit
def newton(robot: Any, inputs: Any, rows: Any, force: Any, u: Any, solver: Any) -> None:
    """u (nu,) becomes u + x, rows.impulse (rows,) becomes λ; what it holds on entry is where the search starts.

    Where `tree` or `graph` is not None, propagation or direct do the linear algebra with what it holds instead
    (data.factor is then not looked at, and contacts get convex steps alone: see step.py for what these leave); which of
    them is decided when this is compiled.

    `force` (nu,): the impulse of all else. data.factor holds M̂, the lower triangle over the model's elimination tree,
    not factorised. rows.report: Newton steps added up (the most of any island), what is left of the rows [rad/s or
    m/s].
    """
    model = robot.model
    work = solver.newton
    if solver.tree is None and solver.graph is None:
        find_structure(model, rows, work)
    else:
        one_island(model, rows, work)
    for k in range(work.sizes[1]):
        work.factorised[k] = 0
        prepare(model, robot.data, rows, u, solver, k)
    _settle_all(robot, rows, force, u, solver)


@njit
def newton_again(robot: Any, rows: Any, force: Any, u: Any, solver: Any) -> None:
    """Go on from where `newton` ended, with rows.bias changed since; u holds its velocities."""
    work = solver.newton
    anew = rows.report[1] > UNSOLVED
    for a in range(u.shape[0]):
        u[a] = u[a] - work.change[a]
    for k in range(work.sizes[1]):
        if anew or _count_cones(rows, work, k) > 0:
            work.factorised[k] = 0
            prepare(robot.model, robot.data, rows, u, solver, k)
        else:
            for q in range(work.unit_start[k], work.unit_start[k + 1]):
                n = work.listed[q]
                work.velocity[n] = rows.bias[n]
                for e in range(rows.start[n], rows.stop[n]):
                    work.velocity[n] = work.velocity[n] + rows.value[e] * (
                        u[rows.column[e]] + work.change[rows.column[e]]
                    )
    _settle_all(robot, rows, force, u, solver)


@njit
def _settle_all(robot: Any, rows: Any, force: Any, u: Any, solver: Any) -> None:
    """Island by island; then u."""
    work = solver.newton
    most = 0
    rows.report[1] = 0.0
    for k in range(work.sizes[1]):
        work.sizes[2] = 0
        rows.report[1] = max(rows.report[1], highest(_settle(robot, rows, force, u, solver, k)))
        most = max(most, work.sizes[2])
    rows.report[0] += most
    for a in range(u.shape[0]):
        u[a] = u[a] + work.change[a]


@njit
def _settle(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any) -> Any:
    """x and λ of island k, and what is left of its rows.

    The rows as they are, if no solution is found without what brings apart what is inside, then with contacts that
    give way. A crowd of free bodies has one attempt before it gives way. What propagation and direct leave of contacts
    is for newton without them (step.py).
    """
    model, data = robot.model, robot.data
    work = solver.newton
    _note_start(rows, work, k)
    if solver.tree is not None or solver.graph is not None:
        left, _ = _solve(robot, rows, force, u, solver, k, 0)
        return left
    eased = _steps_eased(rows, work, k)
    crowd = _is_crowd(model, work, k)
    if crowd and eased > 0 and eased % _EASED_FOR > 0:
        return _crowd(model, data, rows, force, u, solver, k)
    left = u[0] - u[0] + 1e300
    if eased == 0 or crowd or _tries_again(eased):
        left, solved = _solve(robot, rows, force, u, solver, k, len(_SWEEPS) - 1)
        if solved:
            _mark(rows, work, k, 0)
            return left
    if crowd:
        return _crowd(model, data, rows, force, u, solver, k)
    few = work.unit_start[k + 1] - work.unit_start[k] <= _MANY
    if few:
        tolerance = tolerance_of(rows, u, work, k)
        left = _eased(robot, rows, force, u, solver, k, tolerance, 0.0)
        if highest(left - ENOUGH * tolerance) <= 0.0:
            return left
        if _spare(rows, work, k):
            _restart(model, data, rows, force, u, solver, k)
            work.factorised[k] = 0
            left, solved = _solve(robot, rows, force, u, solver, k, _SPARED_ATTEMPTS)
            if solved:
                _mark(rows, work, k, eased + 1)
                return left
    left, solved = _give_in(robot, rows, force, u, solver, k, few)
    if solved:
        return left
    return _compromise(robot, rows, force, u, solver, k)


@njit
def _solve(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any, attempts: Any) -> Any:
    """What is left of island k's rows, and whether it is little enough.

    Few convex steps settle contacts that stick, or slide each by itself; coulomb.py, which needs M̂, what they leave.
    """
    model, data = robot.model, robot.data
    work = solver.newton
    dense = solver.tree is None and solver.graph is None
    cones = _count_cones(rows, work, k)
    most = _STEPS
    if dense and cones != 1:  # a contact alone has a bracket around its shift
        most = _contact_steps(model, work, k) if cones > 0 else _FIRST_STEPS
    if dense and most > 1 and cones > 0 and _slid(rows, u, work, k):
        tolerance = TOLERANCE * largest_speed(u, work, k)
        set_gradient(rows, force, work, k)
        limit = _natural(data, rows, force, u, work, k, tolerance)
        left = coulomb(
            robot, rows, force, u, work, k, tolerance, limit, _SLIDING_STEPS, tolerance - tolerance + _CLOSE, True
        )
        if highest(left - ENOUGH * tolerance) <= 0.0:
            return left, True
        _restart(model, data, rows, force, u, solver, k)
    left, ended = _iterate(robot, rows, force, u, solver, k, most, True, dense and cones > 1)
    tolerance = tolerance_of(rows, u, work, k)
    if dense and cones == 0 and ended:
        return left, True
    if highest(left - ENOUGH * tolerance) <= 0.0 or not dense:
        return left, highest(left - ENOUGH * tolerance) <= 0.0 or cones == 0
    left = _coulomb(robot, rows, force, u, solver, k, tolerance, attempts)
    return left, highest(left - ENOUGH * tolerance) <= 0.0


@njit
def _give_in(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any, few: Any) -> Any:
    """Contacts give way; with few of them, where that does not help, sweeps for as long as it takes."""
    work = solver.newton
    tolerance = tolerance_of(rows, u, work, k)
    left = _eased(robot, rows, force, u, solver, k, tolerance, _SINKING)
    if few and highest(left - ENOUGH * tolerance) > 0.0 and highest(left) < CONTRADICTION:
        limit = tolerance - tolerance + ABSURD
        last = len(_SWEEPS) - 1
        left = _attempt(robot, rows, force, u, solver, k, tolerance, limit, _SWEEPS[last], _COULOMB_STEPS[last], _FAR)
        if highest(left - ENOUGH * tolerance) <= 0.0:
            _mark(rows, work, k, 0)
    return left, highest(left - ENOUGH * tolerance) <= 0.0


@njit
def _sinks(rows: Any, work: Any, k: Any, level: Any, sinking: Any) -> bool:
    """Whether contacts that give way go inside faster: what presses is heavier than what they give way by.

    What is inside already counts by whether it goes deeper, not by how much slower it is brought out.
    """
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            zero = rows.cfm[n] - rows.cfm[n]
            give = rows.cfm[n] - work.given[n]
            inside = rows.rate[n] * least(rows.error[n], zero)
            if highest(inside - work.velocity[n] - give * _preload(rows, work, n, n, level)) > sinking + _ROUNDED:
                return True
    return False


@njit
def _spare(rows: Any, work: Any, k: Any) -> bool:
    """Nothing is brought apart, and nothing pushed away before it arrives; whether any row asked for that.

    With that the velocity 0 breaks no contact and no limit, and Coulomb's problem has a solution (Klarbring and Pang
    1998; Acary, Cadoux, Lemaréchal and Malick 2011): without it there may be none, as for what is wedged.
    """
    spared = False
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if highest(absolute(rows.lower[n])) <= 0.0 and highest(-rows.bias[n]) > 0.0 and highest(rows.cfm[n]) <= 0.0:
            rows.bias[n] = rows.bias[n] - rows.bias[n]
            rows.rate[n] = rows.rate[n] - rows.rate[n]
            spared = True
    return spared


@njit
def _slid(rows: Any, u: Any, work: Any, k: Any) -> bool:
    """Whether any of the island's contacts slid in the last step, and still does."""
    resting = _RESTING * largest_speed(u, work, k)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if (
            rows.cone[n] > 1
            and highest(_past_edge(rows, work, n)) > 0.0
            and highest(work.shift[n] - rows.slope[n] * resting) > 0.0
        ):
            return True
    return False


@inlined
def _past_edge(rows: Any, work: Any, n: Any) -> Any:
    """Above 0 for a cone whose impulse, as it came in, is on its edge."""
    square = work.first[n] - work.first[n]
    for row in range(n + 1, n + rows.cone[n]):
        square = square + work.first[row] * work.first[row]
    limit = rows.slope[n] * work.first[n]
    return square - _EDGE * limit * limit


@njit
def _coulomb(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any, tolerance: Any, attempts: Any) -> Any:
    """Coulomb's law, by Newton's steps from where sweeps of nsgs.py lead; what is left.

    Friction can hold what it holds by any force (a ball between floor and wall): solutions by forces that nothing asks
    for are none.
    """
    work = solver.newton
    slow = _sweeps_are_slow(robot.model, work, k)
    limit = _natural(robot.data, rows, force, u, work, k, tolerance)
    left = tolerance - tolerance + 1e300
    if slow:
        left = _attempt(robot, rows, force, u, solver, k, tolerance, limit, 0, _COULOMB_STEPS[0], _CLOSE)
        if highest(left - ENOUGH * tolerance) <= 0.0:
            return left
    many = work.unit_start[k + 1] - work.unit_start[k] > _MANY
    for attempt in range(1 if slow else 0, min(attempts, 2) if many else attempts):
        first = _FAR if attempt > 0 else _CLOSE
        left = _attempt(
            robot, rows, force, u, solver, k, tolerance, limit, _SWEEPS[attempt], _COULOMB_STEPS[attempt], first
        )
        if highest(left - ENOUGH * tolerance) <= 0.0 or highest(left) >= CONTRADICTION:
            break
    return left


@njit
def _natural(data: Any, rows: Any, force: Any, u: Any, work: Any, k: Any, tolerance: Any) -> Any:
    """The largest impulse to be expected of an island of contacts: by what presses and moves, and by those before.

    Where there are other rows, a stiff drive's or a limit's, all may press as hard as they like.
    """
    before = tolerance - tolerance
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] != CONTACT_ROW:
            return before + ABSURD
        for row in range(n, n + max(rows.cone[n], 1)):
            before = largest(before, absolute(work.first[row]))
    return largest(2.0 * before, _expected(data, rows, force, u, work, k, tolerance))


@njit
def _expected(data: Any, rows: Any, force: Any, u: Any, work: Any, k: Any, tolerance: Any) -> Any:
    """The same by what presses and moves alone."""
    heaviest = tolerance - tolerance
    momentum = tolerance - tolerance
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        heaviest = largest(heaviest, work.rho[work.listed[q]])
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            momentum = largest(momentum, absolute(force[a]) + data.factor[a, a] * absolute(u[a]))
    return (_NATURAL / TOLERANCE) * tolerance * heaviest + 2.0 * momentum


@njit
def _sweeps_are_slow(model: Any, work: Any, k: Any) -> bool:
    """Whether there are more dofs than free bodies have: Newton's steps then cost less than a few sweeps."""
    dofs, trees = 0, 0
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            dofs += 1
            trees += 1 if model.independent_parent[a] < 0 else 0
    return dofs > 6 * trees


@njit
def _eased(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any, tolerance: Any, sinking: Any) -> Any:
    """Hard contacts give way, but go inside no faster than `sinking`; what is left then. Without success they are hard
    again.

    What is to be brought apart can be what friction holds together (a ball wedged into a corner): no impulses do it,
    or there is no end to them. And many contacts that carry each other are hard to solve to the last digit. Here a
    contact's velocity may differ by a share of its mobility times what its impulse changes from the step before: one
    round of the method of multipliers for each step, which what rests does not feel; normal impulses are partly
    forgotten, so that they cannot grow for ever.
    """
    data = robot.data
    work = solver.newton
    left = tolerance - tolerance
    near = _sweeps_are_slow(robot.model, work, k) or _steps_eased(rows, work, k) > 0
    _forget_unnatural(data, rows, force, u, work, k, tolerance)
    for level in range(len(_GIVE)):
        _give_way(rows, work, k, level)
        limit = _natural(data, rows, force, u, work, k, tolerance)
        left = left - left + 1e300
        if near:
            left = _attempt(robot, rows, force, u, solver, k, tolerance, limit, 0, _EASED_STEPS, _CLOSE)
        if highest(left - ENOUGH * tolerance) > 0.0:
            left = _attempt(robot, rows, force, u, solver, k, tolerance, limit, _SWEEPS[0], _EASED_STEPS, _CLOSE)
        if highest(left - ENOUGH * tolerance) <= 0.0:
            if not _sinks(rows, work, k, level, sinking):
                _mark(rows, work, k, _steps_eased(rows, work, k) + 1)
                break
            left = left + 1e300
        _stand_firm(rows, work, k, level)
    return left


@njit
def _is_crowd(model: Any, work: Any, k: Any) -> bool:
    """Whether the island is free bodies with so many contacts that its matrix takes too long."""
    return work.unit_start[k + 1] - work.unit_start[k] > _CROWD and not _sweeps_are_slow(model, work, k)


@njit
def _crowd(model: Any, data: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any) -> Any:
    """Contacts give way, and shifts are those of the step's start, then those found; what is left of Coulomb's law.

    Whatever the shifts are, the convex problem has its minimum, and sliding takes energy: λ·v = -(shift) λ_n.
    """
    work = solver.newton
    _forget_unnatural(data, rows, force, u, work, k, TOLERANCE * largest_speed(u, work, k))
    _give_way(rows, work, k, 0)
    _restart(model, data, rows, force, u, solver, k)
    work.factorised[k] = 0
    zero = u[0] - u[0]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            work.shift[n] = where_greater(_past_edge(rows, work, n), zero, work.shift[n], zero)
    left = zero
    for turn in range(_CROWD_TURNS):
        speed = largest_speed(u, work, k)
        left = descend(model, data, rows, force, work, k, _CROWD_TOLERANCE * speed, _CROWD_STEPS)
        off = zero
        for q in range(work.unit_start[k], work.unit_start[k + 1]):
            n = work.listed[q]
            if rows.cone[n] > 1:
                wanted = wanted_shift(rows, work, n)
                off = largest(off, absolute(wanted - work.shift[n]))
                work.off[n] = wanted
        left = largest(left, off)
        if turn > 0 and highest(left - _CROWD_NEAR * speed) <= 0.0:
            break
        if turn < _CROWD_TURNS - 1:
            for q in range(work.unit_start[k], work.unit_start[k + 1]):
                n = work.listed[q]
                if rows.cone[n] > 1:
                    work.shift[n] = work.off[n]
    _mark(rows, work, k, _steps_eased(rows, work, k) + 1)
    return left


@njit
def _forget_unnatural(data: Any, rows: Any, force: Any, u: Any, work: Any, k: Any, tolerance: Any) -> None:
    """Impulses that came in and are so large that, a little turned, they would throw things about: 0."""
    if highest(_natural(data, rows, force, u, work, k, tolerance)) < ABSURD:
        most = _THROWING * _expected(data, rows, force, u, work, k, tolerance)
        zero = most - most
        for q in range(work.unit_start[k], work.unit_start[k + 1]):
            n = work.listed[q]
            for row in range(n, n + max(rows.cone[n], 1)):
                work.first[row] = where_greater(absolute(work.first[row]), most, zero, work.first[row])


@njit
def _give_way(rows: Any, work: Any, k: Any, level: Any) -> None:
    """Soften hard contacts by a share of their mobility."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            zero = rows.cfm[n] - rows.cfm[n]
            give = where_greater(work.given[n], zero, zero, _GIVE[level] * inverse_or_zero(work.rho[n]))
            for row in range(n, n + max(rows.cone[n], 1)):
                rows.cfm[row] = rows.cfm[row] + give
                rows.bias[row] = rows.bias[row] - give * _preload(rows, work, n, row, level)


@njit
def _stand_firm(rows: Any, work: Any, k: Any, level: Any) -> None:
    """Undo `_give_way`."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            give = rows.cfm[row] - work.given[row]
            rows.bias[row] = rows.bias[row] + give * _preload(rows, work, n, row, level)
            rows.cfm[row] = work.given[row]


@inlined
def _preload(rows: Any, work: Any, n: Any, row: Any, level: Any) -> Any:
    """The impulse to which a contact gives way; 0 where it did not give way before.

    λ·v = give λ·(preload - λ) ≤ give / 2 (preload² - λ²): what it gives back is what it took before, as a spring does.
    So nothing of a hard contact's impulse is kept, and where it gives way by more, less.
    """
    kept = (_KEPT if row == n else 1.0) * (_LESS if level > 0 else 1.0)
    return kept * work.first[row] if rows.eased[n] > 0 else work.first[row] - work.first[row]


@njit
def _steps_eased(rows: Any, work: Any, k: Any) -> Any:
    """For how many steps contacts of the island have given way, the longest."""
    most = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        most = max(most, rows.eased[work.listed[q]])
    return most


@inlined
def _tries_again(steps: Any) -> bool:
    """Whether contacts that have given way for so many steps are to be tried as they are."""
    tries: bool = steps % _EASED_FOR == 0 or steps == 8 or steps == 16 or steps == 32
    return tries


@njit
def _mark(rows: Any, work: Any, k: Any, steps: Any) -> None:
    """Contacts have given way for so many steps."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        rows.eased[n] = steps if rows.kind[n] == CONTACT_ROW else 0


@njit
def _attempt(
    robot: Any,
    rows: Any,
    force: Any,
    u: Any,
    solver: Any,
    k: Any,
    tolerance: Any,
    limit: Any,
    sweep_count: Any,
    steps: Any,
    first: Any,
) -> Any:
    """So many sweep_count and then so many of Newton's steps on Coulomb's law, from λ as it came in; what is left."""
    model, data = robot.model, robot.data
    work = solver.newton
    _restart(model, data, rows, force, u, solver, k)
    work.factorised[k] = 0
    if sweep_count > 0:
        sweep(model, data, rows, work, k, tolerance, sweep_count)
    return coulomb(robot, rows, force, u, work, k, tolerance, limit, steps, tolerance - tolerance + first, False)


@njit
def _note_start(rows: Any, work: Any, k: Any) -> None:
    """λ and cfm as they came in."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.first[row] = rows.impulse[row]
            work.given[row] = rows.cfm[row]


@njit
def _compromise(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any) -> Any:
    """The last resort: the convex problem with shifts as sweeps leave them, which always has its minimum."""
    model, data = robot.model, robot.data
    work = solver.newton
    _restart(model, data, rows, force, u, solver, k)
    work.factorised[k] = 0
    sweep(model, data, rows, work, k, TOLERANCE * largest_speed(u, work, k), _LAST_SWEEPS)
    times_inertia(model.independent_parent, model.independent_run, data.factor, work, k, work.change, work.product)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = rows.impulse[row]
        if rows.cone[n] > 1:
            work.shift[n] = wanted_shift(rows, work, n)
    left = u[0] - u[0]
    for _ in range(2):
        left, _ = _iterate(robot, rows, force, u, solver, k, _STEPS, False, False)
        if not _rises(rows, work, k):
            break
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            left = largest(left, absolute(wanted_shift(rows, work, n) - work.shift[n]))
    return left


@njit
def _rises(rows: Any, work: Any, k: Any) -> bool:
    """Take back the shifts of cones that slide less than those say, which would go inside; whether there are any.

    A contact without a shift lets nothing in: what slides rises (Anitescu and Potra 1997).
    """
    rises = False
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            zero = work.shift[n] - work.shift[n]
            beyond = work.shift[n] - wanted_shift(rows, work, n) - _BEYOND
            rises = rises or highest(beyond) > 0.0
            work.shift[n] = where_greater(beyond, zero, zero, work.shift[n])
    return rises


@njit
def _restart(model: Any, data: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any) -> None:
    """x = 0 and λ as they came in."""
    work = solver.newton
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = work.first[row]
    prepare(model, data, rows, u, solver, k)
    set_gradient(rows, force, work, k)


@njit
def _iterate(robot: Any, rows: Any, force: Any, u: Any, solver: Any, k: Any, most: Any, shifts: Any, hasty: Any) -> Any:
    """Newton steps until island k's rows are met; what is left of them, and whether more steps would not help.

    Most steps, whether shifts follow the velocities (the first step is then as if nothing let go), and whether to end
    where those steps will not be enough.
    """
    model, data = robot.model, robot.data
    work = solver.newton
    project(rows, work, k)
    holds = shifts and hold(rows, work, k)
    left = u[0] - u[0]
    before = left + 1e300
    still_open = before
    ended = False
    shares = shifts and _is_redundant(rows, work, k)
    stalled, stuck = 0, 0
    least_bent = before
    steps = 0
    while steps < most:
        if work.factorised[k] == 0 or differs(rows, work, k):
            factorise_island(model, data, rows, solver, k)
            work.factorised[k] = 1
        steps += 1
        set_gradient(rows, force, work, k)
        solve_island(model, data, solver, k)
        set_along(model, data, rows, solver, k)
        linearise(rows, work, k)
        tolerance = TOLERANCE * largest_speed(u, work, k)
        bent = (
            leap(rows, work, k, left - left) if holds and steps == 1 else take(rows, force, work, k, tolerance, EXACT)
        )
        stuck = stuck + 1 if highest(bent - _HARDLY * least_bent) > 0.0 else 0
        least_bent = least(bent, least_bent)
        rounded = stuck >= _STUCK and highest(bent - ENOUGH * rounding(rows, work, k)) <= 0.0
        if rounded or highest(bent - tolerance) <= 0.0:
            stuck, least_bent = 0, left + 1e300
            open_before, (still_open, left) = still_open, _recentre(rows, work, k, left - left, shifts)
            ended = highest(left - tolerance) <= 0.0 and (steps > 1 or not _is_stiff(rows, work, k))
            if ended:
                break
            # rows that nearly say the same thing agree slowly, rows that contradict each other never
            slow = highest(still_open - _DIGITS * tolerance) > 0.0 and highest(still_open - _SLOWLY * open_before) > 0.0
            tightened = slow and _tighten(rows, work, k)
            stalled += 1 if highest(left - _HARDLY * before) > 0.0 else 0
            ended = stalled == _STALLED or (
                hasty and not tightened and _comes_late(left, before, most - steps, tolerance)
            )
            before = left
            if shares and not ended:
                _forget(rows, work, k)
                before = left + 1e300
                still_open = before
            shares = False
            if ended or steps >= most:
                break  # before `project`: the impulses stay those that made the velocities
            project(rows, work, k)
    work.sizes[2] += steps
    return left if ended else _unfinished(data, rows, force, solver, k, left), ended


@njit
def _is_redundant(rows: Any, work: Any, k: Any) -> bool:
    """Whether the island has more rows that may carry something than dofs: contacts then share what they hold."""
    count, dofs = 0, 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            count += max(rows.cone[n], 1)
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        dofs += work.block_start[b + 1] - work.block_start[b]
    return count > dofs


@njit
def _forget(rows: Any, work: Any, k: Any) -> None:
    """λ_k = 0 of hard contacts, from which the method of multipliers leads to the least of the impulses that hold.

    From those of the step before it leads to the nearest, which keep what an impact left for ever.
    """
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.kind[n] == CONTACT_ROW:
            for row in range(n, n + max(rows.cone[n], 1)):
                work.centre[row] = work.centre[row] - work.centre[row]


@njit
def _is_stiff(rows: Any, work: Any, k: Any) -> bool:
    """Whether a soft row's impulse is a small difference of large terms, whose digits the first step loses."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        lost = absolute(rows.bias[n]) * work.inverse[n] - _STIFF * absolute(rows.impulse[n])
        if highest(work.eps[n]) <= 0.0 and highest(lost) > 0.0:
            return True
    return False


@inlined
def _comes_late(left: Any, before: Any, steps: Any, tolerance: Any) -> bool:
    """Whether so many rounds as good as the last leave more than the tolerance."""
    then = left
    for _ in range(steps):
        then = then * left / before
    late: bool = highest(then - tolerance) > 0.0
    return late


@njit
def _unfinished(data: Any, rows: Any, force: Any, solver: Any, k: Any, left: Any) -> Any:
    """What is left when steps run out in a round: of the rows, and by how much x is not that of the impulses."""
    work = solver.newton
    set_gradient(rows, force, work, k)
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            left = largest(left, work.eps[row] * absolute(rows.impulse[row] - work.centre[row]))
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            left = largest(left, absolute(work.direction[a]))
            left = largest(left, absolute(work.gradient[a]) / _inertia(data, a, solver))
    return left


@njit
def _count_cones(rows: Any, work: Any, k: Any) -> Any:
    count = 0
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        count += 1 if rows.cone[work.listed[q]] > 1 else 0
    return count


@inlined
def _contact_steps(model: Any, work: Any, k: Any) -> Any:
    """How many convex steps are worth while before `_coulomb`."""
    return 1 if _is_crowd(model, work, k) else _CONTACT_STEPS


@njit
def _tighten(rows: Any, work: Any, k: Any) -> bool:
    """A hundredth of every ε that is not the least already; whether there are any."""
    tightened = False
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            if highest(work.eps[row] * work.rho[row]) > _LEAST_PROXIMAL:
                tightened = True
                work.eps[row] = 0.01 * work.eps[row]
                work.inverse[row] = inverse_or_zero(rows.cfm[row] + work.eps[row])
    return tightened


@njit
def largest_speed(u: Any, work: Any, k: Any) -> Any:
    """What rounding is measured by: 1, or the largest velocity at the step's start or end."""
    size = u[0] - u[0] + 1.0
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            size = largest(size, largest(absolute(u[a]), absolute(u[a] + work.change[a])))
    return size


@njit
def tolerance_of(rows: Any, u: Any, work: Any, k: Any) -> Any:
    """What island k's rows are solved to [rad/s or m/s]: what rounds in velocities, and in what impulses do to rows."""
    return largest(TOLERANCE * largest_speed(u, work, k), rounding(rows, work, k))


@njit
def prepare(model: Any, data: Any, rows: Any, u: Any, solver: Any, k: Any) -> None:
    """What does not change in the iterations: ε and 1 / (cfm + ε) of the rows, their velocities at x = 0; λ_k."""
    work = solver.newton
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.change[a] = u[a] - u[a]
            work.product[a] = u[a] - u[a]
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        mobility = like(0.0, data)
        for row in range(n, n + max(rows.cone[n], 1)):
            mobility = largest(mobility, _mobility(data, rows, row, solver))
        work.eps[n] = mobility
    first = work.unit_start[k]
    while first < work.unit_start[k + 1]:
        last = first + 1
        most = work.eps[work.listed[first]]
        while last < work.unit_start[k + 1] and _are_of_one_pair(rows, work.listed[first], work.listed[last]):
            most = largest(most, work.eps[work.listed[last]])
            last += 1
        for q in range(first, last):
            _prepare_unit(data, rows, u, work, work.listed[q], most)
        first = last


@njit
def _prepare_unit(data: Any, rows: Any, u: Any, work: Any, n: Any, most: Any) -> None:
    """The same of the unit of row n; `most`: the mobility of the most mobile contact between the same bodies.

    They have one ε, so that of all forces that hold they share the least in the sum of their squares.
    """
    mobility = work.eps[n]
    eps = where_greater(rows.cfm[n], _SOFT * mobility, like(0.0, data), PROXIMAL * most)
    inverse = inverse_or_zero(rows.cfm[n] + eps)  # 0: moves nothing
    rho = inverse_or_zero(mobility)
    times(rows, n, u, work.velocity)
    for row in range(n, n + max(rows.cone[n], 1)):
        work.eps[row] = eps
        work.rho[row] = rho
        work.inverse[row] = inverse
        work.centre[row] = rows.impulse[row]
        work.velocity[row] = work.velocity[row] + rows.bias[row]
    if rows.cone[n] > 1:
        start_shift(rows, work, n)


@inlined
def _are_of_one_pair(rows: Any, n: Any, other: Any) -> bool:
    """Whether two rows are contacts that move the same dofs."""
    contacts: bool = rows.kind[n] == CONTACT_ROW and rows.kind[other] == CONTACT_ROW
    entries = rows.stop[n] - rows.start[n]
    return (
        contacts
        and entries > 0
        and entries == rows.stop[other] - rows.start[other]
        and rows.column[rows.start[n]] == rows.column[rows.start[other]]
        and rows.column[rows.stop[n] - 1] == rows.column[rows.stop[other] - 1]
    )


@inlined
def _mobility(data: Any, rows: Any, n: Any, solver: Any) -> Any:
    """J diag(M̂)⁻¹ Jᵀ of row n: of the right size, and not above J M̂⁻¹ Jᵀ."""
    value = like(0.0, data)
    for e in range(rows.start[n], rows.stop[n]):
        value = value + rows.value[e] * rows.value[e] / _inertia(data, rows.column[e], solver)
    return value


@inlined
def _inertia(data: Any, a: Any, solver: Any) -> Any:
    """M̂'s diagonal."""
    if solver.tree is not None:
        return solver.tree.inertia[a]
    if solver.graph is not None:
        return solver.graph.inertia[a]
    return data.factor[a, a]


# ------------------------------------------------------------------ the Newton step


@njit
def differs(rows: Any, work: Any, k: Any) -> bool:
    """Whether any row gives way otherwise than in the matrix that stands factorised."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if highest(absolute(work.weight[n] - work.weight_used[n])) > 0.0:
            return True
        if rows.cone[n] > 1 and highest(work.weight1[n]) > 0.0:
            return True  # a cone's edge: its matrix turns with every step
    return False


@njit
def factorise_island(model: Any, data: Any, rows: Any, solver: Any, k: Any) -> None:
    """H = M̂ + Jᵀ D J with the weights that hold now, ready for `_solve`."""
    work = solver.newton
    if solver.tree is not None:
        note_couplings(model, data, solver.tree)
        note_rows(model, rows, work, solver.tree)
        factorise_tree(model, data, solver.tree)
    elif solver.graph is not None:
        note_couplings(model, data, solver.graph)
        note_rows(model, rows, work, solver.graph)
        factorise_graph(model, data, solver.graph)
    else:
        set_inertia(model, data, work, k, work.matrix)
        for q in range(work.unit_start[k], work.unit_start[k + 1]):
            n = work.listed[q]
            work.weight_used[n] = work.weight[n]
            if highest(work.weight[n]) > 0.0:
                set_lines(rows, work, n, False)
                weigh_lines(rows, work, n, work.weight[n], work.weight1[n], work.weight2[n], work.weight3[n])
                add_product(rows, work, n, work.matrix)
        factorise_blocks(work, k, work.matrix, work.matrix, False)


@njit
def solve_island(model: Any, data: Any, solver: Any, k: Any) -> None:
    """solver.direction = -H⁻¹ solver.gradient."""
    work = solver.newton
    for e in range(work.island_start[k], work.island_start[k + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.gradient[a]
    if solver.tree is not None:
        solve_tree(model, data, solver.tree, work.direction)
    elif solver.graph is not None:
        solve_graph(model, data, solver.graph, work.direction)
    else:
        solve_blocks(work, k, work.matrix, work.matrix)


@njit
def set_along(model: Any, data: Any, rows: Any, solver: Any, k: Any) -> None:
    """What the direction does: solver.along = J times it, solver.through = M̂ times it."""
    work = solver.newton
    if solver.tree is not None:
        mass_times(model, data, solver.tree, work.direction, work.through)
    elif solver.graph is not None:
        mass_times(model, data, solver.graph, work.direction, work.through)
    else:
        times_inertia(
            model.independent_parent, model.independent_run, data.factor, work, k, work.direction, work.through
        )
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        times(rows, work.listed[q], work.direction, work.along)


@njit
def linearise(rows: Any, work: Any, k: Any) -> None:
    """solver.linear: λ at the full step, to first order: with it the step's equation of motion holds to rounding."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if rows.cone[n] > 1:
            along = work.along[n] - work.along[n]
            for row in range(n + 1, n + rows.cone[n]):
                along = along + work.unit[row] * work.along[row]
            work.linear[n] = rows.impulse[n] - (work.weight[n] * work.along[n] + work.weight1[n] * along)
            common = work.weight1[n] * work.along[n] + work.weight2[n] * along
            for row in range(n + 1, n + rows.cone[n]):
                work.linear[row] = rows.impulse[row] - (work.unit[row] * common + work.weight3[n] * work.along[row])
        else:
            work.linear[n] = rows.impulse[n] - work.weight_used[n] * work.along[n]


@njit
def _recentre(rows: Any, work: Any, k: Any, left: Any, shifts: Any) -> Any:
    """λ_k becomes the λ found, shifts follow the velocities if they are to; how far the rows move for the first and for
    both [rad/s or m/s]."""
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = work.linear[row]
            left = largest(left, work.eps[row] * absolute(work.linear[row] - work.centre[row]))
    moved = left
    for q in range(work.unit_start[k], work.unit_start[k + 1]):
        n = work.listed[q]
        if shifts and rows.cone[n] > 1:
            moved = largest(moved, follow_shift(rows, work, n, left))
        for row in range(n, n + max(rows.cone[n], 1)):
            work.centre[row] = work.linear[row]
    return left, moved
