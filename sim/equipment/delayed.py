"""Delayed controls and sensors: samples are kept at the end of every step, or of a sensor's ticks, and read later.

What is read in a step was kept before it, so the least delay is one step (MuJoCo's computation chapter, "Delays").
Before the oldest sample and after the newest these hold. One difference: with RK4 MuJoCo keeps of a sensor what the
last of the four stages makes of it; here it is its value at the start of the step, as without a delay.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.equipment.delays import CUBIC, HEAD, HELD, NEARLY, NEWEST, TICKS
from artsim.sim.equipment.sensors import sensor_values
from artsim.sim.jit import inlined, njit
from artsim.sim.recording import joint_wrenches


@njit
def delay_controls(s: Any, i: Any, f: Any, x: Any, d: Any) -> None:
    """x.control of the controls that are delayed; x.pending[0] 1: one of them will be another than it is now."""
    row = f.counters[4]
    now = f.counters[0] + x.stage[0]
    x.pending[0] = 0.0
    for line in range(d.control.shape[0]):
        n = d.control[line]
        x.control[n] = _sample(s.history, d, line, 0, now - d.delay[line])
        first = d.place[line] + HEAD + d.samples[line]
        for j in range(d.samples[line]):
            if s.history[first + j] != i.control[row, n]:
                x.pending[0] = 1.0


@njit
def feel(m: Any, s: Any, w: Any, i: Any, f: Any, e: Any, x: Any, d: Any, g: Any, t: Any) -> None:
    """x.felt (outputs,): what the sensors measure in this step; x.sensor: what they tell of it, or of another."""
    joint_wrenches(m, s.qvel, w, f, e, x, g, t)
    sensor_values(m, s, w, i, f, e, x, g, t)
    now = f.counters[0]
    for k in range(x.sensor.shape[0]):
        x.felt[k] = x.sensor[k]
    for n in range(d.sensor.shape[0]):
        line = d.control.shape[0] + n
        if d.delay[line] > 0.0 or not _ticks(s.history, d, line, now):
            for k in range(d.size[line]):
                x.sensor[d.output[n] + k] = _sample(s.history, d, line, k, now - d.delay[line])


@njit
def keep_samples(s: Any, i: Any, f: Any, x: Any, d: Any) -> None:
    """Keep the controls of this step, and what the sensors measured that tick in it."""
    now = f.counters[0]
    row = f.counters[4]
    for line in range(d.control.shape[0]):
        slot = _next_slot(s.history, d, line, now)
        s.history[slot] = i.control[row, d.control[line]]
    for n in range(d.sensor.shape[0]):
        line = d.control.shape[0] + n
        if _ticks(s.history, d, line, now):
            slot = _next_slot(s.history, d, line, now)
            s.history[d.place[line] + TICKS] += 1.0
            for k in range(d.size[line]):
                s.history[slot + k] = x.felt[d.output[n] + k]


@inlined
def _ticks(history: Any, d: Any, line: Any, now: Any) -> bool:
    """Whether a sensor measures in this step: it has no period, or its next tick has come."""
    due = d.before[line] + (history[d.place[line] + TICKS] + 1.0) * d.period[line]
    ticks: bool = d.period[line] == 0.0 or due <= now + NEARLY
    return ticks


@inlined
def _next_slot(history: Any, d: Any, line: Any, now: Any) -> Any:
    """Where a sample of this step goes: in the place of the oldest, or of one that is of this step, too."""
    start = d.place[line]
    slot = int(history[start + NEWEST])
    if history[start + HEAD + slot] != now:
        slot = (slot + 1) % d.samples[line]
    history[start + NEWEST] = slot
    history[start + HEAD + slot] = now
    return start + HEAD + d.samples[line] + slot * d.size[line]


@inlined
def _at(history: Any, d: Any, line: Any, age: Any) -> Any:
    """Step of the sample of this age (0: the oldest), and where it stands."""
    start = d.place[line]
    slot = (int(history[start + NEWEST]) + 1 + age) % d.samples[line]
    return history[start + HEAD + slot], start + HEAD + d.samples[line] + slot * d.size[line]


@njit
def _sample(history: Any, d: Any, line: Any, k: Any, time: Any) -> Any:
    """Number k of a line's samples at a time [steps]."""
    last = d.samples[line] - 1
    first_step, first = _at(history, d, line, 0)
    last_step, newest = _at(history, d, line, last)
    if time <= first_step + NEARLY:
        return history[first + k]
    if time >= last_step - NEARLY:
        return history[newest + k]
    low, high = 0, last  # the samples around it: low before, high at it or after
    while high - low > 1:
        middle = (low + high) // 2
        step, _ = _at(history, d, line, middle)
        if step >= time - NEARLY:
            high = middle
        else:
            low = middle
    begin, a = _at(history, d, line, low)
    end, b = _at(history, d, line, high)
    if end - time <= NEARLY:
        return history[b + k]
    if d.method[line] == HELD:
        return history[a + k]
    length = end - begin
    share = (time - begin) / length
    rise = history[b + k] - history[a + k]
    if d.method[line] != CUBIC:
        return history[a + k] + share * rise
    return _on_cubic(
        history[a + k],
        rise,
        share,
        _slope(history, d, line, k, low) * length,
        _slope(history, d, line, k, high) * length,
    )


@inlined
def _slope(history: Any, d: Any, line: Any, k: Any, age: Any) -> Any:
    """Of the cubic at a sample: that of its two neighbours; at the ends of what is kept it is level (Catmull-Rom)."""
    if age == 0 or age == d.samples[line] - 1:
        return 0.0
    begin, a = _at(history, d, line, age - 1)
    end, b = _at(history, d, line, age + 1)
    return (history[b + k] - history[a + k]) / (end - begin)


@inlined
def _on_cubic(value: Any, rise: Any, s: Any, left: Any, right: Any) -> Any:
    """Hermite's cubic from `value` over `rise`, of these slopes per length, at the share s of it."""
    return value + s * s * (3.0 - 2.0 * s) * rise + s * (1.0 - s) * ((1.0 - s) * left - s * right)
