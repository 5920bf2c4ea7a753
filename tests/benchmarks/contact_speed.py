"""Robots and heaps in contact beside MuJoCo: `python tests/benchmarks/contact_speed.py --models DIR [--only TEXT]`.

DIR holds step_go2.xml, step_humanoid.xml, shadow.xml, step_boxes100.xml and step_spheres100.xml. Both engines run each
as its file has it: the same step, integrator and inputs. CPU time of one thread per step, in turns, median of ROUNDS
whole runs, for parts of the run: what falls costs more than what lies. Depth: of the deepest contact of the state at a
part's end, by MuJoCo's collision for both. Needs mujoco (the extra `test`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_articulation
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation

ROUNDS = 5
Array = np.ndarray[Any, Any]


class Scene(NamedTuple):
    """A file, and the steps that end its parts."""

    title: str
    file: str
    ends: tuple[int, ...]
    keyframe: bool = False


SCENES = (
    Scene("Go2 standing", "step_go2.xml", (1000, 3000, 5000), keyframe=True),
    Scene("Go2 falling, lying", "step_go2.xml", (500, 1000, 2000, 4000)),
    Scene("humanoid falling, lying", "step_humanoid.xml", (200, 500, 1000, 2000, 4000)),
    Scene("shadow hand", "shadow.xml", (1000, 2000)),
    Scene("100 boxes", "step_boxes100.xml", (100, 300, 1000)),
    Scene("100 spheres", "step_spheres100.xml", (100, 300, 1000, 2000)),
)


def ours(path: Path, scene: Scene) -> Callable[[], Iterator[Array]]:
    """Whole runs of artsim that stop after each part; the state there."""
    articulation = load_articulation(path)
    pose = articulation.keyframes[0].name if scene.keyframe else ""
    config = RunConfig(steps=scene.ends[-1], record=("qpos",), every=scene.ends[-1], keyframe=pose)
    plan = plan_run(articulation, config)

    def run() -> Iterator[Array]:
        simulation = Simulation(plan, held_controls(plan))
        for count in np.diff((0, *scene.ends)):
            list(simulation.blocks(int(count)))
            yield simulation.qpos.copy()

    return run


def mujoco_s(model: Any, scene: Scene) -> Callable[[], Iterator[Array]]:
    """Whole runs of MuJoCo's loop in C."""

    def run() -> Iterator[Array]:
        data = mujoco.MjData(model)
        if scene.keyframe:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        for count in np.diff((0, *scene.ends)):
            mujoco.mj_step(model, data, int(count))
            yield data.qpos.copy()

    return run


def parts(run: Callable[[], Iterator[Array]], ends: tuple[int, ...]) -> tuple[list[float], list[Array]]:
    """CPU time of a step [µs] in each part of a run, and the states at their ends."""
    states, times = [], []
    start = time.process_time()
    for state in run():
        now = time.process_time()
        states.append(state)
        times.append(now - start)
        start = time.process_time()
    return list(1e6 * np.array(times) / np.diff((0, *ends))), states


def depth(model: Any, state: Array) -> tuple[int, float]:
    """MuJoCo's contacts of a state, and the depth of the deepest [m]."""
    data = mujoco.MjData(model)
    data.qpos[:] = state
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return data.ncon, max((-float(contact.dist) for contact in data.contact), default=0.0)


def compare(folder: Path, scene: Scene) -> None:
    """A line for each part."""
    path = folder / scene.file
    model = mujoco.MjModel.from_xml_path(str(path))
    sides = {"artsim": ours(path, scene), "mujoco": mujoco_s(model, scene)}
    times: dict[str, list[list[float]]] = {name: [] for name in sides}
    states: dict[str, list[Array]] = {}
    for _ in range(ROUNDS):
        for name, run in sides.items():
            taken, states[name] = parts(run, scene.ends)
            times[name].append(taken)
    print(f"{scene.title} ({scene.file})")
    for n, end in enumerate(scene.ends):
        mine, other = (float(np.median([taken[n] for taken in times[name]])) for name in sides)
        count, deep = depth(model, states["artsim"][n])
        count_other, deep_other = depth(model, states["mujoco"][n])
        print(
            f"  to step {end:5d}: {mine:8.1f} | {other:8.1f} us ({mine / other:.2f}x)   "
            f"contacts {count} | {count_other}   depth {1e3 * deep:.4f} | {1e3 * deep_other:.4f} mm",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("artsim | MuJoCo")
    for scene in SCENES:
        if options.only in scene.title:
            compare(options.models, scene)


if __name__ == "__main__":
    main()
