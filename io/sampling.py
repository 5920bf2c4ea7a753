"""Configurations drawn at random, the same bytes for any range of rows, chunk, shard or number of threads.

Rows are drawn in virtual blocks of 4096: block b of input k comes from numpy's Philox with key (seed, b) and counter
(0, 0, 0, k), so no draw depends on another block or input. A block that is asked for in part is drawn whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Labels, Model
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.catalogue import INPUTS

BLOCK = 4096  # rows; part of what a seed means
UNIFORM, NORMAL = "uniform-limits", "normal"
DISTRIBUTIONS = (UNIFORM, NORMAL)
_GROUP = 256  # rows that one pass of scaling takes: its tables stay in the innermost cache
_NO_LIMIT = 1e60  # files write the largest number they know for none
_SIGMAS = 6.0  # a normal coordinate's range in standard deviations


def open_samples(
    model: Model,
    labels: Labels,
    needed: Sequence[str],
    links: Sequence[str],
    *,
    rows: int,
    seed: int,
    distribution: str = UNIFORM,
    velocity: float = 0.0,
    acceleration: float = 0.0,
    torque: float = 0.0,
    wrench: float = 0.0,
) -> Samples:
    """Random rows of the needed inputs, and of those whose scale is not 0.

    uniform-limits: each coordinate uniform within its limits; ±π [rad] or ±1 [m] where it has none, π or 1 m from the
    one where it has one; rotations of ball and free joints uniform over all (w ≥ 0). normal: about the middle of that
    range, a sixth of it as standard deviation, clipped to it; rotations uniform. Followers of hard couplings are where
    their leaders put them; where the coupling is affine, leaders stay where the followers keep their limits, if there
    is such a place. Other inputs: uniform in ± their scale, or normal with it as standard deviation, in the unit of
    each entry; entries of followers too (reduced quantities do not use them).

    Args:
        links: the links that a wrench's rows count.
        seed: 0 … 2⁶⁴ - 1.

    Raises UsageError: an unknown distribution; rows, seed or a scale that is negative, not finite or too large.
    """
    if distribution not in DISTRIBUTIONS:
        raise UsageError(f"distribution {distribution!r} is not known{nearest(distribution, DISTRIBUTIONS)}")
    if not 0 <= rows < 2**53:
        raise UsageError(f"{rows} samples: want 0 … 2^53")
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed {seed}: want 0 … 2^64 - 1")
    scales = {"qvel": velocity, "qacc": acceleration, "tau": torque, "wrench": wrench}
    for name, scale in scales.items():
        if not 0 <= scale <= 1e60:  # False for nan
            raise UsageError(f"scale {scale} of {name}: want 0 or more, at most 1e60")
    return Samples(model, labels, needed, len(links), rows, seed, distribution, scales)


class Samples:
    """A Source of drawn rows: see `open_samples`."""

    threads = True  # a block is drawn by itself; the one that is kept changes hands whole

    def __init__(
        self,
        model: Model,
        labels: Labels,
        needed: Sequence[str],
        links: int,
        rows: int,
        seed: int,
        distribution: str,
        scales: Mapping[str, float],
    ) -> None:
        self.rows = rows
        self.inputs = tuple(name for name in INPUTS if name == "qpos" or name in needed or scales[name] > 0)
        self.identity: dict[str, Any] = {
            "kind": "samples",
            "rows": rows,
            "seed": seed,
            "distribution": distribution,
            "scales": {name: float(scale) for name, scale in scales.items() if name in self.inputs},
            "inputs": list(self.inputs),
        }
        nv = len(labels.dofs)
        widths = {"qvel": nv, "qacc": nv, "tau": nv, "wrench": 6 * links}
        normal = distribution == NORMAL
        self._streams: dict[str, Stream] = {}
        for number, name in enumerate(INPUTS):
            if name == "qpos":
                self._streams[name] = _Coordinates(seed, number, normal, model)
            elif name in self.inputs:
                # six standard deviations are the width of a normal one's range
                end = np.full(widths[name], scales[name] * (_SIGMAS / 2 if normal else 1.0))
                self._streams[name] = Stream(seed, number, normal, -end, end)

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        """Rows start … stop into out[name][: stop - start] (float64, C order) of every input drawn."""
        for name, stream in self._streams.items():
            if name in out:
                stream.read(start, stop, out[name][: stop - start].reshape(stop - start, stream.width))

    def close(self) -> None:
        """Nothing is open."""


class Stream:
    """One input's rows of independent entries: uniform in lower … upper, or normal with six sigmas between them."""

    def __init__(self, seed: int, number: int, normal: bool, lower: Array, upper: Array) -> None:
        self.width = lower.size
        self._seed, self._number, self._normal = seed, number, normal
        offset = (lower + upper) / 2 if normal else lower
        factor = (upper - lower) / _SIGMAS if normal else upper - lower
        self._factor, self._offset = (np.tile(values, _GROUP) for values in (factor, offset))
        self._partial: tuple[int, Array] | None = None  # the last block of which only a part was asked for

    def read(self, start: int, stop: int, into: Array) -> None:
        """Whole blocks straight into `into`, parts of blocks by way of a block kept for the next call."""
        row = start
        while row < stop:
            block, first = divmod(row, BLOCK)
            count = min(BLOCK - first, stop - row)
            rows = into[row - start : row - start + count]
            if count == BLOCK:
                self.draw(block, rows)
            else:
                rows[:] = self._kept(block)[first : first + count]
            row += count

    def _kept(self, block: int) -> Array:
        kept = self._partial
        if kept is None or kept[0] != block:
            kept = block, np.empty((BLOCK, self.width))
            self.draw(*kept)
            self._partial = kept
        return kept[1]

    def draw(self, block: int, rows: Array) -> None:
        """A whole block (BLOCK, width)."""
        if self.width:
            self.entries(self.generator(block), rows)

    def generator(self, block: int) -> np.random.Generator:
        key = np.array([self._seed, block], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, self._number], np.uint64)))

    def entries(self, generator: np.random.Generator, rows: Array) -> None:
        """Numbers in [0, 1) or normal ones, scaled in place, 256 rows at a time."""
        if not self._factor.any():
            rows[:] = self._offset[: self.width]
            return
        if self._normal:
            generator.standard_normal(out=rows)
        else:
            generator.random(out=rows)
        for group in rows.reshape(-1, _GROUP * self.width):
            group *= self._factor
            group += self._offset


