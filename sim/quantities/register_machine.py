"""The kernel that runs programs of expressions, one instruction after the other over a tile of robots.

The inner loops are of constant length, and none both multiplies and adds, so that the bytes of a robot depend on no
other robot. About 1 ns per instruction and robot.
"""

from __future__ import annotations

import math

from artsim.sim.foundation.elementary import arctangent, exponential, logarithm
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Ints1, Reals2
from artsim.sim.foundation.sincos import sincos
from artsim.sim.quantities.program import (
    ABSOLUTE,
    ADD,
    AND,
    ARCTANGENT,
    COSINE,
    DIVIDE,
    EQUAL,
    EXPONENTIAL,
    FIRST_OPERATION,
    FLOOR,
    LARGEST,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOGARITHM,
    MULTIPLY,
    NEGATE,
    NOT,
    NOT_EQUAL,
    OR,
    POWER,
    RECALL,
    SELECT,
    SINE,
    SQUARE_ROOT,
    SUBTRACT,
    TILE,
    Observed,
    Program,
    Registers,
)


@njit
def evaluate(program: Program, observed: Observed, work: Registers) -> None:
    """Write the outputs of the robots that are asked for, and the memories of those whose outputs are all numbers."""
    constants = work.register.shape[0] - program.operation.shape[0]
    for first in range(0, work.due[0], TILE):
        for j in range(TILE):
            work.row[j] = work.robot[min(first + j, work.due[0] - 1)]
        for i in range(program.operation.shape[0]):
            operation = program.operation[i]
            if operation < FIRST_OPERATION:
                _load(operation, constants + i, program.a[i], observed, work)
            elif operation == RECALL:
                _gather(constants + i, work.memory, program.a[i], work)
            elif operation < SQUARE_ROOT:
                _combine(operation, constants + i, program.a[i], program.b[i], program.c[i], work.register)
            else:
                _call(operation, constants + i, program.a[i], program.b[i], work.register)
        _store(program.output, program.kept, min(TILE, work.due[0] - first), work)


@njit
def _load(table: int, to: int, column: int, observed: Observed, work: Registers) -> None:
    """Load a column of a table, numbered as in TABLES."""
    if table == 0:
        _gather(to, observed.qpos, column, work)
    elif table == 1:
        _gather(to, observed.qvel, column, work)
    elif table == 2:
        _gather(to, observed.activation, column, work)
    elif table == 3:
        _gather(to, observed.action, column, work)
    elif table == 4:
        _gather(to, observed.time, column, work)
    elif table == 5:
        _gather(to, observed.position, column, work)
    elif table == 6:
        _gather(to, observed.quaternion, column, work)
    elif table == 7:
        _gather(to, observed.velocity, column, work)
    else:
        _gather(to, observed.recorded, column, work)


@njit
def _gather(to: int, table: Reals2, column: int, work: Registers) -> None:
    for j in range(TILE):
        work.register[to, j] = _finite(table[work.row[j], column])


@inlined
def _finite(x: float) -> float:
    """x, or NaN if it is infinite."""
    return x + (x - x)


@njit
def _combine(operation: int, to: int, a: int, b: int, c: int, r: Reals2) -> None:
    """Operations of arithmetic, comparison and logic."""
    if operation == ADD:
        for j in range(TILE):
            r[to, j] = _finite(r[a, j] + r[b, j])
    elif operation == SUBTRACT:
        for j in range(TILE):
            r[to, j] = _finite(r[a, j] - r[b, j])
    elif operation == MULTIPLY:
        for j in range(TILE):
            product = r[a, j] * r[b, j]
            r[to, j] = product if abs(product) < math.inf else math.nan
    elif operation == DIVIDE:
        for j in range(TILE):
            divisor = r[b, j] if r[b, j] != 0.0 else math.nan
            quotient = r[a, j] / divisor
            r[to, j] = _finite(quotient)
    elif operation == LEAST:
        for j in range(TILE):
            r[to, j] = r[a, j] if r[a, j] < r[b, j] or r[a, j] != r[a, j] else r[b, j]
    elif operation == LARGEST:
        for j in range(TILE):
            r[to, j] = r[a, j] if r[a, j] > r[b, j] or r[a, j] != r[a, j] else r[b, j]
    elif operation == NEGATE:
        for j in range(TILE):
            r[to, j] = -r[a, j]
    elif operation == ABSOLUTE:
        for j in range(TILE):
            r[to, j] = abs(r[a, j])
    else:
        _decide(operation, to, a, b, c, r)


