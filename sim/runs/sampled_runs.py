"""Many runs of one robot that differ in initial state, inputs or factors of properties: in packs of 8 where possible.

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

from artsim.sim.contact.continuous import connect_foresight
from artsim.sim.contact.pack_contacts import PackContactBundle, lane_order
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.geometry.contacts import CONTACTS, FOUND_CONTACTS, connect_detection
from artsim.sim.run_data.run_records import (
    CROWDED,
    RECORDED,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_REASON,
    TABLES_OF,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.control_tables import control_tables
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.lane_simulation import LaneSimulation, PackArrays, one_row, with_own_arrays
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.pack_arrays import (
    as_lanes,
    connect_solver,
    make_contact_bundle,
    make_lane_bundle,
    make_pack_equipment,
    make_pack_inputs,
    make_pack_rules,
    make_pack_step,
    make_robots,
    make_rows_and_solver,
    with_contacts_of,
)
from artsim.sim.runs.packable import (
    entry_of_packs,
    has_helpers,
    integrator_of,
    is_calibrated,
    pack_features,
    pack_width,
    reason_against_packs,
)
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.varied import Variations, VariedArrays, rubbing
from artsim.sim.stepping.allocation import block_shapes
from artsim.sim.stepping.packs import (
    FIRST_SAMPLE,
    LANE_GAINS,
    LANE_PROPERTIES,
    ROWS_OF_SAMPLE,
    PackControls,
    RolloutBlock,
)

_SPARE = 64  # rollers that are kept for further rollouts
_STEPS_PER_CALL = 2048  # signals are polled between calls only

ROLLOUT_RECORDED = ("qpos", "qvel")
"""The variables that a rollout records by default: those that packs record themselves."""

ROLLOUT_RECORDABLE = tuple(name for name in RECORDED if name not in TABLES_OF)
"""The variables that a rollout can record: all whose rows have a fixed size."""


def row_shapes(plan: Plan) -> dict[str, tuple[int, ...]]:
    """The shape of one row of each variable that the samples of a plan record."""
    shapes = block_shapes(plan.robot.model, plan.equipped)
    return {name: shapes[name] for name in plan.config.record}


def row_count(plan: Plan) -> int:
    """The number of recorded rows of a sample that does not stop early."""
    return -(-plan.config.steps // plan.config.every)


@dataclass
class Results:
    """Arrays for n samples: recorded rows, final states, and reasons of early stops.

    `unsolved` (n,): steps in which the solver left a residual, `residual` (n,) the largest [rad/s or m/s].
    `start_depth` (n,): depth of the deepest contact at the start [m], 0 without penetrations. `sunk` (n, 4): the hard
    contact that got deepest since the start, as in Account.sunk. `held` (n, 5): the contacts that hard loops hold
    inside, as in Account.held. `reason` (n,): the reason of an early stop, else RUNNING; `stopped` (n,): the step of
    the stop, else -1; `stopped_dof` (n,): the dof that caused it.
    """

    rows: dict[str, Array]  # (n, rows, …) by variable
    final_qpos: Array
    final_qvel: Array
    start_depth: Array
    sunk: Array
    held: Array
    reason: Array
    stopped: Array
    stopped_dof: Array
    unsolved: Array
    residual: Array

    @classmethod
    def of(cls, plan: Plan, samples: int) -> Results:
        """Allocate zeroed results for `samples` samples, rounded up to whole packs."""
        n, robot = -(-samples // WIDTH) * WIDTH, plan.robot
        rows = {name: np.zeros((n, row_count(plan), *shape)) for name, shape in row_shapes(plan).items()}
        finals = np.zeros((n, robot.nq)), np.zeros((n, robot.nv))
        stops = np.full(n, RUNNING), np.full(n, -1), np.full(n, -1)
        depths = np.zeros(n), np.zeros((n, 4)), np.zeros((n, 5))
        return cls(rows, *finals, *depths, *stops, np.zeros(n, np.int64), np.zeros(n))


Stop = Callable[[], bool]


class Roller(Protocol):
    """Runs samples in one thread and fills the results. `solved_alone`: steps of lanes whose rows newton itself solved
    (solvers/lane_newton.py). `samples`: the number of samples for which a roller can run again, 0 if it cannot."""

    results: Results
    solved_alone: int
    samples: int

    def begin(self, controls: Controls) -> None:
        """Begin anew, with these inputs for samples without their own."""

    def run(self, variations: Variations, stop: Stop) -> bool:
        """Run the samples of `variations` into the first entries of the results; False if `stop` ended it."""


def make_roller(plan: Plan, controls: Controls, results: Results) -> Roller:
    """Make a roller that runs the samples of `results`, in packs where possible."""
    if not reason_against_packs(plan):
        return PackRoller(plan, controls, results)
    return SingleRoller(plan, controls, results)


def take_roller(plan: Plan, controls: Controls, samples: int) -> Roller | None:
    """A roller with results for `samples` samples that has run before, where `keep_roller` kept any."""
    while plan.spare:
        try:
            roller: Roller = plan.spare.pop()
        except IndexError:  # another thread took it
            break
        if roller.samples == samples:
            roller.begin(controls)
            return roller
    return None


def keep_roller(plan: Plan, roller: Roller) -> None:
    """Keep a roller that has run to its end for further rollouts of this plan. What it has read must be its own by
    then: they write over its results."""
    if roller.samples and len(plan.spare) < _SPARE:
        plan.spare.append(roller)


class SingleRoller:
    """Runs one sample after the other."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.solved_alone = results, 0
        self.samples = len(results.reason)
        self._plan, self._controls = plan, controls
        self._arrays = VariedArrays(plan)

    def begin(self, controls: Controls) -> None:
        """See Roller."""
        self._controls = controls

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
        results.sunk[k], results.held[k] = simulation.sunk, simulation.held
        results.unsolved[k], results.residual[k] = simulation.unsolved_steps, simulation.worst_residual
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
        drives = {name: changed.pop(name) for name in LANE_GAINS if name in changed}
        return replace(plan, robot=plan.robot.with_model(changed), inputs={**plan.inputs, **drives})


