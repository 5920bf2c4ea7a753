"""Computed torque: joints get the accelerations asked for, whatever their damping, springs, friction and couplings are.

Inputs over time: CSV columns and arrays, recorded and replayed; MuJoCo's inverse dynamics has the same torques.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ArtsimError, UsageError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.joint_values import TRACKING_FREQUENCY
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
Array = np.ndarray[Any, np.dtype[np.float64]]
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

# an arm of two joints; {joint}: attributes of both, {more}: sections beside the bodies
TWO = """<mujoco><option {option}/><worldbody>
  <body name="upper" {body}><joint name="a" axis="0 1 0" {joint}/><site name="s" pos=".2 0 .1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
    <body name="lower" pos=".4 0 0"><joint name="b" axis="0 1 0" {joint}/><site name="e" pos=".2 0 .1"/>
      <geom type="box" size=".2 .03 .04" pos=".2 0 0"/></body></body>
  <site name="w" pos="0 0 .5"/></worldbody>{more}</mujoco>"""
KINDS: dict[str, dict[str, str]] = {
    "bare": {},
    "damping": {"joint": 'damping="3"'},
    "spring": {"joint": 'stiffness="20" springref=".4" damping="1"'},
    "stiff spring": {"joint": 'stiffness="2e5"'},
    "polynomials": {"joint": 'stiffness="20 5 3" damping="1 .5 .2" springref=".2"'},
    "friction": {"joint": 'frictionloss="2"'},
    "armature": {"joint": 'armature=".3" damping="1"'},
    "compensated": {"body": 'gravcomp=".7"'},
    "fluid": {"option": 'density="200" viscosity="2"'},
    "tendon": {
        "more": '<tendon><spatial name="t" stiffness="30" damping="2" springlength=".1" armature=".2"><site site="w"/>'
        '<site site="s"/><site site="e"/></spatial></tendon>'
    },
    "tendon friction": {
        "more": '<tendon><fixed name="t" frictionloss="1.5"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/>'
        "</fixed></tendon>"
    },
}
BY_MUJOCO = [name for name in KINDS if "friction" not in name]
Q, V, TARGET, RATE, WANTED = [0.3, -0.5], [0.7, -0.4], [0.35, -0.45], [0.9, -0.6], [4.0, -7.0]


def robot_of(kind: str) -> tuple[Robot, str]:
    """The arm, and its text."""
    text = TWO.format(**{"option": "", "body": "", "joint": "", "more": ""} | KINDS[kind])
    return Robot.of(load_text(text, name="test.xml")), text


def run(robot: Robot, dt: float, steps: int = 2, **options: Any) -> Any:
    """A few steps from Q and V."""
    settings = {"q0": Q, "v0": V, "target": TARGET, "target_velocity": RATE, "target_acceleration": WANTED} | options
    return artsim.simulate(robot, steps=steps, dt=dt, controller="computed-torque", contacts=False, **settings)


def wanted(dt: float, ahead: float) -> Array:
    """The accelerations that the controller asks for in the first step; velocities of Euler are half a step earlier."""
    rate = np.array(RATE) - 0.5 * ahead * np.array(WANTED) - V
    found: Array = WANTED + TRACKING_FREQUENCY**2 * (np.array(TARGET) - Q) + 2 * TRACKING_FREQUENCY * rate
    return found


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
def test_joints_get_the_accelerations_asked_for(kind: str) -> None:
    """To rounding, since the controller knows the forces at the end of the step, where implicit ones act."""
    dt = 0.002
    found = run(robot_of(kind)[0], dt)
    np.testing.assert_allclose(found["qacc"][0], wanted(dt, dt), rtol=1e-7 if kind == "stiff spring" else 1e-9)


@pytest.mark.small
@pytest.mark.parametrize("kind", BY_MUJOCO)
def test_runge_kutta_gets_them_too(kind: str) -> None:
    """Its first stage, which the row of the start records."""
    if kind == "stiff spring":
        pytest.skip("not stable at this step")
    found = run(robot_of(kind)[0], 1e-5, integrator="rk4")
    np.testing.assert_allclose(found["qacc"][0], wanted(1e-5, 0.0), rtol=1e-3)


@pytest.mark.small
@pytest.mark.parametrize("kind", BY_MUJOCO)
def test_torques_are_mujoco_s_inverse_dynamics(kind: str) -> None:
    """With its passive forces, at the accelerations found; damping and springs act h later here."""
    dt = 1e-7
    robot, text = robot_of(kind)
    found = run(robot, dt)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = Q, V, found["qacc"][0]
    mujoco.mj_inverse(model, data)
    tau = data.qfrc_inverse
    np.testing.assert_allclose(found["tau_applied"][0], tau, rtol=1e-4 if kind == "stiff spring" else 1e-6)


COUPLED = """<robot name="coupled"><link name="base"/>{links}
  <joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="1e4" velocity="1e4"/><dynamics damping=".4"/></joint>
  <joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz=".3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="1e4" velocity="1e4"/><mimic joint="a" multiplier="-1.5" offset=".1"/></joint>
