"""Tendons, actuators, ranges of balls and passive forces by the oracle, against closed forms and the reduced engine;
wrenches and held weights in maximal coordinates themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.conftest import ROOT, corpus_entries
from tests.maximal.oracle.simulation import oracle_of
from tests.maximal.test_maximal_contacts import maximal, rows_of, run
from tests.simulation import Run

Array = np.ndarray[Any, Any]
SCHEMES = ("baumgarte", "implicit")
G = 9.81


def oracle(articulation: Articulation, scheme: str = "implicit", **config: Any) -> Run:
    given = RunConfig(base=articulation.base, coordinates="maximal", scheme=scheme, **config)
    return rows_of(oracle_of(articulation, given))


def model(text: str) -> Articulation:
    return load_text(f"<mujoco>{text}</mujoco>", name="test.xml", meshes=False)


def slider(name: str, pos: str, mass: float, axis: str = "0 0 1", more: str = "") -> str:
    return f"""<body name="{name}" pos="{pos}"><joint name="{name}" type="slide" axis="{axis}"{more}/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="1 1 1"/><site name="{name}"/></body>"""


def ends(*names: str) -> str:
    return "".join(f'<site site="{name}"/>' for name in names)


def parting(articulation: Articulation, steps: tuple[float, ...], time: float, **config: Any) -> list[float]:
    """How far the two engines' coordinates differ at most, by time step."""
    apart = []
    for h in steps:
        given = {"steps": round(time / h), "dt": h, "record": ("qpos",), **config}
        apart.append(float(np.max(np.abs(run(articulation, **given)["qpos"] - oracle(articulation, **given)["qpos"]))))
    return apart


# ------------------------------------------------------------------ tendons


