"""Re-evaluates a semi-implicit step where one evaluation at its start is not enough: spin, taut bodies, curvature.

All three have one remedy: the step is evaluated again with the velocities and forces that the previous evaluation
found, until these no longer change. If an evaluation diverges, or leaves rows unsolved, the evaluation before it is the
step.

Spin: gyroscopic and Coriolis terms act at the midpoint velocity ½ (v + v⁺). This implicit midpoint rule conserves the
energy and the angular momentum of a free body, where terms at the start feed in energy by (hω)² per step. The spin of a
body that turns alone is solved for beforehand, without a second evaluation (foresee_spin). A body with contacts uses
the terms at the start, since how it is struck within the step is not known.

Taut bodies: a force F that pulls body i at r resists rotation like a spring of stiffness (F·r) (1 - r̂ r̂ᵀ). A light
body in a heavy chain swings on that spring faster than the step can resolve. ½ h² times the stiffness is added to the
body's inertia, which acts as an implicit spring as far as stability goes (actuation.py) and is O(h²) otherwise; where
the step cannot resolve the swing at all, the body's joint is also damped by _DAMPING times the stiffness. The stiffness
is the positive part of the geometric stiffness, body by body; the forces are those through joints and loops.

Curvature: the follower's acceleration of a nonlinear coupling comes from the secants of the steps before and after, as
in SHAKE: Ġu becomes (g(y + hu⁺) - 2 g(y) + g(y - hu)) / h² less G u̇ (coupling.py).
"""

from __future__ import annotations

from artsim.sim.articulation.dynamics import gather_forces, inverse_dynamics
from artsim.sim.articulation.kinematics import axis_of, like
from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.state import RobotBundle, State, Workspace
from artsim.sim.constraints.loop_rows import loop_force_on, loop_lever
from artsim.sim.equipment.arrays import EitherEquipment, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, any_positive, highest, where_greater, zero_like
from artsim.sim.foundation.mat3 import (
    add_symmetric,
    outer,
    symmetric_minus,
    symmetric_of,
    symmetric_plus,
    symmetric_times,
    symmetric_turned,
    upper,
)
from artsim.sim.foundation.records import Lanes1, Pack, Real, Reals1, Sym3, Vec3
from artsim.sim.foundation.scalars import divisor, largest
from artsim.sim.foundation.spatial import pair_of
from artsim.sim.foundation.vec3 import (
    cross,
    divided,
    dot,
    minus,
    negative,
    plus,
    plus_times,
    row_of,
    set_row,
    times,
    zeros_like,
)
from artsim.sim.geometry.contacts import CONTACTS, ContactBundle
from artsim.sim.run_data.run_records import EVALUATION, MIDWAY, ONCE, STIFFENED, RunBundle, Step
from artsim.sim.solvers.tolerance import UNTRIED

MOST_EVALUATIONS = 8  # each reduces the error of a spin by a factor of about ½ hω
SETTLED = 1e-4  # next change, relative to the largest velocity, that ends evaluations: less is of third order in h
_SPINS = 1e-4  # [rad] per step above which the spin of a body alone is foreseen
_FORESEEN = 5  # Newton iterations, of which four reach rounding at 0.3 rad per step
_TURN = 0.02  # [rad] per step above which the velocities expected midway are checked against those found
_FREE_RATE = 0.01  # hω² [1/s], the rate at which blows feed in energy, above which free bodies and balls are checked
_TAUT = 0.05  # threshold of h² times a body's stiffness over its inertia
_NODES = 4.0  # (hω)² of the fastest swing in a row of equal bodies, over that of one alone
_DAMPING = 0.1
_WEIGHT = 0.5


@njit
def note_struck(data: Workspace, contact: ContactBundle) -> None:
    """Set data.struck from the contacts found."""
    for i in range(data.struck.shape[0]):
        data.struck[i] = 0.0
    for n in range(contact.data.number[CONTACTS]):
        for end in range(2):
            data.struck[contact.model.body[contact.data.shape[n, end]]] = 1.0


@njit
def note_changes(state: State, step: Step, taut: Real) -> None:
    """Set state.change and state.earlier_change at the end of a step, before state.qvel. Where bodies are taut, changes
    are set to 0: the step does not resolve the bodies' swings, to which changes of a step ago would add energy.
    """
    zero = zero_like(taut)
    for k in range(state.change.shape[0]):
        state.earlier_change[k] = state.change[k]
        state.change[k] = where_greater(taut, zero, zero, step.velocity[k] - state.qvel[k])


