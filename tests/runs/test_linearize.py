"""Linear models about a state: poles in closed form, regulators that balance, states at rest, files and commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.io import loadmat
from scipy.linalg import expm

import artsim
from artsim.cli.main import cli
from artsim.io.runs.linear_models import save
from artsim.sim.articulation.tangent import difference
from artsim.sim.foundation.errors import OutputError, UsageError
from tests.conftest import ROOT

G = 9.81
PENDULA = """<robot name="pendula"><link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="1e-12" iyy="1e-12" izz="1e-12" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="1e-12" iyy="1e-12" izz="1e-12" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="continuous"><origin xyz="0 0 -1"/><parent link="upper"/><child link="lower"/>
<axis xyz="0 1 0"/></joint></robot>"""
ROD = '<inertial pos="0 0 -.25" mass=".3" diaginertia=".00625 .00625 1e-9"/>'
FOUR_BAR = f"""<mujoco><worldbody>
<body name="left"><joint name="left" axis="0 1 0"/>{ROD}
  <body name="coupler" pos="0 0 -.5"><joint name="coupler" axis="0 1 0"/>
  <inertial pos=".4 0 0" mass="2" diaginertia=".01 .01 .01"/></body></body>
<body name="right" pos=".8 0 0"><joint name="right" axis="0 1 0"/>{ROD}</body></worldbody>
<equality><connect name="pin" body1="coupler" body2="right" anchor=".8 0 0"/></equality></mujoco>"""
CART_POLE = """<mujoco><worldbody><body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
<body name="pole"><joint name="hinge" axis="0 1 0"/><inertial pos="0 0 .5" mass=".2" diaginertia="1e-9 1e-9 1e-9"/>
</body></body></worldbody></mujoco>"""
BALL = (
    """<mujoco><worldbody><body><freejoint name="root"/><geom type="sphere" size=".1"/></body></worldbody></mujoco>"""
)


def robot_of(folder: Path, text: str) -> artsim.Robot:
    path = folder / ("model.urdf" if text.startswith("<robot") else "model.xml")
    path.write_text(text)
    return artsim.load(path)


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


# ------------------------------------------------------------------ closed forms


@pytest.mark.small
def test_poles_of_a_double_pendulum(tmp_path: Path) -> None:
    """Point masses on massless rods of equal lengths: ω² = g / l (2 ± √2)."""
    found = artsim.linearize(robot_of(tmp_path, PENDULA), ["torque"])
    want = np.sqrt(G * (2.0 + np.array([np.sqrt(2.0), -np.sqrt(2.0)])))
    np.testing.assert_allclose(np.sort(np.abs(found.continuous.poles.imag))[::-2], want, rtol=1e-9)
    np.testing.assert_allclose(found.continuous.poles.real, 0.0, atol=1e-9)
    rates = np.log(found.discrete.poles.astype(complex)) / found.discrete.dt
    np.testing.assert_allclose(np.sort(np.abs(rates.imag))[::-2], want, rtol=1e-4)  # of first order in the step
    assert found.continuous.states == ("q:shoulder", "q:elbow", "v:shoulder", "v:elbow")
    assert found.notes == () and not found.acceleration.any()


@pytest.mark.small
def test_poles_of_a_four_bar(tmp_path: Path) -> None:
    """Equal cranks carry the coupler along: ω² = g l (m + m_c) / (l² (m + 2 m_c / 3))."""
    found = artsim.linearize(robot_of(tmp_path, FOUR_BAR), ["torque"])
    square = G * (2.0 + 0.3) / (0.5 * (2.0 + 2 * 0.3 / 3))
    assert len(found.continuous.states) == 2
    np.testing.assert_allclose(np.abs(found.continuous.poles.imag), np.sqrt(square), rtol=1e-7)
    rates = np.log(found.discrete.poles[:2].astype(complex)) / found.discrete.dt
    np.testing.assert_allclose(np.abs(rates.imag), np.sqrt(square), rtol=2e-3)


def cart_pole(m: float = 0.2, M: float = 1.0, length: float = 0.5) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A and B (4, 1) of a cart that is pushed and its upright pole, a point mass (Åström and Murray 2008, ex. 2.1)."""
    A, B = np.zeros((4, 4)), np.zeros((4, 1))
    A[0, 2] = A[1, 3] = 1.0
    A[2, 1], A[3, 1] = -m * G / M, (m + M) * G / (M * length)
    B[2, 0], B[3, 0] = 1.0 / M, -1.0 / (M * length)
    return A, B


@pytest.mark.small
def test_a_cart_pole(tmp_path: Path) -> None:
    found = artsim.linearize(robot_of(tmp_path, CART_POLE), ["torque"])
    A, B = cart_pole()
    np.testing.assert_allclose(found.continuous.A, A, atol=1e-6)
    np.testing.assert_allclose(found.continuous.B[:, :1], B, atol=1e-8)
    assert found.continuous.poles[0] == pytest.approx(np.sqrt(A[3, 1]), rel=1e-7)


