"""Selects a run's compiled entries by integrator, solver and the features in use. Does not import numba."""

from __future__ import annotations

from typing import Any

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import with_members
from artsim.sim.geometry.contacts import Bounces, ContactBundle
from artsim.sim.run_data.implicit_work import ImplicitWork
from artsim.sim.run_data.integration import Integrator
from artsim.sim.run_data.link_rules import RuleBundle
from artsim.sim.run_data.registry import SOLVERS, Solver
from artsim.sim.run_data.run_records import CLOCKED_RUN, UNCLOCKED_RUN, Rows
from artsim.sim.run_data.scratch import CALL_ALONE, MEMBERS, NewtonWork, SolverBundle, SolverCall
from artsim.sim.run_data.stage_slopes import StageSlopes

_OF_NEWTON = ("newton", "fallback")


def solver_of(integrator: Integrator, solver: Solver) -> Solver:
    """The solver that solves an integrator's steps when the user chooses `solver`."""
    return SOLVERS[integrator.solver] if integrator.solver else solver


def solver_entry(solver: Solver, whole: bool = True) -> Entry:
    """The kernel of a solver; not `whole`: the form without code for contacts and crowds, if the solver has one."""
    members: dict[str, Any] = {MEMBERS[kind]: kind for kind in solver.work}
    if NewtonWork in solver.work and len(members) > 1:
        members["fallback"] = SolverCall
    bundles = (RobotBundle, UNCLOCKED_RUN, Rows, with_members(SolverBundle, call=SolverCall, **members))
    kernel = solver.kernel if whole or not solver.bare_kernel else solver.bare_kernel
    return Entry(kernel, solver.module, bundles, "".join(f"_{name}" for name in members if name not in _OF_NEWTON))


def beside_entry(equipped: bool, touching: bool) -> Entry:
    """The kernel of the tasks beside steps, for all integrators and solvers."""
    bundles = (
        RobotBundle,
        UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        ContactBundle if touching else None,
    )
    return Entry("take_task", "artsim.sim.stepping.beside", bundles, "_equipped" * equipped + "_touching" * touching)


def simulate_entry(
    equipped: bool,
    touching: bool = False,
    ruled: bool = False,
    *,
    clocked: bool = False,
) -> Entry:
    """The kernel of the loop over steps, for all integrators, pruned of equipment, contacts and rules that the run
    lacks; `clocked`: with marks between the phases of a step.
    """
    bundles = (
        RobotBundle,
        CLOCKED_RUN if clocked else UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        with_members(ContactBundle, bounces=Bounces) if touching else None,
        RuleBundle if ruled else None,
        CALL_ALONE,
    )
    variant = "_equipped" * equipped + "_touching" * touching + "_ruled" * ruled + "_clocked" * clocked
    return Entry("simulate", "artsim.sim.stepping.step", bundles, variant)


def integrator_entry(
    integrator: Integrator, equipped: bool, ruled: bool = False, *, clocked: bool = False
) -> Entry | None:
    """The kernel of an integrator with steps of its own, pruned as simulate_entry is; None for others."""
    if not integrator.kernel:
        return None
    bundles = (
        RobotBundle,
        CLOCKED_RUN if clocked else UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        RuleBundle if ruled else None,
        CALL_ALONE,
        *([ImplicitWork] if integrator.implicit else []),
    )
    variant = "_equipped" * equipped + "_ruled" * ruled + "_clocked" * clocked
    return Entry(integrator.kernel, integrator.module, bundles, variant)


def smooth_entry(equipped: bool, ruled: bool = False) -> Entry:
    """The kernel of steps with an error of their own, pruned as simulate_entry is."""
    bundles = (
        RobotBundle,
        UNCLOCKED_RUN,
        Rows,
        EquipmentBundle if equipped else None,
        RuleBundle if ruled else None,
        CALL_ALONE,
        StageSlopes,
    )
    variant = "_equipped" * equipped + "_ruled" * ruled
    return Entry("dormand_prince", "artsim.sim.stepping.dormand_prince", bundles, variant)
