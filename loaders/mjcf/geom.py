"""<geom>: a shape on a body, and the mass that it adds to the body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from artsim.loaders.mjcf.asset import MeshAsset, Meshes, absence, faces_in_model, refuse_outside, vertices_in_model
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.contact import read_surface
from artsim.loaders.mjcf.geom_inertia import GeomInertia, fromto_geom, geom_inertia, is_tiny
from artsim.loaders.mjcf.mesh_inertia import fit_to_mesh, mesh_geom_pose
from artsim.loaders.mjcf.orientation import read_frame
from artsim.loaders.mjcf.reading import Item, describe
from artsim.sim.articulation.description import FluidShape, Geom, GeomKind, Material, Pose, Surface
from artsim.sim.articulation.pose_algebra import compose, conjugate, cross, rotate
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

SIZES = {
    "plane": 3,
    "hfield": 0,
    "sphere": 1,
    "capsule": 2,
    "ellipsoid": 3,
    "cylinder": 2,
    "box": 3,
    "mesh": 0,
    "sdf": 0,
}
KINDS: dict[str, GeomKind] = {"hfield": "heightfield", "sdf": "mesh"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A geom as read: its kind in MJCF's words, its frame as in the file (MuJoCo moves the frame of a mesh)."""

    item: Item
    kind: str
    size: tuple[float, ...]
    pose: Pose  # in the body
    mesh: MeshAsset | None = None
    moved: Pose = Pose()  # of a shape fitted to a mesh: its frame in the geom's frame of the file


def read_shape(item: Item, compiler: Compiler, meshes: Meshes, frame: Pose) -> Shape:
    """The geom's kind, size and frame, fitted to a mesh if it names one."""
    kind = item.word("type", tuple(SIZES), "sphere")
    size = item.filled("size", (0.0, 0.0, 0.0))
    mesh = meshes.find(item) if item.has("mesh") else None
    if kind in ("mesh", "sdf") and mesh is None:
        item.refuse("has type mesh and no mesh")
    pose = read_frame(item, compiler.angles)
    if item.has("fromto"):
        size, pose = fromto(item, kind)
        if any(item.vector("pos", (0.0, 0.0, 0.0))):
            item.refuse("has both pos and fromto")
    if kind == "plane" and size[2] <= 0:
        item.refuse("size is not positive in its third number, the spacing of the plane's grid")
    if item.has("material") and item.text("material") not in meshes.materials:
        close = nearest(item.text("material")[:80], sorted(meshes.materials))
        item.refuse(f"material {item.text('material')[:80]!r} does not exist{close}")
    if mesh is None and kind != "plane":
        refuse_flat(item, kind, size)
    shape = Shape(item, kind, tuple(size[: SIZES[kind]]), compose(frame, pose), mesh)
    return fitted(shape, mesh, compiler, meshes) if mesh is not None and mesh.at_hand else shape


def fitted(shape: Shape, mesh: MeshAsset, compiler: Compiler, meshes: Meshes) -> Shape:
    """The primitive fitted to the mesh that the geom names; a mesh geom unchanged."""
    if shape.kind in ("mesh", "sdf"):
        return shape
    centred, scale = meshes.shape(mesh, shape.item), shape.item.number("fitscale", 1.0)
    size, centre = shape.item.tried(lambda: fit_to_mesh(shape.kind, centred, aabb=compiler.fit_aabb, scale=scale))
    refuse_flat(shape.item, shape.kind, size)
    moved = mesh_geom_pose(Pose(), centred, centre)
    return replace(shape, size=size[: SIZES[shape.kind]], pose=compose(shape.pose, moved), mesh=None, moved=moved)


def refuse_flat(item: Item, kind: str, size: Sequence[float]) -> None:
    """Refuse sizes that are not positive; a capsule fitted to a mesh that is wider than long has one."""
    if min((*size[: SIZES[kind]], 1.0)) <= 0:
        item.refuse(f"size is {' '.join(f'{x:g}' for x in size)}, want {SIZES[kind]} positive for a {kind}")


def fromto(item: Item, kind: str) -> tuple[tuple[float, ...], Pose]:
    """Size and pose of a geom between two points."""
    size, ends = item.filled("size", (0.0, 0.0, 0.0)), item.numbers("fromto", 6, 6)
    return item.tried(lambda: fromto_geom(kind, size, ends))


