"""Records of the step of 8 robots at once, and its entries. Does not import numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.contact.pack_contacts import (
    LaneSolver,
    PackAdhesion,
    PackBounces,
    PackContactBundle,
    PackContactWork,
    PackSolver,
    PackSweep,
)
from artsim.sim.equipment.arrays import Equipment, EquipmentBundle
from artsim.sim.equipment.pack_equipment import PackEquipment
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import (
    ConstInts1,
    ConstInts2,
    ConstReals3,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    Reals4,
    with_lanes,
    with_members,
)
from artsim.sim.run_data.integration import Integrator
from artsim.sim.run_data.link_rules import LinkRuleWork, RuleBundle
from artsim.sim.run_data.run_records import UNCLOCKED_RUN, Inputs, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle

STEP, INPUT_ROW, CROWD, BENT, WEIGHED, STIFFENED_LANES = range(6)  # of PackWork.counters
# bits of the counter WEIGHED: M, and the articulated inertias with some diagonal of M̂, are those of this step
M_IS_SET, INERTIAS = 1, 2
# reasons why a lane takes a step alone: values of PackWork.cause, and entries of PackWork.alone
UNSOLVED, THROWN, YIELDING, OUTRUN, BOUNDS, STIFF_TENDON, TURNED, SLIPPED, STRAINED = range(9)
CAUSES = (
    "rows unsolved",
    "penetration whose removal throws bodies",
    "contacts that yield",
    "contacts outrun",
    "limits, drives and actuators that do not settle",
    "tendons stiffer than the step resolves",
    "contacts of bodies that turn far",
    "contacts that need large coefficients of friction",
    "loops that contacts or loads strain",
)
# fields that every lane has of its own: of Model, and of Inputs the gains of drives and the inputs over time
LANE_PROPERTIES = (
    *("body_mass", "carried_mass", "body_moment", "body_inertia", "link_mass", "link_inertia"),
    *("armature", "damping", "stiffness", "friction", "friction_coefficient"),
)
LANE_GAINS = ("drive_stiffness", "drive_damping")
LANE_CONTROLS = ("torque", "target", "target_velocity", "target_acceleration", "control")
PackModel = with_lanes(Model, "PackModel", LANE_PROPERTIES)
PackInputs = with_lanes(Inputs, "PackInputs", (*LANE_GAINS, *LANE_CONTROLS))
PackRules = with_lanes(LinkRuleWork, "PackRules", ("force", "columns"))
PackStep = with_lanes(
    Step,
    "PackStep",
    (
        "applied",
        "qacc",
        "diagonal",
        "stiffness",
        "damping",
        "share",
        "place",
        "force",
        "velocity",
        "middle",
        "start_qpos",
        "start_qvel",
        "stage_qpos",
        "free",
        "next",
        "tangent",
        "stage_qvel",
        "sum_velocity",
        "sum_acceleration",
    ),
)


class PackControls(NamedTuple):
    """Inputs over time: shared by all lanes (1, rows, nv or ncontrol), or one of each (WIDTH, rows, …)."""

    start_step: ConstInts1  # (rows,)
    torque: ConstReals3
    target: ConstReals3
    target_velocity: ConstReals3
    target_acceleration: ConstReals3
    control: ConstReals3


class Exerted(NamedTuple):
    """Forces of one robot's equipment at a state, beside those of actuators that packs know."""

    counted: ConstInts1  # (na,) 1: an actuator whose force is found here
    varying: ConstInts1  # (na,) 1: a counted actuator that may be part of M̂
    # (1,) 1: actuators that may be rows leave their bounds or return, or links exceed the bounds of their velocities;
    # 2: links exceed these bounds, and no further round is to be tried
    changed: Ints1
    force: Reals1  # (nv,) explicit forces of counted actuators, and of gravity compensation by motors [N m or N]
    passive: Reals1  # (nv,) explicit passive forces (EquipmentWork.passive) and wrenches on links [N m or N]
    tendon: Reals1  # (nv,) explicit forces of the springs and dampers of tendons [N m or N]
    tendon_by_row: Reals1  # (1,) 1: springs and dampers of tendons are constraint rows in this step
    tendon_length: Reals1  # (nt,) [m or rad]
    tendon_moment: Reals1  # (entries,) dL/dq of tendon_dof
    pending: Reals1  # (1,) 1: a changed control has yet to act
    actuator_input: Reals1  # (na,) the input that the gain multiplies
    actuator_force: Reals1  # (na,) [N or N m]
    actuator_acts: Reals1  # (na,) of varying actuators; 0: the force is explicit in this step, 1: implicit
    actuator_constant: Reals1  # (na,) of varying actuators: force at length 0 and velocity 0
    actuator_slope: Reals1  # (na,) of varying actuators: stiffness along the length
    actuator_resistance: Reals1  # (na,) of varying actuators: damping along the length
    activation: Reals1  # (nact,) at the end of the step


