"""Aims hard loops, tendon equalities and curved couplings at where the velocities found lead, and solves again.

Curved constraints are then satisfied to third order. Where a step turns too far for one aim, aims are repeated as long
as each reduces the miss. An aim that does not is shortened, or turned round, by the secant along it (a change point of
a linkage). A miss that no aim reduces (a redundant row held by others) would be pulled on without end, so that all aims
at it are taken back. The last aim is taken back where aimed rows contradict each other, or nearly do: an aim corrects
an error of second order in the step, and must not turn a velocity into a much larger one. At last, rows of hard loops
lose the velocities by which they yield.

Between any two solutions `aim_rows` decides what comes next, for a single robot and for each lane of a pack.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.axis_rows import find_axis_misses, has_axes
from artsim.sim.constraints.coupling_rows import find_coupling_misses, has_curved_couplings
from artsim.sim.constraints.loop_rows import find_loop_misses, has_hard_loops, relax_loops, tighten_loops
from artsim.sim.constraints.row import AIMS, CLOSED, FASTER, MISSED, NEARER, UNSOLVED, share_of_aim
from artsim.sim.constraints.tendon_rows import find_tendon_misses, has_hard_equalities
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import (
    AIM_COUNT,
    AIMED,
    BETA,
    LAST_AIM,
    LAST_MISS,
    LASTING_ROWS,
    MOST_SPEED,
    PHASE,
    RELAXED,
    RESIDUAL,
    SETTLED,
    TAKEN_BACK,
    TIGHTENED,
    UNAIMED,
    Inputs,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.stepping.lane_equipment import find_paths_in_lanes


@njit
def begin_aims(step: Step, chosen: Real) -> None:
    """Aim from the beginning where `chosen` is 1, and the rows are built anew."""
    zero = zero_like(chosen)
    step.aiming[PHASE] = where_greater(chosen, zero, zero + UNAIMED, step.aiming[PHASE])


@inlined
def is_aiming(step: Step) -> Real:
    """1 in the midst of the sequence of aims."""
    return lies_in(step.aiming[PHASE], AIMED, TIGHTENED)


@njit
def are_aimed(model: Model, inputs: Inputs, equipment: EquipmentBundle | None) -> bool:
    """True if rows are aimed: there are curved equalities, and impulses act through the velocities at the step's
    end."""
    if inputs.scheme[BETA] != 1.0:
        return False
    if equipment is not None and (has_hard_loops(equipment) or has_hard_equalities(equipment)):
        return True
    return has_axes(model) or has_curved_couplings(model)


@njit
def aim_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, chosen: Real) -> Real:
    """Take the next step in the sequence of aims where `chosen` is 1; 1 where the rows are to be solved again, with
    other biases.
    """
    step = run.step
    zero = zero_like(chosen)
    again = zero
    if not are_aimed(robot.model, run.inputs, equipment):
        return again
    phase = step.aiming[PHASE]
    unaimed = chosen * lies_in(phase, UNAIMED, UNAIMED)  # rows that contradict each other are not aimed
    chosen = chosen - where_greater(rows.report[RESIDUAL], zero + UNSOLVED, unaimed, zero)
    aimed = chosen * lies_in(phase, AIMED, LAST_AIM)
    relaxing = chosen * lies_in(phase, TAKEN_BACK, TAKEN_BACK)
    relaxed = chosen * lies_in(phase, RELAXED, RELAXED)
    step.aiming[PHASE] = where_greater(chosen * lies_in(phase, TIGHTENED, TIGHTENED), zero, zero + SETTLED, phase)
    if equipment is not None and any_positive(relaxed):  # before rows.miss is found anew
        again = tighten_loops(run.inputs, rows, relaxed)
        _go_to(step, TIGHTENED, relaxed, again)
    absurd = _is_absurd(rows, step, aimed)
    if any_positive(absurd):
        _take_aim_back(rows, absurd)
        _go_to(step, TAKEN_BACK, absurd, absurd)
        again = again + absurd
    looking = chosen * lies_in(phase, UNAIMED, UNAIMED) + aimed - absurd
    if any_positive(looking):
        on = _aim(robot, run, rows, equipment, looking)
        relaxing = relaxing + looking - on
        again = again + on
    if any_positive(relaxing):
        found = zero
        if equipment is not None:
            found = relax_loops(run.inputs, rows, equipment, relaxing)
        _go_to(step, RELAXED, relaxing, found)
        again = again + found
    return again


@inlined
def lies_in(phase: Real, first: int, last: int) -> Real:
    """1 where the phase is one of those from `first` to `last`."""
    zero = zero_like(phase)
    return where_greater(phase, zero + (first - 0.5), where_greater(zero + (last + 0.5), phase, zero + 1.0, zero), zero)


@inlined
def _go_to(step: Step, phase: int, chosen: Real, solved: Real) -> None:
    """Note the phase where the rows are solved again; elsewhere, where `chosen` is 1, that no solution is left."""
    zero = zero_like(chosen)
    settled = where_greater(chosen, zero, zero + SETTLED, step.aiming[PHASE])
    step.aiming[PHASE] = where_greater(solved, zero, zero + phase, settled)


@inlined
def _is_absurd(rows: Rows, step: Step, aimed: Real) -> Real:
    """1 where `aimed` is 1 and the last aim is to be taken back."""
    zero = zero_like(aimed)
    fast = where_greater(fastest_of(step, zero), step.aiming[MOST_SPEED], aimed, zero)
    return where_greater(rows.report[RESIDUAL], zero + UNSOLVED, aimed, fast)


@njit
def _aim(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, looking: Real) -> Real:
    """Aim once more where `looking` is 1 and a further aim may help; 1 where it may."""
    step, h = run.step, run.inputs.time_step[0]
    zero = zero_like(looking)
    begun = looking * lies_in(step.aiming[PHASE], UNAIMED, UNAIMED)
    most = where_greater(begun, zero, FASTER * fastest_of(step, zero), step.aiming[MOST_SPEED])
    aims = where_greater(begun, zero, zero, step.aiming[AIM_COUNT] + looking)
    before = where_greater(begun, zero, zero + math.inf, step.aiming[LAST_MISS])
    on = looking * (1.0 - lies_in(step.aiming[PHASE], LAST_AIM, LAST_AIM))
    on = where_greater(zero + (AIMS - 0.5), aims, on, zero)
    if not any_positive(on):
        return on
    miss = find_misses(robot, run, rows, equipment, on)
    on = where_greater(miss, zero + CLOSED, on, on * begun)
    helped = where_greater(miss, NEARER * before, zero, on)
    if any_positive(helped):
        _aim_on(rows, h, helped)
    if any_positive(on - helped):
        _turn_aim(rows, h, aims, on - helped)
    going = where_greater(miss, zero + MISSED, helped, zero)
    phase = where_greater(going, zero, zero + AIMED, zero + LAST_AIM)
    step.aiming[PHASE] = where_greater(on, zero, phase, step.aiming[PHASE])
    step.aiming[AIM_COUNT] = where_greater(on, zero, aims, step.aiming[AIM_COUNT])
    step.aiming[LAST_MISS] = where_greater(on, zero, miss, step.aiming[LAST_MISS])
    step.aiming[MOST_SPEED] = where_greater(on, zero, most, step.aiming[MOST_SPEED])
    return on


@inlined
def _aim_on(rows: Rows, h: float, chosen: Real) -> None:
    """Aim at where the velocities found miss; rows.unaimed keeps the biases from before."""
    zero = zero_like(chosen)
    for n in range(rows.number[LASTING_ROWS]):
        rows.unaimed[rows.place[n]] = where_greater(chosen, zero, rows.bias[n], rows.unaimed[rows.place[n]])
        rows.bias[n] = where_greater(chosen, zero, rows.bias[n] + rows.miss[rows.place[n]] / h, rows.bias[n])


@njit
def _turn_aim(rows: Rows, h: float, aims: Real, chosen: Real) -> None:
    """Shorten the last of `aims` aims, or turn it round; or take all back if the last one hardly changed the miss."""
    zero = zero_like(chosen)
    along, square = zero, zero
    for n in range(rows.number[LASTING_ROWS]):
        target = h * (rows.bias[n] - rows.unaimed[rows.place[n]])
        along += target * rows.miss[rows.place[n]]
        square += target * target
    share = share_of_aim(along, square)
    for n in range(rows.number[LASTING_ROWS]):
        shortened = rows.unaimed[rows.place[n]] + share * (rows.bias[n] - rows.unaimed[rows.place[n]])
        turned = where_greater(absolute(share), zero, shortened, rows.bias[n] - aims * rows.miss[rows.place[n]] / h)
        rows.bias[n] = where_greater(chosen, zero, turned, rows.bias[n])


@inlined
def fastest_of(step: Step, zero: Real) -> Real:
    """The largest velocity found, `zero` if there are none, in both widths."""
    fastest = zero
    for a in range(step.next.shape[0]):
        fastest = largest(fastest, absolute(step.next[a]))
    return fastest


@njit
def _take_aim_back(rows: Rows, chosen: Real) -> None:
    """Restore the biases from before the last aim, and clear the impulses that it called for."""
    zero = zero_like(chosen)
    for n in range(rows.number[LASTING_ROWS]):
        changed = where_greater(absolute(rows.bias[n] - rows.unaimed[rows.place[n]]), zero, chosen, zero)
        rows.bias[n] = where_greater(changed, zero, rows.unaimed[rows.place[n]], rows.bias[n])
        rows.impulse[n] = where_greater(changed, zero, zero, rows.impulse[n])


@njit
def find_misses(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, chosen: Real
) -> Real:
    """Set rows.miss of all rows but the contacts' for where step.velocity leads, and return the largest; of tendon
    equalities only in lanes where `chosen` is 1.

    `data` and equipment.data are left as they are.
    """
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    for n in range(rows.number[LASTING_ROWS]):
        rows.miss[rows.place[n]] = like(0.0, data)
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    move(model, step.stage_qpos, step.velocity, inputs.time_step[0])
    expand(model, step.stage_qpos, step.stage_qvel, data)
    worst = find_axis_misses(model, data, inputs, step.stage_qpos, rows)
    worst = largest(worst, find_coupling_misses(model, data, inputs, step.stage_qpos, rows))
    if equipment is not None:
        worst = largest(worst, _find_misses_of_equipment(robot, run, rows, equipment))
    expand(model, state.qpos, state.qvel, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    if equipment is not None:
        kinematics(model, state.qpos, data)
        if equipment.model.tendon_row_follower.shape[0] > 0:
            for n in range(step.stage_qpos.shape[0]):
                step.stage_qpos[n] = state.qpos[n]
            for k in range(step.stage_qvel.shape[0]):
                step.stage_qvel[k] = state.qvel[k]
            _find_paths(robot, run, equipment)
    return worst


@njit
def _find_misses_of_equipment(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle) -> Real:
    """Set rows.miss of loops and tendon equalities at step.stage_qpos, and return the largest."""
    model, data, step = robot.model, robot.data, run.step
    kinematics(model, step.stage_qpos, data)
    worst = find_loop_misses(model, data, run.inputs, rows, equipment)
    if equipment.model.tendon_row_follower.shape[0] > 0:
        _find_paths(robot, run, equipment)
        worst = largest(worst, find_tendon_misses(run.inputs, rows, equipment, like(0.0, data)))
    return worst


@inlined
def _find_paths(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Find the paths of tendons at step.stage_qpos and step.stage_qvel, of which robot.data holds the kinematics."""
    if run.lanes is not None:
        find_paths_in_lanes(robot, run)
    else:
        tendon_paths(robot, run.step.stage_qpos, run.step.stage_qvel, equipment)
