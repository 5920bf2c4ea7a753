"""Packs of one plan: their arrays, and the lanes that begin anew, are varied and are driven one by one.

A PackScratch holds the arrays that packs of a thread share, since nothing in them outlasts a step; a Pack has those of
its 8 robots. Packs that share a scratch take their steps in turn. No numba here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.contact.continuous import connect_foresight
from artsim.sim.contact.pack_contacts import PackContactBundle, lane_order
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.delays import in_steps
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.jit import bind, point_at, point_at_lanes
from artsim.sim.foundation.records import Array, aligned_zeros, kinds
from artsim.sim.geometry.contacts import CONTACTS, FOUND_CONTACTS, connect_detection
from artsim.sim.run_data.run_records import (
    CROWDED,
    RUNNING,
    STEP_NUMBER,
    STEPS_TO_TAKE,
    STOP_REASON,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.control_tables import pack_controls
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.lane_simulation import LaneSimulation, PackArrays, one_row, with_own_arrays
from artsim.sim.runs.pack_arrays import (
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
)
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.rated import Rater
from artsim.sim.runs.sights import connect_rays_of_lanes
from artsim.sim.runs.varied import VariedArrays
from artsim.sim.stepping.packs import (
    CALIBRATED,
    FIRST_SAMPLE,
    LANE_GAINS,
    LANE_PROPERTIES,
    MOVED,
    PLAN_ENTRIES,
    SLOTS_OF_LANE,
    TAKE_TURNS,
    PackControls,
    RolloutBlock,
    Turns,
    recorder_of_lanes,
)

# arrays that a pack has for itself, by record; the others are scratch
_OF_DATA = ("stiffening", "slack")
_OF_STEP = ("integrator", "effective_coupling")
_OF_EQUIPMENT = (*CALIBRATED, "tendon_length0", "spring_length")
_OF_HELPERS = ("exerter", "pather", "keeper", "recorder", "caster", "noise_key")
_ZERO = np.zeros(())
# of Pack.lasting: arrays of which the lanes are the first axis, not the last
_BY_LANE = {"PackWork.delay", "PackWork.number", "contact.start_depth", "contact.sunk", "contact.held"}
_OF_CONTACTS = ("half", "memory", "start_depth", "sunk", "held", "touching", "factor", "raised")


class Tallies(NamedTuple):
    """Numbers of packs, side by side: the steps that they are to take and have taken, and the state of their lanes."""

    plan: Array  # (packs, 6) RolloutBlock.plan
    counters: Array  # (packs, 9) Step.counters
    input_row: Array  # (packs, 1), with the fields below as in PackWork
    alive: Array  # (packs, lanes), as those below
    began: Array
    stopped: Array
    stopped_dof: Array
    reason: Array
    unsolved: Array
    worst_residual: Array
    activation: Array  # (packs, nact[, lanes]) State.activation

    def part(self, packs: slice | int) -> Tallies:
        """Views of the numbers of some packs, or of one."""
        return Tallies(*(values[packs] for values in self))


class PackScratch:
    """The arrays that packs of a plan share: those of the robot that takes steps for lanes, too, which records `rows`,
    arrays (samples, rows, …) by variable, and contacts in `slots`; see LaneSimulation.record_into."""

    def __init__(
        self,
        plan: Plan,
        controls: Controls,
        rows: Mapping[str, Array],
        block: RolloutBlock,
        slots: int = 0,
        rater: Rater | None = None,
    ) -> None:
        self.plan, self.varied, self.rater = plan, VariedArrays(plan), rater
        self.needs, self.width = pack_features(plan), pack_width()
        self.simulation = LaneSimulation(with_own_arrays(plan), one_row(controls))
        self.block = block
        if rows:
            self.simulation.record_into(rows, slots)
        self.listed = self.simulation.room  # room for the contacts of all lanes
        alone = self.simulation.alone()
        self.robot, self.rules = make_robots(plan, alone.state, self.width), make_pack_rules(plan, self.width)
        self.equipment = make_pack_equipment(plan, self.width)
        self.inputs, self.step = make_pack_inputs(plan, self.width), make_pack_step(plan, self.width)
        self.lanes = make_lane_bundle(plan, alone, pack_controls(plan, [controls]), self.width)
        self.robots = [self.simulation] * self.width  # that find forces of the lanes
        if has_helpers(plan):
            self.robots = [LaneSimulation(with_own_arrays(plan), one_row(controls)) for _ in self.robots]
        self.contact: PackContactBundle | None = None
        self._kept: dict[str, object] = {}  # objects that kernels call through addresses
        self.records = bool(rows)  # more than packs themselves do
        self._make_room()

    def _make_room(self) -> None:
        """Make the arrays of contacts and rows, and connect the contact detection, which takes one lane after the
        other, and the continuous check."""
        plan = self.plan
        if plan.touching is not None:
            self.contact = make_contact_bundle(plan, self.needs, self.simulation.room, self.listed, self.width)
            found = self.contact.detected.data
            self._kept["detection"] = connect_detection(plan.touching, found)
            self._kept["foresight"] = connect_foresight(plan.touching, found)
            if self.needs.swept:
                self._kept["sweep"] = self.simulation.sweep_in(found)
            self.lanes = self.lanes._replace(adhesion=self.contact.adhesion)
        self.rows, self.newton, self.solver = make_rows_and_solver(plan, self.listed, self.width)

    def lists_more(self) -> bool:
        """True if the contacts of all lanes exceeded the room for them, rather than those of one."""
        assert self.contact is not None
        number = self.contact.data.number
        return bool(number[FOUND_CONTACTS] > number[CONTACTS])

    def enlarge(self, listed: bool) -> None:
        """Enlarge the room for the contacts of all lanes if these are `listed`, or of each. Raises StoppedError where
        no more are allowed."""
        if listed:
            self.listed *= 2
        else:
            self.simulation.make_room()
            self.lanes = self.lanes._replace(alone=self.simulation.alone())
            self.listed = max(self.listed, self.simulation.room)
        self._make_room()


def make_tallies(scratch: PackScratch, packs: int) -> Tallies:
    """Allocate the numbers of packs."""
    width, activations = scratch.width, len(scratch.plan.activation)
    whole = [np.zeros((packs, size), np.int64) for size in (PLAN_ENTRIES, len(scratch.step.counters), 1)]
    whole[0][:, SLOTS_OF_LANE] = 1
    of_lanes = [np.zeros((packs, width), np.int64) for _ in Tallies._fields[3:-2]]
    shape = (packs, activations, width) if width > 1 else (packs, activations)
    return Tallies._make([*whole, *of_lanes, np.zeros((packs, width)), aligned_zeros(shape)])


class Pack:
    """The robots of one pack."""

    def __init__(self, scratch: PackScratch, tally: Tallies, controls: PackControls | None = None) -> None:
        """`tally`: of this pack. `controls`: over time; by default those of the scratch."""
        self._scratch, self.width = scratch, scratch.width
        self._kept: dict[str, object] = {}
        self._calibrated = False
        self.block = scratch.block._replace(plan=tally.plan)
        model, state, data = scratch.robot
        moved = _own(state, MOVED)._replace(activation=tally.activation)
        self.robot = RobotBundle(_own(model, LANE_PROPERTIES), moved, _own(data, _OF_DATA))
        self.inputs = _own(scratch.inputs, LANE_GAINS)
        self.step = _own(scratch.step, _OF_STEP)._replace(counters=tally.counters)
        self.equipment: EquipmentBundle | None = None
        if scratch.equipment is not None:
            self.equipment = scratch.equipment._replace(data=_own(scratch.equipment.data, _OF_EQUIPMENT))
        lanes = scratch.lanes
        self.lanes = lanes._replace(
            data=lanes.data._replace(
                delay=lanes.data.delay.copy(),
                number=lanes.data.number.copy(),
                rater=lanes.data.rater.copy(),
                **{name: getattr(tally, name) for name in Tallies._fields[2:-1]},
            ),
            controls=controls or lanes.controls,
            helpers=_own(lanes.helpers, _OF_HELPERS),
        )
        self.contact: PackContactBundle | None = None
        if scratch.contact is not None:
            self.contact = scratch.contact._replace(lanes=_own(scratch.contact.lanes, _OF_CONTACTS))
        self._calibrators = self._connect_lanes()
        self._connect()

    def _connect_lanes(self) -> list[Callable[[], None]]:
        """Connect the kernels of single robots that find forces of the lanes; the functions that calibrate
        them, none where nothing depends on the masses.
        """
        plan = self._scratch.plan
        if not (has_helpers(plan) or is_calibrated(plan)):
            return []
        pack = self._arrays
        seen = [robot.in_lane(pack, lane) for lane, robot in enumerate(self._scratch.robots)]
        self._kept["lanes"] = [each.connect(self.lanes, lane) for lane, each in enumerate(seen)]
        return [each.calibrator() for each in seen] if is_calibrated(plan) else []

    @property
    def _arrays(self) -> PackArrays:
        """The arrays that single robots see."""
        scratch = self._scratch
        of_robot = self.robot, self.inputs, self.step, scratch.rows, self.equipment
        return PackArrays(*of_robot, self.contact, scratch.rules, self.lanes)

    def adopt(self) -> None:
        """Take over the arrays of the scratch, whose room for contacts has grown."""
        scratch = self._scratch
        assert self.contact is not None and scratch.contact is not None
        wider = scratch.contact._replace(lanes=_own(scratch.contact.lanes, _OF_CONTACTS))
        self.contact = with_contacts_of(self.contact, wider)
        self.lanes = self.lanes._replace(alone=scratch.lanes.alone, adhesion=scratch.lanes.adhesion)
        self._connect()

    def _connect(self) -> None:
        """Hand the arrays to the packs' kernel and to those that it calls."""
        scratch, plan = self._scratch, self._scratch.plan
        rows, solver = scratch.rows, scratch.solver
        if scratch.needs.rows:
            solver = solver._replace(entry=np.zeros(2, np.int64))
            single = scratch.simulation.single_solver(lane_order(self.contact))
            solved = self.robot, rows, self.step
            self._kept["solver"] = connect_solver(*solved, scratch.newton, solver, single, self.width)
        run: Any = RunBundle(self.inputs, self.step, self.block, None, self.lanes)
        of_solver = SolverBundle(pack=solver if scratch.needs.rows else None)
        if scratch.rater is not None:
            self._kept["rater"] = scratch.rater.connect(self.lanes.data.rater, self.robot.state, run)
        self._bundles = self.robot, run, rows, self.equipment, self.contact, scratch.rules, of_solver
        if scratch.records:
            pack, helpers = self._arrays, self.lanes.helpers
            lanes = [scratch.simulation.recorder_in(pack, lane) for lane in range(min(2, self.width))]
            entry = recorder_of_lanes(scratch.needs)
            self._kept["recorder"] = point_at_lanes(entry, helpers.recorder, lanes[0], lanes[-1])
            if plan.seen is not None:
                self._kept["rays"] = connect_rays_of_lanes(
                    plan.seen, helpers.caster, *((each.robot, each.equipment) for each in (lanes[0], lanes[-1]))
                )
        if integrator := integrator_of(plan):
            without_contact = *self._bundles[:4], *self._bundles[5:]
            self._kept["integrator"] = point_at(integrator, self.width, self.step.integrator, *without_contact)

    def point_at(self, entry: Array) -> None:
        """Set `entry` (2,) to the kernel that takes the pack's steps."""
        self._kept["steps"] = point_at(entry_of_packs(self._scratch.plan), self.width, entry, *self._bundles)

    def lasting(self) -> dict[str, Array]:
        """The arrays by name, beside those of the tally, on which later steps depend or which tell of earlier ones."""
        records = (self.robot.model, LANE_PROPERTIES), (self.robot.state, MOVED), (self.robot.data, _OF_DATA)
        named = [*records, (self.inputs, LANE_GAINS), (self.step, _OF_STEP[1:]), (self.lanes.data, ("delay", "number"))]
        if self.equipment is not None:
            named.append((self.equipment.data, _OF_EQUIPMENT))
        found = {f"{type(record).__name__}.{name}": getattr(record, name) for record, names in named for name in names}
        if self.contact is not None:
            found |= {f"contact.{name}": getattr(self.contact.lanes, name) for name in _OF_CONTACTS}
        return found

    def become(self, found: Mapping[str, Array], lane: int) -> None:
        """Have all lanes continue as one of another pack of the plan, which has no more room for contacts, from its
        arrays (`lasting`)."""
        for name, place in self.lasting().items():
            values = found[name]
            if name in _BY_LANE:
                place[...] = values[lane]
            elif name == "contact.memory":
                place[...] = 0.0
                place[:, :, : values.shape[2]] = values[:, lane : lane + 1]
            elif name == "contact.half" or self.width == 1:
                place[...] = values
            else:
                place[...] = values[..., lane : lane + 1]

    def go_on_from(self, snapshot: Mapping[str, Array]) -> None:
        """Have all lanes continue as a run of the plan of which this is a snapshot. Impulses of its last step, which
        are the solver's first guess, are left behind where rows have other places in packs."""
        state, data = self.robot.state, self.robot.data
        for name in MOVED:
            self._put(getattr(state, name), slice(None), snapshot[name] if self._has_place(name) else _ZERO)
        for place in (data.stiffening, data.slack):
            self._put(place, slice(None), _ZERO)
        if self.contact is not None:
            own, known = self.contact.lanes, snapshot["contact"]
            own.memory[:] = 0.0
            own.memory[own.half[0], :, : len(known)] = known

    def _has_place(self, name: str) -> bool:
        """True if a field of State has the same entries in packs as of a single robot: unbounded drives have rows
        there only."""
        inputs = self._scratch.plan.inputs
        driven = inputs["drive_stiffness"] + inputs["drive_damping"] > 0
        return name != "impulse" or bool(np.isfinite(inputs["drive_limit"][driven]).all())

    # -------------------------------------------------------------- lanes

    def end_crowded(self) -> bool:
        """End the lane in which contacts were found last, which lacks room for them, at the state before the step;
        False if there is none."""
        data, counters = self.lanes.data, self.step.counters
        lane = self._seen_last()
        if lane < 0 or not data.alive[lane]:
            return False
        data.alive[lane], data.stopped[lane] = 0, counters[STEP_NUMBER] - data.began[lane]
        data.reason[lane], data.stopped_dof[lane] = CROWDED, -1
        sample, state = self.block.plan[FIRST_SAMPLE] + lane, self.robot.state
        self.block.final_qpos[sample], self.block.final_qvel[sample] = (
            values[..., lane] if self.width > 1 else values for values in (state.qpos, state.qvel)
        )
        return True

    def _seen_last(self) -> int:
        """The first lane whose shapes are where contacts were looked for last; -1: none."""
        assert self.contact is not None
        moving = self.contact.model.body > 0
        looked = self.contact.detected.data.position[moving]
        places = self.contact.data.position[moving]
        for lane in np.flatnonzero(self.lanes.data.alive):
            if np.array_equal(places[..., lane] if self.width > 1 else places, looked):
                return int(lane)
        return -1

    def reset(self, lanes: Array, qpos: Array, qvel: Array, activation: Array) -> None:
        """Begin anew in some lanes, in increasing order, at these states (lanes, …)."""
        plan, state, data = self._scratch.plan, self.robot.state, self.lanes.data
        chosen = lanes if len(lanes) < self.width else slice(None)  # all, at a third of the cost
        data.input_row[:] = -1
        data.alive[chosen], data.stopped[chosen], data.stopped_dof[chosen] = 1, -1, -1
        data.reason[chosen], data.unsolved[chosen], data.worst_residual[chosen] = RUNNING, 0, 0.0
        for place, values in ((state.qpos, qpos), (state.qvel, qvel), (state.activation, activation)):
            self._put(place, chosen, values)
        zeroed = [state.impulse, state.drive_held, state.load, state.change, state.earlier_change, state.still]
        for place in (*zeroed, self.robot.data.stiffening, self.robot.data.slack):
            self._put(place, chosen, _ZERO)
        if plan.delayed is not None:
            self._put(state.history, chosen, plan.delayed.history)
        if self.contact is not None:
            own = self.contact.lanes
            own.memory[:, chosen], own.sunk[chosen], own.held[chosen] = 0.0, 0.0, 0.0
        if not self._calibrated:
            self.calibrate(np.arange(self.width))
            self._calibrated = True

    def place(self, lanes: Array, qpos: Array, qvel: Array, activation: Array) -> None:
        """Set the states (lanes, …) of some lanes and nothing else."""
        state = self.robot.state
        for place, values in ((state.qpos, qpos), (state.qvel, qvel), (state.activation, activation)):
            self._put(place, lanes, values)

    def _put(self, place: Array, lanes: Array | slice, values: Array) -> None:
        """Set some lanes of an array to values (lanes, …), or all of these to those of one robot."""
        if self.width == 1:
            place[...] = values[0] if values.ndim > place.ndim else values
        elif values.ndim == place.ndim:
            place[..., lanes] = values.T if values.ndim == 2 else np.moveaxis(values, 0, -1)
        else:
            place[..., lanes] = values[..., None] if values.ndim else values

    def vary(self, lanes: Array, factors: Mapping[str, Array]) -> None:
        """Vary the properties of the robots in some lanes by factors (lanes, …) of those of the plan."""
        for name, values in self._scratch.varied.of(factors).items():
            if name in (*LANE_PROPERTIES, *LANE_GAINS):
                record = self.inputs if name in LANE_GAINS else self.robot.model
                self._put(getattr(record, name), lanes, values)
        if "friction" in factors and self.contact is not None:
            self._put(self.contact.lanes.factor, lanes, factors["friction"])
        if "ground_height" in factors and self.contact is not None:
            self._put(self.contact.lanes.raised, lanes, factors["ground_height"])
        if "delay" in factors:
            self.lanes.data.delay[lanes] = in_steps(factors["delay"], self._scratch.plan.dt)
        self.calibrate(lanes)

    def calibrate(self, lanes: Array) -> None:
        """Compute the constants of the equipment that depend on masses, in some lanes, and nothing else: what else the
        kernel finds is of a pose that it was not given."""
        if not self._calibrators or self.equipment is None:
            return
        data = self.equipment.data
        others = [name for name, kind in kinds(type(data)).items() if kind.lanes and name not in _OF_EQUIPMENT]
        before = [getattr(data, name).copy() for name in others]
        for lane in lanes:
            self._calibrators[lane]()
        for name, values in zip(others, before, strict=True):
            getattr(data, name)[...] = values

    def set_controls(self, wanted: PackControls) -> bool:
        """Set the inputs over time of all lanes, or of each; True if their arrays are others now."""
        held = self.lanes.controls
        if held.torque.shape == wanted.torque.shape:
            for place, values in zip(held, wanted, strict=True):
                place[...] = values
            return False
        self.lanes = self.lanes._replace(controls=wanted)
        self._connect()
        return True


