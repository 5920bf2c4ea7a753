"""Shared by the sweeping solvers: M̂⁻¹ Jᵀ by test impulses, the order of the rows, and the turn of a row or a cone.

Gauss-Seidel over rows with accumulated impulses (Sakalauskas, Recoil Notes, 2021, eq. 2.10; notes on mimic joints, eq.
16 and 18): a row's turn is Δλ = -(J u + bias + cfm λ) / (J M̂⁻¹ Jᵀ + cfm), with λ kept in its bounds. All start from λ
= 0, as PhysX does.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.dynamics import factorise, solve
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.kinds import (
    FIRST_LINK,
    PLACE,
    SPRING,
    SPRING_WITH_RATE,
    SPRINGINESS,
    STATIC_TURN,
    TURN,
)
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.run_data.run_records import ALL_ROWS, ITERATIONS, VELOCITY_SWEEPS, Inputs, Rows, Step
from artsim.sim.run_data.scratch import SweepWork

_TURNS = 16  # base of turns, and of the places within them, in a key


@njit
def prepare_sweeps(model: Model, data: Workspace, rows: Rows, step: Step, sweeps: SweepWork) -> None:
    """Set step.next (nu,) to the velocities without constraints [rad/s or m/s] and impulses to 0; compute M̂⁻¹ Jᵀ and
    the order of the rows. Leaves M̂ factorised. step.free (nu,) is the impulse of all other forces [N s or N m s].

    O(lines · nu · depth), with a line of M̂⁻¹ Jᵀ for each dof on which rows act alone and for each row that acts on
    several.
    """
    factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
    _set_inverse_mass_jacobian(model, data, rows, sweeps)
    _bound_slips(rows, sweeps)
    _arrange(model, rows, sweeps)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, step.free)
    for a in range(step.next.shape[0]):
        step.next[a] += step.free[a]
    for n in range(rows.number[ALL_ROWS]):
        rows.impulse[n] = 0.0


# ------------------------------------------------------------------ test impulses


@njit
def _set_inverse_mass_jacobian(model: Model, data: Workspace, rows: Rows, sweeps: SweepWork) -> None:
    """M̂⁻¹ Jᵀ of row n: sweeps.scale[n] times the line sweeps.line[n] of sweeps.inverse_mass_jacobian; sweeps.delassus
    = J M̂⁻¹ Jᵀ.

    Rows on one dof alone, which are most, share the line of a unit impulse there.
    """
    for a in range(sweeps.of_column.shape[0]):
        sweeps.of_column[a] = -1
    for n in range(rows.number[ALL_ROWS]):
        first = rows.start[n]
        sweeps.line[n] = n
        sweeps.scale[n] = 1.0
        alone = rows.stop[n] == first + 1
        if alone:
            sweeps.scale[n] = rows.value[first]
            if sweeps.of_column[rows.column[first]] >= 0:
                sweeps.line[n] = sweeps.of_column[rows.column[first]]
            sweeps.of_column[rows.column[first]] = sweeps.line[n]
        if sweeps.line[n] == n:
            x = sweeps.inverse_mass_jacobian[n]
            for a in range(x.shape[0]):
                x[a] = 0.0
            for e in range(first, rows.stop[n]):
                x[rows.column[e]] += 1.0 if alone else rows.value[e]
            solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x)
        sweeps.delassus[n] = delassus_of(rows, sweeps, n, n)


@inlined
def delassus_of(rows: Rows, sweeps: SweepWork, n: int, o: int) -> float:
    """The Delassus matrix's entry J_n M̂⁻¹ J_oᵀ: velocity of row n for a unit impulse of row o."""
    value = 0.0
    x = sweeps.inverse_mass_jacobian[sweeps.line[o]]
    for e in range(rows.start[n], rows.stop[n]):
        value += rows.value[e] * x[rows.column[e]]
    return value * sweeps.scale[o]


@njit
def _bound_slips(rows: Rows, sweeps: SweepWork) -> None:
    """Set one mobility for all tangential rows of a cone, not below that of any combination of them (Gershgorin).

    With a mobility of its own for each, friction would not oppose the slip.
    """
    for n in range(rows.number[ALL_ROWS]):
        last = n + rows.cone[n]
        most = 0.0
        for row in range(n + 1, last):
            total = 0.0
            for other in range(n + 1, last):
                total += abs(delassus_of(rows, sweeps, row, other))
            most = max(most, total)
        for row in range(n + 1, last):
            sweeps.delassus[row] = most


# ------------------------------------------------------------------ order


@njit
def _arrange(model: Model, rows: Rows, sweeps: SweepWork) -> None:
    """Set sweeps.order: the rows from root to tip, for each link in the PhysX guide's sequence ("Articulation Drive
    Stability").

    Link dynamic constraint, dynamic contact, mimic joint, drive, position limit, velocity limit, static constraint and
    contact. For kinds that the guide does not name: tendons and actuators that act on several dofs come with the last
    joint that they move, before its mimic joint; joint friction before the drive. Rows hardly ever change places, so
    the order of the last step is sorted by insertion.
    """
    if sweeps.sorted[0] != rows.number[ALL_ROWS]:
        sweeps.sorted[0] = rows.number[ALL_ROWS]
        for k in range(rows.number[ALL_ROWS]):
            sweeps.order[k] = k
    for n in range(rows.number[ALL_ROWS]):
        if rows.cone[n] < 0:
            sweeps.key[n] = sweeps.key[n - 1]  # a cone's rows stay together, even one that nothing moves
        else:
            sweeps.key[n] = (_link(model, rows, n) * _TURNS + turn_of(rows, n)) * _TURNS + PLACE[rows.kind[n]]
    for k in range(rows.number[ALL_ROWS]):
        n = sweeps.order[k]
        j = k
        while j > 0 and _comes_after(sweeps, sweeps.order[j - 1], n):
            sweeps.order[j] = sweeps.order[j - 1]
            j -= 1
        sweeps.order[j] = n