class _Coordinates(Stream):
    """Rows of qpos: within limits, rotations uniform, followers where their leaders put them."""

    def __init__(self, seed: int, number: int, normal: bool, model: Model) -> None:
        lower, upper = _ranges(model)
        super().__init__(seed, number, normal, lower, upper)
        self._ends = (np.tile(lower, _GROUP), np.tile(upper, _GROUP)) if normal else None
        starts = model.body_coord[:-1]
        self._quaternions = [
            *(int(coord) for coord in starts[model.joint_type == BALL]),
            *(int(coord) + 3 for coord in starts[model.joint_type == FREE]),
        ]
        self._couplings = _couplings(model)

    def entries(self, generator: np.random.Generator, rows: Array) -> None:
        super().entries(generator, rows)
        if self._ends is not None:
            for group in rows.reshape(-1, _GROUP * self.width):
                np.clip(group, *self._ends, out=group)
        for first in self._quaternions:
            rows[:, first : first + 4] = _rotations(generator)
        for follower, leader, p in self._couplings:
            x = rows[:, leader] if leader >= 0 else 0.0
            rows[:, follower] = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))


def _rotations(generator: np.random.Generator) -> Array:
    """Quaternions (BLOCK, 4), uniform over all rotations: directions of normal vectors, w ≥ 0."""
    entries = generator.standard_normal((BLOCK, 4))
    entries *= np.copysign(1.0, entries[:, :1]) / np.sqrt(np.einsum("rk,rk->r", entries, entries))[:, None]
    return entries


def _couplings(model: Model) -> list[tuple[int, int, list[float]]]:
    """Follower's coordinate, leader's or -1, and polynomial; leaders first."""
    table = zip(model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True)
    return [(int(model.dof_coord[f]), int(model.dof_coord[l]) if l >= 0 else -1, p.tolist()) for f, l, p in table]


def _ranges(model: Model) -> tuple[Array, Array]:
    """Lower and upper end (nq,) of each coordinate; what they are for a quaternion does not matter."""
    low, high = _limits(model)
    lower, upper = -np.ones(model.body_coord[-1]), np.ones(model.body_coord[-1])
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0:
            reach = 1.0 if model.dof_linear[dof] else math.pi
            a, b = float(low[dof]), float(high[dof])
            if math.isinf(a) and math.isinf(b):
                a, b = -reach, reach
            lower[coord] = b - reach if math.isinf(a) else a
            upper[coord] = a + reach if math.isinf(b) else b
    return lower, upper


def _limits(model: Model) -> tuple[Array, Array]:
    """Limits (nv,), narrowed for leaders so that affine followers keep theirs; last followers first."""
    low = np.where(model.lower < -_NO_LIMIT, -math.inf, model.lower)
    high = np.where(model.upper > _NO_LIMIT, math.inf, model.upper)
    for c in reversed(range(len(model.coupling_follower))):
        f, l, p = model.coupling_follower[c], model.coupling_leader[c], model.coupling_polynomial[c]
        if l >= 0 and p[1] and not p[2:].any():
            ends = sorted(((low[f] - p[0]) / p[1], (high[f] - p[0]) / p[1]))
            a, b = max(low[l], ends[0]), min(high[l], ends[1])
            if a <= b:
                low[l], high[l] = a, b
    return low, high
