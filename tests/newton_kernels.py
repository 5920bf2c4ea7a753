"""Problems of the newton solver by themselves, in one kernel, for one robot or a pack of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.sim.jit import Entry, bind, njit
from artsim.sim.records import ConstInts1, Lanes1, Lanes2, Lanes3, allocate, with_members
from artsim.sim.run import Rows
from artsim.sim.solvers.newton import newton
from artsim.sim.solvers.scratch import NEWTON_ALONE, NewtonWork, SolverBundle, newton_shapes
from artsim.sim.state import RobotBundle

Real = NDArray[np.float64]


class Tree(NamedTuple):
    """What newton reads of a Model: a chain, so that M̂ may be full."""

    independent_parent: ConstInts1  # (nu,)
    independent_run: ConstInts1  # (nu,)


class Inertia(NamedTuple):
    """What it reads of a Workspace."""

    factor: Lanes2  # (nu, nu) M̂
    rotation: Lanes3  # (1, 1, 1) its type says how wide T is


class Problem(NamedTuple):
    """What comes in and goes out."""

    force: Lanes1  # (nu,)
    velocity: Lanes1  # (nu,)


@njit
def solve_problem(robot: Any, rows: Any, problem: Any, solver: Any) -> None:
    """One call of newton."""
    newton(robot, None, rows, problem.force, problem.velocity, solver)


ROBOT = with_members(RobotBundle, model=Tree, state=None, data=Inertia)
ENTRY = Entry("solve_problem", __name__, (ROBOT, Rows, Problem, NEWTON_ALONE))


class Case(NamedTuple):
    """M̂ (nu, nu), J (rows, nu), the rest by rows; `cone` as in Rows."""

    matrix: Real
    jacobian: Real
    bias: Real
    cfm: Real
    lower: Real
    upper: Real
    velocity: Real
    force: Real
    cone: NDArray[np.int64]
    slope: Real


def case(matrix: Real, jacobian: Real, velocity: Real, force: Real, **rows: Real) -> Case:
    """A case whose rows are hard equalities without bias, where `rows` do not say otherwise."""
    n = len(jacobian)
    usual = {"lower": np.full(n, -1e308), "upper": np.full(n, 1e308), "cone": np.zeros(n, np.int64)}
    given = {**dict.fromkeys(("bias", "cfm", "slope"), np.zeros(n)), **usual, **rows}
    return Case(matrix=matrix, jacobian=jacobian, velocity=velocity, force=force, **given)


class Solution(NamedTuple):
    """Velocities (nu,), impulses (rows,), Newton steps, what is left."""

    velocity: Real
    impulse: Real
    steps: int
    left: float


def runs(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """First dof of the unbroken run of ancestors that ends with each dof."""
    found = np.arange(len(parent))
    for a in range(1, len(parent)):
        if parent[a] == a - 1:
            found[a] = found[a - 1]
    return found


class Bound(NamedTuple):
    """A call that solves what the records hold, again and again; `restore` puts their start back."""

    call: Callable[[], None]
    restore: Callable[[], None]
    rows: Rows
    problem: Problem


def rows_of(*cases: Case, start: Real | None = None) -> tuple[Rows, Callable[[], None]]:
    """The rows of one case or of a pack, and a call that puts into them what they start with."""
    width, first = len(cases), cases[0]
    n = len(first.jacobian)
    pattern = np.any([c.jacobian != 0 for c in cases], axis=0)
    for row in np.nonzero(first.cone > 1)[0]:  # the rows of a cone have the same columns
        pattern[row : row + first.cone[row]] = pattern[row : row + first.cone[row]].any(axis=0)
    entries = int(pattern.sum())
    shapes = {**dict.fromkeys(Rows._fields, (n,)), "number": (1,), "start": (n + 1,), "report": (2,)}
    shapes |= dict.fromkeys(("column", "value", "entry_dof", "entry_value"), (entries,))
    rows: Rows = allocate(Rows, shapes, width)
    rows.number[0] = n
    rows.start[1:] = rows.stop[:] = np.cumsum(pattern.sum(axis=1))
    rows.column[:] = rows.entry_dof[:] = np.nonzero(pattern)[1]
    rows.cone[:] = first.cone

    def fill() -> None:
        rows.report[:] = 0.0
        for lane, c in enumerate(cases):
            at = (..., lane) if width > 1 else (...,)
            rows.value[at] = c.jacobian[pattern]
            for name in ("bias", "cfm", "lower", "upper", "slope"):
                getattr(rows, name)[at] = getattr(c, name)
            rows.impulse[at] = 0.0 if start is None else start

    return rows, fill


def bound(*cases: Case, start: Real | None = None, parent: NDArray[np.int64] | None = None) -> Bound:
    """One case, or a pack of 8 with the same pattern and cones, ready to be solved; arguments as of `solve`."""
    width, first = len(cases), cases[0]
    n, nu = first.jacobian.shape
    tree = Tree(np.arange(nu) - 1, np.zeros(nu, np.int64)) if parent is None else Tree(parent.copy(), runs(parent))
    for array in tree:
        array.setflags(write=False)
    inertia = allocate(Inertia, {"factor": (nu, nu), "rotation": (1, 1, 1)}, width)
    problem = allocate(Problem, {"force": (nu,), "velocity": (nu,)}, width)
    rows, fill = rows_of(*cases, start=start)
    work = allocate(NewtonWork, newton_shapes(tree.independent_parent, n, nu, len(rows.value)), width)

    def restore() -> None:
        fill()
        for lane, c in enumerate(cases):
            at = (..., lane) if width > 1 else (...,)
            inertia.factor[at] = np.tril(c.matrix)
            problem.force[at] = c.force
            problem.velocity[at] = c.velocity

    restore()
    return Bound(
        bind(ENTRY, width, RobotBundle(tree, None, inertia), rows, problem, SolverBundle(work, None, None, None)),
        restore,
        rows,
        problem,
    )


def solve(*cases: Case, start: Real | None = None, parent: NDArray[np.int64] | None = None) -> list[Solution]:
    """The solutions of one case, or of a pack of 8 with the same pattern and cones.

    `start`: the impulses to begin with; `parent` (nu,): M̂'s elimination tree, without it M̂ may be full.
    """
    width = len(cases)
    call, _, rows, problem = bound(*cases, start=start, parent=parent)
    call()
    lanes = [(..., lane) for lane in range(width)] if width > 1 else [(...,)]
    return [
        Solution(problem.velocity[at].copy(), rows.impulse[at].copy(), int(rows.report[0]), float(rows.report[1]))
        for at in lanes
    ]
