"""The records of a simulation beside Model, State and Workspace: what comes in, what a step finds, what is recorded.

No numba here: the process that starts with warm kernels imports this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.sim.contacts import Contacts, ContactWork, Touching, contact_rows
from artsim.sim.equipment.record import Equipment, EquipmentLabels, EquipmentWork, Equipped, equipment_rows
from artsim.sim.jit import Entry
from artsim.sim.link_rules import LinkRules, LinkRuleWork, link_rule_rows
from artsim.sim.model import Model
from artsim.sim.phases import Clock
from artsim.sim.records import (
    ConstInts1,
    ConstReals1,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    allocate,
)
from artsim.sim.state import State, Workspace

# solvers
NEWTON, PGS, TGS, BLOCK_GS, PROPAGATION, DIRECT = range(6)
# integrators
SEMI_IMPLICIT_EULER, RK4 = range(2)
# controllers
NO_CONTROLLER, GRAVITY_COMPENSATION, COMPUTED_TORQUE = range(3)
# most rows that block_gs solves together
BLOCK = 16
# entries of Rows.number: all rows, and those that every step has, which come before the contacts'
ALL_ROWS, LASTING_ROWS = range(2)
# entries of Rows.report
ITERATIONS, RESIDUAL = range(2)
# entries of Step.counters; CONTROL_ROW is of the controls, ROWS_RECORDED of the block
(
    STEP_NUMBER,
    ROWS_RECORDED,
    STOP_REASON,
    STOP_DOF,
    CONTROL_ROW,
    FREE_STEPS_POSSIBLE,
    AT_REST,
    EVALUATION,
) = range(8)
# why a run stopped: Step.counters[STOP_REASON]
RUNNING, NON_FINITE, INEQUALITY, CROWDED, TOO_FAST, GAVE_WAY = range(6)
# entries of Step.watch (energy_watch.py)
GIVEN, MOST, EXCESS_STEP, EXCESS_DOF, EXCESS_FACTOR = range(5)
# entries of Step.contact_extremes
MOST_AT_ONCE, DEEPEST, EASED_STEPS, LEFT_INSIDE_STEPS = range(4)
# entries of Step.yielded: depths are of contacts that gave way, beyond the deepest of the start
START_DEPTH, DEPTH, SHARE, LINK_A, LINK_B, UNSOLVED_STEPS = range(6)
# entries of Block.plan, the last of RolloutBlock.plan
STEPS_TO_TAKE, STEPS_PER_ROW, FIRST_SAMPLE = range(3)
# kinds of constraint rows
(
    COUPLING_ROW,
    FRICTION_ROW,
    DRIVE_ROW,
    POSITION_ROW,
    VELOCITY_ROW,
    LOOP_ROW,
    TENDON_ROW,
    ACTUATOR_ROW,
    CONTACT_ROW,
    LINK_ROW,
) = range(10)


class Inputs(NamedTuple):
    """What a run is given. Controls are rows that hold until the next one begins."""

    time_step: ConstReals1  # (1,) [s]
    solver: ConstInts1  # (1,) NEWTON, PGS, TGS, BLOCK_GS, PROPAGATION, DIRECT
    iterations: ConstInts1  # (1,) sweeps
    controller: ConstInts1  # (1,)
    controller_gains: ConstReals1  # (2,) computed torque: ω² [1/s²] and 2 ζ ω [1/s]
    drive_stiffness: ConstReals1  # (nv,) [N m/rad or N/m]; acceleration drives: [1/s²]
    drive_damping: ConstReals1  # (nv,) [N m s/rad or N s/m]; acceleration drives: [1/s]
    drive_limit: ConstReals1  # (nv,) largest force [N m or N], inf: none
    recovery: ConstReals1  # (1,) share of a hard row's error that a step takes back; 0: see constraints/row.py
    sleep: ConstReals1  # (2,) energy per mass [m²/s²], 0: never; steps below it after which the robot sleeps
    drive_acceleration: ConstInts1  # (nv,) 1: the gains are accelerations
    mobility: ConstReals1  # (nv,) (M⁻¹)_kk in the pose of the file, by which springs are weighed [1/(kg m²) or 1/kg]
    start_step: Ints1  # (rows,) first step each row acts on
    torque: Reals2  # (rows, nv) [N m or N]
    target: Reals2  # (rows, nv) [rad or m]
    target_velocity: Reals2  # (rows, nv) [rad/s or m/s]
    control: Reals2  # (rows, na) of the actuators


class Rows(NamedTuple):
    """Constraint rows of one step: J u + bias + cfm λ is 0, or as near as λ's bounds allow. Impulses in N s or N m s.

    Row n has the entries start[n] ≤ e < start[n + 1] in full coordinates, which carry its force to the dofs, and
    start[n] ≤ e < stop[n] in independent ones, which the solvers see. Every step has the same rows in the same order.

    A cone is a run of rows, the normal one first: |λ_t| ≤ slope λ_n instead of bounds, hard Coulomb friction.
    """

    number: Ints1  # (2,) of rows; without those of contacts, which are the last ones
    kind: Ints1  # (rows,)
    dof: Ints1  # (rows,) the dof it acts on; couplings: the follower
    start: Ints1  # (rows + 1,) first entry of each row
    stop: Ints1  # (rows,) end of its entries in independent coordinates
    entry_dof: Ints1  # (entries,) which dof
    entry_value: Lanes1  # (entries,)
    column: Ints1  # (entries,) which independent dof
    value: Lanes1  # (entries,)
    error: Lanes1  # (rows,) C, what the bias takes back [rad or m]
    rate: Lanes1  # (rows,) how much of it per second the bias takes back; 0: the bias does not follow C [1/s]
    bias: Lanes1  # (rows,) [rad/s or m/s]
    cfm: Lanes1  # (rows,) velocity per impulse; one for all rows of a cone
    lower: Lanes1  # (rows,) bounds of the impulse
    upper: Lanes1
    cone: Ints1  # (rows,) 0: bounds; first row of a cone: how many it has; the others: -1
    slope: Lanes1  # (rows,) friction coefficient, at a cone's first row
    eased: Ints1  # (rows,) of contacts' first rows: for how many steps they have given way (solvers/newton.py)
    static: Ints1  # (rows,) 1: of loops and contacts that hold on to the world
    impulse: Lanes1  # (rows,) λ
    miss: Reals1  # (rows,) by how much a loop or tendon equality misses what it is aimed at [m or rad]
    unaimed: Reals1  # (rows,) bias before aims
    implicit: Ints1  # (nv,) 1: the drive is part of M̂, 0: it is a row (or there is none)
    report: Reals1  # (2,) iterations, residual of the step


class NewtonWork(NamedTuple):
    """Scratch of solvers/newton.py. A unit is a box row or a cone; blocks and islands: solvers/elimination.py."""

    entry: Ints1  # (2,) addresses of solvers/alone.py and of its table
    again: Ints1  # (1,) 1: go on with another bias
    sizes: Ints1  # (3,) blocks, islands, Newton steps of the island
    block: Ints1  # (nu,) of a dof
    block_start: Ints1  # (nu + 1,) a block's first dof
    island: Ints1  # (nu,) of a block
    island_start: Ints1  # (nu + 1,) where an island's blocks begin
    member: Ints1  # (nu,) the blocks, island by island
    order: Ints1  # (nu,) the same as they are eliminated
    unit_start: Ints1  # (nu + 1,) where an island's units begin
    listed: Ints1  # (rows,) first rows of the units, island by island
    factorised: Ints1  # (nu,) 1: the matrix of an island is, with weight_used
    degree: Ints1  # (nu,) dofs that a block is tied to; nsgs.py: the root of a dof's tree
    list: Ints1  # (nu,) blocks of a row; nsgs.py: where a root's tree ends
    tie: Ints2  # (blocks, blocks) 1: tied
    place: Ints1  # (nu,) of a dof in the matrix
    run_count: Ints1  # (nu,) runs of entries left of a block
    run_start: Ints2  # (blocks, blocks) their first columns
    run_stop: Ints2  # (blocks, blocks)
    span: Ints1  # (entries,) of a unit: where the run of columns ends
    matrix: Lanes2  # (nu, nu) H = M̂ + Jᵀ D J, its factor; lower triangle
    transpose: Lanes2  # (nu, nu) coulomb.py: of its H; nsgs.py: M̂'s factor by dof
    pivot: Lanes1  # (nu,) 1 / D of the factor
    factors: Lanes1  # (nu + 8,)
    right: Lanes2  # (1, nu) a right-hand side, by place
    lines: Lanes2  # (8, entries) D J of a unit
    change: Lanes1  # (nu,) x, of the velocities
    product: Lanes1  # (nu,) M̂ x
    gradient: Lanes1  # (nu,)
    direction: Lanes1  # (nu,) d
    through: Lanes1  # (nu,) M̂ d
    velocity: Lanes1  # (rows,) J (u + x) + bias
    along: Lanes1  # (rows,) J d
    eps: Lanes1  # (rows,) ε
    inverse: Lanes1  # (rows,) 1 / (cfm + ε); 0: the row moves nothing
    first: Lanes1  # (rows,) λ as it came in
    given: Lanes1  # (rows,) cfm as it came in
    rho: Lanes1  # (rows,) impulse per velocity: 1 / mobility
    rate: Lanes1  # (rows,) coulomb.py: ρ, by which velocities count beside impulses
    centre: Lanes1  # (rows,) λ_k
    miss: Lanes1  # (rows,) λ - P(λ - ρ û); nsgs.py: the velocity at x = 0
    linear: Lanes1  # (rows,) λ after a full step, to first order
    shift: Lanes1  # (rows,) of cones
    before: Lanes1  # (rows,) the shift before
    off: Lanes1  # (rows,) how far it then was from where the velocities wanted it
    low: Lanes1  # (rows,) a shift below the one wanted
    high: Lanes1  # (rows,) a shift above it
    unit: Lanes1  # (rows,) direction of cones' tangential impulse
    pull: Lanes1  # (rows,) coulomb.py: μ v̂, how the shift follows the velocity; nsgs.py: impulse per velocity
    weight: Lanes1  # (rows,) D of a box row, c0 of a cone
    weight_used: Lanes1  # (rows,) the same in `matrix`
    weight1: Lanes1  # (rows,) c1 to c3 of a cone
    weight2: Lanes1
    weight3: Lanes1
    whole: Ints1  # (rows,) nsgs.py: 1 where a unit has every dof of the trees that it moves
    response: Lanes1  # (entries,) nsgs.py: M̂⁻¹ Jᵀ of such units, laid out as Rows.value


class PropagationWork(NamedTuple):
    """Scratch of solvers/propagation.py, which knows H by its parts (solvers/full_coordinates.py). k wide rows."""

    counts: Ints1  # (2,) of wide rows, of lifted pivots
    diagonal: Reals1  # (nv,) M̂ - M: armature, h D + h² K
    inertia: Reals1  # (nu,) M̂'s diagonal
    weight: Reals1  # (nv,) δ: `diagonal` and what rows on one dof weigh
    wide: Reals2  # (k, nv) B: rows on several dofs, eliminated couplings
    compliance: Reals1  # (k,) 1 / weight; 0: hard
    multiplier: Reals1  # (k,) what a solve adds to λ
    total: Reals1  # (k,) λ
    gap: Reals1  # (k,) -(B v + compliance λ)
    small: Reals2  # (k, k) compliance + B A⁻¹ Bᵀ, its factor
    moved: Reals1  # (nv,) v
    force: Reals1  # (nv,)
    speed: Reals2  # (nb, 6) velocities of bodies: linear, angular
    wrench: Reals2  # (nb, 6) force, torque
    right: Reals1  # (nu,) b
    left: Reals1  # (nu,) what d and λ leave of it
    response: Reals2  # (k, nv) A⁻¹ Bᵀ


class DirectWork(NamedTuple):
    """Scratch of solvers/direct.py, which knows H by its parts (solvers/full_coordinates.py). k wide rows, g edges."""

    elder: ConstInts1  # (nb,) the joint before it on the same parent, 0: none
    edge_start: ConstInts1  # (nb + 1,) first edge of each joint: to its elders, nearest first, and its parent's
    counts: Ints1  # (2,) of wide rows
    diagonal: Reals1  # as in PropagationWork
    inertia: Reals1
    weight: Reals1
    wide: Reals2
    compliance: Reals1
    multiplier: Reals1
    total: Reals1
    gap: Reals1
    small: Reals2
    moved: Reals1
    force: Reals1
    speed: Reals2
    wrench: Reals2
    right: Reals1
    left: Reals1
    share: Reals2  # (nb, 2) mass and inertia that a body has besides its own
    centre: Reals2  # (nb, 3) of mass, from the body's origin [m]
    inverse_mass: Reals1  # (nb,)
    inverse_inertia: Reals2  # (nb, 6) about the centre
    dof_row: Ints1  # (nv,) which of its joint's rows
    push: Reals3  # (nb, 6, 3) force of each row
    turn: Reals3  # (nb, 6, 3) its torque about the body's centre
    back: Reals3  # (nb, 6, 3) about the parent's
    scale: Reals2  # (nb, 6) √δ of dofs, 1 of locked directions
    soft: Reals2  # (nb, 6) 1 of dofs
    stiff: Reals2  # (nb, 6) δ J W Jᵀ of dofs
    rate: Reals2  # (nb, 6) velocities along the rows
    held: Reals2  # (nb, 6) scaled multipliers
    impulse: Reals2  # (nb, 6)
    node: Reals3  # (nb, 6, 6) N, its Cholesky factor
    edge: Reals3  # (g, 6, 6) E, then L⁻¹ E
    strip: Reals3  # (k, nb, 6) edges of wide rows


class SweepWork(NamedTuple):
    """Scratch of the sweeping solvers: solvers/sweep.py, pgs.py, tgs.py and block_gs.py."""

    response: Reals2  # (rows, nu) answers M̂⁻¹ Jᵀ
    answer: Ints1  # (rows,) whose line of `response` is a row's
    scale: Reals1  # (rows,) times which it is that
    effective: Reals1  # (rows,) J M̂⁻¹ Jᵀ
    of_column: Ints1  # (nu,) the row that has the answer to a unit impulse on a dof, or -1
    order: Ints1  # (rows,) in which the rows have their turns
    key: Ints1  # (rows,) by which they are ordered
    sorted: Ints1  # (1,) how many rows `order` holds
    wanted: Reals1  # (rows,) impulses before they are taken
    error: Reals1  # (rows,) tgs: C at the sub-step
    rest: Reals1  # (rows,) tgs: what is in the bias beside C's part; block_gs: velocities without impulses
    mean: Reals1  # (nv,) tgs: mean velocity of the independent dofs
    end: Ints1  # (rows,) block_gs, and all that follow: where a block ends
    matrix: Reals2  # (rows, BLOCK) of the block's rows
    triangle: Reals2  # (rows, BLOCK) its factor
    pivot: Reals1  # (rows,)
    factorised: Ints1  # (rows,) at a block's begin, whether it is
    state: Ints1  # (rows,) lower bound, free, upper bound
    right: Ints1  # (rows,) what the state should be


class Step(NamedTuple):
    """What a step finds, full coordinates unless said otherwise."""

    counters: (
        # (8,) step, recorded rows, stop reason, its dof, control row, 1: free steps are possible, 1: at rest, 1: the
        # step is evaluated again and 2: with stiffened bodies (midpoint.py)
        Ints1
    )
    limit_steps: Ints1  # (nv,) steps each dof spent at a limit
    coupling_error: Reals1  # (1,) worst |q_follower - g(q_leader)| [rad or m]
    loop_gap: Reals1  # (2,) how far loops were open at most at the start of a step or the end of a block [m], [rad]
    tendon_error: Reals1  # (1,) worst |C| of tendon equalities at the end of a step [m or rad]
    worst_residual: Reals1  # (1,) what the solver left unsolved in any step so far [rad/s or m/s]
    yielded: Reals1  # (6,) depths at the start and where contacts gave way [m], share of a shape, links; steps unsolved
    energy: Reals1  # (2,) kinetic plus potential, at the start of the run and at the end of the block [J]
    watch: Reals1  # (5,) energy given so far, the most at any time [J]; of the first excess step + 1, dof, factor
    contact_extremes: (
        Reals1  # (4,) most contacts in any step so far, largest depth [m], steps eased, with some left inside
    )
    applied: Reals1  # (nv,) [N m or N]
    drive: Reals1
    passive: Reals1
    coupling: Reals1
    limit: Reals1
    loop: Reals1
    tendon: Reals1
    contact: Reals1
    qacc: Reals1  # (nv,)
    diagonal: Reals1  # (nv,) h D + h² a K of what M̂ holds
    stiffness: Reals1  # (nv,) drive gains in force units
    damping: Reals1
    share: Reals1  # (nv,) of a spring that keeps its energy, 1; 0: it is implicit Euler's (actuation.py)
    place: Reals1  # (nv,) coordinates as drives see them: target less what they turn, where there are none
    force: Reals1  # (nv,) explicit right-hand side
    velocity: Reals1  # (nv,) v at the end of the step
    middle: Reals1  # (nv,) v at which gyroscopic and Coriolis terms act
    free: Reals1  # (nu,) u without constraint impulses
    next: Reals1  # (nu,) u at the end of the step
    start_qpos: Reals1  # (nq,) RK4: where the step started
    start_qvel: Reals1  # (nv,) rk4.py: at the step's start; step.py: f.middle before
    stage_qpos: Reals1  # (nq,)
    stage_qvel: Reals1  # (nv,)
    sum_velocity: Reals1  # (nv,) RK4 sums of tangents and accelerations
    sum_acceleration: Reals1
    tangent: Reals1  # (nv,)
    effective_coupling: Reals1  # (ns,) J M⁻¹ Jᵀ of the coupling rows on the bare M; with solimp Model.row_mobility
    link_force: Reals2  # (nl, 3) wrench through each link's joint [N]
    link_torque: Reals2  # (nl, 3) about the link frame's origin [N m]
    columns: Reals2  # (6, nv)
    com: Reals1  # (3,) [m]
    momentum: Reals1  # (6,)


class Block(NamedTuple):
    """Recorded rows of one block. A field whose first extent is 0 is not recorded."""

    plan: Ints1  # (2,) steps to take now, and every how many a row is recorded
    qpos: Reals2
    qvel: Reals2
    qacc: Reals2
    tau_applied: Reals2
    tau_drive: Reals2
    tau_passive: Reals2
    tau_coupling: Reals2
    tau_limit: Reals2
    tau_loop: Reals2
    tau_tendon: Reals2
    tau_contact: Reals2
    activation: Reals2
    actuator_force: Reals2
    actuator_length: Reals2
    actuator_velocity: Reals2
    tendon_length: Reals2
    tendon_velocity: Reals2
    tendon_force: Reals2
    sensors: Reals2
    link_position: Reals3
    link_quaternion: Reals3
    incoming_wrench: Reals3
    jacobian: Reals3  # (, columns, 6): see jacobian_columns
    gravity: Reals2
    mass_matrix: Reals3
    bias: Reals2
    com: Reals2
    momentum: Reals2
    energy: Reals2
    solver_iterations: Reals1
    solver_residual: Reals1
    asleep: Reals1
    friction_constant: Reals2
    friction_by_load: Reals2
    contact_wrench: Reals3
    external_wrench: Reals3
    contact_count: Reals1
    # contacts of the recorded rows, one after the other; a block ends before there is no more room for a step's
    contacts: Ints1  # (1,) how many there are
    contact_step: Reals1
    contact_shapes: Reals2  # (, 2)
    contact_point: Reals2  # (, 3) world axes [m]
    contact_normal: Reals2  # (, 3) from the first shape to the second
    contact_tangent: Reals2  # (, 3) the first of two; the second is normal × it
    contact_depth: Reals1  # [m]
    contact_force: Reals2  # (, 3) on the second: along normal and tangents [N]
    contact_torque: Reals2  # (, 3) about them [N m]


CONTACT_TABLE = Block._fields[Block._fields.index("contact_step") :]
_OF_CONTACTS = ("contacts", "contact_count", *CONTACT_TABLE)  # recorded together, as "contacts"
RECORDED = (*(name for name in Block._fields if name not in ("plan", *_OF_CONTACTS)), "contacts")

SOLVE = Entry("solve_alone", "artsim.sim.solvers.alone", (Model, Workspace, Rows, Step, NewtonWork))

WORK: dict[int, tuple[type[Any], ...]] = {
    NEWTON: (NewtonWork,),
    **dict.fromkeys((PGS, TGS, BLOCK_GS), (SweepWork,)),
    PROPAGATION: (NewtonWork, PropagationWork),
    DIRECT: (NewtonWork, DirectWork),
}
"""The scratch of each solver; solvers that share it share their entry."""


def simulate_entry(
    integrator: int, solver: int, equipped: bool, touching: bool = False, ruled: bool = False, *, clocked: bool = False
) -> Entry:
    """The kernel of an integrator and a solver, without what serves equipment, contacts or rules that are not there.

    clocked: with marks between the phases of a step (RK4 has none).
    """
    records = (Model, State, Workspace, Inputs, Rows, Step, Block)
    equipment = (Equipment, EquipmentWork) if equipped else (None, None)
    variant = "_equipped" * equipped + "_touching" * touching
    if integrator == RK4:
        return Entry("simulate_rk4", "artsim.sim.rk4", (*records, *equipment, NewtonWork), variant)
    contacts = (Contacts, ContactWork) if touching else (None, None)
    rules = (LinkRules, LinkRuleWork) if ruled else (None, None)
    kinds = {NewtonWork: "", SweepWork: "_sweeps", PropagationWork: "_propagation", DirectWork: "_direct"}
    work = tuple(kind if kind in WORK[solver] else None for kind in kinds)
    variant += "_ruled" * ruled + "".join(name for kind, name in kinds.items() if kind in WORK[solver])
    variant += "_clocked" * clocked
    clock = Clock if clocked else None
    return Entry("simulate", "artsim.sim.step", (*records, *equipment, *contacts, *rules, *work, clock), variant)


def make_rows(
    model: Model,
    driven: int,
    equipment: Equipment | None = None,
    touching: Touching | None = None,
    room: int = 0,
    rules: LinkRules | None = None,
) -> tuple[Rows, int]:
    """Room for every row a step of this model can have, and for how many of them that contacts do not bring.

    driven: number of dofs with a drive. room: of contacts.
    """
    nv, couplings = len(model.dof_body), len(model.row_follower)
    rubbing = np.count_nonzero((model.friction > 0) | (model.friction_coefficient > 0))
    limited = np.count_nonzero(np.isfinite(model.lower) | np.isfinite(model.upper))
    slowed = np.count_nonzero(np.isfinite(model.velocity_limit))
    n = couplings + int(rubbing) + driven + 2 * int(limited) + 2 * int(slowed)  # limits: both sides
    entries = 2 * n + 2 * int(limited)  # a ball's limit acts on three dofs
    if equipment is not None:
        further, more = equipment_rows(model, equipment)
        n, entries = n + further, entries + more
    further, more = link_rule_rows(model, rules)
    n, entries = n + further, entries + more
    fixed = n
    further, more = contact_rows(model, touching, room)
    n, entries = n + further, entries + more
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(Rows._fields, (n,)),
        **dict.fromkeys(("entry_dof", "entry_value", "column", "value"), (entries,)),
        "number": (2,),
        "start": (n + 1,),
        "implicit": (nv,),
        "report": (2,),
    }
    rows: Rows = allocate(Rows, shapes)
    return rows, fixed


def make_solver_work(model: Model, rows: Rows, work: type[Any], driven: int = 0, width: int = 1) -> Any:
    """The scratch of a solver for so many rows; `driven` as in `make_rows`."""
    nu, n = len(model.independent_dof), len(rows.bias)
    if work is NewtonWork:
        shape = newton_shapes(model.independent_parent, n, len(model.dof_body), len(rows.value))
        return allocate(work, shape, width)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(work._fields, (n,)),
        "of_column": (nu,),
        "response": (n, nu),
        "sorted": (1,),
        "mean": (len(model.dof_body),),
    }
    if work is SweepWork:
        shapes |= {"pivot": (n,), **dict.fromkeys(("matrix", "triangle"), (n, BLOCK))}
    if work is PropagationWork or work is DirectWork:
        shapes |= _full_shapes(model, n - _narrow_rows(model, driven))
    made = allocate(work, shapes, width)
    return made._replace(**_family(model)) if work is DirectWork else made


def newton_shapes(parent: NDArray[np.int64], rows: int, nv: int, entries: int) -> dict[str, tuple[int, ...]]:
    """Shapes of NewtonWork's fields for so many rows, over M̂'s elimination tree; a row has 2 nv entries at most."""
    nu = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=nu)
    follows = (parent == np.arange(nu) - 1) & (np.arange(nu) > 0)
    blocks = nu - int(np.count_nonzero(follows & (children[parent] == 1)))
    return {
        **dict.fromkeys(NewtonWork._fields, (rows,)),
        "entry": (2,),
        "again": (1,),
        **dict.fromkeys(("block", "island", "member", "order", "factorised", "degree", "list", "place"), (nu,)),
        **dict.fromkeys(("run_count", "pivot", "change", "product", "gradient", "direction", "through"), (nu,)),
        **dict.fromkeys(("block_start", "island_start", "unit_start"), (nu + 1,)),
        **dict.fromkeys(("tie", "run_start", "run_stop"), (blocks, blocks)),
        **dict.fromkeys(("matrix", "transpose"), (nu, nu)),
        "sizes": (3,),
        "span": (2 * nv + 1,),
        "factors": (nu + 8,),
        "right": (1, nu),
        "lines": (8, 2 * nv + 1),
        "response": (entries,),
    }


def _narrow_rows(model: Model, driven: int) -> int:
    """How many of make_rows' rows act on one dof for sure."""
    limited = (model.dof_coord >= 0) & (np.isfinite(model.lower) | np.isfinite(model.upper))
    rubbing = (model.friction > 0) | (model.friction_coefficient > 0)
    return driven + int(np.sum(rubbing) + 2 * np.sum(limited) + 2 * np.sum(np.isfinite(model.velocity_limit)))


