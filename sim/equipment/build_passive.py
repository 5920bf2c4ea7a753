"""Builds the Equipment arrays (arrays.py) of passive forces: gravity compensation, nonlinear springs, the medium.

Kernel-free.
"""

from __future__ import annotations

import math

import numpy as np

from artsim.sim.articulation.description import Articulation, FluidShape, Joint
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

_TINY = 1e-15  # MuJoCo's smallest mass of a body in a medium, and of a moment
# 15-point rule of Kronrod on [0, 1] (Piessens 1983), to 8 digits, as MuJoCo has it
_HALF_NODES = np.array([0.00427231, 0.02544604, 0.06756779, 0.12923441, 0.20695638, 0.29707742, 0.39610752])
_NODES = np.concatenate([_HALF_NODES, [0.5], 1 - _HALF_NODES[::-1]])
_HALF_WEIGHTS = [0.01146766, 0.03154605, 0.05239501, 0.07032663, 0.08450236, 0.09517529, 0.10221647]
_WEIGHTS = np.array([*_HALF_WEIGHTS, 0.10474107, *_HALF_WEIGHTS[::-1]])


def has_passive(articulation: Articulation) -> bool:
    """True if any passive force of this file acts, or a ball joint has a range."""
    medium = articulation.options.density > 0 or articulation.options.viscosity > 0
    weightless = any(link.gravity_compensation for link in articulation.links)
    joints = articulation.joints
    limited = any(joint.kind == "ball" and joint.upper is not None for joint in joints)
    damped = any(any(joint.damping_polynomial) for joint in joints)
    return medium or weightless or limited or damped or any(has_own_spring(joint) for joint in joints)


def has_own_spring(joint: Joint) -> bool:
    """True if the joint's spring is anything but a linear spring of one coordinate."""
    return any(joint.stiffness_polynomial) or (joint.kind in ("ball", "free") and joint.stiffness != 0)


def passive_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of all passive forces."""
    model = places.compiled.model
    moving = [joint for joint in articulation.joints if joint.kind != "fixed"]
    dofs = places.compiled.labels.joint_dofs
    by_actuator = np.zeros(len(model.dof_body), np.int64)
    for joint in moving:
        if joint.actuator_gravity_compensation:
            by_actuator[dofs[joint.name]] = 1
    dampers = [
        (k, joint.damping_polynomial)
        for joint in moving
        if any(joint.damping_polynomial)
        for k in range(dofs[joint.name].start, dofs[joint.name].stop)
    ]
    springs = [joint for joint in moving if has_own_spring(joint)]
    return {
        **_compensation(articulation, places),
        "gravity_by_actuator": by_actuator,
        "damper_dof": np.array([k for k, _ in dampers], np.int64),
        "damper_terms": np.array([terms for _, terms in dampers]).reshape(-1, 2),
        "spring_body": np.array([model.dof_body[dofs[joint.name].start] for joint in springs], np.int64),
        "spring_terms": np.array([(joint.stiffness, *joint.stiffness_polynomial) for joint in springs]).reshape(-1, 3),
        **_medium(articulation, places),
    }


def _compensation(articulation: Articulation, places: Places) -> dict[str, Array]:
    """Masses and first moments that gravity compensation carries, in the bodies' own frames; empty without any."""
    model = places.compiled.model
    nb = len(model.body_parent) if any(link.gravity_compensation for link in articulation.links) else 0
    mass, moment = np.zeros(nb), np.zeros((nb, 3))
    for n, link in enumerate(articulation.links):
        share = link.gravity_compensation * model.link_mass[n]
        if share:
            body = model.link_body[n]
            mass[body] += share
            moment[body] += share * (model.link_position[n] + model.link_rotation[n] @ model.link_com[n])
    return {"compensated_mass": mass, "compensated_moment": moment}


# ------------------------------------------------------------------ the medium


