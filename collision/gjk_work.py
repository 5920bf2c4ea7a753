"""GjkWork, the scratch of the kernels of convex pairs, allocated once. No numba here."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.records import Ints1, Ints2, Reals1, Reals2, Reals3, allocate

MOST_VERTICES = 128  # vertices of EPA's polytope
MOST_FACES = 2 * MOST_VERTICES
MOST_CORNERS = 64  # corners of a clipped face; of more, evenly chosen ones are kept


class GjkWork(NamedTuple):
    """Scratch of one pair at a time, in a's axes; side 0 is a, side 1 is b. Kernels receive it as `gjk`.

    `simplex` and `vertex` hold points w = a - b of the Minkowski difference and, in columns 3 to 5, the point of a.
    """

    kind: Ints2  # (2, 5) kind, first vertex, one after the last, end of the last climb, mesh
    size: Reals2  # (2, 3) as in Shapes
    radius: Reals1  # (2,) radius of spheres and capsules around their cores [m]
    triangle: Reals2  # (4, 3) corners of side 0 if it is a triangle; the sweep that makes it a prism [m]
    rotation: Reals2  # (3, 3) b's axes to a's
    offset: Reals1  # (3,) b's origin [m]
    frame: Reals2  # (3, 3) a's axes to world
    origin: Reals1  # (3,) their origin in the world [m]
    start: Reals1  # (3,) a direction from a to b, world axes; zeros: the difference of the centres
    scale: Reals1  # (2,) bound of the coordinates; length that precision is relative to [m]
    # GJK
    points: Ints1  # (1,) number of points of the simplex
    simplex: Reals2  # (4, 6)
    weight: Reals1  # (4,) of the point nearest to the origin
    nearest: Reals1  # (3,) the point nearest to the origin
    # EPA
    vertex: Reals2  # (MOST_VERTICES, 6)
    plane: Reals2  # (MOST_FACES, 3) outward normals
    distance: Reals1  # (MOST_FACES,) of the origin from the face's plane; inf: unused
    corner: Ints2  # (MOST_FACES, 3) counter-clockwise seen from outside
    beside: Ints2  # (MOST_FACES, 3) the face across the edge that begins at the corner
    faces: Ints1  # (3,) number of faces made, of removed ones, and of candidates
    free: Ints1  # (MOST_FACES,) the removed ones
    candidate: Ints1  # (MOST_FACES,) faces that may be the nearest
    listed: Ints1  # (MOST_FACES,) 1 if the face is a candidate
    stack: Ints2  # (MOST_FACES, 3)
    horizon: Ints2  # (MOST_FACES, 4)
    # results
    normal: Reals1  # (3,) from a to b
    gap: Reals1  # (1,)
    loose: Reals1  # (1,) uncertainty of `point` [m]
    point: Reals2  # (2, 3) on each surface
    # faces that are clipped
    corners: Ints1  # (3,) number of corners of a's face, b's face and the clipped polygon
    facing: Reals2  # (2, 3) outward normals of a's and b's face
    polygon: Reals3  # (3, 2 MOST_CORNERS, 3)
    feature: Ints2  # (3, 2 MOST_CORNERS)
    room: Reals1  # (2 MOST_CORNERS,) gaps of the clipped polygon's corners [m]
    away: Reals1  # (2 MOST_CORNERS,) squared distances to the kept corners
    # a line over a face
    line: Reals1  # (8,) its middle, its direction, half its length, its radius
    ends: Ints1  # (2,) features of its ends, the one along its direction first


def make_gjk_work() -> GjkWork:
    """Allocate zeroed scratch."""
    vertices, faces, corners = MOST_VERTICES, MOST_FACES, 2 * MOST_CORNERS
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("offset", "origin", "start", "nearest", "normal"), (3,)),
        **dict.fromkeys(("rotation", "frame"), (3, 3)),
        **dict.fromkeys(("points", "gap", "loose"), (1,)),
        **dict.fromkeys(("corner", "beside", "stack", "plane"), (faces, 3)),
        **dict.fromkeys(("free", "distance", "candidate", "listed"), (faces,)),
        **dict.fromkeys(("room", "away"), (corners,)),
        "scale": (2,),
        "faces": (3,),
        "kind": (2, 5),
        "size": (2, 3),
        "radius": (2,),
        "triangle": (4, 3),
        "simplex": (4, 6),
        "weight": (4,),
        "vertex": (vertices, 6),
        "horizon": (faces, 4),
        "point": (2, 3),
        "facing": (2, 3),
        "corners": (3,),
        "polygon": (3, corners, 3),
        "feature": (3, corners),
        "line": (8,),
        "ends": (2,),
    }
    made: GjkWork = allocate(GjkWork, shapes)
    return made
