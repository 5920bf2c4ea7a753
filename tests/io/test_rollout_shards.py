"""Rollouts in shards: the bytes of one file however they are cut, killed and resumed; what differs is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.tally import Tally
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.jit import disabled
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
WORDS = (ARM, "--samples", 50, "--steps", 12, "--every", 4, "--spread", 0.3, "--randomise", "mass=0.9:1.1", "--seed", 2)


def command(*words: object) -> Result:
    return CliRunner().invoke(cli, ["rollout", *map(str, words)])


def good(*words: object) -> str:
    done = command(*words)
    assert done.exit_code == 0, done.output
    return done.stderr


def contents(path: Path) -> dict[str, bytes]:
    """Every variable of a file, and the inputs."""
    with artsim.open(path) as found:
        assert isinstance(found, RolloutRecording)
        inputs = [getattr(one, name).tobytes() for one in found.controls for name in ("start_step", "torque", "target")]
        return {**{name: found[name].tobytes() for name in found.variables}, "controls": b"".join(inputs)}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Torques of each of 50 samples."""
    path = tmp_path_factory.mktemp("inputs") / "torques.npz"
    np.savez(path, torque=np.random.default_rng(4).normal(size=(50, 3, 7)))
    return path


@pytest.mark.small
def test_shards_hold_the_bytes_of_one_file(inputs: Path, tmp_path: Path) -> None:
    """All at once, one by one in any order, with one thread or two; replayed, read by sample and told."""
    words = (*WORDS, "--control", inputs)
    good(*words, "-o", tmp_path / "whole.h5")
    whole = contents(tmp_path / "whole.h5")
    told = good(*words, "-o", tmp_path / "all.h5", "--shards", 3, "--threads", 2)
    assert "50 samples, 600 steps" in told and "all 3 shards are there: wrote the index" in told
    for number in (3, 1, 2):
        told = good(*words, "-o", tmp_path / "each.h5", "--shard", f"{number}/3", "--threads", 1)
    assert "all 3 shards are there" in told
    for name in ("all", "each"):
        assert contents(tmp_path / f"{name}.h5") == whole
        for file in (f"{name}.h5", f"{name}.shard-0002-of-0003.h5"):
            done = CliRunner().invoke(cli, ["replay", "--verify", str(tmp_path / file)])
            assert done.exit_code == 0, done.output
    with artsim.open(tmp_path / "all.shard-0002-of-0003.h5") as shard:
        assert isinstance(shard, RolloutRecording)
        assert (shard.first_row, len(shard), shard.rows_of_job) == (16, 16, 50)
    run = tmp_path / "sample.csv"
    for name in ("all", "whole"):
        words = ("export", str(tmp_path / f"{name}.h5"), "--sample", "20", "--csv", str(run), "--force")
        assert CliRunner().invoke(cli, [*words]).exit_code == 0
    assert (
        "50 samples of 3 rows in 3 files beside it"
        in CliRunner().invoke(cli, ["info", str(tmp_path / "all.h5")]).output
    )


