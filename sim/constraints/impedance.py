"""Compliance of constraints in MJCF files: R f = -C̈ - B Ċ - K d C, with R = (1 - d) / d times the row's mobility.

MuJoCo's constraint model (Computation chapter, "Impedance", "Reference"); the file gives K, B and how d grows with C.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.foundation.elementary import power
from artsim.sim.foundation.jit import inlined, njit

_LEAST, _MOST = 1e-4, 0.9999  # MuJoCo's bounds of an impedance


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
def sprung(h: Any, K: Any, B: Any, r: Any, C: Any, drift: Any) -> Any:
    """Rate, bias and cfm of a row that is an implicit spring, k_p = K / r and k_d = B / r (notes on mimic joints, eq.
    22 to 29).

    K = μ², B = 2 ζ μ for a natural frequency μ and a damping ratio ζ; r = J M⁻¹ Jᵀ on the bare M.
    """
    rate = K / (h * K + B)
    return rate, rate * C + h * drift, r / (h * (h * K + B))


@inlined
def slowest(h: Any, B: Any, most: Any) -> Any:
    """Factor by which an explicit reference is slowed where the time step is too long: MuJoCo's refsafe."""
    return 1.0 / max(h * B * min(max(most, _LEAST), _MOST), 1.0)
