"""A walk over all objects of an untrusted HDF5 file, without following or reading anything.

Accepted are hard links, numbers and texts, known filters, and sizes that the file can really hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.sim.foundation.errors import ModelError

if TYPE_CHECKING:
    import h5py

MAX_OBJECTS = 20_000
MAX_DEPTH = 16
MAX_CHUNK_BYTES = 1 << 28
MAX_TEXT_BYTES = 1 << 20  # of a fixed-length text
_SMALL = 1 << 20  # bytes that may be declared without being stored (fill values)
PLAIN_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32"}
ZSTD = 32015  # the number of the filter, registered by hdf5plugin
RATIOS = {1: 1032, ZSTD: 1 << 15}  # largest compression ratios of zlib and zstd
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable."
"""The beginning of the name of a dimension without labels, as netCDF-4 writes it."""


def has_zstd() -> bool:
    """True if zstd can be read and written: hdf5plugin is installed and registered with HDF5."""
    from importlib.util import find_spec

    if find_spec("hdf5plugin") is None:
        return False
    import hdf5plugin

    return bool(hdf5plugin.FILTERS["zstd"] == ZSTD)


class Walk:
    """Visits every object of a file once, without following anything or reading data."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self._path, self._root = path, file.id
        self._file_bytes = path.stat().st_size
        self._seen: set[int] = set()
        self._virtual: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Check all objects; returns the virtual datasets by path, whose sources are still to be checked."""
        from h5py import h5g, h5o

        groups: list[tuple[Any, str, int]] = [(h5g.open(self._root, b"/"), "", 0)]
        self._visit(groups[0][0], "/")
        while groups:
            group, name, depth = groups.pop()
            if depth >= MAX_DEPTH or len(self._seen) + group.get_num_objs() > MAX_OBJECTS:
                raise self._refused(name, "has too many groups or datasets")
            for key in group:
                child = f"{name}/{key.decode('utf-8', 'backslashreplace')}"
                self._check_link(group, key, child)
                item = h5o.open(group, key)
                first = self._visit(item, child)
                if isinstance(item, h5g.GroupID):
                    if not first:
                        raise self._refused(child, "is linked in a circle or twice")
                    groups.append((item, child, depth + 1))
                elif first:
                    self._check_dataset(item, child)
        return self._virtual

    def _refused(self, name: str, why: str) -> ModelError:
        return ModelError(f"{self._path}: refused: {name or '/'!s} {why}")

    def _visit(self, item: Any, name: str) -> bool:
        """Note the object; False if it was visited before under another name."""
        from h5py import h5o

        address = h5o.get_info(item).addr
        if address in self._seen:
            return False
        self._seen.add(address)
        return True

    def _check_link(self, group: Any, key: bytes, name: str) -> None:
        from h5py import h5l

        kind = group.links.get_info(key).type
        if kind != h5l.TYPE_HARD:
            what = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
            raise self._refused(name, f"is {what.get(kind, 'a link of an unknown kind')}")

    def _check_dataset(self, item: Any, name: str) -> None:
        from h5py import h5d

        if not isinstance(item, h5d.DatasetID):
            raise self._refused(name, "is a named datatype")
        plist = item.get_create_plist()
        if plist.get_layout() != h5d.VIRTUAL and plist.get_external_count():
            raise self._refused(name, "has its data in another file")
        self._check_filters(plist, name)
        width = self._check_type(item.get_type(), name)
        if plist.get_layout() == h5d.VIRTUAL:
            self._virtual[name] = item
            return
        self._check_size(item, plist, width, name)

    def _check_filters(self, plist: Any, name: str) -> None:
        for index in range(plist.get_nfilters()):
            code, _, _, label = plist.get_filter(index)
            if code == ZSTD and not has_zstd():
                raise self._refused(name, "is compressed by zstd, which needs hdf5plugin: pip install 'artsim[zstd]'")
            if code not in (*PLAIN_FILTERS, ZSTD):
                words = label.decode("utf-8", "replace") or "no name"
                raise self._refused(name, f"needs the filter {code} ({words}), which artsim does not use (hdf5plugin)")

    def _check_type(self, kind: Any, name: str) -> int:
        """The bytes of one entry; only numbers, enumerations (booleans) and texts are accepted."""
        from h5py import h5t

        family, size = kind.get_class(), int(kind.get_size())
        if family in (h5t.INTEGER, h5t.FLOAT, h5t.ENUM) and size <= 16:
            return size
        if family == h5t.STRING and size <= MAX_TEXT_BYTES:
            return size
        raise self._refused(name, "holds neither numbers nor texts")

    def _check_size(self, item: Any, plist: Any, width: int, name: str) -> None:
        """Refuse a declared size that the file cannot store, such as 10^12 doubles in a kilobyte."""
        from h5py import h5d

        count, ratio = 1, 1
        if _is_bare_dimension(item):
            return  # never stored, regardless of its length
        for n in item.get_space().shape or ():
            count *= int(n)
        stored = min(int(item.get_storage_size()), self._file_bytes)
        if plist.get_layout() == h5d.CHUNKED:
            chunk = width
            for n in plist.get_chunk():
                chunk *= int(n)
            if chunk > MAX_CHUNK_BYTES:
                raise self._refused(name, f"has chunks of {chunk} bytes; at most {MAX_CHUNK_BYTES} are read")
            packers = [RATIOS.get(plist.get_filter(k)[0], 1) for k in range(plist.get_nfilters())]
            if len([packer for packer in packers if packer > 1]) > 1:
                raise self._refused(name, "is compressed twice")
            ratio = max([1, *packers])
        if count * width > _SMALL + stored * ratio:
            raise self._refused(name, f"declares {count} entries, but {stored} bytes are stored")


def _is_bare_dimension(item: Any) -> bool:
    """True for a dimension without labels, as in netCDF-4 files and /batch: a scale that was never written.

    It is always of type float32, which nothing here reads as labels, `status` or counts, whatever length it declares.
    """
    from h5py import h5a, h5t

    kind = item.get_type()
    if kind.get_class() != h5t.FLOAT or kind.get_size() != 4:
        return False
    if len(item.get_space().shape or ()) != 1 or item.get_storage_size() or not h5a.exists(item, b"NAME"):
        return False
    name = h5a.open(item, b"NAME")
    kind = name.get_type()
    if name.shape != () or kind.get_class() != h5t.STRING or kind.is_variable_str() or kind.get_size() > 256:
        return False
    text = np.zeros((), f"S{kind.get_size()}")
    name.read(text)
    return bytes(text[()]).startswith(BARE_DIMENSION)
