"""Every exact solver on random trees with random active rows: against each other, and against dense truths in numpy.

Trees have all joint types, massless links between moving ones, armature; on them limits, bounded drives, friction,
couplings eliminated and as rows, hard and soft, loops, spheres on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from artsim.sim.articulation.description import Articulation, Coupling, Geom, Joint, Loop
from artsim.sim.run_data.registry import SOLVERS
from tests.articulation.test_dynamics import random_couplings, random_pose, random_tree
from tests.simulation import Run, box_link, joint, simulate, urdf

Array = np.ndarray[Any, np.dtype[np.float64]]

EXACT = ("newton", "propagation", "direct")
STEPS = 3
TAUT = {16, 21, 29, 38}
"""Seeds with bodies that are pulled taut in 2 ms. Their step's matrix is more than M̂ (sim/stepping/midpoint.py)."""
SEEDS = [*(pytest.param(seed, marks=pytest.mark.small) for seed in range(6)), *range(6, 60)]
every_seed = pytest.mark.parametrize("seed", SEEDS)


# ------------------------------------------------------------------ random robots


@cache
def random_robot(seed: int) -> tuple[Articulation, dict[str, Any]]:
    """A robot with something on every other joint, and a configuration that sets it going."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 5 if seed < 6 else 12)))
    couplings = tuple(_softened(rng, c) for c in random_couplings(rng, tree)) if seed % 3 else ()
    followers = {c.follower for c in couplings}  # a limit on one that starts beyond it could not be met
    joints = tuple(_equipped(rng, joint, joint.name in followers) for joint in tree.joints)
    names = [joint.name for joint in joints if joint.kind in ("revolute", "continuous", "prismatic")]
    free = [name for name in names if name not in followers]
    loops: tuple[Loop, ...] = ()
    if seed % 2 and len(tree.links) > 6:
        a, b = rng.choice(len(tree.links), 2, replace=False)
        ends = tree.links[a].name, tree.links[b].name, random_pose(rng), random_pose(rng)
        loops = (Loop("loop", "connect" if rng.random() < 0.7 else "weld", *ends),)
    links = tuple(
        replace(link, geoms=(Geom(link.name, "sphere", "collision", (float(rng.uniform(0.05, 0.3)),)),))
        for link in tree.links
    )
    config = {
        "steps": STEPS,
        "dt": 0.002,
        "coupling": "rows" if seed % 3 == 2 else "auto",
        "q0": {name: float(rng.uniform(-0.25, 0.25)) for name in free},
        "v0": {name: float(rng.normal()) for name in free},
        "target": {name: float(rng.uniform(-1, 1)) for name in free},
        "stiffness": {name: float(10 ** rng.uniform(0, 6)) for name in free if rng.random() < 0.6},
        "drive_mode": "acceleration" if seed % 5 == 4 else "force",
        "velocity_limits": bool(seed % 4 == 3),
        "ground": bool(seed % 4 == 2),
        "ground_friction": float(rng.uniform(0.1, 1.0)),
        "ground_height": float(rng.uniform(-1.0, -0.5)),
        "record": ("qpos", "qvel", "solver_iterations", "solver_residual"),
    }
    config["target"] = {name: value for name, value in config["target"].items() if name in config["stiffness"]}
    articulation = replace(tree, links=links, joints=joints, couplings=couplings, loops=loops)
    return articulation, config


def _equipped(rng: np.random.Generator, joint: Joint, follows: bool) -> Joint:
    if joint.kind not in ("revolute", "continuous", "prismatic"):
        return joint
    limited = not follows and rng.random() < 0.7
    return replace(
        joint,
        kind="revolute" if joint.kind == "continuous" else joint.kind,
        lower=float(rng.uniform(-0.3, -0.25)) if limited else -10.0,
        upper=float(rng.uniform(0.25, 0.3)) if limited else 10.0,
        effort=float(10 ** rng.uniform(-1, 3)) if rng.random() < 0.7 else None,
        velocity=float(rng.uniform(0.2, 2)),
        damping=float(rng.random()) if rng.random() < 0.5 else 0.0,
        friction=float(rng.uniform(0.1, 3)) if rng.random() < 0.4 else 0.0,
    )


def _softened(rng: np.random.Generator, coupling: Coupling) -> Coupling:
    if rng.random() < 0.6:
        return coupling
    return replace(coupling, frequency=float(10 ** rng.uniform(0, 2)), damping_ratio=float(rng.random()))


@cache
def run_of(seed: int, solver: str, steps: int = STEPS, dt: float = 0.002) -> Run:
    articulation, config = random_robot(seed)
    return simulate(articulation, **{**config, "solver": solver, "steps": steps, "dt": dt})


def bare_run_of(seed: int, solver: str) -> Run:
    """A step whose matrix is M̂: of robots that would be taut, a shorter one."""
    return run_of(seed, solver, 1, 1e-4 if seed in TAUT else 0.002)


def velocities(run: Run) -> Array:
    """qvel after every step (steps, nv)."""
    return np.vstack([run["qvel"][1:], run.simulation.qvel])


# ------------------------------------------------------------------ against each other


@every_seed
@pytest.mark.parametrize("solver", EXACT[1:])
def test_exact_solvers_agree(seed: int, solver: str) -> None:
    reference, run = run_of(seed, "newton"), run_of(seed, solver)
    want, got = velocities(reference), velocities(run)
    size = max(1.0, np.abs(want).max())
    if not is_telling(seed) or reference.simulation.worst_residual > 1e-9:
        pytest.skip("rows that contradict each other")
    assert np.abs(got - want).max() <= 1e-8 * size


def test_most_random_robots_have_active_rows_that_agree() -> None:
    """What the test above skips, and what it would say nothing about, is the smaller part."""
    assert np.mean([is_telling(seed) for seed in range(60)]) >= 0.6


@cache
def is_telling(seed: int) -> bool:
    """Whether rows act in the first step, and can all be met with impulses of a robot's size."""
    run = run_of(seed, "newton", 1)
    impulse = np.abs(step_of(run).impulse).max(initial=0.0)
    simulation = run.simulation
    return bool(simulation.worst_residual <= 1e-9 and simulation.eased_steps == 0 and 0.0 < impulse <= 1e4)


