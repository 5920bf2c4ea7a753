"""`artsim replay`: simulate again what a file holds, and compare it byte for byte."""

from __future__ import annotations

from pathlib import Path

import click

from artsim.cli.terminal import printable
from artsim.io.runs import verify as verify_run
from artsim.loaders.load import load_text
from artsim.sim.configuration import RunConfig
from artsim.sim.description import Articulation
from artsim.sim.errors import StoppedError, UsageError


@click.command(short_help="Run a stored simulation again and compare.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--verify", is_flag=True, help="Simulate again from what the file holds; compare byte for byte.")
def replay(file: Path, verify: bool) -> None:
    """Check that FILE, an output of `artsim run`, reproduces: exit code 0 if every byte is equal, 3 if not."""
    if not verify:
        raise UsageError("replay needs --verify; showing a run comes with a later version")
    difference = verify_run(file, load_stored)
    if difference is not None:
        step = "" if difference.step is None else f" at step {difference.step}"
        raise StoppedError(f"{file}: {difference.dataset} differs first{step}, in {difference.name!r}")
    click.echo(f"{printable(str(file))}: reproduced, every byte equal")


def load_stored(text: str, name: str, config: RunConfig) -> Articulation:
    """A model stored in a file, under the limits of any other input."""
    return load_text(
        text,
        name=f"<model {name!r}>",
        base=config.base,  # type: ignore[arg-type]
        balance_inertia=config.balance_inertia,
        ignore_unsupported=config.ignore_unsupported,
        meshes=False,
    )
