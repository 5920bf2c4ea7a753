"""Rays from rangefinders to what is nearest along them. An entry of its own, which a step calls through its address."""

from __future__ import annotations

from typing import Any

from artsim.collision.frames import into, turned, turned_back
from artsim.collision.ray import ray_shape
from artsim.sim.jit import njit
from artsim.sim.kinematics import point_of, turn


@njit
def cast_rays(m: Any, w: Any, e: Any, x: Any, k: Any, S: Any, P: Any) -> None:
    """x.ray_hit of every ray in x.ray: the distance, -1 where nothing is met, and the normal there, world axes.

    What is on the ray's own link does not count. Needs kinematics.
    """
    for n in range(k.body.shape[0]):
        _place(m, w, k, P, n)
    for ray in range(x.ray.shape[0]):
        a = x.ray[ray]
        best = -1.0
        for n in range(k.body.shape[0]):
            if k.link[n] == e.ray_link[ray]:
                continue
            p = into(P, n, a[0], a[1], a[2])
            v = turned_back(P, n, a[3], a[4], a[5])
            s, n0, n1, n2 = ray_shape(S, n, k.window[n], k.floor[n], p, v)
            if s >= 0.0 and (best < 0.0 or s < best):
                best = s
                n0, n1, n2 = turned(P, n, n0, n1, n2)
                x.ray_hit[ray, 1] = n0
                x.ray_hit[ray, 2] = n1
                x.ray_hit[ray, 3] = n2
        x.ray_hit[ray, 0] = best


@njit
def _place(m: Any, w: Any, k: Any, P: Any, n: Any) -> None:
    """P of shape n."""
    c = k.place[n]
    T = k.turn[n]
    P.position[n, 0], P.position[n, 1], P.position[n, 2] = point_of(m, w, k.body[n], c[0], c[1], c[2])
    for column in range(3):
        r0, r1, r2 = turn(w.rotation, k.body[n], T[0, column], T[1, column], T[2, column])
        P.rotation[n, 0, column] = r0
        P.rotation[n, 1, column] = r1
        P.rotation[n, 2, column] = r2
