"""Friction problems in the FCLIB format through the solvers: `python tests/benchmarks/friction.py [FOLDER]`.

The problem in contact space: u = W r + q with r in the friction cones, u + μ |u_t| n in their duals, both at right
angles (Acary and Brémond 2018). Residual: |r - P(r - ρ (u + μ |u_t| n))| / |q| with one ρ = n / trace W for all.

A problem with a diagonal M goes to the solver as bodies of six dofs; of others, and of those that give W alone, the
solver gets a factor of W. A large W that is given alone is taken as W + s 1 with a small s, whose Cholesky factor is
sparse, and solved with q - s r, r of the round before, until r stays; its time is that of all rounds. Velocities are
scaled to |q| ≤ 1.

newton, the default, takes convex steps, then steps on Coulomb's law, and sweeps of nsgs where these turn in circles.
The solvers that sweep (nsgs by itself, pgs, tgs, block-gs) get --sweeps in a round. All start at λ = 0. propagation and
direct are newton's linear algebra over a robot's joints, of which these problems have none.

FOLDER: by default `friction` beside ARTSIM_CORPUS. With `--prototype FILE`, a module that has
`proximal_newton(W, q, mu, r)`, its residual and time are in the table too. Times: the least of several calls.

Last come problems made here, W of rank 60 % with contacts scaled over 1e6: newton gets two different factors of W, and
the table has both residuals, for these with ρ contact by contact, and how far the two answers are apart, each contact
in its own scale.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.conftest import corpus
from tests.solvers.newton_kernels import Bound, Case, Real, bound, case
from tests.solvers.sweep_kernels import SOLVERS, swept

ROUNDS, LEAST, LARGE = 20, 1e-9, 300
SWEPT_ROUNDS = 3  # of solvers that sweep, which start each from λ = 0


class Contacts(NamedTuple):
    """W (3 nc, 3 nc), q (3 nc,), μ (nc,); the same as a case for newton, its tree, and s."""

    W: Real
    q: Real
    mu: Real
    case: Case
    parent: np.ndarray[Any, np.dtype[np.int64]]
    shift: float


def matrix(group: Any) -> Any:
    """A sparse matrix of an FCLIB file: by columns, by rows, or by entries."""
    shape, count = (int(group["m"][0]), int(group["n"][0])), int(group["nz"][0])
    if count < 0:
        kind = sp.csc_matrix if count == -1 else sp.csr_matrix
        return kind((group["x"][:], group["i"][:], group["p"][:]), shape).tocsc()
    return sp.coo_matrix((group["x"][:count], (group["i"][:count], group["p"][:count])), shape).tocsc()


def read(path: Path) -> Contacts | None:
    """The problem of a file; None for other kinds (rolling friction)."""
    with h5py.File(path) as file:
        if "fclib_local" in file:
            group = file["fclib_local"]
            W, q, mu = matrix(group["W"]).toarray(), group["vectors/q"][:], group["vectors/mu"][:]
            scale = np.abs(q).max()
            return factored((W + W.T) / 2, q / scale, mu)
        if "fclib_global" not in file:
            return None
        group = file["fclib_global"]
        M, H, mu = matrix(group["M"]), matrix(group["H"]), group["vectors/mu"][:]
        f, w = group["vectors/f"][:], group["vectors/w"][:]
    lu = sla.splu(M)
    W, q = H.T @ lu.solve(H.toarray()), H.T @ lu.solve(f) + w
    scale = np.abs(q).max()
    if M.nnz > M.shape[0]:
        return factored((W + W.T) / 2, q / scale, mu)
    touched = np.repeat(np.abs(H.toarray()).reshape(-1, 6, H.shape[1]).max(axis=(1, 2)) > 0, 6)
    inertia, J = M.diagonal()[touched], H.toarray()[touched].T
    c = contacts_case(np.diag(inertia), J, f[touched] / scale, w / scale, mu)
    return Contacts(W, q / scale, mu, c, blocks(len(inertia), 6), 0.0)


def contacts_case(inertia: Real, J: Real, force: Real, bias: Real, mu: Real) -> Case:
    """Cones of three rows each, from rest."""
    cone, slope = np.tile([3, -1, -1], len(mu)), np.kron(mu, [1.0, 0.0, 0.0])
    return case(inertia, J, np.zeros(len(force)), force, bias=bias, cone=cone, slope=slope)


def blocks(n: int, size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """M̂'s tree of bodies of so many dofs."""
    parent = np.arange(n) - 1
    parent[::size] = -1
    return parent


