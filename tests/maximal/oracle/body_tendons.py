"""Tendons between bodies: the pieces of their paths as lines; springs, dampers, friction, limits, equalities as rows.

A spatial tendon pulls at the points of its path, body by body: its length and the rate of it are worked out from the
poses and velocities of bodies in the world, and no moment arm on a joint is ever formed. A fixed tendon is, by its
definition, a sum of joint coordinates, and uses the joints' lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import LONGEST, PATH_JOINT, PATH_PULLEY, SHORTEST, Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, origins
from artsim.sim.maximal.joints import follow_all
from artsim.sim.maximal.lines import BodyRows, Lines, make_summed_rows
from artsim.sim.maximal.scheme import Scheme
from tests.maximal.oracle.sums import TENDON, SummedLines, summed_lines

_RECOVERY = 0.1  # [s] in which an initial violation of a limit is removed, as in constraints/row.py
_CLOSING = 0.5  # [m/s or rad/s] at which an equality that starts open is closed, as in constraints/row.py
_YIELD = 1e-12


class Sites(NamedTuple):
    """Points of sites in the world."""

    point: Real  # (ns, 3) [m]
    arm: Real  # (ns, 3) from the centre of mass of the site's body [m]
    velocity: Real  # (ns, 3) [m/s]
    bend: Real  # (ns, 3) acceleration at zero acceleration of the body, ω × (ω × arm) [m/s²]
    rotation: Real  # (ns, 3, 3) of their axes


def place_sites(e: Equipment, masses: Masses, state: BodyStates) -> Sites:
    """Place the sites of a robot."""
    rotation = state.rotation
    body = e.site_body
    point = origins(masses, state, rotation)[body] + np.einsum("sij,sj->si", rotation[body], e.site_position)
    arm = point - state.centre[body]
    spin = state.velocity[body, 3:]
    turning = np.cross(spin, arm)
    axes = rotation[body] @ e.site_rotation
    return Sites(point, arm, state.velocity[body, :3] + turning, np.cross(spin, turning), axes)


def tendon_paths_of_bodies(
    e: Equipment, model: Model, sites: Sites, qpos: Real, dof_line: Array, first: int
) -> SummedLines:
    """The lines of spatial tendons, from number `first` on, and every tendon as a sum of lines."""
    pieces: list[tuple[int, int]] = []
    sums: list[list[tuple[int, float]]] = []
    length = np.zeros(len(e.tendon_path) - 1)
    for t in range(len(length)):
        own: list[tuple[int, float]] = []
        start, end = int(e.tendon_path[t]), int(e.tendon_path[t + 1])
        if e.path_kind[start] == PATH_JOINT:
            dofs = e.path_index[start:end]
            own = list(zip(dof_line[dofs].tolist(), e.path_value[start:end].tolist(), strict=True))
            length[t] = float(e.path_value[start:end] @ qpos[model.dof_coord[dofs]])
        share = 1.0
        for p in range(start, end - 1):
            if e.path_kind[p] == PATH_PULLEY:
                share = 1.0 / float(e.path_value[p])
            elif e.path_kind[p] != PATH_JOINT and e.path_kind[p + 1] != PATH_PULLEY:
                a, b = int(e.path_index[p]), int(e.path_index[p + 1])
                own.append((first + len(pieces), share))
                pieces.append((a, b))
                length[t] += share * float(np.linalg.norm(sites.point[b] - sites.point[a]))
        sums.append(own)
    return summed_lines(piece_lines(e, sites, np.array(pieces, np.int64).reshape(-1, 2)), sums, length)


def piece_lines(e: Equipment, sites: Sites, ends: Array) -> Lines:
    """Lines along which pairs of sites (n, 2) part: rates of their distances l, with
    l̈ = û · Δa + (|Δv|² - l̇²) / l."""
    a, b = ends.T
    apart = sites.point[b] - sites.point[a]
    distance = np.linalg.norm(apart, axis=1)
    along = apart / np.maximum(distance, 1e-15)[:, None]
    along[distance < 1e-15] = [1.0, 0.0, 0.0]
    ways = [np.hstack([along, np.cross(sites.arm[end], along)]) for end in (b, a)]
    value = np.hstack([ways[0], -ways[1]])
    moving = sites.velocity[b] - sites.velocity[a]
    rate = np.einsum("nk,nk->n", along, moving)
    bend = np.einsum("nk,nk->n", along, sites.bend[b] - sites.bend[a])
    drift = bend + (np.einsum("nk,nk->n", moving, moving) - rate**2) / np.maximum(distance, 1e-15)
    body, link = np.column_stack([e.site_body[b], e.site_body[a]]), np.column_stack([e.site_link[b], e.site_link[a]])
    return Lines(body, value, rate, distance, drift, np.zeros(len(rate), bool), link)


# ------------------------------------------------------------------ laws


class Tendons(NamedTuple):
    """The tendons of a step: sums of lines, lengths and their rates; reference lengths."""

    line: Array  # (nt, most)
    factor: Real  # (nt, most)
    length: Real  # (nt,)
    rate: Real  # (nt,)
    drift: Real  # (nt,)
    rest: Real  # (nt, 2) between which the spring is slack
    length0: Real  # (nt,) in the pose of the file


def spring_forces(e: Equipment, tendons: Tendons) -> tuple[Real, Real, Real]:
    """Forces of springs and dampers at the start of a step, positive: lengthening, and their slopes -K and -D (nt,).

    -(a x + b x² + c x³) beyond the rest lengths, -(a v + b |v| v + c v³): MuJoCo's XML reference, "spatial".
    """
    over = np.maximum(tendons.length - tendons.rest[:, LONGEST], 0.0)
    x = over + np.minimum(tendons.length - tendons.rest[:, SHORTEST], 0.0)
    v, speed = tendons.rate, np.abs(tendons.rate)
    a, b = e.tendon_stiffness.T, e.tendon_damping.T
    force = -x * (a[0] + x * (a[1] + x * a[2])) - v * (b[0] + speed * (b[1] + speed * b[2]))
    stiffness = np.where(x != 0.0, a[0] + x * (2.0 * a[1] + 3.0 * x * a[2]), 0.0)
    damping = b[0] + speed * (2.0 * b[1] + 3.0 * speed * b[2])
    return force, np.maximum(stiffness, 0.0), np.maximum(damping, 0.0)


def spring_energy_of_tendons(e: Equipment, tendons: Tendons) -> float:
    """Potential energy of the tendons' springs [J]."""
    over = np.maximum(tendons.length - tendons.rest[:, LONGEST], 0.0)
    x = over + np.minimum(tendons.length - tendons.rest[:, SHORTEST], 0.0)
    a = e.tendon_stiffness.T
    return float(np.sum(x * x * (a[0] / 2.0 + x * (a[1] / 3.0 + x * a[2] / 4.0))))


