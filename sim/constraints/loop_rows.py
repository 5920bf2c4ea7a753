"""Builds the rows of loop joints, which hold up to six coordinates of a frame of one link in a frame of another.

Two points coincide (connect), two frames coincide (weld), two points and the z axes of their frames do (hinge), or any
of six axes are held (loop joint).

C = p_a - p_b in world axes, and for a weld also the vector part of conj(q_b) q_a times its torque scale: MuJoCo's
efc_pos and efc_J, except for the common sign of a weld's last three rows (here the quaternion with w ≥ 0 is taken).
A hinge has the first two of these three: x² + y² = sin² of half the angle between the z axes, for any turn about them.
A loop joint has the rows of the axes that it holds, and its translation in the axes of frame a, which move. A loop
joint that holds one rotation alone holds the twist about its axis: a homokinetic joint, as PhysX's with locked twist.

A planar loop, and many a closed linkage, has more rows than it removes degrees of freedom, and the redundant rows
contradict the others slightly: by rounding in the file, and by curvature within a step (a Bennett linkage held rigidly
off its path locks). No loop is therefore quite hard: each of its rows yields by _YIELD of its links' mobility, which
leaves it open by _YIELD h² times their acceleration and keeps impulses bounded. A loop whose solref the file sets
yields as in MuJoCo (Computation chapter, "Constraint model"): R f = -C̈ - B Ċ - K d C. (In RK4: 100 _YIELD h².) A
loop that is a spring is weighed as springs of joints are: r = 1 by stiffness, by frequency the mean of J M⁻¹ Jᵀ, or its
compliance, where 0 is hard without that yield.

Of the ways to correct the error, only this one keeps both gap and energy where a four-bar linkage swings for 10 s in
steps of 4 ms (tests/benchmarks/loop_correction.py): 3e-4 mm and 0.09 m g L, or 0.016 mm when aimed once. Baumgarte's
terms leave 1.5 to 7 mm, C / h on the velocities 0.4 mm; split impulses and projection lose 0.3 m g L for any gap.
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import solve
from artsim.sim.articulation.kinematics import add_jacobian, like, link_frame, origin_of, point_of
from artsim.sim.articulation.model import D_MAX, LINEAR, Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.impedance import (
    behind,
    impedance,
    is_convex,
    safe_reference,
    slowest,
    softened,
    sprung,
)
from artsim.sim.constraints.kinds import LOOP_ROW
from artsim.sim.constraints.row import add_entry, add_row, closing_rate, within_reach
from artsim.sim.equipment.arrays import (
    BY_FREQUENCY,
    LOOP_JOINT,
    REFERENCE_B,
    REFERENCE_K,
    REFERENCE_TIME,
    RIGID,
    EquipmentBundle,
)
from artsim.sim.equipment.loop_axes import end_frame, end_point, relative
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, real, sqrt, surely_zero, where_greater, zero_like
from artsim.sim.foundation.mat3 import turn, turned, turned_back
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Lanes1, Lanes2, Mat3, Real, Reals1, Reals2, Reals3, Vec3, Vec4
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.spatial import pair_of, set_six
from artsim.sim.foundation.vec3 import (
    add_to_row,
    column_of,
    cross,
    dot,
    minus,
    minus_times,
    plus,
    plus_times,
    put,
    put_at,
    row_of,
    set_column,
    set_row,
    times,
    triple,
    triple_at,
)
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    BETA,
    LASTING_ROWS,
    LEAST_GAP,
    OPENED,
    OPENED_LOOP,
    STEP_NUMBER,
    Inputs,
    Rows,
    RunBundle,
    Step,
)

_SPEED = 0.5  # [m/s or rad/s] at which a loop that starts open is closed by rows on accelerations
_YIELD = 2e-6
_TRACE = 1e-7
HAIR = 1e-9  # [m or rad]
_SURPLUS = 1e-5
STRAINED = 1e-7  # [m or rad] opening of a row in a step from which loads count (stepping/strain.py)
_LEAST_PUSH, _MOST_PUSH = 0.01, 2e3  # power of a contact that strains loops, as shares of the power of their yield


@njit
def loop_rows(
    model: Model, v: Lanes1, data: Workspace, run: RunBundle, rows: Rows, equipment: EquipmentBundle, J: Lanes2
) -> None:
    """Append the rows of all loops: C + h J v⁺ + ½ h² (J̇ v + J Ġ u) = 0 at the end of the step, to second order.

    A soft one: R λ / h = -C̈ - B Ċ - K d C (impedance.py).
    Needs motion columns and the accelerations at zero independent acceleration, as mass matrix and bias leave them.
    J (6, nv) is scratch. In both widths: of packs, `equipment` is the pack's loops.
    """
    inputs, step = run.inputs, run.step
    h = inputs.time_step[0]
    for n in range(equipment.model.loop_kind.shape[0]):
        loop_geometry(model, v, data, equipment, n, J)
        d = impedance(equipment.model.loop_impedance, n, _openness(equipment, n))
        K, B = equipment.model.loop_reference[n, REFERENCE_K], equipment.model.loop_reference[n, REFERENCE_B]
        reference = safe_reference(h, K, B, equipment.model.loop_reference[n, REFERENCE_TIME])
        for part in range(_parts(equipment, n)):
            size = _size(equipment, n, part)
            for axis in range(3 * part, 3 * part + 3):
                if not equipment.model.loop_held[n, axis]:
                    continue
                row = _add_loop_row(model, data, rows, equipment, n, axis, J)
                C = equipment.data.loop_error[n, axis]
                drift = equipment.data.loop_drift[axis]
                mobility = equipment.data.loop_mobility[n, part]
                speed = _rate(v, J, axis)
                rows.error[row] = C
                rate = within_reach(rows, row, closing_rate(inputs, size, equipment.model.loop_erp[n]))
                rows.rate[row] = rate if K < 0.0 else zero_like(rate)
                rows.bias[row] = rate * (C + behind(inputs) * speed) + (1.5 - inputs.scheme[BETA]) * h * drift
                rows.cfm[row] = softness(equipment, n, axis)
                if equipment.model.loop_sprung[n] != RIGID:
                    spring = equipment.model.loop_spring[n, part]
                    rows.rate[row], rows.bias[row], rows.cfm[row] = sprung(
                        inputs,
                        (spring[REFERENCE_K], spring[REFERENCE_B]),
                        _resistance(equipment, n, part),
                        mobility,
                        C,
                        speed,
                        drift,
                        0.5,
                    )
                elif K >= 0.0:
                    rows.bias[row], rows.cfm[row] = softened(inputs, h, reference, d, mobility, C, speed, drift)
                    if is_convex(inputs):  # of equalities, MuJoCo counts J̇ v of these alone
                        rows.bias[row] += h * drift
    if run.lanes is None:
        _note_gaps(step, equipment)


@inlined
def _parts(equipment: EquipmentBundle, n: int) -> int:
    """1 where loop n holds translations alone, 2 where it holds rotations too."""
    held = equipment.model.loop_held[n]
    return 2 if held[3] + held[4] + held[5] > 0 else 1


@inlined
def next_held(equipment: EquipmentBundle, n: int, axis: int) -> int:
    """The line of C of the row of loop n after that of line `axis`; after -1 the first."""
    axis += 1
    while not equipment.model.loop_held[n, axis]:
        axis += 1
    return axis


@inlined
def _resistance(equipment: EquipmentBundle, n: int, part: int) -> Real:
    """The divisor of K and B of a spring: the mobility, 1, or a compliance."""
    mobility = equipment.data.loop_mobility[n, part]
    if equipment.model.loop_sprung[n] == BY_FREQUENCY:
        return mobility
    return real(equipment.model.loop_compliance[n, part], mobility)


@njit
def loop_spring_energy(model: Model, data: Workspace, equipment: EquipmentBundle) -> float:
    """Energy of the loops that are springs [J]; data holds the kinematics, loop_mobility is known."""
    energy = 0.0
    for n in range(equipment.model.loop_kind.shape[0]):
        if equipment.model.loop_sprung[n] == RIGID:
            continue
        loop_error(model, data, equipment, n)
        for part in range(_parts(equipment, n)):
            resistance = _resistance(equipment, n, part)
            stiffness = equipment.model.loop_spring[n, part, REFERENCE_K] / resistance if resistance > 0.0 else 0.0
            for axis in range(3 * part, 3 * part + 3):  # C is 0 where it is free
                energy += 0.5 * stiffness * equipment.data.loop_error[n, axis] ** 2
    return energy


@inlined
def has_loops(equipment: EquipmentBundle) -> bool:
    """True if there are loops, whose rows exist in every step."""
    return equipment.model.loop_kind.shape[0] > 0


@njit
def has_hard_loops(equipment: EquipmentBundle) -> bool:
    """True if a loop is to be closed exactly."""
    for n in range(equipment.model.loop_kind.shape[0]):
        if equipment.model.loop_reference[n, REFERENCE_K] < 0.0:
            return True
    return False


@inlined
def is_hard(equipment: EquipmentBundle, n: int) -> bool:
    """True if loop n is to be closed exactly, its rows yielding by _YIELD alone."""
    return equipment.model.loop_reference[n, REFERENCE_K] < 0.0 and equipment.model.loop_sprung[n] == RIGID


@inlined
def softness(equipment: EquipmentBundle, n: int, axis: int) -> Real:
    """The cfm of a row of loop n that is to be closed exactly."""
    return _YIELD * equipment.data.loop_mobility[n, axis // 3]


@inlined
def is_pushing(power: Real, taken: Real) -> Real:
    """1 where loops may yield to the removal of a penetration, by the power of the removal and the power `taken` by the
    yield, in both widths.

    A removal that moves bodies has a million times the power of the yield, and less only where the bodies are much
    harder to move along the contact's normal than by themselves; a small removal beside a load has far less.
    """
    zero = zero_like(power)
    enough = where_greater(power, _LEAST_PUSH * taken, zero + 1.0, zero)
    return where_greater(_MOST_PUSH * taken, power, enough, zero)


@inlined
def is_of_hard_loop(rows: Rows, equipment: EquipmentBundle, n: int) -> bool:
    """True if row n is one of a loop that is to be closed exactly."""
    return rows.kind[n] == LOOP_ROW and is_hard(equipment, rows.dof[n])


@njit
def find_loop_misses(model: Model, data: Workspace, inputs: Inputs, rows: Rows, equipment: EquipmentBundle) -> Real:
    """Set rows.miss of the rows of hard loops, and return the largest; data holds the kinematics of the step's end. In
    both widths."""
    h, worst = inputs.time_step[0], like(0.0, data)
    before = -1
    for row in range(rows.number[LASTING_ROWS]):
        if not is_of_hard_loop(rows, equipment, row):
            continue
        n = rows.dof[row]
        if n != before:
            loop_error(model, data, equipment, n)
        before = n
        wanted = rows.error[row] - h * rows.rate[row] * rows.error[row]
        miss = equipment.data.loop_error[n, rows.part[row]] - wanted
        rows.miss[rows.place[row]] = miss
        worst = largest(worst, absolute(miss))
    return worst


@njit
def relax_loops(inputs: Inputs, rows: Rows, equipment: EquipmentBundle, chosen: Real) -> Real:
    """Remove from the bias of hard loops' rows the part that their yield leaves, which is then in rows.miss, where
    `chosen` is 1; 1 where it is not negligible. In both widths.

    Where a row is redundant, a tiny gap in a direction in which nothing can move is opposed by _YIELD alone: a
    self-stress of hundreds of newtons. A gap beyond _SURPLUS is not tiny, and continues to be closed.
    """
    h, zero = inputs.time_step[0], zero_like(chosen)
    found = zero
    for row in range(rows.number[LASTING_ROWS]):
        place = rows.place[row]
        rows.miss[place] = where_greater(chosen, zero, zero, rows.miss[place])
        if is_of_hard_loop(rows, equipment, row):
            left = rows.cfm[row] * rows.impulse[row]
            opening = h * absolute(left)
            tiny = where_greater(zero + _SURPLUS, opening, where_greater(opening, zero + HAIR, chosen, zero), zero)
            rows.miss[place] = where_greater(tiny, zero, left, rows.miss[place])
            rows.bias[row] = where_greater(tiny, zero, rows.bias[row] + left, rows.bias[row])
            found = largest(found, tiny)
    return found


@njit
def tighten_loops(inputs: Inputs, rows: Rows, chosen: Real) -> Real:
    """Restore the yield that relaxed rows still have, which is that of a load, where `chosen` is 1; 1 where it is not
    negligible. In both widths."""
    h, zero = inputs.time_step[0], zero_like(chosen)
    found = zero
    for row in range(rows.number[LASTING_ROWS]):
        relaxed = where_greater(absolute(rows.miss[rows.place[row]]), zero, chosen, zero)
        left = rows.cfm[row] * rows.impulse[row]
        rows.bias[row] = where_greater(relaxed, zero, rows.bias[row] - left, rows.bias[row])
        found = largest(found, where_greater(h * absolute(left), zero + HAIR, relaxed, zero))
    return found


@njit
def note_loop_gaps(model: Model, data: Workspace, step: Step, equipment: EquipmentBundle) -> None:
    """Update step.loop_gap and step.opened; data holds the kinematics."""
    for n in range(equipment.model.loop_kind.shape[0]):
        loop_error(model, data, equipment, n)
    _note_gaps(step, equipment)


@njit
def _note_gaps(step: Step, equipment: EquipmentBundle) -> None:
    """Update step.loop_gap (2,), distance and angle, where loops are open farther than before, and step.opened, where
    hard loops have come open: farther than all of them were at some time before.
    """
    for part in range(2):
        worst, loop = 0.0, 0
        for n in range(equipment.model.loop_kind.shape[0]):
            if part < _parts(equipment, n):
                size = _size(equipment, n, part)
                step.loop_gap[part] = max(step.loop_gap[part], size)
                if is_hard(equipment, n) and size > worst:
                    worst, loop = size, n
        if step.counters[STEP_NUMBER] == 0 or worst < step.opened[LEAST_GAP + part]:
            step.opened[LEAST_GAP + part] = worst
        if worst - step.opened[LEAST_GAP + part] > step.opened[OPENED + part]:
            step.opened[OPENED + part] = worst - step.opened[LEAST_GAP + part]
            step.opened[OPENED_LOOP + part] = loop


@njit
def hold_loops(
    model: Model, v: Reals1, data: Workspace, run: RunBundle, rows: Rows, equipment: EquipmentBundle, a: float
) -> None:
    """Append the rows on accelerations, of loops that are no springs: J v̇ + J̇ v + 2 a Ċ + a² C = 0 with a bounded C;
    soft rows have K d and B in place of a² and 2 a.

    K and B act at the step's start and are bounded, as by MuJoCo's refsafe, where the time step is too long.
    """
    step = run.step
    h = run.inputs.time_step[0]
    for n in range(equipment.model.loop_kind.shape[0]):
        if equipment.model.loop_sprung[n] != RIGID:
            continue
        loop_geometry(model, v, data, equipment, n, step.columns)
        d = impedance(equipment.model.loop_impedance, n, _openness(equipment, n))
        B = equipment.model.loop_reference[n, REFERENCE_B]
        K = d * equipment.model.loop_reference[n, REFERENCE_K]
        most = slowest(h, B, equipment.model.loop_impedance[n, D_MAX])
        for part in range(_parts(equipment, n)):
            # alone, a² C would close the loop at ½ a |C|
            share = min(1.0, 2.0 * _SPEED / max(a * _size(equipment, n, part), 1e-300))
            for axis in range(3 * part, 3 * part + 3):
                if not equipment.model.loop_held[n, axis]:
                    continue
                row = _add_loop_row(model, data, rows, equipment, n, axis, step.columns)
                C = equipment.data.loop_error[n, axis]
                rate = _rate(v, step.columns, axis)
                rows.bias[row] = equipment.data.loop_drift[axis] + 2.0 * a * rate + share * a * a * C
                rows.cfm[row] = _YIELD * equipment.data.loop_mobility[n, part]
                if K >= 0.0:
                    rows.bias[row] = equipment.data.loop_drift[axis] + most * B * rate + most * most * K * C
                    rows.cfm[row] = equipment.data.loop_mobility[n, part] * (1.0 - d) / d


@njit
def spring_loops(model: Model, v: Reals1, data: Workspace, equipment: EquipmentBundle, step: Step) -> None:
    """Add the explicit forces at velocities v (nv,) of the loops that are springs to step.loop and step.force, and to
    equipment.data.loop_force. A part that nothing moves has no force.
    """
    J = step.columns
    for n in range(equipment.model.loop_kind.shape[0]):
        if equipment.model.loop_sprung[n] == RIGID:
            continue
        loop_geometry(model, v, data, equipment, n, J)
        for part in range(_parts(equipment, n)):
            resistance = _resistance(equipment, n, part)
            if not resistance > 0.0:
                continue
            spring = equipment.model.loop_spring[n, part]
            for axis in range(3 * part, 3 * part + 3):
                if equipment.model.loop_held[n, axis]:
                    C, rate = equipment.data.loop_error[n, axis], _rate(v, J, axis)
                    force = -(spring[REFERENCE_K] * C + spring[REFERENCE_B] * rate) / resistance
                    equipment.data.loop_force[n, axis] += force
                    for k in range(J.shape[1]):
                        step.loop[k] += J[axis, k] * force
                        step.force[k] += J[axis, k] * force


@inlined
def _openness(equipment: EquipmentBundle, n: int) -> Real:
    """Norm of the loop's whole error, on which MuJoCo's impedance depends."""
    size = zero_like(equipment.data.loop_error[n, 0])
    for axis in range(6):
        size += equipment.data.loop_error[n, axis] * equipment.data.loop_error[n, axis]
    return sqrt(size)


@njit
def loop_mobilities(model: Model, data: Workspace, step: Step, equipment: EquipmentBundle) -> None:
    """equipment.data.loop_mobility (nloop, 2): the mean of J M⁻¹ Jᵀ over three axes at the links' centres of mass,
    summed over both ends.

    This is MuJoCo's invweight0; for a link that only slides, 1 / mass. M must be factorised in data.mass_matrix and
    equipment.data.row2 (equipment/forces.py). Three rows share one value: a row of very low mobility would otherwise be
    as stiff as the others, and lock a linkage whose axes are parallel except for the file's last digit.
    """
    J = step.columns
    y = equipment.data.row
    for n in range(equipment.model.loop_kind.shape[0]):
        for part in range(2):
            equipment.data.loop_mobility[n, part] = 0.0
        for end in range(2):
            if equipment.model.loop_sliding[2 * n + end] > 0.0:
                equipment.data.loop_mobility[n, LINEAR] += 1.0 / equipment.model.loop_sliding[2 * n + end]
                continue
            body = equipment.model.loop_body[n, end]
            c = turn(data.rotation, body, equipment.model.loop_centre[2 * n + end])
            for axis in range(6):
                for k in range(J.shape[1]):
                    J[axis, k] = 0.0
            add_jacobian(model, data, body, c, 1.0, J)
            for axis in range(6):
                for k in range(y.shape[0]):
                    y[k] = J[axis, k]
                solve(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run, y)
                for k in range(y.shape[0]):
                    equipment.data.loop_mobility[n, axis // 3] += J[axis, k] * y[k] / 3.0
        _leave_none_without(model, step.velocity, data, equipment, n, J)


@njit
def _leave_none_without(
    model: Model, v: Reals1, data: Workspace, equipment: EquipmentBundle, n: int, J: Reals2
) -> None:
    """Set the mobility of loop n to that of its own rows, if its centres of mass do not move and their mobility gives
    no softness, and if the loop is a spring.

    MuJoCo has next to no softness there; soft loops keep a trace of softness, so that contradictory rows have a
    solution.
    """
    y = equipment.data.row
    share = 1.0 if equipment.model.loop_reference[n, REFERENCE_K] < 0.0 else _TRACE
    loop_geometry(model, v, data, equipment, n, J)
    for part in range(_parts(equipment, n)):
        own = 0.0
        held = equipment.model.loop_held[n]
        number = 1.0 * max(1, held[3 * part] + held[3 * part + 1] + held[3 * part + 2])
        for axis in range(3 * part, 3 * part + 3):
            if not equipment.model.loop_held[n, axis]:
                continue
            for k in range(y.shape[0]):
                y[k] = J[axis, k]
            solve(data.mass_matrix, equipment.data.row2, model.dof_parent, model.dof_run, y)
            for k in range(y.shape[0]):
                own += J[axis, k] * y[k] / number
        if equipment.model.loop_sprung[n] != RIGID:
            if own > _TRACE * equipment.data.loop_mobility[n, part]:  # else no row of this part can move
                equipment.data.loop_mobility[n, part] = own
        elif equipment.data.loop_mobility[n, part] < _TRACE * own:
            equipment.data.loop_mobility[n, part] = share * own


@inlined
def _size(equipment: EquipmentBundle, n: int, part: int) -> Real:
    """Opening of loop n: distance [m], or angle [rad] while it is small."""
    c = equipment.data.loop_error[n]
    k = 3 * part
    size = sqrt(c[k] * c[k] + c[k + 1] * c[k + 1] + c[k + 2] * c[k + 2])
    return size if part == 0 else 2.0 * size / max(equipment.model.loop_torque_scale[n], 1e-300)


@njit
def _add_loop_row(
    model: Model, data: Workspace, rows: Rows, equipment: EquipmentBundle, n: int, axis: int, J: Lanes2
) -> int:
    """Append a row with line `axis` of J (6, nv): an entry for each dof that changes the line; in packs for any values,
    so that lanes do not depend on each other.
    """
    row = add_row(rows, LOOP_ROW, n)
    rows.part[row] = axis
    a, b = equipment.model.loop_body[n, 0], equipment.model.loop_body[n, 1]
    rows.static[row] = 1 if a == 0 or b == 0 else 0
    for k in range(J.shape[1]):
        if not surely_zero(J[axis, k]) and _moves(model, k, a, b, axis):
            add_entry(model, data, rows, k, J[axis, k])
    return row


@inlined
def _moves(model: Model, k: int, a: int, b: int, axis: int) -> bool:
    """True if dof k may change line `axis` of C: rotations by dofs of one of the two chains alone."""
    one, other = _is_above(model, k, a), _is_above(model, k, b)
    return (one or other) and not (axis >= 3 and one and other)


@inlined
def _is_above(model: Model, k: int, body: int) -> bool:
    """True if dof k is on the way from a body to the root."""
    j = model.body_dof[body + 1] - 1 if body > 0 else -1
    while j > k:
        j = model.dof_parent[j]
    return j == k


@njit
def clear_loop_forces(equipment: EquipmentBundle) -> None:
    """Clear the loops' forces at the start of a step, in both widths."""
    for n in range(equipment.data.loop_force.shape[0]):
        for axis in range(6):
            equipment.data.loop_force[n, axis] = zero_like(equipment.data.loop_force[n, axis])


