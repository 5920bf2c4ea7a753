"""Records: NamedTuples of arrays that kernels receive, and the table of addresses that carries them into machine code.

A record's annotations state the kind of each array; the numba types (jit.py), the allocation and the check of arguments
follow from the annotations alone. `Const*` arrays are read-only (a kernel that writes one does not compile), `Reals*`
hold float64 in both widths, `Lanes*` hold T: a float64 in the scalar width, a pack of 8 robots in the pack width,
stored with the lanes as last axis. A third layout, that of a record made by `lane_view`, is a pack's record as the code
of a single robot sees one of its lanes: a T is the float64 of that lane, where the pack has it.

A bundle is a record whose fields are records. A member may be None: kernels are then compiled without the code that
needs it.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np
from numpy.typing import NDArray

from artsim.sim.foundation.dataclass import dataclass

_SPARSE = 1e8  # bytes: in larger arrays most pages are never touched
BUFFER = 512  # entries of Jacobians gathered before they are written: 4 kB stay in the first cache
EMPTY_BLOCK = -2  # in a table of entries (lanes.chosen_from_lanes): this entry and the WIDTH - 1 after it are zeros
WIDTH = 8  # robots in a pack: one AVX-512 register of float64, two of AVX2; 4 and 16 work, too
ALIGNED = min(8 * WIDTH, 64)  # bytes at a multiple of which each pack of an array of lanes begins, at least
STRIPS = 8  # numbers of a body that foundation/body_strips.py turns to strips of WIDTH bodies
SEATS = max(STRIPS, WIDTH)  # entries of the row of such a body


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of one array field of a record."""

    dtype: type[np.generic]
    ndim: int
    constant: bool = False
    lanes: bool = False
    in_lane: bool = False  # entries are those of one lane of a pack's array, WIDTH float64 apart


Array: TypeAlias = NDArray[Any]
ConstInts1: TypeAlias = Annotated[Array, Kind(np.int64, 1, constant=True)]
ConstInts2: TypeAlias = Annotated[Array, Kind(np.int64, 2, constant=True)]
ConstReals1: TypeAlias = Annotated[Array, Kind(np.float64, 1, constant=True)]
ConstReals2: TypeAlias = Annotated[Array, Kind(np.float64, 2, constant=True)]
ConstReals3: TypeAlias = Annotated[Array, Kind(np.float64, 3, constant=True)]
Ints1: TypeAlias = Annotated[Array, Kind(np.int64, 1)]
Ints2: TypeAlias = Annotated[Array, Kind(np.int64, 2)]
Reals1: TypeAlias = Annotated[Array, Kind(np.float64, 1)]
Reals2: TypeAlias = Annotated[Array, Kind(np.float64, 2)]
Reals3: TypeAlias = Annotated[Array, Kind(np.float64, 3)]
Reals4: TypeAlias = Annotated[Array, Kind(np.float64, 4)]
Lanes1: TypeAlias = Annotated[Array, Kind(np.float64, 1, lanes=True)]
Lanes2: TypeAlias = Annotated[Array, Kind(np.float64, 2, lanes=True)]
Lanes3: TypeAlias = Annotated[Array, Kind(np.float64, 3, lanes=True)]

Real: TypeAlias = float  # T: a float64 in the scalar width, a Pack in the pack width
Pack: TypeAlias = float  # a float64 of each of WIDTH lanes
Vec3: TypeAlias = tuple[Real, Real, Real]
Vec4: TypeAlias = tuple[Real, Real, Real, Real]
Vec6: TypeAlias = tuple[Real, Real, Real, Real, Real, Real]
Mat3: TypeAlias = tuple[Real, Real, Real, Real, Real, Real, Real, Real, Real]  # by rows
Sym3: TypeAlias = Vec6  # upper triangle: xx, xy, xz, yy, yz, zz
Motion: TypeAlias = tuple[Vec3, Vec3]  # velocity of a point, angular velocity
Force: TypeAlias = tuple[Vec3, Vec3]  # force, torque about a point
Vector: TypeAlias = Vec3 | Array  # a triple, or an array's three entries

Member: TypeAlias = type[Any] | None
"""The type of a bundle's field: a record class, or None where the bundle lacks it."""