# ------------------------------------------------------------------ against dense numpy


@dataclass(frozen=True)
class Step:
    """M̂ (u⁺ - u) = force + Jᵀ impulse, and the rows, of a run's only step, in independent coordinates."""

    M: Array
    force: Array
    J: Array
    bias: Array
    cfm: Array
    lower: Array
    upper: Array
    cone: Array
    slope: Array
    impulse: Array
    before: Array
    after: Array

    @property
    def sigma(self) -> Array:
        return self.J @ self.after + self.bias + self.cfm * self.impulse


def step_of(run: Run) -> Step:
    """The last step of a run. The mass matrix and G are those of `compute`, before it."""
    simulation = run.simulation
    r, f, model = simulation._rows, simulation._step, run.robot.model
    count = int(r.number[0])
    found = run.robot.compute(run["qpos"][-1], quantities=["mass_matrix", "coupling_matrix"])
    G = found["coupling_matrix"]
    J = np.zeros((count, G.shape[1]))
    for n in range(count):
        np.add.at(J[n], r.column[r.start[n] : r.stop[n]], r.value[r.start[n] : r.stop[n]])
    names = ("bias", "cfm", "lower", "upper", "cone", "slope", "impulse")
    return Step(
        M=G.T @ (found["mass_matrix"] + np.diag(f.diagonal)) @ G,
        force=f.free.copy(),
        J=J,
        **{name: getattr(r, name)[:count].copy() for name in names},
        before=run["qvel"][-1][model.independent_dof],
        after=f.next.copy(),
    )


def projected(step: Step, z: Array) -> Array:
    """z on the rows' bounds and cones."""
    out = np.clip(z, step.lower, step.upper)
    for n in np.flatnonzero(step.cone > 1):
        rows = slice(n, n + step.cone[n])
        mu, normal, tangent = step.slope[n], z[n], z[n + 1 : n + step.cone[n]]
        length = np.linalg.norm(tangent)
        if length <= mu * normal:
            out[rows] = z[rows]
        elif mu * length <= -normal:
            out[rows] = 0.0
        else:
            along = (normal + mu * length) / (1 + mu * mu)
            out[rows] = [along, *(mu * along * tangent / length)]
    return out


