"""Problems of the newton solver by themselves, each in a kernel of its own: for one robot, and for a pack of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.contact.pack_contacts import (
    LaneRows,
    LaneSolver,
    OwnRows,
    PackSolver,
    SingleSolver,
    lane_order,
    lane_solver_shapes,
    make_lane_solver,
    make_own_rows,
    own_shapes,
)
from artsim.sim.foundation.jit import Entry, bind, njit, point_at
from artsim.sim.foundation.records import ConstInts1, Lanes1, Lanes2, Lanes3, allocate, with_lanes, with_members
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import MOST_TOGETHER, NEWTON_ALONE, NewtonWork, SolverBundle, make_call, newton_shapes
from artsim.sim.solvers.newton import newton
from artsim.sim.solvers.pack_newton import solve_pack

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
    """What comes in and goes out, named as in a step."""

    free: Lanes1  # (nu,) force
    next: Lanes1  # (nu,) velocity


@njit
def solve_problem(robot: Any, rows: Any, problem: Any, solver: Any) -> None:
    """One call of newton."""
    newton(robot, rows, problem, solver, True)


@njit
def solve_problems(robot: Any, rows: Any, problem: Any, solver: Any) -> None:
    """One call of solve_pack."""
    solve_pack(robot, rows, problem, solver)


ROBOT = with_members(RobotBundle, model=Tree, state=None, data=Inertia)
ENTRY = Entry("solve_problem", __name__, (ROBOT, Rows, Problem, NEWTON_ALONE))
LaneInertia, LaneProblem = with_lanes(Inertia, "LaneInertia", ()), with_lanes(Problem, "LaneProblem", ())
SINGLE = with_members(SingleSolver, data=LaneInertia, step=LaneProblem)
PACK_SOLVER = with_members(
    SolverBundle, newton=NewtonWork, pack=PackSolver, own=OwnRows, lane=LaneSolver, single=SINGLE
)
PACK_ENTRY = Entry("solve_problems", __name__, (ROBOT, Rows, Problem, PACK_SOLVER))


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
    """The rows of one case or of a pack, and a call that puts into them what they start with; `start` (rows, [8])."""
    width, first = len(cases), cases[0]
    n = len(first.jacobian)
    pattern = np.any([c.jacobian != 0 for c in cases], axis=0)
    for row in np.nonzero(first.cone > 1)[0]:  # the rows of a cone have the same columns
        pattern[row : row + first.cone[row]] = pattern[row : row + first.cone[row]].any(axis=0)
    entries = int(pattern.sum())
    shapes = {**dict.fromkeys(Rows._fields, (n,)), "number": (3,), "start": (n + 1,), "report": (3,)}
    shapes |= dict.fromkeys(("column", "value", "entry_dof", "entry_value"), (entries,))
    rows: Rows = allocate(Rows, shapes, width)
    rows.number[0] = n
    rows.start[1:] = rows.stop[:] = np.cumsum(pattern.sum(axis=1))
    rows.column[:] = rows.entry_dof[:] = np.nonzero(pattern)[1]
    rows.cone[:] = first.cone

    def fill() -> None:
        rows.report[:] = 0.0
        for at, c in zip(_lanes(width), cases, strict=True):
            rows.value[at] = c.jacobian[pattern]
            for name in ("bias", "cfm", "lower", "upper", "slope"):
                getattr(rows, name)[at] = getattr(c, name)
            rows.shifting[at] = c.slope
            rows.impulse[at] = 0.0 if start is None else start[at]

    return rows, fill


def _lanes(width: int) -> list[Any]:
    """Indices of each robot's entries in a lane array."""
    return [(..., lane) for lane in range(width)] if width > 1 else [(...,)]


def _tree(nu: int, parent: NDArray[np.int64] | None) -> Tree:
    """M̂'s elimination tree; without `parent` M̂ may be full."""
    tree = Tree(np.arange(nu) - 1, np.zeros(nu, np.int64)) if parent is None else Tree(parent.copy(), runs(parent))
    for array in tree:
        array.setflags(write=False)
    return tree


