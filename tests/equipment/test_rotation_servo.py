"""Servos of rotations, MuJoCo 4.0's <orientation>: against MuJoCo at random states and in runs; bounds, labels, files.

A model with servos on a ball in a chain, on a site about one that stands and about one that moves, by rotation vectors
and quaternions, with every attribute that the element has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.readers.recording import Recording
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.foundation.errors import ModelError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import plan_run
from tests.equipment.actuator_kernels import Actuators
from tests.equipment.test_actuators import (
    OFF,
    against_mujoco,
    balance,
    compared,
    finish,
    read_text,
    simulation,
    state_error,
)

Array = np.ndarray[Any, Any]
TARGETS = ('joint="ball"', 'site="tip" refsite="base"', 'site="tip" refsite="still"')

CHAIN = """
<mujoco><option timestep="0.002" actuatorgroupdisable="4" {option}/>
<default>{default}</default>
<worldbody><site name="still" pos="0.3 0.1 -0.2" euler="30 20 10"/>
 <body pos="0 0 1"><joint name="hinge" axis="0 1 0.2" damping="0.1"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/><site name="base" pos="0.1 0 0" euler="-20 40 80"/>
  <body pos="0.3 0 0" euler="10 -30 70"><joint name="ball" type="ball" armature="0.01"/>
   <geom type="box" size="0.05 0.1 0.15" pos="0.1 0.05 0.02"/><site name="tip" pos="0.1 0.2 0" euler="70 50 -20"/>
   <body pos="0 0.3 0"><joint name="slide" type="slide" axis="1 1 0"/><joint name="wrist" type="ball"/>
    <geom type="ellipsoid" size="0.03 0.05 0.08" pos="0.1 0 0"/><site name="hand" euler="100 0 40"/></body>
  </body>
 </body>
