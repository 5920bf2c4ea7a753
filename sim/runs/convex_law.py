"""The softness of constraints under the convex contact law, where MuJoCo's defaults stand for what a file leaves out.

Contacts, limits, dry friction and equalities of an MJCF file are all soft in MuJoCo; elsewhere they are hard where the
file gives no softness.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.compile_model import joint_mobilities
from artsim.sim.articulation.description import (
    IMPEDANCE,
    REFERENCE,
    Articulation,
    Coupling,
    Geom,
    Joint,
    Softness,
    Tendon,
    reference_of_softness,
)
from artsim.sim.articulation.regularity import inverse_inertias
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.run_records import EULER, EXPLICIT_EULER, NOT_CONVEX
from artsim.sim.runs.configuration import RunConfig


def with_default_softness(articulation: Articulation) -> Articulation:
    """The articulation with MuJoCo's default softness of contacts and equalities where its file gives none. Mimic
    joints of other formats stay hard."""
    equalities = articulation.couplings
    if articulation.format == "mjcf":
        equalities = tuple(_soft_coupling(coupling) for coupling in equalities)
    return replace(
        articulation,
        links=tuple(
            replace(link, geoms=tuple(soft_geom(geom) for geom in link.geoms)) if link.geoms else link
            for link in articulation.links
        ),
        contact_pairs=tuple(replace(pair, softness=_filled(pair.softness)) for pair in articulation.contact_pairs),
        couplings=equalities,
        loops=tuple(replace(loop, softness=_filled(loop.softness)) for loop in articulation.loops),
        tendon_couplings=tuple(replace(c, softness=_filled(c.softness)) for c in articulation.tendon_couplings),
    )


def soft_geom(geom: Geom) -> Geom:
    """The geom with MuJoCo's default softness where its file gives none."""
    return replace(geom, surface=replace(geom.surface, softness=_filled(geom.surface.softness)))


def _filled(softness: Softness) -> Softness:
    return Softness(softness.reference or REFERENCE, softness.impedance or IMPEDANCE)


def _soft_coupling(coupling: Coupling) -> Coupling:
    if coupling.frequency is not None or coupling.compliance is not None or coupling.axis:
        return coupling
    softness = _filled(Softness(None, coupling.impedance))
    K, B, time_constant = reference_of_softness(softness)
    return replace(
        coupling,
        frequency=math.sqrt(K) / (2.0 * math.pi),
        damping_ratio=B / (2.0 * math.sqrt(K)),
        impedance=softness.impedance,
        time_constant=time_constant,
    )


def softness_inputs(articulation: Articulation, config: RunConfig, robot: Robot) -> dict[str, Array]:
    """The fields of Inputs on the convex law: of the dofs (nv,), then of the tendons."""
    law = INTEGRATORS[config.integrator].convex
    if law == EULER and not articulation.options.euler_damping:
        law = EXPLICIT_EULER
    owners = _owners(articulation, robot) if law != NOT_CONVEX else []
    limits = [_filled(_limit_softness(owner)) for owner in owners]
    frictions = [_filled(owner.friction_softness) if owner is not None else _filled(Softness()) for owner in owners]
    mobility = _mobilities(robot) if owners else np.zeros(0)
    return {
        "convex": np.array([law], np.int64),
        "limit_reference": _table([s.reference for s in limits], 2),
        "limit_impedance": _table([s.impedance for s in limits], 5),
        "limit_margin": np.array([0.0 if owner is None else owner.limit_margin for owner in owners]),
        "friction_reference": _table([s.reference for s in frictions], 2),
        "friction_impedance": _table([s.impedance for s in frictions], 5),
        "row_mobility": np.append(mobility, np.zeros(len(owners) - len(mobility))),
    }


def _owners(articulation: Articulation, robot: Robot) -> list[Joint | Tendon | None]:
    """The joint of each dof, then the tendons."""
    joints = {joint.name: joint for joint in articulation.joints}
    owners: list[Joint | Tendon | None] = [None] * robot.nv
    for name, dofs in robot.labels.joint_dofs.items():
        owners[dofs] = [joints.get(name)] * (dofs.stop - dofs.start)
    return [*owners, *articulation.tendons]


def _limit_softness(owner: Joint | Tendon | None) -> Softness:
    if owner is None:
        return Softness()
    return owner.softness if isinstance(owner, Tendon) else owner.limit_softness


def _table(rows: list[tuple[float, ...] | None], width: int) -> Array:
    return np.array(rows, float).reshape(-1, width)


def _mobilities(robot: Robot) -> Array:
    """MuJoCo's dof_invweight0 (nv,) [1/(kg m²) or 1/kg]: (M⁻¹)_kk in the file's pose, of joints of several dofs the
    means over their linear and over their angular ones; of a joint whose link only slides 1 / mass."""
    model, labels = robot.model, robot.labels
    found = np.zeros(robot.nv)
    several = [
        k for dofs in labels.joint_dofs.values() for k in range(dofs.start, dofs.stop) if dofs.stop - dofs.start > 1
    ]
    if several:
        found[several] = inverse_inertias(model, robot.reference, several)
    single = [name for name, dofs in labels.joint_dofs.items() if dofs.stop - dofs.start == 1]
    first = [labels.joint_dofs[name].start for name in single]
    found[first] = joint_mobilities(robot.articulation, model, labels, robot.reference, single)
    for dofs in labels.joint_dofs.values():
        for linear in (0, 1):
            own = [k for k in range(dofs.start, dofs.stop) if model.dof_linear[k] == linear]
            if len(own) > 1:
                found[own] = found[own].mean()
    return found
