"""Entries: their machine code found or made, bound to records, and called without numba.

The few outer entries (simulate a block of steps, compute a block of configurations) are compiled as C functions over
one table of addresses (records.py; compiler.py). Their machine code is kept (object_cache.py) and later put into memory
by machine_code.py, or else by LLVM. A process whose objects are warm never imports numba. ctypes releases the GIL
during a call, so plain Python threads run blocks side by side.

`NUMBA_DISABLE_JIT=1` runs an entry as Python (scalar width only), `NUMBA_BOUNDSCHECK=1` with its indices looked at.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from artsim.sim.foundation import object_cache
from artsim.sim.foundation.apart import available_cores, can_fork, end_children, start_child
from artsim.sim.foundation.compiler import C_LIBRARY, OPTIONS, RUNTIME, compiled, slower
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.machine_code import put_into_memory
from artsim.sim.foundation.object_cache import Code
from artsim.sim.foundation.records import Array, address_of, is_of, layout, places_of, table
from artsim.sim.foundation.sources import digest_of, size_of
from artsim.sim.foundation.targets import level

F = TypeVar("F", bound=Callable[..., Any])


def disabled() -> bool:
    """True when kernels run as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _checked() -> bool:
    return os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def njit(function: F) -> F:
    """The engine's one `njit`."""
    if disabled():
        return function
    import numba

    compiled: F = numba.njit(**OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # noqa: TID251
    return compiled


def inlined(function: F) -> F:
    """`njit` for small helpers, always inlined, since a call passes a record as hundreds of numbers."""
    if disabled():
        return function
    import numba

    compiled: F = numba.njit(**OPTIONS, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # noqa: TID251
    return compiled


def compiled_form(of: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a function that returns the form, always inlined, in which kernels run `of`; Python mode runs `of`."""

    def register(make: F) -> F:
        if not disabled():
            from numba.extending import overload

            overload(of, jit_options={"forceinline": True})(make)
        return make

    return register


@dataclass(frozen=True)
class Entry:
    """An outer kernel: where it lives and which records it takes, in order.

    A record may be None: the kernel is then compiled without the code that needs it, and has a `variant` of its own.
    """

    name: str
    module: str
    records: tuple[type[Any] | None, ...]
    variant: str = ""


def bind(entry: Entry, width: int, *records: NamedTuple | None) -> Callable[[], None]:
    """Return a call without arguments that runs `entry` over exactly these arrays, repeatedly.

    Raises:
        ValueError: the pack width was asked for while kernels run as Python.
    """
    return bind_movable(entry, width, *records)[0]


def bind_movable(
    entry: Entry, width: int, *records: NamedTuple | None
) -> tuple[Callable[[], None], Callable[[str, Array], None]]:
    """Return a call as `bind` does, and a function that replaces the array of a field of the last record, by name.

    The call keeps the records alive, but not arrays put in their place later, which the caller must keep. Fields with
    lanes keep their arrays.
    """
    if disabled():
        return _python_call(entry, width, [*records])
    addresses = _table(entry, width, records)
    function = _load_or_compile(entry, width)
    pointer = addresses.ctypes.data

    def call(keep: Any = (records, addresses)) -> None:  # the arrays live as long as the call
        function(pointer)

    def checked_call() -> None:
        call()
        if _broken.value:
            _broken.value = 0
            raise IndexError(f"kernel {entry.name!r}: an index is out of bounds")

    places = {} if records[-1] is None else places_of(type(records[-1]), len(addresses))
    entries = memoryview(addresses)

    def put(name: str, values: Array) -> None:
        place, dtype, ndim = places[name]
        if values.dtype != dtype or values.ndim != ndim or not values.flags.c_contiguous:
            raise TypeError(f"{name}: {values.dtype}{values.shape} is not {dtype} of {ndim} axes")
        entries[place] = address_of(values)
        for extent in values.shape:
            place += 1
            entries[place] = extent

    return checked_call if _checked() else call, put


def _python_call(
    entry: Entry, width: int, records: list[NamedTuple | None]
) -> tuple[Callable[[], None], Callable[[str, Array], None]]:
    """A call of a kernel that runs as Python, and a function that replaces the array of a field of the last record."""
    if width != 1:
        raise ValueError("NUMBA_DISABLE_JIT runs the scalar width only")
    kernel = getattr(import_module(entry.module), entry.name)

    def put(name: str, values: Array) -> None:
        last = records[-1]
        assert last is not None
        records[-1] = last._replace(**{name: values})

    return lambda: kernel(*records), put


def _table(entry: Entry, width: int, records: tuple[NamedTuple | None, ...]) -> Any:
    """The table of addresses; refuses records of other types, for which machine code would read arbitrary memory."""
    for record, declared in zip(records, entry.records, strict=True):
        if not is_of(record, declared):
            raise TypeError(f"kernel {entry.name + entry.variant!r}: {type(record).__name__} is not {declared}")
    return table([record for record in records if record is not None], width)


_broken = ctypes.c_int64(0)  # set by kernels with bounds checks, since C cannot raise
_called: dict[int, Callable[[], None]] = {}  # entries that run as Python, by the number that stands for an address


def point_at(entry: Entry, width: int, pointers: Any, *records: NamedTuple | None) -> object:
    """Set `pointers` (2,) so that a kernel's `run_entry(pointers)` runs `entry` over these records.

    The entry is compiled once for all kernels that call it. The pointers are valid while the returned object is kept.
    """
    if disabled():
        pointers[0] = number = len(_called) + 1
        _called[number] = bind(entry, width, *records)
        return None
    addresses = _table(entry, width, records)
    function: Any = _load_or_compile(entry, width)
    pointers[0] = ctypes.cast(function, ctypes.c_void_p).value
    pointers[1] = addresses.ctypes.data
    return records, addresses, function


def point_at_lanes(
    entry: Entry, pointers: Any, first: Sequence[NamedTuple | None], second: Sequence[NamedTuple | None]
) -> object:
    """Set `pointers` (lanes, 2) so that `run_entry(pointers[lane])` runs `entry`, at width 1, over the lane's records.

    `first`, `second`: the records of lanes 0 and 1; each array lies at an equal distance from that of the lane before.
    """
    if len(pointers) == 1 or disabled():
        return point_at(entry, 1, pointers[0], *first)
    function: Any = _load_or_compile(entry, 1)
    zeroth = _table(entry, 1, (*first,))
    lanes = np.arange(len(pointers))[:, None]
    addresses = zeroth + lanes * (_table(entry, 1, (*second,)) - zeroth)
    pointers[:, 0] = ctypes.cast(function, ctypes.c_void_p).value
    pointers[:, 1] = addresses.ctypes.data + lanes[:, 0] * addresses.strides[0]
    return first, addresses, function


def point_at_function(pointers: Any, function: Callable[[], None]) -> object:
    """Set `pointers` (2,) so that a kernel's `run_entry(pointers)` calls a Python function, which must not raise.

    A call takes the GIL, 5 µs. The pointers are valid while the returned object is kept.
    """
    if disabled():
        pointers[0] = number = len(_called) + 1
        _called[number] = function
        return None
    made = ctypes.CFUNCTYPE(None, ctypes.c_int64)(lambda _: function())
    pointers[0] = ctypes.cast(made, ctypes.c_void_p).value
    return made


def run_called(number: int) -> None:
    """Run an entry called by address as Python."""
    _called[number]()


class Amount(NamedTuple):
    """A kernel to be compiled, for those who watch: its name, and about how much work it is beside the others."""

    name: str
    work: float


Tell = Callable[[int, bool], None]  # takes the number of a kernel, and False when it is begun, True when it is ready
Watch = Callable[[Sequence[Amount]], AbstractContextManager[Tell | None]]


def _unwatched(_: Sequence[Amount]) -> AbstractContextManager[None]:
    return nullcontext()


def warm(kernels: Iterable[tuple[Entry, int]], watch: Watch = _unwatched) -> None:
    """Load each entry in its width; compile and keep those that are not kept yet, side by side on the cores at hand.

    watch: takes the kernels to be compiled and shows the progress; it yields a function that is told of each, or None
    to have a line for each.
    """
    if disabled():
        return
    kernels = list(dict.fromkeys(kernels))
    with _one_at_a_time:
        missing = [kernel for kernel in kernels if not _load_kept(*kernel)]
    if not missing:
        return
    with watch([_amount(entry) for entry, _ in missing]) as tell:
        if len(missing) > 1 and can_fork() and available_cores() > 1 and object_cache.folder():
            _compile_in_children(missing, tell)
        for number, (entry, width) in enumerate(missing):
            with _one_at_a_time:
                if tell and not _load_kept(entry, width):
                    tell(number, False)
                _loaded_function(entry, width, None if tell else "1 of 1")
            if tell:
                tell(number, True)


def _amount(entry: Entry) -> Amount:
    # the length of sources and records: over the kernels of `artsim warmup` its correlation with machine code is 0.79
    work = size_of(entry.module) * sum(len(layout(record)) for record in entry.records)
    return Amount(entry.name + entry.variant, float(work))


def _compile_in_children(kernels: list[tuple[Entry, int]], tell: Tell | None) -> None:
    """Compile the kernels into the cache in children.

    A child that fails says nothing: its kernel is compiled again by who needs it, and fails there.
    """

    def compile_one(number: int) -> None:
        with suppress(Exception):
            _compiled_and_kept(*kernels[number], None if tell else f"{number + 1} of {len(kernels)}")

    _in_children(compile_one, len(kernels), tell)


def build(kernels: Iterable[tuple[Entry, int]], levels: Iterable[str], folder: Path) -> None:
    """Compile each entry in its width for each level, which this processor needs not have, into `folder`/<level>.

    Kernels that are there already are left, and those of other sources are removed. Raises RuntimeError for a kernel
    that did not compile.
    """
    kernels, levels = list(dict.fromkeys(kernels)), list(levels)
    for each in levels:
        (folder / each).mkdir(parents=True, exist_ok=True)

    def missing(number: int) -> list[str]:
        return [each for each in levels if object_cache.read(path(number, each), each) is None]

    def path(number: int, of_level: str) -> Path:
        return folder / of_level / file_name(*kernels[number], of_level)

    def build_one(number: int) -> None:
        if wanted := missing(number):
            entry, width = kernels[number]
            _say(entry, f"{number + 1} of {len(kernels)}, for {', '.join(wanted)}")
            for each, code in compiled(entry, width, wanted).items():
                object_cache.write(path(number, each), each, code)

    expected = {path(number, each) for number in range(len(kernels)) for each in levels}
    for found in folder.glob("*/*"):
        if found.with_suffix("") not in expected:
            found.unlink()
    _in_children(build_one, len(kernels), None)
    for found in folder.glob("*/*"):
        found.chmod(0o644)
    if failed := [kernels[number][0].name for number in range(len(kernels)) if missing(number)]:
        raise RuntimeError(f"not compiled: {', '.join(failed)}")


def _in_children(take: Callable[[int], None], count: int, tell: Tell | None) -> None:
    """Call take(0 … count - 1) in one child for each core, and `tell` at the beginning and end of each. A child takes
    one number after the other, since functions that it has compiled for one kernel serve the next.
    """
    reader, writer = os.pipe()
    os.write(writer, bytes(range(count)))
    os.close(writer)
    reports, report = os.pipe()

    def take_turns() -> None:
        while number := os.read(reader, 1):
            os.write(report, number + b"\0")
            take(number[0])
            os.write(report, number + b"\1")

    children: list[int] = []
    try:
        for _ in range(min(count, available_cores())):
            children.append(start_child(take_turns))
        os.close(report)
        while told := os.read(reports, 2):  # never half of one: a pipe takes so few bytes whole
            if tell:
                tell(told[0], bool(told[1]))
        while children:
            os.waitpid(children.pop(), 0)
    finally:
        end_children(children)
        os.close(reader)
        os.close(reports)


_loaded: dict[tuple[str, int, str], tuple[Callable[[int], None], Any]] = {}


_one_at_a_time = threading.Lock()  # llvmlite and the compiler are not thread-safe


def _after_fork() -> None:
    """Replace the lock in a forked child, where a thread that held it no longer exists."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _load_or_compile(entry: Entry, width: int) -> Callable[[int], None]:
    with _one_at_a_time:
        return _loaded_function(entry, width)


def _loaded_function(entry: Entry, width: int, which: str | None = "1 of 1") -> Callable[[int], None]:
    if not _load_kept(entry, width):
        _loaded[_key(entry, width)] = _link(*_compiled_and_kept(entry, width, which))
    return _loaded[_key(entry, width)][0]


def _load_kept(entry: Entry, width: int) -> bool:
    """Load a kernel that is kept; False if it is not. The caller holds the lock."""
    key = _key(entry, width)
    if key not in _loaded and (kept := object_cache.find(file_name(entry, width, level()), level())) is not None:
        _loaded[key] = _link(*kept)
    return key in _loaded


def _key(entry: Entry, width: int) -> tuple[str, int, str]:
    return entry.name + entry.variant, width, level()


def file_name(entry: Entry, width: int, of_level: str) -> str:
    """The name of a kernel's files, without suffix."""
    checked = "-checked" if _checked() else ""
    return f"{entry.name}{entry.variant}-{width}{checked}-{of_level}-{_digest(entry)}"


@cache
def _digest(entry: Entry) -> str:
    """A digest of the sources of an entry's kernel, and of the layout of its records, which other modules declare."""
    layouts = "".join(map(layout, entry.records))
    return sha256(f"{digest_of(entry.module)}{layouts}".encode()).hexdigest()[:16]


def _compiled_and_kept(entry: Entry, width: int, which: str | None) -> Code:
    """Compile a kernel here, or load the code that another process compiled while this one waited for it.

    which: the kernel's place among all, told in a line; None: nothing is told.
    """
    folder, kernel, name = object_cache.folder(), entry.name + entry.variant, file_name(entry, width, level())
    with object_cache.alone(folder / name, kernel) if folder else nullcontext():
        kept = object_cache.read(folder / name, level()) if folder else None
        if kept is None:
            if which:
                _say(entry, f"{which} (first use on this machine)")
            began = time.monotonic()
            kept = compiled(entry, width, [level()])[level()]
            if which:
                why = f", {slower()}" if slower() else ""
                sys.stderr.write(f"artsim: compiled {kernel!r} in {time.monotonic() - began:.0f} s{why}\n")
            if folder:
                object_cache.write(folder / name, level(), kept)
    return kept


def _say(entry: Entry, what: str) -> None:
    # one write, since children write side by side
    sys.stderr.write(f"artsim: compiling kernel {entry.name + entry.variant!r}, {what}\n")


def _link(symbol: str, needed: list[str], code: bytes) -> tuple[Callable[[int], None], Any]:
    """Turn machine code into a ctypes function of the table's address; the second item keeps it in memory."""
    made = None if _checked() else put_into_memory(code, symbol, _external)
    address, keep = made or _linked_by_llvm(symbol, needed, code)
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(address), keep


@cache
def _external(name: str) -> int:
    """The address of a C function, or 0 if unknown. Kernels neither raise nor allocate, so the runtime functions of
    numba and Python that their objects name are never reached. LLVM itself adds to C_LIBRARY (`sincos` for both of one
    angle).
    """
    library = ctypes.CDLL(None if os.name == "posix" else "msvcrt")
    name = "abort" if name.startswith(RUNTIME) else name
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 if hasattr(library, name) else 0


def _linked_by_llvm(symbol: str, needed: list[str], code: bytes) -> tuple[int, object]:
    """Link as put_into_memory does, for objects of all kinds, and for those with bounds checks."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    # With bounds checks the runtime functions named are reached, and it is enough to know that. Every name needs an
    # address all the same, or the engine leaves all of them at zero. The stand-ins are a module of this engine:
    # llvm.add_symbol is for the whole process, where other code compiled by numba calls the real ones.
    note = f"store i64 1, i64* inttoptr (i64 {ctypes.addressof(_broken)} to i64*)"
    stand_ins = (f'define i64 @"{name}"() {{\n  {note}\n  ret i64 0\n}}' for name in needed if name not in C_LIBRARY)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(stand_ins)), machine)
    for name in C_LIBRARY:
        llvm.add_symbol(name, _external(name))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(symbol), engine
