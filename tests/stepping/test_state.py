"""State: saved at any step and restored anywhere, what follows has the same bytes."""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import prepare
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.quantities.coordinates import independent_coordinates
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation
from tests.conftest import ROOT, corpus

Array = np.ndarray[Any, Any]
STEPS = 24
ROBOTS = sorted(path.name for path in (ROOT / "robots").glob("*.*") if path.suffix in (".urdf", ".xml"))
CORPUS = (
    "menagerie-fork/robotiq_2f85/2f85.xml",
    "mink/examples/shadow_hand/right_hand.xml",
    "mujoco_warp/mujoco_warp/test_data/actuation/muscle.xml",
    "mujoco/test/engine/testdata/actuation/tendon_dampratio.xml",
    "myo_sim/myo_sim/basic/myomuscle.xml",
    "brax/brax/envs/assets/ant.xml",
    "brax/brax/envs/assets/humanoid.xml",
)
DRIVEN: dict[str, Any] = {"stiffness": {"*": 50.0}, "damping": {"*": 2.0}, "drive_limit": {"*": 8.0}}
VARIANTS: dict[str, dict[str, Any]] = {
    "free": {},
    "driven": DRIVEN,
    "rows": DRIVEN | {"coupling": "rows", "velocity_limits": True, "friction_coefficient": {"*": 0.01}},
    "pgs": DRIVEN | {"coupling": "rows", "solver": "pgs", "iterations": 5},
    "rk4": {"integrator": "rk4"},
    "maximal": {"coordinates": "maximal"},
    "bounded": DRIVEN | {"link_damping": {"*": (0.5, 0.2)}, "link_velocity_limit": {"*": (0.3, 1.0)}},
    "sleepy": DRIVEN | {"sleep_threshold": 0.1, "sleep_time": 0.006},
    "ground": {"ground": True, "friction_coefficient": {"*": 0.02}},
}


def disturbed(plan: Plan, seed: int) -> tuple[Plan, Controls]:
    """The plan from a random start, with inputs that change on the way."""
    random = np.random.default_rng(seed)
    qvel = np.where(plan.robot.model.dof_independent >= 0, random.normal(scale=0.5, size=plan.robot.nv), 0.0)
    nv, starts = plan.robot.nv, np.array([0, 5, 11, 12, 19])
    held = plan.control[None] + random.uniform(-0.2, 0.2, (len(starts), len(plan.control)))
    torque, target, rate = (random.normal(scale=scale, size=(len(starts), nv)) for scale in (0.1, 0.3, 0.1))
    return dataclasses.replace(plan, qvel=qvel), Controls(starts, torque, target, rate, held)


def rows_of(simulation: Simulation, steps: int) -> dict[str, bytes]:
    """The bytes of the next steps' rows and contacts, and those of the whole state after them, by name."""
    parts = [{k: v.copy() for k, v in (block.rows | block.tables).items()} for block in simulation.blocks(steps)]
    rows = {name: np.concatenate([part[name] for part in parts]).tobytes() for name in parts[0]}
    return rows | {f"after: {name}": values.tobytes() for name, values in simulation.save().items()}


def check_continuation(plan: Plan, controls: Controls, seed: int) -> None:
    """Save after k steps; go on here, in a fresh simulation, and here again: the same bytes."""
    k = 1 + seed % (STEPS - 2)
    one = simulation_of(plan, controls)
    rows_of(one, k)
    snapshot = one.save()
    if one.stop_reason:
        return
    first = rows_of(one, STEPS - k)
    fresh = simulation_of(plan, controls)
    fresh.restore(snapshot)
    assert differing(first, rows_of(fresh, STEPS - k)) == []
    one.restore(snapshot)
    assert differing(first, rows_of(one, STEPS - k)) == []


def differing(a: dict[str, bytes], b: dict[str, bytes]) -> list[str]:
    """The names of what is not the same."""
    assert set(a) == set(b)
    return [name for name in a if a[name] != b[name]]


