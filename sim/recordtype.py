"""Records as numba sees them: a pointer into the table of addresses (records.py), whose attributes are arrays.

A NamedTuple of arrays would do, but numba hands one to a callee as hundreds of numbers and spells all its types out in
every symbol: half of the compile time, and a call that costs more than what it calls. Here a record is one pointer;
an attribute loads address and shape, marked invariant, so that LLVM lifts them out of loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, overload, register_model
from numba.np.arrayobj import make_array, populate_array

from artsim.sim.jit import run_called
from artsim.sim.lanes import pack
from artsim.sim.records import Kind, kinds

_WHOLE = ir.IntType(64)


class RecordType(types.Type):
    """The numba type of a record class in one width; `fields` maps names to array type and offset in the table."""

    def __init__(self, record: type[Any], width: int) -> None:
        self.fields: dict[str, tuple[Any, int]] = {}
        offset = 0
        for name, kind in kinds(record).items():
            self.fields[name] = (_array_type(kind, width), offset)
            offset += 1 + kind.ndim
        self.entries = offset
        super().__init__(name=f"{record.__name__}{width}")


def _array_type(kind: Kind, width: int) -> Any:
    scalar = types.int64 if np.dtype(kind.dtype).kind == "i" else types.float64
    return types.Array(pack if kind.lanes and width > 1 else scalar, kind.ndim, "C", readonly=kind.constant)


@register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _WHOLE.as_pointer())


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record: Any, name: str) -> Any:
        return record.fields[name][0] if name in record.fields else None


@lower_getattr_generic(RecordType)
def _attribute(context: Any, builder: Any, record: Any, pointer: Any, name: str) -> Any:
    array_type, offset = record.fields[name]
    array = make_array(array_type)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))

    def load(position: int) -> Any:
        value = builder.load(builder.gep(pointer, [ir.Constant(_WHOLE, offset + position)]))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    shape = [load(1 + axis) for axis in range(array_type.ndim)]
    strides = [ir.Constant(_WHOLE, itemsize)]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    populate_array(
        array,
        data=builder.inttoptr(load(0), array.data.type),
        shape=shape,
        strides=strides,
        itemsize=ir.Constant(_WHOLE, itemsize),
        meminfo=None,
    )
    return array._getvalue()


def record_reader(record_type: RecordType, offset: int) -> Any:
    """An intrinsic that makes a record of a pointer to the table."""

    @intrinsic
    def read(typing_context: Any, source: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.gep(args[0], [ir.Constant(_WHOLE, offset)])

        return record_type(source), codegen

    return read


def run_entry(pointers: Any) -> None:
    """Run another entry over its own records; `pointers` (2,) as jit.point_at sets them."""
    run_called(int(pointers[0]))


@intrinsic
def _call(typing_context: Any, function: Any, argument: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WHOLE])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), codegen


@overload(run_entry)
def _run_entry(pointers):  # type: ignore[no-untyped-def]  # numba compares signatures
    return lambda pointers: _call(pointers[0], pointers[1])
