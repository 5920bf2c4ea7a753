"""`artsim run` and `artsim replay --verify` as users meet them: own processes, judged by exit code, words and file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.format import schema
from artsim.io.readers.differences import first_difference
from artsim.io.runs.prepare import prepare
from artsim.io.runs.replay import verify
from artsim.io.runs.run import run as run_plan
from artsim.loaders.stored import load_stored
from artsim.sim.runs import make_simulation, simulate
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT

ROBOTS = sorted((ROOT / "robots").glob("*.urdf"))
ARM = ROOT / "robots" / "arm7.urdf"
# recorded of robots that have any
EQUIPMENT = {"tau_loop", "tau_tendon", "tau_contact", "activation", "actuator_force"}
GRIPPER = ROOT / "robots" / "parallel_gripper.urdf"

INERTIAL = '<inertial><mass value="{0}"/><inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" iyz="0" izz="{0}"/></inertial>'
LINK = f'<link name="{{}}">{INERTIAL.format(1)}</link>'
ZERO = f'<link name="{{}}">{INERTIAL.format(0)}</link>'
BARE = '<link name="{}"/>'
JOINT = (
    '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
    '<origin xyz="0.5 0 0"/><axis xyz="0 1 0"/></joint>'
)


def run(*arguments: object, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`artsim …` in a process of its own."""
    words = [sys.executable, "-m", "artsim", *map(str, arguments)]
    done = subprocess.run(words, input=stdin, capture_output=True, env=os.environ | environment, timeout=300)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def good(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    """A call that must succeed."""
    done = run(*arguments, **more)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


def refused(code: int, *arguments: object, words: tuple[str, ...] = (), **more: object) -> str:
    """A call that must fail with this code and these words, and no traceback."""
    done = run(*arguments, **more)  # type: ignore[arg-type]
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    return done.stderr


def difference(a: Path, b: Path) -> object:
    with artsim.open(a) as left, artsim.open(b) as right:
        return first_difference(left, right)


def write_robot(path: Path, *parts: str) -> Path:
    path.write_text(f'<robot name="r">\n{chr(10).join(parts)}\n</robot>\n')
    return path


# --- what is refused (rows 41, 49, 103 to 106) -----------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["0", "-1", "1e30", "nan", "abc", "9" * 30])
def test_103_steps(steps: str, tmp_path: Path) -> None:
    refused(2, "run", GRIPPER, "--steps", steps, "-o", tmp_path / "out.h5", words=("steps",))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ("--dt", "nan"),
        ("--dt", "0"),
        ("--duration", "inf"),
        ("--duration", "1e20"),
        ("--steps", "5", "--duration", "1"),
        ("--every", "0"),
        ("--gravity", "1,2"),
        ("--gravity", "1,2,nan"),
        ("--coupling-damping", "nan"),
        ("--coupling-damping", "-1"),
        ("--coupling", "compliant"),
        ("--stiffness", "-1"),
        ("--stiffness", "joint_1=x"),
        ("--target", "joint_1=0.1"),
        ("--record", "qpoz"),
        ("--controller", "hodl"),
        ("--base", "flying"),
        ("--integrator", "rk4", "--velocity-limits"),
    ],
    ids=" ".join,
)
def test_wrong_options(options: tuple[str, ...], tmp_path: Path) -> None:
    refused(2, "run", ARM, *options, "-o", tmp_path / "out.h5")
    assert not list(tmp_path.iterdir())


def test_104_start(tmp_path: Path) -> None:
    vector = tmp_path / "q.csv"
    vector.write_text("1, 2\n")
    refused(2, "run", ARM, "--q0", "1,2,3", words=("got 3 numbers, want 7",))
    refused(2, "run", ARM, "--q0", vector, words=("got 2 numbers, want 7",))
    refused(2, "run", ARM, "--q0", tmp_path / "no.npy", words=("does not exist",))
    refused(2, "run", ARM, "--q0", "nan,0,0,0,0,0,0", words=("not finite",))
    refused(2, "run", ARM, "--q0", "joint_2=inf", words=("joint_2", "not finite"))
    refused(2, "run", ARM, "--q0", "joint2=1", words=("did you mean 'joint_2'?",))
    refused(2, "run", GRIPPER, "--q0", "left_finger_joint=0.01", "--q0", "right_finger_joint=0.02", words=("follows",))


