"""`python -m tests.kills --count 100`: kill -9 of commands at random moments; then the same bytes as undisturbed.

After every kill what is there must be readable, and the command that goes on (`--resume`, or the same again) must end
well and leave the files that an undisturbed run leaves: every dataset and attribute, but when and by which words a file
was made. Half of the kills come at any moment, half once something is being written; half hit the process alone and
half its children, too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# what tells a file from another of the same job: attributes, and check sums of files that have them
MADE_HOW = ("created", "history", "command")
CHECK_SUMS = ("shards/sha256",)
Words = Sequence[object]
Contents = Mapping[str, object]


class Trial(NamedTuple):
    """A command that is killed, in a folder with what `start` holds; what goes on then, if files are there or not."""

    command: Words
    again: Callable[[Path], Words]
    start: Path | None = None


class Outcome(NamedTuple):
    """Of one kill: whether it came before the end, what was there then, and what is wrong."""

    killed: bool
    left: tuple[str, ...]
    wrong: str


def artsim(words: Words, folder: Path) -> subprocess.Popen[str]:
    """The command line in a folder, as the leader of a group of processes."""
    command = [sys.executable, "-P", "-m", "artsim", *map(str, words)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, start_new_session=True, **streams)  # type: ignore[call-overload]


def good(words: Words, folder: Path) -> str:
    """Run a command to its end; in words what is wrong with it."""
    process = artsim(words, folder)
    _, told = process.communicate(timeout=300)
    return "" if process.returncode == 0 else f"{' '.join(map(str, words))}: exit {process.returncode}: {told[-300:]}"


def contents(path: Path) -> Contents:
    """Every dataset's bytes and every attribute of a file, by name."""
    import h5py
    import numpy as np

    found: dict[str, object] = {}

    def note(name: str, item: object) -> None:
        for key, value in item.attrs.items():  # type: ignore[attr-defined]
            if key not in MADE_HOW and not isinstance(value, h5py.Reference) and key not in _LINKS:
                found[f"{name}@{key}"] = np.asarray(value).tolist()
        if isinstance(item, h5py.Dataset) and name not in CHECK_SUMS:
            values = item[()]
            texts = item.dtype.kind == "O"
            found[name] = np.asarray(values).tolist() if texts else (item.shape, np.asarray(values).tobytes())

    with h5py.File(path) as file:
        note("", file)
        file.visititems(note)
    return found


_LINKS = ("DIMENSION_LIST", "REFERENCE_LIST")  # places in the file


def folder_contents(folder: Path) -> dict[str, Contents]:
    """Of all files that a command left."""
    return {path.name: contents(path) for path in sorted(folder.iterdir())}


def difference(found: Mapping[str, Contents], base: Mapping[str, Contents]) -> str:
    """The first one; empty: none."""
    if found.keys() != base.keys():
        return f"files {sorted(found)}, want {sorted(base)}"
    for name, whole in base.items():
        for key in sorted({*whole, *found[name]}):
            if whole.get(key) != found[name].get(key):
                return f"{name}: {key} differs"
    return ""


