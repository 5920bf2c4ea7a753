"""Compiled entries: numba compiles, it does not run.

The few outer entries (simulate a block of steps, compute a block of configurations) are compiled by numba as C
functions over one table of addresses (records.py); their machine code is kept as an object file beside a JSON of its
symbol, CPU and digest, and later put into memory by machine_code.py, or else by LLVM. A process whose objects are warm
never imports numba.
ctypes releases the GIL during a call, so plain Python threads run blocks side by side.

The cache folder is named after a hash of every kernel source and of numba's and llvmlite's versions: numba's own
cache is keyed by a function's own file and silently runs stale code after an edit to a helper elsewhere.
Objects hold no pickle; a wrong digest, CPU or symbol means: compile again.

`NUMBA_DISABLE_JIT=1` runs an entry as Python (scalar width only), `NUMBA_BOUNDSCHECK=1` with its indices looked at.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from artsim.sim.foundation.apart import available_cores, can_fork, start_child
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.machine_code import put_into_memory
from artsim.sim.foundation.ownership import make_own, read_own, whose_else
from artsim.sim.foundation.records import Array, is_of, places_of, table

_KERNEL_FOLDERS = ("sim", "collision")
_WITHOUT_KERNELS = {
    "sim/maximal",
    "sim/runs/maximal_simulation.py",
    "sim/foundation/budget.py",
    "sim/foundation/ownership.py",
    "collision/mesh.py",
}  # nor their callees
# LLVM's loop optimisations, and the functions of `math` that kernels may call
_C_LIBRARY = tuple("memset memcpy memmove sqrt sin cos tan asin acos atan atan2 exp log pow fmod tanh".split())
_RUNTIME = ("Py", "_Py", "numba_", "NRT_")  # prefixes of numba's and Python's names

# without numba's runtime a kernel that allocates an array does not compile; contraction into FMA is what differs
# between the widths, and all of what fast-math may do here
_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "fastmath": {"contract"}}

_MOST_SAID, _MOST_CODE = 1 << 20, 1 << 28  # bytes of a kept object's description and of itself
_OURS = "6artsim"  # in the names that numba makes of its functions

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

    compiled: F = numba.njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # noqa: TID251
    return compiled


def inlined(function: F) -> F:
    """`njit` for small helpers, always inlined, since a call passes a record as hundreds of numbers."""
    if disabled():
        return function
    import numba

    compiled: F = numba.njit(**_OPTIONS, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # noqa: TID251
    return compiled


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
    """Return such a call, and a function that puts another array in the place of a field of the last record, by name.

    The call keeps the records alive, not what is put in their place later: that is up to who puts it there. Fields
    with lanes keep their arrays.
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
        entries[place] = values.__array_interface__["data"][0]
        for extent in values.shape:
            place += 1
            entries[place] = extent

    return checked_call if _checked() else call, put


def _python_call(
    entry: Entry, width: int, records: list[NamedTuple | None]
) -> tuple[Callable[[], None], Callable[[str, Array], None]]:
    """The same of a kernel that runs as Python."""
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

    Such an entry is compiled once for all kernels that call it. Both hold as long as the returned object is kept.
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


def run_called(number: int) -> None:
    """Run an entry called by address as Python."""
    _called[number]()


def warm(kernels: Iterable[tuple[Entry, int]]) -> None:
    """Load each entry in its width; compile and keep those that are not kept yet, side by side on the cores at hand."""
    if disabled():
        return
    kernels = list(kernels)
    with _one_at_a_time:
        missing = [kernel for kernel in kernels if not _load_kept(*kernel)]
    if len(missing) > 1 and can_fork() and available_cores() > 1 and cache_folder():
        _compile_in_children(missing)
    for entry, width in missing:
        _load_or_compile(entry, width)


def _compile_in_children(kernels: list[tuple[Entry, int]]) -> None:
    """Compile the kernels into the cache in one child for each core. A child takes one after the other, since what it
    has compiled for one serves the next.

    A child that fails says nothing: its kernel is compiled again by who needs it, and fails there.
    """
    reader, writer = os.pipe()
    os.write(writer, bytes(range(len(kernels))))
    os.close(writer)

    def take_turns() -> None:
        while number := os.read(reader, 1):
            entry, width = kernels[number[0]]
            with suppress(Exception):
                _compiled_and_kept(entry, width, _name(entry, width))

    children = [start_child(take_turns) for _ in range(min(len(kernels), available_cores()))]
    os.close(reader)
    for child in children:
        os.waitpid(child, 0)


# ------------------------------------------------------------------ object cache


@cache
def _stamp() -> str:
    digest = sha256(str(sys.version_info[:2]).encode())
    for compiler in ("numba", "llvmlite"):  # their version files: importing either, or importlib.metadata, costs more
        spec = find_spec(compiler)
        assert spec is not None and spec.origin is not None
        digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
    package = Path(__file__).parents[2]
    for folder in _KERNEL_FOLDERS:
        for source in sorted((package / folder).rglob("*.py")):
            path = source.relative_to(package).as_posix()
            if path not in _WITHOUT_KERNELS and path.rpartition("/")[0] not in _WITHOUT_KERNELS:
                digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _users_folder() -> Path:
    chosen = os.environ.get("ARTSIM_CACHE_DIR")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_cache_dir("artsim")
    return Path(chosen) / _stamp()


