"""Killed commands leave what can be read and gone on with (tests/kills.py); `python -m tests.kills` kills more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills import campaign


@pytest.mark.parametrize("command", ["run", "resume", "recover", "batch", "rollout"])
def test_a_killed_command_goes_on(command: str, tmp_path: Path) -> None:
    told: list[str] = []
    assert campaign(2, 1000, 3, tmp_path, told.append, [command]) == []
    assert told[0].startswith(command)
