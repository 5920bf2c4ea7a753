"""Steps of a pack: 8 robots of one model at once, with masses, gains, inputs and states of their own.

All lanes take the step without rows. Those that it would lead beyond a bound take the step of a single robot instead,
the very entry that `artsim run` calls: so a lane never depends on what the others do.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import actuator_force, coordinate, drive_force
from artsim.sim.constraints.limit import beyond_limits
from artsim.sim.integrators import move
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import kinematics, like, world_inertia
from artsim.sim.lanes import absolute, highest, lane_count, lane_get, lane_set, where_greater
from artsim.sim.recordtype import run_entry
from artsim.sim.rollout import ALONE, HELD, INPUT_ROW, STEP
from artsim.sim.run import NON_FINITE
from artsim.sim.solvers.cone import largest, least
from artsim.sim.step import free_step
from artsim.sim.tables import scatter


@njit
def roll(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, a: Any, x: Any, c: Any, t: Any, o: Any, b: Any) -> None:
    """Take b.plan[0] steps from s, recording every b.plan[1]-th.

    a, x: actuators and what they do; c: inputs over time; t: what is known of the lanes; o: the arrays of the step of
    a single robot; b: what is recorded. A lane whose velocities are not finite is dead: its numbers go on and mean
    nothing.
    """
    for _ in range(b.plan[0]):
        _choose_inputs(w, i, a, x, c, t)
        if t.counters[STEP] % b.plan[1] == 0:
            _record(s, b, t.counters[STEP] // b.plan[1])
        _step(m, s, w, i, r, f, a, x, t, o, b)
        t.counters[STEP] += 1
    for lane in range(lane_count(s.qpos)):
        if t.alive[lane]:
            _record_final(s, b, lane)


@njit
def _choose_inputs(w: Any, i: Any, a: Any, x: Any, c: Any, t: Any) -> None:
    """i's one row: the inputs that act on this step; and what they make of the actuators."""
    before = t.counters[INPUT_ROW]
    row = before
    while row + 1 < c.start_step.shape[0] and c.start_step[row + 1] <= t.counters[STEP]:
        row += 1
    if row == before:
        return
    t.counters[INPUT_ROW] = row
    _spread_row(w, c.torque, row, i.torque)
    _spread_row(w, c.target, row, i.target)
    _spread_row(w, c.target_velocity, row, i.target_velocity)
    _spread_row(w, c.control, row, i.control)
    _actuate(w, i, a, x)


@njit
def _actuate(w: Any, i: Any, a: Any, x: Any) -> None:
    """The actuators' forces by dof, as equipment/actuators.py has them."""
    zero = like(0.0, w)
    for k in range(x.offset.shape[0]):
        x.actuator_total[k] = zero
        x.offset[k] = zero
        x.stiffness[k] = zero
        x.damping[k] = zero
    for n in range(a.dof.shape[0]):
        k = a.dof[n]
        gear = a.gear[n]
        u = _bounded(w, i.control[0, a.control[n]], a.control_lower[n], a.control_upper[n])
        constant = a.gain[n] * u + a.bias[n]
        x.constant[n] = constant
        if a.implicit[n] == 1:
            x.offset[k] = x.offset[k] + gear * constant
            x.stiffness[k] = x.stiffness[k] + gear * gear * a.stiffness[n]
            x.damping[k] = x.damping[k] + gear * gear * a.damping[n]
        else:
            force = _bounded(w, constant, a.force_lower[n], a.force_upper[n])
            x.actuator_total[k] = x.actuator_total[k] + gear * force
    for k in range(x.offset.shape[0]):
        if a.dof_implicit[k] == 0:
            x.actuator_total[k] = _bounded(w, x.actuator_total[k], a.dof_lower[k], a.dof_upper[k])


@inlined
def _bounded(w: Any, value: Any, lower: Any, upper: Any) -> Any:
    """A T within two floats."""
    return least(largest(value, like(lower, w)), like(upper, w))


@inlined
def _spread_row(w: Any, table: Any, row: Any, out: Any) -> None:
    """Row `row` of the table (1 or lanes, rows, n) into the lanes of out (1, n)."""
    for k in range(out.shape[1]):
        if table.shape[0] == 1:
            out[0, k] = like(table[0, row, k], w)
        else:
            for lane in range(lane_count(out)):
                lane_set(out, k, lane, table[lane, row, k])


