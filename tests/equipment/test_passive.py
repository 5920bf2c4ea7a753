"""Passive forces beside MuJoCo's: springs, dampers, gravity compensation, media; and what they do over time."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError, StoppedError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.conftest import corpus_entries
from tests.equipment.equipment_kernels import Bench
from tests.simulation import FORCES, simulate

Array = np.ndarray[Any, Any]
mujoco.set_mju_user_warning(lambda _: None)
RECORD = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "energy", *FORCES, "tau_loop", "tau_tendon")

BOX = '<geom type="box" size=".1 .2 .3" pos=".1 .2 .3" euler="10 20 30"/>'
TREE = """<mujoco><option {option}/><worldbody>
  <body name="a" pos="0 0 1" {a}><joint name="j" axis="1 2 3" {j}/>{box}
    <body name="b" pos=".2 .1 0" {b}><joint name="s" type="slide" axis="0 1 1" {s}/>{box}
      <body name="f" pos=".1 .1 .1" euler="0 30 0" {b}>{box}</body>
      <body name="c" pos=".3 0 0" {c}><joint name="o" type="ball" {o}/>{shape}</body></body></body>
  <body name="d" pos="1 2 3" euler="10 20 30" {d}><joint name="x" type="free" {x}/>{box}</body>
</worldbody></mujoco>"""
EMPTY = dict.fromkeys("option a b c d j s o x".split(), "") | {"box": BOX, "shape": BOX}
ELLIPSOID = '<geom type="{kind}" size=".1 .2 .05" pos=".1 .2 .3" euler="10 20 30" fluidshape="ellipsoid"/>'
MODELS = {
    "gravity compensation": {"a": 'gravcomp="1"', "b": 'gravcomp=".3"', "d": 'gravcomp="2"'},
    "by actuators": {"b": 'gravcomp="1"', "c": 'gravcomp="1"', "j": 'actuatorgravcomp="true"'},
    "springs": {"j": 'stiffness="3" springref="20" ref="5"', "s": 'stiffness="2"', "o": 'stiffness="5"'},
    "spring in space": {"x": 'stiffness="4" damping="2"', "o": 'damping="3"'},
    "polynomials": {
        "j": 'stiffness="3 .2 .5" damping="1 2 3" springref="20"',
        "s": 'stiffness="0 0 .5" damping="0 1"',
        "o": 'stiffness="3 .2 .5" damping="1 2 3"',
        "x": 'stiffness="1 2 3" damping="1 2 3"',
    },
    "viscosity": {"option": 'viscosity="2"'},
    "density and wind": {"option": 'density="1000" wind="1 2 3"'},
    "a medium": {"option": 'density="1000" viscosity=".5" wind="1 2 3"'},
    **{
        kind: {"option": 'density="1000" viscosity=".5" wind="1 2 3"', "shape": ELLIPSOID.format(kind=kind)}
        for kind in ("ellipsoid", "box", "capsule", "cylinder", "sphere")
    },
    "ellipsoid with coefficients": {
        "option": 'density="1.2" viscosity="2e-5"',
        "shape": ELLIPSOID.format(kind="ellipsoid")[:-2] + ' fluidcoef="1 2 3 4 5"/>' + BOX,
    },
    "all off": {"option": 'density="1000"', "a": 'gravcomp="1"', "j": 'stiffness="3 1" damping="1 1"'},
}


@pytest.mark.parametrize("name", MODELS)
def test_forces_are_mujocos(name: str) -> None:
    text = TREE.format(**(EMPTY | MODELS[name]))
    if name == "all off":
        text = text.replace("<option", '<option><flag spring="disable" damper="disable"/></option><option')
    compare(load_text(text, name="model.xml"), mujoco.MjModel.from_xml_string(text), name != "all off")


def compare(articulation: Articulation, model: Any, some: bool = True) -> float:
    """Passive forces and what motors carry of the weight at random states, to 1e-10 of the largest of each state."""
    plan = plan_run(only_passive(articulation), RunConfig(contacts=False, coupling="rows"))
    bench = Bench(plan) if plan.equipped is not None else None
    m, data = plan.robot.model, mujoco.MjData(model)
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(4):
        data.qpos[:], data.qvel[:] = model.qpos0 + rng.normal(size=model.nq), rng.normal(size=model.nv)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_passive(model, data)
        q = np.array([data.qpos[c] if c >= 0 else 0.0 for c in m.dof_coord])
        passive = -m.damping * data.qvel - m.stiffness * (q - m.spring_reference)
        by_motors = np.zeros(model.nv)
        if bench is not None:
            bench.evaluate(data.qpos, data.qvel)
            passive += bench.equipment.passive
            by_motors = bench.equipment.actuator_total
        largest = np.abs(data.qfrc_passive).max()
        error = max(np.abs(passive - data.qfrc_passive).max(), np.abs(by_motors - carried(model, data)).max())
        assert some == (largest > 0)
        assert error <= 1e-10 * largest
        worst = max(worst, error / largest if largest else 0.0)
    return worst


def carried(model: Any, data: Any) -> Array:
    """Gravity compensation that counts as actuators'."""
    by_actuators = model.jnt_actgravcomp[model.dof_jntid] != 0
    return np.where(by_actuators, data.qfrc_gravcomp, 0.0)


