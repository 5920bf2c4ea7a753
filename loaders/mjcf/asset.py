"""<asset>: meshes, height fields and materials that geoms refer to. Textures are not read."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from artsim.loaders.assets import (
    MAX_URI,
    SCHEME,
    AssetMissingError,
    AssetOutsideError,
    AssetRefusedError,
    Assets,
    listed,
)
from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.geom_inertia import TINY, MeshShape
from artsim.loaders.mjcf.mesh_inertia import MESH_INERTIAS, mesh_shape, read_mesh_shape
from artsim.loaders.mjcf.orientation import unit_quaternion
from artsim.loaders.mjcf.reading import Item, MjcfReading, describe
from artsim.loaders.mjcf.scope import Scope
from artsim.sim.articulation.description import Material, Pose, Quaternion, Vector3
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_HEIGHTS = 20_000_000  # of all height fields of a model: enough for one of 4097 x 4097 and a few small ones
MOST_NUMBERS = 2_000_000  # of a mesh's vertices or faces listed in the model
Heights = tuple[Sequence[float], ...]  # [m] rows along y, columns along x; arrays, 8 bytes a number


@dataclass(frozen=True, slots=True)
class MeshAsset:
    """A mesh by its name; `path` is None if the file was not searched for, not found or not allowed."""

    item: Item
    uri: str
    path: Path | None
    scale: Vector3
    pose: Pose  # refpos and refquat
    inertia: str  # MuJoCo's method of computing its mass

    @property
    def by_plugin(self) -> bool:
        """True if the vertices come from a plugin, which was left out."""
        return len(self.item.element) > 0 and not (self.uri or self.item.has("vertex"))

    @property
    def at_hand(self) -> bool:
        """True if the vertices, or the numbers that an output stores in their place, are available."""
        return self.path is not None or self.item.has("vertex") or self.item.has("centred")


@dataclass(slots=True)
class Meshes:
    """The meshes of a model, by name; read only when a geom's mass needs them."""

    reading: MjcfReading
    by_name: dict[str, MeshAsset] = field(default_factory=dict)
    materials: dict[str, Material] = field(default_factory=dict)
    fields: dict[str, tuple[float, ...]] = field(default_factory=dict)  # of height fields: sizes x, y, top, bottom [m]
    heights: dict[str, Heights] = field(default_factory=dict)  # of height fields
    heights_absent: dict[str, str] = field(default_factory=dict)  # of height fields: the reason why there are none
    shapes: dict[str, MeshShape] = field(default_factory=dict)

    def find(self, item: Item) -> MeshAsset:
        """The mesh that a geom names."""
        name = item.text("mesh")
        if name not in self.by_name:
            item.refuse(f"mesh {name[:80]!r} does not exist{nearest(name, sorted(self.by_name))}")
        return self.by_name[name]

    def field_box(self, item: Item) -> tuple[float, float, float]:
        """Half sizes [m] of the box that gives a height field its mass: MuJoCo's guess, independent of the heights."""
        x, y, top, bottom = self.fields[self.field_named(item)]
        return (x, y, 0.25 * top + 0.5 * bottom)

    def field_shape(self, item: Item) -> tuple[tuple[float, ...], Heights, str]:
        """Half lengths and depth of a height field [m], its heights, and why there are none ('': not searched for)."""
        name = self.field_named(item)
        x, y, _, bottom = self.fields[name]
        return (x, y, bottom), self.heights[name], self.heights_absent.get(name, "")

    def field_named(self, item: Item) -> str:
        """The height field that a geom names."""
        name = item.text("hfield")
        if name not in self.fields:
            item.refuse(f"hfield {name[:80]!r} does not exist{nearest(name, sorted(self.fields))}")
        return name

    def read_from_files(self) -> dict[str, str]:
        """Shapes read from mesh files, as text, by the meshes' numbers."""
        return {
            self.reading.meshes[mesh.item.element]: as_numbers(self.shapes[name])
            for name, mesh in self.by_name.items()
            if mesh.path is not None and name in self.shapes
        }

    def shape(self, mesh: MeshAsset, item: Item) -> MeshShape:
        """The mesh as MuJoCo centres it, for the inertia of a geom; each mesh is read once."""
        key = asset_name(mesh.item.element)
        if key not in self.shapes:
            self.shapes[key] = shape = read_shape(mesh, item)
            if not shape.closed:
                what = "is not closed: it weighs what MuJoCo's pyramids over its faces do; inertia='convex': its hull"
                self.reading.note(mesh.item.element, f"mesh {key!r} {what}", once="open mesh")
        return self.shapes[key]


