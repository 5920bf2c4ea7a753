"""Kernel of pose_constraints.py: the constraint rows' J and K = J M⁻¹ Jᵀ of many configurations, one by one.

M is that of `compute`, with the inertia of tendons. Rows are those of a run (constraints/), of any softness.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand, follow, reduce_matrix, reduce_vector
from artsim.sim.articulation.dynamics import composites, factorise, mass_matrix, solve
from artsim.sim.articulation.kinematics import kinematics, motion_columns, world_inertia
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.axis_rows import axis_gradient
from artsim.sim.constraints.kinds import AXIS_ROW, COUPLING_ROW, TENDON_ROW
from artsim.sim.constraints.loop_rows import loop_geometry
from artsim.sim.constraints.tendon_rows import add_equality_gradient
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.records import ConstInts1, Ints1, Reals2
from artsim.sim.quantities.catalogue import BAD_RESULT, OK
from artsim.sim.quantities.compute import SINGULAR, normalise
from artsim.sim.quantities.compute_records import END_ROW, FIRST_ROW
from artsim.sim.quantities.pose_constraints import PoseTask


@njit
def pose_constraints(robot: RobotBundle, equipment: EquipmentBundle | None, task: PoseTask) -> None:
    """Compute J and K of the task's rows, as far as there is an array for them. The robot is at rest."""
    model, state, data = robot.model, robot.state, robot.data
    if equipment is not None:
        _reference_lengths(robot, equipment)
    for row in range(task.rows[FIRST_ROW], task.rows[END_ROW]):
        for c in range(state.qpos.shape[0]):
            state.qpos[c] = task.qpos[row, c]
        normalise(model, state.qpos, data)
        if task.reduced[0] == 1:
            expand(model, state.qpos, state.qvel, data)
        kinematics(model, state.qpos, data)
        motion_columns(model, data)
        if equipment is not None:
            tendon_paths(robot, state.qpos, state.qvel, equipment)
        wrong = _gradients(robot, equipment, task)
        if task.constraint_jacobian.shape[0] > 0:
            for n in range(task.kind.shape[0]):
                for k in range(task.column.shape[0]):
                    task.constraint_jacobian[row, n, k] = task.gradient[n, k]
        if task.delassus.shape[0] > 0:
            wrong += _delassus(robot, equipment, task, row)
        if wrong != 0.0 and task.status[row] == OK:
            task.status[row] = BAD_RESULT


@njit
def _reference_lengths(robot: RobotBundle, equipment: EquipmentBundle) -> None:
    """Set equipment.data.tendon_length0, from which the polynomials of equalities count (stepping/calibration.py)."""
    q = robot.state.qpos
    for c in range(q.shape[0]):
        q[c] = equipment.model.reference[c]
    kinematics(robot.model, q, robot.data)
    tendon_paths(robot, q, robot.state.qvel, equipment)
    for t in range(equipment.data.tendon_length.shape[0]):
        equipment.data.tendon_length0[t] = equipment.data.tendon_length[t]


@njit
def _gradients(robot: RobotBundle, equipment: EquipmentBundle | None, task: PoseTask) -> float:
    """task.gradient = J (m, n); returns 0, or NaN if an entry is not finite."""
    model, state, data = robot.model, robot.state, robot.data
    total = 0.0
    loop = -1
    J = task.line
    for n in range(task.kind.shape[0]):
        kind, c = task.kind[n], task.owner[n]
        for k in range(J.shape[0]):
            J[k] = 0.0
        if kind == COUPLING_ROW:
            J[task.follower[c]] = 1.0
            leader = task.leader[c]
            if leader >= 0:
                _, slope, _ = follow(task.polynomial[c], state.qpos[model.dof_coord[leader]])
                J[leader] -= slope
        elif kind == AXIS_ROW:
            dofs, slopes = axis_gradient(model, state.qpos, c)
            for e in range(4):
                J[dofs[e]] += slopes[e]
        if equipment is not None:
            if kind == TENDON_ROW:
                add_equality_gradient(equipment, c, 1.0, J)
            elif kind != COUPLING_ROW and kind != AXIS_ROW:
                if c != loop:  # a loop's rows are adjacent
                    loop_geometry(model, state.qvel, data, equipment, c, task.loop_lines)
                    loop = c
                for k in range(J.shape[0]):
                    J[k] = task.loop_lines[task.part[n], k]
        for k in range(J.shape[0]):
            total += 0.0 * J[k]
        if task.reduced[0] == 1:
            reduce_vector(model, J, data, task.gradient[n])
        else:
            for k in range(J.shape[0]):
                task.gradient[n, k] = J[k]
    return total


