"""Configurations from files: right whatever the layout, refused with name and place, in constant memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artsim
from artsim.io.inputs import csv_rows
from artsim.io.inputs.configurations import Source, open_input
from artsim.sim.articulation.model import Labels
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, ModelError, StorageError, UsageError
from artsim.sim.quantities.catalogue import INPUTS
from tests.conftest import ROOT

Array = np.ndarray[Any, Any]

COORDS = ("root.qw", "root.qx", "root.qy", "root.qz", "elbow")
DOFS = ("root.wx", "root.wy", "root.wz", "elbow")
LINKS = ("base", "tip")
LABELS = Labels(LINKS, COORDS, DOFS, DOFS, ("1",) * 5, ("rad/s",) * 4, ("N m",) * 4, {}, {})
NQ, NV = len(COORDS), len(DOFS)
SHAPES = {"qpos": (NQ,), "qvel": (NV,), "qacc": (NV,), "tau": (NV,), "wrench": (2, 6)}
RNG = np.random.default_rng(0)


def values(name: str, rows: int = 37) -> Array:
    return RNG.normal(size=(rows, *SHAPES[name]))


def opened(path: Path | str, *needed: str, labels: Labels = LABELS) -> Source:
    return open_input(str(path), labels, ("qpos", *needed), LINKS)


def rows_of(source: Source, pieces: int = 5) -> dict[str, Array]:
    """Everything, read in pieces into arrays with more room than needed."""
    chunk = max(1, -(-source.rows // pieces))
    out = {name: np.full((chunk + 3, *SHAPES[name]), 77.0) for name in source.inputs}
    parts: dict[str, list[Array]] = {name: [] for name in source.inputs}
    for start in range(0, source.rows, chunk):
        stop = min(start + chunk, source.rows)
        source.read(start, stop, out)
        for name, array in out.items():
            parts[name].append(array[: stop - start].copy())
            assert (array[chunk:] == 77).all()
    return {name: np.concatenate([np.empty((0, *SHAPES[name])), *part]) for name, part in parts.items()}


def content(path: Path | str, *needed: str) -> dict[str, Array]:
    source = opened(path, *needed)
    try:
        return rows_of(source)
    finally:
        source.close()


def same(got: dict[str, Array], **want: Array) -> None:
    assert list(got) == [name for name in INPUTS if name in want]
    for name, array in want.items():
        assert got[name].dtype == np.float64
        assert got[name].tobytes() == np.ascontiguousarray(array, np.float64).tobytes(), name


def npy(tmp_path: Path, array: Array, **options: Any) -> Path:
    np.save(path := tmp_path / "q.npy", array, **options)
    return path


def write(tmp_path: Path, text: str | bytes, name: str = "q.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(kind: type[ArtsimError], words: str, path: Path | str, *needed: str) -> None:
    with pytest.raises(kind) as caught:
        opened(path, *needed)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- .npy


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", ">f4", "f2", "g", "i4", "u1", ">i8", "u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_type_and_order(tmp_path: Path, dtype: str, order: Any) -> None:
    array = (100 * np.abs(values("qpos"))).astype(dtype, order=order)
    same(content(npy(tmp_path, array)), qpos=array.astype(np.float64))


def test_one_configuration(tmp_path: Path) -> None:
    row = values("qpos", 1)
    same(content(npy(tmp_path, row[0])), qpos=row)


def test_no_configuration(tmp_path: Path) -> None:
    same(content(npy(tmp_path, np.empty((0, NQ)))), qpos=np.empty((0, NQ)))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, NQ - 1)), "qpos has shape (3, 4), want (N, 5): rows of coordinates"),
        (np.zeros((3, NQ + NV)), "want (N, 5)"),
        (np.zeros((3, 2, NQ)), "qpos has shape (3, 2, 5), want (N, 5)"),
        (np.zeros(()), "qpos has shape (), want (N, 5)"),
        (np.zeros(4), "qpos has shape (4,)"),
        (np.zeros((3, NQ), complex), "qpos holds complex numbers, want real numbers"),
        (np.zeros((3, NQ), bool), "qpos holds booleans"),
        (np.full((3, NQ), "0"), "qpos holds texts"),
        (np.full((3, NQ), b"0"), "qpos holds texts"),
        (np.zeros((3, NQ), "M8[s]"), "qpos holds datetime64[s]"),
        (np.zeros((3, NQ), [("a", float)]), "qpos holds [('a', '<f8')]"),
    ],
)
def test_bad_npy(tmp_path: Path, array: Array, words: str) -> None:
    refused(ModelError, words, npy(tmp_path, array))


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    trap = np.array([[Trap(tmp_path / "trap")] * NQ], dtype=object)
    refused(ModelError, "qpos holds Python objects", npy(tmp_path, trap, allow_pickle=True))
    np.savez(tmp_path / "q.npz", qpos=trap, allow_pickle=True)
    refused(ModelError, "qpos holds Python objects", tmp_path / "q.npz")
    refused(ModelError, "is no .npy array", write(tmp_path, pickle.dumps(np.zeros((2, NQ))), "p.npy"))
    assert not (tmp_path / "trap").exists()
    np.load(tmp_path / "q.npy", allow_pickle=True)  # the trap works
    assert (tmp_path / "trap").exists()


def declared(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    """A .npy whose header says what it likes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (declared("(1000000000000, 5)"), "declares float64 (1000000000000, 5), 40000000000128 bytes, but holds 128"),
        (declared("(3, 5)", data=b"x" * 119), "declares float64 (3, 5), 248 bytes, but holds 247"),
        (declared("(-3, 5)"), "bad array header"),
        (declared("(3, 5"), "bad array header"),
        (declared("(" * 60), "bad array header"),
        (declared("(3, 5)", dtype="<f99"), "bad array header"),
        (b"\x93NUMPY\x07\x00", "is no .npy array"),
        (b"", "is empty"),
        (b"a,b\n", "is no .npy array"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xffx", "is no .npy array"),
    ],
)
def test_lying_headers(tmp_path: Path, data: bytes, words: str) -> None:
    refused(ModelError, words, write(tmp_path, data, "q.npy"))
    if data.startswith(b"\x93NUMPY"):
        with zipfile.ZipFile(tmp_path / "q.npz", "w") as archive:
            archive.writestr("qpos.npy", data)
        refused(ModelError, f"{tmp_path / 'q.npz'}: ", tmp_path / "q.npz")


