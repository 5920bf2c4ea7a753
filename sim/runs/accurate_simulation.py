"""A run whose steps are chosen by their error, within the time step of the plan, the interval of inputs and rows.

Where no limit, friction or contact acts, steps are Dormand and Prince's (stepping/dormand_prince.py), which know their
error. Elsewhere the default step is taken in one, two and three parts, and the ends are extrapolated to parts of no
length (Aitken and Neville; Hairer, Nørsett and Wanner 1993, ch. II.9; Deuflhard, Hairer and Zugck 1987 for implicit
steps): the difference of the last two orders is the error. A step within which a row begins or ends to act, or begins
or ends to slide, is not extrapolated: it is cut until its parts agree about the coordinates, and the finest stands.

A step may add the accuracy times its length, in seconds, to the error of a coordinate [rad or m], and to that of a
velocity over _HORIZON; an event _OF_EVENT of the accuracy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import WORLD
from artsim.sim.articulation.tangent import Tangent, follow_leaders
from artsim.sim.foundation.errors import ArtsimError, UsageError
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    CREATED,
    CROWDED,
    EXCESS,
    EXCESS_STEP,
    INEQUALITY,
    LAG,
    RUNNING,
    SOURCES,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_REASON,
    TASK,
    WATCH,
    WORK,
)
from artsim.sim.run_data.stage_slopes import make_stage_slopes
from artsim.sim.runs.account import Course
from artsim.sim.runs.block_of_rows import BlockOfRows, joined
from artsim.sim.runs.controls import VALUES, torque_of
from artsim.sim.runs.pace import MOST_STEPS
from artsim.sim.runs.row_states import RowStates, row_states
from artsim.sim.runs.simulate import NOTED, Simulation

# entries of a course: what the run remembers of its steps. The first are figures of the summary
TAKEN, REFUSED, CUT, COARSE, SMALLEST, LARGEST, ESTIMATE, NEXT, NEXT_SMOOTH, ACTS, BEFORE = range(11)
COURSE_ENTRIES = 11
_LEAST = 2.0**-14  # share of the interval below which steps are not cut
_HORIZON = 0.1  # [s] for which an error of a velocity counts
_OF_EVENT = 0.05  # share of the accuracy that the position of an event may cost
_SAFETY = 0.9
_MOST_GROWTH, _LEAST_GROWTH = 5.0, 0.2
_SPOILED = 1.5  # order of shrinking errors below which something else than smooth motion is in the step
_NEVER = 1 << 62  # steps per row where none is recorded
_CALL = 0.2  # [s] after which a block of rows is handed on
_PARTS = (1, 2, 3)


class _Trial(NamedTuple):
    """A step that was tried, and left in the state: its error as a share of the accepted one, and its order."""

    share: float  # NaN: no state was reached
    order: int  # by which the share shrinks with the length; 0: it is an event
    error: float = 0.0  # [rad or m]


class _Memory:
    """Arrays and copies of them."""

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = [each for each in arrays if each.size]
        self._copies = [each.copy() for each in self._arrays]

    def keep(self) -> None:
        """Copy the arrays."""
        for array, copy in zip(self._arrays, self._copies, strict=True):
            copy[...] = array

    def go_back(self) -> None:
        """Set the arrays to their copies."""
        for array, copy in zip(self._arrays, self._copies, strict=True):
            array[...] = copy


class AccurateSimulation(Simulation):
    """A run in progress whose steps are chosen by the accuracy of its configuration; see Simulation."""

    def __post_init__(self) -> None:
        assert self.plan.config.accuracy is not None
        self._accuracy = self.plan.config.accuracy
        self._slopes = make_stage_slopes(self.plan.robot.model)
        self._tangent = Tangent(self.plan.robot.model)
        self._course = np.zeros(COURSE_ENTRIES)
        self._course[SMALLEST] = math.inf
        self._course[NEXT] = self._course[NEXT_SMOOTH] = self.plan.dt
        model = self.plan.robot.model
        moving = float(model.carried_mass[WORLD] - model.body_mass[WORLD])
        self._weight = moving * float(np.linalg.norm(model.gravity))
        super().__post_init__()

    # ------------------------------------------------------------------ what the run remembers

    def _connect(self) -> None:
        inputs = self._inputs
        held = {name: np.array(getattr(inputs, name)[:1]) for name in VALUES}
        own = inputs._replace(time_step=np.array(inputs.time_step), start_step=np.zeros(1, np.int64), **held)
        self._held, self._run = own, self._run._replace(inputs=own)
        super()._connect()
        self._compare = bind(self.plan.beside_entry, 1, *self._aside)
        self._smooth = np.zeros_like(self._step.integrator)
        if (entry := self.plan.smooth_entry) is not None:
            bundles = self._robot, self._run._replace(clock=None), self._rows, self._equipment, self._rules
            self._smooth_entry = point_at(entry, 1, self._smooth, *bundles, self._solver, self._slopes)
        noted = [getattr(self._step, name) for name in NOTED]
        arrays: list[Array] = [*self._state, *noted, self._step.counters, self._step.qacc]
        self._before, self._of_interval = _Memory(arrays), _Memory([*arrays, self._course])

    def save(self) -> dict[str, Array]:
        """A snapshot as in Simulation, with what the run remembers of its steps."""
        return super().save() | {"course": self._course.copy()}

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot as in Simulation."""
        course = np.asarray(snapshot.get("course", ()))
        if course.shape != self._course.shape:
            raise UsageError("snapshot: it is of a run without --accuracy")
        super().restore({name: values for name, values in snapshot.items() if name != "course"})
        self._course[:] = course

    @property
    def course(self) -> Course:
        """The steps taken so far."""
        c = self._course
        smallest = float(c[SMALLEST]) if c[TAKEN] else 0.0
        taken, refused, cut, coarse = (int(c[entry]) for entry in (TAKEN, REFUSED, CUT, COARSE))
        return Course(taken, refused, cut, coarse, smallest, float(c[LARGEST]), float(c[ESTIMATE]))

    @property
    def steps_per_block(self) -> int:
        """0: a call of the kernel takes no step of the plan."""
        return 0

    # ------------------------------------------------------------------ intervals

    def _advance(self) -> BlockOfRows:
        """Cross intervals until the block is full, or for about _CALL."""
        assert self.block_rows is not None
        every, parts, began = self.plan.config.every, list[BlockOfRows](), time.perf_counter()
        end = min(self._end, self.step + min(self.block_rows * every, MOST_STEPS))
        while self.step < end and self._hold_inputs():
            part = self._cross()
            if part is not None:
                parts.append(part)
            if self.stop_reason or self._failure is not None or time.perf_counter() - began > _CALL:
                break
        found = joined(parts or [self._recorded(0)], self._log.take())
        return found if self.controller is not None else BlockOfRows(found.rows, None, found.tables)

    def _advance_with_controller(self) -> BlockOfRows:
        return self._advance()

    def _hold_inputs(self) -> bool:
        """Hold the inputs of this interval, which a Python controller answers at its start; False if it fails."""
        row = max(self.controls.row_at(self.step), 0)
        if self.controller is not None:
            try:
                answer = self.controller(self.time, self.qpos, self.qvel)
                self._inputs.torque[row] = torque_of(answer, self.plan.robot.dofs, self.time)
            except ArtsimError as error:
                self._failure = error
                return False
            self._log.append(self.step, *(np.array(getattr(self._inputs, name)[row]) for name in VALUES))
        for name in VALUES:
            getattr(self._held, name)[0] = getattr(self._inputs, name)[row]
        return True

    def _cross(self) -> BlockOfRows | None:
        """Cross one interval, by as many steps as its accuracy needs; its row, where it has one."""
        self._of_interval.keep()
        number, left = self.step, self.plan.dt
        recorded = number % self.plan.config.every == 0
        self._number = number  # of the next call of the kernel, for which 0 is the start of the run
        part = None
        while left > 0.0:
            self._recording = recorded and part is None
            length = self._go_on(left)
            if not length:
                self._stop_at(number)
                return None
            if self._recording:
                part = self._recorded(1).copied()
            self._number = max(number, 1)
            left = 0.0 if length == left else left - length
        self._step.counters[STEP_NUMBER] = number + 1
        return part

    def _stop_at(self, number: int) -> None:
        """Stop at the start of an interval, unless it is only to be crossed again with more room for contacts."""
        reason, dof = (int(self._step.counters[entry]) for entry in (STOP_REASON, STOP_REASON + 1))
        self._of_interval.go_back()
        self._step.counters[STEP_NUMBER] = number
        self._step.counters[STOP_REASON : STOP_REASON + 2] = reason, dof
        if self._note_stop() and self._failure is None:  # there is room now
            self._step.counters[STOP_REASON] = RUNNING

    # ------------------------------------------------------------------ steps

    def _go_on(self, left: float) -> float:
        """Take a step of at most `left` [s] and return its length; 0 where the run stops."""
        course, least, earlier = self._course, _LEAST * self.plan.dt, list[tuple[float, _Trial]]()
        self._before.keep()
        self._start, self._known = self.qvel, (float(self._step.account[CREATED]), self._step.watch.copy())
        while True:
            smooth = self._smooth[0] != 0 and not course[ACTS]
            wanted = float(course[NEXT_SMOOTH if smooth else NEXT])
            length = left if wanted > 0.99 * left else min(wanted, 0.5 * left)
            if smooth:
                trial = self._try_smooth(length)
                if trial is None:
                    course[ACTS] = 1.0
                    continue
            else:
                trial = self._try_extrapolated(length, earlier)
            if self._step.counters[STOP_REASON] == CROWDED:
                return 0.0
            if trial.share <= 1.0 or (length <= least and math.isfinite(trial.share)):
                self._note(trial, length, wanted, smooth)
                return length
            if length <= least:
                return 0.0
            self._shorten(trial, length, smooth, least)
            earlier.append((length, trial))

    def _note(self, trial: _Trial, length: float, wanted: float, smooth: bool) -> None:
        """Note a step that stands, and choose the length of the next one."""
        course = self._course
        course[TAKEN] += 1
        course[COARSE] += trial.share > 1.0
        course[SMALLEST] = min(course[SMALLEST], length)
        course[LARGEST] = max(course[LARGEST], length)
        course[ESTIMATE] += trial.error
        share = max(trial.share, 1e-12)
        if trial.order:
            growth = _SAFETY * share ** (-0.7 / trial.order) * max(course[BEFORE], 1e-4) ** (0.4 / trial.order)
            growth = min(max(growth, _LEAST_GROWTH), _MOST_GROWTH)
            course[BEFORE] = share
        else:
            growth = min(max(_SAFETY / share, 0.5), 2.0)
        chosen = growth * length
        if length < wanted and trial.order and growth >= 1.0:  # shortened to end with the interval
            chosen = max(chosen, wanted)
        chosen = max(chosen, _LEAST * self.plan.dt)  # what is left of an interval may be much less
        course[NEXT_SMOOTH if smooth else NEXT] = min(chosen, self.plan.dt)
        if not smooth:
            course[ACTS] = float(self._acts())
        if not trial.order:
            self._excuse_energy()
        watch = self._step.watch
        if watch[EXCESS_STEP] and watch[EXCESS] <= self._accuracy * self._weight:
            self._step.account[CREATED], watch[:] = 0.0, 0.0  # no more than coordinates that are that wrong

    def _excuse_energy(self) -> None:
        """Compare energies, without blame: within its accuracy, an event in another place makes or takes energy."""
        step = self._step
        step.beside[TASK] = WATCH
        self._compare()
        step.account[CREATED], step.watch[:] = self._known

    def _shorten(self, trial: _Trial, length: float, smooth: bool, least: float) -> None:
        """Choose a smaller length for a step that does not stand."""
        course = self._course
        course[REFUSED if trial.order else CUT] += 1
        if not math.isfinite(trial.share):
            shrink = 0.25
        elif trial.order:
            shrink = min(max(_SAFETY * trial.share ** (-1.0 / trial.order), _LEAST_GROWTH), 0.8)
        else:
            shrink = min(max(_SAFETY / trial.share, 0.1), 0.5)
        course[NEXT_SMOOTH if smooth else NEXT] = max(shrink * length, least)

    def _try_smooth(self, length: float) -> _Trial | None:
        """Try a step without rows; None where something would act in it that needs one."""
        if self._contact is not None:
            if not self._take_step(length):
                return None
            if self._contact.data.number[CONTACTS]:
                self._before.go_back()
                return None
            self._before.go_back()
        integrator = self._step.integrator
        integrator[:2] = self._smooth[:2]
        done = self._take_step(length)
        integrator[:2] = 0
        if not done:
            reason = self._step.counters[STOP_REASON]
            self._before.go_back()
            return None if reason == INEQUALITY else _Trial(math.nan, 4)
        error = max(
            float(np.abs(self._slopes.error).max(initial=0.0)),
            _HORIZON * float(np.abs(self._slopes.velocity_error).max(initial=0.0)),
        )
        if error > self._accuracy * length:
            self._before.go_back()
        return _Trial(error / (self._accuracy * length), 4, error)

    def _try_extrapolated(self, length: float, earlier: list[tuple[float, _Trial]]) -> _Trial:
        """Try a step in one, two and three parts, which are extrapolated where they have the same rows."""
        ends, works, seen = list[tuple[Real, ...]](), list[Real](), set[RowStates]()
        for parts in _PARTS:
            self._before.go_back()
            self._state.change[:] = self._state.earlier_change[:] = 0.0
            number, recording = self._number, self._recording
            for _ in range(parts):
                done = self._take_step(length / parts)
                self._number, self._recording = max(number, 1), False  # the row is that of the first part
                if not done:
                    self._number, self._recording = number, recording
                    if self._step.counters[STOP_REASON] != CROWDED:
                        self._before.go_back()
                    return _Trial(math.nan, 2)
                seen.add(row_states(self))
            self._number, self._recording = number, recording
            ends.append(tuple(np.array(part) for part in self.state))
            works.append(np.array(self._step.account[WORK : WORK + SOURCES]))
            if len(seen) > 1 and parts > 1:
                return self._event(ends, length)
        return self._extrapolate(ends, works, length, earlier)

    def _event(self, ends: list[tuple[Real, ...]], length: float) -> _Trial:
        """The trial of a step that begins or ends something: the last of its ends. The event is somewhere within the
        last part, and the velocities that it changed are wrong for so long."""
        apart = float(np.abs(self._tangent.difference(ends[-2][0], ends[-1][0])).max(initial=0.0))
        change = float(np.abs(ends[-1][1] - self._start).max(initial=0.0))
        error = max(apart, length / len(ends) * change)
        share = error / (_OF_EVENT * self._accuracy)
        return _Trial(share, 0, error)

    def _extrapolate(
        self, ends: list[tuple[Real, ...]], works: list[Real], length: float, earlier: list[tuple[float, _Trial]]
    ) -> _Trial:
        (q, v, a), allowed = ends[-1], self._accuracy * length
        one, two = ([self._tangent.difference(end[0], q), end[1] - v, end[2] - a] for end in ends[:2])
        errors = [float(np.abs(0.5 * x - 2.0 * y).max(initial=0.0)) for x, y in zip(one, two, strict=True)]
        error = max(errors[0], _HORIZON * errors[1], errors[2])
        trial = _Trial(error / allowed, 2, error)
        if trial.share > 1.0:
            return self._event(ends, length) if _is_spoiled(trial, length, earlier) else trial
        change = [0.5 * x - 4.0 * y for x, y in zip(one, two, strict=True)]
        state = self._state
        state.qpos[:] = self._tangent.moved(q, change[0])
        state.qvel[:] = v + change[1]
        state.activation[:] = a + change[2]
        follow_leaders(self.plan.robot.model, state.qpos, state.qvel)
        self._step.account[WORK : WORK + SOURCES] = 0.5 * works[0] - 4.0 * works[1] + 4.5 * works[2]
        return trial

    def _take_step(self, length: float) -> bool:
        """Take one step of the kernel; False where it ends at a stop."""
        step, plan = self._step, self._block.plan
        self._held.time_step[0] = length
        plan[STEPS_TO_TAKE] = 1
        plan[STEPS_PER_ROW] = 1 if self._recording else _NEVER
        step.counters[STEP_NUMBER] = self._number
        step.account[LAG] = 0.0  # extrapolated velocities are those at the positions
        self._call()
        return step.counters[STOP_REASON] == RUNNING

    def _acts(self) -> bool:
        """True if a row with bounds, or a contact, exerted a force in the last step."""
        rows, count = self._rows, int(self._rows.number[ALL_ROWS])
        bounded = (rows.lower[:count] > -math.inf) | (rows.upper[:count] < math.inf) | (rows.cone[:count] != 0)
        return bool(np.any(bounded & (rows.impulse[:count] != 0.0)))


def _is_spoiled(trial: _Trial, length: float, earlier: list[tuple[float, _Trial]]) -> bool:
    """True if errors of this step shrink less than those of smooth motion."""
    if not earlier or not math.isfinite(earlier[-1][1].share):
        return False
    before, last = earlier[-1]
    return not last.order or trial.error > last.error * (length / before) ** _SPOILED
