"""Compliance, damping and weights of constraints against eq. 14 of Faure, Compliant plugin (2012), as a dense system.

M and the bias force are MuJoCo's, the rows are written by hand. The slider's rows are linear, so that eq. 9 and 10 are
exact; the arm's loop curves, and its rows have the term J̇ v that those equations leave out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest

import artsim
from artsim.cli.replay import load_stored
from artsim.io.runs.replay import verify
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.loops import with_loops
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.runs.changes import with_entry
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.simulation import simulate

H = 0.002  # [s]

SLIDER = """<mujoco><option timestep="0.002" gravity="1 2 -9.81"/><worldbody><body name="a">
  <joint name="ja" type="slide" axis="1 0 0"/><geom name="ga" type="sphere" size=".05" mass="1"/><body name="b">
  <joint name="jb" type="slide" axis="0.6 0.8 0"/><geom name="gb" type="sphere" size=".05" mass=".7"/><body name="c">
  <joint name="jc" type="slide" axis="0 0.6 0.8"/><geom name="gc" type="sphere" size=".05" mass=".4"/></body>
  </body></body></worldbody>
  <contact><exclude body1="a" body2="b"/><exclude body1="b" body2="c"/><exclude body1="a" body2="c"/></contact>
  <tendon><fixed name="t"><joint joint="ja" coef="1.5"/><joint joint="jc" coef="-0.8"/></fixed></tendon>
  <equality>{}</equality></mujoco>"""
COUPLING = '<joint joint1="jc" joint2="ja" polycoef="0.01 -0.7 0 0 0"/>'
TENDON = '<tendon tendon1="t" polycoef="0.02 0 0 0 0"/>'
LOOP = '<connect name="shut" body1="c" anchor="0.01 0.02 0" {}/>'
AXES = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]])

ARM = """<mujoco><option timestep="0.002" gravity="0 0 -9.81"/><worldbody>
  <body name="a"><joint name="ja" axis="0 1 0"/>
  <geom name="ga" type="capsule" size=".02" fromto="0 0 0 .4 0 0" mass="1"/>
  <body name="b" pos=".4 0 0"><joint name="jb" axis="0 1 0"/>
  <geom name="gb" type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".7"/><body name="c" pos=".3 0 0">
  <joint name="jc" axis="0 1 0"/><geom name="gc" type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".3"/>
  <site name="end" pos=".2 0 0"/></body></body></body><site name="goal" pos="{} 0 {}"/></worldbody>
  <contact><exclude body1="a" body2="b"/><exclude body1="b" body2="c"/><exclude body1="a" body2="c"/></contact>
  <tendon><fixed name="t"><joint joint="ja" coef="1.5"/><joint joint="jc" coef="-0.8"/></fixed></tendon>
  <equality>{}</equality></mujoco>"""


class Law(NamedTuple):
    """Compliance and damping of a constraint, eq. 3, and the weight of its force; None: that of the run."""

    c: float
    d: float = 0.0
    alpha: float | None = None


class Row(NamedTuple):
    """A scalar constraint at a state: its error, its gradient, and its acceleration at zero joint accelerations."""

    phi: float
    J: np.ndarray
    law: Law
    drift: float = 0.0


def eq_14(
    model: mujoco.MjModel,
    rows_at: Callable[[np.ndarray, np.ndarray], list[Row]],
    weights: tuple[float, float],
    q: np.ndarray,
    v: np.ndarray,
    steps: int,
) -> np.ndarray:
    """States (steps + 1, 2 nv) by eq. 14, with the rows' accelerations J̇ v of a prediction of second order."""
    data, h, beta = mujoco.MjData(model), model.opt.timestep, weights[1]
    states = [np.r_[q, v]]
    for _ in range(steps):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        rows = rows_at(q, v)
        J = np.array([row.J for row in rows]).reshape(len(rows), model.nv)
        phi, rate, drift = np.array([(row.phi, row.J @ v, row.drift) for row in rows]).T
        d = np.array([row.law.d for row in rows])
        alpha = np.array([weights[0] if row.law.alpha is None else row.law.alpha for row in rows])
        l = alpha * (h * beta + d)
        right = phi + (d + alpha * h) * rate + alpha * h * (0.5 * h + d) * drift
        K = np.block([[M / h, -J.T], [J, np.diag([row.law.c for row in rows] / l)]])
        x = np.linalg.solve(K, np.r_[-data.qfrc_bias, -right / l])
        dv = x[: model.nv]
        q, v = q + h * (v + beta * dv), v + dv
        states.append(np.r_[q, v])
    return np.array(states)


