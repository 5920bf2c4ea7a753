"""Delays: nsample, interp and delay of actuators and sensors, interval of sensors (MJCF's chapter "Delays")."""

from __future__ import annotations

from typing import cast

from artsim.loaders.elements import tag
from artsim.loaders.mjcf.reading import Item, describe
from artsim.sim.articulation.description import Delay, Interpolation

MOST_SAMPLES = 1_000_000  # MuJoCo takes 2^24, of which every checkpoint of a run would hold a copy
INTERPOLATIONS = ("zoh", "linear", "cubic")
LEAST = 1e-12  # [s]: values read were stored in an earlier step, so any delay within a step is one step


def read_delay(item: Item) -> Delay | None:
    """The delay of an actuator or a sensor; None without one. A delay that has no effect is a warning.

    MuJoCo accepts times and counts below 0: without samples nothing is delayed. With samples, a delay below 0 is no
    delay for a sensor, and one step, the least possible delay, for a control.
    """
    samples = item.whole("nsample")
    time = item.number("delay")
    method = cast(Interpolation, item.word("interp", INTERPOLATIONS, "zoh"))
    period, phase = item.filled("interval", (0.0, 0.0))
    if samples > MOST_SAMPLES:
        item.refuse(f"nsample is {samples}, want at most {MOST_SAMPLES}")
    if time > 0 and samples <= 0:
        item.refuse(f"delay is {time:g} s, but there is no nsample: how many samples are kept")
    if period < 0 or phase > 0 or (period > 0 and phase <= -period):
        item.refuse(f"interval is {period:g} {phase:g}, want a period from 0 and a phase from -period (not it) to 0")
    if time < 0:
        time = least_delay(item, time, samples)
    if samples <= 0 and (samples < 0 or period):
        what = f", and interval {period:g} s has no effect" if period else ""
        _note(item, f"nsample is {samples}: no samples are kept{what}, as in MuJoCo")
    if samples <= 0 or not (time or period):
        return None
    return Delay(time, samples, method, period, phase if period else 0.0)


def least_delay(item: Item, time: float, samples: int) -> float:
    """The delay [s] that a delay below 0 acts as, with a warning."""
    control = not is_sensor(item)
    if control and samples < 0:
        item.refuse(f"delay is {time:g} s and nsample {samples}: MuJoCo reads samples that do not exist")
    acts = "one step, the least there is" if control and samples else "none"
    _note(item, f"delay is {time:g} s, below 0: it acts as {acts}, as in MuJoCo", guess=True)
    return LEAST if control and samples else 0.0


def is_sensor(item: Item) -> bool:
    """True if the element is in <sensor>."""
    section = item.element.getparent()
    return section is not None and tag(section) == "sensor"


def _note(item: Item, message: str, *, guess: bool = False) -> None:
    item.reading.note(item.element, f"{describe(item.element)}: {message}", guess=guess)