def _temporary_folder() -> Path:
    """The folder among the temporary files. Everybody can make folders there: `_is_private` tells whether it is
    safe."""
    import tempfile

    return Path(tempfile.gettempdir()) / f"artsim-{os.getuid() if os.name == 'posix' else 0}" / _stamp()


def _is_private(folder: Path) -> bool:
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and (
        os.name != "posix" or (about.st_uid, about.st_mode & 0o77) == (os.getuid(), 0)
    )


def _can_write(folder: Path) -> bool:
    """Whether the folder exists, created as 0700 if it did not, and can be written."""
    return make_own(folder) and os.access(folder, os.W_OK)


def _folders() -> Iterator[Path]:
    """Folders where a compiled object may be found, even read-only ones (an image whose kernels are warm).

    Objects are machine code: none is taken from where another user could have put it.
    """
    folder = _users_folder()
    if whose_else(folder) is None:
        yield folder
    with suppress(OSError):
        folder = _temporary_folder()
        if _is_private(folder.parent):
            yield folder


@cache
def cache_folder() -> Path | None:
    """The folder that compiled objects are written to, or None if there is none (then nothing is kept).

    It is the user's cache, or a folder among the temporary files where that cannot be written, as without a home.
    """
    folder, other = _users_folder(), None
    theirs = whose_else(folder)
    if theirs is None and _can_write(folder):
        return folder
    with suppress(OSError):
        found = _temporary_folder()
        found.parent.mkdir(mode=0o700, exist_ok=True)
        other = found if _is_private(found.parent) and _can_write(found) else None
    instead = "compiling each time" if other is None else f"they are kept in {other}"
    why = "" if theirs is None else f" (others than you own {theirs} or can write there)"
    print(f"artsim: cannot keep compiled kernels in {folder}{why}; {instead}", file=sys.stderr)
    return other


def processor() -> str:
    """The processor's name."""
    return _cpuinfo().get("model name") or _llvm_host()[0]


def _host() -> str:
    """Identifies the processor and its instruction set."""
    about = _cpuinfo()
    if "flags" not in about:
        return " ".join(_llvm_host())
    return "; ".join(about.get(name, "") for name in ("vendor_id", "cpu family", "model", "flags"))


@cache
def _cpuinfo() -> dict[str, str]:
    """What Linux reports of the first core. LLVM reports the same, but takes 20 ms to import."""
    about: dict[str, str] = {}
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in itertools.takewhile(str.strip, lines):
            name, _, value = line.partition(":")
            about[name.strip()] = value.strip()
    return about


def _llvm_host() -> tuple[str, str]:
    """Name and features of the processor, as reported by LLVM."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _digest(name: str, symbol: object, needed: object, host: object, code: bytes) -> str:
    """Digest of the machine code and its description: a wrong symbol would jump anywhere, and the object of another
    entry, variant or width (all part of `name`) would compute something else, or crash.
    """
    return sha256(json.dumps([_stamp(), name, symbol, needed, host]).encode() + code).hexdigest()


def _read_object(path: Path) -> tuple[str, list[str], bytes] | None:
    """Symbol, external names and machine code of a kept object; None if it is missing, damaged or for another CPU."""
    said, code = read_own(path.with_suffix(".json"), _MOST_SAID), read_own(path.with_suffix(".o"), _MOST_CODE)
    if said is None or code is None:
        return None
    try:
        about = json.loads(said)
        symbol, needed, host = about["symbol"], about["needed"], about["host"]
        if host != _host() or _digest(path.name, symbol, needed, host, code) != about["sha256"]:
            return None
        return symbol, needed, code
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _write_object(path: Path, symbol: str, needed: list[str], code: bytes) -> None:
    digest = _digest(path.name, symbol, needed, _host(), code)
    about = {"symbol": symbol, "needed": needed, "sha256": digest, "host": _host()}
    try:
        for suffix, content in ((".o", code), (".json", json.dumps(about).encode())):
            part = path.with_suffix(f"{suffix}.{os.getpid()}")
            part.unlink(missing_ok=True)  # left by a killed process of the same number
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)
            part.replace(path.with_suffix(suffix))  # atomic: processes may compile side by side
    except OSError as error:
        print(f"artsim: cannot keep a compiled kernel: {error}", file=sys.stderr)


_loaded: dict[tuple[str, int], tuple[Callable[[int], None], Any]] = {}


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


def _loaded_function(entry: Entry, width: int) -> Callable[[int], None]:
    if not _load_kept(entry, width):
        _loaded[_key(entry, width)] = _link(*_compiled_and_kept(entry, width, _name(entry, width)))
    return _loaded[_key(entry, width)][0]


def _load_kept(entry: Entry, width: int) -> bool:
    """Load a kernel from the cache; False if it is not there. The caller holds the lock."""
    key = _key(entry, width)
    if key not in _loaded and (kept := _kept(_name(entry, width))) is not None:
        _loaded[key] = _link(*kept)
    return key in _loaded


def _key(entry: Entry, width: int) -> tuple[str, int]:
    return entry.name + entry.variant, width


def _name(entry: Entry, width: int) -> str:
    """The name of a kernel's files in the cache."""
    return f"{entry.name}{entry.variant}-{width}{'-checked' if _checked() else ''}"


