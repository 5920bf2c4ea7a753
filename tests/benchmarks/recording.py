"""What writing costs: `python tests/benchmarks/recording.py [--model g1_29dof.urdf] [--steps N]`.

Of a humanoid (default: the shipped quadruped, floating): microseconds per step and bytes of recording all links'
Jacobians, compact as files have them, beside the dense arrays written by plain h5py. Of steps of 47.8 kB: artsim's
Recorder beside plain h5py with the same chunks, in MB/s. And peak memory over the number of steps. Times are CPU
times of the process, its system calls included: what else runs on the machine and its disk do not count.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import artsim
from artsim.io.format import schema
from artsim.io.output_file.model_record import model_record
from artsim.io.runs.named import run_labels
from artsim.io.runs.prepare import held_controls, prepare
from artsim.io.runs.recorder import Recorder
from artsim.io.runs.run import run
from artsim.sim.runs.configuration import RunConfig

QUADRUPED = Path(__file__).parents[2] / "robots" / "quadruped.urdf"
STEP_BYTES = 47_800
ROUNDS = 7


def seconds(function: Any) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def in_turns(work: dict[str, Any]) -> dict[str, float]:
    """The least seconds of each over ROUNDS, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, function in work.items():
            taken[name].append(function())
    return {name: min(times) for name, times in taken.items()}


def jacobians(model: str, base: str, steps: int, folder: Path) -> None:
    """Microseconds per step and bytes of recording Jacobians."""
    robot = artsim.load(model, base=base, meshes=False)
    default = schema.DEFAULT_RECORDED
    plain, full = folder / "plain.h5", folder / "full.h5"

    def simulated(record: tuple[str, ...], output: Path | None) -> float:
        config = RunConfig.from_mapping({**robot.loaded_with, "steps": steps, "record": record})
        plan = prepare(robot.articulation, config)
        return seconds(lambda: run(plan, output=output, force=True))

    dense = np.zeros((64, len(robot.links), 6, robot.nv))
    times = in_turns(
        {
            "plain": lambda: simulated(default, plain),
            "with Jacobians": lambda: simulated((*default, "jacobian"), full),
            "plain, no file": lambda: simulated(default, None),
            "with, no file": lambda: simulated((*default, "jacobian"), None),
            "dense by h5py": lambda: seconds(lambda: plain_h5py(folder / "dense.h5", dense, steps)),
        }
    )
    per_step = {name: 1e6 * taken / steps for name, taken in times.items()}
    more = full.stat().st_size - plain.stat().st_size
    print(f"{Path(model).name}: {len(robot.links)} links, {robot.nv} dofs, {steps} steps")
    print(
        f"  step with default record   {per_step['plain']:7.2f} us   ({per_step['plain, no file']:.2f} without a file)"
    )
    print(
        f"  all Jacobians on top       {per_step['with Jacobians'] - per_step['plain']:7.2f} us   "
        f"({per_step['with, no file'] - per_step['plain, no file']:.2f} without a file), {more / steps:8.0f} bytes"
    )
    print(f"  dense, writing alone       {per_step['dense by h5py']:7.2f} us, {dense[0].nbytes:8d} bytes")


def plain_h5py(path: Path, block: Any, steps: int) -> None:
    """A dataset that grows by blocks, each a chunk, into a new file."""
    rows = len(block)
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        data = file.create_dataset(
            "x", (0, *block.shape[1:]), "f8", chunks=block.shape, maxshape=(None, *block.shape[1:])
        )
        file.swmr_mode = True
        for start in range(0, steps, rows):
            data.resize(start + rows, 0)
            data[start : start + rows] = block
            data.flush()


def writing(steps: int, folder: Path) -> None:
    """MB/s of 47.8 kB steps, Recorder and plain h5py."""
    robot = artsim.load(QUADRUPED, base="floating")
    plan = prepare(robot.articulation, RunConfig.from_mapping({**robot.loaded_with, "steps": steps}))
    columns = STEP_BYTES // 48
    labels = run_labels(plan)._replace(jacobian_link=(1,) * columns, jacobian_dof=(0,) * columns)
    block = np.random.default_rng(0).normal(size=((1 << 20) // STEP_BYTES, columns, 6))

    def ours() -> float:
        recorder = Recorder(
            folder / "ours.h5",
            labels=labels,
            dt=plan.dt,
            model=model_record(robot.articulation),
            controls=held_controls(plan),
            provenance={},
            state={},
            variables=("jacobian",),
            steps_total=steps,
            force=True,
        )
        with recorder:
            return seconds(lambda: [recorder.write({"jacobian": block}) for _ in range(0, steps, len(block))])

    def theirs() -> float:
        return seconds(lambda: plain_h5py(folder / "theirs.h5", block, steps))

    times = in_turns({"artsim": ours, "h5py": theirs})
    for name, taken in times.items():
        print(f"steps of {block[0].nbytes} bytes, {name:7s} {steps * block[0].nbytes / taken / 1e6:7.0f} MB/s")
    print(f"  artsim / h5py {times['h5py'] / times['artsim']:.2f}")


def memory(model: str, base: str, folder: Path) -> None:
    """Peak memory of processes that record Jacobians."""
    command = [sys.executable, "-m", "artsim", "run", model, "--base", base, "--no-meshes", "--quiet", "--force"]
    for steps in (1_000, 10_000, 100_000):
        arguments = ["--record", "+jacobian", "--steps", str(steps), "-o", str(folder / "long.h5")]
        process = os.posix_spawn(sys.executable, [*command, *arguments], os.environ)
        usage: resource.struct_rusage = os.wait4(process, 0)[2]
        print(f"peak memory, {steps:7,d} steps with Jacobians {usage.ru_maxrss / 1024:.0f} MiB")


def main() -> None:
    """Everything there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(QUADRUPED))
    parser.add_argument("--base", default="floating")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to write; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        jacobians(arguments.model, arguments.base, arguments.steps, Path(name))
        writing(arguments.steps, Path(name))
        if arguments.memory:
            memory(arguments.model, arguments.base, Path(name))


if __name__ == "__main__":
    main()
