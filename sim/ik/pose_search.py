"""The kernel of inverse kinematics: Levenberg and Marquardt's method over 1 or 8 rows at once, each in its own lane.

    (Jᵀ W J + λ 1) δ = Jᵀ W e,  λ = μ ½ eᵀ W e + ε

is solved for the columns that do not push against a bound; the step ends at the bounds (projection). A damping in
proportion to the cost converges quadratically where the target can be reached, and holds still where it cannot
(Sugihara 2011, Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method). A step that would raise
the cost is not taken, and μ grows.

An attempt at a row goes through phases. It settles where a posture is wished for, which then counts as a weak target,
and aims at the targets alone. An attempt that gets no nearer is given up, and the next one begins at a drawn
configuration. Where none reaches the targets, the best configuration is polished, for as many iterations as an attempt
may have, and closed: its loops and couplings are all that counts then. A lane whose row is done takes the next row.
Lanes do not talk to each other, and draws depend on the row's number alone: so do the results.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.dynamics import factorise, solve
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, lane_of, lane_set, where_greater
from artsim.sim.foundation.quaternions import turn_quaternion
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest, least
from artsim.sim.ik.residual import evaluate
from artsim.sim.ik.search_records import (
    AIM,
    AIMING,
    ATTEMPT,
    BEST_COST,
    CLOSING,
    CLOSURE,
    COST,
    COUNT,
    DAMPING,
    DONE,
    END_ROW,
    ERRORS,
    FIRST_ROW,
    ITERATIONS,
    MARK,
    NOT_REACHED,
    OPEN,
    PHASE,
    POLISHING,
    POSITION,
    PULL,
    REACHED,
    RESTING,
    ROTATION,
    ROW,
    SETTLING,
    SLOW,
    TRIAL_COST,
    Poses,
    Search,
    SearchTask,
    Targets,
)

_FRESH = 1e30  # cost before the first evaluation of a start, which is always accepted
_DAMPING = 0.3  # μ at a start
_LESS, _MORE = 0.5, 8.0  # factors of μ after a step that is taken, and one that is not
_LEAST, _MOST = 1e-6, 1e9  # bounds of μ
_FLOOR = 1e-9  # ε [1/rad²], below which a redundant arm's matrix is singular by rounding
_SLOW = 10.0  # iterations without half the cost after which an attempt is given up
_PULL = 1e-3  # weight of the posture beside the targets while an attempt settles
_NEARER = 16.0  # attempts of a row of a path that begin between its start and a drawn configuration
_STRIDE = 2654435761  # by which the draws of a row lie apart from those of the next (Knuth's multiplier)


@njit
def pose_search(
    robot: RobotBundle,
    equipment: EquipmentBundle | None,
    search: Search,
    task: SearchTask,
    targets: Targets,
    poses: Poses,
) -> None:
    """Find configurations for the task's rows."""
    _begin(robot, search)
    following = task.rows[FIRST_ROW]
    working = 0
    for lane in range(1 if task.path[0] == 1 else lane_count(search.place)):
        if following < task.rows[END_ROW]:
            _take(search, task, poses, lane, following)
            following += 1
            working += 1
    while working > 0:
        _step(robot, search, task)
        evaluate(robot, equipment, search, task, targets)
        _accept(robot, search, task)
        if any_positive(search.number[DONE]):
            for lane in range(lane_count(search.place)):
                ended = search.lane[lane, PHASE] != RESTING and lane_of(search.number[DONE], lane) > 0.0
                if ended and _end_phase(search, task, poses, lane):
                    _write(search, task, poses, lane)
                    if following < task.rows[END_ROW]:
                        _take(search, task, poses, lane, following)
                        following += 1
                    else:
                        _rest(search, lane)
                        working -= 1


