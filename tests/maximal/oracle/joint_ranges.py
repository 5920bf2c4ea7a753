"""Ranges of ball and free joints as rows: of a ball's angle (MJCF), of swing and twist (PhysX's cone).

Every range is one function of the relative rotation, the angle that is left. Its gradient is a difference quotient of
it and not the formula that the step in joint coordinates uses (constraints/turn_limit_rows.py), which it thus checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from artsim.sim.articulation.model import (
    FLATNESS_Y,
    FLATNESS_Z,
    SWING_Y,
    SWING_Z,
    TWIST_LOWER,
    TWIST_UPPER,
    Model,
)
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.lines import LIMIT, BodyRows, Lines, make_summed_rows
from artsim.sim.maximal.scheme import Scheme

AngleLeft = Callable[[Real], float]  # of a quaternion (4,): the angle left to a limit [rad]
_RECOVERY = 0.1  # [s] in which an initial violation is removed, as in constraints/row.py
_SQUEEZE = 5.0  # [rad/s] largest rate that is foreseen for the angle's curvature, as in turn_limit_rows.py
_STEP = 1e-6  # [rad] of the difference quotient
_UPSIDE_DOWN = 7.6e-5  # w² + x² at a swing of 179 degrees, where the twist is not defined
_YIELD = 1e-12


def range_rows(scheme: Scheme, model: Model, lines: Lines, qpos: Real, dof_line: Array) -> BodyRows:
    """The rows of all ranges of rotations."""
    line, factor, b = [], [], []
    for k, frame, left in _ranges(model):
        n = int(model.body_coord[model.dof_body[k] + 1]) - 4
        q = np.concatenate([qpos[n : n + 1], frame.T @ qpos[n + 1 : n + 4]])
        now = left(q)
        slopes = np.array([(left(_turned(q, r)) - left(_turned(q, -r))) / (2.0 * _STEP) for r in _STEP * np.eye(3)])
        if not (math.isfinite(now) and np.all(np.isfinite(slopes)) and np.linalg.norm(slopes) > 0.5):
            continue  # an angle without gradient: a twist upside down, a swing or an angle of 0
        numbers = dof_line[k : k + 3]
        spin = frame.T @ lines.rate[numbers]
        rate = float(slopes @ spin)
        bend = _nearest(left(_turned(q, scheme.h * spin)) - now - scheme.h * rate) / scheme.h
        wanted = (now / scheme.h if now >= 0.0 else now / max(scheme.h, _RECOVERY)) + rate
        line.append(numbers)
        factor.append(frame @ slopes)
        b.append(-(wanted + min(max(bend, -_SQUEEZE), _SQUEEZE)) / scheme.ahead)
    shape = (-1, 3)
    numbers = np.array(line, np.int64).reshape(shape)
    return make_summed_rows(LIMIT, numbers, np.reshape(factor, shape), np.array(b), lower=0.0, yielding=_YIELD)


def _ranges(model: Model) -> Iterator[tuple[int, Real, AngleLeft]]:
    """For each range, the first rotation of its joint, the frame in which the angle is taken, and the angle left."""
    for k in range(len(model.dof_body)):
        if model.dof_coord[k] < 0 and model.upper[k] < math.inf:
            yield k, np.eye(3), _of_angle(float(model.upper[k]))
        t = int(model.dof_turn[k])
        if t >= 0:
            bounds = model.turn_range[t]
            for angle in _twists(bounds):
                yield k, model.turn_frame[t], angle
            if bounds[SWING_Y] < math.inf:
                yield k, model.turn_frame[t], _of_swing(bounds)


def _of_angle(most: float) -> AngleLeft:
    return lambda q: most - 2.0 * math.atan2(float(np.linalg.norm(q[1:])), abs(float(q[0])))


def _twists(bounds: Real) -> list[AngleLeft]:
    """The twist's two limits, where it has any; 2 atan(x / w) by the turn nearest to the middle of its range."""
    lower, upper = float(bounds[TWIST_LOWER]), float(bounds[TWIST_UPPER])
    if not math.isfinite(upper):
        return []

    def twist(q: Real) -> float:
        if q[0] ** 2 + q[1] ** 2 < _UPSIDE_DOWN:
            return math.nan
        middle = 0.5 * (lower + upper)
        return middle + _nearest(2.0 * math.atan2(float(q[1]), float(q[0])) - middle)

    return [lambda q: twist(q) - lower, lambda q: upper - twist(q)]


def _of_swing(bounds: Real) -> AngleLeft:
    """The angle that the cone, an ellipse in the tangents of quarters of angles, leaves to the swing in its present
    direction."""

    def left(q: Real) -> float:
        w, x, y, z = (float(c) for c in q)
        swing = 2.0 * math.atan2(math.hypot(y, z), math.hypot(w, x))
        twist = math.atan2(x, w)  # half of it; q = q_swing q_twist turns the swing's axis back by it
        up = math.cos(twist) * y - math.sin(twist) * z
        down = math.cos(twist) * z + math.sin(twist) * y
        square = (up * up * bounds[FLATNESS_Y] + down * down * bounds[FLATNESS_Z]) / max(up * up + down * down, 1e-300)
        if square == 0.0:
            return float(min(bounds[SWING_Y], bounds[SWING_Z]))
        return 4.0 * math.atan(1.0 / math.sqrt(square)) - swing

    return left


def _turned(q: Real, r: Real) -> Real:
    """q ⊗ exp(r) of a rotation vector r in the turned frame's axes [rad]."""
    half = 0.5 * float(np.linalg.norm(r))
    c, v = math.cos(half), 0.5 * np.sinc(half / np.pi) * r
    return np.concatenate([[q[0] * c - q[1:] @ v], q[0] * v + c * q[1:] + np.cross(q[1:], v)])


def _nearest(angle: float) -> float:
    return angle - 2.0 * math.pi * round(angle / (2.0 * math.pi)) if math.isfinite(angle) else angle
