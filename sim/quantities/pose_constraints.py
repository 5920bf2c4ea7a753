"""The constraint rows that a robot has at a pose, for any motion, their J and K = J M⁻¹ Jᵀ (Delassus matrix).

Rows are couplings of joints (mimics, gears, polynomials, equalities) and of axes of balls, equalities of tendons, and
the axes that loop joints hold, hard ones and ones that give way, in the order and with the names of a run with rows for
its couplings. In full coordinates every coupling is a row, in independent ones each that elimination leaves. Contacts,
limits, friction and drives depend on the motion, and are rows of runs alone.

K is the constraint matrix of Sakalauskas, Recoil Notes, 2021, 1.2, without the compliance (cfm) of rows, which depends
on the time step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Compiled
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.constraints.kinds import AXIS_ROW, COUPLING_ROW, LOOP_ROW, TENDON_ROW
from artsim.sim.constraints.row_names import row_name
from artsim.sim.equipment.arrays import EquipmentBundle, Equipped, make_equipment_work
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import Entry, bind_movable
from artsim.sim.foundation.records import Array, Ints1, Reals1, Reals2, Reals3
from artsim.sim.quantities.catalogue import OF_CONSTRAINTS

_EQUALITY = 0  # Rows.part of an equality among the rows of a tendon


class PoseTask(NamedTuple):
    """A table of configurations, the m rows of each, and their results. n: nv, or nu if reduced.

    A result of first extent 0 is not computed.
    """

    rows: Ints1  # (2,) first row of the table, and the one after the last
    reduced: Ints1  # (1,)
    packed: Ints1  # (1,)
    kind: Ints1  # (m,) COUPLING_ROW, AXIS_ROW, TENDON_ROW or LOOP_ROW
    owner: Ints1  # (m,) number of the coupling below, of the axis in Model, of the equality or loop in Equipment
    part: Ints1  # (m,) the line of a loop's C
    follower: Ints1  # (couplings,) dof
    leader: Ints1  # (couplings,) dof, -1: none
    polynomial: Reals2  # (couplings, 5)
    chain: Ints1  # (n,) elimination tree of a dense M, where tendons have armature; otherwise empty
    chain_run: Ints1  # likewise, as Model.dof_run
    zero: Reals1  # (nv,)
    line: Reals1  # (nv,) scratch: a row in full coordinates
    loop_lines: Reals2  # (6, nv) scratch
    gradient: Reals2  # (m, n) scratch: J
    column: Reals1  # (n,) scratch
    pivot: Reals1  # (n,) scratch
    qpos: Reals2  # (N, nq)
    status: Ints1  # (N,)
    constraint_jacobian: Reals3  # (N, m, n)
    delassus: Reals3  # (N, m, m), or packed (N, 1, m (m + 1) / 2)


def pose_entry(equipped: bool) -> Entry:
    """The kernel of robots with or without equipment."""
    module, equipment = "artsim.sim.quantities.pose_gradients", EquipmentBundle if equipped else None
    return Entry("pose_constraints", module, (RobotBundle, equipment, PoseTask), "" if equipped else "_bare")


class Row(NamedTuple):
    """A constraint row: kind, number of the coupling, axis, equality or loop, and line of a loop's C."""

    kind: int
    owner: int
    part: int
    name: str


