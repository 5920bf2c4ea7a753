"""artsim rollout: samples agree with single runs, do not depend on each other or on threads, and the file says all."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.draws import RolloutConfig
from artsim.io.rollouts.roll import roll
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import prepare, prepared
from artsim.io.runs.simulate import MemoryRecording
from artsim.loaders.load import load_text
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.foundation.errors import ModelError, StoppedError, UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.varied import VariedArrays
from tests.contact.robot_contacts import quadruped, quadruped_options
from tests.stepping.test_strain import held

ROBOTS = Path(__file__).resolve().parents[2] / "robots"
ARM = ROBOTS / "arm7.urdf"
SERVO = {"stiffness": {"*": 200.0}, "damping": {"*": 20.0}}
VARIED = {"mass": (0.8, 1.2), "damping": (0.5, 1.5), "drive_stiffness": (0.5, 1.5), "drive_damping": (0.9, 1.1)}
FREE = """<mujoco><worldbody><body name="box"><freejoint/>
<inertial pos="0 0 0.1" mass="2" diaginertia="0.3 0.2 0.1"/>
<body name="rod" pos="0 0 0.5"><joint name="hip" type="ball"/>
<inertial pos="0 0 0.2" mass="1" diaginertia="0.1 0.2 0.3"/>
<body name="slider" pos="0 0 0.4"><joint name="slide" type="slide" axis="1 0 0" stiffness="5" damping="0.1"/>
<inertial pos="0 0 0" mass="0.5" diaginertia="0.1 0.1 0.1"/></body></body></body></worldbody></mujoco>"""


def rolled(robot: Any, **options: Any) -> MemoryRollout:
    """A rollout in memory."""
    made = artsim.rollout(robot, **options)
    assert isinstance(made, MemoryRollout)
    return made


def single(robot: Any, controls: Controls | None = None, **settings: Any) -> MemoryRecording:
    """A run in memory."""
    made = artsim.simulate(robot, record=("qpos", "qvel"), controls=controls, **settings)
    assert isinstance(made, MemoryRecording)
    return made


def command(*words: object) -> Result:
    """`artsim rollout …` in this process."""
    return CliRunner().invoke(cli, ["rollout", *map(str, words)])


# ------------------------------------------------------------------ samples are single runs


def test_a_sample_is_the_run_that_starts_where_it_does() -> None:
    """A free-flying tree with a ball and a spring: quaternions, several lanes, more than one pack."""
    robot = artsim.load(_written("free.xml", FREE))
    made = rolled(robot, samples=11, steps=60, spread=0.3, velocity_spread=2.0, seed=3)
    for k in (0, 7, 10):
        start = {"q0": made["qpos"][k, 0], "v0": made["qvel"][k, 0]}
        one = single(robot, steps=60, **start)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(made["qvel"][k], one["qvel"], rtol=0, atol=1e-11)


def test_samples_at_limits_and_with_clamped_drives_are_single_runs() -> None:
    """Limits press and drives are held at their largest forces in some lanes of a pack, and not in others."""
    robot = artsim.load(ARM)
    settings: dict[str, Any] = {"steps": 400, "dt": 0.005, "stiffness": 30.0, "damping": 1.0, "target": np.full(7, 0.1)}
    settings["drive_limit"] = 4.0
    made = rolled(robot, samples=9, spread=2.0, velocity_spread=3.0, **settings)
    assert made.outcome.solved_alone < 0.01 * made.outcome.steps
    at_limit = held = 0
    for k in (0, 4, 8):
        record = ("qpos", "tau_limit", "tau_drive")
        one = artsim.simulate(robot, record=record, q0=made["qpos"][k, 0], v0=made["qvel"][k, 0], **settings)
        at_limit += np.count_nonzero(one["tau_limit"])
        held += np.count_nonzero(np.isclose(np.abs(one["tau_drive"]), 4.0, rtol=1e-9))
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-8)
    assert min(at_limit, held) > 20


def test_drives_turn_balls_and_free_joints_in_packs() -> None:
    """The rotations of the box and of the hip go to their rotation vectors, in every lane as in a single run."""
    robot = artsim.load(_written("free.xml", FREE))
    turns = [name for name in robot.dofs if name.startswith(("hip.w", "box.w"))]
    gains = {"stiffness": dict.fromkeys(turns, 2.0), "damping": dict.fromkeys(turns, 1.5)}
    wanted = dict(zip(turns, (0.3, -0.2, 0.1, 0.2, 0.4, -0.3), strict=False))
    settings: dict[str, Any] = {"steps": 40, "dt": 0.002, "target": wanted, "gravity": (0.0, 0.0, 0.0), **gains}
    made = rolled(robot, samples=5, spread=0.3, seed=1, **settings)
    assert len(turns) >= 3
    assert made.outcome.solved_alone == 0
    for k in (0, 4):
        one = single(robot, q0=made["qpos"][k, 0], **settings)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-12)


def test_spread_moves_joints_and_of_a_base_what_is_named(tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "quadruped.urdf", base="floating")
    base = [n for n, name in enumerate(robot.coords) if name.startswith("root.")]
    knees = [n for n, name in enumerate(robot.coords) if name.endswith("knee")]
    joints = [n for n in range(robot.nq) if n not in base]
    assert len(base) == 7
    assert len(knees) == 4
    options: dict[str, Any] = {"samples": 12, "steps": 1, "gravity": (0.0, 0.0, 0.0)}
    start = rolled(robot, **options)["qpos"][:, 0]
    moved = rolled(robot, spread=0.1, **options)["qpos"][:, 0] - start
    assert not moved[:, base].any()
    assert (np.ptp(moved[:, joints], axis=0) > 0.05).all()
    named = rolled(robot, spread={"root.z": (0.1, 0.3), "*knee": 0.2}, **options)["qpos"][:, 0] - start
    changed = [robot.coords.index("root.z"), *knees]
    assert not np.delete(named, changed, axis=1).any()
    assert ((named[:, changed[0]] >= 0.1) & (named[:, changed[0]] <= 0.3)).all()
    assert (np.ptp(named[:, knees], axis=0) > 0.1).all()
    path = tmp_path / "spread.h5"
    words = (
        "--base",
        "floating",
        "--samples",
        12,
        "--steps",
        1,
        "--gravity",
        "0,0,0",
        "--spread",
        "root.z=0.1:0.3,*knee=.2",
    )
    assert command(ROBOTS / "quadruped.urdf", *words, "-o", path).exit_code == 0
    np.testing.assert_array_equal(artsim.open(path)["qpos"][:, 0] - start, named)
    assert CliRunner().invoke(cli, ["replay", "--verify", str(path)]).exit_code == 0


@pytest.mark.parametrize("packed", [True, False])
def test_samples_that_start_inside_something_are_told(packed: bool, tmp_path: Path) -> None:
    """A ball of radius 0.1 whose centre is drawn between 0.02 and 0.18 above the floor."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body name="ball" pos="0 0 .1">
