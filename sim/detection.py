"""Where contacts are in this configuration: the pairs of Contacts go through collision's kernels into ContactWork."""

from __future__ import annotations

from typing import Any

from artsim.collision.sphere import sphere_plane
from artsim.sim.jit import njit
from artsim.sim.kinematics import cross, origin_of, turn


@njit
def find_contacts(m: Any, w: Any, g: Any, t: Any) -> None:
    """Point, frame and gap of every contact. Needs kinematics."""
    for n in range(g.friction.shape[0]):
        body = g.sphere_body[n]
        c = g.sphere_centre[n]
        r0, r1, r2 = turn(w.rotation, body, c[0], c[1], c[2])
        o0, o1, o2 = origin_of(m, w, body)
        gap, p0, p1, p2 = sphere_plane(o0 + r0, o1 + r1, o2 + r2, g.sphere_radius[n], g.ground_point, g.ground_frame)
        t.gap[n] = gap
        t.body[n, 0] = 0
        t.body[n, 1] = body
        t.link[n, 0] = -1
        t.link[n, 1] = g.sphere_link[n]
        t.arm[n, 0, 0] = p0
        t.arm[n, 0, 1] = p1
        t.arm[n, 0, 2] = p2
        t.arm[n, 1, 0] = p0 - o0
        t.arm[n, 1, 1] = p1 - o1
        t.arm[n, 1, 2] = p2 - o2
        for axis in range(3):
            for k in range(3):
                t.frame[n, axis, k] = g.ground_frame[axis, k]


@njit
def find_drifts(m: Any, w: Any, g: Any, t: Any) -> None:
    """t.drift of every contact: that of the sphere's centre along the normal.

    Needs the accelerations at zero independent acceleration, as the bias leaves them: less gravity, the world's too.
    """
    for n in range(g.friction.shape[0]):
        body = g.sphere_body[n]
        c = g.sphere_centre[n]
        r0, r1, r2 = turn(w.rotation, body, c[0], c[1], c[2])
        o = w.angular_velocity[body]
        al = w.angular_acceleration[body]
        s0, s1, s2 = cross(o[0], o[1], o[2], r0, r1, r2)
        s0, s1, s2 = cross(o[0], o[1], o[2], s0, s1, s2)
        t0, t1, t2 = cross(al[0], al[1], al[2], r0, r1, r2)
        a = w.acceleration
        t.drift[n] = (
            t.frame[n, 0, 0] * (a[body, 0] - a[0, 0] + s0 + t0)
            + t.frame[n, 0, 1] * (a[body, 1] - a[0, 1] + s1 + t1)
            + t.frame[n, 0, 2] * (a[body, 2] - a[0, 2] + s2 + t2)
        )
