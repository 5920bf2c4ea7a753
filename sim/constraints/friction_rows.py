"""Coulomb friction in a joint: hold the dof at rest as far as the friction impulse reaches.

Constant (URDF friction) and the PhysX form, coefficient times the load in the joint (guide, Articulation Joint
Friction): the magnitude of what the joint transmitted a step ago, F [N] and T [N m] about its anchor. A slide's load is
|F|, what its guide carries and its own force; that of a rotation √(|F|² + |T|²), bearing force and torque, each counted
by its number as in PhysX's spatial force: the coefficient is that of a bearing whose radius is part of it.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import FRICTION_ROW
from artsim.sim.constraints.row import single_row
from artsim.sim.foundation.jit import inlined, njit


@njit
def friction_row(robot: Any, inputs: Any, rows: Any, k: Any) -> None:
    """The friction row of dof k, if it has friction."""
    model = robot.model
    force = model.friction[k] + model.friction_coefficient[k] * robot.state.load[k]
    if not force > 0.0:  # not a number: a load that overflowed, on any dof
        return
    add_friction(model, robot.data, inputs, rows, k, force)


@njit
def add_friction(model: Any, data: Any, inputs: Any, rows: Any, k: Any, force: Any) -> None:
    """The row that holds dof k up to this force, a T [N m or N]."""
    n = single_row(model, data, rows, FRICTION_ROW, k, 1.0)
    h = inputs.time_step[0]
    rows.bias[n] = h * data.drift[k]
    rows.lower[n] = -h * force
    rows.upper[n] = h * force


@njit
def has_friction(model: Any) -> bool:
    """Whether any joint has friction."""
    for k in range(model.friction.shape[0]):
        if model.friction[k] > 0.0 or model.friction_coefficient[k] > 0.0:
            return True
    return False


@inlined
def constant_share(robot: Any, k: Any) -> Any:
    """How much of the friction of dof k, which has some, does not go by the load."""
    model = robot.model
    return model.friction[k] / (model.friction[k] + model.friction_coefficient[k] * robot.state.load[k])
