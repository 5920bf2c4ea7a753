"""Maps over the workspace by `artsim plot`: their values, which rows and joints count, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.exports.maps import WorkspaceMap, map_of
from tests.conftest import ROOT
from tests.ik.ik_models import MIMIC_ARM

ARM, GRIPPER = ROOT / "robots" / "arm7.urdf", ROOT / "robots" / "two_finger_gripper.urdf"

CRANE = """<robot name="crane"><link name="w"/>
  <joint name="boom" type="revolute"><parent link="w"/><child link="b"/><axis xyz="0 -1 0"/>
    <limit lower="-1.5" upper="1.5" effort="40" velocity="1"/></joint>
  <link name="b"><inertial><mass value="0.001"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="jib" type="prismatic"><parent link="b"/><child link="hook"/><axis xyz="1 0 0"/>
    <limit lower="0.2" upper="1" effort="100" velocity="1"/></joint>
  <link name="hook"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
</robot>"""
"""A load of 5 kg at the end of a boom: at (x, 0, z) the boom holds 5 g x, the jib 5 g z / r."""


def invoke(*words: object, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)], input=given)


def good(*words: object, given: str | None = None) -> Result:
    done = invoke(*words, given=given)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def crane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the crane, and the map of its loads by the pipe of the documentation."""
    folder = tmp_path_factory.mktemp("crane")
    (folder / "crane.urdf").write_text(CRANE)
    words = ("ik", folder / "crane.urdf", "--link", "hook", "--grid", "0:1:11,0,-0.6:0.6:7")
    rows = good(*words, "--on-error", "blank", "-o", "-", "-q").stdout
    more = (
        "--compute",
        "gravity,link_position",
        "--links",
        "hook",
        "--on-error",
        "skip",
        "-q",
        "-o",
        folder / "load.h5",
    )
    good("batch", folder / "crane.urdf", "--input", "-", *more, given=rows)
    good(*words, "--on-error", "skip", "-q", "-o", folder / "reach.h5")
    return folder


def made(path: Path, *names: str, entries: tuple[str, ...] = ()) -> WorkspaceMap:
    with artsim.open(path) as file:
        return map_of(file, names, entries, [])  # type: ignore[arg-type]


def test_loads_are_those_of_the_closed_form(crane: Path) -> None:
    """In the rows that are reached, 0.2 to 1 m from the axle, and there alone."""
    found = made(crane / "load.h5")
    x, z = (each.ravel() for each in np.meshgrid(np.linspace(0, 1, 11), np.linspace(-0.6, 0.6, 7), indexing="ij"))
    r = np.hypot(x, z)
    within = (r >= 0.2 - 1e-9) & (r <= 1 + 1e-9) & (np.arctan2(np.abs(z), x) <= 1.5)
    x, z, r = x[within], z[within], r[within]
    np.testing.assert_allclose(found.place, np.stack([x, 0 * x, z], axis=1), atol=2e-6)
    weight = 5 * 9.81
    shares = {"boom": weight * x / 40, "jib": weight * np.abs(z) / r / 100}
    np.testing.assert_allclose(found.value, 100 * np.maximum(*shares.values()), rtol=1e-3)  # the boom has 1 g
    for joint, share in shares.items():
        np.testing.assert_allclose(made(crane / "load.h5", entries=(joint,)).value, 100 * share, rtol=1e-3, atol=1e-3)
    assert found.title == "gravity: at most 123 % of an effort limit, of boom at 1, 0, 0 m"
    reach = made(crane / "reach.h5")
    assert len(reach.place) == 77
    np.testing.assert_array_equal(np.isfinite(reach.value), within)
    assert f"{within.sum()} of 77 poses of hook are reached" == reach.title


