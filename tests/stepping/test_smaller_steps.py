"""The integrators of first order: by midpoint errors fall with the step, semi-implicit-euler is MuJoCo's at any speed.

Trees that turn at about 0.02 rad per step, beside DOP853 with MuJoCo's accelerations.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import artsim
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.simulation import Array, simulate

STEPS = (0.008, 0.004, 0.003, 0.002, 0.001, 0.0005)
SECONDS = 1.2  # all steps end there
ROD = '<geom type="capsule" size=".01" fromto="0 0 0 {}" mass="{}" contype="0" conaffinity="0"/>'


def flyballs(spring: float = 0.0) -> str:
    """A shaft that spins freely about z, and two arms with balls hinged to its top."""
    arm = """<body pos="{x} 0 1" euler="0 0 {turn}"><joint name="{name}" axis="0 1 0" stiffness="{spring}"/>{rod}
      <geom size=".05" pos=".6 0 -.4" mass="5" contype="0" conaffinity="0"/></body>"""
    rod = ROD.format(".6 0 -.4", 0.3)
    arms = [
        arm.format(x=x, turn=turn, name=name, spring=spring, rod=rod)
        for x, turn, name in ((0.05, 0, "a"), (-0.05, 180, "b"))
    ]
    return f"""<mujoco><worldbody><body><joint name="spin" axis="0 0 1"/>{ROD.format("0 0 1", 0.3)}
      {"".join(arms)}</body></worldbody></mujoco>"""


def pendulum() -> str:
    """Two rods that swing in a plane."""
    lower = f'<body pos="0 0 -.5"><joint name="b" axis="0 1 0"/>{ROD.format("0 0 -.4", 1)}</body>'
    upper = f'<body><joint name="a" axis="0 1 0"/>{ROD.format("0 0 -.5", 1)}{lower}</body>'
    return f"<mujoco><worldbody>{upper}</worldbody></mujoco>"


def floating() -> str:
    """A free body with an arm that swings about another axis than the body spins."""
    arm = f'<body pos=".2 0 0"><joint name="arm" axis="0 .6 .8"/>{ROD.format(".3 .1 0", 0.5)}</body>'
    box = '<geom type="box" size=".2 .1 .05" mass="2" contype="0" conaffinity="0"/>'
    body = f'<body><freejoint name="root"/>{box}{arm}</body>'
    return f'<mujoco><option gravity="0 0 0"/><worldbody>{body}</worldbody></mujoco>'


CASES: dict[str, tuple[str, dict[str, float]]] = {
    "flyballs": (flyballs(), {"spin": 6.3}),
    "flyballs on springs": (flyballs(40.0), {"spin": 5.0, "a": 1.0, "b": 1.0}),
    "pendulum": (pendulum(), {"a": 3.0, "b": -2.0}),
    "floating": (floating(), {"root.wx": 2.0, "root.wz": 5.0, "arm": 3.0}),
}


def exact(text: str, qvel: Array, seconds: float) -> Array:
    """MuJoCo's coordinates after so many seconds, its accelerations integrated to 1e-10."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)

    def derivative(_: float, y: Array) -> Array:
        data.qpos[:], data.qvel[:] = y[: model.nq], y[model.nq :]
        mujoco.mj_forward(model, data)
        moved = data.qpos.copy()
        mujoco.mj_integratePos(model, moved, data.qvel, 1e-6)
        back = data.qpos.copy()
        mujoco.mj_integratePos(model, back, data.qvel, -1e-6)
        return np.concatenate([(moved - back) / 2e-6, data.qacc])

    y0 = np.concatenate([data.qpos, qvel])
    solution = solve_ivp(derivative, (0.0, seconds), y0, method="DOP853", rtol=1e-10, atol=1e-10)
    end: Array = solution.y[: model.nq, -1]
    return end


