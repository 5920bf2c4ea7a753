"""`artsim bench`: measure how long the steps of a model take, phase by phase."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

from artsim.cli.grouped import GroupedCommand
from artsim.cli.numbers import Whole
from artsim.cli.options import reading_words
from artsim.cli.run_options import GROUPS, run_config, run_options
from artsim.cli.scene_options import SceneOptions, load_models, models_argument, scene_options
from artsim.cli.terminal import warn, warn_of_model
from artsim.cli.words import control_file
from artsim.io.runs.prepare import clamped_controls, held_controls, plan_controls, prepare
from artsim.io.runs.progress import warm
from artsim.sim.foundation.errors import UsageError
from artsim.sim.run_data.phases import PHASES, Clock
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation


class Timing(NamedTuple):
    """Times [µs per step] of a run that is divided into pieces of equal numbers of steps."""

    steps: int
    median: float
    fastest: float
    phases: dict[str, float]
    rows: float  # constraint rows at the end of a piece, mean
    contacts: float
    iterations: float


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Time the steps of a robot, phase by phase.",
    context_settings={"auto_envvar_prefix": "ARTSIM"},
)
@models_argument()
@run_options
@scene_options
@click.option(
    "--pieces",
    type=Whole(1),
    default=10,
    show_default=True,
    help="Number of pieces into which the run is divided and timed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the times as one JSON object on stdout.")
@click.pass_context
def bench(
    ctx: click.Context, /, models: tuple[str, ...], pieces: int, as_json: bool, scene: SceneOptions, **options: Any
) -> None:
    """Simulate MODEL, or several, as `artsim run` would, in memory, and say how long a step and its phases take.

    The whole step is timed in a run of its own, without marks between the phases. Compilation is not included.
    """
    articulation = load_models(models, scene)
    config = run_config(ctx, options, {}, articulation, **scene.recorded(articulation))
    plan = prepare(articulation, config)
    if config.is_maximal or config.is_python:
        raise UsageError("bench times compiled steps: reduced coordinates, no Python controller")
    file = control_file(options["control"])
    controls = held_controls(plan) if file is None else plan_controls(plan, file)
    warn([*clamped_controls(plan, controls), *plan.notes])
    warn_of_model(articulation.notes, models, reading_words(scene.load))
    timing = measure(plan, controls, pieces)
    if as_json:
        click.echo(json.dumps(timing._asdict()))
        return
    _show(timing, plan.config)


def measure(plan: Plan, controls: Controls, pieces: int) -> Timing:
    """Simulate the plan twice: one run is timed from outside, piece by piece, the other by its phases."""
    size = max(1, plan.config.steps // pieces)
    warm((entry, 1) for entry in (*plan.entries, *plan.clocked_entries))
    plain = _times(Simulation(plan, controls), size, pieces)
    clock = Clock(np.zeros(len(PHASES), np.int64), np.zeros(1, np.int64))
    simulation = Simulation(plan, controls, clock=clock)
    _times(simulation, 1, 1)  # the first mark has no predecessor to count from
    clock.ticks[:] = 0
    effort = np.zeros(3)
    for _ in range(pieces):
        _times(simulation, size, 1)
        effort += simulation.effort
    shares = clock.ticks / max(clock.ticks.sum(), 1) * median(plain)
    spent = dict(zip(PHASES, shares.tolist(), strict=True))
    return Timing(size * pieces, median(plain), min(plain), spent, *(effort / pieces).tolist())


def _times(simulation: Simulation, size: int, pieces: int) -> list[float]:
    """Time of each piece [µs per step]."""
    times = []
    for _ in range(pieces):
        start = time.perf_counter()
        for _ in simulation.blocks(size):
            pass
        simulation.check()
        times.append((time.perf_counter() - start) / size * 1e6)
    return times


def _show(timing: Timing, config: RunConfig) -> None:
    click.echo(f"{timing.steps} steps of {config.dt:g} s, {config.solver}, {config.integrator}")
    click.echo(f"{timing.median:10.2f} µs a step (median; fastest piece {timing.fastest:.2f})")
    for name, spent in timing.phases.items():
        click.echo(f"{spent:10.2f} µs {100 * spent / timing.median:4.0f} %  {name}")
    click.echo(
        f"at the ends of the pieces: {timing.contacts:.4g} contacts, {timing.rows:.4g} constraint rows, "
        f"{timing.iterations:.3g} solver iterations"
    )
