"""Declares the scratch records of the solvers of constraint rows, and computes their sizes. Does not import numba."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.budget import refuse_beyond_memory
from artsim.sim.foundation.records import (
    SEATS,
    STRIPS,
    WIDTH,
    ConstInts1,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    allocate,
    with_members,
)
from artsim.sim.run_data.run_records import Rows

MOST_LINES = 24  # rows of contacts of one pair of bodies that are added to the Newton matrix at once
MOST_DELASSUS_ROWS = 24  # rows of an island whose Newton steps are taken in impulses (solvers/delassus.py)
MOST_OF_LANE = 48  # rows of a lane of a pack whose Newton steps are taken in impulses (solvers/own_rows.py)
MOST_ABREAST = 20  # rows of a lane that takes these steps together with others
MOST_TOGETHER = 64  # rows of all lanes of which these steps are taken together
BLOCK = 16  # most rows that block_gs solves together
CROWD_TREES = 40  # trees of a crowd, an island that crowd.py solves, are more than these
CROWD_COLOURS = 60  # of units that crowd.py visits abreast, at most: one per bit
MIXED = 8  # sweeps that crowd.py mixes
# entries of NewtonWork.sizes
BLOCKS, ISLANDS, NEWTON_STEPS, TIED_ROWS, STEPPING_UNITS, KEPT_UNITS, KEPT_ISLAND, HELPS = range(8)
# entries of SolverCall.task: the task, and for ANSWER the first dof and the one past the last
ASKED_FOR, FROM, TO = range(3)
# tasks: solve the rows; solve them with another bias than before; take M̂ = M + step.diagonal, reduced to the
# independent dofs; factorise M̂; data.reduced = M̂⁻¹ data.reduced
SOLVE, SOLVE_AGAIN, REDUCE, FACTORISE, ANSWER = range(5)
# entries of SolverCall.traits, 1 where they hold (registry.py)
SWEEPS, FORMS_MASS_MATRIX = range(2)
# values of NewtonWork.again: begin; go on with another bias, from a solution; begin anew, since there was none
BEGIN, GO_ON, BEGIN_ANEW = range(3)
# entries of NewtonWork.taken
TURN, LARGEST = range(2)
# entries of PropagationWork.counts and DirectWork.counts
WIDE_ROWS, LIFTED_PIVOTS = range(2)
# columns of DirectWork.share
SHARED_MASS, SHARED_INERTIA = range(2)


class NewtonWork(NamedTuple):
    """Scratch of solvers/newton.py. A unit is a row with bounds or a cone; for blocks and islands see
    elimination.py."""

    start_helpers: Ints1  # (2,) addresses of the call that makes other threads take islands, and of its table; 0: none
    await_helpers: Ints1  # (2,) addresses of the call that waits until these threads have solved them
    taken: Ints1  # (2,) number of islands that threads have taken in this solution; the largest island, taken first
    again: Ints1  # (1,) BEGIN; if the step is solved again, GO_ON or BEGIN_ANEW
    # (8,) numbers of blocks, islands, Newton steps of the island, rows for which blocks and islands were found, units
    # that take steps in impulses (0: steps are taken in x) and units of which W is kept, both in stepping_unit; 1 + the
    # island of which `matrix` holds the factor of M̂ and `delassus` W; 1: this is the scratch of a thread that helps
    sizes: Ints1
    block: Ints1  # (nu,) block of a dof
    block_start: Ints1  # (nu + 1,) a block's first dof
    island: Ints1  # (nu,) island of a block
    island_start: Ints1  # (nu + 1,) entry of `member` at which an island's blocks begin
    member: Ints1  # (nu,) the blocks, island by island
    order: Ints1  # (nu,) the blocks, island by island, in elimination order
    unit_start: Ints1  # (nu + 1,) entry of `listed` at which an island's units begin
    listed: Ints1  # (rows,) first rows of the units, island by island
    factorised: Ints1  # (nu,) 1: the matrix of an island is factorised, with weight_used
    degree: Ints1  # (nu,) number of dofs to which a block is tied; nsgs.py: the root of a dof's tree
    list: Ints1  # (nu,) blocks of a row; nsgs.py: the end of a root's tree
    tie: Ints2  # (blocks, blocks) 1: tied
    place: Ints1  # (nu,) place of a dof in the matrix
    block_at: Ints1  # (nu,) the block that begins at a place
    run_count: Ints1  # (nu,) runs of entries left of a block
    run_start: Ints2  # (blocks, blocks) their first columns
    run_stop: Ints2  # (blocks, blocks)
    marked: Ints1  # (rows,) lane_coulomb.py: places of a lane's rows
    crowded: Ints1  # (nu,) 1: an island is a crowd, which has no order
    structure_cone: Ints1  # (rows,) Rows.cone of the rows for which the structure was found
    structure_soft: Ints1  # (rows,) 1: these rows had a compliance
    structure_start: Ints1  # (rows,) start, stop and column of these rows' entries
    structure_stop: Ints1  # (rows,)
    structure_column: Ints1  # (entries,)
    span: Ints1  # (entries,) of a unit: the end of the run of columns
    matrix: Lanes2  # (nu, nu) H = M̂ + Jᵀ D J, its factor; lower triangle
    transpose: Lanes2  # (nu, nu) coulomb.py: of its H
    pivot: Lanes1  # (nu,) 1 / D of the factor
    # (sum of the dofs' depths,) nsgs.py, crowd.py: M̂'s factor, of each dof its own entry and those of its ancestors
    tree_factor: Lanes1
    tree_start: Ints1  # (nu,) entry of tree_factor at which those of a dof begin
    tree_pivot: Lanes1  # (nu,) 1 / D of tree_factor; crowd.py: 1 / √D
    factors: Lanes1  # (nu or MOST_DELASSUS_ROWS, + 8,)
    right: Lanes2  # (1, nu) a right-hand side, by place
    lines: Lanes2  # (MOST_LINES, entries) D J of the units that add_product adds at once
    half: Lanes2  # (MOST_DELASSUS_ROWS, nu) delassus.py: J L⁻¹ D^(-½), by place
    delassus: Lanes2  # (MOST_DELASSUS_ROWS, that in whole strips) W = J M̂⁻¹ Jᵀ
    system: Lanes2  # (MOST_DELASSUS_ROWS, that in whole strips) the system of a Newton step
    system_pivot: Lanes1  # (MOST_DELASSUS_ROWS,)
    impulse_change: Lanes1  # (MOST_DELASSUS_ROWS,) the system's right-hand side, and then dλ
    stepping_unit: Ints1  # (MOST_DELASSUS_ROWS,) first rows of the units that take steps in impulses
    delassus_row: Ints1  # (MOST_DELASSUS_ROWS,) the row in Rows of a row of W
    unit_stop: Ints1  # (MOST_DELASSUS_ROWS,) the end of a unit's rows
    unit_idle: Ints1  # (MOST_DELASSUS_ROWS,) 1: the unit of a row of W takes no part in a step
    reach: Ints2  # (MOST_DELASSUS_ROWS, nu) 1: a unit moves a block, or blocks to which it is tied
    solution: Lanes1  # (rows,) λ of a solution that is changed
    resting: Lanes1  # (nu,) of an island: the least velocity to whose digits it is solved
    change: Lanes1  # (nu,) x, of the velocities
    product: Lanes1  # (nu,) M̂ x
    gradient: Lanes1  # (nu,)
    direction: Lanes1  # (nu,) d
    through: Lanes1  # (nu,) M̂ d
    velocity: Lanes1  # (rows,) J (u + x) + bias
    along: Lanes1  # (rows,) J d
    eps: Lanes1  # (rows,) ε
    inverse: Lanes1  # (rows,) 1 / (cfm + ε); 0: the row moves nothing
    first: Lanes1  # (rows,) λ as passed in
    given: Lanes1  # (rows,) cfm as passed in
    rho: Lanes1  # (rows,) impulse per velocity: 1 / mobility
    rate: Lanes1  # (rows,) coulomb.py: ρ, the weight of velocities beside impulses
    centre: Lanes1  # (rows,) λ_k
    miss: Lanes1  # (rows,) λ - P(λ - ρ û); nsgs.py: the velocity at x = 0
    linear: Lanes1  # (rows,) λ after a full step, to first order
    shift: Lanes1  # (rows,) of cones
    before: Lanes1  # (rows,) the previous shift
    off: Lanes1  # (rows,) distance of the previous shift from the one that the velocities called for
    low: Lanes1  # (rows,) a shift below the root
    high: Lanes1  # (rows,) a shift above the root
    unit: Lanes1  # (rows,) direction of the cones' tangential impulse
    pull: Lanes1  # (rows,) coulomb.py: μ v̂, the shift's change with the velocity; nsgs.py: impulse per velocity
    weight: Lanes1  # (rows,) D of a row with bounds, c0 of a cone
    weight_used: Lanes1  # (rows,) `weight` in `matrix`
    weight1: Lanes1  # (rows,) c1 to c3 of a cone
    weight2: Lanes1
    weight3: Lanes1
    # (rows,) nsgs.py: 1 if a unit has every dof of the trees that it moves; crowd.py: 1 if J̃ has the columns of J
    whole: Ints1
    # (entries,) laid out as Rows.value; nsgs.py: M̂⁻¹ Jᵀ of whole units; crowd.py: J̃ of whole units
    inverse_mass_jacobian: Lanes1
    # the rest is of crowd.py; `places`: of rows, more than there are (crowd_places)
    impulse: Reals1  # (places,) λ of the island, one visit after the other
    law: Reals1  # (8 places,) constants of the units' laws
    wanted: Reals1  # (places,) λ to be set
    motion: Reals1  # (places,) of λ in the sweeps, times `scale`
    last_motion: Reals1  # (places,) of the sweeps before
    result: Reals1  # (places,) λ after these
    scale: Reals1  # (places,) root of a row's mobility
    seat: Ints1  # (nu,) place of a dof in `moving`
    moving: Reals2  # (rows of SEATS + 1, SEATS) y, and 0 for the world
    sides: Ints2  # (places, 3) of units abreast: the most dofs of their blocks, the rows of `moving` of both blocks
    pairs: Reals1  # (2 STRIPS places,) J̃ of units abreast, that of both blocks side by side
    sequence: Ints1  # (rows,) first rows of the island's units in the order of the sweeps
    visits: Ints2  # (rows, 4) kind, first entry of `sequence`, number of units, place
    colours: Ints1  # (nu,) colours of the units of a tree, one per bit, by the tree's root
    group_of: Ints1  # (rows,) 3 times the colour of a unit, and its kind
    group_start: Ints1  # (3 rows + 1,) entry of `sequence` at which the units of a group begin
    abreast: Reals1  # (3 WIDTH,) velocities of the rows of units abreast
    history: Reals2  # (2 MIXED, places) differences between sweeps, of the motion of λ and of λ
    gram: Reals2  # (2 MIXED, MIXED + 1) products of these motions; the factor, the right-hand side


OWN_SCRATCH = (
    *("sizes", "span", "factors", "right", "lines", "half", "delassus", "system", "system_pivot", "impulse_change"),
    *("stepping_unit", "delassus_row", "unit_stop", "unit_idle", "reach"),
    *("impulse", "law", "wanted", "motion", "last_motion", "result", "scale", "moving", "sides", "pairs", "sequence"),
    *("visits", "group_of", "group_start", "abreast", "history", "gram"),
)
"""Fields of NewtonWork of which every thread has its own: those of the island that it solves. Of the others an island
has its own entries, those of its blocks, dofs, units or rows."""


class PropagationWork(NamedTuple):
    """Scratch of solvers/published/propagation.py, which holds parts of H (full_coordinates.py). k wide rows."""

    counts: Ints1  # (2,) number of wide rows, of lifted pivots
    diagonal: Reals1  # (nv,) M̂ - M: armature, h D + h² K
    inertia: Reals1  # (nu,) M̂'s diagonal
    weight: Reals1  # (nv,) δ: `diagonal` and the weight of rows on one dof
    wide: Reals2  # (k, nv) B: rows on several dofs, eliminated couplings
    compliance: Reals1  # (k,) 1 / weight; 0: hard
    multiplier: Reals1  # (k,) the change of λ by a solve
    total: Reals1  # (k,) λ
    gap: Reals1  # (k,) -(B v + compliance λ)
    small: Reals2  # (k, k) compliance + B A⁻¹ Bᵀ, its factor
    moved: Reals1  # (nv,) v
    force: Reals1  # (nv,)
    speed: Reals2  # (nb, 6) velocities of bodies: linear, angular
    wrench: Reals2  # (nb, 6) force, torque
    right: Reals1  # (nu,) b
    left: Reals1  # (nu,) the remainder of b after d and λ
    inverse_wide: Reals2  # (k, nv) A⁻¹ Bᵀ


class DirectWork(NamedTuple):
    """Scratch of solvers/published/direct.py, H by its parts (full_coordinates.py): k wide rows, g edges."""

    elder: ConstInts1  # (nb,) the previous joint on the same parent; 0: none
    edge_start: ConstInts1  # (nb + 1,) first edge of each joint: to its elders, nearest first, and its parent's
    counts: Ints1  # (2,) number of wide rows
    diagonal: Reals1  # (nv,) M̂ - M: armature, h D + h² K
    inertia: Reals1  # (nu,) M̂'s diagonal
    weight: Reals1  # (nv,) δ: `diagonal` and the weight of rows on one dof
    wide: Reals2  # (k, nv) B: rows on several dofs, eliminated couplings
    compliance: Reals1  # (k,) 1 / weight; 0: hard
    multiplier: Reals1  # (k,) the change of λ by a solve
    total: Reals1  # (k,) λ
    gap: Reals1  # (k,) -(B v + compliance λ)
    small: Reals2  # (k, k) compliance + B A⁻¹ Bᵀ, its factor
    moved: Reals1  # (nv,) v
    force: Reals1  # (nv,)
    speed: Reals2  # (nb, 6) velocities of bodies: linear, angular
    wrench: Reals2  # (nb, 6) force, torque
    right: Reals1  # (nu,) b
    left: Reals1  # (nu,) the remainder of b after d and λ
    share: Reals2  # (nb, 2) mass and inertia of a body besides its own
    centre: Reals2  # (nb, 3) of mass, from the body's origin [m]
    inverse_mass: Reals1  # (nb,)
    inverse_inertia: Reals2  # (nb, 6) about the centre
    dof_row: Ints1  # (nv,) index among its joint's rows
    push: Reals3  # (nb, 6, 3) force of each row
    turn: Reals3  # (nb, 6, 3) its torque about the body's centre
    back: Reals3  # (nb, 6, 3) its torque about the parent's centre
    scale: Reals2  # (nb, 6) √δ of dofs, 1 of locked directions
    soft: Reals2  # (nb, 6) 1 of dofs
    stiff: Reals2  # (nb, 6) δ J W Jᵀ of dofs
    rate: Reals2  # (nb, 6) velocities along the rows
    held: Reals2  # (nb, 6) scaled multipliers
    impulse: Reals2  # (nb, 6)
    node: Reals3  # (nb, 6, 6) N, its Cholesky factor
    edge: Reals3  # (g, 6, 6) E, then L⁻¹ E
    strip: Reals3  # (k, nb, 6) edges of wide rows


FullWork: TypeAlias = PropagationWork | DirectWork


class SweepWork(NamedTuple):
    """Scratch of the sweeping solvers: solvers/published: sweep.py, pgs.py, tgs.py and block_gs.py."""

    inverse_mass_jacobian: Reals2  # (rows, nu) lines of M̂⁻¹ Jᵀ
    line: Ints1  # (rows,) number of the line that a row uses
    scale: Reals1  # (rows,) factor on that line
    delassus: Reals1  # (rows,) the diagonal of the Delassus matrix J M̂⁻¹ Jᵀ; of a cone's tangential rows not below any
    of_column: Ints1  # (nu,) the row whose line is that of a unit impulse on a dof, or -1
    order: Ints1  # (rows,) the order in which rows have their turns
    key: Ints1  # (rows,) sort key of that order
    sorted: Ints1  # (1,) number of rows in `order`
    wanted: Reals1  # (rows,) impulses before bounds are applied
    error: Reals1  # (rows,) tgs: C at the sub-step
    corrected: Reals1  # (rows,) tgs: the error that the bias corrects at the row's rate
    rest: Reals1  # (rows,) tgs: the bias without C's part; block_gs: velocities without impulses
    mean: Reals1  # (nv,) tgs: mean velocity of the independent dofs
    end: Ints1  # (rows,) block_gs, and the fields below: the end of a block
    matrix: Reals2  # (rows, BLOCK) matrix of the block's rows
    triangle: Reals2  # (rows, BLOCK) its factor
    pivot: Reals1  # (rows,)
    factorised: Ints1  # (rows,) at a block's first row: 1 if the block is factorised
    state: Ints1  # (rows,) lower bound, free, upper bound
    right: Ints1  # (rows,) the state that a row should have


class BruteWork(NamedTuple):
    """Scratch of the brute solver; sizes for n rows."""

    free: Reals1  # (nu,) velocities without rows
    inverse_mass_jacobian: Reals2  # (n, nu) lines of M̂⁻¹ Jᵀ
    delassus: Reals2  # (n, n) K = J M̂⁻¹ Jᵀ + cfm
    matrix: Reals2  # (n, n) of a Newton step, and its factors
    order: Ints1  # (n,) rows exchanged for pivots
    right: Reals1  # (n,) right-hand side, and the step
    speed: Reals1  # (n,) J u + bias without impulses
    share: Reals1  # (n,) compliance with which contacts share loads
    given: Reals1  # (n,) K's diagonal without that compliance
    centre: Reals1  # (n,) λ_k
    velocity: Reals1  # (n,) with impulses
    kept: Reals1  # (n,) the best impulses of an attempt
    best: Reals1  # (n,) of all attempts
    steps: Ints1  # (1,) Newton steps taken


# ------------------------------------------------------------------ allocation


class SolverCall(NamedTuple):
    """All that a step knows of its solver: an entry over the rows, reached by a pointer (solvers/calls.py)."""

    entry: Ints1  # (2,) as jit.point_at sets it
    task: Ints1  # (3,) ASKED_FOR, FROM, TO
    traits: ConstInts1  # (2,) SWEEPS, FORMS_MASS_MATRIX
    mean: Reals1  # (nv,) mean velocity of sweeps, by which positions may move; empty unless SWEEPS


class SolverBundle(NamedTuple):
    """The scratch of solvers: newton's, that of sweeps, propagation's and direct's (both beside newton's), brute's. The
    steps of a single robot have `call` alone.
    """

    newton: NewtonWork | Any = None  # None if the solver needs none
    sweeps: SweepWork | Any = None
    tree: PropagationWork | None = None
    graph: DirectWork | None = None
    dense: BruteWork | Any = None
    pack: Any = None  # of packs: pack_contacts.PackSolver
    own: Any = None  # of packs: pack_contacts.OwnRows
    lane: Any = None  # of packs: pack_contacts.LaneSolver
    single: Any = None  # of packs: pack_contacts.SingleSolver
    call: SolverCall | Any = None
    fallback: SolverCall | Any = None  # newton's, with M̂ as a matrix, beside `tree` and `graph`


MEMBERS = {NewtonWork: "newton", SweepWork: "sweeps", PropagationWork: "tree", DirectWork: "graph", BruteWork: "dense"}
"""The fields of SolverBundle."""


def may_crowd(model: Model) -> bool:
    """True if rows may tie the trees of a model to a crowd."""
    return bool(np.count_nonzero(model.independent_parent < 0) > CROWD_TREES)


def crowd_places(rows: int) -> int:
    """Places that crowd.py needs for `rows` rows: two or more units of one colour are filled up to a multiple of WIDTH,
    contacts of three rows and rows with bounds each by themselves.
    """
    return min(WIDTH // 2 * rows, rows + (WIDTH - 2) * CROWD_COLOURS * (3 + 1))


NEWTON_ALONE = with_members(SolverBundle, newton=NewtonWork)
CALL_ALONE = with_members(SolverBundle, call=SolverCall)


def make_call(sweeps: bool, forms_mass_matrix: bool, scratch: SolverBundle) -> SolverCall:
    """Allocate the call of a solver with these traits and this scratch."""
    traits = np.array([sweeps, forms_mass_matrix], np.int64)
    traits.setflags(write=False)
    mean = np.zeros(0) if scratch.sweeps is None else scratch.sweeps.mean
    return SolverCall(np.zeros(2, np.int64), np.zeros(3, np.int64), traits, mean)


def make_solver_bundle(model: Model, rows: Rows, works: Iterable[type[Any]], narrow: int = 0) -> SolverBundle:
    """Allocate a solver's scratch for these rows, of which `narrow` surely act on one dof."""
    return SolverBundle(**{MEMBERS[work]: make_solver_work(model, rows, work, narrow) for work in works})


