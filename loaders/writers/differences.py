"""Differences between a robot and the one that its written file is read as, field by field.

Fields have one form for all formats: inertias in link axes, meshes as maps of their files, loops as relations.
Poses and axes of joints are not compared here, since formats place frames differently: proof.py compares where links
are and how heavy they feel at random states.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.loaders.writers.losses import WHOLE, Losses, geom_name, name_of
from artsim.sim.articulation.description import Articulation, Geom, Inertial, Joint, Link, Loop, Pose
from artsim.sim.articulation.pose_algebra import compose, conjugate
from artsim.sim.foundation.rotations import rotation_matrix, symmetric

TOLERANCE = 1e-9  # relative to the numbers compared, and to LEAST
LEAST = 2e-5  # below which numbers are compared to this: differences of 2e-14 are rounding
MASSLESS = 1e-12  # [kg] below which a centre of mass is of no concern
WORLD = "world"
FRICTION = (1.0, 0.005, 0.0001)
Fields = dict[str, Any]
SCALAR = ("revolute", "continuous", "prismatic")
NOT_COMPARED = frozenset(("source", "held_inputs"))


class Difference(NamedTuple):
    """A field whose values differ; `told`: the writer said so."""

    kind: str
    name: str
    field: str
    before: Any
    after: Any
    told: bool
    physical: bool  # of what was told: it affects motion, forces or contacts


def differences(before: Articulation, after: Articulation, losses: Losses) -> list[Difference]:
    """Every field that differs, in the order of kinds and items."""
    found: list[Difference] = []
    first, second = described(before, after, losses), described(after, before, losses, second=True)
    for key, fields in first.items():
        kind, name = key
        if key not in second:
            found.append(difference(losses, kind, name, "name", "there", "missing"))
            continue
        for field, value, other in unequal(fields, second[key]):
            found.append(difference(losses, kind, name, field, value, other))
    for loss in losses.entries:  # geoms that the file lacks are in neither, so that those after them are still paired
        if (loss.outcome, loss.kind, loss.field) == ("lost", "geom", WHOLE):
            found.append(Difference("geom", loss.name, WHOLE, "there", "missing", True, loss.physical))
    for kind, name in second.keys() - first.keys():
        found.append(difference(losses, kind, name, WHOLE, "missing", "there"))
    return found


def difference(losses: Losses, kind: str, name: str, field: str, before: Any, after: Any) -> Difference:
    """A difference, with the loss that told of it."""
    loss = losses.of(kind, name, field)
    return Difference(kind, name, field, before, after, loss is not None, loss is None or loss.physical)


def unequal(first: Fields, second: Fields) -> Iterator[tuple[str, Any, Any]]:
    """The fields in which two items differ."""
    for field in first.keys() | second.keys():
        value, other = first.get(field), second.get(field)
        if not equal(value, other):
            yield field, value, other


def equal(a: Any, b: Any) -> bool:
    """True for equal words and for numbers that differ by no more than TOLERANCE."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return abs(a - b) <= TOLERANCE * max(LEAST, abs(a), abs(b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
        return a.shape == b.shape and bool((np.abs(a - b) <= TOLERANCE * max(scale, LEAST)).all())
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def described(
    robot: Articulation, other: Articulation, losses: Losses, *, second: bool = False
) -> dict[tuple[str, str], Fields]:
    """The fields of every item, by kind and name. `second`: the robot was read from the written file, and `other` is
    the one that was written."""
    items: dict[tuple[str, str], Fields] = {}
    names = {link.name for link in other.links}
    above = ancestors(robot)
    for link in robot.links:
        if link.name == WORLD and link.name not in names and not link.geoms:
            continue
        up = above.get(link.name, WORLD)
        while up != WORLD and up not in names:
            up = above.get(up, WORLD)
        items["link", link.name] = {**link_fields(link), "parent": up}
    for joint in robot.joints:
        if joint.kind != "fixed":
            items["joint", joint.name] = joint_fields(joint)
    if robot.base == "floating":
        for link in robot.links:
            if link.name not in above:
                items["joint", "root"] = joint_fields(Joint("root", "free", WORLD, link.name))
    for loop in robot.loops:
        items["loop", loop.name] = loop_fields(loop)
    for kind, parts in (
        ("coupling", robot.couplings),
        ("tendon", robot.tendons),
        ("tendon coupling", robot.tendon_couplings),
        ("wrap geom", robot.wrap_geoms),
        ("actuator", robot.actuators),
        ("site", robot.sites),
        ("contact pair", robot.contact_pairs),
        ("sensor", robot.sensors),
        ("keyframe", robot.keyframes),
    ):
        for part in parts:
            items[kind, name_of(part)] = dict(flat(part))
    for pair in robot.no_contact if "sdf" not in (robot.format, other.format) else ():  # the table of pairs has them
        items["excluded pair", " - ".join(sorted(pair))] = {}
    items["option", ""] = option_fields(robot)
    add_geoms(robot, other, losses, items, second=second)
    return items