def run(path: Path, states: np.ndarray, steps: int, **config: Any) -> np.ndarray:
    """The same states by artsim."""
    names, n = ("ja", "jb", "jc"), states.shape[1] // 2
    start = {"q0": dict(zip(names, states[0, :n], strict=True)), "v0": dict(zip(names, states[0, n:], strict=True))}
    config.setdefault("integrator", "semi-implicit-euler")  # eq. 14 has the bias at the start
    recording = artsim.simulate(path, steps=steps + 1, record=["qpos", "qvel"], **start, **config)
    return np.hstack([recording["qpos"], recording["qvel"]])


def written(tmp_path: Path, text: str) -> tuple[Path, mujoco.MjModel]:
    """A model as a file, and as MuJoCo has it without its equalities."""
    path = tmp_path / "model.xml"
    path.write_text(text)
    return path, mujoco.MjModel.from_xml_string(text)


def slider_rows(laws: Mapping[str, Law]) -> Callable[[np.ndarray, np.ndarray], list[Row]]:
    """The rows of the slider's coupling, tendon equality and loop, as far as they have laws."""
    J = {"jc": [[0.7, 0, 1]], "t": [[1.5, 0, -0.8]], "shut": AXES.T}
    constant = {"jc": [-0.01], "t": [-0.02], "shut": [0, 0, 0]}

    def rows(q: np.ndarray, v: np.ndarray) -> list[Row]:
        return [
            Row(float(np.dot(g, q) + b), np.array(g, float), law)
            for name, law in laws.items()
            for g, b in zip(J[name], constant[name], strict=True)
        ]

    return rows


def settings(laws: Mapping[str, Law], weights: tuple[float, float] = (1.0, 1.0)) -> dict[str, Any]:
    """The settings of artsim for laws by name."""
    return {
        "compliance": {name: law.c for name, law in laws.items()},
        "compliance_damping": {name: law.d for name, law in laws.items()},
        "scheme_alpha": weights[0],
        "scheme_beta": weights[1],
    }


Q0, V0 = np.array([0.02, -0.01, 0.03]), np.array([0.3, 0.1, -0.2])
WEIGHTS = [*itertools.product((1.0, 0.75, 0.5, 0.25, 0.05), repeat=2)]
KINDS = {"jc": COUPLING, "t": TENDON, "shut": LOOP.format('body2="world"')}


