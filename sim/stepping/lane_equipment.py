"""Equipment of packs that acts with forces known at the start of a step: found robot by robot, handed to the lanes.

Tendons and their springs, transmissions, muscles, motors and filters branch on their data; each lane's share is found
by the code of a single robot. Implicit actuators of joints are those of equipment/pack_actuation.py: this file gives
their inputs or, where their gains vary, constant, stiffness and damping of their forces.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuators import advance_activations, affine_force, clamp_row_actuators
from artsim.sim.equipment.arrays import EXPLICIT, GUESSED, EquipmentBundle
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.pack_actuation import weigh
from artsim.sim.equipment.pack_equipment import PackActuation, PackEquipment
from artsim.sim.foundation.gather_scatter import scatter
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import lane_count, lane_get, lane_set
from artsim.sim.foundation.records import Array, Lanes1, Reals1
from artsim.sim.foundation.recordtype import connected, run_entry
from artsim.sim.run_data.run_records import STEP_NUMBER, RunBundle
from artsim.sim.stepping.calibration import calibrate
from artsim.sim.stepping.packs import STEP, Exerted, Helpers, LaneBundle


@njit
def find_exerted(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, exerted: Exerted) -> None:
    """Find the forces of a single robot's equipment at its state, and its activations at the end of the step. Needs
    the robot's kinematics in robot.data.
    """
    state, step = robot.state, run.step
    calibrate(robot, equipment, step)
    equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 0)
    for k in range(step.applied.shape[0]):
        step.applied[k] = 0.0
    apply_link_wrenches(robot, run, equipment)
    for k in range(step.applied.shape[0]):
        exerted.passive[k] = equipment.data.passive[k] + step.applied[k]
        exerted.tendon[k] = equipment.data.tendon[k]
    for a in range(exerted.counted.shape[0]):
        exerted.actuator_input[a] = equipment.data.actuator_input[a]
        exerted.actuator_force[a] = equipment.data.actuator_force[a]
        if exerted.varying[a] == 1:
            _note_affine_force(equipment, exerted, a)
    _add_explicit_actuators(equipment, exerted)
    exerted.tendon_by_row[0] = equipment.data.tendon_by_row[0]
    exerted.pending[0] = equipment.data.pending[0]
    for t in range(exerted.tendon_length.shape[0]):
        exerted.tendon_length[t] = equipment.data.tendon_length[t]
    for entry in range(exerted.tendon_moment.shape[0]):
        exerted.tendon_moment[entry] = equipment.data.tendon_moment[entry]
    for n in range(exerted.activation.shape[0]):
        exerted.activation[n] = state.activation[n]
    advance_activations(equipment, run.inputs.time_step[0], exerted.activation)


@inlined
def _note_affine_force(equipment: EquipmentBundle, exerted: Exerted, a: int) -> None:
    """Note the force of an actuator that varies, zeros where it is explicit in this step."""
    acts = 1.0 if equipment.data.actuator_implicit[a] != EXPLICIT else 0.0
    constant, stiffness, damping = affine_force(equipment, a)
    exerted.actuator_acts[a] = acts
    exerted.actuator_constant[a] = acts * constant
    exerted.actuator_slope[a] = acts * stiffness
    exerted.actuator_resistance[a] = acts * damping


@inlined
def _is_explicit(equipment: EquipmentBundle, exerted: Exerted, a: int) -> bool:
    """True if an actuator acts as a force: it is explicit, or a row whose force is guessed to be at its bound."""
    how = equipment.data.actuator_implicit[a]
    return how == EXPLICIT or (how == GUESSED and exerted.varying[a] == 0)


@inlined
def _add_explicit_actuators(equipment: EquipmentBundle, exerted: Exerted) -> None:
    """Sum up in exerted.force the explicit forces of the actuators that packs do not know."""
    for k in range(exerted.force.shape[0]):
        exerted.force[k] = equipment.data.compensation[k]
    for a in range(exerted.counted.shape[0]):
        if exerted.counted[a] == 1 and _is_explicit(equipment, exerted, a):
            for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
                exerted.force[equipment.model.actuator_dof[entry]] += (
                    equipment.data.actuator_moment[entry] * equipment.data.actuator_force[a]
                )


@njit
def clamp_actuators_of_lane(run: RunBundle, equipment: EquipmentBundle, exerted: Exerted) -> None:
    """Make actuators that are rows and leave their bounds over the step that ends at step.velocity act as forces, and
    those that return act as rows.
    """
    exerted.changed[0] = 1 if clamp_row_actuators(run, equipment) else 0
    _add_explicit_actuators(equipment, exerted)


@njit
def exert(robot: RobotBundle, run: RunBundle, equipment: PackEquipment) -> None:
    """Find the forces of the equipment of every lane, and the constant forces of the actuators that packs know."""
    lanes, found, data = run.lanes, run.lanes.exerted, equipment.data
    helpers = lanes.helpers
    if lanes.lane_rows is not None:
        give_places(robot, helpers)
    for lane in range(lane_count(robot.state.qpos)):
        if not lanes.data.alive[lane]:
            continue
        n = helper_of(helpers, lane)
        helpers.counters[n, STEP_NUMBER] = lanes.data.counters[STEP]
        if lanes.lane_rows is None:
            _give_place(robot, lane, helpers, n)
        give_helper(lanes.data.activation, lane, helpers.activation, n)
        give_helper(lanes.data.acceleration0, lane, helpers.acceleration0, n)
        give_helper(lanes.data.actuator_damping, lane, helpers.actuator_damping, n)
        give_helper(lanes.data.loop_mobility, lane, helpers.loop_mobility, n)
        give_helper(lanes.data.tendon_mobility, lane, helpers.tendon_mobility, n)
        give_helper(run.inputs.control, lane, helpers.control, n)
        run_entry(helpers.exerter[n])
        put_lane(found.force, data.exerted, lane)
        put_lane(found.passive, data.passive, lane)
        put_lane(found.tendon, data.tendon, lane)
        put_lane(found.tendon_length, data.tendon_length, lane)
        put_lane(found.tendon_moment, data.tendon_moment, lane)
        put_lane(found.activation, lanes.data.next_activation, lane)
        if found.tendon_by_row[0] > 0.0:
            lane_set(lanes.data.stiff, 0, lane, 1.0)
        if lanes.adhesion is not None:
            for j in range(lanes.adhesion.number.shape[0]):
                lane_set(lanes.adhesion.force, j, lane, found.actuator_force[lanes.adhesion.number[j]])
        if lanes.sleep is not None:
            lane_set(lanes.sleep.pending, 0, lane, found.pending[0])
        for n in range(equipment.model.number.shape[0]):
            a = equipment.model.number[n]
            if equipment.model.varying[n] == 1:
                _take_affine_force(found, a, data, n, lane)
            else:
                force = equipment.model.gain[n] * found.actuator_input[a]
                lane_set(data.constant, n, lane, force + equipment.model.bias[n])
    if _vary(equipment):
        weigh(robot.model, run, equipment)


@inlined
def _take_affine_force(found: Exerted, a: int, data: PackActuation, n: int, lane: int) -> None:
    """Take the force of an actuator that varies; an explicit force is not held at a bound."""
    lane_set(data.constant, n, lane, found.actuator_constant[a])
    lane_set(data.slope, n, lane, found.actuator_slope[a])
    lane_set(data.resistance, n, lane, found.actuator_resistance[a])
    lane_set(data.acts, n, lane, found.actuator_acts[a])
    if found.actuator_acts[a] == 0.0:
        lane_set(data.held, n, lane, 0.0)


@inlined
def _vary(equipment: PackEquipment) -> bool:
    """True if the gains of an actuator vary."""
    for n in range(equipment.model.varying.shape[0]):
        if equipment.model.varying[n] == 1:
            return True
    return False


@njit
def take_actuators(lanes: LaneBundle, lane: int) -> None:
    """Copy a lane's activations, delayed samples and constants that depend on its masses to the single robot."""
    take_lane(lanes.data.activation, lane, lanes.single.activation)
    take_lane(lanes.data.acceleration0, lane, lanes.single.acceleration0)
    take_lane(lanes.data.actuator_damping, lane, lanes.single.actuator_damping)
    take_lane(lanes.data.loop_mobility, lane, lanes.single.loop_mobility)
    take_lane(lanes.data.tendon_mobility, lane, lanes.single.tendon_mobility)
    take_lane(lanes.data.effective_coupling, lane, lanes.single.effective_coupling)
    history = lanes.helpers.history[helper_of(lanes.helpers, lane)]
    for j in range(lanes.single.history.shape[0]):
        lanes.single.history[j] = history[j]


