"""Faults of the project's table that no other test shows, by its numbers: F7, F11, F12, F16, F17, and the .h5 rows 119
and 120. The others: F1 to F5 and F20 in test_io.py, test_recover.py and test_cli_run.py, F8 to F10 in test_jit.py, F13
to F15 in test_shards.py, F18 and F19 in test_viewer.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import pytest

import artsim
from artsim.cli.stored_robot import loaded_instead, stored_robot
from artsim.io.readers.recording import open_recording
from artsim.sim.foundation import jit
from tests.cli.test_bad_inputs import REJECT, Row
from tests.cli.test_bad_inputs import artsim as command
from tests.cli.test_cli_run import ARM, difference, good, refused
from tests.conftest import ROOT

QUADRUPED = ROOT / "robots" / "quadruped.urdf"
EMBEDDED = [row for row in REJECT if row.name[:2] in ("06", "07", "08", "09", "11")]


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "run.h5"
    artsim.simulate(artsim.load(ARM), steps=40, output=path).close()  # type: ignore[union-attr]
    return path


# --- F7: a second writer, and readers, while a run writes ------------------------------------------------------------


def test_f7_a_file_that_is_being_written_is_read_and_written_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    words = [
        sys.executable,
        "-m",
        "artsim",
        "run",
        str(ARM),
        "--steps",
        "2000000000",
        "--record",
        "qpos",
        "--every",
        "9",
    ]
    process = subprocess.Popen([*words, "-o", str(path)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while rows_of(path) == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        busy = (f"in use by process {process.pid}",)
        for extra in ((), ("--force",)):
            refused(75, "run", ARM, "--steps", 5, "-o", path, *extra, words=busy)
        refused(75, "rollout", ARM, "--samples", 2, "--steps", 5, "-o", path, "--force", words=busy)
        refused(75, "run", "--resume", path, "--steps", 5, words=("written by another process",))
        refused(75, "recover", path, words=("being written",))
        told = json.loads(good("info", path, "--json").stdout)
        assert told["state"] == "running"
        assert rows_of(path) >= told["rows"] > 0
    finally:
        process.terminate()
        assert process.wait(60) == 143
    assert json.loads(good("info", path, "--json").stdout)["state"] == "interrupted"


def rows_of(path: Path) -> int:
    """Rows that another process has written so far."""
    try:
        with h5py.File(path, "r", swmr=True) as file:
            return int(file["trajectory/n_valid"][()])
    except (OSError, KeyError):
        return 0


# --- F11, F12: threads and forks -------------------------------------------------------------------------------------

SEVERAL = """
import multiprocessing, os, sys, threading
import numpy as np
import artsim
robot = artsim.load(sys.argv[1], base="floating")

def simulated(_=None):
    run = artsim.simulate(robot, steps=40, ground=True)
    many = artsim.rollout(robot, samples=16, steps=20, spread=0.1, ground=True, threads=2)
    return run["qpos"].tobytes() + many["qpos"].tobytes()

before = simulated()
"""
THREADS = """
found = [None] * 4
def work(k):
    found[k] = simulated()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert found == [before] * 4
"""
FORKS = """
pid = os.fork()
if pid == 0:
    os._exit(simulated() != before)
assert os.waitpid(pid, 0)[1] == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(simulated, range(3)) == [before] * 3
assert simulated() == before
"""


@pytest.mark.skipif(jit.disabled(), reason="packs need compiled kernels")
@pytest.mark.parametrize("layer", ["workqueue", "omp"])
@pytest.mark.parametrize("code", [THREADS, FORKS], ids=["f11 threads", "f12 forks"])
def test_several_at_a_time_get_the_same(code: str, layer: str) -> None:
    """Kernels run in plain Python threads: no layer of numba's aborts the process, or its children after a fork."""
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SEVERAL + code, str(QUADRUPED)]
    environment = os.environ | {"NUMBA_THREADING_LAYER": layer, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("artsim: ") for line in done.stderr.splitlines())  # compiling, waiting for who compiles


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_f12_a_child_forked_while_a_thread_loads_kernels_can_load_its_own() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with jit._one_at_a_time:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if jit._one_at_a_time.acquire(timeout=10) else 1)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()


