"""Actuators against MuJoCo: lengths, moments, forces, activations, and whole runs; and what is exact by itself.

Corpus-free: one model with every kind of actuator on every kind of transmission. With the corpus: all its actuated
models. A muscle's length range that MuJoCo finds by a simulation is set to the one read here before they are compared.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Reading
from artsim.loaders.mjcf.read import read_mjcf
from artsim.loaders.xml import parse
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.length_range import with_length_ranges
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.conftest import corpus_entries
from tests.equipment.actuator_kernels import Actuators

Array = np.ndarray[Any, Any]
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run
OFF = mujoco.mjtDisableBit
FORCES = ("applied", "drive", "passive", "coupling", "limit", "loop", "tendon")

KINDS = """
<mujoco>
 <option timestep="0.002"/>
 <default>
  <general gear="1.5"/>
  <default class="servo"><position kp="40" kv="1"/></default>
  <default class="heavy"><muscle scale="400" lmin="0.4"/></default>
  <default class="mixed"><position kp="7" dampratio="0.5"/><general gear="2"/></default>
 </default>
 <worldbody>
  <site name="anchor" pos="0.3 0.1 -0.2" euler="30 20 10"/>
  <body pos="0 0 1">
   <joint name="hinge" axis="0 1 0.2" range="-90 120" actuatorfrcrange="-8 5" damping="0.3"/>
   <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
   <site name="pin" pos="0.25 0.02 0.01"/>
   <body pos="0.3 0 0">
    <joint name="slide" type="slide" axis="1 0.3 0" ref="0.1" armature="0.4"/>
    <geom type="box" size="0.05 0.04 0.03"/>
    <site name="track" pos="0.02 0 0" euler="80 10 0"/>
    <body pos="0.1 0 0">
     <joint name="ball" type="ball" damping="0.05" armature="0.03"/>
     <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.02"/>
     <site name="tip" pos="0 0.2 0.01" euler="10 50 20"/>
    </body>
   </body>
  </body>
  <body name="flyer" pos="1 0 0.5">
   <freejoint name="free"/>
   <geom type="box" size="0.1 0.05 0.02"/>
   <site name="nozzle" pos="0.1 0 0.02" euler="0 40 0"/>
  </body>
 </worldbody>
 <actuator>
  <motor joint="hinge" ctrlrange="-0.5 0.5" forcerange="-0.4 2"/>
  <motor joint="slide" gear="-3"/>
  <position joint="hinge" class="servo"/>
  <position joint="hinge" kp="30" dampratio="0.7"/>
  <position joint="slide" class="mixed" forcerange="-3 3"/>
  <motor joint="slide" class="mixed"/>
  <velocity joint="hinge" class="mixed"/>
  <position joint="hinge" kp="12" timeconst="0.05" inheritrange="0.8"/>
  <velocity joint="slide" kv="4"/>
  <intvelocity joint="hinge" kp="20" kv="0.4" actrange="-0.6 0.7"/>
  <intvelocity joint="hinge" kp="20" inheritrange="1"/>
  <damper joint="slide" kv="3" ctrlrange="0 2"/>
  <cylinder joint="slide" timeconst="0.1" diameter="0.6" bias="0.1 -2 -0.5"/>
  <muscle joint="hinge" lengthrange="-2 2" class="heavy" tausmooth="0.3"/>
  <muscle joint="slide" lengthrange="-1 1" force="30" range="0.8 1.1" vmax="2" fvmax="1.4"
    timeconst="0.02 0.06" ctrlrange="0 1"/>
  <general joint="slide" dyntype="filterexact" dynprm="0.03" gaintype="affine" gainprm="2 -1 -0.5"
    biastype="affine" biasprm="0.5 -3 -0.2" actearly="true"/>
  <general joint="hinge" dyntype="integrator" gainprm="2" actlimited="true" actrange="-1 1" actearly="true"/>
  <general joint="slide" dyntype="filter" dynprm="0.2" biastype="muscle"
    biasprm="0.75 1.05 -1 200 0.5 1.6 1.5 1.3 1.2" lengthrange="-0.2 0.3"/>
  <general joint="slide" gaintype="muscle" gainprm="0.75 1.05 20 200 0.5 1.6 1.5 1.3 1.2"
    lengthrange="-0.9 0.8" biastype="affine" biasprm="1 -2 -0.1"/>
  <position joint="ball" gear="0.2 1 0.3" kp="5" kv="0.1"/>
  <motor joint="ball" gear="1 0 0"/>
  <intvelocity jointinparent="ball" gear="0 0.4 2" kp="3"/>
  <motor joint="free" gear="1 2 3 0.1 0.2 0.3"/>
  <motor jointinparent="free" gear="-1 0.5 1 0.3 0.2 -0.3"/>
  <motor site="nozzle" gear="0 0 1 0.1 0 0.2"/>
  <position site="tip" refsite="anchor" gear="1 0.5 -0.3 0 0 0" kp="9" dampratio="1"/>
  <position site="tip" refsite="pin" gear="0 0 0 0.3 1 0.2" kp="2"/>
  <position site="nozzle" refsite="tip" gear="0.5 0 0 0 0 1.2" kp="2"/>
  <position cranksite="pin" slidersite="track" cranklength="0.4" kp="15"/>
  <motor cranksite="nozzle" slidersite="track" cranklength="0.01"/>
  <adhesion body="flyer" gain="4" ctrlrange="0 1"/>
  <pid joint="hinge" kp="10" kv="0.5"/>
  <pid joint="slide" kp="10" dampratio="0.5" ki="3" imax="0.4" slewmax="5" input="pos ff"
    posrange="-0.3 0.4" ffrange="-1 1"/>
  <pid joint="ball" gear="0 1 0" kp="2" ki="1" slewmax="3" input="pos vel ff" velrange="-0.5 0.5"/>
  <pid joint="hinge" kp="3" slewmax="2"/>
  <dcmotor joint="hinge" motorconst="0.05 0.06" resistance="2" damping="0.01"/>
  <dcmotor joint="slide" nominal="12 0.4 300" inductance="0.02" saturation="0.05 0 40" cogging="0.02 6 0.4"/>
  <dcmotor joint="hinge" nominal="12 0.4 300" damping="0.0001" inductance="0 0.01"
    thermal="2 0 50 0.004 25 22" lugre="20 0.3 0.02 0.03 0.4"/>
  <dcmotor joint="slide" motorconst="0.1" resistance="1" thermal="2 9 0 0.004 25 30"
    input="pos vel ff voltage" controller="4 2 0.3 3 0.2 6"/>
  <dcmotor joint="slide" motorconst="0.1" resistance="1" input="none" lugre="20 0.3 0.02 0.03 0.4"
    gear="0.5"/>
  <dcmotor joint="hinge" motorconst="0.1" resistance="1" input="vel" controller="0 0 0.3 3"/>
 </actuator>
