"""The contacts at a configuration, for tests: points, gaps and rows, in one kernel over a step's records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import kinematics, world_inertia
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.constraints.kinds import RowOrigins
from artsim.sim.contact.contact_rows import contact_rows
from artsim.sim.contact.detection import detected, find_contacts, find_drifts, place_static
from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.geometry.contacts import ContactBundle, connect_detection, make_contact_work
from artsim.sim.run_data.run_records import Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.control_tables import make_inputs
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.allocation import make_rows, make_step
from artsim.sim.stepping.system import bare_system
from tests.simulation import constant_controls

Array = np.ndarray[Any, Any]


@njit
def contacts_at_configuration(robot: Any, run: Any, rows: Any, contact: Any, solver: Any) -> None:
    """Contacts in contact_data, their rows in rows, at the state state."""
    model, state, data = robot.model, robot.state, robot.data
    inputs = run.inputs
    expand(model, state.qpos, state.qvel, data)
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    place_static(model, data, contact)
    find_contacts(robot, inputs, contact)
    for n in range(contact.data.margin.shape[0]):
        contact.data.margin[n] = 100.0
    detected(robot, contact)  # however far they are
    bare_system(model, state.qpos, state.qvel, data, run, None, solver)
    find_drifts(model, state.qvel, data, inputs, contact)
    rows.number[0] = 0
    contact_rows(robot, run, rows, None, contact)


ROOM = 64
ENTRY = Entry("contacts_at_configuration", __name__, (RobotBundle, RunBundle, Rows, ContactBundle, SolverBundle))


@dataclass
class Bench:
    """A plan's contacts, evaluated wherever one likes."""

    plan: Plan

    def __post_init__(self) -> None:
        model, touching = self.plan.robot.model, self.plan.touching
        assert touching is not None
        self.state, self.work = make_state(model), make_workspace(model)
        self.rows, self.step = make_rows(RowOrigins(model, touching=touching, contacts=ROOM)), make_step(model)
        self.contacts = make_contact_work(touching, ROOM)
        self.contacts.most_grip[:] = np.inf  # all friction that contacts have
        self._detection = connect_detection(touching, self.contacts)
        self.inputs = make_inputs(self.plan, constant_controls(self.plan))
        robot = RobotBundle(model, self.state, self.work)
        run = RunBundle(self.inputs, self.step)
        contact = ContactBundle(touching.contacts, self.contacts)
        self._call = bind(ENTRY, 1, robot, run, self.rows, contact, SolverBundle())

    def evaluate(self, q: Array, v: Array) -> None:
        """Fill contacts and rows at q (nq,), v (nv,)."""
        self.state.qpos[:] = q
        self.state.qvel[:] = v
        self._call()

    def jacobian(self) -> Array:
        """All rows in full coordinates (3 n, nv)."""
        r = self.rows
        J = np.zeros((r.number[0], self.plan.robot.nv))
        for n in range(r.number[0]):
            for entry in range(r.start[n], r.start[n + 1]):
                J[n, r.entry_dof[entry]] += r.entry_value[entry]
        return J
