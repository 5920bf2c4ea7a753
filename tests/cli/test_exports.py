"""`artsim export`: every format read back by its own reader, bit for bit."""

from __future__ import annotations

import builtins
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.exports import video
from artsim.io.exports.request import Look
from artsim.io.exports.tables import harmless
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.viewer.motion import Motion
from artsim.loaders.stored import load_stored
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT

LEG, ARM = ROOT / "robots" / "leg.xml", ROOT / "robots" / "arm7.urdf"
STEPS = 200


def export(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


@pytest.fixture(scope="module")
def leg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leg with motors that falls onto the ground; Jacobians recorded."""
    output = tmp_path_factory.mktemp("export") / "leg.h5"
    record = (*RunConfig().record, "jacobian")
    run = artsim.simulate(artsim.load(LEG), steps=STEPS, every=2, record=record, control={"knee": 0.3}, output=output)
    assert isinstance(run, Recording)
    run.close()
    return output


def exported(leg: Path, kind: str, output: Path) -> Path:
    told = export(leg, f"--{kind}", output)
    assert told.exit_code == 0, told.output
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    return output


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_in_pandas(leg: Path, kind: str, tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    path = exported(leg, kind, tmp_path / f"leg.{kind}")
    table = pandas.read_csv(path) if kind == "csv" else pandas.read_parquet(path)
    with artsim.open(leg) as run:
        assert isinstance(run, Recording)
        assert table["time"].to_numpy().tobytes() == run.time.tobytes()
        knee = run.labels.dof.index("knee")
        assert table["qvel.knee"].to_numpy().tobytes() == np.ascontiguousarray(run["qvel"][:, knee]).tobytes()
        foot = run.labels.link.index("foot")
        assert table["link_position.foot.z"].tolist() == run["link_position"][:, foot, 2].tolist()
        assert table["jacobian.foot,knee.vx"].tolist() == run["jacobian"][:, foot, 0, knee].tolist()
        assert table["contact_count"].tolist() == run.contacts["contact_count"].tolist()
        assert not table.isna().any().any()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_contacts_in_pandas(leg: Path, kind: str, tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    path = exported(leg, f"contacts-{kind}", tmp_path / f"leg.{kind}")
    table = pandas.read_csv(path) if kind == "csv" else pandas.read_parquet(path)
    with artsim.open(leg) as run:
        assert isinstance(run, Recording)
        contacts, labels = run.contacts, run.labels
        assert len(table) == contacts["contact_count"].sum() > 0
        assert table["step"].tolist() == contacts["step"].tolist()
        assert table["time"].tolist() == (contacts["step"] * run.dt).tolist()
        for column, name, index in (("depth", "depth", ()), ("point.z", "point", 2), ("force.normal", "force", 0)):
            values = contacts[name][(..., index)] if index != () else contacts[name]
            assert table[column].to_numpy().tobytes() == np.ascontiguousarray(values).tobytes()
        assert table["link_a"].tolist() == [labels.touching_link[k] for k in contacts["link_a"]]
        assert table["geom_b"].tolist() == [labels.geom[k] for k in contacts["geom_b"]]


def test_a_run_without_contacts_has_no_table_of_them(tmp_path: Path) -> None:
    artsim.simulate(ROOT / "robots" / "arm7.urdf", steps=2, output=tmp_path / "arm.h5").close()  # type: ignore[union-attr]
    told = export(tmp_path / "arm.h5", "--contacts-csv", tmp_path / "arm.csv")
    assert told.exit_code == 2 and "holds no contacts" in told.output
    assert [path.name for path in tmp_path.iterdir()] == ["arm.h5"]


def test_parquet_knows_units(leg: Path, tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    layout = parquet.read_schema(exported(leg, "parquet", tmp_path / "leg.parquet"))
    assert layout.field("link_position.foot.z").metadata == {b"units": b"m"}
    assert json.loads(layout.metadata[b"artsim"])["every"] == 2


def test_npz(leg: Path, tmp_path: Path) -> None:
    with np.load(exported(leg, "npz", tmp_path / "leg.npz")) as arrays, artsim.open(leg) as run:
        assert isinstance(run, Recording)
        for name in ("time", *run.variables):
            assert arrays[name].tobytes() == run[name].tobytes() and arrays[name].shape == run[name].shape
        assert tuple(arrays["labels/dof"]) == run.labels.dof
        assert str(arrays["units/link_position"]) == "m"
        for name, values in run.contacts.items():
            assert arrays[f"contact/{name}"].tobytes() == values.tobytes()
        assert arrays["controls/control"].tolist() == run.controls.control.tolist()


def test_mcap(leg: Path, tmp_path: Path) -> None:
    reading: Any = pytest.importorskip("mcap.reader")
    topics: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    with exported(leg, "mcap", tmp_path / "leg.mcap").open("rb") as stream:
        for _, channel, message in reading.make_reader(stream).iter_messages():
            topics.setdefault(channel.topic, []).append((message.log_time, json.loads(message.data)))
    with artsim.open(leg) as run:
        assert isinstance(run, Recording)
        assert set(topics) == {*(f"/{name}" for name in run.variables), "/tf", "/contacts"}
        assert [time for time, _ in topics["/qpos"]] == [round(t * 1e9) for t in run.time]
        assert [list(values.values()) for _, values in topics["/qpos"]] == run["qpos"].tolist()
        assert tuple(topics["/qvel"][0][1]) == run.labels.dof
        frame = topics["/tf"][7][1]["transforms"][-1]
        assert frame["child_frame_id"] == run.labels.link[-1]
        assert list(frame["translation"].values()) == run["link_position"][7, -1].tolist()
        assert [frame["rotation"][axis] for axis in "wxyz"] == run["link_quaternion"][7, -1].tolist()
        touching = [contact for _, message in topics["/contacts"] for contact in message["contacts"]]
        assert [contact["depth"] for contact in touching] == run.contacts["depth"].tolist() and touching
        assert touching[0]["link_a"] in run.labels.touching_link


def test_robomimic(leg: Path, tmp_path: Path) -> None:
    with h5py.File(exported(leg, "robomimic", tmp_path / "leg.hdf5")) as file, artsim.open(leg) as run:
        assert isinstance(run, Recording)
        demos = list(file["data"])
        demo = file["data/demo_0"]
        rows = STEPS // 2
        assert demos == ["demo_0"] and demo.attrs["num_samples"] == rows == file["data"].attrs["total"]
        names = json.loads(file["data"].attrs["env_args"])["action_names"]
        assert demo["actions"].shape == (rows, len(names))
        assert set(demo["actions"][:, names.index("control.knee")]) == {0.3}
        assert demo["obs/qpos"][()].tobytes() == run["qpos"].tobytes()
        assert demo["states"][()].tolist() == np.concatenate([run["qpos"], run["qvel"]], axis=1).tolist()
        assert demo["dones"][()].tolist() == [0] * (rows - 1) + [1] and not demo["rewards"][()].any()


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "mcap", "robomimic", "html"])
def test_no_room_for_the_file(leg: Path, kind: str, tmp_path: Path) -> None:
    """One line that names the file; nothing stays there, and HDF5 does not crash at the end."""
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384)); "
    code += "from artsim.cli.main import main; main()"
    words = [sys.executable, "-c", code, "export", str(leg), f"--{kind}", str(tmp_path / "x")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 74, done.stderr
    assert done.stderr.startswith(f"{tmp_path / 'x'}: cannot write: ") and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("mcap", "mcap")])
def test_a_missing_package_is_named(
    leg: Path, kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    told = export(leg, f"--{kind}", tmp_path / "x")
    assert told.exit_code == 2 and f'pip install "artsim[{kind}]"' in told.output
    assert not list(tmp_path.iterdir())


def test_video(leg: Path, tmp_path: Path) -> None:
    """The leg falls: the picture changes. Skipped where nothing can draw."""
    ffmpeg: Any = pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pyvista")
    told = export(leg, "--video", tmp_path / "leg.mp4", "--fps", 5)
    if told.exit_code == 2 and "OpenGL" in told.output:
        pytest.skip("no OpenGL here")
    assert told.exit_code == 0, told.output
    frames = ffmpeg.read_frames(tmp_path / "leg.mp4")
    about = next(frames)
    pictures = [np.frombuffer(frame, np.uint8).astype(int) for frame in frames]
    assert about["size"] == (1280, 720) and len(pictures) == 2
    assert np.count_nonzero(np.abs(pictures[0] - pictures[1]) > 40) > 2000


@pytest.mark.parametrize("shape", [(1.0, 0.1, 0.1), (0.1, 0.1, 3.0), (1.0, 2.0, 0.0)])
@pytest.mark.parametrize(("azimuth", "elevation"), [(-39.0, 20.0), (90.0, 0.0), (10.0, 80.0)])
def test_the_whole_run_is_in_sight_and_fills_the_picture(
    shape: tuple[float, ...], azimuth: float, elevation: float
) -> None:
    """Projected by the matrices of a camera of our own: no corner of a box beyond the picture's edge, one near it."""
    points = np.array(list(itertools.product(*((-size, size) for size in shape))))
    about, above = np.radians([azimuth, elevation])
    away = video._towards_camera(Look(azimuth, elevation))
    eye = np.cos(above) * np.cos(about), np.cos(above) * np.sin(about), np.sin(above)
    np.testing.assert_allclose(away, eye, atol=1e-15)
    tilt = np.array([[np.sin(above), 0, -np.cos(above)], [0, 1, 0], [np.cos(above), 0, np.sin(above)]])
    turn = np.array([[np.cos(about), np.sin(about), 0], [-np.sin(about), np.cos(about), 0], [0, 0, 1]])
    down, right, near = (points @ (tilt @ turn).T).T
    depth = video._distance(points, away) - near
    edge = np.tan(np.radians(15.0))
    reach = np.maximum(np.abs(down) / (depth * edge), np.abs(right) / (depth * edge * 1280 / 720))
    assert (depth > 0).all() and 0.7 < reach.max() <= 1.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--camera", "1"), "got 1 numbers"),
        (("--camera", "0,90"), "an elevation within 89"),
        (("--camera", "0,0,0"), "a distance above 0"),
        (("--background", "no such"), "'no such' is no colour"),
        (("--follow", "foo"), "no link is called 'foo'; did you mean 'foot'?"),
    ],
)
def test_looks_that_are_none(leg: Path, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    pytest.importorskip("pyvista")
    done = export(leg, "--video", tmp_path / "x.mp4", *options)
    if "OpenGL" in done.output:
        pytest.skip("no OpenGL here")
    assert done.exit_code == 2 and told in done.output
    assert not list(tmp_path.iterdir())
    done = export(leg, "--csv", tmp_path / "x.csv", "--floor")
    assert done.exit_code == 2 and "are for --video" in done.output


def test_contact_forces_are_arrows_in_a_video(leg: Path) -> None:
    """Their lengths, from the contact points, are the forces."""
    pyvista: Any = pytest.importorskip("pyvista")
    drawn: dict[str, Any] = {}

    class Plotter:
        def remove_actor(self, name: str, render: bool) -> None:
            drawn.pop(name, None)

        def add_mesh(self, mesh: Any, name: str, **how: Any) -> None:
            drawn[name] = mesh

    with open_recording(leg) as recording:
        robot = load_stored(recording.model_text, "leg", RunConfig.from_mapping(recording.config))
        motion = Motion(recording, robot)
        touching = [row for row in range(motion.rows) if len(motion.forces("contacts", row).points)]
        for row in (touching[0], touching[-1]):
            found = motion.forces("contacts", row)
            video._add_arrows(Plotter(), pyvista, motion, row, {"contacts": 0.01})
            (mesh,) = drawn.values()
            longest = 0.01 * np.linalg.norm(found.vectors, axis=1).max()
            assert mesh.length == pytest.approx(longest, rel=0.35) or len(found.points) > 1
        free = next(row for row in range(motion.rows) if row not in touching)
        video._add_arrows(Plotter(), pyvista, motion, free, {"contacts": 0.01})
        assert not drawn


def test_joint_forces_are_the_incoming_wrenches(leg: Path) -> None:
    with open_recording(leg) as recording:
        robot = load_stored(recording.model_text, "leg", RunConfig.from_mapping(recording.config))
        motion, row = Motion(recording, robot), 3
        assert motion.forces_known == ("contacts", "joint forces", "joint torques")
        for kind, part in (("joint forces", slice(0, 3)), ("joint torques", slice(3, 6))):
            wrench = recording.read("incoming_wrench", row, row + 1)[0][:, part]
            np.testing.assert_array_equal(motion.forces(kind, row).vectors, wrench)


def test_without_wrenches_joint_torques_are_those_along_axes(tmp_path: Path) -> None:
    """Parts of the wrenches: what nothing but drives, inputs and friction gives about a hinge's axis."""
    robot, parts = artsim.load(ARM), {}
    for name, record in (("whole", RunConfig().record), ("bare", ("qpos", "tau_applied", "tau_drive", "tau_passive"))):
        given: Any = {"torque": {"joint_2": 3.0}, "stiffness": 50.0, "q0": {"joint_2": 0.4, "joint_4": -0.7}}
        with artsim.simulate(robot, steps=4, output=tmp_path / f"{name}.h5", record=record, **given) as opened:
            assert isinstance(opened, Recording)
            motion = Motion(opened, robot.articulation)
            qpos, known = opened["qpos"][2], motion.forces_known
            parts[name] = motion.forces("joint torques", 2)
            assert ("along axes (tau_applied + tau_drive" in motion.told("joint torques")) == (name == "bare")
    assert known == ("joint torques",)
    assert "+incoming_wrench" in motion.lacks("joint forces")
    jacobian = robot.compute(qpos, quantities=["jacobian"], at="origin")["jacobian"]
    for dof in range(7):  # the link after joint k is link k
        axis, vector = jacobian[dof + 1, 3:, dof], parts["bare"].vectors[dof]
        np.testing.assert_allclose(vector, (vector @ axis) * axis, atol=1e-12)
        assert vector @ axis == pytest.approx(parts["whole"].vectors[dof + 1] @ axis, rel=1e-9, abs=1e-9)


def test_forces_that_are_not_recorded_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "r.h5"
    with artsim.simulate(artsim.load(ARM), steps=2, output=output, record=["qpos"]):
        pass
    told = export(output, "--html", tmp_path / "r.html", "--forces", "joint-forces")
    assert told.exit_code == 2 and "no joint forces; record a run with --record +incoming_wrench" in told.output
    told = export(output, "--html", tmp_path / "r.html", "--forces", "joint-force")
    assert told.exit_code == 2 and "did you mean 'joint-forces'?" in told.output
    told = export(output, "--csv", tmp_path / "r.csv", "--forces", "none")
    assert told.exit_code == 2 and "--forces and --force-scale are for --video and --html" in told.output


def test_a_page_says_what_its_arrows_are(tmp_path: Path) -> None:
    output, page = tmp_path / "r.h5", tmp_path / "r.html"
    with artsim.simulate(artsim.load(ARM), steps=2, output=output):
        pass
    newtons = []
    for scale in (1, 2):
        words = ("--forces", "joint-forces", "--force-scale", scale, "--force")
        assert export(output, "--html", page, *words).exit_code == 0
        newtons += re.findall(r"joint forces, of parents on links: an arrow of 0.1 m is ([0-9.]+) N", page.read_text())
    assert float(newtons[0]) == pytest.approx(2 * float(newtons[1]), rel=0.02)


def test_names_in_csv_are_no_formulas() -> None:
    """A spreadsheet computes what begins with = + - @; an apostrophe keeps it text. Numbers stay."""
    names = ["=cmd|'/c calc'!A1", "+1", "-x", "@SUM(A1)", "\tx", "left_finger", 3, -2.5]
    assert [harmless(name) for name in names] == [f"'{name}" for name in names[:5]] + names[5:]


def test_exports_are_all_written_or_none(tmp_path: Path) -> None:
    """Where one of several fails the others are not there, and files that were there before stay as they were."""
    run, table, contacts, arrays = (tmp_path / name for name in ("run.h5", "a.csv", "c.csv", "a.npz"))
    artsim.simulate(artsim.load("arm7"), steps=3, output=run).close()
    table.write_text("before")
    done = export(run, "--csv", table, "--npz", arrays, "--contacts-csv", contacts, "--force")
    assert (done.exit_code, "no contacts" in done.output) == (2, True), done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "run.h5"]
    assert table.read_text() == "before"
    done = export(run, "--csv", table, "--npz", arrays, "--force")
    assert done.exit_code == 0, done.output
    assert table.read_text().startswith("time,")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.npz", "run.h5"]
    done = export(run, "--csv", tmp_path / "b.csv", "--contacts-csv", tmp_path / ".." / tmp_path.name / "b.csv")
    assert (done.exit_code, "the same file" in done.output) == (2, True), done.output


