"""Joint wrenches, force and torque sensors: what acts on a link moves it, whatever tendons and actuators do to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import ModelError
from tests.equipment.wrench_balance import RECORD, driven, imbalance, moved

WORLD = """
<mujoco>
  <option integrator="{integrator}" timestep="0.002"><flag contact="disable"/></option>
  <worldbody>
    <site name="w" pos="0 0 1"/><site name="w2" pos="0.4 0.1 0.9" euler="10 20 30"/>
    <geom name="drum" type="cylinder" size="0.05 0.1" pos="0.2 0 0.6" euler="90 10 0"/>
    <body name="a" pos="0 0 0.5">
      <joint name="a1" axis="0 1 0.1" damping="0.2"/><joint name="a2" type="slide" axis="1 0 0" stiffness="30"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/><site name="sa" pos="0.1 0.02 0.03"/>
      <body name="b" pos="0.3 0 0" euler="20 0 10">
        <joint name="b1" type="ball"/>
        <geom type="box" size="0.1 0.03 0.02" pos="0.1 0 0"/><site name="sb" pos="0.2 0 0.1" euler="5 6 7"/>
        <geom name="ball" size="0.04" pos="0.1 0 0.1"/>
        <body name="c" pos="0.2 0 0.1" euler="0 30 0"><geom size="0.03" pos="0 0.1 0"/><site name="sc"/></body>
      </body>
    </body>
    <body name="d" pos="0.5 0.2 1"><freejoint/><geom type="box" size="0.05 0.06 0.07"/><site name="sd"/></body>
  </worldbody>
  <tendon>
    <spatial name="spring" stiffness="100 20 30" damping="3 1 0.5" springlength="0.1 0.2" armature="{armature}">
      <site site="w"/><site site="sa"/><site site="sb"/>
    </spatial>
    <spatial name="wrapped" stiffness="50" frictionloss="{friction}">
      <site site="w2"/><geom geom="drum"/><site site="sa"/><pulley divisor="2"/><site site="sa"/><site site="sc"/>
    </spatial>
    <spatial name="merged" stiffness="20" springlength="0"><site site="sb"/><site site="sd"/><site site="sc"/></spatial>
    <spatial name="over" stiffness="30" limited="{limited}" range="0 {range}">
      <site site="w"/><geom geom="ball"/><site site="sd"/>
    </spatial>
    <fixed name="mixed" stiffness="4"><joint joint="a1" coef="1"/><joint joint="a2" coef="-3"/></fixed>
  </tendon>
  <actuator>
    <motor name="pull" tendon="wrapped" gear="2"/><position name="servo" tendon="spring" kp="40"/>
    <motor name="joint" joint="a1"/>{actuators}
  </actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""
SITES = ("sa", "sb", "sc", "sd")
SENSORS = "".join(f'<force site="{site}"/><torque site="{site}"/>' for site in SITES)
AT_SITES = """
    <motor name="thrust" site="sb" gear="1 2 3 0.1 0.2 0.3"/>
    <general name="pushed" site="sc" refsite="sa" gear="1 -2 3 0.1 0.2 0.3"/>
    <position name="away" site="sd" refsite="w2" gear="1 0 2 0 0 0" kp="3"/>
    <motor name="crank" cranksite="sa" slidersite="w2" cranklength="2"/>"""
THRUSTERS = ("thrust", "pushed", "away", "crank")


def written(tmp_path: Path, **changes: str) -> tuple[Any, Path]:
    values = {"integrator": "RK4", "armature": "0", "friction": "0", "limited": "false", "range": "9"}
    text = WORLD.format(**{**values, "actuators": "", "sensors": SENSORS, **changes})
    path = tmp_path / "model.xml"
    path.write_text(text)
    return mujoco.MjModel.from_xml_string(text), path


def state_of(model: Any, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.3)
    return q, rng.normal(size=model.nv), rng.normal(size=model.nu)


