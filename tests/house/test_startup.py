"""What a process of `artsim run` does not do: import what it has no use for. Times are in benchmarks/startup.py."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import artsim
from artsim.sim.foundation import jit
from artsim.sim.foundation.object_cache import users_folder

ROOT = Path(__file__).resolve().parents[2]
ARM = ROOT / "robots" / "arm7.urdf"
FOLDERS = ("cli", "loaders", "io", "sim", "collision")

NEVER = {"numba", "scipy", "trimesh", "collada", "rich", "xarray", "viser"}
NOT_IN_A_RUN = {
    "artsim.io.runs.resume",  # and what follows from options that were not given
    "artsim.loaders.mjcf.read",
    "artsim.loaders.stored",
    "artsim.sim.quantities.compute_records",
    "artsim.sim.quantities.evaluation",
    "artsim.sim.runs.sampled_runs",
    "llvmlite",
    "platformdirs",
    "shutil",
    "tempfile",
}


def process(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own, warm kernels and all."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.skipif(
    jit.disabled() or jit._checked() or platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(),
    reason="kernels are kept, and put into memory without LLVM, on Linux with x86-64",
)
def test_a_warm_run_imports_nothing_in_vain(tmp_path: Path) -> None:
    artsim.simulate(ARM, steps=1)
    code = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from artsim.cli.main import main
main()
"""
    environment = {"ARTSIM_CACHE_DIR": str(users_folder().parent)}
    done = process(code, "run", ARM, "--steps", 5, "--quiet", "-o", tmp_path / "out.h5", **environment)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "artsim.sim.stepping.step" not in loaded  # kernels
    assert sorted(loaded & (NEVER | NOT_IN_A_RUN)) == []
    assert {"h5py", "artsim.sim.runs.simulate"} <= loaded


def test_dataclasses_are_made_quickly() -> None:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and path.stem != "dataclass":
                    assert "dataclass" not in {name.name for name in node.names}, (
                        f"{path}: use artsim.sim.foundation.dataclass"
                    )


START = """
import atexit, gc, os, sys
sys.argv[1:] = {arguments}
from artsim.cli.main import start
import click
from artsim.cli import main
@main.cli.command("probe")
@click.argument("code", type=int)
def probe(code):
    print("out", end="")
    print("threads", os.environ["OPENBLAS_NUM_THREADS"], file=sys.stderr, end="")
    atexit.register(lambda: print("later", end=""))
    raise SystemExit(code)
main.ArtsimGroup.get_command = lambda self, ctx, name: probe
class Left:
    def __del__(self):
        os.write(2, b"taken apart")
main.left = Left()
start()
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_ends_with_its_code_and_all_its_output(code: int) -> None:
    """One that went well does not take its modules apart."""
    done = process(START.format(arguments=["probe", str(code)]), OPENBLAS_NUM_THREADS="2")
    assert (done.returncode, done.stdout) == (code, "outlater")
    assert done.stderr == "threads 2" + ("taken apart" if code else "")


def test_one_thread_of_blas_unless_somebody_says_otherwise() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", START.format(arguments=["probe", "0"])],
        capture_output=True, text=True, timeout=60, check=True, env=environment,
    )  # fmt: skip
    assert done.stderr == "threads 1"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full device")
def test_output_that_cannot_be_written_is_noticed_at_the_end() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "artsim", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 74