def test_several_rows_of_a_position(tmp_path: Path) -> None:
    """Of reach the share of rotations, of loads the largest."""
    words = ("ik", ARM, "--link", "link_7", "--grid", "0.5,-0.3:0.3:3,0.4,90deg:180deg:4,0,0", "--on-error", "skip")
    good(*words, "-q", "-o", tmp_path / "a.h5")
    with artsim.open(tmp_path / "a.h5") as file:
        share = (file["status"].reshape(3, 4) == 0).mean(axis=1)
    np.testing.assert_allclose(np.nan_to_num(made(tmp_path / "a.h5").value), 100 * share)
    good(*words[:5], "0.5,-0.3:0.3:3,0.4,180deg,0,0:180deg:4", "-q", "-o", tmp_path / "b.h5")
    more = ("--compute", "gravity,link_position", "--links", "link_7", "-q", "-o", tmp_path / "load.h5")
    good("batch", ARM, "--input", tmp_path / "b.h5", *more)
    with artsim.open(tmp_path / "load.h5") as file:
        efforts = [file.joint_bounds[name]["effort"] for name in file.labels.dof]
        largest = (np.abs(file["gravity"]) / efforts).max(axis=1).reshape(3, 4).max(axis=1)
    np.testing.assert_allclose(made(tmp_path / "load.h5").value, 100 * largest)


@pytest.mark.parametrize("grid", ["0:1:5,0,0", "0:1:5,0,-0.6:0.6:5", "0:1:5,-0.1:0.1:3,-0.6:0.6:5"])
def test_a_line_a_plane_and_planes_are_drawn(grid: str, crane: Path, tmp_path: Path) -> None:
    words = ("ik", crane / "crane.urdf", "--link", "hook", "--grid", grid, "--on-error", "blank", "--attempts", "5")
    good(*words, "-q", "-o", tmp_path / "ik.h5")
    more = (
        "--compute",
        "gravity,link_position",
        "--links",
        "hook",
        "--on-error",
        "skip",
        "-q",
        "-o",
        tmp_path / "b.h5",
    )
    good("batch", crane / "crane.urdf", "--input", tmp_path / "ik.h5", *more)
    for file, picture in (("ik.h5", "ik.png"), ("b.h5", "b.svg")):
        good("plot", tmp_path / file, "-o", tmp_path / picture)
    assert (tmp_path / "ik.png").read_bytes().startswith(b"\x89PNG") and b"<svg" in (tmp_path / "b.svg").read_bytes()


def test_drawn_configurations_are_points(tmp_path: Path) -> None:
    words = (
        "--compute",
        "gravity,link_position",
        "--links",
        "link_7",
        "--samples",
        "300",
        "-q",
        "-o",
        tmp_path / "b.h5",
    )
    good("batch", ARM, *words)
    good("plot", tmp_path / "b.h5", "gravity", "--entries", "joint_2", "-o", tmp_path / "b.png")


def test_refusals(crane: Path, tmp_path: Path) -> None:
    (tmp_path / "mimic.urdf").write_text(MIMIC_ARM)
    made = {
        "plain": (ARM, "--compute", "gravity"),
        "two": (ARM, "--compute", "gravity,link_position", "--links", "link_6,link_7"),
        "mass": (ARM, "--compute", "mass_matrix,link_position", "--links", "link_7"),
        "mimic": (tmp_path / "mimic.urdf", "--compute", "gravity,link_position", "--links", "palm"),
        "reduced": (tmp_path / "mimic.urdf", "--compute", "gravity,link_position", "--links", "palm", "--reduced"),
    }
    for name, words in made.items():
        good("batch", *words, "--samples", "9", "-q", "-o", tmp_path / f"{name}.h5")
    for words, told in (
        (("plain.h5",), "a map needs positions of one link"),
        (("two.h5",), "a map needs positions of one link"),
        (("mass.h5",), "a map needs one of inverse_dynamics, gravity"),
        (("mimic.h5",), "leaders bear the forces of followers: give artsim batch --reduced"),
        (("reduced.h5", "--entries", "right"), "--entries: no joint 'right'"),
        (("reduced.h5", "gravty"), "'gravty' is no joint force of a batch; did you mean 'gravity'?"),
        (("reduced.h5", "reduced.h5"), "they are drawn by themselves, as a map"),
        ((crane / "reach.h5", "gravity"), "it takes no names"),
    ):
        files = [tmp_path / word if str(word).endswith(".h5") else word for word in words]
        done = invoke("plot", *files, "-o", tmp_path / "x.png")
        assert done.exit_code == 2 and told in done.stderr, done.output
        assert not (tmp_path / "x.png").exists()
    good("plot", tmp_path / "reduced.h5", "-o", tmp_path / "x.png")
