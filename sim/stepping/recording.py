"""Records a row of the block: forces by source, the wrench through every link's joint, and requested quantities."""

from __future__ import annotations

from artsim.sim.articulation.centroidal import (
    centre_of_mass,
    centroidal_map,
    kinetic_energy,
    momentum,
    potential_energy,
)
from artsim.sim.articulation.dynamics import composites, inverse_dynamics, mass_matrix
from artsim.sim.articulation.kinematics import accelerations, link_frame, motion_columns, origin_of, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.friction_rows import constant_share
from artsim.sim.constraints.kinds import FRICTION_ROW
from artsim.sim.constraints.loop_rows import note_loop_wrenches, take_off_loops
from artsim.sim.contact.contact_rows import is_felt, take_off_contacts
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.passive import spring_energy
from artsim.sim.equipment.sensor_noise import add_noise
from artsim.sim.equipment.sensors import sensor_values
from artsim.sim.equipment.tendon_forces import tendon_spring_energy
from artsim.sim.equipment.tendons import add_inertia, add_inertia_forces, inertia_energy
from artsim.sim.equipment.wrenches import take_off_actuators, take_off_inputs, take_off_tendons
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import plus_turned, symmetric_times, turned, turned_back
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Reals1, Reals2, Reals3, Vec3
from artsim.sim.foundation.recordtype import connected
from artsim.sim.foundation.spatial import add_pair, motion_column, pair_of, set_pair, set_six
from artsim.sim.foundation.vec3 import add_to_row, cross, minus, plus, row_of, times
from artsim.sim.geometry.contacts import ALONG_NORMAL, ALONG_TANGENT, CONTACTS, ContactBundle
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    AT_REST,
    ITERATIONS,
    KINETIC,
    POTENTIAL,
    RESIDUAL,
    ROWS_RECORDED,
    STEP_NUMBER,
    Block,
    Rows,
    RunBundle,
    Step,
)


@njit
def record(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, contact: ContactBundle | None
) -> None:
    """Record the step's row: the state before it, the acceleration over it and the forces that caused it."""
    model, state, data = robot.model, robot.state, robot.data
    step, block = run.step, run.block
    row = step.counters[ROWS_RECORDED]
    step.counters[ROWS_RECORDED] = row + 1
    _copy(state.qpos, row, block.qpos)
    _copy(state.qvel, row, block.qvel)
    _copy(step.qacc, row, block.qacc)
    _copy(step.applied, row, block.tau_applied)
    _copy(step.drive, row, block.tau_drive)
    _copy(step.passive, row, block.tau_passive)
    _copy(step.limit, row, block.tau_limit)
    _copy(step.loop, row, block.tau_loop)
    _copy(step.contact, row, block.tau_contact)
    if equipment is not None:
        _copy(state.activation, row, block.activation)
        _copy(equipment.data.actuator_force, row, block.actuator_force)
        _copy(equipment.data.actuator_length, row, block.actuator_length)
        _copy(equipment.data.actuator_velocity, row, block.actuator_velocity)
        _copy(equipment.data.tendon_length, row, block.tendon_length)
        _copy(equipment.data.tendon_velocity, row, block.tendon_velocity)
        _copy(equipment.data.tendon_force, row, block.tendon_force)
        note_loop_wrenches(model, data, equipment, row, block.loop_wrench)
    if block.link_position.shape[0] > 0 or block.link_quaternion.shape[0] > 0:
        _poses(model, data, row, block)
    if model.coupling_follower.shape[0] > 0 and block.tau_coupling.shape[0] > 0:
        _coupling_remainder(model, state.qvel, data, step)
    if equipment is not None:  # forces of tendons' inertias are part of M qacc + bias, not of the forces here
        add_inertia_forces(model, state.qvel, step.qacc, data, equipment, step.tendon)
    _copy(step.tendon, row, block.tau_tendon)
    if contact is not None and block.contact_wrench.shape[0] > 0:
        _clear_wrenches(step)
        take_off_contacts(model, data, step, contact)
        _copy_wrenches(step, row, -1.0, block.contact_wrench)
    if block.external_wrench.shape[0] > 0:
        _clear_wrenches(step)
        _take_off_all(robot, step, equipment, contact)
        _copy_wrenches(step, row, -1.0, block.external_wrench)
    if block.incoming_wrench.shape[0] + block.sensors.shape[0] > 0:
        joint_wrenches(robot, state.qvel, step, equipment, contact)
    _copy(step.coupling, row, block.tau_coupling)
    _copy_wrenches(step, row, 1.0, block.incoming_wrench)
    if equipment is not None and block.sensors.shape[0] > 0:
        if not connected(equipment.data.feeler):  # otherwise sensors have already been measured, in every step
            sensor_values(robot, run, equipment, contact)
        add_noise(equipment, step.counters[STEP_NUMBER])
        _copy(equipment.data.sensor, row, block.sensors)
    if contact is not None and block.contact_count.shape[0] > 0:
        _contacts(run, row, contact)
    if block.friction_constant.shape[0] + block.friction_by_load.shape[0] > 0:
        _frictions(robot, run, rows, row)
    _on_request(robot, rows, run, row, equipment)


