"""K = J M⁻¹ Jᵀ + cfm as recorded, against MuJoCo's, Pinocchio's and closed forms; its names, its place in files."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest

import artsim
from artsim.cli.replay import load_stored
from artsim.io.readers.recording import open_recording
from artsim.io.runs.replay import verify
from artsim.sim.foundation.errors import ModelError, UsageError
from tests.simulation import ROBOTS, Array, Mimics, Truth, joint_limits

STEPS = 6
BOX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".3 .2 .1" mass="4"/></body></worldbody></mujoco>"""
FOUR_BAR = """<mujoco><option timestep="0.001"/><default><joint axis="0 1 0" armature=".01"/></default><worldbody>
  <body name="a"><joint name="a"/><geom type="capsule" fromto="0 0 0 .2 0 .4" size=".02" mass="1" contype="0"/>
    <body name="b" pos=".2 0 .4"><joint name="b"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" mass="2" contype="0"/>
      <body name="c" pos=".5 0 0"><joint name="c"/>
        <geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".02" mass="1.5" contype="0"/></body></body></body>
  </worldbody><equality><connect body1="c" anchor=".1 0 -.4" solref=".02 1"/>
  <joint joint1="b" joint2="a" polycoef="0 .5 0 0 0" solref=".02 1"/></equality></mujoco>"""


def relative(error: Array, of: Array) -> float:
    return float(np.abs(error).max() / np.abs(of).max())


@pytest.mark.small
def test_limits_friction_and_couplings_against_pinocchio(tmp_path: Path) -> None:
    """Every row of a gripper: J from the URDF's numbers, M from Pinocchio, h D of the joints' damping in M̂."""
    path = ROBOTS / "two_finger_gripper.urdf"
    robot = artsim.load(path)
    run = artsim.simulate(
        robot, steps=STEPS, dt=0.001, coupling="rows", solver="pgs", record=["qpos", "delassus"], joint_friction=0.01
    )
    truth, mimics = Truth(path, robot), Mimics(path, robot)
    damping = np.diag([0.005 if name.endswith("driver_joint") else 0.0 for name in robot.dofs])
    for row in range(STEPS):
        M = truth.mass_matrix(run["qpos"][row]) + 0.001 * damping
        found = run.delassus(row)
        J = np.zeros((len(found.names), robot.nv))
        for line, name in zip(J, found.names, strict=True):
            kind, _, rest = name.partition(":")
            joint, _, part = rest.partition(".")
            line[robot.dofs.index(joint)] = -1.0 if part == "upper" else 1.0
            if kind == "coupling":
                leader, multiplier, _ = mimics.of[joint]
                line[robot.dofs.index(leader)] = -multiplier
        want = J @ np.linalg.solve(M, J.T) + np.diag(found.cfm)
        assert relative(found.matrix - want, want) <= 1e-10
    kinds = [name.partition(":")[0] for name in found.names]
    assert kinds.count("coupling") == 5
    assert kinds.count("friction") == robot.nv
    assert kinds.count("limit") == 2 * len(joint_limits(path))
    assert f"limit:{robot.dofs[0]}.lower" in found.names


def test_loops_and_equalities_against_mujoco(tmp_path: Path) -> None:
    """A four-bar's connect, and a joint equality: J and M are MuJoCo's at the recorded coordinates."""
    path = tmp_path / "bar.xml"
    path.write_text(FOUR_BAR)
    robot = artsim.load(path)
    run = artsim.simulate(robot, steps=STEPS, record=["qpos", "delassus"])
    model = mujoco.MjModel.from_xml_string(FOUR_BAR)
    data = mujoco.MjData(model)
    for row in range(STEPS):
        data.qpos[:] = run["qpos"][row]
        mujoco.mj_forward(model, data)
        J = data.efc_J.reshape(-1, model.nv)[: data.ne]
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        found = run.delassus(row)
        assert [name.partition(":")[0] for name in found.names] == ["coupling", "loop", "loop", "loop"]
        assert [name[-2:] for name in found.names[1:]] == [".x", ".y", ".z"]
        J = np.concatenate([J[3:], J[:3]])
        want = J @ np.linalg.solve(M, J.T)
        mine = found.matrix - np.diag(found.cfm)
        assert relative(np.abs(mine) - np.abs(want), want) <= 1e-10  # up to the signs of whole rows
        assert relative(np.linalg.eigvalsh(mine) - np.linalg.eigvalsh(want), want) <= 1e-10


