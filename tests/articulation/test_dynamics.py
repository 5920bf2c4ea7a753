"""Rigid-body quantities: the engine against its slow twin (naive.py), against identities and against closed forms.

Random trees mix all joint types: planar, ball, free under a moving parent, links merged by fixed joints, massless
links between moving joints, axes near -z, armature, polynomial couplings. Every check runs in both widths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from artsim.sim.articulation.description import Articulation, Coupling, Inertial, Joint, JointKind, Link, Pose
from artsim.sim.articulation.mobility import centre_mobilities
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.rotations import frame_with_z
from artsim.sim.quantities.robot import Robot
from tests.naive import Twin, hat, quaternion_product, rotation_about, rotation_of
from tests.tree_quantities import TREE_QUANTITIES

Array = np.ndarray[Any, np.dtype[np.float64]]

ROWS = WIDTH + 3  # a full pack and one that is padded
SMALL_SEEDS = range(6)  # trees of up to 5 links
SEEDS = [*(pytest.param(seed, marks=pytest.mark.small) for seed in SMALL_SEEDS), *range(6, 40)]
WIDTHS = [
    pytest.param("scalar", id="scalar"),
    pytest.param(
        "pack",
        id="pack",
        marks=pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT runs the scalar width only"),
    ),
]
both_widths = pytest.mark.parametrize("width", WIDTHS)
random_trees = pytest.mark.parametrize("seed", SEEDS)


# ------------------------------------------------------------------ random trees


@dataclass(frozen=True)
class Case:
    """A robot, its twin, and a table of states."""

    robot: Robot
    twin: Twin
    qpos: Array  # (ROWS, nq)
    qvel: Array  # (ROWS, nv)
    qacc: Array
    tau: Array


def compute(case: Case, width: str, *quantities: str, **options: Any) -> dict[str, Array]:
    """Results for all rows of a case: as one table, or row by row for a few rows and these alone."""
    return _compute(case.robot, width, (case.qpos, case.qvel, case.qacc, case.tau), quantities, options)


def _compute(
    robot: Robot, width: str, inputs: tuple[Array, ...], quantities: tuple[str, ...], options: dict[str, Any]
) -> dict[str, Array]:
    if width == "pack":
        assert len(inputs[0]) >= WIDTH
        return robot.compute(*inputs, quantities=quantities, **options)
    rows = [robot.compute(*row, quantities=quantities, **options) for row in zip(*inputs, strict=True)]
    return {name: np.array([row[name] for row in rows]) for name in quantities}


@cache
def random_case(seed: int, *, coupled: bool = False) -> Case:
    """A random tree and random states of it; with `coupled`, followers stand where their leaders put them."""
    rng = np.random.default_rng(seed)
    articulation = random_tree(rng, int(rng.integers(2, 6 if seed in SMALL_SEEDS else 13)))
    if coupled:
        articulation = replace(articulation, couplings=random_couplings(rng, articulation))
    robot, twin = Robot.of(articulation), Twin(articulation)
    assert (robot.nq, robot.nv) == (twin.nq, twin.nv)
    qpos = np.array([twin.followed(twin.random_coordinates(rng)) for _ in range(ROWS)])
    qvel, qacc, tau = rng.normal(size=(3, ROWS, twin.nv))
    return Case(robot, twin, qpos, qvel, qacc, tau)


def random_tree(rng: np.random.Generator, links: int) -> Articulation:
    """Links depth first; at least two dofs of one-dof joints, so that something can be coupled."""
    kinds: list[JointKind] = ["revolute", "revolute", "continuous", "prismatic", "ball", "planar", "free", "fixed"]
    made = [Link("link_0", random_inertial(rng))]
    joints = []
    if rng.random() < 0.3:  # the root moves on a joint of the file
        joints.append(random_joint(rng, "joint_0", rng.choice(["free", "planar", "revolute"]), "world", "link_0"))
    path = [0]  # from the root to the last link
    hollow = False  # the last link is massless and needs a link below it
    for i in range(1, links + 2):
        above = path[-1] if hollow else path[int(rng.integers(len(path)))]
        kind: JointKind = rng.choice(["revolute", "prismatic", "ball"] if hollow or i >= links else kinds)
        # one massless link at a time, between few dofs: M must stay regular
        hollow = not hollow and kind in ("revolute", "prismatic") and i < links and rng.random() < 0.25
        joints.append(random_joint(rng, f"joint_{i}", kind, f"link_{above}", f"link_{i}"))
        made.append(Link(f"link_{i}", None if hollow else random_inertial(rng)))
        path = [*path[: path.index(above) + 1], i]
    base = "floating" if len(joints) == links + 1 and rng.random() < 0.3 else "fixed"
    return Articulation("random", "urdf", tuple(made), tuple(joints), base=base)  # type: ignore[arg-type]


def random_joint(rng: np.random.Generator, name: str, kind: JointKind, parent: str, child: str) -> Joint:
    """Anywhere, along any axis, sometimes along -z or nearly so."""
    axis = rng.normal(size=3)
    if rng.random() < 0.2:
        axis = np.array([1e-5 * rng.normal(), 1e-4 * rng.normal(), -1.0]) * [rng.integers(2), rng.integers(2), 1]
    axis /= np.linalg.norm(axis)
    armature = float(rng.random()) if rng.random() < 0.3 else 0.0
    return Joint(
        name,
        kind,
        parent,
        child,
        pose=random_pose(rng),
        axis=tuple(map(float, axis)),
        armature=armature,  # type: ignore[arg-type]
    )


def random_pose(rng: np.random.Generator) -> Pose:
    """Within half a metre, any rotation."""
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    return Pose(tuple(map(float, rng.uniform(-0.5, 0.5, 3))), tuple(map(float, turn)))  # type: ignore[arg-type]


def random_inertial(rng: np.random.Generator) -> Inertial:
    """The inertia of a cloud of points about its centre."""
    mass = float(rng.uniform(0.2, 3))
    cloud = rng.normal(size=(8, 3)) * rng.uniform(0.05, 0.3)
    I = mass / 8 * sum((hat(p).T @ hat(p) for p in cloud), np.zeros((3, 3)))
    six = (I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2])
    return Inertial(mass, random_pose(rng), tuple(map(float, six)))  # type: ignore[arg-type]


def random_couplings(rng: np.random.Generator, articulation: Articulation) -> tuple[Coupling, ...]:
    """About half of the one-dof joints follow others: any tree order, any degree, chains, constants, any file order."""
    names = [j.name for j in articulation.joints if j.kind in ("revolute", "continuous", "prismatic")]
    names = [str(name) for name in rng.permutation(names)]
    couplings = []
    for i in range(1, len(names)):
        if rng.random() < 0.6:
            leader = names[int(rng.integers(i))] if rng.random() < 0.9 else None
            degree = int(rng.integers(1, 5)) if leader else 0
            coefficients = tuple(map(float, rng.uniform(-0.8, 0.8, degree + 1)))
            couplings.append(Coupling(names[i], leader, coefficients))
    return tuple(couplings[int(i)] for i in rng.permutation(len(couplings)))


def assert_close(value: Array, reference: Array, tolerance: float, unit: float = 0.0) -> None:
    """max|Δ| ≤ tolerance · max|reference| (at least `unit`)."""
    assert value.shape == reference.shape
    error = np.abs(value - reference).max(initial=0.0) / max(np.abs(reference).max(initial=0.0), unit, 1e-300)
    assert error <= tolerance, error


# ------------------------------------------------------------------ against the twin


@random_trees
@both_widths
def test_equals_the_slow_twin(seed: int, width: str) -> None:
    case = random_case(seed)
    twin = case.twin
    names = ["link_position", "link_quaternion", "com", "centroidal_momentum_matrix", "momentum"]
    out = compute(case, width, *names, "mass_matrix", "gravity", "bias", "inverse_dynamics", "jacobian")
    J = {"com": out["jacobian"], "origin": compute(case, width, "jacobian", at="origin")["jacobian"]}
    for row, (q, v, a) in enumerate(zip(case.qpos, case.qvel, case.qacc, strict=True)):
        poses = np.array(twin.poses(q))
        M, bias, A = twin.mass_matrix(q), twin.bias(q, v), twin.centroidal_momentum_matrix(q)
        unit = float(np.abs(M).max() * 9.81)
        assert_close(out["link_position"][row], poses[:, :3, 3], 1e-13, 1.0)
        for quaternion, pose in zip(out["link_quaternion"][row], poses, strict=True):
            assert abs(np.linalg.norm(quaternion) - 1) < 1e-14 and quaternion[0] >= 0
            assert_close(rotation_of(quaternion), pose[:3, :3], 1e-13)
        for at, jacobians in J.items():
            for link in twin.links:
                assert_close(jacobians[row, link], twin.jacobian(q, link, at=at), 1e-13, 1.0)
        assert_close(out["com"][row], twin.com(q), 1e-13, 1.0)
        assert_close(out["centroidal_momentum_matrix"][row], A, 1e-13)
        assert_close(out["momentum"][row], A @ v, 1e-13, float(np.abs(A).max()))
        assert_close(out["mass_matrix"][row], M, 1e-13)
        assert_close(out["gravity"][row], twin.gravity_force(q), 1e-12, unit)
        assert_close(out["gravity"][row], twin.bias(q, 0 * v), 1e-12, unit)
        assert_close(out["bias"][row], bias, 1e-12, unit)
        assert_close(out["inverse_dynamics"][row], M @ a + bias, 1e-12, unit)


@random_trees
def test_mobilities_of_centres_of_mass(seed: int) -> None:
    """The recursion over bodies against J M⁻¹ Jᵀ."""
    case = random_case(seed)
    for q in case.qpos[:2]:
        J = [case.twin.jacobian(q, link, at="com")[:3] for link in case.twin.links]
        want = [np.trace(j @ np.linalg.solve(case.twin.mass_matrix(q), j.T)) / 3 for j in J]
        assert_close(centre_mobilities(case.robot.model, q), np.array(want), 1e-11)


# ------------------------------------------------------------------ identities


@random_trees
@both_widths
def test_forward_dynamics_undoes_inverse_dynamics(seed: int, width: str) -> None:
    case = random_case(seed)
    tau = compute(case, width, "inverse_dynamics")["inverse_dynamics"]
    back = compute(replace(case, tau=tau), width, "forward_dynamics")["forward_dynamics"]
    assert_close(back, case.qacc, 1e-9)
    qacc = compute(case, width, "forward_dynamics")["forward_dynamics"]
    tau = compute(replace(case, qacc=qacc), width, "inverse_dynamics")["inverse_dynamics"]
    assert_close(tau, case.tau, 1e-9)


@random_trees
@both_widths
def test_jacobian_times_velocity_is_the_derivative_of_the_pose(seed: int, width: str) -> None:
    """Differences of fourth order along the exact path of constant joint velocities."""
    case = random_case(seed)
    h = 2e-3

    def at(time: float) -> tuple[Array, Array]:
        moved = [case.twin.moved(q, time * v, 1.0) for q, v in zip(case.qpos, case.qvel, strict=True)]
        out = compute(replace(case, qpos=np.array(moved)), width, "link_position", "link_quaternion")
        turn = out["link_quaternion"]
        return out["link_position"], turn * np.sign(np.sum(turn * now, axis=-1, keepdims=True))

    now = compute(case, width, "link_quaternion")["link_quaternion"]
    (p2, r2), (p1, r1), (n1, s1), (n2, s2) = at(2 * h), at(h), at(-h), at(-2 * h)
    velocity = (8 * (p1 - n1) - (p2 - n2)) / (12 * h)
    rate = (8 * (r1 - s1) - (r2 - s2)) / (12 * h)
    J = compute(case, width, "jacobian", at="origin")["jacobian"]
    twist = np.einsum("nlij,nj->nli", J, case.qvel)
    assert_close(twist[..., :3], velocity, 1e-8, 1.0)
    conjugate = now * [1, -1, -1, -1]
    turning = [
        [2 * quaternion_product(d, c)[1:] for d, c in zip(*row, strict=True)]
        for row in zip(rate, conjugate, strict=True)
    ]
    assert_close(twist[..., 3:], np.array(turning), 1e-8, 1.0)


@random_trees
@both_widths
def test_mass_matrix_is_symmetric_positive_and_the_energy(seed: int, width: str) -> None:
    case = random_case(seed)
    M = compute(case, width, "mass_matrix")["mass_matrix"]
    assert np.array_equal(M, M.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(M).min() > 0
    rotors = 0.5 * case.qvel**2 @ case.robot.model.armature
    energy = 0.5 * np.einsum("ni,nij,nj->n", case.qvel, M, case.qvel) - rotors
    links = [case.twin.kinetic_energy(q, v) for q, v in zip(case.qpos, case.qvel, strict=True)]
    assert_close(energy, np.array(links), 1e-13 * float(np.abs(M).max()))


@random_trees
@both_widths
def test_momentum_is_the_centroidal_map_times_velocity(seed: int, width: str) -> None:
    case = random_case(seed)
    out = compute(case, width, "momentum", "centroidal_momentum_matrix", "jacobian")
    A = out["centroidal_momentum_matrix"]
    assert_close(out["momentum"], np.einsum("nij,nj->ni", A, case.qvel), 1e-14, float(np.abs(A).max()))
    linear = np.einsum("l,nlij,nj->ni", case.robot.model.link_mass, out["jacobian"][:, :, :3], case.qvel)
    assert_close(out["momentum"][:, :3], linear, 1e-13, float(np.abs(A).max()))


@pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT runs the scalar width only")
@random_trees
@pytest.mark.parametrize("reduced", [False, True], ids=["full", "reduced"])
def test_both_widths_agree(seed: int, reduced: bool) -> None:
    case = random_case(seed, coupled=reduced)
    scalar = compute(case, "scalar", *TREE_QUANTITIES, reduced=reduced)
    pack = compute(case, "pack", *TREE_QUANTITIES, reduced=reduced)
    condition = max((np.linalg.cond(M) for M in scalar["mass_matrix"] if M.size), default=1.0)
    for name in TREE_QUANTITIES:
        assert_close(pack[name], scalar[name], 1e-12 * condition, 1e-3)


@both_widths
def test_a_row_does_not_depend_on_its_neighbours(width: str) -> None:
    """The same bytes, whatever the table's length and wherever in it a row stands."""
    case = random_case(7)
    out = compute(case, width, *TREE_QUANTITIES)
    turned = Case(case.robot, case.twin, *(x[::-1] for x in (case.qpos, case.qvel, case.qacc, case.tau)))
    doubled = Case(case.robot, case.twin, *(np.repeat(x, 2, 0) for x in (case.qpos, case.qvel, case.qacc, case.tau)))
    for name, values in compute(turned, width, *TREE_QUANTITIES).items():
        assert np.array_equal(values[::-1], out[name]), name
    for name, values in compute(doubled, width, *TREE_QUANTITIES).items():
        assert np.array_equal(values[1::2], out[name]), name