@njit
def note_loop_forces(rows: Rows, equipment: EquipmentBundle, scale: float) -> None:
    """Add λ `scale` of the loops' rows to equipment.data.loop_force (nloop, 6); a loop's rows are adjacent, in
    order."""
    axis = 0
    before = -1
    for row in range(rows.number[ALL_ROWS]):
        if rows.kind[row] == LOOP_ROW:
            n = rows.dof[row]
            axis = next_held(equipment, n, axis if n == before else -1)
            before = n
            equipment.data.loop_force[n, axis] += rows.impulse[row] * scale


@njit
def note_loop_wrenches(model: Model, data: Workspace, equipment: EquipmentBundle, row: int, out: Reals3) -> None:
    """Set out[row] (nloop, 6): force and torque of each loop on its first link, at its point there, world axes."""
    for n in range(min(out.shape[0], 1) * equipment.model.loop_kind.shape[0]):
        F = loop_force_on(data, equipment, n)
        t = _weld_torque(data, equipment, n)
        if equipment.model.loop_kind[n] == LOOP_JOINT:  # it acts on both links at the second one's point
            p, q = end_point(model, data, equipment, n, 0), end_point(model, data, equipment, n, 1)
            c = cross(minus(q, p), F)
            t = plus(t, c)
        set_six(out[row], n, (F, t))


