"""Creates HDF5 files quickly: datasets, labels and attributes through h5py's low-level interface.

The high-level interface takes three times as long to lay out a run file (19 ms instead of 6, measured), while a whole
`artsim run` takes 300 ms. Importing this module imports h5py (35 ms): import it only where a file is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5a, h5d, h5ds, h5g, h5i, h5p, h5s, h5t, h5z

from artsim.io import schema

Array = npt.NDArray[Any]

_TEXT = h5py.string_dtype("utf-8")
_TEXT_TYPE = h5t.py_create(_TEXT, logical=True)  # in the file
_TEXT_MEMORY = h5t.py_create(_TEXT)  # Python objects; writing with the file's type stores their raw bytes
PACKED_ROWS = 1 << 15
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable."
_SCALAR = h5s.create(h5s.SCALAR)
_TYPES = {name: h5t.py_create(np.dtype(name)) for name in ("f8", "f4", "i8", "i4", "i1")}
_NO_TIMES = h5p.create(h5p.DATASET_CREATE)
_NO_TIMES.set_obj_track_times(False)
_NO_GROUP_TIMES = h5p.create(h5p.GROUP_CREATE)
_NO_GROUP_TIMES.set_obj_track_times(False)
_PLACED = h5p.create(h5p.DATASET_CREATE)
_PLACED.set_obj_track_times(False)
_PLACED.set_layout(h5d.CONTIGUOUS)
_PLACED.set_alloc_time(h5d.ALLOC_TIME_EARLY)
_PLACED.set_fill_time(h5d.FILL_TIME_NEVER)
_NO_CACHE = h5p.create(h5p.DATASET_ACCESS)
_NO_CACHE.set_chunk_cache(1, 0, 0.0)  # the default is 8 MiB per dataset, for chunks that are written once


def storable(text: str) -> str:
    """Text that HDF5 can store, since file names need not be UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def set_text(where: Any, name: str, value: str) -> None:
    """Write a variable-length UTF-8 attribute on a low-level object id. File names need not be UTF-8: \\udcff."""
    attribute = h5a.create(where, name.encode(), _TEXT_TYPE, _SCALAR)
    text = storable(value)
    attribute.write(np.array(text, dtype=_TEXT), _TEXT_MEMORY)


def set_number(where: Any, name: str, value: float) -> None:
    """Write a scalar int64 or float64 attribute."""
    kind = _TYPES["i8" if isinstance(value, int) else "f8"]
    h5a.create(where, name.encode(), kind, _SCALAR).write(np.array(value, dtype="i8" if kind == _TYPES["i8"] else "f8"))


def set_attributes(where: Any, values: Mapping[str, str | int | float]) -> None:
    for name, value in values.items():
        if isinstance(value, str):
            set_text(where, name, value)
        else:
            set_number(where, name, value)


class Group:
    """One group being laid out, with its own dimension scales (netCDF readers cannot use another group's)."""

    def __init__(self, file: Any, name: str) -> None:
        self.id = h5g.create(file, name.encode(), None, _NO_GROUP_TIMES)
        self._scales: dict[str, Any] = {}

    def fixed(
        self, name: str, values: Array, dims: Sequence[str], attributes: Mapping[str, str], *, gzip: bool = False
    ) -> Any:
        """Write a dataset of known size; gzip packs it in pieces of at most PACKED_ROWS rows."""
        text = values.dtype == object
        kind = _TEXT_TYPE if text else _TYPES[values.dtype.str[1:]]
        space = h5s.create_simple(values.shape) if values.ndim else _SCALAR
        plist = _NO_TIMES
        if gzip and values.size:
            plist = _packed((min(len(values), PACKED_ROWS), *values.shape[1:]))
        dataset = h5d.create(self.id, name.encode(), kind, space, plist)
        if values.size:
            whole = np.array(values, dtype=_TEXT) if text else np.ascontiguousarray(values)
            dataset.write(h5s.ALL, h5s.ALL, whole, _TEXT_MEMORY if text else kind)
        self._finish(dataset, name, dims, attributes)
        return dataset

    def placed(
        self, name: str, dtype: str, shape: Sequence[int], dims: Sequence[str], attributes: Mapping[str, str]
    ) -> int:
        """Create a contiguous dataset whose bytes are written without HDF5, at the returned place in the file."""
        dataset = h5d.create(self.id, name.encode(), _TYPES[dtype], h5s.create_simple(tuple(shape)), _PLACED)
        self._finish(dataset, name, dims, attributes)
        return int(dataset.get_offset() or 0)  # none when it has no entry

    def virtual(
        self,
        name: str,
        dtype: str,
        shape: Sequence[int],
        dims: Sequence[str],
        attributes: Mapping[str, str],
        sources: Sequence[tuple[str, int, int]],
    ) -> None:
        """Create a dataset whose rows are those of the same dataset in other files: (file, first row, rows) of each.

        Readers other than artsim get NaN, or -1, for the rows of a missing file.
        """
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_obj_track_times(False)
        plist.set_fill_value(np.array(np.nan if dtype.startswith("f") else -1, dtype))
        space = h5s.create_simple(tuple(shape))
        path = h5i.get_name(self.id) + b"/" + name.encode()
        for file, first, rows in sources:
            there, origin = h5s.create_simple((rows, *shape[1:])), tuple(0 for _ in shape[1:])
            there.select_hyperslab((0, *origin), there.shape)  # without it its extent is not stored
            space.select_hyperslab((first, *origin), there.shape)
            plist.set_virtual(space, file.encode(), path, there)
        space.select_all()
        self._finish(h5d.create(self.id, name.encode(), _TYPES[dtype], space, plist), name, dims, attributes)

    def bare_dimension(self, name: str, size: int) -> None:
        """Create a dimension without labels, as netCDF-4 does: a scale that is never stored."""
        dataset = h5d.create(self.id, name.encode(), _TYPES["f4"], h5s.create_simple((size,)), _NO_TIMES)
        h5ds.set_scale(dataset, BARE_DIMENSION + b"%10d" % size)
        self._scales[name] = dataset

    def growing(
        self,
        name: str,
        dtype: str,
        row: Sequence[int],
        rows_per_chunk: int,
        dims: Sequence[str],
        attributes: Mapping[str, str],
        compress: str | None = None,
    ) -> Any:
        """Create an empty dataset that grows along its first dimension; `row` is the shape of one row."""
        plist = _packed((rows_per_chunk, *(max(1, n) for n in row)), compress)
        space = h5s.create_simple((0, *row), (h5s.UNLIMITED, *row))
        dataset = h5d.create(self.id, name.encode(), _TYPES[dtype], space, plist, None, None if compress else _NO_CACHE)
        self._finish(dataset, name, dims, attributes)
        return dataset

    def _finish(self, dataset: Any, name: str, dims: Sequence[str], attributes: Mapping[str, str]) -> None:
        set_attributes(dataset, attributes)
        if list(dims) == [name]:
            h5ds.set_scale(dataset, name.encode())
            self._scales[name] = dataset
            return
        for index, dim in enumerate(dims):
            h5ds.attach_scale(dataset, self._scales[dim], index)