# ------------------------------------------------------------------ couplings


@random_trees
@both_widths
def test_reduced_quantities_are_the_full_ones_through_the_coupling_matrix(seed: int, width: str) -> None:
    """M_r = GᵀMG, bias_r = Gᵀ(bias + M Ġu), and so on; followers' entries of what is passed in are not looked at."""
    case = random_case(seed, coupled=True)
    robot, twin = case.robot, case.twin
    independent = twin.independent()
    assert [robot.dofs.index(name) for name in robot.independent_dofs] == independent
    u, acceleration = case.qvel[:, independent], case.qacc[:, independent]
    G = np.array([twin.coupling_matrix(q) for q in case.qpos])
    drift = np.array([twin.coupling_drift(q, x) for q, x in zip(case.qpos, u, strict=True)])
    full = replace(
        case,
        qvel=np.einsum("nij,nj->ni", G, u),
        qacc=np.einsum("nij,nj->ni", G, acceleration) + drift,
    )
    wanted = ("link_position", "com", "momentum", "mass_matrix", "gravity", "bias", "inverse_dynamics", "jacobian")
    out = compute(full, width, *wanted)
    followers = [k for k in range(twin.nv) if k not in independent]
    spoilt = replace(case, qpos=_spoilt(case, followers))
    reduced = compute(spoilt, width, *wanted, "forward_dynamics", reduced=True)
    M = np.einsum("nki,nkl,nlj->nij", G, out["mass_matrix"], G)
    carried = out["bias"] + np.einsum("nij,nj->ni", out["mass_matrix"], drift)
    expected = {
        "link_position": out["link_position"],
        "com": out["com"],
        "momentum": out["momentum"],
        "mass_matrix": M,
        "gravity": np.einsum("nki,nk->ni", G, out["gravity"]),
        "bias": np.einsum("nki,nk->ni", G, carried),
        "inverse_dynamics": np.einsum("nki,nk->ni", G, out["inverse_dynamics"]),
        "jacobian": np.einsum("nlij,njk->nlik", out["jacobian"], G),
    }
    unit = float(np.abs(out["mass_matrix"]).max() * 9.81)
    for name, reference in expected.items():
        assert_close(reduced[name], reference, 1e-12, unit)
    if len(independent):
        force = np.einsum("nki,nk->ni", G, case.tau) - expected["bias"]
        solved = np.array([np.linalg.solve(m, f) for m, f in zip(M, force, strict=True)])
        assert_close(reduced["forward_dynamics"], solved, 1e-13 * max(map(np.linalg.cond, M)) + 1e-12)


