"""Maximal coordinates against joint coordinates, closed forms and conservation laws; two engines that share no step."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError, UsageError
from artsim.sim.maximal.bodies import Masses, moved, rotations
from artsim.sim.maximal.conversion import body_states, unpack
from artsim.sim.maximal.joints import joint_lines
from artsim.sim.maximal.scheme import boxed_problem
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.maximal_simulation import MaximalSimulation
from artsim.sim.runs.plan import plan_run
from tests.conftest import ROOT, corpus_entries
from tests.constraints.test_loops import CONNECT, four_bar
from tests.simulation import Run, constant_controls

Array = np.ndarray[Any, Any]
ROBOTS = ROOT / "robots"
SCHEMES = ("baumgarte", "implicit")
FORCES = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit", "tau_loop")
PLACES = ("link_position", "link_quaternion", "mass_matrix", "gravity", "bias", "jacobian", "com", "momentum", "energy")
EVERYTHING = ("qpos", "qvel", "qacc", *FORCES, "incoming_wrench", *PLACES)

KINDS = """<mujoco><option gravity="1 -2 -9"/><worldbody>
  <body name="base" pos="0 0 1"><freejoint name="root"/><inertial pos=".1 0 .05" mass="2" diaginertia=".02 .03 .04"/>
    <body name="arm" pos=".2 0 0" euler="10 20 30"><joint name="a1" axis="0 1 0" armature=".02" damping=".1"/>
      <joint name="a2" axis="1 0 1" pos="0 .1 0" stiffness="3" springref=".2"/>
      <joint name="a3" type="slide" axis="1 2 0" ref=".1"/>
      <inertial pos="0 .1 .2" mass="1" diaginertia=".01 .02 .015"/>
      <body name="ball" pos="0 0 .3"><joint name="b" type="ball" pos=".05 0 0" damping=".05" armature=".001"/>
        <inertial pos="0 0 .2" mass=".5" diaginertia=".004 .003 .005"/>
        <body name="leaf" pos="0 0 .4"><joint name="c" axis="0 0 1" ref=".3"/>
          <inertial pos=".1 0 0" mass=".2" diaginertia=".002 .003 .004"/></body></body></body>
    <body name="side" pos="-.2 0 0"><joint name="d" axis="1 0 0"/>
      <inertial pos="0 -.1 0" mass=".4" diaginertia=".003 .001 .002"/></body></body>
  </worldbody><equality><joint joint1="d" joint2="c" polycoef=".1 .5 .3 0 -.1"/></equality></mujoco>"""
"""All kinds of joints but the planar one, several on a body, a rotor, a spring, a quartic coupling."""
STRAIGHT = KINDS.replace('stiffness="3" springref=".2"', "").replace('polycoef=".1 .5 .3 0 -.1"', 'polycoef=".1 .5"')
"""The same without its spring, the coupling a straight line: nothing that the step in joint coordinates weighs."""

SLIDERS = """<robot name="sliders"><link name="base"/>
  <link name="a"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="a" type="prismatic"><parent link="base"/><child link="a"/><axis xyz="1 0 0"/>
    <limit lower="-{room}" upper="{room}" effort="{effort}" velocity="9"/>{dynamics}</joint>
  <joint name="b" type="prismatic"><parent link="base"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-99" upper="99" effort="{effort}" velocity="9"/>{mimic}</joint></robot>"""


def model(what: str, base: str = "fixed", **more: Any) -> Articulation:
    """A file of robots/, or a text."""
    if what.lstrip().startswith("<"):
        return load_text(what, name="test.xml" if "<mujoco" in what else "test.urdf", base=base, meshes=False)  # type: ignore[arg-type]
    return load_articulation(ROBOTS / what, base=base, meshes=False)  # type: ignore[arg-type]


def sliders(*, room: float = 99, effort: float = 1e6, dynamics: str = "", mimic: str = "") -> Articulation:
    return model(SLIDERS.format(room=room, effort=effort, dynamics=dynamics, mimic=mimic))


