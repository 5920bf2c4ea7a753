"""Values of files that have passed the gate, read in bounds, since a small file may unpack to any amount of memory.

Errors of HDF5 and h5py on damaged files are raised as ModelError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.errors import ArtsimError, ModelError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import h5py

WHOLE_BYTES = 1 << 26  # bytes to which a dataset that is read whole may unpack regardless of its stored size
ROWS_BYTES = 1 << 30  # likewise for rows that are read at once
CACHED_BYTES = 1 << 20  # bytes of a chunk that HDF5 caches for its next row


def read_whole(path: Path, dataset: Any) -> Array:
    """Read a dataset that is not a table of rows. Raises ModelError if it unpacks to far more than is stored."""
    refuse_unpacking(path, dataset, int(dataset.nbytes), WHOLE_BYTES)
    values: Array = dataset[()]
    return values


def refuse_unpacking(path: Path, dataset: Any, size: int, most: int) -> None:
    """Raise ModelError if reading unpacks more than `most` bytes and far more than is stored."""
    if size > allowed(most) and size > 4 * (stored := int(dataset.id.get_storage_size())):
        raise ModelError(f"{path}: refused: {dataset.name} unpacks from {stored} bytes to {size}; {MORE}")


def row_bytes(dataset: Any) -> int:
    """Bytes of a row of a dataset."""
    return int(dataset.dtype.itemsize * np.prod(dataset.shape[1:], dtype=np.int64))


def read_count(path: Path, dataset: Any) -> int:
    """Read a single non-negative integer. Raises ModelError for anything else."""
    if dataset.shape != () or dataset.dtype.kind not in "iu" or (value := int(dataset[()])) < 0:
        raise ModelError(f"{path}: {dataset.name} is {dataset.dtype} {dataset.shape}, want one whole number from 0")
    return value


def read_texts(path: Path, dataset: h5py.Dataset) -> tuple[str, ...]:
    """Read a text dataset, a few entries at a time, since a crafted file may point 10^6 entries to one long text."""
    with reading(path):
        if dataset.dtype.kind not in "SO":
            raise ModelError(f"{path}: {dataset.name} holds {dataset.dtype}, want texts")
        left = 4 * path.stat().st_size
        texts: list[str] = []
        for start in range(0, dataset.size, 16):
            block = [dataset[()]] if dataset.shape == () else dataset[start : start + 16]
            texts += [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in block]
            left -= sum(len(text) for text in texts[start:])
            if left < 0:
                raise ModelError(f"{path}: refused: {dataset.name} unpacks to more text than the file holds")
        return tuple(texts)


def attributes_of(item: Any) -> dict[str, Any]:
    """The scalar texts and numbers among an object's attributes; others are not read."""
    from h5py import h5a, h5t

    values = {}
    for name in item.attrs:
        attribute = h5a.open(item.id, name.encode())
        if attribute.shape == () and attribute.get_type().get_class() in (h5t.STRING, h5t.INTEGER, h5t.FLOAT):
            values[name] = _plain(item.attrs[name])
    return values


def _plain(value: Any) -> Any:
    """A value of h5py as str, int or float."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every exception of HDF5 or h5py on a damaged file into a ModelError."""
    try:
        yield
    except ArtsimError:
        raise
    except MemoryError:
        raise ModelError(f"{path}: damaged: asks for more memory than there is") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise ModelError(f"{path}: damaged: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """The operating system's message if there is one, else the first line of the error."""
    if isinstance(error, OSError) and error.errno and error.strerror and "\n" not in error.strerror:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).split("\n", 1)[0]
