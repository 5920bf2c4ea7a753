"""`--accuracy`: the error asked for is the error got, beside closed forms, other schemes and finer runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.sim.quantities.robot import Robot

ROBOTS = Path(artsim.__file__).parents[2] / "robots"
BALL = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="9 9 1"/>
<body pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
GRIPPER = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .06"><freejoint/><geom type="box" size=".02 .02 .05" mass=".2" friction=".8"/></body>
<body pos="0 0 .1"><joint name="lift" type="slide" axis="0 0 1" damping="5"/>
<geom type="box" size=".01 .01 .01" pos="0 0 .2" mass=".2"/>
<body pos="-.08 0 0"><joint name="a" type="slide" axis="1 0 0" range="0 .08"/>
<geom type="box" size=".01 .02 .02" mass=".1" friction=".8"/></body>
<body pos=".08 0 0"><joint name="b" type="slide" axis="-1 0 0" range="0 .08"/>
<geom type="box" size=".01 .02 .02" mass=".1" friction=".8"/></body></body></worldbody></mujoco>"""
HOPPER = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="9 9 1"/>
<body pos="0 0 1.1"><joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="5"/>
<body><joint name="leg" type="slide" axis="0 0 1" stiffness="2000" damping="5" range="-.3 .05"/>
<geom type="capsule" fromto="0 0 0 0 0 -.5" size=".03" mass=".5"/></body></body></worldbody></mujoco>"""


def robot_of(text: str, folder: Path) -> Robot:
    path = folder / "robot.xml"
    path.write_text(text)
    return artsim.load(path)


def chain(ratio: float) -> str:
    """20 links of 0.1 m and 1 kg, the last one heavier by this ratio."""
    link = (
        '<body pos="{x} 0 0"><joint type="hinge" axis="0 1 0"/>'
        '<inertial pos=".1 0 0" mass="{m}" diaginertia="{i} {i} {i}"/>'
    )
    masses = [1.0] * 19 + [ratio]
    bodies = "".join(link.format(x=0.1 * bool(n), m=m, i=m * 1e-3) for n, m in enumerate(masses))
    return f"<mujoco><worldbody>{bodies}{'</body>' * 20}</worldbody></mujoco>"


@pytest.mark.small
def test_a_pendulum_is_as_exact_as_asked() -> None:
    """Beside runs of 1e-10, and beside rk4 at a small step, which shares no step with it."""
    robot = artsim.load(ROBOTS / "double_pendulum.urdf")
    given = {"q0": {"joint_1": 1.0}, "dt": 0.02, "steps": 50}
    exact = artsim.simulate(robot, **given, accuracy=1e-10)["qpos"]
    other = artsim.simulate(robot, **given | {"dt": 1e-3, "steps": 1000, "every": 20}, integrator="rk4")["qpos"]
    assert np.abs(exact - other).max() < 1e-8
    errors = [np.abs(artsim.simulate(robot, **given, accuracy=a)["qpos"] - exact).max() for a in (1e-2, 1e-4, 1e-6)]
    print(errors)
    assert all(error <= asked for error, asked in zip(errors, (1e-2, 1e-4, 1e-6), strict=True))
    assert errors[0] > errors[2]


def test_a_stiff_drive_is_as_exact_as_asked() -> None:
    """Friction in the joints leaves no step without rows: all are extrapolated."""
    robot = artsim.load(ROBOTS / "double_pendulum.urdf")
    given = {"q0": {"joint_1": 1.0}, "dt": 0.02, "steps": 50, "joint_friction": {"*": 0.05}}
    given |= {"stiffness": {"joint_2": 400.0}, "damping": {"joint_2": 4.0}}
    exact = artsim.simulate(robot, **given, accuracy=1e-7)["qpos"]
    fine = artsim.simulate(robot, **given | {"dt": 2e-5, "steps": 50_000, "every": 1000})["qpos"]
    assert np.abs(exact - fine).max() < 1e-4  # of the fixed step, of first order
    for asked in (1e-2, 1e-3, 1e-4):
        error = np.abs(artsim.simulate(robot, **given, accuracy=asked)["qpos"] - exact).max()
        print(asked, error)
        assert error <= asked


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_ball_bounces_as_exactly_as_asked(restitution: float, tmp_path: Path) -> None:
    """Beside parabolas between the instants at which it meets the ground."""
    run = [
        artsim.simulate(robot_of(BALL, tmp_path), steps=150, restitution=restitution, accuracy=a) for a in (1e-2, 1e-3)
    ]
    truth = np.array([height(t, restitution) for t in run[0]["time"]])
    for each, asked in zip(run, (1e-2, 1e-3), strict=True):
        error = np.abs(each["qpos"][:, 2] - truth).max()
        print(asked, error)
        assert error <= asked


def height(time: float, restitution: float, g: float = 9.81, start: float = 1.0, radius: float = 0.1) -> float:
    """Height of a ball's centre [m] that falls from `start` [m]."""
    fall = math.sqrt(2 * (start - radius) / g)
    if time <= fall:
        return start - 0.5 * g * time * time
    time, speed = time - fall, restitution * g * fall
    while speed > 1e-6 and time > 2 * speed / g:
        time, speed = time - 2 * speed / g, restitution * speed
    return radius + max(0.0, speed * time - 0.5 * g * time * time)


