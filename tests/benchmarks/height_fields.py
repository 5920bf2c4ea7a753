"""Depths in a height field, ours and MuJoCo's beside the truth: `python -m tests.benchmarks.height_fields`.

Spheres and capsules whose cores are above the ground have a closed form, the radius less the distance of the core from
the triangles. Of a box there are two bounds, which mostly meet: no contact may be less deep than the deepest of its
corners is below the surface (a closed form too), and none deeper than the shortest way by which the box leaves the
ground altogether (from the Minkowski differences of the box and the ground's prisms, over many directions).
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from tests.collision.triangle_kernels import found, solid, touch

Real = NDArray[np.float64]
COUNT, HALF, HIGH, BASE = 12, 1.2, 0.3, 0.5  # grid points a side; half width, elevation and depth below it [m]
SIZES = {"sphere": (0.12,), "capsule": (0.07, 0.12), "box": (0.09, 0.12, 0.06)}
DEEPEST = 0.02  # [m] how far shapes are let down into the ground, straight
SAME = 2e-6  # [m] MuJoCo's own tolerance is 1e-6


class Depths(NamedTuple):
    """The deepest contacts of the scenes of one kind of shape [m], and what they may be."""

    least: Real
    most: Real
    ours: Real
    mujoco: Real

    def within(self, depths: Real) -> NDArray[np.bool_]:
        """Which depths lie between the bounds."""
        return np.asarray((depths > self.least - SAME) & (depths < self.most * (1 + 1e-3) + SAME))


class Compared(NamedTuple):
    """Scenes by kind."""

    kinds: dict[str, Depths]

    @property
    def wrong(self) -> int:
        """Scenes in which our depth is not what it is."""
        return sum(int(np.sum(~depths.within(depths.ours))) for depths in self.kinds.values())


def ground(rng: np.random.Generator) -> Real:
    """Elevations (rows, columns) [m]."""
    heights = rng.uniform(0, 1, (COUNT, COUNT))
    return np.asarray(HIGH * (heights - heights.min()) / np.ptp(heights))


def triangles_of(heights: Real) -> Real:
    """Its triangles (m, 3, 3), as MuJoCo cuts the cells."""
    x = np.linspace(-HALF, HALF, COUNT)
    points = np.stack([*np.meshgrid(x, x), heights], axis=2)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    return np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3, 3)


def height_at(triangles: Real, x: Real, y: Real) -> Real:
    """The ground's height (n,) below points: of the triangle that holds them, by its plane."""
    a, b, c = (triangles[:, k] for k in range(3))
    det = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    dx, dy = x[:, None] - a[:, 0], y[:, None] - a[:, 1]
    u = (dx * (c[:, 1] - a[:, 1]) - dy * (c[:, 0] - a[:, 0])) / det
    v = ((b[:, 0] - a[:, 0]) * dy - (b[:, 1] - a[:, 1]) * dx) / det
    holds = np.argmax(np.minimum(np.minimum(u, v), 1 - u - v), axis=1)
    rows = np.arange(len(x))
    u, v = u[rows, holds], v[rows, holds]
    return np.asarray(a[holds, 2] + u * (b - a)[holds, 2] + v * (c - a)[holds, 2])


