"""Limits of swing and twist of ball and free joints: against geometry in numpy, closed forms and balances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import SettingError, StoppedError
from artsim.sim.run_data.registry import SOLVERS
from tests.cli.test_cli_run import good, refused
from tests.simulation import Array, Run, simulate

G, MASS, ARM = 9.81, 2.0, 0.5
EXACT = ("newton", "propagation", "direct")
RECORD = ("qpos", "qvel", "qacc", "tau_limit", "tau_passive", "mass_matrix", "bias", "energy")
SMALL = "0.01 0.02 0.03"


def pendulum(limits: str = "", *, com: str = f"{ARM} 0 0", inertia: str = SMALL, axis: str = "", more: str = "") -> str:
    """A body on a ball joint in the world, drawn along x."""
    xx, yy, zz = inertia.split()
    limit = f"<limit {limits}/>" if limits else ""
    turn = f'<axis xyz="{axis}"/>' if axis else ""
    return (
        f'<robot name="p"><link name="base"/><link name="bob"><inertial><origin xyz="{com}"/><mass value="{MASS}"/>'
        f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial></link>'
        f'<joint name="ball" type="spherical"><parent link="base"/><child link="bob"/>{turn}{limit}{more}</joint>'
        "</robot>"
    )


def start(rotation: Array, name: str = "ball") -> dict[str, float]:
    """q0 of a quaternion."""
    return {f"{name}.q{part}": float(x) for part, x in zip("wxyz", rotation, strict=True)}


# ------------------------------------------------------------------ geometry, by matrices


def matrix(q: Array) -> Array:
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def about(axis: Array, angle: float) -> Array:
    """Quaternion of a turn about an axis of any length."""
    unit = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * unit])


def times(a: Array, b: Array) -> Array:
    return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def swing_vector(R: Array) -> Array:
    """Rotation vector (0, y, z) of the smallest turn that takes x to where R takes it."""
    tip = R[:, 0]
    axis = np.cross([1.0, 0.0, 0.0], tip)
    size = np.linalg.norm(axis)
    return np.zeros(3) if size == 0 else np.arctan2(size, tip[0]) * axis / size


def twist(R: Array) -> float:
    """The turn about x that is left of R without its swing."""
    swing = swing_vector(R)
    left = matrix(about(swing, float(np.linalg.norm(swing)))).T @ R if swing.any() else R
    return float(np.arctan2(left[2, 1], left[1, 1]))


def cone_left(R: Array, Y: float, Z: float) -> float:
    """How far the swing may still go in its direction on PhysX's elliptic cone."""
    swing = swing_vector(R)
    angle = float(np.linalg.norm(swing))
    n = swing / angle
    edge = 4 * np.arctan(1 / np.hypot(n[1] / np.tan(Y / 4), n[2] / np.tan(Z / 4)))
    return float(edge - angle)


def gradient(function: Any, q: Array) -> Array:
    """Derivative by the angular velocity in the turned axes, by central differences."""
    h = 1e-6
    return np.array(
        [
            (function(matrix(times(q, about(e, h)))) - function(matrix(times(q, about(e, -h))))) / (2 * h)
            for e in np.eye(3)
        ]
    )


def random_rotation(rng: np.random.Generator, swing: float, turn: float) -> Array:
    direction = rng.uniform(0, 2 * np.pi)
    return times(about(np.array([0.0, np.cos(direction), np.sin(direction)]), swing), about(np.eye(3)[0], turn))


