"""Shapes from geoms: hulls, triangle trees, poses, what is refused. Truths: MuJoCo's compiled geoms, trimesh, scipy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from artsim.collision.build import Solid, build_shapes
from artsim.collision.hull import corners_of, hull_volume, polyhedron, volume
from artsim.collision.shapes import BOX, CONVEX, HEIGHT_FIELD, PLANE, TRIANGLES, Shapes
from artsim.collision.triangle_tree import triangle_tree
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import kinds
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.geometry.solids import read_solids

Real = NDArray[np.float64]
CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
TURN = rotation_matrix(np.array([0.3, -0.5, 0.7, 0.2]) / np.linalg.norm([0.3, -0.5, 0.7, 0.2]))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ARTSIM_CACHE_DIR", str(folder))
    return folder / "meshes"


def solid(kind: str = "convex", **fields: Any) -> Solid:
    return Solid(**{"kind": kind, "size": (), "position": np.zeros(3), "rotation": np.eye(3), "name": "m", **fields})


# --- hulls -----------------------------------------------------------------------------------------------------------


def check_polyhedron(points: Real, most_off: float = 1e-6) -> Any:
    """A hull is closed, convex, outward, holds the points, and its graph is that of its faces."""
    made = polyhedron(points)
    size = np.abs(points - points.mean(axis=0)).max()
    rings = [made.corners[a:b] for a, b in zip(made.corner_start[:-1], made.corner_start[1:], strict=True)]
    edges = {(int(a), int(b)) for ring in rings for a, b in zip(ring, np.roll(ring, -1), strict=True)}
    assert len(edges) == len(made.corners) and {(b, a) for a, b in edges} == edges
    assert len(made.vertices) - len(edges) // 2 + len(rings) == 2
    starts = made.neighbour_start
    assert edges == {(a, int(b)) for a in range(len(starts) - 1) for b in made.neighbours[starts[a] : starts[a + 1]]}
    assert np.allclose(np.linalg.norm(made.planes[:, :3], axis=1), 1)
    assert (points @ made.planes[:, :3].T - made.planes[:, 3]).max() < most_off * size
    for ring, plane in zip(rings, made.planes, strict=True):
        assert np.abs(made.vertices[ring] @ plane[:3] - plane[3]).max() < most_off * size
    directions = np.random.default_rng(1).normal(size=(500, 3))
    assert np.abs((made.vertices @ directions.T).max(axis=0) - (points @ directions.T).max(axis=0)).max() < (
        5 * most_off * size
    )
    return made


def test_a_cube_has_six_faces_whatever_lies_on_them() -> None:
    rng = np.random.default_rng(0)
    inner = rng.uniform(-1, 1, (300, 3))
    on = rng.uniform(-1, 1, (300, 3))
    on[np.arange(300), rng.integers(0, 3, 300)] = rng.choice([-1, 1], 300)
    edge = np.array([[t, 1, 1] for t in np.linspace(-1, 1, 9)])
    points = np.concatenate([CUBE, inner, on, edge, CUBE])
    for place in (points, (points * [1, 2, 3]) @ TURN.T + 5, (points @ TURN.T + 3).astype(np.float32).astype(float)):
        made = check_polyhedron(place)
        assert (len(made.planes), len(made.vertices), len(made.corners)) == (6, 8, 24)
        assert volume(made.vertices, trimesh.convex.convex_hull(made.vertices).faces) == pytest.approx(
            hull_volume(made)
        )


@pytest.mark.parametrize("count", [4, 5, 20, 1000])
def test_random_hulls(count: int) -> None:
    rng = np.random.default_rng(count)
    for scale in (1e-4, 1.0, 1e3):
        points = rng.normal(size=(count, 3)) * scale + rng.normal(size=3) * scale
        made = check_polyhedron(points)
        assert hull_volume(made) == pytest.approx(trimesh.convex.convex_hull(points).volume)


def test_round_and_needle_shapes() -> None:
    check_polyhedron(np.asarray(trimesh.creation.icosphere(4).vertices))
    can = np.asarray(trimesh.creation.cylinder(0.05, 0.2, sections=64).subdivide().vertices)
    made = check_polyhedron((can @ TURN.T + 0.4).astype(np.float32).astype(float))
    assert (len(made.vertices), len(made.planes)) == (128, 66)
    rng = np.random.default_rng(2)
    for thin in ([1, 1e-4, 1e-4], [1, 1, 1e-4], [1, 1e-6, 1e-6]):
        check_polyhedron(rng.normal(size=(100, 3)) * thin @ TURN.T)


def test_a_flat_mesh_is_a_polygon_with_two_sides() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0.5, 0]], float)
    points = np.column_stack([square, np.zeros(6)]) @ TURN.T + 2
    made = check_polyhedron(points)
    assert (len(made.vertices), len(made.planes)) == (4, 2)
    assert np.allclose(made.planes[0, :3], -made.planes[1, :3])
    assert np.allclose(np.abs(made.planes[:, :3] @ TURN[:, 2]), 1)


@pytest.mark.parametrize("points", [np.zeros((5, 3)), np.ones((1, 3)), np.outer(np.linspace(0, 1, 9), [1, 2, 3])])
def test_what_has_no_extent_is_named(points: Real) -> None:
    with pytest.raises(ModelError, match=r"robot.urdf:3: mesh 'x': .*on a line"):
        build_shapes([solid(points=points, name="robot.urdf:3: mesh 'x'")])


def test_a_hull_of_so_many_vertices() -> None:
    points = np.random.default_rng(3).normal(size=(500, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    assert len(polyhedron(points[corners_of(points, 20)]).vertices) <= 20
    assert len(polyhedron(points).vertices) == 500


def test_hulls_are_kept(cache: Path) -> None:
    points = np.random.default_rng(4).normal(size=(1000, 3))
    first = polyhedron(points)
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    for one, two in zip(first, polyhedron(points), strict=True):
        assert np.array_equal(one, two) and not two.flags.writeable
    assert kept.stat().st_mtime_ns == written
    kept.write_bytes(kept.read_bytes()[:-100])  # damaged: made anew
    assert np.array_equal(polyhedron(points).planes, first.planes)


# --- triangles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 3])
def test_the_tree_holds_every_triangle_once(level: int) -> None:
    mesh = trimesh.creation.icosphere(level)
    faces = np.concatenate([mesh.faces, [[0, 0, 1], [2, 2, 2]]])  # slivers are left out
    tree = triangle_tree(np.asarray(mesh.vertices), faces)
    assert len(tree.triangles) == len(mesh.faces) and (tree.across >= 0).all()
    reached, node = [], 0
    while node < len(tree.skip):  # the walk of a kernel that opens every box
        first, end = tree.leaf[node]
        for t in range(first, end):
            corners = tree.vertices[tree.triangles[t]]
            assert (corners >= tree.box[node, :3]).all() and (corners <= tree.box[node, 3:]).all()
            reached.append(t)
        assert node < tree.skip[node] <= len(tree.skip)
        node += 1
    assert reached == list(range(len(tree.triangles)))
    found = {tuple(sorted(map(tuple, corners))) for corners in tree.vertices[tree.triangles].round(9).tolist()}
    assert found == {tuple(sorted(map(tuple, corners))) for corners in mesh.triangles.round(9).tolist()}
    for t, row in enumerate(tree.across):
        for k, other in enumerate(row):
            edge = {int(tree.triangles[t, k]), int(tree.triangles[t, (k + 1) % 3])}
            assert edge <= set(tree.triangles[other].tolist())


def test_edges_that_do_not_fit_have_no_triangle_across() -> None:
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, 0]], float)
    tree = triangle_tree(points, np.array([[0, 1, 2], [1, 0, 3], [1, 0, 4]]))  # three at the edge 0-1
    assert (tree.across == -1).all()
    tree = triangle_tree(points, np.array([[0, 1, 2], [0, 1, 3]]))  # both pass it in the same direction
    assert (tree.across == -1).all()


# --- shapes ----------------------------------------------------------------------------------------------------------


def test_shapes_are_centred_and_keep_their_place() -> None:
    rng = np.random.default_rng(5)
    mesh = trimesh.creation.icosphere(2)
    solids = [
        solid("plane"),
        solid(points=CUBE * [1, 2, 3] + 4, position=rng.normal(size=3), rotation=TURN, geom=1),
        solid("box", size=(0.1, 0.2, 0.3), geom=2),
        solid("triangles", points=np.asarray(mesh.vertices) + 7, faces=mesh.faces, geom=3),
        solid("heightfield", size=(2, 1, 0.5), heights=rng.uniform(0, 3, (3, 4)), geom=4),
        solid(points=rng.normal(size=(30, 3)), geom=5),
        solid(points=CUBE * [1, 2, 3] + 4, geom=6),
    ]
    built = build_shapes(solids)
    shapes = built.shapes
    for (name, kind), array in zip(kinds(Shapes).items(), shapes, strict=True):
        assert (array.dtype, array.ndim) == (kind.dtype, kind.ndim) and not array.flags.writeable, name
    assert shapes.kind.tolist() == [PLANE, CONVEX, BOX, TRIANGLES, HEIGHT_FIELD, CONVEX, CONVEX]
    assert built.geom.tolist() == list(range(7))
    assert shapes.mesh[1] == shapes.mesh[6] != shapes.mesh[5]  # one mesh for two solids
    for n in (1, 5):
        held = world_points(built, n)
        placed = np.asarray(solids[n].points) @ solids[n].rotation.T + solids[n].position
        directions = rng.normal(size=(100, 3))
        assert np.allclose((held @ directions.T).max(axis=0), (placed @ directions.T).max(axis=0))
        inside = shapes.vertex[shapes.vertex_start[shapes.mesh[n]] : shapes.vertex_start[shapes.mesh[n] + 1]]
        assert np.allclose(inside.max(axis=0), shapes.size[n]) and np.allclose(inside.min(axis=0), -shapes.size[n])
        faces = slice(shapes.face_start[shapes.mesh[n]], shapes.face_start[shapes.mesh[n] + 1])
        assert np.allclose((inside @ shapes.plane[faces, :3].T).max(axis=0), shapes.plane[faces, 3])
        for face in range(faces.start, faces.stop):
            ring = shapes.corner[shapes.corner_start[face] : shapes.corner_start[face + 1]]
            assert np.allclose(shapes.vertex[ring] @ shapes.plane[face, :3], shapes.plane[face, 3])
    triangles = slice(*shapes.triangle_start[[shapes.mesh[3], shapes.mesh[3] + 1]])
    held = shapes.vertex[shapes.triangle[triangles]].reshape(-1, 3) + built.position[3]
    assert np.allclose(np.unique(held.round(9), axis=0), np.unique((np.asarray(mesh.vertices) + 7).round(9), axis=0))
    nodes = slice(*shapes.node_start[[shapes.mesh[3], shapes.mesh[3] + 1]])
    assert np.allclose(shapes.node_box[nodes.start], [*-shapes.size[3], *shapes.size[3]])
    assert shapes.node_skip[nodes.start] == nodes.stop
    heights = shapes.elevation.reshape(3, 4) + built.position[4][2]
    assert np.allclose(heights, np.asarray(solids[4].heights))
    assert built.position[4][2] - shapes.size[4][2] == pytest.approx(-0.5)
    assert built.position[4][2] + shapes.size[4][2] == pytest.approx(heights.max())


def world_points(built: Any, n: int) -> Real:
    """The vertices of a mesh's shape in the frame of its link."""
    shapes, mesh = built.shapes, built.shapes.mesh[n]
    inside = shapes.vertex[shapes.vertex_start[mesh] : shapes.vertex_start[mesh + 1]]
    return np.asarray(inside @ built.rotation[n].T + built.position[n])