@njit
def keep_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Keep the samples of delayed controls after a step of all lanes."""
    lanes = run.lanes
    if connected(lanes.helpers.keeper[0]):
        for lane in range(lane_count(robot.state.qpos)):
            if lanes.data.alive[lane]:
                run_entry(lanes.helpers.keeper[lane])


@inlined
def helper_of(helpers: Helpers, lane: int) -> int:
    """The number of the single robot that finds rows and forces for this lane."""
    return lane if helpers.qpos.shape[0] > 1 else 0


@njit
def give_places(robot: RobotBundle, helpers: Helpers) -> None:
    """Give each lane's helper its state and kinematics."""
    state, data = robot.state, robot.data
    scatter(state.qpos, helpers.qpos, 0, state.qpos.size)
    scatter(state.qvel, helpers.qvel, 0, state.qvel.size)
    scatter(data.rotation, helpers.rotation, 0, data.rotation.size)
    scatter(data.offset, helpers.offset, 0, data.offset.size)
    scatter(data.arm, helpers.arm, 0, data.arm.size)
    scatter(data.axis, helpers.axis, 0, data.axis.size)


@njit
def _give_place(robot: RobotBundle, lane: int, helpers: Helpers, n: int) -> None:
    """Give helper n a lane's state and kinematics."""
    give_helper(robot.state.qpos, lane, helpers.qpos, n)
    give_helper(robot.state.qvel, lane, helpers.qvel, n)
    give_helper(robot.data.rotation, lane, helpers.rotation, n)
    give_helper(robot.data.offset, lane, helpers.offset, n)
    give_helper(robot.data.arm, lane, helpers.arm, n)
    give_helper(robot.data.axis, lane, helpers.axis, n)


@inlined
def give_helper(values: Array, lane: int, out: Array, n: int) -> None:
    """Copy a lane's values to row n of the helpers' array `out`."""
    size = values.size
    for j in range(size):
        lane_set(out, n * size + j, 0, lane_get(values, j, lane))


@inlined
def take_lane(values: Array, lane: int, out: Array) -> None:
    """Copy a lane's values to arrays of a single robot."""
    for n in range(out.size):
        lane_set(out, n, 0, lane_get(values, n, lane))


@inlined
def put_lane(values: Reals1, out: Lanes1, lane: int) -> None:
    """Copy a single robot's values to a lane."""
    for n in range(values.size):
        lane_set(out, n, lane, lane_get(values, n, 0))