# --- F16, F17: where the output goes, and what time and place it is --------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("run", ARM, "--json", "--steps", "5"),
        ("check", ARM, "--json"),
        ("rollout", ARM, "--json", "--samples", "2", "--steps", "5"),
    ],
)
def test_f16_nobody_reads_the_output(words: tuple[str | Path, ...]) -> None:
    """Whose output is a pipe that is closed ends like one killed by it; a full device is an error."""
    read, write = os.pipe()
    os.close(read)
    for output, code in ((write, 141), (os.open("/dev/full", os.O_WRONLY), 74)):
        start = [sys.executable, "-m", "artsim", *map(str, words)]
        done = subprocess.run(start, stdout=output, stderr=subprocess.PIPE, text=True, timeout=300)
        os.close(output)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_f17_neither_place_nor_clock_changes_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--steps", 30, "--q0", "joint_2=0.5", "--every", 2)
    here, there = tmp_path / "here.h5", tmp_path / "there.h5"
    good("run", ARM, *options, "-o", here, TZ="Pacific/Kiritimati", LC_ALL="C", PYTHONUTF8="0")
    good("run", ARM, *options, "-o", there, TZ="America/Anchorage", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
    assert difference(here, there) is None
    clock = iter(range(10**9, 0, -3600))  # an hour back whenever it is looked at
    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: float(next(clock)))
    told = command("run", ARM, *map(str, options), "-o", tmp_path / "back.h5")
    monkeypatch.undo()
    assert told.exit_code == 0, told.stderr
    assert difference(here, tmp_path / "back.h5") is None


# --- .h5 files: another model, and a model that is no good -----------------------------------------------------------


def test_119_a_model_that_is_not_the_file_s_is_refused(run_file: Path, tmp_path: Path) -> None:
    same, heavier, other = tmp_path / "same.urdf", tmp_path / "heavier.urdf", QUADRUPED
    text = ARM.read_text()
    same.write_text(text)
    heavier.write_text(text.replace('<mass value="', '<mass value="1', 1))
    assert heavier.read_text() != text
    verify = ("replay", "--verify", run_file, "--model")
    assert "every byte equal" in good(*verify, same).stdout
    refused(65, *verify, heavier, words=("heavier.urdf: is another model", "--force"))
    told = refused(3, *verify, heavier, "--force", words=("differs first at step",))
    assert told.startswith(f"warning: {heavier}: is another model")
    refused(65, *verify, other, "--force", words=("other links, joints, loops or actuators",))
    refused(66, *verify, tmp_path / "none.urdf", words=("no such file",))
    refused(65, "replay", run_file, "--model", heavier, words=("is another model",))
    with open_recording(run_file) as recording:  # as the viewer does
        robot = stored_robot(recording, {}, None, loaded_instead(str(same), {}, None, force=False, meshes=True))
        assert (robot.path, [link.name for link in robot.links]) == (str(same), list(recording.labels.link))


@pytest.fixture(scope="module")
def outputs(run_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind that holds a model."""
    folder = tmp_path_factory.mktemp("outputs")
    artsim.rollout(artsim.load(ARM), samples=2, steps=3, output=folder / "rollout.h5").close()  # type: ignore[union-attr]
    return {"run": run_file, "rollout": folder / "rollout.h5"}


@pytest.mark.parametrize("row", EMBEDDED, ids=lambda row: row.name)
def test_120_a_stored_model_passes_the_limits_of_a_file(row: Row, outputs: dict[str, Path], tmp_path: Path) -> None:
    for kind, whole in outputs.items():
        path = tmp_path / f"{kind}.h5"
        path.write_bytes(whole.read_bytes())
        with h5py.File(path, "r+") as file:
            file["model/source"][()] = row.text
        calls: list[tuple[str | Path, ...]] = [("replay", "--verify", path)]
        if kind == "run":
            calls += [("run", "--resume", path, "--steps", "60"), ("run", "--config", path, "-o", tmp_path / "new.h5")]
            calls += [("replay", path), ("export", path, "--html", tmp_path / "page.html")]
        for words in calls:
            began = time.monotonic()
            told = command(*words)
            assert told.exit_code == 65, (words, told.output)
            assert len(told.stderr.splitlines()) == 1
            assert all(word in told.stderr for word in row.words)
            assert "root:" not in told.output
            assert time.monotonic() - began < 5
        assert command("info", path).exit_code == 0  # who does not read the model is not concerned
    assert not (tmp_path / "new.h5").exists()
    assert not (tmp_path / "page.html").exists()
