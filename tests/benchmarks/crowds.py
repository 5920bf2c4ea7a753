"""Crowds beside MuJoCo: time of a step, what is left, how deep.

    python -m tests.benchmarks.crowds [--counts 216 1000 4000] [--seconds 1] [--only spheres] [--limit 20] [--cg]

Spheres and boxes poured into a box that is too narrow for them to lie side by side, and scenes of the corpus
($ARTSIM_CORPUS): castles of sand, particles, 100 humanoids, bunnies. artsim runs for so many seconds of simulated time;
then MuJoCo takes 20 steps from where that ended, with the solver of the file (its default is Newton) and with conjugate
gradients, as long as --limit seconds each, and so does SAPIEN (PhysX on the CPU, with 10 and with 50 position
iterations) with what was poured, where it is installed; all depths are by MuJoCo's collision. With several --counts
the last lines say how times grow: the exponent of a power of the count. With --cg MuJoCo's Newton is
left out, which takes minutes for a step of thousands. CPU time of stepping
alone, one thread, of artsim's last 50 steps.

--told runs 216 spheres by the command line, as a user would: what is left of the rows must be 1e-6 m/s at most, or the
run warns, tells in --json in how many steps and how much, and ends with exit code 3 under --strict.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation

RADIUS = 0.02
SOLVED = 1e-6  # [m/s]
LAST = 50  # steps of artsim that are timed
STEPS = 20  # of MuJoCo at most
CORPUS = {
    "castle": "adhesion/sand_castle.xml",
    "particles": "replicate/particle.xml",
    "humanoids": "humanoid/100_humanoids.xml",
    "bunnies": "replicate/bunnies.xml",
}

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file


def poured(count: int, friction: float, kind: str = "sphere") -> str:
    """So many spheres, or boxes turned at random, in columns above a box."""
    draw = np.random.default_rng(count)
    side = max(2, round((count / 2) ** (1 / 3)))
    wide = 1.0 if kind == "sphere" else 1.65
    pitch = 2.2 * RADIUS * wide
    half = side * pitch / 2 + RADIUS / 4
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{-x * half} {-y * half} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    size = f"{RADIUS}" if kind == "sphere" else f"{RADIUS} {RADIUS} {RADIUS}"
    bodies = []
    for k in range(count):
        layer, place = divmod(k, side * side)
        x, y = (np.array(divmod(place, side)) - (side - 1) / 2) * pitch + draw.uniform(-0.05, 0.05, 2) * RADIUS
        turn = draw.normal(size=4) if kind == "box" else np.array([1.0, 0.0, 0.0, 0.0])
        bodies.append(
            f'<body pos="{float(x)!r} {float(y)!r} {RADIUS + (layer + 0.5) * pitch!r}" '
            f'quat="{" ".join(map(str, turn / np.linalg.norm(turn)))}"><freejoint/>'
            f'<geom type="{kind}" size="{size}" mass=".03" condim="3"/></body>'
        )
    inside = f'<geom type="plane" size="1 1 1"/>{walls}{"".join(bodies)}'
    return (
        '<mujoco><option cone="elliptic" timestep="0.002"/>'
        f'<default><geom friction="{friction} 0 0"/></default><worldbody>{inside}</worldbody></mujoco>'
    )


# ------------------------------------------------------------------ side by side


def scenes(counts: list[int]) -> Iterator[tuple[str, str | Path]]:
    """Names, and texts or files."""
    for count in counts:
        for kind in ("sphere", "box"):
            yield f"{count} {'spheres' if kind == 'sphere' else 'boxes'}", poured(count, 0.5, kind)
    folder = os.environ.get("ARTSIM_CORPUS")
    if folder:
        for name, file in CORPUS.items():
            yield name, Path(folder) / "files/mujoco/model" / file


def compare(name: str, scene: str | Path, seconds: float, limit: float, conjugate: bool) -> tuple[float, float]:
    """A block of the table; returns the time of a step of artsim and of MuJoCo's conjugate gradients [s]."""
    text = isinstance(scene, str)
    model = mujoco.MjModel.from_xml_string(scene) if text else mujoco.MjModel.from_xml_path(str(scene))
    loaded = load_text(scene, name="crowd.xml") if isinstance(scene, str) else load_articulation(str(scene))
    steps = round(seconds / model.opt.timestep)
    plan = plan_run(loaded, RunConfig(steps=steps, dt=model.opt.timestep, every=steps, max_contacts=10**6))
    held = Controls(np.zeros(1, np.int64), plan.torque[None], plan.target[None], plan.target_velocity[None])
    simulation = Simulation(plan, held)
    spent: list[float] = []
    begun = time.perf_counter()
    while simulation.step < steps and not simulation.stop_reason and time.perf_counter() - begun < 10 * limit:
        start = time.process_time()
        for _ in simulation.blocks(1):
            pass
        spent.append(time.process_time() - start)
    most = simulation.contact_extremes[0]
    ours = float(np.mean(spent[-LAST:]))
    left = f"left at most {simulation.worst_residual:.1e}, above 1e-6 in {simulation.unsolved_steps}"
    print(
        f"{name}: artsim {1e3 * ours:.1f} ms a step (of all {1e3 * np.mean(spent[1:]):.1f}),"
        f" {1e6 * ours / max(most, 1):.1f} us per contact of at most {most}; {left} of {simulation.step} steps,"
        f" gave way in {simulation.eased_steps}; deepest {1e3 * simulation.deepest:.3f} mm",
        flush=True,
    )
    theirs = float("nan")
    solvers = (("as it is", model.opt.solver), ("CG", mujoco.mjtSolver.mjSOL_CG))
    for label, solver in solvers[1:] if conjugate else solvers:
        model.opt.solver = solver
        theirs, data = mujoco_s(model, simulation, limit)
        deepest = max((-float(contact.dist) for contact in data.contact), default=0.0)
        print(
            f"    MuJoCo {label}: {1e3 * theirs:.1f} ms a step, {1e6 * theirs / max(data.ncon, 1):.1f} us per"
            f" contact of {data.ncon}, deepest {1e3 * deepest:.3f} mm; artsim takes {ours / theirs:.2f} times that",
            flush=True,
        )
    if text:
        try:
            for iterations in (10, 50):
                physx, deepest = sapien_s(model, simulation, iterations)
                print(
                    f"    SAPIEN {iterations}: {1e3 * physx:.1f} ms a step, deepest {1e3 * deepest:.3f} mm;"
                    f" artsim takes {ours / physx:.2f} times that",
                    flush=True,
                )
        except ImportError as error:
            print(f"    SAPIEN: {error}")
    return ours, theirs


