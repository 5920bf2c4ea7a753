"""Runs that go on from their file: the same bytes as one that was never stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import artsim
from artsim.cli.replay import load_stored
from artsim.io.readers.recording import open_recording
from artsim.io.runs.recovery import recover
from artsim.io.runs.replay import verify
from artsim.io.runs.resume import resume
from artsim.sim.foundation.errors import ModelError, StoppedError
from tests.cli.test_cli_run import good, refused
from tests.conftest import ROOT

ROBOTS = ROOT / "robots"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "limits, couplings and drives": (
        "two_finger_gripper.urdf",
        {"stiffness": 20.0, "damping": 1.0, "target": {"left_driver_joint": 0.5}, "velocity_limits": True},
    ),
    "every third step": ("arm7.urdf", {"every": 3, "friction_coefficient": 0.1}),
    "contact": ("quadruped.urdf", {"base": "floating", "ground": True}),
    "contact, not recorded": ("quadruped.urdf", {"base": "floating", "ground": True, "record": ("qpos", "qvel")}),
    "maximal coordinates": ("parallel_gripper.urdf", {"coordinates": "maximal", "record": ("qpos", "qvel")}),
    "asleep": ("finger.urdf", {"damping": 50.0, "sleep_threshold": 1.0, "sleep_time": 0.02}),
}
each_variant = pytest.mark.parametrize("variant", VARIANTS)
STEPS, HALF, BETWEEN = 130, 75, 25


def run(path: Path, variant: str, steps: int, **more: Any) -> None:
    name, settings = VARIANTS[variant]
    robot = artsim.load(ROBOTS / name, base=settings.get("base", "fixed"))
    rest = {key: value for key, value in settings.items() if key != "base"}
    artsim.simulate(robot, steps=steps, output=path, checkpoint=BETWEEN, **rest, **more)


def differences(a: Path, b: Path) -> Iterator[str]:
    """Names of all datasets that are not in both files with the same bytes."""
    with h5py.File(a) as left, h5py.File(b) as right:
        names: tuple[set[str], set[str]] = set(), set()
        left.visit(names[0].add)
        right.visit(names[1].add)
        yield from names[0] ^ names[1]
        for name in names[0] & names[1]:
            if isinstance(left[name], h5py.Dataset):
                values = left[name][()], right[name][()]
                same = np.shape(values[0]) == np.shape(values[1])
                if not same or np.asarray(values[0]).tolist() != np.asarray(values[1]).tolist():
                    same &= np.asarray(values[0]).tobytes() == np.asarray(values[1]).tobytes()
                if not same:
                    yield name


@each_variant
def test_a_run_that_was_complete_goes_on(variant: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.h5", tmp_path / "parts.h5"
    run(whole, variant, STEPS)
    run(parts, variant, HALF)
    assert resume(parts, load_stored, steps=STEPS) is not None
    assert list(differences(whole, parts)) == []
    with open_recording(whole) as a, open_recording(parts) as b:
        assert a.config == b.config
        assert (b.state, b.steps_total) == ("complete", STEPS)
        assert len(b.attrs["history"].splitlines()) == 2
    assert resume(parts, load_stored) is None


def test_a_run_that_was_killed_at_its_very_end_is_made_clean(tmp_path: Path) -> None:
    """All its rows and its final state are there, only the marks of its writer were not taken away."""
    whole, dead = tmp_path / "whole.h5", tmp_path / "dead.h5"
    run(whole, "every third step", STEPS)
    shutil.copy(whole, dead)
    with h5py.File(dead, "r+", libver=("v110", "v110")) as file:
        file.swmr_mode = True
        file.flush()
        marked = dead.read_bytes()
    dead.write_bytes(marked)
    with pytest.raises(OSError, match="open for write"):
        h5py.File(dead)
    assert resume(dead, load_stored) is None
    assert list(differences(whole, dead)) == []


class Killed(BaseException):
    """Stands for a kill: nothing is written after it."""


def broken_off(path: Path, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run leaves after some blocks of rows."""
    with monkeypatch.context() as patch:
        patch.setattr("artsim.sim.runs.simulate.MOST_STEPS", 10)
        patch.setattr("artsim.io.runs.recorder.Recorder.__exit__", lambda self, *_: os.close(self._handle))
        write = artsim.io.runs.recorder.Recorder.write

        def some(self: Any, *words: Any) -> None:
            if self.rows >= (HALF + 12) // self._layout.every:
                raise Killed
            write(self, *words)

        patch.setattr("artsim.io.runs.recorder.Recorder.write", some)
        with pytest.raises(Killed):
            run(path.with_suffix(".dead"), variant, STEPS)
    path.write_bytes(path.with_suffix(".dead").read_bytes())