def differs(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest difference of a state, by the largest coordinate or velocity until then."""
    scale = np.maximum.accumulate(np.maximum(np.abs(truth).max(axis=1), 1.0))
    return float((np.abs(found - truth).max(axis=1) / scale).max())


@pytest.mark.parametrize("name", KINDS)
def test_every_weight_gives_eq_14(tmp_path: Path, name: str) -> None:
    path, model = written(tmp_path, SLIDER.format(KINDS[name]))
    worst = 0.0
    for weights, c, d in itertools.product(WEIGHTS, (0.0, 1e-6, 1e-3, 0.1, 10.0), (0.0, 0.01)):
        laws = {name: Law(c, d)}
        truth = eq_14(model, slider_rows(laws), weights, Q0, V0, 100)
        steps = int(np.argmax(np.abs(truth).max(axis=1) > 1e3)) or 100  # the unstable ones as far as they are moderate
        found = run(path, truth, steps, **settings(laws, weights))
        error = differs(found, truth[: steps + 1])
        worst = max(worst, error)
    assert worst < 1e-12


# ------------------------------------------------------------------ an arm, whose loop curves


LENGTHS = np.array([0.4, 0.3, 0.2])
BENT, SWINGING = np.array([0.3, 0.5, -0.4]), np.array([0.2, -0.3, 0.1])


def tip(q: np.ndarray) -> np.ndarray:
    """Where the arm's end is, x and z [m]."""
    turned = np.cumsum(q)
    return np.array([LENGTHS @ np.cos(turned), -LENGTHS @ np.sin(turned)])


def arm_rows(laws: Mapping[str, Law], goal: np.ndarray) -> Callable[[np.ndarray, np.ndarray], list[Row]]:
    """The rows of the arm's coupling, tendon equality and loop, as far as they have laws."""
    lines = {"jc": (np.array([0.7, 0, 1]), -0.01), "t": (np.array([1.5, 0, -0.8]), -0.02)}

    def rows(q: np.ndarray, v: np.ndarray) -> list[Row]:
        found = [Row(float(J @ q + b), J, laws[name]) for name, (J, b) in lines.items() if name in laws]
        if "shut" in laws:
            turned, rate = np.cumsum(q), np.cumsum(v)
            x, z = LENGTHS * np.cos(turned), -LENGTHS * np.sin(turned)
            J = np.array([[z[k:].sum() for k in range(3)], [-x[k:].sum() for k in range(3)]])
            drift = -np.array([x @ rate**2, z @ rate**2])
            found += [Row(*row, laws["shut"], bend) for *row, bend in zip(tip(q) - goal, J, drift, strict=True)]
        return found

    return rows


def arm(tmp_path: Path, off: float, *names: str) -> tuple[Path, mujoco.MjModel, np.ndarray]:
    """The arm with these constraints; its loop starts open by `off` [m]."""
    goal = tip(BENT) + off
    kinds = {"jc": COUPLING, "t": TENDON, "shut": '<connect name="shut" site1="end" site2="goal"/>'}
    path, model = written(tmp_path, ARM.format(*map(repr, map(float, goal)), "".join(kinds[name] for name in names)))
    return path, model, goal


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (1.0, 0.5), (0.75, 0.6), (0.9, 0.2)])
def test_eq_14_on_what_curves(tmp_path: Path, weights: tuple[float, float]) -> None:
    path, model, goal = arm(tmp_path, 1e-4, "shut")
    for c, d in itertools.product((1e-3, 0.05, 10.0), (0.0, 0.01)):
        laws = {"shut": Law(c, d)}
        truth = eq_14(model, arm_rows(laws, goal), weights, BENT, SWINGING, 100)
        assert differs(run(path, truth, 100, **settings(laws, weights)), truth) < 1e-12


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 0.5), (0.6, 0.9)])
@pytest.mark.parametrize("solver", ["newton", "brute", "propagation", "direct"])
def test_hard_and_soft_rows_are_one_system(tmp_path: Path, weights: tuple[float, float], solver: str) -> None:
    path, model, goal = arm(tmp_path, 1e-3, "jc", "t", "shut")
    laws = {"jc": Law(0.0, 0.01), "t": Law(0.2, 0.0), "shut": Law(0.004, 0.02)}
    start = np.array([0.3, 0.5, 0.01 - 0.21])
    truth = eq_14(model, arm_rows(laws, goal), weights, start, SWINGING, 100)
    assert differs(run(path, truth, 100, solver=solver, **settings(laws, weights)), truth) < 1e-12


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.2])
def test_an_erp_is_a_hard_row_of_eq_14(tmp_path: Path, beta: float) -> None:
    """c = 0, α = 1, d = h / erp - h β, beside a soft row with the run's own α."""
    path, model = written(tmp_path, SLIDER.format(COUPLING + TENDON))
    laws = {"jc": Law(0.0, H / 0.3 - H * beta, alpha=1.0), "t": Law(0.05, 0.01)}
    truth = eq_14(model, slider_rows(laws), (0.6, beta), Q0, V0, 100)
    config = settings({"t": laws["t"]}, (0.6, beta))
    assert differs(run(path, truth, 100, coupling_erp={"jc": 0.3}, **config), truth) < 1e-12