<freejoint name="root"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    path = _written("ball.xml", text)
    words = ("--samples", 40, "--steps", 3, "--spread", "root.z=0.08", *([] if packed else ["--solver", "pgs"]))
    done = command(path, *words, "-o", tmp_path / "balls.h5")
    assert done.exit_code == 0
    made = artsim.open(tmp_path / "balls.h5")
    depth = np.maximum(0.1 - made["qpos"][:, 0, 2], 0.0)
    np.testing.assert_allclose(made["start_depth"], depth, rtol=0, atol=1e-15)
    worst, inside, most = int(depth.argmax()), int(np.count_nonzero(depth > 1e-3)), 1e3 * depth.max()
    assert f"{inside} samples start inside something, deepest sample {worst} by {most:.3g} mm" in done.output
    told = json.loads(command(path, *words, "--json").stdout)
    assert told["packed"] == packed
    assert (told["inside"], told["deepest"]) == (inside, depth.max())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rot.z=0.1", "did you mean 'root.z'?"),
        ("root.qw=0.1", "'root.qw' is no coordinate that can be spread"),
        ("-0.1", "want a finite number from 0"),
        ("root.z=0.3:0.1", "spread of 'root.z' is (0.3, 0.1)"),
        ("0.1:0.2", "is not X, COORD=X or COORD=LOW:HIGH"),
        ("root.z=inf", "is not X, COORD=X or COORD=LOW:HIGH"),
    ],
)
def test_spreads_that_are_refused(words: str, told: str) -> None:
    done = command(ROBOTS / "quadruped.urdf", "--base", "floating", "--samples", 2, "--steps", 1, f"--spread={words}")
    assert done.exit_code == 2
    assert told in done.output
    assert "Traceback" not in done.output


