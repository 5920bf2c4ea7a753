"""Energy where nothing dissipates: how far kinetic + potential + springs drift at three steps, and by which ratio.

    python -m tests.benchmarks.energy

Halving the step must divide the drift by 2 to the power of the integrator's order at least: 2 of the semi-implicit
step, 16 of RK4.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np

import artsim
from tests.loaders.test_mjcf_corners import CALM, ENERGETIC, SPRINGS, TENDONS, mjcf

PENDULUM = (
    '<body><joint axis="0 1 0"/><geom size=".05" pos=".5 0 0"/><body pos=".5 0 0"><joint axis="0 1 0"/>'
    '<geom size=".04" pos=".4 0 0"/></body></body>'
)
MODELS = {
    "double pendulum": mjcf(PENDULUM, CALM),
    "hinge spring 1 2 10": mjcf(SPRINGS["hinge"], CALM),
    "springs of a ball, a free body, tendons": mjcf(ENERGETIC, CALM, TENDONS),
}
STEPS = (4e-3, 2e-3, 1e-3)
SECONDS = 0.4
INTEGRATORS = {"midpoint": 1, "semi-implicit-euler": 1, "rk4": 4}


def drift(text: str, integrator: str, dt: float) -> float:
    """The largest change of the total energy within SECONDS [J]."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(text)
        robot = artsim.load(path)
    steps = round(SECONDS / dt)
    v0 = np.full(robot.nv, 0.5)
    run = artsim.simulate(robot, steps=steps, dt=dt, v0=v0, integrator=integrator, record=["energy"])
    total = np.asarray(run["energy"]).sum(axis=1)
    return float(np.abs(total - total[0]).max())


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{'model':42} {'integrator':20} {'4 ms':>9} {'2 ms':>9} {'1 ms':>9}   ratios (order)")
    for name, text in MODELS.items():
        for integrator, order in INTEGRATORS.items():
            found = [drift(text, integrator, dt) for dt in STEPS]
            ratios = ", ".join(f"{a / b:.3g}" for a, b in itertools.pairwise(found))
            figures = " ".join(f"{value:9.2e}" for value in found)
            print(f"{name:42} {integrator:20} {figures}   {ratios} ({2**order})", flush=True)


if __name__ == "__main__":
    main()