@pytest.mark.parametrize("case", ["swing", "ellipse", "twist"])
def test_the_force_of_a_limit_is_along_the_gradient_of_its_angle(case: str) -> None:
    """Rows' J by finite differences of matrices: rotations up to 170 degrees of swing, and twists all round."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        swing = float(rng.uniform(0.3, 2.9))
        q = random_rotation(rng, swing, float(rng.uniform(-3, 3)))
        R = matrix(q)
        if case == "twist":
            here = twist(R)
            settings: dict[str, Any] = {"twist_limit": {"ball": (here + 0.1, here + 0.4)}}
            wanted = gradient(twist, q)
        else:
            Y, Z = 0.9 * swing, (0.9 if case == "swing" else 0.6) * swing
            if cone_left(R, Y, Z) > 0:
                continue
            settings = {"swing_limit": {"ball": (Y, Z)}}
            wanted = gradient(lambda R, Y=Y, Z=Z: cone_left(R, Y, Z), q)
        run = simulate(pendulum(), steps=1, gravity=(0, 0, 0), q0=start(q), record=("tau_limit",), **settings)
        force = run["tau_limit"][0]
        assert np.linalg.norm(force) > 0
        np.testing.assert_allclose(
            force / np.linalg.norm(force), wanted / np.linalg.norm(wanted), rtol=0, atol=2e-8 * np.linalg.norm(wanted)
        )


@pytest.mark.parametrize("axis", ["0 1 0", "0 0 1", "-1 0 0", "1 2 -2"])
def test_another_axis_of_twist_is_another_frame(axis: str) -> None:
    """With axis a the joint acts as one along x whose frame is turned by the rotation that takes x to a."""
    a = np.array([float(part) for part in axis.split()])
    a /= np.linalg.norm(a)
    across = np.cross([1.0, 0.0, 0.0], a)
    turn = about(across if across.any() else np.array([0.0, 1.0, 0.0]), np.arccos(a[0]))
    q = times(turn, times(random_rotation(np.random.default_rng(3), 0.8, 0.5), turn * [1, -1, -1, -1]))
    limits = {"swing_limit": {"ball": (0.7, 0.5)}, "twist_limit": {"ball": (-0.2, 0.3)}}
    text = pendulum(inertia="0.03 0.03 0.03", com="0 0 0")
    run = simulate(
        text, steps=1, gravity=(0, 0, 0), q0=start(q), twist_axis={"ball": tuple(a)}, **limits, record=RECORD
    )
    inner = times(turn * [1, -1, -1, -1], times(q, turn))
    plain = simulate(text, steps=1, gravity=(0, 0, 0), q0=start(inner), **limits, record=RECORD)
    np.testing.assert_allclose(matrix(turn).T @ run["tau_limit"][0], plain["tau_limit"][0], rtol=0, atol=1e-12)
    assert np.linalg.norm(plain["tau_limit"][0]) > 0.01


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_pendulum_rests_on_its_cone_with_the_torque_of_its_weight(solver: str) -> None:
    """m g l cos α about y, where the cone lets it fall by α from the horizontal."""
    run = simulate(pendulum('swing1="0.6" swing2="0.4"'), steps=400, solver=solver, record=RECORD)
    exact = 1e-9 if solver in EXACT else 1e-3
    weight = MASS * G * ARM * np.cos(0.6)
    np.testing.assert_allclose(run["tau_limit"][-1], [0, -weight, 0], rtol=0, atol=exact * weight)
    assert abs(np.linalg.norm(swing_vector(matrix(run["qpos"][-1]))) - 0.6) < 10 * exact
    assert run.simulation.limit_steps["ball"] > 100


def test_a_damped_pendulum_slides_to_the_lowest_point_of_its_elliptic_cone() -> None:
    """The minimum of the potential energy along the edge, found in numpy; the limit carries all of the weight there."""
    gravity = np.array([0.0, -3.0, -5.0])
    limits = 'swing1="0.9" swing2="0.5"'
    text = pendulum(limits, more='<dynamics damping="3"/>')
    run = simulate(text, steps=6000, gravity=tuple(gravity), record=RECORD)
    psi = np.linspace(0, 2 * np.pi, 2_000_001)
    edge = 4 * np.arctan(1 / np.hypot(np.cos(psi) / np.tan(0.9 / 4), np.sin(psi) / np.tan(0.5 / 4)))
    tips = np.stack([np.cos(edge), np.sin(edge) * np.sin(psi), -np.sin(edge) * np.cos(psi)])
    lowest = tips[:, np.argmax(gravity @ tips)]
    np.testing.assert_allclose(matrix(run["qpos"][-1])[:, 0], lowest, rtol=0, atol=1e-5)
    carried = matrix(run["qpos"][-1]) @ run["tau_limit"][-1]
    np.testing.assert_allclose(carried, -np.cross(ARM * lowest, MASS * gravity), rtol=0, atol=1e-4)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_twist_limit_takes_the_torque_and_lets_go(solver: str) -> None:
    """From rest under a torque T the limit L is met after √(2 L I / T), then takes T exactly; it never pulls."""
    L, T, inertia, h = 0.5, 0.02, 0.01, 0.001
    text = pendulum(f'twist_lower="-0.3" twist_upper="{L}"', com="0 0 0")
    run = simulate(text, steps=1500, dt=h, torque={"ball.wx": T}, solver=solver, record=RECORD)
    met = int(np.argmax(np.abs(run["tau_limit"]).max(axis=1) > 0))
    assert abs(met * h - np.sqrt(2 * L * inertia / T)) < 3 * h
    exact = solver in EXACT
    np.testing.assert_allclose(run["tau_limit"][-1], [-T, 0, 0], rtol=0, atol=1e-10 if exact else 1e-6)
    assert abs(twist(matrix(run["qpos"][-1])) - L) < (1e-9 if exact else 1e-4)
    left = {**start(about(np.eye(3)[0], L))}
    away = simulate(text, steps=500, dt=h, torque={"ball.wx": -T}, q0=left, solver=solver, record=RECORD)
    assert not away["tau_limit"].any()
    want = L - 0.5 * T / inertia * (np.arange(500) * h) * (np.arange(500) + 1) * h
    np.testing.assert_allclose([twist(matrix(q)) for q in away["qpos"]], want, rtol=0, atol=1e-9)


def test_a_top_that_meets_its_twist_limit_loses_its_spin_and_nothing_else() -> None:
    """A sphere turns about x and, more slowly, about y, without gravity: its momentum changes along the row."""
    text = pendulum('twist_lower="-1" twist_upper="0.4"', com="0 0 0", inertia="0.02 0.02 0.02")
    run = simulate(text, steps=200, dt=0.001, gravity=(0, 0, 0), v0={"ball.wx": 4.0, "ball.wy": 0.5}, record=RECORD)
    hit = int(np.argmax(np.abs(run["tau_limit"]).max(axis=1) > 0))
    assert 60 < hit < 140
    along = run["tau_limit"][hit] / np.linalg.norm(run["tau_limit"][hit])
    rates = gradient(twist, run["qpos"][hit])
    np.testing.assert_allclose(along, -rates / np.linalg.norm(rates), rtol=0, atol=1e-8)
    change = run["qvel"][hit + 1] - run["qvel"][hit]
    np.testing.assert_allclose(np.cross(change, along), 0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(0.02 * change, 0.001 * run["tau_limit"][hit], rtol=0, atol=1e-12)
    after = run["qvel"][hit + 2]
    assert abs(gradient(twist, run["qpos"][hit + 2]) @ after) < 1e-4
    momentum = [matrix(q) @ v for q, v in zip(run["qpos"], run["qvel"], strict=True)]
    np.testing.assert_allclose(momentum[hit], momentum[0], rtol=0, atol=1e-12)


# ------------------------------------------------------------------ balances


def tumbling(solver: str = "newton", **more: Any) -> Run:
    text = pendulum('swing1="0.7" swing2="0.45" twist_lower="-0.4" twist_upper="0.6"', inertia="0.03 0.05 0.04")
    settings = {"steps": 1500, "dt": 0.001, "v0": {"ball.wx": 6.0, "ball.wy": -4.0, "ball.wz": 5.0}} | more
    return simulate(text, solver=solver, record=RECORD, **settings)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_tumbling_pendulum_stays_within_and_gains_no_energy(solver: str) -> None:
    run = tumbling(solver)
    energy = run["energy"].sum(axis=1)
    assert energy.max() < energy[0] + 0.01 * abs(energy[0])
    R = [matrix(q) for q in run["qpos"]]
    worst = min(min(cone_left(r, 0.7, 0.45), twist(r) + 0.4, 0.6 - twist(r)) for r in R[1:])
    assert worst > -(2e-3 if solver in EXACT else 2e-2)
    assert min(abs(cone_left(r, 0.7, 0.45)) for r in R[-20:]) < 1e-3  # it lies on the cone
    forces = run["tau_limit"] + run["tau_passive"]
    imbalance = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"] - forces
    assert np.abs(imbalance).max() < 1e-9 * np.abs(run["tau_limit"]).max()


@pytest.mark.parametrize("solver", EXACT[1:])
def test_exact_solvers_agree(solver: str) -> None:
    reference, run = tumbling(steps=300), tumbling(solver, steps=300)
    for name, scale in (("qpos", 1.0), ("qvel", 10.0), ("tau_limit", np.abs(reference["tau_limit"]).max())):
        np.testing.assert_allclose(run[name], reference[name], rtol=0, atol=1e-8 * scale)


def test_sliding_round_the_cone_stays_on_it() -> None:
    """A fast conical pendulum pressed outwards: J v alone would leave the cone by h² ω² / 2 in every step."""
    q = about(np.array([0.0, 1.0, 0.0]), 0.5)
    text = pendulum('swing1="0.5"', inertia="0.02 0.02 0.02")
    spin = matrix(q).T @ [20.0, 0.0, 0.0]  # about the cone's axis
    v0 = {f"ball.w{a}": float(x) for a, x in zip("xyz", spin, strict=True)}
    run = simulate(text, steps=500, dt=0.001, gravity=(0, 0, 0), q0=start(q), v0=v0, record=RECORD)
    left = np.array([cone_left(matrix(q), 0.5, 0.5) for q in run["qpos"]])
    assert np.abs(left).max() < 2e-5
    force = (0.02 + MASS * ARM**2 - 0.02) * 20.0**2 * np.sin(0.5) * np.cos(0.5)  # (I_t - I_a) Ω² sin cos
    np.testing.assert_allclose(np.linalg.norm(run["tau_limit"][100:], axis=1), force, rtol=5e-3)


# ------------------------------------------------------------------ odd places


def test_twists_across_half_a_turn_and_swings_of_half_a_turn_are_numbers() -> None:
    """A range about π does not jump there; upside down the twist is free, and the swing comes back by some way."""
    torque = {"ball.wx": 0.05}
    text = pendulum('twist_lower="2.8" twist_upper="3.5"', com="0 0 0")
    run = simulate(text, steps=1500, dt=0.001, q0=start(about(np.eye(3)[0], 2.9)), torque=torque, record=RECORD)
    assert abs(twist(matrix(run["qpos"][-1])) + 2 * np.pi - 3.5) < 1e-9
    np.testing.assert_allclose(run["tau_limit"][-1], [-0.05, 0, 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_start_upside_down_comes_back_into_the_cone(solver: str) -> None:
    """There neither the twist nor the way back is defined: no rows without gradients, and some way is taken."""
    both = pendulum('swing1="1" swing2="0.5" twist_lower="-0.1" twist_upper="0.1"')
    for axis in ([0, 1, 0], [0, 0, 1], [0, 1, 1]):
        run = simulate(both, steps=1000, q0=start(about(np.array(axis), np.pi)), solver=solver, record=RECORD)
        assert np.isfinite(run["tau_limit"]).all()
        assert cone_left(matrix(run["qpos"][-1]), 1.0, 0.5) > -(1e-3 if solver in EXACT else 2e-2)


def test_a_locked_twist_and_a_thin_cone() -> None:
    """Lower and upper equal: a universal joint."""
    text = pendulum('swing1="0.5" twist_lower="0.2" twist_upper="0.2"', inertia="0.03 0.05 0.04")
    q0 = start(about(np.eye(3)[0], 0.2))
    run = simulate(text, steps=1000, dt=0.001, q0=q0, v0={"ball.wz": 3.0, "ball.wy": 1.0}, record=RECORD)
    assert max(abs(twist(matrix(q)) - 0.2) for q in run["qpos"]) < 2e-4
    assert run.simulation.worst_residual < 1e-9


FREE = """<mujoco><option gravity="0 0 0"/><worldbody><body name="top"><freejoint name="f"/>
<inertial pos="0 0 0" mass="1" diaginertia=".02 .02 .02"/></body>
<body name="bob" pos="2 0 0"><joint name="o" type="ball" range="0 40"/>
<inertial pos="0 0 .3" mass="1" diaginertia=".02 .02 .02"/></body></worldbody></mujoco>"""


def test_free_joints_and_balls_of_mjcf_have_them_by_option() -> None:
    """Beside a ball's own range, which bounds its whole angle."""
    limits = {"twist_limit": {"f": (-0.5, 0.5), "o": (-0.3, 0.3)}, "twist_axis": {"*": (0.0, 0.0, 1.0)}}
    v0 = {"f.wz": 2.0, "f.vx": 1.0, "o.wz": 2.0, "o.wx": 1.0}
    run = simulate(load_text(FREE, name="free.xml"), steps=1000, v0=v0, record=RECORD, **limits)
    turn = run["qpos"][-1]
    assert abs(2 * np.arctan2(turn[6], turn[3]) - 0.5) < 1e-9
    np.testing.assert_allclose(run["qvel"][-1][:6], [1, 0, 0, 0, 0, 0], rtol=0, atol=1e-9)
    whole = 2 * np.arccos(np.abs(run["qpos"][:, 7]))
    assert whole.max() < np.radians(40) + 2e-3
    assert set(run.simulation.limit_steps) == {"f", "o"}


