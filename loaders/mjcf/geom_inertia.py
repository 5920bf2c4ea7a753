"""Mass and inertia of MJCF geoms and of bodies made of them, as MuJoCo's compiler gives them.

A geom's inertia is principal in the geom's own frame, about its origin: MuJoCo moves the frame of a mesh geom to the
mesh's centre of mass and principal axes (mesh_inertia.py), so a mass and three moments are enough. Plain Python: a
robot without meshes does not pay for numpy. Errors are ValueErrors with the reason, without the place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from artsim.loaders.mjcf.orientation import from_z
from artsim.sim.articulation.description import Pose, Quaternion, Vector3
from artsim.sim.articulation.pose_algebra import multiply
from artsim.sim.foundation.dataclass import dataclass

TINY = 1e-14  # MuJoCo's mjEPS: smaller volumes and masses count as 0
# measured on MuJoCo 4.0, relative to the matrix's largest element: an off-diagonal element up to COUPLED is left, and
# moments that differ by up to EQUAL keep their order; MESH_COUPLED and MESH_EQUAL are wider
COUPLED, EQUAL = 4e-15, 1e-12
THOMSEN = 1.6075  # exponent of Thomsen's approximation to the area of an ellipsoid
SKIN = 1e-6  # thickness [m] of the skin whose inertia stands for that of an ellipsoid's shell


class GeomInertia(NamedTuple):
    """Mass [kg] and principal moments [kg m²] about the origin of the geom's frame, along its axes."""

    mass: float
    moments: Vector3


class BodyInertia(NamedTuple):
    """Mass [kg], the frame of its principal axes in the body's, and the moments along them [kg m²], largest first."""

    mass: float
    pose: Pose
    moments: Vector3


@dataclass(frozen=True, slots=True)
class MeshShape:
    """A mesh asset as MuJoCo centres it: on its centre of mass, along its principal axes."""

    pose: Pose  # of the centred frame in the frame of the file, after refpos, refquat and scale
    amount: float  # volume [m³]; area [m²] of a shell
    box: Vector3  # half sizes [m] of the box of equal inertia
    lower: Vector3  # bounds of the vertices in the centred frame [m]
    upper: Vector3
    closed: bool = True  # True if the faces enclose the volume


# --- geoms -----------------------------------------------------------------------------------------------------------


def geom_inertia(
    kind: str,
    size: Sequence[float],
    *,
    mass: float | None = None,
    density: float = 1000.0,
    shell: bool = False,
    mesh: MeshShape | None = None,
) -> GeomInertia:
    """Inertia of one geom in its own frame (for a mesh: in the frame that `mesh_geom_pose` gives).

    `size` [m] as in MJCF after fromto and fitting: sphere (radius,) · capsule and cylinder (radius, half length) ·
    ellipsoid semi-axes · box half sizes. `mass` [kg] overrides `density` [kg/m³]; with `shell` the mass lies in the
    surface and the density is in kg/m². Planes have no mass. Raises ValueError (negative mass or density, shell of a
    mesh geom, unknown kind).
    """
    if (mass is not None and mass < 0) or density < 0:
        raise ValueError("mass and density must not be negative")
    if kind == "plane":
        return GeomInertia(0.0, (0.0, 0.0, 0.0))
    if kind in ("mesh", "sdf"):
        if mesh is None:
            raise ValueError("a mesh geom needs its mesh")
        if shell:
            raise ValueError("shellinertia of a mesh geom is set by inertia='shell' of the mesh")
        amount, moments = mesh.amount, box_moments(mesh.box)
    elif kind in SHAPES:
        amount, moments = SHAPES[kind](size, shell)
    else:
        raise ValueError(f"no inertia of geom type {kind!r}")
    given = density * amount if mass is None else mass
    return GeomInertia(given, scaled(given, moments))


def is_tiny(kind: str, size: Sequence[float], shell: bool) -> bool:
    """True if a shape has so little volume or surface that MuJoCo gives it no mass, even if the file does."""
    return kind in SHAPES and SHAPES[kind](size, shell)[0] <= TINY


def scaled(factor: float, vector: Vector3) -> Vector3:
    """factor · vector."""
    return (factor * vector[0], factor * vector[1], factor * vector[2])


Amount = tuple[float, Vector3]  # volume [m³] or area [m²], and moments per mass [m²]


def sphere(size: Sequence[float], shell: bool) -> Amount:
    """Radius r."""
    r = size[0]
    if shell:
        return 4 * math.pi * r**2, (2 * r**2 / 3,) * 3
    return 4 * math.pi * r**3 / 3, (2 * r**2 / 5,) * 3