@njit
def take_off_loops(model: Model, data: Workspace, step: Step, equipment: EquipmentBundle) -> None:
    """Subtract the loops' effect on their two links from step.link_force and step.link_torque (about the links'
    origins).
    """
    for n in range(equipment.model.loop_kind.shape[0]):
        F = loop_force_on(data, equipment, n)
        t = _weld_torque(data, equipment, n)
        for end in range(2):
            sign = 1.0 if end == 0 else -1.0
            link = equipment.model.loop_link[n, end]
            if link < 0:
                continue
            a = loop_lever(model, data, equipment, n, end)
            _, o = link_frame(model, data, link)
            c = cross(minus(a, o), F)
            for axis in range(3):
                step.link_force[link, axis] -= sign * F[axis]
            set_row(step.link_torque, link, minus(row_of(step.link_torque, link), times(sign, plus(c, t))))


@inlined
def loop_force_on(data: Workspace, equipment: EquipmentBundle, n: int) -> Vec3:
    """Force of loop n on body a, world axes [N]; -1 times that acts on body b."""
    F = equipment.data.loop_force[n]
    if equipment.model.loop_kind[n] != LOOP_JOINT:
        return triple(F)
    A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
    return turned(A, F)


@inlined
def loop_lever(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, end: int) -> Vec3:
    """The point at which the loop's force acts on the body of this end, from the body's origin, world axes [m]."""
    body = equipment.model.loop_body[n, end]
    if equipment.model.loop_kind[n] == LOOP_JOINT and end == 0:
        o = origin_of(model, data, body)
        q = end_point(model, data, equipment, n, 1)
        return minus(q, o)
    p = equipment.model.loop_position[2 * n + end]
    return turn(data.rotation, body, p)


