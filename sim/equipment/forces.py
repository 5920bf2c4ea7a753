"""Forces of all equipment at a configuration, computed in the order in which its parts depend on each other."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import weigh_springs
from artsim.sim.equipment.actuators import actuator_forces, bound_totals, guess_bounds, weigh_actuators
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.passive import passive_extra
from artsim.sim.equipment.tendon_forces import tendon_forces, weigh_tendons
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.equipment.transmissions import transmissions
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import RunBundle


@njit
def equipment_forces(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    equipment: EquipmentBundle,
    activation: Reals1,
    explicit: int,
) -> None:
    """Compute all equipment forces at (q, v) from up-to-date kinematics in data; `explicit` 1: nothing is implicit."""
    model, data = robot.model, robot.data
    inputs = run.inputs
    velocities(model, v, data)
    tendon_paths(robot, q, v, equipment)
    weigh_tendons(inputs, equipment, explicit)
    tendon_forces(equipment)
    transmissions(robot, q, v, equipment)
    actuator_forces(model, v, run, equipment, activation, explicit)
    passive_extra(model, q, v, data, equipment)
    bound_totals(equipment)
    if explicit == 0:
        weigh_springs(model, run, equipment)
        weigh_actuators(inputs, equipment)
        guess_bounds(model, q, v, run, equipment)
