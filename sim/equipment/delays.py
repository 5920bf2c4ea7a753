"""Delays of controls and sensors as arrays: lines of samples, their places in State.history, and their interpolation.

The kernels that keep and read samples (delayed.py) are entries of their own, since only runs with delays need them. No
numba here.

Times are counted in whole steps where MuJoCo adds up time steps: a sample kept in step n is read with a delay of k
steps in step n + k, for runs of any length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.description import Articulation, Delay
from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.equipment.arrays import EquipmentBundle, Equipped
from artsim.sim.foundation.jit import Entry, point_at
from artsim.sim.foundation.records import ConstInts1, ConstReals1
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import ContactBundle
from artsim.sim.run_data.run_records import RunBundle

ZERO_ORDER, FIRST_ORDER, SPLINE = range(3)  # interpolation: the last sample, or a curve through the samples
METHODS = {"zoh": ZERO_ORDER, "linear": FIRST_ORDER, "cubic": SPLINE}
NEWEST, TICKS, HEAD = range(3)  # the first entries of a line: slot of the newest sample, ticks so far
NEARLY = 1e-9  # steps: smaller differences count as the same time


class Delays(NamedTuple):
    """n lines of samples: those of nc controls, then those of sensors. Kernels receive them as `delays`.

    A line in State.history holds NEWEST, TICKS, the step of each sample, then the samples one after the other.
    """

    control: ConstInts1  # (nc,) index of the control
    sensor: ConstInts1  # (n - nc,) index of the sensor
    output: ConstInts1  # (n - nc,) its first output
    place: ConstInts1  # (n,) start of the line
    samples: ConstInts1  # (n,)
    size: ConstInts1  # (n,) numbers per sample
    method: ConstInts1  # (n,) ZERO_ORDER, FIRST_ORDER, SPLINE
    delay: ConstReals1  # (n,) [steps]
    period: ConstReals1  # (n,) of a sensor's ticks [steps], 0: every step
    before: ConstReals1  # (n,) time of the tick before the first one [steps]


class Delayed(NamedTuple):
    """The delays of a run; not a record itself."""

    arrays: Delays
    history: Real  # initial State.history


DELAY_CONTROLS = Entry("delay_controls", "artsim.sim.stepping.delayed", (State, RunBundle, EquipmentBundle, Delays))
KEEP = Entry("keep_samples", "artsim.sim.stepping.delayed", (State, RunBundle, EquipmentBundle, Delays))


def feel_entry(touching: bool) -> Entry:
    """The kernel that measures, in every step, the values that delayed sensors output later."""
    records = (RobotBundle, RunBundle, EquipmentBundle, Delays, ContactBundle if touching else None)
    return Entry("feel", "artsim.sim.stepping.delayed", records, "_touching" * touching)


def delay_entries(delayed: Delayed, touching: bool) -> tuple[Entry, ...]:
    """The kernels that a run with these delays needs."""
    controls, sensors = len(delayed.arrays.control) > 0, len(delayed.arrays.sensor) > 0
    return *([DELAY_CONTROLS] if controls else []), *([feel_entry(touching)] if sensors else []), KEEP


class _Line(NamedTuple):
    """A delay and the control or sensor that it delays."""

    name: str
    number: int
    size: int
    delay: Delay
    idle: float = 0.0  # value of the delayed quantity before the first step


def delays_of(
    articulation: Articulation, equipped: Equipped | None, dt: float, notes: list[str], *, sensors: bool
) -> Delayed | None:
    """The delays that act at time step dt [s], for sensors only where they are recorded; None without delays."""
    if equipped is None:
        return None
    controls = _control_lines(articulation, equipped)
    felt = _sensor_lines(articulation, equipped) if sensors else []
    lines = [*controls, *felt]
    if not lines:
        return None
    notes += [told for line in lines if (told := _beyond(line, dt))]
    starts = [_history(line, dt) for line in lines]
    numbers = {
        "control": [line.number for line in controls],
        "sensor": [line.number for line in felt],
        "output": [int(equipped.arrays.sensor_first[line.number]) for line in felt],
        "place": np.cumsum([0, *map(len, starts)])[:-1],
        "samples": [line.delay.samples for line in lines],
        "size": [line.size for line in lines],
        "method": [METHODS[line.delay.interpolation] for line in lines],
    }
    times = {
        "delay": [in_steps(line.delay.time, dt) for line in lines],
        "period": [in_steps(line.delay.period, dt) for line in lines],
        "before": [in_steps(_before(line.delay), dt) for line in lines],
    }
    arrays = {name: np.array(values, np.int64) for name, values in numbers.items()}
    arrays |= {name: np.array(values, float) for name, values in times.items()}
    for array in arrays.values():
        array.setflags(write=False)
    return Delayed(Delays(**arrays), np.concatenate(starts))


def connect_delays(
    delayed: Delayed, robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, contact: ContactBundle | None
) -> object:
    """Connect the delay kernels to steps that receive `equipment`, for as long as the returned object is kept."""
    run = RunBundle(run.inputs, run.step)
    arrays, scratch, kept = delayed.arrays, equipment.data, []
    if len(arrays.control):
        kept += [point_at(DELAY_CONTROLS, 1, scratch.delayer, robot.state, run, equipment, arrays)]
    if len(arrays.sensor):
        feel = feel_entry(contact is not None)
        kept += [point_at(feel, 1, scratch.feeler, robot, run, equipment, arrays, contact)]
    return [*kept, point_at(KEEP, 1, scratch.keeper, robot.state, run, equipment, arrays)]


def _control_lines(articulation: Articulation, equipped: Equipped) -> list[_Line]:
    lines, n = [], 0
    if not equipped.labels.controls:  # no actuator has a control
        return []
    for actuator in articulation.actuators:
        for idle in actuator.idle:
            if actuator.delay is not None and actuator.delay.time > 0:
                lines.append(_Line(f"actuator {actuator.name!r}", n, 1, actuator.delay, idle))
            n += 1
    return lines


def _sensor_lines(articulation: Articulation, equipped: Equipped) -> list[_Line]:
    sizes = np.diff(equipped.arrays.sensor_first)
    return [
        _Line(f"sensor {sensor.name!r}", n, int(sizes[n]), sensor.delay)
        for n, sensor in enumerate(articulation.sensors)
        if sensor.delay is not None and (sensor.delay.time > 0 or sensor.delay.period > 0)
    ]


def in_steps(time: float | Real, dt: float) -> Real:
    """Times [s] in steps, rounded to whole numbers where they are that except for rounding."""
    steps = np.asarray(time) / dt
    whole = np.round(steps)
    return np.where(np.abs(steps - whole) <= NEARLY * np.maximum(1.0, np.abs(steps)), whole, steps)


def _before(delay: Delay) -> float:
    """Time of the tick before the first one [s]; the first tick is in the first step or a phase after it."""
    return delay.phase or -delay.period


def _beyond(line: _Line, dt: float) -> str:
    """A warning if a delay reaches further back than its samples, else an empty string."""
    delay = line.delay
    kept = delay.samples * max(delay.period, dt)
    if in_steps(delay.time, dt) <= in_steps(kept, dt):
        return ""
    return (
        f"the delay of {line.name}, {delay.time:g} s, is longer than its {delay.samples} samples last at this time step"
        f": it acts as {kept:g} s (MuJoCo's, too; a larger nsample helps)"
    )


def _history(line: _Line, dt: float) -> Real:
    """The initial content of a line: idle samples of the steps or ticks before the first step."""
    delay, n = line.delay, line.delay.samples
    ages = np.arange(n - 1, -1, -1.0)
    steps = -1.0 - ages
    if delay.period:
        steps = np.ceil(in_steps(_before(delay), dt) - ages * in_steps(delay.period, dt) - NEARLY)
    return np.concatenate([[n - 1.0, 0.0], steps, np.full(n * line.size, line.idle)])