class PackWork(NamedTuple):
    """State of the lanes in a pack's step."""

    # (6,) STEP; INPUT_ROW; CROWD 1: contacts exceeded the room; BENT 1: there are nonlinear couplings;
    # WEIGHED: bits M_IS_SET and INERTIAS; STIFFENED_LANES 1: some lanes have stiffened bodies
    counters: Ints1
    single: Ints1  # (2,) the entry of a single robot's step, as jit.point_at sets it
    alive: Ints1  # (lanes,) 0: a copy that fills up the pack, or stopped at a state that is not finite
    stopped: Ints1  # (lanes,) step at which it stopped; -1: running
    stopped_dof: Ints1  # (lanes,) the dof that stopped the lane, as in Step.counters[STOP_DOF]
    reason: Ints1  # (lanes,) RUNNING, NON_FINITE, … as in Step.counters[STOP_REASON]
    alone: Ints1  # (CAUSES,) steps that lanes took alone
    stiff: Lanes1  # (1,) 1: springs of tendons are too stiff to be explicit
    leaves: Lanes1  # (1,) more than 0: the lane has to take the step alone
    cause: Lanes1  # (1,) the reason for that: an index of CAUSES
    drive_held: Lanes1  # (nv,) -1: a drive is held at its largest force backwards, 1: forwards
    drive_was_held: Lanes1  # (nv,) drive_held at the end of the last step
    bounded: ConstInts2  # (nd, 2) drives that have a largest force: dof, and the place of their row in `impulse`
    searches: Lanes1  # (1,) for other contacts in this step
    rounds: Lanes1  # (1,) number of changes of bounds of limits, drives and actuators in this step
    evaluations: Lanes1  # (1,) of the bias in this step with settled bounds; 0: none yet
    settled: Lanes1  # (1,) 1: the bias needs no further evaluation
    nearest: Lanes1  # (1,) distance of step.middle from its target in the previous evaluation [rad/s or m/s]
    stiffening: Lanes2  # (nb, 6) inertia added to taut bodies in lanes that have stiffened bodies already [kg m²]
    slack: Lanes1  # (nv,) damping of joints in these lanes [N m s/rad]
    dead: Lanes1  # (1,) more than 0: the step is not finite
    # mobilities of loops and tendons by each lane's masses, in the pose of the file
    loop_mobility: Lanes2  # (nloop, 2) response of the links to unit force and unit torque
    tendon_mobility: Lanes1  # (nte,) J M⁻¹ Jᵀ summed over the tendons of an equality
    qpos: Lanes1  # (nq,) of lanes that took the step alone
    qvel: Lanes1  # (nv,)
    change: Lanes1  # (nv,) of the velocities in the last step [rad/s or m/s]
    activation: Lanes1  # (nact,) at the start of the step, of all lanes
    next_activation: Lanes1  # (nact,) at its end
    acceleration0: Lanes1  # (na,) |M⁻¹ moment| by each lane's masses, in the pose of the file
    actuator_damping: Lanes1  # (na,) velocity coefficient of an affine bias by each lane's masses
    effective_coupling: Lanes1  # (ns,) J M⁻¹ Jᵀ of coupling rows by each lane's masses and inertia of tendons
    impulse: Lanes1  # (rows,) of lasting rows at the start of the step, of all lanes [N s or N m s]
    alone_impulse: Lanes1  # (rows,) of lasting rows after the step, of lanes that took it alone [N s or N m s]


