"""docs/theory-coverage.md cannot lie: its tests exist, its options are in the help, its commands parse and run."""

from __future__ import annotations

import importlib
import re
import shlex
from functools import cache

import click
import pytest
from click.testing import CliRunner

from artsim.cli.main import COMMANDS
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "theory-coverage.md"
LEAST_ROWS = 120
COLUMNS = 6
COMMAND_OF_OPTIONS = (
    "run",
    "compute",
    "batch",
    "ik",
    "trajectory",
    "rollout",
    "replay",
    "export",
    "bench",
    "check",
    "info",
)


def table() -> list[list[str]]:
    """The numbered rows: number, what, shown by, our figure, the text's, what is left out."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def in_code(row: list[str]) -> list[str]:
    return [text for cell in row for text in re.findall(r"`([^`]+)`", cell)]


@cache
def command(name: str) -> click.Command:
    found: click.Command = getattr(importlib.import_module(f"artsim.cli.{name}"), name)
    return found


def command_lines() -> list[str]:
    return [text for row in table() for text in in_code(row) if text.startswith("artsim ")]


def test_every_text_has_rows_enough_and_they_are_numbered() -> None:
    rows = table()
    assert len(rows) >= LEAST_ROWS
    assert [int(row[0]) for row in rows] == [*range(1, len(rows) + 1)]
    for row in rows:
        assert len(row) == COLUMNS, row
        assert row[1], row
        assert row[3], f"row {row[0]} says nothing of artsim"
        assert row[4], f"row {row[0]} says nothing of the text"
        assert in_code([row[2]]), f"row {row[0]} names no test and no command"


def test_tests_of_the_page_exist() -> None:
    for row in table():
        for text in in_code(row):
            if "::" in text:
                file, name = text.split("::")
                assert re.search(rf"^def {re.escape(name)}\(", (ROOT / file).read_text(), re.MULTILINE), text
            if text.startswith("python -m "):
                assert (ROOT / f"{text.split()[2].replace('.', '/')}.py").is_file(), text


def test_options_of_the_page_are_in_the_help() -> None:
    known = {word for name in COMMAND_OF_OPTIONS for p in command(name).params for word in (*p.opts, *p.secondary_opts)}
    text = PAGE.read_text(encoding="utf-8")
    for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text):
        assert option in known, option


@pytest.mark.parametrize("line", command_lines())
def test_commands_of_the_page_run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the repository's folder; none writes a file, and the longest takes 200 steps."""
    words = shlex.split(line)[1:]
    assert words[0] in COMMANDS
    monkeypatch.chdir(ROOT)
    with command(words[0]).make_context(words[0], list(words[1:])):
        pass  # parsed
    result = CliRunner().invoke(command(words[0]), words[1:])
    assert result.exit_code == 0, result.output[-2000:]
