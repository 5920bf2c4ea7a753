"""Every public MJCF model in a run: the forces and the acceleration of one step against MuJoCo, then a hundred steps.

The first stage of RK4 is explicit, as MuJoCo's forward dynamics are: without contacts, limits, friction and equalities
both compute M⁻¹ (actuators + passive forces - bias) at a random state with random controls and activations.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
import pytest

from artsim.io.runs.prepare import prepare
from artsim.io.runs.run import run
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.length_range import with_length_ranges
from tests.conftest import corpus_entries
from tests.equipment.mujoco_tendons import dropped_inertia

pytestmark = pytest.mark.corpus
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

Array = npt.NDArray[Any]
CHUNKS = 10
DOFS = 1000  # larger ones (five of them) take minutes
STEPS = 100
FORCES = ("tau_drive", "tau_passive", "tau_tendon")
# a test of the engine's own without dynamics: four slides in space, M is singular; artsim refuses to run it
SINGULAR = {"mjcf.mujoco.mjx_mujoco_mjx_test_data_actuator_general_dyntype"}
ENTRIES = [entry for entry in corpus_entries("mjcf") if entry["expect"] == "load"]

worst: dict[str, tuple[float, str]] = {}
ran: Counter[tuple[str, str]] = Counter()


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """The tables, after all models."""
    yield
    print()
    for (tier, outcome), count in sorted(ran.items()):
        print(f"{tier:8} {outcome:12} {count:4}")
    for name, (error, model) in worst.items():
        print(f"{name:12} {error:.1e}  {model}")


def readable(entry: dict[str, Any]) -> Articulation | None:
    try:
        return load_articulation(entry["path"])
    except ModelError as error:
        assert "not supported yet" in str(error)
        return None


# ------------------------------------------------------------------ one step


def smooth(robot: Articulation) -> Articulation:
    """The robot without what only constraints do."""
    joints = tuple(
        replace(joint, friction=0.0, lower=None, upper=None) if joint.kind != "fixed" else joint
        for joint in robot.joints
    )
    tendons = tuple(replace(tendon, friction=0.0, lower=None, upper=None) for tendon in robot.tendons)
    return replace(robot, joints=joints, tendons=tendons, couplings=(), tendon_couplings=(), loops=())


def theirs(path: str, robot: Articulation) -> tuple[Any, Any]:
    """MuJoCo's model and its data after mj_forward at a random state, constraints switched off.

    Its limits give way where it looks for length ranges: it takes ours, which must be near.
    """
    model = mujoco.MjModel.from_xml_path(path)
    for number, actuator in enumerate(robot.actuators):
        if actuator.length_range is not None:
            low, high = actuator.length_range
            np.testing.assert_allclose(model.actuator_lengthrange[number], (low, high), atol=0.03 * (high - low))
            model.actuator_lengthrange[number] = low, high
    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= bits.mjDSBL_CONTACT | bits.mjDSBL_EQUALITY | bits.mjDSBL_LIMIT | bits.mjDSBL_FRICTIONLOSS
    data = mujoco.MjData(model)
    rng = np.random.default_rng(zlib.crc32(Path(path).name.encode()))
    data.qpos[:] = model.qpos0
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.3)
    data.qvel[:] = rng.normal(size=model.nv)
    data.act[:] = rng.uniform(0, 1, size=model.na)
    data.ctrl[:] = rng.uniform(-0.5, 1.0, size=model.nu)
    mujoco.mj_forward(model, data)
    return model, data


def ours(robot: Articulation, data: Any) -> dict[str, Array]:
    """The recorded row of one step from the same state."""
    record = (*FORCES, "qacc", "tau_applied", "qpos")
    plan = prepare(robot, RunConfig(steps=1, integrator="rk4", record=record, contacts=False))
    plan.qpos[:], plan.qvel[:] = data.qpos, data.qvel
    plan = replace(plan, activation=np.array(data.act), control=np.array(data.ctrl))
    rows: dict[str, Array] = {}
    run(plan, on_block=lambda block, _: rows.update({name: values[0].copy() for name, values in block.items()}))
    return rows


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_forces_and_accelerations_are_mujocos(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in ENTRIES[chunk::CHUNKS]:
        robot = readable(entry)
        if robot is None or entry["id"] in SINGULAR:
            continue
        robot = with_length_ranges(robot, [])
        model, data = theirs(entry["path"], robot)
        if not 0 < model.nv <= DOFS or model.nflex or not np.all(np.isfinite(data.qacc_smooth)):
            continue
        errors = compared(robot, model, data)
        for name, error in errors.items():
            worst[name] = max(worst.get(name, (-1.0, "")), (error, entry["id"]))
        wrong += [f"{entry['id']}: {name} {error:.1e}" for name, error in errors.items() if not error < 1e-9]
    assert wrong == []


def compared(robot: Articulation, model: Any, data: Any) -> dict[str, float]:
    """Errors of the forces, and of M q̈ (a light link's acceleration may be anything)."""
    row = ours(smooth(robot), data)
    force = np.abs(data.qfrc_bias).max() + np.abs(data.qfrc_actuator).max() + np.abs(data.qfrc_passive).max() + 1e-6
    passive = sum(row.get(name, np.zeros(model.nv)) for name in FORCES[1:])
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    errors = {"actuators": np.abs(row["tau_drive"] - data.qfrc_actuator).max() / force}
    if not any("leaves out the armature" in str(note) for note in robot.notes):  # what springdamper becomes
        errors["passive"] = np.abs(passive - data.qfrc_passive).max() / force
        if not np.any(dropped_inertia(model, data)):  # else they move by another M
            errors["acceleration"] = np.abs(M @ (row["qacc"] - data.qacc_smooth)).max() / force
    return {name: float(error) for name, error in errors.items()}


# ------------------------------------------------------------------ a hundred


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_models_run(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in ENTRIES[chunk::CHUNKS]:
        robot = readable(entry)
        if robot is None or entry["id"] in SINGULAR:
            ran[entry["tier"], "refused"] += 1
            continue
        outcome = run(prepare(robot, RunConfig(steps=STEPS, contacts=False)))  # with: test_corpus_contact.py
        ran[entry["tier"], "ran"] += 1
        if outcome.simulation.step != STEPS or not np.all(np.isfinite(outcome.simulation.qpos)):
            wrong.append(f"{entry['id']}: {outcome.simulation.step} steps")
    assert wrong == []