class Single(NamedTuple):
    """Arrays of a single robot's step, through which a lane's numbers pass when it takes a step alone. A field is the
    array of that name in the robot's Step, State, EquipmentWork, Model or Inputs; contact_friction and pair_friction
    are Contacts.friction and Contacts.pair_friction.
    """

    counters: Ints1  # of Step
    qpos: Reals1
    qvel: Reals1
    activation: Reals1
    acceleration0: Reals1  # of EquipmentWork, down to dof_held
    actuator_damping: Reals1
    loop_mobility: Reals2
    tendon_mobility: Reals1
    actuator_implicit: Reals1
    actuator_force: Reals1
    actuator_total: Reals1
    dof_held: Reals1
    history: Reals1  # of State, down to earlier_change
    still: Reals1
    load: Reals1
    change: Reals1
    earlier_change: Reals1
    tangent: Reals1  # of Step, down to yielded
    effective_coupling: Reals1
    yielded: Reals1
    impulse: Reals1
    body_mass: Reals1
    carried_mass: Reals1
    body_moment: Reals2
    body_inertia: Reals2
    link_mass: Reals1
    link_inertia: Reals2
    armature: Reals1
    damping: Reals1
    stiffness: Reals1
    friction: Reals1
    friction_coefficient: Reals1
    drive_stiffness: Reals1
    drive_damping: Reals1
    torque: Reals2
    target: Reals2
    target_velocity: Reals2
    target_acceleration: Reals2
    control: Reals2
    contact: Reals2  # (k, 10) of State: contacts of the last step
    contact_friction: Reals2
    pair_friction: Reals2


class RolloutBlock(NamedTuple):
    """Recorded rows of some samples. A field whose second extent is 0 is not recorded."""

    plan: Ints1  # (3,) steps to take now, steps per recorded row, first sample of the pack
    qpos: Reals3  # (samples, rows, nq)
    qvel: Reals3  # (samples, rows, nv)
    final_qpos: Reals2  # (samples, nq)
    final_qvel: Reals2  # (samples, nv)


AnyBlock: TypeAlias = RolloutBlock | Any  # of a RunBundle, whose block is declared as a single run's


class Helpers(NamedTuple):
    """Arrays of n single robots, whose code finds rows and forces of packs lane by lane: n is the number of lanes, or 1
    where no result of one stage of the step is needed in a later one. Arrays with a leading extent n that bear the name
    of a field of Step, State, Inputs, EquipmentWork or Workspace take its place in the single robot.
    """

    exerter: Ints2  # (n, 2) the entry that finds Exerted; zeros: no forces are found lane by lane
    finder: Ints2  # (n, 2) the entry that finds OwnRows, zeros: there are none
    clamper: Ints2  # (n, 2) the entry that makes actuators at their bounds act as forces; zeros: none acts as a row
    misser: Ints2  # (n, 2) the entry that finds the misses of own rows
    bounder: Ints2  # (n, 2) the entry that directs rows of links' velocity bounds; zeros: there are none
    keeper: Ints2  # (n, 2) the entry that keeps samples of delayed controls; zeros: nothing is delayed
    counters: Ints2  # (n, 8) STEP_NUMBER, …
    retries: Ints2  # (n, 9) SEARCHES, …
    history: Reals2  # (n, …) samples of delayed controls and sensors
    qpos: Reals2  # (n, nq)
    qvel: Reals2  # (n, nv)
    activation: Reals2  # (n, nact)
    acceleration0: Reals2  # (n, na) |M⁻¹ moment| in the pose of the file
    actuator_damping: Reals2  # (n, na) velocity coefficient of an affine bias
    loop_mobility: Reals3  # (n, nloop, 2) response of the links to unit force and unit torque, in the pose of the file
    tendon_mobility: Reals2  # (n, nte) J M⁻¹ Jᵀ summed over the tendons of an equality
    control: Reals2  # (n, ncontrol)
    velocity: Reals2  # (n, nv) v at the end of the step [rad/s or m/s]
    middle: Reals2  # (n, nv) v at which gyroscopic and Coriolis terms act [rad/s or m/s]
    gain: Reals2  # (n, nv) dof velocity per velocity of the independent dof that moves it (G)
    drift: Reals2  # (n, nv) dof acceleration at zero independent acceleration (Ġ u)
    rotation: Reals4  # (n, nb, 3, 3) body axes to world
    offset: Reals3  # (n, nb, 3) from the parent's origin to the body's [m]
    arm: Reals3  # (n, nb, 3) the origin, from the tree's reference point [m]
    axis: Reals3  # (n, nv, 3) direction of each dof's translation, or axis of its rotation
    angular_velocity: Reals3  # (n, nb, 3) [rad/s]
    acceleration: Reals3  # (n, nb, 3) of the origin, minus gravity [m/s²]
    angular_acceleration: Reals3  # (n, nb, 3) [rad/s²]
    stiffening: Reals3  # (n, nb, 6) inertia added to taut bodies in M̂ [kg m²]