# --- beside MuJoCo ---------------------------------------------------------------------------------------------------

BESIDE = """<mujoco><asset>
<mesh name="a" vertex="0 0 0  1 0 0  0 1.5 0  0 0 2  .3 .3 -.4" scale="1 -2 .5" refpos=".1 .2 .3" refquat="1 2 3 4"/>
<mesh name="b" vertex="{}" maxhullvert="8"/>
<hfield name="h" nrow="3" ncol="4" size="2 1 .5 .25" elevation="1 2 3 4 5 6 7 8 9 10 11 12"/></asset><worldbody>
<geom type="hfield" hfield="h" pos="1 2 3" euler="10 20 30"/>
<body name="p" pos="1 2 3" euler="30 40 50"><freejoint/><geom type="mesh" mesh="a" pos=".4 .5 .6" euler="5 6 7"/>
<geom type="mesh" mesh="b"/></body></worldbody></mujoco>"""


def used_geoms(articulation: Articulation) -> list[tuple[str, Geom]]:
    return [(link.name, geom) for link in articulation.links for geom in link.geoms if geom.kind == "mesh"]


def compare(articulation: Articulation, model: Any) -> int:
    """Hulls reach as far in every direction as MuJoCo's vertices, in their bodies' frames."""
    names = {model.body(k).name or f"body_{k}": k for k in range(model.nbody)}
    directions = np.random.default_rng(6).normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    geoms = [(link, geom) for link, geom in used_geoms(articulation) if not geom.mesh_absent]
    built = build_shapes(read_solids([(geom, True) for _, geom in geoms], exact=[False] * len(geoms), notes=[]))
    mine: dict[str, list[int]] = {}
    for n, (link, _) in enumerate(geoms):
        mine.setdefault(link, []).append(n)
    for link, numbers in mine.items():
        body = names[link]
        theirs = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body and model.geom_type[g] == 7]
        assert len(theirs) == len(numbers)
        for n, g in zip(numbers, theirs, strict=True):
            mesh = model.geom_dataid[g]
            points = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]].astype(float)
            if geoms[n][1].most_hull_vertices >= 0:
                start = model.mesh_graphadr[mesh]
                count = model.mesh_graph[start]
                points = points[model.mesh_graph[start + 2 + count :][:count]]
            points = points @ rotation_matrix(model.geom_quat[g]).T + model.geom_pos[g]
            reach = (world_points(built, n) @ directions.T).max(axis=0)
            size = np.abs(points - points.mean(axis=0)).max()  # MuJoCo holds vertices in 24 bits
            assert np.abs(reach - (points @ directions.T).max(axis=0)).max() < 5e-7 * (size + np.abs(points).max())
    return len(geoms)


