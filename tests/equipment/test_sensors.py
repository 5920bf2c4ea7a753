"""Sensors against MuJoCo: every kind, at random states, and those of public models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

import artsim
from artsim.sim.articulation.description import SENSOR_KINDS

Array = npt.NDArray[Any]

FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
ACCELERATIONS = ("framelinacc", "frameangacc")
SUBTREE = ("subtreecom", "subtreelinvel", "subtreeangmom")
ON_SITE = ("accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer")


def frame_sensors() -> str:
    lines = []
    for kind in (*FRAMES, *ACCELERATIONS):
        for object_ in ("site", "tip"), ("geom", "rod"), ("xbody", "fore"), ("body", "fore"):
            words = f'<{kind} objtype="{object_[0]}" objname="{object_[1]}"'
            lines.append(words + "/>")
            if kind in FRAMES:
                lines.append(words + ' reftype="site" refname="base"/>')
    return "\n".join(lines)


MODEL = f"""
<mujoco>
  <option integrator="RK4" magnetic="0.2 -0.4 0.1"><flag contact="disable"/></option>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 0.3">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.05 0.03"/>
      <site name="base" pos="0.01 0.02 0.03" euler="10 20 30"/>
      <body name="upper" pos="0.1 0 0">
        <joint name="shoulder" type="ball" damping="0.1"/>
        <geom fromto="0 0 0 0.2 0 0" size="0.02" type="capsule"/>
        <body name="fore" pos="0.2 0 0">
          <joint name="elbow" axis="0 1 0.3" stiffness="2" actuatorfrcrange="-1 0.9"/>
          <joint name="rail" type="slide" axis="1 0 0"/>
          <inertial pos="0.05 0.01 0" quat="0.9 0.1 0.3 0.2" mass="0.7" diaginertia="0.003 0.002 0.0015"/>
          <geom name="rod" fromto="0 0 0 0.2 0 0.1" size="0.01" type="capsule"/>
          <site name="tip" pos="0.2 0 0.1" euler="40 -20 70"/>
          <body name="pad" pos="0.2 0 0.1"><geom size="0.02"/><site name="end" pos="0 0.01 0"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="cord"><joint joint="elbow" coef="0.3"/><joint joint="rail" coef="-2"/></fixed></tendon>
  <actuator>
    <motor name="pull" tendon="cord" gear="2"/>
    <position name="servo" joint="elbow" kp="3" kv="0.1"/>
  </actuator>
  <sensor>
    {"".join(f'<{kind} site="tip"/><{kind} site="end" cutoff="0.5"/>' for kind in ON_SITE)}
    {frame_sensors()}
    {"".join(f'<{kind} body="trunk"/><{kind} body="fore"/>' for kind in SUBTREE)}
    <jointpos joint="elbow"/><jointpos joint="rail" cutoff="0.01"/><jointvel joint="elbow"/>
    <jointactuatorfrc joint="elbow"/><ballquat joint="shoulder"/><ballangvel joint="shoulder"/>
    <tendonpos tendon="cord"/><tendonvel tendon="cord"/><tendonactuatorfrc tendon="cord"/>
    <actuatorpos actuator="pull"/><actuatorvel actuator="pull"/><actuatorfrc actuator="servo"/>
    <clock/>
  </sensor>
</mujoco>
"""


def measured(robot: artsim.Robot, q: Array, v: Array, control: Array) -> Array:
    run = artsim.simulate(
        robot, steps=1, q0=q, v0=v, control=control, integrator="rk4", record=["sensors"], coupling="rows"
    )
    return np.asarray(run["sensors"][0])


def theirs(model: Any, q: Array, v: Array, control: Array) -> Array:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, control
    mujoco.mj_forward(model, data)
    return np.array(data.sensordata)


def random_state(model: Any, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.4)
    return q, rng.normal(size=model.nv), rng.normal(size=model.nu)


def aligned(model: Any, values: Array, reference: Array) -> Array:
    """Quaternions with the reference's sign."""
    values = values.copy()
    for n in range(model.nsensor):
        part = slice(model.sensor_adr[n], model.sensor_adr[n] + model.sensor_dim[n])
        if model.sensor_dim[n] == 4 and values[part] @ reference[part] < 0:
            values[part] *= -1
    return values


