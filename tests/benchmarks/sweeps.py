"""How near the sweeping solvers come to the exact velocities of a step, sweep by sweep, in three scenes hard for them.

    python -m tests.benchmarks.sweeps [--most 1024]

The PhysX guide's finger (drive, limit and contact with friction compete), its chain of a stiff drive and a mimic joint,
and twenty rods held by drives against a weight of 1000 times their mass. Drives are dampers that are worth hK, so that
all solvers have the same law. Figures are max|v - v_brute| [rad/s] after one step; newton's is the check of brute's.
`shards` is block-gs with split masses, which is no solver here: of each scene's K, as recorded, the last column
tells by which factor an iteration shrinks the slowest error, for Gauss-Seidel joint by joint and with shards.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import artsim
from tests.simulation import Array, robot_file

COUNTS = (1, 4, 16, 64, 256, 1024)
SOLVERS: dict[str, dict[str, Any]] = {
    "pgs": {},
    "tgs": {},
    "tgs, errors over the sub-step": {"solver": "tgs", "error_step": "sub-step"},
    "block-gs": {},
    "jacobi": {},
    "jacobi, relaxed by 0.2": {"solver": "jacobi", "mass_splitting": False, "relaxation": 0.2},
}


class Scene(NamedTuple):
    """A robot and the settings of a step."""

    robot: str
    settings: dict[str, Any]


def damper(stiffness: float, damping: float, way: float, dt: float) -> dict[str, float]:
    """What a drive is worth as a damper in one step of implicit Euler: its gain and the velocity it aims at."""
    total = damping + dt * stiffness
    return {"damping": total, "target_velocity": stiffness * way / total}


def scenes() -> dict[str, Scene]:
    """The three scenes; joints as the files name them."""
    dt = 1 / 240
    finger = {name: {"proximal_joint": value} for name, value in damper(1e4, 1e2, 1.5 - 0.4662, dt).items()}
    chain = {name: {"joint_1": value} for name, value in damper(1e6, 1e3, 0.5, dt).items()}
    rods = artsim.load(robot_file("chain20")).dofs
    bent = {name: 0.02 * (1 + n % 3) for n, name in enumerate(rods)}
    return {
        "finger": Scene(
            "finger", {"dt": dt, "ground": True, "ground_friction": 0.5, "q0": {"proximal_joint": 0.4662}, **finger}
        ),
        "stiff chain": Scene("stiff_drive_chain", {"dt": dt, "coupling": "rows", **chain}),
        "1:1000": Scene("chain20", {"dt": 0.002, "q0": bent, "damping": dict.fromkeys(rods, 1e4)}),
    }


def velocities(scene: Scene, solver: str, **given: Any) -> Array:
    """After one step (nv,)."""
    robot = artsim.load(robot_file(scene.robot))
    run = artsim.simulate(robot, steps=1, record=("qvel",), **{"solver": solver, **scene.settings, **given})
    found: Array = run.final["qvel"]
    return found


def errors(scene: Scene, solver: str, settings: dict[str, Any], most: int) -> list[float]:
    """By number of sweeps, against brute's velocities [rad/s]."""
    want = velocities(scene, "brute")
    given = {"solver": solver, **settings}
    found = [velocities(scene, **given, iterations=count) for count in COUNTS if count <= most]
    return [float(np.abs(v - want).max()) for v in found]


def radii(scene: Scene) -> tuple[float, float]:
    """Factors of the slowest error, all rows free: Gauss-Seidel by joints, and all joints at once with shards."""
    settings = {**scene.settings, "solver": "block-gs"}
    run = artsim.simulate(artsim.load(robot_file(scene.robot)), steps=1, record=("delassus",), **settings)
    found = run.delassus(0)
    kept = [n for n, name in enumerate(found.names) if not name.endswith((".upper", ".lower"))]
    owners = [found.names[n].partition(":")[2].partition(".")[0] for n in kept]
    K = found.matrix[np.ix_(kept, kept)]
    same = np.array([[a == b for b in owners] for a in owners])
    shared = np.array([len({o for o, k in zip(owners, line, strict=True) if k}) for line in K != 0])
    order = np.arange(len(K))
    slowest = []
    for D in (np.where(same | (order[:, None] > order), K, 0.0), np.where(same, K, 0.0) * shared[:, None]):
        factors = np.abs(np.linalg.eigvals(np.eye(len(K)) - np.linalg.pinv(D) @ K))
        slowest.append(float(factors[factors < 1 - 1e-9].max(initial=0.0)))  # 1: impulses that move nothing
    return slowest[0], slowest[1]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1024, help="sweeps")
    most = parser.parse_args().most
    counts = [count for count in COUNTS if count <= most]
    print(f"{'scene':12} {'solver':30}", *(f"{count:>8}" for count in counts))
    for name, scene in scenes().items():
        exact = velocities(scene, "newton") - velocities(scene, "brute")
        print(f"{name:12} {'newton':30} {np.abs(exact).max():8.0e}")
        for solver, settings in SOLVERS.items():
            print(f"{'':12} {solver:30}", *(f"{error:8.1e}" for error in errors(scene, solver, settings, most)))
        by_turns, by_shards = radii(scene)
        print(f"{'':12} slowest error per sweep: block-gs {by_turns:.6f}, with shards {by_shards:.6f}", flush=True)


if __name__ == "__main__":
    main()
