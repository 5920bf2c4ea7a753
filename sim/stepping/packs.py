"""Records of the step of 8 robots at once, and its entries. Does not import numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.contact.pack_contacts import (
    LaneSolver,
    PackAdhesion,
    PackContactBundle,
    PackContactWork,
    PackSolver,
    PackSweep,
)
from artsim.sim.equipment.arrays import Equipment, EquipmentBundle, EquipmentWork
from artsim.sim.equipment.delays import Delays
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import (
    ConstInts1,
    ConstReals3,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    lane_view,
    with_lanes,
    with_members,
)
from artsim.sim.geometry.contacts import Bounces
from artsim.sim.run_data.integration import Integrator
from artsim.sim.run_data.link_rules import LinkRuleWork, RuleBundle
from artsim.sim.run_data.run_records import Inputs, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle

STEP, INPUT_ROW, CROWD = range(3)  # of PackWork.counters
# entries of RolloutBlock.plan, after those that Block.plan has, too: the first sample of the pack; rows per sample that
# the single robot records, 0: none
FIRST_SAMPLE, ROWS_OF_SAMPLE = 2, 3
# reasons why a lane takes a step alone: values of PackWork.cause, and entries of PackWork.alone
UNSOLVED, YIELDING, BOUNDS, STIFF_TENDON, TURNED, STRAINED = range(6)
CAUSES = (
    "rows unsolved",
    "contacts that yield",
    "limits, drives and actuators that do not settle",
    "tendons stiffer than the step resolves",
    "contacts of bodies that turn far",
    "loops that contacts or loads strain",
)
# fields that every lane has of its own: of Model, and of Inputs the gains of drives and the inputs over time
LANE_PROPERTIES = (
    *("body_mass", "carried_mass", "body_moment", "body_inertia", "link_mass", "link_inertia"),
    *("armature", "damping", "stiffness", "friction", "friction_coefficient"),
)
LANE_GAINS = ("drive_stiffness", "drive_damping")
CALIBRATED = ("acceleration0", "actuator_damping", "loop_mobility", "tendon_mobility")  # by a robot's masses
LANE_CONTROLS = ("torque", "target", "target_velocity", "target_acceleration", "control")
# fields of State that differ between lanes; contacts have a memory for two steps
MOVED = (
    *("qpos", "qvel", "activation", "impulse", "still", "command", "history"),
    *("load", "change", "earlier_change", "drive_held"),
)
PackModel = with_lanes(Model, "PackModel", LANE_PROPERTIES)
PackState = with_lanes(State, "PackState", MOVED)
MovedState = with_lanes(State, "MovedState", MOVED)
PackInputs = with_lanes(Inputs, "PackInputs", (*LANE_GAINS, *LANE_CONTROLS))
PackEquipmentWork = with_lanes(
    EquipmentWork,
    "PackEquipmentWork",
    (
        *CALIBRATED,
        *("tendon_length", "tendon_velocity", "tendon_moment", "tendon_pull", "tendon_share", "tendon_by_row"),
        *("actuator_length", "actuator_velocity", "actuator_moment", "actuator_force", "actuator_input"),
        *("constant", "slope", "resistance", "acts", "held", "actuator_share", "actuator_scale", "scaling"),
        *("dof_held", "dof_force", "actuator_total", "stiffness", "damping", "offset", "compensation"),
        *("passive", "tendon", "resisted", "start_activation", "next_activation", "pending"),
    ),
)
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
        "effective_coupling",
        "asleep",
        "evaluations",
        "follows",
        "away",
        "nearest",
        "aiming",
        "drive_inertia",
        "drive_held",
        "pressed",
        "bound_rounds",
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


class PackWork(NamedTuple):
    """State of the lanes in a pack's step."""

    counters: Ints1  # (3,) STEP; INPUT_ROW; CROWD 1: contacts exceeded the room
    single: Ints1  # (2,) the entry of a single robot's step, as jit.point_at sets it
    alive: Ints1  # (lanes,) 0: a copy that fills up the pack, or stopped at a state that is not finite
    stopped: Ints1  # (lanes,) step at which it stopped; -1: running
    stopped_dof: Ints1  # (lanes,) the dof that stopped the lane, as in Step.counters[STOP_DOF]
    reason: Ints1  # (lanes,) RUNNING, NON_FINITE, … as in Step.counters[STOP_REASON]
    alone: Ints1  # (CAUSES,) steps that lanes took alone
    leaves: Lanes1  # (1,) more than 0: the lane has to take the step alone
    cause: Lanes1  # (1,) the reason for that: an index of CAUSES
    searches: Lanes1  # (1,) for other contacts in this step
    stiffening: Lanes2  # (nb, 6) inertia added to taut bodies in lanes that have stiffened bodies already [kg m²]
    slack: Lanes1  # (nv,) damping of joints in these lanes [N m s/rad]
    dead: Lanes1  # (1,) more than 0: the step is not finite


