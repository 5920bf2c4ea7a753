"""Pushes of each sample of a rollout: momentum changes by exactly the impulse; from seeds, arrays and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.rollout import MemoryRollout, verify_rollout
from artsim.io.rollouts.samples import opened_runs
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.controls import Controls
from tests.conftest import ROOT

pytestmark = pytest.mark.small
BOX, ARM = ROOT / "robots" / "floating_box.urdf", ROOT / "robots" / "arm7.urdf"
MASS = 6.0
STEPS, DT = 40, 0.002
PUSHES = ["box=3,-2,1@0.02", "box=0,0,5,0.1,0,0.2@0.06"]
DRAWN = {"push": (-1.0, 1.0), "push_time": (0.0, 0.0779)}
PAIR = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" mass="1" pos=".3 0 0"/>
<body name="end" pos=".6 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" mass="1" pos=".3 0 0"/></body></body>
</worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""
OPTIONS: dict[str, Any] = {"samples": 11, "steps": STEPS, "dt": DT, "gravity": (0, 0, 0), "push": PUSHES, "seed": 4}


def rolled(robot: Any = BOX, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **{**OPTIONS, **options})
    assert isinstance(made, MemoryRollout)
    return made


def command(*words: object) -> Any:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.mark.parametrize("more", [{}, {"until": "time > 100"}, {"coordinates": "maximal"}])
def test_momentum_changes_by_the_impulse_in_the_step_of_its_time(more: dict[str, Any]) -> None:
    """Δv = J / m of a free box, in packs, in samples that are looked at, and one sample at a time."""
    made = rolled(randomise=DRAWN, **more)
    impulse, time = made["push_impulse"], made["push_time"]
    assert impulse.shape == (11, 2, 6) and time.shape == (11, 2) and made.labels.push == ("box", "box.2")
    most = np.array([[3, 2, 1, 0, 0, 0], [0, 0, 5, 0.1, 0, 0.2]])
    assert (np.abs(impulse) <= most).all() and (np.abs(impulse).max(axis=0) > 0.6 * most - 1e-12).all()
    assert 0.0 <= time.min() < 0.02 and 0.06 < time.max() <= 0.0779
    done = np.arange(STEPS)[None, :, None] >= np.ceil(time / DT - 1e-9)[:, None, :] + 1
    expected = np.einsum("srp,spk->srk", done, impulse[:, :, :3]) / MASS
    np.testing.assert_allclose(made["qvel"][:, :, :3], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(made["final_qvel"][:, :3], impulse[:, :, :3].sum(axis=1) / MASS, rtol=0, atol=1e-12)


def test_a_sample_is_a_run_with_its_pushes() -> None:
    """Of a robot with drives, torques that change, and a wrench that acts beside them."""
    robot, rng = artsim.load(ARM), np.random.default_rng(1)
    torque = rng.normal(size=(11, 8, robot.nv))
    same: dict[str, Any] = {"stiffness": 50, "damping": 3, "wrench": {"link_5": (1, 2, 3)}, "gravity": (0, 0, -9.81)}
    given = {**same, "push": [("link_7", (0.5, 0.2, -0.3), 0.01), ("link_4", (1, 1, 0), 0.02)]}
    made = rolled(robot, **given, torque=torque, randomise=DRAWN, velocity_spread=0.4)
    zero = np.zeros((8, robot.nv))
    for sample in (0, 7, 10):
        own = [
            (link, tuple(made["push_impulse"][sample, k]), float(made["push_time"][sample, k]))
            for k, link in enumerate(("link_7", "link_4"))
        ]
        start = {"q0": made["qpos"][sample, 0], "v0": made["qvel"][sample, 0]}
        controls = Controls(np.arange(8) * 5, torque[sample], zero, zero)
        run = artsim.simulate(robot, steps=STEPS, dt=DT, **{**same, "push": own}, **start, controls=controls)
        np.testing.assert_allclose(made["qvel"][sample], run["qvel"], rtol=0, atol=1e-9)


def test_drawn_pushes_do_not_depend_on_other_samples_and_threads() -> None:
    made = rolled(randomise=DRAWN)
    for options in ({"samples": 24}, {"threads": 2}, {"until": "time > 100"}, {"until": "time > 100", "threads": 2}):
        other = rolled(randomise=DRAWN, **options)
        for name in ("push_impulse", "push_time", "qvel", "qpos"):
            assert other[name][:11].tobytes() == made[name].tobytes(), (name, options)
    factor = rolled(randomise={"push": (2.0, 2.0)})
    np.testing.assert_allclose(factor["final_qvel"][:, :3], np.tile([1.0, -2 / 3, 2.0], (11, 1)), rtol=1e-12)
    assert "push_time" not in factor.variables
    plain = rolled()
    np.testing.assert_allclose(plain["final_qvel"][:, :3], np.tile([0.5, -1 / 3, 1.0], (11, 1)), rtol=1e-12)


def test_pushes_act_beside_a_policy_that_holds_its_inputs(tmp_path: Path) -> None:
    """The end of a push leaves the action of the policy."""
    path = tmp_path / "pair.xml"
    path.write_text(PAIR)
    robot = artsim.load(path)
    given: dict[str, Any] = {"push": [(robot.links[-1], (0.1, 0, 0.2), 0.02)], "randomise": DRAWN, "contacts": False}
    action = np.linspace(-0.2, 0.2, 11)[:, None] + np.zeros((11, 2))
    made = rolled(robot, **given, policy=lambda qpos, qvel, time: action, hold=STEPS)
    truth = rolled(robot, **given, control=action[:, None])
    np.testing.assert_array_equal(made["qpos"], truth["qpos"])
    assert not np.array_equal(
        made["qpos"], rolled(robot, **{**given, "randomise": {}}, control=action[:, None])["qpos"]
    )


def test_files_hold_pushes_from_which_samples_are_made_again(tmp_path: Path) -> None:
    """Drawn, from .npz and from .csv; in shards; replayed by number, with the push in the inputs of the run."""
    words = ("rollout", BOX, "--samples", 11, "--steps", STEPS, "--dt", DT, "--gravity", "0,0,0", "--seed", 4)
    words = (*words, *(word for push in PUSHES for word in ("--push", push)))
    path, memory = tmp_path / "drawn.h5", rolled(randomise=DRAWN)
    randomise = ("--randomise", "push=-1:1,push-time=0:0.0779")
    assert command(*words, *randomise, "-o", path).exit_code == 0
    assert command(*words, *randomise, "-o", tmp_path / "many.h5", "--shards", 3).exit_code == 0
    np.savez(tmp_path / "given.npz", push=memory["push_impulse"], push_time=memory["push_time"])
    with (tmp_path / "given.csv").open("w", newline="") as stream:
        ends = ("fx", "fy", "fz", "tx", "ty", "tz")
        head = [
            *(f"push.{name}.{end}" for name in ("box", "box.2") for end in ends),
            "push_time.box",
            "push_time.box.2",
        ]
        rows = zip(memory["push_impulse"].reshape(11, 12).tolist(), memory["push_time"].tolist(), strict=True)
        csv.writer(stream).writerows([head, *([*map(repr, one), *map(repr, when)] for one, when in rows)])
    for kind in ("npz", "csv"):
        done = command(*words, "--randomise", tmp_path / f"given.{kind}", "-o", tmp_path / f"{kind}.h5")
        assert done.exit_code == 0, done.output
    for name in ("drawn", "many", "npz", "csv"):
        with artsim.open(tmp_path / f"{name}.h5") as found:
            assert isinstance(found, RolloutRecording)
            assert found["qvel"].tobytes() == memory["qvel"].tobytes(), name
            assert found["push_impulse"].tobytes() == memory["push_impulse"].tobytes(), name
        assert verify_rollout(tmp_path / f"{name}.h5", load_stored) is None
    with opened_runs([path], [5], load_stored) as (run,):
        assert isinstance(run, Recording)
        acted = run.controls
        width = np.diff([*acted.start_step, STEPS])[:, None] * DT
        whole = (acted.control * width).sum(axis=0)
        np.testing.assert_allclose(whole, memory["push_impulse"][5].sum(axis=0), rtol=1e-12, atol=1e-15)
    told = json.loads(command("info", path, "--json").stdout)
    assert told["variables"]["push_time"]["units"] == "s"
    done = command(*words, "--randomise", "push=-1:0.5", "-o", tmp_path / "many.h5", "--shards", 3, "--resume")
    assert done.exit_code != 0 and "--randomise differs" in done.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"push": (), "randomise": {"push": (0, 1)}}, "push is of pushes, and there are none: give --push"),
        ({"push": (), "randomise": {"push_time": np.zeros((11, 1))}}, "push_time is of pushes, and there are none"),
        ({"randomise": {"push_time": (-0.1, 0.02)}}, "push_time=-0.1:0.02: want times LOW:HIGH"),
        ({"randomise": {"push_time": (0, 0.08)}}, "push_time 0.08 s: the run ends at 0.08 s"),
        ({"randomise": {"push_time": np.full((11, 2), -1.0)}}, "push_time: want finite numbers, times from 0"),
        ({"randomise": {"push": np.zeros((11, 2, 3))}}, r"push has shape \(11, 2, 3\), want \(11, 2, 6\)"),
        ({"randomise": {"push": (2, 1)}}, "randomise: push=2:1: want finite numbers LOW:HIGH"),
    ],
)
def test_bad_pushes_are_refused_in_a_line(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rolled(**options)


def test_times_after_the_end_are_told_unless_samples_have_others() -> None:
    words = ("rollout", BOX, "--samples", 2, "--steps", 9, "--push", "box=1,0,0@5", "--randomise")
    late = "push of 'box' at 5 s is after the end of the run"
    assert late in command(*words, "push=0:1").output
    done = command(*words, "push-time=0:0.01")
    assert done.exit_code == 0 and late not in done.output


def test_fleets_do_not_take_pushes_as_properties(tmp_path: Path) -> None:
    fleet = artsim.VectorSimulation(artsim.load(BOX), 2, wrench={"box": (0, 0, 0)})
    with pytest.raises(UsageError, match="vary: 'push' is not known"):
        fleet.vary(push=np.zeros((2, 1, 6)))
    (tmp_path / "bad.csv").write_text("push.lid.fx\n" + "1\n" * 11)
    done = command(
        "rollout", BOX, "--samples", 11, "--steps", 9, "--push", PUSHES[0], "--randomise", tmp_path / "bad.csv"
    )
    assert done.exit_code == 2
    assert "'push.lid.fx' is of no part of this robot; known: parts box; axes fx, fy, fz, tx, ty, tz" in done.output


def test_a_rollout_with_other_pushes_leaves_the_next_one_as_it_is() -> None:
    """Rollers that are kept for later rollouts keep no push."""
    robot = artsim.load(BOX)
    for more in ({}, {"until": "time > 100"}):
        before = rolled(robot, **more)
        drawn = rolled(robot, randomise=DRAWN, **more)
        assert rolled(robot, **more)["qvel"].tobytes() == before["qvel"].tobytes()
        assert rolled(robot, randomise=DRAWN, **more)["qvel"].tobytes() == drawn["qvel"].tobytes()
        assert not rolled(robot, push=(), **more)["qvel"].any()
