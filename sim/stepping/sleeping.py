"""Sleeping as in PhysX: a robot whose links have all been slow for a while is at rest and is not stepped.

A link is slow when its kinetic energy per mass is below the threshold. A robot that is commanded to move slowly stays
awake: while a drive has a target velocity, an actuator's state changes, or a delayed control is still to act. Any
change of the inputs wakes it: forces, targets, controls.

A sleeping robot has zero velocity and acceleration, and its recorded forces balance: they are those of a step from
rest, and a passive force, acting like stiction, cancels the remaining acceleration.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like, link_frame, velocities
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.constraints.link_velocity_rows import link_centre
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.mat3 import symmetric_times, turned_back
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.vec3 import cross, dot, plus, row_of
from artsim.sim.run_data.run_records import AT_REST, CONTROL_ROW, SLEEP_ENERGY, SLEEP_STEPS, Inputs, RunBundle

_CHANGE = 1e-9  # change of an activation per step, relative to the larger of it and 1, that counts as none


@njit
def begin_asleep(state: State, run: RunBundle) -> None:
    """Set step.asleep to 1 where a robot sleeps through this step; a change of the inputs wakes it."""
    inputs, step = run.inputs, run.step
    zero = zero_like(state.still[0])
    step.asleep[0] = zero
    if inputs.sleep[SLEEP_ENERGY] <= 0.0:
        return
    asleep = where_greater(zero + inputs.sleep[SLEEP_STEPS], state.still[0], zero, zero + 1.0)
    if not any_positive(asleep):
        return
    woken = where_greater(_change_of_inputs(state, run), zero, asleep, zero)
    if any_positive(woken):
        step.counters[AT_REST] = 0
    state.still[0] = where_greater(woken, zero, zero, state.still[0])
    step.asleep[0] = asleep - woken


@njit
def _change_of_inputs(state: State, run: RunBundle) -> Real:
    """A T, more than 0 where the inputs of this step differ from those of the last one."""
    inputs = run.inputs
    row = run.step.counters[CONTROL_ROW]
    nv = state.qvel.shape[0]
    differ = zero_like(state.still[0])
    for k in range(nv):
        differ = largest(differ, absolute(state.command[k] - inputs.torque[row, k]))
        differ = largest(differ, absolute(state.command[nv + k] - inputs.target[row, k]))
        differ = largest(differ, absolute(state.command[2 * nv + k] - inputs.target_velocity[row, k]))
        differ = largest(differ, absolute(state.command[3 * nv + k] - inputs.target_acceleration[row, k]))
    for n in range(inputs.control.shape[1]):
        differ = largest(differ, absolute(state.command[4 * nv + n] - inputs.control[row, n]))
    return differ


@njit
def _note_inputs(state: State, run: RunBundle) -> None:
    """Store the inputs of this step in state.command."""
    inputs = run.inputs
    row = run.step.counters[CONTROL_ROW]
    nv = state.qvel.shape[0]
    for k in range(nv):
        state.command[k] = inputs.torque[row, k]
        state.command[nv + k] = inputs.target[row, k]
        state.command[2 * nv + k] = inputs.target_velocity[row, k]
        state.command[3 * nv + k] = inputs.target_acceleration[row, k]
    for n in range(inputs.control.shape[1]):
        state.command[4 * nv + n] = inputs.control[row, n]


@njit
def count_still(robot: RobotBundle, run: RunBundle, equipment: EitherEquipment) -> None:
    """Note the inputs, and update state.still, after the step of robots that are awake; those that fall asleep lose
    their velocities. Needs the activations before the step in equipment.data.start_activation.
    """
    state, inputs = robot.state, run.inputs
    if inputs.sleep[SLEEP_ENERGY] <= 0.0:
        return
    _note_inputs(state, run)
    zero = zero_like(state.still[0])
    moving = largest(moving_links(robot, inputs), _moved_on_purpose(state, run))
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            change = absolute(state.activation[n] - equipment.data.start_activation[n])
            least_change = _CHANGE * largest(zero + 1.0, absolute(state.activation[n]))
            moving = largest(moving, where_greater(change, least_change, zero + 1.0, zero))
        moving = largest(moving, equipment.data.pending[0])
    counted = where_greater(moving, zero, zero, state.still[0] + 1.0)
    state.still[0] = where_greater(run.step.asleep[0], zero, state.still[0], counted)
    awake = where_greater(zero + inputs.sleep[SLEEP_STEPS], state.still[0], zero + 1.0, zero)
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = where_greater(awake, zero, state.qvel[k], zero)
        state.change[k] = where_greater(awake, zero, state.change[k], zero)
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = where_greater(awake, zero, state.impulse[n], zero)


@njit
def moving_links(robot: RobotBundle, inputs: Inputs) -> Real:
    """A T, 1 unless ½ v² + ½ ωᵀ I ω / m of every link with mass is below the threshold [m²/s²]; data is that of the
    step's start.
    """
    model, data = robot.model, robot.data
    velocities(model, robot.state.qvel, data)
    moving = like(0.0, data)
    zero = moving
    found = False
    for link in range(model.link_body.shape[0]):
        b = model.link_body[link]
        mass = model.link_mass[link]
        if b > 0 and any_positive(mass):
            found = True
            a = data.angular_velocity[b]
            c = link_centre(model, data, link)
            y = cross(a, c)
            v = plus(row_of(data.velocity, b), y)
            R, _ = link_frame(model, data, link)
            u = turned_back(R, a)
            L = symmetric_times(model.link_inertia, link, u)
            spin = dot(u, L) / mass
            energy = 0.5 * (dot(v, v) + spin)
            moving = where_greater(zero + inputs.sleep[SLEEP_ENERGY], energy, moving, zero + 1.0)  # NaN moves
    return moving if found else zero + 1.0


@njit
def _moved_on_purpose(state: State, run: RunBundle) -> Real:
    """A T, more than 0 where a drive has a target velocity."""
    inputs, row = run.inputs, run.step.counters[CONTROL_ROW]
    moved = zero_like(state.still[0])
    for k in range(state.qvel.shape[0]):
        moved = largest(moved, absolute(inputs.target_velocity[row, k]))
    return moved


# ------------------------------------------------------------------ of packs, where some lanes sleep


@njit
def note_places(state: State, run: RunBundle) -> None:
    """Note the positions at the start of the step."""
    for n in range(run.step.start_qpos.shape[0]):
        run.step.start_qpos[n] = state.qpos[n]


@njit
def stay_asleep(state: State, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Put lanes that sleep back to where they were at the start of the step."""
    step, zero = run.step, zero_like(run.step.asleep[0])
    asleep = step.asleep[0]
    for n in range(state.qpos.shape[0]):
        state.qpos[n] = where_greater(asleep, zero, step.start_qpos[n], state.qpos[n])
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = where_greater(asleep, zero, zero, state.qvel[k])
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            before = equipment.data.start_activation[n]
            state.activation[n] = where_greater(asleep, zero, before, state.activation[n])
