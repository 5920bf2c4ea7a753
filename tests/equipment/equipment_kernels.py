"""What equipment does at a configuration, for tests: all rows and forces there, in one kernel over a step's records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.constraints.kinds import RowOrigins
from artsim.sim.equipment.arrays import EquipmentBundle, make_equipment_work
from artsim.sim.equipment.forces import equipment_forces
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.run_data.run_records import Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.control_tables import make_inputs
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.allocation import make_rows, make_step
from artsim.sim.stepping.assembly import build_rows
from artsim.sim.stepping.calibration import calibrate
from artsim.sim.stepping.system import bare_system
from tests.simulation import constant_controls

Array = np.ndarray[Any, Any]


@njit
def at_configuration(robot: Any, run: Any, rows: Any, equipment: Any, solver: Any) -> None:
    """Rows in rows, forces in equipment_data, everything explicit, at the state state."""
    model, state, data = robot.model, robot.state, robot.data
    calibrate(robot, equipment, run.step, False)
    expand(model, state.qpos, state.qvel, data)
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 1)
    bare_system(model, state.qpos, state.qvel, data, run, equipment, solver)
    build_rows(robot, run, rows, equipment, None, None, solver)


ENTRY = Entry("at_configuration", __name__, (RobotBundle, RunBundle, Rows, EquipmentBundle, SolverBundle))


@dataclass
class Bench:
    """A plan's equipment, evaluated wherever one likes."""

    plan: Plan

    def __post_init__(self) -> None:
        model, equipped = self.plan.robot.model, self.plan.equipped
        assert equipped is not None
        self.state = make_state(model, activations=equipped.activations)
        self.work = make_workspace(model)
        self.rows = make_rows(RowOrigins(model, model.dof_body.size, equipped.arrays))
        self.step = make_step(model)
        self.equipment = make_equipment_work(model, equipped.arrays, equipped.activations)
        self.inputs = make_inputs(self.plan, constant_controls(self.plan))
        robot = RobotBundle(model, self.state, self.work)
        run = RunBundle(self.inputs, self.step)
        equipment = EquipmentBundle(equipped.arrays, self.equipment)
        self._call = bind(ENTRY, 1, robot, run, self.rows, equipment, SolverBundle())

    def evaluate(self, q: Array, v: Array | None = None) -> None:
        """Fill rows and equipment at q (nq,), v (nv,)."""
        self.state.qpos[:] = q
        self.state.qvel[:] = 0.0 if v is None else v
        self._call()

    def jacobian(self, kind: int) -> Array:
        """Rows of this kind, (rows, nv)."""
        r = self.rows
        out = []
        for n in range(r.number[0]):
            if r.kind[n] == kind:
                line = np.zeros(self.plan.robot.nv)
                for entry in range(r.start[n], r.start[n + 1]):
                    line[r.entry_dof[entry]] += r.entry_value[entry]
                out.append(line)
        return np.array(out).reshape(-1, self.plan.robot.nv)
