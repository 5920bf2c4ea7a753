"""Strips of WIDTH numbers from several places: of vectors, of matrix lines of known length, and one per body.

Those of bodies are transposed, so that lane l has the numbers of the l-th body.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from artsim.sim.foundation.lanes import _row_pointers, _splat, _transposed, _write_transposed, pack
from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.strips import _sum

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_SIDES = 3  # columns of the table of bodies


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def loading(extent: int) -> Any:
    """Loads array[line, column : column + WIDTH] of an array with so many columns: known, addresses are constants."""

    @intrinsic
    def load(typing_context: Any, array: Any, line: Any, column: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            index = builder.add(builder.mul(args[1], ir.Constant(args[1].type, extent)), args[2])
            return builder.load(_vector_at(context, builder, sig.args[0], args[0], index), align=8)

        return pack(array, types.int64, types.int64), codegen

    return load


@intrinsic
def read(typing_context: Any, x: Any, p: Any) -> Any:
    """x[p : p + WIDTH] of a vector."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_vector_at(context, builder, sig.args[0], *args), align=8)

    return pack(x, types.int64), codegen


@intrinsic
def write(typing_context: Any, x: Any, p: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _vector_at(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(x, types.int64, pack), codegen


def _strips_of_bodies(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Pointers to the strips of the bodies whose rows of `moving` stand in a column of `sides`: args = (moving, sides,
    p, column, ...)."""
    data = make_array(sig.args[0])(context, builder, args[0]).data
    sides = make_array(sig.args[1])(context, builder, args[1]).data
    pointers = []
    extent = ir.Constant(args[2].type, _SIDES)
    for lane in range(WIDTH):
        line = builder.add(args[2], ir.Constant(args[2].type, lane))
        row = builder.load(builder.gep(sides, [builder.add(builder.mul(line, extent), args[3])]))
        index = builder.mul(row, ir.Constant(row.type, WIDTH))
        pointers.append(builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer()))
    return pointers


_EIGHT = types.UniTuple(pack, WIDTH)  # type: ignore[attr-defined]


@intrinsic
def gather(typing_context: Any, moving: Any, sides: Any, p: Any, column: Any) -> Any:
    """Entry i of the strips of WIDTH bodies as the i-th pack."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = [builder.load(at, align=8) for at in _strips_of_bodies(context, builder, sig, args)]
        return context.make_tuple(builder, sig.return_type, _transposed(builder, vectors))

    return _EIGHT(moving, sides, types.int64, types.int64), codegen


@intrinsic
def scatter(typing_context: Any, moving: Any, sides: Any, p: Any, column: Any, strips: Any) -> Any:
    """The inverse of `gather`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = cgutils.unpack_tuple(builder, args[4], WIDTH)
        _write_transposed(builder, vectors, _strips_of_bodies(context, builder, sig, args))
        return context.get_dummy_value()

    return types.void(moving, sides, types.int64, types.int64, _EIGHT), codegen


@intrinsic
def _turn(typing_context: Any, array: Any, line: Any, column: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        made = make_array(sig.args[0])(context, builder, args[0])
        extent = cgutils.unpack_tuple(builder, made.shape)[1]
        start = builder.add(builder.mul(args[1], extent), args[2])
        pointers = _row_pointers(context, builder, sig.args[0], args[0], start, extent)
        _write_transposed(builder, [builder.load(at, align=8) for at in pointers], pointers)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), codegen


def turn(array: Any, line: int, column: int) -> None:
    """Transpose the square of WIDTH lines and columns that begins there."""
    square = array[line : line + WIDTH, column : column + WIDTH]
    square[:] = square.T.copy()


@overload(turn)
def _turn_square(array, line, column):  # type: ignore[no-untyped-def]  # numba compares signatures
    return lambda array, line, column: _turn(array, line, column)


# ------------------------------------------------------------------ whole vectors


def product(x: Any, y: Any, count: int) -> Any:
    """The sum of products of the first entries of two vectors."""
    return float(x[:count] @ y[:count])


@overload(product)
def _product(x, y, count):  # type: ignore[no-untyped-def]
    def strips(x, y, count):  # type: ignore[no-untyped-def]
        whole = count - count % WIDTH
        total, rest = _splat(0.0), 0.0
        for p in range(0, whole, WIDTH):
            total = total + read(x, p) * read(y, p)
        for p in range(whole, count):
            rest += x[p] * y[p]
        return _sum(total) + rest

    return strips


def add_scaled(out: Any, share: float, x: Any, count: int) -> None:
    """out += share x, over `count` entries."""
    out[:count] += share * x[:count]


@overload(add_scaled)
def _add_scaled(out, share, x, count):  # type: ignore[no-untyped-def]
    def strips(out, share, x, count):  # type: ignore[no-untyped-def]
        whole = count - count % WIDTH
        for p in range(0, whole, WIDTH):
            write(out, p, read(out, p) + share * read(x, p))
        for p in range(whole, count):
            out[p] += share * x[p]

    return strips


def subtract(x: Any, y: Any, out: Any, count: int) -> None:
    """out = x - y, over `count` entries."""
    out[:count] = x[:count] - y[:count]


@overload(subtract)
def _subtract(x, y, out, count):  # type: ignore[no-untyped-def]
    def strips(x, y, out, count):  # type: ignore[no-untyped-def]
        whole = count - count % WIDTH
        for p in range(0, whole, WIDTH):
            write(out, p, read(x, p) - read(y, p))
        for p in range(whole, count):
            out[p] = x[p] - y[p]

    return strips
