"""`--assemble` on all models with loops, from starts drawn within the limits: `python -m tests.benchmarks.assembly`.

Models are those of robots/ and of $ARTSIM_CORPUS; URDF files there that name the two frames of a loop (closedloop1_A,
closedloop1_B; welded where their names say 6D, else pinned at a point) get these loops, and their revolute joints
without bounds, which URDF locks at 0, are free to turn. Each start ends closed, to 1e-10 m and rad by the errors in
numpy, within the limits of joints, or is told to stay open; nothing else is right. A model that `--assemble` refuses
has its reason beside it. Of starts that stay open numpy's Newton method without limits tells how many it closes.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.inputs.sampling import open_samples
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ArtsimError, ModelError
from artsim.sim.ik.loop_freedom import _Rows
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.closed_start import assembled
from tests.conftest import corpus
from tests.simulation import ROBOTS

CLOSED = 1e-10  # [m or rad]


def models(only: str) -> Iterator[Path]:
    """The models of robots/, then those of the corpus."""
    shipped = [path for path in sorted(ROBOTS.iterdir()) if path.suffix in (".urdf", ".xml", ".sdf")]
    yield from (path for path in shipped if only in path.name)
    folder = corpus()
    if folder is not None:
        for entry in json.loads((folder / "index.json").read_text()):
            if entry["expect"] == "load" and only in entry["path"]:
                yield folder / entry["path"]


def told_of(path: Path, starts: int) -> dict[str, Any] | None:
    """The outcomes of a model's starts; None for a model without loops or couplings that are rows."""
    with tempfile.TemporaryDirectory() as folder:
        loops = Path(folder, "loops.toml")
        loops.write_text(loops_of(path))
        more: dict[str, Any] = {}
        if loops.stat().st_size:
            more, unbounded = {"loops": loops}, Path(folder, path.name)
            unbounded.write_text(without_locks(path.read_text()))
            path = unbounded
        try:
            robot = Robot.of(load_articulation(path, meshes=False, density=1000.0, **more))
        except ModelError:  # masses come from its meshes
            robot = Robot.of(load_articulation(path, density=1000.0, **more))
    rows = _Rows(robot.compiled, robot.equipped)
    if not rows.names:
        return None
    q = np.empty((starts, robot.nq))
    open_samples(robot.model, robot.labels, ("qpos",), robot.links, rows=starts, seed=1).read(0, starts, {"qpos": q})
    q[0] = robot.reference
    told: dict[str, Any] = {"rows": len(rows.names), "closed": 0, "open": 0, "wrong": 0, "gap": 0.0, "by numpy": 0}
    began = time.perf_counter()
    for start in q:
        try:
            found = assembled(robot, robot.equipped, "*", (), start)
        except ArtsimError as error:
            told["open"] += 1
            told.setdefault("why", str(error))
            told["by numpy"] += rows.closed(start)[0] < CLOSED
            continue
        gap = float(np.abs(rows.at(found)[0]).max())
        told["gap"] = max(told["gap"], gap)
        right = gap <= CLOSED and keeps_limits(robot, found)
        told["closed" if right else "wrong"] += 1
    return {**told, "ms": 1e3 * (time.perf_counter() - began) / starts}


def without_locks(text: str) -> str:
    """The URDF text with continuous joints for revolute ones without bounds."""

    def freed(joint: re.Match[str]) -> str:
        found = joint.group(0)
        return found if "lower=" in found else found.replace('type="revolute"', 'type="continuous"')

    return re.sub(r"<joint\b.*?</joint>", freed, text, flags=re.S)


def loops_of(path: Path) -> str:
    """The loops that the names of links in a URDF file mean, as TOML."""
    names = re.findall(r'<link name="(closed_?loop[^"]*)"', path.read_text(errors="ignore"))
    found = []
    for name in names:
        other = re.sub(r"A(_[36]D)?$", r"B\1", name)
        if other != name and other in names:
            kind = "weld" if "6d" in f"{path.parent.name} {name}".lower() else "connect"
            found.append(f'[[loop]]\nkind = "{kind}"\nlink_a = "{name}"\nlink_b = "{other}"\npoint_b = [0, 0, 0]\n')
            found += ["rpy_b = [0, 0, 0]\n"] if kind == "weld" else []
    return "".join(found)


def keeps_limits(robot: Robot, q: Any) -> bool:
    """True for a configuration within the limits of all joints."""
    coords, model = robot.model.dof_coord, robot.model
    one = coords >= 0
    return bool(((q[coords[one]] >= model.lower[one] - 1e-9) & (q[coords[one]] <= model.upper[one] + 1e-9)).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--only", default="")
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = dict.fromkeys(("models", "closed", "open", "wrong"), 0)
    for path in models(words.only):
        try:
            told = told_of(path, words.starts)
        except ArtsimError:
            continue  # not read: corpus_load tells why
        if told is None:
            continue
        counts["models"] += 1
        for name in ("closed", "open", "wrong"):
            counts[name] += told[name]
        name = "/".join(path.parts[-2:])
        line = f"{name:44} {told['rows']:3} rows: {told['closed']:3} closed to {told['gap']:.1e}"
        line += f", {told['open']:3} told open"
        line += f" ({told['by numpy']} close without limits)" if told["open"] else ""
        line += f", {told['wrong']} WRONG" if told["wrong"] else ""
        print(f"{line}; {told['ms']:.3g} ms each" + (f": {told['why']}" if "why" in told else ""), flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
