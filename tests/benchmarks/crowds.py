"""Spheres poured into a box: what the solver leaves, and that a run says so.

    python -m tests.benchmarks.crowds [--counts 216 1000] [--seconds 1.5]

Each crowd runs by the command line, as a user would: what is left of the rows must be 1e-6 m/s at most, or the run
warns, tells in --json in how many steps and how much, and ends with exit code 3 under --strict.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RADIUS = 0.02
SOLVED = 1e-6  # [m/s]


def poured(count: int, friction: float) -> str:
    """So many spheres in columns above a box that is too narrow for them to lie side by side."""
    draw = np.random.default_rng(count)
    side = max(2, round((count / 2) ** (1 / 3)))
    pitch = 2.2 * RADIUS
    half = side * pitch / 2 + RADIUS / 4
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{-x * half} {-y * half} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    spheres = []
    for k in range(count):
        layer, place = divmod(k, side * side)
        x, y = (np.array(divmod(place, side)) - (side - 1) / 2) * pitch + draw.uniform(-0.05, 0.05, 2) * RADIUS
        spheres.append(
            f'<body pos="{float(x)!r} {float(y)!r} {RADIUS + (layer + 0.5) * pitch!r}"><freejoint/>'
            f'<geom type="sphere" size="{RADIUS}" mass=".03" condim="3"/></body>'
        )
    inside = f'<geom type="plane" size="1 1 1"/>{walls}{"".join(spheres)}'
    return f'<mujoco><default><geom friction="{friction} 0 0"/></default><worldbody>{inside}</worldbody></mujoco>'


def crowd(count: int, friction: float, dt: float, seconds: float) -> None:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.xml"
        path.write_text(poured(count, friction))
        options = [str(path), "--dt", str(dt), "--duration", str(seconds), "-o", str(Path(folder) / "run.h5")]
        start = time.perf_counter()
        told = artsim(*options, "--json")
        spent = time.perf_counter() - start
        plain = artsim(*options, "--force")
        strict = artsim(*options, "--force", "--strict")
    summary = json.loads(told.stdout)
    left, steps = summary["worst_solver_residual"], summary["unsolved_steps"]
    warned = "unsolved in" in plain.stderr
    right = strict.returncode == (3 if steps else 0) and warned == bool(steps) and (left <= SOLVED or steps > 0)
    print(
        f"{count:5d} spheres, friction {friction}, {1e3 * dt:.0f} ms: left {left:.1e} m/s, unsolved in {steps} of "
        f"{round(seconds / dt)} steps, {'warned of' if warned else 'no warning'}, --strict exits with "
        f"{strict.returncode}: {'as it should be' if right else 'WRONG'}; {spent:.0f} s",
        flush=True,
    )


def artsim(*options: str) -> subprocess.CompletedProcess[str]:
    """The command as typed, with room for matrices of 6000 degrees of freedom."""
    command = [sys.executable, "-m", "artsim", "run", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "ARTSIM_LIMITS": "2"}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[216, 1000])
    parser.add_argument("--seconds", type=float, default=1.5)
    given: Any = parser.parse_args()
    for count in given.counts:
        for friction in (0.0, 0.5):
            crowd(count, friction, 0.002, given.seconds)


if __name__ == "__main__":
    main()
