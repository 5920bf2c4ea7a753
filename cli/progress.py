"""Shared by commands while they work: signals that are polled between blocks, and full disks."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import click

from artsim.cli.terminal import one_line
from artsim.sim.foundation.errors import StorageError


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
