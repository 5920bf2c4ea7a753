"""Applied torques and the built-in controllers: gravity compensation, and computed torque.

Computed torque (Siciliano 2009, sec. 8.5.2) gives the joints accelerations a = a_d + ω² (q_d - q) + 2 ζ ω (v_d - v):
tau = Gᵀ (M a + bias - passive), where the bias and the passive forces are those that the step will find: the bias
midway or at the start, as the integrator has it, damping, springs and soft couplings at the step's end, as they are
implicit, tendons, fluids and compensated weight at its start, and dry friction.

Friction is taken in the direction of the wanted velocity, not of the velocity: its sign cannot chatter, and a joint
that shall rest gets no such force and is held by its friction. Steps of Euler find velocities that lead from one
position to the next, half a step before the position at their end: v_d is taken there.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import composites, factorise, inverse_dynamics, mass_matrix, solve
from artsim.sim.articulation.kinematics import like, velocities
from artsim.sim.articulation.model import D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.coupling_rows import (
    coupling_rate,
    coupling_slope,
    own_mobility,
    reference_of,
    resistance_of,
)
from artsim.sim.constraints.impedance import impedance, safe_reference, softened, sprung
from artsim.sim.equipment.actuation import coordinate, foreseen
from artsim.sim.equipment.affine import bounded
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.equipment.link_wrenches import apply_link_wrenches
from artsim.sim.equipment.tendon_forces import spring_of_tendon
from artsim.sim.equipment.tendons import add_inertia_forces
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive
from artsim.sim.foundation.records import Lanes1, Real, Reals1
from artsim.sim.run_data.run_records import (
    COMPUTED_TORQUE,
    CONTROL_ROW,
    MIDWAY,
    NO_CONTROLLER,
    POSITION_GAIN,
    VELOCITY_GAIN,
    RunBundle,
    Step,
)
from artsim.sim.stepping.midpoint import expected_change

_RESTING = 1e-6  # rad/s or m/s: below it friction grows with the velocity, so that rounding in a file does not flip it


@njit
def applied_forces(
    robot: RobotBundle, q: Lanes1, v: Lanes1, run: RunBundle, equipment: EitherEquipment, ahead: float
) -> None:
    """Set step.applied (nv,) to the torques of the control row, of the built-in controller and of wrenches on links;
    parameters as for command."""
    command(robot, q, v, run, equipment, ahead)
    if equipment is not None and run.lanes is None:  # in lanes they are among the passive forces
        apply_link_wrenches(robot, run, equipment)


@njit
def command(robot: RobotBundle, q: Lanes1, v: Lanes1, run: RunBundle, equipment: EitherEquipment, ahead: float) -> None:
    """Set step.applied (nv,) to the torques of the control row and of the built-in controller, in both widths.

    `ahead`: time after (q, v) at which implicit forces act [s]: the time step, or 0 if all forces are those at (q, v).
    Needs the equipment's forces at (q, v).
    """
    inputs, step = run.inputs, run.step
    row = step.counters[CONTROL_ROW]
    for k in range(step.applied.shape[0]):
        step.applied[k] = inputs.torque[row, k]
    if inputs.controller[0] == NO_CONTROLLER:
        return
    if inputs.controller[0] == COMPUTED_TORQUE:
        _computed_torque(robot, q, v, run, equipment, ahead)
    else:
        for k in range(step.force.shape[0]):
            step.velocity[k] = like(0.0, robot.data)
            step.qacc[k] = like(0.0, robot.data)
        inverse_dynamics(robot.model, step.velocity, step.qacc, robot.data, step.force)
    _drive_joints(robot, step)
    if equipment is not None:
        velocities(robot.model, v, robot.data)


@njit
def _drive_joints(robot: RobotBundle, step: Step) -> None:
    """Add the joint forces in step.force to step.applied, by Gᵀ and clamped to the effort limits, for joints of one
    dof: free, ball and planar joints are not actuated."""
    model, data = robot.model, robot.data
    for k in range(step.force.shape[0]):
        a = model.dof_independent[k]
        if a >= 0 and model.dof_coord[model.independent_dof[a]] >= 0 and _actuated(model, model.independent_dof[a]):
            lead = model.independent_dof[a]
            step.applied[lead] += data.gain[k] * (step.force[k] + model.armature[k] * step.qacc[k])
    for k in range(step.applied.shape[0]):
        step.applied[k] = bounded(step.applied[k], -model.effort[k], model.effort[k])


@inlined
def _actuated(model: Model, k: int) -> bool:
    """True if dof k belongs to a joint of one dof, which a motor can drive."""
    body = model.dof_body[k]
    return model.body_dof[body + 1] - model.body_dof[body] == 1


@njit
def _computed_torque(
    robot: RobotBundle, q: Lanes1, v: Lanes1, run: RunBundle, equipment: EitherEquipment, ahead: float
) -> None:
    """Set step.qacc (nv,) to the accelerations wanted and step.force (nv,) to the joint forces for them, without those
    of the armature. The accelerations of joints that are not actuated count as zero."""
    model, data, step = robot.model, robot.data, run.step
    _wanted_accelerations(model, data, q, v, run, ahead)
    midway = run.inputs.scheme[MIDWAY]
    if midway > 0.0:
        _expect_wanted(robot, ahead, step)
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = v[k] + midway * expected_change(robot.state, k)
    inverse_dynamics(model, step.velocity, step.qacc, data, step.force)
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = v[k] + ahead * step.qacc[k]
    _add_joints_own(robot, q, v, run, ahead)
    _add_soft_couplings(model, data, q, v, run, ahead)
    if equipment is not None:
        if run.lanes is not None:
            for k in range(step.force.shape[0]):
                step.force[k] += equipment.data.resisted[k]
        else:
            _add_equipment(robot, v, run, equipment, ahead)


@njit
def _wanted_accelerations(model: Model, data: Workspace, q: Lanes1, v: Lanes1, run: RunBundle, ahead: float) -> None:
    """Set step.qacc (nv,) to the accelerations wanted; those of followers are given by their leaders'."""
    inputs, step = run.inputs, run.step
    row = step.counters[CONTROL_ROW]
    for k in range(step.force.shape[0]):
        step.force[k] = like(0.0, data)
        c = model.dof_coord[k]
        if c >= 0 and _actuated(model, k):
            wanted = inputs.target_acceleration[row, k]
            error = inputs.target[row, k] - q[c]
            rate = inputs.target_velocity[row, k] - 0.5 * ahead * wanted - v[k]
            step.force[k] = (
                wanted + inputs.controller_gains[POSITION_GAIN] * error + inputs.controller_gains[VELOCITY_GAIN] * rate
            )
    for k in range(step.qacc.shape[0]):
        a = model.dof_independent[k]
        step.qacc[k] = (
            data.gain[k] * step.force[model.independent_dof[a]] + data.drift[k] if a >= 0 else like(0.0, data)
        )