# ------------------------------------------------------------------ said by users


def test_options_configurations_and_python_give_the_same_bytes(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum())
    words = ("--swing-limit", "b*=40deg,0.4", "--twist-limit", "ball=-30deg:0.5", "--twist-axis", "ball=z")
    done = good("run", model, "--steps", 300, "--v0", "ball.wx=3", *words, "-o", tmp_path / "a.h5")
    assert "at a limit: ball (" in done.stderr
    (tmp_path / "c.toml").write_text(
        'steps = 300\nv0 = { "ball.wx" = 3 }\nswing_limit = { ball = ["40deg", 0.4] }\n'
        'twist_limit = { ball = "-30deg:0.5" }\ntwist_axis = { "*" = "z" }\n'
    )
    good("run", model, "--config", tmp_path / "c.toml", "-o", tmp_path / "b.h5")
    settings: dict[str, Any] = {"swing_limit": {"ball": (np.radians(40), 0.4)}, "twist_axis": {"ball": "z"}}
    made = artsim.simulate(
        model, steps=300, v0={"ball.wx": 3.0}, twist_limit={"ball": (np.radians(-30), 0.5)}, **settings
    )
    with artsim.open(tmp_path / "a.h5") as a, artsim.open(tmp_path / "b.h5") as b:
        for name in ("qpos", "tau_limit"):
            np.testing.assert_array_equal(a[name], b[name])
            np.testing.assert_array_equal(a[name], made[name])
    good("replay", "--verify", tmp_path / "a.h5")
    good("run", "--config", tmp_path / "a.h5", "-o", tmp_path / "d.h5")
    with artsim.open(tmp_path / "a.h5") as a, artsim.open(tmp_path / "d.h5") as d:
        np.testing.assert_array_equal(a["qpos"], d["qpos"])


