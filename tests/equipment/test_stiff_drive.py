"""A very stiff drive against a mimic joint, after the PhysX guide, at 240 Hz; and compliant couplings.

Two rods hang from a fixed base, joint_2 mimics joint_1, a drive pulls joint_1 to 0.5 rad. The plain Gauss-Seidel of
the mimic joint maths (seeds) is written out below as the twin of solvers "pgs" and "tgs", and solved exactly joint by
joint as that of "block-gs".
`python -m pytest tests/equipment/test_stiff_drive.py -s` prints the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from artsim.sim.quantities.robot import Robot
from tests.simulation import Array, Run, Truth, box_link, joint, load, robot_file, simulate, urdf

CHAIN = robot_file("stiff_drive_chain")
DT = 1 / 240
STEPS = 480
TARGET = 0.5
STIFFNESS = (1e3, 1e5, 1e7)
REST = {1e3: 6.07e-3, 1e5: 6.1e-5, 1e7: 6.1e-7}  # |q1 - target|, what other engines converge to
# worst |q2 - q1| of the plain Gauss-Seidel recipe, as measured on the peers: by sweeps, then by stiffness
PLAIN = {
    1: (0.229, 0.711, 0.727),
    4: (0.00766, 0.323, 0.344),
    16: (1.69e-8, 0.0535, 0.0686),
    64: (1e-15, 4.03e-5, 1.09e-4),
}


def drive(stiffness: float, **config: Any) -> Run:
    gains: dict[str, Any] = {"stiffness": {"joint_1": stiffness}, "damping": {"joint_1": stiffness / 100}}
    plan: dict[str, Any] = {"steps": STEPS, "dt": DT, "target": {"joint_1": TARGET}}
    return simulate(CHAIN, **(plan | gains | config))


def coordinates(run: Run) -> Array:
    """q after every step (steps, 2)."""
    return np.vstack([run["qpos"][1:], run.simulation.qpos])


def twin(stiffness: float, sweeps: int, steps: int = STEPS) -> Array:
    """Two rows, mimic joint then drive, plain Gauss-Seidel on Pinocchio's M and bias: q after every step (steps, 2)."""
    truth = Truth(CHAIN, Robot.of(load(CHAIN)))
    damping = stiffness / 100
    q, v = np.zeros(2), np.zeros(2)
    J = np.array([[-1.0, 1.0], [1.0, 0.0]])
    total = DT * stiffness + damping
    cfm = np.array([0.0, 1 / (DT * total)])
    path = []
    for _ in range(steps):
        W = np.linalg.inv(truth.mass_matrix(q))
        v = v - DT * W @ truth.bias(q, v)
        bias = np.array([(q[1] - q[0]) / DT, stiffness * (q[0] - TARGET) / total])
        impulse = np.zeros(2)
        for _ in range(sweeps):
            for row in range(2):
                effective = J[row] @ W @ J[row] + cfm[row]
                change = -(bias[row] + J[row] @ v + cfm[row] * impulse[row]) / effective
                impulse[row] += change
                v = v + W @ J[row] * change
        q = q + DT * v
        path.append(q.copy())
    return np.array(path)


def temporal_twin(stiffness: float, sweeps: int, steps: int = STEPS) -> Array:
    """The same with the positions moving on after every sweep (notes on mimic joints, eq. 5, 16 and 21): q (steps, 2).

    C / Δt is the mimic joint's bias; the drive is a spring integrated over the sub-step.
    """
    truth = Truth(CHAIN, Robot.of(load(CHAIN)))
    damping, h = stiffness / 100, DT / sweeps
    q, v = np.zeros(2), np.zeros(2)
    mimic, driven = np.array([-1.0, 1.0]), np.array([1.0, 0.0])
    path = []
    for _ in range(steps):
        W = np.linalg.inv(truth.mass_matrix(q))
        v = v - DT * W @ truth.bias(q, v)
        for _ in range(sweeps):
            v = v - W @ mimic * ((q[1] - q[0]) / DT + mimic @ v) / (mimic @ W @ mimic)
            pull = h * (stiffness * (q[0] - TARGET) + v[0] * (h * stiffness + damping))
            v = v - W @ driven * pull / (1 + W[0, 0] * h * (h * stiffness + damping))
            q = q + h * v
        path.append(q.copy())
    return np.array(path)


