"""The progress of compiling kernels: a bar on a terminal or in a notebook, elsewhere a line every few seconds."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artsim.sim.foundation.jit import Amount, Tell

_LINE_AFTER, _BAR_AFTER = 5.0, 0.5  # s between two lines, between two states of a bar
_PACE = 3e-10  # s for a unit of work, of the kernels of `artsim warmup` on a core of 2026
_NAMED = 3  # kernels at work that a line names


class Compilation:
    """Kernels on their way: which are ready, which are at work, and about how long the others will take.

    The time is estimated in proportion to `Amount.work`, by the pace of the kernels that are ready and by _PACE, which
    counts as much as a third of all work: the first kernels take longest, since later ones share their functions.
    `clock` gives the time [s].
    """

    def __init__(self, kernels: Sequence[Amount], clock: Any = time.monotonic) -> None:
        self.kernels, self._clock, self._began = kernels, clock, clock()
        self._at_work: dict[int, float] = {}  # number of a kernel to the time when it was begun [s]
        self._took: dict[int, float] = {}  # number of a kernel that is ready to its time [s]
        self._abreast = 1  # kernels at work at once

    def tell(self, number: int, ready: bool) -> None:
        """Note that a kernel is begun, or ready."""
        if not ready:
            self._at_work[number] = self._clock()
            self._abreast = max(self._abreast, len(self._at_work))
        elif number not in self._took:
            self._took[number] = self._clock() - self._at_work.pop(number, self._clock())

    @property
    def seconds(self) -> float:
        """The time since the beginning [s]."""
        return float(self._clock() - self._began)

    @property
    def ready(self) -> int:
        """The number of kernels that are ready."""
        return len(self._took)

    @property
    def remaining(self) -> float:
        """About the time until all are ready [s]."""
        done = sum(self.kernels[number].work for number in self._took)
        known = sum(kernel.work for kernel in self.kernels) / 3
        pace = (sum(self._took.values()) + _PACE * known) / (done + known)  # s for a unit of work
        left = {n: kernel.work * pace for n, kernel in enumerate(self.kernels) if n not in self._took}
        for number, began in self._at_work.items():
            age = self._clock() - began
            left[number] = max(left[number] - age, 0.2 * age)  # one that takes longer than thought goes on for a while
        return max([sum(left.values()) / self._abreast, *left.values()])

    def __str__(self) -> str:
        names = [self.kernels[number].name for number in list(self._at_work)[:_NAMED]]
        now = f"; now {', '.join(names)}" if names else ""
        past, left = f"{self.seconds:.0f} s", f"{self.remaining:.0f} s"
        return f"{self.ready} of {len(self.kernels)} kernels ready after {past}, about {left} to go{now}"


@contextlib.contextmanager
def compiling(kernels: Sequence[Amount]) -> Iterator[Tell]:
    """Show how kernels are compiled, once for this machine."""
    from artsim.sim.foundation.compiler import slower

    watched = (_Bar if is_watched() else _Lines)(Compilation(kernels))
    ended, thread = threading.Event(), threading.Thread(target=lambda: watched.follow(ended), daemon=True)

    def tell(number: int, ready: bool) -> None:
        watched.compilation.tell(number, ready)
        if thread.ident is None:  # not before children are forked, which a process with threads does not do
            thread.start()

    try:
        yield tell
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()
    why = f" ({slower()})" if slower() else ""
    many = f"{len(kernels)} kernels" if len(kernels) > 1 else f"kernel {kernels[0].name!r}"
    _say(f"compiled {many} in {watched.compilation.seconds:.0f} s{why}")


class _Lines:
    """A line every few seconds."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        many = "1 kernel" if len(compilation.kernels) == 1 else f"{len(compilation.kernels)} kernels"
        _say(f"compiling {many}, once on this machine")

    def follow(self, ended: threading.Event) -> None:
        while not ended.wait(_LINE_AFTER):
            _say(f"compiling, {self.compilation}")


class _Bar:
    """A bar with the same words."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation

    def follow(self, ended: threading.Event) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = TextColumn("compiling, once on this machine"), BarColumn(20), TextColumn("{task.description}")
        total = len(self.compilation.kernels)
        with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
            task = bar.add_task("", total=total)
            while not ended.wait(_BAR_AFTER):
                bar.update(task, completed=self.compilation.ready, description=str(self.compilation), refresh=True)


def is_watched() -> bool:
    """True where somebody sees a bar: on a terminal, or in a notebook, whose pages show rich's."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _say(words: str) -> None:
    sys.stderr.write(f"artsim: {words}\n")