def read_shape(mesh: MeshAsset, user: Item) -> MeshShape:
    """The shape of a mesh file, or of vertices in the model. `user` is the geom whose mass needs the shape."""
    item = mesh.item
    if item.has("centred"):
        return from_numbers(item.numbers("centred", 17, 17))
    options: dict[str, Any] = {"kind": mesh.inertia, "scale": mesh.scale, "refpos": mesh.pose.position}
    options["refquat"] = mesh.pose.rotation
    options["maxhullvert"] = item.whole("maxhullvert", -1)
    if mesh.path is not None:
        path = mesh.path
        return item.tried(lambda: read_mesh_shape(path, max_faces=item.reading.max_faces, **options))
    refuse_outside(mesh)
    if mesh.uri:
        user.refuse(f"mesh {mesh.uri!r}, which its mass comes from, {why_absent(mesh)}")
    return item.tried(lambda: mesh_shape(table(item, "vertex"), whole(item, "face"), **options))


def from_numbers(x: tuple[float, ...]) -> MeshShape:
    """The shape from the numbers that `as_numbers` wrote."""
    return MeshShape(
        Pose((x[0], x[1], x[2]), (x[3], x[4], x[5], x[6])),
        x[7],
        (x[8], x[9], x[10]),
        (x[11], x[12], x[13]),
        (x[14], x[15], x[16]),
    )


def as_numbers(shape: MeshShape) -> str:
    """All numbers that a model takes from a mesh file, with all digits, for the text that an output holds."""
    numbers = (*shape.pose.position, *shape.pose.rotation, shape.amount, *shape.box, *shape.lower, *shape.upper)
    return " ".join(map(repr, numbers))


def why_absent(mesh: MeshAsset) -> str:
    """The reason why the mesh has no file: not searched for, not allowed, or not found."""
    if mesh.item.element in mesh.item.reading.outside:
        return f"was not opened: {mesh.item.reading.outside[mesh.item.element]}"
    for absent in mesh.item.reading.missing.values():
        for element, _, tried in absent:
            if element is mesh.item.element:
                return f"was not found: {tried}"
    return "was not looked for"


def refuse_outside(mesh: MeshAsset) -> None:
    """Refuse a mesh that a geom needs and that may not be read."""
    why = mesh.item.reading.outside.get(mesh.item.element)
    if why:
        mesh.item.refuse(f"{mesh.uri!r}: {why}")


def vertices_in_model(mesh: MeshAsset) -> tuple[float, ...]:
    """The vertices of a mesh that has no file."""
    return mesh.item.numbers("vertex", 0, MOST_NUMBERS, ()) if not mesh.uri else ()


def faces_in_model(mesh: MeshAsset) -> tuple[int, ...]:
    """The faces of a mesh that has no file; () if it has none."""
    if mesh.uri or not mesh.item.has("face"):
        return ()
    numbers = mesh.item.numbers("face", 0, MOST_NUMBERS)
    faces = [int(number) for number in numbers]
    if any(face != number for face, number in zip(faces, numbers, strict=True)):
        mesh.item.refuse("face wants whole numbers")
    vertices = len(vertices_in_model(mesh)) // 3
    if len(faces) % 3 or any(not 0 <= number < vertices for number in faces):
        mesh.item.refuse(f"face wants three numbers of vertices each, 0 to {vertices - 1}")
    return tuple(faces)


def absence(mesh: MeshAsset) -> str:
    """The reason why a geom of this mesh is not available; '' if it is, or if the file was not searched for."""
    if mesh.by_plugin:
        return "made by a plugin, which is not supported"
    if not mesh.uri or mesh.path is not None or mesh.item.reading.assets is None:
        return ""
    return why_absent(mesh).removeprefix("was ")


def table(item: Item, name: str) -> Any:
    """The numbers of an attribute as an array (n, 3)."""
    import numpy as np

    values = item.numbers(name, 0, MOST_NUMBERS, ())
    if len(values) % 3:
        item.refuse(f"{name} holds {len(values)} numbers, want a multiple of 3")
    return np.array(values, float).reshape(-1, 3)


def whole(item: Item, name: str) -> Any:
    """The whole numbers of an attribute as an array (n, 3)."""
    values = table(item, name)
    if (values != values.round()).any():
        item.refuse(f"{name} wants whole numbers")
    return values.astype(int)


def asset_name(element: Element) -> str:
    """The name of an asset; without one, its file's name without extension."""
    return element.get("name") or PurePosixPath(element.get("file", "").replace("\\", "/")).stem


def read_meshes(reading: MjcfReading, root: Element, scope: Scope) -> Meshes:
    """Every <mesh> and <hfield> of every <asset>."""
    meshes = Meshes(reading)
    for section in children(root, "asset"):
        for element in section:
            if tag(element) == "mesh":
                name, mesh = read_mesh(scope.defaults.item(element), scope.compiler_at(element))
                if name in meshes.by_name:
                    reading.refuse(element, f"{describe(element)}: mesh {name!r} is already defined")
                meshes.by_name[name] = mesh
            elif tag(element) == "hfield":
                read_field(meshes, scope.defaults.item(element), scope.compiler_at(element))
            elif tag(element) == "material":
                material = read_material(scope.defaults.item(element))
                meshes.materials[material.name] = material
    return meshes


