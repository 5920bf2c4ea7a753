"""Stages of solution.solve_step that differ for a pack, which takes them for all lanes at once.

Lanes without rows take the step without rows, all others are solved together. Lanes whose velocities call for it
(retries.py) are solved again, with other rows, targets or forces; the other lanes keep the velocities found before, to
the last bit.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import end_velocities
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.actuation import find_places
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.drives import begin_drives, bound_drives, set_drives
from artsim.sim.equipment.implicit_actuators import guess_bounds, set_plain_lengths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, highest, lane_count, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import (
    FREE_STEPS_POSSIBLE,
    LARGE,
    M_IS_SET,
    RESIDUAL,
    WEIGHED,
    WITHOUT_ROWS,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.controller import command
from artsim.sim.stepping.free_motion import free_step
from artsim.sim.stepping.lane_equipment import exert


@njit
def find_forces_in_lanes(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Forces at the state, and the targets of drives."""
    state = robot.state
    find_places(robot.model, state.qpos, run, 0)
    if equipment is not None:
        if connected(run.lanes.helpers.exerter[0]):
            exert(robot, run, equipment)
        else:
            set_plain_lengths(robot.model, state.qpos, state.qvel, equipment)
        guess_bounds(robot.model, state.qpos, state.qvel, run, equipment)
    command(robot, state.qpos, state.qvel, run, equipment, run.inputs.time_step[0])
    begin_drives(state, run.step)
    set_drives(run)


@njit
def start_in_lanes(run: RunBundle, solver: SolverBundle) -> None:
    """Begin with no solution."""
    zero = zero_like(run.step.outdated[0])
    run.lanes.data.searches[0] = zero
    if solver.pack is not None:
        solver.pack.done[0] = solver.pack.warm[0] = solver.pack.by_newton[0] = zero
        solver.pack.same[0] = 0


@njit
def hold_without_rows_in_lanes(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    solver: SolverBundle,
) -> bool:
    """True if no lane with rows or couplings is to be solved; otherwise the velocities of the step without rows are in
    solver.pack.free."""
    if solver.pack is None:
        free_step(robot, run, rows, equipment)
        run.step.retries[WITHOUT_ROWS] = 1
        return True
    if is_convex(run.inputs):
        bound_drives(robot, run, rows)
    _choose_bound(robot, run, equipment, solver, contact)
    left = 1.0 - solver.pack.done[0]
    if any_positive((1.0 - solver.pack.bound[0]) * left):
        free_step(robot, run, rows, equipment)
        for k in range(solver.pack.free.shape[0]):
            solver.pack.free[k] = run.step.next[k]
    run.step.retries[WITHOUT_ROWS] = 0
    if any_positive(solver.pack.bound[0] * left):
        return False
    _keep_what_stands(robot, run, solver)
    return True


@njit
def find_velocities_in_lanes(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle | None, solver: SolverBundle
) -> None:
    """step.next and step.velocity: by the pack's solver in lanes with rows, from the step without rows elsewhere."""
    if solver.pack is None:
        return
    step = run.step
    zero = like(0.0, robot.data)
    run_entry(solver.pack.entry)
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(solver.pack.bound[0], zero, step.next[k], solver.pack.free[k])
    _keep_what_stands(robot, run, solver)


@inlined
def _keep_what_stands(robot: RobotBundle, run: RunBundle, solver: SolverBundle) -> None:
    """Restore the velocities of lanes that are not solved again, and set step.velocity of all."""
    step = run.step
    zero = zero_like(solver.pack.done[0])
    for k in range(step.next.shape[0]):
        step.next[k] = where_greater(solver.pack.done[0], zero, solver.pack.kept[k], step.next[k])
    end_velocities(robot.model, robot.data, step.next, run.inputs.time_step[0], step.velocity)


@inlined
def lanes_to_look_at(run: RunBundle, solver: SolverBundle, one: Pack) -> Pack:
    """1 in lanes whose solution is to be looked at: not in those whose rows the solver ignores."""
    chosen, zero = one, zero_like(one)
    if solver.pack is not None:
        chosen = where_greater(solver.pack.done[0], zero, zero, chosen)
        chosen = where_greater(solver.pack.bound[0] * solver.pack.skip[0], zero, zero, chosen)
    return chosen


@njit
def go_on_in_lanes(
    run: RunBundle, rows: Rows, rules: RuleBundle | None, solver: SolverBundle, again: tuple[Pack, Pack, Pack]
) -> bool:
    """True if the step is to be solved again. `again`: 1 in lanes whose rows have changed, whose targets have, and
    whose bias acts elsewhere."""
    changed, aimed, moved = again
    further = changed + aimed + moved
    if not any_positive(further):
        return False
    if solver.pack is not None:
        warm = start_of_next(rows, solver.pack.bound[0])
        solver.pack.warm[0] = largest(warm, aimed)  # targets change, and impulses stay as they are
        anew = highest(changed) > 0.0 or run.step.counters[WEIGHED] & M_IS_SET == 0
        if rules is not None:  # these rows act on other dofs when they are built anew
            anew = anew or any_positive(run.step.outdated[0])
        solver.pack.same[0] = 0 if anew else 1
        keep_others(run, solver, further)
    return True


@inlined
def start_of_next(rows: Rows, bound: Pack) -> Pack:
    """1 in lanes that have rows and whose impulses are a start for the next solution: they solve the rows, and are not
    so large that they lose the digits of velocities."""
    zero = zero_like(bound)
    start = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, zero, bound)
    return where_greater(rows.report[LARGE], zero, zero, start)


@inlined
def keep_others(run: RunBundle, solver: SolverBundle, chosen: Pack) -> None:
    """Keep the velocities found in lanes where `chosen` is 0."""
    solver.pack.done[0] = 1.0 - chosen
    for k in range(run.step.next.shape[0]):
        solver.pack.kept[k] = run.step.next[k]


@njit
def _choose_bound(
    robot: RobotBundle,
    run: RunBundle,
    equipment: EquipmentBundle | None,
    solver: SolverBundle,
    contact: PackContactBundle | None,
) -> None:
    """Set pack.bound, the lanes with rows, and pack.skip, those the solver ignores. Both include dead lanes."""
    lanes, one = run.lanes, like(1.0, robot.data)
    solver.pack.bound[0] = _press_limits(robot, run) if run.step.counters[FREE_STEPS_POSSIBLE] == 1 else one
    solver.pack.bound[0] = largest(solver.pack.bound[0], run.step.drive_rows[0])
    solver.pack.yields[0] = zero_like(one)
    if equipment is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], equipment.data.tendon_by_row[0])
    if contact is not None:
        solver.pack.bound[0] = largest(solver.pack.bound[0], contact.lanes.touching[0])
        solver.pack.yields[0] = contact.lanes.yielding[0]
    solver.pack.skip[0] = where_greater(solver.pack.bound[0], zero_like(one), solver.pack.done[0], one)
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            lane_set(solver.pack.bound, 0, lane, 1.0)
            lane_set(solver.pack.skip, 0, lane, 1.0)


@inlined
def _press_limits(robot: RobotBundle, run: RunBundle) -> Pack:
    """1 in lanes where a side of a limit has a row: it pressed in the last step, when no other rows were there but
    those of contacts, or presses in this one."""
    zero = like(0.0, robot.data)
    pressed = zero
    for n in range(robot.state.impulse.shape[0]):
        pressed = where_greater(robot.state.impulse[n], zero, zero + 1.0, pressed)
    for k in range(run.step.pressed.shape[0]):
        for side in range(run.step.pressed.shape[1]):
            pressed = largest(pressed, run.step.pressed[k, side])
    return pressed
