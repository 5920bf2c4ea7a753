"""Pairs of shapes through collision's kernels, many in one call: for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from artsim.collision.box import box_box
from artsim.collision.capsule import capsule_box, capsule_capsule
from artsim.collision.convex import convex_convex
from artsim.collision.gjk_work import GjkWork, make_gjk_work
from artsim.collision.narrow_phase import with_plane
from artsim.collision.shapes import (
    BOX,
    CAPSULE,
    CONVEX,
    CYLINDER,
    ELLIPSOID,
    MOST_CONTACTS,
    PLANE,
    SPHERE,
    Manifold,
    Pair,
    Placed,
    Shapes,
)
from artsim.collision.sphere import sphere_box, sphere_capsule, sphere_cylinder, sphere_sphere
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.foundation.records import ConstReals1, Ints1, Ints2, Reals2, Reals3, allocate, kinds

Array = np.ndarray[Any, Any]
MOST = 16  # contacts of a pair that are kept


class Pairs(NamedTuple):
    """What is found of the shapes 2 i and 2 i + 1."""

    margin: ConstReals1  # (1,) [m]
    number: Ints1  # (n,)
    gap: Reals2  # (n, MOST)
    point: Reals3  # (n, MOST, 3)
    normal: Reals3  # (n, MOST, 3)
    feature: Ints2  # (n, MOST)


@njit
def find(pair: Pair) -> None:
    """The closed form of the kinds of a and b."""
    one = pair.shapes.kind[pair.a]
    two = pair.shapes.kind[pair.b]
    if one == PLANE:
        with_plane(pair)
    elif one == SPHERE and two == SPHERE:
        sphere_sphere(pair)
    elif one == SPHERE and two == CAPSULE:
        sphere_capsule(pair)
    elif one == SPHERE and two == CYLINDER:
        sphere_cylinder(pair)
    elif one == SPHERE and two == BOX:
        sphere_box(pair)
    elif one == CAPSULE and two == CAPSULE:
        capsule_capsule(pair)
    elif one == CAPSULE and two == BOX:
        capsule_box(pair)
    elif one == BOX and two == BOX:
        box_box(pair)


@njit
def keep(i: Any, c: Any, t: Any) -> None:
    """The contacts of pair i into t."""
    t.number[i] = c.number[0]
    for n in range(min(c.number[0], t.gap.shape[1])):
        t.gap[i, n] = c.gap[n]
        t.feature[i, n] = c.feature[n]
        for x in range(3):
            t.point[i, n, x] = c.point[n, x]
            t.normal[i, n, x] = c.normal[n, x]


@njit
def find_pairs(S: Any, P: Any, c: Any, t: Any) -> None:
    """Contacts of every pair, by closed forms."""
    for i in range(t.number.shape[0]):
        c.number[0] = 0
        find(Pair(S, P, 2 * i, 2 * i + 1, t.margin[0], c))
        keep(i, c, t)


@njit
def find_convex_pairs(S: Any, P: Any, k: Any, c: Any, t: Any) -> None:
    """Contacts of every pair, by the kernel of convex pairs."""
    for i in range(t.number.shape[0]):
        c.number[0] = 0
        convex_convex(Pair(S, P, 2 * i, 2 * i + 1, t.margin[0], c), k)
        keep(i, c, t)


CLOSED = Entry("find_pairs", __name__, (Shapes, Placed, Manifold, Pairs))
CONVEX_PAIRS = Entry("find_convex_pairs", __name__, (Shapes, Placed, GjkWork, Manifold, Pairs))
CLOSED_KINDS = {
    *((PLANE, kind) for kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, CONVEX)),
    *((SPHERE, kind) for kind in (SPHERE, CAPSULE, CYLINDER, BOX)),
    *((CAPSULE, CAPSULE), (CAPSULE, BOX), (BOX, BOX)),
}


def make_shapes(kind: Array, size: Array, **more: Array) -> Shapes:
    """Shapes of kinds (n,) and sizes (n, 3); `more`: other fields, of meshes."""
    fields: dict[str, Array] = {name: np.zeros((0,) * of.ndim, of.dtype) for name, of in kinds(Shapes).items()}
    n = len(kind)
    fields |= {"kind": np.asarray(kind, np.int64), "size": np.asarray(size, float), "mesh": np.full(n, -1)}
    fields["reach"] = np.full(n, np.inf)
    fields |= more
    for name, of in kinds(Shapes).items():
        fields[name] = np.ascontiguousarray(fields[name], of.dtype)
        fields[name].setflags(write=False)
    return Shapes(**fields)


def prepare(
    shapes: Shapes, position: Array, rotation: Array, margin: float, general: bool = False
) -> tuple[Pairs, Callable[[], None]]:
    """Where the contacts of shapes 2 i and 2 i + 1 are put, and the call that finds them.

    All pairs are of the first one's kinds. `general`: by the kernel of convex pairs, closed form or not.
    """
    placed = Placed(np.ascontiguousarray(position, float), np.ascontiguousarray(rotation, float))
    most = MOST_CONTACTS
    sizes = {"number": (1,), "gap": (most,), "point": (most, 3), "normal": (most, 3), "feature": (most,)}
    n = len(shapes.kind) // 2
    rooms = {"margin": (1,), "number": (n,), "gap": (n, MOST), "feature": (n, MOST)}
    pairs: Pairs = allocate(Pairs, rooms | {"point": (n, MOST, 3), "normal": (n, MOST, 3)})
    limit = np.array([margin])
    limit.setflags(write=False)
    pairs = pairs._replace(margin=limit)
    found = allocate(Manifold, sizes)
    if general or tuple(shapes.kind[:2].tolist()) not in CLOSED_KINDS:
        return pairs, bind(CONVEX_PAIRS, 1, shapes, placed, make_gjk_work(), found, pairs)
    return pairs, bind(CLOSED, 1, shapes, placed, found, pairs)


def contacts_of(
    shapes: Shapes, position: Array, rotation: Array, margin: float = np.inf, general: bool = False
) -> Pairs:
    """The contacts of shapes 2 i and 2 i + 1, placed at position (2 n, 3) and rotation (2 n, 3, 3)."""
    pairs, call = prepare(shapes, position, rotation, margin, general)
    call()
    return pairs
