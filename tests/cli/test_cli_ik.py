"""`artsim ik`: poses in every kind of file, results that other commands read, distances, jumps, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pinocchio as pin
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.format import schema
from artsim.io.readers.ik_recording import IkRecording
from tests.conftest import ROOT
from tests.ik.ik_models import EXCAVATOR, SCARA, planar_arm
from tests.simulation import Array

ARM = ROOT / "robots" / "arm7.urdf"
LINK = "link_7"


def ik(*words: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["ik", *map(str, words)], input=stdin)


def good(*words: object, **more: Any) -> Result:
    done = ik(*words, **more)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def poses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 reachable poses of the arm's last link, as `artsim batch` writes them."""
    output = tmp_path_factory.mktemp("poses") / "poses.h5"
    words = ["batch", ARM, "--samples", 100, "--compute", "link_pose", "--links", f"link_2,{LINK}", "-q", "-o", output]
    assert CliRunner().invoke(cli, [*map(str, words)]).exit_code == 0
    return output


def tables(poses: Path) -> tuple[Array, Array]:
    with artsim.open(poses) as file:
        return file["link_position"][:, 1], file["link_quaternion"][:, 1]


def test_every_kind_of_input_gives_the_same_rows(poses: Path, tmp_path: Path) -> None:
    position, quaternion = tables(poses)
    both = np.concatenate([position, quaternion], axis=1)
    np.savez(tmp_path / "poses.npz", position=position, quaternion=quaternion)
    np.savez_compressed(tmp_path / "links.npz", link_position=position[:, None], link_quaternion=quaternion[:, None])
    np.save(tmp_path / "poses.npy", both)
    np.savetxt(tmp_path / "named.csv", both, "%.17g", ",", header="x,y,z,qw,qx,qy,qz", comments="")
    np.savetxt(tmp_path / "plain.csv", both, "%.17g", ",")
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["some/where"] = both
    words = ["batch", ARM, "--samples", 100, "--compute", "link_pose", "--links", LINK, "-q", "-o", tmp_path / "of.csv"]
    assert CliRunner().invoke(cli, [*map(str, words)]).exit_code == 0
    found = {}
    inputs = [poses, *(tmp_path / name for name in ("poses.npz", "links.npz", "poses.npy", "named.csv", "plain.csv"))]
    for given in (*inputs, tmp_path / "of.csv", f"{tmp_path / 'own.h5'}:/some/where"):
        output = tmp_path / "found.h5"
        good(ARM, "--link", LINK, "--input", given, "-o", output, "--force", "-q")
        with artsim.open(output) as file:
            assert isinstance(file, IkRecording)
            found[str(given)] = file["qpos"].tobytes()
    good(ARM, "--link", LINK, "--input", "-", "-o", output, "--force", "-q", stdin=(tmp_path / "named.csv").read_text())
    with artsim.open(output) as file:
        found["-"] = file["qpos"].tobytes()
    assert len(set(found.values())) == 1, {name: hash(rows) for name, rows in found.items()}


def test_results_are_those_of_python_and_read_by_batches(poses: Path, tmp_path: Path) -> None:
    position, quaternion = tables(poses)
    wanted = artsim.load(ARM).ik(LINK, position, quaternion)
    for name in ("found.h5", "found.npz", "found.csv"):
        done = good(ARM, "--link", LINK, "--input", poses, "-o", tmp_path / name)
        assert "100 rows in " in done.stderr
        assert ", 100 reached; wrote " in done.stderr
        words = ["batch", ARM, "--input", tmp_path / name, "--compute", "link_position", "--links", LINK, "-q"]
        again = CliRunner().invoke(cli, [*map(str, words), "-o", str(tmp_path / f"again_{name}.h5")])
        assert again.exit_code == 0, again.output
        with artsim.open(tmp_path / f"again_{name}.h5") as file:
            assert np.linalg.norm(file["link_position"][:, 0] - position, axis=1).max() < 1e-6
            assert file["qpos"].tobytes() == wanted["qpos"].tobytes()
    text = good(ARM, "--link", LINK, "--input", poses, "-o", "-", "-q").stdout
    words = ["batch", ARM, "--input", "-", "--compute", "gravity", "-q", "-o", str(tmp_path / "held.h5")]
    assert CliRunner().invoke(cli, [*map(str, words)], input=text).exit_code == 0
    with artsim.open(tmp_path / "held.h5") as held, artsim.open(tmp_path / "found.h5") as file:
        assert held["qpos"].tobytes() == wanted["qpos"].tobytes()
        for name in ("status", "position_error", "rotation_error", "iterations", "attempts"):
            assert file[name].tobytes() == wanted[name].astype(file[name].dtype).tobytes(), name
        assert file["target_position"][:, 0].tobytes() == position.tobytes()


