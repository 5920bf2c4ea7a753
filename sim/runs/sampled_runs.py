"""Many runs of one robot that differ in initial state, inputs or factors of properties: in packs of 8 where possible.

A pack takes a step in all lanes at once. A robot with features that packs lack
(`reason_against_packs`) runs sample after sample through Simulation. Samples do not depend on each other: their bytes
depend neither on the number of samples nor on that of threads.

No numba here: a process with warm kernels imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol

import numpy as np

from artsim.sim.equipment.delays import in_steps
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.geometry.contacts import first_room
from artsim.sim.run_data.run_records import (
    CROWDED,
    RECORDED,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    TABLES_OF,
)
from artsim.sim.runs.control_tables import pack_controls
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.pack import PackScratch, PacksInTurn, make_tallies
from artsim.sim.runs.packable import (
    pack_width,
    reason_against_packs,
)
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.rated import Rater
from artsim.sim.runs.sample_contacts import SampleContacts
from artsim.sim.runs.varied import PUSHES, Variations, VariedArrays, own_pushes, with_own_contacts
from artsim.sim.runs.wrench_inputs import with_own_pushes
from artsim.sim.stepping.allocation import block_shapes
from artsim.sim.stepping.packs import (
    FIRST_SAMPLE,
    LANE_GAINS,
    PLAN_ENTRIES,
    ROWS_OF_SAMPLE,
    SLOTS_OF_LANE,
    RolloutBlock,
)

_SPARE = 64  # rollers that are kept for further rollouts
_STEPS_PER_CALL = 2048  # signals are polled between calls only
_SLOT_BYTES = 4 << 20  # of the contacts of a pack that wait to be taken between two calls
_CONTACT_BYTES = 160

ROLLOUT_RECORDED = ("qpos", "qvel")
"""The variables that a rollout records by default: those that packs record themselves."""

_CONTACTS = "contacts"
_COUNT = "contact_count"
ROLLOUT_RECORDABLE = tuple(name for name in RECORDED if name not in TABLES_OF or name == _CONTACTS)
"""The variables that a rollout can record: contacts, and all whose rows have a fixed size."""


def row_count(plan: Plan) -> int:
    """The number of recorded rows of a sample that does not stop early."""
    return -(-plan.config.steps // plan.config.every)


def records_contacts(plan: Plan) -> bool:
    """True if contacts are recorded."""
    return _CONTACTS in plan.config.record


@dataclass
class Results:
    """Arrays for n samples: recorded rows, final states, and reasons of early stops.

    `unsolved` (n,): steps in which the solver left a residual, `residual` (n,) the largest [rad/s or m/s].
    `start_depth` (n,): depth of the deepest contact at the start [m], 0 without penetrations. `sunk` (n, 4): the hard
    contact that got deepest since the start, as in Account.sunk. `held` (n, 5): the contacts that hard loops hold
    inside, as in Account.held. `reason` (n,): the reason of an early stop, else RUNNING; `stopped` (n,): the step of
    the stop, else -1; `stopped_dof` (n,): the dof that caused it. `ended` (n,): the step before which a sample ended
    since it was to, else -1; `cost` (n,): the sum of its costs.
    """

    rows: dict[str, Array]  # (n, rows, …) by variable, and where contacts are recorded contact_count (n, rows)
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
    ended: Array
    cost: Array
    contacts: SampleContacts

    @classmethod
    def of(cls, plan: Plan, samples: int) -> Results:
        """Allocate zeroed results for `samples` samples, rounded up to whole packs."""
        n, robot = -(-samples // WIDTH) * WIDTH, plan.robot
        shapes = {**plan.row_shapes, **({_COUNT: ()} if records_contacts(plan) else {})}
        rows = {name: np.zeros((n, row_count(plan), *shape)) for name, shape in shapes.items()}
        finals = np.zeros((n, robot.nq)), np.zeros((n, robot.nv))
        stops = np.full(n, RUNNING), np.full(n, -1), np.full(n, -1)
        depths = np.zeros(n), np.zeros((n, 4)), np.zeros((n, 5))
        rated = np.zeros(n, np.int64), np.zeros(n), np.full(n, -1), np.zeros(n)
        contacts = SampleContacts(block_shapes(robot.model, plan.equipped))
        return cls(rows, *finals, *depths, *stops, *rated, contacts)

    def of_samples(self, count: int) -> dict[str, Array]:
        """What tells of the first samples beside their rows and states, by name."""
        names = ("start_depth", "sunk", "held", "stopped", "unsolved", "residual", "ended")
        return {name: getattr(self, name)[:count] for name in names}


Stop = Callable[[], bool]


class Roller(Protocol):
    """Runs samples in one thread and fills the results. `solved_alone`: steps of lanes whose rows newton itself solved
    (solvers/lane_newton.py). `samples`: the number of samples for which a roller can run again, 0 if it cannot."""

    results: Results
    solved_alone: int
    samples: int

    @property
    def task(self) -> object:
        """What it does beside steps; a roller runs again for an equal task."""

    def begin(self, controls: Controls) -> None:
        """Begin anew, with these inputs for samples without their own."""

    def run(self, variations: Variations, stop: Stop) -> bool:
        """Run the samples of `variations` into the first entries of the results; False if `stop` ended it."""


def make_roller(plan: Plan, controls: Controls, results: Results) -> Roller:
    """Make a roller that runs the samples of `results`, in packs where possible."""
    if not reason_against_packs(plan):
        return PackRoller(plan, controls, results)
    return SingleRoller(plan, controls, results)


def take_roller(plan: Plan, controls: Controls, samples: int, task: object = None) -> Roller | None:
    """A roller of this task with results for `samples` samples that has run before, where `keep_roller` kept any."""
    while plan.spare:
        try:
            roller: Roller = plan.spare.pop()
        except IndexError:  # another thread took it
            break
        if roller.samples == samples and roller.task == task:
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

    task = None

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
        self.results.contacts.clear()
        return all(self._run_one(k, variations.part(k, k + 1), stop) for k in range(len(variations)))

    def _run_one(self, k: int, own: Variations, stop: Stop) -> bool:
        results, count = self.results, 0
        controls = own.controls[0] if own.controls else self._controls
        if (pushes := own_pushes(self._plan, own.factors, 1)) is not None:
            (controls,) = with_own_pushes([controls], self._plan.pushed, *pushes, self._plan.dt)
        simulation = simulation_of(self._plan_of(own), controls)
        try:
            for block in chain(simulation.blocks(1), simulation.blocks()):
                if count == 0:
                    results.start_depth[k] = simulation.deepest
                rows = len(next(iter(block.rows.values()), ()))
                for name, values in block.rows.items():
                    results.rows[name][k, count : count + rows] = values
                if _COUNT in results.rows and _COUNT in block.tables:
                    table = block.copied().tables
                    rows = len(table[_COUNT])
                    results.rows[_COUNT][k, count : count + rows] = table[_COUNT]
                    results.contacts.add(np.full(len(table["contact_step"]), k), table)
                count += rows
                if stop():
                    return False
        except StoppedError:
            if simulation.stop_reason != CROWDED:
                raise
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
        plan = replace(self._plan, qpos=own.qpos[0], qvel=own.qvel[0], sample=own.first)
        of_contacts = {
            argument: float(own.factors[name][0, 0])
            for name, argument in (("friction", "friction"), ("ground_height", "raised"))
            if name in own.factors
        }
        if of_contacts and plan.touching is not None:
            plan = replace(plan, touching=with_own_contacts(plan.touching, **of_contacts))
        if plan.delayed is not None and "delay" in own.factors:
            delays, varied = np.array(plan.delayed.arrays.delay), own.factors["delay"][0]
            delays[: len(varied)] = in_steps(varied, plan.dt)  # those of sensors stay
            plan = replace(plan, delayed=plan.delayed._replace(arrays=plan.delayed.arrays._replace(delay=delays)))
        changed = {name: values[0] for name, values in self._arrays.of(own.factors).items()}
        if not changed:
            return plan
        drives = {name: changed.pop(name) for name in LANE_GAINS if name in changed}
        return replace(plan, robot=plan.robot.with_model(changed), inputs={**plan.inputs, **drives})


class PackRoller:
    """Runs packs of 8 samples, the last one filled up with copies of the last sample.

    Its arrays are those of one pack (pack.py), in which one pack after the other begins anew.
    """

    def __init__(
        self, plan: Plan, controls: Controls, results: Results, task: object = None, rater: Rater | None = None
    ) -> None:
        """`rater`: of the task; None: samples are not rated."""
        self.results, self.solved_alone, self.task = results, 0, task
        self.samples = len(results.reason)
        self._rater = rater
        self._shared: Controls | None = controls  # the inputs of all lanes that the pack has; None: it has others
        self._given: Controls | None = None  # inputs for samples without their own, where the pack has others
        self._common = controls  # inputs for samples without their own
        self._plan, self._width = plan, pack_width()
        others = {name: rows for name, rows in results.rows.items() if name not in ROLLOUT_RECORDED}
        self._slots = _slots_of_lane(plan, self._width) if _COUNT in others else 0
        scratch = PackScratch(plan, controls, others, _make_block(results), self._width * self._slots, rater)
        tallies = make_tallies(scratch, 1)
        tallies.plan[0, STEPS_PER_ROW] = plan.config.every
        tallies.plan[0, SLOTS_OF_LANE] = max(1, self._slots)
        tallies.plan[0, ROWS_OF_SAMPLE] = row_count(plan) if others else 0
        self._turns = PacksInTurn(scratch, tallies)
        self.pack, self._all = self._turns.packs[0], np.arange(self._width)
        self._activation = np.tile(plan.activation, (self._width, 1))

    def begin(self, controls: Controls) -> None:
        """See Roller."""
        self.solved_alone, self._common = 0, controls
        self._given = None if self._shared is not None and _alike(self._shared, controls) else controls
        self.pack.lanes.data.by_newton[:] = 0

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        results, data = self.results, self.pack.lanes.data
        results.contacts.clear()
        if {*variations.factors} - {*PUSHES}:
            self.samples = 0  # their arrays differ from the plan's
        if self._rater is not None:
            self._rater.begin()
        for start in range(0, len(variations), self._width):
            lanes = slice(start, start + self._width)
            self._begin(variations, start)
            if not self._run_pack(start, stop):
                return False
            if self._rater is not None:
                self._rater.check(variations.first)
            results.reason[lanes], results.stopped[lanes] = data.reason, data.stopped
            results.stopped_dof[lanes] = data.stopped_dof
            results.unsolved[lanes], results.residual[lanes] = data.unsolved, data.worst_residual
            if (contact := self.pack.contact) is not None:
                results.start_depth[lanes] = contact.lanes.start_depth
                results.sunk[lanes], results.held[lanes] = contact.lanes.sunk, contact.lanes.held
        self.solved_alone = int(data.by_newton[0])
        return True

    def _begin(self, variations: Variations, start: int) -> None:
        """Begin anew with the samples of a pack, from number `start` on."""
        pack, own = self.pack, np.minimum(start + self._all, len(variations) - 1)
        pack.step.counters[:] = 0
        pack.reset(self._all, variations.qpos[own], variations.qvel[own], self._activation)
        pack.lanes.data.alive[len(variations) - start :] = 0
        pack.lanes.data.number[:] = variations.first + start + self._all
        if variations.factors:
            pack.vary(self._all, {name: values[own] for name, values in variations.factors.items()})
        given = [variations.controls[k] for k in own] if variations.controls else [self._given] if self._given else []
        pushes = own_pushes(self._plan, variations.factors, len(variations))
        if pushes is not None:
            given = self._pushed(given or [self._common], *(values[own] for values in pushes))
        if given and pack.set_controls(pack_controls(self._plan, given)):
            self._turns.connect()
        self._shared = None if variations.controls or pushes is not None else self._given or self._shared
        self._given = None

    def _pushed(self, given: Sequence[Controls], impulses: Array, times: Array) -> list[Controls]:
        """The inputs of each lane with its pushes, with as many rows in all packs, so that the arrays stay."""
        rows = given[0].rows + 2 * times.size
        each = given if len(given) == self._width else [given[0]] * self._width
        return with_own_pushes(each, self._plan.pushed, impulses, times, self._plan.dt, rows)

    def _run_pack(self, first: int, stop: Stop) -> bool:
        """Take all steps of a pack; False if `stop` ended it."""
        counters, steps, every = self.pack.step.counters, self._plan.config.steps, self._plan.config.every
        self.pack.block.plan[FIRST_SAMPLE] = first
        if self._slots:
            self.results.rows[_COUNT][first : first + self._width] = 0.0
        while (done := int(counters[STEP_NUMBER])) < steps:
            row = -(-done // every)  # the next one that is recorded
            most = (row + self._slots) * every if self._slots else steps
            self._turns.step_to(min(done + _STEPS_PER_CALL, most, steps))
            if self._slots:
                self._take_contacts(first, row, -(-int(counters[STEP_NUMBER]) // every))
            if stop():
                return False
        if self.pack.contact is not None:
            self._turns.step_to(steps)  # depths of contacts at the final state
        return True

    def _take_contacts(self, first: int, start: int, stop: int) -> None:
        """Take the contacts of the recorded rows start … stop of the pack of samples from `first` on."""
        lanes, rows = self._all[:, None], np.arange(start, stop)
        count = self.results.rows[_COUNT][first : first + self._width, start:stop].ravel()
        slots = (lanes * self._slots + rows % self._slots).ravel()
        found = self._turns.scratch.simulation.contacts_in(slots, count)
        of_row = np.repeat(first + self._all, len(rows))
        self.results.contacts.add(np.repeat(of_row, count.astype(np.int64)), found)


def _slots_of_lane(plan: Plan, width: int) -> int:
    """The number of recorded rows of a lane whose contacts wait to be taken: as many as fit into _SLOT_BYTES."""
    assert plan.touching is not None
    room = min(first_room(plan.touching), plan.config.max_contacts)
    return max(1, min(row_count(plan), _SLOT_BYTES // (_CONTACT_BYTES * room * width)))


def _alike(one: Controls, other: Controls) -> bool:
    """True for inputs that are equal to the bit."""
    if one is other:
        return True
    if one.rows != other.rows:
        return False
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ("start_step", *VALUES))


def _make_block(results: Results) -> RolloutBlock:
    """The block of packs, with those of the recorded variables that packs record themselves; the single robot records
    the others."""
    absent = np.zeros((len(results.reason), 0, 0))
    qpos, qvel = (results.rows.get(name, absent) for name in ROLLOUT_RECORDED)
    return RolloutBlock(np.zeros(PLAN_ENTRIES, np.int64), qpos, qvel, results.final_qpos, results.final_qvel)