</mujoco>
"""

# ------------------------------------------------------------------ reading and running


def read_text(text: str, file: str = "robot.xml", folder: Path | None = None) -> Articulation:
    """The description of a model's text."""
    assets = Assets(folder=folder)
    return read_mjcf(parse(text.encode(), file=file).root, Reading(file, assets=assets), assets, max_mb=64)


def read(path: str) -> Articulation:
    """The description of a model's file."""
    return read_text(Path(path).read_text(encoding="utf-8"), path, Path(path).parent)


def with_ranges(articulation: Articulation, model: Any) -> Articulation:
    """Length ranges found where the file has none, and taken over by MuJoCo's model, whose soft limits give way."""
    ranged = with_length_ranges(articulation, [])
    for n, actuator in enumerate(ranged.actuators):
        if actuator.length_range is not None:
            model.actuator_lengthrange[n] = actuator.length_range
    return ranged


def random_state(model: Any, data: Any, rng: np.random.Generator, spread: float) -> None:
    """Coordinates, velocities, activations and controls."""
    mujoco.mj_resetData(model, data)
    data.qpos[:] = model.qpos0 + spread * rng.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = spread * rng.normal(size=model.nv)
    data.act[:] = spread * rng.normal(size=model.na)
    data.ctrl[:] = 2.0 * spread * rng.normal(size=model.nu)


def relative(ours: Array, truth: Array) -> float:
    """max|Δ| / max|truth|, 0 where both are rounding."""
    if truth.size == 0:
        return 0.0
    return float(np.abs(ours - truth).max() / max(np.abs(truth).max(), 1e-9))