@pytest.mark.parametrize("name", CASES)
def test_half_the_step_is_no_worse(name: str) -> None:
    text, v0 = CASES[name]
    start = simulate(load_text(text, name="model.xml"), steps=1, dt=0.001, v0=v0, record=("qpos", "qvel"))
    truth = exact(text, start["qvel"][0], SECONDS)  # a free body's axes are the world's at the start
    errors: list[float] = []
    for dt in STEPS:
        run: Any = simulate(load_text(text, name="model.xml"), steps=round(SECONDS / dt), dt=dt, v0=v0)
        errors.append(float(np.abs(run.simulation.qpos - truth).max()))
    assert all(after < before for before, after in itertools.pairwise(errors)), errors
    assert errors[-1] < 0.15 * errors[0], errors  # 0.0625 at first order


@pytest.mark.parametrize("speed", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", ["flyballs", "pendulum", "floating"])
def test_semi_implicit_euler_is_mujocos_at_any_speed(name: str, speed: float) -> None:
    """To rounding, up to 0.15 rad in a step; midpoint is another step at each of these speeds."""
    text, v0 = CASES[name]
    v0 = {dof: speed * value for dof, value in v0.items()}
    model = mujoco.MjModel.from_xml_string(text)
    data, runs = mujoco.MjData(model), {}
    for integrator in ("midpoint", "semi-implicit-euler"):
        options: dict[str, Any] = {"steps": 60, "dt": 0.004, "v0": v0, "integrator": integrator}
        runs[integrator] = simulate(load_text(text, name="model.xml"), **options)
    model.opt.timestep = 0.004
    data.qvel[:] = runs["midpoint"]["qvel"][0]
    for q, v in zip(*(runs["semi-implicit-euler"][what] for what in ("qpos", "qvel")), strict=True):
        np.testing.assert_allclose(q, data.qpos, rtol=0, atol=1e-11)
        np.testing.assert_allclose(v, data.qvel, rtol=0, atol=1e-9)
        mujoco.mj_step(model, data)
    assert np.abs(runs["midpoint"]["qpos"][-1] - runs["semi-implicit-euler"]["qpos"][-1]).max() > 1e-6 * speed


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler"])
def test_lanes_have_the_integrator_of_the_rollout(integrator: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(CASES["flyballs"][0])
    robot = artsim.load(path)
    options: dict[str, Any] = {"steps": 200, "dt": 0.004, "integrator": integrator}
    made = artsim.rollout(robot, samples=9, seed=1, v0={"spin": 8.0}, velocity_spread=0.5, **options)
    assert made.outcome.packed
    for k in (0, 8):
        v0 = dict(zip(robot.dofs, made["qvel"][k, 0].tolist(), strict=True))
        one = artsim.simulate(robot, v0=v0, record=["qpos"], **options)
        np.testing.assert_allclose(made["qpos"][k], one["qpos"], rtol=0, atol=1e-11)


def test_the_integrator_is_recorded(tmp_path: Path) -> None:
    """The file names it; auto is midpoint."""
    path = tmp_path / "model.xml"
    path.write_text(CASES["flyballs"][0])
    robot, ends = artsim.load(path), {}
    for integrator in ("auto", "midpoint", "semi-implicit-euler"):
        output = tmp_path / f"{integrator}.h5"
        artsim.simulate(robot, steps=100, v0={"spin": 9.0}, integrator=integrator, output=output)
        with artsim.open(output) as run:
            assert run.config["integrator"] == ("midpoint" if integrator == "auto" else integrator)
            ends[integrator] = run["qpos"][-1]
    np.testing.assert_array_equal(ends["auto"], ends["midpoint"])
    assert np.abs(ends["midpoint"] - ends["semi-implicit-euler"]).max() > 1e-6


@pytest.mark.parametrize("option", [{"solver": "pgs"}, {"coordinates": "maximal"}])
def test_what_has_no_midpoint_says_so(option: dict[str, Any]) -> None:
    articulation = load_text(pendulum(), name="model.xml")
    assert plan_run(articulation, RunConfig(**option)).config.integrator == "semi-implicit-euler"
    with pytest.raises(UsageError, match="integrator 'midpoint'"):
        plan_run(articulation, RunConfig(integrator="midpoint", **option))
