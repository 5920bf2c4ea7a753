"""Length ranges that a file leaves open, found by pulling, against MuJoCo's compiler.

Limits are hard here. MuJoCo's are made so for a sharp comparison (an impedance of almost 1); with its default it finds
ranges that are wider by what its limits yield to the pull.
"""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import prepare
from artsim.io.runs.replay import verify
from artsim.io.runs.run import run
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.length_range import with_length_ranges
from tests.equipment.test_actuators import read_text

HARD = 'solimplimit="0.99999 0.99999 0.001"'
TWO_LINKS = """<mujoco>{options}<default><joint {hard}/><tendon {hard}/></default><worldbody>
<site name="a" pos="0 .1 0"/><body><joint name="j" range="-40 70" {j}/><geom size=".1" pos=".3 0 0"/>
<body pos=".6 0 0"><joint name="k" range="-10 110" frictionloss="1" damping="2"/><geom size=".1" pos=".2 0 0"/>
<site name="b" pos=".3 .05 0"/></body></body></worldbody>
<tendon><spatial name="t"><site site="a"/><site site="b"/></spatial>
<fixed name="f" range="-.5 .8"><joint joint="j" coef="1"/><joint joint="k" coef=".5"/></fixed></tendon>
{more}<actuator>{actuators}</actuator></mujoco>"""
COUPLED = '<equality><joint joint1="k" joint2="j" polycoef=".3 .5 0 .1 0" solimp="0.99999 0.99999 0.001"/></equality>'
ROBOTS = {
    "joint, geared backwards": {"actuators": '<muscle joint="j" gear="-2"/>', "j": 'stiffness="50" springref="90"'},
    "tendons": {"actuators": '<muscle tendon="t"/><muscle tendon="f"/>'},
    "joint that a tendon stops": {"actuators": '<muscle joint="j"/><muscle joint="k"/>'},
    "joint that leads another to its limit": {"actuators": '<muscle joint="j"/>', "more": COUPLED},
    "weak pull, long": {
        "actuators": '<muscle tendon="t"/>',
        "options": '<compiler><lengthrange accel="5" inttotal="20" timestep="0.005" interval="1"/></compiler>',
    },
    "bounded force": {
        "actuators": '<muscle tendon="t"/>',
        "options": '<compiler><lengthrange maxforce="10" inttotal="30"/></compiler>',
    },
}


def text_of(parts: dict[str, str], hard: str = HARD) -> str:
    defaults = {"options": "", "more": "", "j": "", "hard": hard}
    return TWO_LINKS.format(**{**defaults, **parts})


def loose(parts: dict[str, str]) -> str:
    """With hard limits, and without the tendon that stops the joints before their own."""
    return text_of(parts, hard="").replace('range="-.5 .8"', "")


def found(text: str) -> np.ndarray:
    """The ranges of all actuators (na, 2)."""
    return np.array([a.length_range or (0.0, 0.0) for a in with_length_ranges(read_text(text), []).actuators])


@pytest.mark.parametrize("name", ROBOTS)
def test_ranges_are_mujocos_with_hard_limits(name: str) -> None:
    model = mujoco.MjModel.from_xml_string(text_of(ROBOTS[name]))
    np.testing.assert_allclose(found(text_of(ROBOTS[name])), model.actuator_lengthrange, atol=1e-5)


@pytest.mark.parametrize("name", ROBOTS)
def test_ranges_are_within_mujocos_with_soft_limits(name: str) -> None:
    text = text_of(ROBOTS[name], hard="")
    ours, theirs = found(text), mujoco.MjModel.from_xml_string(text).actuator_lengthrange
    width = theirs[:, 1] - theirs[:, 0]
    assert np.all(np.abs(ours - theirs).max(axis=1) < 3e-3 * width)
    assert np.all(ours[:, 1] - ours[:, 0] < width)


def test_a_range_that_no_limit_ends() -> None:
    """The longest way of a tendon lies within the joint's range; the pull swings about it."""
    text = """<mujoco><worldbody><site name="a" pos="0 .5 0"/><body><joint name="j" range="-160 30"/>
<geom size="0.1" pos=".3 0 0"/><site name="b" pos=".1 -.3 0"/></body></worldbody>
<tendon><spatial name="t"><site site="a"/><site site="b"/></spatial></tendon>
<actuator><muscle tendon="t"/></actuator></mujoco>"""
    (low, high), theirs = found(text)[0], mujoco.MjModel.from_xml_string(text).actuator_lengthrange[0]
    assert high == pytest.approx(0.5 + np.hypot(0.1, 0.3), abs=1e-5) == theirs[1]
    assert low == pytest.approx(theirs[0], abs=2e-4)


