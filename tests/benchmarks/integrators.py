"""Orders of the integrators, by errors against a run whose steps are chosen by their error; and what a step costs.

    python -m tests.benchmarks.integrators [--only NAME …] [--cost]

Errors are the largest of the coordinates after 0.4 s [rad or m]. The reference is of --accuracy 1e-9, by Dormand and
Prince's pair. --cost prints instead what a step costs [µs], without friction and near no limit, of robots of robots/.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import artsim
from tests.stepping.test_implicit_steps import CASES

PENDULUM = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".05" pos=".5 0 0"/>
  <body pos=".5 0 0"><joint name="b" axis="0 1 0"/><geom size=".04" pos=".4 0 0"/></body></body></worldbody></mujoco>"""
MODELS: dict[str, tuple[str, dict[str, Any]]] = {"double pendulum": (PENDULUM, {})} | CASES
INTEGRATORS = ("midpoint", "semi-implicit-euler", "rk4", "implicit-midpoint", "generalized-alpha", "implicit-euler")
STEPS = (100, 200, 400, 800)
SECONDS = 0.4
COSTS = ("double_pendulum", "arm7", "chain20", "quadruped")


def loaded(text: str) -> artsim.Robot:
    """The robot of a model's text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(text)
        return artsim.load(path)


def errors(robot: artsim.Robot, integrator: str, exact: Any, options: dict[str, Any]) -> list[float]:
    """The largest error of a coordinate at the end, for each number of steps."""
    ends = (
        artsim.simulate(robot, steps=n, dt=SECONDS / n, integrator=integrator, contacts=False, **options) for n in STEPS
    )
    return [float(np.abs(run.final["qpos"] - exact).max()) for run in ends]


def tables(only: list[str]) -> None:
    """Print a line per model and integrator."""
    heads = " ".join(f"{f'{SECONDS / n * 1e3:g} ms':>8}" for n in STEPS)
    print(f"{'model':16} {'integrator':20} {heads}   orders")
    for name, (text, options) in MODELS.items():
        if only and name not in only:
            continue
        robot = loaded(text)
        exact = artsim.simulate(robot, steps=40, dt=SECONDS / 40, accuracy=1e-9, contacts=False, **options).final[
            "qpos"
        ]
        for integrator in INTEGRATORS:
            found = errors(robot, integrator, exact, options)
            orders = ", ".join(f"{math.log2(a / max(b, 1e-300)):.2f}" for a, b in itertools.pairwise(found))
            print(f"{name:16} {integrator:20} {' '.join(f'{e:8.1e}' for e in found)}   {orders}", flush=True)


def costs() -> None:
    """Print a line per robot and integrator: the least of five times, by the number of steps."""
    print(f"{'robot':16} {'integrator':20} {'µs/step':>8}")
    for name in COSTS:
        loose = {"lower_limit": {"*": -1e6}, "upper_limit": {"*": 1e6}, "joint_friction": {"*": 0.0}}
        robot = artsim.load(Path("robots") / f"{name}.urdf")
        for integrator in INTEGRATORS:
            options: dict[str, Any] = {"integrator": integrator, "contacts": False, "record": ("qpos",), "every": 100}
            taken = []
            for _ in range(5):
                began = time.perf_counter()
                artsim.simulate(robot, steps=1000, dt=0.002, **loose, **options)
                taken.append(time.perf_counter() - began)
            print(f"{name:16} {integrator:20} {min(taken) * 1e3:8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="models")
    parser.add_argument("--cost", action="store_true", help="what a step costs")
    given = parser.parse_args()
    if given.cost:
        costs()
    else:
        tables(given.only)


if __name__ == "__main__":
    main()
