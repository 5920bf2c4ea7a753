"""Wrenches and pushes on links: against MuJoCo's xfrc_applied, closed forms, the balance of links; files and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.sim.foundation.errors import UsageError

MODEL = """
<mujoco>
  <option timestep="0.002" gravity="0.3 -0.2 -9.81" integrator="{integrator}"><flag contact="disable"/></option>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 1" quat="0.8 0.1 0.5 0.2">
      <freejoint name="root"/>
      <inertial pos="0.02 -0.03 0.05" quat="0.9 0.1 0.2 -0.3" mass="3" diaginertia="0.02 0.03 0.04"/>
      <body name="arm" pos="0.1 0 0.2" quat="0.7 0 0.7 0.1">
        <joint name="shoulder" axis="0.2 1 0.3"/>
        <inertial pos="0.2 0.01 0" mass="1" diaginertia="0.003 0.02 0.02"/>
        <body name="hand" pos="0.4 0 0">
          <joint name="wrist" type="ball"/>
          <inertial pos="0.05 0.02 0.01" mass="0.4" diaginertia="0.001 0.002 0.0025"/>
        </body>
        <body name="slider" pos="0.2 0 0.1">
          <joint name="slide" type="slide" axis="0 1 1"/>
          <inertial pos="0 0.02 0.1" mass="0.6" diaginertia="0.003 0.002 0.0025"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def artsim_command(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(words), input=stdin)


WRENCHES = {"hand": (1.0, -2.0, 3.0, 0.1, 0.2, -0.3), "trunk": (-2.0, 0.5, 1.0, 0.0, -0.4, 0.2)}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrenches") / "robot.xml"
    path.write_text(MODEL.format(integrator="RK4"))
    return path


def in_mujoco(path: Path, steps: int) -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    qpos, qvel = [], []
    for name, wrench in WRENCHES.items():
        data.xfrc_applied[model.body(name).id] = wrench
    for _ in range(steps):
        qpos.append(data.qpos.copy())
        qvel.append(data.qvel.copy())
        mujoco.mj_step(model, data)
    return np.array(qpos), np.array(qvel)


def test_wrenches_are_those_of_mujoco(path: Path) -> None:
    """A run of 300 steps by the same RK4, with wrenches at the centres of mass, differs by rounding only."""
    qpos, qvel = in_mujoco(path, 300)
    run = artsim.simulate(
        artsim.load(path), steps=300, integrator="rk4", wrench=WRENCHES, wrench_at="com", coupling="exact"
    )
    np.testing.assert_allclose(run["qpos"], qpos, rtol=0, atol=1e-12 * np.abs(qpos).max())
    np.testing.assert_allclose(run["qvel"], qvel, rtol=0, atol=1e-12 * np.abs(qvel).max())


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "semi-implicit-euler"])
def test_links_balance_under_wrenches(path: Path, integrator: str) -> None:
    """The wrench given is recorded on its link, and momentum changes by it and the weight alone: p' = w + m g."""
    robot = artsim.load(path)
    at = (0.1, -0.2, 0.3)
    settings = {"integrator": integrator, "steps": 1, "wrench": WRENCHES, "wrench_at": {"hand": at, "*": "com"}}
    run = artsim.simulate(
        robot, record=["+external_wrench", "com", "momentum", "incoming_wrench", "link_quaternion"], **settings
    )
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for link, wrench in WRENCHES.items():
        body = model.body(link).id
        R = data.xmat[body].reshape(3, 3)
        arm = R @ at if link == "hand" else data.xipos[body] - data.xpos[body]
        found = run["external_wrench"][0, robot.links.index(link)]
        np.testing.assert_allclose(found[:3], wrench[:3], atol=1e-13)
        np.testing.assert_allclose(found[3:], np.array(wrench[3:]) + np.cross(arm, wrench[:3]), atol=1e-13)
    tau = np.zeros(model.nv)
    for link, wrench in WRENCHES.items():
        body = model.body(link).id
        point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ at if link == "hand" else data.xipos[body]
        mujoco.mj_applyFT(model, data, np.array(wrench[:3]), np.array(wrench[3:]), point, body, tau)
    np.testing.assert_allclose(run["tau_applied"][0], tau, atol=1e-13)
    total = sum(np.array(wrench[:3]) for wrench in WRENCHES.values())
    mass = model.body_subtreemass[0]
    data.qacc[:] = run["qacc"][0]
    mujoco.mj_rnePostConstraint(model, data)  # cacc of qacc: with gravity's reaction
    np.testing.assert_allclose(sum_of_forces(model, data), total + mass * np.array(model.opt.gravity), atol=1e-11)


