"""Rollouts of a policy in files: they hold the inputs that it gave, and are made again without it; networks, too."""

from __future__ import annotations

from collections.abc import Sequence
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
from artsim.sim.foundation.errors import ArtsimError, StoppedError
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
STEPS = 42
OPTIONS: dict[str, Any] = {"samples": 11, "steps": STEPS, "spread": 0.4, "velocity_spread": 1.0, "seed": 3}
WORDS = (ARM, "--samples", 11, "--steps", STEPS, "--spread", 0.4, "--velocity-spread", 1, "--seed", 3)
FUNCTION = """import numpy as np


def act(qpos, qvel, time):
    print("asked")  # on stderr, beside the result
    return -4.0 * qpos - 0.5 * qvel + np.sin(20 * time)


def odd(qpos, qvel, time):
    return 1 / 0
"""
Reals = np.ndarray[Any, Any]


def act(qpos: Reals, qvel: Reals, time: float) -> Reals:
    return -4.0 * qpos - 0.5 * qvel + np.sin(20 * time)


def rolled(robot: Any = ARM, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **{**OPTIONS, **options})
    assert isinstance(made, MemoryRollout)
    return made


def filed(path: Path, robot: Any = ARM, **options: Any) -> RolloutRecording:
    made = artsim.rollout(robot, **{**OPTIONS, **options}, output=path)
    assert isinstance(made, RolloutRecording)
    return made


def command(*words: object, **more: Any) -> Any:
    return CliRunner().invoke(cli, ["rollout", *map(str, words)], **more)


