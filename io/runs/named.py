"""Labels, rows and tables of the engine under the names of the file format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import Labels
from artsim.sim.articulation.chains import jacobian_columns
from artsim.sim.articulation.model import Labels as ModelLabels
from artsim.sim.equipment.arrays import EquipmentLabels, Equipped
from artsim.sim.foundation.records import Array
from artsim.sim.runs.constraint_names import constraint_names, number_constraints, number_contacts
from artsim.sim.runs.plan import Plan

Tables = dict[str, dict[str, Array]]
"""By group of schema.RAGGED: its count and its table by names."""


def row_count(rows: Mapping[str, Array], tables: Tables) -> int:
    """The number of recorded rows of a block."""
    counts = [table[schema.RAGGED[group].counted_by] for group, table in tables.items()]
    return len(next(iter((*rows.values(), *counts)), ()))


def named_tables(plan: Plan, found: Mapping[str, Array]) -> Tables:
    """The tables of a block in the form of the groups of schema.RAGGED."""
    tables: Tables = {}
    if "contact_count" in found:
        tables["contact"] = named_contacts(plan, found)
    if "constraint_count" in found:
        kind, owner = found["constraint_kind"], found["constraint_owner"]
        constraints = {name: found[f"constraint_{name}"] for name in ("count", "step", "cfm", "impulse")}
        constraints["constraint_count"] = constraints.pop("count")
        constraints["name"] = number_constraints(constraint_names(plan), kind, owner, found["constraint_part"])
        constraints["contact"] = number_contacts(kind, owner)
        tables["constraint"] = _typed("constraint", constraints)
        renamed = {"entry_count": "entry_count", "step": "entry_step", "value": "entry_value"}
        renamed |= {"row_a": "entry_row", "row_b": "entry_column"}
        tables["delassus"] = _typed("delassus", {name: found[field] for name, field in renamed.items()})
    return tables


def named_contacts(plan: Plan, found: Mapping[str, Array]) -> dict[str, Array]:
    """Contacts of a block by the names of /contact, with the links and geoms of shapes."""
    if plan.touching is None or "contact_count" not in found:
        return {}
    g = plan.touching.contacts
    of_world = file_labels(plan.robot.labels).touching_link.index("world")
    shapes = found["contact_shapes"].astype(np.int64)
    link, geom = np.where(g.link < 0, of_world, g.link)[shapes], g.geom[shapes]
    sides = {"link_a": link[:, 0], "link_b": link[:, 1], "geom_a": geom[:, 0], "geom_b": geom[:, 1]}
    rest = {name: found[f"contact_{name}"] for name in schema.CONTACT_TABLE if name not in sides}
    return _typed("contact", {"contact_count": found["contact_count"], **sides, **rest})


def _typed(group: str, table: Mapping[str, Array]) -> dict[str, Array]:
    """A table in the order and the types of its group."""
    names = (schema.RAGGED[group].counted_by, *schema.RAGGED[group].table)
    return {name: table[name].astype(schema.TABLE[f"{group}/{name}"].dtype) for name in names}


def run_labels(plan: Plan) -> Labels:
    """The labels of a run as stored in its file."""
    labels = file_labels(plan.robot.labels, plan.equipped)
    if plan.touching is not None and "contacts" in plan.config.record:
        labels = labels._replace(geom=plan.touching.geoms)
    if "delassus" in plan.config.record:
        labels = labels._replace(constraint=tuple(constraint_names(plan).values()))
    if "jacobian" in plan.config.record:
        link, dof = (tuple(indices.tolist()) for indices in jacobian_columns(plan.robot.model))
        labels = labels._replace(jacobian_link=link, jacobian_dof=dof)
    return labels


def file_labels(labels: ModelLabels, equipped: Equipped | None = None) -> Labels:
    """The engine's labels in the form of the file, without geoms and columns of Jacobians."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    return Labels(
        coord=labels.coords,
        dof=labels.dofs,
        link=labels.links,
        independent_dof=labels.independent_dofs,
        coord_units=labels.coord_units,
        dof_units=labels.dof_units,
        force_units=labels.force_units,
        actuator=names.actuators,
        actuator_state=names.activations,
        tendon=names.tendons,
        loop=names.loops,
        sensor=names.sensors,
        sensor_units=names.sensor_units,
    ).with_controls(names.controls)


def joined(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    """The arrays of consecutive blocks, one after the other."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}
