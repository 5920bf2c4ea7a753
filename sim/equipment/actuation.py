"""Forces on the joints: drives, springs, damping; the row of inputs that acts.

Linear forces enter M̂ = M + h D + h² a K and are therefore stable at any gain. Drives that reach their limit are held
there (drives.py), and Coulomb friction is a constraint row (constraints/).

Dampers act at the velocity at the end of the step. A spring acts at q + h (a v⁺ - b v), whose weights depend on x = hω
with the spring's own frequency ω, s = min(1, 1/x²):

    a = 1 - ¾ s,  b = ¼ s

Up to x = 1 (six steps per period) a = b = ¼: Newmark's β = ¼ in its two-step form, f = -K (¼ q⁺ + ½ q + ¼ q⁻), with
velocities between the positions. This scheme is stable at any x, conserves energy, and differs from the explicit spring
of MuJoCo's Euler by h² only. Faster motion cannot be resolved in such steps: there the weights approach those of
implicit Euler (a = 1, b = 0), with which a stiff drive reaches its target within a step or two.
"""

from __future__ import annotations

import math

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.equipment.bounds import at_bound
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import (
    any_positive,
    lane_count,
    lane_get,
    lane_set,
    real,
    zero_like,
)
from artsim.sim.foundation.quaternions import quaternion_along, rotation_between
from artsim.sim.foundation.records import Ints1, Lanes1, Lanes2, Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.registry import SWEEPING
from artsim.sim.run_data.run_records import (
    CONTROL_ROW,
    EXPLICIT_EULER,
    IMPLICITFAST,
    NOT_CONVEX,
    RUNGE_KUTTA,
    Inputs,
    Rows,
    RunBundle,
)


@inlined
def control_row(start_step: Ints1, row: int, now: int) -> int:
    """Index of the input row that acts on step `now`, searched from `row`, which acted before."""
    while row + 1 < start_step.shape[0] and start_step[row + 1] <= now:
        row += 1
    return row


@njit
def find_places(model: Model, q: Lanes1, run: RunBundle, row: int) -> None:
    """Set step.place (nv,): the coordinates, and their substitutes for the rotations of ball and free joints.

    A drive of a ball or free joint acts along the rotation vector to the target, e = log(q⁻¹ exp(target)) in the
    joint's axes; the place of its rotational dofs is their target minus e.
    """
    inputs, step = run.inputs, run.step
    for k in range(step.place.shape[0]):
        step.place[k] = coordinate(model, q, k)
    for body in range(1, model.body_parent.shape[0]):
        kind = model.joint_type[body]
        if kind == BALL or kind == FREE:
            k = model.body_dof[body]
            n = model.body_coord[body]
            shift = 3 if kind == FREE else 0
            stiff = (
                inputs.drive_stiffness[k + shift]
                + inputs.drive_stiffness[k + shift + 1]
                + inputs.drive_stiffness[k + shift + 2]
            )
            if any_positive(stiff):
                for lane in range(lane_count(q)):
                    _find_turn(
                        q, n + shift, inputs.target, row * step.place.shape[0] + k + shift, step.place, k + shift, lane
                    )


@njit
def _find_turn(q: Lanes1, n: int, target: Lanes2, at: int, place: Lanes1, k: int, lane: int) -> None:
    """Set place[k:k+3] of one lane to the target vector minus log(q⁻¹ exp(target)); q's quaternion starts at n."""
    w = lane_get(q, n, lane)
    x = lane_get(q, n + 1, lane)
    y = lane_get(q, n + 2, lane)
    z = lane_get(q, n + 3, lane)
    t0 = lane_get(target, at, lane)
    t1 = lane_get(target, at + 1, lane)
    t2 = lane_get(target, at + 2, lane)
    c, a, b, d = quaternion_along(t0, t1, t2)
    e0, e1, e2 = rotation_between(w, x, y, z, c, a, b, d)
    lane_set(place, k, lane, t0 - e0)
    lane_set(place, k + 1, lane, t1 - e1)
    lane_set(place, k + 2, lane, t2 - e2)


@inlined
def spring_step(inputs: Inputs) -> float:
    """The time by which springs foresee the motion [s]: the step; 0 under the convex law, as in MuJoCo."""
    h: float = inputs.time_step[0]
    return h if inputs.convex[0] == NOT_CONVEX else 0.0


@inlined
def damper(model: Model, run: RunBundle, rows: Rows, equipment: EitherEquipment, k: int) -> Real:
    """The damping of dof k that acts at the end of a step of the convex law, in both widths."""
    law, zero = run.inputs.convex[0], zero_like(run.step.velocity[k])
    if law == RUNGE_KUTTA:
        return zero
    damping = part_of_matrix(run, rows, k) * run.step.damping[k]
    if law != EXPLICIT_EULER:
        damping = damping + model.damping[k]
    if equipment is not None:  # noqa: SIM102  # known to the compiler, the next condition not
        if law == IMPLICITFAST:
            damping = damping + equipment.data.damping[k]
    return damping


@inlined
def driven_at(state: State, run: RunBundle, k: int) -> Real:
    """The coordinate at which the drive of dof k acts; see felt_at."""
    step = run.step
    return step.place[k] + spring_step(run.inputs) * foreseen(step.share[k], state.qvel[k], step.velocity[k])