def test_rollouts_take_the_steps_of_single_runs(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum('swing1="0.6" swing2="0.4" twist_lower="-0.5" twist_upper="0.5"'))
    robot = artsim.load(model)
    made = artsim.rollout(robot, samples=9, steps=200, velocity_spread=5.0, seed=2)
    assert isinstance(made, MemoryRollout)
    for k in (0, 5, 8):
        names = zip(robot.dofs, made["qvel"][k, 0].tolist(), strict=True)
        one = artsim.simulate(robot, steps=200, v0=dict(names))
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-12)
    assert np.abs(made["qvel"]).max() > 1


def test_check_and_info_show_the_limits(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum('swing1="0.6" twist_lower="-0.5" twist_upper="0.5"', axis="0 0 1"))
    wanted = "swing to 0.6, 0.6 rad; twist -0.5 … 0.5 rad; twist axis z"
    assert wanted in good("check", model).stdout
    assert wanted in good("info", model).stdout
    told = json.loads(good("check", "--json", model).stdout)["tree"][1]["joints"][0]
    assert told["swing"] == [0.6, 0.6]
    assert told["twist"] == [-0.5, 0.5]


def test_starts_beyond_limits_are_told(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum('swing1="0.6" twist_lower="-0.5" twist_upper="0.5"'))
    q = times(about(np.array([0, 1, 0]), 0.8), about(np.eye(3)[0], 0.9))
    words = [f"--q0={name}={value!r}" for name, value in start(q).items()]
    told = good("run", model, "--steps", 5, *words).stderr
    assert "the swing of ball starts at 0.8, outside its limits [0, 0.6]" in told
    assert "the twist of ball starts at 0.9, outside its limits [-0.5, 0.5]" in told
    np.savez(tmp_path / "q.npz", qpos=np.stack([[1.0, 0, 0, 0], q]))
    told = good("batch", model, "--input", tmp_path / "q.npz", "--compute", "gravity", "-o", tmp_path / "o.h5")
    assert "1 row is beyond joint limits: the twist of ball by 0.4 rad (row 1" in told.stderr
    loose = good("run", model, "--steps", 5, "--swing-limit", "ball=180deg").stderr
    assert "the twist of ball has no limit beyond a swing of 179 degrees" in loose


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ('swing1="0"', "p.urdf:1: <limit> of joint 'ball': swing 0, 0: want half angles above 0"),
        ('swing1="4"', "want half angles above 0 and up to pi rad (180deg)"),
        ('twist_lower="1" twist_upper="0"', "the lower limit is greater than the upper one"),
        ('twist_lower="-4" twist_upper="4"', "want less than a turn"),
        ('twist_lower="-4"', "has one of twist_lower and twist_upper, want both"),
    ],
)
def test_wrong_limits_of_files_are_refused(tmp_path: Path, limits: str, words: str) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum(limits))
    refused(65, "check", model, words=(words,))


