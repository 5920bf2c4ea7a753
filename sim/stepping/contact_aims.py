"""Aims contacts of bodies that turn far at where the velocities found lead, and solves the rows again.

Each aim measures the gaps at the end of the step (contact/foresight.py) and corrects the biases by them, as SHAKE does.
With each aim the remaining miss shrinks by a factor of about the angle [rad] turned in a step.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.row import FASTER, UNSOLVED
from artsim.sim.contact.foresight import aim, keep_aims, take_aims_back
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import SOLVER
from artsim.sim.run_data.run_records import RESIDUAL, Rows, RunBundle
from artsim.sim.run_data.scratch import SOLVE_AGAIN, SolverBundle
from artsim.sim.solvers.calls import ask
from artsim.sim.stepping.aims import fastest_of
from artsim.sim.stepping.system import set_end_velocities

_AIMS = 6  # per step at most
_MANY = 200  # contacts above which at most _FEW_AIMS are taken: each aim takes as long as the step
_FEW_AIMS = 2


@njit
def aim_contacts(robot: RobotBundle, run: RunBundle, rows: Rows, contact: ContactBundle, solver: SolverBundle) -> None:
    """Aim the chosen contacts until a further aim would change too little to matter. An aim is taken back where aimed
    rows contradict each other, or turn velocities into much larger ones. Needs the bodies' velocities of step.velocity,
    and leaves them.
    """
    model, data, step = robot.model, robot.data, run.step
    most = FASTER * fastest_of(step, 0.0)
    solved = rows.report[RESIDUAL] <= UNSOLVED
    for _ in range(_AIMS if contact.data.number[CONTACTS] <= _MANY else _FEW_AIMS):
        keep_aims(contact)
        run_entry(contact.data.foresight)
        if not aim(robot, run, rows, contact):
            break
        ask(solver.call, SOLVE_AGAIN)
        absurd = (solved and rows.report[RESIDUAL] > UNSOLVED) or fastest_of(step, 0.0) > most
        if absurd:
            take_aims_back(rows, contact)
            ask(solver.call, SOLVE_AGAIN)
        set_end_velocities(model, data, run)
        velocities(model, step.velocity, data)
        mark(run.clock, SOLVER)
        if absurd:
            break