def tendon_rows_of_bodies(scheme: Scheme, e: Equipment, tendons: Tendons, tuning: Real) -> tuple[list[BodyRows], Real]:
    """The rows of all tendons, springs and dampers at the end of the step, friction, limits, equalities; and the force
    on each tendon per force of each row (rows, nt). tuning (nte, 2): α and β of the equalities."""
    parts = [_springs(scheme, e, tendons), _friction(scheme, e, tendons)]
    parts += _limits(scheme, e, tendons)
    parts.append(_equalities(scheme, e, tendons, tuning))
    return [rows for rows, _ in parts], np.concatenate([share for _, share in parts])


def _springs(scheme: Scheme, e: Equipment, tendons: Tendons) -> tuple[BodyRows, Real]:
    force, stiffness, damping = spring_forces(e, tendons)
    t = np.flatnonzero(stiffness + damping > 0.0)
    b, give = scheme.compliant(force[t], stiffness[t], damping[t], tendons.rate[t], tendons.drift[t])
    slack = (damping[t] == 0.0) & (tendons.rest[t, SHORTEST] < tendons.rest[t, LONGEST])  # a slack spring never pushes
    long = tendons.length[t] > tendons.rest[t, LONGEST]
    upper, lower = np.where(slack & long, 0.0, np.inf), np.where(slack & ~long, 0.0, -np.inf)
    return _rows(tendons, t, b, give=give, lower=lower, upper=upper)


