"""`artsim run --converge`: the error of a run by runs with smaller steps, as a table."""

from __future__ import annotations

import json
import math

import click
import numpy as np

from artsim.cli.tables import aligned
from artsim.io.runs.convergence import Convergence, Event

_MOST = 3  # coordinates without convergence that are named


def print_convergence(found: Convergence, steps: int, *, as_json: bool) -> None:
    """Print the errors of all coordinates, their orders of convergence, and sentences on these."""
    if as_json:
        click.echo(json.dumps(_plain(found)))
        return
    others = " and ".join(f"{dt * 1e3:g}" for dt in found.dt[1:])
    click.echo(f"errors of {steps:,} steps of {found.dt[0] * 1e3:g} ms, by runs with {others} ms")
    cells: list[tuple[str, ...]] = [("", "at the end", "largest", "at", "order")]
    for k, dof in enumerate(found.dofs):
        unit = found.units[k]
        sizes = (f"{error:.1e} {unit}" for error in (found.end[k], found.largest[k]))
        order = "-" if math.isnan(found.order[k]) else f"{found.order[k]:.1f}"
        cells.append((dof, *sizes, f"{found.when[k]:.3g} s", order))
    for line in aligned(cells):
        click.echo(line)
    for line in sentences_of(found):
        click.echo(line)


def sentences_of(found: Convergence) -> list[str]:
    """Sentences on the order of convergence, and on limits and contacts that spoil it."""
    if math.isnan(found.overall):
        return ["the runs differ by rounding alone"]
    less = 2.0**-found.overall
    said = [f"order {found.overall:.1f}: half the step leaves {less:.2g} of the largest error"]
    spoiled = np.flatnonzero(np.isfinite(found.spoiled))
    worst = spoiled[np.argsort(-found.largest[spoiled])]
    for k in worst[:_MOST]:
        said.append(
            f"{found.dofs[k]} does not converge from t = {found.spoiled[k]:.3g} s on, "
            f"{_because(found.cause(int(k)))}; its error is larger than this estimate"
        )
    if len(worst) > _MOST:
        said.append(f"{len(worst) - _MOST} more coordinates do not converge, with smaller errors")
    return said


def _because(event: Event | None) -> str:
    if event is None:
        return "where neither limits nor contacts have acted: the motion is chaotic, or the step far too large"
    return f"after {event.what} at t = {event.time:.3g} s"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _plain(found: Convergence) -> dict[str, object]:
    """The convergence as plain values."""
    return {
        "dt": list(found.dt),
        "order": _number(found.overall),
        "events": [{"time": event.time, "what": event.what} for event in found.events],
        "coordinates": [
            {
                "dof": dof,
                "unit": found.units[k],
                "end": float(found.end[k]),
                "largest": float(found.largest[k]),
                "time": float(found.when[k]),
                "order": _number(found.order[k]),
                "spoiled": _number(found.spoiled[k]),
            }
            for k, dof in enumerate(found.dofs)
        ],
    }