def simulate(articulation: Articulation, **config: Any) -> Run:
    """A run of either engine, its rows in memory."""
    plan = plan_run(articulation, RunConfig(contacts=False, base=articulation.base, **config))
    simulation = simulation_of(plan, constant_controls(plan))
    parts = [{name: values.copy() for name, values in block.rows.items()} for block in simulation.blocks()]
    simulation.check()
    return Run({name: np.concatenate([part[name] for part in parts]) for name in plan.config.record}, simulation)


def maximal(articulation: Articulation, scheme: str = "implicit", **config: Any) -> Run:
    return simulate(articulation, coordinates="maximal", scheme=scheme, **config)


def gap(run: Run) -> float:
    """How far joints came apart [m or rad]."""
    found = run.simulation.joint_gap
    assert found is not None
    return max(found)


def started(articulation: Articulation, seed: int = 0, speed: float = 1.0) -> dict[str, dict[str, float]]:
    """A start anywhere within the limits, moving."""
    rng = np.random.default_rng(seed)
    compiled = compile_model(articulation, locks=True)
    m, labels = compiled.model, compiled.labels
    q0 = {}
    for k in m.independent_dof:
        if m.dof_coord[k] >= 0:
            low, high = max(m.lower[k], -1.0), min(m.upper[k], 1.0)
            q0[labels.coords[m.dof_coord[k]]] = float(rng.uniform(low + 0.1 * (high - low), high - 0.1 * (high - low)))
    for name in labels.coords:
        if name.endswith((".qw", ".qx", ".qy", ".qz")):
            q0[name] = float(rng.normal())
    return {"q0": q0, "v0": {name: float(speed * rng.normal()) for name in labels.independent_dofs}}


# ------------------------------------------------------------------ the two engines


def difference(articulation: Articulation, **config: Any) -> dict[str, float]:
    """Of the first row of both engines, variable by variable, relative to the largest entry or 1.

    Baumgarte's constraint is exact on accelerations: while no joint is open, both engines find the same row. The
    multipliers of the joints are then the wrenches that Newton and Euler find link by link in joint coordinates.
    """
    config = {"steps": 1, "dt": 1e-3, "record": EVERYTHING, **config}
    one, other = simulate(articulation, **config), maximal(articulation, "baumgarte", **config)
    assert set(one.rows) == set(other.rows) >= {"qacc", "incoming_wrench", "mass_matrix"}
    scale = {name: max(1.0, float(np.max(np.abs(one[name]), initial=0.0))) for name in one.rows}
    return {name: float(np.max(np.abs(one[name] - other[name]), initial=0.0)) / scale[name] for name in one.rows}


def agree_at_once(articulation: Articulation, tolerance: float = 1e-9, **config: Any) -> None:
    """Both engines find the same row."""
    wrong = {name: worst for name, worst in difference(articulation, **config).items() if not worst <= tolerance}
    assert wrong == {}


def agree_at_last(articulation: Articulation, dt: float, **config: Any) -> None:
    """Their rows differ by the order of the step: a tenth of it, a tenth of the difference, from `dt` on."""
    steps = [difference(articulation, dt=dt * tenth, **config) for tenth in (1.0, 0.1)]
    assert max(steps[0].values()) > 1e-5, "what the engines do otherwise does not act"
    for name, worst in steps[1].items():
        assert worst <= 0.13 * steps[0][name] + 1e-7, name  # rounding over h
    assert max(steps[1].values()) < 5e-3


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("arm7.urdf", "fixed"),
        ("double_pendulum.urdf", "fixed"),
        ("planar_base.urdf", "fixed"),
        ("floating_box.urdf", "fixed"),
        ("parallel_gripper.urdf", "fixed"),
        ("two_finger_gripper.urdf", "fixed"),
        ("rack_and_pinion.urdf", "fixed"),
        ("quadruped.urdf", "floating"),
        ("chain20.urdf", "fixed"),
        (STRAIGHT, "fixed"),
    ],
    ids=lambda value: value if len(value) < 30 else "kinds",
)
def test_a_step_from_anywhere_is_the_reduced_engine_s(name: str, base: str) -> None:
    articulation = model(name, base)
    slow = ("gripper", "rack", "box")  # a body alone that turns faster is evaluated midway in joint coordinates
    speed = 0.01 if any(word in name for word in slow) else 0.5
    for seed in range(2):
        # the chain's masses are a thousand to one
        agree_at_once(articulation, 1e-5 if "chain" in name else 1e-8, **started(articulation, seed, speed))


