"""Takes turns between threads that run kernels side by side."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array


def take_next(counter: Any) -> Any:
    """The first entry of an array of integers, which is then one more: each value for one thread only."""
    value = int(counter[0])
    counter[0] = value + 1
    return value


@intrinsic
def _fetch_and_add(typing_context: Any, counter: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", made.data, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), codegen


@overload(take_next)
def _take_next(counter):  # type: ignore[no-untyped-def]  # numba compares signatures
    return lambda counter: _fetch_and_add(counter)
