"""Slopes of a function along a line, from pairs of differences that come nearer, and whether it has a kink there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.rotations import Real

NEARER = 1 / 8
"""The distance of a pair as a share of that of the pair before."""
_ENOUGH = 1e-6  # share of a slope up to which it counts as found
_FLATTENED = 0.4  # share of the difference of both sides that is left by the next pair; curvature leaves 1/8, a kink 1
_AMPLIFIED = 8.0  # rounding of extrapolated slopes

Pair = tuple[Real, Real]
"""Slopes from the point forward and, against the line, backward."""


class Slopes(NamedTuple):
    """Slopes at a point on both sides, which are the same unless the function has a kink there."""

    forward: Real
    backward: Real
    kinked: bool
    error: float  # by how much estimates from other pairs differ


def first_settled(plus: Real, minus: Real, rounding: Real) -> list[Slopes | None]:
    """The slopes of n functions from one pair each, (n, entries), with their rounding (n,); None where both sides
    differ and nearer pairs must tell why."""
    scale = np.maximum(np.abs(plus).max(axis=1, initial=0.0), np.abs(minus).max(axis=1, initial=0.0))
    error, mean = np.abs(plus - minus).max(axis=1, initial=0.0), 0.5 * (plus + minus)
    known = (error <= _ENOUGH * scale + rounding).tolist()
    return [
        Slopes(line, line, kinked=False, error=far) if enough else None
        for line, far, enough in zip(mean, error.tolist(), known, strict=True)
    ]


def settled(pairs: Sequence[Pair], rounding: float, *, last: bool = False) -> Slopes | None:
    """The slopes from two or more pairs, None if a nearer one is needed; at `last` the best there are.

    A smooth function has equal slopes on both sides but for curvature, which shrinks with the distance, while their
    mean stays. At a kink the difference stays, and slopes that are extrapolated to the point on either side settle. A
    pair of which one step passes a kink nearby agrees with no other, and one that is too near is lost in rounding.
    `rounding`: of the slopes of the last pair.
    """
    scale = max(float(np.abs(side).max(initial=0.0)) for side in pairs[0])
    enough = _ENOUGH * scale + rounding
    found = [
        _smooth(wide, max(_apart(_mean(wide), _mean(near)), _apart(*near) - _FLATTENED * _apart(*wide)))
        for wide, near in pairwise(pairs)
    ]
    lines = [_extrapolated(wide, near) for wide, near in pairwise(pairs)]
    for line, other in pairwise(lines):
        error = max(_apart(line[0], other[0]), _apart(line[1], other[1])) / _AMPLIFIED
        kinked = _apart(*line) > _AMPLIFIED * enough
        found.append(Slopes(*line, kinked=True, error=error) if kinked else _smooth(line, error))
    best = min(found, key=lambda slopes: slopes.error)
    return best if last or best.error <= enough else None


def _smooth(pair: Pair, error: float) -> Slopes:
    return Slopes(_mean(pair), _mean(pair), kinked=False, error=max(error, 0.0))


def _mean(pair: Pair) -> Real:
    return 0.5 * (pair[0] + pair[1])


def _extrapolated(wide: Pair, near: Pair) -> Pair:
    """Slopes at the point itself on either side, by Richardson."""
    forward, backward = ((a - NEARER * b) / (1.0 - NEARER) for a, b in zip(near, wide, strict=True))
    return forward, backward


def _apart(a: Real, b: Real) -> float:
    return float(np.abs(a - b).max(initial=0.0))
