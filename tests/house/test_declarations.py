"""The tables in which row kinds, solvers and integrators are declared say something of every one of them."""

from __future__ import annotations

import ast

import pytest

from artsim.sim.constraints import kinds
from artsim.sim.run_data import run_records as run
from artsim.sim.run_data.integration import DEFAULT, INTEGRATORS, ONE_SIDED_OPTIONS, SEMI_IMPLICIT_EULER, asked_for
from artsim.sim.run_data.registry import SOLVERS, SWEEPING
from artsim.sim.run_data.run_records import NOT_CONVEX
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT


def names_ending(ending: str) -> dict[str, int]:
    """Constants of kinds.py by name."""
    return {name: number for name, number in vars(kinds).items() if name.endswith(ending) and name.isupper()}


def test_every_row_kind_is_declared() -> None:
    numbers = names_ending("_ROW")
    assert sorted(numbers.values()) == sorted(kinds.KINDS) == list(range(len(numbers)))
    turns = set(names_ending("_TURN").values())
    places = [kind.place for kind in kinds.KINDS.values() if kind.turn == kinds.JOINT_TURN]
    for kind in kinds.KINDS.values():
        assert kind.turn in turns and kind.static_turn in {-1, *turns}
        assert (kind.place > 0) == (kind.turn == kinds.JOINT_TURN)
    assert len(set(places)) == len(places)


def test_every_joint_force_is_a_recorded_variable() -> None:
    for name, number in vars(kinds).items():
        if name.startswith("TAU_"):
            assert name.lower() in run.RECORDED
            assert number in {kind.tau for kind in kinds.KINDS.values()}


def test_every_solver_is_declared_once_and_has_a_kernel() -> None:
    assert [solver.number for solver in SOLVERS.values()] == list(range(len(SOLVERS)))
    assert len(SWEEPING) == len(SOLVERS)
    for solver in SOLVERS.values():
        source = (ROOT / "/".join(solver.module.split(".")[1:])).with_suffix(".py").read_text()
        kernels = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        for name in {solver.kernel, solver.bare_kernel} - {""}:
            kernel = next(node for node in kernels if node.name == name)
            assert [argument.arg for argument in kernel.args.args] == ["robot", "run", "rows", "solver"]


@pytest.mark.parametrize("name", INTEGRATORS)
def test_every_integrator_has_a_kernel_or_the_semi_implicit_step(name: str) -> None:
    integrator = INTEGRATORS[name]
    if integrator.asked_for:
        assert asked_for(integrator.asked_for, convex=integrator.convex != NOT_CONVEX) is integrator
    if not integrator.kernel:
        assert not integrator.module
        return
    source = (ROOT / "/".join(integrator.module.split(".")[1:])).with_suffix(".py").read_text()
    kernel = next(
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == integrator.kernel
    )
    arguments = [argument.arg for argument in kernel.args.args]
    assert arguments == ["robot", "run", "rows", "equipment", "rules", "solver"] + ["work"] * integrator.implicit


def test_one_of_two_integrators_serves_everything() -> None:
    """The default serves all but sweeping solvers and maximal coordinates, semi-implicit Euler these too."""
    for integrator in (DEFAULT, SEMI_IMPLICIT_EULER):
        assert integrator.one_sided and integrator.wrapped_equalities and integrator.rows_in_packs
        assert not integrator.solver
    assert SEMI_IMPLICIT_EULER.maximal and SEMI_IMPLICIT_EULER.sweeping
    assert all(hasattr(RunConfig(), name) for name in ONE_SIDED_OPTIONS)


def test_tuples_are_in_the_order_of_numbers() -> None:
    assert kinds.TAU[kinds.DRIVE_ROW] == kinds.TAU_DRIVE
    assert kinds.STATIC_TURN[kinds.LOOP_ROW] == kinds.STATIC_LINK_TURN
    assert kinds.STATIC_TURN[kinds.TENDON_ROW] == kinds.TURN[kinds.TENDON_ROW]
