"""The kernels of triangle meshes and height fields by themselves: one of them and one convex shape at many places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artsim.collision.build import Solid, build_shapes
from artsim.collision.gjk_work import GjkWork, make_gjk_work
from artsim.collision.height_field import height_field_convex
from artsim.collision.shapes import MOST_CONTACTS, TRIANGLES, Manifold, Pair, Placed, Shapes
from artsim.collision.triangles import triangles_convex
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.foundation.records import ConstReals1, ConstReals2, ConstReals3, Ints1, Ints2, Reals3
from tests.collision.convex_shapes import make_manifold

Array = np.ndarray[Any, Any]


class Places(NamedTuple):
    """Where shape 1 is, and what came of it."""

    position: ConstReals2  # (n, 3)
    rotation: ConstReals3  # (n, 3, 3)
    margin: ConstReals1  # (1,)
    number: Ints1  # (n,) contacts
    contact: Reals3  # (n, MOST_CONTACTS, 7) gap, point, normal
    feature: Ints2  # (n, MOST_CONTACTS)


@njit
def contacts_at_places(S: Any, P: Any, k: Any, c: Any, y: Any) -> None:
    """The contacts at all places."""
    for i in range(y.position.shape[0]):
        for r in range(3):
            P.position[1, r] = y.position[i, r]
            for s in range(3):
                P.rotation[1, r, s] = y.rotation[i, r, s]
        c.number[0] = 0
        pair = Pair(S, P, 0, 1, y.margin[0], c)
        if S.kind[0] == TRIANGLES:
            triangles_convex(pair, k)
        else:
            height_field_convex(pair, k)
        y.number[i] = c.number[0]
        for n in range(c.number[0]):
            y.contact[i, n, 0] = c.gap[n]
            y.feature[i, n] = c.feature[n]
            for r in range(3):
                y.contact[i, n, 1 + r] = c.point[n, r]
                y.contact[i, n, 4 + r] = c.normal[n, r]


ENTRY = Entry("contacts_at_places", __name__, (Shapes, Placed, GjkWork, Manifold, Places))


def solid(kind: str, **fields: Any) -> Solid:
    """A solid at the origin."""
    return Solid(**{"kind": kind, "size": (), "position": np.zeros(3), "rotation": np.eye(3), "name": kind, **fields})


def touch(static: Solid, moving: Solid, position: Any, rotation: Any = None, margin: float = 0.0) -> Places:
    """The contacts of `static` where it is and `moving` with its frame at each `position` (n, 3)."""
    built = build_shapes([static, moving])
    positions = np.array(position, float).reshape(-1, 3)
    n = len(positions)
    turns = np.broadcast_to(np.eye(3) if rotation is None else rotation, (n, 3, 3))
    centres = positions + turns @ built.position[1]
    placed = Placed(np.array([built.position[0], np.zeros(3)]), np.array([built.rotation[0], np.zeros((3, 3))]))
    places = Places(
        _frozen(centres),
        _frozen(turns @ built.rotation[1]),
        _frozen([margin]),
        np.zeros(n, np.int64),
        np.zeros((n, MOST_CONTACTS, 7)),
        np.zeros((n, MOST_CONTACTS), np.int64),
    )
    bind(ENTRY, 1, built.shapes, placed, make_gjk_work(), make_manifold(), places)()
    return places


def found(places: Places, i: int = 0) -> Array:
    """The contacts (m, 7) at a place: gap, point, normal."""
    return places.contact[i, : places.number[i]]


def deepest(places: Places) -> Array:
    """The least gap at each place; inf where there is no contact."""
    gaps = np.where(np.arange(MOST_CONTACTS) < places.number[:, None], places.contact[:, :, 0], np.inf)
    return np.asarray(gaps.min(axis=1))


def _frozen(values: Sequence[Any] | Array) -> Array:
    made = np.array(values, float, order="C")
    made.setflags(write=False)
    return made
