"""The recorded rows of a call of the engine: the room for them, their values, and those that are not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import isfinite

import numpy as np

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array, allocate
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import STEPS_PER_ROW, TABLES, TABLES_OF, Block
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.allocation import block_shapes

_BLOCK_BYTES = 1 << 20
_CONTACT_BYTES = 160  # per recorded contact
_MOST_ENTRIES = 1 << 22  # of K in a step
MAY_BE_INFINITE = ("solver_residual",)  # where the solver did not converge at all


@dataclass(frozen=True)
class BlockOfRows:
    """Recorded rows by name, and the inputs of a Python controller that began in them.

    `tables` holds run_records.TABLES, where recorded: a count per row, and the table of all rows one after the other.
    """

    rows: dict[str, Array]
    controls: Controls | None = None
    tables: dict[str, Array] = field(default_factory=dict)

    def copied(self) -> BlockOfRows:
        """The same rows in arrays of their own."""
        rows, tables = ({name: values.copy() for name, values in of.items()} for of in (self.rows, self.tables))
        return BlockOfRows(rows, self.controls, tables)

    def odd_entries(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        """The first entry that is not finite of each variable that has any: its row, the variable, and its place in the
        row, which is () in a table.

        Velocities are checked in every step, but quantities computed from them can still overflow.
        """
        counted_by = {name: count for count in TABLES if count in self.tables for name in TABLES[count]}
        for name, values in (*self.rows.items(), *self.tables.items()):
            if name in MAY_BE_INFINITE or (place := first_odd(values)) is None:
                continue
            if name in counted_by:
                ends = np.cumsum(self.tables[counted_by[name]])
                yield int(np.searchsorted(ends, place[0], "right")), name, ()
            else:
                yield place[0], name, place[1:]

    def up_to(self, row: int) -> BlockOfRows:
        """The rows before this one."""
        tables = {name: values[:row] for name, values in self.tables.items()}
        for count in tables.keys() & TABLES.keys():
            size = int(tables[count].sum())
            tables |= {name: self.tables[name][:size] for name in TABLES[count]}
        return BlockOfRows({name: values[:row] for name, values in self.rows.items()}, self.controls, tables)


def joined(parts: Sequence[BlockOfRows], controls: Controls) -> BlockOfRows:
    """The rows of several blocks, one after the other, with the inputs that began in them."""
    rows, tables = (
        {name: np.concatenate([part[name] for part in of]) for name in of[0]}
        for of in ([part.rows for part in parts], [part.tables for part in parts])
    )
    return BlockOfRows(rows, controls, tables)


def owner_of(robot: Robot, name: str, place: tuple[int, ...]) -> str:
    """The text ` of 'elbow'` if the entries of a variable are dofs or links."""
    if place and name.startswith(("link_", "incoming_", "contact_")):
        return f" of {robot.labels.links[place[0]]!r}"
    if place and name.startswith(("tau_", "q")) and name != "qpos":
        return f" of {robot.dofs[place[0]]!r}"
    return ""


def first_odd(values: Array) -> tuple[int, ...] | None:
    """The first entry that is not finite, or None. A sum is the cheapest test, but can itself overflow."""
    if values.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if isfinite(values.sum()):
            return None
    odd = np.argwhere(~np.isfinite(values))
    return tuple(int(index) for index in odd[0]) if len(odd) else None


# ------------------------------------------------------------------ the engine's block


def rows_of_block(plan: Plan) -> int:
    """The number of rows that a block holds, by the size of the widest."""
    config, shapes = plan.config, block_shapes(plan.robot.model, plan.equipped)
    widest = max((8 * int(np.prod(shapes.get(name, ()))) for name in config.record), default=8)
    return max(1, min(_BLOCK_BYTES // max(widest, 8), -(-config.steps // config.every)))


def make_block(plan: Plan, rows: int, contacts: int, constraints: int) -> Block:
    """Allocate a block of so many rows; `contacts`, `constraints`: the most contacts and constraint rows of a step."""
    config, shapes = plan.config, block_shapes(plan.robot.model, plan.equipped)
    wanted = {name: (rows if name in config.record else 0, *shapes[name]) for name in shapes}
    for recorded in config.record:
        for count in TABLES_OF.get(recorded, ()):
            size = _table_room(count, contacts, constraints)
            wanted |= {name: (size, *shapes[name]) for name in TABLES[count]} | {count: (rows,)}
    block: Block = allocate(Block, {**wanted, "plan": (4,), "contacts": (1,), "constraints": (2,)})
    block.plan[STEPS_PER_ROW] = config.every
    return block


def _table_room(count: str, contacts: int, constraints: int) -> int:
    """Rows of a recorded table in a block. Raises UsageError where one step could need too many."""
    if count == "contact_count":
        return max(contacts, _BLOCK_BYTES // _CONTACT_BYTES)
    most = constraints * (constraints + 1) // 2
    if most > _MOST_ENTRIES:
        raise UsageError(
            f"delassus is not recorded: a step could have {constraints} constraint rows, with {most} entries of K, "
            f"more than {_MOST_ENTRIES}; see --no-contacts and --max-contacts"
        )
    return most + (_BLOCK_BYTES >> 6) if count == "entry_count" else constraints + (_BLOCK_BYTES >> 9)


def rows_in(block: Block, record: Sequence[str], count: int) -> BlockOfRows:
    """Views of the first `count` rows of a block, of the variables in `record`."""
    rows = {name: getattr(block, name)[:count] for name in record if name not in TABLES_OF}
    tables: dict[str, Array] = {}
    for counted in (counted for name in record for counted in TABLES_OF.get(name, ())):
        tables[counted] = getattr(block, counted)[:count]
        size = int(tables[counted].sum())
        tables |= {name: getattr(block, name)[:size] for name in TABLES[counted]}
    return BlockOfRows(rows, tables=tables)
