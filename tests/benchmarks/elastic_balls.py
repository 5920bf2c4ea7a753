"""216 balls that bounce in a box, under gravity and without: processor seconds per 1000 steps, and the energy.

python -m tests.benchmarks.elastic_balls
"""

from __future__ import annotations

import time

from tests.contact.test_impacts import boxed, play

CASES = (  # gravity [m/s²], friction, restitution, step [s]
    (0.0, 0.0, 1.0, 0.001),
    (0.0, 0.0, 1.0, 0.004),
    (9.81, 0.0, 1.0, 0.001),
    (9.81, 0.0, 1.0, 0.004),
    (9.81, 0.5, 1.0, 0.001),
    (9.81, 0.5, 0.8, 0.001),
    (9.81, 0.0, 0.8, 0.001),
)
STEPS = 1000


def main() -> None:
    print("gravity friction    e   ms  cpu s  most contacts  Newton steps  residual  energy: most, last, of the first")
    for gravity, friction, e, dt in CASES:
        text, v0 = boxed(6, gravity, friction, 0)
        play(text, 2 * dt, dt, e, v0)
        start = time.process_time()
        record = ("energy", "solver_iterations", "solver_residual")
        run = play(text, STEPS * dt, dt, e, v0, record=record, check=False)
        spent = time.process_time() - start
        energy = run["energy"].sum(axis=1)
        print(
            f"{gravity:7.2f} {friction:8.1f} {e:4.1f} {1e3 * dt:4.0f} {spent:6.2f} "
            f"{run.simulation.contact_extremes[0]:14d} {run['solver_iterations'].mean():13.1f} "
            f"{run['solver_residual'].max():9.1e} {energy.max() / energy[0]:8.4f} {energy[-1] / energy[0]:8.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
