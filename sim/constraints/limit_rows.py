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

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import has_soft_limit, joint_like, yield_at_bound
from artsim.sim.constraints.kinds import AT_ANGLE, AT_LOWER, AT_UPPER, POSITION_ROW, VELOCITY_ROW
from artsim.sim.constraints.row import add_entry, add_row, mobility_of_row, one_sided, row_rate, single_row
from artsim.sim.constraints.turn_limit_rows import opens_turn, turn_limit_rows
from artsim.sim.equipment.actuation import coordinate
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    any_positive,
    lane_count,
    lane_get,
    lane_of,
    real,
    where_greater,
    with_lane,
    zero_like,
)
from artsim.sim.foundation.quaternions import rotation_vector
from artsim.sim.foundation.records import Lanes1, Real, Vec3, Vec4
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.sincos import sincos
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import PLACES, Inputs, Rows, RunBundle

_SQUEEZE = 5.0  # [rad/s] largest rate at which a ball's angle makes room for spin across its axis


LOWER, UPPER, BACKWARD, FORWARD = range(4)  # the sides of a dof's limits: of position, of velocity


@njit
def limit_rows(robot: RobotBundle, run: RunBundle, rows: Rows, k: int) -> None:
    """Append the rows of dof k's limits of position and velocity that this step calls for: those of a ball's angle,
    swing and twist, if k is its first dof, and those of sides that press. In both widths: lanes in which a side does
    not press get no impulse from its row."""
    model, step, inputs = robot.model, run.step, run.inputs
    if is_cone(model, k):
        _cone_row(robot, inputs, rows, k)
    if model.dof_turn[k] >= 0:
        turn_limit_rows(robot, inputs, rows, k)
    for side in (LOWER, UPPER, BACKWARD, FORWARD):
        if is_limited(model, k, side):
            step.pressed[k, side] = pressing(robot, run, rows, k, step.pressed[k, side])
            if any_positive(step.pressed[k, side]):
                n = limit_row(robot, inputs, rows, k, side)
                zero = zero_like(rows.upper[n])
                rows.upper[n] = where_greater(step.pressed[k, side], zero, rows.upper[n], zero)
            else:
                rows.number[PLACES] += 1


@inlined
def pressing(robot: RobotBundle, run: RunBundle, rows: Rows, k: int, pressed: Real) -> Real:
    """1 where a side of a limit of dof k, or nv + tendon, whose row has the next place, has a row in this step: it is
    `pressed`, or pressed in the last step, but for soft limits, which ask for the state alone. In the sweeping solvers
    all have."""
    zero = zero_like(pressed)
    if SWEEPING[run.inputs.solver[0]]:
        return zero + 1.0
    if has_soft_limit(run.inputs, k):
        return pressed
    return where_greater(robot.state.impulse[rows.number[PLACES]], zero, zero + 1.0, pressed)


@njit
def begin_limits(robot: RobotBundle, run: RunBundle, chosen: Real) -> None:
    """Press those sides of limits of positions that the state violates, and no others, where `chosen` is 1; in both
    widths."""
    model, pressed, zero = robot.model, run.step.pressed, zero_like(chosen)
    for k in range(pressed.shape[0]):
        for side in range(pressed.shape[1]):
            pressed[k, side] = where_greater(chosen, zero, zero, pressed[k, side])
    for k in range(model.dof_body.shape[0]):
        for side in (LOWER, UPPER):
            if is_limited(model, k, side):
                place = coordinate(model, robot.state.qpos, k)
                beyond = zero + model.lower[k] - place if side == LOWER else place - model.upper[k]
                if has_soft_limit(run.inputs, k):
                    beyond = beyond + run.inputs.limit_margin[k]
                pressed[k, side] = where_greater(beyond, zero, largest(chosen, pressed[k, side]), pressed[k, side])


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
    if has_soft_limit(inputs, k):
        mobility = like(inputs.row_mobility[k], data)
        yield_at_bound(inputs, rows, n, k, mobility, gap, sign * robot.state.qvel[k], sign * data.drift[k])
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
def has_ball_limits(model: Model) -> bool:
    """True if a ball's angle, swing or twist is limited."""
    if model.turn_range.shape[0] > 0:
        return True
    for k in range(model.dof_body.shape[0]):
        if is_cone(model, k):
            return True
    return False


@njit
def ball_rotation(model: Model, q: Lanes1, k: int, lane: int) -> Vec4:
    """Rotation vector of the ball whose first dof is k, and its length: the angle, at most π; in one lane."""
    n = model.body_coord[model.dof_body[k]]
    x, y, z = rotation_vector(
        lane_get(q, n, lane), lane_get(q, n + 1, lane), lane_get(q, n + 2, lane), lane_get(q, n + 3, lane)
    )
    return x, y, z, math.sqrt(x * x + y * y + z * z)