@inlined
def stiffened(data: Workspace) -> Pack:
    """A T, more than 0 where bodies are stiffened."""
    most = like(0.0, data)
    for i in range(data.stiffening.shape[0]):
        most = largest(most, data.stiffening[i, 0] + data.stiffening[i, 3] + data.stiffening[i, 5])
    return most


@njit
def foresee(robot: RobotBundle, run: RunBundle, chosen: Real) -> None:
    """Set step.middle and step.next, in lanes where `chosen` is 1, to the velocities expected midway and at the end; to
    those before the step if the bias acts at its start.

    Needs kinematics and `world_inertia`.
    """
    model, state, data = robot.model, robot.state, robot.data
    step, share = run.step, run.inputs.scheme[MIDWAY]
    zero = zero_like(chosen)
    for k in range(step.middle.shape[0]):
        change = where_greater(data.struck[model.dof_body[k]], zero, zero, expected_change(state, k))
        step.middle[k] = where_greater(chosen, zero, state.qvel[k] + share * change, step.middle[k])
    for a in range(step.next.shape[0]):
        k = model.independent_dof[a]
        step.next[a] = where_greater(chosen, zero, 2.0 * step.middle[k] - state.qvel[k], step.next[a])
    if share > 0.0:
        foresee_spin(model, state.qvel, data, run.inputs.time_step[0], step.middle, chosen)


@inlined
def expected_change(state: State, k: int) -> Real:
    """The change of a velocity in the step: the smaller of the last two, 0 where they have opposite signs (minmod), so
    that a blow, which is not repeated, leads nowhere.
    """
    last, earlier = state.change[k], state.earlier_change[k]
    zero = zero_like(last)
    smaller = where_greater(absolute(last), absolute(earlier), earlier, last)
    return where_greater(last * earlier, zero, smaller, zero)


@njit
def foresee_spin(model: Model, v: Lanes1, data: Workspace, h: float, middle: Lanes1, chosen: Real) -> None:
    """middle (nv,) gets the midpoint angular velocity of the bodies that turn alone, in lanes where `chosen` is 1.

    This ω solves I (ω - ω₀) 2 / h + ω × I ω = c × m g about the centre of mass (free) or the joint (ball): no second
    evaluation is needed, and the energy of a spin is kept to rounding. Bodies with contacts, or that turn by less than
    _SPINS, are left as they are. Needs kinematics and `world_inertia`.
    """
    for i in range(1, model.body_parent.shape[0]):
        if model.body_alone[i] == 1:
            k = model.body_dof[i]
            first = k + 3 if model.joint_type[i] == FREE else k
            square = h * h * (v[first] * v[first] + v[first + 1] * v[first + 1] + v[first + 2] * v[first + 2])
            fast = (square - _SPINS * _SPINS) * (1.0 - data.struck[i])
            fast = where_greater(chosen, zero_like(fast), fast, zero_like(fast))
            if any_positive(fast):
                o = _midway(model, v, data, h, i, first)
                zero = like(0.0, data)
                for k in range(first, first + 3):
                    a = axis_of(data, k)
                    middle[k] = where_greater(fast, zero, dot(a, o), middle[k])


@inlined
def _midway(model: Model, v: Lanes1, data: Workspace, h: float, i: int, first: int) -> Vec3:
    """Midpoint angular velocity of body i, which turns alone, by Newton's method; `first` is its first angular dof."""
    m = row_of(data.moment, i)
    I = symmetric_of(data.inertia, i, 0)
    torque = cross(m, model.gravity)
    if model.joint_type[i] == FREE:  # about the centre of mass
        I = _about_centre(I, 1.0 / model.body_mass[i], m)
        torque = zeros_like(torque)
    A = I  # with rotors
    x = zeros_like(torque)
    for k in range(first, first + 3):
        a = axis_of(data, k)
        x = plus_times(x, v[k], a)
        A = symmetric_plus(A, upper(outer(times(model.armature[k], a), a)))
    start = x
    c = 2.0 / h
    for _ in range(_FORESEEN):
        L = symmetric_turned(I, x)
        turned = symmetric_turned(A, times(c, minus(x, start)))
        x = minus(x, _solved(_slope(A, I, c, x, L), minus(plus(turned, cross(x, L)), torque)))
    return x


