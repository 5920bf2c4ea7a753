"""Closed forms of primitive pairs: their proofs, slow twins, degenerate cases, and manifolds that stay the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from artsim.collision.shapes import BOX, CAPSULE, CONVEX, CYLINDER, ELLIPSOID, PLANE, SPHERE
from tests.collision.pair_kernels import CLOSED_KINDS, Array, Pairs, contacts_of, make_shapes
from tests.collision.pair_scenes import FAMILIES, Scene, deepest, gap_along, misplaced, pick, scene, smaller_reach

NAMES = {PLANE: "plane", SPHERE: "sphere", CAPSULE: "capsule", ELLIPSOID: "ellipsoid"}
NAMES |= {CYLINDER: "cylinder", BOX: "box", CONVEX: "convex"}
PAIRS = sorted(CLOSED_KINDS)
UPRIGHT = np.eye(3)

each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(NAMES[kind] for kind in pair))


def one_pair(one: int, size_one: Array, two: int, size_two: Array, at: Array, turned: Array = UPRIGHT) -> Scene:
    """The first shape at the origin, the second somewhere."""
    shapes = make_shapes(np.array([one, two]), np.array([size_one, size_two]), reach=np.ones(2))
    return Scene(shapes, np.array([np.zeros(3), at]), np.array([UPRIGHT, turned]))


def contacts(s: Scene, margin: float = 0.01) -> list[tuple[int, float, Array, Array]]:
    """(feature, gap, point, normal) of every contact of the first pair."""
    found = contacts_of(*s, margin=margin)
    rows = range(found.number[0])
    return [(int(found.feature[0, k]), float(found.gap[0, k]), found.point[0, k], found.normal[0, k]) for k in rows]


def check_finite(found: Pairs) -> None:
    """Contacts exist, are numbers, have unit normals, and no feature twice."""
    used = np.arange(found.gap.shape[1]) < found.number[:, None]
    assert found.number.min() >= 1 and found.number.max() <= found.gap.shape[1]
    for values in (found.gap, found.point, found.normal):
        assert np.isfinite(values[used]).all()
    np.testing.assert_allclose(np.linalg.norm(found.normal[used], axis=1), 1.0, atol=1e-12)
    for features, number in zip(found.feature, found.number, strict=True):
        assert len(set(features[:number])) == number


# --- proofs ----------------------------------------------------------------------------------------------------------


@each_pair
@pytest.mark.parametrize("family", FAMILIES)
def test_gap_is_that_along_its_own_normal(pair: tuple[int, int], family: str) -> None:
    s = scene(*pair, family, 600, 11)
    found = contacts_of(*s)
    check_finite(found)
    k = deepest(found)
    gap, normal, scale = pick(found.gap, k), pick(found.normal, k), smaller_reach(s)
    assert (np.abs(gap_along(s, normal) - gap) / scale).max() < 1e-7
    assert (misplaced(s, gap, pick(found.point, k), normal) / scale).max() < 1e-7
    for way in np.random.default_rng(3).normal(size=(30, 3)):  # no other direction tells of a larger gap
        if pair[0] != PLANE:
            other = normal + way * np.random.default_rng(4).choice([1e-3, 0.1, 10.0])
            other /= np.linalg.norm(other, axis=1)[:, None]
            assert ((gap_along(s, other) - gap) / scale).max() < 1e-7


@each_pair
def test_moved_by_the_depth_they_touch(pair: tuple[int, int]) -> None:
    s = scene(*pair, "random", 1500, 12)
    found = contacts_of(*s)
    k = deepest(found)
    gap, normal = pick(found.gap, k), pick(found.normal, k)
    s.position[1::2] -= normal * gap[:, None]
    again = contacts_of(*s)
    touching = pick(again.gap, deepest(again))
    np.testing.assert_allclose(touching[gap < 0.0], 0.0, atol=1e-7)
    np.testing.assert_allclose(touching[gap >= 0.0], 0.0, atol=1e-6)


# --- slow twins ------------------------------------------------------------------------------------------------------


def core(s: Scene, i: int) -> tuple[Array, float]:
    """Half axes (3, 3), as columns, of the box inside shape i, or the segment or the point, and the radius around."""
    kind, size = s.shapes.kind[i], s.shapes.size[i]
    half = size if kind == BOX else np.array([0.0, 0.0, size[1] if kind == CAPSULE else 0.0])
    return s.rotation[i] * half, float(0.0 if kind == BOX else size[0])


def slow_gap(s: Scene, i: int) -> float:
    """Of shapes 2 i and 2 i + 1: bounded least squares, or the hull of the differences of all corners."""
    (A, one), (B, two) = core(s, 2 * i), core(s, 2 * i + 1)
    offset = s.position[2 * i + 1] - s.position[2 * i]
    both = np.hstack([A, -B])
    used = np.linalg.norm(both, axis=0) > 0.0
    corners = offset - np.array(list(itertools.product((-1.0, 1.0), repeat=int(used.sum())))) @ both[:, used].T
    if used.sum() >= 3:
        inside = -ConvexHull(corners, qhull_options="QJ1e-12" if used.sum() > 3 else "Qt").equations[:, 3].max()
        if inside > 0.0:
            return float(-inside - one - two)
    if used.sum() == 0:
        return float(np.linalg.norm(offset) - one - two)
    fit = lsq_linear(both[:, used], offset, (-1.0, 1.0), method="bvls", tol=1e-15)
    return float(np.linalg.norm(both[:, used] @ fit.x - offset) - one - two)


@pytest.mark.parametrize("pair", [(SPHERE, BOX), (CAPSULE, CAPSULE), (CAPSULE, BOX), (BOX, BOX)])
@pytest.mark.parametrize("family", ["random", "touching"])
def test_gap_is_that_of_slow_twins(pair: tuple[int, int], family: str) -> None:
    s = scene(*pair, family, 60, 13)
    found = contacts_of(*s)
    gap = pick(found.gap, deepest(found))
    np.testing.assert_allclose(gap, [slow_gap(s, i) for i in range(len(gap))], atol=1e-7)


@each_pair
def test_gap_is_coals(pair: tuple[int, int]) -> None:
    pytest.importorskip("coal")
    from tests.benchmarks.narrow_phase import by_coal

    s = scene(*pair, "random", 500, 14)
    found = contacts_of(*s)
    gap = pick(found.gap, deepest(found))
    theirs, _ = by_coal(s)
    if pair == (SPHERE, CYLINDER):  # with the centre inside, coal's depth is that of another way out, never a shorter
        inside = gap < -s.shapes.size[0::2, 0]
        assert (theirs[inside] <= gap[inside] + 1e-9).all()
        gap, theirs = gap[~inside], theirs[~inside]
    np.testing.assert_allclose(gap, theirs, atol=1e-6)


def test_boxes_in_the_other_order() -> None:
    s = scene(BOX, BOX, "random", 1000, 15)
    swapped = s._replace(position=s.position.reshape(-1, 2, 3)[:, ::-1].reshape(-1, 3))
    swapped = swapped._replace(rotation=s.rotation.reshape(-1, 2, 3, 3)[:, ::-1].reshape(-1, 3, 3))
    size = s.shapes.size.reshape(-1, 2, 3)[:, ::-1].reshape(-1, 3)
    swapped = swapped._replace(shapes=make_shapes(s.shapes.kind, size, reach=s.shapes.reach))
    one, two = contacts_of(*s), contacts_of(*swapped)
    np.testing.assert_allclose(pick(one.gap, deepest(one)), pick(two.gap, deepest(two)), atol=1e-7)


# --- degenerate ------------------------------------------------------------------------------------------------------


@pytest.mark.small
@each_pair
@pytest.mark.parametrize("thin", [1.0, 1e-4, 0.0])
def test_concentric_aligned_and_flat(pair: tuple[int, int], thin: float) -> None:
    """Every kind at one place and one step beside, parallel, needles and plates: finite, and proven."""
    if CONVEX in pair or (thin == 0.0 and ELLIPSOID in pair):
        pytest.skip("no sizes, or none at all")
    for needle, step in itertools.product(itertools.product((1.0, thin), repeat=3), (0.0, 1e-14, 0.5, 2.0)):
        size = np.array([1.0, 1.0, 1.0]) * needle
        s = one_pair(pair[0], size, pair[1], size[::-1].copy(), np.array([step, 0.0, 0.0]))
        found = contacts_of(*s)
        check_finite(found)
        k = deepest(found)
        assert abs(gap_along(s, pick(found.normal, k)) - pick(found.gap, k)) < 1e-7


@pytest.mark.small
def test_capsules_that_cross_leave_across_both() -> None:
    turned = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    (_, gap, _, normal), *more = contacts(
        one_pair(CAPSULE, np.array([0.1, 1.0, 0.0]), CAPSULE, np.array([0.2, 1.0, 0.0]), np.zeros(3), turned)
    )
    assert not more
    assert gap == pytest.approx(-0.3)
    np.testing.assert_allclose(np.abs(normal), [1.0, 0.0, 0.0], atol=1e-12)


# --- manifolds -------------------------------------------------------------------------------------------------------


def features(s: Scene, margin: float = 0.01) -> list[int]:
    """Of the first pair's contacts, sorted."""
    return sorted(feature for feature, *_ in contacts(s, margin))