@pytest.mark.small
def test_rotations_turn_with_the_body(tmp_path: Path) -> None:
    """A sphere that spins: changes of its rotation, in its own axes, turn by -ω ×; a step has the exponential of A."""
    w = np.array([0.5, -2.0, 1.0])
    found = artsim.linearize(robot_of(tmp_path, BALL), ["torque"], gravity=(0, 0, 0), v0=[0, 0, 0, *w])
    x, y, z = w
    np.testing.assert_allclose(found.continuous.A[3:6, 3:6], -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), atol=1e-6)
    np.testing.assert_allclose(found.discrete.A, expm(found.continuous.A * found.discrete.dt), atol=1e-8)


def test_steps_tend_to_the_motion() -> None:
    """An arm that moves, with drives: expm(A h) and the matrices of steps differ less and less, by halves."""
    given: dict[str, Any] = {"stiffness": 50.0, "damping": 2.0, "q0": {"joint_2": 0.7}, "v0": {"joint_1": 0.5}}
    robot, errors = artsim.load(ROOT / "robots" / "arm7.urdf"), []
    for dt in (2e-6, 1e-6):
        found = artsim.linearize(robot, ["target"], dt=dt, **given)
        rate = (found.discrete.A - np.eye(14)) / dt
        errors.append((rate - found.continuous.A, (found.discrete.B / dt - found.continuous.B)))
    for wide, near in zip(*errors, strict=True):
        assert np.abs(wide - 2.0 * near).max() < 0.1 * np.abs(wide).max()


def test_transitions_as_in_mujoco(tmp_path: Path) -> None:
    """mjd_transitionFD of a robot without contacts whose steps are alike."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(CART_POLE)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = [0.1, 0.4], [0.3, -0.6]
    A, B = np.zeros((4, 4)), np.zeros((4, 0))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)
    robot = robot_of(tmp_path, CART_POLE)
    found = artsim.linearize(robot, [], integrator="semi-implicit-euler", q0=[0.1, 0.4], v0=[0.3, -0.6])
    np.testing.assert_allclose(found.discrete.A, A, atol=1e-6)


# ------------------------------------------------------------------ regulators


def test_a_regulator_balances_a_cart_pole(tmp_path: Path) -> None:
    robot = robot_of(tmp_path, CART_POLE)
    found = artsim.linearize(robot, ["torque"])
    pushed = np.array(found.continuous.inputs) == "torque:slide"
    A, B = cart_pole()
    for system in (found.continuous, found.discrete):
        cart = replace(system, B=system.B[:, pushed], inputs=("torque:slide",))
        K, P = cart.lqr([1.0, 10.0, 1.0, 1.0], 0.1)
        assert np.linalg.eigvalsh(P).min() > 0.0

        def control(t: float, q: Any, v: Any, K: Any = K) -> Any:
            return np.array([-(K[0] @ np.concatenate([q, v])), 0.0])

        simulation = artsim.Simulation(robot, controller=control, q0={"hinge": 0.2})
        simulation.step(5000)
        assert np.abs(simulation.qpos).max() < 1e-3 and np.abs(simulation.qvel).max() < 1e-3
    falls = artsim.Simulation(robot, q0={"hinge": 0.2})
    falls.step(1000)
    assert abs(falls.qpos[1]) > 1.0
    np.testing.assert_allclose(found.continuous.A, A, atol=1e-6)
    np.testing.assert_allclose(found.continuous.B[:, pushed], B, atol=1e-8)


STANDING = {
    f"{side}_{joint}": value
    for side in ("front_left", "front_right", "rear_left", "rear_right")
    for joint, value in (("hip", 0.6), ("knee", -1.2))
}


def test_a_regulator_keeps_a_quadruped_standing() -> None:
    """Contacts held: 12 states are left; torques of the trimmed state with gains keep it up after a push, without it
    falls."""
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    settings: dict[str, Any] = {"ground": True, "on_ground": 0.0, "q0": STANDING}
    found = artsim.linearize(robot, ["torque"], trim=True, **settings)
    assert len(found.continuous.states) == 12
    assert found.continuous.poles[0].real > 1.0
    assert [name[7:] for name in found.continuous.inputs] == [*robot.dofs[6:]]
    system = found.continuous
    K, _ = system.lqr(1.0, 1.0)
    kept = [robot.dofs.index(name[2:]) for name in system.states[:6]]
    torque = np.zeros(robot.nv)

    def control(t: float, q: Any, v: Any, gains: Any = K) -> Any:
        x = np.concatenate([difference(robot.model, q, found.qpos)[kept], v[kept]])
        torque[6:] = found.u - gains @ x
        return torque

    def end(gains: Any) -> float:
        given = {**settings, "q0": found.qpos, "on_ground": None}
        simulation = artsim.Simulation(robot, controller=lambda t, q, v: control(t, q, v, gains), **given)
        simulation.push(robot.links[0], (0.5, 0.3, 0.0))
        simulation.step(1500)
        return float(simulation.qpos[2])

    assert end(K) == pytest.approx(found.qpos[2], abs=0.01)
    assert end(np.zeros_like(K)) < found.qpos[2] - 0.05


def test_free_decay_of_a_quadruped() -> None:
    """Held by drives on its feet and pushed, it swings in the engine as the poles say, but that its feet roll; both
    frequencies and dampings by Prony's method."""
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    given: dict[str, Any] = {"ground": True, "target": STANDING, "stiffness": 60.0, "damping": 2.0}
    simulation = artsim.Simulation(robot, on_ground=0.0, q0=STANDING, record=("qpos",), **given)
    simulation.step(5000)
    poles = artsim.linearize(robot, ["target"], q0=np.array(simulation.qpos), **given).continuous.poles
    snapshot = simulation.save()
    for axis, slowest in ((0, 0), (1, 1)):
        simulation.restore(snapshot)
        simulation.push(robot.links[0], 0.05 * np.eye(3)[axis])
        moved = np.array(simulation.step(1500)["qpos"])[:, axis]
        y = (moved - moved[-1])[200::5][:160]
        rows = np.array([y[k : k + 6] for k in range(len(y) - 6)])
        c = np.linalg.lstsq(rows, y[6:], rcond=1e-10)[0]
        found = np.log(np.roots([1.0, *-c[::-1]]).astype(complex)) / (5 * 0.002)
        swinging = found[(found.imag > 1.0) & (found.real < -0.5) & (found.imag < 100.0)]
        pairs = poles[poles.imag > 0]
        want = pairs[np.argsort(-pairs.real)][slowest]
        assert min(abs(swinging - want)) < 0.04 * abs(want), (swinging, want)


