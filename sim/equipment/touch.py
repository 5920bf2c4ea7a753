"""Touch sensors: the sum of the normal forces of contacts whose lines of force meet a site's volume."""

from __future__ import annotations

from artsim.collision.ray import ray_primitive
from artsim.sim.articulation.kinematics import origin_of
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.mat3 import turned_back
from artsim.sim.foundation.records import Mat3, Vec3
from artsim.sim.foundation.vec3 import minus, row_of
from artsim.sim.geometry.contacts import ALONG_NORMAL, CONTACTS, ContactBundle


@njit
def touch(
    model: Model,
    data: Workspace,
    equipment: EquipmentBundle,
    n: int,
    frame: tuple[int, Mat3, Vec3],
    contact: ContactBundle,
) -> float:
    """Value of sensor n on this frame (body, rotation, place) [N].

    A contact of the site's link counts with its normal force if the ray from the contact point out of the link meets
    the volume, or the point lies in it.
    """
    body, R, d = frame
    o = origin_of(model, data, body)
    link = equipment.model.sensor_index[n]
    total = 0.0
    for k in range(contact.data.number[CONTACTS]):
        force = contact.data.force[k, ALONG_NORMAL]
        sign = 0.0
        if contact.model.link[contact.data.shape[k, 1]] == link:
            sign = -1.0
        elif contact.model.link[contact.data.shape[k, 0]] == link:
            sign = 1.0
        if force <= 0.0 or sign == 0.0:
            continue
        p = turned_back(R, minus(minus(row_of(contact.data.point, k), o), d))
        v = turned_back(
            R,
            (
                sign * contact.data.frame[k, ALONG_NORMAL, 0],
                sign * contact.data.frame[k, ALONG_NORMAL, 1],
                sign * contact.data.frame[k, ALONG_NORMAL, 2],
            ),
        )
        if ray_primitive(equipment.model.sensor_zone[n], equipment.model.sensor_size[n], p, v)[0] >= 0.0:
            total += force
    return total