@inlined
def _weld_torque(data: Workspace, equipment: EquipmentBundle, n: int) -> Vec3:
    """Torque on body a, world axes, by the multipliers of the rotation rows: the transpose of _half_product."""
    x = (equipment.data.loop_force[n, 3], equipment.data.loop_force[n, 4], equipment.data.loop_force[n, 5])
    if _parts(equipment, n) == 1:
        return 0.0, 0.0, 0.0
    A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
    B = end_frame(data, equipment, equipment.model.loop_body[n, 1], 2 * n + 1)
    q0, q1, q2, q3 = quaternion_of(relative(A, B))
    c = cross((q1, q2, q3), x)
    half = 0.5 * equipment.model.loop_torque_scale[n]
    y = times(half, plus(times(q0, x), c))
    return turned(B, y)


@inlined
def _rate(v: Lanes1, J: Lanes2, axis: int) -> Real:
    """Line `axis` of J v."""
    value = zero_like(J[axis, 0])
    for k in range(v.shape[0]):
        value += J[axis, k] * v[k]
    return value


# ------------------------------------------------------------------ geometry


@njit
def loop_geometry(model: Model, v: Lanes1, data: Workspace, equipment: EquipmentBundle, n: int, J: Lanes2) -> None:
    """equipment.data.loop_error[n] = C (6,), J (6, nv), equipment.data.loop_drift (6,) = C̈ at zero independent
    acceleration and velocities v (nv,).
    """
    a = equipment.model.loop_body[n, 0]
    b = equipment.model.loop_body[n, 1]
    p = equipment.model.loop_position
    at_a = turn(data.rotation, a, row_of(p, 2 * n))
    at_b = turn(data.rotation, b, row_of(p, 2 * n + 1))
    loop_error(model, data, equipment, n)
    zero = zero_like(at_a[0])
    for line in range(6):
        equipment.data.loop_drift[line] = zero
        for k in range(J.shape[1]):
            J[line, k] = zero
    _add_point(data, equipment, a, at_a, 1.0)
    _add_point(data, equipment, b, at_b, -1.0)
    add_jacobian(model, data, a, at_a, 1.0, J)
    add_jacobian(model, data, b, at_b, -1.0, J)
    if equipment.model.loop_kind[n] == LOOP_JOINT:
        _turn_into_frame(model, v, data, equipment, n, J)
    if _parts(equipment, n) == 2:
        _turn_to_quaternion(data, equipment, n, a, b, J)