def compared(articulation: Articulation, model: Any, states: int, spread: float, seed: int) -> Mapping[str, float]:
    """The largest errors over random states."""
    articulation = with_ranges(articulation, model)
    model.opt.disableflags |= OFF.mjDSBL_CONTACT
    ours = Actuators(plan_run(articulation, RunConfig(contacts=False, coupling="rows", dt=float(model.opt.timestep))))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    enabled = np.ones(model.na, bool)
    for n, actuator in enumerate(articulation.actuators):
        first = model.actuator_actadr[n]
        enabled[first : first + actuator.activation_size] = not actuator.disabled
    errors: dict[str, float] = defaultdict(float)
    for _ in range(states):
        random_state(model, data, rng, spread)
        mujoco.mj_forward(model, data)
        x = ours.at(data.qpos, data.qvel, data.act, data.ctrl)
        pairs = {
            "length": (x.actuator_length, data.actuator_length),
            "velocity": (x.actuator_velocity, data.actuator_velocity),
            "moment": (ours.moment, dense_moment(model, data)),
            "force": (x.actuator_force, data.actuator_force),
            "activation rate": (x.activation_rate[enabled], data.act_dot[enabled]),
            "total": (x.actuator_total, data.qfrc_actuator),
        }
        for name, (found, truth) in pairs.items():
            errors[name] = max(errors[name], relative(found, truth))
    return errors


def dense_moment(model: Any, data: Any) -> Array:
    """MuJoCo's moment arms (na, nv)."""
    dense = np.zeros((len(data.moment_rownnz), model.nv))
    mujoco.mju_sparse2dense(dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    return dense


def free(articulation: Articulation) -> Articulation:
    """Without limits, dry friction and equalities: what is left is smooth."""
    return replace(
        articulation,
        joints=tuple(replace(joint, lower=None, upper=None, friction=0.0) for joint in articulation.joints),
        tendons=tuple(replace(tendon, lower=None, upper=None, friction=0.0) for tendon in articulation.tendons),
        couplings=(),
        loops=(),
        tendon_couplings=(),
    )


def simulation(
    articulation: Articulation, start: Any, control: Array, every: int, steps: int, **config: Any
) -> Simulation:
    """A run from MuJoCo's state with these control rows, each held for `every` steps."""
    plan = plan_run(articulation, RunConfig(contacts=False, steps=steps, **config))
    plan = replace(plan, qpos=start.qpos.copy(), qvel=start.qvel.copy(), activation=start.act.copy())
    zero = np.zeros((len(control), plan.robot.nv))
    return Simulation(plan, Controls(every * np.arange(len(control)), zero, zero, zero, control))


def finish(run: Simulation) -> dict[str, Array]:
    """All recorded rows."""
    blocks = [block.rows for block in run.blocks()]
    run.check()
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def state_error(run: Simulation, data: Any) -> float:
    """Of the state where both have come, relative to 1."""
    pairs = [(run.qpos, data.qpos), (run.qvel, data.qvel), (run._state.activation, data.act)]
    return max(float(np.max(np.abs(a - b) / (1.0 + np.abs(b)), initial=0.0)) for a, b in pairs)


def against_mujoco(
    articulation: Articulation, model: Any, *, integrator: str, steps: int = 200, spread: float = 0.1, finer: int = 1
) -> float:
    """The state error after `steps` under random controls, without contacts and constraints on both sides.

    `finer`: so many times the steps, of so much shorter time.
    """
    articulation = with_ranges(articulation, model)
    every, steps = 5 * finer, steps * finer
    model.opt.timestep /= finer
    kinds = {"rk4": mujoco.mjtIntegrator.mjINT_RK4, "semi-implicit-euler": mujoco.mjtIntegrator.mjINT_EULER}
    model.opt.integrator = kinds[integrator]
    model.opt.disableflags |= OFF.mjDSBL_CONTACT | OFF.mjDSBL_CONSTRAINT
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    random_state(model, data, rng, spread)
    data.act[:] = np.abs(data.act)
    control = signal(model, rng, -(-steps // every))
    options = {"dt": float(model.opt.timestep), "integrator": integrator, "record": ()}
    run = simulation(free(articulation), data, control, every, steps, **options)
    finish(run)
    for step in range(steps):
        data.ctrl[:] = control[step // every]
        mujoco.mj_step(model, data)
    assert np.isfinite(data.qpos).all()
    return state_error(run, data)


def signal(model: Any, rng: np.random.Generator, rows: int) -> Array:
    """Controls within their ranges, or about 0."""
    low = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 0], -0.3)
    high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 1], 0.3)
    return low + (high - low) * rng.uniform(0.2, 0.8, size=(rows, model.nu))


# ------------------------------------------------------------------ every kind


