"""M̂ = LᵀDL over the trees of an island, L as sparse as these (Featherstone 2008, section 6.5).

The entries of L for a dof and its ancestors stand in work.tree_factor, from work.tree_start on.
"""

from __future__ import annotations

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import Workspace
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import ConstInts1, Reals1
from artsim.sim.run_data.scratch import NewtonWork


@njit
def find_trees(parent: ConstInts1, work: NewtonWork, island: int) -> None:
    """Set work.degree: the root of the tree of each dof of the island; and work.list at a root: the end of its tree's
    dofs."""
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            root = a if parent[a] < 0 else work.degree[parent[a]]
            work.degree[a] = root
            work.list[root] = a + 1


@njit
def factorise_trees(model: Model, data: Workspace, work: NewtonWork, island: int) -> None:
    """Set L in work.tree_factor, and 1 / D in work.tree_pivot, of the trees of the island. O(dofs · depth²)."""
    parent = model.independent_parent
    L = work.tree_factor
    for e in range(work.island_start[island], work.island_start[island + 1]):
        b = work.member[e]
        for a in range(work.block_start[b], work.block_start[b + 1]):
            c, p = a, work.tree_start[a]
            while c >= 0:
                L[p] = data.factor[a, c]
                c, p = parent[c], p + 1
    for e in range(work.island_start[island + 1] - 1, work.island_start[island] - 1, -1):
        b = work.member[e]
        for a in range(work.block_start[b + 1] - 1, work.block_start[b] - 1, -1):
            p = work.tree_start[a]
            work.tree_pivot[a] = 1.0 / L[p]
            i, p = parent[a], p + 1
            while i >= 0:
                factor = L[p] * work.tree_pivot[a]
                j, q, s = i, p, work.tree_start[i]
                while j >= 0:
                    L[s] = L[s] - factor * L[q]
                    j, q, s = parent[j], q + 1, s + 1
                L[p] = factor
                i, p = parent[i], p + 1


@inlined
def fold(parent: ConstInts1, work: NewtonWork, root: int) -> None:
    """work.direction = P L⁻ᵀ work.direction of the tree that begins with a root; P: its work.tree_pivot."""
    for i in range(work.list[root] - 1, root - 1, -1):
        if work.degree[i] == root:
            value = work.direction[i]
            j, p = parent[i], work.tree_start[i] + 1
            while j >= 0:
                work.direction[j] = work.direction[j] - work.tree_factor[p] * value
                j, p = parent[j], p + 1
            work.direction[i] = value * work.tree_pivot[i]


@inlined
def unfold(parent: ConstInts1, work: NewtonWork, root: int, x: Reals1) -> None:
    """x (nu,) = L⁻¹ x of the tree that begins with a root."""
    for i in range(root, work.list[root]):
        if work.degree[i] == root:
            value = x[i]
            j, p = parent[i], work.tree_start[i] + 1
            while j >= 0:
                value = value - work.tree_factor[p] * x[j]
                j, p = parent[j], p + 1
            x[i] = value
