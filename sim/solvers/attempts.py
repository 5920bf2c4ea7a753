"""Attempts at Coulomb's law: sweeps of nsgs.py from the start of the step, then Newton steps of coulomb.py.

The kind of island decides which attempts pay: free bodies are swept cheaply, articulated robots are not.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import any_positive
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle
from artsim.sim.solvers.coulomb import coulomb
from artsim.sim.solvers.impulses import set_gradient
from artsim.sim.solvers.multipliers import prepare_island
from artsim.sim.solvers.nsgs import sweep_island

CLOSE = 0.1  # times the convex problem's ε, with which coulomb.py starts near the solution
SLIDING_STEPS = 8  # of coulomb.py at most where contacts go on sliding
RESTING = 1e-9  # of the largest velocity: slower slides count as rest
FAR = 1e3  # times the convex problem's ε, for a start far from the solution


@njit
def attempt(
    robot: RobotBundle,
    rows: Rows,
    step: Step,
    solver: SolverBundle,
    island: int,
    tolerance: float,
    limit: float,
    effort: tuple[int, int, float],
) -> float:
    """Solve Coulomb's law of the island from the warm-start λ; return the residual of its rows [rad/s or m/s].

    `effort`: most sweeps of nsgs.py, most steps of coulomb.py, and the initial ε of these steps, relative to the convex
    problem's. Impulses above `limit` [N s or N m s] are no solution.
    """
    model, data = robot.model, robot.data
    work = solver.newton
    sweeps, steps, first = effort
    restart(model, data, rows, step, solver, island)
    if sweeps > 0:
        sweep_island(model, data, rows, work, island, tolerance, sweeps)
    return coulomb(robot, rows, step, work, island, (tolerance, limit), (steps, first, False, sweeps > 0, False))


@njit
def restart(model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int) -> None:
    """Reset the island to x = 0 and the warm-start λ; see `begin`."""
    warm_start(rows, solver.newton, island)
    begin(model, data, rows, step, solver, island)


@njit
def warm_start(rows: Rows, work: NewtonWork, island: int) -> None:
    """Set λ of the island to the warm start, which note_start stored."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            rows.impulse[row] = work.first[row]


@njit
def begin(model: Model, data: Workspace, rows: Rows, step: Step, solver: SolverBundle, island: int) -> None:
    """Set the island to x = 0 with its present λ; nothing is factorised, the work's gradient holds -f - Jᵀλ."""
    work = solver.newton
    prepare_island(data, rows, step, solver, island)
    set_gradient(rows, step.free, work, island)
    work.factorised[island] = 0


@njit
def note_start(rows: Rows, work: NewtonWork, island: int) -> None:
    """Store the warm-start λ and the cfm of the island in work.first and work.given."""
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        for row in range(n, n + max(rows.cone[n], 1)):
            work.first[row] = rows.impulse[row]
            work.given[row] = rows.cfm[row]


@njit
def count_cones(rows: Rows, work: NewtonWork, island: int) -> int:
    """Number of Coulomb's cones in the island: convex ones are solved as rows with bounds are."""
    count = 0
    for entry in range(work.unit_start[island], work.unit_start[island + 1]):
        n = work.listed[entry]
        count += 1 if rows.cone[n] > 1 and any_positive(rows.shifting[n]) else 0
    return count


@njit
def is_articulated(model: Model, work: NewtonWork, island: int) -> bool:
    """True if the island has more dofs than free bodies have: Newton steps then cost less than a few sweeps."""
    dofs, trees = 0, 0
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            dofs += 1
            trees += 1 if model.independent_parent[a] < 0 else 0
    return dofs > 6 * trees
