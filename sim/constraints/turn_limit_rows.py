"""Builds unilateral rows for the limits of swing and twist of ball and free joints.

A row's J is the gradient of the angle that is left to the limit. That angle is curved in the velocity: its change in
the step by the velocity before the step, less h J v, is added to the bias, so that a joint sliding along its cone stays
on the cone.

The swing is bounded by PhysX's cone, an ellipse in the tangents of a quarter of the angles about y and z:
tan²(φ_y / 4) / tan²(Y / 4) + tan²(φ_z / 4) / tan²(Z / 4) ≤ 1. There is no row where an angle has no gradient: the
twist's beyond a swing of 179 degrees, the swing's at none.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import (
    FLATNESS_Y,
    FLATNESS_Z,
    SWING_Y,
    SWING_Z,
    TWIST_LOWER,
    TWIST_UPPER,
    Model,
)
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.articulation.swing_twist import (
    UPSIDE_DOWN,
    nearest_turn,
    swing_angle,
    swing_axis,
    turned,
    twist_angle,
    twist_rates,
)
from artsim.sim.constraints.kinds import AT_TWIST, POSITION_ROW
from artsim.sim.constraints.row import add_entry, add_row, one_sided, within_reach
from artsim.sim.foundation.elementary import arctangent
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, where_greater, with_lane
from artsim.sim.foundation.records import ConstReals1, Lanes1, Reals1, Vec3, Vec4
from artsim.sim.run_data.run_records import PLACES, Inputs, Rows, RunBundle

_SQUEEZE = 5.0  # [rad/s] largest rate that is foreseen for the curvature that the rows do not see
_SLACK = 1e-13  # [rad] beyond a limit that is rounding

TWISTED_BACK, TWISTED_ON, SWUNG = range(3)  # the rows of a joint


@njit
def turn_limit_rows(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int) -> None:
    """Append the rows of the limits of swing and twist of the joint whose first rotation is dof k."""
    t = robot.model.dof_turn[k]
    for side in range(3):
        if is_turn_limited(robot.model, t, side):
            _turn_limit_row(robot, inputs, rows, k, side)


@inlined
def is_turn_limited(model: Model, t: int, side: int) -> bool:
    """True if joint t, among those with limits of swing or twist, has a limit on this side."""
    return abs(model.turn_range[t, TWIST_UPPER if side != SWUNG else SWING_Y]) < math.inf


@njit
def _turn_limit_row(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int, side: int) -> None:
    """Append the row of a side of the limits, in both widths. Lanes where its angle has no gradient get no impulse from
    it; there is no row where none has."""
    model, data = robot.model, robot.data
    t = model.dof_turn[k]
    zero = like(0.0, data)
    left, a, b, c, squeeze, defined = zero, zero, zero, zero, zero, zero
    for lane in range(lane_count(robot.state.qpos)):
        rotation = _rotation(model, robot.state.qpos, k, lane)
        angle, exists, gradient = angle_left(model, t, side, rotation)
        if exists:
            defined, left = with_lane(defined, lane, 1.0), with_lane(left, lane, angle)
            a, b, c = with_lane(a, lane, gradient[0]), with_lane(b, lane, gradient[1]), with_lane(c, lane, gradient[2])
            bend = _bend(robot, inputs, k, side, lane, rotation, angle, gradient)
            squeeze = with_lane(squeeze, lane, bend)
    if not any_positive(defined):
        rows.number[PLACES] += 1
        return
    n = add_row(rows, POSITION_ROW, k)
    rows.part[n] = AT_TWIST + side
    frame = model.turn_frame[t]
    for axis in range(3):
        add_entry(model, data, rows, k + axis, frame[axis, 0] * a + frame[axis, 1] * b + frame[axis, 2] * c)
    one_sided(rows, inputs, n, left)
    if any_positive(-left):  # in the sweeping solvers too, where a start far beyond would make a fast top of the body
        rows.rate[n] = where_greater(-left, zero, within_reach(rows, n, rows.rate[n]), rows.rate[n])
        rows.bias[n] = where_greater(-left, zero, rows.rate[n] * left, rows.bias[n])
    rows.bias[n] += squeeze
    rows.upper[n] = where_greater(defined, zero, rows.upper[n], zero)


@njit
def _bend(
    robot: RobotBundle, inputs: Inputs, k: int, side: int, lane: int, rotation: Vec4, left: float, gradient: Vec3
) -> float:
    """The rate at which the angle left changes within the step beside its gradient, in one lane [rad/s]."""
    t, h, v = robot.model.dof_turn[k], inputs.time_step[0], robot.state.qvel
    x, y, z = _in_frame(robot.model, t, lane_get(v, k, lane), lane_get(v, k + 1, lane), lane_get(v, k + 2, lane))
    w1, x1, y1, z1 = rotation
    end, still, _ = angle_left(robot.model, t, side, turned(w1, x1, y1, z1, h * x, h * y, h * z))
    if not still:
        return 0.0
    bend = end - left - h * (gradient[0] * x + gradient[1] * y + gradient[2] * z)
    if side != SWUNG:
        bend = nearest_turn(bend, 0.0)  # a twist may pass the middle of the range beyond its limits
    return min(max(bend / h, -_SQUEEZE), _SQUEEZE)


@njit
def angle_left(model: Model, t: int, side: int, rotation: Vec4) -> tuple[float, bool, Vec3]:
    """The angle left to a limit of joint t [rad], negative beyond the limit; True if this angle has a gradient; its
    gradient by the angular velocity. Gradient and rotation (w, x, y, z) are in the frame of swing and twist."""
    w, x, y, z = rotation
    bounds = model.turn_range[t]
    if side == SWUNG:
        return _swing_left(bounds, w, x, y, z)
    if w * w + x * x < UPSIDE_DOWN:
        return 0.0, False, (0.0, 0.0, 0.0)
    twist = nearest_turn(twist_angle(w, x), 0.5 * (bounds[TWIST_LOWER] + bounds[TWIST_UPPER]))
    across, over = twist_rates(w, x, y, z)
    if side == TWISTED_BACK:
        return twist - bounds[TWIST_LOWER], True, (1.0, across, over)
    return bounds[TWIST_UPPER] - twist, True, (-1.0, -across, -over)


@njit
def _swing_left(bounds: ConstReals1, w: float, x: float, y: float, z: float) -> tuple[float, bool, Vec3]:
    """The angle left to the limit of swing, its having a gradient, and the gradient, as `angle_left`. Within half the
    smaller angle of the cone's middle the bound is that of the present direction, which changes there at any rate."""
    least = min(bounds[SWING_Y], bounds[SWING_Z])
    swing = swing_angle(w, x, y, z)
    up, down, a, b = swing_axis(w, x, y, z)
    if a == 0.0 and b == 0.0:
        return least, False, (0.0, 0.0, 0.0)
    bound, slope = _edge(bounds, up, down)
    around = 2.0 * math.sqrt((y * y + z * z) * (w * w + x * x))  # the sine of the swing
    turning = slope / around if swing > 0.5 * least and around > 1e-3 else 0.0
    return bound - swing, True, (0.0, -a - turning * b, -b + turning * a)


