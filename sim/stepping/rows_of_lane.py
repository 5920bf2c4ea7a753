"""Rows that packs have lane by lane, found for a lane by the code of a single robot, and misses of tendons.

The rows found here are those of every step that may have any columns: loops, couplings that give way, couplings of axes
of balls, limits of balls, actuators that are rows, equalities, inertia and friction of tendons, and velocity limits of
links. Stiff springs of tendons are rows in some steps only, and come last.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import composites
from artsim.sim.articulation.kinematics import kinematics, motion_columns, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.actuator_rows import actuator_rows
from artsim.sim.constraints.axis_rows import axis_row
from artsim.sim.constraints.coupling_rows import coupling_row
from artsim.sim.constraints.limit_rows import ball_limit_rows
from artsim.sim.constraints.link_velocity_rows import MOST_BOUND_ROUNDS, aim_bounds, link_rows, loosen
from artsim.sim.constraints.loop_drives import has_inertial_drives
from artsim.sim.constraints.loop_rows import loop_rows
from artsim.sim.constraints.tendon_rows import find_tendon_misses, has_sprung_tendons, tendon_rows, tendon_spring_rows
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import ALL_ROWS, PLACES, RULE_ROUNDS, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.packs import OwnRows
from artsim.sim.stepping.system import bare_system, has_springs


@njit
def find_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    own: OwnRows,
) -> None:
    """Build a lane's rows at its state, with the bias at step.middle, and note them in `own`. Needs forces of the
    equipment, kinematics, and the bodies' velocities and accelerations as the bias leaves them.
    """
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    if _needs_mass(model, equipment):
        world_inertia(model, data)
        bare_system(model, state.qpos, step.middle, data, run, equipment, solver)
    else:
        motion_columns(model, data)
    rows.number[ALL_ROWS] = 0
    rows.number[PLACES] = 0
    for c in range(model.row_follower.shape[0]):
        coupling_row(robot, run, rows, c)
    for c in range(model.axis_dof.shape[0]):
        axis_row(robot, run, rows, c)
    for k in range(model.dof_body.shape[0]):
        ball_limit_rows(robot, run.inputs, rows, k)
    if equipment is not None:
        actuator_rows(model, data, run.inputs, rows, equipment)
        tendon_rows(model, state.qvel, data, run.inputs, rows, equipment, False)
        loop_rows(model, state.qvel, data, run, rows, equipment, step.columns)
    if rules is not None:
        world_inertia(model, data)
        composites(model, data)
        if step.retries[RULE_ROUNDS] == 0:
            loosen(rules)
        link_rows(model, data, run.inputs, rows, rules)
    if equipment is not None:
        tendon_spring_rows(model, data, run.inputs, rows, equipment)
    _note_rows(own, rows)


@njit
def _note_rows(own: OwnRows, found: Rows) -> None:
    """Note the rows found; one that the lane lacks gets no impulse."""
    nv = own.marked.shape[1]
    for e in range(own.value.shape[0]):
        own.value[e] = 0.0
    if found.number[ALL_ROWS] < own.kind.shape[0]:
        for t in range(own.kind.shape[0]):
            own.error[t], own.rate[t], own.bias[t] = 0.0, 0.0, 0.0
            own.cfm[t], own.lower[t], own.upper[t] = 0.0, 0.0, 0.0
    for n in range(found.number[ALL_ROWS]):
        t = found.place[n]
        own.kind[t], own.dof[t], own.part[t] = found.kind[n], found.dof[n], found.part[n]
        for e in range(found.start[n], found.start[n + 1]):
            k = found.entry_dof[e]
            own.marked[t, k] = 1
            own.value[t * nv + k] += found.entry_value[e]
        own.error[t], own.rate[t], own.bias[t] = found.error[n], found.rate[n], found.bias[n]
        own.cfm[t], own.lower[t], own.upper[t] = found.cfm[n], found.lower[n], found.upper[n]


@inlined
def _needs_mass(model: Model, equipment: EquipmentBundle | None) -> bool:
    """True if rows are scaled by their mobility at the present state."""
    if equipment is not None:
        return has_springs(model) or has_sprung_tendons(equipment) or has_inertial_drives(equipment)
    return has_springs(model)


@njit
def aim_bounds_of_lane(robot: RobotBundle, run: RunBundle, rules: RuleBundle, own: OwnRows) -> None:
    """Direct the rows of bounds that step.velocity violates. own.again: 1 where it violates any, 2 where no further
    round is to be tried.
    """
    step = run.step
    step.retries[RULE_ROUNDS] += 1
    if not aim_bounds(robot, run, rules):
        step.retries[RULE_ROUNDS] = 0
    else:
        own.outdated[0] = 1.0
        own.again[0] = 2.0 if step.retries[RULE_ROUNDS] >= MOST_BOUND_ROUNDS else 1.0


@njit
def find_tendon_misses_of_lane(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, own: OwnRows
) -> None:
    """Set own.miss of tendon equalities at step.stage_qpos, of which robot.data holds the kinematics; leaves those at
    the state.
    """
    state, step = robot.state, run.step
    rows.number[ALL_ROWS] = own.kind.shape[0]
    for t in range(own.kind.shape[0]):
        rows.kind[t], rows.error[t], rows.rate[t], rows.miss[t] = own.kind[t], own.error[t], own.rate[t], 0.0
    tendon_paths(robot, step.stage_qpos, step.stage_qvel, equipment)
    find_tendon_misses(run.inputs, rows, equipment)
    for t in range(own.kind.shape[0]):
        own.miss[t] = rows.miss[t]
    kinematics(robot.model, state.qpos, robot.data)
    tendon_paths(robot, state.qpos, state.qvel, equipment)
