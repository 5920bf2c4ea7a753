"""Mesh files of a robot that is written: copied below the output's folder, or named where they are; some converted."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from artsim.loaders.writers.elements_out import numbers
from artsim.sim.articulation.description import Geom, Pose
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, UsageError

Placing = Literal["copy", "path"]
FOLDER = "meshes"  # below the output's folder


@dataclass(slots=True)
class MeshFiles:
    """The files of meshes, as the output names them. Files are made by `save`, once the text is complete.

    `formats`: suffixes that programs read which read this format; other meshes are converted to OBJ.
    """

    folder: Path  # of the output
    placing: Placing
    formats: Collection[str]
    names: dict[Path, str] = field(default_factory=dict)  # as the output says them, by the file of the mesh
    made: dict[str, Path] = field(default_factory=dict)  # files to be copied or converted, by their names in the output
    flaws: dict[Path, str] = field(default_factory=dict)  # why a file cannot be converted; "": it can
    contents: dict[str, str] = field(default_factory=dict)  # texts of OBJ files, by their names in the output

    def name_of(self, path: Path) -> str:
        """The name of a mesh file in the output."""
        if path not in self.names:
            converted = path.suffix.lower() not in self.formats
            if converted or self.placing == "copy":
                self.names[path] = name = self.free_name(path.stem, ".obj" if converted else path.suffix, path)
                self.made[name] = path
            else:
                self.names[path] = self.where_it_is(path)
        return self.names[path]

    def where_it_is(self, path: Path) -> str:
        """The path from the output's folder for a file below it, else the whole path."""
        own = Path(os.path.realpath(self.folder))
        return path.relative_to(own).as_posix() if path.is_relative_to(own) else str(path)

    def free_name(self, stem: str, suffix: str, path: Path | None) -> str:
        """A name below the output's folder that no other mesh has, nor any other file that is there."""
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in stem) or "mesh"
        count = 0
        while True:
            name = f"{FOLDER}/{plain}{f'_{count}' if count else ''}{suffix.lower()}"
            there = self.folder / name
            if name not in self.made and name not in self.contents and (not there.exists() or same(there, path)):
                return name
            count += 1

    def name_of_vertices(self, geom: Geom, stem: str) -> str:
        """The name of a new OBJ file with the vertices of a mesh that has no file."""
        text = as_obj(geom.vertices, geom.faces or hull_of(geom))
        for name, known in self.contents.items():
            if known == text:
                return name
        name = self.free_name(stem, ".obj", None)
        self.contents[name] = text
        return name

    def save(self) -> list[str]:
        """Copy and convert the files; their names in the output. Raises UsageError for one that cannot be written."""
        for name, path in self.made.items():
            data = obj_of(path).encode() if path.suffix.lower() not in self.formats else path.read_bytes()
            self.put(name, data)
        for name, text in self.contents.items():
            self.put(name, text.encode())
        return [*self.made, *self.contents]

    def put(self, name: str, data: bytes) -> None:
        """Write a file below the output's folder; a link there is not followed."""
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(self.folder)):
            raise UsageError(f"{place} leads out of the output's folder; remove the link, or choose another folder")
        if not place.exists():
            place.write_bytes(data)


def absence(files: MeshFiles, geom: Geom) -> str:
    """The reason why the mesh of a geom cannot be written; "" if it can, and for other shapes."""
    if geom.kind != "mesh" or geom.vertices:
        return ""
    if geom.mesh is None:
        return "is not at hand"
    if geom.mesh.suffix.lower() in files.formats:
        return ""
    if geom.mesh not in files.flaws:
        try:
            obj_of(geom.mesh)
            files.flaws[geom.mesh] = ""
        except ModelError as error:
            files.flaws[geom.mesh] = f"cannot be converted ({error})"
    return files.flaws[geom.mesh]


def same(there: Path, path: Path | None) -> bool:
    """True if a file that exists holds what a copy of `path` would."""
    if path is None or not there.is_file():
        return False
    data = path.read_bytes() if there.suffix.lower() == path.suffix.lower() else obj_of(path).encode()
    return there.stat().st_size == len(data) and there.read_bytes() == data


def obj_of(path: Path) -> str:
    """The triangles of a mesh file as an OBJ, all digits kept; the objects of an OBJ stay apart."""
    from artsim.collision.mesh import read_mesh  # numpy

    mesh = read_mesh(path)
    return as_obj(mesh.vertices.ravel().tolist(), mesh.faces.ravel().tolist())


def as_obj(vertices: list[float] | tuple[float, ...], faces: list[int] | tuple[int, ...]) -> str:
    """The text of an OBJ of vertices and triangles, in threes."""
    lines = [f"v {numbers(vertices[n : n + 3])}" for n in range(0, len(vertices), 3)]
    lines += [f"f {' '.join(str(k + 1) for k in faces[n : n + 3])}" for n in range(0, len(faces), 3)]
    return "\n".join(lines) + "\n"


def placed_points(geom: Geom) -> Geom:
    """The geom with the points of its mesh in its own frame, for formats that turn no mesh before they scale it."""
    import numpy as np

    from artsim.collision.mesh import read_mesh
    from artsim.sim.foundation.rotations import rotation_matrix

    points, faces = np.array(geom.vertices).reshape(-1, 3), list(geom.faces)
    if geom.mesh is not None:
        mesh = read_mesh(geom.mesh)
        points, faces = mesh.vertices, mesh.faces.ravel().tolist()
    moved = (
        (points - np.array(geom.mesh_pose.position)) @ rotation_matrix(geom.mesh_pose.rotation) * np.array(geom.scale)
    )
    if np.prod(geom.scale) < 0:
        faces = np.array(faces, int).reshape(-1, 3)[:, ::-1].ravel().tolist()
    vertices = tuple(moved.ravel().tolist())
    return replace(geom, mesh=None, mesh_pose=Pose(), scale=(1.0, 1.0, 1.0), vertices=vertices, faces=tuple(faces))


def hull_of(geom: Geom) -> list[int]:
    """The triangles of the hull of a mesh that gives vertices alone."""
    import numpy as np

    from artsim.collision.mesh import convex_hull

    points = np.array(geom.vertices).reshape(-1, 3)
    return [int(k) for k in convex_hull(points, geom.most_hull_vertices).ravel()]
