"""Packs of robots with rows in every step (loops, couplings that give way, tendons, actuators that are rows, limits of
balls, velocity bounds of links), with delays, and with taut bodies: every lane is the single run, and depends on no
other lane.

The truth of the rows themselves is in the tests of their kinds; here the single run is the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import held_controls, prepare
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.run_data.run_records import HELD_A, HELD_B, HELD_STEPS, TOO_FAST
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import has_ties, reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, PackRoller, Results, SingleRoller
from artsim.sim.runs.varied import Variations
from artsim.sim.stepping.strain import COUNT, MOST
from tests.conftest import ROOT, corpus
from tests.constraints.test_axis_couplings import follows, leads
from tests.constraints.test_turn_limits import pendulum
from tests.stepping.test_strain import held, parallelograms, table

STEPS = 120
OVER_GROUND = held().replace("<worldbody>", '<worldbody><geom type="plane" size="2 2 .1" pos="0 0 -.06"/>')
SAMPLES, FEWER, LANES = (2, 1, (0, 1)) if disabled() else (WIDTH + 1, 3, (0, 4, 8))
"""A full pack and a lane of the next; some of them; those that are compared with their single runs. As Python a pack is
one lane, and the samples take the same lines one after the other.
"""

ARM = """<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody>
<body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6"/>
<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".4"/>
<body pos=".3 0 0"><joint name="c" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".3"/>
<site name="tip" pos=".3 0 0"/></body></body></body>{ball}</worldbody>
<tendon><fixed name="t" {t}><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/></fixed>
<fixed name="u" {u}><joint joint="b" coef="1"/><joint joint="c" coef=".7"/></fixed></tendon>
<equality>{equality}</equality><actuator>{actuators}</actuator></mujoco>"""


def arm(*, t: str = "", u: str = "", equality: str = "", ball: str = "", actuators: str = '<motor joint="c"/>') -> str:
    """Three links in a row, with two tendons over their joints."""
    return ARM.format(t=t, u=u, equality=equality, ball=ball, actuators=actuators)


LINKAGE = """<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody>
<body name="l"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass=".6"/>
<body name="m" pos="0 0 .3"><joint name="b" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass=".4"/></body></body>
<body name="r" pos=".4 0 0"><joint name="c" axis="0 1 0" range="-40 15"/>
<geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass=".6"/></body>
<body name="f" pos=".4 .2 .3"><freejoint/><geom size=".05" mass=".1"/></body></worldbody>
<equality>{equality}</equality><actuator><motor joint="a" gear="4"/></actuator></mujoco>"""
"""A four-bar linkage whose last pin is an equality, driven against the limit of its last bar; and a free body."""

CONNECT = '<connect body1="m" body2="r" anchor=".4 0 0" {}/>'
BALL = """<body pos="0 1 0"><joint name="ball" type="ball" limited="true" range="0 20"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/></body>"""
SPRING = """<spatial name="s" stiffness="9000" damping="3"><site site="home"/><site site="tip"/></spatial>"""
TIE = '<tendon tendon1="t" tendon2="u" polycoef=".02 .5 .3 0 0" {}/>'
MODELS = {
    "hard loop": LINKAGE.format(equality=CONNECT.format("")),
    "soft loop": LINKAGE.format(equality=CONNECT.format('solref=".01 1"')),
    "weld": LINKAGE.format(equality='<weld body1="m" body2="f"/>'),
    "soft coupling": arm(equality='<joint joint1="b" joint2="a" polycoef="0 .5 .2 0 0" solref=".01 1"/>'),
    "hard tendon equality": arm(equality=TIE.format("")),
    "soft tendon equality": arm(equality=TIE.format('solref=".01 1"')),
    "tendon friction and inertia": arm(t='frictionloss=".3"', u='armature=".02" frictionloss=".1"'),
    "actuator on a tendon": arm(actuators='<position tendon="t" kp="40" kv="2" forcerange="-9 9"/><motor tendon="u"/>'),
    "actuators on two tendons": arm(
        t='range="-1 1"',
        actuators='<position tendon="t" kp="90" kv="1" forcerange="-6 6"/><position tendon="u" kp="40" dampratio="1"/>'
        '<general tendon="u" dyntype="filter" dynprm=".03" biastype="affine" biasprm=".2 -30 -1" gainprm="9"/>',
    ),
    "actuator on a site": arm(actuators='<general site="tip" gear="0 0 1 0 0 0" biastype="affine" biasprm="1 0 -3"/>'),
    "ball's angle": arm(ball=BALL),
    "delays": arm(
        actuators='<position joint="a" kp="30" delay="0.01" nsample="8" interp="linear"/>'
        '<general joint="c" dyntype="filter" dynprm=".03" gainprm=".4" delay=".006" nsample="5"/>'
        '<position tendon="t" kp="4" delay="0.01" nsample="8"/>'
    ),
    "swing and twist": pendulum('swing1="0.3" swing2="0.5" twist_lower="-0.2" twist_upper="0.3"'),
    "a hinge that follows a ball": leads("y"),
    "a ball that follows a hinge": follows("x"),
    "stiff springs of tendons": arm(t='stiffness="3000" springlength=".1"', u='stiffness="900" damping="4"'),
    "a stiff spring through space": arm()
    .replace("<worldbody>", '<worldbody><site name="home" pos="0 0 -.5"/>')
    .replace("<tendon>", f"<tendon>{SPRING}"),
}
PUBLIC = {
    "2F-85": "menagerie-fork/robotiq_2f85/2f85.xml",
    "connect": "mujoco/test/engine/testdata/connect.xml",
    "welds": "mujoco/test/engine/testdata/core_smooth/rne_post/weld/tfratio0_multiple_constraints.xml",
    "actuators on tendons": "mujoco/mjx/mujoco/mjx/test_data/actuator/tendon_force_clamp.xml",
    "balls": "mujoco/mjx/mujoco/mjx/test_data/pendula.xml",
}


def load(name: str, folder: Path) -> artsim.Robot:
    path = folder / ("model.xml" if MODELS[name].startswith("<mujoco") else "model.urdf")
    path.write_text(MODELS[name])
    return artsim.load(path)


def drawn(robot: artsim.Robot, samples: int, **options: Any) -> tuple[MemoryRollout, list[Controls]]:
    """A rollout whose samples have velocities and controls of their own, these new ones every 40 steps."""
    rng = np.random.default_rng(5)
    plan = prepare(robot.articulation, RunConfig())
    start = np.arange(0, options["steps"], 40)
    zero = np.zeros((len(start), robot.nv))
    each = [Controls(start, zero, zero, zero, rng.uniform(0, 1, (len(start), plan.control.size))) for _ in range(16)]
    made = artsim.rollout(robot, samples=samples, controls=each[:samples], seed=2, velocity_spread=0.3, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    return made, each


def side_by_side(
    plan: Plan, qpos: Array, qvel: Array, look: Callable[[PackRoller], None] = lambda _: None
) -> tuple[Results, Results]:
    """The results of the samples that start at (qpos, qvel), in packs, with a look at these after each call of their
    kernel, and as single runs."""
    controls = held_controls(plan)
    packs, singles = (make(plan, controls, Results.of(plan, len(qpos))) for make in (PackRoller, SingleRoller))

    def go_on() -> bool:
        look(packs)
        return False

    assert packs.run(Variations(qpos, qvel), go_on)
    assert singles.run(Variations(qpos, qvel), lambda: False)
    return packs.results, singles.results


def differ(made: MemoryRollout, robot: artsim.Robot, each: list[Controls], k: int, **options: Any) -> tuple[Any, float]:
    """How far a lane is from its single run, step by step, relative to the largest coordinate; how far it moved."""
    one = artsim.simulate(robot, controls=each[k], v0=made["qvel"][k, 0], record=("qpos", "qvel"), **options)
    size = max(1.0, float(np.abs(one["qpos"]).max()))
    apart = np.abs(made["qpos"][k] - one["qpos"]).max(axis=1) / size
    return apart, float(np.abs(one["qpos"] - one["qpos"][0]).max())


@pytest.mark.small
@pytest.mark.parametrize("name", MODELS)
def test_every_lane_is_the_single_run(name: str, tmp_path: Path) -> None:
    robot = load(name, tmp_path)
    assert has_ties(prepare(robot.articulation, RunConfig())) or "spring" in name
    made, each = drawn(robot, SAMPLES, steps=STEPS)
    assert made.outcome.solved_alone <= 0.02 * made.outcome.steps
    moved = 0.0
    for k in LANES:
        apart, way = differ(made, robot, each, k, steps=STEPS)
        assert apart.max() < 1e-11
        moved = max(moved, way)
    assert moved > 0.02


@pytest.mark.parametrize("name", ["hard loop", "weld", "actuators on two tendons", "delays", "swing and twist"])
def test_bytes_depend_on_nobody_else(name: str, tmp_path: Path) -> None:
    robot = load(name, tmp_path)
    whole, _ = drawn(robot, 16, threads=1, steps=STEPS)
    for samples, threads in ((16, 2), (3, 1), (11, 1)):
        other, _ = drawn(robot, samples, threads=threads, steps=STEPS)
        for variable in ("qpos", "qvel", "final_qpos", "final_qvel"):
            assert whole[variable][:samples].tobytes() == other[variable].tobytes(), (variable, samples, threads)


@pytest.mark.corpus
@pytest.mark.parametrize("name", PUBLIC)
def test_public_models_in_lanes(name: str) -> None:
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    robot = artsim.load(folder / "files" / PUBLIC[name])
    made, each = drawn(robot, 9, steps=60)
    for k in (0, 8):
        apart, _ = differ(made, robot, each, k, steps=60)
        assert apart.max() < 1e-11, apart


def test_loops_follow_the_masses_of_each_sample(tmp_path: Path) -> None:
    """A soft loop yields by the mobility of its links, whose masses differ from lane to lane."""
    robot = load("soft loop", tmp_path)
    options: dict[str, Any] = {"steps": 60, "control": {"actuator_0": 0.5}}
    made = artsim.rollout(robot, samples=9, randomise={"mass": (0.5, 2.0)}, velocity_spread=0.3, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    for k in (0, 5):
        text = MODELS["soft loop"]
        factors = dict(zip(robot.labels.links, made["mass_factor"][k], strict=True))
        for link, mass in (("l", ".6"), ("m", ".4"), ("r", ".6")):
            at = text.index(f'<body name="{link}"')
            text = text[:at] + text[at:].replace(f'mass="{mass}"', f'mass="{float(mass) * float(factors[link])!r}"', 1)
        heavier = tmp_path / "heavier.xml"
        heavier.write_text(text)
        one = artsim.simulate(artsim.load(heavier), v0=made["qvel"][k, 0], record=("qpos",), **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)


PIN = """[[loop]]
kind = "hinge"
link_a = "m"
link_b = "r"
point_a = [0.4, 0, 0]
axis_a = [0, 1, 0]
[loop.rz.drive]
stiffness = 400.0
damping = 20.0
target = 0.3
mode = "acceleration"
max_force = 2.0
"""
"""The linkage's last pin, with a drive whose gains are accelerations."""