@pytest.mark.small
@pytest.mark.parametrize(
    "options",
    [
        {"hold": 4},
        {"hold": 5, "until": "time > 0.06 or joint_2 > 0.3", "cost": "dot(action, action)"},
        {
            "hold": 3,
            "every": 4,
            "push": [("link_5", (1, 2, 0), 0.03)],
            "randomise": {"push": (-1, 1), "mass": (0.8, 1.2)},
        },
    ],
)
def test_a_file_holds_what_the_policy_gave_and_is_made_again_without_it(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """To the byte: of memory, and of samples that are simulated from the file's inputs."""
    memory = rolled(policy=act, **options)
    with filed(tmp_path / "driven.h5", policy=act, **options) as stored:
        assert stored.provenance["policy"] == "act"
        for name in memory.variables:
            assert stored[name].tobytes() == memory[name].tobytes(), name
        hold, every = options["hold"], options.get("every", 1)
        controls = stored.controls
        assert len(controls) == 11 and controls[0].start_step.tolist() == [*range(0, STEPS, hold)]
        if every == 1:  # the torque of a row is that of its state
            for sample in (0, 4, 10):
                valid = int(stored["n_valid"][sample]) - ("until" in options)
                for row, start in enumerate(range(0, valid, hold)):
                    state = stored["qpos"][sample, start], stored["qvel"][sample, start]
                    truth = act(*state, start * 0.002)
                    np.testing.assert_allclose(controls[sample].torque[row], truth, rtol=1e-12, atol=1e-12)
    assert verify_rollout(tmp_path / "driven.h5", load_stored) is None
    with opened_runs([tmp_path / "driven.h5"], [7], load_stored) as (run,):
        assert isinstance(run, Recording)
        row = (
            np.searchsorted(controls[7].start_step, run.controls.start_step, side="right") - 1
        )  # pushes have their own
        assert run.controls.torque.tobytes() == controls[7].torque[row].tobytes()
        assert bool(run.controls.control.any()) == ("push" in options)


@pytest.mark.small
def test_inputs_that_change_beside_the_policy_are_kept(tmp_path: Path) -> None:
    """Torques given over time, and targets by the policy, of which it names another at times."""
    torque = np.random.default_rng(1).normal(size=(11, 6, 7))

    def policy(qpos: Reals, qvel: Reals, time: float) -> dict[str, Reals]:
        late = {"target_velocity": 0.1 * np.cos(qpos)} if time > 0.03 else {}
        return {"target": 0.5 * qpos, **late}

    options: dict[str, Any] = {"torque": torque, "stiffness": 30, "damping": 2, "policy": policy, "hold": 4}
    memory = rolled(**options)
    with filed(tmp_path / "both.h5", **options, threads=2) as stored:
        assert stored["qpos"].tobytes() == memory["qpos"].tobytes()
        one = stored.controls[5]
        assert one.start_step.tolist() == sorted({*range(0, STEPS, 7), *range(0, STEPS, 4)})
        np.testing.assert_array_equal(one.torque, torque[5, one.start_step // 7])
        assert not one.target_velocity[one.start_step * 0.002 <= 0.03].any() and one.target_velocity[-1].any()
    assert verify_rollout(tmp_path / "both.h5", load_stored) is None


@pytest.mark.small
def test_commands_run_functions_that_are_typed(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(FUNCTION)
    words = (*WORDS, "--hold", 3, "-o", tmp_path / "made.h5")
    done = command(*words, "--policy", f"{tmp_path / 'walk.py'}:act")
    assert done.exit_code == 0, done.output
    memory = rolled(policy=act, hold=3)
    with artsim.open(tmp_path / "made.h5") as stored:
        assert isinstance(stored, RolloutRecording)
        assert stored["qpos"].tobytes() == memory["qpos"].tobytes()
        assert stored.provenance["policy"] == "walk.py:act" and stored.provenance["threads"]
    assert verify_rollout(tmp_path / "made.h5", load_stored) is None
    done = command(*WORDS, "--record", "none", "--policy", f"{tmp_path / 'walk.py'}:act", "--json")
    assert done.exit_code == 0 and '"samples": 11' in done.stdout
    for more, told in (
        (("--policy", f"{tmp_path / 'walk.py'}:run"), "has no function 'run'"),
        (("--policy", f"{tmp_path / 'none.py'}:act"), "none.py: no such file"),
        (("--policy", f"{tmp_path / 'walk.py'}:odd"), "--policy: odd at t = 0 s: ZeroDivisionError"),
        (("--policy", tmp_path / "walk.py"), "no network that onnxruntime reads"),
        (("--policy", tmp_path / "none.onnx"), "none.onnx: no such file"),
        ((), "hold is for the inputs that a policy gives"),
    ):
        done = command(*words, "--force", *more)
        assert done.exit_code > 1 and "Traceback" not in done.output, done.output
        assert told in done.output or "needs onnxruntime" in done.output
    done = command(*WORDS, env={"ARTSIM_POLICY": f"{tmp_path / 'walk.py'}:act"})
    assert done.exit_code == 2 and "Python functions run only when typed on the command line" in done.output


@pytest.mark.small
def test_nothing_is_written_for_a_policy_that_fails(tmp_path: Path) -> None:
    """And an output that is there is refused before the policy is asked."""

    def policy(qpos: Reals, qvel: Reals, time: float) -> Reals:
        return np.full(qpos.shape, np.nan if time > 0.02 else 0.0)

    with pytest.raises(StoppedError, match=r"policy: torque of sample 0 at t = 0\.022 s is not finite"):
        filed(tmp_path / "odd.h5", policy=policy)
    assert not [*tmp_path.iterdir()]
    (tmp_path / "odd.h5").write_text("")
    with pytest.raises(ArtsimError, match="exists already"):
        filed(tmp_path / "odd.h5", policy=lambda *_: pytest.fail("asked"))


@pytest.mark.small
def test_shards_hold_the_samples_of_one_file(tmp_path: Path) -> None:
    """Computed here, one by one, and by workers; a policy sees the samples of a shard. Resumed: what is missing."""
    (tmp_path / "walk.py").write_text(FUNCTION)
    words = (*WORDS, "--policy", f"{tmp_path / 'walk.py'}:act", "--hold", 3)
    assert command(*words, "-o", tmp_path / "one.h5").exit_code == 0
    done = command(*words, "-o", tmp_path / "made.h5", "--shards", 3)  # of which one has no samples
    assert done.exit_code == 0, done.output
    with artsim.open(tmp_path / "one.h5") as one, artsim.open(tmp_path / "made.h5") as made:
        assert isinstance(one, RolloutRecording) and isinstance(made, RolloutRecording)
        assert one.variables == made.variables
        for name in one.variables:
            assert one[name].tobytes() == made[name].tobytes(), name
        for own, other in zip(one.controls, made.controls, strict=True):
            assert own.torque.tobytes() == other.torque.tobytes() and own.torque.any()
        assert made.provenance["policy"] == "walk.py:act"
    assert verify_rollout(tmp_path / "made.h5", load_stored) is None
    shards = sorted(tmp_path.glob("made.shard-*"))
    bytes_of = {path: path.read_bytes() for path in shards}
    shards[1].unlink()
    done = command(*words, "-o", tmp_path / "made.h5", "--shards", 3, "--resume")
    assert done.exit_code == 0 and "kept 2 of 3 shards" in done.output, done.output
    with artsim.open(tmp_path / "one.h5") as one, artsim.open(tmp_path / "made.h5") as made:
        assert one["qpos"].tobytes() == made["qpos"].tobytes()
    assert shards[0].read_bytes() == bytes_of[shards[0]]
    done = command(*words, "-o", tmp_path / "one.h5", "--resume")
    assert done.exit_code == 0 and "nothing was left to simulate" in done.output
    for more, told in (
        (("--hold", 4), "--hold differs: 3 there, 4 here"),
        (("--policy", f"{tmp_path / 'walk.py'}:odd"), "--policy differs: walk.py:act there, walk.py:odd here"),
    ):
        done = command(*words, *more, "-o", tmp_path / "made.h5", "--shards", 3, "--resume")
        assert done.exit_code == 65 and told in done.output, done.output
    done = command(*words, "-o", tmp_path / "far.h5", "--scheduler", "local:1", "--shards", 2)
    assert done.exit_code == 0, done.output
    with artsim.open(tmp_path / "one.h5") as one, artsim.open(tmp_path / "far.h5") as made:
        assert one["qpos"].tobytes() == made["qpos"].tobytes()
    (tmp_path / "walk.py").write_text(FUNCTION.replace("-4.0", "-3.0"))
    done = command(*words, "-o", tmp_path / "made.h5", "--shards", 3, "--resume")
    assert done.exit_code == 65 and "the content of --policy differs" in done.output, done.output


@pytest.mark.small
def test_shards_of_other_inputs_have_no_index(tmp_path: Path) -> None:
    """A policy that gives other inputs by the samples that it sees."""
    text = "def act(qpos, qvel, time):\n    return {'torque' if qpos[0, 0] < 0 else 'target': 0 * qpos}\n"
    (tmp_path / "odd.py").write_text(text)
    words = (ARM, "--samples", 16, "--steps", 4, "--spread", 0.4, "--policy", f"{tmp_path / 'odd.py'}:act")
    for seed in range(9):
        done = command(*words, "--stiffness", 10, "--seed", seed, "-o", tmp_path / f"{seed}.h5", "--shards", 2)
        if done.exit_code:
            assert done.exit_code == 65 and "holds other inputs of the policy than" in done.output, done.output
            assert not (tmp_path / f"{seed}.h5").exists()
            return
    pytest.fail("all seeds begin both shards on one side")


# ------------------------------------------------------------------ networks


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """Fields of a message of protocol buffers: numbers as varints, others with their length."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        else:
            made += varint(number << 3 | 2) + varint(len(value)) + value
    return made


def varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def tensor(name: str, values: Reals) -> bytes:
    dims = [(1, n) for n in values.shape]
    return message(*dims, (2, 1), (8, name.encode()), (9, values.astype("<f4").tobytes()))


def value(name: str, shape: Sequence[int | str]) -> bytes:
    dims = message(*((1, message((1, n) if isinstance(n, int) else (2, n.encode()))) for n in shape))
    return message((1, name.encode()), (2, message((1, message((1, 1), (2, dims))))))


def node(kind: str, inputs: Sequence[str], output: str) -> bytes:
    return message(*((1, name.encode()) for name in inputs), (2, output.encode()), (4, kind.encode()))


def network(path: Path, inputs: dict[str, tuple[int | str, int]], gains: dict[str, Reals]) -> Path:
    """A network that sums inputs (samples, n) times gains (n, 7), as an ONNX file."""
    nodes = [node("MatMul", [name, f"gain_{name}"], f"part_{name}") for name in inputs]
    nodes.append(node("Sum", [f"part_{name}" for name in inputs], "action"))
    graph = message(
        *((1, one) for one in nodes),
        (2, b"policy"),
        *((5, tensor(f"gain_{name}", values)) for name, values in gains.items()),
        *((11, value(name, shape)) for name, shape in inputs.items()),
        (12, value("action", (next(iter(inputs.values()))[0], 7))),
    )
    path.write_bytes(message((1, 8), (7, graph), (8, message((1, b""), (2, 13)))))
    return path


GAINS = {"qpos": -4.0 * np.eye(7), "qvel": -0.5 * np.eye(7), "time": np.ones((1, 7))}


def test_a_network_acts_as_its_gains_say(tmp_path: Path) -> None:
    """By named inputs, by one of positions and velocities, and one sample at a time where that is its shape."""
    pytest.importorskip("onnxruntime")
    named = network(tmp_path / "named.onnx", {"qpos": ("n", 7), "qvel": ("n", 7), "time": ("n", 1)}, GAINS)
    whole = np.concatenate([GAINS["qpos"], GAINS["qvel"]])
    one = network(tmp_path / "one.onnx", {"state": ("n", 14)}, {"state": whole})
    single = network(tmp_path / "single.onnx", {"state": (1, 14)}, {"state": whole})
    for path, later in ((named, 1.0), (one, 0.0), (single, 0.0)):

        def truth(qpos: Reals, qvel: Reals, time: float, later: float = later) -> Reals:
            return -4.0 * qpos - 0.5 * qvel + later * time

        made, wanted = rolled(policy=path, hold=2), rolled(policy=truth, hold=2)
        np.testing.assert_allclose(made["qpos"][:, :20], wanted["qpos"][:, :20], rtol=0, atol=1e-5)  # float32
        assert np.abs(made["qpos"] - rolled()["qpos"]).max() > 1e-3
    done = command(*WORDS, "--policy", named, "--hold", 2, "-o", tmp_path / "made.h5")
    assert done.exit_code == 0, done.output
    with artsim.open(tmp_path / "made.h5") as stored:
        assert isinstance(stored, RolloutRecording)
        assert stored["qpos"].tobytes() == rolled(policy=str(named), hold=2, threads=2)["qpos"].tobytes()
        assert stored.provenance["policy"] == "named.onnx"
    assert verify_rollout(tmp_path / "made.h5", load_stored) is None
    for inputs, told in (
        ({"state": ("n", 13)}, r"input 'state' has shape \('n', 13\), want \('samples', 14\)"),
        ({"state": ("n", 7), "qvel": ("n", 7)}, "its inputs are state, qvel; want qpos, qvel and time, any of them"),
    ):
        gains = {name: np.zeros((int(shape[1]), 7)) for name, shape in inputs.items()}
        with pytest.raises(ArtsimError, match=told):
            rolled(policy=network(tmp_path / "bad.onnx", inputs, gains))
    (tmp_path / "bad.onnx").write_bytes(b"\x00\x01")
    with pytest.raises(ArtsimError, match="no network that onnxruntime reads"):
        rolled(policy=tmp_path / "bad.onnx")
