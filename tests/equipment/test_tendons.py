"""Tendons: paths, moments and springs against MuJoCo at random states; limits, friction, inertia and equalities
against closed forms, against MuJoCo's own steps, and in the balance of forces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.equipment.arrays import EquipmentBundle, EquipmentWork, make_equipment_work
from artsim.sim.equipment.equip import equip
from artsim.sim.foundation.errors import ModelError, StoppedError, UsageError
from artsim.sim.foundation.jit import Entry, bind
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import Step
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.stepping.allocation import make_step
from tests.conftest import corpus, corpus_entries
from tests.equipment.mujoco_tendons import moments_of
from tests.simulation import Run, constant_controls, simulate
from tests.stepping.test_state import STEPS, check_continuation

Array = np.ndarray[Any, np.dtype[np.float64]]
TENDONS = Entry("tendons", "tests.equipment.tendon_kernels", (RobotBundle, Step, EquipmentBundle))
FORCES = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit", "tau_loop", "tau_tendon")
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run


# ------------------------------------------------------------------ what is compared


@dataclass(frozen=True)
class Tendons:
    """A robot's tendons, evaluated at states."""

    articulation: Articulation

    def __post_init__(self) -> None:
        robot = Robot.of(self.articulation)
        equipped = equip(self.articulation, robot.compiled)
        assert equipped is not None
        model, arrays = robot.model, equipped.arrays
        work = make_equipment_work(model, arrays, equipped.activations)
        robot = RobotBundle(model, make_state(model), make_workspace(model))
        records = (robot, make_step(model), EquipmentBundle(arrays, work))
        self.__dict__.update(records=records, call=bind(TENDONS, 1, *records))

    def at(self, qpos: Array, qvel: Array) -> tuple[EquipmentWork, Array, Array]:
        """The scratch (lengths, velocities, forces), the moments (nt, nv), and J̇ v of the first tendons."""
        (_, state, _), step, (arrays, work) = self.__dict__["records"]
        state.qpos[:], state.qvel[:] = qpos, qvel
        self.__dict__["call"]()
        moments = np.zeros((len(arrays.tendon_friction), len(qvel)))
        for t in range(len(moments)):
            entries = slice(arrays.tendon_entry[t], arrays.tendon_entry[t + 1])
            moments[t, arrays.tendon_dof[entries]] = work.tendon_moment[entries]
        return work, moments, step.qacc


def read(text: str) -> Articulation:
    """The description of an MJCF text."""
    return load_text(text, name="test.xml")


def only_tendon_springs(model: mujoco.MjModel) -> None:
    """Leave no passive forces in MuJoCo's model but those of tendons."""
    for name in "jnt_stiffness jnt_stiffnesspoly dof_damping dof_dampingpoly body_gravcomp".split():
        getattr(model, name)[:] = 0
    model.actuator_damping[:] = model.actuator_dampingpoly[:] = 0
    model.opt.density = model.opt.viscosity = 0


def relative(found: Array, reference: Array, least: float = 1e-9) -> float:
    """max|Δ| / max|reference|."""
    if reference.size == 0:
        return 0.0
    return float(np.abs(found - reference).max() / max(np.abs(reference).max(), least))


def errors_at(tendons: Tendons, model: mujoco.MjModel, data: mujoco.MjData, qpos: Array, qvel: Array) -> Array:
    """Errors of length, moment, velocity and force of the springs and dampers at a state."""
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    work, moments, _ = tendons.at(qpos, qvel)
    return np.array(
        [
            relative(work.tendon_length, data.ten_length),
            relative(moments, moments_of(model, data)),
            relative(work.tendon_velocity, data.ten_velocity),
            relative(work.tendon, data.qfrc_passive, 1e-6),
        ]
    )


# ------------------------------------------------------------------ paths

