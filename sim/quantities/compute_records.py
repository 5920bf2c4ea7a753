"""The records of `compute` kernels: tables of configurations and results, tasks of threads, scratch. No numba here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.slopes import Slopes
from artsim.sim.articulation.state import Joints, RobotBundle
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import (
    BUFFER,
    EMPTY_BLOCK,
    WIDTH,
    Array,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    Reals4,
)

# entries of Task.rows
FIRST_ROW, END_ROW = range(2)
# entries of Scratch.check
OF_INPUTS, OF_RESULTS = range(2)


class Task(NamedTuple):
    """The task of a thread: its rows, and its options."""

    rows: Ints1  # (2,) first row, and the one after the last; their difference is a multiple of the lanes
    at_com: Ints1  # (1,) Jacobians, velocities and wrenches at the centre of mass (1) or the frame's origin (0)
    reduced: Ints1  # (1,) in independent (1) or full coordinates (0)
    places: Ints1  # (1,) 0: only joint forces are asked for, which need no poses of bodies
    mass_entries: Ints1  # place in M, flat, of each entry of a row of mass_matrix; negative: the entry is 0
    inverse_entries: Ints1  # place in M⁻¹, flat, of each entry of a row of inverse_mass_matrix; negative: 0
    slope_entries: Ints1  # place in a matrix (n, n), flat, of each of its entries; negative: the dofs share no chain
    links: Ints1  # (nl,) the links asked for
    parent: Ints1  # (n,) elimination tree of M with the inertia of tendons, for derivatives of forward dynamics
    run: Ints1  # (n,) as Model.dof_run
    tendon_inertia: Reals2  # (nv, nv) constant inertia of fixed tendons; (0, nv): none
    chains: Ints2  # (nb, ⌈nv / 8⌉) the dofs that move a body: bit k % 8 of entry k // 8


class Batch(NamedTuple):
    """Tables of N configurations. An output of first extent 0 is not computed. n: nv, or nu if reduced."""

    status: Ints1  # (N,) see quantities.STATUS_MEANING
    qpos: Reals2  # (N, nq)
    qvel: Reals2  # (N, nv) or (0, nv): zero
    qacc: Reals2  # (N, nv) or (0, nv): zero
    tau: Reals2  # (N, nv) or (0, nv): zero
    wrench: Reals3  # (N, nl, 6) or (0, nl, 6): zero; on each link, world axes
    gravity: Reals2  # (N, n)
    coriolis: Reals2  # (N, n) C v
    bias: Reals2  # (N, n) C v + g
    mass_matrix: Reals3  # (N, n, n) with armature of joints; packed: (N, 1, n (n + 1) / 2)
    inverse_mass_matrix: Reals3  # (N, n, n); packed: (N, 1, n (n + 1) / 2)
    inverse_dynamics: Reals2  # (N, n)
    forward_dynamics: Reals2  # (N, n)
    external_force: Reals2  # (N, n) the joint forces that balance the wrenches: -Jᵀ f
    jacobian: Reals4  # (N, nl, 6, n)
    jacobian_dot: Reals4  # (N, nl, 6, n)
    link_position: Reals3  # (N, nl, 3) [m]
    link_quaternion: Reals3  # (N, nl, 4)
    link_velocity: Reals3  # (N, nl, 6)
    link_acceleration: Reals3  # (N, nl, 6) classical, gravity not included
    com: Reals2  # (N, 3) [m]
    com_jacobian: Reals3  # (N, 3, n)
    momentum: Reals2  # (N, 6) linear, angular about the centre of mass
    centroidal_momentum_matrix: Reals3  # (N, 6, n)
    centroidal_bias: Reals2  # (N, 6) rate of the momentum at zero acceleration
    kinetic_energy: Reals1  # (N,) [J]
    potential_energy: Reals1  # (N,) [J]
    coupling_matrix: Reals3  # (N, nv, nu) G
    # of derivative_rows.py
    gravity_derivative: Reals3  # (N, n, n) ∂g/∂q
    inverse_dynamics_dq: Reals3  # (N, n, n) ∂τ/∂q
    inverse_dynamics_dv: Reals3  # (N, n, n) ∂τ/∂v
    forward_dynamics_dq: Reals3  # (N, n, n) ∂q̈/∂q
    forward_dynamics_dv: Reals3  # (N, n, n) ∂q̈/∂v
    forward_dynamics_dtau: Reals3  # (N, n, n) ∂q̈/∂τ
    link_velocity_dq: Reals4  # (N, nl, 6, n)
    link_acceleration_dq: Reals4  # (N, nl, 6, n)
    link_acceleration_dv: Reals4  # (N, nl, 6, n)
    momentum_dq: Reals3  # (N, 6, n)
    momentum_rate_dq: Reals3  # (N, 6, n)
    momentum_rate_dv: Reals3  # (N, 6, n)


class Scratch(NamedTuple):
    """Scratch of `compute` with lanes. nl: number of links asked for."""

    zero: Lanes1  # (nv,) zeros
    qacc: Lanes1  # (nv,)
    input: Lanes1  # (nv,)
    diagonal: Lanes1  # (nv,)
    external: Lanes1  # (nv,) Jᵀ f
    gain: Lanes1  # (nv,) G's entry of each dof
    gain_rate: Lanes1  # (nv,) Ġ's
    reduced: Lanes1  # (nu,)
    columns: Lanes2  # (6, nv)
    rates: Lanes2  # (6, nv)
    robot_motion: Reals2  # (lanes, 6 nv + 8) motion columns, robot by robot; padded for reads past the end
    robot_points: Reals2  # (lanes, 3 nl)
    buffer: Reals1  # (BUFFER + 6 nv + 8,) Jacobians before they are written; padded for writes past the end
    short_columns: Lanes2  # (3, nv)
    reduced_columns: Lanes2  # (6, nu)
    reduced_short_columns: Lanes2  # (3, nu)
    gains: Lanes2  # (nv, nu)
    positions: Lanes2  # (nl, 3)
    twists: Lanes2  # (nl, 6)
    wrench: Lanes1  # (6 nl,)
    square: Lanes2  # (n, n) n: nv, or nu when reduced
    column: Lanes1  # (n,)
    pivot: Lanes1  # (n,)
    stage: Reals1  # the rows of a pack in the order of the table, for the largest quantity
    inertia: Lanes1  # (nb,) [kg m²]
    vector: Lanes1  # (6,)
    com: Lanes1  # (3,)
    number: Lanes1  # (1,)
    check: Lanes1  # (2,) 0 while all inputs and all results are finite


def scratch_shapes(nb: int, nv: int, nu: int, links: int, reduced: bool, width: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the Scratch fields."""
    n = nu if reduced else nv
    return {
        **dict.fromkeys(("zero", "qacc", "input", "diagonal", "external", "gain", "gain_rate"), (nv,)),
        "reduced": (nu,),
        **dict.fromkeys(("columns", "rates"), (6, nv)),
        "robot_motion": (width, 6 * nv + WIDTH),
        "robot_points": (width, 3 * links),
        "buffer": (BUFFER + 6 * nv + WIDTH,),
        "short_columns": (3, nv),
        "reduced_columns": (6, nu),
        "reduced_short_columns": (3, nu),
        "gains": (nv, nu),
        "positions": (links, 3),
        "twists": (links, 6),
        "wrench": (6 * links,),
        "square": (n, n),
        "stage": (width * max(n * n, 6 * nv, nv * nu, 6 * links, 6),),
        **dict.fromkeys(("column", "pivot"), (n,)),
        "inertia": (nb,),
        "vector": (6,),
        "com": (3,),
        "number": (1,),
        "check": (2,),
    }


