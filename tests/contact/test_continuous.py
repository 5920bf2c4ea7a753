"""--continuous: what turns far in a step does not pass through what is thin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.sim.geometry.contacts import Touching
from tests.contact.test_contact_closed_forms import Array, history, mjcf, play

DT = 1 / 240
SLICK = 'condim="1"'  # a needle that starts to turn about itself is another story
FINGER = '<geom type="capsule" size=".005 .1" pos="-.15 .1 0"/>'
BLADE = '<geom type="box" size=".1 .01 .001" pos=".12 0 0" mass=".02"/>'
# where the blade's edge meets the finger: the finger's centre is behind the blade by its radius and half the width
ANGLE = np.arctan2(0.1, -0.15) - np.arcsin((0.005 + 0.01) / np.hypot(0.1, 0.15))


def turned(speed: float, *, dt: float = DT, **config: Any) -> tuple[Array, Array]:
    """Angle and speed of a propeller blade with a finger in its way."""
    text = mjcf(f'{FINGER}<body><joint name="q" axis="0 0 1"/>{BLADE}</body>', geom=SLICK)
    _, q, v = history(play(text.replace("-9.81", "0"), 20 * dt, dt, v0={"q": speed}, **config))
    return q[:, 0], v[:, 0]


@pytest.mark.parametrize("speed", [100.0, 400.0, 1000.0, 3000.0])
def test_a_propeller_stops_at_a_finger(speed: float) -> None:
    """At up to 12 rad a step, always in the same place, and without a push before."""
    q, v = turned(speed, continuous=True)
    assert q.max() == pytest.approx(ANGLE, abs=0.02)
    assert q[-1] == pytest.approx(ANGLE, abs=1e-3)
    before = q < ANGLE - 0.05
    assert v[before] == pytest.approx(speed)
    assert abs(v[-1]) < 0.1


def test_without_it_the_finger_is_lost() -> None:
    assert turned(400.0)[0].max() > ANGLE + 1


def test_it_bounces() -> None:
    _, v = turned(1000.0, continuous=True, restitution=0.5)
    assert v.min() == pytest.approx(-500.0, rel=1e-3)


def needle(kind: str, speed: float, spin: float, start: float, **config: Any) -> Array:
    """Heights of something thin that comes down turning on a plate of 4 mm, without gravity."""
    body = f'<body pos="0 0 {start}"><freejoint name="n"/><geom {kind}/></body>'
    text = mjcf(f'<geom type="box" size="3 3 .002"/>{body}', geom=SLICK).replace("-9.81", "0")
    v0 = {"n.vz": -speed, "n.wx": spin}
    _, q, _ = history(play(text, 40 * DT, DT, v0=v0, restitution=0.3, **config))
    return q[:, 2]


NEEDLES = {
    "capsule": 'type="capsule" size=".004 .25" mass=".05" euler="1.5708 0 0"',
    "cylinder": 'type="cylinder" size=".004 .25" mass=".05" euler="1.5708 0 0"',
    "sheet": 'type="box" size=".2 .2 .002" mass=".2"',
}


@pytest.mark.parametrize("kind", NEEDLES)
@pytest.mark.parametrize("speed", [30.0, 300.0])
@pytest.mark.parametrize("spin", [300.0, 900.0])
def test_needles_stay_above_a_plate(kind: str, speed: float, spin: float) -> None:
    for start in (1.3, 1.5, 1.7):
        assert needle(NEEDLES[kind], speed, spin, start, continuous=True).min() > 0


def test_a_needle_passes_without_it() -> None:
    assert needle(NEEDLES["cylinder"], 110.0, 300.0, 1.3).min() < -1
    assert needle(NEEDLES["cylinder"], 110.0, 300.0, 1.3, continuous=True).min() > 0


def test_two_swords() -> None:
    """Both turn about one axis, against each other, by more than half a turn per step: they meet half way."""
    hinge = '<joint name="{0}" axis="0 0 1"/><geom type="box" size=".2 .004 .02" pos="{1}.25 0 0" mass=".1"/>'
    text = mjcf(f"<body>{hinge.format('a', '')}</body><body>{hinge.format('b', '-')}</body>", geom=SLICK)
    run = play(text, 10 * DT, DT, v0={"a": 800.0, "b": -800.0}, continuous=True)
    _, q, v = history(run)
    apart = np.pi + q[:, 1] - q[:, 0]
    assert apart.min() > 0
    assert apart[-1] == pytest.approx(0.16, abs=0.02)  # as thick as they are, where they meet: at 50 mm
    assert v[-1] == pytest.approx([0, 0], abs=1)


def test_bullets_stop_as_they_do_without() -> None:
    """What does not turn is never stopped short: the same numbers, to the last bit."""
    bullet = '<body pos="0 0 .3"><freejoint name="n"/><geom type="capsule" size=".004 .01" mass=".01"/></body>'
    text = mjcf(f'<geom type="box" size="3 3 .0005"/>{bullet}', geom=SLICK)
    runs = [play(text, 0.1, DT, v0={"n.vz": -900.0}, continuous=continuous) for continuous in (False, True)]
    heights = [history(run)[1] for run in runs]
    assert np.array_equal(*heights)
    assert heights[0][:, 2].min() > 0.014


def test_what_rests_and_rolls_is_left_alone() -> None:
    """A box at rest, a ball that rolls fast, a box that is pushed along: as without, and at full pace."""
    world = (
        '<geom type="plane" size="0 0 1"/><body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        '<body pos="1 0 .05"><freejoint name="ball"/><geom size=".05"/></body>'
        '<body pos="0 1 .01"><freejoint name="slab"/><geom type="box" size=".1 .1 .01"/></body>'
    )
    v0 = {"ball.vx": 20.0, "ball.wy": 400.0, "slab.vx": 5.0}
    runs = [play(mjcf(world), 0.2, DT, v0=v0, continuous=continuous) for continuous in (False, True)]
    assert np.array_equal(history(runs[0])[1], history(runs[1])[1])


def test_a_deep_overlap_comes_out() -> None:
    """What is deep at the start, and turns, is let out."""
    world = (
        f'<geom type="box" size="1 1 .02"/><body pos="0 0 .01"><freejoint name="n"/><geom {NEEDLES["sheet"]}/></body>'
    )
    _, q, _ = history(play(mjcf(world, geom=SLICK), 0.5, DT, v0={"n.wx": 20.0}, continuous=True))
    assert abs(q[-1, 2]) > 0.02


def test_off_it_costs_nothing() -> None:
    run = play(mjcf('<geom type="plane" size="0 0 1"/><body><freejoint/><geom size=".1"/></body>'), 0.01)
    assert isinstance(run.plan.touching, Touching)
    assert [entry.name for entry in run.plan.entries] == ["simulate", "take_task", "solve_alone", "detect", "measure"]
