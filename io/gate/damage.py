"""Errors of HDF5 and h5py on damaged files, turned into a ModelError."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from artsim.sim.foundation.errors import ArtsimError, ModelError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every exception of HDF5 or h5py on a damaged file into a ModelError."""
    try:
        yield
    except ArtsimError:
        raise
    except MemoryError:
        raise ModelError(f"{path}: damaged: asks for more memory than there is") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise ModelError(f"{path}: damaged: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.strerror and "\n" not in error.strerror:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).split("\n", 1)[0]
