"""Free motion: errors, energy and momentum drift at the order of the integrator, against DOP853 on Pinocchio's ABA.

The figures that the other engines show on the same scenes are reproduced.
`python -m pytest tests/articulation/test_integrators.py -s` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import artsim
from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation, Inertial, Joint, Link, Pose
from artsim.sim.quantities.robot import Robot
from tests.simulation import Array, Run, Truth, load, robot_file, simulate, urdf

MIDPOINT, EULER, RK4 = "midpoint", "semi-implicit-euler", "rk4"
ORDER = {MIDPOINT: 1, EULER: 1, RK4: 4}
PENDULUM, CHAIN, BOX, QUADRUPED, PLANAR = (
    robot_file(name) for name in ("double_pendulum", "chain20", "floating_box", "quadruped", "planar_base")
)
each_integrator = pytest.mark.parametrize("integrator", ORDER)


def slopes(steps: Sequence[float], errors: Sequence[float]) -> Array:
    """Orders of convergence between neighbours."""
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


def show(what: str, steps: Sequence[float], errors: Sequence[float]) -> None:
    table = "  ".join(f"{1e3 * dt:g} ms {error:.2e}" for dt, error in zip(steps, errors, strict=True))
    print(f"\n{what:48} {table}   order {np.round(slopes(steps, errors), 2).tolist()}", end="")


def solution(model: Path, q0: dict[str, float], seconds: float, tolerance: float = 1e-13) -> Array:
    """Coordinates at the end of a free swing from rest: DOP853 on Pinocchio's ABA."""
    robot = Robot.of(load(model))
    truth = Truth(model, robot)
    n = robot.nv
    start = np.array([q0.get(name, 0.0) for name in robot.coords] + [0.0] * n)
    still = np.zeros(n)

    def rate(_: float, y: Array) -> Array:
        return np.concatenate([y[n:], truth.acceleration(y[:n], y[n:], still)])

    return np.asarray(solve_ivp(rate, (0, seconds), start, method="DOP853", rtol=tolerance, atol=tolerance).y[:n, -1])


def swing(model: Path, seconds: float, dt: float, **config: Any) -> Run:
    return simulate(model, steps=round(seconds / dt), dt=dt, record=("energy",), **config)


def energy_error(run: Run, every: int = 1) -> float:
    """Worst error of kinetic plus potential energy [J], after the first step and every so many from there."""
    total = run["energy"].sum(axis=1)
    first, last = run.simulation.energy
    assert first == pytest.approx(total[0], rel=1e-14)
    return float(np.abs(np.append(total, last)[1::every] - first).max())


# ------------------------------------------------------------------ pendulum and chain

START = {"joint_1": 2.0, "joint_2": 0.5}
# error at 1 s [rad] and energy error over 5 s, relative to the scale of energy, of every other engine of that order
PEERS: dict[str, dict[float, tuple[float, float]]] = {
    EULER: {0.01: (5.93e-1, 6.14e-1), 0.002: (9.09e-2, 3.46e-2), 0.0005: (2.19e-2, 6.42e-3)},
    RK4: {0.01: (2.98e-4, 1.02e-3), 0.002: (4.83e-8, 2.42e-7), 0.0005: (3.26e-10, 9.11e-10)},
}


@each_integrator
def test_double_pendulum_has_the_peers_figures(integrator: str) -> None:
    want = solution(PENDULUM, START, 1.0)
    robot = Robot.of(load(PENDULUM))
    truth, still = Truth(PENDULUM, robot), np.zeros(2)
    scale = abs(truth.energy(np.array([2.0, 0.5]), still) - truth.energy(still, still)) + 9.81
    for dt, (error, drift) in PEERS.get(integrator, PEERS[EULER]).items():
        run = swing(PENDULUM, 1.0, dt, q0=START, integrator=integrator)
        got = float(np.abs(run.simulation.qpos - want).max())
        energy = energy_error(swing(PENDULUM, 5.0, dt, q0=START, integrator=integrator), round(0.01 / dt)) / scale
        print(f"\ndouble pendulum {integrator:19} {1e3 * dt:4g} ms: error {got:.2e} rad, energy {energy:.2e}", end="")
        if integrator == MIDPOINT:
            assert got < error and energy < drift
        else:
            assert got == pytest.approx(error, rel=0.01, abs=2e-11)
            assert energy == pytest.approx(drift, rel=0.01)


