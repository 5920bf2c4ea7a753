"""Pairs of shapes of one robot that overlap in the file's pose and that no joint parts: they are left out of contact.

CAD exports let neighbouring parts run into each other, and often those of links two joints apart. Contacts between them
would push in every step against joints that cannot yield, and cost as much as all else. A pair is left out if

- a rule lets it touch, not a <pair> of the file, which names it;
- both shapes belong to links of one robot: links that joints other than free ones connect below the world
  (collision_pairs.robots_of_links), so that there is none with the world, its ground, objects or other robots;
- its contact is hard: a soft one (solref, solimp) yields as its file says;
- it overlaps by more than TOUCHING in the file's pose;
- it overlaps by more than TOUCHING in each of CONFIGURATIONS drawn configurations, too.

Drawn joints stand at their lower limit in a quarter of the configurations, at the upper one in another, and evenly
between them in the rest, in an order of their own (a Latin hypercube; McKay, Beckman, Conover 1979). So each joint is
seen at 128 places within its range, two joints in each of their four corners some 16 times, three in each of their
eight some 4 times. A hinge without limits turns once round, a slide as far as parts everything, followers follow;
what loops, swing and twist forbid is not looked at, which can only keep a pair.

Only pairs that overlap in the file's pose are looked at again, and each only until a configuration parts it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.jit import bind
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.collision_pairs import robots_of_links
from artsim.sim.geometry.contacts import (
    CONTACTS,
    DETECT,
    FOUND_CONTACTS,
    TOUCHING,
    ContactBundle,
    Overlap,
    Touching,
    make_contact_work,
    make_narrow,
)
from artsim.sim.quantities.robot import Robot

CONFIGURATIONS = 256
_AT_ONCE = 32  # configurations in which bodies are placed at once: most pairs are parted by the first
_SHOWN = 3  # pairs of links that a note names


def without_overlaps(robot: Robot, touching: Touching, notes: list[str]) -> Touching:
    """The shapes without the pairs that overlap wherever the joints are, with a note on them."""
    found = inseparable_pairs(robot, touching)
    if not len(found):
        return touching
    allowed = np.array(touching.contacts.allowed)
    _set_pairs(allowed, found, -1)
    allowed.setflags(write=False)
    link, names = touching.contacts.link, robot.labels.links
    counts = Counter((int(a), int(b)) for a, b in np.sort(link[found], axis=1))
    overlaps = tuple(Overlap(names[a], names[b], count) for (a, b), count in sorted(counts.items()))
    notes.append(told_of_overlaps(overlaps))
    return touching._replace(contacts=touching.contacts._replace(allowed=allowed), overlaps=overlaps)


def told_of_overlaps(overlaps: tuple[Overlap, ...]) -> str:
    """A sentence on the pairs that are left out."""
    count = sum(one.pairs for one in overlaps)
    shown = ", ".join(f"{one.link_a!r} in {one.link_b!r}" for one in overlaps[:_SHOWN])
    more = f" and {len(overlaps) - _SHOWN} more pairs of links" if len(overlaps) > _SHOWN else ""
    pairs = "1 pair of shapes overlaps" if count == 1 else f"{count} pairs of shapes overlap"
    left_out, them = ("is", "it") if count == 1 else ("are", "them")
    return (
        f"{pairs} in the file's pose and wherever the joints are, and {left_out} left out of contact: {shown}{more} "
        f"(--keep-overlaps keeps {them})"
    )


def inseparable_pairs(robot: Robot, touching: Touching) -> Array:
    """The pairs of shapes (p, 2), the smaller number first, that overlap wherever the joints are."""
    contacts = touching.contacts
    group = np.array([*robots_of_links(robot.articulation, robot.compiled), -1], np.int64)[contacts.link]
    own: Array = (contacts.allowed == 0) & (group[:, None] == group) & (group >= 0)
    if not own.any():
        return np.zeros((0, 2), np.int64)
    pairs = Probe(touching, np.where(own, 0, -1)).overlapping(*body_poses(robot.model, robot.reference), hard=True)
    if not len(pairs):
        return pairs
    left = np.full_like(contacts.allowed, -1)
    _set_pairs(left, pairs, 0)
    probe = Probe(touching, left)
    far = 3.0 * float(touching.shapes.reach[np.unique(pairs)].sum())  # parts whatever overlaps at 0
    table = configurations(robot.model, robot.reference, far)
    for start in range(0, len(table), _AT_ONCE):
        for rotation, origin in zip(*body_poses(robot.model, table[start : start + _AT_ONCE]), strict=True):
            found = probe.overlapping(rotation, origin)
            if len(found) < len(pairs):
                _set_pairs(left, pairs, -1)  # the probe reads this table
                _set_pairs(left, found, 0)
                pairs = found
            if not len(pairs):
                return pairs
    return pairs


def _set_pairs(table: Array, pairs: Array, value: int) -> None:
    """Set the entries of pairs (p, 2) in a symmetric table."""
    table[pairs[:, 0], pairs[:, 1]] = table[pairs[:, 1], pairs[:, 0]] = value


# ------------------------------------------------------------------ configurations


def configurations(model: Model, reference: Real, far: float) -> Real:
    """The configurations (CONFIGURATIONS, nq) in which pairs must overlap; slides without limits move by up to `far`
    [m] either way. Free bodies stay where the reference (nq,) has them."""
    random = np.random.Generator(np.random.Philox(key=0))
    table = np.tile(reference, (CONFIGURATIONS, 1))
    for body in range(1, len(model.joint_type)):
        coord = int(model.body_coord[body])
        if model.joint_type[body] == BALL:
            table[:, coord : coord + 4] = _turns(model, body, random)
        elif model.joint_type[body] != FREE:
            for k in range(int(model.body_dof[body]), int(model.body_dof[body + 1])):
                table[:, model.dof_coord[k]] = _along(model, k, far, _shares(random))
    _let_follow(model, table)
    return table


def _shares(random: np.random.Generator) -> Real:
    """Shares (CONFIGURATIONS,), one in each of as many equal parts of 0 to 1, in any order after the least and the
    largest: a telescope parts the links at its ends only if all of its stages are out."""
    order = np.argsort(random.random(CONFIGURATIONS), kind="stable")
    for row, part in enumerate((0, CONFIGURATIONS - 1)):
        order[order == part], order[row] = order[row], part
    return (order + 0.5) / CONFIGURATIONS


def _to_the_ends(share: Real) -> Real:
    """Shares of a range: 0 for a quarter of those given, 1 for another, evenly between for the rest."""
    return np.clip(2.0 * share - 0.5, 0.0, 1.0)


def _along(model: Model, k: int, far: float, share: Real) -> Real:
    """The values of the coordinate of dof k."""
    lower, upper = float(model.lower[k]), float(model.upper[k])
    whole = 2.0 * far if model.dof_linear[k] else 2.0 * np.pi
    if np.isinf(lower) and np.isinf(upper):
        return whole * (share - 0.5)
    lower, upper = (upper - whole if np.isinf(lower) else lower), (lower + whole if np.isinf(upper) else upper)
    return lower + (upper - lower) * _to_the_ends(share)


def _turns(model: Model, body: int, random: np.random.Generator) -> Real:
    """Quaternions (CONFIGURATIONS, 4) of a ball joint."""
    axis = random.random((CONFIGURATIONS, 3)) - 0.5
    axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-9)
    half = 0.5 * min(float(model.upper[model.body_dof[body]]), np.pi) * _to_the_ends(_shares(random))
    return np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * axis], axis=1)


def _let_follow(model: Model, table: Real) -> None:
    """Set followers in configurations (N, nq) from their leaders, of couplings that are rows those of hard ones."""
    hard = np.flatnonzero(model.row_frequency < 0)
    rows = [*zip(model.row_follower[hard], model.row_leader[hard], model.row_polynomial[hard], strict=True)]
    eliminated = [*zip(model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True)]
    for follower, leader, p in (*eliminated, *rows * len(rows)):  # rows are not sorted leaders first
        at = table[:, model.dof_coord[leader]] if leader >= 0 else 0.0
        table[:, model.dof_coord[follower]] = np.polynomial.polynomial.polyval(at, p)


# ------------------------------------------------------------------ overlaps


class Probe:
    """Detects overlaps of pairs of shapes, given by a table as Contacts.allowed, which may change afterwards."""

    def __init__(self, touching: Touching, allowed: Array) -> None:
        contacts = touching.contacts
        used = np.any(allowed >= 0, axis=1)
        none = np.zeros(len(contacts.body))
        self._touching = touching._replace(
            contacts=contacts._replace(
                allowed=allowed,
                plane=contacts.plane[used[contacts.plane]],
                solid=contacts.solid[used[contacts.solid]],
                margin=none,
                gap=none,
                reach=none,
            )
        )
        self._connect(64 + 4 * int(np.count_nonzero(used)))

    def _connect(self, room: int) -> None:
        self._work = make_contact_work(self._touching, room)
        bundle = ContactBundle(self._touching.contacts, self._work)
        self._detect = bind(DETECT, 1, bundle, make_narrow(self._touching), None)

    def overlapping(self, rotation: Real, origin: Real, *, hard: bool = False) -> Array:
        """The pairs (p, 2) that overlap by more than TOUCHING where bodies have these poses; `hard`: those whose
        contact is hard."""
        count = self._detected(rotation, origin)
        deep = self._work.distance[:count] < -TOUCHING
        if hard:
            deep &= self._work.soft[:count] == 0
        return np.unique(np.sort(self._work.shape[:count][deep], axis=1), axis=0)

    def distances(self, rotation: Real, origin: Real) -> tuple[Array, Real]:
        """The shapes (c, 2) of every contact where bodies have these poses, and their distance (c,) [m], below 0 where
        they overlap."""
        count = self._detected(rotation, origin)
        return self._work.shape[:count].copy(), self._work.distance[:count].copy()

    def _detected(self, rotation: Real, origin: Real) -> int:
        """The number of contacts where bodies have these poses, all of them in the scratch."""
        contacts = self._touching.contacts
        turn = rotation[contacts.body]
        position = origin[contacts.body] + np.einsum("nij,nj->ni", turn, contacts.place)
        self._detect_at(position, turn @ contacts.turn)
        while self._work.number[FOUND_CONTACTS] > self._work.number[CONTACTS]:
            self._connect(2 * int(self._work.number[FOUND_CONTACTS]))
            self._detect_at(position, turn @ contacts.turn)
        return int(self._work.number[CONTACTS])

    def _detect_at(self, position: Real, rotation: Real) -> None:
        self._work.position[:], self._work.rotation[:] = position, rotation
        self._detect()