@inlined
def _about_centre(I: Sym3, per: Real, m: Vec3) -> Sym3:
    """The inertia about the centre of mass, from that about the origin, 1 / mass and the first moment."""
    return (
        I[0] - per * (m[1] * m[1] + m[2] * m[2]),
        I[1] + per * m[0] * m[1],
        I[2] + per * m[0] * m[2],
        I[3] - per * (m[0] * m[0] + m[2] * m[2]),
        I[4] + per * m[1] * m[2],
        I[5] - per * (m[0] * m[0] + m[1] * m[1]),
    )


@inlined
def _slope(A: Sym3, I: Sym3, c: float, x: Vec3, L: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """c A + [x]× I - [L]×, by columns."""
    p, q, u = cross(x, (I[0], I[1], I[2])), cross(x, (I[1], I[3], I[4])), cross(x, (I[2], I[4], I[5]))
    return (
        (p[0] + c * A[0], p[1] + c * A[1] - L[2], p[2] + c * A[2] + L[1]),
        (q[0] + c * A[1] + L[2], q[1] + c * A[3], q[2] + c * A[4] - L[0]),
        (u[0] + c * A[2] - L[1], u[1] + c * A[4] + L[0], u[2] + c * A[5]),
    )


@inlined
def _solved(A: tuple[Vec3, Vec3, Vec3], r: Vec3) -> Vec3:
    """A⁻¹ r for a matrix given by its columns."""
    p, q, u = A
    m, n, o = cross(q, u), cross(u, p), cross(p, q)
    inverse = 1.0 / dot(p, m)
    return inverse * dot(m, r), inverse * dot(n, r), inverse * dot(o, r)


@inlined
def misled(robot: RobotBundle, step: Step) -> tuple[Real, Real]:
    """The largest distance of step.middle from the midway velocities that follow from the velocities found, and the
    largest of these midway velocities [rad/s or m/s]."""
    model, data = robot.model, robot.data
    change = like(0.0, data)
    most = change
    for a in range(step.next.shape[0]):
        k = model.independent_dof[a]
        if model.dof_linear[k] == 1 and model.body_alone[model.dof_body[k]] == 1:
            continue  # no force depends on this velocity
        middle = 0.5 * (robot.state.qvel[k] + step.next[a])
        change = largest(change, absolute(middle - step.middle[k]) * (1.0 - data.struck[model.dof_body[k]]))
        most = largest(most, absolute(middle))
    return change, most


@inlined
def unsettled(change: Real, before: Real, most: Real) -> Real:
    """More than 0 where a further evaluation is to follow one that changed step.middle by `change`, and the one before
    it by `before` (UNTRIED: there was none), for velocities of at most `most`.

    Changes shrink by a nearly constant ratio, so that change²/before estimates the next one.
    """
    bound = SETTLED * most
    first = zero_like(change) + UNTRIED
    return where_greater(first, before, change * change - bound * before, change - bound)


@njit
def go_midway(robot: RobotBundle, step: Step, chosen: Real) -> None:
    """Set step.middle to the mean of start and end velocities in lanes where `chosen` is 1, except for bodies with
    contacts, which keep theirs.
    """
    state = robot.state
    zero = zero_like(chosen)
    for k in range(step.middle.shape[0]):
        step.start_qvel[k] = where_greater(chosen, zero, step.middle[k], step.start_qvel[k])
        middle = 0.5 * (state.qvel[k] + step.velocity[k])
        middle = where_greater(robot.data.struck[robot.model.dof_body[k]], zero, state.qvel[k], middle)
        step.middle[k] = where_greater(chosen, zero, middle, step.middle[k])


@njit
def go_back(step: Step, chosen: Real) -> None:
    """Restore step.middle from before go_midway in lanes where `chosen` is 1."""
    zero = zero_like(chosen)
    for k in range(step.middle.shape[0]):
        step.middle[k] = where_greater(chosen, zero, step.start_qvel[k], step.middle[k])


@inlined
def turning_and_tautness(model: Model, data: Workspace, h: float) -> tuple[Real, Real]:
    """More than 0 where a body without contacts turns too fast for one evaluation; and more than 0 where the bodies
    that hang on a body may be too heavy for it (a bound: |F| ≤ carried mass times the acceleration of the joint that
    carries them).

    Needs the bodies' angular velocities midway and accelerations.
    """
    turning = like(-1.0, data)
    tautness = turning
    for i in range(1, model.body_parent.shape[0]):
        most = _TURN * _TURN / h
        if model.body_alone[i] == 1:  # foreseen as if no force acted on the body
            most = _SPINS * _SPINS / h
        elif model.joint_type[i] == FREE or model.joint_type[i] == BALL:
            most = _FREE_RATE
        o = row_of(data.angular_velocity, i)
        fast = h * dot(o, o) - most
        turning = largest(turning, fast * (1.0 - data.struck[i]))  # the midway velocity of a struck body is not known
        above = model.body_parent[i]
        if above == 0:
            continue
        force = h * h * model.carried_mass[i]
        b = row_of(data.acceleration, i)
        d = row_of(data.offset, i)
        own = 0.5 * _TAUT * (data.inertia[above, 0] + data.inertia[above, 3] + data.inertia[above, 5])
        square = dot(b, b) * dot(d, d)
        tautness = largest(tautness, force * force * square - own * own)
    return turning, tautness


@njit
def loops_pull(model: Model, data: Workspace, h: float, equipment: EquipmentBundle) -> Real:
    """A T, more than 0 where a loop's force, in equipment.data.loop_force, may be too large for a body between it and
    the root.
    """
    pull = like(-1.0, data)
    for n in range(equipment.model.loop_kind.shape[0]):
        F = equipment.data.loop_force[n]
        square = h * h * h * h * dot(F, F)
        for end in range(2):
            r = equipment.model.loop_position[2 * n + end]
            r2 = like(dot(r, r), data)
            i = equipment.model.loop_body[n, end]
            while i > 0:
                own = 0.5 * (data.inertia[i, 0] + data.inertia[i, 3] + data.inertia[i, 5])
                for k in range(model.body_dof[i], model.body_dof[i + 1]):
                    if model.dof_linear[k] == 0:
                        own = own + model.armature[k]
                pull = largest(pull, square * r2 - _TAUT * _TAUT * own * own)
                d = row_of(data.offset, i)
                r2 = dot(d, d)
                i = model.body_parent[i]
    return pull


@njit
def clear_stiffening(data: Workspace, chosen: Real) -> None:
    """Clear the stiffening of all bodies and the damping of joints that goes with it, where `chosen` is 1."""
    zero = zero_like(chosen)
    for k in range(data.slack.shape[0]):
        data.slack[k] = where_greater(chosen, zero, zero, data.slack[k])
    for i in range(data.stiffening.shape[0]):
        for c in range(6):
            data.stiffening[i, c] = where_greater(chosen, zero, zero, data.stiffening[i, c])


@njit
def stiffen(model: Model, v: Lanes1, data: Workspace, h: float, step: Step, equipment: EitherEquipment) -> Real:
    """Set data.stiffening (nb, 6) and the joint dampings data.slack (nv,) from the forces at step.qacc and v; a T, more
    than 0 where a body needs them, and 0 where they are left clear.

    The forces of loops are in equipment.data.loop_force.
    """
    inverse_dynamics(model, v, step.qacc, data, step.force)
    if equipment is not None:
        _take_loops_off_joints(model, data, equipment)
    clear_stiffening(data, like(1.0, data))
    for i in range(1, model.body_parent.shape[0]):
        _hold_by_own_weight(model, data, i)
        above = model.body_parent[i]
        if above > 0:
            _hold(data, above, negative(row_of(data.force, i)), row_of(data.offset, i))
    if equipment is not None:
        _hold_by_loops(model, data, equipment)
    return _weigh(model, data, h)


@inlined
def _hold(data: Workspace, i: int, F: Vec3, r: Vec3) -> None:
    """Add (F·r) (1 - r̂ r̂ᵀ) to body i where F pulls."""
    pull = dot(F, r)
    zero = zero_like(pull)
    pull = where_greater(pull, zero, pull, zero)
    part = upper(outer(times(pull / divisor(dot(r, r)), r), r))
    add_symmetric(data.stiffening, i, 0, symmetric_minus((pull, zero, zero, pull, zero, pull), part))


@inlined
def _hold_by_own_weight(model: Model, data: Workspace, i: int) -> None:
    """Add the stiffness of body i's own weight less inertial force, which acts at its centre of mass."""
    mass = model.body_mass[i]
    weight = divisor(mass)
    c = divided(row_of(data.moment, i), weight)
    w = row_of(data.angular_velocity, i)
    b, x = pair_of(data.acceleration, data.angular_acceleration, i)
    _hold(data, i, times(-mass, plus(plus(b, cross(w, cross(w, c))), cross(x, c))), c)


@njit
def _take_loops_off_joints(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    """Subtract the loops' forces from the joints between their bodies and the root, which do not transmit them."""
    for n in range(equipment.model.loop_kind.shape[0]):
        F = loop_force_on(data, equipment, n)
        for end in range(2):
            sign = 1.0 if end == 0 else -1.0
            i = equipment.model.loop_body[n, end]
            while i > 0:
                for axis in range(3):
                    data.force[i, axis] -= sign * F[axis]
                i = model.body_parent[i]


@njit
def _hold_by_loops(model: Model, data: Workspace, equipment: EquipmentBundle) -> None:
    for n in range(equipment.model.loop_kind.shape[0]):
        F = loop_force_on(data, equipment, n)
        for end in range(2):
            i = equipment.model.loop_body[n, end]
            if i > 0:
                sign = 1.0 if end == 0 else -1.0
                r = loop_lever(model, data, equipment, n, end)
                _hold(data, i, times(sign, F), r)


@njit
def _weigh(model: Model, data: Workspace, h: float) -> Real:
    """Turn the stiffnesses of all bodies into inertias where one body needs it, and set the dampings of joints."""
    zero = like(0.0, data)
    one = zero + 1.0
    worst = zero
    for i in range(1, model.body_parent.shape[0]):
        I = data.inertia[i]
        K = data.stiffening[i]
        own = 0.5 * (I[0] + I[3] + I[5])
        stiff = 0.5 * h * h * (K[0] + K[3] + K[5])
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            if model.dof_linear[k] == 0:
                own = own + model.armature[k]
        square = stiff / divisor(own)
        worst = largest(worst, square)
        share = one / largest(one, _NODES * square)
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            if model.dof_linear[k] == 0:
                data.slack[k] = _DAMPING * (1.0 - share) * stiff / h
        for c in range(6):
            data.stiffening[i, c] *= _WEIGHT * h * h
    taut = where_greater(worst, zero + _TAUT, worst, zero)
    if highest(taut) <= 0.0:
        clear_stiffening(data, like(1.0, data))
    return taut


@njit
def add_stiffened_bias(model: Model, data: Workspace, tau: Lanes1, scratch: Lanes1) -> None:
    """tau (nv,) += Jᵀ B α of the stiffened bodies at the angular accelerations in data; overwrites their forces."""
    zero = like(0.0, data)
    for i in range(model.body_parent.shape[0]):
        al = data.angular_acceleration[i]
        t = symmetric_times(data.stiffening, i, al)
        for axis in range(3):
            data.force[i, axis] = zero
        set_row(data.torque, i, t)
    gather_forces(model, data, scratch)
    for k in range(tau.shape[0]):
        tau[k] = _plus(tau[k], scratch[k])


@njit
def stiffen_composites(model: Model, data: Workspace) -> None:
    """Add the stiffening of descendant bodies to data.composite_inertia."""
    for c in range(6):
        for i in range(data.stiffening.shape[0]):
            data.force_sum[i] = data.stiffening[i, c]
        for i in range(data.stiffening.shape[0] - 1, 0, -1):
            data.composite_inertia[i, c] = _plus(data.composite_inertia[i, c], data.force_sum[i])
            data.force_sum[model.body_parent[i]] += data.force_sum[i]


@inlined
def _plus(x: Real, y: Real) -> Real:
    """x + y; x itself where y is 0, whose sum with it may be another zero than x: other lanes change nothing."""
    return where_greater(absolute(y), zero_like(y), x + y, x)


@njit
def book_midpoint(model: Model, v: Reals1, data: Workspace, step: Step) -> None:
    """Add to step.passive the difference between the step's inertial forces and M qacc + bias at its start.

    M qacc + bias(q, v) then equals the sum of all recorded forces, as in any other step. v: at the step's start.
    """
    inverse_dynamics(model, step.middle, step.qacc, data, step.force)
    if step.counters[EVALUATION] == STIFFENED:
        add_stiffened_bias(model, data, step.force, step.tangent)
        for k in range(step.force.shape[0]):
            step.passive[k] -= data.slack[k] * step.velocity[k]
        clear_stiffening(data, like(1.0, data))
    for k in range(step.force.shape[0]):
        step.passive[k] -= step.force[k]
    inverse_dynamics(model, v, step.qacc, data, step.force)
    for k in range(step.force.shape[0]):
        step.passive[k] += step.force[k]
    step.counters[EVALUATION] = ONCE