def test_a_mass_on_a_tendon_spring_swings_with_its_period() -> None:
    """2 π √(m/k), to the order of the step: implicit springs at α = β = 1/2 keep the energy."""
    text = f"""<option gravity="0 0 0"/><worldbody><site name="o"/>{slider("x", "0 0 1", 2.0)}</worldbody>
      <tendon><spatial name="t" stiffness="50" springlength="1">{ends("o", "x")}</spatial></tendon>"""
    omega, start = 5.0, 0.1
    half = {"scheme_alpha": 0.5, "scheme_beta": 0.5}
    config = {"dt": 1e-3, "steps": 700, "q0": {"x": start}, "record": ("qpos", "energy", "tendon_length")}
    found = oracle(model(text), **config, **half)
    time = 1e-3 * np.arange(700)
    assert np.allclose(found["qpos"][:, 0], start * np.cos(omega * time), rtol=0, atol=2e-6)
    assert np.allclose(found["energy"].sum(axis=1), 0.5 * 50 * start**2, rtol=1e-9)
    assert np.allclose(found["tendon_length"][:, 0], 1.0 + found["qpos"][:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_masses_over_a_pulley_move_as_atwood_s(scheme: str) -> None:
    """g (m1 - m2) / (m1 + m2), with 2 m1 m2 g / (m1 + m2) in the rope, whose limit of length holds it."""
    text = f"""<worldbody><site name="p" pos="-.1 0 2"/><site name="q" pos=".1 0 2"/>
      {slider("a", "-.1 0 1", 3.0)}{slider("b", ".1 0 1", 2.0)}</worldbody>
      <tendon><spatial name="rope" limited="true" range="0 2.2">{ends("a", "p", "q", "b")}</spatial></tendon>"""
    found = oracle(model(text), scheme, steps=200, dt=1e-3, record=("qvel", "tendon_force", "tau_tendon"))
    rate = G * (3.0 - 2.0) / 5.0
    assert np.allclose(found["qvel"][:, 0], -1e-3 * np.arange(200) * rate, rtol=1e-8, atol=1e-10)
    assert np.allclose(found["qvel"][:, 1], 1e-3 * np.arange(200) * rate, rtol=1e-8, atol=1e-10)
    assert np.allclose(found["tendon_force"], -2 * 3 * 2 * G / 5, rtol=1e-8)
    assert np.allclose(found["tau_tendon"], 2 * 3 * 2 * G / 5, rtol=1e-8)


def test_a_tendon_equality_and_the_friction_of_a_tendon() -> None:
    text = f"""<option gravity="0 0 0"/><worldbody>{slider("a", "0 0 1", 1.0)}{slider("b", "1 0 1", 1.0)}</worldbody>
      <tendon><fixed name="s" frictionloss="2"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed>
      <fixed name="d"><joint joint="a" coef="1"/></fixed><fixed name="e"><joint joint="b" coef="2"/></fixed></tendon>
      <equality><tendon tendon1="d" tendon2="e" polycoef="0 1 0 0 0"/></equality>"""
    config = {"steps": 100, "dt": 1e-3, "record": ("qpos", "qvel", "tendon_force")}
    held = oracle(model(text), torque={"a": 1.0, "b": 1.0}, coupling="rows", **config)
    # a = 2 b: a force F along the sum, 3 b, less 2; 1 · 2 + 1 = 3 < 6 does not move it
    assert np.max(np.abs(held["qpos"])) < 1e-12
    moved = oracle(model(text), torque={"a": 4.0, "b": 1.0}, coupling="rows", **config)
    rate = (2 * 4.0 + 1.0 - 3 * 2.0) / (4 * 1.0 + 1.0)
    assert np.allclose(moved["qvel"][:, 1], rate * 1e-3 * np.arange(100), rtol=1e-8, atol=1e-10)
    assert np.allclose(moved["qpos"][:, 0], 2 * moved["qpos"][:, 1], rtol=0, atol=1e-12)
    assert np.allclose(moved["tendon_force"][5:, 0], -2.0, rtol=1e-9)


# ------------------------------------------------------------------ actuators


@pytest.mark.parametrize("scheme", SCHEMES)
def test_motors_act_with_their_gear_up_to_their_bound(scheme: str) -> None:
    text = f"""<option gravity="0 0 0"/><worldbody>{slider("a", "0 0 1", 2.0)}{slider("b", "1 0 1", 2.0)}</worldbody>
      <actuator><motor name="a" joint="a" gear="3"/><motor name="b" joint="b" forcerange="-1 1"/></actuator>"""
    config = {"control": {"a": 0.5, "b": 7.0}, "record": ("qvel", "actuator_force", "tau_drive")}
    found = oracle(model(text), scheme, steps=50, dt=1e-3, **config)
    assert np.allclose(found["qvel"], 1e-3 * np.arange(50)[:, None] * [0.75, 0.5], rtol=1e-12)
    assert np.allclose(found["actuator_force"], [0.5, 1.0])
    assert np.allclose(found["tau_drive"], [1.5, 1.0])


def test_a_servo_reaches_its_target_and_pushes_with_its_bound_on_the_way() -> None:
    text = f"""<option gravity="0 0 0"/><worldbody>{slider("a", "0 0 1", 1.0)}</worldbody>
      <actuator><position name="a" joint="a" kp="1000" kv="100" forcerange="-5 5"/></actuator>"""
    config = {"control": {"a": 0.05}, "record": ("qpos", "qvel", "actuator_force")}
    found = oracle(model(text), steps=500, dt=3e-3, **config)
    assert np.allclose(found["actuator_force"][:10], 5.0)
    assert np.allclose(found["qvel"][:10, 0], 15e-3 * np.arange(10))
    assert found["qpos"][-1, 0] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("dynamics", ["integrator", "filter", "filterexact"])
def test_activations_follow_their_equations(dynamics: str) -> None:
    text = f"""<option gravity="0 0 0"/><worldbody>{slider("a", "0 0 1", 1.0)}</worldbody>
      <actuator><general name="a" joint="a" dyntype="{dynamics}" dynprm=".05" gainprm="2"/></actuator>"""
    found = oracle(model(text), steps=100, dt=1e-3, control={"a": 0.7}, record=("activation", "actuator_force"))
    time = 1e-3 * np.arange(100)
    wanted = {
        "integrator": 0.7 * time,
        "filter": 0.7 * (1 - (1 - 1e-3 / 0.05) ** np.arange(100)),
        "filterexact": 0.7 * (1 - np.exp(-time / 0.05)),
    }[dynamics]
    assert np.allclose(found["activation"][:, 0], wanted, rtol=1e-9, atol=1e-12)
    assert np.allclose(found["actuator_force"][:, 0], 2 * wanted, rtol=1e-9, atol=1e-12)


def test_a_thruster_at_a_site_moves_a_free_body_by_newton_and_euler() -> None:
    """From rest, about a principal axis: F / m, and r × F / I."""
    text = """<option gravity="0 0 0"/><worldbody><body name="b"><freejoint name="b"/>
      <inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .3"/><site name="s" pos=".5 0 0"/></body></worldbody>
      <actuator><motor name="t" site="s" gear="0 1 0 0 0 .25"/></actuator>"""
    found = oracle(model(text), steps=2, dt=1e-4, control={"t": 3.0}, record=("qvel", "external_wrench"))
    assert np.allclose(found["qvel"][1], 1e-4 * np.array([0, 1.5, 0, 0, 0, (0.5 * 3 + 0.75) / 0.3]), rtol=1e-9)
    assert np.allclose(found["external_wrench"][0, -1], [0, 3, 0, 0, 0, 2.25], rtol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_wrenches_and_pushes_change_momenta_by_their_amount(scheme: str) -> None:
    robot = load_articulation(ROOT / "robots" / "floating_box.urdf", base="fixed", meshes=False)
    link = robot.links[-1].name
    config = {"steps": 40, "dt": 1e-3, "gravity": (0.0, 0.0, 0.0), "record": ("momentum",)}
    pushed = maximal(robot, scheme, push=(f"{link}=1,2,-3,.01,0,.02@0.01",), **config)["momentum"]
    assert np.max(np.abs(pushed[:10])) < 1e-12
    assert np.allclose(pushed[11, :3], [1, 2, -3], rtol=1e-9)
    assert np.allclose(pushed[-1, :3], [1, 2, -3], rtol=1e-9)
    drawn = maximal(robot, scheme, wrench={link: (1.0, 2.0, -3.0, 0.0, 0.0, 0.0)}, **config)["momentum"]
    assert np.allclose(drawn[:, :3], 1e-3 * np.arange(40)[:, None] * [1, 2, -3], rtol=1e-9, atol=1e-12)


def test_hold_carries_the_weight() -> None:
    robot = load_articulation(ROOT / "robots" / "arm7.urdf", meshes=False)
    start = {"joint_2": 0.7, "joint_4": -0.8}
    record = ("qpos", "tau_applied", "gravity")
    for controller, engine in (("hold", oracle), ("gravity-compensation", maximal)):
        found = engine(robot, controller=controller, steps=100, dt=1e-3, q0=start, record=record)
        assert np.max(np.abs(found["qpos"] - found["qpos"][0])) < 1e-9
        assert np.allclose(found["tau_applied"][0], found["gravity"][0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["arm7.urdf", "two_finger_gripper.urdf"])
def test_computed_torque_leads_along_the_reduced_engine_s_path(name: str) -> None:
    """The accelerations of the first step, from anywhere, are those that the targets ask for, and the reduced
    engine's."""
    robot = load_articulation(ROOT / "robots" / name, meshes=False)
    plan = plan_run(robot, RunConfig())
    rng = np.random.default_rng(2)
    dofs = plan.robot.labels.independent_dofs
    target, speed = ({dof: 0.01 * float(rng.normal()) for dof in dofs} for _ in range(2))
    config = {"controller": "computed-torque", "target": target, "v0": speed, "dt": 1e-4}
    one, other = (engine(robot, steps=1, record=("qacc", "tau_applied"), **config) for engine in (run, oracle))
    for variable in ("qacc", "tau_applied"):
        scale = np.max(np.abs(one[variable]))
        assert np.max(np.abs(one[variable] - other[variable])) < 1e-3 * scale, variable


# ------------------------------------------------------------------ balls

PENDULUM = """<worldbody><body name="b"><joint name="j" type="ball"{more}/>
  <inertial pos="0 0 -.5" mass="2" diaginertia=".02 .02 .01"/></body></worldbody>"""


def cone(angle: float) -> tuple[dict[str, float], float]:
    """The start of a pendulum that circles at an angle, turned about y, all of it about the vertical, and its rate:
    (I_t - I_a) Ω² cos θ = m g l about the ball."""
    rate = float(np.sqrt(2 * G * 0.5 / ((0.02 + 2 * 0.25 - 0.01) * np.cos(angle))))
    q = {"j.qw": float(np.cos(angle / 2)), "j.qy": float(np.sin(angle / 2))}
    return q, rate


def spinning(angle: float, rate: float) -> dict[str, float]:
    """Velocities in the body's axes of a rotation about the vertical."""
    return {"j.wx": -rate * float(np.sin(angle)), "j.wz": rate * float(np.cos(angle))}


def tilt(found: Any) -> Array:
    """The angle of the pendulum from the vertical, row by row."""
    x, y = found["qpos"].T[1:3]
    return np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1))


def test_a_pendulum_on_a_ball_circles_with_its_closed_form() -> None:
    angle = 0.6
    q, rate = cone(angle)
    apart = []
    for h in (1e-3, 5e-4):
        config = {"steps": round(0.5 / h), "dt": h, "record": ("qpos",), "q0": q, "v0": spinning(angle, rate)}
        apart.append(float(np.max(np.abs(tilt(oracle(model(PENDULUM.format(more="")), **config)) - angle))))
    assert apart[0] < 2e-3
    assert apart[1] < 0.6 * apart[0]


@pytest.mark.parametrize(
    "config",
    [
        {"range": True},
        {"swing_limit": {"j": (0.6, 0.6)}},
        {"swing_limit": {"j": (0.5, 0.9)}, "twist_axis": {"j": (0.0, 0.0, 1.0)}, "twist_limit": {"j": (-0.3, 0.3)}},
    ],
    ids=["angle", "swing", "ellipse-and-twist"],
)
def test_a_pendulum_stays_within_the_range_of_its_ball_and_on_the_reduced_engine_s_path(config: dict[str, Any]) -> None:
    more = dict(config)
    limited = ' limited="true" range="0 34.377"' if more.pop("range", False) else ""
    articulation = model(PENDULUM.format(more=limited))
    start = {"v0": {"j.wx": 1.5, "j.wy": 4.0, "j.wz": 0.8}}
    if "twist_axis" not in more and "swing_limit" in more:
        more["twist_axis"] = {"j": (0.0, 0.0, 1.0)}
    found = oracle(articulation, steps=400, dt=1e-3, record=("qpos", "tau_limit"), **start, **more)
    assert np.max(np.abs(found["tau_limit"])) > 0.1
    if "twist_limit" not in more:
        assert np.max(tilt(found)) < 0.601  # the limit is met by the end of a step, but for its curvature
    apart = parting(articulation, (2e-3, 5e-4), 0.3, **start, **more)
    assert apart[0] < 1.5 * 2e-3 and apart[1] < 1.5 * 5e-4, apart  # the instant of an impact is known to a step


# ------------------------------------------------------------------ passive forces

PASSIVE = """<worldbody><body name="b" gravcomp=".5"><joint name="j" type="ball" stiffness="3" damping=".05"/>
  <inertial pos=".1 0 -.3" mass="1" diaginertia=".02 .03 .01"/>
  <body name="c" pos="0 0 -.6"><joint name="k" axis="0 1 0" stiffness="2 .5 .3" damping=".1 .05 .02"/>
    <inertial pos="0 0 -.2" mass=".5" diaginertia=".004 .004 .001"/></body></body></worldbody>"""


def test_springs_of_balls_polynomials_and_carried_weights_are_the_reduced_engine_s_to_the_order_of_the_step() -> None:
    apart = parting(model(PASSIVE), (2e-3, 1e-3, 5e-4), 0.3, v0={"j.wx": 2.0, "j.wz": 1.0, "k": 3.0})
    ratios = np.array(apart[:-1]) / apart[1:]
    assert apart[0] < 0.01
    assert np.all((ratios > 1.7) & (ratios < 2.4)), apart


# ------------------------------------------------------------------ all of it

ROBOTS = (
    "gymnasium/envs/mujoco/assets/hopper.xml",
    "gymnasium/envs/mujoco/assets/ant.xml",
    "gymnasium/envs/mujoco/assets/half_cheetah.xml",
    "gymnasium/envs/mujoco/assets/pusher.xml",
    "gymnasium/envs/mujoco/assets/point.xml",
    "mink/examples/stanford_tidybot/base.xml",
    "engine/testdata/actuation/refsite_free.xml",
    "engine/testdata/passive/poly_stiffness.xml",
)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ROBOTS)
def test_public_robots_part_from_the_reduced_engine_by_the_order_of_the_step(name: str) -> None:
    """With contacts, tendons and actuators, from the floor where there is one, their controls drawn."""
    path = next((entry["path"] for entry in corpus_entries("mjcf") if entry["path"].endswith(name)), None)
    if path is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    articulation = load_articulation(path)
    plan = plan_run(articulation, RunConfig(base=articulation.base))
    rng = np.random.default_rng(1)
    control = {name: 0.5 * float(rng.uniform(-1, 1)) for name in plan.config.control}
    velocity = {name: 0.3 * float(rng.normal()) for name in plan.robot.labels.independent_dofs}
    config: dict[str, Any] = {"control": control, "v0": velocity}
    try:
        plan_run(articulation, RunConfig(base=articulation.base, on_ground=0.0, **config))
        config["on_ground"] = 0.0
    except UsageError:  # no free body
        pass
    apart = parting(articulation, (1e-3, 5e-4), 0.05, **config)
    assert 1e-9 < apart[0] < 0.02
    assert apart[0] / apart[1] > 1.6, apart