def test_every_kind_of_actuator_is_mujocos() -> None:
    model = mujoco.MjModel.from_xml_string(KINDS)
    for spread in (0.3, 1.0, 2.0):
        errors = compared(read_text(KINDS), model, 3, spread, seed=int(10 * spread))
        assert {name: error for name, error in errors.items() if not error < 1e-10} == {}


def test_every_kind_in_a_run_by_rk4() -> None:
    assert against_mujoco(read_text(KINDS), mujoco.MjModel.from_xml_string(KINDS), integrator="rk4") < 1e-8


SERVO = """
<mujoco><option timestep="0.002"/><worldbody><body>
  <joint name="hinge" axis="0 1 0" {joint}/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
  <site name="end" pos="0.4 0 0"/>
  <body pos="0.4 0 0"><joint name="ball" type="ball"/><geom type="box" size="0.05 0.1 0.15" pos="0.1 0.05 0.02"/>
  <site name="tip" pos="0.1 0.2 0"/></body>
</body><site name="base" pos="0 0.2 -0.5"/></worldbody><actuator>{actuators}</actuator></mujoco>
"""


def servo(actuators: str, joint: str = "") -> str:
    return SERVO.format(actuators=actuators, joint=joint)


def run_rows(
    text: str, control: list[float], *, steps: int = 200, dt: float = 0.002, **options: Any
) -> dict[str, Array]:
    """A run from the pose of the file under one control."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rows = np.array([control])
    names = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "actuator_force", *(f"tau_{name}" for name in FORCES))
    return finish(simulation(read_text(text), data, rows, steps, steps, dt=dt, record=names, **options))


def balance(rows: Mapping[str, Array]) -> float:
    """What is left of M qacc + bias = Σ tau, relative to the largest of these."""
    forces = [rows[f"tau_{name}"] for name in FORCES if f"tau_{name}" in rows]
    inertial = np.einsum("tij,tj->ti", rows["mass_matrix"], rows["qacc"])
    left = inertial + rows["bias"] - sum(forces)
    return float(np.abs(left).max() / max(np.abs(inertial).max(), *(np.abs(force).max() for force in forces)))


# ------------------------------------------------------------------ semi-implicit Euler


def test_explicit_actuators_in_a_run_by_euler_are_mujocos() -> None:
    """Motors, muscles, filters, integrators without bias: both engines take them at the step's start.

    In steps in which no body turns so far that its spin is evaluated again (sim/stepping/midpoint.py).
    """
    text = servo(
        """<motor joint="hinge"/><motor site="tip" gear="0.1 0.2 0 0 0.1 0"/><motor joint="ball" gear="1 0.3 0"/>
        <muscle joint="hinge" lengthrange="-1 1" force="4"/><general joint="hinge" dyntype="filter" dynprm="0.02"/>
        <general joint="ball" dyntype="filterexact" dynprm="0.02" actearly="true"/>
        <general joint="hinge" dyntype="integrator" actrange="-0.1 0.2"/>""",
        'damping="0.2" armature="0.01"',
    )
    model = mujoco.MjModel.from_xml_string(text)
    assert against_mujoco(read_text(text), model, integrator="semi-implicit-euler", finer=32) < 1e-9


def test_servos_by_euler_come_nearer_to_mujocos_with_smaller_steps() -> None:
    """MuJoCo's Euler has their dampers at the step's start, ours at its end: the difference is of first order."""
    text = servo('<position joint="hinge" kp="30" kv="2"/><position site="tip" refsite="base" gear="0 0 1" kp="5"/>')
    errors = []
    for halving in range(3):
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = 0.00025 / 2**halving  # in which nothing turns far
        data = mujoco.MjData(model)
        model.opt.disableflags |= OFF.mjDSBL_CONTACT
        control, steps = np.array([[0.5, 0.1]]), 800 * 2**halving
        run = simulation(read_text(text), data, control, steps, steps, dt=model.opt.timestep, record=())
        finish(run)
        data.ctrl[:] = control[0]
        for _ in range(steps):
            mujoco.mj_step(model, data)
        errors.append(state_error(run, data))
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(
    ("actuators", "control"),
    [
        ('<position joint="hinge" kp="1e9" kv="1e5"/>', 0.0),
        ('<position site="tip" refsite="base" gear="0 0 1" kp="1e9" kv="1e5"/>', 0.5),
        ('<position joint="ball" gear="0 1 0" kp="1e8" kv="1e4"/>', 0.0),
        ('<velocity site="end" refsite="base" gear="1 0 1" kv="1e7"/>', 0.0),
        ('<general joint="hinge" biastype="affine" biasprm="1 -1e8 -1e7"/>', 0.0),
    ],
)
def test_servos_are_stable_at_any_gain(actuators: str, control: float) -> None:
    rows = run_rows(servo(actuators, 'damping="0.1"'), [control], steps=500)
    assert np.abs(rows["qvel"]).max() < 20.0
    assert balance(rows) < 1e-9


def test_a_bound_of_the_force_holds_at_the_steps_end() -> None:
    text = servo('<position joint="hinge" kp="1e5" kv="10" forcerange="-3 2"/>')
    for target, bound in ((1.0, 2.0), (-1.0, -3.0)):
        rows = run_rows(text, [target], steps=5)
        assert rows["actuator_force"][:, 0] == pytest.approx(bound, abs=0)
        assert rows["tau_drive"][:, 0] == pytest.approx(bound, abs=0)
        assert balance(rows) < 1e-12


def test_a_bound_on_a_row_holds_at_the_steps_end() -> None:
    text = servo('<position site="tip" refsite="base" gear="0 0 1" kp="1e5" kv="10" forcerange="-3 2"/>')
    rows = run_rows(text, [5.0], steps=5)
    assert rows["actuator_force"][:, 0] == pytest.approx(2.0, abs=0)
    assert balance(rows) < 1e-12


def test_a_joint_bounds_the_sum_of_its_actuators() -> None:
    """Uneven, over implicit and explicit ones."""
    servos = '<position joint="hinge" kp="1e4"/><velocity joint="hinge" kv="5"/><motor joint="hinge"/>'
    text = servo(servos, 'actuatorfrcrange="-1.5 4"')
    assert run_rows(text, [1, 0, 0.5], steps=3)["tau_drive"][:, 0] == pytest.approx(4.0, abs=0)
    rows = run_rows(text, [-1, 0, 0.5], steps=3)
    assert rows["tau_drive"][:, 0] == pytest.approx(-1.5, abs=0)
    assert balance(rows) < 1e-12
    assert run_rows(text, [0, 0, 7.0], steps=1, integrator="rk4")["tau_drive"][0, 0] == pytest.approx(4.0, abs=0)


def test_what_an_actuator_bounds_counts_once_in_the_sum_of_its_joint() -> None:
    text = servo('<position joint="hinge" kp="1e4" forcerange="-3 3"/>', 'actuatorfrcrange="-8 8"')
    rows = run_rows(text, [1.0], steps=3)
    assert rows["tau_drive"][:, 0] == pytest.approx(3.0, abs=0)
    assert balance(rows) < 1e-12


def test_an_actuator_that_meets_its_bound_in_a_sum_at_its_bound_is_not_added() -> None:
    """Held back by the joint's bound, the servo lags behind and asks for more than it can."""
    servos = '<velocity joint="hinge" kv="1e4" {}/>'
    free = run_rows(servo(servos.format("")), [0.5], steps=1)["actuator_force"][0, 0]
    text = servo(
        servos.format(f'forcerange="{-1.5 * free} {1.5 * free}"'), f'actuatorfrcrange="{-0.5 * free} {0.5 * free}"'
    )
    rows = run_rows(text, [0.5], steps=1)
    assert rows["actuator_force"][0, 0] == pytest.approx(1.5 * free, rel=1e-12)
    assert rows["tau_drive"][0, 0] == pytest.approx(0.5 * free, rel=1e-12)
    assert balance(rows) < 1e-12


