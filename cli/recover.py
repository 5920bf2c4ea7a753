"""`artsim recover`: make the run file that a killed process left readable."""

from __future__ import annotations

from pathlib import Path

import click

from artsim.cli.options import refuse_own_input
from artsim.io.output_file.claim import check_output
from artsim.io.runs.recovery import recover as recover_run
from artsim.sim.foundation.errors import printable


@click.command(short_help="Recover the output file of a run that was killed.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Clean file to write; FILE is then left unchanged."
)
@click.option("--force", is_flag=True, help="Overwrite the output file.")
def recover(file: Path, output: Path | None, force: bool) -> None:
    """Make FILE, an output of `artsim run` whose process was killed, clean: the file then holds every row that was
    written in full, and every HDF5 reader can open it. A file that is already clean is left unchanged.
    """
    if output is not None:
        refuse_own_input(output, str(file))
        check_output(output, force=force)
    done = recover_run(file, output)
    clean = f"is clean already: {done.state}, {done.rows} rows"
    told = f"{done.rows} rows recovered" if done.state == "killed" else clean
    click.echo(printable(f"{done.path}: {told}"))