@njit
def _begin(robot: RobotBundle, search: Search) -> None:
    """Set what is constant over rows, and lanes without a row."""
    data = robot.data
    zero = like(0.0, data)
    for k in range(robot.state.qvel.shape[0]):
        robot.state.qvel[k] = zero
        data.gain[k] = zero + 1.0
        data.drift[k] = zero
    for k in range(search.number.shape[0]):
        search.number[k] = zero
    for c in range(search.place.shape[0]):
        search.place[c] = zero
        search.best[c] = zero
    for lane in range(lane_count(search.place)):
        _rest(search, lane)


@njit
def _rest(search: Search, lane: int) -> None:
    """Leave a lane without a row, far from any target: it counts up from far below."""
    search.lane[lane, PHASE] = RESTING
    _freshen(search, lane)
    for t in range(search.target.shape[0]):
        lane_set(search.target, 7 * t, lane, 1e9)
    lane_set(search.number, COUNT, lane, -1e18)
    lane_set(search.number, SLOW, lane, -1e18)


@njit
def _freshen(search: Search, lane: int) -> None:
    """Have the next step of a lane stay where it starts, and be accepted."""
    n = search.move.shape[0]
    for a in range(n):
        lane_set(search.gradient, a, lane, 0.0)
        for b in range(a):
            lane_set(search.normal, a * n + b, lane, 0.0)
        lane_set(search.normal, a * n + a, lane, 1.0)
    lane_set(search.number, COST, lane, _FRESH)
    lane_set(search.number, MARK, lane, _FRESH)
    lane_set(search.number, DAMPING, lane, _DAMPING)
    lane_set(search.number, COUNT, lane, -1.0)
    lane_set(search.number, SLOW, lane, -1.0)


@njit
def _take(search: Search, task: SearchTask, poses: Poses, lane: int, row: int) -> None:
    """Begin a row in a lane, from its own start."""
    search.lane[lane, ROW] = row
    search.lane[lane, ATTEMPT] = 0
    search.lane[lane, ITERATIONS] = 0
    for c in range(search.place.shape[0]):
        lane_set(search.place, c, lane, _start_of(task, poses, row, c))
    for a in range(task.coord.shape[0]):
        c = task.coord[a]
        low, high = task.low[a], task.high[a]
        if c >= 0:
            here = min(max(lane_get(search.place, c, lane), low), high)
            low, high = max(low, here - task.most[a]), min(high, here + task.most[a])
            lane_set(search.place, c, lane, here)
        lane_set(search.low, a, lane, low)
        lane_set(search.high, a, lane, high)
    for t in range(search.target.shape[0]):
        for k in range(3):
            lane_set(search.target, 7 * t + k, lane, poses.position[row, t, k])
        for k in range(4):
            lane_set(search.target, 7 * t + 3 + k, lane, poses.quaternion[row, t, k])
    lane_set(search.number, BEST_COST, lane, 2.0 * _FRESH)
    _begin_phase(search, task, lane, SETTLING if task.settles[0] == 1 else AIMING)


@inlined
def _start_of(task: SearchTask, poses: Poses, row: int, c: int) -> float:
    """A coordinate of a row's own start: on a path the end of the row before."""
    if task.path[0] == 1 and row > 0:
        return poses.qpos[row - 1, c]
    return poses.start[row if poses.start.shape[0] > 1 else 0, c]


@njit
def _begin_phase(search: Search, task: SearchTask, lane: int, phase: int) -> None:
    """Begin a phase of a lane at `place`."""
    search.lane[lane, PHASE] = phase
    lane_set(search.number, AIM, lane, 0.0 if phase == CLOSING else 1.0)
    lane_set(search.number, PULL, lane, _PULL if phase == SETTLING else 0.0)
    _freshen(search, lane)
    if phase == POLISHING:
        lane_set(search.number, SLOW, lane, -1e18)


