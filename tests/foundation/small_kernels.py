"""Kernels that compile in a second, and some that break the rules (test_jit.py; entries in small_entries.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.sincos import sincos


@njit
def sines(t: Any) -> None:
    """Sine and cosine of every angle, times a constant."""
    for i in range(t.angle.shape[0]):
        s, c = sincos(t.angle[i])
        t.sine[i] = s * t.factor[0]
        t.cosine[i] = c * t.factor[0]


@njit
def both(t: Any) -> None:
    """Sine and cosine of one angle by the C library: LLVM asks it for both at once."""
    angle = t.factor[0]
    t.plain[0] = math.sin(angle) + 2.0 * math.cos(angle)


@njit
def allocates(t: Any) -> None:
    """Makes an array: without numba's runtime there is nothing to make it with."""
    scratch = np.zeros(3)
    scratch[0] = t.factor[0]
    t.plain[0] = scratch[0]


@njit
def writes_constant(t: Any) -> None:
    """Writes what the record says is constant."""
    t.factor[0] = 2.0


@njit
def reads_beyond(t: Any) -> None:
    """Reads the element after the last."""
    t.plain[0] = t.factor[t.factor.shape[0]]


@njit
def calls(c: Any) -> None:
    """Runs the entry that c.pointers names."""
    run_entry(c.pointers)


@njit
def uses_members(t: Any, b: Any) -> None:
    """Members of a bundle, in the kernel and in what it calls; what asks for one that is missing does not compile."""
    t.plain[0] = b.table.factor[0] * b.inner.table.angle[1]
    if b.missing is not None:
        t.plain[0] = b.missing.no_such_field[0]
    _follow(t, b.inner)


@njit
def _follow(t: Any, inner: Any) -> None:
    inner_too = inner
    if inner_too.missing is None and inner_too.table is not None:
        t.plain[0] += 1.0
    else:
        t.plain[0] = inner_too.missing.no_such_field[0]
    t.plain[0] += _of_nothing(inner.missing)


@njit
def _of_nothing(missing: Any) -> Any:
    if missing is None:
        return 0.25
    return missing.no_such_field[0]
