"""Numbers and angles as files and users write them, without numpy."""

from __future__ import annotations

import math

DEGREES = "deg"


def plain_number(text: str) -> float:
    """A number, possibly nan or inf. Raises ValueError, also for 1_000 and digits other than 0 to 9, which Python's
    `float` takes and other programs do not.
    """
    return float(_plain(text))


def plain_whole(text: str) -> int:
    """A whole number. Raises ValueError, also for texts that `plain_number` refuses."""
    return int(_plain(text))


def _plain(text: str) -> str:
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text[:40]!r}")
    return text


def angle_or_number(text: str) -> float:
    """A number, in rad if it has the suffix deg. Raises ValueError."""
    word = text.strip()
    return math.radians(plain_number(word.removesuffix(DEGREES))) if word.endswith(DEGREES) else plain_number(word)
