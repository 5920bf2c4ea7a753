"""The kernel that sets up the equations of a pack's step, of which the solution is known, and does not solve them."""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.limit_rows import BACKWARD, FORWARD, LOWER, UPPER, beyond_limit, is_limited
from artsim.sim.constraints.tendon_limit_rows import beyond_tendon_limit
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.equipment.arrays import TENDON_LOWER, TENDON_UPPER, EquipmentBundle
from artsim.sim.equipment.drives import set_drives
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import ALL_ROWS, LASTING_ROWS, WEIGHED, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.aims import are_aimed, find_misses
from artsim.sim.stepping.equations import ROWS, SHAPES, Equations
from artsim.sim.stepping.retries import start_search
from artsim.sim.stepping.sleeping import begin_asleep
from artsim.sim.stepping.solution import find_forces, look_for_contacts, place
from artsim.sim.stepping.step import begin, choose_controls
from artsim.sim.stepping.system import set_bias, set_end_velocities, set_rows, set_system


@njit
def find_equations(
    robot: RobotBundle,
    run: RunBundle,
    rows: Rows,
    equipment: EquipmentBundle | None,
    contact: PackContactBundle | None,
    rules: RuleBundle | None,
    solver: SolverBundle,
    equations: Equations,
) -> None:
    """Set the equations of the group's starts: the stages of solve_step up to the solution, with the limits that press
    and the drives that are held in it."""
    equations.fits[equations.group[0]] = 0
    begin(robot, run, rows, equipment, contact, rules)
    choose_controls(robot, run, equipment)
    begin_asleep(robot.state, run)
    place(robot)
    run.step.counters[WEIGHED] = 0
    rows.number[ALL_ROWS] = rows.number[LASTING_ROWS] = 0
    find_forces(robot, run, equipment)
    if contact is not None and not look_for_contacts(robot, run, contact):
        return
    start_search(robot, run, rows, equipment, contact, rules, solver)
    _take_over(run, equations)
    if contact is not None:
        _take_grips(contact, equations)
    set_bias(robot, run, rows, equipment, contact, rules, solver)
    set_system(robot, run, rows, equipment, rules, solver)
    if equations.number[ROWS] > 0:
        set_rows(robot, run, rows, equipment, contact, rules, solver)
    if not _are_as_found(rows, equations):
        return
    if contact is not None and not _touch_as_found(contact, equations):
        return
    equations.fits[equations.group[0]] = 1
    _balance(robot, run.step, rows, equations)
    _gaps(rows, equations)
    if equations.group[0] == 0:
        _matrices(robot.model, robot.data, rows, equations)
    _lead(robot, run, equations)
    if equations.group[0] == 0:
        _look_at_limits(robot, run, equipment, equations)
    _misses(robot, run, rows, equipment, equations)


@inlined
def _take_over(run: RunBundle, equations: Equations) -> None:
    """Press the limits and hold the drives of the solution."""
    step = run.step
    for k in range(step.pressed.shape[0]):
        for side in range(step.pressed.shape[1]):
            step.pressed[k, side] = equations.pressed[k, side]
    for k in range(step.drive_held.shape[0]):
        step.drive_held[k] = equations.drive_held[k]
    set_drives(run)


@inlined
def _take_grips(contact: PackContactBundle, equations: Equations) -> None:
    """Build contacts with as much of their friction as the solution needed."""
    for n in range(min(contact.data.number[CONTACTS], equations.number[SHAPES])):
        contact.data.most_grip[n] = equations.most_grip[n]


@njit
def _are_as_found(rows: Rows, equations: Equations) -> bool:
    """True if the rows are those of the solution."""
    if rows.number[ALL_ROWS] != equations.number[ROWS]:
        return False
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] != equations.kind[n] or rows.dof[n] != equations.dof[n] or rows.part[n] != equations.part[n]:
            return False
    return True


@njit
def _touch_as_found(contact: PackContactBundle, equations: Equations) -> bool:
    """True if the contacts that the lanes list are of the shapes of the solution's."""
    if contact.data.number[CONTACTS] != equations.number[SHAPES]:
        return False
    for n in range(contact.data.number[CONTACTS]):
        for end in range(2):
            if contact.data.shape[n, end] != equations.shape[n, end]:
                return False
    return True


