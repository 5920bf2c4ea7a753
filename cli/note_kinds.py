"""Warnings of one kind in one line: a robot file repeats a flaw in dozens of joints.

Two warnings are of one kind if they differ in nothing but quoted names and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"(?<!\w)'[^']*'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?")
_LINE = re.compile(r":(\d+): ")  # after the file's name
_SHOWN = 4  # names of the others


def by_kind(notes: Sequence[str]) -> list[str]:
    """A line for each kind of warning, in order of their first: that one, then the number of the others and names."""
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_NUMBER.sub("#", _NAME.sub("'…'", note)), []).append(note)
    return [notes[0] if len(notes) == 1 else f"{notes[0]} (and {_others(notes)})" for notes in kinds.values()]


def _others(notes: Sequence[str]) -> str:
    """The number of warnings after the first, with the names in which they differ from it, else with their lines."""
    names = next((column for column in zip(*map(_NAME.findall, notes), strict=True) if len({*column}) > 1), ())
    lines = [found[1] for note in notes if (found := _LINE.search(note))]
    if names:
        which = f" for {_first([*dict.fromkeys(names[1:])])}"
    else:
        which = f" in lines {_first(lines[1:])}" if len({*lines}) > 1 else ""
    return f"{len(notes) - 1} more{which}"


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