def test_105_output_that_cannot_be_created(tmp_path: Path) -> None:
    model = tmp_path / "model.urdf"
    model.write_bytes(GRIPPER.read_bytes())
    link = tmp_path / "link.h5"
    link.symlink_to(model)
    for output in (model, link):
        refused(2, "run", model, "-o", output, "--force", words=("input itself",))
    refused(73, "run", model, "-o", tmp_path, words=("directory",))
    refused(73, "run", model, "-o", "/dev/full", words=("device",))
    refused(73, "run", model, "-o", "/dev/full", "--force", words=("device",))
    refused(73, "run", model, "-o", tmp_path / "no" / "out.h5", words=("does not exist",))
    assert model.read_bytes() == GRIPPER.read_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_f5_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    refused(73, "run", GRIPPER, "-o", tmp_path / "out.h5", words=("not writable",))
    tmp_path.chmod(0o700)


def test_106_output_exists(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    output.write_bytes(b"precious")
    refused(73, "run", GRIPPER, "-o", output, words=("--force",))
    assert output.read_bytes() == b"precious"
    good("run", GRIPPER, "--steps", 5, "-o", output, "--force")
    with artsim.open(output) as recording:
        assert recording.n_valid == 5


@pytest.mark.parametrize("inert", [ZERO, BARE], ids=["41", "49"])
def test_41_49_links_without_inertia(inert: str, tmp_path: Path) -> None:
    parts = (LINK.format("base"), LINK.format("arm"), inert.format("tip"))
    model = write_robot(tmp_path / "m.urdf", *parts, JOINT.format("j", "base", "arm"), JOINT.format("k", "arm", "tip"))
    refused(65, "run", model, "-o", tmp_path / "out.h5", words=("m.urdf:4:", "'tip'", "inertia"))
    assert not (tmp_path / "out.h5").exists()
    moved = write_robot(tmp_path / "n.urdf", *parts, JOINT.format("j", "base", "tip"), JOINT.format("k", "tip", "arm"))
    done = run("run", moved, "--steps", 5)  # the link beyond has mass: the chain has dynamics
    assert done.returncode == 0, done.stderr


def test_no_model() -> None:
    refused(2, "run", words=("MODEL",))
    refused(66, "run", "no.urdf")
    refused(66, "run", "--config", "no.h5")
    refused(66, "run", "--config", "no.toml")


# --- running ---------------------------------------------------------------------------------------------------------


def test_standard_input_gives_the_same_run(tmp_path: Path) -> None:
    good("run", GRIPPER, "--steps", 50, "-o", tmp_path / "a.h5")
    good("run", "-", "--steps", 50, "-o", tmp_path / "b.h5", stdin=GRIPPER.read_bytes())
    assert difference(tmp_path / "a.h5", tmp_path / "b.h5") is None


def test_ground(tmp_path: Path) -> None:
    """A run with ground is stored with it, and reproduced; its options without it are refused."""
    finger, output = ROOT / "robots" / "finger.urdf", tmp_path / "run.h5"
    done = good(
        "run", finger, "--ground", "--ground-friction", 0.3, "--steps", 100, "--ground-height", 0.05, "-o", output
    )
    assert "nothing of this robot touches" not in done.stderr  # everything of it that collides is a sphere
    good("replay", output, "--verify")
    with artsim.open(output) as recording:
        assert np.abs(recording["tau_contact"]).max() > 0
        assert recording.config["ground_height"] == 0.05
    refused(2, "run", finger, "--ground-friction", 0.3, words=("--ground-friction is for --ground",))
    refused(2, "run", finger, "--ground", "--no-contacts", words=("--ground is for contacts, which --no-contacts",))


def test_json_is_one_object_and_stderr_says_the_same(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    done = good("run", GRIPPER, "--steps", 200, "-o", output, "--json")
    summary = json.loads(done.stdout)
    assert (summary["steps"], summary["status"], summary["output"]) == (200, 1, str(output))
    assert summary["bytes"] == output.stat().st_size
    assert done.stderr == ""
    told = good("run", GRIPPER, "--steps", 200)
    assert told.stdout == ""
    assert "200 steps" in told.stderr
    assert good("run", GRIPPER, "--steps", 5, "--quiet").stderr == ""


def test_ties_of_tendons_are_seen_to_hold(tmp_path: Path) -> None:
    model = tmp_path / "ties.xml"
    model.write_text(
        """<mujoco><worldbody><body><joint name="x" type="slide"/><geom size=".1"/></body>
        <body pos="1 0 0"><joint name="y" type="slide"/><geom size=".2"/></body></worldbody><tendon>
        <fixed name="t"><joint joint="x" coef="1"/><joint joint="y" coef="-2"/></fixed></tendon>
        <equality><tendon tendon1="t" solref=".05 1"/></equality></mujoco>"""
    )
    for coupling, holds in (("rows", True), ("auto", False)):
        done = good("run", model, "--steps", 50, "--v0", "x=1", "--coupling", coupling, "--json")
        summary = json.loads(done.stdout)
        assert summary["tendon_equalities"] == 1
        assert (summary["worst_tendon_error"] < 1e-12) == holds
    assert "worst error of tendon equalities: 0.0" in good("run", model, "--steps", 50, "--v0", "x=1").stderr


def test_compiling_is_not_counted_as_simulating(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels are compiled when a Simulation is made."""

    class Slow(simulate.Simulation):
        def __post_init__(self) -> None:
            time.sleep(0.3)
            super().__post_init__()

    monkeypatch.setattr(make_simulation, "Simulation", Slow)
    robot = artsim.load(GRIPPER)
    plan = prepare(robot.articulation, RunConfig(steps=10))
    assert run_plan(plan).seconds < 0.3
    assert run_plan(plan, output=tmp_path / "out.h5").seconds < 0.3


def test_record_every_gravity_base(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    good("run", GRIPPER, "--steps", 25, "--every", 10, "--record", "qpos,energy", "-o", output)
    with artsim.open(output) as recording:
        assert recording.variables == ("qpos", "energy")
        assert recording["time"].tolist() == [0.0, 0.02, 0.04]
    good("run", GRIPPER, "--steps", 5, "--record", "+jacobian", "--record", "+bias", "-o", output, "--force")
    with artsim.open(output) as recording:
        assert set(recording.variables) == {*schema.DEFAULT_RECORDED, "bias"} - EQUIPMENT  # the last --record counts
    free = ("run", ROOT / "robots" / "quadruped.urdf", "--base", "floating", "--gravity", "0,0,-1.62", "--steps", 100)
    good(*free, "-o", output, "--force", "--record", "qpos,com")
    with artsim.open(output) as recording:
        com, time_ = recording["com"], recording.time
    semi_implicit = -1.62 * time_ * (time_ + 0.002) / 2
    assert np.abs(com[:, 2] - com[0, 2] - semi_implicit).max() < 1e-9


def test_control_file(tmp_path: Path) -> None:
    table = tmp_path / "inputs.csv"
    table.write_text("time,joint_1.torque,joint_2.target\n0,1.5,0.1\n0.02,-1.5,0.2\n")
    output = tmp_path / "out.h5"
    good("run", ARM, "--steps", 30, "--control", table, "--stiffness", 500, "--damping", 20, "-o", output)
    with artsim.open(output) as recording:
        applied = recording["tau_applied"][:, 0]
        assert applied.tolist() == [1.5] * 10 + [-1.5] * 20
        assert recording.controls.target[:, 1].tolist() == [0.1, 0.2]
    good("replay", "--verify", output)
    good("run", "--config", output, "-o", tmp_path / "again.h5")
    assert difference(output, tmp_path / "again.h5") is None
    refused(66, "run", ARM, "--control", tmp_path / "no.csv")
    table.write_text("time,joint_9.torque\n0,1\n")
    refused(2, "run", ARM, "--control", table, words=("joint_9",))


@pytest.mark.parametrize(
    ("controller", "least", "most"),
    [("none", 0.5, 9), ("hold", 0, 1e-9), ("gravity-compensation", 0, 1e-9), ("computed-torque", 0, 1e-9)],
)
def test_built_in_controllers(controller: str, least: float, most: float, tmp_path: Path) -> None:
    """How far the arm falls in 0.4 s [rad]."""
    output = tmp_path / "out.h5"
    good("run", ARM, "--q0", "joint_2=0.5", "--steps", 200, "--controller", controller, "-o", output)
    good("replay", "--verify", output)
    with artsim.open(output) as recording:
        moved = np.abs(recording.final["qpos"] - recording["qpos"][0]).max()
    assert least <= moved <= most


PYTHON = """
import pathlib
def damp(t, qpos, qvel):
    pathlib.Path(__file__).with_name("called").touch()
    return -5.0 * qvel + (0.1 if t > 0.05 else 0.0)
def short(t, qpos, qvel):
    return [1.0]
def broken(t, qpos, qvel):
    return 1 / 0
def wild(t, qpos, qvel):
    return qvel * float("nan") if t > 0.05 else qvel
"""


def test_python_controller_is_stored_and_never_run_again(tmp_path: Path) -> None:
    code = tmp_path / "own.py"
    code.write_text(PYTHON)
    output, again = tmp_path / "out.h5", tmp_path / "again.h5"
    good("run", ARM, "--steps", 60, "--controller", f"{code}:damp", "-o", output)
    assert (tmp_path / "called").exists()
    (tmp_path / "called").unlink()
    with artsim.open(output) as recording:
        assert np.abs(recording["tau_applied"]).max() > 0
    good("replay", "--verify", output)
    good("run", "--config", output, "-o", again)
    assert difference(output, again) is None
    assert not (tmp_path / "called").exists()
    code.unlink()
    good("replay", "--verify", again)


@pytest.mark.parametrize("how", ["--torque", "--target", "--control", "ARTSIM_TORQUE", "ARTSIM_CONTROLLER", "toml"])
def test_a_python_controller_runs_only_when_typed(how: str, tmp_path: Path) -> None:
    """Not one that a file from somebody else names, or the environment, whatever else is typed."""
    code, gift = tmp_path / "evil.py", tmp_path / "gift.h5"
    code.write_text(PYTHON)
    words: list[object] = ["run", "--config", gift]
    environment: dict[str, str] = {}
    if how == "toml":
        gift = tmp_path / "gift.toml"
        gift.write_text(f'controller = "{code}:damp"\n')
        words = ["run", ARM, "--config", gift]
    elif how == "ARTSIM_CONTROLLER":
        words, environment = ["run", ARM], {how: f"{code}:damp"}
    else:
        good("run", ARM, "--steps", 5, "--stiffness", 100, "--controller", f"{code}:damp", "-o", gift)
        (tmp_path / "called").unlink()
        (tmp_path / "inputs.csv").write_text("time,joint_1.torque\n0,0.1\n")
        given = {"--torque": "joint_1=0.1", "--target": "joint_1=0.1", "--control": str(tmp_path / "inputs.csv")}
        words += [how, given[how]] if how in given else []
        environment = {} if how in given else {how: "joint_1=0.1"}
    refused(2, *words, words=("only when typed on the command line",), **environment)
    assert not (tmp_path / "called").exists()


def test_python_controllers_that_fail(tmp_path: Path) -> None:
    code = tmp_path / "own.py"
    code.write_text(PYTHON)
    output = tmp_path / "out.h5"
    refused(2, "run", ARM, "--controller", f"{code}:short", words=("(7,)",))
    refused(2, "run", ARM, "--controller", f"{code}:broken", words=("ZeroDivisionError", "t = 0"))
    refused(2, "run", ARM, "--controller", f"{code}:dmap", words=("dmap",))
    refused(66, "run", ARM, "--controller", f"{tmp_path / 'no.py'}:damp")
    refused(3, "run", ARM, "--controller", f"{code}:wild", "-o", output, words=("not finite", "joint_1"))
    with artsim.open(output) as recording:
        assert recording.state == "interrupted"


def test_a_controller_may_use_numba(tmp_path: Path) -> None:
    """The engine's stand-ins for numba's runtime are its own: in numba's code they ended the process."""
    code = tmp_path / "fast.py"
    code.write_text("import numba\n@numba.njit\ndef f(t, qpos, qvel):\n    return -5.0 * qvel\n")
    good("run", ARM, "--steps", 5, "--controller", f"{code}:f")


def test_a_controller_may_print_and_import_but_not_exit(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("gain = 2.0\n")
    code = tmp_path / "own.py"
    code.write_text(
        "import sys, beside\nprint('loaded')\n"
        "def talk(t, qpos, qvel):\n    print('talk')\n    return -beside.gain * qvel\n"
        "def leave(t, qpos, qvel):\n    sys.exit()\n"
    )
    done = good("run", ARM, "--steps", 2, "--controller", f"{code}:talk", "--json")
    assert json.loads(done.stdout)["steps"] == 2
    assert "talk" in done.stderr
    refused(2, "run", ARM, "--controller", f"{code}:leave", words=("SystemExit", "t = 0"))
    code.write_text("raise SystemExit\n")
    refused(2, "run", ARM, "--controller", f"{code}:talk", words=("SystemExit",))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-"])
def test_closed_standard_streams(closed: str, tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = f"exec '{sys.executable}' -m artsim run '{ARM}' --steps 3 --json -o '{output}' {closed}"
    done = subprocess.run(["sh", "-c", words], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    good("replay", "--verify", output)


def test_a_closed_standard_input_is_an_empty_model() -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m artsim check - <&-"], capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (65, b"<stdin>: empty file\n")


def test_an_output_of_any_name_or_size_is_a_configuration(tmp_path: Path) -> None:
    output, again = tmp_path / "out", tmp_path / "again.h5"
    good("run", ARM, "--steps", 3, "-o", output)
    good("run", "--config", output, "-o", again)
    assert difference(output, again) is None
    with again.open("r+b") as file:
        file.truncate(2**30 + 2**20)  # a hole: what long runs reach
    good("run", "--config", again)
    good("run", ARM, "--control", again)


def test_a_run_that_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    code, output = tmp_path / "own.py", tmp_path / "out.h5"
    code.write_text("def broken(t, qpos, qvel):\n    return 1 / 0\n")
    refused(2, "run", ARM, "--controller", f"{code}:broken", "-o", output)
    assert not output.exists()
    refused(66, "run", "--config", output)


def test_vectors_by_file_are_real_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "complex.npy", np.zeros(7, complex))
    refused(2, "run", ARM, "--q0", tmp_path / "complex.npy", words=("complex128",))
    line = refused(2, "run", ARM, "--q0", "1,2", words=("got 2 numbers, want 7",))
    assert "…" not in line


def test_a_pose_beyond_limits_is_told(tmp_path: Path) -> None:
    """MuJoCo starts there and lets its soft limits push; here limits are hard and the run starts at them."""
    body = '<body><joint name="thumb" range=".25 1"/><geom size=".1"/></body>'
    key = '<keyframe><key name="in" qpos=".5"/></keyframe>'
    path = tmp_path / "model.xml"
    path.write_text(f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody>{key}</mujoco>')
    told = "warning: the file's pose is beyond limits; starts at them: thumb at 0.25, not 0"
    assert told in good("run", path, "--steps", 1).stderr
    assert "warning" not in good("run", path, "--steps", 1, "--keyframe", "in").stderr
    assert "warning" not in good("run", path, "--steps", 1, "--q0", "thumb=.5").stderr


def test_controls_beyond_their_range_are_told(tmp_path: Path) -> None:
    clamp = ROOT / "robots" / "clamp.xml"
    assert "outside" not in good("run", clamp, "--steps", 1, "--control", "grip=1").stderr
    assert (
        "control 90 of 'grip' is outside its range" in good("run", clamp, "--steps", 1, "--control", "grip=90").stderr
    )
    table = tmp_path / "table.csv"
    table.write_text("time,grip\n0,0\n1,-90\n")
    assert "control -90 of 'grip' is outside" in good("run", clamp, "--steps", 1, "--control", table).stderr


def test_what_is_longer_than_a_file_name_may_be() -> None:
    """Numbers for many joints are no file, and a name that cannot be one is no fault of artsim's."""
    numbers = ",".join(["0." + "1" * 40] * 7)
    good("run", ARM, "--steps", 1, "--q0", numbers, "--v0", numbers)
    for options in (("--control", "x" * 300), ("--stiffness", "x" * 300), ("--controller", "x" * 300 + ".py:f")):
        done = run("run", ARM, "--steps", 1, *options)
        assert done.returncode in (2, 66), done.stderr
    assert "File name too long" in refused(66, "replay", "--verify", "x" * 300 + ".h5")


def test_a_typed_value_does_not_hide_a_wrong_configuration(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text("q0 = 5")
    refused(2, "run", ARM, "--config", config, "--q0", "joint_1=1", words=("q0 is 5",))
    config.write_text("dt = 'x'")
    refused(2, "run", ARM, "--config", config, "--duration", 1, words=("dt is 'x'",))
    refused(2, "run", ARM, "--duration", "1e300", words=("5e+302 steps",))
    refused(2, "run", ARM, "--seed", 2**64, "-o", tmp_path / "out.h5", words=("64 bits",))


def test_duration_and_gains_of_all_joints_in_toml(tmp_path: Path) -> None:
    config, output = tmp_path / "run.toml", tmp_path / "out.h5"
    config.write_text("duration = 0.1\nstiffness = 200\n")
    good("run", ARM, "--config", config, "--stiffness", "joint_2=5", "-o", output)
    with artsim.open(output) as recording:
        assert recording.config["steps"] == 50
        assert recording.config["stiffness"] == {"*": 200.0, "joint_2": 5.0}
    done = good("run", ARM, "--config", config, "--steps", 7, "--json")
    assert json.loads(done.stdout)["steps"] == 7


# --- F20: a state that is not finite ---------------------------------------------------------------------------------


def test_control_file_and_controller_together(tmp_path: Path) -> None:
    """Targets from the file, forces from the function, each from the step on at which it begins to act."""
    code, table, output = tmp_path / "push.py", tmp_path / "targets.csv", tmp_path / "both.h5"
    code.write_text("def push(t, qpos, qvel):\n    return 0 * qvel + (t > 0.0099)\n")
    table.write_text("time,joint_1.target\n0,0\n0.01,0.2\n0.02,0.3\n")
    gains = ("--stiffness", "joint_1=100", "--damping", "joint_1=10")
    good("run", ARM, "--steps", 20, *gains, "--control", table, "--controller", f"{code}:push", "-o", output)
    with artsim.open(output) as recording:
        acted = recording.controls
        rows = [acted.row_at(step) for step in range(20)]
        assert np.array_equal(acted.target[rows, 0], np.repeat([0.0, 0.2, 0.3], [5, 5, 10]))
        assert np.array_equal(acted.torque[rows, 3], np.repeat([0.0, 1.0], [5, 15]))
        assert np.array_equal(recording["tau_applied"][:, 3], acted.torque[rows, 3])
    assert verify(output, load_stored) is None


def test_what_would_do_nothing_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "targets.csv"
    table.write_text("time,joint_1.target\n0,0.4\n")
    refused(2, "run", ARM, "--control", table, words=("targets.csv", "joint_1", "needs a drive"))
    refused(2, "run", ARM, "--coupling-frequency", 5, words=("compliant",))
    refused(2, "run", ARM, "--coupling", "compliant", words=("--coupling-frequency",))


def test_a_failing_controller_keeps_the_rows_before_it(tmp_path: Path) -> None:
    code, output = tmp_path / "late.py", tmp_path / "late.h5"
    code.write_text("def late(t, qpos, qvel):\n    return 0 * qvel if t < 0.0999 else 1 / 0\n")
    refused(2, "run", ARM, "--steps", 200, "--controller", f"{code}:late", "-o", output, words=("t = 0.1 s",))
    with artsim.open(output) as recording:
        assert recording.n_valid == 50
        assert recording.state == "interrupted"
    good("replay", "--verify", output)  # it has no final state


def test_a_typed_start_changes_only_what_it_names(tmp_path: Path) -> None:
    """A stored start leaves followers to their leaders, so that a leader can be moved."""
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    gripper = ROOT / "robots" / "two_finger_gripper.urdf"
    good("run", gripper, "--steps", 5, "--q0", "left_driver_joint=0.1", "--v0", "left_driver_joint=0.3", "-o", first)
    good("run", "--config", first, "--q0", "left_driver_joint=0.2", "-o", second)
    with artsim.open(first) as a, artsim.open(second) as b:
        assert np.array_equal(np.abs(b["qpos"][0]), np.full(6, 0.2))
        assert np.array_equal(a["qvel"][0], b["qvel"][0])


def test_f20_unstable_gains(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    unstable = ("--integrator", "rk4", "--stiffness", 1e12, "--q0", "j=1", "--target", "j=0")
    told = refused(3, "run", write_free(tmp_path), *unstable, "-o", output)
    assert "'j'" in told
    assert "t = " in told
    with artsim.open(output) as recording:
        assert recording.state == "stopped"
        assert recording.status == 2
        assert 0 < recording.n_valid < 1000
        for name in recording.variables:
            assert np.isfinite(recording[name]).all(), name
    good("replay", "--verify", output)


def write_free(folder: Path) -> Path:
    """One joint without limits."""
    return write_robot(folder / "free.urdf", LINK.format("base"), LINK.format("arm"), JOINT.format("j", "base", "arm"))


# --- configurations --------------------------------------------------------------------------------------------------


def test_config_toml_and_precedence(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('steps = 20\ndt = 0.004\nrecord = ["qpos"]\n[q0]\njoint_2 = 0.3\n')
    output = tmp_path / "out.h5"
    good("run", ARM, "--config", config, "-o", output)
    with artsim.open(output) as recording:
        assert (recording.n_valid, recording.dt, recording.variables) == (20, 0.004, ("qpos",))
        assert recording["qpos"][0, 1] == 0.3
    good("run", ARM, "--config", config, "--steps", 7, "-o", output, "--force", ARTSIM_STEPS="9", ARTSIM_DT="0.001")
    with artsim.open(output) as recording:
        assert (recording.n_valid, recording.dt) == (7, 0.001)
    refused(2, "run", "--config", config, words=("MODEL",))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("stepz = 3", "did you mean 'steps'?"),
        ("steps = 'many'", "steps"),
        ("steps = 2.5", "steps"),
        ("dt = 'x'", "dt"),
        ("q0 = 3", "q0"),
        ("q0 = {joint_2 = 'x'}", "q0"),
        ("gravity = [1, 2]", "gravity"),
        ("record = 'qpos'", "record"),
        ("velocity_limits = 1", "velocity_limits"),
        ("base = 3", "base"),
        ("seed = 99999999999999999999", "seed"),
        ("no_meshes = true", "command line"),
        ("duration = 'x'", "duration"),
        ("duration = 1\nsteps = 5", "not both"),
        ("drutaion = 1", "did you mean 'duration'"),
        ("steps = ", "not TOML"),
    ],
)
def test_wrong_configurations(text: str, word: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(text)
    refused(2, "run", ARM, "--config", config, words=(word,))


def test_config_of_an_output_repeats_it(tmp_path: Path) -> None:
    output, again = tmp_path / "a.h5", tmp_path / "b.h5"
    options = ("--base", "floating", "--steps", 40, "--every", 3, "--record", "+energy", "--friction-coefficient", 0.1)
    good("run", ROOT / "robots" / "quadruped.urdf", *options, "-o", output)
    good("run", "--config", output, "-o", again)
    assert difference(output, again) is None
    with artsim.open(output) as a, artsim.open(again) as b:
        assert a.config == b.config
    refused(2, "run", "--config", output, "-o", output, "--force", words=("input itself",))


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("extra", [(), ("--every", "1000000")], ids=["", "rarely recorded"])
def test_f2_signals(number: int, code: int, extra: tuple[str, ...], tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = [sys.executable, "-m", "artsim", "run", str(ARM), "--steps", "2000000000", "-o", str(output), *extra]
    process = subprocess.Popen([*words, "--record", "qpos"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not output.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.7)
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == code, told
    assert "Traceback" not in told
    with artsim.open(output) as recording:
        assert recording.state == "interrupted"
        assert recording.n_valid > 0
        assert int(recording.final["step"]) > 0
        assert np.isfinite(recording["qpos"][-1]).all()


def test_an_interrupted_run_reproduces(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    words = [sys.executable, "-m", "artsim", "run", str(GRIPPER), "--steps", "2000000000", "-o", str(output)]
    process = subprocess.Popen([*words, "--every", "3", "--record", "qpos,qvel"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (output.exists() and output.stat().st_size > 20_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    assert process.wait(30) == 143
    good("replay", "--verify", output)


# --- replay ----------------------------------------------------------------------------------------------------------


def test_every_robot_reproduces(tmp_path: Path) -> None:
    """Also when two processes work side by side, and when threads do."""

    def verified(path: Path) -> str:
        output = tmp_path / f"{path.stem}.h5"
        good("run", path, "--steps", 30, "--record", "+mass_matrix,+jacobian,+energy", "-o", output)
        return good("replay", "--verify", output).stdout

    with ThreadPoolExecutor(2) as pool:
        for told in pool.map(verified, ROBOTS):
            assert "reproduced" in told

    outputs = [tmp_path / f"{path.stem}.h5" for path in ROBOTS]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda path: verify(path, load_stored), outputs)) == [None] * len(outputs)


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    good("run", ARM, "--steps", 50, "-o", output)
    with h5py.File(output, "r+") as file:
        value = file["trajectory/qvel"][20, 3]
        file["trajectory/qvel"][20, 3] = np.nextafter(value, 1)
    refused(3, "replay", "--verify", output, words=("qvel", "step 20", "joint_4"))
    refused(65, "replay", "--verify", ARM, words=("XML",))


def test_a_stored_model_without_inertia_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    good("run", write_free(tmp_path), "--steps", 5, "-o", output)
    with h5py.File(output, "r+") as file:
        text = file["model/source"][()].decode()
        file["model/source"][()] = text.replace(LINK.format("arm"), BARE.format("arm"))
    refused(65, "replay", "--verify", output, words=("'arm'",))


# --- other readers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ARM, ROOT / "robots" / "two_finger_gripper.urdf"], ids=lambda path: path.stem)
def test_xarray_opens_every_group_without_a_warning(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    names = ",".join(f"+{name}" for name in schema.RECORDED)
    good("run", model, "--steps", 20, "--record", names, "-o", output)
    with h5py.File(output) as file:
        groups = [name for name, item in file.items() if isinstance(item, h5py.Group)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for group in groups:
            with xarray.open_dataset(output, group=group, engine="h5netcdf") as data:
                data.load()
        with xarray.open_dataset(output, group="trajectory", engine="h5netcdf") as data:
            joint = artsim.load(model).coords[-1]
            assert data.qpos.sel(coord=joint).shape == (20,)
            assert data.jacobian.dims == ("time", "jacobian_column", "twist")
            last = int(data.jacobian_link[-1]), int(data.jacobian_dof[-1])
            assert data.jacobian_column.values[-1] == f"{data.link.values[last[0]]},{data.dof.values[last[1]]}"


def test_quiet_is_quiet_where_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(kernels: object) -> None:
        print("artsim: compiling", file=sys.stderr)

    monkeypatch.setattr("artsim.cli.run.warm", told)
    words = ["run", str(ARM), "--steps", "2"]
    for quiet in ((), ("-q",)):
        cli.main([*words, *quiet], prog_name="artsim", standalone_mode=False)
        assert ("compiling" in capsys.readouterr().err) is not bool(quiet)


def test_a_run_says_that_nothing_is_kept_and_that_a_file_will_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is that of the rows that the file then holds."""
    words = ["run", str(ARM), "--steps", "1200", "--every", "2"]
    kept_nothing = "nothing of the run is kept; -o FILE.h5 writes it to a file"
    assert kept_nothing in CliRunner().invoke(cli, words).stderr
    monkeypatch.setattr("artsim.cli.run_output.LARGE", 1e6)
    output = tmp_path / "arm.h5"
    told = CliRunner().invoke(cli, [*words, "--record", "+jacobian", "-o", str(output)]).stderr
    assert kept_nothing not in told
    size = float(told.partition("the file will take ")[2].partition(" GB; --every N")[0]) * 1e9
    with h5py.File(output) as file:
        rows = [file["trajectory"][name] for name in file["trajectory"] if file["trajectory"][name].shape[:1] == (600,)]
        assert size == pytest.approx(sum(8 * data.size for data in rows), rel=0.01)
    assert "the file will take" not in CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "small.h5")]).stderr
