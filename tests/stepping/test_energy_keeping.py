"""What the default step keeps: energy of springs, spin, taut chains and bent couplings; drives that turn balls.

Beside closed forms, MuJoCo's Euler, and the balance M qacc + bias = Σ tau, which holds in all of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ArtsimError, UsageError
from tests.simulation import Array, Run, robot_file, simulate

SPRING = """<mujoco><option gravity="0 0 0"/><worldbody><body>
  <joint name="j" type="{kind}" axis="1 0 0" stiffness="{stiffness}" damping="{damping}"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""
BODY = """<mujoco><option gravity="0 0 0"/><worldbody><body name="t"><{joint}/>
  <inertial pos="{centre}" mass="{mass}" diaginertia="{inertia}"/></body></worldbody></mujoco>"""
TENDON = """<mujoco><option gravity="0 0 0" timestep="0.002"/><worldbody>
  <body><joint name="j" axis="0 1 0"/><inertial pos=".1 0 0" mass=".5" diaginertia=".0017 .0017 .0017"/>
    <site name="a" pos=".1 0 0"/></body><site name="b" pos=".3 0 .3"/></worldbody>
  <tendon><spatial stiffness="{stiffness}" springlength=".35"><site site="a"/><site site="b"/></spatial></tendon>
</mujoco>"""
CRANK = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <body><joint name="crank" axis="0 1 0"/><inertial pos=".05 0 0" mass=".5" diaginertia="3e-5 4e-4 4e-4"/>
    <body pos=".1 0 0"><joint name="rod" axis="0 1 0"/><inertial pos=".15 0 0" mass=".8" diaginertia="5e-5 6e-3 6e-3"/>
      <site name="e" pos=".3 0 0"/></body></body>
  <body><joint name="s" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia=".001 .001 .001"/>
    <site name="p"/></body></worldbody><equality><connect site1="e" site2="p"/></equality></mujoco>"""
QUARTIC = ([0.1, 0.9, 0.3, -0.2, 0.1], [0.0, -0.8, 0.2, 0.1, -0.05], [-0.1, 1.1, -0.2, 0.05, 0.02])
FORCES = tuple(f"tau_{name}" for name in "applied drive passive coupling limit loop tendon contact".split())
EVERYTHING = (*FORCES, "qpos", "qvel", "qacc", "energy", "momentum", "bias", "mass_matrix")


def ball_chain(limit: float, count: int = 10) -> str:
    """Rods of 0.2 m on balls, level at the start, each within so many degrees of the one before."""
    link = '<geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" contype="0" conaffinity="0"/>'
    joint = f'<joint type="ball" limited="true" range="0 {limit}"/>'
    bodies = "".join(f'<body pos="{0.2 if k else 0} 0 0">{joint}{link}' for k in range(count))
    return f"<mujoco><worldbody>{bodies}{count * '</body>'}</worldbody></mujoco>"


def written(path: Path, text: str, **values: Any) -> Path:
    """The text, filled in, as a file."""
    path.write_text(text.format(**values))
    return path


def unbalanced(run: Run) -> float:
    """Worst |M qacc + bias - Σ tau|, relative to the largest term."""
    forces = [run[name] for name in FORCES if name in run.rows]
    tau = sum(forces)
    inertial = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"])
    scale = max(float(np.abs(x).max()) for x in (inertial, run["bias"], *forces))
    return float(np.abs(inertial + run["bias"] - tau).max() / max(scale, 1e-30))


def energies(run: Run) -> Array:
    """Kinetic plus potential energy at every row, with that of springs."""
    return np.asarray(run["energy"].sum(axis=1))


# ------------------------------------------------------------------ springs


@pytest.mark.parametrize("hw", [0.002, 0.02, 0.2, 0.9])
def test_a_spring_keeps_its_energy_for_100_periods(tmp_path: Path, hw: float) -> None:
    """What is conserved exactly is ½ m v² + ½ K q² ∓ ½ h K q v (Newmark in its two-step form): to hω / 2 the energy."""
    dt, stiffness = 0.002, (hw / 0.002) ** 2
    model = written(tmp_path / "m.xml", SPRING, kind="slide", stiffness=stiffness, damping=0)
    steps = round(100 * 2 * np.pi / hw)
    run = simulate(model, steps=steps, dt=dt, q0={"j": 0.1}, record=EVERYTHING, every=1)
    energy = 0.5 * run["qvel"][:, 0] ** 2 + 0.5 * stiffness * run["qpos"][:, 0] ** 2
    amplitude = energy[-round(2 * np.pi / hw) :]
    assert amplitude.mean() == pytest.approx(energy[: round(2 * np.pi / hw)].mean(), rel=0.02 * hw + 1e-6)
    assert np.abs(energy / energy[0] - 1.0).max() < 0.6 * hw + 0.3 * hw * hw
    assert unbalanced(run) < 1e-9


def test_a_spring_too_fast_for_the_step_comes_to_rest(tmp_path: Path) -> None:
    for hw in (2.0, 20.0, 2e4):
        model = written(tmp_path / "m.xml", SPRING, kind="hinge", stiffness=(hw / 0.002) ** 2, damping=0)
        run = simulate(model, steps=200, dt=0.002, q0={"j": 0.1}, record=("qpos",))
        assert abs(run.simulation.qpos[0]) < 1e-12
        assert np.abs(run["qpos"]).max() < 0.1 * 1.01


def test_a_spring_differs_from_mujocos_euler_by_the_square_of_the_step(tmp_path: Path) -> None:
    errors = []
    for dt in (0.004, 0.002, 0.001):
        model = written(tmp_path / "m.xml", SPRING, kind="hinge", stiffness=100, damping=0.7)
        run = simulate(model, steps=round(1 / dt), dt=dt, q0={"j": 0.1}, record=("qpos",))
        peer = mujoco.MjModel.from_xml_path(str(model))
        peer.opt.timestep, data = dt, mujoco.MjData(peer)
        data.qpos[0] = 0.1
        for _ in range(round(1 / dt)):
            mujoco.mj_step(peer, data)
        errors.append(abs(run.simulation.qpos[0] - data.qpos[0]))
    assert np.all(np.diff(np.log2(errors)) < -1.9)


@pytest.mark.parametrize("stiffness", [100.0, 1e4, 1e6, 1e9])
def test_springs_of_tendons_are_stable(tmp_path: Path, stiffness: float) -> None:
    """From 0.05 rad beside where the tendon is slack; hω of 0.02 to 70 there."""
    model = written(tmp_path / "m.xml", TENDON, stiffness=stiffness)
    slack = brentq(lambda q: _tendon_length(q) - 0.35, -0.785, 0.0)
    run = simulate(model, steps=2000, dt=0.002, q0={"j": slack + 0.05}, record=EVERYTHING)
    assert run.simulation.stop_reason == 0
    length = np.array([_tendon_length(q) for q in run["qpos"][:, 0]])
    total = energies(run)
    assert run["energy"][:, 1] == pytest.approx(0.5 * stiffness * (length - 0.35) ** 2, rel=1e-9, abs=1e-12)
    assert total.max() < 1.2 * total[0]
    if stiffness <= 1e4:
        assert total[-200:].mean() > 0.9 * total[0]
    assert unbalanced(run) < 1e-9


def _tendon_length(q: float) -> float:
    return float(np.hypot(0.3 - 0.1 * np.cos(q), 0.3 + 0.1 * np.sin(q)))


# ------------------------------------------------------------------ spin and taut bodies


@pytest.mark.parametrize(("speed", "inertia"), [(40, ".001 .003 .0036"), (8, ".001 .003 .0036"), (60, ".02 .025 .04")])
def test_a_tumbling_body_keeps_energy_and_momentum(tmp_path: Path, speed: float, inertia: str) -> None:
    model = written(tmp_path / "m.xml", BODY, joint='freejoint name="root"', centre="0 0 0", mass=1, inertia=inertia)
    v0 = {"root.wx": 0.1, "root.wy": float(speed), "root.wz": 0.1}
    run = simulate(model, steps=2500, dt=0.004, v0=v0, record=EVERYTHING)
    total, momentum = energies(run), np.linalg.norm(run["momentum"][:, 3:], axis=1)
    assert total == pytest.approx(np.full_like(total, total[0]), rel=1e-5)
    assert momentum == pytest.approx(np.full_like(momentum, momentum[0]), rel=1e-5)
    assert unbalanced(run) < 1e-9


def test_a_wheel_at_10000_rpm_precesses(tmp_path: Path) -> None:
    model = written(
        tmp_path / "m.xml", BODY, joint='joint name="b" type="ball"', centre=".15 0 0", mass=2, inertia=".02 .01 .01"
    )
    errors = []
    for dt in (0.0005, 0.00025):
        v0 = {"b.wx": 1047.19755, "b.wz": 0.140518}
        run = simulate(model, steps=round(2 / dt), dt=dt, v0=v0, gravity=(0, 0, -9.81), record=EVERYTHING)
        axis = Rotation.from_quat(run["qpos"], scalar_first=True).apply([1, 0, 0])
        angle = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
        errors.append(abs(angle[-1] / (len(angle) - 1) / dt / 0.140518 - 1.0))
        assert unbalanced(run) < 1e-9
    assert errors[1] < 0.02
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize(("q0", "dt"), [({"joint_1": 1.5}, 0.002), ({"joint_1": 0.785, "joint_11": 0.05}, 0.004)])
def test_a_light_chain_with_a_heavy_end_swings(q0: dict[str, float], dt: float) -> None:
    """Without what makes taut bodies stiff it gains 2e14 J and more; the fall from joint_1 = 1.5 sets 1.9 kJ free."""
    run = simulate(robot_file("chain20"), steps=round(3 / dt), dt=dt, q0=q0, record=EVERYTHING)
    assert np.abs(energies(run) - energies(run)[0]).max() < 20.0
    assert unbalanced(run) < 1e-9


def test_solvers_agree_on_a_taut_chain() -> None:
    config = {"steps": 100, "dt": 0.002, "q0": {"joint_1": 1.5}, "record": ("qpos",), "friction_coefficient": {}}
    runs = [simulate(robot_file("chain20"), solver=solver, **config) for solver in ("newton", "propagation", "direct")]
    for other in runs[1:]:
        assert other["qpos"] == pytest.approx(runs[0]["qpos"], abs=1e-9)


# ------------------------------------------------------------------ couplings and loops


def quartic_chain() -> str:
    """Four rods, each but the first coupled to the one before by a polynomial of degree four."""
    rods = ((0.8, 0.00419), (0.6, 0.00315), (0.5, 0.00262), (0.4, 0.0021))
    bodies = ""
    for k, (mass, inertia) in enumerate(rods):
        place = "0 0 0" if k == 0 else "0 0 -.25"
        bodies += f'<body pos="{place}"><joint name="j{k}" axis="0 1 0"/>'
        bodies += f'<inertial pos="0 0 -.125" mass="{mass}" diaginertia="{inertia} {inertia} 5e-5"/>'
    couplings = "".join(
        f'<joint joint1="j{k + 1}" joint2="j{k}" polycoef="{" ".join(map(str, p))}"/>' for k, p in enumerate(QUARTIC)
    )
    return (
        f"<mujoco><compiler angle='radian'/><worldbody>{bodies}{'</body>' * 4}</worldbody>"
        f"<equality>{couplings}</equality></mujoco>"
    )


def _reduced_rate(truth: mujoco.MjModel, data: mujoco.MjData, y: float, u: float) -> float:
    """ü of the chain's one freedom."""
    q, gain, drift = [y], [1.0], [0.0]
    for p in QUARTIC:
        curve = np.polynomial.Polynomial(p)
        value, slope, bend = (float(c(q[-1])) for c in (curve, curve.deriv(), curve.deriv(2)))
        drift.append(bend * gain[-1] ** 2 + slope * drift[-1])
        gain.append(slope * gain[-1])
        q.append(value)
    G, M = np.array(gain), np.zeros((4, 4))
    data.qpos[:], data.qvel[:] = q, G * u
    mujoco.mj_forward(truth, data)
    mujoco.mj_fullM(truth, data, M)
    return float(-(G @ (data.qfrc_bias + M @ np.array(drift) * u * u)) / (G @ M @ G))