@every_seed
@pytest.mark.parametrize("solver", EXACT)
def test_the_step_is_what_it_should_be(seed: int, solver: str) -> None:
    """Equation of motion and, row by row, complementarity: hard Coulomb friction with De Saxcé's shift in cones."""
    run = bare_run_of(seed, solver)
    step = step_of(run)
    if not is_telling(seed):
        pytest.skip("no rows, or rows that contradict each other")
    change = step.after - step.before
    size = max(1.0, np.abs(step.after).max())
    left = np.linalg.solve(step.M, step.M @ change - step.force - step.J.T @ step.impulse)
    assert np.abs(left).max() <= 1e-8 * size
    sigma = step.sigma
    for n in np.flatnonzero(step.cone > 1):
        sigma[n] += step.slope[n] * np.linalg.norm(sigma[n + 1 : n + step.cone[n]])
    mobility = np.einsum("ij,ji->i", step.J, np.linalg.solve(step.M, step.J.T)) + step.cfm
    for n in np.flatnonzero(step.cone > 1):
        mobility[n : n + step.cone[n]] = mobility[n : n + step.cone[n]].max()
    moving = mobility > 0
    gap = step.impulse - projected(step, step.impulse - np.where(moving, sigma / np.where(moving, mobility, 1), 0))
    assert np.abs(gap * mobility).max() <= 1e-8 * size


def enumerated(step: Step) -> Array:
    """u⁺ by trying every set of active rows: each at its lower bound, at its upper one, or between."""
    nu = step.J.shape[1]
    choices = [
        [side for side, bound in (("lower", low), ("upper", high)) if abs(bound) < 1e300] + ["between"]
        for low, high in zip(step.lower, step.upper, strict=True)
    ]
    best, found = np.inf, step.before
    for sides in product(*choices):
        between = np.array([side == "between" for side in sides])
        held = np.where([side == "lower" for side in sides], step.lower, step.upper)
        held[between] = 0.0
        J, k = step.J[between], int(between.sum())
        system = np.block([[step.M, -J.T], [J, np.diag(step.cfm[between])]])
        right = np.concatenate([step.M @ step.before + step.force + step.J.T @ held, -step.bias[between]])
        if k and np.linalg.matrix_rank(system) < nu + k:
            continue
        answer = np.linalg.solve(system, right)
        u, impulse = answer[:nu], held.copy()
        impulse[between] = answer[nu:]
        sigma = step.J @ u + step.bias + step.cfm * impulse
        wrong = np.where(between, 0.0, np.where([side == "lower" for side in sides], -sigma, sigma)).max()
        wrong = max(wrong, (step.lower - impulse).max(), (impulse - step.upper).max())
        if wrong < best:
            best, found = wrong, u
    assert best <= 1e-10, "no set of active rows fits"
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("solver", EXACT)
def test_bounded_rows_by_enumeration(seed: int, solver: str) -> None:
    """Three hinges near limits, two of them with friction, two bounded drives: 5184 sets of active rows."""
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c")
    friction = {"a": float(rng.uniform(0, 2)), "c": float(rng.uniform(0, 0.3))}
    text = urdf(
        *(box_link(f"link_{name}", float(rng.uniform(0.1, 2)), (0.0, 0.0, -0.2)) for name in names),
        *(
            joint(
                name,
                "revolute",
                f"link_{above}" if above else "base",
                f"link_{name}",
                at=(0.0, 0.0, -0.4),
                axis=((0, 1, 0), (1, 0, 0), (0, 1, 0))[n],
                limit=(-0.3, 0.3),
                friction=friction.get(name, 0.0),
            )
            for n, (name, above) in enumerate(zip(names, (None, "a", "b"), strict=True))
        ),
    )
    run = simulate(
        text,
        steps=1,
        dt=0.002,
        solver=solver,
        q0={name: float(rng.choice([-0.2999, 0.0, 0.2999])) for name in names},
        v0={name: float(rng.normal()) for name in names},
        stiffness=(stiffness := {"a": float(10 ** rng.uniform(1, 7)), "b": 100.0}),
        target=(target := {"a": float(rng.uniform(-1, 1)), "b": 1.0}),
        drive_limit=(most := {"a": float(10 ** rng.uniform(0, 3)), "b": 5.0}),
    )
    step = step_of(run)
    assert 2 <= len(step.J) <= 8  # limits that nothing presses have no rows, nor have drives
    assert np.abs(step.after - enumerated(step)).max() <= 1e-9 * max(1.0, np.abs(step.after).max())
    assert np.abs(run["qpos"][0] + 0.002 * step.after).max() <= 0.3 + 1e-12
    mobility = np.diag(np.linalg.inv(run.robot.compute(np.zeros(3), quantities=["mass_matrix"])["mass_matrix"]))
    for k, name in enumerate(("a", "b")):  # sim/equipment/actuation.py
        share = 1.0 / max(1.0, 0.002**2 * stiffness[name] * mobility[k])
        way = 0.002 * (step.after[k] - share * (0.75 * step.after[k] + 0.25 * step.before[k]))
        law = stiffness[name] * (target[name] - run["qpos"][0][k] - way)
        force = np.clip(law, -most[name], most[name])
        assert run["tau_drive"][0][k] == pytest.approx(force, rel=1e-9, abs=1e-12 * stiffness[name])


