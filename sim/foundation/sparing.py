"""Spares numba work that it repeats for every function while a kernel is compiled.

For each of the hundreds of functions of a kernel numba links all functions that the function calls, once more at every
level of calls; numba stores an array on the stack whenever it is indexed, asks LLVM for the size of a type by way of a
module's text, types `a + b` of two numbers by trying every meaning of `+`, optimises functions that are only declared,
and notifies listeners of which there are none. This work takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite.ir import Constant, Undefined

_OURS = "6artsim"  # in the names that numba makes of its functions

Patches = dict[tuple[Any, str], Any]


def spared() -> Patches:
    """The functions of numba to replace, by owner and name, for one kernel."""
    parts = (_sizes_known, _calls_typed_once, _arrays_as_values, _nobody_listens, _plain_messages)
    return {place: other for part in (*parts, _definitions_optimised, _linked_once) for place, other in part().items()}


def _sizes_known() -> Patches:
    """Ask for the size of each type of LLVM once."""
    from numba.core.base import BaseContext

    ask: Callable[[Any, Any], int] = BaseContext.get_abi_sizeof
    known: dict[str, int] = {}

    def get_abi_sizeof(context: Any, kind: Any) -> int:
        text = str(kind)
        if text not in known:
            known[text] = ask(context, kind)
        return known[text]

    return {(BaseContext, "get_abi_sizeof"): get_abi_sizeof}


def _calls_typed_once() -> Patches:
    """Type a call of a built-in function once for its types of arguments.

    The code of a call can depend on one flag, `forceinline`, which callees inherit.
    """
    from numba.core.targetconfig import ConfigStack
    from numba.core.types.functions import BaseFunction

    resolve: Callable[..., Any] = BaseFunction.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        if keywords:
            return resolve(function, context, arguments, keywords)
        flags = ConfigStack.top_or_none()
        key = id(function), tuple(arguments), flags is not None and flags.forceinline
        if key not in known:
            signature = resolve(function, context, arguments, keywords)
            known[key] = (
                function,
                signature,
                function._impl_keys.get(signature.args),
            )  # the function: ids are not reused
        _, signature, implementation = known[key]
        function._impl_keys[signature.args] = implementation
        return signature

    return {(BaseFunction, "get_call_type"): get_call_type}


class _ArrayValue:
    """The fields of an array's structure as values, not as places on the stack; numba calls it a proxy.

    numba stores an array whenever it is indexed, and loads its fields from there: half of the code that numba writes
    for LLVM, which removes it again.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        model = context.data_model_manager[kind]
        known = {"_context": context, "_builder": builder, "_datamodel": model, "_fe_type": kind, "_whole": value}
        self.__dict__.update(known)
        if value is None:
            self.__dict__["_whole"] = Constant(model.get_value_type(), Undefined)

    def __getattr__(self, name: str) -> Any:
        return self._builder.extract_value(self._whole, self._datamodel.get_field_position(name))

    def __setattr__(self, name: str, value: Any) -> None:
        position = self._datamodel.get_field_position(name)
        self.__dict__["_whole"] = self._builder.insert_value(self._whole, value, position)

    def _getvalue(self) -> Any:
        return self._whole


def _arrays_as_values() -> Patches:
    from numba.np import arrayobj

    make_place = arrayobj.make_array

    def make_array(kind: Any) -> Callable[..., Any]:
        def make(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
            if ref is not None:
                return make_place(kind)(context, builder, value, ref)
            return _ArrayValue(context, builder, kind.as_array, value)

        return make

    return {(arrayobj, "make_array"): make_array}


def _nobody_listens() -> Patches:
    """Do not broadcast the start and end of numba's events."""
    from numba.core import event

    return {(event, "broadcast"): lambda happening: None}


def _plain_messages() -> Patches:
    """Leave the messages of errors without colours: most errors are of numba's own trials, and nobody reads them."""
    from numba.core import errors

    scheme = type(errors.termcolor())
    return {(scheme, "_markup"): lambda scheme, message, *style: message} if hasattr(scheme, "_markup") else {}


class _Definitions:
    """A module of LLVM without the functions that it only declares."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.functions = [function for function in module.functions if not function.is_declaration]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _definitions_optimised() -> Patches:
    """Run LLVM's passes on the functions that a module defines, not on those that it only declares."""
    from numba.core.codegen import CPUCodeLibrary

    optimise = CPUCodeLibrary._optimize_functions

    def optimise_functions(library: Any, module: Any) -> None:
        module.data_layout = library._codegen._data_layout
        optimise(library, _Definitions(module))

    return {(CPUCodeLibrary, "_optimize_functions"): optimise_functions}


def _linked_once() -> Patches:
    """Leave the code of a function alone, for `linked`."""
    from numba.core.codegen import CPUCodeLibrary

    finalize = CPUCodeLibrary.finalize

    def mark(library: Any) -> None:
        if is_ours(library._final_module):
            library._finalized = True
        else:
            finalize(library)

    return {(CPUCodeLibrary, "finalize"): mark}


def linked(library: Any) -> Any:
    """A module of LLVM with a library's code and all that it calls.

    Raises:
        RuntimeError: a function of ours is missing.
    """
    module = library._final_module.clone()
    entries = {function.name for function in module.functions if not function.is_declaration}
    waiting, seen = [*reversed(library._linking_libraries)], set()
    while waiting:
        callee = waiting.pop()
        if callee not in seen:
            seen.add(callee)
            module.link_in(callee._final_module, preserve=True)
            waiting += reversed(callee._linking_libraries)
    for function in module.functions:
        if function.is_declaration and _OURS in function.name:
            raise RuntimeError(f"not linked: {function.name}")
        if function.name not in entries and function.linkage.name == "external" and not function.is_declaration:
            function.linkage = "linkonce_odr"  # so that it goes once it is inlined
    return module


def is_ours(module: Any) -> bool:
    """True if a module of LLVM is of kernels."""
    return any(_OURS in function.name for function in module.functions)