def _kept(name: str) -> tuple[str, list[str], bytes] | None:
    """What _read_object finds of a kernel in the folders where it may be."""
    return next(filter(None, (_read_object(folder / name) for folder in _folders())), None)


def _compiled_and_kept(entry: Entry, width: int, name: str) -> tuple[str, list[str], bytes]:
    """Compile here, or load what another process compiled while this one waited for it."""
    folder, kernel = cache_folder(), entry.name + entry.variant
    with _alone(folder / name, kernel) if folder else nullcontext():
        kept = _read_object(folder / name) if folder else None
        if kept is None:
            # one write, since children write side by side
            sys.stderr.write(f"artsim: compiling kernel {kernel!r} (first use on this machine)\n")
            kept = _compile(entry, width)
            if folder:
                _write_object(folder / name, *kept)
    return kept


@contextmanager
def _alone(path: Path, kernel: str) -> Iterator[None]:
    """Let one process at a time compile a kernel. Without it, four that start together take four times as long."""
    try:
        import fcntl

        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (ImportError, OSError):  # no locks on this system: each process compiles for itself
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"artsim: another process compiles kernel {kernel!r}; waiting for it", file=sys.stderr)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            path.with_suffix(".lock").unlink()  # a process that opened it before finds the object
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for children forked meanwhile
        os.close(handle)


def _link(symbol: str, needed: list[str], code: bytes) -> tuple[Callable[[int], None], Any]:
    """Turn machine code into a ctypes function of the table's address; the second item keeps it in memory."""
    made = None if _checked() else put_into_memory(code, symbol, _external)
    address, keep = made or _linked_by_llvm(symbol, needed, code)
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(address), keep


@cache
def _external(name: str) -> int:
    """The address of a C function, or 0 if unknown. Kernels neither raise nor allocate, so the runtime functions of
    numba and Python that their objects name are never reached. LLVM itself adds to _C_LIBRARY (`sincos` for both of one
    angle).
    """
    library = ctypes.CDLL(None if os.name == "posix" else "msvcrt")
    name = "abort" if name.startswith(_RUNTIME) else name
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
    stand_ins = (f'define i64 @"{name}"() {{\n  {note}\n  ret i64 0\n}}' for name in needed if name not in _C_LIBRARY)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(stand_ins)), machine)
    for name in _C_LIBRARY:
        llvm.add_symbol(name, _external(name))
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(symbol), engine


# ------------------------------------------------------------------ compiling (imports numba)


def _compile(entry: Entry, width: int) -> tuple[str, list[str], bytes]:
    function = _wrapper(entry, width)
    collecting = gc.isenabled()
    gc.disable()  # millions of small objects live to the end: collecting among them is a tenth of the time
    try:
        return _compiled_whole(function)
    finally:
        if collecting:
            gc.enable()


def _compiled_whole(function: Any) -> tuple[str, list[str], bytes]:
    from numba import cfunc, types

    with _patched(_no_negative_indices()), _patched(_members_known()), _only_the_whole_is_optimised() as optimise:
        compiled = cfunc(types.void(types.CPointer(types.int64)), nopython=True, **_OPTIONS)(function)
        optimise(compiled._library)
    module = compiled._library._final_module
    external = [f.name for f in (*module.functions, *module.global_variables) if f.is_declaration]
    needed = sorted({*_C_LIBRARY, *(name for name in external if not name.startswith("llvm."))})
    return compiled._wrapper_name, needed, _machine().emit_object(module)


@contextmanager
def _only_the_whole_is_optimised() -> Iterator[Callable[[Any], None]]:
    """Skip numba's own optimisation and assembly of every function with its callees, which takes four fifths of the
    time for nothing: only the linked whole is ever used.

    numba assembles what is in its engine when it asks for an address there, such as a function's environment, which
    only wrappers for Python and exceptions need; the engine's functions are therefore not added. Those of others may
    be.
    """
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen

    add, put = JITCPUCodegen._add_module, JITCPUCodegen.set_env

    def set_env(codegen: Any, name: str, value: Any) -> None:
        if codegen._engine.get_global_value_address(name):
            put(codegen, name, value)

    kept: dict[tuple[Any, str], Any] = {
        (CPUCodeLibrary, "_optimize_final_module"): lambda library: None,
        (JITCodeLibrary, "_finalize_specific"): lambda library: None,
        (JITCPUCodegen, "_add_module"): lambda codegen, module: None if _is_ours(module) else add(codegen, module),
        (JITCPUCodegen, "set_env"): set_env,
    }
    optimise = CPUCodeLibrary._optimize_final_module
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


def _is_ours(module: Any) -> bool:
    return any(_OURS in function.name for function in module.functions)


@cache
def _machine() -> Any:
    """Code generation for this exact CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _llvm_host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


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
