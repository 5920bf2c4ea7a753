"""Compliance of constraints: linear springs and dampers, and that of MJCF files.

A linear one is r λ = -(K C + B Ċ), λ being the force: eq. 3 of Faure, Compliant plugin (2012), for r the compliance,
K = 1 and B the damping; a spring of a stiffness and a damping for r = 1. r = 0 is a hard constraint.

MuJoCo's (Computation chapter, "Impedance", "Reference") is R f = -C̈ - B Ċ - K d C, with R = (1 - d) / d times the row's
mobility; the file gives K, B and how d grows with C.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.elementary import power
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real, where_greater, zero_like
from artsim.sim.foundation.scalars import least
from artsim.sim.run_data.run_records import ALPHA, BETA

_LEAST, _MOST = 1e-4, 0.9999  # MuJoCo's bounds of an impedance


@inlined
def impedance_in_lanes(solimp: Any, n: Any, size: Any) -> Any:
    """As `impedance`, for a T and a whole exponent."""
    start = min(max(solimp[n, 0], _LEAST), _MOST)
    end = min(max(solimp[n, 1], _LEAST), _MOST)
    one = zero_like(size) + 1.0
    if solimp[n, 2] <= 1e-15:
        return 0.5 * (start + end) * one
    y = least(size / solimp[n, 2], one)
    middle = min(max(solimp[n, 3], _LEAST), _MOST)
    below, above = y / middle, (one - y) / (1.0 - middle)
    rising, falling = one, one
    for _ in range(int(max(solimp[n, 4], 1.0))):
        rising, falling = rising * below, falling * above
    y = where_greater(y, zero_like(y) + middle, 1.0 - (1.0 - middle) * falling, middle * rising)
    return start + y * (end - start)


@njit
def impedance(solimp: Any, n: Any, size: Any) -> Any:
    """Impedance d at an error of this size: from the first to the second number of row n, by a power of size over
    width."""
    start = min(max(solimp[n, 0], _LEAST), _MOST)
    end = min(max(solimp[n, 1], _LEAST), _MOST)
    if solimp[n, 2] <= 1e-15:
        return 0.5 * (start + end)
    y = min(size / solimp[n, 2], 1.0)
    middle = min(max(solimp[n, 3], _LEAST), _MOST)
    exponent = max(solimp[n, 4], 1.0)
    if y <= middle:
        y = middle * power(y / middle, exponent)
    else:
        y = 1.0 - (1.0 - middle) * power((1.0 - y) / (1.0 - middle), exponent)
    return start + y * (end - start)


@inlined
def softened(h: Any, K: Any, B: Any, d: Any, mobility: Any, C: Any, rate: Any, drift: Any) -> Any:
    """Bias and cfm of a soft row with its reference at the end of the step; rate = J v, drift = C̈ at u̇ = 0."""
    b = h * B
    k = h * d * K
    scale = 1.0 / (1.0 + b + h * k)
    bias = (k * C + (1.0 + b + 0.5 * h * k) * h * drift - rate) * scale
    return bias, mobility * (1.0 - d) / d * scale


@inlined
def sprung(inputs: Any, K: Any, B: Any, r: Any, C: Any, speed: Any, drift: Any, curving: Any) -> Any:
    """Rate, bias and cfm of a row that is a linear spring and damper, hard for r = 0.

    Faure, eq. 4 to 14: r λ = -(K C + B Ċ) as the mean of α of its value at the step's end and 1 - α of that at its
    start, where C⁺ = C + h Ċ + h β J Δv + curving h² drift and Ċ⁺ = Ċ + J Δv + h drift; speed = Ċ, drift = C̈ at zero
    acceleration, which eq. 9 and 10 leave out. With α = β = 1 this is an implicit spring, k_p = K / r and k_d = B / r
    (notes on mimic joints, eq. 22 to 29): K = μ², B = 2 ζ μ for a natural frequency μ and a damping ratio ζ, and
    r = J M⁻¹ Jᵀ on the bare M.
    """
    h = inputs.time_step[0]
    alpha = inputs.scheme[ALPHA]
    gain = alpha * (h * inputs.scheme[BETA] * K + B)
    rate = K / gain
    now = (B + alpha * h * K) / gain - 1.0
    bends = h * (alpha * (curving * h * K + B) / gain)
    return real(rate, C), rate * C + now * speed + bends * drift, r / (h * gain)


@inlined
def behind(inputs: Any) -> Any:
    """h (1 - β): the time for which positions follow the velocities at the start of the step.

    Hard rows without a force law close C + h (1 - β) Ċ at their rate. In eq. 14 this is c = 0, α = 1 and d = 1 / rate -
    h β, for which C decays by 1 - h rate per step whatever β; with d = 0, Ċ would be multiplied by 1 - 1 / β.
    """
    return inputs.time_step[0] * (1.0 - inputs.scheme[BETA])


@inlined
def slowest(h: Any, B: Any, most: Any) -> Any:
    """Factor by which an explicit reference is slowed where the time step is too long: MuJoCo's refsafe."""
    return 1.0 / max(h * B * min(max(most, _LEAST), _MOST), 1.0)
