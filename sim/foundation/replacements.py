"""Functions of numba that others replace while kernels compile, each only where it fits the numba at hand.

numba promises nothing of its inner functions. A replacement therefore lists the sources with which it is known to be
right, of the functions that it replaces and of those that it relies on: by a digest, or by the signature of a function
that it only calls. Where one differs the replacement steps aside, and numba's own functions compile the same results,
only slower. Of the 26 functions four changed from numba 0.61 to 0.68, once each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib import import_module
from typing import Any

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError


@dataclass(frozen=True, eq=False)
class Replacement:
    """Functions of numba that are replaced together or not at all.

    functions: by `module:class.name`, makers of the function to use from numba's own.
    sources: by such names, of these functions and of those relied on, the known digests or the signature.
    needed: True if no kernel compiles without.
    """

    name: str
    functions: Mapping[str, Callable[[Any], Any]]
    sources: Mapping[str, str]
    needed: bool = False


def differences(replacement: Replacement) -> list[str]:
    """The functions that differ from those with which a replacement is known to be right."""
    return [function for function, known in replacement.sources.items() if not _is_known(function, known)]


def _is_known(function: str, known: str) -> bool:
    try:
        owner, name = place(function)
        if known.startswith("("):
            return str(inspect.signature(getattr(owner, name))) == known
        return digest(function) in known.split()
    except (ImportError, AttributeError, OSError, TypeError, ValueError):  # not there, or without a source
        return False


def digest(function: str) -> str:
    """The digest of a function's source, as `Replacement.sources` lists it."""
    owner, name = place(function)
    return sha256(inspect.getsource(getattr(owner, name).__code__).encode()).hexdigest()[:8]


def place(function: str) -> tuple[Any, str]:
    """The module or class that holds a function, and its name there."""
    module, _, names = function.partition(":")
    owner: Any = import_module(module)
    *classes, name = names.split(".")
    for each in classes:
        owner = getattr(owner, each)
    return owner, name


@cache
def aside(replacements: tuple[Replacement, ...]) -> dict[str, list[str]]:
    """The functions that differ in the numba at hand, by the names of the replacements that therefore step aside.

    Raises:
        ArtsimError: a replacement does not fit without which no kernel compiles.
    """
    import numba

    found = {each: differing for each in replacements if (differing := differences(each))}
    if needed := [function for each, differing in found.items() if each.needed for function in differing]:
        raise ArtsimError(f"numba {numba.__version__} cannot compile kernels: {', '.join(needed)} has changed")
    return {each.name: differing for each, differing in found.items()}


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Have numba use those of the replacements that fit it."""
    replacements = tuple(replacements)
    left = aside(replacements)
    with put(
        (*place(function), make)
        for each in replacements
        if each.name not in left
        for function, make in each.functions.items()
    ):
        yield


@contextmanager
def put(attributes: Iterable[tuple[Any, str, Callable[[Any], Any]]]) -> Iterator[None]:
    """Replace attributes of classes, modules or objects temporarily, by what is made of their values."""
    originals: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, make in attributes:
            originals.append((owner, name, getattr(owner, name)))
            setattr(owner, name, make(getattr(owner, name)))
        yield
    finally:
        for original in reversed(originals):
            setattr(*original)
