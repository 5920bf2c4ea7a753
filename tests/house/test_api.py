"""The public Python API: what a notebook types."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import artsim
from artsim.io.readers.differences import first_difference
from artsim.io.readers.recording import Recording
from artsim.io.rollouts.draws import RolloutConfig
from artsim.io.rollouts.rollout import rollout
from artsim.io.runs.simulate import MemoryRecording, simulate
from artsim.io.settings import RolloutOptions, SimulateOptions
from artsim.sim.foundation.errors import MissingInputError, ModelError, OutputError, StoppedError, UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.setting import TEXT_OR_OF_JOINTS
from artsim.sim.runs.settings import SETTINGS, RunSettings
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
GRIPPER = ROOT / "robots" / "two_finger_gripper.urdf"
QUADRUPED = ROOT / "robots" / "quadruped.urdf"


def in_memory(*arguments: Any, **options: Any) -> MemoryRecording:
    recording = artsim.simulate(*arguments, **options)
    assert isinstance(recording, MemoryRecording)
    return recording


def test_a_robot_prints_on_a_line() -> None:
    assert repr(artsim.load(ROOT / "robots" / "clamp.xml")) == "<Robot 'clamp': nq 6, nv 6, 7 links>"


def test_wrong_kinds_of_settings_are_named() -> None:
    clamp = ROOT / "robots" / "clamp.xml"
    for settings, words in (
        ({"control": "file.csv"}, "a file goes to controls="),
        ({"control": {"grip": "far"}}, "want numbers by name"),
        ({"q0": [[1.0], [2.0, 3.0]]}, "want numbers by name"),
        ({"activation": 1.0}, "want numbers by name"),
    ):
        with pytest.raises(UsageError, match=words):
            artsim.simulate(clamp, steps=1, **settings)


def test_names() -> None:
    assert artsim.Robot.__name__ == "Robot"
    assert issubclass(artsim.UsageError, artsim.ArtsimError)
    for name in artsim.__all__:
        assert getattr(artsim, name)
    with pytest.raises(AttributeError, match="laod"):
        artsim.laod  # noqa: B018


@pytest.mark.small
def test_load() -> None:
    robot = artsim.load(str(ARM))
    assert (robot.nq, robot.nv, len(robot.links)) == (7, 7, 9)
    assert robot.coords == robot.dofs == tuple(f"joint_{i}" for i in range(1, 8))
    free = artsim.load(QUADRUPED, base="floating", gravity=(0, 0, -1.62))
    assert (free.nq, free.nv) == (19, 18)
    assert free.model.gravity.tolist() == [0, 0, -1.62]
    assert len(artsim.load(GRIPPER).independent_dofs) == 1
    assert len(artsim.load(GRIPPER, coupling="rows").independent_dofs) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": "flying"}, "base"),
        ({"coupling": "stiff"}, "coupling"),
        ({"coupling": "compliant"}, "frequency"),
        ({"gravity": (1, 2)}, "gravity"),
        ({"coupling_damping": -1}, "coupling_damping"),
    ],
)
def test_load_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        artsim.load(ARM, **options)


def test_load_of_what_is_no_robot(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        artsim.load(tmp_path / "no.urdf")
    (tmp_path / "m.urdf").write_text("<model/>")
    with pytest.raises(ModelError, match=r"m\.urdf:1: root is <model>"):
        artsim.load(tmp_path / "m.urdf")


@pytest.mark.small
def test_compute_takes_a_path_or_a_robot() -> None:
    q = np.linspace(-0.3, 0.3, 7)
    wanted = ["mass_matrix", "gravity"]
    by_path = artsim.compute(ARM, q, quantities=wanted)
    by_robot = artsim.load(ARM).compute(q, quantities=wanted)
    assert by_path["mass_matrix"].shape == (7, 7)
    for name in wanted:
        assert by_path[name].tobytes() == by_robot[name].tobytes()
    assert artsim.compute(ARM, [q, q], quantities=wanted)["gravity"].shape == (2, 7)


@pytest.mark.small
def test_a_run_in_memory() -> None:
    robot = artsim.load(ARM)
    recording = in_memory(robot, steps=25, dt=0.001, every=4, q0={"joint_2": 0.5}, record=("qpos", "energy"))
    assert recording.variables == ("qpos", "energy")
    assert recording["qpos"].shape == (7, 7)
    assert np.allclose(recording.time, np.arange(7) * 0.004, rtol=0, atol=1e-15)
    assert recording["qpos"][0].tolist() == [0, 0.5, 0, 0, 0, 0, 0]
    assert recording.labels.coord == robot.coords
    assert recording.robot.dofs == robot.dofs
    assert (recording.state, recording.n_valid, recording.dt, recording.every) == ("complete", 7, 0.001, 4)
    assert int(recording.final["step"]) == 25
    assert "energy" in recording
    with pytest.raises(UsageError, match="did you mean 'qpos'"):
        recording["qpoz"]


def test_memory_and_file_hold_the_same(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 40, "q0": np.full(7, 0.1), "stiffness": 20, "damping": {"joint_1": 2.0}}
    memory = in_memory(ARM, **options)
    with artsim.simulate(ARM, **options, output=tmp_path / "out.h5") as recording:  # type: ignore[union-attr]
        assert isinstance(recording, Recording)
        assert recording.variables == memory.variables
        for name in ("time", *memory.variables):
            assert recording[name].tobytes() == memory[name].tobytes(), name
        assert recording.to_xarray().identical(memory.to_xarray().assign_attrs(recording.attrs))
        for name, value in memory.final.items():
            assert recording.final[name] == pytest.approx(value, abs=0, nan_ok=True), name
    with pytest.raises(OutputError):
        artsim.simulate(ARM, **options, output=tmp_path / "out.h5")
    artsim.simulate(ARM, **options, output=tmp_path / "out.h5", force=True, compress="gzip").close()  # type: ignore[union-attr]


@pytest.mark.small
def test_how_the_robot_was_loaded_holds_for_its_runs() -> None:
    moon = artsim.load(QUADRUPED, base="floating", gravity=(0, 0, -1.62))
    run = in_memory(moon, steps=50, record=("com",))
    drop = run["com"][-1, 2] - run["com"][0, 2]
    assert drop == pytest.approx(-1.62 * 0.5 * 49 * 50 * 0.002**2, rel=1e-9)
    assert in_memory(moon, steps=2, gravity=(0, 0, 0), record=("qacc",))["qacc"][0, 2] == pytest.approx(0, abs=1e-9)
    soft = artsim.load(GRIPPER, coupling="compliant", coupling_frequency=15.0)
    assert in_memory(soft, steps=2).config.coupling_frequency == 15.0
    assert in_memory(soft, steps=2, coupling="exact").robot.independent_dofs == artsim.load(GRIPPER).independent_dofs


@pytest.mark.small
def test_controllers() -> None:
    robot = artsim.load(ARM)
    seen: list[float] = []

    def damp(t: float, qpos: Any, qvel: Any) -> Any:
        seen.append(t)
        return -3 * qvel

    run = in_memory(robot, steps=10, controller=damp)
    assert np.allclose(seen, np.arange(10) * 0.002, rtol=0, atol=1e-15)
    assert np.array_equal(run["tau_applied"], -3 * run["qvel"])
    still = in_memory(robot, steps=10, controller="gravity-compensation", q0={"joint_2": 0.3})
    assert np.abs(still["qvel"]).max() < 1e-12
    with pytest.raises(UsageError, match="did you mean 'hold'"):
        artsim.simulate(robot, controller="hodl")
    with pytest.raises(UsageError, match=r"\(7,\)"):
        artsim.simulate(robot, controller=lambda t, q, v: [1.0])


def test_controls(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("time,joint_1.torque\n0,2\n0.01,3\n")
    by_file = in_memory(ARM, steps=10, controls=table)
    torque = np.zeros((2, 7))
    torque[:, 0] = (2, 3)
    given = Controls(np.array([0, 5]), torque, np.zeros((2, 7)), np.zeros((2, 7)))
    by_hand = in_memory(ARM, steps=10, controls=given)
    assert by_file["tau_applied"][:, 0].tolist() == [2.0] * 5 + [3.0] * 5
    assert by_file["qpos"].tobytes() == by_hand["qpos"].tobytes()


@pytest.mark.parametrize(
    ("start", "nv", "value", "message"),
    [
        ([0], 5, 0.0, "torques for 5 of 7 degrees of freedom"),
        ([0], 9, 0.0, "torques for 9 of 7 degrees of freedom"),
        ([3], 7, 0.0, "no row begins at step 0"),
        ([], 7, 0.0, "no row begins at step 0"),
        ([0], 7, np.nan, "torque has numbers that are not finite"),
    ],
)
def test_controls_that_kernels_could_not_read_are_refused(
    start: list[int], nv: int, value: float, message: str
) -> None:
    rows = np.zeros((len(start), nv))
    given = Controls(np.array(start, np.int64), rows + value, rows, rows)
    with pytest.raises(UsageError, match=message):
        in_memory(ARM, steps=5, controls=given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stepz": 3}, "did you mean 'steps'"),
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"q0": [1, 2]}, "q0 has shape"),
        ({"ground_friction": 10**400}, "ground_friction is 10+, want a finite number from 0"),
        ({"gravity": (0, 0, -(10**400))}, "gravity is "),
        ({"q0": {"joint_9": 1}}, "joint_9"),
        ({"record": ("qpoz",)}, "qpoz"),
        ({"target": {"joint_1": 1}}, "needs a drive"),
    ],
)
def test_simulate_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        artsim.simulate(ARM, **settings)


def test_stopping(tmp_path: Path) -> None:
    unstable: dict[str, Any] = {"v0": {"joint_2": 1e200}, "steps": 500}
    with pytest.raises(StoppedError, match="joint"):
        artsim.simulate(ARM, **unstable)
    kept = in_memory(ARM, **unstable, check=False)
    assert kept.state == "stopped"
    assert kept.n_valid < 500
    with pytest.raises(StoppedError):
        artsim.simulate(ARM, **unstable, output=tmp_path / "out.h5")
    with artsim.open(tmp_path / "out.h5") as recording:
        assert recording.state == "stopped"


def test_the_shell_s_run_is_python_s(tmp_path: Path) -> None:
    shell, python = tmp_path / "shell.h5", tmp_path / "python.h5"
    words = ["run", ARM, "--steps", 30, "--q0", "joint_2=0.4", "-o", shell]
    subprocess.run([sys.executable, "-m", "artsim", *map(str, words)], check=True, capture_output=True)
    with artsim.simulate(ARM, steps=30, q0={"joint_2": 0.4}, output=python) as a, artsim.open(shell) as b:  # type: ignore[union-attr]
        assert first_difference(a, b) is None
        assert a.config == b.config
        assert set(json.loads(a.provenance["versions"])) == set(json.loads(b.provenance["versions"]))
    done = subprocess.run([sys.executable, "-m", "artsim", "replay", "--verify", str(python)], capture_output=True)
    assert done.returncode == 0


@pytest.mark.small
@pytest.mark.parametrize("model", [GRIPPER, QUADRUPED], ids=lambda path: path.stem)
def test_recorded_jacobians_are_dense_in_python_and_compact_in_files(model: Path, tmp_path: Path) -> None:
    robot = artsim.load(model, base="floating" if model is QUADRUPED else "fixed")
    settings: dict[str, Any] = {"steps": 7, "record": ("qpos", "jacobian")}
    run = in_memory(robot, **settings)
    want = robot.compute(run["qpos"], quantities=["jacobian"])["jacobian"]
    assert run["jacobian"].shape == want.shape
    np.testing.assert_allclose(run["jacobian"], want, rtol=0, atol=1e-14)
    assert run.to_xarray().jacobian.sel(link=robot.links[-1]).dims == ("time", "twist", "dof")
    with artsim.simulate(robot, output=tmp_path / "run.h5", **settings) as stored:  # type: ignore[union-attr]
        assert stored["jacobian"].tobytes() == run["jacobian"].tobytes()
        compact = stored.read_stored("jacobian", 2, 4)
        assert compact.shape == (2, np.count_nonzero(np.any(want, axis=(0, 2))), 6)
        dense = np.zeros_like(want[2:4])
        dense[:, stored.labels.jacobian_link, :, stored.labels.jacobian_dof] = compact.swapaxes(0, 1)
        assert dense.tobytes() == run["jacobian"][2:4].tobytes()


def test_options_are_typed_and_told() -> None:
    """What editors and `help` say of simulate and rollout is what these take."""
    config = {field.name for field in fields(RunConfig)}
    taken = config | set(signature(simulate).parameters) - {"robot", "settings"}
    varied = {field.name for field in fields(RolloutConfig)} - {"given"}  # which follows from the arrays
    rolled = config | varied | set(signature(rollout).parameters) - {"robot", "settings"}
    assert SimulateOptions.__optional_keys__ == taken
    assert RolloutOptions.__optional_keys__ | RolloutOptions.__required_keys__ == rolled
    assert RunSettings.__optional_keys__ == config - {"controller"}
    told = set(re.findall(r"^    (\w+): ", RunSettings.__doc__ or "", re.M))
    assert taken <= told | set(re.findall(r"\w+", artsim.simulate.__doc__ or ""))
    assert rolled - taken <= set(re.findall(r"\w+", artsim.rollout.__doc__ or ""))


def test_keyword_arguments_have_the_choices_of_the_table() -> None:
    for name, hint in get_type_hints(RunSettings).items():
        if get_origin(hint) is Literal:
            assert set(get_args(hint)) == set(SETTINGS[name].choices), name
        else:
            assert not SETTINGS[name].choices or SETTINGS[name].kind is TEXT_OR_OF_JOINTS


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_is_a_right_value(name: str) -> None:
    setting = SETTINGS[name]
    setting.check(name, setting.default)
    assert RunConfig.from_mapping({name: setting.default}) == RunConfig()
    with pytest.raises(UsageError, match=f"^{name} is "):
        RunConfig.from_mapping({name: object()})