def sum_of_forces(model: Any, data: Any) -> Any:
    """Σ m a of all bodies, by differences of MuJoCo's velocities along the motion that qacc describes."""
    h = 1e-5
    momenta = []
    for sign in (-1, 1):
        other = mujoco.MjData(model)
        other.qpos[:] = data.qpos
        mujoco.mj_integratePos(model, other.qpos, data.qvel + 0.5 * sign * h * data.qacc, sign * h)
        other.qvel[:] = data.qvel + sign * h * data.qacc
        mujoco.mj_forward(model, other)
        mujoco.mj_subtreeVel(model, other)
        momenta.append(model.body_subtreemass[0] * other.subtree_linvel[0])
    return (momenta[1] - momenta[0]) / (2 * h)


def test_axes_of_the_link(path: Path) -> None:
    """A wrench in the axes of the link is that wrench turned to world axes."""
    robot = artsim.load(path)
    of_link = artsim.simulate(robot, steps=1, wrench={"hand": (1, 2, 3, 0.4, 0.5, 0.6)}, wrench_frame="link")
    w, x, y, z = of_link["link_quaternion"][0, robot.links.index("hand")]
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array([w, x, y, z]))
    R = R.reshape(3, 3)
    turned = (*(R @ (1, 2, 3)), *(R @ (0.4, 0.5, 0.6)))
    of_world = artsim.simulate(robot, steps=1, wrench={"hand": turned})
    np.testing.assert_allclose(of_link["tau_applied"], of_world["tau_applied"], atol=1e-14)


def test_a_push_changes_momentum_by_itself(path: Path, tmp_path: Path) -> None:
    """A push from rest without gravity changes linear momentum by J and the angular one about the origin by r × J + L,
    by MuJoCo's momenta; it acts in one step."""
    still = tmp_path / "still.xml"
    still.write_text(MODEL.format(integrator="Euler").replace("0.3 -0.2 -9.81", "0 0 0"))
    impulse, twist = (0.3, -0.2, 0.5), (0.01, 0.02, -0.03)
    robot = artsim.load(still)
    run = artsim.simulate(robot, steps=6, push=[("hand", (*impulse, *twist), 0.004)], wrench_at="com")
    assert np.all(run["qvel"][:3] == 0)
    model = mujoco.MjModel.from_xml_path(str(still))
    data = mujoco.MjData(model)
    data.qvel[:] = run["qvel"][3]
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    mass, com = model.body_subtreemass[0], data.subtree_com[0]
    linear = mass * data.subtree_linvel[0]
    np.testing.assert_allclose(linear, impulse, rtol=1e-12)
    angular = data.subtree_angmom[0] + np.cross(com, linear)
    np.testing.assert_allclose(angular, np.cross(data.xipos[model.body("hand").id], impulse) + twist, rtol=1e-12)
    np.testing.assert_allclose(run["tau_applied"][3:], 0)


def test_a_load_hangs_from_an_arm(tmp_path: Path) -> None:
    """A held arm carries a weight at its tool: gravity compensation of the arm leaves Jᵀ w for the drives."""
    robot = artsim.load("arm7")
    run = artsim.simulate(
        robot, steps=2000, q0=np.full(7, 0.3), stiffness=1e5, damping=1e3, wrench={"tool0": (0, 0, -20.0)}
    )
    q = run["qpos"][-1]
    out = robot.compute(q, quantities=["gravity", "jacobian"], at="origin")
    need = out["gravity"] - out["jacobian"][robot.links.index("tool0")].T @ [0, 0, -20.0, 0, 0, 0]
    np.testing.assert_allclose(run["tau_drive"][-1], need, atol=1e-6)
    weight = sum(link.inertial.mass for link in robot.articulation.links if link.inertial) * 9.81
    tool = run["incoming_wrench"][-1, robot.links.index("tool0"), :3]
    base = run["incoming_wrench"][-1, 0, :3]
    assert base[2] == pytest.approx(weight + 20.0, rel=1e-6)
    assert tool[2] > 19.9


ROWS = "time,hand.fx,hand.tz,trunk.fy\n0,1,0.5,0\n0.01,0,0,-2\n"