_KINDS: dict[type[Any], dict[str, Any]] = {}
_COMPARED: dict[tuple[type[Any], type[Any]], tuple[bool, list[tuple[str, Any]]]] = {}


def kinds(record: type[Any]) -> dict[str, Any]:
    """The fields of a record class, in order: the Kind of each array, the Member of each record in a bundle."""
    if record not in _KINDS:
        hints = get_type_hints(record, include_extras=True)
        _KINDS[record] = {name: _kind(hint) for name, hint in hints.items()}
    return _KINDS[record]


def _kind(hint: Any) -> Kind | Member:
    """The Kind of an annotated array; the class of a record; None of a record that may be missing (`X | None`, or
    `X | Any` where kernels that use it are compiled with it alone).
    """
    if hasattr(hint, "__metadata__"):
        kind: Kind = hint.__metadata__[0]
        return kind
    return hint if isinstance(hint, type) and hint is not Any else None


def layout(record: Member) -> str:
    """The part of a record or bundle on which machine code depends: its fields in order, and the kind of each."""
    if record is None:
        return "none"
    fields = kinds(record).items()
    return f"({','.join(f'{name}:{kind if isinstance(kind, Kind) else layout(kind)}' for name, kind in fields)})"


def with_lanes(record: type[Any], name: str, lanes: Collection[str]) -> type[Any]:
    """A record class with the fields of `record`, of which `lanes`, and no others, hold T, which differs by robot."""
    made = type(name, (record,), {})
    _KINDS[made] = {field: replace(kind, lanes=field in lanes) for field, kind in kinds(record).items()}
    return made


def lane_view(record: type[Any], name: str, seen: Collection[str] | None = None) -> type[Any]:
    """The class of a single robot's record in which fields are one lane of those of a pack's `record`: all that hold T,
    or of these `seen`. The others are arrays of its own."""
    made = type(name, (record,), {})
    _KINDS[made] = {
        field: replace(kind, lanes=False, in_lane=kind.lanes and (seen is None or field in seen))
        for field, kind in kinds(record).items()
    }
    return made


def of_lane(view: type[Any], own: Any, pack: Any, lane: int) -> Any:
    """A record of class `view`: fields of one lane of the arrays of `pack`, the others those of `own`."""
    arrays = {}
    for name, kind in kinds(view).items():
        arrays[name] = getattr(own, name)
        if kind.in_lane:
            values = getattr(pack, name)
            arrays[name] = values[..., lane] if values.ndim > kind.ndim else values
    return view(**arrays)


def with_members(bundle: type[Any], **members: Member) -> type[Any]:
    """A bundle class whose given fields hold these records (None: nothing), and whose other fields are as declared."""
    fields = kinds(bundle) | members
    told = ",".join("" if kind is None else getattr(kind, "__name__", name) for name, kind in fields.items())
    made = type(f"{bundle.__name__}[{told}]", (bundle,), {})
    _KINDS[made] = fields
    return made


def zeros(shape: Sequence[int], kind: Kind, width: int = 1) -> Array:
    """A zeroed array of a field's kind; lane arrays get the lane axis and start at a 64-byte boundary."""
    if kind.lanes and width > 1:
        return aligned_zeros((*shape, width))
    if prod(shape) * 8 > _SPARSE:
        return _sparse_zeros(shape, kind)
    return np.zeros(shape, kind.dtype)


def _sparse_zeros(shape: Sequence[int], kind: Kind) -> Array:
    """A zeroed array so large that it can only be the matrix of a crowd, of which few entries per row are used: in
    small pages if the system permits, since large pages would all be touched.
    """
    size = prod(shape)
    try:
        memory = mmap.mmap(-1, 8 * size)
    except OSError as error:
        raise MemoryError(f"a matrix of {' x '.join(map(str, shape))} takes {8 * size / 1e9:.3g} GB") from error
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, kind.dtype, size).reshape(shape)