def _full_shapes(model: Model, rows: int) -> dict[str, tuple[int, ...]]:
    """Shapes of PropagationWork's and DirectWork's fields for so many rows on several dofs."""
    nb, nv, nu = len(model.body_parent), len(model.dof_body), len(model.independent_dof)
    k = rows + len(model.coupling_follower)
    return {
        **dict.fromkeys(("diagonal", "weight", "moved", "force", "dof_row"), (nv,)),
        **dict.fromkeys(("inertia", "right", "left"), (nu,)),
        **dict.fromkeys(("wide", "response"), (k, nv)),
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


def make_step(model: Model) -> Step:
    """The scratch of a step."""
    nv, nu, nq, nl = len(model.dof_body), len(model.independent_dof), int(model.body_coord[-1]), len(model.link_body)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(Step._fields, (nv,))
    shapes |= {
        "counters": (8,),
        "coupling_error": (1,),
        "tendon_error": (1,),
        "loop_gap": (2,),
        "energy": (2,),
        "contact_extremes": (4,),
        "watch": (5,),
        "worst_residual": (1,),
        "yielded": (6,),
        "free": (nu,),
        "next": (nu,),
    }
    shapes |= {"start_qpos": (nq,), "stage_qpos": (nq,), "link_force": (nl, 3), "link_torque": (nl, 3)}
    shapes |= {"columns": (6, nv), "com": (3,), "momentum": (6,), "effective_coupling": (len(model.row_follower),)}
    step: Step = allocate(Step, shapes)
    return step


def jacobian_columns(model: Model) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Link and dof (columns,) of every recorded column of the links' Jacobians: the dofs that move the link, in order.

    The other columns are zero: of a humanoid's, five in six.
    """
    moves = np.zeros((len(model.body_parent), len(model.dof_body)), bool)
    for i in range(1, len(moves)):
        moves[i] = moves[model.body_parent[i]]
        moves[i, model.body_dof[i] : model.body_dof[i + 1]] = True
    link, dof = np.nonzero(moves[model.link_body])
    return link, dof


def block_shapes(model: Model, equipped: Equipped | None = None) -> dict[str, tuple[int, ...]]:
    """Shape of one row of each recorded field."""
    names = EquipmentLabels() if equipped is None else equipped.labels
    nv, nq, nl = len(model.dof_body), int(model.body_coord[-1]), len(model.link_body)
    return {
        **dict.fromkeys(Block._fields, (nv,)),
        "qpos": (nq,),
        "activation": (len(names.activations),),
        **dict.fromkeys(("actuator_force", "actuator_length", "actuator_velocity"), (len(names.actuators),)),
        **dict.fromkeys(("tendon_length", "tendon_velocity", "tendon_force"), (len(names.tendons),)),
        "sensors": (len(names.sensors),),
        "link_position": (nl, 3),
        "link_quaternion": (nl, 4),
        **dict.fromkeys(("incoming_wrench", "contact_wrench", "external_wrench"), (nl, 6)),
        "jacobian": (len(jacobian_columns(model)[0]), 6),
        "mass_matrix": (nv, nv),
        "com": (3,),
        "momentum": (6,),
        "energy": (2,),
        "solver_iterations": (),
        "solver_residual": (),
        "asleep": (),
        **dict.fromkeys(("contacts", "contact_count", "contact_step", "contact_depth"), ()),
        "contact_shapes": (2,),
        **dict.fromkeys(
            ("contact_point", "contact_normal", "contact_tangent", "contact_force", "contact_torque"), (3,)
        ),
    }