# ------------------------------------------------------------------ erp by name


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("erp", [0.0, 0.05, 0.3, 1.0])
def test_gaps_decay_by_the_erp_of_their_constraint(tmp_path: Path, name: str, erp: float) -> None:
    path, _ = written(tmp_path, SLIDER.format("".join(KINDS.values())))
    others = {other: math.inf for other in KINDS if other != name}
    start = np.r_[1e-3, -2e-3, 3e-3, np.zeros(3)]
    states = run(path, start[None], 20, coupling_erp={"*": 0.9, name: erp}, compliance=others)
    rows = slider_rows({name: Law(0.0)})
    gaps = np.array([[row.phi for row in rows(q, q)] for q in states[:, :3]])
    want = gaps[0] * (1 - erp) ** np.arange(21)[:, None]
    # a loop yields by 2e-6 of its links' mobility, which a force of 20 N opens by 2e-10 m per step
    assert np.abs(gaps - want).max() < (1e-8 if name == "shut" else 1e-14)


def test_an_erp_of_all_leaves_those_with_one_of_their_own(tmp_path: Path) -> None:
    path, _ = written(tmp_path, SLIDER.format(COUPLING + TENDON))
    start = np.r_[1e-3, -2e-3, 3e-3, np.zeros(3)]
    states = run(path, start[None], 5, coupling="rows", coupling_erp={"*": 0.5, "jc": 0.1})
    gaps = np.array([[row.phi for row in slider_rows({"jc": Law(0), "t": Law(0)})(q, q)] for q in states[:, :3]])
    np.testing.assert_allclose(gaps[1:] / gaps[:-1], [[0.9, 0.5]] * 5, rtol=1e-9)


# ------------------------------------------------------------------ from hard to nothing


@pytest.mark.parametrize("name", KINDS)
def test_compliance_is_continuous_from_hard_to_nothing(tmp_path: Path, name: str) -> None:
    path, _ = written(tmp_path, SLIDER.format(KINDS[name]))
    rows = slider_rows({name: Law(0.0)})
    start = np.r_[np.linalg.lstsq(*_linear(rows))[0], np.zeros(3)][None]  # it holds at the start
    compliances = [0.0, 1e-15, 1e-12, *np.logspace(-9, 3, 25)]
    ends, gaps = [], []
    for c in compliances:
        states = run(path, start, 200, compliance={name: c}, compliance_damping={name: 0.05})
        ends.append(states[-1])
        gaps.append(np.linalg.norm([row.phi for row in rows(states[-1, :3], start)]))
    assert np.abs(ends[1] - ends[0]).max() < 1e-13
    assert np.abs(ends[2] - ends[0]).max() < 1e-10  # c λ, with λ some 10 N
    assert np.all(np.diff(gaps[2:]) > 0)
    free, _ = written(tmp_path, SLIDER.format(""))
    apart = run(free, start, 200)
    assert 1e-9 < np.abs(ends[-1] - apart[-1]).max() < 1e-2
    written(tmp_path, SLIDER.format(KINDS[name]))
    assert run(path, start, 200, compliance={name: math.inf}).tobytes() == apart.tobytes()


def _linear(rows: Callable[[np.ndarray, np.ndarray], list[Row]]) -> tuple[np.ndarray, np.ndarray]:
    """J and -C(0) of linear rows."""
    found = rows(np.zeros(3), np.zeros(3))
    return np.array([row.J for row in found]), -np.array([row.phi for row in found])


