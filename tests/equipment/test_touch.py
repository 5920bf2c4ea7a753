"""Touch sensors, and force sensors and accelerometers under contact, against MuJoCo."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import artsim

# a box at rest on its corners, a ball on top of it; zones of every kind that hold some of the contacts or none
ZONES = {
    "all": 'type="box" size=".3 .3 .3"',
    "left": 'type="box" size=".1 .3 .02" pos="-.1 0 -.1"',
    "edge": 'type="cylinder" size=".03 .2" pos=".1 0 -.1" euler="90 0 0"',
    "corner": 'size=".02" pos=".1 .1 -.1"',
    "rod": 'type="capsule" size=".01 .1" pos=".1 0 -.1" euler="90 0 0"',
    "egg": 'type="ellipsoid" size=".02 .03 .04" pos="-.1 .1 -.13"',
    "below": 'type="box" size=".3 .3 .02" pos="0 0 -.2"',
    "top": 'type="cylinder" size=".05 .02" pos="0 0 .1"',
    "aside": 'type="sphere" size=".05" pos=".4 0 0"',
}
SITES = "".join(f'<site name="{name}" {about}/>' for name, about in ZONES.items())
SOFT = 'solref=".02 1" solimp=".9 .95 .001"'
SCENE = f"""<mujoco><option timestep=".002"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1" {SOFT}/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="3" {SOFT}/>{SITES}
    <site name="imu" pos=".02 .03 .01"/>
    <body name="mast" pos="0 0 .1"><geom type="box" size=".02 .02 .001" mass=".1" {SOFT} contype="0" conaffinity="0"/>
      <site name="mast"/></body></body>
  <body name="ball" pos="0 0 .25"><freejoint/><geom size=".05" mass="1" {SOFT}/><site name="ball" size=".06"/></body>
  <body name="arm" pos="1 0 .2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass=".5"/>
    <body name="hand" pos=".4 0 0"><geom size=".04" mass=".3" {SOFT}/><site name="hand" size=".05"/></body></body>
</worldbody><sensor>{"".join(f'<touch site="{name}"/>' for name in ZONES)}<touch site="ball"/><touch site="hand"/>
  <force site="hand"/><torque site="hand"/><force site="mast"/><accelerometer site="imu"/><accelerometer site="hand"/>
</sensor></mujoco>"""


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], dict[str, float]]:
    """Ours and MuJoCo's, at rest."""
    path = tmp_path_factory.mktemp("touch") / "scene.xml"
    path.write_text(SCENE)
    run = artsim.simulate(artsim.load(path), steps=1500, record=["sensors", "qvel"])
    assert np.abs(run["qvel"][-1]).max() < 1e-6
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for _ in range(1500):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return (
        dict(zip(run.labels.sensor, run["sensors"][-1].tolist(), strict=True)),
        dict(zip(run.labels.sensor, data.sensordata.tolist(), strict=True)),
    )


def test_at_rest_as_in_mujoco(settled: tuple[dict[str, float], dict[str, float]]) -> None:
    ours, theirs = settled
    assert ours == pytest.approx(theirs, abs=0.02)  # where its solver stops


def test_weights(settled: tuple[dict[str, float], dict[str, float]]) -> None:
    ours = {name: value for name, value in settled[0].items() if name.startswith("touch")}
    values = dict(zip((*ZONES, "ball", "hand"), ours.values(), strict=True))
    g = 9.81
    floor = 4.1 * g
    assert values["all"] == pytest.approx(floor + g, rel=1e-6)  # of the floor, and of the ball
    assert values["edge"] == pytest.approx(values["left"], rel=1e-12)
    assert values["rod"] == pytest.approx(values["left"], rel=1e-12)
    assert values["left"] == pytest.approx(floor / 2, rel=1e-3)
    assert values["corner"] == pytest.approx(floor / 4, rel=1e-3)
    assert values["egg"] == pytest.approx(floor / 4, rel=1e-3)  # the point is above it, on the way out
    assert values["below"] == pytest.approx(floor, rel=1e-6)
    assert values["top"] == values["ball"] == pytest.approx(g, rel=1e-6)
    assert values["aside"] == 0.0


def test_nothing_touches_without_contact(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    run = artsim.simulate(artsim.load(path), steps=3, contacts=False, record=["sensors"])
    assert not run["sensors"][:, : len(ZONES) + 2].any()
