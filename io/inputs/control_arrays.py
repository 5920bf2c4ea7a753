"""Control files as arrays, in .npz archives and HDF5 files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from artsim.io.gate.gate import open_checked
from artsim.io.gate.values import read_texts, read_whole, reading
from artsim.io.inputs.array_files import npy_header, unzipping
from artsim.io.inputs.input_table import SUFFIXES, InputTable, Names, check_time, index_of
from artsim.sim.equipment.build_link_wrenches import COMPONENTS
from artsim.sim.foundation.errors import ModelError, UsageError, listed
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

if TYPE_CHECKING:
    import zipfile

    import h5py

MAX_FILE_BYTES = 1 << 30
ARRAYS = (*SUFFIXES, "control")
WRENCHES, LINKS = "wrench", "links"  # arrays of wrenches on links, and which these are
_KNOWN = ("time", "names", "actuators", LINKS, WRENCHES, *ARRAYS)


def npz_arrays(path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, Array], list[str]]:
    """Read the wanted arrays in a .npz, and all names in it; never unpickles, refuses too large ones."""
    import zipfile  # takes 4 ms, which runs without a control file save

    with unzipping(str(path)), zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        size = sum(member.file_size for member in members.values())
        if size > MAX_FILE_BYTES:
            raise ModelError(f"{path}: unpacks to {size} bytes; at most {MAX_FILE_BYTES} are read")
        arrays = {name: _read_npy(archive, member) for name, member in members.items() if wanted(name)}
    return arrays, list(members)


def _read_npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Read one array; its declared size is compared with the archive's before numpy allocates it."""
    with archive.open(member) as stream:
        header = npy_header(stream)
        if header.end > member.file_size:
            raise ValueError(f"{member.filename} declares the shape {header.shape}, but holds {member.file_size} bytes")
        stream.seek(0)
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def h5_arrays(path: Path, wanted: Callable[[str], bool]) -> dict[str, Array]:
    """Read the wanted arrays at the root of an HDF5 file that artsim did not write."""
    with open_checked(path) as file, reading(path):
        if "artsim_schema" in file.attrs:
            return {}
        return {name: h5_array(path, file[name]) for name in file if wanted(name)}


def h5_array(path: Path, dataset: h5py.Dataset) -> Array:
    if dataset.dtype.kind in "SO":
        return np.array(read_texts(path, dataset), dtype=np.str_)
    return read_whole(path, dataset)


def is_known(name: str, names: Names) -> bool:
    """True if an array of this name holds inputs: all of a kind, or a column as in CSV."""
    return name in _KNOWN or name in names.actuators or name.rpartition(".")[2] in SUFFIXES


def _single_columns(path: Path, arrays: Mapping[str, Array], names: Names) -> dict[str, tuple[list[int], list[Array]]]:
    """The arrays (rows,) that are called as columns of CSV: places and numbers by kind."""
    found: dict[str, tuple[list[int], list[Array]]] = {}
    for name in (name for name in arrays if name not in _KNOWN):
        if name in names.actuators:
            kind, place = "control", names.actuators.index(name)
        else:
            joint, _, suffix = name.rpartition(".")
            kind, place = SUFFIXES[suffix], index_of(path, "joint", joint, names.dofs)
        places, columns = found.setdefault(kind, ([], []))
        places.append(place)
        columns.append(_numbers(path, name, arrays[name], 1))
    return found