class OwnRows(NamedTuple):
    """Rows that every step has: loops, couplings that give way, tendons but for their limits, actuators that are rows,
    limits of balls, velocity limits of links. Row n is the one whose Rows.place is n for a single robot.

    Couplings, loops and actuators are built in all lanes at once (pack_rows.py). Where there are others, a
    single robot's code finds all of them for one lane after the other, and which dofs they act on may differ.
    """

    # (5,) first own row in Rows; 1: some are aimed (stepping/aims.py); 1: some are actuators; 1: some are bounds of
    # links' velocities; 1: some are springs of tendons
    fixed: ConstInts1
    kind: Ints1  # (rows,) constraints/kinds.py
    dof: Ints1  # (rows,) the dof, or number of the loop, tendon or actuator, that the row acts on, as in Rows.dof
    part: Ints1  # (rows,) number of the row among those of this kind of its owner (kinds.py: RowKind.parts)
    marked: Ints2  # (rows, nv) 1: some lane has had the row act on this dof
    value: Lanes1  # (rows nv,) J
    error: Lanes1  # (rows,) C, the error that the bias corrects [rad or m]
    rate: Lanes1  # (rows,) share of the error that the bias corrects per second; 0: the bias does not follow C [1/s]
    bias: Lanes1  # (rows,) [rad/s or m/s]
    cfm: Lanes1  # (rows,) velocity per impulse
    lower: Lanes1  # (rows,) bounds of the impulse [N s or N m s]
    upper: Lanes1  # (rows,)
    place: ConstInts1  # (rows,) in PackWork.impulse
    aim: Lanes1  # (rows,) the part of the bias that aims add [rad/s or m/s]
    unaimed: Lanes1  # (rows,) `aim` before the last aim
    miss: Lanes1  # (rows,) miss of a loop's or tendon equality's target at the end of the step [m or rad]
    outdated: Lanes1  # (1,) 1: the rows have to be found anew
    again: Lanes1  # (1,) scratch
    # value, error, … upper as found, lane by lane, before they go into the lanes of the fields above
    value_table: Reals2  # (lanes, rows nv)
    error_table: Reals2  # (lanes, rows)
    rate_table: Reals2  # (lanes, rows)
    bias_table: Reals2  # (lanes, rows)
    cfm_table: Reals2  # (lanes, rows)
    lower_table: Reals2  # (lanes, rows)
    upper_table: Reals2  # (lanes, rows)
    phase: Lanes1  # (1,) of aims: UNAIMED … CLOSED_LOOPS (stepping/lane_rows.py)
    aims: Lanes1  # (1,) number of aims in this step
    before: Lanes1  # (1,) largest miss before the last aim
    most: Lanes1  # (1,) largest velocity that an aim may lead to


class LoopForces(NamedTuple):
    """Scratch of the loops of a pack."""

    loop_force: Lanes2  # (nloop, 6) multipliers of C over the step [N, N m per m of torque scale]
    loop_error: Lanes2  # (nloop, 6) C: translation [m]; rotation times torque scale [m]; 0 where free
    loop_aim: Lanes2  # (nloop, 6) C at the end of the step
    loop_drift: Lanes1  # (6,) C̈ of the loop being assembled, at zero independent acceleration
    loop_mobility: Lanes2  # (nloop, 2) response of the links to unit force and unit torque; the array of PackWork
    columns: Lanes2  # (6, nv) J of the loop at hand


class LoopBundle(NamedTuple):
    """Loops of a pack, in place of an EquipmentBundle, for functions of both widths."""

    model: Equipment
    data: LoopForces


class PackSleep(NamedTuple):
    """Sleep of the lanes."""

    still: Lanes1  # (1,) number of consecutive steps in which every link was slow
    asleep: Lanes1  # (1,) 1: the lane sleeps through this step
    pending: Lanes1  # (1,) 1: a delayed control is still to change


class PackDrives(NamedTuple):
    """Drives of which some have gains that are accelerations."""

    scale: Lanes1  # (nv,) inertias that acceleration drives move [kg m² or kg]; 1 for other drives


class PackLoad(NamedTuple):
    """The load on the joints of a pack, to which joint friction is proportional [N or N m]."""

    kept: Lanes1  # (nv,) the load before the step
    alone: Lanes1  # (nv,) the load in lanes that took the step alone


class LaneBundle(NamedTuple):
    """The part of the run's records that only packs have. `lane_rows`: the rows that a helper has found, None where
    `own` are built in all lanes at once.
    """

    data: PackWork
    single: Single
    controls: PackControls
    exerted: Exerted
    helpers: Helpers
    own: OwnRows | Any = None
    lane_rows: Rows | Any = None
    loops: LoopBundle | Any = None
    sleep: PackSleep | Any = None
    drives: PackDrives | Any = None
    load: PackLoad | Any = None
    adhesion: PackAdhesion | Any = None


LaneRowsFound = with_lanes(Rows, "LaneRowsFound", ())