def _spoilt(case: Case, followers: list[int]) -> Array:
    """qpos with nonsense in the followers' entries."""
    qpos = case.qpos.copy()
    qpos[:, [int(case.robot.model.dof_coord[k]) for k in followers]] = 77.0
    return qpos


CHAIN = (
    Coupling("c", "b", (0.1, -2.0)),
    Coupling("d", "c", (0.0, 0.5, 0.0, 0.3, 0.2)),
    Coupling("b", "a", (-0.2, 1.5)),
)


@pytest.mark.small
@both_widths
def test_a_chain_of_couplings_by_hand(width: str) -> None:
    """b = 1.5 a - 0.2, c = 0.1 - 2 b, d = 0.5 c + 0.3 c³ + 0.2 c⁴: G and Ġ written out; declared in any order."""
    inertial = Inertial(1.0, Pose((0.3, 0.0, 0.1)), (0.01, 0, 0, 0.02, 0, 0.03))
    names = "abcd"
    links = (Link("base"), *(Link(f"link_{name}", inertial) for name in names))
    # c and d hang on the base: couplings reach across subtrees
    parents = {"a": "base", "b": "link_a", "c": "base", "d": "link_c"}
    joints = tuple(
        Joint(name, "revolute", parents[name], f"link_{name}", Pose((0.2, 0.1, 0.0)), (0.0, 0.6, 0.8)) for name in names
    )
    robot = Robot.of(Articulation("chain", "urdf", links, joints, couplings=CHAIN))
    assert robot.independent_dofs == ("a",)
    rng = np.random.default_rng(0)
    a, u = rng.uniform(-1, 1, ROWS), rng.normal(size=ROWS)
    b = 1.5 * a - 0.2
    c = 0.1 - 2 * b
    d = 0.5 * c + 0.3 * c**3 + 0.2 * c**4
    slope, bend = 0.5 + 0.9 * c**2 + 0.8 * c**3, 1.8 * c + 2.4 * c**2
    G = np.stack([np.ones(ROWS), np.full(ROWS, 1.5), np.full(ROWS, -3.0), -3.0 * slope], axis=1)
    drift = np.zeros((ROWS, 4))
    drift[:, 3] = bend * (-3.0 * u) ** 2
    full = (np.stack([a, b, c, d], axis=1), G * u[:, None], drift, np.zeros((ROWS, 4)))
    out = _compute(robot, width, full, ("mass_matrix", "inverse_dynamics", "link_position"), {})
    given = (np.stack([a, 0 * a, 0 * a, 0 * a], axis=1), np.stack([u, 0 * u, 0 * u, 0 * u], axis=1), *full[2:])
    reduced = _compute(robot, width, given, ("mass_matrix", "bias", "link_position"), {"reduced": True})
    assert_close(reduced["link_position"], out["link_position"], 1e-14, 1.0)
    assert_close(reduced["mass_matrix"][:, 0, 0], np.einsum("ni,nij,nj->n", G, out["mass_matrix"], G), 1e-13)
    assert_close(reduced["bias"][:, 0], np.einsum("ni,ni->n", G, out["inverse_dynamics"]), 1e-13)


