"""Noise of sensors (`noise` of MJCF with --sensor-noise): its distribution, and on what its bytes depend."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run

DEVIATION = {"gyro": 0.2, "accelerometer": 0.5, "framequat": 0.1, "touch": 3.0, "jointpos": 0.0}
TEXT = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="9 9 .1"/>
<body name="box" pos="0 0 .1"><freejoint name="root"/><geom type="box" size=".1 .1 .1" mass="1"/>
<site name="s" type="box" size=".2 .2 .2"/>
<body pos="0 0 .5"><joint name="a" axis="0 0 1"/><geom size=".05" mass=".1" contype="0" conaffinity="0"/></body></body>
</worldbody><sensor><gyro site="s" noise="0.2"/><accelerometer site="s" noise="0.5"/>
<framequat objtype="site" objname="s" noise="0.1"/><touch site="s" noise="3"/><jointpos joint="a"/></sensor></mujoco>"""
ENDS = np.cumsum([0, 3, 3, 4, 1, 1])
PLACES = dict(zip(DEVIATION, map(slice, ENDS[:-1], ENDS[1:]), strict=True))
OPTIONS: dict[str, Any] = {"record": ["sensors"], "seed": 7}


@pytest.fixture
def robot(tmp_path: Path) -> artsim.Robot:
    path = tmp_path / "box.xml"
    path.write_text(TEXT)
    return artsim.load(path)


def seen(robot: artsim.Robot, steps: int, **options: Any) -> np.ndarray[Any, Any]:
    return np.array(artsim.simulate(robot, steps=steps, **{**OPTIONS, "sensor_noise": True, **options})["sensors"])


def test_noise_is_normal_and_independent(robot: artsim.Robot) -> None:
    """Of zero mean and the file's standard deviation, by steps and outputs; quaternions keep their length, forces are
    not negative, and what has no noise stays as it is."""
    steps = 3000
    noisy, plain = seen(robot, steps), seen(robot, steps, sensor_noise=False)
    off = noisy - plain
    for kind in ("gyro", "accelerometer"):
        drawn = off[:, PLACES[kind]] / DEVIATION[kind]
        assert np.abs(drawn.mean(axis=0)).max() < 5 / np.sqrt(steps)
        assert np.abs(np.cov(drawn.T) - np.eye(3)).max() < 5 * np.sqrt(2 / steps)
        assert abs((drawn**4).mean() - 3.0) < 5 * np.sqrt(96 / drawn.size)
        assert np.abs((drawn[1:] * drawn[:-1]).mean(axis=0)).max() < 5 / np.sqrt(steps)
        assert (np.abs(drawn) > 1.0).mean() == pytest.approx(0.3173, abs=5 * np.sqrt(0.22 / drawn.size))
    turned = noisy[:, PLACES["framequat"]]
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0, atol=1e-14)
    assert turned[:, 1:].std() == pytest.approx(0.1, rel=0.1)
    assert noisy[:, PLACES["touch"]].min() >= 0.0
    assert off[:, PLACES["touch"]].std() == pytest.approx(3.0, rel=0.1)
    assert not off[:, PLACES["jointpos"]].any()


@pytest.mark.small
def test_noise_depends_on_seed_step_and_robot_alone(robot: artsim.Robot) -> None:
    """Not on the recorded rows, nor on threads or neighbours; robots and seeds have noise of their own."""
    all_rows = seen(robot, 60)
    assert all_rows.tobytes() == seen(robot, 60).tobytes()
    assert all_rows[::7].tobytes() == seen(robot, 60, every=7).tobytes()
    assert (all_rows[:, :6] != seen(robot, 60, seed=8)[:, :6]).all()
    options: dict[str, Any] = {**OPTIONS, "steps": 20, "samples": 19, "sensor_noise": True}
    rolled = [artsim.rollout(robot, threads=threads, **options)["sensors"] for threads in (1, 2)]
    assert rolled[0].tobytes() == rolled[1].tobytes()
    np.testing.assert_allclose(rolled[0][0], all_rows[:20], atol=1e-9)
    looked_at = artsim.rollout(robot, threads=1, until="time > 100", **options)["sensors"]
    assert looked_at.tobytes() == rolled[0].tobytes()
    assert len(np.unique(rolled[0][:, 3, 0])) == 19
    quiet = artsim.rollout(robot, threads=1, **{**options, "sensor_noise": False})["sensors"]
    assert np.abs((rolled[0] - quiet)[:, :, :3]).std() > 0.05


@pytest.mark.small
def test_noise_of_robots_that_persist(robot: artsim.Robot) -> None:
    """Each has its own; begun anew it has other noise, and from a snapshot the same."""
    options: dict[str, Any] = {**OPTIONS, "sensor_noise": True}
    boxes = artsim.VectorSimulation(robot, 9, **options)
    boxes.step(steps=3)
    first = boxes["sensors"].copy()
    np.testing.assert_allclose(first[0], seen(robot, 3)[2], atol=1e-9)
    assert len(np.unique(first[:, 0])) == 9
    boxes.reset([4])
    boxes.step(steps=3)
    again = boxes["sensors"].copy()
    assert (again[4, :6] != first[4, :6]).all()
    kept = boxes.save()
    boxes.step(steps=3)
    later = boxes["sensors"].copy()
    boxes.restore(kept)
    boxes.step(steps=3)
    assert boxes["sensors"].tobytes() == later.tobytes()


@pytest.mark.small
def test_noise_that_changes_nothing_is_told() -> None:
    for text, record, told in (
        (TEXT, ("qpos",), "sensors are not recorded"),
        (TEXT.replace("noise", "user"), ("sensors",), "no sensor has noise"),
    ):
        config = RunConfig(steps=1, record=record, sensor_noise=True)
        assert any(told in note for note in plan_run(load_text(text, name="m"), config).notes)
    config = RunConfig(steps=1, record=("sensors",), sensor_noise=True)
    assert not plan_run(load_text(TEXT, name="m"), config).notes


def mixed(word: int) -> int:
    """lowbias32 in unbounded integers."""
    word = ((word ^ (word >> 16)) * 0x7FEB352D) % 2**32
    word = ((word ^ (word >> 15)) * 0x846CA68B) % 2**32
    return word ^ (word >> 16)


def normal(*key: int) -> float:
    """The number of a seed, a robot, a step and an output."""
    other = 0x9E3779B9
    seed, robot, step, output = (value % 2**64 for value in key)
    found = mixed(seed % 2**32 ^ other)
    for word in (seed >> 32, robot, robot >> 32, step, step >> 32, output):
        found = mixed(found ^ mixed(word % 2**32 ^ other))
    radius = math.sqrt(-2.0 * math.log((found + 0.5) / 2**32))
    return radius * math.cos(2.0 * math.pi * (mixed(found ^ other) / 2**32))


@pytest.mark.small
@pytest.mark.parametrize("seed", [7, -(2**63), 2**63 - 1])
def test_numbers_are_those_of_the_hash(robot: artsim.Robot, seed: int) -> None:
    """Compiled or not, for seeds of 64 bits."""
    off = seen(robot, 5, seed=seed) - seen(robot, 5, seed=seed, sensor_noise=False)
    wanted = [[0.2 * normal(seed, 0, step, k) for k in range(3)] for step in range(5)]
    np.testing.assert_allclose(off[:, :3], wanted, atol=1e-12)
