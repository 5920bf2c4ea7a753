"""The records of a simulation beside Model, State and Workspace: inputs, results of a step, recorded rows.

This file does not import numba, since the process that starts with warm kernels imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artsim.sim.foundation.records import (
    ConstInts1,
    ConstReals1,
    ConstReals2,
    Ints1,
    Lanes1,
    Reals1,
    Reals2,
    Reals3,
    with_members,
)
from artsim.sim.run_data.phases import Clock

# Inputs.controller
NO_CONTROLLER, GRAVITY_COMPENSATION, COMPUTED_TORQUE = range(3)
# entries of Inputs.controller_gains
POSITION_GAIN, VELOCITY_GAIN = range(2)
# entries of Inputs.sweeping
RELAXATION, SHARDS, VELOCITY_SWEEPS, BY_SUB_STEP = range(4)
# entries of Inputs.scheme
ALPHA, BETA, MIDWAY = range(3)
# entries of Inputs.sleep
SLEEP_ENERGY, SLEEP_STEPS = range(2)
# values of Inputs.convex: the contact law is another; it is convex, with the steps of MuJoCo's Euler, of Euler without
# implicit dampers, of implicitfast or of its RK4
NOT_CONVEX, EULER, EXPLICIT_EULER, IMPLICITFAST, RUNGE_KUTTA = range(5)
# entries of Rows.number: all rows, those that precede the contacts', and the places of all and of the latter
ALL_ROWS, LASTING_ROWS, PLACES, LASTING_PLACES = range(4)
# entries of Rows.report
ITERATIONS, RESIDUAL, LARGE = range(3)
# entries of Step.counters; CONTROL_ROW is the current row of the controls, ROWS_RECORDED the block's
(
    STEP_NUMBER,
    ROWS_RECORDED,
    STOP_REASON,
    STOP_DOF,
    CONTROL_ROW,
    FREE_STEPS_POSSIBLE,
    AT_REST,
    EVALUATION,
    WEIGHED,
) = range(9)
# bits of Step.counters[WEIGHED]: M, and the articulated inertias with some diagonal of M̂, are those of this step
M_IS_SET, INERTIAS = 1, 2
# reasons why a run stopped: Step.counters[STOP_REASON]
RUNNING, NON_FINITE, INEQUALITY, CROWDED, TOO_FAST, GAVE_WAY = range(6)
# evaluations of a step (midpoint.py): Step.counters[EVALUATION]
ONCE, AGAIN, STIFFENED = range(3)
# entries of Step.retries: times that the step was solved again, by reason (retries.py); the last three: 1 or 0
SEARCHES, WITHOUT_ROWS, SOLVED_ONCE, TAUT = range(4)
# entries of Step.aiming (stepping/aims.py)
PHASE, AIM_COUNT, LAST_MISS, MOST_SPEED = range(4)
# values of Step.aiming[PHASE]: the last solution in the sequence of aims
UNAIMED, AIMED, LAST_AIM, TAKEN_BACK, RELAXED, TIGHTENED, SETTLED = range(7)
# entries of Step.energy
AT_START, NOW = range(2)
# entries of Step.work, by source (stepping/work.py); MOTION: of none of them
APPLIED, DRIVE, WEIGHT, MEDIUM, PASSIVE, COUPLING, LIMIT, LOOP, TENDON, CONTACT, MOTION = range(11)
SOURCES = MOTION
# entries of Step.account (stepping/energy_account.py): by source its work, the energy that its springs stored at first,
# the most that it can have given, and the part of its work that counts as given [J]; then energy at the last
# comparison, the least potential so far, created energy [J], the step in which the account began, 1: the energy stored
# by rows has been added, the share of a step by which velocities lag, the energy that rows take in a step that counts
# as an impact [J], 1: there was an impact since the last comparison
WORK, STORED, CEILING, CREDIT = range(0, 4 * SOURCES, SOURCES)
ENERGY, LOWEST, CREATED, BEGAN, ASKED, LAG, IMPACT, STRUCK = range(4 * SOURCES, 4 * SOURCES + 8)
ACCOUNT_ENTRIES = 4 * SOURCES + 8
# entries of Step.watch: of the first excess step + 1, the dof of the body with most kinetic energy, the source, the
# energy created and the energy besides [J]
EXCESS_STEP, EXCESS_DOF, EXCESS_SOURCE, EXCESS, AVAILABLE = range(5)
# an entry of Step.beside and of Step.integrator: the task
TASK = 2
# tasks of stepping/beside.py
BEGIN, WATCH, RECORD, END, LOOK = range(5)
# tasks of an integrator with steps of its own (stepping/own_steps.py): evaluate the step's start; advance the state
EVALUATE, ADVANCE = range(2)
# entries of Step.contact_extremes
MOST_AT_ONCE, DEEPEST, REGULARISED_STEPS, LEFT_INSIDE_STEPS = range(4)
# of Step.held
HELD_STEPS, HELD_DEPTH, HELD_A, HELD_B, HELD_BY = range(5)
# of Step.opened, each for distances and angles
LEAST_GAP, OPENED, OPENED_LOOP = range(0, 6, 2)
# entries of Step.yielded: depths of contacts that yielded are those beyond the deepest of the start
START_DEPTH, DEPTH, SHARE, LINK_A, LINK_B, UNSOLVED_STEPS = range(6)
# entries of Block.plan
STEPS_TO_TAKE, STEPS_PER_ROW, FIRST_ROW, FIRST_CONTACT = range(4)
# entries of Block.constraints
CONSTRAINTS, ENTRIES = range(2)
# columns of Block.energy
KINETIC, POTENTIAL = range(2)


class Inputs(NamedTuple):
    """The inputs of a run. Each row of controls holds until the next one begins."""

    time_step: ConstReals1  # (1,) [s]
    solver: ConstInts1  # (1,) its number (run_data/registry.py)
    iterations: ConstInts1  # (1,) sweeps
    sweeping: ConstReals1  # (4,) share of a row's turn, 1: masses are split (jacobi); sweeps for velocities alone (pgs,
    # tgs); 1: errors are divided by the sub-step (tgs)
    controller: ConstInts1  # (1,)
    controller_gains: ConstReals1  # (2,) computed torque: ω² [1/s²] and 2 ζ ω [1/s]
    drive_stiffness: ConstReals1  # (nv,) [N m/rad or N/m]; acceleration drives: [1/s²]
    drive_damping: ConstReals1  # (nv,) [N m s/rad or N s/m]; acceleration drives: [1/s]
    drive_limit: ConstReals1  # (nv,) largest force [N m or N], inf: none
    recovery: ConstReals1  # (1,) share of a hard row's error that a step corrects; 0: see constraints/row.py
    # (3,) weights at the step's end: α of springs that are rows (-1: as joints'), β of velocities; and the share of the
    # change of velocities after which Coriolis and gyroscopic terms act, 0: at the start, without a second evaluation
    scheme: ConstReals1
    sleep: ConstReals1  # (2,) energy per mass [m²/s²], 0: never; steps below it after which the robot sleeps
    drive_acceleration: ConstInts1  # (nv,) 1: the gains are accelerations
    mobility: ConstReals1  # (nv,) (M⁻¹)_kk in the pose of the file, by which springs are scaled [1/(kg m²) or 1/kg]
    convex: ConstInts1  # (1,) NOT_CONVEX, … (stepping/convex_step.py)
    soft_law: ConstInts1  # (1,) 1: soft contacts act by MuJoCo's law, 0: by Coulomb's
    # of the limits and of the dry friction of dofs, then of tendons (nv + nt): MuJoCo's solref and solimp (-1: hard),
    # the distance from a limit from which it acts [rad or m], and the mobility by which their softness is scaled; all
    # are empty where nothing is soft
    limit_reference: ConstReals2  # (nv + nt, 2)
    limit_impedance: ConstReals2  # (nv + nt, 5)
    limit_margin: ConstReals1  # (nv + nt,)
    friction_reference: ConstReals2  # (nv + nt, 2)
    friction_impedance: ConstReals2  # (nv + nt, 5)
    row_mobility: ConstReals1  # (nv + nt,) [1/(kg m²) or 1/kg]
    start_step: Ints1  # (rows,) first step each row acts on
    torque: Reals2  # (rows, nv) [N m or N]
    target: Reals2  # (rows, nv) [rad or m]
    target_velocity: Reals2  # (rows, nv) [rad/s or m/s]
    target_acceleration: Reals2  # (rows, nv) of computed torque [rad/s² or m/s²]
    control: Reals2  # (rows, na) of the actuators


class Rows(NamedTuple):
    """Constraint rows of one step: J u + bias + cfm λ is 0, or as near to 0 as λ's bounds allow. Impulses in N s or N m
    s.

    Row n has the entries start[n] ≤ e < start[n + 1] in full coordinates, which carry its force to the dofs, and
    start[n] ≤ e < stop[n] in independent ones, which the solvers see. Rows and their order stay from step to step,
    except those of contacts, which come last, and of limits that nothing presses, which are left out.

    A cone is a run of rows, the normal first: |λ_t| ≤ slope λ_n instead of bounds, hard Coulomb friction.
    """

    # (4,) number of rows; of those that are not contacts', which come last; of places of all, and of the latter
    number: Ints1
    kind: Ints1  # (rows,)
    place: Ints1  # (rows,) the row's number if no limit were left out: its impulse in State.impulse
    dof: Ints1  # (rows,) the dof on which it acts, or its kind's index; couplings: the follower
    part: Ints1  # (rows,) number of the row among those of this kind of its owner (constraints/kinds.py: RowKind.parts)
    start: Ints1  # (rows + 1,) first entry of each row
    stop: Ints1  # (rows,) end of its entries in independent coordinates
    entry_dof: Ints1  # (entries,) dof of the entry
    entry_value: Lanes1  # (entries,) J in full coordinates
    column: Ints1  # (entries,) independent dof of the entry
    value: Lanes1  # (entries,) J in independent coordinates
    error: Lanes1  # (rows,) C, the error that the bias corrects [rad or m]
    rate: Lanes1  # (rows,) share of the error that the bias corrects per second; 0: the bias does not follow C [1/s]
    bias: Lanes1  # (rows,) [rad/s or m/s]
    cfm: Lanes1  # (rows,) velocity per impulse; one for all rows of a cone
    lower: Lanes1  # (rows,) bounds of the impulse
    upper: Lanes1
    cone: Ints1  # (rows,) 0: bounds; first row of a cone: its number of rows; the others: -1
    slope: Lanes1  # (rows,) friction coefficient, at a cone's first row
    shifting: Lanes1  # (rows,) factor of De Saxcé's shift there: the coefficient for Coulomb's law, 0 for a convex cone
    # (rows,) at contacts' first rows: number of steps in which they have yielded (solvers/regularisation.py)
    regularised: Lanes1
    static: Ints1  # (rows,) 1: loops and contacts that act against the world
    impulse: Lanes1  # (rows,) λ
    # (rows,) by place: λ of the step's previous solution and, in packs, its biases and softness
    previous_impulse: Lanes1
    previous_bias: Lanes1
    previous_cfm: Lanes1
    # (rows,) by place: error of an aimed row at the end of the step, less the part that is to remain [m or rad]; its
    # bias before the last aim, or its yield before it was stiffened
    miss: Lanes1
    unaimed: Lanes1
    # (nv,) 1: the drive is part of M̂ unless it does not settle (Step.drive_rows); 0: it is a row, or there is none
    implicit: Ints1
    report: Lanes1  # (3,) iterations and residual of the step; 1: its impulses are large (solvers/newton.py)


class Step(NamedTuple):
    """Results and scratch of a step, in full coordinates unless said otherwise."""

    counters: Ints1  # (9,) STEP_NUMBER, …
    retries: Ints1  # (4,) SEARCHES, …
    beside: Ints1  # (3,) the entry of the tasks beside steps (stepping/beside.py), its table, and TASK
    # (3,) the entry of an integrator with steps of its own, its table, and TASK; zeros: steps are semi-implicit
    integrator: Ints1
    # of evaluations.py
    evaluations: Reals1  # (1,) of the bias with these contacts; 0: none yet
    follows: Reals1  # (1,) 1: `middle` follows the velocities found, since bodies turn fast or couplings curve
    away: Reals1  # (1,) 1: an evaluation that moved `middle` away from its target has been taken back
    nearest: Reals1  # (1,) distance of `middle` from its target in the evaluation before [rad/s or m/s]
    # (4,) of aims.py: PHASE; number of aims; largest miss before the last one; largest velocity that an aim may lead to
    aiming: Reals1
    # (3,) of strain.py: phase; number of rounds; largest opening of loops that a remedy may leave [m or rad]
    straining: Reals1
    limit_steps: Ints1  # (nv,) steps each dof spent at a limit
    pressed: Reals2  # (nv + nt, 4) 1: this side of the limits of a dof, or then of a tendon, has a row in this step
    bound_rounds: Reals1  # (1,) rounds since the forces of drives and actuators were last within their bounds
    bound: Reals1  # (1,) 1: rows are solved, 0: the step without rows is taken
    ball_rows: Reals1  # (1,) 1: limits of balls have rows
    drive_rows: Reals1  # (1,) 1: the drives that have a largest force are rows, since they did not settle
    rule_rounds: Reals1  # (1,) rounds since the velocities of links were last within their bounds
    outdated: Reals1  # (1,) 1: the rows but those of contacts are not those of the step's previous solution
    coupling_error: Reals1  # (1,) worst |q_follower - g(q_leader)| [rad or m]
    loop_gap: Reals1  # (2,) largest opening of loops at the start of a step or the end of a block [m], [rad]
    # (6,) of hard loops, [m] and [rad]: the least of their largest gaps, the largest gap beyond it, and its loop
    opened: Reals1
    tendon_error: Reals1  # (1,) worst |C| of tendon equalities at the end of a step [m or rad]
    worst_residual: Reals1  # (1,) largest constraint residual of any step so far [rad/s or m/s]
    yielded: Reals1  # (6,) depths at the start and where contacts yielded [m], share of a shape, links; unsolved steps
    energy: Reals1  # (2,) kinetic plus potential, at the start of the run and at the end of the block [J]
    work: Reals1  # (10,) of this step by source [J]
    account: Reals1  # (46,) WORK, …
    watch: Reals1  # (5,) EXCESS_STEP, …
    last_account: Reals1  # (46,) copy of `account` with a comparison at the present state, made by LOOK
    last_watch: Reals1  # (5,) copy of `watch` with that comparison
    held: Reals1  # (5,) steps in which hard loops held contacts inside; of the deepest its depth [m], links and loop
    contact_extremes: Reals1  # (4,) most contacts in a step so far, largest depth [m], number of regularised steps
    # and of those with penetration left
    applied: Reals1  # (nv,) torques of the inputs, of the built-in controller and of wrenches on links [N m or N]
    drive: Reals1
    passive: Reals1
    coupling: Reals1
    limit: Reals1
    loop: Reals1
    tendon: Reals1
    contact: Reals1
    qacc: Reals1  # (nv,)
    diagonal: Reals1  # (nv,) h D + h² a K of the terms in M̂
    stiffness: Reals1  # (nv,) drive gains in force units
    damping: Reals1
    share: Reals1  # (nv,) 1 for an energy-conserving spring; 0: implicit Euler (actuation.py)
    place: Reals1  # (nv,) coordinates as drives see them; for rotations without coordinates, the target less e
    force: Reals1  # (nv,) explicit right-hand side
    velocity: Reals1  # (nv,) v at the end of the step
    drive_inertia: Reals1  # (nv,) that an acceleration drive moves [kg m² or kg]; 1 for other drives
    drive_held: Reals1  # (nv,) -1: the drive is held at its largest force backwards, 1: forwards; 0: it is not held
    asleep: Reals1  # (1,) 1: the robot sleeps through this step
    middle: Reals1  # (nv,) v at which gyroscopic and Coriolis terms act
    free: Reals1  # (nu,) u without constraint impulses
    next: Reals1  # (nu,) u at the end of the step
    start_qpos: Reals1  # (nq,) of own_steps.py: at the step's start
    start_qvel: Reals1  # (nv,) of own_steps.py: at the step's start; of midpoint.py: `middle` before it moved
    stage_qpos: Reals1  # (nq,) of rk4.py: at a stage
    stage_qvel: Reals1  # (nv,)
    sum_velocity: Reals1  # (nv,) of rk4.py: weighted sums of the stages' tangents and accelerations
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

    plan: Ints1  # (3,) steps to take now, steps per recorded row, and the row that is recorded first
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
    loop_wrench: Reals3
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
    # constraint rows of the recorded rows and the entries of their K, in sequence; a block ends before a step's could
    # exceed the room
    constraints: Ints1  # (2,) CONSTRAINTS, ENTRIES: their numbers
    constraint_count: Reals1
    constraint_step: Reals1
    constraint_kind: Reals1  # constraints/kinds.py
    constraint_owner: Reals1  # Rows.dof
    constraint_part: Reals1  # Rows.part
    constraint_cfm: Reals1  # [1/kg or 1/(kg m²)]
    constraint_impulse: Reals1  # [N s or N m s]
    entry_count: Reals1
    entry_step: Reals1
    entry_row: Reals1  # number of the constraint row within the step
    entry_column: Reals1  # at most entry_row
    entry_value: Reals1  # [1/kg or 1/(kg m²)]
    contact_count: Reals1
    # contacts of the recorded rows, in sequence; a block ends before a step's contacts could exceed the room
    contacts: Ints1  # (1,) number of contacts
    contact_step: Reals1
    contact_shapes: Reals2  # (, 2)
    contact_point: Reals2  # (, 3) world axes [m]
    contact_normal: Reals2  # (, 3) from the first shape to the second
    contact_tangent: Reals2  # (, 3) the first tangent; the second is normal × first
    contact_depth: Reals1  # [m]
    contact_force: Reals2  # (, 3) on the second shape: along normal and tangents [N]
    contact_torque: Reals2  # (, 3) on the second shape: about normal and tangents [N m]


CONTACT_TABLE = Block._fields[Block._fields.index("contact_step") :]
_FIRST, _SECOND = Block._fields.index("constraint_step"), Block._fields.index("entry_count")
CONSTRAINT_TABLE = Block._fields[_FIRST:_SECOND]
ENTRY_TABLE = Block._fields[_SECOND + 1 : Block._fields.index("contact_count")]
TABLES = {"contact_count": CONTACT_TABLE, "constraint_count": CONSTRAINT_TABLE, "entry_count": ENTRY_TABLE}
"""Fields whose length differs from step to step, by the field with the number of their entries in a recorded row."""
TABLES_OF = {"contacts": ("contact_count",), "delassus": ("constraint_count", "entry_count")}
"""The counts of the tables that are recorded together, by the name in --record."""
_OF_TABLES = ("contacts", "constraints", *TABLES, *(name for table in TABLES.values() for name in table))
RECORDED = (*(name for name in Block._fields if name not in ("plan", *_OF_TABLES)), *TABLES_OF)


class RunBundle(NamedTuple):
    """The inputs of a run and the results of its step; in a run's own kernel also the recorded rows."""

    inputs: Inputs
    step: Step
    block: Block | Any = None  # None in kernels that do not record
    clock: Clock | None = None  # of timed phases
    lanes: Any = None  # of packs: packs.LaneBundle


UNCLOCKED_RUN = with_members(RunBundle, block=Block, clock=None)
CLOCKED_RUN = with_members(RunBundle, block=Block, clock=Clock)
"""The bundles of kernels that record, or call those that do, without and with timed phases."""