# ------------------------------------------------------------------ closed forms


@pytest.mark.small
@both_widths
def test_planar_base_with_pendulum(width: str) -> None:
    """Lagrange by hand: base (x, y, θ) of mass mb in a vertical plane, a rod hinged d from its centre, at angle φ."""
    mb, Ib, m, I, d, l, g = 3.0, 0.4, 1.2, 0.05, 0.35, 0.25, 9.81
    links = (
        Link("ground"),
        Link("base", Inertial(mb, inertia=(0.1, 0, 0, 0.2, 0, Ib))),
        Link("rod", Inertial(m, Pose((l, 0, 0)), (0.01, 0, 0, 0.02, 0, I))),
    )
    joints = (
        Joint("plane", "planar", "ground", "base"),
        Joint("hinge", "revolute", "base", "rod", Pose((d, 0, 0))),
    )
    robot = Robot.of(Articulation("cart", "urdf", links, joints), gravity=(0.0, -g, 0.0))
    assert robot.coords == ("plane.x", "plane.y", "plane.angle", "hinge")
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-3, 3, (ROWS, 4)), rng.normal(size=(ROWS, 4))
    out = _compute(robot, width, (q, v, v, v), ("mass_matrix", "bias", "gravity", "link_position"), {})
    for row in range(ROWS):
        x, y, theta, phi = q[row]
        n1 = np.array([np.cos(theta), np.sin(theta)])
        n2 = np.array([np.cos(theta + phi), np.sin(theta + phi)])
        e1, e2 = d * np.array([-n1[1], n1[0]]), l * np.array([-n2[1], n2[0]])  # what θ̇ and θ̇ + φ̇ do to the rod
        J = np.column_stack([[1, 0], [0, 1], e1 + e2, e2])
        M = m * J.T @ J + np.diag([mb, mb, Ib + I, I])
        M[2, 3] += I
        M[3, 2] += I
        gravity = g * (m * J[1] + mb * np.array([0, 1, 0, 0]))
        centripetal = -d * n1 * v[row, 2] ** 2 - l * n2 * (v[row, 2] + v[row, 3]) ** 2
        assert_close(out["mass_matrix"][row], M, 1e-14)
        assert_close(out["gravity"][row], gravity, 1e-14)
        assert_close(out["bias"][row], gravity + m * J.T @ centripetal, 1e-14)
        assert_close(out["link_position"][row, 2], np.array([x + d * n1[0], y + d * n1[1], 0]), 1e-14, 1.0)