</worldbody><actuator>{actuators}</actuator><sensor>{sensors}</sensor>{rest}</mujoco>
"""
ALL = """<orientation name="a" joint="ball" kp="7" kv="0.3"/>
<motor name="m" joint="hinge"/>
<orientation name="q" joint="wrist" kp="3" dampratio="0.7" input="quat"/>
<orientation name="s" site="hand" refsite="still" kp="2" dampratio="1.5"/>
<orientation name="r" site="tip" refsite="base" kp="4" kv="0.2" forcerange="0 1.5"/>
<orientation name="c" joint="ball" kp="2" kv="0.1" ctrlrange="-0.4 0.7"/>
<orientation name="d" joint="ball" kp="2" input="quat" ctrlrange="0.2 0.8" forcerange="0 0.5"/>
<orientation name="g" joint="ball" kp="9" group="4"/>
<orientation name="n" joint="ball" kp="-1" forcerange="0 2"/>"""


def chain(actuators: str, **parts: str) -> str:
    return CHAIN.format(**{"default": "", "option": "", "sensors": "", "rest": "", "actuators": actuators, **parts})


def rotation(r: Array) -> Array:
    """The quaternion of a rotation vector."""
    quaternion = np.zeros(4)
    angle = float(np.linalg.norm(r))
    mujoco.mju_axisAngle2Quat(quaternion, r / angle if angle else np.array([1.0, 0, 0]), angle)
    return quaternion


def turn_between(q: Array, t: Array) -> Array:
    """log(q⁻¹ t)."""
    inverse, product, vector = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, q)
    mujoco.mju_mulQuat(product, inverse, t)
    mujoco.mju_quat2Vel(vector, product, 1)
    return vector


# ------------------------------------------------------------------ at a state


@pytest.mark.parametrize("option", ["", '><flag clampctrl="disable"/></option><option'])
def test_forces_lengths_moments_and_velocities_are_mujocos(option: str) -> None:
    text = chain(ALL, option=option)
    model = mujoco.MjModel.from_xml_string(text)
    for spread in (0.3, 1.0, 3.0):
        errors = compared(read_text(text), model, 5, spread, seed=int(10 * spread))
        assert {name: error for name, error in errors.items() if not error < 1e-10} == {}


def test_a_site_that_is_hardly_turned_is_turned() -> None:
    """About one axis rotations add up. (MuJoCo takes frames for their body's that differ by less than 1e-6.)"""
    text = """<mujoco><worldbody><site name="still"/><site name="turned" axisangle="0 0 1 1e-4"/><body><joint/>
    <geom size=".1"/></body></worldbody><actuator><orientation site="turned" refsite="still" kp="1e6"/></actuator>
    </mujoco>"""
    run = artsim.simulate(Robot.of(read_text(text)), steps=1, control=[0.0, 0.0, 0.3], record=["actuator_force"])
    np.testing.assert_allclose(run["actuator_force"][0], [0.0, 0.0, 1e6 * (0.3 - np.radians(1e-4))], rtol=1e-13)


def test_half_turns_whole_turns_and_no_quaternion_at_all() -> None:
    text = chain('<orientation joint="ball" kp="3"/><orientation joint="wrist" kp="2" input="quat"/>')
    model = mujoco.MjModel.from_xml_string(text)
    data, ours = mujoco.MjData(model), Actuators(plan_run(read_text(text), RunConfig(contacts=False)))
    for vector in ((np.pi - 1e-9, 0, 0), (0, np.pi + 1e-9, 0), (0, 0, 2 * np.pi), (0, 7, 0), (1e-12, 0, 0), (0, 0, 0)):
        for quaternion in ((0, 0, 0, 0), (1e-20, 0, 0, 0), (0, 1e-14, 0, 0), (3, 4, 5, 6), (-3, -4, -5, -6)):
            data.ctrl[:] = [*vector, *quaternion]
            mujoco.mj_forward(model, data)
            found = ours.at(data.qpos, data.qvel, data.act, data.ctrl).actuator_force
            assert found == pytest.approx(data.actuator_force, abs=1e-14), (vector, quaternion)


def test_accelerations_of_the_continuous_equations_are_mujocos() -> None:
    """RK4's first stage: nothing is implicit there. Without gravity's share of error both are MuJoCo's to rounding."""
    text = chain(ALL)
    model = mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(4)
    for _ in range(4):
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
        data.ctrl[:] = rng.normal(size=model.nu)
        mujoco.mj_forward(model, data)
        run = simulation(
            read_text(text), data, data.ctrl[None].copy(), 1, 1, integrator="rk4", record=("qacc",), dt=1e-9
        )
        assert finish(run)["qacc"][0] == pytest.approx(data.qacc, rel=1e-6, abs=1e-6)


# ------------------------------------------------------------------ runs


def test_a_run_by_rk4_is_mujocos() -> None:
    text = chain(ALL)
    assert against_mujoco(read_text(text), mujoco.MjModel.from_xml_string(text), integrator="rk4") < 1e-9


@pytest.mark.parametrize(
    ("servos", "control"),
    [
        (
            '<orientation joint="ball" kp="6" kv="0.2"/>'
            '<orientation site="tip" refsite="base" kp="3" kv="0.1" input="quat"/>',
            [0.5, 0.1, -0.4, 1.0, 0.3, 0.2, -0.6],
        ),
        ('<orientation joint="ball" kp="6" kv="0.2" forcerange="0 0.05"/>', [0.5, 0.1, -0.4]),
    ],
)
def test_a_run_by_euler_comes_nearer_to_mujocos_with_smaller_steps(servos: str, control: list[float]) -> None:
    """In which nothing turns far. The second is at its bound all the time."""
    text = chain(servos)
    errors = []
    for halving in range(3):
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = 0.0000625 / 2**halving
        model.opt.disableflags |= OFF.mjDSBL_CONTACT
        data, steps = mujoco.MjData(model), 1600 * 2**halving
        run = simulation(read_text(text), data, np.array([control]), steps, steps, dt=model.opt.timestep, record=())
        finish(run)
        data.ctrl[:] = control
        for _ in range(steps):
            mujoco.mj_step(model, data)
        errors.append(state_error(run, data))
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.01)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.01)


def rows_of(text: str, control: list[float], steps: int = 400, **options: Any) -> dict[str, Array]:
    """A run from the pose of the file under one control."""
    data = mujoco.MjData(mujoco.MjModel.from_xml_string(text))
    names = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "actuator_force")
    taus = tuple(f"tau_{name}" for name in ("applied", "drive", "passive", "coupling", "limit", "loop", "tendon"))
    return finish(simulation(read_text(text), data, np.array([control]), steps, steps, record=names + taus, **options))