class AloneForces(NamedTuple):
    """The CALIBRATED arrays of a single robot's equipment, as in EquipmentWork; empty without equipment."""

    acceleration0: Reals1
    actuator_damping: Reals1
    loop_mobility: Reals2
    tendon_mobility: Reals1


class Alone(NamedTuple):
    """The single robot by which a lane takes a step alone."""

    model: Model
    state: State
    inputs: Inputs
    step: Step
    plan: Ints1  # of its Block, which holds the rows of all samples, one sample after the other
    forces: AloneForces
    friction: Reals2  # of Contacts, as are its pairs'
    pair_friction: Reals2


class RolloutBlock(NamedTuple):
    """Recorded rows of some samples, beside those that the single robot records. A field whose second extent is 0 is
    not recorded."""

    plan: Ints1  # (4,) steps to take now, steps per recorded row, FIRST_SAMPLE and ROWS_OF_SAMPLE
    qpos: Reals3  # (samples, rows, nq)
    qvel: Reals3  # (samples, rows, nv)
    final_qpos: Reals2  # (samples, nq)
    final_qvel: Reals2  # (samples, nv)


AnyBlock: TypeAlias = RolloutBlock | Any  # of a RunBundle, whose block is declared as a single run's


class Helpers(NamedTuple):
    """Entries of the single robots that find rows and forces of the lanes, one of each lane. They see the lane's arrays
    in place (of_lane); counters and retries are those of their Steps.
    """

    exerter: Ints2  # (lanes, 2) the entry that finds forces of equipment; zeros: none are found lane by lane
    finder: Ints2  # (lanes, 2) the entry that finds OwnRows; zeros: there are none
    misser: Ints2  # (lanes, 2) the entry that finds the misses of tendon equalities; zeros: there are none
    bounder: Ints2  # (lanes, 2) the entry that directs rows of links' velocity bounds; zeros: there are none
    keeper: Ints2  # (lanes, 2) the entry that keeps samples of delayed controls; zeros: nothing is delayed
    counters: Ints2  # (lanes, 9) STEP_NUMBER, …
    retries: Ints2  # (lanes, 6) SEARCHES, …


