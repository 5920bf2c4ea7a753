"""The limits of coordinates, those of leaders narrowed so that their followers keep theirs. In numpy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.poses import at_leader
from artsim.sim.foundation.rotations import Real

NO_LIMIT = 1e60  # some files write a huge number for no limit


def stated_limits(model: Model) -> tuple[Real, Real]:
    """Lower and upper limits (nv,), infinite where there are none."""
    low = np.where(model.lower < -NO_LIMIT, -math.inf, model.lower)
    high = np.where(model.upper > NO_LIMIT, math.inf, model.upper)
    return low, high


def affinely_narrowed(model: Model) -> tuple[Real, Real]:
    """Limits (nv,), narrowed for leaders so that affine followers keep theirs; the last followers are visited first."""
    low, high = stated_limits(model)
    for c in reversed(range(len(model.coupling_follower))):
        f, l, p = model.coupling_follower[c], model.coupling_leader[c], model.coupling_polynomial[c]
        if l >= 0 and p[1] and not p[2:].any():
            ends = sorted(((low[f] - p[0]) / p[1], (high[f] - p[0]) / p[1]))
            a, b = max(low[l], ends[0]), min(high[l], ends[1])
            if a <= b:
                low[l], high[l] = a, b
    return low, high


def narrowed_limits(model: Model, q: Real) -> tuple[Real, Real, list[int]]:
    """Limits (nv,), narrowed for leaders so that all eliminated followers keep theirs, and the followers for which that
    is not possible. Of several intervals that a polynomial leaves the one at or next to q (nq,) is taken.
    """
    low, high = stated_limits(model)
    hopeless = []
    for c in reversed(range(len(model.coupling_follower))):
        f, l, p = int(model.coupling_follower[c]), int(model.coupling_leader[c]), model.coupling_polynomial[c]
        if l < 0:
            if not low[f] <= p[0] <= high[f]:
                hopeless.append(f)
            continue
        ends = _interval(p, (low[f], high[f]), (low[l], high[l]), float(q[model.dof_coord[l]]))
        if ends is None:
            hopeless.append(f)
        else:
            low[l], high[l] = ends
    return low, high, hopeless


def _interval(p: Real, of_follower: tuple[float, float], of_leader: tuple[float, float], x: float) -> Real | None:
    """The interval within the leader's limits, nearest to x, in which the polynomial p keeps the follower's; None:
    there is none."""
    if p[1] and not p[2:].any():
        ends = sorted((end - p[0]) / p[1] for end in of_follower)
        a, b = max(of_leader[0], ends[0]), min(of_leader[1], ends[1])
        return np.array([a, b]) if a <= b else None
    cuts = [end for end in of_leader if math.isfinite(end)]
    for end in of_follower:
        if math.isfinite(end):
            roots = np.roots(np.trim_zeros(np.array([*p[:0:-1], p[0] - end]), "f"))
            cuts += [float(root.real) for root in roots if abs(root.imag) < 1e-12 * (1.0 + abs(root))]
    cuts = [-math.inf, *sorted(cut for cut in cuts if of_leader[0] <= cut <= of_leader[1]), math.inf]
    inside: list[list[float]] = []
    for a, b in pairwise(cuts):
        middle = _between(a, b)
        value, _ = at_leader(p, middle)
        if a < b and of_leader[0] <= middle <= of_leader[1] and of_follower[0] <= value <= of_follower[1]:
            if inside and inside[-1][1] == a:
                inside[-1][1] = b
            else:
                inside.append([a, b])
    if not inside:
        return None
    return np.array(min(inside, key=lambda ends: max(ends[0] - x, x - ends[1], 0.0)))


def _between(a: float, b: float) -> float:
    """A number between two, of which one or both may be infinite."""
    if math.isinf(a):
        return 0.0 if math.isinf(b) else b - 1.0
    return a + 1.0 if math.isinf(b) else 0.5 * (a + b)


def finite_range(low: float, high: float, linear: bool) -> tuple[float, float]:
    """The range from which a coordinate is drawn: its limits; without limits ±π [rad] or ±1 [m], with a single one the
    π or 1 m beside it."""
    reach = 1.0 if linear else math.pi
    if math.isinf(low) and math.isinf(high):
        return -reach, reach
    return high - reach if math.isinf(low) else low, low + reach if math.isinf(high) else high
