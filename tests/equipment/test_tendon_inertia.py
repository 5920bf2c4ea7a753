"""Tendons' armature in M, bias and what follows from them: closed forms, MuJoCo, differences, identities; runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.quantities.catalogue import WITH_INERTIA
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.joint_values import TRACKING_FREQUENCY
from tests.equipment.mujoco_tendons import dropped_inertia, moments_of
from tests.equipment.test_tendons import CRANE, hanging, run
from tests.simulation import simulate

Array = np.ndarray[Any, np.dtype[np.float64]]
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

ALL = (*sorted(WITH_INERTIA), "gravity")
MATRICES = ("mass_matrix", "inverse_mass_matrix")

# two branches below a ball, one of them with a follower, and a free body; tendons of one, of two branches, with pulley
NET = """<mujoco><worldbody><site name="a" pos=".3 .1 1"/>
  <body pos="0 0 1"><joint name="p" type="ball"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 -.2"/>
    <body pos=".3 0 -.2"><joint name="q" axis="0 1 0" armature=".02"/><geom size=".05" pos="0 0 -.2"/>
      <site name="b" pos=".05 0 -.2"/>
      <body pos="0 0 -.2"><joint name="s" type="slide" axis="1 0 1"/><geom size=".04" pos=".1 0 0"/>
        <site name="c" pos=".1 .02 0"/></body></body>
    <body pos="-.2 0 -.1"><joint name="r" axis="1 0 0"/><geom size=".05" pos="0 .1 0"/><site name="d" pos="0 .1 .03"/>
    </body></body>
  <body name="stone" pos=".3 .4 .6"><freejoint/><geom size=".06" pos=".01 .02 .03"/><site name="e" pos=".05 0 .02"/>
  </body></worldbody>
  <tendon>
  <spatial name="one" armature="3"><site site="a"/><site site="c"/></spatial>
  <spatial name="idle"><site site="a"/><site site="b"/></spatial>
  <spatial name="two" armature=".7"><site site="c"/><site site="d"/><pulley divisor="2"/><site site="b"/>
    <site site="e"/></spatial>
  <fixed name="sum" armature=".4"><joint joint="q" coef="2"/><joint joint="r" coef="-.5"/></fixed></tendon>
  <equality><joint joint1="s" joint2="q" polycoef=".01 .3 .2 .1 0"/></equality></mujoco>"""


@cache
def net(text: str = NET) -> tuple[Robot, Robot, Any, Any]:
    """The robot, the same without tendon armature, and MuJoCo's model and data."""
    articulation = load_text(text, name="test.xml")
    bare = replace(articulation, tendons=tuple(replace(t, armature=0.0) for t in articulation.tendons))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return Robot.of(articulation), Robot.of(bare), model, mujoco.MjData(model)


def states(model: Any, rows: int, seed: int = 3) -> tuple[Array, Array, Array, Array]:
    """Coordinates, velocities, accelerations and joint forces."""
    rng = np.random.default_rng(seed)
    qpos = model.qpos0 + 0.4 * rng.normal(size=(rows, model.nq))
    for q in qpos:
        mujoco.mj_normalizeQuat(model, q)
    v, a, tau = rng.normal(size=(3, rows, model.nv))
    return qpos, v, a, tau


def at(model: Any, data: Any, q: Array, v: Array) -> Array:
    """MuJoCo's tendon moments (nt, nv) at a state; what else it finds stands in data."""
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    return moments_of(model, data)


def times(M: Array, x: Array) -> Array:
    """M x, row by row."""
    product: Array = (M @ x[..., None])[..., 0]
    return product


# ------------------------------------------------------------------ closed forms


@pytest.mark.small
def test_a_fixed_tendon_in_closed_form() -> None:
    """A mass of 2 kg on x, a tendon of length 3 x and armature 0.5 kg."""
    robot = Robot.of(load_text(hanging('armature=".5"'), name="test.xml"))
    out = robot.compute(np.array([0.1]), np.array([0.3]), np.array([0.7]), np.array([5.0]), quantities=ALL)
    M, g = 2 + 0.5 * 9, 2 * 9.81
    assert out["mass_matrix"] == pytest.approx(M, rel=1e-14)
    assert out["inverse_mass_matrix"] == pytest.approx(1 / M, rel=1e-14)
    assert out["bias"] == pytest.approx(g, rel=1e-14)
    assert out["inverse_dynamics"] == pytest.approx(M * 0.7 + g, rel=1e-14)
    assert out["forward_dynamics"] == pytest.approx((5 - g) / M, rel=1e-14)
    assert out["kinetic_energy"] == pytest.approx(0.5 * M * 0.09, rel=1e-14)