_NEWTON = with_members(SolverBundle, newton=NewtonWork, pack=PackSolver, lane=LaneSolver)
SOLVE_PACK = Entry("solve_pack", "artsim.sim.solvers.pack_newton", (PackModel, Workspace, Rows, PackStep, _NEWTON))


_OF_LANE = "artsim.sim.stepping.lane_equipment"  # modules of the kernels of a single robot that serves its lane
_ROWS_OF_LANE = "artsim.sim.stepping.rows_of_lane"
EXERT = Entry("find_exerted", _OF_LANE, (RobotBundle, UNCLOCKED_RUN, EquipmentBundle, Exerted))
CLAMP = Entry("clamp_actuators_of_lane", _OF_LANE, (UNCLOCKED_RUN, EquipmentBundle, Exerted))
BOUND = Entry("aim_bounds_of_lane", _ROWS_OF_LANE, (RobotBundle, UNCLOCKED_RUN, RuleBundle, Exerted))


def find_entry(equipped: bool, bounded: bool) -> Entry:
    """The kernel that finds a single robot's rows for its lane."""
    equipment, rules = EquipmentBundle if equipped else None, RuleBundle if bounded else None
    bundles = (RobotBundle, UNCLOCKED_RUN, Rows, equipment, rules, SolverBundle)
    return Entry("find_rows", _ROWS_OF_LANE, bundles, "_equipped" * equipped + "_bounded" * bounded)


def miss_entry(equipped: bool) -> Entry:
    """The kernel that finds the misses of a single robot's rows at the end of the step."""
    bundles = (RobotBundle, UNCLOCKED_RUN, Rows, EquipmentBundle if equipped else None)
    return Entry("find_row_misses", _ROWS_OF_LANE, bundles, "_equipped" * equipped)


class PackFeatures(NamedTuple):
    """The features that the packs of a run need beside free motion with affine actuators; their kernel is named after
    the fields."""

    rows: bool = False  # constraint rows
    touching: bool = False  # contacts
    own: bool = False  # rows of loops, couplings that give way, tendons, actuators, balls and links
    by_lane: bool = False  # own rows are found lane by lane
    looped: bool = False  # loops
    damped: bool = False  # damping and velocity bounds of links
    sleepy: bool = False  # robots may fall asleep
    bouncing: bool = False  # restitution
    inertial: bool = False  # drives whose gains are accelerations
    laden: bool = False  # joint friction by the load
    swept: bool = False  # the continuous check
    sticky: bool = False  # contacts may adhere


def roll_entry(needs: PackFeatures) -> Entry:
    """The packs' kernel, for all integrators, pruned of features that the run does not need."""
    return Entry("roll", "artsim.sim.stepping.pack_step", _bundles(needs), _variant(needs))


def integrator_of_packs(integrator: Integrator, needs: PackFeatures) -> Entry | None:
    """The kernel of an integrator with steps of its own, in lanes, pruned so; None for others."""
    if not integrator.kernel:
        return None
    robot, run, rows, equipment, _, rules, solver = _bundles(needs)
    bundles = robot, run, rows, equipment, rules, solver
    return Entry(integrator.kernel, integrator.module, bundles, "_lanes" + _variant(needs))


def _variant(needs: PackFeatures) -> str:
    return "".join(f"_{name}" for name, needed in needs._asdict().items() if needed)


def _bundles(needs: PackFeatures) -> tuple[type[Any] | None, ...]:
    """The bundles of packs, without members that the run does not need."""
    adhesion = PackAdhesion if needs.sticky else None
    lanes = with_members(
        LaneBundle,
        own=OwnRows if needs.own else None,
        lane_rows=LaneRowsFound if needs.by_lane else None,
        loops=LoopBundle if needs.looped else None,
        sleep=PackSleep if needs.sleepy else None,
        drives=PackDrives if needs.inertial else None,
        load=PackLoad if needs.laden else None,
        adhesion=adhesion,
    )
    contact = with_members(
        PackContactBundle,
        data=PackContactWork,
        bounces=PackBounces if needs.bouncing else None,
        sweep=PackSweep if needs.swept else None,
        adhesion=adhesion,
    )
    return (
        with_members(RobotBundle, model=PackModel),
        with_members(RunBundle, inputs=PackInputs, step=PackStep, block=RolloutBlock, lanes=lanes),
        Rows,
        PackEquipment,
        contact if needs.touching else None,
        with_members(RuleBundle, data=PackRules) if needs.damped else None,
        with_members(SolverBundle, pack=PackSolver if needs.rows else None),
    )
