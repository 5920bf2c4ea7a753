"""Every option of every command that takes numbers, with numbers that are none, are out of bounds or at their edges."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import COMMANDS, cli
from artsim.cli.numbers import Number, Seconds, Whole
from artsim.sim.foundation.errors import UsageError
from tests.conftest import ROOT

ROBOT = ROOT / "robots" / "double_pendulum.urdf"
NONE = ("nan", "inf", "-inf", "1e400", "1_0", "\u0661\u0662", "\uff11", "0x10", "", " ", "one", "1;5", "1" * 5000)
ODD = ("1e308", "-1e308", "1e-320", "-1e-320", "1e17", "-1", "-0.0", "0", "1e300", "9223372036854775807")
MORE = ("9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" * 400)

VIA = ("--via", "shoulder=1", "--dt=0.1", "--max-velocity=9", "--max-acceleration=9")

# options whose texts hold numbers, with % for a number
WORDS = {
    "q0": "shoulder=%",
    "v0": "shoulder=%",
    "a0": "shoulder=%",
    "gravity": "0,0,%",
    "lqr": "1,%",
    "base_pose": "%,0,0",
    "on_ground": "%",
    "activation": "shoulder=%",
    "target": "shoulder=%",
    "target_velocity": "shoulder=%",
    "target_acceleration": "shoulder=%",
    "torque": "shoulder=%",
    "wrench": "LINK=%,0,0",
    "wrench_at": "LINK=%,0,0",
    "push": "LINK=1,0,%@%",
    "stiffness": "shoulder=%",
    "damping": "%",
    "drive_limit": "shoulder=%",
    "joint_friction": "shoulder=%",
    "armature": "shoulder=%",
    "friction_coefficient": "shoulder=%",
    "lower_limit": "shoulder=%",
    "upper_limit": "shoulder=%",
    "limit_stiffness": "shoulder=%",
    "limit_damping": "%",
    "swing_limit": "shoulder=%",
    "twist_limit": "shoulder=%:1",
    "twist_axis": "shoulder=%,0,1",
    "control": "shoulder=%",
    "coupling_erp": "%",
    "constraint_alpha": "shoulder=%",
    "constraint_beta": "shoulder=%",
    "coupling_frequency": "%",
    "coupling_damping": "%",
    "coupling_ratio": "shoulder=%",
    "coupling_offset": "shoulder=%",
    "compliance": "shoulder=%",
    "compliance_damping": "shoulder=%",
    "link_damping": "LINK=%,0",
    "link_velocity_limit": "LINK=%,1",
    "com_velocity_limit": "%,1",
    "place": "%,0,0",
    "spread": "shoulder=-%:%",
    "randomise": "mass=%:%",
    "grid": "shoulder=0:%:2",
    "ik --grid": "0:%:2,0,1",
    "shard": "%/%",
    "until": "shoulder > %",
    "cost": "shoulder * %",
    "pose": "%,0,0",
    "look_at": "LINK=%,0,0",
    "look_axis": "LINK=%,0,1",
    "com": "%,0,0",
    "weight": "LINK=%",
    "via": "shoulder=%",
    **dict.fromkeys(("max_velocity", "max_acceleration", "max_torque", "max_jerk"), "shoulder=%"),
    "camera": "%,20,3",
    "posture": "shoulder=%",
    "tolerance": "%,1e-6",
    "fix": "joint_1=%",
    "limits": "joint_1=%,1",
    "gains": "knee=%,%",
    **dict.fromkeys(("solid", "scale_mesh", "simplify", "contact_friction"), "LINK=%"),
    "mass": "LINK=%",
    "colour": "LINK=1,0,%",
    **dict.fromkeys(("effort", "velocity", "friction"), "joint_1=%"),
}
# options without numbers; those of files are tried in tests/test_manifest.py
TEXTS = {
    *("keyframe", "base", "packages", "mesh_root", "srdf", "loops", "controller", "policy", "record", "wrench_frame"),
    *("output", "inputs", "at"),
    *(
        "drive_mode",
        "drive_limit_kind",
        "config",
        "resume",
        "input",
        "compute",
        "links",
        "scheduler",
        "model",
        "models",
    ),
    *("through", "link", "move", "only", "frame", "assemble"),
    *("drop", "no_collision", "no_visual", "prefix", "tool", "carrier", "html"),
    *("inertia", "hull", "convex", "fit", "exclude", "rename"),
    *("start", "files", "file", "entries", "arguments", "forces", "into", "quantities"),
    *("plot", "follow", "background"),
}
LONG = {"steps", "duration", "samples", "pieces", "every", "shards", "grid", "fps"}
"""Options of which a number within bounds can mean work without end."""


def options_of(command: str) -> Iterator[click.Parameter]:
    module = importlib.import_module(f"artsim.cli.{command}")
    for param in getattr(module, command).params:
        if not (getattr(param, "is_flag", False) or isinstance(param.type, click.Choice)):
            yield param


NUMERIC = [
    (command, param.name)
    for command in COMMANDS
    for param in options_of(command)
    if param.name in WORDS or isinstance(param.type, (Number, Whole))
]


def test_every_number_has_its_type() -> None:
    """No option has a number of click's own, and texts that may hold numbers are known here."""
    from artsim.io.exports.formats import FORMATS

    for command in COMMANDS:
        for param in options_of(command):
            known = isinstance(param.type, (Number, Whole)) or param.name in {*WORDS, *TEXTS, *FORMATS}
            assert known, (command, param.name, param.type)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("numbers")
    robot = artsim.load(ROBOT)
    artsim.simulate(robot, steps=3, output=folder / "run.h5").close()
    artsim.rollout(robot, samples=2, steps=2, output=folder / "rollout.h5").close()
    return {name: folder / f"{name}.h5" for name in ("run", "rollout")}


