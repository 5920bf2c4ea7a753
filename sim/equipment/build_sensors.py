"""Builds the Equipment arrays (arrays.py) of an articulation's sensors."""

from __future__ import annotations

import numpy as np

from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from artsim.sim.articulation.description import (
    REDUCTIONS,
    SENSOR_DATA,
    SENSOR_KINDS,
    Articulation,
    Inertial,
    Pose,
    Sensor,
)
from artsim.sim.equipment.arrays import (
    ANY_VALUE,
    ANYTHING,
    AT_LEAST_ZERO,
    OF_GEOM,
    OF_LINK,
    OF_SUBTREE,
    OF_UNIT_LENGTH,
    SENSORS,
)
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, rotation_matrix
from artsim.sim.geometry.collision_pairs import tangible_geoms

Frame = tuple[int, Real, Real]
_RANGES = {
    **dict.fromkeys(("touch", "rangefinder"), AT_LEAST_ZERO),
    **dict.fromkeys(("ballquat", "framequat", "framexaxis", "frameyaxis", "framezaxis"), OF_UNIT_LENGTH),
}


def sensor_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of the sensors: frames of their objects and references, and indices of objects without a frame."""
    sensors = articulation.sensors
    frames = _Frames(articulation, places)
    objects = [frames.of(sensor.object_kind, sensor.object) for sensor in sensors]
    references = [frames.of(sensor.reference_kind, sensor.reference) for sensor in sensors]
    outputs = [len(sensor.outputs) for sensor in sensors]
    bounded = [sensor.cutoff if SENSOR_KINDS[sensor.kind].clamped else 0.0 for sensor in sensors]
    return {
        "sensor_kind": np.array([SENSORS[sensor.kind] for sensor in sensors], np.int64),
        "sensor_first": np.cumsum([0, *outputs]),
        "sensor_index": np.array([_index(sensor, frames, places) for sensor in sensors], np.int64),
        "sensor_body": np.array([frame[0] for frame in (*objects, *references)], np.int64).reshape(2, -1),
        "sensor_referred": np.array([int(bool(sensor.reference)) for sensor in sensors], np.int64),
        "sensor_rotation": np.array([frame[1] for frame in (*objects, *references)]).reshape(-1, 3, 3),
        "sensor_position": np.array([frame[2] for frame in (*objects, *references)]).reshape(-1, 3),
        "sensor_cutoff": np.array([cutoff or np.inf for cutoff in bounded]),
        "sensor_noise": np.array([sensor.noise for sensor in sensors], float),
        "sensor_range": np.array([_range_of(sensor) for sensor in sensors], np.int64),
        **_zones(articulation),
        **_contact_arrays(articulation, places),
        **_ray_arrays(articulation, frames),
        "magnetic": np.array(articulation.options.magnetic),
    }


def _range_of(sensor: Sensor) -> int:
    """The values that noise leaves possible: a rangefinder that outputs vectors may have any."""
    return (
        ANY_VALUE if sensor.kind == "rangefinder" and sensor.data != ("dist",) else _RANGES.get(sensor.kind, ANY_VALUE)
    )


_ZONES = {"sphere": SPHERE, "ellipsoid": ELLIPSOID, "capsule": CAPSULE, "cylinder": CYLINDER, "box": BOX}


def _zones(articulation: Articulation) -> dict[str, Array]:
    """The volumes of the sites of touch and contact sensors."""
    sites = {site.name: site for site in articulation.sites}
    count = len(articulation.sensors)
    zone, size = np.full(count, -1, np.int64), np.ones((count, 3))
    for n, sensor in enumerate(articulation.sensors):
        if sensor.kind in ("touch", "contact") and sensor.object_kind == "site":
            site = sites[sensor.object]
            zone[n], size[n] = _ZONES[site.kind], site.size
    return {"sensor_zone": zone, "sensor_size": size}


_SIDES = {"geom": OF_GEOM, "body": OF_LINK, "subtree": OF_SUBTREE}


def _contact_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of contact sensors: the contacts that they match, and the data that they output."""
    sensors = articulation.sensors
    geoms = {geom.name: n for n, (_, geom) in enumerate(tangible_geoms(articulation))}
    side, number = np.full((2, len(sensors)), ANYTHING, np.int64), np.zeros((2, len(sensors)), np.int64)
    for n, sensor in enumerate(sensors):
        ends = (sensor.object_kind, sensor.object), (sensor.reference_kind, sensor.reference)
        for end, (kind, name) in enumerate(ends if sensor.kind == "contact" else ()):
            if kind in _SIDES:
                side[end, n] = _SIDES[kind]
                number[end, n] = geoms.get(name, -1) if kind == "geom" else places.links[name]
    words = {kind: {word: 1 << k for k, word in enumerate(data)} for kind, data in SENSOR_DATA.items()}
    return {
        "sensor_side": side,
        "sensor_number": number,
        "sensor_reduction": np.array([REDUCTIONS.index(sensor.reduction) for sensor in sensors], np.int64),
        "sensor_slots": np.array([sensor.slots for sensor in sensors], np.int64),
        "sensor_data": np.array([sum(words[s.kind][word] for word in s.data) for s in sensors], np.int64),
    }