def test_bytes_depend_on_neither_threads_nor_chunk(poses: Path, tmp_path: Path) -> None:
    rows = set()
    for words in (("--threads", 1), ("--threads", 3, "--chunk", 7), ("--chunk", 64)):
        good(ARM, "--link", LINK, "--input", poses, "-o", tmp_path / "a.h5", "--force", "-q", *words)
        with artsim.open(tmp_path / "a.h5") as file:
            rows.add(b"".join(file[name].tobytes() for name in file.variables))
    assert len(rows) == 1


def test_the_table_is_what_a_file_holds(poses: Path, tmp_path: Path) -> None:
    """Every dataset of the schema is there: of rotations and positions, loops, a path."""
    (tmp_path / "excavator.xml").write_text(EXCAVATOR)
    np.save(tmp_path / "poses.npy", [[2.5, 0.2, 0.5, 1, 0, 0, 0]] * 3)
    np.save(tmp_path / "points.npy", [[3.0, 0, 0]] * 3)
    words = (tmp_path / "excavator.xml", "--link", "tooth", "--input", tmp_path / "poses.npy", "--path")
    words = (*words, "--look-at", f"tooth={tmp_path / 'points.npy'}")  # type: ignore[assignment]
    good(*words, "-o", tmp_path / "a.h5", "--on-error", "skip")
    with h5py.File(tmp_path / "a.h5") as file:
        for path, variable in schema.TABLE.items():
            if path.startswith("ik/") and path != "ik/depth":
                assert file[path].attrs["long_name"] == variable.meaning, path
                assert file[path].ndim == len(variable.dims), path
                dims = [Path(dim[0].name).name for dim in file[path].dims]
                assert dims == [*variable.dims], path


def test_a_file_is_verified_and_told_of(poses: Path, tmp_path: Path) -> None:
    good(ARM, "--link", LINK, "--input", poses, "-o", tmp_path / "a.h5", "-q", "--path", "--on-error", "skip")
    done = CliRunner().invoke(cli, ["replay", str(tmp_path / "a.h5"), "--verify"])
    assert (done.exit_code, "reproduced, every byte equal" in done.output) == (0, True), done.output
    told = CliRunner().invoke(cli, ["info", str(tmp_path / "a.h5")]).output
    assert "inverse kinematics of urdf robot 'arm7'" in told
    assert "100 rows, 0 not reached; poses of link_7 in the frame of world" in told
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["ik/qpos"][41, 2] += 1e-9
    done = CliRunner().invoke(cli, ["replay", str(tmp_path / "a.h5"), "--verify"])
    assert done.exit_code == 3
    assert "qpos differs first at row 41, in 'joint_3'" in done.stderr


def test_one_pose_is_printed(tmp_path: Path) -> None:
    pose = ("--pose", "0.3,0.2,0.6,180deg,0,0")
    lines = good(ARM, "--link", LINK, *pose).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [f"joint_{n}" for n in range(1, 8)]
    told = json.loads(good(ARM, "--link", LINK, *pose, "--json").stdout)
    assert told["status"] == "reached"
    quaternion = json.loads(good(ARM, "--link", LINK, "--pose", "0.3,0.2,0.6,0,1,0,0", "--json").stdout)
    assert quaternion["qpos"] == pytest.approx(told["qpos"], abs=1e-9)
    wanted = artsim.load(ARM).ik(LINK, [0.3, 0.2, 0.6], [0, 1, 0, 0])
    assert [*quaternion["qpos"].values()] == wanted["qpos"].tolist()
    assert "rotation_error" not in json.loads(good(ARM, "--link", LINK, *pose, "--only", "position", "--json").stdout)


