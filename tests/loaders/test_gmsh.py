"""Flexcomps from Gmsh files, against MuJoCo; and files that are not what they say."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from artsim.collision.gmsh import read_gmsh
from artsim.collision.mesh import MeshError
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Source
from artsim.sim.foundation.errors import ModelError
from artsim.sim.quantities.robot import Robot
from tests.loaders.test_mjcf import against

POINTS = [tuple(row) for row in np.random.default_rng(3).uniform(size=(14, 3)).tolist()]
STRIP = [1, 2, 3, 4, *range(6, 15)]  # no element has point 5
KINDS = {kind: [tuple(STRIP[i : i + n]) for i in range(14 - n)] for kind, n in ((1, 2), (2, 3), (4, 4))}
Writer = Callable[[int], bytes]


def text_22(kind: int) -> bytes:
    nodes = "".join(f"{n} {x!r} {y!r} {z!r}\n" for n, (x, y, z) in enumerate(POINTS, 1))
    elements = "".join(f"{n} {kind} 2 0 1 {' '.join(map(str, row))}\n" for n, row in enumerate(KINDS[kind], 1))
    return sections("2.2 0 8\n", f"{len(POINTS)}\n{nodes}", f"{len(KINDS[kind])}\n{elements}")


def binary_22(kind: int, *, runs: bool = False) -> bytes:
    """As Gmsh writes it, a header for each element; or in one run without tags, as fTetWild does."""
    rows = KINDS[kind]
    nodes = b"".join(struct.pack("<i3d", n, *point) for n, point in enumerate(POINTS, 1))
    elements = struct.pack("<3i", kind, len(rows), 0) if runs else b""
    for n, row in enumerate(rows, 1):
        head = (n,) if runs else (kind, 1, 2, n, 0, 1)
        elements += struct.pack(f"<{len(head) + len(row)}i", *head, *row)
    return sections(
        b"2.2 1 8\n\1\0\0\0\n", b"%d\n" % len(POINTS) + nodes + b"\n", b"%d\n" % len(rows) + elements + b"\n"
    )


def text_41(kind: int) -> bytes:
    rows, dim = KINDS[kind], len(KINDS[kind][0]) - 1
    names = "".join(f"{n}\n" for n in range(1, len(POINTS) + 1))
    nodes = "".join(f"{x!r} {y!r} {z!r}\n" for x, y, z in POINTS)
    elements = "".join(f"{n} {' '.join(map(str, row))}\n" for n, row in enumerate(rows, 1))
    n, m = len(POINTS), len(rows)
    return sections(
        "4.1 0 8\n", f"1 {n} 1 {n}\n{dim} 1 0 {n}\n{names}{nodes}", f"1 {m} 1 {m}\n{dim} 1 {kind} {m}\n{elements}"
    )


def binary_41(kind: int) -> bytes:
    rows, n, m = KINDS[kind], len(POINTS), len(KINDS[kind])
    nodes = struct.pack("<4q3iq", 1, n, 1, n, len(rows[0]) - 1, 1, 0, n)
    nodes += struct.pack(f"<{n}q", *range(1, n + 1)) + np.array(POINTS).tobytes()
    elements = struct.pack("<4q3iq", 1, m, 1, m, len(rows[0]) - 1, 1, kind, m)
    elements += b"".join(struct.pack(f"<{1 + len(row)}q", n, *row) for n, row in enumerate(rows, 1))
    return sections(b"4.1 1 8\n\1\0\0\0\n", nodes + b"\n", elements + b"\n")


def sections(head: bytes | str, nodes: bytes | str, elements: bytes | str) -> bytes:
    parts = [part.encode() if isinstance(part, str) else part for part in (head, nodes, elements)]
    return b"$MeshFormat\n%b$EndMeshFormat\n$Nodes\n%b$EndNodes\n$Elements\n%b$EndElements\n" % tuple(parts)


WRITERS: dict[str, Writer] = {
    "2.2 text": text_22,
    "2.2 text, CRLF": lambda kind: text_22(kind).replace(b"\n", b"\r\n"),
    "2.2 binary": binary_22,
    "2.2 binary, one run": lambda kind: binary_22(kind, runs=True),
    "4.1 text": text_41,
    "4.1 binary": binary_41,
}
FLEX = """<mujoco><compiler meshdir="points"/><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size=".1"/>
<flexcomp name="f" type="gmsh" file="f.msh" pos="1 2 3" euler="9 8 7" scale="1 2 3" radius=".001" mass="2">
<pin id="1"/><edge damping=".5"/></flexcomp></body></worldbody></mujoco>"""


def write(folder: Path, data: bytes, model: str = FLEX) -> Path:
    """The model and its file."""
    (folder / "points").mkdir(exist_ok=True)
    (folder / "points" / "f.msh").write_bytes(data)
    (folder / "robot.xml").write_text(model)
    return folder / "robot.xml"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("writer", WRITERS)
def test_points_and_edges_are_mujocos(tmp_path: Path, writer: str, kind: int) -> None:
    path = write(tmp_path, WRITERS[writer](kind))
    lattice = read_gmsh(tmp_path / "points" / "f.msh", 100)
    held = np.float32 if kind == 2 else np.float64
    assert np.array_equal(lattice.points, np.array(POINTS, held))
    assert lattice.elements.tolist() == [[n - 1 for n in row] for row in KINDS[kind]]
    if kind == 1 or "run" in writer:
        return  # limits of MuJoCo's: it reads no lines, and runs only where there are more elements than points
    model = mujoco.MjModel.from_xml_path(str(path))
    articulation = load_articulation(path)
    against(Robot.of(articulation), model)
    assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
    assert len(articulation.tendons) == np.count_nonzero(model.flexedge_rigid == 0)


def test_repeated_and_unused_points_and_pins(tmp_path: Path) -> None:
    """MuJoCo makes one point of those of a surface that are equal; pins count the points that nothing uses."""
    twice = text_41(2).replace(
        b" ".join(repr(x).encode() for x in POINTS[13]), b" ".join(repr(x).encode() for x in POINTS[0])
    )
    for data, pins in ((twice, "0 4 12"), (text_41(4), "4 5")):
        path = write(tmp_path, data, FLEX.replace('<pin id="1"/>', f'<pin id="{pins}"/>'))
        model = mujoco.MjModel.from_xml_path(str(path))
        articulation = load_articulation(path)
        assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
        against(Robot.of(articulation), model)


def test_an_output_holds_the_points(tmp_path: Path) -> None:
    """It is read again without the file."""
    articulation = load_articulation(write(tmp_path, text_41(4)))
    again = load_text(articulation.text, name="stored")
    for name in ("joints", "sites", "tendons"):
        ours, theirs = getattr(articulation, name), getattr(again, name)
        assert [replace(x, source=Source()) for x in ours] == [replace(x, source=Source()) for x in theirs] != []
    with pytest.raises(ModelError, match=r"flexcomp 'f': file 'f.msh': the model is not in a file"):
        load_text(FLEX, name="text")


def test_an_attached_model_finds_its_file(tmp_path: Path) -> None:
    write(tmp_path, binary_41(4))
    (tmp_path / "above").mkdir()
    outer = tmp_path / "above" / "scene.xml"
    outer.write_text(
        '<mujoco><asset><model name="m" file="../robot.xml"/></asset><worldbody>'
        '<attach model="m" body="b" prefix="p_"/></worldbody></mujoco>'
    )
    names = [link.name for link in load_articulation(outer).links]
    assert names == ["world", "p_b", "p_f_0", *(f"p_f_{n}" for n in range(2, 13))]


RUN = struct.pack("<3i", 4, 10, 0)
X = repr(POINTS[1][0]).encode()
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a Gmsh file"),
    "no Gmsh": (b"\x7fELF" * 50, "not a Gmsh file"),
    "other version": (text_22(4).replace(b"2.2 0", b"3.0 0"), "version '3.0' with numbers of 8 bytes, want 2.2 or 4.1"),
    "short numbers": (binary_41(4).replace(b"4.1 1 8", b"4.1 1 4"), "numbers of 4 bytes"),
    "no end": (text_41(4).replace(b"$EndElements", b""), "$Elements is missing, or does not end"),
    "no nodes": (text_41(4).replace(b"$Nodes", b"$Knots"), "$Nodes is missing"),
    "cut short": (binary_41(4).replace(b"$EndNodes", b"", 1), "$Nodes is missing, or does not end"),
    "too many nodes": (text_22(4).replace(b"$Nodes\n14", b"$Nodes\n15"), "declares 15 points"),
    "as many as fit nowhere": (
        text_22(4).replace(b"$Nodes\n14", b"$Nodes\n14" + b"0" * 13),
        "declares 140000000000000",
    ),
    "beyond whole": (text_22(4).replace(b"$Nodes\n14", b"$Nodes\n14" + b"0" * 40), "is not whole"),
    "negative": (text_41(4).replace(b"1 14 1 14\n3 1 0 14", b"1 -14 1 14\n3 1 0 -14"), "declares -14 points"),
    "several blocks": (
        text_41(4).replace(b"1 14 1 14\n3 1 0 14", b"2 14 1 14\n3 1 0 7"),
        "14 points or elements in 2 bl",
    ),
    "names with a gap": (text_41(4).replace(b"\n5\n6\n", b"\n5\n7\n"), "not numbered 1 to 14"),
    "names with a gap, in rows": (text_22(4).replace(b"\n2 0", b"\n3 0"), "not numbered 1 to 14"),
    "no number": (text_22(4).replace(X, b"one"), "'one' is not a number"),
    "not finite": (text_22(4).replace(X, b"nan"), "vertex 2 is not finite"),
    "beyond any length": (text_22(4).replace(X, b"1e300"), "vertex 2 is beyond any length"),
    "no such point": (text_41(4).replace(b" 14\n$EndE", b" 15\n$EndE"), "element 10 refers to a point that does not"),
    "point 0": (text_22(4).replace(b" 14\n$EndE", b" 0\n$EndE"), "element 10 refers to a point"),
    "half a point": (text_22(4).replace(b" 14\n$EndE", b" 5.5\n$EndE"), "is not whole"),
    "quadrangles": (text_41(4).replace(b"3 1 4 10\n", b"3 1 3 10\n"), "elements of kind 3, want 1, 2 or 4"),
    "several kinds": (text_22(4).replace(b"\n2 4 2 0 1", b"\n2 2 2 0 1"), "elements of several kinds"),
    "runs that go on": (binary_22(4, runs=True).replace(RUN, struct.pack("<3i", 4, 11, 0)), "declares 10 elements"),
    "runs of nothing": (binary_22(4, runs=True).replace(RUN, struct.pack("<3i", 4, 0, 0)), "declares 10 elements"),
    "runs of endless tags": (
        binary_22(4, runs=True).replace(RUN, struct.pack("<3i", 4, 10, -9)),
        "declares 10 elements",
    ),
    "header only": (sections("4.1 1 8\n", b"\1\0\0", b""), "a section ends in its header"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    data, message = BAD[name]
    assert data != text_22(4) != text_41(4)
    path = write(tmp_path, data)
    with pytest.raises(ModelError) as caught:
        load_articulation(path)
    text = str(caught.value)
    assert text.startswith(f"{path}:2: flexcomp 'f': file 'f.msh': ") and message in text and "\n" not in text


def test_any_cut_is_refused(tmp_path: Path) -> None:
    """Nothing but MeshError comes of a file that ends somewhere."""
    path = tmp_path / "f.msh"
    for writer in WRITERS.values():
        whole = writer(4).rstrip()
        for end in range(len(whole)):
            path.write_bytes(whole[:end])
            with pytest.raises(MeshError, match=r"^'f.msh': "):
                read_gmsh(path, 100)


def test_more_elements_than_allowed_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, text_41(4))
    with pytest.raises(ModelError, match=r"file 'f.msh': 10 triangles, above the cap of 1 \(--max-faces\)"):
        load_articulation(path, max_faces=1)


PLACES = {
    "/etc/passwd": "outside the allowed roots",
    "../../../etc/f.msh": "outside the allowed roots",
    "none.msh": "tried",
    "http://x.org/f.msh": "http:// is not read",
    "f.txt": "format '.txt' of 'f.txt' is not read",
}


@pytest.mark.parametrize("name", PLACES)
def test_names_lead_where_meshes_may_be(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, text_41(4), FLEX.replace("f.msh", name))
    (tmp_path / "points" / "f.txt").write_text("")
    with pytest.raises(ModelError) as caught:
        load_articulation(path)
    assert f"flexcomp 'f': file '{name}': " in str(caught.value) and PLACES[name] in str(caught.value)
