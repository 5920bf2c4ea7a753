"""Declares each solver of constraint rows once: its name, its scratch, and the properties that the engine must know.

Each solver is an entry, which a step reaches by a pointer (solvers/calls.py). Kernels read the declarations as tuples
by number (SWEEPING …). This file does not import numba, since the process that starts with warm kernels imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artsim.sim.run_data.scratch import BruteWork, DirectWork, NewtonWork, PropagationWork, SweepWork

NEWTON, PGS, TGS, BLOCK_GS, PROPAGATION, DIRECT, JACOBI, BRUTE = range(8)  # Inputs.solver


class Solver(NamedTuple):
    """Properties of a solver that the engine must know, besides its kernel. Every solver takes every kind of row."""

    number: int
    work: tuple[type[Any], ...]  # its scratch
    kernel: str
    module: str
    bare_kernel: str = ""  # the kernel of runs without contacts and crowds, if the solver has one
    sweeping: bool = False  # as in PhysX: all drives are rows, springs are implicit, errors are corrected at once
    mean_velocity: bool = False  # positions move with the mean velocity of its sweeps
    mass_matrix: bool = True  # M̂ is formed
    exact: bool = False  # results are newton's, which packs may use in place of this solver in runs without rows
    packs: bool = False  # supports packs of robots


def _sweeping(number: int, name: str, *, mean_velocity: bool = False) -> Solver:
    kernel, module = f"solve_by_{name}", f"artsim.sim.solvers.published.{name}"
    return Solver(number, (SweepWork,), kernel, module, sweeping=True, mean_velocity=mean_velocity)


def _recursive(number: int, work: type[Any]) -> Solver:
    kernel, module = "solve_by_recursions", "artsim.sim.solvers.published.recursions"
    return Solver(number, (NewtonWork, work), kernel, module, mass_matrix=False, exact=True)


SOLVERS: dict[str, Solver] = {
    "newton": Solver(
        *(NEWTON, (NewtonWork,), "solve_alone", "artsim.sim.solvers.alone", "solve_without_contacts"), packs=True
    ),
    "pgs": _sweeping(PGS, "pgs"),
    "tgs": _sweeping(TGS, "tgs", mean_velocity=True),
    "block-gs": _sweeping(BLOCK_GS, "block_gs"),
    "propagation": _recursive(PROPAGATION, PropagationWork),
    "direct": _recursive(DIRECT, DirectWork),
    "jacobi": _sweeping(JACOBI, "jacobi"),
    "brute": Solver(BRUTE, (BruteWork,), "solve_by_brute", "artsim.sim.solvers.published.brute", exact=True),
}
"""The solvers by their names in --solver."""

_IN_ORDER = tuple(sorted(SOLVERS.values(), key=lambda solver: solver.number))
SWEEPING = tuple(solver.sweeping for solver in _IN_ORDER)
MEAN_VELOCITY = tuple(solver.mean_velocity for solver in _IN_ORDER)