@njit
def _cone_row(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int) -> None:
    """Append the row of a ball's angle: J = -axis, which has the same components in the ball's and the parent's frame.
    At zero angle there is no axis, and the row has no effect. In both widths."""
    model, state, data = robot.model, robot.state, robot.data
    h = inputs.time_step[0]
    n = add_row(rows, POSITION_ROW, k)
    rows.part[n] = AT_ANGLE
    zero = like(0.0, data)
    angle, squeeze, x, y, z = zero, zero, zero, zero, zero
    for lane in range(lane_count(state.qpos)):
        a, b, c, size = ball_rotation(model, state.qpos, k, lane)
        angle = with_lane(angle, lane, size)
        if size > 0.0:
            x, y, z = with_lane(x, lane, -a / size), with_lane(y, lane, -b / size), with_lane(z, lane, -c / size)
        widening = _widening(state.qvel, k, lane, (a, b, c), size, h)
        squeeze = with_lane(squeeze, lane, min(widening / h, _SQUEEZE))
    if any_positive(angle):
        add_entry(model, data, rows, k, x)
        add_entry(model, data, rows, k + 1, y)
        add_entry(model, data, rows, k + 2, z)
    if has_soft_limit(inputs, k):
        rate = row_rate(rows, n, state.qvel)
        yield_at_bound(inputs, rows, n, k, like(inputs.row_mobility[k], data), model.upper[k] - angle, rate, zero)
        return
    one_sided(rows, inputs, n, model.upper[k] - angle)
    rows.bias[n] -= squeeze


@njit
def _widening(v: Lanes1, k: int, lane: int, turn: Vec3, angle: float, h: float) -> float:
    """Increase of a ball's angle within a step by the velocity across its axis, in one lane; turn: its rotation
    vector."""
    if angle <= 0.0:
        return 0.0
    x, y, z = lane_get(v, k, lane), lane_get(v, k + 1, lane), lane_get(v, k + 2, lane)
    along = (turn[0] * x + turn[1] * y + turn[2] * z) / angle
    across = x**2 + y**2 + z**2 - along * along
    s, c = sincos(0.5 * angle)
    return min(0.25 * h * h * across * c / s, h * math.sqrt(max(across, 0.0)))


@njit
def presses(robot: RobotBundle, run: RunBundle, chosen: Real) -> Real:
    """1 where `chosen` is 1 and the velocities step.velocity would violate a side of a limit that has no row, and now
    gets one; in both widths.
    """
    step = run.step
    zero = zero_like(chosen)
    found = zero
    for k in range(step.velocity.shape[0]):
        for side in (LOWER, UPPER, BACKWARD, FORWARD):
            if is_limited(robot.model, k, side):
                new = where_greater(beyond_limit(robot, run, k, side), zero, chosen, zero)
                new = where_greater(step.pressed[k, side], zero, zero, new)
                step.pressed[k, side] = largest(step.pressed[k, side], new)
                found = largest(found, new)
    return found


@njit
def turns_too_far(robot: RobotBundle, run: RunBundle, chosen: Real) -> Real:
    """1 where `chosen` is 1 and the velocities step.velocity would take the angle, the swing or the twist of a ball
    beyond a limit; in both widths."""
    model, found = robot.model, zero_like(chosen)
    if not any_positive(chosen):
        return found
    for k in range(run.step.velocity.shape[0]):
        if is_cone(model, k) or model.dof_turn[k] >= 0:
            for lane in range(lane_count(robot.state.qpos)):
                if lane_of(chosen, lane) > 0.0 and _turns_too_far(robot, run, k, lane):
                    found = with_lane(found, lane, 1.0)
    return found


@njit
def _turns_too_far(robot: RobotBundle, run: RunBundle, k: int, lane: int) -> bool:
    """True if the ball whose first dof is k turns too far in the lane."""
    if is_cone(robot.model, k) and _opens_cone(robot, run, k, lane):
        return True
    return robot.model.dof_turn[k] >= 0 and opens_turn(robot, run, k, lane)


@inlined
def beyond_limit(robot: RobotBundle, run: RunBundle, k: int, side: int) -> Real:
    """A T, more than 0 where step.velocity would violate a side of dof k's limits, except that of a ball's angle.

    A limit that is a spring also pushes where the step starts beyond it, regardless of the step's end; one that is soft
    as in MuJoCo there alone.
    """
    model = robot.model
    v = run.step.velocity[k]
    if side >= BACKWARD:
        return (v if side == FORWARD else -v) - model.velocity_limit[k] * (1.0 + 1e-13)
    if model.dof_coord[k] < 0:
        return real(-1.0, v)
    start = coordinate(model, robot.state.qpos, k)
    bound, sign = (model.lower[k], -1.0) if side == LOWER else (model.upper[k], 1.0)
    if has_soft_limit(run.inputs, k):
        return sign * (start - bound) + run.inputs.limit_margin[k]
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
def _opens_cone(robot: RobotBundle, run: RunBundle, k: int, lane: int) -> bool:
    """True if the velocities step.velocity would take the ball's angle beyond its limit, or it is beyond a soft one."""
    model, v, h = robot.model, run.step.velocity, run.inputs.time_step[0]
    x, y, z, angle = ball_rotation(model, robot.state.qpos, k, lane)
    a, b, c = lane_get(v, k, lane), lane_get(v, k + 1, lane), lane_get(v, k + 2, lane)
    if has_soft_limit(run.inputs, k):
        return angle + run.inputs.limit_margin[k] > model.upper[k]
    if angle > 0.0:
        end = angle + h * (x * a + y * b + z * c) / angle + _widening(v, k, lane, (x, y, z), angle, h)
    else:
        end = h * math.sqrt(a**2 + b**2 + c**2)
    return end > model.upper[k] * (1.0 + 1e-13) + 1e-13
