"""Options of the commands that write robots, and the printing of losses and proofs."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import click

from artsim.cli.check import align
from artsim.sim.foundation.errors import StoppedError, printable

if TYPE_CHECKING:
    from artsim.loaders.writers.losses import Loss
    from artsim.loaders.writers.proof import Proof
    from artsim.loaders.writers.write import Written
    from artsim.sim.articulation.description import Articulation

R = TypeVar("R")
MOST = 40  # losses that are listed


class Target(NamedTuple):
    """The file to which a robot is written, and the options of writing and printing."""

    output: Path
    meshes: Literal["copy", "path"]
    check_with: tuple[str, ...]
    force: bool
    as_json: bool


_OPTIONS = (
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        required=True,
        metavar="FILE",
        help="File to write; its suffix is the format: .urdf, .xml or .mjcf, .sdf, .usda.",
    ),
    click.option(
        "--meshes",
        type=click.Choice(("copy", "path")),
        default="copy",
        show_default=True,
        help="Copy mesh files into a folder meshes beside FILE, or name them where they are. Formats that readers of "
        "the target do not know become OBJ.",
    ),
    click.option(
        "--check-with",
        type=click.Choice(("mujoco", "pinocchio")),
        multiple=True,
        help="Load FILE in this program, too, and print what it finds; may be repeated.",
    ),
    click.option("--force", is_flag=True, help="Overwrite FILE."),
    click.option("--json", "as_json", is_flag=True, help="Print losses and proof as one JSON object instead of text."),
)


def target_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add these options; the command receives `target: Target`."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> R:
        target = Target(*(kwargs.pop(name) for name in Target._fields))
        return command(*args, target=target, **kwargs)

    decorated: Callable[..., R] = wrapped
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def write_and_tell(robot: Articulation, target: Target, *, strict: bool) -> None:
    """Write a robot, and print the losses and the proof. Raises StoppedError where the file differs
    in ways that were not told, or another program refuses it."""
    from artsim.loaders.writers.other_programs import opinion
    from artsim.loaders.writers.write import write_articulation

    written = write_articulation(robot, target.output, force=target.force, strict=strict, meshes=target.meshes)
    proof = written.proof
    assert proof is not None
    opinions = [opinion(program, target.output) for program in target.check_with]
    if target.as_json:
        click.echo(json.dumps({**as_object(written), "checked_with": [one._asdict() for one in opinions]}))
    else:
        for line in (*described(written), *map(str, opinions)):
            click.echo(printable(line))
    if flaw := next((one for one in opinions if one.flaw), None):
        raise StoppedError(f"{target.output}: {flaw}")
    if not proof.holds:
        raise StoppedError(f"{target.output}: differs from {robot.name!r} in ways that were not told; see the table")


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
