"""Calling one compiled entry from another: machine code by its address."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload


def call_entry(function: int, table: int) -> None:
    """Run the entry at `function` over the table of addresses at `table`: both of jit.address."""
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(function)(table)


@intrinsic
def _call_entry(typing_context: Any, function: Any, table: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


overload(call_entry)(lambda function, table: lambda function, table: _call_entry(function, table))
