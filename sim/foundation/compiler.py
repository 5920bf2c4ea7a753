"""Compiles entries with numba to machine code of any level (targets.py). Imports numba where it is needed.

numba types and lowers an entry with all that it calls, three quarters of the time; LLVM then optimises the whole and
makes an object of it, for each level that is asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from artsim.sim.foundation.object_cache import Code
from artsim.sim.foundation.targets import machine_for

if TYPE_CHECKING:
    from artsim.sim.foundation.jit import Entry

# LLVM's loop optimisations, and the functions of `math` that kernels may call
C_LIBRARY = tuple("memset memcpy memmove sqrt sin cos tan asin acos atan atan2 exp log pow fmod tanh".split())
RUNTIME = ("Py", "_Py", "numba_", "NRT_")  # prefixes of numba's and Python's names

# without numba's runtime a kernel that allocates an array does not compile; contraction into FMA, the only fast-math
# allowed here, differs between the widths
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(entry: Entry, width: int, levels: Iterable[str]) -> dict[str, Code]:
    """The code of an entry in a width, by level."""
    function = _wrapper(entry, width)
    collecting = gc.isenabled()
    gc.disable()  # millions of small objects live to the end: collecting among them is a tenth of the time
    try:
        return _compiled_whole(function, levels)
    finally:
        if collecting:
            gc.enable()


def _compiled_whole(function: Any, levels: Iterable[str]) -> dict[str, Code]:
    from numba import cfunc, types

    from artsim.sim.foundation.sparing import spared

    with _patched(_no_negative_indices() | _members_known() | spared()), _only_the_whole_is_optimised() as optimise:
        whole = cfunc(types.void(types.CPointer(types.int64)), nopython=True, **OPTIONS)(function)
        return {level: _code(whole, level, optimise) for level in levels}


def _code(whole: Any, level: str, optimise: Callable[[Any, Any, Any], None]) -> Code:
    from artsim.sim.foundation.sparing import linked

    machine, module = machine_for(level), linked(whole._library)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    optimise(whole._library, module, machine)
    external = [f.name for f in (*module.functions, *module.global_variables) if f.is_declaration]
    needed = sorted({*C_LIBRARY, *(name for name in external if not name.startswith("llvm."))})
    return whole._wrapper_name, needed, machine.emit_object(module)


@contextmanager
def _only_the_whole_is_optimised() -> Iterator[Callable[[Any, Any, Any], None]]:
    """Skip numba's own optimisation and assembly of every function with its callees, which takes four fifths of the
    time for nothing: only the linked whole is ever used.

    numba assembles the content of its engine when it asks for an address there, for example of a function's
    environment, which only wrappers for Python and exceptions need; the functions of artsim are therefore not added.
    Functions of other packages may be.
    """
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen

    from artsim.sim.foundation.sparing import is_ours

    add, put = JITCPUCodegen._add_module, JITCPUCodegen.set_env

    def set_env(codegen: Any, name: str, value: Any) -> None:
        if codegen._engine.get_global_value_address(name):
            put(codegen, name, value)

    kept: dict[tuple[Any, str], Any] = {
        (CPUCodeLibrary, "_optimize_final_module"): lambda library: None,
        (JITCodeLibrary, "_finalize_specific"): lambda library: None,
        (JITCPUCodegen, "_add_module"): lambda codegen, module: None if is_ours(module) else add(codegen, module),
        (JITCPUCodegen, "set_env"): set_env,
    }
    of_library = CPUCodeLibrary._optimize_final_module

    def optimise(library: Any, module: Any, machine: Any) -> None:
        """Optimise a module as the library's, for a machine."""
        with _patched({(library, "_final_module"): module, (library._codegen, "_tm"): machine}):
            of_library(library)

    with _patched(kept):
        yield optimise


def _no_negative_indices() -> dict[tuple[Any, str], Any]:
    """Leave out the check for negative indices, which kernels never use: it costs every access three instructions."""
    from numba.core import types
    from numba.np import arrayobj

    def as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        return context.cast(builder, index, kind, types.intp)

    return {(arrayobj, "fix_integer_index"): as_it_is}


def _members_known() -> dict[tuple[Any, str], Any]:
    """Make `if bundle.member is None` prune the code it guards, as numba does for parameters alone."""
    from numba.core import untyped_passes

    from artsim.sim.foundation.recordtype import know_members

    return {(untyped_passes, "rewrite_semantic_constants"): know_members(untyped_passes.rewrite_semantic_constants)}


@contextmanager
def _patched(attributes: dict[tuple[Any, str], Any]) -> Iterator[None]:
    """Replace attributes of classes and modules temporarily."""
    originals = [getattr(owner, name) for owner, name in attributes]
    try:
        for (owner, name), function in attributes.items():
            setattr(owner, name, function)
        yield
    finally:
        for (owner, name), function in zip(attributes, originals, strict=True):
            setattr(owner, name, function)


def _wrapper(entry: Entry, width: int) -> Any:
    """`kernel(record, …)` as a function of the table, written out per number of records, since numba lacks `*`."""
    from artsim.sim.foundation.recordtype import RecordType, record_reader

    scope: dict[str, Any] = {"__name__": __name__, "kernel": getattr(import_module(entry.module), entry.name)}
    calls, offset = [], 0
    for i, record in enumerate(entry.records):
        if record is None:
            calls.append("None")
            continue
        record_type = RecordType(record, width)
        scope[f"read_{i}"] = record_reader(record_type, offset)
        calls.append(f"read_{i}(table)")
        offset += record_type.entries
    exec(f"def wrapper(table): kernel({', '.join(calls)})", scope)
    return scope["wrapper"]
