"""A kernel that evaluates actuators alone, everything explicit (test_actuators.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.equipment.arrays import EquipmentBundle, EquipmentWork, make_equipment_work
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.run_data.run_records import RunBundle
from artsim.sim.runs.control_tables import make_inputs
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.allocation import make_step
from artsim.sim.stepping.calibration import calibrate

Array = np.ndarray[Any, Any]


@njit
def actuators(robot: Any, run: Any, equipment: Any) -> None:
    """Forces at the state state, in equipment_data."""
    model, state, data = robot.model, robot.state, robot.data
    calibrate(robot, equipment, run.step, False)
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 1)


ENTRY = Entry("actuators", __name__, (RobotBundle, RunBundle, EquipmentBundle))


@dataclass
class Actuators:
    """A plan's actuators, evaluated wherever one likes."""

    plan: Plan

    def __post_init__(self) -> None:
        model, equipped = self.plan.robot.model, self.plan.equipped
        assert equipped is not None
        self.labels = equipped.labels
        self.arrays = equipped.arrays
        self.state = make_state(model, activations=equipped.activations)
        self.work = make_equipment_work(model, equipped.arrays, equipped.activations)
        zero = np.zeros(self.plan.robot.nv)
        control = np.zeros(len(equipped.labels.controls))
        self.control = control
        controls = Controls.held(torque=zero, target=zero, target_velocity=zero, control=control)
        inputs = make_inputs(self.plan, controls)
        self.row = np.zeros((1, len(control)))
        inputs = inputs._replace(control=self.row)
        robot = RobotBundle(model, self.state, make_workspace(model))
        run = RunBundle(inputs, make_step(model))
        self._call = bind(ENTRY, 1, robot, run, EquipmentBundle(self.arrays, self.work))

    def at(self, q: Array, v: Array, activation: Array, control: Array) -> EquipmentWork:
        """The actuators there."""
        self.state.qpos[:], self.state.qvel[:], self.state.activation[:] = q, v, activation
        self.row[0] = control
        self._call()
        return self.work

    @property
    def moment(self) -> Array:
        """Moment arms (na, nv)."""
        dense = np.zeros((len(self.labels.actuators), self.plan.robot.nv))
        for a in range(len(dense)):
            entries = slice(self.arrays.actuator_entry[a], self.arrays.actuator_entry[a + 1])
            dense[a, self.arrays.actuator_dof[entries]] = self.work.actuator_moment[entries]
        return dense
