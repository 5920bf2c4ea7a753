"""Samples of rollouts as runs: shown, plotted, exported; their rows are those of the rollout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.rollouts.samples import opened_runs
from artsim.io.viewer.motion import Motion
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT

ARM, QUADRUPED = str(ROOT / "robots" / "arm7.urdf"), str(ROOT / "robots" / "quadruped.urdf")


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def rolled(tmp_path: Path) -> Path:
    path = tmp_path / "r.h5"
    settings = {"spread": 0.1, "every": 5, "dt": 0.004, "torque": {"joint_2": 3.0}}
    artsim.rollout(ARM, samples=4, steps=40, output=path, **settings).close()  # type: ignore[arg-type]
    return path


def test_a_sample_is_a_run_with_its_rows(rolled: Path) -> None:
    with artsim.open(rolled) as rollout, opened_runs([rolled], [2, 0], load_stored) as (second, first):
        for run, sample in ((second, 2), (first, 0)):
            np.testing.assert_array_equal(run["qpos"], rollout["qpos"][sample])
            np.testing.assert_array_equal(run["qvel"], rollout["qvel"][sample])
            np.testing.assert_array_equal(run.time, rollout.time)
            assert (run.dt, run.every, run.state, run.path.name) == (0.004, 5, "complete", f"r-sample-{sample}.h5")
            assert run.provenance["sample"] == sample
        robot = load_stored(second.model_text, "arm7", RunConfig.from_mapping(second.config))
        poses = Motion(second, robot).poses(3)
        want = artsim.compute(ARM, rollout["qpos"][2, 3], quantities=["link_position"])["link_position"]
        np.testing.assert_allclose(poses.positions, want, atol=1e-12)
        folder = second.path.parent
    assert not folder.exists()


def test_samples_of_contacts_and_of_single_inputs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, time=np.arange(3) * 0.002, torque=rng.normal(size=(3, 3, 12)), names=artsim.load(QUADRUPED).dofs)
    path = tmp_path / "q.h5"
    settings = {"ground": True, "on_ground": 0.0, "controls": inputs}
    robot = artsim.load(QUADRUPED, base="floating")
    artsim.rollout(robot, samples=3, steps=10, output=path, **settings).close()  # type: ignore[arg-type]
    with artsim.open(path) as rollout, opened_runs([path], [1], load_stored) as (run,):
        np.testing.assert_array_equal(run["qpos"], rollout["qpos"][1])
        np.testing.assert_array_equal(run.controls.torque, rollout.controls[1].torque)


def test_samples_are_plotted_and_exported(rolled: Path, tmp_path: Path) -> None:
    figure, table, page = tmp_path / "r.png", tmp_path / "r.csv", tmp_path / "r.html"
    assert invoke("plot", rolled, "qpos", "--sample", 1, "--sample", 3, "-o", figure).exit_code == 0
    assert figure.stat().st_size > 10_000
    result = invoke("export", rolled, "--sample", 3, "--csv", table, "--html", page)
    assert result.exit_code == 0, result.output
    with artsim.open(rolled) as rollout:
        numbers = np.loadtxt(table, delimiter=",", skiprows=1)
        np.testing.assert_array_equal(numbers[:, 1:8], rollout["qpos"][3])
    assert page.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["plot", "r.h5"], "is a rollout of 4 samples; --sample K takes one, from 0"),
        (["replay", "r.h5"], "is a rollout of 4 samples; --sample K takes one, from 0"),
        (["replay", "r.h5", "--sample", "4"], "has no sample 4; there are 4, from 0"),
        (["replay", "r.h5", "--sample", "1", "--verify"], "--verify takes whole files; leave --sample out"),
        (["export", "r.h5", "--csv", "x.csv", "--sample", "1", "--sample", "2"], "--sample: one for each export"),
        (["plot", "run.h5", "--sample", "0"], "is a run; --sample is for outputs of `artsim rollout`"),
        (["replay", "b.h5"], "is an output of `artsim batch`, whose rows are no motion"),
    ],
)
def test_what_is_no_sample(words: list[str], told: str, rolled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rolled.parent)
    artsim.simulate(ARM, steps=2, output="run.h5").close()
    invoke("batch", ARM, "--samples", 2, "--compute", "gravity", "-o", "b.h5")
    result = invoke(*words)
    assert result.exit_code == 2
    assert told in result.output


def test_a_sample_that_stopped_early_ends_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    settings = {"torque": {"joint_7": 1e300}, "steps": 20, "check": False}
    artsim.rollout(ARM, samples=2, output=path, **settings).close()  # type: ignore[arg-type]
    with artsim.open(path) as rollout:
        valid = int(rollout["n_valid"][1])
        assert valid < 20
        if not valid:
            return
        with opened_runs([path], [1], load_stored) as (run,):
            assert run.n_valid == valid and run.state == "stopped"


def test_old_outputs_say_what_they_lack(rolled: Path) -> None:
    with artsim.open(rolled) as rollout:
        assert json.loads(rollout.provenance["config"])["run"]["dt"] == 0.004
    with pytest.raises(UsageError, match="no sample"), opened_runs([rolled], [7], load_stored):
        pass