def only_passive(articulation: Articulation) -> Articulation:
    """Without actuators, tendons, loops, couplings, limits and friction: what is left are passive forces."""
    joints = tuple(
        dataclasses.replace(j, lower=None, upper=None, friction=0.0, actuator_range=None) for j in articulation.joints
    )
    empty: dict[str, Any] = dict.fromkeys(
        ("actuators", "tendons", "tendon_couplings", "loops", "couplings", "sensors", "keyframes"), ()
    )
    return dataclasses.replace(articulation, joints=joints, **empty)


HEAVY_TENDONS = {"mjcf.mujoco.sleep_smooth"}  # its springdamper counts the inertia of tendons, ours does not
PUBLIC = [
    entry
    for entry in corpus_entries("mjcf")
    if entry["expect"] == "load" and 0 < entry["nv"] <= 200 and entry["id"] not in HEAVY_TENDONS
]
CHUNKS = 8


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_forces_of_public_models_are_mujocos(chunk: int) -> None:
    if not PUBLIC:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    compared, worst = 0, 0.0
    for entry in PUBLIC[chunk::CHUNKS]:
        try:
            articulation = load_articulation(entry["path"])
        except ModelError as error:
            assert "not supported yet" in str(error), f"{entry['id']}: {error}"
            continue
        model = mujoco.MjModel.from_xml_path(entry["path"])
        if model.nflex:  # its edges are springs that MuJoCo counts here
            continue
        for term in ("stiffness", "stiffnesspoly", "damping", "dampingpoly"):  # compared where tendons are
            getattr(model, f"tendon_{term}")[:] = 0
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        terms = (model.jnt_stiffness, model.dof_damping, model.body_gravcomp, model.opt.density, model.opt.viscosity)
        if any(np.any(np.asarray(term)) for term in terms):
            error = compare(articulation, model)
            worst, compared = max(worst, error), compared + 1
    print(f"{compared} models, worst {worst:.1e}")
    assert compared > 0


# --- over time -------------------------------------------------------------------------------------------------------

BALL = """<mujoco><option gravity="0 0 {gravity}"/><worldbody><body name="a"><joint name="o" type="ball" {joint}/>
    <geom type="box" size=".1 .1 .1" pos="0 0 -.5"/></body></worldbody></mujoco>"""


