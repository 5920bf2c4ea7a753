"""Aims hard loops, tendon equalities and curved couplings at where the velocities found lead, and solves again."""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.axis_rows import find_axis_misses
from artsim.sim.constraints.coupling_rows import find_coupling_misses
from artsim.sim.constraints.loop_rows import find_loop_misses, relax_loops, tighten_loops
from artsim.sim.constraints.row import AIMS, CLOSED, FASTER, MISSED, NEARER, UNSOLVED, share_of_aim
from artsim.sim.constraints.tendon_rows import find_tendon_misses
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import SOLVER
from artsim.sim.run_data.run_records import LASTING_ROWS, RESIDUAL, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.calls import ask
from artsim.sim.stepping.system import set_end_velocities


@njit
def close_loops(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, solver: SolverBundle
) -> None:
    """Solve once more with hard loops, tendon equalities and curved couplings aimed at where the velocities found lead.

    Curved constraints are then satisfied to third order. Where a step turns too far for one aim, aims are repeated as
    long as each reduces the miss. An aim that does not is shortened, or turned round, by the secant along it (a change
    point of a linkage). A miss that no aim reduces (a redundant row held by others) would be pulled on without end, so
    that all aims at it are taken back. The last aim is taken back where aimed rows contradict each other, or nearly do:
    an aim corrects an error of second order in the step, and must not turn a velocity into a much larger one.
    """
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    if rows.report[RESIDUAL] > UNSOLVED:
        return
    before = math.inf
    most = FASTER * fastest_of(step)
    for aims in range(AIMS):
        miss = find_misses(robot, run, rows, equipment)
        if aims > 0 and miss <= CLOSED:
            break
        helped = miss <= NEARER * before
        if helped:
            _aim_on(rows, inputs.time_step[0])
        else:
            _turn_aim(rows, inputs.time_step[0], aims)
        ask(solver.call, SOLVE_AGAIN)
        absurd = rows.report[RESIDUAL] > UNSOLVED or fastest_of(step) > most
        if absurd:
            _take_aim_back(rows)
            ask(solver.call, SOLVE_AGAIN)
        set_end_velocities(model, data, run)
        mark(run.clock, SOLVER)
        if absurd or not helped or miss <= MISSED:
            break
        before = miss
    if equipment is not None:
        _relax(robot, run, rows, equipment, solver)


@njit
def _relax(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, solver: SolverBundle) -> None:
    """Solve again without the velocities by which rows of hard loops yield."""
    if relax_loops(run.inputs, rows, equipment):
        ask(solver.call, SOLVE_AGAIN)
        if tighten_loops(run.inputs, rows):
            ask(solver.call, SOLVE_AGAIN)
        set_end_velocities(robot.model, robot.data, run)
        mark(run.clock, SOLVER)


@inlined
def _aim_on(rows: Rows, h: float) -> None:
    """Aim at where the velocities found miss; rows.unaimed keeps the biases from before."""
    for n in range(rows.number[LASTING_ROWS]):
        rows.unaimed[n] = rows.bias[n]
        rows.bias[n] += rows.miss[n] / h


@njit
def _turn_aim(rows: Rows, h: float, aims: int) -> None:
    """Shorten the last of `aims` aims, or turn it round; or take all back if the last one hardly changed the miss."""
    along, square = 0.0, 0.0
    for n in range(rows.number[LASTING_ROWS]):
        target = h * (rows.bias[n] - rows.unaimed[n])
        along += target * rows.miss[n]
        square += target * target
    share = share_of_aim(along, square)
    for n in range(rows.number[LASTING_ROWS]):
        if share == 0.0:
            rows.bias[n] -= aims * rows.miss[n] / h
        else:
            rows.bias[n] = rows.unaimed[n] + share * (rows.bias[n] - rows.unaimed[n])


@inlined
def fastest_of(step: Step) -> float:
    """The largest velocity found."""
    fastest = 0.0
    for a in range(step.next.shape[0]):
        fastest = max(fastest, abs(step.next[a]))
    return fastest


@njit
def _take_aim_back(rows: Rows) -> None:
    """Restore the biases from before the last aim, and clear the impulses that it called for."""
    for n in range(rows.number[LASTING_ROWS]):
        if rows.bias[n] != rows.unaimed[n]:
            rows.bias[n] = rows.unaimed[n]
            rows.impulse[n] = 0.0


@njit
def find_misses(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None) -> float:
    """Set rows.miss of all rows but the contacts' for where step.velocity leads, and return the largest.

    `data` and equipment.data are left as they are.
    """
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    for n in range(rows.number[LASTING_ROWS]):
        rows.miss[n] = 0.0
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    move(model, step.stage_qpos, step.velocity, inputs.time_step[0])
    expand(model, step.stage_qpos, step.stage_qvel, data)
    worst = find_axis_misses(model, inputs, step.stage_qpos, rows)
    worst = max(worst, find_coupling_misses(model, inputs, step.stage_qpos, rows))
    if equipment is not None:
        worst = max(worst, _find_misses_of_equipment(robot, run, rows, equipment))
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    if equipment is not None:
        kinematics(model, state.qpos, data)
        if equipment.model.tendon_row_follower.shape[0] > 0:
            tendon_paths(robot, state.qpos, state.qvel, equipment)
    return worst


@njit
def _find_misses_of_equipment(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle) -> float:
    """Set rows.miss of loops and tendon equalities at step.stage_qpos, and return the largest."""
    model, data, step = robot.model, robot.data, run.step
    kinematics(model, step.stage_qpos, data)
    worst = find_loop_misses(model, data, rows, equipment)
    if equipment.model.tendon_row_follower.shape[0] > 0:
        tendon_paths(robot, step.stage_qpos, step.stage_qvel, equipment)
        worst = max(worst, find_tendon_misses(run.inputs, rows, equipment))
    return worst
