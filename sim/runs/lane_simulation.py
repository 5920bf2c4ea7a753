"""Single robots inside a pack: one takes steps that are recorded, and one for each lane finds its forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.contact.continuous import connect_advancement
from artsim.sim.contact.pack_contacts import LaneData, LaneOrder, LaneRows, SingleSolver
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import Entry, bind, point_at
from artsim.sim.foundation.records import Array, allocate, of_lane
from artsim.sim.geometry.contacts import ContactWork
from artsim.sim.run_data.run_records import CONTACT_TABLE, Block, Inputs, RunBundle, Step
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
    AloneForces,
    Helpers,
    LaneBundle,
    LaneEquipmentWork,
    LaneInputs,
    LaneModel,
    LaneState,
    LaneStep,
    LaneWorkspace,
    OwnModel,
    OwnState,
)

_ALWAYS = 1 << 62  # a step number that is never reached


class LaneSimulation(Simulation):
    """A single robot whose arrays serve the lanes of a pack."""

    _samples: Mapping[str, Array] = {}  # the rows of all samples, in which it records
    _every = _ALWAYS  # steps between two recorded rows
    _contact_rows = 0  # rows of which the contacts are recorded, each with room for as many as a step may have

    def record_into(self, rows: Mapping[str, Array], contact_rows: int = 0) -> None:
        """Record these variables in every step, in arrays (samples, rows, …), and the contacts of so many rows."""
        self._samples = {name: values.reshape(-1, *values.shape[2:]) for name, values in rows.items()}
        self._every, self._contact_rows = 1, contact_rows
        self.reblock()

    @property
    def contact_count(self) -> Array:
        """The number of recorded contacts (rows,)."""
        return self._block.contact_count

    @property
    def contacts(self) -> dict[str, Array]:
        """The recorded contacts (rows, room, …) by field of Block."""
        found = {name: getattr(self._block, name) for name in CONTACT_TABLE}
        return {name: values.reshape(self._contact_rows, -1, *values.shape[1:]) for name, values in found.items()}

    def _make_block(self) -> Block:
        block = super()._make_block()._replace(**self._samples)
        if self._contact_rows:
            block = self._with_contacts(block)
        block.plan[:] = 1, self._every, 0, 0
        return block

    def _with_contacts(self, block: Block) -> Block:
        """The block with room for contacts, and with those of the block before, which had less."""
        rows, shapes = self._contact_rows, block_shapes(self.plan.robot.model, self.plan.equipped)
        made = {name: np.zeros((rows, self._room, *shapes[name])) for name in CONTACT_TABLE}
        count = np.zeros(rows)
        if len(self.contact_count) == rows:
            before, count = self.contacts, self.contact_count
            for name, values in made.items():
                values[:, : before[name].shape[1]] = before[name]
        return block._replace(
            contact_count=count, **{name: values.reshape(-1, *shapes[name]) for name, values in made.items()}
        )

    def alone(self) -> Alone:
        """The robot's arrays, through which a lane passes whose step is recorded."""
        touching = self.plan.touching
        shapes: dict[str, tuple[int, ...]] = {**dict.fromkeys(AloneForces._fields, (0,)), "loop_mobility": (0, 2)}
        forces: AloneForces = allocate(AloneForces, shapes)
        key = np.zeros(2, np.int64)
        if self._equipment is not None:
            key = self._equipment.data.noise_key
            forces = AloneForces(*(getattr(self._equipment.data, name) for name in AloneForces._fields))
        friction, pair_friction, place = np.zeros((0, 5)), np.zeros((0, 5)), np.zeros((0, 3))
        if touching is not None:
            contacts = touching.contacts
            friction, pair_friction, place = contacts.friction, contacts.pair_friction, contacts.place
        delay = np.zeros(0) if self.plan.delayed is None else self.plan.delayed.arrays.delay
        return Alone(
            OwnModel(*self.plan.robot.model),
            OwnState(*self._state),
            self._inputs,
            self._step,
            self._block.plan,
            forces,
            friction,
            pair_friction,
            place,
            delay,
            key,
        )

    def single_solver(self, order: LaneOrder) -> SingleSolver:
        """The robot's solver with its arrays, for rows that those of packs leave to it."""
        call = self._solver.call
        assert call is not None
        return SingleSolver(call, order, LaneRows(*self._rows), LaneData(*self._work), self._step)

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

    def point_at(self, pointers: Array) -> object:
        """Let kernels that receive `pointers` take its steps, for as long as the returned object is kept."""
        return point_at(self.plan.entry, 1, pointers, *self._bundles())

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


class PackArrays(NamedTuple):
    """The arrays of a pack that single robots see."""

    robot: RobotBundle
    inputs: Inputs
    step: Step
    equipment: EquipmentBundle | None
    lanes: LaneBundle


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


def make_helpers(width: int, step: Step) -> Helpers:
    """Allocate the tables of the lanes' entries."""
    entries = [np.zeros((width, 2), np.int64) for _ in range(3)]
    counters = (np.zeros((width, len(values)), np.int64) for values in (step.counters, step.retries))
    return Helpers(*entries, *counters)


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
