"""Builds unilateral rows for the limits of tendons' lengths, where they press as those of dofs do (limit_rows.py)."""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.constraints.impedance import has_soft_limit, yield_at_bound
from artsim.sim.constraints.kinds import AT_LONGEST, AT_SHORTEST, TENDON_ROW
from artsim.sim.constraints.limit_rows import beyond_bound, give_way, pressing
from artsim.sim.constraints.row import add_entry, add_row, drift_of, one_sided, row_rate
from artsim.sim.equipment.arrays import REFERENCE_B, REFERENCE_K, TENDON_LOWER, TENDON_UPPER, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import PLACES, Inputs, Rows, RunBundle

_LOWER, _UPPER = 1, 2


@inlined
def _is_limited(equipment: EquipmentBundle, t: int, side: int) -> bool:
    """True if tendon t has a limit on this side."""
    lower = side == TENDON_LOWER
    bound: float = -equipment.model.tendon_lower[t] if lower else equipment.model.tendon_upper[t]
    return bound < 1e308


@njit
def tendon_limit_rows(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle, t: int) -> None:
    """Append the rows of the sides of tendon t's limits that press; lanes in which a side does not press get no impulse
    from its row. In both widths."""
    for side in (TENDON_LOWER, TENDON_UPPER):
        if _is_limited(equipment, t, side):
            at, column = robot.model.dof_body.shape[0] + t, side - TENDON_LOWER
            pressed = pressing(robot, run, rows, at, run.step.pressed[at, column])
            run.step.pressed[at, column] = pressed
            if any_positive(pressed):
                n = _limit_row(robot.model, robot.state.qvel, robot.data, run.inputs, rows, equipment, t, side)
                zero = zero_like(pressed)
                rows.upper[n] = where_greater(pressed, zero, rows.upper[n], zero)
            else:
                rows.number[PLACES] += 1


@inlined
def mobility_of_tendon(equipment: EquipmentBundle, t: int) -> Real:
    """J M⁻¹ Jᵀ of tendon t in the file's pose, in both widths."""
    return equipment.data.tendon_mobility[equipment.model.tendon_row_follower.shape[0] + t]


@njit
def tendon_row(model: Model, data: Workspace, rows: Rows, equipment: EquipmentBundle, t: int, sign: float) -> int:
    """Append a row on the velocity of tendon t, J = sign dL/dq. Return its number."""
    n = add_row(rows, TENDON_ROW, t)
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        add_entry(model, data, rows, equipment.model.tendon_dof[entry], sign * equipment.data.tendon_moment[entry])
    return n


@njit
def _limit_row(
    model: Model, v: Lanes1, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle, t: int, side: int
) -> int:
    """Append a row that keeps the length on its side of the bound at the end of the step, or a spring that pushes it
    back and never pulls, in both widths; return its number.
    """
    lower = side == TENDON_LOWER
    sign = 1.0 if lower else -1.0
    bound = equipment.model.tendon_lower[t] if lower else equipment.model.tendon_upper[t]
    n = tendon_row(model, data, rows, equipment, t, sign)
    rows.part[n] = AT_SHORTEST if lower else AT_LONGEST
    gap = sign * (equipment.data.tendon_length[t] - bound)
    spring = equipment.model.tendon_limit_spring[t]
    if spring[REFERENCE_K] > 0.0:
        drift = drift_of(data, rows, n)
        give_way(rows, inputs, n, (spring[REFERENCE_K], spring[REFERENCE_B]), gap, row_rate(rows, n, v), drift)
        return n
    at, drift = model.dof_body.shape[0] + t, drift_of(data, rows, n)
    if has_soft_limit(inputs, at):
        yield_at_bound(inputs, rows, n, at, mobility_of_tendon(equipment, t), gap, row_rate(rows, n, v), drift)
        return n
    one_sided(rows, inputs, n, gap)
    rows.bias[n] += inputs.time_step[0] * drift
    return n


@njit
def begin_tendon_limits(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, chosen: Real) -> None:
    """Press those limits of tendons that the state violates where `chosen` is 1, after `begin_limits`; in both
    widths."""
    pressed, zero, nv = run.step.pressed, zero_like(chosen), robot.model.dof_body.shape[0]
    for t in range(equipment.model.tendon_lower.shape[0]):
        for side in (TENDON_LOWER, TENDON_UPPER):
            if _is_limited(equipment, t, side):
                length, column = equipment.data.tendon_length[t], side - TENDON_LOWER
                lower, upper = equipment.model.tendon_lower[t] - length, length - equipment.model.tendon_upper[t]
                beyond = lower if side == TENDON_LOWER else upper
                if has_soft_limit(run.inputs, nv + t):
                    beyond = beyond + run.inputs.limit_margin[nv + t]
                beyond = where_greater(beyond, zero, chosen, zero)
                pressed[nv + t, column] = largest(pressed[nv + t, column], beyond)


@njit
def press_tendons(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, chosen: Real) -> Real:
    """1 where `chosen` is 1 and the velocities step.velocity would violate a limit of a tendon that has no row, and now
    gets one; in both widths."""
    pressed, zero, nv = run.step.pressed, zero_like(chosen), robot.model.dof_body.shape[0]
    found = zero
    for t in range(equipment.model.tendon_lower.shape[0]):
        for side in (TENDON_LOWER, TENDON_UPPER):
            if _is_limited(equipment, t, side):
                at, column = nv + t, side - TENDON_LOWER
                new = where_greater(beyond_tendon_limit(run, equipment, nv, t, side), zero, chosen, zero)
                new = where_greater(pressed[at, column], zero, zero, new)
                pressed[at, column] = largest(pressed[at, column], new)
                found = largest(found, new)
    return found


@inlined
def beyond_tendon_limit(run: RunBundle, equipment: EquipmentBundle, nv: int, t: int, side: int) -> Real:
    """A T, more than 0 where the velocities step.velocity would take tendon t beyond a side of its limits, or the
    tendon starts beyond a limit that is a spring; of a soft limit only where it starts beyond.
    """
    start = equipment.data.tendon_length[t]
    end = start
    h = run.inputs.time_step[0]
    for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
        end = end + h * equipment.data.tendon_moment[entry] * run.step.velocity[equipment.model.tendon_dof[entry]]
    lower = side == TENDON_LOWER
    bound, sign = (equipment.model.tendon_lower[t], -1.0) if lower else (equipment.model.tendon_upper[t], 1.0)
    if has_soft_limit(run.inputs, nv + t):
        return sign * (start - bound) + run.inputs.limit_margin[nv + t]
    return beyond_bound(start, end, (bound, sign), equipment.model.tendon_limit_spring[t, REFERENCE_K])


@njit
def broken_side(equipment: EquipmentBundle, t: int, length: float, tolerance: float) -> int:
    """The mark of the limit that a length violates, 0 if the length is within both limits."""
    if length < equipment.model.tendon_lower[t] - tolerance * max(1.0, abs(equipment.model.tendon_lower[t])):
        return _LOWER
    if length > equipment.model.tendon_upper[t] + tolerance * max(1.0, abs(equipment.model.tendon_upper[t])):
        return _UPPER
    return 0
