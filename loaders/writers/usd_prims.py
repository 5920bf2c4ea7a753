"""The stage of USD being written, and what its prims have in common: paths, schemas, places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from artsim.loaders.writers.losses import Losses
from artsim.sim.articulation.description import Articulation, Pose
from artsim.sim.foundation.dataclass import dataclass


@dataclass(slots=True)
class UsdStage:
    """The stage as far as it is written."""

    robot: Articulation
    losses: Losses
    stage: Any
    root: str
    bodies: dict[str, str] = field(default_factory=dict)  # paths of links that are rigid bodies
    joints: dict[str, str] = field(default_factory=dict)  # paths of joints
    names: set[str] = field(default_factory=set)  # paths that are taken


def free_path(file: UsdStage, parent: str, wanted: str) -> str:
    """A path below another, of a name that USD allows and that is not taken."""
    from pxr import Tf

    name = Tf.MakeValidIdentifier(wanted or "unnamed")
    while f"{parent}/{name}" in file.names:
        name += "_"
    file.names.add(f"{parent}/{name}")
    return f"{parent}/{name}"


def named_path(file: UsdStage, folder: str, kind: str, name: str) -> str:
    """The path of a link or joint; another name than its own is told."""
    path = free_path(file, f"{file.root}/{folder}", name)
    written = path.rpartition("/")[2]
    if written != name:
        file.losses.rename(kind, name, written, "since USD has letters, digits and _ alone")
    return path


def apply(prim: Any, schema: str, values: Mapping[str, tuple[str, Any]]) -> None:
    """Apply a schema that need not be installed, with attributes by name: their types and values."""
    from pxr import Sdf

    prim.AddAppliedSchema(schema)
    for name, (kind, value) in values.items():
        prim.CreateAttribute(name, getattr(Sdf.ValueTypeNames, kind), custom=False).Set(value)


def place(prim: Any, pose: Pose) -> None:
    """xformOp:translate and orient, in 64 bits."""
    from pxr import Gf, UsdGeom

    form = UsdGeom.Xformable(prim)
    double = UsdGeom.XformOp.PrecisionDouble
    w, *xyz = pose.rotation
    form.AddTranslateOp(double).Set(Gf.Vec3d(*pose.position))
    form.AddOrientOp(double).Set(Gf.Quatd(w, *xyz))