def test_a_file_that_shrinks_under_the_reader(tmp_path: Path) -> None:
    path = npy(tmp_path, values("qpos"))
    source = opened(path)
    os.truncate(path, 200)
    with pytest.raises(ModelError, match="ends early"):
        rows_of(source)
    source.close()


# ---- .npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    arrays = {name: values(name) for name in INPUTS}
    arrays["qvel"] = np.asfortranarray(arrays["qvel"])
    arrays["wrench"] = np.asfortranarray(arrays["wrench"]).astype(">f4")
    save(tmp_path / "q.npz", **arrays, time=np.arange(3))
    same(content(tmp_path / "q.npz", "qvel", "qacc", "tau", "wrench"), **arrays)
    same(content(tmp_path / "q.npz", "qacc"), qpos=arrays["qpos"], qacc=arrays["qacc"], wrench=arrays["wrench"])


def test_a_single_array_of_any_name_is_qpos(tmp_path: Path) -> None:
    array = values("qpos")
    np.savez(tmp_path / "q.npz", array)
    same(content(tmp_path / "q.npz"), qpos=array)


def test_labels_in_npz_give_the_order(tmp_path: Path) -> None:
    q, v = values("qpos"), values("qvel")
    np.savez(tmp_path / "q.npz", qpos=q[:, ::-1], coord=np.array(COORDS[::-1]), qvel=v, dof=np.array(DOFS))
    same(content(tmp_path / "q.npz", "qvel"), qpos=q, qvel=v)
    np.savez(tmp_path / "q.npz", qpos=q, coord=np.array(["elbov" if name == "elbow" else name for name in COORDS]))
    refused(ModelError, "it has no coord 'elbow'; did you mean 'elbov'?", tmp_path / "q.npz")


def test_npz_with_members_of_other_tools(tmp_path: Path) -> None:
    """A local header may have an extra field of its own length, and the archive bytes in front."""
    array = values("qpos")
    stream = io.BytesIO()
    np.save(stream, array)
    with zipfile.ZipFile(tmp_path / "q.npz", "w") as archive:
        info = zipfile.ZipInfo("qpos.npy")
        info.extra = b"\xff\xff\x04\x00abcd"
        archive.writestr(info, stream.getvalue())
    data = (tmp_path / "q.npz").read_bytes()
    same(content(tmp_path / "q.npz"), qpos=array)
    same(content(write(tmp_path, b"#!/bin/sh\n" + data, "q.npz")), qpos=array)