def test_a_box_on_the_ground_in_closed_form(tmp_path: Path) -> None:
    """Each contact's three rows: K_ij = dᵢ·dⱼ / m + (rᵢ × dᵢ)·I⁻¹ (rⱼ × dⱼ) with the points and frames of /contact."""
    path = tmp_path / "box.xml"
    path.write_text(BOX)
    run = artsim.simulate(artsim.load(path), steps=40, record=["qpos", "contacts", "delassus"])
    mass, inertia = 4.0, 4.0 / 12 * np.array([0.4**2 + 0.2**2, 0.6**2 + 0.2**2, 0.6**2 + 0.4**2])
    found, contacts = run.delassus(39), run.contacts
    last = np.flatnonzero(contacts["step"] == 39)
    assert len(last) == 4
    assert found.names == tuple(f"contact:{n}.{d}" for n in range(4) for d in ("normal", "tangent_1", "tangent_2"))
    centre = run["qpos"][39, :3]
    directions, arms = [], []
    for n in last:
        a, b = contacts["normal"][n], contacts["tangent"][n]
        sign = 1.0 if contacts["link_b"][n] == run.labels.touching_link.index("box") else -1.0
        for direction in (a, b, np.cross(a, b)):
            directions.append(sign * direction)
            arms.append(np.cross(contacts["point"][n] - centre, sign * direction))
    D, A = np.array(directions), np.array(arms)
    want = D @ D.T / mass + A @ np.diag(1 / inertia) @ A.T
    assert relative(found.matrix - np.diag(found.cfm) - want, want) <= 1e-10
    weight = found.impulse[::3].sum() / 0.002
    assert abs(weight - mass * 9.81) <= 1e-6


@pytest.mark.parametrize("solver", ["propagation", "direct", "brute", "jacobi", "block-gs", "tgs"])
def test_k_is_the_same_for_every_solver(solver: str) -> None:
    """Solvers that keep M̂'s factor, that form none, and that overwrite it; drives are rows for some of them."""
    path = ROBOTS / "two_finger_gripper.urdf"
    robot = artsim.load(path)
    found = []
    for name in ("newton", solver):
        run = artsim.simulate(robot, steps=1, dt=0.002, coupling="rows", solver=name, record=["delassus"])
        K = run.delassus(0)
        rows = [n for n, text in enumerate(K.names) if text.startswith("coupling:")]
        found.append(K.matrix[np.ix_(rows, rows)])
    assert relative(found[1] - found[0], found[0]) <= 1e-10


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delassus")
    robot = folder / "box.xml"
    robot.write_text(BOX)
    record = ["qpos", "contacts", "delassus"]
    artsim.simulate(artsim.load(robot), steps=30, record=record, output=folder / "run.h5").close()
    return folder / "run.h5"


def test_the_file_holds_what_memory_holds(path: Path, tmp_path: Path) -> None:
    robot = tmp_path / "box.xml"
    robot.write_text(BOX)
    held = artsim.simulate(artsim.load(robot), steps=30, record=["qpos", "contacts", "delassus"])
    with open_recording(path) as stored:
        for row in (0, 11, 29):
            a, b = stored.delassus(row), held.delassus(row)
            assert a.names == b.names
            assert a.matrix.tobytes() == b.matrix.tobytes()
        assert {"constraint/impulse", "delassus/value"} <= set(stored.summary()["variables"])
        with pytest.raises(UsageError, match="no row 30"):
            stored.delassus(30)
    assert verify(path, load_stored) is None


@pytest.mark.parametrize(
    ("dataset", "value", "message"),
    [
        ("delassus/row_a", 10_000, "lower triangle"),
        ("delassus/row_b", -1, "lower triangle"),
        ("constraint/name", 10_000, "labels"),
        ("delassus/entry_count", 1 << 40, "does not fit"),
        ("constraint/constraint_count", -1, "does not fit"),
    ],
)
def test_crafted_numbers_are_refused(path: Path, tmp_path: Path, dataset: str, value: int, message: str) -> None:
    crafted = shutil.copy(path, tmp_path / "crafted.h5")
    with h5py.File(crafted, "r+") as file:
        file[dataset][-1] = value
    with open_recording(crafted) as opened, pytest.raises(ModelError, match=message):
        opened.delassus(29)


@pytest.mark.parametrize(("group", "message"), [("delassus", "only one of"), ("constraint", "only one of")])
def test_half_of_it_is_refused(path: Path, tmp_path: Path, group: str, message: str) -> None:
    crafted = shutil.copy(path, tmp_path / "crafted.h5")
    with h5py.File(crafted, "r+") as file:
        del file[group]
    with pytest.raises(ModelError, match=message):
        open_recording(crafted)


def test_another_type_is_refused(path: Path, tmp_path: Path) -> None:
    crafted = shutil.copy(path, tmp_path / "crafted.h5")
    with h5py.File(crafted, "r+") as file:
        del file["delassus/value"]
        file["delassus/value"] = np.zeros((1, 2), "f4")
    with pytest.raises(ModelError, match="delassus/value is float32"):
        open_recording(crafted)


def test_what_has_other_rows_is_refused() -> None:
    robot = artsim.load(ROBOTS / "double_pendulum.urdf")
    for settings in ({"integrator": "rk4"}, {"coordinates": "maximal"}):
        with pytest.raises(UsageError, match="delassus cannot be recorded"):
            artsim.simulate(robot, steps=1, record=["delassus"], **settings)
