"""Rangefinders beside MuJoCo: rays against every kind of shape, and what they do not see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import ModelError
from tests.conftest import corpus

ALL = "dist dir origin point normal depth"
TENT = """<mesh name="tent" vertex="-1 -1 0  1 -1 0  1 1 0  -1 1 0  0 0 1  0 0 .3" scale=".3 .2 .4"
  face="0 1 4  1 2 4  2 3 4  3 0 4  1 0 5  2 1 5  3 2 5  0 3 5"/>"""  # hollow below: not convex
HILLS = """<hfield name="hills" nrow="4" ncol="5" size=".5 .4 .3 .1"
  elevation="0 1 3 1 0  2 5 4 2 1  1 3 6 8 2  0 0 2 1 4"/>"""
SHAPES = {
    "plane": 'type="plane" size="0 0 1"',
    "board": 'type="plane" size=".4 .2 1"',
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .3"',
    "cylinder": 'type="cylinder" size=".25 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .3 .5"',
    "box": 'type="box" size=".1 .2 .3"',
    "mesh": 'type="mesh" mesh="tent"',
    "hull": 'type="mesh" mesh="points"',
    "hfield": 'type="hfield" hfield="hills"',
}
ASSETS = f"""<asset>{TENT}{HILLS}<mesh name="points" vertex="0 0 0  .4 0 0  0 .4 0  0 0 .4  .1 .1 .1"/>
  <material name="glass" rgba="1 1 1 0"/><material name="paint" rgba="1 0 0 1"/></asset>"""


def measured(path: Path, **options: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ours and MuJoCo's in the model's first pose."""
    run = artsim.simulate(artsim.load(path), steps=1, contacts=False, record=["sensors"], **options)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return np.array(run["sensors"][0]), np.array(data.sensordata)


def scene(tmp_path: Path, body: str, sensors: str) -> Path:
    path = tmp_path / "scene.xml"
    path.write_text(f"<mujoco>{ASSETS}<worldbody>{body}</worldbody><sensor>{sensors}</sensor></mujoco>")
    return path


@pytest.mark.parametrize("kind", SHAPES)
def test_rays_against(tmp_path: Path, kind: str) -> None:
    """From around it and from inside, at it and past it."""
    rng = np.random.default_rng(len(kind))
    sites, sensors = "", ""
    for n in range(60):
        place, aim = rng.normal(size=3) * (0.9 if n < 45 else 0.1), rng.normal(size=3) * 0.25
        way = aim - place if n % 5 else rng.normal(size=3)
        numbers = " ".join(map(repr, map(float, place)))
        axis = " ".join(map(repr, map(float, way)))
        sites += f'<site name="s{n}" pos="{numbers}" zaxis="{axis}"/>'
        sensors += f'<rangefinder site="s{n}" data="{ALL}"/>'
    still = "plane" in SHAPES[kind] or "hfield" in SHAPES[kind]
    before, after = ("", "") if still else ('<body pos=".1 0 0"><joint/>', "</body>")
    path = scene(
        tmp_path,
        f"""{before}<geom {SHAPES[kind]} pos=".02 -.03 .01" euler="20 -40 70"/>{after}
        <body><freejoint/><geom size=".01" pos="9 9 9" rgba="1 1 1 0"/>{sites}</body>""",
        sensors,
    )
    ours, theirs = measured(path)
    assert 8 < np.count_nonzero(theirs.reshape(60, 14)[:, 0] >= 0) < 60
    assert ours == pytest.approx(theirs, abs=2e-7 if kind in ("mesh", "hull", "hfield") else 1e-10)  # floats


