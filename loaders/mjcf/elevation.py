"""Heights of <hfield file=…>: a PNG, or MuJoCo's own format."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by PNG's colour type: grey, RGB, grey and alpha, RGBA


def read_elevation(path: Path, most: int) -> tuple[int, int, list[float]]:
    """Rows, columns and values of a file, by rows from low y to high. Raises ValueError: what is wrong with it."""
    limit = 64 + 8 * most
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if len(data) > limit:
        raise ValueError(f"{path}: more than {limit} bytes")
    try:
        found = _of_png(data, most) if path.suffix.lower() == ".png" else _of_floats(data)
    except (ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"{path}: {error}") from None
    if min(found.shape) < 2:
        raise ValueError(f"{path}: want 2 rows and 2 columns at least")
    return *found.shape, found.ravel().tolist()


def _of_floats(data: bytes) -> NDArray[np.float64]:
    """int32 rows, int32 columns, float32 for each point."""
    rows, columns = struct.unpack_from("<2i", data)
    if rows < 1 or columns < 1 or len(data) != 8 + 4 * rows * columns:
        raise ValueError(f"says {rows} rows and {columns} columns, which is not what its {len(data)} bytes hold")
    values = np.frombuffer(data, "<f4", offset=8).reshape(rows, columns).astype(float)
    if not np.isfinite(values).all():
        raise ValueError("a height is not finite")
    return values


def _of_png(data: bytes, most: int) -> NDArray[np.float64]:
    """The grey, or red, of an image, the lowest line first, as MuJoCo has it: 8 bits, of 16 the higher."""
    if not data.startswith(_PNG):
        raise ValueError("is not a PNG image")
    head, packed = b"", b""
    place = len(_PNG)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        head, packed = (content if kind == b"IHDR" else head), (packed + content if kind == b"IDAT" else packed)
        place += 12 + length
    columns, rows, depth, colour, _, _, interlaced = struct.unpack(">2I5B", head)
    if colour not in _CHANNELS or depth not in (8, 16) or interlaced:
        raise ValueError("want a PNG of 8 or 16 bits, without palette, not interlaced")
    if not 0 < rows * columns <= most:
        raise ValueError(f"has {rows} x {columns} points; at most {most} are read")
    width = _CHANNELS[colour] * depth // 8
    size = rows * (columns * width + 1)
    raw = zlib.decompressobj().decompress(packed, size)
    if len(raw) != size:
        raise ValueError("the image is cut off")
    lines = np.frombuffer(raw, np.uint8).reshape(rows, columns * width + 1)
    return _unfiltered(lines, columns, width)[::-1, :, 0].astype(float)


def _unfiltered(lines: Bytes, columns: int, width: int) -> Bytes:
    """Points (rows, columns, width) of lines that begin with the number of their filter (PNG, chapter 9)."""
    points = np.zeros((len(lines), columns, width), np.uint8)
    above = np.zeros((columns, width), np.uint8)
    for row, line in enumerate(lines):
        kind, given = int(line[0]), line[1:].reshape(columns, width)
        if kind == 0:
            points[row] = given
        elif kind == 1:
            points[row] = np.cumsum(given, axis=0, dtype=np.uint8)
        elif kind == 2:
            points[row] = given + above
        elif kind in (3, 4):
            points[row] = _by_neighbours(kind, given, above)
        else:
            raise ValueError(f"has a line of filter {kind}")
        above = points[row]
    return points


def _by_neighbours(kind: int, given: Bytes, above: Bytes) -> Bytes:
    """A line of filter 3 (means of left and above) or 4 (Paeth: the one of left, above, corner near their plane)."""
    line: list[list[int]] = []
    width = given.shape[1]
    left, corner = [0] * width, [0] * width
    for values, up in zip(given.tolist(), above.tolist(), strict=True):
        left = [
            (value + ((a + b) // 2 if kind == 3 else _paeth(a, b, c))) & 255
            for value, a, b, c in zip(values, left, up, corner, strict=True)
        ]
        corner = up
        line.append(left)
    return np.array(line, np.uint8)


def _paeth(a: int, b: int, c: int) -> int:
    near = a + b - c
    da, db, dc = abs(near - a), abs(near - b), abs(near - c)
    if da <= db and da <= dc:
        return a
    return b if db <= dc else c
