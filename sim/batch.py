"""The record `compute` kernels work through: a table of configurations in, a table of results out (no numba here)."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.jit import Entry
from artsim.sim.model import Model
from artsim.sim.records import Ints1, Lanes1, Lanes2, Reals2, Reals3, Reals4
from artsim.sim.state import State, Workspace


class Batch(NamedTuple):
    """N configurations. An output whose first extent is 0 is not wanted and not computed."""

    options: Ints1  # (2,) Jacobians and velocities at the centre of mass (1) or the origin (0); reduced (1) or full (0)
    qpos: Reals2  # (N, nq)
    qvel: Reals2  # (N, nv)
    qacc: Reals2  # (N, nv)
    tau: Reals2  # (N, nv)
    link_position: Reals3  # (N, nl, 3) [m]
    link_quaternion: Reals3  # (N, nl, 4)
    jacobian: Reals4  # (N, nl, 6, nv or nu)
    com: Reals2  # (N, 3) [m]
    centroidal_momentum_matrix: Reals3  # (N, 6, nv) about the centre of mass
    momentum: Reals2  # (N, 6)
    mass_matrix: Reals3  # (N, nv, nv) or (N, nu, nu) with armature
    gravity: Reals2  # (N, nv) or (N, nu)
    bias: Reals2  # (N, nv) or (N, nu): C v + g
    inverse_dynamics: Reals2  # (N, nv) or (N, nu)
    forward_dynamics: Reals2  # (N, nv) or (N, nu)


class Scratch(NamedTuple):
    """Lane scratch of `compute`."""

    zero: Lanes1  # (nv,) zeros
    input: Lanes1  # (nv,)
    diagonal: Lanes1  # (nv,)
    reduced: Lanes1  # (nu,)
    columns: Lanes2  # (6, nv)
    com: Lanes1  # (3,)
    momentum: Lanes1  # (6,)


COMPUTE = Entry("compute", "artsim.sim.compute", (Model, State, Workspace, Scratch, Batch))
