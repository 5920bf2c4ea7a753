"""Sweeps for crowds: a contact's law by itself, what newton solves as well, a crowd, and how large one may be."""

from __future__ import annotations

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import MemoryShortageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.solvers.crowd_law import contact_impulse, principal
from tests.contact.robot_contacts import growth
from tests.contact.test_contact_closed_forms import FLOOR, free, mjcf, play
from tests.solvers.newton_kernels import Case, Real, case, solve
from tests.solvers.sweep_kernels import swept
from tests.solvers.test_newton import point_rows, rolling_spheres


def missed(z: Real, v: Real, mu: float) -> float:
    """How far an impulse z is from its projection on the friction cone after a step along -v, shift included."""
    step = z - np.array([v[0] + mu * np.hypot(v[1], v[2]), v[1], v[2]])
    length = np.hypot(step[1], step[2])
    if length > mu * step[0]:
        if mu * length <= -step[0]:
            return float(np.abs(z).max())
        normal = (step[0] + mu * length) / (1.0 + mu * mu)
        step = np.array([normal, *(mu * normal * step[1:] / length)])
    return float(np.abs(z - step).max())


@pytest.mark.small
@pytest.mark.skipif(not disabled(), reason="compiled helpers have no way in from Python")
@pytest.mark.parametrize("seed", range(4))
def test_a_contact_opens_sticks_or_slides(seed: int) -> None:
    """Any symmetric W, also of spheres (diagonal), any velocity and friction; κ from nothing and from elsewhere."""
    rng = np.random.default_rng(seed)
    kinds = set()
    for n in range(300):
        A = rng.normal(size=(3, 3)) * rng.uniform(0.1, 3.0, size=3)
        W = np.diag([1.0, 3.5, 3.5]) if n % 3 == 0 else A @ A.T + 1e-3 * np.eye(3)
        velocity = rng.normal(size=3) * 10 ** rng.uniform(-3, 1, 3)
        mu = float(10 ** rng.uniform(-2, 0.5))
        block = (W[0, 0], W[0, 1], W[0, 2], W[1, 1], W[1, 2], W[2, 2])
        c, s, big, small = principal(block)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
        axes = (*(turn @ W[0])[1:], 1.0 / W[0, 0], big, small)
        rate = float(rng.choice([0.0, 1.0, 1e3, 1e30]))
        z = turn.T @ contact_impulse(axes, tuple(turn @ velocity), mu, rate)[:3]
        kinds.add("opens" if z[0] == 0 else "sticks" if np.hypot(z[1], z[2]) < mu * z[0] * (1 - 1e-9) else "slides")
        miss = missed(z * np.diag(W).max(), W @ z + velocity, mu)
        assert miss <= 1e-10 * max(1.0, np.abs(velocity).max())
    assert kinds == {"opens", "sticks", "slides"}


def solved_by_both(c: Case, parent: np.ndarray) -> tuple[Real, Real, float]:
    """Velocities by newton and by crowd.py, and the residual of the latter."""
    sweeps = swept("crowd", c, parent, 1)
    sweeps.call()
    return solve(c, parent=parent).velocity, sweeps.problem.next.reshape(-1), float(sweeps.rows.report[1])


@pytest.mark.parametrize("seed", range(20))
def test_what_newton_solves_comes_out_the_same(seed: int) -> None:
    """Spheres that roll into each other, as hard as they are; by so much friction that there is one solution."""
    c, parent = rolling_spheres(np.random.default_rng([7, seed]))
    c = c._replace(slope=0.3 * c.slope)
    by_newton, by_sweeps, left = solved_by_both(c, parent)
    assert left <= 1e-7
    assert by_sweeps == pytest.approx(by_newton, abs=1e-6 * np.abs(by_newton).max())


@pytest.mark.parametrize("friction", [0.0, 0.5, 1.0])
def test_soft_rows_are_part_of_the_law(friction: float) -> None:
    """Contacts with a compliance of their own, which takes one round."""
    c, parent = rolling_spheres(np.random.default_rng(3))
    c = c._replace(cfm=np.full(len(c.jacobian), 0.2), slope=np.full(len(c.jacobian), friction))
    by_newton, by_sweeps, left = solved_by_both(c, parent)
    assert left <= 1e-7
    assert by_sweeps == pytest.approx(by_newton, abs=1e-6 * np.abs(by_newton).max())