def test_hulls_are_where_mujoco_has_them() -> None:
    points = np.random.default_rng(7).normal(size=(60, 3)).astype(np.float32)
    text = BESIDE.format(" ".join(f"{x:.9g}" for x in points.ravel()))
    assert compare(load_text(text, name="m.xml"), mujoco.MjModel.from_xml_string(text)) == 2


FEW = """<mujoco><asset><mesh name="a" maxhullvert="8" {} scale="1 -2 .5" refpos=".1 .2 .3" refquat="1 2 3 4"/></asset>
<worldbody><body name="p"><freejoint/><geom type="mesh" mesh="a"/></body></worldbody></mujoco>"""
CLOUD = np.random.default_rng(8).normal(size=(40, 3)).astype(np.float32)
ROUND = {"cone": "6 .5", "sphere": "1", "hemisphere": "3", "supersphere": "5 1.2 .7", "supertorus": "6 .3 .7 1.1"}
MADE = {kind: f'builtin="{kind}" params="{params}"' for kind, params in ROUND.items()}
MADE["wedge"] = 'builtin="wedge" params="6 4 50 30 .1" inertia="shell"'


@pytest.mark.parametrize("made", [*MADE.values(), f'vertex="{" ".join(map(repr, CLOUD.ravel().tolist()))}"'])
def test_hulls_of_few_vertices_are_of_those_that_mujoco_takes(made: str) -> None:
    """Where many corners lie alike, the last digit of the file's numbers decides, before they are scaled and turned."""
    text = FEW.format(made)
    assert compare(load_text(text, name="m.xml"), mujoco.MjModel.from_xml_string(text)) == 1