def name_beside_includes(reading: MjcfReading, root: Element, compiler: Compiler) -> None:
    """Rewrite names of files beside an included file as paths from the model's meshdir. As in MuJoCo 4, a name that
    leads to no file from the model is relative to the folder of the included file, without meshdir. From the model
    means from meshdir for a mesh, assetdir for a height field, and the model's own folder for a flexcomp. With
    strippath only meshdir counts.
    """
    folders = reading.folders
    if folders is None or folders.folder is None or compiler.strip_path or not reading.included:
        return
    assets, meshes = (
        [""] + [element.get(name, "") for element in children(root, "compiler") if name in element.attrib]
        for name in ("assetdir", "meshdir")
    )
    first = {"mesh": (assets[-1:] + meshes[1:])[-1], "hfield": assets[-1], "flexcomp": ""}
    for element in root.iter(*first):
        name, beside = element.get("file", "").replace("\\", "/"), reading.folder_of(element)
        if not name or len(name) > MAX_URI or "\0" in name or SCHEME.match(name) or beside is None:
            continue
        with suppress(FileNotFoundError, AssetRefusedError):
            folders.permit(folders.folder / first[tag(element)] / name, None, any_format=True)
            continue
        with suppress(FileNotFoundError, AssetRefusedError):
            found = folders.permit(beside / name, None, any_format=True)
            own = os.path.realpath(folders.folder / compiler.mesh_dir)
            element.set("name", asset_name(element))  # kept, since the rewritten path may end in another name
            element.set("file", os.path.relpath(found, own))


def read_field(meshes: Meshes, item: Item, compiler: Compiler) -> None:
    """One <hfield>: sizes and heights, from the model or a file."""
    name = asset_name(item.element)
    meshes.fields[name] = item.numbers("size", 4, 4)
    if min(meshes.fields[name]) <= 0:
        item.refuse(f"size is {item.text('size')[:60]}, want four numbers above 0")
    room = int(allowed(MOST_HEIGHTS)) - sum(len(rows) * len(rows[0]) for rows in meshes.heights.values() if rows)
    if item.whole("nrow") * item.whole("ncol") > room:
        item.refuse(f"nrow times ncol is beyond the limit of {allowed(MOST_HEIGHTS):.0f} heights in all; {MORE}")
    if not item.has("file"):
        meshes.heights[name] = read_heights(item)
        return
    meshes.heights[name] = ()
    if item.has("nrow") or item.has("ncol") or item.has("elevation"):
        item.refuse("has a file, and nrow, ncol or elevation, too")
    uri = item.text("file").replace("\\", "/")
    try:
        if item.reading.assets is not None:
            from artsim.loaders.mjcf.elevation import read_elevation  # numpy

            path = located(item, uri, compiler, any_format=True)
            meshes.heights[name] = scaled(item, item.tried(lambda: read_elevation(path, room)))
    except AssetMissingError as error:
        meshes.heights_absent[name] = f"not found: {error}"
    except AssetRefusedError as error:
        item.refuse(f"{uri!r}: {error}")


def read_heights(item: Item) -> Heights:
    """The heights [m] listed in an <hfield>, rows from low y to high; the file has the rows in reverse order."""
    rows, columns = item.whole("nrow"), item.whole("ncol")
    if min(rows, columns) < 2:
        item.refuse("want 2 rows and 2 columns at least")
    import numpy as np

    if not item.has("elevation"):
        return scaled(item, np.zeros((rows, columns)))
    values = item.numbers("elevation", 0, rows * columns)
    if len(values) != rows * columns:
        item.refuse(f"elevation holds {len(values)} numbers, want nrow times ncol = {rows * columns}")
    return scaled(item, np.array(values).reshape(rows, columns)[::-1])


def scaled(item: Item, values: NDArray[np.float64]) -> Heights:
    """Heights [m] from 0 to the field's elevation, of values (rows, columns) in any unit, rows from low y to high."""
    lowest, span = float(values.min()), float(values.max() - values.min())
    factor = item.numbers("size", 4, 4)[2] / (span if span > TINY else 1.0)
    return tuple(array("d", (factor * (row - lowest)).tobytes()) for row in values)


def read_material(item: Item) -> Material:
    """One <material>: its colour, and the name of its texture."""
    red, green, blue, alpha = item.filled("rgba", (1.0, 1.0, 1.0, 1.0))
    return Material(item.text("name"), (red, green, blue, alpha), item.text("texture") or None)


