"""Forces of all equipment at a configuration, computed in the order in which its parts depend on each other."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuators import actuator_forces
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.implicit_actuators import guess_bounds, release, weigh
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
    find_single_forces(robot, q, v, run, equipment, activation, explicit)
    if explicit == 1:
        release(equipment)
    else:
        weigh(robot.model, run, equipment)
        guess_bounds(robot.model, q, v, run, equipment)


@njit
def find_single_forces(
    robot: RobotBundle,
    q: Reals1,
    v: Reals1,
    run: RunBundle,
    equipment: EquipmentBundle,
    activation: Reals1,
    explicit: int,
) -> None:
    """Compute the forces of all equipment, but neither the actuators' sums by dof nor their bounds over the step."""
    velocities(robot.model, v, robot.data)
    tendon_paths(robot, q, v, equipment)
    weigh_tendons(run.inputs, equipment, explicit)
    tendon_forces(equipment)
    transmissions(robot, q, v, equipment)
    actuator_forces(run, equipment, activation, explicit)
    passive_extra(robot.model, q, v, robot.data, equipment)
