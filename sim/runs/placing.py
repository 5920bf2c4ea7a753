"""The initial poses of free bodies: given poses, or heights at which they stand on the ground."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE, Shapes
from artsim.sim.articulation.model import FREE, Labels, Model
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.errors import SettingError, nearest
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import Touching
from artsim.sim.runs.settings import Place

_WALL = 0.1  # cosine of a plane's normal to the vertical below which no body stands on the plane


def place_bases(model: Model, labels: Labels, q: Real, given: Mapping[str, Place]) -> None:
    """Write the given poses of free bodies into coordinates q (nq,), which keep their rotation where only a position is
    given. Raises SettingError for a name that no free body has."""
    free = _free_bodies(model, labels)
    for name, place in given.items():
        body = _found(name, free, model, labels)
        start = int(model.body_coord[body])
        q[start : start + 3] = place[:3]
        if len(place) > 3:
            q[start + 3 : start + 7] = quaternion_from_rpy(*place[3:])


def stand_on_ground(model: Model, labels: Labels, q: Real, touching: Touching | None, gap: float) -> None:
    """Move the free bodies of the world, in coordinates q (nq,), straight up or down until the lowest shape of each
    body and its descendants is `gap` [m] above the planes that it may touch.

    Raises SettingError without a free body, or without a plane that one of its shapes may touch.
    """
    roots = [body for body in _free_bodies(model, labels).values() if model.body_parent[body] == 0]
    if not roots:
        raise SettingError("--on-ground moves a free base, which this robot has not (--base floating)", "on_ground")
    lifts = {} if touching is None else _lifts(model, q, touching, gap)
    found = [body for body in roots if body in lifts]
    if not found:
        told = "--on-ground: no shape of the robot may touch a ground (--ground adds one; missing meshes are no shapes)"
        raise SettingError(told, "on_ground")
    for body in found:
        q[model.body_coord[body] + 2] += lifts[body]


def _lifts(model: Model, q: Real, touching: Touching, gap: float) -> dict[int, float]:
    """The heights by which bodies on the world, with their descendants, are to rise [m], by body."""
    contacts, shapes = touching.contacts, touching.shapes
    rotation, origin = body_poses(model, q)
    turn = rotation[contacts.body] @ contacts.turn
    place = origin[contacts.body] + np.einsum("nij,nj->ni", rotation[contacts.body], contacts.place)
    planes = [int(n) for n in contacts.plane if contacts.body[n] == 0 and turn[n][2, 2] > _WALL]
    root = _roots(model)
    lifts: dict[int, float] = {}
    for n in np.flatnonzero((contacts.body > 0) & (shapes.kind != PLANE)):
        for plane in planes:
            if contacts.allowed[n, plane] >= 0:
                normal = turn[plane][:, 2]
                clear = normal @ (place[n] - place[plane]) - _support(shapes, int(n), -normal @ turn[n])
                body = int(root[contacts.body[n]])
                lifts[body] = max(lifts.get(body, -math.inf), float((gap - clear) / normal[2]))
    return lifts


def _roots(model: Model) -> list[int]:
    """The body on the world that carries each body."""
    root = [0]
    for body in range(1, len(model.body_parent)):
        above = int(model.body_parent[body])
        root.append(body if above == 0 else root[above])
    return root


def _support(shapes: Shapes, n: int, direction: Real) -> float:
    """The reach of shape n from its origin along a unit vector in its own axes [m]."""
    kind, size = shapes.kind[n], shapes.size[n]
    along, across = abs(direction[2]), math.hypot(direction[0], direction[1])
    if kind == SPHERE:
        reach = size[0]
    elif kind == CAPSULE:
        reach = size[0] + along * size[1]
    elif kind == CYLINDER:
        reach = size[0] * across + size[1] * along
    elif kind == ELLIPSOID:
        reach = np.linalg.norm(size * direction)
    elif kind == BOX or shapes.mesh[n] < 0:
        reach = np.abs(direction) @ size
    else:
        start, end = shapes.vertex_start[shapes.mesh[n] : shapes.mesh[n] + 2]
        reach = (shapes.vertex[start:end] @ direction).max()
    return float(reach)


def _free_bodies(model: Model, labels: Labels) -> dict[str, int]:
    """The bodies on free joints, by joint name."""
    body_of = {int(coord): body for body, coord in enumerate(model.body_coord[:-1]) if body > 0}
    joints = ((name, body_of.get(coords.start, 0)) for name, coords in labels.joint_coords.items())
    return {name: body for name, body in joints if model.joint_type[body] == FREE}


def _found(name: str, free: Mapping[str, int], model: Model, labels: Labels) -> int:
    """The free body of a joint or link, or the only one for an empty name."""
    if not free:
        raise SettingError("--base-pose: this robot has no free base (--base floating, --place)", "base_pose", name)
    if name in free:
        return free[name]
    if name == "" and len(free) == 1:
        return next(iter(free.values()))
    if name == "":
        raise SettingError(f"--base-pose is of which body? Give NAME=…; there are {', '.join(free)}", "base_pose")
    if name in labels.links:
        body = int(model.link_body[labels.links.index(name)])
        if body in free.values():
            return body
    raise SettingError(f"--base-pose: {name!r} is no free body{nearest(name, free)}", "base_pose", name)
