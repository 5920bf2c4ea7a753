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
