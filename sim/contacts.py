"""What may touch, as arrays, and what is known of it in a step. So far: spheres of links, and a ground.

Constants are in Contacts, what a step finds in ContactWork; kernels call them `g` and `t`. A run in which nothing may
touch has neither (both are None) and runs kernels that were compiled without contact. No numba here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from artsim.sim.description import Articulation, Geom
from artsim.sim.model import Compiled, Model
from artsim.sim.records import ConstInts1, ConstReals1, ConstReals2, Ints2, Reals1, Reals2, Reals3, allocate

FRICTION = 1.0  # of a geom whose file says nothing
_GROUND_BITS = 1  # its type and affinity, as those of a MuJoCo geom


class Contacts(NamedTuple):
    """The pairs that may touch: each sphere with the ground. Each pair has a contact, near or far, in every step."""

    sphere_body: ConstInts1  # (n,)
    sphere_link: ConstInts1  # (n,)
    sphere_centre: ConstReals2  # (n, 3) in the body's internal frame [m]
    sphere_radius: ConstReals1  # (n,) [m]
    friction: ConstReals1  # (n,) coefficient of the pair
    ground_point: ConstReals1  # (3,) [m]
    ground_frame: ConstReals2  # (3, 3) by rows: normal (out of the ground), two tangents


class ContactWork(NamedTuple):
    """The contacts of a step, in the order of the pairs; what touches is b, what it touches is a."""

    body: Ints2  # (n, 2) of a and b
    link: Ints2  # (n, 2) -1: the world
    arm: Reals3  # (n, 2, 3) the contact's point, from the origins of these bodies, world axes [m]
    frame: Reals3  # (n, 3, 3) by rows: normal from a to b, two tangents
    gap: Reals1  # (n,) negative: depth [m]
    drift: Reals1  # (n,) second derivative of the gap at zero independent acceleration [m/s²]
    force: Reals2  # (n, 3) on b over the step: normal, tangents [N]


def make_contact_work(contacts: Contacts) -> ContactWork:
    """The scratch of a run's contacts."""
    n = len(contacts.friction)
    shapes = {"body": (n, 2), "link": (n, 2), "arm": (n, 2, 3), "frame": (n, 3, 3), "force": (n, 3)}
    work: ContactWork = allocate(ContactWork, {**shapes, "gap": (n,), "drift": (n,)})
    return work


def contact_rows(model: Model, contacts: Contacts | None) -> tuple[int, int]:
    """Constraint rows of a step that come from contacts, and their entries."""
    rows = 0 if contacts is None else 3 * len(contacts.friction)
    return rows, rows * len(model.dof_body)


def ground_contacts(
    articulation: Articulation, compiled: Compiled, friction: float, height: float, notes: list[str]
) -> Contacts | None:
    """The robot's spheres against level ground of this friction and height [m]; None where it has none that move.

    Of two coefficients of friction the larger counts. What has another shape than a sphere is named in a note.
    """
    model = compiled.model
    link_of = {name: n for n, name in enumerate(compiled.labels.links)}
    shapes = [(link_of[link], geom) for link, geom in _tangible(articulation) if model.link_body[link_of[link]] > 0]
    spheres = [(link, geom) for link, geom in shapes if geom.kind == "sphere"]
    others = Counter(geom.kind for _, geom in shapes if geom.kind != "sphere")
    untouched = ""
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        untouched = f"other collision shapes than spheres touch nothing yet ({kinds})"
    if not spheres:
        notes.append(f"nothing of this robot touches the ground{'; ' * bool(others)}{untouched}")
        return None
    if others:
        notes.append(f"ground: {untouched}")
    places = [
        model.link_position[link] + model.link_rotation[link] @ np.array(geom.pose.position) for link, geom in spheres
    ]
    arrays = {
        "sphere_body": np.array([model.link_body[link] for link, _ in spheres], np.int64),
        "sphere_link": np.array([link for link, _ in spheres], np.int64),
        "sphere_centre": np.array(places),
        "sphere_radius": np.array([geom.size[0] for _, geom in spheres]),
        "friction": np.array([max(friction, _sliding(geom)) for _, geom in spheres]),
        "ground_point": np.array([0.0, 0.0, height]),
        "ground_frame": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    }
    for array in arrays.values():
        array.setflags(write=False)
    return Contacts(**arrays)


def _tangible(articulation: Articulation) -> Iterator[tuple[str, Geom]]:
    """Geoms that touch a ground, with their links' names."""
    for link in articulation.links:
        for geom in link.geoms:
            surface = geom.surface
            if geom.role == "collision" and (surface.type_bits | surface.affinity_bits) & _GROUND_BITS:
                yield link.name, geom


def _sliding(geom: Geom) -> float:
    """A geom's coefficient of sliding friction."""
    return FRICTION if geom.friction is None else geom.friction[0]
