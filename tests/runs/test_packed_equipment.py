"""Packs of robots with tendons, muscles, filters, media, springs, pushes and bodies that touch each other: every lane
is the single run, to rounding, and depends on no other lane.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import prepare
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from tests.conftest import ROOT

STEPS = 120

MUSCLE = """<mujoco><option timestep="0.002"/><worldbody><site name="anchor" pos="0 0 .4"/>
<body pos="0 0 0"><joint name="elbow" axis="0 1 0" damping="0.02" range="-100 30"/>
<geom name="bone" type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6"/>
<geom name="pulley" type="sphere" size=".05" mass="0"/><site name="insertion" pos=".12 0 .02"/></body></worldbody>
<contact><exclude body1="world" body2="world"/></contact>
<tendon><spatial name="biceps"><site site="anchor"/><geom geom="pulley"/><site site="insertion"/></spatial></tendon>
<actuator><muscle name="pull" tendon="biceps" lengthrange=".2 .5" force="60"/></actuator></mujoco>"""

FILTERS = """<mujoco><option timestep="0.002"/><worldbody>
<body><joint name="a" axis="0 1 0"/><inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .01"/>
<body pos="0 0 -.4"><joint name="b" axis="0 1 0" actuatorfrcrange="-2 2"/>
<inertial pos="0 0 -.2" mass=".5" diaginertia=".01 .01 .01"/></body></body></worldbody>
<actuator><general joint="a" dyntype="filter" dynprm=".05" gainprm="20" biastype="affine" biasprm="0 -20 -1"/>
<general joint="b" dyntype="integrator" actrange="-1 1" gainprm="9" biastype="affine" biasprm="0 -9 -.2"
forcerange="-1.5 1.5"/><general joint="b" dyntype="filterexact" dynprm=".02" gainprm="2"/></actuator></mujoco>"""

DRONE = """<mujoco><option timestep="0.002" density="1.2" viscosity="1e-5" wind="1 0 0"/><worldbody>
<geom type="plane" size="9 9 .1"/><body pos="0 0 .15"><freejoint/>
<geom type="box" size=".15 .15 .03" mass="1"/><site name="p" pos=".15 .15 0"/><site name="q" pos="-.15 -.15 0"/>
<body pos="0 0 .05" gravcomp="1"><joint name="gimbal" type="ball" stiffness=".3" damping=".01"/>
<geom size=".03" pos="0 0 .04" mass=".1" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><motor site="p" gear="0 0 9 0 0 .3"/><motor site="q" gear="0 0 9 0 0 -.3"/></actuator></mujoco>"""

CLAW = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 .1"/>
<body name="palm" pos="0 0 .4"><freejoint/><geom type="box" size=".1 .05 .03" mass="1"/>
<body name="left" pos=".08 0 0"><joint name="l" axis="0 1 0" range="-60 60" stiffness=".5"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".1"/></body>
<body name="right" pos="-.08 0 0"><joint name="r" axis="0 1 0" range="-60 60"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".1"/></body></body></worldbody>
<tendon><fixed name="span"><joint joint="l" coef="1"/><joint joint="r" coef="-1"/></fixed>
<fixed name="band" limited="true" range="-.12 .12" stiffness="2" damping=".01">
<joint joint="l" coef="1"/><joint joint="r" coef=".5"/></fixed></tendon>
<actuator><motor joint="l" gear="1"/><motor joint="r" gear="-1"/><motor tendon="span" gear=".3"/></actuator></mujoco>"""
"""Two fingers that meet below a palm which falls on the ground; one of two tendons that span them is limited."""

SPRINGS = """<mujoco><option timestep="0.002"/><worldbody>
<body><joint name="x" type="slide" axis="1 0 0" stiffness="40 300 9000" damping=".5 2 1"/>
<inertial pos="0 0 0" mass=".4" diaginertia=".01 .01 .01"/>
<body pos="0 0 .3"><joint name="b" type="ball" stiffness="1 2 3"/>
<inertial pos="0 0 .1" mass=".3" diaginertia=".01 .02 .01"/></body></body></worldbody></mujoco>"""

SERVOS = """<mujoco><option timestep="0.002"/><worldbody><site name="base"/>
<body><joint name="a" axis="0 1 0"/><inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .01"/>
<body pos="0 0 -.4"><joint name="b" axis="0 1 0" actuatorfrcrange="-3 3"/>
<inertial pos="0 0 -.2" mass=".5" diaginertia=".01 .01 .01"/>
<body pos="0 0 -.4"><joint name="c" axis="1 0 0"/><inertial pos="0 0 -.1" mass=".2" diaginertia=".002 .002 .002"/>
<body pos="0 0 -.2"><joint name="ball" type="ball"/><inertial pos="0 .1 -.1" mass=".2" diaginertia=".002 .003 .002"/>
<site name="tip"/></body></body></body></body></worldbody><actuator>{}</actuator></mujoco>"""
"""A chain with the actuators that a test gives it."""

