"""The newton solver alone: the conditions that its solutions must meet, written out in numpy; packs beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.sim.run_data.scratch import MOST_TOGETHER
from tests.solvers.newton_kernels import Case, Real, Solution, case, solve, solve_together

Generator = np.random.Generator
Ints = np.ndarray[Any, np.dtype[np.int64]]


def inertia(rng: Generator, nu: int) -> Real:
    """A positive definite matrix with eigenvalues over six decades."""
    a = rng.normal(size=(nu, nu))
    return np.asarray(a @ a.T + np.diag(10.0 ** rng.uniform(-3, 3, nu)))


def box_case(rng: Generator, nu: int, pattern: np.ndarray[Any, Any], kind: np.ndarray[Any, Any]) -> Case:
    """Rows of all kinds that one velocity meets all: 0 equalities, 1 limits, 2 friction, 3 soft with bounds."""
    n = len(kind)
    jacobian = np.where(pattern, rng.normal(size=(n, nu)), 0.0)
    met = jacobian @ rng.normal(size=nu)
    bias = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 1, n)
    bias = np.where(kind == 0, -met, np.where(kind == 1, -met + np.abs(bias) * rng.integers(0, 2, n), bias))
    huge = np.full(n, 1e308)
    return case(
        inertia(rng, nu),
        jacobian,
        rng.normal(size=nu),
        3.0 * rng.normal(size=nu),
        bias=bias,
        cfm=np.where(kind == 3, 10.0 ** rng.uniform(-8, 1, n), 0.0),
        lower=np.select([kind == 1, kind == 2, kind == 3], [np.zeros(n), -np.ones(n), np.full(n, -5.0)], -huge),
        upper=np.select([kind == 2, kind == 3], [np.ones(n), np.full(n, 5.0)], huge),
    )


def shape_of(rng: Generator) -> tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """nu, which entries rows have, their kinds; fewer equalities than dofs."""
    nu, n = int(rng.integers(2, 12)), int(rng.integers(1, 15))
    pattern = rng.random((n, nu)) < 0.5
    pattern[np.arange(n), rng.integers(0, nu, n)] = True
    kind = rng.integers(0, 4, n)
    equalities = np.nonzero(kind == 0)[0]
    kind[equalities[nu // 2 :]] = 1
    return nu, pattern, kind


def imbalance(c: Case, found: Solution) -> float:
    """What is left of M̂ x = f + Jᵀλ."""
    residual = c.matrix @ (found.velocity - c.velocity) - c.force - c.jacobian.T @ found.impulse
    return float(np.abs(residual).max() / max(1.0, np.abs(c.force).max(), np.abs(found.impulse).max()))


def box_residual(c: Case, found: Solution) -> float:
    """How far λ is from the projection of λ - velocity on its bounds."""
    velocity = c.jacobian @ found.velocity + c.bias + c.cfm * found.impulse
    return float(np.abs(np.clip(found.impulse - velocity, c.lower, c.upper) - found.impulse).max())


@pytest.mark.small
@pytest.mark.parametrize("seed", range(8))
def test_rows_of_all_kinds_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        c = box_case(rng, *shape_of(rng))
        found = solve(c)
        assert box_residual(c, found) <= 1e-9  # impulses reach 1e4
        assert imbalance(c, found) <= 1e-11
        assert found.steps <= 25
        assert found.left <= 1e-11


def test_many_rows_of_all_kinds() -> None:
    steps = []
    for seed in range(1000):
        rng = np.random.default_rng([seed])
        c = box_case(rng, *shape_of(rng))
        found = solve(c)
        steps.append(found.steps)
        assert box_residual(c, found) <= 1e-8, seed
        assert imbalance(c, found) <= 1e-9, seed
    print(f"\nNewton steps: mean {np.mean(steps):.1f}, most {max(steps)}", end="")
    assert max(steps) <= 40


@pytest.mark.small
def test_solving_again_from_the_solution_is_one_step() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        c = box_case(rng, *shape_of(rng))
        first = solve(c)
        again = solve(c, start=first.impulse)
        assert again.steps <= max(2, first.steps - 1)
        np.testing.assert_allclose(again.velocity, first.velocity, rtol=0, atol=1e-9)


@pytest.mark.small
def test_rows_said_twice_hold_once() -> None:
    """Redundant equalities: the same velocities, and impulses that share what one row carried."""
    rng = np.random.default_rng(5)
    jacobian = rng.normal(size=(2, 5))
    single = case(inertia(rng, 5), jacobian, rng.normal(size=5), rng.normal(size=5))
    double = case(single.matrix, np.vstack([jacobian, 2.0 * jacobian]), single.velocity, single.force)
    one, two = solve(single), solve(double)
    np.testing.assert_allclose(two.velocity, one.velocity, rtol=0, atol=1e-10)
    np.testing.assert_allclose(two.impulse[:2] + 2.0 * two.impulse[2:], one.impulse, rtol=1e-9)
    assert np.abs(two.impulse).max() <= 2.0 * np.abs(one.impulse).max()


@pytest.mark.small
def test_contradictions_end_in_the_middle() -> None:
    """Two hard rows want 1 and -1 of the same dof: it gets the mean, steps end, what is left is said."""
    c = case(np.eye(1), np.ones((2, 1)), np.zeros(1), np.zeros(1), bias=np.array([-1.0, 1.0]))
    found = solve(c)
    assert found.velocity[0] == pytest.approx(0.0, abs=1e-9)
    assert found.left == pytest.approx(1.0, rel=1e-3)
    assert found.steps < 20
    assert np.all(np.isfinite(found.impulse))


@pytest.mark.small
@pytest.mark.parametrize("push", [0.2, 0.9, 3.0])
def test_a_block_on_the_ground(push: float) -> None:
    """1 kg pressed down by 1 N s, pushed along: sticks up to μ, else slides with what friction leaves."""
    mu = 0.5
    c = case(
        np.eye(3),
        np.eye(3),
        np.zeros(3),
        np.array([-1.0, 0.6 * push, 0.8 * push]),
        cone=np.array([3, -1, -1]),
        slope=np.array([mu, 0.0, 0.0]),
    )
    found = solve(c)
    speed = max(0.0, push - mu)
    np.testing.assert_allclose(found.velocity, [0.0, 0.6 * speed, 0.8 * speed], atol=1e-12)
    assert found.impulse[0] == pytest.approx(1.0, rel=1e-12)
    assert np.hypot(*found.impulse[1:]) == pytest.approx(min(push, mu), rel=1e-12)


def coulomb_residual(c: Case, found: Solution) -> float:
    """Of contacts (n, t, t): gap closed or open, friction within the cone, against the slip where on its edge."""
    worst = 0.0
    velocity = c.jacobian @ found.velocity + c.bias
    for n in np.nonzero(c.cone == 3)[0]:
        v, f, mu = velocity[n : n + 3], found.impulse[n : n + 3], c.slope[n]
        slip, pull = np.hypot(v[1], v[2]), np.hypot(f[1], f[2])
        worst = max(worst, -v[0], -f[0], min(v[0], f[0]), pull - mu * f[0])
        worst = max(worst, abs(v[1] * f[1] + v[2] * f[2] + mu * f[0] * slip))
    return float(worst)


@pytest.mark.parametrize("seed", range(5))
def test_bodies_on_the_ground(seed: int) -> None:
    """Rigid bodies with three or four contacts each, thrown and pushed: Coulomb's law in every contact."""
    rng = np.random.default_rng([11, seed])
    for _ in range(20):
        bodies = int(rng.integers(1, 4))
        c = thrown_bodies(rng, bodies, int(rng.integers(3, 5)))
        found = solve(c)
        assert coulomb_residual(c, found) <= 1e-9
        assert imbalance(c, found) <= 1e-9
        assert found.steps <= 60