def distances(points: Real, triangles: Real) -> Real:
    """Of points (n, 3) from triangles (m, 3, 3): (n, m). The nearest of a triangle's inside and its three edges."""
    a = triangles[:, 0]
    normal = np.cross(triangles[:, 1] - a, triangles[:, 2] - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    away = np.einsum("nmi,mi->nm", points[:, None] - a, normal)
    inside = np.ones(away.shape, bool)
    best = np.full(away.shape, np.inf)
    for k in range(3):
        p, e = triangles[:, k], triangles[:, (k + 1) % 3] - triangles[:, k]
        rel = points[:, None] - p
        inside &= np.einsum("nmi,mi->nm", rel, np.cross(normal, e)) >= 0
        t = np.clip(np.einsum("nmi,mi->nm", rel, e) / np.sum(e * e, axis=1), 0, 1)
        best = np.minimum(best, np.linalg.norm(rel - t[..., None] * e, axis=2))
    return np.where(inside, np.abs(away), best)


def core_distance(start: Real, end: Real, triangles: Real) -> float:
    """Of a segment from triangles: convex along it for each of them, so that thirds find it."""
    low, high = np.zeros(len(triangles)), np.ones(len(triangles))
    each = np.arange(len(triangles))

    def at(t: Real) -> Real:
        points = start + t[:, None] * (end - start)
        return np.array([distances(points[m : m + 1], triangles[m : m + 1])[0, 0] for m in each])

    for _ in range(60):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        left = at(first) < at(second)
        low, high = np.where(left, low, first), np.where(left, second, high)
    return float(at((low + high) / 2).min())


def near(triangles: Real, place: Real, reach: float) -> Real:
    """The triangles whose columns come within reach."""
    low, high = triangles[:, :, :2].min(axis=1), triangles[:, :, :2].max(axis=1)
    return triangles[np.all((low < place[:2] + reach) & (high > place[:2] - reach), axis=1)]


def corners_of_box(size: Real, place: Real, turn: Real) -> Real:
    """(8, 3)."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
    return np.asarray(signs * size @ turn.T + place)


def way_out(corners: Real, triangles: Real, rng: np.random.Generator) -> float:
    """The shortest way of a convex body (8, 3) out of the ground: of all translations that part them."""
    planes, owner = [], []
    for number, triangle in enumerate(triangles):
        prism = np.concatenate([triangle, triangle * [1, 1, 0] - [0, 0, BASE]])
        hull = ConvexHull((prism[:, None] - corners).reshape(-1, 3))
        planes.append(hull.equations)
        owner.append(np.full(len(hull.equations), number))
    equations, of = np.concatenate(planes), np.concatenate(owner)
    inside = np.array([np.all(part[:, 3] < 0) for part in planes])
    if not inside.any():
        return 0.0
    normals = equations[np.isin(of, np.flatnonzero(inside)), :3]
    directions = np.concatenate([rng.normal(size=(1500, 3)), normals])
    spread, best = 0.0, np.inf
    for _ in range(6):
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        lengths = np.array([exit_along(direction, equations, of, len(triangles)) for direction in directions])
        first = np.argsort(lengths)[:5]
        best = min(best, float(lengths[first[0]]))
        spread = spread / 4 if spread else 0.1
        directions = np.repeat(directions[first], 40, axis=0) + spread * rng.normal(size=(200, 3))
    return best


def exit_along(direction: Real, equations: Real, of: NDArray[np.int64], count: int) -> float:
    """How far along a direction until none of the polytopes holds the translation."""
    slope, room = equations[:, :3] @ direction, -equations[:, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        at = room / slope
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(low, of, np.where(slope < 0, at, -np.inf))
    np.minimum.at(high, of, np.where(slope > 0, at, np.inf))
    s = 0.0
    for n in np.argsort(low):
        if low[n] < high[n] and low[n] <= s < high[n]:
            s = float(high[n])
    return s


def outline(kind: str, turn: Real, rng: np.random.Generator) -> Real:
    """Points of a shape's surface (n, 3) about its origin, and the corners of a box."""
    size = np.array(SIZES[kind])
    if kind == "box":
        points = rng.uniform(-1, 1, (600, 3))
        points /= np.abs(points).max(axis=1)[:, None]
        return np.concatenate([points * size @ turn.T, corners_of_box(size, np.zeros(3), turn)])
    points = rng.normal(size=(600, 3))
    points *= size[0] / np.linalg.norm(points, axis=1)[:, None]
    if kind == "capsule":
        points += np.where(points[:, 2:] > 0, 1, -1) * [0, 0, size[1]]
    return np.asarray(points @ turn.T)


def depths_of(kind: str, count: int, seed: int = 0) -> Depths:
    """Scenes of one kind of shape: let down into the ground by up to DEEPEST."""
    rng = np.random.default_rng([seed, sorted(SIZES).index(kind)])
    heights = ground(rng)
    triangles = triangles_of(heights)
    turns = Rotation.random(count, random_state=seed).as_matrix()
    places = np.column_stack([rng.uniform(-0.8, 0.8, (count, 2)), np.zeros(count)])
    for place, turn in zip(places, turns, strict=True):
        points = outline(kind, turn, rng) + place
        place[2] = -(points[:, 2] - height_at(triangles, points[:, 0], points[:, 1])).min() - rng.uniform(0, DEEPEST)
    bounds = np.array([bounds_of(kind, p, t, triangles, rng) for p, t in zip(places, turns, strict=True)])
    field = solid("heightfield", size=(HALF, HALF, BASE), heights=heights)
    contacts = touch(field, solid(kind, size=SIZES[kind]), places, turns)
    ours = np.array([-min(found(contacts, i)[:, 0], default=0.0) for i in range(count)])
    return Depths(bounds[:, 0], bounds[:, 1], ours, by_mujoco(kind, heights, places, turns))


def bounds_of(kind: str, place: Real, turn: Real, triangles: Real, rng: np.random.Generator) -> tuple[float, float]:
    """The least and the greatest depth that the deepest contact may have."""
    size = np.array(SIZES[kind])
    around = near(triangles, place, 0.35)
    if kind != "box":
        along = turn[:, 2] * (size[1] if kind == "capsule" else 0.0)
        away = core_distance(place - along, place + along, around)
        depth = float(size[0]) - away
        return depth, depth if away > SAME else np.inf
    corners = corners_of_box(size, place, turn)
    below = corners[:, 2] < height_at(triangles, corners[:, 0], corners[:, 1])
    least = float(distances(corners[below], around).min(axis=1).max()) if below.any() else 0.0
    return least, max(way_out(corners, around, rng), least)


def by_mujoco(kind: str, heights: Real, places: Real, turns: Real) -> Real:
    """MuJoCo's deepest contacts."""
    text = " ".join(map(repr, (heights / HIGH)[::-1].ravel().tolist()))
    size = " ".join(map(str, SIZES[kind]))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" nrow="{COUNT}" ncol="{COUNT}" size="{HALF} {HALF} {HIGH} {BASE}" '
        f'elevation="{text}"/></asset><worldbody><geom type="hfield" hfield="h"/><body><freejoint/>'
        f'<geom type="{kind}" size="{size}"/></body></worldbody></mujoco>'
    )
    data, found_depths = mujoco.MjData(model), []
    for place, turn in zip(places, turns, strict=True):
        data.qpos[:] = [*place, *Rotation.from_matrix(turn).as_quat()[[3, 0, 1, 2]]]
        mujoco.mj_fwdPosition(model, data)
        found_depths.append(-min(data.contact.dist, default=0.0))
    return np.array(found_depths)


