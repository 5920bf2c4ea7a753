"""Whether code of one level computes the same bytes on every processor that has the level.

    python -m tests.benchmarks.levels [--levels x86-64-v3 x86-64-v2] [--only PATTERN …] [--folder FOLDER]

For each level, the cases of same_bytes.py (--quick, or those of --only) run on this processor and then, with the
kernels that the former run compiled or found in a wheel, on an emulated one that has this level and no higher one
(qemu-x86_64; its package is qemu-user). Hashes of all arrays are compared. Of levels with different instructions, which
round otherwise, the array that differs most is named. Ends with exit code 1 when hashes differ within a level.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from artsim.sim.foundation import targets

EMULATED = {"x86-64-v3": "Haswell-noTSX", "x86-64-v2": "Nehalem"}
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run the cases at each level, here and emulated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", nargs="+", choices=EMULATED, default=list(EMULATED))
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="names of cases, or parts of them")
    parser.add_argument("--folder", type=Path, help="where hashes and arrays are kept")
    words = parser.parse_args()
    cases = ["--only", *words.only] if words.only else ["--quick"]
    emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    print(f"{targets.processor()}: {targets.level()}")
    differ = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = words.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        _same_bytes(targets.level(), [*cases, *_write(folder, targets.level())])
        for level in words.levels:
            _same_bytes(level, [*cases, *_write(folder, level)])
            _tell_largest_difference(folder, level)
            if emulator is None:
                print(f"{level}: no qemu-x86_64, so no other processor was tried")
                continue
            differ |= _same_bytes(level, [*cases, "--against", str(folder / f"{level}.json")], emulator)
    sys.exit(differ)


def _write(folder: Path, level: str) -> list[str]:
    return ["--write", str(folder / f"{level}.json"), "--arrays", str(folder / level)]


def _same_bytes(level: str, words: list[str], emulator: str = "") -> bool:
    """Run same_bytes.py at a level and print its last line; whether it failed."""
    environment = dict(os.environ) | {
        "ARTSIM_LEVEL": level,
        "OPENBLAS_CORETYPE": targets.LEVELS[level].blas,
        "NPY_DISABLE_CPU_FEATURES": targets.LEVELS[level].beyond,
    }
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.same_bytes", *words]
    if emulator:
        command = [emulator, "-cpu", EMULATED[level], *command]
        del environment["NPY_DISABLE_CPU_FEATURES"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    where = f"emulated {EMULATED[level]}" if emulator else "this processor"
    for line in (done.stdout.strip() or done.stderr.strip()[-2000:]).splitlines():
        print(f"{level}, {where}: {line}", flush=True)
    return done.returncode != 0


def _tell_largest_difference(folder: Path, level: str) -> None:
    """How much a level's arrays, but for what the solver left, part from those of this processor's own level, relative
    to an array's largest entry where that is more than 1.
    """
    own = targets.level()
    stored = [json.loads((folder / f"{name}.json").read_text()) for name in (own, level)]
    alike = sum(a == b for a, b in zip(*(list(each.values()) for each in stored), strict=True))
    worst, where = 0.0, ""
    for path in sorted((folder / own).glob("*.npz")):
        with np.load(path) as mine, np.load(folder / level / path.name) as others:
            for name in mine.files:
                a, b = mine[name], others[name]
                if a.dtype.kind != "f" or a.shape != b.shape or not a.size or name.startswith("solver_"):
                    continue
                apart = np.nanmax(np.abs(a - b)) / max(np.nanmax(np.abs(a)), 1.0)
                if apart > worst:
                    worst, where = float(apart), f"{path.stem} {name}"
    print(f"{level} and {own}: {alike} of {len(stored[0])} cases have the same bytes", end="")
    print(f", the others part by up to {worst:.2g} ({where})" if where else "", flush=True)


if __name__ == "__main__":
    main()