@pytest.mark.small
@both_widths
@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), (0.1, -0.2, 0.3)], ids=["centred", "offset"])
def test_free_body_obeys_newton_and_euler(width: str, com: tuple[float, float, float]) -> None:
    """At the centre I ω̇ + ω × I ω = 0; about an origin that is not the centre, the wrench moved there."""
    m, I = 2.0, np.diag([0.1, 0.2, 0.25])
    body = Link("body", Inertial(m, Pose(com), (0.1, 0, 0, 0.2, 0, 0.25)))
    robot = Robot.of(Articulation("body", "urdf", (body,), (), base="floating"))
    assert robot.dofs == tuple(f"root.{name}" for name in ("vx", "vy", "vz", "wx", "wy", "wz"))
    rng = np.random.default_rng(2)
    q = rng.normal(size=(ROWS, 7))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    v, a, tau = rng.normal(size=(3, ROWS, 6))
    out = _compute(robot, width, (q, v, a, tau), ("inverse_dynamics", "forward_dynamics", "com", "momentum"), {})
    gravity = np.array([0, 0, -9.81])
    for row in range(ROWS):
        R, c, omega = rotation_of(q[row, 3:]), np.array(com), v[row, 3:]
        spin = np.cross(a[row, 3:], c) + np.cross(omega, np.cross(omega, c))
        force = m * (a[row, :3] + R @ spin - gravity)
        torque = I @ a[row, 3:] + np.cross(omega, I @ omega) + np.cross(c, R.T @ force)
        assert_close(out["inverse_dynamics"][row], np.concatenate([force, torque]), 1e-14)
        assert_close(out["com"][row], q[row, :3] + R @ c, 1e-14, 1.0)
        momentum = [m * (v[row, :3] + R @ np.cross(omega, c)), R @ I @ omega]
        assert_close(out["momentum"][row], np.concatenate(momentum), 1e-14)
        # a torque τ - c × f about the centre and a force f, in body and world axes
        about = np.linalg.solve(I, tau[row, 3:] - np.cross(c, R.T @ tau[row, :3]) - np.cross(omega, I @ omega))
        linear = tau[row, :3] / m + gravity - R @ (np.cross(about, c) + np.cross(omega, np.cross(omega, c)))
        assert_close(out["forward_dynamics"][row], np.concatenate([linear, about]), 1e-13)


