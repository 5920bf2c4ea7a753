"""`artsim compute`, and batches as CSV and on grids: the numbers of Robot.compute, in every form."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.batches.batch import content_of, prepare
from artsim.io.batches.configuration import BatchConfig
from artsim.io.batches.csv_output import CsvWriter, columns_of
from artsim.loaders.load import load_articulation
from tests.conftest import ROOT

ARM, GRIPPER = str(ROOT / "robots" / "arm7.urdf"), str(ROOT / "robots" / "two_finger_gripper.urdf")
QUADRUPED = str(ROOT / "robots" / "quadruped.urdf")


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def results(*words: object) -> dict[str, np.ndarray]:
    """The arrays that `artsim compute --json` prints."""
    result = invoke("compute", *words, "--json", "-q")
    assert result.exit_code == 0, result.output
    return {name: np.array(entry["values"]) for name, entry in json.loads(result.stdout).items()}


def rows_of(text: str) -> list[dict[str, float]]:
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))]


# ------------------------------------------------------------------ one configuration


def test_every_quantity_of_one_configuration() -> None:
    robot = artsim.load(ARM)
    q, v, a = np.zeros((3, 7))
    q[1], v[0], a[2] = np.radians(30), 1.5, -2.0
    wrench = np.zeros((9, 6))
    wrench[8] = [1, 2, 3, 4, 5, 6]
    names = [
        "gravity",
        "mass_matrix",
        "jacobian",
        "inverse_dynamics",
        "link_velocity",
        "kinetic_energy",
        "external_force",
    ]
    words = ["--q0", "joint_2=30deg", "--v0", "joint_1=1.5", "--a0", "joint_3=-2", "--wrench", "tool0=1,2,3,4,5,6"]
    want = robot.compute(q, v, a, wrench=wrench, quantities=names)
    for name, values in results(ARM, *names, *words).items():
        np.testing.assert_array_equal(values, want[name], err_msg=name)
    at = results(ARM, "jacobian", "--at", "origin", "--links", "tool0", "--q0", "joint_2=30deg")["jacobian"]
    np.testing.assert_array_equal(
        at, robot.compute(q, quantities=["jacobian"], at="origin", links=["tool0"])["jacobian"]
    )


def test_bases_and_gravity() -> None:
    robot = artsim.load(QUADRUPED, base="floating", gravity=(0, 0, -1.62))
    q = robot.reference.copy()
    q[:7] = [1, 2, 3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)]
    words = ["--base", "floating", "--base-pose", "1,2,3,0,0,90deg", "--gravity", "0,0,-1.62"]
    found = results(QUADRUPED, "com", "gravity", *words)
    for name, values in robot.compute(q, quantities=["com", "gravity"]).items():
        np.testing.assert_allclose(found[name], values, atol=1e-12)


def test_followers_follow_in_position_velocity_and_acceleration() -> None:
    """Power balance: with all inputs consistent, Gᵀ of the full inverse dynamics is the reduced one."""
    robot = artsim.load(GRIPPER)
    leader = robot.independent_dofs[0]
    words = ["--q0", f"{leader}=0.3", "--v0", f"{leader}=2", "--a0", f"{leader}=5"]
    full = results(GRIPPER, "inverse_dynamics", "coupling_matrix", *words)
    reduced = results(GRIPPER, "inverse_dynamics", "--reduced", *words)["inverse_dynamics"]
    np.testing.assert_allclose(full["coupling_matrix"].T @ full["inverse_dynamics"], reduced, atol=1e-12)


def test_a_table_and_csv_say_the_same() -> None:
    told = invoke("compute", ARM, "gravity", "mass_matrix", "com", "--q0", "joint_2=0.5").output
    want = results(ARM, "gravity", "mass_matrix", "com", "--q0", "joint_2=0.5")
    assert "gravity [N m]\n" in told and "mass_matrix [kg m^2]\n" in told and "com [m]\n" in told
    line = next(line for line in told.splitlines() if line.split()[:1] == ["joint_2"])
    assert float(line.split()[1]) == pytest.approx(want["gravity"][1], rel=1e-7)
    (row,) = rows_of(invoke("compute", ARM, "gravity", "mass_matrix", "--q0", "joint_2=0.5", "--csv").stdout)
    assert row["qpos.joint_2"] == 0.5
    assert row["gravity.joint_2"] == want["gravity"][1]
    assert row["mass_matrix.joint_2.joint_4"] == want["mass_matrix"][1, 3]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["grvity"], 2, "quantity 'grvity' is not known; did you mean 'gravity'? (known: gravity, coriolis"),
        (["gravity", "--q0", "jiont_1=3"], 2, "--q0: 'jiont_1' is not a joint of this robot; did you mean 'joint_1'?"),
        (["gravity", "--wrench", "tool=1,2,3,4,5,6"], 2, "--wrench: 'tool' is not a link of this robot; did you mean"),
        (["gravity", "--wrench", "tool0=1,2"], 2, "--wrench: got 'tool0=1,2', want LINK=FX,FY,FZ or"),
        (["gravity", "--links", "tol0"], 2, "--links: 'tol0' is not a link of this robot; did you mean 'tool0'?"),
        (["gravity", "--links", "*_arm"], 2, "--links: '*_arm' matches no link of this robot"),
        (["gravity", "--json", "--csv"], 2, "give --json or --csv, not both"),
        (["gravity", "--q0", "joint_1=1e16"], 3, "cannot be computed: an input is not finite, above 1e15"),
    ],
)
def test_what_cannot_be_computed_is_told(words: list[str], code: int, told: str) -> None:
    result = invoke("compute", ARM, *words)
    assert result.exit_code == code
    assert told in result.output
    assert not result.stdout.strip() or result.stdout == result.output


# ------------------------------------------------------------------ batches as CSV


def test_a_batch_as_csv_has_the_numbers_of_the_file(tmp_path: Path) -> None:
    words = ["batch", ARM, "--samples", 1000, "--compute", "gravity,com"]
    assert invoke(*words, "-o", tmp_path / "b.h5").exit_code == 0
    for more in ([], ["--threads", 3, "--chunk", 7], ["--threads", 1]):
        result = invoke(*words, *more, "-o", tmp_path / "b.csv", "--force")
        assert result.exit_code == 0, result.output
        text = (tmp_path / "b.csv").read_text()
        printed = invoke(*words, *more, "-o", "-")
        assert printed.stdout == text
        table = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
        with artsim.open(tmp_path / "b.h5") as batch:
            np.testing.assert_array_equal(
                table, np.hstack([batch["qpos"], batch["gravity"], batch["com"], batch["status"][:, None]])
            )
    assert not list(tmp_path.glob("*.partial"))


def test_results_in_single_precision_have_its_digits(tmp_path: Path) -> None:
    words = ["batch", ARM, "--samples", 20, "--compute", "gravity", "--float32"]
    assert invoke(*words, "-o", tmp_path / "b.h5").exit_code == 0
    rows = rows_of(invoke(*words, "-o", "-").stdout)
    with artsim.open(tmp_path / "b.h5") as batch:
        told = np.array([row["gravity.joint_4"] for row in rows], np.float32)
        np.testing.assert_array_equal(told, batch["gravity"][:, 3])


def test_a_batchs_csv_is_an_input(tmp_path: Path) -> None:
    words = ["--compute", "gravity"]
    assert invoke("batch", ARM, "--samples", 30, *words, "-o", tmp_path / "a.csv").exit_code == 0
    again = invoke("batch", ARM, "--input", tmp_path / "a.csv", *words, "-o", tmp_path / "b.csv")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_a_reader_that_leaves_ends_the_batch() -> None:
    command = f"{sys.executable} -m artsim batch {ARM} --samples 200000 --compute gravity -o - -q"
    words = f"{command} | head -n 2; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "141"
    assert not done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["-o", "-", "--json"], 2, "--output - and --json both write to standard output"),
        (["-o", "b.csv", "--shards", "2"], 2, "shards and --resume are for HDF5"),
        (["-o", "-", "--resume"], 2, "shards and --resume are for HDF5"),
        (["-o", "b.txt"], 2, "want a name that ends in"),
    ],
)
def test_what_csv_has_not(words: list[str], code: int, told: str) -> None:
    result = invoke("batch", ARM, "--samples", 3, "--compute", "gravity", *words)
    assert result.exit_code == code
    assert told in result.output


def test_blocks_may_come_in_any_order(tmp_path: Path) -> None:
    with prepare(load_articulation(ARM), BatchConfig(model=ARM, samples=6, quantities=("gravity",))) as job:
        content = content_of(job, 0, 6, {}, signed=False)
    numbers = np.arange(42.0).reshape(6, 7)
    texts = []
    for order in ((0, 2, 4), (4, 2, 0), (2, 0, 4)):
        with CsvWriter(tmp_path / "b.csv", content, force=True) as writer:
            for start in order:
                part = numbers[start : start + 2]
                writer.write(start, 2, {"qpos": part, "gravity": -part, "status": np.zeros(2, np.int8)})
            writer.commit()
        texts.append((tmp_path / "b.csv").read_text())
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].splitlines()[0].split(",") == columns_of(content)
    assert len(texts[0].splitlines()) == 7


# ------------------------------------------------------------------ grids


def test_a_grid_has_every_combination(tmp_path: Path) -> None:
    output = tmp_path / "g.h5"
    words = [
        "--grid",
        "joint_2=-90deg:90deg:5",
        "--grid",
        "joint_4=-1:1:3",
        "--q0",
        "joint_1=0.3",
        "--q0",
        "joint_[67]=0.1",
    ]
    result = invoke("batch", ARM, *words, "--compute", "gravity,kinetic_energy", "-o", output)
    assert result.exit_code == 0, result.output
    a, b = np.meshgrid(np.linspace(-np.pi / 2, np.pi / 2, 5), np.linspace(-1, 1, 3), indexing="ij")
    want = np.zeros((15, 7))
    want[:, 0], want[:, 5:], want[:, 1], want[:, 3] = 0.3, 0.1, a.ravel(), b.ravel()
    with artsim.open(output) as batch:
        np.testing.assert_array_equal(batch["qpos"], want)
        np.testing.assert_array_equal(batch["gravity"], artsim.compute(ARM, want, quantities=["gravity"])["gravity"])
        assert not batch["kinetic_energy"].any()  # velocities are zero
    verified = invoke("replay", "--verify", output)
    assert verified.exit_code == 0 and "every byte equal" in verified.output
    text = invoke("batch", ARM, *words, "--compute", "gravity,kinetic_energy", "-o", "-", "--chunk", 4).stdout
    np.testing.assert_array_equal([row["qpos.joint_4"] for row in rows_of(text)], want[:, 3])


def test_followers_of_a_grid_follow(tmp_path: Path) -> None:
    robot = artsim.load(GRIPPER)
    leader = robot.independent_dofs[0]
    text = invoke("batch", GRIPPER, "--grid", f"{leader}=0:0.4:4", "--compute", "com", "-o", "-").stdout
    for row, value in zip(rows_of(text), np.linspace(0, 0.4, 4), strict=True):
        full, _ = robot.to_full(robot.to_independent(robot.reference * 0 + _full(robot, leader, value))[0])
        np.testing.assert_allclose([row[f"qpos.{name}"] for name in robot.coords], full, atol=1e-14)


def _full(robot: artsim.Robot, leader: str, value: float) -> np.ndarray:
    run = artsim.simulate(robot, steps=1, q0={leader: value})
    return np.asarray(run["qpos"][0])


def test_shards_of_a_grid(tmp_path: Path) -> None:
    words = ["batch", ARM, "--grid", "joint_2=-1:1:50", "--compute", "gravity"]
    assert invoke(*words, "-o", tmp_path / "one.h5").exit_code == 0
    assert invoke(*words, "-o", tmp_path / "many.h5", "--shards", 3).exit_code == 0
    with artsim.open(tmp_path / "one.h5") as one, artsim.open(tmp_path / "many.h5") as many:
        np.testing.assert_array_equal(one["gravity"], many["gravity"])
    other = invoke(
        *words[:2], "--grid", "joint_2=-1:1:51", *words[4:], "-o", tmp_path / "many.h5", "--shards", 3, "--resume"
    )
    assert other.exit_code == 65 and "another job" in other.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--grid", "jiont_1=0:1:3"],
            "'jiont_1' is not a joint of this robot that slides or turns; did you mean",
        ),
        (["--grid", "joint_1=0:1"], "'joint_1=0:1' is not JOINT=LOW:HIGH:N"),
        (["--grid", "joint_1=0:x:3"], "'joint_1=0:x:3' is not JOINT=LOW:HIGH:N"),
        (["--grid", "joint_1=1:0:3"], "want LOW:HIGH:N, LOW ≤ HIGH, N from 1"),
        (["--grid", "joint_1=0:1:0"], "want LOW:HIGH:N, LOW ≤ HIGH, N from 1"),
        (["--grid", "joint_1=0:1:3", "--grid", "joint_1=0:1:4"], "'joint_1' is named twice"),
        (
            ["--grid", "joint_1=0:1:3", "--samples", "3"],
            "give --input FILE, --samples N or --grid JOINT=LOW:HIGH:N, only",
        ),
        (["--samples", "3", "--q0", "joint_1=3"], "--q0 is for the coordinates that --grid leaves out"),
        (["--grid", "joint_1=0:1:3", "--q0", "jiont_2=1"], "q0: 'jiont_2' is not a joint of this robot"),
    ],
)
def test_grids_that_mean_nothing(words: list[str], told: str) -> None:
    result = invoke("batch", ARM, *words, "--compute", "gravity", "-o", "-")
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_degrees_are_for_joints_that_turn() -> None:
    model = str(ROOT / "robots" / "planar_base.urdf")
    result = invoke("batch", model, "--grid", "planar_joint.x=0:90deg:3", "--compute", "com", "-o", "-")
    assert result.exit_code == 2 and "planar_joint.x is in m, not in degrees" in result.output
    follower = next(name for name in artsim.load(GRIPPER).dofs if name not in artsim.load(GRIPPER).independent_dofs)
    result = invoke("batch", GRIPPER, "--grid", f"{follower}=0:1:3", "--compute", "com", "-o", "-")
    assert result.exit_code == 2 and "follows another joint" in result.output


def test_links_are_named_by_patterns_too(tmp_path: Path) -> None:
    """A pattern stands for its links in the robot's order, each once; in files that are verified as well."""
    robot = artsim.load(ARM)
    some = tuple(link for link in robot.links if fnmatchcase(link, "*_[135]"))
    assert len(some) > 1
    words = ("--links", f"{some[-1]},*_[135]", "--at", "origin")
    order = [some[-1], *some[:-1]]
    found = json.loads(invoke("compute", ARM, "link_position", "--json", *words).stdout)["link_position"]
    assert found["labels"]["link"] == order
    near = json.loads(invoke("compute", ARM, "link_position", "--json", "--links", ",".join(order)).stdout)
    assert found["values"] == near["link_position"]["values"]
    pushed = invoke("compute", ARM, "external_force", "--wrench", "*_[135]=0,0,1,0,0,0", "--json").stdout
    each = [word for link in some for word in ("--wrench", f"{link}=0,0,1,0,0,0")]
    assert pushed == invoke("compute", ARM, "external_force", "--json", *each).stdout
    output = tmp_path / "b.h5"
    done = invoke("batch", ARM, "--samples", "3", "--compute", "link_position", *words, "-o", output)
    assert done.exit_code == 0, done.output
    with artsim.open(output) as batch:
        assert batch.labels.link == tuple(order)
    assert "every byte equal" in invoke("replay", "--verify", output).stdout
    told = invoke("batch", ARM, "--samples", "3", "--compute", "link_position", "--links", "lnk_1,x*", "-o", "-")
    assert told.exit_code == 2 and "--links: 'lnk_1' is not a link of this robot; did you mean 'link_1'?" in told.output
