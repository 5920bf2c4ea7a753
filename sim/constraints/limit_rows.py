"""Builds unilateral rows for joint position and velocity limits.

A position limit bounds the end of the step: q + h v⁺ ≥ lower. A dof already beyond its limit is brought back over 0.1
s, no faster than a velocity limit allows, since removing the whole error at once would be a kick. A limit with a
stiffness is a spring that pushes the dof back and never pulls, weighed as joints' springs are (impedance.py).

Most limits are far away in most steps. A side gets a row where it pressed in the last step or is violated already, and
where the velocities found would violate it: the step is then solved again (retries.py). The sweeping solvers, which
solve a step only once, have all rows in every step.

A ball's limit (MJCF's range) bounds its angle, and the limit's row acts along the axis of the ball's rotation. The
increase of the angle by spin across that axis within the step, ¼ h² cot(angle / 2) |ω|², is subtracted from the
remaining range. Limits of a ball's swing and twist are in turn_limit_rows.py.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import joint_like
from artsim.sim.constraints.kinds import AT_ANGLE, AT_LOWER, AT_UPPER, POSITION_ROW, VELOCITY_ROW
from artsim.sim.constraints.row import add_entry, add_row, mobility_of_row, one_sided, single_row
from artsim.sim.constraints.turn_limit_rows import turn_limit_rows
from artsim.sim.equipment.actuation import coordinate
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real, where_greater, zero_like
from artsim.sim.foundation.quaternions import rotation_vector
from artsim.sim.foundation.records import Real, Reals1, Vec4
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.sincos import sincos
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import PLACES, Inputs, Rows, RunBundle, Step

_SQUEEZE = 5.0  # [rad/s] largest rate at which a ball's angle makes room for spin across its axis


LOWER, UPPER, BACKWARD, FORWARD = range(4)  # the sides of a dof's limits: of position, of velocity


@njit
def limit_rows(robot: RobotBundle, run: RunBundle, rows: Rows, k: int) -> None:
    """Append the rows of dof k's limits of position and velocity that this step calls for."""
    model = robot.model
    ball_limit_rows(robot, run.inputs, rows, k)
    for side in (LOWER, UPPER, BACKWARD, FORWARD):
        if is_limited(model, k, side):
            if _calls_for_row(robot, run, rows, k, side):
                run.step.pressed[k, side] = 1.0
                limit_row(robot, run.inputs, rows, k, side)
            else:
                rows.number[PLACES] += 1


@inlined
def ball_limit_rows(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int) -> None:
    """Append the rows of limits of a ball's angle, swing and twist; k is its first dof."""
    if is_cone(robot.model, k):
        _cone_row(robot, inputs, rows, k)
    if robot.model.dof_turn[k] >= 0:
        turn_limit_rows(robot, inputs, rows, k)


@inlined
def _calls_for_row(robot: RobotBundle, run: RunBundle, rows: Rows, k: int, side: int) -> bool:
    """True if a side of dof k's limits has a row in this step."""
    if run.step.pressed[k, side] > 0.0 or SWEEPING[run.inputs.solver[0]]:
        return True
    if side == LOWER and coordinate(robot.model, robot.state.qpos, k) < robot.model.lower[k]:
        return True
    if side == UPPER and coordinate(robot.model, robot.state.qpos, k) > robot.model.upper[k]:
        return True
    return robot.state.impulse[rows.number[PLACES]] > 0.0


@inlined
def is_limited(model: Model, k: int, side: int) -> bool:
    """True if dof k has a limit on this side, other than that of a ball's angle."""
    if side >= BACKWARD:
        return model.velocity_limit[k] < math.inf
    bound = -model.lower[k] if side == LOWER else model.upper[k]
    return model.dof_coord[k] >= 0 and bound < math.inf


@njit
def limit_row(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int, side: int) -> int:
    """Append the row of a side of dof k's limits, in both widths; return its number."""
    model, data = robot.model, robot.data
    h = inputs.time_step[0]
    sign = 1.0 if side == LOWER or side == BACKWARD else -1.0
    if side >= BACKWARD:
        n = single_row(model, data, rows, VELOCITY_ROW, k, sign)
        rows.part[n] = AT_LOWER if side == BACKWARD else AT_UPPER
        rows.bias[n] = model.velocity_limit[k] + sign * h * data.drift[k]
        rows.lower[n] = zero_like(rows.bias[n])
        return n
    n = single_row(model, data, rows, POSITION_ROW, k, sign)
    rows.part[n] = AT_LOWER if side == LOWER else AT_UPPER
    bound = model.lower[k] if side == LOWER else model.upper[k]
    gap = sign * (coordinate(model, robot.state.qpos, k) - bound)
    if model.limit_stiffness[k] > 0.0:
        spring = model.limit_stiffness[k], model.limit_damping[k]
        give_way(rows, inputs, n, spring, gap, sign * robot.state.qvel[k], sign * data.drift[k])
        return n
    one_sided(rows, inputs, n, gap)
    rows.bias[n] = largest(rows.bias[n], real(-model.velocity_limit[k], rows.bias[n])) + sign * h * data.drift[k]
    return n


@inlined
def give_way(
    rows: Rows, inputs: Inputs, n: int, spring: tuple[float, float], gap: Real, rate: Real, drift: Real
) -> None:
    """Make row n a spring and damper that push the gap, which opens at `rate`, and never pull, in both widths."""
    one = zero_like(gap) + 1.0
    mobility = mobility_of_row(rows, inputs, n)
    rows.error[n] = gap
    rows.rate[n], rows.bias[n], rows.cfm[n] = joint_like(
        inputs.time_step[0], spring, one, mobility, gap, rate, drift, 1.0
    )
    rows.lower[n] = zero_like(gap)