CROSS = """<mujoco><worldbody><site name="o"/>
  <body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/><site name="u"/></body>
  <body><joint name="y" type="slide" axis="0 1 0"/><geom size=".1" mass="1"/><site name="w"/></body></worldbody>
  <tendon><spatial armature=".5"><site site="u"/><site site="w"/></spatial></tendon></mujoco>"""


@pytest.mark.small
def test_a_tendon_between_two_branches_couples_them() -> None:
    """L² = x² + y² of two slides at right angles: J = (x, y) / L, J̇ v = (v² - L̇²) / L."""
    robot = Robot.of(load_text(CROSS, name="test.xml"), gravity=(0, 0, 0))
    q, v = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    J = q / 0.5
    out = robot.compute(q, v, quantities=ALL)
    assert out["mass_matrix"] == pytest.approx(np.diag([2.0, 1.0]) + 0.5 * np.outer(J, J), rel=1e-14)
    assert out["bias"] == pytest.approx(0.5 * J * (v @ v - (J @ v) ** 2) / 0.5, rel=1e-13)
    assert out["coriolis"] == pytest.approx(out["bias"], rel=1e-13)
    assert out["kinetic_energy"] == pytest.approx(0.5 * (2 + 4) + 0.25 * (J @ v) ** 2, rel=1e-14)


# ------------------------------------------------------------------ MuJoCo, differences, identities


@pytest.mark.small
def test_mass_matrix_and_bias_are_mujocos() -> None:
    """With what MuJoCo's M drops: the entries between dofs of two branches, which its bias is right without."""
    robot, _, model, data = net()
    q, v, _, _ = states(model, 10)
    out = robot.compute(q, v, quantities=["mass_matrix", "bias"])
    M = np.zeros((model.nv, model.nv))
    for k in range(len(q)):
        at(model, data, q[k], v[k])
        mujoco.mj_fullM(model, data, M)
        dropped = dropped_inertia(model, data)
        assert np.abs(dropped).max() > 0.1
        assert out["mass_matrix"][k] == pytest.approx(M + dropped, rel=1e-12, abs=1e-13)
        assert out["bias"][k] == pytest.approx(data.qfrc_bias, rel=1e-12, abs=1e-12)


@pytest.mark.small
def test_the_bias_holds_the_moments_rates() -> None:
    """Jᵀ armature J̇ v, J̇ by differences of MuJoCo's moments along the motion."""
    robot, bare, model, data = net()
    q, v, _, _ = states(model, 5)
    found = robot.compute(q, v, quantities=["bias"])["bias"] - bare.compute(q, v, quantities=["bias"])["bias"]
    for k in range(len(q)):
        moments = []
        for step in (-1e-5, 0.0, 1e-5):
            moved = q[k].copy()
            mujoco.mj_integratePos(model, moved, v[k], step)
            moments.append(at(model, data, moved, v[k]))
        rates = (moments[2] - moments[0]) @ v[k] / 2e-5
        assert found[k] == pytest.approx(moments[1].T @ (model.tendon_armature * rates), abs=1e-6)


@pytest.mark.small
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("text", [NET, CRANE.format("")], ids=["net", "crane"])
def test_quantities_belong_together(text: str, reduced: bool) -> None:
    robot, _, model, _ = net(text)
    q, v, a, tau = states(model, 11)
    out = robot.compute(q, v, a, tau, quantities=[*ALL, "coupling_matrix"], reduced=reduced)
    M, free = out["mass_matrix"], list(robot.model.independent_dof) if reduced else slice(None)
    force = times(out["coupling_matrix"].swapaxes(1, 2), tau) if reduced else tau
    assert np.all(M.swapaxes(1, 2) == M)
    assert np.abs(out["inverse_mass_matrix"] @ M - np.eye(M.shape[1])).max() < 1e-11
    assert np.all(out["inverse_mass_matrix"].swapaxes(1, 2) == out["inverse_mass_matrix"])
    assert out["coriolis"] + out["gravity"] == pytest.approx(out["bias"], abs=1e-12)
    assert times(M, a[:, free]) + out["bias"] == pytest.approx(out["inverse_dynamics"], abs=1e-11)
    assert times(M, out["forward_dynamics"]) + out["bias"] == pytest.approx(force, abs=1e-10)
    if text != NET or reduced:
        assert 0.5 * np.sum(v[:, free] * times(M, v[:, free]), axis=1) == pytest.approx(
            out["kinetic_energy"], rel=1e-12
        )


