"""Threads that solve islands of rows beside the thread that takes the steps.

The step's kernel calls back where a solution begins and where it has run out of islands (solvers/newton.py); in between
every thread takes islands from the same count. The thread that solves an island is up to chance; the result does not
depend on it. A helper sleeps otherwise.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.foundation.jit import Entry, bind, disabled, point_at_function
from artsim.sim.run_data.run_records import RESIDUAL, Rows, RunBundle
from artsim.sim.run_data.scratch import (
    BLOCKS,
    HELPS,
    ISLANDS,
    NEWTON_STEPS,
    OWN_SCRATCH,
    SolverBundle,
)

_PATIENCE = 1.0  # s between looks at a helper, whose `returned` is missed if a signal comes at the same time


class _Helper:
    """A thread that makes a call for every new ticket; `last`: the ticket of the last one that has returned."""

    def __init__(self) -> None:
        self.last = 0
        self.tickets: SimpleQueue[tuple[int, Callable[[], None]] | None] = SimpleQueue()
        self.returned = threading.Event()
        self.failures: list[BaseException] = []
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        """Make the calls of all tickets, until None comes in place of a ticket."""
        while (order := self.tickets.get()) is not None:
            ticket, call = order
            if ticket > self.last:
                try:
                    call()
                except BaseException as error:
                    self.failures.append(error)
                self.last = ticket
            self.returned.set()


class Crew:
    """At most `threads` threads, one of which takes the steps. No more threads than trees of `model` are started, since
    every island has at least one tree."""

    def __init__(self, model: Model, threads: int) -> None:
        trees = int(np.count_nonzero(model.independent_parent < 0))
        self._helpers = [_Helper() for _ in range(0 if disabled() else min(threads, trees) - 1)]
        self._failures: list[BaseException] = []
        self._ticket = [0]
        weakref.finalize(self, _dismiss, self._helpers)

    def connect(self, entry: Entry, robot: RobotBundle, run: RunBundle, rows: Rows, solver: SolverBundle) -> object:
        """Let the helpers solve islands of these rows beside newton's entry, while the returned object is kept."""
        newton = solver.newton
        newton.start_helpers[:] = newton.await_helpers[:] = 0
        helpers, ticket, failures = self._helpers, self._ticket, self._failures
        if not helpers:
            return None
        calls: list[Callable[[], None]] = []
        owned: list[tuple[Any, Any]] = []
        for _ in helpers:
            fields = {name: getattr(newton, name) for name in OWN_SCRATCH}
            scratch = newton._replace(**{name: np.zeros(field.shape, field.dtype) for name, field in fields.items()})
            own = rows._replace(report=np.zeros_like(rows.report))
            scratch.sizes[HELPS] = 1
            calls.append(bind(entry, 1, robot, run, own, solver._replace(newton=scratch)))
            owned.append((scratch.sizes, own.report))

        def start() -> None:
            for helper, call, (sizes, _) in zip(helpers, calls, owned, strict=True):
                sizes[BLOCKS], sizes[ISLANDS] = newton.sizes[BLOCKS], newton.sizes[ISLANDS]
                helper.returned.clear()
                helper.tickets.put((ticket[0], call))

        def wait() -> None:
            for helper, (sizes, report) in zip(helpers, owned, strict=True):
                while helper.last < ticket[0]:
                    helper.returned.wait(_PATIENCE)
                rows.report[RESIDUAL] = max(rows.report[RESIDUAL], report[RESIDUAL])
                newton.sizes[NEWTON_STEPS] = max(newton.sizes[NEWTON_STEPS], sizes[NEWTON_STEPS])
                failures.extend(helper.failures)
                helper.failures.clear()

        def begin() -> None:
            ticket[0] += 1
            _in_spite_of_signals(start, failures)

        return (
            point_at_function(newton.start_helpers, begin),
            point_at_function(newton.await_helpers, lambda: _in_spite_of_signals(wait, failures)),
        )

    @property
    def times(self) -> int:
        """The number of solutions in which the helpers took part."""
        return self._ticket[0]

    def watched(self, call: Callable[[], None]) -> Callable[[], None]:
        """Wrap a call of a kernel: exceptions of helpers and of callbacks, which a kernel cannot raise, are raised once
        the kernel has returned."""
        failures = self._failures

        def call_and_raise() -> None:
            call()
            if failures:
                error = failures[0]
                failures.clear()
                raise error

        return call_and_raise if self._helpers else call


def _in_spite_of_signals(work: Callable[[], None], failures: list[BaseException]) -> None:
    """Do work that may be done twice: it is repeated if a signal's handler raises within it, and the exception is added
    to `failures`."""
    while True:
        try:
            work()
            return
        except BaseException as error:
            failures.append(error)


def _dismiss(helpers: list[_Helper]) -> None:
    for helper in helpers:
        helper.tickets.put(None)
