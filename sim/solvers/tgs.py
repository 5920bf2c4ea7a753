"""Temporal Gauss-Seidel, as PhysX has it: every sweep is a sub-step, after which the positions move on.

Seed 000, "PGS and TGS Implementation": the biases follow the positions, test impulses and denominators stay. An error
C is taken back at C / h, h being the step; a gap that is open may close within the sub-step. A spring and damper (a
drive, a compliant mimic joint) gives each sub-step an impulse of its own by eq. 21 with the sub-step for dt; bounds
hold for the sum. Rows that give way as MJCF files say keep their law, which is one of the whole step.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.run import ACTUATOR_ROW, COUPLING_ROW, DRIVE_ROW, TENDON_ROW
from artsim.sim.solvers.sweep import prepare, sweep


@njit
def tgs(m: Any, w: Any, i: Any, r: Any, force: Any, u: Any, y: Any) -> None:
    """As `pgs`; y.mean (nv,) of the independent dofs is their mean velocity, with which the positions move.

    What springs give the last sub-step counts as change in r.report, at rest too.
    Takes r.bias, r.cfm and r.rate for its own.
    """
    prepare(m, w, r, force, u, y)
    h = i.time_step[0] / i.iterations[0]
    _start(i.time_step[0], h, r, y)
    for a in range(u.shape[0]):
        y.mean[m.independent_dof[a]] = 0.0
    change = 0.0
    for _ in range(i.iterations[0]):
        _set_biases(h, r, y)
        change = sweep(r, u, y)
        _move(h, r, u, y)
        for a in range(u.shape[0]):
            y.mean[m.independent_dof[a]] += u[a] / i.iterations[0]
    r.report[0] += i.iterations[0]
    r.report[1] = change


@njit
def _start(step: Any, h: Any, r: Any, y: Any) -> None:
    """y.error and y.rest, what the bias has beside it; rate and cfm of springs for the sub-step h."""
    for n in range(r.number[0]):
        y.error[n] = r.error[n]
        y.rest[n] = r.bias[n] - r.rate[n] * r.error[n]
        if _is_spring(r, n):
            stiffness = r.rate[n] / (step * r.cfm[n])
            damping = 1.0 / (step * r.cfm[n]) - step * stiffness
            total = h * stiffness + max(damping, 0.0)
            r.rate[n] = stiffness / total
            r.cfm[n] = 1.0 / (h * total)


@inlined
def _is_spring(r: Any, n: Any) -> bool:
    kind = r.kind[n]
    always = kind == DRIVE_ROW or kind == ACTUATOR_ROW
    tie = kind == COUPLING_ROW or kind == TENDON_ROW
    spring: bool = r.cfm[n] > 0.0 and (always or (tie and r.rate[n] > 0.0))
    return spring


@njit
def _set_biases(h: Any, r: Any, y: Any) -> None:
    """The biases at the positions of this sub-step."""
    for n in range(r.number[0]):
        rate = r.rate[n]
        if r.lower[n] == 0.0 and rate > 0.0 and y.error[n] >= 0.0:
            rate = 1.0 / h  # of a limit or a contact that is open
        r.bias[n] = rate * y.error[n] + y.rest[n]
        if _is_spring(r, n):
            r.bias[n] -= r.cfm[n] * r.impulse[n]  # what the sub-steps before gave does not count


@njit
def _move(h: Any, r: Any, u: Any, y: Any) -> None:
    """The errors after the sub-step."""
    for n in range(r.number[0]):
        if r.rate[n] > 0.0:
            velocity = y.rest[n]
            for e in range(r.start[n], r.stop[n]):
                velocity += r.value[e] * u[r.column[e]]
            y.error[n] += h * velocity
