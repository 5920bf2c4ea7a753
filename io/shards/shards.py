"""A job in shards, each a separate file: the plan of their rows, and whether an existing file belongs to the job.

The plan depends only on the numbers of rows and of shards, so every host makes the same one. A shard gets its final
name only when it is complete, and its digest identifies the job it belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.io.gate.gate import open_gated
from artsim.io.gate.shard_table import MAX_SHARDS, Entry, is_plain
from artsim.io.inputs.array_files import sha256_of
from artsim.io.inputs.sampling import BLOCK
from artsim.io.readers.open_output import open_output
from artsim.io.readers.sampled_output import SampledOutput
from artsim.io.shards.job import Job
from artsim.sim.foundation.errors import MissingInputError, ModelError, OutputError, UsageError
from artsim.sim.foundation.records import WIDTH

SUFFIXES = (".h5", ".hdf5")
_TOLD_ROWS = 5
_BLOCK_ROWS = 1 << 16


# ---- the plan


class Shard(NamedTuple):
    """Rows first … last (exclusive) of a job and the file that holds them; shards are numbered from 1."""

    number: int
    of: int
    path: Path
    first: int
    last: int


def plan(rows: int, count: int, output: Path) -> tuple[Shard, ...]:
    """Divide `rows` rows into `count` shards.

    Boundaries are multiples of the block in which rows are drawn, or of the pack width if there are fewer blocks than
    shards (some shards may then be empty).
    """
    grain = BLOCK if rows > BLOCK * (count - 1) else WIDTH
    units = -(-rows // grain)
    bounds = [min(rows, units * k // count * grain) for k in range(count + 1)]
    return tuple(Shard(k + 1, count, shard_path(output, k + 1, count), bounds[k], bounds[k + 1]) for k in range(count))


def shard_path(output: Path, number: int, count: int) -> Path:
    """Path of a shard: `out.h5` has shards such as `out.shard-0003-of-0016.h5`."""
    return output.with_name(f"{output.stem}.shard-{number:04}-of-{count:04}{output.suffix}")


def check_shard_names(output: Path, count: int) -> None:
    """Raise UsageError if `output` cannot be the index of `count` shards."""
    if output.suffix not in SUFFIXES:
        raise UsageError(f"{output}: shards and --resume are for HDF5; want a name that ends in .h5 or .hdf5")
    if not is_plain(shard_path(output, 1, count).name):
        raise UsageError(f"{output}: the name of a file in shards may hold no % or \\, and not be so long")
    if not 1 <= count <= MAX_SHARDS:
        raise UsageError(f"{count} shards: want 1 to {MAX_SHARDS}")


def check_new(paths: Sequence[Path]) -> None:
    """Raise OutputError if one of the files exists."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise OutputError(f"{path}: exists already; --resume keeps what fits, --force overwrites it")


def absolute(name: str | os.PathLike[str]) -> str:
    """A name that other processes of this machine, or of one with the same folders, can use."""
    return str(Path.cwd() / name)


# ---- existing files


class Finished(NamedTuple):
    """A complete shard or single file: its entry, the first failed rows, numbered over the whole job, and what is told
    of its rows."""

    entry: Entry
    failed_rows: tuple[int, ...]
    told: Any

    @classmethod
    def of(cls, path: Path, first: int, rows: int, failed: int, failed_rows: Sequence[int], told: Any) -> Finished:
        """The record of a file just written; its bytes are hashed."""
        size, digest = size_and_sha256(path)
        return cls(Entry(path.name, first, rows, size, digest, failed, told.contacts), tuple(failed_rows), told)


