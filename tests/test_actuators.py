"""Actuators against MuJoCo: lengths, moments, forces, activations, and whole runs; and what is exact by itself.

Corpus-free: one model with every kind of actuator on every kind of transmission. With the corpus: all its actuated
models. A muscle's length range that MuJoCo finds by a simulation is set to the one read here before they are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Reading
from artsim.loaders.mjcf.read import read_mjcf
from artsim.loaders.xml import parse
from artsim.sim.configuration import RunConfig, plan_run
from artsim.sim.controls import Controls
from artsim.sim.description import Articulation
from artsim.sim.simulate import Simulation
from tests.actuator_kernels import Actuators

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


def with_length_ranges(articulation: Articulation, model: Any) -> None:
    """Give MuJoCo's model the length ranges that were read."""
    for n, actuator in enumerate(articulation.actuators):
        if actuator.length_range is not None:
            model.actuator_lengthrange[n] = actuator.length_range


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
    with_length_ranges(articulation, model)
    model.opt.disableflags |= OFF.mjDSBL_CONTACT
    ours = Actuators(plan_run(articulation, RunConfig(coupling="rows", dt=float(model.opt.timestep))))
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
    plan = plan_run(articulation, RunConfig(steps=steps, **config))
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
    articulation: Articulation, model: Any, *, integrator: str, steps: int = 200, spread: float = 0.1
) -> float:
    """The state error after `steps` under random controls, without contacts and constraints on both sides."""
    with_length_ranges(articulation, model)
    every = 5
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