def mujoco_s(model: Any, simulation: Simulation, limit: float) -> tuple[float, Any]:
    """CPU time of a step of MuJoCo [s] from the simulation's state, and its data; the first step is not counted."""
    data = mujoco.MjData(model)
    if len(simulation.qpos) == model.nq:
        data.qpos[:], data.qvel[:] = simulation.qpos, simulation.qvel
    mujoco.mj_step(model, data)
    spent: list[float] = []
    while len(spent) < STEPS and sum(spent) < limit:
        start = time.process_time()
        mujoco.mj_step(model, data)
        spent.append(time.process_time() - start)
    return float(np.mean(spent)), data


def sapien_s(model: Any, simulation: Simulation, iterations: int) -> tuple[float, float]:
    """CPU time of a step of PhysX [s] with what was poured, from the simulation's state; how deep it is then [m]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has a Vulkan of its own, which nothing here needs
        import sapien
        from sapien import physx
    physx.set_body_config(solver_position_iterations=iterations, sleep_threshold=0.0)
    system = physx.PhysxCpuSystem()
    scene = sapien.Scene([system])
    scene.set_timestep(model.opt.timestep)
    friction = float(model.geom_friction[0, 0])
    rough = physx.PhysxMaterial(friction, friction, 0.0)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = simulation.qpos, simulation.qvel
    mujoco.mj_forward(model, data)
    bodies = []
    for geom in range(model.ngeom):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            turn = np.zeros(4)
            to_normal = data.geom_xmat[geom].reshape(3, 3)[:, [2, 0, 1]]  # PhysX's planes face along x
            mujoco.mju_mat2Quat(turn, np.ascontiguousarray(to_normal).ravel())
            plane = physx.PhysxRigidStaticComponent()
            plane.attach(physx.PhysxCollisionShapePlane(rough))
            ground = sapien.Entity()
            ground.add_component(plane)
            ground.set_pose(sapien.Pose(data.geom_xpos[geom], turn))
            scene.add_entity(ground)
            continue
        builder = scene.create_actor_builder()
        body, size = model.geom_bodyid[geom], model.geom_size[geom]
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
            builder.add_box_collision(half_size=size, material=rough, density=model.body_mass[body] / (8 * size.prod()))
        else:
            volume = 4 / 3 * np.pi * size[0] ** 3
            builder.add_sphere_collision(radius=size[0], material=rough, density=model.body_mass[body] / volume)
        builder.initial_pose = sapien.Pose(data.xpos[body], data.xquat[body])
        bodies.append(builder.build().find_component_by_type(physx.PhysxRigidDynamicComponent))
        first = model.body_dofadr[body]
        bodies[-1].linear_velocity = data.qvel[first : first + 3]
        bodies[-1].angular_velocity = data.xmat[body].reshape(3, 3) @ data.qvel[first + 3 : first + 6]
    system.step()
    start = time.process_time()
    for _ in range(STEPS):
        system.step()
    spent = time.process_time() - start
    data.qpos[:] = np.concatenate([[*body.entity.pose.p, *body.entity.pose.q] for body in bodies])
    mujoco.mj_forward(model, data)
    return spent / STEPS, max((-float(contact.dist) for contact in data.contact), default=0.0)


# ------------------------------------------------------------------ what a run says


def crowd(count: int, friction: float, dt: float, seconds: float) -> None:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.xml"
        path.write_text(poured(count, friction))
        options = [str(path), "--dt", str(dt), "--duration", str(seconds), "-o", str(Path(folder) / "run.h5")]
        start = time.perf_counter()
        told = artsim(*options, "--json")
        spent = time.perf_counter() - start
        plain = artsim(*options, "--force")
        strict = artsim(*options, "--force", "--strict")
    summary = json.loads(told.stdout)
    left, steps = summary["worst_solver_residual"], summary["unsolved_steps"]
    warned = "unsolved in" in plain.stderr
    right = strict.returncode == (3 if steps else 0) and warned == bool(steps) and (left <= SOLVED or steps > 0)
    print(
        f"{count:5d} spheres, friction {friction}, {1e3 * dt:.0f} ms: left {left:.1e} m/s, unsolved in {steps} of "
        f"{round(seconds / dt)} steps, {'warned of' if warned else 'no warning'}, --strict exits with "
        f"{strict.returncode}: {'as it should be' if right else 'WRONG'}; {spent:.0f} s",
        flush=True,
    )


def artsim(*options: str) -> subprocess.CompletedProcess[str]:
    """The command as typed."""
    command = [sys.executable, "-m", "artsim", "run", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="*", default=[216, 1000])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--cg", action="store_true")
    parser.add_argument("--told", action="store_true")
    given: Any = parser.parse_args()
    if given.told:
        for friction in (0.0, 0.5):
            crowd(216, friction, 0.002, given.seconds)
        return
    found: dict[str, list[tuple[float, float, float]]] = {}
    for name, scene in scenes(given.counts):
        if given.only in name:
            times = compare(name, scene, given.seconds, given.limit, given.cg)
            if isinstance(scene, str):
                count, kind = name.split()
                found.setdefault(kind, []).append((float(count), *times))
    for kind, rows in found.items():
        if len(rows) > 1:
            counts, ours, theirs = np.log(np.array(rows)).T
            print(
                f"{kind}: a step takes count^{np.polyfit(counts, ours, 1)[0]:.2f} of artsim,"
                f" count^{np.polyfit(counts, theirs, 1)[0]:.2f} of MuJoCo CG"
            )


if __name__ == "__main__":
    main()
