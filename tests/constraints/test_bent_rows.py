"""Curved couplings as rows are aimed at where the velocities lead: what is left of their errors."""

from __future__ import annotations

import pytest

from artsim.loaders.load import load_text
from tests.simulation import simulate
from tests.stepping.test_energy_keeping import quartic_chain

HINGES = """<mujoco><compiler angle="radian"/><worldbody>
  <body><joint name="j0" axis="0 1 0"/><inertial pos=".01 0 -.1" mass="1.1" diaginertia=".005 .005 .001"/>
  <body pos="0 0 -.2"><joint name="j1" axis="0 1 0"/><inertial pos=".02 0 -.1" mass=".6" diaginertia=".003 .003 .001"/>
  </body></body></worldbody>
  <equality><joint joint1="j1" joint2="j0" polycoef=".05 -.4 .9 .7 -.5"/></equality></mujoco>"""
SLIDE = """<mujoco><compiler angle="radian"/><worldbody>
  <body><joint name="j0" axis="0 1 0"/><inertial pos="0 0 -.3" mass="2" diaginertia=".02 .02 .01"/></body>
  <body pos="1 0 0"><joint name="s" type="slide" axis="1 0 .5"/><inertial pos="0 0 0" mass=".5" diaginertia=".1 .1 .1"/>
  </body></worldbody><equality><joint joint1="s" joint2="j0" polycoef="0 .1 .2 -.05 .03"/></equality></mujoco>"""


@pytest.mark.parametrize("dt", [0.001, 0.004])
@pytest.mark.parametrize("text", [HINGES, SLIDE, quartic_chain()], ids=["hinges", "slide", "four"])
def test_curved_couplings_hold_as_rows(text: str, dt: float) -> None:
    run = simulate(load_text(text, name="model.xml"), steps=round(2.0 / dt), dt=dt, coupling="rows", q0={"j0": 1.1})
    assert run.simulation.coupling_error < 2e-9
