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
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.foundation.mat3 import symmetric_times, turned_back
from artsim.sim.foundation.records import Pack
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.vec3 import cross, dot, plus, row_of
from artsim.sim.run_data.run_records import AT_REST, CONTROL_ROW, SLEEP_ENERGY, SLEEP_STEPS, Inputs, RunBundle

_CHANGE = 1e-9  # change of an activation per step, relative to the larger of it and 1, that counts as none


@njit
def is_asleep(state: State, run: RunBundle) -> bool:
    """True if the robot sleeps through this step; a change of the inputs wakes it."""
    inputs = run.inputs
    if inputs.sleep[SLEEP_ENERGY] <= 0.0 or state.still[0] < inputs.sleep[SLEEP_STEPS]:
        return False
    if _commands_differ(state, run):
        state.still[0] = 0.0
        run.step.counters[AT_REST] = 0
        return False
    return True


@njit
def _commands_differ(state: State, run: RunBundle) -> bool:
    inputs = run.inputs
    row = run.step.counters[CONTROL_ROW]
    nv = state.qvel.shape[0]
    differ = False
    for k in range(nv):
        if state.command[k] != inputs.torque[row, k] or state.command[nv + k] != inputs.target[row, k]:
            differ = True
        if state.command[2 * nv + k] != inputs.target_velocity[row, k]:
            differ = True
        if state.command[3 * nv + k] != inputs.target_acceleration[row, k]:
            differ = True
    for n in range(inputs.control.shape[1]):
        if state.command[4 * nv + n] != inputs.control[row, n]:
            differ = True
    return differ


@njit
def note_commands(state: State, run: RunBundle) -> None:
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
def count_still(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Update state.still after the step; a robot that falls asleep loses its velocity. Needs the activations before the
    step in equipment.data.start_activation.
    """
    state = robot.state
    inputs = run.inputs
    still = not moving_links(robot, inputs) > 0.0 and not _moved_on_purpose(state, run)
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            change = abs(state.activation[n] - equipment.data.start_activation[n])
            if not change <= _CHANGE * max(1.0, abs(state.activation[n])):
                still = False
        if equipment.data.pending[0] != 0.0:
            still = False
    state.still[0] = state.still[0] + 1.0 if still else 0.0
    if state.still[0] >= inputs.sleep[SLEEP_STEPS]:
        for k in range(state.qvel.shape[0]):
            state.qvel[k] = 0.0
            state.change[k] = 0.0
        for n in range(state.impulse.shape[0]):
            state.impulse[n] = 0.0


@njit
def moving_links(robot: RobotBundle, inputs: Inputs) -> float:
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


# ------------------------------------------------------------------ of packs


@njit
def wake_lanes(run: RunBundle, differs: Pack) -> None:
    """Wake lanes in which the inputs differ from those of the last step."""
    sleep = run.lanes.sleep
    zero = zero_like(differs)
    sleep.still[0] = where_greater(differs, zero, zero, sleep.still[0])


@njit
def begin_asleep(robot: RobotBundle, run: RunBundle) -> None:
    """Find the lanes that sleep through this step, and note positions and activations."""
    sleep, step = run.lanes.sleep, run.step
    zero = like(0.0, robot.data)
    sleep.asleep[0] = where_greater(zero + run.inputs.sleep[SLEEP_STEPS], sleep.still[0], zero, zero + 1.0)
    for n in range(step.start_qpos.shape[0]):
        step.start_qpos[n] = robot.state.qpos[n]
    for n in range(robot.state.activation.shape[0]):
        sleep.activation[n] = robot.state.activation[n]


@njit
def end_asleep(robot: RobotBundle, run: RunBundle, equipment: PackEquipment) -> None:
    """Put lanes that sleep back to their positions, count the slow steps of the others, and clear the velocities of
    lanes that fall asleep.
    """
    state, step, inputs = robot.state, run.step, run.inputs
    sleep = run.lanes.sleep
    zero = like(0.0, robot.data)
    one = zero + 1.0
    asleep = sleep.asleep[0]
    for n in range(state.qpos.shape[0]):
        state.qpos[n] = where_greater(asleep, zero, step.start_qpos[n], state.qpos[n])
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = where_greater(asleep, zero, zero, state.qvel[k])
    moving = moving_links(robot, inputs)
    for k in range(state.qvel.shape[0]):
        moving = largest(moving, where_greater(absolute(inputs.target_velocity[0, k]), zero, one, zero))
    for n in range(state.activation.shape[0]):
        before = sleep.activation[n]
        state.activation[n] = where_greater(asleep, zero, before, state.activation[n])
        change = absolute(state.activation[n] - before) - _CHANGE * largest(one, absolute(state.activation[n]))
        moving = largest(moving, where_greater(change, zero, one, zero))
    moving = largest(moving, equipment.data.pending[0])
    counted = where_greater(moving, zero, zero, sleep.still[0] + 1.0)
    sleep.still[0] = where_greater(asleep, zero, sleep.still[0], counted)
    fallen = where_greater(zero + inputs.sleep[SLEEP_STEPS], sleep.still[0], zero, one)
    for k in range(state.qvel.shape[0]):
        state.qvel[k] = where_greater(fallen, zero, zero, state.qvel[k])
        state.change[k] = where_greater(fallen, zero, zero, state.change[k])
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = where_greater(fallen, zero, zero, state.impulse[n])


@njit
def _moved_on_purpose(state: State, run: RunBundle) -> bool:
    for k in range(state.qvel.shape[0]):
        if run.inputs.target_velocity[run.step.counters[CONTROL_ROW], k] != 0.0:
            return True
    return False
