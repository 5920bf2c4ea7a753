"""The account of energy: nothing is told of runs without error, whatever gives and takes there, and every error is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.run_data.run_records import CREATED, ENERGY, SOURCES, WORK
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.benchmarks.energy_account import Case, Measure, with_error, without_error, write
from tests.cli.test_cli_run import good, refused, run
from tests.simulation import constant_controls, load, robot_file
from tests.simulation import simulate as finished

TOP = """
<mujoco><option gravity="0 0 0" timestep="0.002"/><worldbody><body name="b"><freejoint name="top"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.001 0.002 0.0029"/></body></worldbody></mujoco>
"""
PENDULUM = """
<mujoco><option timestep="0.002"/><worldbody><body><joint name="j" axis="0 1 0" stiffness="3 0 2"/>
<geom size=".05" pos=".5 0 0"/><body pos=".5 0 0"><joint name="k" axis="0 1 0" damping=".01"/>
<geom size=".04" pos=".4 0 0"/></body></body></worldbody></mujoco>
"""
BODY = '<body><joint name="{0}" {1}/><inertial pos="{2}" mass="{3}" diaginertia="{4} {4} {4}"/>{5}</body>'
MAGNET = """
<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1" gap=".1"/>
<body name="ball" pos="0 0 .05"><joint name="z" type="slide" axis="0 0 1"/><geom size=".02" gap=".1"/></body>
</worldbody><actuator><adhesion name="pull" body="ball" ctrlrange="0 1" gain="20"/></actuator></mujoco>
"""


def model(world: str, option: str = "", more: str = "") -> str:
    return f'<mujoco><compiler angle="radian"/><option {option}/><worldbody>{world}</worldbody>{more}</mujoco>'


def chain(mass: float, light: float, links: int) -> str:
    """A heavy link about a hinge, and light ones that hang on it, all level."""
    inertia = 'axis="0 1 0"/><inertial pos=".025 0 0" mass="{0}" diaginertia="{1} {2} {2}"'
    text = ""
    for n in reversed(range(links)):
        m = mass if n == 0 else light
        place = '<body pos=".05 0 0">' if n else "<body>"
        text = f'{place}<joint name="j{n}" {inertia.format(m, 1e-5 * m, 2e-4 * m)}/>{text}</body>'
    return model(text)


def begun(text: str | Path, **config: Any) -> Simulation:
    """A run before its first step."""
    plan = plan_run(load(text, config.get("base", "fixed")), RunConfig(**config))
    return Simulation(plan, constant_controls(plan))


def take(simulation: Simulation, steps: int) -> Simulation:
    for _ in simulation.blocks(steps):
        pass
    return simulation


# ------------------------------------------------------------------ nothing is told

SLIDE = model(BODY.format("x", 'type="slide" axis="0 0 1"', "0 0 0", 1, 1, ""))
HINGE = model(BODY.format("x", 'axis="0 1 0"', ".3 0 0", 1, 0.01, ""))


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (SLIDE, {"torque": {"x": 10.5}}),
        (SLIDE, {"torque": {"x": 9.9}, "dt": 0.004}),
        (SLIDE, {"stiffness": {"x": 50}, "damping": {"x": 10}, "target": {"x": 0.5}}),
        (SLIDE, {"torque": {"x": 10.5}, "integrator": "rk4"}),
        (HINGE, {"torque": {"x": -3.0}}),
        (HINGE, {"controller": "gravity-compensation", "torque": {"x": -0.02}}),
    ],
)
def test_a_gentle_lift_is_no_excess(text: str, config: dict[str, Any]) -> None:
    """What inputs do is what the weight and the motion receive; of a slide to rounding."""
    simulation = take(begun(text, **config), 300)
    assert simulation.energy_excess is None
    if text == SLIDE:
        account, dt = simulation._step.last_account, simulation.plan.dt
        v, lag = simulation.qvel[0], 0.0 if "integrator" in config else 0.5 * dt
        truth = 0.5 * v**2 + 9.81 * (simulation.qpos[0] - lag * v)
        assert simulation._step.account[WORK : WORK + SOURCES].sum() == pytest.approx(truth, rel=1e-10)
        assert account[ENERGY] == pytest.approx(truth, rel=1e-10)


def test_an_arm_under_computed_torque_is_no_excess() -> None:
    """It moves by what the controller gives, from rest, against weight and damping."""
    arm = load(robot_file("arm7"))
    goal = dict(zip((j.name for j in arm.joints if j.kind == "revolute"), (0.3, 0.2, -0.3, 0.4), strict=False))
    simulation = take(begun(robot_file("arm7"), controller="computed-torque", target=goal), 600)
    assert simulation.energy_excess is None
    assert simulation._step.last_account[CREATED] < 1e-3


@pytest.mark.parametrize("speed", [0.0, 0.3, -1.0])
@pytest.mark.parametrize("dt", [2e-3, 8e-3])
def test_a_spring_at_any_phase_is_no_excess(speed: float, dt: float) -> None:
    """The step keeps the energy of linear springs to rounding, at any six steps a period or more."""
    second = BODY.format("b", 'type="slide" axis="1 0 0" stiffness="300" springref=".1"', "0 0 0", 0.3, 1, "")
    text = model(
        BODY.format("a", 'type="slide" axis="1 0 0" stiffness="8100"', "0 0 0", 1, 1, second), 'gravity="0 0 0"'
    )
    simulation = take(begun(text, q0={"a": 0.01, "b": -0.02}, v0={"a": speed}, dt=dt), 500)
    assert simulation.energy_excess is None
    account = simulation._step.last_account
    assert account[CREATED] <= 1e-11 * account[ENERGY]


@pytest.mark.parametrize("q0", [{"j": 1.0, "k": -0.5}, {"j": -1.5, "k": 2.0}])
def test_what_springs_and_heights_give_is_no_excess(q0: dict[str, float]) -> None:
    for torque in ({}, {"j": 3.0, "k": -1.0}):
        assert take(begun(PENDULUM, q0=q0, torque=torque), 2000).energy_excess is None


def test_a_soft_limit_gives_what_it_holds() -> None:
    """A joint that starts beyond its limit is pushed back by what the spring of the limit holds."""
    config = {"upper_limit": {"x": 0.0}, "limit_stiffness": {"x": 500.0}, "q0": {"x": 0.1}, "gravity": (0, 0, 0)}
    simulation = take(begun(SLIDE, **config), 200)
    assert simulation.energy_excess is None and simulation.qvel[0] < -0.5


def test_adhesion_pulls() -> None:
    simulation = take(begun(MAGNET, control={"pull": 1.0}, contacts=True), 100)
    assert simulation.energy_excess is None and simulation.contact_extremes[0] > 0


def test_a_state_that_is_set_opens_the_account_anew() -> None:
    """A change from Python is no error, one behind the engine's back is."""
    for text, name in ((SLIDE, "x"), (PENDULUM, "j")):
        simulation = take(begun(text), 50)
        simulation.set_state(qvel=5.0 + simulation.qvel)
        assert take(simulation, 50).energy_excess is None
        simulation._state.qvel[simulation.plan.robot.dofs.index(name)] += 5.0
        assert take(simulation, 5).energy_excess is not None


