"""Mimics of a ball's axes: rows against matrices and a dense KKT system, closed forms, balances, refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.sim.foundation.errors import SettingError, UsageError
from artsim.sim.run_data.registry import SOLVERS
from tests.cli.test_cli_run import good, refused
from tests.constraints.test_turn_limits import about, gradient, matrix, random_rotation, start, times, twist
from tests.simulation import Array, Run, simulate

EXACT = ("newton", "propagation", "direct")
RECORD = ("qpos", "qvel", "qacc", "tau_passive", "tau_coupling", "mass_matrix", "bias", "energy")
AXES = np.eye(3)


def robot(*, ball: str = "", hinge: str = "", down: bool = True) -> str:
    """A body on a ball joint, hanging along -z or drawn along x, with an arm on a hinge; either has a mimic."""
    com = "0.1 0.05 -0.5" if down else "0.5 0.1 0"
    return (
        f'<robot name="m"><link name="base"/><link name="bob"><inertial><origin xyz="{com}"/><mass value="2"/>'
        '<inertia ixx="0.05" ixy="0.002" ixz="0.001" iyy="0.08" iyz="0" izz="0.09"/></inertial></link>'
        '<link name="arm"><inertial><origin xyz="0.2 0.05 0"/><mass value="0.7"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>'
        f'<joint name="ball" type="spherical"><parent link="base"/><child link="bob"/>{ball}</joint>'
        f'<joint name="hinge" type="continuous"><parent link="bob"/><child link="arm"/><origin xyz="0.1 0 -0.3"/>'
        f'<axis xyz="0 1 0.5"/>{hinge}</joint></robot>'
    )


def leads(axis: str, multiplier: float = 2.0, offset: float = 0.3) -> str:
    """The hinge follows the ball."""
    return robot(hinge=f'<mimic joint="ball" axis="{axis}" multiplier="{multiplier}" offset="{offset}"/>')


def follows(axis: str, multiplier: float = 0.5, offset: float = -0.2) -> str:
    """The ball follows the hinge."""
    return robot(ball=f'<mimic joint="hinge" axis="{axis}" multiplier="{multiplier}" offset="{offset}"/>')


def twist_about(axis: str, R: Array) -> float:
    """Twist of a rotation matrix about x, y or z, whose axes are renamed so that this is x."""
    order = [("xyz".index(axis) + k) % 3 for k in range(3)]
    return twist(R[np.ix_(order, order)])


def gap(run: Run, axis: str, *, ball_leads: bool, multiplier: float, offset: float) -> float:
    """The largest error of the coupling by matrices, whole turns aside."""
    worst = 0.0
    for q in run["qpos"]:
        turn, place = twist_about(axis, matrix(q[:4])), q[4]
        error = place - multiplier * turn - offset if ball_leads else turn - multiplier * place - offset
        period = 2 * math.pi * (abs(multiplier) if ball_leads else 1.0)
        worst = max(worst, abs(error - period * round(error / period)))
    return worst


GOING = {"ball.wx": 1.5, "ball.wy": -1.0, "ball.wz": 0.3}


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("ball_leads", [True, False])
def test_the_coupling_holds_to_rounding_over_2000_steps(axis: str, *, ball_leads: bool) -> None:
    """The swing across x comes to 2.9 rad; past half a turn no twist can be followed (axis_rows.py)."""
    text = leads(axis) if ball_leads else follows(axis)
    ratio, offset = (2.0, 0.3) if ball_leads else (0.5, -0.2)
    v0 = {k: v for k, v in GOING.items() if ball_leads or k != f"ball.w{axis}"} | ({} if ball_leads else {"hinge": 1.0})
    run = simulate(text, steps=2000, dt=0.0005, v0=v0, record=RECORD)
    assert gap(run, axis, ball_leads=ball_leads, multiplier=ratio, offset=offset) < 1e-9
    assert run.simulation.coupling_error < 1e-9
    assert np.ptp(run["qpos"][:, 4]) > 0.3
    forces = run["tau_coupling"] + run["tau_passive"]
    imbalance = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"] - forces
    assert np.abs(imbalance).max() < 1e-9
    energy = run["energy"].sum(axis=1)
    assert np.ptp(energy) < 0.02 * run["energy"][:, 0].max()


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("ball_leads", [True, False])
def test_a_step_is_that_of_a_dense_kkt_system(axis: str, *, ball_leads: bool) -> None:
    """M (v⁺ - v) = h (τ - b) + Jᵀ λ with the rate J v⁺ that the curved coupling asks for, of order h; and what the row
    does has no part in Gᵀ M G u̇ = Gᵀ (τ - b), where G spans what J leaves free. By numpy, J in closed form."""
    rng = np.random.default_rng(8)
    text = leads(axis) if ball_leads else follows(axis)
    order = [("xyz".index(axis) + k) % 3 for k in range(3)]
    h = 1e-4
    for _ in range(5):
        w, x, y, z = inner = random_rotation(rng, float(rng.uniform(0.1, 2.5)), float(rng.uniform(-1, 1)))
        q, slope = np.empty(4), np.empty(3)
        q[0], q[1 + np.array(order)] = w, inner[1:]
        slope[order] = 1.0, (x * y - w * z) / (w * w + x * x), (w * y + x * z) / (w * w + x * x)
        np.testing.assert_allclose(slope, gradient(lambda R: twist_about(axis, R), q), rtol=0, atol=1e-7)
        here = twist_about(axis, matrix(q))
        place = 2.0 * here + 0.3 if ball_leads else (here + 0.2) / 0.5
        J = np.array([*(-2.0 * slope), 1.0]) if ball_leads else np.array([*slope, -0.5])
        v = rng.normal(size=4)
        v -= J * (J @ v) / (J @ J)
        names = ("ball.wx", "ball.wy", "ball.wz", "hinge")
        torque = dict(zip(names, rng.normal(size=4).tolist(), strict=True))
        q0 = start(q) | {"hinge": place}
        v0 = dict(zip(names, v.tolist(), strict=True))
        run = simulate(text, steps=1, dt=h, q0=q0, v0=v0, torque=torque, record=RECORD)
        M, force = run["mass_matrix"][0], np.array([*torque.values()]) + run["tau_passive"][0] - run["bias"][0]
        after = run.simulation.qvel
        assert abs(J @ after) < 40 * h
        kkt = np.block([[M, -J[:, None]], [J[None], np.zeros((1, 1))]])
        wanted = np.linalg.solve(kkt, [*(M @ v + h * force), J @ after])
        np.testing.assert_allclose(after, wanted[:4], rtol=0, atol=1e-10)
        G = np.linalg.svd(J[None])[2][1:].T
        held = G @ np.linalg.solve(G.T @ M @ G, G.T @ (M @ v + h * force - M @ J * (J @ after) / (J @ J)))
        np.testing.assert_allclose(held + J * (J @ after) / (J @ J), wanted[:4], rtol=0, atol=1e-10)
        np.testing.assert_allclose(run["tau_coupling"][0], J * wanted[4] / h, rtol=0, atol=1e-6)


def test_a_ball_that_turns_about_its_axis_drives_a_hinge_as_a_gear() -> None:
    """About a principal axis (I + r² i) ω̇ = T, as between two hinges; the hinge counts whole turns."""
    text = (
        '<robot name="g"><link name="base"/><link name="top"><inertial><mass value="1"/>'
        '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.05"/></inertial></link><link name="wheel">'
        '<inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.02"/></inertial>'
        '</link><joint name="ball" type="spherical"><parent link="base"/><child link="top"/></joint>'
        '<joint name="wheel" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>'
        '<mimic joint="ball" axis="z" multiplier="-1.5"/></joint></robot>'
    )
    h, T, steps = 0.001, 0.9, 1000
    run = simulate(text, steps=steps, dt=h, gravity=(0, 0, 0), torque={"ball.wz": T}, record=RECORD)
    rate = T / (0.05 + 1.5**2 * 0.02)
    n = np.arange(steps)
    np.testing.assert_allclose(run["qpos"][:, 4], -1.5 * rate * h * h * n * (n + 1) / 2, rtol=0, atol=1e-9)
    assert abs(run["qpos"][-1, 4]) > 2 * np.pi
    np.testing.assert_allclose(run["tau_coupling"][-1], [0, 0, 0.05 * rate - T, -1.5 * rate * 0.02], rtol=0, atol=1e-9)


def going(solver: str, steps: int = 300) -> Run:
    return simulate(leads("y"), steps=steps, dt=0.001, v0=GOING, solver=solver, record=RECORD)


@pytest.mark.parametrize("solver", EXACT[1:])
def test_exact_solvers_agree(solver: str) -> None:
    reference, run = going("newton"), going(solver)
    for name, scale in (("qpos", 1.0), ("qvel", 10.0), ("tau_coupling", np.abs(reference["tau_coupling"]).max())):
        np.testing.assert_allclose(run[name], reference[name], rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - set(EXACT)))
def test_sweeping_solvers_come_near(solver: str) -> None:
    reference, run = going("newton"), going(solver)
    np.testing.assert_allclose(run["qpos"], reference["qpos"], rtol=0, atol=5e-3)
    assert run.simulation.coupling_error < 1e-4


@pytest.mark.parametrize("ball_leads", [True, False])
def test_starts_hold_the_coupling(*, ball_leads: bool) -> None:
    """The follower is placed, with its velocity; a ball that follows keeps its swing."""
    if ball_leads:
        q = times(about(np.array([1.0, 0, 1.0]), 0.4), about(AXES[1], 0.3))
        run = simulate(leads("y"), steps=1, q0=start(q), v0=GOING, record=RECORD)
        assert abs(run["qpos"][0, 4] - 2.0 * twist_about("y", matrix(q)) - 0.3) < 1e-12
    else:
        run = simulate(follows("y"), steps=1, q0={"hinge": 1.0}, v0={"hinge": 2.0, "ball.wx": 1.0}, record=RECORD)
        assert abs(twist_about("y", matrix(run["qpos"][0, :4])) - 0.3) < 1e-12
    axis = gradient(lambda R: twist_about("y", R), run["qpos"][0, :4]) @ run["qvel"][0, :3]
    hinge = run["qvel"][0, 3]
    assert abs(hinge - 2.0 * axis if ball_leads else axis - 0.5 * hinge) < 1e-8


def test_an_open_start_closes_in_a_tenth_of_a_second() -> None:
    run = simulate(leads("z"), steps=600, dt=0.001, gravity=(0, 0, 0), q0={"hinge": 0.5}, record=RECORD)
    assert run["qpos"][0, 4] == 0.5
    final = run["qpos"][-1]
    assert abs(final[4] - 2.0 * twist_about("z", matrix(final[:4])) - 0.3) < 1e-3


def test_past_upside_down_nothing_is_without_number() -> None:
    run = simulate(
        robot(hinge='<mimic joint="ball" axis="x"/>', down=False),
        steps=1000,
        q0=start(about(AXES[1], np.pi)),
        record=RECORD,
    )
    assert np.isfinite(run["qpos"]).all()


# ------------------------------------------------------------------ said by users


def test_files_and_replay(tmp_path: Path) -> None:
    model = tmp_path / "m.urdf"
    model.write_text(leads("y"))
    done = good("run", model, "--steps", 300, "--dt", 0.001, "--v0", "ball.wy=2", "-o", tmp_path / "a.h5")
    assert "worst coupling error: " in done.stderr
    assert "by elimination" not in done.stderr
    good("replay", "--verify", tmp_path / "a.h5")
    assert "= 2 ball about y + 0.3" in good("check", model).stdout
    told = "hinge: couplings with axes of ball joints are rows of runs; quantities of configurations"
    assert told in good("compute", model, "gravity").stderr
    assert told in good("batch", model, "--samples", 2, "--compute", "gravity", "-o", tmp_path / "b.npz").stderr
    model.write_text(follows("x"))
    assert "about x = 0.5 hinge + -0.2" in good("info", model).stdout


def test_exact_and_rows_hold_them_by_rows_and_compliant_says_that_they_stay_hard(tmp_path: Path) -> None:
    model = tmp_path / "m.urdf"
    model.write_text(leads("y"))
    runs = [simulate(model, steps=50, v0=GOING, coupling=how, record=RECORD) for how in ("auto", "exact", "rows")]
    for run in runs[1:]:
        np.testing.assert_array_equal(run["qpos"], runs[0]["qpos"])
    told = good("run", model, "--steps", 5, "--coupling", "compliant", "--coupling-frequency", 20).stderr
    assert "couplings with axes of ball joints stay hard: hinge" in told
    with pytest.raises(SettingError, match="'hinge' is coupled with an axis of a ball joint, which only hard rows"):
        simulate(model, steps=1, coupling="compliant", coupling_frequency={"hinge": 20.0})


def test_what_cannot_hold_them_says_so() -> None:
    for more, words in (
        ({"coordinates": "maximal"}, "nothing for a coupling of a ball's axis"),
        ({"integrator": "rk4"}, "cannot hold the coupling of 'hinge' with a ball's axis"),
    ):
        with pytest.raises(UsageError, match=words):
            simulate(leads("y"), steps=1, **more)  # type: ignore[arg-type]


def test_rollouts_take_the_steps_of_single_runs(tmp_path: Path) -> None:
    model = tmp_path / "m.urdf"
    model.write_text(leads("y"))
    loaded = artsim.load(model)
    made = artsim.rollout(loaded, samples=9, steps=50, start="uniform-limits", velocity_spread=1.0, seed=4)
    assert isinstance(made, MemoryRollout)
    for k in (0, 8):
        one = artsim.simulate(
            loaded,
            steps=50,
            q0=dict(zip(loaded.coords, made["qpos"][k, 0].tolist(), strict=True)),
            v0=dict(zip(loaded.dofs, made["qvel"][k, 0].tolist(), strict=True)),
        )
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-12)
        q = made["qpos"][k, 0]
        assert abs(q[4] - 2.0 * twist_about("y", matrix(q[:4])) - 0.3) < 1e-12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (robot(hinge='<mimic joint="ball"/>'), "joint 'hinge' mimics 'ball', with no axis: want axis=\"x\", \"y\" or"),
        (robot(hinge='<mimic joint="ball" axis="1 0 0"/>'), "with axis '1 0 0': want"),
        (
            robot(hinge='<mimic joint="ball" axis="x"/>', ball='<mimic joint="hinge" axis="x"/>'),
            "mimic joints form a cycle",
        ),
        (
            robot(ball='<mimic joint="other" axis="x"/>').replace(
                "</robot>",
                '<link name="l"/><joint name="other" type="spherical"><parent link="arm"/><child link="l"/></joint>'
                "</robot>",
            ),
            "both are spherical, want one of them with one coordinate",
        ),
    ],
)
def test_wrong_mimics_are_refused(tmp_path: Path, text: str, words: str) -> None:
    model = tmp_path / "m.urdf"
    model.write_text(text)
    refused(65, "check", model, words=(words,))


def test_an_axis_between_other_joints_is_told(tmp_path: Path) -> None:
    model = tmp_path / "m.urdf"
    model.write_text(
        robot().replace(
            "</robot>",
            '<link name="l"/><joint name="k" type="continuous"><parent link="arm"/><child link="l"/>'
            '<mimic joint="hinge" axis="x"/></joint></robot>',
        )
    )
    assert "axis='x' is for spherical joints; ignored" in good("check", model).stderr
