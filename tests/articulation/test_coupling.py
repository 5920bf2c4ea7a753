"""Couplings: exact in free motion and under load, two-way, in every topology that public files have.

Our own robots, the six models that the other engines were measured on, and every public URDF with mimic joints.
`python -m pytest tests/articulation/test_coupling.py -s` prints the figures.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from artsim.loaders.load import load_text
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Coupling
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.simulation import (
    Array,
    Mimics,
    Truth,
    box_link,
    corpus_mimics,
    joint,
    joint_limits,
    load,
    peer_models,
    relative,
    robot_file,
    simulate,
    source_text,
    start_inside,
    urdf,
    without,
)

EXACT = 1e-12  # [rad or m]
OBLIQUE = (3.0, -2.0, -9.0)  # [m/s²] gravity that makes every joint swing
LOAD = 20.0  # [N m or N]
DT = 0.002
OURS = ("parallel_gripper", "two_finger_gripper", "rack_and_pinion", "stiff_drive_chain")
Model = str | Path


def arms(*mimics: tuple[str, str, float, float], kinds: dict[str, str] | None = None) -> str:
    """Two arms of three rods, a1-a2-a3 and b1-b2-b3, axes skew; mimics are (follower, leader, multiplier, offset)."""
    follows = {follower: (leader, multiplier, offset) for follower, leader, multiplier, offset in mimics}
    parts = []
    for arm, y in (("a", 0.0), ("b", 0.5)):
        for n in (1, 2, 3):
            name = f"{arm}{n}"
            parts.append(box_link(f"l{name}", 1.0 / n, (0, 0, -0.2), (0.04, 0.05, 0.4)))
            parts.append(
                joint(
                    name,
                    (kinds or {}).get(name, "revolute"),
                    "base" if n == 1 else f"l{arm}{n - 1}",
                    f"l{name}",
                    at=(0, y, 0) if n == 1 else (0, 0, -0.4),
                    axis=(0.1 * n, 1, 0.2),
                    mimic=follows.get(name),
                )
            )
    return urdf(*parts)


FIVE = zip(("a1", "a2", "a3", "b2", "b3"), (1.0, -1.0, 2.0, 0.5, -0.3), strict=True)
TOPOLOGIES = {
    "negative": arms(("a2", "a1", -0.7, 0.3)),
    "chain": arms(("a2", "a1", 0.8, 0.1), ("a3", "a2", -0.5, 0.05)),
    "chain-over-both-arms": arms(("a3", "b2", 1.5, -0.2), ("b2", "b1", -0.4, 0.3), ("b1", "a1", 0.9, 0.1)),
    "other-subtree": arms(("b2", "a2", 1.2, 0.2)),
    "follower-first": arms(("a1", "b3", -1.5, 0.2)),
    "follower-above-leader": arms(("a1", "a3", 0.6, 0.0)),
    "five-followers": arms(*((follower, "b1", multiplier, 0.1) for follower, multiplier in FIVE)),
    "prismatic-follows-revolute": arms(("a2", "b1", 0.05, 0.01), kinds={"a2": "prismatic"}),
    "revolute-follows-prismatic": arms(("b2", "a1", 3.0, 0.0), kinds={"a1": "prismatic"}),
    "multiplier-0": arms(("b2", "a1", 0.0, 0.4)),
}
each_topology = pytest.mark.parametrize("model", [pytest.param(text, id=name) for name, text in TOPOLOGIES.items()])
each_small = pytest.mark.parametrize(
    "model",
    [pytest.param(text, id=name, marks=pytest.mark.small) for name, text in TOPOLOGIES.items()]
    + [pytest.param(robot_file(name), id=name, marks=pytest.mark.small) for name in OURS],
)


def every_model() -> list[Any]:
    """Parameters: our robots, the topologies above, the peers' six models, the public URDFs."""
    skip = pytest.mark.skip(reason="no corpus, or no peers' models beside it; set ARTSIM_CORPUS")
    peers = [pytest.param(case["urdf"], id=f"peers-{name}") for name, case in peer_models().items()]
    public = [pytest.param(Path(e["path"]), id=e["id"], marks=pytest.mark.corpus) for e in corpus_mimics()]
    return [
        *(pytest.param(robot_file(name), id=name) for name in OURS),
        *(pytest.param(text, id=name) for name, text in TOPOLOGIES.items()),
        *(peers or [pytest.param("", id="peers", marks=skip)]),
        *(public or [pytest.param("", id="public", marks=skip)]),
    ]


