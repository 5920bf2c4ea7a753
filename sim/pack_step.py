"""Steps of a pack: 8 robots of one model at once, with masses, gains, inputs and states of their own.

All lanes take the step without rows, or that with rows of joint friction and of contacts with what never moves. Those
that it would lead beyond another bound, that touch something else or that the solver of packs does not settle take the
step of a single robot instead, the very entry that `artsim run` calls: so a lane never depends on what the others do.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import (
    actuator_force,
    coordinate,
    drive_force,
    driven_at,
    felt_at,
    find_places,
    foreseen,
    implicit_system,
    weigh_springs,
)
from artsim.sim.constraints.limit import beyond_limits
from artsim.sim.coupling import reduce_matrix
from artsim.sim.dynamics import composites, coupled_bias, mass_matrix
from artsim.sim.integrators import move
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, kinematics, like, world_inertia
from artsim.sim.lanes import absolute, highest, lane_count, lane_get, lane_set, where_greater
from artsim.sim.midpoint import foresee_spin, turning_and_tautness, unsettled
from artsim.sim.pack_rows import build_in_lanes, find_in_lanes, find_outrun, note_contacts, place_world, untamed
from artsim.sim.recordtype import run_entry
from artsim.sim.rollout import ALONE, CROWD, HELD, INPUT_ROW, STEP
from artsim.sim.run import CROWDED, NON_FINITE
from artsim.sim.solvers.cone import largest, least
from artsim.sim.system import free_step
from artsim.sim.tables import scatter


@njit
def roll(
    m: Any,
    s: Any,
    w: Any,
    i: Any,
    r: Any,
    f: Any,
    a: Any,
    x: Any,
    c: Any,
    t: Any,
    o: Any,
    b: Any,
    y: Any,
    g: Any,
    p: Any,
    d: Any,
) -> None:
    """Take b.plan[0] steps from s, recording every b.plan[1]-th; fewer where there is no room for all contacts.

    a, x: actuators and what they do; c: inputs over time; t: what is known of the lanes; o: the arrays of the step of
    a single robot; b: what is recorded; y: of rows, where there may be some; g, p, d: where there may be contacts,
    shapes, contacts of the lanes, detection's scratch. A lane whose velocities are not finite is dead: its numbers go
    on and mean nothing.
    """
    if g is not None:
        place_world(m, w, g, p, d)
    for _ in range(b.plan[0]):
        _choose_inputs(w, i, a, x, c, t)
        if t.counters[STEP] % b.plan[1] == 0:
            _record(s, b, t.counters[STEP] // b.plan[1])
        _step(m, s, w, i, r, f, a, x, t, o, b, y, g, p, d)
        if t.counters[CROWD] == 1:
            return
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
def _step(
    m: Any,
    s: Any,
    w: Any,
    i: Any,
    r: Any,
    f: Any,
    a: Any,
    x: Any,
    t: Any,
    o: Any,
    b: Any,
    y: Any,
    g: Any,
    p: Any,
    d: Any,
) -> None:
    """One semi-implicit step of all lanes, or none and t.counters[CROWD] = 1 where there is no room for contacts."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    if g is not None and not find_in_lanes(m, s, w, i, g, p, d, t.alive):
        t.counters[CROWD] = 1
        return
    for k in range(f.applied.shape[0]):
        f.applied[k] = i.torque[0, k]
        f.stiffness[k] = i.drive_stiffness[k]
        f.damping[k] = i.drive_damping[k]
        f.middle[k] = s.qvel[k]
    foresee_spin(m, s.qvel, w, i.time_step[0], f.middle)
    find_places(m, s.qpos, i, f, 0)
    weigh_springs(m, i, f, x)
    t.beyond[0] = like(-1.0, w)
    if y is None:
        free_step(m, s, w, i, r, f, x)
    else:
        _step_with_rows(m, s, w, i, r, f, x, t, y, g, p, d)
    beyond = largest(_beyond_bounds(m, s, w, i, r, f), _beyond_actuators(m, s, w, i, f, a, x))
    t.beyond[0] = largest(t.beyond[0], largest(beyond, _needs_more(m, s, w, i, f, y)))
    alone = highest(t.beyond[0]) > 0.0
    if alone:
        for lane in range(lane_count(s.qpos)):
            if t.alive[lane] and lane_get(t.beyond, 0, lane) > 0.0:
                _step_alone(m, s, i, t, o, b, g, p, lane)
                if t.counters[CROWD] == 1:
                    return
    _find_dead(m, s, w, f, t, b)
    if y is not None:
        for n in range(y.rubbing.shape[0]):
            y.held[n] = where_greater(t.beyond[0], like(0.0, w), like(0.0, w), y.impulse[n])
    if g is not None:
        note_contacts(w, y, p, t.alive, t.beyond)
        p.half[0] = 1 - p.half[0]
    for k in range(f.next.shape[0]):
        s.qvel[m.independent_dof[k]] = f.next[k]
    move(m, s.qpos, s.qvel, i.time_step[0])
    if alone or t.counters[HELD] == 1:
        _take_over(s, w, t)
        t.counters[HELD] = 1 if alone else 0