def _ray_arrays(articulation: Articulation, frames: _Frames) -> dict[str, Array]:
    """The rays of rangefinders, one for each."""
    owners = [n for n, sensor in enumerate(articulation.sensors) if sensor.kind == "rangefinder"]
    links = [frames.link("site", articulation.sensors[n].object) for n in owners]
    ray = np.full(len(articulation.sensors), -1, np.int64)
    ray[owners] = np.arange(len(owners))
    return {
        "sensor_ray": ray,
        "ray_sensor": np.array(owners, np.int64),
        "ray_link": np.array(links, np.int64),
    }


def sensor_labels(articulation: Articulation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name and unit of every output of every sensor."""
    names: list[str] = []
    units: list[str] = []
    linear = {joint.name for joint in articulation.joints if joint.kind == "prismatic"}
    for sensor in articulation.sensors:
        slides = sensor.object in linear
        by_joint = {
            "{position}": "m" if slides else "rad",
            "{velocity}": "m/s" if slides else "rad/s",
            "{force}": "N" if slides else "N m",
        }
        names += [sensor.name + suffix for suffix, _ in sensor.outputs]
        units += [by_joint.get(unit, unit) for _, unit in sensor.outputs]
    return tuple(names), tuple(units)


class _Frames:
    """Frames of sites, geoms and links by name, and the links that carry them."""

    def __init__(self, articulation: Articulation, places: Places) -> None:
        self.places = places
        self.found: dict[tuple[str, str], tuple[str, Pose]] = {("", ""): ("", Pose())}
        for site in articulation.sites:
            self.found["site", site.name] = site.link, site.pose
        for link in articulation.links:
            self.found["xbody", link.name] = link.name, Pose()
            self.found["body", link.name] = link.name, _inertial_frame(link.inertial)
            for geom in link.geoms:
                self.found["geom", geom.name] = link.name, geom.pose

    def of(self, kind: str, name: str) -> Frame:
        """The frame relative to its body; the world frame for an object without one."""
        link, pose = self.found.get((kind, name), ("", Pose()))
        return self.places.frame(link, pose)

    def link(self, kind: str, name: str) -> int:
        """The link that carries the object."""
        return self.places.links.get(self.found[kind, name][0], 0)


def _inertial_frame(inertial: Inertial | None) -> Pose:
    """MuJoCo's frame of a body: at the centre of mass, along the principal axes, the largest moment first."""
    if inertial is None:
        return Pose()
    xx, xy, xz, yy, yz, zz = inertial.inertia
    if not (xy or xz or yz):
        return inertial.pose
    from artsim.sim.foundation.rotations import quaternion

    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    _, axes = np.linalg.eigh(tensor)
    axes = axes[:, ::-1]
    axes[:, 2] *= np.linalg.det(axes)
    turned = rotation_matrix(inertial.pose.rotation) @ axes
    w, x, y, z = (float(number) for number in quaternion(turned))
    return Pose(inertial.pose.position, (w, x, y, z))


def _index(sensor: Sensor, frames: _Frames, places: Places) -> int:
    """The index of the sensor's first dof, tendon, actuator or link."""
    if sensor.object_kind == "joint":
        return places.first_dof(sensor.object)
    if sensor.object_kind == "tendon":
        return places.tendons[sensor.object]
    if sensor.object_kind == "actuator":
        return places.actuators[sensor.object]
    if sensor.kind == "contact" and sensor.object_kind != "site":
        return 0
    return frames.link(sensor.object_kind, sensor.object) if sensor.object_kind else 0