def thrown_bodies(rng: Generator, bodies: int, corners: int) -> Case:
    """Each of 6 dofs, its centre above its contacts; velocity of contact point r: v + ω x r."""
    nu = 6 * bodies
    jacobian = np.zeros((3 * corners * bodies, nu))
    mass = np.zeros(nu)
    for b in range(bodies):
        mass[6 * b : 6 * b + 6] = [2.0, 2.0, 2.0, *rng.uniform(0.01, 0.05, 3)]
        for corner in range(corners):
            angle = 2 * np.pi * corner / corners
            first = 3 * (corners * b + corner)
            rows = point_rows(0.2 * np.cos(angle), 0.2 * np.sin(angle), -0.1)
            jacobian[first : first + 3, 6 * b : 6 * b + 6] = rows
    cones = corners * bodies
    return case(
        np.diag(mass),
        jacobian,
        rng.normal(size=nu) * np.tile([1, 1, 0.1, 0.3, 0.3, 1], bodies),
        np.tile([0.0, 0.0, -0.2, 0.0, 0.0, 0.0], bodies) + 0.01 * rng.normal(size=nu),
        cone=np.tile([3, -1, -1], cones),
        slope=np.kron(rng.choice([0.1, 0.5, 1.0], cones), [1.0, 0.0, 0.0]),
    )


