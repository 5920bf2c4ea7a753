"""DC motors: electrical circuit, winding temperature, on-board controller, cogging and bristle friction.

The model is MuJoCo's (technical note on DC motors). Parameters: gain (R, K, temperature coefficient and reference,
k_p, k_i, k_d, V_max) · bias (cogging amplitude, poles, phase; Coulomb and static friction, Stribeck speed) · dynamics
(electrical time, current rate limit, thermal resistance, capacitance, ambient, bristle stiffness and damping, slew
rate, integral limit). Places of its states: equipment.activation_slot (slew, integral, temperature, bristle, current).
"""

from __future__ import annotations

import math

from artsim.sim.equipment.arrays import (
    BRISTLE,
    CURRENT,
    INTEGRAL,
    ROLE_FEEDFORWARD,
    ROLE_POSITION,
    ROLE_VELOCITY,
    ROLE_VOLTAGE,
    SLEW,
    TEMPERATURE,
    EquipmentBundle,
)
from artsim.sim.foundation.elementary import exponential
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.sincos import sincos

_TINY = 1e-15  # least divisor


@inlined
def role(equipment: EquipmentBundle, a: int, which: int) -> float:
    """One of the controls of an actuator with several (position, velocity, feedforward, voltage); 0 if it lacks it."""
    n = equipment.model.control_role[a, which]
    return equipment.data.control[n] if n >= 0 else 0.0


@njit
def voltage(equipment: EquipmentBundle, a: int, activation: Reals1) -> float:
    """Voltage at the terminals [V]: that of the controller's torque against the back-EMF, plus the raw input."""
    p = equipment.model.gain_parameters[a]
    raw = role(equipment, a, ROLE_VOLTAGE)
    roles = equipment.model.control_role[a]
    if roles[ROLE_POSITION] < 0 and roles[ROLE_VELOCITY] < 0 and roles[ROLE_FEEDFORWARD] < 0:
        return raw
    n = equipment.model.activation_slot[a, INTEGRAL]
    integral = activation[n] if n >= 0 else 0.0
    rate = equipment.data.actuator_velocity[a]
    torque = p[4] * (role(equipment, a, ROLE_POSITION) - equipment.data.actuator_length[a]) + p[6] * (
        role(equipment, a, ROLE_VELOCITY) - rate
    )
    torque += p[5] * integral + role(equipment, a, ROLE_FEEDFORWARD)
    driven = p[0] / p[1] * torque + p[1] * rate
    if p[7] > 0.0:
        driven = min(max(driven, -p[7]), p[7])
    return driven + raw


@inlined
def _resistance(equipment: EquipmentBundle, a: int, activation: Reals1) -> float:
    """Resistance at the temperature of the winding [Ohm]."""
    p = equipment.model.gain_parameters[a]
    n = equipment.model.activation_slot[a, TEMPERATURE]
    if n < 0:
        return p[0]
    return p[0] * (1.0 + p[2] * (activation[n] + equipment.model.dynamics_parameters[a, 4] - p[3]))


@njit
def limit_slew(equipment: EquipmentBundle, a: int, activation: Reals1, h: float) -> None:
    """Limit the rate of the first control; an activation holds the limited control."""
    n = equipment.model.activation_slot[a, SLEW]
    if n < 0:
        return
    first = equipment.model.control_first[a]
    before = activation[n]
    wanted = equipment.data.control[first]
    period = equipment.model.actuator_period[a]
    if period > 0.0:
        wanted = nearest_turn(wanted, before, period)
    p = equipment.model.dynamics_parameters[a]
    most = h * (p[7] if p[7] > 0.0 else p[1])  # PID servos store the limit in another column
    equipment.data.control[first] = min(max(wanted, before - most), before + most)
    equipment.data.activation_rate[n] = (equipment.data.control[first] - before) / h


@inlined
def nearest_turn(u: float, length: float, period: float) -> float:
    """u plus the multiple of the period that brings it nearest to the length; halves round away from 0, as in C."""
    turns = (u - length) / period
    whole = math.floor(abs(turns) + 0.5)
    return u - period * (whole if turns >= 0.0 else -whole)


@inlined
def wound(error: float, integral: float, most: float) -> float:
    """The rate of an integral that may not exceed `most` (0: no limit)."""
    if most > 0.0:
        if integral >= most:
            return min(error, 0.0)
        if integral <= -most:
            return max(error, 0.0)
    return error