@pytest.mark.parametrize("seed", range(5))
def test_every_kind(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "model.xml"
    path.write_text(MODEL)
    model = mujoco.MjModel.from_xml_path(str(path))
    state = random_state(model, np.random.default_rng(seed))
    reference = theirs(model, *state)
    values = aligned(model, measured(artsim.load(path), *state), reference)
    for n in range(model.nsensor):
        part = slice(model.sensor_adr[n], model.sensor_adr[n] + model.sensor_dim[n])
        scale = max(1.0, float(np.abs(reference[part]).max()))
        assert np.abs(values[part] - reference[part]).max() < 1e-10 * scale, mujoco.mjtSensor(model.sensor_type[n]).name


def test_the_model_has_every_kind_but_those_of_limits_and_contact() -> None:
    limits = {f"{what}limit{of}" for what in ("joint", "tendon") for of in ("pos", "vel", "frc")}
    elsewhere = limits | {"touch", "rangefinder", "contact"}
    assert all(f"<{kind} " in MODEL or f"<{kind}/" in MODEL for kind in set(SENSOR_KINDS) - elsewhere)


def test_limit_sensors(tmp_path: Path) -> None:
    """A slide pressed against its end by its weight: the force is the weight, the distance 0."""
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint name="j" type="slide" range="-0.1 1"/><geom size="0.1" mass="2"/></body>
        </worldbody><sensor><jointlimitpos joint="j"/><jointlimitvel joint="j"/><jointlimitfrc joint="j"/></sensor>
        </mujoco>"""
    )
    run = artsim.simulate(artsim.load(path), steps=500, record=["sensors"])
    assert not run["sensors"][0].any()
    assert run["sensors"][-1] == pytest.approx([0, 0, 2 * 9.81], abs=1e-9)
    assert run.labels.sensor == ("jointlimitpos_0", "jointlimitvel_1", "jointlimitfrc_2")
    assert run.labels.sensor_units == ("m", "m/s", "N")


ROPE = """<mujoco><worldbody><site name="hook" pos="0 0 1"/><body pos="0 0 .6"><joint name="j" type="slide"/>
<geom size="0.1" mass="2"/><site name="eye"/></body></worldbody>
<tendon><spatial name="rope" range="0 .5"><site site="hook"/><site site="eye"/></spatial></tendon>
<sensor><tendonlimitpos tendon="rope"/><tendonlimitvel tendon="rope"/><tendonlimitfrc tendon="rope"/></sensor>
</mujoco>"""


def test_limit_sensors_of_a_tendon(tmp_path: Path) -> None:
    """A weight that falls into its rope: nothing until that is taut, then the weight at distance 0."""
    path = tmp_path / "model.xml"
    path.write_text(ROPE)
    run = artsim.simulate(artsim.load(path), steps=500, record=["sensors", "tendon_length"])
    slack = run["tendon_length"][:, 0] < 0.45
    assert slack.sum() > 20
    assert not run["sensors"][slack].any()
    assert run["sensors"][-1] == pytest.approx([0, 0, 2 * 9.81], abs=1e-9)
    assert run.labels.sensor_units == ("m or rad", "m/s or rad/s", "N or N m")


@pytest.mark.parametrize("speed", [-0.3, 0.2])
def test_limit_sensors_of_a_tendon_beside_mujoco(speed: float, tmp_path: Path) -> None:
    """Beyond its limit, distance and velocity are those of MuJoCo."""
    path = tmp_path / "model.xml"
    path.write_text(ROPE)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = -0.13, speed
    mujoco.mj_forward(model, data)
    run = artsim.simulate(artsim.load(path), steps=1, q0={"j": -0.13}, v0={"j": speed}, record=["sensors"])
    assert run["sensors"][0, :2] == pytest.approx(data.sensordata[:2], abs=1e-12)
    assert data.sensordata[0] == pytest.approx(-0.03, abs=1e-12)


def test_what_cannot_be_measured_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><worldbody><body><joint/><geom size="0.1"/><site name="s"/></body></worldbody>
        <sensor><insidesite site="s" objtype="site" objname="s"/><gyro site="s"/><user dim="1"/></sensor></mujoco>"""
    )
    robot = artsim.load(path)
    assert [sensor.kind for sensor in robot.articulation.sensors] == ["gyro"]
    told = "\n".join(map(str, robot.articulation.notes))
    assert "'insidesite'" in told and "'user'" in told


LOOPS = """
<mujoco>
  <option integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="a1" axis="0 1 0.1"/><joint name="a2" type="slide" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/><site name="sa"/>
      <body name="b" pos="0.3 0 0">
        <joint name="b1" axis="0 1 0"/><joint name="b2" axis="1 0 0" pos="0.05 0 0"/>
        <geom type="box" size="0.1 0.03 0.02" pos="0.1 0 0"/><site name="sb"/>
        <body name="c" pos="0.2 0 0.1" euler="0 30 0"><geom size="0.03"/><site name="sc"/></body>
      </body>
    </body>
    <body name="d" pos="0.5 0.2 1"><freejoint/><geom type="box" size="0.05 0.06 0.07"/><site name="sd"/></body>
  </worldbody>
  <equality>
    <{loop} body1="c" body2="d" {anchor}/>
  </equality>
  <sensor>
    <force site="sa"/><torque site="sa"/><force site="sb"/><torque site="sb"/><force site="sc"/><torque site="sc"/>
    <force site="sd"/><torque site="sd"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize("loop", ["connect", "weld"])
def test_a_joint_does_not_carry_what_a_loop_carries(tmp_path: Path, loop: str) -> None:
    """Force sensors on both sides of a loop, several joints per body and a merged link among them, as in MuJoCo."""
    path = tmp_path / "model.xml"
    path.write_text(LOOPS.format(loop=loop, anchor='anchor="0.05 0.1 0"'))
    model = mujoco.MjModel.from_xml_path(str(path))
    model.eq_solimp[:, :2] = 0.999999999999  # as hard as ours
    state = random_state(model, np.random.default_rng(1))[1]
    run = artsim.simulate(artsim.load(path), steps=1, v0=state, integrator="rk4", record=["sensors", "qacc"])
    data = mujoco.MjData(model)
    data.qvel[:] = state
    mujoco.mj_forward(model, data)
    # the two stabilise the loop differently: compare the wrenches at one acceleration
    J = data.efc_J.reshape(-1, model.nv)[: 3 if loop == "connect" else 6]
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    qacc = np.asarray(run["qacc"][0])
    data.efc_force[: len(J)] = np.linalg.lstsq(J.T, M @ qacc + data.qfrc_bias, rcond=None)[0]
    data.qacc[:] = qacc
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorAcc(model, data)
    assert run["sensors"][0] == pytest.approx(np.array(data.sensordata), abs=1e-7)