def finished(job: Job, shard: Shard, sha256: str | None = None) -> Finished | None:
    """A complete shard of the job; None if it is missing, damaged, or has another hash than `sha256`.

    Raises ModelError if it belongs to another job, naming the first difference.
    """
    try:
        with open_output(shard.path) as output:
            if not isinstance(output, job.recording) or output.shards:
                raise ModelError(f"{shard.path}: is no shard of a {job.recording.group_name}")
            check_same(job, output)
            if (output.first_row, len(output)) != (shard.first, shard.last - shard.first):
                raise OtherJobError(f"{shard.path}: holds rows {output.first_row} …, want {shard.first} …")
            told = (*failures(job, output), job.told_of(output))
            done = Finished.of(shard.path, output.first_row, len(output), *told)
    except OtherJobError:
        raise
    except (MissingInputError, ModelError):
        return None
    return done if sha256 in (None, done.entry.sha256) else None


def known_sums(job: Job, output: Path) -> dict[str, str]:
    """SHA-256 of the shards that an index lists, by name; empty without an index.

    Raises ModelError if the index belongs to another job or is damaged, OutputError if the file is no index.
    """
    if not output.exists():
        return {}
    file, _ = open_gated(output, shards=False)
    try:
        index = job.recording(output, file) if "shards" in file else None
        if index is None:
            raise OutputError(f"{output}: exists already and is no index of shards; --force overwrites it")
        check_same(job, index)
        return {entry.name: entry.sha256 for entry in index.shards}
    finally:
        file.close()


def finished_file(job: Job, path: Path) -> Finished | None:
    """A complete file of all rows; None if there is none. Raises ModelError or OutputError if it is something else."""
    if not path.exists():
        return None
    with open_output(path) as output:
        if not isinstance(output, job.recording) or output.digest is None:
            raise OutputError(f"{path}: does not say of which job it is; --force overwrites it")
        check_same(job, output)
        if output.interrupted:
            raise OutputError(f"{path}: was interrupted; --force begins anew, --shards keeps those that are complete")
        failed, rows = failures(job, output)
        size = path.stat().st_size
        entry = Entry(path.name, output.first_row, len(output), size, "", failed)
        return Finished(entry, rows, job.told_of(output))


class OtherJobError(ModelError):
    """A file that belongs to another job."""


def check_same(job: Job, output: SampledOutput) -> None:
    """Raise OtherJobError, naming the first option that differs, unless the file belongs to the job."""
    if output.digest != job.digest:
        import json

        try:
            theirs = json.loads(output.provenance.get("facts", "{}"))
        except (ValueError, TypeError, RecursionError):
            theirs = {}
        raise OtherJobError(f"{output.path}: is of another job: {difference(job, theirs)}")


def difference(job: Job, theirs: Mapping[str, Any]) -> str:
    """The first difference between the facts of two jobs, in words."""
    ours, theirs = _flat(job.facts), _flat(theirs)
    for key, option in job.options.items():
        here, there = ours.get(key), theirs.get(key)
        if here != there:
            told = all(len(str(value)) <= 60 for value in (here, there)) and None not in (here, there)
            return f"{option} differs" + (f": {_words(there)} there, {_words(here)} here" if told else "")
    return "its inputs differ" if theirs else "it does not say of which"


def failures(job: Job, output: SampledOutput) -> tuple[int, tuple[int, ...]]:
    """The number of failed rows, and the first of them, numbered over the whole job."""
    count, told = 0, list[int]()
    for start in range(0, len(output), _BLOCK_ROWS):
        bad = np.flatnonzero(~np.isin(output.read("status", start, start + _BLOCK_ROWS), job.successes))
        told += [output.first_row + start + int(k) for k in bad[: _TOLD_ROWS - len(told)]]
        count += len(bad)
    return count, tuple(told)


def _flat(facts: Any, prefix: str = "") -> dict[str, Any]:
    """Nested facts, flattened to dotted names."""
    if not isinstance(facts, dict):
        return {}
    flat = {}
    for key, value in facts.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return flat


def _words(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def size_and_sha256(path: Path) -> tuple[int, str]:
    """The size [bytes] and the SHA-256 of a file. Raises MissingInputError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise MissingInputError(f"{path}: cannot read: {os.strerror(error.errno or 0)}") from None
    try:
        return os.fstat(handle).st_size, sha256_of(handle)
    finally:
        os.close(handle)
