"""SIMD lanes for numba: one kernel source, compiled for one robot (float64) and for a pack of WIDTH robots.

A pack is an LLVM vector `<WIDTH x double>`. `+ - * /`, unary minus and the functions below work on packs as they do
on floats, so a kernel written over "a scalar of type T" compiles for both. Lanes never talk to each other; control
flow is shared, which holds as long as all lanes simulate the same model (branches depend on the model, not on q).

numba's auto-vectoriser does not do this by itself: it cannot prove that the workspace arrays do not overlap, and
leaves the inner loop scalar (tried: 10 zmm instructions against 382 with this type).
"""

from __future__ import annotations

import math
import operator
import time
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model
from numba.np.arrayobj import make_array

from artsim.sim.foundation.records import ALIGNED, EMPTY_BLOCK, WIDTH

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_LANE = ir.IntType(32)


class Pack(types.Type):
    """The numba type of WIDTH float64 lanes."""

    bitwidth = 64 * WIDTH

    def __init__(self) -> None:
        super().__init__(name=f"float64x{WIDTH}")


pack = Pack()


@register_model(Pack)
class _PackModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)


def _broadcast(builder: Any, scalar: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_LANE, 0))
    mask = ir.Constant(ir.VectorType(_LANE, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, undefined, mask)


def _register_arithmetic(function: Any, instruction: str) -> None:
    class Typing(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            numbers = (types.Float, types.Integer)
            if len(args) == 2 and pack in args and all(a == pack or isinstance(a, numbers) for a in args):
                return signature(pack, *(a if a == pack else types.float64 for a in args))
            return None

    infer_global(function)(Typing)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right = (a if t == pack else _broadcast(builder, a) for t, a in zip(sig.args, args, strict=True))
        return getattr(builder, instruction)(left, right, flags=("contract",))

    for shape in ((pack, pack), (pack, types.float64), (types.float64, pack)):
        lower_builtin(function, *shape)(lower)


for _name, _instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    _register_arithmetic(getattr(operator, _name), _instruction)
    _register_arithmetic(getattr(operator, f"i{_name}"), _instruction)


@infer_global(operator.neg)
class _NegTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(pack, pack) if args == (pack,) else None


lower_builtin(operator.neg, pack)(lambda context, builder, sig, args: builder.fneg(args[0]))


def _llvm_function(llvm_name: str, arity: int = 1) -> Any:
    """An intrinsic for llvm.<name> over float64 or pack."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = _VECTOR if sig.return_type == pack else ir.DoubleType()
        suffix = f"v{WIDTH}f64" if sig.return_type == pack else "f64"
        kind = ir.FunctionType(value, [value] * arity)
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{llvm_name}.{suffix}")
        return builder.call(function, args)

    if arity == 1:

        @intrinsic
        def call(typing_context: Any, x: Any) -> Any:
            return x(x), codegen

        return call

    @intrinsic
    def call2(typing_context: Any, x: Any, y: Any) -> Any:
        return x(x, x), codegen

    return call2


_sqrt, _floor, _fabs = _llvm_function("sqrt"), _llvm_function("floor"), _llvm_function("fabs")


def sqrt(x: Any) -> Any:
    """Square root of T."""
    return math.sqrt(x)


def floor(x: Any) -> Any:
    """Largest integral value not above x, as T."""
    return float(math.floor(x))


def absolute(x: Any) -> Any:
    """|x| of T."""
    return abs(x)


overload(sqrt)(lambda x: lambda x: _sqrt(x))
overload(floor)(lambda x: lambda x: _floor(x))
overload(absolute)(lambda x: lambda x: _fabs(x))


def where_greater(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x where a > b, else y; a, b, x, y are T."""
    return x if a > b else y


@intrinsic
def _where_greater(typing_context: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return a(a, a, a, a), codegen


overload(where_greater)(lambda a, b, x, y: lambda a, b, x, y: _where_greater(a, b, x, y))


def highest(x: Any) -> float:
    """The largest of a T's lanes, a float."""
    return float(x)


@intrinsic
def _highest(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [_VECTOR])
        name = f"llvm.vector.reduce.fmax.v{WIDTH}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return types.float64(pack), codegen


@overload(highest)
def _highest_of(x):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x: _highest(x)
    return lambda x: x


def any_positive(x: Any) -> bool:
    """True if any of a T's lanes is more than 0: one comparison, where `highest` takes several steps."""
    return float(x) > 0.0


@intrinsic
def _any_positive(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        above = builder.fcmp_ordered(">", args[0], ir.Constant(_VECTOR, [0.0] * WIDTH))
        bits = ir.IntType(WIDTH)
        return builder.icmp_unsigned("!=", builder.bitcast(above, bits), ir.Constant(bits, 0))

    return types.boolean(pack), codegen


@overload(any_positive)
def _any_positive_of(x):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x: _any_positive(x)
    return lambda x: x > 0.0


def surely_zero(x: Any) -> bool:
    """True if a T is 0 so that control flow may tell: a float that is, lanes never."""
    return float(x) == 0.0


@overload(surely_zero)
def _surely_zero(x):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x: False
    return lambda x: x == 0.0


@intrinsic
def _splat(typing_context: Any, x: Any) -> Any:
    return pack(types.float64), lambda context, builder, sig, args: _broadcast(builder, args[0])


def real(x: Any, like: Any) -> Any:
    """The float x as a T, T being the type of `like`; a T as it is."""
    return x


@overload(real)
def _real(x, like):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x, like: x
    if like == pack:
        return lambda x, like: _splat(float(x))
    return lambda x, like: float(x)


def zero_like(x: Any) -> Any:
    """0 as a T, T being the type of `x`."""
    return 0.0


@overload(zero_like)
def _zero_like(x):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x: _splat(0.0)
    return lambda x: 0.0


def cycles() -> int:
    """The processor's time stamp counter."""
    return time.perf_counter_ns()


@intrinsic
def _cycles(typing_context: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter"), [])

    return types.int64(), codegen


overload(cycles)(lambda: lambda: _cycles())


def lane_count(array: Any) -> int:
    """Robots per T, or per element of a lane array: 1, or WIDTH in packs."""
    return 1


@overload(lane_count)
def _lane_count(array):  # type: ignore[no-untyped-def]  # numba compares signatures
    count = WIDTH if pack in (array, getattr(array, "dtype", array)) else 1
    return lambda array: count


def lane_get(array: Any, index: int, lane: int) -> float:
    """The float of one lane of the element at flat `index` of a C-ordered lane array."""
    return float(array.reshape(-1)[index])


def lane_set(array: Any, index: int, lane: int, value: float) -> None:
    """Write one lane of the element at flat `index` of a C-ordered lane array."""
    array.reshape(-1)[index] = value


def lane_of(x: Any, lane: int) -> float:
    """The float of one lane of a T."""
    return float(x)


@intrinsic
def _extract(typing_context: Any, x: Any, lane: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], _LANE))

    return types.float64(x, types.int64), codegen


@overload(lane_of)
def _lane_of(x, lane):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x, lane: _extract(x, lane)
    return lambda x, lane: x


def with_lane(x: Any, lane: int, value: float) -> Any:
    """The T with another float in one lane."""
    return value


@intrinsic
def _insert(typing_context: Any, x: Any, lane: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], builder.trunc(args[1], _LANE))

    return pack(x, types.int64, types.float64), codegen


@overload(with_lane)
def _with_lane(x, lane, value):  # type: ignore[no-untyped-def]
    if x == pack:
        return lambda x, lane, value: _insert(x, lane, value)
    return lambda x, lane, value: value


def _lane_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lane: Any) -> Any:
    data = make_array(array_type)(context, builder, array).data
    scalars = builder.bitcast(data, ir.DoubleType().as_pointer())
    if array_type.dtype == pack:
        index = builder.add(builder.mul(index, ir.Constant(index.type, WIDTH)), lane)
    return builder.gep(scalars, [index])


@intrinsic
def _lane_get(typing_context: Any, array: Any, index: Any, lane: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_lane_pointer(context, builder, sig.args[0], *args))

    return types.float64(array, types.int64, types.int64), codegen


@intrinsic
def _lane_set(typing_context: Any, array: Any, index: Any, lane: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[3], _lane_pointer(context, builder, sig.args[0], *args[:3]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.float64), codegen


overload(lane_get)(lambda array, index, lane: lambda array, index, lane: _lane_get(array, index, lane))
overload(lane_set)(
    lambda array, index, lane, value: lambda array, index, lane, value: _lane_set(array, index, lane, value)
)


def gathered(values: Any, places: Any, at: int, stride: int, offset: int) -> Any:
    """The T of entries from a lane array, for each lane its own: flat indices places[at, lane] stride + offset; 0 where
    the place is negative."""
    place = int(places[at, 0])
    return float(values.reshape(-1)[place * stride + offset]) if place >= 0 else 0.0


@intrinsic
def _gathered(typing_context: Any, values: Any, places: Any, at: Any, stride: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        table = make_array(sig.args[1])(context, builder, args[1]).data
        result, none = ir.Constant(_VECTOR, [0.0] * WIDTH), ir.Constant(ir.IntType(64), 0)
        for lane in range(WIDTH):
            index = builder.add(builder.mul(args[2], ir.Constant(args[2].type, WIDTH)), ir.Constant(args[2].type, lane))
            place = builder.load(builder.gep(table, [index]))
            missing = builder.icmp_signed("<", place, none)
            within = builder.add(builder.mul(builder.select(missing, none, place), args[3]), args[4])
            pointer = _lane_pointer(context, builder, sig.args[0], args[0], within, ir.Constant(within.type, lane))
            value = builder.select(missing, ir.Constant(ir.DoubleType(), 0.0), builder.load(pointer))
            result = builder.insert_element(result, value, ir.Constant(_LANE, lane))
        return result

    return pack(values, places, types.int64, types.int64, types.int64), codegen


@overload(gathered)
def _gathered_of(values, places, at, stride, offset):  # type: ignore[no-untyped-def]
    if values.dtype == pack:
        return lambda values, places, at, stride, offset: _gathered(values, places, at, stride, offset)

    def one(values, places, at, stride, offset):  # type: ignore[no-untyped-def]
        place = places[at, 0]
        return values.reshape(-1)[place * stride + offset] if place >= 0 else 0.0

    return one


# ------------------------------------------------------------------ rows of robots to lanes and back


def _transposed(builder: Any, vectors: list[Any]) -> list[Any]:
    """WIDTH vectors of WIDTH, transposed in registers: blocks of 1, 2, 4, … change places across the diagonal."""
    step = 1
    while step < WIDTH:
        low = [k if not k & step else WIDTH + (k ^ step) for k in range(WIDTH)]
        high = [k ^ step if not k & step else WIDTH + k for k in range(WIDTH)]
        for i in range(WIDTH):
            if not i & step:
                a, b = vectors[i], vectors[i | step]
                for target, order in ((i, low), (i | step, high)):
                    mask = ir.Constant(ir.VectorType(_LANE, WIDTH), order)
                    vectors[target] = builder.shuffle_vector(a, b, mask)
        step *= 2
    return vectors


def _row_pointers(context: Any, builder: Any, array_type: Any, array: Any, start: Any, stride: Any) -> list[Any]:
    """Vector pointers to the start of each lane's run of WIDTH floats: start + lane * stride."""
    data = make_array(array_type)(context, builder, array).data
    pointers = []
    for lane in range(WIDTH):
        index = builder.add(start, builder.mul(stride, ir.Constant(start.type, lane)))
        pointers.append(builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer()))
    return pointers


@intrinsic
def _gather_block(typing_context: Any, rows: Any, start: Any, stride: Any, out: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = []
        for pointer in _row_pointers(context, builder, sig.args[0], *args[:3]):
            vectors.append(builder.load(pointer, align=8))
        data = make_array(sig.args[3])(context, builder, args[3]).data
        for k, vector in enumerate(_transposed(builder, vectors)):
            position = builder.add(args[4], ir.Constant(args[4].type, k))
            builder.store(vector, builder.gep(data, [position]), align=ALIGNED)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, out, types.int64), codegen


def _write_transposed(builder: Any, vectors: list[Any], pointers: list[Any]) -> None:
    for pointer, vector in zip(pointers, _transposed(builder, vectors), strict=True):
        builder.store(vector, pointer, align=8)


@intrinsic
def _scatter_block(typing_context: Any, values: Any, index: Any, out: Any, start: Any, stride: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, args[0]).data
        vectors = []
        for k in range(WIDTH):
            position = builder.add(args[1], ir.Constant(args[1].type, k))
            vectors.append(builder.load(builder.gep(data, [position]), align=ALIGNED))
        _write_transposed(builder, vectors, _row_pointers(context, builder, sig.args[2], *args[2:]))
        return context.get_dummy_value()

    return types.void(values, types.int64, out, types.int64, types.int64), codegen


@intrinsic
def _scatter_chosen_block(
    typing_context: Any, values: Any, entries: Any, index: Any, out: Any, start: Any, stride: Any
) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, args[0]).data
        table = make_array(sig.args[1])(context, builder, args[1]).data
        zero = ir.Constant(_VECTOR, [0.0] * WIDTH)
        vectors = []
        for k in range(WIDTH):
            place = builder.gep(table, [builder.add(args[2], ir.Constant(args[2].type, k))])
            entry = builder.load(place)
            missing = builder.icmp_signed("<", entry, ir.Constant(entry.type, 0))
            within = builder.select(missing, ir.Constant(entry.type, 0), entry)
            value = builder.load(builder.gep(data, [within]), align=ALIGNED)
            vectors.append(builder.select(missing, zero, value))
        _write_transposed(builder, vectors, _row_pointers(context, builder, sig.args[3], *args[3:]))
        return context.get_dummy_value()

    index_type = types.int64
    return types.void(values, entries, index_type, out, index_type, index_type), codegen


@intrinsic
def _zero_block(typing_context: Any, out: Any, start: Any, stride: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        for pointer in _row_pointers(context, builder, sig.args[0], *args):
            builder.store(ir.Constant(_VECTOR, [0.0] * WIDTH), pointer, align=8)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.int64), codegen


def blocks_to_lanes(rows: Any, start: int, stride: int, out: Any, count: int) -> int:
    """Copy whole blocks of WIDTH entries from each robot's row into lanes; return the number of entries copied."""
    return 0


def blocks_from_lanes(values: Any, count: int, out: Any, start: int, stride: int) -> int:
    """Copy whole blocks of WIDTH entries from lanes to each robot's row; return the number of entries copied."""
    return 0


@overload(blocks_to_lanes)
def _blocks_to_lanes(rows, start, stride, out, count):  # type: ignore[no-untyped-def]
    if out.dtype != pack:
        return lambda rows, start, stride, out, count: 0

    def whole_blocks(rows, start, stride, out, count):  # type: ignore[no-untyped-def]
        done = 0
        while done + WIDTH <= count:
            _gather_block(rows, start + done, stride, out, done)
            done += WIDTH
        return done

    return whole_blocks


@overload(blocks_from_lanes)
def _blocks_from_lanes(values, count, out, start, stride):  # type: ignore[no-untyped-def]
    if values.dtype != pack:
        return lambda values, count, out, start, stride: 0

    def whole_blocks(values, count, out, start, stride):  # type: ignore[no-untyped-def]
        done = 0
        while done + WIDTH <= count:
            _scatter_block(values, done, out, start + done, stride)
            done += WIDTH
        return done

    return whole_blocks


def chosen_from_lanes(values: Any, entries: Any, out: Any, start: int, stride: int) -> int:
    """Copy whole blocks of WIDTH chosen entries (flat indices; negative: 0) from lanes to each robot's row; return how
    many."""
    return 0


@overload(chosen_from_lanes)
def _chosen_from_lanes(values, entries, out, start, stride):  # type: ignore[no-untyped-def]
    if values.dtype != pack:
        return lambda values, entries, out, start, stride: 0

    def whole_blocks(values, entries, out, start, stride):  # type: ignore[no-untyped-def]
        done = 0
        while done + WIDTH <= entries.shape[0]:
            if entries[done] == EMPTY_BLOCK:
                _zero_block(out, start + done, stride)
            else:
                _scatter_chosen_block(values, entries, done, out, start + done, stride)
            done += WIDTH
        return done

    return whole_blocks


def stream(values: Any, count: int, out: Any, start: int) -> None:
    """out[start : start + count] = values[:count], flat, bypassing the caches where that begins at a cache line.

    Data that is written once and read much later should not evict the working set. count: a multiple of WIDTH.
    """
    out.reshape(-1)[start : start + count] = values.reshape(-1)[:count]


@intrinsic
def _is_aligned(typing_context: Any, out: Any, start: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))
        return builder.icmp_unsigned("==", builder.and_(address, ir.Constant(address.type, 63)), address.type(0))

    return types.boolean(out, types.int64), codegen