def test_inputs_over_time_reach_every_sample() -> None:
    robot = artsim.load(ARM)
    rng = np.random.default_rng(5)
    start = np.array([0, 3, 40])
    zero = np.zeros((3, robot.nv))
    each = [Controls(start, rng.normal(size=(3, robot.nv)), zero, zero) for _ in range(9)]
    common = rolled(robot, samples=9, steps=50, controls=each[0])
    own = rolled(robot, samples=9, steps=50, controls=each)
    for k in (0, 8):
        one = single(robot, each[k], steps=50)
        np.testing.assert_allclose(own["qpos"][k], one["qpos"], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(common["qpos"][k], common["qpos"][0])
    np.testing.assert_array_equal(common["qpos"][0], own["qpos"][0])


SERVOS = """<mujoco><option timestep="0.004"/><worldbody><body><joint name="a" range="-60 60" armature="0.02"/>
<inertial pos="0 0.1 0.2" mass="2" diaginertia="0.03 0.02 0.01"/><body pos="0 0 0.4">
<joint name="b" axis="0 1 0" range="-90 90" damping="0.1" actuatorfrcrange="-9 9"/>
<inertial pos="0 0 0.2" mass="1" diaginertia="0.01 0.01 0.01"/><body pos="0 0 0.4">
<joint name="c" type="slide" axis="1 0 0"/><inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/>
</body></body></body></worldbody><actuator><position joint="a" kp="80" kv="6" forcerange="-12 12"/>
<motor name="push" joint="b" gear="3" ctrlrange="-1 1"/><velocity joint="c" kv="4" gear="-2"/>
<general joint="b" gainprm="20" biastype="affine" biasprm="0.5 -20 -1"/></actuator></mujoco>"""


def test_affine_actuators_of_joints_are_packed() -> None:
    """Servos, motors and a sum of them within a joint's bounds, some of them at their bounds."""
    robot = artsim.load(_written("servos.xml", SERVOS))
    rng = np.random.default_rng(8)
    start, zero = np.array([0, 60, 120]), np.zeros((3, robot.nv))
    each = [Controls(start, zero, zero, zero, rng.uniform(-1.5, 1.5, (3, 4))) for _ in range(9)]
    made = rolled(robot, samples=9, steps=200, controls=each, velocity_spread=1.0)
    assert made.outcome.packed
    assert made.outcome.solved_alone == 0
    at_bound = 0
    for k in (0, 3, 8):
        record = ("qpos", "actuator_force")
        one = artsim.simulate(robot, record=record, controls=each[k], steps=200, v0=made["qvel"][k, 0])
        at_bound += np.count_nonzero(np.abs(one["actuator_force"][:, 0]) == 12.0)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
    assert at_bound > 20


WHIP = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 .1" friction="{friction}"/>
<body name="sled" pos="0 0 0.1"><freejoint/><inertial pos="0 0 0.02" mass="3" diaginertia="0.04 0.05 0.06"/>
<geom pos=".2 0 -.08" size=".02" friction="{friction}"/><geom pos="-.2 .15 -.08" size=".02" friction="{friction}"/>
<geom pos="-.2 -.15 -.08" size=".02" friction="{friction}"/>
<body name="arm" pos="0 0 0.05"><joint name="swing" axis="0 1 0" range="-40 40" damping="0.02"/>
<inertial pos="0 0 0.15" mass="0.4" diaginertia="0.003 0.003 0.001"/>
<body name="hand" pos="0 0 0.3"><joint name="wrist" axis="0 1 0" range="-30 90" actuatorfrcrange="-.8 .8"/>
<inertial pos="0 0 0.05" mass="0.2" diaginertia="0.001 0.001 0.001"/></body></body></body></worldbody>
<actuator><position joint="swing" kp="30" kv="0.6" forcerange="-4 4"/><position joint="wrist" kp="9" kv="0.1"/>
</actuator></mujoco>"""
"""A sled that slides on three feet, with a whip of two joints: limits, and servos at the bounds of forces."""


def whipped(robot: Any, samples: int, steps: int = 200, **options: Any) -> MemoryRollout:
    """Samples whose sled starts at random velocities, and whose servos are told other places every 50 steps."""
    rng = np.random.default_rng(4)
    start = np.arange(0, steps, 50)
    zero = np.zeros((len(start), robot.nv))
    each = [Controls(start, zero, zero, zero, rng.uniform(-1.5, 1.5, (len(start), 2))) for _ in range(16)]
    return rolled(robot, samples=samples, steps=steps, controls=each[:samples], velocity_spread=0.8, **options)


@pytest.mark.parametrize("friction", [0.2, 0.8])
def test_what_slides_hits_its_limits_and_saturates_stays_in_its_pack(friction: float) -> None:
    """Every lane is the single run; the single runs show that each of these happens. With a fourth foot the forces of
    the feet, and with them where the sled slides to, would not be unique.
    """
    robot = artsim.load(_written("whip.xml", WHIP.format(friction=friction)))
    made = whipped(robot, 11)
    assert made.outcome.packed
    if not disabled():
        assert made.outcome.solved_alone < 0.02 * made.outcome.steps
    slid = at_limit = saturated = 0
    for k in (0, 5, 10):
        rng = np.random.default_rng(4)
        drawn = [rng.uniform(-1.5, 1.5, (4, 2)) for _ in range(16)][k]
        zero = np.zeros((4, robot.nv))
        controls = Controls(np.arange(0, 200, 50), zero, zero, zero, drawn)
        record = ("qpos", "qvel", "tau_limit", "actuator_force", "contacts")
        start = {"q0": made["qpos"][k, 0], "v0": made["qvel"][k, 0]}
        one = artsim.simulate(robot, record=record, controls=controls, steps=200, **start)
        np.testing.assert_allclose(made["qvel"][k, :100], one["qvel"][:100], rtol=0, atol=1e-10)
        np.testing.assert_allclose(made["qvel"][k], one["qvel"], rtol=0, atol=1e-7)
        forces = one.contacts["force"]
        slid += np.count_nonzero(np.hypot(forces[:, 1], forces[:, 2]) > 0.999 * friction * forces[:, 0])
        at_limit += np.count_nonzero(one["tau_limit"])
        saturated += np.count_nonzero(np.abs(one["actuator_force"][:, 0]) == 4.0)
    assert min(slid, at_limit, saturated) > 20


def test_bytes_of_what_slides_and_saturates_depend_on_nobody_else() -> None:
    robot = artsim.load(_written("whip.xml", WHIP.format(friction=0.3)))
    whole = whipped(robot, 16, threads=1)
    for other in (whipped(robot, 16, threads=2), whipped(robot, 3, threads=1)):
        n = len(other["qpos"])
        for name in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[name][:n].tobytes() == other[name].tobytes(), name


def test_arms_that_turn_fast_stay_in_their_pack() -> None:
    """A double pendulum at up to 30 rad/s takes several evaluations of the bias in every step."""
    robot = artsim.load(ROBOTS / "double_pendulum.urdf")
    made = rolled(robot, samples=9, steps=300, spread=2.0, velocity_spread=30.0)
    assert made.outcome.solved_alone == 0
    for k in (0, 8):
        one = single(robot, steps=300, q0=made["qpos"][k, 0], v0=made["qvel"][k, 0])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-10)


CURVED = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 .1" friction="0.7"/>
<body name="base" pos="0 0 0.25"><freejoint name="root"/><geom type="box" size=".1 .1 .05" mass="2"/>
<body name="l" pos="0 .15 0"><joint name="jl" axis="0 1 0" frictionloss="0.05" range="-60 60"/>
<geom type="capsule" fromto="0 0 0 .2 0 -.1" size=".03" mass=".4"/></body>
<body name="r" pos="0 -.15 0"><joint name="jr" axis="0 1 0" range="-50 90"/>
<geom type="capsule" fromto="0 0 0 .2 0 -.1" size=".03" mass=".4"/>
<body name="tip" pos=".2 0 -.1"><joint name="jt" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/></body></body></body></worldbody>
<equality><joint joint1="jr" joint2="jl" polycoef="0.1 -1 0.4 0 0.1"/>
<joint joint1="jt" joint2="jr" polycoef="0 0.1 0.05"/>
</equality><actuator><position joint="jl" kp="6" kv="0.1" forcerange="-1.5 1.5"/></actuator></mujoco>"""
"""A robot that falls onto the ground, whose three joints are one: chained couplings that curve."""


def test_exact_couplings_are_packed() -> None:
    """Followers keep to their leaders to rounding in every lane, and every lane is the single run."""
    robot = artsim.load(_written("curved.xml", CURVED))
    made = rolled(robot, samples=9, steps=120, spread={"jl": 0.4}, velocity_spread=1.5, seed=2)
    assert made.outcome.packed
    assert made.outcome.solved_alone <= 0.02 * made.outcome.steps
    leader, follower, tip = (made["qpos"][..., robot.coords.index(name)] for name in ("jl", "jr", "jt"))
    np.testing.assert_allclose(follower, 0.1 - leader + 0.4 * leader**2 + 0.1 * leader**4, rtol=0, atol=1e-14)
    np.testing.assert_allclose(tip, 0.1 * follower + 0.05 * follower**2, rtol=0, atol=1e-14)
    assert np.ptp(leader, axis=1).min() > 0.02
    for k in (0, 4, 8):
        one = single(robot, steps=120, q0=made["qpos"][k, 0], v0=made["qvel"][k, 0])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-9)


def test_damping_ratios_go_by_the_masses_of_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = artsim.load(_written("servos.xml", SERVOS.replace('kv="6"', 'dampratio=".6"')))
    options: dict[str, Any] = {"steps": 100, "samples": 9, "spread": 0.3, "randomise": {"mass": (0.5, 2.0)}}
    made = rolled(robot, **options)
    assert made.outcome.packed
    assert made.outcome.solved_alone == 0
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    np.testing.assert_allclose(made["qpos"], rolled(robot, **options)["qpos"], rtol=0, atol=1e-11)


