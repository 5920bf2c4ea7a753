"""Runs of public models and of the files that they are converted to: 1 s with torques and controls, side by side.

    ARTSIM_CORPUS=folder python -m tests.benchmarks.conversion_runs [--ways urdf-mjcf urdf-sdf mjcf-mjcf …] [--every N]
        [--most-links N] [--seconds S] [--mujoco] [--only PART]

Of models whose formats say all that affects motion, source and file are run by artsim with the same torques (a share of
each joint's largest force, or of 1 N m) and controls; the largest difference of a coordinate by its name is counted by
decades. With --mujoco, MuJoCo runs source and file of mjcf-mjcf itself, with sines as controls.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

import artsim
from artsim.loaders.load import load_articulation
from artsim.loaders.writers.proof import with_own_names
from artsim.loaders.writers.write import write_articulation
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError
from tests.benchmarks.conversions import SUFFIXES

WAYS = ("urdf-mjcf", "urdf-sdf", "urdf-urdf", "mjcf-mjcf", "mjcf-urdf", "mjcf-sdf")
STEP = 1e-3  # [s]
SHARE = 0.01  # of a joint's largest force
SINGLE = ("revolute", "continuous", "prismatic")


def torques(robot: Articulation) -> dict[str, float]:
    """A constant force for each independent joint of one dof, by name [N m, N]."""
    followers = {coupling.follower for coupling in robot.couplings}
    free = [joint for joint in robot.joints if joint.kind in SINGLE and joint.name not in followers]
    return {joint.name: SHARE * min(joint.effort or 1.0, 100.0) * (-1.0) ** n for n, joint in enumerate(free)}


def run(robot: Articulation, seconds: float, torque: dict[str, float]) -> dict[str, np.ndarray]:
    """The coordinates of a run by name."""
    recording = artsim.simulate(
        artsim.Robot(robot, compile_model(robot)), steps=round(seconds / STEP), dt=STEP, torque=torque
    )
    return dict(zip(recording.labels.coord, np.asarray(recording["qpos"]).T, strict=True))


def apart(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> float:
    """The largest difference of a coordinate; nan for other names."""
    if first.keys() != second.keys():
        return math.nan
    return max((float(np.abs(first[name] - second[name]).max()) for name in first), default=0.0)


def in_mujoco(path: Path, seconds: float) -> np.ndarray:
    """The positions of a run by MuJoCo, controls sines of a tenth of their ranges."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    low, high = model.actuator_ctrlrange.T if model.nu else (np.zeros(0), np.zeros(0))
    reach = np.where(model.actuator_ctrllimited.astype(bool), high - low, 1.0)
    rows = []
    for _ in range(round(seconds / model.opt.timestep)):
        data.ctrl[:] = 0.1 * reach * np.sin(2.0 * np.pi * data.time + np.arange(model.nu))
        mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
    return np.array(rows)


def decade(distance: float) -> str:
    """The decade of a difference."""
    if math.isnan(distance):
        return "other coordinates"
    if distance == 0.0:
        return "equal"
    return f"below 1e{max(math.floor(math.log10(distance)) + 1, -15)}"


def main() -> None:
    """Go through the corpus and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most-links", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="part of the ids")
    parser.add_argument("--mujoco", action="store_true")
    words = parser.parse_args()
    corpus = Path(os.environ["ARTSIM_CORPUS"])
    entries = [e for e in json.loads((corpus / "index.json").read_text()) if words.only in e["id"]][:: words.every]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        for way in words.ways:
            first, second = way.split("-")
            if first != entry["format"]:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"robot{SUFFIXES[second]}"
                try:
                    robot = load_articulation(corpus / entry["path"])
                    if len(robot.links) > words.most_links or not robot.joints:
                        continue
                    written = write_articulation(robot, path, meshes="path")
                    shapes = {loss.kind for loss in written.losses.physical}
                    if shapes - {"geom", "link"}:
                        counts[way]["not sayable"] += 1
                        continue
                    again = load_articulation(path, base=robot.base, mesh_root="/")
                    again = with_own_names(again, written.losses)
                    torque = torques(robot)
                    distance = apart(run(robot, words.seconds, torque), run(again, words.seconds, torque))
                    counts[way][decade(distance)] += 1
                    if not distance < 1e-9:
                        print(f"{entry['id']} {way}: {distance:.2g}", file=sys.stderr, flush=True)
                    if words.mujoco and way == "mjcf-mjcf":
                        own = in_mujoco(corpus / entry["path"], words.seconds), in_mujoco(path, words.seconds)
                        near = float(np.abs(own[0] - own[1]).max()) if own[0].shape == own[1].shape else math.nan
                        counts["in MuJoCo"][decade(near)] += 1
                        if not near < 1e-9:
                            print(f"{entry['id']} in MuJoCo: {near:.2g}", file=sys.stderr, flush=True)
                except (ArtsimError, ValueError) as error:
                    counts[way]["not run"] += 1
                    print(f"{entry['id']} {way}: {str(error)[-150:]}", file=sys.stderr, flush=True)
    for way, row in counts.items():
        print(f"== {way}: " + ", ".join(f"{n} {word}" for word, n in sorted(row.items())))


if __name__ == "__main__":
    main()
