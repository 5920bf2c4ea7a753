"""Spatial vectors: motions and forces as pairs of triples, linear and angular, in world axes.

A motion is the velocity of a point and the angular velocity, a force is a force and the torque about a point:
Featherstone, Rigid Body Dynamics Algorithms (2008), ch. 2, with the linear part first. Bodies' quantities are about
their origins; since all axes are the world's, a change of point is a translation.
"""

from __future__ import annotations

from artsim.sim.foundation.jit import inlined
from artsim.sim.foundation.mat3 import symmetric_times
from artsim.sim.foundation.records import Force, Lanes2, Motion, Real, Vec3, Vector
from artsim.sim.foundation.vec3 import add_to_row, column_of, cross, plus, row_of, set_column, set_row, times

# ------------------------------------------------------------------ entries of arrays


@inlined
def pair_of(A: Lanes2, B: Lanes2, i: int) -> Motion:
    """The pair of row i of the arrays of linear and of angular parts."""
    return row_of(A, i), row_of(B, i)


@inlined
def set_pair(A: Lanes2, B: Lanes2, i: int, a: Motion) -> None:
    """Set row i of the arrays of linear and of angular parts."""
    set_row(A, i, a[0])
    set_row(B, i, a[1])


@inlined
def add_pair(A: Lanes2, B: Lanes2, i: int, a: Motion) -> None:
    """Add a pair to row i of the arrays of linear and of angular parts."""
    add_to_row(A, i, a[0])
    add_to_row(B, i, a[1])


@inlined
def six_of(A: Lanes2, i: int) -> Motion:
    """The pair in row i of an array (n, 6)."""
    return (A[i, 0], A[i, 1], A[i, 2]), (A[i, 3], A[i, 4], A[i, 5])


@inlined
def set_six(A: Lanes2, i: int, a: Motion) -> None:
    """Set row i of an array (n, 6) to a pair."""
    set_row(A, i, a[0])
    A[i, 3] = a[1][0]
    A[i, 4] = a[1][1]
    A[i, 5] = a[1][2]


@inlined
def motion_column(J: Lanes2, k: int) -> Motion:
    """Column k of an array (6, n)."""
    return column_of(J, k, 0), column_of(J, k, 3)


@inlined
def set_motion_column(J: Lanes2, k: int, a: Motion) -> None:
    """Set column k of an array (6, n)."""
    set_column(J, k, 0, a[0])
    set_column(J, k, 3, a[1])


@inlined
def add_motion_column(J: Lanes2, k: int, share: Real, a: Motion) -> None:
    """Add `share` times a pair to column k of an array (6, n)."""
    set_motion_column(J, k, pair_plus(motion_column(J, k), pair_times(share, a)))


# ------------------------------------------------------------------ algebra


@inlined
def pair_plus(a: Motion, b: Motion) -> Motion:
    """a + b."""
    return plus(a[0], b[0]), plus(a[1], b[1])


@inlined
def pair_times(k: Real, a: Motion) -> Motion:
    """k a for a number k."""
    return times(k, a[0]), times(k, a[1])


@inlined
def power(S: Motion, F: Force) -> Real:
    """S · F, the power of a force along a motion of the same point."""
    s, t = S
    f, n = F
    return s[0] * f[0] + s[1] * f[1] + s[2] * f[2] + t[0] * n[0] + t[1] * n[1] + t[2] * n[2]


@inlined
def shifted_force(F: Force, r: Vector) -> Force:
    """The force about a point from which its own point lies at r."""
    return F[0], plus(F[1], cross(r, F[0]))


@inlined
def shifted_motion(V: Motion, r: Vector) -> Motion:
    """The motion of the point from which its own point lies at r."""
    return plus(V[0], cross(r, V[1])), V[1]


@inlined
def velocity_at(V: Motion, r: Vector) -> Vec3:
    """The velocity of the point at r."""
    return plus(V[0], cross(V[1], r))


@inlined
def newton_euler(mass: Real, h: Vector, I: Lanes2, i: int, w: Vector, A: Motion) -> Force:
    """The force that a rigid body with first moment h and inertia I[i] about its origin needs for its angular velocity
    w and acceleration A = (of the origin, angular), classical: m a + α × h + ω × (ω × h), I α + ω × I ω + h × a.
    """
    a, x = A
    force = plus(plus(times(mass, a), cross(x, h)), cross(w, cross(w, h)))
    torque = plus(plus(symmetric_times(I, i, x), cross(w, symmetric_times(I, i, w))), cross(h, a))
    return force, torque