</robot>"""
LINK = (
    '<link name="{}"><inertial><origin xyz=".15 0 0"/><mass value="2"/>'
    '<inertia ixx=".01" ixy="0" ixz="0" iyy=".03" iyz="0" izz=".03"/></inertial></link>'
)


@pytest.mark.small
@pytest.mark.parametrize("coupling", ["exact", "compliant"])
def test_couplings_take_what_they_take(coupling: str) -> None:
    """A spring to the follower, whose joint has a motor of its own then, or a gear."""
    text = COUPLED.format(links=LINK.format("one") + LINK.format("two"))
    more = {} if coupling == "exact" else {"coupling_frequency": 8.0, "coupling_damping": 0.3}
    robot = Robot.of(load_text(text, name="test.urdf"), coupling=coupling)
    dt = 0.002
    options: dict[str, Any] = {"coupling": coupling, **more}
    if coupling == "exact":
        options |= {name: {"a": values[0]} for name, values in (("q0", Q), ("v0", V), ("target", TARGET))}
        options |= {"target_velocity": {"a": RATE[0]}, "target_acceleration": {"a": WANTED[0]}}
    found = run(robot, dt, **options)
    expected = wanted(dt, dt)
    if coupling == "exact":
        expected[1] = -1.5 * expected[0]
    np.testing.assert_allclose(found["qacc"][0], expected, rtol=1e-9)


@pytest.mark.small
def test_friction_is_not_pushed_at_rest() -> None:
    """A joint that shall rest gets no friction torque; one that shall move gets it whole, in that direction."""
    robot = robot_of("friction")[0]
    still: dict[str, Any] = {"v0": [0.0, 0.0], "target": Q, "target_velocity": [0.0, 0.0], "steps": 3}
    found = run(robot, 0.002, **still, target_acceleration=[0.0, 0.0])
    np.testing.assert_allclose(found["tau_applied"], np.tile(_gravity(robot), (len(found["qpos"]), 1)), atol=1e-9)
    assert np.abs(found["qvel"]).max() == 0.0
    begun = run(robot, 0.002, **still | {"target_acceleration": [1e-2, -1e-2]})
    pushed = (
        begun["tau_applied"][0]
        - robot.compute(Q, qacc=[1e-2, -1e-2], quantities=["inverse_dynamics"])["inverse_dynamics"]
    )
    np.testing.assert_allclose(pushed, [2.0, -2.0], atol=1e-2)


def _gravity(robot: Robot) -> Array:
    found: Array = robot.compute(Q, quantities=["gravity"])["gravity"]
    return found


def cli(*words: object) -> str:
    """What a command prints that must succeed."""
    command = [sys.executable, "-m", "artsim", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def sines(rows: int, dt: float, amplitude: float = 0.3) -> tuple[Array, Array, Array, Array]:
    """Times, and what arm7's joints shall do: sines of 0.3 rad, 0.3 to 1 Hz."""
    t = dt * np.arange(rows)
    rate, phase = 2 * np.pi * np.linspace(0.3, 1.0, 7), 0.7 * np.arange(7)
    angle = np.outer(t, rate) + phase
    return t, amplitude * np.sin(angle), amplitude * rate * np.cos(angle), -amplitude * rate**2 * np.sin(angle)