def _friction(scheme: Scheme, e: Equipment, tendons: Tendons) -> tuple[BodyRows, Real]:
    t = np.flatnonzero(e.tendon_friction > 0.0)
    bound = scheme.h * e.tendon_friction[t]
    b = -tendons.rate[t] - scheme.h * tendons.drift[t]
    return _rows(tendons, t, b, lower=-bound, upper=bound, yielding=_YIELD)


def _limits(scheme: Scheme, e: Equipment, tendons: Tendons) -> list[tuple[BodyRows, Real]]:
    parts = []
    for sign, bound in ((1.0, e.tendon_lower), (-1.0, e.tendon_upper)):
        t = np.flatnonzero(np.abs(bound) < 1e308)
        gap = sign * (tendons.length[t] - bound[t])
        wanted = np.where(gap >= 0.0, gap / scheme.h, gap / max(scheme.h, _RECOVERY)) + sign * tendons.rate[t]
        b = -wanted / scheme.ahead
        parts.append(_rows(tendons, t, b, sign=sign, lower=0.0, yielding=_YIELD))
    return parts


def equality_errors(e: Equipment, tendons: Tendons) -> tuple[Real, Real]:
    """Errors C = L_a - L_a0 - p(L_b - L_b0) of tendon equalities (nte,), and the slopes p'."""
    a, b = e.tendon_row_follower, e.tendon_row_leader
    leads = b >= 0
    x = np.where(leads, tendons.length[b] - tendons.length0[b], 0.0) if len(a) else np.zeros(0)
    value, slope, _ = follow_all(e.tendon_row_polynomial, x)
    return tendons.length[a] - tendons.length0[a] - value, np.where(leads, slope, 0.0)


def _equalities(scheme: Scheme, e: Equipment, tendons: Tendons, tuning: Real) -> tuple[BodyRows, Real]:
    """Rows of hard equalities; an error too large for one step is removed at a bounded speed."""
    error, slope = equality_errors(e, tendons)
    a, b = e.tendon_row_follower, np.maximum(e.tendon_row_leader, 0)
    line = np.hstack([tendons.line[a], np.where(slope[:, None] != 0.0, tendons.line[b], -1)])
    factor = np.hstack([tendons.factor[a], -slope[:, None] * tendons.factor[b]])
    rate, drift = (v[a] - slope * v[b] for v in (tendons.rate, tendons.drift))
    now = scheme.by_and_by(error, np.abs(error), _CLOSING, tuning)
    share = np.zeros((len(a), len(tendons.length)))
    share[np.arange(len(a)), b] = -slope
    share[np.arange(len(a)), a] = 1.0
    hard = scheme.hard(now, rate, drift, tuning)
    return make_summed_rows(TENDON, line, factor, hard, error=error, yielding=_YIELD), share


def _rows(
    tendons: Tendons,
    t: Array,
    b: Real,
    *,
    sign: float = 1.0,
    give: Real | float = 0.0,
    lower: Real | float = -np.inf,
    upper: Real | float = np.inf,
    yielding: float = 0.0,
) -> tuple[BodyRows, Real]:
    more: dict[str, Any] = {"give": give, "lower": lower, "upper": upper, "yielding": yielding}
    share = sign * np.eye(len(tendons.length))[t]
    return make_summed_rows(TENDON, tendons.line[t], sign * tendons.factor[t], b, **more), share
