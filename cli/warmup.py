"""`artsim warmup`: compile the kernels now rather than at the first use."""

from __future__ import annotations

import click

from artsim.sim.batch import COMPUTE
from artsim.sim.jit import warm
from artsim.sim.records import WIDTH
from artsim.sim.run import SIMULATE


@click.command(short_help="Compile and cache the engine's kernels.")
def warmup() -> None:
    """Compile every kernel that is not in the cache yet."""
    for entry, width in (*((entry, 1) for entry in SIMULATE.values()), (COMPUTE, 1), (COMPUTE, WIDTH)):
        warm(entry, width)
    click.echo("kernels are ready")
