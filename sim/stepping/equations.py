"""Records by which packs tell the equations of a step at its solution, from many starts beside that of the solution.

At the velocities u⁺ and the impulses λ that a step has found, its equations are a balance of momentum, M̂ (u⁺ - u) -
h (τ - b) - Jᵀ λ = 0, and the gaps J u⁺ + bias + cfm λ of its rows. From other starts, with u⁺ and λ held, they are no
longer fulfilled: by how much is the right side of the implicit function theorem (runs/implicit_slopes.py). No numba
here.
"""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import Ints1, Ints2, Lanes1, Lanes2
from artsim.sim.stepping.packs import PackFeatures, roll_entry

ROWS, SHAPES = range(2)  # entries of Equations.number: rows of the solution, contacts that it lists


class Equations(NamedTuple):
    """The solution of a step, and its equations by group of starts."""

    group: Ints1  # (1,) as in Trials: the row of the tables
    number: Ints1  # (2,) ROWS, SHAPES
    # of the solution
    kind: Ints1  # (rows,) as in Rows, with the two below
    dof: Ints1
    part: Ints1
    shape: Ints2  # (contacts, 2)
    next: Lanes1  # (nu,) u⁺
    impulse: Lanes1  # (rows,) λ
    pressed: Lanes2  # (nv + nt, 4) as in Step
    drive_held: Lanes1  # (nv,) as in Step
    most_grip: Lanes1  # (contacts,) as in ContactWork
    # of the first group
    system: Lanes2  # (nu, nu) M̂
    jacobian: Lanes2  # (rows, nu) J
    nearest: Lanes1  # (1,) by how much the limit without a row that is nearest to be passed is, at most 0
    # by group
    fits: Ints1  # (groups,) 1: all rows are those of the solution
    balance: Lanes2  # (groups, nu) [N m s or N s]
    gap: Lanes2  # (groups, rows) [rad/s or m/s], and as in Rows the softness, bounds and cones
    cfm: Lanes2
    lower: Lanes2
    upper: Lanes2
    slope: Lanes2
    shifting: Lanes2
    miss: Lanes2  # (groups, rows) of aimed rows where the velocities lead, as in Rows; 0 of others
    rate: Lanes2


def equations_of_packs(needs: PackFeatures) -> Entry:
    """The kernel that sets up the equations of a step whose solution is known."""
    steps = roll_entry(needs)
    return Entry("find_equations", "artsim.sim.stepping.find_equations", (*steps.records, Equations), steps.variant)
