"""Compliance of constraints: MuJoCo's law, and linear springs and dampers.

MuJoCo's (Computation chapter, "Impedance", "Reference") is R f = -C̈ - B Ċ - K d C with C and Ċ at the step's start and
R = (1 - d) / d times the row's mobility; the file gives K, B and d as a function of C. Positions then move by the new
velocities, so that an undamped row keeps its energy. With z = h B and y = h² K d all soft rows together are stable
where 2 z + y < 4, for any masses: J M⁻¹ Jᵀ (J M⁻¹ Jᵀ + R)⁻¹ has no eigenvalue above 1. MuJoCo keeps z from growing only
where solref is a time constant. Here stiffer rows look ahead by the share g of a step, which begins at 0.6 z + y = 1
(an undamped row then has six steps in a period) and ends at implicit Euler:

    R f = -C̈ - B ((1 - g) Ċ + g Ċ⁺) - K d ((1 - g) C + g C⁺),  g = 1 - 1 / max(1, 0.6 z + y)

This is the law at the start with R, z and y divided by S = 1 + g (z + y), but for z + g y in place of z, and there
2 (z + g y) + y <= 10/3 S: stable, at any gain and step.

A linear spring is r λ = -(K C + B Ċ), λ being the force: eq. 3 of Faure, Compliant plugin (2012), for r the compliance,
K = 1 and B the damping; a spring of a stiffness and a damping for r = 1. r = 0 is a hard constraint.
"""

from __future__ import annotations

from artsim.sim.foundation.elementary import power
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real, where_greater, zero_like
from artsim.sim.foundation.records import ConstReals2, Real, Vec3
from artsim.sim.foundation.scalars import divisor, largest, least
from artsim.sim.run_data.run_records import ALPHA, BETA, NOT_CONVEX, Inputs, Rows

_LEAST, _MOST = 1e-4, 0.9999  # MuJoCo's bounds of an impedance


@njit
def impedance(solimp: ConstReals2, n: int, size: Real) -> Real:
    """Impedance d at an error of this size: from the first to the second number of row n, by a power of size over
    width."""
    start = min(max(solimp[n, 0], _LEAST), _MOST)
    end = min(max(solimp[n, 1], _LEAST), _MOST)
    one = zero_like(size) + 1.0
    if solimp[n, 2] <= 1e-15:
        return 0.5 * (start + end) * one
    y = least(size / solimp[n, 2], one)
    middle = min(max(solimp[n, 3], _LEAST), _MOST)
    exponent = max(solimp[n, 4], 1.0)
    rising, falling = power(y / middle, exponent), power((one - y) / (1.0 - middle), exponent)
    y = where_greater(y, zero_like(y) + middle, 1.0 - (1.0 - middle) * falling, middle * rising)
    return start + y * (end - start)


@inlined
def look_ahead(z: float, y: Real) -> tuple[Real, Real]:
    """g, the share of a step by which a row of z = h B and y = h² K d looks ahead, and S."""
    one = zero_like(y) + 1.0
    g = one - one / largest(one, 0.6 * z + y)
    return g, one + g * (z + y)


@inlined
def is_convex(inputs: Inputs) -> bool:
    """True in runs under the convex contact law (stepping/convex_step.py)."""
    return inputs.convex[0] != NOT_CONVEX


@inlined
def has_soft_limit(inputs: Inputs, k: int) -> bool:
    """True if the limits of dof k, or nv + tendon, are soft as in MuJoCo, in this run."""
    return inputs.limit_impedance.shape[0] > 0 and inputs.limit_impedance[k, 0] >= 0.0


@inlined
def has_soft_friction(inputs: Inputs, k: int) -> bool:
    """True if the dry friction of dof k, or nv + tendon, is soft as in MuJoCo, in this run."""
    return inputs.friction_impedance.shape[0] > 0 and inputs.friction_impedance[k, 0] >= 0.0


@inlined
def looks_ahead(inputs: Inputs, z: float, y: Real) -> tuple[Real, Real]:
    """`look_ahead`, but under the convex contact law, whose steps are explicit as MuJoCo's: g = 0."""
    g, S = look_ahead(z, y)
    zero = zero_like(y)
    return (zero, zero + 1.0) if is_convex(inputs) else (g, S)


@inlined
def softened(
    inputs: Inputs,
    h: float,
    reference: tuple[float, float],
    d: Real,
    mobility: Real,
    C: Real,
    rate: Real,
    drift: Real,
) -> tuple[Real, Real]:
    """Bias and cfm of a row that is soft as in MuJoCo; reference = (K, B), rate = Ċ, drift = C̈ at u̇ = 0.

    Ċ⁺ = J v⁺ + h drift, C⁺ = C + h J v⁺ + ½ h² drift. The convex contact law leaves out drift, as MuJoCo does but for
    loops (loop_rows.py).
    """
    K, B = reference
    z, y = h * B, h * h * K * d
    g, S = looks_ahead(inputs, z, y)
    drift = zero_like(rate) if is_convex(inputs) else drift
    bias = (y / h * C + (z - g * z - 1.0) * rate + (1.0 + g * (z + 0.5 * y)) * h * drift) / S
    return bias, mobility * (1.0 - d) / (divisor(d) * S)


