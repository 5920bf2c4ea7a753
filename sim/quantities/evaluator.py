"""The evaluators that `Robot.compute` keeps between calls, one for each request, with scratch and tables of addresses.

A new evaluator takes 400 µs, while the rows of a small call need less than one. The rows of small tables, and those
that fill the last pack of a large table in part, are copied through a few kept rows; all others are computed from the
caller's arrays into the results, in place. The bytes of a row do not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.pieces import PIECE
from artsim.sim.foundation.records import WIDTH, Array, address_of
from artsim.sim.quantities.catalogue import OK
from artsim.sim.quantities.evaluation import Evaluation, Workers

_REAL, _STATUS = np.dtype(np.float64), np.dtype(np.int64)
_COPIED = 4 * WIDTH  # rows from which on a table's own arrays are used: to point at one takes as long as to copy these
_MOST_REQUESTS = 32  # for which a robot keeps evaluators: the oldest goes
_MOST_MEMORY = 1 << 28  # bytes of all kept scratch: a crowd of thousands of dofs keeps none

Given = Mapping[str, ArrayLike | None]


class Kept(Protocol):
    """A holder of scratch that is kept between calls."""

    @property
    def memory(self) -> int:
        """Bytes of its scratch, roughly."""


K = TypeVar("K", bound=Kept)


class KeptScratch(Generic[K]):
    """The idle evaluators of a robot by request. Threads take one each, and give it back when its call is over.

    Every access is one operation of a dict or list, which is atomic. A copy or pickle of a robot starts without any.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[K]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptScratch, ()

    def take(self, request: Hashable) -> K | None:
        """An idle evaluator, which nobody else has; None if there is none."""
        try:
            return self._idle[request].pop()
        except (LookupError, TypeError):  # none, or a request that cannot be hashed, which is refused elsewhere
            return None

    def give_back(self, request: Hashable, evaluator: K) -> None:
        """Keep an evaluator for later calls, if there is room."""
        idle = self._idle.get(request)
        if idle is None:
            room = min(_MOST_REQUESTS, _MOST_MEMORY // evaluator.memory)
            while len(requests := list(self._idle)) >= max(room, 1):
                self._idle.pop(requests[0], None)
            if room == 0:
                return
            idle = self._idle.setdefault(request, [])
        if len(idle) < 2 or len(idle) < available_cores():
            idle.append(evaluator)


class Evaluator:
    """Checks and evaluates tables for one request. An evaluator holds scratch: two threads never call one at once."""

    def __init__(self, prepare: Callable[[int], Evaluation], status: bool) -> None:
        """`prepare` makes the Evaluation of a width; `status`: True if the status is among the results."""
        self._prepare = prepare
        self._with_status = status
        self._wide = wide = prepare(WIDTH)
        nv = (wide.sizes["dof"],)
        self._given_shapes = {
            "qpos": wide.shapes["qpos"],
            "qvel": nv,
            "qacc": nv,
            "tau": nv,
            "wrench": (len(wide.links), 6),
        }
        self._wide_shapes = {name: wide.shapes[name] for name in wide.quantities}
        self._out_shapes = self._wide_shapes | ({"status": ()} if status else {})
        self._workers: dict[int, Workers] = {}

    @cached_property
    def memory(self) -> int:
        """Bytes of its scratch, roughly: the matrices of a pack for one thread."""
        return 64 * (8 * self._wide.sizes["dof"] ** 2 + 1024)

    @cached_property
    def _one_by_one(self) -> _FewRows:
        """The rows kept for tables of less than a pack."""
        return _FewRows(self._prepare(1), WIDTH - 1)

    @cached_property
    def _pack_by_pack(self) -> _FewRows:
        """The rows kept for tables of a few packs, and for the rows beyond the last whole pack of larger tables."""
        return _FewRows(self._wide, _COPIED)

    def __call__(self, given: Given, out: Mapping[str, Array] | None, threads: int | None) -> dict[str, Array]:
        """The results by name; see Robot.compute."""
        qpos = given["qpos"]
        if type(qpos) is not np.ndarray:
            qpos = numbers("qpos", qpos)
        single = qpos.ndim == 1
        rows = qpos.shape[0] if qpos.ndim > 1 else 1
        tables = {}
        for name, values in given.items():
            if values is not None or name == "qpos":
                shape = self._given_shapes[name]
                fits = type(values) is np.ndarray and values.dtype is _REAL
                if not fits or values.shape != (shape if single else (rows, *shape)):  # type: ignore[union-attr]
                    values = table_of(name, values, (rows, *shape))
                tables[name] = values
        if out is not None:
            self._check_out(out, rows, single)
        if single:
            return self._one(tables, out or {})
        if rows < _COPIED:
            return self._few(tables, out or {}, rows)
        return self._many(tables, out or {}, rows, threads)

    def _one(self, tables: Mapping[str, Any], out: Mapping[str, Array]) -> dict[str, Array]:
        """The results of one configuration."""
        kept = self._one_by_one
        bad = kept.compute_first(tables) != OK
        results = {}
        for name in self._out_shapes:
            values = kept.outputs[name][0]
            if bad and name != "status":
                values = values * np.nan
            if name in out:
                out[name][...] = values
                results[name] = out[name]
            else:
                results[name] = values.copy()
        return results

    def _few(self, tables: Mapping[str, Any], out: Mapping[str, Array], rows: int) -> dict[str, Array]:
        """The results of so few rows that it is quicker to copy them."""
        kept = self._one_by_one if rows < WIDTH else self._pack_by_pack
        status = kept.compute(tables, rows)
        results = {}
        for name in self._out_shapes:
            values = kept.outputs[name][:rows]
            if name in out:
                out[name][...] = values
                results[name] = out[name]
            else:
                results[name] = values.copy()
        self._blank(results, status)
        return results

    def _many(
        self, tables: Mapping[str, Any], out: Mapping[str, Array], rows: int, threads: int | None
    ) -> dict[str, Array]:
        """The results of a pack and more."""
        tables = {name: _apart_from(out, values) for name, values in tables.items()}
        arrays = {name: _in_order(tables.get(name), (rows, *self._wide.shapes[name])) for name in self._wide.inputs}
        results = {
            name: out[name] if name in out else _empty((rows, *shape)) for name, shape in self._wide_shapes.items()
        }
        status = out.get("status")
        if status is None:
            status = np.empty(rows, np.int64)
        results["status"] = status
        whole = rows - rows % self._wide.width
        if threads is None:
            threads = available_cores() if rows > PIECE else 1
        if threads not in self._workers:
            self._workers[threads] = Workers(self._wide, threads)
        workers = self._workers[threads]
        workers.point_at(arrays | results, rows)
        workers.run(whole)
        workers.release()
        if whole < rows:
            self._pack_by_pack.compute({name: values[whole:] for name, values in arrays.items()}, rows - whole)
            for name, values in results.items():
                values[whole:] = self._pack_by_pack.outputs[name][: rows - whole]
        self._blank(results, status)
        if not self._with_status:
            del results["status"]
        return results

    def _blank(self, results: Mapping[str, Array], status: Array) -> None:
        """Put NaN into the rows that have no result."""
        if np.count_nonzero(status):
            bad = status != OK
            for name in self._wide_shapes:
                results[name][bad] = np.nan

    def _check_out(self, out: Mapping[str, Array], rows: int, single: bool) -> None:
        """Refuse arrays that results cannot be written to."""
        for name, values in out.items():
            shape = self._out_shapes.get(name)
            if shape is None:
                raise UsageError(f"out: {name!r} is not among the quantities{nearest(name, self._out_shapes)}")
            if not single:
                shape = (rows, *shape)
            dtype = _STATUS if name == "status" else _REAL
            if type(values) is not np.ndarray:
                raise UsageError(f"out[{name!r}]: want an array of numpy, not {type(values).__name__}")
            if values.dtype != dtype or values.shape != shape:
                raise UsageError(f"out[{name!r}] is {values.dtype} {values.shape}, want {dtype} {shape}")
            if not values.flags.carray:
                raise UsageError(f"out[{name!r}]: want an array that is C-contiguous, aligned and can be written")
        if len(out) > 1:
            _refuse_shared(out)


def _refuse_shared(out: Mapping[str, Array]) -> None:
    """Refuse contiguous arrays that share memory."""
    starts = {name: address_of(values) for name, values in out.items()}
    for name, other in pairwise(sorted(out, key=starts.__getitem__)):
        if starts[other] < starts[name] + out[name].nbytes and out[other].nbytes:
            raise UsageError(f"out[{name!r}] and out[{other!r}] share memory")


class _FewRows:
    """A few rows that are kept, with the call that computes them."""

    def __init__(self, evaluation: Evaluation, rows: int) -> None:
        self.inputs, self.outputs = evaluation.allocate(rows)
        self._call = evaluation.bound(self.inputs, self.outputs)
        self._first = [(name, place[0]) for name, place in self.inputs.items()]
        self._status = self.outputs["status"]

    def compute_first(self, tables: Mapping[str, Array]) -> Any:
        """Compute one row of these inputs, as `compute` does; returns its status."""
        for name, place in self._first:
            place[...] = tables.get(name, 0.0)
        self._call(1)
        return self._status[0]

    def compute(self, tables: Mapping[str, Array], rows: int) -> Array:
        """Compute rows of these inputs, those not given being zero, into `outputs`; returns their status."""
        for name, place in self.inputs.items():
            place[:rows] = tables.get(name, 0.0)
        self._call(rows)
        return self._status[:rows]


def _in_order(values: Array | None, shape: tuple[int, ...]) -> Array:
    """An input as kernels read it; zeros if it was omitted."""
    if values is None:
        return np.zeros(shape)
    flags = values.flags
    return values if flags.c_contiguous and flags.aligned else values.copy()


def _empty(shape: tuple[int, ...]) -> Array:
    """An array that starts at a cache line, as streaming stores need."""
    size = prod(shape)
    buffer = np.empty(size + 8)
    start = (-address_of(buffer) // 8) % 8
    return buffer[start : start + size].reshape(shape)


def _apart_from(out: Mapping[str, Array], values: Array) -> Array:
    """An input, copied if it may share memory with an output, which would be written before all of it is read."""
    return values.copy() if any(np.may_share_memory(values, other) for other in out.values()) else values


def table_of(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """An input as a table of this shape.

    Raises UsageError: it is no table of numbers, or of another shape.
    """
    table = numbers(name, values)
    if table.shape != shape and (1, *table.shape) != shape:
        one = f" or {shape[1:]}" if shape[0] == 1 else ""
        raise UsageError(f"{name} has shape {table.shape}, want {shape}{one}")
    return table.reshape(shape)


def numbers(name: str, values: Any) -> Array:
    """Real numbers as float64.

    Raises UsageError naming the argument.
    """
    try:
        table = np.asarray(values)
        if table.dtype.kind in "cmM":
            raise TypeError
        return np.asarray(table, float)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: is not a table of numbers") from None
