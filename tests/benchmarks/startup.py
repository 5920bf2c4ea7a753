"""Start-up beside MuJoCo: fresh processes in turns, wall seconds. `python tests/benchmarks/startup.py [--cold]`.

Warm: `artsim --help`, and 1000 steps of the 7-dof arm from URDF to HDF5, against a Python script that does the same job
with MuJoCo. --cold adds the first run with an empty kernel cache; --memory the peak memory over the number of steps.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARM = Path(__file__).parents[2] / "robots" / "arm7.urdf"
PEER = """
import h5py, mujoco, numpy as np
from lxml import etree
root = etree.parse({urdf!r}).getroot()
for link in root.iter("link"):
    for element in [*link.findall("visual"), *link.findall("collision")]:
        link.remove(element)
model = mujoco.MjModel.from_xml_string(etree.tostring(root).decode()); data = mujoco.MjData(model)
q = np.empty((1000, model.nq)); v = np.empty((1000, model.nv))
for k in range(1000):
    mujoco.mj_step(model, data); q[k] = data.qpos; v[k] = data.qvel
with h5py.File({out!r}, "w") as file:
    file["q"] = q; file["v"] = v
"""


def wall(command: list[str], **environment: str) -> float:
    """Seconds of one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def main() -> None:
    """Everything there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    artsim = [sys.executable, "-m", "artsim"]
    with tempfile.TemporaryDirectory() as folder:
        out, theirs = f"{folder}/a.h5", f"{folder}/b.h5"
        job = [*artsim, "run", str(ARM), "--steps", "1000", "--force", "-o", out]
        commands = {
            "artsim --help": [*artsim, "--help"],
            "artsim run, 1000 steps": job,
            "mujoco script, 1000 steps": [sys.executable, "-c", PEER.format(urdf=str(ARM), out=theirs)],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            wall(command)  # page cache, byte code, kernels
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                taken[name].append(wall(command))
        for name, times in taken.items():
            print(f"{name:28s} min {min(times):.3f} s   median {statistics.median(times):.3f} s")
        if arguments.cold:
            print(f"first run, kernels compiled  {wall(job, ARTSIM_CACHE_DIR=f'{folder}/cache'):.1f} s")
        if arguments.memory:
            for steps in (10_000, 100_000, 1_000_000):
                pid = os.posix_spawn(
                    sys.executable,
                    [*artsim, "run", str(ARM), "--quiet", "--steps", str(steps), "--force", "-o", out],
                    os.environ,
                )
                usage: resource.struct_rusage = os.wait4(pid, 0)[2]
                print(f"peak memory, {steps:9,d} steps  {usage.ru_maxrss / 1024:.0f} MiB, all default variables")


if __name__ == "__main__":
    main()
