"""What is left of runs that die: kill -9, SIGINT and SIGTERM at random moments, a full disk, going on afterwards.

    python tests/benchmarks/survival.py [TRIALS] [FOLDER]

Each trial starts `artsim run`, ends it at a random moment, and checks the file: it opens, every row that it counts is
that of an undisturbed run, and `--resume` gives the datasets of one that was never stopped. For the full disk FOLDER
may be a small tmpfs (mount -t tmpfs -o size=4m tmpfs FOLDER); without it a limit on the size of files stands for it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

import artsim

ROBOT = Path(__file__).parents[2] / "robots" / "arm7.urdf"
RECORD = ("--record", "qpos,qvel,tau_limit", "--checkpoint", "2000")
STEPS = 400_000
START = [sys.executable, "-m", "artsim", "run"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*START, *map(str, words)], capture_output=True, text=True)


def ended(path: Path, number: int, seconds: float) -> tuple[int, str]:
    """A run that got a signal so many seconds after its file was there; its exit code and what it said."""
    words = [*START, str(ROBOT), "--steps", str(STEPS), *RECORD, "--force", "-o", str(path)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    while not path.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    process.send_signal(number)
    _, told = process.communicate()
    return process.returncode, told


def same_rows(path: Path, whole: artsim.Recording) -> tuple[int, str]:
    """How many rows a file counts, its state; they must be those of the whole run."""
    with artsim.open(path) as recording:
        for name in recording.variables:
            assert recording[name].tobytes() == whole.read(name, 0, recording.n_valid).tobytes(), name
        return recording.n_valid, recording.state


def same_datasets(a: Path, b: Path) -> bool:
    """Whether two files have the same datasets, byte for byte."""
    names: list[set[str]] = [set(), set()]
    with h5py.File(a) as left, h5py.File(b) as right:
        left.visit(names[0].add)
        right.visit(names[1].add)
        for name in names[0]:
            if isinstance(left[name], h5py.Dataset):
                values = np.asarray(left[name][()]), np.asarray(right[name][()])
                text = values[0].dtype == object
                if not (np.array_equal(*values) if text else values[0].tobytes() == values[1].tobytes()):
                    return False
    return names[0] == names[1]


def trials(folder: Path, number: int, count: int, whole: artsim.Recording) -> None:
    """Signals at random moments of a run."""
    random, rows, resumed, codes, at_end = np.random.default_rng(number), [], 0, set(), 0
    path = folder / "run.h5"
    for _ in range(count):
        path.unlink(missing_ok=True)
        code, told = ended(path, number, float(random.uniform(0, 1.5)))
        assert "Traceback" not in told, told
        if code == 0:  # it was done before
            at_end += 1
            continue
        codes.add(code)
        if not path.exists():  # no row had been written
            rows.append(0)
            continue
        valid, state = same_rows(path, whole)
        assert state in (("killed",) if number == signal.SIGKILL else ("interrupted",)), state
        rows.append(valid)
        done = run("--resume", path, "-q")
        assert done.returncode == 0, done.stderr
        assert same_datasets(path, whole.path), f"resumed at {valid}"
        resumed += 1
    print(
        f"{signal.Signals(number).name}: {len(rows)} trials, exit codes {codes}, {at_end} were done before; rows "
        f"{min(rows)} … {max(rows)}, all as undisturbed; {resumed} resumed, all datasets equal",
        flush=True,
    )


def full_disk(folder: Path | None, count: int) -> None:
    """No room in the middle of a run."""
    codes, rows = set(), []
    with tempfile.TemporaryDirectory(prefix="artsim-survival-") as other:
        for trial in range(count):
            path = (folder or Path(other)) / "full.h5"
            path.unlink(missing_ok=True)
            words = [*START, str(ROBOT), "--steps", "600000", "--record", "qpos,qvel", "-o", str(path)]

            def limit(size: int = 8_000_000 + 1_570_001 * trial) -> None:
                if folder is None:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

            done = subprocess.run(words, capture_output=True, text=True, preexec_fn=limit)
            assert "Traceback" not in done.stderr, done.stderr
            codes.add(done.returncode)
            rows.append(0)  # where not even one block fits, there is no file
            if path.exists():
                with artsim.open(path) as recording:
                    rows[-1] = recording.n_valid
        where = "tmpfs" if folder else "limit on the size of files"
        print(f"full disk ({where}): {count} trials, exit codes {codes}, rows {min(rows)} … {max(rows)}", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory(prefix="artsim-survival-") as name:
        folder = Path(name)
        done = run(ROBOT, "--steps", STEPS, *RECORD, "-o", folder / "whole.h5")
        assert done.returncode == 0, done.stderr
        with artsim.open(folder / "whole.h5") as whole:
            for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
                trials(folder, number, count, whole)
    full_disk(Path(sys.argv[2]) if len(sys.argv) > 2 else None, max(1, min(count, 10)))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
