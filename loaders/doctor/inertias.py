"""Rules of the doctor on masses and inertias: do they fit the shapes, and the neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from artsim.loaders.density import Solid
from artsim.loaders.doctor.finding import Finding
from artsim.loaders.doctor.forms import Body, Form, distance_to_hull, solid_of
from artsim.sim.articulation.description import Inertial, Link, Source
from artsim.sim.foundation.rotations import Real, rotation_matrix, symmetric

LIGHTEST, HEAVIEST = 10.0, 30_000.0  # [kg/m³]: foam, osmium
LEAST_MASS = 1e-3  # [kg] below which nothing about a mass is told
OUTSIDE = 0.1  # of a body's diagonal: distance of the centre of mass from the hull that is told
FITS, DIFFERS = 0.25, 0.6  # relative differences of inertias that fit, or do not
LONG = 2.0  # ratio of moments above which axes can be told apart
FAR_BEYOND = 2.0  # times the largest inertia that matter within the shapes has
TINY = 1e-3  # of the inertia of the shapes
UNEQUAL = 1e4  # ratio of masses of neighbours
UNITS = {1e9: "g mm²", 1e7: "g cm²", 1e6: "kg mm²", 1e4: "kg cm²", 1e3: "g m²"}
"""The units in which an inertia may be written by mistake, by the factor to kg m²."""


def inertia_findings(bodies: Sequence[Body]) -> Iterator[Finding]:
    """The findings on each body and its links, the first of a kind, and on neighbours."""
    for body in bodies:
        if not body.drawn or body.mass <= LEAST_MASS:
            continue
        found = [*density_findings(body)] or [*centre_findings(body)]
        yield from found
        if not found:  # with another mass or centre, the inertia is another, too
            for link in body.links:
                if link.inertial is not None and link.inertial.mass > LEAST_MASS:
                    yield from link_findings(link, link.inertial, body)
    yield from neighbour_findings(bodies)


def source_of(body: Body) -> Source:
    """The place of the heaviest inertial of a body."""
    given = [link.inertial for link in body.links if link.inertial is not None]
    return max(given, key=lambda inertial: inertial.mass).source if given else body.links[0].source


def name_of(body: Body) -> str:
    """The body in a sentence, by the link that has most of its mass."""
    more = len(body.links) - 1
    return f"link {heaviest(body)!r}" + (f" and {more} fixed to it" if more else "")


def heaviest(body: Body) -> str:
    """The name of the link that has most of a body's mass."""
    return max(body.links, key=lambda one: one.inertial.mass if one.inertial is not None else -1.0).name


# --- mass ------------------------------------------------------------------------------------------------------------


def density_findings(body: Body) -> Iterator[Finding]:
    """A density that no solid has: of the shapes for light bodies, of the box around them for heavy ones."""
    volumes = {
        role: [form.solid.mass for form in body.forms if form.geom.role == role and form.solid is not None]
        for role in ("visual", "collision")
    }
    volume = max(map(sum, volumes.values()))
    links = tuple(link.name for link in body.links)
    complete = all(form.solid is not None for form in body.forms)
    own = [link for link in body.links if link.inertial is not None and link.inertial.mass > 0]
    mend = ("--solid", f"{own[0].name}=1000") if len(own) == 1 else ()
    least = min(sum(found) for found in volumes.values() if found) if complete else 0.0
    if complete and body.mass < LIGHTEST * least:
        told = f"{name_of(body)}: {body.mass:.3g} kg in shapes of {least:.3g} m³ are {body.mass / least:.2g} kg/m³"
        yield Finding("inertia-density", source_of(body), told, mend, links)
        return
    if volume > 0 and body.mass <= HEAVIEST * volume:
        return
    volume = hull_volume(body.corners)
    if body.mass > HEAVIEST * volume > 0:
        told = f"{name_of(body)}: {body.mass:.3g} kg within {1e6 * volume:.3g} cm³ are {body.mass / volume:.2g} kg/m³"
        yield Finding("inertia-density", source_of(body), told, mend, links)


def hull_volume(points: Real) -> float:
    """The volume of the hull of points [m³]; 0 where they lie in a plane."""
    from artsim.collision.hull import volume
    from artsim.collision.mesh import convex_hull

    try:
        return volume(points, convex_hull(points))
    except ValueError:
        return 0.0


def centre_findings(body: Body) -> Iterator[Finding]:
    """A centre of mass outside of the hull of all shapes."""
    if any(within(form, body.centre) for form in body.forms):
        return
    corners = body.corners
    diagonal = float(np.linalg.norm(np.ptp(corners, axis=0)))
    away = distance_to_hull(corners, body.centre, OUTSIDE * diagonal)
    if away > 0:
        told = f"{name_of(body)}: the centre of mass is {away:.3g} m outside of its shapes, {diagonal:.3g} m long"
        yield Finding("inertia-centre", source_of(body), told, ("--inertia", heaviest(body)), (heaviest(body),))


