"""`artsim info`: one screen about a robot file or an output, whichever it is given."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.output_file.model_record import shortened
from artsim.loaders.load import load_articulation
from tests.conftest import ROOT

GRIPPER = ROOT / "robots" / "two_finger_gripper.urdf"


def info(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["info", *map(str, arguments)], input=stdin)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("info") / "run.h5"
    artsim.simulate(GRIPPER, steps=10, every=2, record=("qpos", "jacobian"), output=output).close()  # type: ignore[union-attr]
    return output


def test_a_model() -> None:
    told = info(GRIPPER)
    assert told.exit_code == 0
    assert "URDF robot 'two_finger_gripper', fixed base: 8 links, 7 joints (1 fixed, 6 revolute)" in told.stdout
    assert "6 dofs, 1 independent; mass 0.84 kg" in told.stdout
    assert "= -1 right_rocker_joint" in told.stdout
    assert info("-", stdin=GRIPPER.read_bytes()).stdout == told.stdout
    assert "18 dofs" in info(ROOT / "robots" / "quadruped.urdf", "--base", "floating").stdout


def test_what_options_of_an_mjcf_file_go_by(tmp_path: Path) -> None:
    leg, clamp = ROOT / "robots" / "leg.xml", ROOT / "robots" / "clamp.xml"
    told = info(leg).stdout
    assert "keyframes (1): crouched" in told
    assert "knee" in told[told.index("ACTUATOR") :]
    told = info(clamp).stdout
    assert "2 loops, 2 tendons, 1 actuator, 3 sensors" in told
    assert "tendon" in told[told.index("ACTUATOR") :]
    told = json.loads(info(clamp, "--json").stdout)
    assert [actuator["name"] for actuator in told["actuators"]] == ["grip"]
    assert told["counts"]["loops"] == 2
    artsim.simulate(clamp, steps=1, output=tmp_path / "clamp.h5").close()  # type: ignore[union-attr]
    assert "actuators (1): grip" in info(tmp_path / "clamp.h5").stdout


ODD = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0"
iyy="1" iyz="0" izz="1"/></inertial><collision><geometry><sphere radius="0"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 2"/></joint></robot>"""


def test_what_was_odd_about_a_model_is_told_of_its_outputs(tmp_path: Path) -> None:
    """Of runs, batches and rollouts, on the screen, as JSON and from Python; a file that says nonsense is refused."""
    path = tmp_path / "odd.urdf"
    path.write_text(ODD)
    odd = [str(note) for note in load_articulation(path).notes]
    assert len(odd) == 3
    outputs = [tmp_path / f"{kind}.h5" for kind in ("run", "batch", "rollout")]
    for words in (
        ("run", path, "--balance-inertia", "--steps", 2, "-o", outputs[0]),
        ("batch", path, "--compute", "com", "--balance-inertia", "--samples", 3, "-o", outputs[1]),
        ("rollout", path, "--samples", 2, "--balance-inertia", "--steps", 2, "-o", outputs[2]),
    ):
        done = CliRunner().invoke(cli, [*map(str, words)])
        assert done.exit_code == 0, done.output
        assert f"3 warnings: artsim check {path} --balance-inertia\n" in done.stderr
    for output in outputs:
        told = info(output).stdout
        assert "warnings of the model (3):" in told
        assert all(line in told for line in odd)
        assert json.loads(info(output, "--json").stdout)["warnings"] == odd
    with artsim.open(outputs[0]) as recording:
        assert recording.warnings == odd
    plain = tmp_path / "plain.h5"
    artsim.simulate(GRIPPER, steps=1, output=plain).close()  # type: ignore[union-attr]
    assert "warnings" not in info(plain).stdout
    with h5py.File(outputs[0], "r+") as file:
        file["model"].attrs["warnings"] = "[1"
    refused = info(outputs[0])
    assert (refused.exit_code, "/model warnings are no JSON" in refused.stderr) == (65, True)


def test_of_very_many_warnings_the_first_are_kept() -> None:
    told = shortened([f"{n}" + "x" * 600 for n in range(250)])
    assert (len(told), told[-1]) == (201, "50 more; artsim check lists all")
    assert max(map(len, told)) == 502


def test_a_model_as_json() -> None:
    told = json.loads(info(GRIPPER, "--json").stdout)
    assert (told["counts"]["dofs"], told["counts"]["independent_dofs"]) == (6, 1)
    followers = [joint["name"] for joint in told["joints"] if joint["mimic"]]
    assert len(followers) == 5
    assert len(told["links"]) == 8
    assert told["mass"] == pytest.approx(0.84)


def test_a_long_chain_fits_on_a_screen(tmp_path: Path) -> None:
    links = "".join(f'<link name="l{i}"/>' for i in range(200))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(199)
    )
    path = tmp_path / "chain.urdf"
    path.write_text(f'<robot name="chain">{links}{joints}</robot>')
    told = info(path).stdout
    assert len(told.splitlines()) < 40
    assert "more joints" in told


def test_a_run(run_file: Path) -> None:
    told = info(run_file).stdout
    assert "complete" in told
    assert "5 rows, every 2 steps of 10 of 0.002 s; 0.02 s recorded" in told
    assert "integrator midpoint, solver newton, coupling auto" in told
    assert re.search(r"^jacobian +time 5, jacobian_column \d+, twist 6 ", told, re.M)
    assert "numba " in told


def test_an_output_is_known_by_its_first_bytes(run_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "renamed"
    other.write_bytes(run_file.read_bytes())
    assert json.loads(info(other, "--json").stdout)["kind"] == "run"


def test_what_is_neither(run_file: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = [1.0]
    (tmp_path / "text.h5").write_text("<robot/>")
    for name, code in (("other.h5", 65), ("text.h5", 65), ("no.h5", 66), ("no.urdf", 66), (".", 66)):
        told = info(tmp_path / name)
        assert told.exit_code == code, told.stderr
        assert len(told.stderr.splitlines()) == 1


def test_damaged_configuration_and_versions(run_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "run.h5"
    other.write_bytes(run_file.read_bytes())
    with h5py.File(other, "r+") as file:
        file["provenance"].attrs["versions"] = "[1"
        file["trajectory"]["link"][0] = "\x1b[2J"
    told = info(other)
    assert told.exit_code == 0
    assert "unknown versions" in told.stdout
    assert "\x1b" not in told.stdout
    with h5py.File(other, "r+") as file:
        file["provenance"].attrs["config"] = "[1"
    assert info(other).exit_code == 65


def test_f16_nobody_reads_the_output(run_file: Path) -> None:
    words = [sys.executable, "-m", "artsim", "info", str(run_file)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 74
    assert "Traceback" not in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == ""