def words_of(command: str, option: str, outputs: dict[str, Path], folder: Path) -> list[str]:
    """A call of the command that needs little time, but for the option."""
    rolled = str(outputs["rollout" if option == "samples" else "run"])
    there = {
        "run": [str(ROBOT), "--steps", "1", "-o", str(folder / "out.h5"), "--force"],
        "rollout": [str(ROBOT), "--samples", "2", "--steps", "1", "-o", str(folder / "out.h5"), "--force"],
        "batch": [str(ROBOT), "--samples", "2", "--compute", "gravity", "-o", str(folder / "out.h5"), "--force"],
        "compute": [str(ROBOT), "--compute", "gravity"],
        "bench": [str(ROBOT), "--steps", "1", "--pieces", "1"],
        "linearize": [str(ROBOT)],
        "ik": [str(ROBOT), "--link=rod_2", "--look-at=rod_2=1,0,0", "-o", str(folder / "out.npz"), "--force"],
        "trajectory": [str(ROBOT), *VIA, "-o", str(folder / "out.csv"), "--force"],
        "edit": [str(ROBOT), "-o", str(folder / "out.urdf"), "--force"],
        "attach": [str(ROBOT), str(ROBOT), "--at=rod_2", "--prefix=b_", "-o", str(folder / "out.urdf"), "--force"],
        "replay": [rolled, "--verify"],
        "plot": [rolled, "-o", str(folder / "out.svg"), "--force"],
        "export": [rolled, "--csv", str(folder / "out.csv"), "--force"],
    }
    words = there.get(command, [str(ROBOT)])
    flag = f"--{option.replace('_', '-')}"
    if flag in words:
        at = words.index(flag)
        words = words[:at] + words[at + 2 :]
    if command == "ik":
        words = [*words, "--attempts=2"] if option != "attempts" else words
        words += ["--pose=0,0,1"] if option not in ("pose", "grid") else []
    if option in ("grid", "duration"):
        words = [word for word in words if word not in ("--samples", "--steps", "1", "2")]
    if option == "wrench_at":
        words += ["--wrench", "rod_2=1,0,0"]
    return [command, *words]


def no_server(title: str, port: int) -> None:
    raise UsageError("no viewer here")


@pytest.mark.parametrize(("command", "option"), NUMERIC, ids=lambda name: str(name))
def test_odd_numbers_end_in_a_line(
    command: str, option: str, outputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number ends in a fault of artsim's own; what is none is refused with code 2."""
    param: Any = next(param for param in options_of(command) if param.name == option)
    template = (
        WORDS.get(f"{command} --{option}", WORDS.get(option, "%"))
        if not isinstance(param.type, (Number, Whole))
        else "%"
    )
    template = template.replace("LINK", "rod_2")
    monkeypatch.setattr("artsim.io.viewer.server.start_server", no_server)
    before = words_of(command, option, outputs, tmp_path)
    for text in (*NONE, *MORE, *(() if option in LONG else ODD)):
        given = template.replace("%", text)
        with warnings.catch_warnings():  # as the program does
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(cli, [*before, f"{param.opts[0]}={given}"])
        assert done.exit_code in (0, 2, 3, 65, 71), (given, done.exit_code, done.output[-300:], done.exception)
        if text in NONE and text.strip():
            right = (0, 2) if option == "compliance" and text == "inf" else (2,)
            assert done.exit_code in right, (given, done.output[-300:])
        message = [line for line in done.stderr.splitlines() if line and not line.startswith(("Usage:", "Try "))]
        assert done.exit_code in (0, 3) or len(message) - len([m for m in message if "warning" in m]) == 1, message


@pytest.mark.small
@pytest.mark.parametrize(
    ("word", "seconds"),
    [("9ms", 0.009), ("500 ms", 0.5), ("20us", 2e-5), ("2min", 120.0), ("1s", 1.0), ("1e-3", 1e-3), ("0.5s", 0.5)],
)
def test_times_may_have_units(word: str, seconds: float) -> None:
    assert Seconds(0, min_open=True).convert(word, None, None) == seconds


@pytest.mark.small
@pytest.mark.parametrize("word", ["s", "ms", "5m", "5 kg", "1mss", "0ms", "-1s", "nan s", "infs"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(click.BadParameter):
        Seconds(0, min_open=True).convert(word, None, None)
