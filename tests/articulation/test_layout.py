"""Layouts of sparse matrices of dofs, beside dense matrices with the same entries."""

from __future__ import annotations

import numpy as np
import pytest

from artsim.sim.articulation.compile_model import _elimination_tree
from artsim.sim.quantities.compute_records import EMPTY_BLOCK, WIDTH, matrix_entries


def random_tree(random: np.random.Generator, count: int) -> np.ndarray:
    """Parents of dofs, -1 for roots; long chains and branches."""
    near = random.random(count) < 0.5
    return np.array([k - 1 if near[k] else random.integers(-1, k) for k in range(count)], np.int64)


def above(parent: np.ndarray, k: int) -> list[int]:
    """k and the dofs above it."""
    found = []
    while k >= 0:
        found.append(k)
        k = int(parent[k])
    return found


@pytest.mark.parametrize("seed", range(300))
def test_the_elimination_tree_is_that_of_the_filled_matrix(seed: int) -> None:
    """GᵀMG of dofs that are moved by others, eliminated entry by entry from the last row."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 15))
    parent = random_tree(random, count)
    leads = random.random(count) < 0.6
    leads[random.integers(count)] = True
    independent = np.flatnonzero(leads)
    moved = np.array(
        [np.searchsorted(independent, k) if leads[k] else random.integers(-1, len(independent)) for k in range(count)]
    )
    filled = np.zeros((len(independent), len(independent)), bool)
    for k in range(count):
        rows = [moved[j] for j in above(parent, k) if moved[j] >= 0]
        if moved[k] >= 0:
            filled[moved[k], rows] = filled[rows, moved[k]] = True
    tree = np.full(len(independent), -1)
    for k in range(len(independent) - 1, -1, -1):
        before = np.flatnonzero(filled[k, :k])
        filled[np.ix_(before, before)] = True
        tree[k] = before[-1] if len(before) else -1
    assert _elimination_tree(parent, moved, len(independent)) == tree.tolist()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_entries_of_a_symmetric_matrix(seed: int, packed: bool) -> None:
    """Each place has the entry of the lower triangle that it repeats; empty blocks of places are marked."""
    random = np.random.default_rng(seed)
    count = int(random.integers(0, 40))
    parent = random_tree(random, count) if seed % 3 else None
    entries = matrix_entries(parent, count, packed)
    places = [(i, j) for i in range(count) for j in range(i + 1 if packed else count)]
    assert len(entries) == len(places)
    for at, (i, j) in enumerate(places):
        high, low = max(i, j), min(i, j)
        there = parent is None or low in above(parent, high)
        block = at // WIDTH * WIDTH
        empty = block + WIDTH <= len(places) and (entries[block + 1 : block + WIDTH] < 0).all()
        if there:
            assert entries[at] == high * count + low
        elif at == block and empty:
            assert entries[at] == EMPTY_BLOCK
        else:
            assert entries[at] == -1