def capsule(size: Sequence[float], shell: bool) -> Amount:
    """Radius r, half length a of the cylinder between two half balls whose centres of mass lie d above its ends."""
    r, a = size[0], size[1]
    if shell:
        caps, tube, d = 4 * math.pi * r**2, 4 * math.pi * r * a, r / 2
        of_caps, of_tube_across, of_tube_along = 2 * r**2 / 3, r**2 / 2 + a**2 / 3, r**2
    else:
        caps, tube, d = 4 * math.pi * r**3 / 3, 2 * math.pi * r**2 * a, 3 * r / 8
        of_caps, of_tube_across, of_tube_along = 2 * r**2 / 5, r**2 / 4 + a**2 / 3, r**2 / 2
    total = caps + tube
    if total <= 0:
        return 0.0, (0.0, 0.0, 0.0)
    share = caps / total
    across = (1 - share) * of_tube_across + share * (of_caps + (a + d) ** 2 - d**2)
    along = (1 - share) * of_tube_along + share * of_caps
    return total, (across, across, along)


def cylinder(size: Sequence[float], shell: bool) -> Amount:
    """Radius r, half length a. A shell is closed by two discs."""
    r, a = size[0], size[1]
    if not shell:
        across = r**2 / 4 + a**2 / 3
        return 2 * math.pi * r**2 * a, (across, across, r**2 / 2)
    discs, tube = 2 * math.pi * r**2, 4 * math.pi * r * a
    total = discs + tube
    if total <= 0:
        return 0.0, (0.0, 0.0, 0.0)
    share = discs / total
    across = (1 - share) * (r**2 / 2 + a**2 / 3) + share * (r**2 / 4 + a**2)
    along = (1 - share) * r**2 + share * r**2 / 2
    return total, (across, across, along)


def ellipsoid(size: Sequence[float], shell: bool) -> Amount:
    """Semi-axes. A shell's area is Thomsen's approximation, its inertia that of a thin skin between two ellipsoids."""
    a, b, c = size[:3]
    solid = 4 * math.pi * a * b * c / 3
    inner = spread(a, b, c, 1 / 5)
    if not shell:
        return solid, inner
    area = 4 * math.pi * (((a * b) ** THOMSEN + (b * c) ** THOMSEN + (c * a) ** THOMSEN) / 3) ** (1 / THOMSEN)
    outer = spread(a + SKIN, b + SKIN, c + SKIN, 1 / 5)
    swollen = 4 * math.pi * (a + SKIN) * (b + SKIN) * (c + SKIN) / 3
    # MuJoCo's formula, digit for digit: the difference cancels digits, so the order of operations must be the same
    density = 1 / (swollen - solid)
    x, y, z = (swollen * density * o - solid * density * i for o, i in zip(outer, inner, strict=True))
    return area, (x, y, z)


def box(size: Sequence[float], shell: bool) -> Amount:
    """Half sizes. A shell is six faces; each pair of faces has the share of the mass that its area has."""
    a, b, c = size[:3]
    if not shell:
        return 8 * a * b * c, spread(a, b, c, 1 / 3)
    area = 8 * (a * b + b * c + c * a)
    if area <= 0:
        return 0.0, (0.0, 0.0, 0.0)
    xy, yz, zx = 8 * a * b / area, 8 * b * c / area, 8 * c * a / area
    xx = (yz + xy + 3 * zx) * b**2 / 3 + (yz + zx + 3 * xy) * c**2 / 3
    yy = (zx + xy + 3 * yz) * a**2 / 3 + (yz + zx + 3 * xy) * c**2 / 3
    zz = (zx + xy + 3 * yz) * a**2 / 3 + (yz + xy + 3 * zx) * b**2 / 3
    return area, (xx, yy, zz)


def spread(a: float, b: float, c: float, factor: float) -> Vector3:
    """factor · (b² + c², a² + c², a² + b²)."""
    return (factor * (b**2 + c**2), factor * (a**2 + c**2), factor * (a**2 + b**2))


def box_moments(half: Vector3) -> Vector3:
    """Moments per mass [m²] of a solid box."""
    return spread(*half, 1 / 3)


SHAPES = {"sphere": sphere, "capsule": capsule, "cylinder": cylinder, "ellipsoid": ellipsoid, "box": box}


def fromto_geom(kind: str, size: Sequence[float], ends: Sequence[float]) -> tuple[tuple[float, ...], Pose]:
    """Size and pose of a geom given by fromto = (x1 y1 z1 x2 y2 z2) [m]; size[0] is its radius or half width.

    The z axis points from the second end to the first, as in MuJoCo. Raises ValueError (kind, ends too close).
    """
    if kind not in ("capsule", "cylinder", "ellipsoid", "box"):
        raise ValueError(f"fromto fits capsule, cylinder, ellipsoid and box, not {kind}")
    x1, y1, z1, x2, y2, z2 = ends
    dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
    length = math.hypot(dx, dy, dz)
    if length / 2 < TINY:
        raise ValueError("the points of fromto coincide")
    middle = ((x1 + x2) / 2, (y1 + y2) / 2, (z1 + z2) / 2)
    rotation = from_z((dx / length, dy / length, dz / length))
    thin = (size[0], length / 2) if kind in ("capsule", "cylinder") else (size[0], size[0], length / 2)
    return thin, Pose(middle, rotation)


