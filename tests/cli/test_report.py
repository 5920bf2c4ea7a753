"""`artsim report`: loads of motors against numpy on the recorded rows, and closed forms."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli

ROBOTS = Path(artsim.__file__).parents[2] / "robots"
SLIDE = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body></worldbody>
<actuator><motor name="push" joint="x" gear="2" ctrlrange="-3 3" forcerange="-5 5"/></actuator></mujoco>"""


def told(path: Path) -> dict[str, dict[str, float]]:
    result = CliRunner().invoke(cli, ["report", str(path), "--json"])
    assert result.exit_code == 0, result.output
    return {each["name"]: each for each in json.loads(result.stdout)["motors"]}


def run_words(*words: object) -> str:
    result = CliRunner().invoke(cli, [*map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def reach(path: Path, **options: Any) -> Any:
    drives = {"stiffness": 2000.0, "damping": 100.0, "target": {"joint_2": 1.5}}
    return artsim.simulate(artsim.load(ROBOTS / "arm7.urdf"), steps=300, output=path, **drives, **options)


@pytest.mark.small
def test_loads_are_those_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "reach.h5"
    with reach(path) as run:
        force = run["tau_applied"] + run["tau_drive"]
        speed = run["qvel"]
        names = run.labels.dof
    found = told(path)
    efforts = {"joint_1": 300.0, "joint_2": 300.0, "joint_3": 180.0, "joint_6": 60.0}
    for k, name in enumerate(names):
        load = found[name]
        assert load["peak"] == np.abs(force[:, k]).max()
        assert load["rms"] == pytest.approx(np.sqrt((force[:, k] ** 2).mean()), rel=1e-12, abs=1e-30)
        assert load["speed"] == np.abs(speed[:, k]).max()
        assert load["power"] == pytest.approx(max((force[:, k] * speed[:, k]).max(), 0.0), abs=1e-30)
        if name in efforts:
            assert load["limit"] == efforts[name]
            at = np.count_nonzero(np.abs(force[:, k]) >= efforts[name] * (1 - 1e-9)) * 0.002
            assert load["at_limit"] == pytest.approx(at, abs=1e-12)
    assert found["joint_2"]["at_limit"] > 0.1
    assert found["joint_2"]["share"] == 1.0
    assert found["joint_2"]["speed_limit"] == 1.7
    fast = np.count_nonzero(np.abs(speed[:, 1]) >= 1.7 * (1 - 1e-9)) * 0.002
    assert found["joint_2"]["at_speed_limit"] == pytest.approx(fast)


@pytest.mark.small
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("arm7.urdf", {"stiffness": 800.0, "damping": 40.0, "target": {"joint_4": -2.0}, "torque": {"joint_7": 3.0}}),
        ("quadruped.urdf", {"stiffness": 60.0, "damping": 2.0, "ground": True, "every": 3}),
        ("two_finger_gripper.urdf", {"torque": {"left_driver_joint": 2.0, "right_driver_joint": -400.0}}),
    ],
)
def test_the_table_is_that_of_numpy_on_other_runs(tmp_path: Path, model: str, options: dict[str, Any]) -> None:
    """Every number of `--csv` and `--json` from the file's rows, with limits from the robot file."""
    path, robot = tmp_path / "a.h5", artsim.load(ROBOTS / model)
    with artsim.simulate(robot, steps=240, output=path, **options) as run:
        force, speed, names = run["tau_applied"] + run["tau_drive"], run["qvel"], [*run.labels.dof]
        row_time = run.dt * run.every
    assert np.abs(force).max() > 0
    found = told(path)
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(run_words("report", path, "--csv")))}
    assert [*rows] == [*found]
    bounded = {k for k in range(len(names)) if np.isfinite(robot.model.effort[k])}
    assert {names.index(name) for name in found if name in names} == bounded | {*np.flatnonzero(force.any(axis=0))}
    for name, load in found.items():
        if name not in names:
            continue  # an actuator
        k = names.index(name)
        effort, fastest = robot.model.effort[k], robot.model.velocity_limit[k]
        wanted = {
            "peak": np.abs(force[:, k]).max(),
            "rms": np.linalg.norm(force[:, k]) / np.sqrt(len(force)),
            "limit": effort if np.isfinite(effort) else None,
            "share": np.abs(force[:, k]).max() / effort,
            "at_limit": np.count_nonzero(np.abs(force[:, k]) >= effort * (1 - 1e-9)) * row_time,
            "speed": np.abs(speed[:, k]).max(),
            "speed_limit": fastest if np.isfinite(fastest) else None,
            "speed_share": np.abs(speed[:, k]).max() / fastest,
            "at_speed_limit": np.count_nonzero(np.abs(speed[:, k]) >= fastest * (1 - 1e-9)) * row_time,
            "power": max((force[:, k] * speed[:, k]).max(), 0.0),
        }
        for entry, value in wanted.items():
            assert load[entry] == (value if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)), entry
            assert rows[name][entry] == ("" if value is None else str(load[entry])), entry