@every_seed
def test_direct_is_the_dense_factorisation(seed: int) -> None:
    """The rows that act, solved as equalities by K = J M̂⁻¹ Jᵀ + cfm and a dense factorisation (Sakalauskas, Recoil
    Notes, 2021, 3.2.1)."""
    run = bare_run_of(seed, "direct")
    step = step_of(run)
    if not is_telling(seed) or np.any(step.cone > 1):
        pytest.skip("no rows, or rows that contradict each other, or cones")
    between = (step.impulse > step.lower) & (step.impulse < step.upper)
    held = np.where(between, 0.0, step.impulse)
    J = step.J[between]
    W = np.linalg.inv(step.M)
    u = step.before + W @ (step.force + step.J.T @ held)
    K = J @ W @ J.T + np.diag(step.cfm[between])
    impulse = np.linalg.lstsq(K, -(J @ u + step.bias[between]), rcond=1e-13)[0]
    u = u + W @ J.T @ impulse
    assert np.abs(step.after - u).max() <= 1e-8 * max(1.0, np.abs(u).max())


# ------------------------------------------------------------------ what propagation and direct could stumble over


@pytest.mark.small
@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("heavy", [0, 1], ids=["leader", "follower"])
def test_a_coupled_link_without_inertia(solver: str, heavy: int) -> None:
    """Of two carts, one follows the other at -0.7 its pace, and one of the two alone has mass: p force over p² mass.

    The spring of 7 or 5 rad/s acts where a quarter of the steps before and after have it (sim/equipment/actuation.py).
    """
    carts = [box_link(f"cart_{n}", 2.0) if n == heavy else f'<link name="cart_{n}"/>' for n in range(2)]
    text = urdf(
        *carts,
        joint("x0", "prismatic", "base", "cart_0", axis=(1, 0, 0)),
        joint("x1", "prismatic", "base", "cart_1", axis=(1, 0, 0), mimic=("x0", -0.7, 0.0)),
    )
    drive: dict[str, Any] = {"stiffness": {"x0": 50.0}, "drive_limit": {"x0": 1.0}, "target": {"x0": 0.0}}
    start: dict[str, Any] = {"q0": {"x0": 0.03}, "v0": {"x0": -0.4}, "gravity": (0.5, 0.0, 0.0)}
    run = simulate(text, steps=9, dt=0.01, solver=solver, **drive, **start)
    share = 1.0 if heavy == 0 else -0.7
    q, v = 0.03, -0.4
    saturated = 0
    for qpos, qvel in zip(run["qpos"], run["qvel"], strict=True):
        assert np.allclose(qpos, [q, -0.7 * q], rtol=0, atol=1e-13) and abs(qvel[0] - v) <= 1e-12
        mass, push = 2.0 * share**2, 2.0 * 0.5 * share
        behind = q - 0.01 * 0.25 * v
        free = (mass * v + 0.01 * (push - 50.0 * behind)) / (mass + 0.01**2 * 0.25 * 50.0)
        force = np.clip(-50.0 * (behind + 0.01 * 0.25 * free), -1.0, 1.0)
        saturated += abs(force) == 1.0
        v = v + 0.01 * (push + force) / mass
        q = q + 0.01 * v
    assert 0 < saturated < 9


