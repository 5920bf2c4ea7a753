"""Probe: the overlaps of a robot's shapes at given poses of its bodies, by the detection of contacts alone."""

from __future__ import annotations

import numpy as np

from artsim.sim.foundation.jit import bind
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import (
    CONTACTS,
    DETECT,
    FOUND_CONTACTS,
    TOUCHING,
    ContactBundle,
    Touching,
    make_contact_work,
    make_narrow,
)


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
        count = self._count(rotation, origin)
        work = self._work
        deep = work.distance[:count] < -TOUCHING
        if hard:
            deep &= work.soft[:count] == 0
        return np.unique(np.sort(work.shape[:count][deep], axis=1), axis=0)

    def depth(self, rotation: Real, origin: Real) -> float:
        """The depth of the deepest overlap where bodies have these poses [m]; 0: there is none."""
        count = self._count(rotation, origin)
        return max(0.0, -float(self._work.distance[:count].min(initial=0.0)))

    def distances(self, rotation: Real, origin: Real) -> tuple[Array, Real]:
        """The shapes (c, 2) of every contact where bodies have these poses, and their distance (c,) [m], below 0 where
        they overlap."""
        count = self._count(rotation, origin)
        return self._work.shape[:count].copy(), self._work.distance[:count].copy()

    def _count(self, rotation: Real, origin: Real) -> int:
        """Detect the contacts where bodies have these poses; returns their number."""
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
