"""What tendons and actuators do to the links as free bodies: wrenches that no joint of the tree carries.

A spatial tendon pulls at the points of its path, an actuator at a site or a slider-crank pushes there. All else that
acts on the dofs (fixed tendons, actuators of joints, springs, compensated weights, the medium) acts in the joints.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.record import PATH_JOINT, PATH_PULLEY, PATH_SITE, SITE, SLIDER_CRANK
from artsim.sim.equipment.tendons import site_point, way_around
from artsim.sim.equipment.transmissions import crank, turned_gear, wrench_frame
from artsim.sim.equipment.wrapping import unit3
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import cross, link_frame, origin_of


@njit
def take_off_tendons(m: Any, w: Any, f: Any, e: Any, x: Any) -> None:
    """Subtract from f.link_force and f.link_torque (about the links' origins) what spatial tendons do to the links."""
    for t in range(x.tendon_force.shape[0]):
        if x.tendon_force[t] != 0.0 and e.path_kind[e.tendon_path[t]] != PATH_JOINT:
            _take_off_path(m, w, f, e, t, x.tendon_force[t])


@njit
def take_off_actuators(m: Any, w: Any, f: Any, e: Any, x: Any) -> None:
    """Subtract from f.link_force and f.link_torque what actuators at sites and slider-cranks do to the links."""
    for a in range(e.actuator_target.shape[0]):
        kind = e.actuator_transmission[a]
        if kind == SITE:
            _take_off_site(m, w, f, e, a, x.actuator_force[a])
        elif kind == SLIDER_CRANK:
            _take_off_crank(m, w, f, e, a, x.actuator_force[a])


@inlined
def _take_off(
    m: Any, w: Any, f: Any, link: Any, p0: Any, p1: Any, p2: Any, f0: Any, f1: Any, f2: Any, t0: Any, t1: Any, t2: Any
) -> None:
    """Subtract a force at a point of the world and a torque from what link `link` (-1: the world) receives."""
    if link >= 0:
        _, d = link_frame(m, w, link)
        o0, o1, o2 = origin_of(m, w, m.link_body[link])
        c0, c1, c2 = cross(p0 - o0 - d[0], p1 - o1 - d[1], p2 - o2 - d[2], f0, f1, f2)
        f.link_force[link, 0] -= f0
        f.link_force[link, 1] -= f1
        f.link_force[link, 2] -= f2
        f.link_torque[link, 0] -= c0 + t0
        f.link_torque[link, 1] -= c1 + t1
        f.link_torque[link, 2] -= c2 + t2


# ------------------------------------------------------------------ tendons


@njit
def _take_off_path(m: Any, w: Any, f: Any, e: Any, t: Any, force: Any) -> None:
    """Tendon t's pull, piece by piece; the pieces are those of equipment/tendons.py."""
    share = 1.0
    p = e.tendon_path[t]
    while p < e.tendon_path[t + 1] - 1:
        if e.path_kind[p] == PATH_PULLEY:
            share = 1.0 / e.path_value[p]
            p += 1
        elif e.path_kind[p + 1] == PATH_PULLEY:
            p += 1
        elif e.path_kind[p + 1] == PATH_SITE:
            _take_off_straight(m, w, f, e, e.path_index[p], e.path_index[p + 1], share * force)
            p += 1
        else:
            _take_off_wrapped(m, w, f, e, p, share * force)
            p += 2


@njit
def _take_off_straight(m: Any, w: Any, f: Any, e: Any, first: Any, second: Any, force: Any) -> None:
    """A straight piece between two sites."""
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    _take_off_piece(m, w, f, e.site_link[first], e.site_link[second], a0, a1, a2, b0, b1, b2, force)


@njit
def _take_off_wrapped(m: Any, w: Any, f: Any, e: Any, p: Any, force: Any) -> None:
    """The pieces to and from the geom at path element p + 1, or the one that passes it."""
    first, second = e.path_index[p], e.path_index[p + 2]
    on_geom, c0, c1, c2, d0, d1, d2 = way_around(m, w, e, p)
    if on_geom < 0.0:
        _take_off_straight(m, w, f, e, first, second, force)
        return
    link = e.wrap_link[e.path_index[p + 1]]
    a0, a1, a2 = site_point(m, w, e, first)
    b0, b1, b2 = site_point(m, w, e, second)
    _take_off_piece(m, w, f, e.site_link[first], link, a0, a1, a2, c0, c1, c2, force)
    _take_off_piece(m, w, f, link, e.site_link[second], d0, d1, d2, b0, b1, b2, force)


@njit
def _take_off_piece(
    m: Any,
    w: Any,
    f: Any,
    link_a: Any,
    link_b: Any,
    a0: Any,
    a1: Any,
    a2: Any,
    b0: Any,
    b1: Any,
    b2: Any,
    force: Any,
) -> None:
    """A straight piece from point a of one link to b of another; a positive force pushes them apart."""
    u0, u1, u2, _ = unit3(b0 - a0, b1 - a1, b2 - a2)
    if link_a != link_b:
        _take_off(m, w, f, link_a, a0, a1, a2, -force * u0, -force * u1, -force * u2, 0.0, 0.0, 0.0)
        _take_off(m, w, f, link_b, b0, b1, b2, force * u0, force * u1, force * u2, 0.0, 0.0, 0.0)


# ------------------------------------------------------------------ actuators


@njit
def _take_off_site(m: Any, w: Any, f: Any, e: Any, a: Any, force: Any) -> None:
    """A wrench at a site, and its reaction at a reference site.

    The two make a couple where the sites are apart and the force is not along their line. MuJoCo's transmission gives
    none of it to dofs that move both sites: so it is taken up where the sites' chains meet.
    """
    site, reference = e.actuator_target[a], e.actuator_reference[a]
    frame = wrench_frame(e, a)
    gear = e.actuator_gear[a]
    f0, f1, f2 = turned_gear(w, e, frame, force * gear[0], force * gear[1], force * gear[2])
    t0, t1, t2 = turned_gear(w, e, frame, force * gear[3], force * gear[4], force * gear[5])
    p0, p1, p2 = site_point(m, w, e, site)
    link = e.site_link[site]
    _take_off(m, w, f, link, p0, p1, p2, f0, f1, f2, t0, t1, t2)
    if reference < 0:
        return
    r0, r1, r2 = site_point(m, w, e, reference)
    base = e.site_link[reference]
    _take_off(m, w, f, base, r0, r1, r2, -f0, -f1, -f2, -t0, -t1, -t2)
    while link != base:
        if link > base:
            link = m.link_parent[link]
        else:
            base = m.link_parent[base]
    c0, c1, c2 = cross(r0 - p0, r1 - p1, r2 - p2, f0, f1, f2)
    _take_off(m, w, f, link, p0, p1, p2, 0.0, 0.0, 0.0, c0, c1, c2)


@njit
def _take_off_crank(m: Any, w: Any, f: Any, e: Any, a: Any, force: Any) -> None:
    """A slider-crank's push at the pin, and its reaction on the slider's link."""
    pin, slider = e.actuator_target[a], e.actuator_reference[a]
    _, f0, f1, f2, n0, n1, n2 = crank(m, w, e, a)
    f0, f1, f2 = force * f0, force * f1, force * f2
    p0, p1, p2 = site_point(m, w, e, pin)
    s0, s1, s2 = site_point(m, w, e, slider)
    _take_off(m, w, f, e.site_link[pin], p0, p1, p2, f0, f1, f2, 0.0, 0.0, 0.0)
    _take_off(m, w, f, e.site_link[slider], s0, s1, s2, -f0, -f1, -f2, force * n0, force * n1, force * n2)
