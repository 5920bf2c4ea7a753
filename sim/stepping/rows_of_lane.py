"""Rows that packs have lane by lane, found for a lane by the code of a single robot, and their misses.

The rows found here are those of every step that may have any columns: loops, couplings that give way, couplings of axes
of balls, limits of balls, actuators that are rows, equalities, inertia and friction of tendons, and velocity limits of
links. Stiff springs of tendons are rows in some steps only, and come last.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import composites
from artsim.sim.articulation.kinematics import motion_columns, world_inertia
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.actuator_rows import actuator_rows
from artsim.sim.constraints.axis_rows import axis_row
from artsim.sim.constraints.coupling_rows import coupling_row
from artsim.sim.constraints.limit_rows import ball_limit_rows
from artsim.sim.constraints.link_velocity_rows import MOST_BOUND_ROUNDS, aim_bounds, link_rows, loosen
from artsim.sim.constraints.loop_drives import has_inertial_drives
from artsim.sim.constraints.loop_rows import loop_rows
from artsim.sim.constraints.tendon_rows import has_sprung_tendons, tendon_rows, tendon_spring_rows
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_ROWS, PLACES, RULE_ROUNDS, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.aims import find_misses
from artsim.sim.stepping.packs import Exerted
from artsim.sim.stepping.system import bare_system, has_springs


@njit
def find_rows(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, rules: None, solver: SolverBundle
) -> None:
    """Build a robot's rows at its state, with the bias at step.middle. Needs forces of the equipment, kinematics, and
    the bodies' velocities and accelerations as the bias leaves them.
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


@inlined
def _needs_mass(model: Model, equipment: EquipmentBundle) -> bool:
    """True if rows are scaled by their mobility at the present state."""
    if equipment is not None:
        return has_springs(model) or has_sprung_tendons(equipment) or has_inertial_drives(equipment)
    return has_springs(model)


@njit
def aim_bounds_of_lane(robot: RobotBundle, run: RunBundle, rules: RuleBundle, exerted: Exerted) -> None:
    """Direct the rows of bounds that step.velocity violates. exerted.changed: 1 where it violates any, 2 where
    no further round is to be tried.
    """
    step = run.step
    step.retries[RULE_ROUNDS] += 1
    exerted.changed[0] = 1
    if not aim_bounds(robot, run, rules):
        step.retries[RULE_ROUNDS] = 0
        exerted.changed[0] = 0
    elif step.retries[RULE_ROUNDS] >= MOST_BOUND_ROUNDS:
        exerted.changed[0] = 2


@njit
def find_row_misses(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle) -> None:
    """Set rows.miss for where step.velocity leads."""
    rows.number[LASTING_ROWS] = rows.number[ALL_ROWS]
    find_misses(robot, run, rows, equipment)
