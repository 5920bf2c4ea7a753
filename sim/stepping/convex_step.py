"""The step of the convex contact law: MuJoCo's, solved once.

Accelerations u̇ without constraints are those of all forces at the state, M u̇ = τ - b. Constraints add Jᵀ f, where f
minimises ½ (u̇ - u̇₀)ᵀ M (u̇ - u̇₀) plus the cost of J u̇ - a_ref over their bounds and cones (Todorov 2014; MuJoCo,
Computation chapter): each row has a reference acceleration and a softness that follow from the state alone
(constraints/impedance.py: softened), and friction cones are without De Saxcé's shift, so that sliding contacts open.
Over a step h u̇ is the change of velocities and h f the impulse, and the solver of all other rows solves these.

Velocities then change by dampers that act at the end of the step: (M + h D) Δu = M Δu_c, Δu_c being the change just
found. D holds the dampers of joints and drives; with implicitfast those of actuators, too. In Runge and Kutta's stages
(stages.py) nothing is implicit. Nothing else is solved again: no bias midway, no aims, no bounds but those of rows.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_vector
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import damper
from artsim.sim.equipment.arrays import EitherEquipment
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import absolute, any_positive, where_greater, zero_like
from artsim.sim.run_data.run_records import Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.solvers.calls import answer, factorise_system, reduce_system
from artsim.sim.stepping.system import set_end_velocities


@njit
def damp_velocities(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment, solver: SolverBundle
) -> None:
    """Let dampers act on the change of velocities found, Δu = Δu_c - (M + h D)⁻¹ h D Δu_c, where rows were solved: in
    steps without rows they act already (free_motion.py). In both widths."""
    model, data, step = robot.model, robot.data, run.step
    chosen = step.bound[0]
    if not any_positive(chosen):
        return
    damped = zero_like(chosen)
    for k in range(step.velocity.shape[0]):
        step.diagonal[k] = chosen * (run.inputs.time_step[0] * damper(model, run, rows, equipment, k))
        step.force[k] = step.diagonal[k] * (step.velocity[k] - robot.state.qvel[k])
        damped = damped + absolute(step.diagonal[k])
    if not any_positive(damped):
        return
    reduce_system(model, data, step, solver)
    factorise_system(model, data, solver)
    reduce_vector(model, step.force, data, data.reduced)
    answer(model, data, solver, 0, step.next.shape[0])
    zero = zero_like(chosen)
    for a in range(step.next.shape[0]):
        step.next[a] = where_greater(chosen, zero, step.next[a] - data.reduced[a], step.next[a])
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] = zero  # rows were solved with M alone
    set_end_velocities(model, data, run)
