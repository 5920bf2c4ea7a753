"""Public MJCF models with contacts, beside MuJoCo: `python tests/benchmarks/corpus_contact.py [--only TEXT]`.

Each runs from its first keyframe, or from its pose, as the file has it: the same time step, hard contacts with elliptic
cones and soft ones with the file's in both, MuJoCo's soft contacts. Kinetic energy, the height of the centre of mass
and the depths are MuJoCo's measurements of both final states; in parentheses, how many contacts it finds in ours. One
model after the other, small ones first, each in a process of its own, as long as --limit seconds. --log FILE keeps the
rows as JSON. Needs mujoco (the extra `test`) and the corpus ($ARTSIM_CORPUS).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from artsim.io.runs.prepare import held_controls, prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.foundation.jit import warm
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_laws import has_soft_contacts
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation

STEPS = 1000
LIMIT = 60.0  # [s] of each engine and model
PIECE = 20  # steps between two looks at the clock
TOUCHING = 1e-6  # [m] a gap that counts as none

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file


@dataclass
class Side:
    """What one engine made of a model."""

    steps: int = 0
    contacts: int = 0  # that touch, at the end
    height: float = 0.0  # of the centre of mass at the end [m]
    energy: float = 0.0  # kinetic, at the end [J]
    most_energy: float = 0.0  # between pieces [J]
    depth: float = 0.0  # deepest contact at the end, as MuJoCo finds it [m]
    found: int = 0  # contacts that MuJoCo finds in the final state
    time: float = 0.0  # CPU time of a step [µs]


@dataclass
class Row:
    """A model in both engines."""

    model: str
    dofs: int = 0
    refused: str = ""
    failed: str = ""
    residual: float = 0.0  # worst that our solver left [m/s or rad/s]
    room: int = 0
    ours: Side | None = None
    theirs: Side | None = None


def compare(ident: str, path: str, steps: int = STEPS, limit: float = LIMIT) -> Row:
    """Both engines on one model."""
    row = Row(ident)
    try:
        articulation = load_articulation(path)
        keyframe = articulation.keyframes[0].name if articulation.keyframes else ""
        config = RunConfig(steps=steps, keyframe=keyframe, record=("contacts",))
        plan = prepare(articulation, config)
    except ArtsimError as error:
        row.refused = str(error).partition(": ")[2] or str(error)
        return row
    model = mujoco.MjModel.from_xml_path(path)
    if not has_soft_contacts(plan.touching):  # as hard ones are; soft ones have the file's
        model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    row.dofs = model.nv
    if model.nv == 0:
        row.refused = "nothing moves"
        return row
    run_ours(row, plan, model, limit)
    row.theirs = theirs(plan, model, steps, limit)
    return row


def run_ours(row: Row, plan: Plan, model: Any, limit: float) -> None:
    """Our side of a row."""
    warm([(plan.entry, 1)])
    simulation = Simulation(plan, held_controls(plan))
    side = row.ours = Side()
    contacts, seconds = 0, 0.0
    try:
        while simulation.step < plan.config.steps and seconds < limit and not simulation.stop_reason:
            start = time.process_time()
            for block in simulation.blocks(min(PIECE, plan.config.steps - simulation.step)):
                if len(block.tables.get("contact_count", ())):
                    contacts = int(block.tables["contact_count"][-1])
            seconds += time.process_time() - start
            side.most_energy = max(side.most_energy, measured(model, simulation.qpos, simulation.qvel)[1])
        simulation.check()
    except ArtsimError as error:
        row.failed = str(error)
    if not (np.all(np.isfinite(simulation.qpos)) and np.all(np.isfinite(simulation.qvel))):
        row.failed = row.failed or "not finite"
    side.steps, side.contacts = simulation.step, contacts
    side.time = 1e6 * seconds / max(simulation.step, 1)
    side.height, side.energy, side.depth, side.found = measured(model, simulation.qpos, simulation.qvel)
    row.residual, row.room = simulation.worst_residual, simulation.room


def theirs(plan: Plan, model: Any, steps: int, limit: float) -> Side:
    """MuJoCo's side of a row, from the same start."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[:], data.qvel[:] = plan.qpos, plan.qvel
    side, seconds = Side(), 0.0
    while side.steps < steps and seconds < limit:
        start = time.process_time()
        count = min(PIECE, steps - side.steps)
        mujoco.mj_step(model, data, count)
        seconds += time.process_time() - start
        side.steps += count
        side.most_energy = max(side.most_energy, measured(model, data.qpos, data.qvel)[1])
    side.time = 1e6 * seconds / max(side.steps, 1)
    side.contacts = int(np.count_nonzero(data.contact.dist < data.contact.includemargin + TOUCHING))
    side.height, side.energy, side.depth, side.found = measured(model, data.qpos, data.qvel)
    return side