@each_variant
@pytest.mark.parametrize("clean", [False, True])
def test_a_killed_run_goes_on(variant: str, clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, dead, other = tmp_path / "whole.h5", tmp_path / "dead.h5", tmp_path / "other.h5"
    run(whole, variant, STEPS)
    broken_off(dead, variant, monkeypatch)
    if clean:
        recover(dead)
    with open_recording(dead) as recording:
        assert recording.state == ("interrupted" if clean else "killed")
        assert recording.group("checkpoint")["n_valid"][()] == 3
    before = dead.read_bytes()
    assert resume(dead, load_stored, output=other) is not None
    assert dead.read_bytes() == before
    assert list(differences(whole, other)) == []
    assert verify(other, load_stored) is None


CONTROLLER = """
def push(t, qpos, qvel):
    torque = 0 * qvel
    torque[1] = 0.3 if t < 0.11 else -0.2
    torque[2] = qpos[0] if t < 0.04 else 0
    return torque
"""


def test_a_controlled_run_goes_on(tmp_path: Path) -> None:
    """Its code is run only when it is given again; it adds no input that only repeats the last."""
    code, whole, parts = tmp_path / "push.py", tmp_path / "whole.h5", tmp_path / "parts.h5"
    code.write_text(CONTROLLER)
    words = ("run", ROBOTS / "arm7.urdf", "--controller", f"{code}:push", "--checkpoint", 25)
    good(*words, "--steps", 130, "-o", whole)
    good(*words, "--steps", 75, "-o", parts)
    refused(2, "run", "--resume", parts, "--steps", 130, words=("--controller",))
    good("run", "--resume", parts, "--steps", 130, "--controller", f"{code}:push")
    assert list(differences(whole, parts)) == []
    good("replay", "--verify", parts)


def test_the_command(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.h5", tmp_path / "parts.h5"
    words = ("run", ROBOTS / "arm7.urdf", "--record", "qpos,qvel", "--checkpoint", 2000, "--steps")
    steps = 1_000_000_000
    process = subprocess.Popen([sys.executable, "-m", "artsim", *map(str, words), str(steps), "-o", str(parts)])
    deadline = time.monotonic() + 120
    while not (parts.exists() and parts.stat().st_size > 2_000_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open_recording(parts) as recording:
        steps = recording.n_valid + 3000
    refused(2, "run", "--resume", parts, "--steps", steps, "--dt", 0.1, words=("--dt is not for --resume",))
    refused(2, "run", ROBOTS / "arm7.urdf", "--resume", parts, words=("a MODEL is not for --resume",))
    refused(2, "run", "--resume", parts, "--steps", steps, "-o", parts, words=("input itself",))
    assert f"{steps} steps" in good("run", "--resume", parts, "--steps", steps).stderr
    good(*words, steps, "-o", whole)
    assert list(differences(whole, parts)) == []
    assert "all its steps" in good("run", "--resume", parts).stderr
    refused(2, "run", "--resume", parts, "--steps", steps - 1, words=(f"has {steps} steps already",))
    refused(66, "run", "--resume", tmp_path / "none.h5", words=("no such file",))


def change(path: Path, edit: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "r+") as file:
        edit(file)


def test_runs_that_do_not_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    run(path, "every third step", HALF)
    change(path, lambda file: file["trajectory/status"].__setitem__((), 2))
    with pytest.raises(StoppedError, match="stopped by itself"):
        resume(path, load_stored, steps=STEPS)
    run(path, "every third step", HALF, force=True)
    change(path, lambda file: file["final"].__delitem__("load"))
    change(path, lambda file: file["final"].create_dataset("load", data=np.zeros(3)))
    with pytest.raises(ModelError, match="load"):
        resume(path, load_stored, steps=STEPS)
    with open_recording(path) as recording:
        assert recording.state == "complete"  # it is as it was


def test_the_sleeper_sleeps(tmp_path: Path) -> None:
    run(tmp_path / "run.h5", "asleep", HALF, record=("asleep",))
    with open_recording(tmp_path / "run.h5") as recording:
        assert recording["asleep"][-10:].all()


def test_checkpoints_take_a_hundredth_of_the_file(tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "arm7.urdf")
    for record, every, least in ((("qpos", "qvel"), 1, 10_000), (("qpos",), 1000, 100_000)):
        with artsim.simulate(robot, steps=20, every=every, record=record, output=tmp_path / "a.h5", force=True) as run:
            assert run.checkpoint_steps >= least
            assert run.group("checkpoint") is None
    with artsim.simulate(robot, steps=20, checkpoint=0, output=tmp_path / "a.h5", force=True) as run:
        assert run.checkpoint_steps == 0


def test_a_run_that_cannot_go_on_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails before there is a good block must not have touched a complete file."""
    path = tmp_path / "run.h5"
    artsim.simulate(artsim.load(ROBOTS / "arm7.urdf"), steps=20, output=path).close()  # type: ignore[union-attr]
    before = path.read_bytes()

    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("artsim.sim.runs.simulate.Simulation._advance", broken)
    with pytest.raises(KeyError):
        resume(path, load_stored, steps=40)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["run.h5"]
