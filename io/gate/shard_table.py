"""The table of shards in the index of a batch or a rollout, and the gate's rule for virtual datasets over them.

Where a source is missing or cannot be opened, HDF5 returns fill values without an error; every shard is therefore
checked before an index is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.gate.kinds import check_schema
from artsim.io.gate.opening import open_walked, refuse_virtual
from artsim.io.gate.values import attributes_of, read_texts, reading
from artsim.sim.foundation.errors import MissingInputError, ModelError, UsageError

if TYPE_CHECKING:
    import h5py

MAX_SHARDS = 1000  # HDF5 keeps them all open while reading; the usual limit of a process is 1024 files
GROUPS = {"batch": ("batch",), "rollout": ("rollout", "controls")}  # with rows by sample, by the kind of an index
_SPARE_FILES = 8


class Entry(NamedTuple):
    """One shard in the index's table."""

    name: str
    first_row: int
    rows: int
    bytes: int
    sha256: str
    failed: int
    contacts: int = 0  # recorded ones


def contact_spans(entries: Sequence[Entry]) -> list[tuple[str, int, int]]:
    """The file of each shard that has contacts, the number of its first one over all shards, and how many it has."""
    ends = np.cumsum([entry.contacts for entry in entries]).tolist()
    spans = ((entry.name, end - entry.contacts, entry.contacts) for entry, end in zip(entries, ends, strict=True))
    return [span for span in spans if span[2]]


def read_entries(path: Path, file: h5py.File) -> tuple[Entry, ...]:
    """The table of an index that has passed the gate; empty for any other file."""
    if "shards" not in file:
        return ()
    with reading(path):
        group = file["shards"]
        count = group["name"].size
        if not 1 <= count <= MAX_SHARDS:
            raise ModelError(f"{path}: refused: lists {count} shards, want 1 to {MAX_SHARDS}")
        columns: dict[str, list[Any]] = {}
        for field in Entry._fields:
            if field == "contacts" and field not in group:  # of a batch
                columns[field] = [0] * count
                continue
            variable, dataset = schema.TABLE[f"shards/{field}"], group[field]
            if dataset.shape != (count,) or (variable.dtype == "i8" and dataset.dtype != np.int64):
                raise ModelError(f"{path}: /shards/{field} is {dataset.dtype} {dataset.shape}, want ({count},)")
            text = variable.dtype == "str"
            columns[field] = list(read_texts(path, dataset)) if text else dataset[()].tolist()
        return tuple(Entry(*row) for row in zip(*columns.values(), strict=True))


def check_shards(path: Path, file: h5py.File, virtual: Mapping[str, Any]) -> None:
    """The gate's rule for virtual datasets: they map exactly the rows of the listed shards, which exist and match.

    Raises ModelError, naming the shard; UsageError if HDF5 would not find the shards.
    """
    kind = next((name for name in GROUPS if name in file), "")
    if "shards" not in file or not kind:
        refuse_virtual(path, virtual)
    check_schema(path, file, kind, (kind, "shards"))
    entries = read_entries(path, file)
    _check_table(path, entries)
    for name, dataset in virtual.items():
        _check_sources(path, kind, name, dataset, entries)
    _check_process(path, len(entries))
    digest = attributes_of(file[kind]).get("digest")
    for entry in entries:
        _check_shard(path, kind, entry, digest, virtual)


def _check_table(path: Path, entries: Sequence[Entry]) -> None:
    """Require plain file names beside the index and contiguous rows."""
    first = 0
    for entry in entries:
        if not is_plain(entry.name):
            raise ModelError(f"{path}: refused: shard {entry.name!r} is no plain name of a file beside the index")
        if entry.first_row != first or entry.rows < 0 or entry.contacts < 0:
            raise ModelError(f"{path}: refused: shard {entry.name!r} does not begin where the one before ends")
        first += entry.rows
    if len({entry.name for entry in entries}) < len(entries):
        raise ModelError(f"{path}: refused: lists a shard twice")


def is_plain(name: str) -> bool:
    """True for the name of a file of the same folder, also to HDF5 (which expands %)."""
    return name not in ("", ".", "..") and not set(name) & set("/\\%\0") and len(os.fsencode(name)) < 256