class OwnRows(NamedTuple):
    """Rows that every step has: loops, couplings that give way, tendons but for their limits, actuators that are rows,
    limits of balls, velocity limits of links. Row n is the one whose Rows.place is n for a single robot.

    Couplings, loops and actuators are built in all lanes at once (pack_rows.py). Where there are others, a
    single robot's code finds all of them for one lane after the other, and which dofs they act on may differ.
    """

    fixed: ConstInts1  # (3,) first own row in Rows; 1: some bound velocities of links; 1: some are springs of tendons
    kind: Ints1  # (rows,) constraints/kinds.py
    dof: Ints1  # (rows,) the dof, or number of the loop, tendon or actuator, that the row acts on, as in Rows.dof
    part: Ints1  # (rows,) number of the row among those of this kind of its owner (kinds.py: RowKind.parts)
    marked: Ints2  # (rows, nv) 1: some lane has had the row act on this dof
    value: Lanes1  # (rows nv,) J
    error: Lanes1  # (rows,) C, the error that the bias corrects [rad or m]
    rate: Lanes1  # (rows,) share of the error that the bias corrects per second; 0: the bias does not follow C [1/s]
    bias: Lanes1  # (rows,) without aims [rad/s or m/s]
    cfm: Lanes1  # (rows,) velocity per impulse
    lower: Lanes1  # (rows,) bounds of the impulse [N s or N m s]
    upper: Lanes1  # (rows,)
    place: ConstInts1  # (rows,) in State.impulse
    aimed: Lanes1  # (rows,) the bias with the aims of the step, kept while rows are built anew [rad/s or m/s]
    miss: Lanes1  # (rows,) Rows.miss of tendon equalities, as helpers find them [m or rad]
    outdated: Lanes1  # (1,) 1: the rows have to be found anew
    # (1,) 1: links exceed the bounds of their velocities, and the lane is to be solved again; 2: no further round is to
    # be tried
    again: Lanes1


class LoopForces(NamedTuple):
    """Scratch of the loops of a pack."""

    loop_force: Lanes2  # (nloop, 6) multipliers of C over the step [N, N m per m of torque scale]
    loop_error: Lanes2  # (nloop, 6) C: translation [m]; rotation times torque scale [m]; 0 where free
    loop_drift: Lanes1  # (6,) C̈ of the loop being assembled, at zero independent acceleration
    loop_mobility: Lanes2  # (nloop, 2) response of the links to unit force and unit torque; the array of EquipmentWork
    columns: Lanes2  # (6, nv) J of the loop at hand


class LoopBundle(NamedTuple):
    """Loops of a pack, in place of an EquipmentBundle, for functions of both widths; there may be none."""

    model: Equipment
    data: LoopForces


class PackLoad(NamedTuple):
    """The load on the joints of a pack, to which joint friction is proportional [N or N m]."""

    kept: Lanes1  # (nv,) the load before the step


class LaneBundle(NamedTuple):
    """The part of the run's records that only packs have. `alone`: the robot of lanes that take a step alone; `moved`:
    their states after it. `lane_rows`: the rows that a helper has found, None where `own` are built in all lanes at
    once.
    """

    data: PackWork
    alone: Alone
    moved: State
    controls: PackControls
    helpers: Helpers
    own: OwnRows | Any = None
    lane_rows: Rows | Any = None
    loops: LoopBundle | Any = None
    load: PackLoad | Any = None
    adhesion: PackAdhesion | Any = None


# records of a single robot, as kernels of packs see them
OwnModel = with_lanes(Model, "OwnModel", ())
OwnState = with_lanes(State, "OwnState", ())
LaneRowsFound = with_lanes(Rows, "LaneRowsFound", ())
ALONE = with_members(Alone, model=OwnModel, state=OwnState)


_NEWTON = with_members(SolverBundle, newton=NewtonWork, pack=PackSolver, lane=LaneSolver)
_ROBOT = with_members(RobotBundle, model=PackModel, state=PackState)
SOLVE_PACK = Entry("solve_pack", "artsim.sim.solvers.pack_newton", (_ROBOT, Rows, PackStep, _NEWTON))