def compared(count: int, seed: int = 0) -> Compared:
    """So many scenes, a third of each kind."""
    return Compared({kind: depths_of(kind, count // len(SIZES), seed) for kind in SIZES})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=600, help="scenes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wrong", action="store_true", help="print the scenes in which ours is not what it is")
    arguments = parser.parse_args()
    for kind, depths in compared(arguments.count, arguments.seed).kinds.items():
        ours, theirs = depths.within(depths.ours), depths.within(depths.mujoco)
        differ = np.abs(depths.ours - depths.mujoco) > SAME
        cases = Counter(zip(ours[differ].tolist(), theirs[differ].tolist(), strict=True))
        met = np.sum(depths.most - depths.least <= 1e-3 * np.minimum(depths.most, 1.0) + SAME)
        print(
            f"{kind:8} {len(differ)} scenes, bounds meet in {met}; right: ours {ours.sum()}, MuJoCo {theirs.sum()}; "
            f"{differ.sum()} differ: ours right {cases[True, False]}, MuJoCo right {cases[False, True]}, both within "
            f"the bounds {cases[True, True]}, neither {cases[False, False]}"
        )
        if arguments.wrong:
            for i in np.flatnonzero(~ours):
                row = depths.least[i], depths.most[i], depths.ours[i], depths.mujoco[i]
                print(f"  {i}: {' '.join(f'{x:.6f}' for x in row)}")


if __name__ == "__main__":
    main()
