"""Effective inertias of drives of loop joints whose gains are accelerations (PhysX's acceleration drives).

The effective inertia of a drive is that with its own loop held: 1 / (J M⁻¹ Jᵀ - Σ (L_i M⁻¹ Jᵀ)²), with the lines L_i
that the loop holds made orthonormal in M⁻¹. On a single body this is the inertia about the joint, as for the drive of a
joint of the tree.
"""

from __future__ import annotations

from artsim.sim.articulation.coupling import reduce_vector
from artsim.sim.articulation.dynamics import solve
from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.constraints.loop_rows import loop_geometry
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.implicit_actuators import affine_force
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import lane_count, lane_of, where_greater, with_lane, zero_like
from artsim.sim.foundation.records import Lanes1, Lanes2, Real
from artsim.sim.foundation.scalars import inverse_or_zero, largest
from artsim.sim.run_data.run_records import RunBundle

_DEPENDENT = 1e-9  # share of its mobility below which a line depends on those before it, or moves nothing


@njit
def has_inertial_drives(equipment: EquipmentBundle) -> bool:
    """True if the gains of an actuator are accelerations."""
    for a in range(equipment.model.actuator_by_inertia.shape[0]):
        if equipment.model.actuator_by_inertia[a]:
            return True
    return False


@njit
def scale_by_inertia(model: Model, v: Lanes1, data: Workspace, run: RunBundle, equipment: EquipmentBundle) -> None:
    """Set equipment.data.actuator_scale of the actuators whose gains are accelerations to their effective inertias,
    with the bare M factorised in data.factor, and their shares. Without mobility the scale is 0, and so is the force.
    """
    h = run.inputs.time_step[0]
    L, y = run.step.columns, equipment.data.loop_response
    for a in range(equipment.model.actuator_by_inertia.shape[0]):
        if not equipment.model.actuator_by_inertia[a]:
            continue
        path = equipment.model.tendon_path[equipment.model.actuator_target[a]]
        n = equipment.model.path_index[path]
        loop_geometry(model, v, data, equipment, n, L)
        _make_orthonormal(model, data, equipment, n, L, y)
        J, z = equipment.data.row, equipment.data.row2
        for k in range(J.shape[0]):
            J[k] = like(0.0, data)
        for entry in range(equipment.model.actuator_entry[a], equipment.model.actuator_entry[a + 1]):
            J[equipment.model.actuator_dof[entry]] = equipment.data.actuator_moment[entry]
        _respond(model, data, J, z)
        whole = _product(J, z)
        mobility, zero = whole, zero_like(whole)
        for line in range(6):
            along = _product(L[line], z)
            mobility -= along * along
        moves = where_greater(mobility, _DEPENDENT * whole, mobility, zero)
        equipment.data.actuator_scale[a] = inverse_or_zero(moves)
        _, stiffness, _ = affine_force(equipment, a)
        equipment.data.actuator_share[a] = 1.0 / largest(zero + 1.0, h * h * stiffness * mobility)


@njit
def _make_orthonormal(model: Model, data: Workspace, equipment: EquipmentBundle, n: int, L: Lanes2, y: Lanes2) -> None:
    """Make the held lines of L (6, nv) orthonormal in M⁻¹, y = M⁻¹ Lᵀ; lines that are free or dependent become 0."""
    for line in range(6):
        norm = like(0.0, data)
        if equipment.model.loop_held[n, line]:
            _respond(model, data, L[line], y[line])
            whole = _product(L[line], y[line])
            for other in range(line):
                share = _product(L[line], y[other])
                for k in range(L.shape[1]):
                    L[line, k] -= share * L[other, k]
                    y[line, k] -= share * y[other, k]
            square = _product(L[line], y[line])
            for lane in range(lane_count(square)):
                if lane_of(square, lane) > _DEPENDENT * lane_of(whole, lane):
                    norm = with_lane(norm, lane, lane_of(square, lane) ** -0.5)
        for k in range(L.shape[1]):
            L[line, k] = norm * L[line, k]
            y[line, k] = where_greater(norm, zero_like(norm), norm * y[line, k], zero_like(norm))


@njit
def _respond(model: Model, data: Workspace, J: Lanes1, out: Lanes1) -> None:
    """out (nv,) = M⁻¹ Jᵀ, with couplings held."""
    reduce_vector(model, J, data, data.reduced)
    solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, data.reduced)
    for k in range(out.shape[0]):
        a = model.dof_independent[k]
        out[k] = data.gain[k] * data.reduced[a] if a >= 0 else like(0.0, data)


@njit
def _product(x: Lanes1, y: Lanes1) -> Real:
    value = zero_like(x[0])
    for k in range(x.shape[0]):
        value += x[k] * y[k]
    return value
