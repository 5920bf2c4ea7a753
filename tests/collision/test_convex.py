"""Convex pairs: distances proven from both sides, depths against other directions, degenerate cases, manifolds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from tests.collision.convex_kernels import Pairs, slow
from tests.collision.convex_shapes import Hull, hull

Array = np.ndarray[Any, Any]
Item = tuple[str, Any]


def on_ball(rng: Any, n: int) -> Array:
    """Points of the unit sphere."""
    points = rng.normal(size=(n, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1)[:, None])


def some_shapes() -> list[Item]:
    rng = np.random.default_rng(1)
    return [
        ("sphere", [0.4]),
        ("capsule", [0.2, 0.5]),
        ("ellipsoid", [0.2, 0.5, 0.35]),
        ("cylinder", [0.3, 0.45]),
        ("box", [0.3, 0.2, 0.5]),
        ("convex", hull(rng.normal(size=(8, 3)) * 0.3)),
        ("convex", hull(on_ball(rng, 40) * [0.5, 0.3, 0.4])),
    ]


ITEMS = some_shapes()
CUBE = hull(np.array(list(itertools.product((-0.5, 0.5), repeat=3))))
PAIRS = [(a, b) for a in range(len(ITEMS)) for b in range(a, len(ITEMS))]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{ITEMS[p[0]][0]}-{ITEMS[p[1]][0]}{p[1]}")


# --- the slow obvious twin -------------------------------------------------------------------------------------------


def farthest(item: Item, d: Array) -> Any:
    """The extent of a shape along directions (n, 3), about its origin."""
    kind, size = item
    length = np.linalg.norm(d, axis=-1)
    across = np.linalg.norm(d[..., :2], axis=-1)
    if kind == "sphere":
        return size[0] * length
    if kind == "capsule":
        return size[0] * length + size[1] * abs(d[..., 2])
    if kind == "ellipsoid":
        return np.linalg.norm(d * size, axis=-1)
    if kind == "cylinder":
        return size[0] * across + size[1] * abs(d[..., 2])
    if kind == "box":
        return abs(d) @ np.array(size)
    return (d @ size.points.T).max(-1)


def gap_along(a: Item, b: Item, position: Array, rotation: Array, n: Array) -> Any:
    """How far apart a and b are as seen along directions n (…, 3); the distance is the greatest of all these."""
    extent = farthest(a, n @ rotation[0]) + farthest(b, -n @ rotation[1])
    return n @ (position[1] - position[0]) - extent


def is_within(item: Item, x: Array, tolerance: float) -> bool:
    """Whether a point in the shape's axes belongs to it."""
    kind, size = item
    if kind == "sphere":
        return bool(np.linalg.norm(x) <= size[0] + tolerance)
    if kind == "capsule":
        return bool(np.linalg.norm(x - [0, 0, np.clip(x[2], -size[1], size[1])]) <= size[0] + tolerance)
    if kind == "ellipsoid":
        return bool(np.linalg.norm(x / size) <= 1 + tolerance / min(size))
    if kind == "cylinder":
        return bool(np.hypot(x[0], x[1]) <= size[0] + tolerance and abs(x[2]) <= size[1] + tolerance)
    if kind == "box":
        return bool((abs(x) <= np.array(size) + tolerance).all())
    return bool((size.planes[:, :3] @ x <= size.planes[:, 3] + tolerance).all())


def poses(rng: Any, n: int, spread: float) -> tuple[Array, Array]:
    position = rng.normal(size=(n, 2, 3)) * spread
    rotation = Rotation.random(2 * n, random_state=rng).as_matrix().reshape(n, 2, 3, 3)
    return position, rotation


def place(items: list[Item], pair: tuple[int, int], n: int, spread: float, **options: Any) -> Any:
    """Random poses of two shapes, and what the kernel says of them."""
    rng = np.random.default_rng(7 + 100 * pair[0] + pair[1])
    two = [items[pair[0]], items[pair[1]]]
    position, rotation = poses(rng, n, spread)
    pairs = Pairs(two, np.tile([0, 1], (n, 1)), position, rotation, **options)
    pairs.nearest()
    return two, position, rotation, pairs