@pytest.mark.parametrize("solver", EXACT)
def test_light_links_that_bear_a_heavy_one(solver: str) -> None:
    """Nine links of 10 g, two of them without any inertia, carry 10 kg against their limits: as the dense truth.

    In a step so short that they are not stiffened; in one of 2 ms, which stiffens them, as the other solvers.
    """
    links = [box_link(f"l{n}", 0.01, (0, 0, -0.05), (0.01, 0.01, 0.1)) for n in range(9)]
    for n in (3, 6):
        links[n] = f'<link name="l{n}"/>'
    links.append(box_link("l9", 10.0, (0, 0, -0.05)))
    joints = [
        joint(
            f"j{n}",
            "revolute",
            f"l{n - 1}" if n else "base",
            f"l{n}",
            at=(0, 0, -0.1),
            axis=((0, 1, 0), (1, 0, 0))[n % 2],
            limit=(-0.2, 0.2),
        )
        for n in range(10)
    ]
    start = {f"j{n}": 0.2 for n in range(10)}
    config: dict[str, Any] = {"steps": 1, "q0": start, "stiffness": {"*": 1e4}}
    taut, reference = (simulate(urdf(*links, *joints), dt=0.002, solver=name, **config) for name in (solver, "newton"))
    assert np.abs(velocities(taut) - velocities(reference)).max() <= 1e-9
    step = step_of(simulate(urdf(*links, *joints), dt=2e-5, solver=solver, **config))
    left = np.linalg.solve(step.M, step.M @ (step.after - step.before) - step.force - step.J.T @ step.impulse)
    assert np.count_nonzero(step.impulse) >= 3
    assert np.abs(left).max() <= 1e-10
    assert np.abs(np.minimum(step.sigma, step.impulse)).max() <= 1e-10


@pytest.mark.parametrize("solver", EXACT)
def test_a_star_of_joints_on_one_body(solver: str) -> None:
    """Forty legs on a free body, each pressed against its limit: siblings are each other's neighbours in the graph."""
    links = [box_link("base", 3.0), *(box_link(f"l{n}", 0.1 + 0.01 * n, (0.2, 0, 0)) for n in range(40))]
    joints = [
        joint(f"j{n}", "revolute", "base", f"l{n}", axis=(np.cos(n), np.sin(n), 0.0), limit=(-0.1, 0.1))
        for n in range(40)
    ]
    text = f'<robot name="star">{"".join(links)}{"".join(joints)}</robot>'
    torque = {f"j{n}": 5.0 * (-1) ** n for n in range(40)}
    start = {f"j{n}": 0.1 * (-1) ** n for n in range(40)}
    config: dict[str, Any] = {"steps": 3, "base": "floating", "torque": torque, "q0": start}
    run = simulate(text, solver=solver, **config)
    reference = simulate(text, **config)
    step = step_of(run)
    assert np.count_nonzero(step.impulse) == 40
    assert np.abs(velocities(run) - velocities(reference)).max() <= 1e-11


@pytest.mark.small
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_joint_locked(solver: str) -> None:
    """Limits 0 0 leave no dof: the limits' rows act on nothing, and nothing moves."""
    link = box_link("l", 1.0, (0.1, 0, 0))
    text = urdf(link, joint("j", "revolute", "base", "l", limit=(0.0, 0.0)))
    run = simulate(text, steps=3, solver=solver)
    assert np.all(run["qpos"] == 0.0)
    assert np.all(run["qvel"] == 0.0)