TWO = """
<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><site name="still" euler="30 20 10"/>
 <body><joint name="ball" type="ball"/><geom type="box" size="0.05 0.1 0.15" pos="0.1 0.05 0.02"/>
  <site name="base" euler="10 20 30"/>
  <body pos="0.3 0 0" euler="10 -30 70"><joint name="wrist" type="ball" damping="0.001"/>
   <geom type="ellipsoid" size="0.03 0.05 0.08" pos="0.1 0 0"/><site name="tip" euler="70 50 -20"/></body>
 </body>
</worldbody><actuator>{}</actuator></mujoco>
"""
SENT = [1.0, -0.5, 2.0]


@pytest.mark.parametrize(
    ("target", "gains", "solver", "most"),
    [
        *((target, 'kp="1e6" kv="2e5"', solver, 40.0) for target in TARGETS for solver in ("newton", "pgs")),
        *((target, 'kp="1e6" kv="2e4"', "newton", 150.0) for target in TARGETS),
        *((target, 'kp="1e9" kv="1e8"', "newton", 40.0) for target in TARGETS),
    ],
)
def test_servos_are_stable_at_any_gain_and_come_where_they_are_sent(
    target: str, gains: str, solver: str, most: float
) -> None:
    """Half a turn in the time k_v / k_p, which gives `most` [rad/s]."""
    text = TWO.format(f"<orientation {target} {gains}/>")
    rows = rows_of(text, SENT, 1500, solver=solver)
    assert np.abs(rows["qvel"]).max() < most
    assert balance(rows) < 1e-9
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = rows["qpos"][-1]
    mujoco.mj_forward(model, data)
    assert data.actuator_length == pytest.approx(SENT, abs=1e-4)


def test_a_servo_on_a_ball_acts_as_its_drive(tmp_path: Path) -> None:
    """Which is in M̂, where the servo has rows."""
    driven, moved = tmp_path / "driven.xml", tmp_path / "moved.xml"
    driven.write_text(TWO.format(""))
    moved.write_text(TWO.format('<orientation name="s" joint="ball" kp="40" kv="0.3"/>'))
    dofs = ("ball.wx", "ball.wy", "ball.wz")
    gains = {"stiffness": dict.fromkeys(dofs, 40.0), "damping": dict.fromkeys(dofs, 0.3)}
    first = artsim.simulate(driven, steps=400, target=dict(zip(dofs, SENT, strict=True)), **gains)
    second = artsim.simulate(moved, steps=400, control=dict(zip(("s.x", "s.y", "s.z"), SENT, strict=True)))
    assert second["qpos"] == pytest.approx(first["qpos"], abs=1e-8)


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize("kp", ["20", "1e3", "1e6"])
@pytest.mark.parametrize("target", TARGETS[:2])
def test_the_norm_is_at_its_bound_and_points_as_the_force_would_at_the_steps_end(target: str, kp: str) -> None:
    """force = s (k_p e - k_v ω) with e and ω of the step's end, in the weights of fast springs."""
    text = chain(f'<orientation {target} kp="{kp}" kv="0.3" forcerange="0 0.8"/>', option='gravity="0 0 0"')
    rows = rows_of(text, [2.0, -0.7, 1.0], steps=20)
    norms = np.linalg.norm(rows["actuator_force"], axis=1)
    assert norms == pytest.approx(0.8, rel=1e-9)
    assert balance(rows) < 1e-10
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for k in (3, 10, 19):
        data.qpos[:], data.qvel[:], data.ctrl[:] = rows["qpos"][k], rows["qvel"][k], [2.0, -0.7, 1.0]
        mujoco.mj_forward(model, data)
        assert np.linalg.norm(data.actuator_force) == pytest.approx(0.8)
        assert rows["actuator_force"][k] @ data.actuator_force > 0.8**2 * 0.99


def test_a_bound_that_is_not_met_changes_nothing() -> None:
    servo = '<orientation joint="ball" kp="50" kv="1" {}/>'
    free = rows_of(chain(servo.format("")), [0.2, 0.1, -0.1], steps=50)
    bounded = rows_of(chain(servo.format('forcerange="0 1e5"')), [0.2, 0.1, -0.1], steps=50)
    assert {name for name in free if free[name].tobytes() != bounded[name].tobytes()} == set()


