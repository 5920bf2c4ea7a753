"""ModelRecord, the robot as stored in /model of an output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from artsim.io.format.labels import DIMENSIONS
from artsim.io.output_file.layout import Section, texts
from artsim.io.output_file.pieces import lay_out_pieces

if TYPE_CHECKING:
    from artsim.sim.articulation.description import Articulation
    from artsim.sim.geometry.solids import Kept


class MeshRecord(NamedTuple):
    """One use of a mesh file: link, the URI as written, the file it resolved to ("" when not found)."""

    link: str
    uri: str
    path: str = ""


class ModelRecord(NamedTuple):
    """The robot as stored in a run file. Sequences are per link or per joint; missing limits are ±inf."""

    text: str
    format: str
    name: str
    path: str
    sha256: str
    links: tuple[str, ...]
    link_parents: tuple[str, ...]  # "" for a root
    link_masses: tuple[float, ...]  # [kg]
    joints: tuple[str, ...] = ()
    joint_types: tuple[str, ...] = ()
    joint_parents: tuple[str, ...] = ()
    joint_children: tuple[str, ...] = ()
    joint_lower: tuple[float, ...] = ()  # [rad or m]
    joint_upper: tuple[float, ...] = ()
    joint_effort: tuple[float, ...] = ()  # [N m or N]
    joint_velocity: tuple[float, ...] = ()  # [rad/s or m/s]
    meshes: tuple[MeshRecord, ...] = ()
    warnings: tuple[str, ...] = ()  # about the file
    kept: Kept | None = None  # shapes as which meshes and height fields collide and are seen


def model_record(robot: Articulation, kept: Kept | None = None) -> ModelRecord:
    """The record of a robot, with the shapes of everything that may touch or be seen."""
    import hashlib

    inf = float("inf")
    joints = robot.joints
    parents = {joint.child: joint.parent for joint in joints}
    return ModelRecord(
        text=robot.text,
        format=robot.format,
        name=robot.name,
        path=str(Path(robot.path).absolute()) if Path(robot.path).is_file() else robot.path,  # found from anywhere
        sha256=hashlib.sha256(robot.text.encode()).hexdigest(),
        links=tuple(link.name for link in robot.links),
        link_parents=tuple(parents.get(link.name, "") for link in robot.links),
        link_masses=tuple(link.inertial.mass if link.inertial else 0.0 for link in robot.links),
        joints=tuple(joint.name for joint in joints),
        joint_types=tuple(joint.kind for joint in joints),
        joint_parents=tuple(joint.parent for joint in joints),
        joint_children=tuple(joint.child for joint in joints),
        joint_lower=tuple(-inf if joint.lower is None else joint.lower for joint in joints),
        joint_upper=tuple(inf if joint.upper is None else joint.upper for joint in joints),
        joint_effort=tuple(inf if joint.effort is None else joint.effort for joint in joints),
        joint_velocity=tuple(inf if joint.velocity is None else joint.velocity for joint in joints),
        meshes=tuple(
            MeshRecord(link.name, geom.mesh_uri, str(geom.mesh or ""))
            for link in robot.links
            for geom in link.geoms
            if geom.kind == "mesh"
        ),
        warnings=tuple(map(str, robot.notes)),
        kept=kept,
    )


MOST_WARNINGS, MOST_LETTERS = 200, 500  # number and length of a model's warnings in an output


def lay_out_model(section: Section, model: ModelRecord) -> None:
    """Write /model: the robot's file as text, and facts that readers need without parsing it."""
    section.set_attributes({"name": model.name, "format": model.format, "path": model.path, "sha256": model.sha256})
    if model.warnings:
        section.set_attributes({"warnings": json.dumps(shortened(model.warnings), ensure_ascii=False)})
    for dim, values in (("link", model.links), ("joint", model.joints)):
        attributes = {"units": "1", "long_name": DIMENSIONS[dim]}
        section.group.fixed(dim, texts(values), [dim], attributes)
    if model.kept is not None:
        lay_out_pieces(section, model.kept)
    if model.meshes:
        numbers = np.arange(len(model.meshes))
        section.group.fixed("mesh", numbers, ["mesh"], {"units": "1", "long_name": "mesh number"})
        for field in ("uri", "path", "link"):
            section.fixed(f"mesh_{field}", texts([getattr(mesh, field) for mesh in model.meshes]))
    section.fixed("source", np.array(model.text, dtype=object))
    section.fixed("link_parent", texts(model.link_parents))
    section.fixed("link_mass", np.array(model.link_masses, dtype=np.float64))
    for field, attribute in (("type", "joint_types"), ("parent", "joint_parents"), ("child", "joint_children")):
        section.fixed(f"joint_{field}", texts(getattr(model, attribute)))
    for field in ("lower", "upper", "effort", "velocity"):
        section.fixed(f"joint_{field}", np.array(getattr(model, f"joint_{field}"), dtype=np.float64))


def shortened(warnings: Sequence[str]) -> list[str]:
    """The warnings limited to MOST_WARNINGS and MOST_LETTERS; the last one gives the number of omitted ones."""
    kept = [told if len(told) <= MOST_LETTERS else f"{told[:MOST_LETTERS]} …" for told in warnings[:MOST_WARNINGS]]
    more = len(warnings) - len(kept)
    return [*kept, f"{more} more; artsim check lists all"] if more else kept
