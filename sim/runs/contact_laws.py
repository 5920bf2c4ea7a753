"""The softness of constraints under each contact law.

Contacts, limits, dry friction and equalities of an MJCF file are all soft in MuJoCo. Here they are hard where the file
gives no softness, but under the convex law, where MuJoCo's defaults stand for what a file leaves out. Coulomb's law
knows softness of contacts and equalities, not of limits and dry friction.
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
from artsim.sim.geometry.contacts import LEAST_MIX, Touching
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.run_records import EULER, EXPLICIT_EULER
from artsim.sim.run_data.scratch import CROWD_TREES, may_crowd
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.settings import CONVEX, COULOMB, FILE

_HARD = Softness(REFERENCE, (-1.0,) * 5)


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


def with_served_law(robot: Robot, config: RunConfig) -> RunConfig:
    """The configuration with Coulomb's law in place of the file's where the solver knows no other."""
    served = config.solver == "newton" and not config.is_maximal and not may_crowd(robot.model)
    if config.contact_law != FILE or served:
        return config
    return replace(config, contact_law=COULOMB, cone="elliptic" if config.cone == "auto" else config.cone)


def told_of_law(articulation: Articulation, asked: str, config: RunConfig, touching: Touching | None) -> list[str]:
    """A note where the file gives softness and the law `asked` for, which follows it, is not served."""
    if asked == config.contact_law:
        return []
    owners: list[Joint | Tendon] = [*articulation.joints, *articulation.tendons]
    parts = {
        "contacts": has_soft_contacts(touching),
        "limits": any(given(_limit_softness(owner)) for owner in owners),
        "dry friction": any(given(owner.friction_softness) for owner in owners),
    }
    soft = [part for part, found in parts.items() if found]
    if not soft:
        return []
    served = f"--solver newton, reduced coordinates and up to {CROWD_TREES} robots and loose bodies"
    return [f"{' and '.join(soft)} that the file makes soft act by --contact-law coulomb; MuJoCo's law is for {served}"]


def has_soft_contacts(touching: Touching | None) -> bool:
    """True if any contact is soft."""
    return touching is not None and bool(touching.contacts.soft.any() or touching.contacts.pair_soft.any())


def count_pairs(touching: Touching) -> tuple[int, int]:
    """Pairs of shapes whose contacts are hard, and those whose are soft (contact/detection.py: _combine)."""
    contacts = touching.contacts
    a, b = np.nonzero(np.triu(contacts.allowed >= 0, 1))
    named = contacts.allowed[a, b] - 1
    first, second = contacts.priority[a], contacts.priority[b]
    mix = np.where(contacts.mix < LEAST_MIX, 0.0, contacts.mix)
    both = mix[a] + mix[b]
    share = np.where(first == second, np.where(both > 0, mix[a] / np.where(both > 0, both, 1.0), 0.5), first > second)
    soft = (contacts.soft[a] == 1) & (share > 0) | (contacts.soft[b] == 1) & (share < 1)
    soft[named >= 0] = contacts.pair_soft[named[named >= 0]] == 1
    return int((~soft).sum()), int(soft.sum())


def given(softness: Softness) -> bool:
    """True if a file gives this softness."""
    return softness.reference is not None or softness.impedance is not None


def soft_limits(articulation: Articulation, config: RunConfig, robot: Robot) -> Array:
    """True for the dofs (nv,) whose limits are soft in this run."""
    if config.contact_law == COULOMB:
        return np.zeros(robot.nv, bool)
    owners = _owners(articulation, robot)[: robot.nv]
    return np.array(
        [config.contact_law == CONVEX or (j is not None and given(_limit_softness(j))) for j in owners], bool
    )


def softness_inputs(articulation: Articulation, config: RunConfig, robot: Robot) -> dict[str, Array]:
    """The fields of Inputs on softness: of the dofs (nv,), then of the tendons."""
    law = INTEGRATORS[config.integrator].convex
    if law == EULER and not articulation.options.euler_damping:
        law = EXPLICIT_EULER
    owners = _owners(articulation, robot) if config.contact_law != COULOMB else []
    own = [Softness() if owner is None else _limit_softness(owner) for owner in owners]
    rubbing = [Softness() if owner is None else owner.friction_softness for owner in owners]
    if config.contact_law == FILE and not any(map(given, (*own, *rubbing))):
        owners, own, rubbing = [], [], []
    limits = [_filled(one) if given(one) or config.contact_law == CONVEX else _HARD for one in own]
    frictions = [_filled(one) if given(one) or config.contact_law == CONVEX else _HARD for one in rubbing]
    mobility = _mobilities(robot) if owners else np.zeros(0)
    return {
        "convex": np.array([law], np.int64),
        "soft_law": np.array([config.contact_law != COULOMB], np.int64),
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


def _limit_softness(owner: Joint | Tendon) -> Softness:
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
