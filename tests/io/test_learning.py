"""The tasks of examples/, and the search that learns them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from tests.conftest import ROOT

pytest.importorskip("gymnasium")
TASKS = sorted((ROOT / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_a_task_runs(path: Path) -> None:
    env: Any = artsim.make_env(path, 3, threads=1)
    observation, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        observation, reward, terminated, *_ = env.step(rng.uniform(-1, 1, env.action_space.shape))
        assert np.isfinite(observation).all()
        assert np.isfinite(reward).all()
        assert not terminated.any()
    text = "".join(page.read_text() for page in (ROOT / "docs" / "howto").glob("*.md"))
    assert f"`{path.name}`" in text


SLIDER = """<mujoco><option timestep="0.02"/><worldbody><body><joint name="x" type="slide" axis="1 0 0" damping="1"/>
<geom size=".1" mass="1"/></body></worldbody><actuator><motor joint="x" ctrlrange="-2 2"/></actuator></mujoco>"""


def search() -> Any:
    """The module of the example."""
    spec = importlib.util.spec_from_file_location("learn", ROOT / "examples" / "learn.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_search_learns_by_the_same_bytes_in_any_number_of_threads(tmp_path: Path) -> None:
    (tmp_path / "slider.xml").write_text(SLIDER)
    task = {
        "model": str(tmp_path / "slider.xml"),
        "limit": 100,
        "observations": {"x": "x", "v": "x.velocity"},
        "rewards": {"there": "exp(-(4 * (x - 0.5)) ** 2)"},
        "reset": {"qpos": {"x": 0.2}},
    }
    given = {"pairs": 10, "as_it_is": 4, "iterations": 12, "best": 6, "reach": 0.3, "rate": 0.3}
    policy, curve = search().learn(task, **given, threads=1)
    again, same = search().learn(task, **given, threads=2)
    assert policy.tobytes() == again.tobytes()
    assert curve.tobytes() == same.tobytes()
    assert curve[-1, 0] > 5 * curve[0, 0]
    assert curve[-1, 0] > 40
