"""PoseSearch: inverse kinematics for tables of poses, by packs of 8 and threads over pieces of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Compiled
from artsim.sim.articulation.narrowed_limits import finite_range, narrowed_limits
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.equipment.arrays import EquipmentBundle, Equipped, make_equipment_work
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.jit import Entry, bind_movable, disabled
from artsim.sim.foundation.pieces import compute_in_pieces
from artsim.sim.foundation.records import WIDTH, Array, allocate
from artsim.sim.foundation.rotations import Real
from artsim.sim.ik.columns import chain_of, moving_dofs, tied
from artsim.sim.ik.search_records import (
    ERRORS,
    LOOK,
    MASS,
    NOT_REACHED,
    OPEN,
    POSE,
    REACHED,
    LoopLanes,
    Poses,
    Search,
    SearchTask,
    Targets,
    search_entry,
    search_shapes,
)
from artsim.sim.ik.wanted_poses import WORLD, Target, check_target

STATUS_MEANING = {
    REACHED: "reached",
    NOT_REACHED: "not reached: the nearest configuration that was found",
    OPEN: "not reached, and a loop or coupling stays open",
}
ERROR_NAMES = ("position_error", "rotation_error", "constraint_error")
CLOSED = 1e-10  # [m or rad] error of a constraint at a result
_DRAWS = 1024  # configurations from which restarts are made
_PIECE = 256  # rows that a thread takes at a time

Worker = tuple[Array, Callable[[], None], Callable[[str, Array], None]]


class PoseSearch:
    """The search of configurations for the poses of some links, checked and ready.

    Attributes:
        targets: as given; their tables are not used here.
        moved: names of the independent dofs that move.
        errors: names of the errors that a result has, of ERROR_NAMES.
        path: True if each row starts where the one before it ended.
    """

    def __init__(
        self,
        compiled: Compiled,
        equipped: Equipped | None,
        targets: Sequence[Target],
        *,
        move: Sequence[str] | None = None,
        posture: Mapping[str, float] | None = None,
        most: Real | None = None,
        tolerance: Sequence[float] = (1e-6, 1e-6),
        closed: float = CLOSED,
        attempts: int = 100,
        iterations: int = 50,
        seed: int = 0,
        path: bool = False,
    ) -> None:
        """Check the request.

        Args:
            move: names of the joints that may move; None: all that move the targets, or loops that these move.
            posture: coordinates by name that are wished for where the targets leave a choice.
            most: (nv,) largest distance of coordinates from a row's own start; None: any.
            tolerance: of positions [m] and rotations [rad].
            closed: tolerance of loops and couplings [m or rad].
            attempts, iterations: number of starts of a row, and of steps from each.
            path: each row starts where the one before it ended.

        Without targets all loops and couplings are closed.

        Raises UsageError: an unknown link or joint, a joint whose limits the search does not keep, a target that
        nothing moves, a number out of bounds.
        """
        self._compiled, self._equipped, self.targets, self.path = compiled, equipped, tuple(targets), path
        model, labels = compiled.model, compiled.labels
        for target in self.targets:
            check_target(target, labels.links)
        _check_numbers(tolerance, attempts, iterations, seed)
        self._tolerance = np.array([*map(float, tolerance), closed])
        self._counts = np.array([attempts]), np.array([iterations])
        moving = moving_dofs(compiled, move)
        chains = [self._chain(target) for target in self.targets]
        for target, chain in zip(self.targets, chains, strict=True):
            if not any(moving[k] for k, _ in chain):
                which = "no joint moves it" if move is None else f"none of {', '.join(move)} moves it"
                raise UsageError(f"target {target}: {which}")
        need, self._held = tied(
            compiled, equipped, {k for chain in chains for k, _ in chain}, moving, everything=not targets
        )
        if not need:
            raise UsageError("no loop or coupling is there that these joints close")
        self._columns = model.independent_dof[sorted(need)]
        self._dof_column = np.full(len(labels.dofs), -1, np.int64)
        for n, column in enumerate(sorted(need)):
            self._dof_column[model.dof_independent == column] = n
        self._entries = [[entry for entry in chain if self._dof_column[entry[0]] >= 0] for chain in chains]
        self.moved = tuple(labels.dofs[k] for k in self._columns)
        wanted = (any(t.places for t in targets), any(t.turns for t in targets), self._held.any)
        self.errors = tuple(name for name, asked in zip(ERROR_NAMES, wanted, strict=True) if asked)
        self._set_limits()
        self._most = np.full(len(self._columns), np.inf) if most is None else most[self._columns]
        self._posture = self._postures(posture or {})
        self._draw = self._drawn(seed)
        self._offset = np.zeros(1, np.int64)
        self.width = 1 if disabled() else WIDTH
        self._workers: list[Worker] = []

    @property
    def entry(self) -> Entry:
        """The kernel."""
        return search_entry(bool(self._held.loops))

    @property
    def memory(self) -> int:
        """Bytes of its scratch, roughly: the matrices of a pack, and the draws."""
        return 64 * (8 * len(self._dof_column) ** 2 + 1024) + self._draw.nbytes

    def solve(
        self, position: Real, quaternion: Real, start: Real, threads: int = 1, first: int = 0
    ) -> dict[str, Array]:
        """Find configurations for positions (N, nt, 3) and unit quaternions (N, nt, 4) from starts (N or 1, nq).

        `first`: the number of the first row, on which draws depend.

        Returns qpos (N, nq), status (N,), the errors (N,), iterations and attempts (N,); of a path also the `jump`
        (N,), the largest change of a coordinate since the row before [rad or m].
        """
        rows = len(position)
        self._offset[0] = first
        tables: dict[str, Array] = {
            "position": np.ascontiguousarray(position),
            "quaternion": np.ascontiguousarray(quaternion),
            "start": np.ascontiguousarray(start),
            "qpos": np.empty((rows, start.shape[1])),
            "error": np.empty((rows, ERRORS)),
            **{name: np.empty(rows, np.int64) for name in ("status", "iterations", "attempts")},
        }
        threads = 1 if self.path else max(1, threads)
        while len(self._workers) < threads:
            self._workers.append(self._bound())
        for _, _, put in self._workers[:threads]:
            for name, values in tables.items():
                put(name, values)
        if rows:
            workers = [(bounds, call) for bounds, call, _ in self._workers[:threads]]
            compute_in_pieces(workers, rows, rows if self.path else _PIECE)
        found = {name: tables[name] for name in ("qpos", "status")}
        if self.path:
            found["jump"] = self._jumps(tables["qpos"], tables["start"])
        else:
            self.unwind(tables["qpos"], tables["start"])
        found |= {name: tables["error"][:, ERROR_NAMES.index(name)].copy() for name in self.errors}
        return found | {name: tables[name] for name in ("iterations", "attempts")}

    def other_starts(self, start: Real, rows: Array, number: int) -> Real:
        """Drawn starts (len(rows), nq) for rows of these numbers, other ones for each `number`; coordinates that do not
        move are those of start (1 or len(rows), nq)."""
        place = (rows * 7919 + number * 104729 + 1) % _DRAWS
        task, made = self._task(np.zeros(2, np.int64)), np.repeat(start, len(rows) // len(start), axis=0)
        for a, coord in enumerate(task.coord.tolist()):
            if coord >= 0:
                low, high = task.draw_low[a], task.draw_high[a]
                made[:, coord] = low + (high - low) * self._draw[place, coord]
        for coord in task.turn_coord.tolist():
            made[:, coord : coord + 4] = self._draw[place, coord : coord + 4]
        return made

    def _chain(self, target: Target) -> list[tuple[int, float]]:
        """The dofs that move a target in its frame, and 1 or, for those that move the frame, -1."""
        model, labels = self._compiled.model, self._compiled.labels
        if target.link is None:
            return [(k, 1.0) for k in range(len(labels.dofs))]
        chains = [
            chain_of(model, int(model.link_body[labels.links.index(link)])) if link != WORLD else []
            for link in (target.link, target.frame)
        ]
        both = {*chains[0]} & {*chains[1]}  # which move link and frame alike
        return [(k, sign) for chain, sign in zip(chains, (1.0, -1.0), strict=True) for k in chain if k not in both]

    def _bound(self) -> Worker:
        """The rows of a worker, the function that computes them, and the function that replaces a table."""
        model, width = self._compiled.model, self.width
        nq, nv, n, nt = int(model.body_coord[-1]), len(model.dof_body), len(self._columns), len(self.targets)
        rows = np.zeros(2, np.int64)
        robot = RobotBundle(model, make_state(model, width), make_workspace(model, width))
        equipment = None
        if self._held.loops and self._equipped is not None:
            arrays = self._equipped.arrays
            work = make_equipment_work(model, arrays, self._equipped.activations, LoopLanes, width)
            equipment = EquipmentBundle(arrays, work)
        search = allocate(Search, search_shapes(nq, nv, n, nt, width), width)
        empty = Poses(
            start=np.zeros((0, nq)),
            position=np.zeros((0, nt, 3)),
            quaternion=np.zeros((0, nt, 4)),
            qpos=np.zeros((0, nq)),
            status=np.zeros(0, np.int64),
            error=np.zeros((0, ERRORS)),
            iterations=np.zeros(0, np.int64),
            attempts=np.zeros(0, np.int64),
        )
        call, put = bind_movable(
            self.entry, width, robot, equipment, search, self._task(rows), self._target_arrays(), empty
        )
        return rows, call, put

    def _task(self, rows: Array) -> SearchTask:
        model, n = self._compiled.model, len(self._columns)
        ranges = [
            finite_range(low, high, bool(model.dof_linear[k]))
            for k, low, high in zip(self._columns, self._low.tolist(), self._high.tolist(), strict=True)
        ]
        turns = self._turns()
        bounded = np.isfinite(self._low) & np.isfinite(self._high) & np.isinf(self._most)
        return SearchTask(
            rows=rows,
            offset=self._offset,
            attempts=self._counts[0],
            iterations=self._counts[1],
            tolerance=self._tolerance,
            path=np.array([self.path], np.int64),
            settles=np.array([self._posture[1].any()], np.int64),
            body=self._bodies(),
            weighs=np.array([any(target.link is None for target in self.targets)], np.int64),
            coord=model.dof_coord[self._columns],
            low=self._low,
            high=self._high,
            draw_low=np.array([low for low, _ in ranges]),
            draw_high=np.array([high for _, high in ranges]),
            most=self._most,
            period=np.where(self._turns_alike() & bounded, 2.0 * math.pi, 0.0),
            posture=self._posture[0],
            posture_weight=self._posture[1],
            turn_column=np.array([column for column, _ in turns], np.int64),
            turn_coord=np.array([coord for _, coord in turns], np.int64),
            draw=self._draw,
            parent=np.arange(-1, n - 1),
            run=np.zeros(n, np.int64),
            dof_column=self._dof_column,
            coupling=np.array(self._held.couplings, np.int64),
            axis=np.array(self._held.axes, np.int64),
            loop=np.array(self._held.loops, np.int64),
        )

    def _target_arrays(self) -> Targets:
        links = self._compiled.labels.links
        moved = [sorted({int(self._dof_column[dof]) for dof, _ in entries}) for entries in self._entries]
        moved.append([*range(len(self._columns))])
        flat = [entry for entries in self._entries for entry in entries]
        kinds = [MASS if t.link is None else LOOK if t.look_at is not None else POSE for t in self.targets]
        weights = [(t.places * t.weight, t.turns * t.rotation_weight) for t in self.targets]
        return Targets(
            kind=np.array(kinds, np.int64),
            link=np.array([-1 if t.link is None else links.index(t.link) for t in self.targets], np.int64),
            reference=np.array([-1 if t.frame == WORLD else links.index(t.frame) for t in self.targets], np.int64),
            axis=np.array([_unit(t.axis) for t in self.targets], float).reshape(-1, 3),
            weight=np.array(weights, float).reshape(-1, 2),
            entry=np.cumsum([0, *map(len, self._entries)]),
            entry_dof=np.array([dof for dof, _ in flat], np.int64),
            entry_column=self._dof_column[[dof for dof, _ in flat]],
            entry_sign=np.array([sign for _, sign in flat], float),
            first=np.cumsum([0, *map(len, moved)]),
            column=np.array([column for columns in moved for column in columns], np.int64),
        )

    def _bodies(self) -> Array:
        """The bodies to be placed, parents first: those on the ways to the targets, or all."""
        model, links = self._compiled.model, self._compiled.labels.links
        if self._held.loops or any(target.link is None for target in self.targets):
            return np.arange(1, len(model.body_parent))
        found = set()
        for target in self.targets:
            for link in (target.link, target.frame):
                body = int(model.link_body[links.index(link)]) if link in links else 0
                while body > 0:
                    found.add(body)
                    body = int(model.body_parent[body])
        return np.array(sorted(found), np.int64)

    def _set_limits(self) -> None:
        """Set the bounds of the columns. Raises UsageError: a follower cannot keep its own."""
        model, labels = self._compiled.model, self._compiled.labels
        low, high, hopeless = narrowed_limits(model, self._compiled.reference)
        for follower in hopeless:
            if self._dof_column[follower] >= 0:
                raise UsageError(f"{labels.dofs[follower]} follows another joint, and has limits that it keeps nowhere")
        self._low, self._high = low[self._columns], high[self._columns]

    def _postures(self, posture: Mapping[str, float]) -> tuple[Real, Real]:
        """Coordinates (n,) wished for, and their weights. Raises UsageError."""
        model, labels = self._compiled.model, self._compiled.labels
        wished, weight = np.zeros(len(self._columns)), np.zeros(len(self._columns))
        coords = model.dof_coord[self._columns].tolist()
        if not isinstance(posture, Mapping):
            raise UsageError(f"posture is {posture!r}, want coordinates by name")
        for name, value in posture.items():
            if name not in labels.coords:
                raise UsageError(f"posture: {name!r} is not a coordinate of this robot{nearest(name, labels.coords)}")
            if not _is_number(value) or not math.isfinite(value):
                raise UsageError(f"posture: {name} is {value!r}, want a finite number")
            coord = labels.coords.index(name)
            if coord not in coords:
                raise UsageError(f"posture: {name} does not move here; those that do: {', '.join(self.moved)}")
            wished[coords.index(coord)], weight[coords.index(coord)] = value, 1.0
        return wished, weight

    def _turns(self) -> list[tuple[int, int]]:
        """First column and first entry of the quaternion of each ball or free joint that moves."""
        model, found = self._compiled.model, []
        for column, k in enumerate(self._columns.tolist()):
            body = int(model.dof_body[k])
            free = int(model.joint_type[body]) == FREE
            if model.joint_type[body] in (BALL, FREE) and k == int(model.body_dof[body]) + 3 * free:
                found.append((column, int(model.body_coord[body]) + 3 * free))
        return found

    def _turns_alike(self) -> Array:
        """True (n,) for columns whose full turn leaves the pose as it is: they turn, no other dof follows them, and the
        range is wide enough."""
        model, held = self._compiled.model, self._held
        tied_by_rows = {*model.row_follower[held.couplings].tolist(), *model.row_leader[held.couplings].tolist()}
        tied_by_rows |= {*model.axis_dof[held.axes].tolist()}
        alone = np.array(
            [
                k not in tied_by_rows and np.count_nonzero(model.dof_independent == model.dof_independent[k]) == 1
                for k in self._columns.tolist()
            ],
            bool,
        )
        turning = (model.dof_linear[self._columns] == 0) & (model.dof_coord[self._columns] >= 0)
        wide: Array = alone & turning & (self._high - self._low >= 2.0 * math.pi)
        return wide

    def _endless(self) -> list[int]:
        """The coordinates that turn without limits."""
        endless = self._turns_alike() & np.isinf(self._low) & np.isinf(self._high)
        coords: list[int] = self._compiled.model.dof_coord[self._columns[endless]].tolist()
        return coords

    def unwind(self, qpos: Real, start: Real) -> None:
        """Take whole turns off joints without limits: a result is within half a turn of its start."""
        for coord in self._endless():
            qpos[:, coord] -= 2.0 * math.pi * np.round((qpos[:, coord] - start[:, coord]) / (2.0 * math.pi))

    def _jumps(self, qpos: Real, start: Real) -> Real:
        """The largest change (N,) of a coordinate from row to row."""
        moved = [coord for coord in self._compiled.model.dof_coord[self._columns].tolist() if coord >= 0]
        before = np.concatenate([start[:1], qpos[:-1]])
        jumps: Real = np.abs(qpos - before)[:, moved].max(axis=1, initial=0.0)
        return jumps

    def _drawn(self, seed: int) -> Real:
        """SearchTask.draw."""
        model = self._compiled.model
        generator = np.random.Generator(np.random.Philox(key=seed))
        draw = generator.random((_DRAWS, int(model.body_coord[-1])))
        for _, coord in self._turns():
            turn = generator.standard_normal((_DRAWS, 4))
            draw[:, coord : coord + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        return draw


def _unit(axis: Sequence[float]) -> Real:
    unit: Real = np.asarray(axis, float) / np.linalg.norm(axis)
    return unit


def _check_numbers(tolerance: Sequence[float], attempts: int, iterations: int, seed: int) -> None:
    pair = isinstance(tolerance, Sequence | np.ndarray) and len(tolerance) == 2
    if not pair or not all(_is_number(value) and 1e-12 <= value < math.inf for value in tolerance):
        raise UsageError(f"tolerance is {tolerance!r}, want two numbers from 1e-12 [m, rad]")
    for name, count in (("attempts", attempts), ("iterations", iterations)):
        if not (_is_whole(count) and 1 <= count <= 1 << 20):
            raise UsageError(f"{name} is {count!r}, want a whole number from 1 to {1 << 20}")
    if not (_is_whole(seed) and 0 <= seed < 2**64):
        raise UsageError(f"seed is {seed!r}, want a whole number from 0 to 2^64 - 1")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float | np.floating)