def test_bent_couplings_keep_energy(tmp_path: Path) -> None:
    model = tmp_path / "m.xml"
    model.write_text(quartic_chain())
    truth = mujoco.MjModel.from_xml_path(str(model))
    data = mujoco.MjData(truth)
    start = np.array([1.1, 0.0])
    exact = solve_ivp(
        lambda _, z: [z[1], _reduced_rate(truth, data, *z)], (0, 2), start, rtol=1e-9, atol=1e-9, method="DOP853"
    ).y[0, -1]
    run = simulate(model, steps=2000, dt=0.001, q0={"j0": 1.1}, record=EVERYTHING)
    assert abs(run.simulation.qpos[0] - exact) < 1e-2
    assert abs(np.subtract(*run.simulation.energy)) < 0.03
    assert unbalanced(run) < 1e-9


@pytest.mark.parametrize(("stiffness", "dt"), [(1e5, 1 / 240), (1e7, 0.001), (1e6, 0.002)])
def test_a_crank_at_its_dead_centre_stays_together(tmp_path: Path, stiffness: float, dt: float) -> None:
    model = written(tmp_path / "m.xml", CRANK)
    q0 = {"crank": 0.001, "rod": -0.0013333331481480942, "s": 0.3999999333333364}
    drive: dict[str, Any] = {"stiffness": {"s": stiffness}, "damping": {"s": 2e3}, "target": {"s": 0.5}}
    run = simulate(model, steps=round(1 / dt), dt=dt, q0=q0, record=EVERYTHING, **drive)
    gap = run.simulation.loop_gap
    assert gap is not None
    assert gap[0] < 1e-6
    crank, rod, slide = run["qpos"].T
    end = np.array([0.1 * np.cos(crank) + 0.3 * np.cos(crank + rod), 0.1 * np.sin(crank) + 0.3 * np.sin(crank + rod)])
    assert np.hypot(end[0] - slide, end[1]).max() < 1e-6
    assert unbalanced(run) < 1e-9