RATIOS = SERVOS.format(
    '<position joint="a" kp="20" dampratio=".7"/><position joint="b" kp="30" dampratio="1" forcerange="-2 2"/>'
    '<position joint="c" kp="9" dampratio=".4" timeconst=".02"/>'
)
VARYING = SERVOS.format(
    '<general joint="a" gaintype="affine" gainprm="9 -8 -1"/>'
    '<general joint="b" gaintype="affine" gainprm="5 -30 -.5" biastype="affine" biasprm="0 -2 -.1" gear="-1"'
    ' forcerange="-4 4"/>'
    '<general joint="c" gaintype="affine" gainprm="1 9 -.2" biastype="affine" biasprm=".1 -4 -.1" forcerange="-.6 .6"/>'
    '<general joint="c" biastype="affine" biasprm="0 -1 .02"/><damper joint="a" kv="2" ctrlrange="0 1"/>'
    '<pid joint="b" kp="6" kv=".2" ki="2" imax=".4" slewmax="5" input="pos ff"/>'
)
TURNS = SERVOS.format(
    '<orientation joint="ball" kp=".7" kv=".03" forcerange="0 .3"/>'
    '<orientation site="tip" refsite="base" kp=".4" dampratio=".6"/>'
    '<position joint="ball" gear="0 1 0" kp=".2" kv=".01"/><motor joint="a"/>'
)

SUCKERS = """<mujoco><option timestep="0.002"/><worldbody><geom name="ceiling" type="box" size="2 2 .1" pos="0 0 1.1"/>
<body name="cup" pos="0 0 .95"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/>
<body name="rod" pos="0 0 -.05"><joint name="swing" axis="0 1 0" damping=".01"/>
<geom type="capsule" fromto="0 0 -.02 0 0 -.2" size=".02" mass=".2"/></body></body>
<body name="magnet" pos="1 0 .9501"><freejoint name="m"/><geom size=".05" mass=".2" adhesion="3" gap=".01"
friction=".2 .005 .0001"/></body></worldbody>
<actuator><adhesion name="vacuum" body="cup" ctrlrange="0 1" gain="60"/><motor joint="swing" gear=".4"/></actuator>
</mujoco>"""
"""A cup that sucks at the ceiling, with a rod that swings below it, and a ball that sticks there."""

MODELS = {"muscle": MUSCLE, "filters": FILTERS, "drone": DRONE, "claw": CLAW, "springs": SPRINGS}
MODELS |= {"damping ratios": RATIOS, "varying gains": VARYING, "servos of rotations": TURNS, "adhesion": SUCKERS}


def drawn(robot: artsim.Robot, samples: int, **options: Any) -> tuple[MemoryRollout, list[Controls]]:
    """A rollout whose samples have controls of their own, new ones every 40 steps."""
    rng = np.random.default_rng(5)
    plan = prepare(robot.articulation, RunConfig())
    start = np.arange(0, STEPS, 40)
    zero = np.zeros((len(start), robot.nv))
    each = [Controls(start, zero, zero, zero, rng.uniform(0, 1, (len(start), plan.control.size))) for _ in range(16)]
    made = artsim.rollout(robot, samples=samples, steps=STEPS, controls=each[:samples], seed=2, **options)
    assert isinstance(made, MemoryRollout)
    return made, each


def load(name: str, tmp_path: Path) -> artsim.Robot:
    path = tmp_path / f"{name}.xml"
    path.write_text(MODELS[name])
    return artsim.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_every_lane_is_the_single_run(name: str, tmp_path: Path) -> None:
    robot = load(name, tmp_path)
    made, each = drawn(robot, 9, velocity_spread=0.3)
    assert made.outcome.packed
    assert made.outcome.solved_alone <= 0.01 * made.outcome.steps
    moved = 0.0
    for k in (0, 4, 8):
        one = artsim.simulate(robot, steps=STEPS, controls=each[k], v0=made["qvel"][k, 0], record=("qpos", "qvel"))
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(made["qvel"][k], one["qvel"], rtol=0, atol=1e-10)
        moved = max(moved, np.abs(one["qpos"] - one["qpos"][0]).max())
    assert moved > 0.02


def test_a_lane_that_starts_deep_in_the_ground_is_the_single_run(tmp_path: Path) -> None:
    """Palms that start up to 0.3 m inside: of the loads of many corners in the ground, both widths find the same."""
    path = tmp_path / "claw.xml"
    path.write_text(CLAW.replace("<freejoint/>", '<freejoint name="palm"/>'))
    robot = artsim.load(path)
    spread = {"palm.z": 0.5}
    made = artsim.rollout(robot, samples=9, steps=60, seed=1, spread=spread, velocity_spread=0.3)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    assert np.count_nonzero(np.asarray(made["start_depth"]) > 0.1) > 1
    for k in range(9):
        one = artsim.simulate(robot, steps=60, q0=made["qpos"][k, 0], v0=made["qvel"][k, 0], record=("qpos",))
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["muscle", "claw", "varying gains", "adhesion"])
def test_bytes_depend_on_nobody_else(name: str, tmp_path: Path) -> None:
    robot = load(name, tmp_path)
    whole, _ = drawn(robot, 16, velocity_spread=0.5, threads=1)
    for samples, threads in ((16, 2), (3, 1), (11, 1)):
        other, _ = drawn(robot, samples, velocity_spread=0.5, threads=threads)
        for variable in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[variable][:samples].tobytes() == other[variable].tobytes(), (variable, samples, threads)


