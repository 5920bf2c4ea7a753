"""`robot.trajectory` on drawn way points, beside toppra: `python -m tests.benchmarks.trajectories --models DIR`.

`--count` trajectories in turn of arm7, of a gripper with mimics and, from `--models DIR`, of ur5.urdf and panda.urdf:
four way points each within the middle half of the limits, with a limit of acceleration and the file's velocities and
efforts. Told are the largest excess of a limit every 0.1 ms, judged by numpy from positions, velocities and
accelerations and by the inverse dynamics of `artsim batch` (with dampers and friction), the time beside toppra's of the
same spline on 1000 stretches, and the time of computing. Lines: as many straight lines of a tool in the robot's reach,
and by how much its frame leaves them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.batches.trajectory_files import write_trajectory
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.quantities.robot import Robot
from artsim.sim.quantities.trajectory import Trajectory
from artsim.sim.trajectories.curves import smooth
from tests.simulation import ROBOTS
from tests.trajectories.test_trajectories import random_points

ACCELERATION = 15.0


class Mover(NamedTuple):
    """A robot, its file, and the link of its tool; "": none."""

    robot: Robot
    file: Path
    link: str


def movers(models: Path | None) -> list[Mover]:
    """The robots that are there."""
    found = [(ROBOTS / "arm7.urdf", "link_7"), (ROBOTS / "two_finger_gripper.urdf", "")]
    if models is not None:
        found += [(models / "ur5.urdf", "tool0"), (models / "panda.urdf", "panda_link8")]
    return [Mover(artsim.load(file, meshes=False), file, link) for file, link in found if file.is_file()]


def excess(mover: Mover, found: Trajectory, folder: Path) -> float:
    """The largest share of a limit above 1."""
    robot, model, dt = mover.robot, mover.robot.model, found.time[1]
    q, v, a = found.qpos, found.qvel, found.qacc
    slope = np.abs(np.diff(q, axis=0) / dt - 0.5 * (v[1:] + v[:-1]))[:-1].max()
    assert slope < 10 * ACCELERATION * dt, "velocities are not those of positions"
    worst = 0.0
    for joint in robot.articulation.joints:
        if joint.name in robot.dofs and joint.velocity:
            worst = max(worst, np.abs(v[:, robot.dofs.index(joint.name)]).max() / joint.velocity)
    worst = max(worst, np.abs(a[:, model.independent_dof]).max() / ACCELERATION)
    rigid = batched(mover, found, folder)
    G = robot.compute(q[0], quantities=["coupling_matrix"])["coupling_matrix"]  # constant: mimics are linear
    force = ((rigid + model.damping * v + model.friction * np.sign(v)) @ G)[1:-1]
    return float(max(worst, (np.abs(force) / model.effort[model.independent_dof]).max())) - 1.0


def batched(mover: Mover, found: Trajectory, folder: Path) -> np.ndarray:
    """The inverse dynamics (rows, nv) of the trajectory's file by `artsim batch`."""
    given, computed = folder / "move.npz", folder / "torques.npz"
    given.unlink(missing_ok=True)
    write_trajectory(found, given, ("target",))
    words = ["batch", str(mover.file), "--no-meshes", "--input", str(given), "--compute", "inverse_dynamics"]
    result = CliRunner().invoke(cli, [*words, "-o", str(computed), "--force", "-q"])
    assert result.exit_code == 0, result.output
    with np.load(computed) as stored:
        return np.asarray(stored["inverse_dynamics"])