MORE: tuple[dict[str, Any], ...] = (
    {"torque": {"joint_3": 2.0}},
    {"drive_mode": "acceleration"},
    {"drive_limit": {"*": 0.5}, "friction_coefficient": {"*": 0.01}},
)


@pytest.mark.parametrize("more", MORE, ids=lambda more: next(iter(more)))
def test_a_step_with_drives_friction_and_torques_is_the_reduced_engine_s(more: dict[str, Any]) -> None:
    """Dampers act at the step's end in both; springs are weighed in joint coordinates: by the order of the step."""
    start = started(model("arm7.urdf"), 3)
    drives = {"damping": {"*": 1.0, "joint_2": 3.0}, "target": {"joint_1": 0.7}}
    agree_at_once(model("arm7.urdf"), 1e-7, **start, **more, damping=drives["damping"])
    agree_at_last(model("arm7.urdf"), 1e-4, **start, **more, **drives, stiffness={"*": 50.0})


def test_a_step_of_spin_a_spring_and_a_bent_coupling_is_the_reduced_engine_s_to_its_order() -> None:
    agree_at_last(model("floating_box.urdf"), 1e-3, **started(model("floating_box.urdf")))
    agree_at_last(model(KINDS), 1e-3, **started(model(KINDS)))
    agree_at_last(model(KINDS), 1e-4, **started(model(KINDS)))