def trials(folder: Path, steps: int) -> dict[str, Trial]:
    """The five commands, with what they start from."""
    run = ("run", "quadruped", "--base", "floating", "--ground", "--checkpoint", steps // 8, "-q", "-o", "run.h5")
    resume = ("run", "--resume", "run.h5", "--steps", steps, "-q")
    batch = ("batch", "arm7", "--samples", 10 * steps, "--compute", "mass_matrix,gravity", "-o", "out.h5")
    shards = (*batch, "--shards", 4, "--resume")
    rollout = ("rollout", "quadruped", "--base", "floating", "--ground", "--samples", 16, "--steps", steps // 16,
               "--spread", "0.05", "-o", "out.h5")  # fmt: skip
    half, dead = folder / "half", folder / "dead"
    half.mkdir()
    dead.mkdir()
    assert not good((*run, "--steps", steps // 4), half)
    process = artsim((*run, "--steps", 1 << 30), dead)
    wait_for(lambda: any(size > 2_000_000 for _, _, size in _state(dead)), process)
    end(process, alone=False)
    return {
        "run": Trial((*run, "--steps", steps), lambda there: _resumed(there, resume, (*run, "--steps", steps))),
        "resume": Trial(resume, lambda _: resume, half),
        "recover": Trial(("recover", "run.h5"), lambda _: ("recover", "run.h5"), dead),
        "batch": Trial(shards, lambda _: shards),
        "rollout": Trial(rollout, lambda there: () if (there / "out.h5").exists() else rollout),
    }


def _resumed(folder: Path, resume: Words, run: Words) -> Words:
    """A run goes on from its file; one that was killed before there was any begins again."""
    return resume if (folder / "run.h5").exists() else run


def wait_for(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not ready() and process.poll() is None:
        time.sleep(0.002)


def end(process: subprocess.Popen[str], *, alone: bool) -> bool:
    """Kill -9, the process or all of its group; whether it was still there. Its children have ended, too, then."""
    running = process.poll() is None
    if running:
        os.kill(process.pid, signal.SIGKILL) if alone else os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # children hold the stream, too
    return running


def laid(trial: Trial, folder: Path) -> Path:
    """The folder with what the command starts from."""
    if trial.start is None:
        folder.mkdir()
        return folder
    return shutil.copytree(trial.start, folder)


def base_of(trial: Trial, folder: Path) -> tuple[dict[str, Contents], float]:
    """What an undisturbed run leaves, and the seconds it takes."""
    laid(trial, folder)
    began = time.monotonic()
    assert not good(trial.command, folder)
    return folder_contents(folder), time.monotonic() - began


def attempt(trial: Trial, base: Mapping[str, Contents], seconds: float, folder: Path, rng: random.Random) -> Outcome:
    """One kill, and what comes of it."""
    laid(trial, folder)
    before = _state(folder)
    process = artsim(trial.command, folder)
    if rng.random() < 0.5:
        wait_for(lambda: _state(folder) != before, process)
        time.sleep(rng.uniform(0.0, 0.3 * seconds))
    else:
        time.sleep(rng.uniform(0.0, 0.8 * seconds))
    killed = end(process, alone=rng.random() < 0.5)
    left = tuple(sorted(path.name for path in folder.iterdir()))
    for name in left:
        if name.endswith(".h5"):
            wrong = good(("info", name), folder)
            if wrong:
                return Outcome(killed, left, f"not readable: {wrong}")
    again = trial.again(folder)
    wrong = good(again, folder) if again else ""
    try:
        return Outcome(killed, left, wrong or difference(folder_contents(folder), base))
    except OSError as error:
        return Outcome(killed, left, f"HDF5 does not open it: {error}")


def _state(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(OSError):  # it was there a moment ago
            about = path.lstat()
            found.append((path.name, about.st_ino, about.st_size))
    return found


def campaign(
    count: int, steps: int, seed: int, folder: Path, tell: Callable[[str], object] = print, only: Sequence[str] = ()
) -> list[str]:
    """So many kills of each command; what is wrong."""
    failures = []
    for name, trial in trials(folder, steps).items():
        if only and name not in only:
            continue
        base, seconds = base_of(trial, folder / f"{name}-base")
        rng, outcomes = random.Random(f"{seed}:{name}"), []
        while sum(outcome.killed for outcome in outcomes) < count and len(outcomes) < 3 * count:
            n = len(outcomes)
            place = folder / f"{name}-{n}"
            outcome = attempt(trial, base, seconds, place, rng)
            outcomes.append(outcome)
            if outcome.wrong:
                failures.append(f"{name} {n}: {outcome.wrong} (left: {', '.join(outcome.left)})")
                tell(failures[-1])
            shutil.rmtree(place)
        killed = [outcome for outcome in outcomes if outcome.killed]
        some = sum(bool(outcome.left) for outcome in killed)
        equal = sum(not outcome.wrong for outcome in outcomes)
        tell(
            f"{name:8} {len(killed)} kills of {len(outcomes)} that were tried ({seconds:.2f} s undisturbed), {some} "
            f"with files there; {equal} of {len(outcomes)} readable and equal to the undisturbed one afterwards"
        )
    return failures


def main() -> None:
    """Parse, kill, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--count", type=int, default=100, help="kills of each command")
    parser.add_argument("--steps", type=int, default=4000, help="of the run that is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="run, resume, recover, batch or rollout")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="artsim-kills-") as name:
        failures = campaign(
            given.count, given.steps, given.seed, Path(name), lambda text: print(text, flush=True), given.only
        )
    print(f"seed {given.seed}: {len(failures)} failures")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
