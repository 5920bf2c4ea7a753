"""Allocates the arrays of a step: every constraint row that can occur, scratch, recorded rows.

This file does not import numba, since the process that starts with warm kernels imports it.
"""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.chains import jacobian_columns
from artsim.sim.articulation.model import Model
from artsim.sim.constraints.kinds import RowOrigins, total_room
from artsim.sim.equipment.arrays import Equipment, EquipmentLabels, Equipped
from artsim.sim.foundation.records import allocate
from artsim.sim.run_data.run_records import (
    ACCOUNT_ENTRIES,
    CONSTRAINT_TABLE,
    ENERGY,
    ENTRY_TABLE,
    SOURCES,
    TABLES,
    Block,
    Rows,
    Step,
)


def make_rows(of: RowOrigins) -> Rows:
    """Allocate every row that a step can have."""
    nv, (n, entries, _) = len(of.model.dof_body), total_room(of)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(Rows._fields, (n,)),
        **dict.fromkeys(("entry_dof", "entry_value", "column", "value"), (entries,)),
        "number": (4,),
        "start": (n + 1,),
        "implicit": (nv,),
        "report": (3,),
    }
    rows: Rows = allocate(Rows, shapes)
    return rows


def make_step(model: Model, equipment: Equipment | None = None) -> Step:
    """Allocate the scratch of a step."""
    tendons = 0 if equipment is None else len(equipment.tendon_lower)
    nv, nu, nq, nl = len(model.dof_body), len(model.independent_dof), int(model.body_coord[-1]), len(model.link_body)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(Step._fields, (nv,))
    shapes |= {
        "counters": (9,),
        "retries": (4,),
        **dict.fromkeys(("beside", "integrator"), (3,)),
        **dict.fromkeys(("evaluations", "follows", "away", "nearest", "asleep"), (1,)),
        **dict.fromkeys(("bound_rounds", "bound", "drive_rows", "ball_rows", "rule_rounds", "outdated"), (1,)),
        "aiming": (4,),
        "straining": (3,),
        "coupling_error": (1,),
        "tendon_error": (1,),
        "loop_gap": (2,),
        "opened": (6,),
        "energy": (2,),
        "contact_extremes": (4,),
        "work": (SOURCES,),
        **dict.fromkeys(("account", "last_account"), (ACCOUNT_ENTRIES,)),
        **dict.fromkeys(("watch", "last_watch"), (5,)),
        "worst_residual": (1,),
        "yielded": (6,),
        "held": (5,),
        "pressed": (nv + tendons, 4),
        "free": (nu,),
        "next": (nu,),
    }
    shapes |= {"start_qpos": (nq,), "stage_qpos": (nq,), "link_force": (nl, 3), "link_torque": (nl, 3)}
    shapes |= {"columns": (6, nv), "com": (3,), "momentum": (6,), "effective_coupling": (len(model.row_follower),)}
    step: Step = allocate(Step, shapes)
    step.drive_inertia[:] = 1.0
    step.account[ENERGY] = np.nan  # not opened
    step.drive_inertia[:] = 1.0
    return step


def block_shapes(model: Model, equipped: Equipped | None = None) -> dict[str, tuple[int, ...]]:
    """Return the shape of one row of each recorded field."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    nv, nq, nl = len(model.dof_body), int(model.body_coord[-1]), len(model.link_body)
    return {
        **dict.fromkeys(Block._fields, (nv,)),
        "qpos": (nq,),
        "activation": (len(names.activations),),
        **dict.fromkeys(("actuator_force", "actuator_length", "actuator_velocity"), (len(names.actuators),)),
        **dict.fromkeys(("tendon_length", "tendon_velocity", "tendon_force"), (len(names.tendons),)),
        "loop_wrench": (len(names.loops), 6),
        "sensors": (len(names.sensors),),
        "link_position": (nl, 3),
        "link_quaternion": (nl, 4),
        **dict.fromkeys(("incoming_wrench", "contact_wrench", "external_wrench"), (nl, 6)),
        "jacobian": (len(jacobian_columns(model)[0]), 6),
        "mass_matrix": (nv, nv),
        "com": (3,),
        "momentum": (6,),
        "energy": (2,),
        "solver_iterations": (),
        "solver_residual": (),
        "asleep": (),
        **dict.fromkeys(("contacts", "constraints", "contact_step", "contact_depth"), ()),
        **dict.fromkeys((*TABLES, *CONSTRAINT_TABLE, *ENTRY_TABLE), ()),
        "contact_shapes": (2,),
        **dict.fromkeys(
            ("contact_point", "contact_normal", "contact_tangent", "contact_force", "contact_torque"), (3,)
        ),
    }