def test_a_robot_that_nothing_moves_still_carries_its_weight() -> None:
    """No joint, no dof, no row: the wrench of the fixed joint is that of the weight behind it."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    inertial = '<inertial><origin xyz="{x} 0 0"/><mass value="2"/>' + inertia
    links = "".join(f'<link name="{n}">{inertial.format(x=x)}</inertial></link>' for n, x in (("a", 0), ("b", 0.5)))
    fixed = '<joint name="f" type="fixed"><parent link="a"/><child link="b"/><origin xyz="0 1 0"/></joint>'
    articulation = model(f'<robot name="still">{links}{fixed}</robot>')
    agree_at_once(articulation)
    found = maximal(articulation, steps=3, dt=1e-3, record=("incoming_wrench",))["incoming_wrench"]
    assert np.allclose(found[2, 1], [0, 0, 2 * 9.81, 0, -0.5 * 2 * 9.81, 0])


def falling(name: str) -> tuple[Articulation, dict[str, Any]]:
    """A robot and a run whose paths are smooth."""
    articulation = model(four_bar(CONNECT) if name == "four_bar" else KINDS if name == "kinds" else name)
    if name == "double_pendulum.urdf":
        return articulation, {"q0": {"joint_1": 0.6, "joint_2": 0.4}}
    if name == "planar_base.urdf":
        return articulation, {"v0": {"arm_joint": 1.0}}
    if name == "arm7.urdf":
        return articulation, {"stiffness": {"*": 300.0}, "damping": {"*": 30.0}, "target": {"joint_2": 0.5}}
    if name == "four_bar":
        return articulation, {"gravity": (4.0, 0.0, 9.81)}  # hangs upwards and swings
    if name == "kinds":
        return articulation, {"v0": {"root.vx": 0.5, "root.wz": 0.5, "b.wx": 0.3}}
    return articulation, {}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["double_pendulum.urdf", "planar_base.urdf", "arm7.urdf", "four_bar", "kinds"])
def test_both_engines_part_by_the_order_of_the_step(name: str, scheme: str) -> None:
    """For a quarter of a second, in steps so small that neither evaluates one again (sim/stepping/midpoint.py)."""
    articulation, more = falling(name)
    apart = []
    for h in (2e-3, 1e-3, 5e-4):
        config = {"steps": round(0.25 / h), "dt": h, "record": ("qpos",), **more}
        one = simulate(articulation, integrator="semi-implicit-euler", **config)  # both with the bias at the start
        other = maximal(articulation, scheme, **config)
        apart.append(float(np.max(np.abs(one["qpos"] - other["qpos"]))))
        assert gap(other) < 0.02 * h / 1e-3  # [m or rad]
    assert apart[-1] < 0.005
    orders = np.log2(np.array(apart[:-1]) / apart[1:])
    assert np.all((orders > 0.8) & (orders < 2.3)), (apart, orders)


@pytest.mark.parametrize("name", ["rack_and_pinion.urdf", "parallel_gripper.urdf", "floating_box.urdf"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_paths_without_curvature_are_the_same(name: str, scheme: str) -> None:
    forces = ("tau_coupling",) if "rack" in name else ()  # at the limits of both jaws their coupling may carry anything
    config = {"steps": 500, "dt": 2e-3, "record": ("qpos", "incoming_wrench", *forces)}
    one, other = simulate(model(name), **config), maximal(model(name), scheme, **config)
    for variable in config["record"]:
        scale = max(1.0, float(np.max(np.abs(one[variable]))))
        assert np.max(np.abs(one[variable] - other[variable])) < 1e-9 * scale, variable


@pytest.mark.corpus
def test_public_robots_agree() -> None:
    """The smallest ten of the corpus that both engines take."""
    seen = 0
    for entry in sorted(corpus_entries("urdf"), key=lambda entry: Path(entry["path"]).stat().st_size)[::7]:
        try:
            articulation = load_articulation(entry["path"], meshes=False)
            start = started(articulation, 1, 0.3)
            plan_run(articulation, RunConfig(contacts=False, coordinates="maximal", **start))
            compiled = compile_model(articulation, locks=True)
        except ArtsimError:
            continue
        if seen == 10 or not 2 <= len(compiled.labels.dofs) <= 40 or np.any(compiled.model.body_mass[1:] <= 0):
            continue
        agree_at_once(articulation, 1e-6, dt=2e-4, **start)  # short: no body turns so far that its bias is stiffened
        seen += 1
    if seen == 0:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    assert seen == 10


# ------------------------------------------------------------------ coordinates


@pytest.mark.parametrize("name", [KINDS, "planar_base.urdf", "arm7.urdf"], ids=["kinds", "planar_base", "arm7"])
def test_unpack_undoes_pack(name: str) -> None:
    articulation = model(name)
    compiled = compile_model(articulation)
    m, masses = compiled.model, Masses.of(compiled.model)
    rng = np.random.default_rng(5)
    for _ in range(20):
        qvel = rng.normal(size=len(m.dof_body))
        qpos = rng.normal(size=len(compiled.reference)) * 4
        for i, kind in enumerate(m.joint_type[1:], 1):
            n = m.body_coord[i + 1]
            if n - m.body_coord[i] in (4, 7):
                qpos[n - 4 : n] /= np.linalg.norm(qpos[n - 4 : n])
            assert kind in range(5)
        state = body_states(m, masses, qpos, qvel)
        again, velocity = unpack(m, masses, state)
        assert np.allclose(again, qpos, rtol=0, atol=1e-12)
        assert np.allclose(velocity, qvel, rtol=0, atol=1e-11)
        # moving the bodies for a moment moves the coordinates by their velocities
        h = 1e-6
        later, _ = unpack(m, masses, moved(state, h * state.velocity))
        flat = [int(c) for c in m.dof_coord if c >= 0]
        dofs = [k for k, c in enumerate(m.dof_coord) if c >= 0]
        assert np.allclose((later - qpos)[flat] / h, qvel[dofs], rtol=0, atol=2e-3)


def test_a_saved_run_goes_on_with_the_same_bytes() -> None:
    articulation = model("arm7.urdf")
    config = RunConfig(steps=20, coordinates="maximal", friction_coefficient={"*": 0.01}, v0={"joint_1": 1.0})
    plan = plan_run(articulation, config)

    def rows(simulation: MaximalSimulation, steps: int) -> bytes:
        parts = [block.rows for block in simulation.blocks(steps)]
        return b"".join(part[name].tobytes() for part in parts for name in sorted(part))

    whole = MaximalSimulation(plan, constant_controls(plan))
    rows(whole, 7)
    snapshot = whole.save()
    rest = rows(whole, 13)
    again = MaximalSimulation(plan, constant_controls(plan))
    again.restore(snapshot)
    assert rows(again, 13) == rest
    reduced = {name: values for name, values in snapshot.items() if not name.startswith("body_")}
    with pytest.raises(UsageError, match="body_centre"):
        again.restore(reduced)


# ------------------------------------------------------------------ how well joints hold


def test_gaps_fall_with_the_step() -> None:
    """Baumgarte leaves ½ h² J̇u in every step, the implicit scheme with its second-order term a tenth-of-h of that."""
    start = {"q0": {"joint_1": 1.0}, "v0": {"joint_1": 3.0}}
    gaps = {
        scheme: [gap(maximal(model("double_pendulum.urdf"), scheme, steps=round(1 / h), dt=h, **start)) for h in steps]
        for scheme in SCHEMES
        if (steps := (4e-3, 2e-3))
    }
    assert 1.8 < math.log2(gaps["baumgarte"][0] / gaps["baumgarte"][1]) < 2.4
    assert 2.7 < math.log2(gaps["implicit"][0] / gaps["implicit"][1]) < 3.6
    assert gaps["implicit"][1] < 1e-5 < gaps["baumgarte"][1] < 1e-3


def test_errors_of_baumgarte_s_constraint_obey_its_oscillator() -> None:
    """A joint pulled open by δ closes as C⁺ = C + h Ċ⁺, Ċ⁺ = (1 - α h) Ċ - β h C say, step by step."""
    articulation = model("parallel_gripper.urdf")
    h, alpha, beta = 1e-3, 300.0, 4e4
    config = RunConfig(steps=30, dt=h, coordinates="maximal", scheme="baumgarte", scheme_alpha=alpha, scheme_beta=beta)
    plan = plan_run(articulation, config)
    simulation = MaximalSimulation(plan, constant_controls(plan), block_rows=1)
    m, masses = plan.robot.model, Masses.of(plan.robot.model)
    way = np.zeros((len(masses.mass), 6))
    way[1, :3] = rotations(simulation.bodies.turn)[1] @ np.array([1e-3, 0.0, 0.0])  # the jaw slides along its z
    simulation.bodies = moved(simulation.bodies, way)
    C, rate = 1e-3, 0.0
    blocks = simulation.blocks()
    for _ in range(30):
        next(blocks)
        rate = (1 - alpha * h) * rate - beta * h * C
        C += h * rate
        assert joint_lines(m, masses, simulation.bodies).error[0] == pytest.approx(C, abs=1e-12)


def test_momentum_of_a_floating_robot() -> None:
    """Rows act at one point on both bodies: linear momentum stays to rounding, angular by the order of the step."""
    articulation = model("quadruped.urdf", "floating")
    start = {"v0": dict.fromkeys(("root.vx", "root.wx", "root.wz"), 0.5)}
    drift = []
    for h in (2e-3, 1e-3):
        config = {"steps": round(0.4 / h), "dt": h, "gravity": (0.0, 0.0, 0.0), "record": ("momentum",), **start}
        for scheme in SCHEMES:
            found = maximal(articulation, scheme, **config)["momentum"]
            assert np.max(np.abs(found[:, :3] - found[0, :3])) < 1e-12 * max(1.0, np.abs(found[0, :3]).max())
            drift.append(np.max(np.abs(found[:, 3:] - found[0, 3:])))
    assert drift[2] < 0.6 * drift[0]
    assert drift[3] < 0.6 * drift[1]


def test_energy_of_a_pendulum_stays_by_the_order_of_the_step() -> None:
    for scheme in SCHEMES:
        lost = []
        for h in (4e-3, 2e-3):
            config = {"steps": round(2 / h), "dt": h, "record": ("energy",), "q0": {"joint_1": 1.0, "joint_2": 0.5}}
            energy = maximal(model("double_pendulum.urdf"), scheme, **config)["energy"].sum(axis=1)
            lost.append(np.max(np.abs(energy - energy[0])))
        assert lost[0] < 0.1
        assert lost[1] < 0.6 * lost[0]


# ------------------------------------------------------------------ rows in closed form


def test_a_compliant_coupling_is_the_seeds_implicit_spring() -> None:
    """Notes on mimic joints, eq. 18 to 29, with α = β = 1: two masses and a spring of frequency and damping ratio, step
    by step."""
    frequency, ratio, gear, h = 3.0, 0.4, -0.5, 2e-3
    articulation = sliders(mimic=f'<mimic joint="a" multiplier="{gear}" offset="0.1"/>')
    found = maximal(
        articulation,
        steps=400,
        dt=h,
        coupling="compliant",
        coupling_frequency=frequency,
        coupling_damping=ratio,
        q0={"a": 0.2, "b": -0.3},
        v0={"a": 1.0, "b": 0.0},
        record=("qpos", "tau_coupling"),
    )
    J, mass = np.array([-gear, 1.0]), np.array([2.0, 3.0])
    r, mu = J @ (J / mass), 2 * math.pi * frequency
    stiffness, damping = mu**2 / r, 2 * ratio * mu / r
    cfm, erp = 1 / (h * (h * stiffness + damping)), h * stiffness / (h * stiffness + damping)
    q, v = np.array([0.2, -0.3]), np.array([1.0, 0.0])
    for row in range(400):
        assert np.allclose(found["qpos"][row], q, rtol=0, atol=1e-12)
        C = q[1] - gear * q[0] - 0.1
        impulse = -(erp * C / h + J @ v) / (r + cfm)
        assert np.allclose(found["tau_coupling"][row], J * impulse / h, rtol=0, atol=1e-9)
        v = v + J * impulse / mass
        q = q + h * v


def test_frequency_and_damping_of_a_compliant_coupling_do_not_depend_on_mass() -> None:
    runs = []
    for scale in (1.0, 1000.0):
        text = SLIDERS.format(room=99, effort=1e6, dynamics="", mimic='<mimic joint="a"/>')
        text = text.replace('mass value="2"', f'mass value="{2 * scale}"').replace(
            'mass value="3"', f'mass value="{3 * scale}"'
        )
        config = {"coupling": "compliant", "coupling_frequency": 2.0, "coupling_damping": 0.2}
        runs.append(maximal(model(text), steps=300, q0={"b": 0.1}, **config)["qpos"])
    assert np.allclose(runs[0], runs[1], rtol=0, atol=1e-11)


def test_a_spring_with_both_factors_a_half_keeps_its_energy() -> None:
    """α = β = ½ is the trapezoidal rule, which keeps the energy of a linear oscillator."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body name="b">
      <joint name="x" type="slide" stiffness="50" springref=".3"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
      </body></worldbody></mujoco>"""
    config = {"steps": 500, "dt": 0.01, "record": ("energy",), "v0": {"x": 1.0}}
    energy = maximal(model(text), scheme_alpha=0.5, scheme_beta=0.5, **config)["energy"].sum(axis=1)
    assert np.allclose(energy, energy[0], rtol=1e-12)
    damped = maximal(model(text), **config)["energy"].sum(axis=1)
    assert damped[-1] < 0.5 * damped[0]


def test_friction_holds_up_to_its_bound() -> None:
    articulation = sliders(dynamics='<dynamics friction="4"/>')
    config = {"steps": 100, "dt": 1e-3, "record": ("qpos", "qvel", "tau_passive")}
    for scheme in SCHEMES:
        still = maximal(articulation, scheme, torque={"a": 3.9}, **config)
        assert np.max(np.abs(still["qpos"])) < 1e-12
        assert np.allclose(still["tau_passive"][:, 0], -3.9)
        sliding = maximal(articulation, scheme, torque={"a": 5.0}, **config)
        assert np.allclose(sliding["tau_passive"][:, 0], -4.0)
        assert np.allclose(sliding["qvel"][:, 0], np.arange(100) * 1e-3 * (5.0 - 4.0) / 2.0)


def test_a_drive_pushes_with_its_limit_and_no_more() -> None:
    articulation = sliders(effort=6.0)
    config = {"steps": 50, "dt": 1e-3, "stiffness": {"a": 1e5}, "target": {"a": 1.0}, "record": ("qvel", "tau_drive")}
    for scheme in SCHEMES:
        found = maximal(articulation, scheme, **config)
        assert np.allclose(found["tau_drive"][:, 0], 6.0)
        assert np.allclose(found["qvel"][:, 0], np.arange(50) * 1e-3 * 3.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_limit_stops_and_lets_go(scheme: str) -> None:
    articulation = sliders(room=0.05)
    config = {"dt": 1e-3, "record": ("qpos", "qvel", "tau_limit")}
    found = maximal(articulation, scheme, steps=300, torque={"a": 4.0}, v0={"a": 0.1}, **config)
    assert np.max(found["qpos"][:, 0]) <= 0.05 + 1e-12
    assert found["qpos"][-1, 0] == pytest.approx(0.05, abs=1e-12)
    assert found["tau_limit"][-1, 0] == pytest.approx(-4.0)
    assert found.simulation.limit_steps["a"] > 50
    away = maximal(articulation, scheme, steps=50, torque={"a": -4.0}, q0={"a": 0.05}, **config)
    assert np.all(away["tau_limit"] == 0)
    quick = maximal(sliders(), scheme, steps=50, torque={"a": 1e5}, velocity_limits=True, **config)
    assert np.max(quick["qvel"]) <= 9.0 + 1e-9


def test_stiff_drive_against_a_limit_and_a_coupling() -> None:
    """The guide's chain: exact at any stiffness, by rows in the matrix."""
    for stiffness in (1e3, 1e7):
        found = maximal(
            model("stiff_drive_chain.urdf"),
            steps=200,
            dt=1 / 240,
            stiffness={"joint_1": stiffness},
            damping={"joint_1": stiffness / 10},
            target={"joint_1": 0.5},
            record=("qpos", "tau_coupling"),
        )
        assert found.simulation.coupling_error < 1e-9
        assert np.all(np.isfinite(found["qpos"]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_loops_stay_closed_and_carry_what_the_reduced_engine_s_carry(scheme: str) -> None:
    weld = '<weld name="loop" body1="rocker" body2="coupler"/>'
    for text in (four_bar(CONNECT), four_bar(CONNECT, "20 30 40")):
        config = {"steps": 250, "dt": 2e-3, "record": ("qpos", "tau_loop")}
        one, other = simulate(model(text), **config), maximal(model(text), scheme, **config)
        assert gap(other) < 2e-3
        # across its plane a closed chain has one joint too many: there the wrenches are anybody's, these are not
        scale = np.max(np.abs(one["tau_loop"]))
        assert np.max(np.abs(one["tau_loop"][5:] - other["tau_loop"][5:])) < 0.05 * scale
    held = maximal(model(four_bar(weld)), scheme, steps=100, dt=2e-3, record=("qpos",))
    assert np.max(np.abs(held["qpos"] - held["qpos"][0])) < 1e-3  # welded shut: a frame that hangs still
    assert gap(held) < 1e-4


# ------------------------------------------------------------------ bounded impulses


def test_bounded_impulses_are_those_that_a_search_of_all_cases_finds() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        A = rng.normal(size=(5, 5))
        W, s = A @ A.T + 0.01 * np.eye(5), rng.normal(size=5) * 3
        lower = np.where(rng.random(5) < 0.5, 0.0, -rng.random(5))
        upper = np.where(rng.random(5) < 0.3, np.inf, rng.random(5))
        lower[0], upper[0] = -np.inf, np.inf
        found, _, residual = boxed_problem(W, s, lower, upper)
        wanted = by_search(W, s, lower, upper)
        assert np.allclose(found, wanted, rtol=0, atol=1e-9)
        assert residual < 1e-10


def by_search(W: Array, s: Array, lower: Array, upper: Array) -> Array:
    """Every row free or at either bound, until one case is right."""
    n = len(s)
    for sides in itertools.product((0, -1, 1), repeat=n):
        side = np.array(sides)
        value = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        if not np.all(np.isfinite(value)):
            continue
        free, bound = side == 0, side != 0
        if free.any():
            value[free] = np.linalg.solve(W[np.ix_(free, free)], -s[free] - W[np.ix_(free, bound)] @ value[bound])
        slack = W @ value + s
        inside = np.all((value >= lower - 1e-12) & (value <= upper + 1e-12))
        if inside and np.all(slack[side < 0] >= -1e-12) and np.all(slack[side > 0] <= 1e-12):
            return value
    raise AssertionError("no case is right")


def test_many_bounded_impulses_are_complementary() -> None:
    rng = np.random.default_rng(2)
    for n in (30, 80):
        A = rng.normal(size=(n, n // 2))  # half as many freedoms as rows
        W = A @ A.T
        W += 1e-12 * np.diag(np.diag(W))
        s, upper = rng.normal(size=n), np.full(n, np.inf)
        lower = np.zeros(n)
        lower[::3], upper[::3] = -0.1, 0.1
        value, _, _ = boxed_problem(W, s, lower, upper)
        slack = W @ value + s
        assert np.all(value >= lower - 1e-9) and np.all(value <= upper + 1e-9)
        assert np.max(np.where(value > lower + 1e-9, np.maximum(slack, 0), 0)) < 1e-6
        assert np.max(np.where(value < upper - 1e-9, np.maximum(-slack, 0), 0)) < 1e-6


# ------------------------------------------------------------------ the command


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "artsim", *map(str, words)], capture_output=True, text=True)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_file_of_a_maximal_run_reproduces(scheme: str, tmp_path: Path) -> None:
    output = tmp_path / "run.h5"
    options = ["--coordinates", "maximal", "--scheme", scheme, "--steps", 20, "-o", output, "--json"]
    done = command("run", ROBOTS / "two_finger_gripper.urdf", *options)
    assert done.returncode == 0, done.stderr
    assert max(json.loads(done.stdout)["joint_gap"]) < 1e-3
    again = command("replay", "--verify", output)
    assert again.returncode == 0, again.stderr
    assert "every byte equal" in again.stdout


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("arm7.urdf", ("--integrator", "rk4"), "rk4"),
        ("arm7.urdf", ("--ground", "--continuous"), "--continuous"),
        ("arm7.urdf", ("--coupling-erp", "0.2"), "--coupling-erp"),
        ("arm7.urdf", ("--solver", "pgs"), "solver 'pgs'"),
        ("arm7.urdf", ("--controller", "computed-torque"), "controller 'computed-torque'"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(name: str, options: tuple[str, ...], reason: str) -> None:
    done = command("run", ROBOTS / name, "--coordinates", "maximal", *options)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


LIFTED = """<mujoco><worldbody><site name="o"/><geom name="g" type="cylinder" size=".1 .1" contype="0"
  conaffinity="0"/><body name="b" pos="0 0 1"><joint name="j"/><site name="s" pos=".3 0 0"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>{parts}</mujoco>"""
BORNE = """<mujoco><worldbody><body name="b"{body}><joint name="j" {joint}/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ('<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>', "tendon 't'"),
        ('<actuator><motor name="m" joint="j"/></actuator>', "actuator 'm'"),
        ('<option viscosity="1"/>', "the medium"),
        ('<equality><joint joint1="j" solref=".1 1"/></equality>', "a joint equality that gives way"),
    ],
    ids=lambda value: value[:30] if value.startswith("<") else "",
)
def test_what_acts_in_mjcf_and_has_no_rows_is_refused_by_name(parts: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        maximal(model(LIFTED.format(parts=parts)), steps=1)


@pytest.mark.parametrize(
    ("body", "joint", "reason"),
    [
        (' gravcomp="1"', "", "gravity compensation"),
        ("", 'stiffness="1 2"', "the spring of joint 'j'"),
        ("", 'damping="1 2"', "the damping of joint 'j'"),
        ("", 'type="ball" stiffness="1"', "the spring of joint 'j'"),
        ("", 'type="ball" range="0 1" limited="true"', "the range of joint 'j'"),
    ],
)
def test_what_joints_and_bodies_bear_and_has_no_rows_is_refused_by_name(body: str, joint: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"maximal has nothing for {reason}"):
        maximal(model(BORNE.format(body=body, joint=joint)), steps=1)


def test_scheme_options_are_for_maximal_coordinates() -> None:
    for more in ({"scheme": "baumgarte"}, {"constraint_alpha": {"joint_1": 1.0}}):
        with pytest.raises(UsageError, match="for --coordinates maximal"):
            simulate(model("arm7.urdf"), steps=1, **more)
    with pytest.raises(UsageError, match="scheme_beta"):
        maximal(model("arm7.urdf"), steps=1, scheme_beta=0.0)
