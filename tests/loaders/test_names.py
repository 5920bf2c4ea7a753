"""Robots by name, `model` in TOML, arguments of macros, warnings of a model: what a user types besides a file."""

from __future__ import annotations

import socket
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import MissingInputError

ARM = '<robot name="arm"><link name="a"/><link name="b"/>{}</robot>'
JOINT = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/>{}</joint>'


def command(*words: object) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_bundled_robots_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, count in (("arm7", 7), ("quadruped", 12), ("clamp", 0)):
        robot = load_articulation(name)
        assert Path(robot.path).is_file()
        assert sum(joint.kind == "revolute" for joint in robot.joints) >= count
        assert all(geom.mesh for link in robot.links for geom in link.geoms if geom.kind == "mesh")
    (tmp_path / "arm7").write_text(ARM.format(JOINT.format("")))  # a file wins
    assert load_articulation("arm7").name == "arm"
    refused = command("check", "arm8")
    assert (refused.exit_code, "did you mean 'arm7'" in refused.stderr) == (66, True)


MADE = """
from os import path
from ._cache import clone_to_cache as _clone
PACKAGE_PATH = path.join(_clone("data", commit=None), "made")
XACRO_PATH = path.join(PACKAGE_PATH, "urdf", "made.urdf.xacro")
XACRO_ARGS = {"side": "right"}
XACRO_PACKAGE_PATHS = {"made_parts": path.join(_clone("data", commit=None), "elsewhere", "parts")}
"""
MACROS = {
    "example-robot-data/made/urdf/made.urdf.xacro": """<robot name="made" xmlns:xacro="http://ros.org/wiki/xacro">
      <xacro:arg name="side" default="left"/><xacro:arg name="size" default="1"/>
      <xacro:include filename="near.xacro"/><xacro:include filename="$(find made_parts)/hand.xacro"/>
      <link name="base_$(arg size)"/><xacro:hand side="$(arg side)"/></robot>""",
    "example-robot-data/made/urdf/near.xacro": "<robot/>",
    "example-robot-data/made/m.stl": "solid",
    "example-robot-data/elsewhere/parts/hand.xacro": """<robot xmlns:xacro="http://ros.org/wiki/xacro">
      <xacro:macro name="hand" params="side"><link name="${side}_hand"><visual><geometry>
      <mesh filename="package://made/m.stl"/></geometry></visual></link><joint name="j" type="fixed">
      <parent link="base_$(arg size)"/><child link="${side}_hand"/></joint></xacro:macro></robot>""",
}
"""A description of macros alone, in two packages that hold no package.xml."""


@pytest.fixture
def descriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as robot_descriptions is made, whose clone_to_cache would download; its cache holds one repository."""
    package = tmp_path / "site" / "robot_descriptions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_cache.py").write_text("raise RuntimeError('this would clone')")
    (package / "_descriptions.py").write_text(
        "DESCRIPTIONS = dict.fromkeys(('panda_description', 'iiwa_description', 'far_description', 'made_description'))"
    )
    (package / "_repositories.py").write_text(
        "class R:\n    def __init__(self, path): self.cache_path = path\n"
        "REPOSITORIES = {'data': R('example-robot-data'), 'far': R('far')}"
    )
    module = (
        "from ._cache import clone_to_cache as _clone\nfrom os import path\n"
        "URDF_PATH = path.join(_clone('{}', commit=None), 'robots', '{}', 'urdf', 'x.urdf')"
    )
    for name, repository in (("panda", "data"), ("iiwa", "data"), ("far", "far")):
        (package / f"{name}_description.py").write_text(module.format(repository, f"{name}_description"))
    (package / "made_description.py").write_text(MADE)
    cache = tmp_path / "cache"
    for name, text in MACROS.items():
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text(text)
    folder = cache / "example-robot-data" / "robots" / "panda_description"
    (folder / "urdf").mkdir(parents=True)
    (folder / "meshes").mkdir()
    (folder / "meshes" / "m.stl").write_text("solid")
    mesh = '<visual><geometry><mesh filename="package://panda_description/meshes/m.stl"/></geometry></visual>'
    (folder / "urdf" / "x.urdf").write_text(f'<robot name="panda"><link name="a">{mesh}</link></robot>')
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(cache))
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    return cache


def test_descriptions_come_from_the_cache_alone(descriptions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", refuse)
    robot = load_articulation("panda_description")
    assert robot.name == "panda"
    assert robot.links[0].geoms[0].mesh is not None
    assert robot.path.startswith(str(descriptions))
    with pytest.raises(
        MissingInputError, match="nothing is downloaded unasked: `python -m robot_descriptions pull far"
    ):
        load_articulation("far_description")
    with pytest.raises(MissingInputError, match="not in the cache"):
        load_articulation("iiwa_description")
    with pytest.raises(MissingInputError, match="did you mean 'panda_description'"):
        load_articulation("pandas_description")
    assert command("check", "panda_description").exit_code == 0


def test_descriptions_of_macros_are_expanded_on_request(descriptions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the limited child, with the description's arguments and packages, the user's over them; from the cache."""
    pytest.importorskip("xacro")
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a socket was made"))
    refused = command("check", "made_description")
    assert (refused.exit_code, "a xacro file, which is a program" in refused.stderr) == (65, True)
    robot = load_articulation("made_description", xacro=True)
    assert [link.name for link in robot.links] == ["base_1", "right_hand"]
    assert robot.links[1].geoms[0].mesh == (descriptions / "example-robot-data" / "made" / "m.stl").resolve()
    other = load_articulation("made_description", xacro=True, arguments={"side": "wrong", "size": "2"})
    assert [link.name for link in other.links] == ["base_2", "wrong_hand"]
    told = command("check", "made_description", "size:=3", "--xacro")
    assert (told.exit_code, "right_hand" in told.stdout, "base_3" in told.stdout) == (0, True, True)
    parts = descriptions.parent / "parts"
    parts.mkdir()
    (parts / "hand.xacro").write_text(MACROS["example-robot-data/elsewhere/parts/hand.xacro"].replace("_hand", "_claw"))
    other = load_articulation("made_description", xacro=True, packages={"made_parts": parts})
    assert other.links[1].name == "right_claw"


