"""Lanes of packs beside single runs of the same samples, on the public models of $ARTSIM_CORPUS.

    python -m tests.benchmarks.corpus_rollouts [--steps 120] [--most-dofs 70] [--only TEXT] [--shard K/N]

Eight samples each, with random velocities at the start, random controls every 20 steps and, for every other model,
other masses. A model is named where a coordinate of a lane differs from its single run by more than 1e-9 and a hundred
times of what single runs differ whose starts are off by 1e-14: the normals of the narrow phase, and the decisions that
follow from them, can jump at such a difference. Coulomb's law may have several solutions (faces on faces, several
contacts hit at once): lanes can then find another one than single runs do.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.runs.prepare import prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.foundation.records import WIDTH
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import equipment_of, reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, SingleRoller, make_roller
from artsim.sim.runs.varied import Variations
from tests.conftest import corpus

HELD = 20  # steps for which controls stay
LARGEST = 400_000  # bytes of a file
OFF, DRAWS, FACTOR = 1e-14, 3, 1e2  # [rad/s or m/s] of starts, how often, and the factor on what follows
Array = np.ndarray[Any, Any]


def main() -> None:
    """Print a line for each model whose lanes leave their single runs, and how many were looked at."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--most-dofs", type=int, default=70)
    parser.add_argument("--only", default="")
    parser.add_argument("--shard", default="1/1")
    words = parser.parse_args()
    folder = corpus()
    if folder is None:
        raise SystemExit("no corpus; set ARTSIM_CORPUS")
    warnings.simplefilter("ignore")
    models = parted = 0
    for path, plan in plans(folder, words):
        lanes, singles, *off = compared(plan, len(str(path)))
        apart, *each = (np.abs(rows - singles).max(axis=(0, 2)) for rows in (lanes, *off))
        rounding = np.max(each, axis=0)
        beyond = np.flatnonzero(apart > 1e-9 + FACTOR * np.maximum.accumulate(rounding))
        models, parted = models + 1, parted + (len(beyond) > 0)
        if len(beyond):
            step = beyond[0]
            print(f"{path.relative_to(folder)}: step {step}, {apart[step]:.1e} ({rounding[step]:.1e})", flush=True)
    print(f"{models} models, of which {parted} have lanes that leave their single runs")


def plans(folder: Path, words: argparse.Namespace) -> Iterator[tuple[Path, Plan]]:
    """The models that load and that packs take, planned."""
    part, parts = (int(n) for n in words.shard.split("/"))
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".xml", ".urdf", ".sdf"))
    for path in files[part - 1 :: parts]:
        if words.only not in str(path) or path.stat().st_size > LARGEST:
            continue
        try:
            config = RunConfig(steps=words.steps, record=ROLLOUT_RECORDED)
            plan = prepare(load_articulation(path, meshes=False), config)
        except ArtsimError:
            continue
        if 0 < plan.robot.nv <= words.most_dofs and not reason_against_packs(plan):
            yield path, plan


def compared(plan: Plan, seed: int) -> list[Array]:
    """(samples, steps, nq) of lanes, of single runs, and of DRAWS times single runs whose starts are off."""
    draw = np.random.default_rng(seed)
    starts = drawn(plan, draw)
    off = [replace(starts, qvel=starts.qvel + OFF * draw.normal(size=starts.qvel.shape)) for _ in range(DRAWS)]
    found = []
    kinds: list[tuple[Callable[..., Any], Variations]]
    kinds = [(make_roller, starts), (SingleRoller, starts), *((SingleRoller, own) for own in off)]
    for make, own in kinds:
        roller = make(plan, own.controls[0], Results.of(plan, WIDTH))
        roller.run(own, lambda: False)
        found.append(roller.results.rows["qpos"][:WIDTH].copy())
    return found


def drawn(plan: Plan, draw: np.random.Generator) -> Variations:
    """Samples of a model: velocities, controls, masses."""
    nv, count = plan.robot.nv, plan.control.size
    start = np.arange(0, plan.config.steps, HELD)
    nothing, e = np.zeros((len(start), nv)), equipment_of(plan)
    controls = []
    for _ in range(WIDTH):
        control = np.zeros((len(start), count))
        if e is not None and count:
            lower, upper = np.maximum(e.control_lower, -2.0), np.minimum(e.control_upper, 2.0)
            control = draw.uniform(lower, upper, (len(start), count))
        controls.append(Controls(start, nothing, nothing, nothing, control))
    qvel = 0.5 * draw.normal(size=(WIDTH, nv))
    links = len(plan.robot.model.link_body)
    factors = {"mass": draw.uniform(0.8, 1.25, (WIDTH, links))} if draw.random() < 0.5 else {}
    return Variations(np.repeat(plan.qpos[None], WIDTH, 0), qvel, factors, controls)


if __name__ == "__main__":
    main()
