"""Records the constraint rows of a step and K = J M̂⁻¹ Jᵀ + cfm, from their impulses to changes of their velocities.

K is the constraint matrix of Sakalauskas, Recoil Notes, 2021, 1.2: a row's diagonal entry is a node, an entry of two
rows that share a body an edge. K is formed anew, by M̂'s factor, since no solver keeps it as a whole; entries that are
zero are left out.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_matrix
from artsim.sim.articulation.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    AT_REST,
    CONSTRAINTS,
    ENTRIES,
    ROWS_RECORDED,
    STEP_NUMBER,
    WITHOUT_ROWS,
    Block,
    Rows,
    RunBundle,
    Step,
)


@njit
def lacks_room(block: Block, rows: Rows) -> bool:
    """True if the block lacks room for the constraints of one more step."""
    most = rows.kind.shape[0]
    lacks: bool = block.constraint_count.shape[0] > 0 and (
        block.constraints[CONSTRAINTS] + most > block.constraint_step.shape[0]
        or block.constraints[ENTRIES] + most * (most + 1) // 2 > block.entry_step.shape[0]
    )
    return lacks


@njit
def record_constraints(robot: RobotBundle, run: RunBundle, rows: Rows) -> None:
    """Record the rows that the step was solved with, and K. Leaves M̂'s factor in data.factor. O(rows² entries)."""
    model, data = robot.model, robot.data
    step, block = run.step, run.block
    row = step.counters[ROWS_RECORDED]
    count = 0 if step.counters[AT_REST] > 0 or step.retries[WITHOUT_ROWS] == 1 else rows.number[ALL_ROWS]
    if count > 0:
        composites(model, data)
        mass_matrix(model, data)
        reduce_matrix(model, data, step.diagonal)
        factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    before = block.constraints[ENTRIES]
    for n in range(count):
        _record_constraint(step, rows, block, n)
        _record_column(model, data, step, rows, block, n, count)
    block.constraint_count[row] = count
    block.entry_count[row] = block.constraints[ENTRIES] - before


@inlined
def _record_constraint(step: Step, rows: Rows, block: Block, n: int) -> None:
    k = block.constraints[CONSTRAINTS]
    block.constraints[CONSTRAINTS] = k + 1
    block.constraint_step[k] = step.counters[STEP_NUMBER]
    block.constraint_kind[k] = rows.kind[n]
    block.constraint_owner[k] = rows.dof[n]
    block.constraint_part[k] = rows.part[n]
    block.constraint_cfm[k] = rows.cfm[n]
    block.constraint_impulse[k] = rows.impulse[n]


@njit
def _record_column(model: Model, data: Workspace, step: Step, rows: Rows, block: Block, n: int, count: int) -> None:
    """Record column n of K's lower triangle: x = M̂⁻¹ Jᵀ e_n, then J x of this row and of the later ones."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = 0.0
    for e in range(rows.start[n], rows.stop[n]):
        x[rows.column[e]] += rows.value[e]
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x)
    for m in range(n, count):
        value = rows.cfm[n] if m == n else 0.0
        for e in range(rows.start[m], rows.stop[m]):
            value += rows.value[e] * x[rows.column[e]]
        if m == n or value != 0.0:
            k = block.constraints[ENTRIES]
            block.constraints[ENTRIES] = k + 1
            block.entry_step[k] = step.counters[STEP_NUMBER]
            block.entry_row[k] = m
            block.entry_column[k] = n
            block.entry_value[k] = value
