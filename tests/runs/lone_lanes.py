"""A pack's solver that leaves lanes in which much friction holds a contact to newton itself, lane by lane."""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.jit import Entry, njit
from artsim.sim.foundation.lanes import lane_count, lane_get, lane_set
from artsim.sim.run_data.run_records import ALL_ROWS
from artsim.sim.solvers.lane_newton import settle_by_newton
from artsim.sim.solvers.pack_newton import solve_pack
from artsim.sim.stepping.packs import SOLVE_PACK

_MUCH = 4.9  # times the normal impulse


@njit
def solve_loosely(robot: Any, rows: Any, step: Any, solver: Any) -> None:
    """`solve_pack`; lanes in which the friction of a contact is more than _MUCH times as large as its normal impulse
    are then settled anew. For cones of two tangents."""
    solve_pack(robot, rows, step, solver)
    for lane in range(lane_count(step.next)):
        if not lane_get(solver.pack.skip, 0, lane) > 0.0 and _is_held_by_friction(rows, lane):
            for a in range(step.next.shape[0]):
                lane_set(step.next, a, lane, lane_get(robot.state.qvel, robot.model.independent_dof[a], lane))
            settle_by_newton(robot, rows, step, solver, lane)
            for n in range(rows.number[ALL_ROWS]):
                lane_set(rows.impulse, n, lane, lane_get(solver.pack.impulse, n, lane))


@njit
def _is_held_by_friction(rows: Any, lane: int) -> bool:
    for n in range(rows.number[ALL_ROWS]):
        if rows.kind[n] == CONTACT_ROW and rows.cone[n] > 1:
            normal = lane_get(rows.impulse, n, lane)
            one, two = lane_get(rows.impulse, n + 1, lane), lane_get(rows.impulse, n + 2, lane)
            if one * one + two * two > _MUCH * _MUCH * normal * normal:
                return True
    return False


ENTRY = Entry("solve_loosely", __name__, SOLVE_PACK.records)
