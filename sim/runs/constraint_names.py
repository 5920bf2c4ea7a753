"""The names of a run's recorded constraint rows: `limit:elbow.lower`, `loop:crank.x`, `contact.normal`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from artsim.sim.constraints.kinds import (
    ACTUATOR_ROW,
    CONTACT_ROW,
    KINDS,
    LINK_ROW,
    LOOP_ROW,
    TENDON_ROW,
)
from artsim.sim.constraints.row_names import row_name
from artsim.sim.equipment.arrays import EquipmentLabels
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.link_rules import WHOLE

if TYPE_CHECKING:
    from artsim.sim.runs.plan import Plan

Constraint = tuple[int, int, int]
"""Kind, owner (a dof, loop, tendon, actuator or rule of links by number) and part of a row; contacts have owner 0."""


def constraint_names(plan: Plan) -> dict[Constraint, str]:
    """The names of all rows that a run can have. Contacts are numbered step by step, and share the names of parts."""
    owners = constraint_owners(plan)
    return {
        (kind, owner, part): row_name(kind, name, part)
        for kind, declared in KINDS.items()
        for owner, name in enumerate(owners[kind])
        for part in range(len(declared.parts))
    }


def constraint_owners(plan: Plan) -> dict[int, tuple[str, ...]]:
    """The names of the owners of rows, by kind."""
    labels = EquipmentLabels() if plan.equipped is None else plan.equipped.labels
    owners: dict[int, tuple[str, ...]] = dict.fromkeys(KINDS, plan.robot.dofs)
    owners |= {LOOP_ROW: labels.loops, TENDON_ROW: labels.tendons, ACTUATOR_ROW: labels.actuators}
    owners |= {CONTACT_ROW: ("",) if plan.touching is not None else (), LINK_ROW: _bounded_links(plan)}
    return owners


def _bounded_links(plan: Plan) -> tuple[str, ...]:
    if plan.rules is None:
        return ()
    links = plan.robot.labels.links
    return tuple("robot" if link == WHOLE else links[link] for link in plan.rules.bound_link.tolist())


def number_constraints(names: dict[Constraint, str], kind: Array, owner: Array, part: Array) -> Array:
    """The numbers of recorded rows (n,) among the names."""
    numbers = {constraint: number for number, constraint in enumerate(names)}
    rows = np.stack([kind, np.where(kind == CONTACT_ROW, 0, owner), part], axis=1).astype(np.int64)
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    found = np.array([numbers[tuple(row)] for row in distinct.tolist()], np.int64)
    return found[places.reshape(-1)] if len(rows) else np.zeros(0, np.int64)


def number_contacts(kind: Array, owner: Array) -> Array:
    """The numbers of recorded rows' contacts within the step (n,), -1 for other rows."""
    return np.where(kind == CONTACT_ROW, owner, -1).astype(np.int64)
