"""Inputs and starts of samples by every way in which they are given: the same samples, or an error with the shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.controls import Controls
from tests.conftest import ROOT

pytestmark = pytest.mark.small
ARM, FINGER = ROOT / "robots" / "arm7.urdf", ROOT / "robots" / "finger.urdf"
SLIDER = """<mujoco><worldbody><body name="cart"><joint name="x" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></worldbody>
<actuator><motor name="push" joint="x"/></actuator></mujoco>"""


def rolled(robot: Any, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **options)
    assert isinstance(made, MemoryRollout)
    return made


@pytest.fixture
def slider(tmp_path: Path) -> Path:
    path = tmp_path / "slider.xml"
    path.write_text(SLIDER)
    return path


def test_arrays_hold_equally_long_and_move_each_sample_by_its_own(slider: Path) -> None:
    """A cart of 2 kg under a force: v = Σ f h / m."""
    force = np.random.default_rng(1).normal(size=(5, 3, 1))
    made = rolled(artsim.load(slider), samples=5, steps=12, control=force, gravity=(0, 0, 0))
    np.testing.assert_allclose(made["final_qvel"], 4 * 0.002 * force.sum(axis=1) / 2, rtol=1e-12)
    for same in ({"control": list(force)}, {"controls": force}, {"controls": {"control": force}}):
        again = rolled(artsim.load(slider), samples=5, steps=12, gravity=(0, 0, 0), **same)
        assert again["qvel"].tobytes() == made["qvel"].tobytes()


def test_every_way_gives_the_same_samples(tmp_path: Path) -> None:
    """Arrays, .npz with and without times, .npy, .csv for each sample, and Controls; by Python and by the command."""
    torque = np.random.default_rng(2).normal(size=(3, 4, 7))
    robot = artsim.load(ARM)
    np.savez(tmp_path / "timed.npz", time=np.arange(4) * 0.004, torque=torque)
    np.savez(tmp_path / "bare.npz", torque=torque)
    np.save(tmp_path / "action.npy", torque)
    head = ",".join(["time", *(f"{name}.torque" for name in robot.dofs)])
    for k, rows in enumerate(torque):
        lines = [",".join(map(repr, [0.004 * n, *row.tolist()])) for n, row in enumerate(rows)]
        (tmp_path / f"sample-{9 + k}.csv").write_text("\n".join([head, *lines]))  # 10 comes after 9
    files = [tmp_path / f"sample-{9 + k}.csv" for k in range(3)]
    start, zero = 2 * np.arange(4), np.zeros((4, 7))
    ways: dict[str, dict[str, Any]] = {
        "array": {"torque": torque},
        "timed": {"controls": tmp_path / "timed.npz"},
        "bare": {"controls": str(tmp_path / "bare.npz")},
        "npy": {"controls": tmp_path / "action.npy"},
        "csv": {"controls": files},
        "Controls": {"controls": [Controls(start, rows, zero, zero) for rows in torque]},
    }
    made = {name: rolled(robot, samples=3, steps=8, **way) for name, way in ways.items()}
    for one in made.values():
        assert one["qpos"].tobytes() == made["array"]["qpos"].tobytes()
    for word in ("timed.npz", "bare.npz", "action.npy", "sample-*.csv"):
        words = (str(ARM), "--samples", "3", "--steps", "8", "--control", str(tmp_path / word))
        done = CliRunner().invoke(cli, ["rollout", *words, "-o", str(tmp_path / "out.h5"), "--force"])
        assert done.exit_code == 0, done.output
        with artsim.open(tmp_path / "out.h5") as stored:
            assert stored["qpos"].tobytes() == made["array"]["qpos"].tobytes()
        assert CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / "out.h5")]).exit_code == 0


def test_wrenches_of_each_sample_push_its_links(tmp_path: Path) -> None:
    """A cart of 2 kg, pushed along x by other forces in each sample."""
    box = artsim.load(ROOT / "robots" / "floating_box.urdf")
    wrench = np.zeros((3, 2, 1, 6))
    wrench[:, 0, 0, 0] = 1.0, 2.0, -3.0
    np.savez(tmp_path / "push.npz", time=[0.0, 0.02], wrench=wrench, links=["box"])
    made = rolled(box, samples=3, steps=20, gravity=(0, 0, 0), controls=tmp_path / "push.npz")
    mass = float(box.model.link_mass.sum())
    np.testing.assert_allclose(made["final_qvel"][:, 0], np.array([1, 2, -3]) * 0.02 / mass, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"control": np.zeros((4, 2, 1))},
            r"control has shape \(4, 2, 1\), want \(3, rows, 1\): samples, rows, actuat",
        ),
        ({"torque": np.zeros((3, 2))}, r"torque has shape \(3, 2\), want \(3, rows, 1\): samples, rows, degrees of"),
        ({"controls": np.zeros((3, 5, 1))}, "control has 5 rows for 8 steps: want one per step, or a number that div"),
        ({"controls": {"contrl": 0}}, "controls: 'contrl' is not known; did you mean 'control'"),
        ({"control": np.full((3, 1, 1), np.nan)}, "control of sample 0, row 0, 'push': nan is not a finite number"),
        ({"controls": np.zeros((3, 1, 1)), "torque": np.zeros((3, 1, 1))}, "controls are given: give one of them"),
        ({"controls": ["a.csv", "b.csv"]}, "there are 2 files for 3 samples; want one, or one each"),
    ],
)
def test_errors_name_the_shape_that_is_wanted(given: dict[str, Any], told: str, slider: Path) -> None:
    with pytest.raises(UsageError, match=told):
        artsim.rollout(slider, samples=3, steps=8, **given)


# ------------------------------------------------------------------ starts


def test_starts_from_arrays_files_runs_and_rollouts(tmp_path: Path) -> None:
    """The same states by every way; a run's rows and a rollout's final states go on where these were."""
    robot = artsim.load(ARM)
    draw = np.random.default_rng(3)
    qpos, qvel = draw.uniform(-1, 1, (4, 7)), draw.uniform(-1, 1, (4, 7))
    np.savez(tmp_path / "both.npz", qpos=qpos, qvel=qvel)
    np.save(tmp_path / "places.npy", qpos)
    made = rolled(robot, samples=4, steps=5, start={"qpos": qpos, "qvel": qvel})
    np.testing.assert_array_equal(made["qpos"][:, 0], qpos)
    np.testing.assert_array_equal(made["qvel"][:, 0], qvel)
    again = rolled(robot, samples=4, steps=5, start=tmp_path / "both.npz")
    assert again["qpos"].tobytes() == made["qpos"].tobytes()
    still = rolled(robot, samples=4, steps=5, start=str(tmp_path / "places.npy"))
    assert still["qpos"].tobytes() == rolled(robot, samples=4, steps=5, start=qpos)["qpos"].tobytes()
    assert not still["qvel"][:, 0].any()
    words = (str(ARM), "--samples", "4", "--steps", "5")
    for start, name in ((tmp_path / "both.npz", "first.h5"), (tmp_path / "first.h5", "second.h5")):
        done = CliRunner().invoke(cli, ["rollout", *words, "--start", str(start), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / name)]).exit_code == 0
    whole = rolled(robot, samples=4, steps=10, start={"qpos": qpos, "qvel": qvel})
    with artsim.open(tmp_path / "first.h5") as first, artsim.open(tmp_path / "second.h5") as second:
        assert first["qpos"].tobytes() == made["qpos"].tobytes()
        np.testing.assert_array_equal(second["qpos"][:, 0], first["final_qpos"])
        np.testing.assert_allclose(second["final_qpos"], whole["final_qpos"], rtol=0, atol=1e-5)
    artsim.simulate(robot, steps=4, output=tmp_path / "run.h5", v0=np.ones(7)).close()  # type: ignore[union-attr]
    rows = rolled(robot, samples=4, steps=1, start=tmp_path / "run.h5")
    with artsim.open(tmp_path / "run.h5") as run:
        np.testing.assert_array_equal(rows["qvel"][:, 0], run["qvel"])
    spread = rolled(robot, samples=4, steps=1, start=qpos, spread=0.1)["qpos"][:, 0] - qpos
    assert 0.05 < np.abs(spread).max() <= 0.1


def test_starts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "three.npy", np.zeros((3, 7)))
    for start, told in (
        (np.zeros((4, 6)), r"start qpos has shape \(4, 6\), want \(4, 7\), or \(7,\) for all"),
        ({"qpoz": 0}, "start: 'qpoz' is not known; did you mean 'qpos'"),
        (tmp_path / "three.npy", "has 3 rows for 4 samples; want one for each, or one for all"),
        ("unifrm-limits", "is not known; did you mean 'uniform-limits'"),
    ):
        with pytest.raises(UsageError, match=told):
            artsim.rollout(ARM, samples=4, steps=1, start=start)
    done = CliRunner().invoke(cli, ["rollout", str(ARM), "--samples", "2", "--start", "normel"])
    assert done.exit_code == 2 and "did you mean 'normal'" in done.output


# ------------------------------------------------------------------ properties


def test_gravity_and_centres_of_samples_are_the_same_by_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn and given; in packs, in single runs and in a VectorSimulation; from files."""
    robot = artsim.load(FINGER)
    ranges = {"gravity": (0.5, 1.5), "centre": (-0.02, 0.02), "mass": (0.5, 2.0)}
    options: dict[str, Any] = {"samples": 3, "steps": 20, "velocity_spread": 1.0}
    made = rolled(robot, randomise=ranges, **options)
    assert np.ptp(made["gravity_vector"][:, 2]) > 1 and not made["gravity_vector"][:, :2].any()
    assert made["centre_offset"].shape == (3, len(robot.links), 3)
    assert 0.01 < np.abs(made["centre_offset"]).max() <= 0.02
    own = {"gravity": made["gravity_vector"], "centre": made["centre_offset"], "mass": made["mass_factor"]}
    again = rolled(robot, randomise=own, **options)
    for name in made.variables:
        assert again[name].tobytes() == made[name].tobytes(), name
    with monkeypatch.context() as patch:
        patch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "a test")
        single = rolled(artsim.load(FINGER), randomise=own, **options)
    np.testing.assert_allclose(single["qpos"], made["qpos"], rtol=0, atol=1e-11)
    arms = artsim.VectorSimulation(robot, 3)
    arms.vary(**own)
    arms.reset(qpos=made["qpos"][:, 0], qvel=made["qvel"][:, 0])
    arms.step(steps=20)
    assert arms.qpos.tobytes() == made["final_qpos"].tobytes()
    np.savez(tmp_path / "own.npz", **own)
    head = [f"mass.{link}" for link in robot.links] + [f"gravity.{axis}" for axis in "xyz"]
    head += [f"centre.{link}.{axis}" for link in robot.links for axis in "xyz"]
    rows = np.concatenate([own["mass"], own["gravity"], own["centre"].reshape(3, -1)], axis=1)
    lines = [",".join(map(repr, row.tolist())) for row in rows]
    (tmp_path / "own.csv").write_text("\n".join([",".join(head), *lines]))
    for name in ("own.npz", "own.csv"):
        words = (str(FINGER), "--samples", "3", "--steps", "20", "--velocity-spread", "1", "-o", str(tmp_path / "a.h5"))
        done = CliRunner().invoke(cli, ["rollout", *words, "--randomise", str(tmp_path / name), "--force"])
        assert done.exit_code == 0, done.output
        with artsim.open(tmp_path / "a.h5") as stored:
            assert stored["qpos"].tobytes() == made["qpos"].tobytes()
        assert CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / "a.h5")]).exit_code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mass": np.ones((2, 9))}, r"mass has shape \(2, 9\), want \(3, 9\), or \(9,\) for all"),
        ({"gravity": (1.0, 0.5)}, r"gravity=1:0.5: want finite numbers LOW:HIGH"),
        ({"mas": (1.0, 2.0)}, "'mas' is not known; did you mean 'mass'"),
        ({"friction": (1.0, 2.0)}, "friction is that of contacts, nothing may touch"),
    ],
)
def test_properties_that_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        artsim.rollout(ARM, samples=3, steps=1, randomise=given)