def test_a_bounded_servo_gives_no_energy_in_braking() -> None:
    """Only a damper, at its bound and then within: the kinetic energy falls in every step."""
    text = chain('<orientation joint="ball" kp="0" kv="1e4" forcerange="0 4"/>', option='gravity="0 0 0"')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = [0, 3, -9, 6, 0, 0, 0, 0]
    run = simulation(read_text(text), data, np.zeros((1, 3)), 400, 400, record=("energy", "actuator_force"))
    rows = finish(run)
    norms = np.linalg.norm(rows["actuator_force"], axis=1)
    assert norms[0] == pytest.approx(4.0, rel=1e-9) and norms[-1] < 3.9
    assert np.diff(rows["energy"].sum(axis=1)).max() < 1e-4 * rows["energy"][0].sum()


# ------------------------------------------------------------------ labels, sensors, files

SENSORS = "".join(f'<{kind} actuator="{name}"/>' for kind in ("actuatorpos", "actuatorvel") for name in ("a", "m", "r"))
SENSORS += '<actuatorfrc name="f" actuator="r" cutoff="0.4"/>'


def test_sensors_of_servos_tell_three_numbers_as_mujocos() -> None:
    text = chain(ALL, sensors=SENSORS)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = np.linspace(-1, 1, model.nv)
    control = np.linspace(-1, 1, model.nu)
    run = simulation(read_text(text), data, control[None], 1, 1, integrator="rk4", record=("sensors",))
    data.ctrl[:] = control
    mujoco.mj_forward(model, data)
    assert finish(run)["sensors"][0] == pytest.approx(data.sensordata, abs=1e-12)


