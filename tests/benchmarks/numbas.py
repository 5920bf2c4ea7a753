"""The oldest and the newest numba that pyproject.toml allows: the numbers of a few runs by the kernels of each.

    python -m tests.benchmarks.numbas [--versions VERSION …] [--only PATTERN …]

Cases of same_bytes.py, of an arm and of a robot in contact, run here and in an environment for each version: numba and
what it needs installed over the packages of this one, kernels compiled anew. Versions of LLVM may round otherwise, so
numbers are compared within 1e-8 of each array's largest. A version that the registry lacks for this Python is left out,
as is the one at hand; a line says so. Ends with exit code 1 when numbers differ or a run fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

import numba
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CASES = ("run/arm7/newton/driven", "run/quadruped/newton/driven")
CLOSE = 1e-8  # of the largest number of an array
COUNTS = {"solver_iterations", "solver_residual"}  # which rounding changes as it likes


def main() -> None:
    """Run the cases here and with each version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="+", metavar="VERSION", help="as pip takes them: ==0.62.1, <0.66")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", default=CASES, help="names of cases, or parts of them")
    words = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        runs(Path(sys.executable), words.only, folder / "here")
        for number, version in enumerate(words.versions or bounds()):
            other = environment(folder / str(number), version)
            if other is not None:
                failed |= differs(other, words.only, folder / "here", folder / f"{number}-arrays")
    sys.exit(failed)


def bounds() -> tuple[str, str]:
    """The oldest and the newest numba of pyproject.toml, as pip takes them."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (package,) = (package for package in packages if package.startswith("numba"))
    oldest, newest = package.removeprefix("numba>=").split(",")
    return f"=={oldest}", newest


def environment(folder: Path, version: str) -> Path | None:
    """The Python of an environment with another numba; None if there is none, or it is the one at hand."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "this.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    wanted = "--upgrade", f"numba{version}", "numpy"
    done = subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"numba{version}: cannot be installed here: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    found = told(python, "import numba; print(numba.__version__)")
    if found == numba.__version__:
        print(f"numba{version}: {found}, the one at hand", flush=True)
        return None
    return python


def differs(python: Path, cases: list[str], here: Path, there: Path) -> bool:
    """True if a run with another numba fails or its numbers are not those of `here`; tells the largest difference."""
    about = told(python, "import numba, numpy; print('numba', numba.__version__, 'numpy', numpy.__version__)")
    failed = runs(python, cases, there)
    worst, where = 0.0, "no array"
    for path in sorted(here.glob("*.npz")):
        with np.load(path) as ours, np.load(there / path.name) as theirs:
            if not ours.files or ours.files != theirs.files:
                worst, where = np.inf, f"{path.stem}: other arrays"
            for name in {*ours.files} & {*theirs.files} - COUNTS:
                worst, where = max((worst, where), (difference(ours[name], theirs[name]), f"{path.stem}: {name}"))
    aside = told(python, "from artsim.sim.foundation.compiler import slower; print(slower())")
    print(f"{about}: largest difference {worst:.1e}, {where}{aside and ', ' + aside}", flush=True)
    return failed or worst > CLOSE


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:  # type: ignore[type-arg]
    """The largest difference of two arrays, as a part of the largest number."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return np.inf
    apart = ~((ours == theirs) | ((ours != ours) & (theirs != theirs)))  # infinite and missing ones may be the same
    if not apart.any() or ours.dtype.kind != "f":
        return np.inf if apart.any() else 0.0
    return float(np.abs(ours[apart] - theirs[apart]).max() / max(1.0, np.abs(ours[np.isfinite(ours)]).max()))


def runs(python: Path, cases: list[str], arrays: Path) -> bool:
    """Run cases of same_bytes.py into a folder of arrays; True if that fails."""
    words = "--write", str(arrays.with_suffix(".json")), "--arrays", str(arrays), "--only", *cases
    return bool(subprocess.run([python, "-m", "tests.benchmarks.same_bytes", *words], cwd=ROOT, env=paths()).returncode)


def told(python: Path, code: str) -> str:
    return subprocess.run(
        [python, "-c", code], cwd=ROOT, env=paths(), capture_output=True, text=True, check=True
    ).stdout.strip()


def paths() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src")}


if __name__ == "__main__":
    main()