def measured(model: Any, qpos: Any, qvel: Any) -> tuple[float, float, float, int]:
    """Height of the centre of mass, kinetic energy, deepest contact and how many, as MuJoCo sees a state."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_energyVel(model, data)
    depth = -float(np.min(data.contact.dist)) if data.ncon else 0.0
    found = int(np.count_nonzero(data.contact.dist < data.contact.includemargin + TOUCHING))
    return float(data.subtree_com[0, 2]), float(data.energy[1]), max(depth, 0.0), found


# ------------------------------------------------------------------ all of them


def entries(folder: Path, tiers: tuple[str, ...] = ("robot", "example")) -> list[dict[str, Any]]:
    """The MJCF robots and examples that MuJoCo loads, small ones first."""
    index = json.loads((folder / "index.json").read_text())
    wanted = [e for e in index if e["format"] == "mjcf" and e["expect"] == "load" and e["tier"] in tiers]
    return sorted(wanted, key=lambda entry: (entry["nv"], entry["id"]))


def rows_of(folder: Path, wanted: list[dict[str, Any]], limit: float) -> Iterator[Row]:
    """One process each, so that none takes the others with it."""
    for entry in wanted:
        path = str(folder / entry["path"])
        command = [sys.executable, __file__, "--one", entry["id"], path, "--limit", str(limit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=6 * limit + 120, check=False)
        except subprocess.TimeoutExpired:
            yield Row(entry["id"], entry["nv"], failed="took too long")
            continue
        lines = done.stdout.splitlines()
        if done.returncode or not lines:
            yield Row(entry["id"], entry["nv"], failed=f"exit {done.returncode}: {done.stderr[-200:]}")
        else:
            yield from_json(json.loads(lines[-1]))


def from_json(values: dict[str, Any]) -> Row:
    """A row as `asdict` made it."""
    sides = {name: Side(**values[name]) if values[name] else None for name in ("ours", "theirs")}
    return Row(**(values | sides))


HEAD = (
    f"{'model':48} {'dofs':>5} {'steps':>5} {'residual':>8}  {'contacts':>13}  {'depth [mm]':>15}  {'height [m]':>17}"
    f"  {'kinetic energy [J]':>19}  {'step [µs]':>17} {'ratio':>5}"
)


def line(row: Row) -> str:
    """A row of the table, ours before MuJoCo's."""
    name = row.model.removeprefix("mjcf.")[-48:]
    if row.ours is None or row.theirs is None:
        return f"{name:48} {row.dofs:5} {'refused: ' + row.refused if row.refused else row.failed}"
    a, b = row.ours, row.theirs
    return (
        f"{name:48} {row.dofs:5} {a.steps:5} {row.residual:8.1e}  {a.contacts:4}({a.found:4}){b.contacts:4}"
        f" {1e3 * a.depth:7.3f} {1e3 * b.depth:7.3f}  {a.height:8.4f} {b.height:8.4f}  {a.energy:9.3g} {b.energy:9.3g}"
        f"  {a.time:8.1f} {b.time:8.1f} {a.time / b.time:5.2f} {row.failed}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--tiers", default="robot,example")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--most", type=int, default=10**6, help="dofs")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(compare(*options.one, limit=options.limit))))
        return
    folder = Path(os.environ["ARTSIM_CORPUS"])
    chosen = [
        e
        for e in entries(folder, tuple(options.tiers.split(",")))
        if options.only in e["id"] and e["nv"] <= options.most
    ]
    print(HEAD)
    for row in rows_of(folder, chosen, options.limit):
        print(line(row), flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    main()