@njit
def is_cone(model: Model, k: int) -> bool:
    """True if model.upper[k] limits a ball's angle; k is then the ball's first dof."""
    return model.dof_coord[k] < 0 and model.upper[k] < math.inf


@njit
def ball_rotation(model: Model, q: Reals1, k: int) -> Vec4:
    """Rotation vector of the ball whose first dof is k, and its length: the angle, at most π."""
    n = model.body_coord[model.dof_body[k]]
    x, y, z = rotation_vector(q[n], q[n + 1], q[n + 2], q[n + 3])
    return x, y, z, math.sqrt(x * x + y * y + z * z)


@njit
def _cone_row(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int) -> None:
    """J = -axis, which has the same components in the ball's and the parent's frame. At zero angle there is no axis,
    and no row."""
    model, state, data = robot.model, robot.state, robot.data
    n = add_row(rows, POSITION_ROW, k)
    rows.part[n] = AT_ANGLE
    x, y, z, angle = ball_rotation(model, state.qpos, k)
    if angle > 0.0:
        add_entry(model, data, rows, k, -x / angle)
        add_entry(model, data, rows, k + 1, -y / angle)
        add_entry(model, data, rows, k + 2, -z / angle)
    h = inputs.time_step[0]
    one_sided(rows, inputs, n, model.upper[k] - angle)
    rows.bias[n] -= min(_widening(state.qvel, k, x, y, z, angle, h) / h, _SQUEEZE)


@njit
def _widening(v: Reals1, k: int, x: float, y: float, z: float, angle: float, h: float) -> float:
    """Increase of a ball's angle within a step by the velocity across its axis."""
    if angle <= 0.0:
        return 0.0
    along = (x * v[k] + y * v[k + 1] + z * v[k + 2]) / angle
    across = v[k] ** 2 + v[k + 1] ** 2 + v[k + 2] ** 2 - along * along
    s, c = sincos(0.5 * angle)
    return min(0.25 * h * h * across * c / s, h * math.sqrt(max(across, 0.0)))


@njit
def presses(robot: RobotBundle, run: RunBundle, chosen: Real, without_rows: bool) -> Real:
    """1 where `chosen` is 1 and the velocities step.velocity would violate a side of a limit that has no row, and now
    gets one; in both widths. `without_rows`: the velocities come from a step in which no side has a row.
    """
    step = run.step
    zero = zero_like(chosen)
    found = zero
    for k in range(step.velocity.shape[0]):
        for side in (LOWER, UPPER, BACKWARD, FORWARD):
            if is_limited(robot.model, k, side):
                new = where_greater(beyond_limit(robot, run, k, side), zero, chosen, zero)
                if not without_rows:
                    new = where_greater(step.pressed[k, side], zero, zero, new)
                step.pressed[k, side] = largest(step.pressed[k, side], new)
                found = largest(found, new)
    return found


@njit
def opens_cones(robot: RobotBundle, run: RunBundle) -> bool:
    """True if the velocities step.velocity would take the angle of any ball beyond its limit."""
    step = run.step
    for k in range(step.velocity.shape[0]):
        if is_cone(robot.model, k) and _opens_cone(robot, step, k, run.inputs.time_step[0]):
            return True
    return False


@inlined
def beyond_limit(robot: RobotBundle, run: RunBundle, k: int, side: int) -> Real:
    """A T, more than 0 where step.velocity would violate a side of dof k's limits, except that of a ball's angle.

    A limit that is a spring also pushes where the step starts beyond it, regardless of the step's end.
    """
    model = robot.model
    v = run.step.velocity[k]
    if side >= BACKWARD:
        return (v if side == FORWARD else -v) - model.velocity_limit[k] * (1.0 + 1e-13)
    if model.dof_coord[k] < 0:
        return real(-1.0, v)
    start = coordinate(model, robot.state.qpos, k)
    bound, sign = (model.lower[k], -1.0) if side == LOWER else (model.upper[k], 1.0)
    end = start + run.inputs.time_step[0] * v
    return beyond_bound(start, end, (bound, sign), model.limit_stiffness[k])


@inlined
def beyond_bound(start: Real, end: Real, side: tuple[float, float], stiffness: float) -> Real:
    """A T, more than 0 where a step ends beyond a bound or, if the bound is a spring, starts beyond it.

    side: the bound, and the sign of the direction that leads beyond it.
    """
    bound, sign = side
    beyond = sign * (end - bound)
    if stiffness > 0.0:
        beyond = largest(beyond, sign * (start - bound))
    return beyond - 1e-13 * max(1.0, abs(bound))


@njit
def _opens_cone(robot: RobotBundle, step: Step, k: int, h: float) -> bool:
    """True if the velocities step.velocity would take the ball's angle beyond its limit."""
    model = robot.model
    x, y, z, angle = ball_rotation(model, robot.state.qpos, k)
    v = step.velocity
    if angle > 0.0:
        end = angle + h * (x * v[k] + y * v[k + 1] + z * v[k + 2]) / angle + _widening(v, k, x, y, z, angle, h)
    else:
        end = h * math.sqrt(v[k] ** 2 + v[k + 1] ** 2 + v[k + 2] ** 2)
    return end > model.upper[k] * (1.0 + 1e-13) + 1e-13
