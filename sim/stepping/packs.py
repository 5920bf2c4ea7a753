"""Records of the step of 8 robots at once, and its entries. Does not import numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from artsim.collision.shapes import Placed, Shapes
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.contact.pack_contacts import (
    LaneSolver,
    OwnRows,
    PackAdhesion,
    PackContactBundle,
    PackContactWork,
    PackSolver,
    PackSweep,
    SingleSolver,
)
from artsim.sim.equipment.arrays import EquipmentBundle, EquipmentWork
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
    kinds,
    lane_view,
    with_lanes,
    with_members,
)
from artsim.sim.geometry.contacts import Bounces, ContactBundle, Sights
from artsim.sim.run_data.integration import Integrator
from artsim.sim.run_data.link_rules import LinkRuleWork, RuleBundle
from artsim.sim.run_data.run_records import Block, Inputs, Rows, RunBundle, Step
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle

# entries of RolloutBlock.plan, after those that Block.plan has, too: the first sample of the pack; rows per sample that
# the single robot records, 0: none; the first slot of the pack, where a slot holds the recorded contacts of one row of
# a lane; slots per lane, which its rows take in turn
FIRST_SAMPLE, ROWS_OF_SAMPLE, FIRST_SLOT, SLOTS_OF_LANE = range(2, 6)
PLAN_ENTRIES = 6
# fields that every lane has of its own: of Model, and of Inputs the gains of drives and the inputs over time
LANE_PROPERTIES = (
    *("body_mass", "carried_mass", "body_moment", "body_inertia", "link_mass", "link_inertia"),
    *("armature", "damping", "stiffness", "friction", "friction_coefficient", "link_com", "gravity"),
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
PackInputs = with_lanes(Inputs, "PackInputs", (*LANE_GAINS, *LANE_CONTROLS))
PackEquipmentWork = with_lanes(
    EquipmentWork,
    "PackEquipmentWork",
    (
        *CALIBRATED,
        *("tendon_length0", "spring_length", "tendon_length", "tendon_velocity", "tendon_moment", "tendon_drift"),
        *("tendon_pull", "tendon_share", "tendon_by_row"),
        *("actuator_length", "actuator_velocity", "actuator_moment", "actuator_force", "actuator_input"),
        *("constant", "slope", "resistance", "acts", "held", "actuator_share", "actuator_scale", "scaling"),
        *("dof_held", "dof_force", "actuator_total", "stiffness", "damping", "offset", "compensation"),
        *("passive", "tendon", "resisted", "start_activation", "next_activation", "pending"),
        *("loop_error", "loop_force", "loop_drift", "loop_response", "row", "row2"),
    ),
)
PackRules = with_lanes(LinkRuleWork, "PackRules", LinkRuleWork._fields)
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
        "straining",
        "drive_inertia",
        "drive_held",
        "pressed",
        "bound_rounds",
        "bound",
        "ball_rows",
        "drive_rows",
        "rule_rounds",
        "outdated",
        "columns",
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

    input_row: Ints1  # (1,) number of the row of inputs that acts
    alive: Ints1  # (lanes,) 0: a copy that fills up the pack, or stopped at a state that is not finite
    began: Ints1  # (lanes,) number of the pack's step that is the first of the lane, whose own number is 0
    stopped: Ints1  # (lanes,) the lane's step at which it stopped; -1: running
    stopped_dof: Ints1  # (lanes,) the dof that stopped the lane, as in Step.counters[STOP_DOF]
    reason: Ints1  # (lanes,) RUNNING, NON_FINITE, … as in Step.counters[STOP_REASON]
    unsolved: Ints1  # (lanes,) steps in which the solver left a residual
    worst_residual: Reals1  # (lanes,) largest residual of rows in any step so far [rad/s or m/s]
    by_newton: Ints1  # (1,) steps in which newton itself solved rows of a lane
    number: Ints1  # (lanes,) numbers of the robots, by which the noise of sensors is drawn
    searches: Lanes1  # (1,) for other contacts in this step
    stiffening: Lanes2  # (nb, 6) inertia added to taut bodies in lanes that have stiffened bodies already [kg m²]
    slack: Lanes1  # (nv,) damping of joints in these lanes [N m s/rad]
    dead: Lanes1  # (1,) more than 0: the step is not finite
    delay: Reals2  # (lanes, delayed controls) as Delays has them [steps]
    rater: Ints1  # (2,) the entry that rates samples before each step; zeros: they are not rated


class Turns(NamedTuple):
    """Packs that take their steps in turn."""

    entry: Ints2  # (packs, 2) the pack's kernel and its table, as jit.point_at sets it
    due: Ints1  # (packs,) 1: the pack takes its turn


TAKE_TURNS = Entry("take_turns", "artsim.sim.stepping.turns", (Turns,))


UNTIL, COST = range(2)  # outputs of a program that rates samples: 0: the sample goes on; the cost of a step
BY_CONTROL, BY_TARGET, BY_TORQUE = range(3)  # the input that is the action


class Rating(NamedTuple):
    """A program by which packs rate samples, the tables from which it loads, and the ratings of all samples."""

    evaluator: Ints1  # (2,) the entry that runs the program
    finder: Ints1  # (2,) the entry that computes the quantities of links; zeros: none are asked for
    qpos: Reals2  # (lanes, nq), as the fields below tables of the program
    qvel: Reals2
    activation: Reals2
    action: Reals2
    time: Reals2  # (lanes, 1)
    output: Reals2  # (lanes, 2) UNTIL and COST
    memory: Reals2  # (lanes, memories) and, of the program, too:
    always: Ints1  # (1,)
    register: Reals2  # (registers, TILE)
    by: Ints1  # (1,) BY_CONTROL, …
    time_step: Reals1  # (1,) [s]
    rated: Ints1  # (samples,) the last step that was rated, -1 before any
    ended: Ints1  # (samples,) the step before which the sample ended; -1: it goes on
    cost: Reals1  # (samples,) the sum of its costs
    kept: Reals2  # (samples, memories)
    unknown: Ints1  # (1,) the first sample that has no rating, -1 without any
    found: Reals1  # (registers,) the registers of the program for that sample


class Alone(NamedTuple):
    """Arrays of a single robot that stands for one lane after the other: in the continuous check, and where the taut
    bodies of a row that is recorded are booked."""

    state: State
    step: Step
    stiffening: Reals2  # of Workspace, as is slack
    slack: Reals1
    contacts: Ints1  # of the Block in which rows are recorded


class RolloutBlock(NamedTuple):
    """Recorded rows of some samples, beside those that the single robot records. A field whose second extent is 0 is
    not recorded."""

    plan: Ints1  # (6,) steps to take now, steps per recorded row, FIRST_SAMPLE … SLOTS_OF_LANE
    qpos: Reals3  # (samples, rows, nq)
    qvel: Reals3  # (samples, rows, nv)
    final_qpos: Reals2  # (samples, nq)
    final_qvel: Reals2  # (samples, nv)


AnyBlock: TypeAlias = RolloutBlock | Any  # of a RunBundle, whose block is declared as a single run's


class Helpers(NamedTuple):
    """Entries of the single robots that find forces and paths of the lanes, and record their rows, one of each lane.
    They see the lane's arrays in place (of_lane); counters and retries are those of their Steps.
    """

    exerter: Ints2  # (lanes, 2) the entry that finds forces of equipment; zeros: none are found lane by lane
    pather: Ints2  # (lanes, 2) the entry that finds paths of tendons; zeros: none are tied
    keeper: Ints2  # (lanes, 2) the entry that keeps samples of delayed controls; zeros: nothing is delayed
    recorder: Ints2  # (lanes, 2) the entry that records a row
    caster: Ints2  # (lanes, 2) EquipmentWork.ray_caster where rows are recorded
    counters: Ints2  # (lanes, 9) STEP_NUMBER, …
    retries: Ints2  # (lanes, 4) SEARCHES, …
    noise_key: Ints2  # (lanes, 2) EquipmentWork.noise_key


class LaneBundle(NamedTuple):
    """The part of the run's records that only packs have."""

    data: PackWork
    alone: Alone
    controls: PackControls
    helpers: Helpers
    adhesion: PackAdhesion | Any = None


