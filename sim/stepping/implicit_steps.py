"""Steps with one implicit stage, for motion without unilateral rows: implicit Euler and midpoint, generalised α.

The unknowns x are the accelerations of the independent dofs at the stage, whose positions and velocities follow from
them by run_data/implicit_work.py; x = u̇(q, v) there, with all forces of accelerations.py, is what is solved. Loops and
couplings that are rows are held in u̇ as in rk4.py.

Fixed-point iteration comes first: it costs an evaluation, and motion that the step resolves needs three or four. Where
it does not shrink errors to _SLOW, Newton's method follows with a matrix by forward differences: nu evaluations, and as
many again where it, too, becomes slow. The matrix is not kept between steps, which depend on nothing but the state.
"""

from __future__ import annotations

from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Ints1, Reals1, Reals2
from artsim.sim.run_data.implicit_work import (
    AHEAD,
    END_VELOCITY,
    END_WAY,
    NEXT_MEMORY,
    OF_MEMORY,
    OF_STAGE,
    OF_START,
    STAGE_VELOCITY,
    STAGE_WAY,
    START_SHARE,
    ImplicitWork,
)
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import EVALUATE, TASK, UNSOLVED_STEPS, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.accelerations import evaluate
from artsim.sim.stepping.own_steps import (
    advance_activations_by_mean,
    finish_step,
    go_ahead,
    keep_start,
    start_step,
    weigh_evaluation,
)

_MOST = 40  # iterations
_CLOSE = 1e-12  # change of the step's end, as a share of its velocities, at which iterations end
_SLOW = 0.2  # ratio of changes from which on a matrix is worth its evaluations
_VARIATION = 1e-6  # of velocities, for differences [rad/s or m/s]
_UNSOLVED = 1e-6  # [rad/s or m/s]


@njit
def implicit_step(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    work: ImplicitWork,
) -> None:
    """Evaluate the step's start, whose acceleration and forces a recorded row holds; or solve for the stage and
    advance the state."""
    state, step = robot.state, run.step
    if step.integrator[TASK] == EVALUATE:
        _remember(robot, run, work)
        start_step(robot, run, rows, equipment, rules, solver)
        weigh_evaluation(run, equipment, state.qvel, work.times[START_SHARE], 1.0)
        return
    keep_start(robot, run, equipment)
    _begin_iterations(robot, run, work)
    left = _iterate(robot, run, rows, equipment, rules, solver, work)
    step.worst_residual[0] = max(step.worst_residual[0], left)
    if left > _UNSOLVED:
        step.yielded[UNSOLVED_STEPS] += 1.0
    weigh_evaluation(run, equipment, step.stage_qvel, 1.0 - work.times[START_SHARE], 1.0)
    _advance(robot, run, work)
    advance_activations_by_mean(robot, run, equipment, 1.0)
    finish_step(robot, run, equipment)


@njit
def _remember(robot: RobotBundle, run: RunBundle, work: ImplicitWork) -> None:
    """Set work.memory (nv,) from the changes of velocity that the last step left in the state."""
    for k in range(work.memory.shape[0]):
        work.memory[k] = robot.state.change[k] / run.inputs.time_step[0]


@njit
def _begin_iterations(robot: RobotBundle, run: RunBundle, work: ImplicitWork) -> None:
    """Let the stage have the accelerations at the step's start; so does the memory, where there is none."""
    known = False
    for k in range(work.memory.shape[0]):
        known = known or work.memory[k] != 0.0
    for k in range(work.start.shape[0]):
        work.start[k] = run.step.qacc[k]
        if not known:
            work.memory[k] = work.start[k]
    for a in range(work.stage.shape[0]):
        work.stage[a] = work.start[robot.model.independent_dof[a]]


@njit
def _iterate(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    work: ImplicitWork,
) -> float:
    """Solve for work.stage (nu,); the last change, of velocities, if it is not close [rad/s or m/s], else 0."""
    step, nu, h = run.step, work.stage.shape[0], run.inputs.time_step[0]
    before, size = 0.0, 0.0
    has_matrix = False
    fresh = 0  # iterations with this matrix
    for n in range(_MOST):
        _evaluate_stage(robot, run, rows, equipment, rules, solver, work)
        if n > 0 and not has_matrix:
            slow = False
            size = 0.0
            for a in range(nu):
                size = max(size, h * abs(work.stage[a] - step.next[a]))
            slow = not size <= _SLOW * before
            if slow:
                for a in range(nu):  # back to where the last change began
                    work.stage[a] += work.change[a]
                _evaluate_stage(robot, run, rows, equipment, rules, solver, work)
        else:
            slow = fresh > 2 and not size <= _SLOW * before
        if slow:
            _find_matrix(robot, run, rows, equipment, rules, solver, work)
            has_matrix = True
            fresh = 0
        before = size
        size, scale = 0.0, 1e-300
        for a in range(nu):
            work.change[a] = work.stage[a] - step.next[a]
        if has_matrix:
            _solve(work.matrix, work.pivot, work.change)
            fresh += 1
        for a in range(nu):
            work.stage[a] -= work.change[a]
            k = robot.model.independent_dof[a]
            size = max(size, h * abs(work.change[a]))
            scale = max(scale, abs(step.start_qvel[k]), h * abs(work.stage[a]))
        if size <= _CLOSE * scale:
            return 0.0
    return size if size > 1e3 * _CLOSE * scale else 0.0


