"""The equations of a step of copies at its solution, from starts beside that of the solution, in a pack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from artsim.sim.foundation.records import Array, aligned_zeros
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.run_data.run_records import ALL_ROWS, EVALUATION, STIFFENED, Rows
from artsim.sim.runs.copied_steps import Ends, Starts
from artsim.sim.runs.pack import Pack
from artsim.sim.runs.row_states import RowStates, lane_states
from artsim.sim.stepping.equations import ROWS, SHAPES, Equations

_PER_ROW = ("gap", "cfm", "lower", "upper", "slope", "shifting", "miss", "rate")


class Solution(NamedTuple):
    """The velocities and impulses that a step has found, and its rows."""

    next: Real  # (nu,) u⁺
    impulse: Real  # (m,) λ
    kind: Array  # (m,) as in Rows, with the two below
    part: Array
    cone: Array
    system: Real  # (nu, nu) M̂
    jacobian: Real  # (m, nu) J
    nearest: float  # as in Equations
    follows: bool  # True if the bias acts at velocities that follow those found, or on bodies that are stiffened
    end: Ends  # (1, …) the state to which the step leads


class Tables(NamedTuple):
    """The equations of n starts, as in stepping/equations.py."""

    balance: Real  # (n, nu)
    gap: Real  # (n, m), as those below
    cfm: Real
    lower: Real
    upper: Real
    slope: Real
    shifting: Real
    miss: Real
    rate: Real


class InPack(Protocol):
    """Copies of a run in a pack (copied_packs.py)."""

    def step(self, starts: Starts) -> Ends:
        """The ends of n copies."""

    def parts(self, starts: Starts) -> Iterator[tuple[Array, Starts]]:
        """The starts that one call can take, with their numbers."""

    @property
    def solved(self) -> tuple[Pack, Rows]:
        """The pack, with the results of the step that its lanes took last, and its rows."""

    def make_room(self, groups: int) -> tuple[Array, Array]:
        """Make room for groups of starts; the number of the group that is taken, and the pack's entry."""

    def run_instead(self, entry: Array, starts: Starts) -> bool:
        """Run another kernel of the pack in place of its step; False where contacts lack room."""


