"""Programs of a register machine that evaluates expressions for many robots: their records, instructions and runs.

Every instruction writes a register of its own, so that after a run the registers hold the value of each part of an
expression. An operation without a finite result, such as a division by 0, leaves NaN, and so do all that use it. No
numba here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.jit import Entry, bind, disabled, point_at, point_at_function
from artsim.sim.foundation.records import Array, ConstInts1, Ints1, Reals2, aligned_zeros

TILE = 8  # robots whose registers are filled by one pass over the instructions

# operations of a, b and c, which are registers; of loads: columns of the table, of RECALL: a column of the memory
TABLES = ("qpos", "qvel", "activation", "action", "time", "position", "quaternion", "velocity", "recorded")
FIRST_OPERATION = len(TABLES)  # operations below it load from the table of this number
(ADD, SUBTRACT, MULTIPLY, DIVIDE, LEAST, LARGEST, NEGATE, ABSOLUTE) = range(FIRST_OPERATION, FIRST_OPERATION + 8)
(LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, AND, OR, NOT, SELECT) = range(NEGATE + 2, NEGATE + 10)
(SQUARE_ROOT, EXPONENTIAL, LOGARITHM, SINE, COSINE, ARCTANGENT, POWER, FLOOR) = range(SELECT + 1, SELECT + 9)
RECALL = FLOOR + 1


class Program(NamedTuple):
    """Instructions, of which number i writes register `constants + i`; the registers before hold constants."""

    operation: ConstInts1  # (instructions,)
    a: ConstInts1  # (instructions,)
    b: ConstInts1  # (instructions,)
    c: ConstInts1  # (instructions,)
    output: ConstInts1  # (outputs,) registers that are results
    kept: ConstInts1  # (memories,) registers that are kept for the next run


class Observed(NamedTuple):
    """The tables (robots, entries) from which programs load, in the order of TABLES."""

    qpos: Reals2
    qvel: Reals2
    activation: Reals2
    action: Reals2
    time: Reals2
    position: Reals2  # of links' frames, 3 entries each [m]
    quaternion: Reals2  # of links' frames, 4 entries each
    velocity: Reals2  # of links' frames at their origins, 6 entries each [m/s, rad/s]
    recorded: Reals2  # variables of the last step, one after the other


class Registers(NamedTuple):
    """Scratch and results of a program's runs."""

    register: Reals2  # (constants + instructions, TILE)
    robot: Ints1  # (n,) numbers of the robots to evaluate, of which the first `due` are given
    due: Ints1  # (1,)
    row: Ints1  # (TILE,) the robots of the tile, filled up with the last one
    output: Reals2  # (n, outputs)
    memory: Reals2  # (n, memories) values of the registers `kept` at the last run of each robot
    always: Ints1  # (1,) 1: memories are written whatever the outputs are


EVALUATE = Entry("evaluate", "artsim.sim.quantities.register_machine", (Program, Observed, Registers))


class Instructions(NamedTuple):
    """A program as lists: constants, (operation, a, b, c) of each instruction, registers of outputs and memories."""

    constants: Sequence[float]
    lines: Sequence[tuple[int, int, int, int]]
    outputs: Sequence[int]
    kept: Sequence[int]


class ProgramRun:
    """A program bound to the tables of n robots. `output` (n, outputs): the results of each robot's last run;
    `outputs`: their registers."""

    def __init__(self, made: Instructions, tables: Mapping[str, Array], n: int) -> None:
        columns = np.array(made.lines, np.int64).reshape(-1, 4).T
        arrays = [*columns, np.array(made.outputs, np.int64), np.array(made.kept, np.int64)]
        program = Program(*(_constant(values) for values in arrays))
        self.outputs, constants = tuple(made.outputs), len(made.constants)
        register = aligned_zeros((constants + len(made.lines), TILE))
        register[:constants] = np.array(made.constants)[:, None]
        absent = np.zeros((n, 0))
        observed = Observed(**{name: tables.get(name, absent) for name in TABLES})
        self.output, self.memory = np.zeros((n, len(made.outputs))), np.zeros((n, len(made.kept)))
        whole = np.zeros(n, np.int64), np.zeros(1, np.int64), np.zeros(TILE, np.int64)
        self._work = Registers(register, *whole, self.output, self.memory, np.zeros(1, np.int64))
        self._records = program, observed, self._work
        self._call = bind(EVALUATE, 1, *self._records)

    def begin(self, robots: Array) -> None:
        """Evaluate the program for robots without a past: what they recall is as it is now."""
        if self.memory.shape[1]:
            self._work.always[0] = 1
            self.run(robots)
            self._work.always[0] = 0
        self.run(robots)

    def run(self, robots: Array) -> None:
        """Evaluate the program for these robots, and keep what it recalls at their next run. A robot with an output
        that is NaN keeps its memory as it was."""
        self._work.robot[: len(robots)] = robots
        self._work.due[0] = len(robots)
        if disabled():
            self._run_as_python()
        else:
            self._call()

    def _run_as_python(self) -> None:
        with np.errstate(all="ignore"):  # as compiled code does
            self._call()

    def connect(self, pointers: Array) -> object:
        """Have kernels run the program for all robots by `pointers` (2,), as long as the returned object is kept."""
        self._work.due[0] = len(self._work.robot)
        self._work.robot[:] = np.arange(self._work.due[0])
        if disabled():
            return point_at_function(pointers, self._run_as_python)
        return point_at(EVALUATE, 1, pointers, *self._records)

    @property
    def work(self) -> Registers:
        """The scratch and results themselves."""
        return self._work

    def registers(self, robot: int) -> Array:
        """The value of every register for one robot, whose memory must not have been renewed since."""
        self.run(np.array([robot]))
        return self._work.register[:, 0].copy()


def _constant(values: Array) -> Array:
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values