def test_a_state_that_the_engine_leaves_is_told(tmp_path: Path) -> None:
    """A box that just touches soft ground, which carries it when it is deeper; hard ground carries it at once."""
    text = """<mujoco><worldbody><geom type="plane" size="9 9 .1"/><body pos="0 0 .1"><freejoint name="root"/>
    <geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
    hard = artsim.linearize(robot_of(tmp_path, text), [], trim=True)
    assert not any("does not last" in note for note in hard.notes)
    deeper = text.replace("mass=", 'solref=".02 1" mass=').replace("0 0 .1", "0 0 .0999", 1)
    soft = artsim.linearize(robot_of(tmp_path, deeper), [], trim=True)
    assert any("does not last: root.vz accelerates" in note for note in soft.notes)


def test_what_no_input_reaches_is_named(tmp_path: Path) -> None:
    found = artsim.linearize(robot_of(tmp_path, CART_POLE), ["torque"])
    still = replace(found.continuous, B=np.zeros((4, 1)), inputs=("torque:slide",))
    with pytest.raises(UsageError, match=r"no input reaches the motion of pole"):
        still.lqr(1.0, 1.0)
    with pytest.raises(UsageError, match=r"Q has shape \(3,\)"):
        found.continuous.lqr([1, 2, 3], 1.0)
    with pytest.raises(UsageError, match=r"R is not positive"):
        found.continuous.lqr(1.0, 0.0)


# ------------------------------------------------------------------ states at rest


@pytest.mark.small
def test_trim_finds_the_state_and_its_inputs(tmp_path: Path) -> None:
    robot = robot_of(tmp_path, CART_POLE)
    upright = artsim.linearize(robot, [], trim=True, q0={"hinge": 0.3, "slide": 0.2})
    np.testing.assert_allclose(upright.qpos, [0.2, 0.0], atol=1e-9)
    hanging = artsim.linearize(robot, [], trim=True, q0={"hinge": 2.8})
    assert hanging.qpos[1] == pytest.approx(np.pi, abs=1e-9)
    arm = artsim.load(ROOT / "robots" / "arm7.urdf")
    q0 = {"joint_2": 0.8, "joint_4": -1.0}
    held = artsim.linearize(arm, ["torque"], trim=True, q0=q0)
    weight = arm.compute(held.qpos, quantities=["gravity"])["gravity"]
    np.testing.assert_allclose(held.u, weight, atol=1e-6)
    simulation = artsim.Simulation(arm, q0=held.qpos, torque=dict(zip(arm.dofs, held.u, strict=True)))
    simulation.step(10)
    np.testing.assert_allclose(simulation.qpos, held.qpos, atol=1e-7)
    with pytest.raises(UsageError, match=r"trim: no state at rest is near: root.vz still accelerates"):
        artsim.linearize(robot_of(tmp_path, BALL), [], trim=True)


# ------------------------------------------------------------------ outputs, files and the command


@pytest.mark.small
def test_sensors_are_the_outputs(tmp_path: Path) -> None:
    text = CART_POLE.replace(
        "</mujoco>", '<sensor><jointpos joint="hinge"/><jointvel joint="slide"/></sensor></mujoco>'
    )
    found = artsim.linearize(robot_of(tmp_path, text), ["torque"])
    assert len(found.continuous.outputs) == 2
    for system in (found.continuous, found.discrete):
        np.testing.assert_allclose(system.C, [[0, 1, 0, 0], [0, 0, 1, 0]], atol=1e-9)
        np.testing.assert_allclose(system.D, 0.0, atol=1e-9)


@pytest.mark.small
def test_files_hold_both_models_and_their_names(tmp_path: Path) -> None:
    found = artsim.linearize(robot_of(tmp_path, CART_POLE), ["torque"])
    gains = found.continuous.lqr(1.0, 1.0)[0], found.discrete.lqr(1.0, 1.0)[0]
    for suffix in (".npz", ".mat", ".h5"):
        save(found, tmp_path / f"model{suffix}", gains)
    with np.load(tmp_path / "model.npz") as arrays:
        np.testing.assert_array_equal(arrays["A_step"], found.discrete.A)
        assert tuple(arrays["states"]) == found.continuous.states
    matlab = loadmat(tmp_path / "model.mat", simplify_cells=True)
    np.testing.assert_array_equal(matlab["B"], found.continuous.B)
    assert tuple(matlab["inputs"]) == found.continuous.inputs
    with h5py.File(tmp_path / "model.h5") as file:
        np.testing.assert_array_equal(file["K"][:], gains[0])
        assert tuple(file["states_step"].asstr()[:]) == found.discrete.states
        assert file["dt"][()] == found.discrete.dt
    with pytest.raises(OutputError, match="exists already"):
        save(found, tmp_path / "model.h5")
    with pytest.raises(UsageError, match="want a name that ends in"):
        save(found, tmp_path / "model.txt")


@pytest.mark.small
def test_the_command(tmp_path: Path) -> None:
    robot = robot_of(tmp_path, CART_POLE)
    words = ["linearize", tmp_path / "model.xml", "--inputs", "torque", "--lqr", "1,0.1"]
    result = invoke(*words, "--json", "-o", tmp_path / "model.npz")
    assert result.exit_code == 0, result.output
    given, found = json.loads(result.stdout), artsim.linearize(robot, ["torque"])
    np.testing.assert_array_equal(given["A"], found.continuous.A)
    np.testing.assert_array_equal(given["K_step"], found.discrete.lqr(1.0, 0.1)[0])
    with np.load(tmp_path / "model.npz") as arrays:
        np.testing.assert_array_equal(arrays["K"], found.continuous.lqr(1.0, 0.1)[0])
    told = invoke(*words).stdout
    assert "continuous\npoles\n  4.85" in told and "a step of 0.002 s" in told


def test_a_row_of_a_run(tmp_path: Path) -> None:
    path = ROOT / "robots" / "double_pendulum.urdf"
    run = artsim.simulate(artsim.load(path), steps=30, q0={"joint_1": 0.4}, output=tmp_path / "run.h5")
    result = invoke("linearize", path, "--at", f"{tmp_path / 'run.h5'}:12", "--json")
    assert result.exit_code == 0, result.output
    given = json.loads(result.stdout)
    np.testing.assert_array_equal(given["qpos"], run["qpos"][12])
    np.testing.assert_array_equal(given["qvel"], run["qvel"][12])
    refused = invoke("linearize", path, "--at", f"{tmp_path / 'run.h5'}:99")
    assert refused.exit_code == 2 and "the run has rows 0 to 29" in refused.output


@pytest.mark.small
def test_refusals(tmp_path: Path) -> None:
    robot = robot_of(tmp_path, CART_POLE)
    with pytest.raises(UsageError, match="inputs: 'torqe' is not known"):
        artsim.linearize(robot, ["torqe"])
    for words, said in (
        (["--lqr", "1"], "got 1 numbers, want 2"),
        (["--inputs", "forces"], "inputs: 'forces' is not known"),
        (["-o", "model.csv"], "want a name that ends in"),
        (["--control", "inputs.csv"], "gives inputs over time"),
        (["--coordinates", "maximal"], "maximal coordinates have no linear model"),
    ):
        result = invoke("linearize", tmp_path / "model.xml", *words)
        assert result.exit_code == 2 and said in result.output, result.output
