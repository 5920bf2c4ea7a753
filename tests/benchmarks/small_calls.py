"""`robot.compute` from Python beside Pinocchio's Python interface: `python tests/benchmarks/small_calls.py [MODEL …]`.

MODEL: a URDF of one-dof joints; default: robots/arm7.urdf and robots/quadruped.urdf on a fixed base. Microseconds of a
call, for 1 to 20000 rows: Pinocchio's function in a Python loop over the rows (a call each, results of Jacobians
fetched joint by joint as Python users do), and rneaInParallel with as many threads as ours. `out=`: the results are
written to arrays given by the caller. Values are compared first. All are timed in turns by the wall clock, and CPU time
of the process stands beside it (it counts every thread, also those of OpenMP that wait in a loop): on a machine that
others use too, minima and CPU time say more than medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import artsim
from artsim.sim.foundation.apart import available_cores
from artsim.sim.quantities.robot import Robot

Array = np.ndarray[Any, np.dtype[np.float64]]
ROBOTS = Path(__file__).parents[2] / "robots"
SIZES = (1, 10, 100, 1000, 20000)
INPUTS = {"gravity": 1, "inverse_dynamics": 3, "mass_matrix": 1, "jacobian": 1}  # quantities: qpos, qvel and qacc
SECONDS = 0.02  # that a sample takes at least: short calls are repeated within it
Call = Callable[[], Any]


class Times(NamedTuple):
    """Microseconds of a call: least and median of the samples, and the least of the process's CPU time."""

    least: float
    median: float
    cpu: float


class Peer:
    """A robot in Pinocchio, with tables whose columns are the configurations."""

    def __init__(self, path: Path, robot: Robot, armature: Array) -> None:
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        slices = [robot.labels.joint_dofs[name] for name in self.model.names[1:]]
        self.dofs = [k for part in slices for k in range(part.start, part.stop)]
        if self.model.nq != self.model.nv or len(self.dofs) != robot.nv:
            raise SystemExit(f"{path}: has joints of another kind than one dof, or couplings")
        self.model.armature = armature[self.dofs]
        children = {joint.name: joint.child for joint in robot.articulation.joints}
        self.links = [robot.links.index(children[name]) for name in self.model.names[1:]]

    def loop(self, quantity: str, given: Sequence[Array]) -> list[Any]:
        """Its Python function for every row."""
        return [self.one(quantity, *row) for row in zip(*given, strict=True)]

    def one(self, quantity: str, *row: Array) -> Any:
        """Its Python function for one row."""
        if quantity == "gravity":
            return pin.computeGeneralizedGravity(self.model, self.data, *row)
        if quantity == "inverse_dynamics":
            return pin.rnea(self.model, self.data, *row)
        if quantity == "mass_matrix":
            return pin.crba(self.model, self.data, *row)
        pin.computeJointJacobians(self.model, self.data, *row)
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        return [pin.getJointJacobian(self.model, self.data, j, frame) for j in range(1, self.model.njoints)]

    def ours(self, quantity: str, values: Array) -> Array:
        """Our results of rows, in its order of links and dofs."""
        values = values[..., self.dofs]
        if quantity == "mass_matrix":
            return values[:, self.dofs]
        return values[:, self.links] if quantity == "jacobian" else values


def compare(robot: Robot, peer: Peer, given: Sequence[Array]) -> None:
    """End the program where the values of some rows differ."""
    for quantity, count in INPUTS.items():
        ours = robot.compute(*given[:count], quantities=[quantity], at="origin")[quantity]
        theirs = [
            np.triu(values) + np.triu(values, 1).T if quantity == "mass_matrix" else np.array(values)
            for values in peer.loop(quantity, [np.ascontiguousarray(table[:, peer.dofs]) for table in given[:count]])
        ]
        error = np.abs(peer.ours(quantity, ours) - np.array(theirs)).max() / np.abs(np.array(theirs)).max()
        if not error < 1e-10:
            raise SystemExit(f"{quantity}: differs from Pinocchio's by {error:.1e}")


def in_turns(work: Mapping[str, Call], samples: int) -> dict[str, Times]:
    """The times of each call."""
    counts = {name: max(1, int(SECONDS / max(_clocked(call, 1)[0], 1e-9))) for name, call in work.items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for turn in range(samples + 1):
        for name, call in work.items():
            sample = _clocked(call, counts[name])
            if turn:
                taken[name].append(sample)
    return {
        name: Times(
            min(wall for wall, _ in sample) * 1e6,
            statistics.median(wall for wall, _ in sample) * 1e6,
            min(cpu for _, cpu in sample) * 1e6,
        )
        for name, sample in taken.items()
    }


def _clocked(call: Call, count: int) -> tuple[float, float]:
    """Seconds per call, by the wall clock and of the process's CPU time."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count


def calls(robot: Robot, peer: Peer, quantity: str, tables: Sequence[Array], threads: int) -> dict[str, Call]:
    """What is timed for some rows; a table of one row is given as a configuration."""
    rows = len(tables[0])
    given = [table[0] if rows == 1 else table for table in tables]
    theirs = [np.ascontiguousarray(table[:, peer.dofs]) for table in tables]
    ours = partial(robot.compute, *given, quantities=[quantity], threads=threads if rows > 1 else None)
    work: dict[str, Call] = {"ours": ours, "out=": partial(ours, out=ours())}
    work["loop"] = (
        partial(peer.one, quantity, *(t[0] for t in theirs)) if rows == 1 else partial(peer.loop, quantity, theirs)
    )
    if quantity == "inverse_dynamics" and rows > 1:
        pool = pin.ModelPool(peer.model, threads)
        columns = [np.asfortranarray(table.T) for table in theirs]
        found = np.zeros((robot.nv, rows), order="F")
        work["parallel"] = partial(pin.rneaInParallel, threads, pool, *columns, found)
    return work


def report(path: Path, threads: int, samples: int) -> None:
    """The table of a robot."""
    robot = artsim.load(path)
    peer = Peer(path, robot, np.asarray(robot.model.armature))
    rng = np.random.default_rng(0)
    given = [rng.uniform(-1.0, 1.0, (SIZES[-1], robot.nv)) for _ in range(3)]
    compare(robot, peer, [table[:64] for table in given])
    print(f"\n{path.stem}: {robot.nv} dofs, {len(robot.links)} links; {threads} threads; µs: least / median / CPU")
    for quantity, count in INPUTS.items():
        for rows in SIZES:
            times = in_turns(calls(robot, peer, quantity, [table[:rows] for table in given[:count]], threads), samples)
            line = f"{quantity:17s}{rows:6d}"
            for name, t in times.items():
                line += f"  {name} {t.least:.1f} / {t.median:.1f} / {t.cpu:.1f}"
            line += f"  loop ÷ out= {times['loop'].least / times['out='].least:.1f}"
            if "parallel" in times:
                by_cpu = times["parallel"].cpu / times["out="].cpu
                ratios = [times["parallel"].least / times[name].least for name in ("ours", "out=")]
                line += f"  parallel ÷ ours, out= {ratios[0]:.1f}, {ratios[1]:.1f} (by CPU {by_cpu:.1f})"
            print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, default=[ROBOTS / "arm7.urdf", ROBOTS / "quadruped.urdf"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, available_cores()])
    parser.add_argument("--samples", type=int, default=15)
    arguments = parser.parse_args()
    print(f"Pinocchio {pin.__version__}, numpy {np.__version__}; load {os.getloadavg()[0]:.1f}")
    for path in arguments.models:
        for threads in dict.fromkeys(arguments.threads):
            report(path, threads, arguments.samples)


if __name__ == "__main__":
    main()