def _inertia(*cases: Case) -> Inertia:
    """M̂ of one case or of a pack."""
    nu = len(cases[0].velocity)
    inertia: Inertia = allocate(Inertia, {"factor": (nu, nu), "rotation": (1, 1, 1)}, len(cases))
    for at, c in zip(_lanes(len(cases)), cases, strict=True):
        inertia.factor[at] = np.tril(c.matrix)
    return inertia


def _work(tree: Tree, rows: Rows) -> NewtonWork:
    """Newton's scratch for one robot."""
    parent = tree.independent_parent
    shapes = newton_shapes(parent, len(rows.bias), len(parent), len(rows.value))
    work: NewtonWork = allocate(NewtonWork, shapes)
    return work


def bound(c: Case, *, start: Real | None = None, parent: NDArray[np.int64] | None = None) -> Bound:
    """A case ready to be solved; arguments as of `solve`."""
    nu = len(c.velocity)
    tree, inertia = _tree(nu, parent), _inertia(c)
    problem: Problem = allocate(Problem, {"free": (nu,), "next": (nu,)})
    rows, fill = rows_of(c, start=start)
    work = _work(tree, rows)

    def restore() -> None:
        fill()
        problem.free[:] = c.force
        problem.next[:] = c.velocity

    restore()
    return Bound(
        bind(ENTRY, 1, RobotBundle(tree, None, inertia), rows, problem, SolverBundle(work)),
        restore,
        rows,
        problem,
    )


def solve(c: Case, *, start: Real | None = None, parent: NDArray[np.int64] | None = None) -> Solution:
    """The solution of a case.

    `start`: the impulses to begin with; `parent` (nu,): M̂'s elimination tree, without it M̂ may be full.
    """
    call, _, rows, problem = bound(c, start=start, parent=parent)
    call()
    return Solution(problem.next.copy(), rows.impulse.copy(), int(rows.report[0]), float(rows.report[1]))


def solve_together(*cases: Case, start: Real, room: int = 0) -> tuple[list[tuple[Real, Real]], int]:
    """Velocities and impulses of 8 cases with the same pattern and cones from impulses (rows, 8), and the number of
    those that the pack has left to newton itself. `room`: so many rows a robot can have at least; with many, each lane
    is solved by itself."""
    width, (n, nu) = len(cases), cases[0].jacobian.shape
    tree, inertia = _tree(nu, None), _inertia(*cases)
    step: Problem = allocate(Problem, {"free": (nu,), "next": (nu,)}, width)
    rows, fill = rows_of(*cases, start=start)
    fill()
    of_work = newton_shapes(tree.independent_parent, n, nu, len(rows.value))
    work = allocate(NewtonWork, of_work | lane_solver_shapes(nu), width)
    shapes = {
        **dict.fromkeys(PackSolver._fields, (1,)),
        "entry": (2,),
        "change": (nu,),
        **dict.fromkeys(("impulse", "placed"), (n,)),
        **own_shapes(width),
    }
    pack: PackSolver = allocate(PackSolver, shapes, width)
    pack = pack._replace(unlike=np.array([max(n, room) > MOST_TOGETHER], np.int64))
    for at, c in zip(_lanes(width), cases, strict=True):
        step.free[at] = c.force
        step.next[at] = c.velocity
    one, problem, (alone, _) = _inertia(cases[0]), allocate(Problem, {"free": (nu,), "next": (nu,)}), rows_of(cases[0])
    call = make_call(False, True, SolverBundle())
    kept = point_at(
        ENTRY, 1, call.entry, RobotBundle(tree, None, one), alone, problem, SolverBundle(_work(tree, alone))
    )
    single = SingleSolver(call, lane_order(None), LaneRows(*alone), LaneInertia(*one), LaneProblem(*problem))
    solver = SolverBundle(work, pack=pack, own=make_own_rows(work, width), lane=make_lane_solver(), single=single)
    bind(PACK_ENTRY, width, RobotBundle(tree, None, inertia), rows, step, solver)()
    del kept
    found = [(step.next[at].copy(), pack.impulse[at][:n].copy()) for at in _lanes(width)]
    return found, int(np.sum(pack.by_newton))
