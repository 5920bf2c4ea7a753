"""Differences from MuJoCo and Pinocchio that random models found, row by row (tests/benchmarks/differences.py)."""

from __future__ import annotations

import mujoco
import pytest

from tests.benchmarks.differences import Row, agree, table

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.number} {row.what}") for row in table()])
def test_it_is_as_it_should_be(row: Row) -> None:
    truth, ours = row.pair()
    assert agree(truth, ours, row.limit), (truth, ours)
