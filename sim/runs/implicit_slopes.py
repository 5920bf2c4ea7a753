"""Slopes of a step by the implicit function theorem at its solution, with the rows that are active there.

The velocities u⁺ and the impulses λ of a step fulfil, for its state, inputs and properties x,

    M̂ (u⁺ - u) - h (τ - b) - Jᵀ λ = 0                                          the balance
    g = J u⁺ + bias + cfm λ = 0                    of rows that hold           the gaps
    C(q ⊕ h v⁺) = 0                                of rows that are aimed, such as those of loops
    λ = its bound                                  of rows at a bound, or that exert nothing
    g = 0                                          of contacts that stick
    g_n = (μ - s) |g_t|,  λ_t = -μ λ_n g_t / |g_t|  of contacts that slide; s: De Saxcé's shift, μ for Coulomb's law

and so do their derivatives. Those by u⁺ and λ at fixed x are matrices that the step has. Those by x at fixed u⁺ and λ,
in which contacts, frames, moment arms and forces of equipment move, are central differences of the equations alone
(stepping/find_equations.py), which no solution with its rounding and its kinks enters: they are true to some 1e-9.
Terms that a step settles by repeated solutions, such as a bias at the midpoint of a fast turn, do not fulfil these
equations: the solution is compared with them first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.tangent import moved
from artsim.sim.constraints.kinds import LOOP_ROW
from artsim.sim.constraints.row import CLOSED
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.run_data.run_records import NOT_CONVEX
from artsim.sim.runs.copied_equations import CopiedEquations, Solution, Tables
from artsim.sim.runs.directions import Directions
from artsim.sim.runs.plan import Plan

_FULFILLED = 1e-9  # share of the largest term up to which an equation counts as fulfilled
_AT_BOUND = 1e-9  # share of the largest impulse up to which a bound counts as reached
_TOUCHED = 1e-9  # [rad, m, rad/s, m/s] beyond which a limit without a row is not reached
_EDGE = 1e-7  # share of friction at its bound
_OPEN = 1e-8  # [m/s or rad/s] gap of a row without impulse, above which it does not begin to press
_BENT = 0.02  # share of an equation's slope by which both sides may differ, by its curvature
_SLIGHT = 1e-4  # share of the largest slope below which one does not count
_NEARER = (1 / 8, 1 / 64, 1 / 1024)  # shares of the changes that are tried, since laws of gaps bend within micrometres
_ACCURATE = 1e-6  # share of a column up to which it may be uncertain
_EPSILON = 1e-16  # rounding of a term of an equation, as a share of it
_ROUNDING = 1e-14  # of an equation, as a share of its largest term
_YIELD = 1e-11  # share of a row's own mobility that is added to it, so that redundant rows have a solution


class Slopes(NamedTuple):
    """Derivatives of the end of a step."""

    slopes: Real  # (2 nv, columns)
    bent: Array  # (columns,) True where the equations themselves have a kink: these slopes are of no use
    error: Real  # (columns,) of the differences


class RefusedError(Exception):
    """The step does not follow the equations; the text says why."""


def reason_against(plan: Plan) -> str:
    """The feature of a run that the equations lack; empty if there is none."""
    config, model = plan.config, plan.robot.model
    if len(plan.activation):
        return "activations of actuators"
    if plan.inputs["convex"][0] != NOT_CONVEX:
        return "the convex contact law"
    if config.integrator not in ("midpoint", "semi-implicit-euler"):
        return f"the integrator {config.integrator}"
    if config.continuous:
        return "the continuous check"
    bent = model.coupling_polynomial[:, 2:].any() if len(model.coupling_polynomial) else False
    return "couplings that bend" if bent else ""


def implicit_slopes(equations: CopiedEquations, directions: Directions, sizes: Real) -> Slopes:
    """The slopes along all columns. sizes (columns,): changes of the differences. Raises RefusedError."""
    plan, count = directions.copies.plan, len(directions.columns)
    equations.solve(directions.starts([None], np.zeros(1)))
    nu, m = len(equations.next), equations.rows
    changes = Tables(np.zeros((nu, count)), *(np.zeros((m, count)) for _ in Tables._fields[1:]))
    bent, error, change = np.ones(count, bool), np.zeros(count), np.array(sizes)
    system = None
    for share in _NEARER:
        those = np.flatnonzero(bent)
        if system is not None and not len(those):
            break
        near = change[those] = share * sizes[those]
        starts = directions.starts([None, *those, *those], np.concatenate([[0.0], near, -near]))
        tables = equations.of(starts)
        if tables is None:
            if share == _NEARER[-1] and system is None:
                raise RefusedError("rows that come and go beside the state")
            continue
        if system is None:
            _check(plan, directions, equations.solution, tables)
            aimed = (tables.miss != 0.0).any(axis=0)
            system = _system(equations.solution, Tables(*(values[0] for values in tables)), aimed)
        up, down = (Tables(*(values[k : k + len(those)] for values in tables)) for k in (1, 1 + len(those)))
        for place, a, b in zip(changes, up, down, strict=True):
            place[:, those] = (a - b).T / (2.0 * near)
        bent[those], error[those] = _curvature(tables, near, ~(system.at_lower | system.at_upper))
    if system is None:
        raise RefusedError("rows that come and go beside the state")
    tangents = _tangents(plan, equations.next)
    if system.aimed.any():
        _aim(plan, directions, system, changes, tangents)
    response, noise = system.solve(changes)
    slopes = _ends(plan, directions, response, tangents)
    size = np.abs(slopes).max(axis=0, initial=0.0)
    error = error * size + noise / change
    return Slopes(slopes, bent | (error > _ACCURATE * np.maximum(1.0, size)), error)


def _check(plan: Plan, directions: Directions, solution: Solution, tables: Tables) -> None:
    """Compare the step's velocities with the balance, and its end with the coordinates to which they lead."""
    scale = _terms(solution)[: len(solution.next)]
    if solution.follows or np.any(np.abs(tables.balance[0]) > _FULFILLED * (scale + 1e-6 * scale.max(initial=0.0))):
        raise RefusedError("forces that follow the velocities found")
    if solution.nearest > -_TOUCHED:
        raise RefusedError("limits that are just reached")
    model = plan.robot.model
    v = _full(model, solution.next)
    q = moved(model, directions.copies.state[0], plan.dt * v)
    end = solution.end
    coordinates = np.setdiff1d(np.arange(len(q)), model.dof_coord[model.coupling_follower])
    if np.abs(q - end.qpos[0])[coordinates].max(initial=0.0) > 1e-10 or np.abs(v - end.qvel[0]).max(initial=0.0) > 1e-8:
        raise RefusedError("velocities that are changed after the step is solved")


