"""Equipment of packs that acts with forces known at the start of a step: found in each lane by the code of one robot.

Tendons and their springs, transmissions, muscles, motors and filters branch on their data. Implicit actuators of joints
are those of equipment/pack_actuation.py: this file gives the constant of their forces or, where their gains vary,
constant, stiffness and damping.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuators import advance_activations, affine_force, clamp_row_actuators
from artsim.sim.equipment.arrays import EXPLICIT, GUESSED, EquipmentBundle
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.pack_actuation import weigh
from artsim.sim.equipment.pack_equipment import KNOWN, VARYING, PackEquipment
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_count, lane_set
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import STEP_NUMBER, RunBundle
from artsim.sim.stepping.calibration import calibrate
from artsim.sim.stepping.controller import find_resisted
from artsim.sim.stepping.packs import STEP, OwnRows


@njit
def find_exerted(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, forces: PackEquipment) -> None:
    """Find the forces of a lane's equipment at its state, and its activations at the end of the step. Needs the robot's
    kinematics in robot.data.
    """
    state, step, found = robot.state, run.step, forces.data
    calibrate(robot, equipment, step)
    equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 0)
    find_resisted(robot, state.qvel, run, equipment, run.inputs.time_step[0])
    for k in range(step.force.shape[0]):
        found.resisted[k] = step.force[k]
    for k in range(step.applied.shape[0]):
        step.applied[k] = 0.0
    apply_link_wrenches(robot, run, equipment)
    for k in range(step.applied.shape[0]):
        found.passive[k] = equipment.data.passive[k] + step.applied[k]
        found.tendon[k] = equipment.data.tendon[k]
    for a in range(found.exerted_by.shape[0]):
        found.exerted_by[a] = equipment.data.actuator_force[a]
    for n in range(forces.model.number.shape[0]):
        _note_affine_force(equipment, forces, n)
    _add_explicit_actuators(equipment, forces)
    if equipment.data.tendon_by_row[0] > 0.0:
        found.stiff[0] = 1.0
    found.pending[0] = equipment.data.pending[0]
    for t in range(found.tendon_length.shape[0]):
        found.tendon_length[t] = equipment.data.tendon_length[t]
    for entry in range(found.tendon_moment.shape[0]):
        found.tendon_moment[entry] = equipment.data.tendon_moment[entry]
    for n in range(found.activation.shape[0]):
        found.activation[n] = state.activation[n]
    advance_activations(equipment, run.inputs.time_step[0], found.activation)


@inlined
def _note_affine_force(equipment: EquipmentBundle, forces: PackEquipment, n: int) -> None:
    """Note the force of actuator n of those that packs know. One that varies acts explicitly in steps where it is not
    part of M̂, and is not held at a bound then."""
    found, a = forces.data, forces.model.number[n]
    if forces.model.varying[n] == 1:
        acts = 1.0 if equipment.data.actuator_implicit[a] != EXPLICIT else 0.0
        constant, stiffness, damping = affine_force(equipment, a)
        found.constant[n] = acts * constant
        found.slope[n] = acts * stiffness
        found.resistance[n] = acts * damping
        found.acts[n] = acts
        if acts == 0.0:
            found.held[n] = 0.0
    else:
        found.constant[n] = forces.model.gain[n] * equipment.data.actuator_input[a] + forces.model.bias[n]


@inlined
def _is_explicit(equipment: EquipmentBundle, counted: int, a: int) -> bool:
    """True if an actuator acts as a force: it is explicit, or a row whose force is guessed to be at its bound."""
    how = equipment.data.actuator_implicit[a]
    return how == EXPLICIT or (how == GUESSED and counted != VARYING)


@inlined
def _add_explicit_actuators(equipment: EquipmentBundle, forces: PackEquipment) -> None:
    """Sum up the explicit forces of the actuators that packs do not know."""
    exerted = forces.data.exerted
    for k in range(exerted.shape[0]):
        exerted[k] = equipment.data.compensation[k]
    for a in range(forces.model.counted.shape[0]):
        counted = forces.model.counted[a]
        if counted != KNOWN and _is_explicit(equipment, counted, a):
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                exerted[equipment.model.actuator_dof[entry]] += (
                    equipment.data.actuator_moment[entry] * equipment.data.actuator_force[a]
                )


@njit
def clamp_actuators_of_lane(run: RunBundle, equipment: EquipmentBundle, forces: PackEquipment, own: OwnRows) -> None:
    """Make actuators that are rows and leave their bounds over the step that ends at step.velocity act as forces, and
    those that return act as rows.
    """
    if clamp_row_actuators(run, equipment):
        own.again[0] = 1.0
        own.outdated[0] = 1.0
        _add_explicit_actuators(equipment, forces)


@njit
def exert(robot: RobotBundle, run: RunBundle, equipment: PackEquipment) -> None:
    """Find the forces of the equipment of every lane, and the constant forces of the actuators that packs know."""
    lanes, helpers = run.lanes, run.lanes.helpers
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane]:
            helpers.counters[lane, STEP_NUMBER] = lanes.data.counters[STEP]
            lane_set(equipment.data.stiff, 0, lane, 0.0)
            run_entry(helpers.exerter[lane])
    if lanes.adhesion is not None:
        for j in range(lanes.adhesion.number.shape[0]):
            lanes.adhesion.force[j] = equipment.data.exerted_by[lanes.adhesion.number[j]]
    if _vary(equipment):
        weigh(robot.model, run, equipment)


@inlined
def _vary(equipment: PackEquipment) -> bool:
    """True if the gains of an actuator vary."""
    for n in range(equipment.model.varying.shape[0]):
        if equipment.model.varying[n] == 1:
            return True
    return False


@njit
def keep_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Keep the samples of delayed controls after a step of all lanes."""
    lanes = run.lanes
    if connected(lanes.helpers.keeper[0]):
        for lane in range(lane_count(robot.state.qpos)):
            if lanes.data.alive[lane]:
                lanes.helpers.counters[lane, STEP_NUMBER] = lanes.data.counters[STEP]
                run_entry(lanes.helpers.keeper[lane])
