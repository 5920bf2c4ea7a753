"""Fingers that a stiff drive presses onto the ground: limits, penetration and the balance of forces over a grid.

    python -m tests.benchmarks.fingers [--only newton] [--list]

Fingers of two and three joints, friction 0 to 5, K from 1e1 to 1e8 N m/rad, D = 0, K/1000 and K/100, 60 Hz to 1 kHz;
half a second each. The tip's height comes from the chain's geometry, the balance is |M qacc + bias - sum tau| over the
largest force of the run, by the recorded M and bias. The goals are 1e-9 rad, 1e-9 m and 1e-9; `--list` names the runs
beyond them.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from tests.contact.test_stuck import BALANCE, RADIUS, SOLVERS, finger, imbalance
from tests.simulation import robot_file, simulate, source_text

GOAL = 1e-9  # [rad], [m] and of the largest force
SECONDS = 0.5
FRICTIONS = (0.0, 0.2, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0)
STIFFNESSES = tuple(10.0**k for k in range(1, 9))
DAMPINGS = (0.0, 1e-3, 1e-2)  # [s] D / K
STEPS = (1 / 60, 1 / 240, 1 / 500, 1e-3)
PART = (0.0, 0.5, 1.2, 5.0), STIFFNESSES, DAMPINGS, (1 / 60, 1 / 240, 1e-3)  # for solvers other than newton


class Chain(NamedTuple):
    """A finger: link lengths and the height of its base [m], its driven joint, and its URDF by friction."""

    lengths: tuple[float, ...]
    height: float
    joint: str

    def text(self, friction: float) -> str:
        if self.joint == "proximal_joint":
            return source_text(robot_file("finger")).replace("<mu1>0.5</mu1>", f"<mu1>{friction}</mu1>")
        return finger(self.lengths, friction)


CHAINS = {
    "robots/finger.urdf": Chain((0.1, 0.1), 0.1, "proximal_joint"),
    "two joints": Chain((0.1, 0.1), 0.075, "j0"),
    "three joints": Chain((0.1, 0.08, 0.06), 0.105, "j0"),
}


class Figures(NamedTuple):
    """Of one run: limit violation [rad], depth [m], the forces' imbalance over the largest force."""

    limit: float
    depth: float
    audit: float


def measure(chain: Chain, friction: float, stiffness: float, damping: float, dt: float, solver: str) -> Figures:
    run = simulate(
        chain.text(friction),
        ground=True,
        ground_friction=friction,
        target={chain.joint: 1.5},
        stiffness={chain.joint: stiffness},
        damping={chain.joint: stiffness * damping},
        dt=dt,
        steps=round(SECONDS / dt),
        solver=solver,
        record=("qpos", "qvel", *BALANCE),
    )
    q = np.vstack([run["qpos"], run.simulation.qpos])
    heights = chain.height - np.sin(np.cumsum(q, axis=1)) @ np.array(chain.lengths) - RADIUS
    return Figures(max(0.0, -q[:, 1:].min()), max(0.0, -heights.min()), imbalance(run))


def sweep(solver: str, listed: bool) -> None:
    """One row of the table per finger."""
    grid = (FRICTIONS, STIFFNESSES, DAMPINGS, STEPS) if solver == "newton" else PART
    for name, chain in CHAINS.items():
        start = time.perf_counter()
        results: dict[tuple[float, ...], Figures] = {
            case: measure(chain, case[0], case[1], case[2], case[3], solver) for case in itertools.product(*grid)
        }
        seconds = time.perf_counter() - start
        worst = np.array(list(results.values())).max(axis=0)
        beyond = {case: figures for case, figures in results.items() if max(figures) > GOAL}
        print(
            f"{solver:12} {name:20} {len(results):5d} {worst[0]:10.1e} {worst[1]:10.1e} {worst[2]:10.1e} "
            f"{len(beyond):7d} {seconds:7.1f}",
            flush=True,
        )
        if listed:
            for case, figures in beyond.items():
                show(case, figures)


def show(case: tuple[float, ...], figures: Figures) -> None:
    friction, stiffness, damping, dt = case
    print(
        f"    mu {friction} K {stiffness:.0e} D/K {damping} dt {dt:.5f}: {figures.limit:.1e} rad, "
        f"{figures.depth:.1e} m, {figures.audit:.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SOLVERS)
    parser.add_argument("--list", action="store_true", help="name the runs beyond the goal")
    given: Any = parser.parse_args()
    columns = "".join(f"{name:>11}" for name in ("limit rad", "depth m", "audit"))
    print(f"{'solver':12} {'finger':20} {'runs':>5}{columns} {'beyond':>7} {'s':>7}")
    for solver in (given.only,) if given.only else SOLVERS:
        sweep(solver, given.list)


if __name__ == "__main__":
    main()