def cosets(found: Hull) -> tuple[Array, Array]:
    """Face normals and edge directions of a polyhedron."""
    edges = [found.points[f[i]] - found.points[f[i - 1]] for f in found.faces for i in range(len(f))]
    return found.planes[:, :3], np.array(edges)


def true_depth(a: Hull, b: Hull, position: Array, rotation: Array) -> float:
    """The depth of two polyhedra: the least of all faces' normals and of all products of edges."""
    (fa, ea), (fb, eb) = cosets(a), cosets(b)
    ea, eb = ea @ rotation[0].T, eb @ rotation[1].T
    products = np.cross(ea[:, None], eb[None]).reshape(-1, 3)
    products = products[np.linalg.norm(products, axis=1) > 1e-9 * np.linalg.norm(ea, axis=1).max()]
    n = np.concatenate([fa @ rotation[0].T, -fb @ rotation[1].T, products, -products])
    n /= np.linalg.norm(n, axis=1)[:, None]
    return float(-gap_along(("convex", a), ("convex", b), position, rotation, n).max())


# --- distance and depth ----------------------------------------------------------------------------------------------


@each_pair
def test_distances_are_proven(pair: tuple[int, int]) -> None:
    """Two points as far apart as that, one of each shape: no more; a slab of that width between the shapes: no less."""
    n = 120 if slow() else 300
    (a, b), position, rotation, pairs = place(ITEMS, pair, n, 0.6)
    gap, normal, point = pairs.poses.gap, pairs.poses.normal, pairs.poses.point
    assert np.isfinite(gap).all()
    assert np.abs(np.linalg.norm(normal, axis=1) - 1).max() < 1e-12
    assert (gap > 0).any()
    assert (gap < 0).any()
    sharp = not {a[0], b[0]} & {"ellipsoid", "cylinder"}  # points of round shapes are known to the root of the depth
    for i in range(n):
        assert gap_along(a, b, position[i], rotation[i], normal[i]) == pytest.approx(gap[i], abs=1e-7)
        assert (point[i, 1] - point[i, 0]) @ normal[i] == pytest.approx(gap[i], abs=1e-9)
        for side, item in enumerate((a, b)):
            x = (point[i, side] - position[i, side]) @ rotation[i, side]
            assert is_within(item, x, 1e-9 if sharp else 1e-3)


@each_pair
def test_no_shorter_way_out(pair: tuple[int, int]) -> None:
    """No direction, descended to from many, sees less overlap."""
    rng = np.random.default_rng(3)
    n = 2 if slow() else 6
    (a, b), position, rotation, pairs = place(ITEMS, pair, n, 0.15)
    directions = on_ball(rng, 2000)
    for i in np.flatnonzero(pairs.poses.gap < 0):
        seen = gap_along(a, b, position[i], rotation[i], directions)

        def overlap(d: Array, i: int = i) -> float:
            return -float(gap_along(a, b, position[i], rotation[i], d / np.linalg.norm(d)))

        for start in directions[np.argsort(seen)[-3:]]:
            found = minimize(overlap, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
            assert -pairs.poses.gap[i] <= found.fun + 1e-7


@pytest.mark.parametrize("pair", [(5, 5), (5, 6), (6, 6)])
def test_depth_of_polyhedra(pair: tuple[int, int]) -> None:
    n = 10 if slow() else 200
    (a, b), position, rotation, pairs = place(ITEMS, pair, n, 0.2)
    deep = np.flatnonzero(pairs.poses.gap < 0)
    assert len(deep) > n / 3
    for i in deep:
        assert -pairs.poses.gap[i] == pytest.approx(true_depth(a[1], b[1], position[i], rotation[i]), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 10.0])