@pytest.mark.small
def test_drives_of_loops_go_by_the_inertias_of_each_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "linkage.xml").write_text(LINKAGE.format(equality=""))
    (tmp_path / "pin.toml").write_text(PIN)
    robot = artsim.load(tmp_path / "linkage.xml", loops=tmp_path / "pin.toml")
    options: dict[str, Any] = {"steps": STEPS, "randomise": {"mass": (0.5, 2.0)}, "control": {"actuator_0": 0.5}}
    made = artsim.rollout(robot, samples=SAMPLES, velocity_spread=0.3, **options)
    assert made.outcome.packed
    assert made.outcome.solved_alone <= 0.02 * made.outcome.steps
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    single = artsim.rollout(robot, samples=SAMPLES, velocity_spread=0.3, **options)
    assert isinstance(made, MemoryRollout)
    assert isinstance(single, MemoryRollout)
    assert np.abs(made["qpos"] - single["qpos"]).max() < 1e-11
    assert np.ptp(single["qpos"], axis=0).max() > 0.02


@pytest.mark.small
@pytest.mark.parametrize(
    "lines",
    [
        'kind = "hinge"\naxis_a = [0, 1, 0]',
        'kind = "hinge"\naxis_a = [0, 1, 0]\nfrequency = 6.0\ndamping_ratio = 0.3',
        'kind = "connect"\nk = 900.0\nd = 3.0',
        'kind = "connect"\ncompliance = 1e-3\ncompliance_damping = 0.01',
        'kind = "cylindrical"\naxis_a = [0, 1, 0]',
        'kind = "joint"\nfree = ["x", "ry"]\nk = 900.0\nd = 3.0\nk_rotation = 5.0\nd_rotation = 0.1',
    ],
    ids=["hinge", "hinge by frequency", "stiffness", "compliance", "cylindrical", "two axes with springs"],
)
def test_loops_of_every_kind_are_packed(lines: str, tmp_path: Path) -> None:
    """Loops that translate, turn and give way, built in all lanes at once."""
    (tmp_path / "linkage.xml").write_text(LINKAGE.format(equality=""))
    (tmp_path / "pin.toml").write_text(f'[[loop]]\nlink_a = "m"\nlink_b = "r"\npoint_a = [0.4, 0, 0]\n{lines}\n')
    robot = artsim.load(tmp_path / "linkage.xml", loops=tmp_path / "pin.toml")
    made, each = drawn(robot, SAMPLES, steps=STEPS)
    assert made.outcome.solved_alone <= 0.02 * made.outcome.steps
    for k in LANES:
        apart, way = differ(made, robot, each, k, steps=STEPS)
        assert apart.max() < 1e-11
        assert way > 0.02


