"""Muscles: force as a function of length and velocity, and activation dynamics (MuJoCo's modeling chapter, "Muscles").

Parameters p (9): operating range (2), peak force, scale, l_min, l_max, v_max, f_pmax, f_vmax; lengths in units of the
optimum length L0. Forces pull, so they are negative.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import ConstReals1

_TINY = 1e-15  # least divisor


@inlined
def _peak_force(p: ConstReals1, acceleration: float) -> float:
    """Peak force [N]: the given one or, if that is negative, one scaled to the inertia that the muscle moves."""
    return p[2] if p[2] >= 0.0 else p[3] / max(_TINY, acceleration)


@inlined
def _optimum_length(p: ConstReals1, lower: float, upper: float) -> float:
    """Optimum length L0, from the lengths [lower, upper] that correspond to the operating range."""
    return (upper - lower) / max(_TINY, p[1] - p[0])


@njit
def length_factor(x: float, least: float, most: float) -> float:
    """Active force as a function of length: four parabolas, 0 at `least` and `most`, 1 at length 1."""
    if x < least or x > most:
        return 0.0
    a = 0.5 * (least + 1.0)
    b = 0.5 * (1.0 + most)
    if x <= a:
        y = (x - least) / max(_TINY, a - least)
        return 0.5 * y * y
    if x <= 1.0:
        y = (1.0 - x) / max(_TINY, 1.0 - a)
        return 1.0 - 0.5 * y * y
    if x <= b:
        y = (x - 1.0) / max(_TINY, b - 1.0)
        return 1.0 - 0.5 * y * y
    y = (most - x) / max(_TINY, most - b)
    return 0.5 * y * y


@njit
def velocity_factor(v: float, most: float) -> float:
    """Active force as a function of velocity: 0 up to -1 (fastest shortening), 1 at rest, `most` when lengthening."""
    y = most - 1.0
    if v <= -1.0:
        return 0.0
    if v <= 0.0:
        return (v + 1.0) * (v + 1.0)
    if v <= y:
        return most - (y - v) * (y - v) / max(_TINY, y)
    return most


@njit
def muscle_gain(
    p: ConstReals1, length: float, velocity: float, lower: float, upper: float, acceleration: float
) -> float:
    """Active force per activation [N]."""
    optimum = _optimum_length(p, lower, upper)
    x = p[0] + (length - lower) / max(_TINY, optimum)
    v = velocity / max(_TINY, optimum * p[6])
    return -_peak_force(p, acceleration) * length_factor(x, p[4], p[5]) * velocity_factor(v, p[8])


@njit
def muscle_bias(p: ConstReals1, length: float, lower: float, upper: float, acceleration: float) -> float:
    """Passive force [N]: half a parabola beyond L0, then linear."""
    x = p[0] + (length - lower) / max(_TINY, _optimum_length(p, lower, upper))
    b = 0.5 * (1.0 + p[5])
    if x <= 1.0:
        return 0.0
    peak = _peak_force(p, acceleration) * p[7]
    if x <= b:
        y = (x - 1.0) / max(_TINY, b - 1.0)
        return -peak * 0.5 * y * y
    return -peak * (0.5 + (x - b) / max(_TINY, b - 1.0))


@njit
def muscle_rate(p: ConstReals1, control: float, activation: float) -> float:
    """Rate of the activation [1/s]; p holds the time constants up and down [s] and the width of the switch between.

    Millard et al. (2013): both time constants depend on the activation. With a width the switch is a quintic step.
    """
    within = min(max(activation, 0.0), 1.0)
    rise = p[0] * (0.5 + 1.5 * within)
    fall = p[1] / (0.5 + 1.5 * within)
    excess = min(max(control, 0.0), 1.0) - activation
    if p[2] < _TINY:
        time = rise if excess > 0.0 else fall
    else:
        time = fall + (rise - fall) * _step(excess / p[2] + 0.5)
    return excess / max(_TINY, time)


@inlined
def _step(x: float) -> float:
    """Quintic step from 0 to 1 over 0 ≤ x ≤ 1 with two continuous derivatives."""
    y = min(max(x, 0.0), 1.0)
    return y * y * y * (10.0 + y * (6.0 * y - 15.0))
