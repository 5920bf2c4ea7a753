"""Noise of sensors: normal numbers by seed, robot, step and output, from a hash of these four.

A number depends on nothing else: not on the rows that are recorded, the order of robots or the number of threads. The
hash is made of 32-bit products, which neither compiled nor plain Python overflows.
"""

from __future__ import annotations

import math

from artsim.sim.equipment.arrays import AT_LEAST_ZERO, OF_UNIT_LENGTH, RANGEFINDER, EquipmentBundle
from artsim.sim.foundation.jit import inlined, njit

_MASK = 0xFFFFFFFF
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B  # of `lowbias32` (C. Wellons, hash-prospector)
_OTHER = 0x9E3779B9  # leads from the hash of the radius to that of the angle


@njit
def add_noise(equipment: EquipmentBundle, step: int) -> None:
    """Add the noise of this step to equipment.data.sensor (outputs,): as many numbers of zero mean and of the sensor's
    standard deviation as it has outputs. Forces and distances stay positive and directions of unit length; a ray that
    hits nothing has no noise.
    """
    model, values, key = equipment.model, equipment.data.sensor, equipment.data.noise_key
    for n in range(model.sensor_noise.shape[0]):
        first, end = model.sensor_first[n], model.sensor_first[n + 1]
        missed = model.sensor_kind[n] == RANGEFINDER and values[first] < 0.0
        if not model.sensor_noise[n] > 0.0 or missed:
            continue
        total = 0.0
        for k in range(first, end):
            values[k] += model.sensor_noise[n] * _normal(key[0], key[1], step, k)
            if model.sensor_range[n] == AT_LEAST_ZERO:
                values[k] = max(values[k], 0.0)
            total += values[k] * values[k]
        if model.sensor_range[n] == OF_UNIT_LENGTH and total > 0.0:
            for k in range(first, end):
                values[k] /= math.sqrt(total)


@njit
def _normal(seed: int, robot: int, step: int, output: int) -> float:
    """A normal number (Box and Muller 1958, A note on the generation of random normal deviates)."""
    hashed = _mixed((seed & _MASK) ^ _OTHER)
    for word in (seed >> 32, robot, robot >> 32, step, step >> 32, output):
        hashed = _mixed(hashed ^ _mixed((word & _MASK) ^ _OTHER))
    other = _mixed(hashed ^ _OTHER)
    radius = math.sqrt(-2.0 * math.log((hashed + 0.5) / (_MASK + 1.0)))
    return radius * math.cos(2.0 * math.pi * (other / (_MASK + 1.0)))


@inlined
def _mixed(word: int) -> int:
    """The hash of a word of 32 bits."""
    word = _product(word ^ (word >> 16), _FIRST)
    word = _product(word ^ (word >> 15), _SECOND)
    return word ^ (word >> 16)


@inlined
def _product(word: int, factor: int) -> int:
    """The product of two words modulo 2³²."""
    low: int = word * (factor & 0xFFFF)
    return (low + (((word * (factor >> 16)) & 0xFFFF) << 16)) & _MASK
