"""Mesh files: every format says the same, and nothing a stranger writes into one does harm."""

from __future__ import annotations

import base64
import builtins
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from artsim.collision import mesh as module
from artsim.collision.mesh import READERS, Mesh, MeshError, convex_hull, read_mesh

FORMATS = ("bin.stl", "text.stl", "a.obj", "a.msh", "bin.ply", "text.ply", "a.dae", "a.glb", "a.gltf")
Numbers = NDArray[np.float64]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ARTSIM_CACHE_DIR", str(folder))
    return folder / "meshes"


@pytest.fixture
def shape() -> trimesh.Trimesh:
    """A wedge without any symmetry, its numbers short in binary."""
    points = np.array([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 0.5], [2, 0, 0.25], [0, 1, 0.75]])
    faces = [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
    return trimesh.Trimesh(points, faces, process=False)


def msh(points: Any, faces: Any, normals: int = 0, textures: int = 0) -> bytes:
    """MuJoCo's binary format."""
    points, faces = np.asarray(points, "<f4"), np.asarray(faces, "<i4")
    head = np.array([len(points), normals, textures, len(faces)], "<i4")
    return head.tobytes() + points.tobytes() + bytes(12 * normals + 8 * textures) + faces.tobytes()


def write(shape: trimesh.Trimesh, path: Path) -> Path:
    """The shape in the format of the name."""
    if path.suffix == ".gltf":
        for name, content in shape.export(file_type="gltf").items():
            (path if name == "model.gltf" else path.with_name(name)).write_bytes(content)
        return path
    exports: dict[str, Callable[[], Any]] = {
        "text.stl": lambda: shape.export(file_type="stl_ascii"),
        "text.ply": lambda: shape.export(file_type="ply", encoding="ascii"),
        "a.msh": lambda: msh(shape.vertices, shape.faces),
    }
    content = exports.get(path.name, lambda: shape.export(file_type=path.suffix[1:]))()
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def triangles(points: Numbers, faces: Any) -> list[tuple[float, ...]]:
    """The triangles as sets of corners, each from its smallest corner on, sorted: the same for the same surface."""
    found = []
    for face in points[np.asarray(faces)]:
        start = min(range(3), key=lambda i: tuple(face[i]))
        found.append(tuple(np.roll(face, -start, axis=0).ravel().tolist()))
    return sorted(found)


# --- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(name: str, shape: trimesh.Trimesh, tmp_path: Path) -> None:
    """Also in capitals, and with the arrays as promised."""
    found = read_mesh(write(shape, tmp_path / name))
    assert triangles(found.vertices, found.faces) == triangles(shape.vertices, shape.faces)
    assert len(found.vertices) == 6  # corners that are equal are one
    assert (found.vertices.dtype, found.faces.dtype) == (np.float64, np.int32)
    assert found.parts.tolist() == [8]
    assert not any(array.flags.writeable for array in found)
    capitals = tmp_path / name
    capitals = capitals.rename(capitals.with_suffix(capitals.suffix.upper()))
    assert np.array_equal(read_mesh(capitals).faces, found.faces)


def test_a_binary_stl_may_begin_with_solid(shape: trimesh.Trimesh, tmp_path: Path) -> None:
    path = write(shape, tmp_path / "bin.stl")
    path.write_bytes(b"solid facet".ljust(80, b" ") + path.read_bytes()[80:])
    assert len(read_mesh(path).faces) == 8


def test_scenes_are_put_together(shape: trimesh.Trimesh, tmp_path: Path) -> None:
    """Two copies, one of them mirrored: it must not come out inside out."""
    mirror = np.diag([-1.0, 1.0, 1.0, 1.0])
    mirror[:3, 3] = 5
    scene = trimesh.Scene()
    scene.add_geometry(shape, geom_name="wedge")
    scene.graph.update(frame_to="mirrored", matrix=mirror, geometry="wedge")
    (tmp_path / "two.glb").write_bytes(scene.export(file_type="glb"))
    found = read_mesh(tmp_path / "two.glb")
    assert trimesh.Trimesh(found.vertices, found.faces).volume == pytest.approx(2 * shape.volume)
    assert found.vertices[:, 0].max() == 5


def test_collada_is_scaled_to_metres(shape: trimesh.Trimesh, tmp_path: Path) -> None:
    path = write(shape, tmp_path / "a.dae")
    text = path.read_text()
    before = read_mesh(path).vertices
    path.write_text(text.replace("</asset>", '<unit name="centimeter" meter="0.01"/></asset>', 1))
    assert np.allclose(read_mesh(path).vertices, before * 0.01)


def compiled_mass(path: Path) -> float:
    """What MuJoCo makes of a file: its volume, in kg."""
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="m" file="{path}" inertia="exact"/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="m" density="1" contype="0" conaffinity="0"/></body></worldbody></mujoco>'
    )
    return float(model.body_mass[1])


