"""Scenes that froze, broke or heated up other engines: loops that swing for ten seconds, grippers, many followers,
compliance, and rows that contradict each other. `python -m pytest tests/stepping/test_scenes.py -s` prints the figures.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan, plan_run
from tests.benchmarks.loop_correction import COUPLER, CRANK, GROUND, ROCKER, SCALE, closed_start, energy, gap
from tests.conftest import corpus_entries
from tests.simulation import Run, box_link, joint, simulate, urdf

Array = np.ndarray[Any, Any]
STILL = (0.0, 0.0, 0.0)  # [m/s²] no gravity
SWINGS = [("midpoint", 0.004), ("midpoint", 0.001), ("semi-implicit-euler", 0.001), ("rk4", 0.002)]
GAP = 1e-6  # [m]
each_swing = pytest.mark.parametrize(("integrator", "dt"), SWINGS)
each_solver = pytest.mark.parametrize("solver", ["newton", "pgs"])


# --- loops that swing for ten seconds --------------------------------------------------------------------------------


def numbers(values: Any) -> str:
    return " ".join(f"{float(x):.17g}" for x in values)


def four_bar() -> str:
    """The linkage of tests/benchmarks/loop_correction.py, its rods along x."""

    def rod(length: float) -> str:
        across, along = (length**2 + 0.02**2) / 12, 2 * 0.02**2 / 12
        return f'<inertial pos="{length / 2} 0 0" mass="1" diaginertia="{along!r} {across!r} {across!r}"/>'

    hinge = '<joint name="{}" axis="0 1 0"/>'
    return f"""<mujoco><worldbody>
      <body>{hinge.format("crank")}{rod(CRANK)}<body pos="{CRANK} 0 0">{hinge.format("coupler")}{rod(COUPLER)}
        <site name="end" pos="{COUPLER} 0 0"/></body></body>
      <body pos="{GROUND} 0 0">{hinge.format("rocker")}{rod(ROCKER)}<site name="top" pos="{ROCKER} 0 0"/></body>
    </worldbody><equality><connect site1="end" site2="top"/></equality></mujoco>"""


def most_iterations(integrator: str) -> int:
    """Two for each solve: the step's own, and as often as its loops are aimed again (step.py)."""
    return 4 if integrator == "rk4" else 2 * (1 + 3)


@each_swing
def test_four_bar_swings_freely(integrator: str, dt: float) -> None:
    first, second, third = closed_start()
    run = simulate(
        load_text(four_bar(), name="model.xml"),
        steps=round(10 / dt),
        dt=dt,
        integrator=integrator,
        q0={"crank": first, "coupler": second - first, "rocker": third},
        record=("qpos", "qvel", "solver_iterations", "solver_residual"),
    )
    turn = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # joints to angles below the horizontal
    q, v = run["qpos"] @ turn, run["qvel"] @ turn
    opened = max(float(np.linalg.norm(gap(x))) for x in q)
    total = np.array([energy(*x) for x in zip(q, v, strict=True)])
    error = float(np.abs(total - total[0]).max()) / SCALE
    print(f"\nfour-bar {integrator} {dt}: gap {opened * 1e3:.1e} mm, energy {error:.4f} m g L", end="")
    assert opened <= GAP
    assert error <= (0.002 if integrator == "rk4" else 0.1 if dt == 0.004 else 0.025)
    assert run["solver_iterations"].max() <= most_iterations(integrator), "the redundant row costs nothing"
    assert run["solver_residual"].max() <= 1e-10


A, B, ALPHA = 0.3, 0.4, 0.6  # lengths [m] and a twist of the Bennett linkage
BETA = math.asin(B / A * math.sin(ALPHA))


