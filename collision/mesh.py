"""Reads untrusted mesh files into plain arrays; the only file that imports trimesh.

No declaration of a file is trusted: its size is checked before it is read, counts are checked against its size before
memory is allocated, numbers must be finite and indices in range. References to other files are not followed, except for
the buffers of a glTF beside it. STL, OBJ and MuJoCo's MSH are parsed here, since numpy is faster than an import of
trimesh, and OBJ must have the meaning that it has in MuJoCo. loaders/assets.py decides which paths may be read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from artsim.sim.foundation.apart import Limits, apart, can_fork
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.ownership import make_own, read_own, whose_else

Real = NDArray[np.float64]
Whole = NDArray[np.int32]

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])

MAX_FACES = 2_000_000
BYTES_PER_FACE = 500  # more than any format needs; larger files are not read
_LARGE = 2.0**30  # larger coordinates are not lengths in any unit
KEPT_ABOVE = 1 << 18  # bytes: smaller files are parsed faster than they are found in the cache
_MOST_KEPT = 1 << 30  # bytes of a cached record
_STAMP = b"artsim mesh 1 "  # changes with the results of the readers


class MeshError(ModelError):
    """A mesh file is malformed or too large. The message begins with the file's name."""


class Mesh(NamedTuple):
    """Triangles, counter-clockwise seen from outside; without faces the hull of the points is meant. Read-only arrays.

    `parts` are the numbers of faces of an OBJ's objects, in order (MuJoCo reads the first one only); elsewhere one.
    """

    vertices: Real  # (n, 3) in the file's unit; COLLADA in m
    faces: Whole  # (m, 3)
    parts: Whole  # (k,), adds up to m


