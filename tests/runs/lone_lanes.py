"""A pack's solver that gives up lanes in which much friction holds a contact, so that they take steps alone."""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import Entry, njit
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.run_data.run_records import ALL_ROWS
from artsim.sim.solvers.pack_newton import solve_pack
from artsim.sim.stepping.packs import SOLVE_PACK

_MUCH = 4.9  # times the normal impulse


@njit
def solve_loosely(robot: Any, rows: Any, step: Any, solver: Any) -> None:
    """`solve_pack`; lanes in which the friction of a contact is more than _MUCH times as large as its normal impulse
    count as not solved. For cones of two tangents."""
    solve_pack(robot, rows, step, solver)
    zero = zero_like(solver.pack.solved[0])
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == CONTACT_ROW and rows.cone[n] > 1:
            normal, one, two = rows.impulse[n], rows.impulse[n + 1], rows.impulse[n + 2]
            beyond = one * one + two * two - _MUCH * _MUCH * normal * normal
            solver.pack.solved[0] = where_greater(beyond, zero, zero, solver.pack.solved[0])


ENTRY = Entry("solve_loosely", __name__, SOLVE_PACK.records)
