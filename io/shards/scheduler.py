"""Computes shards on the workers of a dask.distributed cluster, or in local processes (workers.py).

A worker receives an order as text: the configuration, from which it rebuilds the job, and which shard to write to which
file. It answers with text. If a worker dies, dask gives its shard to another one, which writes the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artsim.io.gate.shard_table import Entry
from artsim.io.shards import workers
from artsim.io.shards.job import Job
from artsim.io.shards.shard_runs import Runner, Watch, compute_one
from artsim.io.shards.shards import Finished, Shard, absolute, difference
from artsim.io.shards.workers import Work
from artsim.sim.foundation import errors
from artsim.sim.foundation.errors import ArtsimError, ModelError, StoppedError, UsageError

_POLL = 0.1  # s
_CONNECT = 20.0  # s
_LOCAL = re.compile(r"local:([0-9]{1,3})")
_REMOTE = re.compile(r"(tcp|tls)://.+")


def check_scheduler(address: str) -> None:
    """Raise UsageError if `address` is not valid, or if it needs dask and dask is not installed."""
    local = _LOCAL.fullmatch(address)
    if not (_REMOTE.fullmatch(address) or (local and int(local[1]) > 0)):
        raise UsageError(f"--scheduler {address}: want tcp://HOST:PORT, or local:N for N processes on this machine")
    if not local and find_spec("distributed") is None:
        raise UsageError("--scheduler needs dask, which is not installed: pip install 'artsim[dask]'")


# ---- in this process


def run_on(address: str, job: Job, work: Work, **options: Any) -> Runner:
    """A runner whose workers call `work` (a module-level function) with one order per shard.

    Args:
        address: of a dask scheduler, or `local:N` for N processes on this machine.
        options: options of compute_rows, as plain data.

    Raises UsageError if no scheduler answers, StoppedError if the connection is lost or several workers die of the same
    shard, and whatever a worker raised.
    """

    def run(todo: Sequence[Shard], watch: Watch) -> bool:
        if not todo:
            return True
        orders = {shard: _order(job, shard, options) for shard in todo}
        local = _LOCAL.fullmatch(address)
        if local:
            return workers.follow(int(local[1]), orders, work, partial(_read, job), watch)
        with _quiet(), _client(address) as client:
            return _follow(client, job, orders, work, watch)

    return run


def _order(job: Job, shard: Shard, options: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "config": job.for_workers(),
            "facts": job.facts,
            "shard": [shard.number, shard.of, absolute(shard.path), shard.first, shard.last],
            "options": dict(options),
        }
    )


def _follow(client: Any, job: Job, orders: Mapping[Shard, str], work: Work, watch: Watch) -> bool:
    """Submit the orders and wait until all are done; False if `watch.stop` ended the wait."""
    name = f"artsim-{uuid.uuid4().hex}"
    pending = {
        client.submit(work, order, key=f"{name}-{shard.number}", pure=False): shard for shard, order in orders.items()
    }
    while pending:
        for future in [future for future in pending if future.done()]:
            shard = pending.pop(future)
            watch.done(shard, _result(job, future, shard))
            watch.rows(0)
        if pending and watch.stop():
            client.cancel(list(pending))
            return False
        time.sleep(_POLL)
    return True


def _result(job: Job, future: Any, shard: Shard) -> Finished:
    """The result of a finished task. Raises what the worker raised."""
    from distributed import KilledWorker

    if future.cancelled():
        raise StoppedError(f"shard {shard.number} of {shard.of}: the scheduler was lost; --resume goes on")
    try:
        answer = future.result()
    except KilledWorker:
        raise StoppedError(
            f"shard {shard.number} of {shard.of}: worker after worker died of it; is there memory enough?"
        ) from None
    except Exception as error:  # an error in the worker or in transmission
        what = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        raise ArtsimError(f"internal error in a worker, shard {shard.number} of {shard.of}: {what}") from None
    return _read(job, answer, shard)


def _read(job: Job, text: str, shard: Shard) -> Finished:
    """Parse a worker's answer. Raises the error that the answer reports."""
    try:
        answer = json.loads(text)
    except ValueError:
        raise ArtsimError(f"internal error in a worker, shard {shard.number} of {shard.of}: no answer") from None
    if "error" in answer:
        kind = getattr(errors, answer["error"], ArtsimError)
        raise kind(answer["message"])
    return Finished(Entry(*answer["entry"]), tuple(answer["failed_rows"]), job.told.from_plain(answer["told"]))


@contextlib.contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client of the cluster, closed at the end of the block."""
    from distributed import Client

    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=_CONNECT, set_as_default=False))
        except Exception as error:  # what a library of networks raises has no end: tls without certificates TypeError
            what = (str(error) or type(error).__name__).split("\n", 1)[0]
            raise UsageError(f"--scheduler {address}: cannot connect: {what}") from None
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress dask's log lines and warnings: relevant errors are raised."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


# ---- in a worker

_making = threading.Lock()
_jobs: dict[str, Any] = {}  # the last job, by its configuration: making one may require hashing a large input


def perform(order: str, load: Callable[[str], Job], stop: Callable[[], bool] | None = None) -> str:
    """Compute the shard of an order and return the answer as text.

    `load` makes the job of a configuration; `stop` tells when to stop (None: when dask cancels the task).
    """
    try:
        wanted = json.loads(order)
        job = job_of(wanted["config"], load)
        if job.facts != wanted["facts"]:
            what = difference(job, wanted["facts"])
            raise ModelError(f"worker on {socket.gethostname()}: sees another job: {what}")
        number, count, path, first, last = wanted["shard"]
        shard = Shard(number, count, Path(path), first, last)
        done = compute_one(job, shard, stop or _asked_to_stop(), **wanted["options"])
        if done is None:
            raise StoppedError(f"shard {number} of {count}: cancelled")
        return json.dumps({"entry": done.entry, "failed_rows": done.failed_rows, "told": done.told})
    except ArtsimError as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)})
    except Exception as error:  # the client reports it as one line
        what = f"internal error in a worker: {type(error).__name__}: {error}".split("\n", 1)[0]
        return json.dumps({"error": "ArtsimError", "message": what})


def job_of(config: str, load: Callable[[str], Job]) -> Job:
    """The job of a configuration; of a worker's threads one makes it and loads the kernel while the others wait."""
    with _making:
        job: Job | None = _jobs.get(config)
        if job is None:
            job = load(config)
            job.warm()
            _jobs.clear()
            _jobs[config] = job
        return job


def _asked_to_stop() -> Callable[[], bool]:
    """A function that tells whether the client has cancelled the current task or disconnected."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def stop() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state not in ("executing", "long-running")

    return stop