def ancestors(robot: Articulation) -> dict[str, str]:
    """The link above each link that a joint holds."""
    above: dict[str, str] = {}
    for joint in robot.joints:
        above.setdefault(joint.child, joint.parent)
    return above


def link_fields(link: Link) -> Fields:
    """Mass, centre of mass, inertia about it in link axes, and the share of the weight that is compensated."""
    inertial = link.inertial
    if link.name == WORLD or inertial is None:
        inertial = Inertial(0.0)
    R = rotation_matrix(inertial.pose.rotation)
    return {
        "inertial.mass": np.array([inertial.mass]),
        "inertial.centre": np.array(inertial.pose.position if inertial.mass > MASSLESS else (0.0, 0.0, 0.0)),
        "inertial.inertia": R @ symmetric(inertial.inertia) @ R.T,
        "gravity_compensation": link.gravity_compensation,
    }


def joint_fields(joint: Joint) -> Fields:
    """All but the frames, which FK compares."""
    fields = dict(flat(joint))
    for name in (
        "parent",
        "child",
        "axis",
        "name",
        "reference",
        *(key for key in fields if key.startswith(("pose", "anchor"))),
    ):
        fields.pop(name, None)
    if joint.kind in ("revolute", "continuous"):
        fields["kind"] = "revolute"
    if joint.kind in SCALAR and joint.effort is not None and joint.actuator_range is None:
        fields["actuator_range"] = (-joint.effort, joint.effort)
    if not joint.turning.given:
        fields = {name: value for name, value in fields.items() if not name.startswith("turning")}
    return fields


def loop_fields(loop: Loop) -> Fields:
    """The relation of the links that a loop holds, in place of its two frames."""
    fields = dict(flat(dataclasses.replace(loop, frame_a=Pose(), frame_b=Pose())))
    fields = {name: value for name, value in fields.items() if not name.startswith("frame_")}
    if loop.kind == "connect":
        return {**fields, "points": (loop.frame_a.position, loop.frame_b.position)}
    if loop.kind == "weld":
        a = compose(loop.frame_a, Pose(rotation=conjugate(loop.frame_b.rotation)))
        return {**fields, "relation": (*pose_fields(a), loop.frame_b.position)}
    return {**fields, "frames": (*pose_fields(loop.frame_a), *pose_fields(loop.frame_b))}


def option_fields(robot: Articulation) -> Fields:
    """The options of the file; gravity as artsim takes it."""
    fields = dict(flat(robot.options))
    fields["gravity"] = robot.options.gravity or (0.0, 0.0, -9.81)
    fields["integrator"] = None if robot.options.integrator == "Euler" else robot.options.integrator
    return fields


def pose_fields(pose: Pose) -> tuple[Any, ...]:
    """Position and rotation, of the two quaternions of a rotation the one with a positive first number."""
    return pose.position, tuple(rotation_matrix(pose.rotation).ravel().tolist())


