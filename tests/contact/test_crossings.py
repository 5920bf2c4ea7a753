"""A line that turns about one edge of what it lies on is held by the other: a rod rocks on a narrow block.

The rod can rise and turn in a plane. It is pressed down with 100 N, tilted by 20 mrad and turns back: within a step
its other end comes down. Truth: the overlap of two rectangles in that plane, by separating axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.simulation import Run, simulate

Array = np.ndarray[Any, Any]
RADIUS, HALF = 0.01, 0.03
LYING = 'euler="0 1.5707963267948966 0"'
RODS = {
    "cylinder": f'type="cylinder" size="{RADIUS} {HALF}" {LYING}',
    "capsule": f'type="capsule" size="{RADIUS} {HALF - RADIUS}" {LYING}',
    "edge of a box": 'type="box" size=".0070710678118654752 .0070710678118654752 .03" '
    'quat="0.653281482438188 0.270598050073099 0.653281482438188 0.270598050073099"',
}


def block(kind: str, half: float) -> str:
    """What the rod lies on, its top at z = 0, as wide as that along the rod."""
    if kind == "disc":
        return f'<geom type="cylinder" size="{half} .03" pos="0 0 -.03" euler="0 0 .3"/>'
    if kind == "mesh":
        return '<geom type="mesh" mesh="block"/>'
    turned = 0.4 if kind == "turned box" else 0.0
    return f'<geom type="box" size="{half * np.cos(turned)} .05 .03" pos="0 0 -.03" euler="0 0 {turned}"/>'


def rocked(rod: str, ground: str, half: float, dt: float, speed: float) -> Run:
    """Half a second of it."""
    corners = " ".join(f"{x * half} {y * 0.05} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-0.06, 0))
    text = (
        f'<mujoco><compiler angle="radian"/><asset><mesh name="block" vertex="{corners}"/></asset><worldbody>'
        f'{block(ground, half)}<body pos="0 0 {RADIUS}"><joint name="z" type="slide" axis="0 0 1"/>'
        f'<joint name="b" axis="0 1 0"/><geom {RODS[rod]} mass=".2"/></body></worldbody></mujoco>'
    )
    return simulate(
        load_text(text, name="rod.xml"),
        contacts=True,
        dt=dt,
        steps=round(0.5 / dt),
        q0={"z": 0.0004, "b": 0.02},
        v0={"b": speed},
        torque={"z": -100.0},
        record=("qpos",),
    )


def depth(qpos: Array, half: float) -> float:
    """Of the rod's section through its axis in the block's, the deepest of a run [m]; less than 0: apart."""
    low = np.array([[x * half, z] for x in (-1, 1) for z in (-0.06, 0.0)])
    deepest = -np.inf
    for z, angle in qpos:
        along, up = np.array([np.cos(angle), -np.sin(angle)]), np.array([np.sin(angle), np.cos(angle)])
        rod = np.array([(0, RADIUS + z) + x * HALF * along + y * RADIUS * up for x in (-1, 1) for y in (-1, 1)])
        axes = np.array([[1, 0], [0, 1], along, up])
        one, two = axes @ rod.T, axes @ low.T
        overlap = np.minimum(one.max(1) - two.min(1), two.max(1) - one.min(1))
        deepest = max(deepest, float(overlap.min()))
    return deepest


@pytest.mark.parametrize("rod", RODS)
@pytest.mark.parametrize("ground", ["box", "turned box", "disc", "mesh"])
def test_a_rod_rocks_on_what_is_narrower(rod: str, ground: str) -> None:
    for half in (0.012, 0.018):
        for dt, speed in ((0.001, -2.0), (0.001, -6.0), (0.004, -6.0), (0.004, -20.0)):
            run = rocked(rod, ground, half, dt, speed)
            assert depth(run["qpos"], half) <= 1e-5, (half, dt, speed)
            assert abs(run["qpos"][-1, 1]) <= 1e-3  # flat, on both edges