@each_integrator
def test_double_pendulum_converges_at_its_order(integrator: str) -> None:
    start = {"joint_1": 1.0, "joint_2": 0.3}
    want = solution(PENDULUM, start, 1.0)
    steps = (0.01, 0.005, 0.0025) if integrator == RK4 else (0.001, 0.0005, 0.00025)
    runs = [swing(PENDULUM, 1.0, dt, q0=start, integrator=integrator) for dt in steps]
    errors = [float(np.abs(run.simulation.qpos - want).max()) for run in runs]
    drifts = [energy_error(run) for run in runs]
    show(f"double pendulum {integrator} [rad]", steps, errors)
    show(f"double pendulum {integrator} [J]", steps, drifts)
    assert slopes(steps, errors) == pytest.approx(ORDER[integrator], abs=0.2)
    assert np.all(slopes(steps, drifts) > ORDER[integrator] - 0.2)


@pytest.mark.small
@each_integrator
def test_first_steps_against_dop853(integrator: str) -> None:
    want = solution(PENDULUM, START, 0.04)
    steps = (0.004, 0.002)
    errors = [
        float(np.abs(swing(PENDULUM, 0.04, dt, q0=START, integrator=integrator).simulation.qpos - want).max())
        for dt in steps
    ]
    assert slopes(steps, errors) == pytest.approx(ORDER[integrator], abs=0.25)


@each_integrator
def test_chain_of_mass_ratio_1000(integrator: str) -> None:
    """20 rods and a weight of 1000 times their mass: 1 ms as the peers measured it, then the order.

    The midpoint step stiffens the taut rods (sim/stepping/midpoint.py) and is nearer than the peers' by that.
    """
    start = {"joint_1": np.pi / 4, "joint_11": 0.05}
    want = solution(CHAIN, start, 0.3, 1e-11)
    peers = (4.85e-3, 4.91e-6) if integrator == RK4 else (1.29e-2, 1.00e-3)
    run = swing(CHAIN, 0.3, 0.001, q0=start, integrator=integrator)
    error = float(np.abs(run.simulation.qpos - want).max())
    drift = energy_error(swing(CHAIN, 2.0, 0.001, q0=start, integrator=integrator)) / (100 * 9.81 * 2)
    print(f"\nchain20 {integrator} 1 ms: error {error:.2e} rad, energy {drift:.2e} of m g L (peers {peers})", end="")
    soon = solution(CHAIN, start, 0.03, 1e-11)  # before its fast modes, 300 to 600 rad/s, are out of phase
    steps = (2e-4, 1e-4, 5e-5) if integrator == RK4 else (1e-4, 5e-5, 2.5e-5)
    runs = [swing(CHAIN, 0.03, dt, q0=start, integrator=integrator) for dt in steps]
    errors = [float(np.abs(r.simulation.qpos - soon).max()) for r in runs]
    show(f"chain20 {integrator} [rad]", steps, errors)
    if integrator == MIDPOINT:
        assert error < peers[0] and drift < peers[1]
        assert np.all(slopes(steps, errors) > ORDER[integrator] - 0.2)
    else:
        assert error == pytest.approx(peers[0], rel=0.01)
        assert drift == pytest.approx(peers[1], rel=0.01)
        assert slopes(steps, errors) == pytest.approx(ORDER[integrator], abs=0.2)


# ------------------------------------------------------------------ free flight


def free_body(inertia: tuple[float, float, float]) -> str:
    x, y, z = inertia
    return urdf().replace(
        '<link name="base"/>',
        f'<link name="base"><inertial><mass value="1"/><inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>",
    )


NO_GRAVITY: dict[str, Any] = {"gravity": (0.0, 0.0, 0.0)}


def momentum_error(run: Run) -> float:
    """Worst change of linear and angular momentum about the centre of mass, relative to the largest entry."""
    p = run["momentum"]
    return float(np.abs(p - p[0]).max() / np.abs(p[0]).max())