def test_a_pose_out_of_reach_tells_its_distance(tmp_path: Path) -> None:
    path = tmp_path / "planar.urdf"
    path.write_text(planar_arm(0.5, 0.4))
    done = ik(path, "--link", "tip", "--pose", "0,1.5,0")
    assert done.exit_code == 3
    assert "not reached: the nearest configuration that was found: 0.6 m away, after 100 starts" in done.stderr
    np.save(tmp_path / "rows.npy", [[0.5, 0.3, 0], [0, 1.2, 0], [0, 2.0, 0]])
    words = (path, "--link", "tip", "--input", tmp_path / "rows.npy", "-o", tmp_path / "a.h5")
    done = ik(*words)
    assert done.exit_code == 3
    assert "2 rows (counted from 0: 1, 2) not reached, up to 1.1 m, 0 rad away" in done.stderr
    assert "--on-error skip accepts them" in done.stderr
    done = good(*words, "--force", "--on-error", "skip", "--json")
    told = json.loads(done.stdout)
    assert (told["rows"], told["reached"], told["not_reached_rows"]) == (3, 1, [1, 2])
    assert told["farthest"][0] == pytest.approx(1.1, abs=1e-6)


def test_jumps_of_a_path_are_told(poses: Path, tmp_path: Path) -> None:
    done = good(ARM, "--link", LINK, "--input", poses, "--path", "-o", tmp_path / "a.h5", "--on-error", "skip")
    assert "the path jumps at " in done.stderr
    line = np.linspace((0.5, -0.3, 0.4, 0, 1, 0, 0), (0.5, 0.3, 0.4, 0, 1, 0, 0), 100)
    np.save(tmp_path / "line.npy", line)
    done = good(ARM, "--link", LINK, "--input", tmp_path / "line.npy", "--path", "-o", tmp_path / "b.h5", "--chunk", 9)
    assert "the path jumps" not in done.stderr
    with artsim.open(tmp_path / "b.h5") as file:
        assert file["jump"][1:].max() < 0.1
        assert np.abs(np.diff(file["qpos"], axis=0)).max(axis=1) == pytest.approx(file["jump"][1:])


def test_several_links_frames_and_joints(tmp_path: Path) -> None:
    robot = artsim.load(ARM)
    q = [0.3, 0.4, 0.2, -0.9, 0.1, 0.5, 0.2]
    links = ["link_4", LINK]
    found = robot.compute(q, quantities=["link_position"], links=links)["link_position"]
    words = [
        word for link, p in zip(links, found, strict=True) for word in ("--link", link, "--pose", ",".join(map(str, p)))
    ]
    told = json.loads(good(ARM, *words, "--json").stdout)
    again = robot.compute([*told["qpos"].values()], quantities=["link_position"], links=links)["link_position"]
    assert np.abs(again - found).max() < 1e-6
    np.savetxt(
        tmp_path / "two.csv",
        found.reshape(1, 6),
        "%.17g",
        ",",
        header="link_4.x,link_4.y,link_4.z,link_7.x,link_7.y,link_7.z",
    )
    good(ARM, "--link", "link_4", "--link", LINK, "--input", tmp_path / "two.csv", "-o", tmp_path / "two.h5")
    with artsim.open(tmp_path / "two.h5") as file:
        assert file.labels.target_link == ("link_4", LINK)
        assert file["qpos"][0].tolist() == [*told["qpos"].values()]
    moved = json.loads(
        good(
            ARM, "--link", LINK, "--pose", "0.5,0.1,0.5", "--move", "joint_[1-4]", "--q0", "joint_6=20deg", "--json"
        ).stdout
    )
    assert [moved["qpos"][f"joint_{n}"] for n in (5, 6, 7)] == pytest.approx([0, np.radians(20), 0], abs=0)
    wished = json.loads(good(ARM, "--link", LINK, "--pose", "0.5,0.1,0.5", "--posture", "joint_5=0.3", "--json").stdout)
    assert wished["qpos"]["joint_5"] == pytest.approx(0.3, abs=0.05)
    seat = robot.compute(q, quantities=["link_pose"], links=["link_3"])
    turn = pin.Quaternion(*seat["link_quaternion"][0]).toRotationMatrix()
    there = turn.T @ (found[1] - seat["link_position"][0])
    framed = good(ARM, "--link", LINK, "--frame", "link_3", "--pose", ",".join(map(str, there)), "--json")
    values = np.array([*json.loads(framed.stdout)["qpos"].values()])
    assert values[:3].tolist() == robot.reference[:3].tolist()
    seat = robot.compute(values, quantities=["link_pose"], links=["link_3", LINK])
    turn = pin.Quaternion(*seat["link_quaternion"][0]).toRotationMatrix()
    assert turn.T @ np.subtract(*seat["link_position"][::-1]) == pytest.approx(there, abs=1e-6)


def pose_of(robot: artsim.Robot, q: Array, link: str) -> tuple[Array, Array]:
    """The position and the rotation matrix of a link."""
    found = robot.compute(q, quantities=["link_pose"], links=[link])
    w, x, y, z = found["link_quaternion"][0]
    return found["link_position"][0], pin.Quaternion(w, x, y, z).toRotationMatrix()


