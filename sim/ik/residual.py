"""The weighted distance from targets and constraints, ½ eᵀ W e, with Jᵀ W J and Jᵀ W e in independent coordinates.

e of a pose holds the way from a link's origin to its target and the logarithm of the rotation to it, in world axes; J
is the Jacobian of the link's frame less that of the frame in which the target is, and columns of followers are added to
their leaders' by Gᵀ. The gradient is exact, since the derivative of the logarithm leaves its own direction as it is. e
of an axis that is to look at a point is the shortest rotation there, whose rate is that of the link, less its part
about the axis, and less that of the direction to the point.
"""

from __future__ import annotations

from artsim.sim.articulation.centroidal import centre_of_mass, centre_of_mass_jacobian
from artsim.sim.articulation.coupling import follow
from artsim.sim.articulation.dynamics import add_to_parents
from artsim.sim.articulation.kinematics import (
    axis_of,
    like,
    link_frame,
    motion_columns,
    origin_of,
    place_body,
    turn_inertia,
)
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.axis_rows import axis_error, axis_gradient
from artsim.sim.constraints.loop_rows import loop_geometry
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import real, sqrt
from artsim.sim.foundation.mat3 import turned
from artsim.sim.foundation.quaternions import quaternion_of
from artsim.sim.foundation.records import Mat3, Real, Vec3, Vec4
from artsim.sim.foundation.rotation_log import logarithm_of
from artsim.sim.foundation.scalars import largest
from artsim.sim.foundation.vec3 import (
    cross,
    dot,
    length,
    minus,
    minus_times,
    plus,
    plus_times,
    row_of,
    set_column,
    times,
    triple,
)
from artsim.sim.ik.search_records import (
    AIM,
    CLOSURE,
    ERRORS,
    LOOK,
    MASS,
    POSITION,
    PULL,
    ROTATION,
    TRIAL_COST,
    Search,
    SearchTask,
    Targets,
)

_HOLD = 100.0  # weight of constraints [1/m², 1/rad²]: a target out of reach pulls them apart by a hundredth at most
_NEAR = 1e-9  # [m] distance of a point below which there is no looking at it


@njit
def evaluate(
    robot: RobotBundle, equipment: EquipmentBundle | None, search: Search, task: SearchTask, targets: Targets
) -> None:
    """Set cost, errors, normal matrix and gradient of the trial, the configuration in State.qpos. In both widths."""
    model, state, data = robot.model, robot.state, robot.data
    zero = like(0.0, data)
    for i in task.body:
        place_body(model, state.qpos, data, i)
        if task.weighs[0] == 1:
            turn_inertia(model, data, i, data.composite_moment, data.composite_inertia)
    if task.weighs[0] == 1:
        add_to_parents(model, data)
    search.number[TRIAL_COST] = zero
    for k in range(ERRORS):
        search.trial_error[k] = zero
    for a in range(search.move.shape[0]):
        search.trial_gradient[a] = zero
        for b in range(a + 1):
            search.trial_normal[a, b] = zero
    for t in range(targets.link.shape[0]):
        if targets.kind[t] == MASS:
            _add_mass(robot, search, task, targets, t)
        else:
            _add_target(robot, search, targets, t)
    _add_couplings(robot, search, task, targets)
    if equipment is not None:
        _add_loops(robot, equipment, search, task, targets)
    if task.settles[0] == 1:
        _add_posture(robot, search, task)


# ------------------------------------------------------------------ targets


@njit
def _add_target(robot: RobotBundle, search: Search, targets: Targets, t: int) -> None:
    """Add a link's target."""
    model, data = robot.model, robot.data
    link = targets.link[t]
    R, r = link_frame(model, data, link)
    point = plus(origin_of(model, data, model.link_body[link]), r)
    goal, wanted = _goal(robot, search, targets, t)
    way = minus(goal, point)
    _set_columns(robot, search, targets, t, point, goal)
    position, rotation = targets.weight[t, POSITION], targets.weight[t, ROTATION]
    if position > 0.0:
        _note(search, POSITION, way)
        _add(search, targets, t, 0, way, position * position * search.number[AIM])
    if rotation > 0.0:
        turn = _look(search, targets, t, R, way) if targets.kind[t] == LOOK else logarithm_of(_quotient(wanted, R))
        _note(search, ROTATION, turn)
        _add(search, targets, t, 3, turn, rotation * rotation * search.number[AIM])


