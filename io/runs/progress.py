"""A progress bar, for commands and for calls from Python."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from artsim.io.runs.compiling import compiling, is_watched

if TYPE_CHECKING:
    from artsim.sim.foundation.jit import Entry

_BAR_AFTER = 0.5  # s: shorter work shows no progress


@contextlib.contextmanager
def progress_bar(what: str, total: int, *, unit: str, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar with rate and remaining time on a terminal's stderr, or in a notebook, once the work has taken 0.5 s.

    Yields a function that takes how much of `total` is done.
    """
    if not (show and is_watched()):
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


def warm(kernels: Iterable[tuple[Entry, int]]) -> None:
    """jit.warm, with its progress on stderr."""
    from artsim.sim.foundation import jit  # imports numpy, which commands without kernels do without

    jit.warm(kernels, compiling)


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