@njit
def motor_rates(equipment: EquipmentBundle, a: int, activation: Reals1, h: float) -> None:
    """Set equipment.data.activation_rate of the motor, and its voltage in equipment.data.actuator_input."""
    limit_slew(equipment, a, activation, h)
    p = equipment.model.gain_parameters[a]
    d = equipment.model.dynamics_parameters[a]
    speed = equipment.data.actuator_velocity[a]
    n = equipment.model.activation_slot[a, INTEGRAL]
    if n >= 0:
        equipment.data.activation_rate[n] = wound(
            equipment.data.control[equipment.model.control_first[a]] - equipment.data.actuator_length[a],
            activation[n],
            d[8],
        )
    V = voltage(equipment, a, activation)
    equipment.data.actuator_input[a] = V
    R = _resistance(equipment, a, activation)
    n = equipment.model.activation_slot[a, TEMPERATURE]
    if n >= 0:
        current = activation[equipment.model.activation_last[a]] if d[0] > 0.0 else (V - p[1] * speed) / R
        equipment.data.activation_rate[n] = (R * current * current - activation[n] / d[2]) / d[3]
    n = equipment.model.activation_slot[a, BRISTLE]
    if n >= 0:
        equipment.data.activation_rate[n] = bristle_decay(equipment, a, speed) * activation[n] + speed
    n = equipment.model.activation_slot[a, CURRENT]
    if n >= 0:
        rate = (V / R - p[1] / R * speed - activation[n]) / d[0]
        equipment.data.activation_rate[n] = min(max(rate, -d[1]), d[1]) if d[1] > 0.0 else rate


@njit
def bristle_decay(equipment: EquipmentBundle, a: int, speed: float) -> float:
    """a ≤ 0 of dz/dt = a z + v for the bristle deflection z at speed v (LuGre, Canudas de Wit et al. 1995)."""
    b = equipment.model.bias_parameters[a]
    ratio = speed / max(_TINY, b[5])
    steady = b[3] + (b[4] - b[3]) * exponential(-ratio * ratio)
    return -equipment.model.dynamics_parameters[a, 5] * abs(speed) / max(_TINY, steady)


@njit
def motor_force(equipment: EquipmentBundle, a: int, activation: Reals1, current: float) -> float:
    """Electrical force before its limit: K i with `current`, or K (V - K v) / R without inductance."""
    K = equipment.model.gain_parameters[a, 1]
    if equipment.model.dynamics_parameters[a, 0] > 0.0:
        return K * current
    return (
        K
        / max(_TINY, _resistance(equipment, a, activation))
        * (equipment.data.actuator_input[a] - K * equipment.data.actuator_velocity[a])
    )


@njit
def mechanical_force(equipment: EquipmentBundle, a: int, activation: Reals1) -> float:
    """Cogging and bristle friction, which the current limit does not bound."""
    b = equipment.model.bias_parameters[a]
    sine, _ = sincos(b[1] * equipment.data.actuator_length[a] + b[2])
    force = b[0] * sine
    n = equipment.model.activation_slot[a, BRISTLE]
    if n >= 0:
        d = equipment.model.dynamics_parameters[a]
        force -= d[5] * activation[n] + d[6] * equipment.data.activation_rate[n]
    return force


@njit
def next_state(equipment: EquipmentBundle, a: int, n: int, value: float, rate: float, h: float) -> float:
    """Activation n after h [s]: current and bristle by exact integration under constant input, the others by Euler."""
    d = equipment.model.dynamics_parameters[a]
    if n == equipment.model.activation_slot[a, CURRENT]:
        return value + rate * d[0] * (1.0 - exponential(-h / d[0]))
    if n == equipment.model.activation_slot[a, BRISTLE]:
        speed = equipment.data.actuator_velocity[a]
        decay = bristle_decay(equipment, a, speed)
        shrink = exponential(decay * h)
        return shrink * value + speed * ((shrink - 1.0) / decay if abs(decay) > _TINY else h)
    if n == equipment.model.activation_slot[a, INTEGRAL] and d[8] > 0.0:
        return min(max(value + rate * h, -d[8]), d[8])
    return value + rate * h
