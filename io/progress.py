"""A progress bar, for commands and for calls from Python."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artsim.sim.foundation.jit import Entry

_BAR_AFTER = 0.5  # s: shorter work shows no progress


@contextlib.contextmanager
def progress_bar(what: str, total: int, *, unit: str, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar with rate and remaining time on a terminal's stderr, or in a notebook, once the work has taken 0.5 s.

    Yields a function that takes how much of `total` is done.
    """
    if not (show and (sys.stderr.isatty() or _in_notebook())):
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
    """jit.warm, with a bar where somebody watches."""
    from artsim.sim.foundation import jit  # imports numpy, which commands without kernels do without

    jit.warm(kernels, _compiling)


@contextlib.contextmanager
def _compiling(kernels: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar and the time taken while kernels are compiled, once for this machine; None where nobody watches."""
    if not (sys.stderr.isatty() or _in_notebook()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling kernels, once on this machine", total=kernels)
        yield lambda done: bar.update(task, completed=done)


def _in_notebook() -> bool:
    """True if Python runs as the kernel of a notebook, whose pages show rich's bars."""
    return "ipykernel" in sys.modules


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
