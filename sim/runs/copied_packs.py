"""Steps of copies of a run in a pack: the step that a robot would take next, from many starts, by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.tangent import Tangent
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.run_data.run_records import CROWDED, STOP_REASON, Rows
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.copied_equations import CopiedEquations
from artsim.sim.runs.copied_steps import MEMORY, Ends, Starts, empty_ends, next_inputs
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.pack import Pack
from artsim.sim.runs.packable import pack_width
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.row_states import RowStates, lane_states
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.varied import unvaried
from artsim.sim.stepping.trials import BEFORE, COPY_INTS, COPY_ROW, GROUPS, TAKE_TRIALS, Copied, CopiedInts, Trials

_FEW = 4  # groups for which tables have room at first
_STATE = ("qpos", "qvel", "activation")


class CopiedPacks:
    """Takes steps of copies of a run, or of a robot of a fleet, in one pack, which is kept between calls. Each copy
    begins with all that the robot remembers of earlier steps."""

    outputs: tuple[str, ...] = ()

    def __init__(self, plan: Plan) -> None:
        self.plan, self.tangent, self._lanes = plan, Tangent(plan.robot.model), pack_width()
        unrecorded = replace(plan, config=replace(plan.config, record=()))
        held = Controls.held(**{name: getattr(plan, name) for name in VALUES})
        self._fleet = Fleet(unrecorded, held, self._lanes, 1)
        self._start: Callable[[], None]
        self._state: tuple[Real, Real, Real]
        self.inputs: Mapping[str, Real] = {}
        self.memory: Mapping[str, Real] = {}
        self._room, self._entry = _FEW, np.zeros((1, 2), np.int64)
        unvaried_arrays = self._fleet.arrays_of_pack[0]
        self._unvaried = {name: values.copy() for name, values in unvaried_arrays.items() if name != "contact.memory"}
        self._connect()
        self.equations = CopiedEquations(self)

    def begin(self, run: Simulation) -> None:
        """Take the state of a run, its memory and the inputs of its next step; a Python controller's answer is held."""
        snapshot = run.save()
        self.inputs = next_inputs(run)
        self._state = snapshot["qpos"], snapshot["qvel"], snapshot["activation"]

        def start() -> None:
            arrays = self._fleet.arrays_of_pack[0]
            for name, values in self._unvaried.items():
                arrays[name][...] = values
            self._fleet.go_on_from(snapshot, self.inputs)

        self._start = start
        self._begin_anew()

    def begin_in(self, fleet: Fleet, robot: int) -> None:
        """Take the state of a robot, its memory, its properties and the inputs of its next step."""
        self.inputs = {name: np.array(values[robot]) for name, values in fleet.inputs.items()}
        self._state = fleet.qpos[robot].copy(), fleet.qvel[robot].copy(), fleet.activation[robot].copy()
        self._start = lambda: self._fleet.become(fleet, robot, self._lanes)
        self._begin_anew()

    @property
    def state(self) -> tuple[Real, Real, Real]:
        """The coordinates (nq,), velocities (nv,) and activations (nact,) before the step."""
        return self._state

    def step(self, starts: Starts) -> Ends:
        """The ends of n copies. Raises StoppedError where a copy stops."""
        ends = empty_ends(starts, 0)
        for rows, part in self.parts(starts):
            self._take(part)
            for place, kept in zip(ends, self._kept, strict=False):
                place[rows] = kept.read(len(rows))
        return ends

    def parts(self, starts: Starts) -> Iterator[tuple[Array, Starts]]:
        """The starts that one call can take, with their numbers: all with the run's properties, and 8 with others."""
        varied = self._varied(starts)
        for rows in [np.flatnonzero(~varied), *self._in_groups(np.flatnonzero(varied))]:
            if len(rows):
                yield rows, _part(starts, rows, varied=bool(varied[rows[0]]))

    @property
    def solved(self) -> tuple[Pack, Rows]:
        """The pack, with the results of the step that its lanes took last, and its rows."""
        return self._fleet.first_pack, self._fleet.found_rows[0]

    def make_room(self, groups: int) -> tuple[Array, Array]:
        """Make room for groups of starts. Returns the number of the group that is taken, and the pack's entry, which
        is another array once the pack has been connected anew."""
        if groups > self._room:
            self._room = 2 * groups
            self._connect()
            self._begin_anew()
        return self._trials.group, self._entry

    def run_instead(self, entry: Array, starts: Starts) -> bool:
        """Run another kernel (1, 2) of the pack in place of its step from starts of one part; False where contacts lack
        room."""
        with self._loaded(starts):
            self._trials.take[:] = entry
            try:
                self._call()
                return bool(self._trials.counters[STOP_REASON] != CROWDED)
            finally:
                self._trials.take[:] = self._entry

    def told(self, starts: Starts) -> list[RowStates]:
        """The states of the rows of n copies."""
        found = list[RowStates]()
        varied = self._varied(starts)
        for rows in self._in_groups(np.arange(len(starts.qpos))):
            self._take(_part(starts, rows, varied=bool(varied[rows].any())))
            found += lane_states(*self._fleet.found_rows, len(rows))
        return found

    def _in_groups(self, rows: Array) -> list[Array]:
        return [rows[first : first + self._lanes] for first in range(0, len(rows), self._lanes)]

    def _varied(self, starts: Starts) -> Array:
        """(n,) True for copies whose properties differ from the run's."""
        varied = np.zeros(len(starts.qpos), bool)
        for name, values in starts.factors.items():
            varied |= (values != unvaried(self.plan, name)).reshape(len(varied), -1).any(axis=1)
        return varied

    # -------------------------------------------------------------- groups of lanes

    def _take(self, starts: Starts) -> None:
        """Take the steps of copies; those with properties of their own are of one group. More room for contacts is made
        where they need it."""
        with self._loaded(starts) as groups:
            self._call()
            if self._trials.counters[STOP_REASON] == CROWDED:
                self._fleet.make_room()
                self._connect()
                self._begin_anew()
                self._take(starts)
                return
            if not self._alive.table[:groups].all():
                raise StoppedError("derivatives: the step that they are of stops; see status and why_stopped")

    @contextmanager
    def _loaded(self, starts: Starts) -> Iterator[int]:
        """Have the next call take its steps from these starts, of one part, and yield the number of their groups. The
        robot's own properties stand afterwards."""
        groups = -(-len(starts.qpos) // self._lanes)
        self.make_room(groups)
        if starts.factors:
            self._vary(starts)
        try:
            self._fill(starts)
            self._trials.number[GROUPS], self._trials.group[0] = groups, 0
            yield groups
        finally:
            if starts.factors:
                self._begin_anew()

    def _vary(self, starts: Starts) -> None:
        """Have the lanes begin with the properties of starts."""
        self._start()
        self._fleet.vary(np.arange(self._lanes), {k: self._filled(v) for k, v in starts.factors.items()})
        self._remember()

    def _filled(self, values: Array) -> Array:
        """Values of copies, the last one repeated in the lanes that are left."""
        left = -len(values) % self._lanes
        return np.concatenate([values, np.repeat(values[-1:], left, axis=0)]) if left else values

    def _fill(self, starts: Starts) -> None:
        """Write the starts into their tables, and have the kernel load them."""
        loads = [*self._memory, *(self._starts[name] for name in (*_STATE, *starts.inputs, *starts.memory))]
        states = {"qpos": starts.qpos, "qvel": starts.qvel, "activation": starts.activation}
        for name, values in {**states, **starts.inputs, **starts.memory}.items():
            self._starts[name].write(self._filled(values))
        for k, load in enumerate(loads):
            self._trials.before[k] = load.pointers
        self._trials.number[BEFORE] = len(loads)

    def _begin_anew(self) -> None:
        """Go back to the robot's own state and properties."""
        self._start()
        arrays = self._fleet.arrays_of_pack[0]
        found = {name: arrays[f"PackState.{name}"] for name in MEMORY}
        self.memory = {name: np.array(values[..., 0] if self._lanes > 1 else values) for name, values in found.items()}
        self._remember()

    def _remember(self) -> None:
        """Let the lanes of each group begin as they are now."""
        self._fleet.ready()
        for table in self._memory:
            table.table[0] = table.place[0]

    def _connect(self) -> None:
        """Make the tables of the pack's arrays, and the call that takes steps."""
        arrays, inputs, entry, counters = self._fleet.arrays_of_pack
        group, lanes = np.zeros(1, np.int64), self._lanes
        states = {name: arrays.pop(f"PackState.{name}") for name in _STATE}
        changes = {name: arrays[f"PackState.{name}"] for name in MEMORY}
        self._memory = [_Table(group, place, 1) for place in (*arrays.values(), *inputs.values())]
        self._starts = {name: _Table(group, place, self._room, lanes) for name, place in {**states, **changes}.items()}
        self._starts |= {name: _Table(group, place, self._room, -lanes) for name, place in inputs.items()}
        self._kept = [_Table(group, place, self._room, lanes, kept=True) for place in states.values()]
        self._alive = _Table(group, arrays["tally.alive"], self._room, kept=True)
        after = np.array([table.pointers for table in (*self._kept, self._alive)])
        before = np.zeros((len(self._memory) + len(self._starts), 2), np.int64)
        self._entry = entry
        self._trials = Trials(np.zeros(2, np.int64), group, before, entry.copy(), after, counters)
        self._call = bind(TAKE_TRIALS, 1, self._trials)


class _Table:
    """A table (groups, entries) of an array of the pack, and the entry that loads its rows there or keeps them."""

    def __init__(self, group: Array, place: Array, groups: int, lanes: int = 0, *, kept: bool = False) -> None:
        """`lanes`: of the last axis, or if negative of the first one."""
        self.place, self._lanes = place.reshape(1, -1), lanes
        self.table = np.zeros((groups, place.size), place.dtype)
        self.pointers = np.zeros(2, np.int64)
        whole = place.dtype == np.int64
        pair = (self.place, self.table) if kept else (self.table, self.place)
        record = CopiedInts(group, *pair) if whole else Copied(group, *pair)
        self._kept = point_at(COPY_INTS if whole else COPY_ROW, 1, self.pointers, record)

    def write(self, values: Array) -> None:
        """Set the rows from values (groups · lanes, entries)."""
        lanes = abs(self._lanes)
        groups = len(values) // lanes
        by_group = values.reshape(groups, lanes, -1)
        self.table[:groups] = (by_group.swapaxes(1, 2) if self._lanes > 0 else by_group).reshape(groups, -1)

    def read(self, count: int) -> Array:
        """The values (count, entries) of copies."""
        found = self.table.reshape(len(self.table), -1, self._lanes).swapaxes(1, 2)
        return found.reshape(len(self.table) * self._lanes, -1)[:count]


def _part(starts: Starts, rows: Array, *, varied: bool) -> Starts:
    """Some of the starts; without their properties unless these are varied."""
    inputs = {name: values[rows] for name, values in starts.inputs.items()}
    factors = {name: values[rows] for name, values in starts.factors.items()} if varied else {}
    memory = {name: values[rows] for name, values in starts.memory.items()}
    return Starts(starts.qpos[rows], starts.qvel[rows], starts.activation[rows], inputs, factors, memory)
