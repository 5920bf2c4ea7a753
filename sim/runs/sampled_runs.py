"""Many runs of one robot that differ in initial state, inputs, masses and the like: in packs of 8 where possible.

A pack takes a step in all lanes at once; see pack_step.py. A robot with features that packs lack
(`reason_against_packs`) runs sample after sample through Simulation. Samples do not depend on each other: their bytes
depend neither on the number of samples nor on that of threads.

No numba here: a process with warm kernels imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np

from artsim.sim.articulation.model import D_MIN, SWING_Y, TWIST_UPPER, Model
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.contact.pack_contacts import (
    MOST_PAIRS,
    PackContacts,
    enlarged,
    limited_sides,
    make_lane_solver,
    make_pack_contacts,
    make_pack_rows,
    make_slots,
    world_pairs,
)
from artsim.sim.equipment.arrays import (
    AFFINE,
    BODY,
    BY_ROW,
    EXPLICIT,
    FILTER,
    FILTER_EXACT,
    FIXED,
    INTEGRATOR,
    JOINT,
    NO_BIAS,
    NO_DYNAMICS,
    Equipment,
    EquipmentBundle,
)
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.jit import Entry, bind, disabled, point_at
from artsim.sim.foundation.records import (
    WIDTH,
    Array,
    allocate,
    kinds,
    zeros,
)
from artsim.sim.foundation.spatial import point_inertia, six, symmetric
from artsim.sim.geometry.contacts import (
    ContactBundle,
    ContactWork,
    Touching,
    connect_detection,
    make_contact_work,
)
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.link_rules import RuleBundle, make_link_rule_work
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import (
    FIRST_SAMPLE,
    NO_CONTROLLER,
    NON_FINITE,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    Inputs,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan, make_inputs
from artsim.sim.runs.simulate import Simulation, simulation_of
from artsim.sim.stepping.allocation import make_step
from artsim.sim.stepping.packs import (
    _BODY_ARRAYS,
    _DOF_ARRAYS,
    _DRIVE_ARRAYS,
    _INPUT_ARRAYS,
    CAUSES,
    CLAMP,
    CROWD,
    EXERT,
    HAS_IMPULSES,
    INPUT_ROW,
    SOLVE_PACK,
    STEP,
    Exerted,
    FoundRows,
    Helpers,
    LaneBundle,
    LoopBundle,
    LoopForces,
    OwnRows,
    PackActuation,
    PackActuators,
    PackContactBundle,
    PackControls,
    PackInputs,
    PackModel,
    PackRules,
    PackSleep,
    PackStep,
    PackWork,
    RolloutBlock,
    Single,
    find_entry,
    miss_entry,
    roll_entry,
)

VARIED = {
    "mass": "link",
    "armature": "dof",
    "damping": "dof",
    "stiffness": "dof",
    "joint_friction": "dof",
    "drive_stiffness": "dof",
    "drive_damping": "dof",
    "friction": "",
}
"""Properties that samples vary by factors, and the parts that each has a factor for ("": one for all contacts)."""

_CALIBRATED = ("acceleration0", "actuator_damping", "loop_mobility", "tendon_mobility")  # by a robot's masses
# what of a helper's records is in Helpers
_OF_STATE, _OF_STEP = ("qpos", "qvel", "activation", "history"), ("counters", "velocity", "middle")
_OF_WORK = (
    *("gain", "drift", "rotation", "offset", "arm", "axis"),
    *("angular_velocity", "acceleration", "angular_acceleration"),
)
_ENTRIES = ("exerter", "finder", "clamper", "misser", "keeper")  # of Helpers
_FILTERS = (NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT)
_ALWAYS = 1 << 62  # a step number that is never reached
_STEPS_PER_CALL = 2048  # signals are polled between calls only
_MOST_DOFS = 100  # since packs hold 8 mass matrices


ROLLOUT_RECORDED = ("qpos", "qvel")


@dataclass(frozen=True)
class Variations:
    """The properties of n samples that differ; a factor of 1 leaves the robot's value."""

    qpos: Array  # (n, nq) at the start
    qvel: Array  # (n, nv)
    factors: Mapping[str, Array] = field(default_factory=dict)  # of VARIED: (n, links), (n, nv) or (n, 1)
    controls: Sequence[Controls] = ()  # one per sample; empty: those of the plan

    def __post_init__(self) -> None:
        for name in self.factors:
            if name not in VARIED:
                raise UsageError(f"{name!r} cannot be varied{nearest(name, VARIED)}")

    def __len__(self) -> int:
        return len(self.qpos)

    def part(self, start: int, stop: int) -> Variations:
        """The samples from `start` to before `stop`."""
        factors = {name: values[start:stop] for name, values in self.factors.items()}
        return Variations(self.qpos[start:stop], self.qvel[start:stop], factors, self.controls[start:stop])


