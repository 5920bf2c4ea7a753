"""Derivatives of steps beside differences of runs: python -m tests.benchmarks.step_derivatives [--models N] [--beside].

Each model is simulated, and at some of its states every column of `Simulation.derivatives` without a kink is compared
with Richardson's extrapolation of central differences of the run itself: a snapshot is restored, the state is set, a
step is taken, and again with half the change. Columns with a kink are compared with one-sided ones. `--beside` times
the derivatives beside MuJoCo's mjd_transitionFD.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artsim
from artsim.sim.articulation.tangent import difference, follow_leaders, moved
from artsim.sim.runs.step_derivatives import CENTRAL, FORWARD, StepDerivatives
from tests.conftest import ROOT, corpus

Array = np.ndarray[Any, Any]
CHANGES = 1.1e-4, 3.7e-5, 1.3e-5, 4.3e-6, 1.4e-6, 4.7e-7  # [rad, m, rad/s, m/s] of the differences of runs
ENOUGH = 1e-6  # share by which they differ with half the change
DOFS = 60
BESIDE = (
    "mjcf.gymnasium.ant",
    "mjcf.gymnasium.inverted_pendulum",
    "mjcf.mujoco_warp.benchmarks_humanoid_humanoid",
    "mjcf.menagerie-fork.wonik_allegro_left_hand",
)
TIMES = (1, 40, 160, 400)  # steps after which derivatives are compared


class Compared(NamedTuple):
    """A model's states: the largest errors of columns, as shares of each, and how many have kinks."""

    model: str
    states: int
    columns: int
    kinks: int
    worst: float
    column: str
    skipped: int  # columns whose differences of runs have a kink within the larger change
    doubtful: int  # columns that the derivatives themselves tell to be uncertain
    microseconds: float
    implicit: int  # states of which the implicit function theorem gave the derivatives
    reasons: str  # why others are differences


def end_of(simulation: artsim.Simulation, snapshot: Any, start: tuple[Array, Array, Array], name: str) -> Array:
    """The end (2 nv + nact,) of a step from a start, less the start's coordinates in the tangent."""
    simulation.restore(snapshot)
    engine = simulation._simulation
    for place, values in zip(engine.state, start, strict=True):
        place[:] = values
    simulation.step()
    return np.concatenate([simulation.qpos, simulation.qvel, simulation.activation])


def changed(simulation: artsim.Simulation, column: str, change: float) -> tuple[Array, Array, Array]:
    """The state with one of its columns changed."""
    model, labels = simulation.robot.model, simulation.robot.labels
    q, v, a = np.array(simulation.qpos), np.array(simulation.qvel), np.array(simulation.activation)
    letter, _, name = column.partition(":")
    if letter == "a":
        a[simulation.labels.actuator_state.index(name)] += change
    else:
        along = np.zeros(len(v))
        along[labels.dofs.index(name)] = change
        q, v = (moved(model, q, along), v) if letter == "q" else (q, v + along)
        follow_leaders(model, q, v)
    return q, v, a


def differences(simulation: artsim.Simulation, column: str, side: int) -> tuple[Array, float]:
    """The slope (2 nv + nact,) along a column of the state on a side, by runs, and by how much the
    two differences differ from which it is: of the smallest change with which these settle and another agrees."""
    snapshot, model = simulation.save(), simulation.robot.model
    nq = simulation.robot.nq

    def end(change: float) -> Array:
        simulation.restore(snapshot)
        return end_of(simulation, snapshot, changed(simulation, column, change), column)

    middle = end(0.0)

    def apart(change: float) -> Array:
        there = end(change)
        return np.concatenate([difference(model, there[:nq], middle[:nq]), there[nq:] - middle[nq:]])

    def slope(h: float) -> Array:
        if side == CENTRAL:
            return (apart(h) - apart(-h)) / (2 * h)
        sign = 1.0 if side == FORWARD else -1.0
        return sign * (4 * apart(sign * h / 2) - apart(sign * h)) / h

    tried = []
    for change in CHANGES:
        wide, near = slope(change), slope(change / 2)
        tried.append(((4 * near - wide) / 3, float(np.abs(near - wide).max())))
    simulation.restore(snapshot)
    enough = ENOUGH * max(1.0, float(np.abs(tried[0][0]).max()))
    settled = [each for each in tried if each[1] <= enough]
    agreeing = [a for a in settled if sum(np.abs(a[0] - b[0]).max() <= enough for b in settled) > 1]
    return (agreeing or settled or [min(tried, key=lambda each: each[1])])[-1]


def compare(simulation: artsim.Simulation, found: StepDerivatives) -> Iterator[tuple[str, float, bool]]:
    """Of each column of the state its error as a share of it, and True if the differences of runs do not settle."""
    for n, column in enumerate(found.states):
        if not found.A[:, n].any():
            continue
        side = int(found.side[n])
        want, unsettled = differences(simulation, column, side)
        scale = max(1.0, float(np.abs(want).max()))
        yield column, float(np.abs(want - found.A[:, n]).max()) / scale, unsettled > ENOUGH * scale


