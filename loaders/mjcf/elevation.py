"""Heights of <hfield file=…>: a PNG, or MuJoCo's own format."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_POINTS = 5_000_000  # of an image: filters are undone point by point, which takes some seconds for this many
_MOST_LINES = 1 << 15  # of an image: each costs some microseconds, for any width
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by PNG's colour type: grey, RGB, grey and alpha, RGBA


def read_elevation(path: Path, most: int) -> NDArray[np.float64]:
    """Values (rows, columns) of a file, rows from low y to high. Raises ValueError with the reason."""
    limit = 64 + 8 * most
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if len(data) > limit:
        raise ValueError(f"{path}: more than {limit} bytes")
    try:
        found = _of_png(data, min(most, _MOST_POINTS)) if path.suffix.lower() == ".png" else _of_floats(data)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"{path}: {error}") from None
    if min(found.shape) < 2:
        raise ValueError(f"{path}: want 2 rows and 2 columns at least")
    return found


def _of_floats(data: bytes) -> NDArray[np.float64]:
    """Values of MuJoCo's format: int32 rows, int32 columns, float32 for each point."""
    rows, columns = struct.unpack_from("<2i", data)
    if rows < 1 or columns < 1 or len(data) != 8 + 4 * rows * columns:
        raise ValueError(f"says {rows} rows and {columns} columns, which is not what its {len(data)} bytes hold")
    values = np.frombuffer(data, "<f4", offset=8).reshape(rows, columns).astype(float)
    if not np.isfinite(values).all():
        raise ValueError("a height is not finite")
    return values


def _of_png(data: bytes, most: int) -> NDArray[np.float64]:
    """Grey or red of an image, the lowest line first, as in MuJoCo: 8 bits, the higher byte of 16 bits."""
    if not data.startswith(_PNG):
        raise ValueError("is not a PNG image")
    head, pieces = b"", []
    place = len(_PNG)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind = data[place + 4 : place + 8]
        if kind == b"IHDR":
            head = data[place + 8 : place + 8 + length]
        elif kind == b"IDAT":
            pieces.append(data[place + 8 : place + 8 + length])
        place += 12 + length
    columns, rows, depth, colour, _, _, interlaced = struct.unpack(">2I5B", head)
    if colour not in _CHANNELS or depth not in (8, 16) or interlaced:
        raise ValueError("want a PNG of 8 or 16 bits, without palette, not interlaced")
    if not 0 < rows * columns <= most:
        raise ValueError(f"has {rows} x {columns} points; at most {most} are read")
    if rows > _MOST_LINES:
        raise ValueError(f"has {rows} lines; at most {_MOST_LINES} are read")
    width = _CHANNELS[colour] * depth // 8
    size = rows * (columns * width + 1)
    raw = zlib.decompressobj().decompress(b"".join(pieces), size)
    if len(raw) != size:
        raise ValueError("the image is cut off")
    lines = np.frombuffer(raw, np.uint8).reshape(rows, columns * width + 1)
    return _unfiltered(lines[:, 0], lines[:, 1::width])[::-1].astype(float)


def _unfiltered(kinds: Bytes, lines: Bytes) -> Bytes:
    """Values of lines (rows, columns), given their filters (rows,) (PNG, chapter 9). The first byte of each point is
    enough: filters combine only bytes of the same index within a point.
    """
    points = np.zeros(lines.shape, np.uint8)
    above = np.zeros(lines.shape[1], np.uint8)
    for row, (kind, given) in enumerate(zip(kinds.tolist(), lines, strict=True)):
        if kind == 0:
            points[row] = given
        elif kind == 1:
            points[row] = np.cumsum(given, dtype=np.uint8)
        elif kind == 2:
            points[row] = given + above
        elif kind in (3, 4):
            points[row] = list((_by_means if kind == 3 else _by_paeth)(given.tolist(), above.tolist()))
        else:
            raise ValueError(f"has a line of filter {kind}")
        above = points[row]
    return points


def _by_means(given: list[int], above: list[int]) -> Iterator[int]:
    """A line of filter 3: differences from the mean of left and above."""
    left = 0
    for value, up in zip(given, above, strict=True):
        left = (value + (left + up) // 2) & 255
        yield left


def _by_paeth(given: list[int], above: list[int]) -> Iterator[int]:
    """A line of filter 4: differences from the one of left, above and corner nearest to left + above - corner."""
    left = corner = 0
    for value, up in zip(given, above, strict=True):
        to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        if to_left <= to_up and to_left <= to_corner:
            left = (value + left) & 255
        else:
            left = (value + (up if to_up <= to_corner else corner)) & 255
        corner = up
        yield left