def _terms(solution: Solution) -> Real:
    """The sums (nu + m,) of the sizes of the terms of the equations."""
    u, impulse = np.abs(solution.next), np.abs(solution.impulse)
    J = np.abs(solution.jacobian)
    return np.concatenate([np.abs(solution.system) @ u + J.T @ impulse, J @ u])


def _full(model: Model, u: Real) -> Real:
    """Values (nv, …) of all dofs, from those of the independent ones (nu, …); of couplings that do not bend."""
    made = np.zeros((len(model.dof_body), *u.shape[1:]))
    made[model.independent_dof] = u
    for follower, leader, p in zip(
        model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
    ):
        made[follower] = p[1] * made[leader] if leader >= 0 else 0.0
    return made


def _curvature(tables: Tables, sizes: Real, active: Array) -> tuple[Array, Real]:
    """Columns whose equations have a kink, and the share of slopes that differences leave out. active (m,): rows with
    an equation of their gap."""
    count = len(sizes)
    bent, error = np.zeros(count, bool), np.zeros(count)
    for values in (tables.balance, tables.gap[:, active]):
        if not values.shape[1]:
            continue
        forward = (values[1 : count + 1] - values[0]) / sizes[:, None]
        backward = (values[0] - values[count + 1 :]) / sizes[:, None]
        size = np.maximum(np.abs(forward), np.abs(backward))
        rounding = _ROUNDING * max(1.0, float(np.abs(values[0]).max())) / sizes
        least = _SLIGHT * size.max(axis=1) + rounding / _BENT + 1e-9
        apart = (np.abs(forward - backward) / (size + least[:, None])).max(axis=1)
        bent |= apart > _BENT
        error = np.maximum(error, apart * apart / 6.0)
    return bent, error


# ------------------------------------------------------------------ the system of active rows


