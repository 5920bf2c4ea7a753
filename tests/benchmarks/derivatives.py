"""Derivatives of dynamics beside Pinocchio's: packs on one thread, a C++ loop, and its calls from Python.

    python -m tests.benchmarks.derivatives [robots/*.urdf] [--rows N] [--rounds N]

All write all derivatives of each row, by rows. The loop is that of batch.py, compiled on this machine's processor; its
values are compared with ours for robots on a fixed base (those on a free one by tests/quantities/test_derivatives.py,
since their tangents differ). What a call from Python takes beside the computation is the difference of the two columns.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from artsim.loaders.load import load_articulation
from artsim.sim.quantities.catalogue import GROUPS
from artsim.sim.quantities.robot import Robot
from tests.benchmarks.batch import Conventions, Peer, UnavailableError, in_turns, load_library
from tests.conftest import ROOT

PEERS = {
    "inverse_dynamics_derivatives": "computeRNEADerivatives",
    "forward_dynamics_derivatives": "computeABADerivatives",
    "gravity_derivative": "computeGeneralizedGravityDerivatives",
}
ROBOTS = (("arm7", "fixed"), ("chain20", "fixed"), ("two_finger_gripper", "fixed"), ("quadruped", "floating"))
TOLERANCE = 1e-7  # accelerations of chain20 hold to 1e-9


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", type=Path, help="URDF files, on a fixed base")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    robots = [(path, "fixed") for path in arguments.robots]
    robots = robots or [(ROOT / "robots" / f"{name}.urdf", base) for name, base in ROBOTS]
    try:
        library = load_library()
    except UnavailableError as error:
        raise SystemExit(str(error)) from None
    columns = f"{'ours':>9} {'C++ loop':>9} {'ratio':>6} {'from Python':>11} [us per row]"
    print(f"{'robot':19} {'dofs':>4} {'derivatives':29} {columns}")
    for path, base in robots:
        time_robot(path, base, library, arguments)


def time_robot(path: Path, base: str, library: Any, arguments: argparse.Namespace) -> None:
    """The lines of one robot."""
    import pinocchio as pin

    robot = Robot.of(replace(load_articulation(path), base=base))  # type: ignore[arg-type]
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    c = Conventions(robot, model)
    first = [robot.labels.joint_dofs[name].start for name in c.names]
    armature = dict(zip([*model.names][1:], robot.model.armature[first].tolist(), strict=True))
    model.armature = robot.model.armature[c.dofs]
    peer = Peer(library, model, armature)
    rng = np.random.default_rng(0)
    rows = arguments.rows
    q = np.array([pin.integrate(model, pin.neutral(model), step) for step in rng.uniform(-1, 1, (rows, model.nv))])
    v, a = rng.normal(size=(2, rows, model.nv))
    for quantity, way in PEERS.items():
        parts = GROUPS.get(quantity, (quantity,))
        theirs = np.zeros((rows, len(parts), model.nv, model.nv))
        ours = robot.evaluation([quantity], threads=1)
        inputs, outputs = ours.allocate(rows)
        _fill(c, inputs, q, v, a)
        work: dict[str, Callable[[], Any]] = {
            "ours": partial(ours.bound(inputs, outputs), rows),
            "peer": partial(peer.run, way, q, v, a, theirs),
            "python": partial(_from_python, getattr(pin, way), model, (q, v, a), len(parts)),
        }
        taken = {name: statistics.median(each) / rows * 1e6 for name, each in in_turns(work, arguments.rounds).items()}
        if base == "fixed":
            _compare(c, parts, outputs, theirs)
        ratio = taken["peer"] / taken["ours"]
        print(
            f"{path.stem:19} {model.nv:4} {quantity:29} {taken['ours']:9.3f} {taken['peer']:9.3f} {ratio:6.1f} "
            f"{taken['python']:11.3f}",
            flush=True,
        )
    peer.close()


def _fill(c: Conventions, inputs: dict[str, Any], q: Any, v: Any, a: Any) -> None:
    """The same states in our order; on a free base the same components of velocity, which mean another motion there."""
    if c.floating:
        q = q[:, [0, 1, 2, 6, 3, 4, 5, *range(7, q.shape[1])]]
    slices = [c.robot.labels.joint_coords[name] for name in c.names]
    coords = [k for part in slices for k in range(part.start, part.stop)]
    for name, values in inputs.items():
        values[:, coords if name == "qpos" else c.dofs] = {"qpos": q, "qvel": v}.get(name, a)


def _from_python(function: Callable[..., Any], model: Any, given: tuple[Any, ...], parts: int) -> None:
    data = model.createData()
    for row in zip(*(given if parts > 1 else given[:1]), strict=True):
        function(model, data, *row)


def _compare(c: Conventions, parts: tuple[str, ...], outputs: dict[str, Any], theirs: Any) -> None:
    """End the program where values differ."""
    for part, name in enumerate(parts):
        ours, expected = outputs[name][: len(theirs)][:, c.dofs][..., c.dofs], theirs[:, part]
        error = np.abs(ours - expected).max() / np.abs(expected).max()
        if not error < TOLERANCE:
            raise SystemExit(f"{c.robot.articulation.name}, {name}: differs by {error:.1e}")


if __name__ == "__main__":
    main()