def test_arm7_tracks_sines_in_spite_of_its_damping(tmp_path: Path) -> None:
    """To 1e-3 rad, which is what the first steps leave; from a CSV, and replayed to the byte."""
    t, q, v, a = sines(2000, 0.002)
    robot = artsim.load(ARM)
    kinds = ("target", "velocity", "acceleration")
    table = np.column_stack([t, *(values[:, k] for k in range(7) for values in (q, v, a))])
    header = ",".join(["time", *(f"{dof}.{kind}" for dof in robot.dofs for kind in kinds)])
    np.savetxt(tmp_path / "sines.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    output = str(tmp_path / "run.h5")
    start = [
        word
        for option, values in (("--q0", q[0]), ("--v0", v[0]))
        for dof, value in zip(robot.dofs, values, strict=True)
        for word in (option, f"{dof}={value:.17g}")
    ]
    inputs = ["--control", str(tmp_path / "sines.csv"), "--controller", "computed-torque"]
    run_options = ["--steps", "2000", "--dt", "0.002", "--no-contacts", *start, *inputs, "-o", output]
    cli("run", ARM, *run_options)
    with artsim.open(output) as recording:
        error = np.abs(recording["qpos"] - q)
        assert error.max() < 1e-3 and error[500:].max() < 1e-5
        assert np.array_equal(recording.controls.target_acceleration, a)
    assert "every byte equal" in cli("replay", output, "--verify")


def test_coarse_rows_between_which_inputs_are_interpolated(tmp_path: Path) -> None:
    """Arrays every 20 ms; accelerations are interpolated as targets and velocities are."""
    t, q, v, a = sines(101, 0.02)
    np.savez(tmp_path / "sines.npz", time=t, target=q, velocity=v, acceleration=a)
    options: Any = {"q0": list(q[0]), "v0": list(v[0]), "controls": str(tmp_path / "sines.npz"), "interpolate": "cubic"}
    found = artsim.simulate(ARM, steps=1000, dt=0.002, controller="computed-torque", contacts=False, **options)
    assert np.abs(found["qpos"][::10] - q[:100]).max() < 1e-3


@pytest.mark.small
@pytest.mark.parametrize("controller", ["none", "hold", "gravity-compensation"])
def test_accelerations_need_computed_torque(controller: str, tmp_path: Path) -> None:
    robot = robot_of("bare")[0]
    with pytest.raises(ArtsimError, match=r"acceleration of 'a' needs --controller computed-torque"):
        artsim.simulate(robot, steps=2, target_acceleration={"a": 1.0}, controller=controller)
    path = tmp_path / "inputs.csv"
    path.write_text("time,b.acceleration\n0,1\n")
    with pytest.raises(UsageError, match=r"inputs.csv: acceleration of 'b' needs --controller computed-torque"):
        artsim.simulate(robot, steps=2, controls=str(path), controller=controller)


@pytest.mark.small
def test_accelerations_of_joints_that_are_not_actuated_are_refused() -> None:
    with pytest.raises(ArtsimError, match=r"'b' has no effect: computed torque moves joints of one dof that follow no"):
        text = COUPLED.format(links=LINK.format("one") + LINK.format("two"))
        robot = Robot.of(load_text(text, name="test.urdf"))
        artsim.simulate(robot, steps=2, target_acceleration={"b": 1.0}, controller="computed-torque")


@pytest.mark.small
def test_controls_without_accelerations_have_zeros() -> None:
    zeros = np.zeros((2, 3))
    controls = Controls(np.array([0, 5]), zeros, zeros, zeros)
    assert controls.target_acceleration.shape == (2, 3) and not controls.target_acceleration.any()
