"""Compiles entries with numba to machine code of any level (targets.py). Imports numba where it is needed.

numba types and lowers an entry with all that it calls, three quarters of the time; LLVM then optimises the whole and
makes an object of it, for each level that is asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from artsim.sim.foundation.object_cache import Code
from artsim.sim.foundation.replacements import aside, put, replaced
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

    from artsim.sim.foundation.sparing import REPLACEMENTS

    with replaced(REPLACEMENTS):
        whole = cfunc(types.void(types.CPointer(types.int64)), nopython=True, **OPTIONS)(function)
    return {level: _code(whole, level) for level in levels}


def _code(whole: Any, level: str) -> Code:
    from artsim.sim.foundation.sparing import linked

    library = whole._library
    machine, module = machine_for(level), linked(library)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    with put([(library, "_final_module", lambda _: module), (library._codegen, "_tm", lambda _: machine)]):
        library._optimize_final_module()
    external = [f.name for f in (*module.functions, *module.global_variables) if f.is_declaration]
    needed = sorted({*C_LIBRARY, *(name for name in external if not name.startswith("llvm."))})
    return whole._wrapper_name, needed, machine.emit_object(module)


def slower() -> str:
    """Say with which replacements of numba's functions kernels would compile faster, for a message; '' if with none."""
    import numba

    from artsim.sim.foundation.sparing import REPLACEMENTS

    left = aside(REPLACEMENTS)
    return f"slower, since numba {numba.__version__} does not fit: {', '.join(left)}" if left else ""


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
