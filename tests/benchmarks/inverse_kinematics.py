"""`robot.ik` on reachable poses, alone and beside mink and Pinocchio: `python -m tests.benchmarks.inverse_kinematics`.

Poses are those of drawn configurations within the limits; of the excavator, whose cylinders close two loops, of drawn
configurations of its joints. `--rows` poses of each robot are looked for with restarts, on one thread; told are the
share that is reached, poses per second, starts and iterations per pose. Results are judged by `compute`, limits by the
model, loops by `open_loops`.

Beside: `--beside` poses from one start each, the same for all, and 50 iterations: mink's solve_ik with daqp (limits as
constraints), and the damped loop of Pinocchio's example inverse-kinematics.py, with coordinates clamped to the limits.
ur5.urdf and panda.urdf are looked for in `--models DIR`; what is not there is skipped, as is mink where it is not
installed.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import artsim
from artsim.io.inputs.sampling import open_samples
from artsim.loaders.load import load_text
from artsim.sim.equipment.build_loops import open_loops
from artsim.sim.quantities.robot import Robot
from tests.ik.ik_models import EXCAVATOR, MIMIC_ARM, SCARA
from tests.ik.test_ik import closed_excavator
from tests.simulation import ROBOTS

Array = np.ndarray[Any, np.dtype[np.float64]]
LIMIT = 1e-6  # [m, rad]
ITERATIONS = 50


def robots(models: Path | None) -> Iterator[tuple[str, Robot, str, str]]:
    """Name, robot, link and URDF text of each."""
    for name, link in (("ur5", "tool0"), ("panda", "panda_link8")):
        path = None if models is None else models / f"{name}.urdf"
        if path is not None and path.is_file():
            yield name, artsim.load(path, meshes=False), link, path.read_text()
    text = (ROBOTS / "arm7.urdf").read_text()
    yield "arm7", artsim.load(ROBOTS / "arm7.urdf"), "link_7", text
    for name, text, link in (("mimic arm", MIMIC_ARM, "right"), ("scara", SCARA, "tool")):
        yield name, Robot.of(load_text(text, name="robot.urdf")), link, text
    yield "excavator", Robot.of(load_text(EXCAVATOR, name="robot.xml")), "tooth", ""


def drawn(robot: Robot, rows: int, seed: int) -> Array:
    """Configurations within the limits."""
    if robot.articulation.loops:
        return closed_excavator(robot, rows)
    q = np.empty((rows, robot.nq))
    open_samples(robot.model, robot.labels, ("qpos",), robot.links, rows=rows, seed=seed).read(0, rows, {"qpos": q})
    return q


def wanted(robot: Robot, q: Array, link: str) -> tuple[Array, Array]:
    """Positions and quaternions of a link."""
    found = robot.compute(q, quantities=["link_pose"], links=[link])
    return found["link_position"][:, 0], found["link_quaternion"][:, 0]


def misses(robot: Robot, q: Array, link: str, position: Array, quaternion: Array) -> Array:
    """The larger of the errors [m, rad] of configurations; infinite beyond a limit."""
    p, r = wanted(robot, q, link)
    sign = np.sign((r * quaternion).sum(axis=1))[:, None]
    error = np.maximum(np.linalg.norm(p - position, axis=1), 2 * np.linalg.norm(r * sign - quaternion, axis=1))
    for k, coord in enumerate(robot.model.dof_coord):
        if coord >= 0:
            beyond = (q[:, coord] < robot.model.lower[k] - 1e-9) | (q[:, coord] > robot.model.upper[k] + 1e-9)
            error[beyond] = np.inf
    return error


def alone(name: str, robot: Robot, link: str, rows: int) -> None:
    """Look for all poses with restarts."""
    position, quaternion = wanted(robot, drawn(robot, rows, 1), link)
    robot.ik(link, position[:64], quaternion[:64], threads=1)
    began = time.perf_counter()
    found = robot.ik(link, position, quaternion, threads=1)
    seconds = time.perf_counter() - began
    error = misses(robot, found["qpos"], link, position, quaternion)
    reached = found["status"] == 0
    wrong = int(np.count_nonzero(reached & ~(error < 1.01 * LIMIT)))
    missed = int(np.count_nonzero(~reached))
    told = (
        f"{name:10} {rows:8} poses: {100 * reached.mean():.4f} % reached ({missed} not), {rows / seconds:,.0f} poses/s"
    )
    told += f", {found['attempts'].mean():.2f} starts, {found['iterations'].mean():.1f} iterations; {wrong} told wrong"
    if "constraint_error" in found and robot.equipped is not None:
        some = found["qpos"][:: max(1, rows // 2000)]
        gap = max(max(open_loops(robot.model, robot.equipped, q, 0.0).values(), default=0.0) for q in some)
        told += f"; loops open by {found['constraint_error'].max():.1e}, of {len(some)} by numpy {gap:.1e}"
    print(told, flush=True)


def beside(name: str, robot: Robot, link: str, text: str, rows: int) -> None:
    """Look for some poses from one start each, by all that are there."""
    start = drawn(robot, rows, 2)
    position, quaternion = wanted(robot, drawn(robot, rows, 3), link)
    calls = {
        "artsim": lambda: robot.ik(
            link, position, quaternion, start=start, attempts=1, iterations=ITERATIONS, threads=1
        )["qpos"],
        "pinocchio": lambda: by_pinocchio(robot, text, link, start, position, quaternion),
        "mink": lambda: by_mink(robot, text, link, start, position, quaternion),
    }
    robot.ik(link, position[:64], quaternion[:64], start=start[:64], attempts=1, iterations=ITERATIONS, threads=1)
    for which, call in calls.items():
        began = time.perf_counter()
        try:
            q = call()
        except ImportError:
            continue
        seconds = time.perf_counter() - began
        error = misses(robot, q, link, position, quaternion)
        share = float((error < 1.01 * LIMIT).mean())
        print(
            f"{name:10} {which:10} {100 * share:6.2f} % of {rows} from one start, {rows / seconds:10,.0f} poses/s",
            flush=True,
        )


def by_pinocchio(robot: Robot, text: str, link: str, start: Array, position: Array, quaternion: Array) -> Array:
    """The loop of Pinocchio's example, its step clamped to the limits."""
    model = pin.buildModelFromXML(text)
    data, frame = model.createData(), model.getFrameId(link)
    place = [robot.coords.index(name) for name in model.names[1:]]
    found = start.copy()
    for row in range(len(start)):
        q = start[row, place].copy()
        goal = pin.SE3(pin.Quaternion(*quaternion[row]).normalized(), position[row])
        for _ in range(ITERATIONS):
            pin.framesForwardKinematics(model, data, q)
            away = data.oMf[frame].actInv(goal)
            error = pin.log(away).vector
            if np.linalg.norm(error[:3]) < LIMIT and np.linalg.norm(error[3:]) < LIMIT:
                break
            J = pin.Jlog6(away.inverse()) @ pin.computeFrameJacobian(model, data, q, frame)
            step = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
            q = np.clip(pin.integrate(model, q, step), model.lowerPositionLimit, model.upperPositionLimit)
        found[row, place] = q
    return found