def bennett() -> tuple[str, dict[str, float]]:
    """Bennett's linkage: four skew hinges, by count of rows immovable, and a start at which it is closed.

    Of its four bars one is the ground; the last hinge is two connects on its axis: six rows that take two freedoms.
    """
    start = 1.0
    second = 2 * math.atan(math.sin((BETA + ALPHA) / 2) / math.sin((BETA - ALPHA) / 2) / math.tan(start / 2))

    def turned(angle: float) -> str:
        return numbers((math.cos(angle / 2), math.sin(angle / 2), 0, 0))

    def bar(end: tuple[float, ...], twist: float, names: str) -> str:
        axis = np.array([0, -math.sin(twist), math.cos(twist)])
        sites = (f'<site name="{n}" pos="{numbers(end + s * axis)}"/>' for n, s in zip(names, (0.1, -0.1), strict=True))
        rod = f'<geom type="capsule" fromto="0 0 0 {numbers(end)}" size=".01" mass="1"/>'
        return rod + "".join(sites)

    # bars two and three end on the hinge between them
    last = numbers((-B, 0, 0))
    text = f"""<mujoco><compiler angle="radian"/><worldbody>
      <body><joint name="1"/>{bar((A, 0, 0), 0.0, "xy")}
        <body pos="{A} 0 0" quat="{turned(ALPHA)}"><joint name="2"/>{bar((B, 0, 0), BETA, "ab")}</body></body>
      <body pos="{last}" quat="{turned(-BETA)}"><joint name="4"/>{bar((-A, 0, 0), -ALPHA, "cd")}</body>
    </worldbody><equality><connect site1="a" site2="c"/><connect site1="b" site2="d"/></equality></mujoco>"""
    return text, {"1": start, "2": second, "4": second - 2 * math.pi}


def platform() -> tuple[str, dict[str, float]]:
    """Six legs (universal joint, sprung slide, ball as a connect) under a plate of 2.5 kg, at the springs' rest."""
    height, legs, plate, equalities = 0.6, "", "", ""
    for n in range(6):
        pair, side = n // 2 * 2 * math.pi / 3, n % 2 * 2 - 1
        low = np.array([0.4 * math.cos(pair + 0.3 * side), 0.4 * math.sin(pair + 0.3 * side), 0])
        high = np.array([0.25 * math.cos(pair + 0.75 * side), 0.25 * math.sin(pair + 0.75 * side), height])
        length = float(np.linalg.norm(high - low))
        z = (high - low) / length
        upright = numbers((1 + z[2], -z[1], z[0], 0))  # the shortest turn from z to the leg; not normalised
        legs += f"""<body pos="{numbers(low)}" quat="{upright}"><joint name="x{n}" axis="1 0 0"/>
          <joint name="y{n}" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass=".3"/>
          <body pos="0 0 {length!r}"><joint name="leg{n}" type="slide" stiffness="2000"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".01" mass=".1"/><site name="t{n}"/></body></body>"""
        plate += f'<site name="s{n}" pos="{numbers(high - [0, 0, height])}"/>'
        equalities += f'<connect site1="t{n}" site2="s{n}"/>'
    text = f"""<mujoco><worldbody>{legs}<body pos="0 0 {height}"><freejoint/>
      <geom type="cylinder" size=".25 .02" mass="2.5"/>{plate}</body></worldbody>
      <equality>{equalities}</equality></mujoco>"""
    return text, {}


