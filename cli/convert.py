"""`artsim convert`: write a robot in another format, and prove that the file says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from artsim.cli.check import align
from artsim.cli.options import OneModelOptions, model_options, refuse_own_input, set_arguments
from artsim.sim.foundation.errors import StoppedError, printable

if TYPE_CHECKING:
    from artsim.loaders.writers.losses import Loss
    from artsim.loaders.writers.proof import Proof
    from artsim.loaders.writers.write import Written

MOST = 40  # losses that are listed


@click.command(short_help="Write a robot in another format, with a proof.")
@click.argument("model", metavar="MODEL")
@click.argument("arguments", nargs=-1, metavar="[NAME:=VALUE]…")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="File to write; its suffix is the format: .urdf, .xml or .mjcf, .sdf.",
)
@click.option(
    "--meshes",
    type=click.Choice(("copy", "path")),
    default="copy",
    show_default=True,
    help="Copy mesh files into a folder meshes beside FILE, or name them where they are. Formats that readers of the "
    "target do not know become OBJ.",
)
@click.option(
    "--check-with",
    type=click.Choice(("mujoco", "pinocchio")),
    multiple=True,
    help="Load FILE in this program, too, and print what it finds; may be repeated.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print losses and proof as one JSON object instead of text.")
@model_options
def convert(
    model: str,
    arguments: tuple[str, ...],
    output: Path,
    meshes: Literal["copy", "path"],
    check_with: tuple[str, ...],
    force: bool,
    as_json: bool,
    load_options: OneModelOptions,
) -> None:
    """Write MODEL (URDF, MJCF or SDF, or - for standard input) to FILE in another format.

    The file is then loaded and compared with MODEL: fields one by one, and the mass matrix, gravity and bias forces,
    the places of links and the depths of contacts at random states. What the format cannot say is listed; --strict
    refuses to write without what affects motion, forces or contacts.
    """
    from artsim.loaders.load import load_articulation
    from artsim.loaders.writers.other_programs import opinion
    from artsim.loaders.writers.write import write_articulation

    set_arguments(load_options, arguments)
    refuse_own_input(output, model)
    robot = load_articulation(model, **load_options)
    written = write_articulation(robot, output, force=force, strict=load_options["strict"], meshes=meshes)
    proof = written.proof
    assert proof is not None
    opinions = [opinion(program, output) for program in check_with]
    if as_json:
        click.echo(json.dumps({**as_object(written), "checked_with": [one._asdict() for one in opinions]}))
    else:
        for line in (*described(written), *map(str, opinions)):
            click.echo(printable(line))
    if flaw := next((one for one in opinions if one.flaw), None):
        raise StoppedError(f"{output}: {flaw}")
    if not proof.holds:
        raise StoppedError(f"{output}: differs from {model} in ways that were not told; the table says where")


def described(written: Written) -> list[str]:
    """The losses, then the table of the proof."""
    assert written.proof is not None
    more = f" and {len(written.files)} mesh files" if written.files else ""
    return [f"wrote {written.path}{more}", *told(written.losses.entries), "", *table(written.proof)]


def told(losses: Sequence[Loss]) -> list[str]:
    """A line for each loss, those of one kind of item and one wording together."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for loss in losses:
        groups.setdefault((loss.outcome, loss.kind, loss.told), []).append(loss.name)
    lines = []
    for (outcome, kind, words), names in groups.items():
        shown = ", ".join(map(repr, filter(None, names[:4]))) + (
            f" and {len(names) - 4} more" if len(names) > 4 else ""
        )
        lines.append(f"{outcome}: {kind} {shown}: {words}" if shown else f"{outcome}: {words}")
    return lines[:MOST] + (
        [f"… and {len(lines) - MOST} more kinds of losses; --json lists all"] if len(lines) > MOST else []
    )


def table(proof: Proof) -> list[str]:
    """The rows of the proof, and differences that the writer did not tell."""
    rows: list[tuple[str, ...]] = [("COMPARED", "NUMBER", "DIFFERENCE", "VERDICT")]
    for row in proof.rows:
        rows.append(
            (row.subject, str(row.compared), "" if row.distance is None else f"{row.distance:.2g}", row.verdict)
        )
    lines = align([*rows])
    for difference in proof.untold[:MOST]:
        name = f"{difference.kind} {difference.name!r}".strip()
        lines.append(f"not told: {name}: {difference.field} {difference.before} became {difference.after}")
    return lines


def as_object(written: Written) -> dict[str, Any]:
    """Everything for --json."""
    proof = written.proof
    assert proof is not None
    return {
        "file": str(written.path),
        "meshes": written.files,
        "losses": [loss._asdict() for loss in written.losses.entries],
        "proof": [row._asdict() for row in proof.rows],
        "holds": proof.holds,
        "untold": [f"{d.kind} {d.name}: {d.field}" for d in proof.untold],
    }