def test_a_servo_at_rest_carries_the_load() -> None:
    """kp (control - q) = m g l cos q at the end of a damped swing."""
    text = """<mujoco><worldbody><body><joint name="j" axis="0 -1 0" damping="2"/>
        <inertial pos="0.5 0 0" mass="2" diaginertia="0.1 0.1 0.1"/></body></worldbody>
        <actuator><position joint="j" kp="50"/></actuator></mujoco>"""
    rows = run_rows(text, [0.4], steps=6000)
    q = float(rows["qpos"][-1, 0])
    assert 50.0 * (0.4 - q) == pytest.approx(2 * 9.81 * 0.5 * np.cos(q), rel=1e-9)


# ------------------------------------------------------------------ reading


def test_an_actuator_on_a_body_acts_and_is_not_warned_of() -> None:
    robot = read_text(
        """<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody>
        <actuator><adhesion name="ad" body="b" gain="20" ctrlrange="0 1"/></actuator></mujoco>"""
    )
    assert robot.actuators[0].transmission == "body"
    assert robot.notes == ()


CLASSES = (
    '<position kp="7" kv="0.5" inheritrange="0.5"/>',
    '<position kp="7" timeconst="0.3"/>',
    '<velocity kv="6"/>',
    '<intvelocity kp="5" dampratio="0.5"/>',
    '<motor gear="2"/>',
    '<general gainprm="7 8" biasprm="1 2 -3" dynprm="4 5"/>',
    '<general gainprm="7" biasprm="1 -7 -3" dynprm="4 5" dyntype="filterexact" biastype="affine"/>',
    '<general gaintype="affine" gainprm="1 2 -3"/>',
    '<general dynprm="0.02"/>',
    '<damper kv="7" ctrlrange="0 1"/>',
    '<cylinder area="7" timeconst="5" bias="1 2 3"/>',
    '<muscle force="7" lmin="0.3" timeconst="0.1 0.2"/>',
    '<adhesion gain="7" ctrlrange="0 1"/>',
    '<pid kp="7" kv="0.5" ki="2" imax="3" input="pos ff"/>',
    '<dcmotor motorconst="7" resistance="3" cogging="1 2 3" controller="1 2 3 4 5 6" input="pos"/>',
    "",
)
ASKING = (
    '<position joint="j" class="{0}"/>',
    '<velocity joint="j" class="{0}"/>',
    '<intvelocity joint="j" class="{0}"/>',
    '<motor joint="j" class="{0}"/>',
    '<general joint="j" class="{0}" lengthrange="0 1"/>',
    '<damper joint="j" class="{0}" ctrlrange="0 1"/>',
    '<cylinder joint="j" class="{0}"/>',
    '<muscle joint="j" class="{0}" lengthrange="0 1"/>',
    '<adhesion body="b" class="{0}" ctrlrange="0 1"/>',
    '<pid joint="j" class="{0}"/>',
    '<dcmotor joint="j" motorconst="0.1" resistance="2" class="{0}"/>',
)


