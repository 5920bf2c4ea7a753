"""First hit of a ray p + s v, s >= 0, with a shape: closed forms (Ericson 2005, ch. 5.3), meshes by their trees.

All vectors are in the shape's axes, with v of unit length. A result is s [m] and the outward normal there; s is -1
without a hit. Rays from inside hit the surface too. The rules are MuJoCo's: a plane is seen from above only and ends
with its rendered rectangle; a height field consists of its surface, its walls and a box below it.
"""

from __future__ import annotations

import math

from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, PLANE, SPHERE, TRIANGLES, Shapes
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import ConstReals1, Vec3, Vec4, Vector
from artsim.sim.foundation.vec3 import cross, dot, length, minus, plus_times, times

_FAR = 1e300
_LEVEL = 1e-15  # smaller components of a direction count as zero
_RIM = 1e-12  # tolerance of a triangle's edges, so that no ray passes between two triangles
_MISSED = (-1.0, 0.0, 0.0, 0.0)


@njit
def ray_shape(shapes: Shapes, n: int, window: ConstReals1, floor: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with shape n of any kind; window: half sizes of a plane, 0: infinite; floor: z of a field's base."""
    kind = shapes.kind[n]
    if kind == PLANE:
        return ray_plane(window, p, v)
    if _passes_by(p, v, shapes.reach[n]):
        return _MISSED
    if kind == TRIANGLES:
        return ray_triangles(shapes, shapes.mesh[n], p, v)
    if kind == HEIGHT_FIELD:
        return ray_height_field(shapes, n, floor, p, v)
    return ray_primitive(kind, shapes.size[n], p, v)


@njit
def ray_primitive(kind: int, size: ConstReals1, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a sphere, capsule, ellipsoid, cylinder or box; sizes as in Shapes."""
    if kind == SPHERE:
        return ray_ellipsoid(size[0], size[0], size[0], p, v)
    if kind == ELLIPSOID:
        return ray_ellipsoid(size[0], size[1], size[2], p, v)
    if kind == CAPSULE:
        return ray_capsule(size[0], size[1], p, v)
    if kind == CYLINDER:
        return ray_cylinder(size[0], size[1], p, v)
    if kind == BOX:
        return ray_box(size[0], size[1], size[2], p, v)
    return _MISSED


@njit
def is_inside(kind: int, size: ConstReals1, p: Vec3) -> bool:
    """True if a point is within a sphere, capsule, ellipsoid, cylinder or box."""
    x, y, z = p
    if kind == ELLIPSOID:
        x, y, z = x / size[0], y / size[1], z / size[2]
        return bool(x * x + y * y + z * z < 1.0)
    if kind == BOX:
        return bool(abs(x) < size[0] and abs(y) < size[1] and abs(z) < size[2])
    if kind == CYLINDER:
        return bool(x * x + y * y < size[0] * size[0] and abs(z) < size[1])
    if kind == CAPSULE:
        z -= min(max(z, -size[1]), size[1])
    return bool(x * x + y * y + z * z < size[0] * size[0])


# ------------------------------------------------------------------ closed forms


@inlined
def _passes_by(p: Vec3, v: Vec3, radius: float) -> bool:
    """True if the ray misses the ball about the origin."""
    along = dot(p, v)
    outside = dot(p, p) - radius * radius * (1.0 + _RIM)
    return outside > 0.0 and (along > 0.0 or along * along < outside)


@inlined
def _first(low: float, high: float) -> float:
    """The first end of an interval that lies ahead, or -1."""
    s = low if low >= 0.0 else high
    return s if low <= high and s >= 0.0 else -1.0


@inlined
def _between(p: float, v: float, half: float) -> tuple[float, float]:
    """The interval of the ray in which a coordinate is between -half and half; from > to: empty."""
    low, high = _FAR, -_FAR
    if abs(v) > _LEVEL:
        low = min((-half - p) / v, (half - p) / v)
        high = max((-half - p) / v, (half - p) / v)
    elif abs(p) <= half:
        low, high = -_FAR, _FAR
    return low, high


@inlined
def _in_ball(p: Vec3, v: Vec3) -> tuple[float, float]:
    """The interval of the ray p + s v inside the unit ball (or the unit disc, with third components 0)."""
    a, b, c = dot(v, v), dot(p, v), dot(p, p) - 1.0
    low, high = _FAR, -_FAR
    if a <= _LEVEL * _LEVEL:
        if c <= 0.0:
            low, high = -_FAR, _FAR
    elif b * b - a * c >= 0.0:
        root = math.sqrt(b * b - a * c)
        low, high = (-b - root) / a, (-b + root) / a
    return low, high


@inlined
def _with_normal(s: float, n: Vec3) -> Vec4:
    size = length(n)
    scale = 1.0 / size if size > 0.0 else 0.0
    return s, scale * n[0], scale * n[1], scale * n[2]


@njit
def ray_plane(window: ConstReals1, p: Vec3, v: Vec3) -> Vec4:
    """First hit from above with the plane z = 0, or with its rectangle of half sizes `window` where these are not 0."""
    if v[2] > -_LEVEL or p[2] < 0.0:
        return _MISSED
    s = -p[2] / v[2]
    x, y = p[0] + s * v[0], p[1] + s * v[1]
    if (window[0] > 0.0 and abs(x) > window[0]) or (window[1] > 0.0 and abs(y) > window[1]):
        return _MISSED
    return s, 0.0, 0.0, 1.0


@njit
def ray_ellipsoid(a: float, b: float, c: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with an ellipsoid of these semi-axes."""
    low, high = _in_ball((p[0] / a, p[1] / b, p[2] / c), (v[0] / a, v[1] / b, v[2] / c))
    s = _first(low, high)
    if s < 0.0:
        return _MISSED
    x, y, z = plus_times(p, s, v)
    return _with_normal(s, (x / (a * a), y / (b * b), z / (c * c)))


@njit
def ray_cylinder(radius: float, half: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a cylinder along z."""
    r = 1.0 / radius
    low, high = _in_ball((p[0] * r, p[1] * r, 0.0), (v[0] * r, v[1] * r, 0.0))
    begin, end = _between(p[2], v[2], half)
    s = _first(max(low, begin), min(high, end))
    if s < 0.0:
        return _MISSED
    if s == begin or s == end:
        return s, 0.0, 0.0, 1.0 if (v[2] > 0.0) == (s == end) else -1.0
    return _with_normal(s, (p[0] + s * v[0], p[1] + s * v[1], 0.0))


@njit
def ray_capsule(radius: float, half: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a capsule along z, the convex union of a cylinder and two balls."""
    r = 1.0 / radius
    low, high = _in_ball((p[0] * r, p[1] * r, 0.0), (v[0] * r, v[1] * r, 0.0))
    begin, end = _between(p[2], v[2], half)
    low, high = max(low, begin), min(high, end)
    if low > high:
        low, high = _FAR, -_FAR
    begin, end = _in_ball((p[0] * r, p[1] * r, (p[2] - half) * r), times(r, v))
    low, high = min(low, begin), max(high, end)
    begin, end = _in_ball((p[0] * r, p[1] * r, (p[2] + half) * r), times(r, v))
    s = _first(min(low, begin), max(high, end))
    if s < 0.0:
        return _MISSED
    x, y, z = plus_times(p, s, v)
    return _with_normal(s, (x, y, z - min(max(z, -half), half)))


@njit
def ray_box(a: float, b: float, c: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a box of these half sizes."""
    x0, x1 = _between(p[0], v[0], a)
    y0, y1 = _between(p[1], v[1], b)
    z0, z1 = _between(p[2], v[2], c)
    s = _first(max(x0, max(y0, z0)), min(x1, min(y1, z1)))
    if s < 0.0:
        return _MISSED
    if s == x0 or s == x1:
        return s, 1.0 if (v[0] > 0.0) == (s == x1) else -1.0, 0.0, 0.0
    if s == y0 or s == y1:
        return s, 0.0, 1.0 if (v[1] > 0.0) == (s == y1) else -1.0, 0.0
    return s, 0.0, 0.0, 1.0 if (v[2] > 0.0) == (s == z1) else -1.0


# ------------------------------------------------------------------ triangles


@njit
def ray_triangles(shapes: Shapes, mesh: int, p: Vec3, v: Vec3) -> Vec4:
    """First hit with either side of a mesh's triangles; the normal is that of the counter-clockwise side."""
    best = _MISSED
    node = shapes.node_start[mesh]
    last = shapes.node_start[mesh + 1]
    while node < last:
        if not _meets_box(shapes.node_box[node], p, v, best[0]):
            node = shapes.node_skip[node]
            continue
        for t in range(shapes.node_triangle[node, 0], shapes.node_triangle[node, 1]):
            T = shapes.triangle[t]
            found = ray_triangle(shapes.vertex[T[0]], shapes.vertex[T[1]], shapes.vertex[T[2]], p, v)
            if found[0] >= 0.0 and (best[0] < 0.0 or found[0] < best[0]):
                best = found
        node += 1
    return best


@inlined
def _meets_box(box: ConstReals1, p: Vec3, v: Vec3, before: float) -> bool:
    """True if the ray hits the box, and before a given distance unless that is negative."""
    low, high = 0.0, _FAR if before < 0.0 else before
    for k in range(3):
        if abs(v[k]) > _LEVEL:
            a = (box[k] - p[k]) / v[k]
            b = (box[k + 3] - p[k]) / v[k]
            low = max(low, min(a, b))
            high = min(high, max(a, b))
        elif p[k] < box[k] or p[k] > box[k + 3]:
            low = _FAR
    return low <= high * (1.0 + _RIM) + _LEVEL


@njit
def ray_triangle(a: Vector, b: Vector, c: Vector, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a triangle (Möller and Trumbore 1997)."""
    e, f = minus(b, a), minus(c, a)
    n = cross(e, f)
    steep = dot(v, n)
    if steep * steep <= _LEVEL * _LEVEL * dot(n, n):
        return _MISSED
    d = minus(a, p)
    across = cross(d, v)
    first = dot(f, across) / steep
    second = -dot(e, across) / steep
    s = dot(d, n) / steep
    if s < 0.0 or first < -_RIM or second < -_RIM or first + second > 1.0 + _RIM:
        return _MISSED
    return _with_normal(s, n)


# ------------------------------------------------------------------ height fields


@njit
def ray_height_field(shapes: Shapes, n: int, floor: float, p: Vec3, v: Vec3) -> Vec4:
    """First hit with a height field: surface, walls, and the box below z = floor."""
    x, y, z = shapes.size[n, 0], shapes.size[n, 1], shapes.size[n, 2]
    half = 0.5 * (floor + z)
    best = ray_box(x, y, half, (p[0], p[1], p[2] - 0.5 * (floor - z)), v)
    low, high = _above(p, v, x, y, floor, z)
    if low > high:
        return best
    best = _nearer(best, _surface(shapes, n, p, v, low, high))
    for side in range(4):
        best = _nearer(best, _wall(shapes, n, floor, p, v, side))
    return best


@inlined
def _nearer(a: Vec4, b: Vec4) -> Vec4:
    return b if b[0] >= 0.0 and (a[0] < 0.0 or b[0] < a[0]) else a


@inlined
def _above(p: Vec3, v: Vec3, x: float, y: float, floor: float, top: float) -> tuple[float, float]:
    """The interval of the ray inside the bounding box of the surface."""
    a, b = _between(p[0], v[0], x)
    c, d = _between(p[1], v[1], y)
    e, f = _between(p[2] - 0.5 * (floor + top), v[2], 0.5 * (top - floor))
    return max(max(a, 0.0), max(c, e)), min(b, min(d, f))


@njit
def _surface(shapes: Shapes, n: int, p: Vec3, v: Vec3, low: float, high: float) -> Vec4:
    """First hit with the triangles of the cells under the ray between two distances, row by row."""
    f = shapes.mesh[n]
    rows, columns = shapes.field_shape[f, 0], shapes.field_shape[f, 1]
    x, y = shapes.size[n, 0], shapes.size[n, 1]
    dx, dy = 2.0 * x / (columns - 1), 2.0 * y / (rows - 1)
    best = _MISSED
    first, last = _cells(p[1] + low * v[1] + y, p[1] + high * v[1] + y, dy, rows)
    for r in range(first, last):
        begin, end = low, high
        if abs(v[1]) > _LEVEL:  # while the ray is over this row and a little of its neighbours
            a = ((r - 0.01) * dy - y - p[1]) / v[1]
            b = ((r + 1.01) * dy - y - p[1]) / v[1]
            begin, end = max(low, min(a, b)), min(high, max(a, b))
        left, right = _cells(p[0] + begin * v[0] + x, p[0] + end * v[0] + x, dx, columns)
        for c in range(left, right):
            at = shapes.field_start[f] + r * columns + c
            e = shapes.elevation
            x0, y0 = c * dx - x, r * dy - y
            a = (x0, y0, e[at])
            b = (x0 + dx, y0 + dy, e[at + columns + 1])
            best = _nearer(best, ray_triangle(a, (x0 + dx, y0, e[at + 1]), b, p, v))
            best = _nearer(best, ray_triangle(a, b, (x0, y0 + dy, e[at + columns]), p, v))
    return best


@inlined
def _cells(a: float, b: float, width: float, points: int) -> tuple[int, int]:
    """The range of cells between two distances from the field's edge, with one more on both sides."""
    low = math.floor(min(a, b) / width) - 1
    high = math.floor(max(a, b) / width) + 2
    return max(low, 0), min(high, points - 1)


@njit
def _wall(shapes: Shapes, n: int, floor: float, p: Vec3, v: Vec3, side: int) -> Vec4:
    """First hit with one of the four walls (low x, high x, low y, high y) between floor and surface."""
    f = shapes.mesh[n]
    rows, columns = shapes.field_shape[f, 0], shapes.field_shape[f, 1]
    across = side // 2  # the axis orthogonal to the wall
    along = 1 - across
    out = 1.0 if side % 2 == 1 else -1.0
    if abs(v[across]) <= _LEVEL:
        return _MISSED
    s = (out * shapes.size[n, across] - p[across]) / v[across]
    points = rows if across == 0 else columns
    place = (p[along] + s * v[along] + shapes.size[n, along]) / (2.0 * shapes.size[n, along]) * (points - 1)
    if s < 0.0 or place < 0.0 or place > points - 1.0:
        return _MISSED
    k = min(int(place), points - 2)
    step = columns if across == 0 else 1
    at = shapes.field_start[f] + k * step
    if side == 1:
        at += columns - 1
    elif side == 3:
        at += (rows - 1) * columns
    height = shapes.elevation[at] * (k + 1 - place) + shapes.elevation[at + step] * (place - k)
    z = p[2] + s * v[2]
    if z < floor or z >= height:
        return _MISSED
    return s, out if across == 0 else 0.0, out if across == 1 else 0.0, 0.0