def test_height_fields_are_mujocos() -> None:
    text = BESIDE.format("0 0 0 1 0 0 0 1 0 0 0 1")
    articulation, model = load_text(text, name="m.xml"), mujoco.MjModel.from_xml_string(text)
    (geom,) = (geom for link in articulation.links for geom in link.geoms if geom.kind == "heightfield")
    assert geom.size == (2, 1, 0.25)
    assert np.allclose(geom.heights, 0.5 * model.hfield_data.reshape(3, 4))
    built = build_shapes(read_solids([(geom, False)], exact=[False], notes=[]))
    turned = rotation_matrix(model.geom_quat[0])
    assert np.allclose(built.rotation[0], turned)
    assert np.allclose(built.position[0] - turned[:, 2] * (built.shapes.size[0, 2] - 0.25), model.geom_pos[0])


@pytest.mark.corpus
def test_hulls_of_public_models_are_where_mujoco_has_them() -> None:
    root = os.environ.get("ARTSIM_CORPUS")
    if not root:
        pytest.skip("ARTSIM_CORPUS is not set")
    entries = [
        entry
        for entry in json.loads((Path(root) / "index.json").read_text())
        if entry["format"] == "mjcf" and entry["tier"] == "robot" and entry.get("nmesh") and entry.get("oracle")
    ]
    compared = 0
    for entry in entries[:: max(1, len(entries) // 8)]:
        path = Path(root) / entry["path"]
        compared += compare(load_articulation(path), mujoco.MjModel.from_xml_path(str(path)))
    assert compared > 50


# --- what is missing -------------------------------------------------------------------------------------------------

ROBOT = """<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
izz="1"/></inertial><collision name="shell"><geometry><mesh filename="{}"/></geometry></collision></link></robot>"""


def solids_of(path: Path, name: str, content: bytes | None = None, moving: bool = True, **options: Any) -> list[Solid]:
    if content is not None:
        (path / name).write_bytes(content)
    (path / "r.urdf").write_text(ROBOT.format(name))
    articulation = load_articulation(path / "r.urdf", **options)
    notes: list[str] = []
    geoms = [(geom, moving) for _, geom in used_geoms(articulation)]
    solids = read_solids(geoms, exact=[True] * len(geoms), notes=notes)
    build_shapes(solids)
    return [*solids, *notes]  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("no.stl", None, ("not found: tried", "no.stl'", "--no-meshes")),  # 55
        ("package://none/x.stl", None, ("no package 'none'", "--package none=DIR")),  # 60
        ("x.stl", b"\0" * 80 + (4_000_000_000).to_bytes(4, "little") + b"\0" * 50, ("declares 4000000000",)),  # 65
        ("x.stl", b"\0" * 84, ("no triangles",)),  # 66
        ("x.stl", b"\0" * 80 + b"\1\0\0\0" + np.full(12, np.nan, "<f4").tobytes() + b"\0\0", ("not finite",)),  # 67
        ("x.dae", b'<!DOCTYPE a [<!ENTITY b "c">]><COLLADA/>', ("DOCTYPE",)),  # 68
        ("x.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99\n", ("refers to vertex 99",)),  # 71
        ("x.gltf", b'{"asset":{"version":"2.0"},"buffers":[{"uri":"../../x","byteLength":4}]}', ("outside",)),  # 73
    ],
)
def test_a_mesh_that_is_used_must_be_there(
    name: str, content: bytes | None, words: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as refused:
        solids_of(tmp_path, name, content)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'r.urdf'}:2: geom 'shell': mesh {name!r}") and "\n" not in message
    assert all(word in message for word in words), message
    (note,) = solids_of(tmp_path, name, meshes=False)
    assert note == "'shell' does not collide: meshes were not looked for"


