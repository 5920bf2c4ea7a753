"""Robots in contact, with figures: how still they stand and lie, what slips, what balances; beside MuJoCo.

    ARTSIM_CORPUS=folder python -m tests.benchmarks.contact_robots

MuJoCo with elliptic cones and the same file, step and inputs; its contacts are as soft as the file (or its default)
has them. What needs the corpus is left out without it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import mujoco
import numpy as np

import artsim
from tests.conftest import corpus
from tests.contact.robot_contacts import (
    BOX_MASS,
    JAWS,
    RECORD,
    Array,
    G,
    carried,
    forces_on,
    growth,
    hard_humanoid,
    mujoco_lift,
    quadruped,
    quadruped_options,
    robotiq,
    run_adhesion,
    run_lift,
    slip,
    standing,
    thrown,
    total_energy,
)
from tests.simulation import joint_limits, robot_file


def mujoco_poses(path: Path, steps: int, keyframe: int = -1) -> tuple[Array, Array, Array]:
    """Times, coordinates and velocities before each step."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    data = mujoco.MjData(model)
    if keyframe >= 0:
        mujoco.mj_resetDataKeyframe(model, data, keyframe)
    q, v = np.zeros((steps, model.nq)), np.zeros((steps, model.nv))
    for step in range(steps):
        q[step], v[step] = data.qpos, data.qvel
        mujoco.mj_step(model, data)
    return np.arange(steps) * model.opt.timestep, q, v


def stands(name: str, run: artsim.MemoryRecording, mass: float, after: float) -> None:
    rows = run.time >= after
    print(f"{name}: {standing(run.time, run['qpos'], run['qvel'], after)}")
    weight = carried(run)[rows]
    print(f"  feet less weight {np.abs(weight + mass * G).max():.1e} N, from step to step", end=" ")
    print(f"{np.abs(np.diff(weight, axis=0)).max():.1e} N, residual {run['solver_residual'].max():.1e}", end=", ")
    print(f"deepest {run.contacts['depth'].max():.1e} m")


def lifts(name: str, path: Path, pad: str, grip: float, hold: float) -> None:
    run = run_lift(path, grip, hold)
    links, place = run.labels.link, run["link_position"]
    first = run.labels.dof.index("box.vx")
    balance = forces_on(run, "box") + BOX_MASS * (G - run["qacc"][:, first : first + 3])
    box, held = links.index("box"), links.index(pad)
    after = 2 + hold / 5
    mine = slip(place[:, box], place[:, held], run["link_quaternion"][:, held], run.time, after)
    times, boxes, pads, turns = mujoco_lift(str(path), pad, grip, hold)
    print(f"{name}: slip {mine:.1e} m/s (MuJoCo {slip(boxes, pads, turns, times, after):.1e})", end=", ")
    print(f"balance {np.abs(balance).max():.1e} N, residual {run['solver_residual'].max():.1e}", end=", ")
    print(f"deepest {run.contacts['depth'].max():.1e} m")


def falls(name: str, path: Path) -> None:
    run = artsim.simulate(artsim.load(path), steps=5500, record=RECORD)
    print(
        f"{name}: energy gained {growth(total_energy(run)):.1e} J, deepest {run.contacts['depth'].max():.1e} m",
        end=", ",
    )
    print(
        f"residual {run['solver_residual'].max():.1e}, last second |v| {np.abs(run['qvel'][5000:]).max():.1e}", end=" "
    )
    times, _, v = mujoco_poses(path, 5500)
    print(f"(MuJoCo {np.abs(v[times >= 10]).max():.1e})")


def throws() -> None:
    for name in ("quadruped", "arm7", "rack_and_pinion", "two_finger_gripper", "parallel_gripper"):
        robot = artsim.load(robot_file(name), base="floating")
        options = thrown(robot, joint_limits(robot_file(name)), seed=5)
        parts = []
        for dt in (1e-3, 5e-4, 2.5e-4):
            record = ("qpos", "energy", "solver_residual")
            run = artsim.simulate(robot, steps=round(1.5 / dt), dt=dt, record=record, **options)
            energy = total_energy(run)
            parts.append(f"{growth(energy) / energy[0]:.1e} (residual {run['solver_residual'].max():.0e})")
        print(f"thrown {name}: energy gained over energy at dt 1, 0.5, 0.25 ms: {', '.join(parts)}")


def main() -> None:
    robot = quadruped()
    run = artsim.simulate(robot, steps=30_000, record=RECORD, **quadruped_options())
    stands("quadruped, 60 s", run, float(robot.model.link_mass.sum()), 15.0)
    throws()
    folder = corpus()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "jaws.xml").write_text(JAWS)
        lifts("two jaws", work / "jaws.xml", "left", 1.0, 10.0)
        if folder is not None:
            of_public_models(folder, work)


def of_public_models(folder: Path, work: Path) -> None:
    models = folder.parent / "peers" / "bench" / "models"
    go2 = artsim.load(models / "step_go2.xml")
    run = artsim.simulate(go2, steps=30_000, keyframe="k", record=RECORD)
    stands("Go2, 60 s", run, float(go2.model.link_mass.sum()), 15.0)
    times, q, v = mujoco_poses(models / "step_go2.xml", 30_000, 0)
    print(f"  MuJoCo: {standing(times, q, v, 15.0)}")
    falls("humanoid, hard", hard_humanoid(folder, work))
    falls("humanoid, as it is", models / "step_humanoid.xml")
    lifts("2F-85, hard pads", robotiq(folder, work / "hard", hard=True), "g_right_pad", 255.0, 10.0)
    lifts("2F-85, as it is", robotiq(folder, work / "soft", hard=False), "g_right_pad", 255.0, 2.0)
    for adhesion in (1.0, 0.0):
        run = run_adhesion(folder, adhesion)
        height = run["link_position"][-1, run.labels.link.index("box"), 2]
        print(f"adhesion {adhesion:g}: the box ends at {height:.4f} m, residual {run['solver_residual'].max():.1e}")


if __name__ == "__main__":
    main()
