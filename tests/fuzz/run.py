"""The loop: seeds, mutations, readers, and what must never come of them."""

from __future__ import annotations

import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from artsim.sim.errors import ArtsimError
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS, Reader

SECONDS = 5.0  # of the processor, that a reader may take
LIMIT = 20  # s of the clock, after which it hangs
MEMORY = 1 << 30  # bytes resident that it may add


class Failure(NamedTuple):
    """An input and what came of it."""

    reader: str
    data: bytes
    why: str


class HangError(BaseException):
    """It takes too long. No Exception: readers catch those."""


def outcome(reader: Reader, data: bytes, folder: Path) -> str:
    """`` where the input was read or refused in one line, else what is wrong."""
    path = folder / f"input{reader.suffix}"
    path.write_bytes(data)

    def stop(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    began, used = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        reader.read(path)
    except ArtsimError as error:
        if "\n" in str(error):
            return "an error of several lines"
        if str(error).startswith("internal error"):
            return str(error)[:200]
    except HangError:
        return f"hangs for {LIMIT} s"
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


def cases(names: list[str], seed: int) -> Iterator[tuple[str, bytes]]:
    """Mutated seeds of the readers in turn, for ever; the same for the same seed."""
    rng = random.Random(seed)
    seeds = {name: READERS[name].seeds() for name in names}
    while True:
        for name in names:
            own = seeds[name]
            yield name, mutated(rng.choice(own), READERS[name].words, own, rng)


def smaller(failure: Failure, folder: Path, tries: int = 400) -> Failure:
    """The same failure by fewer bytes: runs are left out as long as what is wrong stays wrong in the same way."""
    reader, data, kind = READERS[failure.reader], failure.data, failure.why.split(":")[0]
    step = len(data) // 2
    while step and tries:
        start = 0
        while start < len(data) and tries:
            shorter = data[:start] + data[start + step :]
            tries -= 1
            if outcome(reader, shorter, folder).split(":")[0] == kind:
                data = shorter
            else:
                start += step
        step //= 2
    return failure._replace(data=data)


def fuzz(
    names: list[str], seed: int, folder: Path, *, count: int = 0, seconds: float = 0.0
) -> tuple[Counter[str], list[Failure]]:
    """So many cases, or so long: cases per reader, and what failed, of each kind one."""
    done: Counter[str] = Counter()
    found: dict[tuple[str, str], Failure] = {}
    began = time.monotonic()
    for name, data in cases(names, seed):
        if (count and done.total() >= count) or (seconds and time.monotonic() - began >= seconds):
            break
        why = outcome(READERS[name], data, folder)
        done[name] += 1
        if why:
            found.setdefault((name, why.split(":")[0]), Failure(name, data, why))
    return done, list(found.values())
