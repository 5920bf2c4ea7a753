"""Calls of artsim.VectorSimulation and artsim.rollout beside mujoco.batch and mujoco.rollout, in turns.

    python -m tests.benchmarks.vector_calls MODEL.xml ... [--robots 64 1024] [--steps 1 4 20] [--threads 1]

All are in one process. Both engines step the same robots from the same start, with the same controls about it (a
position actuator for each joint where the file has none), the file's step and elliptic cones. A line per number of
robots and of steps a call: the median time of a call, and per robot and step [µs]; at the end the time of a call beside
the steps, and what a VectorSimulation takes to be made, in time and in memory per robot.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import mujoco.batch
import mujoco.rollout
import numpy as np

import artsim
from artsim.sim.run_data.run_records import STEP_NUMBER
from tests.benchmarks.contact_rollouts import Scene, actuated

HELD = 0.1  # [rad] largest distance of a control from the start
GAIN = 60.0  # [N m/rad] of actuators, for files that have none


def main() -> None:
    """Print the lines of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--robots", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 4, 20])
    for name, value in (("threads", 1), ("rounds", 15)):
        parser.add_argument(f"--{name}", type=int, default=value)
    words = parser.parse_args()
    for path in words.models:
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(path.stem, path.name, gain=GAIN)
            model = actuated(scene, path, Path(folder))
            for robots in words.robots:
                compare(model, robots, words)


def compare(model: Path, robots: int, words: argparse.Namespace) -> None:
    """Print the times of one number of robots."""
    peer = mujoco.MjModel.from_xml_path(str(model))
    peer.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    before, began = _memory(), time.perf_counter()
    key = {"keyframe": peer.key(0).name} if peer.nkey else {}
    robot = artsim.load(model)
    made = artsim.VectorSimulation(robot, robots, threads=words.threads, **key)  # type: ignore[arg-type]
    took, room = time.perf_counter() - began, (_memory() - before) / robots
    rng = np.random.default_rng(0)
    stance = made.qpos[0, peer.jnt_qposadr[peer.actuator_trnid[:, 0]]]
    controls = stance + HELD * rng.uniform(-1, 1, (robots, peer.nu))
    for steps in words.steps:
        ours: list[float] = []
        theirs: list[float] = []
        rolled: list[float] = []
        batched: list[float] = []
        batch = mujoco_batch(peer, controls, steps, words.threads)
        call = mujoco_s(peer, made, controls, steps, words.threads)
        options: dict[str, Any] = {"samples": robots, "steps": steps, "threads": words.threads, **key}
        artsim.rollout(robot, **options)
        made.reset()
        for _ in range(words.rounds):
            ours.append(_timed(partial(made.step, controls, steps)))
            theirs.append(_timed(call))
            batched.append(_timed(batch))
            rolled.append(_timed(partial(artsim.rollout, robot, **options)))
        mine, other, all_, one = (statistics.median(times) * 1e6 for times in (ours, theirs, rolled, batched))
        each = robots * steps
        print(
            f"{model.stem:16s} {robots:5d} robots, {steps:3d} steps a call: VectorSimulation {mine:8.0f} us "
            f"({mine / each:6.2f}), mujoco.rollout {other:8.0f} us ({other / each:6.2f}), {other / mine:5.2f}x, "
            f"mujoco.batch {one:8.0f} us ({one / each:6.2f}), {one / mine:5.2f}x; "
            f"artsim.rollout {all_:8.0f} us",
            flush=True,
        )
    for turns in made._fleet._turns:
        turns._call = partial(turns.tallies.counters.__setitem__, (slice(None), STEP_NUMBER), 1)
    alone = statistics.median(_timed(lambda: made.step(controls)) for _ in range(200)) * 1e6
    print(f"  beside the steps {alone:.0f} us a call; made in {took:.2f} s, {room:.0f} kB a robot", flush=True)


def mujoco_s(model: Any, made: artsim.VectorSimulation, controls: Any, steps: int, threads: int) -> Callable[[], None]:
    """A call that goes on with MuJoCo from where the last one ended."""
    data = [mujoco.MjData(model) for _ in range(threads)]
    robots, kind = len(made), mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((robots, mujoco.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = made.robot.reference, 0.0
    if model.nkey:
        states[:, 1 : 1 + model.nq] = model.key_qpos[0]
    state = np.zeros((robots, steps, states.shape[1]))
    sensors = np.zeros((robots, steps, model.nsensordata))
    held = np.repeat(controls[:, None], steps, axis=1)
    rolling = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)

    def call() -> None:
        rolling.rollout(model, data, states, held, state=state, sensordata=sensors)
        states[:] = state[:, -1]

    return call


def mujoco_batch(model: Any, controls: Any, steps: int, threads: int) -> Callable[[], None]:
    """A call of mujoco.batch, whose arrays are bound, as ours are written in place."""
    made = mujoco.batch.Batch(model, nsim=len(controls), nthread=threads)
    if model.nkey:
        made.reset(keyframe=0)
    made.bind("qpos")
    made.bind("qvel")
    driven = made.bind("ctrl")

    def call() -> None:
        driven[:] = controls
        made.step(nstep=steps)

    return call


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _memory() -> float:
    """The most memory that the process has used [kB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
