"""Builds the equipment of an articulation as arrays (arrays.py) from the build_*.py files. Kernel-free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Compiled
from artsim.sim.equipment.arrays import WRENCH, Equipment, EquipmentLabels, Equipped
from artsim.sim.equipment.build_actuators import acting, actuator_arrays, forces_of
from artsim.sim.equipment.build_link_wrenches import LinkWrench, link_wrench_arrays
from artsim.sim.equipment.build_loops import loop_arrays
from artsim.sim.equipment.build_passive import has_passive, passive_arrays
from artsim.sim.equipment.build_sensors import sensor_arrays, sensor_labels
from artsim.sim.equipment.build_tendons import tendon_arrays
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array, kinds
from artsim.sim.foundation.rotations import Real


def equip(articulation: Articulation, compiled: Compiled, wrenches: tuple[LinkWrench, ...] = ()) -> Equipped | None:
    """Build the equipment of an articulation compiled to `compiled`, and of links on which wrenches act in a run; None
    for a robot without any."""
    places = Places(
        compiled,
        {name: n for n, name in enumerate(compiled.labels.links)},
        {site.name: n for n, site in enumerate(articulation.sites)},
        {tendon.name: n for n, tendon in enumerate(articulation.tendons)},
        {geom.name: n for n, geom in enumerate(articulation.wrap_geoms)},
        {actuator.name: n for n, (actuator, _) in reversed(list(enumerate(forces_of(articulation))))},
    )
    if not _is_equipped(articulation) and not wrenches:
        return None
    sites = _site_arrays(articulation, places)
    tendons = tendon_arrays(articulation, places, sites["site_body"])
    arrays = {
        "reference": compiled.reference,
        "relaxed": _relaxed(articulation, compiled),
        **sites,
        **tendons,
        **loop_arrays(articulation, places),
        **passive_arrays(articulation, places),
        **actuator_arrays(articulation, places, sites["site_body"], tendons),
        **sensor_arrays(articulation, places),
        **link_wrench_arrays(wrenches, places),
    }
    for bound, value in (("control_lower", -np.inf), ("control_upper", np.inf)):
        arrays[bound] = np.append(arrays[bound], np.full(WRENCH * len(wrenches), value))
    labels = labels_of(articulation)
    labels = replace(labels, controls=(*labels.controls, *(name for wrench in wrenches for name in wrench.controls)))
    frozen = {name: _frozen(arrays[name], kind.dtype) for name, kind in kinds(Equipment).items()}
    return Equipped(Equipment(**frozen), labels)


def _relaxed(articulation: Articulation, compiled: Compiled) -> Real:
    """Coordinates (nq,) at which every joint of one dof is at its spring reference."""
    q = compiled.reference.copy()
    for joint in articulation.joints:
        coords = compiled.labels.joint_coords.get(joint.name)
        if coords is not None and coords.stop - coords.start == 1:
            q[coords] = joint.spring_reference
    return q


def _is_equipped(articulation: Articulation) -> bool:
    return bool(
        articulation.tendons
        or acting(articulation)
        or any(loop.active for loop in articulation.loops)
        or articulation.sensors
        or has_passive(articulation)
    )


def _site_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    frames = [places.frame(site.link, site.pose) for site in articulation.sites]
    n = len(frames)
    return {
        "site_body": np.array([body for body, _, _ in frames], np.int64),
        "site_link": np.array([places.links.get(site.link, -1) for site in articulation.sites], np.int64),
        "site_rotation": np.array([turn for _, turn, _ in frames]).reshape(n, 3, 3),
        "site_position": np.array([place for _, _, place in frames]).reshape(n, 3),
    }


def labels_of(articulation: Articulation) -> EquipmentLabels:
    """The names of an articulation's equipment."""
    sensors, units = sensor_labels(articulation)
    actuators = acting(articulation)
    forces = tuple(actuator.name + suffix for actuator in actuators for suffix in actuator.outputs)
    controls = tuple(
        actuator.name if len(actuator.inputs) == 1 else f"{actuator.name}.{name}"
        for actuator in actuators
        for name in actuator.inputs
    )
    activations = tuple(
        actuator.name if actuator.activation_size == 1 else f"{actuator.name}.{k}"
        for actuator in actuators
        for k in range(actuator.activation_size)
    )
    return EquipmentLabels(
        tendons=tuple(tendon.name for tendon in articulation.tendons),
        actuators=forces,
        controls=controls,
        activations=activations,
        loops=tuple(loop.name for loop in articulation.loops if loop.active),
        sites=tuple(site.name for site in articulation.sites),
        sensors=sensors,
        sensor_units=units,
    )


def _frozen(array: object, dtype: type[np.generic]) -> Array:
    made: Array = np.array(array, dtype, order="C")
    made.setflags(write=False)
    return made
