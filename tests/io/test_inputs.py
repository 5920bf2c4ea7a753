"""Inputs over time: interpolated between rows, by names in arrays, from outputs, late, of followers too."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.interpolate import CubicSpline

import artsim
from artsim.cli.main import cli
from artsim.io.inputs.control_files import read_controls
from artsim.io.inputs.interpolation import Interpolation
from artsim.io.inputs.output_inputs import variables_named
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.runs.controls import Controls
from tests.conftest import ROOT

ARM = str(ROOT / "robots" / "arm7.urdf")
GRIPPER = str(ROOT / "robots" / "two_finger_gripper.urdf")
DOFS, DT = ("a", "b"), 0.01
TIMES = np.array([0.013, 0.05, 0.061, 0.1, 0.1234])


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def verified(path: Path) -> None:
    result = invoke("replay", "--verify", path)
    assert result.exit_code == 0 and "every byte equal" in result.output, result.output


def table(folder: Path, times: np.ndarray, values: np.ndarray, column: str = "a.target") -> Path:
    file = folder / "inputs.csv"
    np.savetxt(file, np.column_stack([times, values]), "%.17g", ",", header=f"time,{column}", comments="")
    return file


# ------------------------------------------------------------------ between rows


@pytest.mark.small
@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_inputs_of_a_step_are_those_at_its_beginning(kind: str, tmp_path: Path) -> None:
    values = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    file = table(tmp_path, TIMES, values)
    controls = read_controls(file, DOFS, DT, target=np.array([7.0, 8.0]), interpolation=Interpolation(kind, 100))
    assert controls.begin == 2
    np.testing.assert_array_equal(controls.start_step, [0, *range(2, 14)])
    at = np.clip(DT * controls.start_step[1:], TIMES[0], TIMES[-1])
    want = np.interp(at, TIMES, values) if kind == "linear" else CubicSpline(TIMES, values)(at)
    np.testing.assert_allclose(controls.target[1:, 0], want, rtol=1e-15, atol=1e-15)
    np.testing.assert_array_equal(controls.target[:, 1], 8.0)
    np.testing.assert_array_equal(controls.target[0], [7, 8])
    assert controls.target[-1, 0] == values[-1]  # held after the last row


@pytest.mark.small
def test_a_cubic_runs_through_a_cubic(tmp_path: Path) -> None:
    """Not-a-knot: polynomials of the third degree are reproduced, of fewer rows those of fewer degrees."""
    for rows in (2, 3, 4, 7):
        times = np.linspace(0.0, 0.3, rows) ** 1.5
        polynomial = np.polynomial.Polynomial([0.3, -2.0, 5.0, 11.0][: min(rows, 4)])
        file = table(tmp_path, times, polynomial(times))
        controls = read_controls(file, DOFS, DT, interpolation=Interpolation("cubic", 1000))
        at = np.minimum(DT * controls.start_step, times[-1])
        np.testing.assert_allclose(controls.target[:, 0], polynomial(at), atol=1e-13)


@pytest.mark.small
def test_pchip_neither_overshoots_nor_leaves_a_hold(tmp_path: Path) -> None:
    """Values keep between those of their two rows, where the cubic overshoots; slopes are continuous, and harmonic
    means of the secants weighted by their lengths (Fritsch and Butland 1984)."""
    times = np.array([0.0, 0.2, 0.25, 0.5, 0.6, 0.9, 1.0])
    rows = np.array([0.0, 0.0, 1.0, 1.0, 1.2, 3.0, -1.0])
    found = {}
    for kind in ("pchip", "cubic"):
        found[kind] = Interpolation(kind, 1000).values(times, rows[:, None], np.linspace(0.0, 1.0, 1001))[:, 0]
    at = np.linspace(0.0, 1.0, 1001)
    piece = np.clip(np.searchsorted(times, at, "right") - 1, 0, len(times) - 2)
    low, high = np.minimum(rows[piece], rows[piece + 1]), np.maximum(rows[piece], rows[piece + 1])
    outside = {kind: np.maximum(low - x, x - high).max() for kind, x in found.items()}
    assert outside["pchip"] < 1e-15 and outside["cubic"] > 0.1
    assert (found["pchip"][at <= 0.2] == 0.0).all() and (found["pchip"][(at >= 0.25) & (at <= 0.5)] == 1.0).all()
    step, rise = np.diff(times), np.diff(rows)
    h, d = step[3:5], (rise / step)[3:5]  # about the row at 0.6, where values rise on both sides
    slope = 3 * h.sum() / ((2 * h[1] + h[0]) / d[0] + (h[1] + 2 * h[0]) / d[1])
    near = Interpolation("pchip", 1000).values(times, rows[:, None], 0.6 + np.array([-1e-6, 1e-6]))[:, 0]
    np.testing.assert_allclose((near - rows[4]) / [-1e-6, 1e-6], slope, rtol=1e-4)
    controls = read_controls(table(tmp_path, times, rows), DOFS, DT, interpolation=Interpolation("pchip", 101))
    np.testing.assert_allclose(controls.target[:, 0], found["pchip"][::10], atol=1e-14)


@pytest.mark.small
def test_inputs_end_with_the_run_and_a_single_row_is_held(tmp_path: Path) -> None:
    file = table(tmp_path, np.array([0.0, 1e6]), np.array([0.0, 1e6]))
    controls = read_controls(file, DOFS, DT, interpolation=Interpolation("linear", 5))
    np.testing.assert_allclose(controls.target[:, 0], DT * np.arange(5), atol=1e-15)
    single = read_controls(
        table(tmp_path, np.array([0.5]), np.array([3.0])), DOFS, DT, interpolation=Interpolation("cubic", 9)
    )
    np.testing.assert_array_equal(single.target[:, 0], [0.0, 3.0])


def test_too_many_steps_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    file = table(tmp_path, np.array([0.0, 1e9]), np.array([0.0, 1.0]), "joint_1.torque")
    result = invoke("run", ARM, "--duration", "1e9", "--control", file, "--interpolate", "linear")
    assert result.exit_code == 71
    assert "inputs of their own for 500000000000 steps (--interpolate) would take" in result.output


@pytest.mark.parametrize("kind", ["hold", "linear", "cubic", "pchip"])
def test_interpolated_runs_replay(kind: str, tmp_path: Path) -> None:
    file = table(tmp_path, np.array([0.0, 0.05, 0.1, 0.17]), np.array([0.0, 3.0, -3.0, 1.0]), "joint_2.torque")
    output = tmp_path / "run.h5"
    result = invoke("run", ARM, "--steps", 100, "--control", file, "--interpolate", kind, "-o", output)
    assert result.exit_code == 0, result.output
    verified(output)
    with artsim.open(output) as recording:
        torque = recording["tau_applied"][:, 1]
        if kind == "linear":
            np.testing.assert_allclose(
                torque, np.interp(recording.time, [0, 0.05, 0.1, 0.17], [0, 3, -3, 1]), atol=1e-14
            )
        again = artsim.simulate(ARM, steps=100, controls=file, interpolate=kind)
        np.testing.assert_array_equal(again["qpos"], recording["qpos"])
    rolled = artsim.rollout(ARM, samples=2, steps=100, controls=file, interpolate=kind)
    np.testing.assert_array_equal(rolled["qpos"][1], again["qpos"])


def test_controls_of_python_are_interpolated_too() -> None:
    rows = np.zeros((2, 7))
    rows[1, 3] = 4.0
    controls = Controls(np.array([0, 50]), rows, np.zeros((2, 7)), np.zeros((2, 7)))
    run = artsim.simulate(ARM, steps=60, controls=controls, interpolate="linear")
    np.testing.assert_allclose(run["tau_applied"][:, 3], np.interp(np.arange(60), [0, 50], [0, 4]), atol=1e-15)


# ------------------------------------------------------------------ names


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_arrays_are_called_as_the_columns_of_csv(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"inputs{suffix}"
    time = np.array([0.0, 0.1])
    arrays = {"time": time, "a.target": time + 1.0, "b.torque": time + 3.0, "servo": time + 5.0}

    def save(**given: np.ndarray) -> Path:
        if suffix == ".npz":
            np.savez(file, **given)
        else:
            with h5py.File(file, "w") as out:
                for name, values in given.items():
                    out[name] = values
        return file

    controls = read_controls(save(**arrays), DOFS, DT, actuators=("servo",))
    np.testing.assert_array_equal(controls.target[:, 0], time + 1)
    np.testing.assert_array_equal(controls.torque[:, 1], time + 3)
    np.testing.assert_array_equal(controls.control[:, 0], time + 5)
    for name, values, told in (
        ("c.target", np.zeros(2), "unknown joint 'c'"),
        ("a.torque", np.zeros(3), "torque of 'a' has 3 entries, want 2"),
        ("a.torque", np.array([0.0, np.nan]), "torque of 'a', row 2, column .: nan is not a finite number"),
        ("target", np.zeros((2, 2)), "target stands there for all and for single joints"),
    ):
        with pytest.raises((UsageError, ModelError), match=told):
            read_controls(save(**{**arrays, name: values}), DOFS, DT, actuators=("servo",))


# ------------------------------------------------------------------ outputs as inputs


@pytest.mark.small
def test_words_that_name_variables() -> None:
    assert variables_named("run.h5:target=qpos, torque = gravity") == (
        "run.h5",
        {"target": "qpos", "torque": "gravity"},
    )
    assert variables_named("run.h5") is None and variables_named("run.csv:target=qpos") is None
    with pytest.raises(UsageError, match="'targt' is no input; did you mean 'target'"):
        variables_named("run.h5:targt=qpos")
    with pytest.raises(UsageError, match="is not INPUT=VARIABLE"):
        variables_named("run.h5:qpos")


def test_a_run_follows_another(tmp_path: Path) -> None:
    """Stiff drives with its positions and velocities as targets, and its own torques: the same motion."""
    first, second, third = (tmp_path / f"{name}.h5" for name in ("first", "second", "third"))
    assert invoke("run", ARM, "--steps", 100, "--torque", "joint_2=20", "-o", first).exit_code == 0
    words = ["--stiffness", 1e6, "--damping", 1e4, "--control", f"{first}:target=qpos,velocity=qvel"]
    assert invoke("run", ARM, "--steps", 100, *words, "-o", second).exit_code == 0
    assert invoke("run", ARM, "--steps", 100, "--control", f"{first}:torque=tau_applied", "-o", third).exit_code == 0
    verified(second)
    with artsim.open(first) as a, artsim.open(second) as b, artsim.open(third) as c:
        moved = np.abs(a["qpos"] - a["qpos"][0]).max()
        assert np.abs(a["qpos"][:-1] - b["qpos"][1:]).max() < 5e-3 * moved  # drives aim at the start of a step
        np.testing.assert_array_equal(a["qpos"], c["qpos"])


def test_a_batch_gives_torques_step_by_step(tmp_path: Path) -> None:
    batch, output = tmp_path / "b.h5", tmp_path / "run.h5"
    assert invoke("batch", ARM, "--samples", 20, "--compute", "gravity", "-o", batch).exit_code == 0
    assert invoke("run", ARM, "--steps", 20, "--control", f"{batch}:torque=gravity", "-o", output).exit_code == 0
    with artsim.open(batch) as given, artsim.open(output) as run:
        np.testing.assert_array_equal(run["tau_applied"], given["gravity"])


@pytest.mark.parametrize(
    ("word", "code", "told"),
    [
        ("target=qpo", 2, "has no 'qpo'; did you mean 'qpos'?"),
        ("torque=link_position", 2, "link_position has entries by link, xyz, want one per joint"),
        ("target=qpos", 2, "target of 'joint_1' needs a drive: give --stiffness joint_1="),
    ],
)
def test_what_is_no_input_is_refused(word: str, code: int, told: str, tmp_path: Path) -> None:
    output = tmp_path / "run.h5"
    artsim.simulate(ARM, steps=3, torque={"joint_1": 50.0}, output=output).close()
    result = invoke("run", ARM, "--control", f"{output}:{word}")
    assert result.exit_code == code and told in result.output


def test_inputs_of_another_robot_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "run.h5"
    artsim.simulate(GRIPPER, steps=3, output=output).close()
    result = invoke("run", ARM, "--control", f"{output}:torque=tau_applied")
    assert result.exit_code == 65 and "tau_applied is of another robot" in result.output


# ------------------------------------------------------------------ late inputs, followers


@pytest.mark.parametrize(
    ("more", "told"),
    [([], "no torque acts and targets are the start"), (["--torque", "joint_3=2"], "the values of --torque act")],
)
def test_what_acts_before_the_first_row_is_told(more: list[str], told: str, tmp_path: Path) -> None:
    file = table(tmp_path, np.array([0.05]), np.array([1.0]), "joint_1.torque")
    for command in (["run"], ["rollout", "--samples", "1"]):
        result = invoke(*command, ARM, "--steps", 2, "--control", file, *more)
        assert f"inputs begin at t = 0.05 s; before that {told}" in result.output
    at_start = table(tmp_path, np.array([0.0]), np.array([1.0]), "joint_1.torque")
    assert "inputs begin" not in invoke("run", ARM, "--steps", 2, "--control", at_start).output


def test_targets_of_followers_may_agree_with_their_leaders(tmp_path: Path) -> None:
    robot = artsim.load(GRIPPER)
    free = dict.fromkeys(robot.independent_dofs, 0.004)
    full = artsim.simulate(robot, steps=1, q0=free)["qpos"][0]  # what the couplings make of it
    targets = dict(zip(robot.dofs, full.tolist(), strict=True))
    by_leaders = artsim.simulate(robot, steps=5, stiffness=50.0, target=free)
    by_all = artsim.simulate(robot, steps=5, stiffness=50.0, target=targets)
    np.testing.assert_array_equal(by_all["qpos"], by_leaders["qpos"])
    follower = next(name for name in robot.dofs if name not in free)
    with pytest.raises(UsageError, match=f"target of '{follower}' needs a drive"):
        artsim.simulate(robot, steps=5, stiffness=50.0, target={**targets, follower: 0.5})
    file = tmp_path / "inputs.csv"
    names = ",".join(f"{name}.target" for name in robot.dofs)
    file.write_text(f"time,{names}\n0,{','.join(map(repr, full.tolist()))}\n")
    from_file = artsim.simulate(robot, steps=5, stiffness=50.0, controls=file)
    np.testing.assert_array_equal(from_file["qpos"], by_leaders["qpos"])
