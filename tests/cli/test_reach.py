"""What a user meets in the first hour: configurations from pipes, typos, kinds of files, Python's own errors."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.config_file import line_of
from artsim.cli.grouped import GroupedCommand
from artsim.cli.main import cli
from artsim.cli.terminal import without_foreign_hints
from artsim.io.runs import progress
from artsim.io.viewer.server import is_own
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDABLE
from artsim.sim.runs.settings import DEFAULT_RECORD
from tests.conftest import ROOT

ARM = str(ROOT / "robots" / "arm7.urdf")
QUADRUPED = str(ROOT / "robots" / "quadruped.urdf")


def invoke(*words: object, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], input=given)


# ------------------------------------------------------------------ --config


def test_a_configuration_comes_from_a_pipe_or_standard_input(tmp_path: Path) -> None:
    """Its settings act; they were once ignored with exit code 0."""
    file = tmp_path / "c.toml"
    file.write_text('steps = 7\nq0 = {joint_1 = "30deg"}\n')
    command = f"{sys.executable} -m artsim run {ARM} --json --config"
    for words in (f"{command} <(cat {file})", f"cat {file} | {command} -", f"cat {file} | {command} /dev/stdin"):
        done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["steps"] == 7


def test_an_output_is_no_stream(tmp_path: Path) -> None:
    output = tmp_path / "run.h5"
    artsim.simulate(ARM, steps=1, output=output).close()
    words = f"{sys.executable} -m artsim run --config <(cat {output})"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "an HDF5 file is no stream: give its name" in done.stderr


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("steps = 3\nstepz = 7\n", "c.toml:2: 'stepz' is not known; did you mean 'steps'?"),
        (
            "[stiffness]\njoint_1 = 1\njiont_2 = 1\n",
            "c.toml:3: stiffness: 'jiont_2' is not a joint of this robot; did you",
        ),
        (
            "q0.joint_1 = 1\nq0.jiont_2 = 1\n",
            "c.toml:2: q0: 'jiont_2' is not a joint of this robot; did you mean 'joint_2'?",
        ),
        ('steps = 3\nsolver = "newtn"\n', "c.toml:2: solver 'newtn' is not known; did you mean 'newton'?"),
        ("\nq0 = {joint_1 = 0.1,\n", "c.toml:2:"),
        ('q0 = {joint_1 = "30dg"}', "c.toml:1: q0 joint_1: '30dg' is not a number"),
        ('torque = {joint_1 = "30deg"}', "c.toml:1: torque joint_1: '30deg' is an angle"),
        ('steps = 3\nrecord = ["+jacobin"]\n', "c.toml:2: cannot record 'jacobin'; did you mean 'jacobian'?"),
        ("stiffness = -1\n", "c.toml:1: stiffness: joint_1 is -1.0, want a number from 0"),
        ("steps = 3\nplace = 3\n", "c.toml:2: 'place' is for the command line only"),
        ("base_pose = 3\n", "c.toml:1: base_pose is 3, want X, Y, Z"),
    ],
)
def test_what_is_wrong_in_toml_is_told_with_file_and_line(toml: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(toml)
    result = invoke("run", ARM, "--config", file)
    assert result.exit_code == 2
    assert told in result.output
    assert "\n" not in result.output.strip()


def test_a_typed_option_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("steps = 3\n[stiffness]\njoint_1 = 1\n")
    result = invoke("run", ARM, "--config", file, "--stiffness", "jiont_1=2")
    assert result.output.startswith("--stiffness: 'jiont_1' is not a joint of this robot")


@pytest.mark.small
def test_lines_of_settings() -> None:
    text = textwrap.dedent("""\
        # stepz
        steps = 3
        gains = [1,
          2]
        q0 = {a = 1, "b.c" = 2}
        [stiffness]
        "joint 1" = 3
        'x.y' = 4
        [link_damping.arm]
        lin = 3
    """)
    places = {
        ("steps", ""): 2,
        ("q0", "b.c"): 5,
        ("stiffness", ""): 6,
        ("stiffness", "joint 1"): 7,
        ("stiffness", "x.y"): 8,
    }
    for (setting, entry), line in {**places, ("link_damping", "arm"): 9, ("nothing", ""): 1}.items():
        assert line_of(text, setting, entry) == line, (setting, entry)


def test_plus_adds_to_the_recorded_variables_everywhere(tmp_path: Path) -> None:
    file, output = tmp_path / "c.toml", tmp_path / "run.h5"
    file.write_text('record = ["+jacobian"]\n')
    assert invoke("run", ARM, "--steps", "2", "--config", file, "-o", output).exit_code == 0
    with artsim.open(output) as recording:
        from_toml = set(recording.variables)
    recording = artsim.simulate(ARM, steps=2, record=["+jacobian"])
    assert set(recording.variables) == from_toml
    assert "jacobian" in from_toml and len(from_toml) > 5
    assert from_toml - {"jacobian"} <= set(DEFAULT_RECORD)


# ------------------------------------------------------------------ files that are of another kind


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "is an HDF5 file, no model; `artsim info`"),
        ("a.npy", b"\x93NUMPY" + bytes(64), "is a .npy array, no model; configurations go to `artsim batch --input`"),
        ("a.npz", b"PK\x03\x04" + bytes(64), "is a .npz or zip archive, no model"),
        ("a.stl", b"solid x", "is a mesh (STL), no model"),
        ("a.urdf.gz", b"\x1f\x8b" + bytes(8), "compressed (gzip); `zcat FILE | artsim"),
    ],
)
def test_a_model_of_another_kind_is_named(name: str, data: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    for command in ("run", "check"):
        result = invoke(command, file)
        assert result.exit_code == 65
        assert told in result.output


@pytest.mark.parametrize(("name", "option"), [("x.csv", "--csv"), ("x.parquet", "--parquet"), ("x.npz", "--npz")])
def test_a_run_is_not_written_under_the_name_of_another_format(name: str, option: str, tmp_path: Path) -> None:
    result = invoke("run", ARM, "--steps", "1", "-o", tmp_path / name)
    assert result.exit_code == 2
    assert f"`artsim export x.h5 {option} {name}`" in result.output
    assert not (tmp_path / name).exists()
    with pytest.raises(artsim.UsageError, match="a run is written as HDF5"):
        artsim.simulate(ARM, steps=1, output=tmp_path / name)


def test_models_are_found_again_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "robots")
    assert invoke("run", "arm7.urdf", "--steps", "1", "-o", tmp_path / "one.h5").exit_code == 0
    words = ["run", "arm7.urdf", "a=floating_box.urdf", "--steps", "1", "-o", tmp_path / "scene.h5"]
    assert invoke(*words).exit_code == 0
    monkeypatch.chdir(tmp_path)
    with artsim.open("one.h5") as recording:
        assert Path(recording.model["path"]) == ROOT / "robots" / "arm7.urdf"
    with artsim.open("scene.h5") as recording:
        assert json.dumps(str(ROOT / "robots" / "floating_box.urdf")) in recording.model_text


def test_inputs_come_from_a_pipe() -> None:
    inputs = "time,joint_1.torque\\n0,5\\n"
    command = f"{sys.executable} -m artsim run {ARM} --steps 3 --json --control"
    told = []
    for words in (f"{command} <(printf '{inputs}')", f"printf '{inputs}' | {command} -"):
        done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
        told.append(json.loads(done.stdout)["energy"])
    torque = json.loads(invoke("run", ARM, "--steps", "3", "--json", "--torque", "joint_1=5").stdout)["energy"]
    assert told == [torque, torque]
    bad = invoke("run", ARM, "--control", "-", given="time,joint_9.torque\n0,5\n")
    assert bad.exit_code == 2 and "<stdin>:1: unknown joint 'joint_9'; did you mean 'joint_7'?" in bad.output


def test_values_by_name_may_stand_in_one_word() -> None:
    one = invoke("run", ARM, "--steps", "2", "--json", "--q0", "joint_2=0.3,joint_4=-20deg")
    two = invoke("run", ARM, "--steps", "2", "--json", "--q0", "joint_2=0.3", "--q0", "joint_4=-20deg")
    assert json.loads(one.stdout)["energy"] == json.loads(two.stdout)["energy"]
    grid = ["batch", ARM, "--grid", "joint_1=0:1:3", "--compute", "gravity", "-o", "-"]
    one = invoke(*grid, "--q0", "joint_2=0.3,joint_4=-20deg")
    two = invoke(*grid, "--q0", "joint_2=0.3", "--q0", "joint_4=-20deg")
    assert one.exit_code == 0 and one.stdout == two.stdout
    told = invoke("run", ARM, "--q0", "joint_2").output
    assert "--q0: 'joint_2' is neither NAME=VALUE, nor a number or a file" in told


def test_on_ground_without_shapes_is_told(tmp_path: Path) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{inertial}</link></robot>')
    told = invoke("run", tmp_path / "r.urdf", "--base", "floating", "--ground", "--on-ground")
    assert told.exit_code == 2 and "--on-ground: no shape of the robot may touch a ground" in told.output


# ------------------------------------------------------------------ batches


def beyond_limits(tmp_path: Path) -> list[object]:
    """A batch of 200 rows, of which 150 and 151 are beyond the limits of joint_3 and joint_1."""
    rows = np.zeros((200, 7))
    rows[150, 2], rows[151, 0], rows[151, 2] = 45.0, 3.5, 4.0
    np.save(tmp_path / "q.npy", rows)
    return ["batch", ARM, "--input", tmp_path / "q.npy", "--compute", "gravity", "-o", tmp_path / "b.h5"]


def test_rows_beyond_limits_are_told(tmp_path: Path) -> None:
    words = [*beyond_limits(tmp_path), "--force"]
    several = ["--shards", "3"]
    far = "joint_3 by 42.04 rad (2 rows, farthest row 150, counted from 0, at 45, limits [-2.96, 2.96])"
    for more in ([], ["--threads", "2", "--chunk", "7"], several, [*several, "--scheduler", "local:2"]):
        result = invoke(*words, *more)
        assert result.exit_code == 0, result.output
        assert f"2 rows are beyond joint limits: {far}" in result.output
        assert "joint_1 by 0.54 rad (row 151, counted from 0, at 3.5, limits [-2.96, 2.96])" in result.output
        assert "if degrees are meant, 45 is 0.785398 rad" in result.output
    drawn = invoke("batch", ARM, "--samples", "50", "--compute", "gravity", "--force", "-o", tmp_path / "b.h5")
    assert "beyond joint limits" not in drawn.output


def test_rows_beyond_limits_are_in_the_summary_and_stop_a_strict_batch(tmp_path: Path) -> None:
    """Whoever computes the shards: this process, workers, or an earlier command whose shards are kept."""
    words = beyond_limits(tmp_path)
    several = ["--shards", "3", "--scheduler", "local:2"]
    for more in (["--force"], ["--force", *several], [*several, "--resume"]):
        result = invoke(*words, *more, "--strict", "--json")
        assert result.exit_code == 3, result.output
        told = json.loads(result.stdout.splitlines()[0])["beyond_limits"]
        assert told["rows"] == 2 and list(told["joints"]) == ["joint_3", "joint_1"]
        third = told["joints"]["joint_3"]
        assert (third["rows"], third["first_row"], third["worst_row"], third["value"]) == (2, 150, 150, 45.0)
        assert third["excess"] == 45.0 - third["upper"] and third["unit"] == "rad"
        assert result.stderr.count("joint_3 by 42.04 rad") == 1 and "(--strict)" in result.stderr
        assert (tmp_path / "b.h5").exists()


def test_a_shard_of_another_job_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "b.h5"
    assert invoke("batch", ARM, "--samples", "8", "--compute", "gravity", "--shard", "1/2", "-o", output).exit_code == 0
    other = invoke("batch", QUADRUPED, "--samples", "8", "--compute", "gravity", "--shard", "2/2", "-o", output)
    assert other.exit_code == 65
    assert "is of another job" in other.output
    assert not output.exists()


# ------------------------------------------------------------------ help


@pytest.mark.parametrize("name", ["run", "rollout", "batch", "compute"])
def test_every_option_is_in_a_group_of_the_help(name: str) -> None:
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert isinstance(command, GroupedCommand)
    groups = command.groups
    grouped = {option for options in groups.values() for option in options}
    options = {param.name for param in command.params if param.opts[0].startswith("-")}
    assert options <= grouped
    text = invoke(name, "--help-all").output
    titles = [title for title in groups if f"\n{title}:\n" in text]
    assert titles == [title for title in groups if set(groups[title]) & options]
    assert text.index("--gravity") < text.index("--max-xml-mb")


@pytest.mark.small
@pytest.mark.parametrize("name", ["run", "rollout", "bench", "linearize"])
def test_the_help_of_a_long_command_fits_on_a_screen(name: str) -> None:
    text = invoke(name, "--help").output
    assert len(text.splitlines()) <= 60
    assert "--gravity" in text
    assert "--max-contacts" not in text
    contact = invoke(name, "--help", "cont").output
    assert "--max-contacts" in contact
    assert "\n  --gravity" not in contact
    assert "\n  --gravity" in invoke(name, "--help-all").output
    assert invoke(name, "-h").output == text


@pytest.mark.small
def test_an_unknown_group_of_the_help_is_named() -> None:
    told = invoke("run", "--help", "contcat")
    assert told.exit_code == 2
    assert "'contcat' is no group; did you mean 'contact'" in told.output


def test_a_rollout_offers_what_it_takes() -> None:
    text = invoke("rollout", "--help-all").output
    assert "--controller FILE" not in text
    assert f"Known: {', '.join(ROLLOUT_RECORDABLE)}." in " ".join(text.split())
    assert "delassus" not in text


@pytest.mark.small
def test_hints_at_options_of_other_commands_are_left_out() -> None:
    told = "m.urdf:3: mesh missing (--no-meshes: goes on without) (--force overwrites)"
    assert without_foreign_hints(told, {"--force"}) == "m.urdf:3: mesh missing (--force overwrites)"
    assert without_foreign_hints(told, {"--force", "--no-meshes"}) == told


# ------------------------------------------------------------------ the viewer over ssh


class Headers(dict[str, list[str]]):
    def get_all(self, name: str) -> list[str]:
        return super().get(name, [])

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        return super().get(name, [default])[0]


@pytest.mark.small
@pytest.mark.parametrize(
    ("host", "origin", "own"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("localhost:9000", "http://localhost:9000", True),  # ssh -L 9000:127.0.0.1:8080
        ("localhost:8080", "http://localhost:9000", False),  # a page of another server on this machine
        ("127.0.0.1:8080", "http://localhost:8080", False),
        ("evil.example:8080", "http://evil.example:8080", False),  # DNS rebinding
        ("localhost.evil.example:8080", "http://localhost.evil.example:8080", False),
        ("127.0.0.1:8080", "https://127.0.0.1:8080", False),
        ("127.0.0.1x8080", "http://127.0.0.1x8080", False),
    ],
)
def test_a_tunnel_may_end_at_another_port(host: str, origin: str, own: bool) -> None:
    websocket = Headers({"Host": [host], "Origin": [origin], "Upgrade": ["websocket"]})
    assert is_own(websocket) is own
    assert is_own(Headers({"Host": [host], "Upgrade": ["websocket"]})) is False
    assert is_own(Headers({"Host": [host, host]})) is False


# ------------------------------------------------------------------ Python


@pytest.mark.small
def test_errors_are_those_that_python_expects(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        artsim.load(tmp_path / "none.urdf")
    bad = tmp_path / "bad.urdf"
    bad.write_text("<robot>")
    with pytest.raises(ValueError, match=r"bad\.urdf"):
        artsim.load(bad)
    with pytest.raises(ValueError, match="is not known"):
        artsim.simulate(ARM, stepz=3)  # type: ignore[call-arg]
    with pytest.raises(artsim.ArtsimError):
        artsim.load(tmp_path / "none.urdf")
    assert str(artsim.MissingInputError("x: no such file")) == "x: no such file"


def test_outputs_say_what_they_are(tmp_path: Path) -> None:
    run = artsim.simulate(ARM, steps=4)
    assert repr(run).startswith("<MemoryRecording 'artsim run of arm7': 4 rows; qpos, qvel, qacc, ")
    with artsim.simulate(ARM, steps=4, output=tmp_path / "run.h5") as recording:
        assert repr(recording).startswith("<Recording 'run.h5': 4 rows; qpos, ")
    assert "4 rows" in repr(recording)  # closed, too
    rolled = artsim.rollout(ARM, samples=3, steps=4)
    assert repr(rolled).startswith("<MemoryRollout 'artsim rollout of arm7': 3 samples of 4 rows; qpos, ")
    with artsim.rollout(ARM, samples=3, steps=4, output=tmp_path / "r.h5") as rollout:
        assert repr(rollout).startswith("<RolloutRecording 'r.h5': 3 samples of 4 rows; ")
    assert invoke("batch", ARM, "--samples", "5", "--compute", "gravity", "-o", tmp_path / "b.h5").exit_code == 0
    with artsim.open(tmp_path / "b.h5") as batch:
        assert repr(batch) == "<BatchRecording 'b.h5': 5 rows; qpos, gravity, status>"


def test_tables_for_pandas(tmp_path: Path) -> None:
    run = artsim.simulate(ARM, steps=4, record=["qpos", "link_position"])
    table = run.to_pandas()
    np.testing.assert_array_equal(table["qpos.joint_2"], run["qpos"][:, 1])
    np.testing.assert_array_equal(table["link_position.link_3.z"], run["link_position"][:, 3, 2])
    np.testing.assert_array_equal(table.index, run.time)
    assert table.index.name == "time"
    rolled = artsim.rollout(ARM, samples=3, steps=4, spread=0.1)
    rows = rolled.to_pandas()
    assert rows.index.names == ["sample", "time"]
    np.testing.assert_array_equal(rows.loc[2]["qpos.joint_2"], rolled["qpos"][2, :, 1])
    np.testing.assert_array_equal(rolled.to_pandas(["final_qpos"])["final_qpos.joint_1"], rolled["final_qpos"][:, 0])
    with pytest.raises(artsim.UsageError, match="final_qpos has rows by sample"):
        rolled.to_pandas(["qpos", "final_qpos"])
    invoke("batch", ARM, "--samples", "5", "--compute", "gravity", "-o", tmp_path / "b.h5")
    with artsim.open(tmp_path / "b.h5") as batch:
        frame = batch.to_pandas(["gravity"])
        assert isinstance(frame, pandas.DataFrame) and frame.shape == (5, 7)


def test_type_checkers_refuse_unknown_options(tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    file.write_text(
        "import artsim\n"
        "robot = artsim.load('arm7', base='fixed')\n"
        "artsim.compute(robot, [0.0] * 7, quantities=['gravity'])\n"
        "artsim.load('arm7', bse='x')\n"
        "artsim.simulate(robot, stepz=3)\n"
        "artsim.compute(robot, [0.0] * 7, qvl=3)\n"
        "artsim.rollout(robot, samples=3, sped=3)\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
    told = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    lines = sorted(int(line.split(":")[1]) for line in told.splitlines() if ": error: " in line)
    assert lines == [4, 5, 6, 7], told


def test_the_wheel_says_what_it_is() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert "Typing :: Typed" in text and "keywords" in text


def test_a_bar_shows_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int]] = []

    class Bar:
        def add_task(self, what: str, total: int, rate: str) -> int:
            shown.append((what, total))
            return 0

        def update(self, task: int, completed: int, rate: str) -> None:
            shown.append(("done", completed))

        def start(self) -> None: ...

        def stop(self) -> None:
            shown.append(("stop", 0))

    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(progress, "_BAR_AFTER", -1.0)
    monkeypatch.setattr(progress, "_bar", lambda unit: Bar())
    artsim.simulate(ARM, steps=7, progress=True)
    assert shown == [("simulating", 7), ("done", 7), ("stop", 0)]
    shown.clear()
    artsim.rollout(ARM, samples=3, steps=5, progress=True)
    assert shown[0] == ("simulating", 3) and shown[-2:] == [("done", 3), ("stop", 0)]
    shown.clear()
    artsim.simulate(ARM, steps=7)
    assert not shown
