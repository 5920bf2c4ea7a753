"""Edits of shapes and of what follows from them: inertias, scaled and simpler meshes, primitives, friction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artsim.collision.decompose import NoDecomposerError, convex_parts
from artsim.collision.mesh import convex_hull
from artsim.loaders.density import Solid
from artsim.loaders.doctor.forms import Meshes, form_of, mesh_points, solid_of
from artsim.loaders.edits import matching
from artsim.loaders.fitting import fitted
from artsim.sim.articulation.description import Articulation, Geom, Inertial, Link, Pose
from artsim.sim.articulation.pose_algebra import compose
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import Real, six

Faces = NDArray[np.integer[Any]]


def _changed(robot: Articulation, links: Mapping[str, Link]) -> Articulation:
    return replace(robot, links=tuple(links.get(link.name, link) for link in robot.links))


def _chosen(robot: Articulation, patterns: Sequence[str]) -> list[Link]:
    names = [link.name for link in robot.links]
    found = {name for pattern in patterns for name in matching("link", pattern, names)}
    return [link for link in robot.links if link.name in found]


# --- masses ----------------------------------------------------------------------------------------------------------


def with_shape_inertia(robot: Articulation, patterns: Sequence[str]) -> Articulation:
    """The robot with the centres of mass and inertias of these links as their shapes have them, their masses kept.

    Visual shapes count where there are any, or else collision shapes. Raises UsageError for a link without mass, and
    for shapes that enclose no volume.
    """
    meshes, made = Meshes(robot, read_all=True), {}
    for link in _chosen(robot, patterns):
        if link.inertial is None or not link.inertial.mass > 0:
            raise UsageError(f"--inertia: link {link.name!r} has no mass; --solid gives it one")
        solid = _solid(link, meshes, "--inertia")
        made[link.name] = replace(link, inertial=_inertial(link, solid, link.inertial.mass))
    return _changed(robot, made)


def with_densities(robot: Articulation, densities: Mapping[str, float]) -> Articulation:
    """The robot with masses, centres and inertias of links from their shapes at these densities [kg/m³]."""
    meshes, made = Meshes(robot, read_all=True), {}
    for pattern, density in densities.items():
        if not 0.0 < density < np.inf:
            raise UsageError(f"--solid: {pattern!r} has {density:g}, want a density above 0 [kg/m³]")
        for link in _chosen(robot, [pattern]):
            solid = _solid(link, meshes, "--solid")
            made[link.name] = replace(link, inertial=_inertial(link, solid, density * solid.mass))
    return _changed(robot, made)


def _solid(link: Link, meshes: Meshes, option: str) -> Solid:
    forms = [form for geom in link.geoms if (form := form_of(geom, meshes)) is not None]
    solid = solid_of(forms)
    if solid is None:
        raise UsageError(f"{option}: link {link.name!r} has no shapes that enclose a volume")
    return solid


def _inertial(link: Link, solid: Solid, mass: float) -> Inertial:
    x, y, z = solid.centre.tolist()
    xx, xy, xz, yy, yz, zz = six(solid.inertia * (mass / solid.mass)).tolist()
    return Inertial(mass, Pose((x, y, z)), (xx, xy, xz, yy, yz, zz), link.source)


# --- meshes ----------------------------------------------------------------------------------------------------------


def with_mesh_scale(robot: Articulation, factors: Mapping[str, float]) -> Articulation:
    """The robot with the meshes of links scaled, 0.001 for meshes in mm."""
    made = {}
    for pattern, factor in factors.items():
        if not 0.0 < factor < np.inf:
            raise UsageError(f"--scale-mesh: {pattern!r} has {factor:g}, want a factor above 0")
        for link in _chosen(robot, [pattern]):
            if not any(geom.kind == "mesh" for geom in link.geoms):
                raise UsageError(f"--scale-mesh: link {link.name!r} has no mesh")
            geoms = [_scaled(geom, factor) if geom.kind == "mesh" else geom for geom in link.geoms]
            made[link.name] = replace(link, geoms=tuple(geoms))
    return _changed(robot, made)


def _scaled(geom: Geom, factor: float) -> Geom:
    a, b, c = geom.scale
    return replace(geom, scale=(factor * a, factor * b, factor * c))


Maker = Callable[[Geom, Real, Faces], Sequence[Geom]]


def _with_collision_meshes(robot: Articulation, patterns: Sequence[str], option: str, make: Maker) -> Articulation:
    """The robot with the collision meshes of links replaced. Raises UsageError for a link without one at hand."""
    meshes, made = Meshes(robot, read_all=True), {}
    for link in _chosen(robot, patterns):
        geoms: list[Geom] = []
        for geom in link.geoms:
            if geom.kind != "mesh" or geom.role != "collision":
                geoms.append(geom)
                continue
            found = meshes.of(geom)
            if found is None:
                raise UsageError(f"{option}: mesh {geom.mesh_uri!r} of link {link.name!r} is not at hand")
            geoms += make(geom, *found)
        if tuple(geoms) == link.geoms:
            raise UsageError(f"{option}: link {link.name!r} has no collision mesh")
        made[link.name] = replace(link, geoms=tuple(geoms))
    return _changed(robot, made)


def _of_points(geom: Geom, points: Real, faces: Faces, suffix: str = "") -> Geom:
    """The geom with other points in the frame of its file."""
    return replace(
        geom,
        name=f"{geom.name}{suffix}" if geom.name else "",
        mesh=None,
        mesh_uri="",
        vertices=tuple(points.ravel().tolist()),
        faces=tuple(int(k) for k in faces.ravel()),
    )


def _hull(points: Real) -> tuple[Real, Faces]:
    faces = convex_hull(points)
    used, index = np.unique(faces, return_inverse=True)
    return points[used], index.reshape(-1, 3)


def with_hulls(robot: Articulation, patterns: Sequence[str]) -> Articulation:
    """The robot with the hulls of the collision meshes of links in their place."""

    def make(geom: Geom, points: Real, _: Faces) -> list[Geom]:
        try:
            return [_of_points(geom, *_hull(points))]
        except ValueError as error:
            raise UsageError(f"--hull: mesh {geom.mesh_uri!r}: {error}") from None

    return _with_collision_meshes(robot, patterns, "--hull", make)


def with_convex_parts(robot: Articulation, patterns: Sequence[str]) -> Articulation:
    """The robot with nearly convex parts of the collision meshes of links in their place."""

    def make(geom: Geom, points: Real, faces: Faces) -> list[Geom]:
        try:
            parts = convex_parts(points, faces)
        except NoDecomposerError:
            raise UsageError("--convex needs `pip install artsim[decompose]`") from None
        except ValueError as error:
            raise UsageError(f"--convex: mesh {geom.mesh_uri!r}: {error}") from None
        return [_of_points(geom, *_hull(part), f"_{n}" if n else "") for n, part in enumerate(parts)]

    return _with_collision_meshes(robot, patterns, "--convex", make)


def with_simpler_meshes(robot: Articulation, triangles: Mapping[str, float]) -> Articulation:
    """The robot with collision meshes of links of at most so many triangles, by quadric errors (Garland, Heckbert
    1997). Raises UsageError where the package fast-simplification is not installed."""
    for pattern, most in triangles.items():
        if not 4 <= most < 1e9:
            raise UsageError(f"--simplify: {pattern!r} has {most:g}, want 4 or more triangles")

        def make(geom: Geom, points: Real, faces: Faces, most: int = int(most)) -> list[Geom]:
            try:
                import fast_simplification
            except ImportError:
                raise UsageError("--simplify needs `pip install artsim[simplify]`") from None
            if len(faces) <= most:
                return [_of_points(geom, points, faces)]
            return [
                _of_points(
                    geom, *fast_simplification.simplify(np.array(points), np.array(faces, np.int32), target_count=most)
                )
            ]

        robot = _with_collision_meshes(robot, [pattern], "--simplify", make)
    return robot


def with_primitives(robot: Articulation, kinds: Mapping[str, str]) -> Articulation:
    """The robot with a primitive around each collision mesh of links: the smallest box, ball, cylinder or capsule."""
    for pattern, kind in kinds.items():

        def make(geom: Geom, points: Real, _: Faces, kind: Any = kind) -> list[Geom]:
            try:
                size, at = fitted(kind, mesh_points(geom, points))
            except ValueError as error:
                raise UsageError(f"--fit: mesh {geom.mesh_uri!r}: {error}") from None
            plain = replace(geom, kind=kind, size=size, pose=compose(geom.pose, at), mesh=None, mesh_uri="")
            return [replace(plain, vertices=(), faces=(), mesh_pose=Pose(), scale=(1.0, 1.0, 1.0), mesh_absent="")]

        robot = _with_collision_meshes(robot, [pattern], "--fit", make)
    return robot


# --- contact ---------------------------------------------------------------------------------------------------------


def with_contact_friction(robot: Articulation, values: Mapping[str, float]) -> Articulation:
    """The robot with other sliding friction of the collision shapes of links."""
    made = {}
    for pattern, value in values.items():
        if not 0.0 <= value < np.inf:
            raise UsageError(f"--contact-friction: {pattern!r} has {value:g}, want a coefficient from 0")
        for link in _chosen(robot, [pattern]):
            geoms = [
                replace(geom, friction=(value, *(geom.friction or (1.0, 0.005, 0.0001))[1:]))
                if geom.role == "collision"
                else geom
                for geom in link.geoms
            ]
            made[link.name] = replace(link, geoms=tuple(geoms))
    return _changed(robot, made)


def with_exclusions(robot: Articulation, pairs: Sequence[tuple[str, str]]) -> Articulation:
    """The robot with pairs of links that never touch."""
    names = [link.name for link in robot.links]
    both = [(matching("link", a, names)[0], matching("link", b, names)[0]) for a, b in pairs]
    return replace(robot, no_contact=(*robot.no_contact, *both))