def flat(item: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Fields of a dataclass by their paths; poses by matrices, parameters without zeros at the end."""
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if field.name in NOT_COMPARED:
            continue
        if isinstance(value, Pose):
            value = pose_fields(value)
        elif dataclasses.is_dataclass(value):
            yield from flat(value, f"{prefix}{field.name}.")
            continue
        elif field.name in ("gear", "coefficients") or field.name.endswith("_parameters"):
            value = tuple(np.trim_zeros(np.array(value, float), "b").tolist())
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            value = tuple(tuple(flat(part)) for part in value)
        yield prefix + field.name, value


# --- geoms -----------------------------------------------------------------------------------------------------------


def add_geoms(
    robot: Articulation, other: Articulation, losses: Losses, items: dict[tuple[str, str], Fields], *, second: bool
) -> None:
    """The geoms of every link, of each role by themselves, under the names that the writer told them by."""
    others = {link.name: link for link in (other.links if second else ())}
    for link in robot.links:
        for role in ("visual", "collision"):
            own = [(count, geom) for count, geom in enumerate(link.geoms) if role_of(geom) == role]
            if second and link.name in others:
                written = [
                    geom_name(link.name, geom, count)
                    for count, geom in enumerate(others[link.name].geoms)
                    if role_of(geom) == role
                ]
                called = [name for name in written if not losses.covers("geom", name, WHOLE)]
                called += [f"{link.name}/[{role} {n}]" for n in range(len(called), len(own))]
            else:
                called = [geom_name(link.name, geom, count) for count, geom in own]
            for name, (_, geom) in zip(called, own, strict=False):
                if second or not losses.covers("geom", name, WHOLE):
                    items["geom", name] = geom_fields(geom)


def role_of(geom: Geom) -> str:
    """The role of a geom by its bits, which MJCF has in place of roles."""
    surface = geom.surface
    return "visual" if surface.type_bits == surface.affinity_bits == 0 else geom.role


def geom_fields(geom: Geom) -> Fields:
    """The shape of a geom in its link, its surface and its looks."""
    fields: Fields = {
        "kind": geom.kind,
        "group": geom.group,
        "fluid": None if geom.fluid is None else tuple(flat(geom.fluid)),
    }
    if geom.kind == "mesh":
        content, place = mesh_content(geom), mesh_map(geom)
        fields["mesh"] = content if isinstance(content, str) else content @ place[:, :3].T + place[:, 3]
        fields["most_hull_vertices"] = geom.most_hull_vertices
    else:
        fields["size"] = () if geom.kind == "plane" else geom.size  # a plane has no end where it touches
        fields["pose"] = pose_fields(geom.pose)
    if geom.kind == "heightfield":
        lowest = min(map(min, geom.heights), default=0.0)
        fields["heights"] = np.array([list(row) for row in geom.heights]) - lowest
        fields["pose"] = pose_fields(compose(geom.pose, Pose((0.0, 0.0, lowest))))
    if role_of(geom) == "collision":
        fields |= dict(flat(geom.surface, "surface."))
        del fields["surface.type_bits"], fields["surface.affinity_bits"]  # the table of pairs compares what they mean
        fields["friction"] = geom.friction or FRICTION
    if geom.material is not None:
        fields["material"] = geom.material.rgba
    return fields


def mesh_map(geom: Geom) -> Any:
    """The map (3, 4) of points of the mesh's file into the link's frame."""
    R = rotation_matrix(geom.pose.rotation)
    A = R @ np.diag(geom.scale) @ rotation_matrix(geom.mesh_pose.rotation).T
    return np.column_stack([A, np.array(geom.pose.position) - A @ np.array(geom.mesh_pose.position)])


def mesh_content(geom: Geom) -> Any:
    """The points of a mesh, of its file or in the model; its name without either."""
    if geom.vertices:
        return np.array(geom.vertices).reshape(-1, 3)
    if geom.mesh is None:
        return geom.mesh_uri
    return mesh_points(geom.mesh)


_points: dict[Path, Any] = {}


def mesh_points(path: Path) -> Any:
    """The points of a mesh file, each file once; its path where it cannot be read."""
    from artsim.collision.mesh import MeshError, read_mesh

    if path not in _points:
        try:
            _points[path] = read_mesh(path).vertices
        except MeshError as error:
            _points[path] = str(error)
    return _points[path]


def by_kind(found: Sequence[Difference]) -> Mapping[str, list[Difference]]:
    """The differences by the kind of item."""
    kinds: dict[str, list[Difference]] = {}
    for difference in found:
        kinds.setdefault(difference.kind, []).append(difference)
    return kinds