@njit
def drive_force(run: RunBundle, row: int, k: int, q: Real, v: Real) -> Real:
    """Force of drive k at coordinate q and velocity v; its largest force where it is held there [N m or N]."""
    inputs, step = run.inputs, run.step
    force = step.stiffness[k] * (inputs.target[row, k] - q) + step.damping[k] * (inputs.target_velocity[row, k] - v)
    if inputs.drive_limit[k] < math.inf:
        force = at_bound(step.drive_held[k], -inputs.drive_limit[k], inputs.drive_limit[k], force)
    return force


@inlined
def part_of_matrix(run: RunBundle, rows: Rows, k: int) -> Real:
    """1 where the drive of dof k is a part of M̂; 0 where it is a row, or there is none."""
    by_row = run.step.drive_rows[0]
    if not rows.implicit[k]:
        return zero_like(by_row)
    return 1.0 - by_row if run.inputs.drive_limit[k] < math.inf else zero_like(by_row) + 1.0


@njit
def coordinate(model: Model, q: Lanes1, k: int) -> Real:
    """The coordinate of dof k; 0 for the rotations of ball and free joints, which have no coordinate per dof."""
    c = model.dof_coord[k]
    return q[c] if c >= 0 else real(0.0, q[0])


@njit
def weigh_springs(model: Model, run: RunBundle, equipment: EitherEquipment) -> None:
    """Set step.share (nv,) of the springs and drives of each dof: s = min(1, 1/x²), x² = h² K (M⁻¹)_kk.

    A drive whose gains are accelerations has x² = h² K. Drives of the sweeping solvers are implicit Euler as in PhysX.
    """
    inputs, step = run.inputs, run.step
    square = inputs.time_step[0] * inputs.time_step[0]
    for k in range(step.share.shape[0]):
        stiff = model.stiffness[k] * inputs.mobility[k]
        drive = inputs.drive_stiffness[k]
        stiff = stiff + (drive if inputs.drive_acceleration[k] == 1 else drive * inputs.mobility[k])
        if equipment is not None:
            stiff = stiff + equipment.data.stiffness[k] * inputs.mobility[k]
        one = real(1.0, stiff)
        step.share[k] = one / largest(one, square * stiff)
        if SWEEPING[inputs.solver[0]] and any_positive(inputs.drive_stiffness[k] + inputs.drive_damping[k]):
            step.share[k] = zero_like(one)


@inlined
def foreseen(share: Real, before: Real, after: Real) -> Real:
    """a v⁺ - b v: times h the displacement at which a spring of this share acts, for velocities v before, v⁺ after."""
    return after - share * (0.75 * after + 0.25 * before)


@inlined
def felt_at(robot: RobotBundle, run: RunBundle, k: int) -> Real:
    """The coordinate at which springs of dof k act in the step that ends at step.velocity."""
    state = robot.state
    step = run.step
    return coordinate(robot.model, state.qpos, k) + spring_step(run.inputs) * foreseen(
        step.share[k], state.qvel[k], step.velocity[k]
    )


@inlined
def actuator_force(equipment: EquipmentBundle, k: int, q: Real, v: Real) -> Real:
    """Actuator force on dof k: explicit actuators, and implicit ones at coordinate q and velocity v [N m or N]."""
    return (
        equipment.data.actuator_total[k]
        + equipment.data.offset[k]
        - equipment.data.stiffness[k] * q
        - equipment.data.damping[k] * v
    )


@njit
def implicit_system(robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EitherEquipment) -> None:
    """Set step.diagonal, h D + h² a K of damping, springs and drives in M̂, and step.force, the force without bias.

    M̂ Δv = h (f - bias) with f = applied - K (q + h (a - b) v - target) - D (v - target velocity).
    """
    model, state = robot.model, robot.state
    step = run.step
    h = run.inputs.time_step[0]
    row = step.counters[CONTROL_ROW]
    for k in range(step.force.shape[0]):
        q = coordinate(model, state.qpos, k)
        v = state.qvel[k]
        ahead = spring_step(run.inputs) * foreseen(step.share[k], v, v)
        q = q + ahead
        d = model.damping[k] + robot.data.slack[k]
        stiff = model.stiffness[k]
        force = step.applied[k] - d * v - stiff * (q - model.spring_reference[k])
        if rows.implicit[k]:
            part = part_of_matrix(run, rows, k)
            d += part * step.damping[k]
            stiff += part * step.stiffness[k]
            force += part * drive_force(run, row, k, step.place[k] + ahead, v)
        if equipment is not None:
            d += equipment.data.damping[k]
            stiff += equipment.data.stiffness[k]
            force += actuator_force(equipment, k, q, v) + equipment.data.passive[k] + equipment.data.tendon[k]
        step.diagonal[k] = h * d + h * h * (1.0 - 0.75 * step.share[k]) * stiff
        if run.inputs.convex[0] != NOT_CONVEX:  # which adds dampers afterwards (stepping/convex_step.py)
            step.diagonal[k] = zero_like(v)
        step.force[k] = force


@njit
def passive_forces(robot: RobotBundle, run: RunBundle) -> None:
    """Set step.passive (nv,), the forces of damping and springs over the step [N m or N]."""
    model = robot.model
    step = run.step
    law = run.inputs.convex[0]
    for k in range(step.passive.shape[0]):
        v = robot.state.qvel[k] if law == EXPLICIT_EULER or law == RUNGE_KUTTA else step.velocity[k]
        q = felt_at(robot, run, k)
        step.passive[k] = -model.damping[k] * v - model.stiffness[k] * (q - model.spring_reference[k])
