"""Shapes as arrays, which the kernels of collision read. No numba and no trimesh here.

A step works with Shapes (constant, each in its own axes), Placed (their current poses) and Manifold (the contacts of
one pair). The kernel of two kinds takes a Pair and appends to the manifold the contacts of shapes a and b that are
nearer than the margin, in the same order for the same configuration. The normal points from a to b.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from artsim.sim.foundation.records import (
    ConstInts1,
    ConstInts2,
    ConstReals1,
    ConstReals2,
    Ints1,
    Reals1,
    Reals2,
    Reals3,
)

# kinds of shapes; a pair's kernel gets the smaller kind first
PLANE, HEIGHT_FIELD, TRIANGLES, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, CONVEX = range(9)

MOST_CONTACTS = 64  # contacts of one pair


class Shapes(NamedTuple):
    """Shapes of all geoms that may touch, each in its own axes about the middle of its bounding box.

    size: plane: nothing (z > 0 is outside) · sphere: radius · capsule and cylinder: radius, half of the straight
    length, along z · ellipsoid: semi-axes · box, convex mesh, triangles, height field: half extents [m].
    """

    kind: ConstInts1  # (n,)
    size: ConstReals2  # (n, 3)
    reach: ConstReals1  # (n,) radius of the bounding ball about the origin [m]; planes: inf
    mesh: ConstInts1  # (n,) its convex mesh, triangle mesh or height field; -1: none
    # convex meshes: polyhedra with outward faces, corners counter-clockwise seen from outside
    vertex_start: ConstInts1  # (meshes + 1,) of convex and of triangle meshes
    vertex: ConstReals2  # (v, 3) [m]
    neighbour_start: ConstInts1  # (v + 1,)
    neighbour: ConstInts1  # vertices (numbers in `vertex`) along edges
    face_start: ConstInts1  # (meshes + 1,)
    plane: ConstReals2  # (faces, 4) outward unit normal and its distance from the origin: n x <= d inside
    corner_start: ConstInts1  # (faces + 1,)
    corner: ConstInts1  # numbers in `vertex`
    # triangle meshes: a tree of boxes over them
    triangle_start: ConstInts1  # (meshes + 1,)
    triangle: ConstInts2  # (t, 3) numbers in `vertex`, in the order of the tree's leaves
    triangle_across: ConstInts2  # (t, 3) the triangle behind the edge from corner k to the next; -1: none
    node_start: ConstInts1  # (meshes + 1,)
    node_box: ConstReals2  # (nodes, 6) lowest and highest corner
    node_skip: ConstInts1  # (nodes,) the node after all below this one (depth first)
    node_triangle: ConstInts2  # (nodes, 2) first triangle and after the last of a leaf; (0, 0): not a leaf
    # height fields: rows along y, columns along x, between them two triangles per cell; solid down to the base
    field_start: ConstInts1  # (fields + 1,) of `elevation`
    field_shape: ConstInts2  # (fields, 2) rows, columns
    elevation: ConstReals1  # z of the points, by rows [m]


class Placed(NamedTuple):
    """Current poses of the shapes in the world."""

    position: Reals2  # (n, 3) [m]
    rotation: Reals3  # (n, 3, 3) shape axes to world


AnyPlaced: TypeAlias = Placed | Any  # or a step's contacts, whose shapes are placed in the same fields


class Manifold(NamedTuple):
    """The contacts of one pair. A gap is the distance of the surfaces along the normal, negative for penetration."""

    number: Ints1  # (1,)
    gap: Reals1  # (MOST_CONTACTS,) [m]
    point: Reals2  # (MOST_CONTACTS, 3) half way between the surfaces, world axes [m]
    normal: Reals2  # (MOST_CONTACTS, 3) unit, from a to b
    feature: Ints1  # (MOST_CONTACTS,) its vertex, edge or face, by which the next step recognises it


class Pair(NamedTuple):
    """The pair of shapes that kernels pass on: not a record, but a plain tuple for numba."""

    shapes: Shapes
    placed: AnyPlaced
    a: int  # number of the first shape, kind[a] <= kind[b]
    b: int  # number of the second shape
    margin: float  # contacts with smaller gaps are wanted [m]
    manifold: Manifold
