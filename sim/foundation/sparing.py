"""Spares numba work that it repeats for every function while a kernel is compiled.

For each of the hundreds of functions of a kernel numba links and optimises all that the function calls, once more at
every level of calls; it stores an array on the stack whenever it is indexed, asks LLVM for the size of a type by way of
a module's text, types `a + b` of two numbers by trying every meaning that `+` may have, and optimises what is only
declared. REPLACEMENTS lists the functions of numba that others replace for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite.ir import Constant, Undefined

from artsim.sim.foundation.recordtype import know_members
from artsim.sim.foundation.replacements import Replacement

_COMPILED = "_ZN"  # begins the names that numba makes of functions
_OURS = "6artsim"  # in those of the engine's functions


def _size_asked_once(ask: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    """Ask for the size of each type of LLVM once."""
    known: dict[str, int] = {}

    def get_abi_sizeof(context: Any, kind: Any) -> int:
        text = str(kind)
        if text not in known:
            known[text] = ask(context, kind)
        return known[text]

    return get_abi_sizeof


def _call_typed_once(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Type a call of a built-in function once for its types of arguments.

    The code of a call can depend on one flag, `forceinline`, which callees inherit.
    """
    from numba.core.targetconfig import ConfigStack

    known: dict[Any, Any] = {}

    def get_call_type(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        if keywords:
            return resolve(function, context, arguments, keywords)
        flags = ConfigStack.top_or_none()
        key = id(function), tuple(arguments), flags is not None and flags.forceinline
        if key not in known:
            signature = resolve(function, context, arguments, keywords)
            implementation = function._impl_keys.get(signature.args)
            known[key] = function, signature, implementation  # the function: ids are not reused
        _, signature, implementation = known[key]
        function._impl_keys[signature.args] = implementation
        return signature

    return get_call_type


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


def _array_as_value(make_place: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make_array(kind: Any) -> Callable[..., Any]:
        def make(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
            if ref is not None:
                return make_place(kind)(context, builder, value, ref)
            return _ArrayValue(context, builder, kind.as_array, value)

        return make

    return make_array


def _index_as_it_is(_: Any) -> Callable[..., Any]:
    """Leave out the check for negative indices, which kernels never use: it costs every access three instructions."""
    from numba.core import types

    def fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, types.intp)

    return fix_integer_index


def _nothing(_: Any) -> Callable[[Any], None]:
    return lambda argument: None


class _Definitions:
    """A module of LLVM without the functions that it only declares."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.functions = [function for function in module.functions if not function.is_declaration]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _definitions_optimised(optimise: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Run LLVM's passes on the functions of a module, not on what it only declares."""

    def optimise_functions(library: Any, module: Any) -> None:
        module.data_layout = library._codegen._data_layout
        optimise(library, _Definitions(module))

    return optimise_functions


def _left_alone(finalize: Callable[[Any], None]) -> Callable[[Any], None]:
    """Leave the code of a function alone, for `linked`."""

    def mark(library: Any) -> None:
        if is_ours(library._final_module):
            library._finalized = True
        else:
            finalize(library)

    return mark


def _others_added(add: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Leave the engine's functions out of numba's engine, which assembles all that is in it when it is asked for one
    address, such as that of a function's environment.
    """
    return lambda codegen, module: None if is_ours(module) else add(codegen, module)


def _environment_of_others(put: Callable[[Any, str, Any], None]) -> Callable[[Any, str, Any], None]:
    """Set the environments of functions in that engine; only wrappers for Python and exceptions need one."""

    def set_env(codegen: Any, name: str, value: Any) -> None:
        if codegen._engine.get_global_value_address(name):
            put(codegen, name, value)

    return set_env


def linked(library: Any) -> Any:
    """A module of LLVM with a library's code and all that it calls.

    Raises:
        RuntimeError: a function that numba compiled is missing.
    """
    module = library._final_module.clone()
    entries = {function.name for function in module.functions if not function.is_declaration}
    if not _is_linked(library):
        _link_callees(module, library)
    for function in module.functions:
        if function.is_declaration and function.name.startswith(_COMPILED):
            raise RuntimeError(f"not linked: {function.name}")
        if function.name not in entries and function.linkage.name == "external" and not function.is_declaration:
            function.linkage = "linkonce_odr"  # so that it goes once it is inlined
    return module


def _link_callees(module: Any, library: Any) -> None:
    waiting, seen = [*reversed(library._linking_libraries)], set()
    while waiting:
        callee = waiting.pop()
        if callee not in seen:
            seen.add(callee)
            module.link_in(callee._final_module, preserve=True)
            waiting += reversed(callee._linking_libraries)


def _is_linked(library: Any) -> bool:
    """True if nothing is missing of the functions that a library calls: numba has linked them itself."""
    missing = {function.name for function in library._final_module.functions if function.is_declaration}
    callees = (function for callee in library._linking_libraries for function in callee._final_module.functions)
    return not any(function.name in missing and not function.is_declaration for function in callees)


def is_ours(module: Any) -> bool:
    """True for a module of LLVM that holds functions of kernels."""
    return any(_OURS in function.name for function in module.functions)


REPLACEMENTS = (
    Replacement(
        "members of bundles known to be None",
        {"numba.core.untyped_passes:rewrite_semantic_constants": know_members},
        {"numba.core.untyped_passes:rewrite_semantic_constants": "(func_ir, called_args)"},
        needed=True,
    ),
    Replacement(
        "indices without a check for negative ones",
        {"numba.np.arrayobj:fix_integer_index": _index_as_it_is},
        {"numba.np.arrayobj:fix_integer_index": "05fc2c98"},
    ),
    Replacement(
        "arrays as values",
        {"numba.np.arrayobj:make_array": _array_as_value},
        {
            "numba.np.arrayobj:make_array": "28e6d945",
            "numba.core.cgutils:_StructProxy.__init__": "140baa2d",
            "numba.core.cgutils:_StructProxy.__getattr__": "f91d98aa",
            "numba.core.cgutils:_StructProxy.__setattr__": "4e644698",
            "numba.core.cgutils:_StructProxy._getvalue": "ac6abf78",
            "numba.core.datamodel.models:StructModel.get_field_position": "11cc8ca4",
        },
    ),
    Replacement(
        "functions linked and optimised once",
        {
            "numba.core.codegen:CPUCodeLibrary.finalize": _left_alone,
            "numba.core.codegen:CPUCodeLibrary._optimize_final_module": _nothing,
            "numba.core.codegen:JITCodeLibrary._finalize_specific": _nothing,
            "numba.core.codegen:JITCPUCodegen._add_module": _others_added,
            "numba.core.codegen:JITCPUCodegen.set_env": _environment_of_others,
        },
        {
            "numba.core.codegen:CPUCodeLibrary.finalize": "022fb07e 4b4c34b8",
            "numba.core.codegen:CPUCodeLibrary._optimize_final_module": "3e1a5042 e405bd47",
            "numba.core.codegen:CPUCodeLibrary._finalize_final_module": "95bbf4fc",
            "numba.core.codegen:CPUCodeLibrary._get_module_for_linking": "56dde0e0",
            "numba.core.codegen:CPUCodeLibrary._ensure_finalized": "fe8a6e1f",
            "numba.core.codegen:CPUCodeLibrary._raise_if_finalized": "1da89a71",
            "numba.core.codegen:CPUCodeLibrary.add_linking_library": "b7c82a3a",
            "numba.core.codegen:CPUCodeLibrary.add_ir_module": "fb6dd665",
            "numba.core.codegen:CPUCodeLibrary.add_llvm_module": "84621057",
            "numba.core.codegen:JITCodeLibrary._finalize_specific": "3eb77851 81c2abfc",
            "numba.core.codegen:JITCodeLibrary.get_pointer_to_function": "1bce3f38",
            "numba.core.codegen:JITCPUCodegen._add_module": "7214519a",
            "numba.core.codegen:JITCPUCodegen.set_env": "207cf44b",
        },
    ),
    Replacement(
        "only definitions optimised",
        {"numba.core.codegen:CPUCodeLibrary._optimize_functions": _definitions_optimised},
        {"numba.core.codegen:CPUCodeLibrary._optimize_functions": "5dcbdd9e 9439219f"},
    ),
    Replacement(
        "calls typed once",
        {"numba.core.types.functions:BaseFunction.get_call_type": _call_typed_once},
        {
            "numba.core.types.functions:BaseFunction.get_call_type": "6559c167",
            "numba.core.types.functions:BaseFunction.get_impl_key": "ebed5750",
            "numba.core.targetconfig:ConfigStack.top_or_none": "ba2e7ff2",
        },
    ),
    Replacement(
        "sizes asked once",
        {"numba.core.base:BaseContext.get_abi_sizeof": _size_asked_once},
        {"numba.core.base:BaseContext.get_abi_sizeof": "d62321a8"},
    ),
)
"""The replacements, with the sources of numba 0.61 to 0.68 that they were tested with."""
