"""Angles as files and users give them, without numpy."""

from __future__ import annotations

import math


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """(w, x, y, z) of Rz(yaw) Ry(pitch) Rx(roll), angles in rad: rotations about the parent's fixed axes x, y, z."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


DEGREES = "deg"


def angle_or_number(text: str) -> float:
    """A number, in rad if it has the suffix deg. Raises ValueError."""
    word = text.strip()
    return math.radians(float(word.removesuffix(DEGREES))) if word.endswith(DEGREES) else float(word)
