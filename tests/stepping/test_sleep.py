"""Sleeping: when a robot falls asleep, what holds it, and what wakes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import DEFAULT_RECORD
from tests.conftest import ROOT
from tests.simulation import Array, Run, robot_file, simulate, slider

DT = 0.002
RECORD = (*DEFAULT_RECORD, "asleep", "bias")
SLEEPY: dict[str, Any] = {"dt": DT, "sleep_threshold": 5e-5, "sleep_time": 0.1, "record": RECORD}
PENDULUM = robot_file("double_pendulum")
ARM = robot_file("arm7")
HELD: dict[str, Any] = {"stiffness": {"*": 2000.0}, "damping": {"*": 100.0}, **SLEEPY}
MOVED: dict[str, Any] = HELD | {"target": {"joint_2": 0.4, "joint_4": -0.3}}
FORCES = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit", "tau_contact")


def asleep(run: Run) -> Array:
    """Which rows are slept through (rows,)."""
    return np.asarray(run["asleep"] == 1)


def check_rest(run: Run) -> None:
    """Asleep: no velocity, no acceleration, the same pose, forces that add up to the weight."""
    rows = asleep(run)
    assert rows.any()
    assert not run["qvel"][rows].any() and not run["qacc"][rows].any()
    total = sum(run[name][rows] for name in FORCES if name in run.rows)
    assert np.abs(total - run["bias"][rows]).max() <= 1e-12 * max(1.0, np.abs(run["bias"]).max())


def changed(at: int, **inputs: float) -> Any:
    """Controls that change one input of dof 1 at a step."""

    def controls(plan: Plan) -> Controls:
        rows = {name: np.tile(getattr(plan, name), (2, 1)) for name in ("torque", "target", "target_velocity")}
        for name, value in inputs.items():
            rows[name][1, 1] += value
        return Controls(np.array([0, at]), rows["torque"], rows["target"], rows["target_velocity"])

    return controls


def test_a_robot_at_rest_falls_asleep_and_its_forces_balance() -> None:
    run = simulate(ARM, steps=1500, **MOVED | {"sleep_threshold": 1e-9})
    rows = asleep(run)
    first = int(np.argmax(rows))
    assert 100 < first < 1400 and rows[first:].all()
    check_rest(run)
    awake = simulate(ARM, steps=1500, **MOVED | {"sleep_threshold": 0.0})
    assert not asleep(awake).any()
    assert run["qpos"][:first].tobytes() == awake["qpos"][:first].tobytes()  # until then sleeping changes nothing
    assert run["qpos"][-1] == pytest.approx(awake["qpos"][-1], abs=1e-3)
    for name in ("tau_drive", "incoming_wrench"):
        assert run[name][-1] == pytest.approx(awake[name][-1], abs=1e-2 * np.abs(awake[name][-1]).max())


def test_a_pendulum_falls_asleep_by_rk4_and_wakes() -> None:
    """The pendulum hangs at rest by then; its forces balance, and a torque wakes it."""
    given: dict[str, Any] = {"integrator": "rk4", "link_damping": {"*": (8.0, 1.0)}, "q0": {"joint_1": 0.5}} | SLEEPY
    run = simulate(PENDULUM, steps=2500, controls=changed(2300, torque=0.5), **given)
    rows = asleep(run)
    first = int(np.argmax(rows))
    assert 200 < first < 2200 and rows[first:2300].all() and not rows[2300:].any()
    check_rest(run)
    awake = simulate(PENDULUM, steps=2500, **given | {"sleep_threshold": 0.0})
    assert run["qpos"][:first].tobytes() == awake["qpos"][:first].tobytes()
    assert run["qpos"][first] == pytest.approx(awake["qpos"][-1], abs=0.02)
    assert np.abs(run["qvel"][2310]).max() > 1e-3


def test_every_link_must_be_slow_for_the_whole_time() -> None:
    """The energy of every link is below the threshold in the steps before, and was not before these."""
    run = simulate(ARM, steps=900, **MOVED)
    first = int(np.argmax(asleep(run)))
    computed = run.robot.compute(run["qpos"], run["qvel"], quantities=["link_velocity"], at="com")["link_velocity"]
    inertias = {link.name: link.inertial for link in run.robot.articulation.links}
    energy = np.zeros(len(computed))
    for n, name in enumerate(run.robot.links):
        inertial = inertias[name]
        if inertial is not None and inertial.mass > 0:
            energy = np.maximum(energy, 0.5 * np.sum(computed[:, n, :3] ** 2, axis=1))
    assert energy[first - 49 : first].max() < 5e-5
    assert energy[: first - 50].max() > 5e-5


@pytest.mark.parametrize("inputs", [{"torque": 3.0}, {"target": 0.2}, {"target_velocity": 0.3}])
def test_a_change_of_the_inputs_wakes(inputs: dict[str, float]) -> None:
    run = simulate(ARM, steps=900, controls=changed(600, **inputs), **HELD)
    rows = asleep(run)
    assert rows[599] and not rows[600]
    assert np.abs(run["qvel"][640]).max() > 1e-3
    check_rest(run)
    rest = dict(zip(run.robot.coords, run["qpos"][600].tolist(), strict=True))
    last = changed(1, **inputs)(run.plan)
    held = Controls.held(torque=last.torque[1], target=last.target[1], target_velocity=last.target_velocity[1])
    again = simulate(ARM, steps=50, **HELD | {"sleep_threshold": 0.0}, controls=lambda plan: held, q0=rest)
    assert run["qpos"][600:650] == pytest.approx(again["qpos"][:50], abs=1e-9)  # as from rest


def test_the_same_inputs_again_do_not_wake() -> None:
    run = simulate(ARM, steps=700, controls=changed(600), **HELD)
    assert asleep(run)[500:].all()


def test_slow_motion_on_purpose_is_no_sleep() -> None:
    """1 mm/s is far below the threshold: a drive that is told to go, an actuator whose setpoint moves."""
    drift = {"target_velocity": {"x": 1e-3}, "damping": {"x": 500.0}}
    run = simulate(slider(), steps=1000, **SLEEPY | drift)
    assert not asleep(run).any()
    assert run["qpos"][-1, 0] == pytest.approx(1e-3 * 999 * DT, rel=0.02)
    still = simulate(slider(), steps=1000, **SLEEPY | {"damping": {"x": 500.0}})
    assert asleep(still).any()
    servo = artsim.simulate(
        _file_of(INTEGRATOR), steps=500, control={"servo": 1e-3}, **SLEEPY | {"record": ("qpos", "asleep")}
    )
    assert not servo["asleep"].any() and servo["qpos"][-1, 0] > 5e-4


INTEGRATOR = """
<mujoco>
  <worldbody>
    <body><joint name="slide" type="slide" axis="1 0 0"/><geom type="sphere" size=".1" mass="1"/></body>
  </worldbody>
  <actuator><intvelocity name="servo" joint="slide" kp="500" kv="50" actrange="-1 1"/></actuator>
