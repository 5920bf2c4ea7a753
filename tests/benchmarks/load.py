"""Loading beside MuJoCo, in turns in one process: `python tests/benchmarks/load.py [--corpus FOLDER] [--rounds N]`.

Ours: file to Articulation, arrays, equipment, labels (what a run needs); meshes are parsed where mass comes from them,
once, then cached by hash (the first column is the first load of the process, cache cold or warm as it was). Theirs:
MjModel.from_xml_path, which also builds what collision and rendering need. Medians, milliseconds. A 60-body robot
without meshes is made up; the others are twenty of the public models, small to large.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mujoco

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.equipment.equip import equip

COUNT = 20


def ours(path: Path) -> None:
    """File to arrays."""
    articulation = load_articulation(path)
    equip(articulation, compile_model(articulation))


def theirs(path: Path) -> None:
    """File to mjModel."""
    mujoco.MjModel.from_xml_path(str(path))


def milliseconds(work: Callable[[Path], None], path: Path) -> float:
    """Of one call."""
    start = time.perf_counter()
    work(path)
    return 1e3 * (time.perf_counter() - start)


def made_up(bodies: int) -> str:
    """A tree of capsules: limbs of five bodies on a free trunk, a position actuator per joint."""
    limbs = []
    for limb in range(bodies // 5):
        inner = ""
        for k in reversed(range(5)):
            name = f"{limb}_{k}"
            inner = (
                f'<body name="b{name}" pos="0.1 0 0"><joint name="j{name}" axis="0 1 0" range="-1 1" damping="0.1"/>'
                f'<geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.02"/><site name="s{name}"/>{inner}</body>'
            )
        limbs.append(inner)
    motors = "".join(f'<position joint="j{i}_{k}" kp="5"/>' for i in range(bodies // 5) for k in range(5))
    trunk = f'<body name="trunk"><freejoint/><geom size="0.1"/>{"".join(limbs)}</body>'
    return f"<mujoco><worldbody>{trunk}</worldbody><actuator>{motors}</actuator></mujoco>"


def chosen(corpus: Path) -> list[Path]:
    """Twenty public robots and examples, evenly spread by number of bodies."""
    entries = json.loads((corpus / "index.json").read_text())
    fit = [e for e in entries if e["format"] == "mjcf" and e["expect"] == "load" and e["tier"] in ("robot", "example")]
    fit.sort(key=lambda entry: (entry["nbody"] or 0, entry["id"]))
    found: list[Path] = []
    step = len(fit) / COUNT
    for k in range(COUNT):
        for entry in fit[int(k * step) :]:
            path = corpus / entry["path"]
            try:
                ours(path)
                theirs(path)
            except Exception:  # one of the two cannot load it: the next one then
                continue
            if path not in found:
                found.append(path)
                break
    return found


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("ARTSIM_CORPUS", "../shared/corpus")
    parser.add_argument("--corpus", type=Path, default=Path(default))
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        robot = Path(folder) / "made_up_60_bodies.xml"
        robot.write_text(made_up(60))
        models = [robot, *(chosen(arguments.corpus) if arguments.corpus.is_dir() else [])]
        print(f"{'model':44} {'first':>8} {'ours':>8} {'mujoco':>8}")
        for path in models:
            first = milliseconds(ours, path)
            taken: dict[str, list[float]] = {"ours": [], "mujoco": []}
            for _ in range(arguments.rounds):
                taken["ours"].append(milliseconds(ours, path))
                taken["mujoco"].append(milliseconds(theirs, path))
            medians = [statistics.median(values) for values in taken.values()]
            name = f"{path.parent.name}/{path.name}"[-44:]
            print(f"{name:44} {first:8.1f} {medians[0]:8.1f} {medians[1]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
