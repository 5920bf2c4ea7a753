"""Packs of runs with options that reach into every stage of a step: drives whose gains are accelerations, friction that
goes by the load, sleep with delays, --scheme-beta, --continuous, built-in controllers. Every lane is the single run,
with masses, gains and frictions of its own, and depends on no other lane.

The truth of what the options do is in their own tests; here the single run is the truth, sample by sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import prepare
from artsim.sim.foundation.jit import _checked
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from tests.runs.test_packed_rows import CONNECT, LINKAGE, SAMPLES, arm

STEPS = 120

LEG = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 .1"/>
<body pos="0 0 .42"><joint name="z" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .05" mass="3"/>
<body><joint name="hip" axis="0 1 0" range="-40 40"/><geom type="capsule" fromto="0 0 0 .1 0 -.2" size=".02" mass=".5"/>
<body pos=".1 0 -.2"><joint name="knee" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.1 0 -.2" size=".02"
mass=".3"/></body></body></body></worldbody></mujoco>"""
"""A leg that falls on the ground."""

SERVED = {"target": {"hip": 0.3, "knee": -0.4}, "stiffness": {"hip": 900.0, "knee": 2500.0}, "damping": {"*": 40.0}}
BLADES = """<mujoco><option timestep="0.004" gravity="0 0 0"/><worldbody><geom type="box" size="3 3 .002"/>
<geom type="capsule" size=".005 .1" pos="-.15 5.1 .1" condim="1"/><body pos="0 5 .1"><joint name="q" axis="0 0 1"/>
<geom type="box" size=".1 .01 .001" pos=".12 0 0" mass=".02" condim="1"/></body>
<body pos="0 0 .6"><freejoint name="n"/>
<geom type="capsule" size=".004 .25" mass=".05" euler="90 0 0" condim="1"/></body></worldbody></mujoco>"""
"""A propeller with a finger in its way, and a needle that comes down turning on a thin plate."""

LATE = arm(actuators='<position joint="a" kp="30" kv="9" delay="0.04" nsample="24"/><motor joint="c" gear=".1"/>')
MOVED = """<actuator><position joint="hip" kp="20" dampratio=".5"/><general joint="knee" gaintype="affine"
gainprm="9 -8 -1" forcerange="-4 4"/></actuator></mujoco>"""
TREE = """<mujoco><option timestep="0.002"/><worldbody><body><freejoint name="root"/>
<inertial pos="0 0 .1" mass="2" diaginertia=".3 .2 .1"/>
<body pos="0 0 .5"><joint name="ball" type="ball" damping=".02"/>
<inertial pos="0 .1 .2" mass="1" diaginertia=".1 .2 .3"/>
<body pos="0 0 .4"><joint name="slide" type="slide" axis="1 0 0" range="-.4 .4" stiffness="25" damping=".1"/>
<inertial pos="0 0 0" mass=".5" diaginertia=".1 .1 .1"/></body></body></body>
<body pos="3 0 0"><joint name="a" axis="0 1 0"/><inertial pos=".2 0 0" mass="1" diaginertia=".01 .02 .02"/>
<body pos=".4 0 0"><joint name="b" axis="0 1 0"/><inertial pos=".2 0 0" mass=".5" diaginertia=".01 .02 .02"/>
</body></body></worldbody><equality><joint joint1="b" joint2="a" polycoef=".1 -1 .4 0 0"/></equality>
<actuator><position joint="a" kp="30" dampratio=".5" forcerange="-9 9"/><motor joint="b" gear="2"/></actuator>
</mujoco>"""
"""A free body with a ball and a slide, and an arm with a coupling that curves."""