# --- bodies ----------------------------------------------------------------------------------------------------------


def body_inertia(parts: Sequence[tuple[GeomInertia, Pose]]) -> BodyInertia | None:
    """Inertia of a body from its geoms and their poses in it; None when none of them has mass.

    The caller selects the geoms by inertiagrouprange. A single geom keeps its own frame and order of moments.
    """
    massive = [(part, pose) for part, pose in parts if part.mass > TINY]
    if not massive:
        return None
    if len(massive) == 1:
        (mass, moments), pose = massive[0]
        return BodyInertia(mass, pose, moments)
    mass = sum(part.mass for part, _ in massive)
    x, y, z = (sum(part.mass * pose.position[i] for part, pose in massive) / mass for i in range(3))
    total = [[0.0] * 3 for _ in range(3)]
    for part, pose in massive:
        px, py, pz = pose.position
        add_turned(total, part.moments, pose.rotation)
        add_point(total, part.mass, (px - x, py - y, pz - z))
    moments, rotation = principal_axes(total)
    if moments[2] < TINY:
        raise ValueError("the inertia has a moment that is not positive")
    return BodyInertia(mass, Pose((x, y, z), rotation), moments)


Matrix = list[list[float]]


def add_turned(total: Matrix, moments: Vector3, rotation: Quaternion) -> None:
    """total += R diag(moments) Rᵀ."""
    R = rotation_rows(rotation)
    for i in range(3):
        for j in range(3):
            total[i][j] += sum(R[i][k] * moments[k] * R[j][k] for k in range(3))


def add_point(total: Matrix, mass: float, d: Vector3) -> None:
    """total += the inertia of a point mass at d (parallel axis theorem)."""
    square = d[0] ** 2 + d[1] ** 2 + d[2] ** 2
    for i in range(3):
        for j in range(3):
            total[i][j] += mass * ((square if i == j else 0.0) - d[i] * d[j])


def rotation_rows(quaternion: Quaternion) -> Matrix:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]


def principal_axes(
    matrix: Sequence[Sequence[float]], coupled: float = COUPLED, equal: float = EQUAL
) -> tuple[Vector3, Quaternion]:
    """Moments, largest first, and the rotation to their axes, of a symmetric 3 x 3 matrix.

    The choice of rotations, the signs and the thresholds are MuJoCo's: another method would permute or reverse the axes
    of a mesh.
    """
    scale = max(abs(element) for row in matrix for element in row)
    q: Quaternion = (1.0, 0.0, 0.0, 0.0)
    for _ in range(500):
        D = turned_back(matrix, q)
        i, j = largest_off_diagonal(D)
        if abs(D[i][j]) <= coupled * scale:
            break
        tau = (D[j][j] - D[i][i]) / (2 * D[i][j])
        tangent = math.copysign(1.0, tau) / (abs(tau) + math.hypot(1.0, tau)) if tau else 1.0
        angle = math.atan(tangent)
        axis = 3 - i - j
        q = normalised(multiply(q, turn(axis, angle if axis == 1 else -angle)))
    return largest_first(turned_back(matrix, q), q, equal * scale)


def turned_back(matrix: Sequence[Sequence[float]], q: Quaternion) -> Matrix:
    """Rᵀ matrix R."""
    R = rotation_rows(q)
    half = [[sum(R[k][i] * matrix[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    return [[sum(half[i][k] * R[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def largest_off_diagonal(D: Matrix) -> tuple[int, int]:
    """Row and column of the largest off-diagonal element; the last of equal ones."""
    xy, xz, yz = abs(D[0][1]), abs(D[0][2]), abs(D[1][2])
    if xy > xz and xy > yz:
        return 0, 1
    return (0, 2) if xz > yz else (1, 2)


def turn(axis: int, angle: float) -> Quaternion:
    """The rotation about a coordinate axis by an angle [rad]."""
    vector = [0.0, 0.0, 0.0]
    vector[axis] = math.sin(angle / 2)
    return (math.cos(angle / 2), vector[0], vector[1], vector[2])


def largest_first(D: Matrix, q: Quaternion, equal: float) -> tuple[Vector3, Quaternion]:
    """The diagonal in descending order (differences up to `equal` are ignored), the axes permuted by quarter turns."""
    moments = [D[0][0], D[1][1], D[2][2]]
    for first in (0, 1, 0):
        if moments[first] + equal < moments[first + 1]:
            moments[first : first + 2] = moments[first + 1], moments[first]
            q = normalised(multiply(q, turn((first + 2) % 3, math.pi / 2)))
    return (moments[0], moments[1], moments[2]), q


def normalised(q: Quaternion) -> Quaternion:
    """q / |q|."""
    norm = math.hypot(*q)
    return (q[0] / norm, q[1] / norm, q[2] / norm, q[3] / norm)
