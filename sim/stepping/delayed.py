"""Delayed controls and sensors: samples are stored at the end of every step, or of a sensor's tick, and read later.

A step reads samples that earlier steps stored, so the least delay is one step (MuJoCo, Computation chapter, "Delays").
Outside the stored range the oldest or the newest sample holds. One difference: with RK4, MuJoCo stores a sensor's value
at the last of the four stages; here it is the value at the start of the step, as without a delay.
"""

from __future__ import annotations

from artsim.sim.articulation.state import RobotBundle, State
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.equipment.delays import HEAD, NEARLY, NEWEST, SPLINE, TICKS, ZERO_ORDER, Delays
from artsim.sim.equipment.sensors import sensor_values
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.geometry.contacts import ContactBundle
from artsim.sim.run_data.run_records import CONTROL_ROW, STEP_NUMBER, RunBundle
from artsim.sim.stepping.recording import joint_wrenches


@njit
def delay_controls(state: State, run: RunBundle, equipment: EquipmentBundle, delays: Delays) -> None:
    """Set equipment.data.control of the delayed controls, and equipment.data.pending[0] to 1 if one of these controls
    is still to change."""
    step = run.step
    row = step.counters[CONTROL_ROW]
    now = step.counters[STEP_NUMBER] + equipment.data.stage[0]
    equipment.data.pending[0] = 0.0
    for line in range(delays.control.shape[0]):
        n = delays.control[line]
        equipment.data.control[n] = _sample(state.history, delays, line, 0, now - delays.delay[line])
        first = delays.place[line] + HEAD + delays.samples[line]
        for j in range(delays.samples[line]):
            if state.history[first + j] != run.inputs.control[row, n]:
                equipment.data.pending[0] = 1.0


@njit
def feel(
    robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle, delays: Delays, contact: ContactBundle | None
) -> None:
    """Set equipment.data.felt (outputs,), the sensors' values measured in this step, and equipment.data.sensor, the
    values they report, which may be delayed."""
    state = robot.state
    step = run.step
    joint_wrenches(robot, state.qvel, step, equipment, contact)
    sensor_values(robot, run, equipment, contact)
    now = step.counters[STEP_NUMBER]
    for k in range(equipment.data.sensor.shape[0]):
        equipment.data.felt[k] = equipment.data.sensor[k]
    for n in range(delays.sensor.shape[0]):
        line = delays.control.shape[0] + n
        if delays.delay[line] > 0.0 or not _ticks(state.history, delays, line, now):
            for k in range(delays.size[line]):
                equipment.data.sensor[delays.output[n] + k] = _sample(
                    state.history, delays, line, k, now - delays.delay[line]
                )


@njit
def keep_samples(state: State, run: RunBundle, equipment: EquipmentBundle, delays: Delays) -> None:
    """Store the controls of this step, and the values of the sensors that ticked in it."""
    step = run.step
    now = step.counters[STEP_NUMBER]
    row = step.counters[CONTROL_ROW]
    for line in range(delays.control.shape[0]):
        slot = _next_slot(state.history, delays, line, now)
        state.history[slot] = run.inputs.control[row, delays.control[line]]
    for n in range(delays.sensor.shape[0]):
        line = delays.control.shape[0] + n
        if _ticks(state.history, delays, line, now):
            slot = _next_slot(state.history, delays, line, now)
            state.history[delays.place[line] + TICKS] += 1.0
            for k in range(delays.size[line]):
                state.history[slot + k] = equipment.data.felt[delays.output[n] + k]


@inlined
def _ticks(history: Reals1, delays: Delays, line: int, now: int) -> bool:
    """True if a sensor measures in this step: the sensor has no period, or its next tick has come."""
    due = delays.before[line] + (history[delays.place[line] + TICKS] + 1.0) * delays.period[line]
    return delays.period[line] == 0.0 or due <= now + NEARLY


@inlined
def _next_slot(history: Reals1, delays: Delays, line: int, now: int) -> int:
    """The slot for a sample of this step: that of the oldest sample, or of an earlier sample of this step."""
    start = delays.place[line]
    slot = int(history[start + NEWEST])
    if history[start + HEAD + slot] != now:
        slot = (slot + 1) % delays.samples[line]
    history[start + NEWEST] = slot
    history[start + HEAD + slot] = now
    return start + HEAD + delays.samples[line] + slot * delays.size[line]


@inlined
def _at(history: Reals1, delays: Delays, line: int, age: int) -> tuple[float, int]:
    """The step and the slot of the sample of this age (0: the oldest)."""
    start = delays.place[line]
    slot = (int(history[start + NEWEST]) + 1 + age) % delays.samples[line]
    return history[start + HEAD + slot], start + HEAD + delays.samples[line] + slot * delays.size[line]


@njit
def _sample(history: Reals1, delays: Delays, line: int, k: int, time: float) -> float:
    """Sample k of a line at a time [steps]."""
    last = delays.samples[line] - 1
    first_step, first = _at(history, delays, line, 0)
    last_step, newest = _at(history, delays, line, last)
    if time <= first_step + NEARLY:
        return history[first + k]
    if time >= last_step - NEARLY:
        return history[newest + k]
    low, high = 0, last  # the samples around that time: low before it, high at or after it
    while high - low > 1:
        middle = (low + high) // 2
        step, _ = _at(history, delays, line, middle)
        if step >= time - NEARLY:
            high = middle
        else:
            low = middle
    begin, a = _at(history, delays, line, low)
    end, b = _at(history, delays, line, high)
    if end - time <= NEARLY:
        return history[b + k]
    if delays.method[line] == ZERO_ORDER:
        return history[a + k]
    length = end - begin
    share = (time - begin) / length
    rise = history[b + k] - history[a + k]
    if delays.method[line] != SPLINE:
        return history[a + k] + share * rise
    return _on_cubic(
        history[a + k],
        rise,
        share,
        _slope(history, delays, line, k, low) * length,
        _slope(history, delays, line, k, high) * length,
    )


@inlined
def _slope(history: Reals1, delays: Delays, line: int, k: int, age: int) -> float:
    """Slope of the cubic at a sample, from its two neighbours; zero at both ends of the buffer (Catmull-Rom)."""
    if age == 0 or age == delays.samples[line] - 1:
        return 0.0
    begin, a = _at(history, delays, line, age - 1)
    end, b = _at(history, delays, line, age + 1)
    return (history[b + k] - history[a + k]) / (end - begin)


@inlined
def _on_cubic(value: float, rise: float, s: float, left: float, right: float) -> float:
    """Hermite cubic from `value` over `rise`, with these slopes per length, at the fraction s of it."""
    return value + s * s * (3.0 - 2.0 * s) * rise + s * (1.0 - s) * ((1.0 - s) * left - s * right)