def gaps(text: str, qpos: Array) -> float:
    """The largest distance that a connect leaves open, by MuJoCo [m]."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    worst = 0.0
    for q in qpos:
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        worst = max(worst, float(np.linalg.norm(data.efc_pos[: data.ne].reshape(-1, 3), axis=1).max()))
    return worst


SPATIAL = {"bennett": (bennett, 9.81 * B, (0.0, 0.0, -9.81)), "6-UPS": (platform, 9.81 * 2.5 * 0.6, (3.0, -2.0, -9.0))}


@each_swing
@pytest.mark.parametrize("name", SPATIAL)
def test_spatial_loops_swing_freely(name: str, integrator: str, dt: float) -> None:
    make, scale, gravity = SPATIAL[name]
    text, start = make()
    run = simulate(
        load_text(text, name="model.xml"),
        steps=round(10 / dt),
        dt=dt,
        integrator=integrator,
        gravity=gravity,
        q0=start,
        record=("qpos", "energy", "tau_loop", "solver_iterations", "solver_residual"),
    )
    opened = gaps(text, run["qpos"][:: max(1, round(0.004 / dt))])
    total = run["energy"].sum(axis=1)
    error = float(np.abs(total - total[0]).max()) / scale
    largest = float(np.abs(run["tau_loop"]).max())
    print(f"\n{name} {integrator} {dt}: gap {opened * 1e3:.1e} mm, energy {error:.4f} m g L, {largest:.3g} N m", end="")
    assert np.ptp(run["qpos"], axis=0).max() > (3.0 if name == "bennett" else 0.02), "it moves"
    assert opened <= GAP
    assert error <= (0.002 if integrator == "rk4" else 0.1 if dt == 0.004 else 0.025)
    assert run["solver_iterations"].max() <= most_iterations(integrator), "redundant rows cost nothing"
    assert run["solver_residual"].max() <= 1e-10
    assert largest < (10 if name == "bennett" else 100), "nor do they carry loads of their own"


# --- a gripper with its loops held hard ------------------------------------------------------------------------------


def open_and_close(plan: Plan) -> Controls:
    """Two seconds shut, two seconds open, for ten seconds of 2 ms steps; shut in the end."""
    starts = np.arange(0, 5000, 1000)
    none = np.zeros((5, plan.robot.nv))
    return Controls(starts, none, none.copy(), none.copy(), np.where(starts % 2000 == 0, 255.0, 0.0)[:, None])


@pytest.mark.corpus
def test_robotiq_gripper_opens_and_closes_hard() -> None:
    """`--coupling exact` holds its loops too, against the file's softness; MuJoCo's beside it, as the file has it."""
    paths = [e["path"] for e in corpus_entries("mjcf") if e["id"] == "mjcf.menagerie-fork.robotiq_2f85_2f85"]
    if not paths:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    model = mujoco.MjModel.from_xml_path(paths[0])
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    assert model.opt.timestep == 0.002

    def opened(rows: Array) -> float:
        worst = 0.0
        for q in rows:
            data.qpos[:] = q
            mujoco.mj_fwdPosition(model, data)
            points = data.efc_pos[: data.ne][model.eq_type[data.efc_id[: data.ne]] == mujoco.mjtEq.mjEQ_CONNECT]
            worst = max(worst, float(np.abs(points).max()))
        return worst

    theirs = []
    for step in range(5000):
        data.ctrl[0] = 255 if step % 2000 < 1000 else 0
        mujoco.mj_step(model, data)
        theirs.append(data.qpos.copy())
    run = simulate(
        load_articulation(paths[0]),
        controls=open_and_close,
        steps=5000,
        dt=0.002,
        coupling="exact",
        record=("qpos", "qvel", "solver_residual"),
    )
    mine, soft = opened(run["qpos"]), opened(np.array(theirs))
    still = float(np.abs(run["qvel"][-100:]).max())
    print(f"\nrobotiq: {mine * 1e3:.1e} mm, MuJoCo's {soft * 1e3:.1e} mm; at rest {still:.1e} rad/s", end="")
    assert run["qpos"][[999, 2999, 4999], 0] == pytest.approx(0.8, abs=1e-3)
    assert run["qpos"][[1999, 3999], 0] == pytest.approx(0.0, abs=1e-2)
    assert mine <= GAP
    assert soft > 10 * GAP
    assert still < 1e-6
    assert run["solver_residual"].max() <= 1e-10


@pytest.mark.parametrize(("coupling", "hard"), [("auto", False), ("exact", True), ("rows", True)])
def test_loops_and_tendons_are_as_hard_as_couplings(coupling: str, hard: bool) -> None:
    text = """<mujoco><worldbody><body name="b"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>
      </worldbody><tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon><equality>
      <connect body1="b" anchor="0 0 0" solref=".05 1"/><tendon tendon1="t" solref=".05 1"/></equality></mujoco>"""
    articulation = load_text(text, name="model.xml")
    plan = plan_run(articulation, RunConfig(contacts=False, coupling=coupling))
    assert plan.equipped is not None
    arrays = plan.equipped.arrays
    assert (arrays.loop_reference[0, 0] < 0, arrays.tendon_row_reference[0, 0] < 0) == (hard, hard)
    assert plan.robot.articulation is articulation, "what is saved is what was loaded"


# --- many followers of one leader ------------------------------------------------------------------------------------

GEARS = (1.0, -1.0, 2.0, 0.5, -0.3, 3.0, -2.5)
MASSES = tuple(0.5 + 0.1 * n for n in range(7))


def inertia(mass: float) -> float:
    """Of box_link about its y axis."""
    return mass * (0.1**2 + 0.3**2) / 12


REDUCED = inertia(1.0) + sum(g * g * inertia(m) for g, m in zip(GEARS, MASSES, strict=True))


def star(*, friction: float = 0.0, upper: float = 1e3, leader_last: bool = False) -> str:
    """Seven flywheels that follow another; friction on the third, an upper limit on the sixth, of gear 3."""
    leader = [box_link("lead", 1.0), joint("lead", "revolute", "base", "lead")]
    followers = []
    for n, (gear, mass) in enumerate(zip(GEARS, MASSES, strict=True)):
        followers += [
            box_link(f"f{n}", mass),
            joint(
                f"f{n}",
                "revolute",
                "base",
                f"f{n}",
                at=(0, n + 1, 0),
                mimic=("lead", gear, 0.01 * n),
                friction=friction if n == 2 else 0.0,
                limit=(-1e3, upper if n == 5 else 1e3),
            ),
        ]
    return urdf(*(followers + leader if leader_last else leader + followers))


def spin(model: str, coupling: str, solver: str, **config: Any) -> Run:
    record = ("qpos", "qvel", "qacc", "tau_coupling", "tau_limit", "solver_iterations")
    settings: dict[str, Any] = {"steps": 50, "dt": 0.002, "gravity": STILL, "iterations": 300, "record": record}
    return simulate(model, coupling=coupling, solver=solver, **settings | config)


each_star = pytest.mark.parametrize("leader_last", [False, True], ids=["leader-first", "leader-last"])
each_coupling = pytest.mark.parametrize("coupling", ["exact", "rows"])


@each_star
@each_coupling
@each_solver
def test_seven_followers_turn_with_their_leader(coupling: str, solver: str, leader_last: bool) -> None:
    """Torques on leader and a follower: q̈ = Gᵀτ / Σ g² I, and each coupling carries what its wheel needs."""
    run = spin(star(leader_last=leader_last), coupling, solver, torque={"lead": 2.0, "f3": 1.0})
    index = run.robot.dofs.index
    want = (2.0 + GEARS[3]) / REDUCED
    assert run["qacc"][:, index("lead")] == pytest.approx(want, rel=1e-9)
    assert run["qvel"][-1, index("lead")] == pytest.approx(49 * 0.002 * want, rel=1e-9)
    for n, (gear, mass) in enumerate(zip(GEARS, MASSES, strict=True)):
        load = inertia(mass) * gear * want - (1.0 if n == 3 else 0.0)
        assert run["tau_coupling"][:, index(f"f{n}")] == pytest.approx(load, abs=1e-9)
        assert run["qpos"][:, index(f"f{n}")] == pytest.approx(gear * run["qpos"][:, index("lead")] + 0.01 * n)
    assert solver == "pgs" or run["solver_iterations"].max() <= 4


@each_star
@each_coupling
@each_solver
@pytest.mark.parametrize("torque", [1.9, 2.5, -2.5])
def test_friction_on_a_follower_acts_through_its_gear(
    coupling: str, solver: str, leader_last: bool, torque: float
) -> None:
    """1 N m on the wheel of gear 2 is 2 N m at the leader: it holds below, and takes 2 N m off above."""
    run = spin(star(friction=1.0, leader_last=leader_last), coupling, solver, torque={"lead": torque})
    want = math.copysign(max(abs(torque) - 2.0, 0.0), torque) / REDUCED
    assert run["qacc"][:, run.robot.dofs.index("lead")] == pytest.approx(want, abs=1e-9 if solver == "newton" else 1e-6)


@each_star
@each_coupling
@pytest.mark.parametrize("stiffness", [1e2, 1e5])
def test_a_follower_at_its_limit_stops_its_leader(coupling: str, leader_last: bool, stiffness: float) -> None:
    """The leader's drive pushes on: the limit carries K (target - q) / gear, nothing moves any more, nothing gives."""
    run = spin(
        star(upper=0.65, leader_last=leader_last),
        coupling,
        "newton",
        steps=400,
        stiffness={"lead": stiffness},
        damping={"lead": stiffness / 10},
        target={"lead": 1.0},
    )
    index = run.robot.dofs.index
    stop = (0.65 - 0.05) / GEARS[5]
    assert run["qpos"][-1, index("lead")] == pytest.approx(stop, abs=1e-12)
    assert run["qpos"][:, index("f5")].max() <= 0.65 + 1e-12
    assert run["tau_limit"][-1, index("f5")] == pytest.approx(-stiffness * (1.0 - stop) / GEARS[5], rel=1e-9)
    assert np.abs(run["qvel"][-100:]).max() <= 1e-9


