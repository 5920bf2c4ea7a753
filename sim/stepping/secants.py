"""The drift of followers of nonlinear couplings from the secants of the steps before and after (midpoint.py)."""

from __future__ import annotations

from artsim.sim.articulation.coupling import follow
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.run_data.run_records import Step


@njit
def secant_drift(robot: RobotBundle, h: float, step: Step, chosen: Real) -> bool:
    """data.drift from the secants of the last step and of the step that leads to step.next (nu,), in lanes where
    `chosen` is 1; False where no coupling is nonlinear.

    A follower's acceleration is then (g(y + h u⁺) - 2 g(y) + g(y - h u)) / h², and Ġu is this acceleration less G u̇;
    its step.middle is the mean velocity over both steps, (g(y + h u⁺) - g(y - h u)) / 2 h.
    """
    model, state, data = robot.model, robot.state, robot.data
    zero = zero_like(chosen)
    bent = False
    for c in range(model.coupling_follower.shape[0]):
        l = model.coupling_leader[c]
        p = model.coupling_polynomial[c]
        if l >= 0 and (p[2] != 0.0 or p[3] != 0.0 or p[4] != 0.0):
            bent = True
    if not bent:
        return False
    for a in range(step.next.shape[0]):
        k = model.independent_dof[a]
        n = model.dof_coord[k]
        if n >= 0:
            step.stage_qpos[n] = state.qpos[n] + h * step.next[a]
            step.start_qpos[n] = state.qpos[n] - h * state.qvel[k]
    for c in range(model.coupling_follower.shape[0]):
        k = model.coupling_follower[c]
        l = model.coupling_leader[c]
        if l < 0:
            step.stage_qpos[model.dof_coord[k]] = state.qpos[model.dof_coord[k]]
            step.start_qpos[model.dof_coord[k]] = state.qpos[model.dof_coord[k]]
            continue
        n = model.dof_coord[k]
        after, _, _ = follow(model.coupling_polynomial[c], step.stage_qpos[model.dof_coord[l]])
        before, _, _ = follow(model.coupling_polynomial[c], step.start_qpos[model.dof_coord[l]])
        step.stage_qpos[n] = after
        step.start_qpos[n] = before
        a = model.dof_independent[k]
        if a >= 0:
            change = data.gain[k] * (step.next[a] - state.qvel[model.independent_dof[a]])
            drift = ((after - state.qpos[n]) - (state.qpos[n] - before)) / (h * h) - change / h
            step.middle[k] = where_greater(chosen, zero, (after - before) / (2.0 * h), step.middle[k])
            data.drift[k] = where_greater(chosen, zero, drift, data.drift[k])
    return True