@pytest.mark.parametrize("limit", [10, 30])
def test_balls_that_fall_onto_their_limits_gain_nothing(limit: int) -> None:
    """Ten rods from level: each blow takes energy, and angles stay within their limits but for the blows' own step."""
    run = simulate(load_text(ball_chain(limit), name="balls.xml"), steps=1500, dt=0.002, record=EVERYTHING)
    energy = run["energy"].sum(axis=1)
    assert energy.max() <= energy[0] + 1e-9
    assert unbalanced(run) < 1e-9


def test_spun_balls_are_held_by_their_limits() -> None:
    """At such speeds the blows turn swing into twist of thin rods. What makes room for that must not pump it up: of
    twenty starts all but five keep their energy.
    """
    text = ball_chain(30, 3).replace("<joint type", '<joint name="first" type', 1)
    model, kept = load_text(text, name="balls.xml"), 0
    for speed in np.linspace(15.0, 25.0, 20):
        try:
            run = simulate(model, steps=1500, dt=0.002, v0={"first.wz": float(speed)}, record=EVERYTHING)
        except ArtsimError as stopped:
            assert "not finite" in str(stopped)
            continue
        assert unbalanced(run) < 1e-9
        energy = run["energy"].sum(axis=1)
        kept += bool(energy.max() <= 1.05 * energy[0])
    assert kept >= 15