@njit
def _balance(robot: RobotBundle, step: Step, rows: Rows, equations: Equations) -> None:
    """equations.balance of the group: M̂ (u⁺ - u) - h (τ - b) - Jᵀ λ, with M̂ in data.factor as coupling.reduce_matrix
    leaves it."""
    model, state, H = robot.model, robot.state, robot.data.factor
    group, balance = equations.group[0], equations.balance
    for a in range(step.free.shape[0]):
        balance[group, a] = -step.free[a]
    for a in range(step.free.shape[0]):
        change = equations.next[a] - state.qvel[model.independent_dof[a]]
        balance[group, a] += H[a, a] * change
        b = model.independent_parent[a]
        while b >= 0:
            other = equations.next[b] - state.qvel[model.independent_dof[b]]
            balance[group, a] += H[a, b] * other
            balance[group, b] += H[a, b] * change
            b = model.independent_parent[b]
    for n in range(rows.number[ALL_ROWS]):
        for e in range(rows.start[n], rows.stop[n]):
            balance[group, rows.column[e]] -= rows.value[e] * equations.impulse[n]


@njit
def _gaps(rows: Rows, equations: Equations) -> None:
    """Gaps, softness, bounds and cones of the group's rows."""
    group = equations.group[0]
    for n in range(rows.number[ALL_ROWS]):
        gap = rows.bias[n] + rows.cfm[n] * equations.impulse[n]
        for e in range(rows.start[n], rows.stop[n]):
            gap += rows.value[e] * equations.next[rows.column[e]]
        equations.gap[group, n] = gap
        equations.cfm[group, n] = rows.cfm[n]
        equations.lower[group, n] = rows.lower[n]
        equations.upper[group, n] = rows.upper[n]
        equations.slope[group, n] = rows.slope[n]
        equations.shifting[group, n] = rows.shifting[n]


@njit
def _matrices(model: Model, data: Workspace, rows: Rows, equations: Equations) -> None:
    """M̂ and J."""
    system, jacobian = equations.system, equations.jacobian
    for a in range(system.shape[0]):
        for b in range(system.shape[0]):
            system[a, b] = zero_like(system[a, b])
        for n in range(rows.number[ALL_ROWS]):
            jacobian[n, a] = zero_like(jacobian[n, a])
    for a in range(system.shape[0]):
        b = a
        while b >= 0:
            system[a, b] = data.factor[a, b]
            system[b, a] = data.factor[a, b]
            b = model.independent_parent[b]
    for n in range(rows.number[ALL_ROWS]):
        for e in range(rows.start[n], rows.stop[n]):
            jacobian[n, rows.column[e]] += rows.value[e]


@inlined
def _lead(robot: RobotBundle, run: RunBundle, equations: Equations) -> None:
    """Set the velocities at the step's end to those of the solution."""
    for a in range(run.step.next.shape[0]):
        run.step.next[a] = equations.next[a]
    set_end_velocities(robot.model, robot.data, run)


@inlined
def _misses(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, equations: Equations
) -> None:
    """The misses of the group's rows."""
    group, one = equations.group[0], like(1.0, robot.data)
    aimed = are_aimed(robot.model, run.inputs, equipment)
    if aimed and rows.number[ALL_ROWS] > 0:
        find_misses(robot, run, rows, equipment, one)
    for n in range(rows.number[ALL_ROWS]):
        equations.rate[group, n] = rows.rate[n]
        equations.miss[group, n] = zero_like(one)
        if aimed and n < rows.number[LASTING_ROWS]:
            equations.miss[group, n] = rows.miss[rows.place[n]]


@njit
def _look_at_limits(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None, equations: Equations
) -> None:
    """equations.nearest, at the velocities of the solution."""
    step, nv = run.step, robot.model.dof_body.shape[0]
    zero = like(0.0, robot.data)
    nearest = zero - math.inf
    for k in range(nv):
        for side in (LOWER, UPPER, BACKWARD, FORWARD):
            if is_limited(robot.model, k, side):
                beyond = beyond_limit(robot, run, k, side)
                nearest = where_greater(step.pressed[k, side], zero, nearest, largest(nearest, beyond))
    if equipment is not None:
        for t in range(equipment.model.tendon_lower.shape[0]):
            for side in (TENDON_LOWER, TENDON_UPPER):
                lower = side == TENDON_LOWER
                bound = -equipment.model.tendon_lower[t] if lower else equipment.model.tendon_upper[t]
                if bound < 1e308:
                    beyond = beyond_tendon_limit(run, equipment, nv, t, side)
                    column = side - TENDON_LOWER
                    nearest = where_greater(step.pressed[nv + t, column], zero, nearest, largest(nearest, beyond))
    equations.nearest[0] = nearest