class CopiedEquations:
    """Takes the step of a run, and tells its equations from other starts."""

    def __init__(self, copies: InPack) -> None:
        self._copies = copies
        self._entry = np.zeros((1, 2), np.int64)
        self._of: Array | None = None  # the entry of the pack for which `_equations` was made
        self._equations: Equations
        self._cone = np.zeros(0, np.int64)
        self._end: Ends
        self.states: RowStates = frozenset()  # of the solution's rows

    def solve(self, start: Starts) -> None:
        """Take the step from the run's own start, whose velocities and impulses are then those of the solution. Raises
        StoppedError where it stops."""
        self._end = self._copies.step(start)
        pack, rows = self._copies.solved
        shapes = np.zeros((0, 2), np.int64) if pack.contact is None else self._shapes(pack.contact)
        m, groups = int(rows.number[ALL_ROWS]), 1
        self._make(groups, m, len(shapes))
        found, step = self._equations, pack.step
        found.number[ROWS], found.number[SHAPES] = m, len(shapes)
        for name in ("kind", "dof", "part", "impulse"):
            getattr(found, name)[:m] = getattr(rows, name)[:m]
        found.shape[: len(shapes)] = shapes
        if pack.contact is not None:
            found.most_grip[: len(shapes)] = pack.contact.data.most_grip[: len(shapes)]
        for name in ("next", "pressed", "drive_held"):
            getattr(found, name)[...] = getattr(step, name)
        self._cone = rows.cone[:m].copy()
        self.states = lane_states(rows, shapes, 1)[0]
        taut = step.counters[EVALUATION] == STIFFENED
        self._follows = bool(
            taut or (self._of_lane(step.follows)[0] > 0.0 and self._of_lane(step.evaluations)[0] > 1.5)
        )

    @staticmethod
    def _shapes(contact: Any) -> Array:
        shapes: Array = contact.data.shape[: int(contact.data.number[CONTACTS])]
        return shapes

    def of(self, starts: Starts) -> Tables | None:
        """The equations of n starts; None where some have other rows. The first start is that of the solution."""
        n, m = len(starts.qpos), int(self._equations.number[ROWS])
        nu = len(self._equations.next)
        tables = Tables(np.empty((n, nu)), *(np.empty((n, m)) for _ in _PER_ROW))
        for rows, part in self._copies.parts(starts):
            groups = -(-len(rows) // self._lanes)
            self._make(groups, m, int(self._equations.number[SHAPES]))
            found = self._equations
            if not self._copies.run_instead(self._entry, part) or not found.fits[:groups].all():
                return None
            for name, place in zip(tables._fields, tables, strict=True):
                values = self._by_start(getattr(found, name)[:groups])
                place[rows] = values[: len(rows), : place.shape[1]]
            if rows[0] == 0:
                self._system = self._of_lane(found.system).copy()
                self._jacobian = self._of_lane(found.jacobian)[:m].copy()
                self._nearest = float(self._of_lane(found.nearest)[0])
        return tables

    @property
    def next(self) -> Real:
        """The velocities u⁺ (nu,) of the solution."""
        return self._of_lane(self._equations.next)

    @property
    def rows(self) -> int:
        """The number of rows of the solution."""
        return len(self._cone)

    @property
    def solution(self) -> Solution:
        """The solution, once the equations of its own start have been found."""
        found, m = self._equations, self.rows
        impulse = self._of_lane(found.impulse)[:m]
        matrices = self._system, self._jacobian
        return Solution(
            self.next,
            impulse,
            found.kind[:m],
            found.part[:m],
            self._cone,
            *matrices,
            self._nearest,
            self._follows,
            self._end,
        )

    # -------------------------------------------------------------- the record

    @property
    def _lanes(self) -> int:
        width: int = self._copies.solved[0].width
        return width

    def _of_lane(self, values: Real) -> Real:
        return values[..., 0] if self._lanes > 1 else values

    def _by_start(self, values: Real) -> Real:
        """Values (groups, entries[, lanes]) of starts (groups · lanes, entries)."""
        if self._lanes == 1:
            return values
        return values.swapaxes(1, 2).reshape(-1, values.shape[1])

    def _make(self, groups: int, rows: int, shapes: int) -> None:
        """Make a record with room for these numbers, and connect the kernel with it; the solution is kept."""
        group, entry = self._copies.make_room(groups)
        before = self._equations if self._of is not None else None
        if before is not None and self._of is entry and before.group is group:
            room = len(before.fits), len(before.kind), len(before.shape)
            if groups <= room[0] and rows <= room[1] and shapes <= room[2]:
                return
        pack, _ = self._copies.solved
        step, lanes = pack.step, (pack.width,) if pack.width > 1 else ()
        nu = len(step.next)
        groups, rows, shapes = (2 * max(number, 1) for number in (groups, rows, shapes))
        made = Equations(
            group=group,
            number=np.zeros(2, np.int64),
            kind=np.zeros(rows, np.int64),
            dof=np.zeros(rows, np.int64),
            part=np.zeros(rows, np.int64),
            shape=np.zeros((shapes, 2), np.int64),
            next=aligned_zeros(step.next.shape),
            impulse=aligned_zeros((rows, *lanes)),
            pressed=aligned_zeros(step.pressed.shape),
            drive_held=aligned_zeros(step.drive_held.shape),
            most_grip=aligned_zeros((shapes, *lanes)),
            system=aligned_zeros((nu, nu, *lanes)),
            jacobian=aligned_zeros((rows, nu, *lanes)),
            nearest=aligned_zeros((1, *lanes)),
            fits=np.zeros(groups, np.int64),
            balance=aligned_zeros((groups, nu, *lanes)),
            **{name: aligned_zeros((groups, rows, *lanes)) for name in _PER_ROW},
        )
        if before is not None:
            _keep(before, made)
        self._equations, self._of = made, entry
        pack.tell_equations(self._entry[0], made)


def _keep(before: Equations, made: Equations) -> None:
    """Copy the solution into a record with more room."""
    for name in ("number", "kind", "dof", "part", "shape", "next", "impulse", "pressed", "drive_held", "most_grip"):
        values = getattr(before, name)
        getattr(made, name)[: len(values)] = values[: len(getattr(made, name))]