def test_what_is_not_seen(tmp_path: Path) -> None:
    """Geoms of the site's own body and those that are wholly transparent; what only looks is seen, groups too."""
    path = scene(
        tmp_path,
        """<geom type="plane" size="0 0 1" pos="0 0 -1"/>
        <geom size=".1" pos="0 0 5" rgba="1 0 0 0"/><geom size=".1" pos="0 0 4" material="glass"/>
        <geom size=".1" pos="1 0 3" material="paint" rgba="1 1 1 0"/><geom size=".1" pos="2 0 3" contype="0"
          conaffinity="0" group="5"/>
        <body><freejoint/><geom size=".2"/><site name="up"/><site name="down" zaxis="0 0 -1"/>
          <site name="one" pos="1 0 0"/><site name="two" pos="2 0 0"/>
          <body pos="0 0 1"><joint/><geom size=".05"/><site name="back" zaxis="0 0 -1"/></body></body>
        <site name="fixed" pos="0 0 -.5" zaxis="0 0 -1"/><site name="rising" pos="0 0 -.5"/>""",
        "".join(f'<rangefinder site="{name}"/>' for name in ("up", "down", "one", "two", "back", "fixed", "rising"))
        + '<rangefinder name="near" site="two" cutoff=".7"/><rangefinder site="fixed" cutoff=".4"/>',
    )
    ours, theirs = measured(path)
    assert theirs == pytest.approx([0.95, 1, 2.9, 2.9, 0.8, -1, 0.3, 0.7, -0.4])
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_labels(tmp_path: Path) -> None:
    path = scene(
        tmp_path,
        '<body><joint/><geom size=".1"/><site name="s"/></body>',
        '<rangefinder name="a" site="s"/><rangefinder name="b" site="s" data="dist normal"/>',
    )
    run = artsim.simulate(artsim.load(path), steps=1, record=["sensors"])
    assert run.labels.sensor == ("a", "b.dist", "b.normal.x", "b.normal.y", "b.normal.z")
    assert run.labels.sensor_units == ("m", "m", "1", "1", "1")
    assert run["sensors"][0].tolist() == [-1, -1, 0, 0, 0]


def test_the_ground_is_seen(tmp_path: Path) -> None:
    path = scene(
        tmp_path,
        '<body pos="0 0 1"><joint/><geom size=".1"/><site name="s" zaxis="0 0 -1"/></body>',
        '<rangefinder site="s"/>',
    )
    run = artsim.simulate(artsim.load(path), steps=1, ground=True, record=["sensors"])
    assert run["sensors"][0] == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        ('<rangefinder site="s" data="point origin"/>', "want each once and in the order dist dir origin point"),
        ('<rangefinder site="s" data="dist dist"/>', "want each once"),
        ('<rangefinder site="s" data="dust"/>', "did you mean 'dist'"),
        ("<rangefinder/>", "has no 'site' attribute"),
        ('<rangefinder site="t"/>', "site 't' does not exist"),
    ],
)
def test_refused(tmp_path: Path, sensor: str, message: str) -> None:
    path = scene(tmp_path, '<body><joint/><geom size=".1"/><site name="s"/></body>', sensor)
    with pytest.raises(ModelError, match=message):
        artsim.load(path)


def test_those_of_cameras_are_named_and_left_out(tmp_path: Path) -> None:
    body = '<body><joint/><geom size=".1"/><camera name="c" resolution="2 2"/></body>'
    robot = artsim.load(scene(tmp_path, body, '<rangefinder name="eye" camera="c"/>'))
    assert not robot.articulation.sensors
    assert any("'eye'" in str(note) and "cameras are not kept" in str(note) for note in robot.articulation.notes)


@pytest.mark.parametrize(
    "name",
    [
        "dm_control/third_party/ant/ant.xml",
        "mujoco/test/engine/testdata/ray/ray_swing.xml",
        "mujoco/test/testdata/model.xml",
    ],
)
def test_public_models(name: str) -> None:
    """In their first pose."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    robot = artsim.load(folder / "files" / name, ignore_unsupported=True)
    run = artsim.simulate(robot, steps=1, contacts=False, record=["sensors"])
    ours = dict(zip(run.labels.sensor, run["sensors"][0].tolist(), strict=True))
    model = mujoco.MjModel.from_xml_path(str(folder / "files" / name))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rays = [n for n in range(model.nsensor) if model.sensor_type[n] == mujoco.mjtSensor.mjSENS_RANGEFINDER]
    rays = [n for n in rays if model.sensor_objtype[n] == mujoco.mjtObj.mjOBJ_SITE]
    assert rays
    for n in rays:
        at, dim = model.sensor_adr[n], model.sensor_dim[n]
        name = model.sensor(n).name or f"rangefinder_{n}"
        mine = [value for label, value in ours.items() if label == name or label.startswith(f"{name}.")]
        assert mine == pytest.approx(data.sensordata[at : at + dim].tolist(), abs=1e-6), name
