"""Forces of a pack's equipment that branch on the state, found in each lane by the code of a single robot.

Tendons and their springs, transmissions, muscles, motors and filters branch on their data. That code sees the lane's
arrays in place. What follows from their forces is found in all lanes at once (equipment/implicit_actuators.py).
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuators import advance_activations
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.forces import find_single_forces
from artsim.sim.equipment.implicit_actuators import weigh
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.tendons import find_tendon_drifts, has_inertia, tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count
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
    """Find the forces of the equipment of every lane, and the weights of its springs."""
    lanes, helpers = run.lanes, run.lanes.helpers
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane]:
            helpers.counters[lane, STEP_NUMBER] = step_of_lane(run, lane)
            run_entry(helpers.exerter[lane])
    if lanes.adhesion is not None:
        for j in range(lanes.adhesion.number.shape[0]):
            lanes.adhesion.force[j] = equipment.data.actuator_force[lanes.adhesion.number[j]]
    weigh(robot.model, run, equipment)


@njit
def keep_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Keep the samples of delayed controls after a step of all lanes."""
    lanes = run.lanes
    if connected(lanes.helpers.keeper[0]):
        for lane in range(lane_count(robot.state.qpos)):
            if lanes.data.alive[lane]:
                lanes.helpers.counters[lane, STEP_NUMBER] = step_of_lane(run, lane)
                run_entry(lanes.helpers.keeper[lane])