# free body about its middle axis, 10 s: relative errors of energy and angular momentum of the other engines
SPIN = {EULER: {0.01: (7.4e-2, 4.2e-2), 0.001: (7.4e-3, 4.0e-3)}, RK4: {0.01: (4.3e-9, 5.7e-8), 0.001: (0, 0)}}


@each_integrator
def test_spin_about_the_middle_axis_has_the_peers_figures(integrator: str) -> None:
    inertia = np.array([0.1, 0.2, 0.3])
    spin = {"root.wx": 1e-3, "root.wy": 5.0, "root.wz": 1e-3}
    config: dict[str, Any] = {"base": "floating", "v0": spin, "integrator": integrator, **NO_GRAVITY}
    for dt, (energy, angular) in SPIN.get(integrator, SPIN[EULER]).items():
        run = simulate(free_body((0.1, 0.2, 0.3)), steps=round(10 / dt), dt=dt, record=("qpos", "qvel"), **config)
        w = run["qvel"][:, 3:]
        E = 0.5 * w**2 @ inertia
        L = Rotation.from_quat(run["qpos"][:, 3:], scalar_first=True).apply(w * inertia)
        drift = float(np.abs(E / E[0] - 1).max())
        turned = float(np.linalg.norm(L - L[0], axis=1).max() / np.linalg.norm(L[0]))
        print(f"\nfree body {integrator:19} {1e3 * dt:3g} ms: energy {drift:.1e}, momentum {turned:.1e}", end="")
        assert np.any(w[:, 1] < 0)  # it flips
        if integrator == MIDPOINT:  # midway: the energy is kept, and the momentum turns by half a step of the pose
            assert drift < 1e-8 and turned < angular
        elif energy:
            assert (drift, turned) == (pytest.approx(energy, rel=0.05), pytest.approx(angular, rel=0.25))
        else:
            assert max(drift, turned) < 1e-10


@each_integrator
def test_free_box_drifts_at_its_order(integrator: str) -> None:
    spin = {"floating_joint.wx": 2.0, "floating_joint.wy": 5.0, "floating_joint.wz": -1.0, "floating_joint.vx": 1.0}
    steps = (0.02, 0.01, 0.005) if integrator == RK4 else (0.002, 0.001, 0.0005)
    record = ("energy", "momentum")
    runs = [
        simulate(BOX, steps=round(2 / dt), dt=dt, v0=spin, integrator=integrator, record=record, **NO_GRAVITY)
        for dt in steps
    ]
    for what, errors in (
        ("energy", [energy_error(run) for run in runs]),
        ("momentum", [momentum_error(run) for run in runs]),
    ):
        show(f"floating_box {integrator} {what}", steps, errors)
        if integrator == MIDPOINT and what == "energy":  # of the implicit midpoint rule
            assert max(errors) < 1e-8
        else:
            assert np.all(slopes(steps, errors) > ORDER[integrator] - 0.2)
    assert np.abs(runs[0]["momentum"][:, :3] - runs[0]["momentum"][0, :3]).max() <= 1e-12


@pytest.mark.small
@each_integrator
def test_free_fall_is_that_of_a_point(integrator: str) -> None:
    """Tumbling does not bend the path: x, y uniform, z as the integrator falls."""
    v0 = {"floating_joint.vx": 2.0, "floating_joint.vz": 3.0, "floating_joint.wy": 5.0, "floating_joint.wx": 1.0}
    n, h = 30, 0.01
    run = simulate(BOX, steps=n, dt=h, v0=v0, integrator=integrator)
    t = h * np.arange(n)
    lag = 0 * t if integrator == RK4 else 0.5 * h * t  # Σ h v⁺ falls half a step's speed further
    assert run["qpos"][:, 0] == pytest.approx(2.0 * t, rel=1e-12, abs=1e-14)
    assert run["qpos"][:, 1] == pytest.approx(0 * t, abs=1e-14)
    assert run["qpos"][:, 2] == pytest.approx(1 + 3.0 * t - 0.5 * 9.81 * t**2 - 9.81 * lag, rel=1e-12)


