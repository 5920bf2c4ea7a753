"""Run files: they hold what the table says, survive every death of their writer, and are read through the gate."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from artsim.collision.build import Solid
from artsim.collision.hull import polyhedron
from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, FIXED_LABELS, NUMBERED, PIECE_DIMENSIONS, Labels, entry_units
from artsim.io.format.variable import unit_of
from artsim.io.gate import superblock
from artsim.io.gate.gate import open_checked
from artsim.io.output_file.claim import check_output
from artsim.io.output_file.model_record import MeshRecord, ModelRecord, model_record
from artsim.io.readers.differences import first_difference
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.runs import recorder as recorder_module
from artsim.io.runs.recorder import Recorder
from artsim.sim.articulation.description import Articulation, Geom, Inertial, Joint, Link
from artsim.sim.foundation.errors import BusyError, MissingInputError, ModelError, OutputError, StorageError, UsageError
from artsim.sim.geometry.solids import Kept
from artsim.sim.runs.controls import ControlLog, Controls

Array = npt.NDArray[Any]

# names that are nasty as paths, as labels and as text
DOFS = ("../../x", "a/b", ".", "größe")
LABELS = Labels(
    coord=("slide", "a/b", ".", "größe", "q"),
    dof=DOFS,
    link=("base", "../up", "tip"),
    independent_dof=DOFS[:2],
    coord_units=("m", "rad", "rad", "rad", "rad"),
    dof_units=("m/s", "rad/s", "rad/s", "rad/s"),
    force_units=("N", "N m", "N m", "N m"),
    actuator=("m/1", ".."),
    actuator_state=("m/1",),
    tendon=("rope", "/"),
    loop=("shut",),
    sensor=("imu.x", "imu/y"),
    sensor_units=("m/s^2", "rad"),
    jacobian_link=(1, 2, 2),
    jacobian_dof=(0, 0, 3),
)
FRAME = (np.zeros(3), np.eye(3))
PIECES = (
    Solid("convex", (), *FRAME, made=polyhedron(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))),
    Solid("heightfield", (), *FRAME, heights=np.arange(6.0).reshape(2, 3)),
)
MODEL = ModelRecord(
    text="<robot name='r'>\n  <!-- ü -->\n</robot>\n",
    format="urdf",
    name="r",
    path="r.urdf",
    sha256="0" * 64,
    links=LABELS.link,
    link_parents=("", "base", "../up"),
    link_masses=(1.0, 2.0, 0.5),
    joints=("j/1", "j2"),
    joint_types=("prismatic", "revolute"),
    joint_parents=("base", "../up"),
    joint_children=("../up", "tip"),
    joint_lower=(-1.0, -np.inf),
    joint_upper=(1.0, np.inf),
    joint_effort=(10.0, 5.0),
    joint_velocity=(np.inf, 3.0),
    meshes=(MeshRecord("tip", "package://r/tip.stl"), MeshRecord("tip", "package://r/tip.stl", "/m/tip.stl")),
    kept=Kept((0, 1, 2), (0, 0, 1), PIECES),
)
PROVENANCE: dict[str, str | int | float] = {"command": "artsim run r.urdf", "config": '{"dt": 0.002}', "threads": 2}


ONE = np.ones(1)
# of a robot that has everything
STATE = {
    "qpos": np.arange(5.0),
    "qvel": np.arange(4.0),
    "activation": ONE,
    "history": np.arange(8.0),
    "impulse": np.arange(3.0),
    "load": np.zeros(4),
    "change": np.zeros(4),
    "earlier_change": np.zeros(4),
    "drive_held": np.zeros(4),
    "still": np.int64(0),
    "last_input": np.zeros(14),
    "body_centre": np.zeros((2, 3)),
    "body_turn": np.zeros((2, 4)),
    "body_velocity": np.zeros((2, 6)),
    "limit_steps": np.zeros(4),
    "extremes": np.zeros(9),
    "step": np.int64(10),
    "time": np.float64(0.02),
    "contact": np.zeros((2, 9)),
}


def held(nv: int = 4) -> Controls:
    zero = np.zeros(nv)
    return Controls.held(torque=zero, target=np.arange(nv) * 0.1, target_velocity=zero, control=np.arange(2.0))


def new(path: Path, **options: Any) -> Recorder:
    merged = {
        "labels": LABELS,
        "dt": 0.002,
        "model": MODEL,
        "controls": held(),
        "provenance": PROVENANCE,
        "state": STATE,
        **options,
    }
    return Recorder(path, **merged)


def block(recorder: Recorder, rows: int, seed: int = 0) -> dict[str, Array]:
    """Random rows of the variables the recorder expects, shaped by the table and the labels alone."""
    random = np.random.default_rng(seed)
    sizes = {dim: len(values) for dim, values in FIXED_LABELS.items()}
    sizes |= {"coord": 5, "dof": 4, "dof2": 4, "link": 3, "actuator": 2, "actuator_state": 1, "tendon": 2, "loop": 1}
    sizes |= {"sensor": 2}
    sizes |= {"jacobian_column": 3}
    values = {}
    for name in recorder.variables:
        variable = schema.TABLE[f"trajectory/{name}"]
        values[name] = random.normal(size=(rows, *(sizes[dim] for dim in variable.dims[1:]))).astype(variable.dtype)
    return values


def two_contacts_a_row(rows: int) -> dict[str, Array]:
    """A table of contacts, numbers all along."""
    values = {"contact_count": np.full(rows, 2)}
    for name in schema.CONTACT_TABLE:
        variable = schema.TABLE[f"contact/{name}"]
        values[name] = np.zeros((2 * rows, *(3 for _ in variable.dims[1:])), variable.dtype)
    return values


def two_constraints_a_row(rows: int) -> dict[str, dict[str, Array]]:
    """Two constraint rows in every row, and the three entries of their K."""
    tables = {}
    for group, count in (("constraint", 2), ("delassus", 3)):
        of = schema.RAGGED[group]
        tables[group] = {name: np.zeros(count * rows, schema.TABLE[f"{group}/{name}"].dtype) for name in of.table}
        tables[group][of.counted_by] = np.full(rows, count)
    return tables


def write_run(path: Path, rows: int = 10, seed: int = 0, **options: Any) -> dict[str, Array]:
    tables = {"contact": two_contacts_a_row(rows)} if "contacts" in options.get("variables", ()) else {}
    if "delassus" in options.get("variables", ()):
        options["labels"] = LABELS._replace(constraint=("limit:q.lower", "limit:q.upper"))
        tables |= two_constraints_a_row(rows)
    with new(path, steps_total=rows, **options) as recorder:
        values = block(recorder, rows, seed)
        recorder.write(values, tables=tables)
        if recorder.checkpoint_steps:
            recorder.checkpoint(STATE)
        recorder.close(schema.COMPLETE, STATE | {"step": np.int64(rows)})
    return values


def run_python(code: str, *args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)], text=True, capture_output=True, **options
    )


# ---- what is written


def test_table_and_file_agree(tmp_path: Path) -> None:
    """Every dataset of a file with everything recorded is in the table, and as the table says; and the reverse."""
    path = tmp_path / "run.h5"
    write_run(path, variables=(*schema.RECORDED, *schema.RAGGED_BY_NAME), checkpoint=5)
    found = set()
    with h5py.File(path) as file:
        for group in file.values():
            for name, dataset in group.items():
                if name in (*DIMENSIONS, *PIECE_DIMENSIONS, *NUMBERED):
                    assert dataset.attrs["CLASS"] == b"DIMENSION_SCALE"
                else:
                    found.add(f"{group.name[1:]}/{name}")
                    variable = schema.TABLE[f"{group.name[1:]}/{name}"]
                    dims = tuple(Path(scales[0].name).name for scales in dataset.dims if len(scales))
                    assert dims == variable.dims or (dims == () and dataset.name.endswith("time"))
                    assert dataset.attrs["long_name"] == variable.meaning
                    text = h5py.check_string_dtype(dataset.dtype)
                    assert text is not None if variable.dtype == "str" else dataset.dtype == np.dtype(variable.dtype)
                if name in PIECE_DIMENSIONS:
                    continue
                assert dataset.attrs["units"] and dataset.attrs["long_name"]
                assert "{" not in dataset.attrs["units"]
    elsewhere = {path for path in schema.TABLE if path.startswith(("batch/", "ik/", "rollout/", "shards/"))}
    # runs with rangefinders that see meshes, stepped ones, contacts of rollouts, and runs by accuracy
    only_some = {"model/use_seen", "controls/changes", "contact/sample", "final/course", "checkpoint/course"}
    assert found == schema.TABLE.keys() - elsewhere - only_some


def test_no_variable_uses_a_dimension_twice() -> None:
    for path, variable in schema.TABLE.items():
        assert len(set(variable.dims)) == len(variable.dims), path
        numbered = ("time", "changes", "sample", "shard", *PIECE_DIMENSIONS, *NUMBERED)
        assert set(variable.dims) <= {*numbered, *DIMENSIONS}, path


@pytest.mark.parametrize("group", ["trajectory", "contact", "controls", "final", "checkpoint", "model", "provenance"])
@pytest.mark.parametrize("compress", [None, "gzip", "zstd"])
def test_xarray_opens_every_group_labelled(tmp_path: Path, group: str, compress: str | None) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    path = tmp_path / "run.h5"
    values = write_run(path, variables=(*schema.RECORDED, "contacts"), compress=compress, checkpoint=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as dataset:
            dataset.load()
    for name, variable in dataset.variables.items():
        assert variable.dims == (schema.TABLE[f"{group}/{name}"].dims if f"{group}/{name}" in schema.TABLE else (name,))
    if group == "trajectory":
        assert dataset.qpos.sel(coord="a/b").values.tobytes() == values["qpos"][:, 1].tobytes()
        assert list(dataset.time.values) == [k * 0.002 for k in range(10)]
        assert list(dataset.qvel.dof_units.values) == ["m/s", "rad/s", "rad/s", "rad/s"]
        for name, array in values.items():
            assert dataset[name].values.tobytes() == array.tobytes()
    if group == "provenance":
        assert dataset.attrs == PROVENANCE


def test_file_attributes(tmp_path: Path) -> None:
    write_run(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert file.attrs["Conventions"] == "CF-1.11 artsim-1"
        assert file.attrs["artsim_schema"] == "1.0"
        assert file.attrs["created"].endswith("Z")
        assert file.attrs["history"].endswith("artsim run r.urdf")
        assert file.attrs["title"]


def test_units_are_plain_where_all_dofs_agree() -> None:
    units = {"dof_units": ("rad/s",) * 2, "force_units": ("N m",) * 2, "coord_units": ("rad",) * 2}
    said = {name: unit_of(schema.TABLE[f"trajectory/{name}"], units) for name in ("qpos", "qvel", "qacc", "bias")}
    assert said == {"qpos": "rad", "qvel": "rad/s", "qacc": "rad/s^2", "bias": "N m"}
    assert unit_of(schema.TABLE["trajectory/mass_matrix"], units) == "kg m^2"
    assert unit_of(schema.TABLE["controls/target"], units) == "rad"
    mixed = entry_units(LABELS)
    assert unit_of(schema.TABLE["trajectory/qvel"], mixed) == "see dof_units"


def test_blocks_of_any_size_give_the_same_rows(tmp_path: Path) -> None:
    values = write_run(tmp_path / "whole.h5", rows=50)
    with new(tmp_path / "parts.h5", steps_total=50) as recorder:
        for start, stop in ((0, 1), (1, 20), (20, 20), (20, 50)):
            recorder.write({name: array[start:stop] for name, array in values.items()})
        assert recorder.rows == 50
        recorder.close(1, STATE | {"step": np.int64(50)})
    with open_recording(tmp_path / "whole.h5") as a, open_recording(tmp_path / "parts.h5") as b:
        assert first_difference(a, b) is None


def test_every_and_time(tmp_path: Path) -> None:
    with new(tmp_path / "run.h5", steps_total=10, every=4) as recorder:
        recorder.write(block(recorder, 3))
    with open_recording(tmp_path / "run.h5") as run:
        assert list(run["time"]) == [0.0, 4 * 0.002, 8 * 0.002]
        assert (run.every, run.steps_total, run.dt) == (4, 10, 0.002)


def test_robot_without_dofs(tmp_path: Path) -> None:
    labels = Labels((), (), ("base",), (), (), (), ())
    model = ModelRecord("<robot/>", "urdf", "r", "r", "", ("base",), ("",), (1.0,))
    controls = Controls(np.zeros(1), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 0)))
    with new(tmp_path / "run.h5", labels=labels, model=model, controls=controls, variables=("qpos", "tau_drive")) as r:
        r.write({"qpos": np.zeros((3, 0)), "tau_drive": np.zeros((3, 0))})
    with open_recording(tmp_path / "run.h5") as run:
        assert run["qpos"].shape == (3, 0) and run["time"].shape == (3,) and run.controls.nv == 0


def test_compressed_rows_are_the_same_and_fewer_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    for compress in (None, "gzip", "zstd"):
        path = tmp_path / f"{compress}.h5"
        with new(path, steps_total=2000, compress=compress) as recorder:
            recorder.write({name: np.zeros_like(values) for name, values in block(recorder, 2000).items()})
        with open_recording(path) as run:
            assert not run["incoming_wrench"].any()
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] / 4 > sizes[2]
    monkeypatch.setattr("artsim.io.gate.walk.has_zstd", lambda: False)
    monkeypatch.setattr("artsim.io.runs.recorder.has_zstd", lambda: False)
    with pytest.raises(ModelError, match=r"zstd.*artsim\[zstd\]"):
        open_recording(path)
    with pytest.raises(UsageError, match=r"artsim\[zstd\]"):
        new(tmp_path / "none.h5", compress="zstd")
    with pytest.raises(UsageError, match="did you mean 'zstd'"):
        new(tmp_path / "none.h5", compress="zst")
    assert not (tmp_path / "none.h5").exists()


def test_wrong_blocks_are_refused_and_the_file_stays_good(tmp_path: Path) -> None:
    with new(tmp_path / "run.h5", variables=("qpos", "qvel")) as recorder:
        recorder.write({"qpos": np.zeros((2, 5)), "qvel": np.zeros((2, 4))})
        with pytest.raises(UsageError, match=r"qvel has shape \(3, 4\), want \(2, 4\)"):
            recorder.write({"qpos": np.zeros((2, 5)), "qvel": np.zeros((3, 4))})
        with pytest.raises(UsageError, match="qvel"):
            recorder.write({"qpos": np.zeros((2, 5))})
    with open_recording(tmp_path / "run.h5") as run:
        assert run.n_valid == 2 and run.state == "complete"


def test_unknown_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'jacobain'; did you mean 'jacobian'\?"):
        new(tmp_path / "run.h5", variables=("jacobain",))
    assert not (tmp_path / "run.h5").exists()


def test_an_exception_leaves_an_interrupted_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new(tmp_path / "run.h5") as recorder:
        recorder.write(block(recorder, 4))
        raise KeyboardInterrupt
    with open_recording(tmp_path / "run.h5") as run:
        assert (run.n_valid, run.status, run.state) == (4, schema.INTERRUPTED, "interrupted")
        assert np.isnan(run.final["qpos"]).all()


def test_chunks_are_two_megabytes_or_the_run(tmp_path: Path) -> None:
    with new(tmp_path / "long.h5", steps_total=10**9) as recorder:
        assert recorder.block_rows * 3 * 6 * 8 <= 1 << 21 < (recorder.block_rows + 1) * 3 * 6 * 8
        assert recorder.bytes_needed is not None and recorder.bytes_needed > 10**9 * 8
    with new(tmp_path / "short.h5", steps_total=7) as recorder:
        assert recorder.block_rows == 7
    assert (tmp_path / "short.h5").stat().st_size < 100_000


def test_memory_is_flat_in_the_number_of_steps(tmp_path: Path) -> None:
    """Thirty times the blocks, the same peak (Python's and numpy's allocations) and nothing kept."""
    with new(tmp_path / "run.h5") as recorder:
        rows = block(recorder, 1000)
        for _ in range(3):
            recorder.write(rows)
        tracemalloc.start()
        recorder.write(rows)
        _, one = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(30):
            recorder.write(rows)
        _, many = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert many < one + 100_000
        assert recorder.rows == 34_000


def test_resident_memory_is_flat(tmp_path: Path) -> None:
    """HDF5's own memory too: 400 MB of rows through a process that may only grow by 100."""
    code = """
        import resource, sys
        import numpy as np
        from artsim.io.format.labels import Labels
        from artsim.io.output_file.model_record import ModelRecord
        from artsim.io.runs.recorder import Recorder
        from artsim.sim.runs.controls import Controls
        n = 50
        names = tuple(f"j{i}" for i in range(n))
        labels = Labels(names, names, ("a",), names, ("rad",) * n, ("rad/s",) * n, ("N m",) * n)
        model = ModelRecord("<robot/>", "urdf", "r", "r", "", ("a",), ("",), (1.0,))
        held = Controls.held(torque=np.zeros(n), target=np.zeros(n), target_velocity=np.zeros(n))
        r = Recorder(sys.argv[1], labels=labels, dt=1e-3, model=model, controls=held, provenance={}, state={},
                     variables=("qpos", "qvel"))
        rows = np.ones((5000, n))
        for k in range(5):
            r.write({"qpos": rows, "qvel": rows})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for k in range(100):
            r.write({"qpos": rows, "qvel": rows})
        r.close()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    done = run_python(code, tmp_path / "run.h5")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100


def test_model_record_of_a_description() -> None:
    mesh = Geom("g", "mesh", "visual", mesh=Path("/m/a.stl"), mesh_uri="package://m/a.stl")
    robot = Articulation(
        name="r",
        format="urdf",
        links=(Link("a", Inertial(2.0), (mesh,)), Link("b")),
        joints=(Joint("j", "revolute", "a", "b", lower=-1.0),),
        text="<robot/>",
    )
    record = model_record(robot)
    assert record.link_parents == ("", "a") and record.link_masses == (2.0, 0.0)
    assert record.joint_lower == (-1.0,) and record.joint_upper == (np.inf,)
    assert record.meshes == (MeshRecord("a", "package://m/a.stl", "/m/a.stl"),)
    assert len(record.sha256) == 64


# ---- where it is written


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    existing = tmp_path / "there.h5"
    existing.write_text("precious")
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        tmp_path: "is a directory",
        Path("/dev/full"): "device",
        Path("/dev/null"): "device",
        tmp_path / "pipe": "pipe",
        existing: "exists already; use --force",
        tmp_path / "no" / "run.h5": "does not exist",
        tmp_path / "file" / "run.h5": "cannot create",
        tmp_path / ("x" * 300): "cannot create",
        Path("bad\0name.h5"): "cannot create",
    }
    for path, words in cases.items():
        for attempt in (check_output, new):
            with pytest.raises(OutputError, match=words):
                attempt(path)
    assert existing.read_text() == "precious"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "pipe", "there.h5"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(OutputError, match="not writable"):
            new(tmp_path / "run.h5")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_folder_without_permission_as_anyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="not writable"):
        check_output(tmp_path / "run.h5")


def test_force_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    path.write_text("old")
    write_run(path, rows=3, force=True)
    with open_recording(path) as run:
        assert run.n_valid == 3


def test_a_failed_layout_leaves_no_file(tmp_path: Path) -> None:
    broken = {**PROVENANCE, "command": "HDF5 texts hold no \0"}
    with pytest.raises(Exception):  # noqa: B017 - whatever it is, nothing may be left behind
        new(tmp_path / "run.h5", provenance=broken)
    assert not (tmp_path / "run.h5").exists()


OTHER_WRITER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    from test_io import *
    with new(Path(sys.argv[1]), force=True) as recorder:
        recorder.write(block(recorder, 5))
        print("ready", flush=True)
        sys.stdin.read()
"""