@pytest.mark.small
def test_linkages_pass_their_change_points_in_lanes(tmp_path: Path) -> None:
    """Aims by the secant, each lane by its own."""
    (tmp_path / "rods.xml").write_text(parallelograms(1))
    robot = artsim.load(tmp_path / "rods.xml")
    options: dict[str, Any] = {"steps": 14, "dt": 0.01, "q0": {"c0": 1.45, "k0": -1.45, "c1": 1.45}}
    made, each = drawn(robot, SAMPLES, v0={"c0": 5.0, "k0": -5.0, "c1": 5.0}, **options)
    assert made.outcome.solved_alone <= 0.02 * made.outcome.steps
    for k in LANES:
        apart, way = differ(made, robot, each, k, **options)
        assert apart.max() < 1e-8
        assert way > 0.4
        assert np.abs(made["qpos"][k, :, 0] - made["qpos"][k, :, 2]).max() < 2e-3


@pytest.mark.small
@pytest.mark.parametrize(("text", "remedy"), [(held(), MOST), (table(1e-6), COUNT)], ids=["contact", "light legs"])
def test_strained_loops_are_settled_in_lanes(
    text: str, remedy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every step of every lane, contacts are left out, or rows of loops stiffened."""
    (tmp_path / "strained.xml").write_text(text)
    robot = artsim.load(tmp_path / "strained.xml")
    drives: dict[str, Any] = {"stiffness": {"s*": 1e6}, "damping": {"s*": 2e4}} if "s5" in text else {}
    plan = prepare(robot.articulation, RunConfig(steps=10, dt=0.002, record=("qpos",), **drives))
    monkeypatch.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)
    strained = []

    def look(roller: PackRoller) -> None:
        lanes = np.array(roller.pack.step.straining[remedy]).ravel()
        strained.append(lanes[: len(roller.pack.lanes.data.alive)] > 0)
        roller.pack.step.straining[...] = 0.0

    qvel = np.random.default_rng(5).uniform(-0.3, 0.3, (SAMPLES, robot.nv))
    packed, single = side_by_side(plan, np.tile(plan.qpos, (SAMPLES, 1)), qvel, look)
    assert len(strained) >= 10 and np.array(strained)[:10].all()
    size = max(1.0, float(np.abs(single.rows["qpos"]).max()))
    assert np.abs(packed.rows["qpos"] - single.rows["qpos"])[:SAMPLES].max() < 1e-9 * size


@pytest.mark.small
@pytest.mark.parametrize(
    "options",
    [{}, {"record": ("contact_wrench",), "every": 3}, {"sleep_threshold": 0.05, "sleep_time": 0.01}],
    ids=["", "recorded by the single robot", "falls asleep"],
)
def test_what_loops_hold_inside_is_counted_in_lanes(options: dict[str, Any], tmp_path: Path) -> None:
    """A bar and the block at its tip over the ground, which the weld pulls into each other: the further apart they are
    at first, the later."""
    (tmp_path / "held.xml").write_text(OVER_GROUND)
    robot = artsim.load(tmp_path / "held.xml")
    plan = prepare(robot.articulation, RunConfig(**({"steps": 9, "dt": 0.004, "record": ()} | options)))
    qpos, qvel = np.tile(plan.qpos, (3, 1)), np.zeros((3, robot.nv))
    qpos[:, robot.labels.coords.index("block.x")] = (0.013, 0.007, 0.0)
    qvel[:, 0] = (0.2, 0.1, 0.2)
    packed, single = side_by_side(plan, qpos, qvel)
    np.testing.assert_allclose(packed.held, single.held, rtol=0, atol=1e-9)
    steps, bodies = packed.held[:3, HELD_STEPS], [robot.links.index(name) for name in ("bar", "block")]
    assert len(set(steps)) > 1 and steps.min() > 0
    assert (packed.held[:3, HELD_A : HELD_B + 1] == bodies).all()
    assert not packed.held[3:].any()


@pytest.mark.small
@pytest.mark.parametrize("name", ["hard loop", "soft coupling"])
def test_damped_links_are_packed(name: str, tmp_path: Path) -> None:
    robot = load(name, tmp_path)
    options: dict[str, Any] = {"steps": STEPS, "link_damping": {"*": (2.0, 1.0)}}
    made, each = drawn(robot, SAMPLES, **options)
    assert made.outcome.solved_alone == 0
    free, _ = drawn(robot, SAMPLES, steps=STEPS)
    assert np.abs(made["qpos"] - free["qpos"]).max() > 1e-3
    for k in LANES:
        apart, _ = differ(made, robot, each, k, **options)
        assert apart.max() < 1e-11


@pytest.mark.small
@pytest.mark.parametrize(
    "options",
    [{"coupling": "rows"}, {"coupling": "compliant", "coupling_frequency": {"right_finger_joint": 20.0}}],
    ids=["hard", "by frequency"],
)
def test_couplings_that_are_rows_are_packed(options: dict[str, Any]) -> None:
    """A natural frequency is by the mobility that the step finds."""
    robot = artsim.load(ROOT / "robots" / "parallel_gripper.urdf")
    made, each = drawn(robot, SAMPLES, steps=60, **options)
    for k in LANES:
        apart, way = differ(made, robot, each, k, steps=60, **options)
        assert apart.max() < 1e-11
        assert way > 1e-3


@pytest.mark.small
def test_curved_couplings_are_aimed_in_lanes(tmp_path: Path) -> None:
    """A hard coupling by a parabola stays closed in every lane."""
    path = tmp_path / "arm.xml"
    path.write_text(arm(equality='<joint joint1="b" joint2="a" polycoef="0 .5 .2 0 0"/>'))
    robot = artsim.load(path)
    assert has_ties(prepare(robot.articulation, RunConfig(coupling="rows")))
    made, each = drawn(robot, SAMPLES, steps=STEPS, coupling="rows")
    assert made.outcome.solved_alone == 0
    for k in LANES:
        apart, way = differ(made, robot, each, k, steps=STEPS, coupling="rows")
        assert apart.max() < 1e-11
        assert way > 0.02
        leader, follower = made["qpos"][k, :, 0], made["qpos"][k, :, 1]
        assert np.abs(follower - 0.5 * leader - 0.2 * leader**2).max() < 1e-8


@pytest.mark.small
@pytest.mark.parametrize(
    ("damping", "more"), [(20, {}), (0.3, {"integrator": "rk4", "link_damping": {"*": (60.0, 60.0)}})], ids=["", "rk4"]
)
def test_lanes_fall_asleep_and_wake(damping: float, more: dict[str, Any], tmp_path: Path) -> None:
    """An arm that damping brings to rest, in some lanes sooner, and that an input wakes."""
    path = tmp_path / "arm.xml"
    path.write_text(
        arm().replace('axis="0 1 0"', f'axis="0 0 1" damping="{damping}"').replace("<option", '<option gravity="0 0 0"')
    )
    robot = artsim.load(path)
    start, zero = np.array([0, 100]), np.zeros((2, robot.nv))
    controls = Controls(start, zero, zero, zero, np.array([[0.0], [0.5]]))
    options: dict[str, Any] = {"steps": STEPS, "sleep_threshold": 1e-6, "sleep_time": 0.04, "controls": controls} | more
    made = artsim.rollout(robot, samples=SAMPLES, velocity_spread=0.3, seed=2, **options)
    assert isinstance(made, MemoryRollout)
    assert made.outcome.packed
    asleep = (made["qvel"] == 0.0).all(axis=2)
    assert len({int(np.argmax(lane)) for lane in asleep}) > 1
    for k in LANES:
        one = artsim.simulate(robot, v0=made["qvel"][k, 0], record=("qpos", "qvel", "asleep"), **options)
        np.testing.assert_array_equal(asleep[k, 1:100], np.asarray(one["asleep"], bool)[1:100])
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
        assert asleep[k, 99]
        assert not asleep[k, 101:].any()


HANDS = """<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody>
<body name="upper"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6"/>
<body name="lower" pos=".3 0 0"><joint name="b" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".4"/>
<body name="hand" pos=".3 0 0"><joint name="c" axis="1 0 0" range="-20 20"/>
<geom type="capsule" fromto="0 0 0 .3 .1 0" size=".02" mass=".3"/></body></body></body></worldbody>
<actuator><position joint="c" kp="3" kv=".1"/></actuator></mujoco>"""


@pytest.mark.small
@pytest.mark.parametrize(
    "options",
    [
        {"link_velocity_limit": {"hand": (0.6, None), "lower": (0.7, 1.0)}},
        {"com_velocity_limit": (0.3, 2.0)},
        {"link_velocity_limit": {"hand": (0.6, None)}, "link_damping": {"*": (0.5, 0.2)}},
    ],
    ids=["links", "the whole robot", "damped"],
)
def test_velocity_bounds_of_links_are_packed(options: dict[str, Any], tmp_path: Path) -> None:
    """An arm that falls until a bound holds it. The bound of a length leaves its direction open by the root of what the
    length may be off, 1e-13: where the whole robot's has two parts, more than rounding is left of it.
    """
    path = tmp_path / "arm.xml"
    path.write_text(HANDS)
    robot = artsim.load(path)
    made, each = drawn(robot, SAMPLES, steps=STEPS, **options)
    assert made.outcome.solved_alone == 0
    fewer, _ = drawn(robot, FEWER, threads=1, steps=STEPS, **options)
    assert fewer["qvel"].tobytes() == made["qvel"][:FEWER].tobytes()
    free, _ = drawn(robot, SAMPLES, steps=STEPS)
    for k in LANES:
        apart, _ = differ(made, robot, each, k, steps=STEPS, **options)
        assert apart.max() < (1e-9 if "com_velocity_limit" in options else 1e-11)
        for name, (linear, angular) in options.get("link_velocity_limit", {}).items():
            twist, would = (
                robot.compute(run["qpos"][k, 2:], run["qvel"][k, 2:], quantities=["link_velocity"], at="com")[
                    "link_velocity"
                ][:, robot.links.index(name)]
                for run in (made, free)
            )
            for bound, part in ((linear, slice(0, 3)), (angular, slice(3, 6))):
                if bound is not None:
                    assert np.linalg.norm(twist[:, part], axis=1).max() <= bound * (1 + 1e-11)
            assert np.linalg.norm(would[:, :3], axis=1).max() > 1.2 * linear


@pytest.mark.small
def test_lanes_fall_at_their_bound(tmp_path: Path) -> None:
    path = tmp_path / "slide.xml"
    path.write_text(
        '<mujoco><option timestep="0.002"/><worldbody><body name="cart"><joint name="z" type="slide" axis="0 0 1"/>'
        '<geom size=".1" mass="2"/></body></worldbody></mujoco>'
    )
    options: dict[str, Any] = {"steps": 60, "link_velocity_limit": {"cart": (0.2, None)}}
    made = artsim.rollout(artsim.load(path), samples=SAMPLES, velocity_spread=0.1, **options)
    assert made.outcome.packed
    assert made.outcome.solved_alone == 0
    np.testing.assert_allclose(made["final_qvel"], -0.2, rtol=1e-12)


def test_lanes_that_break_a_bound_stop_as_their_single_runs_do(tmp_path: Path) -> None:
    """Some arms move so fast that no force holds all bounds. Where this comes about slowly, rounding decides which of
    two steps is the first in which none is found: starts that differ by 1e-9 do as well.
    """
    path = tmp_path / "arm.xml"
    path.write_text(HANDS)
    robot = artsim.load(path)
    options: dict[str, Any] = {"steps": STEPS, "link_velocity_limit": {"hand": (0.6, 1.5)}, "check": False}
    made, each = drawn(robot, 9, link_damping={"*": (0.5, 0.2)}, **options)
    done = made["n_valid"] == STEPS
    assert 0 < done.sum() < 9
    np.testing.assert_array_equal(made["status"], np.where(done, 1, 3))
    assert all("does not hold: no forces" in told for told in made.outcome.messages)
    for k in range(9):
        damped = {"link_damping": {"*": (0.5, 0.2)}, "record": ("qvel",)}
        one = artsim.simulate(robot, controls=each[k], v0=made["qvel"][k, 0], **damped, **options)
        assert abs(len(one["time"]) - made["n_valid"][k]) <= 1
        common = min(len(one["time"]), made["n_valid"][k])
        np.testing.assert_allclose(made["qvel"][k][:common], one["qvel"][:common], rtol=0, atol=1e-6)


@pytest.mark.small
def test_lanes_end_where_no_force_holds_a_bound(tmp_path: Path) -> None:
    """Arms on the way to a place where the hand's two bounds contradict each other, and one that stays away from it."""
    path = tmp_path / "arm.xml"
    path.write_text(HANDS)
    robot = artsim.load(path)
    bounds = {"hand": (0.6, 1.5)}
    config = RunConfig(steps=12, link_velocity_limit=bounds, control={"actuator_0": 1.0}, record=ROLLOUT_RECORDED)
    plan = prepare(robot.articulation, config)
    qpos = np.array(
        [[0.05, -0.05, 0.08], [0.05, -0.06, 0.09], [0.06, -0.07, 0.1], [0.08, -0.09, 0.11], [0.0, 0.0, 0.0]]
    )
    qvel = np.array([[1.77, -1.88, 1.5], [1.91, -2.02, 1.5], [2.05, -2.15, 1.5], [2.33, -2.43, 1.5], [0.0, 0.0, 0.0]])
    packed, single = side_by_side(plan, qpos, qvel)
    assert single.stopped[:5].tolist() == [9, 7, 5, 1, -1]
    for name in ("stopped", "stopped_dof", "reason"):
        np.testing.assert_array_equal(getattr(packed, name)[:5], getattr(single, name)[:5])
    assert (packed.reason[:4] == TOO_FAST).all()
    for k in range(5):
        for name in ROLLOUT_RECORDED:
            lane, one = (results.rows[name][k, : packed.stopped[k]] for results in (packed, single))
            np.testing.assert_allclose(lane, one, rtol=0, atol=1e-9)


TAUT = {"joint_1": 1.5}
"""A chain of twenty light links with a heavy end, which are stiffened in every step."""


@pytest.mark.small
@pytest.mark.parametrize(
    "damping", [{}, {"link_damping": {"*": (0.1, 0.1)}}], ids=["without rows", "with M as a matrix"]
)
def test_taut_bodies_are_stiffened_in_lanes(damping: dict[str, Any]) -> None:
    robot = artsim.load(ROOT / "robots" / "chain20.urdf")
    options: dict[str, Any] = {"steps": 60, "dt": 0.002, "q0": TAUT, "friction_coefficient": {}, **damping}
    made, each = drawn(robot, SAMPLES, **options)
    assert made.outcome.solved_alone == 0
    for k in LANES:
        apart, way = differ(made, robot, each, k, **options)
        assert apart.max() < 1e-11
        assert way > 0.02
    fewer, _ = drawn(robot, FEWER, threads=1, **options)
    assert fewer["qvel"].tobytes() == made["qvel"][:FEWER].tobytes()


@pytest.mark.corpus
def test_loops_that_pull_are_stiffened_in_lanes() -> None:
    """A platform on six legs, at steps that are long for it and pull its legs taut."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    robot = artsim.load(folder / "files/unilab/src/unilab/assets/robots/stewart/scene.xml")
    options: dict[str, Any] = {"steps": 24, "dt": 0.01, "contacts": False}
    made, each = drawn(robot, 9, **options)
    assert made.outcome.solved_alone == 0
    for k in (0, 8):
        apart, _ = differ(made, robot, each, k, **options)
        assert apart.max() < 1e-10


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"integrator": "rk4"},
            "integrator rk4 with limits of balls, couplings that are rows, or equipment other than affine actuators of "
            "joints",
        ),
    ],
)
def test_what_packs_lack_is_said(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    robot = load("soft coupling", tmp_path)
    assert reason_against_packs(prepare(robot.articulation, RunConfig(**options))) == reason