def _copy_block(nontemporal: bool) -> Any:
    @intrinsic
    def copy(typing_context: Any, values: Any, k: Any, out: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def pointer(which: int) -> Any:
                data = make_array(sig.args[which])(context, builder, args[which]).data
                return builder.bitcast(builder.gep(data, [args[which + 1]]), _VECTOR.as_pointer())

            store = builder.store(builder.load(pointer(0), align=8), pointer(2), align=ALIGNED if nontemporal else 8)
            if nontemporal:
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
            return context.get_dummy_value()

        return types.void(values, types.int64, out, types.int64), codegen

    return copy


_copy_past_caches, _copy_plainly = _copy_block(True), _copy_block(False)


@overload(stream)
def _stream(values, count, out, start):  # type: ignore[no-untyped-def]
    def blocks(values, count, out, start):  # type: ignore[no-untyped-def]
        if _is_aligned(out, start):
            for k in range(0, count, WIDTH):
                _copy_past_caches(values, k, out, start + k)
        else:
            for k in range(0, count, WIDTH):
                _copy_plainly(values, k, out, start + k)

    return blocks


# ------------------------------------------------------------------ rows of one robot's matrix


def jacobian_block(
    out: Any, start: int, n: int, rows: Any, first: int, r0: float, r1: float, r2: float, bits: int
) -> None:
    """Write 8 columns of a link's Jacobian, out[start + row n + k], from motion columns rows[first + row n + k], flat.

    Linear rows S_linear + S_angular × r, angular rows S_angular; zero where bit k of `bits` is not set. Rows are
    written in sequence: numbers that columns beyond n write past a row's end are overwritten by the next row, and stay
    after the last.
    """
    S = rows.reshape(-1)
    target = out.reshape(-1)
    r = (r0, r1, r2)
    for row in range(6):
        y, z = (row + 1) % 3, (row + 2) % 3
        for k in range(WIDTH):
            value = S[first + row * n + k]
            if row < 3:
                value += S[first + (3 + y) * n + k] * r[z] - S[first + (3 + z) * n + k] * r[y]
            target[start + row * n + k] = value if int(bits) >> k & 1 else 0.0


@intrinsic
def _jacobian_block(
    typing_context: Any, out: Any, start: Any, n: Any, rows: Any, first: Any, r0: Any, r1: Any, r2: Any, bits: Any
) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def pointer(which: int, row: int) -> Any:
            data = make_array(sig.args[which])(context, builder, args[which]).data
            index = builder.add(args[which + 1], builder.mul(args[2], ir.Constant(args[2].type, row)))
            return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())

        flags = ("contract",)
        S = [builder.load(pointer(3, row), align=8) for row in range(6)]
        r = [_broadcast(builder, args[k]) for k in (5, 6, 7)]
        for row in range(3):
            y, z = (row + 1) % 3, (row + 2) % 3
            value = builder.fadd(S[row], builder.fmul(S[3 + y], r[z], flags=flags), flags=flags)
            S[row] = builder.fsub(value, builder.fmul(S[3 + z], r[y], flags=flags), flags=flags)
        chosen = builder.bitcast(builder.trunc(args[8], ir.IntType(WIDTH)), ir.VectorType(ir.IntType(1), WIDTH))
        for row in range(6):
            value = builder.select(chosen, S[row], ir.Constant(_VECTOR, [0.0] * WIDTH))
            builder.store(value, pointer(0, row), align=8)
        return context.get_dummy_value()

    number, index = types.float64, types.int64
    return types.void(out, index, index, rows, index, number, number, number, index), codegen