@pytest.mark.small
def test_the_summary_of_a_run_tells_of_motors_at_their_limit(tmp_path: Path) -> None:
    words = ["run", str(ROBOTS / "arm7.urdf"), "--stiffness", "2000", "--damping", "100", "--duration", "0.6"]
    hard = CliRunner().invoke(cli, [*words, "--target", "joint_2=1.5", "-o", str(tmp_path / "a.h5")])
    at_limit = told(tmp_path / "a.h5")["joint_2"]["at_limit"]
    assert f"motors at their largest force: joint_2 ({at_limit:.3g} s)" in hard.output
    easy = CliRunner().invoke(cli, [*words, "--target", "joint_2=0.01"])
    assert "largest force" not in easy.output
    found = json.loads(CliRunner().invoke(cli, [*words, "--target", "joint_2=1.5", "--json"]).stdout)
    assert found["at_effort"]["joint_2"] == pytest.approx(at_limit)


@pytest.mark.small
def test_a_lower_limit_of_the_drive_counts(tmp_path: Path) -> None:
    path = tmp_path / "reach.h5"
    reach(path, drive_limit={"joint_2": 50.0}).close()
    assert told(path)["joint_2"]["limit"] == 50.0
    assert told(path)["joint_2"]["peak"] == pytest.approx(50.0, rel=1e-12)


@pytest.mark.small
def test_actuators_stand_beside_their_range(tmp_path: Path) -> None:
    (tmp_path / "slide.xml").write_text(SLIDE)
    robot = artsim.load(tmp_path / "slide.xml")
    artsim.simulate(robot, steps=50, control={"push": 3.0}, output=tmp_path / "a.h5").close()
    found = told(tmp_path / "a.h5")
    assert found["push"]["limit"] == 5.0
    assert found["x"]["peak"] == pytest.approx(2.0 * found["push"]["peak"])  # by its gear
    assert found["x"]["power"] == pytest.approx(found["x"]["peak"] * found["x"]["speed"])


@pytest.mark.small
def test_of_a_rollout_all_samples_count(tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    record = ("qvel", "tau_drive", "tau_applied")
    path = tmp_path / "spread.h5"
    made = artsim.rollout(
        robot, samples=70, steps=20, spread=0.2, stiffness=500.0, damping=20.0, record=record, output=path
    )
    force = made["tau_drive"] + made["tau_applied"]
    made.close()
    found = told(path)
    assert found["joint_4"]["peak"] == np.abs(force[..., 3]).max()
    assert found["joint_4"]["rms"] == pytest.approx(np.sqrt((force[..., 3] ** 2).mean()), rel=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("packed", [True, False])
def test_the_summary_of_a_rollout_tells_of_motors_at_their_limit(tmp_path: Path, packed: bool) -> None:
    path, solver = tmp_path / "hard.h5", () if packed else ("--solver", "pgs")
    words = ["rollout", str(ROBOTS / "arm7.urdf"), "--stiffness", "2000", "--damping", "100", "--duration", "0.3"]
    words += ["--samples", "20", "--spread", "0.2", "--target", "joint_2=0.25", *solver]
    recorded = ["--record", "+tau_drive,tau_applied", "-o", str(path)]
    summary = CliRunner().invoke(cli, [*words, *recorded])
    assert summary.exit_code == 0, summary.output
    with artsim.open(path) as made:
        reached = np.abs(made["tau_drive"] + made["tau_applied"])[..., 1] >= 300.0 * (1 - 1e-9)
    samples = np.count_nonzero(reached.any(axis=1))
    assert 0 < samples < 20
    seconds = reached.sum() * 0.002
    assert f"motors at their largest force: joint_2 ({seconds:.3g} s in {samples} samples)" in summary.stderr
    found = json.loads(CliRunner().invoke(cli, [*words, *recorded, "--force", "--json"]).stdout)
    assert found["at_effort"]["joint_2"] == pytest.approx(seconds)
    assert told(path)["joint_2"]["at_limit"] == pytest.approx(seconds)
    assert "largest force" not in CliRunner().invoke(cli, words).stderr  # their forces are not recorded
    assert json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)["at_effort"] is None


@pytest.mark.small
def test_a_drive_without_force_is_not_at_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "limp.h5"
    words = ["run", str(ROBOTS / "arm7.urdf"), "--stiffness", "2000", "--target", "joint_2=0.5", "--drive-limit"]
    limp = CliRunner().invoke(cli, [*words, "joint_2=0", "--steps", "20", "-o", str(path)])
    assert limp.exit_code == 0, limp.output
    assert "joint_2 (" not in limp.stderr
    load = told(path)["joint_2"]
    assert (load["limit"], load["at_limit"], load["share"]) == (0.0, 0.0, 0.0)
    assert "joint_2 for" not in CliRunner().invoke(cli, ["report", str(path)]).stdout


@pytest.mark.small
def test_tables_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "reach.h5"
    reach(path).close()
    text = CliRunner().invoke(cli, ["report", str(path)]).stdout
    assert "100 % of 300" in text
    assert "at their largest force: joint_2 for" in text
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(cli, ["report", str(path), "--csv"]).stdout)))
    assert [row["name"] for row in rows] == [f"joint_{k}" for k in range(1, 8)]
    assert float(rows[1]["peak"]) == told(path)["joint_2"]["peak"]
    few = tmp_path / "few.h5"
    reach(few, record=("qpos",)).close()
    refused = CliRunner().invoke(cli, ["report", str(few)])
    assert refused.exit_code == 2
    assert "holds no tau_applied, tau_drive and qvel" in refused.output