@dataclass
class Results:
    """Arrays for n samples: recorded rows, final states, and how far each sample got.

    `start_depth`: of the deepest contact at the start [m], 0 where nothing is inside anything. `reason`: why the sample
    stopped early, else RUNNING; `stopped`: at which step, else -1; `stopped_dof`: the dof.
    """

    rows: dict[str, Array]  # of ROLLOUT_RECORDED: (n, rows, ·); without rows where not recorded
    final_qpos: Array
    final_qvel: Array
    start_depth: Array
    reason: Array
    stopped: Array
    stopped_dof: Array

    @classmethod
    def of(cls, plan: Plan, samples: int) -> Results:
        """Allocate zeroed results for so many samples, rounded up to whole packs."""
        n, config, robot = -(-samples // WIDTH) * WIDTH, plan.config, plan.robot
        count = -(-config.steps // config.every)
        sizes = {"qpos": robot.nq, "qvel": robot.nv}
        rows = {name: np.zeros((n, count if name in config.record else 0, size)) for name, size in sizes.items()}
        finals = np.zeros((n, robot.nq)), np.zeros((n, robot.nv))
        return cls(rows, *finals, np.zeros(n), np.full(n, RUNNING), np.full(n, -1), np.full(n, -1))


def reason_against_packs(plan: Plan) -> str:
    """The first feature of a run that packs lack, or an empty string."""
    model, inputs, config = plan.robot.model, plan.inputs, plan.config
    solver = SOLVERS[config.solver]
    reasons = {
        f"integrator {config.integrator}": not INTEGRATORS[config.integrator].packs,
        f"solver {config.solver}": not (solver.packs or (solver.exact and not _has_rows(plan))),
        "maximal coordinates": config.is_maximal,
        "adhesion, servos of rotations, and actuators of joints whose gains vary": any(
            _is_other(*each) for each in zip(*_actuators(plan), strict=True)
        ),
        f"contact of more than {_MOST_DOFS} dofs": plan.touching is not None and plan.robot.nv > _MOST_DOFS,
        "velocity limits of links": plan.rules is not None and len(plan.rules.bound) > 0,
        "--scheme-beta": config.scheme_beta not in (None, 1.0),
        "sleeping with delays": _sleeps(plan) and plan.delayed is not None,
        "--continuous": config.continuous,
        "a controller": inputs["controller"][0] != NO_CONTROLLER,
        "joint friction that goes by the load": bool(np.any(model.friction_coefficient > 0)),
        "acceleration drives": bool(np.any(inputs["drive_acceleration"]))
        or any(e.actuator_by_inertia[a] for e, a in zip(*_actuators(plan), strict=True)),
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), ""):
        return reason
    if plan.touching is not None and len(world_pairs(plan.touching)) > MOST_PAIRS:
        return f"more than {MOST_PAIRS} pairs of what moves and what does not"
    return ""


def _sleeps(plan: Plan) -> bool:
    """Whether robots may fall asleep."""
    return bool(plan.inputs["sleep"][0] > 0)


def _has_rows(plan: Plan) -> bool:
    """Whether the steps of packs have constraint rows, or couplings, for which their solver reduces M̂."""
    model = plan.robot.model
    if len(model.coupling_follower) + own_rows(plan) > 0 or plan.rules is not None:
        return True
    sides = limited_sides(model, _equipment(plan))
    return plan.touching is not None or bool(np.any(model.friction > 0)) or len(sides) > 0


def _equipment(plan: Plan) -> Equipment | None:
    return None if plan.equipped is None else plan.equipped.arrays


def own_rows(plan: Plan) -> int:
    """The number of rows that are found lane by lane (stepping/rows_of_lane.py)."""
    model, e = plan.robot.model, _equipment(plan)
    angles = np.count_nonzero((model.dof_coord < 0) & np.isfinite(model.upper))
    turns = 2 * np.isfinite(model.turn_range[:, TWIST_UPPER]) + np.isfinite(model.turn_range[:, SWING_Y])
    count = len(model.row_follower) + len(model.axis_dof) + int(angles) + int(turns.sum())
    if e is not None:
        count += int(e.loop_held.sum()) + len(e.tendon_row_follower) + int(np.sum(e.actuator_linear == BY_ROW))
        count += int(np.sum(e.tendon_friction > 0) + np.sum(e.tendon_armature > 0))
    return count


def _has_helpers(plan: Plan) -> bool:
    """Whether each lane has a single robot of its own that finds for it."""
    return own_rows(plan) > 0 or plan.delayed is not None


def _is_aimed(plan: Plan) -> bool:
    """Whether own rows are aimed (stepping/aims.py)."""
    e = _equipment(plan)
    hard = e is not None and np.any(np.append(e.loop_reference[:, 0], e.tendon_row_reference[:, 0]) < 0.0)
    return bool(hard) or len(plan.robot.model.axis_dof) > 0


def _is_laden(plan: Plan) -> bool:
    """Whether the equipment exerts more than the actuators that packs know, these follow activations, or it has rows
    of its own.
    """
    e = _equipment(plan)
    if e is None:
        return False
    if _has_helpers(plan):
        return True
    parts = ("tendon_lower", "compensated_mass", "damper_dof", "spring_body", "box_body", "ellipsoid_body")
    if any(len(getattr(e, part)) > 0 for part in (*parts, "link_wrench_link")):
        return True
    assert plan.equipped is not None
    return plan.equipped.activations > 0 or not all(_is_affine(e, a) for a in _actuators(plan)[1])


def _actuators(plan: Plan) -> tuple[Sequence[Equipment], Sequence[int]]:
    """The equipment and the number of each active actuator."""
    e = _equipment(plan)
    if e is None:
        return (), ()
    active = [int(a) for a in np.flatnonzero(e.actuator_active)]
    return [e] * len(active), active


def _is_affine(e: Equipment, a: int) -> bool:
    """Whether actuator a is one of PackActuators: on a joint of one dof, of constant slopes, damping no ratio."""
    gain, bias, (_, stiffness, damping) = e.actuator_gain[a], e.actuator_bias[a], -e.bias_parameters[a, :3]
    straight = gain == FIXED or (gain == AFFINE and not e.gain_parameters[a, 1:3].any())
    falling = bias != AFFINE or (stiffness >= 0.0 and damping >= 0.0)
    single = e.actuator_transmission[a] == JOINT and e.actuator_entry[a + 1] - e.actuator_entry[a] == 1
    plain = e.actuator_dynamics[a] in _FILTERS and e.actuator_period[a] == 0.0
    return bool(straight and falling and single and plain and bias in (NO_BIAS, AFFINE))


def _is_other(e: Equipment, a: int) -> bool:
    """Whether packs lack actuator a: its force is neither affine as above nor known at the start of a step."""
    if _is_affine(e, a):
        return False
    constant = not (e.gain_parameters[a, 1:3].any() or e.bias_parameters[a, 1:3].any())
    of_state = e.actuator_gain[a] in (FIXED, AFFINE) and e.actuator_bias[a] in (NO_BIAS, AFFINE) and constant
    known = of_state or e.actuator_linear[a] in (EXPLICIT, BY_ROW)
    return bool(not known or e.actuator_axis[a] >= 0 or e.actuator_transmission[a] == BODY)


def _pack_actuators(plan: Plan) -> PackActuators:
    """The active actuators as arrays of packs."""
    nv = plan.robot.nv
    free = {"dof_lower": np.full(nv, -np.inf), "dof_upper": np.full(nv, np.inf)}
    e = _equipment(plan)
    if e is None:
        none = dict.fromkeys(PackActuators._fields, np.zeros(0))
        whole = dict.fromkeys(("number", "dof", "control", "implicit", "tendon_dof"), np.zeros(0, np.int64))
        whole |= {"tendon_entry": np.zeros(1, np.int64), "dof_implicit": np.zeros(nv, np.int64)}
        none["tendon_limit_spring"] = np.zeros((0, 2))
        return PackActuators(**{**none, **whole, **free})
    chosen = np.array([a for a in _actuators(plan)[1] if _is_affine(e, a)], np.int64)
    affine = e.actuator_bias[chosen] == AFFINE
    bias = np.where(affine[:, None], e.bias_parameters[chosen, :3], 0.0)
    implicit, dof = (bias[:, 1:] != 0.0).any(axis=1).astype(np.int64), e.actuator_target[chosen]
    dof_implicit = np.zeros(nv, np.int64)
    dof_implicit[dof[implicit == 1]] = 1
    control = e.control_first[chosen]
    return PackActuators(
        number=chosen,
        dof=dof,
        control=control,
        implicit=implicit,
        gear=np.array(e.actuator_gear[chosen, 0]),
        gain=np.array(e.gain_parameters[chosen, 0]),
        bias=np.array(bias[:, 0]),
        stiffness=np.array(-bias[:, 1]),
        damping=np.array(-bias[:, 2]),
        control_lower=e.control_lower[control],
        control_upper=e.control_upper[control],
        force_lower=e.force_lower[chosen],
        force_upper=e.force_upper[chosen],
        dof_lower=np.array(e.dof_force_lower),
        dof_upper=np.array(e.dof_force_upper),
        dof_implicit=dof_implicit,
        tendon_entry=e.tendon_entry,
        tendon_dof=e.tendon_dof,
        tendon_lower=e.tendon_lower,
        tendon_upper=e.tendon_upper,
        tendon_limit_spring=e.tendon_limit_spring,
    )


def _make_exerted(plan: Plan) -> Exerted:
    """Allocate what the equipment exerts."""
    e, nv = _equipment(plan), plan.robot.nv
    dofs = dict.fromkeys(("force", "passive", "tendon"), (nv,))
    if e is None or plan.equipped is None:
        none: Exerted = allocate(
            Exerted, {**dict.fromkeys(Exerted._fields, (0,)), **dofs, "tendon_by_row": (1,), "changed": (1,)}
        )
        return none
    shapes = {
        **dofs,
        "counted": e.actuator_active.shape,
        "actuator_input": e.actuator_active.shape,
        **dict.fromkeys(("tendon_by_row", "changed"), (1,)),
        "tendon_length": e.tendon_lower.shape,
        "tendon_moment": e.tendon_dof.shape,
        "activation": (plan.equipped.activations,),
    }
    made: Exerted = allocate(Exerted, shapes)
    counted = [int(e.actuator_active[a] and not _is_affine(e, a)) for a in range(len(e.actuator_active))]
    return made._replace(counted=np.array(counted, np.int64))


def kernels(plan: Plan) -> list[tuple[Entry, int]]:
    """The kernels that the samples of a plan need, with their widths."""
    if plan.config.is_maximal:
        return []
    alone = [(entry, 1) for entry in plan.entries]
    if reason_against_packs(plan):
        return alone
    packed, own = [_roll_entry(plan), *([SOLVE_PACK] if _has_rows(plan) else [])], own_rows(plan) > 0
    of_lanes = [EXERT] * _is_laden(plan)
    if own:
        equipped = plan.equipped is not None
        of_lanes += [find_entry(equipped)] + [miss_entry(equipped)] * _is_aimed(plan) + [CLAMP] * _has_clamped(plan)
    return alone + [(entry, 1) for entry in of_lanes] + [(entry, pack_width()) for entry in packed]


def _roll_entry(plan: Plan) -> Entry:
    """The packs' kernel for this plan."""
    e = _equipment(plan)
    looped = e is not None and len(e.loop_kind) > 0
    return roll_entry(
        _has_rows(plan), plan.touching is not None, own_rows(plan) > 0, looped, plan.rules is not None, _sleeps(plan)
    )


def _has_clamped(plan: Plan) -> bool:
    """Whether actuators are rows."""
    e = _equipment(plan)
    return e is not None and bool(np.any(e.actuator_linear == BY_ROW))


# ------------------------------------------------------------------ what is varied, as arrays


class VariedArrays:
    """Computes the arrays of the model and of the drives that factors change."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        model = plan.robot.model
        self._shares = np.array([_link_share(model, link) for link in range(len(model.link_mass))]).reshape(-1, 10)

    def of(self, factors: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays that the factors of n samples change, by name, each (n, …)."""
        model, changed = self._plan.robot.model, dict[str, Array]()
        if "mass" in factors:
            changed |= self._masses(factors["mass"])
        for name in ("armature", "damping", "stiffness"):
            if name in factors:
                changed[name] = getattr(model, name) * factors[name]
        if "joint_friction" in factors:
            for name in ("friction", "friction_coefficient"):
                changed[name] = getattr(model, name) * factors["joint_friction"]
        for name in _DRIVE_ARRAYS:
            if name in factors:
                changed[name] = self._plan.inputs[name] * factors[name]
        return changed

    def _masses(self, factor: Array) -> dict[str, Array]:
        model = self._plan.robot.model
        bodies = np.zeros((len(factor), len(model.body_mass), 10))
        for link, share in enumerate(self._shares):
            bodies[:, model.link_body[link]] += factor[:, link, None] * share
        carried = bodies[:, :, 0].copy()
        for body in range(carried.shape[1] - 1, 0, -1):
            carried[:, model.body_parent[body]] += carried[:, body]
        return {
            "body_mass": bodies[:, :, 0],
            "carried_mass": carried,
            "body_moment": bodies[:, :, 1:4],
            "body_inertia": bodies[:, :, 4:],
            "link_mass": model.link_mass * factor,
            "link_inertia": model.link_inertia * factor[:, :, None],
        }


def rubbing(touching: Touching, factor: float) -> Touching:
    """The contact parameters with all friction coefficients multiplied by a factor."""
    g = touching.contacts
    scaled = g._replace(friction=factor * g.friction, pair_friction=factor * g.pair_friction)
    return touching._replace(contacts=scaled)


def _link_share(model: Model, link: int) -> Array:
    """Contribution of a link to its body (10,): mass, first moment, inertia about the body's origin."""
    mass, turn = model.link_mass[link], model.link_rotation[link]
    centre = model.link_position[link] + turn @ model.link_com[link]
    inertia = turn @ symmetric(model.link_inertia[link]) @ turn.T + point_inertia(float(mass), centre)
    return np.concatenate([[mass], mass * centre, six(inertia)])


# ------------------------------------------------------------------ running samples


Stop = Callable[[], bool]


class Roller(Protocol):
    """Runs samples in one thread and fills the results; `alone`: steps that lanes took outside of packs, by cause."""

    results: Results
    alone: dict[str, int]

    def run(self, variations: Variations, stop: Stop) -> bool:
        """Run the samples of `variations` into the first entries of the results; False if `stop` ended it."""


def make_roller(plan: Plan, controls: Controls, results: Results) -> Roller:
    """Make the roller that runs samples into these results, in packs where possible."""
    if not reason_against_packs(plan):
        return PackRoller(plan, controls, results)
    return SingleRoller(plan, controls, results)


class SingleRoller:
    """Runs one sample after the other."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.alone = results, dict[str, int]()
        self._plan, self._controls = plan, controls
        self._arrays = VariedArrays(plan)

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        return all(self._run_one(k, variations.part(k, k + 1), stop) for k in range(len(variations)))

    def _run_one(self, k: int, own: Variations, stop: Stop) -> bool:
        results, count = self.results, 0
        simulation = simulation_of(self._plan_of(own), own.controls[0] if own.controls else self._controls)
        for block in chain(simulation.blocks(1), simulation.blocks()):
            if count == 0:
                results.start_depth[k] = simulation.deepest
            rows = len(next(iter(block.rows.values()), ()))
            for name, values in block.rows.items():
                results.rows[name][k, count : count + rows] = values
            count += rows
            if stop():
                return False
        results.final_qpos[k], results.final_qvel[k] = simulation.qpos, simulation.qvel
        stopped = simulation.stop_reason != RUNNING
        results.reason[k] = simulation.stop_reason
        results.stopped[k] = simulation.step if stopped else -1
        results.stopped_dof[k] = simulation.stop_dof if stopped else -1
        return True

    def _plan_of(self, own: Variations) -> Plan:
        """The plan of one sample."""
        plan = replace(self._plan, qpos=own.qpos[0], qvel=own.qvel[0])
        if "friction" in own.factors and plan.touching is not None:
            plan = replace(plan, touching=rubbing(plan.touching, float(own.factors["friction"][0, 0])))
        changed = {name: values[0] for name, values in self._arrays.of(own.factors).items()}
        if not changed:
            return plan
        drives = {name: changed.pop(name) for name in _DRIVE_ARRAYS if name in changed}
        return replace(plan, robot=plan.robot.with_model(changed), inputs={**plan.inputs, **drives})


class _LaneSimulation(Simulation):
    """The step of a single robot, into whose arrays packs write."""

    _calibrator: Callable[[], None] | None = None

    def reblock(self) -> None:
        """See Simulation."""
        super().reblock()
        self._calibrator = None

    def arrays(self) -> Single:
        """The arrays of the single robot."""
        model, inputs, state = self.plan.robot.model, self._inputs, self._state
        from_model = {name: getattr(model, name) for name in (*_BODY_ARRAYS, *_DOF_ARRAYS)}
        from_inputs = {name: getattr(inputs, name) for name in (*_DRIVE_ARRAYS, *_INPUT_ARRAYS)}
        from_state = {name: getattr(state, name) for name in (*_OF_STATE, "still", "impulse", "contact")}
        touching = self.plan.touching
        frictions = [np.zeros((0, 5))] * 2
        if touching is not None:
            frictions = [touching.contacts.friction, touching.contacts.pair_friction]
        of_contacts = dict(zip(("contact_friction", "pair_friction"), frictions, strict=True))
        calibrated = self._calibrated()
        return Single(
            counters=self._step.counters, **from_model, **from_inputs, **from_state, **calibrated, **of_contacts
        )

    def _calibrated(self) -> dict[str, Array]:
        """What its equipment has from its masses."""
        if self._equipment is None:
            return dict.fromkeys(_CALIBRATED, np.zeros(0)) | {"loop_mobility": np.zeros((0, 2))}
        return {name: getattr(self._equipment.data, name) for name in _CALIBRATED}

    def as_helpers(self) -> Helpers:
        """Its arrays as those of the one helper of all lanes."""
        state, step, work, calibrated = self._state, self._step, self._work, self._calibrated()
        arrays = {
            **{name: getattr(state, name) for name in _OF_STATE},
            **calibrated,
            "control": self._inputs.control[0],
            **{name: getattr(step, name) for name in _OF_STEP},
            **{name: getattr(work, name) for name in _OF_WORK},
        }
        pointers = {name: np.zeros((1, 2), np.int64) for name in _ENTRIES}
        return Helpers(**pointers, **{name: values[None] for name, values in arrays.items()})

    def become_helper(self, helpers: Helpers, lane: int) -> None:
        """Have row `lane` of the helpers' arrays in the place of its own."""
        mine = {name: getattr(helpers, name)[lane] for name in helpers._fields}
        for name, values in self.as_helpers()._asdict().items():
            mine[name][...] = values[0]

        def of(record: Any, names: Sequence[str]) -> Any:
            return record._replace(**{name: mine[name] for name in names})

        self._state, self._step = of(self._state, _OF_STATE), of(self._step, _OF_STEP)
        self._work = of(self._work, _OF_WORK)
        self._inputs = self._inputs._replace(control=mine["control"][None])
        if self._equipment is not None:
            self._equipment = EquipmentBundle(self._equipment.model, of(self._equipment.data, _CALIBRATED))
        model = self.plan.robot.model
        soft = model.row_impedance[:, D_MIN] >= 0.0
        self._step.effective_coupling[soft] = model.row_mobility[soft]
        self.reblock()
        if self._equipment is not None:
            helpers.keeper[lane] = self._equipment.data.keeper

    def make_room(self) -> None:
        """Enlarge the room for contacts. Raises StoppedError at the largest allowed number."""
        self._enlarge()
        if self._failure is not None:
            raise self._failure

    def take_masses(self, of: Single) -> None:
        """Take over another single robot's arrays of the model."""
        model = self.plan.robot.model
        for name in (*_BODY_ARRAYS, *_DOF_ARRAYS):
            getattr(model, name)[...] = getattr(of, name)

    def calibrate(self, exerted: Exerted) -> None:
        """Find what its actuators have from its masses, in the pose of the file."""
        if self._equipment is None:
            return
        self._equipment.data.calibrated[0] = 0.0
        if self._calibrator is None:
            self._calibrator = bind(EXERT, 1, self._robot, self._run, self._equipment, exerted)
        self._calibrator()

    def exert_at(self, pointers: Array, exerted: Exerted) -> object:
        """Let kernels that receive `pointers` find what its equipment exerts, while the returned object is kept."""
        return point_at(EXERT, 1, pointers, self._robot, self._run, self._equipment, exerted)

    def clamp_at(self, pointers: Array, exerted: Exerted) -> object:
        """The same for bounds of actuators that are rows."""
        return point_at(CLAMP, 1, pointers, self._run, self._equipment, exerted)

    def find_at(self, pointers: Array, found: Rows) -> object:
        """The same for its rows."""
        bundles = self._robot, self._run, found, self._equipment
        return point_at(find_entry(self._equipment is not None), 1, pointers, *bundles, SolverBundle())

    def miss_at(self, pointers: Array, found: Rows) -> object:
        """The same for what these miss by."""
        bundles = self._robot, self._run, found, self._equipment
        return point_at(miss_entry(self._equipment is not None), 1, pointers, *bundles)

    def point_at(self, pointers: Array) -> object:
        """Let kernels that receive `pointers` take its steps, for as long as the returned object is kept."""
        self._block.plan[:] = 1, _ALWAYS
        return point_at(self.plan.entry, 1, pointers, *self._bundles())


def pack_width() -> int:
    """Number of robots in a pack; 1 if kernels run as plain Python."""
    return 1 if disabled() else WIDTH


class PackRoller:
    """Runs packs of 8 samples, the last one filled up with copies of the last sample."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.alone = results, dict[str, int]()
        self._plan = plan
        self._varied = VariedArrays(plan)
        model = plan.robot.model
        self._simulation = _LaneSimulation(_with_own_arrays(plan), _one_row(controls))
        self._single = self._simulation.arrays()
        self._width = pack_width()
        self._model = _in_lanes(PackModel, model, self._width)
        self._state = make_state(model, self._width)
        self._work = make_workspace(model, self._width)
        self._inputs = self._make_inputs()
        touching = plan.touching
        slots = None if touching is None else make_slots(model, touching)
        rubbing = np.flatnonzero(model.friction > 0)
        self._own, self._rules = own_rows(plan), self._make_rules()
        still = allocate(PackSleep, dict.fromkeys(PackSleep._fields, (1,)), self._width)
        self._sleep: PackSleep | None = still if _sleeps(plan) else None
        rows, newton, self._pack = make_pack_rows(model, _equipment(plan), slots, rubbing, self._own, self._width)
        if plan.rules is not None:
            self._pack = self._pack._replace(always=np.ones(1, np.int64))
        rows.implicit[:] = (plan.inputs["drive_stiffness"] + plan.inputs["drive_damping"]) > 0
        step = make_step(model)
        step = PackStep(**{n: zeros(getattr(step, n).shape, kind, self._width) for n, kind in kinds(PackStep).items()})
        self._exerted = _make_exerted(plan)
        self._lanes = self._make_lanes()
        self._kept: dict[str, object] = {}
        self._calibrated = False
        self._own_rows, self._found, self._loops = self._make_own_rows(), self._make_found(), self._make_loops()
        self._helpers, self._helping = self._make_helpers(controls)
        self._connect_single()
        self._entry = _roll_entry(plan)
        self._slots: PackContacts | None = None
        self._contact_data: ContactWork | None = None
        if _has_rows(plan):
            solver = SolverBundle(newton, pack=self._pack, lane=make_lane_solver())
            solved = (self._model, self._work, rows, step, solver)
            self._kept["solver"] = point_at(SOLVE_PACK, self._width, self._pack.entry, *solved)
        if touching is not None:
            assert slots is not None
            self._slots = make_pack_contacts(touching, slots, self._simulation.room, self._width)
            self._make_detection(touching, self._slots)
        self._samples = RolloutBlock(
            np.zeros(3, np.int64), results.rows["qpos"], results.rows["qvel"], results.final_qpos, results.final_qvel
        )
        self._samples.plan[STEPS_PER_ROW] = plan.config.every
        self._per_lane: PackControls | None = None
        actuators = _pack_actuators(plan)
        shapes = {
            **dict.fromkeys(PackActuation._fields, (plan.robot.nv,)),
            **dict.fromkeys(("constant", "held"), actuators.gain.shape),
            "tendon_length": actuators.tendon_lower.shape,
            "tendon_moment": actuators.tendon_dof.shape,
        }
        actuation = allocate(PackActuation, shapes, self._width)
        self._rows, self._step = rows, step
        self._robot = RobotBundle(self._model, self._state, self._work)
        self._equipment: Any = EquipmentBundle(actuators, actuation)  # type: ignore[arg-type]
        self._bind(self._controls_of([controls]))

    def _connect_single(self) -> None:
        """Connect the kernels of a single robot, for one lane after the other."""
        self._kept["step"] = self._simulation.point_at(self._lanes.single)
        if not _has_helpers(self._plan):
            self._helpers = self._simulation.as_helpers()
            if _is_laden(self._plan):
                self._kept["equipment"] = self._simulation.exert_at(self._helpers.exerter[0], self._exerted)

    def _make_helpers(self, controls: Controls) -> tuple[Helpers, list[_LaneSimulation]]:
        """A helper for each lane where they need one each."""
        plan, shared = self._plan, self._simulation.as_helpers()
        if not _has_helpers(plan):
            return shared, []
        helpers = Helpers(*(np.zeros((self._width, *values.shape[1:]), values.dtype) for values in shared))
        helping, kept = [_LaneSimulation(_with_own_arrays(plan), _one_row(controls)) for _ in range(self._width)], []
        for lane, each in enumerate(helping):
            each.become_helper(helpers, lane)
            if self._own > 0:
                kept.append(each.find_at(helpers.finder[lane], self._found))
            if _is_laden(plan):
                kept.append(each.exert_at(helpers.exerter[lane], self._exerted))
            if _has_clamped(plan):
                kept.append(each.clamp_at(helpers.clamper[lane], self._exerted))
            if _is_aimed(plan):
                kept.append(each.miss_at(helpers.misser[lane], self._found))
        self._kept["helpers"] = kept
        return helpers, helping

    def _make_own_rows(self) -> OwnRows | None:
        """Allocate the rows that are found lane by lane."""
        nv, n = self._plan.robot.nv, self._own
        if n == 0:
            return None
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(OwnRows._fields, (n,)),
            **{name: (self._width, n) for name in OwnRows._fields if name.endswith("_table")},
            "marked": (n, nv),
            "value": (n * nv,),
            "value_table": (self._width, n * nv),
            **dict.fromkeys(("stale", "again", "phase", "aims", "before", "most"), (1,)),
            "fixed": (3,),
        }
        made: OwnRows = allocate(OwnRows, shapes, self._width)
        first = len(self._pack.rubbing)
        fixed = np.array([first, _is_aimed(self._plan), _has_clamped(self._plan)], np.int64)
        return made._replace(fixed=fixed)

    def _make_rules(self) -> Any:
        """Allocate what the pack computes of links' damping."""
        if self._plan.rules is None:
            return None
        work = make_link_rule_work(self._plan.robot.model, self._plan.rules)
        shapes = {name: values.shape for name, values in work._asdict().items()}
        return RuleBundle(self._plan.rules, allocate(PackRules, shapes, self._width))

    def _make_loops(self) -> LoopBundle | None:
        """Allocate what the pack computes of loops."""
        e = _equipment(self._plan)
        if e is None or len(e.loop_kind) == 0:
            return None
        return LoopBundle(e, allocate(LoopForces, {"loop_force": (len(e.loop_kind), 6)}, self._width))

    def _make_found(self) -> Any:
        """Allocate the rows as they are found for one lane after the other."""
        if self._own == 0:
            return None
        nv, n = self._plan.robot.nv, self._own
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(Rows._fields, (n,)),
            **dict.fromkeys(("entry_dof", "entry_value", "column", "value"), (n * 2 * nv + 4 * n,)),
            "number": (3,),
            "start": (n + 1,),
            "implicit": (nv,),
            "report": (2,),
        }
        return allocate(FoundRows, shapes)

    def _make_detection(self, touching: Touching, slots: PackContacts) -> None:
        """Make the contact detection, which fills the slots of one lane after the other."""
        self._contact_data = make_contact_work(touching, self._simulation.room)
        self._detection = connect_detection(touching, self._contact_data, slots.detector)

    def _make_room(self) -> None:
        """Enlarge the room for contacts; the step that found too many is then taken again."""
        assert self._plan.touching is not None and self._slots is not None
        self._single.counters[STEP_NUMBER] = self._lanes.counters[STEP]  # reported if no more are allowed
        self._simulation.make_room()
        self._single = self._simulation.arrays()
        self._connect_single()
        self._slots = enlarged(self._slots, self._simulation.room)
        self._make_detection(self._plan.touching, self._slots)
        self._lanes.counters[CROWD] = 0
        self._bind(self._bound)

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        for start in range(0, len(variations), self._width):
            if not self._run_pack(start, variations.part(start, start + self._width), stop):
                return False
            lanes = slice(start, start + self._width)
            self.results.reason[lanes] = np.where(self._lanes.stopped < 0, RUNNING, NON_FINITE)
            self.results.stopped[lanes] = self._lanes.stopped
            self.results.stopped_dof[lanes] = self._lanes.stopped_dof
        self.alone = {cause: int(count) for cause, count in zip(CAUSES, self._lanes.alone, strict=True) if count}
        return True

    def _run_pack(self, first: int, part: Variations, stop: Stop) -> bool:
        self._fill(part)
        samples, lanes, steps = self._samples, self._lanes, self._plan.config.steps
        samples.plan[FIRST_SAMPLE] = first
        lanes.counters[[STEP, INPUT_ROW, HAS_IMPULSES]] = 0, -1, 0
        lanes.alive[:] = np.arange(self._width) < len(part)
        lanes.stopped[:], lanes.stopped_dof[:] = -1, -1
        lanes.impulse[:] = 0.0
        lanes.drive_held[:] = 0.0
        lanes.activation[...] = self._plan.activation.reshape((-1,) + (1,) * (lanes.activation.ndim - 1))
        self._pack.held[:] = 0.0
        self._pack.pressing[:] = 0.0
        if self._sleep is not None:
            self._sleep.still[:] = 0.0
        if self._own_rows is not None:
            for name, values in self._own_rows._asdict().items():
                if name != "fixed":
                    values[...] = 0
        if self._slots is not None:
            self._slots.memory[:] = 0.0
        while (done := int(lanes.counters[STEP])) < steps:
            samples.plan[STEPS_TO_TAKE] = min(steps - done, _STEPS_PER_CALL) if done else 1
            self._call()
            if lanes.counters[CROWD]:
                self._make_room()
            elif done == 0 and self._slots is not None:
                self.results.start_depth[first : first + self._width] = self._slots.deepest
            if stop():
                return False
        return True

    def _fill(self, part: Variations) -> None:
        """Fill in the values that differ between lanes."""
        own = np.minimum(np.arange(self._width), len(part) - 1)
        self._state.qpos[...], self._state.qvel[...] = _as_lanes(part.qpos[own]), _as_lanes(part.qvel[own])
        for name, values in self._varied.of(part.factors).items():
            if name in (*_BODY_ARRAYS, *_DOF_ARRAYS, *_DRIVE_ARRAYS):
                record = self._inputs if name in _DRIVE_ARRAYS else self._model
                getattr(record, name)[...] = _as_lanes(values[own])
        if "friction" in part.factors and self._slots is not None:
            self._slots.factor[...] = _as_lanes(part.factors["friction"][own])
        if part.controls:
            self._set_controls([part.controls[k] for k in own])
        if (part.factors or not self._calibrated) and (_is_laden(self._plan) or self._own > 0):
            self._calibrate()
            self._calibrated = True
        if self._plan.delayed is not None:
            self._helpers.history[...] = self._plan.delayed.history

    def _calibrate(self) -> None:
        """Calibrate the actuators of each lane, whose masses may differ."""
        for lane in range(self._width):
            for name in (*_BODY_ARRAYS, *_DOF_ARRAYS):
                values = getattr(self._model, name)
                getattr(self._single, name)[...] = values[..., lane] if self._width > 1 else values
            self._simulation.calibrate(self._exerted)
            if self._helping:
                self._helping[lane].take_masses(self._single)
                self._helping[lane].calibrate(self._exerted)
            for name in _CALIBRATED:
                values = getattr(self._lanes, name)
                values[..., lane if self._width > 1 else slice(None)] = getattr(self._single, name)

    def _set_controls(self, controls: Sequence[Controls]) -> None:
        wanted = self._controls_of(controls)
        held = self._per_lane
        if held is None or held.torque.shape != wanted.torque.shape:
            self._per_lane = wanted
            self._bind(wanted)
        else:
            for place, values in zip(held, wanted, strict=True):
                place[...] = values

    def _bind(self, controls: PackControls) -> None:
        self._bound = controls
        contact: PackContactBundle | None = None
        if self._plan.touching is not None and self._slots is not None and self._contact_data is not None:
            model = self._plan.touching.contacts
            contact = PackContactBundle(model, self._slots, ContactBundle(model, self._contact_data))
        lanes = LaneBundle(
            self._lanes,
            self._single,
            controls,
            self._exerted,
            self._helpers,
            self._own_rows,
            self._found,
            self._loops,
            self._sleep,
        )
        run: Any = RunBundle(self._inputs, self._step, self._samples, None, lanes)  # type: ignore[arg-type]
        solver = SolverBundle(pack=self._pack if _has_rows(self._plan) else None)
        bundles = (self._robot, run, self._rows, self._equipment, contact, self._rules, solver)
        self._call = bind(self._entry, self._width, *bundles)

    def _make_inputs(self) -> Any:
        plan, nv = self._plan, self._plan.robot.nv
        given: dict[str, Array] = {name: np.ascontiguousarray(values) for name, values in plan.inputs.items()}
        given |= dict.fromkeys(_INPUT_ARRAYS, np.zeros((1, nv)))
        given |= {"start_step": np.zeros(1, np.int64), "control": np.zeros((1, plan.control.size))}
        return _in_lanes(PackInputs, Inputs(**given), self._width)

    def _controls_of(self, controls: Sequence[Controls]) -> PackControls:
        """The inputs of all lanes, or of each lane; all begin at the same steps."""
        inputs = [make_inputs(self._plan, one) for one in controls]
        tables = {name: np.stack([getattr(one, name) for one in inputs]) for name in _INPUT_ARRAYS}
        return PackControls(np.array(inputs[0].start_step), **tables)

    def _make_lanes(self) -> PackWork:
        robot = self._plan.robot
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("alive", "stopped", "stopped_dof"), (self._width,)),
            **dict.fromkeys(
                ("stiff", "beyond", "cause", "dead", "rounds", "evaluations", "settled", "nearest", "searches"), (1,)
            ),
            **dict.fromkeys(("activation", "next_activation"), self._exerted.activation.shape),
            **{name: values.shape for name, values in self._single._asdict().items() if name in _CALIBRATED},
            "counters": (6,),
            "alone": (len(CAUSES),),
            "single": (2,),
            "qpos": (robot.nq,),
            **dict.fromkeys(("qvel", "drive_held"), (robot.nv,)),
            **dict.fromkeys(("impulse", "found"), (len(self._single.impulse),)),
        }
        lanes: PackWork = allocate(PackWork, shapes, self._width)
        return lanes


