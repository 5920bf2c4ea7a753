"""Records as numba sees them: a pointer into the table of addresses (records.py), whose attributes are arrays.

A NamedTuple of arrays would do, but numba passes one to a callee as hundreds of numbers and spells out all its types in
every symbol: half of the compile time, and a call that costs more than its callee. Here a record is one pointer; an
attribute loads address and shape, marked invariant, so that LLVM hoists them out of loops. A record in a bundle is the
same pointer with an offset, at no cost.

numba prunes the code behind `if x is None` where x is a parameter. `know_members` extends that to the members of a
bundle: a feature that a variant lacks is not compiled, whether it is a parameter or a member.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.ir_utils import get_definition, guard
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, overload, register_model

from artsim.sim.foundation.jit import inlined, run_called
from artsim.sim.foundation.lanes import pack
from artsim.sim.foundation.records import WIDTH, Ints1, Kind, kinds

_WHOLE = ir.IntType(64)


class RecordType(types.Type):
    """The numba type of a record class in one width; `fields` maps names to array type (a bundle's to
    RecordType or none) and offset in the table."""

    def __init__(self, record: type[Any], width: int) -> None:
        self.fields: dict[str, tuple[Any, int]] = {}
        self.entries: int
        offset: int = 0
        for name, kind in kinds(record).items():
            if isinstance(kind, Kind):
                self.fields[name] = (_array_type(kind, width), offset)
                offset += 1 + kind.ndim
            elif kind is None:
                self.fields[name] = (types.none, offset)
            else:
                member = RecordType(kind, width)
                self.fields[name] = (member, offset)
                offset += member.entries
        self.entries = offset
        super().__init__(name=f"{record.__name__}{width}")


def _array_type(kind: Kind, width: int) -> Any:
    scalar = types.int64 if np.dtype(kind.dtype).kind == "i" else types.float64
    if kind.in_lane:
        return types.Array(scalar, kind.ndim, "A", readonly=kind.constant)
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
    if isinstance(array_type, RecordType):
        return builder.gep(pointer, [ir.Constant(_WHOLE, offset)])
    if array_type is types.none:
        return context.get_dummy_value()
    model, whole = context.data_model_manager[array_type], context.get_value_type(array_type)
    itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    apart = itemsize if array_type.layout == "C" else itemsize * WIDTH  # from entry to entry
    array = ir.Constant(whole, None)  # no owner, no parent

    def load(position: int, **about: Any) -> Any:
        value = builder.load(builder.gep(pointer, [ir.Constant(_WHOLE, offset + position)]))
        for name, content in {"invariant.load": [], **about}.items():
            value.set_metadata(name, builder.module.add_metadata(content))
        return value

    def put(value: Any, field: str, *axis: int) -> None:
        nonlocal array
        array = builder.insert_value(array, value, [model.get_field_position(field), *axis])

    put(builder.inttoptr(load(0), context.get_data_type(array_type.dtype).as_pointer()), "data")
    put(ir.Constant(_WHOLE, itemsize), "itemsize")
    stride = count = None
    for axis in reversed(range(array_type.ndim)):
        extent = load(1 + axis, range=[ir.Constant(_WHOLE, 0), ir.Constant(_WHOLE, (1 << 63) - 1)])
        put(extent, "shape", axis)
        put(ir.Constant(_WHOLE, apart) if stride is None else stride, "strides", axis)
        count = extent if count is None else builder.mul(count, extent)
        stride = builder.mul(count, ir.Constant(_WHOLE, apart)) if axis else None
    put(count, "nitems")
    return array


def know_members(rewrite: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Extend numba's pass that writes known constants into a function's code to members of bundles: a missing one is
    the constant None, and whether one is None is a constant."""

    def rewrite_and_know(code: Any, arguments: Any) -> None:
        rewrite(code, arguments)
        for block in code.blocks.values():
            for statement in block.find_insts(numba_ir.Assign):
                known = _known(code, arguments, statement.value)
                if known is not None:
                    definitions = code._definitions[statement.target.name]
                    constant = numba_ir.Const(known.value, statement.loc)
                    definitions[definitions.index(statement.value)] = constant
                    statement.value = constant

    return rewrite_and_know


class _Known(NamedTuple):
    value: bool | None


def _known(code: Any, arguments: Any, value: Any) -> _Known | None:
    """The constant value of an expression about members, or None if it has none."""
    operation = getattr(value, "op", None)
    if operation == "getattr":
        return _Known(None) if _type_of(code, arguments, value) is types.none else None
    if operation == "binop" and value.fn in (operator.is_, operator.is_not):
        left, right = (_type_of(code, arguments, guard(get_definition, code, side)) for side in (value.lhs, value.rhs))
        if left is not None and right is not None and types.none in (left, right):
            return _Known((left is right) == (value.fn is operator.is_))
    return None


def _type_of(code: Any, arguments: Any, definition: Any) -> Any:
    """The record type that a name stands for, types.none for None; None where it is neither or unknown."""
    found = None
    if isinstance(definition, numba_ir.Arg):
        found = arguments[definition.index]
    elif isinstance(definition, numba_ir.Const) and definition.value is None:
        found = types.none
    elif getattr(definition, "op", None) == "getattr":
        bundle = _type_of(code, arguments, guard(get_definition, code, definition.value))
        if isinstance(bundle, RecordType):
            found = bundle.fields.get(definition.attr, (None, 0))[0]
    return found if isinstance(found, RecordType) or found is types.none else None


def record_reader(record_type: RecordType, offset: int) -> Any:
    """An intrinsic that makes a record from a pointer to the table."""

    @intrinsic
    def read(typing_context: Any, source: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.gep(args[0], [ir.Constant(_WHOLE, offset)])

        return record_type(source), codegen

    return read


@inlined
def connected(pointers: Ints1) -> bool:
    """True if there is an entry for `run_entry` to run."""
    return pointers[0] != 0


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