each_model = pytest.mark.parametrize("model", every_model())


def robot_of(model: Model) -> Robot:
    """The compiled robot; skips a reduced mass matrix that is singular by Pinocchio's account: no forward dynamics."""
    try:
        articulation = load(model)
    except ModelError as error:
        pytest.skip(f"refused: {error}")
    robot = Robot(articulation, compile_model(articulation, locks=True))
    G = Mimics(model, robot).G
    M = G.T @ Truth(model, robot).mass_matrix(robot.reference) @ G
    scale = np.sqrt(np.diag(M))
    if np.any(scale == 0) or np.linalg.eigvalsh(M / np.outer(scale, scale))[0] < 1e-9:
        pytest.skip("its reduced mass matrix is singular")
    return robot


def limits_of(robot: Robot, text: str) -> dict[int, tuple[float, float]]:
    """Limits by coordinate, of the joints that are not locked."""
    limits = joint_limits(text)
    return {robot.coords.index(name): pair for name, pair in limits.items() if pair[0] < pair[1]}


def balanced_load(robot: Robot, mimics: Mimics) -> dict[str, float]:
    """LOAD on every follower, and on the leaders what Gᵀ tau = 0 asks for."""
    tau = np.zeros(robot.nv)
    tau[[robot.dofs.index(name) for name in mimics.of]] = LOAD
    tau[[robot.dofs.index(name) for name in robot.independent_dofs]] -= mimics.G.T @ tau
    return dict(zip(robot.dofs, tau.tolist(), strict=True))


@each_model
def test_swing_and_balanced_load(model: Model, request: pytest.FixtureRequest) -> None:
    robot = robot_of(model)
    mimics = Mimics(model, robot)
    if not mimics.of:
        pytest.skip("its mimic joints do not move")
    swing = simulate(model, steps=2500, dt=DT, gravity=OBLIQUE, q0=start_inside(model, robot), record=("qpos",))
    still = simulate(
        model,
        steps=2500,
        dt=DT,
        gravity=(0.0, 0.0, 0.0),
        q0=start_inside(model, robot),
        torque=balanced_load(robot, mimics),
        record=("qpos",),
    )
    errors = mimics.error(swing["qpos"]), mimics.error(still["qpos"])
    moved = float(np.abs(still["qpos"] - still["qpos"][0]).max())
    swung = float(np.ptp(swing["qpos"], axis=0).max())
    name = request.node.callspec.id
    print(f"\n{name:75} swing {errors[0]:.1e} (moves {swung:.1e})  load {errors[1]:.1e} (moves {moved:.1e})", end="")
    assert max(errors) <= EXACT
    assert moved <= 1e-8


@each_model
def test_load_on_a_follower_moves_its_leader(model: Model) -> None:
    """From rest, without gravity: q̈ = G (GᵀMG)⁻¹ Gᵀ tau with Pinocchio's M."""
    robot = robot_of(model)
    text = without(source_text(model), "dynamics")
    mimics, truth = Mimics(text, robot), Truth(text, robot)
    start = start_inside(text, robot)
    first = simulate(text, steps=1, q0=start).plan.qpos
    if any(min(first[k] - low, high - first[k]) < 1e-6 for k, (low, high) in limits_of(robot, text).items()):
        pytest.skip("its limits leave no room for its mimic joints")
    for follower in mimics.of:
        run = simulate(text, steps=1, dt=1e-7, gravity=(0.0, 0.0, 0.0), q0=start, torque={follower: LOAD})
        tau = np.zeros(robot.nv)
        tau[robot.dofs.index(follower)] = LOAD
        G = mimics.G
        want = G @ np.linalg.solve(G.T @ truth.mass_matrix(run["qpos"][0]) @ G, G.T @ tau)
        if not np.any(want):  # a multiplier of 0
            assert not np.any(run["qacc"])
            continue
        assert not np.any(run["tau_limit"])
        assert relative(run["qacc"][0] - want, want) <= 1e-9, follower


