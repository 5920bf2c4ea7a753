"""Integrators with one implicit stage: orders, energies, and what they make of motion much faster than the step."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import plan_run
from tests.simulation import Run, simulate

IMPLICIT = ("implicit-midpoint", "generalized-alpha", "implicit-euler")
HANDLE = """<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint name="f"/>
  <inertial pos="0.02 0 0.01" mass="0.7" diaginertia="0.003 0.005 0.007"/></body></worldbody></mujoco>"""
BALLS = """<mujoco><worldbody><body><joint name="a" type="ball"/>
  <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".02"/>
  <body pos=".3 .1 0"><joint name="b" type="ball"/><geom type="capsule" fromto="0 0 0 0 .3 .1" size=".02"/></body>
  </body></worldbody></mujoco>"""
FOUR_BAR = """<mujoco><worldbody>
  <body><joint name="crank" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".01"/>
    <body pos=".2 0 0"><joint name="coupler" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 -.3" size=".01"/>
      <site name="end" pos=".3 0 -.3"/></body></body>
  <body pos=".5 0 0"><joint name="rocker" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".01"/>
    <site name="top" pos="0 0 -.3"/></body>
  </worldbody><equality><connect site1="end" site2="top"/></equality></mujoco>"""
MIMIC = """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/>
  <body><joint name="turn" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".02" mass="1"/>
    <body pos="0 0 -.4"><joint name="led" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body>
  </body></body></worldbody>
  <equality><joint joint1="led" joint2="turn" polycoef="0 -1.5 0.3 0 0"/></equality></mujoco>"""
SPRUNG = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
  <site name="s" pos=".3 0 0"/></body><site name="w" pos=".1 .1 .5"/></worldbody>
  <tendon><spatial name="t" stiffness="40" springlength=".4" damping="0.2"><site site="w"/><site site="s"/></spatial>
  </tendon></mujoco>"""
MUSCLE = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody>
  <actuator><general name="m" joint="a" dyntype="filter" dynprm=".05" gainprm="3" biastype="affine" biasprm="0 -40 -1"
  ctrllimited="false"/></actuator></mujoco>"""
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "handle": (HANDLE, {"v0": {"f.vx": 0.1, "f.wx": 0.3, "f.wy": 6.0, "f.wz": 0.2}}),
    "balls": (BALLS, {}),
    "four-bar": (FOUR_BAR, {}),
    "mimic": (MIMIC, {"q0": {"turn": 0.8, "led": -1.008}}),
    "tendon": (SPRUNG, {}),
    "filter": (MUSCLE, {"control": {"m": 1.0}}),
}


def ends(text: str, integrator: str, counts: tuple[int, ...], **options: Any) -> list[Run]:
    """The ends of 0.4 s in so many steps, each as a run."""
    model = load_text(text, name="model.xml")
    return [simulate(model, steps=n + 1, dt=0.4 / n, integrator=integrator, **options) for n in counts]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("integrator", "order"), [*zip(IMPLICIT, (2, 2, 1), strict=True)])
def test_order(name: str, integrator: str, order: int) -> None:
    """Errors against RK4 at a small step, which is of another order and another text."""
    text, options = CASES[name]
    (exact,) = ends(text, "rk4", (3200,), **options)
    found = ends(text, integrator, (100, 200, 400), **options)
    errors = [np.abs(run["qpos"][-1] - exact["qpos"][-1]).max() for run in found]
    print(f"\n{name} {integrator}", *(f"{error:.1e}" for error in errors), end="")
    assert errors[0] < (0.2 if order == 1 else 0.01)
    orders = [math.log2(one / other) for one, other in itertools.pairwise(errors)]
    assert all(order - 0.25 < found < order + 0.5 for found in orders), orders


def test_midpoint_keeps_what_turns_freely() -> None:
    """The energy of an asymmetric body, to what is left of iterations, over 100 s at 0.06 rad a step."""
    options = CASES["handle"][1]
    model = load_text(HANDLE.replace('pos="0.02 0 0.01"', 'pos="0 0 0"'), name="model.xml")
    run = simulate(model, steps=10_000, dt=0.01, integrator="implicit-midpoint", record=("energy",), **options)
    energy = run["energy"].sum(axis=1)
    assert np.abs(energy - energy[0]).max() < 1e-9 * energy[0]


def test_energy_of_midpoint_stays_bounded() -> None:
    """Two balls that tumble for 100 s: a thousandth of the energy that moves, and no more in the second half."""
    model = load_text(BALLS, name="model.xml")
    run = simulate(model, steps=50_000, dt=0.002, integrator="implicit-midpoint", record=("energy",))
    total = run["energy"].sum(axis=1)
    error = np.abs(total - total[0])
    assert error.max() < 1e-3 * run["energy"][:, 0].max()
    assert error[25_000:].max() < 1.5 * error[:25_000].max()


def oscillator(integrator: str, turns: float, steps: int, **options: Any) -> Run:
    """A mass of 1 kg on a spring, drawn by 1 m, with h ω = `turns`."""
    stiffness, dt = (turns / 0.01) ** 2, 0.01
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <body><joint name="x" type="slide" stiffness="{stiffness!r}"/>
      <geom size=".1" mass="1"/></body></worldbody></mujoco>"""
    return simulate(
        load_text(text, name="m.xml"), steps=steps + 1, dt=dt, integrator=integrator, q0={"x": 1.0}, **options
    )