def describe_geom(shape: Shape, meshes: Meshes) -> Geom:
    """The shape for the description."""
    item, mesh, surface = shape.item, shape.mesh, belt(read_surface(shape.item), shape.moved)
    seen_only = surface.type_bits == 0 and surface.affinity_bits == 0
    if mesh is not None and not seen_only:
        refuse_outside(mesh)
    sliding, torsional, rolling = item.filled("friction", (1.0, 0.005, 0.0001))
    size = () if mesh is not None else shape.size
    heights: tuple[Sequence[float], ...] = ()
    absent = "" if mesh is None else absence(mesh)
    if shape.kind == "hfield":
        size, heights, absent = meshes.field_shape(item)
    return Geom(
        name=item.text("name"),
        kind=KINDS.get(shape.kind, shape.kind),  # type: ignore[arg-type]
        role="visual" if seen_only else "collision",
        size=size,
        pose=shape.pose,
        mesh=None if mesh is None else mesh.path,
        mesh_uri="" if mesh is None else mesh.uri,
        mesh_absent=absent,
        vertices=() if mesh is None else vertices_in_model(mesh),
        faces=() if mesh is None else faces_in_model(mesh),
        most_hull_vertices=-1 if mesh is None else mesh.item.whole("maxhullvert", -1),
        heights=heights,
        mesh_pose=Pose() if mesh is None else mesh.pose,
        scale=(1.0, 1.0, 1.0) if mesh is None else mesh.scale,
        material=looks(item, meshes),
        hidden=is_hidden(item, meshes),
        group=item.whole("group"),
        friction=(sliding, torsional, rolling),
        surface=surface,
        fluid=read_fluid_shape(shape, meshes),
        source=item.reading.at(item.element),
    )


def belt(surface: Surface, frame: Pose) -> Surface:
    """The surface with its velocity in a new frame, which has the pose `frame` in the geom's own."""
    if not any(surface.velocity) or frame == Pose():
        return surface
    linear, angular = surface.velocity[:3], surface.velocity[3:]
    there = [a + b for a, b in zip(linear, cross(angular, frame.position), strict=True)]  # type: ignore[arg-type]
    back = conjugate(frame.rotation)
    return replace(surface, velocity=(*rotate(back, tuple(there)), *rotate(back, angular)))  # type: ignore[arg-type]


def read_fluid_shape(shape: Shape, meshes: Meshes) -> FluidShape | None:
    """fluidshape, fluidcoef: the ellipsoid that a medium acts on; for a mesh it reaches as far as the vertices."""
    item, pose, size = shape.item, shape.pose, shape.size
    if item.word("fluidshape", ("none", "ellipsoid"), "none") == "none" or shape.kind in ("plane", "hfield"):
        return None  # planes and height fields are in the world, which a medium does not move
    if shape.mesh is not None and shape.mesh.at_hand:
        centred = meshes.shape(shape.mesh, item)
        size = tuple(max(-low, high) for low, high in zip(centred.lower, centred.upper, strict=True))
        pose = mesh_geom_pose(pose, centred)
    if not size:
        item.refuse(f"fluidshape: a {shape.kind} is no ellipsoid")
    if shape.kind == "capsule":
        size = (size[0], size[0], size[0] + size[1])
    axes = (size[0], size[0 if len(size) < 3 else 1], size[-1])
    return FluidShape(axes, pose, *item.filled("fluidcoef", (0.5, 0.25, 1.5, 1.0, 1.0)))


def looks(item: Item, meshes: Meshes) -> Material | None:
    """The geom's material, with the geom's own colour if it has one."""
    material = meshes.materials.get(item.text("material"))
    if not item.has("rgba"):
        return material
    red, green, blue, alpha = item.filled("rgba", (0.5, 0.5, 0.5, 1.0))
    return replace(material or Material(), rgba=(red, green, blue, alpha))


def is_hidden(item: Item, meshes: Meshes) -> bool:
    """True if the geom is wholly transparent, by its material, else by its own colour, which a material overrides."""
    if item.has("material"):
        colour = meshes.materials[item.text("material")].rgba
        return colour is not None and colour[3] == 0
    return item.filled("rgba", (0.5, 0.5, 0.5, 1.0))[3] == 0


def mass_of(shape: Shape, meshes: Meshes) -> tuple[GeomInertia, Pose]:
    """Mass and moments that the geom adds to its body, and their frame in the body."""
    item, kind, size, pose = shape.item, shape.kind, shape.size, shape.pose
    mass = item.number("mass", least=0.0) if item.has("mass") else None
    density = item.number("density", 1000.0, least=0.0)
    centred = None
    if shape.mesh is not None and mass != 0 and (mass is not None or density):
        centred = meshes.shape(shape.mesh, item)
        pose = mesh_geom_pose(pose, centred)
    elif shape.mesh is not None:
        return GeomInertia(0.0, (0.0, 0.0, 0.0)), pose
    if kind == "hfield":
        kind, size = "box", meshes.field_box(item)
    shell = item.flag("shellinertia")
    inertia = item.tried(lambda: geom_inertia(kind, size, mass=mass, density=density, shell=shell, mesh=centred))
    if mass and is_tiny(kind, size, shell):
        told = f"{describe(item.element)}: keeps its mass of {mass:g} kg; MuJoCo gives none to so small a geom"
        item.reading.note(item.element, told, once="tiny geom with a mass")
    return inertia, pose