def balance(run: Any) -> float:
    """M qacc + bias - Σ tau over the largest torque, worst row."""
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
    right = sum(run[name] for name in (*FORCES, "tau_loop", "tau_tendon") if name in run.rows)
    return float(np.abs(left - right).max() / max(np.abs(run["tau_passive"]).max(), np.abs(run["tau_limit"]).max()))


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_spring_of_a_ball_swings_at_its_frequency(integrator: str) -> None:
    """About its vertical axis: I x'' = -k x; stiff enough that only the implicit half keeps Euler stable."""
    inertia = 8 * (0.02 / 3)  # m (a² + b²) / 3 of a cube of 8 kg and half side 0.1
    frequency = 10.0
    model = load_text(BALL.format(gravity=0, joint=f'stiffness="{inertia * frequency**2}"'), name="model.xml")
    start = {"o.qw": math.cos(0.2), "o.qz": math.sin(0.2)}
    run = simulate(model, steps=3000, dt=1e-3, integrator=integrator, q0=start, record=RECORD)
    angle = 2 * np.arctan2(run["qpos"][:, 3], run["qpos"][:, 0])
    want = 0.4 * np.cos(frequency * np.arange(3000) * 1e-3)
    assert balance(run) < 1e-10
    if integrator == "rk4":
        np.testing.assert_allclose(angle, want, atol=1e-7)
    else:  # of first order: it loses a little
        np.testing.assert_allclose(angle[:300], want[:300], atol=0.05)
        stiff = load_text(BALL.format(gravity=0, joint='stiffness="1e7"'), name="model.xml")
        run = simulate(stiff, steps=300, dt=0.01, q0=start)
        assert np.abs(run["qpos"][-1, 1:]).max() < 1e-3


def test_a_ball_stops_at_its_angle() -> None:
    """A pendulum with a horizontal push swings into its cone, slides along it, and never gets out by much."""
    model = load_text(BALL.format(gravity=-9.81, joint='range="0 30"'), name="model.xml")
    run = simulate(model, steps=4000, dt=1e-3, v0={"o.wx": 4.0, "o.wy": 1.0, "o.wz": 2.0}, record=RECORD)
    angle = 2 * np.arccos(np.abs(run["qpos"][:, 0]))
    limit = math.radians(30)
    assert np.count_nonzero(angle > limit - 1e-6) > 50
    assert angle.max() < limit + 1e-3
    assert np.abs(run["tau_limit"]).max() > 0
    assert run.simulation.limit_steps["o.wx"] > 50
    assert balance(run) < 1e-10
    with pytest.raises(StoppedError, match="reached its limit"):
        simulate(model, steps=4000, integrator="rk4", v0={"o.wx": 4.0})


def test_ranges_of_balls_are_refused_by_name() -> None:
    for joint in ('range="10 30"', 'range="1 0" limited="true"'):
        with pytest.raises(ModelError, match=r"joint 'o': range is .* that of a ball joint begins at 0"):
            load_text(BALL.format(gravity=0, joint=joint), name="model.xml")


def test_what_gravity_compensation_carries_does_not_fall() -> None:
    text = """<mujoco><worldbody><body name="a" gravcomp="1"><freejoint/><geom size=".1"/></body>
        <body name="b" gravcomp=".5" pos="1 0 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    run = simulate(load_text(text, name="model.xml"), steps=101, dt=0.01, record=RECORD)
    assert np.abs(run["qpos"][-1, :3]).max() < 1e-15
    np.testing.assert_allclose(run["qvel"][-1, 6:9], [0, 0, -0.5 * 9.81], atol=1e-12)
    assert balance(run) < 1e-12


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_a_ball_sinks_at_its_terminal_speed(integrator: str) -> None:
    """Of Stokes' drag alone: m g = 3 π μ d v; d is that of the box of a ball's inertia, √(3/5) of its side."""
    text = (
        """<mujoco><option viscosity="10"/><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    run = simulate(load_text(text, name="model.xml"), steps=3000, integrator=integrator, record=RECORD)
    mass = 1000 * 4 / 3 * math.pi * 0.1**3
    side = math.sqrt(0.4 * 0.01 * 6)
    assert run["qvel"][-1, 2] == pytest.approx(-mass * 9.81 / (3 * math.pi * 10 * side), rel=1e-6)
    assert balance(run) < 1e-10
