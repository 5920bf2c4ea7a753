"""Samples that are ended, rated and driven on the way: against numpy on recorded states, and inputs given before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.sim.foundation.errors import StoppedError, UsageError
from tests.conftest import ROOT

pytestmark = pytest.mark.small
ARM, BOX = ROOT / "robots" / "arm7.urdf", ROOT / "robots" / "floating_box.urdf"
OPTIONS: dict[str, Any] = {"samples": 11, "steps": 24, "spread": 0.4, "velocity_spread": 2.0, "seed": 3}


def rolled(robot: Any, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **options)
    assert isinstance(made, MemoryRollout)
    return made


@pytest.mark.parametrize("more", [{}, {"every": 5}, {"record": ["qpos", "link_position", "energy"], "every": 3}])
def test_samples_that_are_looked_at_are_those_that_are_not(more: dict[str, Any]) -> None:
    """To the byte, with any threads, with properties of their own and what the fleet records."""
    options = {**OPTIONS, **more, "randomise": {"mass": (0.8, 1.2), "gravity": (0.5, 1.0)}}
    torque = np.random.default_rng(2).normal(size=(11, 4, 7))
    plain = rolled(ARM, **options, torque=torque)
    for threads in (1, 2):
        made = rolled(ARM, **options, torque=torque, until="time > 100", threads=threads)
        for name in plain.variables:
            assert made[name].tobytes() == plain[name].tobytes(), name


def test_samples_end_where_they_should_and_cost_what_numpy_says(tmp_path: Path) -> None:
    robot = artsim.load(ARM)
    whole = rolled(robot, **OPTIONS)
    until, cost = "joint_2 > 0.3 or abs(joint_4.velocity) > 1.2", "sum(qpos ** 2) + 0.1 * norm(qvel) + time"
    made = rolled(robot, **OPTIONS, until=until, cost=cost)
    qpos, qvel = whole["qpos"], whole["qvel"]
    ends = (qpos[:, :, 1] > 0.3) | (np.abs(qvel[:, :, 3]) > 1.2)
    first = np.where(ends.any(axis=1), ends.argmax(axis=1), 24)
    assert 0 < np.count_nonzero(first < 24) < 11 and len(set(first.tolist())) > 3
    each = (qpos**2).sum(axis=2) + 0.1 * np.linalg.norm(qvel, axis=2) + whole.time
    for k, end in enumerate(first.tolist()):
        assert made["status"][k] == (4 if end < 24 else 1)
        assert made["n_valid"][k] == end
        np.testing.assert_allclose(made["cost"][k], each[k, :end].sum(), rtol=1e-12)
        assert made["qpos"][k, :end].tobytes() == qpos[k, :end].tobytes()
        assert np.isnan(made["qpos"][k, end:]).all()
        if end < 24:
            np.testing.assert_array_equal(made["final_qpos"][k], qpos[k, end])
    assert made.outcome.tally.ended == np.count_nonzero(first < 24)
    assert made.stopped == 0 and made.outcome.steps == first.sum()
    words = ["--samples", 11, "--steps", 24, "--spread", 0.4, "--velocity-spread", 2, "--seed", 3, "--until", until]
    words = ["rollout", ARM, *words, "--cost", cost, "-o", tmp_path / "out.h5"]
    for more in ((), ("--shards", 2, "--force")):
        done = CliRunner().invoke(cli, [*map(str, (*words, *more))])
        assert done.exit_code == 0, done.output
        with artsim.open(tmp_path / "out.h5") as stored:
            for name in made.variables:
                assert stored[name].tobytes() == made[name].tobytes(), name
        assert f"{made.outcome.tally.ended} samples ended by --until" in done.output
        assert CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / "out.h5")]).exit_code == 0
        told = CliRunner().invoke(cli, ["info", str(tmp_path / "out.h5")]).output
        assert f"0 stopped early, {made.outcome.tally.ended} ended by --until" in told


def test_costs_of_inputs_are_of_those_that_act() -> None:
    torque = np.random.default_rng(4).normal(size=(11, 6, 7))
    made = rolled(ARM, **OPTIONS, torque=torque, cost="dot(action, action)")
    np.testing.assert_allclose(made["cost"], 4 * (torque**2).sum(axis=(1, 2)), rtol=1e-12)
    made = rolled(ARM, **OPTIONS, policy=lambda qpos, qvel, time: -qvel, cost="norm(action + qvel)")
    assert not made["cost"].any()


def test_links_are_where_they_are_in_the_world() -> None:
    """A box falls, and its samples end below a height; every 4th row is recorded."""
    options: dict[str, Any] = {
        "samples": 5,
        "steps": 80,
        "spread": {"floating_joint.z": 0.1},
        "record": ["link_position"],
    }
    made = rolled(
        artsim.load(BOX), **options, until="link['box'].z < 0.45", every=4, q0={"floating_joint.z": 0.5}, contacts=False
    )
    whole = rolled(artsim.load(BOX), **options, q0={"floating_joint.z": 0.5}, contacts=False)
    height = whole["link_position"][:, :, whole.labels.link.index("box"), 2]
    ends = np.where((height < 0.45).any(axis=1), (height < 0.45).argmax(axis=1), 80)
    assert ends.min() > 0 or (ends == 0).any()
    np.testing.assert_array_equal(made["n_valid"], -(-ends // 4))
    for k, valid in enumerate(made["n_valid"].tolist()):
        rows = made["link_position"][k]
        np.testing.assert_allclose(rows[:valid], whole["link_position"][k, ::4][:valid], rtol=0, atol=1e-13)
        assert np.isnan(rows[valid:]).all()


def test_a_policy_is_asked_for_all_samples_at_once_and_drives_them() -> None:
    """Its inputs, given before, make the same samples."""
    robot, torque = artsim.load(ARM), np.random.default_rng(5).normal(size=(11, 6, 7))
    asked = []

    def policy(qpos: Any, qvel: Any, time: float) -> Any:
        assert qpos.shape == (11, 7) and qvel.shape == (11, 7)
        asked.append(time)
        return torque[:, len(asked) - 1]

    made = rolled(robot, **OPTIONS, policy=policy, hold=4, threads=2)
    assert asked == pytest.approx(np.arange(6) * 0.008)
    given = rolled(robot, **OPTIONS, torque=torque)
    for name in given.variables:
        assert made[name].tobytes() == given[name].tobytes(), name
    servo = rolled(robot, **OPTIONS, stiffness=50, damping=5, policy=lambda qpos, qvel, time: {"target": 0 * qpos})
    still = rolled(robot, **OPTIONS, stiffness=50, damping=5, target=np.zeros(7))
    assert servo["qpos"].tobytes() == still["qpos"].tobytes()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"until": "joint_9 > 1"}, r"until: 'joint_9' is not known; did you mean 'joint_"),
        ({"until": "qpos > 1"}, "until: 'qpos > 1' is a vector of 7, want a number"),
        ({"cost": "tau_drive.joint_1"}, "cost: 'tau_drive' is of a step, not of the state before it"),
        ({"until": "time > 1", "solver": "pgs", "ground": True}, "packs lack solver pgs"),
        ({"hold": 2}, "hold is for the inputs that a policy gives"),
        ({"policy": lambda q, v, t: np.zeros((3, 6))}, r"policy: torque has shape \(3, 6\), want \(3, 7\), or \(7,\)"),
        ({"policy": lambda q, v, t: {"tork": 0}}, "policy: 'tork' is not known; did you mean 'torque'"),
        ({"policy": 1}, "policy is 1, want a function"),
    ],
)
def test_what_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        artsim.rollout(ARM, samples=3, steps=4, **given)


def test_numbers_that_are_none_stop_the_rollout() -> None:
    with pytest.raises(StoppedError, match=r"cost of sample 0: division by 0 in '1 / time'"):
        artsim.rollout(ARM, samples=3, steps=4, cost="1 / time")
    with pytest.raises(StoppedError, match="policy: torque of sample 1 at t = 0 s is not finite"):
        bad = np.zeros((3, 7))
        bad[1, 2] = np.nan
        artsim.rollout(ARM, samples=3, steps=4, policy=lambda q, v, t: bad)


def test_a_roller_that_has_run_bears_nothing_of_before() -> None:
    """Other expressions, properties, inputs and policies in turn, of one plan, are as in a new one."""
    robot = artsim.load(ARM)
    torque = np.random.default_rng(7).normal(size=(11, 2, 7))
    calls: list[dict[str, Any]] = [
        {"cost": "norm(qvel)", "torque": torque},
        {"cost": "norm(qvel)"},
        {"cost": "norm(qvel)", "randomise": {"mass": (0.5, 2.0)}},
        {"cost": "norm(qvel)", "until": "joint_2 > 0.3"},
        {"cost": "norm(qvel)", "policy": lambda qpos, qvel, time: -qvel},
        {"cost": "norm(qvel)"},
    ]
    for call in calls:
        made, fresh = rolled(robot, **OPTIONS, **call), rolled(artsim.load(ARM), **OPTIONS, **call)
        for name in fresh.variables:
            assert made[name].tobytes() == fresh[name].tobytes(), (call.keys(), name)
        assert made.outcome.solved_alone == fresh.outcome.solved_alone
