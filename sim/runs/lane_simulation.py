"""Single robots inside a pack: one takes steps that are recorded, and one for each lane finds its forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.contact.continuous import connect_advancement
from artsim.sim.contact.pack_contacts import LaneData, LaneOrder, LaneRows, PackContactBundle, SingleSolver
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import Entry, bind, point_at
from artsim.sim.foundation.records import Array, of_lane
from artsim.sim.geometry.contacts import ContactBundle, ContactWork
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.run_records import CONTACT_TABLE, Block, Inputs, Rows, RunBundle, Step
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import has_equalities, is_laden
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.varied import with_own_contacts
from artsim.sim.stepping.allocation import block_shapes
from artsim.sim.stepping.packs import (
    DELAY_OF_LANE,
    EXERT,
    KEEP_OF_LANE,
    LANE_CONTROLS,
    LANE_PROPERTIES,
    PATHS,
    Alone,
    Helpers,
    LaneBundle,
    LaneEquipmentWork,
    LaneInputs,
    LaneModel,
    LaneState,
    LaneStep,
    LaneWorkspace,
    OwnState,
    RecordedContacts,
    RecordedRows,
    RecordedRules,
    RecordedState,
    RecordedStep,
    RecordedWorkspace,
)

_ALWAYS = 1 << 62  # a step number that is never reached


class LaneSimulation(Simulation):
    """A single robot whose arrays serve the lanes of a pack. It takes no steps."""

    _samples: Mapping[str, Array] = {}  # the rows of all samples, in which it records
    _every = _ALWAYS  # steps between two recorded rows
    _slots = 0  # each with room for as many contacts as a step may have

    def record_into(self, rows: Mapping[str, Array], slots: int = 0) -> None:
        """Record these variables in every step, in arrays (samples, rows, …); where contact_count is one of them, the
        contacts too, in so many slots, each for those of one row."""
        self._samples = {name: values.reshape(-1, *values.shape[2:]) for name, values in rows.items()}
        self._every, self._slots = 1, slots
        self.reblock()

    def contacts_in(self, slots: Array, count: Array) -> dict[str, Array]:
        """Copies of the recorded contacts of some slots, of which each has so many, slot after slot: by field of
        Block."""
        size = count.astype(np.int64)
        before = np.cumsum(size) - size
        place = np.repeat(slots * self._room - before, size) + np.arange(int(size.sum()))
        return {name: getattr(self._block, name)[place] for name in CONTACT_TABLE}

    def _make_block(self) -> Block:
        block = super()._make_block()._replace(**self._samples)
        if self._slots:
            block = self._with_contacts(block)
        block.plan[:] = 1, self._every, 0, 0
        return block

    def _with_contacts(self, block: Block) -> Block:
        """The block with room for contacts, and with those of the block before, which had less."""
        slots, shapes = self._slots, block_shapes(self.plan.robot.model, self.plan.equipped)
        made = {name: np.zeros((slots, self._room, *shapes[name])) for name in CONTACT_TABLE}
        for name, values in made.items():
            if len(before := getattr(self._block, name)):
                known = before.reshape(slots, -1, *shapes[name])
                values[:, : known.shape[1]] = known
        return block._replace(**{name: values.reshape(-1, *shapes[name]) for name, values in made.items()})

    def alone(self) -> Alone:
        """The robot's arrays through which a lane passes."""
        return Alone(OwnState(*self._state), self._step, self._work.stiffening, self._work.slack, self._block.contacts)

    def single_solver(self, order: LaneOrder) -> SingleSolver:
        """The robot's solver with its arrays, for rows that those of packs leave to it."""
        call = self._solver.call
        assert call is not None
        return SingleSolver(call, order, LaneRows(*self._rows), LaneData(*self._work), self._step)

    def _connect(self) -> None:
        self._connect_solver(self._robot, self._run._replace(clock=None), self._rows)

    def make_room(self) -> None:
        """Enlarge the room for contacts. Raises StoppedError at the largest allowed number."""
        self._enlarge()
        if self._failure is not None:
            raise self._failure

    def sweep_in(self, work: ContactWork) -> object:
        """Let kernels that receive `work` run the continuous check over the robot's motion, by connect_advancement."""
        plan = self.plan
        assert plan.touching is not None
        return connect_advancement(plan.touching, plan.equipped, self._robot, self._run, work)

    def in_lane(self, pack: PackArrays, lane: int) -> RobotOfLane:
        """The robot in a lane of a pack, whose arrays it sees in place."""
        step = self._step._replace(counters=pack.lanes.helpers.counters[lane], retries=pack.lanes.helpers.retries[lane])
        equipment = None
        if self._equipment is not None and pack.equipment is not None:
            work = of_lane(LaneEquipmentWork, self._equipment.data, pack.equipment.data, lane)
            equipment = EquipmentBundle(self._equipment.model, work)
        robot = pack.robot
        return RobotOfLane(
            self.plan,
            RobotBundle(
                of_lane(LaneModel, robot.model, robot.model, lane),
                of_lane(LaneState, self._state, robot.state, lane),
                of_lane(LaneWorkspace, self._work, robot.data, lane),
            ),
            RunBundle(of_lane(LaneInputs, pack.inputs, pack.inputs, lane), of_lane(LaneStep, step, pack.step, lane)),
            equipment,
        )

    def recorder_in(self, pack: PackArrays, lane: int) -> RecorderOfLane:
        """Bundles by which the rows of a lane are recorded, in this robot's block."""
        robot, helpers, equipment = pack.robot, pack.lanes.helpers, None
        if pack.equipment is not None and self._equipment is not None:
            own = pack.equipment.data._replace(noise_key=helpers.noise_key[lane], ray_caster=helpers.caster[lane])
            equipment = EquipmentBundle(pack.equipment.model, of_lane(LaneEquipmentWork, own, own, lane))
        state = robot.state._replace(impulse=self._state.impulse)
        work = robot.data._replace(stiffening=self._work.stiffening, slack=self._work.slack)
        step = pack.step._replace(counters=helpers.counters[lane], retries=helpers.retries[lane])
        contact, rules = None, None
        if pack.contact is not None:
            found = pack.contact.data
            contact = ContactBundle(pack.contact.model, of_lane(RecordedContacts, found, found, lane))
        if pack.rules is not None:
            rules = RuleBundle(pack.rules.model, of_lane(RecordedRules, pack.rules.data, pack.rules.data, lane))
        return RecorderOfLane(
            RobotBundle(
                of_lane(LaneModel, robot.model, robot.model, lane),
                of_lane(RecordedState, state, robot.state, lane),
                of_lane(RecordedWorkspace, work, robot.data, lane),
            ),
            RunBundle(
                of_lane(LaneInputs, pack.inputs, pack.inputs, lane),
                of_lane(RecordedStep, step, pack.step, lane),
                self._block,
            ),
            of_lane(RecordedRows, pack.rows, pack.rows, lane),
            equipment,
            contact,
            rules,
        )


