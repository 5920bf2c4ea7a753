"""Casts rays from rangefinders to the nearest surface. An entry of its own, which a step calls through its address."""

from __future__ import annotations

from artsim.collision.frames import along_axes, into, turned
from artsim.collision.ray import ray_shape
from artsim.collision.shapes import Placed, Shapes
from artsim.sim.articulation.kinematics import point_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import RAY_DISTANCE, EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.mat3 import set_rotation, turn_matrix
from artsim.sim.foundation.vec3 import put_at, set_row, triple, triple_at
from artsim.sim.geometry.contacts import Sights


@njit
def cast_rays(
    model: Model, data: Workspace, equipment: EquipmentBundle, sights: Sights, shapes: Shapes, placed: Placed
) -> None:
    """Set equipment.data.ray_hit of every ray in equipment.data.ray: the distance [m], -1 without a hit, and the normal
    of the surface hit, world axes.

    The ray's own link does not count. Needs kinematics.
    """
    for n in range(sights.body.shape[0]):
        _place(model, data, sights, placed, n)
    for ray in range(equipment.data.ray.shape[0]):
        a = equipment.data.ray[ray]
        best = -1.0
        for n in range(sights.body.shape[0]):
            if sights.link[n] == equipment.model.ray_link[ray]:
                continue
            p = into(placed, n, triple(a))
            v = along_axes(placed, n, triple_at(a, 3))
            s, n0, n1, n2 = ray_shape(shapes, n, sights.window[n], sights.floor[n], p, v)
            if s >= 0.0 and (best < 0.0 or s < best):
                best = s
                put_at(equipment.data.ray_hit[ray], 1, turned(placed, n, (n0, n1, n2)))
        equipment.data.ray_hit[ray, RAY_DISTANCE] = best


@njit
def _place(model: Model, data: Workspace, sights: Sights, placed: Placed, n: int) -> None:
    """Pose P of shape n."""
    set_row(placed.position, n, point_of(model, data, sights.body[n], sights.place[n]))
    set_rotation(placed.rotation, n, turn_matrix(data.rotation, sights.body[n], sights.turn[n]))