@inlined
def _copy(values: Reals1, row: int, out: Reals2) -> None:
    for k in range(min(out.shape[0], 1) * values.shape[0]):
        out[row, k] = values[k]


@njit
def _frictions(robot: RobotBundle, run: RunBundle, rows: Rows, row: int) -> None:
    """Split joint friction in two, in the ratio of the constant and the load-dependent part of its bound."""
    block = run.block
    for k in range(robot.model.friction.shape[0]):
        for out in (block.friction_constant, block.friction_by_load):
            if out.shape[0] > 0:
                out[row, k] = 0.0
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == FRICTION_ROW:
            k = rows.dof[n]
            force = rows.impulse[n] / run.inputs.time_step[0]
            share = constant_share(robot, k)
            if block.friction_constant.shape[0] > 0:
                block.friction_constant[row, k] = share * force
            if block.friction_by_load.shape[0] > 0:
                block.friction_by_load[row, k] = (1.0 - share) * force


@njit
def is_full(run: RunBundle, contact: ContactBundle) -> bool:
    """True if the block lacks room for the contacts of one more step."""
    block = run.block
    full: bool = (
        block.contact_count.shape[0] > 0 and block.contacts[0] + contact.data.gap.shape[0] > block.contact_step.shape[0]
    )
    return full


@njit
def _contacts(run: RunBundle, row: int, contact: ContactBundle) -> None:
    """Record the contacts that touch or carry a force; contacts that are only near are left out."""
    block = run.block
    first = block.contacts[0]
    k = first
    for n in range(contact.data.number[CONTACTS]):
        if not is_felt(contact, n):
            continue
        block.contact_step[k] = run.step.counters[STEP_NUMBER]
        block.contact_depth[k] = -contact.data.distance[n]
        for j in range(2):
            block.contact_shapes[k, j] = contact.data.shape[n, j]
        for j in range(3):
            block.contact_point[k, j] = contact.data.point[n, j]
            block.contact_normal[k, j] = contact.data.frame[n, ALONG_NORMAL, j]
            block.contact_tangent[k, j] = contact.data.frame[n, ALONG_TANGENT, j]
            block.contact_force[k, j] = contact.data.force[n, j]
            block.contact_torque[k, j] = contact.data.force[n, 3 + j]
        k += 1
    block.contacts[0] = k
    block.contact_count[row] = k - first


@inlined
def _clear_wrenches(step: Step) -> None:
    for link in range(step.link_force.shape[0]):
        for k in range(3):
            step.link_force[link, k] = 0.0
            step.link_torque[link, k] = 0.0


