"""Finds which dofs move which bodies, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artsim.sim.articulation.model import Model


def jacobian_columns(model: Model) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Link and dof (columns,) of every recorded column of the links' Jacobians: the dofs that move the link, in order.

    The other columns are zero: in a humanoid, five of six.
    """
    moving = [np.zeros(0, np.int64)]  # of each body
    for i in range(1, len(model.body_parent)):
        own = np.arange(model.body_dof[i], model.body_dof[i + 1])
        moving.append(np.concatenate([moving[model.body_parent[i]], own]))
    chains = [moving[body] for body in model.link_body]
    link = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
    dof = np.concatenate([*chains, moving[0]])
    return link, dof


def chain_length(model: Model, body: int) -> int:
    """Number of dofs that move a body."""
    k = int(model.body_dof[body + 1]) - 1 if body else -1
    count = 0
    while k >= 0:
        count += 1
        k = int(model.dof_parent[k])
    return count
