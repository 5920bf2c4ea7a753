"""Start-up beside MuJoCo: fresh processes in turns. `python tests/benchmarks/startup.py [--cold] [--memory]`.

Warm: `artsim --help`, and 1000 steps of the 7-dof arm from URDF to HDF5, against a Python script that does the same job
with MuJoCo. Wall seconds, and CPU seconds of all threads and child processes, which change less with what else runs on
the machine. --cold adds the first run with an empty kernel cache; --memory the peak memory over the number of steps.
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
    return taken_by(command, **environment)[0]


def taken_by(command: list[str], **environment: str) -> tuple[float, float]:
    """Wall and CPU seconds of one process."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    end, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return end - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for command in commands.values():
            wall(command)  # page cache, byte code, kernels
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                taken[name].append(taken_by(command))
        for name, times in taken.items():
            for what, seconds in zip(("wall", "CPU"), zip(*times, strict=True), strict=True):
                print(f"{name:28s} {what:4s}  min {min(seconds):.3f} s   median {statistics.median(seconds):.3f} s")
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
