"""A fleet: n robots of one plan that persist in packs and take their steps together, in threads.

Arrays that users see are (robots, …), the last pack filled up with robots that nobody looks at; steps write them in
place. A robot's bytes depend neither on the other robots nor on the number of threads. No numba here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np

from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import RUNNING, STEP_NUMBER, STEPS_PER_ROW, STEPS_TO_TAKE, STOP_REASON, Rows
from artsim.sim.runs.control_tables import control_tables
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.pack import Pack, PackScratch, PacksInTurn, Tallies, make_tallies
from artsim.sim.runs.packable import pack_width
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.rated import Rater
from artsim.sim.stepping.packs import FIRST_SAMPLE, FIRST_SLOT, PLAN_ENTRIES, ROWS_OF_SAMPLE, PackControls, RolloutBlock

_STEPS_PER_CALL = 2048  # signals are polled between calls only
_NEVER = 1 << 62  # steps per row: of a call, the step with number 0 alone is recorded
_STATES = ("qpos", "qvel", "activation")
_MEMORY = "contact.memory"


class Fleet:
    """n robots, with `rows` (n, …) by variable, recorded in the last step of a call, and `inputs` (n, ·) by name, which
    act from the next step on.

    `reason` (n,): RUNNING, or why the robot stopped; `stopped_dof` (n,): the dof that caused it. `unsolved` (n,): steps
    in which the solver left a residual, `worst_residual` (n,) the largest [rad/s or m/s].
    """

    def __init__(
        self, plan: Plan, controls: Controls, n: int, threads: int, raters: Callable[[], Rater] | None = None
    ) -> None:
        """`raters`: makes one that rates the robots of a thread as samples; None: they are not rated."""
        self.plan, self.n, self._width = plan, n, pack_width()
        packs = -(-n // self._width)
        robot, room = plan.robot, packs * self._width
        threads = max(1, min(threads, packs))
        self._qpos, self._qvel = np.zeros((room, robot.nq)), np.zeros((room, robot.nv))
        self._activation = np.zeros((room, len(plan.activation)))
        shapes = {name: shape for name, shape in plan.row_shapes.items() if name not in _STATES}
        rows = {name: np.full((room, 1, *shape), np.nan) for name, shape in shapes.items()}
        absent = np.zeros((room, 0, 0))
        block = RolloutBlock(np.zeros(PLAN_ENTRIES, np.int64), absent, absent, self._qpos, self._qvel)
        touched = "contacts" in plan.config.record
        self._contact_count = np.zeros((room, int(touched)))
        ends = [packs * k // threads for k in range(threads + 1)]
        recorded = rows | ({"contact_count": self._contact_count} if touched else {})
        self.raters = [] if raters is None else [raters() for _ in range(threads)]
        unrated: list[Rater | None] = [None] * threads
        scratches = [
            PackScratch(plan, controls, recorded, block, (end - first) * self._width if touched else 0, rater)
            for (first, end), rater in zip(pairwise(ends), self.raters or unrated, strict=True)
        ]
        self._tallies = make_tallies(scratches[0], packs)
        self._tallies.plan[:, STEPS_PER_ROW] = _NEVER
        self._tallies.plan[:, FIRST_SAMPLE] = np.arange(packs) * self._width
        for first, end in pairwise(ends):
            self._tallies.plan[first:end, FIRST_SLOT] = np.arange(end - first) * self._width
        self.records = bool(recorded)  # more than states
        self._ends = ends
        held = {name: np.repeat(table, room, axis=0) for name, table in control_tables(plan, [controls]).items()}
        self._turns = [
            self._in_turn(scratch, held, slice(first, end))
            for scratch, first, end in zip(scratches, ends[:-1], ends[1:], strict=True)
        ]
        self._packs: list[Pack] = [pack for turns in self._turns for pack in turns.packs]
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self._steps, self._time = np.zeros((packs, self._width), np.int64), np.zeros((packs, self._width))
        self._chosen = np.zeros((packs, self._width), bool)
        links = len(robot.links)
        self._massive = {"mass": np.ones((room, links)), "centre": np.zeros((room, links, 3))}  # as varied
        self._inputs = held
        self.inputs = {name: table[:n, 0] for name, table in held.items()}
        self.rows = {name: values[:n, 0] for name, values in rows.items()}
        self.qpos, self.qvel, self.activation = self._qpos[:n], self._qvel[:n], self._activation[:n]
        self.steps, self.time = self._steps.reshape(-1)[:n], self._time.reshape(-1)[:n]
        self.reason = self._tallies.reason.reshape(-1)[:n]
        self.stopped_dof = self._tallies.stopped_dof.reshape(-1)[:n]
        self.unsolved = self._tallies.unsolved.reshape(-1)[:n]
        self.worst_residual = self._tallies.worst_residual.reshape(-1)[:n]
        self.reset(np.arange(room), *(np.tile(values, (room, 1)) for values in self.start))
        self.number(0)
        self._tallies.alive.reshape(-1)[n:] = 0

    def _in_turn(self, scratch: PackScratch, held: Mapping[str, Array], packs: slice) -> PacksInTurn:
        """The packs of a thread."""
        start, width = np.full(1, -_NEVER), self._width  # before any step of a call, whose numbers end with 0
        controls = [
            PackControls(start, **{name: table[p * width : (p + 1) * width] for name, table in held.items()})
            for p in range(packs.start, packs.stop)
        ]
        return PacksInTurn(scratch, self._tallies.part(packs), controls)

    @property
    def start(self) -> tuple[Array, Array, Array]:
        """The coordinates (nq,), velocities (nv,) and activations (nact,) at which robots begin."""
        return self.plan.qpos, self.plan.qvel, self.plan.activation

    @property
    def in_packs(self) -> tuple[Array, Array]:
        """Coordinates and velocities of whole packs now, with the robots that fill up the last one."""
        return self._qpos, self._qvel

    # -------------------------------------------------------------- steps

    def step(self, steps: int, record: bool = True) -> None:
        """Have all robots take steps, but for those that have stopped, or stop on the way.

        The numbers of a pack's steps end with 0, which is recorded; without `record` none is, and `rows` and contacts
        stay as they are.
        """
        tallies = self._tallies
        tallies.plan[:, ROWS_OF_SAMPLE] = self.records and record
        tallies.counters[:, STEP_NUMBER] = 1 - steps
        np.subtract(1 - steps, self._steps, out=tallies.began)
        tallies.input_row[:] = -1
        if record:
            self.forget_contacts(slice(None))
        try:
            for end in (*range(1 - steps + _STEPS_PER_CALL, 1, _STEPS_PER_CALL), 1):
                self._step_to(end)
        finally:
            self._count()

    def look(self, robots: Array) -> None:
        """Set `rows` and contacts of some robots to those that a step from the present state would record; the state
        stays."""
        before = self.save()
        others = np.ones(self._tallies.alive.size, bool)
        others[robots] = False
        self._tallies.alive.reshape(-1)[others] = 0
        resting = self._tallies.alive.reshape(-1) == 0
        count = self._contact_count.copy()
        try:
            self.step(1)
        finally:
            self._contact_count[resting] = count[resting]
            for name, values in self.rows.items():
                before[f"row.{name}"][robots] = values[robots]
            self.restore(before)

    def _step_to(self, end: int) -> None:
        """Have all packs take their steps up to number `end`, in all threads."""
        if self._pool is None:
            self._turns[0].step_to(end)
            return
        others = [self._pool.submit(turns.step_to, end) for turns in self._turns[1:]]
        try:
            self._turns[0].step_to(end)
        finally:
            wait(others)  # also where this one was interrupted: they write into arrays
        for other in others:
            other.result()

    def _count(self) -> None:
        """Note the steps that robots have taken, from the numbers at which they were and are; and their activations."""
        tallies, chosen = self._tallies, self._chosen
        np.equal(tallies.alive, 1, out=chosen)
        np.subtract(tallies.counters[:, STEP_NUMBER, None], tallies.began, out=self._steps, where=chosen)
        np.greater_equal(tallies.stopped, 0, out=chosen)
        np.copyto(self._steps, tallies.stopped, where=chosen)
        np.multiply(self._steps, self.plan.dt, out=self._time)
        for k in np.flatnonzero(tallies.counters[:, STEP_NUMBER] != 1):
            robots = slice(k * self._width, (k + 1) * self._width)
            state = self._packs[k].robot.state
            self._qpos[robots], self._qvel[robots] = self._by_lane(state.qpos).T, self._by_lane(state.qvel).T
        if self._activation.size:
            np.equal(tallies.alive, 1, out=chosen)  # others keep those before the call in which they stopped
            found = np.moveaxis(self._by_lane(tallies.activation), -1, 1)
            np.copyto(self._activation.reshape(self._lanes_last), found, where=chosen[..., None])

    @property
    def _lanes_last(self) -> tuple[int, int, int]:
        return len(self._packs), self._width, self._activation.shape[1]

    def _by_lane(self, values: Array) -> Array:
        """Values of packs with the axis of lanes, which packs of one robot lack."""
        return values if self._width > 1 else values[..., None]

    @property
    def sunk(self) -> Array:
        """(n,) by how much the hard contact that got deepest since the start did, as in Results.sunk [m]."""
        return self._of_contacts("sunk", (4,))[:, 1]

    def _of_contacts(self, name: str, shape: tuple[int, ...] = ()) -> Array:
        """(n, *shape) a field of the lanes' contacts; zeros where nothing may touch."""
        made = np.zeros((len(self._packs), self._width, *shape))
        for place, pack in zip(made, self._packs, strict=True):
            if pack.contact is not None:
                place[:] = getattr(pack.contact.lanes, name)
        return made.reshape(-1, *shape)[: self.n]

    @property
    def going(self) -> Array:
        """(n,) True for the robots that take steps."""
        alive: Array = self._tallies.alive.reshape(-1)[: self.n] == 1
        return alive

    @property
    def solved_alone(self) -> int:
        """Number of steps of robots whose rows the solver of a single robot solved, since the fleet was made."""
        return sum(int(turns.scratch.lanes.data.by_newton[0]) for turns in self._turns)

    def contact_tallies(self) -> tuple[Array, Array, Array]:
        """(n,) depth of the deepest contact at the start, (n, 4) the hard contact that got deepest since, the present
        state included, (n, 5) the contacts that hard loops hold inside; as in Results."""
        if self.plan.touching is not None:
            self._step_to(1)  # of no steps, which notes the depths
        return self._of_contacts("start_depth"), self._of_contacts("sunk", (4,)), self._of_contacts("held", (5,))

    def contacts(self) -> dict[str, Array]:
        """The contacts recorded in the last step of a call, robot after robot: by field of Block, and `robot`, the
        numbers of the robots (contacts,). contact_count: (n,)."""
        parts: list[dict[str, Array]] = []
        for turns, first, end in zip(self._turns, self._ends[:-1], self._ends[1:], strict=True):
            robots = np.arange(first * self._width, min(end * self._width, self.n))
            count = self._contact_count[robots, 0]
            found = turns.scratch.simulation.contacts_in(robots - first * self._width, count)
            parts.append({"contact_count": count, "robot": np.repeat(robots, count.astype(np.int64)), **found})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def forget_contacts(self, robots: Array | slice) -> None:
        """Forget the recorded contacts of some robots."""
        self._contact_count[robots] = 0.0

    # -------------------------------------------------------------- single robots

    def end(self, robots: Array) -> None:
        """Let robots take no more steps until they are reset; they stay at their states."""
        self._tallies.alive.reshape(-1)[robots] = 0

    def reset(self, robots: Array, qpos: Array, qvel: Array, activation: Array) -> None:
        """Begin anew with some robots, at these states (robots, …); nothing of the others changes."""
        for pack, lanes, own in self._in_packs(robots):
            pack.reset(lanes, qpos[own], qvel[own], activation[own])
            pack.lanes.data.number[lanes] += len(self._qpos)  # their sensors have other noise from now on
        self._qpos[robots], self._qvel[robots], self._activation[robots] = qpos, qvel, activation
        self._steps.reshape(-1)[robots], self._time.reshape(-1)[robots] = 0, 0.0
        for values in self.rows.values():
            values[robots[robots < self.n]] = np.nan
        self.forget_contacts(robots)

    def number(self, first: int) -> None:
        """Number the robots, by which the noise of their sensors is drawn, from `first` on."""
        for k, pack in enumerate(self._packs):
            pack.lanes.data.number[:] = first + np.arange(k * self._width, (k + 1) * self._width)

    def vary(self, robots: Array, factors: Mapping[str, Array]) -> None:
        """Set properties of some robots, as Variations has them; the others stay as they are."""
        for name in set(factors) & set(self._massive):
            self._massive[name][robots] = factors[name]
        if "mass" in factors or "centre" in factors:
            mass, centre = (self._massive[name][robots] for name in ("mass", "centre"))
            factors = {**factors, "mass": mass} | ({"centre": centre} if centre.any() or "centre" in factors else {})
        for pack, lanes, own in self._in_packs(robots):
            pack.vary(lanes, {name: values[own] for name, values in factors.items()})

    def _in_packs(self, robots: Array) -> list[tuple[Pack, Array, Array]]:
        """The packs in which some robots are: each with their lanes, and their places in `robots`."""
        order = np.argsort(robots, kind="stable")
        packs, lanes = np.divmod(robots[order], self._width)
        ends = np.flatnonzero(np.diff(packs)) + 1
        parts = zip(np.split(packs, ends), np.split(lanes, ends), np.split(order, ends), strict=True)
        return [(self._packs[int(pack[0])], lane, own) for pack, lane, own in parts if len(pack)]

    def become(self, other: Fleet, robot: int, robots: int) -> None:
        """Have the first robots continue as one of another fleet of the plan: its state, all that it remembers, its
        inputs and properties. The others end; nothing is recorded."""
        pack, lane = divmod(robot, self._width)
        source = other._packs[pack]
        for turns in self._turns:
            while source.contact is not None and turns.scratch.simulation.room < source.contact.lanes.memory.shape[2]:
                turns.make_room(listed=False)
        lasting = source.lasting()
        for own in self._packs[: -(-robots // self._width)]:
            own.become(lasting, lane)
        tallies, found = self._tallies, other._tallies
        tallies.counters[:] = found.counters[pack]
        tallies.input_row[:], tallies.began[:] = -1, found.began[pack, lane]
        tallies.alive[:], tallies.stopped[:], tallies.stopped_dof[:], tallies.reason[:] = 1, -1, -1, RUNNING
        activation = found.activation[pack]
        tallies.activation[...] = activation[..., lane : lane + 1] if self._width > 1 else activation
        self.end(np.arange(robots, self.n))
        self._qpos[:], self._qvel[:] = other._qpos[robot], other._qvel[robot]
        self._activation[:], self._steps[:] = other._activation[robot], other._steps[pack, lane]
        for name, table in self._inputs.items():
            table[:] = other._inputs[name][robot]
        for name, values in self._massive.items():
            values[:] = other._massive[name][robot]

    # -------------------------------------------------------------- copies of a single robot in one pack

    def go_on_from(self, snapshot: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
        """Have all robots, whose properties are those of the plan, continue as a run of it of which this is a snapshot,
        with these inputs."""
        known = len(snapshot["contact"])
        for turns in self._turns:
            while known > turns.scratch.simulation.room:
                turns.make_room(listed=False)
        for pack in self._packs:
            pack.go_on_from(snapshot)
        self._steps[:] = snapshot["step"]
        for name, table in self._inputs.items():
            table[:] = inputs[name]
        self._massive["mass"][:], self._massive["centre"][:] = 1.0, 0.0

    def ready(self) -> None:
        """Have the first pack be about to take one step, unrecorded, by its kernel."""
        tallies = self._tallies
        tallies.plan[0, ROWS_OF_SAMPLE], tallies.plan[0, STEPS_TO_TAKE] = 0, 1
        tallies.counters[0, STEP_NUMBER], tallies.counters[0, STOP_REASON] = 0, RUNNING
        tallies.input_row[0], tallies.alive[0], tallies.stopped[0] = -1, 1, -1
        np.negative(self._steps[0], out=tallies.began[0])

    def make_room(self) -> None:
        """Make more room for contacts, which the first pack lacks. Raises StoppedError at the most that is allowed."""
        self._turns[0].make_room(listed=self._turns[0].scratch.lists_more())

    @property
    def arrays_of_pack(self) -> tuple[dict[str, Array], dict[str, Array], Array, Array]:
        """Of the first pack the arrays by name on which its steps depend, those of its inputs, its entry (1, 2) and the
        counters of its steps."""
        tallies = {f"tally.{name}": getattr(self._tallies, name)[0] for name in Tallies._fields[1:-1]}
        inputs = {name: table[: self._width] for name, table in self._inputs.items()}
        found = self._packs[0].lasting() | tallies
        return found, inputs, self._turns[0].entries[:1], self._tallies.counters[0]

    @property
    def found_rows(self) -> tuple[Rows, Array | None]:
        """The rows of the last step of a pack, and the shapes (k, 2) of the contacts of which some of them are."""
        scratch = self._turns[0].scratch
        return scratch.rows, None if scratch.contact is None else scratch.contact.data.shape

    def place(self, robots: Array, qpos: Array, qvel: Array, activation: Array) -> None:
        """Set the states (robots, …) of some robots, which go on from there with all that they remember."""
        for pack, lanes, own in self._in_packs(robots):
            pack.place(lanes, qpos[own], qvel[own], activation[own])
        self._qpos[robots], self._qvel[robots], self._activation[robots] = qpos, qvel, activation

    # -------------------------------------------------------------- snapshots

    def save(self) -> dict[str, Array]:
        """A snapshot of everything on which later steps depend, as plain arrays by name, for `restore` in any
        process."""
        found = self._places()
        lasting = [pack.lasting() for pack in self._packs]
        for name in lasting[0]:
            each = [own[name] for own in lasting]
            if name == _MEMORY:
                each = [_with_room(values, max(own.shape[2] for own in each)) for values in each]
            found[name] = np.stack(each)
        return {name: np.array(values) for name, values in found.items()}

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot: the following steps equal, byte for byte, those that followed it originally.

        Raises UsageError for a snapshot that does not fit; the fleet is then as it was.
        """
        self._check(snapshot)
        room = snapshot[_MEMORY].shape[3] if _MEMORY in snapshot else 0
        for turns in self._turns:
            while room > turns.scratch.simulation.room:
                turns.make_room(listed=False)
        for name, place in self._places().items():
            place[...] = snapshot[name]
        for k, pack in enumerate(self._packs):
            for name, place in pack.lasting().items():
                values = snapshot[name][k]
                place[...] = _with_room(values, place.shape[2]) if name == _MEMORY else values
        np.multiply(self._steps, self.plan.dt, out=self._time)

    def _check(self, snapshot: Mapping[str, Array]) -> None:
        """Raise UsageError for a snapshot of other arrays."""
        packs = len(self._packs)
        want = {name: values.shape for name, values in self._places().items()}
        want |= {name: (packs, *values.shape) for name, values in self._packs[0].lasting().items()}
        given = {name: np.shape(values) for name, values in snapshot.items()}
        if len(given.get(_MEMORY, ())) == len(want.get(_MEMORY, ())) == 5:
            given[_MEMORY] = (*given[_MEMORY][:3], want[_MEMORY][3], given[_MEMORY][4])
        if given != want:
            odd = next(name for name in {**want, **given} if want.get(name) != given.get(name))
            raise UsageError(
                f"snapshot: {odd} has shape {given.get(odd, 'none')}, want {want.get(odd, 'none')}; "
                "is it of other robots or settings?"
            )

    def _places(self) -> dict[str, Array]:
        """The arrays of a snapshot that are of all packs, by name."""
        found = {f"tally.{name}": values for name, values in self._tallies._asdict().items()}
        found |= {f"input.{name}": values for name, values in self._inputs.items()} | self._massive
        found |= {"qpos": self._qpos, "qvel": self._qvel, "activation": self._activation, "steps": self._steps}
        return found | {f"row.{name}": values for name, values in self.rows.items()}

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def _with_room(values: Array, room: int) -> Array:
    """The memory (2, lanes, contacts, …) of the lanes' contacts, with more room."""
    made = np.zeros((*values.shape[:2], room, values.shape[3]))
    made[:, :, : values.shape[2]] = values
    return made