def folded_gravity(q: float) -> float:
    """Weight of both rods on joint_1 with q2 = q1, N m: Gᵀ g."""
    robot = Robot.of(load(CHAIN))
    return float(np.sum(Truth(CHAIN, robot).bias(np.array([q, q]), np.zeros(2))))


@pytest.mark.parametrize("stiffness", STIFFNESS)
@pytest.mark.parametrize(
    ("solver", "coupling", "bound"),
    [
        *((solver, "exact", 0.0) for solver in ("newton", "propagation", "direct")),
        *((solver, "rows", 1e-12) for solver in ("newton", "propagation", "direct")),
        ("pgs", "exact", 0.0),
        ("block-gs", "exact", 0.0),
        ("block-gs", "rows", 1e-12),
    ],
)
def test_exact_and_direct(stiffness: float, solver: str, coupling: str, bound: float) -> None:
    q = coordinates(drive(stiffness, solver=solver, coupling=coupling))
    error = np.abs(q[:, 1] - q[:, 0]).max()
    rest = abs(q[-1, 0] - TARGET)
    print(f"\nK {stiffness:.0e} {coupling:5} {solver:6} worst |q2 - q1| {error:.1e}  |q1 - 0.5| {rest:.3e}", end="")
    assert error <= bound
    assert rest == pytest.approx(abs(folded_gravity(q[-1, 0])) / stiffness, rel=1e-3)
    assert rest == pytest.approx(REST[stiffness], rel=0.01)


@pytest.mark.parametrize("sweeps", PLAIN)
@pytest.mark.parametrize("stiffness", STIFFNESS)
def test_gauss_seidel_is_the_recipe_s(stiffness: float, sweeps: int) -> None:
    q = coordinates(drive(stiffness, solver="pgs", coupling="rows", iterations=sweeps))
    error = np.abs(q[:, 1] - q[:, 0]).max()
    want = twin(stiffness, sweeps)
    apart = np.abs(q - want).max()
    print(f"\nK {stiffness:.0e} pgs, {sweeps:2} sweeps: worst |q2 - q1| {error:.2e}, {apart:.0e} from the twin", end="")
    assert apart <= 1e-9
    assert error == pytest.approx(PLAIN[sweeps][STIFFNESS.index(stiffness)], rel=0.01, abs=1e-14)
    assert abs(q[-1, 0] - TARGET) == pytest.approx(REST[stiffness], rel=0.01)


@pytest.mark.parametrize("sweeps", PLAIN)
@pytest.mark.parametrize("stiffness", STIFFNESS)
def test_temporal_gauss_seidel_is_the_recipe_s(stiffness: float, sweeps: int) -> None:
    q = coordinates(drive(stiffness, solver="tgs", coupling="rows", iterations=sweeps))
    error = np.abs(q[:, 1] - q[:, 0]).max()
    apart = np.abs(q - temporal_twin(stiffness, sweeps)).max()
    rest = abs(q[-1, 0] - TARGET)
    print(
        f"\nK {stiffness:.0e} tgs, {sweeps:2} sweeps: worst |q2 - q1| {error:.2e}, {apart:.0e} from the twin, "
        f"|q1 - 0.5| {rest:.2e}",
        end="",
    )
    assert apart <= 1e-9


@pytest.mark.small
@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize(("solver", "recipe"), [("pgs", twin), ("tgs", temporal_twin)])
def test_first_steps_of_gauss_seidel(solver: str, recipe: Callable[..., Array], sweeps: int) -> None:
    q = coordinates(drive(1e5, solver=solver, coupling="rows", iterations=sweeps, steps=6))
    assert np.abs(q - recipe(1e5, sweeps, 6)).max() <= 1e-12
    assert np.abs(q[:, 1] - q[:, 0]).max() > 1e-3


@pytest.mark.small
@pytest.mark.parametrize("coupling", ["exact", "rows"])
def test_first_steps_of_the_rest(coupling: str) -> None:
    q = coordinates(drive(1e7, coupling=coupling, steps=10))
    assert np.abs(q[:, 1] - q[:, 0]).max() <= 1e-12


