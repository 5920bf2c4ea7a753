"""Curves through way points: piecewise polynomials in a length s, with two continuous derivatives, and their corners.

A curve is scipy's PPoly or BSpline: `curve(s, k)` is its k-th derivative, (…, n). Lengths are those of the way points'
differences over given scales, so that rad and m go together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline, PPoly, make_interp_spline

from artsim.sim.foundation.rotations import Real

Curve = Callable[..., Any]


class Piece(NamedTuple):
    """A part of a path that is passed without a stop."""

    curve: Curve  # of s: coordinates (n,)
    knots: Real  # (k,) lengths at which the curve's third derivative may jump, its ends among them
    points: Real  # (k,) the number of the way point at each knot, fractions between two


def lengths(points: Real, scale: Real) -> Real:
    """The lengths (k,) of the straight lines through points (k, n) up to each."""
    step = np.linalg.norm(np.diff(points, axis=0) / scale, axis=1)
    return np.concatenate([[0.0], np.cumsum(step)])


def smooth(points: Real, scale: Real) -> Piece:
    """The natural cubic spline through points (k, n), of which none repeats the one before; of two, a line."""
    at = lengths(points, scale)
    return Piece(CubicSpline(at, points, bc_type="natural"), at, np.arange(float(len(points))))


def straight(points: Real, scale: Real, blend: float) -> list[Piece]:
    """Straight lines through points (k, n): a piece each, or one whose corners are rounded within the length `blend`.

    Before and behind a corner the way to it is left, and the one from it taken, along a ramp whose slope is
    3 x² - 2 x³: two derivatives are continuous. The corner is passed at 3/32 of 2 · blend on either line. Half of the
    shorter line bounds it.
    """
    at = lengths(points, scale)
    if blend <= 0.0 or len(points) == 2:
        return [
            Piece(
                PPoly(np.array([(b - a)[None] / length, a[None]]), [0.0, length]),
                np.array([0.0, length]),
                np.array([n, n + 1.0]),
            )
            for n, (a, b, length) in enumerate(zip(points[:-1], points[1:], np.diff(at), strict=True))
        ]
    knots, parts, numbers = [0.0], list[Real](), [0.0]
    before = 0.0  # length from the last knot's corner that is rounded
    for n in range(1, len(points)):
        line = at[n] - at[n - 1]
        direction = (points[n] - points[n - 1]) / line
        last = n == len(points) - 1
        radius = 0.0 if last else rounded(at, n, blend)
        start = points[n - 1] + before * direction
        if line - before - radius > 1e-9 * line:
            parts.append(_padded([start, direction]))
            knots.append(at[n] - radius)
            numbers.append(n - radius / line)
        if not last:
            behind = at[n + 1] - at[n]
            onwards = (points[n + 1] - points[n]) / behind
            # from the ramp's start, with t along it: t (1 - rise) of the old way, the ramp of the new one
            turn = onwards - direction
            width = 2.0 * radius
            parts.append(
                _padded([points[n] - radius * direction, direction, 0 * turn, turn / width**2, _fourth(turn, width)])
            )
            knots.append(at[n] + radius)
            numbers.append(n + radius / behind)
        before = radius
    curve = PPoly(np.stack(parts, axis=1), knots)
    return [Piece(curve, np.array(knots), np.array(numbers))]


def rounded(at: Real, n: int, blend: float) -> float:
    """The length on either side of corner n that is rounded: `blend`, at most half of each line."""
    return float(min(blend, 0.5 * (at[n] - at[n - 1]), 0.5 * (at[n + 1] - at[n])))


def ramp(x: Real, radius: float) -> Real:
    """The way taken on the line behind a corner at lengths x from it: 0 up to -radius, x from radius on."""
    t = np.clip(x + radius, 0.0, 2.0 * radius)
    w = 2.0 * radius
    return np.where(x >= radius, x, t**3 / w**2 - t**4 / (2.0 * w**3)) if radius > 0 else np.maximum(x, 0.0)


def _fourth(turn: Real, width: float) -> Real:
    return -turn / (2.0 * width**3)


def _padded(powers: list[Real]) -> Real:
    """Coefficients (5, n), the highest power first, from those of rising powers."""
    found = np.zeros((5, len(powers[0])))
    for k, values in enumerate(powers):
        found[4 - k] = values
    return found


def through_samples(at: Real, samples: Real) -> Curve:
    """The quintic spline through samples (k, n) at lengths (k,)."""
    curve: Curve = make_interp_spline(at, samples, k=min(5, len(at) - 1))
    return curve