def test_scaled_alike(scale: float) -> None:
    """A thousandth of everything is a thousandth of the gap."""
    n = 20 if slow() else 500
    rng = np.random.default_rng(5)
    position, rotation = poses(rng, n, 0.4)
    index = np.sort(rng.integers(0, len(ITEMS), (n, 2)), axis=1) + np.array([0, len(ITEMS)])
    gaps = []
    for factor in (1.0, scale):
        items = [
            (kind, hull(what.points * factor) if kind == "convex" else [factor * s for s in what])
            for kind, what in ITEMS
        ] * 2
        pairs = Pairs(items, index, factor * position, rotation)
        pairs.nearest()
        gaps.append(pairs.poses.gap / factor)
    assert np.abs(gaps[0] - gaps[1]).max() < 3e-8


@each_pair
def test_start_and_order_do_not_matter(pair: tuple[int, int]) -> None:
    n = 10 if slow() else 300
    rng = np.random.default_rng(11)
    (a, b), position, rotation, pairs = place(ITEMS, pair, n, 0.4)
    _, _, _, started = place(ITEMS, pair, n, 0.4, start=on_ball(rng, n))
    assert np.abs(started.poses.gap - pairs.poses.gap).max() < 1e-7
    turned = Pairs([b, a], np.tile([0, 1], (n, 1)), position[:, ::-1], rotation[:, ::-1])
    turned.nearest()
    assert np.abs(turned.poses.gap - pairs.poses.gap).max() < 1e-7
    apart = pairs.poses.gap > 1e-3
    assert np.abs(turned.poses.normal + pairs.poses.normal)[apart].max() < 1e-3


def test_beyond_the_margin_is_nothing() -> None:
    n = 20 if slow() else 500
    (_, _), _, _, near = place(ITEMS, (4, 6), n, 0.6)
    (_, _), _, _, bound = place(ITEMS, (4, 6), n, 0.6, margin=0.1)
    assert (np.isinf(bound.poses.gap) == (near.poses.gap >= 0.1)).all()
    both = near.poses.gap < 0.1
    assert (bound.poses.gap[both] == near.poses.gap[both]).all()


# --- what goes wrong elsewhere ---------------------------------------------------------------------------------------

FLAT = hull(np.array([[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0.0]]))
NEEDLE = hull(CUBE.points * [1e-4, 1e-4, 1.0])
NOTHING = Rotation.identity()
QUARTER = Rotation.from_euler("y", np.pi / 2)