ZSTD = 32015  # the number of the filter, registered by hdf5plugin


def has_zstd() -> bool:
    """True if zstd can be read and written: hdf5plugin is installed and registered with HDF5."""
    from importlib.util import find_spec

    if find_spec("hdf5plugin") is None:
        return False
    import hdf5plugin

    return bool(hdf5plugin.FILTERS["zstd"] == ZSTD)


def _packed(chunk: tuple[int, ...], compress: str | None = "gzip") -> Any:
    """The creation properties of a chunked dataset."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    plist.set_chunk(chunk)
    if compress:
        plist.set_shuffle()
    if compress == "gzip":
        plist.set_deflate(4)
    if compress == "zstd":
        plist.set_filter(ZSTD, h5z.FLAG_MANDATORY, (3,))
    return plist


def append_rows(dataset: Any, start: int, values: Array) -> None:
    """Extend `dataset` to start + len(values) rows and write them; float64 or integer, C order."""
    dataset.set_extent((start + values.shape[0], *values.shape[1:]))
    if values.size == 0:
        return
    place = dataset.get_space()
    place.select_hyperslab((start,) + (0,) * (values.ndim - 1), values.shape)
    dataset.write(h5s.create_simple(values.shape), place, values, _TYPES[values.dtype.str[1:]])


def write_whole(dataset: Any, values: Array) -> None:
    """Overwrite a dataset of fixed size."""
    if values.size:
        dataset.write(h5s.ALL, h5s.ALL, values, _TYPES[values.dtype.str[1:]])


def cut(file: h5py.File, rows: int, controls: int, checkpoints: int) -> None:
    """Truncate a run file to so many rows with their tables, inputs and checkpoints."""
    _shorten(file["trajectory"], rows)
    for name, ragged in schema.RAGGED.items():
        if name in file:
            entries = int(np.sum(file[f"{name}/{ragged.counted_by}"][:rows]))
            _shorten(file[name], entries, ("time", ragged.counted_by), rows)
    _shorten(file["controls"], controls)
    if "checkpoint" in file:
        group = file["checkpoint"]
        table = ("contact", "contact_row")
        known = int(np.sum(group["contact_count"][:checkpoints])) if "contact" in group else 0
        _shorten(group, checkpoints, table, known)


def _shorten(group: h5py.Group, rows: int, others: tuple[str, ...] = (), other_rows: int = 0) -> None:
    """Truncate all growing datasets of a group to `rows` rows, and `others` to `other_rows`."""
    for name, dataset in group.items():
        if dataset.ndim and dataset.maxshape[0] is None:
            dataset.resize(other_rows if name in others else rows, 0)
    group["n_valid"][()] = rows


def open_growing(file: h5py.File, path: str) -> Any:
    """Open a dataset to append to or to overwrite, without a cache if none is needed."""
    plist = file[path].id.get_create_plist()
    packed = plist.get_layout() == h5d.CHUNKED and plist.get_nfilters()
    return h5d.open(file.id, path.encode(), None if packed else _NO_CACHE)