@pytest.mark.parametrize("turns", [0.1, 3.0, 100.0])
def test_fast_oscillation(turns: float) -> None:
    """Closed forms: x midway keeps the energy, implicit Euler divides it by 1 + (h ω)² a step."""
    run = oscillator("implicit-midpoint", turns, 50)
    kept = run["qpos"][:, 0] ** 2 + (run["qvel"][:, 0] * 0.01 / turns) ** 2
    np.testing.assert_allclose(kept, 1.0, rtol=1e-9)
    run = oscillator("implicit-euler", turns, 10)
    left = run["qpos"][:, 0] ** 2 + (run["qvel"][:, 0] * 0.01 / turns) ** 2
    np.testing.assert_allclose(left, (1.0 + turns**2) ** -np.arange(11.0), rtol=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("turns", [0.1, 3.0, 100.0])
def test_generalized_alpha_is_the_published_one(rho: float, turns: float) -> None:
    """Its recursion for one mass (Chung and Hulbert 1993, eq. 6 to 10), solved here for (x, h v, h² a) at the end."""
    am, af = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 - am + af
    beta = 0.25 * (1 - am + af) ** 2
    w = turns**2
    # unknown (x⁺, h v⁺, h² a⁺): two lines of Newmark's, and the balance at the weighted state
    left = np.array([[1, 0, -beta], [0, 1, -gamma], [(1 - af) * w, 0, 1 - am]])
    right = np.array([[1, 1, 0.5 - beta], [0, 1, 1 - gamma], [-af * w, 0, -am]])
    step = np.linalg.solve(left, right)
    state, wanted = np.array([1.0, 0.0, -w]), []
    for _ in range(30):
        wanted.append(state[:2])
        state = step @ state
    run = oscillator("generalized-alpha", turns, 29, rho_inf=rho)
    found = np.stack([run["qpos"][:, 0], 0.01 * run["qvel"][:, 0]], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("integrator", ["implicit-euler", "generalized-alpha"])
def test_links_held_by_stiff_springs(integrator: str) -> None:
    """Springs of 1e6 N m/rad between links of 1e-4 kg m², 400 rad a step: the chain swings as one rod."""
    inner = ""
    for n in range(5, 0, -1):
        spring = 'stiffness="1e6"' if n > 1 else ""
        inner = f"""<body pos="{0.0 if n == 1 else 0.1} 0 0"><joint name="j{n}" axis="0 1 0" {spring}/>
          <inertial pos=".05 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>{inner}</body>"""
    chain = load_text(f"<mujoco><worldbody>{inner}</worldbody></mujoco>", name="m.xml")
    centres = 0.05 + 0.1 * np.arange(5)
    inertia, moment = float(5e-4 + 0.1 * (centres**2).sum()), float(0.1 * centres.sum())
    rod = load_text(
        f"""<mujoco><worldbody><body><joint name="j1" axis="0 1 0"/><inertial pos="{moment / 0.5} 0 0" mass=".5"
        diaginertia="1e-4 {inertia - moment**2 / 0.5!r} {inertia - moment**2 / 0.5!r}"/></body></worldbody></mujoco>""",
        name="m.xml",
    )
    exact = simulate(rod, steps=2001, dt=0.0005, integrator="rk4")
    run = simulate(chain, steps=251, dt=0.004, integrator=integrator)
    assert np.isfinite(run["qpos"]).all()
    assert np.abs(run["qpos"][:, 1:]).max() < 1e-4
    assert abs(run["qpos"][-1, 0] - exact["qpos"][-1, 0]) < (0.2 if integrator == "implicit-euler" else 2e-3)


@pytest.mark.parametrize("integrator", IMPLICIT)
def test_a_run_goes_on_from_a_snapshot(integrator: str) -> None:
    """Byte for byte: also what a step remembers of the one before."""
    plan = plan_run(load_text(BALLS, name="model.xml"), RunConfig(steps=40, integrator=integrator))
    whole = simulation_of(plan, held_controls(plan))
    for _ in whole.blocks(20):
        pass
    part = simulation_of(plan, held_controls(plan))
    part.restore(whole.save())
    for run in (whole, part):
        for _ in run.blocks(20):
            pass
    np.testing.assert_array_equal(whole.qpos, part.qpos)
    np.testing.assert_array_equal(whole.qvel, part.qvel)


def test_refusals() -> None:
    model = load_text(BALLS, name="model.xml")
    with pytest.raises(UsageError, match="--rho-inf is for --integrator generalized-alpha, not rk4"):
        plan_run(model, RunConfig(integrator="rk4", rho_inf=0.5))
    with pytest.raises(UsageError, match="rho_inf"):
        plan_run(model, RunConfig(integrator="generalized-alpha", rho_inf=1.5))