PATHS = """
<mujoco><worldbody>
  <site name="a" pos=".1 -.3 .9"/><site name="b" pos="0 .4 .8"/><site name="out" pos=".5 .1 .6"/>
  <geom name="pin" type="cylinder" size=".08 .3" pos=".1 .05 .5" euler="70 10 0"/>
  <body name="upper" pos="0 0 .6"><joint name="shoulder" type="ball"/><geom size=".05" pos=".1 0 -.1"/>
    <site name="c" pos=".1 .05 -.2"/><site name="in" pos=".12 0 -.08"/>
    <geom name="ball" type="sphere" size=".09" pos=".12 .01 -.1"/>
    <body name="lower" pos=".1 0 -.3"><joint name="elbow" axis="0 1 .2" springref="30"/>
      <joint name="slide" type="slide" axis="1 0 1" springref=".1"/><geom size=".04" pos="0 .1 -.2"/>
      <site name="d" pos="0 .05 -.2"/>
    </body>
  </body>
  <body name="stone" pos=".3 .2 .4"><freejoint/><geom size=".06" pos=".01 .02 .03"/>
    <site name="e" pos=".05 0 .02"/></body>
</worldbody><tendon>
  <fixed name="sum" stiffness="3" springlength=".2 .3"><joint joint="elbow" coef="2"/>
    <joint joint="slide" coef="-.5"/></fixed>
  <spatial name="straight" stiffness="10 4 90" damping="2 .5 3"><site site="a"/>
    <site site="c"/><site site="d"/></spatial>
  <spatial name="around" stiffness="5"><site site="a"/><geom geom="ball"/><site site="d"/></spatial>
  <spatial name="aside"><site site="b"/><geom geom="pin" sidesite="out"/><site site="d"/></spatial>
  <spatial name="through"><site site="b"/><geom geom="ball" sidesite="in"/><site site="e"/></spatial>
  <spatial name="pulley" damping="0 3" springlength=".4"><site site="a"/>
    <site site="c"/><pulley divisor="2"/><site site="c"/>
    <geom geom="pin"/><site site="e"/><pulley divisor="3"/><site site="d"/><site site="e"/></spatial>
</tendon></mujoco>
"""


@cache
def both(text: str) -> tuple[Tendons, mujoco.MjModel, mujoco.MjData]:
    """The same model here and there."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    only_tendon_springs(model)
    return Tendons(read(text)), model, mujoco.MjData(model)


def random_states(model: mujoco.MjModel, count: int) -> Iterator[tuple[Array, Array]]:
    """Coordinates around the reference and velocities."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        qpos = model.qpos0 + 0.5 * rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, qpos)
        yield qpos, rng.normal(size=model.nv)


def test_paths_of_every_kind_are_mujocos() -> None:
    tendons, model, data = both(PATHS)
    errors = [errors_at(tendons, model, data, *state) for state in random_states(model, 200)]
    assert np.max(errors, axis=0) == pytest.approx(0, abs=1e-10)
    wrapped = np.zeros(model.ntendon)
    for qpos, _ in random_states(model, 200):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        wrapped += np.array([np.any(data.wrap_obj.ravel()[a * 2 : (a + n) * 2] >= 0) for a, n in _wraps(data)])
    assert np.all(wrapped[2:] > 5)  # the states that touch the geoms are among them


def _wraps(data: mujoco.MjData) -> Iterator[tuple[int, int]]:
    yield from zip(data.ten_wrapadr, data.ten_wrapnum, strict=True)


@pytest.mark.small
def test_rest_lengths_are_those_of_the_spring_pose() -> None:
    tendons, model, _ = both(PATHS)
    work, _, _ = tendons.at(model.qpos0, np.zeros(model.nv))
    assert work.spring_length == pytest.approx(model.tendon_lengthspring, abs=1e-12)
    assert work.tendon_length0 == pytest.approx(model.tendon_length0, abs=1e-12)
    assert np.abs(model.tendon_lengthspring[1] - model.tendon_length0[1]).max() > 0.01  # the poses differ


def test_moments_rates_are_their_derivatives() -> None:
    """J̇ v of straight tendons, by differences along the motion."""
    tendons, model, _ = both(PATHS)
    for qpos, qvel in random_states(model, 10):
        found = tendons.at(qpos, qvel)[2][1]
        rates = []
        for step in (-1e-5, 1e-5):
            moved = qpos.copy()
            mujoco.mj_integratePos(model, moved, qvel, step)
            rates.append(tendons.at(moved, qvel)[0].tendon_velocity[1])
        assert found == pytest.approx((rates[1] - rates[0]) / 2e-5, abs=1e-7)


# ------------------------------------------------------------------ forces, in closed form


