"""The mixture of sweeps over a crowd: of λ after them, so combined that the least motion is left (Anderson 1965).

Motions are those of λ in a pair of sweeps, times the root of each row's mobility; all vectors are by place, (places,).
"""

from __future__ import annotations

import math

from artsim.sim.foundation.body_strips import add_scaled, product, subtract
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.scalars import inverse_or_zero
from artsim.sim.run_data.scratch import MIXED, NewtonWork

_RANK = 1e-12  # relative to the trace: added to the diagonal of the mixture's normal equations


@inlined
def copy(x: Reals1, out: Reals1, count: int) -> None:
    """out = x, of `count` entries."""
    for p in range(count):
        out[p] = x[p]


@njit
def measure(work: NewtonWork, count: int) -> tuple[float, float]:
    """Set work.motion to the motion of λ since λ was noted there; return the norm of this motion, and the largest
    change of a row's velocity by its own impulse [rad/s or m/s].
    """
    square, most = 0.0, 0.0
    for p in range(count):
        moved = work.scale[p] * (work.impulse[p] - work.motion[p])
        work.motion[p] = moved
        square += moved * moved
        most = max(abs(moved) * work.scale[p], most)
    return math.sqrt(square), most


@njit
def remember(work: NewtonWork, count: int, differences: int) -> None:
    """Note the differences of the motion of λ, and of λ after the sweeps, from the last ones in work.history, which has
    had so many differences; and in work.gram the products of the motions' differences with each other, and in its last
    column with the present motion.
    """
    place = differences % MIXED
    motion, result = work.history[place], work.history[MIXED + place]
    subtract(work.motion, work.last_motion, motion, count)
    subtract(work.impulse, work.result, result, count)
    for other in range(min(differences + 1, MIXED)):
        total = product(work.history[other], motion, count)
        work.gram[place, other] = total
        work.gram[other, place] = total
        work.gram[other, MIXED] += total
    work.gram[place, MIXED] = product(motion, work.motion, count)


@njit
def mix(work: NewtonWork, count: int, differences: int) -> None:
    """work.wanted = the λ after the sweeps, less the combination of noted differences that leaves the least motion.

    The least squares are solved by their normal equations, L D Lᵀ in the last rows of work.gram.
    """
    L = work.gram[MIXED:]
    trace = 0.0
    for a in range(differences):
        trace += work.gram[a, a]
    for a in range(differences):
        L[a, MIXED] = work.gram[a, MIXED]
        for b in range(a + 1):
            value = work.gram[a, b] + (_RANK * trace if a == b else 0.0)
            for c in range(b):
                value -= L[a, c] * L[b, c] * L[c, c]
            L[a, b] = value * inverse_or_zero(L[b, b]) if b < a else value
    for a in range(differences):
        for b in range(a):
            L[a, MIXED] -= L[a, b] * L[b, MIXED]
    for a in range(differences - 1, -1, -1):
        L[a, MIXED] *= inverse_or_zero(L[a, a])
        for b in range(a + 1, differences):
            L[a, MIXED] -= L[b, a] * L[b, MIXED]
    copy(work.result, work.wanted, count)
    for a in range(differences):
        add_scaled(work.wanted, -L[a, MIXED], work.history[MIXED + a], count)