def planned(path: Path, settings: dict[str, Any], **read: Any) -> Plan:
    config = RunConfig.from_mapping({"steps": STEPS, "dt": 0.002, "record": RECORDED, **settings})
    return prepare(load_articulation(path, **{"meshes": False} | read), config)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_restored_runs_have_the_same_bytes(robot: str, variant: str) -> None:
    seed = zlib.crc32(f"{robot} {variant}".encode())
    try:
        plan = planned(ROOT / "robots" / robot, VARIANTS[variant])
    except artsim.UsageError as error:
        assert variant in ("rk4", "ground", "maximal"), error  # what it has no rows for
        return
    check_continuation(*disturbed(plan, seed), seed)


MOTORS = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body><joint name="hinge" type="hinge" axis="0 1 0"/><geom type="capsule" size=".03 .2" mass="0.5"/>
      <body><joint name="slide" type="slide" axis="1 0 0"/><geom type="sphere" size=".05" mass="0.3"/></body>
    </body>
  </worldbody>
  <actuator>
    <dcmotor joint="slide" nominal="12 0.4 300" inductance="0.02"/>
    <dcmotor joint="slide" motorconst="0.1" resistance="1" thermal="2 9 0 0.004 25 30"/>
    <dcmotor joint="slide" motorconst="0.1" resistance="1" input="none" lugre="20 0.3 0.02 0.03 0.4"/>
    <intvelocity joint="hinge" kp="5" actrange="-1 1"/>
    <general joint="hinge" dyntype="filterexact" dynprm="0.03" gainprm="2"/>
  </actuator>
</mujoco>
"""


def test_motors_go_on_with_the_same_bytes() -> None:
    """Currents, temperatures, bristles, integrals, filters."""
    config = RunConfig(contacts=False, steps=STEPS, record=("qpos", "activation", "actuator_force"))
    plan = prepare(load_text(MOTORS, name="motors.xml"), config)
    assert plan.activation.size >= 5
    for seed in (3, 11):
        check_continuation(*disturbed(plan, seed), seed)


@pytest.mark.corpus
@pytest.mark.parametrize("path", CORPUS)
def test_public_models_go_on_with_the_same_bytes(path: str) -> None:
    """Loops, tendons, actuators, couplings, soft and hard."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    record = ("qpos", "qvel", "qacc", "tau_limit", "tau_passive", "tau_loop", "tau_tendon", "actuator_force")
    plan = planned(folder / "files" / path, {"record": record}, ignore_unsupported=True, meshes=True)
    seed = zlib.crc32(path.encode())
    check_continuation(*disturbed(plan, seed), seed)


# ------------------------------------------------------------------ full, independent and maximal coordinates

