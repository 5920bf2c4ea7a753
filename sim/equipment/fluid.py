"""Fluid forces of a medium at rest or in wind on moving bodies: MuJoCo's two models (computation chapter).

Box: each link is the box of its inertia, with the Stokes drag of a sphere of mean size and quadratic drag of the faces.
Ellipsoid: geoms that ask for it are ellipsoids with added mass (Lamb 1932), Magnus and Kutta lift, and drag that weighs
the projected against the largest area. Both models work about their own centre, in their own axes.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import DENSITY, VISCOSITY, WIND_X, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.mat3 import plus_turned, turn, turn_matrix, turned, turned_back
from artsim.sim.foundation.records import ConstReals1, ConstReals2, Mat3, Vec3
from artsim.sim.foundation.spatial import add_pair, pair_of, velocity_at
from artsim.sim.foundation.vec3 import cross, dot, minus, plus, plus_times, times, triple_at

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
        force = plus(force, _lift(equipment.model.medium[DENSITY], axes, drag, v, o))
        f, t = _drag(equipment.model.medium[DENSITY], equipment.model.medium[VISCOSITY], axes, drag, v, o)
        _add_wrench(data, equipment.model.ellipsoid_body[n], R, r, plus(force, f), plus(torque, t))


@inlined
def _motion(
    data: Workspace, equipment: EquipmentBundle, body: int, L: ConstReals2, p: ConstReals1
) -> tuple[Vec3, Vec3, Mat3, Vec3]:
    """Velocity relative to the wind and angular velocity in the frame's axes; the frame's rotation and arm."""
    R = turn_matrix(data.rotation, body, L)
    r = turn(data.rotation, body, p)
    V = pair_of(data.velocity, data.angular_velocity, body)
    u = minus(velocity_at(V, r), triple_at(equipment.model.medium, WIND_X))
    return turned_back(R, u), turned_back(R, V[1]), R, r


@inlined
def _add_wrench(data: Workspace, body: int, R: Mat3, r: Vec3, force: Vec3, torque: Vec3) -> None:
    """Add a force at the frame's origin and a torque, both in the frame's axes, to the body's wrench."""
    f = turned(R, force)
    add_pair(data.force, data.torque, body, (f, plus_turned(cross(r, f), R, torque)))


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
    p = (density * added[0] * v[0], density * added[1] * v[1], density * added[2] * v[2])
    L = (density * added[3] * o[0], density * added[4] * o[1], density * added[5] * o[2])
    return cross(p, o), plus(cross(p, v), cross(L, o))


@inlined
def _projection(axes: ConstReals1, v: Vec3) -> tuple[Vec3, float, float]:
    """For an ellipsoid seen along v: the unscaled normal of its outline, and the two sums that give its area."""
    n = ((axes[1] * axes[2]) ** 2 * v[0], (axes[2] * axes[0]) ** 2 * v[1], (axes[0] * axes[1]) ** 2 * v[2])
    return n, dot(n, v), dot(n, n)


@inlined
def _lift(density: float, axes: ConstReals1, drag: ConstReals1, v: Vec3, o: Vec3) -> Vec3:
    """Magnus force of a spin across the flow, and Kutta lift of a body inclined to it."""
    n, above, below = _projection(axes, v)
    area = math.pi * math.sqrt(below / max(_TINY, above))
    cosine = above / max(_TINY, math.sqrt(dot(v, v)) * below)
    volume = 4.0 / 3.0 * math.pi * axes[0] * axes[1] * axes[2]
    magnus = drag[4] * density * volume
    kutta = drag[3] * density * cosine * area
    return plus_times(times(magnus, cross(o, v)), kutta, cross(cross(n, v), v))


@inlined
def _drag(
    density: float, viscosity: float, axes: ConstReals1, drag: ConstReals1, v: Vec3, o: Vec3
) -> tuple[Vec3, Vec3]:
    """Linear and quadratic drag; drag[0] weighs the area across the flow, drag[1] the rest of the largest section."""
    largest = max(axes[0], max(axes[1], axes[2]))
    smallest = min(axes[0], min(axes[1], axes[2]))
    middle = axes[0] + axes[1] + axes[2] - largest - smallest
    _, above, below = _projection(axes, v)
    area = math.pi * math.sqrt(below / max(_TINY, above))
    rest = math.pi * largest * middle - area
    diameter = 2.0 / 3.0 * (axes[0] + axes[1] + axes[2])
    speed = math.sqrt(dot(v, v))
    force = viscosity * 3.0 * math.pi * diameter + density * speed * (drag[0] * area + drag[1] * rest)
    most = 8.0 / 15.0 * math.pi * middle * largest**4
    s = (
        _spin_drag(axes[0], axes[1], axes[2], drag, most) * o[0],
        _spin_drag(axes[1], axes[2], axes[0], drag, most) * o[1],
        _spin_drag(axes[2], axes[0], axes[1], drag, most) * o[2],
    )
    torque = viscosity * math.pi * diameter**3 + density * math.sqrt(dot(s, s))
    return times(-force, v), times(-torque, o)


@inlined
def _spin_drag(a: float, b: float, c: float, drag: ConstReals1, most: float) -> float:
    """Coefficient of the drag that slows the spin about the semi-axis a."""
    own = 8.0 / 15.0 * math.pi * a * max(b, c) ** 4
    return drag[2] * own + drag[1] * (most - own)