@pytest.mark.parametrize("outer", CLASSES)
@pytest.mark.parametrize("asking", ASKING)
def test_classes_hand_on_what_mujocos_do(outer: str, asking: str) -> None:
    """A class in a class, a second kind in either, and every kind of actuator that asks for them."""
    for inner in CLASSES:
        nested = f'{outer}<default class="b">{inner}</default>'
        compare_class(nested, asking.format("b"))
        if outer.split(" ")[0] != inner.split(" ")[0]:
            compare_class(outer + inner, asking.format("a"))


def compare_class(content: str, asking: str) -> None:
    """One actuator of a class, here and in MuJoCo."""
    text = f"""<mujoco><default><default class="a">{content}</default></default><worldbody><body name="b">
        <joint name="j" range="-1 2" limited="true"/><geom size="0.1"/></body></worldbody>
        <actuator>{asking}</actuator></mujoco>"""
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:  # mixtures whose ranges MuJoCo does not take
        return
    (actuator,) = read_text(text).actuators
    ours = (actuator.dynamics_parameters, actuator.gain_parameters, actuator.bias_parameters)
    theirs = [model.actuator_dynprm[0], model.actuator_gainprm[0], model.actuator_biasprm[0].copy()]
    if actuator.bias == "affine" and actuator.bias_parameters[2] > 0:  # a damping ratio, in MuJoCo resolved by now
        theirs[2][2] = actuator.bias_parameters[2]
    assert np.allclose(ours, theirs), text
    assert actuator.gear[0] == model.actuator_gear[0, 0]
    assert len(actuator.control_ranges) == model.nu
    for n, bounds in enumerate(actuator.control_ranges):
        assert (bounds is not None) == model.actuator_ctrllimited[n], text
        assert bounds is None or bounds == pytest.approx(tuple(model.actuator_ctrlrange[n])), text


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        ('<motor joint="j" site="s"/>', "has 2 transmissions, want one of joint"),
        ("<motor/>", "has 0 transmissions"),
        ('<motor joint="k"/>', "joint 'k' does not exist; known: b, j"),
        ('<motor cranksite="s" cranklength="1"/>', "slidersite '' does not exist"),
        ('<motor cranksite="s" slidersite="s"/>', "cranklength is 0 m, want more than 0"),
        ('<motor joint="j" refsite="s"/>', "refsite is for a site transmission only"),
        ('<motor joint="j" ctrlrange="1 -1" ctrllimited="true"/>', "ctrlrange is 1 to -1: the first must be smaller"),
        ('<general joint="j" dyntype="user"/>', "dyntype 'user' of <general> is not supported yet"),
        ('<plugin joint="j" plugin="a.b"/>', "<plugin> is not supported yet"),
        ('<position joint="j" kv="1" dampratio="1"/>', "has kv and dampratio, want one of them"),
        ('<position joint="j" kv="-1"/>', "kv is -1, want at least 0"),
        ('<position joint="j" inheritrange="1"/>', "inheritrange: joint 'j' has no range"),
        ('<general joint="j" actrange="0 1"/>', "has an actrange, but no dyntype"),
        ('<general joint="j" actdim="2" dyntype="filter"/>', "actdim is 2, want 1 for dyntype filter"),
        ('<muscle joint="j" lengthrange="0 1" lmin="2"/>', "a muscle wants range[0] < range[1]"),
        ('<damper joint="j" kv="1" ctrlrange="-1 1"/>', "ctrlrange begins at -1, want at least 0"),
        ('<damper joint="j" kv="1"/>', "ctrlrange is 0 to 0: the first must be smaller"),
        ('<dcmotor joint="j"/>', "motor constant and resistance must be more than 0"),
        ('<pid joint="j" input="vel pos"/>', "inputs must stand in the order pos, vel, ff"),
        ('<motor site="s" damping="1"/>', "armature and damping need a joint or a tendon, not a site"),
    ],
)
def test_what_is_wrong_is_refused_by_name(actuator: str, message: str) -> None:
    text = f"""<mujoco><worldbody><body><joint name="j"/><geom size="0.1"/><site name="s"/>
<body><joint name="b" type="ball"/><geom size="0.1"/></body></body></worldbody><actuator>
{actuator}</actuator></mujoco>"""
    with pytest.raises(ModelError) as caught:
        read_text(text)
    assert str(caught.value).startswith("robot.xml:3: ") and message in str(caught.value)