def _in_lanes(record: type[Any], values: Any, width: int) -> Any:
    """A record with lanes that all hold the same values."""
    arrays = {}
    for name, kind in kinds(record).items():
        value = getattr(values, name)
        if kind.lanes:
            lanes = zeros(value.shape, kind, width)
            lanes[...] = value[..., None] if width > 1 else value
            value = lanes
        arrays[name] = value
    return record(**arrays)


def _as_lanes(values: Array) -> Array:
    """Move the lanes of (n, …) to the last axis."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]


def _with_own_arrays(plan: Plan) -> Plan:
    """A plan that records nothing, with copies of the arrays that packs write into."""
    model = plan.robot.model
    own = {name: np.array(getattr(model, name)) for name in (*_BODY_ARRAYS, *_DOF_ARRAYS)}
    compiled = replace(plan.robot.compiled, model=model._replace(**own))
    inputs = {name: np.array(values) for name, values in plan.inputs.items()}
    config = replace(plan.config, record=(), steps=1, every=1)
    if plan.touching is not None:
        plan = replace(plan, touching=rubbing(plan.touching, 1.0))
    return replace(plan, robot=replace(plan.robot, compiled=compiled), inputs=inputs, config=config)


def _one_row(controls: Controls) -> Controls:
    """Controls with the first row only, in whose place packs write the others."""
    return Controls(np.zeros(1, np.int64), **{name: getattr(controls, name)[:1] for name in _INPUT_ARRAYS})
