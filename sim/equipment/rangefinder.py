"""Rangefinders: the first hit of a ray along the z axis of a site, which ray_casting.py finds."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import origin_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import RAY_DISTANCE, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Mat3, Vec3


@inlined
def aim(model: Model, data: Workspace, equipment: EquipmentBundle, ray: int, frame: tuple[int, Mat3, Vec3]) -> None:
    """Set equipment.data.ray from the origin of this frame (body, rotation, place) along its z axis."""
    body, R, d = frame
    o = origin_of(model, data, body)
    for k in range(3):
        equipment.data.ray[ray, k] = o[k] + d[k]
        equipment.data.ray[ray, 3 + k] = R[3 * k + 2]


@njit
def rangefinder(equipment: EquipmentBundle, n: int) -> None:
    """Write the outputs of sensor n, those requested of MuJoCo's dist, dir, origin, point, normal and depth.

    Without a hit distance and depth are -1, directions and points 0.
    """
    ray = equipment.model.sensor_ray[n]
    data = equipment.model.sensor_data[n]
    at = equipment.model.sensor_first[n]
    s = equipment.data.ray_hit[ray, RAY_DISTANCE]
    if data & 1:
        equipment.data.sensor[at] = s
        at += 1
    for word in range(1, 5):
        if (data >> word) & 1:
            for k in range(3):
                value = equipment.data.ray[ray, k]
                if word == 1:
                    value = equipment.data.ray[ray, 3 + k]
                elif word == 3:
                    value += s * equipment.data.ray[ray, 3 + k]
                elif word == 4:
                    value = equipment.data.ray_hit[ray, 1 + k]
                equipment.data.sensor[at + k] = value if s >= 0.0 or word == 2 else 0.0
            at += 3
    if data & 32:
        equipment.data.sensor[at] = s
