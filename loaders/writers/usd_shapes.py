"""Shapes of a link as prims of USD: colliders, looks, their materials, and sites."""

from __future__ import annotations

from typing import Any

from artsim.loaders.writers.losses import WHOLE, geom_name
from artsim.loaders.writers.mesh_files import hull_of, placed_points
from artsim.loaders.writers.usd_prims import UsdStage, apply, free_path, place
from artsim.sim.articulation.description import Geom, Link, Site
from artsim.sim.foundation.errors import ModelError

FAR = 100.0  # [m] sides of a plane that has no size
FRICTION = (1.0, 0.005, 0.0001)  # of geoms that give none


def write_geom(file: UsdStage, link: Link, geom: Geom, count: int, body: str) -> None:
    """A shape below its body, as a collider unless it is only seen."""
    from pxr import UsdGeom, UsdPhysics

    called = geom_name(link.name, geom, count)
    collides = geom.role == "collision" and not geom.surface.type_bits == geom.surface.affinity_bits == 0
    geom, flaw = with_points(geom)
    if geom.kind == "heightfield" or flaw:
        told = f"its mesh {flaw}; it is left out" if flaw else "is a height field, which USD does not have"
        file.losses.lost("geom", called, WHOLE, told, physical=geom.role == "collision")
        return
    path = free_path(file, body, geom.name or f"{geom.role}_{count}")
    prim = shape_of(file, geom, path)
    if collides:
        UsdPhysics.CollisionAPI.Apply(prim)
        if geom.kind == "mesh":
            UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr("convexHull")
        if geom.kind == "ellipsoid":
            file.losses.changed("geom", called, "kind", "is a scaled sphere, which programs may take for a ball")
        write_surface(file, geom, prim, called)
        if any(other.role == "visual" for other in link.geoms):
            UsdGeom.Imageable(prim).CreatePurposeAttr("guide")
        if geom.surface.type_bits not in (0, 1) or geom.surface.affinity_bits not in (0, 1):
            told = "its bits are said by the pairs of links that do not touch"
            file.losses.changed("geom", called, "surface.type_bits", told, physical=False)
    rgba = None if geom.material is None else geom.material.rgba
    if rgba is not None:
        shown = UsdGeom.Gprim(prim)
        shown.CreateDisplayColorAttr([tuple(rgba[:3])])
        shown.CreateDisplayOpacityAttr([rgba[3]])


def with_points(geom: Geom) -> tuple[Geom, str]:
    """The geom with the points and triangles of its mesh, and the reason why it has none."""
    if geom.kind != "mesh":
        return geom, ""
    if geom.mesh is None and not geom.vertices:
        return geom, "is not at hand"
    try:
        return placed_points(geom), ""
    except ModelError as error:
        return geom, f"cannot be read ({error})"


def shape_of(file: UsdStage, geom: Geom, path: str) -> Any:
    """The prim of a shape, in its place."""
    from pxr import UsdGeom

    kind, size, stage = geom.kind, geom.size, file.stage
    pose, scale = geom.pose, None
    if kind == "sphere":
        made = UsdGeom.Sphere.Define(stage, path)
        made.CreateRadiusAttr(size[0])
    elif kind in ("cylinder", "capsule"):
        made = (UsdGeom.Cylinder if kind == "cylinder" else UsdGeom.Capsule).Define(stage, path)
        made.CreateRadiusAttr(size[0])
        made.CreateHeightAttr(2.0 * size[1])
        made.CreateAxisAttr("Z")
    elif kind == "box":
        made = UsdGeom.Cube.Define(stage, path)
        made.CreateSizeAttr(2.0)
        scale = size
    elif kind == "ellipsoid":
        made = UsdGeom.Sphere.Define(stage, path)
        made.CreateRadiusAttr(1.0)
        scale = size
    elif kind == "plane":
        made = UsdGeom.Plane.Define(stage, path)
        made.CreateAxisAttr("Z")
        made.CreateWidthAttr(2.0 * size[0] if size and size[0] else FAR)
        made.CreateLengthAttr(2.0 * size[1] if len(size) > 1 and size[1] else FAR)
    else:
        made = write_mesh(file, geom, path)
    prim = made.GetPrim()
    place(prim, pose)
    if scale is not None:
        UsdGeom.Xformable(prim).AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(tuple(scale))
    return prim


def write_mesh(file: UsdStage, geom: Geom, path: str) -> Any:
    """The triangles of a mesh in the frame of its geom."""
    import numpy as np
    from pxr import UsdGeom, Vt

    faces = geom.faces or tuple(hull_of(geom))
    mesh = UsdGeom.Mesh.Define(file.stage, path)
    points = np.array(geom.vertices, np.float32).reshape(-1, 3)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr([3] * (len(faces) // 3))
    mesh.CreateFaceVertexIndicesAttr(list(faces))
    mesh.CreateSubdivisionSchemeAttr("none")
    return mesh


def write_surface(file: UsdStage, geom: Geom, prim: Any, called: str) -> None:
    """A material with friction and bounce, one for each kind of surface."""
    from pxr import UsdPhysics, UsdShade

    friction, bounce = geom.friction or FRICTION, geom.surface.restitution
    if geom.friction is None and not bounce:
        return
    name = "surface_" + "_".join(f"{x:g}" for x in (*friction, bounce)).replace(".", "p").replace("-", "m")
    path = f"{file.root}/materials/{name}"
    material = UsdShade.Material.Define(file.stage, path)
    if path not in file.names:
        file.names.add(path)
        own = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
        own.CreateStaticFrictionAttr(friction[0])
        own.CreateDynamicFrictionAttr(friction[0])
        own.CreateRestitutionAttr(bounce)
        more = {"newton:torsionalFriction": ("Float", friction[1]), "newton:rollingFriction": ("Float", friction[2])}
        apply(material.GetPrim(), "NewtonMaterialAPI", more)
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")


def write_site(file: UsdStage, site: Site, body: str) -> None:
    """A small ball, which touches nothing, where a site is."""
    from pxr import UsdGeom

    prim = UsdGeom.Sphere.Define(file.stage, free_path(file, body, site.name or "site"))
    prim.CreateRadiusAttr(site.size[0] if site.size else 0.005)
    prim.CreatePurposeAttr("guide")
    place(prim.GetPrim(), site.pose)
    apply(prim.GetPrim(), "NewtonSiteAPI", {})