@each_small
def test_first_steps(model: Model) -> None:
    """What the long runs show, in a few steps: no error, no power from the coupling forces, the right acceleration."""
    robot = robot_of(model)
    mimics, truth = Mimics(model, robot), Truth(model, robot, gravity=np.array(OBLIQUE))
    run = simulate(model, steps=12, dt=DT, gravity=OBLIQUE, q0=start_inside(model, robot))
    assert mimics.error(run["qpos"]) <= EXACT
    assert np.abs(mimics.G.T @ run["tau_coupling"].T).max() <= 1e-12
    for q, v, a, *forces in zip(
        *(run[name] for name in ("qpos", "qvel", "qacc", "tau_passive", "tau_limit")), strict=True
    ):
        M, G = truth.mass_matrix(q), mimics.G
        want = np.linalg.solve(G.T @ M @ G, G.T @ (sum(forces) - truth.bias(q, v)))
        assert relative(a - G @ want, np.append(a, 1e-3)) <= 1e-9


def reduced_solution(truth: Truth, expand: Any, u0: Array, seconds: float) -> Array:
    """Coordinates (nv,) at the end of a free swing from rest, by DOP853 on Pinocchio's M and bias.

    `expand` gives q, G and Ġ u of independent coordinates and velocities.
    """
    n = len(u0)

    def rate(_: float, state: Array) -> Array:
        u = state[n:]
        q, G, drift = expand(state[:n], u)
        M = truth.mass_matrix(q)
        return np.concatenate([u, np.linalg.solve(G.T @ M @ G, -G.T @ (truth.bias(q, G @ u) + M @ drift))])

    end = solve_ivp(rate, (0, seconds), np.append(u0, np.zeros(n)), method="DOP853", rtol=1e-12, atol=1e-12).y[:n, -1]
    return np.asarray(expand(end, np.zeros(n))[0])


@each_topology
def test_swing_is_that_of_the_reduced_model(model: Model) -> None:
    robot = robot_of(model)
    mimics, truth = Mimics(model, robot), Truth(model, robot)
    start = dict.fromkeys(robot.independent_dofs, 0.3)
    run = simulate(model, steps=300, dt=0.001, q0=start, integrator="rk4", record=("qpos",))
    still = np.zeros(robot.nv)
    want = reduced_solution(
        truth, lambda y, _: (mimics.G @ y + mimics.offset, mimics.G, still), np.full(mimics.G.shape[1], 0.3), 0.3
    )
    assert np.abs(run.simulation.qpos - want).max() <= 1e-8


@pytest.mark.parametrize("coefficients", [(0.1, 0.5, 0.8), (0.0, -1.0, 0.0, 0.7), (0.2, 0.3, -0.6, 0.4, 0.9)])
def test_polynomial(coefficients: tuple[float, ...]) -> None:
    """Quadratic to quartic couplings: exact, and the reduced model's swing with the drift Ġ u."""
    text = arms()
    bent = Coupling("b2", "a1", coefficients)
    last = Coupling("a3", "b2", (0.0, -0.5, 0.3))
    articulation = dataclasses.replace(load(text), couplings=(last, bent))
    run = simulate(articulation, steps=300, dt=0.001, q0={"a1": 0.4}, integrator="rk4", record=("qpos",))
    p, r = np.polynomial.Polynomial(coefficients), np.polynomial.Polynomial(last.coefficients)
    truth = Truth(text, run.robot)
    names = run.robot.dofs
    a1, a3, b2 = (names.index(name) for name in ("a1", "a3", "b2"))
    free = [names.index(name) for name in run.robot.independent_dofs]

    def expand(y: Array, u: Array) -> tuple[Array, Array, Array]:
        q, G, drift = np.zeros(6), np.zeros((6, len(y))), np.zeros(6)
        q[free] = y
        G[free, range(len(y))] = 1.0
        for k, lead, f in ((b2, a1, p), (a3, b2, r)):
            q[k] = f(q[lead])
            G[k] = f.deriv()(q[lead]) * G[lead]
            drift[k] = f.deriv(2)(q[lead]) * (G[lead] @ u) ** 2 + f.deriv()(q[lead]) * drift[lead]
        return q, G, drift

    start = np.where(np.array(free) == a1, 0.4, 0.0)
    assert np.abs(run.simulation.qpos - reduced_solution(truth, expand, start, 0.3)).max() <= 1e-8
    q = run["qpos"]
    assert np.abs(q[:, b2] - p(q[:, a1])).max() <= EXACT
    assert np.abs(q[:, a3] - r(q[:, b2])).max() <= EXACT


