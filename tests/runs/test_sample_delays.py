"""Delays of controls of each sample of a rollout: a sample is a run of a file with this delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.rollout import MemoryRollout, verify_rollout
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.controls import Controls

STEPS, DT = 60, 0.002
LATE = {"m": 0.006, "k": 0.02}  # kept for 0.02 s and for 0.06 s
LOW, HIGH = 0.003, 0.0195


def text(m: float = LATE["m"], k: float = LATE["k"], more: str = "") -> str:
    """Two hinges, whose motors are late by these times [s]."""
    return f"""<mujoco><option timestep="{DT}"/><worldbody>
    <body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" contype="0"/>
    <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" contype="0"/>
    </body></body></worldbody><actuator>
    <motor name="m" joint="a" delay="{m}" nsample="10" interp="linear"/>
    <motor name="plain" joint="b"/>
    <motor name="k" joint="b" delay="{k}" nsample="30"/></actuator>{more}</mujoco>"""


def loaded(folder: Path, content: str) -> artsim.Robot:
    path = folder / "late.xml"
    path.write_text(content)
    return artsim.load(path)


def rolled(robot: Any, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **options)
    assert isinstance(made, MemoryRollout)
    return made


def inputs(samples: int) -> np.ndarray[Any, Any]:
    return 0.3 * np.random.default_rng(2).normal(size=(samples, STEPS, 3))


@pytest.mark.parametrize("more", [{}, {"until": "time > 9"}, {"record": ("+sensors",)}])
def test_a_sample_is_a_run_of_a_file_with_its_delay(tmp_path: Path, more: dict[str, Any]) -> None:
    """In packs, in samples that are looked at, and one at a time where a recorded sensor is delayed, too."""
    sensor = '<sensor><jointpos joint="a" delay="0.01" nsample="9"/></sensor>' if "record" in more else ""
    robot, control = loaded(tmp_path, text(more=sensor)), inputs(11)
    options: dict[str, Any] = {"samples": 11, "steps": STEPS, "seed": 5, "control": control, **more}
    made = rolled(robot, **options, randomise={"delay": (LOW, HIGH)})
    assert made.outcome.packed == ("record" not in more)
    delay = made["delay"]
    assert delay.shape == (11, 2) and made.labels.delayed_control == ("m", "k")
    assert LOW <= delay.min() < 0.006 and 0.016 < delay.max() <= HIGH and len(np.unique(delay)) == 22
    recorded = ("qpos", "qvel", *(("sensors",) if "record" in more else ()))
    for sample in (0, 6, 10):
        one = loaded(tmp_path, text(*delay[sample].tolist(), more=sensor))
        run = rolled(one, samples=1, steps=STEPS, control=control[sample : sample + 1], record=recorded)
        single = artsim.simulate(one, steps=STEPS, controls=_held(one, control[sample]), record=recorded)
        for name in recorded:
            np.testing.assert_allclose(made[name][sample], single[name], rtol=0, atol=1e-12)
            np.testing.assert_allclose(made[name][sample], run[name][0], rtol=0, atol=1e-12)


def _held(robot: artsim.Robot, control: np.ndarray[Any, Any]) -> Controls:
    zero = np.zeros((STEPS, robot.nv))
    return Controls(np.arange(STEPS), zero, zero, zero, control)


def test_each_control_is_as_late_as_its_own_samples_allow(tmp_path: Path) -> None:
    """The shortest of all buffers does not bound the others, nor do those of sensors."""
    sensor = '<sensor><jointpos joint="a" delay="0.002" nsample="1"/></sensor>'
    robot, control = loaded(tmp_path, text(more=sensor)), inputs(4)
    delay = np.array([[0.02, 0.06], [0.002, 0.05], [0.004, 0.002], [0.02, 0.021]])
    options: dict[str, Any] = {"samples": 4, "steps": STEPS, "control": control, "record": ("+sensors",)}
    made = rolled(robot, **options, randomise={"delay": delay})
    single = artsim.simulate(
        loaded(tmp_path, text(0.02, 0.06, sensor)), steps=STEPS, controls=_held(robot, control[0]), record=("qpos",)
    )
    np.testing.assert_allclose(made["qpos"][0], single["qpos"], rtol=0, atol=1e-12)
    with pytest.raises(UsageError, match=r"delay 0.021 s of 'm': want 0.002 s, a step, to 0.02 s, for which samples"):
        rolled(robot, **options, randomise={"delay": delay[:, ::-1].copy()[[3]].repeat(4, axis=0)})
    with pytest.raises(UsageError, match=r"delay 0.03 s of 'm'"):
        rolled(robot, **options, randomise={"delay": (0.01, 0.03)})
    fleet = artsim.VectorSimulation(loaded(tmp_path, text()), 3)
    fleet.vary(delay=[0.02, 0.06])
    with pytest.raises(UsageError, match=r"delay 0.061 s of 'k': want 0.002 s, a step, to 0.06 s"):
        fleet.vary(delay=[0.02, 0.061])


def test_files_hold_delays_from_which_samples_are_made_again(tmp_path: Path) -> None:
    robot = loaded(tmp_path, text())
    memory = rolled(robot, samples=11, steps=STEPS, seed=5, velocity_spread=0.5, randomise={"delay": (LOW, HIGH)})
    words = [
        "rollout",
        str(tmp_path / "late.xml"),
        "--samples",
        "11",
        "--steps",
        str(STEPS),
        "--velocity-spread",
        "0.5",
    ]
    words += ["--seed", "5"]
    with (tmp_path / "given.csv").open("w") as stream:
        print("delay.k,delay.m", *(f"{k!r},{m!r}" for m, k in memory["delay"].tolist()), sep="\n", file=stream)
    for name, given in (("drawn", f"delay={LOW}:{HIGH}"), ("given", str(tmp_path / "given.csv"))):
        path = tmp_path / f"{name}.h5"
        done = CliRunner().invoke(cli, [*words, "--randomise", given, "-o", str(path)])
        assert done.exit_code == 0, done.output
        with artsim.open(path) as found:
            assert isinstance(found, RolloutRecording)
            assert found["delay"].tobytes() == memory["delay"].tobytes()
            assert found["qpos"].tobytes() == memory["qpos"].tobytes() and found.meaning("delay")["units"] == "s"
        assert verify_rollout(path, load_stored) is None
    plain = tmp_path / "plain.xml"
    plain.write_text(text().replace('delay="0.006" nsample="10"', "").replace('delay="0.02" nsample="30"', ""))
    done = CliRunner().invoke(cli, ["rollout", str(plain), "--samples", "2", "--randomise", "delay=0.01:0.02"])
    assert done.exit_code == 2 and "delay: no control is delayed" in done.output
