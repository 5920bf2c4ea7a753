"""Boxes held between two pads by friction: how far they slip over a grid, and the margin at which they let go.

    python -m tests.benchmarks.grasps

Pads of 1 to 16 contacts, boxes of 0.01 to 10 kg, squeezed 1.2 to 5 times as hard as friction needs, at rest and shaken
at 10 Hz, half as fast as the margin allows. The goal is a slip of 1e-6 m. Then bisection finds the squeeze at which a
box lets go, over that of Coulomb's law: 1 within 1 %.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time

import numpy as np

from artsim.loaders.load import load_text
from tests.benchmarks.cases import following
from tests.contact.test_contact_closed_forms import G
from tests.contact.test_stuck import gripper
from tests.simulation import simulate

GOAL = 1e-6  # [m]
MASSES = (0.01, 0.1, 1.0, 10.0)  # [kg]
MARGINS = (1.2, 1.5, 2.0, 3.0, 5.0)
FRICTIONS = (0.3, 0.8, 1.5)
STEPS = (1e-3, 4e-3)  # [s]
SECONDS, RATE = 0.5, 20.0 * math.pi  # [s], [rad/s]


def balls(rows: int, columns: int) -> str:
    """A pad of as many balls in a rectangle of 30 mm."""
    places = [np.linspace(-0.015, 0.015, count) if count > 1 else np.zeros(1) for count in (rows, columns)]
    return "".join(
        f'<geom type="sphere" size=".01" pos="0 {y} {z}"/>'
        for y, z in itertools.product(*map(np.ndarray.tolist, places))
    )


PADS = {
    "1 ball": balls(1, 1),
    "2 balls": balls(2, 1),
    "capsule": '<geom type="capsule" size=".01" fromto="0 -.015 0 0 .015 0"/>',
    "flat": '<geom type="box" size=".01 .015 .015"/>',
    "6 balls": balls(3, 2),
    "9 balls": balls(3, 3),
    "16 balls": balls(4, 4),
}


def slip(pad: str, mass: float, margin: float, friction: float, dt: float, *, shaken: bool) -> float:
    """How far the box moves against the hand, of which pads push so many times as hard as friction needs [m]."""
    squeeze = margin * mass * G / (2.0 * friction)
    times = dt * np.arange(round(SECONDS / dt))
    height = 0.5 * (margin - 1.0) * G / RATE**2 if shaken else 0.0
    run = simulate(
        load_text(gripper(PADS[pad], mass, friction), name="grasp.xml"),
        controls=following("lift", height * (1.0 - np.cos(RATE * times))),
        contacts=True,
        steps=len(times),
        dt=dt,
        torque={"l": squeeze, "r": -squeeze},
        stiffness={"lift": 1e7},
        damping={"lift": 1e5},
        target={"lift": 0.0},
        record=("qpos",),
    )
    coords = run.plan.robot.coords
    fall = run["qpos"][:, coords.index("box.z")] - run["qpos"][:, coords.index("lift")]
    return float(np.abs(fall - fall[0]).max())


def critical(pad: str, mass: float, friction: float, dt: float) -> float:
    """The margin at which the box lets go, to 0.2 %."""
    low, high = 0.5, 1.5
    while high - low > 2e-3:
        middle = 0.5 * (low + high)
        if slip(pad, mass, middle, friction, dt, shaken=False) <= GOAL:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{'pad':10} {'runs':>5} {'slip m':>9} {'shaken m':>9} {'beyond':>7} {'lets go at':>18} {'s':>6}")
    for pad in PADS:
        start = time.perf_counter()
        cases = list(itertools.product(MASSES, MARGINS, FRICTIONS, STEPS))
        still = np.array([slip(pad, *case, shaken=False) for case in cases])
        shaken = np.array([slip(pad, *case, shaken=True) for case in cases])
        found = [
            critical(pad, mass, friction, dt) for mass, friction, dt in itertools.product(MASSES, FRICTIONS, STEPS)
        ]
        beyond = int((still > GOAL).sum() + (shaken > GOAL).sum())
        print(
            f"{pad:10} {2 * len(cases):5d} {still.max():9.1e} {shaken.max():9.1e} {beyond:7d} "
            f"{min(found):8.4f} to {max(found):.4f} {time.perf_counter() - start:6.1f}",
            flush=True,
        )
        for values, name in ((still, "still"), (shaken, "shaken")):
            for case, value in zip(cases, values, strict=True):
                if value > GOAL:
                    print(
                        f"    {name}: {case[0]} kg, margin {case[1]}, friction {case[2]}, dt {case[3]}: {value:.1e} m"
                    )


if __name__ == "__main__":
    main()