@inlined
def _comes_after(sweeps: SweepWork, a: int, b: int) -> bool:
    return sweeps.key[a] > sweeps.key[b] or (sweeps.key[a] == sweeps.key[b] and a > b)


@njit
def _link(model: Model, rows: Rows, n: int) -> int:
    """The link with which row n has its turn: for a mimic joint the first of its two, for others the last they move."""
    first = model.dof_body.shape[0]
    last = -1
    for e in range(rows.start[n], rows.start[n + 1]):
        first = min(first, rows.entry_dof[e])
        last = max(last, rows.entry_dof[e])
    if last < 0:
        return 0
    dof: int = first if FIRST_LINK[rows.kind[n]] else last
    return model.dof_body[dof]


@inlined
def turn_of(rows: Rows, n: int) -> int:
    """The turn of row n among those of its link (constraints/kinds.py)."""
    kind = rows.kind[n]
    return STATIC_TURN[kind] if rows.static[n] else TURN[kind]


# ------------------------------------------------------------------ turns


@njit
def sweep(rows: Rows, u: Reals1, sweeps: SweepWork) -> float:
    """One turn of every row; return the largest change of a row's velocity [rad/s or m/s]. O(entries + nu · rows that
    act)."""
    change = 0.0
    for k in range(rows.number[ALL_ROWS]):
        n = sweeps.order[k]
        if rows.cone[n] == 0:
            change = max(change, row_turn(rows, u, sweeps, n, rows.lower[n], rows.upper[n]))
        elif rows.cone[n] > 0:
            change = max(change, cone_turn(rows, u, sweeps, n))
    return change


@njit
def sweep_velocities(inputs: Inputs, rows: Rows, u: Reals1, sweeps: SweepWork, error: Reals1) -> float:
    """Go on with sweeps that correct no `error` (rows,), PhysX's velocity iterations; return the largest change.

    The velocities by which positions move, kept before, include the correction of errors; those at the end of the step
    then do not. Springs keep their law, and open gaps may still close. rows.bias is overwritten.
    """
    change = 0.0
    for n in range(rows.number[ALL_ROWS]):
        if not is_spring(rows, n) and (rows.lower[n] < 0.0 or error[n] < 0.0):
            rows.bias[n] -= rows.rate[n] * error[n]
    for _ in range(int(inputs.sweeping[VELOCITY_SWEEPS])):
        change = sweep(rows, u, sweeps)
        rows.report[ITERATIONS] += 1
        if change == 0.0:
            break
    return change


@inlined
def is_spring(rows: Rows, n: int) -> bool:
    """True if row n is a spring and damper, which has no error to correct."""
    kind = SPRINGINESS[rows.kind[n]]
    return rows.cfm[n] > 0.0 and (kind == SPRING or (kind == SPRING_WITH_RATE and rows.rate[n] > 0.0))


@njit
def row_turn(rows: Rows, u: Reals1, sweeps: SweepWork, n: int, lower: float, upper: float) -> float:
    """The turn of row n within bounds of its impulse; return the change of its velocity [rad/s or m/s]. O(nu)."""
    denominator = sweeps.delassus[n] + rows.cfm[n]
    if denominator <= 0.0:
        return 0.0  # the row has no mobility
    new = min(max(rows.impulse[n] - row_velocity(rows, u, n) / denominator, lower), upper)
    change = new - rows.impulse[n]
    if change == 0.0:
        return 0.0
    rows.impulse[n] = new
    push(u, sweeps, n, change)
    return abs(change) * denominator


@njit
def cone_turn(rows: Rows, u: Reals1, sweeps: SweepWork, n: int) -> float:
    """The turn of a contact: its normal row, then the tangential ones together, projected on the disc slope · λ_n.

    Returns the largest change of their velocities [m/s]. O(rows · nu).
    """
    change = row_turn(rows, u, sweeps, n, 0.0, 1e308)
    last = n + rows.cone[n]
    denominator = sweeps.delassus[n + 1] + rows.cfm[n]
    if last == n + 1 or denominator <= 0.0:
        return change
    square = 0.0
    for row in range(n + 1, last):
        sweeps.wanted[row] = rows.impulse[row] - row_velocity(rows, u, row) / denominator
        square += sweeps.wanted[row] * sweeps.wanted[row]
    most = rows.slope[n] * rows.impulse[n]
    share = most / math.sqrt(square) if square > most * most else 1.0
    for row in range(n + 1, last):
        delta = share * sweeps.wanted[row] - rows.impulse[row]
        if delta != 0.0:
            rows.impulse[row] += delta
            push(u, sweeps, row, delta)
            change = max(change, abs(delta) * denominator)
    return change


@inlined
def row_velocity(rows: Rows, u: Reals1, n: int) -> float:
    """J u + bias + cfm λ of row n [rad/s or m/s]. O(entries)."""
    value = rows.bias[n] + rows.cfm[n] * rows.impulse[n]
    for e in range(rows.start[n], rows.stop[n]):
        value += rows.value[e] * u[rows.column[e]]
    return value


@inlined
def push(u: Reals1, sweeps: SweepWork, n: int, impulse: float) -> None:
    """u (nu,) += M̂⁻¹ Jᵀ times an impulse of row n [N s or N m s]. O(nu)."""
    x = sweeps.inverse_mass_jacobian[sweeps.line[n]]
    impulse = sweeps.scale[n] * impulse
    for a in range(u.shape[0]):
        u[a] += x[a] * impulse
