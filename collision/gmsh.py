"""Reads untrusted Gmsh files, versions 2.2 and 4.1, text and binary, into points and elements.

As MuJoCo's flexcomp, it accepts one block of consecutively numbered points and one of elements of a single kind: lines,
triangles or tetrahedra. Format: Gmsh's reference manual, "MSH file format". No declared count is trusted (mesh.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.collision.mesh import (
    BYTES_PER_FACE,
    KEPT_ABOVE,
    MeshError,
    Real,
    check_faces,
    check_lengths,
    merged,
    read_bytes,
)
from artsim.collision.mesh import numbers as text_numbers

_Whole = NDArray[np.int64]
_FORMAT = re.compile(rb"\$MeshFormat\s+(\S{1,20})\s+([01])\s+(\d{1,4})\s")
_CORNERS = {1: 2, 2: 3, 4: 4}  # of lines, triangles and tetrahedra, by Gmsh's numbers of kinds
_HEAD = np.dtype([("counts", "<i8", 4), ("kinds", "<i4", 3), ("here", "<i8")])  # of a section of version 4.1, one block
_NODE = np.dtype([("tag", "<i4"), ("place", "<f8", 3)])  # of version 2.2


class Lattice(NamedTuple):
    """Points, and the indices of the points of each element."""

    points: Real  # (n, 3) [m]
    elements: _Whole  # (m, 2), (m, 3) or (m, 4), from 0


def read_gmsh(path: Path, max_elements: int) -> Lattice:
    """Read the points and elements of a Gmsh file. Raises MeshError."""
    try:
        data = read_bytes(path, KEPT_ABOVE + BYTES_PER_FACE * max_elements)
        found = _FORMAT.match(data)
        if not found:
            raise MeshError("not a Gmsh file: it does not begin with $MeshFormat, version, kind and size")
        version, binary = found[1].decode("latin-1"), found[2] == b"1"
        if version not in _READERS or (binary and found[3] != b"8"):
            raise MeshError(f"version {version!r} with numbers of {found[3].decode()} bytes, want 2.2 or 4.1 with 8")
        nodes, elements = _READERS[version]
        points, first = nodes(section(data, b"Nodes"), binary)
        corners = elements(section(data, b"Elements"), binary, max_elements) - first
        check_lengths(points)
        if not len(points) or not len(corners):
            raise MeshError("no elements in it")
        outside = ((corners < 0) | (corners >= len(points))).any(axis=1)
        if outside.any():
            row = int(np.argmax(outside)) + 1
            raise MeshError(f"element {row} refers to a point that does not exist; there are {len(points)}")
    except MeshError as error:
        raise MeshError(f"{path.name!r}: {error}") from None
    if corners.shape[1] == 3:  # like MuJoCo's surfaces: points that are equal in single precision are merged
        points, index = merged(points.astype(np.float32))
        corners = index[corners]
    return Lattice(points, corners)


def section(data: bytes, name: bytes) -> bytes:
    """The content between the lines $name and $Endname."""
    start = data.find(b"$" + name)
    end = data.find(b"$End" + name, start + 1)
    line = data.find(b"\n", start)
    if start < 0 or not start < line < end:
        raise MeshError(f"${name.decode()} is missing, or does not end")
    return data[line + 1 : end]


def whole(values: NDArray[Any]) -> _Whole:
    """Convert counts or tags of a text file to integers. Raises MeshError for other numbers."""
    if not (np.abs(values) < 2.0**53).all() or (values != np.trunc(values)).any():
        raise MeshError("a number or name of a point or an element is not whole")
    return values.astype(np.int64)


def _corners_of(kind: int) -> int:
    """The number of points of an element of a kind. Raises MeshError for an unknown kind."""
    if kind not in _CORNERS:
        raise MeshError(f"elements of kind {kind}, want 1, 2 or 4: lines, triangles or tetrahedra")
    return _CORNERS[kind]


def check_names(names: NDArray[Any], first: int) -> None:
    """Refuse points that are not numbered consecutively."""
    if (names != np.arange(first, first + len(names))).any():
        raise MeshError(f"its points are not numbered {first} to {first + len(names) - 1}")


def check_size(what: str, declared: int, room: bool) -> None:
    """Refuse a section that holds less than it declares."""
    if declared < 1 or not room:
        raise MeshError(f"declares {declared} {what}, the section holds another number of them")


def head_41(body: bytes, binary: bool) -> tuple[list[int], Real]:
    """The eight leading numbers of a section of one block, and the rest as numbers of 8 bytes."""
    if binary:
        if len(body) < _HEAD.itemsize:
            raise MeshError("a section ends in its header")
        head = np.frombuffer(body, _HEAD, 1)[0]
        begin = [*head["counts"].tolist(), *head["kinds"].tolist(), int(head["here"])]
        rest = np.frombuffer(body, "<f8", (len(body) - _HEAD.itemsize) // 8, _HEAD.itemsize)
    else:
        values = text_numbers(body.split())
        begin, rest = whole(values[:8]).tolist(), values[8:]
        if len(begin) < 8:
            raise MeshError("a section ends in its header")
    if begin[0] != 1 or begin[1] != begin[7]:
        raise MeshError(f"{begin[1]} points or elements in {begin[0]} blocks, {begin[7]} in the first; want one block")
    return begin, rest


def nodes_41(body: bytes, binary: bool) -> tuple[Real, int]:
    """Points (n, 3), and the first one's number."""
    head, rest = head_41(body, binary)
    _, count, first, last = head[:4]
    check_size("points", count, len(rest) == 4 * count and last - first + 1 == count)
    check_names(rest[:count].view("<i8") if binary else whole(rest[:count]), first)
    return rest[count:].reshape(-1, 3), first


