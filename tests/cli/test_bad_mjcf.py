"""Bad MJCF and bad meshes through the command line: one line with file, line and name, never a traceback.

The numbers are the rows of the project's table of bad inputs: 55 to 77 (meshes, in MJCF and in URDF) and 91 to 102
(MJCF). What a mesh file holds is read where a mass comes from it, and by `check --meshes`.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zipfile
from pathlib import Path

import pytest

from tests.cli.test_bad_inputs import artsim, assert_refused

BOX = '<geom type="box" size=".1 .2 .3"/>'


def mjcf(mesh: str, geom: str = "") -> str:
    """A body that falls, whose mass comes from a mesh: <mesh> stands in line 3."""
    body = f'<body name="b"><freejoint/><geom type="mesh" mesh="m" {geom}/></body>'
    return f'<mujoco>\n<asset>\n<mesh name="m" {mesh}/>\n</asset><worldbody>{body}</worldbody></mujoco>'


def urdf(name: str, scale: str = "1 1 1") -> str:
    """A link whose collision is a mesh: it stands in line 3."""
    return (
        '<robot name="r"><link name="a">\n\n'
        f'<collision><geometry><mesh filename="{name}" scale="{scale}"/></geometry></collision></link></robot>'
    )


def model(folder: Path, text: str, name: str = "model.xml") -> Path:
    """The model in a folder of its own below `folder`."""
    path = folder / "deeper" / "model" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def stl(triangles: int, corners: list[list[float]]) -> bytes:
    """A binary STL that declares `triangles` and holds what the corners make."""
    records = b"".join(
        struct.pack("<12fH", 0, 0, 0, *(x for corner in corners[i : i + 3] for x in corner), 0)
        for i in range(0, len(corners), 3)
    )
    return bytes(80) + struct.pack("<I", triangles) + records


A, B, C, D = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
TETRAHEDRON = [A, C, B, A, B, D, A, D, C, B, C, D]


def test_a_mesh_whose_mass_is_needed_is_looked_for_in_mesh_root_too(tmp_path: Path) -> None:
    text = mjcf('file="part.stl"').replace("<asset>", '<compiler meshdir="parts"/><asset>')
    path, meshes = model(tmp_path, text), tmp_path / "meshes"
    meshes.mkdir()
    missing = artsim("check", path)
    assert missing.exit_code == 65
    assert "'part.stl', which its mass comes from, was not found: tried" in missing.stderr
    assert "was not looked for" in artsim("check", path, "--no-meshes").stderr
    assert "give --mesh-root DIR" in artsim("check", "-", stdin=text.encode()).stderr
    (meshes / "part.stl").write_bytes(stl(4, TETRAHEDRON))
    for words in ((path,), ("-",)):
        found = artsim("check", *words, "--mesh-root", meshes, stdin=text.encode())
        assert found.exit_code == 0, found.stderr
    away = artsim("check", model(tmp_path, mjcf('file="../../../part.stl"')), "--mesh-root", meshes)
    assert "outside the allowed roots" in away.stderr


# --- where a mesh is -------------------------------------------------------------------------------------------------

PLACES = {
    "56_traversal": ("../../../etc/passwd.stl", "outside the allowed roots"),
    "57_absolute": ("/etc/passwd.stl", "outside the allowed roots"),
    "59_http": ("http://127.0.0.1:1/x.stl", "http:// is not read"),
    "62_folder": ("folder.stl", "not a regular file"),
    "63_pipe": ("pipe.stl", "not a regular file"),
    "58_link_out": ("link.stl", "outside the allowed roots"),
    "64_endless": ("zero.stl", "outside the allowed roots"),
    "69_zae": ("bomb.zae", "format '.zae'"),
    "70_3mf": ("bomb.3mf", "format '.3mf'"),
}


@pytest.mark.parametrize("text", [mjcf('file="{}"'), urdf("{}")], ids=["mjcf", "urdf"])
@pytest.mark.parametrize("row", PLACES)
def test_places_that_are_not_opened(row: str, text: str, tmp_path: Path) -> None:
    name, words = PLACES[row]
    path = model(tmp_path, text.format(name))
    folder = path.parent
    (folder / "folder.stl").mkdir()
    os.mkfifo(folder / "pipe.stl")
    (folder / "link.stl").symlink_to("/etc/passwd")
    (folder / "zero.stl").symlink_to("/dev/zero")
    for archive in ("bomb.zae", "bomb.3mf"):
        with zipfile.ZipFile(folder / archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("doc.dae", bytes(30_000_000))
    began = time.process_time()
    assert_refused(artsim("check", path), f"{path}:3: ", "mesh", words)
    assert time.process_time() - began < 5.0


def test_55_a_missing_mesh_is_a_warning_until_its_mass_is_needed(tmp_path: Path) -> None:
    path = model(tmp_path, mjcf('file="no.stl"'))
    assert_refused(artsim("check", path), "mesh 'no.stl', which its mass comes from, was not found")
    seen = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    path.write_text(mjcf('file="no.stl"').replace("<freejoint/>", f"<freejoint/>{seen}"))
    result = artsim("check", path)
    assert result.exit_code == 0
    assert f"{path}:3: " in result.stderr
    assert "'no.stl' not found: tried" in result.stderr


@pytest.mark.parametrize(("row", "name"), [("60_package", "package://none/x.stl"), ("61", "package://r/../../x.stl")])
def test_60_61_mjcf_has_no_packages(row: str, name: str, tmp_path: Path) -> None:
    path = model(tmp_path, mjcf(f'file="{name}"'))
    assert_refused(artsim("check", path), f"{path}:3: mesh 'm'", "package:// is not read")


def test_57_a_root_allows_an_absolute_path(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.stl").write_bytes(stl(4, TETRAHEDRON))
    path = model(tmp_path, mjcf(f'file="{elsewhere}/a.stl"'))
    assert_refused(artsim("check", path), "outside the allowed roots; --mesh-root DIR allows more")
    assert artsim("check", path, "--mesh-root", elsewhere).exit_code == 0


# --- what a mesh holds -----------------------------------------------------------------------------------------------

DAE = (
    '<!DOCTYPE c [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">&b;</COLLADA>'
)
GLTF = json.dumps(
    {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": "../../secret.bin", "byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
    }
)
CONTENTS: dict[str, tuple[str, bytes, str]] = {
    "65_stl_lies": ("a.stl", stl(4_000_000_000, TETRAHEDRON[:3]), "declares 4000000000 triangles"),
    "66_stl_empty": ("a.stl", stl(0, []), "no triangles"),
    "67_stl_nan": ("a.stl", stl(1, [[float("nan")] * 3, B, C]), "vertex 1 is not finite"),
    "68_dae_laughs": ("a.dae", DAE.encode(), "DOCTYPE not allowed"),
    "71_obj_index": ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99\n", "a face refers to vertex 99"),
    "73_gltf_uri": ("a.gltf", GLTF.encode(), "outside its folder"),
    "no bytes": ("a.stl", b"", "empty file"),
}


@pytest.mark.parametrize("format_", ["mjcf", "urdf"])
@pytest.mark.parametrize("row", CONTENTS)
def test_contents_that_lie(row: str, format_: str, tmp_path: Path) -> None:
    name, content, words = CONTENTS[row]
    path = model(tmp_path, mjcf(f'file="{name}"') if format_ == "mjcf" else urdf(name))
    (path.parent / name).write_bytes(content)
    assert_refused(artsim("check", path, "--meshes"), f"{path}:3: ", "mesh", f"{name!r}", words)
    if format_ == "mjcf":  # its mass needs the mesh
        assert_refused(artsim("check", path), f"{path}:3: mesh 'm'", words)
        assert_refused(artsim("run", path, "--steps", "1"), f"{path}:3: mesh 'm'", words)
    else:
        assert artsim("check", path).exit_code == 0


def test_72_materials_of_an_obj_are_not_looked_at(tmp_path: Path) -> None:
    path = model(tmp_path, mjcf('file="a.obj"'))
    faces = "".join(
        f"f {' '.join(str([A, B, C, D].index(c) + 1) for c in TETRAHEDRON[i : i + 3])}\n" for i in (0, 3, 6, 9)
    )
    points = "".join(f"v {x} {y} {z}\n" for x, y, z in (A, B, C, D))
    (path.parent / "a.obj").write_text(f"mtllib ../../../etc/passwd\n{points}usemtl x\n{faces}")
    result = artsim("check", path, "--meshes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1 mesh file read: 4 triangles" in result.stdout


@pytest.mark.parametrize("text", [mjcf('file="a.stl" scale="1 0 1"'), urdf("a.stl", "1 0 1")], ids=["mjcf", "urdf"])
def test_74_a_scale_of_zero(text: str, tmp_path: Path) -> None:
    path = model(tmp_path, text)
    (path.parent / "a.stl").write_bytes(stl(4, TETRAHEDRON))
    assert_refused(artsim("check", path), f"{path}:3: ", "flattens the mesh")


def test_75_a_mirrored_mesh_has_the_same_mass(tmp_path: Path) -> None:
    masses = []
    for scale in ("1 1 1", "-1 1 1"):
        path = model(tmp_path, mjcf(f'file="a.stl" scale="{scale}" inertia="exact"'))
        (path.parent / "a.stl").write_bytes(stl(4, TETRAHEDRON))
        masses.append(json.loads(artsim("check", path, "--json").stdout)["mass"])
    assert masses == pytest.approx([1000 / 6, 1000 / 6])


def test_76_an_open_mesh_is_a_warning_and_its_hull_can_be_had(tmp_path: Path) -> None:
    path = model(tmp_path, mjcf('file="a.stl"'))
    (path.parent / "a.stl").write_bytes(stl(3, TETRAHEDRON[3:]))
    result = artsim("check", path)
    assert result.exit_code == 0
    assert f"{path}:3: mesh 'm' is not closed" in result.stderr
    path.write_text(mjcf('file="a.stl" inertia="convex"'))
    result = artsim("check", path, "--json")
    assert json.loads(result.stdout)["mass"] == pytest.approx(1000 / 6)
    assert json.loads(result.stdout)["warnings"] == []


@pytest.mark.parametrize("text", [mjcf('file="a.stl"'), urdf("a.stl")], ids=["mjcf", "urdf"])
def test_77_more_faces_than_allowed(text: str, tmp_path: Path) -> None:
    path = model(tmp_path, text)
    mesh = path.parent / "a.stl"
    mesh.write_bytes(stl(4, TETRAHEDRON))
    words = (f"{path}:3: ", "'a.stl'", "4 triangles, above the cap of 3 (--max-faces)")
    assert_refused(artsim("check", path, "--meshes", "--max-faces", "3"), *words)
    assert artsim("check", path, "--meshes", "--max-faces", "4").exit_code == 0
    with mesh.open("wb") as file:  # 10 million of them, in a file that takes no room
        file.write(bytes(80) + struct.pack("<I", 10_000_000))
        file.truncate(84 + 50 * 10_000_000)
    began = time.process_time()
    assert_refused(artsim("check", path, "--meshes"), f"{path}:3: ", "10000000 triangles, above the cap of 2000000")
    assert time.process_time() - began < 5.0


# --- MJCF ------------------------------------------------------------------------------------------------------------

JOINT = f'<body name="b"><joint name="j"/>{BOX}</body>'


def world(content: str, more: str = "") -> str:
    """The content stands in line 2, what follows in line 3."""
    return f"<mujoco><worldbody>\n{content}</worldbody>\n{more}</mujoco>"


FLEX = '<flexcomp name="f" type="grid"><elasticity young="1"/></flexcomp>'
ROWS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "92_traversal": (world('<include file="../../../../etc/passwd"/>'), 2, ("outside the allowed roots",)),
    "93_replicate": (world(f'<replicate count="100000000">{JOINT}</replicate>'), 2, ("beyond the limit",)),
    "93_nested": (
        world("<replicate count='1000'>" * 3 + JOINT + "</replicate>" * 3),
        2,
        ("beyond the limit",),
    ),
    "94_hfield": (
        world(JOINT, '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'),
        3,
        ("hfield 'h'", "beyond the limit"),
    ),
    **{
        f"95_dt_{value}": (world(JOINT, f'<option timestep="{value}"/>'), 3, ("timestep", word))
        for value, word in (("0", "0"), ("-1", "-1"), ("nan", "not a finite number"))
    },
    "96_quat0": (world(f'<body quat="0 0 0 0">{BOX}</body>'), 2, ("quat has length 0",)),
    "97_two_free": (world(f"<body><freejoint/><freejoint/>{BOX}</body>"), 2, ("free joint stands alone",)),
    "97_free_nested": (world(f"<body>{BOX}<body><freejoint/>{BOX}</body></body>"), 2, ("free joint stands alone",)),
    "98_massless": (world('<body name="x"><joint/></body>'), 2, ("body 'x' moves and has no mass",)),
    "99_key": (
        world(JOINT, '<keyframe><key name="k" qpos="1 2 3"/></keyframe>'),
        3,
        ("key 'k'", "3 numbers", "want 0 to 1"),
    ),
    "100_element": (world("<boddy/>"), 2, ("<boddy>", "did you mean 'body'")),
    "100_class": (world('<body><geom class="nome" size="1"/></body>'), 2, ("default class 'nome' does not exist",)),
    "101_plugin": (world(f'<body>{BOX}<plugin plugin="x"/></body>'), 2, ("plugin", "not supported yet")),
    "101_flex": (
        world(FLEX),
        2,
        ("flexcomp 'f'", "elasticity is not supported yet"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_mjcf_refused_with_one_line(row: str, tmp_path: Path) -> None:
    text, line, words = ROWS[row]
    path = model(tmp_path, text)
    began = time.process_time()
    assert_refused(artsim("check", path), f"{path}:{line}: ", *words)
    assert time.process_time() - began < 5.0
    assert_refused(artsim("run", path), f"{path}:{line}: ", *words)


def test_91_an_include_of_itself(tmp_path: Path) -> None:
    path = model(tmp_path, world('<include file="model.xml"/>'))
    assert_refused(artsim("check", path), f"{path}:2: ", "'model.xml' is already included", f"({path} -> {path})")


def test_102_memory_is_ours(tmp_path: Path) -> None:
    path = model(tmp_path, world(JOINT, '<size memory="900G"/>'))
    assert artsim("check", path).exit_code == 0


@pytest.mark.parametrize("row", ["101_plugin", "101_flex"])
def test_101_what_is_not_supported_is_left_out_on_request(row: str, tmp_path: Path) -> None:
    text, line, words = ROWS[row]
    path = model(tmp_path, text)
    result = artsim("check", path, "--ignore-unsupported")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(f"warning: {path}:{line}: ")
    assert words[0] in result.stderr
    assert result.stderr.rstrip().endswith("is not supported yet and is left out")


@pytest.mark.parametrize("section", ["asset", "deformable"])
def test_101_a_skin_is_only_seen(section: str, tmp_path: Path) -> None:
    path = model(tmp_path, world(JOINT, f'<{section}><skin name="s" file="s.skn"/></{section}>'))
    result = artsim("check", path)
    assert result.exit_code == 0
    assert result.stderr == f"warning: {path}:3: skin 's' changes looks only and is left out\n"


def test_101_an_output_remembers_what_was_left_out(tmp_path: Path) -> None:
    path = model(tmp_path, world(f"{JOINT}{FLEX}"))
    output, again = tmp_path / "out.h5", tmp_path / "again.h5"
    done = artsim("run", path, "--ignore-unsupported", "--steps", 3, "-o", output)
    assert done.exit_code == 0, done.output
    path.unlink()
    assert artsim("replay", output, "--verify").exit_code == 0
    assert artsim("run", "--config", output, "-o", again).exit_code == 0


def test_masses_from_meshes_are_in_the_output(tmp_path: Path) -> None:
    """A run is reproduced byte for byte when the mesh, which its masses came from, is gone."""
    path = model(tmp_path, mjcf('file="a.stl" refpos=".1 .2 .3" scale="1 2 .3"'))
    mesh = path.parent / "a.stl"
    mesh.write_bytes(stl(4, TETRAHEDRON))
    output = tmp_path / "out.h5"
    done = artsim("run", path, "--v0", "1,2,3,1,2,3", "--steps", 3, "-o", output)
    assert done.exit_code == 0, done.output
    mesh.unlink()
    path.unlink()
    assert artsim("replay", output, "--verify").exit_code == 0
