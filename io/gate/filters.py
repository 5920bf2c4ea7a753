"""Filters of HDF5: those that artsim knows, and the one that is installed on request."""

from __future__ import annotations

PLAIN_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32"}
ZSTD = 32015  # the number of the filter, registered by hdf5plugin
RATIOS = {1: 1032, ZSTD: 1 << 15}  # largest compression ratios of zlib and zstd


def has_zstd() -> bool:
    """True if zstd can be read and written: hdf5plugin is installed and registered with HDF5."""
    from importlib.util import find_spec

    if find_spec("hdf5plugin") is None:
        return False
    import hdf5plugin

    return bool(hdf5plugin.FILTERS["zstd"] == ZSTD)
