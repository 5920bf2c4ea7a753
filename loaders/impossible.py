"""Inertias that no body can have: accepted as rounding, compensated by a fixed link, refused or repaired."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from artsim.loaders.elements import Element, Reading, child, describe
from artsim.loaders.inertia import breaks_triangle, is_negative, nearest_possible, principal_moments
from artsim.sim.articulation.description import Inertial, Joint, Link

ROUNDING = 1e-12  # share of the largest moment in the model that counts as zero
Moments = tuple[float, float, float]


def judge_inertias(
    reading: Reading, elements: Mapping[str, Element], links: tuple[Link, ...], joints: Sequence[Joint]
) -> tuple[Link, ...]:
    """The links with inertias repaired where requested, and a warning for every inertia that no body can have.

    `links` and `joints` are those of a tree, in order; `elements` are the links' elements by the links' names. Links
    that fixed joints hold together move as one body: a negative moment of a link is refused if their common inertia has
    one too, and is a warning otherwise. Raises ModelError.
    """
    moments = {link.name: principal_moments(link.inertial.inertia) for link in links if link.inertial is not None}
    rounding = ROUNDING * max((max(map(abs, three)) for three in moments.values()), default=0.0)
    odd = {name for name, three in moments.items() if is_negative(three, rounding) or breaks_triangle(three, rounding)}
    if not odd:
        return links
    places = {name: inertia_of(reading, elements[name]) for name in odd}
    if reading.balance_inertia:
        return tuple(with_nearest(reading, places[link.name], link) if link.name in odd else link for link in links)
    bodies = Bodies(links, joints)
    for link in links:
        if link.name in odd and is_negative(moments[link.name], rounding):
            judge_negative(reading, places[link.name], link, bodies)
        elif link.name in odd:
            note_triangle(reading, places[link.name], moments[link.name])
    return links


def inertia_of(reading: Reading, link: Element) -> Element:
    """The link's <inertia>, whose line messages give; the link itself without one."""
    inertial = child(Reading(reading.file), link, "inertial")  # warnings about these elements were given before
    found = None if inertial is None else child(Reading(reading.file), inertial, "inertia")
    return link if found is None else found


def shown(moments: Moments) -> str:
    """Principal moments for a message."""
    return ", ".join(f"{moment:.4g}" for moment in moments)


def note_triangle(reading: Reading, place: Element, moments: Moments) -> None:
    """Warn of an inertia that breaks the triangle inequality, as those of real robots do; it is used as written."""
    reading.note(
        place,
        f"{describe(place)}: principal moments {shown(moments)} break the triangle inequality A + B >= C; used as they "
        "are (--balance-inertia puts the nearest possible ones in their place)",
        guess=True,
    )


def judge_negative(reading: Reading, place: Element, link: Link, bodies: Bodies) -> None:
    """Refuse a negative moment if the whole body has one, too; warn if other links of the body compensate it."""
    assert link.inertial is not None
    what = f"{describe(place)} has principal moments {shown(principal_moments(link.inertial.inertia))}"
    others, together = bodies.around(link.name)
    if is_negative(together):
        whole = f", and {shown(together)} with what is fixed to it" if others else ""
        reading.refuse(
            place,
            f"{what}{whole}: none may be negative (--balance-inertia puts the nearest possible ones in their place)",
        )
    names = ", ".join(map(repr, others[:3])) + (", …" if len(others) > 3 else "")
    reading.note(place, f"{what}, which no body has; together with {names}, fixed to it, one may", guess=True)


def with_nearest(reading: Reading, place: Element, link: Link) -> Link:
    """The link with the nearest inertia that a body can have."""
    assert link.inertial is not None
    return replace(link, inertial=repaired(reading, place, describe(place), link.inertial))


def repaired(reading: Reading, place: Element, what: str, inertial: Inertial) -> Inertial:
    """The inertial with the nearest inertia that a body can have; `what` is its name in the warning."""
    before = principal_moments(inertial.inertia)
    inertia, distance = nearest_possible(inertial.inertia)
    share = distance / math.hypot(*before)
    reading.note(
        place,
        f"{what}: principal moments {shown(before)} replaced by the nearest possible ones, "
        f"{shown(principal_moments(inertia))}: {distance:.3g} kg m², {share:.2g} of the whole, "
        "away (Frobenius norm; --balance-inertia)",
    )
    return replace(inertial, inertia=inertia)


class Bodies:
    """The groups of links that fixed joints hold together, and the inertia of each group."""

    def __init__(self, links: Sequence[Link], joints: Sequence[Joint]) -> None:
        names = {link.name for link in links}  # the world need not be among them
        self.above = {joint.child: joint for joint in joints if joint.kind == "fixed" and joint.parent in names}
        self.first: dict[str, str] = {}  # the topmost link of each link's body
        self.members: dict[str, list[Link]] = {}  # by the topmost link, parents first
        self.moments: dict[str, Moments] = {}
        for link in links:
            joint = self.above.get(link.name)
            first = link.name if joint is None else self.first[joint.parent]
            self.first[link.name] = first
            self.members.setdefault(first, []).append(link)

    def around(self, name: str) -> tuple[list[str], Moments]:
        """The other massive links of a link's body, and the principal moments [kg m²] of the whole body."""
        from artsim.loaders.lumped import lumped_moments  # numpy

        first = self.first[name]
        body = self.members[first]
        if first not in self.moments:
            self.moments[first] = lumped_moments(body, self.above)
        return [link.name for link in body if link.inertial is not None and link.name != name], self.moments[first]
