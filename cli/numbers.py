"""The types of all numeric options: finite numbers and whole numbers of 64 bits, in bounds, in plain digits."""

from __future__ import annotations

import math
from typing import Any

import click

from artsim.sim.foundation.angles import DEGREES, angle_or_number, plain_number, plain_whole
from artsim.sim.foundation.errors import UsageError

LEAST, MOST = -(2**63), 2**63 - 1
_TIMES = {
    "ms": 1e3,
    "us": 1e6,
    "µs": 1e6,
    "min": 1 / 60,
    "s": 1.0,
}  # units in a second; s comes last, since other units end with it


class Number(click.FloatRange):
    """A finite number in bounds, which `min_open` and `max_open` leave out."""

    def __init__(
        self, min: float | None = None, max: float | None = None, *, min_open: bool = False, max_open: bool = False
    ) -> None:
        super().__init__(min, max, min_open, max_open)
        self.name = "float" if self._describe_range() == "" else "float range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of a word. Raises click.BadParameter."""
        try:
            number = plain_number(value) if isinstance(value, str) else float(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a number", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number:g} is not a finite number", param, ctx)
        return super().convert(number, param, ctx)

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()


class Seconds(Number):
    """A time in bounds [s], or with a unit: 500ms, 20us, 2min."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time of a word. Raises click.BadParameter."""
        if isinstance(value, str):
            for unit, size in _TIMES.items():
                if value.endswith(unit) and value[: -len(unit)].strip()[-1:].isdigit():
                    value = super().convert(value[: -len(unit)].strip(), None, ctx) / size
                    break
        return super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number in bounds; without bounds, one of 64 bits."""

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        super().__init__(min, max)
        self.name = "integer" if self._describe_range() == "" else "integer range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of a word. Raises click.BadParameter."""
        try:
            number = plain_whole(value) if isinstance(value, str) else int(value)
        except (ValueError, OverflowError):
            self.fail(f"{str(value)[:40]!r} is not a whole number", param, ctx)
        if not LEAST <= number <= MOST:
            self.fail(f"{str(value)[:40]} has more than 64 bits", param, ctx)
        return super().convert(number, param, ctx)

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()


ABOVE_0 = Number(0, min_open=True)
FROM_0 = Number(0)
FACTOR = Number(1e-6, 1e6)


def number_of(word: str, what: str, unit: str = "") -> float:
    """A finite number; with the suffix deg, an angle in rad."""
    text = word.strip()
    angle = text.endswith(DEGREES)
    if angle and "rad" not in unit:
        raise UsageError(f"{what}: {word!r} is an angle, want {unit or 'a number'}")
    try:
        value = angle_or_number(text)
    except ValueError:
        raise UsageError(f"{what}: {word!r} is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"{what}: {word} is not finite")
    return value
