"""Convex pairs by themselves, for tests: many poses of two shapes in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artsim.collision.convex import convex_convex, find_nearest, triangle_convex
from artsim.collision.frames import point_to_world, to_world
from artsim.collision.gjk_work import GjkWork, make_gjk_work
from artsim.collision.shapes import MOST_CONTACTS, Manifold, Pair, Placed, Shapes
from artsim.collision.support import begin_pair
from artsim.sim.foundation.jit import Entry, bind, disabled, njit
from artsim.sim.foundation.records import (
    ConstInts2,
    ConstReals1,
    ConstReals2,
    ConstReals3,
    Ints1,
    Ints2,
    Reals1,
    Reals2,
    Reals3,
)
from artsim.sim.foundation.vec3 import put
from tests.collision.convex_shapes import make_manifold, make_shapes

Array = np.ndarray[Any, Any]


class Poses(NamedTuple):
    """Pairs of shapes, each at its own place, and what came of them."""

    pair: ConstInts2  # (n, 2)
    position: ConstReals3  # (n, 2, 3)
    rotation: ConstReals2  # (n, 18)
    start: ConstReals2  # (n, 3)
    margin: ConstReals1  # (1,)
    triangle: ConstReals2  # (n or 0, 10) corners and depth
    gap: Reals1  # (n,) of the nearest points; inf: beyond the margin
    normal: Reals2  # (n, 3)
    point: Reals3  # (n, 2, 3)
    number: Ints1  # (n,) contacts
    contact: Reals3  # (n, MOST_CONTACTS, 7) gap, point, normal
    feature: Ints2  # (n, MOST_CONTACTS)


@njit
def _place(P: Any, y: Any, i: int) -> None:
    for side in range(2):
        shape = y.pair[i, side]
        for r in range(3):
            P.position[shape, r] = y.position[i, side, r]
            for s in range(3):
                P.rotation[shape, r, s] = y.rotation[i, 9 * side + 3 * r + s]


@njit
def nearest_of_pairs(S: Any, P: Any, k: Any, c: Any, y: Any) -> None:
    """The nearest points of all pairs; no manifolds."""
    for i in range(y.pair.shape[0]):
        _place(P, y, i)
        for r in range(3):
            k.start[r] = y.start[i, r]
        begin_pair(Pair(S, P, y.pair[i, 0], y.pair[i, 1], y.margin[0], c), k)
        y.gap[i] = np.inf
        if find_nearest(S, k, y.margin[0]):
            y.gap[i] = k.gap[0]
            put(y.normal[i], to_world(k, k.normal))
            for side in range(2):
                put(y.point[i, side], point_to_world(k, k.point[side]))


@njit
def contacts_of_pairs(S: Any, P: Any, k: Any, c: Any, y: Any) -> None:
    """The manifolds of all pairs."""
    for i in range(y.pair.shape[0]):
        _place(P, y, i)
        c.number[0] = 0
        pair = Pair(S, P, y.pair[i, 0], y.pair[i, 1], y.margin[0], c)
        if y.triangle.shape[0] > 0:
            t = y.triangle[i]
            corners = (t[0], t[1], t[2]), (t[3], t[4], t[5]), (t[6], t[7], t[8])
            triangle_convex(pair, k, corners, t[9], 0)
        else:
            convex_convex(pair, k)
        y.number[i] = c.number[0]
        for n in range(c.number[0]):
            y.contact[i, n, 0] = c.gap[n]
            y.feature[i, n] = c.feature[n]
            for r in range(3):
                y.contact[i, n, 1 + r] = c.point[n, r]
                y.contact[i, n, 4 + r] = c.normal[n, r]


RECORDS = (Shapes, Placed, GjkWork, Manifold, Poses)
NEAREST = Entry("nearest_of_pairs", __name__, RECORDS)
CONTACTS = Entry("contacts_of_pairs", __name__, RECORDS)


def frozen(array: Any, dtype: Any = np.float64) -> Array:
    """A read-only array, as records of constants want it."""
    made = np.array(array, dtype, order="C")
    made.setflags(write=False)
    return made


class Pairs:
    """Shapes and poses, to be evaluated as often as one likes."""

    def __init__(
        self,
        items: Sequence[tuple[str, Any]],
        pair: Any,
        position: Any,
        rotation: Any,
        *,
        margin: float = np.inf,
        start: Any = None,
        triangle: Any = None,
    ) -> None:
        n = len(pair)
        self.shapes = make_shapes(items)
        self.placed = Placed(np.zeros((len(items), 3)), np.zeros((len(items), 3, 3)))
        self.work, self.manifold = make_gjk_work(), make_manifold()
        self.poses = Poses(
            frozen(pair, np.int64),
            frozen(position),
            frozen(np.reshape(rotation, (n, 18))),
            frozen(np.zeros((n, 3)) if start is None else start),
            frozen([margin]),
            frozen(np.zeros((0, 10)) if triangle is None else triangle),
            np.zeros(n),
            np.zeros((n, 3)),
            np.zeros((n, 2, 3)),
            np.zeros(n, np.int64),
            np.zeros((n, MOST_CONTACTS, 7)),
            np.zeros((n, MOST_CONTACTS), np.int64),
        )
        records = (self.shapes, self.placed, self.work, self.manifold, self.poses)
        self.nearest = bind(NEAREST, 1, *records)
        self.contacts = bind(CONTACTS, 1, *records)


def slow() -> bool:
    """Whether kernels run as plain Python."""
    return disabled()
