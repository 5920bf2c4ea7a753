"""Machine code of kernels as files: an object beside a JSON of its symbol, level and digest.

Objects come with the package (`kernels/<level>/`, where it was built with them) or are kept in the user's cache, in a
folder named after the versions of Python, numba and llvmlite. A file's name tells the entry, the level (targets.py) and
the digest of the sources (sources.py): an edit makes those files stale that can depend on it. Objects hold no pickle; a
wrong digest, level or symbol means: compile again. Objects are machine code: none is taken from a place where another
user could have put it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from artsim.sim.foundation.ownership import make_own, read_own, whose_else
from artsim.sim.foundation.targets import described

Code = tuple[str, list[str], bytes]  # symbol, external names and machine code

_SHIPPED = Path(__file__).parents[2] / "kernels"
_MOST_SAID, _MOST_CODE = 1 << 20, 1 << 28  # bytes of a kept object's description and of itself


def find(name: str, level: str) -> Code | None:
    """The code of a kernel from the package, or from the folders where it may be."""
    shipped = _read(_SHIPPED / level / name, level, _read_file)  # as trustworthy as the sources beside it
    return shipped or next(filter(None, (read(folder / name, level) for folder in _folders())), None)


def read(path: Path, level: str) -> Code | None:
    """The code that the user wrote at a path; None if it is missing, damaged, for another level, or another user's."""
    return _read(path, level, read_own)


def _read_file(path: Path, most: int) -> bytes | None:
    with suppress(OSError):
        return path.read_bytes()[:most]
    return None


def _read(path: Path, level: str, reader: Callable[[Path, int], bytes | None]) -> Code | None:
    said, code = reader(path.with_suffix(".json"), _MOST_SAID), reader(path.with_suffix(".o"), _MOST_CODE)
    if said is None or code is None:
        return None
    try:
        about = json.loads(said)
        symbol, needed, host = about["symbol"], about["needed"], about["host"]
        if host != described(level) or _digest(path.name, symbol, needed, host, code) != about["sha256"]:
            return None
        return symbol, needed, code
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def write(path: Path, level: str, kept: Code) -> None:
    """Write the two files; on an error, say so."""
    symbol, needed, code = kept
    host = described(level)
    about = {"symbol": symbol, "needed": needed, "sha256": _digest(path.name, symbol, needed, host, code), "host": host}
    try:
        for suffix, content in ((".o", code), (".json", json.dumps(about).encode())):
            part = path.with_suffix(f"{suffix}.{os.getpid()}")
            part.unlink(missing_ok=True)  # left by a killed process of the same number
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)
            part.replace(path.with_suffix(suffix))  # atomic: processes may compile side by side
    except OSError as error:
        print(f"artsim: cannot keep a compiled kernel: {error}", file=sys.stderr)


@contextmanager
def alone(path: Path, kernel: str) -> Iterator[None]:
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
                # one write, since others write too
                sys.stderr.write(f"artsim: another process compiles kernel {kernel!r}; waiting for it\n")
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            path.with_suffix(".lock").unlink()  # a process that opened it before finds the object
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for children forked meanwhile
        os.close(handle)


@cache
def folder() -> Path | None:
    """The folder to which compiled objects are written, or None if there is none (then nothing is kept).

    The folder is the user's cache, or one among the temporary files if the cache cannot be written, as without a home.
    """
    own, other = users_folder(), None
    theirs = whose_else(own)
    if theirs is None and _can_write(own):
        return own
    with suppress(OSError):
        found = _temporary_folder()
        found.parent.mkdir(mode=0o700, exist_ok=True)
        other = found if _is_private(found.parent) and _can_write(found) else None
    instead = "compiling each time" if other is None else f"they are kept in {other}"
    why = "" if theirs is None else f" (others than you own {theirs} or can write there)"
    print(f"artsim: cannot keep compiled kernels in {own}{why}; {instead}", file=sys.stderr)
    return other


def users_folder() -> Path:
    """The folder in which the user's objects are kept, if it can be written."""
    chosen = os.environ.get("ARTSIM_CACHE_DIR")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_cache_dir("artsim")
    return Path(chosen) / _toolchain()


@cache
def _toolchain() -> str:
    """A digest of the versions that machine code depends on beside its sources."""
    digest = sha256(str(sys.version_info[:2]).encode())
    for compiler in ("numba", "llvmlite"):  # their version files: importing either, or importlib.metadata, costs more
        spec = find_spec(compiler)
        if spec is not None and spec.origin is not None:
            digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
    return digest.hexdigest()[:16]


def _temporary_folder() -> Path:
    """The folder among the temporary files. Everybody can make folders there: `_is_private` tells whether it is
    safe."""
    import tempfile

    return Path(tempfile.gettempdir()) / f"artsim-{os.getuid() if os.name == 'posix' else 0}" / _toolchain()


def _is_private(place: Path) -> bool:
    about = place.lstat()
    return stat.S_ISDIR(about.st_mode) and (
        os.name != "posix" or (about.st_uid, about.st_mode & 0o77) == (os.getuid(), 0)
    )


def _can_write(place: Path) -> bool:
    """True if the folder exists, created as 0700 if it did not, and can be written."""
    return make_own(place) and os.access(place, os.W_OK)


def _folders() -> Iterator[Path]:
    """Folders where a compiled object may be found, even read-only ones (an image whose kernels are warm)."""
    if whose_else(users_folder()) is None:
        yield users_folder()
    with suppress(OSError):
        place = _temporary_folder()
        if _is_private(place.parent):
            yield place


def _digest(name: str, symbol: object, needed: object, host: object, code: bytes) -> str:
    """Digest of the machine code and its description: a wrong symbol would jump anywhere, and the object of another
    entry, variant or width (all part of `name`) would compute something else, or crash.
    """
    return sha256(json.dumps([name, symbol, needed, host]).encode() + code).hexdigest()