def within(form: Form, point: Real) -> bool:
    """True if a point lies in the box around a primitive, or in the ball of the points of a mesh's box."""
    local, points = (point - form.points.mean(axis=0)) @ form.axes, (form.points - form.points.mean(axis=0)) @ form.axes
    reach = points.max(axis=0) + form.radius, points.min(axis=0) - form.radius
    return bool((local <= reach[0]).all() and (local >= reach[1]).all())


def neighbour_findings(bodies: Sequence[Body]) -> Iterator[Finding]:
    """A moving body that is far lighter than what a joint hangs on it."""
    by_link = {link.name: body for body in bodies for link in body.links}
    for body in bodies:
        above = None if body.joint is None else by_link.get(body.joint.parent)
        if above is None or above.joint is None or above.joint.kind == "free" or not above.mass > 0:
            continue
        moved = body.joint is not None and (above.joint.armature == 0.0)
        if moved and body.mass > UNEQUAL * above.mass:
            told = f"{name_of(body)}, {body.mass:.3g} kg, hangs on {name_of(above)}, {above.mass:.3g} kg"
            mend = ("--mass", f"{heaviest(above)}={body.mass / 100:.3g}")
            yield Finding("mass-neighbours", source_of(above), told, mend, (heaviest(above), heaviest(body)))


# --- inertia ---------------------------------------------------------------------------------------------------------


def link_findings(link: Link, inertial: Inertial, body: Body) -> Iterator[Finding]:
    """At most one finding on the inertia of a link: too large, too small, exchanged axes, a wrong frame."""
    R = rotation_matrix(inertial.pose.rotation)
    raw = symmetric(inertial.inertia)
    own, centre, mass = R @ raw @ R.T, np.array(inertial.pose.position), inertial.mass
    turn, origin = body.place[link.name]
    corners = (body.corners - origin) @ turn
    mend, called = ("--inertia", link.name), f"link {link.name!r}"
    largest = float(np.linalg.eigvalsh(own)[-1])
    reach = float(np.linalg.norm(corners - centre, axis=1).max())
    solid = solid_of([form.moved(turn.T, -turn.T @ origin) for form in body.forms if form.geom in link.geoms])
    like = None if solid is None else _with_mass(solid, mass)
    if largest > FAR_BEYOND * mass * reach * reach:
        most = mass * reach * reach
        told = f"{called}: inertia {largest:.3g} kg m² of {mass:.3g} kg; within its shapes no more than {most:.2g}"
        usual = largest / (most / 5.0 if like is None else float(np.linalg.eigvalsh(like)[-1]))
        unit = next((name for factor, name in UNITS.items() if factor / 2 < usual < factor * 2), "")
        told += f"; is it in {unit}?" if unit else ""
        yield Finding("inertia-unit", inertial.source, told, mend, (link.name,))
        return
    if like is None:
        return
    usual = float(np.linalg.eigvalsh(like)[-1])
    if largest < TINY * usual:
        told = f"{called}: inertia {largest:.3g} kg m² of {mass:.3g} kg; that of its shapes is {usual:.2g}"
        yield Finding("inertia-small", inertial.source, told, mend, (link.name,))
        return
    shift = mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    if difference(own, like) > 2.0 * DIFFERS and difference(own - shift, like) < FITS:
        told = f"{called}: its inertia is about the origin of the link, not about the centre of mass"
        yield Finding("inertia-frame", inertial.source, told, mend, (link.name,))
    elif difference(own, like) > DIFFERS and difference(raw, like) < FITS:
        told = f"{called}: its inertia is along the axes of the link, not of <inertial>, which are turned"
        yield Finding("inertia-frame", inertial.source, told, mend, (link.name,))
    elif _exchanged(own, like):
        told = f"{called}: the principal axes of its inertia are those of its shapes, exchanged: off by 90 degrees"
        yield Finding("inertia-axes", inertial.source, told, mend, (link.name,))


def _with_mass(solid: Solid, mass: float) -> Real:
    return solid.inertia * (mass / solid.mass)


def difference(a: Real, b: Real) -> float:
    """The distance of two inertias relative to the second (Frobenius norm)."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def _exchanged(own: Real, like: Real) -> bool:
    """True if an inertia fits that of the shapes once its axes are exchanged, and not before."""
    moments, axes = np.linalg.eigh(like)
    if moments[2] < LONG * moments[0]:
        return False
    turned = axes.T @ own @ axes
    turned /= np.trace(turned)
    want = moments / moments.sum()
    error = {order: difference(turned[np.ix_(order, order)], np.diag(want)) for order in permutations(range(3))}
    return error[0, 1, 2] > DIFFERS and min(error.values()) < FITS