@njit
def _record(s: Any, b: Any, row: Any) -> None:
    """The state before the step as row `row` of the samples at hand."""
    if b.qpos.shape[1] > 0:
        n = b.qpos.shape[2]
        scatter(s.qpos, b.qpos, (b.plan[2] * b.qpos.shape[1] + row) * n, b.qpos.shape[1] * n)
    if b.qvel.shape[1] > 0:
        n = b.qvel.shape[2]
        scatter(s.qvel, b.qvel, (b.plan[2] * b.qvel.shape[1] + row) * n, b.qvel.shape[1] * n)


@inlined
def _record_final(s: Any, b: Any, lane: Any) -> None:
    sample = b.plan[2] + lane
    for n in range(b.final_qpos.shape[1]):
        b.final_qpos[sample, n] = lane_get(s.qpos, n, lane)
    for k in range(b.final_qvel.shape[1]):
        b.final_qvel[sample, k] = lane_get(s.qvel, k, lane)


@njit
def _step(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, a: Any, x: Any, t: Any, o: Any, b: Any) -> None:
    """One semi-implicit step of all lanes."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    for k in range(f.applied.shape[0]):
        f.applied[k] = i.torque[0, k]
        f.stiffness[k] = i.drive_stiffness[k]
        f.damping[k] = i.drive_damping[k]
    free_step(m, s, w, i, r, f, x)
    t.beyond[0] = largest(_beyond_bounds(m, s, w, i, r, f), _beyond_actuators(m, s, w, i, f, a, x))
    alone = highest(t.beyond[0]) > 0.0
    if alone:
        for lane in range(lane_count(s.qpos)):
            if t.alive[lane] and lane_get(t.beyond, 0, lane) > 0.0:
                _step_alone(m, s, i, t, o, b, lane)
    _find_dead(m, s, w, f, t, b)
    for k in range(f.next.shape[0]):
        s.qvel[m.independent_dof[k]] = f.next[k]
    move(m, s.qpos, s.qvel, i.time_step[0])
    if alone or t.counters[HELD] == 1:
        _take_over(s, w, t)
        t.counters[HELD] = 1 if alone else 0


@inlined
def _beyond_bounds(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any) -> Any:
    """More than 0 where the step without rows breaks a limit of a joint or a drive."""
    h = i.time_step[0]
    beyond = like(-1.0, w)
    for k in range(f.velocity.shape[0]):
        beyond = largest(beyond, beyond_limits(m, s, i, f, k))
        if r.implicit[k] and i.drive_limit[k] < math.inf:
            v = f.velocity[k]
            force = drive_force(i, f, 0, k, coordinate(m, s.qpos, k) + h * v, v)
            beyond = largest(beyond, absolute(force) - i.drive_limit[k] * (1.0 + 1e-12))
    return beyond


@inlined
def _beyond_actuators(m: Any, s: Any, w: Any, i: Any, f: Any, a: Any, x: Any) -> Any:
    """More than 0 where an actuator or the sum of a joint's is beyond its bounds at the end of the step."""
    h = i.time_step[0]
    beyond = like(-1.0, w)
    for n in range(a.dof.shape[0]):
        if a.implicit[n] == 1 and (a.force_lower[n] > -math.inf or a.force_upper[n] < math.inf):
            k = a.dof[n]
            rate = a.gear[n] * f.velocity[k]
            length = a.gear[n] * coordinate(m, s.qpos, k)
            force = x.constant[n] - a.stiffness[n] * (length + h * rate) - a.damping[n] * rate
            beyond = largest(beyond, _outside(force, a.force_lower[n], a.force_upper[n]))
    for k in range(f.velocity.shape[0]):
        if a.dof_implicit[k] == 1 and (a.dof_lower[k] > -math.inf or a.dof_upper[k] < math.inf):
            v = f.velocity[k]
            force = actuator_force(x, k, coordinate(m, s.qpos, k) + h * v, v)
            beyond = largest(beyond, _outside(force, a.dof_lower[k], a.dof_upper[k]))
    return beyond