def test_a_mirrored_mesh_faces_outward(tmp_path: Path) -> None:  # 75
    trimesh.Trimesh(CUBE + 3, trimesh.convex.convex_hull(CUBE).faces, process=False).export(tmp_path / "x.stl")
    (tmp_path / "r.urdf").write_text(ROBOT.format('x.stl" scale="1 -1 2'))
    for moving, kind in ((True, "convex"), (False, "triangles")):
        articulation = load_articulation(tmp_path / "r.urdf")
        geoms = [(geom, moving) for _, geom in used_geoms(articulation)]
        (made,) = read_solids(geoms, exact=[True] * len(geoms), notes=[])
        assert made.kind == kind and made.points is not None and made.faces is not None
        assert volume(made.points, made.faces) == pytest.approx(16)


def test_a_hull_much_larger_than_its_mesh_is_noted(tmp_path: Path) -> None:
    bent = trimesh.util.concatenate([trimesh.creation.box((2, 1, 1)), trimesh.creation.box((0.2, 1, 3))])
    bent.export(tmp_path / "x.stl")
    *_, note = solids_of(tmp_path, "x.stl")
    assert "'x.stl' collides as its convex hull, which is" in str(note)
    assert len(solids_of(tmp_path, "x.stl", moving=False)) == 1
