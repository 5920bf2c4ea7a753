"""Kernels that compile in a second, and some that break the rules (test_jit.py; entries in small_entries.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artsim.sim.jit import njit
from artsim.sim.recordtype import run_entry
from artsim.sim.sincos import sincos


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
