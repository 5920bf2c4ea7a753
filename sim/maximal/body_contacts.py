"""Contacts of bodies in the world: shapes placed and handed to the one detection, contacts as lines and rows.

The places where shapes touch are geometry and have one narrow phase (sim/contact/detection.py). The laws of contacts
are written here anew, for velocities of bodies in world axes, so that they can be checked against the step in joint
coordinates: the gap must not close by the end of the step, friction stays within its cone, soft contacts (MJCF's solref
and solimp) yield as in MuJoCo.

A contact has six lines: the velocity of the second surface relative to the first along normal and tangents at the
contact point, then the relative angular velocity about them. The second derivative of a gap is left to the next step,
which sees where the surfaces are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from artsim.sim.articulation.state import FEATURE, SHAPE_A, SHAPE_B
from artsim.sim.foundation.jit import bind
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import (
    CONTACTS,
    DETECT,
    DIRECTIONS,
    FOUND_CONTACTS,
    ContactBundle,
    ContactWork,
    Touching,
    make_narrow,
)
from artsim.sim.maximal.bodies import BodyStates, Masses, cross_matrix_product, origins
from artsim.sim.maximal.lines import CONTACT, BodyRows, Lines, make_summed_rows
from artsim.sim.maximal.scheme import Scheme

_RECOVERY = 0.1  # [s] in which an initial penetration is removed, as in constraints/row.py
_ACCELERATION = 20.0  # [m/s²] that a body may acquire in a step without warning, as in contact/detection.py
_GROWTH = 1.5  # of a margin that was too small
_YIELD = 1e-11  # share of the mobility that regularises a hard contact: four corners of a box are one too many
_ACROSS, _ACROSS_INSIDE = 1e-7, 1e-3  # sine of the angle to the surface up to which a motion does not part bodies
_LEAST, _MOST = 1e-4, 0.9999  # MuJoCo's bounds of an impedance
_SLOW = 1e-3  # [m/s] speed of removing penetration that does not matter
_SLOWEST_BOUNCE, _LASTING, _ROUNDING = 0.05, 0.1, 1e-3  # as in contact/contact_law.py


class ContactFinder:
    """Detects the contacts of bodies into the arrays of a ContactBundle."""

    def __init__(self, touching: Touching, contact: ContactBundle) -> None:
        self._contact = contact
        self._detect = bind(DETECT, 1, contact, make_narrow(touching), None)

    def find(self, masses: Masses, state: BodyStates, h: float) -> bool:
        """Detect the contacts of this configuration; False when they exceed the room."""
        m, d = self._contact.model, self._contact.data
        rotation = state.rotation
        d.position[:] = origins(masses, state, rotation)[m.body] + np.einsum("nij,nj->ni", rotation[m.body], m.place)
        d.rotation[:] = rotation[m.body] @ m.turn
        d.margin[:] = np.where(m.body > 0, h * self._speeds(state) + h * h * _ACCELERATION, 0.0)
        return self._detected()

    def outrun(self, state: BodyStates, after: BodyStates, h: float) -> bool:
        """True if velocities at the end of the step move a shape beyond its margin; contacts are then detected again.

        The places of shapes are still those of `state`.
        """
        m, d = self._contact.model, self._contact.data
        way = h * self._speeds(replace(state, velocity=after.velocity))
        beyond = (m.body > 0) & (way > d.margin)
        d.margin[beyond] = _GROWTH * way[beyond]
        return bool(beyond.any()) and self._detected()

    def _speeds(self, state: BodyStates) -> Real:
        """A bound of the speeds of the shapes' points (n,) [m/s]."""
        m, d = self._contact.model, self._contact.data
        velocity = state.velocity[m.body]
        place = velocity[:, :3] + cross_matrix_product(velocity[:, 3:], d.position - state.centre[m.body])
        found: Real = np.linalg.norm(place, axis=1) + np.linalg.norm(velocity[:, 3:], axis=1) * m.swing
        return found

    def _detected(self) -> bool:
        self._detect()
        number = self._contact.data.number
        return bool(number[FOUND_CONTACTS] <= number[CONTACTS])