def test_groups_and_flags_switch_actuators_off() -> None:
    def text(option: str) -> str:
        return f"""<mujoco><option {option}<worldbody><body><joint name="j" type="slide"/><geom size="0.1" mass="1"/>
            </body></worldbody><actuator><motor joint="j" group="2" ctrlrange="-1 1"/><motor joint="j" gear="2"/>
            <intvelocity joint="j" group="2"/></actuator></mujoco>"""

    controls = [3.0, 1.0, 1.0]
    every = run_rows(text('gravity="0 0 0"/>'), controls, steps=2)
    assert every["actuator_force"][0] == pytest.approx([1, 1, 0], abs=0.1)
    some = run_rows(text('gravity="0 0 0" actuatorgroupdisable="0 2"/>'), controls, steps=2)
    assert not some["tau_drive"].any()
    some = run_rows(text('gravity="0 0 0" actuatorgroupdisable="2"/>'), controls, steps=2)
    assert some["tau_drive"][:, 0] == pytest.approx(2.0)
    none = run_rows(text('gravity="0 0 0"><flag actuation="disable"/></option>'), controls, steps=2)
    assert not none["tau_drive"].any() and not none["actuator_force"].any()
    loose = run_rows(text('gravity="0 0 0"><flag clampctrl="disable"/></option>'), controls, steps=2)
    assert loose["actuator_force"][0, 0] == 3.0