def test_bad_npz(tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    np.savez(path, qpos=values("qpos", 3), qvel=values("qvel", 2))
    refused(ModelError, "qvel has 2 rows, qpos 3", path, "qvel")
    refused(UsageError, "has no qacc, which is needed; it holds qpos, qvel", path, "qacc")
    np.savez(path, a=values("qpos"), b=values("qpos"))
    refused(UsageError, "has no qpos, which is needed; it holds a, b", path)
    np.savez(path, qvel=values("qvel"))
    refused(UsageError, "has no qpos, which is needed; it holds qvel", path)
    np.savez(path, qpos=values("qpos"), wrench=np.zeros((37, 12)))
    refused(ModelError, "wrench has shape (37, 12), want (N, 2, 6): rows of link entries and wrench entries", path)
    np.savez(path)
    refused(UsageError, "it holds nothing", path)
    refused(ModelError, "is no readable .npz archive", write(tmp_path, "x", "q.npz"))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as archive:
        archive.writestr("qpos.npy", b"")
        archive.writestr("qpos.npy", b"")
    refused(ModelError, "holds 'qpos' twice", path)


def test_zip_bombs(tmp_path: Path) -> None:
    """What is declared is compared with what can be there before anything is unpacked."""
    path = tmp_path / "q.npz"
    data = declared(f"({10**7}, 5)", data=bytes(1000))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("qpos.npy", data)
    refused(ModelError, f"qpos declares float64 ({10**7}, 5), but holds 1128 bytes", path)
    # the central directory agrees with the lie
    size = (10**7 * 40 + 128).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(len(data).to_bytes(4, "little"), size))
    refused(ModelError, "cannot hold", path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("qpos.npy", declared("(3, 5)", data=bytes(120)))
    refused(ModelError, "packed in a way that numpy does not write", path)


def test_no_room_to_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "q.npz", qpos=values("qpos"))
    monkeypatch.setattr(os, "fstatvfs", lambda _: os.statvfs_result((0,) * 10))
    refused(StorageError, "unpacks to 1608 bytes; 0 are free", tmp_path / "q.npz")


# ---- HDF5


def test_datasets_at_the_root_and_in_a_group(tmp_path: Path) -> None:
    arrays = {name: values(name) for name in INPUTS}
    path = tmp_path / "q.h5"
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
            file[f"mine/{name}"] = (10 * array).astype(">i2" if name == "qpos" else "f4")
        file.create_dataset("mine/packed", data=arrays["qpos"], chunks=(7, 2), compression="gzip")
        file["mine/one"] = arrays["qpos"][3]
    needed = ("qvel", "qacc", "tau", "wrench")
    same(content(path, *needed), **arrays)
    mine = {name: (10 * array).astype(">i2" if name == "qpos" else "f4") for name, array in arrays.items()}
    for place in (":/mine", ":mine/", ":/mine/"):
        same(content(f"{path}{place}", *needed), **mine)
    same(content(f"{path}:/mine/qpos"), qpos=mine["qpos"])
    same(content(f"{path}:mine/packed"), qpos=arrays["qpos"])
    same(content(f"{path}:mine/one"), qpos=arrays["qpos"][3:4])


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("configurations") / "run.h5"
    artsim.simulate(ROOT / "robots" / "arm7.urdf", steps=20, output=path).close()
    return path


def test_a_run(run_file: Path, tmp_path: Path) -> None:
    labels = artsim.load(ROOT / "robots" / "arm7.urdf").labels
    for place in ("", ":/trajectory"):
        source = open_input(f"{run_file}{place}", labels, ("qpos", "qvel", "qacc"), ())
        out = {name: np.empty((20, 7)) for name in source.inputs}
        source.read(0, 20, out)
        with h5py.File(run_file) as file:
            assert source.rows == 20
            for name, array in out.items():
                assert array.tobytes() == file["trajectory"][name][:20].tobytes()
        source.close()
    refused(ModelError, "qpos has shape (20, 7), want (N, 5)", run_file)
    copy = tmp_path / "broken_off.h5"
    shutil.copy(run_file, copy)
    with h5py.File(copy, "r+") as file:
        file["trajectory/n_valid"][()] = 12
    for place in ("", ":/trajectory/qpos"):
        source = open_input(f"{copy}{place}", labels, ("qpos",), ())
        assert source.rows == 12
        source.close()
    with h5py.File(copy, "r+") as file:
        file["trajectory/n_valid"][()] = 10**6
    with pytest.raises(ModelError, match="rows, n_valid is 1000000"):
        open_input(str(copy), labels, ("qpos",), ())