@each_small
@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_rows_hold_what_elimination_holds(model: Model, solver: str) -> None:
    """The same couplings as rows, none lost whatever their order in the file."""
    robot = robot_of(model)
    mimics = Mimics(model, robot)
    config: dict[str, Any] = {
        "steps": 12,
        "dt": DT,
        "q0": start_inside(model, robot),
        "integrator": "semi-implicit-euler",
    }
    exact = simulate(model, **config)
    rows = simulate(model, coupling="rows", solver=solver, iterations=2000, **config)
    assert len(rows.robot.model.row_follower) == len(mimics.of)
    assert mimics.error(rows["qpos"]) <= EXACT
    assert np.abs(rows["qpos"] - exact["qpos"]).max() <= 1e-11


@pytest.mark.small
def test_a_follower_given_against_its_leader_is_refused() -> None:
    model = TOPOLOGIES["negative"]
    with pytest.raises(UsageError, match=r"a2 follows another joint and must be 0\.23 here, got 0\.5"):
        simulate(model, steps=1, q0={"a1": 0.1, "a2": 0.5})
    with pytest.raises(UsageError, match="a2 follows another joint"):
        simulate(model, steps=1, v0={"a1": 0.1, "a2": 0.5})


@pytest.mark.small
def test_stars_mean_no_follower() -> None:
    """`*` drives the joints that are no followers, whether their couplings are eliminated or rows."""
    for coupling in ("exact", "rows"):
        run = simulate(TOPOLOGIES["chain"], steps=2, stiffness={"*": 50.0}, q0={"b1": 0.1}, coupling=coupling)
        driven = [name for name, k in zip(run.robot.dofs, run.plan.inputs["drive_stiffness"], strict=True) if k > 0]
        assert driven == ["a1", "b1", "b2", "b3"]


@pytest.mark.small
def test_compliance_on_a_polynomial_follower() -> None:
    """The published spring on an exact follower acts at the velocities of the step's end, the drift Ġ u in them."""
    text = arms()
    bent = Coupling("a2", "a1", (0.0, 0.5, 0.8))
    soft = Coupling("b1", "a2", (0.1, 1.5), frequency=5.0, damping_ratio=0.7)
    articulation = dataclasses.replace(load(text), couplings=(bent, soft))
    run = simulate(articulation, steps=40, dt=0.01, gravity=OBLIQUE, v0={"a1": 3.0}, scheme_alpha=1.0)
    truth = Truth(text, run.robot)
    a1, a2, b1 = (run.robot.dofs.index(name) for name in ("a1", "a2", "b1"))
    G = np.delete(np.eye(6), a2, axis=1)
    J = np.zeros(6)
    J[b1], J[a2] = 1.0, -1.5
    for q, v, a, tau in zip(*(run[name] for name in ("qpos", "qvel", "qacc", "tau_coupling")), strict=True):
        G[a2] = 0.0
        G[a2, a1] = 0.5 + 1.6 * q[a1]
        M = truth.mass_matrix(q)
        r = J @ G @ np.linalg.solve(G.T @ M @ G, G.T @ J)
        mu = 2 * np.pi * 5.0
        rate = J @ (v + 0.01 * a)
        error = q[b1] - 0.1 - 1.5 * q[a2] + 0.01 * rate
        force = -(mu * mu * error + 2 * 0.7 * mu * rate) / r
        assert relative(G.T @ tau - G.T @ J * force, np.append(tau, 1e-3)) <= 1e-9


