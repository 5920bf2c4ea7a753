"""Rules of the doctor on shapes: their size, their hulls, overlaps at rest, friction of wheels, the ground below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artsim.loaders.doctor.finding import Finding
from artsim.loaders.doctor.forms import Body, Form, depth_of
from artsim.loaders.doctor.inertias import hull_volume
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.articulation.model import Compiled, Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.collision_pairs import CollisionPairs

MILLIMETRES = 20.0  # ratio of a mesh that moves to the rest of a robot from which it is in another unit
SCENERY = 500.0  # the same of a mesh that stands: a terrain is larger than what walks on it
DEEP = 1e-3  # [m] of an overlap at rest, and a share of the smaller shape:
DEEP_SHARE = 0.02
SWOLLEN = 2.0  # ratio of a hull to its mesh in volume
WEDGES = 3.0  # friction of a wheel; rubber on concrete has 1, racing tyres 1.7
ROUND = 0.05  # share by which the shape of a wheel may miss a circle
IN_AIR = 0.5  # of a robot's own height, at least:
LEAST_FALL = 0.05  # [m]


def shape_findings(
    robot: Articulation,
    compiled: Compiled,
    bodies: Sequence[Body],
    pairs: CollisionPairs,
    placed: Mapping[int, tuple[str, Form]],
) -> Iterator[Finding]:
    """The findings on shapes; `placed` are the forms where a run starts, as world_forms gives them."""
    yield from hull_findings(bodies)
    yield from wheel_findings(robot, bodies)
    yield from overlap_findings(robot, pairs, placed)
    yield from ground_findings(robot, compiled, pairs, placed)


# --- single shapes ---------------------------------------------------------------------------------------------------


def scale_findings(bodies: Sequence[Body]) -> Iterator[Finding]:
    """Meshes that are far larger than everything else about the robot: joints, centres of mass, radii of gyration,
    other shapes."""
    spans = [float(np.linalg.norm(body.joint.pose.position)) for body in bodies if body.joint is not None]
    given = [link.inertial for body in bodies for link in body.links if link.inertial is not None]
    spans += [float(np.linalg.norm(inertial.pose.position)) for inertial in given]
    spans += [
        2.0 * (sum((inertial.inertia[0], inertial.inertia[3], inertial.inertia[5])) / inertial.mass) ** 0.5
        for inertial in given
        if inertial.mass > 0
    ]
    forms = [(body, form, float(np.ptp(form.points, axis=0).max())) for body in bodies for form in body.forms]
    spans += [size + 2.0 * form.radius for _, form, size in forms if form.geom.kind != "mesh"]
    rest = max(spans, default=0.0)
    told: set[str] = set()
    for body, form, size in forms:
        geom = form.geom
        most = MILLIMETRES if body.joint is not None and body.joint.kind != "fixed" else SCENERY
        if geom.kind == "mesh" and 0 < most * rest < size and geom.mesh_uri not in told:
            told.add(geom.mesh_uri)
            link = next(link for link in body.links if geom in link.geoms)
            words = f"mesh {geom.mesh_uri!r} of link {link.name!r} is {size:.4g} m long, all else at most {rest:.3g} m"
            mend = ("--scale-mesh", f"{link.name}=0.001")
            yield Finding("mesh-scale", geom.source, words + "; is it in mm?", mend, (link.name,))


def hull_findings(bodies: Sequence[Body]) -> Iterator[Finding]:
    """Closed collision meshes of moving bodies whose hulls are much larger than they are."""
    for body in bodies:
        if body.joint is None:
            continue
        for link in body.links:
            parts = [form for form in body.forms if form.geom.role == "collision" and form.geom in link.geoms]
            for form in parts:
                if form.geom.kind != "mesh" or form.solid is None or form.faces is None:
                    continue
                if is_convex(form.points, form.faces):
                    continue
                own, whole = form.solid.mass, hull_volume(form.points)
                if whole > SWOLLEN * own:
                    told = (
                        f"collision mesh {form.geom.mesh_uri or form.geom.name!r} of link {link.name!r}: its hull has "
                        f"{1e6 * whole:.4g} cm³, {whole / own:.2g} times its own {1e6 * own:.4g}"
                    )
                    yield Finding("mesh-hull", form.geom.source, told, ("--convex", link.name), (link.name,))


def is_convex(points: Real, faces: NDArray[np.integer[Any]]) -> bool:
    """True if no point lies above the plane of any of the largest triangles of a closed mesh."""
    corners = points[faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(doubled, axis=1)
    chosen = np.argsort(-areas)[:64]
    chosen = chosen[areas[chosen] > 0]
    normals = doubled[chosen] / areas[chosen, None]
    flat = 1e-4 * float(np.ptp(points, axis=0).max())
    heights = points @ normals.T - np.einsum("ij,ij->i", corners[chosen, 0], normals)
    return bool((heights <= flat).all() or (heights >= -flat).all())


def wheel_findings(robot: Articulation, bodies: Sequence[Body]) -> Iterator[Finding]:
    """Wheels, round shapes on joints that turn without end about their axis, with friction that lets none slip."""
    for body in bodies:
        joint = body.joint
        if joint is None or joint.kind not in ("continuous", "revolute") or joint.lower is not None:
            continue
        for form in body.forms:
            friction = form.geom.friction
            wedges = form.geom.role == "collision" and friction is not None and friction[0] > WEDGES
            if friction is not None and wedges and _is_round(form, np.array(joint.axis)):
                link = next(link for link in body.links if form.geom in link.geoms)
                told = f"wheel {link.name!r}: friction {friction[0]:.4g}"
                yield Finding(
                    "wheel-friction", form.geom.source, told, ("--contact-friction", f"{link.name}=1"), (link.name,)
                )
                break


def _is_round(form: Form, axis: Real) -> bool:
    """True if a shape, about its middle, reaches equally far across an axis."""
    points = form.points - 0.5 * (form.points.max(axis=0) + form.points.min(axis=0))
    across = np.eye(3)[np.argmin(np.abs(axis))]
    u = np.cross(axis, across)
    u /= np.linalg.norm(u)
    v = np.cross(axis, u)
    angle = np.linspace(0.0, 2.0 * np.pi, 36, endpoint=False)
    ways = np.outer(np.cos(angle), u) + np.outer(np.sin(angle), v)
    reach = (points @ ways.T).max(axis=0) + form.radius
    return bool(np.ptp(reach) < ROUND * reach.max())


# --- at rest ---------------------------------------------------------------------------------------------------------


def world_forms(compiled: Compiled, bodies: Sequence[Body], q: Real) -> Mapping[int, tuple[str, Form]]:
    """Link and form in the world at these coordinates, by the id of each geom."""
    model, number = compiled.model, {name: n for n, name in enumerate(compiled.labels.links)}
    rotation, origin = body_poses(model, q)
    found: dict[int, tuple[str, Form]] = {}
    for body in bodies:
        n = number[body.links[0].name]
        at = int(model.link_body[n])
        turn = rotation[at] @ model.link_rotation[n]
        place = origin[at] + rotation[at] @ model.link_position[n]
        for link in body.links:
            for geom in link.geoms:
                form = next((form for form in body.forms if form.geom is geom), None)
                if form is not None:
                    found[id(geom)] = link.name, form.moved(turn, place)
    return found


def overlap_findings(
    robot: Articulation, pairs: CollisionPairs, placed: Mapping[int, tuple[str, Form]]
) -> Iterator[Finding]:
    """Links that may touch and overlap where a run starts, each pair of links once, by its deepest shapes."""
    geoms = [geom for _, geom in pairs.geoms]
    boxes = {n: _box(placed[id(geom)][1]) for n, geom in enumerate(geoms) if id(geom) in placed}
    worst: dict[tuple[str, str], tuple[float, Geom]] = {}
    rows = np.array(sorted(boxes), int)
    if not len(rows):
        return
    low, high = np.array([boxes[n][0] for n in rows]), np.array([boxes[n][1] for n in rows])
    near = (low[:, None] < high[None] - DEEP).all(axis=2)
    near &= near.T & pairs.allowed[np.ix_(rows, rows)]
    for i, j in np.argwhere(np.triu(near)).tolist():
        (a, first), (b, second) = placed[id(geoms[rows[i]])], placed[id(geoms[rows[j]])]
        least = max(DEEP, DEEP_SHARE * min(_thickness(first), _thickness(second)))
        depth = depth_of(first, second)
        if depth > max(least, worst[a, b][0] if (a, b) in worst else 0.0):
            worst[a, b] = depth, geoms[rows[i]]
    for (a, b), (depth, geom) in worst.items():
        told = f"links {a!r} and {b!r} overlap by {depth:.2g} m where a run starts"
        mend = ("--no-collision", b) if robot.format == "urdf" else ("--exclude", f"{a},{b}")
        yield Finding("neighbours-collide", geom.source, told, mend, (a, b))


def _box(form: Form) -> tuple[Real, Real]:
    return form.points.min(axis=0) - form.radius, form.points.max(axis=0) + form.radius


def _thickness(form: Form) -> float:
    return float(np.ptp(form.points @ form.axes, axis=0).min()) + 2.0 * form.radius


def ground_findings(
    robot: Articulation, compiled: Compiled, pairs: CollisionPairs, placed: Mapping[int, tuple[str, Form]]
) -> Iterator[Finding]:
    """A robot on a free base that starts far above a level ground of its file, and has no keyframe to start from."""
    model = compiled.model
    planes = [
        geom.pose.position[2]
        for link, geom in pairs.geoms
        if geom.kind == "plane" and link >= 0 and model.link_body[link] == 0 and geom.pose.rotation[0] ** 2 > 0.99
    ]
    if not planes or robot.keyframes:
        return
    above = ancestors_of(model)
    for joint in robot.joints:
        root = int(model.link_body[compiled.labels.links.index(joint.child)])
        carried = [body for body in range(len(above)) if root in above[body]]
        if joint.kind != "free" or len(carried) < 3:
            continue
        own = {name for n, name in enumerate(compiled.labels.links) if int(model.link_body[n]) in carried}
        forms = [form for name, form in placed.values() if name in own]
        touching = [_box(form)[0][2] for form in forms if form.geom.role == "collision"]
        if touching:
            gap = float(min(touching)) - max(planes)
            height = float(max(_box(form)[1][2] for form in forms) - min(_box(form)[0][2] for form in forms))
            if gap > max(LEAST_FALL, IN_AIR * height):
                told = f"the robot on {joint.name!r} starts {gap:.3g} m above the ground; it is {height:.3g} m high"
                yield Finding("base-in-air", joint.source, told, ("--lift", f"{-gap:.4g}"), (joint.child,))


def ancestors_of(model: Model) -> list[set[int]]:
    """The bodies that carry each body, itself among them."""
    found: list[set[int]] = [{0}]
    for body in range(1, len(model.body_parent)):
        found.append({body, *found[int(model.body_parent[body])]} - {0})
    return found