@pytest.mark.small
def test_reduced_quantities_are_the_full_ones_through_the_coupling() -> None:
    """q = g(y), v = G u, a = G u̇ + Ġ u, the follower's by hand; forces through Gᵀ."""
    robot, _, model, _ = net()
    q, v, a, _ = states(model, 7)
    leader, follower = robot.dofs.index("q"), robot.dofs.index("s")
    x, speed = q[:, robot.coords.index("q")], v[:, leader]
    slope, bend = 0.3 + 0.4 * x + 0.3 * x**2, 0.4 + 0.6 * x
    given = q, v, a
    q, v, a = q.copy(), v.copy(), a.copy()
    q[:, robot.coords.index("s")] = 0.01 + 0.3 * x + 0.2 * x**2 + 0.1 * x**3
    v[:, follower] = slope * speed
    a[:, follower] = slope * a[:, leader] + bend * speed**2
    full = robot.compute(q, v, a, quantities=ALL)
    out = robot.compute(*given, quantities=[*ALL, "coupling_matrix"], reduced=True)
    G = out["coupling_matrix"]
    Gt = G.swapaxes(1, 2)
    assert out["mass_matrix"] == pytest.approx(Gt @ full["mass_matrix"] @ G, abs=1e-13)
    assert out["inverse_dynamics"] == pytest.approx(times(Gt, full["inverse_dynamics"]), abs=1e-12)
    assert out["kinetic_energy"] == pytest.approx(full["kinetic_energy"], rel=1e-13)


@pytest.mark.small
def test_wrenches_enter_forward_dynamics() -> None:
    robot, _, model, _ = net()
    q, v, _, tau = states(model, 3)
    wrench = np.random.default_rng(1).normal(size=(3, len(robot.links), 6))
    names = ["mass_matrix", "bias", "forward_dynamics", "external_force"]
    out = robot.compute(q, v, None, tau, wrench, quantities=names)
    force = times(out["mass_matrix"], out["forward_dynamics"]) + out["bias"] + out["external_force"]
    assert force == pytest.approx(tau, abs=1e-10)


@pytest.mark.small
@pytest.mark.parametrize("reduced", [False, True])
def test_a_quantity_does_not_depend_on_what_else_is_asked_for(reduced: bool) -> None:
    robot, _, model, _ = net()
    given = states(model, 9)
    out = robot.compute(*given, quantities=ALL, reduced=reduced)
    packed = robot.compute(*given, quantities=ALL, reduced=reduced, packed=True)
    for name in ALL:
        alone = robot.compute(*given, quantities=[name], reduced=reduced)[name]
        assert np.array_equal(alone, out[name]), name
        if name in MATRICES:
            rows, columns = np.tril_indices(out[name].shape[1])
            assert np.array_equal(packed[name], out[name][:, rows, columns]), name
        else:
            assert np.array_equal(packed[name], out[name]), name


@pytest.mark.small
def test_quaternions_are_normalised() -> None:
    robot, _, model, _ = net()
    q, v, a, tau = states(model, 2)
    ball = slice(robot.coords.index("p.qw"), robot.coords.index("p.qz") + 1)
    right = robot.compute(q, v, a, tau, quantities=ALL)
    q[:, ball] *= 1.7
    scaled = robot.compute(q, v, a, tau, quantities=ALL)
    for name in ALL:
        assert scaled[name] == pytest.approx(right[name], rel=1e-10, abs=1e-11), name


def test_rows_are_the_same_bytes_in_any_block_and_thread() -> None:
    robot, _, model, _ = net()
    given = states(model, 2500)
    whole = robot.compute(*given, quantities=ALL, threads=1)
    threads = robot.compute(*given, quantities=ALL, threads=3)
    parts = [robot.compute(*(x[k : k + 100] for x in given), quantities=ALL) for k in range(0, 2500, 100)]
    for name in ALL:
        assert whole[name].tobytes() == threads[name].tobytes(), name
        assert whole[name].tobytes() == np.concatenate([part[name] for part in parts]).tobytes(), name


