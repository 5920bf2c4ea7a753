"""The kind of a file: by its first bytes, and by the groups and attributes of its root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from artsim.io.format import schema
from artsim.io.gate.values import attributes_of
from artsim.sim.foundation.errors import ModelError, listed

if TYPE_CHECKING:
    import h5py


def looks_like(head: bytes) -> str:
    """The kind of a file that begins with these bytes, in words."""
    if not head:
        return "an empty file"
    if head.startswith(b"MATLAB"):
        return "a MATLAB file"
    if head.startswith(b"PK\x03\x04"):
        return "a zip or .npz archive"
    if head.startswith(b"\x93NUMPY"):
        return "a .npy array"
    if head.startswith(b"CDF"):
        return "a netCDF 3 file"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return "XML, perhaps a robot's file"
    text = all(byte >= 32 or byte in b"\t\r\n" for byte in head)
    return "a text file" if text else "some other binary file"


def check_schema(path: Path, file: h5py.File, kind: str, groups: Sequence[str]) -> None:
    """Refuse anything but a `kind` of output of this major version of the format, and name the kind that it is."""
    import h5py

    version = attributes_of(file).get("artsim_schema")
    if version is None:
        raise ModelError(f"{path}: is an HDF5 file, but not artsim's{_kind_of(file)}")
    if str(version).split(".")[0] != schema.SCHEMA_VERSION.split(".")[0]:
        raise ModelError(f"{path}: is written in artsim schema {version}; this artsim reads {schema.SCHEMA_VERSION}")
    for name in groups:
        if not isinstance(file.get(name), h5py.Group):
            raise ModelError(f"{path}: is an artsim file, but not of a {kind}: it has no group /{name}")


def _kind_of(file: h5py.File) -> str:
    """The text `; it looks like …` for files that a robotics user may confuse."""
    keys, attributes = set(file), set(file.attrs)
    if {"data", "mask"} <= keys or ("data" in keys and "env_args" in file["data"].attrs):
        return "; it looks like a robomimic dataset"
    if any(key.startswith("episode_") for key in keys) or "minari_version" in attributes:
        return "; it looks like a Minari dataset"
    if {"keras_version", "layer_names"} & attributes or "model_weights" in keys:
        return "; it looks like a Keras model"
    if "_NCProperties" in attributes:
        return "; it looks like a netCDF file"
    return f"; it holds {listed(sorted(keys), 6)}"