@inlined
def _copy_wrenches(step: Step, row: int, sign: float, out: Reals3) -> None:
    """Copy the wrenches of the links (nl, 6) times sign; zeros get no sign."""
    for link in range(min(out.shape[0], 1) * step.link_force.shape[0]):
        for k in range(3):
            out[row, link, k] = 0.0 + sign * step.link_force[link, k]
            out[row, link, 3 + k] = 0.0 + sign * step.link_torque[link, k]


@njit
def _take_off_all(
    robot: RobotBundle, step: Step, equipment: EquipmentBundle | None, contact: ContactBundle | None
) -> None:
    """Subtract from step.link_force and step.link_torque all forces on links except their weights and the forces
    through the tree's joints.
    """
    model, data = robot.model, robot.data
    if equipment is not None:
        take_off_loops(model, data, step, equipment)
        take_off_tendons(robot, step, equipment)
        take_off_actuators(robot, step, equipment)
        take_off_inputs(robot, step, equipment)
    if contact is not None:
        take_off_contacts(model, data, step, contact)


@njit
def _poses(model: Model, data: Workspace, row: int, block: Block) -> None:
    for link in range(model.link_body.shape[0]):
        R, x = link_frame(model, data, link)
        p = origin_of(model, data, model.link_body[link])
        q = quaternion_of(R)
        for k in range(min(block.link_position.shape[0], 1) * 3):
            block.link_position[row, link, k] = p[k] + x[k]
        for k in range(min(block.link_quaternion.shape[0], 1) * 4):
            block.link_quaternion[row, link, k] = q[k]


@njit
def joint_wrenches(
    robot: RobotBundle, v: Reals1, step: Step, equipment: EquipmentBundle | None, contact: ContactBundle | None
) -> None:
    """Set step.link_force and step.link_torque: the wrench that each link receives through its joint, by Newton-Euler.

    The recursion goes link by link rather than body by body, since a link merged into another still has a joint that
    transmits force. The forces of loop joints, contacts, spatial tendons and actuators at sites are subtracted; all
    other forces count as acting in the joints.
    """
    model, data = robot.model, robot.data
    accelerations(model, v, step.qacc, data)
    n = model.link_body.shape[0]
    for link in range(n):
        i = model.link_body[link]
        R, p = link_frame(model, data, link)
        w = row_of(data.angular_velocity, i)
        b, x = pair_of(data.acceleration, data.angular_acceleration, i)
        c = turned(R, model.link_com[link])
        d = plus(p, c)
        f = times(model.link_mass[link], plus(plus(b, cross(x, d)), cross(w, cross(w, d))))
        # I α + ω × I ω in link axes, then rotated
        u = turned_back(R, w)
        L = symmetric_times(model.link_inertia, link, u)
        k = plus(symmetric_times(model.link_inertia, link, turned_back(R, x)), cross(u, L))
        set_pair(step.link_force, step.link_torque, link, (f, plus_turned(cross(c, f), R, k)))
    _take_off_all(robot, step, equipment, contact)
    for link in range(n - 1, -1, -1):
        above = model.link_parent[link]
        if above >= 0:
            F = pair_of(step.link_force, step.link_torque, link)
            add_pair(step.link_force, step.link_torque, above, F)
            add_to_row(step.link_torque, above, cross(_between(model, data, link, above), F[0]))


@inlined
def _between(model: Model, data: Workspace, link: int, above: int) -> Vec3:
    """The vector from the origin of the link above to the link's [m]; several bodies may lie between them."""
    _, p = link_frame(model, data, link)
    _, y = link_frame(model, data, above)
    d = minus(p, y)
    body = model.link_body[link]
    while body != model.link_body[above]:
        d = plus(d, row_of(data.offset, body))
        body = model.body_parent[body]
    return d