@njit
def _draw(search: Search, task: SearchTask, poses: Poses, lane: int) -> None:
    """Begin the next attempt of a lane's row, from a drawn configuration; on a path, first from nearer to its start."""
    row, attempt = task.offset[0] + search.lane[lane, ROW], search.lane[lane, ATTEMPT]
    entry = (row * _STRIDE + attempt) % task.draw.shape[0]
    for a in range(task.coord.shape[0]):
        c = task.coord[a]
        if c >= 0:
            first, last = lane_get(search.low, a, lane), lane_get(search.high, a, lane)
            low, high = max(task.draw_low[a], first), min(task.draw_high[a], last)
            if low > high:  # beside the range, where the row may not go so far
                low, high = first, last
            drawn = low + (high - low) * task.draw[entry, c]
            if task.path[0] == 1:
                here = min(max(_start_of(task, poses, search.lane[lane, ROW], c), first), last)
                drawn = here + min(1.0, attempt / _NEARER) * (drawn - here)
            lane_set(search.place, c, lane, drawn)
    for n in range(task.turn_coord.shape[0]):
        for c in range(task.turn_coord[n], task.turn_coord[n] + 4):
            lane_set(search.place, c, lane, task.draw[entry, c])
    _begin_phase(search, task, lane, SETTLING if task.settles[0] == 1 else AIMING)


@njit
def _step(robot: RobotBundle, search: Search, task: SearchTask) -> None:
    """State.qpos = the end of the step from `place`."""
    model, state, number = robot.model, robot.state, search.number
    n = search.move.shape[0]
    damping = number[DAMPING] * number[COST] + _FLOOR
    for a in range(n):
        search.free[a] = _is_free(search, task, a)
    for a in range(n):
        free = search.free[a]
        for b in range(a):
            search.matrix[a, b] = free * search.free[b] * search.normal[a, b]
        search.matrix[a, a] = free * search.normal[a, a] + damping
        search.move[a] = free * search.gradient[a]
    factorise(search.matrix, search.pivot, task.parent, task.run)
    solve(search.matrix, search.pivot, task.parent, task.run, search.move)
    q = state.qpos
    for c in range(q.shape[0]):
        q[c] = search.place[c]
    for a in range(n):
        c = task.coord[a]
        if c >= 0:
            q[c] = _within(search, task, a, q[c] + search.move[a])
    for k in range(task.turn_column.shape[0]):
        a = task.turn_column[k]
        turn_quaternion(q, task.turn_coord[k], search.move[a], search.move[a + 1], search.move[a + 2])
    expand(model, q, state.qvel, robot.data)


@njit
def _is_free(search: Search, task: SearchTask, a: int) -> Real:
    """0 for a column that is at a bound and pushes against it, else 1."""
    zero = search.number[DAMPING] - search.number[DAMPING]
    one = zero + 1.0
    if task.coord[a] < 0 or task.period[a] > 0.0:
        return one
    x, g = search.place[task.coord[a]], search.gradient[a]
    above = where_greater(search.high[a], x, one, where_greater(g, zero, zero, one))
    below = where_greater(x, search.low[a], one, where_greater(zero, g, zero, one))
    return above * below


@njit
def _within(search: Search, task: SearchTask, a: int, x: Real) -> Real:
    """A coordinate within its bounds: a turn further or back where that is the same pose, else at the bound."""
    low, high, period = search.low[a], search.high[a], task.period[a]
    x = where_greater(x, high, x - period, x)
    x = where_greater(low, x, x + period, x)
    return least(largest(x, low), high)


