"""Operations on runs of matrix rows, WIDTH entries at a time for one robot; the remainder of a run is masked.

LLVM cannot know that the rows of a matrix do not overlap, and would leave loops over them scalar.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from artsim.sim.foundation.lanes import pack
from artsim.sim.foundation.records import WIDTH

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_MASK = ir.VectorType(ir.IntType(1), WIDTH)
_COUNT = ir.VectorType(ir.IntType(64), WIDTH)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, column: Any) -> Any:
    made = make_array(kind)(context, builder, array)
    extent = cgutils.unpack_tuple(builder, made.shape)[1]
    index = builder.add(builder.mul(row, extent), column)
    return builder.bitcast(builder.gep(made.data, [index]), _VECTOR.as_pointer())


def _mask(builder: Any, count: Any) -> Any:
    """The first `count` lanes."""
    undefined = ir.Constant(_COUNT, ir.Undefined)
    first = builder.insert_element(undefined, count, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    counts = builder.shuffle_vector(first, undefined, zeros)
    return builder.icmp_signed("<", ir.Constant(_COUNT, list(range(WIDTH))), counts)


@intrinsic
def _load(typing_context: Any, H: Any, i: Any, c: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, sig.args[0], *args), align=8)

    return pack(H, types.int64, types.int64), codegen


@intrinsic
def _store(typing_context: Any, H: Any, i: Any, c: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[3], _pointer(context, builder, sig.args[0], *args[:3]), align=8)
        return context.get_dummy_value()

    return types.void(H, types.int64, types.int64, pack), codegen


@intrinsic
def _load_part(typing_context: Any, H: Any, i: Any, c: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:3])
        kind = ir.FunctionType(_VECTOR, [pointer.type, ir.IntType(32), _MASK, _VECTOR])
        name = f"llvm.masked.load.v{WIDTH}f64.p0v{WIDTH}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        zero = ir.Constant(_VECTOR, [0.0] * WIDTH)
        return builder.call(function, [pointer, ir.Constant(ir.IntType(32), 8), _mask(builder, args[3]), zero])

    return pack(H, types.int64, types.int64, types.int64), codegen


@intrinsic
def _store_part(typing_context: Any, H: Any, i: Any, c: Any, count: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:3])
        kind = ir.FunctionType(ir.VoidType(), [_VECTOR, pointer.type, ir.IntType(32), _MASK])
        name = f"llvm.masked.store.v{WIDTH}f64.p0v{WIDTH}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [args[4], pointer, ir.Constant(ir.IntType(32), 8), _mask(builder, args[3])])
        return context.get_dummy_value()

    return types.void(H, types.int64, types.int64, types.int64, pack), codegen


@intrinsic
def _sum(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), _VECTOR])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{WIDTH}f64")
        return builder.call(function, [ir.Constant(ir.DoubleType(), 0.0), args[0]], fastmath=("reassoc",))

    return types.float64(x), codegen


def strip_size(H: Any) -> int:
    """Entries of a strip of this matrix: WIDTH for one robot; 1 for a pack, whose entries are packs themselves."""
    return 1


@overload(strip_size)
def _strip_size(H):  # type: ignore[no-untyped-def]  # numba compares signatures
    size = 1 if H.dtype == pack else WIDTH
    return lambda H: size


def load_strip(H: Any, i: Any, c: Any) -> Any:
    """The strip of H's row i from column c on."""
    return H[i, c]


@overload(load_strip)
def _load_strip(H, i, c):  # type: ignore[no-untyped-def]
    return (lambda H, i, c: H[i, c]) if H.dtype == pack else (lambda H, i, c: _load(H, i, c))


def store_strip(H: Any, i: Any, c: Any, x: Any) -> None:
    """Write the strip of H's row i from column c on."""
    H[i, c] = x


@overload(store_strip)
def _store_strip(H, i, c, x):  # type: ignore[no-untyped-def]
    def entry(H, i, c, x):  # type: ignore[no-untyped-def]
        H[i, c] = x

    return entry if H.dtype == pack else (lambda H, i, c, x: _store(H, i, c, x))


def subtract_rows(H: Any, i: int, c: int, G: Any, first: int, last: int, g: int, count: int, x: Any) -> None:
    """H[i, c : c + count] -= Σ x[q] G[q, g : g + count] over first ≤ q < last."""
    for n in range(count):
        for q in range(first, last):
            H[i, c + n] = H[i, c + n] - x[q] * G[q, g + n]


@overload(subtract_rows)
def _subtract_rows(H, i, c, G, first, last, g, count, x):  # type: ignore[no-untyped-def]
    if H.dtype == pack:

        def entries(H, i, c, G, first, last, g, count, x):  # type: ignore[no-untyped-def]
            if last - first == 3:  # a contact, or a leg's block: half of the time is the loop over them
                x0, x1, x2 = x[first], x[first + 1], x[first + 2]
                for n in range(count):
                    t = H[i, c + n] - x0 * G[first, g + n]
                    t = t - x1 * G[first + 1, g + n]
                    H[i, c + n] = t - x2 * G[first + 2, g + n]
                return
            for n in range(count):
                t = H[i, c + n]
                for q in range(first, last):
                    t = t - x[q] * G[q, g + n]
                H[i, c + n] = t

        return entries

    def strips(H, i, c, G, first, last, g, count, x):  # type: ignore[no-untyped-def]
        done = 0
        while done + WIDTH <= count:
            t = _load(H, i, c + done)
            for q in range(first, last):
                t = t - x[q] * _load(G, q, g + done)
            _store(H, i, c + done, t)
            done += WIDTH
        if done < count:
            t = _load_part(H, i, c + done, count - done)
            for q in range(first, last):
                t = t - x[q] * _load_part(G, q, g + done, count - done)
            _store_part(H, i, c + done, count - done, t)

    return strips


def row_times(H: Any, i: int, c: int, count: int, x: Any) -> Any:
    """H[i, c : c + count] · x[0, c : c + count]; count > 0."""
    value = H[i, c] * x[0, c]
    for n in range(1, count):
        value = value + H[i, c + n] * x[0, c + n]
    return value


@overload(row_times)
def _row_times(H, i, c, count, x):  # type: ignore[no-untyped-def]
    if H.dtype == pack:

        def entries(H, i, c, count, x):  # type: ignore[no-untyped-def]
            value = H[i, c] * x[0, c]
            for n in range(1, count):
                value = value + H[i, c + n] * x[0, c + n]
            return value

        return entries

    def strips(H, i, c, count, x):  # type: ignore[no-untyped-def]
        left = count % WIDTH
        t = _load_part(H, i, c, left) * _load_part(x, 0, c, left)
        done = left
        while done < count:
            t = t + _load(H, i, c + done) * _load(x, 0, c + done)
            done += WIDTH
        return _sum(t)

    return strips