@overload(jacobian_block)
def _jacobian_block_of(out, start, n, rows, first, r0, r1, r2, bits):  # type: ignore[no-untyped-def]
    return lambda out, start, n, rows, first, r0, r1, r2, bits: _jacobian_block(
        out, start, n, rows, first, r0, r1, r2, bits
    )


def subtract_row(H: Any, i: int, k: int, start: int, stop: int, a: Any) -> None:
    """H[i, start:stop] -= a H[k, start:stop]; WIDTH entries at a time for one robot."""
    for c in range(start, stop):
        H[i, c] = H[i, c] - a * H[k, c]


@intrinsic
def _subtract_block(typing_context: Any, H: Any, i: Any, k: Any, c: Any, a: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = make_array(sig.args[0])(context, builder, args[0])
        extent = cgutils.unpack_tuple(builder, array.shape)[1]

        def pointer(row: Any) -> Any:
            index = builder.add(builder.mul(row, extent), args[3])
            return builder.bitcast(builder.gep(array.data, [index]), _VECTOR.as_pointer())

        target = pointer(args[1])
        product = builder.fmul(
            _broadcast(builder, args[4]), builder.load(pointer(args[2]), align=8), flags=("contract",)
        )
        builder.store(builder.fsub(builder.load(target, align=8), product, flags=("contract",)), target, align=8)
        return context.get_dummy_value()

    return types.void(H, types.int64, types.int64, types.int64, types.float64), codegen


@overload(subtract_row)
def _subtract_row(H, i, k, start, stop, a):  # type: ignore[no-untyped-def]
    if H.dtype == pack:

        def entries(H, i, k, start, stop, a):  # type: ignore[no-untyped-def]
            for c in range(start, stop):
                H[i, c] = H[i, c] - a * H[k, c]

        return entries

    def blocks(H, i, k, start, stop, a):  # type: ignore[no-untyped-def]
        # LLVM cannot know that the rows do not overlap, and would leave this loop scalar
        c = start
        while c + WIDTH <= stop:
            _subtract_block(H, i, k, c, a)
            c += WIDTH
        while c < stop:
            H[i, c] = H[i, c] - a * H[k, c]
            c += 1

    return blocks
