"""`robot.ik` on reachable poses, alone and beside mink and Pinocchio: `python -m tests.benchmarks.inverse_kinematics`.

Poses are those of drawn configurations within the limits; of the excavator, whose cylinders close two loops, of drawn
configurations of its joints. `--rows` poses of each robot are looked for with restarts, on one thread; told are the
share that is reached, poses per second, starts and iterations per pose. Results are judged by `compute`, limits (also
of followers) by the model, mimics and loops by numpy.

Beside: `--beside` poses from one start each, the same for all, and 50 iterations: mink's solve_ik with daqp (limits as
constraints), and the damped loop of Pinocchio's example inverse-kinematics.py, with coordinates clamped to the limits.
Neither loop takes followers or closes loops. The UR5's poses are also found in closed form (Hawkins 2013).

Out of reach are `--far` poses of each robot beyond the sum of its links' lengths, by which the told distances are
judged, too; poses that a UR5 with narrowed limits cannot have, by all its closed forms; and points beyond a stretched
arm in the plane by 2e-6 m to 1 cm. Singular are poses of configurations in which joints are at 0 or at a limit.

ur5.urdf, panda.urdf and talos.urdf are looked for in `--models DIR`; what is not there is skipped, as is mink where it
is not installed.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
import xml.etree.ElementTree as ElementTree
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
from tests.benchmarks import ur5_closed_form
from tests.ik.ik_models import EXCAVATOR, MIMIC_ARM, SCARA, planar_arm
from tests.ik.test_ik import closed_excavator
from tests.simulation import ROBOTS

Array = np.ndarray[Any, np.dtype[np.float64]]
LIMIT = 1e-6  # [m, rad]
ITERATIONS = 50


def robots(models: Path | None) -> Iterator[tuple[str, Robot, str, str]]:
    """Name, robot, link and URDF text of each."""
    for name, link in (("ur5", "tool0"), ("panda", "panda_link8"), ("talos", "arm_left_7_link")):
        path = None if models is None else models / f"{name}.urdf"
        if path is not None and path.is_file():
            text = path.read_text() if name != "talos" else branch_of(path.read_text(), "torso_2_link", link)
            yield (
                f"{name}'s arm" if name == "talos" else name,
                Robot.of(load_text(text, name="robot.urdf", meshes=False)),
                link,
                text,
            )
    text = (ROBOTS / "arm7.urdf").read_text()
    yield "arm7", artsim.load(ROBOTS / "arm7.urdf"), "link_7", text
    for name, text, link in (("mimic arm", MIMIC_ARM, "right"), ("scara", SCARA, "tool")):
        yield name, Robot.of(load_text(text, name="robot.urdf")), link, text
    yield "excavator", Robot.of(load_text(EXCAVATOR, name="robot.xml")), "tooth", ""


def branch_of(text: str, root: str, link: str) -> str:
    """The URDF of the links from `root` to `link` alone."""
    robot = ElementTree.fromstring(text)
    joints = {
        joint.find("child").get("link"): joint for joint in robot.iter("joint") if joint.find("child") is not None
    }  # type: ignore[union-attr]
    kept, on_way = set[str](), [link]
    while on_way[-1] != root:
        joint = joints[on_way[-1]]
        kept.add(str(joint.get("name")))
        on_way.append(str(joint.find("parent").get("link")))  # type: ignore[union-attr]
    for each in [*robot]:
        named = each.get("name")
        if not ((each.tag == "joint" and named in kept) or (each.tag == "link" and named in on_way)):
            robot.remove(each)
    return ElementTree.tostring(robot, encoding="unicode")


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
    chord = np.linalg.norm(r * sign - quaternion, axis=1)
    error = np.maximum(np.linalg.norm(p - position, axis=1), 4 * np.arcsin(chord / 2))
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
    model = robot.model
    if len(model.coupling_follower):
        away = 0.0
        for follower, leader, polynomial in zip(
            model.coupling_follower, model.coupling_leader, model.coupling_polynomial, strict=True
        ):
            wish = np.polynomial.polynomial.polyval(found["qpos"][:, model.dof_coord[leader]], polynomial)
            away = max(away, float(np.abs(found["qpos"][:, model.dof_coord[follower]] - wish).max()))
        told += f"; followers off by {away:.1e}"
    if "constraint_error" in found and robot.equipped is not None:
        some = found["qpos"][:: max(1, rows // 2000)]
        gap = max(max(open_loops(robot.model, robot.equipped, q, 0.0).values(), default=0.0) for q in some)
        told += f"; loops open by {found['constraint_error'].max():.1e}, of {len(some)} by numpy {gap:.1e}"
    print(told, flush=True)


def told_of(name: str, kind: str, robot: Robot, link: str, poses: tuple[Array, Array], reachable: Any = None) -> None:
    """Look for poses and tell how many are reached, and of how many this is not so, or said so with a wrong distance.

    `reachable` (N,): which of them can be reached; None: not known.
    """
    position, quaternion = poses
    began = time.perf_counter()
    found = robot.ik(link, position, quaternion, threads=1)
    seconds = time.perf_counter() - began
    error = misses(robot, found["qpos"], link, position, quaternion)
    reached = found["status"] == 0
    claimed = np.maximum(found["position_error"], found["rotation_error"])
    wrong = (reached & ~(error < 1.01 * LIMIT)) | ~(np.abs(claimed - error) <= 0.05 * error + 1e-9)
    told = f"{name:12} {kind:24} {len(position):6} poses: {int(reached.sum())} reached, {int(wrong.sum())} told wrong"
    if reachable is not None:
        told += f"; of {int(reachable.sum())} that can be reached {int((reached & reachable).sum())}"
        told += f", of {int((~reachable).sum())} that cannot {int((reached & ~reachable).sum())}"
    print(f"{told}; {len(position) / seconds:,.0f} poses/s", flush=True)


def reach_of(robot: Robot, link: str) -> tuple[Array, float]:
    """A point and the distance from it that the link's origin does not exceed: the sum of the ways from joint to joint
    at the reference, and of the ranges of slides."""
    model, labels = robot.model, robot.labels
    body, bodies = int(model.link_body[labels.links.index(link)]), list[int]()
    while body > 0:
        bodies.append(body)
        body = int(model.body_parent[body])
    names = [labels.links[[*model.link_body].index(body)] for body in bodies[::-1]] + [link]
    place = robot.compute(robot.reference, quantities=["link_pose"], links=names)["link_position"]
    slides = [k for k in range(robot.nv) if model.dof_linear[k] and model.dof_body[k] in bodies]
    ways = np.linalg.norm(np.diff(place, axis=0), axis=1).sum()
    range_ = sum(float(max(abs(model.lower[k]), abs(model.upper[k]))) for k in slides)
    return place[0], float(ways) + range_


def out_of_reach(name: str, robot: Robot, link: str, rows: int) -> None:
    """Look for poses that are too far away, and for singular ones."""
    generator = np.random.default_rng(4)
    centre, reach = reach_of(robot, link)
    away = generator.normal(size=(rows, 3))
    away *= (reach * generator.uniform(1.001, 3.0, rows) / np.linalg.norm(away, axis=1))[:, None]
    q = drawn(robot, rows, 5)
    _, quaternion = wanted(robot, q, link)
    position = centre + away
    told_of(name, "too far", robot, link, (position, quaternion), np.zeros(rows, bool))
    if not robot.articulation.loops:
        for k in robot.model.independent_dof:
            low, high = robot.model.lower[k], robot.model.upper[k]
            for share, value in ((0.3, 0.0), (0.1, low), (0.1, high)):
                if low <= value <= high and np.isfinite(value):
                    q[generator.random(rows) < share, robot.model.dof_coord[k]] = value
        for follower, leader, polynomial in zip(
            robot.model.coupling_follower, robot.model.coupling_leader, robot.model.coupling_polynomial, strict=True
        ):
            of = robot.model.dof_coord
            q[:, of[follower]] = np.polynomial.polynomial.polyval(q[:, of[leader]], polynomial)
        inside = misses(robot, q, link, *wanted(robot, q, link)) < np.inf  # also of followers
        reachable = np.ones(int(inside.sum()), bool)
        told_of(name, "singular or at limits", robot, link, wanted(robot, q[inside], link), reachable)


def beyond_a_stretched_arm(rows: int) -> None:
    """Look for points beyond the reach of an arm in the plane, whose distances are known."""
    robot = Robot.of(load_text(planar_arm(0.4, 0.3), name="robot.urdf"))
    generator = np.random.default_rng(6)
    beyond, angle = 10 ** generator.uniform(np.log10(2e-6), -2, rows), generator.uniform(-3, 3, rows)
    position = np.stack([(0.7 + beyond) * np.cos(angle), (0.7 + beyond) * np.sin(angle), 0 * angle], axis=1)
    found = robot.ik("tip", position, threads=1)
    wrong = np.abs(found["position_error"] - beyond) > 1e-6 + 1e-3 * beyond
    told = f"{int((found['status'] == 0).sum())} told reached, {int(wrong.sum())} with a wrong distance"
    print(f"planar arm   stretched, 2e-6 m … 1 cm {rows:6} poses: {told}", flush=True)


def closed_form(robot: Robot, text: str, link: str, rows: int, far: int) -> None:
    """Find poses of the UR5 in closed form; look for poses that it has not with narrowed limits."""
    q = drawn(robot, rows, 1)
    T = poses_in_base(*wanted(robot, q, link))
    assert np.abs(ur5_closed_form.forward(q[:1000]) - T[:1000]).max() < 1e-9
    began = time.perf_counter()
    found = ur5_closed_form.configurations(T)
    seconds = time.perf_counter() - began
    reached = np.zeros(rows, bool)
    for branch in range(8):
        there = ~np.isnan(found[:, branch, 0])
        away = np.abs(ur5_closed_form.forward(found[there, branch]) - T[there]).max(axis=(1, 2))
        reached[there] |= away < LIMIT
    print(f"ur5        closed form {100 * reached.mean():.4f} % of {rows}, {rows / seconds:10,.0f} poses/s (numpy)")
    if not far:
        return
    narrow = 1.3
    text = re.sub(r'lower="[^"]*" upper="[^"]*"', f'lower="{-narrow}" upper="{narrow}"', text)
    narrowed, q = (
        Robot.of(load_text(text, name="robot.urdf", meshes=False)),
        np.random.default_rng(7).uniform(-2.0, 2.0, (far, 6)),
    )
    poses = wanted(robot, q, link)
    all_of_them = ur5_closed_form.configurations(poses_in_base(*poses))
    reachable = (np.abs(all_of_them) <= narrow).all(axis=2).any(axis=1)
    told_of("ur5", "beyond narrowed limits", narrowed, link, poses, reachable)


def poses_in_base(position: Array, quaternion: Array) -> Array:
    """The transforms (N, 4, 4) in the frame `base`, half a turn about z from the world."""
    T = np.zeros((len(position), 4, 4))
    w, x, y, z = quaternion.T
    T[:, 0, :3] = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=1)
    T[:, 1, :3] = np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=1)
    T[:, 2, :3] = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)
    T[:, :3, 3], T[:, 3, 3] = position, 1.0
    T[:, :2] *= -1.0
    return T


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


def bounded(text: str) -> str:
    """The URDF with limits of a turn for joints without: Pinocchio has two coordinates for these."""
    turn = '<limit lower="-6.3" upper="6.3" effort="1" velocity="1"/>'
    return re.sub(r'type="continuous"(.*?)</joint>', rf'type="revolute"\1{turn}</joint>', text, flags=re.S)


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
    parser.add_argument("--models", type=Path, help="folder with ur5.urdf, panda.urdf and talos.urdf")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--beside", type=int, default=1000)
    parser.add_argument("--far", type=int, default=2000)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, robot, link, text in robots(chosen.models):
        if chosen.only in name:
            if chosen.rows:
                alone(name, robot, link, chosen.rows)
            if name == "ur5" and chosen.rows:
                closed_form(robot, text, link, min(chosen.rows, 100_000), chosen.far)
            if chosen.beside and text and not re.search("<mimic", text):
                beside(name, robot, link, bounded(text), chosen.beside)
            if chosen.far:
                out_of_reach(name, robot, link, chosen.far)
    if chosen.far and not chosen.only:
        beyond_a_stretched_arm(chosen.far)


if __name__ == "__main__":
    main()
