"""Friction within a pyramid, `--cone pyramidal`: what slips when, and MuJoCo's forces where contacts are soft."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.sim.foundation.errors import UsageError
from tests.simulation import simulate

G = 9.81
PYRAMID: dict[str, Any] = {"contacts": True, "cone": "pyramidal"}


def slider(friction: float, more: str = "", option: str = "") -> str:
    """A ball that moves along three axes and does not turn, on a plane."""
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    return f"""<mujoco><option timestep="0.001" {option}/><worldbody>
      <geom type="plane" size="5 5 .1" friction="{friction} 0 0" {more}/>
      <body pos="0 0 .1">{slides}<geom size=".1" mass="2" friction="{friction} 0 0" {more}/></body>
      </worldbody></mujoco>"""


def slope(share: float, direction: float) -> tuple[float, float, float]:
    """Gravity on a slope of this tangent that falls in a direction."""
    angle = math.atan(share)
    down = G * math.sin(angle)
    return down * math.cos(direction), down * math.sin(direction), -G * math.cos(angle)


@pytest.mark.small
@pytest.mark.parametrize("direction", [0.0, 0.5 * math.pi, math.pi])
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_along_its_axes_a_pyramid_holds_what_a_cone_does(share: float, direction: float) -> None:
    run = simulate(slider(0.4), steps=100, gravity=slope(0.4 * share, direction), **PYRAMID)
    speed = np.linalg.norm(run["qvel"][:, :2], axis=1)
    if share < 1:
        assert np.abs(run["qvel"]).max() <= 1e-12
    else:
        force = np.linalg.norm(run["tau_contact"][:, :2], axis=1)
        assert speed[-1] > 1e-4
        assert np.abs(force / run["tau_contact"][:, 2] - 0.4).max() <= 1e-9


@pytest.mark.small
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_between_its_axes_it_holds_less(share: float) -> None:
    run = simulate(slider(0.4), steps=100, gravity=slope(0.4 * share / math.sqrt(2), 0.25 * math.pi), **PYRAMID)
    assert (np.abs(run["qvel"]).max() > 1e-4) == (share > 1)
    cone = simulate(slider(0.4), steps=100, gravity=slope(0.4 * share / math.sqrt(2), 0.25 * math.pi), contacts=True)
    assert np.abs(cone["qvel"]).max() <= 1e-12


@pytest.mark.small
def test_what_slides_rises_by_mu_times_its_speed_at_most() -> None:
    run = simulate(slider(0.4), steps=50, gravity=slope(0.6, 0.0), **PYRAMID)
    along, up = run["qvel"][:, 0], run["qvel"][:, 2]
    assert along[-1] > 0.05
    assert np.all(up >= -1e-12)
    assert np.all(up <= 0.4 * along + 1e-12)


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_soft_pyramids_are_mujoco_s(condim: int) -> None:
    """A ball pushed over soft ground, which slides and rolls: to MuJoCo's tolerance, at any step."""
    soft = f'condim="{condim}" solref="0.02 1" solimp=".9 .95 .001"'
    text = f"""<mujoco><option timestep="STEP" gravity="1.5 .7 -9.81" cone="pyramidal"/><worldbody>
      <geom type="plane" size="5 5 .1" friction=".3 .02 .01" {soft}/>
      <body pos="0 0 .1"><freejoint/><geom size=".1" mass="2" friction=".3 .02 .01" {soft}/></body>
      </worldbody></mujoco>"""
    errors = []
    for step, steps in ((4e-4, 500), (2e-4, 1000)):
        scene = text.replace("STEP", str(step))
        model = mujoco.MjModel.from_xml_string(scene)
        model.opt.iterations, model.opt.tolerance = 500, 1e-15
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, steps)
        run = simulate(scene, steps=steps + 1, **PYRAMID)
        errors.append(np.abs(run["qvel"][-1] - data.qvel).max())
    assert max(errors) <= 1e-7


def test_restitution_is_refused() -> None:
    with pytest.raises(UsageError, match="do not bounce"):
        simulate(slider(0.4), steps=1, restitution=0.5, **PYRAMID)
