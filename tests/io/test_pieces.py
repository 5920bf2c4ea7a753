"""Meshes and height fields in run files: runs again where the mesh files are gone, and damaged pieces refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import trimesh

import artsim
from artsim.cli.replay import load_stored
from artsim.io.readers.recording import open_recording
from artsim.io.runs.replay import verify
from artsim.sim.foundation.errors import ModelError

SCENE = """<mujoco><option timestep="0.004"/>
<asset><mesh name="stone" file="stone.stl"/><mesh name="big" file="stone.stl" scale="2 1 1"/>
  <hfield name="hills" nrow="3" ncol="4" size="1 1 .1 .1" elevation="0 1 0 2 0 0 3 0 1 0 0 1"/></asset>
<worldbody><geom name="hills" type="hfield" hfield="hills"/>
  <body pos="0 0 .35"><freejoint/><geom name="a" type="mesh" mesh="stone"/><geom name="a2" type="mesh" mesh="stone"
    pos=".05 0 .1"/></body>
  <body pos=".3 .3 .4"><freejoint/><geom name="b" type="mesh" mesh="big"/></body>
  <body pos="-.4 .2 .4"><freejoint/><geom name="c" size=".06"/></body></worldbody></mujoco>"""
MASS = """<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>"""
TRAY = f"""<robot name="r"><link name="world"/><link name="tray"><collision><geometry><mesh filename="tray.stl"/>
  </geometry></collision></link><joint name="j" type="fixed"><parent link="world"/><child link="tray"/></joint>
  <link name="ball">{MASS}<collision><geometry><sphere radius=".05"/></geometry></collision></link>
  <link name="cart">{MASS}</link>
  <joint name="x" type="prismatic"><axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="0" velocity="0"/>
    <parent link="world"/><child link="cart"/></joint>
  <joint name="z" type="prismatic"><axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="0" velocity="0"/>
    <parent link="cart"/><child link="ball"/></joint></robot>"""


def run_of(folder: Path, kind: str) -> Path:
    """A run in which meshes touch; its model and meshes are gone afterwards."""
    source = folder / "source"
    source.mkdir()
    if kind == "mjcf":
        trimesh.creation.icosphere(1, 0.1).export(source / "stone.stl")
        (source / "m.xml").write_text(SCENE)
        robot = artsim.load(source / "m.xml")
        artsim.simulate(robot, steps=150, output=folder / "run.h5").close()
    else:
        mesh = trimesh.creation.box((0.4, 0.4, 0.1))
        mesh.export(source / "tray.stl")
        (source / "m.urdf").write_text(TRAY)
        robot = artsim.load(source / "m.urdf")
        artsim.simulate(robot, steps=80, q0={"z": 0.105}, self_collide=True, output=folder / "run.h5").close()
    shutil.rmtree(source)
    return folder / "run.h5"


@pytest.fixture(scope="module")
def mjcf_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("mjcf"), "mjcf")


def test_replay_needs_no_mesh_file(mjcf_run: Path) -> None:
    with open_recording(mjcf_run) as run:
        kept, geoms = run.kept, run.labels.geom
        touched = {geoms[n] for side in "ab" for n in run.contacts[f"geom_{side}"]}
    assert touched >= {"hills", "a", "b"}
    assert [piece.kind for piece in kept.pieces] == ["heightfield", "convex", "convex"]
    assert kept.geom == (0, 1, 2, 3)
    assert kept.piece == (0, 1, 1, 2)  # the stone is there once for each of its sizes
    assert verify(mjcf_run, load_stored) is None


def test_replay_of_triangles(tmp_path: Path) -> None:
    output = run_of(tmp_path, "urdf")
    with open_recording(output) as run:
        assert [piece.kind for piece in run.kept.pieces] == ["triangles"]
        assert run.contacts["contact_count"].max() > 0
    assert verify(output, load_stored) is None


def test_a_stored_run_is_run_again_with_its_shapes(mjcf_run: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from artsim.cli.run import run

    words = ["--config", str(mjcf_run), "-o", str(tmp_path / "again.h5"), "-q"]
    assert CliRunner().invoke(run, words, catch_exceptions=False).exit_code == 0
    with open_recording(mjcf_run) as a, open_recording(tmp_path / "again.h5") as b:
        assert a["qpos"].tobytes() == b["qpos"].tobytes()
        assert len(a.contacts["step"]) == len(b.contacts["step"]) > 0


def beyond(file: h5py.File) -> None:
    file["model/corner_vertex"][3] = 10**6


def negative(file: h5py.File) -> None:
    file["model/corner_vertex"][3] = -1


def endless(file: h5py.File) -> None:
    file["model/vertex_position"][2, 1] = np.inf


def longer(file: h5py.File) -> None:
    file["model/piece_faces"][1] += 1


def unused(file: h5py.File) -> None:
    file["model/use_piece"][1] = 3


def kindless(file: h5py.File) -> None:
    file["model/piece_kind"][1] = 7


@pytest.mark.parametrize("change", [beyond, negative, endless, longer, unused, kindless])
def test_damaged_pieces_are_refused(mjcf_run: Path, tmp_path: Path, change: Callable[[h5py.File], None]) -> None:
    path = tmp_path / "run.h5"
    shutil.copy(mjcf_run, path)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(ModelError, match=r"/model/\w+ is damaged: no shapes can be made of it"):
        verify(path, load_stored)


def test_what_rangefinders_saw_is_kept(tmp_path: Path) -> None:
    """A mesh that is only seen, as it is, and one that collides as its hull and is seen as it is."""
    (tmp_path / "tent.obj").write_text(
        "v -1 -1 0\nv 1 -1 0\nv 0 1 0\nv 0 0 1\nv 0 0 .3\nf 1 2 4\nf 2 3 4\nf 3 1 4\nf 2 1 5\nf 3 2 5\nf 1 3 5\n"
    )
    (tmp_path / "scene.xml").write_text(
        """<mujoco><asset><mesh name="t" file="tent.obj"/></asset><worldbody>
        <geom type="mesh" mesh="t" pos="0 0 2" contype="0" conaffinity="0"/><geom type="mesh" mesh="t"/>
        <body pos="0 0 1.3"><freejoint/><geom type="box" size=".1 .1 .02"/><site name="up"/>
        <site name="down" zaxis="0 .1 -1"/></body></worldbody>
        <sensor><rangefinder site="up"/><rangefinder site="down"/></sensor></mujoco>"""
    )
    out = tmp_path / "out.h5"
    artsim.simulate(artsim.load(tmp_path / "scene.xml"), steps=5, record=["qpos", "sensors"], output=out)
    with artsim.open(out) as run:
        assert [piece.kind for piece in run.kept.pieces] == ["convex", "triangles"]
        assert run.kept.seen == (0, 1, 1) and run.kept.geom == (1, 0, 1)
        assert run["sensors"][0, 0] == pytest.approx(1.0)
    (tmp_path / "tent.obj").unlink()
    assert verify(out, load_stored) is None
