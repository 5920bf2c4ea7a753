"""Rollouts beside mujoco.rollout in one process: time per sample and step on one core, and on two.

    python -m tests.benchmarks.rollout MODEL.xml [MUJOCO_MODEL.xml] [--samples 256] [--steps 1000] [--rounds 5]
    python -m tests.benchmarks.rollout go2.xml --keyframe home --settle 1000 --spread 0

Both simulate the same samples with the same inputs and step, and return every state. They start in the keyframe that is
named, after --settle steps of MuJoCo, moved by up to --spread. MuJoCo has elliptic cones. Rounds take turns; medians of
the CPU time of all threads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

from artsim.io.runs.prepare import held_controls, prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.records import WIDTH
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, make_roller
from artsim.sim.runs.varied import Variations


def main() -> None:
    """Print a line for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("mujoco_model", nargs="?")
    for name, value in (("samples", 256), ("steps", 1000), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--spread", type=float, default=0.3)
    parser.add_argument("--keyframe", default="")
    parser.add_argument("--settle", type=int, default=0)
    parser.add_argument(
        "--record", default=",".join(ROLLOUT_RECORDED), help="of artsim; MuJoCo gives states and sensors"
    )
    parser.add_argument("--gains", type=float, nargs=2, help="stiffness and damping of artsim's drives")
    words = parser.parse_args()
    peer = mujoco.MjModel.from_xml_path(words.mujoco_model or words.model)
    peer.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    plan = _plan(words.model, words.steps, peer.opt.timestep, words.gains, words.keyframe, words.record)
    starts = _starts(_settled(plan, peer, words.settle), words.samples, words.spread)
    reason = reason_against_packs(plan)
    print(f"{words.model}: " + (f"steps alone, packs do not know {reason}" if reason else "steps in packs"))
    for threads in (1, 2):
        ours, theirs = _ours(plan, starts, threads), _theirs(peer, plan, starts, threads)
        times: dict[str, list[float]] = {"artsim": [], "mujoco": []}
        for _ in range(words.rounds):
            for name, call in (("artsim", ours), ("mujoco", theirs)):
                began = time.process_time()
                call()
                times[name].append((time.process_time() - began) * 1e6 / (words.samples * words.steps))
        mine, other = (statistics.median(times[name]) for name in ("artsim", "mujoco"))
        print(f"{threads} thread(s): artsim {mine:.3f} µs, mujoco.rollout {other:.3f} µs: {other / mine:.1f} times")


def _settled(plan: Plan, peer: Any, steps: int) -> Plan:
    """The plan from where MuJoCo is after so many steps of its start and inputs."""
    if not steps:
        return plan
    data = mujoco.MjData(peer)
    data.qpos, data.qvel = plan.qpos, plan.qvel
    data.ctrl = plan.control
    for _ in range(steps):
        mujoco.mj_step(peer, data)
    return replace(plan, qpos=np.array(data.qpos), qvel=np.array(data.qvel))


def _plan(path: str, steps: int, dt: float, gains: list[float] | None, keyframe: str, record: str) -> Plan:
    driven = {} if gains is None else {"stiffness": {"*": gains[0]}, "damping": {"*": gains[1]}}
    articulation = load_articulation(path, meshes=False)
    recorded = tuple(record.split(","))
    return prepare(articulation, RunConfig(steps=steps, dt=dt, record=recorded, keyframe=keyframe, **driven))  # type: ignore[arg-type]


def _starts(plan: Plan, samples: int, spread: float) -> Variations:
    rng = np.random.default_rng(0)
    qpos = np.tile(plan.qpos, (samples, 1))
    moved = plan.robot.model.dof_coord[plan.robot.model.dof_coord >= 0]
    qpos[:, moved] += rng.uniform(-spread, spread, (samples, len(moved)))
    return Variations(qpos, np.tile(plan.qvel, (samples, 1)))


def _ours(plan: Plan, starts: Variations, threads: int) -> Callable[[], None]:
    size = -(-len(starts) // (WIDTH * threads)) * WIDTH
    parts = [starts.part(k, k + size) for k in range(0, len(starts), size)]
    rollers = [make_roller(plan, held_controls(plan), Results.of(plan, size)) for _ in parts]
    if threads == 1:
        return lambda: _run(rollers[0], parts[0])
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(_run, rollers, parts)).clear()


def _run(roller: Any, part: Variations) -> None:
    assert roller.run(part, lambda: False)


def _theirs(model: Any, plan: Plan, starts: Variations, threads: int) -> Callable[[], None]:
    data = [mujoco.MjData(model) for _ in range(threads)]
    n, steps = len(starts), plan.config.steps
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((n, mujoco.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = starts.qpos, starts.qvel
    control = np.tile(plan.control, (n, steps, 1))
    state = np.zeros((n, steps, states.shape[1]))
    sensors = np.zeros((n, steps, model.nsensordata))
    rolling = mujoco.rollout.Rollout(nthread=threads)

    def call() -> None:
        rolling.rollout(model, data, states, control, state=state, sensordata=sensors)

    return call


if __name__ == "__main__":
    main()
