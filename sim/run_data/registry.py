"""Declares each solver of constraint rows once: its name, its scratch, and what the engine must know of it.

Each solver's kernel is a file of its own in sim/solvers, which solve.py calls. Kernels read the declarations as tuples
by number (SWEEPING …). This file does not import numba, since the process that starts with warm kernels imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artsim.sim.run_data.scratch import BruteWork, DirectWork, NewtonWork, PropagationWork, SweepWork

NEWTON, PGS, TGS, BLOCK_GS, PROPAGATION, DIRECT, JACOBI, BRUTE = range(8)  # Inputs.solver


class Solver(NamedTuple):
    """What the engine must know of a solver besides its kernel. Every solver takes every kind of row."""

    number: int
    work: tuple[type[Any], ...]  # its scratch; solvers that share it share their entry
    sweeping: bool = False  # as in PhysX: all drives are rows, springs are implicit, errors are corrected at once
    mean_velocity: bool = False  # positions move with the mean velocity of its sweeps
    mass_matrix: bool = True  # M̂ is formed
    exact: bool = False  # solves as newton does, which packs may use in its place where there are no rows
    packs: bool = False  # supports packs of robots


SOLVERS: dict[str, Solver] = {
    "newton": Solver(NEWTON, (NewtonWork,), packs=True),
    "pgs": Solver(PGS, (SweepWork,), sweeping=True),
    "tgs": Solver(TGS, (SweepWork,), sweeping=True, mean_velocity=True),
    "block-gs": Solver(BLOCK_GS, (SweepWork,), sweeping=True),
    "propagation": Solver(PROPAGATION, (NewtonWork, PropagationWork), mass_matrix=False, exact=True),
    "direct": Solver(DIRECT, (NewtonWork, DirectWork), mass_matrix=False, exact=True),
    "jacobi": Solver(JACOBI, (SweepWork,), sweeping=True),
    "brute": Solver(BRUTE, (BruteWork,), exact=True),
}
"""The solvers by their names in --solver."""

_IN_ORDER = tuple(sorted(SOLVERS.values(), key=lambda solver: solver.number))
SWEEPING = tuple(solver.sweeping for solver in _IN_ORDER)
MEAN_VELOCITY = tuple(solver.mean_velocity for solver in _IN_ORDER)