# ------------------------------------------------------------------ errors are told


@pytest.mark.parametrize(("links", "light", "dt"), [(20, 0.01, 0.004), (12, 0.005, 0.006), (16, 0.02, 0.005)])
def test_a_chain_that_gains_energy_is_told(links: int, light: float, dt: float) -> None:
    """Light links under a heavy one, in steps that do not follow them: told when MuJoCo measures more than is there."""
    text = chain(10.0, light, links)
    simulation = begun(text, dt=dt)
    measure = Measure(Case(text, set(), {"dt": dt, "integrator": ""}))
    moving, first = measure(simulation)
    lowest, most = first, 0.0
    for _ in range(300):
        take(simulation, 4)
        moving, potential = measure(simulation)
        lowest = min(lowest, potential)
        most = max(most, (moving + potential - first) / (first - lowest))
    told = simulation.energy_excess
    assert (told is not None) == (most > 0.05)
    if told is not None:
        assert told.source == "the motion itself" and told.created > 0.05 * told.available > 0


def test_a_damper_that_pushes_is_told_by_its_name() -> None:
    simulation = begun(PENDULUM, q0={"j": 1.0})
    write(simulation, "damping", 0, -0.1)
    told = take(simulation, 500).energy_excess
    assert told is not None and told.source == "springs, dampers and friction of joints"


def test_what_dampers_take_hides_no_kick() -> None:
    """Of a motion that has lost most of its energy, a kick that gives back little of that is told."""
    text = model(BODY.format("j", 'axis="0 1 0" damping=".3"', ".3 0 0", 1, 0.01, ""), 'gravity="0 0 0"')
    simulation = take(begun(text, v0={"j": 10.0}), 400)
    assert simulation.energy_excess is None and simulation.qvel[0] < 1.0
    simulation._state.qvel[:] *= 1.05
    told = take(simulation, 40).energy_excess
    assert told is not None and told.created == pytest.approx(0.1025 * 0.5 * 0.1 * simulation.qvel[0] ** 2, rel=0.9)


def test_random_runs_without_error_are_told_nothing() -> None:
    assert without_error(1, range(40))["told"] == 0


def test_planted_errors_are_told() -> None:
    ran = with_error(1, range(40))
    assert ran["missed"] == 0 and all(ran[kind] > 0 for kind in ("kick", "inertia", "damping", "step"))


# ------------------------------------------------------------------ the account is of steps, and state