@pytest.mark.small
def test_resume_keeps_what_fits_and_names_what_does_not(inputs: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = (*WORDS, "--control", inputs, "-o", output, "--shards", 3)
    good(*words)
    before = contents(output)
    shards = sorted(tmp_path.glob("out.shard-*"))
    shards[1].unlink()
    with pytest.raises(ModelError, match=r"shard out.shard-0002-of-0003.h5 is missing; `artsim rollout … --resume`"):
        artsim.open(output)
    kept = shards[0].stat().st_mtime_ns
    told = json.loads(command(*words, "--resume", "--json").stdout)
    assert (told["samples"], told["kept"], told["steps"]) == (50, 34, 16 * 12)
    assert contents(output) == before and shards[0].stat().st_mtime_ns == kept
    assert "nothing was left to simulate" in good(*words, "--resume")
    for more, option in (
        (("--seed", 3), "--seed differs: 2 there, 3 here"),
        (("--steps", 15), "--steps differs: 12 there, 15 here"),
        (("--spread", 0.2), "--spread differs"),
        (("--randomise", "mass=0.9:1.2"), "--randomise differs"),
        (("--gravity", "0,0,-1"), "--gravity differs"),
        (("--stiffness", 5), "--stiffness differs"),
        (("--velocity-spread", 1), "--velocity-spread differs: 0.0 there, 1.0 here"),
    ):
        done = command(*words, "--resume", *more)
        assert done.exit_code == 65 and option in done.stderr, done.output
    torque = np.load(inputs)["torque"]
    torque[-1, -1, -1] += 1e-9
    np.savez(tmp_path / "other.npz", torque=torque)
    done = command(*words, "--resume", "--control", tmp_path / "other.npz")
    assert "2 files for 50 samples" in done.stderr
    words = (*WORDS, "--control", tmp_path / "other.npz", "-o", output, "--shards", 3)
    assert "the content of --control differs" in command(*words, "--resume").stderr


@pytest.mark.small
def test_what_kept_shards_tell_is_told_again(tmp_path: Path) -> None:
    """Balls that start inside the floor: the counts of a file are those of its samples when they were simulated."""
    text = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body name="ball" pos="0 0 .1">
<freejoint name="root"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    (tmp_path / "ball.xml").write_text(text)
    words = (tmp_path / "ball.xml", "--samples", 20, "--steps", 2, "--spread", "root.z=0.08")
    words = (*words, "-o", tmp_path / "out.h5", "--shards", 2)
    first = json.loads(command(*words, "--json").stdout)
    again = json.loads(command(*words, "--json", "--resume").stdout)
    assert first["inside"] > 2
    for name in ("samples", "stopped", "inside", "deepest", "sunk", "unsolved", "worst_solver_residual", "held_inside"):
        assert first[name] == again[name], name
    with artsim.open(tmp_path / "out.h5") as found:
        assert isinstance(found, RolloutRecording)
        tally = Tally.of_file(found)
    assert Tally.from_plain(json.loads(json.dumps(tally))) == tally


@pytest.mark.small
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--shards", 2), "are for files: give --output"),
        (("--shards", 2, "-o", "out.npz"), "shards and --resume are for HDF5"),
        (("--shard", "1/2", "--shards", 2, "-o", "out.h5"), "--shard is one shard of a job system's"),
        (("--resume", "--force", "-o", "out.h5"), "give one of them"),
        (("--scheduler", "nowhere", "-o", "out.h5"), "want tcp://HOST:PORT"),
    ],
)
def test_what_shards_refuse(words: tuple[object, ...], told: str) -> None:
    done = command(ARM, "--samples", 9, *words)
    assert done.exit_code == 2 and told in done.stderr


def test_workers_make_the_same_bytes(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two processes, from relative names; of a scene of two models with a place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text((ROOT / "robots" / "double_pendulum.urdf").read_text())
    words = ("a=arm.urdf", "b=arm.urdf", "--place", "b=1,0,0", "--no-contacts", *WORDS[1:])
    good(*words, "-o", "whole.h5")
    words = (sys.executable, "-m", "artsim", "rollout", *map(str, words), "--scheduler", "local:2", "--shards", "3")
    done = subprocess.run([*words, "-o", "out.h5"], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "out.h5") == contents(tmp_path / "whole.h5")


@pytest.mark.skipif(disabled(), reason="takes minutes as Python")
def test_killed_and_resumed_it_holds_the_same_bytes(tmp_path: Path) -> None:
    words: tuple[Any, ...] = (
        ARM,
        "--samples",
        60_000,
        "--steps",
        100,
        "--spread",
        0.3,
        "--record",
        "none",
        "--threads",
        1,
    )
    good(*words, "-o", tmp_path / "whole.h5")
    run = [sys.executable, "-m", "artsim", "rollout", *map(str, words), "--shards", "4", "-o", str(tmp_path / "out.h5")]
    process = subprocess.Popen([*run, "--quiet"])
    end = time.time() + 100
    while not list(tmp_path.glob("out.shard-*.h5")) and time.time() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = len(list(tmp_path.glob("out.shard-*.h5")))
    assert 1 <= there < 4 and not (tmp_path / "out.h5").exists()
    done = subprocess.run([*run, "--resume"], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0 and f"kept {there} of 4 shards" in done.stderr, done.stderr
    assert contents(tmp_path / "out.h5") == contents(tmp_path / "whole.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["rollout/final_qpos"].is_virtual
