"""The errors a user can meet. Each is one clear line and an exit code, which the command line prints and returns.

Some are also the ValueError or FileNotFoundError that Python's callers expect; whoever catches these around code that
raises ours catches ArtsimError first.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice

LISTED = 380  # characters of names in a message, of which a terminal's line has 500


class ArtsimError(Exception):
    """Base of every error artsim raises on purpose: `str(error)` is the one line a user reads."""

    exit_code = 70


class UsageError(ArtsimError, ValueError):
    """An option or argument is wrong (unknown joint, wrong length, contradictory options)."""

    exit_code = 2


class StoppedError(ArtsimError):
    """The computation stopped early: a non-finite state, or rows that failed."""

    exit_code = 3


class SettingError(UsageError):
    """A setting of a run is wrong; `setting` is its name, `entry` the name of the joint, link … that it is for."""

    def __init__(self, message: str, setting: str, entry: str = "") -> None:
        super().__init__(message)
        self.setting, self.entry = setting, entry


class ModelError(ArtsimError, ValueError):
    """The input file is wrong; the message starts with `file:line:`."""

    exit_code = 65


class MissingInputError(ArtsimError, FileNotFoundError):
    """An input file is missing or unreadable."""

    exit_code = 66


class MemoryShortageError(ArtsimError):
    """The work needs more memory than this process may have; the message holds the estimate."""

    exit_code = 71


class OutputError(ArtsimError):
    """An output file cannot be created."""

    exit_code = 73


class StorageError(ArtsimError):
    """Writing failed half-way: disk full, I/O error."""

    exit_code = 74


class BusyError(ArtsimError):
    """The output is in use by another process."""

    exit_code = 75


def printable(text: str) -> str:
    """The text with control characters, right-to-left overrides and the like written as escapes, on one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def listed(names: Iterable[str], most: int) -> str:
    """The first names that a file gives, for a message: `a, b, …`, or `nothing`."""
    first = list(islice(names, most + 1))
    told = [printable(name if len(name) <= 60 else f"{name[:60]}…") for name in first[:most]]
    return ", ".join([*told, "…"] if len(first) > most else told) or "nothing"


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name nearest to `name`, else `; known: a, b, c`, else ''.

    All names are listed, but for those beyond LISTED characters, which a line has no room for: they are counted.
    """
    import difflib  # costs 5 ms, needed on the error path only

    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    if not names:
        return ""
    fit = sum(1 for length in accumulate(len(known_name) + 2 for known_name in names) if length <= LISTED)
    shown = ", ".join(names[: max(1, fit)])
    return f"; known: {shown}" + (f" and {len(names) - max(1, fit)} more" if len(names) > max(1, fit) else "")