class PacksInTurn:
    """Packs that share a scratch, and the call by which they take their steps."""

    def __init__(self, scratch: PackScratch, tallies: Tallies, controls: Sequence[PackControls] = ()) -> None:
        """`controls`: of each pack; empty: those of the scratch for all."""
        self.scratch, self.tallies = scratch, tallies
        self.packs = [
            Pack(scratch, tallies.part(k), controls[k] if controls else None) for k in range(len(tallies.plan))
        ]
        self._turns = Turns(np.zeros((len(self.packs), 2), np.int64), np.zeros(len(self.packs), np.int64))
        self._call = bind(TAKE_TURNS, 1, self._turns)
        self.connect()

    @property
    def entries(self) -> Array:
        """(packs, 2) the packs' kernels."""
        return self._turns.entry

    def connect(self) -> None:
        """Have the call run the packs' kernels with the arrays that they have now."""
        for k, pack in enumerate(self.packs):
            pack.point_at(self._turns.entry[k])

    def step_to(self, end: int) -> None:
        """Have all packs take their steps up to number `end`; without any, they note the depths of contacts. Lanes of
        more contacts than are allowed end."""
        plan, counters = self.tallies.plan, self.tallies.counters
        np.subtract(end, counters[:, STEP_NUMBER], out=plan[:, STEPS_TO_TAKE])
        self._turns.due[:] = 1
        self._call()
        if CROWDED in counters[:, STOP_REASON]:
            for k in np.flatnonzero(counters[:, STOP_REASON] == CROWDED):
                self._go_on(int(k), end)

    def _go_on(self, k: int, end: int) -> None:
        """Have a pack that lacked room for contacts take the rest of its steps, with as much as it needs and may
        have."""
        counters = self.tallies.counters[k]
        self._turns.due[:] = 0
        self._turns.due[k] = 1
        enlarge = False  # other packs have had their turns since: the first attempt finds the room that is lacking
        while counters[STOP_REASON] == CROWDED:
            if enlarge:
                try:
                    self.make_room(listed=self.scratch.lists_more())
                except StoppedError:
                    if not self.packs[k].end_crowded():
                        raise
            counters[STOP_REASON] = RUNNING
            self.tallies.plan[k, STEPS_TO_TAKE] = end - counters[STEP_NUMBER]
            self._call()
            enlarge = True

    def make_room(self, *, listed: bool) -> None:
        """Enlarge the room for contacts of all packs; see PackScratch.enlarge."""
        self.scratch.enlarge(listed)
        for pack in self.packs:
            pack.adopt()
        self.connect()


def _own(record: Any, names: tuple[str, ...]) -> Any:
    """The record with copies of some of its arrays."""
    return record._replace(**{name: _copied(getattr(record, name)) for name in names})


def _copied(values: Array) -> Array:
    """A copy that is aligned as arrays of lanes are."""
    if values.dtype != np.float64:
        return values.copy()
    made = aligned_zeros(values.shape)
    made[...] = values
    return made
