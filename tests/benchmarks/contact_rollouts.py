"""Rollouts of robots that slide, fall and grasp, beside mujoco.rollout in one process.

    python -m tests.benchmarks.contact_rollouts --models DIR [--only TEXT] [--rounds 5] [--samples 64] [--steps 500]
    python -m tests.benchmarks.contact_rollouts --models DIR --apart [--only TEXT] [--samples 16] [--steps 500]

DIR holds step_go2.xml, step_humanoid.xml, shadow.xml, 2f85_nomesh.xml and step_arm.xml. Both engines take the same
starts and the same controls, as position actuators where the file has none, with the file's step and elliptic cones.
CPU time of one thread per sample and step, in turns, the least of the rounds. Then the share of artsim's steps that
lanes took outside of their packs, by cause, and its time with two threads.

--apart: how far lanes are from single runs, the largest difference of a coordinate of any sample [m or rad], and how
far single runs are from each other whose starts differ by rounding: motion with impacts is chaotic and multiplies both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import mujoco.rollout
import numpy as np

from artsim.io.runs.prepare import prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.records import WIDTH
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, SingleRoller, make_roller
from artsim.sim.runs.varied import Variations

HELD = 25  # steps for which controls stay
Array = np.ndarray[Any, Any]


class Scene(NamedTuple):
    """A file, and how samples differ: by their controls, about the start or over the whole range, or by their start."""

    title: str
    file: str
    controls: float = 0.0  # [rad] about the joints' start
    gain: float = 0.0  # of position actuators [N m/rad], for files without actuators
    ranged: bool = False  # controls anywhere in their range
    height: float = 0.0  # [m] above the start, in random orientations and joint angles
    keyframe: bool = False


SCENES = (
    Scene("Go2 within .05 rad", "step_go2.xml", 0.05, 60.0, keyframe=True),
    Scene("Go2 within .2 rad", "step_go2.xml", 0.2, 60.0, keyframe=True),
    Scene("Go2 within .5 rad", "step_go2.xml", 0.5, 60.0, keyframe=True),
    Scene("Go2 dropped", "step_go2.xml", 0.0, 60.0, height=0.5, keyframe=True),
    Scene("humanoid falling", "step_humanoid.xml", height=0.1),
    Scene("shadow hand", "shadow.xml", ranged=True),
    Scene("2F-85 closing", "2f85_nomesh.xml", ranged=True),
    Scene("arm7 at its limits", "step_arm.xml", 3.0, 100.0),
)


def main() -> None:
    """Print two lines for each scene."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", default="")
    for name, value in (("samples", 64), ("steps", 500), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--apart", action="store_true")
    words = parser.parse_args()
    for scene in SCENES:
        if words.only in scene.title and (words.models / scene.file).exists():
            (tell_apart if words.apart else compare)(scene, words)


class Prepared(NamedTuple):
    """A scene for both engines."""

    peer: Any  # MuJoCo's model
    plan: Plan
    controls: Array  # (samples, steps, nu)
    starts: Variations


def prepared(scene: Scene, words: argparse.Namespace) -> Prepared:
    """Load a scene and draw its samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = actuated(scene, words.models / scene.file, Path(folder))
        peer = mujoco.MjModel.from_xml_path(str(path))
        peer.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        articulation = load_articulation(path, meshes=False)
    pose = articulation.keyframes[0].name if scene.keyframe else ""
    config = RunConfig(steps=words.steps, dt=peer.opt.timestep, record=ROLLOUT_RECORDED, keyframe=pose)
    plan = prepare(articulation, config)
    controls = drawn_controls(scene, peer, plan, words.samples)
    return Prepared(peer, plan, controls, drawn_starts(scene, peer, plan, words.samples, controls))


def tell_apart(scene: Scene, words: argparse.Namespace) -> None:
    """Print how far lanes are from single runs, and single runs from those with starts off by rounding."""
    _, plan, _, starts = prepared(scene, words)
    off = replace(starts, qpos=starts.qpos * (1 + 2**-52) + 1e-16)
    runs = []
    for make, own in ((make_roller, starts), (SingleRoller, starts), (SingleRoller, off)):
        roller: Any = make(plan, own.controls[0], Results.of(plan, len(own)))
        _run(roller, own)
        runs.append(roller.results.rows["qpos"])
    lanes, others = (np.abs(runs[k] - runs[1]).max(axis=(0, 2)) for k in (0, 2))
    told = []
    for apart, what in ((lanes, "lanes"), (others, "starts off by rounding")):
        beyond = np.flatnonzero(apart > 1e-12)
        first = f"above 1e-12 from step {beyond[0]}" if len(beyond) else "never above 1e-12"
        at = ", ".join(f"{apart[: n + 1].max():.1e}" for n in (99, 199, len(apart) - 1) if n < len(apart))
        told.append(f"{what} {first} ({at})")
    print(f"{scene.title:22s} {'; '.join(told)}", flush=True)


def compare(scene: Scene, words: argparse.Namespace) -> None:
    """Run both engines in turns and print their times."""
    peer, plan, controls, starts = prepared(scene, words)
    one, two = Ours(plan, starts, 1), Ours(plan, starts, 2)
    theirs = mujoco_s(peer, plan, starts, controls)
    times: dict[str, list[float]] = {"artsim": [], "mujoco": [], "two": []}
    for _ in range(words.rounds):
        for name, call, clock in (
            ("artsim", one, time.process_time),
            ("mujoco", theirs, time.process_time),
            ("two", two, time.perf_counter),
        ):
            began = clock()
            call()
            times[name].append((clock() - began) * 1e6 / (words.samples * words.steps))
    mine, other, both = (min(times[name]) for name in ("artsim", "mujoco", "two"))
    print(
        f"{scene.title:22s} {mine:8.2f} | {other:8.2f} us ({other / mine:5.2f}x), 2 threads {mine / both:.2f}x",
        end="  ",
    )
    reason = reason_against_packs(plan)
    print(f"[no packs: {reason}]" if reason else one.account(), flush=True)


def actuated(scene: Scene, path: Path, folder: Path) -> Path:
    """The file, or a copy with a position actuator for each joint of one dof where it has no actuators."""
    if not scene.gain:
        return path
    spec = mujoco.MjSpec.from_file(str(path))
    if spec.actuators:
        return path
    for joint in spec.joints:
        if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            act = spec.add_actuator(name=f"drive_{joint.name}", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            act.set_to_position(kp=scene.gain, kv=0.05 * scene.gain)
    spec.compile()
    out = folder / "actuated.xml"
    out.write_text(spec.to_xml())
    return out


def drawn_controls(scene: Scene, peer: Any, plan: Plan, samples: int) -> Array:
    """(samples, steps, nu) controls, constant over HELD steps."""
    steps, rng = plan.config.steps, np.random.default_rng(1)
    count = -(-steps // HELD)
    if scene.ranged:
        low, high = peer.actuator_ctrlrange.T
        drawn = rng.uniform(low, high, (samples, count, peer.nu))
    else:
        joints = peer.actuator_trnid[:, 0]
        stance = plan.qpos[peer.jnt_qposadr[joints]] if scene.gain else plan.control
        drawn = stance + scene.controls * rng.uniform(-1, 1, (samples, count, peer.nu))
    return np.repeat(drawn, HELD, axis=1)[:, :steps]


def drawn_starts(scene: Scene, peer: Any, plan: Plan, samples: int, controls: Array) -> Variations:
    """The starts of all samples, with their controls."""
    rng = np.random.default_rng(0)
    qpos = np.tile(plan.qpos, (samples, 1))
    if scene.height:
        qpos[:, 2] += scene.height
        turns = rng.normal(size=(samples, 4))
        qpos[:, 3:7] = turns / np.linalg.norm(turns, axis=1)[:, None]
        qpos[:, 7:] += rng.uniform(-0.2, 0.2, (samples, peer.nq - 7))
    step = np.arange(0, plan.config.steps, HELD)
    nothing = np.zeros((len(step), plan.robot.nv))
    own = [Controls(step, nothing, nothing, nothing, control[step]) for control in controls]
    return Variations(qpos, np.tile(plan.qvel, (samples, 1)), {}, own)


class Ours:
    """Runs all samples of artsim."""

    def __init__(self, plan: Plan, starts: Variations, threads: int) -> None:
        size = -(-len(starts) // (WIDTH * threads)) * WIDTH
        self.parts = [starts.part(k, k + size) for k in range(0, len(starts), size)]
        self.rollers = [make_roller(plan, starts.controls[0], Results.of(plan, size)) for _ in self.parts]
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.runs = 0
        self.steps = len(starts) * plan.config.steps

    def __call__(self) -> None:
        self.runs += 1
        if self.pool is None:
            _run(self.rollers[0], self.parts[0])
        else:
            list(self.pool.map(_run, self.rollers, self.parts))

    def account(self) -> str:
        """The share of the steps whose rows newton itself solved."""
        return f"lane solver {100 * self.rollers[0].solved_alone / (self.steps * self.runs):.1f} %"


def _run(roller: Any, part: Variations) -> None:
    assert roller.run(part, lambda: False)


def mujoco_s(model: Any, plan: Plan, starts: Variations, controls: Array) -> Callable[[], None]:
    """Runs all samples of MuJoCo in one thread."""
    data = [mujoco.MjData(model)]
    n, steps = len(starts), plan.config.steps
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((n, mujoco.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = starts.qpos, starts.qvel
    state = np.zeros((n, steps, states.shape[1]))
    sensors = np.zeros((n, steps, model.nsensordata))
    rolling = mujoco.rollout.Rollout(nthread=1)

    def call() -> None:
        rolling.rollout(model, data, states, controls, state=state, sensordata=sensors)

    return call


if __name__ == "__main__":
    main()