@njit
def _delassus(robot: RobotBundle, equipment: EquipmentBundle | None, task: PoseTask, row: int) -> float:
    """task.delassus[row] = J M⁻¹ Jᵀ; returns 0, or another number if M is singular or K not finite."""
    model, data = robot.model, robot.data
    world_inertia(model, data)
    composites(model, data)
    if task.reduced[0] == 0:
        _clear(data.mass_matrix, task)
    mass_matrix(model, data)
    if task.reduced[0] == 0:
        return _delassus_of(data.mass_matrix, model.dof_parent, model.dof_run, robot, equipment, task, row)
    _clear(data.factor, task)
    reduce_matrix(model, data, task.zero)
    return _delassus_of(data.factor, model.independent_parent, model.independent_run, robot, equipment, task, row)


@njit
def _clear(M: Reals2, task: PoseTask) -> None:
    """Clear M (n, n) if tendons make it dense: else only the entries over the tree matter, which are all written."""
    for k in range(task.chain.shape[0]):
        for j in range(k + 1):
            M[k, j] = 0.0


@njit
def _delassus_of(
    M: Reals2,
    parent: ConstInts1,
    run: ConstInts1,
    robot: RobotBundle,
    equipment: EquipmentBundle | None,
    task: PoseTask,
    row: int,
) -> float:
    """The Delassus matrix from M (n, n), lower triangle over the elimination tree that `parent` and `run` describe."""
    if task.chain.shape[0] == 0:
        wrong = _factorise(M, parent, run, task)
        return wrong + _products(M, parent, run, task, row)
    if equipment is not None:
        _add_tendon_inertia(robot, equipment, M, task)
    wrong = _factorise(M, task.chain, task.chain_run, task)
    return wrong + _products(M, task.chain, task.chain_run, task, row)


@njit
def _add_tendon_inertia(robot: RobotBundle, equipment: EquipmentBundle, M: Reals2, task: PoseTask) -> None:
    """Add armature · Jᵀ J of the tendons to the lower triangle of M (n, n)."""
    for t in range(equipment.model.tendon_armature.shape[0]):
        armature = equipment.model.tendon_armature[t]
        if armature <= 0.0:
            continue
        for k in range(task.line.shape[0]):
            task.line[k] = 0.0
        for entry in range(equipment.model.tendon_entry[t], equipment.model.tendon_entry[t + 1]):
            task.line[equipment.model.tendon_dof[entry]] = equipment.data.tendon_moment[entry]
        if task.reduced[0] == 1:
            reduce_vector(robot.model, task.line, robot.data, task.column)
        else:
            for k in range(task.line.shape[0]):
                task.column[k] = task.line[k]
        for k in range(task.column.shape[0]):
            for j in range(k + 1):
                M[k, j] += armature * task.column[k] * task.column[j]


@njit
def _factorise(M: Reals2, parent: Ints1, run: Ints1, task: PoseTask) -> float:
    """Factorise M in place; returns 0, or 1 where a pivot is not a positive share of the inertia, above rounding."""
    for k in range(task.column.shape[0]):
        task.column[k] = M[k, k]
    factorise(M, task.pivot, parent, run)
    wrong = 0.0
    for k in range(task.column.shape[0]):
        if not 0.0 < task.pivot[k] * task.column[k] <= SINGULAR:  # the pivots are inverted
            wrong = 1.0
    return wrong


@njit
def _products(M: Reals2, parent: Ints1, run: Ints1, task: PoseTask, row: int) -> float:
    """Write K by the factors of M, column by column of its lower triangle; returns 0, or NaN if it is not finite."""
    total = 0.0
    J, x = task.gradient, task.column
    for n in range(J.shape[0]):
        for k in range(x.shape[0]):
            x[k] = J[n, k]
        solve(M, task.pivot, parent, run, x)
        for m in range(n, J.shape[0]):
            value = 0.0
            for k in range(x.shape[0]):
                value += J[m, k] * x[k]
            total += 0.0 * value
            if task.packed[0] == 1:
                task.delassus[row, 0, m * (m + 1) // 2 + n] = value
            else:
                task.delassus[row, m, n] = value
                task.delassus[row, n, m] = value
    return total