def run_of(path: Path, state: tuple[Any, Any, Any], **options: Any) -> Any:
    q, v, control = state
    record = [*RECORD, "sensors"]
    return artsim.simulate(artsim.load(path), q0=q, v0=v, control=control, **{"record": record, "steps": 1, **options})


@pytest.mark.parametrize("seed", range(3))
def test_a_joint_does_not_carry_what_tendons_carry(tmp_path: Path, seed: int) -> None:
    """Springs, dampers, motors, paths around geoms, over pulleys and between merged links: as MuJoCo has them."""
    model, path = written(tmp_path, armature="0.3")
    state = state_of(model, seed)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state
    mujoco.mj_forward(model, data)
    run = run_of(path, state, integrator="rk4")
    assert run["sensors"][0] == pytest.approx(np.array(data.sensordata), rel=1e-9, abs=1e-9)
    assert imbalance(model, run, 0) < 1e-12


def test_a_pull_along_x_is_no_weight(tmp_path: Path) -> None:
    """A mass on a lever, pulled by 141 N at 45 degrees: F = m a - pull - weight."""
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><worldbody><site name="w" pos="0 0 1"/><body><joint axis="0 1 0"/>
        <geom size=".1" mass="1" pos="1 0 0"/><site name="s" pos="1 0 0"/></body></worldbody>
        <tendon><spatial stiffness="100" springlength="0"><site site="w"/><site site="s"/></spatial></tendon>
        <sensor><force site="s"/></sensor></mujoco>"""
    )
    run = artsim.simulate(artsim.load(path), steps=1, integrator="rk4", record=["sensors", "tendon_force"])
    alpha = (100 - 9.81) / (1 + 0.4 * 0.01)
    assert run["tendon_force"][0] == pytest.approx([-100 * np.sqrt(2)])
    assert run["sensors"][0] == pytest.approx([100, 0, alpha - (100 - 9.81)], abs=1e-12)


def test_a_tendon_between_links_without_a_joint_pulls_at_what_fixes_them(tmp_path: Path) -> None:
    """What is fixed to another link receives the tendon's pull back (MuJoCo leaves out such pieces)."""
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><joint/><geom size=".1" mass="1"/><site name="s"/>
        <body name="fixed" pos="1 0 0"><geom size=".1" mass="1"/><site name="t"/></body></body></worldbody>
        <tendon><spatial stiffness="100" springlength="0"><site site="s"/><site site="t"/></spatial></tendon>
        <sensor><force site="t"/></sensor></mujoco>"""
    )
    run = artsim.simulate(artsim.load(path), steps=1, integrator="rk4", record=["sensors"])
    assert run["sensors"][0] == pytest.approx([100, 0, 0], abs=1e-12)


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "semi-implicit-euler"])
def test_limits_friction_and_inertia_of_tendons_balance(tmp_path: Path, integrator: str) -> None:
    euler = integrator != "rk4"
    changes = {"friction": "2", "limited": "true", "range": "0.9"} if euler else {}
    model, path = written(tmp_path, armature="0.3", actuators=AT_SITES, **changes)
    run = run_of(path, state_of(model, 5), integrator=integrator, steps=20, record=[*RECORD, "tendon_force"])
    assert np.all(np.asarray(run["tendon_force"])[0, :4] != 0)
    for row in range(20):
        assert imbalance(model, run, row) < 1e-10


def test_wrenches_of_tendons_and_actuators_are_their_joint_forces(tmp_path: Path) -> None:
    """Σ Jᵀ wrench over the links is what acts on the dofs, limits and friction of tendons included."""
    model, path = written(tmp_path, friction="2", limited="true", range="0.4", actuators=AT_SITES)
    record = [*RECORD, "tau_tendon", "tau_drive", "tendon_force", "tendon_length", "actuator_force"]
    run = run_of(path, state_of(model, 7), steps=100, record=record)
    spring = -30 * (np.asarray(run["tendon_length"])[:, 3] - model.tendon_lengthspring[3, 1])
    assert np.any(np.asarray(run["tendon_force"])[:, 3] < spring - 1)  # at its limit, which pulls too
    data, J, R = mujoco.MjData(model), np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for row in range(0, 100, 5):
        data.qpos[:] = run["qpos"][row]
        mujoco.mj_fwdPosition(model, data)
        total = np.zeros(model.nv)
        for body in range(1, model.nbody):
            mujoco.mj_jac(model, data, J, R, run["link_position"][row][body], body)
            wrench = run["external_wrench"][row][body]
            total += J.T @ wrench[:3] + R.T @ wrench[3:]
        in_joints = np.zeros(model.nv)
        in_joints[:2] = run["tendon_force"][row][4] * np.array([1, -3])  # the fixed tendon
        in_joints[0] += run["actuator_force"][row][2]  # the joint's motor
        expected = run["tau_tendon"][row] + run["tau_drive"][row] - in_joints
        assert np.abs(total - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())


def test_actuators_at_sites_act_on_links_and_not_in_joints(tmp_path: Path) -> None:
    """The same wrenches given to MuJoCo from outside are measured alike."""
    model, path = written(tmp_path, actuators=AT_SITES)
    state = state_of(model, 2)
    run = run_of(path, state, integrator="rk4", record=[*RECORD, "sensors", "actuator_force"])
    assert imbalance(model, run, 0) < 1e-12
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state
    mujoco.mj_forward(model, data)
    assert run["qacc"][0] == pytest.approx(np.array(data.qacc), rel=1e-9, abs=1e-9)
    for name in THRUSTERS:
        push(model, data, name)
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorAcc(model, data)
    assert run["sensors"][0] == pytest.approx(np.array(data.sensordata), rel=1e-9, abs=1e-9)


def push(model: Any, data: Any, name: str) -> None:
    """Give what an actuator at a site does to its bodies to xfrc_applied (force, torque at the centre of mass)."""
    actuator = model.actuator(name)
    site, other = (int(k) for k in actuator.trnid)
    force = float(data.actuator_force[actuator.id])
    p, r = data.site_xpos[site], data.site_xpos[other]
    if name == "crank":
        z = data.site_xmat[other].reshape(3, 3)[:, 2]
        d = p - r
        root = np.sqrt((d @ z) ** 2 + 4.0 - d @ d)
        wrench = force * np.concatenate([(1 - d @ z / root) * z + d / root, np.zeros(3)])
        apply(model, data, site, p, wrench)
        apply(model, data, other, p, -wrench)  # which acts on the slider's body along the same line, but for a turn
        return
    axes = data.site_xmat[site if other < 0 else other].reshape(3, 3)
    gear = force * np.concatenate([axes @ actuator.gear[:3], axes @ actuator.gear[3:]])
    apply(model, data, site, p, gear)
    if name == "pushed":  # both on bodies of one chain: the reaction acts where the force does
        apply(model, data, other, p, -gear)
    elif other >= 0:
        apply(model, data, other, r, -gear)


def apply(model: Any, data: Any, site: int, point: Any, wrench: Any) -> None:
    body = int(model.site_bodyid[site])
    data.xfrc_applied[body] += moved(wrench, point - data.xipos[body])


@pytest.mark.corpus
def test_public_robots_with_tendons_and_actuators_balance(corpus_mjcf: dict[str, Any]) -> None:
    """Ten steps with every control at a fifth of its range: each link, from the file alone."""
    if corpus_mjcf["expect"] != "load":
        pytest.skip("no model")
    try:
        model = mujoco.MjModel.from_xml_path(corpus_mjcf["path"])
        if not (model.nu or model.ntendon) or model.nv == 0:
            pytest.skip("no actuators, no tendons")
        run = driven(model, corpus_mjcf["path"])
    except ModelError as error:
        pytest.skip(str(error)[:80])
    for row in (0, 9):
        assert imbalance(model, run, row) <= 1e-9
