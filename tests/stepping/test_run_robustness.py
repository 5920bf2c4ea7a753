"""Runs stop where they must, and are the same bytes however they are cut into blocks and controlled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from tests.simulation import Array, Run, box_link, constant_controls, joint, robot_file, simulate, slider, urdf

PENDULUM = robot_file("double_pendulum")
CASES: dict[str, tuple[Path, dict[str, Any]]] = {
    "arm7": (robot_file("arm7"), {"stiffness": {"*": 50.0}, "damping": {"*": 1.0}, "drive_limit": {"*": 20.0}}),
    "gripper": (robot_file("two_finger_gripper"), {"torque": {"left_driver_joint": 1.0}}),
    "gripper, rows": (robot_file("two_finger_gripper"), {"torque": {"left_driver_joint": 1.0}, "coupling": "rows"}),
    "quadruped": (robot_file("quadruped"), {"base": "floating", "v0": {"root.wx": 2.0}, "velocity_limits": True}),
    "friction": (robot_file("arm7"), {"friction_coefficient": {"*": 0.02}, "solver": "pgs", "iterations": 10}),
    "rk4": (robot_file("arm7"), {"v0": {"joint_2": 1.0}, "stiffness": {"joint_4": 5.0}, "integrator": "rk4"}),
}
each_case = pytest.mark.parametrize(
    ("model", "config"), [pytest.param(*case, marks=pytest.mark.small, id=name) for name, case in CASES.items()]
)


def all_names(config: dict[str, Any]) -> tuple[str, ...]:
    """Every variable that the integrator records."""
    lacks = {"delassus"} if config.get("integrator") == "rk4" else set()
    return tuple(name for name in RECORDED if name not in lacks)


@each_case
@pytest.mark.parametrize("block_rows", [None, 1, 7, 1000])
def test_blocks_and_repetition_do_not_matter(model: Path, config: dict[str, Any], block_rows: int | None) -> None:
    """Every recorded byte is the same, all fields recorded."""
    first = simulate(model, steps=20, record=all_names(config), **config)
    again = simulate(model, steps=20, record=all_names(config), block_rows=block_rows, **config)
    assert again.bytes() == first.bytes()


@each_case
def test_what_is_recorded_does_not_matter(model: Path, config: dict[str, Any]) -> None:
    """Recording everything leaves scratch behind; the motion does not see it."""
    every = simulate(model, steps=20, record=all_names(config), **config)
    for record in (("qpos",), ("energy", "momentum", "qpos"), ("tau_coupling", "mass_matrix")):
        few = simulate(model, steps=20, record=record, **config)
        assert few.simulation.qpos.tobytes() == every.simulation.qpos.tobytes()
        assert few.simulation.qvel.tobytes() == every.simulation.qvel.tobytes()
        for name in record:
            assert few[name].tobytes() == every[name].tobytes(), name


@each_case
@pytest.mark.parametrize("block_rows", [None, 2])
def test_every_third_row(model: Path, config: dict[str, Any], block_rows: int | None) -> None:
    every = simulate(model, steps=20, **config)
    third = simulate(model, steps=20, every=3, block_rows=block_rows, **config)
    assert len(third["qpos"]) == 7
    for name, values in third.rows.items():
        assert values.tobytes() == np.ascontiguousarray(every[name][::3]).tobytes(), name
    assert third.simulation.qpos.tobytes() == every.simulation.qpos.tobytes()
    assert third.simulation.step == 20


@each_case
@pytest.mark.parametrize("every", [1, 3])
def test_python_controller_is_the_constant_torque(model: Path, config: dict[str, Any], every: int) -> None:
    """A function asked before each step, each step a block of its own, gives the bytes of the torque it returns."""
    torque: list[Array] = []

    def controls(plan: Plan) -> Controls:
        torque.append(plan.torque + 0.1)
        rows = constant_controls(plan)
        return Controls(rows.start_step, torque[-1][None], rows.target, rows.target_velocity)

    constant = simulate(model, steps=15, every=every, controls=controls, **config)
    asked = simulate(model, steps=15, every=every, function=lambda t, q, v: torque[0], **config)
    assert asked.bytes() == constant.bytes()


@pytest.mark.small
def test_controller_sees_time_and_state() -> None:
    seen: list[tuple[float, Array, Array]] = []

    def function(t: float, q: Array, v: Array) -> Array:
        seen.append((t, q, v))
        return np.array([0.3 * np.sin(40 * t), -0.5 * v[1]])

    run = simulate(PENDULUM, steps=12, dt=0.01, q0={"joint_1": 0.4}, function=function)
    assert [t for t, _, _ in seen] == pytest.approx(np.arange(12) * 0.01)
    assert np.array_equal([q for _, q, _ in seen], run["qpos"])
    assert np.array_equal([v for _, _, v in seen], run["qvel"])
    want = [[0.3 * np.sin(40 * t), -0.5 * v[1]] for t, _, v in seen]
    assert np.array_equal(run["tau_applied"], want)


@pytest.mark.small
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: np.zeros(3), r"shape \(3,\), want \(2,\)"),
        (lambda: "no", "returned str|want 2 numbers"),
        (lambda: None, "want"),
    ],
)
def test_controller_s_wrong_answers(answer: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(PENDULUM, steps=3, function=lambda t, q, v: answer())


@pytest.mark.small
def test_controller_that_is_not_finite_names_joint_and_time() -> None:
    def function(t: float, q: Array, v: Array) -> Array:
        return np.array([0.0, np.nan if t > 0.0195 else 0.0])

    with pytest.raises(StoppedError, match=r"t = 0\.02 s: the controller's force on 'joint_2' is not finite"):
        simulate(PENDULUM, steps=30, function=function)


def schedule(*rows: tuple[int, float]) -> Any:
    """Control rows on a slider: (first step, torque)."""

    def controls(plan: Plan) -> Controls:
        n = len(rows)
        return Controls(
            np.array([step for step, _ in rows], np.int64),
            np.array([[value] for _, value in rows]),
            np.repeat(plan.target[None], n, axis=0),
            np.repeat(plan.target_velocity[None], n, axis=0),
        )

    return controls


@pytest.mark.small
@pytest.mark.parametrize("block_rows", [None, 1, 4])
def test_controls_act_at_their_steps(block_rows: int | None) -> None:
    rows = ((0, 1.0), (3, -2.0), (4, 5.0), (11, 0.0), (40, 9.0))
    run = simulate(slider(), steps=15, controls=schedule(*rows), block_rows=block_rows)
    want = [1.0] * 3 + [-2.0] + [5.0] * 7 + [0.0] * 4
    assert run["tau_applied"][:, 0].tolist() == want
    assert run["qacc"][:, 0] == pytest.approx(np.array(want) / 2.0, rel=1e-12)


@pytest.mark.small
def test_targets_act_at_their_steps() -> None:
    def controls(plan: Plan) -> Controls:
        target = np.array([[0.0], [0.2]])
        return Controls(np.array([0, 5], np.int64), np.zeros((2, 1)), target, np.array([[0.0], [0.1]]))

    gains: dict[str, Any] = {"stiffness": {"x": 100.0}, "damping": {"x": 10.0}}
    run = simulate(slider(), steps=10, dt=0.001, controls=controls, **gains)
    assert not np.any(run["tau_drive"][:5])
    v = run["qacc"][5, 0] * 0.001  # from rest: a slow spring is felt a quarter of the step's way ahead
    assert run["tau_drive"][5, 0] == pytest.approx(100 * (0.2 - 0.00025 * v) + 10 * (0.1 - v), rel=1e-12)


@pytest.mark.small
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")  # of kernels run as Python
@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
@pytest.mark.parametrize("block_rows", [None, 1, 7])
def test_not_finite_stops_and_keeps_what_was_before(integrator: str, block_rows: int | None) -> None:
    """A force that overflows at step 20: 20 rows, the bytes of the run without it, and joint and time named."""
    config: dict[str, Any] = {"v0": {"x": 1.0}, "integrator": integrator, "block_rows": block_rows}
    text = slider(mass=1e-6)
    want = simulate(text, steps=20, controls=schedule((0, 0.0)), **config)
    run = simulate(text, steps=50, controls=schedule((0, 0.0), (20, 1e308)), check=False, **config)
    assert stop_message(run).startswith("stopped at t = 0.04 s (step 20): the velocity of joint 'x' is not finite")
    assert run.bytes() == want.bytes()


def stop_message(run: Run) -> str:
    with pytest.raises(StoppedError) as caught:
        run.simulation.check()
    return str(caught.value)


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_blowing_up_is_stopped(integrator: str) -> None:
    """The chain of mass ratio 1000 at 40 ms, without limits: unstable by any explicit step."""
    start = {"joint_1": np.pi / 4, "joint_11": 0.05}
    text = robot_file("chain20").read_text().replace('type="revolute"', 'type="continuous"')
    run = simulate(text, steps=100_000, dt=0.04, q0=start, integrator=integrator, check=False)
    assert "joint 'joint_" in stop_message(run)
    assert 0 < len(run["qpos"]) < 100_000
    for name in ("qpos", "qvel", "qacc"):
        assert np.all(np.isfinite(run[name])), name
    assert len(run["qpos"]) == run.simulation.step


@pytest.mark.small
def test_limits_stop_a_run_of_rk4() -> None:
    message = "reached its limit, and rk4 has no rows for it; use midpoint"
    text = urdf(
        box_link("first", 1.0),
        box_link("second", 1.0),
        joint("x", "prismatic", "base", "first", axis=(1, 0, 0)),
        joint("y", "prismatic", "first", "second", axis=(0, 1, 0), limit=(-1.0, 0.05)),
    )
    run = simulate(text, steps=100, v0={"y": 1.0}, check=False, integrator="rk4")
    assert stop_message(run).endswith(f"joint 'y' {message}")
    assert len(run["qpos"]) == run.simulation.step
    assert run.simulation.step in (24, 25)  # rounding decides on which side of the limit step 25 ends
    assert run.simulation.qpos[1] == pytest.approx(0.002 * run.simulation.step, rel=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("speed", [0.0, 200.0])
def test_a_tendon_out_of_range_stops_rk4_at_the_start(speed: float) -> None:
    """The run stops, also if the first step would end within the range: the limit would have exerted no force."""
    text = """<mujoco>
      <worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
      <tendon><fixed name="t" range="0.3 1"><joint joint="x" coef="1"/></fixed></tendon></mujoco>"""
    model = load_text(text, name="tendon.xml")
    run = simulate(model, steps=3, q0={"x": 0.1}, v0={"x": speed}, check=False, integrator="rk4")
    assert run.simulation.step == 0
    assert "tendon 't' reached its limit, and rk4 has no rows for it" in stop_message(run)
    assert run.simulation.qpos[0] == 0.1


@pytest.mark.parametrize("speed", [0.0, 9.0])
@pytest.mark.parametrize("at", [0, 2])
def test_a_joint_beyond_its_limit_has_the_default_bring_it_back(speed: float, at: int, tmp_path: Path) -> None:
    """Also where the step would end within, from a state that is set in mid-run, and in rollouts."""
    path = tmp_path / "slide.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0" range="0 1"/><geom size=".1" mass="1"/>
        </body></worldbody></mujoco>"""
    )
    found = []
    for integrator in ("rk4", "implicit-euler", "midpoint"):
        simulation = artsim.Simulation(artsim.load(path), integrator=integrator, dt=0.002, q0={"x": 0.5})
        for _ in range(at):
            simulation.step()
        simulation.qpos, simulation.qvel = [-0.01], [speed]
        simulation.step()
        found.append([simulation.qpos[0], simulation.qvel[0]])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[2])
    made = artsim.rollout(artsim.load(path), samples=9, steps=5, integrator="rk4", q0={"x": -0.01}, v0={"x": speed})
    assert made["n_valid"].all()


