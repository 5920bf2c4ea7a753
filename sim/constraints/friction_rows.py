"""Builds the row of Coulomb friction in a joint, which holds the dof at rest up to the friction impulse.

The bound is constant (URDF friction) or, as in PhysX, a coefficient times the load in the joint (guide, Articulation
Joint Friction): the magnitude of the force F [N] and torque T [N m], about its anchor, that the joint transmitted a
step ago. The load of a slide is |F|, the force of its guide and its own; that of a rotation is √(|F|² + |T|²), bearing
force and torque, each counted by its number as in PhysX's spatial force: the coefficient is that of a bearing, and
includes the bearing's radius.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.impedance import has_soft_friction, yield_with_friction
from artsim.sim.constraints.kinds import FRICTION_ROW
from artsim.sim.constraints.row import single_row
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive
from artsim.sim.run_data.run_records import PLACES, Inputs, Rows


@njit
def friction_row(robot: RobotBundle, inputs: Inputs, rows: Rows, k: int) -> None:
    """Append the row that holds dof k, if it has friction, up to this force; in both widths."""
    model, data = robot.model, robot.data
    force = model.friction[k] + model.friction_coefficient[k] * robot.state.load[k]
    if not any_positive(force):  # also NaN: a load that overflowed, on any dof
        if any_positive(model.friction_coefficient[k]):
            rows.number[PLACES] += 1
        return
    n = single_row(model, data, rows, FRICTION_ROW, k, 1.0)
    h = inputs.time_step[0]
    rows.bias[n] = h * data.drift[k]
    if has_soft_friction(inputs, k):
        mobility = like(inputs.row_mobility[k], data)
        yield_with_friction(inputs, rows, n, k, mobility, robot.state.qvel[k], data.drift[k])
    rows.lower[n] = -h * force
    rows.upper[n] = h * force


@njit
def has_friction(model: Model) -> bool:
    """True if any joint has friction, in any lane."""
    for k in range(model.friction.shape[0]):
        if any_positive(model.friction[k]) or any_positive(model.friction_coefficient[k]):
            return True
    return False


@inlined
def constant_share(robot: RobotBundle, k: int) -> float:
    """The part of dof k's friction that does not depend on the load; the dof must have friction."""
    model = robot.model
    return model.friction[k] / (model.friction[k] + model.friction_coefficient[k] * robot.state.load[k])