def test_links_look_and_the_centre_of_mass_is_placed(tmp_path: Path) -> None:
    """A camera's axis through a point, a tool at a place and the centre of mass, of configurations that have them."""
    robot = artsim.load(ARM)
    q = np.array([0.3, 0.4, 0.2, -0.9, 0.1, 0.5, 0.2])
    place, turn = pose_of(robot, q, "link_4")
    point = place + 0.7 * turn[:, 0]
    words = ("--look-at", f"link_4={','.join(map(str, point))}", "--look-axis", "link_4=1,0,0")
    tool = ("--link", LINK, "--pose", ",".join(map(str, pose_of(robot, q, LINK)[0])))
    told = json.loads(good(ARM, *words, *tool, "--json").stdout)
    found = np.array([*told["qpos"].values()])
    at, looks = pose_of(robot, found, "link_4")
    assert (point - at) / np.linalg.norm(point - at) == pytest.approx(looks[:, 0], abs=2e-6)
    assert pose_of(robot, found, LINK)[0] == pytest.approx(pose_of(robot, q, LINK)[0], abs=1e-6)
    com = robot.compute(q, quantities=["com"])["com"]
    told = json.loads(good(ARM, "--com", ",".join(map(str, com)), *tool, "--json").stdout)
    found = np.array([*told["qpos"].values()])
    assert robot.compute(found, quantities=["com"])["com"] == pytest.approx(com, abs=1e-6)
    assert pose_of(robot, found, LINK)[0] == pytest.approx(pose_of(robot, q, LINK)[0], abs=1e-6)
    np.save(tmp_path / "rows.npy", np.array([pose_of(robot, q, LINK)[0]] * 20))
    good(ARM, "--link", LINK, "--input", tmp_path / "rows.npy", *words, "-o", tmp_path / "a.h5")
    done = CliRunner().invoke(cli, ["replay", str(tmp_path / "a.h5"), "--verify"])
    assert (done.exit_code, "reproduced, every byte equal" in done.output) == (0, True), done.output


def test_points_of_files_are_followed(tmp_path: Path) -> None:
    """A tool stays where it is while another link looks at a moving point, and the centre of mass moves on a line."""
    robot = artsim.load(ARM)
    q = np.array([0.3, 0.4, 0.2, -0.9, 0.1, 0.5, 0.2])
    place, turn = pose_of(robot, q, "link_5")
    points = place + turn[:, 2] + np.linspace(0, 0.2, 30)[:, None] * [0, 1, 0]
    np.save(tmp_path / "points.npy", points)
    np.savetxt(tmp_path / "points.csv", points, "%.17g", ",", header="x,y,z", comments="")
    tool = ("--link", LINK, "--pose", ",".join(map(str, pose_of(robot, q, LINK)[0])), "--tolerance", "1e-8,1e-8")
    words = (ARM, *tool, "--path", "--q0", ",".join(map(str, q)), "-o", tmp_path / "a.h5", "--force")
    rows = []
    for name in ("points.npy", "points.csv"):
        good(*words, "--look-at", f"link_5={tmp_path / name}")
        with artsim.open(tmp_path / "a.h5") as file:
            rows.append(file["qpos"])
            np.testing.assert_array_equal(file["target_point"][:, 0], points)
            assert file["target_position"].shape == (30, 1, 3) and (file["status"] == 0).all()
            assert (file["jump"] < 0.05).all()
    np.testing.assert_array_equal(*rows)
    for row, point in zip(rows[0], points, strict=True):
        at, looks = pose_of(robot, row, "link_5")
        assert (point - at) / np.linalg.norm(point - at) == pytest.approx(looks[:, 2], abs=1e-7)
        assert pose_of(robot, row, LINK)[0] == pytest.approx(pose_of(robot, q, LINK)[0], abs=1e-7)
    told = CliRunner().invoke(cli, ["replay", str(tmp_path / "a.h5"), "--verify"])
    assert told.exit_code == 0, told.output
    moved = q + np.linspace(0, 0.2, 12)[:, None] * [1, 1, -1, 1, 1, 1, 0]
    com = robot.compute(moved, quantities=["com"])["com"]
    looks = [place + turn[:, 2] for place, turn in (pose_of(robot, row, "link_5") for row in moved)]
    np.save(tmp_path / "com.npy", com)
    np.save(tmp_path / "looks.npy", looks)
    more = ("--look-at", f"link_5={tmp_path / 'looks.npy'}", *words[-5:-3], "-o", tmp_path / "b.h5")
    good(ARM, "--com", tmp_path / "com.npy", *more)
    with artsim.open(tmp_path / "b.h5") as file:
        assert file.labels.point_target == ("link_5", "com") and (file["status"] == 0).all()
        found = robot.compute(file["qpos"], quantities=["com"])["com"]
        assert found == pytest.approx(com, abs=1e-6)
        np.testing.assert_array_equal(file["target_point"], np.stack([looks, com], axis=1))
    done = ik(*words, "--look-at", f"link_5={tmp_path / 'points.npy'}", "--com", tmp_path / "com.npy")
    assert done.exit_code == 2 and "targets have different numbers of rows: 12, 30" in done.stderr


