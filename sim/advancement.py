"""Continuous check, on request: how much of a step's motion there is before something is deeper in something else than
a part of its thickness.

Contacts are found before they are there and the way to them is left open in a straight line (detection.py), which is
exact for what does not turn. What turns far in one step moves along arcs, and a thin body's can lead through another
thin one. So after the solver the poses between the start and the end of the step are looked at, all at the same time,
by conservative advancement (Mirtich 1996; Zhang, Lee, Kim 2006): from each pose as far as the distances and the speeds
of the pairs allow. Trees whose shapes would get too deep stop there, with the velocities that the step gave them, and
lose the rest of the step's motion (as in Box2D); the next step finds the contact where it is.

`advance` is an entry of its own, compiled only for runs that ask for it.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.collision.narrow_phase import collide
from artsim.sim.continuous import SLACK
from artsim.sim.detection import place_moving, velocity_of
from artsim.sim.integrators import move
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import kinematics, velocities

MOVING = 2.0  # shares of the step are up to 1: such trees move to the end
_CLOSE = 0.1  # of the slack is left when a tree stops
_TURN = 0.1  # [rad] in one advance: by as much do velocities turn before they are looked at again
_MOST = 20_000  # distances of one step; then everything that is not done stops


@njit
def advance(m: Any, s: Any, w: Any, i: Any, f: Any, g: Any, S: Any, k: Any, c: Any, t: Any, a: Any) -> None:
    """f.tangent (nv,), velocities to move with over the step, become those to the places where trees stop.

    w and t then hold the places of the last pose that was looked at.
    """
    for n in range(a.stop.shape[0]):
        a.stop[n] = MOVING
    kinematics(m, s.qpos, w)
    _reaches(m, f, w, a)
    place_moving(m, w, g, t)
    for n in range(g.body.shape[0]):
        for axis in range(3):
            a.start[n, axis] = t.position[n, axis]
    _pose(m, s, w, i, f, g, t, a, 1.0)
    if not _choose(i, g, S, t, a):
        return
    time = 0.0
    looked = 0
    while time < 1.0:
        _pose(m, s, w, i, f, g, t, a, time)
        later = 1.0
        for n in range(a.number[0]):
            if a.next[n] <= time:
                looked += 1
                _look(m, w, i, g, S, k, c, t, a, n, time, looked > _MOST)
            later = min(later, a.next[n])
        time = later
    for v in range(f.tangent.shape[0]):
        f.tangent[v] *= min(a.stop[a.tree[m.dof_body[v]]], 1.0)


@njit
def _reaches(m: Any, f: Any, w: Any, a: Any) -> None:
    """Of every body how fast its tree turns it at most, and how far it is from its tree's root along the links.

    Angular velocities of joints that turn against each other add up here: links that stay parallel move on circles.
    """
    velocities(m, f.tangent, w)
    o = w.angular_velocity
    for b in range(1, m.body_parent.shape[0]):
        above = m.body_parent[b]
        d0, d1, d2 = o[b, 0] - o[above, 0], o[b, 1] - o[above, 1], o[b, 2] - o[above, 2]
        a.turning[b] = a.turning[above] + math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
        a.arm[b] = 0.0
        if above > 0:
            x = w.offset[b]
            a.arm[b] = a.arm[above] + math.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])


@njit
def _pose(m: Any, s: Any, w: Any, i: Any, f: Any, g: Any, t: Any, a: Any, time: Any) -> None:
    """Shapes where they are after that share of the step, and the velocities of what still moves."""
    for n in range(f.stage_qpos.shape[0]):
        f.stage_qpos[n] = s.qpos[n]
    for v in range(f.tangent.shape[0]):
        f.stage_qvel[v] = f.tangent[v] * min(time, a.stop[a.tree[m.dof_body[v]]])
    move(m, f.stage_qpos, f.stage_qvel, i.time_step[0])
    kinematics(m, f.stage_qpos, w)
    for v in range(f.tangent.shape[0]):
        f.stage_qvel[v] = f.tangent[v] if a.stop[a.tree[m.dof_body[v]]] == MOVING else 0.0
    velocities(m, f.stage_qvel, w)
    place_moving(m, w, g, t)


@njit
def _choose(i: Any, g: Any, S: Any, t: Any, a: Any) -> bool:
    """The pairs to look at: whose arcs leave the straight lines by more than their slack, and which may meet. False
    when there are none. Shapes are at the end of the step.
    """
    h = i.time_step[0]
    for n in range(g.body.shape[0]):
        b = g.body[n]
        angle = h * a.turning[b]
        arm = a.arm[b] + a.beside[n]
        a.bent[n] = 0.5 * angle * angle * (g.swing[n] + arm)
        chord = _length(t.position[n], a.start[n])
        a.way[n] = chord + min(angle, 2.0) * g.swing[n] + min(0.5 * angle * angle, 2.0) * arm
    a.number[0] = 0
    for p in range(a.pair.shape[0]):
        one = a.pair[p, 0]
        two = a.pair[p, 1]
        slack = SLACK * min(a.thickness[one], a.thickness[two])
        if a.bent[one] + a.bent[two] <= slack and not _turns(i, g, t, a, one) and not _turns(i, g, t, a, two):
            continue
        if _length(a.start[one], a.start[two]) - S.reach[one] - S.reach[two] > a.way[one] + a.way[two]:
            continue
        n = a.number[0]
        a.number[0] = n + 1
        a.chosen[n] = p
        a.next[n] = 0.0
        a.depth[n] = slack
    return bool(a.number[0] > 0)


@inlined
def _turns(i: Any, g: Any, t: Any, a: Any, n: Any) -> bool:
    """Whether detection.py counts with less than the whole step for shape n."""
    turns: bool = i.time_step[0] * a.turning[g.body[n]] > t.straight[n]
    return turns


@inlined
def _length(p: Any, q: Any) -> Any:
    d0, d1, d2 = p[0] - q[0], p[1] - q[1], p[2] - q[2]
    return math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)


@njit
def _look(
    m: Any, w: Any, i: Any, g: Any, S: Any, k: Any, c: Any, t: Any, a: Any, n: Any, time: Any, enough: Any
) -> None:
    """a.next of candidate n, the share of the step up to which it can be no deeper than it may; its trees stop where
    that is now, or where `enough` has been looked at."""
    h = i.time_step[0]
    one = a.pair[a.chosen[n], 0]
    two = a.pair[a.chosen[n], 1]
    b = g.body[one]
    d = g.body[two]
    if not _moves(a, b) and not _moves(a, d):
        a.next[n] = MOVING
        return
    turning = max(_turning(a, b), _turning(a, d))
    speed = _closing(m, w, g, t, a, one, two)
    margin = h * (1.0 - time) * speed
    c.number[0] = 0
    collide(S, t, k, one, two, margin, c)
    gap = margin
    for found in range(c.number[0]):
        gap = min(gap, c.gap[found])
    slack = SLACK * min(a.thickness[one], a.thickness[two])
    if time == 0.0:  # what is deep already may stay, and move a little
        a.depth[n] = max(slack, 0.5 * slack - gap)
    room = gap + a.depth[n]
    if room < _CLOSE * slack or enough:
        for body in (b, d):
            if _moves(a, body):
                a.stop[a.tree[body]] = time
        a.next[n] = MOVING
        return
    advance = room / (h * speed) if room < h * speed else 1.0
    if turning * h * advance > _TURN:
        advance = _TURN / (h * turning)
    a.next[n] = time + advance


@inlined
def _moves(a: Any, b: Any) -> bool:
    """Whether body b has not stopped."""
    moves: bool = b > 0 and a.stop[a.tree[b]] == MOVING
    return moves


@inlined
def _turning(a: Any, b: Any) -> Any:
    """How fast body b turns at most [rad/s]."""
    return a.turning[b] if _moves(a, b) else 0.0


@inlined
def _closing(m: Any, w: Any, g: Any, t: Any, a: Any, one: Any, two: Any) -> Any:
    """A bound of the speed at which two shapes come nearer, until one of them has turned by _TURN [m/s]."""
    u0, u1, u2 = velocity_of(m, w, g, t, one)
    v0, v1, v2 = velocity_of(m, w, g, t, two)
    apart = math.sqrt((u0 - v0) * (u0 - v0) + (u1 - v1) * (u1 - v1) + (u2 - v2) * (u2 - v2))
    return apart + _swinging(g, a, one) + _swinging(g, a, two)


@inlined
def _swinging(g: Any, a: Any, n: Any) -> Any:
    """How much its turning adds to that."""
    b = g.body[n]
    return _turning(a, b) * (g.swing[n] + _TURN * (a.arm[b] + a.beside[n]))