# --- compliance ------------------------------------------------------------------------------------------------------


def two_carts(first: float, second: float) -> str:
    """Carts of these masses; x_a + 1.7 x_b - 0.3 = 0."""
    parts = []
    for name, mass, follows in (("a", first, ("b", -1.7, 0.3)), ("b", second, None)):
        parts += [
            box_link(f"l{name}", mass),
            joint(name, "prismatic", "base", f"l{name}", axis=(1, 0, 0), mimic=follows),
        ]
    return urdf(*parts)


def seed_spring(frequency: float, damping_ratio: float, h: float, steps: int) -> Array:
    """The carts of 2 and 3 kg by notes on mimic joints, eq. 18 to 29, 1 N on the second one: coordinates (steps, 2)."""
    J, inverse = np.array([1.0, 1.7]), np.array([1 / 2.0, 1 / 3.0])
    r = J**2 @ inverse
    mu = 2 * np.pi * frequency
    stiffness, damping = mu**2 / r, 2 * damping_ratio * mu / r
    cfm = 1 / (h * (h * stiffness + damping))
    erp = h * stiffness / (h * stiffness + damping)
    x, v = np.array([0.5, 0.1]), np.array([0.0, 0.4])
    rows = []
    for _ in range(steps):
        rows.append(x.copy())
        v = v + h * inverse * np.array([0.0, 1.0])
        v = v - inverse * J * (erp * (J @ x - 0.3) / h + J @ v) / (r + cfm)
        x = x + h * v
    return np.array(rows)


