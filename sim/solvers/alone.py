"""newton as an entry of its own: compiled once, whatever a step has beside its rows."""

from __future__ import annotations

from typing import Any

from artsim.sim.jit import inlined, njit
from artsim.sim.recordtype import run_entry
from artsim.sim.solvers.newton import newton, newton_again


@njit
def solve_alone(m: Any, w: Any, r: Any, f: Any, y: Any) -> None:
    """f.next (nu,) becomes the velocities at the end of the step, r.impulse what makes them; see `newton`."""
    if y.again[0] == 1:
        newton_again(m, w, r, f.free, f.next, y, None, None)
    else:
        newton(m, w, None, r, f.free, f.next, y, None, None)


@inlined
def run_newton(y: Any, again: Any) -> None:
    """Run that entry."""
    y.again[0] = again
    run_entry(y.entry)