def test_what_packs_do_not_know_is_simulated_one_by_one() -> None:
    robot = artsim.load(ROBOTS / "parallel_gripper.urdf")
    made = rolled(robot, samples=3, steps=40, spread=0.01, randomise={"mass": (0.5, 2.0)}, solver="pgs")
    assert not made.outcome.packed
    assert np.isfinite(made["qpos"]).all()
    assert np.ptp(made["mass_factor"], axis=0).min() > 0


# ------------------------------------------------------------------ contact

STANDING = {
    "mass": (0.9, 1.1),
    "friction": (0.6, 1.4),
    "joint_friction": (0.5, 2.0),
    "damping": (0.5, 2.0),
    "drive_stiffness": (0.9, 1.1),
}
TRIPOD = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body pos="0 0 0.325"><freejoint/><geom type="box" size="0.2 0.1 0.05" mass="5"/>
<body pos="0.15 0.1 0"><joint name="a" axis="0 1 0" frictionloss="8" stiffness="200" damping="5" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.3"/></body>
<body pos="0.15 -0.1 0"><joint name="b" axis="0 1 0" frictionloss="8" stiffness="200" damping="5" armature="0.01"/>
<geom type="sphere" pos="0 0 -0.3" size="0.02" mass="0.3" condim="6" friction="0.8 0.02 0.01" priority="1"
solref="0.01 1" solimp="0.8 0.95 0.01"/></body>
<body pos="-0.15 0 0"><joint name="c" axis="0 1 0" stiffness="200" damping="5" armature="0.01"/>
<geom type="box" pos="0 0 -0.3" size="0.03 0.03 0.02" mass="0.3"/></body>
</body></worldbody></mujoco>"""


def standing(samples: int, steps: int, **options: Any) -> MemoryRollout:
    """Quadrupeds on the ground whose drives hold their pose, each of its own masses and frictions."""
    given = {**quadruped_options(), "steps": steps, "seed": 5, "spread": 0.02, "randomise": STANDING, **options}
    given["q0"] = {**given["q0"], "root.z": 0.29}
    return rolled(quadruped(), samples=samples, **given)


def test_quadrupeds_that_stand_in_packs_are_those_that_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They land, feet slip for a moment, and stand; most steps are taken 8 at a time."""
    packed = standing(10, 400)
    assert packed.outcome.packed
    if not disabled():
        assert packed.outcome.solved_alone < 0.3 * packed.outcome.steps
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    single_ones = standing(10, 400)
    np.testing.assert_array_equal(packed["friction_factor"], single_ones["friction_factor"])
    np.testing.assert_allclose(packed["qpos"][:, :20], single_ones["qpos"][:, :20], rtol=0, atol=1e-10)
    np.testing.assert_allclose(packed["qpos"], single_ones["qpos"], rtol=0, atol=1e-6)
    assert np.abs(packed["final_qvel"]).max() < 0.1
    assert packed["final_qpos"][:, 2].min() > 0.2


def test_joint_friction_soft_and_rolling_contacts_and_faces_are_packed() -> None:
    """Contacts of one, two and four points with the floor, hard and soft, of three and six dimensions."""
    robot = artsim.load(_written("tripod.xml", TRIPOD))
    made = rolled(robot, samples=9, steps=120, spread=0.005, seed=1)
    assert made.outcome.packed
    if not disabled():
        assert made.outcome.solved_alone < 0.5 * made.outcome.steps
    for k in (0, 8):
        one = single(robot, steps=120, q0=made["qpos"][k, 0])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-8)