MANY_JOINTS = """
<mujoco>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
      <joint name="turn" type="hinge" axis="0 0 1" pos="0.1 0 0"/>
      <geom type="box" size=".2 .1 .1" mass="3"/>
      <body name="gimbal" pos="0.3 0 0" euler="10 20 30">
        <joint name="yaw" axis="0 0 1"/><joint name="pitch" axis="0 1 0"/><joint name="roll" axis="1 0 0" ref="10"/>
        <geom type="sphere" size=".05" mass="1"/>
        <body name="wrist" pos="0 0.2 0.1">
          <joint name="ball" type="ball" pos="0 0 0.05"/><geom type="sphere" size=".05" mass="0.5"/>
          <body name="fixed" pos="0.1 0 0"><geom type="sphere" size=".02" mass="0.1"/></body>
        </body>
      </body>
    </body>
    <body name="thing"><freejoint/><geom type="box" size=".1 .2 .3" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def random_state(robot: Robot, seed: int, size: float = 1.0) -> tuple[Array, Array]:
    """Coordinates and velocities that couplings agree with."""
    random = np.random.default_rng(seed)
    qpos = robot.reference.copy()
    for part in robot.labels.joint_coords.values():
        values = random.uniform(-size, size, part.stop - part.start)
        if len(values) in (4, 7):
            values[-4:] = random.normal(size=4)
            values[-4:] /= np.linalg.norm(values[-4:])
        qpos[part] = values
    qvel = random.normal(size=robot.nv)
    return robot.to_full(qpos[independent_coordinates(robot.model)], qvel[robot.model.independent_dof])


def all_robots() -> dict[str, Robot]:
    robots = {name: artsim.load(ROOT / "robots" / name) for name in ROBOTS}
    robots["floating quadruped"] = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    robots["many joints"] = Robot.of(load_text(MANY_JOINTS, name="many.xml"))
    return robots


@pytest.mark.parametrize("name", all_robots())
def test_coordinates_go_to_the_others_and_back(name: str) -> None:
    robot = all_robots()[name]
    for seed in range(3):
        qpos, qvel = random_state(robot, seed, size=0.8)
        y, u = robot.to_independent(qpos, qvel)
        assert len(y) == robot.nq - len(robot.model.coupling_follower) and len(u) == len(robot.independent_dofs)
        again = robot.to_full(y, u)
        assert again[0].tobytes() == qpos.tobytes() and again[1].tobytes() == qvel.tobytes()
        links = robot.to_maximal(qpos, qvel)
        computed = robot.compute(qpos, qvel, quantities=["link_pose", "link_velocity"], at="origin")
        scale = 1.0 + np.abs(computed["link_velocity"]).max()
        assert np.abs(links.position - computed["link_position"]).max() < 1e-13
        assert np.abs(links.twist - computed["link_velocity"]).max() < 1e-12 * scale
        flips = np.sign(np.sum(links.quaternion * computed["link_quaternion"], axis=1))
        assert np.abs(links.quaternion * flips[:, None] - computed["link_quaternion"]).max() < 1e-13
        back = robot.from_maximal(*links, near=qpos + 0.05)
        assert np.abs(back[0] - qpos).max() < 1e-9
        assert np.abs(back[1] - qvel).max() < 1e-8 * scale


def test_several_joints_between_two_links_are_found_from_afar() -> None:
    robot = Robot.of(load_text(MANY_JOINTS, name="many.xml"))
    for seed in range(20):
        links = robot.to_maximal(*random_state(robot, seed, size=1.4))
        found = robot.to_maximal(*robot.from_maximal(*links))
        assert np.abs(found.position - links.position).max() < 1e-8
        assert np.abs(found.twist - links.twist).max() < 1e-6


def test_hinges_keep_their_turns() -> None:
    robot = artsim.load(ROOT / "robots" / "double_pendulum.urdf")
    qpos = np.array([0.3 + 4 * np.pi, -1.0 - 2 * np.pi])
    assert robot.from_maximal(*robot.to_maximal(qpos), near=qpos + 0.5)[0] == pytest.approx(qpos, abs=1e-12)


def test_poses_that_joints_do_not_allow_are_refused() -> None:
    robot = artsim.load(ROOT / "robots" / "arm7.urdf")
    links = robot.to_maximal(np.full(robot.nq, 0.3), np.ones(robot.nv))
    n = 3
    for off, words in ((np.array([0.0, 0.0, 1e-4]), "is off what its joint allows"),):
        moved = links.position.copy()
        moved[n] += off
        with pytest.raises(artsim.UsageError, match=f"{robot.links[n]}.*{words}"):
            robot.from_maximal(moved, links.quaternion, links.twist)
        assert robot.from_maximal(moved, links.quaternion, links.twist, tolerance=1e-2)[0] == pytest.approx(
            0.3, abs=1e-2
        )
    twist = links.twist.copy()
    twist[n, 2] += 0.1
    with pytest.raises(artsim.UsageError, match=f"{robot.links[n]}.*moves"):
        robot.from_maximal(links.position, links.quaternion, twist)
    with pytest.raises(artsim.UsageError, match="position has shape"):
        robot.from_maximal(links.position[:-1], links.quaternion)
    gripper = artsim.load(ROOT / "robots" / "parallel_gripper.urdf")
    with pytest.raises(artsim.UsageError, match="follows another joint"):
        gripper.to_independent(np.arange(gripper.nq) * 0.01)