def test_copies_of_actuators_come_in_mujocos_order() -> None:
    body = '<body name="{0}"><joint name="{0}"/><geom size="1"/></body>'
    text = f"""<mujoco><worldbody>{body.format("a")}<replicate count="2" offset="5 0 0"><body name="b"><joint name="b"/>
        <geom size="1"/>{body.format("c")}</body></replicate><replicate count="2" offset="9 0 0">{body.format("d")}
        </replicate></worldbody><actuator><motor name="d" joint="d"/><motor name="b" joint="b"/>
        <motor name="a" joint="a"/><motor name="c" joint="c"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    assert [a.name for a in read_text(text).actuators] == [model.actuator(n).name for n in range(model.nu)]


# ------------------------------------------------------------------ public models

ENTRIES = [entry for entry in corpus_entries("mjcf") if entry["expect"] == "load" and entry.get("actuators")]
CHUNKS = 4
LARGE = 150  # dofs; of larger models the actuators alone are compared at fewer states
# models for whole runs, with the order of the step to which their Euler is MuJoCo's (0: to rounding) and why: springs
# are weighed between the step's start and end here, dampers of actuators are at its end, both at its start there
RUNS = {
    "brax.test_data_single_pendulum_position": (2, "position servo"),
    "brax.test_data_single_pendulum_velocity": (1, "velocity servo"),
    "dm_control.mujoco_testing_assets_model_with_third_order_actuators": (1, "filter and integrator before servos"),
    "gymnasium.walker2d": (0, ""),
    "menagerie-fork.robotiq_2f85_2f85": (1, "general on a tendon with damping, springs"),
    "mink.shadow_hand_right_hand": (2, "position servos on joints and tendons"),
    "mujoco.actuation_actuator_group_disable": (0, ""),
    "mujoco.actuation_joint_force_clamp": (1, "damper"),
    "mujoco.actuation_refsite_free": (0, ""),
    "mujoco.actuation_tendon_dampratio": (1, "position servos on tendons, by damping ratio"),
    "mujoco.mjx_mujoco_mjx_test_data_actuator_tendon_force_clamp": (0, ""),
    "mujoco_warp.mujoco_warp_test_data_actuation_muscle": (0, ""),
    "mujoco_warp.mujoco_warp_test_data_actuation_slidercrank": (0, ""),
    "myo_sim.basic_myomuscle": (0, ""),
    "unilab.allegro_hand_allegro_right": (2, "position servos"),
}


def read_or_skip(entry: Mapping[str, Any]) -> Articulation | None:
    """The description, or None for what is not supported yet."""
    try:
        return read(entry["path"])
    except ModelError as error:
        assert "not supported yet" in str(error), f"{entry['id']}: {error}"
        return None


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_public_models_lengths_moments_and_forces_are_mujocos(chunk: int) -> None:
    """At random states; and the lengths at the stored references."""
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in ENTRIES[chunk::CHUNKS]:
        articulation = read_or_skip(entry)
        if articulation is None:
            continue
        model = mujoco.MjModel.from_xml_path(entry["path"])
        states = 3 if model.nv < LARGE else 1
        errors = dict(compared(articulation, model, states, 0.5, zlib.crc32(entry["id"].encode())))
        errors["stored length"] = stored_length_error(articulation, entry)
        wrong += [f"{entry['id']}: {name} {error:.1e}" for name, error in errors.items() if not error < 1e-10]
    assert wrong == []


def stored_length_error(articulation: Articulation, entry: Mapping[str, Any]) -> float:
    """Of act_length in the model's reference file."""
    if not entry.get("oracle"):
        return 0.0
    folder = entry["path"].removesuffix("files/" + entry["path"].split("/files/", 1)[1])
    with h5py.File(folder + entry["oracle"]) as file:
        if "act_length" not in file:
            return 0.0
        q, lengths = file["q"][()], file["act_length"][()]
    ours = Actuators(plan_run(articulation, RunConfig(contacts=False, coupling="rows")))
    nv, nact, nu = ours.state.qvel.size, ours.state.activation.size, ours.row.shape[1]
    found = [ours.at(row, np.zeros(nv), np.zeros(nact), np.zeros(nu)).actuator_length.copy() for row in q]
    return relative(np.array(found), lengths)


def in_corpus(name: str) -> dict[str, Any]:
    """A model's entry; skips without the corpus."""
    for entry in ENTRIES:
        if entry["id"] == f"mjcf.{name}":
            return entry
    pytest.skip("no corpus; set ARTSIM_CORPUS")


@pytest.mark.corpus
@pytest.mark.parametrize("name", RUNS)
def test_public_models_run_by_rk4_as_mujocos(name: str) -> None:
    """200 steps under a random control signal; off on both sides: contacts, limits, dry friction, equalities."""
    entry = in_corpus(name)
    model = mujoco.MjModel.from_xml_path(entry["path"])
    assert against_mujoco(read(entry["path"]), model, integrator="rk4") < 1e-8


@pytest.mark.corpus
@pytest.mark.parametrize("name", RUNS)
def test_public_models_run_by_euler_as_mujocos(name: str) -> None:
    """In steps in which no body turns far or is taut: equal but for rounding, or to the order said above."""
    entry = in_corpus(name)
    order, _ = RUNS[name]

    def error(finer: int, steps: int) -> float:
        model = mujoco.MjModel.from_xml_path(entry["path"])
        options = {"integrator": "semi-implicit-euler", "steps": steps, "finer": finer}
        return against_mujoco(read(entry["path"]), model, **options)

    if order == 0:
        assert error(4, 200) < 1e-9
    else:
        assert error(32, 50) / error(64, 50) == pytest.approx(2.0**order, rel=0.05)
