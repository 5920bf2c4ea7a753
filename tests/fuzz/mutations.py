"""Bytes changed at random, as damage and malice do: bits, runs, numbers, words of the format, pieces of seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence

NUMBERS = (
    *(b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"9007199254740993", b"-2147483649", b"4294967296"),
    *(b"1e29", b"1,5", b"0x10", b"1_0", b"", b" ", b"1 2 3 4 5 6 7 8 9", b"\xd9\xa3", b"../../etc/passwd", b"\x00"),
)


def mutated(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """One to six changes."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        data = rng.choice(CHANGES)(data, words, others, rng)
    return data[: 1 << 20]


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def flip(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A bit."""
    if not data:
        return data
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A run is lost, or all of the rest."""
    start = _place(data, rng)
    return data[:start] + (data[start + rng.choice((1, 4, 40, 400)) :] if rng.random() < 0.8 else b"")


def double(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A run comes several times."""
    start, length = _place(data, rng), rng.choice((4, 40, 400))
    return data[:start] + data[start : start + length] * rng.choice((2, 3, 50)) + data[start + length :]


def write(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A word of the format somewhere."""
    start = _place(data, rng)
    return data[:start] + rng.choice(words or (b"",)) + data[start + rng.choice((0, 0, 1, 4)) :]


def number(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """What stands between quotes, commas or spaces becomes an odd number."""
    ends = [n for n, byte in enumerate(data[: 1 << 16]) if byte in b"\"', \n>=:"]
    if len(ends) < 2:
        return data
    k = rng.randrange(len(ends) - 1)
    return data[: ends[k] + 1] + rng.choice(NUMBERS) + data[ends[k + 1] :]


def patch(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A binary number."""
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice(
        (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), rng.getrandbits(8 * size))
    )
    start = _place(data, rng)
    return data[:start] + value.to_bytes(size, "little") + data[start + size :]


def splice(data: bytes, words: Sequence[bytes], others: Sequence[bytes], rng: random.Random) -> bytes:
    """A piece of another seed."""
    other = rng.choice(others) if others else data
    start, from_ = _place(data, rng), _place(other, rng)
    return data[:start] + other[from_ : from_ + rng.choice((4, 40, 400))] + data[start:]


CHANGES = (flip, cut, double, write, number, number, patch, splice)