def contact_lines(contact: ContactBundle, state: BodyStates) -> Lines:
    """The six lines of every contact; the second surface's body comes first."""
    m, d = contact.model, contact.data
    count = int(d.number[CONTACTS])
    shape = d.shape[:count]
    body = m.body[shape[:, ::-1]]
    frame = np.repeat(d.frame[:count], 2, axis=0).reshape(count, 2, 3, 3)
    value = np.zeros((count, 6, 12))
    for end, sign in ((0, 1.0), (1, -1.0)):
        arm = d.point[:count] - state.centre[body[:, end]]
        part = value[:, :, 6 * end : 6 * end + 6]
        part[:, :3, :3] = sign * frame[:, 0]
        part[:, :3, 3:] = sign * np.cross(arm[:, None, :], frame[:, 0])
        part[:, 3:, 3:] = sign * frame[:, 0]
    bodies = np.repeat(body, DIRECTIONS, axis=0)
    lines = value.reshape(-1, 12)
    rate = np.einsum("nk,nk->n", lines, np.hstack([state.velocity[bodies[:, 0]], state.velocity[bodies[:, 1]]]))
    zero = np.zeros(len(lines))
    turning = np.tile(np.repeat([False, True], 3), count)
    links = np.repeat(m.link[shape[:, ::-1]], DIRECTIONS, axis=0)
    return Lines(bodies, lines, rate, zero, zero, turning, links)