def test_weights_share_out_what_cannot_be_had(tmp_path: Path) -> None:
    """Two slides in line, the second upon the first: x and x + y at 1 and 4 where y is at most 1. The sum of squares
    a² (x - 1)² + b² (x - 3)² has its least at (a² + 3 b²) / (a² + b²)."""
    text = """<robot name="r"><link name="w"/>{}</robot>"""
    slide = """<joint name="{0}" type="prismatic"><parent link="{1}"/><child link="{0}l"/><axis xyz="1 0 0"/>
      <limit lower="-9" upper="{2}" effort="9" velocity="9"/></joint><link name="{0}l"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    (tmp_path / "r.urdf").write_text(text.format(slide.format("a", "w", 9) + slide.format("b", "al", 1)))
    words = ("--link", "al", "--pose", "1,0,0", "--link", "bl", "--pose", "4,0,0", "--json", "--attempts", 3)
    for given, x in ((("al=1", "bl=1"), 2.0), (("bl=3",), 2.8), (("al=3", "bl=1,5"), 1.2)):
        done = ik(tmp_path / "r.urdf", *words, *(word for each in given for word in ("--weight", each)))
        assert done.exit_code == 3
        assert json.loads(done.stdout)["qpos"] == pytest.approx({"a": x, "b": 1.0}, abs=1e-5)


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    """Rows in the order of its entries, reached within the arm's reach alone; blank rows stay blank in a batch."""
    path = tmp_path / "planar.urdf"
    path.write_text(planar_arm(0.5, 0.4))
    words = (path, "--link", "tip", "--grid", "-1:1:9,-1:1:5,0")
    done = good(*words, "--on-error", "blank", "-o", tmp_path / "grid.h5")
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 5), indexing="ij"))
    within = (np.hypot(x, y) <= 0.9) & (np.hypot(x, y) >= 0.1)
    with artsim.open(tmp_path / "grid.h5") as file:
        np.testing.assert_array_equal(file["target_position"][:, 0], np.stack([x, y, 0 * x], axis=1))
        np.testing.assert_array_equal(file["status"] == 0, within)
        np.testing.assert_array_equal(np.isfinite(file["qpos"]).all(axis=1), within)
        assert (file["position_error"][~within] > 1e-3).all()
    assert f"{within.sum()} reached" in done.stderr and "not reached, up to" in done.stderr
    told = CliRunner().invoke(cli, ["replay", str(tmp_path / "grid.h5"), "--verify"])
    assert told.exit_code == 0, told.output
    text = good(*words, "--on-error", "blank", "-o", "-", "-q").stdout
    held = ["batch", path, "--input", "-", "--compute", "gravity,link_position", "--links", "tip", "-q"]
    more = ["--on-error", "skip", "-o", tmp_path / "held.h5"]
    assert CliRunner().invoke(cli, [*map(str, (*held, *more))], input=text).exit_code == 0
    with artsim.open(tmp_path / "held.h5") as file:
        np.testing.assert_array_equal(file["status"] == 0, within)
        assert file["link_position"][within, 0] == pytest.approx(np.stack([x, y, 0 * x], axis=1)[within], abs=1e-6)
    turned = good(ARM, "--link", LINK, "--grid", "0.4,0,0.2:0.6:2,180deg,0,-90deg:90deg:3", "-o", "-", "-q").stdout
    rows = np.array([line.split(",")[:7] for line in turned.splitlines()[1:]], float)
    assert rows[:, 2].tolist() == [0.2] * 3 + [0.6] * 3
    halves = np.radians([-45, 0, 45] * 2)
    assert rows[:, 3:] == pytest.approx(np.stack([0 * halves, np.cos(halves), np.sin(halves), 0 * halves], 1), abs=1e-9)


