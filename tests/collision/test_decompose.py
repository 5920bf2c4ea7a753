"""Meshes cut into convex parts: what lies in a hollow, how near the parts are, and what is said without the extra."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

import artsim
from artsim.collision.decompose import MOST_PARTS, convex_parts
from artsim.collision.hull import hull_volume, polyhedron
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_model import touching_shapes

CUP = [(0.0, 0.0), (0.2, 0.0), (0.2, 0.15), (0.17, 0.15), (0.17, 0.03), (0.0, 0.03)]  # radius, height [m]
SCENE = """<mujoco><asset><mesh name="cup" file="cup.stl"/></asset><worldbody><geom type="plane" size="0 0 1"/>
  <body name="cup"><freejoint/><geom type="mesh" mesh="cup" density="3000"/></body>
  <body name="ball" pos=".03 0 .2"><freejoint/><geom size=".05" mass=".2"/></body></worldbody></mujoco>"""


def cup() -> trimesh.Trimesh:
    return trimesh.creation.revolve(np.array(CUP), sections=16)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scene; what is kept of meshes is kept for this test alone."""
    monkeypatch.setattr("artsim.collision.decompose.mesh_cache_folder", lambda: tmp_path)
    cup().export(tmp_path / "cup.stl")
    (tmp_path / "scene.xml").write_text(SCENE)
    return tmp_path / "scene.xml"


def shapes_and_notes(path: Path, **options: bool) -> tuple[int, list[str]]:
    robot = artsim.load(path)
    notes: list[str] = []
    touching = touching_shapes(robot.articulation, robot, RunConfig(**options), notes)
    assert touching is not None
    return len(touching.shapes.kind), notes


def test_a_ball_lies_in_a_cup(path: Path) -> None:
    def height(decompose: bool) -> float:
        run = artsim.simulate(artsim.load(path), steps=400, decompose=decompose, record=["qpos", "qvel"])
        assert np.abs(run["qvel"][-1, 6:9]).max() < 0.1
        return float(run["qpos"][-1, 9])

    assert height(True) == pytest.approx(0.03 + 0.05, abs=2e-3)
    assert height(False) == pytest.approx(0.15 + 0.05, abs=2e-3)


def test_parts_are_as_large_as_the_mesh(path: Path) -> None:
    mesh = cup()
    parts = [polyhedron(points) for points in convex_parts(np.array(mesh.vertices), mesh.faces)]
    assert 4 < len(parts) <= MOST_PARTS
    assert mesh.volume < sum(map(hull_volume, parts)) < 1.15 * mesh.volume < mesh.convex_hull.volume
    inside = np.array([[0.0, 0.0, 0.1], [0.1, 0.0, 0.05], [-0.05, 0.1, 0.14]])
    for part in parts:  # nothing of them is in the hollow
        assert ((inside @ part.planes[:, :3].T - part.planes[:, 3]).max(axis=1) > 0).all()


def test_the_same_parts_every_time(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vertices, faces = np.array(cup().vertices), np.array(cup().faces)
    first = [part.tobytes() for part in convex_parts(vertices, faces)]
    (kept,) = tmp_path.glob("*.npz")
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "manifold3d", None)
        assert [part.tobytes() for part in convex_parts(vertices, faces)] == first  # as they were kept
    kept.unlink()
    assert [part.tobytes() for part in convex_parts(vertices, faces)] == first
    assert len(convex_parts(vertices, faces[:, ::-1])) == len(first)  # inside out


def test_convex_meshes_stay_whole(path: Path) -> None:
    trimesh.creation.icosphere(2, 0.1).export(path.parent / "cup.stl")
    assert shapes_and_notes(path, decompose=True) == (3, [])


def test_without_the_extra_the_hull_and_a_warning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "manifold3d", None)
    count, notes = shapes_and_notes(path, decompose=True)
    assert count == 3
    assert len(notes) == 1
    assert notes[0].startswith("mesh 'cup.stl' collides as its convex hull, which is 2.")
    assert notes[0].endswith("times as large (--decompose needs `pip install artsim[decompose]`)")
    assert shapes_and_notes(path) == (3, [])


def test_an_open_mesh_has_no_parts(path: Path) -> None:
    mesh = cup()
    mesh.update_faces(np.arange(len(mesh.faces)) > 3)
    mesh.export(path.parent / "cup.stl")
    count, notes = shapes_and_notes(path, decompose=True)
    assert count == 3
    assert "times as large (it is not closed: it has no parts)" in notes[-1]


def test_max_faces_counts_for_contact(path: Path) -> None:
    weighed = '<freejoint/><inertial pos="0 0 .05" mass="1" diaginertia=".01 .01 .01"/><geom type="mesh"'
    path.write_text(SCENE.replace('<freejoint/><geom type="mesh"', weighed))
    robot = artsim.load(path, max_faces=50)  # reads no mesh, since it weighs none
    with pytest.raises(ModelError, match=r"cup.stl.*above the cap of 50"):
        touching_shapes(robot.articulation, robot, RunConfig(), [])