@pytest.mark.small
@both_widths
def test_dynamics_do_not_lose_digits_far_from_the_origin(width: str) -> None:
    """M, C and the inertial response of a floating tree are those at the origin, a thousand kilometres away."""
    rng = np.random.default_rng(3)
    tree = replace(random_tree(rng, 4), base="floating")
    tree = replace(tree, joints=tuple(j for j in tree.joints if j.parent != "world"))
    robot, twin = Robot.of(tree), Twin(tree)
    q = np.array([twin.random_coordinates(rng) for _ in range(ROWS)])
    v, a, tau = rng.normal(size=(3, ROWS, twin.nv))
    names = ("mass_matrix", "bias", "inverse_dynamics", "forward_dynamics")
    near = _compute(robot, width, (q, v, a, tau), names, {})
    far = _compute(robot, width, (q + np.array([1e6, -1e6, 1e6] + [0.0] * (twin.nq - 3)), v, a, tau), names, {})
    for name in names:
        assert np.array_equal(far[name], near[name]), name


@pytest.mark.small
def test_an_empty_tree_has_no_dofs() -> None:
    robot = Robot.of(Articulation("block", "urdf", (Link("block", Inertial(2.0, Pose((1, 2, 3)))),), ()))
    out = robot.compute(np.zeros(0), quantities=[*TREE_QUANTITIES])
    assert robot.nq == robot.nv == 0
    assert np.array_equal(out["com"], [1, 2, 3])
    assert out["jacobian"].shape == (1, 6, 0) and out["mass_matrix"].shape == (0, 0)


@pytest.mark.small
@pytest.mark.parametrize("tilt", [0.0, 1e-16, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1.0, 2.0, 3.0, np.pi])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_frames_along_any_axis_are_orthonormal(tilt: float, sign: float) -> None:
    """Near -z too, where 1 / (1 + z) has no digits left: axes of a public hand are 1e-4 from it."""
    for turn in (0.0, 1.0, 4.0):
        axis = np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), sign * np.cos(tilt)])
        R = frame_with_z(tuple(axis))
        assert_close(R @ R.T, np.eye(3), 1e-15)
        assert_close(R[:, 2], axis, 1e-15)
        assert np.linalg.det(R) > 0


@pytest.mark.small
def test_the_twin_differentiates_like_the_book() -> None:
    """The twin's own check: a rotating frame's columns change as ω ×."""
    axis, h = np.array([0.0, 0.6, 0.8]), 1e-5
    rate = (rotation_about(axis, h) - rotation_about(axis, -h)) / (2 * h)
    assert_close(rate, hat(axis), 1e-9)