def test_a_sliding_ball_rolls_at_the_right_place(tmp_path: Path) -> None:
    """It slides for 2 v / 7 μ g, and rolls on with 5/7 of its speed."""
    robot = robot_of(BALL, tmp_path)
    run = artsim.simulate(robot, steps=100, on_ground=0.0, v0={robot.dofs[0]: 2.0}, accuracy=1e-3)
    slides = 2.0 * 2.0 / (7 * 9.81)
    time = run["time"]
    truth = np.where(
        time < slides,
        2.0 * time - 0.5 * 9.81 * time**2,
        2.0 * slides - 0.5 * 9.81 * slides**2 + 10 / 7 * (time - slides),
    )
    assert np.abs(run["qpos"][:, 0] - truth).max() <= 1e-3


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (HOPPER, {"steps": 200, "contact_law": "coulomb"}),
        (GRIPPER, {"steps": 50, "contact_law": "coulomb", "torque": {"a": 20.0, "b": 20.0, "lift": 8.0}}),
    ],
    ids=["hopper", "gripper"],
)
def test_contact_is_as_exact_as_asked(text: str, settings: dict[str, object], tmp_path: Path) -> None:
    """Beside runs of 1/100 of the error, and of a small fixed step of the default scheme."""
    robot = robot_of(text, tmp_path)
    exact = artsim.simulate(robot, **settings, accuracy=1e-5)["qpos"]  # type: ignore[arg-type]
    fixed = {**settings, "dt": 1e-5, "every": 1000, "steps": 1000 * int(str(settings["steps"]))}
    fine = artsim.simulate(robot, **fixed)["qpos"]  # type: ignore[arg-type]
    found = artsim.simulate(robot, **settings, accuracy=1e-3)["qpos"]  # type: ignore[arg-type]
    print(np.abs(found - exact).max(), np.abs(exact - fine).max())
    assert np.abs(found - exact).max() <= 1e-3
    assert np.abs(exact - fine).max() <= 1e-3


@pytest.mark.parametrize("ratio", [1e3])
def test_a_heavy_tip_keeps_its_energy(ratio: float, tmp_path: Path) -> None:
    run = artsim.simulate(robot_of(chain(ratio), tmp_path), steps=200, dt=0.01, accuracy=1e-3, record=["energy"])
    energy = run["energy"].sum(axis=1)
    assert np.abs(energy - energy[0]).max() <= 1e-6 * ratio * 9.81 * 2.0


