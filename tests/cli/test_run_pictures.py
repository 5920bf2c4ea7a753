"""Pictures of a run drawn with it: the page and the figure, also without a file of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_check import artsim
from tests.conftest import ROOT

ARM = ROOT / "robots" / "double_pendulum.urdf"
XACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="boxed">
<xacro:macro name="box" params="name"><link name="${name}">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://boxes/box.stl"/></geometry></visual></link></xacro:macro>
<xacro:box name="one"/></robot>"""
BOX = """solid box
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 1 0
endloop
endfacet
endsolid box
"""


def test_a_page_and_a_figure_without_a_file(tmp_path: Path) -> None:
    """Both are written, the run is not; the summary lists them."""
    pytest.importorskip("matplotlib")
    page, figure = tmp_path / "run.html", tmp_path / "run.png"
    done = artsim("run", ARM, "--steps", "20", "--html", page, "--plot", figure)
    assert done.exit_code == 0, done.stderr
    assert page.read_text().startswith("<!") and figure.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["run.html", "run.png"]
    assert f"wrote {page} (" in done.stderr and f"wrote {figure} (" in done.stderr
    assert "nothing of the run is kept" not in done.stderr
    again = artsim("run", ARM, "--steps", "20", "--html", page, "--force", "--json")
    assert json.loads(again.stdout)["pictures"] == {str(page): page.stat().st_size}


def test_meshes_of_macros_are_drawn(tmp_path: Path) -> None:
    """Of a package that is given to the run alone: no warning that a mesh is not at hand."""
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "box.stl").write_text(BOX)
    model = tmp_path / "boxed.xacro"
    model.write_text(XACRO)
    options = ("--xacro", "--package", f"boxes={tmp_path}/meshes", "--base", "floating", "--steps", "3")
    done = artsim("run", model, *options, "--html", tmp_path / "run.html")
    assert done.exit_code == 0 and "not drawn" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--plot", "run.txt"), "a figure is .png, .svg, .pdf"),
        (("--html", "there.html"), "there.html: exists already"),
        (("--html", "a.h5", "-o", "a.h5"), "two outputs have the same file"),
        (("--html", "a.html", "--converge"), "--converge writes no run"),
        (("--html", "no/a.html"), "no"),
    ],
)
def test_pictures_that_cannot_be_written_are_refused_before_the_run(
    options: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.html").touch()
    done = artsim("run", ARM, "--steps", "20", *options)
    assert done.exit_code in (2, 73) and told in done.stderr and "simulated" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]