# records of one lane, as the kernels of a single robot see them
SEEN_WORK = (
    *("gain", "drift", "rotation", "offset", "arm", "axis"),
    *("angular_velocity", "acceleration", "angular_acceleration", "stiffening"),
)
SEEN_STEP = ("velocity", "middle", "bound_rounds", "effective_coupling", "stage_qpos", "stage_qvel")
LaneModel = lane_view(PackModel, "LaneModel")
LaneState = lane_view(PackState, "LaneState")
LaneWorkspace = lane_view(Workspace, "LaneWorkspace", SEEN_WORK)
LaneInputs = lane_view(PackInputs, "LaneInputs")
LaneStep = lane_view(PackStep, "LaneStep", SEEN_STEP)
LaneEquipmentWork = lane_view(PackEquipmentWork, "LaneEquipmentWork")
LaneOwnRows = lane_view(OwnRows, "LaneOwnRows")
ROBOT_OF_LANE = with_members(RobotBundle, model=LaneModel, state=LaneState, data=LaneWorkspace)
RUN_OF_LANE = with_members(RunBundle, inputs=LaneInputs, step=LaneStep, block=None, clock=None)
EQUIPMENT_OF_LANE = with_members(EquipmentBundle, data=LaneEquipmentWork)

_DELAYED = "artsim.sim.stepping.delayed"
_OF_LANE = "artsim.sim.stepping.lane_equipment"  # modules of the kernels of a single robot that serves its lane
_ROWS_OF_LANE = "artsim.sim.stepping.rows_of_lane"
EXERT = Entry("find_exerted", _OF_LANE, (ROBOT_OF_LANE, RUN_OF_LANE, EQUIPMENT_OF_LANE))
DELAY_OF_LANE, KEEP_OF_LANE = (
    Entry(name, _DELAYED, (LaneState, RUN_OF_LANE, EQUIPMENT_OF_LANE, Delays), "_of_lane")
    for name in ("delay_controls", "keep_samples")
)
_FOUND = (ROBOT_OF_LANE, RUN_OF_LANE, LaneRowsFound, EQUIPMENT_OF_LANE, LaneOwnRows)
MISS = Entry("find_tendon_misses_of_lane", _ROWS_OF_LANE, _FOUND)
BOUND = Entry("aim_bounds_of_lane", _ROWS_OF_LANE, (ROBOT_OF_LANE, RUN_OF_LANE, RuleBundle, LaneOwnRows))


def find_entry(equipped: bool, bounded: bool) -> Entry:
    """The kernel that finds a lane's own rows."""
    equipment, rules = EQUIPMENT_OF_LANE if equipped else None, RuleBundle if bounded else None
    bundles = (ROBOT_OF_LANE, RUN_OF_LANE, LaneRowsFound, equipment, rules, SolverBundle, LaneOwnRows)
    return Entry("find_rows", _ROWS_OF_LANE, bundles, "_equipped" * equipped + "_bounded" * bounded)


class PackFeatures(NamedTuple):
    """The features that the packs of a run need beside free motion; their kernel is named after the fields."""

    equipped: bool = False  # equipment, such as actuators
    rows: bool = False  # constraint rows
    touching: bool = False  # contacts
    own: bool = False  # rows of loops, couplings that give way, tendons, actuators, balls and links
    by_lane: bool = False  # own rows are found lane by lane
    looped: bool = False  # loops, or equalities of tendons
    damped: bool = False  # damping and velocity bounds of links
    bouncing: bool = False  # restitution
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
        alone=ALONE,
        moved=MovedState,
        own=OwnRows if needs.own else None,
        lane_rows=LaneRowsFound if needs.by_lane else None,
        loops=LoopBundle if needs.looped else None,
        load=PackLoad if needs.laden else None,
        adhesion=adhesion,
    )
    contact = with_members(
        PackContactBundle,
        data=PackContactWork,
        bounces=Bounces if needs.bouncing else None,
        sweep=PackSweep if needs.swept else None,
        adhesion=adhesion,
    )
    return (
        _ROBOT,
        with_members(RunBundle, inputs=PackInputs, step=PackStep, block=RolloutBlock, lanes=lanes),
        Rows,
        with_members(EquipmentBundle, data=PackEquipmentWork) if needs.equipped else None,
        contact if needs.touching else None,
        with_members(RuleBundle, data=PackRules) if needs.damped else None,
        with_members(SolverBundle, pack=PackSolver if needs.rows else None),
    )
