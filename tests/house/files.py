"""The files of each room with the first lines of their docstrings: `python -m tests.house.files sim/solvers …`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("cli", "loaders", "io", "sim", "collision")


def first_line(path: Path) -> str:
    """The first line of a file's docstring; empty without one."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def _room_first(path: Path) -> tuple[Path, str]:
    return path.parent, path.name


def main(folders: list[str]) -> None:
    """Print the files of these folders, of all without any."""
    room = None
    paths = [path for folder in folders or FOLDERS for path in sorted((ROOT / folder).rglob("*.py"), key=_room_first)]
    for path in paths:
        if path.parent != room:
            room = path.parent
            print(f"\n{room.relative_to(ROOT)}")
        print(f"  {path.name:24}  {first_line(path)}")


if __name__ == "__main__":
    main(sys.argv[1:])