class ContactRows:
    """The rows of a step's contacts, and which row belongs to which contact and direction."""

    def __init__(
        self,
        scheme: Scheme,
        contact: ContactBundle,
        lines: Lines,
        first: int,
        twists: Real,
        still: Real,
        gravity: Real,
        left: frozenset[int] = frozenset(),
    ) -> None:
        """lines: the contacts', from number `first` on of all lines; twists (nb, 6, nu): velocities of the bodies per
        independent dof; still (nb, 6): their accelerations at zero joint acceleration; gravity (3,); left: contacts
        whose penetration is left as it is."""
        self._scheme, self._contact, self._lines, self._first = scheme, contact, lines, first
        self._gravity, self._left = gravity, left
        self._still = _along(lines, still[..., None])[:, 0]
        self._parting = _along(lines, twists)
        self._whose: list[tuple[int, int, float]] = []  # of each row: contact, and of edges direction and friction
        self.rows = self._make()

    def _make(self) -> BodyRows:
        parts: list[Any] = []
        d = self._contact.data
        for n in range(int(d.number[CONTACTS])):
            d.pull[n] = d.adhesion[n]
            if d.dimension[n] == 0 and d.pull[n] > 0.0:
                d.dimension[n] = 1
            if d.dimension[n] > 0 and self._opens(n):
                pyramid = self._contact.model.pyramidal[0] == 1 and d.dimension[n] > 1
                parts += self._edges(n, len(parts)) if pyramid else self._cone(n, len(parts))
        line = np.full((len(parts), 2), -1)
        factor = np.zeros((len(parts), 2))
        for row, (part, _) in enumerate(parts):
            for k, (direction, share) in enumerate(part):
                line[row, k], factor[row, k] = direction, share
        columns = np.array([values for _, values in parts]).reshape(-1, 8).T
        b, give, lower, upper, yielding, group, cone, slope = columns
        bounds = {"lower": lower, "upper": upper, "cone": cone.astype(np.int64), "slope": slope}
        return make_summed_rows(CONTACT, line, factor, b, give=give, yielding=yielding, group=group, **bounds)

    def _opens(self, n: int) -> bool:
        """True if any dof parts the bodies of contact n, and not only along the surface, where the rest is rounding."""
        d = self._contact.data
        along = self._parting[DIRECTIONS * n : DIRECTIONS * n + 3]
        inside = d.soft[n] == 0 and d.gap[n] < -_SLOW * _RECOVERY
        least = (_ACROSS_INSIDE if inside else _ACROSS) * np.linalg.norm(along, axis=0)
        return bool(np.any(np.abs(along[0]) > np.maximum(least, 1e-11)))

    # ------------------------------------------------------------------ cones

    def _cone(self, n: int, row: int) -> list[Any]:
        """Normal and friction directions; tangents are scaled by their frictions, which makes the cone circular."""
        d = self._contact.data
        size = int(d.dimension[n])
        slope = float(next((mu for mu in d.friction[n, : size - 1] if mu > 0.0), 0.0))
        found = []
        for k in range(size):
            share = 1.0 if k < 2 or slope == 0.0 else float(d.friction[n, k - 1]) / slope
            if k == 1 and slope > 0.0:
                share = float(d.friction[n, 0]) / slope
            d.scale[n, k] = share
            b, give = self._normal(n, [(0, 1.0)]) if k == 0 else self._friction(n, k, share)
            lower = 0.0 if k == 0 else -np.inf
            cone = (size if size > 1 else 0) if k == 0 else -1
            values = (b, give, lower, np.inf, _YIELD, row, cone, slope if k == 0 else 0.0)
            found.append(([(self._line(n, k), share)], values))
            self._whose.append((n, k, share))
        return found

    def _friction(self, n: int, k: int, share: float) -> tuple[float, float]:
        """b and compliance of friction direction k, which stops the slip by the end of the step."""
        d = self._contact.data
        belt = share * float(d.belt[n, k - 1]) if k < 4 else 0.0
        rate = share * self._rate(n, k)
        if d.soft[n] == 0:
            return -rate - belt, 0.0
        b, give = self._soft(n, None, rate, share * float(self._still[DIRECTIONS * n + k]), belt)
        return b, float(self._contact.model.slack[0]) * give

    # ------------------------------------------------------------------ pyramids

    def _edges(self, n: int, row: int) -> list[Any]:
        """Two rows for each friction direction, along n ± μ t, which can only push."""
        d = self._contact.data
        found = []
        for k in range(1, int(d.dimension[n])):
            for sign in (1.0, -1.0):
                mu = sign * float(d.friction[n, k - 1])
                b, give = self._normal(n, [(0, 1.0), (k, mu)])
                if d.soft[n] == 1:  # friction as soft as the cone's (MuJoCo, engine_core_constraint.c)
                    square = float(d.friction[n, 0]) ** 2
                    give *= 2.0 * square * float(self._contact.model.slack[0]) * (1.0 + square)
                values = (b, give, 0.0, np.inf, _YIELD, row, 0, 0.0)
                found.append(([(self._line(n, 0), 1.0), (self._line(n, k), mu)], values))
                self._whose.append((n, k, mu))
        return found

    # ------------------------------------------------------------------ the gap

    def _normal(self, n: int, along: list[tuple[int, float]]) -> tuple[float, float]:
        """b and compliance of a row that keeps the gap open, of the normal or of an edge, a sum of two directions."""
        d, h = self._contact.data, self._scheme.h
        belt = sum(share * float(d.belt[n, k - 1]) for k, share in along if 0 < k < 4)
        rate = sum(share * self._rate(n, k) for k, share in along)
        gap = float(d.gap[n])
        if d.soft[n] == 1:
            still = sum(share * float(self._still[DIRECTIONS * n + k]) for k, share in along)
            return self._soft(n, gap, rate, still, belt)
        back = 0.0 if n in self._left else gap / max(h, _RECOVERY)
        wanted = (gap / h if gap >= 0.0 else back) + rate + belt
        b = -wanted / self._scheme.ahead
        return max(b, self._rebound(n, rate + belt) - rate - belt), 0.0

    def _rebound(self, n: int, rate: float) -> float:
        """The speed at which a contact that closes at -rate opens after its impact in this step; -∞: no impact.

        Newton's law with e holds at the surface; the body keeps the height that it has where the step ends.
        """
        d, h = self._contact.data, self._scheme.h
        e, gap = float(d.restitution[n]), max(float(d.gap[n]), 0.0)
        slowest = _SLOWEST_BOUNCE * max(min(1.0, (1.0 - e) / _LASTING), _ROUNDING)
        if e <= 0.0 or d.soft[n] == 1 or -rate < slowest or gap + h * rate > 0.0:
            return -math.inf
        fall = max(-float(d.frame[n, 0] @ self._gravity), 0.0)
        return math.sqrt(max(e * e * rate * rate - 2.0 * (1.0 - e * e) * fall * gap, 0.0))

    def _soft(self, n: int, gap: float | None, rate: float, still: float, belt: float) -> tuple[float, float]:
        """b and compliance of a soft row; gap None: of friction. R f = -C̈ - B Ċ - d K C (MuJoCo, Computation chapter,
        "Impedance", "Reference"), with C and Ċ ahead of the step's start by g of it (constraints/impedance.py).

        C̈ is the part due to joint accelerations, as in MuJoCo: `still`, the part without any, does not count.
        """
        m, d = self._contact.model, self._contact.data
        h = self._scheme.h
        hardness = impedance(d.impedance[n], max(0.0, -float(d.gap[n])))
        most = float(d.impedance[n, 1])
        K, B = _reference(d.reference[n], most, h)
        z, y = h * B, h * h * K * hardness
        g = 1.0 - 1.0 / max(1.0, 0.6 * z + y)
        S = 1.0 + g * (z + y)
        if gap is None:
            bias = (min(h * _reference(d.friction_reference[n], most, h)[1] / S, 5.0 / 3.0) - 1.0) * (rate + belt)
        else:
            bias = (y / h * gap + (z - g * z - 1.0) * (rate + belt)) / S
        mobility = float(m.mobility[d.shape[n, 0]] + m.mobility[d.shape[n, 1]])
        return -bias - belt - rate + h * still, mobility * (1.0 - hardness) / (hardness * S)

    def _rate(self, n: int, k: int) -> float:
        return float(self._lines.rate[DIRECTIONS * n + k])

    def _line(self, n: int, k: int) -> int:
        return self._first + DIRECTIONS * n + k

    # ------------------------------------------------------------------ results

    def stuck(self, solved: bool, line_force: Real, before: Real, after: Real) -> frozenset[int]:
        """Contacts whose penetration should be left as it is, besides those that are: those that no joint parts or
        only at an excessive speed, so that removing it does work (contact/rebounds.py).

        solved: whether the rows agreed and no dof became too fast; line_force (lines,) of contacts; before, after
        (lines,): velocities along them.
        """
        d = self._contact.data
        power = np.sum((line_force * (before + after)).reshape(-1, DIRECTIONS), axis=1)
        found = set(self._left)
        for n in {n for n, _, _ in self._whose}:
            removed = d.soft[n] == 0 and d.restitution[n] == 0.0 and d.gap[n] < -_SLOW * _RECOVERY
            if removed and not solved and power[n] >= 0.0:
                found.add(n)
        return frozenset(found)

    def pulls(self) -> Real:
        """Forces of adhesion along the contacts' lines (lines,) [N]."""
        d = self._contact.data
        found = np.zeros(len(self._lines.rate))
        for n in {n for n, _, _ in self._whose}:
            found[DIRECTIONS * n] = -d.pull[n]
        return found