def other_writer(path: Path) -> subprocess.Popen[str]:
    """A process that has written five rows to the file and holds it until its stdin closes."""
    command = [sys.executable, "-c", textwrap.dedent(OTHER_WRITER), str(path), str(Path(__file__).parent)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_second_writer_is_refused_and_readers_follow(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    process = other_writer(path)
    try:
        for force in (False, True):
            with pytest.raises(BusyError, match=f"in use by process {process.pid}"):
                new(path, force=force)
        with pytest.raises(BlockingIOError):
            h5py.File(path, "r+")
        with h5py.File(path, "r", swmr=True) as file:
            assert file["trajectory/n_valid"][()] == 5
        with open_recording(path) as run:
            assert (run.n_valid, run.state) == (5, "running")
            assert run["qpos"].shape == (5, 5)
    finally:
        process.communicate("")
    assert process.returncode == 0
    with open_recording(path) as run:
        assert run.state == "complete"


def test_kill_leaves_the_rows_readable(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    process = other_writer(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with open_recording(path) as run:
        assert (run.n_valid, run.status, run.state) == (5, schema.RUNNING, "killed")
        with new(tmp_path / "same.h5") as recorder:
            same = block(recorder, 5)
        for name, values in same.items():
            assert run[name].tobytes() == values.tobytes()
        assert run.model_text == MODEL.text
        assert run.controls.rows == 1
    new(path, force=True).close()  # a dead writer holds nothing


def test_kill_while_writing(tmp_path: Path) -> None:
    """Killed at no chosen moment, a dozen times: what n_valid counts is there, whole."""
    code = """
        import sys
        sys.path.insert(0, sys.argv[2])
        from test_io import *
        recorder = new(Path(sys.argv[1]), variables=("qpos", "qvel"), force=True)
        for k in range(10**6):
            first = recorder.rows
            row = np.arange(first, first + 700, dtype=float)[:, None]
            recorder.write({"qpos": row + np.zeros(5), "qvel": row + np.zeros(4)})
            if k == 2:
                print("ready", flush=True)
    """
    for _ in range(6):
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "run.h5"), str(Path(__file__).parent)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.communicate()
        with open_recording(tmp_path / "run.h5") as run:
            assert run.n_valid >= 2100 and run.n_valid % 700 == 0
            assert (run["qpos"] == np.arange(run.n_valid)[:, None]).all()
            assert (run["qvel"] == np.arange(run.n_valid)[:, None]).all()


# ---- a full disk


def test_full_disk_stops_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The free space is asked for before HDF5 writes: the file is closed as interrupted, its rows are good."""
    path = tmp_path / "run.h5"
    recorder = new(path, steps_total=1_000_000)
    recorder.write(block(recorder, recorder.block_rows))
    monkeypatch.setattr(recorder_module, "room", lambda _: (100, "no space left on the disk: it has"))
    with pytest.raises(StorageError, match=rf"{recorder.block_rows} of 1000000 rows.*needs {recorder.bytes_needed}"):
        recorder.write(block(recorder, recorder.block_rows))
    assert not recorder.broken
    recorder.close()  # nothing left to do
    with open_recording(path) as run:
        assert (run.n_valid, run.state) == (recorder.block_rows, "interrupted")


def test_a_small_disk_keeps_most_of_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MiB: blocks are so small that many fit."""
    path = tmp_path / "run.h5"

    def left(file: Path) -> tuple[int, str]:
        return (4 << 20) - (path.stat().st_size if path.exists() else 0), "no space left on the disk: it has"

    monkeypatch.setattr(recorder_module, "room", left)
    recorder = new(path, steps_total=1_000_000)
    rows = block(recorder, recorder.block_rows)
    with pytest.raises(StorageError):
        while True:
            recorder.write(rows)
    with open_recording(path) as run:
        assert run.n_valid * recorder._layout.row_bytes > 3 << 20
        assert path.stat().st_size < 4 << 20


def test_no_room_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "room", lambda _: (100, "no space left on the disk: it has"))
    with pytest.raises(StorageError, match="after 0 rows"):
        new(tmp_path / "run.h5")
    assert not (tmp_path / "run.h5").exists()


@pytest.mark.parametrize("notice", [True, False])
def test_write_error_half_way(tmp_path: Path, notice: bool) -> None:
    """A real EFBIG inside HDF5 (file size limit): exit 74 without a crash, with a message, earlier rows readable.

    `notice`: the limit is seen before HDF5 runs into it, as with a full disk; otherwise HDF5 is left to fail.
    """
    code = """
        import resource, sys
        sys.path.insert(0, sys.argv[2])
        from test_io import *
        if sys.argv[3] == "False":
            recorder_module.room = lambda _: (sys.maxsize, "")
        recorder = new(Path(sys.argv[1]))
        rows = block(recorder, 1000)
        recorder.write(rows)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
        try:
            for _ in range(100):
                recorder.write(rows)
        except StorageError as error:
            assert recorder.broken == (sys.argv[3] == "False")
            print(error, file=sys.stderr)
            if not recorder.broken:
                sys.exit(error.exit_code)
    """
    done = run_python(code, tmp_path / "run.h5", Path(__file__).parent, notice)
    assert done.returncode == StorageError.exit_code, done.stderr
    assert "writing stopped after" in done.stderr and "Traceback" not in done.stderr
    with open_recording(tmp_path / "run.h5") as run:
        assert run.n_valid >= 1000
        for name in run.variables:
            assert np.isfinite(run[name]).all()


# ---- reading back


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    write_run(path)
    return path


def test_recording(run_file: Path) -> None:
    with open_recording(run_file) as run:
        assert run.labels == LABELS._replace(jacobian_link=(), jacobian_dof=())  # not recorded
        assert run.variables == schema.DEFAULT_RECORDED
        assert run.config == {"dt": 0.002}
        assert run.provenance == PROVENANCE
        assert run.model["name"] == "r" and run.model_text == MODEL.text
        assert list(run.final["qpos"]) == [0, 1, 2, 3, 4] and run.final["step"] == 10
        assert run.names_of("dof2") == DOFS and run.names_of("xyz") == ("x", "y", "z")
        assert run.read("qpos", 3, 5).shape == (2, 5) and run.read("qpos", 8, 99).shape == (2, 5)
        assert "qpos" in run and "jacobian" not in run
        with pytest.raises(UsageError, match=r"no 'qpso'; did you mean 'qpos'\?"):
            run["qpso"]
        json.dumps(run.summary())
        assert run.summary()["variables"]["qvel"]["units"] == "see dof_units"


def test_to_xarray_equals_the_file(run_file: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with open_recording(run_file) as run:
        ours = run.to_xarray()
    with xarray.open_dataset(run_file, group="trajectory", engine="h5netcdf") as theirs:
        for name in ours.data_vars:
            xarray.testing.assert_equal(ours[name], theirs[name])


def test_controllers_inputs_come_back_bit_for_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    torque = random.normal(size=(30, 4))
    torque[7] = torque[6]  # held: no row of its own
    torque[0, 0] = -0.0
    empty = Controls(np.zeros(0), *np.zeros((3, 0, 4)), np.zeros((0, 2)))
    log = ControlLog(4)
    with new(tmp_path / "run.h5", controls=empty) as recorder:
        for step, row in enumerate(torque):
            log.append(step, row, np.ones(4), *np.zeros((2, 4)))
            if step % 10 == 9:
                recorder.write(block(recorder, 10), log.take())
    with open_recording(tmp_path / "run.h5") as run:
        controls = run.controls
    assert controls.rows == 29
    assert b"".join(controls.torque[controls.row_at(step)].tobytes() for step in range(30)) == torque.tobytes()
    assert (controls.target == 1).all()


def test_first_difference(tmp_path: Path) -> None:
    values = write_run(tmp_path / "a.h5")
    names = {"qvel": (6, 2), "incoming_wrench": (4, 1, 5)}

    def changed(name: str, change: Callable[[dict[str, Array]], None]) -> Recording:
        copy = {key: array.copy() for key, array in values.items()}
        change(copy)
        with new(tmp_path / name, steps_total=10) as recorder:
            recorder.write(copy)
            recorder.close(
                1, {"qpos": np.arange(5.0), "qvel": np.arange(4.0), "activation": ONE, "step": 10, "time": 0.02}
            )
        return open_recording(tmp_path / name)

    def last_bits(copy: dict[str, Array]) -> None:
        for key, where in names.items():
            copy[key][where] = np.nextafter(copy[key][where], np.inf)

    def nan(copy: dict[str, Array]) -> None:
        copy["qpos"][2, 3] = np.nan

    with open_recording(tmp_path / "a.h5") as a:
        assert first_difference(a, a) is None
        with changed("bits.h5", last_bits) as b:
            assert first_difference(a, b) == ("incoming_wrench", 4, "../up, tz")
        with changed("nan.h5", nan) as b, changed("nan2.h5", nan) as same:
            assert first_difference(a, b) == ("qpos", 2, "größe")
            assert first_difference(b, same) is None
    with new(tmp_path / "zero.h5", variables=("qpos",)) as recorder:
        recorder.write({"qpos": np.zeros((2, 5))})
    with new(tmp_path / "minus.h5", variables=("qpos",)) as recorder:
        recorder.write({"qpos": -np.zeros((2, 5))})
    with new(tmp_path / "longer.h5", variables=("qpos",)) as recorder:
        recorder.write({"qpos": np.zeros((3, 5))})
    other = Controls.held(torque=np.ones(4), target=np.zeros(4), target_velocity=np.zeros(4))
    with new(tmp_path / "other.h5", variables=("qpos",), controls=other) as recorder:
        recorder.write({"qpos": np.zeros((2, 5))})
    with open_recording(tmp_path / "zero.h5") as zero:
        for name, expected in (
            ("minus", "qpos"),
            ("longer", "n_valid"),
            ("other", "controls/torque"),
            ("a", "variables"),
        ):
            with open_recording(tmp_path / f"{name}.h5") as b:
                difference = first_difference(zero, b)
                assert difference is not None and difference.dataset == expected


# ---- the gate


def external_raw(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (16,), "u1", external=[("/etc/passwd", 0, 16)])


def external_link(file: h5py.File) -> None:
    file["trajectory/x"] = h5py.ExternalLink("/etc/passwd", "/")


def soft_link(file: h5py.File) -> None:
    file["x"] = h5py.SoftLink("/x")


def link_loop(file: h5py.File) -> None:
    file["trajectory/self"] = file["trajectory"]


def link_to_root(file: h5py.File) -> None:
    file["trajectory/root"] = file["/"]


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("../other.h5", "x", (4,))
    file.create_virtual_dataset("trajectory/x", layout)


def huge(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (10**12,), "f8", chunks=(1024,))


def huge_contiguous(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (10**12,), "f8")


def huge_chunk(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (2**29,), "u1", chunks=(2**29,), compression="gzip")


def unknown_filter(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (100,), "f8", compression="lzf")


def references(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (1,), h5py.ref_dtype)


def ragged(file: h5py.File) -> None:
    file.create_dataset("trajectory/x", (1,), h5py.vlen_dtype(np.float64))


def named_type(file: h5py.File) -> None:
    file["trajectory/x"] = np.dtype("f8")


def deep(file: h5py.File) -> None:
    file.create_group("/".join("x" * 40))


CRAFTED = {
    external_raw: "has its data in another file",
    external_link: "link to another file",
    soft_link: "soft link",
    link_loop: "circle",
    link_to_root: "circle",
    virtual: "virtual",
    huge: "declares 1000000000000 entries",
    huge_contiguous: "declares 1000000000000 entries",
    huge_chunk: "chunks of",
    unknown_filter: "filter 32000",
    references: "neither numbers nor texts",
    ragged: "neither numbers nor texts",
    named_type: "named datatype",
    deep: "too many",
}


@pytest.mark.parametrize("craft", CRAFTED, ids=lambda craft: craft.__name__)
def test_the_gate_refuses(run_file: Path, craft: Callable[[h5py.File], None]) -> None:
    with h5py.File(run_file, "r+") as file:
        craft(file)
    for read in (open_checked, open_recording):
        with pytest.raises(ModelError, match=f"refused: .*{CRAFTED[craft]}"):
            read(run_file)


def test_nothing_else_is_opened(run_file: Path) -> None:
    """Refused without following: no file but the recording itself is opened by the gate."""
    for craft in (external_raw, external_link, virtual):
        write_run(run_file, force=True)
        with h5py.File(run_file, "r+") as file:
            craft(file)
        code = """
            import sys, h5py
            from artsim.io.readers import recording
            from h5py import h5l, h5o
            from artsim.sim.foundation.errors import ModelError
            opened = []
            sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
            try:
                recording.open_recording(sys.argv[1])
            except ModelError:
                others = [name for name in opened if "passwd" in str(name) or "other.h5" in str(name)]
                print(others)
        """
        done = run_python(code, run_file)
        assert done.stdout == "[]\n", done.stderr


def test_files_that_are_something_else(tmp_path: Path) -> None:
    contents = {
        "empty": b"",
        "text file": b"time,qpos\n0,1\n",
        "XML": b"\n<robot name='r'/>",
        "zip or .npz": b"PK\x03\x04....",
        ".npy array": b"\x93NUMPY\x01",
        "MATLAB": b"MATLAB 7.3 MAT-file",
        "binary": bytes(range(256)),
    }
    for words, content in contents.items():
        (tmp_path / "x.h5").write_bytes(content)
        with pytest.raises(ModelError, match=f"not an HDF5 file; it looks like .*{words}"):
            open_recording(tmp_path / "x.h5")
    for path, kind, words in (
        (tmp_path, ModelError, "directory"),
        (Path("/dev/null"), ModelError, "device"),
        (tmp_path / "none.h5", MissingInputError, "no such file"),
    ):
        with pytest.raises(kind, match=words):
            open_recording(path)


def robomimic(file: h5py.File) -> None:
    file.create_group("data/demo_0").create_dataset("actions", data=np.zeros((3, 7)))
    file["data"].attrs["env_args"] = "{}"


def minari(file: h5py.File) -> None:
    file.create_group("episode_0").create_dataset("actions", data=np.zeros((3, 7)))


def future(file: h5py.File) -> None:
    file.attrs["artsim_schema"] = "99"


def odd_version(file: h5py.File) -> None:
    file.attrs["artsim_schema"] = np.zeros(3)


def not_a_run(file: h5py.File) -> None:
    file.attrs["artsim_schema"] = "1.0"
    file.create_group("batch")


@pytest.mark.parametrize(
    ("craft", "words"),
    [
        (robomimic, "not artsim's; it looks like a robomimic dataset"),
        (minari, "not artsim's; it looks like a Minari dataset"),
        (future, "artsim schema 99; this artsim reads 1.0"),
        (odd_version, "not artsim's"),
        (not_a_run, "no group /trajectory"),
        (lambda file: None, "not artsim's; it holds nothing"),
    ],
)
def test_other_hdf5_files_are_named(tmp_path: Path, craft: Callable[[h5py.File], None], words: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        craft(file)
    with pytest.raises(ModelError, match=words):
        open_recording(tmp_path / "x.h5")


def test_contradictory_runs_are_refused(run_file: Path) -> None:
    def more_rows(file: h5py.File) -> None:
        file["trajectory/n_valid"][()] = 11

    def fewer_than_none(file: h5py.File) -> None:
        file["trajectory/n_valid"][()] = -1

    def no_time(file: h5py.File) -> None:
        del file["trajectory/time"]

    def another_type(file: h5py.File) -> None:
        del file["trajectory/qpos"]
        file["trajectory/qpos"] = np.zeros((10, 5), "f4")

    def another_width(file: h5py.File) -> None:
        del file["trajectory/qpos"]
        file["trajectory/qpos"] = np.zeros((10, 6))

    def numbers_as_labels(file: h5py.File) -> None:
        del file["trajectory/dof"]
        file["trajectory/dof"] = np.zeros(4)

    def no_step(file: h5py.File) -> None:
        del file["trajectory"].attrs["dt"]

    for craft in (more_rows, fewer_than_none, no_time, another_type, another_width, numbers_as_labels, no_step):
        write_run(run_file, force=True)
        with h5py.File(run_file, "r+") as file:
            craft(file)
        with pytest.raises(ModelError):
            open_recording(run_file)


def test_bad_config_is_refused(tmp_path: Path) -> None:
    for text in ("{", "[1]", "[" * 100_000):
        write_run(tmp_path / "run.h5", provenance={"config": text}, force=True)
        with open_recording(tmp_path / "run.h5") as run, pytest.raises(ModelError, match="config"):
            _ = run.config


def test_labels_that_unpack_to_too_much_are_refused(run_file: Path) -> None:
    """Many entries that all point at one long text: 16 bytes each in the file, a megabyte each in memory."""
    with h5py.File(run_file, "r+") as file:
        del file["trajectory/link"]
        text = h5py.string_dtype()
        labels = file.create_dataset("trajectory/link", (2000,), text)
        labels[0] = "x" * 1_000_000
        offset = labels.id.get_offset()
    content = bytearray(run_file.read_bytes())
    for k in range(1, 2000):
        content[offset + 16 * k : offset + 16 * (k + 1)] = content[offset : offset + 16]
    run_file.write_bytes(content)
    with pytest.raises(ModelError, match="more text than the file holds"):
        open_recording(run_file)


def test_truncated_anywhere(run_file: Path) -> None:
    content = run_file.read_bytes()
    for size in (8, 40, 100, 500, 2000, len(content) // 2, len(content) - 2000):  # more than its seal
        run_file.write_bytes(content[:size])
        with pytest.raises(ModelError):
            open_recording(run_file)


def test_a_dead_writers_file_truncated(tmp_path: Path) -> None:
    """An error each time, at once: as a SWMR reader HDF5 would retry a wrong checksum for ever."""
    path = tmp_path / "run.h5"
    process = other_writer(path)
    process.kill()
    process.communicate()
    content = path.read_bytes()
    for size in (8, 40, 47, 48, 100, 500, 2000, 10_000):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError):
            open_recording(path)
    path.write_bytes(content[:20] + b"x" + content[21:])
    with pytest.raises(ModelError, match="superblock"):
        open_recording(path)


def test_superblock_checksum(run_file: Path) -> None:
    """Against HDF5's own: the mark set by hand, then taken away again, gives the file's bytes."""
    with h5py.File(run_file, "r+"):
        pass  # which takes the seal away
    head = run_file.read_bytes()[: superblock.SIZE]
    assert not superblock.being_written(head)
    assert superblock.without_marks(head, run_file.stat().st_size) == head


@pytest.mark.parametrize("dead_writer", [False, True])
def test_flipped_bytes_give_an_answer_or_one_error(run_file: Path, dead_writer: bool) -> None:
    """Structure damage is one ModelError or goes unnoticed; never another exception. In a process: HDF5 is C."""
    code = """
        import sys, warnings
        from pathlib import Path
        import numpy as np
        from artsim.io.readers.recording import open_recording
        from artsim.sim.foundation.errors import ArtsimError
        path = Path(sys.argv[1])
        good = path.read_bytes()
        random = np.random.default_rng(0)
        refused = 0
        for _ in range(150):
            bad = bytearray(good)
            # the structure is at the beginning, the rest are mostly numbers
            bad[random.integers(min(len(bad), 1 << 16))] ^= 1 << random.integers(8)
            path.write_bytes(bad)
            try:
                with open_recording(path) as run:
                    for name in run.variables:
                        run[name]
                    run.controls, run.final, run.model_text, run.config
            except ArtsimError:
                refused += 1
        print(refused)
    """
    if dead_writer:
        process = other_writer(run_file)
        process.kill()
        process.communicate()
    done = run_python(code, run_file)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_imports_stay_light() -> None:
    """`artsim --help` and `check` may import these modules: nothing heavy comes with them."""
    code = """
        import sys
        import artsim.io.runs.recorder, artsim.io.readers.recording, artsim.io.inputs.control_files
        print(sorted({"h5py", "xarray", "pandas", "scipy", "numba"} & set(sys.modules)))
    """
    assert run_python(code).stdout == "[]\n"