def test_unknown_attributes_are_told(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum('swing="0.4" lower="1"'))
    assert "attribute 'swing' is not part of URDF and is ignored; did you mean 'swing" in good("check", model).stderr


def test_drawn_rotations_are_within_the_limits(tmp_path: Path) -> None:
    """And fill them: the largest swings and twists of 2000 rows are near the limits, in every direction."""
    model = tmp_path / "p.urdf"
    model.write_text(pendulum('swing1="0.6" swing2="0.3" twist_lower="-0.2" twist_upper="0.9"', axis="0 0 1"))
    good("batch", model, "--samples", 2000, "--compute", "link_quaternion", "-o", tmp_path / "o.npz")
    turn = about(np.array([0.0, 1.0, 0.0]), -np.pi / 2)  # takes x to z
    with np.load(tmp_path / "o.npz") as made:
        drawn = made["qpos"] if "qpos" in made else made["link_quaternion"][:, 1]
    inner = [matrix(times(turn * [1, -1, -1, -1], times(q, turn))) for q in drawn]
    left = np.array([cone_left(R, 0.6, 0.3) for R in inner])
    turned = np.array([twist(R) for R in inner])
    assert left.min() > -1e-9
    assert turned.min() > -0.2 - 1e-9
    assert turned.max() < 0.9 + 1e-9
    assert np.ptp(turned) > 1.09
    swings = np.array([swing_vector(R) for R in inner])
    assert np.abs(swings[:, 1]).max() > 0.55
    assert np.abs(swings[:, 2]).max() > 0.28


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    model = tmp_path / "p.urdf"
    model.write_text(pendulum())
    for words, told in (
        (("--swing-limit", "bal=1"), "'bal' is not a ball or free joint of this robot; did you mean 'ball'?"),
        (("--swing-limit", "ball=x"), "--swing-limit ball: got 'x', want ANGLE[,ANGLE]"),
        (("--swing-limit", "ball=1,1,1"), "want ANGLE[,ANGLE]"),
        (("--swing-limit", "1"), "want JOINT=ANGLE[,ANGLE]"),
        (("--twist-limit", "ball=1"), "want LOWER:UPPER"),
        (("--twist-limit", "ball=1:0"), "the lower limit is greater"),
        (("--twist-axis", "ball=w"), "want x|y|z|X,Y,Z"),
        (("--twist-axis", "ball=0,0,0"), "has an axis of length 0"),
        (("--twist-axis", "ball=y"), "ball has no limit of swing or twist"),
    ):
        refused(2, "run", model, *words, words=(told,))


def test_what_has_no_such_limits_says_so() -> None:
    text = pendulum('swing1="0.6"')
    with pytest.raises(StoppedError, match="ball"):
        simulate(text, integrator="rk4", steps=400)
    with pytest.raises(SettingError, match="ball"):
        simulate(pendulum(), steps=1, swing_limit={"hinge": (1.0, 1.0)})
