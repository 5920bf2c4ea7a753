"""Swing and twist of a rotation q = q_swing q_twist and their rates: the twist is about x, the swing across x.

A rotation is a unit quaternion (w, x, y, z) of a turned frame in its parent; rates are by the angular velocity in the
turned frame's axes. The twist is not defined at a swing of π, nor the swing's direction at 0 and π. Floats only.
"""

from __future__ import annotations

import math

from artsim.sim.foundation.elementary import arctangent
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.quaternions import quaternion_along
from artsim.sim.foundation.records import Vec4

UPSIDE_DOWN = 7.6e-5  # w² + x² at a swing of 179 degrees, beyond which the twist counts as undefined
_TURN = 2.0 * math.pi


@inlined
def twist_angle(w: float, x: float) -> float:
    """The twist, within ±π [rad]."""
    return 2.0 * (arctangent(x, w) if w >= 0.0 else arctangent(-x, -w))


@inlined
def twist_rates(w: float, x: float, y: float, z: float) -> tuple[float, float]:
    """The rates of the twist by the angular velocity about y and about z; that about x is 1. Each is at most the
    tangent of half the swing; 0 where the twist is undefined."""
    square = w * w + x * x
    scale = 1.0 / square if square > UPSIDE_DOWN else 0.0
    return scale * (x * y - w * z), scale * (w * y + x * z)


@inlined
def swing_angle(w: float, x: float, y: float, z: float) -> float:
    """The swing, from 0 to π [rad]."""
    return 2.0 * arctangent(math.sqrt(y * y + z * z), math.sqrt(w * w + x * x))


@inlined
def swing_axis(w: float, x: float, y: float, z: float) -> Vec4:
    """The axis (0, y, z) of the swing, a unit vector: its components in the parent's and in the turned frame; zero
    without a swing."""
    across = math.sqrt(y * y + z * z)
    along = math.sqrt(w * w + x * x)
    scale = 1.0 / across if across > 0.0 else 0.0
    cosine = w / along if along > 0.0 else 1.0  # of half the twist
    sine = x / along if along > 0.0 else 0.0
    a, b, c, d = scale * y * cosine, scale * z * sine, scale * z * cosine, scale * y * sine
    return a - b, c + d, a + b, c - d


@inlined
def nearest_turn(angle: float, wanted: float) -> float:
    """The angle [rad], whole turns added, that is nearest to the wanted one; as it is where that is no number."""
    turns = (angle - wanted + math.pi) / _TURN
    return angle - _TURN * math.floor(turns) if abs(turns) < 1e15 else angle


@njit
def turned(w: float, x: float, y: float, z: float, r0: float, r1: float, r2: float) -> Vec4:
    """q ⊗ exp(r): the rotation vector r [rad] is in the turned frame's axes."""
    c, a, b, d = quaternion_along(r0, r1, r2)
    return (
        w * c - x * a - y * b - z * d,
        w * a + x * c + y * d - z * b,
        w * b - x * d + y * c + z * a,
        w * d + x * b - y * a + z * c,
    )
