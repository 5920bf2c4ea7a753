"""Forces and accelerations at a state in the lanes of a pack, with no force implicit (accelerations.py), without rows.

Forces that a single robot's code would find lane by lane are left to runs of single robots.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import composites, coupled_bias, factorise, mass_matrix, solve
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import coordinate, drive_force, find_places
from artsim.sim.equipment.affine import bounded
from artsim.sim.equipment.drives import set_drives
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Lanes1
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.controller import command
from artsim.sim.stepping.link_damping import link_damping_forces
from artsim.sim.stepping.system import find_drive_inertias, has_acceleration_drives


@njit
def add_up_forces_in_lanes(
    robot: RobotBundle,
    q: Lanes1,
    v: Lanes1,
    run: RunBundle,
    equipment: PackEquipment,
    rules: RuleBundle | None,
    solver: SolverBundle,
) -> None:
    """Set M, the bias, and step.force (nv,) to the sum of all forces."""
    model, data, step = robot.model, robot.data, run.step
    command(robot, q, v, run, equipment, 0.0)
    if rules is not None:
        link_damping_forces(model, v, data, rules)
    coupled_bias(model, v, data)
    composites(model, data)
    mass_matrix(model, data)
    if has_acceleration_drives(run.inputs):
        find_drive_inertias(model, data, run, solver)
    set_drives(run)
    find_places(model, q, run, 0)
    _find_actuator_forces(model, q, v, equipment)
    for k in range(step.force.shape[0]):
        place = coordinate(model, q, k)
        limit = run.inputs.drive_limit[k]
        drive = bounded(drive_force(run, 0, k, step.place[k], v[k]), -limit, limit)
        passive = -model.damping[k] * v[k] - model.stiffness[k] * (place - model.spring_reference[k])
        if rules is not None:
            passive = passive + rules.data.force[k]
        step.diagonal[k] = like(0.0, data)
        step.force[k] = step.applied[k] + drive + equipment.data.actuator_total[k] + passive - data.bias[k]


@njit
def accelerate_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Set step.next (nu,) to u̇ = M⁻¹ step.free."""
    model, data, step = robot.model, robot.data, run.step
    for a in range(step.next.shape[0]):
        step.next[a] = step.free[a]
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, step.next)


@njit
def _find_actuator_forces(model: Model, q: Lanes1, v: Lanes1, equipment: PackEquipment) -> None:
    """Set equipment.data.actuator_total (nv,) from the forces at (q, v)."""
    actuators, data = equipment.model, equipment.data
    for k in range(data.actuator_total.shape[0]):
        data.actuator_total[k] = v[k] - v[k]
    for n in range(actuators.number.shape[0]):
        force = data.constant[n]
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            k, moment = actuators.dof[entry], actuators.moment[entry]
            force = force - data.slope[n] * moment * coordinate(model, q, k) - data.resistance[n] * moment * v[k]
        force = bounded(force, actuators.force_lower[n], actuators.force_upper[n])
        for entry in range(actuators.entry[n], actuators.entry[n + 1]):
            k = actuators.dof[entry]
            data.actuator_total[k] = data.actuator_total[k] + actuators.moment[entry] * force
    for k in range(data.actuator_total.shape[0]):
        data.actuator_total[k] = bounded(data.actuator_total[k], actuators.dof_lower[k], actuators.dof_upper[k])