def _check_sources(path: Path, kind: str, name: str, dataset: Any, entries: Sequence[Entry]) -> None:
    """Require that each row of a virtual dataset comes from its own shard's dataset of the same name."""
    shape, plist = dataset.shape, dataset.get_create_plist()
    spans, groups = [(entry.name, entry.first_row, entry.rows) for entry in entries if entry.rows], GROUPS[kind]
    if name.startswith("/contact/") and kind == "rollout":
        spans, groups = contact_spans(entries), ("contact",)
    total = sum(rows for _, _, rows in spans)
    fits = name.startswith(tuple(f"/{group}/" for group in groups)) and len(shape) > 0 and shape[0] == total
    fits = fits and all(shape) and plist.get_virtual_count() == len(spans)
    for k, (file, first, rows) in enumerate(spans if fits else []):
        last = tuple(n - 1 for n in shape[1:])
        bounds = (first, *(0 for _ in last)), (first + rows - 1, *last)
        whole = (0, *(0 for _ in last)), (rows - 1, *last)
        there, here = plist.get_virtual_srcspace(k), plist.get_virtual_vspace(k)
        points = rows * int(np.prod(shape[1:], dtype=np.int64))
        fits = (
            fits
            and (plist.get_virtual_filename(k), plist.get_virtual_dsetname(k)) == (file, name)
            and (here.get_select_bounds(), here.get_select_npoints()) == (bounds, points)
            and (there.get_select_bounds(), there.get_select_npoints()) == (whole, points)
        )
    if not fits:
        raise ModelError(f"{path}: refused: {name} is a virtual dataset, and not of the shards that /shards lists")


def _check_process(path: Path, count: int) -> None:
    """Refuse settings of the process with which HDF5 would search elsewhere or fail silently."""
    import resource

    if os.environ.get("HDF5_VDS_PREFIX"):
        raise UsageError(f"{path}: its shards are beside it; HDF5_VDS_PREFIX sends HDF5 elsewhere: unset it")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    folder = Path("/proc/self/fd")
    used = sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
    if limit != resource.RLIM_INFINITY and used + count + _SPARE_FILES > limit:
        raise UsageError(f"{path}: has {count} shards, but this process may open {limit} files (ulimit -n)")


def _check_shard(path: Path, kind: str, entry: Entry, digest: object, virtual: Mapping[str, Any]) -> None:
    shard = path.parent / entry.name
    hint = f"`artsim {kind} … --resume` computes the missing shards"
    try:
        status = shard.lstat()
    except FileNotFoundError:
        raise ModelError(f"{path}: shard {entry.name} is missing; {hint}") from None
    except OSError as error:
        raise ModelError(f"{path}: shard {entry.name}: {os.strerror(error.errno or 0)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"{path}: refused: shard {entry.name} is a link or no file")
    if status.st_size != entry.bytes:
        raise ModelError(f"{path}: shard {entry.name} has {status.st_size} bytes, want {entry.bytes}; {hint}")
    try:
        file, _, theirs = open_walked(shard)
    except MissingInputError as error:
        raise ModelError(str(error)) from None
    with closing(file), reading(shard):
        refuse_virtual(shard, theirs)
        _check_content(path, kind, shard, file, entry, digest, virtual)


def _check_content(
    path: Path, kind: str, shard: Path, file: h5py.File, entry: Entry, digest: object, virtual: Mapping[str, Any]
) -> None:
    check_schema(shard, file, kind, (*GROUPS[kind], "model", "provenance"))
    facts = attributes_of(file[kind])
    if digest is None or facts.get("digest") != digest or facts.get("first_row") != entry.first_row:
        raise ModelError(
            f"{path}: shard {entry.name} is of another job than the index, or of another version of artsim"
        )
    for name, dataset in virtual.items():
        if not entry.rows and name.startswith("/controls/"):  # of no samples: the index refers to none of its inputs
            continue
        there, rows = file.get(name), entry.contacts if name.startswith("/contact/") else entry.rows
        if there is None or there.shape != (rows, *dataset.shape[1:]) or there.dtype != dataset.dtype:
            raise ModelError(f"{path}: shard {entry.name} has not the rows of {name} that the index lists")