def hanging(tendon: str, *, joint: str = "", more: str = "", mass: float = 2.0) -> str:
    """A mass on a vertical slide x [m], with a fixed tendon of length 3 x."""
    return f"""<mujoco><worldbody><body name="box"><joint name="x" type="slide" {joint}/>
        <geom size=".1" mass="{mass}"/></body></worldbody><tendon>
        <fixed name="t" {tendon}><joint joint="x" coef="3"/></fixed></tendon>{more}</mujoco>"""


def run(text: str, **config: Any) -> Run:
    """A run of an MJCF text; the balance of forces holds in every row."""
    record = ("qpos", "qvel", "qacc", "mass_matrix", "bias", *FORCES)
    found = simulate(read(text), record=record, **config)
    left = np.einsum("tij,tj->ti", found["mass_matrix"], found["qacc"]) + found["bias"]
    forces = [values for name, values in found.rows.items() if name.startswith("tau_")]
    largest = max(1.0, float(np.abs([*forces, found["bias"]]).max()))
    assert np.abs(left - sum(forces)).max() < 1e-9 * largest
    return found


@pytest.mark.small
@pytest.mark.parametrize(("gravity", "reached"), [(-9.81, -0.05), (9.81, 0.1)])
def test_a_limit_holds_the_weight(gravity: float, reached: float) -> None:
    found = run(hanging('range="-.15 .3"'), steps=300, dt=0.002, gravity=(0, 0, gravity))
    assert found["qpos"][-1, 0] == pytest.approx(reached, abs=1e-12)
    assert found["tau_tendon"][-1, 0] == pytest.approx(-2 * gravity, rel=1e-12)
    free = found["tau_tendon"][:, 0] == 0
    assert free[:20].all()  # nothing pulls before it is met
    assert 3 * found["qpos"].min() >= -0.15 - 1e-12 and 3 * found["qpos"].max() <= 0.3 + 1e-12


@pytest.mark.small
def test_a_limit_broken_at_the_start_is_regained_slowly() -> None:
    found = run(hanging('range="-.15 .3"'), steps=500, dt=0.002, q0={"x": -0.1})
    assert found["qvel"].max() == pytest.approx(0.05 / 0.1, rel=1e-9)
    assert np.all(np.diff(found["qpos"][:, 0]) >= -1e-15)
    assert found["qpos"][-1, 0] == pytest.approx(-0.05, abs=1e-5)


@pytest.mark.small
@pytest.mark.parametrize("force", [15.0, 1.5])
def test_friction_holds_or_slides(force: float) -> None:
    """3 x moves against the friction force of the tendon: 3 of it act on x."""
    found = run(hanging(f'frictionloss="{force}"'), steps=50, dt=0.002)
    left = max(0.0, 9.81 - 3 * force / 2)
    assert found["qacc"][:, 0] == pytest.approx(-left, abs=1e-9)


@pytest.mark.small
@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_armature_is_inertia_of_the_length(integrator: str) -> None:
    found = run(hanging('armature=".5"'), steps=20, dt=0.002, integrator=integrator)
    assert found["qacc"][:, 0] == pytest.approx(-9.81 * 2 / (2 + 0.5 * 9), rel=1e-12)


@pytest.mark.small
def test_springs_swing_and_dampers_settle() -> None:
    """x¨ = -(9 k / m) x under RK4: the closed form; with a damper the energy is gone."""
    found = run(
        hanging('stiffness="40" springlength="0"'),
        steps=500,
        dt=0.002,
        gravity=(0, 0, 0),
        integrator="rk4",
        q0={"x": 0.1},
    )
    time = 0.002 * np.arange(500)
    assert found["qpos"][:, 0] == pytest.approx(0.1 * np.cos(math.sqrt(9 * 40 / 2) * time), abs=1e-7)
    damped = run(
        hanging('stiffness="40" springlength="0" damping="5"'), steps=500, dt=0.002, gravity=(0, 0, 0), q0={"x": 0.1}
    )
    assert abs(damped["qpos"][-1, 0]) < 1e-4


# ------------------------------------------------------------------ equalities

