"""Contact sensors beside MuJoCo: what matches, which of it is put out, and in which direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import ModelError
from tests.conftest import corpus

Values = dict[str, np.ndarray[Any, Any]]

SOFT = 'solref=".02 1" solimp=".9 .95 .001" condim="4"'
ALL = 'data="found force torque dist pos normal tangent"'
SENSORS = {
    "any": "",
    "ball": f'geom1="ball" {ALL}',
    "to_ball": f'geom2="ball" {ALL}',
    "ball_ramp": f'geom1="ball" geom2="ramp" {ALL}',
    "ramp_ball": f'body1="world" body2="ball" {ALL}',
    "ramp_ball_geoms": f'geom1="ramp" geom2="ball" {ALL}',
    "tower": 'subtree1="tower"',
    "tower_itself": 'subtree1="tower" subtree2="tower"',
    "floor_tower": 'geom1="floor" subtree2="tower" num="6" data="found force dist" reduce="mindist"',
    "strongest": 'body1="world" num="3" data="force" reduce="maxforce"',
    "net": f'subtree1="tower" body2="world" {ALL} reduce="netforce"',
    "net_back": f'body1="world" subtree2="tower" {ALL} reduce="netforce"',
    "corner": f'site="corner" {ALL}',
    "corner_floor": f'site="corner" geom2="floor" {ALL}',
    "corner_ball": 'site="corner" body2="ball" data="found normal"',
    "apart": 'geom1="ball" subtree2="tower" num="2" data="found pos"',
}
SCENE = f"""<mujoco><option timestep=".002"><flag filterparent="disable"/></option><worldbody>
  <geom name="floor" type="plane" size="0 0 1" {SOFT}/>
  <geom name="ramp" type="box" size=".2 .2 .05" pos="1 0 .2" euler="0 0 30" {SOFT} friction="2"/>
  <body name="tower" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .12 .1" mass="3" {SOFT}/>
    <site name="corner" type="box" pos=".1 .12 -.1" size=".01 .01 .01"/>
    <body name="top" pos="0 0 .151"><joint type="slide"/><joint axis="1 0 0"/><joint axis="0 1 0"/>
      <geom type="capsule" size=".05 .06" euler="90 0 0" mass="1" {SOFT}/></body></body>
  <body name="ball" pos="1 .05 .35"><freejoint/><geom name="ball" size=".1" mass="2" {SOFT}/></body>
</worldbody><contact><pair geom1="ball" geom2="ramp" condim="6" margin=".01" friction="1 1 .1 .1 .1"
  solref=".02 1" solimp=".9 .95 .001"/></contact>
<sensor>{"".join(f'<contact name="{name}" {about}/>' for name, about in SENSORS.items())}</sensor></mujoco>"""


def by_sensor(model: Any, values: Any) -> Values:
    """The outputs of each."""
    return {
        model.sensor(n).name: np.array(values[model.sensor_adr[n] : model.sensor_adr[n] + model.sensor_dim[n]])
        for n in range(model.nsensor)
    }


def settle(path: Path, steps: int) -> tuple[Values, Values]:
    """Ours and MuJoCo's after so many steps."""
    run = artsim.simulate(artsim.load(path), steps=steps, record=["sensors"])
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return by_sensor(model, run["sensors"][-1]), by_sensor(model, data.sensordata)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Values, Values]:
    path = tmp_path_factory.mktemp("contact") / "scene.xml"
    path.write_text(SCENE)
    return settle(path, 1000)


@pytest.mark.parametrize("name", [name for name in SENSORS if name != "corner_ball"])
def test_at_rest_as_in_mujoco(settled: tuple[Values, Values], name: str) -> None:
    ours, theirs = settled[0][name], settled[1][name]
    if name in ("floor_tower", "strongest"):  # equal ones in any order
        slots = 6 if name == "floor_tower" else 3
        ours, theirs = np.sort(ours.reshape(slots, -1), axis=0), np.sort(theirs.reshape(slots, -1), axis=0)
    assert ours == pytest.approx(theirs, abs=0.02)
    assert theirs.any() or name == "apart"