def test_a_configuration_names_its_model(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(ARM.format(JOINT.format("")))
    config = tmp_path / "c.toml"
    for words, code in (('"r.urdf"', 65), ('["no.urdf"]', 66), ("3", 2), ('["a=r.urdf", "b=r.urdf"]', 65)):
        config.write_text(f"model = {words}\nsteps = 1")
        refused = command("run", "--config", config)
        assert refused.exit_code == code, refused.output  # 65: found, and links without mass
    assert "a/b" in refused.stderr


def test_arguments_of_macros(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    path = tmp_path / "r.urdf.xacro"
    path.write_text(
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arg name="side" default="left"/>'
        '<link name="$(arg side)_hand"/></robot>'
    )
    assert "left_hand" in command("check", path, "--xacro").stdout
    assert "right_hand" in command("check", path, "side:=right", "--xacro").stdout
    assert "right_hand" in command("info", path, "side:=right", "--xacro", "--json").stdout
    assert command("info", path, "side:=right").exit_code == 2
    assert command("batch", path, "right", "--xacro", "-o", tmp_path / "x.h5").exit_code == 2
    assert command("check", path, "side:=right").exit_code == 2
    assert command("check", path, "1 2:=right", "--xacro").exit_code == 2
    assert command("check", "side:=right", "--xacro").exit_code == 2


def test_warnings_of_a_model_are_one_line_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM.format(JOINT.format('<axis xyz="0 0 7"/>')))
    output = tmp_path / "out.npz"
    told = command("batch", path, "--samples", 3, "--compute", "link_position", "-o", output).stderr
    assert f"1 warning: artsim check {path}\n" in told
    assert "normalised" not in told
    assert "normalised" in command("check", path).stderr


def test_warnings_in_python(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM.format(JOINT.format('<axis xyz="0 0 7"/>')))
    with pytest.warns(artsim.ModelWarning, match=r"r\.urdf:1: .*normalised") as told:
        artsim.load(path)
    assert [Path(item.filename).name for item in told] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", artsim.ModelWarning)
        artsim.load(path)


def test_meshes_up_to_the_package_s_root(tmp_path: Path) -> None:
    """Beside the URDF, in the folders above it as far as package.xml, and never above that."""
    package = tmp_path / "ws" / "arm"
    (package / "urdf" / "v2").mkdir(parents=True)
    (package / "package.xml").write_text("<package><name>arm</name></package>")
    for place in (package / "meshes", package / "urdf" / "v2", tmp_path / "ws" / "secret"):
        place.mkdir(exist_ok=True)
        (place / "m.stl").write_text("solid")
    for name, found in (
        ("m.stl", "arm/urdf/v2/m.stl"),
        ("meshes/m.stl", "arm/meshes/m.stl"),
        ("package://elsewhere/meshes/m.stl", "arm/meshes/m.stl"),
        ("secret/m.stl", None),
        ("package://x/secret/m.stl", None),
    ):
        path = package / "urdf" / "v2" / "r.urdf"
        shape = f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
        path.write_text(f'<robot name="r"><link name="a">{shape}</link></robot>')
        mesh = load_articulation(path).links[0].geoms[0].mesh
        assert mesh == (None if found is None else (tmp_path / "ws" / found).resolve())