@njit
def _edge(bounds: ConstReals1, y: float, z: float) -> tuple[float, float]:
    """The largest swing about the unit vector (0, y, z), and its derivative by the direction's angle [rad]."""
    if bounds[SWING_Y] == bounds[SWING_Z]:
        return bounds[SWING_Y], 0.0
    square = y * y * bounds[FLATNESS_Y] + z * z * bounds[FLATNESS_Z]
    tangent = 1.0 / math.sqrt(square)  # of a quarter of the swing
    slope = -4.0 * tangent / (square * (1.0 + tangent * tangent)) * y * z * (bounds[FLATNESS_Z] - bounds[FLATNESS_Y])
    return 4.0 * arctangent(tangent, 1.0), slope


@inlined
def _rotation(model: Model, q: Lanes1, k: int, lane: int) -> Vec4:
    """The rotation of the joint whose first rotation is dof k, in its frame of swing and twist, in one lane."""
    n = model.body_coord[model.dof_body[k] + 1] - 4
    t = model.dof_turn[k]
    x, y, z = _in_frame(model, t, lane_get(q, n + 1, lane), lane_get(q, n + 2, lane), lane_get(q, n + 3, lane))
    return lane_get(q, n, lane), x, y, z


@inlined
def _in_frame(model: Model, t: int, x: float, y: float, z: float) -> Vec3:
    """A vector of the joint's frame in the frame of swing and twist."""
    F = model.turn_frame[t]
    return (
        F[0, 0] * x + F[1, 0] * y + F[2, 0] * z,
        F[0, 1] * x + F[1, 1] * y + F[2, 1] * z,
        F[0, 2] * x + F[1, 2] * y + F[2, 2] * z,
    )


@njit
def opens_turn(robot: RobotBundle, run: RunBundle, k: int, lane: int) -> bool:
    """True if the velocities step.velocity would violate a limit of swing or twist of the joint whose first rotation is
    dof k, in one lane."""
    model, v, h = robot.model, run.step.velocity, run.inputs.time_step[0]
    t = model.dof_turn[k]
    x, y, z = _in_frame(model, t, h * lane_get(v, k, lane), h * lane_get(v, k + 1, lane), h * lane_get(v, k + 2, lane))
    w1, x1, y1, z1 = _rotation(model, robot.state.qpos, k, lane)
    return _worst(model, t, turned(w1, x1, y1, z1, x, y, z)) < -_SLACK


@njit
def is_turned_beyond(model: Model, q: Reals1, k: int, slack: float) -> bool:
    """True if coordinates q are beyond a limit of swing or twist of the joint whose first rotation is dof k by more
    than the slack [rad]."""
    return _worst(model, model.dof_turn[k], _rotation(model, q, k, 0)) < -slack


@njit
def _worst(model: Model, t: int, rotation: Vec4) -> float:
    """The least angle left to a limit of joint t [rad]."""
    worst = math.inf
    for side in range(3):
        if is_turn_limited(model, t, side):
            left, _, _ = angle_left(model, t, side, rotation)
            worst = min(worst, left)
    return worst
