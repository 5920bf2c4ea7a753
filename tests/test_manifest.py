"""The table of bad inputs, row by row, through the command line in a process under limits (tests/manifest.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.manifest import Case, attempt
from tests.manifest_cases import CASES, ELSEWHERE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row)
def test_row(case: Case, tmp_path: Path) -> None:
    if "_" in case.row and ("xacro" in case.row or case.row.startswith("H2_")):
        pytest.importorskip("xacro")
    result, wrong = attempt(case, tmp_path)
    assert not wrong, f"{'; '.join(wrong)}\n{result.stderr[-600:]}"
    precious = tmp_path / "deeper" / "here" / "precious"
    assert not precious.exists() or precious.read_text() == "keep me"


def test_every_row_is_there() -> None:
    """Rows 1 to 120, faults F1 to F21, attacks H1 to H35: as a case, or by a test that exists."""
    rows = {match[1] for case in CASES if (match := re.match(r"0*(\d+|H\d+)_", case.row))} | {*ELSEWHERE}
    wanted = {
        *map(str, range(1, 121)),
        *(f"F{n}" for n in range(1, 22)),
        *(f"H{n}" for n in (*range(1, 24), *range(28, 33), 34, 35)),
    }
    assert wanted - rows == set()
    for place in ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}" in next((ROOT / "tests").rglob(file)).read_text(), place
