"""`artsim check`: the tree people read, the object programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from artsim.cli.main import COMMANDS, cli
from artsim.cli.note_kinds import by_kind
from artsim.sim.foundation.errors import printable

UNIT = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
ROBOT = f"""<robot name="hand">
<link name="palm"><inertial><mass value="0.5"/>{UNIT}</inertial></link>
<link name="finger"><inertial><mass value="0.25"/>{UNIT}</inertial></link>
<link name="thumb"><inertial><mass value="0.25"/>{UNIT}</inertial>
  <visual><geometry><mesh filename="no.stl"/></geometry></visual></link>
<link name="nail"/>
<joint name="grip" type="prismatic"><parent link="palm"/><child link="finger"/>
  <limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
<joint name="nail_joint" type="fixed"><parent link="finger"/><child link="nail"/></joint>
<joint name="turn" type="revolute"><parent link="palm"/><child link="thumb"/>
  <limit lower="-1" upper="1" effort="3" velocity="2"/><mimic joint="grip" multiplier="-2" offset="0.1"/></joint>
</robot>
"""


def artsim(*arguments: str | Path) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def hand(tmp_path: Path) -> Path:
    path = tmp_path / "hand.urdf"
    path.write_text(ROBOT)
    return path


def test_the_tree_is_a_table(hand: Path) -> None:
    result = artsim("check", hand)
    assert result.exit_code == 0
    assert result.stdout == (
        "LINK      JOINT       TYPE       RANGE            EFFORT  VELOCITY  MASS\n"
        "palm                                                                0.5 kg\n"
        "├ finger  grip        prismatic  0 … 0.04 m       20 N    0.2 m/s   0.25 kg\n"
        "│ └ nail  nail_joint  fixed\n"
        "└ thumb   turn        revolute   = -2 grip + 0.1  3 N m   2 rad/s   0.25 kg\n"
        "\n"
        "URDF robot 'hand', fixed base: 4 links, 3 joints (1 prismatic, 1 fixed, 1 revolute)\n"
        "2 dofs, 1 independent; mass 1 kg\n"
        "1 coupling, 1 visual\n"
    )
    assert result.stderr.startswith(
        f"warning: {hand}:5: <mesh> of <visual> of link 'thumb': 'no.stl' not found: tried '/"
    )


def test_json_is_one_object_with_tree_counts_and_warnings(hand: Path) -> None:
    result = artsim("check", hand, "--json", "--base", "floating")
    found = json.loads(result.stdout)
    assert result.stderr == ""
    assert found["counts"] == {
        "links": 4,
        "joints": 3,
        "dofs": 8,
        "independent_dofs": 7,
        "couplings": 1,
        "actuators": 0,
        "loops": 0,
        "tendons": 0,
        "sensors": 0,
        "keyframes": 0,
        "visuals": 1,
        "collisions": 0,
        "meshes_missing": 1,
        "joint_types": {"prismatic": 1, "fixed": 1, "revolute": 1},
    }
    assert [(entry["link"], entry["parent"]) for entry in found["tree"]] == [
        ("palm", None),
        ("finger", "palm"),
        ("nail", "finger"),
        ("thumb", "palm"),
    ]
    assert found["tree"][3]["joints"][0]["mimic"] == {"leader": "grip", "coefficients": [0.1, -2.0]}
    assert [(warning["file"], warning["line"]) for warning in found["warnings"]] == [(str(hand), 5)]
    assert (found["name"], found["base"], found["mass"]) == ("hand", "floating", 1.0)


def test_no_meshes_and_packages(hand: Path, tmp_path: Path) -> None:
    assert artsim("check", hand, "--no-meshes").stderr == ""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "no.stl").write_text("solid")
    assert artsim("check", hand, "--mesh-root", tmp_path / "elsewhere").stderr == ""
    packaged = tmp_path / "packaged.urdf"
    packaged.write_text(ROBOT.replace("no.stl", "package://p/no.stl"))
    assert "--package p=DIR" in artsim("check", packaged).stderr
    assert artsim("check", packaged, "--package", f"p={tmp_path / 'elsewhere'}").stderr == ""


@pytest.mark.parametrize(
    "options",
    [
        ["--package", "p"],
        ["--package", "p=/dev/null/missing"],
        ["--package", "=/"],
        ["--mesh-root", "/dev/null/missing"],
        ["--max-xml-mb", "nan"],
        ["--max-xml-mb", "0"],
        ["--max-xml-mb", "inf"],
        ["--base", "wobbly"],
        ["--wibble"],
    ],
)
def test_wrong_options_are_exit_2(hand: Path, options: list[str]) -> None:
    assert artsim("check", hand, *options).exit_code == 2


def test_warnings_of_one_kind_are_one_line_and_complete_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = '<limit lower="-1" upper="1" effort="5" velocity="1"/><wheel slip="1"/>'
    joints = "".join(
        f'<link name="l{i}"><inertial><mass value="1"/>{UNIT}</inertial></link>'
        f'<joint name="j{i}" type="revolute"><parent link="r"/><child link="l{i}"/>{limit if i % 2 else ""}</joint>\n'
        for i in range(100)
    )
    path = tmp_path / "many.urdf"
    path.write_text(f'<robot name="r"><link name="r"/>{joints}</robot>')
    first, second, *findings = artsim("check", path).stderr.splitlines()
    shown = "joint 'j0' is revolute and has no <limit>: unlimited (and 49 more for 'j2', 'j4', 'j6', 'j8', …)"
    assert first == f"warning: {path}:1: {shown}"
    shown = "<wheel> of joint 'j1' is not part of URDF and is ignored (and 49 more in <joint>)"
    assert second == f"warning: {path}:2: {shown}"
    assert len(json.loads(artsim("check", path, "--json").stdout)["warnings"]) == 51
    ran = artsim("run", path, "--steps", "1")
    assert f"51 warnings of 2 kinds: artsim check {path}" in ran.stderr
    monkeypatch.setattr("artsim.cli.check.MAX_WARNINGS", 1)
    shown = [f"warning: {first[9:]}", "warning: 1 more; --json lists all", *findings]
    assert artsim("check", path).stderr.splitlines() == shown


def test_warnings_without_names_are_told_with_their_lines() -> None:
    notes = [f"r.urdf:{line}: <gazebo><kp> is ignored: contacts are rigid" for line in (3, 8, 8, 21)]
    other = "r.urdf:9: Gazebo's plugins are not run"
    assert by_kind([notes[0], other, *notes[1:]]) == [f"{notes[0]} (and 3 more in lines 8, 8, 21)", other]


def test_only_commands_that_exist_are_listed() -> None:
    listed = artsim("--help").stdout.partition("Commands:\n")[2].splitlines()
    names = [line.split()[0] for line in listed if line.strip()]
    folder = Path(__file__).resolve().parents[2] / "cli"
    assert names == [name for name in COMMANDS if (folder / f"{name}.py").exists()]
    assert artsim("no-such-command").exit_code == 2


def test_printable_escapes_what_a_terminal_obeys() -> None:
    assert printable("größe 🤖 a\\b") == "größe 🤖 a\\b"
    assert printable("\x1b[2J\r\n\u202e\x9b") == "\\x1b[2J\\r\\n\\u202e\\x9b"


def test_all_joints_of_a_body_and_what_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><option iterations="50" solver="CG"/><size memory="1M"/><visual><map znear=".1"/></visual>
        <worldbody><light pos="0 0 1"/><body name="a"><joint name="x" type="slide"/><joint name="y" range="0 90"/>
        <geom size="1" user="3"/><body name="b"><joint name="z"/><geom size="1"/></body></body></worldbody></mujoco>"""
    )
    result = artsim("check", path)
    assert result.exit_code == 0
    tree = result.stdout.splitlines()[1:5]
    assert [name for line in tree for name in line.split() if name in "xyz"] == ["x", "y", "z"]
    assert "ignored (tuning of MuJoCo's solver; artsim has its own): option iterations, option solver" in result.stdout
    assert "ignored (looks): <visual>, <light>" in result.stdout
    found = json.loads(artsim("check", path, "--json").stdout)
    assert [[joint["name"] for joint in entry["joints"]] for entry in found["tree"]] == [[], ["x", "y"], ["z"]]
    assert {part["what"] for part in found["ignored"]} >= {"<size>", "user", "<light>"}