@pytest.mark.parametrize("kind", ["joint", "ball", "tendon"])
@pytest.mark.parametrize("integrator", ["rk4", "generalized-alpha"])
def test_what_swings_against_a_limit(kind: str, integrator: str, tmp_path: Path) -> None:
    """Of the integrator up to there, of the default at the limit, as by its small steps; and in two halves the same."""
    joints = {
        "joint": '<joint name="x" axis="0 1 0" range="-1 40"/>',
        "ball": '<joint name="x" type="ball" range="0 40"/>',
        "tendon": '<joint name="x" axis="0 1 0"/>',
    }
    path = tmp_path / "swings.xml"
    tendon = '<tendon><fixed name="t" range="-1 0.7"><joint joint="x" coef="1"/></fixed></tendon>'
    path.write_text(
        f"""<mujoco><worldbody><body>{joints[kind]}<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/></body>
        </worldbody>{tendon if kind == "tendon" else ""}</mujoco>"""
    )
    free = tmp_path / "free.xml"
    free.write_text(path.read_text().replace(' range="-1 40"', "").replace(' range="0 40"', "").replace(tendon, ""))
    options: dict[str, Any] = {"integrator": integrator, "dt": 0.002, "steps": 400, "record": ("qpos", "qvel")}
    robot = artsim.load(path)
    run, unlimited = artsim.simulate(robot, **options), artsim.simulate(artsim.load(free), **options)
    exact = artsim.simulate(robot, integrator="midpoint", dt=0.00005, steps=16_000, every=40, record=("qpos", "qvel"))
    angle, expected = (np.arccos(q[:, 0]) * 2 if kind == "ball" else q[:, 0] for q in (run["qpos"], exact["qpos"]))
    most = 0.7 if kind == "tendon" else np.deg2rad(40)
    assert len(run["qpos"]) == 400
    before = int(np.argmax(angle > most - 0.05))
    assert before > 20
    np.testing.assert_array_equal(run["qpos"][:before], unlimited["qpos"][:before])
    assert angle.max() < most + 1e-4
    np.testing.assert_allclose(angle, expected, atol=2e-2)
    assert abs(run["qvel"][-1]).max() < 1e-6
    words = ("run", str(path), "--integrator", integrator, "--dt", "0.002", "--steps", "400")
    said = re.search(
        rf"(\d+) steps at limits were taken by midpoint: {integrator} has no rows",
        CliRunner().invoke(cli, words).output,
    )
    assert said is not None and 2 <= int(said[1]) < 400
    assert "at limits" not in CliRunner().invoke(cli, [words[0], str(free), *words[2:]]).output
    simulation = artsim.Simulation(robot, integrator=integrator, dt=0.002)
    for _ in range(400):
        simulation.step()
    assert abs(simulation.qpos - run.final["qpos"]).max() == 0.0


@pytest.mark.small
def test_rk4_refuses_friction() -> None:
    with pytest.raises(UsageError, match=r"joint friction \(x\)"):
        simulate(slider(friction=1.0), steps=1, integrator="rk4")
