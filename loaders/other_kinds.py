"""Files that are no models, recognised by their first bytes: outputs, arrays, meshes, compressed files."""

from __future__ import annotations

from artsim.sim.articulation.description import Source
from artsim.sim.foundation.errors import ModelError

OTHER_KINDS = {
    b"\x89HDF\r\n\x1a\n": "an HDF5 file, no model; `artsim info` tells what it holds, `run --config` runs it again",
    b"\x93NUMPY": "a .npy array, no model; configurations go to `artsim batch --input`",
    b"PK\x03\x04": "a .npz or zip archive, no model",
    b"solid ": "a mesh (STL), no model",
    b"ply": "a mesh (PLY), no model",
    b"glTF": "a mesh (glTF), no model",
    b"\x1f\x8b": "compressed (gzip); `zcat FILE | artsim … -` reads it",
}
"""Kinds of files by their first bytes, with which no model begins."""


def refuse_other_kinds(data: bytes, name: str) -> None:
    """Raise ModelError for the bytes of a file of a known kind that is no model."""
    for first, told in OTHER_KINDS.items():
        if data.startswith(first):
            raise ModelError(f"{Source(name)}: is {told}")