</mujoco>
"""


def _file_of(text: str) -> artsim.Robot:
    from artsim.loaders.load import load_text
    from artsim.sim.quantities.robot import Robot

    return Robot.of(load_text(text, name="servo.xml"))


def test_a_top_of_flight_is_no_sleep() -> None:
    run = simulate(PENDULUM, steps=2000, **SLEEPY | {"q0": {"joint_1": 1.0}})
    assert not asleep(run).any()


@pytest.mark.parametrize("robot", ["clamp.xml", "parallel_gripper.urdf", "two_finger_gripper.urdf", "finger.urdf"])
def test_what_holds_a_sleeping_robot_balances(robot: str) -> None:
    """Limits, eliminated couplings, loops, tendons and contacts."""
    model = artsim.load(ROOT / "robots" / robot)
    settings = SLEEPY | {"steps": 4000, "record": (*RECORD, "mass_matrix"), "sleep_threshold": 1e-3}
    if robot.endswith("urdf"):
        settings |= {"damping": 5.0, "ground": robot == "finger.urdf", "sleep_threshold": 1e-2}
    run = artsim.simulate(model, **settings)
    rows = run["asleep"] == 1
    assert rows[-1]
    names = [name for name in run.variables if name.startswith("tau_")]
    total = sum(run[name][rows] for name in names)
    assert np.abs(total - run["bias"][rows]).max() < 1e-10 * max(1.0, np.abs(run["bias"]).max())
    assert not run["qvel"][rows].any()


def test_a_sleeping_run_goes_on_from_a_snapshot() -> None:
    settings = HELD
    one = artsim.Simulation(artsim.load(ARM), **settings)
    one.step(450)
    snapshot = one.save()
    rows = one.step(50)
    assert rows["asleep"].all()
    other = artsim.Simulation(artsim.load(ARM), **settings)
    other.restore(snapshot)
    again = other.step(50)
    assert [name for name in rows if rows[name].tobytes() != again[name].tobytes()] == []


def test_sleeping_costs_next_to_nothing() -> None:
    """Steps that nobody records: a sleeping one takes a fraction of an awake one."""
    options = HELD | {"record": (), "steps": 60_000, "every": 60_000}

    def seconds(threshold: float) -> float:
        from artsim.io.runs.prepare import held_controls, prepare
        from artsim.io.runs.run import run
        from artsim.loaders.load import load_articulation
        from artsim.sim.runs.configuration import RunConfig

        plan = prepare(load_articulation(ARM, meshes=False), RunConfig(**options | {"sleep_threshold": threshold}))
        run(plan, controls=held_controls(plan))
        return min(run(plan, controls=held_controls(plan)).seconds for _ in range(2))

    awake, sleeping = seconds(0.0), seconds(5e-5)
    print(f"60 000 steps: awake {1e3 * awake:.1f} ms, asleep {1e3 * sleeping:.1f} ms")
    assert sleeping < 0.2 * awake


def test_what_cannot_sleep_is_refused() -> None:
    with pytest.raises(UsageError, match="sleep-threshold"):
        simulate(slider(), steps=1, sleep_threshold=1e-4, coordinates="maximal")
    with pytest.raises(UsageError, match="sleep_time"):
        simulate(slider(), steps=1, sleep_time=-1.0)