class _System(NamedTuple):
    """The matrix of derivatives by u⁺ and λ, and how its rows follow from changes of the equations."""

    solution: Solution
    matrix: Real  # (nu + m, nu + m)
    holds: Array  # (m,) True for rows of whose gap the equation is
    at_lower: Array
    at_upper: Array
    rate: Real  # (m,) as in Rows
    aimed: Array  # (m,) True for rows that hold of whose miss the equation is
    slides: list[tuple[int, int, float, float, Real, float]]  # first row, rows, μ, s, t (k,), |g_t|

    def solve(self, changes: Tables) -> tuple[Real, float]:
        """Derivatives (nu, columns) of u⁺, and the change of u⁺ by which rounding may move the solution. Raises
        RefusedError where rows contradict each other."""
        nu, count = len(self.solution.next), changes.balance.shape[1]
        right = np.zeros((len(self.matrix), count))
        right[:nu] = -changes.balance
        rows = right[nu:]
        rows[self.holds] = -changes.gap[self.holds]
        rows[self.aimed] = -changes.miss[self.aimed]
        rows[self.at_lower] = changes.lower[self.at_lower]
        rows[self.at_upper] = changes.upper[self.at_upper]
        impulse = self.solution.impulse
        for first, size, mu, shift, t, speed in self.slides:
            own = slice(first + 1, first + size)
            along = t @ changes.gap[own]
            across = changes.gap[own] - np.outer(t, along)
            rows[first] = -(changes.gap[first] - (mu - shift) * along)
            rows[first] += (changes.slope[first] - changes.shifting[first]) * speed
            rows[own] = -impulse[first] * (np.outer(t, changes.slope[first]) + mu * across / speed)
        stiff = self.matrix.copy()
        presses = self.holds.copy()
        presses[[slide[0] for slide in self.slides]] = True
        diagonal = np.flatnonzero(presses) + nu
        J = self.solution.jacobian[presses]
        mobility = np.einsum("ij,ji->i", J, np.linalg.solve(self.solution.system, J.T)) if len(J) else np.zeros(0)
        stiff[diagonal, diagonal] += _YIELD * (mobility + 0.01 * mobility.max(initial=0.0))
        try:
            inverse = np.linalg.inv(stiff)
        except np.linalg.LinAlgError:
            raise RefusedError("rows that contradict each other") from None
        found = inverse @ right
        found += inverse @ (right - self.matrix @ found)
        left = np.abs(self.matrix @ found - right)
        if not (left[:nu].max(initial=0.0) <= 1e-6 * (1e-9 + np.abs(right[:nu]).max(initial=0.0)) + 1e-7):
            raise RefusedError("rows that contradict each other")
        return found[:nu], float((np.abs(inverse[:nu]) @ (_EPSILON * _terms(self.solution))).max(initial=0.0))


def _system(solution: Solution, at: Tables, aimed: Array) -> _System:
    """The system at a solution. Raises RefusedError where a row is at the edge of two states."""
    nu, m = len(solution.next), len(solution.impulse)
    matrix = np.zeros((nu + m, nu + m))
    matrix[:nu, :nu] = solution.system
    matrix[:nu, nu:] = -solution.jacobian.T
    impulse, gap = solution.impulse, at.gap
    least = _AT_BOUND * float(np.abs(impulse).max(initial=0.0))
    fulfilled = _FULFILLED * max(1.0, float(np.abs(solution.next).max(initial=0.0)))
    plain = solution.cone == 0
    fixed = plain & (at.lower >= at.upper)
    at_lower, at_upper = plain & (impulse <= at.lower + least), plain & (impulse >= at.upper - least) & ~fixed
    if np.any((at_lower | at_upper) & ~fixed & (np.abs(gap) <= _OPEN)):
        raise RefusedError("rows that just begin to press")
    holds = plain & ~at_lower & ~at_upper
    slides = []
    for first in np.flatnonzero(solution.cone > 0).tolist():
        size = int(solution.cone[first])
        own, normal = slice(first + 1, first + size), float(impulse[first])
        mu, shift = float(at.slope[first]), float(at.shifting[first])
        speed, friction = float(np.linalg.norm(gap[own])), float(np.linalg.norm(impulse[own]))
        if normal <= least:
            at_lower[first : first + size] = True
            if gap[first] - (mu - shift) * speed <= _OPEN:
                raise RefusedError("contacts that just begin to press")
        elif friction < mu * normal * (1.0 - _EDGE):
            holds[first : first + size] = True
        elif speed <= _OPEN:
            raise RefusedError("contacts that just begin to slide")
        else:
            slides.append((first, size, mu, shift, gap[own] / speed, speed))
    aimed = aimed & holds
    if np.any(aimed & (solution.kind == LOOP_ROW) & (solution.part >= 3)):  # to 1e-5 alone
        raise RefusedError("loops that hold rotations")
    missed = float(np.abs(at.miss[aimed]).max(initial=0.0)) > CLOSED
    if missed or np.abs(gap[holds & ~aimed]).max(initial=0.0) > fulfilled:
        raise RefusedError("targets that follow the velocities found")
    equation = nu + np.flatnonzero(holds)
    matrix[equation, :nu] = solution.jacobian[holds]
    matrix[equation, equation] = at.cfm[holds]
    known = nu + np.flatnonzero(at_lower | at_upper)
    matrix[known, known] = 1.0
    for first, size, mu, shift, t, speed in slides:
        _add_sliding(matrix, solution, at, nu, (first, size, mu, shift, t, speed))
        if abs(gap[first] - (mu - shift) * speed) > fulfilled:
            raise RefusedError("targets that follow the velocities found")
    return _System(solution, matrix, holds, at_lower, at_upper, at.rate, aimed, slides)