@njit
def _decide(operation: int, to: int, a: int, b: int, c: int, r: Reals2) -> None:
    """Comparisons and logic: 1, 0, or NaN where the answer depends on a NaN."""
    if operation == LESS:
        for j in range(TILE):
            r[to, j] = _known(r[a, j] < r[b, j], r[a, j] - r[b, j])
    elif operation == LESS_EQUAL:
        for j in range(TILE):
            r[to, j] = _known(r[a, j] <= r[b, j], r[a, j] - r[b, j])
    elif operation == EQUAL:
        for j in range(TILE):
            r[to, j] = _known(r[a, j] == r[b, j], r[a, j] - r[b, j])
    elif operation == NOT_EQUAL:
        for j in range(TILE):
            r[to, j] = _known(r[a, j] != r[b, j], r[a, j] - r[b, j])
    elif operation == AND:
        for j in range(TILE):
            known = _known(True, r[a, j] - r[b, j])
            r[to, j] = 0.0 if r[a, j] == 0.0 or r[b, j] == 0.0 else known
    elif operation == OR:
        for j in range(TILE):
            known = _known(False, r[a, j] - r[b, j])
            r[to, j] = 1.0 if _is_true(r[a, j]) or _is_true(r[b, j]) else known
    elif operation == NOT:
        for j in range(TILE):
            r[to, j] = _known(r[a, j] == 0.0, r[a, j])
    elif operation == SELECT:
        for j in range(TILE):
            chosen = r[b, j] if r[a, j] != 0.0 else r[c, j]
            r[to, j] = chosen if r[a, j] == r[a, j] else math.nan


@inlined
def _known(answer: bool, x: float) -> float:
    """1 or 0, or NaN if x is NaN."""
    return math.nan if x != x else 1.0 if answer else 0.0


@inlined
def _is_true(x: float) -> bool:
    """True for a number other than 0."""
    return x < 0.0 or x > 0.0


@njit
def _call(operation: int, to: int, a: int, b: int, r: Reals2) -> None:
    """Functions of one or two numbers."""
    if operation == SQUARE_ROOT:
        for j in range(TILE):
            root = math.sqrt(max(r[a, j], 0.0))
            r[to, j] = root if r[a, j] >= 0.0 else math.nan
    elif operation == EXPONENTIAL:
        for j in range(TILE):
            r[to, j] = _finite(exponential(r[a, j])) if r[a, j] == r[a, j] else math.nan
    elif operation == LOGARITHM:
        for j in range(TILE):
            r[to, j] = logarithm(r[a, j]) if r[a, j] > 0.0 else math.nan
    elif operation == SINE:
        for j in range(TILE):
            sine, _ = sincos(r[a, j])
            r[to, j] = sine
    elif operation == COSINE:
        for j in range(TILE):
            _, cosine = sincos(r[a, j])
            r[to, j] = cosine
    elif operation == ARCTANGENT:
        for j in range(TILE):
            r[to, j] = arctangent(r[a, j], r[b, j]) if r[a, j] - r[b, j] == r[a, j] - r[b, j] else math.nan
    elif operation == POWER:
        for j in range(TILE):
            r[to, j] = _power(r[a, j], r[b, j])
    elif operation == FLOOR:
        for j in range(TILE):
            r[to, j] = _floor(r[a, j])


@inlined
def _power(x: float, exponent: float) -> float:
    """x to the power of an exponent: of x ≥ 0, or any x if the exponent is whole; NaN for others."""
    if x != x or exponent != exponent or (x == 0.0 and exponent < 0.0):
        return math.nan
    if exponent == 0.0:
        return 1.0
    if x == 0.0:
        return 0.0
    whole = exponent == _floor(exponent)
    if x < 0.0 and not whole:
        return math.nan
    value = _finite(exponential(exponent * logarithm(abs(x))))
    odd = whole and exponent != 2.0 * _floor(0.5 * exponent)
    return -value if x < 0.0 and odd else value


@inlined
def _floor(x: float) -> float:
    """The largest whole number up to x; x itself where all floats are whole."""
    if not abs(x) < 4503599627370496.0:
        return x
    return float(math.floor(x))


@njit
def _store(output: Ints1, kept: Ints1, robots: int, work: Registers) -> None:
    """Write outputs and memories of the tile's robots."""
    for j in range(robots):
        robot, known = work.row[j], True
        for k in range(output.shape[0]):
            value = work.register[output[k], j]
            work.output[robot, k] = value
            known = known and value == value
        if known or work.always[0] == 1:
            for k in range(kept.shape[0]):
                work.memory[robot, k] = work.register[kept[k], j]
