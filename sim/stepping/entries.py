"""Selects a run's compiled entry by integrator, solver and the features in use. Does not import numba."""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import with_members
from artsim.sim.geometry.contacts import ContactBundle
from artsim.sim.run_data.integration import Integrator
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.phases import Clock
from artsim.sim.run_data.registry import SOLVERS, Solver
from artsim.sim.run_data.run_records import UNCLOCKED_RUN, Block, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import MEMBERS, NEWTON_ALONE, NewtonWork, SolverBundle, may_crowd

_SOLVED = (RobotBundle, Rows, Step, NEWTON_ALONE)
SOLVE = Entry("solve_alone", "artsim.sim.solvers.alone", _SOLVED)
SOLVE_WITHOUT_CONTACTS = Entry("solve_without_contacts", "artsim.sim.solvers.alone", _SOLVED)


def solver_of(integrator: Integrator, solver: Solver) -> Solver:
    """The solver that solves an integrator's steps when this one is chosen."""
    return SOLVERS[integrator.solver] if integrator.solver else solver


def solve_entry(model: Model, touching: bool) -> Entry:
    """The kernel that solves the rows of a step, pruned of what contacts and crowds need, if the run has neither."""
    return SOLVE if touching or may_crowd(model) else SOLVE_WITHOUT_CONTACTS


def beside_entry(equipped: bool, touching: bool) -> Entry:
    """The kernel of what is done beside steps, for all integrators and solvers."""
    bundles = (
        RobotBundle,
        UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        ContactBundle if touching else None,
    )
    return Entry("take_task", "artsim.sim.stepping.beside", bundles, "_equipped" * equipped + "_touching" * touching)


def simulate_entry(
    integrator: Integrator,
    solver: Solver,
    equipped: bool,
    touching: bool = False,
    ruled: bool = False,
    *,
    clocked: bool = False,
) -> Entry:
    """The kernel of an integrator and a solver, pruned of equipment, contacts and rules that the run lacks.

    clocked: with marks between the phases of a step, if the integrator has any.
    """
    work, clocked = solver_of(integrator, solver).work, clocked and integrator.phases
    bundles = (
        RobotBundle,
        with_members(RunBundle, block=Block, clock=Clock) if clocked else UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        ContactBundle if touching else None,
        RuleBundle if ruled else None,
        with_members(SolverBundle, **{MEMBERS[kind]: kind for kind in work}),
    )
    variant = "_equipped" * equipped + "_touching" * touching + "_ruled" * ruled
    variant += "".join(f"_{MEMBERS[kind]}" for kind in work if kind is not NewtonWork) + "_clocked" * clocked
    return Entry(integrator.kernel, integrator.module, bundles, variant)
