"""Packs of robots that bounce: no step is taken alone, every lane is the single run and depends on no other lane.

Truth besides the single run: heights go down by e², balls exchange speeds, elastic impacts keep energy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from tests.contact.test_impacts import RADIUS, in_sequence, row_of_balls
from tests.runs.test_packed_rows import LANES, SAMPLES

STEPS = 120
WORLD = """<mujoco><compiler angle="degree"/><option timestep="0.002"/><worldbody><geom type="plane" size="3 3 1"/>{}
</worldbody></mujoco>"""
BALL = '<body pos="{} 0 {}"><freejoint/><geom size=".05" mass="{}"/></body>'
MODELS = {
    "ball": WORLD.format(BALL.format(0, 0.07, 1)),
    "box": WORLD.format(
        '<body pos="0 0 .09" euler="20 10 0"><freejoint/><geom type="box" size=".05 .04 .03" mass="1"/></body>'
    ),
    "pile": WORLD.format("".join(BALL.format(0.004 * k, 0.052 + 0.101 * k, 1 - 0.2 * k) for k in range(3))),
    "arm": WORLD.format(
        '<body pos="0 0 .12"><joint name="a" axis="0 1 0" range="-60 60"/>'
        '<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6"/>'
        '<body pos=".3 0 0"><joint name="b" axis="0 1 0" range="-20 20"/>'
        '<geom type="capsule" fromto=".1 0 0 .3 0 0" size=".02" mass=".4"/></body></body>'
    ),
}


def load(text: str, folder: Path) -> artsim.Robot:
    path = folder / "model.xml"
    path.write_text(text)
    return artsim.load(path)


def drawn(robot: artsim.Robot, samples: int, **options: Any) -> MemoryRollout:
    """A rollout whose samples have velocities of their own."""
    made = artsim.rollout(robot, samples=samples, **{"seed": 2, "velocity_spread": 0.3, **options})
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    return made


@pytest.mark.small
@pytest.mark.parametrize("e", [0.5, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_every_lane_is_the_single_run(name: str, e: float, tmp_path: Path) -> None:
    robot = load(MODELS[name], tmp_path)
    options: dict[str, Any] = {"steps": STEPS, "restitution": e}
    made = drawn(robot, SAMPLES, **options)
    assert made.outcome.solved_alone == 0
    dead = drawn(robot, SAMPLES, steps=STEPS)
    assert (np.abs(made["qpos"] - dead["qpos"]).max(axis=(1, 2)) > 1e-3).all()  # every lane bounced
    for k in LANES:
        one = artsim.simulate(robot, v0=made["qvel"][k, 0], record=("qpos",), **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("name", "seed"), [("box", 2), ("pile", 2), ("pile", 16), ("pile", 31)])
def test_bytes_depend_on_nobody_else(name: str, seed: int, tmp_path: Path) -> None:
    """Also where a lane meets contacts late that others of its pack have met before."""
    robot = load(MODELS[name], tmp_path)
    options: dict[str, Any] = {"steps": STEPS, "restitution": 0.8, "seed": seed}
    whole = drawn(robot, 16, threads=1, **options)
    for samples, threads in ((16, 2), (3, 1), (11, 1)):
        other = drawn(robot, samples, threads=threads, **options)
        for variable in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[variable][:samples].tobytes() == other[variable].tobytes(), (variable, samples, threads)


@pytest.mark.small
@pytest.mark.parametrize("e", [0.6, 1.0])
def test_heights_go_down_by_the_square_of_restitution(e: float, tmp_path: Path) -> None:
    """Each lane falls from a height of its own; a height is that above where the ball touches."""
    ball = '<body pos="0 0 .05"><joint name="z" type="slide" axis="0 0 1"/><geom size=".05" mass="1"/></body>'
    robot = load(WORLD.format(ball), tmp_path)
    made = drawn(robot, SAMPLES, steps=2000, dt=0.0005, restitution=e, q0={"z": 0.3}, velocity_spread=1.0)
    assert made.outcome.solved_alone == 0
    for height, speed in zip(made["qpos"][:, :, 0], made["qvel"][:, :, 0], strict=True):
        highest = height + speed**2 / (2 * 9.81) - 0.5 * 0.0005 * speed  # where it turns round
        struck = np.flatnonzero((speed[1:] > 0) & (speed[:-1] < -0.1))  # slower ones come to rest
        assert len(struck) >= 1
        for n in struck:
            assert highest[n + 1] == pytest.approx(e * e * highest[n], abs=0.25 * 0.0005 * abs(speed[n]))


@pytest.mark.small
def test_rows_of_balls_pass_on_their_speeds(tmp_path: Path) -> None:
    """Equal elastic balls exchange speeds, whichever meet first."""
    masses, gap = [0.1] * 5, 0.05
    robot = load(row_of_balls(masses, gap), tmp_path)
    options: dict[str, Any] = {"restitution": 1.0, "steps": 1200, "dt": 0.0005, "v0": {"x0": 1.0}}
    made = drawn(robot, SAMPLES, velocity_spread=0.5, **options)
    assert made.outcome.solved_alone == 0
    start = np.array([0.0, *(2 * RADIUS + 0.1 + np.arange(4) * (2 * RADIUS + gap))])
    for k in range(SAMPLES):
        truth = in_sequence(masses, start, made["qvel"][k, 0].copy(), 1.0, 0.6)
        assert np.abs(truth - made["qvel"][k, 0]).max() > 0.1
        np.testing.assert_allclose(made["final_qvel"][k], truth, atol=1e-9)


@pytest.mark.small
def test_elastic_impacts_keep_energy_and_momentum(tmp_path: Path) -> None:
    """Five frictionless balls in flight, driven together at speeds that differ from lane to lane."""
    balls = "".join(
        f'<body pos="{0.15 * k} {0.03 * (k % 2)} 0"><freejoint name="b{k}"/>'
        f'<geom size=".05" mass="{0.3 + 0.1 * k}" condim="1"/></body>'
        for k in range(5)
    )
    robot = load(f'<mujoco><option gravity="0 0 0"/><worldbody>{balls}</worldbody></mujoco>', tmp_path)
    v0 = {f"b{k}.vx": speed for k, speed in enumerate((1.0, 0.4, 0.0, -0.5, -1.2))}
    made = drawn(robot, SAMPLES, v0=v0, restitution=1.0, steps=300, dt=0.002, velocity_spread=0.1)
    assert made.outcome.solved_alone == 0
    mass = np.repeat(0.3 + 0.1 * np.arange(5), 3)
    linear = made["qvel"].reshape(SAMPLES, 300, 5, 6)[..., :3].reshape(SAMPLES, 300, 15)
    energy, momentum = (linear**2 * mass).sum(axis=2), (linear * mass).reshape(SAMPLES, 300, 5, 3).sum(axis=2)
    np.testing.assert_allclose(energy, np.broadcast_to(energy[:, :1], energy.shape), rtol=1e-9)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[:, :1], momentum.shape), atol=1e-12)
    assert (np.abs(linear[:, -1] - linear[:, 0]).max(axis=1) > 0.1).all()
