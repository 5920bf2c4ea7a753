"""Sets up the equations of a step, M, bias and the M̂ of implicit terms, and solves them with the rows."""

from __future__ import annotations

from artsim.sim.articulation.coupling import end_velocities, reduce_matrix, reduce_vector
from artsim.sim.articulation.dynamics import composites, coupled_bias, factorise, mass_matrix
from artsim.sim.articulation.kinematics import like, motion_columns
from artsim.sim.articulation.model import D_MIN, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.coupling_rows import coupling_slope
from artsim.sim.constraints.impedance import is_convex
from artsim.sim.constraints.loop_drives import has_inertial_drives, scale_by_inertia
from artsim.sim.constraints.row import UNSOLVED
from artsim.sim.constraints.tendon_rows import has_sprung_tendons, sprung_mobilities
from artsim.sim.contact.detection import find_drifts
from artsim.sim.equipment.actuation import coordinate, implicit_system
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.equipment.drives import set_drives
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Lanes1, Real, Reals1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.geometry.contacts import EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import ROWS, SOLVER, SYSTEM
from artsim.sim.run_data.run_records import (
    EVALUATION,
    ITERATIONS,
    LARGE,
    M_IS_SET,
    RESIDUAL,
    SOLVED_ONCE,
    STIFFENED,
    WEIGHED,
    Inputs,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.run_data.scratch import SOLVE, SolverBundle
from artsim.sim.solvers.calls import answer, ask, factorise_system, forms_mass_matrix, reduce_system, sweeps_rows
from artsim.sim.stepping.assembly import build_rows, keep_impulses
from artsim.sim.stepping.lane_calls import keep_what_stands, solve_lanes
from artsim.sim.stepping.link_damping import add_link_damping, link_damping_forces
from artsim.sim.stepping.midpoint import add_stiffened_bias, stiffen_composites


@njit
def set_bias(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Compute M, b at step.middle, and other terms that an evaluation of the step computes once."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    rows.report[ITERATIONS] = like(0.0, data)
    _set_bare_bias(model, step.middle, data, step)
    if step.counters[WEIGHED] & M_IS_SET == 0:
        _set_bare_inertia(model, data, step, solver)
        step.counters[WEIGHED] |= M_IS_SET
        scaled = _scale_by_mobility(model, state.qpos, step.middle, data, run, equipment, solver)
        if run.lanes is None and scaled:
            step.counters[WEIGHED] = 0  # the gains that are scaled here begin anew with the next evaluation
        if rules is not None:
            add_link_damping(model, data, h, rules)
    if not forms_mass_matrix(solver):  # such solvers write over the articulated inertias
        step.counters[WEIGHED] &= M_IS_SET
    if contact is not None and not is_convex(inputs):
        find_drifts(model, step.middle, data, inputs, contact)
    if rules is not None:
        _damp_links(robot, run, rules)


@inlined
def has_acceleration_drives(inputs: Inputs) -> bool:
    """True if the gains of some drive are accelerations."""
    for k in range(inputs.drive_acceleration.shape[0]):
        if inputs.drive_acceleration[k] == 1:
            return True
    return False


@njit
def find_drive_inertias(model: Model, data: Workspace, run: RunBundle, solver: SolverBundle) -> None:
    """Set step.drive_inertia of drives whose gains are accelerations, and all gains. Factorises the bare M, which is
    needed."""
    inputs, step = run.inputs, run.step
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] = like(0.0, data)
    reduce_system(model, data, step, solver)
    factorise_system(model, data, solver)
    for k in range(step.diagonal.shape[0]):
        if inputs.drive_acceleration[k] == 1:  # no force without mobility
            step.drive_inertia[k] = inverse_or_zero(_effective(model, data, k, -1, like(0.0, data), solver))
    set_drives(run)


@inlined
def _damp_links(robot: RobotBundle, run: RunBundle, rules: RuleBundle) -> None:
    """Set the forces of links' damping at the velocities without forces; both widths."""
    step, h = run.step, run.inputs.time_step[0]
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = robot.state.qvel[k] + h * robot.data.drift[k]
    link_damping_forces(robot.model, step.velocity, robot.data, rules)


@njit
def set_system(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Reduce M̂ = M + h D + h² K, with the implicit terms, to the independent dofs; step.free (nu,) = h (τ - b)."""
    model, data = robot.model, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    implicit_system(robot, run, rows, equipment)
    for k in range(step.force.shape[0]):
        step.force[k] -= data.bias[k] + step.diagonal[k] * data.drift[k]
        if rules is not None:
            step.force[k] += rules.data.force[k]
    reduce_system(model, data, step, solver)
    mark(run.clock, SYSTEM)
    reduce_vector(model, step.force, data, step.free)
    for a in range(step.free.shape[0]):
        step.free[a] *= h
        step.next[a] = robot.state.qvel[model.independent_dof[a]]


@njit
def set_rows(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EitherEquipment,
    contact: EitherContacts,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Build J, bias, cfm and bounds of all constraint rows, and the warm-start impulses: those of the last step, or of
    the previous solution where this step is solved again with the same contacts.
    """
    if run.lanes is None or solver.pack is not None:
        build_rows(robot, run, rows, equipment, contact, rules, solver)


@njit
def find_velocities(robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> None:
    """Solve for the rows' impulses and the velocities at the end of the step: step.next (nu,), step.velocity (nv,)."""
    mark(run.clock, ROWS)
    if solver.pack is not None:
        solve_lanes(run.step, solver.pack)
        keep_what_stands(run.step, solver.pack)
    elif run.lanes is None:
        ask(solver.call, SOLVE)
        if not sweeps_rows(solver) and rows.report[RESIDUAL] <= UNSOLVED and rows.report[LARGE] == 0.0:
            keep_impulses(rows)
            run.step.retries[SOLVED_ONCE] = 1
    set_end_velocities(robot.model, robot.data, run)
    mark(run.clock, SOLVER)


@njit
def set_end_velocities(model: Model, data: Workspace, run: RunBundle) -> None:
    """step.velocity (nv,) from the solver's step.next."""
    step = run.step
    end_velocities(model, data, step.next, run.inputs.time_step[0], step.velocity)


@njit
def bare_system(
    model: Model,
    q: Reals1,
    v: Reals1,
    data: Workspace,
    run: RunBundle,
    equipment: EquipmentBundle | None,
    solver: SolverBundle,
) -> None:
    """Bias, M, and terms defined on the bare M: acceleration drives' gains (scaled in place), soft rows' r."""
    _set_bare_bias(model, v, data, run.step)
    _set_bare_inertia(model, data, run.step, solver)
    _scale_by_mobility(model, q, v, data, run, equipment, solver)


@inlined
def _set_bare_bias(model: Model, v: Lanes1, data: Workspace, step: Step) -> None:
    """The bias at velocities v (nv,), with the share of stiffened bodies."""
    coupled_bias(model, v, data)
    if step.counters[EVALUATION] == STIFFENED:
        add_stiffened_bias(model, data, data.bias, step.force)


@inlined
def _set_bare_inertia(model: Model, data: Workspace, step: Step, solver: SolverBundle) -> None:
    """M with stiffened bodies; columns of motion alone for solvers that do without M (propagation, direct)."""
    composites(model, data)
    if step.counters[EVALUATION] == STIFFENED:
        stiffen_composites(model, data)
    if forms_mass_matrix(solver):
        mass_matrix(model, data)
    else:
        motion_columns(model, data)


@njit
def _scale_by_mobility(
    model: Model,
    q: Lanes1,
    v: Lanes1,
    data: Workspace,
    run: RunBundle,
    equipment: EitherEquipment,
    solver: SolverBundle,
) -> bool:
    """Set the terms that are defined on the bare M, which is then factorised; False if there are none."""
    inputs, step = run.inputs, run.step
    needed = has_springs(model) or has_acceleration_drives(inputs)
    by_equipment = False
    if equipment is not None:
        by_equipment = has_sprung_tendons(equipment) or has_inertial_drives(equipment)
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] = like(0.0, data)
    if not needed and not by_equipment:
        return False
    find_drive_inertias(model, data, run, solver)
    for c in range(model.row_follower.shape[0]):
        if _is_spring(model, c):
            leader = model.row_leader[c]
            place = coordinate(model, q, leader) if leader >= 0 else like(0.0, data)
            _, slope, _ = coupling_slope(model, c, place)
            step.effective_coupling[c] = _effective(model, data, model.row_follower[c], leader, slope, solver)
    if equipment is not None and by_equipment:
        if not forms_mass_matrix(solver):
            mass_matrix(model, data)
            reduce_matrix(model, data, step.diagonal)
            factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
        sprung_mobilities(model, data, equipment)
        scale_by_inertia(model, v, data, run, equipment)
    return True


@njit
def has_springs(model: Model) -> bool:
    """True if a coupling row is scaled by the current J M⁻¹ Jᵀ; rows with solimp use that of the file's pose."""
    for c in range(model.row_follower.shape[0]):
        if _is_spring(model, c):
            return True
    return False


@inlined
def _is_spring(model: Model, c: int) -> bool:
    """True if coupling row c has a natural frequency, and is not soft as in MuJoCo."""
    return model.row_frequency[c] > 0.0 and model.row_impedance[c, D_MIN] < 0.0


@njit
def _effective(model: Model, data: Workspace, k: int, leader: int, slope: Real, solver: SolverBundle) -> Real:
    """J M⁻¹ Jᵀ for J = e_k - slope e_leader (no leader: -1), with the bare M factorised."""
    x = data.reduced
    zero = like(0.0, data)
    for a in range(x.shape[0]):
        x[a] = zero
    a = model.dof_independent[k]
    b = model.dof_independent[leader] if leader >= 0 else -1
    if a >= 0:
        x[a] += data.gain[k]
    if b >= 0:
        x[b] -= slope * data.gain[leader]
    answer(model, data, solver, 0, x.shape[0])
    value = zero
    if a >= 0:
        value += data.gain[k] * x[a]
    if b >= 0:
        value -= slope * data.gain[leader] * x[b]
    return value