# ------------------------------------------------------------------ drives that turn


def turned(*axes: str, value: float) -> dict[str, float]:
    return dict.fromkeys(axes, value)


@pytest.mark.parametrize("mode", ["force", "acceleration"])
@pytest.mark.parametrize("joint", ['joint name="s" type="ball"', 'freejoint name="s"'])
def test_a_drive_turns_a_ball_to_its_target(tmp_path: Path, joint: str, mode: str) -> None:
    """Along a fixed axis from rest: q̈ = K (target - q) - D v, in closed form to the first order of the step."""
    model = written(tmp_path / "m.xml", BODY, joint=joint, centre="0 0 0", mass=1, inertia="1 1 1")
    axes, target = ("s.wx", "s.wy", "s.wz"), np.array([0.5, -0.7, 1.1])
    config = {"stiffness": turned(*axes, value=9.0), "damping": turned(*axes, value=6.0)}
    wanted = dict(zip(axes, target, strict=True))
    run = simulate(model, steps=1000, dt=0.001, drive_mode=mode, target=wanted, record=EVERYTHING, **config)
    time = 0.001 * np.arange(1000)
    share = 1.0 - (1.0 + 3.0 * time) * np.exp(-3.0 * time)
    vector = Rotation.from_quat(run["qpos"][:, -4:], scalar_first=True).as_rotvec()
    assert np.abs(vector - share[:, None] * target).max() < 3e-3
    assert unbalanced(run) < 1e-9


def test_a_limited_drive_turns_a_ball_at_its_limit(tmp_path: Path) -> None:
    model = written(
        tmp_path / "m.xml", BODY, joint='joint name="s" type="ball"', centre="0 0 0", mass=1, inertia="1 1 1"
    )
    config: dict[str, Any] = {"stiffness": {"s.wx": 1e4}, "damping": {"s.wx": 1.0}, "drive_limit": {"s.wx": 0.5}}
    run = simulate(model, steps=100, dt=0.001, target={"s.wx": 1.0}, record=EVERYTHING, **config)
    assert run["tau_drive"][:, 0] == pytest.approx(np.full(100, 0.5), rel=1e-9)
    assert run.simulation.qvel[0] == pytest.approx(0.05, rel=1e-9)


def test_maximal_coordinates_refuse_it(tmp_path: Path) -> None:
    model = written(
        tmp_path / "m.xml", BODY, joint='joint name="s" type="ball"', centre="0 0 0", mass=1, inertia="1 1 1"
    )
    with pytest.raises(UsageError, match=r"drive of 's\.wx'"):
        simulate(model, steps=1, dt=0.001, stiffness={"s.wx": 1.0}, coordinates="maximal")
