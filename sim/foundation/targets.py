"""Processors that kernels are compiled for: levels of instruction sets, not single models; the level of this one.

Kernels of one level compute the same bytes on every processor that has the level, wherever they were compiled. The
levels of x86-64 are those of its System V ABI (supplement for AMD64, 3.1.1); 64-bit Arm is one level. On other
processors code is made for the very processor. ARTSIM_LEVEL asks for a lower level than the processor's.
"""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from artsim.sim.foundation.errors import UsageError, nearest

NATIVE = "native"  # the very processor
_VARIABLE = "ARTSIM_LEVEL"


class Target(NamedTuple):
    """LLVM's parameters for the code of a level; `flags`: those in /proc/cpuinfo of a processor that has the level;
    `blas` and `beyond`: OpenBLAS's core of the level, and the groups of instructions above it that numpy would use.
    """

    triple: str
    cpu: str
    features: str = ""
    flags: frozenset[str] = frozenset()
    blas: str = ""
    beyond: str = ""


def _x86_64(level: str, flags: str, blas: str, beyond: str, features: str = "") -> Target:
    return Target("x86_64-unknown-linux-gnu", level, features, frozenset(flags.split()), blas, beyond)


_V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
_V3 = _V2 + " abm avx avx2 bmi1 bmi2 f16c fma movbe"
_V4 = _V3 + " avx512f avx512bw avx512cd avx512dq avx512vl"
_ABOVE_V4 = "AVX512_ICL AVX512_SPR AVX512_CLX AVX512_CNL AVX512_KNL AVX512_KNM"
_ABOVE_V3 = f"X86_V4 AVX512F AVX512CD AVX512_SKX {_ABOVE_V4}"
_ABOVE_V2 = f"X86_V3 AVX F16C FMA3 FMA4 XOP AVX2 {_ABOVE_V3}"
# the best first. Packs are as wide as a register of 512 bits, which LLVM otherwise spares for old processors' sake
LEVELS = {
    "x86-64-v4": _x86_64("x86-64-v4", _V4, "SkylakeX", _ABOVE_V4, "-prefer-256-bit"),
    "x86-64-v3": _x86_64("x86-64-v3", _V3, "Haswell", _ABOVE_V3),
    "x86-64-v2": _x86_64("x86-64-v2", _V2, "Nehalem", _ABOVE_V2),
    "aarch64": Target(
        "aarch64-unknown-linux-gnu", "generic", "+neon", blas="ARMV8", beyond="ASIMDDP ASIMDFHM ASIMDHP SVE"
    ),
}
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def level() -> str:
    """The level of the kernels that this process uses: the best one of its processor, or that of ARTSIM_LEVEL.

    Raises:
        UsageError: ARTSIM_LEVEL is no level, or the processor does not have it.
    """
    return _level(os.environ.get(_VARIABLE, ""))


@cache
def _level(wanted: str) -> str:
    best = next(filter(_is_had, LEVELS), NATIVE)
    if not wanted:
        return best
    if wanted not in (*LEVELS, NATIVE):
        raise UsageError(f"{_VARIABLE} {wanted!r}: want one of {', '.join(LEVELS)}{nearest(wanted, LEVELS)}")
    if not has_level(wanted):
        raise UsageError(f"{_VARIABLE} {wanted}: this processor has {best}")
    return wanted


def settle_libraries(name: str) -> dict[str, str]:
    """Have numpy and its OpenBLAS compute on this processor as on every one of a level, by variables that they read
    when they are imported; loaders and `compile_model` use them. Returns those that were not set before.
    """
    if name not in LEVELS:
        return {}
    wanted = {"OPENBLAS_CORETYPE": LEVELS[name].blas, "NPY_DISABLE_CPU_FEATURES": LEVELS[name].beyond}
    chosen = {variable: value for variable, value in wanted.items() if variable not in os.environ}
    os.environ.update(chosen)
    return chosen


@contextmanager
def at_level(name: str) -> Iterator[None]:
    """Use kernels of a level, in child processes too, if the processor has it."""
    before = os.environ.get(_VARIABLE)
    if has_level(name):
        os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE, None)
        if before is not None:
            os.environ[_VARIABLE] = before


def has_level(name: str) -> bool:
    """True if this processor runs kernels of a level, which may be unknown."""
    return name == NATIVE or (name in LEVELS and _is_had(name))


def _is_had(name: str) -> bool:
    """True if this processor has a level."""
    target = LEVELS[name]
    if target.triple.partition("-")[0] != _ARCHITECTURES.get(platform.machine().lower()):
        return False
    return target.flags <= _flags()


@cache
def _flags() -> frozenset[str]:
    """The processor's instruction sets, by Linux's names."""
    flags = about_processor().get("flags")
    if flags is not None:
        return frozenset(flags.split())
    names = {"sse4.1": "sse4_1", "sse4.2": "sse4_2", "sahf": "lahf_lm", "lzcnt": "abm", "bmi": "bmi1"}
    had = (feature[1:] for feature in _of_llvm()[1].split(",") if feature.startswith("+"))
    return frozenset(names.get(feature, feature) for feature in had)


@cache
def about_processor() -> dict[str, str]:
    """Linux's report on the first core. LLVM reports the same facts, but takes 20 ms to import."""
    about: dict[str, str] = {}
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        for line in itertools.takewhile(str.strip, lines):
            name, _, value = line.partition(":")
            about[name.strip()] = value.strip()
    return about


def processor() -> str:
    """The processor's name."""
    return about_processor().get("model name") or _of_llvm()[0]


def described(name: str) -> str:
    """The stamp of kept code of a level: the level, or all that is known of the very processor."""
    if name != NATIVE:
        return name
    about = about_processor()
    if "flags" not in about:
        return " ".join(_of_llvm())
    return "; ".join(about.get(key, "") for key in ("vendor_id", "cpu family", "model", "flags"))


def machine_for(name: str) -> Any:
    """LLVM's code generation for a level, which needs not be one that this processor has."""
    import llvmlite.binding as llvm

    cpu, features = _of_llvm() if name == NATIVE else LEVELS[name][1:3]
    if name == NATIVE or _is_had(name):  # as objects of this system
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(LEVELS[name].triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


@cache
def _of_llvm() -> tuple[str, str]:
    """Name and features of the processor, as reported by LLVM."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