def test_files_are_reproduced_and_resumed(tmp_path: Path) -> None:
    """Byte for byte, through impacts; the summary and the file tell of the steps."""
    (tmp_path / "ball.xml").write_text(BALL)
    words = [str(tmp_path / "ball.xml"), "--accuracy", "1e-3", "--restitution", "0.5"]

    def cli_run(*more: str) -> str:
        result = CliRunner().invoke(cli, ["run", *more])
        assert result.exit_code == 0, result.output
        return result.stdout

    whole, parts = str(tmp_path / "whole.h5"), str(tmp_path / "parts.h5")
    told = json.loads(cli_run(*words, "--steps", "150", "-o", whole, "--json"))["course"]
    assert told["taken"] > 150 and told["cut"] > 0 and told["smallest"] < 1e-4 and told["estimate"] < 1e-3
    with artsim.open(whole) as recording:
        course = recording.final["course"]
    assert course[0] == told["taken"] and course[2] == told["cut"]
    assert CliRunner().invoke(cli, ["replay", "--verify", whole]).exit_code == 0
    cli_run(*words, "--steps", "60", "-o", parts)
    cli_run("--resume", parts, "--steps", "150")
    with artsim.open(whole) as a, artsim.open(parts) as b:
        assert a["qpos"].tobytes() == b["qpos"].tobytes()
        assert a.final["course"].tobytes() == b.final["course"].tobytes()


def test_a_simulation_steps_by_accuracy(tmp_path: Path) -> None:
    """Calls of one interval give the bytes of a run; snapshots go on likewise."""
    robot = robot_of(BALL, tmp_path)
    run = artsim.simulate(robot, steps=60, restitution=0.5, accuracy=1e-3)
    simulation = artsim.Simulation(robot, restitution=0.5, accuracy=1e-3)
    rows = [simulation.step()["qpos"] for _ in range(50)]
    kept = simulation.save()
    first = [simulation.step()["qpos"] for _ in range(10)]
    simulation.restore(kept)
    again = [simulation.step()["qpos"] for _ in range(10)]
    assert np.concatenate([*rows, *first]).tobytes() == run["qpos"].tobytes()
    assert np.concatenate(first).tobytes() == np.concatenate(again).tobytes()
    with pytest.raises(artsim.UsageError, match="derivatives are those of a step of one length"):
        simulation.derivatives()


def test_a_controller_acts_once_an_interval() -> None:
    robot, times = artsim.load(ROBOTS / "double_pendulum.urdf"), list[float]()

    def hold(time: float, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        times.append(time)
        return -20.0 * qpos - 2.0 * qvel

    run = artsim.simulate(robot, controller=hold, q0={"joint_1": 1.0}, steps=40, dt=0.02, accuracy=1e-6)
    assert times == pytest.approx(0.02 * np.arange(40))
    assert np.abs(run["qpos"][-1]).max() < 1.0


def test_rollouts_take_it_sample_by_sample(tmp_path: Path) -> None:
    robot = robot_of(BALL, tmp_path)
    run = artsim.simulate(robot, steps=60, restitution=0.5, accuracy=1e-3)
    rolled = artsim.rollout(robot, samples=2, steps=60, restitution=0.5, accuracy=1e-3)
    assert rolled["qpos"][0].tobytes() == run["qpos"].tobytes()


@pytest.mark.small
@pytest.mark.parametrize(
    "words",
    [
        ("--integrator", "rk4"),
        ("--solver", "pgs"),
        ("--sleep-threshold", "1e-4"),
        ("--coordinates", "maximal"),
    ],
)
def test_what_depends_on_the_step_is_refused(words: tuple[str, ...]) -> None:
    path = str(ROBOTS / "double_pendulum.urdf")
    result = CliRunner().invoke(cli, ["run", path, "--accuracy", "1e-3", *words])
    assert result.exit_code != 0
    assert "--accuracy chooses the length of steps" in str(result.exception or result.output) + result.output
