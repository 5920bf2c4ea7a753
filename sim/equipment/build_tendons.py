"""Builds the Equipment arrays (arrays.py) of tendons and their equalities."""

from __future__ import annotations

import math

import numpy as np

from artsim.sim.articulation.description import IMPEDANCE, Articulation, Tendon, TendonCoupling, reference_of_softness
from artsim.sim.equipment.arrays import PATH_CYLINDER, PATH_JOINT, PATH_LOOP, PATH_PULLEY, PATH_SITE, PATH_SPHERE
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array


def tendon_arrays(articulation: Articulation, places: Places, site_body: Array) -> dict[str, Array]:
    """The arrays of paths, wrap geoms, limits, springs and equalities."""
    tendons = articulation.tendons
    wraps = [places.frame(geom.link, geom.pose) for geom in articulation.wrap_geoms]
    wrap_body = np.array([body for body, _, _ in wraps], np.int64)
    ends = _loop_ends(articulation, places)
    entries = [sorted(_dofs(tendon, places, site_body, wrap_body, ends)) for tendon in tendons]
    infinite = np.inf
    return {
        **_paths(articulation, places),
        "wrap_body": wrap_body,
        "wrap_link": np.array([places.links.get(geom.link, -1) for geom in articulation.wrap_geoms], np.int64),
        "wrap_rotation": np.array([turn for _, turn, _ in wraps]).reshape(-1, 3, 3),
        "wrap_position": np.array([place for _, _, place in wraps]).reshape(-1, 3),
        "wrap_radius": np.array([geom.radius for geom in articulation.wrap_geoms]),
        "tendon_entry": np.cumsum([0, *map(len, entries)]),
        "tendon_dof": np.array([k for dofs in entries for k in dofs], np.int64),
        "tendon_lower": np.array([-infinite if t.lower is None else t.lower for t in tendons]),
        "tendon_upper": np.array([infinite if t.upper is None else t.upper for t in tendons]),
        "tendon_stiffness": np.array([(t.stiffness, *t.stiffness_polynomial) for t in tendons]).reshape(-1, 3),
        "tendon_damping": np.array([(t.damping, *t.damping_polynomial) for t in tendons]).reshape(-1, 3),
        "tendon_spring": np.array([t.spring_length or (np.nan, np.nan) for t in tendons]).reshape(-1, 2),
        "tendon_friction": np.array([t.friction for t in tendons]),
        "tendon_armature": np.array([t.armature for t in tendons]),
        "tendon_force_lower": np.array([t.actuator_range[0] if t.actuator_range else -infinite for t in tendons]),
        "tendon_force_upper": np.array([t.actuator_range[1] if t.actuator_range else infinite for t in tendons]),
        "tendon_limit_spring": np.array([t.limit_spring or (0.0, 0.0) for t in tendons]).reshape(-1, 2),
        **_equalities(articulation, places),
    }


def _loop_ends(articulation: Articulation, places: Places) -> list[tuple[str, tuple[int, int]]]:
    """The active loops in the order of their arrays, each with its two bodies."""
    return [
        (loop.name, (places.frame(loop.link_a, loop.frame_a)[0], places.frame(loop.link_b, loop.frame_b)[0]))
        for loop in articulation.loops
        if loop.active
    ]


def _dofs(
    tendon: Tendon, places: Places, site_body: Array, wrap_body: Array, ends: list[tuple[str, tuple[int, int]]]
) -> set[int]:
    """The dofs that can change the tendon's length."""
    if tendon.kind == "fixed":
        return {places.first_dof(point.name) for point in tendon.path}
    found: set[int] = set()
    for point in tendon.path:
        if point.kind == "site":
            found |= places.dofs_of_body(int(site_body[places.sites[point.name]]))
        elif point.kind == "geom":
            found |= places.dofs_of_body(int(wrap_body[places.wraps[point.name]]))
        elif point.kind == "loop":
            found |= set[int]().union(*(places.dofs_of_body(body) for body in dict(ends)[point.name]))
    return found


def _paths(articulation: Articulation, places: Places) -> dict[str, Array]:
    wrap_kinds = {
        geom.name: PATH_SPHERE if geom.kind == "sphere" else PATH_CYLINDER for geom in articulation.wrap_geoms
    }
    loops = [name for name, _ in _loop_ends(articulation, places)]
    kind: list[int] = []
    index: list[int] = []
    value: list[float] = []
    side: list[int] = []
    for tendon in articulation.tendons:
        for point in tendon.path:
            value.append(point.value)
            side.append(places.sites[point.side_site] if point.side_site else -1)
            if point.kind == "joint":
                kind.append(PATH_JOINT)
                index.append(places.first_dof(point.name))
            elif point.kind == "site":
                kind.append(PATH_SITE)
                index.append(places.sites[point.name])
            elif point.kind == "geom":
                kind.append(wrap_kinds[point.name])
                index.append(places.wraps[point.name])
            elif point.kind == "loop":
                kind.append(PATH_LOOP)
                index.append(loops.index(point.name))
            else:
                kind.append(PATH_PULLEY)
                index.append(-1)
    return {
        "tendon_path": np.cumsum([0, *(len(tendon.path) for tendon in articulation.tendons)]),
        "path_kind": np.array(kind, np.int64),
        "path_index": np.array(index, np.int64),
        "path_value": np.array(value),
        "path_side": np.array(side, np.int64),
    }


def _equalities(articulation: Articulation, places: Places) -> dict[str, Array]:
    couplings = articulation.tendon_couplings
    polynomial = np.zeros((len(couplings), 5))
    for row, coupling in zip(polynomial, couplings, strict=True):
        row[: len(coupling.coefficients)] = coupling.coefficients
    return {
        "tendon_row_follower": np.array([places.tendons[c.follower] for c in couplings], np.int64),
        "tendon_row_leader": np.array([places.tendons[c.leader] if c.leader else -1 for c in couplings], np.int64),
        "tendon_row_polynomial": polynomial,
        "tendon_row_reference": np.array([_reference(c) for c in couplings]).reshape(-1, 3),
        "tendon_row_compliance": np.array(
            [-1.0 if c.compliance is None else c.compliance.compliance for c in couplings]
        ),
        "tendon_row_erp": np.array([-1.0 if c.erp is None else c.erp for c in couplings]),
        "tendon_row_impedance": np.array([_impedance(c) for c in couplings]).reshape(-1, 5),
    }


def _reference(coupling: TendonCoupling) -> tuple[float, float, float]:
    """The entry of tendon_row_reference: K and B; μ² and 2 ζ μ for a spring, 1 and the damping [s] for a compliance."""
    if coupling.compliance is not None:
        return 1.0, coupling.compliance.damping, 0.0
    if coupling.frequency is None:
        return reference_of_softness(coupling.softness)
    mu = 2.0 * math.pi * coupling.frequency
    return mu * mu, 2.0 * coupling.damping_ratio * mu, 0.0


def _impedance(coupling: TendonCoupling) -> tuple[float, ...]:
    sprung = coupling.frequency is not None or coupling.compliance is not None
    return (-1.0,) * 5 if sprung else coupling.softness.impedance or IMPEDANCE