@njit
def loop_error(model: Model, data: Workspace, equipment: EquipmentBundle, n: int) -> None:
    """equipment.data.loop_error[n] = C (6,)."""
    zero = like(0.0, data)
    for line in range(6):
        equipment.data.loop_error[n, line] = zero
    for end in range(2):
        sign = 1.0 if end == 0 else -1.0
        p = equipment.model.loop_position[2 * n + end]
        point = point_of(model, data, equipment.model.loop_body[n, end], p)
        add_to_row(equipment.data.loop_error, n, times(sign, point))
    if equipment.model.loop_kind[n] == LOOP_JOINT:
        C = equipment.data.loop_error
        A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
        set_row(C, n, turned_back(A, row_of(C, n)))
    if _parts(equipment, n) == 2:
        A = end_frame(data, equipment, equipment.model.loop_body[n, 0], 2 * n)
        B = end_frame(data, equipment, equipment.model.loop_body[n, 1], 2 * n + 1)
        q = quaternion_of(relative(A, B))
        put_at(equipment.data.loop_error[n], 3, times(equipment.model.loop_torque_scale[n], (q[1], q[2], q[3])))
    for line in range(6):
        if not equipment.model.loop_held[n, line]:
            equipment.data.loop_error[n, line] = zero


@njit
def _turn_into_frame(model: Model, v: Lanes1, data: Workspace, equipment: EquipmentBundle, n: int, J: Lanes2) -> None:
    """Transform the first three lines from d = p_a - p_b to x = R_aᵀ d, the translation in the axes of frame a.

    ẋ = R_aᵀ (ḋ - ω × d), whose lines are those of a's point at p_b; ẍ = R_aᵀ (d̈ - α × d - ω × (ω × d) - 2 ω × R_a ẋ).
    """
    a = equipment.model.loop_body[n, 0]
    A = end_frame(data, equipment, a, 2 * n)
    p, q = end_point(model, data, equipment, n, 0), end_point(model, data, equipment, n, 1)
    d = minus(p, q)
    S = data.motion
    k = model.body_dof[a + 1] - 1 if a > 0 else -1
    while k >= 0:
        set_column(J, k, 0, minus(column_of(J, k, 0), cross(column_of(S, k, 3), d)))
        k = model.dof_parent[k]
    o, al, drift = data.angular_velocity[a], data.angular_acceleration[a], equipment.data.loop_drift
    r = (_rate(v, J, 0), _rate(v, J, 1), _rate(v, J, 2))
    s = cross(o, d)
    s = cross(o, plus_times(s, 2.0, r))
    t = cross(al, d)
    put(drift, turned_back(A, minus(minus(drift, s), t)))
    for k in range(J.shape[1]):
        set_column(J, k, 0, turned_back(A, column_of(J, k, 0)))