def read_mesh(path: Path, *, max_faces: int = MAX_FACES) -> Mesh:
    """Read the triangles of a mesh file: stl, obj, msh (MuJoCo's), ply, dae, glb, gltf. Raises MeshError.

    Meshes that are slow to parse are cached in the user's cache folder, under a hash of the content.
    """
    kind = path.suffix.lower()
    try:
        if kind not in READERS:
            raise MeshError(f"format {kind!r} is not read; formats: {' '.join(name[1:] for name in READERS)}")
        limit = KEPT_ABOVE + BYTES_PER_FACE * max_faces
        data = read_bytes(path, limit)
        beside = read_buffers(path.parent, data, limit) if kind == ".gltf" else {}
        mesh = recall_or_parse(kind, data, beside, max_faces)
        check_faces(len(mesh.faces), max_faces)
    except MeshError as error:
        raise MeshError(f"{path.name!r}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # readers for well-formed files, and headers without numbers, raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0][:120]
        raise MeshError(f"{path.name!r}: not a readable {kind[1:]} file ({reason})") from error
    return mesh


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes, without waiting for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MeshError("not a regular file")
            if status.st_size > limit:
                raise MeshError(f"{status.st_size / 1e6:.4g} MB, above the cap of {limit / 1e6:.4g} MB (--max-faces)")
            return stream.read(limit)
    except OSError as error:
        raise MeshError(os.strerror(error.errno or 0).lower()) from None


def parse(kind: str, data: bytes, beside: dict[str, bytes], max_faces: int) -> Mesh:
    """Parse the content by the reader of its kind, and check the result."""
    if not data:
        raise MeshError("empty file")
    with np.errstate(invalid="ignore", over="ignore"):  # numbers that are not finite are refused below
        vertices, faces, parts = READERS[kind](data, beside, max_faces)
    check_lengths(vertices)
    if len(vertices) == 0 or (len(faces) == 0 and kind != ".obj"):
        raise MeshError("no triangles in it")
    outside = ((faces < 0) | (faces >= len(vertices))).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        raise MeshError(f"triangle {row + 1} refers to a vertex that does not exist; there are {len(vertices)}")
    mesh = Mesh(vertices, faces.astype(np.int32), parts)
    for array in mesh:
        array.setflags(write=False)
    return mesh


def check_lengths(vertices: Real) -> None:
    """Refuse coordinates that are not finite or too large."""
    wrong = ~(np.abs(vertices) <= _LARGE).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        reason = "beyond any length" if np.isfinite(vertices[row]).all() else "not finite"
        raise MeshError(f"vertex {row + 1} is {reason}: {' '.join(f'{x:g}' for x in vertices[row])}")


def check_faces(count: int, most: int) -> None:
    """Refuse a mesh of more triangles than the user allows."""
    if count > most:
        raise MeshError(f"{count} triangles, above the cap of {most} (--max-faces)")


def one_part(vertices: Real, faces: NDArray[Any]) -> tuple[Real, NDArray[Any], Whole]:
    """The arrays of a mesh of a single part."""
    return vertices, faces, np.array([len(faces)], np.int32)


def merged(corners: NDArray[Any]) -> tuple[Real, NDArray[Any]]:
    """Distinct points (n, 3) in order of appearance, and the index of each of `corners` (k, 3) among them.

    As in MuJoCo only exactly equal points are merged, not near ones.
    """
    order = np.lexsort(corners.T)
    ranked = corners[order]
    starts = np.ones(len(corners), bool)
    starts[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    first = order[starts]  # lexsort is stable: the first of its group
    rank = np.empty(len(first), np.intp)
    appearance = np.argsort(first)
    rank[appearance] = np.arange(len(first))
    index = np.empty(len(corners), np.intp)
    index[order] = rank[np.cumsum(starts) - 1]
    return corners[first[appearance]].astype(np.float64), index


# --- STL -------------------------------------------------------------------------------------------------------------

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.I)
_VERTEX = re.compile(rb"^[ \t]*vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*\r?$", re.M)


def read_stl(data: bytes, _: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read STL, binary or text. Many binary files also begin with `solid`, so a matching declared count decides."""
    count = int.from_bytes(data[80:84], "little")
    exact = len(data) == 84 + _RECORD.itemsize * count
    if not exact and data.lstrip()[:5].lower() == b"solid":
        corners = stl_text(data, max_faces)
    else:
        if len(data) < 84:
            raise MeshError(f"{len(data)} bytes are no STL")
        held = (len(data) - 84) // _RECORD.itemsize
        if count > held:
            raise MeshError(f"declares {count} triangles, the file has room for {held}")
        check_faces(count, max_faces)
        corners = np.frombuffer(data, _RECORD, count, 84)["corners"].reshape(-1, 3)
    vertices, index = merged(corners)
    return one_part(vertices, index.reshape(-1, 3))


def stl_text(data: bytes, max_faces: int) -> Real:
    """The corners (3 m, 3) of an STL in text."""
    found = _VERTEX.findall(data)
    if len(found) % 3 or len(found) != 3 * len(re.findall(rb"^[ \t]*outer[ \t]+loop\b", data, re.M)):
        raise MeshError(f"an STL in text with {len(found)} vertices, which make no triangles; cut short?")
    check_faces(len(found) // 3, max_faces)
    return numbers([word for words in found for word in words]).reshape(-1, 3)


def numbers(words: list[bytes]) -> Real:
    """Convert words of text to numbers. Raises MeshError."""
    try:
        if b"_" in b" ".join(words):  # only Python allows groups of digits
            raise ValueError
        if max(map(len, words), default=0) > 100:  # an array has room for the longest in every place
            raise ValueError
        return np.array(words, dtype=bytes).astype(np.float64)
    except ValueError:
        wrong = next((word for word in words if not _NUMBER.fullmatch(word)), max(words, key=len, default=b""))
        raise MeshError(f"{wrong[:40].decode('latin-1')!r} is not a number") from None


# --- OBJ -------------------------------------------------------------------------------------------------------------


def read_obj(data: bytes, _: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read OBJ: vertices and faces, object by object; materials and other named files are ignored."""
    check_faces(data.count(b"\nf "), max_faces)
    coordinates: list[bytes] = []
    corners: list[int] = []
    sizes: list[int] = []
    ends: list[int] = []  # polygons before each object
    vertex_lines: list[int] = []
    face_lines: list[int] = []
    for number, line in obj_lines(data):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        if words[0] == b"v":
            if len(words) < 4:
                raise MeshError(f"line {number}: a vertex of {len(words) - 1} coordinates")
            coordinates += words[1:4]
            vertex_lines.append(number)
        elif words[0] == b"f" and len(words) > 3:  # two corners make a line
            corners += obj_corners(words[1:], len(vertex_lines), number)
            sizes.append(len(words) - 1)
            face_lines.append(number)
        elif words[0] in (b"o", b"g"):
            ends.append(len(sizes))
    check_faces(sum(sizes) - 2 * len(sizes), max_faces)
    vertices = obj_vertices(coordinates, vertex_lines)
    index = np.array(corners, np.int64)
    if len(index) and index.max() >= len(vertices):
        face = int(np.searchsorted(np.cumsum(sizes), int(np.argmax(index >= len(vertices))), side="right"))
        worst = index.max() + 1
        raise MeshError(f"line {face_lines[face]}: a face refers to vertex {worst}; there are {len(vertices)}")
    faces, before = triangulated(vertices, index, np.array(sizes, np.int64))
    parts = np.diff(before[[0, *ends, len(sizes)]])
    return vertices, faces, parts[parts > 0].astype(np.int32)


def obj_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of an OBJ with their numbers; lines joined by a backslash have the number of the first."""
    joined, first = b"", 0
    for number, line in enumerate(data.splitlines(), 1):
        first = first or number
        if line.endswith(b"\\"):
            joined += line[:-1] + b" "
            continue
        yield first, joined + line
        joined, first = b"", 0
    if joined:
        yield first, joined


def obj_vertices(coordinates: list[bytes], lines: list[int]) -> Real:
    """Vertices (n, 3) of words. Raises MeshError with the line of one that is no length."""
    try:
        vertices = numbers(coordinates).reshape(-1, 3)
        check_lengths(vertices)
    except MeshError:
        for k, line in enumerate(lines):  # line by line, to find the number of the invalid one
            try:
                check_lengths(numbers(coordinates[3 * k : 3 * k + 3]).reshape(-1, 3))
            except MeshError as error:
                raise MeshError(f"line {line}: {str(error).replace('vertex 1', f'vertex {k + 1}', 1)}") from None
        raise
    return vertices


def obj_corners(words: list[bytes], known: int, number: int) -> list[int]:
    """Vertex indices, from 0, of one face: `7`, `7/1/2`, or `-1`, counted back from the last vertex so far."""
    try:
        found = [int(word.partition(b"/")[0]) for word in words]
        if any(b"_" in word for word in words) or max(map(abs, found)) >= _MOST_POINTS:
            raise ValueError
    except ValueError:
        raise MeshError(f"line {number}: a face of {b' '.join(words)[:40]!r}") from None
    corners = [index - 1 if index > 0 else index + known if index < 0 else -1 for index in found]
    if min(corners) < 0:
        raise MeshError(f"line {number}: a face refers to a vertex that does not exist; there are {known} before it")
    return corners


def triangulated(vertices: Real, corners: NDArray[Any], sizes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Triangles (m, 3) of polygons in order, and the number of triangles before each polygon and in all.

    Quadrangles are split along the shorter diagonal, as in MuJoCo's reader; larger polygons become fans.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    before = np.concatenate([[0], np.cumsum(sizes - 2)])
    faces = np.empty((before[-1], 3), np.int64)
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        rows = corners[starts[chosen][:, None] + np.arange(size)]
        if size == 4:
            a, b, c, d = (vertices[rows[:, i]].astype(np.float32) for i in range(4))
            other = ~(((c - a) ** 2).sum(axis=1) < ((d - b) ** 2).sum(axis=1))
            rows[other] = np.roll(rows[other], -1, axis=1)
        for i in range(size - 2):
            faces[before[chosen] + i] = rows[:, [0, i + 1, i + 2]]
    return faces, before


# --- MSH -------------------------------------------------------------------------------------------------------------


def read_msh(data: bytes, _: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read MuJoCo's binary format: four counts, vertices, normals, texture coordinates, faces; 4 bytes each."""
    if data.startswith(b"$MeshFormat"):
        raise MeshError("a Gmsh file; .msh means MuJoCo's own format here")
    if len(data) < 16:
        raise MeshError(f"{len(data)} bytes are no MSH")
    points, normals, textures, faces = (int(count) for count in np.frombuffer(data, "<i4", 4))
    if points < 1 or faces < 1 or normals not in (0, points) or textures not in (0, points):
        raise MeshError(
            f"counts that fit no mesh: {points} vertices, {normals} normals, {textures} texcoords, {faces} faces"
        )
    size = 16 + 4 * (3 * points + 3 * normals + 2 * textures + 3 * faces)
    if size != len(data):
        raise MeshError(f"declares {points} vertices and {faces} faces in {size} bytes, the file has {len(data)}")
    check_faces(faces, max_faces)
    vertices = np.frombuffer(data, "<f4", 3 * points, 16).reshape(-1, 3).astype(np.float64)
    return one_part(vertices, np.frombuffer(data, "<i4", 3 * faces, size - 12 * faces).reshape(-1, 3))


# --- through trimesh -------------------------------------------------------------------------------------------------


def read_ply(data: bytes, _: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read PLY, text or binary. Every element takes at least a byte, so no count may exceed the size."""
    head, end, rest = data.partition(b"end_header")
    if not data.startswith(b"ply") or not end:
        raise MeshError("no PLY: it has no header")
    for name, count in re.findall(rb"^element[ \t]+(\w+)[ \t]+(\S+)", head, re.M):
        if not count.isdigit() or int(count) > len(data):
            raise MeshError(f"declares {count.decode('latin-1')[:20]} of {name.decode()}, the file has no room for it")
        if name == b"face":
            check_faces(int(count), max_faces)
    if re.search(rb"^format[ \t]+ascii", head, re.M) and _FAR.search(rest):  # which would lose its upper digits
        raise MeshError("an index or a number in it is beyond any mesh")
    return from_scene(through_trimesh("ply", data, {}), max_faces)


def read_dae(data: bytes, _: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read COLLADA, scaled to metres; up_axis is not applied, as in ROS tools."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise MeshError(f"not well-formed XML: {' '.join(str(error).split())[:200]}") from None
    info: Any = root.getroottree().docinfo
    if info.doctype:
        raise MeshError("DOCTYPE not allowed (entities could read files or exhaust memory)")
    declared = [element.get("count", "0") for element in root.iterfind(".//{*}mesh/{*}*[@count]")]
    check_faces(sum(int(count) for count in declared if count.isdigit() and len(count) < 18), max_faces)
    check_instances(root)
    check_polygons(root, len(data))
    unit = root.find("{*}asset/{*}unit")
    try:
        meter = float("1" if unit is None else unit.get("meter", "1"))
    except ValueError:
        meter = 0.0
    if not 0 < meter < _LARGE:
        raise MeshError("its unit is no length")
    vertices, faces, parts = from_scene(through_trimesh("dae", data, {}), max_faces)
    return vertices * meter, faces, parts


_MAX_NODES = 20_000
_MOST_POINTS = 10**9  # no index is larger
_NO_INDEX = re.compile(r"\S*[^\d\s]\S*|[1-9]\d{9,}")  # a word that is none: negative, broken, or beyond any mesh
_FAR = re.compile(rb"(?<![\w.])[+-]?[1-9]\d{9,}(?![\d.eE])")
_UNREAL = re.compile(r"(?<![\w.])[+-]?(?:nan|inf)", re.I)


def check_polygons(root: Any, size: int) -> None:
    """Refuse a COLLADA whose polygons have more corners than the file can hold, or malformed numbers."""
    for counts in root.iterfind(".//{*}vcount"):
        words = (counts.text or "").split()
        if not all(word.isdigit() and len(word) < 10 for word in words) or sum(map(int, words)) > size:
            raise MeshError("its polygons have more corners than the file has room for")
    for indices in (*root.iterfind(".//{*}p"), *root.iterfind(".//{*}h")):
        wrong = _NO_INDEX.search(indices.text or "")
        if wrong:
            raise MeshError(f"line {indices.sourceline}: index {wrong[0][:30]!r}, want whole numbers from 0")
    for values in root.iterfind(".//{*}float_array"):
        if _UNREAL.search(values.text or ""):
            raise MeshError("a number in it is not finite")


def check_instances(root: Any) -> None:
    """Refuse a COLLADA whose nodes contain each other, or repeat each other more often than any real scene.

    Twenty nodes that each hold the next one twice make a million: copies are counted before they are made.
    """
    named = {element.get("id"): element for element in root.iterfind(".//{*}node[@id]")}
    copies: dict[Any, int] = {}

    def count(node: Any, depth: int) -> int:
        if copies.get(node) == 0 or depth > 200:
            raise MeshError("its nodes contain each other, or are nested more than 200 deep")
        if node not in copies:
            copies[node] = 0
            inner = list(node.iterfind("{*}node"))
            inner += [named[url] for e in node.iterfind("{*}instance_node") if (url := e.get("url", "")[1:]) in named]
            shapes = sum(1 for _ in node.iterfind("{*}instance_geometry"))
            copies[node] = min(_MAX_NODES + 1, 1 + shapes + sum(count(child, depth + 1) for child in inner))
        return copies[node]

    if sum(count(node, 0) for node in root.iterfind(".//{*}visual_scene/{*}node")) > _MAX_NODES:
        raise MeshError(f"more than {_MAX_NODES} nodes once its instances are unfolded")


def read_glb(data: bytes, beside: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read glTF 2 in one binary file."""
    length = int.from_bytes(data[12:16], "little")
    if data[:4] != b"glTF" or data[16:20] != b"JSON" or 20 + length > len(data):
        raise MeshError("no binary glTF, or cut short")
    declared = int.from_bytes(data[8:12], "little")
    if declared != len(data):
        raise MeshError(f"declares {declared} bytes, the file has {len(data)}")
    header = json_object(data[20 : 20 + length])
    buffers = header.get("buffers", [])
    if any("uri" in buffer and not str(buffer["uri"]).startswith("data:") for buffer in buffers):
        raise MeshError("its buffers are in other files; those of a .gltf are read, those of a .glb are not")
    check_gltf(header, len(data), max_faces)
    return from_scene(through_trimesh("glb", data, {}), max_faces)


def read_gltf(data: bytes, beside: dict[str, bytes], max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Read glTF 2 as JSON; `beside` are the buffers."""
    check_gltf(json_object(data), len(data) + sum(map(len, beside.values())), max_faces)
    return from_scene(through_trimesh("gltf", data, beside), max_faces)


def read_buffers(folder: Path, data: bytes, limit: int) -> dict[str, bytes]:
    """Read the buffers of a glTF by name: files in its own folder or below, with symbolic links resolved."""
    from urllib.parse import unquote

    found: dict[str, bytes] = {}
    real = Path(os.path.realpath(folder))
    for buffer in json_object(data).get("buffers", []):
        uri = str(buffer.get("uri", "")) if isinstance(buffer, dict) else ""
        if not uri or uri.startswith("data:") or uri in found:
            continue
        path = Path(os.path.realpath(real / unquote(uri))) if "\0" not in unquote(uri) else real
        if "://" in uri or not path.is_relative_to(real):
            raise MeshError(f"buffer {uri[:80]!r} is outside its folder")
        try:
            found[uri] = read_bytes(path, limit - sum(map(len, found.values())))
        except MeshError as error:
            raise MeshError(f"buffer {uri[:80]!r}: {error}") from None
    return found


def json_object(data: bytes) -> dict[str, Any]:
    """Parse the JSON of a glTF. Raises MeshError."""
    try:
        header = json.loads(data)
    except (ValueError, RecursionError):
        raise MeshError("its header is no JSON") from None
    if not isinstance(header, dict):
        raise MeshError("its header is no JSON object")
    return header


_ITEM = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_COMPONENT = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}


def check_gltf(header: dict[str, Any], size: int, max_faces: int) -> None:
    """Refuse a glTF whose views, accessors and meshes add up to more than its bytes, or whose nodes are no trees."""
    packed = [name for name in header.get("extensionsRequired", []) if "draco" in name or "meshopt" in name]
    if packed:
        raise MeshError(f"compressed by {packed[0]}, which is not read")
    check_references(header)
    accessors = header.get("accessors", [])
    sizes = [item["count"] * _ITEM[item["type"]] * _COMPONENT[item["componentType"]] for item in accessors]
    views = [view["byteLength"] for view in header.get("bufferViews", [])]
    if (
        min([0, *sizes, *views]) < 0 or max(sum(views), sum(sizes)) > 4 * size
    ):  # views may share bytes, but not to this extent
        raise MeshError(f"declares {max(sum(views), sum(sizes)):.4g} bytes of data, the file has {size}")
    primitives = [part for mesh in header.get("meshes", []) for part in mesh["primitives"]]
    corners = [accessors[part.get("indices", part["attributes"]["POSITION"])]["count"] for part in primitives]
    points = [accessors[part["attributes"]["POSITION"]]["count"] for part in primitives]
    check_faces(max(sum(corners), sum(points)) // 3, max_faces)
    if any("sparse" in item for item in accessors):
        raise MeshError("sparse accessors are not read")
    shown = [node["mesh"] for node in header.get("nodes", []) if "mesh" in node]
    if len(header.get("nodes", [])) > _MAX_NODES or len(primitives) > _MAX_NODES or len(accessors) > 4 * _MAX_NODES:
        raise MeshError(f"more than {_MAX_NODES} nodes, meshes or accessors")
    sizes_of = [sum(accessors[part["attributes"]["POSITION"]]["count"] for part in mesh["primitives"])
                for mesh in header.get("meshes", [])]  # fmt: skip
    check_faces(sum(sizes_of[mesh] for mesh in shown) // 3, max_faces)
    children = [child for node in header.get("nodes", []) for child in node.get("children", [])]
    roots = [root for scene in header.get("scenes", []) for root in scene.get("nodes", [])]
    if len(set(children)) < len(children) or set(roots) & set(children) or len(children) + len(roots) > _MAX_NODES:
        raise MeshError("its nodes are no trees, or too many")


def check_references(header: dict[str, Any]) -> None:
    """Refuse a glTF whose parts refer to parts that do not exist: Python takes -1 as the last one."""
    nodes, meshes, accessors = (header.get(name, []) for name in ("nodes", "meshes", "accessors"))
    views = header.get("bufferViews", [])
    primitives = [part for mesh in meshes for part in mesh["primitives"]]
    named: list[tuple[str, list[Any]]] = [
        ("nodes", [child for node in nodes for child in node.get("children", [])]),
        ("nodes", [root for scene in header.get("scenes", []) for root in scene.get("nodes", [])]),
        ("scenes", [header["scene"]] if "scene" in header else []),
        ("meshes", [node["mesh"] for node in nodes if "mesh" in node]),
        ("accessors", [k for part in primitives for k in part["attributes"].values()]),
        ("accessors", [part["indices"] for part in primitives if "indices" in part]),
        ("bufferViews", [item["bufferView"] for item in accessors if "bufferView" in item]),
        ("buffers", [view["buffer"] for view in views]),
    ]
    for kind, references in named:
        there = len(header.get(kind, []))
        wrong = next((k for k in references if type(k) is not int or not 0 <= k < there), None)
        if wrong is not None:
            raise MeshError(f"refers to number {str(wrong)[:30]} of its {kind}; there are {there}")
    places = [item[name] for item in (*accessors, *views) for name in ("byteOffset", "byteStride") if name in item]
    if any(type(place) is not int or place < 0 for place in places):
        raise MeshError("a place or a stride in its buffers is no whole number from 0")


def through_trimesh(kind: str, data: bytes, beside: dict[str, bytes]) -> Any:
    """Load a file as a scene of trimesh, which can open no other files than the bytes `beside`."""
    import logging

    import trimesh

    logging.getLogger("trimesh").setLevel(logging.CRITICAL)  # errors that matter are raised
    options: dict[str, Any] = {"ignore_broken": False} if kind == "dae" else {"skip_materials": True}
    return trimesh.load(io.BytesIO(data), file_type=kind, resolver=beside, force="scene", process=False, **options)


def from_scene(scene: Any, max_faces: int) -> tuple[Real, NDArray[Any], Whole]:
    """Merge everything in a trimesh scene into one mesh in the scene's frame."""
    shown = [(*scene.graph[node], node) for node in scene.graph.nodes_geometry]
    solid = [(matrix, scene.geometry[name]) for matrix, name, _ in shown if hasattr(scene.geometry[name], "faces")]
    check_faces(sum(len(shape.faces) for _, shape in solid), max_faces)
    corners = []
    for matrix, shape in solid:
        points, faces = np.asarray(shape.vertices, np.float64), np.asarray(shape.faces)
        if len(faces) and (faces.min() < 0 or faces.max() >= len(points)):
            raise MeshError(f"a face refers to a vertex that does not exist; there are {len(points)}")
        points = points @ matrix[:3, :3].T + matrix[:3, 3]
        mirrored = np.linalg.det(matrix[:3, :3]) < 0
        corners.append(points[faces[:, ::-1] if mirrored else faces].reshape(-1, 3))
    if not corners:
        raise MeshError("no triangles in it")
    vertices, index = merged(np.concatenate(corners))
    return one_part(vertices, index.reshape(-1, 3))


Reader = Callable[[bytes, dict[str, bytes], int], tuple[Real, NDArray[Any], Whole]]
READERS: dict[str, Reader] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".msh": read_msh,
    ".ply": read_ply,
    ".dae": read_dae,
    ".glb": read_glb,
    ".gltf": read_gltf,
}


# --- the cache -------------------------------------------------------------------------------------------------------


def recall_or_parse(kind: str, data: bytes, beside: dict[str, bytes], max_faces: int) -> Mesh:
    """Read the mesh from the cache, or parse it and cache it if that took long."""
    if len(data) < KEPT_ABOVE and kind in (".stl", ".obj", ".msh"):
        return parse(kind, data, beside, max_faces)
    digest = hashlib.sha256(_STAMP + kind.encode())
    for content in (data, *(part for item in sorted(beside.items()) for part in (item[0].encode(), item[1]))):
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    folder = mesh_cache_folder()
    path = folder / f"{digest.hexdigest()}.npz" if folder else None
    mesh = recall(path, Mesh) if path else None
    if mesh is None:
        mesh = parse_apart(kind, data, beside, max_faces)
        if path:
            keep(path, mesh)
    return mesh


_APART_SECONDS = 10.0
_APART_MEMORY = 1 << 30  # bytes in addition to those of the process


def parse_apart(kind: str, data: bytes, beside: dict[str, bytes], max_faces: int) -> Mesh:
    """Run `parse` in a child process with limits of time and memory, for formats that libraries read.

    Where no child can be forked, the preceding checks have to suffice.
    """
    if kind in (".stl", ".obj", ".msh") or not can_fork():
        return parse(kind, data, beside, max_faces)
    import trimesh  # noqa: F401  # once here, and not in every child

    seconds, memory = allowed(_APART_SECONDS), allowed(_APART_MEMORY)
    told = apart(lambda: parsed(kind, data, beside, max_faces), Limits(seconds, 6 * seconds, round(memory))).data
    if told[:1] == b"E":
        raise MeshError(told[1:].decode("utf-8", "replace"))
    if told[:1] != b"M":
        most = f"{seconds:g} s or {memory / 1e9:.2g} GB"
        raise MeshError(f"takes more than {most} to read, or crashes its reader; {MORE}")
    with np.load(io.BytesIO(told[1:]), allow_pickle=False) as found:
        mesh = Mesh(**{name: found[name] for name in Mesh._fields})
    for array in mesh:
        array.setflags(write=False)
    return mesh


def parsed(kind: str, data: bytes, beside: dict[str, bytes], max_faces: int) -> bytes:
    """`M` and the arrays of the mesh, or `E` and the error. Raises MemoryError."""
    try:
        mesh = parse(kind, data, beside, max_faces)
    except MeshError as error:
        return b"E" + str(error).encode()[:2000]
    except MemoryError:
        raise
    except Exception as error:  # readers for well-formed files raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0][:120]
        return b"E" + f"not a readable {kind[1:]} file ({reason})".encode()
    content = io.BytesIO()
    np.savez(content, **mesh._asdict())
    return b"M" + content.getvalue()


def mesh_cache_folder() -> Path | None:
    """The cache folder of parsed meshes, created with mode 0700; None, which disables caching, if it cannot be created
    or others can write to it.
    """
    import platformdirs

    folder = Path(os.environ.get("ARTSIM_CACHE_DIR") or platformdirs.user_cache_dir("artsim")) / "meshes"
    return folder if whose_else(folder) is None and make_own(folder) else None


def recall(path: Path, record: Callable[..., Arrays]) -> Arrays | None:
    """Read a cached record of arrays (a NamedTuple class); None if it is missing, damaged (the archive has checksums)
    or not owned by the user.
    """
    data = read_own(path, _MOST_KEPT)
    if data is None:
        return None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as kept:
            found = record(**{name: kept[name] for name in kept.files})
    except Exception:  # a damaged archive raises anything; it will be written again
        return None
    for array in found:
        array.setflags(write=False)
    return found


def keep(path: Path, record: Any) -> None:
    """Write a record of arrays to the cache atomically; a full disk is not an error."""
    import tempfile

    part = ""
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **record._asdict())
        Path(part).replace(path)
    except OSError:
        Path(part).unlink(missing_ok=True) if part else None


# --- shapes of meshes ------------------------------------------------------------------------------------------------


def is_closed(vertices: Real, faces: NDArray[Any]) -> bool:
    """True if every edge is traversed once in each direction; coincident vertices count as one."""
    _, index = merged(vertices)
    corners = index[faces]
    a, b = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]).astype(np.int64).T
    seen = a != b  # an edge of a sliver may have no length
    there, back = np.sort(a[seen] * len(vertices) + b[seen]), np.sort(b[seen] * len(vertices) + a[seen])
    return np.array_equal(there, back)


def convex_hull(points: Real, most: int = -1) -> Whole:
    """Outward faces (m, 3) of the convex hull of points (n, 3), with at most `most` vertices unless that is -1.

    Raises ValueError if the points lie in a plane.
    """
    from scipy.spatial import ConvexHull, QhullError

    options = "Qt" if most < 0 else f"Qt Q9 TA{most - 4}"
    try:
        hull = ConvexHull(points, qhull_options=options)
    except (QhullError, ValueError):
        raise ValueError("the mesh has no convex hull: its vertices lie in a plane") from None
    faces: Whole = hull.simplices.astype(np.int32)
    corners = points[faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", doubled, hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, [0, 2, 1]]
    return faces