def test_names_in_a_file_give_the_order(tmp_path: Path) -> None:
    path, shuffled = tmp_path / "batch.h5", [3, 0, 4, 1, 2]
    q, f = values("qpos"), values("wrench")
    with h5py.File(path, "w") as file:
        group = file.create_group("batch")
        group["qpos"], group["coord"] = q[:, shuffled], [COORDS[k] for k in shuffled]
        group["wrench"], group["link"] = f[:, ::-1], LINKS[::-1]
        group["n_valid"] = np.array([1])  # no scalar: means nothing
    source = opened(path, "wrench")
    same(rows_of(source), qpos=q, wrench=f)
    assert source.identity["order"] == {"qpos": [1, 3, 4, 0, 2], "wrench": [1, 0]}
    source.close()
    with h5py.File(path, "r+") as file:
        del file["batch/coord"]
        file["batch/coord"] = [*COORDS[:4], "elbo"]
    refused(ModelError, "qpos is of another robot: it has no coord 'elbow'; did you mean 'elbo'?", path)
    with h5py.File(path, "r+") as file:
        del file["batch/coord"]
        file["batch/coord"] = [*COORDS, "wrist"]
    refused(ModelError, "it has 6 names of coord entries, want 5", path)


def test_bad_h5(tmp_path: Path) -> None:
    path = tmp_path / "q.h5"
    with h5py.File(path, "w") as file:
        file["qpos"] = values("qpos").astype(bool)
        file["text"] = ["a"] * NQ
        file["group/x"] = 1.0
        file["flat"] = np.zeros(3)
        file["null"] = h5py.Empty("f8")
    refused(ModelError, "qpos holds booleans", path)
    refused(ModelError, "qpos holds texts", f"{path}:text")
    refused(ModelError, "qpos has shape (3,)", f"{path}:flat")
    refused(ModelError, "qpos has shape ()", f"{path}:null")
    refused(UsageError, "has no qpos, which is needed; it holds x", f"{path}:group")
    refused(UsageError, "has no '/grop/y': / has no 'grop'; did you mean 'group'?", f"{path}:/grop/y")
    refused(UsageError, "has no 'text/y': /text is a dataset", f"{path}:text/y")
    refused(ModelError, "is not an HDF5 file; it looks like a text file", write(tmp_path, "hello", "t.h5"))
    secret = write(tmp_path, b"secret" * 100, "secret.bin")
    with h5py.File(path, "w") as file:
        file.create_dataset("qpos", shape=(2, NQ), dtype="f8", external=[(str(secret), 0, 80)])
    refused(ModelError, "refused: /qpos has its data in another file", path)


# ---- CSV


def test_csv_with_names(tmp_path: Path) -> None:
    arrays = {name: values(name) for name in ("qpos", "qvel", "qacc", "tau")}
    force = values("wrench")
    force[:, 0], force[:, 1, [1, 2, 3, 4]] = 0, 0
    columns = {entry: arrays["qpos"][:, k] for k, entry in enumerate(COORDS)}
    for name in ("qvel", "qacc", "tau"):
        columns |= {f"{name}.{entry}": arrays[name][:, k] for k, entry in enumerate(DOFS)}
    columns |= {"wrench.tip.fx": force[:, 1, 0], "wrench.tip.tz": force[:, 1, 5]}
    columns["qpos.elbow"] = columns.pop("elbow")
    order = RNG.permutation(list(columns))
    lines = [",".join(order), *(",".join(repr(float(columns[c][row])) for c in order) for row in range(37))]
    for text in ("\n".join(lines), "\ufeff" + "\r\n".join(lines) + "\r\n\r\n", "\n\n# " + "\n \n".join(lines)):
        source = opened(write(tmp_path, text), "qvel", "qacc", "tau", "wrench")
        same(rows_of(source), **arrays, wrench=force)
        assert source.identity["columns"] == list(order)
        source.close()
    same(content(tmp_path / "q.csv", "qacc"), qpos=arrays["qpos"], qacc=arrays["qacc"], wrench=force)