class PackArrays(NamedTuple):
    """The arrays of a pack that single robots see."""

    robot: RobotBundle
    inputs: Inputs
    step: Step
    rows: Rows
    equipment: EquipmentBundle | None
    contact: PackContactBundle | None
    rules: RuleBundle | None
    lanes: LaneBundle


class RecorderOfLane(NamedTuple):
    """The arguments of lane_recording.record_lane."""

    robot: RobotBundle
    run: RunBundle
    rows: Rows
    equipment: EquipmentBundle | None
    contact: ContactBundle | None
    rules: RuleBundle | None


class RobotOfLane(NamedTuple):
    """Bundles of a single robot in a lane, by which its entries are connected."""

    plan: Plan
    robot: RobotBundle
    run: RunBundle
    equipment: EquipmentBundle | None

    def connect(self, lanes: LaneBundle, lane: int) -> list[object]:
        """Connect the entries that the pack's kernels call for this lane, while the returned objects are kept."""
        plan, helpers, kept = self.plan, lanes.helpers, list[object]()

        def connect(entry: Entry, table: Array, *bundles: Any) -> None:
            kept.append(point_at(entry, 1, table[lane], *bundles))

        equipment = self.equipment
        if plan.delayed is not None and equipment is not None:
            own = np.zeros(2, np.int64)  # other packs have other samples, in the lanes of the same helper
            equipment = equipment._replace(data=equipment.data._replace(delayer=own))
            kept.append(equipment)
            delays = plan.delayed.arrays._replace(delay=lanes.data.delay[lane])
            delayed = self.robot.state, self.run, equipment, delays
            if len(plan.delayed.arrays.control):
                kept.append(point_at(DELAY_OF_LANE, 1, own, *delayed))
            connect(KEEP_OF_LANE, helpers.keeper, *delayed)
        if is_laden(plan):
            connect(EXERT, helpers.exerter, self.robot, self.run, equipment)
        if has_equalities(plan):
            connect(PATHS, helpers.pather, self.robot, self.run, equipment)
        return kept

    def calibrator(self) -> Callable[[], None]:
        """A function that computes the constants of the equipment that depend on the robot's masses, in the pose of the
        file."""
        call = bind(EXERT, 1, self.robot, self.run, self.equipment)
        assert self.equipment is not None
        calibrated = self.equipment.data.calibrated

        def calibrate() -> None:
            calibrated[0] = 0.0
            call()

        return calibrate


def make_helpers(width: int, step: Step, seed: int) -> Helpers:
    """Allocate the tables of the lanes' entries."""
    sizes = {"counters": len(step.counters), "retries": len(step.retries)}
    made = Helpers(**{name: np.zeros((width, sizes.get(name, 2)), np.int64) for name in Helpers._fields})
    made.noise_key[:, 0] = seed
    return made


def with_own_arrays(plan: Plan) -> Plan:
    """A plan that records nothing, with copies of the arrays that packs write into."""
    model = plan.robot.model
    own = {name: np.array(getattr(model, name)) for name in LANE_PROPERTIES}
    compiled = replace(plan.robot.compiled, model=model._replace(**own))
    inputs = {name: np.array(values) for name, values in plan.inputs.items()}
    config = replace(plan.config, record=(), steps=1, every=1)
    if plan.touching is not None:
        plan = replace(plan, touching=with_own_contacts(plan.touching))
    if plan.delayed is not None:
        arrays = plan.delayed.arrays
        plan = replace(plan, delayed=plan.delayed._replace(arrays=arrays._replace(delay=arrays.delay.copy())))
    return replace(plan, robot=replace(plan.robot, compiled=compiled), inputs=inputs, config=config)


def one_row(controls: Controls) -> Controls:
    """Controls with the first row only, in whose place packs write the others."""
    return Controls(np.zeros(1, np.int64), **{name: getattr(controls, name)[:1] for name in LANE_CONTROLS})
