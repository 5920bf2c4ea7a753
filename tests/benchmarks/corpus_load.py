"""Which of many public models load and run, and why the others do not: a table by format and tier, and the reasons.

`python tests/benchmarks/corpus_load.py CORPUS [--steps 100] [--balance-inertia] [--density 1000]
[--ignore-unsupported] [--json FILE]`: everything in one process; without --steps nothing is simulated (12 s for 716
models), with 100 steps it takes half an hour of a core, most of it compiling and meshes.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.runs.prepare import prepare
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ArtsimError, ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.simulate import Simulation


def outcome(path: Path, steps: int, options: dict[str, Any]) -> tuple[str, str]:
    """What became of a model (read, ran, refused, refused by run, failed), and why."""
    try:
        robot = load_articulation(path, **options)
    except ModelError as error:
        return "refused", reason(str(error))
    if not steps:
        return "read", ""
    config = RunConfig(steps=steps, record=("qpos", "qvel"))
    try:
        try:
            plan = prepare(robot, config)
        except ModelError as error:
            if "--no-meshes" not in str(error):
                raise
            plan = prepare(load_articulation(path, **{**options, "meshes": False}), config)
    except ArtsimError as error:
        return "refused by run", reason(str(error))
    held = Controls.held(
        torque=plan.torque, target=plan.target, target_velocity=plan.target_velocity, control=plan.control
    )
    simulation = Simulation(plan, held)
    try:
        finite = all(np.isfinite(block.rows["qpos"]).all() for block in simulation.blocks())
        simulation.check()
    except ArtsimError as error:
        return "failed", reason(str(error))
    return ("ran", "") if finite and simulation.step == steps else ("failed", "not finite")


def reason(message: str) -> str:
    """The message without its file and with names cut out, so that equal reasons count as one."""
    return re.sub(r"'[^']*'", "'…'", message.partition(": ")[2])[:110]


def main() -> None:
    """Go through the corpus and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--balance-inertia", action="store_true")
    parser.add_argument("--ignore-unsupported", action="store_true")
    parser.add_argument("--density", type=float)
    parser.add_argument("--json", type=Path, help="a line for each model")
    parser.add_argument("--again", type=Path, help="such lines: models that ran, or were read, are left out")
    words = parser.parse_args()
    options = {name: getattr(words, name) for name in ("balance_inertia", "ignore_unsupported", "density")}
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    lines = []
    known = words.again.read_text().splitlines() if words.again else []
    done = {name for name, found, *_ in map(json.loads, known) if found in ("read", "ran")}
    for entry in json.loads((words.corpus / "index.json").read_text()):
        if entry["id"] in done:
            continue
        began = time.perf_counter()
        found, why = outcome(words.corpus / entry["path"], words.steps, options)
        key = (entry["format"], entry["tier"], entry["expect"])
        counts.setdefault(key, Counter())[found] += 1
        if why and entry["expect"] == "load":
            reasons.setdefault((found, why), []).append(entry["id"])
        lines.append(json.dumps([entry["id"], found, why, round(time.perf_counter() - began, 3)]))
    for key, row in sorted(counts.items()):
        print(f"{' '.join(key):24}", ", ".join(f"{count} {name}" for name, count in sorted(row.items())))
    for (found, why), models in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(models):4} {found}: {why}   ({models[0]})")
    if words.json:
        words.json.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