@njit
def _add_point(data: Workspace, equipment: EquipmentBundle, body: int, r: Vec3, sign: float) -> None:
    """Add the acceleration of a body's point at r from its origin, and the angular acceleration."""
    drift = equipment.data.loop_drift
    w = row_of(data.angular_velocity, body)
    b, x = pair_of(data.acceleration, data.angular_acceleration, body)
    b = plus(plus(b, cross(x, r)), cross(w, cross(w, r)))
    put(drift, plus_times(drift, sign, b))
    put_at(drift, 3, plus_times(triple_at(drift, 3), sign, x))


@njit
def _turn_to_quaternion(data: Workspace, equipment: EquipmentBundle, n: int, a: int, b: int, J: Lanes2) -> None:
    """Transform the last three lines from relative angular velocity ω to the vector part of Q = conj(q_b) q_a.

    Q̇ = ½ ω_b Q, ω_b in b's axes; Q̈ = ½ ω̇_b Q - ¼ |ω|² Q, ω̇_b = R_bᵀ (α - ω_of_b × ω).
    """
    A = end_frame(data, equipment, a, 2 * n)
    B = end_frame(data, equipment, b, 2 * n + 1)
    q = quaternion_of(relative(A, B))
    scale = equipment.model.loop_torque_scale[n]
    for k in range(J.shape[1]):
        set_column(J, k, 3, _half_product(B, q, scale, column_of(J, k, 3)))
    o = data.angular_velocity
    w = minus(row_of(o, a), row_of(o, b))
    c = cross(row_of(o, b), w)
    d = equipment.data.loop_drift
    rate = _half_product(B, q, scale, minus(triple_at(d, 3), c))
    put_at(d, 3, minus_times(rate, 0.25 * scale * dot(w, w), (q[1], q[2], q[3])))


@inlined
def _half_product(B: Mat3, q: Vec4, scale: float, x: Vec3) -> Vec3:
    """Vector part of ½ scale (Bᵀ x) q for a quaternion q."""
    y = turned_back(B, x)
    return times(0.5 * scale, plus(times(q[0], y), cross(y, (q[1], q[2], q[3]))))