def theirs(robot: Robot, points: np.ndarray) -> float | None:
    """The duration of toppra's trajectory, None without the package, or where it finds none."""
    try:
        import toppra as ta
    except ImportError:
        return None
    ta.setup_logging("ERROR")
    model, columns = robot.model, robot.model.independent_dof
    joints = {joint.name: joint.velocity or 1e3 for joint in robot.articulation.joints}
    velocity = np.array([joints[robot.dofs[k]] for k in columns])
    y = points[:, model.dof_coord[columns]]
    path = ta.SplineInterpolator(smooth(y, velocity).knots, y, bc_type="natural")

    def forces(y: np.ndarray, u: np.ndarray, a: np.ndarray) -> np.ndarray:
        q, v = robot.to_full(y, u)
        full = np.zeros(robot.nv)
        full[columns] = a
        found = robot.compute(q, v, full, quantities=["inverse_dynamics"], reduced=True)["inverse_dynamics"]
        return np.asarray(found)

    effort = np.minimum(model.effort[columns], 1e6)
    between: Any = {"discretization_scheme": ta.constraint.DiscretizationType.Interpolation}
    bounds = np.tile([-ACCELERATION, ACCELERATION], (len(columns), 1))
    limits = [
        ta.constraint.JointVelocityConstraint(velocity),
        ta.constraint.JointAccelerationConstraint(bounds, **between),
        ta.constraint.JointTorqueConstraint(
            forces, np.stack([-effort, effort], axis=1), model.friction[columns], **between
        ),
    ]
    grid = np.linspace(0, path.duration, 1001)
    made = ta.algorithm.TOPPRA(limits, path, grid, solver_wrapper="seidel", parametrizer="ParametrizeConstAccel")
    found = made.compute_trajectory(0, 0)
    return None if found is None else float(found.duration)


def off_lines(robot: Robot, link: str, count: int) -> tuple[int, float]:
    """The number of lines that were followed, and the largest distance of the tool from one [m]."""
    generator, done, worst = np.random.default_rng(1), 0, 0.0
    for _ in range(20 * count):
        if done == count:
            break
        start = random_points(robot, 1, int(generator.integers(1 << 30)))[0]
        pose = robot.compute(start, quantities=["link_pose"], links=[link])
        a, turn = pose["link_position"][0], pose["link_quaternion"][0]
        b = a + generator.uniform(-0.25, 0.25, 3)
        options: Any = {"link": link, "quaternion": turn, "start": start, "from_start": True, "lines": True}
        try:
            found = robot.trajectory([b], max_acceleration=ACCELERATION, dt=1e-3, **options)
        except ArtsimError:
            continue  # out of reach
        done += 1
        place = robot.compute(found.qpos, quantities=["link_position"], links=[link])["link_position"][:, 0]
        along = (b - a) / np.linalg.norm(b - a)
        off = place - a - ((place - a) @ along)[:, None] * along
        worst = max(worst, float(np.linalg.norm(off, axis=1).max()))
    return done, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    those = movers(given.models)
    with tempfile.TemporaryDirectory() as folder:
        for n, mover in enumerate(those):
            count = given.count // len(those) + (n < given.count % len(those))
            print(line_of(mover, count, Path(folder)), flush=True)


def line_of(mover: Mover, count: int, folder: Path) -> str:
    """The results of a robot."""
    robot = mover.robot
    over, ratio, seconds, refused = [], [], 0.0, 0
    for seed in range(count):
        points = random_points(robot, 4, seed)
        began = time.perf_counter()
        try:
            found = robot.trajectory(points, max_acceleration=ACCELERATION, dt=1e-4)
        except ArtsimError as error:
            refused += 1
            print(f"  {robot.articulation.name} {seed}: {error}")
            continue
        seconds += time.perf_counter() - began
        over.append(excess(mover, found, folder))
        beside = theirs(robot, points)
        if beside is not None:
            ratio.append(found.duration / beside)
    told = f"{robot.articulation.name}: {len(over)} of {count}, {refused} refused; limits exceeded by up to"
    told += f" {max(over):.2g}; {seconds / len(over):.2g} s each"
    if ratio:
        told += f"; times toppra's: {min(ratio):.4f} to {max(ratio):.4f} of {len(ratio)}"
    if mover.link:
        lines, off = off_lines(robot, mover.link, count)
        told += f"; {lines} lines, straight to {off:.2g} m"
    return told


if __name__ == "__main__":
    main()
