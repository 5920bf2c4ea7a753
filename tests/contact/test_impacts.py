"""Several impacts within one step: momentum goes on as in sequence, and energy is what restitution leaves.

Truth: a row of balls by Newton's law pair by pair, whichever closes next; elastic balls keep their energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.simulation import Run, simulate

Array = np.ndarray[Any, Any]
RADIUS = 0.02


def row_of_balls(masses: Sequence[float], gap: float, last: float | None = None) -> str:
    """Balls on a line, each on a slide, the first a tenth of a metre before the others, the last one `last` after."""
    bodies, x = [], 0.0
    for k, mass in enumerate(masses):
        ball = f'<geom type="sphere" size="{RADIUS}" mass="{mass}" condim="1"/>'
        joint = f'<joint name="x{k}" type="slide" axis="1 0 0"/>'
        bodies.append(f'<body pos="{x} 0 0">{joint}{ball}</body>')
        x += 2 * RADIUS + (0.1 if k == 0 else gap if last is None or k < len(masses) - 2 else last)
    return f'<mujoco><option gravity="0 0 0"/><worldbody>{"".join(bodies)}</worldbody></mujoco>'


def play(text: str, seconds: float, dt: float, e: float, v0: dict[str, float], **config: Any) -> Run:
    return simulate(
        load_text(text, name="balls.xml"),
        contacts=True,
        dt=dt,
        steps=round(seconds / dt),
        restitution=e,
        v0=v0,
        **{"record": ("qpos", "qvel", "energy"), **config},
    )


def in_sequence(masses: Sequence[float], positions: Array, velocities: Array, e: float, seconds: float) -> Array:
    """Speeds after that time, impact by impact."""
    x, v, m = positions.copy(), velocities.copy(), np.array(masses)
    for _ in range(10_000):
        gaps, closing = np.diff(x) - 2 * RADIUS, -np.diff(v)
        times = np.where(closing > 1e-12, np.maximum(gaps, 0) / np.maximum(closing, 1e-12), np.inf)
        k = int(np.argmin(times))
        if times[k] >= seconds:
            break
        seconds -= times[k]
        x += times[k] * v
        blow = (1 + e) * closing[k] / (1 / m[k] + 1 / m[k + 1])
        v[k] -= blow / m[k]
        v[k + 1] += blow / m[k + 1]
    return v


@pytest.mark.parametrize("dt", [0.0005, 0.001, 0.004])
@pytest.mark.parametrize("gap", [0.0, 1e-5, 1e-4, 1e-3])
def test_the_last_ball_of_a_cradle_goes(gap: float, dt: float) -> None:
    for count in (3, 5, 9):
        run = play(row_of_balls([0.1] * count, gap), 0.3, dt, 1.0, {"x0": 1.0})
        assert np.abs(run.simulation.qvel - np.eye(count)[-1]).max() <= 1e-12, count
    run = play(row_of_balls([0.1] * 5, gap), 0.3, dt, 1.0, {"x0": 1.0, "x1": 1.0})
    assert np.abs(run.simulation.qvel - [0, 0, 0, 1, 1]).max() <= 1e-9


@pytest.mark.parametrize("e", [0.5, 0.8, 1.0])
def test_a_row_of_lighter_balls(e: float) -> None:
    masses, gap = [0.1 * 0.8**k for k in range(6)], 1e-4
    run = play(row_of_balls(masses, gap), 0.3, 0.001, e, {"x0": 1.0})
    start = run.plan.robot
    positions = np.array([0.0, *(2 * RADIUS + 0.1 + np.arange(5) * (2 * RADIUS + gap))])
    truth = in_sequence(masses, positions, np.array([1.0, *np.zeros(5)]), e, 0.3)
    assert start.nv == 6
    assert run.simulation.qvel[-1] == pytest.approx(truth[-1], abs=1e-9)  # the others meet again, slowly
    assert run.simulation.qvel @ masses == pytest.approx(masses[0], rel=1e-12)
    if e == 1.0:
        assert run.simulation.qvel == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("dt", [0.001, 0.004])
@pytest.mark.parametrize(
    ("count", "gap", "first", "last"), [(5, 1e-4, 1.0, -1.0), (7, 1e-4, 1.0, -1.003), (6, 2e-4, 1.5, -1.5)]
)
def test_a_row_struck_from_both_sides(count: int, gap: float, first: float, last: float, dt: float) -> None:
    """The balls at the ends leave as after the same impacts in the order of time."""
    text = row_of_balls([0.1] * count, gap, last=0.1)
    run = play(text, 0.2, dt, 0.8, {"x0": first, f"x{count - 1}": last})
    x = np.array([0.0, *(0.1 + 2 * RADIUS + np.arange(count - 1) * (2 * RADIUS + gap))])
    x[-1] += 0.1 - gap
    v = np.zeros(count)
    v[0], v[-1] = first, last
    truth = in_sequence([0.1] * count, x, v, 0.8, 0.2)
    ends = run.simulation.qvel[[0, -1]]
    print(f"\n{ends} {truth[[0, -1]]}", end="")
    assert ends == pytest.approx(truth[[0, -1]], abs=2e-3)
    assert run.simulation.qvel.sum() == pytest.approx(first + last, abs=1e-12)


def test_a_ball_struck_from_two_sides_at_once_keeps_no_more_than_it_may() -> None:
    """Both blows at the same moment: one after the other, which conserves momentum and loses what restitution takes."""
    text = row_of_balls([0.1, 0.1, 0.1], 0.1)
    run = play(text, 0.2, 0.001, 0.8, {"x0": 1.0, "x2": -1.0})
    x = np.array([0.0, 0.1 + 2 * RADIUS, 0.2 + 4 * RADIUS])
    truth = in_sequence([0.1] * 3, x, np.array([1.0, 0.0, -1.0]), 0.8, 0.2)
    assert run.simulation.qvel == pytest.approx(truth, abs=1e-9)


def boxed(count: int, gravity: float, friction: float, seed: int) -> tuple[str, dict[str, float]]:
    """count³ balls between six walls, or five under gravity, and their velocities."""
    draw = np.random.default_rng(seed)
    half, pitch = 0.035 * count, 0.07
    surface = f'friction="{friction} 0 0" condim="{3 if friction else 1}"'
    walls = [f'<geom type="plane" size="1 1 1" pos="0 0 {-half}" {surface}/>']
    for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1), (2, -1))[: 4 if gravity else 5]:
        normal, place = np.zeros(3), np.zeros(3)
        normal[axis], place[axis] = sign, -sign * half
        walls.append(
            f'<geom type="plane" size="1 1 1" pos="{place[0]} {place[1]} {place[2]}" '
            f'zaxis="{normal[0]} {normal[1]} {normal[2]}" {surface}/>'
        )
    v0, balls = {}, []
    for k, cell in enumerate(np.ndindex(count, count, count)):
        at = (np.array(cell) - (count - 1) / 2) * pitch + draw.normal(size=3) * 0.002
        ball = f'<geom type="sphere" size="{RADIUS}" mass=".1" {surface}/>'
        balls.append(f'<body pos="{at[0]} {at[1]} {at[2]}"><freejoint name="b{k}"/>{ball}</body>')
        v0 |= {f"b{k}.{name}": float(draw.normal()) for name in ("vx", "vy", "vz")}
    inside = "".join(walls + balls)
    return f'<mujoco><option gravity="0 0 {-gravity}"/><worldbody>{inside}</worldbody></mujoco>', v0


@pytest.mark.parametrize("dt", [0.001, 0.004])
def test_elastic_balls_keep_their_energy(dt: float) -> None:
    text, v0 = boxed(6, 0.0, 0.0, 0)
    run = play(text, 0.4, dt, 1.0, v0)
    energy = run["energy"].sum(axis=1)
    assert np.abs(energy / energy[0] - 1).max() <= 1e-9
    moved = np.abs(np.diff(run["qvel"], axis=0)).max(axis=0) > 1e-3
    assert moved[0::6].all()  # every ball has been hit


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("e", [0.5, 0.9])
def test_no_energy_is_made_and_rest_is_reached(e: float, friction: float) -> None:
    text, v0 = boxed(3, 9.81, friction, 1)
    run = play(text, 3.0, 0.002, e, v0)
    energy = run["energy"].sum(axis=1)
    assert np.diff(energy).max() <= 2e-3 * np.ptp(energy)  # in a step; a body that turns round keeps its height
    assert np.abs(run.simulation.qvel[2::6]).max() <= 1e-2 if friction else 0.1
    assert np.abs(run["qvel"][-50:, 2::6]).max() <= 0.06  # below what bounces
