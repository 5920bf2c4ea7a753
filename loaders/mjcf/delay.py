"""Delays: nsample, interp and delay of actuators and sensors, interval of sensors (MJCF's chapter "Delays")."""

from __future__ import annotations

from typing import cast

from artsim.loaders.mjcf.reading import Item
from artsim.sim.description import Delay, Interpolation

MOST_SAMPLES = 1_000_000  # MuJoCo takes 2^24, of which every checkpoint of a run would hold a copy
INTERPOLATIONS = ("zoh", "linear", "cubic")


def read_delay(item: Item) -> Delay | None:
    """What an actuator or a sensor has of it; None where nothing is delayed: samples alone change nothing."""
    samples = item.whole("nsample")
    time = item.number("delay", least=0.0)
    method = cast(Interpolation, item.word("interp", INTERPOLATIONS, "zoh"))
    period, phase = item.filled("interval", (0.0, 0.0))
    if samples > MOST_SAMPLES:
        item.refuse(f"nsample is {samples}, want at most {MOST_SAMPLES}")
    if time > 0 and samples <= 0:
        item.refuse(f"delay is {time:g} s, but there is no nsample: how many samples are kept")
    if period < 0 or phase > 0 or (period > 0 and phase <= -period):
        item.refuse(f"interval is {period:g} {phase:g}, want a period from 0 and a phase from -period (not it) to 0")
    if samples <= 0 or not (time or period):
        return None
    return Delay(time, samples, method, period, phase if period else 0.0)
