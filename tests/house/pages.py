"""Pages of the documentation: their blocks of code, how one runs, and what it prints beside what the page shows."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("sh", "python")
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|not compared): (?P<reason>[^\n]+) -->\n)?"
    r"^```(?P<kind>[\w+-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
_COMPILING = re.compile(r"artsim: (compil|another process compiles)")
_VARIES = re.compile(r"steps/s|rows/s|wrote |µs| MB|artsim \d")
"""Lines that tell speeds, times, sizes and versions: their words are compared, their numbers are not."""


class Block(NamedTuple):
    """A block of code: its language, what is before it in the page, and the output that the page shows after it."""

    page: str
    line: int
    kind: str
    text: str
    mark: str  # "", "not run" or "not compared"
    reason: str
    output: str | None = None

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order; a `text` block right after one that runs is its output."""
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(text):
        block = Block(
            page.relative_to(ROOT).as_posix(),
            text.count("\n", 0, fence.start("kind")) + 1,
            fence["kind"],
            fence["text"],
            fence["mark"] or "",
            fence["reason"] or "",
        )
        between = text[end : fence.start()].strip()
        if found and block.kind == "text" and found[-1].kind in RUN and not between:
            found[-1] = found[-1]._replace(output=None if block.mark else block.text)
        else:
            found.append(block)
        end = fence.end()
    return found


def run(block: Block, folder: Path) -> str:
    """Run a block in a folder, as a reader would type it; what it prints. Fails if it fails."""
    words = ["bash", "-euo", "pipefail", "-c", block.text] if block.kind == "sh" else [sys.executable, "-c", block.text]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{block.name}\n{block.text}\n{done.stdout}"
    return done.stdout


def compare(block: Block, printed: str) -> None:
    """Fail unless a page shows what was printed: the same words, numbers to 1 %, those of speed and size any."""
    assert block.output is not None
    shown, told = _lines(block.output), _lines(printed)
    assert len(shown) == len(told), f"{block.name}: the page shows\n{block.output}\nbut this is printed\n{printed}"
    for one, other in zip(shown, told, strict=True):
        alike = _NUMBER.sub("#", one).split() == _NUMBER.sub("#", other).split()
        if alike and not _VARIES.search(one):
            numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
            alike = all(_near(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in numbers)
        assert alike, f"{block.name}: the page shows\n  {one}\nbut this is printed\n  {other}"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and not _COMPILING.match(line)]


def _near(shown: float, printed: float) -> bool:
    return math.isclose(shown, printed, rel_tol=0.01, abs_tol=1e-8)


def main(pages: list[str]) -> None:
    """Write the outputs that pages show anew: `python -m tests.house.pages docs/tutorials/arm.md …`."""
    import shutil
    import tempfile

    for name in pages:
        page = ROOT / name
        text = page.read_text()
        with tempfile.TemporaryDirectory() as made:
            for part in ("robots", "examples"):
                shutil.copytree(ROOT / part, Path(made) / part)
            for block in blocks(page):
                if block.kind in RUN and block.mark != "not run":
                    lines = run(block, Path(made)).rstrip().splitlines()
                    printed = "".join(f"{line.rstrip()}\n" for line in lines if not _COMPILING.match(line))
                    if block.output is not None:
                        told = re.escape(f"{block.text}```\n") + r"(\s*)" + re.escape(f"```text\n{block.output}```")
                        text = re.sub(
                            told, lambda at, b=block, p=printed: f"{b.text}```\n{at[1]}```text\n{p}```", text, count=1
                        )
        page.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