def _medium(articulation: Articulation, places: Places) -> dict[str, Array]:
    """Boxes and ellipsoids in the medium; a link with an ellipsoid has no box."""
    options = articulation.options
    boxes: list[tuple[int, Real, Real]] = []
    sizes: list[tuple[float, ...]] = []
    ellipsoids: list[tuple[int, Real, Real]] = []
    shapes: list[FluidShape] = []
    for link in articulation.links if options.density > 0 or options.viscosity > 0 else ():
        inertial = link.inertial
        if inertial is None or inertial.mass < _TINY:
            continue
        found = [geom.fluid for geom in link.geoms if geom.fluid is not None]
        if found:
            ellipsoids += [places.frame(link.name, shape.pose) for shape in found]
            shapes += found
        else:
            xx, _, _, yy, _, zz = inertial.inertia
            boxes.append(places.frame(link.name, inertial.pose))
            sums = (yy + zz - xx, xx + zz - yy, xx + yy - zz)
            sizes.append(tuple(math.sqrt(max(_TINY, part) / inertial.mass * 6.0) for part in sums))
    return {
        "medium": np.array([options.density, options.viscosity, *options.wind]),
        **_frames("box", boxes),
        "box_size": np.array(sizes).reshape(-1, 3),
        **_frames("ellipsoid", ellipsoids),
        "ellipsoid_axes": np.array([shape.axes for shape in shapes]).reshape(-1, 3),
        "ellipsoid_coefficients": np.array(
            [
                (shape.blunt_drag, shape.slender_drag, shape.angular_drag, shape.kutta_lift, shape.magnus_lift)
                for shape in shapes
            ]
        ).reshape(-1, 5),
        "ellipsoid_added": np.array([added_mass(shape.axes) for shape in shapes]).reshape(-1, 6),
    }


def _frames(name: str, frames: list[tuple[int, Real, Real]]) -> dict[str, Array]:
    return {
        f"{name}_body": np.array([body for body, _, _ in frames], np.int64),
        f"{name}_rotation": np.array([turn for _, turn, _ in frames]).reshape(-1, 3, 3),
        f"{name}_position": np.array([place for _, _, place in frames]).reshape(-1, 3),
    }


def added_mass(axes: tuple[float, float, float]) -> tuple[float, ...]:
    """Added mass (3) [m³] and inertia (3) [m⁵] per density of an ellipsoid in potential flow (Lamb 1932, art. 114)."""
    x, y, z = axes
    kx, ky, kz = _kappa(x, y, z), _kappa(y, z, x), _kappa(z, x, y)
    volume = 4.0 / 3.0 * math.pi * x * y * z
    linear = (volume * k / max(1e-14, 2.0 - k) for k in (kx, ky, kz))
    angular = (_added_inertia(y, z, ky, kz), _added_inertia(z, x, kz, kx), _added_inertia(x, y, kx, ky))
    return (*linear, *(volume / 5.0 * value for value in angular))


def _added_inertia(a: float, b: float, ka: float, kb: float) -> float:
    """Added inertia, per volume / 5, of the rotation that carries the semi-axis a into b."""
    difference, total = a * a - b * b, a * a + b * b
    return difference**2 * abs(kb - ka) / max(1e-14, abs(2.0 * difference + total * (ka - kb)))


def _kappa(x: float, y: float, z: float) -> float:
    """x y z ∫ dl / ((x² + l) √((x² + l) (y² + l) (z² + l))) over l from 0 to ∞, with l = s³ / (1 - s)² scaled."""
    scale = (x**3 * y * z) ** 0.4
    place = scale * _NODES**3 / (1 - _NODES) ** 2
    slope = scale * _NODES**2 * (3 - _NODES) / (1 - _NODES) ** 3
    a, b, c = 1 + place / x**2, 1 + place / y**2, 1 + place / z**2
    return float(np.sum(_WEIGHTS * slope / (a * np.sqrt(a * b * c)))) / x**2
