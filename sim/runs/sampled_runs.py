"""Many runs of one robot that differ in initial state, inputs, masses and the like: in packs of 8 where possible.

A pack takes a step in all lanes at once; see pack_step.py. A robot with features that packs lack
(`reason_against_packs`) runs sample after sample through Simulation. Samples do not depend on each other: their bytes
depend neither on the number of samples nor on that of threads.

No numba here: a process with warm kernels imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Protocol

import numpy as np

from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.contact.pack_contacts import (
    PackBounces,
    PackContacts,
    Slots,
    enlarged,
    make_lane_solver,
    make_pack_bounces,
    make_pack_contacts,
    make_pack_rows,
    make_slots,
)
from artsim.sim.equipment.arrays import PER_VELOCITY, EquipmentBundle
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import (
    WIDTH,
    Array,
    allocate,
    kinds,
    zeros,
)
from artsim.sim.geometry.contacts import (
    ContactBundle,
    ContactWork,
    Touching,
    connect_detection,
    make_contact_work,
)
from artsim.sim.run_data.link_rules import RuleBundle, make_link_rule_work
from artsim.sim.run_data.run_records import (
    FIRST_SAMPLE,
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
from artsim.sim.runs.lane_simulation import CALIBRATED, LaneSimulation, one_row, with_own_arrays
from artsim.sim.runs.packable import (
    attractors,
    calibrated_dampings,
    constant_slopes,
    entry_of_packs,
    equipment_of,
    has_clamped,
    has_helpers,
    has_rows,
    is_aimed,
    is_bounded,
    is_calibrated,
    is_inertial,
    is_laden,
    is_swept,
    make_exerted,
    needs_matrix,
    own_rows,
    pack_actuators,
    pack_width,
    reason_against_packs,
    rubbing_dofs,
    rubs_by_load,
    sleeps,
    sticks,
    stiff_tendons,
)
from artsim.sim.runs.plan import Plan, make_inputs
from artsim.sim.runs.simulate import simulation_of
from artsim.sim.runs.varied import Variations, VariedArrays, rubbing
from artsim.sim.stepping.allocation import make_step
from artsim.sim.stepping.packs import (
    _BODY_ARRAYS,
    _DOF_ARRAYS,
    _DRIVE_ARRAYS,
    _INPUT_ARRAYS,
    CAUSES,
    CROWD,
    HAS_IMPULSES,
    INPUT_ROW,
    SOLVE_PACK,
    STEP,
    STIFFENED_LANES,
    FoundRows,
    Helpers,
    LaneBundle,
    LoopBundle,
    LoopForces,
    OwnRows,
    PackActuation,
    PackAdhesion,
    PackContactBundle,
    PackControls,
    PackDrives,
    PackInputs,
    PackLoad,
    PackModel,
    PackRules,
    PackSleep,
    PackStep,
    PackSweep,
    PackWork,
    RolloutBlock,
)

_STEPS_PER_CALL = 2048  # signals are polled between calls only

ROLLOUT_RECORDED = ("qpos", "qvel")


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


class PackRoller:
    """Runs packs of 8 samples, the last one filled up with copies of the last sample."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.alone = results, dict[str, int]()
        self._plan = plan
        self._varied = VariedArrays(plan)
        model = plan.robot.model
        self._simulation = LaneSimulation(with_own_arrays(plan), one_row(controls))
        self._single = self._simulation.arrays()
        self._width = pack_width()
        self._model = _in_lanes(PackModel, model, self._width)
        self._state = make_state(model, self._width)
        self._work = make_workspace(model, self._width)
        self._inputs = self._make_inputs()
        touching = plan.touching
        slots = None if touching is None else make_slots(model, touching)
        rubbing = rubbing_dofs(plan)
        self._own, self._rules = own_rows(plan), self._make_rules()
        still = allocate(PackSleep, dict.fromkeys(PackSleep._fields, (1,)), self._width)
        self._sleep: PackSleep | None = still if sleeps(plan) else None
        self._drives, self._load, self._adhesion = self._make_drives(), self._make_load(), self._make_adhesion(slots)
        rows, newton, self._pack = make_pack_rows(model, equipment_of(plan), slots, rubbing, self._own, self._width)
        if needs_matrix(plan):
            self._pack = self._pack._replace(always=np.ones(1, np.int64))
        rows.implicit[:] = (plan.inputs["drive_stiffness"] + plan.inputs["drive_damping"]) > 0
        step = make_step(model)
        step = PackStep(**{n: zeros(getattr(step, n).shape, kind, self._width) for n, kind in kinds(PackStep).items()})
        self._exerted = make_exerted(plan)
        self._lanes = self._make_lanes()
        self._kept: dict[str, object] = {}
        self._calibrated = False
        self._own_rows, self._found, self._loops = self._make_own_rows(), self._make_found(), self._make_loops()
        self._helpers, self._helping = self._make_helpers(controls)
        self._connect_single()
        self._entry = entry_of_packs(plan)
        self._slots: PackContacts | None = None
        self._bounces: PackBounces | None = None
        self._contact_data: ContactWork | None = None
        if has_rows(plan):
            solver = SolverBundle(newton, pack=self._pack, lane=make_lane_solver())
            solved = (self._model, self._work, rows, step, solver)
            self._kept["solver"] = point_at(SOLVE_PACK, self._width, self._pack.entry, *solved)
        if touching is not None:
            assert slots is not None
            self._slots = make_pack_contacts(touching, slots, self._simulation.room, self._width)
            self._bounces = make_pack_bounces(model, touching, slots, self._width)
            self._make_detection(touching, self._slots)
        self._samples = RolloutBlock(
            np.zeros(3, np.int64), results.rows["qpos"], results.rows["qvel"], results.final_qpos, results.final_qvel
        )
        self._samples.plan[STEPS_PER_ROW] = plan.config.every
        self._per_lane: PackControls | None = None
        actuators = pack_actuators(plan)
        shapes = {
            **dict.fromkeys(PackActuation._fields, (plan.robot.nv,)),
            **dict.fromkeys(("constant", "slope", "resistance", "acts", "held"), actuators.gain.shape),
            "tendon_length": actuators.tendon_lower.shape,
            "tendon_moment": actuators.tendon_dof.shape,
        }
        actuation = allocate(PackActuation, shapes, self._width)
        actuation.acts[...] = 1.0
        for place, values in zip(
            (actuation.slope, actuation.resistance), constant_slopes(plan, actuators), strict=True
        ):
            place[...] = values[:, None] if self._width > 1 else values
        self._damped = calibrated_dampings(plan, actuators)
        self._rows, self._step = rows, step
        self._robot = RobotBundle(self._model, self._state, self._work)
        self._equipment: Any = EquipmentBundle(actuators, actuation)  # type: ignore[arg-type]
        self._bind(self._controls_of([controls]))

    def _connect_single(self) -> None:
        """Connect the kernels of a single robot, for one lane after the other."""
        self._kept["step"] = self._simulation.point_at(self._lanes.single)
        if not has_helpers(self._plan):
            self._helpers = self._simulation.as_helpers()
            if is_laden(self._plan):
                self._kept["equipment"] = self._simulation.exert_at(self._helpers.exerter[0], self._exerted)

    def _make_helpers(self, controls: Controls) -> tuple[Helpers, list[LaneSimulation]]:
        """A helper for each lane where they need one each."""
        plan, shared = self._plan, self._simulation.as_helpers()
        if not has_helpers(plan):
            return shared, []
        helpers = Helpers(*(np.zeros((self._width, *values.shape[1:]), values.dtype) for values in shared))
        helping, kept = [LaneSimulation(with_own_arrays(plan), one_row(controls)) for _ in range(self._width)], []
        for lane, each in enumerate(helping):
            each.become_helper(helpers, lane)
            if self._own > 0:
                kept.append(each.find_at(helpers.finder[lane], self._found))
            if is_laden(plan):
                kept.append(each.exert_at(helpers.exerter[lane], self._exerted))
            if has_clamped(plan):
                kept.append(each.clamp_at(helpers.clamper[lane], self._exerted))
            if is_bounded(plan):
                kept.append(each.bound_at(helpers.bounder[lane], self._exerted))
            if is_aimed(plan):
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
            "fixed": (5,),
        }
        made: OwnRows = allocate(OwnRows, shapes, self._width)
        first = len(self._pack.rubbing)
        plan = self._plan
        flags = is_aimed(plan), has_clamped(plan), is_bounded(plan), stiff_tendons(plan) > 0
        fixed = np.array([first, *flags], np.int64)
        return made._replace(fixed=fixed)

    def _make_rules(self) -> Any:
        """Allocate what the pack computes of links' damping."""
        if self._plan.rules is None:
            return None
        work = make_link_rule_work(self._plan.robot.model, self._plan.rules)
        shapes = {name: values.shape for name, values in work._asdict().items()}
        return RuleBundle(self._plan.rules, allocate(PackRules, shapes, self._width))

    def _make_drives(self) -> PackDrives | None:
        """Allocate the scales of drives whose gains are accelerations."""
        if not is_inertial(self._plan):
            return None
        drives: PackDrives = allocate(PackDrives, {"scale": (self._plan.robot.nv,)}, self._width)
        drives.scale[:] = 1.0
        return drives

    def _make_load(self) -> PackLoad | None:
        if not rubs_by_load(self._plan):
            return None
        load: PackLoad = allocate(PackLoad, dict.fromkeys(PackLoad._fields, (self._plan.robot.nv,)), self._width)
        return load

    def _make_adhesion(self, slots: Slots | None) -> PackAdhesion | None:
        if slots is None or not sticks(self._plan):
            return None
        e, number = equipment_of(self._plan), attractors(self._plan)
        of_slots = dict.fromkeys(("near", "surface", "pull"), (slots.number,))
        made: PackAdhesion = allocate(
            PackAdhesion, {**of_slots, **dict.fromkeys(("number", "body", "force"), number.shape)}, self._width
        )
        return made._replace(number=number, body=number if e is None else e.actuator_target[number])

    def _make_loops(self) -> LoopBundle | None:
        """Allocate what the pack computes of loops."""
        e = equipment_of(self._plan)
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
        if is_swept(self._plan):
            self._kept["sweep"] = self._simulation.sweep_in(self._contact_data)

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
            self.results.reason[lanes] = self._lanes.reason
            self.results.stopped[lanes] = self._lanes.stopped
            self.results.stopped_dof[lanes] = self._lanes.stopped_dof
        self.alone = {cause: int(count) for cause, count in zip(CAUSES, self._lanes.alone, strict=True) if count}
        return True

    def _run_pack(self, first: int, part: Variations, stop: Stop) -> bool:
        self._fill(part)
        samples, lanes, steps = self._samples, self._lanes, self._plan.config.steps
        samples.plan[FIRST_SAMPLE] = first
        lanes.counters[[STEP, INPUT_ROW, HAS_IMPULSES, STIFFENED_LANES]] = 0, -1, 0, 0
        self._work.stiffening[:], self._work.slack[:] = 0.0, 0.0
        lanes.alive[:] = np.arange(self._width) < len(part)
        lanes.stopped[:], lanes.stopped_dof[:], lanes.reason[:] = -1, -1, RUNNING
        lanes.impulse[:] = 0.0
        lanes.drive_held[:] = 0.0
        lanes.activation[...] = self._plan.activation.reshape((-1,) + (1,) * (lanes.activation.ndim - 1))
        self._pack.held[:] = 0.0
        self._pack.pressing[:] = 0.0
        if self._sleep is not None:
            self._sleep.still[:] = 0.0
        self._state.load[:] = 0.0
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
        if (part.factors or not self._calibrated) and (is_calibrated(self._plan) or self._own > 0):
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
            for name in (*CALIBRATED, "effective_coupling"):
                values = getattr(self._lanes, name)
                values[..., lane if self._width > 1 else slice(None)] = getattr(self._single, name)
        numbers = self._equipment.model.number[self._damped]
        self._equipment.data.resistance[self._damped] = self._lanes.actuator_damping[numbers]

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
            sweep = PackSweep(self._contact_data.straight) if is_swept(self._plan) else None
            contact = PackContactBundle(
                model, self._slots, ContactBundle(model, self._contact_data), self._bounces, sweep, self._adhesion
            )
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
            self._drives,
            self._load,
            self._adhesion,
        )
        run: Any = RunBundle(self._inputs, self._step, self._samples, None, lanes)  # type: ignore[arg-type]
        solver = SolverBundle(pack=self._pack if has_rows(self._plan) else None)
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
            **dict.fromkeys(("alive", "stopped", "stopped_dof", "reason"), (self._width,)),
            **dict.fromkeys(
                ("stiff", "beyond", "cause", "dead", "rounds", "evaluations", "settled", "nearest", "searches"), (1,)
            ),
            **dict.fromkeys(("activation", "next_activation"), self._exerted.activation.shape),
            **{name: getattr(self._single, name).shape for name in (*CALIBRATED, "effective_coupling")},
            "counters": (7,),
            "stiffening": self._work.stiffening.shape[:2],
            "slack": (robot.nv,),
            "alone": (len(CAUSES),),
            "single": (2,),
            "qpos": (robot.nq,),
            **dict.fromkeys(("qvel", "drive_held"), (robot.nv,)),
            **dict.fromkeys(("impulse", "found"), (len(self._single.impulse),)),
        }
        lanes: PackWork = allocate(PackWork, shapes, self._width)
        e = equipment_of(self._plan)
        if e is not None:  # what is not calibrated stays so
            damping = -e.bias_parameters[:, PER_VELOCITY]
            lanes.actuator_damping[...] = damping[:, None] if self._width > 1 else damping
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
