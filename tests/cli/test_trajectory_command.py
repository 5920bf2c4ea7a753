"""`artsim trajectory`: its files, which runs and batches read, its summary, and its refusals in a line."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from tests.conftest import ROOT

ARM = str(ROOT / "robots" / "arm7.urdf")
VIA = ("--via", "joint_2=0.5,joint_4=-1", "--via", "joint_1=90deg", "--max-acceleration", "9")


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_files_of_all_kinds_give_a_run_the_same_inputs(tmp_path: Path) -> None:
    """The run follows; `artsim batch` finds its torques, but for those of dampers, from its coordinates."""
    runs = []
    for suffix in ("csv", "npz", "h5"):
        file = tmp_path / f"move.{suffix}"
        result = invoke("trajectory", ARM, *VIA, "-o", file)
        assert result.exit_code == 0, result.output
        assert "3 way points" in result.stderr and "limits used: velocity" in result.stderr
        options = {"controls": file, "interpolate": "linear", "stiffness": 300.0, "damping": 30.0}
        runs.append(artsim.simulate(ARM, steps=400, **options)["qpos"])  # type: ignore[arg-type]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    with np.load(tmp_path / "move.npz") as move:
        assert np.abs(runs[0] - move["qpos"][:400]).max() < 5e-3
        rigid = move["torque"] - artsim.load(ARM).model.damping * move["qvel"]
    for suffix in ("npz", "h5"):
        file = tmp_path / f"move.{suffix}"
        done = invoke(
            "batch", ARM, "--input", file, "--compute", "inverse_dynamics", "-o", tmp_path / f"id_{suffix}.h5"
        )
        assert done.exit_code == 0, done.output
        with h5py.File(tmp_path / f"id_{suffix}.h5") as computed:
            np.testing.assert_allclose(computed["batch/inverse_dynamics"][:], rigid, atol=1e-9)


def test_the_summary_is_what_python_finds(tmp_path: Path) -> None:
    """Typed way points begin at --q0, rows of a file at the first; both are the same motion."""
    goal = np.zeros((3, 7))
    goal[1, [1, 3]] = 0.5, -1.0
    goal[2, [0, 1, 3]] = np.pi / 2, 0.5, -1.0
    np.save(tmp_path / "points.npy", goal)
    found = artsim.load(ARM).trajectory(goal, max_acceleration=9.0)
    for words in (VIA, ("--through", tmp_path / "points.npy", "--max-acceleration", "joint_[1-7]=9")):
        summary = json.loads(invoke("trajectory", ARM, *words, "-o", tmp_path / "a.csv", "--force", "--json").stdout)
        assert summary["duration"] == pytest.approx(found.duration, rel=1e-12)
        assert summary["used"]["velocity"] == pytest.approx(dict(found.used["velocity"]))
    text = invoke("trajectory", ARM, *VIA, "--inputs", "target,acceleration", "-o", "-", "-q").stdout
    assert text.startswith("time,joint_1.target,") and "joint_7.acceleration\n" in text
    rows = np.array([line.split(",") for line in text.splitlines()[1:]], float)
    np.testing.assert_array_equal(rows[:, 1:8], found.qpos)


REFUSED = [
    ((), 2, "give --through FILE or --via WAYPOINT"),
    (("--via", "joint_9=1"), 2, "--via: 'joint_9' is not a joint"),
    (("--via", "1,2,3"), 2, "--via: got 3 numbers, want 7"),
    (("--via", "joint_1=9"), 2, "joint_1 is 6.04 beyond its limit at way point 1"),
    (("--via", "joint_1=1", "--through", "x.csv"), 2, "only one"),
    (("--through", "x.csv"), 66, "x.csv: no such file"),
    (("--via", "joint_1=1", "--inputs", "targets"), 2, "'targets' is not known; did you mean 'target'"),
    (("--via", "1,2", "--link", "link_7"), 2, "want X,Y,Z"),
    (("--via", "0.5,0,0.5", "--link", "hand"), 2, "link 'hand' does not exist"),
    (("--via", "3,0,0.5", "--link", "link_7"), 3, "way point 1 (counted from 0) is not reached: 2.1"),
    (("--via", "joint_2=1", "--max-torque", "5"), 3, "joint_2 is too weak for the robot's weight"),
    (("--via", "joint_1=1", "--max-jerk", "5"), 2, "--max-jerk is for --timing ruckig"),
]


@pytest.mark.parametrize(("words", "code", "told"), REFUSED)
def test_refusals_are_a_line(words: tuple[str, ...], code: int, told: str, tmp_path: Path) -> None:
    result = invoke("trajectory", ARM, *words, "-o", tmp_path / "out.csv")
    assert result.exit_code == code and told in result.stderr, result.output
    assert not (tmp_path / "out.csv").exists()
    assert len([line for line in result.stderr.splitlines() if not line.startswith(("Usage", "Try"))]) == 1