def by_mink(robot: Robot, text: str, link: str, start: Array, position: Array, quaternion: Array) -> Array:
    """mink's loop: a task of the frame, limits of positions, steps of one second."""
    import mink  # type: ignore[import-not-found]
    import mujoco

    bare = re.sub(r"<(visual|collision)\b.*?</\1>|<(visual|collision)\b[^>]*/>", "", text, flags=re.S)
    bare = re.sub(
        r"(<robot\b[^>]*>)", r'\1<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco>', bare, count=1
    )
    bare = re.sub(r"<(transmission|gazebo)\b.*?</\1>", "", bare, flags=re.S)
    model = mujoco.MjModel.from_xml_string(bare)
    place = [robot.coords.index(model.joint(k).name) for k in range(model.njnt)]
    configuration, limits = mink.Configuration(model), [mink.ConfigurationLimit(model)]
    task = mink.FrameTask(link, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
    found = start.copy()
    for row in range(len(start)):
        configuration.update(start[row, place])
        task.set_target(mink.SE3(np.concatenate([quaternion[row], position[row]])))
        for _ in range(ITERATIONS):
            error = task.compute_error(configuration)
            if np.linalg.norm(error[:3]) < LIMIT and np.linalg.norm(error[3:]) < LIMIT:
                break
            try:
                velocity = mink.solve_ik(configuration, [task], 1.0, "daqp", damping=1e-12, limits=limits)
            except mink.exceptions.MinkError:
                break
            configuration.integrate_inplace(velocity, 1.0)
        found[row, place] = configuration.q
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="folder with ur5.urdf and panda.urdf")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--beside", type=int, default=1000)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, robot, link, text in robots(chosen.models):
        if chosen.only in name:
            if chosen.rows:
                alone(name, robot, link, chosen.rows)
            if chosen.beside and text and not re.search('<mimic|"continuous"', text):
                beside(name, robot, link, text, chosen.beside)


if __name__ == "__main__":
    main()
