"""Declares each integrator once: its kernel and the features that it supports. Does not import numba.

The step is semi-implicit unless an integrator has steps of its own: a kernel over `(robot, run, rows, equipment, rules,
solver)` that the loops over steps, of one robot and of packs, let do two tasks (stepping/own_steps.py).
"""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.run_data import run_records
from artsim.sim.run_data.run_records import NOT_CONVEX

# options of a run (fields of RunConfig) that add unilateral rows
ONE_SIDED_OPTIONS = ("velocity_limits", "ground", "link_velocity_limit", "com_velocity_limit")


class Integrator(NamedTuple):
    """The features that an integrator supports, by which plan.py refuses runs and notes replacements."""

    name: str  # of --integrator
    kernel: str = ""  # of an integrator with steps of its own; "": its steps are semi-implicit
    module: str = ""
    asked_for: str = ""  # the `integrator` of MJCF files that selects it
    solver: str = ""  # solver of its rows, regardless of --solver; "": the chosen solver
    midway: float = 0.0  # share of a step's change of velocities after which Coriolis and gyroscopic terms act
    one_sided: bool = True  # unilateral rows: limits, friction, contacts, ONE_SIDED_OPTIONS
    wrapped_equalities: bool = True  # hard equalities of tendons that wrap around geoms
    axis_couplings: bool = True  # couplings of axes of balls
    inertial_drives: bool = True  # drives of loops whose gains are accelerations
    compliances: bool = True  # rows of a compliance or erp of their own, weights of the implicit scheme
    maximal: bool = True  # maximal coordinates
    sweeping: bool = True  # sweeping solvers
    convex: int = NOT_CONVEX  # steps of the convex contact law, which others lack (stepping/convex_step.py)
    rows_in_packs: bool = True  # packs of robots with rows, or with forces that are found lane by lane
    implicit: bool = False  # steps of one implicit stage, with scratch of their own (run_data/implicit_work.py)


SEMI_IMPLICIT_EULER = Integrator("semi-implicit-euler")
MIDPOINT = SEMI_IMPLICIT_EULER._replace(name="midpoint", midway=0.5, maximal=False, sweeping=False)
RK4 = Integrator(
    "rk4",
    "rk4",
    "artsim.sim.stepping.rk4",
    asked_for="RK4",
    solver="newton",
    one_sided=False,
    wrapped_equalities=False,
    axis_couplings=False,
    inertial_drives=False,
    compliances=False,
    maximal=False,
    rows_in_packs=False,
)
IMPLICIT_EULER = RK4._replace(
    name="implicit-euler",
    kernel="implicit_step",
    module="artsim.sim.stepping.implicit_steps",
    asked_for="",
    implicit=True,
)
IMPLICIT_MIDPOINT = IMPLICIT_EULER._replace(name="implicit-midpoint")
GENERALIZED_ALPHA = IMPLICIT_EULER._replace(name="generalized-alpha")

EULER = SEMI_IMPLICIT_EULER._replace(
    name="euler", asked_for="Euler", convex=run_records.EULER, maximal=False, sweeping=False
)
IMPLICITFAST = EULER._replace(name="implicitfast", asked_for="implicitfast", convex=run_records.IMPLICITFAST)
RUNGE_KUTTA = EULER._replace(name="runge-kutta", asked_for="RK4", convex=run_records.RUNGE_KUTTA)

DEFAULT = MIDPOINT  # implicit in springs, dampers and drives as MuJoCo's others are
_OWN_STEPS = (RK4, IMPLICIT_MIDPOINT, IMPLICIT_EULER, GENERALIZED_ALPHA)
_ALL = (MIDPOINT, SEMI_IMPLICIT_EULER, *_OWN_STEPS, EULER, IMPLICITFAST, RUNGE_KUTTA)
INTEGRATORS = {integrator.name: integrator for integrator in _ALL}
"""The integrators by their names in --integrator."""


def asked_for(name: str | None, *, convex: bool = False) -> Integrator:
    """The integrator that a file selects by this name, in runs whose contact law is convex or not."""
    known = [integrator for integrator in INTEGRATORS.values() if (integrator.convex != NOT_CONVEX) == convex]
    found = (integrator for integrator in known if integrator.asked_for and integrator.asked_for == name)
    return next(found, EULER if convex else DEFAULT)