def shaken(s: Scene, by: float, seed: int) -> Scene:
    """The second shape moved and turned by about `by` [m, rad]."""
    rng = np.random.default_rng(seed)
    position, rotation = s.position.copy(), s.rotation.copy()
    position[1] += rng.normal(size=3) * by
    rotation[1] = Rotation.from_rotvec(rng.normal(size=3) * by).as_matrix() @ rotation[1]
    return s._replace(position=position, rotation=rotation)


BIG, SMALL, LONG = np.array([2.0, 2.0, 0.5]), np.array([0.5, 0.5, 0.5]), np.array([2.0, 0.2, 0.2])
DIAGONAL = Rotation.from_euler("z", 45, degrees=True).as_matrix()
LYING = Rotation.from_euler("x", 90, degrees=True).as_matrix()
CAN, LOG = np.array([0.3, 0.5, 0.0]), np.array([0.1, 0.5, 0.0])
RESTING = {
    "small on big": (one_pair(BOX, BIG, BOX, SMALL, np.array([0.3, 0.2, 1.0])), 4),
    "big on small": (one_pair(BOX, SMALL, BOX, BIG, np.array([0.3, 0.2, 1.0])), 4),
    "cube on cube": (one_pair(BOX, SMALL, BOX, SMALL, np.array([0.0, 0.0, 1.0])), 4),
    "cube on cube turned": (one_pair(BOX, SMALL, BOX, SMALL, np.array([0.0, 0.0, 1.0]), DIAGONAL), 8),
    "over the edge": (one_pair(BOX, BIG, BOX, SMALL, np.array([1.8, 0.2, 1.0])), 4),
    "crossed beams": (one_pair(BOX, LONG, BOX, LONG[[1, 0, 2]], np.array([0.0, 0.0, 0.4])), 4),
    "beam on edge": (one_pair(BOX, BIG, BOX, LONG, np.array([0.0, 0.0, 0.7]), LYING), 4),
    "box on plane": (one_pair(PLANE, BIG, BOX, SMALL, np.array([0.0, 0.0, 0.5])), 4),
    "can on plane": (one_pair(PLANE, BIG, CYLINDER, CAN, np.array([0.0, 0.0, 0.5])), 4),
    "can lying": (one_pair(PLANE, BIG, CYLINDER, CAN, np.array([0.0, 0.0, 0.3]), LYING), 2),
    "capsule on plane": (one_pair(PLANE, BIG, CAPSULE, LOG, np.array([0.0, 0.0, 0.1]), LYING), 2),
    "capsule along capsule": (one_pair(CAPSULE, LOG, CAPSULE, LOG, np.array([0.0, 0.2, 0.3])), 2),
}


