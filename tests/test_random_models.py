"""200 random models, 150 MJCF and 50 URDF, agree with MuJoCo and Pinocchio; more: `python -m tests.random_models`."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from tests.random_models.compare import Table
from tests.random_models.mjcf import random_mjcf, used

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run


@pytest.mark.parametrize(("kind", "count", "least"), [("mjcf", 150, 90), ("urdf", 50, 40)])
def test_they_agree(kind: str, count: int, least: int, tmp_path: Path) -> None:
    table = Table()
    for number in range(count):
        table.take(kind, 0, number, tmp_path)
    assert table.beyond == []
    assert table.compared >= least


def test_the_same_seed_makes_the_same_model() -> None:
    assert random_mjcf(3, 7) == random_mjcf(3, 7) != random_mjcf(3, 8)


def test_what_models_are_made_of() -> None:
    """All kinds of joints, sensors and tendons, most kinds of actuators and settings."""
    reached = set[str]().union(*(used(random_mjcf(0, number)[0]) for number in range(150)))
    wanted = "joint.type geom.fluidshape spatial pulley fixed pid cylinder damper intvelocity weld connect frame force"
    wanted += " muscle dcmotor motor.cranksite replicate mesh.builtin weld.relpose connect.site1 actuatorfrc ballquat"
    wanted += " orientation orientation.forcerange"
    assert set(wanted.split()) <= reached
    assert len(reached) > 400
