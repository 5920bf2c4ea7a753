"""260 random models, 150 MJCF, 50 URDF and 60 SDF, agree with MuJoCo and Pinocchio.

More: `python -m tests.random_models`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import pytest

from tests.random_models.compare import Table
from tests.random_models.random_mjcf import random_mjcf
from tests.random_models.share import Place, missing, shares, used

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run


@pytest.mark.parametrize(
    ("kind", "count", "least"),
    [
        ("mjcf", 150, 130),
        ("urdf", 50, 40),
        ("sdf", 60, 50),
        ("still", 60, 50),
        ("refused", 60, 50),
        ("classes", 400, 150),
    ],
)
def test_they_agree(kind: str, count: int, least: int, tmp_path: Path) -> None:
    """still: what has no effect changes nothing; refused: what is refused is refused by name; classes: what actuators
    of several kinds hand on through classes."""
    table = Table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what random models hold that is told
        for number in range(count):
            table.take(kind, 0, number, tmp_path)
    assert table.beyond == []
    assert table.compared >= least


def test_the_same_seed_makes_the_same_model() -> None:
    assert random_mjcf(3, 7) == random_mjcf(3, 7) != random_mjcf(3, 8)


def test_what_models_are_made_of() -> None:
    """In 200 models, nearly every element that is read, and most of its attributes."""
    reached = set[Place]().union(*(used(random_mjcf(0, number).text) for number in range(200)))
    elements = [place for place in missing(reached, "read") if place.endswith(" ")]
    assert len(elements) < 15
    have, total = shares(reached)["read"]
    assert have > 0.7 * total