SOURCES = [
    ('<lengthrange uselimit="true"/>', '<muscle joint="j" gear="-2"/><muscle tendon="f" gear="3"/>'),
    ('<lengthrange useexisting="false" uselimit="true"/>', '<muscle joint="j" lengthrange="-9 9"/>'),
    ('<lengthrange mode="none"/>', '<muscle joint="j" lengthrange="-9 9"/>'),
    ('<lengthrange mode="none" useexisting="false"/>', '<muscle joint="j" lengthrange="-9 9"/><muscle joint="k"/>'),
    ("", '<muscle joint="j" lengthrange="-9 9"/>'),
]


@pytest.mark.parametrize(("option", "actuators"), SOURCES)
def test_what_the_file_gives_is_not_searched_for(option: str, actuators: str) -> None:
    text = text_of({"actuators": actuators, "options": f"<compiler>{option}</compiler>"})
    robot = read_text(text)
    assert with_length_ranges(robot, []) is robot
    ours = [actuator.length_range or (0.0, 0.0) for actuator in robot.actuators]
    np.testing.assert_allclose(ours, mujoco.MjModel.from_xml_string(text).actuator_lengthrange)


def test_a_given_range_is_found_again_on_request() -> None:
    option = '<compiler><lengthrange useexisting="false"/></compiler>'
    text = loose({"actuators": '<muscle joint="j" lengthrange="-9 9"/>', "options": option})
    np.testing.assert_allclose(found(text), np.radians([[-40, 70]]), atol=1e-12)


def test_a_length_without_end_is_refused() -> None:
    text = """<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>
<actuator><muscle name="m" joint="j"/></actuator></mujoco>"""
    with pytest.raises(ValueError, match="did not converge"):
        mujoco.MjModel.from_xml_string(text)
    robot = read_text(text)
    with pytest.raises(ModelError, match=r"^robot.xml:2: actuator 'm': does not settle in 10 s: .*give it a lengthr"):
        prepare(robot, RunConfig(steps=1))


def test_what_has_one_length_only_is_refused() -> None:
    option = '<compiler><lengthrange accel="0"/></compiler>'
    text = text_of({"actuators": '<muscle joint="j"/>', "options": option})
    with pytest.raises(ValueError, match="Invalid lengthrange"):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match="actuator 'actuator_0': has no range of lengths"):
        found(text)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ('timestep="1e-9"', "inttotal is 10 s, more than 1000000 steps of 1e-09 s"),
        ('inttotal="0"', "inttotal is 0, want at least 0.01"),
        ('accel="-1"', "accel is -1, want at least 0"),
        ('mode="some"', "mode is 'some'"),
        ('uselimit="1"', "uselimit is '1'"),
    ],
)
def test_wrong_options_are_refused(option: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_text(text_of({"actuators": "", "options": f"<compiler><lengthrange {option}/></compiler>"}))
    assert message in str(caught.value)


def test_a_run_has_the_forces_of_the_range_that_is_told(tmp_path: Path) -> None:
    """The same bytes as with the range written into the file, run after run."""
    forces = []
    for attribute in ("", "", f'lengthrange="{math.radians(-40)!r} {math.radians(70)!r}"'):
        path = tmp_path / "robot.xml"
        path.write_text(loose({"actuators": f'<muscle name="m" joint="j" force="9" {attribute}/>'}))
        plan = prepare(load_articulation(path), RunConfig(contacts=False, steps=50, control={"m": 0.7}))
        assert any("found by simulation: 'm' -0.6981 to 1.222" in note for note in plan.notes) != bool(attribute)
        rows: list[np.ndarray] = []
        run(plan, on_block=lambda block, _, rows=rows: rows.append(block["tau_drive"].copy()))
        forces.append(np.concatenate(rows))
    assert np.array_equal(forces[0], forces[1]) and np.any(forces[0])
    np.testing.assert_allclose(forces[0], forces[2], rtol=1e-12)


def test_a_run_is_reproduced(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(text_of({"actuators": '<muscle name="m" tendon="t"/>'}))
    artsim.simulate(artsim.load(path), steps=30, control={"m": 0.5}, output=tmp_path / "run.h5")
    assert verify(tmp_path / "run.h5", lambda text, name, config: load_text(text, name=name)) is None