def ring(first: float, second: float, frequency: float, damping_ratio: float, solver: str, **config: Any) -> Array:
    settings = {"steps": 500, "dt": 0.004, "gravity": STILL, "q0": {"a": 0.5, "b": 0.1}, "record": ("qpos",), **config}
    compliance = {"coupling": "compliant", "coupling_frequency": frequency, "coupling_damping": damping_ratio}
    return simulate(two_carts(first, second), solver=solver, iterations=100, **settings, **compliance)["qpos"]


each_spring = pytest.mark.parametrize(("frequency", "damping_ratio"), [(5.0, 0.3), (40.0, 1.0), (2.0, 0.0)])


@each_spring
@each_solver
def test_a_compliant_coupling_is_the_seeds_spring(frequency: float, damping_ratio: float, solver: str) -> None:
    mine = ring(
        2.0, 3.0, frequency, damping_ratio, solver, v0={"a": 0.0, "b": 0.4}, torque={"b": 1.0}, scheme_alpha=1.0
    )
    assert np.abs(mine - seed_spring(frequency, damping_ratio, 0.004, 500)).max() <= 1e-12


@each_spring
def test_a_compliant_coupling_rings_alike_for_all_masses(frequency: float, damping_ratio: float) -> None:
    errors = [
        ring(first, second, frequency, damping_ratio, "newton") @ [1.0, 1.7] - 0.3
        for first, second in ((2.0, 3.0), (2000.0, 3000.0), (2.0, 3e-3), (100.0, 0.6))
    ]
    assert np.ptp(errors[0]) > 0.1
    for other in errors[1:]:
        assert np.abs(other - errors[0]).max() <= 1e-9


# --- rows that contradict each other ---------------------------------------------------------------------------------


def limbs(*limits: str, equality: str = "", more: str = "", place: str = "") -> Articulation:
    """Hinged boxes a, b, c side by side with these limits; `more` is fixed to the first, `place` to the world."""
    parts = "".join(
        f'<body pos="{n} 0 0"><joint name="{"abc"[n]}" axis="0 1 0" {limit and f"range={chr(34)}{limit}{chr(34)}"}/>'
        f'<geom type="box" size=".1 .05 .2" pos=".1 0 -.1"/>{more if n == 0 else ""}</body>'
        for n, limit in enumerate(limits)
    )
    text = f"""<mujoco><compiler angle="radian" autolimits="true"/><worldbody>{place}{parts}</worldbody>
      <equality>{equality}</equality></mujoco>"""
    return load_text(text, name="model.xml")