@inlined
def sprung(
    inputs: Inputs,
    reference: tuple[float, float],
    r: Real,
    mobility: Real,
    C: Real,
    speed: Real,
    drift: Real,
    curving: float,
) -> Vec3:
    """Rate, bias and cfm of a row that is a linear spring and damper, hard for r = 0; reference = (K, B), speed = Ċ,
    drift = C̈ at zero acceleration, mobility: see `joint_like`.

    Where weights of the scheme are given, Faure, eq. 4 to 14: r λ = -(K C + B Ċ) as the mean of α of its value at the
    step's end and 1 - α of that at its start, where C⁺ = C + h Ċ + h β J Δv + curving h² drift and Ċ⁺ = Ċ + J Δv + h
    drift, which eq. 9 and 10 leave out. With α = β = 1 this is an implicit spring, k_p = K / r and k_d = B / r (notes
    on mimic joints, eq. 22 to 29): K = μ², B = 2 ζ μ for a natural frequency μ and a damping ratio ζ, and r = J M⁻¹ Jᵀ
    on the bare M.
    """
    h = inputs.time_step[0]
    alpha = inputs.scheme[ALPHA]
    if alpha < 0.0:
        return joint_like(h, reference, r, mobility, C, speed, drift, curving)
    K, B = reference
    gain = alpha * (h * inputs.scheme[BETA] * K + B)
    rate = K / gain
    now = (B + alpha * h * K) / gain - 1.0
    bends = h * (alpha * (curving * h * K + B) / gain)
    return real(rate, C), rate * C + now * speed + bends * drift, r / (h * gain)


@inlined
def joint_like(
    h: float, reference: tuple[float, float], r: Real, mobility: Real, C: Real, speed: Real, drift: Real, curving: float
) -> Vec3:
    """Rate, bias and cfm of a row that is a linear spring and damper with the weights of joints' springs
    (equipment/actuation.py): r λ = -(K (C + h (a Ċ⁺ - b Ċ)) + B Ċ⁺).

    The frequency of the spring is that of the row's `mobility`, J M⁻¹ Jᵀ or near it: hω = h √(K mobility / r).
    """
    K, B = reference
    square = h * h * K * mobility
    s = r / divisor(largest(square, zero_like(square) + r))
    gain = h * K * (1.0 - 0.75 * s) + B
    rate = K / gain
    bends = h * ((h * K * (curving * (1.0 - s) + 0.25 * s) + B) / gain)
    return rate, rate * C - 0.25 * h * rate * s * speed + bends * drift, r / (h * gain)


@inlined
def behind(inputs: Inputs) -> float:
    """h (1 - β): the time for which positions follow the velocities at the start of the step.

    Hard rows without a force law close C + h (1 - β) Ċ at their rate. In eq. 14 this is c = 0, α = 1 and d = 1 / rate -
    h β, for which C decays by 1 - h rate per step for any β; with d = 0, Ċ would be multiplied by 1 - 1 / β.
    """
    return inputs.time_step[0] * (1.0 - inputs.scheme[BETA])


@inlined
def slowest(h: float, B: float, most: float) -> float:
    """Factor by which an explicit reference is slowed where the time step is too long."""
    return 1.0 / max(h * B * min(max(most, _LEAST), _MOST), 1.0)


@njit
def reference_at(solref: ConstReals2, n: int, most: float, h: float) -> tuple[float, float]:
    """K [1/s²] and B [1/s] of row n of solref (…, 2); most: of solimp. Times are at least two steps (MuJoCo, Modeling
    chapter, Solver parameters).
    """
    most = min(max(most, _LEAST), _MOST)
    time, ratio = solref[n, 0], solref[n, 1]
    if time > 0.0:
        time = max(time, 2.0 * h)
        return 1.0 / (most * most * time * time * ratio * ratio), 2.0 / (most * time)
    return -time / (most * most), -ratio / most


@inlined
def yield_at_bound(
    inputs: Inputs, rows: Rows, n: int, k: int, mobility: Real, gap: Real, rate: Real, drift: Real
) -> None:
    """Make row n that of a soft limit of dof k, or nv + tendon: it pushes the gap, which opens at `rate`, where it is
    smaller than the margin at the step's start, in both widths."""
    gap = gap - inputs.limit_margin[k]
    zero = zero_like(gap)
    d = impedance(inputs.limit_impedance, k, largest(-gap, zero))
    h = inputs.time_step[0]
    reference = reference_at(inputs.limit_reference, k, inputs.limit_impedance[k, 1], h)
    rows.bias[n], rows.cfm[n] = softened(inputs, h, reference, d, mobility, gap, rate, drift)
    rows.error[n] = rows.rate[n] = zero
    rows.lower[n] = zero
    rows.upper[n] = where_greater(-gap, zero, rows.upper[n], zero)


@inlined
def yield_with_friction(inputs: Inputs, rows: Rows, n: int, k: int, mobility: Real, rate: Real, drift: Real) -> None:
    """Make row n that of the soft dry friction of dof k, or nv + tendon, in both widths."""
    h, zero = inputs.time_step[0], zero_like(rate)
    reference = reference_at(inputs.friction_reference, k, inputs.friction_impedance[k, 1], h)
    d = impedance(inputs.friction_impedance, k, zero)
    rows.bias[n], rows.cfm[n] = softened(inputs, h, reference, d, mobility, zero, rate, drift)


@inlined
def safe_reference(h: float, K: float, B: float, time: float) -> tuple[float, float]:
    """K and B of a reference; where a time constant gives them, it is at least two steps: MuJoCo's refsafe."""
    slower = 1.0 / max(1.0, 2.0 * h / time) if time > 0.0 else 1.0
    return slower * slower * K, slower * B
