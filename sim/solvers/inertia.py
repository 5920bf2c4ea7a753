"""M̂ in the form of the solver's scratch: the tree of propagation, the graph of direct, or newton's matrix by blocks.

The form is chosen at compile time. All that newton asks of M̂ is here.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive
from artsim.sim.foundation.records import Lanes1, Real
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import KEPT_ISLAND, MOST_LINES, SolverBundle
from artsim.sim.solvers.blocks import add_product, factorise_blocks, set_inertia, solve_blocks, times_inertia
from artsim.sim.solvers.impulses import rows_times, set_lines, weigh_lines
from artsim.sim.solvers.loads import are_of_one_pair
from artsim.sim.solvers.published.direct import factorise_graph, solve_graph
from artsim.sim.solvers.published.full_coordinates import mass_times, note_couplings, note_diagonal, note_rows
from artsim.sim.solvers.published.propagation import factorise_tree, solve_tree


@njit
def reduce_inertia(model: Model, data: Workspace, step: Step, solver: SolverBundle) -> None:
    """Take M̂ = M + step.diagonal, for a tree or a graph."""
    if solver.tree is not None:
        note_diagonal(model, data, step.diagonal, solver.tree)
    if solver.graph is not None:
        note_diagonal(model, data, step.diagonal, solver.graph)


@njit
def factorise_inertia(model: Model, data: Workspace, solver: SolverBundle) -> None:
    """Factorise the tree's or the graph's M̂ without rows."""
    if solver.tree is not None:
        note_couplings(model, data, solver.tree)
        factorise_tree(model, data, solver.tree)
    if solver.graph is not None:
        note_couplings(model, data, solver.graph)
        factorise_graph(model, data, solver.graph)


@njit
def solve_inertia(model: Model, data: Workspace, solver: SolverBundle, x: Lanes1) -> None:
    """x (nu,) = H⁻¹ x of the tree or the graph factorised."""
    if solver.tree is not None:
        solve_tree(model, data, solver.tree, x)
    if solver.graph is not None:
        solve_graph(model, data, solver.graph, x)


@inlined
def inertia_of(data: Workspace, a: int, solver: SolverBundle) -> Real:
    """The diagonal entry of M̂ for dof a [kg m² or kg]."""
    if solver.tree is not None:
        return solver.tree.inertia[a]
    if solver.graph is not None:
        return solver.graph.inertia[a]
    return data.factor[a, a]


@njit
def factorise_with_rows(model: Model, data: Workspace, rows: Rows, solver: SolverBundle, island: int) -> None:
    """Factorise H = M̂ + Jᵀ D J of the island with the present weights, ready for `solve_island`.

    Cost: O(fill²) of the island's blocks for M̂ as a matrix, O(n) for a tree or a chain of joints in a graph.
    """
    work = solver.newton
    if solver.tree is not None:
        note_couplings(model, data, solver.tree)
        note_rows(model, rows, work, solver.tree)
        factorise_tree(model, data, solver.tree)
    elif solver.graph is not None:
        note_couplings(model, data, solver.graph)
        note_rows(model, rows, work, solver.graph)
        factorise_graph(model, data, solver.graph)
    else:
        work.sizes[KEPT_ISLAND] = 0
        set_inertia(model, data, work, island, work.matrix)
        first, lines = 0, 0  # rows of contacts of one pair that are added at once
        for entry in range(work.unit_start[island], work.unit_start[island + 1]):
            n = work.listed[entry]
            work.weight_used[n] = work.weight[n]
            if not any_positive(work.weight[n]):
                continue
            if lines > 0 and not _follows(rows, n, first, lines):
                add_product(rows, work, first, lines, work.matrix)
                lines = 0
            first = n if lines == 0 else first
            set_lines(rows, work, n, lines, False)
            weigh_lines(rows, work, n, lines, work.weight[n], work.weight1[n], work.weight2[n], work.weight3[n])
            lines += max(rows.cone[n], 1)
        if lines > 0:
            add_product(rows, work, first, lines, work.matrix)
        factorise_blocks(work, island, work.matrix, work.matrix, False)


@inlined
def _follows(rows: Rows, n: int, first: int, lines: int) -> bool:
    """True if the unit of row n follows the `lines` rows from `first` on, and moves the dofs that these move."""
    fits: bool = n == first + lines and lines + max(rows.cone[n], 1) <= MOST_LINES
    return fits and are_of_one_pair(rows, first, n)


@njit
def solve_island(model: Model, data: Workspace, solver: SolverBundle, island: int) -> None:
    """solver.newton.direction (nu,) = -H⁻¹ solver.newton.gradient of the island."""
    work = solver.newton
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            work.direction[a] = -work.gradient[a]
    if solver.tree is not None:
        solve_tree(model, data, solver.tree, work.direction)
    elif solver.graph is not None:
        solve_graph(model, data, solver.graph, work.direction)
    else:
        solve_blocks(work, island, work.matrix, work.matrix)


@njit
def set_along(model: Model, data: Workspace, rows: Rows, solver: SolverBundle, island: int) -> None:
    """Set the effects of the direction d in solver.newton: along (rows,) = J d, through (nu,) = M̂ d."""
    work = solver.newton
    if solver.tree is not None:
        mass_times(model, data, solver.tree, work.direction, work.through)
    elif solver.graph is not None:
        mass_times(model, data, solver.graph, work.direction, work.through)
    else:
        times_inertia(
            model.independent_parent, model.independent_run, data.factor, work, island, work.direction, work.through
        )
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        rows_times(rows, work.listed[entry], work.direction, work.along)