def elements_41(body: bytes, binary: bool, most: int) -> _Whole:
    """The points' numbers of each element (m, 2 to 4)."""
    head, rest = head_41(body, binary)
    check_faces(head[1], most)
    width = 1 + _corners_of(head[6])
    check_size("elements", head[1], len(rest) == width * head[1])
    return (rest.view("<i8") if binary else whole(rest)).reshape(-1, width)[:, 1:]


def head_22(body: bytes) -> tuple[int, bytes]:
    """The count on the first line of a section, and the rest."""
    line, _, rest = body.partition(b"\n")
    counts = whole(text_numbers(line.split()))
    if len(counts) != 1:
        raise MeshError("a section does not begin with a count")
    return int(counts[0]), rest


def nodes_22(body: bytes, binary: bool) -> tuple[Real, int]:
    """Points (n, 3), and the first one's number."""
    count, rest = head_22(body)
    if binary:
        check_size("points", count, len(rest) // _NODE.itemsize == count)
        nodes = np.frombuffer(rest, _NODE, count)
        names, points = nodes["tag"], nodes["place"].astype(np.float64)
    else:
        values = text_numbers(rest.split())
        check_size("points", count, len(values) == 4 * count)
        names, points = whole(values[0::4]), values.reshape(-1, 4)[:, 1:]
    check_names(names, 1)
    return points, 1


def elements_22(body: bytes, binary: bool, most: int) -> _Whole:
    """The points' numbers of each element (m, 2 to 4)."""
    count, rest = head_22(body)
    check_faces(count, most)
    if binary:
        return blocks_22(np.frombuffer(rest, "<i4", len(rest) // 4), count)
    values = whole(text_numbers(rest.split()))
    check_size("elements", count, len(values) > 2)
    kind, tags = int(values[1]), int(values[2])
    width = 3 + tags + _corners_of(kind)
    check_size("elements", count, tags >= 0 and len(values) == width * count)
    rows = values.reshape(-1, width)
    if (rows[:, 1:3] != (kind, tags)).any():
        raise MeshError("elements of several kinds, want one")
    return rows[:, 3 + tags :]


def blocks_22(values: NDArray[np.int32], count: int) -> _Whole:
    """Elements of a binary section: runs of them, each with its kind, length and number of tags."""
    rows: list[_Whole] = []
    at = found = 0
    while at + 3 <= len(values):
        kind, here, tags = values[at : at + 3].tolist()
        width = 1 + tags + _corners_of(kind)
        end = at + 3 + here * width
        check_size("elements", count, here > 0 and tags >= 0 and end <= len(values))
        rows.append(values[at + 3 : end].reshape(-1, width)[:, 1 + tags :].astype(np.int64))
        at, found = end, found + here
    check_size("elements", count, at == len(values) and found == count)
    if len({row.shape[1] for row in rows}) > 1:
        raise MeshError("elements of several kinds, want one")
    return np.concatenate(rows)


_READERS: dict[str, tuple[Callable[[bytes, bool], tuple[Real, int]], Callable[[bytes, bool, int], _Whole]]] = {
    "2.2": (nodes_22, elements_22),
    "4.1": (nodes_41, elements_41),
}
