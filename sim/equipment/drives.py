"""Drives at their largest forces, for both widths.

A drive within its bound is part of M̂. A drive that would exceed it over the step is held there, as a constant force,
and the step is solved again (stepping/retries.py); a held drive that would be within its bound is released. A step
begins with the drives held that the last step ended with, so that most steps need no further solution.

Drives that do not settle, since drives, contacts and limits compete, become rows with bounded impulses
(constraints/drive_rows.py), which the solver settles together with all others.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.equipment.actuation import driven_at, part_of_matrix
from artsim.sim.equipment.bounds import at_bound, hold, still_free
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import CONTROL_ROW, Rows, RunBundle


@njit
def begin_drives(state: State, run: RunBundle) -> None:
    """Hold the drives that were held at the end of the last step, and set the gains of all."""
    for k in range(run.step.drive_held.shape[0]):
        run.step.drive_held[k] = state.drive_held[k]
    set_drives(run)


@njit
def set_drives(run: RunBundle) -> None:
    """Set step.stiffness and step.damping (nv,), the gains of drives; 0 for those that are held."""
    step = run.step
    for k in range(step.stiffness.shape[0]):
        step.stiffness[k], step.damping[k] = _gains(run, k)
        if run.inputs.drive_limit[k] < math.inf:
            step.stiffness[k] = at_bound(step.drive_held[k], 0.0, 0.0, step.stiffness[k])
            step.damping[k] = at_bound(step.drive_held[k], 0.0, 0.0, step.damping[k])


@inlined
def _gains(run: RunBundle, k: int) -> tuple[Real, Real]:
    """Stiffness and damping of drive k within its bounds, in units of force."""
    inertia = run.step.drive_inertia[k]
    return inertia * run.inputs.drive_stiffness[k], inertia * run.inputs.drive_damping[k]


@njit
def hold_drives(robot: RobotBundle, run: RunBundle, rows: Rows, chosen: Real, one: Real) -> Real:
    """Hold drives of M̂ that exceed their largest forces over the step that ends at step.velocity, and release those
    that no longer would; 1 where a drive changes. Only lanes where `chosen` is 1 change; where `one` is 1, only the
    first drive that has to change does.
    """
    inputs, step = run.inputs, run.step
    row = step.counters[CONTROL_ROW]
    changed = zero_like(chosen)
    for k in range(step.velocity.shape[0]):
        limit = inputs.drive_limit[k]
        if rows.implicit[k] and limit < math.inf:
            stiffness, damping = _gains(run, k)
            force = stiffness * (inputs.target[row, k] - driven_at(robot.state, run, k))
            force = force + damping * (inputs.target_velocity[row, k] - step.velocity[k])
            free = still_free(chosen, one, changed) * part_of_matrix(run, rows, k)
            changed = largest(changed, hold(step.drive_held, k, force, (-limit, limit), free))
    return changed


@njit
def bound_drives(robot: RobotBundle, run: RunBundle, rows: Rows) -> None:
    """Hold the drives that exceed their largest forces at the state, and no others, in both widths."""
    step = run.step
    for k in range(step.velocity.shape[0]):
        step.velocity[k] = robot.state.qvel[k]
        step.drive_held[k] = zero_like(step.velocity[k])
    set_drives(run)
    hold_drives(robot, run, rows, zero_like(step.velocity[0]) + 1.0, zero_like(step.velocity[0]))
    set_drives(run)
