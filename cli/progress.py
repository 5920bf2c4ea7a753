"""What commands share while they work: a progress bar, signals that are polled between blocks, and full disks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from artsim.cli.terminal import one_line
from artsim.sim.foundation.errors import StorageError

_BAR_AFTER = 0.5  # s: shorter work shows no progress


@contextlib.contextmanager
def progress_bar(what: str, total: int, *, unit: str, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar with rate and remaining time on a terminal's stderr once the work has taken 0.5 s.

    Yields a function that takes how much of `total` is done.
    """
    if not (show and sys.stderr.isatty()):
        yield lambda done: None
        return
    began = time.perf_counter()
    bar: Any = None
    task: Any = None

    def advance(done: int) -> None:
        nonlocal bar, task
        seconds = time.perf_counter() - began
        if bar is None and seconds > _BAR_AFTER:
            bar = _bar(unit)
            task = bar.add_task(what, total=total, rate="")
            bar.start()
        if bar is not None:
            bar.update(task, completed=done, rate=f"{done / seconds:,.0f}")

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(unit: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.fields[rate]}} {unit}/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextlib.contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list, polled after each block; HDF5 can swallow exceptions raised inside it."""
    caught: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not the main thread
            before[number] = signal.signal(number, lambda n, _: caught.append(n))
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def storage_errors() -> Iterator[None]:
    """Exit at once on a StorageError: after a failed write HDF5 crashes when the interpreter exits."""
    try:
        yield
    except StorageError as error:
        click.echo(one_line(str(error)), err=True)
        sys.stderr.flush()
        os._exit(error.exit_code)