TWO = """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size=".1" mass="2"/></body>
    <body pos="1 0 0"><joint name="y" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
    <tendon><fixed name="a"><joint joint="x" coef="1"/></fixed>
    <fixed name="b"><joint joint="y" coef="2"/></fixed></tendon>
    <equality><tendon tendon1="a" {}/></equality></mujoco>"""


@pytest.mark.small
@pytest.mark.parametrize(("integrator", "bound"), [("semi-implicit-euler", 1e-4), ("rk4", 1e-7)])
def test_an_equality_of_two_tendons_is_held(integrator: str, bound: float) -> None:
    """What is left shrinks with the square of the step (under RK4 too: its pull back to C = 0 grows as 1/h²)."""
    text = TWO.format('tendon2="b" polycoef="0 .5 .3 0 0"')
    errors = []
    for dt in (0.002, 0.001):
        found = run(text, steps=round(1 / dt), dt=dt, integrator=integrator, v0={"x": 0.5, "y": 0.5})
        x, y = found["qpos"].T
        errors.append(np.abs(x - (y + 0.3 * (2 * y) ** 2)).max())
    assert errors[0] < bound
    assert math.log2(errors[0] / errors[1]) > 1.9
    assert np.ptp(y) > 0.1
    slope = 1 + 2.4 * y  # the force goes through the polynomial's slope
    assert found["tau_tendon"][:, 1] == pytest.approx(-slope * found["tau_tendon"][:, 0], abs=1e-9)


@pytest.mark.small
def test_an_equality_of_one_tendon_holds_its_length() -> None:
    found = run(TWO.format('polycoef=".02"'), steps=300, dt=0.002)
    assert found["qpos"][-1, 0] == pytest.approx(0.02, abs=1e-12)
    assert found["tau_tendon"][-1] == pytest.approx([2 * 9.81, 0], abs=1e-9)


SOFT = """<mujoco><option {}><flag contact="disable"/></option><worldbody><site name="w" pos="0.1 0 1"/>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 .1"/>
    <site name="p" pos=".2 .05 0"/>
    <body pos=".3 0 .1"><joint name="b" axis="0 1 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body>
  </body>
  <body pos="0 1 0"><joint name="c" axis="1 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/></body>
  </worldbody>
  <tendon>
    <fixed name="f"><joint joint="a" coef=".3"/><joint joint="b" coef="-.5"/></fixed>
    <fixed name="g"><joint joint="c" coef="1"/><joint joint="b" coef=".2"/></fixed>
    <spatial name="s"><site site="w"/><site site="p"/></spatial>
  </tendon>
  <equality>
    <tendon tendon1="f" tendon2="g" polycoef=".1 .7 .3 0 0" solref=".03 .8"/>
    <tendon tendon1="s" solref="-300 -20" solimp=".8 .9 .01 .4 3"/>
  </equality></mujoco>"""


