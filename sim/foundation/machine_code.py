"""Puts kept machine code into memory without LLVM, whose import and linker take 45 ms of a start.

Objects in LLVM's large code model for x86-64, its model for code compiled at run time, refer to every place by its full
address: the sections are laid out one after the other and the addresses written in, one kind of relocation (file
format: System V ABI, chapter 4, and its supplement for AMD64, 4.4). Everything else is left to LLVM's linker.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[Any]

_BEGINNING = b"\x7fELF\x02\x01"  # 64 bits, little endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8  # kinds of sections
_WRITE, _ALLOC = 1, 2  # flags of sections
_ADDRESS = 1  # R_X86_64_64: symbol's address + addend, 8 bytes

_FILE = np.dtype({"names": ["kind", "machine", "offset", "number"], "formats": ["<u2", "<u2", "<u8", "<u2"],
                  "offsets": [16, 18, 40, 60], "itemsize": 64})  # fmt: skip
_SECTION = np.dtype("<u4, <u4, <u8, <u8, <u8, <u8, <u4, <u4, <u8, <u8")
_SECTION.names = ("name", "kind", "flags", "address", "offset", "size", "link", "info", "align", "entry")
_SYMBOL = np.dtype("<u4, u1, u1, <u2, <u8, <u8")
_SYMBOL.names = ("name", "info", "other", "section", "value", "size")
_RELOCATION = np.dtype("<u8, <u4, <u4, <i8")
_RELOCATION.names = ("place", "kind", "symbol", "addend")


def put_into_memory(code: bytes, symbol: str, external: Callable[[str], int]) -> tuple[int, object] | None:
    """Return the address of `symbol`, and the object that keeps its memory; `external` gives the addresses of names
    from elsewhere, or 0.

    Returns None where the object is of an unsupported kind, or a name is unknown.
    """
    if os.name != "posix" or len(code) < _FILE.itemsize or not code.startswith(_BEGINNING):
        return None
    head = np.frombuffer(code, _FILE, 1)[0]
    if (head["kind"], head["machine"]) != (_RELOCATABLE, _X86_64):
        return None
    sections = np.frombuffer(code, _SECTION, int(head["number"]), int(head["offset"]))
    loaded = (sections["flags"] & _ALLOC != 0) & (sections["kind"] == _PROGBITS)
    relocations = [(int(s["info"]), _entries(code, s, _RELOCATION)) for s in sections if s["kind"] == _RELA]
    relocations = [(section, table) for section, table in relocations if loaded[section]]
    if np.any(sections["flags"] & _WRITE) or np.any(sections["kind"] == _NOBITS):
        return None
    if any(np.any(table["kind"] != _ADDRESS) for _, table in relocations):
        return None
    offsets, size = _lay_out(sections, loaded)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for section, offset in zip(sections[loaded], offsets[loaded], strict=True):
        memory[offset : offset + int(section["size"])] = _bytes(code, section)
    names, addresses = _symbols(code, sections, base + offsets, external)
    used = {int(index) for _, table in relocations for index in np.unique(table["symbol"])}
    if any(names[index] and addresses[index] == 0 for index in used):
        return None
    image = np.frombuffer(memory, np.uint8)
    for section, table in relocations:
        places = (offsets[section] + table["place"].astype(np.int64))[:, None] + np.arange(8)
        image[places] = (addresses[table["symbol"]] + table["addend"])[:, None].view(np.uint8)
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        return None
    return int(addresses[names.index(symbol)]), memory


def _bytes(code: bytes, section: Any) -> bytes:
    start = int(section["offset"])
    return code[start : start + int(section["size"])]


def _entries(code: bytes, section: Any, kind: np.dtype[Any]) -> Table:
    return np.frombuffer(_bytes(code, section), kind)


def _lay_out(sections: Table, loaded: Table) -> tuple[NDArray[np.int64], int]:
    """Offsets of the sections in memory, 0 for those not loaded, and the total size."""
    offsets = np.zeros(len(sections), np.int64)
    end = 0
    for index in np.flatnonzero(loaded):
        align = max(int(sections["align"][index]), 1)
        offsets[index] = -(-end // align) * align
        end = int(offsets[index] + sections["size"][index])
    return offsets, end


def _symbols(
    code: bytes, sections: Table, places: NDArray[np.int64], external: Callable[[str], int]
) -> tuple[list[str], NDArray[np.int64]]:
    """Names and addresses of the symbols, in order."""
    table = next(section for section in sections if section["kind"] == _SYMTAB)
    symbols = _entries(code, table, _SYMBOL)
    texts = _bytes(code, sections[table["link"]])
    names = [texts[start : texts.index(0, start)].decode() for start in symbols["name"].tolist()]
    section = symbols["section"]
    inside = (section > 0) & (section < len(sections))
    addresses = np.where(inside, places[np.where(inside, section, 0)] + symbols["value"].astype(np.int64), 0)
    for index in np.flatnonzero((section == 0) & (symbols["name"] > 0)):
        addresses[index] = external(names[index])
    return names, addresses