ELBOW = """<robot name="elbow"><link name="base"/>{}</robot>"""


def test_clear_configurations_are_looked_for(tmp_path: Path) -> None:
    """An arm of two links in the x-z plane, 0.1 m above the ground, whose elbow carries a ball of 0.06 m: of the two
    configurations for a point the one with the elbow below is in the ground."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    ball = '<collision><geometry><sphere radius="0.06"/></geometry></collision>'
    parts = [f'<link name="upper">{inertial}</link><link name="lower">{inertial}{ball}</link><link name="tip"/>']
    for name, parent, child, xyz, kind in (
        ("shoulder", "base", "upper", "0 0 0.1", "continuous"),
        ("elbow", "upper", "lower", "0.5 0 0", "continuous"),
        ("end", "lower", "tip", "0.4 0 0", "fixed"),
    ):
        parts.append(
            f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/><child link="{child}"/>'
            f'<axis xyz="0 -1 0"/></joint>'
        )
    path = tmp_path / "elbow.urdf"
    path.write_text(ELBOW.format("".join(parts)))
    distance = np.linspace(0.7, 0.897, 16)
    np.save(tmp_path / "points.npy", np.stack([distance, 0 * distance, 0 * distance + 0.1], axis=1))
    words = (path, "--link", "tip", "--input", tmp_path / "points.npy", "--q0", "shoulder=-0.5", "--q0", "elbow=1")
    bend = np.arccos((distance**2 + 0.5**2 - 0.4**2) / (2 * distance * 0.5))
    good(*words, "-o", tmp_path / "below.h5")
    with artsim.open(tmp_path / "below.h5") as file:
        assert file["qpos"][:, 0] == pytest.approx(-bend, abs=1e-4)
    good(*words, "-o", tmp_path / "above.h5", "--clear", "--ground")
    with artsim.open(tmp_path / "above.h5") as file:
        low = 0.1 - 0.5 * np.sin(bend) - 0.06 > 0
        assert 0 < np.count_nonzero(low) < 16
        assert file["qpos"][:, 0] == pytest.approx(np.where(low, -bend, bend), abs=1e-4)
        assert (file["depth"] == 0).all()
        wanted = {name: file[name] for name in ("qpos", "depth", "attempts")}
    robot = artsim.load(path)
    clearance = artsim.Clearance(robot, ground=True)
    points = np.load(tmp_path / "points.npy")
    found = robot.ik("tip", points, start=[-0.5, 1.0], clear=clearance)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)
    one = robot.ik("tip", points[0], start=[-0.5, 1.0], clear=clearance)
    assert one["qpos"] == pytest.approx(found["qpos"][0], abs=1e-4) and one["depth"] == 0.0
    above, below = [0.5, -1.2], [-0.5, 1.2]
    own = robot.ik("tip", points[0], start=[above, below], clear=clearance)
    assert own["qpos"][0] == pytest.approx(own["qpos"][1], abs=1e-4)  # of both only one is clear
    deep = 0.5 * np.sin(0.5) - 0.1 + 0.06  # of the ball in the ground, whose centre is the elbow
    assert clearance.depths([above, below]) == pytest.approx([0.0, deep])
    with pytest.raises(artsim.UsageError, match="clear finds configurations row by row"):
        robot.ik("tip", points, path=True, clear=clearance)
    np.save(tmp_path / "points.npy", [[0.7, 0, 0.1], [0.5, 0, -0.05]])
    good(*words[:-4], "-o", tmp_path / "two.h5", "--clear", "--ground")  # the tip has no shape
    done = ik(*words, "-o", tmp_path / "none.h5", "--clear")
    assert done.exit_code == 2
    assert "--clear: no shapes of this robot may touch each other" in done.stderr
    told = CliRunner().invoke(cli, ["replay", str(tmp_path / "above.h5"), "--verify"])
    assert told.exit_code == 0, told.output


def test_clear_configurations_of_meshes_are_verified(poses: Path, tmp_path: Path) -> None:
    """The arm's links are meshes: a file keeps the shapes as which they collide."""
    words = ("--link", LINK, "--input", poses, "--clear", "--self-collide", "--on-error", "skip")
    good(ARM, *words, "-o", tmp_path / "a.h5")
    with artsim.open(tmp_path / "a.h5") as file:
        assert (file["depth"][file["status"] == 0] == 0).all()
    good(ARM, *words[:4], "-o", tmp_path / "plain.h5")
    with artsim.open(tmp_path / "plain.h5") as file:
        assert (artsim.Clearance(artsim.load(ARM), self_collide=True).depths(file["qpos"]) > 0).any()
    done = CliRunner().invoke(cli, ["replay", str(tmp_path / "a.h5"), "--verify"])
    assert (done.exit_code, "reproduced, every byte equal" in done.output) == (0, True), done.output


