"""Derivatives of the steps of a rollout, beside those of runs and differences of the samples themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.sim.foundation.errors import UsageError
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
OPTIONS: dict[str, Any] = {"samples": 3, "steps": 6, "every": 2, "velocity_spread": 0.5, "spread": 0.3, "seed": 5}


def rolled(**options: Any) -> MemoryRollout:
    made = artsim.rollout(ARM, **{**OPTIONS, **options})
    assert isinstance(made, MemoryRollout)
    return made


@pytest.mark.small
def test_steps_of_samples_are_derived_as_those_of_a_run() -> None:
    """By torques of a policy that act in the step, and by names of inputs; the samples stay as they are."""

    def policy(qpos: Any, qvel: Any, time: float) -> Any:
        return np.sin(3.0 * qpos) - 0.2 * qvel

    # of an integrator that expects no change of velocities from those before
    options: dict[str, Any] = {"policy": policy, "integrator": "semi-implicit-euler"}
    plain, made = rolled(**options), rolled(**options, derivatives=True, threads=2)
    assert plain["qpos"].tobytes() == made["qpos"].tobytes()
    found = made.derivatives
    assert found.A.shape == (3, 3, 14, 14) and found.B.shape == (3, 3, 14, 7) and found.inputs[0] == "torque:joint_1"
    assert not found.side.any() and (found.error < 1e-6).all() and len(found.states) == 14
    for sample, row in ((0, 0), (2, 1), (1, 2)):
        state = made["qpos"][sample, row], made["qvel"][sample, row]
        simulation = artsim.Simulation(artsim.load(ARM), q0=state[0], v0=state[1], integrator=options["integrator"])
        simulation.give("torque", policy(*state, 0.0))
        own = simulation.derivatives(["torque"])
        np.testing.assert_allclose(found.A[sample, row], own.A, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.B[sample, row], own.B, rtol=0, atol=1e-7)
    some = rolled(**options, derivatives=["torque:joint_2", "torque:joint_3"]).derivatives
    np.testing.assert_array_equal(some.B, found.B[..., 1:3])
    assert some.inputs == ("torque:joint_2", "torque:joint_3")


@pytest.mark.small
def test_derivatives_predict_other_samples() -> None:
    """A chain of them, step by step, is the derivative of the end by the start: against samples that begin nearby."""
    base = np.full((1, 7), 0.2)
    change = 1e-6 * np.random.default_rng(2).normal(size=(4, 7))
    starts = np.concatenate([base + change, base - change])
    options: dict[str, Any] = {"samples": 8, "steps": 5, "every": 1, "spread": 0.0, "velocity_spread": 0.0}
    options["integrator"] = "semi-implicit-euler"
    made = rolled(start={"qpos": base}, derivatives=True, **{**options, "samples": 1})
    ends = rolled(start={"qpos": starts}, **options)
    end = np.concatenate([ends["final_qpos"], ends["final_qvel"]], axis=1)
    product = np.eye(14)
    for step in made.derivatives.A[0]:
        product = step @ product
    truth = (end[:4] - end[4:]) / 2.0
    np.testing.assert_allclose(change @ product[:, :7].T, truth, rtol=0, atol=1e-7 * np.abs(truth).max())


@pytest.mark.small
def test_samples_that_end_have_none_from_there_on(tmp_path: Path) -> None:
    made = rolled(until="time > 0.003", derivatives=True)
    found = made.derivatives
    assert (made["n_valid"] < 3).all()
    for sample in range(3):
        valid = int(made["n_valid"][sample])
        assert np.isfinite(found.A[sample, :valid]).all() and np.isnan(found.A[sample, valid:]).all()
    with pytest.raises(UsageError, match="derivatives are kept in memory"):
        artsim.rollout(ARM, **OPTIONS, derivatives=True, output=tmp_path / "made.h5")
    with pytest.raises(UsageError, match="'tork' is not known; did you mean 'torque'"):
        rolled(derivatives=["tork"])
    with pytest.raises(UsageError, match="the rollout has no derivatives"):
        _ = rolled().derivatives