def name_contacts(memory: Array, work: ContactWork) -> None:
    """Store in memory, laid out as State.contact, which contacts there are."""
    count = int(work.number[CONTACTS])
    memory[:] = 0.0
    memory[:count, SHAPE_A], memory[:count, SHAPE_B] = work.shape[:count].T
    memory[:count, FEATURE] = work.feature[:count]


def impedance(solimp: Real, size: float) -> float:
    """MuJoCo's impedance d at an error of this size, by the five numbers of a solimp."""
    start, end, middle = (min(max(float(x), _LEAST), _MOST) for x in (solimp[0], solimp[1], solimp[3]))
    width, exponent = float(solimp[2]), max(float(solimp[4]), 1.0)
    if width <= 1e-15:
        return 0.5 * (start + end)
    y = min(size / width, 1.0)
    if y <= middle:
        y = middle * (y / middle) ** exponent
    else:
        y = 1.0 - (1.0 - middle) * ((1.0 - y) / (1.0 - middle)) ** exponent
    return float(start + y * (end - start))


def _reference(solref: Real, most: float, h: float) -> tuple[float, float]:
    """K [1/s²] and B [1/s] of a solref; most: of solimp. Time constants are at least two steps."""
    first, second = (float(x) for x in solref)
    if first > 0.0:
        first = max(first, 2.0 * h)
        return 1.0 / (most * first * second) ** 2, 2.0 / (most * first)
    return -first / most**2, -second / most


def _along(lines: Lines, motion: Real) -> Real:
    """Velocities or accelerations of bodies (nb, 6, columns) along lines: (lines, columns)."""
    pair = np.concatenate([motion[lines.body[:, 0]], motion[lines.body[:, 1]]], axis=1)
    found: Real = np.einsum("nk,nkc->nc", lines.value, pair)
    return found
