"""Machine code put into memory without LLVM: what it computes, and which objects are left to LLVM."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from artsim.sim.foundation import jit, machine_code
from artsim.sim.foundation.compiler import compiled
from artsim.sim.foundation.records import WIDTH, table
from artsim.sim.foundation.targets import level
from tests.foundation.small_entries import entry, make_table

pytestmark = pytest.mark.skipif(
    jit.disabled() or jit._checked() or platform.machine() != "x86_64" or sys.platform != "linux",
    reason="kept objects of x86-64, as Linux has them",
)
Kept = tuple[str, list[str], bytes]
PLACES = {"kind": 16, "machine": 18, "sections": 40}  # in an object's header


@pytest.fixture(scope="module", params=[1, WIDTH])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Kept]:
    """The width and the object of the entry `sines`."""
    width: int = request.param
    jit_entry = entry("sines", "tests.foundation.small_kernels")
    return width, compiled(jit_entry, width, [level()])[level()]


def sines(address: int, width: int) -> np.ndarray:
    """What the code at an address computes."""
    values = make_table(100, width)
    values.angle.reshape(-1)[:] = np.linspace(-9.0, 9.0, values.angle.size)
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)(table([values], width).ctypes.data)
    return np.stack([values.sine, values.cosine])


def test_the_same_as_linked_by_llvm(kept: tuple[int, Kept]) -> None:
    width, (symbol, needed, code) = kept
    made = machine_code.put_into_memory(code, symbol, jit._external)
    assert made is not None
    by_llvm, engine = jit._linked_by_llvm(symbol, needed, code)
    ours = sines(made[0], width)
    assert np.array_equal(ours, sines(by_llvm, width))
    angle = np.linspace(-9.0, 9.0, ours[0].size)
    assert np.allclose(ours.reshape(2, -1), [np.sin(angle), np.cos(angle)], rtol=0, atol=1e-14)
    del engine


def test_its_memory_cannot_be_written_any_more(kept: tuple[int, Kept]) -> None:
    _, (symbol, _, code) = kept
    made = machine_code.put_into_memory(code, symbol, jit._external)
    assert made is not None
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(word, 16) for word in line.split()[0].split("-"))
        if first <= made[0] < last:
            assert line.split()[1] == "r-xp"


def changed(place: int, form: str, value: int) -> Callable[[bytes], bytes]:
    def change(code: bytes) -> bytes:
        new = bytearray(code)
        struct.pack_into(form, new, place, value)
        return bytes(new)

    return change


def section_changed(kind: int, place: int, form: str, value: int) -> Callable[[bytes], bytes]:
    """A field of the first section of a kind, or of its first entry."""

    def change(code: bytes) -> bytes:
        start = struct.unpack_from("<Q", code, PLACES["sections"])[0]
        while struct.unpack_from("<I", code, start + 4)[0] != kind:
            start += 64
        if place < 0:
            start, at = struct.unpack_from("<Q", code, start + 24)[0], -place
        else:
            at = place
        return changed(start + at, form, value)(code)

    return change


OTHERS = {
    "not an object": lambda code: b"\x7fELF",
    "of macOS": lambda code: b"\xcf\xfa\xed\xfe" + code[4:],
    "a shared library": changed(PLACES["kind"], "<H", 3),
    "for ARM": changed(PLACES["machine"], "<H", 183),
    "data that can be written": section_changed(1, 8, "<Q", 3),
    "data of zeros": section_changed(1, 4, "<I", 8),
    "a relative address": section_changed(4, -8, "<I", 2),
}


@pytest.mark.parametrize("other", OTHERS)
def test_left_to_llvm(kept: tuple[int, Kept], other: str) -> None:
    _, (symbol, _, code) = kept
    assert machine_code.put_into_memory(OTHERS[other](code), symbol, jit._external) is None


def test_what_llvm_itself_asks_of_the_c_library() -> None:
    """`sincos`, which numba's module does not declare; of names that nobody has, the object is left to LLVM."""
    symbol, needed, code = compiled(entry("both", "tests.foundation.small_kernels"), 1, [level()])[level()]
    assert b"sincos" in code
    assert "sincos" not in needed
    made = machine_code.put_into_memory(code, symbol, jit._external)
    assert made is not None
    values = make_table(3, 1)
    angle = float(values.factor[0])
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(made[0])(table([values], 1).ctypes.data)
    assert values.plain[0] == pytest.approx(np.sin(angle) + 2.0 * np.cos(angle), rel=1e-15)
    assert machine_code.put_into_memory(code, symbol, lambda name: 0 if name == "sincos" else 1) is None
