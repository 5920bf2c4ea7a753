"""Where mesh names lead: packages are found, and nothing outside the allowed roots is touched."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from artsim.loaders.assets import AssetMissingError, AssetRefusedError, Assets
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.foundation.errors import ModelError


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """src/arm_description (with package.xml) holds urdf/ and meshes/; beside it hand/ (package) and loose/ (none)."""
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    source = tmp_path / "src"
    for name in (
        "arm_description/meshes/a.stl",
        "arm_description/urdf/b.STL",
        "hand/c.obj",
        "loose/d.dae",
        "outside.stl",
    ):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("solid")
    for name in ("arm_description", "hand"):
        (source / name / "package.xml").write_text(f"<package><name>{name}</name></package>")
    return source


def assets(workspace: Path, **options: object) -> Assets:
    """For a model in arm_description/urdf."""
    return Assets(workspace / "arm_description" / "urdf", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("b.STL", "arm_description/urdf/b.STL"),
        ("./b.STL", "arm_description/urdf/b.STL"),
        ("../meshes/a.stl", "arm_description/meshes/a.stl"),
        ("..\\meshes\\a.stl", "arm_description/meshes/a.stl"),
        ("package://arm_description/meshes/a.stl", "arm_description/meshes/a.stl"),
        ("package://arm_description/urdf/../meshes/a.stl", "arm_description/meshes/a.stl"),
        ("model://arm_description/meshes/a.stl", "arm_description/meshes/a.stl"),
        ("package://hand/c.obj", "hand/c.obj"),
        ("package:///b.STL", "arm_description/urdf/b.STL"),
        ("package:///hand/c.obj", "hand/c.obj"),
        ("file://../meshes/a.stl", "arm_description/meshes/a.stl"),
    ],
)
def test_names_that_are_found(workspace: Path, uri: str, found: str) -> None:
    assert assets(workspace).resolve(uri) == (workspace / found).resolve()


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("", "empty"),
        ("../../outside.stl", "outside the allowed roots"),
        ("package://arm_description/../outside.stl", "outside the allowed roots"),
        ("package://arm_description//etc/x.stl", "outside the allowed roots"),
        ("package://../outside.stl", "outside the allowed roots"),
        ("package:///../../outside.stl", "outside the allowed roots"),
        ("/etc/passwd", "outside the allowed roots"),
        ("file:///etc/passwd", "outside the allowed roots"),
        ("file:///etc/%70asswd", "outside the allowed roots"),
        ("https://example.org/x.stl", "not read"),
        ("ftp://example.org/x.stl", "not read"),
        ("..", "not a regular file"),
        ("../package.xml", "format '.xml'"),
        ("../meshes/a.3mf", "format '.3mf'"),
        ("../meshes", "not a regular file"),
    ],
)
def test_names_that_are_refused(workspace: Path, uri: str, why: str) -> None:
    with pytest.raises(AssetRefusedError, match=why):
        assets(workspace).resolve(uri)


@pytest.mark.parametrize("uri", ["package://loose/d.dae", "package://etc/x.stl", "package://tmp/x.stl"])
def test_a_folder_is_no_package_without_package_xml(workspace: Path, uri: str) -> None:
    with pytest.raises(AssetMissingError, match="no package"):
        assets(workspace).resolve(uri)


def test_missing_meshes_say_what_was_tried(workspace: Path) -> None:
    with pytest.raises(AssetMissingError, match=r"tried '.*arm_description/urdf/x.stl', '.*loose/x.stl'"):
        assets(workspace, mesh_root=workspace / "loose").resolve("x.stl")
    with pytest.raises(AssetMissingError, match="not in a file"):
        Assets(None).resolve("x.stl")


def test_a_package_s_name_may_be_too_long_for_a_file(workspace: Path) -> None:
    with pytest.raises(AssetMissingError, match="no package 'xxx"):
        Assets(workspace).resolve(f"package://{'x' * 300}/a.stl")


def test_given_packages_and_mesh_root(workspace: Path) -> None:
    given = assets(workspace, packages={"none": workspace / "loose"})
    assert given.resolve("package://none/d.dae") == (workspace / "loose/d.dae").resolve()
    rooted = assets(workspace, mesh_root=workspace)
    assert rooted.resolve("outside.stl") == (workspace / "outside.stl").resolve()
    assert rooted.resolve("../../outside.stl") == (workspace / "outside.stl").resolve()
    assert rooted.resolve("package://loose/d.dae") == (workspace / "loose/d.dae").resolve()
    assert assets(workspace, mesh_root=Path("/")).resolve(str(workspace / "outside.stl")).name == "outside.stl"
    with pytest.raises(AssetRefusedError, match="format"):
        assets(workspace, mesh_root=Path("/")).resolve("/etc/passwd")


def test_ros_paths(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{workspace}:/nonexistent")
    assert assets(workspace).resolve("package://loose/d.dae") == (workspace / "loose/d.dae").resolve()
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(workspace.parent))  # one level deeper: a workspace's src
    assert Assets(Path("/usr/lib")).resolve("package://hand/c.obj") == (workspace / "hand/c.obj").resolve()
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    shared = tmp_path / "install" / "share" / "leg"
    shared.mkdir(parents=True)
    (shared / "e.ply").write_text("ply")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    assert assets(workspace).resolve("package://leg/e.ply") == (shared / "e.ply").resolve()


def test_meshes_two_folders_up(tmp_path: Path) -> None:
    """One line with the option that allows their folder; meshes that are only seen warn, once for a folder."""
    (tmp_path / "robot" / "urdf").mkdir(parents=True)
    (tmp_path / "the meshes").mkdir()
    for name in ("a.stl", "b.stl"):
        (tmp_path / "the meshes" / name).write_text("solid")
    path = tmp_path / "robot" / "urdf" / "r.urdf"
    shape = '<{0}><geometry><mesh filename="../../the meshes/{1}.stl"/></geometry></{0}>'
    seen, touched = shape.format("visual", "a") + shape.format("visual", "b"), shape.format("collision", "a")
    option = f"--mesh-root '{tmp_path}/the meshes' allows it"
    path.write_text(f'<robot name="r"><link name="a">{seen}</link></robot>')
    (note,) = load_articulation(path).notes
    assert "'../../the meshes/a.stl' is not opened" in note.message and option in note.message
    path.write_text(f'<robot name="r"><link name="a">{seen}{touched}</link></robot>')
    with pytest.raises(ModelError, match=re.escape(option)):
        load_articulation(path)
    allowed = load_articulation(path, mesh_root=tmp_path / "the meshes")
    assert not allowed.notes and all(geom.mesh is not None for geom in allowed.links[0].geoms)
    path.write_text(
        f'<robot name="r"><link name="a">{touched.replace("../../the meshes/a.stl", "/etc/a.stl")}</link></robot>'
    )
    with pytest.raises(ModelError, match="--mesh-root DIR allows more"):
        load_articulation(path)


def test_links_are_followed_before_they_are_judged(workspace: Path) -> None:
    meshes = workspace / "arm_description" / "meshes"
    (meshes / "out.stl").symlink_to(workspace / "outside.stl")
    (meshes / "passwd.stl").symlink_to("/etc/passwd")
    (meshes / "in.stl").symlink_to("a.stl")
    (meshes / "loop.stl").symlink_to("loop.stl")
    (meshes / "zero.stl").symlink_to("/dev/zero")
    for name in ("out.stl", "passwd.stl", "zero.stl"):
        with pytest.raises(AssetRefusedError, match="outside the allowed roots"):
            assets(workspace).resolve(f"package://arm_description/meshes/{name}")
    with pytest.raises(AssetRefusedError):
        assets(workspace).resolve("../meshes/loop.stl")
    assert assets(workspace).resolve("../meshes/in.stl") == (meshes / "a.stl").resolve()
    with pytest.raises(AssetRefusedError, match="not a regular file"):
        assets(workspace, mesh_root=Path("/")).resolve("../meshes/zero.stl")


def test_a_pipe_is_refused_at_once(workspace: Path) -> None:
    os.mkfifo(workspace / "arm_description" / "meshes" / "pipe.stl")
    with pytest.raises(AssetRefusedError, match="not a regular file"):
        assets(workspace).resolve("../meshes/pipe.stl")


def test_meshdir_of_the_mujoco_extension(workspace: Path) -> None:
    model = workspace / "arm_description" / "urdf" / "arm.urdf"
    shape = '<visual><geometry><mesh filename="package://gone/deep/a.stl"/></geometry></visual>'
    model.write_text(
        f'<robot name="r"><mujoco><compiler meshdir="../meshes"/></mujoco><link name="a">{shape}</link></robot>'
    )
    articulation = load_articulation(model)
    assert articulation.links[0].geoms[0].mesh == (workspace / "arm_description/meshes/a.stl").resolve()
    assert articulation.notes == ()


def test_no_meshes_looks_for_none() -> None:
    shape = '<visual><geometry><mesh filename="/etc/passwd"/></geometry></visual>'
    text = f'<robot name="r"><link name="a">{shape}</link></robot>'
    articulation = load_text(text, name="r", meshes=False)
    assert (articulation.links[0].geoms[0].mesh, articulation.notes) == (None, ())
    assert "not opened" in str(load_text(text, name="r").notes[0])
    with pytest.raises(ModelError, match="outside the allowed roots"):
        load_text(text.replace("visual", "collision"), name="r")


def test_missing_meshes_of_a_folder_are_one_warning(tmp_path: Path) -> None:
    shapes = "".join(f'<visual><geometry><mesh filename="meshes/{i}.stl"/></geometry></visual>' for i in (1, 2, 2, 3))
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r"><link name="a">{shapes}</link></robot>')
    notes = load_articulation(path).notes
    assert len(notes) == 1
    assert "'meshes/1.stl' and 2 more not found: tried in '" in notes[0].message


def test_a_package_is_found_by_its_name_where_its_folder_has_another(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the model's package, in it, deeper in a workspace, and in ROS 1's path: as ROS has it, by <name>."""
    (workspace / "hand" / "package.xml").write_text("<package><name>my_hand</name></package>")
    mesh = (workspace / "hand/c.obj").resolve()
    assert assets(workspace).resolve("package://my_hand/c.obj") == mesh
    elsewhere = workspace.parent / "elsewhere" / "urdf"
    elsewhere.mkdir(parents=True)
    assert Assets(elsewhere).resolve("package://my_hand/c.obj") == mesh
    for root in (workspace / "hand", workspace, workspace.parent):
        monkeypatch.setenv("ROS_PACKAGE_PATH", str(root))
        assert Assets(Path("/usr/lib")).resolve("package://my_hand/c.obj") == mesh
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    with pytest.raises(AssetMissingError, match="no package 'my_hand'"):
        Assets(Path("/usr/lib")).resolve("package://my_hand/c.obj")