@njit
def _evaluate_stage(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    work: ImplicitWork,
) -> None:
    """Set step.next (nu,) to the accelerations that the forces at the stage give."""
    step = run.step
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = step.start_qpos[n]
    _find_way(robot, run, work, STAGE_WAY, work.times[AHEAD], step.tangent)
    move(robot.model, step.stage_qpos, step.tangent, 1.0)
    _find_velocity(robot, run, work, STAGE_VELOCITY, step.stage_qvel)
    go_ahead(robot, run, equipment, work.times[AHEAD])
    evaluate(robot, step.stage_qpos, step.stage_qvel, run, rows, equipment, rules, solver)


@njit
def _accelerated(robot: RobotBundle, work: ImplicitWork, row: int, a: int) -> float:
    """A row's sum of accelerations for independent dof a."""
    k, shares = robot.model.independent_dof[a], work.shares
    total: float = shares[row, OF_MEMORY] * work.memory[k] + shares[row, OF_START] * work.start[k]
    return total + shares[row, OF_STAGE] * work.stage[a]


@njit
def _find_velocity(robot: RobotBundle, run: RunBundle, work: ImplicitWork, row: int, v: Reals1) -> None:
    """v (nv,) gets the velocities of independent dofs by a row of the shares; followers have their own from their
    leaders."""
    step, h = run.step, run.inputs.time_step[0]
    for k in range(v.shape[0]):
        v[k] = step.start_qvel[k]
    for a in range(work.stage.shape[0]):
        k = robot.model.independent_dof[a]
        v[k] = step.start_qvel[k] + h * _accelerated(robot, work, row, a)


@njit
def _find_way(robot: RobotBundle, run: RunBundle, work: ImplicitWork, row: int, ahead: float, way: Reals1) -> None:
    """way (nv,) gets the way of independent dofs over `ahead` steps, by a row of the shares."""
    step, h = run.step, run.inputs.time_step[0]
    for k in range(way.shape[0]):
        way[k] = 0.0
    for a in range(work.stage.shape[0]):
        k = robot.model.independent_dof[a]
        way[k] = h * (ahead * step.start_qvel[k] + h * _accelerated(robot, work, row, a))


@njit
def _find_matrix(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    work: ImplicitWork,
) -> None:
    """Set work.matrix to the factors of 1 - ∂u̇/∂x at work.stage, by forward differences. step.next (nu,) has u̇ there
    before and after."""
    step, nu = run.step, work.stage.shape[0]
    moves = run.inputs.time_step[0] * work.shares[STAGE_VELOCITY, OF_STAGE]
    for a in range(nu):
        work.base[a] = step.next[a]
    for b in range(nu):
        here = work.stage[b]
        work.stage[b] += _VARIATION / moves
        _evaluate_stage(robot, run, rows, equipment, rules, solver, work)
        varied = work.stage[b] - here
        for a in range(nu):
            work.matrix[a, b] = (1.0 if a == b else 0.0) - (step.next[a] - work.base[a]) / varied
        work.stage[b] = here
    _factorise(work.matrix, work.pivot)
    for a in range(nu):
        step.next[a] = work.base[a]


@njit
def _factorise(A: Reals2, pivot: Ints1) -> None:
    """A = P L U in place, with partial pivoting (Golub and Van Loan 2013, ch. 3.4)."""
    n = A.shape[0]
    for c in range(n):
        best = c
        for i in range(c + 1, n):
            if abs(A[i, c]) > abs(A[best, c]):
                best = i
        pivot[c] = best
        for j in range(n):
            A[c, j], A[best, j] = A[best, j], A[c, j]
        if A[c, c] == 0.0:
            A[c, c] = 1e-300
        for i in range(c + 1, n):
            A[i, c] = A[i, c] / A[c, c]
            for j in range(c + 1, n):
                A[i, j] -= A[i, c] * A[c, j]


@njit
def _solve(A: Reals2, pivot: Ints1, x: Reals1) -> None:
    """x (n,) ← A⁻¹ x by the factors."""
    n = A.shape[0]
    for c in range(n):
        x[c], x[pivot[c]] = x[pivot[c]], x[c]
    for i in range(n):
        for j in range(i):
            x[i] -= A[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= A[i, j] * x[j]
        x[i] = x[i] / A[i, i]


@njit
def _advance(robot: RobotBundle, run: RunBundle, work: ImplicitWork) -> None:
    """Set coordinates and velocities at the end of the step, and what the next one remembers."""
    state, step, h = robot.state, run.step, run.inputs.time_step[0]
    _find_velocity(robot, run, work, END_VELOCITY, state.qvel)
    _find_way(robot, run, work, END_WAY, 1.0, step.tangent)
    move(robot.model, state.qpos, step.tangent, 1.0)
    for k in range(state.change.shape[0]):
        state.change[k] = 0.0
    for a in range(work.stage.shape[0]):
        state.change[robot.model.independent_dof[a]] = h * _accelerated(robot, work, NEXT_MEMORY, a)
