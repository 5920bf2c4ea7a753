"""What is drawn, the page that plays offline, and the viewer: in a real browser where there is one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from artsim.io.viewer.pieces import pieces_of
from artsim.io.viewer.triangles import AROUND, primitive
from artsim.loaders.load import load_articulation
from artsim.loaders.stored import StoredReader
from artsim.sim.configuration import RunConfig
from tests.conftest import ROOT

pytest.importorskip("viser")

ARM, CLAMP = ROOT / "robots" / "arm7.urdf", ROOT / "robots" / "clamp.xml"


# --- geometry --------------------------------------------------------------------------------------------------------

VOLUMES = {
    "box": ((1.0, 2.0, 3.0), 48.0),
    "sphere": ((0.5,), np.pi / 6),
    "ellipsoid": ((1.0, 2.0, 3.0), 8 * np.pi),
    "cylinder": ((0.5, 2.0), np.pi),
    "capsule": ((0.5, 1.0), np.pi / 2 + np.pi / 6),
}


@pytest.mark.parametrize("kind", VOLUMES)
def test_triangles_hold_the_volume_of_their_shape(kind: str) -> None:
    """Their signed volume tells that they are closed, look outward and have the right size."""
    size, volume = VOLUMES[kind]
    points, faces = primitive(kind, size)
    a, b, c = (points[faces[:, k]] for k in range(3))
    held = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    assert held <= volume * (1 + 1e-12)
    assert held > volume * (1 - 40 / AROUND**2)


def test_every_link_with_a_shape_has_a_piece_in_its_frame() -> None:
    notes: list[str] = []
    robot = load_articulation(CLAMP)
    pieces = pieces_of(robot, notes)
    assert not notes
    assert {piece.link for piece in pieces} == {link.name for link in robot.links if link.geoms}
    for piece in pieces:
        assert piece.faces.max() < len(piece.points)
        assert np.isfinite(piece.points).all()


def test_a_mesh_that_is_gone_is_told_and_the_rest_drawn(tmp_path: Path) -> None:
    text = """<robot name="r"><link name="base">
      <visual><geometry><mesh filename="gone.stl"/></geometry></visual>
      <visual><geometry><sphere radius="0.1"/></geometry></visual></link></robot>"""
    (tmp_path / "r.urdf").write_text(text)
    notes: list[str] = []
    pieces = pieces_of(load_articulation(tmp_path / "r.urdf"), notes)
    assert [piece.link for piece in pieces] == ["base"]
    assert len(notes) == 1
    assert "gone.stl" in notes[0]


def test_meshes_of_a_stored_model_come_from_a_file_that_says_the_same(tmp_path: Path) -> None:
    """Not from one that has changed, or that says something else: a file must not choose what is read."""
    robot = load_articulation(CLAMP)
    reader = StoredReader(RunConfig(), {}, None)

    def meshes(path: str) -> set[Path | None]:
        read = reader.read(robot.text, "clamp", path)
        assert [link.name for link in read.links] == [link.name for link in robot.links]
        return {geom.mesh for link in read.links for geom in link.geoms if geom.kind == "mesh"}

    there = {geom.mesh for link in robot.links for geom in link.geoms if geom.kind == "mesh"}
    assert there
    assert None not in there
    assert meshes(str(CLAMP)) == there
    assert meshes(str(ARM)) == meshes("-") == meshes("/dev/stdin") == meshes(str(tmp_path)) == {None}
    changed = tmp_path / "clamp.xml"
    changed.write_text(CLAMP.read_text().replace("<mujoco", "<!-- --><mujoco", 1))
    assert dataclasses.replace(load_articulation(CLAMP), path="") == dataclasses.replace(robot, path="")
    assert meshes(str(changed)) == {None}
