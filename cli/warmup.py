"""`artsim warmup`: compile the kernels now instead of at their first use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from artsim.io.progress import warm
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import Entry, build
from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.targets import LEVELS, level
from artsim.sim.geometry.contacts import DETECT
from artsim.sim.quantities.compute_records import COMPUTE
from artsim.sim.quantities.tendon_inertia import TENDON_INERTIA
from artsim.sim.run_data.integration import DEFAULT, INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.stepping.entries import SOLVE, simulate_entry
from artsim.sim.stepping.packs import SOLVE_PACK, roll_entry


@click.command(short_help="Compile and cache the engine's kernels.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(tuple(LEVELS)),
    help="Compile for processors of this level, wherever they are, instead of this one. Repeatable; with --into.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the kernels of --level, one folder each. A package built with such a folder as artsim/kernels "
    "carries them.",
)
def warmup(levels: tuple[str, ...], into: Path | None) -> None:
    """Compile every kernel that is not in the cache yet, in minutes.

    Those of other solvers, link rules, --continuous, rangefinders and `artsim bench` are compiled at their first use.
    """
    if bool(levels) != (into is not None):
        raise UsageError("--level and --into go together: which processors, and where their kernels go")
    if into is None:
        warm(_kernels())
        click.echo(f"kernels are ready, for {level()}")
        return
    build(_kernels(), levels, into)
    for each in levels:
        sizes = [path.stat().st_size for path in (into / each).glob("*.o")]
        click.echo(f"{each}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB")


def _kernels() -> Iterator[tuple[Entry, int]]:
    """The kernels that most runs, batches and rollouts need, in their widths."""
    newton = SOLVERS["newton"]
    for equipped in (False, True):
        yield simulate_entry(DEFAULT, newton, equipped, touching=True), 1
        for integrator in INTEGRATORS.values():
            yield simulate_entry(integrator, newton, equipped), 1
    for width in (1, WIDTH):
        yield COMPUTE, width
    for entry in (TENDON_INERTIA, SOLVE, DETECT):
        yield entry, 1
    for rows, touching in ((False, False), (True, False), (True, True)):
        yield roll_entry(rows, touching), WIDTH
    yield SOLVE_PACK, WIDTH
