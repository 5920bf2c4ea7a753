"""MuJoCo's tendons, as its data has them: moments, and the inertia that its M leaves out."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def moments_of(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Tendon Jacobian (nt, nv)."""
    dense = np.zeros((model.ntendon, model.nv))
    mujoco.mju_sparse2dense(dense, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind)
    return dense


def dropped_inertia(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """The entries of Jᵀ armature J (nv, nv) between dofs of two branches, for which MuJoCo's sparse M has no room."""
    J = moments_of(model, data)
    inertia = J.T @ (model.tendon_armature[:, None] * J)
    for k in range(model.nv):
        above = k
        while above >= 0:
            inertia[k, above] = inertia[above, k] = 0.0
            above = int(model.dof_parentid[above])
    return inertia
