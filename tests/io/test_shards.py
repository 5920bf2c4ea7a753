"""Batches in shards: the same bytes however they are cut; what is missing or stale is named, never read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import artsim
from artsim.io.batches.batch import Job, prepare
from artsim.io.batches.configuration import BatchConfig
from artsim.io.format import schema
from artsim.io.gate.shard_table import MAX_SHARDS
from artsim.io.inputs.sampling import BLOCK
from artsim.io.shards import scheduler
from artsim.io.shards.job import Outcome
from artsim.io.shards.shard_runs import Runner, compute_file, compute_shards, run_here
from artsim.io.shards.shards import plan, shard_path
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ModelError, StorageError
from tests.conftest import ROOT

Array = np.ndarray[Any, np.dtype[Any]]
ARM = ROOT / "robots" / "arm7.urdf"
GRIPPER = ROOT / "robots" / "two_finger_gripper.urdf"
JOB = ("--compute", "gravity,mass_matrix,forward_dynamics", "--velocity", "1", "--torque", "2", "--reduced", "--packed")
DRAWN = (GRIPPER, "--samples", 50_000, "--seed", 5, *JOB)
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="no dask")


def artsim_batch(*words: object, command: str = "batch", **options: Any) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "artsim", command, *map(str, words))
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, **options)


def good(*words: object, **options: Any) -> str:
    done = artsim_batch(*words, **options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(code: int, *words: object, **options: Any) -> str:
    """The one line that says why."""
    done = artsim_batch(*words, **options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def job(rows: int = 1000, seed: int = 1, quantities: tuple[str, ...] = ("gravity",), **options: Any) -> Job:
    config = BatchConfig(model=str(ARM), quantities=quantities, samples=rows, seed=seed, **options)
    return prepare(load_articulation(ARM), config)


def in_shards(given: Job, output: Path, count: int, numbers: tuple[int, ...] = (), **options: Any) -> Outcome:
    """All shards, or some, here."""
    shards = plan(given.rows, count, output)
    mine = [shard for shard in shards if not numbers or shard.number in numbers]
    return compute_shards(given, output, shards, mine, run_here(given), **options)


def never(todo: Any, watch: Any) -> bool:
    """A runner for when nothing should be left to compute."""
    assert not todo
    return True


def contents(path: Path) -> dict[str, tuple[str, bytes]]:
    """Every variable of a file, read with plain h5py."""
    with h5py.File(path) as file:
        group = file["batch"]
        return {name: (str(group[name].dtype), group[name][()].tobytes()) for name in schema.BATCHED if name in group}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bytes]]:
    """The drawn job in one process and one file."""
    output = tmp_path_factory.mktemp("whole") / "out.h5"
    good(*DRAWN, "-o", output)
    with h5py.File(output) as file:
        assert file["batch/gravity"].shape == (50_000, 1)
    return contents(output)


# --- the plan --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 16, 100, MAX_SHARDS])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 100, 50_000, 4096 * 16, 4096 * 15 + 1, 10**7, 2**53 - 1])
def test_a_plan_covers_every_row_once(rows: int, count: int) -> None:
    shards = plan(rows, count, Path("out.h5"))
    assert [shard.number for shard in shards] == list(range(1, count + 1))
    assert (shards[0].first, shards[-1].last) == (0, rows)
    blocks = -(-rows // BLOCK)
    grain = BLOCK if blocks >= count else 8
    for before, after in pairwise(shards):
        assert before.last == after.first
        assert before.last % grain == 0 or before.last == rows
    sizes = [shard.last - shard.first for shard in shards]
    assert max(sizes) - min(sizes) <= 2 * grain
    assert min(sizes) > 0 or -(-rows // 8) < count


def test_names() -> None:
    assert [shard.path.name for shard in plan(9, 2, Path("a/b.c.hdf5"))] == [
        "b.c.shard-0001-of-0002.hdf5",
        "b.c.shard-0002-of-0002.hdf5",
    ]


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_shards_in_one_process(whole: Mapping[str, tuple[str, bytes]], tmp_path: Path) -> None:
    told = good(*DRAWN, "--shards", 16, "-o", tmp_path / "out.h5")
    assert "50000 rows" in told and "all 16 shards are there" in told
    assert contents(tmp_path / "out.h5") == whole
    assert len(list(tmp_path.iterdir())) == 17


def test_shards_in_a_process_each(whole: Mapping[str, tuple[str, bytes]], tmp_path: Path) -> None:
    """Two at a time; the index comes with the last, whichever that is."""
    output = tmp_path / "out.h5"
    numbers = [3, 1, *range(4, 17), 2]
    for pair in [numbers[k : k + 2] for k in range(0, 16, 2)]:
        assert not output.exists()
        words = [[sys.executable, "-m", "artsim", "batch", *map(str, DRAWN), "--shard", f"{n}/16"] for n in pair]
        running = [subprocess.Popen([*word, "-q", "-o", str(output)]) for word in words]
        assert [process.wait(120) for process in running] == [0, 0]
    assert contents(output) == whole
    assert len(list(tmp_path.iterdir())) == 17


def test_shards_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    np.savez(tmp_path / "q.npz", qpos=rng.uniform(-1, 1, (50_000, 7)), qvel=rng.normal(size=(50_000, 7)))
    words = (ARM, "--input", tmp_path / "q.npz", "--compute", "bias,inverse_mass_matrix", "--float32")
    good(*words, "-o", tmp_path / "one.h5")
    good(*words, "--shards", 5, "-o", tmp_path / "five.h5")
    assert contents(tmp_path / "five.h5") == contents(tmp_path / "one.h5")
    np.savez(tmp_path / "q.npz", qpos=rng.uniform(-1, 1, (50_000, 7)), qvel=np.zeros((50_000, 7)))
    told = refused(65, *words, "--shards", 5, "--resume", "-o", tmp_path / "five.h5")
    assert "the content of --input differs" in told


@pytest.mark.parametrize(("rows", "count"), [(0, 3), (5, 3), (100, 16)])
def test_fewer_rows_than_shards(rows: int, count: int, tmp_path: Path) -> None:
    given = job(rows, quantities=("gravity", "kinetic_energy"), velocity=1.0)
    compute_file(given, tmp_path / "one.h5")
    in_shards(given, tmp_path / "out.h5", count)
    assert contents(tmp_path / "out.h5") == contents(tmp_path / "one.h5")
    with artsim.open(tmp_path / "out.h5") as output:
        assert len(output["gravity"]) == rows


def test_the_index_reads_as_one_file(tmp_path: Path) -> None:
    """In xarray without a warning, with the same labels; and with artsim, as an input too."""
    given = job(9000, quantities=("jacobian", "mass_matrix"), packed=True)
    compute_file(given, tmp_path / "one.h5")
    in_shards(given, tmp_path / "out.h5", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = xarray.open_dataset(tmp_path / "one.h5", group="batch")
        out = xarray.open_dataset(tmp_path / "out.h5", group="batch")
        xarray.testing.assert_identical(one, out)
        table = xarray.open_dataset(tmp_path / "out.h5", group="shards")
        assert table["rows"].values.tolist() == [4096, 4904]
        one.close(), out.close(), table.close()
    with artsim.open(tmp_path / "out.h5") as output:
        assert [shard.name for shard in output.shards] == [  # type: ignore[union-attr]
            f"out.shard-000{k}-of-0002.h5" for k in (1, 2)
        ]
        assert output.read("qpos", 4000, 4200).tobytes() == one["qpos"].values[4000:4200].tobytes()
    good(ARM, "--input", tmp_path / "out.h5", "--compute", "gravity", "-o", tmp_path / "g.h5")
    with h5py.File(tmp_path / "g.h5") as file:
        assert file["batch/qpos"][()].tobytes() == one["qpos"].values.tobytes()
    with h5py.File(tmp_path / "out.h5") as file:
        assert {f"shards/{name}" for name in file["shards"]} - {"shards/shard"} == {
            path for path in schema.TABLE if path.startswith("shards/")
        }
        for name, dataset in file["shards"].items():
            assert dataset.attrs["units"] == "1"
            assert name == "shard" or dataset.attrs["long_name"] == schema.TABLE[f"shards/{name}"].meaning
    told = artsim_batch(tmp_path / "out.h5", command="info").stdout
    assert "9000 rows in 2 files beside it, 0 failed" in told


def test_the_index_is_the_same_whoever_writes_it(tmp_path: Path) -> None:
    given, output = job(), tmp_path / "out.h5"
    in_shards(given, output, 4)
    first = output.read_bytes()
    with h5py.File(output) as file:
        assert not any(group.id.get_create_plist().get_obj_track_times() for group in file.values())
    shards = plan(given.rows, 4, output)
    for mine in (shards[1:2], shards):
        output.unlink()
        compute_shards(given, output, shards, mine, never, resume=True)
        assert output.read_bytes() == first


# --- dask ------------------------------------------------------------------------------------------------------------


def workers(client: int) -> Iterator[int]:
    """The worker processes that a process has started."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == client and b"spawn_main" in (folder / "cmdline").read_bytes():
                yield int(folder.name)


