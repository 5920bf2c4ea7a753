"""The convex contact law beside MuJoCo on every MJCF file of $ARTSIM_CORPUS.

    python -m tests.benchmarks.convex_parity [--only TEXT] [--steps 200] [--shard K/N]

Single runs from the first keyframe with a name, or the file's pose; controls anywhere in the actuators' range, constant
over 20 steps. MuJoCo's solver iterates to the end (tolerance 0), without its sleep.

A line a robot. `apart`: the first step at which a coordinate differs by more than 1e-9; `chaos`: that at which MuJoCo's
own run differs by 1e-10 from one that starts 1e-13 faster; `steps`: the share of steps that, each taken by MuJoCo from
artsim's state, end with velocities within 1e-9 of artsim's, of those in which both have the same contacts (number,
distances and points within 1e-9), and of all. A robot agrees if it is not apart before chaos; otherwise its first step
that differs tells why: its contacts differ, or its integrator is the one that artsim lacks (implicit).
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import artsim
from artsim.sim.foundation.errors import ArtsimError
from tests.conftest import corpus, corpus_entries

SAME = 1e-9
HELD = 20  # steps for which controls stay
NUDGE, CHAOS = 1e-13, 1e-10  # of velocities at the start; difference of coordinates that it has grown to
MOST_DOFS = 200
RECORD = ("qpos", "qvel", "activation", "contacts")
Array = np.ndarray[Any, Any]


class Found(NamedTuple):
    """The comparison of a robot."""

    apart: int  # step; -1: never
    chaos: int
    same: int  # steps that end alike
    alike: int  # steps with the same contacts
    steps: int
    touching: int  # steps with contacts
    reason: str  # for which it is apart; "": it agrees


def main() -> None:
    """Print a line a robot, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--shard", default="1/1")
    words = parser.parse_args()
    if corpus() is None:
        raise SystemExit("no corpus; set ARTSIM_CORPUS")
    warnings.simplefilter("ignore")
    part, parts = (int(n) for n in words.shard.split("/"))
    reasons: Counter[str] = Counter()
    steps = np.zeros(4)
    entries = [one for one in corpus_entries("mjcf") if one["expect"] == "load" and words.only in one["id"]]
    for entry in entries[part - 1 :: parts]:
        try:
            found = compare(entry["path"], words.steps)
        except (ArtsimError, ValueError, mujoco.FatalError) as error:
            print(f"{entry['id']:70s} not compared: {str(error).splitlines()[0][:100]}", flush=True)
            continue
        if found is None:
            continue
        reasons[found.reason or "agrees"] += 1
        steps += found.same, found.alike, found.steps, found.touching
        told = found.reason or "agrees"
        print(
            f"{entry['id']:70s} {told:18s} apart {found.apart:4d} chaos {found.chaos:4d} steps {found.same} of "
            f"{found.alike} alike, {found.steps}; touching {found.touching}",
            flush=True,
        )
    total = max(reasons.total(), 1)
    print(", ".join(f"{reason}: {count} ({count / total:.0%})" for reason, count in reasons.most_common()))
    same, alike, all_steps, touching = steps
    print(f"steps: {all_steps:.0f}, {touching:.0f} with contacts; the same contacts in {alike:.0f}, and then the same "
          f"velocities in {same:.0f}")  # fmt: skip


def compare(path: str, steps: int) -> Found | None:
    """Run the file in both engines; None for a file without dofs, or too many."""
    model = mujoco.MjModel.from_xml_path(path)
    if not 0 < model.nv <= MOST_DOFS:
        return None
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 200, 200
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    key = model.key(0).name if model.nkey else ""
    controls = _controls(model, steps)
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"keyframe": key} if key else {}
        if model.nu:
            table = Path(folder) / "controls.npz"
            np.savez(table, time=np.arange(steps) * model.opt.timestep, control=controls)
            given["controls"] = str(table)
        run = artsim.simulate(path, steps=steps, contact_law="convex", record=RECORD, check=False, **given)
    ours = np.asarray(run["qpos"])
    if ours.shape[1] != model.nq:
        raise ValueError(f"{ours.shape[1]} coordinates, MuJoCo has {model.nq}")
    theirs, nudged = (_run(model, controls, key, nudge) for nudge in (0.0, NUDGE))
    apart = _first(np.abs(ours[: len(theirs)] - theirs).max(axis=1) > SAME)
    chaos = _first(np.abs(nudged - theirs).max(axis=1) > CHAOS)
    differ, alike, touching = _single_steps(model, controls, run, len(theirs))
    reason = ""
    if apart >= 0 and not 0 <= chaos <= apart:
        at = _first(differ[: apart + 1] > SAME)
        reason = "unexplained"
        if model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICIT:
            reason = "implicit"
        elif at >= 0 and not alike[at]:
            reason = "contacts differ"
    same = (differ <= SAME) & alike
    return Found(apart, chaos, int(same.sum()), int(alike.sum()), len(alike), int(touching.sum()), reason)


def _controls(model: Any, steps: int) -> Array:
    """(steps, nu)."""
    low, high = (np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, k], (-1, 1)[k]) for k in (0, 1))
    drawn = np.random.default_rng(0).uniform(low, high, (-(-steps // HELD), model.nu))
    return np.repeat(drawn, HELD, axis=0)[:steps]


def _run(model: Any, controls: Array, key: str, nudge: float) -> Array:
    """Coordinates (steps, nq) at the start of each of MuJoCo's steps."""
    data = mujoco.MjData(model)
    if key:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] += nudge
    found = np.zeros((len(controls), model.nq))
    for n, control in enumerate(controls):
        found[n], data.ctrl[:] = data.qpos, control
        mujoco.mj_step(model, data)
    return found


def _single_steps(model: Any, controls: Array, run: Any, steps: int) -> tuple[Array, Array, Array]:
    """For each step: the largest relative difference of velocities at its end, whether MuJoCo has the same contacts at
    artsim's state, and whether there are any."""
    contacts = run.tables.get("contact", {"step": (), "depth": (), "point": np.zeros((0, 3))})
    data = mujoco.MjData(model)
    differ, alike, touching = np.zeros(steps - 1), np.zeros(steps - 1, bool), np.zeros(steps - 1, bool)
    for n in range(steps - 1):
        data.qpos[:], data.qvel[:], data.ctrl[:] = run["qpos"][n], run["qvel"][n], controls[n]
        if model.na:
            data.act[:] = run["activation"][n]
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_forward(model, data)
        now = np.asarray(contacts["step"]) == n
        alike[n] = _alike(contacts, now, data)
        touching[n] = now.any()
        mujoco.mj_step(model, data)
        ours = np.asarray(run["qvel"][n + 1])
        with np.errstate(invalid="ignore"):
            differ[n] = np.abs(data.qvel - ours).max() / max(1.0, float(np.abs(ours).max()))
    return np.nan_to_num(differ, nan=np.inf), alike, touching


def _alike(contacts: Any, now: Array, data: Any) -> bool:
    """True if both have the same contacts that act."""
    theirs = np.array([[-c.dist, *c.pos] for c in data.contact if not c.exclude], float).reshape(-1, 4)
    ours = np.column_stack([np.asarray(contacts["depth"])[now], np.asarray(contacts["point"])[now]])
    if len(theirs) != len(ours):
        return False
    order = [np.lexsort(np.round(table, 6).T) for table in (theirs, ours)]
    return bool(np.all(np.abs(theirs[order[0]] - ours[order[1]]) <= SAME))


def _first(where: Array) -> int:
    """The first place that is True, -1: none."""
    return int(np.argmax(where)) if where.any() else -1


if __name__ == "__main__":
    main()