class PackRoller:
    """Runs packs of 8 samples, the last one filled up with copies of the last sample.

    Its arrays are those of one plan (pack_arrays.py); `_fill` writes the values that differ between samples into them.
    """

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.solved_alone = results, 0
        self.samples = len(results.reason)
        self._given: Controls | None = None  # inputs for samples without their own, where packs do not have them yet
        self._plan, self._varied = plan, VariedArrays(plan)
        self._needs, self._width = pack_features(plan), pack_width()
        self._kept: dict[str, object] = {}  # objects that kernels call through addresses
        self._calibrated = False
        self._simulation = LaneSimulation(with_own_arrays(plan), one_row(controls))
        self._listed = self._simulation.room  # room for the contacts of all lanes
        self._samples = self._make_block()
        alone = self._simulation.alone()
        self._robot, self._rules = make_robots(plan, alone.state, self._width), make_pack_rules(plan, self._width)
        self._equipment = make_pack_equipment(plan, self._width)
        self._inputs, self._step = make_pack_inputs(plan, self._width), make_pack_step(plan, self._width)
        held = self._controls_of([controls])
        self._lanes = make_lane_bundle(plan, self._needs, alone, held, self._equipment, self._width)
        self._calibrators = self._connect_lanes(controls)
        self._connect_single()
        self._contact: PackContactBundle | None = None
        if plan.touching is not None:
            self._contact = make_contact_bundle(plan, self._needs, self._simulation.room, self._listed, self._width)
            self._connect_detection(self._contact)
        self._connect_solver()
        self._bind()

    def _make_block(self) -> RolloutBlock:
        """The pack's block, with those of the recorded variables that the pack records itself; the single robot records
        the others."""
        config, results = self._plan.config, self.results
        absent = np.zeros((len(results.reason), 0, 0))
        qpos, qvel = (results.rows.get(name, absent) for name in ROLLOUT_RECORDED)
        others = {name: rows for name, rows in results.rows.items() if name not in ROLLOUT_RECORDED}
        block = RolloutBlock(np.zeros(4, np.int64), qpos, qvel, results.final_qpos, results.final_qvel)
        block.plan[STEPS_PER_ROW] = config.every
        if others:
            block.plan[ROWS_OF_SAMPLE] = row_count(self._plan)
            self._simulation.record_into(others, config.every)
        return block

    # -------------------------------------------------------------- entries that kernels call

    def _connect_single(self) -> None:
        """Connect the steps of a single robot, for those that are recorded."""
        self._kept["step"] = self._simulation.point_at(self._lanes.data.single)

    def _connect_lanes(self, controls: Controls) -> list[Callable[[], None]]:
        """Connect the kernels of single robots that find forces of the lanes; the functions that calibrate
        them, none where nothing depends on the masses.
        """
        plan = self._plan
        if not (has_helpers(plan) or is_calibrated(plan)):
            return []
        robots = [self._simulation] * self._width
        if has_helpers(plan):
            robots = [LaneSimulation(with_own_arrays(plan), one_row(controls)) for _ in robots]
        pack = PackArrays(self._robot, self._inputs, self._step, self._equipment, self._lanes)
        seen = [robot.in_lane(pack, lane) for lane, robot in enumerate(robots)]
        self._kept["lanes"] = [each.connect(self._lanes, lane) for lane, each in enumerate(seen)]
        return [each.calibrator() for each in seen] if is_calibrated(plan) else []

    def _connect_solver(self) -> None:
        """Make the rows and connect their solver."""
        self._rows, newton, self._pack = make_rows_and_solver(self._plan, self._listed, self._width)
        if self._needs.rows:
            solved = self._robot, self._rows, self._step
            single = self._simulation.single_solver(lane_order(self._contact))
            self._kept["solver"] = connect_solver(*solved, newton, self._pack, single, self._width)

    def _connect_detection(self, contact: PackContactBundle) -> None:
        """Connect the contact detection, which takes one lane after the other, and the continuous check."""
        assert self._plan.touching is not None
        self._lanes = self._lanes._replace(adhesion=contact.adhesion)
        self._kept["detection"] = connect_detection(self._plan.touching, contact.detected.data)
        self._kept["foresight"] = connect_foresight(self._plan.touching, contact.detected.data)
        if self._needs.swept:
            self._kept["sweep"] = self._simulation.sweep_in(contact.detected.data)

    def _bind(self) -> None:
        """Hand all arrays to the packs' kernel."""
        run: Any = RunBundle(self._inputs, self._step, self._samples, None, self._lanes)
        solver = SolverBundle(pack=self._pack if self._needs.rows else None)
        bundles = self._robot, run, self._rows, self._equipment, self._contact, self._rules, solver
        self._call = bind(entry_of_packs(self._plan), self._width, *bundles)
        if integrator := integrator_of(self._plan):
            without_contact = *bundles[:4], *bundles[5:]
            self._kept["integrator"] = point_at(integrator, self._width, self._step.integrator, *without_contact)

    def _make_room(self) -> None:
        """Enlarge the room for the contacts of all lanes, or of each; the step that found too many is then taken
        again."""
        assert self._contact is not None
        counters, number = self._step.counters, self._contact.data.number
        if number[FOUND_CONTACTS] > number[CONTACTS]:
            self._listed *= 2
        else:
            self._lanes.alone.step.counters[STEP_NUMBER] = counters[STEP_NUMBER]  # reported if no more are allowed
            self._simulation.make_room()
            self._lanes = self._lanes._replace(alone=self._simulation.alone())
            self._connect_single()
            self._listed = max(self._listed, self._simulation.room)
        wider = make_contact_bundle(self._plan, self._needs, self._simulation.room, self._listed, self._width)
        self._contact = with_contacts_of(self._contact, wider)
        self._connect_detection(self._contact)
        self._connect_solver()
        counters[STOP_REASON] = RUNNING
        self._bind()

    # -------------------------------------------------------------- samples

    def begin(self, controls: Controls) -> None:
        """See Roller."""
        self.solved_alone, self._given = 0, controls
        self._lanes.data.by_newton[:] = 0

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        results, data = self.results, self._lanes.data
        if variations.factors:
            self.samples = 0  # their arrays differ from the plan's
        for start in range(0, len(variations), self._width):
            lanes = slice(start, start + self._width)
            part = variations.part(start, start + self._width)
            self._fill(part)
            self._reset(len(part))
            if not self._run_pack(start, stop):
                return False
            results.reason[lanes], results.stopped[lanes] = data.reason, data.stopped
            results.stopped_dof[lanes] = data.stopped_dof
            results.unsolved[lanes], results.residual[lanes] = data.unsolved, data.worst_residual
            if self._contact is not None:
                results.start_depth[lanes] = self._contact.lanes.start_depth
                results.sunk[lanes], results.held[lanes] = self._contact.lanes.sunk, self._contact.lanes.held
        self.solved_alone = int(data.by_newton[0])
        return True

    def _run_pack(self, first: int, stop: Stop) -> bool:
        """Take all steps of a pack; False if `stop` ended it."""
        plan, counters, steps = self._samples.plan, self._step.counters, self._plan.config.steps
        plan[FIRST_SAMPLE] = first
        while (done := int(counters[STEP_NUMBER])) < steps:
            plan[STEPS_TO_TAKE] = min(steps - done, _STEPS_PER_CALL)
            self._call()
            if counters[STOP_REASON] == CROWDED:
                self._make_room()
            if stop():
                return False
        plan[STEPS_TO_TAKE] = 0  # depths of contacts at the final state
        while self._contact is not None:
            self._call()
            if counters[STOP_REASON] != CROWDED:
                break
            self._make_room()
        return True

    def _reset(self, samples: int) -> None:
        """Forget the pack before; `samples`: the number of lanes that are not copies."""
        data, width = self._lanes.data, self._width
        data.input_row[:] = -1
        self._step.counters[:] = 0
        data.alive[:] = np.arange(width) < samples
        data.stopped[:], data.stopped_dof[:], data.reason[:] = -1, -1, RUNNING
        data.unsolved[:], data.worst_residual[:] = 0, 0.0
        state = self._robot.state
        self._spread(self._plan.activation, state.activation)
        zeroed = [state.impulse, state.drive_held, state.load, state.change, state.earlier_change, state.still]
        zeroed += [self._robot.data.stiffening, self._robot.data.slack]
        if self._contact is not None:
            zeroed += [self._contact.lanes.memory, self._contact.lanes.sunk, self._contact.lanes.held]
            zeroed += [self._contact.data.number]
        for values in zeroed:
            values[...] = 0
        if self._plan.delayed is not None:
            self._spread(self._plan.delayed.history, state.history)

    def _spread(self, values: Array, out: Array) -> None:
        """Set all lanes of a vector to these values."""
        out[...] = values[:, None] if self._width > 1 else values

    def _fill(self, part: Variations) -> None:
        """Fill in the values that differ between lanes."""
        own = np.minimum(np.arange(self._width), len(part) - 1)
        state = self._robot.state
        state.qpos[...], state.qvel[...] = as_lanes(part.qpos[own]), as_lanes(part.qvel[own])
        for name, values in self._varied.of(part.factors).items():
            if name in (*LANE_PROPERTIES, *LANE_GAINS):
                record = self._inputs if name in LANE_GAINS else self._robot.model
                getattr(record, name)[...] = as_lanes(values[own])
        if "friction" in part.factors and self._contact is not None:
            self._contact.lanes.factor[...] = as_lanes(part.factors["friction"][own])
        if part.controls:
            self._set_controls([part.controls[k] for k in own])
        elif self._given is not None:
            self._set_controls([self._given])
        self._given = None
        if part.factors or not self._calibrated:
            for calibrate in self._calibrators:
                calibrate()
            self._calibrated = True

    def _set_controls(self, controls: Sequence[Controls]) -> None:
        wanted, held = self._controls_of(controls), self._lanes.controls
        if held.torque.shape == wanted.torque.shape:
            for place, values in zip(held, wanted, strict=True):
                place[...] = values
        else:
            self._lanes = self._lanes._replace(controls=wanted)
            self._bind()

    def _controls_of(self, controls: Sequence[Controls]) -> PackControls:
        """The inputs of all lanes, or of each lane; all begin at the same steps."""
        return PackControls(np.array(controls[0].start_step), **control_tables(self._plan, controls))
