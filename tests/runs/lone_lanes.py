"""A pack's solver that gives up lanes in which contacts push, so that tests have lanes take steps alone."""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import Entry, njit
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.run_data.run_records import ALL_ROWS
from artsim.sim.solvers.pack_newton import solve_pack
from artsim.sim.stepping.packs import SOLVE_PACK


@njit
def solve_without_contacts(robot: Any, rows: Any, step: Any, solver: Any) -> None:
    """`solve_pack`; lanes in which a contact pushes count as not solved."""
    solve_pack(robot, rows, step, solver)
    zero = zero_like(solver.pack.solved[0])
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == CONTACT_ROW:
            solver.pack.solved[0] = where_greater(rows.impulse[n], zero, zero, solver.pack.solved[0])


ENTRY = Entry("solve_without_contacts", __name__, SOLVE_PACK.records)