OwnState = with_lanes(State, "OwnState", ())  # of a single robot, as kernels of packs see it
ALONE = with_members(Alone, state=OwnState)


_NEWTON = with_members(
    SolverBundle, newton=NewtonWork, pack=PackSolver, own=OwnRows, lane=LaneSolver, single=SingleSolver
)
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
ROBOT_OF_LANE = with_members(RobotBundle, model=LaneModel, state=LaneState, data=LaneWorkspace)
RUN_OF_LANE = with_members(RunBundle, inputs=LaneInputs, step=LaneStep, block=None, clock=None)
EQUIPMENT_OF_LANE = with_members(EquipmentBundle, data=LaneEquipmentWork)

# the same where a row is recorded, which leaves impulses and what stiffens taut bodies as they are
_OF_ROBOT = [name for name, kind in kinds(Workspace).items() if kind.lanes and name not in ("stiffening", "slack")]
RecordedState = lane_view(PackState, "RecordedState", [name for name in MOVED if name != "impulse"])
RecordedWorkspace = lane_view(Workspace, "RecordedWorkspace", _OF_ROBOT)
RecordedStep = lane_view(PackStep, "RecordedStep")
RecordedRows = lane_view(Rows, "RecordedRows")
RecordedContacts = lane_view(PackContactWork, "RecordedContacts")
RecordedRules = lane_view(PackRules, "RecordedRules")