@inlined
def _goal(robot: RobotBundle, search: Search, targets: Targets, t: int) -> tuple[Vec3, Vec4]:
    """The wanted position and rotation in the world."""
    model, data = robot.model, robot.data
    wanted = search.target
    p, q = row_of(wanted, t), (wanted[t, 3], wanted[t, 4], wanted[t, 5], wanted[t, 6])
    reference = targets.reference[t]
    if reference >= 0:
        R, r = link_frame(model, data, reference)
        p = plus(plus(origin_of(model, data, model.link_body[reference]), r), turned(R, p))
        q = _product(quaternion_of(R), q)
    return p, q


@inlined
def _product(a: Vec4, b: Vec4) -> Vec4:
    """a b of quaternions."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@inlined
def _quotient(a: Vec4, R: Mat3) -> Vec4:
    """The rotation from R to that of a unit quaternion, in the axes of the frame that both are in."""
    w, x, y, z = quaternion_of(R)
    return _product(a, (w, -x, -y, -z))


@njit
def _look(search: Search, targets: Targets, t: int, R: Mat3, way: Vec3) -> Vec3:
    """The shortest rotation of the link by which its axis looks at the point at `way` [rad]; its lines of the
    Jacobian are put in the place of the rotation's."""
    J = search.columns
    axis = turned(R, (targets.axis[t, 0], targets.axis[t, 1], targets.axis[t, 2]))
    distance = largest(length(way), real(_NEAR, way[0]))
    d = times(1.0 / distance, way)
    for place in range(targets.first[t], targets.first[t + 1]):
        c = targets.column[place]
        v, w = (J[0, c], J[1, c], J[2, c]), (J[3, c], J[4, c], J[5, c])
        w = minus_times(w, dot(w, d), d)
        set_column(J, c, 3, plus_times(w, 1.0 / distance, cross(d, v)))
    n = cross(axis, d)
    half = 1.0 + dot(axis, d)
    size = largest(sqrt(half * half + dot(n, n)), real(1e-150, half))
    return logarithm_of((half / size, n[0] / size, n[1] / size, n[2] / size))


@njit
def _set_columns(robot: RobotBundle, search: Search, targets: Targets, t: int, point: Vec3, goal: Vec3) -> None:
    """Set the Jacobian of a target's link at `point`, less that of its reference at `goal`, in the columns that move
    them. A point that is looked at does not turn."""
    model, data, J = robot.model, robot.data, search.columns
    zero = like(0.0, data)
    for place in range(targets.first[t], targets.first[t + 1]):
        for line in range(6):
            J[line, targets.column[place]] = zero
    for entry in range(targets.entry[t], targets.entry[t + 1]):
        k, c, sign = targets.entry_dof[entry], targets.entry_column[entry], targets.entry_sign[entry]
        a = times(sign * data.gain[k], axis_of(data, k))
        if model.dof_linear[k]:
            _add_to_column(search, c, 0, a)
        else:
            o = origin_of(model, data, model.dof_body[k])
            _add_to_column(search, c, 0, cross(a, minus(point, o) if sign > 0.0 else minus(goal, o)))
            if sign > 0.0 or targets.kind[t] != LOOK:
                _add_to_column(search, c, 3, a)


@inlined
def _add_to_column(search: Search, c: int, first: int, a: Vec3) -> None:
    """Add a triple to three lines of a column."""
    J = search.columns
    set_column(J, c, first, (J[first, c] + a[0], J[first + 1, c] + a[1], J[first + 2, c] + a[2]))


@njit
def _add_mass(robot: RobotBundle, search: Search, task: SearchTask, targets: Targets, t: int) -> None:
    """Add the target of the centre of mass."""
    centre_of_mass(robot.model, robot.data, search.com)
    centre_of_mass_jacobian(robot.model, robot.data, search.lines)
    _gather_lines(robot, search, task)
    way = minus(row_of(search.target, t), triple(search.com))
    weight = targets.weight[t, POSITION]
    _note(search, POSITION, way)
    _add(search, targets, targets.link.shape[0], 0, way, weight * weight * search.number[AIM])


@njit
def _add_posture(robot: RobotBundle, search: Search, task: SearchTask) -> None:
    """Add the distance of coordinates from those of the posture, in lanes that settle."""
    pull = search.number[PULL]
    for a in range(search.move.shape[0]):
        weight = task.posture_weight[a]
        if weight > 0.0:
            x = task.posture[a] - robot.state.qpos[task.coord[a]]
            search.trial_normal[a, a] = search.trial_normal[a, a] + weight * weight * pull
            search.trial_gradient[a] = search.trial_gradient[a] + weight * weight * pull * x
            search.number[TRIAL_COST] = search.number[TRIAL_COST] + 0.5 * weight * weight * pull * x * x