def check_and_run(path: Path, *options: str) -> tuple[Result, Result]:
    """What `check` and a run of no more than its start say."""
    return artsim("check", path), artsim("run", path, "--steps", 1, "-o", path.with_suffix(".h5"), *options)


MESH = '<collision><geometry><mesh filename="no.stl"/></geometry></collision>'


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            ROBOT.replace('</link>\n<link name="nail"/>', f'{MESH}</link>\n<link name="nail"/>'),
            ["--ground"],
            "--ground",
        ),
        (
            '<mujoco><asset><mesh name="m" file="no.stl"/></asset><worldbody><geom type="plane" size="1 1 1"/>'
            '<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="m"/>'
            "</body></worldbody></mujoco>",
            [],
            "run refuses this (",
        ),
        (
            '<sdf version="1.9"><world name="w"><model name="g"><link name="l"><collision name="c"><geometry><sphere>'
            '<radius>1</radius></sphere></geometry></collision></link></model><model name="m"><link name="l"><collision'
            ' name="c"><geometry><mesh><uri>no.stl</uri></mesh></geometry></collision></link></model></world></sdf>',
            [],
            "run refuses this (",
        ),
    ],
    ids=["urdf", "mjcf", "sdf"],
)
def test_absent_meshes_that_a_run_refuses(text: str, options: list[str], words: str, tmp_path: Path) -> None:
    """By name, and with the option that makes them matter; --strict refuses those that matter without one."""
    path = tmp_path / "model.xml"
    path.write_text(text)
    checked, run = check_and_run(path, *options)
    assert checked.exit_code == 0 and run.exit_code == 65
    told = [line for line in checked.stderr.splitlines() if "run refuses this" in line]
    assert len(told) == 1 and "mesh 'no.stl' absent, used for collision" in told[0] and words in told[0]
    assert artsim("check", "--strict", path).exit_code == (0 if options else 65)
    assert "run refuses" not in artsim("check", "--no-meshes", path).stderr


def test_links_without_inertia_that_a_run_refuses(tmp_path: Path) -> None:
    path = tmp_path / "model.urdf"
    path.write_text(ROBOT.replace('<mass value="0.25"/>', '<mass value="0"/>').replace(UNIT, ""))
    checked, run = check_and_run(path)
    assert checked.exit_code == 0 and run.exit_code == 65
    assert "move without any inertia" in checked.stderr or "moves without any inertia" in checked.stderr
    assert artsim("check", "--strict", path).exit_code == 65
