"""The loop: seeds, mutations, readers, and what must never come of them.

Every case is drawn from the seed and its own number, so that any of them can be made again alone. Readers are called in
one child process, which is forked anew only where a case ends it: 0.8 ms a case, where a process each would take 300.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from artsim.sim.foundation.errors import ArtsimError
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS, Reader

SECONDS = 5.0  # of the processor, that a reader may take
LIMIT = 20  # s of the clock, after which it hangs
STUCK = 120  # s of the clock, after which it is ended from without: code in C answers no alarm
MEMORY = 1 << 30  # bytes resident that it may add
ADDRESSES = 8 << 30  # bytes of address space of the child, so that what asks for too much fails alone


class Failure(NamedTuple):
    """An input and what came of it."""

    reader: str
    data: bytes
    why: str
    number: int = -1

    @property
    def kind(self) -> tuple[str, str]:
        """Failures of one kind have one cause, as far as can be told."""
        return self.reader, self.why.split(":")[0]


class HangError(BaseException):
    """It takes too long. No Exception: readers catch those."""


def outcome(reader: Reader, data: bytes, folder: Path) -> str:
    """`` where the input was read or refused in one line, else what is wrong.

    An input that takes too long is read again: kernels compiled for the first reading are then at hand.
    """
    why = once(reader, data, folder, LIMIT)
    if why.startswith(("hangs", "takes")) and not once(reader, data, folder, STUCK // 2).startswith("hangs"):
        why = once(reader, data, folder, LIMIT)
    return why


def once(reader: Reader, data: bytes, folder: Path, limit: int) -> str:
    """The outcome of one reading, which hangs if it takes longer than the limit [s]."""
    path = folder / f"input{reader.suffix}"
    path.write_bytes(data)

    def stop(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    began, used = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        reader.read(path)
    except ArtsimError as error:
        if "\n" in str(error):
            return "an error of several lines"
        if str(error).startswith("internal error"):
            return str(error)[:200]
    except HangError:
        return f"hangs for {limit} s"
    except MemoryError:
        return "MemoryError"
    except RecursionError:
        return "RecursionError"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if time.process_time() - began > SECONDS:
        return f"takes {time.process_time() - began:.1f} s"
    if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) << 10 > MEMORY:
        return "takes more than 1 GiB"
    return ""


class Cases:
    """Mutated seeds of the readers in turn, by number; the same for the same seed."""

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.seed = seed
        self.seeds = {name: READERS[name].seeds() for name in names}
        every = {name: round(1 / READERS[name].share) for name in names}
        self.turns = [name for n in range(max(every.values())) for name in names if n % every[name] == 0]

    def __getitem__(self, number: int) -> tuple[str, bytes]:
        rng = random.Random(f"{self.seed}:{number}")
        name = self.turns[number % len(self.turns)]
        own = self.seeds[name]
        return name, mutated(rng.choice(own), READERS[name].words, own, rng)


class Place:
    """Which case a child is at, and since when; in memory that its parent sees, too."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 16)

    def set(self, number: int) -> None:
        self._shared[:] = struct.pack("<qd", number, time.monotonic())

    def get(self) -> tuple[int, float]:
        number, since = struct.unpack("<qd", self._shared[:])
        return number, since


def fuzz(
    names: list[str],
    seed: int,
    folder: Path,
    *,
    count: int = 0,
    seconds: float = 0.0,
    tell: Callable[[Failure], object] = lambda _: None,
    at: Callable[[int], object] = lambda _: None,
) -> tuple[Counter[str], list[Failure]]:
    """So many cases, or so long: cases per reader, and what failed, of each kind one.

    `tell` hears of a failure at once, `at` all the time of the case that is read.
    """
    cases, done = Cases(names, seed), Counter[str]()
    found: dict[tuple[str, str], Failure] = {}
    number, end = 0, time.monotonic() + seconds if seconds else float("inf")
    while (not count or number < count) and time.monotonic() < end:
        began = number
        for number, why in _child(cases, folder, began, count or 1 << 62, end, at):
            if not why:  # a child has ended, of itself or by a signal: the next one goes on from here
                break
            name, data = cases[number]
            failure = Failure(name, data, why, number)
            if failure.kind not in found:
                found[failure.kind] = failure
                tell(failure)
        for n in range(began, number):
            done[cases.turns[n % len(cases.turns)]] += 1
    return done, list(found.values())


def _child(
    cases: Cases, folder: Path, start: int, end: int, when: float, at: Callable[[int], object]
) -> Iterator[tuple[int, str]]:
    """Failures of a child's cases as they come, by number; last of all the first case it did not do, with no words."""
    place = Place()
    place.set(start)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(cases, folder, start, end, when, place, writer)
    os.close(writer)
    killed = False
    with os.fdopen(reader, "rb", buffering=0) as stream:
        os.set_blocking(stream.fileno(), False)
        told = b""
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            told += stream.read() or b""
            *lines, told = told.split(b"\n")
            for line in lines:
                number, why = json.loads(line)
                yield number, why
            if ended:
                break
            at(place.get()[0])
            if time.monotonic() - place.get()[1] > STUCK:
                os.kill(child, signal.SIGKILL)
                killed = True
            time.sleep(0.05)
    number = place.get()[0]
    if killed or os.WIFSIGNALED(status):
        yield number, f"hangs for {STUCK} s" if killed else f"crashes by signal {os.WTERMSIG(status)}"
        number += 1
    yield number, ""


def _work(cases: Cases, folder: Path, start: int, end: int, when: float, place: Place, writer: int) -> None:
    """The child's part; it never returns."""
    code = 1
    try:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        number = start
        while number < end and time.monotonic() < when:
            place.set(number)
            name, data = cases[number]
            why = outcome(READERS[name], data, folder)
            if why:
                os.write(writer, json.dumps([number, why]).encode() + b"\n")
            number += 1
        place.set(number)
        code = 0
    finally:
        os._exit(code)


def apart(reader: Reader, data: bytes, folder: Path) -> str:
    """`outcome` in a child of its own, which may crash."""
    answer, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(STUCK)
            os.write(writer, outcome(reader, data, folder).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(answer, "rb") as stream:
        why = stream.read().decode()
    _, status = os.waitpid(child, 0)
    return f"crashes by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else why


def smaller(failure: Failure, folder: Path, tries: int = 400) -> Failure:
    """The same failure by fewer bytes: runs are left out as long as what is wrong stays wrong in the same way."""
    reader, data, kind = READERS[failure.reader], failure.data, failure.why.split(":")[0]
    step = len(data) // 2
    while step and tries:
        start = 0
        while start < len(data) and tries:
            shorter = data[:start] + data[start + step :]
            tries -= 1
            if apart(reader, shorter, folder).split(":")[0] == kind:
                data = shorter
            else:
                start += step
        step //= 2
    return failure._replace(data=data)