def test_each_force_and_each_control_has_a_name(tmp_path: Path) -> None:
    file = tmp_path / "m.xml"
    file.write_text(chain(ALL.split('<orientation name="s"')[0], sensors='<actuatorfrc name="f" actuator="q"/>'))
    out = tmp_path / "run.h5"
    words = ["run", str(file), "--steps", "4", "-o", str(out), "--control", "a.y=0.3", "--control", "q.qz=1"]
    words += ["--record", "actuator_force,sensors", "--strict"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    with artsim.open(out) as recording:
        assert isinstance(recording, Recording)
        labels = recording.labels
        assert labels.actuator == ("a.x", "a.y", "a.z", "m", "q.x", "q.y", "q.z")
        assert labels.controls == ("a.x", "a.y", "a.z", "m", "q.qw", "q.qx", "q.qy", "q.qz")
        assert labels.sensor == ("f.x", "f.y", "f.z")
        assert recording.config["control"] == {**dict.fromkeys(labels.controls, 0.0), "a.y": 0.3, "q.qw": 1, "q.qz": 1}


def test_a_quaternion_that_nobody_gives_is_no_rotation() -> None:
    """As mj_resetData has it; a range can make 0 0 0 0 another one."""
    text = chain('<orientation name="d" joint="ball" kp="2" input="quat" ctrlrange="0.2 0.8"/>')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    plan = plan_run(read_text(text), RunConfig(contacts=False))
    assert plan.control.tolist() == data.ctrl.tolist() == [1, 0, 0, 0]


def test_delayed_controls_are_mujocos() -> None:
    """Numbers are interpolated, also of quaternions; before the first there is no rotation."""
    text = chain(
        '<orientation joint="ball" kp="1" delay="0.007" nsample="9" interp="linear"/>'
        '<orientation joint="wrist" kp="1" input="quat" ctrlrange="-0.5 0.9" delay="0.006" nsample="9" interp="cubic"/>'
        '<orientation site="tip" refsite="base" input="quat" delay="0.004" nsample="3"/>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    data, control = mujoco.MjData(model), np.random.default_rng(5).normal(size=(40, model.nu))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    run = simulation(read_text(text), data, control, 1, 40, integrator="rk4", record=("actuator_force",))
    forces = finish(run)["actuator_force"]
    for row, wanted in zip(control, forces, strict=False):
        data.ctrl[:] = row
        mujoco.mj_forward(model, data)
        assert wanted == pytest.approx(data.actuator_force, abs=1e-9)
        mujoco.mj_step(model, data)


def test_keyframes_hold_all_controls_and_those_of_attached_models_the_first_of_each(tmp_path: Path) -> None:
    """MuJoCo 4.0 counts actuators there: it wants one number of each."""
    servos = '<orientation name="a" joint="ball"/><pid joint="hinge" input="pos ff"/><motor joint="hinge"/>'
    text = chain(servos, rest='<keyframe><key name="k" ctrl="{}"/></keyframe>')
    own = load_text(text.format("0.1 0.2 0.3 0.5 0.6 0.7"), name="m").keyframes[0]
    assert own.control == (0.1, 0.2, 0.3, 0.5, 0.6, 0.7)
    arm = text.format("0.1 0.5 0.8").replace('<body pos="0 0 1">', '<body name="arm" pos="0 0 1">')
    (tmp_path / "part.xml").write_text(arm)
    whole = tmp_path / "whole.xml"
    whole.write_text("""<mujoco><asset><model name="p" file="part.xml"/></asset><worldbody><site name="s"/>
    <body name="own"><joint name="o"/><geom size="0.1"/></body>
    <body><attach model="p" body="arm" prefix="p_"/></body></worldbody>
    <actuator><orientation name="w" site="s" refsite="s" input="quat"/></actuator></mujoco>""")
    model = mujoco.MjModel.from_xml_path(str(whole))
    ours = load_articulation(whole)
    assert [list(key.control) for key in ours.keyframes] == model.key_ctrl.tolist()


def test_files_say_the_run_again_and_go_on_with_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "m.xml"
    file.write_text(chain(ALL))
    run = ["run", str(file), "--record", "qpos,qvel,actuator_force", "--checkpoint", "50", "--control", "s.x=2"]
    whole, half = tmp_path / "whole.h5", tmp_path / "half.h5"
    for words in (
        [*run, "--steps", "200", "-o", str(whole)],
        ["replay", str(whole), "--verify"],
        [*run, "--steps", "100", "-o", str(half)],
        ["run", "--resume", str(half), "--steps", "200"],
    ):
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, (words, result.output)
    with artsim.open(whole) as first, artsim.open(half) as second:
        for name in ("qpos", "qvel", "actuator_force"):
            assert np.array(first[name]).tobytes() == np.array(second[name]).tobytes()


def test_samples_of_a_rollout_are_single_runs(tmp_path: Path) -> None:
    """The servos of a pack are found lane by lane."""
    (tmp_path / "m.xml").write_text(chain(ALL))
    robot = artsim.load(tmp_path / "m.xml")
    assert reason_against_packs(plan_run(robot.articulation, RunConfig(contacts=False))) == ""
    options: dict[str, Any] = {"steps": 40, "control": {"a.x": 0.4, "r.z": 1.0}, "record": ("qpos", "qvel")}
    made, one = artsim.rollout(robot, samples=3, **options), artsim.simulate(robot, **options)
    assert made.outcome.packed
    for k in range(3):
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)
        np.testing.assert_allclose(made["qvel"][k], one["qvel"], rtol=0, atol=1e-9)


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("default", "actuator"),
    [
        ('<orientation kp="5" kv="2"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" dampratio="2"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" dampratio="2"/>', '<orientation joint="ball" kv="1"/>'),
        ('<orientation kp="5" kv="2"/>', '<orientation joint="ball" dampratio="1"/>'),
        ('<orientation kp="5" input="quat"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" input="quat"/>', '<orientation joint="ball" input="expmap"/>'),
        ('<position kp="5" kv="2"/>', '<orientation joint="ball"/>'),
        ('<motor ctrlrange="-1 1" ctrllimited="false" forcelimited="false"/>', '<orientation joint="ball"/>'),
        ('<motor ctrlrange="-1 1" ctrllimited="true" gear="3"/>', '<orientation joint="ball"/>'),
        ('<general gainprm="5" biasprm="0 -5 -1" biastype="affine"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" kv="2"/>', '<position joint="hinge"/>'),
        ('<orientation kp="5" kv="2" input="quat"/>', '<pid joint="hinge"/>'),
        ('<orientation kp="5" kv="2" input="quat"/>', '<motor joint="hinge"/>'),
        ('<orientation kp="5"/><motor/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" kv="2"/><general biastype="none"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5" kv="2"/><general gainprm="7" biasprm="1 -3 -6"/>', '<orientation joint="ball"/>'),
        ('<orientation kp="5"/><general dyntype="integrator"/>', '<orientation joint="ball" kv="1"/>'),
        ('<orientation kp="5"/><default class="x"><motor/></default>', '<orientation joint="ball" class="x"/>'),
        (
            '<orientation kp="5"/><default class="x"><general gear="2"/></default>',
            '<orientation joint="ball" class="x"/>',
        ),
        ('<general armature="3" damping="2" gear="2 3 4"/>', '<orientation joint="ball"/>'),
        ('<orientation forcelimited="true"/>', '<orientation joint="ball" forcerange="0 0.1"/>'),
    ],
)
def test_classes_hand_on_what_mujocos_do(default: str, actuator: str) -> None:
    text = chain(actuator, default=default)
    model = mujoco.MjModel.from_xml_string(text)
    errors = compared(read_text(text), model, 3, 0.7, seed=2)
    assert {name: error for name, error in errors.items() if not error < 1e-10} == {}
    assert plan_run(read_text(text), RunConfig(contacts=False)).control.size == model.nu
    assert plan_run(read_text(text), RunConfig(contacts=False)).robot.model.armature == pytest.approx(
        model.dof_armature
    )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('joint="hinge"', "joint 'hinge' is no ball joint"),
        ('site="tip"', "at a site needs a refsite"),
        ('refsite="tip"', "has 0 transmissions"),
        ('joint="ball" refsite="tip"', "refsite is for a site transmission only"),
        ('joint="ball" forcerange="-1 1"', "it bounds the norm of the torque, the first must be 0"),
        ('joint="ball" kv="1" dampratio="1"', "has kv and dampratio, want one of them"),
        ('joint="ball" kv="-1"', "kv is -1, want at least 0"),
        ('joint="ball" input="euler"', "input is 'euler'"),
        ('joint="ball" gear="2"', "gear"),
        ('joint="ball" ctrllimited="true"', "ctrllimited"),
    ],
)
def test_what_mujoco_refuses_is_refused(attributes: str, message: str) -> None:
    text = chain(f"<orientation {attributes}/>")
    with pytest.raises(ValueError, match=r"."):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=message):
        load_text(text, name="m")


