"""Findings of the doctor on the best-kept public robots, to be judged by hand: warnings in full, hints counted.

    ARTSIM_CORPUS=folder python -m tests.benchmarks.doctor [--only PART …] [--hints] [--most N]

By default those of MuJoCo's menagerie, mink, dex-urdf, Drake, example-robot-data, Unitree, robosuite and Cassie.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path

from artsim.loaders.doctor.examine import examine
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.geometry.collision_pairs import collision_pairs

KEPT = ("menagerie", "mink", "dex-urdf", "drake-models", "example-robot-data", "unitree_ros", "robosuite", "cassie")


def main() -> None:
    """Print the findings robot by robot, then the counts of their codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(KEPT), help="parts of the ids")
    parser.add_argument("--hints", action="store_true", help="print hints, too")
    parser.add_argument("--most", type=int, default=6, help="findings that are printed of a robot")
    words = parser.parse_args()
    corpus = Path(os.environ["ARTSIM_CORPUS"])
    counts: Counter[str] = Counter()
    robots, clean = 0, 0
    for entry in json.loads((corpus / "index.json").read_text()):
        if not any(part in entry["id"] for part in words.only):
            continue
        try:
            robot = load_articulation(corpus / entry["path"])
            compiled = compile_model(robot)
            found = examine(robot, compiled, collision_pairs(robot, compiled)).findings
        except ArtsimError:
            continue
        robots += 1
        warnings = [finding for finding in found if not finding.is_hint]
        clean += not warnings
        counts.update({f"{finding.grade} {finding.code}" for finding in found})
        shown = found if words.hints else warnings
        for finding in shown[: words.most]:
            print(f"{entry['id']}: {finding.told} ({finding.code})")
        if len(shown) > words.most:
            print(f"{entry['id']}: and {len(shown) - words.most} more")
    print(f"== {robots} robots, {clean} without a warning; robots with each code:")
    for code, count in counts.most_common():
        print(f"  {count:4} {code}")


if __name__ == "__main__":
    main()