@njit
def _step_with_rows(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any, t: Any, y: Any, g: Any, p: Any, d: Any
) -> None:
    """f.next, f.velocity of the lanes without rows by the step without, of the others by the pack's solver.

    t.beyond: more than 0 where that is not all that there is.
    """
    _choose_bound(s, w, t, y, g, p)
    if highest(1.0 - y.bound[0]) > 0.0:
        free_step(m, s, w, i, r, f, x)
        for k in range(y.free.shape[0]):
            y.free[k] = f.next[k]
    if highest(y.bound[0]) > 0.0:
        _solve_rows(m, s, w, i, r, f, x, y, g, p)
        zero = like(0.0, w)
        for k in range(f.next.shape[0]):
            f.next[k] = where_greater(y.bound[0], zero, f.next[k], y.free[k])
            f.velocity[k] = f.next[k]
        t.beyond[0] = where_greater(y.bound[0], y.solved[0], like(1.0, w), t.beyond[0])
        if g is not None:
            t.beyond[0] = largest(t.beyond[0], untamed(w, i, r, f, s, y, p))
    if g is not None:
        t.beyond[0] = largest(t.beyond[0], p.away[0])
        find_outrun(m, w, i, f, g, p, d, t.alive, t.beyond)
        t.beyond[0] = largest(t.beyond[0], p.outrun[0])


@njit
def _choose_bound(s: Any, w: Any, t: Any, y: Any, g: Any, p: Any) -> None:
    """y.bound: who has rows; y.skip: who is not asked for. The dead are counted among both."""
    one = like(1.0, w)
    y.bound[0] = one if y.rubbing.shape[0] > 0 else one - one
    y.skip[0] = one - one
    if g is not None:
        y.bound[0] = largest(y.bound[0], p.touching[0])
        y.skip[0] = p.away[0]
    for lane in range(lane_count(s.qpos)):
        if not t.alive[lane]:
            lane_set(y.bound, 0, lane, 1.0)
            lane_set(y.skip, 0, lane, 1.0)
        elif lane_get(y.bound, 0, lane) == 0.0:
            lane_set(y.skip, 0, lane, 1.0)


@njit
def _solve_rows(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any, y: Any, g: Any, p: Any) -> None:
    """f.next by the pack's solver."""
    coupled_bias(m, f.middle, w)
    composites(m, w)
    mass_matrix(m, w)
    implicit_system(m, s, w, i, r, f, x)
    reduce_matrix(m, w, f.diagonal)
    for k in range(f.force.shape[0]):
        f.free[k] = i.time_step[0] * (f.force[k] - w.bias[k])
        f.next[k] = s.qvel[k]
    build_in_lanes(m, w, i, r, f, y, g, p)
    run_entry(y.entry)


