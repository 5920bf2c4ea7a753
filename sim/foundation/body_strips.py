"""Strips of WIDTH numbers from several places: of vectors, and of bodies.

The STRIPS numbers of WIDTH bodies are transposed, so that lane l of each strip is of the l-th body. Code that takes a
lane serves both widths: lane None stands for all lanes, as a pack; a number for one of them, as a float.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from artsim.sim.foundation.jit import compiled_form
from artsim.sim.foundation.lanes import _splat, _transposed, _write_transposed, pack
from artsim.sim.foundation.records import SEATS, STRIPS, WIDTH
from artsim.sim.foundation.strips import _sum

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_SIDES = 3  # columns of the table of bodies

Lane: TypeAlias = int | Any  # a lane; None: all of them


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def _read(typing_context: Any, x: Any, p: Any) -> Any:
    """x[p : p + WIDTH] of a vector."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_vector_at(context, builder, sig.args[0], *args), align=8)

    return pack(x, types.int64), codegen


@intrinsic
def _write(typing_context: Any, x: Any, p: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _vector_at(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(x, types.int64, pack), codegen


def load(x: Any, p: int, lane: Lane) -> Any:
    """x[p + lane] of a vector; the pack x[p : p + WIDTH] for all lanes, None."""
    return x[p + lane]


@compiled_form(load)
def _load(x, p, lane):  # type: ignore[no-untyped-def]  # numba compares signatures
    if lane == types.none:
        return lambda x, p, lane: _read(x, p)
    return lambda x, p, lane: x[p + lane]


def save(x: Any, p: int, lane: Lane, value: Any) -> None:
    """The inverse of `load`."""
    x[p + lane] = value


@compiled_form(save)
def _save(x, p, lane, value):  # type: ignore[no-untyped-def]
    def pack_of(x, p, lane, value):  # type: ignore[no-untyped-def]
        _write(x, p, value)

    def number(x, p, lane, value):  # type: ignore[no-untyped-def]
        x[p + lane] = value

    return pack_of if lane == types.none else number


def _rows_of_bodies(context: Any, builder: Any, sig: Any, args: Any) -> list[list[Any]]:
    """Pointers to the rows of `moving` of the bodies in a column of `sides`, in pieces of WIDTH entries: for each piece
    those of all bodies. args = (moving, sides, p, column, ...)."""
    data = make_array(sig.args[0])(context, builder, args[0]).data
    sides = make_array(sig.args[1])(context, builder, args[1]).data
    pointers: list[list[Any]] = [[] for _ in range(0, SEATS, WIDTH)]
    extent = ir.Constant(args[2].type, _SIDES)
    for lane in range(WIDTH):
        line = builder.add(args[2], ir.Constant(args[2].type, lane))
        row = builder.load(builder.gep(sides, [builder.add(builder.mul(line, extent), args[3])]))
        for piece, of_bodies in enumerate(pointers):
            index = builder.add(builder.mul(row, ir.Constant(row.type, SEATS)), ir.Constant(row.type, piece * WIDTH))
            of_bodies.append(builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer()))
    return pointers


_STRIPS = types.UniTuple(pack, STRIPS)  # type: ignore[attr-defined]


@intrinsic
def _gather(typing_context: Any, moving: Any, sides: Any, p: Any, column: Any) -> Any:

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        strips = []
        for pointers in _rows_of_bodies(context, builder, sig, args):
            strips += _transposed(builder, [builder.load(at, align=8) for at in pointers])
        return context.make_tuple(builder, sig.return_type, strips[:STRIPS])

    return _STRIPS(moving, sides, types.int64, types.int64), codegen


@intrinsic
def _scatter(typing_context: Any, moving: Any, sides: Any, p: Any, column: Any, strips: Any) -> Any:

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zeros = [ir.Constant(_VECTOR, [0.0] * WIDTH)] * (SEATS - STRIPS)
        strips = [*cgutils.unpack_tuple(builder, args[4], STRIPS), *zeros]
        for piece, pointers in enumerate(_rows_of_bodies(context, builder, sig, args)):
            _write_transposed(builder, strips[piece * WIDTH : (piece + 1) * WIDTH], pointers)
        return context.get_dummy_value()

    return types.void(moving, sides, types.int64, types.int64, _STRIPS), codegen


def gather(moving: Any, sides: Any, p: int, column: int, lane: Lane) -> tuple[Any, ...]:
    """Entry i of the rows of WIDTH bodies as the i-th pack; of the body of one lane as the i-th number."""
    return tuple(moving[sides[p + lane, column], :STRIPS])


@compiled_form(gather)
def _gather_all(moving, sides, p, column, lane):  # type: ignore[no-untyped-def]
    return lambda moving, sides, p, column, lane: _gather(moving, sides, p, column)


def scatter(moving: Any, sides: Any, p: int, column: int, lane: Lane, strips: tuple[Any, ...]) -> None:
    """The inverse of `gather`."""
    moving[sides[p + lane, column], :STRIPS] = strips


@compiled_form(scatter)
def _scatter_all(moving, sides, p, column, lane, strips):  # type: ignore[no-untyped-def]
    return lambda moving, sides, p, column, lane, strips: _scatter(moving, sides, p, column, strips)


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
            total = total + _read(x, p) * _read(y, p)
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
            _write(out, p, _read(out, p) + share * _read(x, p))
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
            _write(out, p, _read(x, p) - _read(y, p))
        for p in range(whole, count):
            out[p] = x[p] - y[p]

    return strips
