"""`artsim run --converge`: errors by smaller steps, against closed forms and finer runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli

ARM = Path(artsim.__file__).parents[2] / "robots"
FALL = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0" stiffness="40"{limit}/><geom size=".1" mass="2.5"/></body></worldbody>
</mujoco>"""


def told(*words: str) -> dict[str, dict[str, float]]:
    result = CliRunner().invoke(cli, ["run", *words, "--converge", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return {"": found, **{each["dof"]: each for each in found["coordinates"]}}


@pytest.mark.small
def test_the_error_of_a_spring_is_that_of_the_closed_form(tmp_path: Path) -> None:
    path = tmp_path / "spring.xml"
    path.write_text(FALL.format(limit=""))
    found = told(str(path), "--q0", "x=0.3", "--duration", "2")
    run = artsim.simulate(artsim.load(path), q0={"x": 0.3}, steps=200)
    truth = 0.3 * np.cos(4.0 * run["time"])
    error = np.abs(run["qpos"][:, 0] - truth)
    assert found["x"]["largest"] == pytest.approx(error.max(), rel=0.1)
    assert found["x"]["order"] == pytest.approx(round(found["x"]["order"]), abs=0.15)
    assert found["x"]["spoiled"] is None
    assert found[""]["dt"] == [0.01, 0.005, 0.0025]


@pytest.mark.small
def test_errors_of_a_pendulum_are_those_beside_a_finer_run() -> None:
    path = ARM / "double_pendulum.urdf"
    words = ("--q0", "joint_1=1", "--duration", "0.5", "--dt", "0.004")
    found = told(str(path), *words)
    robot = artsim.load(path)
    coarse = artsim.simulate(robot, q0={"joint_1": 1.0}, steps=125, dt=0.004)
    fine = artsim.simulate(robot, q0={"joint_1": 1.0}, steps=125 * 16, dt=0.00025, every=16)
    error = np.abs(coarse["qpos"] - fine["qpos"]).max(axis=0)
    for k, name in enumerate(("joint_1", "joint_2")):
        assert found[name]["largest"] == pytest.approx(error[k], rel=0.25)
        assert found[name]["order"] > 0.8


@pytest.mark.small
def test_inputs_keep_their_times(tmp_path: Path) -> None:
    """A force of a file that acts from 0.1 s to 0.2 s gives the same momentum at all steps."""
    (tmp_path / "force.csv").write_text("time,x.torque\n0,0\n0.1,5\n0.2,0\n")
    path = tmp_path / "slide.xml"
    path.write_text(FALL.format(limit="").replace('stiffness="40"', ""))
    found = told(str(path), "--control", str(tmp_path / "force.csv"), "--duration", "0.4")
    assert found["x"]["largest"] < 2 * 5 / 2.5 * 0.1 * 0.01  # half a step late, at most
    assert found["x"]["order"] == pytest.approx(1.0, abs=0.05)


def test_what_spoils_the_order_is_named(tmp_path: Path) -> None:
    """Blows at a limit that depend on when the step meets it: the impact is told, by joint and time."""
    path = tmp_path / "blow.xml"
    path.write_text(FALL.format(limit=' range="-.2 9"'))
    words = ["run", str(path), "--q0", "x=0.3", "--duration", "3", "--converge"]
    assert [event["what"] for event in told(*words[1:-1])[""]["events"]][:1] == ["x meets a limit"]
    text = CliRunner().invoke(cli, words).stdout
    assert "errors of 300 steps of 10 ms, by runs with 5 and 2.5 ms" in text
    text = CliRunner().invoke(cli, ["run", str(ARM / "arm7.urdf"), "--duration", "0.8", "--converge"]).stdout
    assert "joint_2 does not converge from t = 0.6" in text
    assert "after joint_4 meets a limit at t = 0.4" in text


@pytest.mark.small
def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    path = str(ARM / "double_pendulum.urdf")
    for words, said in (
        (["-o", str(tmp_path / "x.h5")], "--converge writes no run"),
        (["--coordinates", "maximal"], "convergence is found in reduced coordinates"),
    ):
        result = CliRunner().invoke(cli, ["run", path, "--steps", "5", "--converge", *words])
        assert result.exit_code == 2
        assert said in result.output