LYING = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 .1" friction="0.5"/>
<body pos="0 0 {height}"><freejoint/><geom type="box" size="0.15 0.1 0.06" mass="1" condim="{dimensions}"
friction="0.5 0.01 0.003"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("height", "dimensions", "options"),
    [
        (0.055, 3, {}),
        (0.055, 3, {"coupling_erp": 0.2}),
        (0.0601, 3, {"cone": "pyramidal", "velocity_spread": 0.5}),
        (0.0601, 6, {"cone": "pyramidal", "velocity_spread": 0.5}),
    ],
)
def test_contacts_of_packs_obey_the_options_of_contacts(
    height: float, dimensions: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Penetration is removed at the same pace, and cones have the same shape, as in single runs."""
    text = LYING.format(height=height, dimensions=dimensions)
    robot = artsim.load(_written("lying.xml", text))
    given = {"samples": 9, "steps": 100, "seed": 4, "randomise": {"friction": (0.5, 1.5)}, **options}
    packed = rolled(robot, **given)
    assert packed.outcome.solved_alone < 0.2 * packed.outcome.steps
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    np.testing.assert_allclose(packed["qvel"], rolled(robot, **given)["qvel"], rtol=0, atol=1e-9)


TURNTABLE = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 {height}"><joint axis="0 0 1"/><geom type="box" size="0.2 0.1 0.05" mass="1"/>
<body pos="0 0 .05"><joint axis="0 1 0" stiffness="20" damping="1"/>
<geom type="capsule" fromto="0 0 0.1 0.3 0 -0.05" size="0.02" mass="0.3"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("height", [0.0501, 0.048])
def test_contacts_that_no_joint_opens_have_no_rows_in_packs(height: float) -> None:
    """A base that turns about the normal, on the floor and in it, with an arm that comes down on the floor."""
    robot = artsim.load(_written("turntable.xml", TURNTABLE.format(height=height)))
    made = rolled(robot, samples=9, steps=100, velocity_spread=2.0, seed=3)
    if not disabled():
        assert made.outcome.solved_alone < 0.2 * made.outcome.steps
    for k in (0, 8):
        one = single(robot, steps=100, v0=made["qvel"][k, 0])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-9)


def test_what_touches_something_that_moves_stays_in_its_pack() -> None:
    """A ball on top of another that falls onto it from other heights and at other velocities."""
    ball = '<body pos="{}"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>'
    floor = '<mujoco><worldbody><geom type="plane" size="5 5 .1"/>'
    ends = "</worldbody></mujoco>"
    stacked = artsim.load(_written("two.xml", floor + ball.format("0 0 .1") + ball.format("0 0 .31") + ends))
    made = rolled(stacked, samples=9, steps=80, velocity_spread=0.02)
    assert made.outcome.packed
    assert made.outcome.solved_alone == 0
    for k in (0, 4, 8):
        one = artsim.simulate(stacked, steps=80, v0=made["qvel"][k, 0], record=("qpos", "contacts"))
        assert np.count_nonzero(one.contacts["link_a"] != 0) > 20
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
    fewer = rolled(stacked, samples=3, steps=80, velocity_spread=0.02)
    assert fewer["qpos"].tobytes() == made["qpos"][:3].tobytes()


def test_a_body_that_bounces_stays_in_its_pack() -> None:
    robot = artsim.load(ROBOTS / "floating_box.urdf", base="fixed")
    options: dict[str, Any] = {"ground": True, "restitution": 0.5, "steps": 200}
    start = np.array([0, 0, 0.6, 1, 0, 0, 0.0])
    made = rolled(robot, samples=9, velocity_spread=0.5, q0=start, **options)
    assert made.outcome.solved_alone == 0
    for k in (0, 8):
        one = single(robot, q0=start, v0=made["qvel"][k, 0], **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-9)


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_one_that_blows_up_on_the_ground_stops_alone() -> None:
    calm = standing(9, 60)
    torque = np.zeros((2, 18))
    torque[1, 8] = 1e200
    names = quadruped().dofs
    target = np.tile([quadruped_options()["target"].get(name, 0.0) for name in names], (2, 1))
    quiet, wild = (Controls(np.array([0, 30]), x * torque, target, 0 * torque) for x in (0.0, 1.0))
    made = standing(9, 60, controls=[quiet, wild, *[quiet] * 7])
    assert made["status"].tolist() == [1, 2] + 7 * [1]
    assert 30 <= made["n_valid"][1] < 40
    for k in (0, 8):
        np.testing.assert_array_equal(made["qpos"][k], calm["qpos"][k])


def test_room_for_contacts_grows_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = standing(9, 60)
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 1)
    narrow = standing(9, 60)
    assert narrow["qpos"].tobytes() == wide["qpos"].tobytes()
    crowded = standing(9, 60, max_contacts=2)
    assert crowded.stopped == 9 and "more than 2 contacts" in crowded.outcome.messages[0]
    with pytest.raises(StoppedError, match="more than 2 contacts"):
        standing(9, 60, max_contacts=2, check=True)


# ------------------------------------------------------------------ what is varied


def test_varied_masses_and_gains_are_those_of_a_robot_made_so() -> None:
    """Against the same robot written with other numbers, sample by sample."""
    text = FREE
    robot = artsim.load(_written("free.xml", text))
    made = rolled(
        robot, samples=3, steps=80, velocity_spread=1.0, randomise={"mass": (0.5, 2.0), "damping": (0.0, 9.0)}
    )
    for k in range(3):
        factor = dict(zip(robot.links, made["mass_factor"][k], strict=True))
        changed = text.replace('damping="0.1"', f'damping="{float(0.1 * made["damping_factor"][k, -1])!r}"')
        for link, mass, inertia in (
            ("box", 2, "0.3 0.2 0.1"),
            ("rod", 1, "0.1 0.2 0.3"),
            ("slider", 0.5, "0.1 0.1 0.1"),
        ):
            scaled = " ".join(repr(float(x) * float(factor[link])) for x in inertia.split())
            old = f'mass="{mass}" diaginertia="{inertia}"'
            assert old in changed
            changed = changed.replace(old, f'mass="{float(mass * factor[link])!r}" diaginertia="{scaled}"')
        other = artsim.load(_written(f"other{k}.xml", changed))
        one = single(other, steps=80, q0=made["qpos"][k, 0], v0=made["qvel"][k, 0])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)


def test_factors_of_one_change_nothing() -> None:
    """Of a robot with merged links, whose bodies are put together from several."""
    articulation = load_text((ROBOTS / "quadruped.urdf").read_text(), name="quadruped.urdf", meshes=False)
    plan = prepare(articulation, RunConfig())
    model = compile_model(articulation).model
    made = VariedArrays(plan).of({"mass": np.ones((1, len(plan.robot.links)))})
    for name, values in made.items():
        np.testing.assert_allclose(values[0], getattr(model, name), rtol=1e-13, atol=1e-15)


SLED = """<mujoco><option gravity="{along!r} 0 {down!r}" timestep="0.002"/><worldbody>
<geom type="plane" size="5 5 0.1" friction="0.5"/>
<body pos="0 0 0.05"><freejoint/><geom type="box" size="0.2 0.2 0.05" friction="0.5" mass="3"/></body>
</worldbody></mujoco>"""


def test_varied_friction_decides_which_boxes_slip() -> None:
    """On an incline of atan 0.5: a factor from 1 of friction 0.5 holds, less lets it slide at g (sin - μ cos)."""
    angle, steps, h = np.arctan(0.5), 200, 0.002
    along, down = 9.81 * np.sin(angle), -9.81 * np.cos(angle)
    robot = artsim.load(_written("sled.xml", SLED.format(along=float(along), down=float(down))))
    made = rolled(robot, samples=16, steps=steps, randomise={"friction": (0.5, 1.5)}, seed=2)
    factor = made["friction_factor"]
    assert factor.shape == (16,)
    assert (factor < 0.99).any()
    assert (factor > 1.01).any()
    pull = np.maximum(along + 0.5 * factor * down, 0.0)
    np.testing.assert_allclose(made["final_qpos"][:, 0], pull * h * h * steps * (steps + 1) / 2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(made["final_qvel"][:, 0], pull * h * steps, rtol=1e-6, atol=1e-9)


def test_friction_is_that_of_contacts() -> None:
    done = command(ARM, "--samples", 2, "--randomise", "friction=0.5:1")
    assert done.exit_code == 2
    assert "nothing may touch; joints have joint_friction" in done.stderr


# ------------------------------------------------------------------ bytes


def test_bytes_depend_on_neither_threads_nor_the_number_of_samples(tmp_path: Path) -> None:
    """Masses, gains, limits and drives beyond their bounds, in 21 samples that fill no pack."""
    robot = artsim.load(ARM)
    options: dict[str, Any] = {**SERVO, "steps": 150, "spread": 2.5, "velocity_spread": 4.0, "randomise": VARIED}
    whole = rolled(robot, samples=21, threads=1, **options)
    for other in (rolled(robot, samples=21, threads=3, **options), rolled(robot, samples=6, threads=2, **options)):
        for name in other.variables:
            n = len(other[name])
            assert whole[name][:n].tobytes() == other[name].tobytes(), name
    reordered = rolled(robot, samples=21, seed=1, **options)
    assert not np.array_equal(reordered["qpos"], whole["qpos"])


def test_bytes_with_contacts_depend_on_nobody_else() -> None:
    """Some fall farther, so that in a pack some touch, slip and stand while others do not."""
    options: dict[str, Any] = {"steps": 150, "velocity_spread": 0.3}
    whole = standing(21, threads=1, **options)
    assert 0 < whole.outcome.solved_alone < whole.outcome.steps
    for other in (standing(21, threads=3, **options), standing(6, threads=1, **options)):
        n = len(other["qpos"])
        for name in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[name][:n].tobytes() == other[name].tobytes(), name


def test_repeated_calls_return_what_a_robot_just_loaded_returns() -> None:
    """Plans and rollers are kept between calls: with inputs for each sample or for all, other masses, other sizes."""
    n = 11
    draw = np.random.default_rng(4)
    start, zero = np.array([0, 12]), np.zeros((2, 7))
    each = [Controls(start, draw.uniform(-20, 20, (2, 7)), zero, zero) for _ in range(n)]
    calls: list[dict[str, Any]] = [
        {"samples": n, "controls": each},
        {"samples": n, "controls": each[3]},
        {"samples": n, "randomise": VARIED},
        {"samples": n},
        {"samples": 3, "controls": each[:3]},
        {"samples": n, "controls": each[::-1]},
    ]
    options: dict[str, Any] = {**SERVO, "steps": 30, "spread": 2.5, "velocity_spread": 4.0, "threads": 1}
    robot = artsim.load(ARM)
    for call in calls:
        again, fresh = rolled(robot, **call, **options), rolled(artsim.load(ARM), **call, **options)
        for name in fresh.variables:
            assert again[name].tobytes() == fresh[name].tobytes(), (call.keys(), name)
        assert again.outcome.solved_alone == fresh.outcome.solved_alone


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_a_sample_that_blows_up_stops_alone(tmp_path: Path) -> None:
    robot = artsim.load(_written("free.xml", FREE))
    torque = np.zeros((1, robot.nv))
    torque[0, -1] = 1e150
    calm, wild = (Controls(np.zeros(1, np.int64), x * torque, 0 * torque, 0 * torque) for x in (0.0, 1.0))
    options: dict[str, Any] = {"samples": 9, "steps": 100, "controls": [calm, wild] + 7 * [calm], "every": 2}
    made = rolled(robot, **options)
    assert made.stopped == 1 and ", 1 stopped early" in repr(made)
    assert made["status"].tolist() == [1, 2] + 7 * [1]
    count = int(made["n_valid"][1])
    assert 0 < count < 50
    assert np.isfinite(made["qpos"][1, :count]).all()
    assert np.isnan(made["qpos"][1, count:]).all()
    assert np.isfinite(np.delete(made["final_qpos"], 1, axis=0)).all()
    alone = single(robot, steps=100, every=2)
    np.testing.assert_allclose(made["qpos"][8], alone["qpos"], rtol=0, atol=1e-12)
    with pytest.raises(StoppedError, match=r"sample 1 stopped at t = .*: the velocity of joint '.*' is not finite"):
        artsim.rollout(robot, output=tmp_path / "wild.h5", check=True, **options)
    with artsim.open(tmp_path / "wild.h5") as recording:
        assert isinstance(recording, RolloutRecording)
        assert recording.stopped == 1


# ------------------------------------------------------------------ the file and the command


def test_the_command_writes_what_python_returns(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = ("--samples", 10, "--steps", 30, "--every", 3, "--spread", 0.2, "--seed", 7, "--stiffness", 50)
    done = command(ARM, *words, "--randomise", "mass=0.9:1.1,drive-stiffness=0.5:2", "-o", output, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["samples"] == 10
    settings: dict[str, Any] = {"stiffness": 50.0, "randomise": {"mass": (0.9, 1.1), "drive_stiffness": (0.5, 2.0)}}
    made = rolled(artsim.load(ARM), samples=10, steps=30, every=3, spread=0.2, seed=7, **settings)
    with artsim.open(output) as recording:
        assert isinstance(recording, RolloutRecording)
        assert recording.variables == made.variables
        for name in made.variables:
            assert recording[name].tobytes() == made[name].tobytes(), name
        np.testing.assert_allclose(recording.time, np.arange(10) * 3 * 0.002)
        assert recording.config["rollout"]["samples"] == 10
    told = CliRunner().invoke(cli, ["info", str(output)])
    assert "10 samples of 10 rows, 0 stopped early" in told.output


def test_the_file_opens_in_xarray_labelled(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    output = tmp_path / "out.h5"
    artsim.rollout(artsim.load(ARM), samples=3, steps=5, output=output, randomise={"mass": (1.0, 1.0)}).close()  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = xarray.open_dataset(output, group="rollout", engine="h5netcdf")
    assert data.qpos.dims == ("sample", "time", "coord")
    assert data.qpos.sel(coord="joint_1").shape == (3, 5)
    assert data.mass_factor.dims == ("sample", "link")
    assert (data.mass_factor == 1).all()


def test_npz_holds_the_same(tmp_path: Path) -> None:
    done = command(ARM, "--samples", 4, "--steps", 6, "--spread", 0.1, "-o", tmp_path / "out.npz")
    assert done.exit_code == 0, done.output
    arrays = np.load(tmp_path / "out.npz")
    made = rolled(artsim.load(ARM), samples=4, steps=6, spread=0.1)
    np.testing.assert_array_equal(arrays["qpos"], made["qpos"])
    np.testing.assert_array_equal(arrays["time"], made.time)


def test_control_files_hold_for_all_samples_or_for_each(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    each = rng.normal(size=(5, 2, 7))
    np.savez(tmp_path / "each.npz", time=[0.0, 0.01], torque=each)
    np.savez(tmp_path / "all.npz", time=[0.0, 0.01], torque=each[3])
    made = {}
    for name in ("each", "all"):
        words = ("--samples", 5, "--steps", 20, "--control", tmp_path / f"{name}.npz")
        done = command(ARM, *words, "-o", tmp_path / f"{name}.h5")
        assert done.exit_code == 0, done.output
        with artsim.open(tmp_path / f"{name}.h5") as recording:
            made[name] = recording["qpos"]
    np.testing.assert_array_equal(made["each"][3], made["all"][0])
    assert not np.array_equal(made["each"][2], made["all"][0])
    done = command(ARM, "--samples", 4, "--control", tmp_path / "each.npz")
    assert done.exit_code == 2
    assert "torque has shape (5, 2, 7): want 4 samples first" in done.stderr


@pytest.mark.parametrize("interpolate", ["hold", "linear"])
def test_samples_of_a_file_are_read_as_if_each_had_a_file(interpolate: str, tmp_path: Path) -> None:
    """Two rows in one step, of which the last acts; some joints only; targets for all beside torques for each."""
    draw = np.random.default_rng(3)
    robot = artsim.load(ARM)
    common = {"time": [0.0, 0.0102, 0.0107, 0.02], "names": robot.dofs[1:4], "target": draw.normal(size=(4, 3))}
    each = draw.normal(size=(3, 4, 3))
    options: dict[str, Any] = {**SERVO, "steps": 30, "threads": 1, "interpolate": interpolate}
    np.savez(tmp_path / "each.npz", **common, torque=each)
    made = rolled(robot, samples=3, controls=tmp_path / "each.npz", **options)
    for k in range(3):
        np.savez(tmp_path / "one.npz", **common, torque=each[k])
        one = rolled(robot, samples=1, controls=tmp_path / "one.npz", **options)
        assert made["qpos"][k].tobytes() == one["qpos"][0].tobytes()
    each[1, 2, 0] = np.nan
    np.savez(tmp_path / "each.npz", **common, torque=each)
    with pytest.raises(ModelError, match=r"torque of '.*', row 3, column 1: nan is not a finite number"):
        artsim.rollout(robot, samples=3, controls=tmp_path / "each.npz", **options)


def test_starts_drawn_within_limits_are_those_of_a_batch() -> None:
    robot = artsim.load(ARM)
    made = rolled(robot, samples=100, steps=1, start="uniform-limits", seed=4)
    model = robot.model
    assert (made["qpos"][:, 0] >= model.lower).all()
    assert (made["qpos"][:, 0] <= model.upper).all()
    assert np.ptp(made["qpos"][:, 0], axis=0).min() > 1.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--randomise", "mas=0.5:1"), "randomise: 'mas' is not known; did you mean 'mass'?"),
        (("--randomise", "mass=0.5"), "'mass=0.5' is not NAME=LOW:HIGH"),
        (("--randomise", "mass=2:1"), "want factors LOW:HIGH"),
        (("--randomise", "mass=0:1"), "want factors LOW:HIGH"),
        (("--spread", "-1"), "spread is -1.0, want a finite number from 0"),
        (("--spread", "1", "--start", "normal"), "spread is about the given start"),
        (
            ("--record", "delassus"),
            "a rollout does not record 'delassus': take the sample",
        ),
        (("--seed", "-1"), "seed -1: want 0"),
        (("-o", "out.txt"), "want a name that ends in .h5, .hdf5 or .npz"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], told: str) -> None:
    done = command(ARM, "--samples", 2, *words)
    assert done.exit_code == 2, done.output
    assert told in done.stderr


@pytest.mark.small
def test_final_states_alone(tmp_path: Path) -> None:
    """Those of a rollout that records rows, in a file that needs no more for more steps."""
    options: dict[str, Any] = {"samples": 10, "steps": 12, "spread": 0.3, "velocity_spread": 1.0}
    whole, ends = rolled(artsim.load(ARM), **options), rolled(artsim.load(ARM), record="none", **options)
    assert "qpos" not in ends.variables and "qpos" in whole.variables
    for name in ends.variables:
        assert ends[name].tobytes() == whole[name].tobytes()
    words = ("--samples", 10, "--spread", 0.3, "--velocity-spread", 1.0, "--record", "none")
    for steps in (12, 24):
        assert command(ARM, *words, "--steps", steps, "-o", tmp_path / f"{steps}.h5").exit_code == 0
    with artsim.open(tmp_path / "12.h5") as recording:
        assert recording["final_qpos"].tobytes() == ends["final_qpos"].tobytes()
    sizes = [(tmp_path / f"{steps}.h5").stat().st_size for steps in (12, 24)]
    assert abs(sizes[1] - sizes[0]) < 200  # the times of 12 more rows
    assert CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / "12.h5")]).exit_code == 0


@pytest.mark.small
@pytest.mark.parametrize("kind", [".h5", ".npz"])
def test_what_is_done_is_kept_where_a_rollout_is_interrupted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a signal, which the command asks for, and by KeyboardInterrupt in a block's midst."""
    monkeypatch.setattr("artsim.io.rollouts.roll._BLOCK_BYTES", 1)  # blocks of 8
    robot, path = artsim.load(ARM), tmp_path / f"part{kind}"
    whole = rolled(robot, samples=30, steps=6, spread=0.3)
    plan, _, _ = prepared(robot, "none", None, {"steps": 6, "record": ("qpos", "qvel")})
    config = RolloutConfig(30, spread=0.3)
    seen: list[int] = []
    outcome = roll(plan, config, output=path, progress=seen.append, stop=lambda: len(seen) > 1)
    assert not outcome.complete and outcome.samples == 16 and outcome.output == path
    _check_part(path, whole, 16)

    def interrupt(done: int) -> None:
        if done > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        roll(plan, config, output=path, force=True, progress=interrupt)
    _check_part(path, whole, 16)
    if kind == ".h5":
        told = CliRunner().invoke(cli, ["info", str(path)]).output
        assert "30 samples of 6 rows, 0 stopped early, 14 not simulated" in told
        assert CliRunner().invoke(cli, ["replay", "--verify", str(path)]).exit_code == 0


def _check_part(path: Path, whole: MemoryRollout, count: int) -> None:
    """The first `count` samples of a file are those of a whole rollout; the others say that they are not there."""
    found = np.load(path) if path.suffix == ".npz" else artsim.open(path)
    for name in ("qpos", "final_qpos", "status", "n_valid"):
        assert found[name][:count].tobytes() == whole[name][:count].tobytes()
    assert np.isnan(found["qpos"][count:]).all() and not found["n_valid"][count:].any()
    assert found["status"].tolist() == count * [1] + (len(whole["status"]) - count) * [0]


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_the_command_tells_of_samples_that_stop_and_strictly_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artsim.io.rollouts.roll._BLOCK_BYTES", 1)
    torque = np.zeros((40, 1, 7))
    torque[[1, 3], 0, 6] = 1e150
    np.savez(tmp_path / "wild.npz", time=[0.0], torque=torque)
    path = tmp_path / "wild.h5"
    words = (ARM, "--samples", 40, "--steps", 9, "--control", tmp_path / "wild.npz", "--threads", 1, "-o", path)
    done = command(*words)
    assert done.exit_code == 3 and "2 samples of 40 stopped early" in done.stderr
    assert "sample 3 stopped at t = " in done.stderr
    with artsim.open(path) as made:
        assert made["status"].tolist() == [1, 2, 1, 2] + 36 * [1]
    done = command(*words, "--strict", "--force")
    assert done.exit_code == 3 and "interrupted after 8 samples of 40: the other samples have status 0" in done.stderr
    with artsim.open(path) as made:
        assert made["status"].tolist() == [1, 2, 1, 2] + 4 * [1] + 32 * [0]


def test_a_rollout_without_output_only_tells() -> None:
    done = command(ARM, "--samples", 8, "--steps", 10)
    assert done.exit_code == 0
    assert "8 samples, 80 steps in" in done.stderr


def test_refused_from_python() -> None:
    with pytest.raises(UsageError, match="3 for 4 samples"):
        held = Controls(np.zeros(1, np.int64), *[np.zeros((1, 7))] * 3)
        artsim.rollout(artsim.load(ARM), samples=4, controls=[held] * 3)
    with pytest.raises(UsageError, match="samples is 0"):
        RolloutConfig(0)


def test_who_is_packed() -> None:
    """Packs take the plain arm, also with a controller, couplings and contact, but no solver other than newton."""

    def reason(name: str, **settings: Any) -> str:
        articulation = load_text((ROBOTS / name).read_text(), name=name, meshes=False)
        return reason_against_packs(prepare(articulation, RunConfig(**settings)))

    assert reason("arm7.urdf", stiffness={"*": 10.0}) == ""
    assert reason("arm7.urdf", controller="gravity-compensation") == ""
    assert reason("parallel_gripper.urdf") == ""
    assert reason("parallel_gripper.urdf", coupling="compliant", coupling_frequency=20.0) == ""
    assert reason("finger.urdf", ground=True) == ""
    assert reason("finger.urdf", ground=True, solver="propagation") == "solver propagation"


_FOLDER: list[Path] = []


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    _FOLDER[:] = [tmp_path]


def _written(name: str, text: str) -> Path:
    path = _FOLDER[0] / name
    path.write_text(text)
    return path


APART = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" pos="0 0 .2" mass="1"/></body>
<body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos="0 0 .2" mass="1"/></body></worldbody><equality>
<joint joint1="b" joint2="a" polycoef=".1 1 0 0 0"/><joint joint1="b" joint2="a" polycoef="-.1 1 0 0 0"/>
</equality></mujoco>"""
"""Two couplings that contradict each other."""


@pytest.mark.small
def test_samples_whose_rows_are_not_solved_are_told(tmp_path: Path) -> None:
    (tmp_path / "apart.xml").write_text(APART)
    model = tmp_path / "apart.xml"
    words = (
        model,
        "--samples",
        3,
        "--steps",
        20,
        "--dt",
        0.004,
        "--coupling",
        "rows",
        "--spread",
        0.01,
        "--no-contacts",
    )
    made = rolled(artsim.load(model), samples=3, steps=20, dt=0.004, coupling="rows", spread=0.01, contacts=False)
    config: dict[str, Any] = {"dt": 0.004, "coupling": "rows", "contacts": False, "record": ("solver_residual",)}
    one = artsim.simulate(artsim.load(model), q0=made["qpos"][0, 0], steps=20, check=False, **config)
    assert made.outcome.packed and made.outcome.unsolved == 3
    assert made.outcome.most_unsolved[1] == pytest.approx(one["solver_residual"].max(), rel=0.1)
    told = command(*words)
    assert told.exit_code == 0 and "warning: in 3 samples, most in sample" in told.output and "unsolved" in told.output
    assert command(*words, "--strict").exit_code == 3


@pytest.mark.small
@pytest.mark.parametrize("more", [(), ("--coupling", "rows", "--solver", "propagation")], ids=["packs", "single runs"])
def test_what_loops_hold_inside_is_told(more: tuple[str, ...], tmp_path: Path) -> None:
    """By the summary, by --json and by artsim.rollout, in the words of a run; --strict refuses it."""
    (tmp_path / "held.xml").write_text(held())
    words = (tmp_path / "held.xml", "--samples", 2, "--steps", 5, "--velocity-spread", 0.1, *more)
    told = command(*words)
    assert told.exit_code == 0
    assert "warning: in 2 samples, deepest in sample " in told.output
    where = ", loop 'weld_0' holds 'bar' and 'block' up to 0.01 m inside each other"
    assert f"{where}: their contact was left out in 5 steps; " in told.output
    summary = json.loads(command(*words, "--json", "--quiet").stdout)
    deepest = summary["most_held_inside"]
    assert summary["packed"] == (not more) and summary["held_inside"] == 2
    assert deepest.pop("depth") == pytest.approx(0.01, abs=1e-6)
    assert deepest.pop("sample") in (0, 1)
    assert deepest == {"steps": 5, "link_a": "bar", "link_b": "block", "loop": "weld_0"}
    refused = command(*words, "--strict")
    assert refused.exit_code == 3 and "stopped (--strict): in 2 samples, deepest in sample " in refused.output
    if not more:
        robot = artsim.load(tmp_path / "held.xml")
        outcome = rolled(robot, samples=2, steps=5, velocity_spread=0.1).outcome
        assert outcome.held_inside == 2 and outcome.most_held_inside[5] == "weld_0"
        free = rolled(robot, samples=2, steps=5, contacts=False).outcome
        assert free.held_inside == 0 and free.most_held_inside is None
