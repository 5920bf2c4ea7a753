"""Random configurations, the input of `batch --samples`; a row's bytes depend only on the seed and its number.

They do not depend on the range requested, chunk, shard or number of threads: rows are drawn in virtual blocks of 4096,
and block b of input k comes from numpy's Philox with key (seed, b) and counter (0, 0, 0, k), so that no draw depends on
another block or input. A block is drawn whole even if only a part of it is requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.sim.articulation.model import BALL, FREE, Labels, Model
from artsim.sim.articulation.narrowed_limits import affinely_narrowed, finite_range
from artsim.sim.articulation.turn_limits import follow_axes, within_turns
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.catalogue import INPUTS

BLOCK = 4096  # rows; changing it changes the rows that a seed gives
UNIFORM, NORMAL = "uniform-limits", "normal"
DISTRIBUTIONS = (UNIFORM, NORMAL)
_GROUP = 256  # rows scaled in one pass: its tables stay in the L1 cache
_SIGMAS = 6.0  # width of a normal coordinate's range [standard deviations]


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
    """Open random rows of the needed inputs and of those with a non-zero scale.

    uniform-limits: each coordinate is uniform within its limits; a coordinate without limits is drawn from ±π [rad] or
    ±1 [m], one with a single limit from the π or 1 m beside it. Rotations of ball and free joints are uniform over
    SO(3) (w ≥ 0), or within their limits of swing and twist. normal: the mean is the middle of that range and the
    standard deviation a sixth of it, clipped to the range; rotations are uniform. Followers of hard couplings, and of
    axes of balls, are computed from their leaders; if the coupling is affine, the leader's range is narrowed so that
    the follower keeps its limits, where that is possible. Other inputs are uniform in ± their scale, or normal with the
    scale as standard deviation, in the unit of each entry; entries of followers are drawn too (reduced quantities do
    not use them).

    Args:
        links: the links to which the rows of a wrench refer.
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
    """A Source (configurations.py) of random rows; see `open_samples`."""

    threads = True  # blocks are independent; the cached one is replaced in a single assignment

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
                # the range of a normal entry is six standard deviations wide
                end = np.full(widths[name], scales[name] * (_SIGMAS / 2 if normal else 1.0))
                self._streams[name] = Stream(seed, number, normal, -end, end)

    def read(self, start: int, stop: int, out: Mapping[str, Array]) -> None:
        """Draw rows start … stop of every input in `out` into out[name][: stop - start] (float64, C order)."""
        for name, stream in self._streams.items():
            if name in out:
                stream.read(start, stop, out[name][: stop - start].reshape(stop - start, stream.width))

    def close(self) -> None:
        """Do nothing: no file is open."""


class Stream:
    """Rows of one input, with independent entries: uniform in lower … upper, or normal with upper - lower = 6 σ."""

    def __init__(self, seed: int, number: int, normal: bool, lower: Array, upper: Array) -> None:
        self.width = lower.size
        self._seed, self._number, self._normal = seed, number, normal
        offset = (lower + upper) / 2 if normal else lower
        factor = (upper - lower) / _SIGMAS if normal else upper - lower
        self._factor, self._offset = (np.tile(values, _GROUP) for values in (factor, offset))
        self._partial: tuple[int, Array] | None = None  # the last block requested in part

    def read(self, start: int, stop: int, into: Array) -> None:
        """Draw whole blocks into `into` directly, and parts of blocks through a block kept for the next call."""
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
        """Draw a whole block into `rows` (BLOCK, width)."""
        if self.width:
            self.entries(self.generator(block), rows)

    def generator(self, block: int) -> np.random.Generator:
        key = np.array([self._seed, block], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, self._number], np.uint64)))

    def entries(self, generator: np.random.Generator, rows: Array) -> None:
        """Draw uniform or normal numbers and scale them in place, 256 rows at a time."""
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
    """Rows of qpos: within limits, rotations uniform, followers computed from their leaders."""

    def __init__(self, seed: int, number: int, normal: bool, model: Model) -> None:
        lower, upper = _ranges(model)
        super().__init__(seed, number, normal, lower, upper)
        self._ends = (np.tile(lower, _GROUP), np.tile(upper, _GROUP)) if normal else None
        starts, dofs, free = model.body_coord[:-1], model.body_dof[:-1], model.joint_type == FREE
        self._quaternions = [
            *zip(starts[model.joint_type == BALL].tolist(), dofs[model.joint_type == BALL].tolist(), strict=True),
            *zip((starts[free] + 3).tolist(), (dofs[free] + 3).tolist(), strict=True),
        ]
        self._model = model
        self._couplings = _couplings(model)

    def entries(self, generator: np.random.Generator, rows: Array) -> None:
        super().entries(generator, rows)
        if self._ends is not None:
            for group in rows.reshape(-1, _GROUP * self.width):
                np.clip(group, *self._ends, out=group)
        for first, dof in self._quaternions:
            rows[:, first : first + 4] = within_turns(self._model, dof, _rotations(generator))
        follow_axes(self._model, rows)
        for follower, leader, p in self._couplings:
            x = rows[:, leader] if leader >= 0 else 0.0
            rows[:, follower] = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))


def _rotations(generator: np.random.Generator) -> Array:
    """Quaternions (BLOCK, 4), uniform over SO(3): normalised Gaussian vectors, w ≥ 0."""
    entries = generator.standard_normal((BLOCK, 4))
    entries *= np.copysign(1.0, entries[:, :1]) / np.sqrt(np.einsum("rk,rk->r", entries, entries))[:, None]
    return entries


def _couplings(model: Model) -> list[tuple[int, int, list[float]]]:
    """Per coupling: follower coordinate, leader coordinate or -1, polynomial; leaders come before their followers."""
    table = zip(model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True)
    return [(int(model.dof_coord[f]), int(model.dof_coord[l]) if l >= 0 else -1, p.tolist()) for f, l, p in table]


def _ranges(model: Model) -> tuple[Array, Array]:
    """Lower and upper end (nq,) of each coordinate's range; those of quaternion entries are not used."""
    low, high = affinely_narrowed(model)
    lower, upper = -np.ones(model.body_coord[-1]), np.ones(model.body_coord[-1])
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0:
            lower[coord], upper[coord] = finite_range(float(low[dof]), float(high[dof]), bool(model.dof_linear[dof]))
    return lower, upper