def read_mesh(item: Item, compiler: Compiler) -> tuple[str, MeshAsset]:
    """One <mesh>: its name, by default that of its file, and the asset with the path of its file."""
    for plugin in item.element:
        item.reading.later(plugin, "a plugin")
    item = built(item)
    uri = item.text("file").replace("\\", "/")
    name = asset_name(item.element)
    if not name:
        item.refuse("has neither name nor file")
    scale = item.vector("scale", (1.0, 1.0, 1.0))
    if 0.0 in scale:
        item.refuse("a scale of 0 flattens the mesh")
    pose = Pose(item.vector("refpos", (0.0, 0.0, 0.0)), unit_quaternion(item, read_refquat(item)))
    inertia = item.word("inertia", MESH_INERTIAS, compiler.mesh_inertia)
    return name, MeshAsset(item, uri, locate(item, uri, compiler) if uri else None, scale, pose, inertia)


def built(item: Item) -> Item:
    """A mesh of MuJoCo's `builtin` kinds, with vertices and faces in place of `builtin`; other meshes unchanged."""
    if item.text("builtin", "none") == "none":
        return item
    from artsim.loaders.mjcf.builtin import make_mesh  # numpy

    given = next((name for name in ("file", "vertex", "face") if item.has(name)), None)
    if given is not None:
        item.refuse(f"has builtin and {given}, want one of them")
    made = item.tried(lambda: make_mesh(item.text("builtin"), item.numbers("params", 0, 5, ())))
    attributes = {**item.attributes, "vertex": listed_numbers(made.vertices.astype("float32"))}  # as MuJoCo holds them
    if len(made.faces):
        attributes["face"] = listed_numbers(made.faces)
    if item.text("builtin") == "plate":
        attributes["inertia"] = "shell"
    del attributes["builtin"]
    return replace(item, attributes=attributes)


def listed_numbers(values: Any) -> str:
    """An array as the text of an attribute, with all digits."""
    return " ".join(map(repr, values.ravel().tolist()))


def read_refquat(item: Item) -> Quaternion:
    """The rotation in refquat, whose length may differ from 1."""
    w, x, y, z = item.numbers("refquat", 4, 4, (1.0, 0.0, 0.0, 0.0))
    return (w, x, y, z)


def locate(item: Item, uri: str, compiler: Compiler) -> Path | None:
    """The real path of a mesh; None, with a warning, if there is no file."""
    try:
        return None if item.reading.assets is None else located(item, uri, compiler)
    except AssetMissingError as error:
        item.reading.missing.setdefault(error.why, []).append((item.element, uri, str(error)))
    except AssetOutsideError as error:  # refused later if a geom collides with the mesh
        item.reading.outside[item.element] = str(error)
        what = f"{describe(item.element)}: {uri!r} is not opened, nor is any other mesh of its folder: {error}"
        item.reading.note(item.element, what, guess=True, once=error.why)
    except AssetRefusedError as error:
        item.refuse(f"{uri!r}: {error}")
    return None


def located(item: Item, uri: str, compiler: Compiler, *, any_format: bool = False) -> Path:
    """The real path of a mesh, or of a file of any format. Raises AssetMissingError or AssetRefusedError."""
    if len(uri) > MAX_URI:
        raise AssetRefusedError(f"the file name has {len(uri)} characters; at most {MAX_URI} are read")
    scheme = SCHEME.match(uri)
    if scheme:
        raise AssetRefusedError(f"{scheme[0]}// is not read; meshes are files on this machine")
    if item.reading.assets is None:
        raise AssetMissingError("it was not looked for")
    return resolve(item.reading.assets, uri, compiler, any_format=any_format)


def resolve(assets: Assets, uri: str, compiler: Compiler, *, any_format: bool = False) -> Path:
    """The path of a name in meshdir, below the model's folder or else --mesh-root, which may itself be the meshdir.

    Raises AssetMissingError or AssetRefusedError, for the first of these places, which the file means.
    """
    name = PurePosixPath(uri).name if compiler.strip_path else uri
    places = [folder / compiler.mesh_dir / name for folder in (assets.folder, assets.mesh_root) if folder is not None]
    places += [] if assets.mesh_root is None else [assets.mesh_root / name]
    if not places:
        raise AssetMissingError("the model is not in a file; give --mesh-root DIR")
    for candidate in dict.fromkeys(places):
        with suppress(FileNotFoundError, *([AssetRefusedError] if candidate != places[0] else [])):
            return assets.permit(candidate, None, any_format=any_format)
    folders = dict.fromkeys(place.parent for place in places)
    raise AssetMissingError(f"tried {listed(dict.fromkeys(places))}", f"tried in {listed(folders)}")
