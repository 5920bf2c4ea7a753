"""Forces and accelerations at a state in the lanes of a pack, with no force implicit (accelerations.py), without rows.

Forces that a single robot's code would find lane by lane are left to runs of single robots.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import composites, coupled_bias, factorise, mass_matrix, solve
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import coordinate, drive_force, find_places
from artsim.sim.equipment.affine import bounded
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.drives import set_drives
from artsim.sim.equipment.implicit_actuators import set_plain_explicit_forces
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
    equipment: EquipmentBundle | None,
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
    if equipment is not None:
        set_plain_explicit_forces(model, q, v, equipment)
    for k in range(step.force.shape[0]):
        place = coordinate(model, q, k)
        limit = run.inputs.drive_limit[k]
        drive = bounded(drive_force(run, 0, k, step.place[k], v[k]), -limit, limit)
        passive = -model.damping[k] * v[k] - model.stiffness[k] * (place - model.spring_reference[k])
        if rules is not None:
            passive = passive + rules.data.force[k]
        step.diagonal[k] = like(0.0, data)
        force = step.applied[k] + drive
        if equipment is not None:
            force = force + equipment.data.actuator_total[k]
        step.force[k] = force + passive - data.bias[k]


@njit
def accelerate_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Set step.next (nu,) to u̇ = M⁻¹ step.free."""
    model, data, step = robot.model, robot.data, run.step
    for a in range(step.next.shape[0]):
        step.next[a] = step.free[a]
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, step.next)
