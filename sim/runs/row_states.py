"""The states of a step's constraint rows: which press, slide or stick; by them two steps are told to have one set."""

from __future__ import annotations

from math import hypot
from typing import NamedTuple

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.constraints.row_names import row_name
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import ALL_ROWS, Rows
from artsim.sim.runs.constraint_names import constraint_owners
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation

HOLDS, AT_LOWER, AT_UPPER, SLIDES = "holds", "at its lower bound", "at its upper bound", "slides"
_AT_BOUND = 1e-9  # share of the step's largest impulse up to which a bound counts as reached


class RowState(NamedTuple):
    """A constraint row, or a contact, that exerts a force in a step."""

    kind: int
    owner: int  # Rows.dof; of contacts: the first shape
    part: int  # Rows.part; of contacts: the second shape
    number: int  # of contacts: which of those of the two shapes
    state: str
    edges: int = 0  # of a contact whose cone is a pyramid: its edges that press, as bits


RowStates = frozenset[RowState]


class _Lists(NamedTuple):
    """Rows of one robot as lists, which Python reads faster than arrays."""

    kind: list[int]
    dof: list[int]
    part: list[int]
    cone: list[int]
    lower: list[float]
    upper: list[float]
    slope: list[float]
    impulse: list[float]


def row_states(run: Simulation) -> RowStates:
    """The rows and contacts that exert forces in the last step of a run. Empty in maximal coordinates, whose rows are
    not kept."""
    rows, contact = run.found_rows
    return _states(_lists(rows), None if contact is None else contact.data.shape)


def lane_states(rows: Rows, shapes: Array | None, lanes: int) -> list[RowStates]:
    """The rows and contacts that exert forces in the last step of the first lanes of a pack; `shapes` (k, 2): of the
    contacts that it lists."""
    if rows.impulse.ndim == 1:
        return [_states(_lists(rows), shapes)]
    return [_states(_lists(rows, lane), shapes) for lane in range(lanes)]


def _lists(rows: Rows, lane: int | None = None) -> _Lists:
    count = int(rows.number[ALL_ROWS])
    own = slice(count) if lane is None else (slice(count), lane)
    shared = [getattr(rows, name)[:count].tolist() for name in _Lists._fields[:4]]
    return _Lists(*shared, *(getattr(rows, name)[own].tolist() for name in _Lists._fields[4:]))


def _states(rows: _Lists, shapes: Array | None) -> RowStates:
    found, seen, count = list[RowState](), dict[tuple[int, int], int](), len(rows.kind)
    least = _AT_BOUND * max(map(abs, rows.impulse), default=0.0)
    n = 0
    while n < count:
        kind, owner, part = rows.kind[n], rows.dof[n], rows.part[n]
        end, number, edges = n + max(rows.cone[n], 1), 0, 0
        if shapes is not None and kind == CONTACT_ROW:
            while end < count and rows.kind[end] == CONTACT_ROW and rows.dof[end] == owner:
                end += 1
            owner, part = (int(shape) for shape in shapes[owner])
            number = seen[owner, part] = seen.get((owner, part), -1) + 1
        if rows.cone[n] > 0:
            state = _cone_state(rows, n, least)
        elif end > n + 1:
            state, edges = _pyramid_state(rows, n, end, least)
        else:
            state = _bound_state(rows, n, least)
        if state:
            found.append(RowState(kind, owner, part, number, state, edges))
        n = end
    return frozenset(found)


def _pyramid_state(rows: _Lists, n: int, end: int, least: float) -> tuple[str, int]:
    """The state of a contact by the edges of its pyramid: it slides where one of two opposite edges does not press."""
    presses = [rows.impulse[k] > least for k in range(n, end)]
    edges = sum(1 << k for k, pressed in enumerate(presses) if pressed)
    return ("" if not edges else HOLDS if all(presses) else SLIDES), edges


def _cone_state(rows: _Lists, n: int, least: float) -> str:
    normal = rows.impulse[n]
    if normal <= least:
        return ""
    along = hypot(*rows.impulse[n + 1 : n + rows.cone[n]])
    bound = rows.slope[n] * normal
    return SLIDES if along >= bound - _AT_BOUND * (bound + normal) else HOLDS


def _bound_state(rows: _Lists, n: int, least: float) -> str:
    """The state of a row with bounds; empty for a one-sided row that exerts nothing."""
    impulse, lower, upper = rows.impulse[n], rows.lower[n], rows.upper[n]
    if impulse <= lower + least:
        return "" if lower == 0.0 else AT_LOWER
    if impulse >= upper - least:
        return "" if upper == 0.0 else AT_UPPER
    return HOLDS


class RowNames:
    """The names of the rows of a plan, with their states."""

    def __init__(self, plan: Plan) -> None:
        self._owners, self._labels = constraint_owners(plan), plan.robot.labels
        self._links = None if plan.touching is None else plan.touching.contacts.link

    def of(self, states: RowStates) -> tuple[str, ...]:
        """The rows by name: `limit:elbow.lower holds`, `contact:world/foot slides`."""
        return tuple(f"{self._name(row)} {row.state}" for row in sorted(states))

    def _name(self, row: RowState) -> str:
        if row.kind != CONTACT_ROW or self._links is None:
            return row_name(row.kind, self._owners[row.kind][row.owner], row.part)
        a, b = (int(self._links[shape]) for shape in (row.owner, row.part))
        sides = ("world" if link < 0 else self._labels.links[link] for link in (a, b))
        return f"contact:{'/'.join(sides)}" + (f"#{row.number + 1}" if row.number else "")