@pytest.mark.parametrize(
    ("a", "b", "position", "rotation", "gap"),
    [
        (("sphere", [0.3]), ("sphere", [0.2]), [0, 0, 0], NOTHING, -0.5),
        (("sphere", [0.3]), ("convex", CUBE), [0, 0, 0], NOTHING, -0.8),
        (("convex", CUBE), ("convex", CUBE), [0, 0, 0], NOTHING, -1.0),
        (("box", [0.5, 0.5, 0.5]), ("box", [0.5, 0.5, 0.5]), [1.0, 0, 0], NOTHING, 0.0),
        (("box", [0.5, 0.5, 0.5]), ("convex", CUBE), [1.0, 1.0, 0], NOTHING, 0.0),
        (("convex", CUBE), ("convex", CUBE), [1.0, 1.0, 1.0], NOTHING, 0.0),
        (("convex", CUBE), ("convex", CUBE), [0, 0, 1.5], NOTHING, 0.5),
        (("capsule", [0.1, 0.5]), ("capsule", [0.2, 0.5]), [0, 0, 0], NOTHING, -0.3),
        (("capsule", [0.1, 0.5]), ("capsule", [0.2, 0.5]), [0, 0, 0], QUARTER, -0.3),
        (("capsule", [0.1, 0.5]), ("capsule", [0.2, 0.5]), [0.4, 0, 0.1], NOTHING, 0.1),
        (("cylinder", [0.1, 0.5]), ("cylinder", [0.2, 0.5]), [0.3, 0, 0], NOTHING, 0.0),
        (("cylinder", [0.1, 0.5]), ("cylinder", [0.2, 0.5]), [0, 0, 1.0], NOTHING, 0.0),
        (("cylinder", [0.1, 0.5]), ("cylinder", [0.2, 0.5]), [0, 0, 0], NOTHING, -0.3),
        (("ellipsoid", [0.1, 0.2, 0.3]), ("ellipsoid", [0.1, 0.2, 0.3]), [0, 0, 0], NOTHING, -0.2),
        (("ellipsoid", [0.3, 0.3, 0.3]), ("ellipsoid", [0.2, 0.2, 0.2]), [0.5, 0, 0], NOTHING, 0.0),
        (("ellipsoid", [0.3, 0.3, 0.3]), ("ellipsoid", [0.2, 0.2, 0.2]), [0, 0, 0], NOTHING, -0.5),
        (("convex", FLAT), ("convex", FLAT), [0, 0, 0], NOTHING, 0.0),
        (("convex", FLAT), ("convex", FLAT), [0, 0, 0.1], NOTHING, 0.1),
        (("box", [0.5, 0.5, 0.5]), ("convex", FLAT), [0, 0, 0.4], NOTHING, -0.1),
        (("box", [0.5, 0.5, 0.5]), ("convex", FLAT), [0, 0, 0.5], NOTHING, 0.0),
        (("sphere", [0.1]), ("convex", FLAT), [0, 0, 0], NOTHING, -0.1),
        (("convex", NEEDLE), ("convex", NEEDLE), [0, 0, 0], NOTHING, -1e-4),
        (("convex", NEEDLE), ("convex", NEEDLE), [0, 0, 0], QUARTER, -1e-4),
        (("convex", NEEDLE), ("convex", NEEDLE), [0.5, 0.2, 0], QUARTER, 0.2 - 1e-4),
        (("convex", CUBE), ("convex", NEEDLE), [0.5, 0, 0], NOTHING, -0.5e-4),
        (("cylinder", [1e-4, 1.0]), ("box", [1.0, 1.0, 1e-4]), [0, 0, 1.0], NOTHING, -1e-4),
        (("cylinder", [1.0, 1e-4]), ("cylinder", [1.0, 1e-4]), [0, 0, 0], NOTHING, -2e-4),
    ],
)
def test_degenerate(a: Item, b: Item, position: Any, rotation: Rotation, gap: float) -> None:
    """Concentric, touching, parallel, coplanar, flat, thin: also a little beside, turned, and far from the origin."""
    rng = np.random.default_rng(13)
    n = 10 if slow() else 200
    noise = np.zeros((n, 3))
    noise[n // 2 :] = rng.normal(size=(n - n // 2, 3)) * 10.0 ** rng.uniform(-17, -8, (n - n // 2, 1))
    whole = Rotation.random(n, random_state=rng)
    places = np.zeros((n, 2, 3))
    places[:, 1] = whole.apply(np.array(position) + noise)
    places += rng.normal(size=(n, 1, 3))
    turns = np.stack([whole.as_matrix(), (whole * rotation).as_matrix()], axis=1)
    places[0] = [[0, 0, 0], position]
    turns[0] = [np.eye(3), rotation.as_matrix()]
    pairs = Pairs([a, b], np.tile([0, 1], (n, 1)), places, turns)
    pairs.nearest()
    pairs.contacts()
    assert np.abs(pairs.poses.gap - gap).max() < 2e-7
    assert np.abs(np.linalg.norm(pairs.poses.normal, axis=1) - 1).max() < 1e-12
    assert np.isfinite(pairs.poses.contact).all()
    assert (pairs.poses.number >= 1).all()


def test_duplicate_vertices_and_points_on_faces() -> None:
    """A mesh as a careless builder makes it is the same shape, but for rounding."""
    n = 20 if slow() else 300
    rng = np.random.default_rng(17)
    position, rotation = poses(rng, n, 0.4)
    doubled = CUBE._replace(points=np.concatenate([CUBE.points, CUBE.points, [[0, 0, 0.5], [0.5, 0.1, 0.2]]]))
    gaps = []
    for shape in (CUBE, doubled):
        pairs = Pairs([("convex", shape), ITEMS[5]], np.tile([0, 1], (n, 1)), position, rotation)
        pairs.nearest()
        gaps.append(pairs.poses.gap)
    assert np.abs(gaps[0] - gaps[1]).max() < 1e-12


# --- manifolds -------------------------------------------------------------------------------------------------------


def manifold(a: Item, b: Item, position: Any, rotation: Rotation = NOTHING, first: Rotation = NOTHING) -> Any:
    """Contacts (gap, point, normal) and features of a at the origin and b there; the margin is 0.05 m."""
    turns = np.stack([first.as_matrix(), rotation.as_matrix()])[None]
    pairs = Pairs([a, b], [[0, 1]], [[[0, 0, 0], position]], turns, margin=0.05)
    pairs.contacts()
    n = pairs.poses.number[0]
    return pairs.poses.contact[0, :n], pairs.poses.feature[0, :n]


BOX = ("box", [0.5, 0.5, 0.5])
PLATE = ("box", [0.6, 0.6, 0.5])
ON_EDGE = Rotation.from_euler("x", np.pi / 4)
LYING = QUARTER


@pytest.mark.parametrize(
    ("a", "b", "position", "rotation", "first", "number", "extent"),
    [
        (BOX, ("convex", CUBE), [0.3, 0.2, 0.99], NOTHING, NOTHING, 4, [0.7, 0.8]),
        (("convex", CUBE), ("convex", CUBE), [0, 0, 0.99], Rotation.from_euler("z", 0.5), NOTHING, 8, None),
        (
            ("box", [0.6, 0.6, 0.5]),
            ("convex", CUBE),
            [0, 0, 0.5 + 0.5**0.5 - 0.01],
            Rotation.from_euler("x", np.pi / 4),
            NOTHING,
            2,
            [1, 0],
        ),
        (("capsule", [0.1, 0.3]), ("convex", CUBE), [0, 0, -0.59], NOTHING, LYING, 2, [0.6, 0]),
        (("capsule", [0.1, 0.8]), ("convex", CUBE), [0, 0, -0.59], NOTHING, LYING, 2, [1.0, 0]),
        (("capsule", [0.1, 0.3]), ("convex", CUBE), [0, 0, -0.89], NOTHING, NOTHING, 1, [0, 0]),
        (("cylinder", [0.1, 0.3]), BOX, [0, 0, -0.59], NOTHING, LYING, 2, [0.6, 0]),
        (("cylinder", [0.1, 0.3]), BOX, [0, 0, -0.79], NOTHING, NOTHING, 8, [0.2, 0.2]),
        (("cylinder", [0.1, 0.3]), ("convex", CUBE), [0, 0, -0.79], NOTHING, NOTHING, 8, [0.2, 0.2]),
        (("cylinder", [0.1, 0.3]), ("cylinder", [0.2, 0.3]), [0, 0, 0.59], NOTHING, NOTHING, 8, [0.2, 0.2]),
        (("cylinder", [0.1, 0.3]), ("cylinder", [0.1, 0.3]), [0, 0, 0.19], LYING, LYING, 2, [0.6, 0]),
        (("capsule", [0.1, 0.3]), ("cylinder", [0.1, 0.3]), [0.2, 0, 0.19], LYING, LYING, 2, [0.4, 0]),
        (("ellipsoid", [0.1, 0.2, 0.3]), BOX, [0, 0, -0.79], NOTHING, NOTHING, 1, [0, 0]),
        (("sphere", [0.1]), ("convex", CUBE), [0.2, 0.1, -0.59], NOTHING, NOTHING, 1, [0, 0]),
    ],
)
def test_flat_on_flat(
    a: Item, b: Item, position: Any, rotation: Rotation, first: Rotation, number: int, extent: Any
) -> None:
    contacts, features = manifold(a, b, position, rotation, first)
    assert len(contacts) == number
    assert np.abs(contacts[:, 0] + 0.01).max() < 2e-9
    assert np.abs(contacts[:, 4:] - [0, 0, np.sign(position[2])]).max() < 1e-7
    if extent is not None:
        assert np.ptp(contacts[:, 1:3], axis=0) == pytest.approx(extent, abs=1e-5)
    assert len(set(features)) == number
    for axis in range(3):  # a little further on: the same contacts
        for way in (1e-6, -1e-6):
            moved = np.array(position, float)
            moved[axis] += way
            tilt = Rotation.from_rotvec(way * np.eye(3)[axis]) * rotation
            again, same = manifold(a, b, moved, tilt, first)
            assert set(same) >= set(features) - {0}
            assert len(again) <= number + 1


def test_each_corner_has_its_own_gap() -> None:
    """A tilted cube: gaps grow with the corners' heights, the deepest is the depth, points lie half way."""
    tilt = 0.01
    contacts, _ = manifold(BOX, ("convex", CUBE), [0, 0, 1.0], Rotation.from_euler("x", tilt))
    assert len(contacts) == 4
    expected = (1.0 - 0.5) + contacts[:, 2] * np.tan(tilt) - 0.5 / np.cos(tilt)
    assert np.abs(contacts[:, 0] - expected).max() < 1e-12
    assert np.abs(contacts[:, 3] - 0.5 - contacts[:, 0] / 2).max() < 1e-12


def test_a_tilted_cylinder_keeps_its_lowest_point() -> None:
    turn = Rotation.from_euler("zx", [0.2, 0.05])  # its lowest point is no corner of the octagon
    contacts, features = manifold(("cylinder", [0.1, 0.3]), BOX, [0, 0, -0.79], first=turn)
    low = 0.3 * np.cos(0.05) + 0.1 * np.sin(0.05)
    assert contacts[0, 0] == pytest.approx(0.29 - low, abs=1e-8)
    assert features[0] == 0
    assert contacts[:, 0].min() == contacts[0, 0]


# --- triangles -------------------------------------------------------------------------------------------------------


def triangle_contacts(item: Item, position: Any, corners: Any, depth: float, margin: float = np.inf) -> Any:
    pairs = Pairs(
        [("box", [9.0, 9.0, 9.0]), item],
        [[0, 1]],
        [[[0, 0, 0], position]],
        [[np.eye(3), np.eye(3)]],
        margin=margin,
        triangle=[[*corners, depth]],
    )
    pairs.contacts()
    return pairs.poses.contact[0, : pairs.poses.number[0]]


FLOOR = [95.0, -5, 0, 105, -5, 0, 100, 5, 0]


def test_a_triangle_and_a_box() -> None:
    for depth in (0.0, 0.3):
        contacts = triangle_contacts(BOX, [100.5, 0.2, 0.49], FLOOR, depth, 0.05)
        assert len(contacts) == 4
        assert np.abs(contacts[:, 0] + 0.01).max() < 1e-12
        assert np.abs(contacts[:, 3] + 0.005).max() < 1e-12
        assert np.abs(contacts[:, 4:] - [0, 0, 1]).max() < 1e-12
    prism = triangle_contacts(("sphere", [0.1]), [100.0, 0, -0.1], FLOOR, 1.0)
    assert prism[0, 0] == pytest.approx(-0.2, abs=1e-12)
    assert prism[0, 6] == 1.0
    assert triangle_contacts(("sphere", [0.1]), [100.0, 0, -0.2], FLOOR, 0.0)[0, 6] == -1.0


@pytest.mark.parametrize("number", range(1, len(ITEMS)))
def test_distance_to_triangles(number: int) -> None:
    """A triangle is the flat convex mesh of its corners."""
    rng = np.random.default_rng(23)
    for _ in range(3 if slow() else 20):
        corners = rng.normal(size=(3, 3))
        middle = (corners.min(0) + corners.max(0)) / 2
        position = rng.normal(size=3)
        contacts = triangle_contacts(ITEMS[number], position, corners.ravel(), 0.0)
        mesh = Pairs(
            [("convex", hull(corners)), ITEMS[number]], [[0, 1]], [[middle, position]], [[np.eye(3), np.eye(3)]]
        )
        mesh.nearest()
        assert contacts[:, 0].min() == pytest.approx(mesh.poses.gap[0], abs=1e-7)
