"""The formats to which a run can be exported, one line each; a writer is imported only when it is used."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from artsim.io.exports.request import Export
from artsim.io.output_file.whole_file import put_in_place, storing
from artsim.sim.foundation.errors import UsageError


class Format(NamedTuple):
    """A format: its file suffix, and its writer `module:function`, which takes an Export and returns notes."""

    suffix: str
    writer: str
    meaning: str


FORMATS = {
    "csv": Format(".csv", "artsim.io.exports.tables:write_csv", "a table as text, a line per row"),
    "npz": Format(".npz", "artsim.io.exports.tables:write_npz", "NumPy arrays by name, contacts and inputs too"),
    "parquet": Format(".parquet", "artsim.io.exports.tables:write_parquet", "a table for pandas, Polars, Spark"),
    "contacts_csv": Format(".csv", "artsim.io.exports.tables:write_contacts_csv", "contacts as text, a line for each"),
    "contacts_parquet": Format(
        ".parquet", "artsim.io.exports.tables:write_contacts_parquet", "contacts as a table, a row for each"
    ),
    "mcap": Format(".mcap", "artsim.io.exports.mcap_log:write_mcap", "a log for Foxglove: a topic per variable"),
    "robomimic": Format(
        ".hdf5", "artsim.io.exports.robomimic:write_robomimic", "a demonstration as robomimic reads it"
    ),
    "video": Format(".mp4", "artsim.io.exports.video:write_video", "a video"),
    "html": Format(".html", "artsim.io.exports.page:write_page", "one page that plays in any browser, offline"),
}
"""Formats by the name of their option, with underscores for dashes."""


def check_run_name(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for an output of a run whose suffix is that of another format."""
    target = Path(path)
    if target.suffix in ("", ".h5", ".hdf5"):
        return
    formats = {format_.suffix: name for name, format_ in reversed(FORMATS.items())}
    if target.suffix.lower() not in formats:
        return
    option = f"--{formats[target.suffix.lower()].replace('_', '-')}"
    told = f"`artsim export {target.stem}.h5 {option} {target.name}` writes it then in this format"
    raise UsageError(f"{path}: a run is written as HDF5, to a name in .h5; {told}")


def write(format_: str, export: Export) -> list[str]:
    """Write an export; returns notes. Raises UsageError and OSError as the format's writer does."""
    module, _, function = FORMATS[format_].writer.partition(":")
    notes: list[str] = getattr(import_module(module), function)(export)
    return notes


def write_all(exports: Mapping[str, Export]) -> list[str]:
    """Write exports by format, all or, where one fails, none; returns notes. Raises the errors of `write`."""
    written: list[tuple[Path, Path]] = []
    notes = []
    try:
        for format_, export in exports.items():
            export.recording.check_size()
            notes += write(format_, replace(export, written=written))
        while written:
            with storing(written[0][1]):
                put_in_place(*written[0])
            del written[0]
    finally:
        for partial, _ in written:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    return notes