def matrix_entries(parent: Array | None, n: int, packed: bool) -> Array:
    """Task.mass_entries of a symmetric (n, n) matrix stored as lower triangle, over a tree of dofs or full (None).

    The entries are those of the whole matrix by rows, or of its lower triangle by rows if packed.
    """
    rows = np.arange(n)
    where = np.maximum.outer(rows, rows) * n + np.minimum.outer(rows, rows)
    if parent is not None:
        where[~_on_chains(parent)] = -1
    return _in_blocks(where[np.tril_indices(n)] if packed else where.reshape(-1))


def slope_entries(parent: Array) -> Array:
    """Task.slope_entries over a tree of dofs."""
    n = len(parent)
    return _in_blocks(np.where(_on_chains(parent), np.arange(n * n).reshape(n, n), -1).reshape(-1))


def _on_chains(parent: Array) -> Array:
    """True (n, n) where one of two dofs is the other, or above it."""
    n = len(parent)
    moves = np.zeros((n, n), bool)  # True if dof j is k or above k
    for k in range(n):
        if parent[k] >= 0:
            moves[k] = moves[parent[k]]
        moves[k, k] = True
    return moves | moves.T


def _in_blocks(entries: Array) -> Array:
    """The entries with blocks of zeros marked (`EMPTY_BLOCK`)."""
    blocks = entries[: len(entries) // WIDTH * WIDTH].reshape(-1, WIDTH)
    blocks[(blocks < 0).all(axis=1), 0] = EMPTY_BLOCK
    return entries


def chains(model: Model) -> Array:
    """Task.chains of a model."""
    nb, nv = len(model.body_parent), len(model.dof_body)
    masks = np.zeros((nb, -(-nv // WIDTH)), np.int64)
    for i in range(1, nb):
        masks[i] = masks[model.body_parent[i]]
        for k in range(model.body_dof[i], model.body_dof[i + 1]):
            masks[i, k // WIDTH] |= 1 << (k % WIDTH)
    return masks


COMPUTE = Entry("compute", "artsim.sim.quantities.compute", (RobotBundle, Joints, Scratch, Task, Batch))
DERIVATIVE_ROWS = Entry(
    "derivative_rows", "artsim.sim.quantities.derivative_rows", (RobotBundle, Slopes, Scratch, Task, Batch)
)