def test_depths_are_told_where_nothing_is_clear(tmp_path: Path) -> None:
    """A ball of 0.1 m on a slide that is wanted 0.04 m above the ground is 0.06 m in it."""
    path = tmp_path / "slide.xml"
    path.write_text("""<mujoco><worldbody><body name="ball"><joint name="z" type="slide" axis="0 0 1"/>
      <geom size=".1"/></body></worldbody></mujoco>""")
    done = ik(path, "--link", "ball", "--pose", "0,0,0.04", "--clear", "--ground", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["depth"] == pytest.approx(0.06, abs=1e-6)
    assert "reached only with shapes inside each other, by 0.06 m" in done.stderr
    np.save(tmp_path / "rows.npy", [[0, 0, 0.04], [0, 0, 0.3]])
    done = ik(path, "--link", "ball", "--input", tmp_path / "rows.npy", "--clear", "--ground", "-o", tmp_path / "a.h5")
    assert done.exit_code == 3
    assert "1 row reached only with shapes inside each other, by up to 0.06 m" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "give --link NAME, the link that is to be at the pose"),
        (("--link", LINK), 2, "give --pose X,Y,Z[,R,P,Y], --input FILE or --grid"),
        (("--link", LINK, "--pose", "0,0,0", "--grid", "0,0,0", "-o", "a.h5"), 2, ", not --pose and --grid"),
        (("--link", LINK, "--grid", "0:1:3,0,0"), 2, "give -o FILE for the configurations of --grid"),
        (("--link", LINK, "--grid", "0:1,0,0", "-o", "a.h5"), 2, "'0:1' is neither a number nor LOW:HIGH:N"),
        (("--link", LINK, "--grid", "1:0:3,0,0", "-o", "a.h5"), 2, "'1:0:3': want LOW:HIGH:N, LOW ≤ HIGH"),
        (("--link", LINK, "--grid", "0,0,0,0:1:2,0,0,0", "-o", "a.h5"), 2, "the entries of a quaternion are numbers"),
        (("--link", LINK, "--link", "link_3", "--grid", "0,0,0", "-o", "a.h5"), 2, "--grid is for one --link"),
        (("--look-at", "link_8=1,0,0"), 2, "link 'link_8' does not exist; did you mean 'link_"),
        (("--look-at", "1,0,0"), 2, "'1,0,0' is not LINK=X,Y,Z|FILE"),
        (("--look-at", f"{LINK}=1,0"), 2, "'1,0' is neither X,Y,Z nor a file (.npy, .npz, .csv, .h5)"),
        (("--look-at", f"{LINK}=x.npy"), 2, "give -o FILE for the configurations of --look-at"),
        (("--look-at", f"{LINK}=x.npy", "-o", "a.h5"), 66, "x.npy: no such file"),
        (("--com", "nan.npy", "-o", "a.h5"), 2, "target the centre of mass: position of row 3 is not finite"),
        (("--look-at", f"{LINK}=1,0,0", "--look-axis", f"{LINK}=1,1,0"), 2, "want a direction of length 1"),
        (("--look-at", f"{LINK}=1,0,0", "--look-axis", "link_6=1,0,0"), 2, "'link_6' looks at nothing (--look-at)"),
        (("--com", "0,0"), 2, "--com: '0,0' is neither X,Y,Z nor a file"),
        (("--com", "0,0,0.3", "--weight", "come=2"), 2, "--weight: 'come' has no target; did you mean 'com'?"),
        (("--com", "0,0,0.3", "--weight", "com=0"), 2, "want one or two numbers above 0 by link"),
        (("--link", LINK, "--pose", "1,2"), 2, "'1,2' has 2 numbers, want X,Y,Z, and R,P,Y or QW,QX,QY,QZ"),
        (("--link", LINK, "--pose", "1deg,2,3"), 2, "--pose: '1deg' is an angle"),
        (("--link", LINK, "--pose", "0,0,0,2,0,0,0"), 2, "quaternion of row 0 has length 2, want 1"),
        (("--link", "link7", "--pose", "0,0,0"), 2, "link 'link7' does not exist; did you mean 'link_7'?"),
        (("--link", LINK, "--link", LINK, "--pose", "0,0,0"), 2, "--link names a link twice"),
        (("--link", LINK, "--pose", "0,0,0", "--pose", "0,0,0"), 2, "2 poses for 1 links"),
        (("--link", LINK, "--pose", "0,0,0", "--only", "rotation"), 2, "--only rotation: the poses have no quaternion"),
        (("--link", LINK, "--pose", "0,0,0", "--path"), 2, "--path is for the rows of --input"),
        (("--link", LINK, "--pose", "0,0,0", "--move", "elbow"), 2, "--move: 'elbow' is not a joint of this robot"),
        (("--link", LINK, "--pose", "0,0,0", "--posture", "elbow=1"), 2, "--posture: 'elbow' is not a joint"),
        (("--link", LINK, "--pose", "0,0,0", "--frame", "lnk_2"), 2, "link 'lnk_2' does not exist; did you mean"),
        (("--link", LINK, "--pose", "0,0,0", "--tolerance", "1e-3"), 2, "has 1 numbers, want LENGTH,ANGLE"),
        (("--link", LINK, "--pose", "0,0,0", "--tolerance", "0,1"), 2, "want two numbers from 1e-12"),
        (("--link", LINK, "--pose", "0,0,0", "--attempts", "0"), 2, "0 is not in the range"),
        (("--link", LINK, "--pose", "0,0,0", "--ground"), 2, "--ground is for --clear"),
        (
            ("--link", LINK, "--input", "x.npy", "-o", "a.h5", "--path", "--clear"),
            2,
            "--clear finds configurations row",
        ),
        (("--link", LINK, "--input", "x.npy"), 2, "give -o FILE for the configurations of --input"),
        (("--link", LINK, "--input", "x.npy", "-o", "a.h5"), 66, "x.npy: no such file"),
        (("--link", LINK, "--input", "wide.npy", "-o", "a.h5"), 65, "wide.npy: has shape (2, 5), want rows of 3"),
        (("--link", LINK, "--input", "other.npz", "-o", "a.h5"), 2, "other.npz: has no position and no quaternion"),
        (("--link", LINK, "--input", "links.npz", "-o", "a.h5"), 65, "position has no link 'link_7'; did you mean"),
        (("--link", LINK, "--input", "nan.npy", "-o", "a.h5"), 2, "position of row 3 is not finite"),
        (("--link", LINK, "--input", "bad.csv", "-o", "a.h5"), 65, "bad.csv:2: column 'y': 'b' is not a number"),
        (("--link", LINK, "--input", "less.csv", "-o", "a.h5"), 65, "less.csv:1: no column 'qz'"),
        (("--link", LINK, "--input", "none.csv", "-o", "a.h5"), 65, "none.csv:1: no column of a pose, want x,y,z,qw"),
        (("--link", LINK, "--input", "nan.npy", "-o", "a.txt"), 2, "a.txt: want a name that ends in .h5"),
        (("--link", LINK, "--input", "nan.npy", "-o", "nan.npy", "--force"), 2, "nan.npy"),
    ],
)
def test_refusals(
    words: tuple[str, ...], code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("wide.npy", np.zeros((2, 5)))
    np.savez("other.npz", a=np.zeros(3), b=np.zeros(3))
    np.savez("links.npz", link_position=np.zeros((2, 2, 3)), link=np.array(["link_1", "link_8"]))
    np.save("nan.npy", [[0.0] * 3] * 3 + [[np.nan] * 3])
    Path("bad.csv").write_text("x,y,z\n1,b,2\n")
    Path("less.csv").write_text("x,y,z,qw,qx,qy\n1,2,3,1,0,0\n")
    Path("none.csv").write_text("a,b,c\n1,2,3\n")
    done = ik(ARM, *words)
    assert done.exit_code == code, done.output
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("a.h5").exists()


def test_a_scara_and_its_limits_by_file(tmp_path: Path) -> None:
    path = tmp_path / "scara.urdf"
    path.write_text(SCARA)
    told = json.loads(good(path, "--link", "tool", "--pose", "0.3,0.2,0.3,0,0,90deg", "--json").stdout)
    assert told["qpos"]["j3"] == pytest.approx(0.1, abs=1e-6)
    done = ik(path, "--link", "tool", "--pose", "0.3,0.2,0.1,0,0,90deg")
    assert done.exit_code == 3
    assert "0.1 m, " in done.stderr