@pytest.mark.small
@pytest.mark.parametrize(
    "config",
    [{}, {"solver": "propagation"}, {"solver": "direct"}, {"solver": "pgs"}, {"integrator": "rk4"}],
    ids=["auto", "propagation", "direct", "pgs", "rk4"],
)
def test_compliance_between_locked_joints(config: dict[str, Any]) -> None:
    """Nothing can give there: no force, and the other couplings are as if it were not."""
    still = (0.2, 0.2)
    parts = [box_link(f"l{n}", 1.0, (0, 0, -0.2)) for n in range(4)]
    arm = urdf(
        *parts,
        joint("a", "revolute", "base", "l0", limit=still),
        joint("b", "revolute", "l0", "l1", at=(0, 0, -0.4), limit=still, mimic=("a", 2.0, 0.1)),
        joint("c", "revolute", "l1", "l2", at=(0, 0, -0.4)),
        joint("d", "revolute", "l2", "l3", at=(0, 0, -0.4), mimic=("c", 1.5, 0.0)),
    )
    alone = arm.replace('<mimic joint="a" multiplier="2.0" offset="0.1"/>', "")
    runs = [simulate(text, steps=20, coupling="compliant", coupling_frequency=5.0, **config) for text in (arm, alone)]
    assert runs[0]["tau_coupling"][:, 2:] == pytest.approx(runs[1]["tau_coupling"][:, 2:], rel=1e-9, abs=1e-12)
    assert runs[0]["qpos"] == pytest.approx(runs[1]["qpos"], abs=1e-12)
    assert all(np.all(np.isfinite(values)) for values in runs[0].rows.values())


@pytest.mark.small
def test_rk4_counts_its_solver_s_rounds_per_step() -> None:
    run = simulate(
        TOPOLOGIES["chain"], steps=10, integrator="rk4", coupling="rows", record=("solver_iterations", "qpos")
    )
    assert np.all(run["solver_iterations"] >= 1)
    assert np.all(run["solver_iterations"] <= 6)  # and not all those before


@pytest.mark.small
def test_the_coupling_s_force_is_on_the_two_joints_alone() -> None:
    """Hinges beside their links' origins, two on one body: what the equality carries stands on its joints."""
    text = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" pos=".1 0 .2"/>
        <joint name="b" axis="1 0 0" pos="0 .1 0"/>
        <geom size=".1" pos="0 0 -.3"/><body pos="0 0 -.5"><joint name="c" axis="0 1 0" pos=".1 .2 0"/>
        <geom type="box" size=".1 .2 .05" pos=".1 0 0"/></body></body></worldbody>
        <equality><joint joint1="c" joint2="a" polycoef="0 2 0 0 0"/></equality></mujoco>"""
    run = simulate(load_text(text, name="test.xml"), steps=50, v0={"a": 1.0, "b": -2.0})
    force = run["tau_coupling"]
    assert force[:, 1] == pytest.approx(0, abs=1e-9)
    assert force[:, 0] == pytest.approx(-2 * force[:, 2], rel=1e-9)
    assert np.abs(force[:, 0]).max() > 0.1


# --- as soft as the file says ----------------------------------------------------------------------------------------

FINGERS = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="a"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  <body name="b" pos="1 0 0"><joint name="b"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  <body name="c" pos="2 0 0"><joint name="c"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
</worldbody>{}</mujoco>"""


def fingers(equality: str, more: str = "") -> Articulation:
    return load_text(FINGERS.format(f"{more}<equality>{equality}</equality>"), name="model.xml")