LEGS = {
    f"{end}_{side}_{joint}": angle
    for end in ("front", "rear")
    for side in ("left", "right")
    for joint, angle in (("hip", 0.6), ("knee", -1.2))
}
TUMBLE = {"root.vx": 0.5, "root.wx": 2.0, "root.wy": -1.0, "front_left_hip": 2.0, "rear_right_knee": -1.5}


@each_integrator
@pytest.mark.parametrize(
    ("seconds", "steps"),
    [
        pytest.param(0.024, {1: (0.002, 0.001), 4: (0.012, 0.006)}, marks=pytest.mark.small),
        (0.24, {1: (0.001, 0.0005, 0.00025), 4: (0.012, 0.006, 0.003)}),
    ],
)
def test_quadruped_in_free_flight_keeps_its_momentum(
    integrator: str, seconds: float, steps: dict[int, tuple[float, ...]]
) -> None:
    robot = Robot.of(load(QUADRUPED, "floating"))
    q0 = {name: angle for name, angle in LEGS.items() if name in robot.coords}
    assert len(q0) == 8
    truth = Truth(QUADRUPED, robot, base="floating", gravity=np.zeros(3))
    errors = []
    for dt in steps[ORDER[integrator]]:
        run = simulate(
            QUADRUPED,
            steps=round(seconds / dt) + 1,
            dt=dt,
            base="floating",
            q0=q0,
            v0=TUMBLE,
            integrator=integrator,
            record=("qpos", "qvel", "momentum", "tau_limit"),
            **NO_GRAVITY,
        )
        assert not np.any(run["tau_limit"])
        errors.append(momentum_error(run))
        for row in (0, -1):
            want = truth.momentum(run["qpos"][row], run["qvel"][row])
            assert np.abs(run["momentum"][row] - want).max() <= 1e-11
    show(f"quadruped {integrator} momentum, {seconds:g} s", steps[ORDER[integrator]], errors)
    assert errors[-1] < (1e-5 if integrator == RK4 else 2e-2)
    assert np.all(slopes(steps[ORDER[integrator]], errors) > ORDER[integrator] - 0.3)


@pytest.mark.parametrize(
    ("integrator", "spin"), [(MIDPOINT, (0.0, 0.0, 90.0)), (MIDPOINT, (1.0, 2.0, -1.0)), (RK4, (30.0, 50.0, -70.0))]
)
def test_quaternions_stay_unit(integrator: str, spin: tuple[float, float, float]) -> None:
    """A million steps of a box that spins or tumbles."""
    v0 = {f"floating_joint.w{axis}": rate for axis, rate in zip("xyz", spin, strict=True)}
    config: dict[str, Any] = {"steps": 1_000_000, "dt": 0.0005, "every": 997, "v0": v0, **NO_GRAVITY}
    run = simulate(BOX, integrator=integrator, record=("qpos",), **config)
    worst = float(np.abs(np.linalg.norm(run["qpos"][:, 3:], axis=1) - 1).max())
    print(f"\n{integrator}, {spin} rad/s: | |quaternion| - 1 | = {worst:.1e} over 1e6 steps", end="")
    assert worst <= 1e-12


# ------------------------------------------------------------------ positions follow velocities


@pytest.mark.small
def test_positions_are_the_velocities_integrated() -> None:
    """Semi-implicit Euler: free joints move by h v in world axes and turn by h ω in the body's; planar ones add."""
    dt = 0.01
    box = simulate(
        BOX, steps=12, dt=dt, v0={"floating_joint.wx": 2.0, "floating_joint.wy": 5.0, "floating_joint.vy": 1.0}
    )
    q, v = box["qpos"], box["qvel"]
    assert np.diff(q[:, :3], axis=0) == pytest.approx(dt * v[1:, :3], abs=1e-14)
    turn = Rotation.from_quat(q[:, 3:], scalar_first=True)
    assert (turn[:-1].inv() * turn[1:]).as_rotvec() == pytest.approx(dt * v[1:, 3:], abs=1e-13)
    assert box["link_position"][:, box.robot.links.index("box")] == pytest.approx(q[:, :3], abs=1e-14)
    planar = simulate(PLANAR, steps=12, dt=dt, v0={"planar_joint.x": 1.0, "planar_joint.angle": 2.0, "arm_joint": 1.0})
    q, v = planar["qpos"], planar["qvel"]
    assert np.diff(q, axis=0) == pytest.approx(dt * v[1:], abs=1e-14)
    base = planar.robot.links.index("base")
    origin = planar["link_position"][0, base] - [*q[0, :2], 0]
    assert planar["link_position"][:, base] - origin == pytest.approx(
        np.column_stack([q[:, :2], 0 * q[:, 0]]), abs=1e-14
    )
    want = Rotation.from_rotvec(np.outer(q[:, 2], [0, 0, 1])).as_matrix()
    got = Rotation.from_quat(planar["link_quaternion"][:, base], scalar_first=True).as_matrix()
    assert got == pytest.approx(want, abs=1e-14)