def aligned_zeros(shape: Sequence[int]) -> Array:
    """Zeroed float64 array that starts at a cache line."""
    size = prod(shape)
    buffer = np.zeros(size + 8)
    start = (-address_of(buffer) // 8) % 8
    return buffer[start : start + size].reshape(*shape)


def allocate(record: type[Any], shapes: dict[str, tuple[int, ...]], width: int = 1) -> Any:
    """A record of zeroed arrays of the given shapes (lane axis not included)."""
    unknown = shapes.keys() - kinds(record).keys()
    assert not unknown, f"{record.__name__} has no {', '.join(sorted(unknown))}"  # else another shape would be theirs
    return record(**{name: zeros(shapes[name], kind, width) for name, kind in kinds(record).items()})


def table(records: Sequence[NamedTuple], width: int) -> NDArray[np.int64]:
    """Addresses and shapes of all arrays of all records, in order: the argument of a compiled entry.

    Raises:
        TypeError: an array does not match its annotation (a programming error, never a user's).
    """
    entries: list[int] = []
    for record in records:
        _add_entries(entries, record, width)
    return np.array(entries, np.int64)


def _add_entries(entries: list[int], record: Any, width: int) -> None:
    """Append a record's arrays to a table; for a bundle, those of its members, one after the other."""
    for (name, kind), value in zip(kinds(type(record)).items(), record, strict=True):
        if not isinstance(kind, Kind):
            if value is not None:
                _add_entries(entries, value, width)
            continue
        extra = 1 if kind.lanes and width > 1 else 0
        if value.dtype != kind.dtype or value.ndim != kind.ndim + extra or not _is_laid_out(value, kind):
            raise TypeError(f"{type(record).__name__}.{name}: {value.dtype}{value.shape} is not {kind}")
        entries.append(address_of(value))
        entries.extend(value.shape[: kind.ndim])


class _Interface(ctypes.Structure):
    """numpy's PyArrayInterface, up to the address of the first entry."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_size_t),
    )


_interface = ctypes.PYFUNCTYPE(ctypes.POINTER(_Interface), ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def address_of(values: Array) -> int:
    """The address of an array's first entry; a run asks for two thousand, and `__array_interface__` takes 2 µs each."""
    held = values.__array_struct__  # which owns the structure
    address: int = _interface(held, None).contents.data
    return address


def _is_laid_out(value: Array, kind: Kind) -> bool:
    """True if entries follow each other; of a lane, with a distance of WIDTH."""
    if not kind.in_lane:
        return bool(value.flags.c_contiguous)
    strides = accumulate(value.shape[:0:-1], lambda stride, extent: stride * extent, initial=8 * WIDTH)
    return value.strides == tuple(strides)[::-1] or value.size == 0


def places_of(record: type[Any], end: int) -> dict[str, tuple[int, np.dtype[Any], int]]:
    """For each array of a record without lanes, the place of its entries in a table that ends with the record at `end`,
    its dtype and number of axes."""
    fields = {name: kind for name, kind in kinds(record).items() if isinstance(kind, Kind)}
    starts = accumulate((1 + kind.ndim for kind in fields.values()), initial=0)
    places = dict(zip(fields, starts, strict=False))
    start = end - sum(1 + kind.ndim for kind in fields.values())
    return {
        name: (start + places[name], np.dtype(kind.dtype), kind.ndim) for name, kind in fields.items() if not kind.lanes
    }


def is_of(record: Any, member: Member) -> bool:
    """True if a record is of the declared class, for bundles with all members: None where none is declared."""
    if record is None or member is None:
        return record is None and member is None
    alike, members = _compared(type(record), member)
    return alike and all(is_of(getattr(record, name), kind) for name, kind in members)


def _compared(given: type[Any], declared: type[Any]) -> tuple[bool, list[tuple[str, Member]]]:
    """True if two classes of records have the same arrays in the same order, and the declared members of a bundle."""
    if (given, declared) not in _COMPARED:
        own, wanted = kinds(given), kinds(declared)
        arrays = {name: kind for name, kind in wanted.items() if isinstance(kind, Kind)}
        alike = tuple(wanted) == given._fields and all(own[name] == kind for name, kind in arrays.items())
        members = [(name, kind) for name, kind in wanted.items() if name not in arrays]
        _COMPARED[given, declared] = alike, members
    return _COMPARED[given, declared]