@pytest.mark.small
def test_drive_on_the_follower_s_side() -> None:
    """The leader is the second joint, the drive on the first: the coupling's row still comes before the drive's."""
    text = CHAIN.read_text()
    mimic = '<mimic joint="joint_1" multiplier="1" offset="0"/>'
    assert mimic in text
    text = text.replace(mimic, "").replace(
        '<joint name="joint_1" type="revolute">',
        '<joint name="joint_1" type="revolute"><mimic joint="joint_2" multiplier="1" offset="0"/>',
    )
    config: dict[str, Any] = {"stiffness": {"joint_1": 1e5}, "damping": {"joint_1": 1e3}, "target": {"joint_1": TARGET}}
    run = simulate(text, steps=6, dt=DT, solver="pgs", coupling="rows", iterations=4, **config)
    assert np.abs(coordinates(run) - twin(1e5, 4, 6)).max() <= 1e-12


# ------------------------------------------------------------------ compliant couplings

MASSES = (0.7, 2.5)


def carts(multiplier: float = 1.0, offset: float = 0.0) -> str:
    """Two masses on one rail, the second follows the first."""
    first, second = MASSES
    return urdf(
        box_link("cart_1", first),
        box_link("cart_2", second),
        joint("x1", "prismatic", "base", "cart_1", axis=(1, 0, 0)),
        joint("x2", "prismatic", "base", "cart_2", axis=(1, 0, 0), mimic=("x1", multiplier, offset)),
    )


def violation(run: Run, multiplier: float, offset: float) -> Array:
    q = coordinates(run)
    return q[:, 1] - multiplier * q[:, 0] - offset


OSCILLATIONS = [(1.0, 0.0, 3.0, 0.1), (-0.6, 0.2, 8.0, 0.0), (2.0, -0.1, 1.5, 1.0), (0.5, 0.0, 40.0, 2.0)]


@pytest.mark.small
@pytest.mark.parametrize(("multiplier", "offset", "frequency", "ratio"), OSCILLATIONS)
@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_compliance_is_implicit_euler_of_the_oscillator(
    multiplier: float, offset: float, frequency: float, ratio: float, solver: str
) -> None:
    """C = q2 - a q1 - b obeys C̈ + 2 ζ μ Ċ + μ² C = 0, μ = 2π f whatever the masses (notes on mimic joints, eq. 20 to
    29), at the step's end where α is 1."""
    config: dict[str, Any] = {"coupling": "compliant", "coupling_frequency": frequency, "coupling_damping": ratio}
    config["scheme_alpha"] = 1.0
    start = {"x1": 0.1, "x2": multiplier * 0.1 + offset + 0.05}
    run = simulate(carts(multiplier, offset), steps=40, dt=0.002, q0=start, solver=solver, **config)
    mu, C, rate = 2 * np.pi * frequency, 0.05, 0.0
    for got in violation(run, multiplier, offset):
        rate = (rate - 0.002 * mu**2 * C) / (1 + 2 * ratio * mu * 0.002 + (0.002 * mu) ** 2)
        C += 0.002 * rate
        assert got == pytest.approx(C, rel=1e-9, abs=1e-14)
    forces = run["tau_coupling"]
    assert forces[:, 0] == pytest.approx(-multiplier * forces[:, 1], rel=1e-12)


@pytest.mark.parametrize(("frequency", "ratio"), [(3.0, 0.1), (5.0, 0.02)])
def test_frequency_and_damping_ratio(frequency: float, ratio: float) -> None:
    """Measured on the motion with a small step: zero crossings for the frequency, decrement for the damping ratio."""
    dt = 1e-5
    config: dict[str, Any] = {"coupling": "compliant", "coupling_frequency": frequency, "coupling_damping": ratio}
    steps = round(2.2 / frequency / dt)
    C = violation(simulate(carts(), steps=steps, dt=dt, q0={"x2": 0.05}, record=("qpos",), **config), 1.0, 0.0)
    down = np.flatnonzero((C[:-1] > 0) & (C[1:] <= 0))
    crossing = down + C[down] / (C[down] - C[down + 1])
    period = (crossing[1] - crossing[0]) * dt
    low = [C[down[n] : down[n] + round(period / dt)].min() for n in (0, 1)]
    decrement = np.log(low[0] / low[1])
    measured = decrement / np.hypot(2 * np.pi, decrement)
    natural = 1 / period / np.sqrt(1 - measured**2)
    print(f"\nasked {frequency} Hz, ζ {ratio}: measured {natural:.5f} Hz, ζ {measured:.5f}", end="")
    assert natural == pytest.approx(frequency, rel=1e-3)
    assert measured == pytest.approx(ratio, abs=2e-4)
