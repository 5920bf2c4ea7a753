"""Random histories of robots side by side in packs, each against a robot for itself that is given the same.

    python -m tests.benchmarks.vector_fuzz MODEL [--seeds 1 2 3] [--robots 12] [--calls 160] [--law convex] [--record]

Steps with random controls, resets, other masses, centres, frictions and gravities, snapshots, and torques that make
some robots stop. A line per seed: ok, or the first call after which a robot's bytes differ from those of the robot for
itself, and whether they are those of a simulation that was just made and restored there (if not, something outlasts
a call that is not in snapshots).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artsim

_CALLS = ("step", "wild", "reset", "vary", "save", "restore")
_SHARES = (0.6, 0.08, 0.16, 0.1, 0.03, 0.03)
_STATES = ("qpos", "qvel", "activation", "steps", "status")


class Side(NamedTuple):
    """The robots beside each other, or each for itself."""

    simulations: list[artsim.VectorSimulation]

    def call(self, name: str, **given: Any) -> None:
        """Call a method with rows of robots, those of each simulation."""
        first = 0
        for simulation in self.simulations:
            own = slice(first, first + len(simulation))
            first += len(simulation)
            getattr(simulation, name)(**{k: v[own] if isinstance(v, np.ndarray) else v for k, v in given.items()})

    def reset(self, chosen: Any, qvel: Any) -> None:
        """Reset the chosen robots (n,) with velocities (n, nv)."""
        first = 0
        for simulation in self.simulations:
            own = slice(first, first + len(simulation))
            first += len(simulation)
            simulation.reset(chosen[own], qvel=qvel[own][chosen[own]])

    def of(self, name: str) -> Any:
        """An array of all robots."""
        return np.concatenate([getattr(simulation, name) for simulation in self.simulations])


def main() -> None:
    """Print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--law", default="")
    parser.add_argument("--record", action="store_true")
    for name, value in (("robots", 12), ("calls", 160)):
        parser.add_argument(f"--{name}", type=int, default=value)
    words = parser.parse_args()
    robot = artsim.load(words.model)
    options = options_of(robot, words.model, words.law) | ({"record": ("qacc",)} if words.record else {})
    for seed in words.seeds:
        print(f"{words.model.stem} {seed}: {history(robot, options, seed, words.robots, words.calls)}", flush=True)


def options_of(robot: artsim.Robot, path: Path, law: str = "") -> dict[str, Any]:
    """The settings of the robots: on the ground with drives where a URDF has neither."""
    options: dict[str, Any] = {"contact_law": law} if law else {}
    if robot.articulation.keyframes:
        options["keyframe"] = robot.articulation.keyframes[0].name
    if path.suffix == ".urdf":
        options |= {"base": "floating", "ground": True, "on_ground": 0.0, "stiffness": 60.0, "damping": 2.0}
    return options


def history(robot: artsim.Robot, options: dict[str, Any], seed: int, n: int, calls: int) -> str:
    """Take one history of n robots; the words about it, which begin with "ok" if all are their own."""
    rng = np.random.default_rng(seed)
    made = artsim.VectorSimulation(robot, n, threads=2, **options)
    beside, apart = Side([made]), Side([artsim.VectorSimulation(robot, 1, threads=1, **options) for _ in range(n)])
    sides, nv, links = (beside, apart), made.robot.nv, len(made.robot.links)
    stance = made._fleet.inputs[made._action][0, : len(made._names[made._action])].copy()
    kept = [[one.save() for one in side.simulations] for side in sides]
    for k in range(calls):
        what = str(rng.choice(_CALLS, p=_SHARES))
        given: dict[str, Any] = {}
        before = made.save()
        if what in ("step", "wild"):
            given["action"] = stance + rng.choice([0.05, 0.5, 2.0]) * rng.normal(size=(n, len(stance)))
            given["steps"] = int(rng.integers(1, 12))
            given["torque"] = np.where(rng.random((n, 1)) < 0.2 * (what == "wild"), 1e190, 0.0) * np.ones((n, nv))
        elif what == "vary":
            given = {"mass": rng.uniform(0.7, 1.3, (n, links)), "centre": 0.01 * rng.normal(size=(n, links, 3))}
            given["gravity"] = rng.uniform(0.5, 1.2, (n, 1)) * np.array([0.0, 0.0, -9.81])
            if made._plan.touching is not None:
                given["friction"] = rng.uniform(0.3, 1.5, n)
        chosen, speed = rng.random(n) < 0.3, 0.3 * rng.normal(size=(n, nv))
        if len(made.robot.model.coupling_follower):  # which would not move as their leaders do
            speed[:] = 0.0
        for side, saved in zip(sides, kept, strict=True):
            if given:
                side.call("vary" if what == "vary" else "step", **given)
            elif what == "reset":
                side.reset(chosen, speed)
            elif what == "save":
                saved[:] = [one.save() for one in side.simulations]
            else:
                for one, snapshot in zip(side.simulations, saved, strict=True):
                    one.restore(snapshot)
        for name in _STATES:
            ours, truth = beside.of(name), apart.of(name)
            if odd := [i for i in range(n) if ours[i].tobytes() != truth[i].tobytes()]:
                return f"call {k} ({what}): {name} of robots {odd}, {_told(made, before, given, ours, truth, options)}"
    return f"ok, {np.count_nonzero(beside.of('status'))} have stopped"


def _told(made: artsim.VectorSimulation, before: Any, given: Any, ours: Any, truth: Any, options: Any) -> str:
    """By how much numbers differ, and whether a simulation that was just made finds them."""
    apart = np.nanmax(np.abs(ours.astype(float) - truth))
    if "action" not in given:
        return f"by {apart:.1e}"
    fresh = artsim.VectorSimulation(made.robot, len(made), threads=2, **options)
    fresh.restore(before)
    fresh.step(**given)
    alike = all(getattr(fresh, name).tobytes() == getattr(made, name).tobytes() for name in _STATES)
    return f"by {apart:.1e}, {'as' if alike else 'unlike'} a simulation that was just made"


if __name__ == "__main__":
    main()