def follows(follower: str, leader: str, offset: float, gear: float) -> str:
    return f'<joint joint1="{follower}" joint2="{leader}" polycoef="{offset} {gear} 0 0 0"/>'


POINT, FAR, NEAR = '<site name="s" pos=".3 0 0"/>', '<site name="w" pos="1.5 0 .5"/>', '<site name="w" pos="0 0 .3"/>'
CLOSE = '<connect site1="s" site2="w"/>'
IMPOSSIBLE = {
    "limits that a coupling keeps apart": limbs("-.1 .1", "-.2 .2", equality=follows("b", "a", 1, 1)),
    "two offsets": limbs("", "", equality=follows("b", "a", 0.1, 1) + follows("b", "a", -0.1, 1)),
    "a loop behind a limit": limbs("-.1 .1", more=POINT, place=NEAR, equality=CLOSE),
}
POSSIBLE = {
    "a loop out of reach": (limbs("", more=POINT, place=FAR, equality=CLOSE), {}),
    "two gears": (
        limbs("", "", "", equality=follows("b", "a", 0, 1) + follows("c", "b", 0, 1) + follows("c", "a", 0, 2)),
        {"torque": {"a": 5.0}},
    ),
    "far outside": (limbs("-.1 .1", "-.2 .2", equality=follows("b", "a", 0, 1)), {"q0": {"a": 2.0}}),
    "a drive without bound": (
        limbs("-.1 .1", "", equality=follows("b", "a", 0, 1)),
        {"stiffness": {"a": 1e7}, "damping": {"a": 1e5}, "target": {"a": 1.0}},
    ),
}
RECORD = ("qpos", "qvel", "tau_limit", "tau_coupling", "tau_loop", "solver_residual", "solver_iterations")


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_held_is_a_compromise(name: str) -> None:
    """The least squares of what is left over: it comes to rest, forces stay finite, the residual tells of it."""
    run = simulate(IMPOSSIBLE[name], steps=300, dt=0.004, coupling="rows", record=RECORD)
    left, speed = float(run["solver_residual"].max()), float(np.abs(run["qvel"]).max())
    rest = float(np.abs(run["qvel"][-1]).max())
    print(f"\n{name}: residual {left:.1e}, speed {speed:.1f}, in the end {rest:.1e}, at {run['qpos'][-1]}", end="")
    assert all(np.all(np.isfinite(values)) for values in run.rows.values())
    assert speed < 15
    assert name == "two offsets" or rest < 0.1
    assert run.simulation.worst_residual == left
    assert name == "a loop behind a limit" or left > 0.1  # that one gives way by itself, as far as it must
    if name == "two offsets":
        assert run["qpos"][-1, 0] == pytest.approx(run["qpos"][-1, 1], abs=1e-6)
    if name == "a loop behind a limit":
        assert run["qpos"][-1, 0] == pytest.approx(-0.1, abs=1e-6)


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_can_be_held_is_held(name: str) -> None:
    model, config = POSSIBLE[name]
    run = simulate(model, steps=300, dt=0.004, record=RECORD, **config)
    assert all(np.all(np.isfinite(values)) for values in run.rows.values())
    assert np.abs(run["qvel"]).max() < 30
    assert np.abs(run["qvel"][-1]).max() < (0.3 if model.loops else 1e-9)
    assert run["solver_residual"].max() < 1e-9
    ends = {"two gears": 0.0, "far outside": 0.1, "a drive without bound": 0.1}
    if name in ends:
        assert run["qpos"][-1] == pytest.approx(ends[name], abs=1e-9)


def test_what_is_outside_returns_within_its_velocity_limit() -> None:
    arm = urdf(box_link("l", 1.0, (0, 0, -0.2)), joint("a", "revolute", "base", "l", limit=(-0.1, 0.1), velocity=0.5))
    record = ("qpos", "qvel", "solver_residual")
    run = simulate(arm, steps=1000, dt=0.004, q0={"a": 1.0}, velocity_limits=True, record=record)
    assert run["qvel"].min() >= -0.5 - 1e-12
    assert run["qpos"][500:, 0].max() <= 0.1 + 1e-12
    assert run["solver_residual"].max() <= 1e-10