def soft_and_theirs(option: str, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """MuJoCo's model and data at a random state, and that state as settings of a run."""
    model = mujoco.MjModel.from_xml_string(SOFT.format(option))
    model.opt.tolerance, model.opt.iterations = 0, 500
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = 0.5 * rng.normal(size=3), rng.normal(size=3)
    names = ("a", "b", "c")
    start = {"q0": dict(zip(names, data.qpos, strict=True)), "v0": dict(zip(names, data.qvel, strict=True))}
    return model, data, start


@pytest.mark.small
@pytest.mark.parametrize("seed", range(3))
def test_soft_equalities_give_way_as_in_mujoco(seed: int) -> None:
    """Time constant and damping ratio, or stiffness and damping; impedances that grow with the error."""
    model, data, start = soft_and_theirs("", seed)
    mujoco.mj_forward(model, data)
    found = run(SOFT.format(""), steps=1, dt=0.002, integrator="rk4", **start)
    assert found["qacc"][0] == pytest.approx(np.array(data.qacc), rel=1e-8)


@pytest.mark.small
def test_soft_equalities_by_euler_come_near_mujocos() -> None:
    """To the first order in the step: the reference is taken at the step's end here, at its start there."""
    gap = []
    for dt in (2e-3, 1e-3):
        model, data, start = soft_and_theirs(f'timestep="{dt}"', 1)
        found = run(SOFT.format(""), steps=round(0.2 / dt) + 1, dt=dt, **start)
        for _ in range(round(0.2 / dt)):
            mujoco.mj_step(model, data)
        gap.append(np.abs(found["qpos"][-1] - data.qpos).max())
    assert gap[1] < 0.7 * gap[0] < 0.1


@pytest.mark.small
def test_an_equality_that_does_not_hold_is_closed_without_a_kick() -> None:
    found = run(TWO.format(""), steps=500, dt=0.002, gravity=(0, 0, 0), q0={"x": 0.3})
    assert np.abs(found["qvel"]).max() <= 0.5 + 1e-12
    assert found["qpos"][-1, 0] == pytest.approx(0, abs=1e-9)


# ------------------------------------------------------------------ equalities of many joints, against numpy

LINE = """<mujoco><worldbody>
    <body><joint name="x1" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body>
    <body pos="0 1 0"><joint name="x2" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
    <body pos="0 2 0"><joint name="x3" type="slide" axis="1 0 0"/><geom size=".1" mass="3"/></body></worldbody>
  <tendon>
    <fixed name="sum"><joint joint="x1" coef="1"/><joint joint="x2" coef="2"/><joint joint="x3" coef="-1"/></fixed>
  </tendon>
  <equality><tendon tendon1="sum" polycoef=".1" {}/></equality></mujoco>"""
MASSES, GEARS, PUSH = np.array([2.0, 1.0, 3.0]), np.array([1.0, 2.0, -1.0]), np.array([4.0, -3.0, 1.0])
PUSHED = {"torque": dict(zip(("x1", "x2", "x3"), PUSH.tolist(), strict=True)), "dt": 0.002}


@pytest.mark.small
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("coupling", ["auto", "exact", "rows"])
def test_carts_tied_by_a_sum_have_their_reduced_inertia(solver: str, coupling: str) -> None:
    """q1 + 2 q2 - q3 = 0.1: accelerations and the force of the tie in closed form, the tie held to rounding."""
    found = run(LINE.format(""), steps=200, solver=solver, coupling=coupling, q0={"x2": 0.2, "x3": 0.3}, **PUSHED)
    force = -(GEARS @ (PUSH / MASSES)) / (GEARS @ (GEARS / MASSES))
    acceleration = (PUSH + GEARS * force) / MASSES
    assert found["qacc"] == pytest.approx(np.tile(acceleration, (200, 1)), abs=1e-9)
    assert found["tau_tendon"] == pytest.approx(np.tile(GEARS * force, (200, 1)), abs=1e-9)
    n = np.arange(200)
    moved = 0.5 * n * (n + 1) * PUSHED["dt"] ** 2
    assert found["qpos"] == pytest.approx(np.outer(moved, acceleration) + np.array([0, 0.2, 0.3]), abs=1e-12)
    assert found.simulation.tendon_error < 1e-13


def spring_impulse(h: float, C: float, rate: float, r: float, mu: float, ratio: float) -> float:
    """Equations 18 to 29 of the notes on mimic joints, word by word."""
    k_p, k_d = mu**2 / r, 2 * ratio * mu / r
    cfm, erp = 1 / (h * (h * k_p + k_d)), h * k_p / (h * k_p + k_d)
    return -(C * erp / h + rate) / (r + cfm)


@pytest.mark.small
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("frequency", "ratio"), [(3.0, 0.1), (40.0, 2.0), (8.0, 0.0)])
def test_a_compliant_sum_is_the_seeds_spring(solver: str, frequency: float, ratio: float) -> None:
    """Step by step with α = 1, whatever solref-less softness the file has; tgs takes the spring in sub-steps."""
    config = {"coupling": "compliant", "coupling_frequency": frequency, "coupling_damping": ratio, "iterations": 8}
    config["scheme_alpha"] = 1.0
    text = LINE.format('solimp=".8 .9 .01 .5 2"')
    found = run(text, steps=100, solver=solver, q0={"x1": 0.1, "x2": 0.05}, **PUSHED, **config)
    parts = 8 if solver == "tgs" else 1
    h, r, mu = PUSHED["dt"] / parts, GEARS @ (GEARS / MASSES), 2 * np.pi * frequency
    q, v, worst = np.array([0.1, 0.05, 0.0]), np.zeros(3), 0.0
    for row in range(100):
        assert found["qpos"][row] == pytest.approx(q, abs=1e-12)
        assert found["qvel"][row] == pytest.approx(v, abs=1e-11)
        v = v + PUSHED["dt"] * PUSH / MASSES
        for _ in range(parts):
            v = v + GEARS / MASSES * spring_impulse(h, GEARS @ q - 0.1, GEARS @ v, r, mu, ratio)
            q = q + h * v
        worst = max(worst, abs(GEARS @ q - 0.1))
    assert found.simulation.tendon_error == pytest.approx(worst, abs=1e-12)