OBJ = "v 0 0 0\nv 0 1 0\nv 1 0 0\nv 0 0 1\n"
CUBE = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
SIDES = "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
TETRAHEDRON = "f 1 2 3\nf 1 4 2\nf 1 3 4\nf 2 4 3\n"


@pytest.mark.parametrize(
    "text",
    [
        OBJ + TETRAHEDRON,
        OBJ + "f -4 -3 -2\nf -4 -1 -3\nf -4 -2 -1\nf -3 -1 -2\n",
        OBJ + "vn 0 0 1\nvt 0 0\n" + TETRAHEDRON.replace(" 1", " 1/1/1").replace(" 2", " 2//1").replace(" 3", " 3/1/1"),
        OBJ.replace("0 0 1\n", "0 0 1 0.5 0.5 0.5\n") + TETRAHEDRON + "l 1 2\nf 1 2\np 1\ns off\nusemtl a\n",
        CUBE + SIDES,
        CUBE.replace("1 1 1", "1.5 1.4 1.3") + SIDES,  # sides that are no planes
        CUBE.replace("0 1 1", "0.1 1.2 0.7") + SIDES,
        "o one\n" + OBJ + TETRAHEDRON + "o two\n" + CUBE + "f 5 6 8 7\n",
        OBJ + "g\ng a b\n" + TETRAHEDRON + "usemtl other\ng c\nf 1 2 3\n",
    ],
)
def test_obj_means_what_it_means_to_mujoco(text: str, tmp_path: Path) -> None:
    path = tmp_path / f"mesh{abs(hash(text))}.obj"
    path.write_text(text)
    found = read_mesh(path)
    first = trimesh.Trimesh(found.vertices.astype(np.float32), found.faces[: found.parts[0]], process=False)
    try:
        assert abs(first.volume) == pytest.approx(compiled_mass(path), rel=1e-6)
    except ValueError as error:  # discarded texture coordinates; its volume is known
        assert "normal index" in str(error)
        assert abs(first.volume) == pytest.approx(1 / 6)


def test_obj_as_people_write_it(tmp_path: Path) -> None:
    """Comments, continued lines, other line ends, and a face before its last vertex: MuJoCo refuses some of them."""
    text = "# wedge\r\n" + OBJ.replace("\n", "  # point\r\n") + "f 1 2 \\\r\n 3\r\n\r\nf 1 4 2\r\nf 1 3 4\r\nf 2 4 3"
    (tmp_path / "a.obj").write_bytes(text.encode())
    assert read_mesh(tmp_path / "a.obj").faces.tolist() == [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]
    (tmp_path / "points.obj").write_text(OBJ)
    assert [len(array) for array in read_mesh(tmp_path / "points.obj")] == [4, 0, 0]


def test_msh_with_normals_and_texture_coordinates(shape: trimesh.Trimesh, tmp_path: Path) -> None:
    path = tmp_path / "full.msh"
    path.write_bytes(msh(shape.vertices, shape.faces, 6, 6))
    assert np.array_equal(read_mesh(path).faces, shape.faces)
    assert trimesh.Trimesh(*read_mesh(path)[:2]).volume == pytest.approx(compiled_mass(path))


def test_the_hull_is_outward_and_closed() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    hull = trimesh.Trimesh(points, convex_hull(points))
    assert hull.volume == pytest.approx(trimesh.convex.convex_hull(points).volume)
    assert hull.is_watertight
    with pytest.raises(ValueError, match="plane"):
        convex_hull(points * (1, 1, 0))