def test_an_export_that_cannot_be_created_takes_a_line(tmp_path: Path) -> None:
    """In the system's own folders nothing can be created, also by who may write everywhere."""
    run = tmp_path / "run.h5"
    artsim.simulate(artsim.load("arm7"), steps=3, output=run).close()
    done = export(run, "--csv", "/proc/x.csv")
    assert (done.exit_code, len(done.output.splitlines())) == (73, 1), done.output


def test_every_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and folder are synced whenever a file takes its place, whoever writes it, and a run again at its end."""
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        events.append(("sync", os.path.realpath(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def replaced(part: Path, place: Path) -> Path:
        if str(part).startswith(str(tmp_path)):
            assert events[-1] == ("sync", os.path.realpath(part)), events
            events.append(("name", os.path.realpath(place)))
        return replace(part, place)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    run, arm = tmp_path / "run.h5", str(ROOT / "robots" / "arm7.urdf")
    artsim.simulate(artsim.load("arm7"), steps=3, output=run).close()
    assert events[-1] == ("sync", str(run))
    with h5py.File(run, "r+") as file:
        file["trajectory/status"][()] = 0
    batch = ["batch", arm, "--samples", "2", "--compute", "gravity", "-o"]
    for words in (
        ["export", str(run), "--csv", str(tmp_path / "run.csv"), "--npz", str(tmp_path / "run.npz")],
        ["plot", str(run), "-o", str(tmp_path / "run.svg")],
        ["recover", str(run), "-o", str(tmp_path / "recovered.h5")],
        ["run", "--resume", str(run), "--steps", "5"],
        [*batch, str(tmp_path / "batch.h5")],
        [*batch, str(tmp_path / "batch.csv")],
        [*batch, str(tmp_path / "index.h5"), "--shards", "2"],
        ["rollout", arm, "--samples", "2", "--steps", "2", "-o", str(tmp_path / "rollout.npz")],
    ):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
    named = [at for at, (what, _) in enumerate(events) if what == "name"]
    assert len(named) >= 11
    for at in named:
        assert events[at + 1] == ("sync", str(tmp_path))
