"""Height fields from files, beside MuJoCo's own reading of them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.geometry.solids import read_solids

Bytes = npt.NDArray[np.uint8]
RNG = np.random.default_rng(3)
MODEL = """<mujoco><compiler meshdir="assets"/><asset><hfield name="f" file="{}" size="2 1 .5 .1"/></asset><worldbody>
  <geom type="hfield" hfield="f" name="hills"/><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
COLOURS = {"grey": (0, 1), "rgb": (2, 3), "grey and alpha": (4, 2), "rgba": (6, 4)}


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(points: Bytes, colour: int, depth: int = 8, interlaced: int = 0) -> bytes:
    """An image whose lines have each of the five filters in turn; points (rows, columns, bytes of a point)."""
    rows, columns, width = points.shape
    lines = b""
    above = np.zeros((columns, width), int)
    for row in range(rows):
        here, kind = points[row].astype(int), row % 5
        left = np.vstack([np.zeros((1, width), int), here[:-1]])
        corner = np.vstack([np.zeros((1, width), int), above[:-1]])
        near = left + above - corner
        off = [abs(near - x) for x in (left, above, corner)]
        paeth = np.where((off[0] <= off[1]) & (off[0] <= off[2]), left, np.where(off[1] <= off[2], above, corner))
        expected = [0 * here, left, above, (left + above) // 2, paeth][kind]
        lines += bytes([kind]) + ((here - expected) % 256).astype(np.uint8).tobytes()
        above = here
    head = struct.pack(">2I5B", columns * 8 // depth if depth < 8 else columns, rows, depth, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / "assets").mkdir()
    (folder / "assets" / name).write_bytes(content)
    (folder / "m.xml").write_text(MODEL.format(name))
    return folder / "m.xml"


def check(path: Path) -> None:
    """Our heights are MuJoCo's."""
    model = mujoco.MjModel.from_xml_path(str(path))
    theirs = 0.5 * model.hfield_data.reshape(model.hfield_nrow[0], model.hfield_ncol[0])
    (geom,) = load_articulation(path).links[0].geoms
    assert geom.mesh_absent == ""
    assert np.array(geom.heights) == pytest.approx(theirs, abs=1e-7)
    assert theirs.max() == pytest.approx(0.5)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("depth", [8, 16])
def test_png(tmp_path: Path, colour: str, depth: int) -> None:
    kind, channels = COLOURS[colour]
    points = RNG.integers(0, 256, (11, 7, channels * depth // 8), dtype=np.uint8)
    check(written(tmp_path, "hills.png", png(points, kind, depth)))


def test_floats(tmp_path: Path) -> None:
    values = RNG.normal(size=(5, 8)).astype("<f4")
    check(written(tmp_path, "hills.bin", struct.pack("<2i", 5, 8) + values.tobytes()))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "x.bin",
            struct.pack("<2i", 5, 8) + bytes(12),
            "says 5 rows and 8 columns, which is not what its 20 bytes hold",
        ),
        ("x.bin", struct.pack("<2i", -5, -8) + bytes(160), "says -5 rows"),
        ("x.bin", struct.pack("<2i", 2, 2) + struct.pack("<4f", 0, 1, np.nan, 0), "a height is not finite"),
        ("x.bin", struct.pack("<2i", 1, 2) + bytes(8), "want 2 rows and 2 columns at least"),
        ("x.bin", b"", "unpack"),
        ("x.png", b"GIF89a", "is not a PNG image"),
        ("x.png", png(np.zeros((4, 4, 1), np.uint8), 3), "without palette, not interlaced"),
        ("x.png", png(np.zeros((4, 4, 1), np.uint8), 0, interlaced=1), "not interlaced"),
        ("x.png", png(np.zeros((4, 4, 1), np.uint8), 0)[:50], "cut off"),
        ("x.png", png(np.zeros((40, 40, 1), np.uint8), 2), "cut off"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    with pytest.raises(ModelError, match=rf"m.xml:1: .*hfield 'f'.*{told}"):
        load_articulation(written(tmp_path, name, content))


def test_a_huge_image_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    head = struct.pack(">2I5B", 2**31 - 1, 2**31 - 1, 8, 0, 0, 0, 0)
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000)))
    with pytest.raises(ModelError, match="at most 5000000 are read"):
        load_articulation(written(tmp_path, "x.png", image))


def test_files_that_are_not_there_or_not_looked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "hills.png", b"")
    (tmp_path / "assets" / "hills.png").unlink()
    (geom,) = load_articulation(path).links[0].geoms
    with pytest.raises(ModelError, match=r"geom 'hills': heights not found: tried .*hills.png"):
        read_solids([(geom, False)], exact=[False], notes=[])
    (geom,) = load_articulation(path, meshes=False).links[0].geoms
    notes: list[str] = []
    assert read_solids([(geom, False)], exact=[False], notes=notes) == []
    assert notes == ["'hills' does not collide: meshes were not looked for"]


def test_a_file_outside_the_model_s_folder_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "hills.png", b"")
    path.write_text(MODEL.format("../../../../../../etc/passwd"))
    with pytest.raises(ModelError, match="outside the allowed roots"):
        load_articulation(path)


def test_a_field_of_4097_lines(tmp_path: Path) -> None:
    """MuJoCo's own format has room for a terrain; its heights stand in arrays, not in objects."""
    count = 4097
    values = np.arange(count * count, dtype="<f4").reshape(count, count) % 1024
    path = written(tmp_path, "x.bin", struct.pack("<2i", count, count) + values.tobytes())
    (geom,) = load_articulation(path).links[0].geoms
    assert len(geom.heights) == count and memoryview(geom.heights[0]).nbytes == 8 * count  # type: ignore[arg-type]
    theirs = mujoco.MjModel.from_xml_path(str(path))
    for row in (0, 1, count - 1):
        ours = np.array(geom.heights[row]) / theirs.hfield_size[0][2]
        assert ours == pytest.approx(theirs.hfield_data[row * count : (row + 1) * count], abs=1e-6)
