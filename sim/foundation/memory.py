"""The memory that this process may still allocate, bounded by the machine, its control group and its own limit."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def memory_left() -> tuple[int, str]:
    """The number of bytes left, and what bounds it; the largest possible number if nothing is known."""
    bounds = [(sys.maxsize, "the machine has"), *_of_machine(), *_of_process(), *_of_group()]
    return min(bounds)


def _of_machine() -> Iterator[tuple[int, str]]:
    with contextlib.suppress(OSError, ValueError, KeyError):
        yield _facts(Path("/proc/meminfo"))["MemAvailable"] << 10, "the machine has"


def _of_process() -> Iterator[tuple[int, str]]:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError, KeyError):
            used = _facts(Path("/proc/self/status"))["VmSize"] << 10
            yield max(0, limit - used), "the address space limit (ulimit -v) leaves"


def _of_group() -> Iterator[tuple[int, str]]:
    """Limits of control groups, versions 2 and 1, including those of parents. Cached files count as free."""
    for folder, limit, used, cache in _group_folders():
        with contextlib.suppress(OSError, ValueError, KeyError):
            most = int((folder / limit).read_text())  # "max" is no number: no limit
            taken = int((folder / used).read_text()) - _facts(folder / "memory.stat")[cache]
            yield max(0, most - taken), "the control group's limit leaves"


def _group_folders() -> Iterator[tuple[Path, str, str, str]]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if not controllers:
                files = ("memory.max", "memory.current", "file")
            elif "memory" in controllers.split(","):
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "cache")
            else:
                continue
            top = _CGROUPS / "memory" if controllers else _CGROUPS
            here = top / name.lstrip(os.sep)
            for folder in (here, *here.parents):
                yield (folder, *files)
                if folder == top:
                    break


def _facts(path: Path) -> dict[str, int]:
    """Read lines of a name and a number, `Name: 12 kB` or `name 12`."""
    lines = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