@njit
def _expect_wanted(robot: RobotBundle, ahead: float, step: Step) -> None:
    """Set the changes of velocity that the step expects to those that the controller wants, for actuated joints."""
    model, state = robot.model, robot.state
    for k in range(step.qacc.shape[0]):
        a = model.dof_independent[k]
        if a >= 0 and _actuated(model, model.independent_dof[a]):
            state.change[k] = ahead * step.qacc[k]
            state.earlier_change[k] = state.change[k]


@inlined
def _wanted_velocity(model: Model, data: Workspace, run: RunBundle, ahead: float, k: int) -> Real:
    """The velocity at the end of the step that the targets give dof k."""
    inputs, row = run.inputs, run.step.counters[CONTROL_ROW]
    a = model.dof_independent[k]
    lead = model.independent_dof[a] if a >= 0 else k
    return data.gain[k] * (inputs.target_velocity[row, lead] + ahead * inputs.target_acceleration[row, lead])


@inlined
def _direction(v: Real) -> Real:
    """1 or -1 with the sign of a velocity, 0 at rest."""
    return bounded(v / _RESTING, -1.0, 1.0)


@njit
def _add_joints_own(robot: RobotBundle, q: Lanes1, v: Lanes1, run: RunBundle, ahead: float) -> None:
    """Add to step.force the forces that make up for damping, springs and friction of the joints."""
    model, step = robot.model, run.step
    for k in range(step.force.shape[0]):
        x = coordinate(model, q, k) + ahead * foreseen(step.share[k], v[k], step.velocity[k])
        step.force[k] += model.damping[k] * step.velocity[k] + model.stiffness[k] * (x - model.spring_reference[k])
        friction = model.friction[k] + model.friction_coefficient[k] * robot.state.load[k]
        if any_positive(friction):
            step.force[k] += friction * _direction(_wanted_velocity(model, robot.data, run, ahead, k))