def listening(client: int) -> list[str]:
    """The sockets on which a process or its workers wait for others."""
    inodes = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"}
    links = []
    for process in (client, *workers(client)):
        with contextlib.suppress(OSError):
            links += [os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()]  # noqa: PTH115
    return [link for link in links if link.startswith("socket:[") and link[8:-1] in inodes]


def writes(process: int) -> bool:
    """Whether a (stopped) process has a partial file open."""
    with contextlib.suppress(OSError):
        links = [os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()]  # noqa: PTH115
        return any(name.endswith(".partial") for name in links)
    return False


def kill_a_worker_half_way(client: subprocess.Popen[str]) -> None:
    """SIGKILL the first worker that is caught while it writes a shard."""
    while client.poll() is None:
        for process in workers(client.pid):
            os.kill(process, signal.SIGSTOP)
            half_way = writes(process)
            os.kill(process, signal.SIGKILL if half_way else signal.SIGCONT)
            if half_way:
                return
        time.sleep(0.005)
    raise AssertionError("no worker was caught")


def test_f13_a_killed_worker_s_shard_is_done_again(whole: Mapping[str, tuple[str, bytes]], tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = [*map(str, DRAWN), "--scheduler", "local:2", "--chunk", "8", "-o", str(output)]
    command = [sys.executable, "-m", "artsim", "batch", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client:
        kill_a_worker_half_way(client)
        assert not listening(client.pid)
        told = client.communicate(timeout=240)[1]
    assert client.returncode == 0, told
    assert len(told.splitlines()) == 2, told
    assert contents(output) == whole
    assert len(list(tmp_path.iterdir())) == 17


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_f2_signals_to_all_processes(number: int, code: int, tmp_path: Path) -> None:
    """As a terminal's Ctrl-C or a job system sends them: finished shards stay, and no process and no part of a file."""
    output = tmp_path / "out.h5"
    words = (ARM, "--samples", 3_000_000, "--compute", "mass_matrix", "--chunk", 64, "--scheduler", "local:2")
    command = [sys.executable, "-m", "artsim", "batch", *map(str, words), "-o", str(output)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as client:
        while client.poll() is None and not list(tmp_path.glob("*.shard-*-of-0016.h5")):
            time.sleep(0.02)
        started = list(workers(client.pid))
        os.killpg(client.pid, number)
        told = client.communicate(timeout=120)[1]
    assert client.returncode == code, told
    assert "shards are complete; --resume computes the rest" in told
    assert len(told.splitlines()) == 2, told
    assert len(started) == 2 and not any(Path(f"/proc/{process}").exists() for process in started)
    assert 1 <= len(list(tmp_path.iterdir())) < 16
    assert not list(tmp_path.glob("*.partial"))


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A scheduler and a worker with two threads, of another folder."""
    address = folder / "scheduler.json"
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "cwd": folder}
    dask = [sys.executable, "-m", "dask"]
    common = ["--scheduler-file", str(address), "--no-dashboard"]
    leader = subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *common], **quiet)
    worker = subprocess.Popen([*dask, "worker", "--nworkers", "1", "--nthreads", "2", *common], **quiet)
    try:
        deadline = time.monotonic() + 60
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield json.loads(address.read_text())["address"]
    finally:
        for process in (worker, leader):
            process.terminate()
            process.wait(60)


@needs_dask
def test_somebody_s_cluster(whole: Mapping[str, tuple[str, bytes]], tmp_path: Path) -> None:
    """Names of files are those of the client's folder; two threads of a worker begin at once."""
    (tmp_path / "there").mkdir()
    with cluster(tmp_path / "there") as address:
        good(*DRAWN, "--scheduler", address, "--shards", 6, "-o", "out.h5", cwd=tmp_path)
        assert contents(tmp_path / "out.h5") == whole
        np.save(tmp_path / "q.npy", np.full((10, 7), np.nan))
        words = (ARM, "--input", "q.npy", "--compute", "gravity", "--scheduler", address)
        assert "10 of 10 rows" in refused(3, *words, "-o", "nan.h5", cwd=tmp_path)
        (tmp_path / "taken.shard-0002-of-0016.h5.partial").mkdir()
        told = refused(73, *words, "-o", "taken.h5", cwd=tmp_path)
        assert "taken.shard-0002-of-0016.h5.partial: cannot create" in told


def test_schedulers_that_cannot_be(tmp_path: Path) -> None:
    words = (ARM, "--samples", 10, "--compute", "gravity", "-o", tmp_path / "out.h5", "--scheduler")
    for address in ("local:0", "local:", "local:two", "somewhere", "http://127.0.0.1"):
        assert "want tcp://HOST:PORT, or local:N" in refused(2, *words, address)
    code = "import sys; sys.modules['distributed'] = None\nfrom artsim.cli.main import main\nmain()\n"
    command = [sys.executable, "-c", code, "batch", *map(str, words), "tcp://127.0.0.1:8786"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "--scheduler needs dask, which is not installed: pip install 'artsim[dask]'\n"
    assert not list(tmp_path.iterdir())


def test_one_thread_of_a_worker_makes_the_job() -> None:
    """Loading a kernel in two threads at once crashes the process."""
    given, made = job(), list[str]()

    def load(text: str) -> Job:
        config = BatchConfig.from_json(text)
        made.append(config.model)
        time.sleep(0.1)
        return given

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(scheduler.job_of, [given.config.to_json()] * 2, [load] * 2))
    assert (found, len(made)) == ([given, given], 1)


def test_workers_read_no_streams(tmp_path: Path) -> None:
    words = ("--compute", "gravity", "--scheduler", "local:2", "-o", tmp_path / "out.h5")
    for first in (("-", "--samples", 5), (ARM, "--input", "-"), (ARM, "--input", "/dev/stdin")):
        assert "standard input" in refused(2, *first, *words, stdin=subprocess.DEVNULL)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--shard", "0/16"), "shards count from 1: 1/16 … 16/16"),
        (("--shard", "17/16"), "shards count from 1"),
        (("--shard", "3"), "I/K"),
        (("--shard", "-1/3"), "I/K"),
        (("--shards", 0), "--shards"),
        (("--shards", MAX_SHARDS + 1), f"want 1 to {MAX_SHARDS}"),
        (("--shard", "1/2", "--shards", 2), "--shard is one shard"),
        (("--shard", "1/2", "--scheduler", "local:2"), "--shard is one shard"),
        (("--resume", "--force"), "give one of them"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_wrong_options(options: tuple[object, ...], words: str, tmp_path: Path) -> None:
    told = refused(2, ARM, "--samples", 5, "--compute", "gravity", *options, "-o", tmp_path / "out.h5")
    assert words in " ".join(told.split())
    assert not list(tmp_path.iterdir())


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    words = (ARM, "--samples", 20, "--compute", "gravity")
    assert ".hdf5" in refused(2, *words, "--shards", 2, "-o", tmp_path / "out.npz")
    assert ".hdf5" in refused(2, *words, "--resume", "-o", tmp_path / "out.npz")
    assert "%" in refused(2, *words, "--shards", 2, "-o", tmp_path / "100%.h5")
    assert not list(tmp_path.iterdir())
    output = tmp_path / "out.h5"
    good(*words, "--shard", "2/2", "-o", output)
    assert "--resume" in refused(73, *words, "--shard", "2/2", "-o", output)
    assert "shard-0002-of-0002.h5: exists already" in refused(73, *words, "--shards", 2, "-o", output)
    good(*words, "--shards", 2, "--force", "-o", output)
    shard = shard_path(output, 1, 2)
    told = refused(2, ARM, "--input", shard, "--compute", "gravity", "--shards", 2, "--force", "-o", output)
    assert "is the input itself" in told
    plain = tmp_path / "plain.h5"
    good(*words, "-o", plain)
    assert "exists already" in refused(73, *words, "--shard", "1/2", "-o", plain)
    assert "is no index" in refused(73, *words, "--shards", 2, "--resume", "-o", plain)


def test_rows_that_fail_count_together(tmp_path: Path) -> None:
    rows = np.zeros((400, 7))
    rows[[3, 150, 399]] = np.nan
    np.save(tmp_path / "q.npy", rows)
    words = (ARM, "--input", tmp_path / "q.npy", "--compute", "gravity", "-o", tmp_path / "out.h5")
    assert "3 of 400 rows" in refused(3, *words, "--shards", 4)
    (tmp_path / "out.shard-0002-of-0004.h5").unlink()
    told = refused(3, *words, "--shards", 4, "--resume")
    assert "kept 3 of 4 shards" in told and "(counted from 0: 3, 150, 399)" in told
    assert "warning" in good(*words, "--shards", 4, "--resume", "--on-error", "skip")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["shards/failed"][()].tolist() == [1, 1, 0, 1]
        assert np.flatnonzero(file["batch/status"][()]).tolist() == [3, 150, 399]


# --- missing, stale, damaged; resuming -------------------------------------------------------------------------------


def spoiled(shard: Path, other: Path, how: str) -> None:
    """Make a shard one that must not be read; `other` is the same shard of another job."""
    if how == "deleted":
        shard.unlink()
    elif how == "of another seed":
        other.replace(shard)
    elif how == "cut":
        os.truncate(shard, shard.stat().st_size - 100)
    elif how == "grown":
        with shard.open("ab") as file:
            file.write(b"0")
    elif how == "of another version":
        with h5py.File(shard, "r+") as file:
            file.attrs["artsim_schema"] = "9.0"
    elif how == "of other rows":
        (shard.parent / shard.name.replace("0003", "0002")).replace(shard)
    elif how == "linked":
        away = shard.parent / "away"
        away.mkdir()
        shard.replace(away / shard.name)
        shard.symlink_to(away / shard.name)
    else:
        assert how == "no file"
        shard.unlink()
        shard.mkdir()


@pytest.mark.parametrize(
    "how",
    ["deleted", "of another seed", "cut", "grown", "of another version", "of other rows", "linked", "no file"],
)
def test_f14_a_shard_that_does_not_fit_is_named(how: str, tmp_path: Path) -> None:
    given, output = job(), tmp_path / "out.h5"
    in_shards(given, output, 4)
    in_shards(job(seed=2), tmp_path / "other.h5", 4)
    before = contents(output)
    shard = shard_path(output, 3, 4)
    spoiled(shard, shard_path(tmp_path / "other.h5", 3, 4), how)
    with pytest.raises(ModelError, match=r"out\.shard-0003-of-0004\.h5|out\.shard-0002-of-0004\.h5 is missing"):
        artsim.open(output)
    told = refused(65, output, command="info")
    assert len(told.splitlines()) == 1
    refused(65, ARM, "--input", output, "--compute", "gravity", "-o", tmp_path / "again.h5")
    if how in ("deleted", "cut", "grown", "of another version"):
        outcome = in_shards(given, output, 4, resume=True)
        assert outcome.kept == sum(s.last - s.first for s in plan(1000, 4, output) if s.number != 3)
        assert contents(output) == before
    if how == "of another seed":
        with pytest.raises(ModelError, match=r"shard-0003.*--seed differs: 2 there, 1 here"):
            in_shards(given, output, 4, resume=True)


def test_indices_that_killed_processes_left_go(tmp_path: Path) -> None:
    """Those of processes that are there stay, and a link in the place of one is left alone."""
    output, host = tmp_path / "q.h5", socket.gethostname()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f"q.h5.{host}-{dead.pid}.0123.partial").write_bytes(b"x")
    living = tmp_path / f"q.h5.{host}-{os.getppid()}.partial"
    living.write_bytes(b"x")
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (tmp_path / f"q.h5.{host}-{os.getpid()}.partial").symlink_to(precious)
    in_shards(job(rows=20), output, 2)
    assert precious.read_text() == "keep me"
    left = {path.name for path in tmp_path.glob("*.partial")}
    assert left == {living.name, f"q.h5.{host}-{os.getpid()}.partial"}


def test_f15_resume_computes_what_is_missing_only(tmp_path: Path) -> None:
    given, output = job(), tmp_path / "out.h5"
    in_shards(given, output, 4)
    before = contents(output)
    output.unlink()
    for number in (1, 4):
        shard_path(output, number, 4).unlink()
    (tmp_path / "out.shard-0004-of-0004.h5.partial").write_bytes(b"left by a killed process")
    kept = {number: shard_path(output, number, 4).stat() for number in (2, 3)}
    computed: list[int] = []

    def counting(run: Runner) -> Runner:
        return lambda todo, watch: computed.extend(shard.number for shard in todo) or run(todo, watch)

    shards = plan(given.rows, 4, output)
    outcome = compute_shards(given, output, shards, shards, counting(run_here(given)), resume=True)
    assert computed == [1, 4]
    assert "kept 2 of 4 shards" in outcome.notes
    for number, status in kept.items():
        now = shard_path(output, number, 4).stat()
        assert (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert contents(output) == before
    assert not list(tmp_path.glob("*.partial"))


def test_resume_recomputes_a_shard_with_other_bytes(tmp_path: Path) -> None:
    """One flipped bit in a number: the file opens, its size and digest fit; the index knows its SHA-256."""
    given, output = job(), tmp_path / "out.h5"
    in_shards(given, output, 4)
    before = contents(output)
    with h5py.File(shard_path(output, 2, 4), "r+") as file:
        place = file["batch/gravity"].id.get_offset()
    with shard_path(output, 2, 4).open("r+b") as shard:
        shard.seek(place)
        byte = shard.read(1)[0]
        shard.seek(place)
        shard.write(bytes([byte ^ 1]))
    assert contents(output) != before
    outcome = in_shards(given, output, 4, resume=True)
    assert outcome.kept < 1000
    assert contents(output) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 2}, "--seed differs: 1 there, 2 here"),
        ({"rows": 900}, "the number of rows differs: 1000 there, 900 here"),
        ({"quantities": ("gravity", "com")}, "--compute differs: gravity there, gravity,com here"),
        ({"float32": True}, "--float32 differs"),
        ({"gravity": (0.0, 0.0, -1.62)}, "--gravity differs"),
        ({"distribution": "normal"}, "--distribution differs: uniform-limits there, normal here"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_f15_resume_with_other_options(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    in_shards(job(), tmp_path / "out.h5", 3)
    compute_file(job(), tmp_path / "one.h5")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = job(**options)
    with pytest.raises(ModelError, match=words):
        in_shards(other, tmp_path / "out.h5", 3, resume=True)
    with pytest.raises(ModelError, match=words):
        compute_file(other, tmp_path / "one.h5", resume=True)
    (tmp_path / "out.h5").unlink()
    with pytest.raises(ModelError, match=rf"shard-0001-of-0003.h5: is of another job: {words}"):
        in_shards(other, tmp_path / "out.h5", 3, resume=True)
    assert all(path.read_bytes() == content for path, content in before.items() if path.name != "out.h5")


def test_resume_of_one_file(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.zeros((20, 7)))
    for source in (("--samples", 30), ("--input", tmp_path / "q.npy")):
        output = tmp_path / f"{source[0]}.h5"
        words = (ARM, *source, "--compute", "gravity", "-o", output)
        assert "wrote" in good(*words, "--resume")
        before = output.stat().st_mtime_ns
        assert "is complete already" in good(*words, "--resume")
        assert output.stat().st_mtime_ns == before
    good(*words, "--force")
    assert "--force" in refused(73, *words, "--resume")


def test_a_shard_of_another_job_keeps_the_index_away(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    in_shards(job(seed=2), output, 3, numbers=(2,))
    in_shards(job(), output, 3, numbers=(1,))
    outcome = in_shards(job(), output, 3, numbers=(3,))
    note = outcome.unfit
    assert outcome.complete and not outcome.notes
    assert "out.h5 is not written" in note and "shard-0002-of-0003.h5" in note and "--seed differs" in note
    assert not output.exists()
    assert "all 3 shards" in in_shards(job(), output, 3, numbers=(2,)).notes[0]


def test_a_signal_between_shards(tmp_path: Path) -> None:
    """--shards in one process: what is finished stays and is kept."""
    given, output = job(quantities=("mass_matrix",)), tmp_path / "out.h5"
    asked = iter([False] * 2 + [True] * 100)
    outcome = in_shards(given, output, 4, stop=lambda: next(asked))
    assert not outcome.complete
    assert "2 of 4 shards are complete" in outcome.notes[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.shard-000{k}-of-0004.h5" for k in (1, 2)]
    assert in_shards(given, output, 4, resume=True).kept == 496


# --- the gate --------------------------------------------------------------------------------------------------------


def relinked(index: Path, source: str, *, listed: bool, dataset: str = "/batch/gravity", gap: bool = False) -> None:
    """Replace an index's gravity by a virtual dataset over another source; `listed`: in the table too."""
    with h5py.File(index, "r+") as file:
        rows, width = file["batch/gravity"].shape
        names = [name.decode() for name in file["shards/name"][()]]
        counts = file["shards/rows"][()].tolist()
        attributes = dict(file["batch/gravity"].attrs)
        del file["batch/gravity"]
        layout = h5py.VirtualLayout((rows, width), "f8")
        first = 0
        for k, (name, count) in enumerate(zip(names, counts, strict=True)):
            if not (gap and k == 1):
                there = h5py.VirtualSource(source if k == 1 else name, dataset, (count, width))
                layout[first : first + count] = there[:, :]
            first += count
        file["batch"].create_virtual_dataset("gravity", layout, fillvalue=np.nan)
        file["batch/gravity"].attrs["units"] = attributes["units"]
        if listed:
            file["shards/name"][1] = source


CRAFTED: dict[str, Callable[[Path], None]] = {
    "absolute": lambda index: relinked(index, str(index.parents[1] / "secret.h5"), listed=True),
    "above": lambda index: relinked(index, "../secret.h5", listed=True),
    "unlisted": lambda index: relinked(index, "secret.h5", listed=False),
    "itself": lambda index: relinked(index, ".", listed=True),
    "pattern": lambda index: relinked(index, "secret%%.h5", listed=True),
    "another dataset": lambda index: relinked(index, "out.shard-0002-of-0003.h5", listed=False, dataset="/batch/qpos"),
    "gap": lambda index: relinked(index, "out.shard-0002-of-0003.h5", listed=False, gap=True),
}


NO_NAMES = ("absolute", "above", "itself", "pattern")


@pytest.mark.parametrize("name", sorted(CRAFTED))
def test_114_virtual_datasets_that_lead_elsewhere(name: str, tmp_path: Path) -> None:
    """Nothing else is wrong with what they lead to: a copy of the shard."""
    (tmp_path / "here").mkdir()
    given, output = job(100), tmp_path / "here" / "out.h5"
    in_shards(given, output, 3)
    for copy in (tmp_path / "secret.h5", tmp_path / "here" / "secret.h5"):
        shutil.copy(shard_path(output, 2, 3), copy)
    relinked(output, "out.shard-0002-of-0003.h5", listed=False)
    artsim.open(output).close()  # made this way it still passes
    CRAFTED[name](output)
    with pytest.raises(ModelError, match="no plain name" if name in NO_NAMES else "not of the shards"):
        artsim.open(output)
    assert "refused" in refused(65, output, command="info")
    assert "refused" in refused(65, ARM, "--input", output, "--compute", "gravity", "-o", tmp_path / "again.h5")


def test_an_index_of_indices(tmp_path: Path) -> None:
    given, output = job(100), tmp_path / "out.h5"
    in_shards(given, output, 2)
    inner = shard_path(output, 1, 2)
    in_shards(given, tmp_path / "inner.h5", 2)
    (tmp_path / "inner.h5").replace(inner)
    with h5py.File(output, "r+") as file:
        file["shards/bytes"][0] = inner.stat().st_size
    with pytest.raises(ModelError, match="virtual"):
        artsim.open(output)


def test_a_process_that_cannot_open_all_shards(tmp_path: Path) -> None:
    """HDF5 would give fill values for those it cannot open."""
    output = tmp_path / "out.h5"
    in_shards(job(200), output, 20)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

    assert "20 shards" in refused(2, output, command="info", preexec_fn=limits)
    elsewhere = {**os.environ, "HDF5_VDS_PREFIX": str(tmp_path / "elsewhere")}
    assert "HDF5_VDS_PREFIX" in refused(2, output, command="info", env=elsewhere)
    with h5py.File(output) as file:
        assert np.isfinite(file["batch/gravity"][()]).all()


def test_readers_other_than_ours_see_what_is_missing(tmp_path: Path) -> None:
    """h5py and xarray do not ask whether a shard is there: no zeros for them to average."""
    output = tmp_path / "out.h5"
    in_shards(job(200), output, 2)
    shard_path(output, 2, 2).unlink()
    with h5py.File(output) as file:
        gravity, status = file["batch/gravity"][()], file["batch/status"][()]
    there = int(np.flatnonzero(status != 0)[0])
    assert np.isfinite(gravity[:there]).all()
    assert np.isnan(gravity[there:]).all()
    assert (status[there:] == -1).all()


def test_no_space_for_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, output = job(100), tmp_path / "out.h5"
    in_shards(given, output, 2)
    output.unlink()
    full = (1000, "no space left on the disk: it has")
    monkeypatch.setattr("artsim.io.output_file.batch_file.room", lambda path: full)
    shards = plan(100, 2, output)
    with pytest.raises(StorageError, match=r"out\.h5: no space left"):
        compute_shards(given, output, shards, shards, never, resume=True)
    assert not list(tmp_path.glob("*.partial"))
