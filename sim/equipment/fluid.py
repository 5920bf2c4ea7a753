"""Fluid forces of a medium at rest or in wind on moving bodies: MuJoCo's two models (computation chapter).

Box: each link is the box of its inertia, with the Stokes drag of a sphere of mean size and quadratic drag of the faces.
Ellipsoid: geoms that ask for it are ellipsoids with added mass (Lamb 1932), Magnus and Kutta lift, and drag that weighs
the projected against the largest area. Both models work about their own centre, in their own axes.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import DENSITY, VISCOSITY, WIND_X, WIND_Y, WIND_Z, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import ConstReals1, ConstReals2, Mat3, Vec3
from artsim.sim.foundation.vec3 import cross, turn

_TINY = 1e-300


@njit
def fluid_wrenches(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """Add to data.force, data.torque (nb, 3) the wrenches on all bodies about their origins, world axes."""
    for n in range(equipment.model.box_body.shape[0]):
        v, o, R, r = _motion(
            data,
            equipment,
            equipment.model.box_body[n],
            equipment.model.box_rotation[n],
            equipment.model.box_position[n],
        )
        force, torque = _box_wrench(
            equipment.model.medium[DENSITY], equipment.model.medium[VISCOSITY], equipment.model.box_size[n], v, o
        )
        _add_wrench(data, equipment.model.box_body[n], R, r, force, torque)
    for n in range(equipment.model.ellipsoid_body.shape[0]):
        v, o, R, r = _motion(
            data,
            equipment,
            equipment.model.ellipsoid_body[n],
            equipment.model.ellipsoid_rotation[n],
            equipment.model.ellipsoid_position[n],
        )
        axes = equipment.model.ellipsoid_axes[n]
        drag = equipment.model.ellipsoid_coefficients[n]
        force, torque = _added_mass(equipment.model.medium[DENSITY], equipment.model.ellipsoid_added[n], v, o)
        force = _sum(force, _lift(equipment.model.medium[DENSITY], axes, drag, v, o))
        f, t = _drag(equipment.model.medium[DENSITY], equipment.model.medium[VISCOSITY], axes, drag, v, o)
        _add_wrench(data, equipment.model.ellipsoid_body[n], R, r, _sum(force, f), _sum(torque, t))


@inlined
def _sum(a: Vec3, b: Vec3) -> Vec3:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inlined
def _motion(
    data: Workspace, equipment: EquipmentBundle, body: int, L: ConstReals2, p: ConstReals1
) -> tuple[Vec3, Vec3, Mat3, Vec3]:
    """Velocity relative to the wind and angular velocity in the frame's axes; the frame's rotation (9) and arm (3)."""
    a0, a1, a2 = turn(data.rotation, body, L[0, 0], L[1, 0], L[2, 0])
    b0, b1, b2 = turn(data.rotation, body, L[0, 1], L[1, 1], L[2, 1])
    c0, c1, c2 = turn(data.rotation, body, L[0, 2], L[1, 2], L[2, 2])
    r0, r1, r2 = turn(data.rotation, body, p[0], p[1], p[2])
    o = data.angular_velocity[body]
    t0, t1, t2 = cross(o[0], o[1], o[2], r0, r1, r2)
    u0 = data.velocity[body, 0] + t0 - equipment.model.medium[WIND_X]
    u1 = data.velocity[body, 1] + t1 - equipment.model.medium[WIND_Y]
    u2 = data.velocity[body, 2] + t2 - equipment.model.medium[WIND_Z]
    return (
        (a0 * u0 + a1 * u1 + a2 * u2, b0 * u0 + b1 * u1 + b2 * u2, c0 * u0 + c1 * u1 + c2 * u2),
        (
            a0 * o[0] + a1 * o[1] + a2 * o[2],
            b0 * o[0] + b1 * o[1] + b2 * o[2],
            c0 * o[0] + c1 * o[1] + c2 * o[2],
        ),
        (a0, b0, c0, a1, b1, c1, a2, b2, c2),
        (r0, r1, r2),
    )


@inlined
def _add_wrench(data: Workspace, body: int, R: Mat3, r: Vec3, force: Vec3, torque: Vec3) -> None:
    """Add a force at the frame's origin and a torque, both in the frame's axes, to the body's wrench."""
    f0 = R[0] * force[0] + R[1] * force[1] + R[2] * force[2]
    f1 = R[3] * force[0] + R[4] * force[1] + R[5] * force[2]
    f2 = R[6] * force[0] + R[7] * force[1] + R[8] * force[2]
    t0, t1, t2 = cross(r[0], r[1], r[2], f0, f1, f2)
    data.force[body, 0] += f0
    data.force[body, 1] += f1
    data.force[body, 2] += f2
    data.torque[body, 0] += t0 + R[0] * torque[0] + R[1] * torque[1] + R[2] * torque[2]
    data.torque[body, 1] += t1 + R[3] * torque[0] + R[4] * torque[1] + R[5] * torque[2]
    data.torque[body, 2] += t2 + R[6] * torque[0] + R[7] * torque[1] + R[8] * torque[2]


# ------------------------------------------------------------------ the box of a link's inertia