@pytest.mark.parametrize("balls", [12, 65])
def test_units_abreast_and_by_themselves(balls: int) -> None:
    """Balls on the ground, visited abreast with lanes left over, under a plate: each of its contacts has a colour of
    its own, and 65 are more than there are. Rows with bounds brake pairs of balls."""
    rng = np.random.default_rng(balls)
    nu = 6 * (balls + 1)
    contacts, brakes = [], []
    for a in range(balls):
        ground, plate, brake = np.zeros((3, nu)), np.zeros((3, nu)), np.zeros((1, nu))
        ground[:, 6 * a : 6 * a + 6] = point_rows(0.0, 0.0, -0.05)
        plate[:, 6 * a : 6 * a + 6] = -point_rows(0.0, 0.0, 0.05)
        plate[:, -6:] = point_rows(*rng.uniform(-1.0, 1.0, 2), -0.01)
        contacts += [ground, plate]
        if a % 2:
            brake[0, 6 * a + 3], brake[0, 6 * a - 3] = 1.0, -1.0
            brakes.append(brake)
    mass = np.tile([0.5, 0.5, 0.5, 0.0005, 0.0005, 0.0005], balls + 1)
    mass[-6:] = [5.0, 5.0, 5.0, 1.0, 1.0, 1.0]
    count, rows = len(contacts), 3 * len(contacts) + len(brakes)
    c = case(
        np.diag(mass),
        np.vstack(contacts + brakes),
        0.1 * rng.normal(size=nu),
        mass * np.tile([0.0, 0.0, -0.02, 0.0, 0.0, 0.0], balls + 1),
        cone=np.array([3, -1, -1] * count + [0] * len(brakes)),
        slope=np.array([0.2, 0.0, 0.0] * count + [0.0] * len(brakes)),
        lower=np.full(rows, -1e-4),
        upper=np.full(rows, 1e-4),
        cfm=np.full(rows, 0.1),
    )
    parent = np.arange(nu) - 1
    parent[::6] = -1
    by_newton, by_sweeps, left = solved_by_both(c, parent)
    assert left <= 1e-7
    assert by_sweeps == pytest.approx(by_newton, abs=1e-6 * np.abs(by_newton).max())


def test_a_crowd_of_grains() -> None:
    """A heap of hard grains in one island of hundreds of contacts falls apart: what gives way returns
    less than it took, as a spring does."""
    rng = np.random.default_rng(3)
    count = 7
    grains = "".join(
        free(
            'type="sphere" size=".01" mass=".004"',
            f"{0.02001 * i + x} {0.02001 * j + y} {0.02 * k + 0.01}",
            name=f"g{i}.{j}.{k}",
        )
        for i in range(count)
        for j in range(count)
        for k in range(count)
        for x, y in [rng.uniform(-5e-6, 5e-6, 2)]
    )
    run = play(mjcf(FLOOR + grains), 0.2, 2e-3, record=("energy", "solver_residual"))
    energy = run["energy"].sum(axis=1)
    residual = run["solver_residual"].max()
    print(
        f"{run.simulation.contact_extremes[0]} contacts, {run.simulation.eased_steps} steps that gave way,",
        f"{1e6 * run.simulation.deepest:.0f} µm deep,",
        f"energy gained {growth(energy):.1e} of {energy[0] - energy[-1]:.1e} J, residual {residual:.1e}",
    )
    assert run.simulation.contact_extremes[0] >= 500
    assert growth(energy) <= 0.03 * (energy[0] - energy[-1])
    assert np.all(energy <= energy[0])
    assert residual <= 1e-6
    assert run.simulation.deepest <= 1e-4


@pytest.mark.parametrize(("bodies", "kernel"), [(5, "solve_without_contacts"), (45, "solve_alone")])
def test_bodies_tied_to_each_other_are_solved_without_contacts(bodies: int, kernel: str) -> None:
    """A string of beads that hangs from its end. Soft ties of many beads make a crowd, which no matrix is ordered for:
    the kernel without contacts cannot solve it. propagation factorises its tree instead; a crowd is solved to 1e-7 m/s.
    """
    beads = "".join(
        free('size=".02" contype="0" conaffinity="0"', f"{n / 10} 0 0", name=f"b{n}") for n in range(bodies)
    )
    ties = "".join(f'<connect body1="b{n}" body2="b{n + 1}" anchor=".05 0 0"/>' for n in range(bodies - 1))
    text = mjcf(beads, more=f'<equality><connect body1="b0" anchor="0 0 0"/>{ties}</equality>')
    by_newton, other = (play(text, 0.01, contacts=False, solver=solver) for solver in ("newton", "propagation"))
    assert by_newton.plan.solver_entries[0].name == kernel
    fastest = np.abs(other.simulation.qvel).max()
    assert fastest > 0.05
    assert by_newton.simulation.qvel == pytest.approx(other.simulation.qvel, abs=1e-5 * fastest)


def test_thousands_of_bodies_are_within_the_limits_of_memory() -> None:
    """No matrix of a crowd is made, however many its bodies; that of one mechanism of 6000 joints is."""
    body = '<body pos="{}"><freejoint/><geom type="sphere" size=".02" mass=".03"/></body>'
    apart = "".join(body.format(f"{0.1 * (n % 40)} {0.1 * (n // 40 % 40)} {0.1 * (n // 1600)}") for n in range(2000))
    plan = plan_run(load_text(f"<mujoco><worldbody>{apart}</worldbody></mujoco>", name="apart.xml"), RunConfig(steps=1))
    assert plan.robot.nv == 12000
    links = "".join(f'<link name="l{n}"/>' for n in range(6001))
    joints = "".join(
        f'<joint name="j{n}" type="continuous"><parent link="l{n // 2}"/><child link="l{n + 1}"/></joint>'
        for n in range(6000)
    )
    urdf = load_text(f'<robot name="tree">{links}{joints}</robot>', name="tree.urdf")
    with pytest.raises(MemoryShortageError, match=r"matrices of 6000 degrees of freedom would take 1\.15 GB"):
        plan_run(urdf, RunConfig(steps=1))