@njit
def _accept(robot: RobotBundle, search: Search, task: SearchTask) -> None:
    """Take the trial in the lanes in which it costs less, and mark those whose attempt has ended."""
    number = search.number
    zero = number[COST] - number[COST]
    one = zero + 1.0
    before, now = number[COST], number[TRIAL_COST]
    taken = where_greater(before, now, one, zero)
    number[COST] = where_greater(before, now, now, before)
    for k in range(ERRORS):
        search.error[k] = where_greater(taken, zero, search.trial_error[k], search.error[k])
    for c in range(search.place.shape[0]):
        search.place[c] = where_greater(taken, zero, robot.state.qpos[c], search.place[c])
    n = search.move.shape[0]
    for a in range(n):
        search.gradient[a] = where_greater(taken, zero, search.trial_gradient[a], search.gradient[a])
        for b in range(a + 1):
            search.normal[a, b] = where_greater(taken, zero, search.trial_normal[a, b], search.normal[a, b])
    number[DAMPING] = where_greater(
        taken, zero, largest(_LESS * number[DAMPING], zero + _LEAST), least(_MORE * number[DAMPING], zero + _MOST)
    )
    half = where_greater(0.5 * number[MARK], number[COST], one, zero)
    number[MARK] = where_greater(half, zero, number[COST], number[MARK])
    number[SLOW] = where_greater(half, zero, zero, number[SLOW] + 1.0)
    number[COUNT] = number[COUNT] + 1.0
    reached = where_greater(number[AIM] * search.error[POSITION], zero + task.tolerance[POSITION], zero, one)
    reached = where_greater(number[AIM] * search.error[ROTATION], zero + task.tolerance[ROTATION], zero, reached)
    reached = where_greater(search.error[CLOSURE], zero + task.tolerance[CLOSURE], zero, reached)
    reached = where_greater(number[PULL], zero, zero, reached)
    ended = where_greater(number[SLOW], zero + (_SLOW - 0.5), one, reached)
    number[DONE] = where_greater(number[COUNT], zero + (task.iterations[0] - 0.5), one, ended)


@njit
def _end_phase(search: Search, task: SearchTask, poses: Poses, lane: int) -> bool:
    """End a lane's phase: True if its row is done, else the next phase begins."""
    numbers = search.lane[lane]
    numbers[ITERATIONS] += int(lane_get(search.number, COUNT, lane))
    phase = numbers[PHASE]
    if phase == CLOSING:
        return True
    if phase == SETTLING:
        _begin_phase(search, task, lane, AIMING)
        return False
    if phase == AIMING:
        numbers[ATTEMPT] += 1
    if _is_reached(search, task, lane):
        return True
    if phase == POLISHING:
        _begin_phase(search, task, lane, CLOSING)
        return False
    if lane_get(search.number, COST, lane) < lane_get(search.number, BEST_COST, lane):
        for c in range(search.place.shape[0]):
            lane_set(search.best, c, lane, lane_get(search.place, c, lane))
        lane_set(search.number, BEST_COST, lane, lane_get(search.number, COST, lane))
    if numbers[ATTEMPT] < task.attempts[0]:
        _draw(search, task, poses, lane)
        return False
    for c in range(search.place.shape[0]):
        lane_set(search.place, c, lane, lane_get(search.best, c, lane))
    _begin_phase(search, task, lane, POLISHING)
    return False


@njit
def _is_reached(search: Search, task: SearchTask, lane: int) -> bool:
    """True if all errors of a lane are within the tolerance."""
    for k in range(ERRORS):
        if not lane_get(search.error, k, lane) <= task.tolerance[k]:
            return False
    return True


@njit
def _write(search: Search, task: SearchTask, poses: Poses, lane: int) -> None:
    """Write the result of a lane's row."""
    row = search.lane[lane, ROW]
    for c in range(search.place.shape[0]):
        poses.qpos[row, c] = lane_get(search.place, c, lane)
    for k in range(ERRORS):
        poses.error[row, k] = lane_get(search.error, k, lane)
    poses.status[row] = REACHED if _is_reached(search, task, lane) else NOT_REACHED
    if not lane_get(search.error, CLOSURE, lane) <= task.tolerance[CLOSURE]:
        poses.status[row] = OPEN
    poses.iterations[row] = search.lane[lane, ITERATIONS]
    poses.attempts[row] = search.lane[lane, ATTEMPT]
