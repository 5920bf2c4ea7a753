"""Warnings and other text from files, made harmless for a terminal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

from artsim.cli.note_kinds import by_kind
from artsim.sim.foundation.errors import printable

MAX_WARNINGS = 5


def warn(notes: Sequence[str], *, all_of_them: bool = False, more: str = "artsim check shows them") -> None:
    """Print a line on stderr for each of the first kinds of notes, or one for every note, without hints at options of
    other commands.
    """
    ctx = click.get_current_context(silent=True)
    options = {option for param in ctx.command.params for option in param.opts} if ctx else set[str]()
    notes = [without_foreign_hints(note, options) for note in notes]
    lines = notes if all_of_them else by_kind(notes)
    shown = lines if all_of_them else lines[:MAX_WARNINGS]
    for line in shown:
        click.echo(f"warning: {one_line(line)}", err=True)
    if len(lines) > len(shown):
        click.echo(f"warning: {len(lines) - len(shown)} more; {more}", err=True)


def warn_of_model(
    notes: Sequence[object], models: Sequence[str], options: Sequence[str], *, all_of_them: bool = False
) -> None:
    """Print one line on stderr for all warnings about the models, since these do not change from run to run.

    `options` are the words with which the models were read.
    """
    if all_of_them:
        warn([str(note) for note in notes], all_of_them=True)
    elif notes:
        kinds = len(by_kind([str(note) for note in notes]))
        count = f"{len(notes)} warnings" if len(notes) > 1 else "1 warning"
        count += f" of {kinds} kinds" if 1 < kinds < len(notes) else ", all of one kind" if kinds < len(notes) else ""
        where = shlex.join(["artsim", "check", *models, *options]) if models else "--verbose shows them"
        click.echo(printable(f"{count}: {where}"), err=True)


def without_foreign_hints(message: str, options: set[str]) -> str:
    """The message without remarks in brackets that begin with an option which is not one of `options`."""
    return re.sub(r" \((--[a-z0-9-]+)[^()]*\)", lambda hint: hint[0] if hint[1] in options else "", message)


def one_line(text: str, most: int = 500) -> str:
    """The message as one printable line; the middle of a very long message, which quotes a file, is left out."""
    if len(text) > 2 * most:
        text = f"{text[:most]} … {text[-most:]}"
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - most // 3 - 3]} … {text[-(most // 3) :]}"