# ------------------------------------------------------------------ constraints


@njit
def _add_couplings(robot: RobotBundle, search: Search, task: SearchTask, targets: Targets) -> None:
    """Add the couplings that elimination leaves: C = q_follower - p(q_leader), and those of balls' axes."""
    model, q = robot.model, robot.state.qpos
    for c in task.coupling:
        follower, leader = model.row_follower[c], model.row_leader[c]
        _clear_line(robot, search)
        search.lines[0, follower] = search.lines[0, follower] + 1.0
        C = q[model.dof_coord[follower]]
        if leader >= 0:
            value, slope, _ = follow(model.row_polynomial[c], q[model.dof_coord[leader]])
            search.lines[0, leader] = search.lines[0, leader] - slope
            C = C - value
        else:
            C = C - model.row_polynomial[c, 0]
        _add_line(robot, search, task, targets, C)
    for c in task.axis:
        _clear_line(robot, search)
        dofs, slopes = axis_gradient(model, q, c)
        for e in range(4):
            search.lines[0, dofs[e]] = search.lines[0, dofs[e]] + slopes[e]
        _add_line(robot, search, task, targets, axis_error(model, q, c))


@njit
def _clear_line(robot: RobotBundle, search: Search) -> None:
    """Set the first three lines to 0."""
    zero = like(0.0, robot.data)
    for k in range(search.lines.shape[1]):
        for line in range(3):
            search.lines[line, k] = zero


@njit
def _add_line(robot: RobotBundle, search: Search, task: SearchTask, targets: Targets, C: Real) -> None:
    """Add a constraint C = 0 whose gradient is the first line."""
    _gather_lines(robot, search, task)
    zero = C - C
    _note(search, CLOSURE, (C, zero, zero))
    _add(search, targets, targets.link.shape[0], 0, (-C, zero, zero), zero + _HOLD)


@njit
def _add_loops(
    robot: RobotBundle, equipment: EquipmentBundle, search: Search, task: SearchTask, targets: Targets
) -> None:
    """Add the axes that loops hold."""
    motion_columns(robot.model, robot.data)
    zero = like(0.0, robot.data)
    for n in task.loop:
        loop_geometry(robot.model, robot.state.qvel, robot.data, equipment, n, search.lines)
        for line in range(6):
            if not equipment.model.loop_held[n, line]:
                for k in range(search.lines.shape[1]):
                    search.lines[line, k] = zero
        _gather_lines(robot, search, task)
        C = equipment.data.loop_error[n]
        for first in range(0, 6, 3):
            e = (-C[first], -C[first + 1], -C[first + 2])
            _note(search, CLOSURE, e)
            _add(search, targets, targets.link.shape[0], first, e, zero + _HOLD)


@njit
def _gather_lines(robot: RobotBundle, search: Search, task: SearchTask) -> None:
    """columns (6, n) = lines (6, nv) G."""
    J, zero = search.columns, like(0.0, robot.data)
    for line in range(6):
        for a in range(J.shape[1]):
            J[line, a] = zero
        for k in range(search.lines.shape[1]):
            a = task.dof_column[k]
            if a >= 0:
                J[line, a] = J[line, a] + robot.data.gain[k] * search.lines[line, k]


# ------------------------------------------------------------------ sums


@inlined
def _note(search: Search, kind: int, e: Vec3) -> None:
    """Raise the largest error of a kind."""
    search.trial_error[kind] = largest(search.trial_error[kind], sqrt(dot(e, e)))


@njit
def _add(search: Search, targets: Targets, t: int, first: int, e: Vec3, weight: Real) -> None:
    """Add three weighted lines to cost, normal matrix and gradient."""
    J = search.columns
    search.number[TRIAL_COST] = search.number[TRIAL_COST] + 0.5 * weight * dot(e, e)
    start, end = targets.first[t], targets.first[t + 1]
    for i in range(start, end):
        a = targets.column[i]
        x, y, z = weight * J[first, a], weight * J[first + 1, a], weight * J[first + 2, a]
        search.trial_gradient[a] = search.trial_gradient[a] + (x * e[0] + y * e[1] + z * e[2])
        for j in range(start, i + 1):
            b = targets.column[j]
            search.trial_normal[a, b] = search.trial_normal[a, b] + (
                x * J[first, b] + y * J[first + 1, b] + z * J[first + 2, b]
            )