def test_a_frequency_is_a_compliance_by_the_mobility(tmp_path: Path) -> None:
    """Notes on mimic joints, eq. 22 to 29: k_p = μ² / r and k_d = 2 ζ μ / r, so that c = r / μ² and D = 2 ζ / μ."""
    path, model = written(tmp_path, SLIDER.format(COUPLING))
    data, M, J = mujoco.MjData(model), np.zeros((3, 3)), np.array([0.7, 0, 1])
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    mu, zeta = 2 * np.pi * 5.0, 0.3
    start = np.r_[Q0, V0][None]
    law = {"jc": Law(J @ np.linalg.solve(M, J) / mu**2, 2 * zeta / mu)}
    softened = {"coupling": "compliant", "coupling_frequency": {"jc": 5.0}, "coupling_damping": {"jc": zeta}}
    for weights in ((1.0, 1.0), (0.5, 0.5)):
        config = {"scheme_alpha": weights[0], "scheme_beta": weights[1]}
        by_frequency = run(path, start, 100, **softened, **config)
        assert differs(by_frequency, run(path, start, 100, **settings(law, weights))) < 1e-13
    k_p, k_d, r = mu**2 / (law["jc"].c * mu**2), 2 * zeta * mu / (law["jc"].c * mu**2), law["jc"].c * mu**2
    q, v = eq_21(M, J, -0.01, r, k_p, k_d, start[0], data.qfrc_bias)
    assert differs(run(path, start, 1, **settings(law))[1:], np.r_[q, v][None]) < 1e-14


