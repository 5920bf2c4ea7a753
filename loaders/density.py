"""Masses of the links of a URDF that give none, from the volume of their shapes at one density, on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from artsim.collision.mesh import MAX_FACES, MeshError, convex_hull, is_closed, read_mesh
from artsim.loaders.elements import Element, Reading, children, tag
from artsim.loaders.mjcf.geom_inertia import geom_inertia
from artsim.loaders.mjcf.mesh_inertia import mass_properties
from artsim.sim.articulation.description import Geom, Inertial, Link, Note, Pose, Source
from artsim.sim.foundation.rotations import Real, rotation_matrix, six

Whole = NDArray[np.integer[Any]]

TOLD = 12  # links whose masses a warning lists


class Solid(NamedTuple):
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m²] about it, in the link's axes."""

    mass: float
    centre: Real
    inertia: Real


def with_density(reading: Reading, root: Element, links: Sequence[Link], density: float) -> tuple[Link, ...]:
    """The links; a link without mass that has shapes gets the mass of these shapes at `density` [kg/m³].

    Collision shapes count, or the visual ones of a link without collision shapes; overlapping volumes count twice. The
    masses are also written into `root`, so that the model's text holds them. Raises ModelError for a damaged mesh.
    """
    given: list[str] = []
    elements = {element.get("name", ""): element for element in children(root, "link")}
    made = []
    for link in links:
        solid = None if has_mass(link) else solid_of(reading, link, density)
        if solid is not None:
            place = elements[link.name]
            link = replace(link, inertial=written(place, solid, reading.at(place)))
            given.append(f"{link.name!r} {solid.mass:.4g} kg")
        made.append(link)
    if given:
        more = f" and {len(given) - TOLD} more" if len(given) > TOLD else ""
        what = f"links without mass weigh what their shapes do at {density:g} kg/m³ (--density)"
        reading.notes.append(Note(Source(reading.file), f"{what}: {', '.join(given[:TOLD])}{more}"))
    return tuple(made)


def has_mass(link: Link) -> bool:
    """True if the file gives the link mass or inertia."""
    return link.inertial is not None and (link.inertial.mass != 0 or any(link.inertial.inertia))


def solid_of(reading: Reading, link: Link, density: float) -> Solid | None:
    """The sum of all shapes of a link; None if they have no volume."""
    for role in ("collision", "visual"):
        found = [solid_of_geom(reading, geom, density) for geom in link.geoms if geom.role == role]
        parts = [part for part in found if part is not None]
        if parts:
            return together(parts)
    return None


def together(parts: Sequence[Solid]) -> Solid:
    """Several solids as one, by the parallel axis theorem."""
    mass = sum(part.mass for part in parts)
    centre: Real = sum((part.mass * part.centre for part in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        arm = part.centre - centre
        inertia += part.inertia + part.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Solid(mass, centre, inertia)


def solid_of_geom(reading: Reading, geom: Geom, density: float, asked: str = "--density") -> Solid | None:
    """One shape, in the link's axes; None for a plane and for an absent mesh. `asked`: the option named in messages."""
    if geom.kind in ("plane", "heightfield"):
        return None
    if geom.kind == "mesh":
        own = solid_of_mesh(reading, geom, density, asked)
    else:
        mass, moments = geom_inertia(geom.kind, geom.size, density=density)
        own = Solid(mass, np.zeros(3), np.diag(moments))
    if own is None:
        return None
    turn = rotation_matrix(geom.pose.rotation)
    return Solid(own.mass, np.array(geom.pose.position) + turn @ own.centre, turn @ own.inertia @ turn.T)


def solid_of_mesh(reading: Reading, geom: Geom, density: float, asked: str) -> Solid | None:
    """The solid that a closed mesh encloses, or the convex hull of an open mesh, in the geom's frame."""
    if geom.mesh is None:
        what = f"mesh {geom.mesh_uri!r} is not at hand: it adds no mass ({asked})"
        reading.note(geom.source, what, once=f"density {geom.mesh_uri}")
        return None
    try:
        mesh = read_mesh(geom.mesh, max_faces=MAX_FACES if reading.max_faces is None else reading.max_faces)
    except MeshError as error:
        reading.refuse(geom.source, f"mesh {geom.mesh_uri!r}, which mass comes from ({asked}): {error}")
    points, faces = mesh.vertices * np.array(geom.scale), mesh.faces
    try:
        volume, centre, inertia = enclosed(points, faces)
    except ValueError:
        try:
            volume, centre, inertia = mass_properties(points, convex_hull(points), "exact")
        except ValueError as error:
            reading.note(geom.source, f"mesh {geom.mesh_uri!r} adds no mass ({asked}): {error}")
            return None
        what = f"mesh {geom.mesh_uri!r} encloses no volume: the mass is that of its convex hull ({asked})"
        reading.note(geom.source, what, once=f"density {geom.mesh_uri}")
    return Solid(density * volume, centre, density * inertia)


def enclosed(points: Real, faces: Whole) -> tuple[float, Real, Real]:
    """Volume [m³], its centre and its inertia at density one. Raises ValueError for an open mesh, or a flat one."""
    if not len(faces) or not is_closed(points, faces):
        raise ValueError("not closed")
    corners = points[faces]
    inside_out = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) < 0
    return mass_properties(points, faces[:, ::-1] if inside_out else faces, "exact")


def written(link: Element, solid: Solid, source: Source) -> Inertial:
    """The inertial of a solid, which also replaces an inertial without mass in the link's element."""
    x, y, z = solid.centre.tolist()
    moments = six((solid.inertia + solid.inertia.T) / 2).tolist()
    for old in [item for item in link if tag(item) == "inertial"]:
        link.remove(old)
    element = etree.SubElement(link, "inertial")
    etree.SubElement(element, "origin", xyz=f"{x!r} {y!r} {z!r}")
    etree.SubElement(element, "mass", value=repr(solid.mass))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    etree.SubElement(element, "inertia", {name: repr(value) for name, value in zip(names, moments, strict=True)})
    xx, xy, xz, yy, yz, zz = moments
    return Inertial(solid.mass, Pose((x, y, z)), (xx, xy, xz, yy, yz, zz), source)
