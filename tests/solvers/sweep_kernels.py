"""Problems of newton_kernels.py through the solvers that sweep, and through nsgs.py and crowd.py by themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.sim.foundation.jit import Entry, bind, njit
from artsim.sim.foundation.records import ConstInts1, ConstReals1, Lanes1, Lanes2, Lanes3, allocate, with_members
from artsim.sim.run_data.run_records import ITERATIONS, RESIDUAL, Rows, RunBundle
from artsim.sim.run_data.scratch import (
    ISLANDS,
    NEWTON_ALONE,
    NEWTON_STEPS,
    NewtonWork,
    SolverBundle,
    SweepWork,
    newton_shapes,
)
from artsim.sim.solvers import nsgs
from artsim.sim.solvers.attempts import note_start
from artsim.sim.solvers.crowd import solve_hard_crowd
from artsim.sim.solvers.elimination import find_structure
from artsim.sim.solvers.impulses import set_gradient
from artsim.sim.solvers.multipliers import prepare_island
from artsim.sim.solvers.published.block_gs import block_gs
from artsim.sim.solvers.published.pgs import pgs
from artsim.sim.solvers.published.tgs import tgs
from tests.solvers.newton_kernels import Bound, Case, Problem, rows_of, runs

BLOCK = 16  # rows that block_gs solves together: contacts are alone


class SweptTree(NamedTuple):
    """What they read of a Model: everything is on one link. Compiled code knows records by their classes' names."""

    independent_parent: ConstInts1  # (nu,)
    independent_run: ConstInts1  # (nu,)
    independent_dof: ConstInts1  # (nu,)
    dof_body: ConstInts1  # (nu,)


class SweptInertia(NamedTuple):
    """What they read of a Workspace; M̂ is factorised in place."""

    factor: Lanes2  # (nu, nu) M̂
    inverse_pivot: Lanes1  # (nu,)
    rotation: Lanes3  # (1, 1, 1)


class Sweeps(NamedTuple):
    """What they read of Inputs."""

    iterations: ConstInts1  # (1,)
    time_step: ConstReals1  # (1,)
    sweeping: ConstReals1  # (4,) all 0: no sweeps for velocities alone


@njit
def solve_pgs(model: Any, data: Any, run: Any, rows: Any, sweeps: Any) -> None:
    """One call of pgs."""
    pgs(model, data, run, rows, sweeps)


@njit
def solve_tgs(model: Any, data: Any, run: Any, rows: Any, sweeps: Any) -> None:
    """One call of tgs."""
    tgs(model, data, run, rows, sweeps)


@njit
def solve_block_gs(model: Any, data: Any, run: Any, rows: Any, sweeps: Any) -> None:
    """One call of block_gs."""
    block_gs(model, data, run, rows, sweeps)


@njit
def solve_nsgs(model: Any, data: Any, inputs: Any, rows: Any, problem: Any, solver: Any) -> None:
    """Sweeps of nsgs over every island, which newton takes a few of."""
    work = solver.newton
    find_structure(model, rows, work, False, False)
    for k in range(work.sizes[ISLANDS]):
        prepare_island(data, rows, problem, solver, k)
        set_gradient(rows, problem.free, work, k)
        nsgs.sweep_island(model, data, rows, work, k, 0.0, inputs.iterations[0])
    rows.report[ITERATIONS] = inputs.iterations[0]


@njit
def solve_crowd(model: Any, data: Any, inputs: Any, rows: Any, problem: Any, solver: Any) -> None:
    """Every island as newton solves a crowd's contacts that are hard."""
    work = solver.newton
    find_structure(model, rows, work, False, False)
    rows.report[ITERATIONS] = 0.0
    rows.report[RESIDUAL] = 0.0
    for k in range(work.sizes[ISLANDS]):
        note_start(rows, work, k)
        work.sizes[NEWTON_STEPS] = 0
        left, _ = solve_hard_crowd(model, data, rows, problem, solver, k)
        rows.report[RESIDUAL] = max(rows.report[RESIDUAL], left)
        rows.report[ITERATIONS] = max(rows.report[ITERATIONS], work.sizes[NEWTON_STEPS])
    for a in range(problem.next.shape[0]):
        problem.next[a] += work.change[a]


_RUN = with_members(RunBundle, inputs=Sweeps, step=Problem)
_NEWTON = (SweptTree, SweptInertia, Sweeps, Rows, Problem, NEWTON_ALONE)
_SWEEPING = (SweptTree, SweptInertia, _RUN, Rows, SweepWork)
SOLVERS = {
    **{name: Entry(f"solve_{name}", __name__, _NEWTON) for name in ("nsgs", "crowd")},
    **{name: Entry(f"solve_{name.replace('-', '_')}", __name__, _SWEEPING) for name in ("pgs", "tgs")},
    "block-gs": Entry("solve_block_gs", __name__, _SWEEPING),
}


def swept(name: str, case: Case, parent: NDArray[np.int64], sweeps: int) -> Bound:
    """A case ready to be solved by one of SOLVERS with so many sweeps; as newton_kernels.bound."""
    n, nu = case.jacobian.shape
    zero = np.zeros(nu, np.int64)
    tree = SweptTree(parent.copy(), runs(parent), np.arange(nu), zero)
    given = Sweeps(np.array([sweeps]), np.ones(1), np.zeros(4))
    for array in (*tree, *given):
        array.setflags(write=False)
    inertia: SweptInertia = allocate(SweptInertia, {"factor": (nu, nu), "inverse_pivot": (nu,), "rotation": (1, 1, 1)})
    problem: Problem = allocate(Problem, {"free": (nu,), "next": (nu,)})
    rows, fill = rows_of(case)
    entry = SOLVERS[name]
    if entry.records == _NEWTON:
        work: Any = allocate(NewtonWork, newton_shapes(tree.independent_parent, n, nu, len(rows.value)))
        work = SolverBundle(work)
    else:
        shapes: dict[str, tuple[int, ...]] = {**dict.fromkeys(SweepWork._fields, (n,)), "of_column": (nu,)}
        shapes |= {
            "inverse_mass_jacobian": (n, nu),
            "sorted": (1,),
            "mean": (nu,),
            "matrix": (n, BLOCK),
            "triangle": (n, BLOCK),
        }
        work = allocate(SweepWork, shapes)

    def restore() -> None:
        fill()
        inertia.factor[:] = np.tril(case.matrix)
        problem.free[:] = case.force
        problem.next[:] = case.velocity

    restore()
    if entry.records == _NEWTON:
        return Bound(bind(entry, 1, tree, inertia, given, rows, problem, work), restore, rows, problem)
    run = RunBundle(given, problem)  # type: ignore[arg-type]  # of what they read alone
    return Bound(bind(entry, 1, tree, inertia, run, rows, work), restore, rows, problem)
