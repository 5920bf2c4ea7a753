"""Islands solved side by side: the bytes of a single thread, whichever thread solves which."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_text
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.cli.test_bad_inputs import artsim
from tests.contact.test_contact_closed_forms import FLOOR, free, mjcf


def heap_and_towers() -> str:
    """A crowd of grains, which is swept, and towers of boxes, whose contacts take Newton steps."""
    rng = np.random.default_rng(3)
    grains = [
        (f"{0.02001 * i + x} {0.02001 * j + y} {0.02 * k + 0.01}", 'type="sphere" size=".01" mass=".004"')
        for i in range(7)
        for j in range(7)
        for k in range(4)
        for x, y in [rng.uniform(-5e-6, 5e-6, 2)]
    ]
    boxes = [
        (f"{0.5 + 0.3 * tower} {0.01 * k} {0.1 * k + 0.05}", 'type="box" size=".05 .05 .05" mass="1"')
        for tower in range(40)
        for k in range(4)
    ]
    bodies = (free(geom, place, name=f"b{n}") for n, (place, geom) in enumerate([*grains, *boxes]))
    return mjcf(FLOOR + "".join(bodies))


@pytest.mark.skipif(disabled(), reason="kernels that run as Python run one after the other")
def test_the_bytes_of_a_single_thread() -> None:
    record = ("qpos", "qvel", "solver_residual", "solver_iterations")
    plan = plan_run(
        load_text(heap_and_towers(), name="scene.xml"),
        RunConfig(steps=60, dt=2e-3, contacts=True, max_contacts=10**4, record=record),
    )
    runs = {}
    for threads in (1, 2, 3):
        simulation = Simulation(plan, held_controls(plan), threads=threads)
        rows = [block.rows for block in simulation.blocks()]
        assert simulation.step == 60
        assert (simulation.times_helped > 0) == (threads > 1)
        runs[threads] = {name: b"".join(part[name].tobytes() for part in rows) for name in record}
    assert runs[2] == runs[1]
    assert runs[3] == runs[1]


def test_threads_of_a_command(tmp_path: Path) -> None:
    """One robot has nothing to share; the file says how many threads there were."""
    path = tmp_path / "run.h5"
    done = artsim("run", "arm7", "--steps", "10", "--threads", "2", "-o", str(path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == 10
    with h5py.File(path) as file:
        assert file["provenance"].attrs["threads"] == 2
    refused = artsim("run", "arm7", "--steps", "10", "--threads", "0")
    assert refused.exit_code == 2
    assert "--threads" in refused.output