TIED = """<mujoco><option gravity="0 0 -9.81"><flag contact="disable"/></option><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 .1"/>
    <body pos=".3 0 .1"><joint name="b" axis="0 1 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
      <site name="t" pos=".3 0 0"/></body></body>
  <body pos="0 1 0"><joint name="c" axis="1 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0"/>
    <site name="u" pos=".2 0 0"/></body></worldbody>
  <tendon><fixed name="f"><joint joint="a" coef=".3"/><joint joint="b" coef="-.5"/><joint joint="c" coef=".4"/></fixed>
    <spatial name="s"><site site="t"/><site site="u"/></spatial></tendon>
  <equality>{}</equality></mujoco>"""
QUARTIC = '<tendon tendon1="f" tendon2="s" polycoef=".01 .7 .3 -.4 .5" {0}/>'
DISTANCE = '<tendon tendon1="s" polycoef=".02" {0}/>'
TIES = {"quartic": (QUARTIC, 0, 1, (0.01, 0.7, 0.3, -0.4, 0.5)), "distance": (DISTANCE, 1, -1, (0.02,))}


@pytest.mark.small
@pytest.mark.parametrize("solver", sorted({*SOLVERS} - {"tgs"}))
@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("frequency", [6.0, None])
def test_ties_of_any_tendons_are_the_seeds_row_on_mujocos_system(
    solver: str, tie: str, frequency: float | None
) -> None:
    """A fixed tendon a quartic of a spatial one, and a distance: M, bias, lengths and moments of every step MuJoCo's.

    Hard ones too, where the file is soft.
    """
    equality, first, second, coefficients = TIES[tie]
    config: dict[str, Any] = {"coupling": "rows", "integrator": "semi-implicit-euler"}
    if frequency is not None:
        config |= {
            "coupling": "compliant",
            "coupling_frequency": frequency,
            "coupling_damping": 0.3,
            "scheme_alpha": 1.0,
        }
    text = TIED.format(equality.format("" if frequency else 'solref=".05 1"'))
    found = run(text, steps=60, dt=0.002, solver=solver, v0={"a": 1.0, "b": -2.0, "c": 1.5}, **config)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start, M, h = data.ten_length.copy(), np.zeros((3, 3)), 0.002
    polynomial = np.polynomial.Polynomial(coefficients)
    worst = []
    for q, v, after in zip(found["qpos"], found["qvel"], found["qvel"][1:], strict=False):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, M)
        moments, x = moments_of(model, data), data.ten_length[second] - start[second] if second >= 0 else 0.0
        C = data.ten_length[first] - start[first] - polynomial(x)
        J = moments[first] - (polynomial.deriv()(x) * moments[second] if second >= 0 else 0.0)
        free = v - h * np.linalg.solve(M, data.qfrc_bias)
        answer = np.linalg.solve(M, J)
        if frequency is None and solver in ("newton", "propagation", "direct", "brute"):  # aimed at C of the step's end
            impulse = J @ (after - free) / (J @ answer)
            data.qpos[:] = q + h * after
            mujoco.mj_kinematics(model, data)
            mujoco.mj_tendon(model, data)
            x = data.ten_length[second] - start[second] if second >= 0 else 0.0
            end = data.ten_length[first] - start[first] - polynomial(x)
            assert end == pytest.approx(C * (1.0 - h * min(1 / h, 0.5 / max(abs(C), 1e-300))), abs=1e-8)
        elif frequency is None:
            impulse = -(min(1 / h, 0.5 / max(abs(C), 1e-300)) * C + J @ free) / (J @ answer)
        else:
            impulse = spring_impulse(h, C, J @ free, J @ answer, 2 * np.pi * frequency, 0.3)
        assert after == pytest.approx(free + answer * impulse, abs=1e-10)
        worst.append(abs(C))
    assert found.simulation.tendon_error >= max(worst[1:]) - 1e-12
    if frequency is None:
        assert worst[-1] < 1e-4 < 1e-2 < np.ptp(found["qpos"], axis=0).max()