@inlined
def _box_wrench(density: float, viscosity: float, size: ConstReals1, v: Vec3, o: Vec3) -> tuple[Vec3, Vec3]:
    """Force and torque on a box of full sides `size` (3,), in its axes."""
    a = size[0]
    b = size[1]
    c = size[2]
    diameter = (a + b + c) / 3.0
    stokes = 3.0 * math.pi * diameter * viscosity
    spin = math.pi * diameter**3 * viscosity
    half = 0.5 * density
    part = density / 64.0
    return (
        (
            -(stokes + half * b * c * abs(v[0])) * v[0],
            -(stokes + half * a * c * abs(v[1])) * v[1],
            -(stokes + half * a * b * abs(v[2])) * v[2],
        ),
        (
            -(spin + part * a * (b**4 + c**4) * abs(o[0])) * o[0],
            -(spin + part * b * (a**4 + c**4) * abs(o[1])) * o[1],
            -(spin + part * c * (a**4 + b**4) * abs(o[2])) * o[2],
        ),
    )


# ------------------------------------------------------------------ ellipsoids


@inlined
def _added_mass(density: float, added: ConstReals1, v: Vec3, o: Vec3) -> tuple[Vec3, Vec3]:
    """Force and torque of the added mass at zero acceleration (Kirchhoff's equations)."""
    p0 = density * added[0] * v[0]
    p1 = density * added[1] * v[1]
    p2 = density * added[2] * v[2]
    f0, f1, f2 = cross(p0, p1, p2, o[0], o[1], o[2])
    s0, s1, s2 = cross(p0, p1, p2, v[0], v[1], v[2])
    t0, t1, t2 = cross(
        density * added[3] * o[0], density * added[4] * o[1], density * added[5] * o[2], o[0], o[1], o[2]
    )
    return (f0, f1, f2), (s0 + t0, s1 + t1, s2 + t2)


@inlined
def _projection(axes: ConstReals1, v: Vec3) -> tuple[float, ...]:
    """For an ellipsoid seen along v: the unscaled normal of its outline (3), and the two sums that give its area."""
    n0 = (axes[1] * axes[2]) ** 2 * v[0]
    n1 = (axes[2] * axes[0]) ** 2 * v[1]
    n2 = (axes[0] * axes[1]) ** 2 * v[2]
    above = n0 * v[0] + n1 * v[1] + n2 * v[2]
    below = n0 * n0 + n1 * n1 + n2 * n2
    return n0, n1, n2, above, below


@inlined
def _lift(density: float, axes: ConstReals1, drag: ConstReals1, v: Vec3, o: Vec3) -> Vec3:
    """Magnus force of a spin across the flow, and Kutta lift of a body inclined to it."""
    n0, n1, n2, above, below = _projection(axes, v)
    area = math.pi * math.sqrt(below / max(_TINY, above))
    cosine = above / max(_TINY, math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) * below)
    volume = 4.0 / 3.0 * math.pi * axes[0] * axes[1] * axes[2]
    magnus = drag[4] * density * volume
    kutta = drag[3] * density * cosine * area
    m0, m1, m2 = cross(o[0], o[1], o[2], v[0], v[1], v[2])
    c0, c1, c2 = cross(n0, n1, n2, v[0], v[1], v[2])
    k0, k1, k2 = cross(c0, c1, c2, v[0], v[1], v[2])
    return magnus * m0 + kutta * k0, magnus * m1 + kutta * k1, magnus * m2 + kutta * k2


@inlined
def _drag(
    density: float, viscosity: float, axes: ConstReals1, drag: ConstReals1, v: Vec3, o: Vec3
) -> tuple[Vec3, Vec3]:
    """Linear and quadratic drag; drag[0] weighs the area across the flow, drag[1] the rest of the largest section."""
    largest = max(axes[0], max(axes[1], axes[2]))
    smallest = min(axes[0], min(axes[1], axes[2]))
    middle = axes[0] + axes[1] + axes[2] - largest - smallest
    _, _, _, above, below = _projection(axes, v)
    area = math.pi * math.sqrt(below / max(_TINY, above))
    rest = math.pi * largest * middle - area
    diameter = 2.0 / 3.0 * (axes[0] + axes[1] + axes[2])
    speed = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    force = viscosity * 3.0 * math.pi * diameter + density * speed * (drag[0] * area + drag[1] * rest)
    most = 8.0 / 15.0 * math.pi * middle * largest**4
    s0 = _spin_drag(axes[0], axes[1], axes[2], drag, most) * o[0]
    s1 = _spin_drag(axes[1], axes[2], axes[0], drag, most) * o[1]
    s2 = _spin_drag(axes[2], axes[0], axes[1], drag, most) * o[2]
    torque = viscosity * math.pi * diameter**3 + density * math.sqrt(s0 * s0 + s1 * s1 + s2 * s2)
    return (-force * v[0], -force * v[1], -force * v[2]), (-torque * o[0], -torque * o[1], -torque * o[2])


@inlined
def _spin_drag(a: float, b: float, c: float, drag: ConstReals1, most: float) -> float:
    """Coefficient of the drag that slows the spin about the semi-axis a."""
    own = 8.0 / 15.0 * math.pi * a * max(b, c) ** 4
    return drag[2] * own + drag[1] * (most - own)
