"""What rolls, spins or precesses keeps its height: round surfaces above a plane, by their support functions.

A thin disc that rolls about its centre at rest (Euler's disc), its axis tilted from the vertical, precesses at
Ω² = 4 g / (r sin tilt), turns at Ω sin tilt about the diameter through its lowest point and loses nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.loaders.load import load_text
from tests.simulation import Run, simulate

Array = np.ndarray[Any, Any]
GROUNDS = {
    "plane": '<geom type="plane" size="50 50 .1"/>',
    "box": '<geom type="box" size="9 9 1" pos="0 0 -1"/>',
}
NAMES = ("x", "y", "z", "qw", "qx", "qy", "qz")


def lowest(kind: str, size: tuple[float, ...], up: Array) -> Array:
    """How far below its middle a shape reaches; up: the vertical in its axes (n, 3)."""
    if kind == "cylinder":
        return size[0] * np.hypot(up[:, 0], up[:, 1]) + size[1] * np.abs(up[:, 2])
    return np.linalg.norm(up * size, axis=1)


def point_below(kind: str, size: tuple[float, ...], up: Array) -> Array:
    """That point, from its middle, in its axes."""
    if kind == "cylinder":
        rim = up[:2] / np.linalg.norm(up[:2])
        return -np.array([*(size[0] * rim), size[1] * np.sign(up[2])])
    scale = np.array(size)
    return -scale * scale * up / np.linalg.norm(scale * up)


def scene(kind: str, size: tuple[float, ...], ground: str) -> str:
    """A body of that shape, free above the ground."""
    return (
        f'<mujoco><compiler angle="radian"/><default><geom friction="1 0 0"/></default><worldbody>{GROUNDS[ground]}'
        f'<body name="b"><freejoint name="b"/><geom type="{kind}" size="{" ".join(map(str, size))}" mass="1"/></body>'
        "</worldbody></mujoco>"
    )


def rolled(
    kind: str, size: tuple[float, ...], turned: Array, spin: Array, dt: float, seconds: float, ground: str = "plane"
) -> tuple[Array, Array, Run]:
    """Gap of the lowest point [m] and energy [J] of a body that starts to roll without slip, spin in its own axes."""
    turn = Rotation.from_euler("xyz", turned)
    up = turn.as_matrix()[2]
    x, y, z, w = turn.as_quat()
    start = (0.0, 0.0, float(lowest(kind, size, up[None])[0]), w, x, y, z)
    speed = -turn.apply(np.cross(spin, point_below(kind, size, up)))
    run = simulate(
        load_text(scene(kind, size, ground), name="wheel.xml"),
        contacts=True,
        dt=dt,
        steps=round(seconds / dt),
        q0={f"b.{name}": float(value) for name, value in zip(NAMES, start, strict=True)},
        v0={
            f"b.{name}": float(v) for name, v in zip(("vx", "vy", "vz", "wx", "wy", "wz"), (*speed, *spin), strict=True)
        },
        record=("qpos", "qvel", "energy"),
    )
    q = run["qpos"]
    gap = q[:, 2] - lowest(kind, size, Rotation.from_quat(q[:, [4, 5, 6, 3]]).as_matrix()[:, 2])
    return gap, run["energy"].sum(axis=1), run


@pytest.mark.parametrize(("dt", "deep"), [(0.0005, 1e-6), (0.001, 1e-5), (0.002, 1e-4), (0.004, 1e-4)])
@pytest.mark.parametrize("radius", [0.04, 0.1])
def test_eulers_disc_precesses(radius: float, dt: float, deep: float) -> None:
    tilt = 0.5
    rate = np.sqrt(4 * 9.81 / (radius * np.sin(tilt)))
    spin = np.array([-rate * np.sin(tilt), 0, 0])
    gap, energy, run = rolled("cylinder", (radius, 1e-3 * radius), np.array([0, tilt, 0]), spin, dt, 1.0)
    assert -gap.min() <= deep
    assert gap.max() <= 1e-6
    assert np.abs(energy / energy[0] - 1).max() <= 0.01 * dt / 0.001
    axis = Rotation.from_quat(run["qpos"][:, [4, 5, 6, 3]]).as_matrix()[:, :, 2]
    assert np.abs(np.arccos(axis[:, 2]) - tilt).max() <= 0.02
    azimuth = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    assert abs(azimuth[-1] - azimuth[0]) == pytest.approx(rate * (1.0 - dt), rel=0.02)


ROLLING = {
    "leaning wheel": ("cylinder", (0.3, 0.02), (1.3, 0, 0), (0, 0, 12)),
    "small wheel": ("cylinder", (0.05, 0.01), (1.2, 0, 0), (0, 0, 40)),
    "drum": ("cylinder", (0.1, 0.15), (np.pi / 2, 0, 0), (0, 0, 10)),
    "ellipsoid": ("ellipsoid", (0.1, 0.06, 0.04), (0.2, 0.1, 0), (1, 8, 2)),
    "egg": ("ellipsoid", (0.05, 0.05, 0.08), (0.3, 0, 0), (0, 0, 30)),
}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("case", ROLLING)
def test_wheels_and_eggs_keep_height_and_energy(case: str, ground: str) -> None:
    kind, size, turned, spin = ROLLING[case]
    for dt in (0.0005, 0.001, 0.004):
        gap, energy, _ = rolled(kind, size, np.array(turned), np.array(spin), dt, 0.3, ground)
        assert -gap.min() <= 2e-5 * (dt / 0.001) ** 2, dt
        assert gap.max() <= 2e-5
        assert np.abs(energy / energy[0] - 1).max() <= 5e-3 * dt / 0.001


@pytest.mark.parametrize("case", ["leaning wheel", "egg"])
def test_packs_roll_as_one(case: str, tmp_path: Path) -> None:
    kind, size, turned, spin = ROLLING[case]
    _, _, run = rolled(kind, size, np.array(turned), np.array(spin), 0.002, 0.002)
    path = tmp_path / "wheel.xml"
    path.write_text(scene(kind, size, "plane"))
    robot = artsim.load(path)
    options: dict[str, Any] = {"steps": 150, "dt": 0.002, "q0": run["qpos"][0]}
    made = artsim.rollout(robot, samples=9, v0=run["qvel"][0], velocity_spread=0.05, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.solved_alone <= 0.3 * made.outcome.steps
    for k in (0, 8):
        one = artsim.simulate(robot, record=("qpos", "qvel"), v0=made["qvel"][k, 0], **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-9)


TABLE = '<body pos="0 0 -.05"><joint axis="0 1 0"/><geom type="box" size="1 1 .05" mass="20"/></body>'
MILLS = {
    "ellipsoid": ('type="ellipsoid" size=".04 .1 .06"', GROUNDS["plane"], ()),
    "rim": ('type="cylinder" size=".1 .01" euler="0 1.2 0"', GROUNDS["plane"], ()),
    "ellipsoid on a turning face": ('type="ellipsoid" size=".04 .1 .06"', TABLE, (0.02,)),
}


@pytest.mark.parametrize("case", MILLS)
@pytest.mark.parametrize("damping", [{}, {"link_damping": {"*": (0.5, 0.2)}}], ids=["free", "damped"])
def test_packs_roll_at_the_velocities_of_each_evaluation(case: str, damping: dict[str, Any], tmp_path: Path) -> None:
    """The wheel of a mill: the arm, which has no contact, turns so fast that its bias acts midway, and carries it."""
    geom, ground, start = MILLS[case]
    path = tmp_path / "mill.xml"
    path.write_text(
        f'<mujoco><compiler angle="radian"/><worldbody>{ground}<body pos="0 0 .1008">'
        '<joint axis="0 0 1"/><joint axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 .3 0 0" size=".01" mass=".2" contype="0" conaffinity="0"/>'
        f'<body pos=".3 0 0"><joint axis="1 0 0"/><geom {geom} mass="1"/></body></body></worldbody></mujoco>'
    )
    robot = artsim.load(path)
    options: dict[str, Any] = {"steps": 60, "dt": 0.002, **damping}
    made = artsim.rollout(robot, samples=9, v0=[*start, 12.0, 0.0, -36.0], velocity_spread=0.05, **options)
    assert isinstance(made, MemoryRollout)
    for k in (0, 8):
        one = artsim.simulate(robot, record=("qpos", "qvel"), v0=made["qvel"][k, 0], **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(made["qvel"][k], one["qvel"], rtol=0, atol=1e-9)


# ---------------------------------------------------------------------------------------------- normals that turn

PLATE = 'type="box" size=".4 .1 .01"'


@pytest.mark.parametrize("dt", [0.001, 0.004])
def test_what_slides_over_what_turns_does_not_sink(dt: float) -> None:
    """A plate turns upwards at 3 rad/s under a corner that slides along it at 1 m/s, without friction."""
    body, turned, reach = 'type="box" size=".02 .02 .02"', 'euler=".6154797 .7853982 0"', 0.02 * 3**0.5
    text = (
        '<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><default><geom condim="1"/></default><worldbody>'
        '<body name="plate"><joint name="plate" axis="0 -1 0"/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="1e6 1e6 1e6"/><geom {PLATE}/></body>'
        f'<body name="b" pos=".05 0 {0.01 + reach!r}" {turned}><freejoint name="b"/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="1e3 1e3 1e3"/><geom {body}/></body></worldbody></mujoco>'
    )
    run = simulate(
        load_text(text, name="plate.xml"),
        contacts=True,
        dt=dt,
        steps=round(0.2 / dt),
        v0={"plate": 3.0, "b.vx": 1.0, "b.vz": 0.15},
        record=("qpos", "link_position", "link_quaternion"),
    )
    names = run.robot.links
    angle = run["qpos"][:, run.robot.coords.index("plate")]
    up = np.column_stack([-np.sin(angle), np.zeros(len(angle)), np.cos(angle)])
    height = np.einsum("ti,ti->t", run["link_position"][:, names.index("b")], up) - 0.01
    turns = Rotation.from_quat(run["link_quaternion"][:, names.index("b")][:, [1, 2, 3, 0]]).as_matrix()
    height -= 0.02 * np.abs(np.einsum("ti,tij->tj", up, turns)).sum(axis=1)
    assert -height.min() <= 0.5 * dt**2
    assert height[-1] <= 1e-3