# --- what is refused -------------------------------------------------------------------------------------------------

FACET = struct.pack("<12fH", 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
GLTF = {
    "asset": {"version": "2.0"},
    "buffers": [{"byteLength": 36, "uri": "a.bin"}],
    "bufferViews": [{"buffer": 0, "byteLength": 36}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    "nodes": [{"mesh": 0}],
    "scenes": [{"nodes": [0]}],
}
DAE = (
    '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">'
    "<library_nodes>{nodes}</library_nodes><library_visual_scenes><visual_scene id='s'><node id='top'>{top}</node>"
    "</visual_scene></library_visual_scenes></COLLADA>"
)
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + DAE.format(nodes="", top="&b;")
DOUBLING = "".join(f'<node id="n{i}">' + f'<instance_node url="#n{i + 1}"/>' * 2 + "</node>" for i in range(60))
NAN = struct.pack("<12fH", 0, 0, 0, 0, 0, float("nan"), 1, 0, 0, 0, 1, 0, 0)
CYCLE = '<node id="n0"><instance_node url="#n0"/></node>'


def stl(count: int, *facets: bytes) -> bytes:
    """A binary STL that declares `count` triangles."""
    return b"from a stranger".ljust(80) + struct.pack("<I", count) + b"".join(facets)


def gltf(**changes: Any) -> bytes:
    """A triangle whose header is changed."""
    return json.dumps(GLTF | changes).encode()


TRIANGLE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="f" count="9">0 0 0 1 0 0 0 1 0</float_array>
<technique_common><accessor source="#f" count="3" stride="3"><param name="X" type="float"/><param name="Y"
type="float"/><param name="Z" type="float"/></accessor></technique_common></source><vertices id="v"><input
semantic="POSITION" source="#s"/></vertices><{kind} count="{count}"><input semantic="VERTEX" source="#v" offset="0"/>
<vcount>3</vcount><p>{p}</p></{kind}></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="x">
<node id="n"><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene><instance_visual_scene
url="#x"/></scene></COLLADA>"""
PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar {kind} vertex_indices
end_header
0 0 0
1 0 0
0 1 0
{face}
"""


def indexed(kind: int, indices: list[int]) -> bytes:
    """The triangle of GLTF with indices, of bytes or of words."""
    data = np.eye(3, dtype="<f4").tobytes() + np.array(indices, "i1" if kind == 5120 else "<u4").tobytes()
    views = [{"buffer": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 36, "byteLength": len(data) - 36}]
    return gltf(
        buffers=[{"byteLength": len(data), "uri": "data:;base64," + base64.b64encode(data).decode()}],
        bufferViews=views,
        accessors=[GLTF["accessors"][0], {"bufferView": 1, "componentType": kind, "count": 3, "type": "SCALAR"}],  # type: ignore[index]
        meshes=[{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
    )


def glb(more: int) -> bytes:
    """The triangle of GLTF in one file, whose head declares `more` bytes than there are."""
    header = gltf(buffers=[{"byteLength": 36}])
    header += b" " * (-len(header) % 4)
    chunks = struct.pack("<I4s", len(header), b"JSON") + header + struct.pack("<I4s", 36, b"BIN\0")
    chunks += np.eye(3, dtype="<f4").tobytes()
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks) + more) + chunks


BAD = [
    ("lies.stl", stl(4_000_000_000, FACET), "declares 4000000000 triangles, the file has room for 1"),
    ("empty.stl", stl(0), "no triangles"),
    ("nothing.stl", b"", "empty file"),
    ("short.stl", b"x" * 30, "30 bytes are no STL"),
    ("nan.stl", stl(1, NAN), "vertex 1 is not finite"),
    ("cut.stl", b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n", "cut short"),
    (
        "lost.stl",
        b"solid\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nouter loop\nvertex 0\n",
        "make no triangles",
    ),
    ("words.stl", b"solid a\nouter loop\nvertex 0 0 0\nvertex 1 0 zero\nvertex 0 1 0\n", "'zero' is not a number"),
    ("index.obj", (OBJ + "f 1 2 99\n").encode(), "refers to vertex 99; there are 4"),
    ("zero.obj", (OBJ + "f 0 1 2\n").encode(), "line 5: a face refers to a vertex that does not exist"),
    ("back.obj", (OBJ + "f -9 1 2\n").encode(), "line 5: a face refers to a vertex that does not exist"),
    (
        "far.obj",
        ("# a\n" + OBJ + TETRAHEDRON + "f 1 2 5\nf 1 2 3\n").encode(),
        "line 10: a face refers to vertex 5; there",
    ),
    (
        "lines.obj",
        ("v 0 \\\n0 \\\r\n0\n" + OBJ + "f 0 1 2\n").encode(),
        "line 8: a face refers to a vertex",
    ),
    ("huge.obj", (OBJ + "f 1 2 99999999999999999999\n").encode(), "line 5: a face of"),
    ("minus.obj", (OBJ + "f 1 2 -99999999999999999999\n").encode(), "line 5: a face of"),
    ("text.obj", (OBJ + "f one two three\n").encode(), "line 5: a face of"),
    ("flat.obj", b"v 1 2\n", "line 1: a vertex of 2 coordinates"),
    ("nan.obj", (OBJ.replace("0 0 1", "0 0 nan") + TETRAHEDRON).encode(), "line 4: vertex 4 is not finite"),
    ("far.obj", (OBJ.replace("0 0 1", "0 0 1e300") + TETRAHEDRON).encode(), "line 4: vertex 4 is beyond any length"),
    ("comma.obj", (OBJ.replace("0 0 1", "0 0 0,5") + TETRAHEDRON).encode(), "line 4: '0,5' is not a number"),
    ("long.obj", (OBJ.replace("0 0 1", "0 0 " + "1" * 10**6) + TETRAHEDRON).encode(), "1' is not a number"),
    ("blank.obj", b"# nothing\n", "no triangles"),
    (
        "lies.msh",
        msh(np.zeros((4, 3)), [[0, 1, 2]])[:-4],
        "declares 4 vertices and 1 faces in 76 bytes, the file has 72",
    ),
    ("count.msh", struct.pack("<4i", -1, 0, 0, 1), "counts that fit no mesh"),
    ("gmsh.msh", b"$MeshFormat\n4.1 0 8\n", "Gmsh"),
    ("index.msh", msh(np.eye(4, 3), [[0, 1, 4]]), "triangle 1 refers to a vertex that does not exist"),
    ("lies.ply", b"ply\nformat ascii 1.0\nelement vertex 999999999999\nend_header\n", "999999999999 of vertex"),
    ("head.ply", b"ply\n", "no header"),
    ("laughs.dae", LAUGHS.encode(), "DOCTYPE not allowed"),
    ("cut.dae", b"<COLLADA>", "not well-formed XML"),
    ("double.dae", DAE.format(nodes=DOUBLING, top='<instance_node url="#n0"/>').encode(), "20000 nodes"),
    ("cycle.dae", DAE.format(nodes=CYCLE, top='<instance_node url="#n0"/>').encode(), "contain each other"),
    ("head.glb", b"glTF" + b"\0" * 20, "no binary glTF"),
    ("up.gltf", gltf(buffers=[{"byteLength": 36, "uri": "../../secret"}]), "'../../secret' is outside its folder"),
    ("coded.gltf", gltf(buffers=[{"byteLength": 36, "uri": "%2e%2e/secret"}]), "outside its folder"),
    ("root.gltf", gltf(buffers=[{"byteLength": 36, "uri": "/etc/passwd"}]), "outside its folder"),
    ("net.gltf", gltf(buffers=[{"byteLength": 36, "uri": "http://localhost/a"}]), "outside its folder"),
    ("none.gltf", gltf(buffers=[{"byteLength": 36, "uri": "gone.bin"}]), "'gone.bin': no such file"),
    ("much.gltf", gltf(accessors=[{"componentType": 5126, "count": 10**12, "type": "MAT4"}]), "declares 6.4e+13 bytes"),
    ("minus.gltf", gltf(accessors=[{"componentType": 5126, "count": -1, "type": "VEC3"}]), "bytes of data"),
    ("many.gltf", gltf(bufferViews=[{"buffer": 0, "byteLength": 36_000}] * 9), "bytes of data"),
    ("cycle.gltf", gltf(nodes=[{"mesh": 0, "children": [0]}]), "no trees"),
    (
        "packed.gltf",
        gltf(extensionsRequired=["KHR_draco_mesh_compression"]),
        "compressed by KHR_draco_mesh_compression",
    ),
    ("list.gltf", b"[1]", "no JSON object"),
    ("deep.gltf", b"[" * 100_000, "no JSON"),
    ("types.gltf", gltf(accessors=3), "not a readable gltf file"),
    *(
        (f"{name}.dae", TRIANGLE.format(count=1, kind=kind, p=p).encode(), words)
        for name, kind, p, words in (
            ("minus", "triangles", "0 -2 1", "index '-2', want whole numbers from 0"),
            ("minus_list", "polylist", "0 1 -1", "index '-1'"),
            ("minus_polygon", "polygons", "-3 1 2", "index '-3'"),
            ("huge", "triangles", "0 99999999999999999999 1", "index '99999999999999999999'"),
            ("wrap", "triangles", "0 4294967297 1", "index '4294967297'"),
            ("half", "triangles", "0 1.5 1", "index '1.5'"),
            ("beyond", "triangles", "0 1 3", ""),
        )
    ),
    *(
        (f"{name}.ply", PLY.format(kind=kind, face=face).encode(), "")
        for name, kind, face in (
            ("minus", "int", "3 0 -2 1"),
            ("beyond", "int", "3 0 1 3"),
            ("huge", "int", "3 0 1 99999999999999999999"),
            ("wrap", "uint", "3 0 1 4294967297"),
        )
    ),
    ("minus.msh", msh(np.eye(4, 3), [[0, 1, -1]]), "triangle 1 refers to a vertex that does not exist"),
    ("mesh.gltf", gltf(nodes=[{"mesh": -1}]), "refers to number -1 of its meshes; there are 1"),
    ("view.gltf", gltf(accessors=[GLTF["accessors"][0] | {"bufferView": -1}]), "number -1 of its bufferViews"),
    ("buffer.gltf", gltf(bufferViews=[{"buffer": -1, "byteLength": 36}]), "number -1 of its buffers"),
    ("point.gltf", gltf(meshes=[{"primitives": [{"attributes": {"POSITION": -1}}]}]), "number -1 of its accessors"),
    (
        "part.gltf",
        gltf(meshes=[{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}]),
        "number 1 of its",
    ),
    ("true.gltf", gltf(nodes=[{"mesh": False}]), "number False of its meshes"),
    ("child.gltf", gltf(nodes=[{"mesh": 0, "children": [-1]}]), "number -1 of its nodes"),
    ("scene.gltf", gltf(scene=-1), "number -1 of its scenes"),
    ("offset.gltf", gltf(bufferViews=[{"buffer": 0, "byteLength": 36, "byteOffset": -4}]), "no whole number from 0"),
    ("signed.gltf", indexed(5120, [0, -1, 1]), "a face refers to a vertex that does not exist"),
    ("beyond.gltf", indexed(5125, [0, 1, 3]), "a face refers to a vertex that does not exist"),
    ("more.glb", glb(1), "declares"),
    ("less.glb", glb(-4), "declares"),
    ("archive.zae", b"PK\3\4", "format '.zae' is not read; formats: stl obj"),
    ("archive.3mf", b"PK\3\4", "format '.3mf' is not read"),
]


@pytest.mark.parametrize(("name", "content", "reason"), BAD, ids=[name for name, _, _ in BAD])
def test_bad_files(name: str, content: bytes, reason: str, tmp_path: Path) -> None:
    """One line that names the file and the reason, and exit code 65."""
    (tmp_path / "a.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MeshError) as caught:
        read_mesh(tmp_path / name)
    line = str(caught.value)
    assert line.startswith(f"{name!r}: ") and reason in line
    assert "\n" not in line
    assert caught.value.exit_code == 65


def test_the_triangle_of_the_bad_gltf_is_good(tmp_path: Path) -> None:
    """So that each of the changes above is the reason why it is refused."""
    (tmp_path / "a.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    (tmp_path / "a.gltf").write_bytes(gltf())
    assert np.array_equal(read_mesh(tmp_path / "a.gltf").vertices, np.eye(3))


@pytest.mark.parametrize("kind", ["triangles", "polylist"])
def test_the_triangles_of_the_other_bad_files_are_good(kind: str, tmp_path: Path) -> None:
    for name, content in (
        ("a.dae", TRIANGLE.format(count=1, kind=kind, p="0 1 2").encode()),
        ("a.ply", PLY.format(kind="int", face="3 0 1 2").encode()),
        ("a.gltf", indexed(5125, [0, 1, 2])),
        ("b.gltf", indexed(5120, [0, 1, 2])),
        ("a.glb", glb(0)),
    ):
        (tmp_path / name).write_bytes(content)
        assert len(read_mesh(tmp_path / name).faces) == 1, name


def test_a_buffer_behind_a_link_is_outside(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(np.eye(3, dtype="<f4").tobytes())
    (inside / "a.bin").symlink_to(tmp_path / "secret")
    (inside / "a.gltf").write_bytes(gltf())
    with pytest.raises(MeshError, match="outside its folder"):
        read_mesh(inside / "a.gltf")


def test_half_a_collada_is_none(shape: trimesh.Trimesh, tmp_path: Path) -> None:
    """A part that cannot be read is no part to leave out."""
    path = write(shape, tmp_path / "a.dae")
    text = path.read_text()
    start = text.index("<triangles")
    piece = text[start : text.index("</triangles>") + len("</triangles>")]
    path.write_text(text.replace(piece, piece + piece))
    assert len(read_mesh(path).faces) == 16
    path.write_text(text.replace(piece, piece + piece.replace('source="#', 'source="#gone')))
    with pytest.raises(MeshError, match="not a readable dae"):
        read_mesh(path)


@pytest.mark.parametrize("name", ["pipe.stl", "folder.stl", "zero.stl", "gone.stl"])
def test_what_is_no_file(name: str, tmp_path: Path) -> None:
    """A pipe nobody writes into is not waited for."""
    os.mkfifo(tmp_path / "pipe.stl")
    (tmp_path / "folder.stl").mkdir()
    (tmp_path / "zero.stl").symlink_to("/dev/zero")
    with pytest.raises(MeshError, match=r"not a regular file|is a directory|no such file"):
        read_mesh(tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_too_many_faces(name: str, shape: trimesh.Trimesh, tmp_path: Path) -> None:
    path = write(shape, tmp_path / name)
    with pytest.raises(MeshError, match=r"8 triangles, above the cap of 7 \(--max-faces\)"):
        read_mesh(path, max_faces=7)
    assert len(read_mesh(path, max_faces=8).faces) == 8
    with pytest.raises(MeshError, match=r"8 triangles, above the cap"):  # what is kept is judged too
        read_mesh(path, max_faces=7)


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is judged by what the file system says."""
    path = tmp_path / "large.stl"
    with path.open("wb") as stream:
        stream.truncate(10**10)  # takes no room on the disk
    monkeypatch.setattr(module, "parse", None)
    with pytest.raises(MeshError, match=r"1e\+04 MB, above the cap of 1000 MB"):
        read_mesh(path)


def test_no_other_file_is_opened(shape: trimesh.Trimesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a material, not a texture: names in a file lead nowhere."""
    trimesh.load(write(shape, tmp_path / "a.dae"))  # imports what is imported late
    (tmp_path / "wood.mtl").write_text("newmtl a\nmap_Kd wood.png\n")
    (tmp_path / "wood.png").write_bytes(b"no picture")
    obj, dae = tmp_path / "b.obj", write(shape, tmp_path / "a.dae")
    obj.write_text(f"mtllib wood.mtl\nmtllib ../../../etc/passwd\nusemtl a\n{OBJ}{TETRAHEDRON}")
    picture = '<library_images><image id="i"><init_from>wood.png</init_from></image></library_images>'
    dae.write_text(dae.read_text().replace("<library_geometries>", picture + "<library_geometries>"))
    images = {"images": [{"uri": "wood.png"}], "textures": [{"source": 0}]}
    images["materials"] = [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]
    (tmp_path / "a.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    (tmp_path / "a.gltf").write_bytes(gltf(**images))
    monkeypatch.setenv("ARTSIM_CACHE_DIR", "/dev/null/none")

    plain = open

    def refuse(name: Any, *arguments: Any, **options: Any) -> Any:
        assert isinstance(name, int), f"opened {name}"  # the mesh itself, by its descriptor
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr("io.open", refuse)
    assert [len(read_mesh(path).faces) for path in (obj, dae, tmp_path / "a.gltf")] == [4, 8, 1]


def damaged(content: bytes, seed: int) -> Iterator[bytes]:
    """The content with a few bytes changed, lost, doubled or cut off."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        found = bytearray(content)
        for _ in range(rng.integers(1, 5)):
            place = int(rng.integers(min(len(found), 400 if rng.integers(2) else len(found)) or 1))
            what = rng.integers(5)
            if what == 0:
                found[place : place + 1] = bytes([rng.integers(256)])
            elif what == 1:
                del found[place : place + int(rng.integers(1, 30))]
            elif what == 2:
                found[place:place] = found[place : place + int(rng.integers(1, 100))]
            elif what == 3:
                found[place : place + 1] = [b"9999999999", b"-1", b"nan", b"1e999", b'"', b"\0"][rng.integers(6)]
            elif rng.integers(4) == 0:
                del found[place:]
        yield bytes(found)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name: str, shape: trimesh.Trimesh, tmp_path: Path) -> None:
    """Whatever comes of it: sound arrays, or the one error."""
    path = write(shape, tmp_path / name)
    outcomes = []
    for content in damaged(path.read_bytes(), len(name)):
        path.write_bytes(content)
        try:
            found = read_mesh(path)
        except MeshError:
            outcomes.append(False)
            continue
        outcomes.append(True)
        assert np.isfinite(found.vertices).all()
        assert found.faces.size == 0 or (found.faces.min() >= 0 and found.faces.max() < len(found.vertices))
    assert not all(outcomes)


# --- the cache -------------------------------------------------------------------------------------------------------


def unused(*_: Any) -> Mesh:
    """In place of a reader."""
    raise AssertionError("parsed again")


def test_a_mesh_is_parsed_once(
    shape: trimesh.Trimesh, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(shape, tmp_path / "a.glb")
    first = read_mesh(path)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    monkeypatch.setitem(READERS, ".glb", unused)
    again = read_mesh(path.rename(tmp_path / "other.glb"))  # the content counts, not the name
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(array.flags.writeable for array in again)


def test_the_cache_knows_what_changed(shape: trimesh.Trimesh, tmp_path: Path, cache: Path) -> None:
    """A buffer beside the file is content too."""
    path = write(shape, tmp_path / "a.gltf")
    before = read_mesh(path)
    buffer = next(item for item in tmp_path.glob("*.bin") if item.stat().st_size == 72)
    buffer.write_bytes((np.frombuffer(buffer.read_bytes(), "<f4") * 2).tobytes())
    assert np.allclose(read_mesh(path).vertices.max(axis=0), before.vertices.max(axis=0) * 2)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-40], lambda data: data.replace(b"\x3f", b"\x3e")]
)
def test_a_damaged_cache_heals(
    damage: Callable[[bytes], bytes], shape: trimesh.Trimesh, tmp_path: Path, cache: Path
) -> None:
    path = write(shape, tmp_path / "a.glb")
    before = read_mesh(path)
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    kept.write_bytes(damage(content))
    assert np.array_equal(read_mesh(path).vertices, before.vertices)
    assert len(kept.read_bytes()) == len(content)
    assert module.recall(kept, Mesh) is not None


def test_without_a_cache_meshes_are_read(
    shape: trimesh.Trimesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTSIM_CACHE_DIR", "/dev/null/none")
    assert len(read_mesh(write(shape, tmp_path / "a.glb")).faces) == 8


def test_small_files_are_not_kept(shape: trimesh.Trimesh, tmp_path: Path, cache: Path) -> None:
    """They are parsed faster than they are found."""
    read_mesh(write(shape, tmp_path / "bin.stl"))
    assert not cache.exists()
