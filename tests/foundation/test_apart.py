"""Children end with the process that started them, however it ends, and print nothing after it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

BUSY = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
sys.platform = PLATFORM or sys.platform
from pathlib import Path
from artsim.sim.foundation import apart, jit
def work(*_):
    number = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(number, f"{os.getpid()}\\n".encode())
    end = time.time() + 40
    while time.time() < end:
        pass
    return b""
"""
# how children are started, and how many
STARTS = {
    "start_child": ("apart.start_child(work); time.sleep(40)", 1),
    "apart": ("apart.apart(work, apart.Limits(40, 40, 1 << 30))", 1),
    "compilers": ("jit.available_cores = lambda: 2; jit._in_children(work, 5, None)", 2),
    "workers": ("from tests.foundation.test_apart import follow; follow(sys.argv[1])", 1),
}


def follow(log: str) -> None:
    """Have one local worker perform an order that never ends."""
    from artsim.io.shards.shard_runs import Watch
    from artsim.io.shards.shards import Shard
    from artsim.io.shards.workers import follow as follow_workers

    watch = Watch(done=lambda *_: None, rows=lambda _: None, stop=lambda: False)
    follow_workers(1, {Shard(1, 1, Path("none"), 0, 1): log}, _never_ending, lambda *_: None, watch)  # type: ignore[arg-type,return-value]


def _never_ending(order: str, stop: Callable[[], bool]) -> str:
    with Path(order).open("a") as log:
        log.write(f"{os.getpid()}\n")
    end = time.time() + 40
    while time.time() < end:
        pass
    return ""


def alive(child: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("ended_by", ["SIGTERM", "SIGINT", "SIGKILL"])
@pytest.mark.parametrize("how", STARTS)
@pytest.mark.parametrize("platform", ["linux", "other"])
def test_children_end_with_their_parent(how: str, ended_by: str, platform: str, tmp_path: Path) -> None:
    """By the kernel on Linux, by a pipe elsewhere; signals reach the parent only."""
    if how == "workers" and (platform == "other" or ended_by == "SIGINT"):
        pytest.skip("the other end of a worker's pipe is there on every platform, and Ctrl-C waits for workers to stop")
    begin, count = STARTS[how]
    log = tmp_path / "children"
    script = BUSY.replace("PLATFORM", "''" if platform == "linux" else "'other'") + begin
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(log)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    children: list[int] = []
    try:
        for _ in range(600):
            children = [int(line) for line in log.read_text().split()] if log.exists() else []
            if len(children) >= count:
                break
            time.sleep(0.05)
        assert len(children) == count
        assert all(map(alive, children))
        parent.send_signal(getattr(signal, ended_by))
        parent.wait(20)
        for _ in range(200):
            if not any(map(alive, children)):
                break
            time.sleep(0.05)
        assert not any(map(alive, children))
        assert parent.stdout is not None
        parent.stdout.read()  # nobody else holds it open
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
