"""Simulation runs a plan: it calls the kernels and yields blocks of recorded rows one after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.constraints.kinds import RowOrigins, total_room
from artsim.sim.contact.continuous import connect_advancement, connect_foresight
from artsim.sim.equipment.arrays import EquipmentBundle, make_equipment_work
from artsim.sim.equipment.delays import connect_delays
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, StoppedError, UsageError
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import (
    CONTACTS,
    ContactBundle,
    connect_detection,
    first_room,
    make_bounces,
    make_contact_work,
)
from artsim.sim.run_data.link_rules import RuleBundle, make_link_rule_work
from artsim.sim.run_data.phases import Clock
from artsim.sim.run_data.registry import SOLVERS, Solver
from artsim.sim.run_data.run_records import (
    AT_REST,
    AT_START,
    CROWDED,
    LOOK,
    NON_FINITE,
    NOW,
    ROWS_RECORDED,
    STEP_NUMBER,
    STEPS_TO_TAKE,
    STOP_REASON,
    TASK,
    Block,
    Inputs,
    Rows,
    RunBundle,
)
from artsim.sim.run_data.scratch import SolverBundle, SolverCall, make_call, make_solver_bundle
from artsim.sim.runs.account import Account
from artsim.sim.runs.block_of_rows import BlockOfRows, first_odd, joined, make_block, owner_of, rows_in, rows_of_block
from artsim.sim.runs.control_tables import make_inputs
from artsim.sim.runs.controls import VALUES, ControlLog, Controls, torque_of
from artsim.sim.runs.crew import Crew
from artsim.sim.runs.implicit_choice import implicit_works
from artsim.sim.runs.pace import MOST_STEPS, Pace, call_watched
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sights import connect_rays
from artsim.sim.stepping.allocation import make_rows, make_step

ControllerFunction = Callable[[float, Real, Real], Array]
# fields of the Step record that belong to a snapshot: counts and extremes since the start of the run
NOTED = (
    "limit_steps",
    "coupling_error",
    "tendon_error",
    "worst_residual",
    "energy",
    "watch",
    "account",
    "contact_extremes",
    "yielded",
    "loop_gap",
    "held",
    "opened",
)


@dataclass
class Simulation(Account):
    """A run in progress. Iterate `blocks()`; the state and the counters are up to date after each block.

    Raises:
        UsageError: the controller returned something other than (nv,) numbers.
    """

    plan: Plan
    controls: Controls
    controller: ControllerFunction | None = None
    block_rows: int | None = None
    clock: Clock | None = None  # accumulates the time of the phases
    threads: int = 1  # that solve islands of rows side by side; results do not depend on it

    def __post_init__(self) -> None:
        self.stop_reason = 0
        self.steps_by_default = 0  # that the default took in place of the integrator, since limits acted
        self.signalled: Callable[[], bool] | None = (
            None  # True if the run shall end soon; long calls are watched if this function is given
        )
        self._pace = Pace()
        self._abandoned: list[Any] = []  # the arrays of an abandoned call
        model = self.plan.robot.model
        self._crew = Crew(model, self.threads)
        equipped = self.plan.equipped
        self._work = make_workspace(model)
        self._step = make_step(model, None if equipped is None else equipped.arrays)
        most = self.plan.config.max_contacts
        self._room = 0 if self.plan.touching is None else min(first_room(self.plan.touching), most)
        fixed = self._make_room()
        activations = 0 if equipped is None else equipped.activations
        delayed = self.plan.delayed
        history = 0 if delayed is None else len(delayed.history)
        self._state = make_state(model, 1, activations, fixed, self.plan.control.size, self._room, history)
        self._state.qpos[:] = self.plan.qpos
        self._state.qvel[:] = self.plan.qvel
        rows = self.controls
        self._inputs = make_inputs(self.plan, rows)
        self._equipment: EquipmentBundle | None = None
        if equipped is not None:
            scratch = make_equipment_work(model, equipped.arrays, equipped.activations)
            self._equipment = EquipmentBundle(equipped.arrays, scratch)
            scratch.noise_key[:] = self.plan.config.seed, self.plan.sample
            self._state.activation[:] = self.plan.activation
            if delayed is not None:
                self._state.history[:] = delayed.history
            if self.plan.seen is not None:
                self._rays = connect_rays(self.plan.seen, model, self._work, self._equipment)
        self._rules: RuleBundle | None = None
        if self.plan.rules is not None:
            self._rules = RuleBundle(self.plan.rules, make_link_rule_work(model, self.plan.rules))
        self._failure: ArtsimError | None = None
        self._odd = ""  # the part of the recorded rows or of the state that is not finite
        self._log = ControlLog(self.plan.robot.nv, rows.control.shape[1])
        self._end = self.plan.config.steps
        self.reblock()

    def _make_room(self) -> int:
        """Allocate all arrays whose size depends on the room for contacts; returns the number of the other rows."""
        model, touching = self.plan.robot.model, self.plan.touching
        gains = self.plan.inputs["drive_stiffness"] + self.plan.inputs["drive_damping"]
        carried = None if self.plan.equipped is None else self.plan.equipped.arrays
        driven = int(np.count_nonzero(gains))
        origins = RowOrigins(model, driven, carried, touching, self._room, self.plan.rules)
        self._rows, narrow = make_rows(origins), total_room(origins).narrow
        self._scratch = make_solver_bundle(model, self._rows, self.plan.work, narrow)
        self._solver = SolverBundle(call=self._call_of(self.plan.solver))
        self._contact: ContactBundle | None = None
        if touching is not None:
            self._contact = ContactBundle(touching.contacts, make_contact_work(touching, self._room))
            self._bounces = make_bounces(self._room)
            self._detection = connect_detection(touching, self._contact.data, clock=self.clock)
        return total_room(origins, lasting=True).rows

    def _enlarge(self) -> None:
        """Double the room for contacts; the step that found too many is taken again, so that none is lost."""
        most = self.plan.config.max_contacts
        if self._room >= most:
            self._failure = StoppedError(
                f"stopped at t = {self.time:.6g} s (step {self.step}): more than {most} contacts; see --max-contacts"
            )
            return
        self._resize(min(2 * self._room, most))
        self._step.counters[STOP_REASON] = 0
        self.stop_reason = 0

    def _resize(self, room: int) -> None:
        """Change the room for contacts and keep the known ones."""
        old = self._state.contact
        self._room = room
        self._make_room()
        self._state = self._state._replace(contact=np.zeros((room, old.shape[1])))
        known = min(room, len(old))
        self._state.contact[:known] = old[:known]
        self.reblock()

    def reblock(self) -> None:
        """Allocate the block again after `block_rows` was changed."""
        self._block = self._make_block()
        self._robot = RobotBundle(self.plan.robot.model, self._state, self._work)
        self._run = RunBundle(self._inputs, self._step, self._block, self.clock)
        self._connect()

    def _connect(self) -> None:
        """Connect the kernel that takes steps, and those that it calls: beside.py, those of solver and integrator, the
        continuous check, delays."""
        plan = self.plan
        aside = self._robot, self._run._replace(clock=None), self._rows, self._equipment, self._contact
        self._beside, self._aside = point_at(plan.beside_entry, 1, self._step.beside, *aside), aside
        self._connect_solver(*aside[:3])
        if integrator := plan.integrator_entry(clocked=self.clock is not None):
            bundles = self._robot, self._run, self._rows, self._equipment, self._rules, self._solver
            scratch = implicit_works(plan.robot.model, plan.config)
            self._integrating = point_at(integrator, 1, self._step.integrator, *bundles, *scratch)
        if plan.touching is not None and self._contact is not None:
            work = self._contact.data
            if plan.foresees:
                self._foresight = connect_foresight(plan.touching, work)
            if plan.config.continuous:
                self._advancement = connect_advancement(plan.touching, plan.equipped, self._robot, self._run, work)
        if plan.delayed is not None and self._equipment is not None:
            self._delays = connect_delays(plan.delayed, self._robot, self._run, self._equipment, self._contact)
        entry = plan.entry if self.clock is None else plan.clocked_entry
        self._call = self._crew.watched(bind(entry, 1, *self._bundles()))

    def _connect_solver(self, robot: RobotBundle, run: RunBundle, rows: Rows) -> None:
        """Connect the solver's entry, with that of newton where it has one to fall back on."""
        plan, scratch, call = self.plan, self._scratch, self._solver.call
        entry, *newton_s = plan.solver_entries
        solver = scratch._replace(call=call)
        self._solving: list[Any] = []
        if scratch.newton is not None:
            newton = solver
            for entry_of_newton in newton_s:
                fallback = self._call_of(SOLVERS["newton"])
                newton, solver = SolverBundle(scratch.newton, call=fallback), solver._replace(fallback=fallback)
                self._solving.append(point_at(entry_of_newton, 1, fallback.entry, robot, run, rows, newton))
            self._solving.append(self._crew.connect(plan.solver_entries[-1], robot, run, rows, newton))
        self._solving.append(point_at(entry, 1, call.entry, robot, run, rows, solver))

    def _call_of(self, solver: Solver) -> SolverCall:
        return make_call(solver.sweeping, solver.mass_matrix, self._scratch)

    def _look(self) -> None:
        if not self.left_alone:  # an abandoned step still runs on these arrays
            self._step.beside[TASK] = LOOK
            bind(self.plan.beside_entry, 1, *self._aside)()

    def _bundles(self) -> tuple[NamedTuple | None, ...]:
        """The arguments of the entry that takes steps."""
        contact = None if self._contact is None else self._contact._replace(bounces=self._bounces)
        return self._robot, self._run, self._rows, self._equipment, contact, self._rules, self._solver

    def _make_block(self) -> Block:
        self.block_rows = self.block_rows or rows_of_block(self.plan)
        return make_block(self.plan, self.block_rows, self._room, len(self._rows.kind))

    def save(self) -> dict[str, Array]:
        """A snapshot of everything that later steps depend on, as plain arrays by name, for `restore` in any process.

        A snapshot holds the fields of State (including the warm start and the joints' last loads), `step`, and the
        statistics of the run so far. Model, configuration and inputs, which must be the same, are not part of it, nor
        is a Python controller's own memory.
        """
        noted = {name: getattr(self._step, name) for name in NOTED}
        arrays = {**self._state._asdict(), **noted, "step": np.int64(self.step)}
        arrays["contact"] = arrays["contact"][: self._known_contacts]
        return {name: np.array(values) for name, values in arrays.items()}

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot; the following rows equal, byte for byte, those that followed it originally.

        Raises UsageError: a snapshot of another robot, or of another configuration.
        """
        snapshot = {"drive_held": np.zeros_like(self._state.drive_held), **snapshot}  # files of older versions lack it
        known = np.shape(snapshot.get("contact", ()))
        if len(known) == 2 and self._room and known[0] > self._room:
            self._resize(known[0])
        places = self._state._asdict() | {name: getattr(self._step, name) for name in NOTED}
        shapes = {name: place.shape for name, place in places.items()} | {"step": ()}
        given = {name: np.shape(values) for name, values in snapshot.items()}
        if len(known) == 2 and known[0] <= self._room:
            shapes["contact"] = (known[0], self._state.contact.shape[1])
        if given != shapes:
            odd = next(name for name in {**shapes, **given} if shapes.get(name) != given.get(name))
            raise UsageError(
                f"snapshot: {odd} has shape {given.get(odd, 'none')}, want {shapes.get(odd, 'none')}; "
                "is it of another robot or configuration?"
            )
        self._state.contact[:] = 0
        for name, place in places.items():
            place[: len(snapshot[name])] = snapshot[name]
        self._step.counters[:] = 0
        self._step.counters[STEP_NUMBER] = int(snapshot["step"])
        self.stop_reason = 0
        self._failure = None
        self._odd = ""

    @property
    def inputs(self) -> Inputs:
        """The inputs by rows; those of controls may be written."""
        return self._inputs

    def set_state(self, **values: Array) -> None:
        """Set qpos, qvel or activation, whole and consistent with couplings; the energy received counts anew."""
        for name, entries in values.items():
            getattr(self._state, name)[:] = entries
        self._state.still[:] = 0.0
        self._state.change[:] = 0.0
        self._step.counters[AT_REST] = 0
        self._step.energy[AT_START] = math.nan

    def calibrate_anew(self) -> None:
        """Have the next step compute the constants of the equipment that depend on the robot's masses."""
        if self._equipment is not None:
            self._equipment.data.calibrated[0] = 0.0

    @property
    def found_rows(self) -> tuple[Rows, ContactBundle | None]:
        """The constraint rows of the last step, and the contacts of which some of them are."""
        return self._rows, self._contact

    def go_on_from(self, other: Simulation) -> None:
        """Copy the state of another run of this robot, and its account so far.

        Impulses of the last step, the solver's first guess, start at zero where the runs have other rows.
        """
        snapshot = self.save()
        for name, values in other.save().items():
            if name == "contact" or values.shape == snapshot[name].shape:
                snapshot[name] = values
        self.restore(snapshot)
        kept = {name: getattr(other._state, name) for name in ("qpos", "qvel", "activation")}
        self._state = self._state._replace(**kept)
        self._step.counters[:] = other._step.counters
        self._step.energy[AT_START] = math.nan
        self.reblock()

    @property
    def state(self) -> tuple[Real, Real, Real]:
        """The coordinates, velocities and activations themselves, which steps change."""
        return self._state.qpos, self._state.qvel, self._state.activation

    def acting(self, name: str, *, later: bool = False) -> Array:
        """The row of an input that acts in the next step, itself; `later`: with those after it."""
        values: Array = getattr(self._inputs, name)
        row = 0 if len(values) == 1 else max(self.controls.row_at(self.step), 0)
        return values[row:] if later else values[row]

    def acting_from(self, step: int) -> Iterator[tuple[int, list[Array]]]:
        """The inputs that acted from a step up to now: the first step of each row, and the row."""
        start = self._inputs.start_step
        first = max(self.controls.row_at(step), 0)
        for row in range(first, max(self.controls.row_at(self.step - 1), 0) + 1):
            yield max(step, int(start[row])), [getattr(self._inputs, name)[row] for name in VALUES]

    @property
    def steps_per_block(self) -> int:
        """The largest number of steps whose rows fit into the block."""
        assert self.block_rows is not None
        return min(self.block_rows * self.plan.config.every, MOST_STEPS)

    def take(self, steps: int) -> bool:
        """Take at most steps_per_block steps by one call of the kernel, without a check of the recorded rows.

        False if the call ended early: `left_blocks` then gives its rows and goes on.
        """
        self._begun = self.step
        self._end = self._begun + steps
        self._block.plan[STEPS_TO_TAKE] = steps
        self._call()
        return not self._step.counters[STOP_REASON] and isfinite(self._step.energy[NOW])

    def taken(self) -> BlockOfRows:
        """Views of the rows that the last `take` recorded, up to the first that is not finite, at which the run then
        stops."""
        return self._finite_rows(self._recorded(), self._begun)

    def copied(self) -> BlockOfRows:
        """Copies of the rows that the last `take` recorded, unchecked."""
        return self._recorded().copied()

    def checked(self, block: BlockOfRows) -> dict[str, Array]:
        """The rows of a block. Raises StoppedError for one that is not finite, naming its variable and entry."""
        for row, name, place in BlockOfRows(block.rows).odd_entries():
            owner = owner_of(self.plan.robot, name, place)
            raise StoppedError(f"{name}{owner} is not finite (row {row} of the steps)")
        return block.rows

    def left_blocks(self) -> Iterator[BlockOfRows]:
        """Yield the rows of a `take` that ended early, and go on to where it was to end."""
        end, rows = self._end, self.taken()
        if not self.stop_reason:
            self._note_stop()
        yield rows
        if self._failure is not None:
            raise self._failure
        yield from self.blocks(end - self.step)

    def blocks(self, steps: int | None = None) -> Iterator[BlockOfRows]:
        """Yield recorded rows until the run ends or stops, or for `steps` steps; `stop_reason` gives the cause."""
        self._end = self.plan.config.steps if steps is None else self.step + steps
        while self.step < self._end and not self.stop_reason:
            first = self.step
            block = self._advance() if self.controller is None else self._advance_with_controller()
            yield self._finite_rows(block, first)
            if self._failure is not None:  # raised after the rows before it
                raise self._failure
        self._measure()
        self._look_at_state()

    def _measure(self) -> None:
        """Note the depths of contacts at the state, by a call that takes no step; rows recorded before stay."""
        if self._contact is None or not self.step or self.stop_reason:
            return
        block, counters = self._block, self._step.counters
        kept = [np.array(values) for values in (block.plan, block.contacts, block.constraints, counters)]
        block.plan[STEPS_TO_TAKE] = 0
        self._call()
        for values, before in zip((block.plan, block.contacts, block.constraints, counters), kept, strict=True):
            values[:] = before

    @property
    def deepest(self) -> float:
        """Depth of the deepest contact at the start of the last step [m]; 0 without penetrations."""
        if self._contact is None:
            return 0.0
        found = self._contact.data.distance[: self._contact.data.number[CONTACTS]]
        return max(0.0, -float(found.min(initial=0.0)))

    @property
    def spoiled(self) -> bool:
        """True if the run stopped at a row but has advanced beyond it, so that the state is that of a later step."""
        return bool(self._odd)

    def _finite_rows(self, block: BlockOfRows, first: int) -> BlockOfRows:
        """The block, whose first step is `first`, up to the first row that is not finite, at which the run stops."""
        odd = min(block.odd_entries(), key=lambda entry: entry[0], default=None)
        if odd is None:
            return block
        stop, name, place = odd
        self._odd = f"{name}{owner_of(self.plan.robot, name, place)}"
        every = self.plan.config.every
        self.stop_reason = NON_FINITE
        self._step.counters[STEP_NUMBER] = (-(-first // every) + stop) * every
        return block.up_to(stop)

    def _look_at_state(self) -> None:
        """Stop if a part of the state is not finite that the recorded rows do not contain."""
        if self.stop_reason:
            return
        known = self._state._asdict() | {"energy": np.array(self.energy)}
        odd = next((name for name, values in known.items() if first_odd(values) is not None), "")
        if odd:
            self._odd = f"state's {odd}"
            self.stop_reason = NON_FINITE

    def _advance(self) -> BlockOfRows:
        assert self.block_rows is not None
        most = self.block_rows * self.plan.config.every
        self._block.plan[STEPS_TO_TAKE] = min(most, self._end - self.step, MOST_STEPS)
        if not self._called():
            return self._recorded(0)
        block = self._recorded()
        self._note_stop()
        return block

    def _called(self) -> bool:
        """Take the steps of the block, few at a time while a signal is watched; False if a signal came first."""
        if self.signalled is None:
            self._call()
            return True
        self._block.plan[STEPS_TO_TAKE] = min(self._block.plan[STEPS_TO_TAKE], self._pace.steps())
        first, began = self.step, time.perf_counter()
        before = self.save()
        if not call_watched(self._call, self.signalled):
            self._abandon(before)
            return False
        self._pace.note(self.step - first, time.perf_counter() - began)
        return True

    @property
    def times_helped(self) -> int:
        """The number of solutions in which other threads solved islands beside this one."""
        return self._crew.times

    @property
    def left_alone(self) -> bool:
        """True if an abandoned call is still running."""
        return bool(self._abandoned)

    def _abandon(self, before: Mapping[str, Array]) -> None:
        """Restore the state before an abandoned call, on new arrays, and stop there."""
        self._abandoned += [self._bundles(), self._call, self._crew]
        stopped = type(self)(self.plan, self.controls, self.controller, self.block_rows, self.clock, self.threads)
        stopped.restore(before)
        kept = {name: self.__dict__[name] for name in ("_abandoned", "_log", "_pace", "signalled")}
        self.__dict__.update(stopped.__dict__ | kept)
        self._end = self.step

    def _note_stop(self) -> bool:
        """Note the reason why the call ended; True if it lacked room for contacts, which has now been enlarged."""
        self.stop_reason = int(self._step.counters[STOP_REASON])
        crowded = self.stop_reason == CROWDED
        if crowded:
            self._enlarge()
        return crowded

    def _recorded(self, count: int | None = None) -> BlockOfRows:
        """Views of the rows that the last call recorded, or of the first `count` of them."""
        most = int(self._step.counters[ROWS_RECORDED]) if count is None else count
        return rows_in(self._block, self.plan.config.record, most)

    def _advance_with_controller(self) -> BlockOfRows:
        """Take one block of steps and call the controller before each."""
        config = self.plan.config
        assert self.controller is not None and self.block_rows is not None
        parts: list[BlockOfRows] = []
        self._block.plan[STEPS_TO_TAKE] = 1
        most = MOST_STEPS if self.signalled is None else self._pace.steps()
        end = min(self.step + min(self.block_rows * config.every, most), self._end)
        first, began = self.step, time.perf_counter()
        while self.step < end and not self.stop_reason:
            row = max(self.controls.row_at(self.step), 0)  # the row that the step will act on
            try:
                answer = self.controller(self.time, self.qpos, self.qvel)
                self._inputs.torque[row] = torque_of(answer, self.plan.robot.dofs, self.time)
            except ArtsimError as error:
                self._failure = error
                break
            step, values = self.step, [np.array(getattr(self._inputs, name)[row]) for name in VALUES]
            if (
                self.signalled is not None and self._pace.slow
            ):  # a thread for every fast step would cost more than the step
                before = self.save()
                if not call_watched(self._call, self.signalled):
                    self._abandon(before)
                    break
            else:
                self._call()
            self._log.append(step, *values)
            while self._note_stop() and self._failure is None:
                self._call()
            if self._step.counters[ROWS_RECORDED]:
                parts.append(self._recorded(1).copied())
        self._pace.note(self.step - first, time.perf_counter() - began)
        return joined(parts or [self._recorded(0)], self._log.take())
