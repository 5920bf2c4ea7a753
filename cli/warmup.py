"""`artsim warmup`: compile the kernels now instead of at their first use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click

from artsim.io.runs.progress import warm
from artsim.sim.contact.continuous import ADVANCE, FORESEE
from artsim.sim.equipment.delays import DELAY_CONTROLS, KEEP, feel_entry
from artsim.sim.foundation.compiler import slower
from artsim.sim.foundation.errors import OutputError, UsageError
from artsim.sim.foundation.jit import Entry, build
from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.targets import LEVELS, level
from artsim.sim.geometry.contacts import CLOCKED_DETECT, DETECT
from artsim.sim.ik.search_records import search_entry
from artsim.sim.quantities.compute_records import COMPUTE, DERIVATIVE_ROWS
from artsim.sim.quantities.pose_constraints import pose_entry
from artsim.sim.quantities.program import EVALUATE
from artsim.sim.quantities.tendon_inertia import TENDON_INERTIA
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.runs.sights import CAST
from artsim.sim.stepping.entries import beside_entry, integrator_entry, simulate_entry, smooth_entry, solver_entry
from artsim.sim.stepping.packs import (
    EXERT,
    PATHS,
    SOLVE_PACK,
    TAKE_TURNS,
    PackFeatures,
    rater_of_packs,
    recorder_of_lanes,
    roll_entry,
)


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
@click.option(
    "--more",
    is_flag=True,
    help="Also those of other solvers and, for the default one, of damping and limits of links, --continuous, "
    "rangefinders, delays, constraints of poses, derivatives, `artsim ik` and `artsim bench`, which are otherwise "
    "compiled at their first use.",
)
def warmup(levels: tuple[str, ...], into: Path | None, more: bool) -> None:
    """Compile the kernels that most runs, batches and rollouts need and that are not in the cache yet, in minutes."""
    if bool(levels) != (into is not None):
        raise UsageError("--level and --into go together: which processors, and where their kernels go")
    if into is None:
        warm((*_kernels(), *(_others() if more else ())))
        click.echo(f"kernels are ready, for {level()}")
        if why := slower():
            click.echo(f"they compile {why}")
        return
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: cannot create: {error.strerror}") from None
    build((*_kernels(), *(_others() if more else ())), levels, into)
    for each in levels:
        sizes = [path.stat().st_size for path in (into / each).glob("*.o")]
        click.echo(f"{each}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB")


def _kernels() -> Iterator[tuple[Entry, int]]:
    """The kernels that most runs, batches and rollouts need, in their widths."""
    newton = SOLVERS["newton"]
    for equipped in (False, True):
        for touching in (False, True):
            yield simulate_entry(equipped, touching), 1
            yield beside_entry(equipped, touching), 1
            yield recorder_of_lanes(PackFeatures(equipped=equipped, touching=touching)), 1
        yield from _integrators(equipped, implicit=False)
        yield smooth_entry(equipped), 1
    for width in (1, WIDTH):
        yield COMPUTE, width
    solvers = (solver_entry(newton), solver_entry(newton, whole=False))
    for entry in (*solvers, TENDON_INERTIA, DETECT, FORESEE, EXERT, PATHS, TAKE_TURNS, EVALUATE):
        yield entry, 1
    for equipped in (False, True):
        for rows, touching in ((False, False), (True, False), (True, True)):
            yield roll_entry(PackFeatures(equipped, rows, touching)), WIDTH
    yield SOLVE_PACK, WIDTH


def _integrators(equipped: bool, *, implicit: bool) -> Iterator[tuple[Entry, int]]:
    """The kernels of integrators with steps of their own, of which some share one."""
    found = (integrator_entry(each, equipped) for each in INTEGRATORS.values() if each.implicit == implicit)
    for entry in dict.fromkeys(entry for entry in found if entry is not None):
        yield entry, 1


def _others() -> Iterator[tuple[Entry, int]]:
    """The kernels that fewer need, in their widths."""
    for width in (1, WIDTH):
        yield DERIVATIVE_ROWS, width
    yield rater_of_packs(), WIDTH
    for solver in SOLVERS.values():
        if solver != SOLVERS["newton"]:
            yield solver_entry(solver), 1
    for equipped, touching in product((False, True), repeat=2):
        yield simulate_entry(equipped, touching, ruled=True), 1
        yield simulate_entry(equipped, touching, clocked=True), 1
    for equipped in (False, True):
        yield from _integrators(equipped, implicit=True)
        yield pose_entry(equipped), 1
        yield search_entry(equipped), WIDTH
    for entry in (CLOCKED_DETECT, ADVANCE, CAST, DELAY_CONTROLS, KEEP, feel_entry(False), feel_entry(True)):
        yield entry, 1