@pytest.mark.small
@pytest.mark.parametrize("name", RESTING)
def test_what_rests_keeps_its_contacts(name: str) -> None:
    """Gaps of either sign, and turns too small to see, change nothing but the gaps."""
    s, number = RESTING[name]
    if name == "capsule along capsule":
        s.position[1, 1] = 0.2
    same = features(s)
    assert len(same) == number
    for seed in range(20):
        near = shaken(s, 1e-10, seed)
        assert features(near) == same
        for _, gap, _, normal in contacts(near):
            assert abs(gap) < 1e-9
            np.testing.assert_allclose(np.abs(normal), np.abs(contacts(s)[0][3]), atol=1e-8)


@pytest.mark.small
def test_capsule_on_box_has_both_ends_of_what_they_share() -> None:
    turned = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    log = np.array([0.1, 1.0, 0.0])
    shapes = make_shapes(np.array([CAPSULE, BOX]), np.array([log, SMALL]), reach=np.ones(2))
    for tilt in (0.0, 1e-12, -1e-12, 1e-4, -1e-4):
        lean = Rotation.from_euler("y", tilt).as_matrix() @ turned
        s = Scene(shapes, np.array([[0.0, 0.1, 0.6], [0.0, 0.0, 0.0]]), np.array([lean, UPRIGHT]))
        rows = contacts(s)
        assert [row[0] for row in rows] == [0, 1]
        np.testing.assert_allclose(sorted(row[2][0] for row in rows), [-0.5, 0.5], atol=1e-3)