@inlined
def _needs_more(m: Any, s: Any, w: Any, i: Any, f: Any, y: Any) -> Any:
    """More than 0 where one evaluation of the step is not enough (midpoint.py)."""
    h = i.time_step[0]
    if y is not None:
        for k in range(f.qacc.shape[0]):
            f.qacc[k] = (f.velocity[k] - s.qvel[k]) / h
        accelerations(m, s.qvel, f.qacc, w)
    turning, tautness = turning_and_tautness(m, w, h)
    return largest(least(turning, unsettled(m, s, w, f)), tautness)


@inlined
def _beyond_bounds(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any) -> Any:
    """More than 0 where the step without rows breaks a limit of a joint or a drive."""
    beyond = like(-1.0, w)
    for k in range(f.velocity.shape[0]):
        beyond = largest(beyond, beyond_limits(m, s, i, f, k))
        if r.implicit[k] and i.drive_limit[k] < math.inf:
            force = drive_force(i, f, 0, k, driven_at(s, i, f, k), f.velocity[k])
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
            ahead = h * a.gear[n] * foreseen(f.share[k], s.qvel[k], f.velocity[k])
            length = a.gear[n] * coordinate(m, s.qpos, k)
            force = x.constant[n] - a.stiffness[n] * (length + ahead) - a.damping[n] * rate
            beyond = largest(beyond, _outside(force, a.force_lower[n], a.force_upper[n]))
    for k in range(f.velocity.shape[0]):
        if a.dof_implicit[k] == 1 and (a.dof_lower[k] > -math.inf or a.dof_upper[k] < math.inf):
            force = actuator_force(x, k, felt_at(m, s, i, f, k), f.velocity[k])
            beyond = largest(beyond, _outside(force, a.dof_lower[k], a.dof_upper[k]))
    return beyond


@inlined
def _outside(force: Any, lower: Any, upper: Any) -> Any:
    """More than 0 where a force is outside its bounds by more than rounding."""
    slack = 1e-12 * absolute(force)
    return largest(lower - slack - force, force - upper - slack)


@njit
def _step_alone(m: Any, s: Any, i: Any, t: Any, o: Any, b: Any, g: Any, p: Any, lane: Any) -> None:
    """The step of one lane by the entry of single robots, with rows where they are needed; the result into t."""
    if g is not None:
        _take_contacts(g, p, o, lane)
    _take_robot(m, i, o, lane)
    _take_lane(s.qpos, lane, o.qpos)
    _take_lane(s.qvel, lane, o.qvel)
    _take_lane(t.impulse, lane, o.impulse)
    for n in range(o.counters.shape[0]):
        o.counters[n] = 0
    o.counters[0] = t.counters[STEP]
    run_entry(t.single)
    if o.counters[2] == CROWDED:
        t.counters[CROWD] = 1
        return
    t.counters[ALONE] += 1
    if o.counters[2] == NON_FINITE:
        _end(s, t, b, lane, o.counters[3])
        return
    _put_lane(o.qpos, t.qpos, lane)
    _put_lane(o.qvel, t.qvel, lane)
    _put_lane(o.impulse, t.found, lane)
    if g is not None:
        memory = p.memory[1 - p.half[0], lane]
        for n in range(memory.shape[0]):
            for j in range(memory.shape[1]):
                memory[n, j] = o.contact[n, j]


@njit
def _take_contacts(g: Any, p: Any, o: Any, lane: Any) -> None:
    """A lane's contacts of the last step, and its friction."""
    memory = p.memory[p.half[0], lane]
    for n in range(memory.shape[0]):
        for j in range(memory.shape[1]):
            o.contact[n, j] = memory[n, j]
    factor = lane_get(p.factor, 0, lane)
    for n in range(g.friction.shape[0]):
        for j in range(g.friction.shape[1]):
            o.contact_friction[n, j] = factor * g.friction[n, j]
    for n in range(g.pair_friction.shape[0]):
        for j in range(g.pair_friction.shape[1]):
            o.pair_friction[n, j] = factor * g.pair_friction[n, j]


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
    _take_lane(m.friction, lane, o.friction)
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
        t.impulse[n] = where_greater(beyond, zero, t.found[n], zero)
