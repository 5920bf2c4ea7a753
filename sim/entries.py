"""The compiled entries of a run: what simulates it, by integrator, solver and what there is. No numba here."""

from __future__ import annotations

from artsim.sim.contacts import Contacts, ContactWork
from artsim.sim.equipment.record import Equipment, EquipmentWork
from artsim.sim.integration import Integrator
from artsim.sim.jit import Entry
from artsim.sim.link_rules import LinkRules, LinkRuleWork
from artsim.sim.model import Model
from artsim.sim.phases import Clock
from artsim.sim.run import Block, Inputs, Rows, Step
from artsim.sim.solvers.registry import SOLVERS, Solver
from artsim.sim.solvers.scratch import DirectWork, NewtonWork, PropagationWork, SweepWork
from artsim.sim.state import State, Workspace

SOLVE = Entry("solve_alone", "artsim.sim.solvers.alone", (Model, Workspace, Rows, Step, NewtonWork))

_SCRATCH = {NewtonWork: "", SweepWork: "_sweeps", PropagationWork: "_propagation", DirectWork: "_direct"}


def solver_of(integrator: Integrator, solver: Solver) -> Solver:
    """The solver that an integrator's steps are solved by, where this one is chosen."""
    return SOLVERS[integrator.solver] if integrator.solver else solver


def simulate_entry(
    integrator: Integrator,
    solver: Solver,
    equipped: bool,
    touching: bool = False,
    ruled: bool = False,
    *,
    clocked: bool = False,
) -> Entry:
    """The kernel of an integrator and a solver, without what serves equipment, contacts or rules that are not there.

    clocked: with marks between the phases of a step, if the integrator has any.
    """
    work, clocked = solver_of(integrator, solver).work, clocked and integrator.phases
    records = (
        *(Model, State, Workspace, Inputs, Rows, Step, Block),
        *((Equipment, EquipmentWork) if equipped else (None, None)),
        *((Contacts, ContactWork) if touching else (None, None)),
        *((LinkRules, LinkRuleWork) if ruled else (None, None)),
        *(kind if kind in work else None for kind in _SCRATCH),
        Clock if clocked else None,
    )
    variant = "_equipped" * equipped + "_touching" * touching + "_ruled" * ruled
    variant += "".join(name for kind, name in _SCRATCH.items() if kind in work) + "_clocked" * clocked
    return Entry(integrator.kernel, integrator.module, records, variant)
