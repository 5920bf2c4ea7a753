"""Box and box: separating axes, clipped faces, exact distances.

Gottschalk, Lin, Manocha 1996 (the fifteen axes); Ericson, Real-Time Collision Detection, 4.4 and 5.5. When boxes
overlap, the axis of least depth is the shortest way out. When they do not, the axis of the largest gap is the distance
unless the nearest points are corners or in an edge and a corner: then the nearest corner is looked for.

Features say which corners and edges meet, whichever box has the face: 0 to 7 corners of a, 8 to 15 corners of b, from
16 on an edge of a (12 times its number) and one of b, from 160 on the nearest corners of boxes apart. So a box at rest
keeps its contacts when rounding changes the axis.
"""

from __future__ import annotations

from typing import Any

from artsim.collision.frames import axis, centre, clamp, dot, into, turned
from artsim.collision.manifold import add_contact
from artsim.collision.sphere import NEAR
from artsim.sim.jit import inlined, njit
from artsim.sim.lanes import sqrt

SAME = 1e-8  # of the smaller box's half extents: lengths that differ by less are equal
PARALLEL = 1e-8  # sine of the angle of edges below which they have no common normal
FLAT = 0.9999  # cosine of the angle of a face and the contact's plane: lying on it
NOTHING = 1e300
NEAREST = 160  # the first feature of nearest corners