def factored(W: Real, q: Real, mu: Real) -> Contacts:
    """W = J M̂⁻¹ Jᵀ with M̂ a multiple of 1: J by eigenvectors, or sparse by Cholesky's factor of W + s 1."""
    values, vectors = np.linalg.eigh(W)
    shift = 0.0
    if len(q) > LARGE:
        shift = 1e-6 * values.max() - min(values.min(), 0.0)
        J = np.linalg.cholesky(W + shift * np.eye(len(q)))
        J[np.abs(J) < 1e-14 * np.abs(J).max()] = 0.0
        parent = blocks(len(q), 3)
    else:
        kept = values > 1e-11 * values.max()
        J = vectors[:, kept] * np.sqrt(values[kept])
        parent = blocks(J.shape[1], J.shape[1])
    size = np.abs(J).max()
    inertia = np.eye(J.shape[1]) / size**2
    return Contacts(W, q, mu, contacts_case(inertia, J / size, np.zeros(J.shape[1]), q, mu), parent, shift)


def residual(W: Real, q: Real, mu: Real, r: Real) -> float:
    """|r - P(r - ρ û)| / |q|."""
    rho = len(q) / np.trace(W)
    u = (W @ r + q).reshape(-1, 3)
    u[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    z = r.reshape(-1, 3) - rho * u
    length = np.linalg.norm(z[:, 1:], axis=1)
    along = np.maximum(z[:, 0] + mu * length, 0.0) / (1.0 + mu * mu)  # on the cone's edge
    along = np.where(mu * length <= -z[:, 0], 0.0, along)
    inside = length <= mu * z[:, 0]
    across = np.where(inside, 1.0, mu * along / np.where(length > 0.0, length, 1.0))
    p = np.column_stack([np.where(inside, z[:, 0], along), z[:, 1:] * across[:, None]])
    return float(np.linalg.norm(r - p.ravel()) / np.linalg.norm(q))


def own_residual(problem: Contacts, r: Real) -> float:
    """The same with ρ contact by contact, each in units of its own velocity and impulse: the largest."""
    scale = own_scales(problem.W)
    W = problem.W / np.outer(scale, scale)
    return residual(W, problem.q / scale, problem.mu, r * scale)


def own_scales(W: Real) -> Real:
    """The root of what an impulse does to its own contact, for every row."""
    return np.repeat(np.sqrt(np.diag(W).reshape(-1, 3).mean(axis=1)), 3)


def solver_of(problem: Contacts, b: Bound, rounds: int) -> Callable[[], tuple[Real, int, float]]:
    """A call that solves it: r, Newton steps or sweeps, seconds."""

    def solve() -> tuple[Real, int, float]:
        b.restore()
        r, steps, seconds = np.zeros(len(problem.q)), 0, 0.0
        for _ in range(rounds if problem.shift else 1):
            if problem.shift:
                b.restore()
                b.rows.bias[:] = problem.q - problem.shift * r
                b.rows.impulse[:] = r
            start = time.perf_counter()
            b.call()
            seconds += time.perf_counter() - start
            steps += int(b.rows.report[0])
            r = b.rows.impulse.copy()
            if residual(problem.W, problem.q, problem.mu, r) < LEAST:
                break
        return r, steps, seconds

    return solve


def ill_scaled(seed: int, count: int = 20) -> tuple[Contacts, Contacts]:
    """So many contacts of 0.6 times as many dofs as rows, with sizes from 1 to 1e3, from two factors of one W.

    q = J v for velocities v: -v brings all to rest, so that the problem has a solution.
    """
    draw = np.random.default_rng(seed)
    rows, dofs = 3 * count, 9 * count // 5
    size = np.repeat(10.0 ** np.linspace(0.0, 3.0, count)[draw.permutation(count)], 3)
    J = draw.normal(size=(rows, dofs)) * size[:, None]
    q, mu = J @ draw.normal(size=dofs), draw.uniform(0.2, 1.0, count)
    q /= np.abs(q).max()
    W = J @ J.T
    scale = own_scales(W)
    values, vectors = np.linalg.eigh(W / np.outer(scale, scale))
    first = scale[:, None] * vectors[:, -dofs:] * np.sqrt(values[-dofs:])
    R = np.tril(draw.normal(size=(dofs, dofs)) * 0.3, -1) + np.diag(draw.uniform(0.5, 2.0, dofs))
    parent, still = blocks(dofs, dofs), np.zeros(dofs)
    one = contacts_case(np.eye(dofs), first, still, q, mu)
    two = contacts_case(R @ R.T, J @ R.T, still, q, mu)
    return Contacts(W, q, mu, one, parent, 0.0), Contacts(W, q, mu, two, parent, 0.0)


def compare_factors(seed: int) -> None:
    """A line of the table for one of these problems."""
    problems = ill_scaled(seed)
    found = [solver_of(problem, bound(problem.case, parent=problem.parent), 1)() for problem in problems]
    scale = own_scales(problems[0].W)
    r, other = found[0][0] * scale, found[1][0] * scale
    W = problems[0].W / np.outer(scale, scale)
    u, apart = W @ r + problems[0].q / scale, W @ (r - other)
    left = [own_residual(problem, result[0]) for problem, result in zip(problems, found, strict=True)]
    print(
        f"    seed {seed}: residuals {left[0]:.1e} {left[1]:.1e}, steps {found[0][1]} {found[1][1]}, "
        f"velocities differ by {np.abs(apart).max() / max(np.abs(u).max(), np.abs(problems[0].q / scale).max()):.1e}, "
        f"impulses by {np.abs(r - other).max() / np.abs(r).max():.1e}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = corpus()
    parser.add_argument("folder", nargs="?", type=Path, default=models and models.parent / "friction")
    parser.add_argument("--prototype", type=Path)
    parser.add_argument("--sweeps", type=int, default=1000)
    options = parser.parse_args()
    if options.folder is None or not options.folder.is_dir():
        sys.exit("no folder of FCLIB problems")
    for path in sorted(options.folder.glob("*.hdf5")):
        problem = read(path)
        if problem is None:
            continue
        print(f"{path.stem[:60]}: {len(problem.mu)} contacts{beside_prototype(problem, options.prototype)}")
        report(problem, "newton", solver_of(problem, bound(problem.case, parent=problem.parent), ROUNDS), 4)
        for name in SOLVERS:
            b = swept(name, problem.case, problem.parent, options.sweeps)
            report(problem, name, solver_of(problem, b, SWEPT_ROUNDS), 2)
    print("W of rank 60 %, scaled over 1e6, from two factors")
    for seed in range(8):
        compare_factors(seed)


def report(problem: Contacts, name: str, solve: Callable[[], tuple[Real, int, float]], calls: int) -> None:
    """A line of the table."""
    runs = [solve() for _ in range(calls)]
    r, steps, _ = runs[-1]
    seconds = min(run[2] for run in runs[1:])
    found = residual(problem.W, problem.q, problem.mu, r)
    print(
        f"    {name:10s} {found:.1e}  {steps:6d} {'steps' if name == 'newton' else 'sweeps'} {1e3 * seconds:10.2f} ms"
    )
    sys.stdout.flush()


def beside_prototype(problem: Contacts, path: Path | None) -> str:
    """The prototype's residual and time."""
    if path is None:
        return ""
    spec = importlib.util.spec_from_file_location("prototype", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    start = time.perf_counter()
    r, _, steps = module.proximal_newton(problem.W, problem.q, problem.mu, np.zeros(len(problem.q)))
    seconds = time.perf_counter() - start
    found = residual(problem.W, problem.q, problem.mu, r)
    return f"   prototype {found:.1e}  {steps:4d} steps {1e3 * seconds:8.2f} ms"


if __name__ == "__main__":
    main()