def make_solver_work(model: Model, rows: Rows, work: type[Any], narrow: int = 0) -> Any:
    """Allocate a scratch record for these rows, of which `narrow` surely act on one dof."""
    nu, n = len(model.independent_dof), len(rows.bias)
    if work is NewtonWork:
        shape = newton_shapes(model.independent_parent, n, len(model.dof_body), len(rows.value))
        return allocate(work, shape)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(work._fields, (n,)),
        "of_column": (nu,),
        "inverse_mass_jacobian": (n, nu),
        "sorted": (1,),
        "mean": (len(model.dof_body),),
    }
    if work is BruteWork:
        refuse_beyond_memory(16 * n * n, f"the dense matrices of {n} constraint rows")
        shapes |= {"free": (nu,), "steps": (1,), **dict.fromkeys(("delassus", "matrix"), (n, n))}
    if work is SweepWork:
        shapes |= {"pivot": (n,), **dict.fromkeys(("matrix", "triangle"), (n, BLOCK))}
    if work is PropagationWork or work is DirectWork:
        shapes |= _full_shapes(model, n - narrow)
    made = allocate(work, {name: shapes[name] for name in work._fields})
    return made._replace(**_family(model)) if work is DirectWork else made


_BY_DOF = (  # fields of NewtonWork
    *("block", "island", "member", "order", "tree_start", "tree_pivot", "seat", "colours", "factorised", "degree"),
    *("list", "place", "crowded", "resting", "block_at", "run_count", "pivot", "change", "product", "gradient"),
    *("direction", "through"),
)
_BY_DELASSUS_ROW = (*("system_pivot", "impulse_change", "stepping_unit", "delassus_row", "unit_stop", "unit_idle"),)