@pytest.mark.small
def test_dominoes_apart_along_an_edge_have_two_contacts() -> None:
    """An edge that is nearest to an edge beside it: both ends, at the true distance."""
    turned = Rotation.from_euler("y", 30, degrees=True).as_matrix()
    half = np.array([0.5, 1.0, 0.5])
    corner = turned @ np.array([-0.5, 0.0, -0.5])
    s = one_pair(BOX, half, BOX, half * 0.8, np.array([0.5 + 0.003, 0.0, 0.5 + 0.004]) - 0.8 * corner, turned)
    rows = contacts(s)
    assert len(rows) == 2
    np.testing.assert_allclose([row[1] for row in rows], 0.005, atol=1e-9)
    np.testing.assert_allclose(sorted(row[2][1] for row in rows), [-0.8, 0.8], atol=1e-9)
    np.testing.assert_allclose(rows[0][3], [0.6, 0.0, 0.8], atol=1e-9)


def test_a_mesh_of_many_corners_rests_on_its_outermost() -> None:
    """A prism of 40 sides: at most 9 contacts, the lowest among them, around its centre."""
    angle = np.arange(40) * (2 * math.pi / 40)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertex = np.vstack([np.column_stack([ring, np.full(40, z)]) for z in (-0.5, 0.5)])
    beside = [(end + (k + 1) % 40, end + (k - 1) % 40, 40 - end + k) for end in (0, 40) for k in range(40)]
    shapes = make_shapes(
        np.array([PLANE, CONVEX]),
        np.zeros((2, 3)),
        reach=np.array([np.inf, 1.2]),
        mesh=np.array([-1, 0]),
        vertex_start=np.array([0, 80]),
        vertex=vertex,
        neighbour_start=3 * np.arange(81),
        neighbour=np.array(beside).ravel(),
    )
    s = Scene(shapes, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.499]]), np.array([UPRIGHT, UPRIGHT]))
    rows = contacts(s)
    assert 6 <= len(rows) <= 9 and len({row[0] for row in rows}) == len(rows)
    points = np.array([row[2][:2] for row in rows])
    assert ConvexHull(points).volume > 0.8 * math.pi  # area
    np.testing.assert_allclose([row[1] for row in rows], -0.001, atol=1e-12)