def test_the_account_does_not_depend_on_blocks_or_looks() -> None:
    whole = take(begun(PENDULUM, q0={"j": 1.0}, torque={"j": 1.0}), 100)
    parts = begun(PENDULUM, q0={"j": 1.0}, torque={"j": 1.0})
    for steps in (1, 6, 43, 50):
        assert take(parts, steps).energy_excess is None
    assert whole._step.account.tobytes() == parts._step.account.tobytes()


def test_the_account_goes_on_from_a_snapshot() -> None:
    whole = take(begun(PENDULUM, q0={"j": 1.0}, torque={"j": 1.0}), 37)
    fresh = begun(PENDULUM, q0={"j": 1.0}, torque={"j": 1.0})
    fresh.restore(whole.save())
    assert take(whole, 60)._step.account.tobytes() == take(fresh, 60)._step.account.tobytes()


def test_a_file_keeps_the_account(tmp_path: Path) -> None:
    """A run that is resumed ends with the account of one that was not."""
    path = tmp_path / "model.xml"
    path.write_text(PENDULUM)
    words = ("run", path, "--q0", "j=1", "--torque", "j=1")
    good(*words, "--steps", 100, "-o", tmp_path / "whole.h5")
    good(*words, "--steps", 41, "-o", tmp_path / "parts.h5")
    good("run", "--resume", tmp_path / "parts.h5", "--steps", 100)
    whole, parts = (artsim.open(tmp_path / name).final["extremes"] for name in ("whole.h5", "parts.h5"))
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_work_by_source_is_what_the_motion_receives(integrator: str) -> None:
    """The sum of all works is the change of kinetic energy and heights, to the order of the step."""
    more = '<equality><joint joint1="k" joint2="j" polycoef="0 .5 .2 0 0"/></equality>'
    text = PENDULUM.replace("</mujoco>", more + "</mujoco>").replace('damping=".01"', 'damping=".3"')
    errors = []
    for dt in (2e-3, 1e-3):
        config = {"dt": dt, "q0": {"j": 1.0}, "integrator": integrator, "torque": {"j": 0.7}}
        simulation = take(begun(text, **config), round(0.6 / dt))
        measure = Measure(Case(text.replace('stiffness="3 0 2"', ""), set(), {"dt": dt, "integrator": integrator}))
        moved = sum(measure(simulation)) - sum(measure(begun(text, **config)))
        errors.append(abs(simulation._step.account[WORK : WORK + SOURCES].sum() - moved))
    assert errors[1] < (1e-3 if integrator != "rk4" else 1e-7)
    assert errors[1] < 0.35 * errors[0] or errors[1] < 1e-9


# ------------------------------------------------------------------ what users are told


def test_a_top_that_gains_energy_is_told(tmp_path: Path) -> None:
    """Spun about its middle axis at 200 rad/s it tumbles, which steps of 2 ms do not follow that have its spin only at
    their start, as a sweeping solver's have. The default step keeps its energy and says nothing."""
    path = tmp_path / "model.xml"
    path.write_text(TOP)
    words: tuple[Any, ...] = ("run", path, "--v0", "top.wy=200", "--v0", "top.wx=1", "--v0", "top.wz=1")
    kept = json.loads(good(*words, "--duration", 1, "--json").stdout)
    assert kept["energy_excess"] is None and kept["energy"][1] == pytest.approx(0.5 * 0.002 * 200**2, rel=1e-3)
    words = (*words, "--solver", "pgs")
    done = run(*words, "--duration", 1, "--json")
    assert done.returncode in (0, 3)
    excess = json.loads(done.stdout)["energy_excess"]
    assert excess["created"] > 0.05 * excess["available"] and 0 < excess["time"] < 1
    assert excess["joint"].startswith("top.w") and excess["source"] == "the motion itself"
    words = (*words, "--duration", excess["time"] + 0.1, "--strict")
    told = refused(3, *words, words=("--strict", "J of energy more than", "the motion itself", "top.w"))
    assert told.count("of energy more than") == 1


def test_a_run_that_goes_on_is_compared_too(tmp_path: Path) -> None:
    path, output = tmp_path / "model.xml", tmp_path / "run.h5"
    path.write_text(TOP)
    spin = ("--v0", "top.wy=200", "--v0", "top.wx=1", "--v0", "top.wz=1", "--solver", "pgs")
    good("run", path, *spin, "--steps", 2, "-o", output)
    words = ("--strict", "of energy more than", "top.w")
    told = refused(3, "run", "--resume", output, "--steps", 500, "--strict", words=words)
    assert told.count("of energy more than") == 1
    with artsim.open(output) as recording:  # it ended where it was told
        assert 2 < recording.n_valid < 500


def test_every_robot_of_the_repository_is_told_nothing() -> None:
    """Falling, driven and standing."""
    for name in ("double_pendulum", "arm7", "parallel_gripper", "finger", "floating_box", "rack_and_pinion"):
        assert finished(robot_file(name), steps=400, check=False).simulation.energy_excess is None