@njit
def _coupling_remainder(model: Model, v: Reals1, data: Workspace, step: Step) -> None:
    """step.coupling = M qacc + bias - all other forces: the forces that exact couplings transmit. Tendons' inertias
    count as forces here.
    """
    inverse_dynamics(model, v, step.qacc, data, step.force)
    for k in range(step.force.shape[0]):
        known = step.applied[k] + step.drive[k] + step.passive[k] + step.limit[k] + step.loop[k] + step.tendon[k]
        known += step.contact[k]
        step.coupling[k] = step.force[k] + model.armature[k] * step.qacc[k] - known


@njit
def _on_request(robot: RobotBundle, rows: Rows, run: RunBundle, row: int, equipment: EquipmentBundle | None) -> None:
    model, state, data = robot.model, robot.state, robot.data
    step, block = run.step, run.block
    nv = model.dof_body.shape[0]
    if block.solver_iterations.shape[0] > 0:
        block.solver_iterations[row] = rows.report[ITERATIONS]
    if block.asleep.shape[0] > 0:
        block.asleep[row] = step.counters[AT_REST]
    if block.solver_residual.shape[0] > 0:
        block.solver_residual[row] = rows.report[RESIDUAL]
    if block.jacobian.shape[0] > 0:
        _jacobians(model, data, row, block)
    if block.energy.shape[0] + block.com.shape[0] + block.momentum.shape[0] + block.mass_matrix.shape[0] > 0:
        composites(model, data)
        centre_of_mass(model, data, step.com)
        _copy(step.com, row, block.com)
    if block.energy.shape[0] > 0:
        velocities(model, state.qvel, data)
        block.energy[row, KINETIC] = kinetic_energy(model, state.qvel, data)
        if equipment is not None:
            block.energy[row, KINETIC] += inertia_energy(equipment)
        block.energy[row, POTENTIAL] = potential_energy(model, state.qpos, step.com)
        if equipment is not None:
            block.energy[row, POTENTIAL] += spring_energy(model, state.qpos, equipment) + tendon_spring_energy(
                equipment
            )
    if block.momentum.shape[0] > 0:
        centroidal_map(model, data, step.com, step.columns)
        momentum(step.columns, state.qvel, 0.0, step.momentum)
        _copy(step.momentum, row, block.momentum)
    if block.mass_matrix.shape[0] > 0:
        mass_matrix(model, data)
        for k in range(nv):
            for j in range(nv):
                block.mass_matrix[row, k, j] = 0.0
        for k in range(nv):
            j = k
            while j >= 0:
                block.mass_matrix[row, k, j] = data.mass_matrix[k, j]
                block.mass_matrix[row, j, k] = data.mass_matrix[k, j]
                j = model.dof_parent[j]
        if equipment is not None:
            add_inertia(equipment, block.mass_matrix[row])
    for k in range(nv):
        step.tangent[k] = 0.0
    if block.gravity.shape[0] > 0:
        inverse_dynamics(model, step.tangent, step.tangent, data, data.bias)
        _copy(data.bias, row, block.gravity)
    if block.bias.shape[0] > 0:
        inverse_dynamics(model, state.qvel, step.tangent, data, data.bias)
        if equipment is not None:
            add_inertia_forces(model, state.qvel, step.tangent, data, equipment, data.bias)
        _copy(data.bias, row, block.bias)


@njit
def _jacobians(model: Model, data: Workspace, row: int, block: Block) -> None:
    """Jacobians of all links at their centres of mass: for each the columns of its chain, as in jacobian_columns."""
    motion_columns(model, data)
    end = 0
    for link in range(model.link_body.shape[0]):
        i = model.link_body[link]
        R, x = link_frame(model, data, link)
        r = plus_turned(plus(row_of(data.arm, i), x), R, model.link_com[link])
        last = model.body_dof[i + 1] - 1 if i > 0 else -1
        k = last
        while k >= 0:
            end += 1
            k = model.dof_parent[k]
        column = end
        k = last
        while k >= 0:
            column -= 1
            u, w = motion_column(data.motion, k)
            set_six(block.jacobian[row], column, (plus(cross(w, r), u), w))
            k = model.dof_parent[k]