def test_csv_in_order(tmp_path: Path) -> None:
    q, v = values("qpos"), values("qvel")
    np.savetxt(tmp_path / "q.csv", q, delimiter=",", fmt="%.17g")
    same(content(tmp_path / "q.csv"), qpos=q)
    np.savetxt(tmp_path / "q.csv", np.hstack((q, v)), delimiter=",", fmt="%.17g")
    same(content(tmp_path / "q.csv", "qvel"), qpos=q, qvel=v)
    same(content(tmp_path / "q.csv"), qpos=q)


def test_csv_cells(tmp_path: Path) -> None:
    """Not-numbers are values, quotes and blanks are nothing, every digit counts."""
    text = 'nan,inf,-inf,"1.5", 2 \n' + "1e400,0.1000000000000000055511151231257827,5e-324,-0.0,123456789012345678\n"
    want = np.array([[np.nan, np.inf, -np.inf, 1.5, 2], [np.inf, 0.1, 5e-324, -0.0, 123456789012345678]])
    same(content(write(tmp_path, text)), qpos=want)
    same(content(write(tmp_path, text.replace('"', ""))), qpos=want)  # numpy's reader


def test_csv_without_rows(tmp_path: Path) -> None:
    assert opened(write(tmp_path, ",".join(COORDS))).rows == 0
    assert content(write(tmp_path, ",".join(COORDS) + "\n\n"))["qpos"].shape == (0, NQ)
    for empty in ("", "\n \n"):
        refused(ModelError, "q.csv: is empty", write(tmp_path, empty))


def test_joints_that_are_called_by_numbers(tmp_path: Path) -> None:
    labels = Labels(LINKS, ("2", "1"), ("2", "1"), ("2", "1"), ("rad",) * 2, ("rad/s",) * 2, ("N m",) * 2, {}, {})
    source = opened(write(tmp_path, "1,2\n10,20\n"), labels=labels)
    out = {"qpos": np.empty((1, 2))}
    source.read(0, 1, out)
    assert (source.rows, out["qpos"].tolist()) == (1, [[20, 10]])


HEADER = ",".join(COORDS)
BAD_CSV = [
    (f"{HEADER}\n1,2,3,4,5\n1,2,x,4,5\n", ":3: column 'root.qy': 'x' is not a number"),
    (f"{HEADER}\n1,2,,4,5\n", ":2: column 'root.qy': '' is not a number"),
    (f"{HEADER}\n1,2,3,4,1_0\n", ":2: column 'elbow': '1_0' is not a number"),
    (f"{HEADER}\n1,2,3,4,0x10\n", ":2: column 'elbow': '0x10' is not a number"),
    (f"{HEADER}\n1,2,3,4,5\n\n1,2,3,4\n", ":4: 4 values, want 5"),
    (f"{HEADER}\n1,2,3,4,5,\n", ":2: 6 values, want 5"),
    (f"{HEADER},\n", ":1: column '' is not known"),
    (f"\n{HEADER},elbov\n", ":2: column 'elbov' is not known; did you mean 'elbow'?"),
    (f"{HEADER},qvel.elbov\n", ":1: column 'qvel.elbov' is not known; did you mean 'qvel.elbow'?"),
    (f"{HEADER},wrench.tips.fx\n", ":1: column 'wrench.tips.fx' is not known; did you mean 'wrench.tip.fx'?"),
    (f"{HEADER},elbow\n", ":1: column 'elbow' stands there twice"),
    (f"{HEADER},qpos.elbow\n", ":1: column 'qpos.elbow' stands there twice"),
    ("root.qw,root.qx,root.qy,root.qz\n", ":1: no column 'elbow'"),
    (f"{HEADER},qvel.elbow\n", ":1: no column 'qvel.root.wx'"),
    (HEADER.replace(",", ";"), "; separate columns by commas"),
    ("1 2 3 4 5\n", "; separate columns by commas"),
    ("1,2,3,4\n", ":1: 4 columns, want 5 (qpos), 9 (qpos, qvel) or a first line that names them"),
    ("1,2,3,4,5\n1,2,3,4,5,6\n", ":2: 6 values, want 5"),
    ("1,2,3,x,5\n", ":1: column 'root.qz': 'x' is not a number"),
    ("1,2,3,4,5,6,7,8,9\n1,2,3,4,5,6,7,8,?\n", ":2: column 'qvel.elbow': '?' is not a number"),
    (b"1,2,3,4,5\n1,2,3,4,\xff\n", ":2: is not UTF-8 text"),
    (b"\xff\xfe1\x00,\x002\x00", ":1: is not UTF-8 text"),
    (f"1,2,3,4,{'9' * 200_000}x\n", ":1: field larger than field limit"),
    ("1,2,3,4,5\r6,7,8,9,0\n", ":1: "),
]