class PoseConstraints:
    """The rows of a robot, and the source of their quantities.

    Attributes:
        names: of the rows, in order.
        taken: quantities that it computes alone.
        needed: further quantities that it needs: none.
    """

    taken = OF_CONSTRAINTS
    needed: Collection[str] = ()

    def __init__(
        self, articulation: Articulation, compiled: Compiled, equipped: Equipped | None, *, reduced: bool
    ) -> None:
        self._model, self._equipped, self._reduced = compiled.model, equipped, reduced
        model = compiled.model
        self._follower = np.concatenate([model.coupling_follower, model.row_follower])
        self._leader = np.concatenate([model.coupling_leader, model.row_leader])
        self._polynomial = np.concatenate([model.coupling_polynomial, model.row_polynomial])
        rows = [*self._of_joints(articulation, compiled), *self._of_equipment()]
        self._kind, self._owner, self._part = (np.array([row[field] for row in rows], np.int64) for field in range(3))
        self.names = _told_apart([row.name for row in rows])

    def _of_joints(self, articulation: Articulation, compiled: Compiled) -> Iterator[Row]:
        """The couplings of joints and of axes of balls, each at the first of its dofs, as stepping/assembly.py has it;
        those of one dof in the order of the file."""
        model, labels = self._model, compiled.labels
        place: dict[tuple[int, int], int] = {}
        for number, coupling in enumerate(articulation.couplings):
            dofs = [labels.joint_dofs[name].start if name else -1 for name in (coupling.follower, coupling.leader)]
            place.setdefault((dofs[0], dofs[1]), number)
        found: list[tuple[int, int, int, Row]] = []
        eliminated = len(model.coupling_follower)
        for c in range(eliminated if self._reduced else 0, len(self._follower)):
            follower, leader = int(self._follower[c]), int(self._leader[c])
            row = Row(COUPLING_ROW, c, 0, row_name(COUPLING_ROW, labels.dofs[follower], 0))
            first = min(follower, leader) if leader >= 0 else follower
            found.append((first, 0, place.get((follower, leader), c), row))
        for c, (turn, dof) in enumerate(zip(model.axis_turn.tolist(), model.axis_dof.tolist(), strict=True)):
            first = min(turn, dof)
            found.append((first, 1, c, Row(AXIS_ROW, c, 0, row_name(AXIS_ROW, labels.dofs[first], 0))))
        for _, _, _, row in sorted(found, key=lambda each: each[:3]):
            yield row

    def _of_equipment(self) -> Iterator[Row]:
        if self._equipped is None:
            return
        arrays, labels = self._equipped.arrays, self._equipped.labels
        for c, tendon in enumerate(arrays.tendon_row_follower.tolist()):
            yield Row(TENDON_ROW, c, 0, row_name(TENDON_ROW, labels.tendons[tendon], _EQUALITY))
        for loop, name in enumerate(labels.loops):
            for line in np.flatnonzero(arrays.loop_held[loop]).tolist():
                yield Row(LOOP_ROW, loop, line, row_name(LOOP_ROW, name, line))

    def refuse_none(self, robot: str) -> None:
        """Raise UsageError for a robot without rows."""
        if self.names:
            return
        names = " and ".join(sorted(OF_CONSTRAINTS))
        gone = " left in independent coordinates" if self._reduced and len(self._follower) else ""
        raise UsageError(
            f"{names}: {robot!r} has no coupling, loop or tendon equality{gone}; rows of contacts, limits, friction "
            f"and drives are those of a run: --record +delassus"
        )

    @property
    def entry(self) -> Entry:
        """The kernel."""
        return pose_entry(self._equipped is not None)

    def adder(self, bounds: Array, arrays: Mapping[str, Array]) -> Callable[[], None]:
        """Make a function that computes rows bounds[0] … bounds[1] of the results in `arrays` for the inputs there, by
        name, as they are when it is called."""
        model, equipped = self._model, self._equipped
        robot = RobotBundle(model, make_state(model), make_workspace(model))
        equipment = None
        if equipped is not None:
            work = make_equipment_work(model, equipped.arrays, equipped.activations)
            equipment = EquipmentBundle(equipped.arrays, work)
        task = self._task()
        call, put = bind_movable(self.entry, 1, robot, equipment, task)

        def compute() -> None:
            for name in {"qpos", "status", *self.taken}.intersection(arrays):
                values = arrays[name]
                if name == "delassus":
                    task.packed[0] = values.ndim == 2
                    values = values.reshape(len(values), 1, values.shape[1]) if values.ndim == 2 else values
                put(name, values)
            task.rows[:] = bounds
            call()

        return compute

    def _task(self) -> PoseTask:
        """A task with scratch of its own and without a table."""
        model = self._model
        nv, m = len(model.dof_body), len(self.names)
        n = len(model.independent_dof) if self._reduced else nv
        dense = self._equipped is not None and bool((self._equipped.arrays.tendon_armature > 0).any())
        return PoseTask(
            rows=np.zeros(2, np.int64),
            reduced=np.array([self._reduced], np.int64),
            packed=np.zeros(1, np.int64),
            kind=self._kind,
            owner=self._owner,
            part=self._part,
            follower=self._follower,
            leader=self._leader,
            polynomial=self._polynomial,
            chain=np.arange(-1, n - 1) if dense else np.zeros(0, np.int64),
            chain_run=np.zeros(n if dense else 0, np.int64),
            zero=np.zeros(nv),
            line=np.zeros(nv),
            loop_lines=np.zeros((6, nv)),
            gradient=np.zeros((m, n)),
            column=np.zeros(n),
            pivot=np.zeros(n),
            qpos=np.zeros((0, len(model.body_coord))),
            status=np.zeros(0, np.int64),
            constraint_jacobian=np.zeros((0, m, n)),
            delassus=np.zeros((0, m, m)),
        )


def _told_apart(names: list[str]) -> tuple[str, ...]:
    """The names, with numbers for the second and later ones of a name: `coupling:a`, `coupling:a.2`."""
    seen: Counter[str] = Counter()
    told = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return tuple(told)
