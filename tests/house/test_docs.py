"""Documentation that cannot lie: every command and snippet runs, every output shown is printed, the site is whole."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import artsim
from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS
from artsim.loaders import urdf_joint, urdf_link, urdf_unknown
from tests.conftest import ROOT
from tests.house.pages import PAGES, RUN, Block, blocks, compare, run

BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
RUNNING = {name: found for name, found in BLOCKS.items() if any(block.kind in RUN for block in found)}
LINUX = ("docs/howto/ros.md", "docs/howto/from_pinocchio.md")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SHOWN = {"text", "xml", "toml", "csv", "matlab", "cpp", "cmake", "ini", "mermaid", "yaml"}
"""Languages that no test runs: data, outputs, and programs that need what a test machine lacks."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where readers are: in a folder with robots/ and examples/."""
    for name in ("robots", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    yield tmp_path


@pytest.mark.parametrize("name", RUNNING)
def test_a_page_runs(name: str, folder: Path) -> None:
    """Every block of a page, in order, in one folder; and what it prints is what the page shows."""
    if sys.platform != "linux" and name in LINUX:
        pytest.skip("its packages are there for Linux only")
    for block in RUNNING[name]:
        if block.kind in RUN and block.mark != "not run":
            printed = run(block, folder)
            if block.output is not None:
                compare(block, printed)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_that_do_not_run_say_why_and_can_be_read(name: str) -> None:
    for block in BLOCKS[name]:
        assert block.kind in SHOWN.union(RUN), f"{block.name}: no language"
        if block.mark:
            assert len(block.reason) > 10, block.name
        check_text(block)


def check_text(block: Block) -> None:
    """Whether the language's own rules hold, as far as they can be told without running."""
    match block.kind:
        case "python":
            ast.parse(block.text)
        case "sh":
            done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{block.name}: {done.stderr}"
        case "toml":
            tomllib.loads(block.text)
        case "matlab" | "cpp":
            for opening, closing in ("()", "[]", "{}"):
                assert block.text.count(opening) == block.text.count(closing), block.name
            for path in re.findall(r"[\"']/(\w+/\w+)[\"']", block.text):
                assert path in schema.TABLE or path.split("/")[1] in DIMENSIONS, f"{block.name}: /{path}"


def test_the_program_in_c_reads_a_run(folder: Path) -> None:
    """The page about C++, compiled and run where a compiler and HDF5's headers are."""
    flags = hdf5_flags()
    if flags is None:
        pytest.skip("no C++ compiler, or no headers of HDF5 (libhdf5-dev)")
    (block,) = (block for block in BLOCKS["docs/howto/cpp.md"] if block.kind == "cpp")
    (folder / "read_run.cpp").write_text(block.text)
    words = ["g++", "-std=c++17", "-Wall", "-Werror", "read_run.cpp", "-o", "read_run", *flags]
    subprocess.run(words, cwd=folder, check=True)
    artsim.simulate(folder / "robots" / "arm7.urdf", steps=10, output=folder / "arm.h5").close()
    done = subprocess.run(["./read_run", "arm.h5"], cwd=folder, capture_output=True, text=True, check=True)
    with artsim.open(folder / "arm.h5") as written:
        last = written["qpos"][-1]
    assert done.stdout.split() == ["10", "rows", "of", "7", "coordinates", *(f"{value:.6f}" for value in last)]


def hdf5_flags() -> list[str] | None:
    """What compiles and links against HDF5, as pkg-config says; None where it or a compiler is missing."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return None
    words = ["pkg-config", "--cflags", "--libs", "hdf5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, f"examples/{path.name}"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_was_saved_as_it_ran(path: Path, folder: Path) -> None:
    """Executed anew, it ends without an error; the outputs kept in it are of the cells as they are, in order."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    saved = nbformat.read(path, as_version=4)
    cells = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells)
    nbclient.NotebookClient(saved, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Links, anchors, the navigation and all that is generated: options of every command, variables of every group."""
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = {page: page.read_text() for page in (tmp_path / "site").rglob("*.html")}
    assert not [page for page, text in built.items() if re.search(r"\{\{ \w+", text)]
    files = (tmp_path / "site" / "reference" / "files" / "index.html").read_text()
    for path in schema.TABLE:
        assert f"<code>{path.split('/')[1]}</code>" in files, path


def test_the_page_about_urdf_has_every_element_that_is_read() -> None:
    page = (ROOT / "docs" / "reference" / "urdf.md").read_text()
    told = set(re.findall(r"<([a-z_0-9]+)[ >]", page))
    read = {name for names in urdf_unknown.CHILDREN.values() for name in names if ":" not in name}
    assert read - told == set()
    assert set(urdf_link.SHAPES) == set(urdf_unknown.SHAPES)
    for kind in (*urdf_joint.JOINT_KINDS, *urdf_unknown.BALL_LIMITS):
        assert f"`{kind}`" in page, kind


def test_every_example_and_picture_is_in_a_page() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for path in (*EXAMPLES, *NOTEBOOKS):
        assert f"examples/{path.name}" in text, path
    for path in (ROOT / "docs" / "images").rglob("*.*"):
        assert path.name in text, path
        assert path.stat().st_size < 300_000, path
    for path in NOTEBOOKS:
        assert json.loads(path.read_text())["metadata"]["kernelspec"]["name"] == "python3"