def test_directions(settled: tuple[Values, Values]) -> None:
    ours = settled[0]
    force, normal, tangent = ours["ball"][1:4], ours["ball"][11:14], ours["ball"][14:]
    assert normal == pytest.approx([0, 0, -1], abs=1e-6)  # away from the ball
    assert force[0] == pytest.approx(2 * 9.81, rel=1e-4)
    for name, side in (("to_ball", -1), ("ball_ramp", 1), ("ramp_ball", -1), ("ramp_ball_geoms", -1)):
        assert np.array_equal(ours[name][11:], side * ours["ball"][11:])
        assert np.array_equal(ours[name][1:4], ours["ball"][1:4] * [1, 1, side])
    assert np.cross(normal, tangent) == pytest.approx(np.cross(-normal, -tangent))
    assert ours["net"][3] == pytest.approx(-4 * 9.81, rel=1e-4)  # of the tower on the world
    assert ours["net_back"][1:7] == pytest.approx(-ours["net"][1:7])
    assert ours["net"][8:10] == pytest.approx([0, 0], abs=1e-6)


def test_counts(settled: tuple[Values, Values]) -> None:
    ours = settled[0]
    assert ours["any"][0] == 4 + 2 + 1  # the box's corners, the capsule's ends, the ball
    assert ours["tower"][0] == 4 + 2 and ours["tower_itself"][0] == 2
    assert ours["corner"][0] == ours["corner_floor"][0] == 1
    assert not ours["corner_ball"].any() and not ours["apart"].any()


def test_without_contact_all_is_zero(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    run = artsim.simulate(artsim.load(path), steps=2, contacts=False, record=["sensors"])
    assert not run["sensors"].any()


def test_labels(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(
        """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody>
        <sensor><contact name="a"/><contact name="b" data="dist normal" num="2"/></sensor></mujoco>"""
    )
    run = artsim.simulate(artsim.load(path), steps=1, record=["sensors"])
    slot = ("dist", "normal.x", "normal.y", "normal.z")
    assert run.labels.sensor == ("a", *(f"b.0.{name}" for name in slot), *(f"b.1.{name}" for name in slot))
    assert run.labels.sensor_units == ("1", *("m", "1", "1", "1") * 2)


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        ('<contact data="force found"/>', "in the order found force torque dist pos normal tangent"),
        ('<contact num="0"/>', "num is 0, want 1 to"),
        ('<contact reduce="most"/>', "reduce is 'most'"),
        ('<contact geom1="g" body1="b"/>', "has 'body1' and 'geom1', want one of them"),
        ('<contact geom1="h"/>', "geom1 'h' does not exist"),
    ],
)
def test_refused(tmp_path: Path, sensor: str, message: str) -> None:
    path = tmp_path / "scene.xml"
    body = '<body name="b"><freejoint/><geom name="g" size=".1"/></body>'
    path.write_text(f"<mujoco><worldbody>{body}</worldbody><sensor>{sensor}</sensor></mujoco>")
    with pytest.raises(ModelError, match=message):
        artsim.load(path)


@pytest.mark.parametrize("name", ["contact", "contact_net", "contact_subtree"])
def test_mujoco_s_own_scenes(name: str) -> None:
    """In their first pose: how many match, distances and normals; forces differ, as ours are hard by default."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    path = folder / f"files/mujoco/test/engine/testdata/sensor/{name}.xml"
    run = artsim.simulate(artsim.load(path), steps=1, record=["sensors"])
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ours, theirs = by_sensor(model, run["sensors"][0]), by_sensor(model, data.sensordata)
    for sensor, values in theirs.items():
        assert ours[sensor].astype(bool).tolist() == values.astype(bool).tolist() or "net" in sensor, sensor
        if len(values) == 1:
            assert ours[sensor] == pytest.approx(values), sensor
