"""Inputs of a pack, and forces of its equipment that branch on the state, found in each lane as of a single robot.

Tendons and their springs, transmissions, muscles, motors and filters branch on their data. That code sees the lane's
arrays in place. What follows from their forces is found in all lanes at once (equipment/implicit_actuators.py).
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.equipment.actuation import control_row, weigh_springs
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.forces import find_single_forces
from artsim.sim.equipment.implicit_actuators import guess_bounds, set_plain_forces, set_plain_lengths, weigh
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.tendons import find_tendon_drifts, has_inertia, tendon_paths
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_count, lane_set
from artsim.sim.foundation.records import ConstReals3, Lanes2
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import STEP_NUMBER, RunBundle
from artsim.sim.stepping.calibration import calibrate
from artsim.sim.stepping.controller import find_resisted
from artsim.sim.stepping.lane_ends import step_of_lane


@njit
def find_exerted(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Find the forces of a lane's equipment at its state, wrenches on links among the passive ones, and its activations
    at the end of the step. Needs the robot's kinematics in robot.data.
    """
    state, step, found = robot.state, run.step, equipment.data
    calibrate(robot, equipment, step, run.inputs.limit_impedance.shape[0] > 0)
    find_single_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 0)
    find_resisted(robot, state.qvel, run, equipment, run.inputs.time_step[0])
    for k in range(step.force.shape[0]):
        found.resisted[k] = step.force[k]
        step.applied[k] = 0.0
    apply_link_wrenches(robot, run, equipment)
    for k in range(step.applied.shape[0]):
        found.passive[k] += step.applied[k]
    if has_inertia(equipment):
        find_tendon_drifts(robot.model, state.qvel, robot.data, equipment)
    for n in range(state.activation.shape[0]):
        found.next_activation[n] = state.activation[n]
    advance_activations(equipment, run.inputs.time_step[0], found.next_activation)


@njit
def find_paths(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Find the lengths, velocities and moments of a lane's tendons at step.stage_qpos and step.stage_qvel, of which
    robot.data holds the kinematics."""
    tendon_paths(robot, run.step.stage_qpos, run.step.stage_qvel, equipment)


@njit
def find_paths_in_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Let helpers find the paths of the tendons of every lane at step.stage_qpos and step.stage_qvel."""
    for lane in range(lane_count(robot.state.qpos)):
        if run.lanes.data.alive[lane]:
            run_entry(run.lanes.helpers.pather[lane])


@njit
def exert(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Find the forces of the equipment of every lane, the weights of its springs, and the bounds of its actuators."""
    state, lanes, helpers = robot.state, run.lanes, run.lanes.helpers
    if connected(helpers.exerter[0]):
        for lane in range(lane_count(state.qpos)):
            if lanes.data.alive[lane]:
                helpers.counters[lane, STEP_NUMBER] = step_of_lane(run, lane)
                run_entry(helpers.exerter[lane])
        if lanes.adhesion is not None:
            for j in range(lanes.adhesion.number.shape[0]):
                lanes.adhesion.force[j] = equipment.data.actuator_force[lanes.adhesion.number[j]]
        weigh(robot.model, run, equipment)
    else:
        set_plain_lengths(robot.model, state.qpos, state.qvel, equipment)
    guess_bounds(robot.model, state.qpos, state.qvel, run, equipment)


@njit
def keep_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Keep the samples of delayed controls after a step of all lanes."""
    lanes = run.lanes
    if connected(lanes.helpers.keeper[0]):
        for lane in range(lane_count(robot.state.qpos)):
            if lanes.data.alive[lane]:
                lanes.helpers.counters[lane, STEP_NUMBER] = step_of_lane(run, lane)
                run_entry(lanes.helpers.keeper[lane])


@njit
def choose_inputs(model: Model, data: Workspace, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Select the row of inputs that acts on this step, and derive the equipment's forces from it."""
    inputs, lanes = run.inputs, run.lanes
    row = control_row(lanes.controls.start_step, lanes.data.input_row[0], run.step.counters[STEP_NUMBER])
    if row == lanes.data.input_row[0]:
        return
    lanes.data.input_row[0] = row
    _spread_row(data, lanes.controls.torque, row, inputs.torque)
    _spread_row(data, lanes.controls.target, row, inputs.target)
    _spread_row(data, lanes.controls.target_velocity, row, inputs.target_velocity)
    _spread_row(data, lanes.controls.target_acceleration, row, inputs.target_acceleration)
    _spread_row(data, lanes.controls.control, row, inputs.control)
    if equipment is not None:
        set_plain_forces(inputs, equipment)
        weigh(model, run, equipment)
    else:
        weigh_springs(model, run, equipment)


@inlined
def _spread_row(data: Workspace, table: ConstReals3, row: int, out: Lanes2) -> None:
    """Spread row `row` of the table (1 or lanes, rows, n) over the lanes of out (1, n)."""
    for k in range(out.shape[1]):
        if table.shape[0] == 1:
            out[0, k] = like(table[0, row, k], data)
        else:
            for lane in range(lane_count(out)):
                lane_set(out, k, lane, table[lane, row, k])