def test_the_claw_s_fingers_meet_and_its_tendon_is_at_its_limit(tmp_path: Path) -> None:
    """What the lanes of that test do, by the single run; MuJoCo's tendon and contacts say that it happens."""
    robot = load("claw", tmp_path)
    made, each = drawn(robot, 9, velocity_spread=0.3)
    touched = limited = 0
    for k in range(9):
        one = artsim.simulate(
            robot, steps=STEPS, controls=each[k], v0=made["qvel"][k, 0], record=("qpos", "contacts", "tendon_length")
        )
        fingers = {robot.labels.links.index("left"), robot.labels.links.index("right")}
        touched += sum(
            {int(a), int(b)} == fingers for a, b in zip(one.contacts["link_a"], one.contacts["link_b"], strict=True)
        )
        band = np.abs(one["tendon_length"][:, 1])
        assert band.max() < 0.12 + 1e-9
        limited += np.count_nonzero(band > 0.12 - 1e-9)
    assert touched > 20
    assert limited > 20


def test_muscles_scale_with_the_masses_of_each_sample(tmp_path: Path) -> None:
    """A muscle's strength without a given force goes by the inertia that it moves."""
    path = tmp_path / "muscle.xml"
    path.write_text(MUSCLE.replace('force="60"', 'scale="150"'))
    robot = artsim.load(path)
    made = artsim.rollout(robot, samples=9, steps=60, randomise={"mass": (0.5, 2.0)}, control={"pull": 0.7})
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    for k in (0, 5):
        heavier = tmp_path / "heavier.xml"
        factor = float(made["mass_factor"][k, -1])
        heavier.write_text(path.read_text().replace('mass=".6"', f'mass="{0.6 * factor!r}"'))
        one = artsim.simulate(artsim.load(heavier), steps=60, control={"pull": 0.7}, record=("qpos",))
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)


def test_wrenches_on_links_are_packed(tmp_path: Path) -> None:
    robot = load("drone", tmp_path)
    options: dict[str, Any] = {"steps": STEPS, "wrench": {"*": (0.1, 0.2, 3.0, 0.01, 0.0, 0.02)}}
    made = artsim.rollout(robot, samples=9, velocity_spread=0.2, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    assert made.outcome.solved_alone < 0.02 * made.outcome.steps
    still = artsim.rollout(robot, samples=9, velocity_spread=0.2, steps=STEPS)
    assert np.abs(made["qpos"] - still["qpos"]).max() > 0.01
    one = artsim.simulate(robot, v0=made["qvel"][3, 0], record=("qpos",), **options)
    np.testing.assert_allclose(made["qpos"][3], one["qpos"], rtol=0, atol=1e-11)


def test_computed_torque_does_not_know_of_wrenches() -> None:
    """The pushed arm leaves the pose that it is told to hold, in packs as far as in a single run."""
    robot = artsim.load(ROOT / "robots" / "arm7.urdf")
    options: dict[str, Any] = {"steps": STEPS, "controller": "computed-torque", "target": robot.reference}
    made = artsim.rollout(robot, samples=3, wrench={"link_6": (0.0, 9.0, -20.0, 0.0, 0.0, 0.0)}, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    one = artsim.simulate(robot, wrench={"link_6": (0.0, 9.0, -20.0, 0.0, 0.0, 0.0)}, record=("qpos",), **options)
    assert np.ptp(one["qpos"], axis=0).max() > 0.01
    np.testing.assert_allclose(made["qpos"][2], one["qpos"], rtol=0, atol=1e-11)


def test_limits_that_give_way_are_packed(tmp_path: Path) -> None:
    """A claw that does not land, since the loads of fingers that slip on the ground have several solutions."""
    path = tmp_path / "claw.xml"
    path.write_text(CLAW.replace('pos="0 0 .4"', 'pos="0 0 .9"'))
    robot = artsim.load(path)
    soft: dict[str, Any] = {"limit_stiffness": {"l": 30.0, "r": 20.0}, "limit_damping": {"l": 0.1}}
    bounds: dict[str, Any] = {"upper_limit": {"l": 0.1, "r": 0.1}, "lower_limit": {"l": -0.1, "r": -0.1}}
    made, each = drawn(robot, 9, velocity_spread=0.3, **soft, **bounds)
    assert made.outcome.packed
    angles = made["qpos"][..., [robot.coords.index("l"), robot.coords.index("r")]]
    assert np.abs(angles).max() > 0.11
    for k in range(9):
        start = {"v0": made["qvel"][k, 0], **soft, **bounds}
        one = artsim.simulate(robot, steps=STEPS, controls=each[k], record=("qpos",), **start)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-10)