@njit
def _add_soft_couplings(model: Model, data: Workspace, q: Lanes1, v: Lanes1, run: RunBundle, ahead: float) -> None:
    """Subtract from step.force the forces of couplings that are springs, or that yield as in MuJoCo."""
    step = run.step
    prepared = False
    for c in range(model.row_follower.shape[0]):
        if not (model.row_frequency[c] > 0.0 or model.row_compliance[c] > 0.0):
            continue
        follower, leader = model.row_follower[c], model.row_leader[c]
        value, slope, _ = coupling_slope(model, c, q[model.dof_coord[leader]] if leader >= 0 else like(0.0, data))
        error = q[model.dof_coord[follower]] - value
        rate = coupling_rate(model, v, c, slope)
        after = coupling_rate(model, step.velocity, c, slope)
        reference = reference_of(model, c)
        if model.row_impedance[c, D_MIN] >= 0.0:
            mobility = step.effective_coupling[c]
            if not (any_positive(mobility) and ahead > 0.0):  # RK4 holds these rows as constraints of the accelerations
                continue
            d = impedance(model.row_impedance, c, absolute(error))
            reference = safe_reference(ahead, reference[0], reference[1], model.row_time[c])
            bias, cfm = softened(run.inputs, ahead, reference, d, mobility, error, rate, like(0.0, data))
            force = -(after + bias) / (ahead * cfm)
        else:
            mobility = like(0.0, data)
            if model.row_frequency[c] > 0.0:
                if not prepared:
                    _factorise(model, data, step)
                    prepared = True
                mobility = _mobility(model, data, follower, leader, slope)
            resistance = resistance_of(model, c, mobility)
            if not any_positive(resistance):
                continue
            force = -(reference[0] * error + reference[1] * rate) / resistance
            if ahead > 0.0:
                own = own_mobility(model, run.inputs, c, resistance, slope)
                _, bias, cfm = sprung(run.inputs, reference, resistance, own, error, rate, like(0.0, data), 1.0)
                force = -(after + bias) / (ahead * cfm)
        step.force[follower] -= force
        if leader >= 0:
            step.force[leader] += slope * force


@njit
def _factorise(model: Model, data: Workspace, step: Step) -> None:
    """Factorise M, reduced to the independent dofs, in data.factor; step.diagonal is scratch."""
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] = like(0.0, data)
    composites(model, data)
    mass_matrix(model, data)
    reduce_matrix(model, data, step.diagonal)
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)


@njit
def _mobility(model: Model, data: Workspace, follower: int, leader: int, slope: Real) -> Real:
    """J M⁻¹ Jᵀ of a coupling's row, with M factorised."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = like(0.0, data)
    a = model.dof_independent[follower]
    b = model.dof_independent[leader] if leader >= 0 else -1
    if a >= 0:
        x[a] += data.gain[follower]
    if b >= 0:
        x[b] -= slope * data.gain[leader]
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x)
    value = like(0.0, data)
    if a >= 0:
        value += data.gain[follower] * x[a]
    if b >= 0:
        value -= slope * data.gain[leader] * x[b]
    return value


@njit
def find_resisted(robot: RobotBundle, v: Reals1, run: RunBundle, equipment: EquipmentBundle, ahead: float) -> None:
    """Set step.force (nv,) to the forces by which computed torque makes up for the equipment; 0 without it."""
    step = run.step
    resists = run.inputs.controller[0] == COMPUTED_TORQUE
    if resists:
        _wanted_accelerations(robot.model, robot.data, robot.state.qpos, v, run, ahead)
    for k in range(step.force.shape[0]):
        step.force[k] = 0.0
    if resists:
        _add_equipment(robot, v, run, equipment, ahead)


@njit
def _add_equipment(robot: RobotBundle, v: Reals1, run: RunBundle, equipment: EquipmentBundle, ahead: float) -> None:
    """Add to step.force the forces that make up for tendons and passive forces, and subtract those of weight that
    actuators compensate."""
    model, data, step = robot.model, robot.data, run.step
    for k in range(step.force.shape[0]):
        step.force[k] -= equipment.data.passive[k]
    for k in range(step.force.shape[0]):
        if equipment.model.gravity_by_actuator[k]:
            step.force[k] -= equipment.data.compensation[k]
    for t in range(equipment.data.tendon_length.shape[0]):
        force, _, _ = spring_of_tendon(equipment, t)
        rate = 0.0
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            k = equipment.model.tendon_dof[entry]
            rate += equipment.data.tendon_moment[entry] * _wanted_velocity(model, data, run, ahead, k)
        force -= equipment.model.tendon_friction[t] * _direction(rate)
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            step.force[equipment.model.tendon_dof[entry]] -= equipment.data.tendon_moment[entry] * force
    add_inertia_forces(model, v, step.qacc, data, equipment, step.force)