@njit
def box_box(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, manifold: Any) -> bool:
    """Up to 8 contacts of faces, or one of edges, and of boxes apart the nearest corners; whether it is edges."""
    size = min(
        shapes.size[a, 0] + shapes.size[a, 1] + shapes.size[a, 2],
        shapes.size[b, 0] + shapes.size[b, 1] + shapes.size[b, 2],
    )
    gap, code = separation(shapes, placed, a, b, margin, SAME * size)
    if gap >= margin:
        return False
    if code < 6:
        add_faces(shapes, placed, a, b, code, gap, margin, size, manifold)
    else:
        add_edges(shapes, placed, a, b, (code - 6) // 3, (code - 6) % 3, gap, margin, size, manifold)
    return bool(code >= 6)


@inlined
def larger(gap: Any, code: Any, other: Any, k: Any, bias: Any) -> Any:
    """The larger gap and its axis; the earlier axis if they are equal."""
    if other > gap + bias:
        return other, k
    return gap, code


@inlined
def edge_gap(
    t1: Any, t2: Any, r1: Any, r2: Any, a1: Any, a2: Any, q1: Any, q2: Any, b1: Any, b2: Any, p1: Any, p2: Any
) -> Any:
    """Gap along the cross product of an edge of a and one of b.

    t, r, a: offset, b's edge and a's half extents in a's two axes after its edge's; b: b's half extents in its two axes
    after its edge's, p their cosines with a's edge; q = |r|.
    """
    square = r1 * r1 + r2 * r2
    if square < PARALLEL * PARALLEL:
        return -NOTHING
    return (abs(t2 * r1 - t1 * r2) - (a1 * q2 + a2 * q1 + b1 * p2 + b2 * p1)) / sqrt(square)


@njit
def separation(shapes: Any, placed: Any, a: Any, b: Any, margin: Any, bias: Any) -> Any:
    """The largest gap along the fifteen axes, and which: 0 to 2 a's, 3 to 5 b's, 6 + 3 i + j their edges'.

    Stops at the first that is beyond the margin.
    """
    R = placed.rotation
    d0 = placed.position[b, 0] - placed.position[a, 0]
    d1 = placed.position[b, 1] - placed.position[a, 1]
    d2 = placed.position[b, 2] - placed.position[a, 2]
    a0 = shapes.size[a, 0]
    a1 = shapes.size[a, 1]
    a2 = shapes.size[a, 2]
    b0 = shapes.size[b, 0]
    b1 = shapes.size[b, 1]
    b2 = shapes.size[b, 2]
    t0 = R[a, 0, 0] * d0 + R[a, 1, 0] * d1 + R[a, 2, 0] * d2
    t1 = R[a, 0, 1] * d0 + R[a, 1, 1] * d1 + R[a, 2, 1] * d2
    t2 = R[a, 0, 2] * d0 + R[a, 1, 2] * d1 + R[a, 2, 2] * d2
    r00 = R[a, 0, 0] * R[b, 0, 0] + R[a, 1, 0] * R[b, 1, 0] + R[a, 2, 0] * R[b, 2, 0]
    r01 = R[a, 0, 0] * R[b, 0, 1] + R[a, 1, 0] * R[b, 1, 1] + R[a, 2, 0] * R[b, 2, 1]
    r02 = R[a, 0, 0] * R[b, 0, 2] + R[a, 1, 0] * R[b, 1, 2] + R[a, 2, 0] * R[b, 2, 2]
    r10 = R[a, 0, 1] * R[b, 0, 0] + R[a, 1, 1] * R[b, 1, 0] + R[a, 2, 1] * R[b, 2, 0]
    r11 = R[a, 0, 1] * R[b, 0, 1] + R[a, 1, 1] * R[b, 1, 1] + R[a, 2, 1] * R[b, 2, 1]
    r12 = R[a, 0, 1] * R[b, 0, 2] + R[a, 1, 1] * R[b, 1, 2] + R[a, 2, 1] * R[b, 2, 2]
    r20 = R[a, 0, 2] * R[b, 0, 0] + R[a, 1, 2] * R[b, 1, 0] + R[a, 2, 2] * R[b, 2, 0]
    r21 = R[a, 0, 2] * R[b, 0, 1] + R[a, 1, 2] * R[b, 1, 1] + R[a, 2, 2] * R[b, 2, 1]
    r22 = R[a, 0, 2] * R[b, 0, 2] + R[a, 1, 2] * R[b, 1, 2] + R[a, 2, 2] * R[b, 2, 2]
    q00 = abs(r00)
    q01 = abs(r01)
    q02 = abs(r02)
    q10 = abs(r10)
    q11 = abs(r11)
    q12 = abs(r12)
    q20 = abs(r20)
    q21 = abs(r21)
    q22 = abs(r22)
    gap = abs(t0) - (a0 + b0 * q00 + b1 * q01 + b2 * q02)
    code = 0
    gap, code = larger(gap, code, abs(t1) - (a1 + b0 * q10 + b1 * q11 + b2 * q12), 1, bias)
    gap, code = larger(gap, code, abs(t2) - (a2 + b0 * q20 + b1 * q21 + b2 * q22), 2, bias)
    gap, code = larger(gap, code, abs(t0 * r00 + t1 * r10 + t2 * r20) - (b0 + a0 * q00 + a1 * q10 + a2 * q20), 3, bias)
    gap, code = larger(gap, code, abs(t0 * r01 + t1 * r11 + t2 * r21) - (b1 + a0 * q01 + a1 * q11 + a2 * q21), 4, bias)
    gap, code = larger(gap, code, abs(t0 * r02 + t1 * r12 + t2 * r22) - (b2 + a0 * q02 + a1 * q12 + a2 * q22), 5, bias)
    if gap >= margin:
        return gap, code
    gap, code = larger(gap, code, edge_gap(t1, t2, r10, r20, a1, a2, q10, q20, b1, b2, q01, q02), 6, bias)
    gap, code = larger(gap, code, edge_gap(t1, t2, r11, r21, a1, a2, q11, q21, b2, b0, q02, q00), 7, bias)
    gap, code = larger(gap, code, edge_gap(t1, t2, r12, r22, a1, a2, q12, q22, b0, b1, q00, q01), 8, bias)
    gap, code = larger(gap, code, edge_gap(t2, t0, r20, r00, a2, a0, q20, q00, b1, b2, q11, q12), 9, bias)
    gap, code = larger(gap, code, edge_gap(t2, t0, r21, r01, a2, a0, q21, q01, b2, b0, q12, q10), 10, bias)
    gap, code = larger(gap, code, edge_gap(t2, t0, r22, r02, a2, a0, q22, q02, b0, b1, q10, q11), 11, bias)
    gap, code = larger(gap, code, edge_gap(t0, t1, r00, r10, a0, a1, q00, q10, b1, b2, q21, q22), 12, bias)
    gap, code = larger(gap, code, edge_gap(t0, t1, r01, r11, a0, a1, q01, q11, b2, b0, q22, q20), 13, bias)
    gap, code = larger(gap, code, edge_gap(t0, t1, r02, r12, a0, a1, q02, q12, b0, b1, q20, q21), 14, bias)
    return gap, code


@inlined
def between(placed: Any, a: Any, b: Any, n0: Any, n1: Any, n2: Any) -> Any:
    """How far b's centre is from a's along n."""
    o = placed.position
    return dot(o[b, 0] - o[a, 0], o[b, 1] - o[a, 1], o[b, 2] - o[a, 2], n0, n1, n2)


# ------------------------------------------------------------------ faces


@njit
def add_faces(
    shapes: Any, placed: Any, a: Any, b: Any, code: Any, gap: Any, margin: Any, size: Any, manifold: Any
) -> None:
    """Contacts where the axis of a face separates best (or overlaps least)."""
    r = a if code < 3 else b
    n0, n1, n2 = axis(placed, r, code % 3)
    if between(placed, a, b, n0, n1, n2) < 0.0:
        n0 = -n0
        n1 = -n1
        n2 = -n2
    lowest = clip(shapes, placed, a, b, r, code % 3, gap, n0, n1, n2, margin, SAME * size, -1, manifold)
    if lowest > gap + (SAME if gap > 0.0 else 10.0 * SAME) * size:  # the nearest point is beside the face
        add_nearest(shapes, placed, a, b, gap, n0, n1, n2, margin, size, manifold)


@njit
def facing(placed: Any, s: Any, m0: Any, m1: Any, m2: Any) -> Any:
    """The axis of s nearest to the direction m, either way, and its cosine."""
    x, y, z = axis(placed, s, 0)
    best = dot(x, y, z, m0, m1, m2)
    f = 0
    for k in range(1, 3):
        x, y, z = axis(placed, s, k)
        cosine = dot(x, y, z, m0, m1, m2)
        if abs(cosine) > abs(best):
            best = cosine
            f = k
    return f, best


@inlined
def bit(x: Any) -> Any:
    """1 for the positive side of an axis, 0 for the other."""
    return 1 if x > 0.0 else 0


@inlined
def edge_number(k: Any, one: Any, two: Any) -> Any:
    """Of an edge along axis k, at the sides `one` and `two` of the axes k + 1 and k + 2."""
    return 4 * k + bit(one) + 2 * bit(two)


@inlined
def corner_feature(second: Any, k: Any, s: Any, s1: Any, s2: Any) -> Any:
    """Of the corner at the sides s, s1, s2 of axes k, k + 1, k + 2; `second`: of shape b."""
    return 8 * second + (bit(s) << k) + (bit(s1) << (k + 1) % 3) + (bit(s2) << (k + 2) % 3)


@inlined
def edge_feature(swapped: Any, r: Any, o: Any) -> Any:
    """Of edge r of a and edge o of b, or the other way round."""
    return 16 + (12 * o + r if swapped else 12 * r + o)


@njit
def clip(
    shapes: Any,
    placed: Any,
    a: Any,
    b: Any,
    r: Any,
    k: Any,
    least: Any,
    n0: Any,
    n1: Any,
    n2: Any,
    margin: Any,
    slack: Any,
    without: Any,
    manifold: Any,
) -> Any:
    """Contacts of the face of box r, across its axis k, with the face of the other that looks at it; the least gap.

    The other's face in the axes of r's: corners over r's face, what r's sides cut of its edges (Liang and Barsky), and
    r's corners below it. `slack` is how far beside r's face counts as over it; the feature `without` is left out.
    Normal n, nearly or exactly that of the face; no gap along it is below `least`.
    """
    swapped = r == b
    o = a if swapped else b
    to_other = -1.0 if swapped else 1.0
    m0, m1, m2 = axis(placed, r, k)
    cosine = to_other * dot(m0, m1, m2, n0, n1, n2)
    side = 1.0 if cosine > 0.0 else -1.0
    m0 *= side
    m1 *= side
    m2 *= side
    cosine = abs(cosine)
    i = (k + 1) % 3
    j = (k + 2) % 3
    u0, u1, u2 = axis(placed, r, i)
    v0, v1, v2 = axis(placed, r, j)
    hu = shapes.size[r, i]
    hv = shapes.size[r, j]
    hk = shapes.size[r, k]
    f, facing_cosine = facing(placed, o, m0, m1, m2)
    e = (f + 1) % 3
    g = (f + 2) % 3
    front = -1.0 if facing_cosine > 0.0 else 1.0
    x0, x1, x2 = axis(placed, o, f)
    h = front * shapes.size[o, f]
    x0 = placed.position[o, 0] + h * x0 - placed.position[r, 0]
    x1 = placed.position[o, 1] + h * x1 - placed.position[r, 1]
    x2 = placed.position[o, 2] + h * x2 - placed.position[r, 2]
    x = dot(x0, x1, x2, u0, u1, u2)
    y = dot(x0, x1, x2, v0, v1, v2)
    z = dot(x0, x1, x2, m0, m1, m2) - hk
    he = shapes.size[o, e]
    hg = shapes.size[o, g]
    x0, x1, x2 = axis(placed, o, e)
    ex = he * dot(x0, x1, x2, u0, u1, u2)
    ey = he * dot(x0, x1, x2, v0, v1, v2)
    ez = he * dot(x0, x1, x2, m0, m1, m2)
    x0, x1, x2 = axis(placed, o, g)
    gx = hg * dot(x0, x1, x2, u0, u1, u2)
    gy = hg * dot(x0, x1, x2, v0, v1, v2)
    gz = hg * dot(x0, x1, x2, m0, m1, m2)
    lowest = NOTHING
    for q in range(4):
        se = 1.0 if q == 0 or q == 3 else -1.0
        sg = 1.0 if q < 2 else -1.0
        px = x + se * ex + sg * gx
        py = y + se * ey + sg * gy
        pz = z + se * ez + sg * gz
        if q & 1:
            dx = -2.0 * sg * gx
            dy = -2.0 * sg * gy
            dz = -2.0 * sg * gz
            edge = edge_number(g, front, se)
        else:
            dx = -2.0 * se * ex
            dy = -2.0 * se * ey
            dz = -2.0 * se * ez
            edge = edge_number(e, sg, front)
        start, end, first, last = cut(px, py, dx, dy, hu + slack, hv + slack)
        if start > end:
            continue
        if start == 0.0:
            gap = max(pz / cosine, least)
            if gap < margin:
                feature = corner_feature(0 if swapped else 1, f, front, se, sg)
                add_on_face(placed, r, i, j, side, k, px, py, 0.5 * pz + hk, gap, n0, n1, n2, feature, manifold)
                lowest = min(lowest, gap)
        elif end < 1.0 or end - start > 1e-6:
            feature = edge_feature(swapped, side_edge(first, i, j, side), edge)
            gap = max((pz + start * dz) / cosine, least)
            if gap < margin and feature != without:
                zm = 0.5 * (pz + start * dz) + hk
                add_on_face(
                    placed, r, i, j, side, k, px + start * dx, py + start * dy, zm, gap, n0, n1, n2, feature, manifold
                )
                lowest = min(lowest, gap)
        if end < 1.0 and end - start > 1e-6:
            feature = edge_feature(swapped, side_edge(last, i, j, side), edge)
            gap = max((pz + end * dz) / cosine, least)
            if gap < margin and feature != without:
                zm = 0.5 * (pz + end * dz) + hk
                add_on_face(
                    placed, r, i, j, side, k, px + end * dx, py + end * dy, zm, gap, n0, n1, n2, feature, manifold
                )
                lowest = min(lowest, gap)
    area = ex * gy - ey * gx
    if abs(area) < 1e-200:
        return lowest
    for q in range(4):
        sx = 1.0 if q & 1 else -1.0
        sy = 1.0 if q & 2 else -1.0
        px = sx * hu - x
        py = sy * hv - y
        along_e = (px * gy - py * gx) / area
        along_g = (ex * py - ey * px) / area
        if abs(along_e) * he < he - slack and abs(along_g) * hg < hg - slack:
            pz = z + along_e * ez + along_g * gz
            gap = max(pz / cosine, least)
            if gap < margin:
                feature = corner_feature(1 if swapped else 0, k, side, sx, sy)
                add_on_face(
                    placed, r, i, j, side, k, sx * hu, sy * hv, 0.5 * pz + hk, gap, n0, n1, n2, feature, manifold
                )
                lowest = min(lowest, gap)
    return lowest


@inlined
def side_edge(line: Any, i: Any, j: Any, side: Any) -> Any:
    """The edge of a face (axes i, j, at `side` of the third) along its line: 0, 1 at the ends of i, 2, 3 of j."""
    end = 1.0 if line & 1 else -1.0
    if line < 2:
        return edge_number(j, side, end)
    return edge_number(i, end, side)


@inlined
def cut(px: Any, py: Any, dx: Any, dy: Any, hx: Any, hy: Any) -> Any:
    """What of p + t d, t in [0, 1], is in a rectangle: first and last t, and the lines they are on (side_edge)."""
    start = 0.0
    end = 1.0
    first = 0
    last = 0
    if abs(dx) > 1e-100:
        one = (-hx - px) / dx
        two = (hx - px) / dx
        back = dx < 0.0
        if back:
            one, two = two, one
        if one > start:
            start = one
            first = 1 if back else 0
        if two < end:
            end = two
            last = 0 if back else 1
    elif abs(px) > hx:
        end = -1.0
    if abs(dy) > 1e-100:
        one = (-hy - py) / dy
        two = (hy - py) / dy
        back = dy < 0.0
        if back:
            one, two = two, one
        if one > start:
            start = one
            first = 3 if back else 2
        if two < end:
            end = two
            last = 2 if back else 3
    elif abs(py) > hy:
        end = -1.0
    return start, end, first, last


@njit
def add_on_face(
    placed: Any,
    r: Any,
    i: Any,
    j: Any,
    side: Any,
    k: Any,
    x: Any,
    y: Any,
    z: Any,
    gap: Any,
    n0: Any,
    n1: Any,
    n2: Any,
    feature: Any,
    manifold: Any,
) -> None:
    """The contact at x, y, z along the axes i, j and, outwards, k of box r."""
    R = placed.rotation
    o = placed.position
    z *= side
    p0 = o[r, 0] + x * R[r, 0, i] + y * R[r, 0, j] + z * R[r, 0, k]
    p1 = o[r, 1] + x * R[r, 1, i] + y * R[r, 1, j] + z * R[r, 1, k]
    p2 = o[r, 2] + x * R[r, 2, i] + y * R[r, 2, j] + z * R[r, 2, k]
    add_contact(manifold, gap, p0, p1, p2, n0, n1, n2, feature)


# ------------------------------------------------------------------ edges


@inlined
def sign_along(placed: Any, s: Any, k: Any, n0: Any, n1: Any, n2: Any) -> Any:
    """Which end of axis k is farther along n."""
    x, y, z = axis(placed, s, k)
    return 1.0 if dot(x, y, z, n0, n1, n2) > 0.0 else -1.0


@njit
def middle_of_edge(shapes: Any, placed: Any, s: Any, k: Any, one: Any, two: Any) -> Any:
    """Of the edge along axis k, at the sides `one` and `two` of the axes after it."""
    i = (k + 1) % 3
    j = (k + 2) % 3
    R = placed.rotation
    hi = one * shapes.size[s, i]
    hj = two * shapes.size[s, j]
    x0, x1, x2 = centre(placed, s)
    x0 += hi * R[s, 0, i] + hj * R[s, 0, j]
    x1 += hi * R[s, 1, i] + hj * R[s, 1, j]
    x2 += hi * R[s, 2, i] + hj * R[s, 2, j]
    return x0, x1, x2


@njit
def add_edges(
    shapes: Any, placed: Any, a: Any, b: Any, i: Any, j: Any, gap: Any, margin: Any, size: Any, manifold: Any
) -> None:
    """The contact of the edges along axis i of a and j of b; if faces nearly lie on each other, theirs too."""
    u0, u1, u2 = axis(placed, a, i)
    v0, v1, v2 = axis(placed, b, j)
    n0 = u1 * v2 - u2 * v1
    n1 = u2 * v0 - u0 * v2
    n2 = u0 * v1 - u1 * v0
    across = dot(n0, n1, n2, n0, n1, n2)
    scale = 1.0 / sqrt(across)
    if between(placed, a, b, n0, n1, n2) < 0.0:
        scale = -scale
    n0 *= scale
    n1 *= scale
    n2 *= scale
    a1 = sign_along(placed, a, (i + 1) % 3, n0, n1, n2)
    a2 = sign_along(placed, a, (i + 2) % 3, n0, n1, n2)
    b1 = -sign_along(placed, b, (j + 1) % 3, n0, n1, n2)
    b2 = -sign_along(placed, b, (j + 2) % 3, n0, n1, n2)
    feature = edge_feature(False, edge_number(i, a1, a2), edge_number(j, b1, b2))
    x0, x1, x2 = middle_of_edge(shapes, placed, a, i, a1, a2)
    y0, y1, y2 = middle_of_edge(shapes, placed, b, j, b1, b2)
    d0 = y0 - x0
    d1 = y1 - x1
    d2 = y2 - x2
    k = dot(u0, u1, u2, v0, v1, v2)
    du = dot(d0, d1, d2, u0, u1, u2)
    dv = dot(d0, d1, d2, v0, v1, v2)
    s = (du - k * dv) / across
    t = (k * du - dv) / across
    ha = shapes.size[a, i]
    hb = shapes.size[b, j]
    beside = gap > 0.0 and max(abs(s) - ha, abs(t) - hb) > SAME * size
    if not beside:
        s = clamp(s, ha)
        t = clamp(t, hb)
        p0 = 0.5 * (x0 + s * u0 + y0 + t * v0)
        p1 = 0.5 * (x1 + s * u1 + y1 + t * v1)
        p2 = 0.5 * (x2 + s * u2 + y2 + t * v2)
        add_contact(manifold, gap, p0, p1, p2, n0, n1, n2, feature)
    of_a, cosine_a = facing(placed, a, n0, n1, n2)
    of_b, cosine_b = facing(placed, b, n0, n1, n2)
    lowest = NOTHING
    if max(abs(cosine_a), abs(cosine_b)) > FLAT:
        r = a if abs(cosine_a) >= abs(cosine_b) else b
        f = of_a if r == a else of_b
        without = -1 if beside else feature
        lowest = clip(shapes, placed, a, b, r, f, gap, n0, n1, n2, margin, SAME * size, without, manifold)
    if beside and lowest > gap + SAME * size:
        add_nearest(shapes, placed, a, b, gap, n0, n1, n2, margin, size, manifold)


# ------------------------------------------------------------------ corners


@inlined
def corner_of(shapes: Any, placed: Any, s: Any, q: Any) -> Any:
    """Corner q of a box: three bits, one per axis."""
    x0, x1, x2 = turned(
        placed,
        s,
        shapes.size[s, 0] if q & 1 else -shapes.size[s, 0],
        shapes.size[s, 1] if q & 2 else -shapes.size[s, 1],
        shapes.size[s, 2] if q & 4 else -shapes.size[s, 2],
    )
    return placed.position[s, 0] + x0, placed.position[s, 1] + x1, placed.position[s, 2] + x2


@njit
def corner_from_box(shapes: Any, placed: Any, a: Any, b: Any, feature: Any) -> Any:
    """A corner (0 to 7 of a, 8 to 15 of b), and how it is from the nearest point of the other box, world axes."""
    owner = a if feature < 8 else b
    other = b if feature < 8 else a
    x0, x1, x2 = corner_of(shapes, placed, owner, feature & 7)
    l0, l1, l2 = into(placed, other, x0, x1, x2)
    l0 -= clamp(l0, shapes.size[other, 0])
    l1 -= clamp(l1, shapes.size[other, 1])
    l2 -= clamp(l2, shapes.size[other, 2])
    e0, e1, e2 = turned(placed, other, l0, l1, l2)
    return x0, x1, x2, e0, e1, e2


@inlined
def add_corner(shapes: Any, placed: Any, a: Any, b: Any, feature: Any, margin: Any, manifold: Any) -> None:
    """The contact of a corner that is apart from the other box."""
    x0, x1, x2, e0, e1, e2 = corner_from_box(shapes, placed, a, b, feature)
    d = sqrt(dot(e0, e1, e2, e0, e1, e2))
    if d < margin:
        scale = (-1.0 if feature < 8 else 1.0) / d
        add_contact(
            manifold,
            d,
            x0 - 0.5 * e0,
            x1 - 0.5 * e1,
            x2 - 0.5 * e2,
            scale * e0,
            scale * e1,
            scale * e2,
            NEAREST + feature,
        )


@njit
def add_nearest(
    shapes: Any, placed: Any, a: Any, b: Any, gap: Any, n0: Any, n1: Any, n2: Any, margin: Any, size: Any, manifold: Any
) -> None:
    """The corner that is nearest to the other box, and of those as near the farthest from it: boxes along an edge.

    Where they overlap, or touch in a corner, so that it says nothing about the direction: the lowest corner along n.
    """
    best = 0
    least = NOTHING
    if gap > 0.0:
        for k in range(16):
            d = corner_distance(shapes, placed, a, b, k)
            if d < least - 1e-2 * SAME * size:
                least = d
                best = k
    if gap <= 0.0 or least <= NEAR * size:
        add_lowest(shapes, placed, a, b, gap, n0, n1, n2, manifold)
        return
    if least >= margin:
        return
    add_corner(shapes, placed, a, b, best, margin, manifold)
    y0, y1, y2, _, _, _ = corner_from_box(shapes, placed, a, b, best)
    second = -1
    apart = 1e-3 * size
    for k in range(16):
        if corner_distance(shapes, placed, a, b, k) <= least + 10.0 * SAME * size:
            x0, x1, x2, _, _, _ = corner_from_box(shapes, placed, a, b, k)
            away = sqrt(dot(x0 - y0, x1 - y1, x2 - y2, x0 - y0, x1 - y1, x2 - y2)) - 2.0 * least
            if away > apart:
                apart = away
                second = k
    if second >= 0:
        add_corner(shapes, placed, a, b, second, margin, manifold)


@inlined
def corner_distance(shapes: Any, placed: Any, a: Any, b: Any, feature: Any) -> Any:
    """Of a corner from the other box."""
    _, _, _, e0, e1, e2 = corner_from_box(shapes, placed, a, b, feature)
    return sqrt(dot(e0, e1, e2, e0, e1, e2))


@inlined
def add_lowest(shapes: Any, placed: Any, a: Any, b: Any, gap: Any, n0: Any, n1: Any, n2: Any, manifold: Any) -> None:
    """The contact of b's corner that is farthest in."""
    q = 0
    for k in range(3):
        q += (1 if sign_along(placed, b, k, n0, n1, n2) < 0.0 else 0) << k
    x0, x1, x2 = corner_of(shapes, placed, b, q)
    half = 0.5 * gap
    add_contact(manifold, gap, x0 - half * n0, x1 - half * n1, x2 - half * n2, n0, n1, n2, NEAREST + 8 + q)