@inlined
def _outside(force: Any, lower: Any, upper: Any) -> Any:
    """More than 0 where a force is outside its bounds by more than rounding."""
    slack = 1e-12 * absolute(force)
    return largest(lower - slack - force, force - upper - slack)


@njit
def _step_alone(m: Any, s: Any, i: Any, t: Any, o: Any, b: Any, lane: Any) -> None:
    """The step of one lane by the entry of single robots, with rows where they are needed; the result into t."""
    _take_robot(m, i, o, lane)
    _take_lane(s.qpos, lane, o.qpos)
    _take_lane(s.qvel, lane, o.qvel)
    _take_lane(t.impulse, lane, o.impulse)
    for n in range(o.counters.shape[0]):
        o.counters[n] = 0
    o.counters[0] = t.counters[STEP]
    run_entry(t.single)
    t.counters[ALONE] += 1
    if o.counters[2] == NON_FINITE:
        _end(s, t, b, lane, o.counters[3])
        return
    _put_lane(o.qpos, t.qpos, lane)
    _put_lane(o.qvel, t.qvel, lane)
    _put_lane(o.impulse, t.impulse, lane)


@njit
def _take_robot(m: Any, i: Any, o: Any, lane: Any) -> None:
    """What is a lane's own beside its state."""
    _take_lane(m.body_mass, lane, o.body_mass)
    _take_lane(m.carried_mass, lane, o.carried_mass)
    _take_lane(m.body_moment, lane, o.body_moment)
    _take_lane(m.body_inertia, lane, o.body_inertia)
    _take_lane(m.armature, lane, o.armature)
    _take_lane(m.damping, lane, o.damping)
    _take_lane(m.stiffness, lane, o.stiffness)
    _take_lane(i.drive_stiffness, lane, o.drive_stiffness)
    _take_lane(i.drive_damping, lane, o.drive_damping)
    _take_lane(i.torque, lane, o.torque)
    _take_lane(i.target, lane, o.target)
    _take_lane(i.target_velocity, lane, o.target_velocity)
    _take_lane(i.control, lane, o.control)


@inlined
def _take_lane(values: Any, lane: Any, out: Any) -> None:
    for n in range(out.size):
        lane_set(out, n, 0, lane_get(values, n, lane))


@inlined
def _put_lane(values: Any, out: Any, lane: Any) -> None:
    for n in range(values.size):
        lane_set(out, n, lane, lane_get(values, n, 0))


@njit
def _find_dead(m: Any, s: Any, w: Any, f: Any, t: Any, b: Any) -> None:
    """Lanes whose velocities at the end of the step without rows are not finite, and which nothing else replaces."""
    total = like(0.0, w)
    for a in range(f.next.shape[0]):
        total = total + 0.0 * f.next[a]
    one = like(1.0, w)
    t.dead[0] = where_greater(one, total, one - one, one)  # not a number is not less than one
    if highest(t.dead[0]) > 0.0:
        for lane in range(lane_count(s.qpos)):
            if t.alive[lane] and lane_get(t.dead, 0, lane) > 0.0 and not lane_get(t.beyond, 0, lane) > 0.0:
                first = 0
                while math.isfinite(lane_get(f.next, first, lane)):
                    first += 1
                _end(s, t, b, lane, m.independent_dof[first])


@njit
def _end(s: Any, t: Any, b: Any, lane: Any, dof: Any) -> None:
    """A lane stops here: the state before the step is its final one."""
    t.alive[lane] = 0
    t.stopped[lane] = t.counters[STEP]
    t.stopped_dof[lane] = dof
    _record_final(s, b, lane)


@njit
def _take_over(s: Any, w: Any, t: Any) -> None:
    """What lanes found that took the step alone; solvers of the others start from nothing the next time."""
    zero = like(0.0, w)
    beyond = t.beyond[0]
    for n in range(s.qpos.shape[0]):
        s.qpos[n] = where_greater(beyond, zero, t.qpos[n], s.qpos[n])
    for k in range(s.qvel.shape[0]):
        s.qvel[k] = where_greater(beyond, zero, t.qvel[k], s.qvel[k])
    for n in range(t.impulse.shape[0]):
        t.impulse[n] = where_greater(beyond, zero, t.impulse[n], zero)
