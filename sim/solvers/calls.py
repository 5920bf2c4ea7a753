"""Calls of a step's solver, which is an entry over the rows.

Each solver has one entry, the same for all variants of the step. The step knows of it what SolverCall holds, and asks
solvers that do without a mass matrix for products with M̂⁻¹. Packs, whose SolverBundle has no call, have a matrix.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import factorise, solve_part
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.run_data.registry import MEAN_VELOCITY
from artsim.sim.run_data.run_records import VELOCITY_SWEEPS, Inputs, Step
from artsim.sim.run_data.scratch import (
    ANSWER,
    ASKED_FOR,
    FACTORISE,
    FORMS_MASS_MATRIX,
    FROM,
    REDUCE,
    SWEEPS,
    TO,
    SolverBundle,
    SolverCall,
)


@inlined
def ask(call: SolverCall, task: int) -> None:
    """Let the solver do a task: SOLVE, SOLVE_AGAIN, REDUCE, FACTORISE."""
    call.task[ASKED_FOR] = task
    run_entry(call.entry)


@inlined
def sweeps_rows(solver: SolverBundle) -> bool:
    """True for solvers that sweep over the rows as the PhysX guide does: every drive is a row, springs are implicit."""
    if solver.call is None:
        return False
    return solver.call.traits[SWEEPS] == 1


@inlined
def forms_mass_matrix(solver: SolverBundle) -> bool:
    """True if the solver takes M̂ as a matrix, from M in data.factor."""
    if solver.call is None:
        return True
    return solver.call.traits[FORMS_MASS_MATRIX] == 1


@njit
def reduce_system(model: Model, data: Workspace, step: Step, solver: SolverBundle) -> None:
    """M̂ = M + step.diagonal, reduced to the independent dofs: in data.factor, or in the solver's form."""
    if solver.call is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if not forms_mass_matrix(solver):
            ask(solver.call, REDUCE)
            return
    reduce_matrix(model, data, step.diagonal)


@njit
def factorise_system(model: Model, data: Workspace, solver: SolverBundle) -> None:
    """Factorise that matrix alone, without rows."""
    if solver.call is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if not forms_mass_matrix(solver):
            ask(solver.call, FACTORISE)
            return
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)


@inlined
def answer(model: Model, data: Workspace, solver: SolverBundle, first: int, end: int) -> None:
    """data.reduced = M̂⁻¹ data.reduced, which is 0 but for one tree, whose entries are those from `first` to before
    `end`.
    """
    if solver.call is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if not forms_mass_matrix(solver):
            solver.call.task[FROM] = first
            solver.call.task[TO] = end
            ask(solver.call, ANSWER)
            return
    parent, run = model.independent_parent, model.independent_run
    solve_part(data.factor, data.inverse_pivot, parent, run, data.reduced, first, end)


@inlined
def moves_by_mean(inputs: Inputs) -> bool:
    """True if positions move by the mean velocity of the sweeps and not by the velocities at the end of the step."""
    return MEAN_VELOCITY[inputs.solver[0]] or inputs.sweeping[VELOCITY_SWEEPS] > 0.0