@pytest.mark.small
def test_a_hard_tie_is_seen_to_hold_where_the_files_softness_does_not() -> None:
    text = LINE.format('solref=".1 1"')
    errors = {
        coupling: run(text, steps=200, coupling=coupling, q0={"x1": 0.1}, **PUSHED).simulation.tendon_error
        for coupling in ("auto", "rows", "exact")
    }
    assert errors["rows"] == errors["exact"] < 1e-13
    assert errors["auto"] > 1e-4


@pytest.mark.small
def test_a_compliant_tie_by_rk4_swings_at_its_frequency() -> None:
    """C = C0 cos μt without damping, whatever the masses: to the fourth order."""
    config: dict[str, Any] = {"coupling": "compliant", "coupling_frequency": 5.0, "coupling_damping": 0.0}
    found = run(LINE.format(""), steps=300, dt=0.001, integrator="rk4", q0={"x1": 0.15}, **config)
    found_C = found["qpos"] @ GEARS - 0.1
    assert found_C == pytest.approx(0.05 * np.cos(10 * np.pi * 0.001 * np.arange(300)), abs=1e-7)
    assert np.abs(found["tau_tendon"]).max() > 1


@pytest.mark.small
@pytest.mark.parametrize("coupling", ["rows", "compliant"])
def test_ties_go_on_with_the_same_bytes(coupling: str) -> None:
    config: dict[str, Any] = {"coupling_frequency": 6.0} if coupling == "compliant" else {}
    text = TIED.format(QUARTIC.format("") + DISTANCE.format(""))
    plan = plan_run(read(text), RunConfig(contacts=False, steps=STEPS, coupling=coupling, v0={"a": 1.0}, **config))
    check_continuation(plan, constant_controls(plan), 5)


@pytest.mark.small
def test_a_compliant_tie_keeps_the_softness_that_the_file_sets() -> None:
    text = LINE.format('solref=".03 .8"')
    config: dict[str, Any] = {"coupling": "compliant", "coupling_frequency": 5.0}
    runs = [run(text, steps=50, q0={"x1": 0.15}, **PUSHED, **more)["qpos"] for more in ({}, config)]
    assert np.array_equal(*runs)


# ------------------------------------------------------------------ inertia along a path, against MuJoCo's steps