def eq_21(
    M: np.ndarray, J: np.ndarray, constant: float, r: float, k_p: float, k_d: float, state: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A step of the notes on mimic joints: eq. 18 with cfm and erp of eq. 22 and 23."""
    cfm, erp = 1 / (H * (H * k_p + k_d)), H * k_p / (H * k_p + k_d)
    q, v = state[:3], state[3:]
    free = v - H * np.linalg.solve(M, bias)
    impulse = -(erp * (J @ q + constant) / H + J @ free) / (r + cfm)
    after = free + np.linalg.solve(M, J) * impulse
    return q + H * after, after


def test_half_weights_conserve_the_energy_of_a_spring(tmp_path: Path) -> None:
    """α = β = 1/2 is the trapezoidal rule: energy of a linear spring stays, where α = β = 1 loses it."""
    text = SLIDER.format(COUPLING).replace("1 2 -9.81", "0 0 0")
    path, model = written(tmp_path, text)
    data, M, J = mujoco.MjData(model), np.zeros((3, 3)), np.array([0.7, 0, 1])
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    start, law = np.r_[Q0, V0][None], {"jc": Law(1e-3)}
    for weight in (0.5, 1.0):
        states = run(path, start, 2000, **settings(law, (weight, weight)))
        q, v = states[:, :3], states[:, 3:]
        energy = 0.5 * np.einsum("ni,ij,nj->n", v, M, v) + 0.5 * (q @ J - 0.01) ** 2 / law["jc"].c
        assert (np.abs(energy / energy[0] - 1).max() < 1e-11) == (weight == 0.5)


# ------------------------------------------------------------------ files of loops


HANGING = """<mujoco><option timestep="0.002"/><worldbody><body name="a" pos="0 0 1"><joint name="ja" type="slide"/>
  <joint name="jb" axis="0 1 0"/><geom name="ga" type="box" size=".1 .2 .1" pos=".1 0 0" mass="2"/></body>
  <body name="b"><joint name="jc" axis="0 1 0"/><geom type="box" size=".1 .2 .1" pos=".1 0 0" mass="1"/></body>
  </worldbody></mujoco>"""
ENDS = {"shut": 'kind = "weld"\nlink_a = "a"\nlink_b = "world"', "jc": 'kind = "gear"\nfollower = "jc"\nleader = "jb"'}


@pytest.mark.parametrize(("name", "k", "d"), [("shut", "k = 500.0\nk_rotation = 500.0", "d = 5.0\nd_rotation = 5.0")])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 0.5), (0.7, 0.9)])
def test_a_stiffness_is_the_compliance_of_its_inverse(name: str, k: str, d: str, weights: tuple[float, float]) -> None:
    config = {"scheme_alpha": weights[0], "scheme_beta": weights[1]}
    ends = f'[[loop]]\nname = "{name}"\n{ENDS[name]}\n'
    sprung = simulate(hanging(f"{ends}{k}\n{d}\n"), steps=200, **config)
    given = simulate(hanging(f"{ends}compliance = 0.002\ncompliance_damping = 0.01\n"), steps=200, **config)
    named = {"compliance": {name: 0.002}, "compliance_damping": {name: 0.01}}
    by_name = simulate(hanging(ends), steps=200, **named, **config)
    np.testing.assert_allclose(given["qpos"], sprung["qpos"], rtol=0, atol=1e-13)
    assert given["qpos"].tobytes() == by_name["qpos"].tobytes()
    assert np.abs(given["qpos"][-1]).max() > 1e-2


def test_a_gear_of_a_file_has_its_compliance() -> None:
    gear = f"[[loop]]\n{ENDS['jc']}\nratio = 2.0\n"
    given = simulate(hanging(f"{gear}compliance = 0.02\ncompliance_damping = 0.01\n"), steps=200)
    by_name = simulate(hanging(gear), steps=200, compliance={"jc": 0.02}, compliance_damping={"jc": 0.01})
    assert given["qpos"].tobytes() == by_name["qpos"].tobytes()
    exact = simulate(hanging(gear), steps=200)
    assert simulate(hanging(f"{gear}compliance = 0.02\n"), steps=200, coupling="exact")["qpos"].tobytes() == (
        exact["qpos"].tobytes()
    )
    assert np.abs(given["qpos"] - exact["qpos"]).max() > 1e-3
    for option in ({"integrator": "rk4"}, {"coordinates": "maximal"}):
        with pytest.raises(ArtsimError, match=r"does not serve the compliance of 'jc'|a coupling with a compliance"):
            simulate(hanging(f"{gear}compliance = 0.02\n"), steps=1, **option)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("compliance = -1.0", "compliance is -1, want at least 0"),
        ("compliance_damping = 1.0", "a compliance_damping and no compliance"),
        ("compliance = 1.0\nfrequency = 2.0", "both a compliance and a frequency"),
        ("complience = 1.0", "did you mean 'compliance'"),
    ],
)
def test_what_files_may_not_say(keys: str, words: str) -> None:
    with pytest.raises(ArtsimError, match=words):
        hanging(f"[[loop]]\n{ENDS['shut']}\n{keys}\n")


def hanging(loops: str) -> Articulation:
    """Two bodies with loops from a file."""
    return with_loops(load_text(HANGING, name="model.xml"), loops, file="loops.toml")


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"compliance": {"ja": 0.1}}, "'ja' is not a loop, or a joint or tendon that follows another"),
        ({"compliance": {"nobody*": 0.1}}, "'nobody\\*' matches nothing"),
        ({"compliance": {"jc": -1.0}}, "compliance is .*want a number from 0"),
        ({"compliance": {"jc": math.nan}}, "compliance is .*want a number from 0"),
        ({"compliance_damping": {"jc": 0.1}}, "'jc' has no compliance; give --compliance jc=…"),
        ({"compliance": {"jc": 0.1}, "coupling_erp": {"jc": 0.1}}, "coupling_erp: 'jc' has a compliance"),
        (
            {"compliance": {"jc": 0.1}, "coupling": "compliant", "coupling_frequency": {"jc": 5.0}},
            "'jc' has a frequency too",
        ),
        ({"coupling_erp": {"jc": 1.5}}, "coupling_erp is .*want a number from 0 to 1"),
        ({"scheme_alpha": 0.0}, "scheme_alpha is 0.0, want a share above 0 and up to 1"),
        ({"scheme_beta": 1.5}, "scheme_beta is 1.5, want a share above 0 and up to 1"),
        ({"scheme": "baumgarte"}, "--scheme baumgarte is for --coordinates maximal"),
        ({"compliance": {"jc": 0.1}, "integrator": "rk4"}, "integrator 'rk4' does not serve --compliance"),
        ({"scheme_beta": 0.5, "integrator": "rk4"}, "integrator 'rk4' does not serve --scheme-beta"),
        ({"scheme_beta": 0.5, "solver": "tgs"}, "solver 'tgs' moves positions on its own"),
        ({"compliance": {"jc": 0.1}, "coordinates": "maximal"}, "maximal has nothing for --compliance"),
    ],
)
def test_refusals(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    path, _ = written(tmp_path, SLIDER.format(COUPLING))
    with pytest.raises(ArtsimError, match=words):
        artsim.simulate(path, steps=1, **config)


def test_whole_numbers_are_numbers(tmp_path: Path) -> None:
    path, _ = written(tmp_path, SLIDER.format("".join(KINDS.values())))
    one: dict[str, Any] = {
        "compliance": {"jc": 1},
        "compliance_damping": {"jc": 1},
        "coupling_erp": {"shut": 1, "*": 1},
    }
    config = RunConfig(**one, scheme_alpha=1, scheme_beta=1)
    exact = RunConfig(
        **{name: {k: float(v) for k, v in given.items()} for name, given in one.items()},
        scheme_alpha=1.0,
        scheme_beta=1.0,
    )
    found, want = (simulate(load_articulation(path), steps=20, **vars_of(c)) for c in (config, exact))
    assert found["qpos"].tobytes() == want["qpos"].tobytes()


def vars_of(config: RunConfig) -> dict[str, Any]:
    """What a configuration changes."""
    names = ("compliance", "compliance_damping", "coupling_erp", "scheme_alpha", "scheme_beta")
    return {name: getattr(config, name) for name in names}


def test_a_file_that_wants_rk4_gets_the_default_for_a_compliance(tmp_path: Path) -> None:
    text = SLIDER.format(COUPLING).replace("<option", '<option integrator="RK4"')
    path, _ = written(tmp_path, text)
    plan = plan_run(load_articulation(path), RunConfig(compliance={"jc": 0.1}))
    assert plan.config.integrator == "midpoint"
    assert any("no rows for --compliance" in note for note in plan.notes)


def test_what_does_nothing_or_is_unstable_is_told(tmp_path: Path) -> None:
    path, _ = written(tmp_path, SLIDER.format("".join(KINDS.values())))
    config = RunConfig(compliance={"*": math.inf}, scheme_alpha=0.25, scheme_beta=0.4)
    notes = "\n".join(plan_run(load_articulation(path), config).notes)
    assert "without effect: the coupling of 'jc', the equality of tendon 't', loop 'shut'" in notes
    assert "--scheme-alpha 0.25 and --scheme-beta 0.4 below 1/2" in notes


# ------------------------------------------------------------------ during a run, and again from its file


def test_compliances_change_during_a_run_and_files_say_so(tmp_path: Path) -> None:
    path, _ = written(tmp_path, SLIDER.format("".join(KINDS.values())))
    out = tmp_path / "run.h5"
    law = slider_rows({"jc": Law(0.0)})
    q0 = {"ja": 0.02, "jb": -0.01}
    with artsim.Simulation(
        artsim.load(path), output=out, q0=q0, coupling_erp=0.9, compliance={"shut": math.inf}
    ) as simulation:
        simulation.step(5)
        simulation.set_compliance("t", math.inf)
        simulation.step(5)
        free = law(simulation.qpos, simulation.qvel)[0].phi
        simulation.set_coupling("jc", erp=0.25)
        gaps = []
        for _ in range(4):
            gaps.append(law(simulation.qpos, simulation.qvel)[0].phi)
            simulation.step(1)
        simulation.set_compliance("t", 0.1, damping=0.02)
        simulation.step(5)
    assert abs(free) < 1e-12  # eliminated until it has an erp
    assert np.abs(gaps).max() < 1e-12
    assert verify(out, load_stored) is None


def test_an_erp_by_name_keeps_that_of_all(tmp_path: Path) -> None:
    path, _ = written(tmp_path, SLIDER.format(COUPLING + TENDON))
    config = plan_run(load_articulation(path), RunConfig(coupling_erp=0.9)).config
    assert with_entry(config, "coupling_erp", "jc", 0.25) == {"coupling_erp": {"*": 0.9, "jc": 0.25}}
