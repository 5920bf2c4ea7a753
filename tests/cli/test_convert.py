"""`artsim convert`: files, losses and the proof as text and JSON, refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from artsim.cli.main import cli
from tests.conftest import ROOT

GRIPPER, LEG = ROOT / "robots" / "parallel_gripper.urdf", ROOT / "robots" / "leg.xml"


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["convert", *map(str, arguments)])


def test_losses_and_proof_are_printed(tmp_path: Path) -> None:
    done = convert(GRIPPER, "-o", tmp_path / "g.xml")
    assert done.exit_code == 0, done.output
    assert "joint 'mount_to_palm': is fixed, and has no name in MJCF" in done.stdout
    rows = {" ".join(line.split()) for line in done.stdout.splitlines()}
    assert "mass matrix 32 0 equal" in rows
    assert "couplings 1 equal" in rows


def test_json_has_all(tmp_path: Path) -> None:
    done = convert(LEG, "-o", tmp_path / "leg.urdf", "--json")
    told = json.loads(done.stdout)
    assert told["holds"] and told["untold"] == []
    assert {row["subject"]: row["verdict"] for row in told["proof"]}["actuators"] == "told"
    assert {"knee", "hip_roll", "hip_pitch"} <= {loss["name"] for loss in told["losses"] if loss["kind"] == "actuator"}


def test_strict_refuses_what_the_format_cannot_say(tmp_path: Path) -> None:
    done = convert(LEG, "-o", tmp_path / "leg.urdf", "--strict")
    assert done.exit_code == 2
    assert "actuator 'hip_roll'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "told", "code"),
    [
        ("x.obj", "suffix '.obj' names no format", 2),
        ("none/x.xml", "no such folder", 73),
        ("", "is a folder", 73),
    ],
)
def test_bad_outputs_get_one_line(output: str, told: str, code: int, tmp_path: Path) -> None:
    done = convert(GRIPPER, "-o", tmp_path / output)
    assert (done.exit_code, done.stderr.count("\n")) == (code, 1)
    assert told in done.stderr


def test_the_input_is_not_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "g.urdf"
    source.write_bytes(GRIPPER.read_bytes())
    done = convert(source, "-o", source, "--force")
    assert done.exit_code != 0
    assert source.read_bytes() == GRIPPER.read_bytes()


def test_other_programs_load_the_file(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    done = convert(GRIPPER, "-o", tmp_path / "g.xml", "--check-with", "mujoco")
    assert done.exit_code == 0, done.output
    assert "mujoco: loads it, 2 dofs, 1.2 kg" in done.stdout
    done = convert(GRIPPER, "-o", tmp_path / "g.sdf", "--check-with", "mujoco")
    assert "it reads .xml, .mjcf, .urdf" in done.stderr
