"""Forms of links: their shapes as points and a radius, with volume and inertia where they enclose any.

Nothing here needs scipy, so that the check of a sound robot stays quick.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.mesh import MAX_FACES, MeshError, read_mesh
from artsim.loaders.density import Solid, enclosed, together
from artsim.loaders.lumped import placed
from artsim.loaders.mjcf.geom_inertia import geom_inertia
from artsim.sim.articulation.description import Articulation, Geom, Joint, Link
from artsim.sim.foundation.rotations import Real, rotation_matrix, symmetric

Faces = NDArray[np.integer[Any]]
MOST_BYTES = 30_000_000  # of mesh files that are read without being asked for: a second or two
RING = 24  # points of a circle
UNSEEN = 0.1  # share of the mass that links without shapes may have in a body that is judged by its shapes


class Form(NamedTuple):
    """A geom in the frame of its link: all points within `radius` of the hull of `points`; its solid at density one."""

    geom: Geom
    points: Real  # (n, 3) [m]
    radius: float  # [m]
    axes: Real  # (3, 3) its own axes as columns
    solid: Solid | None  # None: it encloses no volume, or that cannot be told
    faces: Faces | None = None  # of a mesh, numbers of `points`

    def moved(self, turn: Real, origin: Real) -> Form:
        """The form in another frame, of its frame there."""
        return self._replace(
            points=origin + self.points @ turn.T, axes=turn @ self.axes, solid=_turned(self.solid, turn, origin)
        )


class Body(NamedTuple):
    """Links that fixed joints hold together, in the frame of the first: their forms, mass, centre of mass, inertia."""

    links: tuple[Link, ...]
    forms: tuple[Form, ...]
    mass: float  # [kg]
    centre: Real  # (3,) [m]
    inertia: Real  # (3, 3) about the centre [kg m²]
    drawn: bool  # True if the forms are all of its shapes, and it looks like them: collision shapes may be feet alone
    joint: Joint | None  # above the first link; None: it stands in the world
    place: Mapping[str, tuple[Real, Real]]  # rotation and origin of each link in the frame of the first

    @property
    def corners(self) -> Real:
        """Points (n, 3) whose hull holds all forms [m]."""
        parts = [corners_of(form) for form in self.forms]
        return np.concatenate(parts) if parts else np.zeros((0, 3))


def corners_of(form: Form) -> Real:
    """Points (n, 3) whose hull is nearly the form [m]."""
    return np.concatenate([form.points + form.radius * step for step in _steps(form.radius)])


def _steps(radius: float) -> Real:
    if not radius:
        return np.zeros((1, 3))
    corners = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    return np.concatenate([corners / math.sqrt(3.0), np.eye(3), -np.eye(3)])


class Meshes:
    """Mesh files of a robot, each read once, as far as they may be read."""

    def __init__(self, robot: Articulation, *, read_all: bool) -> None:
        self.most = MAX_FACES if robot.max_faces is None else robot.max_faces
        self.found: dict[Path, tuple[Real, Faces] | None] = {}
        self.left_out = 0
        files = dict.fromkeys(geom.mesh for link in robot.links for geom in _by_use(link.geoms) if geom.mesh)
        room = MOST_BYTES
        for path in files:
            size = path.stat().st_size if path.is_file() else 0
            room -= size
            if not read_all and room < 0:
                self.left_out += 1
                self.found[path] = None

    def of(self, geom: Geom) -> tuple[Real, Faces] | None:
        """Points (n, 3) in the frame of the file, and triangles; None for one that is absent, damaged or left out."""
        if geom.vertices:
            return np.array(geom.vertices).reshape(-1, 3), np.array(geom.faces, np.int64).reshape(-1, 3)
        if geom.mesh is None:
            return None
        if geom.mesh not in self.found:
            try:
                mesh = read_mesh(geom.mesh, max_faces=self.most)
                self.found[geom.mesh] = mesh.vertices, mesh.faces
            except MeshError:
                self.found[geom.mesh] = None
        return self.found[geom.mesh]


def _by_use(geoms: Sequence[Geom]) -> list[Geom]:
    return sorted(geoms, key=lambda geom: geom.role != "collision")


def form_of(geom: Geom, meshes: Meshes) -> Form | None:
    """The form of a geom in the frame of its link; None for planes, height fields, and meshes that are not at hand."""
    turn, origin = rotation_matrix(geom.pose.rotation), np.array(geom.pose.position)
    if geom.kind == "mesh":
        found = meshes.of(geom)
        if found is None:
            return None
        vertices, faces = found
        own = mesh_points(geom, vertices)
        try:
            volume, centre, inertia = enclosed(own, faces)
            solid = Solid(volume, centre, inertia)
        except ValueError:
            solid = None
        return Form(geom, own, 0.0, np.eye(3), solid, faces).moved(turn, origin)
    points = points_of(geom.kind, geom.size)
    if points is None:
        return None
    mass, moments = geom_inertia(geom.kind, geom.size, density=1.0)
    solid = Solid(mass, np.zeros(3), np.diag(moments))
    radius = geom.size[0] if geom.kind in ("sphere", "capsule") else 0.0
    return Form(geom, points, radius, np.eye(3), solid).moved(turn, origin)


def mesh_points(geom: Geom, vertices: Real) -> Real:
    """The vertices (n, 3) of a mesh file, in the frame of its geom."""
    pose = geom.mesh_pose
    own: Real = (vertices - np.array(pose.position)) @ rotation_matrix(pose.rotation) * np.array(geom.scale)
    return own


def _turned(solid: Solid | None, turn: Real, origin: Real) -> Solid | None:
    if solid is None or not solid.mass > 0:
        return None
    return Solid(solid.mass, origin + turn @ solid.centre, turn @ solid.inertia @ turn.T)


def points_of(kind: str, size: Sequence[float]) -> Real | None:
    """Points (n, 3) on a shape in its own frame, of spheres and capsules on their axis; None for shapes without end."""
    angle = 2.0 * math.pi * np.arange(RING) / RING
    if kind == "sphere":
        return np.zeros((1, 3))
    if kind == "capsule":
        return np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]])
    if kind == "cylinder":
        ring = np.stack([size[0] * np.cos(angle), size[0] * np.sin(angle)], axis=1)
        return np.concatenate([np.column_stack([ring, np.full(RING, h)]) for h in (-size[1], size[1])])
    if kind == "box":
        corners: Real = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(size)
        return corners
    if kind == "ellipsoid":
        heights = np.linspace(-1.0, 1.0, 9)
        rings = [
            np.column_stack(
                [math.sqrt(1.0 - h * h) * np.cos(angle), math.sqrt(1.0 - h * h) * np.sin(angle), 0 * angle + h]
            )
            for h in heights
        ]
        oval: Real = np.concatenate(rings) * np.array(size)
        return oval
    return None


def bodies_of(robot: Articulation, meshes: Meshes) -> list[Body]:
    """The bodies of a robot, parents first; the world of a file, and what stands in it, are none."""
    above: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        above.setdefault(joint.child, []).append(joint)
    names = {link.name for link in robot.links}
    first: dict[str, str] = {}
    groups: dict[str, list[Link]] = {}
    place: dict[str, tuple[Real, Real]] = {}
    for link in robot.links:
        joints = above.get(link.name, [])
        held = len(joints) == 1 and joints[0].kind == "fixed" and joints[0].parent in names
        first[link.name] = first[joints[0].parent] if held else link.name
        groups.setdefault(first[link.name], []).append(link)
        place[link.name] = placed(place[joints[0].parent], joints[0].pose) if held else (np.eye(3), np.zeros(3))
    made = []
    for name, links in groups.items():
        joints = above.get(name, [])
        if name == "world" and not joints:
            continue
        made.append(_body(links, place, joints[0] if joints else None, meshes, robot.format))
    return made


def _body(
    links: Sequence[Link], place: Mapping[str, tuple[Real, Real]], joint: Joint | None, meshes: Meshes, format_: str
) -> Body:
    forms, solids, whole = [], [], True
    for link in links:
        turn, origin = place[link.name]
        for geom in link.geoms:
            form = form_of(geom, meshes)
            whole &= form is not None
            if form is not None:
                forms.append(form.moved(turn, origin))
        if link.inertial is not None and link.inertial.mass > 0:
            R, centre = placed(place[link.name], link.inertial.pose)
            solids.append(Solid(link.inertial.mass, centre, R @ symmetric(link.inertial.inertia) @ R.T))
    lump = together(solids) if solids else Solid(0.0, np.zeros(3), np.zeros((3, 3)))
    shown = format_ == "mjcf" or any(form.geom.role == "visual" for form in forms)
    unseen = sum(link.inertial.mass for link in links if link.inertial is not None and not link.geoms)
    drawn = whole and bool(forms) and shown and unseen <= UNSEEN * lump.mass
    return Body(tuple(links), tuple(forms), *lump, drawn, joint, place)


def solid_of(forms: Sequence[Form]) -> Solid | None:
    """The likely matter of a link at density one: that of its visual shapes, or else of its collision shapes; None
    where one of these encloses no volume."""
    for role in ("visual", "collision"):
        own = [form.solid for form in forms if form.geom.role == role]
        solids = [solid for solid in own if solid is not None]
        if own and len(own) == len(solids):
            return together(solids)
    return None


def distance_to_hull(points: Real, centre: Real, enough: float) -> float:
    """The distance [m] of a point from the hull of points (n, 3), or 0 if it is at most `enough`.

    Nearest point by conditional gradients with line search (Frank & Wolfe 1956), which a separating plane ends.
    """
    x = points[np.argmin(np.square(points - centre).sum(axis=1))]
    best = 0.0
    for _ in range(500):
        away = centre - x
        far = float(np.linalg.norm(away))
        if far <= enough:
            return 0.0
        heights = points @ away
        k = int(np.argmax(heights))
        best = max(best, (float(centre @ away) - float(heights[k])) / far)
        if best > enough and far - best < 0.01 * far:
            break
        step = points[k] - x
        length = float(step @ step)
        if length == 0.0:
            break
        x = x + min(1.0, max(0.0, float(away @ step) / length)) * step
    return best if best > enough else 0.0


def depth_of(a: Form, b: Form) -> float:
    """The depth by which two convex forms overlap [m], the least over many directions, descended; 0 for forms apart.

    An upper bound of the depth, which is exact where a face meets a face, and 0 for forms of which any direction tells
    that they are apart.
    """
    ways = [*_directions(), *a.axes.T, *-a.axes.T, *b.axes.T, *-b.axes.T]
    middle = a.points.mean(axis=0) - b.points.mean(axis=0)
    if np.linalg.norm(middle) > 0:
        ways.append(middle / np.linalg.norm(middle))
    A = np.array(ways)
    depth = (a.points @ A.T).max(axis=0) + a.radius - ((b.points @ A.T).min(axis=0) - b.radius)
    least, way = float(depth.min()), A[int(np.argmin(depth))]
    spread = 0.4
    while least > 0 and spread > 1e-3:
        around = way + spread * A
        around /= np.linalg.norm(around, axis=1)[:, None]
        depth = (a.points @ around.T).max(axis=0) + a.radius - ((b.points @ around.T).min(axis=0) - b.radius)
        if float(depth.min()) < least:
            least, way = float(depth.min()), around[int(np.argmin(depth))]
        else:
            spread *= 0.5
    return max(0.0, least)


def _directions() -> Real:
    """200 directions spread over the sphere (golden spiral)."""
    k = np.arange(200) + 0.5
    z, turn = 1.0 - k / 100.0, math.pi * (1.0 + math.sqrt(5.0)) * k
    flat = np.sqrt(1.0 - z * z)
    return np.column_stack([flat * np.cos(turn), flat * np.sin(turn), z])
