"""Rollouts and single runs beside MuJoCo of all public robots of $ARTSIM_CORPUS with actuators and contacts.

    python -m tests.benchmarks.rollout_census [--only TEXT] [--kinds range near falling] [--sizes 32x100 256x200]
        [--single 2000] [--rounds 3] [--law convex] [--urdf] [--shard K/N] [--apart] [--json FILE]

MJCF robots as their files have them, from keyframe 0 where there is one. `--urdf`: robots with position drives on the
ground, in MuJoCo by its own reading of the file. Controls, constant over 20 steps: `range`, anywhere in the actuators'
range; `near`, within a twentieth of it about those of the start; `falling`, none. A call is artsim.rollout against
mujoco.rollout; CPU time of one thread per sample and step, the least of the rounds, in turns, after a call that
compiles. `--single`: steps of one robot, artsim.simulate against mj_step. A ratio above 1: artsim is faster.

A line a robot and kind: dofs, both times and their ratio for each size, the largest difference of a coordinate after 20
steps, the shares of steps that lanes took alone or that single solvers took over, contacts, rows and solver iterations
at the end of a single run, and its phases [µs]. Then the distribution of the ratios.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import mujoco.rollout
import numpy as np

import artsim
from artsim.cli.bench import measure
from artsim.io.runs.prepare import prepared
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.runs.settings import CONTACT_LAWS
from tests.conftest import corpus, corpus_entries

HELD = 20  # steps for which controls stay
NEAR = 0.05  # of the range, about the start
KINDS = ("range", "near", "falling")
STIFFNESS, DAMPING = 100.0, 5.0  # of the drives of URDF robots [N m/rad, N m s/rad] or [N/m, N s/m]
MOST_DOFS = 60  # of a URDF robot
Array = np.ndarray[Any, Any]


class Pair(NamedTuple):
    """A robot in both engines."""

    name: str
    robot: artsim.Robot
    peer: Any  # mujoco.MjModel
    settings: dict[str, Any]  # of artsim's runs
    drives: list[str]  # joints with drives, by MuJoCo's actuators; empty where the file's actuators act


class Times(NamedTuple):
    """CPU times of both engines [µs per sample and step]."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """The ratio of MuJoCo's time to artsim's: above 1, artsim is faster."""
        return self.theirs / self.ours


def main() -> None:
    """Print a line for each robot and kind of controls, and the distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--sizes", nargs="+", default=["32x100", "256x200"])
    parser.add_argument("--single", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--law", choices=CONTACT_LAWS, default=CONTACT_LAWS[0])
    parser.add_argument("--urdf", action="store_true")
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--apart", action="store_true", help="say which robots the census cannot take, and why")
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    if corpus() is None:
        raise SystemExit("no corpus; set ARTSIM_CORPUS")
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    for pair in pairs(words):
        for kind in words.kinds:
            try:
                found.append(examine(pair, kind, words))
            except (ArtsimError, mujoco.FatalError) as error:
                print(f"{pair.name:60s} {kind:8s} {type(error).__name__}: {str(error)[:100]}", flush=True)
                continue
            print(line_of(found[-1]), flush=True)
            if words.json:
                words.json.write_text(json.dumps(found, indent=1))
    for kind in words.kinds:
        tell(kind, [one for one in found if one["kind"] == kind])


# ------------------------------------------------------------------ robots


def pairs(words: argparse.Namespace) -> Iterator[Pair]:
    """The robots at hand, in both engines."""
    part, parts = (int(n) for n in words.shard.split("/"))
    made = _urdf if words.urdf else _mjcf
    entries = [entry for entry in corpus_entries("urdf" if words.urdf else "mjcf") if _fits(entry, words)]
    for entry in entries[part - 1 :: parts]:
        try:
            pair = made(entry)
            yield pair._replace(settings=pair.settings | {"contact_law": words.law})
        except (ArtsimError, ValueError, mujoco.FatalError) as error:
            if words.apart:
                print(f"{entry['id']:60s} apart: {str(error).splitlines()[0][:100]}", flush=True)


def _fits(entry: dict[str, Any], words: argparse.Namespace) -> bool:
    known = entry["tier"] == "robot" and entry["expect"] == "load" and entry.get("contact_geoms")
    moved = entry["nv"] <= MOST_DOFS if words.urdf else entry.get("nu")
    return bool(known and moved and words.only in entry["id"])


def _mjcf(entry: dict[str, Any]) -> Pair:
    peer = mujoco.MjModel.from_xml_path(entry["path"])
    robot = artsim.load(entry["path"])
    poses = robot.articulation.keyframes
    return Pair(entry["id"], robot, peer, {"keyframe": poses[0].name} if poses else {}, [])


def _urdf(entry: dict[str, Any]) -> Pair:
    """A URDF robot on the ground, a drive at each joint of one dof that leads; MuJoCo reads the file by itself."""
    robot = artsim.load(entry["path"])
    spec = mujoco.MjSpec.from_file(entry["path"])
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    drives = []
    for joint in spec.joints:
        if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            act = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            act.set_to_position(kp=STIFFNESS, kv=DAMPING)
            act.ctrlrange = joint.range
            drives.append(joint.name)
    peer = spec.compile()
    settings = {"ground": True, "stiffness": STIFFNESS, "damping": DAMPING, "dt": peer.opt.timestep}
    return Pair(entry["id"], robot, peer, settings, drives)


# ------------------------------------------------------------------ controls


def drawn(pair: Pair, kind: str, samples: int, steps: int) -> Array:
    """(samples, steps, nu) controls, constant over HELD steps."""
    peer, rng = pair.peer, np.random.default_rng(0)
    shape = (samples, -(-steps // HELD), peer.nu)
    low, high = (np.where(peer.actuator_ctrllimited, peer.actuator_ctrlrange[:, k], (-1, 1)[k]) for k in (0, 1))
    start = np.clip(peer.key_ctrl[0] if peer.nkey else np.zeros(peer.nu), low, high)
    drawn_ones = {
        "range": lambda: rng.uniform(low, high, shape),
        "near": lambda: start + NEAR * (high - low) * rng.uniform(-1, 1, shape),
        "falling": lambda: np.zeros(shape),
    }[kind]()
    return np.repeat(drawn_ones, HELD, axis=1)[:, :steps]


def _write(pair: Pair, controls: Array, path: Path) -> None:
    """Write controls as a file that artsim reads."""
    clock = np.arange(controls.shape[-2]) * pair.peer.opt.timestep
    if pair.drives:
        np.savez(path, time=clock, target=controls, names=pair.drives)
    else:
        np.savez(path, time=clock, control=controls)


# ------------------------------------------------------------------ times


def examine(pair: Pair, kind: str, words: argparse.Namespace) -> dict[str, Any]:
    """Times of both engines, and what artsim's steps consist of."""
    told: dict[str, Any] = {"robot": pair.name, "kind": kind, "nv": int(pair.peer.nv), "rollouts": {}}
    with tempfile.TemporaryDirectory() as folder:
        for size in words.sizes:
            samples, steps = (int(n) for n in size.split("x"))
            times, outcome, off = rolled(pair, drawn(pair, kind, samples, steps), Path(folder) / "u.npz", words.rounds)
            taken = max(outcome.steps, 1)
            told["rollouts"][size] = {
                **times._asdict(),
                "ratio": times.ratio,
                "packed": outcome.packed,
                "solved_alone": outcome.solved_alone / taken,
                "unsolved": outcome.unsolved,
                "apart_after_20": off,
            }
        if words.single:
            path = Path(folder) / "one.npz"
            told["single"] = single(pair, drawn(pair, kind, 1, words.single)[0], path, words.rounds)
    return told


def _start(peer: Any) -> Any:
    data = mujoco.MjData(peer)
    if peer.nkey:
        mujoco.mj_resetDataKeyframe(peer, data, 0)
    return data


def rolled(pair: Pair, controls: Array, path: Path, rounds: int) -> tuple[Times, Any, float]:
    """Times of rollouts, artsim's outcome, and the largest difference of a coordinate after 20 steps."""
    _write(pair, controls, path)
    samples, steps, _ = controls.shape
    peer, data, kind = pair.peer, _start(pair.peer), mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(peer, kind))
    mujoco.mj_getState(peer, data, state, kind)
    states = np.tile(state, (samples, 1))
    results: dict[str, Any] = {}

    def ours() -> None:
        results["ours"] = artsim.rollout(
            pair.robot, samples=samples, steps=steps, threads=1, spread=0, controls=str(path), check=False,
            **pair.settings,
        )  # fmt: skip

    def theirs() -> None:
        results["theirs"], _ = mujoco.rollout.rollout(peer, data, states, controls, nstep=steps)

    times = in_turns(ours, theirs, rounds, samples * steps)
    mine, other = np.asarray(results["ours"]["qpos"]), results["theirs"]
    row = min(HELD, steps - 1)
    same = mine.shape[2] == peer.nq
    off = np.abs(mine[:, row] - other[:, row - 1, 1 : 1 + peer.nq]).max() if same else np.nan
    return times, results["ours"].outcome, float(off)


def single(pair: Pair, controls: Array, path: Path, rounds: int) -> dict[str, Any]:
    """Times of single runs, contacts, rows and iterations at their end, and artsim's phases [µs]."""
    _write(pair, controls, path)
    steps = len(controls)
    peer = pair.peer

    def ours() -> None:
        artsim.simulate(
            pair.robot, steps=steps, every=steps, record=["qpos"], controls=str(path), check=False, **pair.settings
        )

    def theirs() -> None:
        data = _start(peer)
        for control in controls:
            data.ctrl[:] = control
            mujoco.mj_step(peer, data)

    times = in_turns(ours, theirs, rounds, steps)
    plan, own, _ = prepared(pair.robot, "none", str(path), {"steps": steps, "record": ["qpos"], **pair.settings})
    assert own is not None
    timing = measure(plan, own, 4)
    return {
        **times._asdict(),
        "ratio": times.ratio,
        "contacts": timing.contacts,
        "rows": timing.rows,
        "iterations": timing.iterations,
        "phases": timing.phases,
    }


def in_turns(ours: Callable[[], None], theirs: Callable[[], None], rounds: int, steps: int) -> Times:
    """The least CPU time of several rounds of both, after one that compiles [µs a step]."""
    ours()
    least = [np.inf, np.inf]
    for _ in range(rounds):
        for n, call in enumerate((ours, theirs)):
            began = time.process_time()
            call()
            least[n] = min(least[n], (time.process_time() - began) * 1e6 / steps)
    return Times(*least)


# ------------------------------------------------------------------ lines


def line_of(told: dict[str, Any]) -> str:
    """A line of the times of a robot and of its steps."""
    words = [f"{told['robot']:60s} {told['kind']:8s} nv {told['nv']:3d}"]
    for size, one in told["rollouts"].items():
        words.append(f"{size} {one['ours']:8.2f} | {one['theirs']:8.2f} us {one['ratio']:5.2f}x")
    last = list(told["rollouts"].values())[-1] if told["rollouts"] else None
    if last:
        words.append(f"off {last['apart_after_20']:.0e}")
        words.append(f"lane solver {last['solved_alone']:.1%}" + ("" if last["packed"] else " NOT IN PACKS"))
    if "single" in told:
        one = told["single"]
        words.append(f"single {one['ours']:8.2f} | {one['theirs']:8.2f} us {one['ratio']:5.2f}x")
        words.append(f"contacts {one['contacts']:.0f} rows {one['rows']:.0f} iterations {one['iterations']:.1f}")
        words.append(" ".join(f"{name} {spent:.1f}" for name, spent in one["phases"].items() if spent >= 0.05))
    return "; ".join(words)


def tell(kind: str, found: list[dict[str, Any]]) -> None:
    """Print the distributions of the ratios."""
    of: dict[str, list[tuple[float, str]]] = {}
    for told in found:
        for size, one in told["rollouts"].items():
            of.setdefault(size, []).append((one["ratio"], told["robot"]))
        if "single" in told:
            of.setdefault("single", []).append((told["single"]["ratio"], told["robot"]))
    for what, ratios in of.items():
        values = np.sort([ratio for ratio, _ in ratios])
        marks = {"tenth": 0.1, "median": 0.5, "ninth": 0.9}
        told_ones = ", ".join(f"{name} {np.quantile(values, share):.2f}" for name, share in marks.items())
        slowest = ", ".join(f"{name} {ratio:.2f}" for ratio, name in sorted(ratios)[:3])
        print(
            f"{kind} {what}: {len(values)} robots, faster on {np.mean(values >= 1):.0%}, {told_ones}; least: {slowest}"
        )


if __name__ == "__main__":
    main()