def point_rows(x: float, y: float, z: float) -> Real:
    """Velocity of a body's point: normal (z) first, then the tangents, of its linear and angular velocity."""
    cross = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
    return np.asarray(np.hstack([np.eye(3), cross])[[2, 0, 1]])


def stacked_boxes(rng: Generator, stacks: int, boxes: int, mu: float, kick: float) -> tuple[Case, Ints]:
    """Boxes of 1 kg and 0.2 m on each other, four contacts per face, shuffled; the case and M̂'s tree."""
    nu = 6 * stacks * boxes
    place = rng.permutation(stacks * boxes)
    rows = []
    for stack in range(stacks):
        for level in range(boxes):
            for corner in range(4):
                x, y = 0.1 * (1, -1)[corner % 2], 0.1 * (1, -1)[corner // 2]
                contact = np.zeros((3, nu))
                b = 6 * place[stack * boxes + level]
                contact[:, b : b + 6] = point_rows(x, y, -0.1)
                if level > 0:
                    below = 6 * place[stack * boxes + level - 1]
                    contact[:, below : below + 6] = -point_rows(x, y, 0.1)
                rows.append(contact)
    mass = np.tile([1.0, 1.0, 1.0, 0.0067, 0.0067, 0.0067], stacks * boxes)
    c = case(
        np.diag(mass),
        np.vstack(rows),
        kick * rng.normal(size=nu),
        mass * np.tile([0.0, 0.0, -0.02, 0.0, 0.0, 0.0], stacks * boxes),
        cone=np.tile([3, -1, -1], len(rows)),
        slope=np.tile([mu, 0.0, 0.0], len(rows)),
    )
    parent = np.arange(nu) - 1
    parent[::6] = -1
    return c, parent


@pytest.mark.parametrize("kick", [0.0, 0.01, 0.1, 1.0])
def test_stacks_of_boxes(kick: float) -> None:
    """At rest and kicked: four contacts per face, redundant, that slide together."""
    for seed in range(10):
        rng = np.random.default_rng([21, seed])
        c, parent = stacked_boxes(rng, 2, int(rng.integers(2, 8)), float(rng.choice([0.1, 0.5, 1.0])), kick)
        found = solve(c, parent=parent)
        assert coulomb_residual(c, found) <= 1e-9
        assert imbalance(c, found) <= 1e-9
        assert found.left <= 1e-9


def rolling_spheres(rng: Generator) -> tuple[Case, Ints]:
    """Seven spheres on the ground, six around one, that roll into each other: 19 contacts; the case and M̂'s tree."""
    radius, count = 0.05, 7
    angle = np.pi / 3 * np.arange(6)
    place = np.vstack([np.zeros((1, 2)), 2.0 * radius * np.column_stack([np.cos(angle), np.sin(angle)])])
    rows = []
    for a in range(count):
        contact = np.zeros((3, 6 * count))
        contact[:, 6 * a : 6 * a + 6] = point_rows(0.0, 0.0, -radius)
        rows.append(contact)
        for b in range(a):
            x, y = (place[b] - place[a]) / np.hypot(*(place[b] - place[a]))
            if np.hypot(*(place[b] - place[a])) < 2.1 * radius:
                contact = np.zeros((3, 6 * count))
                turned = np.array([[0.0, -x, -y], [0.0, -y, x], [1.0, 0.0, 0.0]])  # normal (from a to b), tangents
                contact[:, 6 * a : 6 * a + 6] = turned @ point_rows(radius * x, radius * y, 0.0)
                contact[:, 6 * b : 6 * b + 6] = -turned @ point_rows(-radius * x, -radius * y, 0.0)
                rows.append(contact)
    mass = np.tile([0.5, 0.5, 0.5, 0.0005, 0.0005, 0.0005], count)
    speed = np.zeros((count, 6))
    speed[:, :2] = rng.normal(size=(count, 2))
    speed[:, 3:5] = speed[:, 1::-1] * [-1.0, 1.0] / radius  # rolling
    c = case(
        np.diag(mass),
        np.vstack(rows),
        speed.ravel(),
        mass * np.tile([0.0, 0.0, -0.02, 0.0, 0.0, 0.0], count),
        cone=np.tile([3, -1, -1], len(rows)),
        slope=np.tile([1.0, 0.0, 0.0], len(rows)),
    )
    parent = np.arange(6 * count) - 1
    parent[::6] = -1
    return c, parent


def test_spheres_that_roll_into_each_other() -> None:
    """Newton's steps alone turn in circles on some of these; Gauss-Seidel leads them out."""
    steps = []
    for seed in range(100):
        c, parent = rolling_spheres(np.random.default_rng([31, seed]))
        found = solve(c, parent=parent)
        assert coulomb_residual(c, found) <= 1e-9, seed
        assert imbalance(c, found) <= 1e-9, seed
        assert found.left <= 1e-10, seed
        steps.append(found.steps)
    assert max(steps) <= 120


@pytest.mark.small
def test_islands_do_not_see_each_other() -> None:
    """Two stacks solved together move exactly as each alone."""
    c, parent = stacked_boxes(np.random.default_rng(4), 1, 3, 0.3, 0.1)
    nu, n = len(parent), len(c.bias)
    two = case(
        np.kron(np.eye(2), c.matrix),
        np.kron(np.eye(2), c.jacobian),
        np.concatenate([c.velocity, np.zeros(nu)]),
        np.tile(c.force, 2),
        cone=np.tile(c.cone, 2),
        slope=np.tile(c.slope, 2),
    )
    both = np.concatenate([parent, np.where(parent < 0, -1, parent + nu)])
    together = solve(two, parent=both)
    first = solve(c, parent=parent)
    second = solve(c._replace(velocity=np.zeros(nu)), parent=parent)
    assert np.array_equal(together.velocity, np.concatenate([first.velocity, second.velocity]))
    assert np.array_equal(together.impulse, np.concatenate([first.impulse, second.impulse]))
    assert together.impulse[:n].any()


@pytest.mark.parametrize("room", [0, MOST_TOGETHER + 1], ids=["together", "one by one"])
@pytest.mark.parametrize("kind", ["boxes", "cones"])
def test_packs_agree_with_single_robots(kind: str, room: int) -> None:
    """Eight problems of one pattern at a time, from the impulses of other ones close by: the same to rounding as each
    alone, which newton itself solves where a few steps are not enough."""
    rng = np.random.default_rng(17)
    settled = 0
    for _ in range(10):
        shape = shape_of(rng)
        cases = [box_case(rng, *shape) if kind == "boxes" else standing_bodies(rng, 2) for _ in range(8)]
        starts = [solve(c).impulse for c in cases]
        near = [c._replace(force=c.force * rng.uniform(0.9, 1.1, len(c.force))) for c in cases]
        together, left = solve_together(*near, start=np.column_stack(starts), room=room)
        settled += 8 - left
        for c, start, packed in zip(near, starts, together, strict=True):
            alone = solve(c, start=start)
            np.testing.assert_allclose(packed[0], alone.velocity, rtol=0, atol=1e-9)
            np.testing.assert_allclose(c.jacobian.T @ packed[1], c.jacobian.T @ alone.impulse, rtol=0, atol=1e-8)
    print(f"\n{settled} of 80 settled together", end="")
    assert settled >= 60


@pytest.mark.parametrize("room", [0, MOST_TOGETHER + 1], ids=["together", "one by one"])
@pytest.mark.parametrize("scale", [1e3, 1e7])
def test_lanes_whose_impulses_grow_large_agree_with_single_robots(scale: float, room: int) -> None:
    """Every second lane is pressed so hard that steps in impulses would lose digits: these lanes go on with steps in
    velocities, the others do not notice."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        cases = [standing_bodies(rng, 2) for _ in range(8)]
        starts = [solve(c).impulse for c in cases]
        pressed = [c._replace(force=c.force * (1.1, scale)[k % 2]) for k, c in enumerate(cases)]
        together, left = solve_together(*pressed, start=np.column_stack(starts), room=room)
        assert left == 0
        for c, start, packed in zip(pressed, starts, together, strict=True):
            alone = solve(c, start=start)
            size = max(1.0, np.abs(alone.velocity).max())
            np.testing.assert_allclose(packed[0], alone.velocity, rtol=0, atol=1e-11 * size)


def standing_bodies(rng: Generator, bodies: int) -> Case:
    """Bodies that stand on three contacts each, pushed a little."""
    c = thrown_bodies(rng, bodies, 3)
    push = np.tile([1.0, 1.0, 0.0, 0.1, 0.1, 0.1], bodies) * 0.01 * rng.normal(size=6 * bodies)
    return c._replace(velocity=np.zeros(6 * bodies), force=np.tile([0.0, 0.0, -0.2, 0.0, 0.0, 0.0], bodies) + push)