def _add_sliding(
    matrix: Real, solution: Solution, at: Tables, nu: int, slide: tuple[int, int, float, float, Real, float]
) -> None:
    """Enter the equations of a contact that slides."""
    first, size, mu, shift, t, speed = slide
    own = np.arange(first + 1, first + size)
    J, cfm = solution.jacobian, at.cfm
    matrix[nu + first, :nu] = J[first] - (mu - shift) * (t @ J[own])
    matrix[nu + first, nu + first] = cfm[first]
    matrix[nu + first, nu + own] = -(mu - shift) * t * cfm[own]
    across = (mu * solution.impulse[first] / speed) * (np.eye(len(own)) - np.outer(t, t))
    matrix[nu + own, :nu] = across @ J[own]
    matrix[np.ix_(nu + own, nu + own)] = across * cfm[own] + np.eye(len(own))
    matrix[nu + own, nu + first] = mu * t


def _aim(plan: Plan, directions: Directions, system: _System, changes: Tables, tangents: tuple[Real, Real]) -> None:
    """Enter the equations of aimed rows: that their error vanishes where the velocities lead, but for the part that is
    to remain. Their derivatives by u⁺ are those by the coordinates at the end, as are those by q."""
    solution, model, h = system.solution, plan.robot.model, plan.dt
    dofs, nu = model.independent_dof, len(solution.next)
    columns = {column.entry[0]: n for n, column in enumerate(directions.columns) if column.of == "qpos"}
    start, right = (T[np.ix_(dofs, dofs)] for T in tangents)
    by_start = changes.miss[np.ix_(np.flatnonzero(system.aimed), np.array([columns[k] for k in dofs.tolist()]))]
    remains = 1.0 - h * system.rate[system.aimed, None]
    by_end = (by_start + remains * solution.jacobian[system.aimed]) @ np.linalg.inv(start)
    rows = nu + np.flatnonzero(system.aimed)
    system.matrix[rows] = 0.0
    system.matrix[rows, :nu] = h * by_end @ right


# ------------------------------------------------------------------ the end of the step


def _tangents(plan: Plan, u: Real) -> tuple[Real, Real]:
    """Derivatives (nv, nv) of q⁺ = q ⊕ h v⁺ by q, and by h v⁺."""
    model, h = plan.robot.model, plan.dt
    v = _full(model, u)
    start, right = np.eye(len(v)), np.eye(len(v))
    for i in range(1, len(model.body_parent)):
        if model.joint_type[i] in (BALL, FREE):
            k = int(model.body_dof[i]) + (3 if model.joint_type[i] == FREE else 0)
            turn, right[k : k + 3, k : k + 3] = _exponential(h * v[k : k + 3])
            start[k : k + 3, k : k + 3] = turn.T
    return start, right


def _ends(plan: Plan, directions: Directions, response: Real, tangents: tuple[Real, Real]) -> Real:
    """Derivatives (2 nv, columns) of q⁺ and v⁺, from those of u⁺."""
    model, (start, right) = plan.robot.model, tangents
    change = _full(model, response)
    before = np.zeros_like(change)
    for n, column in enumerate(directions.columns):
        if column.of == "qpos":
            before[column.entry[0], n] = 1.0
    before = _full(model, before[model.independent_dof])
    return np.concatenate([start @ before + plan.dt * right @ change, change])


def _exponential(x: Real) -> tuple[Real, Real]:
    """The rotation (3, 3) of a rotation vector, and its right Jacobian."""
    angle = float(np.linalg.norm(x))
    K = np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
    if angle < 1e-4:
        a, b, c = 1.0 - angle**2 / 6.0, 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
    else:
        a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
        c = (angle - np.sin(angle)) / angle**3
    I = np.eye(3)
    return I + a * K + b * K @ K, I - b * K + c * K @ K
