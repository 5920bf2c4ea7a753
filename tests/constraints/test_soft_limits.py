"""Limits of joints and of tendons of joints, by option and by file of loops, hard and with a stiffness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.loaders.loops import with_loops
from artsim.sim.foundation.errors import ModelError, SettingError, UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import plan_run
from tests.cli.test_cli_run import good, refused
from tests.simulation import box_link, simulate

G = 9.81
FAR = '<limit lower="-9" upper="9" effort="1e9" velocity="1e9"/>'


def lift(kind: str = "prismatic", axis: str = "0 0 1", limit: str = FAR) -> str:
    """A mass of 2 kg on one joint."""
    return (
        f'<robot name="r"><link name="base"/>{box_link("b", 2.0)}<joint name="j" type="{kind}"><parent link="base"/>'
        f'<child link="b"/><axis xyz="{axis}"/>{limit}</joint></robot>'
    )


# --- joints ----------------------------------------------------------------------------------------------------------


def test_a_limit_with_a_stiffness_carries_its_load() -> None:
    """x = x0 - m g / k at rest; on the way f = k (x0 - x - ¼ h (ẋ⁺ - ẋ)) - d ẋ⁺ and never less than 0."""
    given = {"lower_limit": {"j": -0.05}, "limit_stiffness": {"j": 800.0}, "limit_damping": {"j": 20.0}}
    run = simulate(lift(), steps=4000, dt=1e-3, record=("qpos", "qvel", "tau_limit"), **given)
    x, v, force = run["qpos"][:, 0], run["qvel"][:, 0], run["tau_limit"][:, 0]
    left = 0.1 * np.exp(-5.0 * 4.0)  # of a swing below 0.1 m that decays by d / 2 m
    assert x[-1] == pytest.approx(-0.05 - 2 * G / 800, abs=left)
    assert force[-1] == pytest.approx(2 * G, abs=800 * left)
    place = x[:-1] + 0.25e-3 * np.diff(v)  # rows hold the state before the step
    wanted = np.maximum(0.0, 800 * (-0.05 - place) - 20 * v[1:])
    pressed = force[:-1] > 0
    assert 3000 < pressed.sum() < 3999
    np.testing.assert_allclose(force[:-1][pressed], wanted[pressed], rtol=0, atol=1e-8)
    assert np.all(force >= 0.0)


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_a_soft_limit_pushes_what_leaves_it_within_a_step(speed: float) -> None:
    """It starts 1 mm deep and ends 0.5 mm deep or 1 mm beyond: f = k (x0 - x - ¼ h (ẋ⁺ - ẋ)) in both; then nothing."""
    given: dict[str, Any] = {"lower_limit": {"j": -0.05}, "limit_stiffness": {"j": 800.0}, "dt": 1e-3}
    start: dict[str, Any] = {"q0": {"j": -0.051}, "v0": {"j": speed}}
    run = simulate(lift(), steps=6, record=("qpos", "qvel", "tau_limit"), **given, **start)
    v, force = run["qvel"][:, 0], run["tau_limit"][:, 0]
    assert force[0] == pytest.approx(800 * (0.001 - 0.25e-3 * (v[1] - v[0])), rel=1e-9)
    assert v[1] - v[0] == pytest.approx(1e-3 * (force[0] / 2 - G), rel=1e-9)
    assert np.all(force[run["qpos"][:, 0] >= -0.05] == 0.0)


def test_a_soft_limit_gives_back_what_it_takes() -> None:
    """Without damping the mass falls ½ k x² = m g (0.05 + x) deep, and comes back to where it fell from."""
    given = {"lower_limit": {"j": -0.05}, "limit_stiffness": {"j": 800.0}}
    run = simulate(lift(), steps=5000, dt=1e-4, record=("qpos", "energy"), **given)
    deepest = 0.05 + (G + np.sqrt(G * G + 2 * G * 0.05 * 400)) / 400
    assert -run["qpos"].min() == pytest.approx(deepest, rel=1e-4)
    turned = int(np.argmin(run["qpos"]))
    assert abs(run["qpos"][turned:].max()) < 1e-4 * deepest


def test_a_stiff_limit_is_a_hard_one() -> None:
    ends = [
        simulate(lift(), steps=800, dt=1e-3, record=("qpos",), lower_limit={"j": -0.05}, **more)["qpos"][:, 0]
        for more in ({}, {"limit_stiffness": {"j": 1e12}})
    ]
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=2.5e-9)  # m v / h / k: the impact


def test_limits_of_each_axis_of_a_joint() -> None:
    """A slab on a planar joint: x soft, y hard, its angle locked, each axis by its own name."""
    axes = ("j.x", "j.y", "j.angle")
    text = lift("planar", "0 1 0", "")
    assert plan_run(load_text(text, name="r"), RunConfig()).robot.dofs == axes
    given: dict[str, Any] = {
        "upper_limit": {"j.x": 0.02, "j.y": 0.03, "j.angle": 0.0},
        "lower_limit": {"j.angle": 0.0},
        "limit_stiffness": {"j.x": 500.0},
        "limit_damping": {"j.x": 30.0},
    }
    push = {"j.x": 10.0, "j.y": 10.0, "j.angle": 1.0}
    run = simulate(text, steps=2000, gravity=(0, 0, 0), torque=push, record=("qpos", "tau_limit"), **given)
    np.testing.assert_allclose(run["qpos"][-1], [0.02 + 10 / 500, 0.03, 0.0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(run["tau_limit"][-1], [-10.0, -10.0, -1.0], rtol=0, atol=1e-6)
    assert np.abs(run["qpos"][:, 2]).max() < 1e-9


def test_what_cannot_be_is_refused_by_name() -> None:
    ball = lift().replace('type="prismatic"', 'type="revolute"')
    robot = load_text(ball, name="r")

    def planned(**given: Any) -> Any:
        return plan_run(robot, RunConfig(**given))

    with pytest.raises(SettingError, match="lower_limit: j is 10, above its upper limit of 9"):
        planned(lower_limit={"j": 10.0})
    with pytest.raises(SettingError, match="limit_damping: j has no --limit-stiffness: its limits are hard"):
        planned(limit_damping={"j": 1.0})
    with pytest.raises(SettingError, match=r"limit_stiffness: j is -1\.0, want a number from 0"):
        planned(limit_stiffness={"j": -1.0})
    with pytest.raises(SettingError, match="upper_limit: 'k' is not a joint of this robot"):
        planned(upper_limit={"k": 1.0})
    with pytest.raises(UsageError, match="maximal has nothing for limits with a stiffness"):
        planned(limit_stiffness={"j": 5.0}, coordinates="maximal", contacts=False)
    soft = plan_run(robot, RunConfig(limit_stiffness={"j": 5.0}))
    assert reason_against_packs(soft) == ""
    swing = '<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1"/></body></worldbody></mujoco>'
    with pytest.raises(SettingError, match=r"lower_limit: 'b\.wx' turns without a coordinate: give its joint --swing"):
        plan_run(load_text(swing, name="m.xml"), RunConfig(lower_limit={"b.wx": 0.0}))


def test_by_the_command_line_and_made_again(tmp_path: Path) -> None:
    model, output = tmp_path / "l.urdf", tmp_path / "r.h5"
    model.write_text(lift())
    given = ("--lower-limit", "j=-0.05", "--limit-stiffness", "800", "--limit-damping", "j=60")
    good("run", model, "--steps", "1500", *given, "-o", output)
    with artsim.open(output) as recording:
        assert recording["qpos"][-1, 0] == pytest.approx(-0.05 - 2 * G / 800, rel=1e-6)
    assert "every byte equal" in good("replay", "--verify", output).stdout
    assert "above its upper limit" in refused(2, "run", model, "--lower-limit", "j=10")
    run = artsim.simulate(artsim.load(model), steps=1500, lower_limit={"j": -0.05}, limit_stiffness=800.0)
    assert run["qpos"].min() < -0.06


# --- tendons of joints (PhysX's fixed tendons) -----------------------------------------------------------------------

TWO = (
    f'<robot name="r"><link name="base"/>{box_link("a", 2.0)}{box_link("b", 3.0)}'
    + "".join(
        f'<joint name="{joint}" type="prismatic"><parent link="base"/><child link="{child}"/><axis xyz="1 0 0"/>'
        f"{FAR}</joint>"
        for joint, child in (("one", "a"), ("two", "b"))
    )
    + "</robot>"
)


def tied(**keys: Any) -> Any:
    """Two sliders of 2 and 3 kg with a tendon of coefficients 1.5 and -0.5."""
    lines = "\n".join(f"{key} = {value!r}" for key, value in keys.items())
    text = f'[[loop]]\nkind = "tendon"\nname = "t"\njoints = {{ one = 1.5, two = -0.5 }}\n{lines}'
    return with_loops(load_text(TWO, name="r.urdf"), text, file="l")


def test_a_tendon_s_spring_acts_by_its_coefficients() -> None:
    """τ_i = -c_i (k (offset + Σ c q - rest) + d Σ c v), in a short step."""
    robot = tied(offset=0.1, rest_length=0.05, k=40.0, d=3.0)
    start = {"q0": {"one": 0.2, "two": -0.1}, "v0": {"one": 0.3, "two": 0.4}}
    run = simulate(robot, steps=1, dt=1e-6, record=("tau_tendon", "tendon_length", "tendon_force"), **start)
    length, rate = 1.5 * 0.2 + 0.5 * 0.1, 1.5 * 0.3 - 0.5 * 0.4
    force = -40 * (0.1 + length - 0.05) - 3 * rate
    assert run["tendon_length"][0] == pytest.approx([length], abs=1e-12)  # without the offset
    assert run["tendon_force"][0] == pytest.approx([force], rel=1e-4)
    assert run["tau_tendon"][0] == pytest.approx([1.5 * force, -0.5 * force], rel=1e-4)


def test_a_tendon_moves_as_mujoco_s() -> None:
    robot = tied(offset=0.1, rest_length=0.05, k=40.0, d=1.0)
    mjcf = """<mujoco><option timestep="1e-4" gravity="0 0 0"/><worldbody>
      <body><joint name="one" type="slide" axis="1 0 0"/><geom type="box" size=".05 .1 .15" mass="2"/></body>
      <body><joint name="two" type="slide" axis="1 0 0"/><geom type="box" size=".05 .1 .15" mass="3"
        contype="0" conaffinity="0"/></body></worldbody>
      <tendon><fixed stiffness="40" damping="1" springlength="-.05">
        <joint joint="one" coef="1.5"/><joint joint="two" coef="-.5"/></fixed></tendon></mujoco>"""
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.2, -0.1
    for _ in range(5000):
        mujoco.mj_step(model, data)
    run = simulate(robot, steps=5001, dt=1e-4, q0={"one": 0.2, "two": -0.1}, record=("qpos",))
    np.testing.assert_allclose(run["qpos"][-1], data.qpos, rtol=0, atol=2e-4)


@pytest.mark.parametrize("soft", [False, True])
def test_a_tendon_s_limits(soft: bool) -> None:
    """10 N on the first slider: the length of 0.4 with its offset, beyond it 10 / 1.5 / k_limit where it gives way.

    The other slider is pushed by the tendon until a drive balances it.
    """
    more = {"limit_stiffness": 300.0, "limit_damping": 60.0} if soft else {}
    robot = tied(offset=0.1, upper=0.4, lower=0.0, **more)
    drive = {"stiffness": {"two": 100.0}, "damping": {"two": 30.0}, "target": {"two": 0.0}}
    record = ("qpos", "tendon_length", "tendon_force", "tau_drive")
    run = simulate(robot, steps=6000, torque={"one": 10.0}, record=record, **drive)
    pull = 10 / 1.5
    assert run["tendon_force"][-1, 0] == pytest.approx(-pull, rel=1e-6)
    assert run["tau_drive"][-1, 1] == pytest.approx(-0.5 * pull, rel=1e-5)
    assert run["tendon_length"][-1, 0] + 0.1 == pytest.approx(0.4 + (pull / 300 if soft else 0.0), rel=1e-6)


def test_a_rope_is_free_until_it_is_taut() -> None:
    """Between its limits a distance exerts nothing; taut it carries the weight."""
    body = box_link("b", 2.0)
    robot = load_text(f'<robot name="r">{body}</robot>', name="r", base="floating")
    text = '[[loop]]\nkind = "distance"\nlink_a = "b"\nlink_b = "world"\npoint_b = [0, 0, 0.2]\nupper = 0.5\n'
    for soft, stretch in (("", 0.0), ("limit_stiffness = 4000.0\nlimit_damping = 200.0\n", 2 * G / 4000)):
        rope = with_loops(robot, text + soft, file="l")
        run = simulate(rope, base="floating", steps=3000, dt=1e-3, record=("qpos", "tendon_force"))
        slack = run["qpos"][:, 2] > -0.29
        assert slack.sum() > 200
        assert not run["tendon_force"][:-1][slack[:-1]].any()
        assert run["qpos"][-1, 2] == pytest.approx(-0.3 - stretch, abs=1e-6)
        assert run["tendon_force"][-1, 0] == pytest.approx(-2 * G, rel=1e-5)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("joints = {}", "joints is {}, want a table of coefficients by joint"),
        ("joints = { on = 1.0 }", "joints names 'on', no joint with one coordinate; did you mean 'one'?"),
        ("joints = { one = 1.0 }\nrest_length = 0.1", "has a rest_length or damping and no stiffness k"),
        ("joints = { one = 1.0 }\nlower = 1.0\nupper = 0.0", "the lower limit 1 is greater than the upper one 0"),
        ("joints = { one = 1.0 }\nlimit_stiffness = 9.0", "has a limit_stiffness and no lower or upper"),
        ("joints = { one = 1.0 }\nlength = 9.0", "a tendon has no 'length'"),
    ],
)
def test_tendons_that_cannot_be(keys: str, told: str) -> None:
    with pytest.raises(ModelError) as caught:
        with_loops(load_text(TWO, name="r"), f'[[loop]]\nkind = "tendon"\n{keys}', file="l")
    assert told in str(caught.value)
