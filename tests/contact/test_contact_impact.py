"""What comes down turning is held where it arrives: hard contacts go in by no more than the step's own error.

`python -m pytest tests/contact/test_contact_impact.py -s` prints the figures.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.contact.test_contact_closed_forms import FLOOR, RECORD, free, mjcf, play
from tests.contact.test_contact_hard import deepest
from tests.simulation import Run

DT = 0.002
SLAB = '<geom type="box" size="5 5 1" pos="0 0 -1"/>'
DISC = '<geom type="cylinder" size="1 .1" pos="0 0 -.1"/>'
ROUNDED = {
    "ellipsoid": '<geom type="ellipsoid" size="3 3 .3" pos="0 0 -.3"/>',
    "ball": '<geom type="sphere" size="20" pos="0 0 -20"/>',
    "cylinder": '<geom type="cylinder" size="20 3" pos="0 0 -20" euler="1.5707963 0 0"/>',
}
BOX = 'type="box" size=".1 .15 .05" density="1000"'
CYLINDER = 'type="cylinder" size=".1 .05" density="1000"'
WIDE = 'type="cylinder" size=".3 .05" density="1000"'


def dropped(ground: str, geom: str, turned: str, *, more: str = "", height: float = 0.15) -> Run:
    """A body let go above the ground; angles in radians."""
    text = mjcf(ground + free(geom, f".02 .01 {height}", turned=turned), more=more)
    return play(text, 1.0, DT, record=(*RECORD, "contacts"))


def judge(run: Run) -> tuple[float, float, float]:
    """Deepest contact [m], the most that a step's energy rises [J], the last speed."""
    depth = deepest(run)
    gain = np.diff(run["energy"].sum(axis=1)).max()
    speed = np.abs(run.simulation.qvel).max()
    print(
        f"\n{1e3 * depth.max():.2g} mm deep in step {depth.argmax()}, gain {gain:.1e} J, last speed {speed:.0e}", end=""
    )
    return float(depth.max()), float(gain), float(speed)


@pytest.mark.parametrize("turned", ["0 0 0", ".035 .017 .5", ".2 .1 .5"])
@pytest.mark.parametrize("case", ["box on disc", "disc on box", "disc on disc", "larger disc on disc"])
def test_flat_on_a_disc_comes_to_rest(case: str, turned: str) -> None:
    ground = SLAB if case == "disc on box" else DISC
    run = dropped(ground, {"box on disc": BOX, "larger disc on disc": WIDE}.get(case, CYLINDER), turned)
    depth, _, speed = judge(run)
    assert depth <= 1e-4  # a disc is an octagon where it is clipped
    assert speed <= 1e-3
    assert run.simulation.contact_extremes[0] >= 3
    assert deepest(run)[-100:].max() <= 1e-5


def sole() -> str:
    """A mesh domed below, radius 2 m: nowhere are more than a few of its 35 lower corners on a plane."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(-0.1, 0.1, 7), np.linspace(-0.06, 0.06, 5)))
    top = np.column_stack([x, y, np.full(x.size, 0.05)])
    points = np.vstack([np.column_stack([x, y, 0.25 * (x * x + y * y)]), top])
    return f'<asset><mesh name="sole" vertex="{" ".join(f"{value:.6f}" for value in points.ravel())}"/></asset>'


@pytest.mark.parametrize("turned", [".02 .01 0", ".1 .06 .3", "-.05 .12 0"])
@pytest.mark.parametrize("ground", [FLOOR, SLAB], ids=["plane", "box"])
def test_a_domed_sole_lands(ground: str, turned: str) -> None:
    run = dropped(ground, 'type="mesh" mesh="sole" mass="1"', turned, more=sole(), height=0.06)
    depth, gain, _ = judge(run)
    assert depth <= 4e-4
    assert gain <= 1e-6


@pytest.mark.parametrize("geom", [BOX, CYLINDER], ids=["box", "cylinder"])
@pytest.mark.parametrize("ground", ROUNDED)
def test_flat_slaps_down_on_something_round(ground: str, geom: str) -> None:
    """It turns about the corner that came first; the others arrive in a step of up to 4 mm."""
    run = dropped(ROUNDED[ground], geom, ".35 .26 .17", height=0.3)
    depth, gain, _ = judge(run)
    assert depth <= 1e-3
    assert gain <= 2e-3