def test_rows_without_a_result_are_marked_and_leave_the_others_alone() -> None:
    robot, _, model, _ = net()
    given = states(model, 20)
    right = robot.compute(*given, quantities=ALL)
    given[0][3, 5], given[1][4, 2], given[2][5, 0], given[3][6, 1] = np.nan, np.inf, 1e300, np.nan
    out = robot.compute(*given, quantities=[*ALL, "status"])
    assert list(np.flatnonzero(out["status"])) == [3, 4, 5, 6]
    good = out["status"] == 0
    for name in ALL:
        assert np.all(np.isnan(out[name][~good])), name
        assert np.array_equal(out[name][good], right[name][good]), name


# ------------------------------------------------------------------ runs


@pytest.mark.small
@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
@pytest.mark.parametrize("text", [NET, CRANE.format("")], ids=["net", "crane"])
def test_recorded_matrices_are_those_of_compute_and_balance(text: str, integrator: str) -> None:
    """`tests.equipment.test_tendons.run` balances M qacc + bias with the forces; here they are bare but for
    couplings."""
    robot = net(text)[0]
    v0 = {"q": 3.0, "p.wx": 1.0, "p.wy": -2.0}
    found = run(text, steps=8, dt=0.002, integrator=integrator, v0=v0)
    more = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "energy")
    recorded = simulate(load_text(text, name="test.xml"), record=more, steps=8, dt=0.002, integrator=integrator, v0=v0)
    out = robot.compute(recorded["qpos"], recorded["qvel"], quantities=["mass_matrix", "bias", "kinetic_energy"])
    assert recorded["mass_matrix"] == pytest.approx(out["mass_matrix"], rel=1e-11, abs=1e-12)
    assert recorded["bias"] == pytest.approx(out["bias"], rel=1e-11, abs=1e-11)
    assert recorded["energy"][:, 0] == pytest.approx(out["kinetic_energy"], rel=1e-12)
    assert np.abs(found["tau_tendon"]).max() < 1e-11 * np.abs(found["bias"]).max()
    if text == NET:
        G = robot.compute(found["qpos"], quantities=["coupling_matrix"])["coupling_matrix"]
        assert np.abs(found["tau_coupling"]).max() > 0.1
        assert times(G.swapaxes(1, 2), found["tau_coupling"]) == pytest.approx(0, abs=1e-9)


@pytest.mark.small
def test_the_energy_is_kept() -> None:
    """Kinetic energy with the tendon's: RK4 keeps the sum, the summary has the same."""
    found = simulate(
        load_text(CRANE.format(""), name="test.xml"),
        record=("energy",),
        steps=101,
        dt=0.001,
        integrator="rk4",
        v0={"q": 3.0, "p.wx": 1.0, "p.wy": -2.0},
    )
    total = found["energy"].sum(axis=1)
    assert np.ptp(found["energy"][:, 0]) > 0.1
    assert total == pytest.approx(total[0], abs=1e-8)
    assert found.simulation.energy == pytest.approx((total[0], total[0]), abs=1e-8)


@pytest.mark.small
def test_springs_and_inertia_of_a_tendon_are_told_apart() -> None:
    """tau_tendon is the spring's force alone, 3 × 40 × the stretch."""
    found = run(hanging('armature=".5" stiffness="40" springlength="0"'), steps=50, dt=0.002)
    assert found["tau_tendon"] == pytest.approx(-3 * 40 * 3 * found["qpos"], abs=1e-10)
    assert found["mass_matrix"] == pytest.approx(2 + 0.5 * 9)


@pytest.mark.small
@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_computed_torque_knows_the_inertia(integrator: str) -> None:
    """The errors of q and r begin with the accelerations that the controller asks for; a step of Euler is their mean.

    What the coupling bends over a step makes that another by the square of the step.
    """
    text = NET.replace('<joint name="p" type="ball"/>', '<joint name="p" axis="0 1 .3"/>')
    text = text.replace("<freejoint/>", '<joint name="z" type="slide"/>')
    options = {"controller": "computed-torque", "integrator": integrator, "target": {"q": 0.2}, "v0": {"r": 0.5}}
    gain = TRACKING_FREQUENCY
    errors = []
    for dt in (1e-3, 1e-4):
        found = run(text, steps=2, dt=dt, **options)
        began = [found["qacc"][0, found.robot.dofs.index(name)] for name in ("q", "r", "p", "z")]
        errors.append(np.abs(np.subtract(began, [gain**2 * 0.2, -2 * gain * 0.5, 0, 0])).max())
    if integrator == "rk4":
        assert max(errors) < 1e-8
    else:
        assert errors[0] < 0.01 and errors[0] / errors[1] == pytest.approx(100, rel=0.1)