def test_control_files_push_links(path: Path, tmp_path: Path) -> None:
    """Columns of CSV, from a file or a pipe, and arrays of .npz are the same wrenches; a rollout takes them, too."""
    robot = artsim.load(path)
    csv, npz = tmp_path / "push.csv", tmp_path / "push.npz"
    csv.write_text(ROWS)
    wrench = np.zeros((2, 2, 6))
    wrench[0, 0, 0], wrench[0, 0, 5], wrench[1, 1, 1] = 1, 0.5, -2
    np.savez(npz, time=[0, 0.01], wrench=wrench, links=["hand", "trunk"])
    first = artsim.simulate(robot, steps=10, controls=csv)
    assert first["tau_applied"][0].any()
    np.testing.assert_array_equal(first["qpos"], artsim.simulate(robot, steps=10, controls=npz)["qpos"])
    rolled = artsim.rollout(robot, samples=2, steps=10, controls=csv, integrator="rk4")
    np.testing.assert_array_equal(rolled["qpos"][1], first["qpos"])
    piped = tmp_path / "piped.h5"
    words = ["run", str(path), "--steps", "10", "--control", "-", "-o", str(piped), "-q"]
    done = artsim_command(*words, stdin=ROWS)
    assert done.exit_code == 0, done.output
    with h5py.File(piped) as file:
        np.testing.assert_array_equal(file["trajectory/qpos"][:], first["qpos"])
        names = [name.decode() for name in file["controls/actuator"][:]]
        assert names[:2] == ["trunk.fx", "trunk.fy"]
        assert file["controls/control"][1, names.index("trunk.fy")] == -2


def test_runs_with_wrenches_replay(path: Path, tmp_path: Path) -> None:
    """A run with wrenches and pushes is simulated again from its file to the byte, and run again by --config."""
    out, again = tmp_path / "out.h5", tmp_path / "again.h5"
    words = ["--wrench", "hand=1,0,0,0,0,0.2", "--wrench", "tr*=0,0,3", "--wrench-at", "hand=com"]
    words += ["--wrench-frame", "link", "--push", "trunk=0.1,0,0@0.007"]
    assert artsim_command("run", str(path), "--steps", "20", *words, "-o", str(out)).exit_code == 0
    assert artsim_command("replay", str(out), "--verify").exit_code == 0
    assert artsim_command("run", "--config", str(out), "-o", str(again)).exit_code == 0
    with h5py.File(out) as a, h5py.File(again) as b:
        np.testing.assert_array_equal(a["trajectory/qpos"][:], b["trajectory/qpos"][:])
        np.testing.assert_array_equal(a["controls/start_step"][:], [0, 4, 5])


def test_a_push_wakes_a_sleeping_robot() -> None:
    """A sleeping box is at rest until it is pushed."""
    run = artsim.simulate(
        artsim.load("floating_box"),
        steps=600,
        ground=True,
        on_ground=0.0,
        sleep_threshold=1e-3,
        sleep_time=0.1,
        push=[(artsim.load("floating_box").links[-1], (0.0, 0.0, 3.0), 1.0)],
        record=["+asleep"],
    )
    assert run["asleep"][499] == 1
    assert run["qvel"][502].any()


def test_what_pushes_nothing_is_told() -> None:
    """A push after the end of the run and a wrench on a fixed link are warned of by name."""
    words = ["--push", "tool0=1,0,0@5", "--wrench", "link_0=0,0,1", "--steps", "3"]
    told = artsim_command("run", "arm7", *words).output
    assert "push of 'tool0' at 5 s is after the end of the run (0.006 s)" in told
    assert "the wrench on 'link_0' moves nothing: the link is fixed to the world" in told


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"wrench": {"hnad": (0, 0, 1)}}, "'hnad' is not a link of this robot; did you mean 'hand'?"),
        ({"wrench": {"hand": (0, 1)}}, "wrench is {'hand': (0.0, 1.0)}, want finite FX, FY, FZ"),
        ({"wrench": {"hand": (0, 1, np.inf)}}, "want finite FX, FY, FZ"),
        (
            {"wrench": {"hand": (0, 0, 1)}, "wrench_at": "tip"},
            "wrench_at of 'hand' is 'tip', want origin, com or X,Y,Z",
        ),
        (
            {"wrench": {"hand": (0, 0, 1)}, "wrench_frame": "local"},
            "wrench_frame of 'hand' is 'local', want world or link",
        ),
        ({"push": ["hand=1,2@3"]}, "want LINK=JX,JY,JZ@TIME"),
        ({"push": ["palm=1,2,3@3"]}, "'palm' is not a link"),
    ],
)
def test_odd_wrenches_are_refused(path: Path, settings: dict[str, Any], says: str) -> None:
    """Unknown links, wrong numbers and points get a line that says what was expected."""
    with pytest.raises(UsageError) as error:
        artsim.simulate(artsim.load(path), steps=1, **settings)
    assert says in str(error.value)
