"""Accelerations and forces at a state, with no force implicit: the part that integrators with steps of their own share.

M u̇ + b = τ + Jᵀ λ with J u̇ + bias + cfm λ = 0: couplings are eliminated or rows, loops and equalities of tendons are
rows. There are no unilateral rows. The code serves both widths; lane_accelerations.py holds the part that differs.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand, expand_velocity, reduce_matrix, reduce_vector
from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.model import D_MAX, D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.coupling_rows import coupling_rate, coupling_slope, reference_of
from artsim.sim.constraints.impedance import impedance, slowest
from artsim.sim.constraints.kinds import COUPLING_ROW
from artsim.sim.constraints.loop_rows import (
    clear_loop_forces,
    hold_loops,
    is_of_hard_loop,
    note_loop_forces,
    spring_loops,
)
from artsim.sim.constraints.row import add_entry, drift_of, single_row
from artsim.sim.constraints.tendon_rows import hold_tendons, note_tendon_forces, spring_tendons
from artsim.sim.equipment.actuation import actuator_force, coordinate, drive_force, find_places
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import FORCES, ROWS, SOLVER, SYSTEM
from artsim.sim.run_data.run_records import ALL_ROWS, CONTROL_ROW, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import SOLVE, SolverBundle
from artsim.sim.solvers.calls import ask
from artsim.sim.stepping.assembly import add_constraint_forces
from artsim.sim.stepping.controller import applied_forces
from artsim.sim.stepping.lane_accelerations import accelerate_lanes, add_up_forces_in_lanes
from artsim.sim.stepping.link_damping import link_damping_forces
from artsim.sim.stepping.system import bare_system

_CLOSING = 50.0  # [1/s] rate at which errors of equalities decay


@njit
def evaluate(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Set step.qacc (nv,), step.next = u̇ (nu,) and the forces by source at coordinates q (nq,) and velocities v (nv,).

    Activations are those of the state. Followers in q and v are set from their leaders.
    """
    model, data, step = robot.model, robot.data, run.step
    expand(model, q, v, data)
    kinematics(model, q, data)
    world_inertia(model, data)
    if run.lanes is not None:
        add_up_forces_in_lanes(robot, q, v, run, equipment, rules, solver)
    else:
        _find_forces(robot, q, v, run, equipment, rules, solver)
        add_up_forces(robot, q, v, run, equipment, rules)
    reduce_matrix(model, data, step.diagonal)
    reduce_vector(model, step.force, data, step.free)
    mark(run.clock, SYSTEM)
    if run.lanes is not None:
        accelerate_lanes(robot, run)
    else:
        _accelerate(robot, q, v, run, rows, equipment, solver)
    expand_velocity(model, step.next, data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.qacc[k] = step.qacc[k] + data.drift[k]


@njit
def _find_forces(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Set the forces of equipment, controllers and links' damping, the gains and places of drives, M and the bias."""
    inputs, step = run.inputs, run.step
    if equipment is not None:
        equipment_forces(robot, q, v, run, equipment, robot.state.activation, 1)
    applied_forces(robot, q, v, run, equipment, 0.0)
    if rules is not None:
        link_damping_forces(robot.model, v, robot.data, rules)
    mark(run.clock, FORCES)
    for k in range(step.stiffness.shape[0]):
        step.stiffness[k] = inputs.drive_stiffness[k]
        step.damping[k] = inputs.drive_damping[k]
    bare_system(robot.model, q, v, robot.data, run, equipment, solver)
    find_places(robot.model, q, run, step.counters[CONTROL_ROW])


@njit
def add_up_forces(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    equipment: EquipmentBundle | None,
    rules: RuleBundle | None,
) -> None:
    """Set step.force (nv,) to the sum of all forces without rows, and each source's share."""
    model, inputs, step = robot.model, run.inputs, run.step
    row = step.counters[CONTROL_ROW]
    for k in range(step.force.shape[0]):
        place = coordinate(model, q, k)
        drive = drive_force(run, row, k, step.place[k], v[k])
        step.drive[k] = min(max(drive, -inputs.drive_limit[k]), inputs.drive_limit[k])
        step.passive[k] = -model.damping[k] * v[k] - model.stiffness[k] * (place - model.spring_reference[k])
        step.coupling[k] = 0.0
        step.limit[k] = 0.0
        step.loop[k] = 0.0
        step.tendon[k] = 0.0
        step.contact[k] = 0.0
        if equipment is not None:
            step.drive[k] += actuator_force(equipment, k, place, v[k])
            step.passive[k] += equipment.data.passive[k]
            step.tendon[k] = equipment.data.tendon[k]
        if rules is not None:
            step.passive[k] += rules.data.force[k]
        step.diagonal[k] = 0.0
        step.force[k] = step.applied[k] + step.drive[k] + step.passive[k] + step.tendon[k] - robot.data.bias[k]
    _spring_couplings(model, q, v, step)
    if equipment is not None:
        clear_loop_forces(equipment)
        spring_loops(model, v, robot.data, equipment, step)
        spring_tendons(equipment, step)
    for k in range(step.force.shape[0]):
        step.force[k] += step.coupling[k]


@njit
def _accelerate(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    solver: SolverBundle,
) -> None:
    """Solve for u̇ and the rows' forces, and book these."""
    step = run.step
    for a in range(step.next.shape[0]):
        step.next[a] = 0.0
    _hold(robot, q, v, run, rows, equipment)
    mark(run.clock, ROWS)
    ask(solver.call, SOLVE)
    if equipment is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if _firms_loops(rows, equipment):
            for a in range(step.next.shape[0]):
                step.next[a] = 0.0
            ask(solver.call, SOLVE)
    mark(run.clock, SOLVER)
    add_constraint_forces(rows, step, 1.0)
    if equipment is not None:
        note_loop_forces(rows, equipment, 1.0)
        note_tendon_forces(rows, equipment, 1.0, True)


@njit
def _firms_loops(rows: Rows, equipment: EquipmentBundle) -> bool:
    """Add to the biases of hard loops what their yield leaves of the accelerations, so that the next solution leaves
    its square; False without such loops (method of multipliers: Bertsekas 1982, ch. 2)."""
    found = False
    for row in range(rows.number[ALL_ROWS]):
        if is_of_hard_loop(rows, equipment, row):
            rows.bias[row] = rows.bias[row] - rows.cfm[row] * rows.impulse[row]
            found = True
    return found


@njit
def _spring_couplings(model: Model, q: Reals1, v: Reals1, step: Step) -> None:
    """step.coupling of the compliant coupling rows, as explicit springs."""
    for c in range(model.row_follower.shape[0]):
        if model.row_frequency[c] > 0.0 and model.row_impedance[c, D_MIN] < 0.0 and step.effective_coupling[c] > 0.0:
            follower = model.row_follower[c]
            leader = model.row_leader[c]
            x = q[model.dof_coord[leader]] if leader >= 0 else 0.0
            value, slope, _ = coupling_slope(model, c, x)
            K, B = reference_of(model, c)
            error = q[model.dof_coord[follower]] - value
            force = -(K * error + B * coupling_rate(model, v, c, slope)) / step.effective_coupling[c]
            step.coupling[follower] += force
            if leader >= 0:
                step.coupling[leader] -= slope * force


@njit
def _hold(
    robot: RobotBundle, q: Reals1, v: Reals1, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None
) -> None:
    """Constrain accelerations by the equality rows, with Baumgarte stabilisation (CS 599, scribe notes, 2011): C̈ + 2 a
    Ċ + a² C = 0.

    The rate a does not depend on the step unless the step is long: motion that obeys the constraints is then the exact
    solution of the same equations at every step, and keeps the order of the method.
    """
    a = min(_CLOSING, 1.0 / run.inputs.time_step[0])
    rows.number[ALL_ROWS] = 0
    _hold_couplings(robot.model, q, v, robot.data, run, rows, a)
    if equipment is not None:
        hold_loops(robot.model, v, robot.data, run, rows, equipment, a)
        hold_tendons(robot.model, v, robot.data, run.inputs, rows, equipment, a)


@njit
def _hold_couplings(model: Model, q: Reals1, v: Reals1, data: Workspace, run: RunBundle, rows: Rows, a: float) -> None:
    """The rows of hard couplings, and of compliant ones of MuJoCo's kind."""
    h = run.inputs.time_step[0]
    for c in range(model.row_follower.shape[0]):
        if model.row_frequency[c] > 0.0 and model.row_impedance[c, D_MIN] < 0.0:
            continue
        follower = model.row_follower[c]
        leader = model.row_leader[c]
        x = q[model.dof_coord[leader]] if leader >= 0 else 0.0
        value, slope, bend = coupling_slope(model, c, x)
        n = single_row(model, data, rows, COUPLING_ROW, follower, 1.0)
        if leader >= 0:
            add_entry(model, data, rows, leader, -slope)
        error = q[model.dof_coord[follower]] - value
        rate = coupling_rate(model, v, c, slope)
        drift = drift_of(data, rows, n)
        if model.row_frequency[c] > 0.0:
            K, B = reference_of(model, c)
            d = impedance(model.row_impedance, c, abs(error))
            most = slowest(h, B, model.row_impedance[c, D_MAX])
            rows.bias[n] = drift + most * B * rate + most * most * d * K * error
            rows.cfm[n] = run.step.effective_coupling[c] * (1.0 - d) / d
        else:
            speed = v[leader] if leader >= 0 else 0.0
            rows.bias[n] = drift - bend * speed * speed + 2.0 * a * rate + a * a * error