def whole_strips(count: int) -> int:
    """A number of columns, rounded up to whole strips (foundation/strips.py)."""
    return -(-count // WIDTH) * WIDTH


def newton_shapes(parent: NDArray[np.int64], rows: int, nv: int, entries: int) -> dict[str, tuple[int, ...]]:
    """Shapes of NewtonWork's fields for `rows` rows, over M̂'s elimination tree; a row has at most 2 nv entries."""
    nu = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=nu)
    follows = (parent == np.arange(nu) - 1) & (np.arange(nu) > 0)
    depth = np.ones(nu, np.int64)
    for a in range(nu):
        depth[a] += depth[parent[a]] if parent[a] >= 0 else 0
    depths = int(depth.sum())
    blocks = nu - int(np.count_nonzero(follows & (children[parent] == 1)))
    places = crowd_places(rows)
    return {
        **dict.fromkeys(NewtonWork._fields, (rows,)),
        **dict.fromkeys(("start_helpers", "await_helpers", "taken"), (2,)),
        "again": (1,),
        **dict.fromkeys(_BY_DOF, (nu,)),
        "tree_factor": (depths,),
        **dict.fromkeys(("block_start", "island_start", "unit_start"), (nu + 1,)),
        **dict.fromkeys(("tie", "run_start", "run_stop"), (blocks, blocks)),
        **dict.fromkeys(("half", "reach"), (MOST_DELASSUS_ROWS, nu)),
        **dict.fromkeys(("delassus", "system"), (MOST_DELASSUS_ROWS, whole_strips(MOST_DELASSUS_ROWS))),
        **dict.fromkeys(_BY_DELASSUS_ROW, (MOST_DELASSUS_ROWS,)),
        **dict.fromkeys(("matrix", "transpose"), (nu, nu)),
        "sizes": (8,),
        "span": (2 * nv + 1,),
        "factors": (max(nu, MOST_DELASSUS_ROWS) + 8,),
        "right": (1, nu),
        "lines": (MOST_LINES, 2 * nv + 1),
        **dict.fromkeys(("structure_column", "inverse_mass_jacobian"), (entries,)),
        **dict.fromkeys(("impulse", "wanted", "motion", "last_motion", "result", "scale"), (places,)),
        "law": (8 * places,),
        "moving": (blocks + nu // SEATS + 1, SEATS),
        "sides": (places, 3),
        "pairs": (2 * STRIPS * places,),
        "visits": (rows, 4),
        "group_start": (3 * rows + 1,),
        "abreast": (3 * WIDTH,),
        "history": (2 * MIXED, places),
        "gram": (2 * MIXED, MIXED + 1),
    }


def _full_shapes(model: Model, rows: int) -> dict[str, tuple[int, ...]]:
    """Shapes of PropagationWork's and DirectWork's fields for `rows` rows on several dofs."""
    nb, nv, nu = len(model.body_parent), len(model.dof_body), len(model.independent_dof)
    k = rows + len(model.coupling_follower)
    return {
        **dict.fromkeys(("diagonal", "weight", "moved", "force", "dof_row"), (nv,)),
        **dict.fromkeys(("inertia", "right", "left"), (nu,)),
        **dict.fromkeys(("wide", "inverse_wide"), (k, nv)),
        **dict.fromkeys(("compliance", "multiplier", "total", "gap"), (k,)),
        **dict.fromkeys(
            ("speed", "wrench", "scale", "soft", "stiff", "rate", "held", "impulse", "inverse_inertia"), (nb, 6)
        ),
        **dict.fromkeys(("push", "turn", "back"), (nb, 6, 3)),
        "counts": (2,),
        "small": (k, k),
        "share": (nb, 2),
        "centre": (nb, 3),
        "inverse_mass": (nb,),
        "node": (nb, 6, 6),
        "edge": (int(_family(model)["edge_start"][-1]), 6, 6),
        "strip": (k, nb, 6),
        "elder": (nb,),
        "edge_start": (nb + 1,),
    }


def _family(model: Model) -> dict[str, Any]:
    """DirectWork's `elder` and `edge_start`."""
    nb = len(model.body_parent)
    elder, start = np.zeros(nb, np.int64), np.zeros(nb + 1, np.int64)
    youngest: dict[int, int] = {}
    elders = np.zeros(nb, np.int64)
    for i in range(1, nb):
        above = int(model.body_parent[i])
        if above:
            elder[i] = youngest.get(above, 0)
            elders[i] = elders[elder[i]] + 1
            youngest[above] = i
    start[1:] = np.cumsum(elders)
    for array in (elder, start):
        array.setflags(write=False)
    return {"elder": elder, "edge_start": start}
