"""The file that --config names: settings in TOML, or an output of `artsim run`; and where a setting stands in it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from artsim.cli.options import STREAMS, is_file, read_input
from artsim.cli.run_options import was_typed
from artsim.sim.foundation.errors import ModelError, SettingError, UsageError
from artsim.sim.foundation.files import read_start
from artsim.sim.foundation.toml import read_toml
from artsim.sim.geometry.solids import Kept

_MOST_TOML = 1 << 21  # bytes
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HEADER = re.compile(r"\s*\[+\s*([^\]]*?)\s*\]")
_KEY = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+|\s*\.\s*)+?)\s*=""")
_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+)""")


class Stored(NamedTuple):
    """The content of --config: values, and the model's text if the file is an output; its name and text if TOML."""

    values: dict[str, Any]
    text: str | None = None
    kept: Kept = Kept()
    models: tuple[str, ...] = ()
    file: str = ""
    toml: str = ""

    @contextlib.contextmanager
    def located(self, ctx: click.Context) -> Iterator[None]:
        """Put file and line before the message of a SettingError whose setting comes from the TOML file."""
        try:
            yield
        except SettingError as error:
            if not self.toml or error.setting not in self.values or was_typed(ctx, error.setting):
                raise
            line = line_of(self.toml, error.setting, error.entry)
            raise UsageError(f"{self.file}:{line}: {str(error).removeprefix('configuration: ')}") from None


def read_config(config: Path | None) -> Stored:
    """Read --config; `-` is standard input. Raises MissingInputError, UsageError, ModelError."""
    if config is None:
        return Stored({})
    if is_hdf5(config):
        from artsim.io.readers.recording import open_recording

        with open_recording(config) as recording:
            if "config" not in recording.provenance:
                raise ModelError(f"{config}: holds no configuration: it does not say what was simulated")
            values = dict(recording.config)
            if recording.steps_total is None:  # stepped from Python
                values["steps"] = max(1, int(recording.final["step"]))
            if recording.changes:
                raise UsageError(
                    f"{config}: its run was changed between steps, from Python; `artsim replay --verify` makes it again"
                )
            return Stored(values, recording.model_text, recording.kept)
    name = "<stdin>" if str(config) == "-" else str(config)
    data = sys.stdin.buffer.read(_MOST_TOML) if name == "<stdin>" else read_input(config, _MOST_TOML)
    if data.startswith(_HDF5):
        raise UsageError(f"{name}: an HDF5 file is no stream: give its name")
    return _parse(data, name, Path.cwd() if name == "<stdin>" or name.startswith(STREAMS) else config.parent)


def _parse(data: bytes, name: str, folder: Path) -> Stored:
    try:
        text = data.decode()
        values = read_toml(text)
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not TOML: {error}") from None
    except ValueError as error:
        at = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        where = f"{name}:{at[1]}:{at[2]}" if at else name
        raise UsageError(f"{where}: not TOML: {str(error)[: at.start()] if at else error}") from None
    return Stored(values, models=_models_of(values.pop("model", []), folder), file=name, toml=text)


def _models_of(given: object, folder: Path) -> tuple[str, ...]:
    """Read `model` of a TOML file: one MODEL or several; a path may be relative to the file."""
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"configuration: model is {given!r}, want a MODEL, or a list of them")
    pairs = [("", word) if is_file(word) or ":=" in word else word.rpartition("=")[::2] for word in words]
    found = ((name, str(folder / file) if is_file(str(folder / file)) else file) for name, file in pairs)
    return tuple(f"{name}={file}" if name else file for name, file in found)


def is_hdf5(path: Path) -> bool:
    """True if the name or the first bytes are those of an HDF5 file; `-o` accepts other suffixes too."""
    if path.suffix in (".h5", ".hdf5"):
        return True
    try:
        if not path.is_file():  # a pipe gives its bytes once
            return False
        return read_start(path, 8) == _HDF5
    except OSError:
        return False


def line_of(text: str, setting: str, entry: str = "") -> int:
    """The line of TOML text where a setting stands, or the entry of its table; 1 if it cannot be found."""
    table: list[str] = []
    best, found = 0, 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            keys = table
        elif key := _KEY.match(line):
            keys = [*table, *_parts(key[1])]
        else:
            continue
        if keys[:1] == [setting]:
            inline = entry and any(part == entry for part in _parts(line.partition("=")[2]))
            rank = 2 if entry and (keys[1:2] == [entry] or inline) else 1
            if rank > best:
                best, found = rank, number
    return found


def _parts(text: str) -> list[str]:
    """The parts of a dotted key, or all words of a line that could be keys."""
    return [next(filter(None, match), "") for match in _PART.findall(text)]