CRANE = """<mujoco><option gravity="0 0 -9.81" {}/><worldbody><site name="a" pos=".3 .1 1"/>
  <body pos="0 0 1"><joint name="p" type="ball"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 -.2"/>
    <body pos=".3 0 -.2"><joint name="q" axis="0 1 0"/><geom size=".05" pos="0 0 -.2"/><site name="b" pos=".05 0 -.2"/>
  </body></body></worldbody>
  <tendon><spatial name="t" armature="3"><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize(("integrator", "name"), [("RK4", "rk4"), ("Euler", "semi-implicit-euler")])
def test_inertia_along_a_path_moves_as_in_mujoco(integrator: str, name: str) -> None:
    """Euler in steps in which the ball turns too little to be evaluated again."""
    text = CRANE.format(f'integrator="{integrator}" timestep=".0005"')
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qvel[:] = 1.0, -2.0, 0.5, 3.0
    names = ("p.wx", "p.wy", "p.wz", "q")
    found = run(text, steps=201, dt=0.0005, integrator=name, v0=dict(zip(names, data.qvel, strict=True)))
    for _ in range(200):
        mujoco.mj_step(model, data)
    assert found["qpos"][-1] == pytest.approx(data.qpos, abs=1e-9)
    assert found["qvel"][-1] == pytest.approx(data.qvel, abs=1e-8)


# ------------------------------------------------------------------ refusals


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "config", "error", "message"),
    [
        (hanging('frictionloss="1"'), {"integrator": "rk4"}, UsageError, "friction of tendon 't'"),
        (hanging('range="-.01 1"'), {"integrator": "rk4"}, StoppedError, "tendon 't' reached its limit"),
        (
            PATHS.replace("</mujoco>", '<equality><tendon tendon1="around"/></equality></mujoco>'),
            {"integrator": "rk4"},
            UsageError,
            "tendon 'around', which wraps around a geom",
        ),
    ],
)
def test_what_a_solver_cannot_serve_is_refused(text: str, config: dict[str, str], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(read(text), steps=200, **config)


def path(*points: str, attributes: str = "") -> str:
    """PATHS with one spatial tendon through these."""
    inner = "".join(f"<{point}/>" for point in points)
    head = PATHS[: PATHS.index("<tendon>")]
    return f"{head}<tendon><spatial {attributes}>{inner}</spatial></tendon></mujoco>"


A, B, C, BALL = 'site site="a"', 'site site="b"', 'site site="c"', 'geom geom="ball"'


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (path(), "is empty"),
        (path(A), "a branch of fewer than two sites"),
        (path(A, A), "site 'a' is repeated"),
        (path(A, BALL), "does not start and end with a site"),
        (path(A, BALL, BALL, B), "start and end with a site|no site between"),
        (path(A, B, 'pulley divisor="2"'), "ends with a pulley"),
        (path(A, B, 'pulley divisor="2"', 'pulley divisor="2"', A, C), "fewer than two sites"),
        (path(A, B, 'pulley divisor="0"', A, C), "divisor is 0"),
        (path(A, BALL, C, attributes='armature="1"'), "armature"),
        (path(A, 'geom geom="bell"', C), "geom 'bell' does not exist; did you mean 'ball'"),
        (path(A, 'geom geom="ball" sidesite="inn"', C), "sidesite 'inn' does not exist; did you mean 'in'"),
        (path(A, C, attributes='range="1 .5"'), "range is 1 to 0.5"),
        (path(A, C, attributes='springlength="1 .5"'), "springlength is 1 to 0.5"),
        (path(A, C, attributes='actuatorfrcrange="1 2"'), "actuatorfrcrange"),
        (path(A, C, attributes='springyield=".1"'), "springyield is not supported yet"),
        (hanging("").replace('joint="x" coef', 'joint="z" coef'), "joint 'z' does not exist"),
        (TWO.format('tendon2="c"'), "tendon2 'c' does not exist"),
        (TWO.format('tendon2="a"'), "tendon 'a' follows itself"),
    ],
)
def test_what_is_no_tendon_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(text)


# ------------------------------------------------------------------ public models

WITH_TENDONS = [e for e in corpus_entries("mjcf") if e.get("tendons") and e["expect"] == "load" and 0 < e["nv"] <= 1000]


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(4))
def test_public_models_have_mujocos_tendons(chunk: int) -> None:
    """Lengths, moments, velocities, springs and dampers, at the reference's coordinates where there is one."""
    if not WITH_TENDONS:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    worst: dict[str, Array] = {}
    for entry in WITH_TENDONS[chunk::4]:
        try:
            articulation = load_articulation(entry["path"])
        except ModelError as error:
            assert "not supported yet" in str(error)
            continue
        model = mujoco.MjModel.from_xml_path(entry["path"])
        if model.nflex:  # its edges are tendons here
            continue
        tendons = Tendons(articulation)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        only_tendon_springs(model)
        data = mujoco.MjData(model)
        stored = reference_of(entry)
        rng = np.random.default_rng(1)
        for k in range(5):
            qpos = stored["q"][k] if stored else model.qpos0
            worst[entry["id"]] = errors_at(tendons, model, data, qpos, rng.normal(size=model.nv))
            if stored:
                work, _, _ = tendons.at(qpos, data.qvel)
                assert relative(work.tendon_length, stored["ten_length"][k]) < 1e-9, entry["id"]
    assert worst
    assert {name: error for name, error in worst.items() if not np.all(error < 1e-9)} == {}


def reference_of(entry: dict[str, Any]) -> dict[str, Array]:
    """Coordinates and tendon lengths of a stored reference, if there is one."""
    folder = corpus()
    if not entry.get("oracle") or folder is None:
        return {}
    with h5py.File(folder / entry["oracle"]) as file:
        return {name: file[name][()] for name in ("q", "ten_length")}
