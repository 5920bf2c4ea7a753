"""Baumgarte's α and β by constraint: C̈ + α Ċ + β C = 0 of each, as CS 599's notes have it, whatever the others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.maximal.bodies import moved
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.maximal_simulation import MaximalSimulation
from artsim.sim.runs.plan import plan_run
from tests.constraints.test_loops import CONNECT, four_bar
from tests.simulation import constant_controls

Array = np.ndarray[Any, Any]

SLIDERS = """<robot name="sliders"><link name="base"/>{links}</robot>"""
SLIDER = """<link name="{name}"><inertial><mass value="{mass}"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}" type="prismatic"><parent link="base"/><child link="{name}"/><axis xyz="1 0 0"/>
  <limit lower="-9" upper="9" effort="9" velocity="9"/></joint>"""
NAMES = ("over", "critical", "under", "general")
TUNED = {"over": (60.0, 300.0), "critical": (40.0, 400.0), "under": (4.0, 900.0)}
GENERAL = (20.0, 100.0)
START = np.array([1e-3, -2e-3])  # openings across the slide [m]


def sliders() -> Articulation:
    links = "".join(SLIDER.format(name=name, mass=1 + n) for n, name in enumerate(NAMES))
    return load_text(SLIDERS.format(links=links), name="sliders.urdf", meshes=False)


def opened(h: float, **config: Any) -> MaximalSimulation:
    """Four sliders, each moved across its slide, with general and own factors."""
    alpha = {name: pair[0] for name, pair in TUNED.items()}
    beta = {name: pair[1] for name, pair in TUNED.items()}
    own = {"constraint_alpha": alpha, "constraint_beta": beta} | config
    general = {"scheme": "baumgarte", "scheme_alpha": GENERAL[0], "scheme_beta": GENERAL[1]}
    plan = plan_run(sliders(), RunConfig(coordinates="maximal", steps=1000, dt=h, record=("qpos",), **general, **own))
    simulation = simulation_of(plan, constant_controls(plan))
    assert isinstance(simulation, MaximalSimulation)
    way = np.zeros((len(NAMES) + 1, 6))
    way[1:, 1:3] = START
    simulation.bodies = moved(simulation.bodies, way)
    return simulation


def openings(simulation: MaximalSimulation, steps: int) -> Array:
    """Openings across the slides, step by step (steps + 1, sliders, 2) [m]."""
    found = [simulation.bodies.centre[1:, 1:].copy()]
    for _ in range(steps):
        list(simulation.blocks(1))
        found.append(simulation.bodies.centre[1:, 1:].copy())
    return np.array(found)


def test_every_opening_decays_by_its_own_recurrence() -> None:
    """C⁺ = C + h Ċ⁺ with Ċ⁺ = (1 - α h) Ċ - β h C, to rounding, gravity or not."""
    h = 1e-3
    found = openings(opened(h), 300)
    for n, name in enumerate(NAMES):
        alpha, beta = TUNED.get(name, GENERAL)
        C, rate = START.copy(), np.zeros(2)
        for step in range(301):
            assert np.allclose(found[step, n], C, rtol=0, atol=1e-15), (name, step)
            rate = (1 - alpha * h) * rate - beta * h * C
            C = C + h * rate


def oscillator(alpha: float, beta: float, time: Array) -> Array:
    """C / C0 of C̈ + α Ċ + β C = 0 from rest."""
    a, square = alpha / 2, beta - alpha**2 / 4
    if abs(square) < 1e-9:
        return np.exp(-a * time) * (1 + a * time)
    root = np.sqrt(complex(square))
    return np.real(np.exp(-a * time) * (np.cos(root * time) + a / root * np.sin(root * time)))


def test_openings_decay_as_the_harmonic_oscillator_of_the_notes_to_the_order_of_the_step() -> None:
    worst = []
    for h in (1e-3, 5e-4):
        steps = round(0.2 / h)
        found = openings(opened(h), steps) / START
        time = h * np.arange(steps + 1)
        apart = [
            np.max(np.abs(found[:, n] - oscillator(*TUNED.get(name, GENERAL), time)[:, None]))
            for n, name in enumerate(NAMES)
        ]
        worst.append(np.array(apart))
    assert np.all(worst[0] < 0.04)
    assert np.all(np.abs(worst[0] / worst[1] - 2.0) < 0.15), worst


def test_a_loop_has_factors_of_its_own() -> None:
    """A slowly closing loop leaves the joints' gaps alone: the joints close in two steps."""
    articulation = load_text(four_bar(CONNECT), name="four_bar.xml", meshes=False)
    loop = articulation.loops[0].name
    config = {"coordinates": "maximal", "scheme": "baumgarte", "steps": 400, "dt": 1e-3, "gravity": (0.0, 0.0, 0.0)}
    config["contacts"] = False
    own = {"constraint_alpha": {loop: 20.0}, "constraint_beta": {loop: 100.0}}
    errors = {}
    for name, more in (("own", own), ("general", {})):
        plan = plan_run(articulation, RunConfig(record=("qpos",), **config, **more))
        simulation = simulation_of(plan, constant_controls(plan))
        assert isinstance(simulation, MaximalSimulation)
        qpos = np.array(simulation.qpos)
        qpos[-1] += 1e-3  # the last joint opens the loop
        simulation.set_state(qpos=qpos)
        before = np.linalg.norm(simulation._lines.error[simulation._loops][:3])
        list(simulation.blocks(100))
        errors[name] = np.linalg.norm(simulation._lines.error[simulation._loops][:3]) / before
    assert errors["own"] == pytest.approx(oscillator(20.0, 100.0, np.array([0.1]))[0], rel=0.02)
    assert errors["general"] < 1e-3


def test_factors_of_constraints_are_read_by_pattern_and_refused_by_name() -> None:
    simulation = opened(1e-3, constraint_alpha={"*": 7.0, "over": 8.0}, constraint_beta={})
    held = simulation._tuning.held
    assert set(map(tuple, held.tolist())) == {(7.0, GENERAL[1]), (8.0, GENERAL[1])}
    for more, reason in (
        ({"constraint_alpha": {"ovr": 1.0}}, "did you mean 'over'"),
        ({"constraint_beta": {"over": -1.0}}, "want a finite number from 0"),
    ):
        with pytest.raises(ArtsimError, match=reason):
            opened(1e-3, **more)
    for config in ({}, {"coordinates": "maximal", "scheme": "implicit"}):
        with pytest.raises(ArtsimError, match=r"constraint[_-]alpha"):
            plan_run(sliders(), RunConfig(constraint_alpha={"over": 1.0}, **config))
