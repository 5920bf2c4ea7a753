"""The planners of examples/: their costs fall, by the same bytes with any number of threads."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of an example, which finds robots/."""
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location(request.param, ROOT / "examples" / f"{request.param}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("planner", ["mppi"], indirect=True)
def test_path_integral_control_swings_a_pendulum_up(planner: Any) -> None:
    """Torques that could not hold it level bring it up; what acted is what its motion says."""
    given = {"steps": 60, "robots": 64, "horizon": 30, "seed": 3}
    states, costs, times = planner.swing_up(**given, threads=1)
    again, same, _ = planner.swing_up(**given, threads=2)
    assert states.tobytes() == again.tobytes() and costs.tobytes() == same.tobytes()
    assert len(times) == 60
    np.testing.assert_allclose(costs, planner.cost(states[:, :2], states[:, 2:]), rtol=1e-12)
    assert costs[0] > 5.0 and costs[-15:].mean() < 1.5
    tip = -np.cos(states[:, 0]) - np.cos(states[:, :2].sum(axis=1))  # in lengths of a rod
    assert tip[0] < -1.9 and tip[-15:].min() > 1.0


@pytest.mark.parametrize("planner", ["cem"], indirect=True)
def test_cross_entropy_reaches_round_a_post(planner: Any) -> None:
    given = {"steps": 14, "samples": 48, "seed": 1}
    states, costs, clear, _ = planner.reach(**given, threads=1)
    again, same, _, _ = planner.reach(**given, threads=2)
    assert states.tobytes() == again.tobytes() and costs.tobytes() == same.tobytes()
    assert costs[0] > 0.9 and costs[-3:].max() < 0.2
    assert clear.min() > 0.12
