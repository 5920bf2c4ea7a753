"""Expressions over the names of a run, compiled to instructions of the register machine (sim/quantities/program.py).

The syntax is Python's: numbers and names, + - * / ** %, comparisons, and or not, `x if condition else y`, vectors
`(x, y)`, and calls of FUNCTIONS. Operations act entry by entry; a number and a vector go together.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.io.expressions.names import Named, Names
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities import program as machine
from artsim.sim.quantities.program import TABLES, Instructions

_LONGEST = 10_000  # characters of an expression
_BINARY: Mapping[type[ast.AST], int] = {
    ast.Add: machine.ADD,
    ast.Sub: machine.SUBTRACT,
    ast.Mult: machine.MULTIPLY,
    ast.Div: machine.DIVIDE,
}
_COMPARISONS: Mapping[type[ast.AST], tuple[int, bool]] = {  # and whether the sides change places
    ast.Lt: (machine.LESS, False),
    ast.LtE: (machine.LESS_EQUAL, False),
    ast.Gt: (machine.LESS, True),
    ast.GtE: (machine.LESS_EQUAL, True),
    ast.Eq: (machine.EQUAL, False),
    ast.NotEq: (machine.NOT_EQUAL, False),
}
_ENTRYWISE = {
    "abs": machine.ABSOLUTE,
    "sqrt": machine.SQUARE_ROOT,
    "exp": machine.EXPONENTIAL,
    "log": machine.LOGARITHM,
    "sin": machine.SINE,
    "cos": machine.COSINE,
    "floor": machine.FLOOR,
}
_AXES = {f"{axis}_axis": k for k, axis in enumerate("xyz")}  # of a link's frame, in the world

Value = Array
"""Numbers of registers, an array of one axis for a vector, of none for a number."""


class Compiler:
    """Compiles the expressions of one program, in which equal parts are evaluated once.

    names: what names mean; constants: further names, of numbers. `dt` among them is the time between two evaluations.
    """

    def __init__(self, names: Names, constants: Mapping[str, float]) -> None:
        self._names, self._constants = names, {"pi": math.pi, **constants}
        self._numbers: dict[float, int] = {}
        self._lines: dict[tuple[int, int, int, int], int] = {}
        self._texts: list[str] = []
        self._kept: list[int] = []
        self._text, self._remembering = "", False

    # ------------------------------------------------------------------ results

    def compile(self, text: str, what: str) -> Value:
        """The registers of an expression; `what` names it in errors.

        Raises UsageError for text that is no expression, unknown names, and vectors that do not go together.
        """
        if not isinstance(text, str):
            raise UsageError(f"{what}: want an expression as text, got {text!r}")
        try:
            if len(text) > _LONGEST:
                raise UsageError(f"more than {_LONGEST} characters")
            return self._values(ast.parse(text.strip(), mode="eval").body)
        except UsageError as error:
            raise UsageError(f"{what}: {error}") from None
        except SyntaxError as error:
            raise UsageError(f"{what}: {text!r} is no expression: {error.msg}") from None
        except (RecursionError, MemoryError, ValueError):
            raise UsageError(f"{what}: {text[:60]!r} is no expression: nested too deep, or with a null byte") from None

    def number(self, text: str, what: str) -> int:
        """The register of an expression that must be a number. Raises UsageError."""
        found = self.compile(text, what)
        if found.ndim:
            raise UsageError(f"{what}: {text!r} is a vector of {found.size}, want a number: sum(…), norm(…)")
        return int(found)

    def weighted(self, registers: Sequence[int], weights: Sequence[float]) -> int:
        """The register of a weighted sum."""
        self._text = "the weighted sum"
        terms = [
            self._do(machine.MULTIPLY, register, self._constant(weight))
            for register, weight in zip(registers, weights, strict=True)
        ]
        return int(self._fold(machine.ADD, np.array(terms, np.int64)))

    def instructions(self, outputs: Sequence[int]) -> Instructions:
        """The program of all expressions. Lines refer to registers from 0 on, constants first."""
        constants = list(self._numbers)

        def final(register: int) -> int:  # while compiling, constants count down from -1 and lines up from 0
            return -1 - register if register < 0 else len(constants) + register

        lines = []
        for operation, a, b, c in self._lines:
            loads = operation < machine.FIRST_OPERATION or operation == machine.RECALL
            lines.append((operation, a, b, c) if loads else (operation, final(a), final(b), final(c)))
        return Instructions(constants, lines, [final(k) for k in outputs], [final(k) for k in self._kept])

    def reason(self, values: Array, register: int) -> str:
        """The text of the operation because of which a register is NaN. `values`: of all registers, constants first,
        register as in the instructions."""
        constants = len(self._numbers)
        lines = self.instructions(()).lines
        while register >= constants:
            operation, *operands = lines[register - constants]
            loads = operation < machine.FIRST_OPERATION or operation == machine.RECALL
            causes = [] if loads else [k for k in operands if np.isnan(values[k])]
            if not causes:
                told = {machine.DIVIDE: "division by 0", machine.SQUARE_ROOT: "square root of a negative number"}
                why = told.get(operation, "no finite value")
                return f"{why} in {self._texts[register - constants]!r}"
            register = causes[0]
        return "no finite value"

    # ------------------------------------------------------------------ registers

    def _constant(self, value: float) -> int:
        if not math.isfinite(value):
            raise UsageError(f"{value} is not finite")
        return self._numbers.setdefault(float(value) + 0.0, -1 - len(self._numbers))

    def _do(self, operation: int, a: int, b: int | None = None, c: int | None = None) -> int:
        """The register of an instruction, which is found again if it is there already."""
        line = operation, int(a), int(a if b is None else b), int(a if c is None else c)
        if line not in self._lines:
            self._lines[line] = len(self._lines)
            self._texts.append(self._text)
        return self._lines[line]

    def _each(self, operation: int, *values: Value) -> Value:
        """An operation, entry by entry. Raises UsageError for vectors of different lengths."""
        try:
            alike = np.broadcast_arrays(*values)
        except ValueError:
            sizes = " and ".join(str(value.size) for value in values if value.ndim)
            raise UsageError(f"vectors of {sizes} entries do not go together in {self._text!r}") from None
        made = [self._do(operation, *entries) for entries in zip(*(value.flat for value in alike), strict=True)]
        return np.array(made, np.int64).reshape(alike[0].shape)

    def _fold(self, operation: int, value: Value) -> Value:
        """All entries of a value put together, from the first to the last. Raises UsageError if there are none."""
        entries = value.reshape(-1)
        if not len(entries):
            raise UsageError(f"nothing to put together in {self._text!r}")
        found = int(entries[0])
        for entry in entries[1:]:
            found = self._do(operation, found, int(entry))
        return np.array(found)

    def _number_value(self, value: float) -> Value:
        return np.array(self._constant(value))

    def _load(self, named: Named) -> Value:
        table = TABLES.index(named.table)
        made = [self._do(table, int(column), 0, 0) for column in named.columns.flat]
        return np.array(made, np.int64).reshape(named.columns.shape)

    # ------------------------------------------------------------------ syntax

    def _values(self, node: ast.expr) -> Value:
        """The registers of an expression."""
        found = self._found(node)
        self._text = ast.unparse(node)
        return self._load(found) if isinstance(found, Named) else found

    def _found(self, node: ast.expr) -> Named | Value:
        """The variable, or the registers, for which an expression stands."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return self._number_value(value)
            case ast.Name() | ast.Attribute():
                return self._named(node)
            case ast.Subscript(value=whole, slice=index):
                return self._part(whole, index)
            case ast.UnaryOp(op=op, operand=operand):
                return self._signed(op, self._values(operand), node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._values(left), right, node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared([left, *others], ops, node)
            case ast.BoolOp(op=op, values=values):
                parts = [self._values(value) for value in values]
                self._text = ast.unparse(node)
                operation, found = machine.AND if isinstance(op, ast.And) else machine.OR, parts[0]
                for part in parts[1:]:
                    found = self._each(operation, found, part)
                return found
            case ast.IfExp(test=test, body=body, orelse=other):
                parts = [self._values(part) for part in (test, body, other)]
                self._text = ast.unparse(node)
                return self._each(machine.SELECT, *parts)
            case ast.Tuple(elts=entries) | ast.List(elts=entries):
                return np.concatenate([self._values(entry).reshape(-1) for entry in entries] or [np.zeros(0, np.int64)])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._called(name, arguments, node)
        raise UsageError(f"{ast.unparse(node)!r} has no meaning here")

    def _named(self, node: ast.expr) -> Named | Value:
        """A dotted name; or an attribute of `link["name"]`."""
        if isinstance(node, ast.Attribute) and (link := _link_of(node.value)) is not None:
            return self._of_link(link, node.attr)
        words = _dotted(node)
        if not words:
            raise UsageError(f"{ast.unparse(node)!r} has no meaning here")
        path = ".".join(words)
        if path in self._constants:
            return self._number_value(self._constants[path])
        owner, _, part = path.rpartition(".")
        if part in _AXES and owner in self._names.links:
            return self._of_link(owner, part)
        found = self._names.find(path)
        if found is None and path in self._names.links:
            raise UsageError(f"{path!r} is a link: want a part of it, {path}.z, {path}.vx, {path}.quaternion, …")
        if found is None:
            known = [*self._names.known(path), *self._constants]
            raise UsageError(f"{path!r} is not known{nearest(path, known)}")
        return found

    def _of_link(self, link: str, part: str) -> Named | Value:
        if part not in _AXES:
            return self._names.of_link(link, part)
        self._text = f"{link}.{part}"
        axis = [self._number_value(float(k == _AXES[part])) for k in range(3)]
        return self._turned(self._load(self._names.of_link(link, "quaternion")), np.array(axis), 1.0)

    def _part(self, whole: ast.expr, index: ast.expr) -> Named | Value:
        """A part of a variable by label, pattern, number or slice; or an entry of a vector."""
        steps = _index(index)
        found = self._found(whole)
        if isinstance(found, Named):
            return found.at(steps)
        self._text = ast.unparse(whole)
        try:
            return np.asarray(found[steps])
        except (IndexError, TypeError, ValueError):
            raise UsageError(f"{self._text!r} has {found.size} entries, there is no {ast.unparse(index)}") from None

    def _signed(self, op: ast.unaryop, value: Value, node: ast.expr) -> Value:
        self._text = ast.unparse(node)
        if isinstance(op, ast.UAdd):
            return value
        if isinstance(op, ast.Invert):
            raise UsageError(f"{self._text!r} has no meaning here")
        if isinstance(op, ast.USub) and not value.ndim and value < 0:
            return self._number_value(-list(self._numbers)[-1 - int(value)])
        return self._each(machine.NEGATE if isinstance(op, ast.USub) else machine.NOT, value)

    def _binary(self, op: ast.operator, left: Value, right: ast.expr, node: ast.expr) -> Value:
        other = self._values(right)
        self._text = ast.unparse(node)
        if type(op) in _BINARY:
            return self._each(_BINARY[type(op)], left, other)
        if isinstance(op, ast.Pow):
            return self._power(left, other)
        if isinstance(op, ast.Mod):
            whole = self._each(machine.FLOOR, self._each(machine.DIVIDE, left, other))
            return self._each(machine.SUBTRACT, left, self._each(machine.MULTIPLY, whole, other))
        raise UsageError(f"{self._text!r}: this operator has no meaning here")

    def _power(self, value: Value, exponent: Value) -> Value:
        """A power, by multiplication for whole constant exponents from 2 to 16."""
        if not exponent.ndim and exponent < 0:
            times = list(self._numbers)[-1 - int(exponent)]
            if times == int(times) and 2 <= times <= 16:
                found = value
                for _ in range(int(times) - 1):
                    found = self._each(machine.MULTIPLY, found, value)
                return found
        return self._each(machine.POWER, value, exponent)

    def _compared(self, parts: list[ast.expr], ops: list[ast.cmpop], node: ast.expr) -> Value:
        values, found = [self._values(part) for part in parts], None
        self._text = ast.unparse(node)
        for op, left, right in zip(ops, values[:-1], values[1:], strict=True):
            if type(op) not in _COMPARISONS:
                raise UsageError(f"{self._text!r}: this comparison has no meaning here")
            operation, swapped = _COMPARISONS[type(op)]
            one = self._each(operation, *((right, left) if swapped else (left, right)))
            found = one if found is None else self._each(machine.AND, found, one)
        assert found is not None
        return found

    # ------------------------------------------------------------------ functions

    def _called(self, name: str, arguments: list[ast.expr], node: ast.expr) -> Value:
        if name not in FUNCTIONS:
            raise UsageError(f"function {name!r} is not known{nearest(name, FUNCTIONS)}")
        if name in ("previous", "rate"):
            return self._remembered(name, arguments, node)
        given = [self._values(argument) for argument in arguments]
        self._text = ast.unparse(node)
        if name in _ENTRYWISE and len(given) == 1:
            return self._each(_ENTRYWISE[name], given[0])
        least, most = _ARGUMENTS.get(name, (1, 1))
        if name in _ENTRYWISE or not least <= len(given) <= most:
            raise UsageError(f"{self._text!r}: {name} takes {FUNCTIONS[name]}")
        return getattr(self, f"_{name}")(*given)  # type: ignore[no-any-return]

    def _remembered(self, name: str, arguments: list[ast.expr], node: ast.expr) -> Value:
        """The value at the evaluation before; the present one at the first after a reset."""
        if len(arguments) != 1:
            raise UsageError(f"{ast.unparse(node)!r}: {name} takes {FUNCTIONS[name]}")
        if self._remembering:
            raise UsageError(f"{ast.unparse(node)!r}: previous and rate cannot stand in each other")
        self._remembering = True
        try:
            now = self._values(arguments[0])
        finally:
            self._remembering = False
        self._text = ast.unparse(node)
        places = []
        for register in now.reshape(-1).tolist():
            if register not in self._kept:
                self._kept.append(register)
            places.append(self._do(machine.RECALL, self._kept.index(register), 0, 0))
        before = np.array(places, np.int64).reshape(now.shape)
        if name == "previous":
            return before
        return self._each(machine.DIVIDE, self._each(machine.SUBTRACT, now, before), self._time_between())

    def _time_between(self) -> Value:
        if "dt" not in self._constants:
            raise UsageError("rate has no meaning here")
        return self._number_value(self._constants["dt"])

    def _min(self, *values: Value) -> Value:
        return self._extreme(machine.LEAST, values)

    def _max(self, *values: Value) -> Value:
        return self._extreme(machine.LARGEST, values)

    def _extreme(self, operation: int, values: tuple[Value, ...]) -> Value:
        if len(values) == 1:
            return self._fold(operation, values[0])
        found = values[0]
        for value in values[1:]:
            found = self._each(operation, found, value)
        return found

    def _sum(self, value: Value) -> Value:
        return self._fold(machine.ADD, value)

    def _mean(self, value: Value) -> Value:
        return self._each(machine.DIVIDE, self._sum(value), self._number_value(float(value.size)))

    def _all(self, value: Value) -> Value:
        return self._fold(machine.AND, value)

    def _any(self, value: Value) -> Value:
        return self._fold(machine.OR, value)

    def _dot(self, one: Value, other: Value) -> Value:
        return self._sum(self._each(machine.MULTIPLY, one, other))

    def _norm(self, value: Value) -> Value:
        return self._each(machine.SQUARE_ROOT, self._dot(value, value))

    def _clip(self, value: Value, low: Value, high: Value) -> Value:
        return self._each(machine.LARGEST, self._each(machine.LEAST, value, high), low)

    def _arctan2(self, y: Value, x: Value) -> Value:
        return self._each(machine.ARCTANGENT, y, x)

    def _tanh(self, value: Value) -> Value:
        """1 - 2 / (exp(2 x) + 1), where tanh is 1 to rounding from 20 on."""
        one, two, far = (self._number_value(number) for number in (1.0, 2.0, 20.0))
        bounded = self._clip(value, self._number_value(-20.0), far)
        grown = self._each(machine.EXPONENTIAL, self._each(machine.MULTIPLY, two, bounded))
        share = self._each(machine.DIVIDE, two, self._each(machine.ADD, grown, one))
        return self._each(machine.SUBTRACT, one, share)

    def _rotate(self, quaternion: Value, vector: Value) -> Value:
        return self._turned(quaternion, vector, 1.0)

    def _unrotate(self, quaternion: Value, vector: Value) -> Value:
        return self._turned(quaternion, vector, -1.0)

    def _turned(self, quaternion: Value, vector: Value, sign: float) -> Value:
        """v + 2 s w (r × v) + 2 r × (r × v) for a quaternion (w, r) of length 1, s the sign."""
        if quaternion.shape != (4,) or vector.shape != (3,):
            raise UsageError(f"{self._text!r}: want a quaternion of 4 entries and a vector of 3")
        w, r, two = quaternion[0], quaternion[1:], self._number_value(2.0)
        across = self._each(machine.MULTIPLY, two, self._cross(r, vector))
        turned = self._each(machine.MULTIPLY, self._each(machine.MULTIPLY, self._number_value(sign), w), across)
        return self._each(machine.ADD, self._each(machine.ADD, vector, turned), self._cross(r, across))

    def _cross(self, a: Value, b: Value) -> Value:
        if a.shape != (3,) or b.shape != (3,):
            raise UsageError(f"{self._text!r}: want vectors of 3 entries")
        left = self._each(machine.MULTIPLY, a[[1, 2, 0]], b[[2, 0, 1]])
        return self._each(machine.SUBTRACT, left, self._each(machine.MULTIPLY, a[[2, 0, 1]], b[[1, 2, 0]]))


FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(_ENTRYWISE, "one argument"),
    "tanh": "one argument",
    "min": "a vector, or several arguments",
    "max": "a vector, or several arguments",
    **dict.fromkeys(("sum", "mean", "norm", "all", "any"), "a vector"),
    "dot": "two vectors",
    "cross": "two vectors of 3",
    "clip": "a value, the least and the largest one",
    "arctan2": "y and x",
    "rotate": "a quaternion and a vector",
    "unrotate": "a quaternion and a vector",
    "previous": "one argument",
    "rate": "one argument",
}
"""Functions, and the arguments that each takes."""
_ARGUMENTS = {
    **dict.fromkeys(("min", "max"), (1, 1000)),
    **dict.fromkeys(("dot", "cross", "arctan2", "rotate", "unrotate"), (2, 2)),
    "clip": (3, 3),
}


def _dotted(node: ast.expr) -> list[str]:
    """The words of a dotted name; none for another expression."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (words := _dotted(node.value)):
        return [*words, node.attr]
    return []


def _link_of(node: ast.expr) -> str | None:
    """The name of the link in `link["name"]`."""
    match node:
        case ast.Subscript(value=ast.Name(id="link"), slice=ast.Constant(value=str() as name)):
            return name
    return None


def _index(node: ast.expr) -> Any:
    """An index: a label, a number, a slice, or several of them. Raises UsageError."""
    match node:
        case ast.Constant(value=str() | int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
        case ast.Slice(lower=low, upper=high, step=step):
            return slice(*(None if part is None else _index(part) for part in (low, high, step)))
        case ast.Tuple(elts=entries):
            return tuple(_index(entry) for entry in entries)
    raise UsageError(f"{ast.unparse(node)!r} is no index: want a name, a pattern, a number or a slice")
