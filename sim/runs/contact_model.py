"""Builds the Contacts and Shapes of an articulation before a run: the geoms that may touch, and their parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.collision.build import Built, build_shapes
from artsim.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE, Shapes
from artsim.sim.articulation.description import Articulation, FileOptions, Geom, Pose, Surface
from artsim.sim.articulation.mobility import centre_mobilities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.sliders import sliding_masses_of
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.collision_pairs import CollisionPairs, ExplicitPairs, collision_pairs, conventions_of_links
from artsim.sim.geometry.contacts import OVAL, RIM, SHARP, SOFT_ALONE, Contacts, Touching
from artsim.sim.geometry.solids import Kept, read_solids
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_laws import soft_geom
from artsim.sim.runs.overlaps import without_overlaps
from artsim.sim.runs.settings import CONVEX

GROUND = "ground"


def touching_shapes(articulation: Articulation, robot: Robot, config: RunConfig, notes: list[str]) -> Touching | None:
    """Build the shapes that may touch and their contact parameters; None if none may.

    Raises:
        ModelError: a mesh that may take part in contacts is missing or cannot be read.
    """
    if not config.contacts:
        if config.ground:
            notes.append("the ground is left out, as all contacts are")
        return None
    world = [ground_plane(config)] if config.ground else []
    if config.contact_law == CONVEX:
        world = [soft_geom(geom) for geom in world]
    pairs = collision_pairs(articulation, robot.compiled, world=world, self_collide=config.self_collide)
    used = np.flatnonzero(pairs.allowed.any(axis=1))
    if len(used) == 0:
        if config.ground:
            notes.append(f"nothing of this robot touches the ground: {_why_not(articulation, robot, pairs)}")
        return None
    chosen = [pairs.geoms[n] for n in used]
    body = robot.model.link_body
    geoms = [(geom, link >= 0 and body[link] > 0) for link, geom in chosen]
    conventions = conventions_of_links(articulation)
    exact = [conventions[link].surfaces for link, _ in chosen]
    solids = read_solids(geoms, exact=exact, notes=notes, max_faces=articulation.max_faces, decompose=config.decompose)
    built = build_shapes(solids)
    if not len(built.geom):
        return None
    built = built._replace(geom=used[built.geom])
    contacts = _contacts(robot, pairs, built, config, articulation.options)
    kept = kept_pieces(articulation, [geom for _, geom in pairs.geoms], built)
    touching = Touching(contacts, built.shapes, _names(pairs), kept)
    keeps = config.keep_overlaps or config.contact_law == CONVEX  # as MuJoCo does
    return touching if keeps else without_overlaps(robot, touching, notes)


def _why_not(articulation: Articulation, robot: Robot, pairs: CollisionPairs) -> str:
    """The reason why no geom can touch the ground, and the remedy, in words."""
    links = [link for link, _ in pairs.geoms if link >= 0]
    if not links:
        return "it has no collision geometry"
    if robot.model.link_body[links].any():
        return "its file lets none of its collision geometry that moves touch it"
    return f"it has no collision geometry that moves; {articulation.conventions.how_to_free}"


def ground_plane(config: RunConfig) -> Geom:
    """The level ground as a geom."""
    friction = (config.ground_friction, 0.0, 0.0)
    pose = Pose((0.0, 0.0, config.ground_height))
    return Geom(GROUND, "plane", "collision", pose=pose, friction=friction, surface=Surface())


def _names(pairs: CollisionPairs) -> tuple[str, ...]:
    """A name for each geom: its own, or that of its link with a number."""
    return tuple(geom.name or f"geom_{n}" for n, (_, geom) in enumerate(pairs.geoms))


def kept_pieces(articulation: Articulation, geoms: Sequence[Geom], built: Built, *, seen: bool = False) -> Kept:
    """The pieces with the numbers of their geoms; built.geom holds indices of `geoms`."""
    number = {id(geom): n for n, geom in enumerate(geom for link in articulation.links for geom in link.geoms)}
    used = np.flatnonzero(built.piece >= 0)
    of_uses = tuple(number[id(geoms[n])] for n in built.geom[used])
    return Kept(of_uses, tuple(built.piece[used].tolist()), built.pieces, (int(seen),) * len(used))


# ------------------------------------------------------------------ arrays


def _contacts(robot: Robot, pairs: CollisionPairs, built: Built, config: RunConfig, options: FileOptions) -> Contacts:
    model = robot.model
    geom = built.geom
    link = np.array([pairs.geoms[n].link for n in geom], np.int64)
    body, place, turn = on_bodies(model, link, built)
    shapes, n = built.shapes, len(geom)
    flat = shapes.kind == PLANE
    margin, gap = pairs.surfaces.margin[geom], pairs.surfaces.gap[geom]
    allowed = _pair_numbers(pairs, geom)
    surfaces = {name: values[geom] for name, values in pairs.surfaces._asdict().items() if name in Contacts._fields}
    explicit = {
        f"pair_{name}": values
        for name, values in pairs.explicit._asdict().items()
        if f"pair_{name}" in Contacts._fields
    }
    # in a scene of hundreds of bodies their mobilities take longer than many steps
    is_soft = bool(pairs.surfaces.soft.any() or pairs.explicit.soft.any())
    restitution = [max(pairs.geoms[k].geom.surface.restitution, config.restitution) for k in geom]
    arrays: dict[str, Array] = {
        **surfaces,
        **explicit,
        "body": body,
        "link": link,
        "geom": geom,
        "place": place,
        "turn": turn,
        "extent": np.where(flat[:, None], 0.0, _extents(shapes)),
        "rounding": np.where((shapes.kind == SPHERE) | (shapes.kind == CAPSULE), shapes.size[:, 0], 0.0),
        "rolls": np.where(shapes.kind == CYLINDER, RIM, np.where(shapes.kind == ELLIPSOID, OVAL, SHARP)),
        "square": (shapes.kind == BOX).astype(np.int64),
        "swing": np.where(flat | (shapes.kind == SPHERE), 0.0, shapes.reach),
        "plane": np.flatnonzero(flat),
        "solid": np.flatnonzero(~flat),
        "rank": np.argsort(np.argsort(~flat, kind="stable"), kind="stable"),
        "allowed": allowed,
        "margin": margin,
        "gap": gap,
        "reach": _reach(pairs.explicit, margin + gap, allowed),
        "restitution": _restitutions(restitution, config.cone),
        "belt": np.array([pairs.geoms[k].geom.surface.velocity for k in geom], float).reshape(n, 6),
        "pyramidal": np.array([_pyramids(config.cone, options)], np.int64),
        "slack": np.array([1.0 / max(options.friction_stiffness, 1.0)]),  # never stiffer than the normal direction
        "mobility": link_mobilities(robot, link) if is_soft else np.zeros(n),
    }
    for name, values in arrays.items():
        arrays[name] = np.ascontiguousarray(values)
        arrays[name].setflags(write=False)
    return Contacts(**arrays)


def on_bodies(model: Model, link: Array, built: Built) -> tuple[Array, Array, Array]:
    """Bodies (n,) of shapes on these links (-1: scene), and positions (n, 3) [m] and axes (n, 3, 3) in their frames."""
    body = np.where(link >= 0, model.link_body[link], 0)
    turn = np.where((link >= 0)[:, None, None], model.link_rotation[link], np.eye(3))
    origin = np.where((link >= 0)[:, None], model.link_position[link], 0.0)
    return body, origin + np.einsum("nij,nj->ni", turn, built.position), turn @ built.rotation


def _restitutions(values: list[float], cone: str) -> Array:
    if any(values) and cone == "pyramidal":
        raise UsageError("pyramidal friction cones do not bounce; leave restitution away, or --cone elliptic")
    return np.array(values, float)


def _pyramids(cone: str, options: FileOptions) -> int:
    """Contacts.pyramidal. Where the cone is left open, soft contacts have that of the file, MuJoCo's default a
    pyramid."""
    if cone == "auto":
        return SOFT_ALONE if options.cone != "elliptic" else 0
    return int(cone == "pyramidal")


def _extents(shapes: Shapes) -> Real:
    """Half extents of each shape in its own axes (n, 3)."""
    size = shapes.size.copy()
    for n, kind in enumerate(shapes.kind):
        if kind == SPHERE:
            size[n] = size[n, 0]
        elif kind in (CAPSULE, CYLINDER):
            radius, half = shapes.size[n, :2]
            size[n] = radius, radius, half + (radius if kind == CAPSULE else 0.0)
    return size


def _pair_numbers(pairs: CollisionPairs, geom: Array) -> Array:
    """Contacts.allowed for the shapes of these geoms."""
    number = np.where(pairs.allowed, 0, -1)
    for k, (a, b) in enumerate(pairs.explicit.geoms):
        number[a, b] = number[b, a] = 1 + k
    return np.ascontiguousarray(number[np.ix_(geom, geom)])


def _reach(explicit: ExplicitPairs, own: Real, allowed: Array) -> Real:
    """The margin by which each shape's box is enlarged so that all of its contacts are found [m]."""
    wide = np.array(own)
    of_pairs = explicit.margin + explicit.gap
    for n, row in enumerate(allowed):
        named = row[row > 0] - 1
        wide[n] = max([wide[n], *of_pairs[named]])
    return wide


def link_mobilities(robot: Robot, link: Array) -> Real:
    """MuJoCo's body_invweight0 of shapes on these links (n,) [1/kg]: the mobility of the link's centre of mass in the
    file's pose, mean of three axes; of a link that only slides 1 / mass; 0 in the scene.
    """
    result = np.zeros(len(link))
    if not robot.nv:
        return result
    armed = any(tendon.armature > 0 for tendon in robot.articulation.tendons)
    mobility = _with_tendons(robot) if armed else centre_mobilities(robot.model, robot.reference)
    sliding = sliding_masses_of(robot.articulation)
    for k in np.unique(link[link >= 0]):
        mass = sliding.get(robot.labels.links[k])
        result[link == k] = mobility[k] if mass is None else 1.0 / mass
    return result


def _with_tendons(robot: Robot) -> Real:
    """centre_mobilities of a robot whose tendons have armature, which tie its trees together: by the whole inverse."""
    found = robot.compute(robot.reference, quantities=["inverse_mass_matrix", "jacobian"])
    jacobian = found["jacobian"][:, :3]
    mean: Real = np.einsum("lik,lik->l", jacobian @ found["inverse_mass_matrix"], jacobian) / 3
    return mean