def test_an_equality_is_exact_unless_its_solref_is_set() -> None:
    hard = '<joint joint1="b" joint2="a"/>'
    soft = '<joint joint1="c" joint2="a" solref="-400 -8"/>'
    default = '<default><equality solref="0.1 0.5"/></default>'
    independent = {
        name: plan_run(fingers(hard + soft, more), RunConfig(coupling=name)).robot.independent_dofs
        for name, more in (("auto", ""), ("exact", ""), ("rows", ""))
    }
    assert independent == {"auto": ("a", "c"), "exact": ("a",), "rows": ("a", "b", "c")}
    assert Robot.of(fingers(hard + soft)).independent_dofs == ("a", "c"), "what compute and batch reduce"
    # K = (1 / (d t ζ))² and B = 2 / (d t), or the negative numbers over d² and d, d = 0.95 where solimp is not set
    model = plan_run(fingers(hard + soft), RunConfig()).robot.model
    assert (model.row_frequency[0] * 2 * np.pi, model.row_damping_ratio[0]) == pytest.approx((20.0 / 0.95, 0.2))
    model = plan_run(fingers(hard + soft, default), RunConfig()).robot.model
    np.testing.assert_allclose(2 * np.pi * model.row_frequency, [20.0 / 0.95, 20.0 / 0.95])
    np.testing.assert_allclose(model.row_damping_ratio, [0.5, 0.2])
    assert np.all(plan_run(fingers(hard + soft), RunConfig(coupling="rows")).robot.model.row_frequency < 0)


@pytest.mark.parametrize(
    ("solref", "error"),
    [
        ('"-400 -8"', 1e-8),
        ('"-400 -8" solimp="0 .9 .2 .3 3"', 1e-7),
        ('".05 .5" solimp=".8 .9 .2 .3 3"', 1e-8),
        ('".02 1" polycoef="0 1 .5 0 0"', 1e-3),
    ],
)
def test_a_soft_equality_moves_as_mujocos(solref: str, error: float) -> None:
    """Two fingers under gravity, one pushed off the other: the same path in RK4, nearly the same in Euler.

    Of a polynomial nearly so in RK4: MuJoCo leaves its slope out of how much the constraint gives way.
    """
    equality = f'<joint joint1="b" joint2="a" solref={solref}/>'
    model = mujoco.MjModel.from_xml_string(FINGERS.format(f"<equality>{equality}</equality>"))
    model.opt.integrator, model.opt.timestep, model.opt.gravity[:] = mujoco.mjtIntegrator.mjINT_RK4, 1e-3, (0, 9.81, 0)
    model.opt.tolerance, model.opt.disableflags = 0, mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos[1] = 0.1
    want = []
    for _ in range(300):
        want.append(data.qpos.copy())
        mujoco.mj_step(model, data)
    for integrator, most in (("rk4", error), ("semi-implicit-euler", 1e-2)):
        run = simulate(
            fingers(equality), steps=300, dt=1e-3, integrator=integrator, q0={"b": 0.1}, gravity=(0.0, 9.81, 0.0)
        )
        np.testing.assert_allclose(run["qpos"], want, rtol=0, atol=most)


@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
def test_a_joint_that_follows_twice(solver: str) -> None:
    """The second equality is a row, so that all three move as one; twice the same one changes nothing."""
    for second in ('<joint joint1="b" joint2="c"/>', '<joint joint1="b" joint2="c"/>' * 2):
        model = fingers('<joint joint1="b" joint2="a"/>' + second)
        run = simulate(model, steps=200, solver=solver, torque={"c": 3.0}, gravity=(0.0, 0.0, 0.0))
        assert run["qpos"][-1, 0] > 0.05
        np.testing.assert_allclose(run["qpos"], run["qpos"][:, :1] * np.ones(3), rtol=0, atol=1e-11)
        inertia = run["qpos"][-1, 0]
    alone = simulate(fingers(""), steps=200, torque={"c": 1.0}, gravity=(0.0, 0.0, 0.0))
    assert inertia == pytest.approx(alone["qpos"][-1, 2], rel=1e-9)