def test_what_a_solver_leaves_unsolved_is_told() -> None:
    """One sweep does not give the inertias what they need: the rest is in tau_tendon, and the forces still balance.

    The coupling is a straight line: sweeping solvers evaluate no step again for what bends.
    """
    straight = NET.replace('polycoef=".01 .3 .2 .1 0"', 'polycoef=".01 .3"')
    assert straight != NET
    one, all_ = (run(straight, steps=20, dt=0.002, solver="pgs", iterations=n, v0={"q": 3.0}) for n in (1, 1000))
    exact = run(straight, steps=20, dt=0.002, integrator="semi-implicit-euler", v0={"q": 3.0})
    assert np.abs(one["tau_tendon"]).max() > 0.01
    assert np.abs(all_["tau_tendon"]).max() < 1e-8
    assert all_["qpos"] == pytest.approx(exact["qpos"], abs=1e-10)


# two slides of one body along one line, and a hinge: the slides' difference moves nothing but the tendon
ONE_LINE = """<mujoco><option integrator="RK4"/><worldbody>
  <body name="b"><joint name="a" type="slide" axis="1 0 0"/><joint name="b" type="slide" axis="1 0 0"/>
    <joint name="c" axis="0 1 0"/><geom size=".1" mass="1" pos=".1 0 .2"/></body></worldbody>
  <tendon><fixed name="t" armature=".5"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>
  </mujoco>"""


@pytest.mark.parametrize("packed", [False, True])
def test_a_tendon_s_inertia_makes_m_regular(packed: bool) -> None:
    """M⁻¹ and accelerations, wrenches on the link included."""
    robot, _, model, data = net(ONE_LINE)
    qpos, qvel, _, tau = states(model, 5)
    wrench = np.random.default_rng(2).normal(size=(5, 1, 6))
    quantities = ["inverse_mass_matrix", "forward_dynamics"]
    found = robot.compute(qpos, qvel, tau=tau, wrench=wrench, quantities=quantities, links=["b"], packed=packed)
    for n in range(5):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos[n], qvel[n], tau[n]
        data.xfrc_applied[1] = wrench[n, 0]
        mujoco.mj_forward(model, data)
        assert np.abs(found["forward_dynamics"][n] - data.qacc).max() <= 1e-11 * max(1.0, np.abs(data.qacc).max())
        M = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, M)
        inverse = found["inverse_mass_matrix"][n]
        want = np.linalg.inv(M)
        assert np.abs(inverse - (want[np.tril_indices(3)] if packed else want)).max() <= 1e-11 * np.abs(want).max()


@pytest.mark.parametrize("solver", ["newton", "propagation", "direct"])
def test_what_only_a_tendon_resists_moves_as_in_mujoco(solver: str) -> None:
    """By RK4 to rounding, by the default step to the order of the step."""
    _, _, model, data = net(ONE_LINE)
    mujoco.mj_resetData(model, data)
    model.opt.timestep = 0.002
    data.qfrc_applied[:] = [1.0, 0.0, 0.3]
    mujoco.mj_forward(model, data)
    first = data.qacc.copy()
    for _ in range(20):
        mujoco.mj_step(model, data)
    torque = {"a": 1.0, "c": 0.3}
    if solver == "newton":
        stages = run(ONE_LINE, steps=20, dt=0.002, integrator="rk4", torque=torque)
        assert np.abs(stages.simulation.qpos - data.qpos).max() <= 1e-12
    steps = run(ONE_LINE, steps=20, dt=0.002, integrator="semi-implicit-euler", solver=solver, torque=torque)
    assert np.abs(steps["qacc"][0] - first).max() <= 1e-2 * np.abs(first).max()
    assert np.abs(steps.simulation.qpos - data.qpos).max() <= 0.002 * np.abs(data.qvel).max()