def table_of(path: Path, arrays: Mapping[str, Array], present: list[str], names: Names) -> InputTable:
    arrays = _with_wrench_columns(path, arrays)
    kinds = [name for name in ARRAYS if name in arrays]
    single = _single_columns(path, arrays, names)
    if "time" not in arrays or not (kinds or single):
        raise ModelError(
            f"{path}: want arrays time and target, velocity, acceleration, torque or control, or JOINT.target, …; "
            f"it holds {listed(present, 8)}"
        )
    time = _numbers(path, "time", arrays["time"], 1)
    check_time(path, time, "time, entry")
    columns = {}
    for kind, (places, parts) in single.items():
        for place, part in zip(places, parts, strict=True):
            if part.shape != time.shape:
                label = (names.actuators if kind == "control" else names.dofs)[place]
                raise UsageError(f"{path}: {kind} of {label!r} has {part.size} entries, want {time.size}, one per time")
        columns[kind] = (places, np.stack(parts, axis=1))
    for name in kinds:
        kind, known, given = (
            ("actuator", names.actuators, "actuators") if name == "control" else ("joint", names.dofs, "names")
        )
        labels = array_names(path, arrays[given]) if given in arrays else known
        places = [index_of(path, kind, label, known) for label in labels]
        if len(set(places)) < len(places):
            raise ModelError(f"{path}: {given} has {next(x for x in labels if labels.count(x) > 1)!r} twice")
        numbers = _numbers(path, name, arrays[name], 2)
        if numbers.shape != (time.size, len(labels)):
            plural = given if given in arrays or name == "control" else "degrees of freedom"
            want = f"({time.size}, {len(labels)}): times, {plural}"
            raise UsageError(f"{path}: {name} has shape {numbers.shape}, want {want}")
        key = SUFFIXES.get(name, name)
        if key in columns:
            raise ModelError(f"{path}: {name} stands there for all and for single joints or actuators")
        columns[key] = (places, numbers)
    _check_finite(path, columns, names)
    return InputTable(time, columns)


def _with_wrench_columns(path: Path, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """The arrays with columns LINK.fx, … in place of `wrench` (rows, n, 6) and `links` (n,)."""
    if WRENCHES not in arrays:
        return arrays
    if LINKS not in arrays:
        raise ModelError(f"{path}: want links, the names of the links, beside {WRENCHES}")
    links, numbers = array_names(path, arrays[LINKS]), _numbers(path, WRENCHES, arrays[WRENCHES], 3)
    if numbers.shape[1:] != (len(links), len(COMPONENTS)):
        want = f"(times, {len(links)}, {len(COMPONENTS)}): times, links, force and torque"
        raise UsageError(f"{path}: {WRENCHES} has shape {numbers.shape}, want {want}")
    columns = {
        f"{link}.{component}": numbers[:, n, k]
        for n, link in enumerate(links)
        for k, component in enumerate(COMPONENTS)
    }
    return {name: values for name, values in arrays.items() if name not in (WRENCHES, LINKS)} | columns


def _check_finite(path: Path, columns: Mapping[str, tuple[list[int], Real]], names: Names) -> None:
    """Raise ModelError, with kind, name, row and column, for a number that is not finite."""
    words = {kind: word for word, kind in SUFFIXES.items()}
    for kind, (places, numbers) in columns.items():
        bad = np.argwhere(~np.isfinite(numbers))
        if bad.size:
            row, column = (int(index) for index in bad[0])
            label = (names.actuators if kind == "control" else names.dofs)[places[column]]
            what = f"{words.get(kind, kind)} of {label!r}, row {row + 1}, column {column + 1}"
            raise ModelError(f"{path}: {what}: {numbers[row, column]} is not a finite number")


def _numbers(path: Path, name: str, array: Array, ndim: int) -> Real:
    if array.dtype.kind not in "fiu" or array.ndim != ndim:
        raise ModelError(f"{path}: {name} is {array.dtype} with {array.ndim} dimensions, want numbers with {ndim}")
    return array.astype(np.float64)


def array_names(path: Path, array: Array) -> tuple[str, ...]:
    if array.dtype.kind not in "USO" or array.ndim != 1:
        raise ModelError(f"{path}: names is {array.dtype} with {array.ndim} dimensions, want a list of texts")
    return tuple(entry.decode("utf-8", "replace") if isinstance(entry, bytes) else str(entry) for entry in array)
