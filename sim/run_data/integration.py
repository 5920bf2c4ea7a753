"""The integrators, each declared once: its kernel and what it serves. No numba here.

An integrator's kernel takes the records of step.simulate in the same order, None for those of what it does not serve.
"""

from __future__ import annotations

from typing import NamedTuple

# options of a run (fields of RunConfig) that bring rows which push one way, or count steps in which they push nothing
ONE_SIDED_OPTIONS = (
    "velocity_limits",
    "ground",
    "link_damping",
    "link_velocity_limit",
    "com_velocity_limit",
    "sleep_threshold",
)


class Integrator(NamedTuple):
    """What an integrator serves; plan.py refuses runs, and puts notes in their place, by this."""

    name: str  # of --integrator
    kernel: str
    module: str
    asked_for: str = ""  # the `integrator` of MJCF files by which it is chosen
    solver: str = ""  # whose scratch its kernel takes, whatever --solver says; "": the solver's
    one_sided: bool = True  # rows that push one way: limits, friction, contacts, ONE_SIDED_OPTIONS
    wrapped_equalities: bool = True  # hard equalities of tendons that wrap around geoms
    maximal: bool = True  # maximal coordinates move by it
    phases: bool = True  # phases of its steps can be timed
    packs: bool = True  # packs of robots move by it


SEMI_IMPLICIT_EULER = Integrator("semi-implicit-euler", "simulate", "artsim.sim.stepping.step")
RK4 = Integrator(
    "rk4",
    "simulate_rk4",
    "artsim.sim.stepping.rk4",
    asked_for="RK4",
    solver="newton",
    one_sided=False,
    wrapped_equalities=False,
    maximal=False,
    phases=False,
    packs=False,
)

DEFAULT = (
    SEMI_IMPLICIT_EULER  # serves everything, and is implicit in springs, dampers and drives as MuJoCo's others are
)
INTEGRATORS = {integrator.name: integrator for integrator in (SEMI_IMPLICIT_EULER, RK4)}
"""By the names of --integrator."""


def asked_for(name: str | None) -> Integrator:
    """The integrator that a file asks for by this name."""
    found = (integrator for integrator in INTEGRATORS.values() if integrator.asked_for and integrator.asked_for == name)
    return next(found, DEFAULT)
