"""Mass and inertia of bodies: from <inertial> or geoms, then bounded, balanced and scaled by <compiler>."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NoReturn

from artsim.loaders.impossible import repaired, shown
from artsim.loaders.inertia import breaks_triangle, principal_moments
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.geom_inertia import GeomInertia, body_inertia, principal_axes
from artsim.loaders.mjcf.orientation import read_frame
from artsim.loaders.mjcf.reading import Item, MjcfReading, describe
from artsim.sim.articulation.description import Inertial, Joint, Link, Pose
from artsim.sim.articulation.pose_algebra import compose, multiply

LEAST = 1e-15  # [kg, kg m²] MuJoCo's mjMINVAL
Six = tuple[float, float, float, float, float, float]


def read_inertial(item: Item, frame: Pose, compiler: Compiler) -> Inertial:
    """<inertial>: mass, the frame of the centre of mass, diaginertia in it or fullinertia in the body's axes."""
    item.vector("pos")
    if not item.has("mass"):
        item.refuse("has no 'mass' attribute")
    mass = item.number("mass", least=0.0)
    inertia: Six = (0.0,) * 6
    if item.has("fullinertia"):
        xx, yy, zz, xy, xz, yz = item.numbers("fullinertia", 6, 6)
        inertia = (xx, xy, xz, yy, yz, zz)
        if any(item.has(name) for name in ("quat", "axisangle", "euler", "xyaxes", "zaxis", "diaginertia")):
            item.refuse("has fullinertia, which excludes diaginertia and a rotation")
    elif item.has("diaginertia"):
        xx, yy, zz = item.vector("diaginertia")
        inertia = (xx, 0.0, 0.0, yy, 0.0, zz)
    pose = compose(frame, read_frame(item, compiler.angles))
    return Inertial(mass, pose, inertia, item.reading.at(item.element))


def inertial_of_geoms(item: Item, parts: Sequence[tuple[GeomInertia, Pose]]) -> Inertial | None:
    """The body's inertial from those of its geoms; None without any mass."""
    found = item.tried(lambda: body_inertia(parts))
    if found is None:
        return None
    x, y, z = found.moments
    return Inertial(found.mass, found.pose, (x, 0.0, 0.0, y, 0.0, z), item.reading.at(item.element))


def corrected(item: Item, inertial: Inertial | None, compiler: Compiler) -> Inertial | None:
    """The inertial after boundmass, boundinertia, balanceinertia. Raises ModelError for one that no body can have."""
    if compiler.bound_mass or compiler.bound_inertia:
        inertial = bounded(inertial or Inertial(0.0, source=item.reading.at(item.element)), compiler)
    if inertial is None:
        return None
    moments = principal_moments(inertial.inertia)
    negative = moments[0] < -1e-14 * abs(moments[2])
    if not negative and not breaks_triangle(moments):
        return inertial
    if compiler.balance_inertia and not negative:
        mean = sum(moments) / 3
        return replace(inertial, inertia=(mean, 0.0, 0.0, mean, 0.0, mean))
    if not item.reading.balance_inertia:
        refuse_impossible(item, moments)
    return repaired(item.reading, item.element, describe(item.element), inertial)


def refuse_impossible(item: Item, moments: tuple[float, float, float]) -> NoReturn:
    """Raise ModelError for an inertia that no body can have."""
    if moments[0] < 0:
        item.refuse(
            f"inertia has the principal moment {moments[0]:g}: none may be negative (--balance-inertia puts the "
            "nearest possible ones in their place)"
        )
    item.refuse(
        f"inertia with principal moments {shown(moments)} breaks the triangle inequality A + B >= C; "
        "compiler balanceinertia='true' or --balance-inertia replaces it"
    )


def bounded(inertial: Inertial, compiler: Compiler) -> Inertial:
    """Mass and principal moments raised to their bounds."""
    inertial = replace(along_axes(inertial), mass=max(inertial.mass, compiler.bound_mass))
    x, _, _, y, _, z = (max(moment, compiler.bound_inertia) for moment in inertial.inertia)
    return replace(inertial, inertia=(x, 0.0, 0.0, y, 0.0, z))


def along_axes(inertial: Inertial) -> Inertial:
    """The inertial in a frame along the principal axes; its own frame if the inertia is diagonal there."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    if (xy, xz, yz) == (0.0, 0.0, 0.0):
        return inertial
    (x, y, z), turn = principal_axes(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    pose = Pose(inertial.pose.position, multiply(inertial.pose.rotation, turn))
    return replace(inertial, pose=pose, inertia=(x, 0.0, 0.0, y, 0.0, z))


def refuse_massless(reading: MjcfReading, links: Sequence[Link], joints: Sequence[Joint]) -> None:
    """Refuse a moving body without mass or inertia, its own or of bodies fixed to it."""
    above = {joint.child: joint for joint in joints}
    massive: set[str] = set()
    for link in reversed(links):
        joint = above.get(link.name)
        if joint is None:
            continue
        if link.name in massive or has_inertia(link):
            massive.add(joint.parent if joint.kind == "fixed" else link.name)
        elif joint.kind != "fixed":
            reading.refuse(link.source, f"body {link.name!r} moves and has no mass and inertia")


def has_inertia(link: Link) -> bool:
    """True if mass and all moments are above MuJoCo's least."""
    inertial = link.inertial
    return inertial is not None and inertial.mass >= LEAST and principal_moments(inertial.inertia)[0] >= LEAST


def fixed_to_world(joints: Sequence[Joint]) -> set[str]:
    """The links without motion, which fusestatic makes parts of the world."""
    moving = {joint.child for joint in joints if joint.kind != "fixed"}
    still = {"world"}
    for joint in joints:  # parents first
        if joint.parent in still and joint.child not in moving:
            still.add(joint.child)
    return still


def scaled_to(links: list[Link], total: float, apart: Set[str]) -> list[Link]:
    """settotalmass: all masses and inertias times one factor, except those of the links `apart`."""
    scaled = {link.name for link in links if link.inertial and link.name not in apart}
    mass = sum(link.inertial.mass for link in links if link.inertial and link.name in scaled)
    if total <= 0 or mass <= 0:
        return links
    return [
        replace(link, inertial=times(link.inertial, total / mass)) if link.inertial and link.name in scaled else link
        for link in links
    ]


def times(inertial: Inertial, factor: float) -> Inertial:
    """The inertial with mass and inertia times a factor."""
    a, b, c, d, e, f = (factor * x for x in inertial.inertia)
    return replace(inertial, mass=factor * inertial.mass, inertia=(a, b, c, d, e, f))
