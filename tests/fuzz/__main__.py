"""`python -m tests.fuzz --hours 8`: mutated inputs for every reader; what fails is made small and kept as a seed."""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
import warnings
from pathlib import Path

from tests.fuzz.fuzzing import Failure, fuzz, smaller
from tests.fuzz.readers import READERS, SEEDS


def main() -> None:
    """Parse, run, tell, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--count", type=int, default=0, help="cases in all, instead of --hours")
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only these; may be repeated")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    if not (given.hours or given.count):
        parser.error("give --hours or --count")
    warnings.simplefilter("ignore")
    names = given.reader or list(READERS)
    with tempfile.TemporaryDirectory(prefix="artsim-fuzz-", dir=_memory()) as name:
        folder, began = Path(name), time.monotonic()
        done, failures = fuzz(
            names, given.seed, folder, count=given.count, seconds=3600 * given.hours, tell=_tell, at=_Minutes()
        )
        for failure in failures:
            small = smaller(failure, folder)
            place = SEEDS / f"{hashlib.sha256(small.data).hexdigest()[:12]}{READERS[small.reader].suffix}"
            place.write_bytes(small.data)
            print(f"{small.reader}: {small.why}: {len(small.data)} bytes kept in {place}", flush=True)
    print(
        f"seed {given.seed}: {done.total()} cases in {time.monotonic() - began:.0f} s, {len(failures)} kinds of failure"
    )
    for reader, count in done.most_common():
        print(f"  {reader:12} {count}")
    raise SystemExit(1 if failures else 0)


class _Minutes:
    """Says every minute which case is read."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()

    def __call__(self, number: int) -> None:
        now = time.monotonic()
        if now - self.last >= 60:
            self.last = now
            print(f"{(now - self.began) / 60:.0f} min: case {number}", flush=True)


def _memory() -> str | None:
    """A folder in memory, where there is one: half of the time of a small case is a disk's."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _tell(failure: Failure) -> None:
    print(f"case {failure.number}, {failure.reader}: {failure.why}", flush=True)


if __name__ == "__main__":
    main()
