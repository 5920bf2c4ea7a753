"""Inputs over time: what a control file may say, what it may not, and that each row holds until the next."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artsim.io.inputs.control_files import read_controls
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError, UsageError
from artsim.sim.runs.controls import VALUES, ControlLog, Controls

DOFS = ("finger_1", "finger_2", "root.vx")
DT = 0.01


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controls.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_csv(tmp_path: Path) -> None:
    path = csv(tmp_path, "time,finger_2.target,root.vx.torque,finger_2.velocity\n0.1,1,2,3\n\n0.25, 4 ,5e0,-6\n")
    controls = read_controls(path, DOFS, DT, target=np.array([7.0, 8.0, 9.0]))
    assert list(controls.start_step) == [0, 10, 25]
    assert controls.target.tolist() == [[7, 8, 9], [7, 1, 9], [7, 4, 9]]
    assert controls.torque.tolist() == [[0, 0, 0], [0, 0, 2], [0, 0, 5]]
    assert controls.target_velocity.tolist() == [[0, 0, 0], [0, 3, 0], [0, -6, 0]]
    assert not controls.torque.flags.writeable


def test_csv_as_spreadsheets_write_it(tmp_path: Path) -> None:
    """Byte order mark, quotes, CRLF."""
    path = tmp_path / "controls.csv"
    path.write_bytes(b'\xef\xbb\xbf"time","finger_1.torque"\r\n0,"1.5"\r\n1,2\r\n')
    assert read_controls(path, DOFS, DT).torque[:, 0].tolist() == [1.5, 2]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=200)
    rows = "\n".join(f"{k},{value!r}" for k, value in enumerate(values.tolist()))
    assert (
        read_controls(csv(tmp_path, f"time,finger_1.target\n{rows}\n"), DOFS, DT).target[:, 0].tobytes()
        == values.tobytes()
    )


BAD_CSV = [
    ("", "is empty"),
    ("time,finger_1.target\n", "holds no row"),
    ("t,finger_1.target\n0,1\n", r":1: the first column is 't', want 'time'"),
    ("time;finger_1.target\n0;1\n", "separate columns by commas"),
    ("time,finger_1\n0,1\n", r":1: column 'finger_1': want <joint>.target"),
    ("time,finger_1.position\n0,1\n", r":1: column 'finger_1.position': want <joint>.target"),
    ("time,finger_1.target,finger_1.target\n0,1,1\n", "'finger_1.target' stands there twice"),
    ("time,finger_1.target\n0,nan\n", r":2: column 'finger_1.target': 'nan' is not a finite number"),
    ("time,finger_1.target\n0,1\n1,inf\n", r":3: column 'finger_1.target': 'inf' is not"),
    ("time,finger_1.target\n0,1\n\n1,x\n", r":4: column 'finger_1.target': 'x' is not"),
    ("time,finger_1.target\n0,1_0\n", r"'1_0' is not"),
    ("time,finger_1.target\n0,1,2\n", r":2: 3 values, want 2"),
    ("time,finger_1.target\n0,1\n1\n", r":3: 1 values, want 2"),
    ("time,finger_1.target\nnan,1\n", r":2: column 'time': 'nan' is not"),
    ("time,finger_1.target\n-1,1\n", "row 1: time is -1.0"),
    ("time,finger_1.target\n0,1\n0,2\n", "row 2: time 0.0 does not follow 0.0"),
    ("time,finger_1.target\n0,1\n2,1\n1,2\n", "row 3: time 1.0 does not follow 2.0"),
    ("time,finger_1.target\n1e300,1\n", "beyond every run"),
]


@pytest.mark.parametrize(("text", "words"), BAD_CSV)
def test_bad_csv(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        read_controls(csv(tmp_path, text), DOFS, DT)
    assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)


def test_unknown_joint_is_a_usage_error_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown joint 'root.vy'; did you mean 'root.vx'\?"):
        read_controls(csv(tmp_path, "time,root.vy.target\n0,1\n"), DOFS, DT)


def test_a_table_without_inputs_and_the_line_of_an_unknown_joint(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"controls\.csv:1: want <joint>"):
        read_controls(csv(tmp_path, "time\n0\n"), DOFS, DT)
    with pytest.raises(UsageError, match=r"controls\.csv:2: unknown joint 'finger_3'"):
        read_controls(csv(tmp_path, "\ntime,finger_3.torque\n0,1\n"), DOFS, DT)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("time,größe.target\n".encode("latin-1"))
    (tmp_path / "x.txt").write_text("time\n")
    (tmp_path / "x.npz").write_text("no archive")
    (tmp_path / "x.h5").write_text("no hdf5")
    (tmp_path / "folder.csv").mkdir()
    for name, kind, words in (
        ("none.csv", MissingInputError, "no such file"),
        ("folder.csv", MissingInputError, "is not a file"),
        ("latin.csv", ModelError, "not UTF-8"),
        ("x.txt", UsageError, r"end in \.csv, \.npz or \.h5"),
        ("x.npz", ModelError, r"no readable \.npz"),
        ("x.h5", ModelError, "not an HDF5 file"),
    ):
        with pytest.raises(kind, match=words):
            read_controls(tmp_path / name, DOFS, DT)


def save(path: Path, **arrays: object) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                values = np.asarray(array)
                file[name] = values.astype(object) if values.dtype.kind == "U" else values
    return path


@pytest.fixture(params=[".npz", ".h5"])
def array_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"controls{request.param}"


def test_arrays(array_file: Path) -> None:
    target = np.arange(6.0).reshape(2, 3)
    path = save(array_file, time=[0.0, 0.5], target=target, velocity=-target.astype("f4"), torque=target.astype(int))
    controls = read_controls(path, DOFS, DT)
    assert list(controls.start_step) == [0, 50]
    assert (controls.target == target).all() and (controls.target_velocity == -target).all()
    assert (controls.torque == target).all()


def test_arrays_with_names(array_file: Path) -> None:
    path = save(array_file, time=[0.0], torque=[[1.0, 2.0]], names=["root.vx", "finger_1"])
    assert read_controls(path, DOFS, DT).torque.tolist() == [[2, 0, 1]]


def test_bad_arrays(array_file: Path) -> None:
    zeros = np.zeros((2, 3))
    nan = zeros.copy()
    nan[1, 2] = np.nan
    time = [0.0, 1.0]
    cases: list[tuple[dict[str, object], type[ArtsimError], str]] = [
        ({"target": zeros}, ModelError, "want arrays time and target"),
        ({"time": time}, ModelError, "want arrays time and target"),
        ({"time": time, "target": np.zeros((2, 2))}, UsageError, r"\(2, 2\), want \(2, 3\): times, degrees of freedom"),
        ({"time": time, "target": np.zeros((3, 3))}, UsageError, r"\(3, 3\), want \(2, 3\)"),
        ({"time": time, "target": zeros, "names": ["finger_1"]}, UsageError, r"want \(2, 1\): times, names"),
        ({"time": time, "target": zeros, "names": ["a", "b", "c"]}, UsageError, "unknown joint 'a'"),
        ({"time": time, "target": zeros[:, :2], "names": ["finger_1"] * 2}, ModelError, "'finger_1' twice"),
        ({"time": time, "target": zeros, "names": [1, 2, 3]}, ModelError, "want a list of texts"),
        ({"time": time, "target": nan}, ModelError, "'root.vx', row 2, column 3: nan"),
        ({"time": time, "target": np.zeros(2)}, ModelError, "1 dimensions, want numbers with 2"),
        ({"time": time, "target": np.zeros((2, 3), bool)}, ModelError, "target is bool"),
        ({"time": time, "target": np.full((2, 3), "x")}, ModelError, "want numbers"),
        ({"time": [1.0, 0.0], "target": zeros}, ModelError, "times increase"),
        ({"time": [0.0, np.inf], "target": zeros}, ModelError, "time is inf"),
        ({"time": np.zeros(0), "target": np.zeros((0, 3))}, ModelError, "no row"),
    ]
    for arrays, kind, words in cases:
        with pytest.raises(kind, match=words):
            read_controls(save(array_file, **arrays), DOFS, DT)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, time=np.zeros(1), target=np.array([[print]], dtype=object))
    with pytest.raises(ModelError, match="allow_pickle=False"):
        read_controls(path, DOFS, DT)


def test_archives_that_declare_too_much(tmp_path: Path) -> None:
    """A header of 10^12 doubles in a few bytes is refused before any memory is asked for."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header = header.ljust(117) + b"\n"
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("time.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ModelError, match="declares the shape"):
        read_controls(path, DOFS, DT)


def test_steps_from_times(tmp_path: Path) -> None:
    """A row acts from the first step that does not begin before it; rounding of time / dt does not shift it."""
    steps = [0, 3, 7, 100, 123_457, 30_000_001]
    for dt in (0.002, 0.001, 1 / 240, 0.1):
        rows = "\n".join(f"{step * dt!r},{step}" for step in steps)
        controls = read_controls(csv(tmp_path, f"time,finger_1.target\n{rows}\n"), DOFS, dt)
        assert list(controls.start_step) == steps
    late = read_controls(csv(tmp_path, "time,finger_1.target\n0,1\n0.0101,2\n"), DOFS, DT)
    assert list(late.start_step) == [0, 2]


times = st.lists(st.integers(0, 5000), min_size=1, max_size=30, unique=True).map(sorted)


@settings(max_examples=200, deadline=None)
@given(milliseconds=times, dt=st.sampled_from([0.001, 0.002, 0.01, 1 / 240, 0.3]), last=st.integers(0, 100))
def test_rows_hold_until_the_next(
    milliseconds: list[int], dt: float, last: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Against the plain definition: at each step, the last row whose time has come (to 1e-9 of a step)."""
    path = tmp_path_factory.getbasetemp() / "held.csv"
    moments = [ms / 1000 for ms in milliseconds]
    rows = "\n".join(f"{moment!r},{k + 1}" for k, moment in enumerate(moments))
    path.write_text(f"time,finger_1.target\n{rows}\n")
    controls = read_controls(path, DOFS, dt)
    assert controls.start_step[0] == 0
    for step in (*range(20), last, math.ceil(moments[-1] / dt) + 1):
        due = [k + 1 for k, moment in enumerate(moments) if moment / dt <= step + 1e-9]
        assert controls.target[controls.row_at(step), 0] == (due[-1] if due else 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, math.nan]), max_size=40), st.integers(1, 7))
def test_log_gives_back_every_step(torques: list[float], every: int) -> None:
    """However often the rows are taken, each step's inputs are those that were given, bit for bit."""
    log = ControlLog(1)
    parts = []
    for step, torque in enumerate(torques):
        log.append(step, np.array([torque]), *np.zeros((3, 1)))
        if step % every == 0:
            parts.append(log.take())
    parts.append(log.take())
    joined = Controls(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in ("start_step", *VALUES)}
    )
    held = [joined.torque[joined.row_at(step)].tobytes() for step in range(len(torques))]
    assert held == [np.array([torque]).tobytes() for torque in torques]


def test_a_runs_own_inputs(tmp_path: Path) -> None:
    """A run file is a control file for the same robot; at another time step its rows keep their times."""
    from artsim.io.format.labels import Labels
    from artsim.io.output_file.model_record import ModelRecord
    from artsim.io.runs.recorder import Recorder

    units = (("rad",) * 3, ("rad/s",) * 3, ("N m",) * 3)
    labels = Labels(DOFS, DOFS, ("a",), DOFS, *units)
    model = ModelRecord("<robot/>", "urdf", "r", "r", "", ("a",), ("",), (1.0,))
    random = np.random.default_rng(0)
    values = [random.normal(size=(3, 3)) for _ in range(3)]
    given_controls = Controls(np.array([0, 5, 1234567]), *values)
    path = tmp_path / "run.h5"
    Recorder(path, labels=labels, dt=0.002, model=model, controls=given_controls, provenance={}, state={}).close()
    same = read_controls(path, DOFS, 0.002)
    for name in ("start_step", *VALUES):
        assert getattr(same, name).tobytes() == getattr(given_controls, name).tobytes()
    assert list(read_controls(path, DOFS, 0.001).start_step) == [0, 10, 2469134]
    with pytest.raises(UsageError, match="another robot; differing joints: finger_2, x"):
        read_controls(path, ("finger_1", "x", "root.vx"), 0.002)


def test_wrong_controls_are_refused() -> None:
    zeros = np.zeros((2, 3))
    for start in ([0, 0], [1, 0], [-1, 0], [[0, 1]]):
        with pytest.raises(UsageError, match="increasing"):
            Controls(np.array(start), zeros, zeros, zeros)
    with pytest.raises(UsageError, match=r"target has shape \(2, 2\)"):
        Controls(np.array([0, 1]), zeros, zeros[:, :2], zeros)