def test_info_tells_its_controls(tmp_path: Path) -> None:
    file = tmp_path / "m.xml"
    file.write_text(chain('<orientation name="q" joint="ball" input="quat" ctrlrange="-1 1"/>'))
    result = CliRunner().invoke(cli, ["info", str(file), "--json"])
    told: Mapping[str, Any] = json.loads(result.output)["actuators"][0]
    assert told["inputs"] == ["qw", "qx", "qy", "qz"] and told["control_ranges"] == [[-1.0, 1.0]] * 4


@pytest.mark.parametrize("word", ["none", "vel ff", "voltage"])
def test_a_class_may_have_another_input(word: str) -> None:
    """MuJoCo takes it until a servo of that class has none of its own."""
    head = f'<mujoco><default><default class="k"><orientation input="{word}"/></default></default><worldbody><body>'
    text = head + '<joint name="j" type="ball"/><geom size=".1"/></body></worldbody>{}</mujoco>'
    used = '<actuator><orientation class="k" joint="j" kp="1"{}/></actuator>'
    for actuators, inputs in (("", 0), (used.format(' input="quat"'), 4)):
        assert mujoco.MjModel.from_xml_string(text.format(actuators)).nu == inputs
        found = load_text(text.format(actuators), name="m.xml").actuators
        assert sum(len(one.inputs) for one in found) == inputs
    with pytest.raises(ValueError, match="expmap or quat"):
        mujoco.MjModel.from_xml_string(text.format(used.format("")))
    with pytest.raises(ModelError, match="input is of another kind in its class"):
        load_text(text.format(used.format("")), name="m.xml")


@pytest.mark.parametrize(("word", "count"), [("pos", 3), ("vel", 4)])
def test_inputs_of_one_number_are_one(word: str, count: int) -> None:
    """As MuJoCo has it: position and exponential map, velocity and quaternion."""
    text = f"""<mujoco><worldbody><body><joint name="j" type="ball"/><geom size=".1"/></body></worldbody>
      <actuator><orientation joint="j" kp="1" input="{word}"/></actuator></mujoco>"""
    assert mujoco.MjModel.from_xml_string(text).nu == count
    assert len(load_text(text, name="m.xml").actuators[0].inputs) == count
