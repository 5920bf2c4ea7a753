"""`artsim bench`: the phases of a step, of runs with contact and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from artsim.sim.run_data.phases import PHASES

PILE = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="0 0 .3"><freejoint/><geom type="capsule" size=".1 .2" euler="90 0 0"/></body>
</worldbody></mujoco>"""


def timing(path: Path, *options: str) -> dict[str, Any]:
    """What it prints, of kernels that run as Python: phases are the same, and nothing is compiled."""
    command = [sys.executable, "-m", "artsim", "bench", str(path), "--json", "--steps", "20", "--pieces", "2", *options]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@pytest.fixture
def pile(tmp_path: Path) -> Path:
    path = tmp_path / "pile.xml"
    path.write_text(PILE)
    return path


def test_phases_of_a_step_with_contacts(pile: Path) -> None:
    found = timing(pile)
    assert list(found["phases"]) == list(PHASES)
    assert sum(found["phases"].values()) == pytest.approx(found["median"])
    assert all(spent > 0 for spent in found["phases"].values())
    assert found["contacts"] == 4 + 2 or found["contacts"] == 4 + 1


def test_phases_of_a_step_without(pile: Path) -> None:
    found = timing(pile, "--no-contacts")
    assert found["phases"]["broad phase"] == found["phases"]["narrow phase"] == 0
    assert found["phases"]["integration"] > 0


def test_phases_of_the_evaluations_of_rk4(pile: Path) -> None:
    """The phases add up to the time of the step, most of which the evaluations take."""
    found = timing(pile, "--no-contacts", "--integrator", "rk4")
    assert sum(found["phases"].values()) == pytest.approx(found["median"])
    evaluating = ("kinematics and forces", "mass matrix and bias", "rows", "solver")
    assert all(found["phases"][name] > 0 for name in (*evaluating, "integration"))
    assert sum(found["phases"][name] for name in evaluating) > 0.5 * found["median"]