def compared(model: str, simulation: artsim.Simulation) -> Compared:
    """Compare derivatives at some states of a run."""
    columns = kinks = skipped = states = doubtful = 0
    worst, where, spent = 0.0, "", list[float]()
    reasons = list[str]()
    taken = 0
    for steps in TIMES:
        simulation.step(steps - taken)
        taken = steps
        simulation.derivatives()
        began = time.perf_counter()
        found = simulation.derivatives()
        spent.append(time.perf_counter() - began)
        states += 1
        if found.reason:
            reasons.append(found.reason)
        columns += len(found.states)
        kinks += int(np.count_nonzero(found.side[: len(found.states)]))
        known = dict(zip(found.columns, found.error, strict=True))
        for column, error, unsettled in compare(simulation, found):
            size = max(1.0, float(np.abs(found.A[:, found.columns.index(column)]).max()))
            if known[column] > 1e-5 * size:
                doubtful += 1
                continue
            if unsettled:
                skipped += 1
            elif error > worst:
                worst, where = error, f"{column} at step {steps}"
    told = "; ".join(sorted(set(reasons)))
    time_spent = 1e6 * float(np.median(spent))
    implicit = states - len(reasons)
    return Compared(model, states, columns, kinks, worst, where, skipped, doubtful, time_spent, implicit, told)


def models(limit: int) -> Iterator[tuple[str, Callable[[], artsim.Simulation]]]:
    """Robots of robots/, and of the corpus some with contacts, loops, tendons and actuators."""
    for path in sorted((ROOT / "robots").glob("*.*")):
        if path.suffix in (".urdf", ".xml"):
            yield path.stem, lambda path=path: _moving(path, ground=True)
    folder = corpus()
    if folder is None:
        return
    entries = [entry for entry in json.loads((folder / "index.json").read_text()) if 0 < (entry.get("nv") or 0) <= DOFS]
    chosen = [entry for entry in entries if entry["format"] == "mjcf"]
    for entry in chosen[:: max(1, len(chosen) // max(limit, 1))][:limit]:
        yield entry["id"], lambda entry=entry: _moving(folder / entry["path"])


def _moving(path: Path, **settings: Any) -> artsim.Simulation:
    robot = artsim.load(path)
    rng = np.random.default_rng(3)
    simulation = artsim.Simulation(robot, record=("qpos",), **settings)
    q, v = moved(robot.model, simulation.qpos, 0.05 * rng.normal(size=robot.nv)), 0.3 * rng.normal(size=robot.nv)
    follow_leaders(robot.model, q, v)
    for place, values in zip(simulation._simulation.state, (q, v), strict=False):
        place[:] = values
    return simulation


def beside(path: Path, repeats: int = 10) -> tuple[float, float, float]:
    """Times [µs] of A and B at a state in contact: of Simulation.derivatives, of VectorSimulation.derivatives by robot,
    and of mjd_transitionFD, centred."""
    import mujoco

    robot = artsim.load(path)
    one, many = artsim.Simulation(robot, record=("qpos",)), artsim.VectorSimulation(robot, 4, threads=1)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER  # mjd_transitionFD serves no RK4
    data = mujoco.MjData(model)
    one.step(TIMES[-1])
    many.step(steps=TIMES[-1])
    for _ in range(TIMES[-1]):
        mujoco.mj_step(model, data)
    nx = 2 * model.nv + model.na
    A, B = np.zeros((nx, nx)), np.zeros((nx, model.nu))

    def timed(call: Callable[[], Any], each: int = 1) -> float:
        call()
        spent = []
        for _ in range(repeats):
            began = time.perf_counter()
            call()
            spent.append(time.perf_counter() - began)
        return 1e6 * min(spent) / each

    return (
        timed(one.derivatives),
        timed(many.derivatives, 4),
        timed(lambda: mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20, help="of the corpus")
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--beside", action="store_true", help="times beside MuJoCo's")
    arguments = parser.parse_args()
    folder = corpus()
    if arguments.beside and folder is not None:
        entries = {entry["id"]: folder / entry["path"] for entry in json.loads((folder / "index.json").read_text())}
        for name in BESIDE:
            if name in entries:
                times = beside(entries[name])
                print(f"{name:60} {times[0]:8.0f} us alone {times[1]:8.0f} us in packs {times[2]:8.0f} us MuJoCo")
        return
    rows = []
    for name, make in models(arguments.models):
        if arguments.only not in name:
            continue
        try:
            row = compared(name, make())
        except artsim.ArtsimError as error:
            print(f"{name:60} {str(error)[:100]}", flush=True)
            continue
        rows.append(row)
        print(
            f"{row.model:60} {row.columns:5} columns {row.kinks:4} kinks {row.skipped:4} unsettled "
            f"{row.doubtful:3} doubtful worst {row.worst:.1e} {row.column:32} {row.microseconds:8.0f} us "
            f"implicit {row.implicit}/{row.states} {row.reasons}",
            flush=True,
        )
    columns = sum(row.columns for row in rows)
    told = {name: sum(getattr(row, name) for row in rows) for name in ("kinks", "skipped", "doubtful")}
    shares = ", ".join(f"{name} {count} ({100 * count / max(columns, 1):.2g} %)" for name, count in told.items())
    states, implicit = sum(row.states for row in rows), sum(row.implicit for row in rows)
    worst = max((row.worst for row in rows), default=0)
    print(f"{len(rows)} models, {implicit} of {states} states implicit, {columns} columns: {shares}; worst {worst:.1e}")


if __name__ == "__main__":
    main()