@pytest.mark.parametrize(("text", "words"), BAD_CSV)
def test_bad_csv(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = write(tmp_path, text)
    refused(ModelError, f"{path}{words}" if words.startswith(":") else words, path)


def test_csv_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that blocks cut, and errors that name the right line."""
    q = values("qpos", 500)
    lines = [HEADER, *(",".join(map(repr, row)) for row in q.tolist())]
    for size in (1, 64, 1000, 1 << 20):
        monkeypatch.setattr(csv_rows, "_BLOCK", size)
        same(content(write(tmp_path, "\n".join(lines))), qpos=q)
        refused(
            ModelError, "q.csv:402: column 'elbow': 'x'", write(tmp_path, "\n".join([*lines[:401], "1,2,3,4,x", ""]))
        )
    monkeypatch.setattr(csv_rows, "_MAX_LINE", 1000)
    refused(ModelError, "q.csv:2: more than 1000 bytes without a line end", write(tmp_path, f"{HEADER}\n{'1' * 2000}"))


def test_no_room_for_the_rows(tmp_path: Path) -> None:
    """A child that may write files of 64 KiB."""
    np.savetxt(tmp_path / "q.csv", np.zeros((4000, NQ)), delimiter=",", fmt="%d")
    done = child(tmp_path / "q.csv", before="resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))")
    assert "StorageError" in done["error"]
    assert "File too large" in done["error"]


# ---- standard input


def from_stdin(data: bytes, monkeypatch: pytest.MonkeyPatch, *needed: str) -> dict[str, Array]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return content("-", *needed)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    q, v = values("qpos"), values("qvel")
    same(from_stdin(npy(tmp_path, q).read_bytes(), monkeypatch), qpos=q)
    np.savez_compressed(tmp_path / "q.npz", qpos=q, qvel=v)
    same(from_stdin((tmp_path / "q.npz").read_bytes(), monkeypatch, "qvel"), qpos=q, qvel=v)
    np.savetxt(tmp_path / "q.csv", q, delimiter=",", fmt="%.17g", header=HEADER)
    same(from_stdin((tmp_path / "q.csv").read_bytes(), monkeypatch), qpos=q)
    with pytest.raises(ModelError, match=r"^<stdin>:1: column 'root.qz'"):
        from_stdin(b"1,2,3,a,5", monkeypatch)
    with pytest.raises(UsageError, match="HDF5 is no stream"):
        from_stdin(b"\x89HDF\r\n\x1a\n", monkeypatch)
    monkeypatch.setattr(sys, "stdin", None)
    refused(MissingInputError, "<stdin>: cannot be read", "-")


def test_a_pipe_by_name(tmp_path: Path) -> None:
    """--input <(zcat q.npy.gz)"""
    q = values("qpos")
    read, write_end = os.pipe()
    os.write(write_end, npy(tmp_path, q).read_bytes())
    os.close(write_end)
    same(content(f"/dev/fd/{read}"), qpos=q)
    os.close(read)


# ---- files as a whole


def test_what_is_no_file(tmp_path: Path) -> None:
    refused(MissingInputError, "nowhere.npy: no such file", tmp_path / "nowhere.npy")
    refused(MissingInputError, "nowhere.h5: no such file", f"{tmp_path}/nowhere.h5:/qpos")
    (tmp_path / "folder.npy").mkdir()
    refused(MissingInputError, "is a folder", tmp_path / "folder.npy")
    os.mkfifo(tmp_path / "pipe.csv")
    refused(MissingInputError, "is a device or pipe", tmp_path / "pipe.csv")
    refused(MissingInputError, "cannot read", "nul\0.npy")
    refused(UsageError, "configurations are in .npy, .npz, .h5, .hdf5, .csv or -", write(tmp_path, "", "q.txt"))
    refused(UsageError, "cannot tell what it is", "")


def test_identity_is_the_content(tmp_path: Path, run_file: Path) -> None:
    path = npy(tmp_path, values("qpos"))
    first, other = opened(path), opened(shutil.copy(path, tmp_path / "other.npy"))
    want = {"kind": "npy", "rows": 37, "inputs": ["qpos"], "order": {}}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads(json.dumps(first.identity)) == other.identity == {**want, "sha256": digest}
    first.close()
    other.close()
    labels = artsim.load(ROOT / "robots" / "arm7.urdf").labels
    run = open_input(str(run_file), labels, ("qpos",), ())
    assert run.identity["dataset"] == "/trajectory"
    assert run.identity["sha256"] == hashlib.sha256(run_file.read_bytes()).hexdigest()
    run.close()


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_nothing_stays_open(tmp_path: Path, run_file: Path) -> None:
    """Neither after closing nor after a refusal."""
    np.savez_compressed(tmp_path / "q.npz", qpos=values("qpos"))
    paths = [npy(tmp_path, values("qpos")), tmp_path / "q.npz", write(tmp_path, "1,2,3,4,5\n")]
    bad = [npy(tmp_path / "..", np.zeros(3)), run_file, write(tmp_path, "1,2,3,4,x\n", "bad.csv")]
    before = open_files()
    for path in paths:
        content(path)
    for path in bad:
        with pytest.raises(ArtsimError):
            opened(path)
    after = open_files()
    assert after == before


CHILD = """
import json, resource, sys
import numpy as np
from artsim.io.inputs.configurations import open_input
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.articulation.model import Labels
{before}
labels = Labels(*{labels!r}, {{}}, {{}})
told = {{"error": "", "rows": 0}}
try:
    source = open_input(sys.argv[1], labels, ("qpos",), ())
    out = {{"qpos": np.zeros((20000, 5))}}
    for start in range(0, source.rows, 20000):
        source.read(start, min(start + 20000, source.rows), out)
    told["rows"] = source.rows
except ArtsimError as error:
    told["error"] = repr(error)
told["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(told))
"""


def child(path: Path, before: str = "") -> dict[str, Any]:
    """Reads a file in a process of its own."""
    labels = (LINKS, COORDS, DOFS, DOFS, ("1",) * 5, ("rad/s",) * 4, ("N m",) * 4)
    code = CHILD.format(before=before, labels=labels)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def sparse(path: Path, rows: int, fortran: bool) -> Path:
    """A .npy of zeros that takes no room on the disk."""
    header = f"{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': ({rows}, {NQ})}}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    os.truncate(path, 128 + rows * NQ * 8)
    return path


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="no rusage")
@pytest.mark.parametrize("kind", ["C", "F", "npz", "h5", "csv"])
def test_memory_does_not_depend_on_the_rows(tmp_path: Path, kind: str) -> None:
    """100 times the rows, at most 12 MB more."""
    peaks = []
    for rows in (2_000, 200_000) if kind == "csv" else (20_000, 2_000_000):
        path = sparse(tmp_path / f"{rows}.npy", rows, kind == "F")
        if kind == "npz":
            with zipfile.ZipFile(tmp_path / f"{rows}.npz", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(path, "qpos.npy")
            path = tmp_path / f"{rows}.npz"
        elif kind == "h5":
            path = tmp_path / f"{rows}.h5"
            with h5py.File(path, "w") as file:
                file["qpos"] = np.zeros((rows, NQ))
        elif kind == "csv":
            path = write(tmp_path, "0.1,0.2,0.3,0.4,0.5\n" * rows, f"{rows}.csv")
        done = child(path)
        assert (done["rows"], done["error"]) == (rows, "")
        peaks.append(done["peak"])
    assert peaks[1] - peaks[0] < 12_000  # KiB; 2 000 000 rows are 78 000, the CSV's 200 000 7 800 and 4 000 of text


# ---- whatever is thrown at it

CSV = (HEADER + "\n" + "1.25,2,3,4,5\n" * 20).encode()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("sound")
    np.save(folder / "q.npy", values("qpos", 20))
    np.savez_compressed(folder / "q.npz", qpos=values("qpos", 20), coord=np.array(COORDS))
    np.savez(folder / "stored.npz", qpos=values("qpos", 20))
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {"q.csv": CSV}


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_files_never_end_in_a_traceback(
    data: st.DataObject, sound: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(sorted(sound)))
    content_ = bytearray(sound[name])
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(content_) - 1))
        content_[where] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content_[data.draw(st.integers(0, len(content_))) :]
    path = write(tmp_path_factory.getbasetemp(), bytes(content_), f"damaged_{name}")
    try:
        got = content(path)
    except ArtsimError as error:
        assert str(error).startswith(str(path)), error
    else:
        assert got["qpos"].shape[1] == NQ
