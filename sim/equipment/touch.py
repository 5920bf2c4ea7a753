"""Touch sensors: the normal forces of the contacts whose lines of force meet a site's volume."""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.equipment.record import ZONE_BOX, ZONE_CAPSULE, ZONE_CYLINDER, ZONE_ELLIPSOID
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import origin_of, turned_back

FAR = 1e300
LEVEL = 1e-15  # a smaller share of a direction counts as none


@njit
def touch(m: Any, w: Any, e: Any, n: Any, frame: Any, g: Any, t: Any) -> Any:
    """What sensor n on this frame (body, rotation, place) measures [N]: of each contact of its site's link the normal
    force, where a ray from the contact's point out of the link meets the volume, or the point lies in it.
    """
    body, R, d = frame
    o = origin_of(m, w, body)
    link = e.sensor_index[n]
    total = 0.0
    for k in range(t.number[0]):
        force = t.force[k, 0]
        sign = 0.0
        if g.link[t.shape[k, 1]] == link:
            sign = -1.0
        elif g.link[t.shape[k, 0]] == link:
            sign = 1.0
        if force <= 0.0 or sign == 0.0:
            continue
        p = turned_back(R, t.point[k, 0] - o[0] - d[0], t.point[k, 1] - o[1] - d[1], t.point[k, 2] - o[2] - d[2])
        v = turned_back(R, sign * t.frame[k, 0, 0], sign * t.frame[k, 0, 1], sign * t.frame[k, 0, 2])
        if _meets(e.sensor_zone[n], e.sensor_size[n], p, v):
            total += force
    return total


@njit
def _meets(zone: Any, size: Any, p: Any, v: Any) -> Any:
    """Whether the ray p + s v, s >= 0, meets a volume about the origin along the axes."""
    if zone == ZONE_ELLIPSOID:
        low, high = _in_ball(
            p[0] / size[0], p[1] / size[1], p[2] / size[2], v[0] / size[0], v[1] / size[1], v[2] / size[2]
        )
        return high >= max(low, 0.0)
    if zone == ZONE_BOX:
        a, b = _between(p[0], v[0], size[0])
        c, d = _between(p[1], v[1], size[1])
        low, high = _between(p[2], v[2], size[2])
        return min(b, min(d, high)) >= max(max(a, max(c, low)), 0.0)
    r = 1.0 / size[0]
    low, high = _in_ball(p[0] * r, p[1] * r, 0.0, v[0] * r, v[1] * r, 0.0)
    a, b = _between(p[2], v[2], size[1])
    met = min(b, high) >= max(max(a, low), 0.0)
    if zone == ZONE_CYLINDER or met:
        return met
    for end in (-size[1], size[1]):  # of a capsule
        low, high = _in_ball(p[0] * r, p[1] * r, (p[2] - end) * r, v[0] * r, v[1] * r, v[2] * r)
        met = met or high >= max(low, 0.0)
    return met and zone == ZONE_CAPSULE


@inlined
def _between(p: Any, v: Any, half: Any) -> Any:
    """Where along the ray it is between -half and half: from, to; from > to: nowhere."""
    low, high = FAR, -FAR
    if abs(v) > LEVEL:
        low = min((-half - p) / v, (half - p) / v)
        high = max((-half - p) / v, (half - p) / v)
    elif abs(p) <= half:
        low, high = -FAR, FAR
    return low, high


@inlined
def _in_ball(p0: Any, p1: Any, p2: Any, v0: Any, v1: Any, v2: Any) -> Any:
    """Where along the ray it is in the unit ball (of two dimensions, where the third is 0): from, to."""
    a = v0 * v0 + v1 * v1 + v2 * v2
    b = p0 * v0 + p1 * v1 + p2 * v2
    c = p0 * p0 + p1 * p1 + p2 * p2 - 1.0
    low, high = FAR, -FAR
    if a <= LEVEL * LEVEL:
        if c <= 0.0:
            low, high = -FAR, FAR
    elif b * b - a * c >= 0.0:
        root = math.sqrt(b * b - a * c)
        low, high = (-b - root) / a, (-b + root) / a
    return low, high