def ball_pendulum() -> Articulation:
    """A body of unlike moments on a ball joint, its centre off the axes."""
    inertial = Inertial(1.5, Pose((0.1, -0.05, -0.3)), (0.02, 0.001, 0.0, 0.03, 0.002, 0.04))
    hang = Joint("ball", "ball", "base", "body", Pose((0, 0, 1.0)))
    return Articulation("ball", "urdf", (Link("base"), Link("body", inertial)), (hang,))


@each_integrator
@pytest.mark.parametrize(
    ("seconds", "steps"),
    [pytest.param(0.06, (0.004, 0.002), marks=pytest.mark.small), (0.6, (0.004, 0.002, 0.001))],
)
def test_ball_joint_obeys_euler_s_equations(integrator: str, seconds: float, steps: tuple[float, ...]) -> None:
    """I ω̇ + ω × I ω = c × Rᵀ m g about the pivot, q̇ = ½ q (0, ω), in the body's axes: DOP853."""
    c = np.array([0.1, -0.05, -0.3])
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.04]])
    inertia = inertia + 1.5 * (c @ c * np.eye(3) - np.outer(c, c))

    def rate(_: float, y: Array) -> Array:
        w, u, spin = y[0], y[1:4], y[4:]
        weight = Rotation.from_quat(y[:4], scalar_first=True).inv().apply([0, 0, -1.5 * 9.81])
        turning = np.linalg.solve(inertia, np.cross(c, weight) - np.cross(spin, inertia @ spin))
        return np.concatenate([[-0.5 * u @ spin], 0.5 * (w * spin + np.cross(u, spin)), turning])

    spin = np.array([2.0, -1.0, 3.0])
    want = solve_ivp(rate, (0, seconds), [1, 0, 0, 0, *spin], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    v0 = dict(zip(("ball.wx", "ball.wy", "ball.wz"), spin, strict=True))
    errors = []
    for dt in steps:
        run = simulate(ball_pendulum(), steps=round(seconds / dt), dt=dt, v0=v0, integrator=integrator)
        errors.append(float(np.abs(np.append(run.simulation.qpos, run.simulation.qvel) - want).max()))
        q = run["qpos"]
        if integrator != RK4:
            turn = Rotation.from_quat(q, scalar_first=True)
            assert (turn[:-1].inv() * turn[1:]).as_rotvec() == pytest.approx(dt * run["qvel"][1:], abs=1e-12)
    show(f"ball pendulum {integrator}, {seconds:g} s", steps, errors)
    assert slopes(steps, errors) == pytest.approx(ORDER[integrator], abs=0.3)


@pytest.mark.parametrize("spin", [1.0, 100.0, 300.0])
def test_a_large_turn_in_one_step_is_mujoco_s(spin: float) -> None:
    """The rotation vector's rate in closed form: a series of it is off by 4e-6 at 300 rad/s, 0.6 rad a step."""
    body = '<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 2 2.5"/></body>'
    text = f'<mujoco><option integrator="RK4" gravity="0 0 0"/><worldbody>{body}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[3:] = spin * np.array([0.8, 0.3, -0.52])
    v0 = np.array(data.qvel)
    mujoco.mj_step(model, data)
    robot = Robot.of(load_text(text, name="model.xml"))
    run = artsim.simulate(robot, steps=1, v0=v0, integrator=RK4)
    assert run.final["qpos"] == pytest.approx(data.qpos, abs=1e-13)
    assert run.final["qvel"] == pytest.approx(data.qvel, rel=1e-12, abs=1e-12)