MODELS = {
    "tree": TREE,
    "unlimited tree": TREE.replace(' range="-.4 .4"', ""),
    "leg": LEG,
    "moved leg": LEG.replace("</mujoco>", MOVED),
    "blades": BLADES,
    "late": LATE.replace('axis="0 1 0"', 'axis="0 0 1" damping="6"').replace("<option", '<option gravity="0 0 0"'),
    "hard loop": LINKAGE.format(equality=CONNECT.format("")),
    "tendons": arm(t='frictionloss=".3" stiffness="20"', u='armature=".02" damping=".4"')
    .replace('name="b"', 'name="b" actuatorgravcomp="true"')
    .replace('<body pos=".3 0 0"><joint name="c"', '<body pos=".3 0 0" gravcomp="1"><joint name="c"'),
    "couplings": arm(equality='<joint joint1="b" joint2="a" polycoef="0 .5 .2 0 0" solref=".01 1"/>'),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "acceleration drives": ("leg", {**SERVED, "drive_mode": "acceleration"}),
    "bounded acceleration drives": (
        "leg",
        {**SERVED, "drive_mode": "acceleration", "drive_limit": {"hip": 15.0, "knee": 6.0}, "contacts": False},
    ),
    "acceleration drives of damped links": (
        "leg",
        {**SERVED, "drive_mode": "acceleration", "link_damping": {"*": (2.0, 0.1)}},
    ),
    "friction by the load": ("leg", {"friction_coefficient": {"hip": 0.03, "knee": 0.02}}),
    "friction of both kinds": (
        "hard loop",
        {"friction_coefficient": {"a": 0.02}, "joint_friction": {"*": 0.1}},
    ),
    "scheme-beta": ("leg", {**SERVED, "scheme_beta": 0.6}),
    "scheme-beta with loops": ("hard loop", {"scheme_beta": 0.7}),
    "scheme-beta with couplings": ("couplings", {"scheme_beta": 0.5, "scheme_alpha": 0.8}),
    "continuous": ("blades", {"v0": {"q": 400.0, "n.vz": -60.0, "n.wx": 160.0}, "continuous": True}),
    "rk4": ("unlimited tree", {"integrator": "rk4", "v0": {"root.wx": 3.0}}),
    "acceleration drives under rk4": (
        "unlimited tree",
        {"integrator": "rk4", "stiffness": {"slide": 90.0}, "damping": {"slide": 5.0}, "drive_mode": "acceleration"},
    ),
    "all at once": (
        "moved leg",
        {
            **SERVED,
            "drive_mode": "acceleration",
            "drive_limit": {"hip": 15.0, "knee": 6.0},
            "friction_coefficient": {"hip": 0.03, "knee": 0.02},
            "scheme_beta": 0.8,
            "continuous": True,
        },
    ),
    "gravity compensation": ("leg", {"controller": "gravity-compensation", "damping": {"*": 2.0}}),
    "computed torque": (
        "couplings",
        {"controller": "computed-torque", "target": {"a": 0.3, "b": -0.2}, "joint_friction": {"*": 0.1}},
    ),
    "computed torque beside tendons": (
        "tendons",
        {"controller": "computed-torque", "target": {"a": 0.3, "b": -0.2}},
    ),
    "computed torque under rk4": (
        "unlimited tree",
        {"integrator": "rk4", "controller": "computed-torque", "target": {"slide": 0.2, "a": 0.3}},
    ),
    "sleep with delays": ("late", {"sleep_threshold": 1e-6, "sleep_time": 0.02}),
}
INCLUDED = {"acceleration drives", "bounded acceleration drives", "friction by the load", "rk4"}
"""Cases with kernels of their own whose code is in those of `all at once` and `acceleration drives under rk4` too: not
compiled again with bounds checks.
"""
VARIED = {"mass": (0.7, 1.4), "drive_stiffness": (0.5, 1.5), "drive_damping": (0.8, 1.2), "joint_friction": (0.5, 2.0)}


def _targets(robot: artsim.Robot, options: dict[str, Any]) -> Any:
    """The same targets in all rows, of which `options` lose theirs."""
    given = options.pop("target", {})
    row = [given.get(name, 0.0) for name in robot.labels.dofs]
    return np.tile(row, (3, 1))


def drawn(case: str, folder: Path, samples: int, threads: int = 1) -> MemoryRollout:
    """A rollout of samples that differ in all that the case has, with inputs that change twice."""
    name, options = CASES[case]
    path = folder / f"{name}.xml"
    path.write_text(MODELS[name])
    robot = artsim.load(path)
    start, zero = np.array([0, 50, 90]), np.zeros((3, robot.nv))
    options = dict(options)
    if options.get("drive_mode") is None or name in ("moved leg", "unlimited tree"):
        control = np.array([[0.3], [0.3], [0.6]]) * np.ones((3, prepare(robot.articulation, RunConfig()).control.size))
        options["controls"] = Controls(start, zero, _targets(robot, options), zero, control)
    made = artsim.rollout(
        robot,
        samples=samples,
        steps=STEPS,
        seed=2,
        velocity_spread=0.3,
        threads=threads,
        randomise=VARIED,
        check=False,
        **options,
    )
    assert isinstance(made, MemoryRollout)
    return made


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if _checked() and case in INCLUDED else pytest.mark.small) for case in CASES]
)
def test_every_lane_is_the_single_run(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = drawn(case, tmp_path, SAMPLES)
    assert made.outcome.packed
    assert made.outcome.solved_alone <= 0.05 * made.outcome.steps
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    single = drawn(case, tmp_path, SAMPLES)
    size = np.maximum(1.0, np.abs(single["qpos"]).max(axis=1, keepdims=True))
    # the blades turn at 400 rad/s: a single run solves their contacts to 1e-15 m/s, after sweeps, a lane to 1e-13 m/s
    assert (np.abs(made["qpos"] - single["qpos"]) / size).max() < (1e-10 if case == "continuous" else 1e-11)
    assert np.abs(single["qpos"] - single["qpos"][:, :1]).max() > 0.02


def test_samples_with_limits_under_rk4_leave_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slide's range ends the motion of faster samples, by steps of the default; no sample stops."""
    monkeypatch.setitem(MODELS, "unlimited tree", TREE.replace("-.4 .4", "-.015 .015"))
    made = drawn("rk4", tmp_path, 9)
    assert not made.outcome.packed and made.outcome.stopped == 0
    slide = 7 + 4  # after the coordinates of the free joint and of the ball
    reached = np.abs(made["qpos"][:, :, slide]).max(axis=1)
    assert reached.max() == pytest.approx(0.015, abs=1e-4)
    assert (reached < 0.0149).any()


@pytest.mark.parametrize(
    "case", ["acceleration drives", "rk4", "friction by the load", "continuous", "sleep with delays"]
)
def test_bytes_depend_on_nobody_else(case: str, tmp_path: Path) -> None:
    whole = drawn(case, tmp_path, 16)
    for samples, threads in ((16, 2), (3, 1), (11, 1)):
        other = drawn(case, tmp_path, samples, threads)
        for variable in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[variable][:samples].tobytes() == other[variable].tobytes(), (variable, samples, threads)