_DELAYED = "artsim.sim.stepping.delayed"
_OF_LANE = "artsim.sim.stepping.lane_equipment"  # modules of the kernels of a single robot that serves its lane
EXERT, PATHS = (
    Entry(name, _OF_LANE, (ROBOT_OF_LANE, RUN_OF_LANE, EQUIPMENT_OF_LANE)) for name in ("find_exerted", "find_paths")
)
DELAY_OF_LANE, KEEP_OF_LANE = (
    Entry(name, _DELAYED, (LaneState, RUN_OF_LANE, EQUIPMENT_OF_LANE, Delays), "_of_lane")
    for name in ("delay_controls", "keep_samples")
)


class PackFeatures(NamedTuple):
    """The features that the packs of a run need beside free motion; their kernel is named after the fields."""

    equipped: bool = False  # equipment, such as actuators
    rows: bool = False  # constraint rows
    touching: bool = False  # contacts
    damped: bool = False  # damping and velocity bounds of links
    bouncing: bool = False  # restitution
    swept: bool = False  # the continuous check
    sticky: bool = False  # contacts may adhere


def roll_entry(needs: PackFeatures) -> Entry:
    """The packs' kernel, for all integrators, pruned of features that the run does not need."""
    return Entry("simulate", "artsim.sim.stepping.step", _bundles(needs), "_lanes" + _variant(needs))


def recorder_of_lanes(needs: PackFeatures) -> Entry:
    """The kernel that records a row of a lane."""
    robot = with_members(RobotBundle, model=LaneModel, state=RecordedState, data=RecordedWorkspace)
    run = with_members(RunBundle, inputs=LaneInputs, step=RecordedStep, block=Block, clock=None)
    equipment = EQUIPMENT_OF_LANE if needs.equipped else None
    contact = with_members(ContactBundle, data=RecordedContacts) if needs.touching else None
    rules = with_members(RuleBundle, data=RecordedRules) if needs.damped else None
    features = PackFeatures(equipped=needs.equipped, touching=needs.touching, damped=needs.damped)
    bundles = robot, run, RecordedRows, equipment, contact, rules
    return Entry("record_lane", "artsim.sim.stepping.lane_recording", bundles, _variant(features))


CAST_OF_LANE = Entry(
    "cast_rays",
    "artsim.sim.contact.ray_casting",
    (LaneModel, RecordedWorkspace, EQUIPMENT_OF_LANE, Sights, Shapes, Placed),
    "_of_lane",
)


def rater_of_packs() -> Entry:
    """The kernel that rates the samples of packs."""
    return Entry("rate", "artsim.sim.stepping.rating", (PackState, _bundles(PackFeatures())[1], Rating))


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
