"""Batches: what is computed is right, the same bytes however it is cut, and in the file as the table says."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import artsim
from artsim.io.batches import batch as batch_module
from artsim.io.batches.batch import Job, compute_rows, prepare
from artsim.io.batches.configuration import BatchConfig
from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, Labels, labels_of
from artsim.io.gate.gate import open_checked
from artsim.io.output_file import batch_file
from artsim.io.output_file.claim import claim
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.recording import open_recording
from artsim.io.shards.job import Outcome
from artsim.loaders.load import load_articulation
from artsim.sim.foundation import memory
from artsim.sim.foundation.errors import (
    BusyError,
    MemoryShortageError,
    ModelError,
    OutputError,
    StorageError,
    UsageError,
)
from artsim.sim.quantities.catalogue import INPUTS, OF_CONSTRAINTS, QUANTITIES, dims_of
from tests.conftest import ROOT
from tests.naive import Twin
from tests.tree_quantities import TREE_QUANTITIES

Array = np.ndarray[Any, np.dtype[Any]]
ARM = ROOT / "robots" / "arm7.urdf"
GRIPPER = ROOT / "robots" / "two_finger_gripper.urdf"  # revolute joints, 5 of 6 follow
MIXED = ROOT / "robots" / "parallel_gripper.urdf"  # prismatic joints
EVERYTHING = tuple(TREE_QUANTITIES)


def job(model: Path = ARM, *quantities: str, load: Mapping[str, Any] | None = None, **options: Any) -> Job:
    """A job of samples (300, with everything drawn that is needed) or of an input."""
    if "input" not in options:
        drawn = {"samples": 300, "seed": 3, "velocity": 1.0, "acceleration": 2.0, "torque": 3.0, "wrench": 4.0}
        options = {**drawn, **options}
    config = BatchConfig(model=str(model), load=load or {}, quantities=quantities or ("gravity",), **options)
    return prepare(load_articulation(model, **(load or {})), config)


def written(path: Path, given: Job, **options: Any) -> Outcome:
    """All rows of a job, computed into a file."""
    return compute_rows(given, 0, given.rows, path, **options)


def contents(path: Path) -> dict[str, Array]:
    """Every variable of a file, read with plain h5py or numpy."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in schema.BATCHED if name in archive}
    with h5py.File(path) as file:
        return {name: file["batch"][name][()] for name in schema.BATCHED if name in file["batch"]}


def same_bytes(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and a[k].tobytes() == b[k].tobytes() for k in a)


# --- the table -------------------------------------------------------------------------------------------------------


def test_the_table_and_the_quantities_agree() -> None:
    assert (*INPUTS, *QUANTITIES, "status") == schema.BATCHED
    for name, quantity in QUANTITIES.items():
        assert schema.TABLE[f"batch/{name}"].dims == ("sample", *quantity.dims)
        for reduced in (False, True):
            for packed in (False, True):
                dims = dims_of(name, reduced=reduced, packed=packed)
                variable = schema.batch_variable(name, dims)
                assert variable.dims == ("sample", *dims)
                independent = any(dim.startswith("independent") for dim in dims) and name != "coupling_matrix"
                plain = variable.unit.replace("independent_", "")
                assert plain == schema.TABLE[f"batch/{name}"].unit.replace("independent_", "")
                assert ("independent_dof_units" in variable.unit or "independent_force_units" in variable.unit) == (
                    (independent and "dof_units" in plain) or (independent and "force_units" in plain)
                ) or name == "coupling_matrix"
    for name, dims in INPUTS.items():
        told = tuple(dim.removesuffix("_entry") for dim in schema.TABLE[f"batch/{name}"].dims)
        assert told == ("sample", *dims)


def test_labels_of_pairs_are_the_lower_triangle_by_rows() -> None:
    names = ("a", "b", "c")
    labels = Labels((), names, (), names[:2], (), ("rad/s",) * 3, ("N m",) * 3)
    assert labels_of("dof_pair", labels) == ("a,a", "b,a", "b,b", "c,a", "c,b", "c,c")
    assert labels_of("independent_pair", labels) == ("a,a", "b,a", "b,b")
    assert labels_of("independent_dof2", labels) == names[:2]


@pytest.fixture(scope="module", params=["full", "reduced", "packed", "reduced, packed", "floating"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file with every quantity of a robot with followers, which are all eliminated when reduced."""
    path = tmp_path_factory.mktemp("batch") / "out.h5"
    how = str(request.param)
    load = {"base": "floating"} if how == "floating" else {}
    names = EVERYTHING if "reduced" in how else tuple(QUANTITIES)
    with job(GRIPPER, *names, load=load, reduced="reduced" in how, packed="packed" in how) as given:
        assert written(path, given).failed == 0
    yield path


def test_the_file_holds_what_the_table_says(file: Path) -> None:
    found = set()
    with h5py.File(file) as h5, artsim.open(file) as batch:
        assert isinstance(batch, BatchRecording)
        assert set(h5) == {"batch", "model", "provenance"}
        for name, dataset in h5["batch"].items():
            if name == "sample" or (name in DIMENSIONS and name not in batch.variables and name != "wrench"):
                assert dataset.attrs["CLASS"] == b"DIMENSION_SCALE"
                continue
            found.add(name)
            assert dataset.attrs["units"] and dataset.attrs["long_name"]
            assert "{" not in dataset.attrs["units"]
            dims = tuple(Path(dataset.dims[i][0].name).name for i in range(dataset.ndim) if len(dataset.dims[i]))
            if name in schema.BATCHED:
                assert dims == batch.variable(name).dims
                assert dataset.chunks is None and dataset.id.get_offset() is not None
                assert dataset.attrs["long_name"] == schema.TABLE[f"batch/{name}"].meaning
        assert h5.attrs["Conventions"] == schema.CONVENTIONS
        assert h5["model/source"][()].decode() == GRIPPER.read_text()
        assert h5["provenance"].attrs["seed"] == 3
    table = {path.removeprefix("batch/") for path in schema.TABLE if path.startswith("batch/")}
    assert found == table - (OF_CONSTRAINTS if batch.reduced else set())


def test_xarray_opens_every_group_labelled(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for group in ("batch", "model", "provenance"):
            with xarray.open_dataset(file, group=group, engine="h5netcdf") as data:
                data.load()
        with xarray.open_dataset(file, group="batch", engine="h5netcdf") as data, artsim.open(file) as batch:
            assert isinstance(batch, BatchRecording)
            assert set(data.data_vars) == set(batch.variables)
            assert "sample" not in data.coords
            for name in batch.variables:
                assert data[name].dims == batch.variable(name).dims
                assert data[name].values.tobytes() == batch[name].tobytes()
                for dim in data[name].dims[1:]:
                    assert tuple(data[name][dim].values) == batch.names_of(str(dim))
            again = batch.to_xarray()
            for name in batch.variables:
                xarray.testing.assert_equal(again[name].reset_coords(drop=True), data[name].reset_coords(drop=True))


def test_units_are_of_the_dimension_at_hand(tmp_path: Path) -> None:
    with job(MIXED, "gravity", "mass_matrix", "inverse_mass_matrix", reduced=True) as given:
        written(tmp_path / "out.h5", given)
    with artsim.open(tmp_path / "out.h5") as batch:
        assert batch.meaning("gravity")["units"] == "N"
        assert batch.meaning("mass_matrix")["units"] == "kg"
    with job(ARM, "mass_matrix", "inverse_mass_matrix", "forward_dynamics", "jacobian_dot", "com") as given:
        written(tmp_path / "arm.h5", given)
    with artsim.open(tmp_path / "arm.h5") as batch:
        told = {name: batch.meaning(name)["units"] for name in batch.variables}
    assert told["mass_matrix"] == "kg m^2" and told["inverse_mass_matrix"] == "1/(kg m^2)"
    assert told["forward_dynamics"] == "rad/s^2" and told["com"] == "m"
    assert told["jacobian_dot"] == "see twist_units, per s and dof_units"


# --- right -----------------------------------------------------------------------------------------------------------


def test_rows_are_what_the_twin_says(tmp_path: Path) -> None:
    with job(ARM, "gravity", "mass_matrix", "com", "kinetic_energy", samples=20) as given:
        written(tmp_path / "out.h5", given, chunk=8)
    rows = contents(tmp_path / "out.h5")
    twin = Twin(load_articulation(ARM))
    for k in range(20):
        q, v = rows["qpos"][k], rows["qvel"][k]
        np.testing.assert_allclose(rows["gravity"][k], twin.gravity_force(q), rtol=0, atol=1e-11)
        np.testing.assert_allclose(rows["mass_matrix"][k], twin.mass_matrix(q), rtol=0, atol=1e-11)
        np.testing.assert_allclose(rows["com"][k], twin.com(q), rtol=0, atol=1e-12)
        np.testing.assert_allclose(rows["kinetic_energy"][k], twin.kinetic_energy(q, v), rtol=1e-11)


@pytest.mark.parametrize("reduced", [False, True])
def test_rows_are_those_of_compute(reduced: bool, tmp_path: Path) -> None:
    with job(GRIPPER, *EVERYTHING, reduced=reduced, at="origin") as given:
        written(tmp_path / "out.h5", given)
        rows = contents(tmp_path / "out.h5")
        inputs = {name: rows[name] for name in INPUTS}
        out = given.robot.compute(**inputs, quantities=EVERYTHING, reduced=reduced, at="origin")
    for name in EVERYTHING:
        assert rows[name].tobytes() == out[name].tobytes(), name


def test_links(tmp_path: Path) -> None:
    with job(ARM, "jacobian", "link_position", links=("tool0", "link_3")) as given:
        written(tmp_path / "out.h5", given)
        qpos = contents(tmp_path / "out.h5")["qpos"]
        everything = given.robot.compute(qpos, quantities=["jacobian", "link_position"])
        index = [given.robot.links.index(name) for name in ("tool0", "link_3")]
    with artsim.open(tmp_path / "out.h5") as batch:
        assert batch.labels.link == ("tool0", "link_3")
        assert batch["jacobian"].tobytes() == everything["jacobian"][:, index].tobytes()
        assert batch["link_position"].tobytes() == everything["link_position"][:, index].tobytes()


@pytest.mark.parametrize("reduced", [False, True])
def test_packed_is_the_lower_triangle(reduced: bool, tmp_path: Path) -> None:
    model = ROOT / "robots" / "quadruped.urdf"
    names = ("mass_matrix", "inverse_mass_matrix", "gravity")
    for packed in (False, True):
        with job(model, *names, packed=packed, reduced=reduced, load={"base": "floating"}) as given:
            written(tmp_path / f"{packed}.h5", given)
    whole, triangle = contents(tmp_path / "False.h5"), contents(tmp_path / "True.h5")
    n = whole["gravity"].shape[1]
    i, k = np.tril_indices(n)
    for name in names[:2]:
        assert triangle[name].tobytes() == np.ascontiguousarray(whole[name][:, i, k]).tobytes()
    with artsim.open(tmp_path / "True.h5") as batch:
        dofs = batch.labels.independent_dof if reduced else batch.labels.dof
        dim = batch.variable("mass_matrix").dims[1]
        assert batch.names_of(dim) == tuple(f"{dofs[a]},{dofs[b]}" for a, b in zip(i, k, strict=True))


def test_float32_rounds_results_and_no_input(tmp_path: Path) -> None:
    for float32 in (False, True):
        with job(ARM, "gravity", "jacobian", "kinetic_energy", float32=float32) as given:
            written(tmp_path / f"{float32}.h5", given, threads=2, chunk=40)
    exact, short = contents(tmp_path / "False.h5"), contents(tmp_path / "True.h5")
    assert {name: values.dtype.str for name, values in short.items()} == {
        **dict.fromkeys(("qpos", "qvel"), "<f8"),
        **dict.fromkeys(("gravity", "jacobian", "kinetic_energy"), "<f4"),
        "status": "|i1",
    }
    for name in exact:
        assert short[name].tobytes() == exact[name].astype(short[name].dtype).tobytes()


# --- the same bytes --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """2500 rows in one block by one thread."""
    path = tmp_path_factory.mktemp("reference") / "out.h5"
    with job(GRIPPER, "gravity", "mass_matrix", "jacobian", "kinetic_energy", samples=2500) as given:
        written(path, given, chunk=2500)
    return contents(path)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunk", [None, 1, 7, 8, 1000])
@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_threads_and_chunks_do_not_matter(
    threads: int, chunk: int | None, suffix: str, reference: dict[str, Array], tmp_path: Path
) -> None:
    path = tmp_path / f"out{suffix}"
    with job(GRIPPER, "gravity", "mass_matrix", "jacobian", "kinetic_energy", samples=2500) as given:
        outcome = written(path, given, threads=threads, chunk=chunk)
    assert (outcome.rows, outcome.failed, outcome.complete) == (2500, 0, True)
    assert outcome.bytes == path.stat().st_size
    assert same_bytes(contents(path), reference)


@pytest.mark.parametrize("cuts", [(0, 1, 2500), (0, 1250, 2500), (0, 3, 803, 1604, 2499, 2500, 2500)])
def test_pieces_are_the_rows_of_the_whole(cuts: tuple[int, ...], reference: dict[str, Array], tmp_path: Path) -> None:
    pieces = []
    with job(GRIPPER, "gravity", "mass_matrix", "jacobian", "kinetic_energy", samples=2500) as given:
        for first, last in pairwise(cuts):
            path = tmp_path / f"{len(pieces)}.h5"
            compute_rows(given, first, last, path, threads=2, chunk=100)
            pieces.append(contents(path))
            with artsim.open(path) as batch:
                assert isinstance(batch, BatchRecording)
                assert (batch.first_row, batch.rows, batch.rows_of_job) == (first, last - first, 2500)
    assert same_bytes({name: np.concatenate([piece[name] for piece in pieces]) for name in reference}, reference)


def test_a_file_of_configurations_gives_the_same_rows(reference: dict[str, Array], tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", qpos=reference["qpos"], qvel=reference["qvel"])
    names = ("gravity", "mass_matrix", "jacobian", "kinetic_energy")
    with job(GRIPPER, *names, input=str(tmp_path / "in.npz")) as given:
        written(tmp_path / "out.h5", given, threads=2, chunk=64)
    assert same_bytes(contents(tmp_path / "out.h5"), reference)


# --- rows that fail --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 8, 13])
def test_107_bad_rows_are_flagged_and_the_others_right(chunk: int | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    good = rng.uniform(-1, 1, (100, 7))
    bad = good.copy()
    bad[3, 2], bad[50], bad[51, 6], bad[99, 0] = np.nan, np.inf, -np.inf, 1e300
    for name, values in (("good", good), ("bad", bad)):
        np.save(tmp_path / f"{name}.npy", values)
        with job(ARM, "gravity", "mass_matrix", input=str(tmp_path / f"{name}.npy")) as given:
            outcome = written(tmp_path / f"{name}.h5", given, chunk=chunk, threads=2)
    assert (outcome.failed, outcome.failed_rows, outcome.complete) == (4, (3, 50, 51, 99), True)
    whole, holed = contents(tmp_path / "good.h5"), contents(tmp_path / "bad.h5")
    failed = holed["status"] != 0
    assert np.flatnonzero(failed).tolist() == [3, 50, 51, 99]
    for name in ("gravity", "mass_matrix"):
        assert np.isnan(holed[name][failed]).all()
        assert holed[name][~failed].tobytes() == whole[name][~failed].tobytes()
    assert holed["qpos"].tobytes() == bad.tobytes()
    with artsim.open(tmp_path / "bad.h5") as batch:
        assert isinstance(batch, BatchRecording)
        assert batch.failed == 4


def test_the_first_failed_rows_are_told_of_many(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.full((1000, 7), np.nan))
    with job(ARM, "gravity", input=str(tmp_path / "in.npy")) as given:
        outcome = compute_rows(given, 10, 1000, tmp_path / "out.h5", threads=3, chunk=16)
    assert outcome.failed == 990
    assert outcome.failed_rows == (10, 11, 12, 13, 14)


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_109_no_rows(suffix: str, tmp_path: Path) -> None:
    with job(ARM, "gravity", "mass_matrix", "kinetic_energy", samples=0) as given:
        outcome = written(tmp_path / f"out{suffix}", given, threads=2)
    assert (outcome.rows, outcome.failed, outcome.complete) == (0, 0, True)
    rows = contents(tmp_path / f"out{suffix}")
    assert {name: values.shape for name, values in rows.items()} == {
        **dict.fromkeys(("qpos", "qvel", "gravity"), (0, 7)),
        "mass_matrix": (0, 7, 7),
        **dict.fromkeys(("kinetic_energy", "status"), (0,)),
    }
    if suffix == ".h5":
        with xarray.open_dataset(tmp_path / "out.h5", group="batch", engine="h5netcdf") as data:
            assert data.sizes["sample"] == 0
        with artsim.open(tmp_path / "out.h5") as batch:
            assert len(batch["gravity"]) == 0


# --- the file --------------------------------------------------------------------------------------------------------


def test_npz(tmp_path: Path) -> None:
    """Plain numpy reads it, without pickles; so does whoever checks the archive."""
    with job(GRIPPER, "gravity", "jacobian", float32=True, reduced=True) as given:
        written(tmp_path / "out.npz", given, threads=2, chunk=31)
        written(tmp_path / "out.h5", given)
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    assert same_bytes(contents(tmp_path / "out.npz"), contents(tmp_path / "out.h5"))
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive, artsim.open(tmp_path / "out.h5") as batch:
        for dim in ("coord", "dof", "independent_dof", "link", "twist"):
            assert tuple(archive[dim]) == batch.names_of(dim)
        assert set(archive) == {*batch.variables, "coord", "dof", "independent_dof", "link", "twist"} | {
            "facts",
            "provenance",
        }


def test_the_partial_file_is_replaced_and_leaves(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    partial = tmp_path / "out.h5.partial"
    partial.write_bytes(b"left by a process that was killed" * 1000)
    with job() as given:
        seen = []
        written(output, given, chunk=100, progress=lambda done: seen.append((done, partial.exists(), output.exists())))
        assert seen == [(100, True, False), (200, True, False), (300, True, False)]
        before = output.read_bytes()
        with pytest.raises(OutputError, match="--force"):
            written(output, given)
        assert output.read_bytes() == before
        written(output, given, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_stopped_work_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    output = tmp_path / f"out{suffix}"
    output.write_bytes(b"old")
    with job() as given:
        outcome = written(output, given, chunk=50, force=True, stop=lambda: True)
        assert not outcome.complete
        assert 0 < outcome.rows < 300

        def fail(done: int) -> None:
            raise ModelError("of the caller")

        with pytest.raises(ModelError, match="of the caller"):
            written(output, given, chunk=50, force=True, threads=3, progress=fail)
    assert output.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_two_processes_do_not_share_a_partial_file(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "out.h5.partial").open("w") as held, job() as given:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BusyError):
            written(tmp_path / "out.h5", given)
    assert not (tmp_path / "out.h5").exists()


def test_a_link_in_the_partial_file_s_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out.h5.partial").symlink_to(tmp_path / "precious")
    with job() as given, pytest.raises(OutputError, match="cannot create"):
        written(tmp_path / "out.h5", given)
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_pipe_in_the_partial_file_s_place_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.h5.partial")
    with job() as given, pytest.raises(OutputError, match="device or pipe"):
        written(tmp_path / "out.h5", given)


def test_an_output_that_is_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "out.h5"
    link.symlink_to(tmp_path / "far" / "there.h5")
    for force in (False, True):
        with job() as given:
            written(link, given, force=force)
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "far").iterdir()] == ["there.h5"]
    with artsim.open(link) as output:
        assert len(output) == given.rows


def test_a_file_that_another_process_has_just_finished_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.h5"

    def late(path: Path) -> int:
        output.write_bytes(b"finished")
        return claim(path)

    monkeypatch.setattr(batch_file, "claim", late)
    with job() as given, pytest.raises(OutputError, match="exists already"):
        written(output, given)
    assert output.read_bytes() == b"finished"
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with job() as given:
        monkeypatch.setattr(batch_file, "room", lambda _: (1000, "no space left on the disk: it has"))
        with pytest.raises(StorageError, match=r"it has 1000 bytes; the file needs \d+ bytes"):
            written(tmp_path / "out.h5", given)
        monkeypatch.undo()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(batch_file, "_reserve", full)
        with pytest.raises(StorageError, match=r"No space left on device; the file needs \d+ bytes"):
            written(tmp_path / "out.h5", given)
        monkeypatch.undo()
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match="writing stopped after"):
            written(tmp_path / "out.h5", given, threads=2, chunk=16)
    assert not list(tmp_path.iterdir())


def test_the_space_is_there_before_the_first_row(tmp_path: Path) -> None:
    blocks = []
    with job(ARM, "mass_matrix", samples=20000) as given:
        written(
            tmp_path / "out.h5",
            given,
            chunk=64,
            progress=lambda done: blocks.append((tmp_path / "out.h5.partial").stat().st_blocks),
        )
    assert min(blocks) * 512 >= 20000 * (49 + 7) * 8


@pytest.mark.parametrize("name", ["out", "out.npy", "out.txt", "out.h5.gz"])
def test_names_of_no_known_kind(name: str, tmp_path: Path) -> None:
    with job() as given, pytest.raises(UsageError, match="ends in"):
        written(tmp_path / name, given)


def test_readers_of_runs_say_what_it_is(tmp_path: Path) -> None:
    with job() as given:
        written(tmp_path / "out.h5", given)
    with pytest.raises(ModelError, match="not of a run"):
        open_recording(tmp_path / "out.h5")
    with artsim.open(tmp_path / "out.h5") as batch, pytest.raises(UsageError, match="did you mean 'gravity'"):
        batch["gravit"]


def test_a_damaged_batch_is_refused(tmp_path: Path) -> None:
    with job() as given:
        written(tmp_path / "out.h5", given)
    with h5py.File(tmp_path / "out.h5", "r+") as h5:
        del h5["batch/gravity"]
        h5["batch/gravity"] = np.zeros((300, 6))
    with pytest.raises(ModelError, match="gravity"):
        artsim.open(tmp_path / "out.h5")


def test_long_dimensions_pass_the_gate_and_no_long_data(tmp_path: Path) -> None:
    """A netCDF dimension without labels is never stored; anything else of that length must be."""
    path = tmp_path / "long.h5"
    with h5py.File(path, "w") as h5:
        h5.create_dataset("sample", (10**12,), "f4").make_scale(
            f"This is a netCDF dimension but not a netCDF variable.{10**12:10d}"
        )
    open_checked(path).close()
    with h5py.File(path, "r+") as h5:
        h5.create_dataset("data", (10**12,), "f4").make_scale("data")
    with pytest.raises(ModelError, match="declares 1000000000000 entries"):
        open_checked(path)


@pytest.mark.parametrize("kind", ["i1", "S4", "f8"])
def test_labels_and_status_are_no_dimensions_without_labels(kind: str, tmp_path: Path) -> None:
    """A kilobyte that declares 10^12 of them would be read for days."""
    path = tmp_path / "long.h5"
    with h5py.File(path, "w") as h5:
        h5.create_dataset("status", (10**12,), kind).make_scale(
            f"This is a netCDF dimension but not a netCDF variable.{10**12:10d}"
        )
    with pytest.raises(ModelError, match="declares 1000000000000 entries"):
        open_checked(path)


# --- memory ----------------------------------------------------------------------------------------------------------


def peak_memory(*arguments: object) -> int:
    """Peak resident bytes of a process that computes so many gravity vectors."""
    code = """
        import resource, sys
        from pathlib import Path
        from artsim.io.batches.batch import compute_rows, prepare
        from artsim.io.batches.configuration import BatchConfig
        from artsim.loaders.load import load_articulation
        config = BatchConfig(quantities=("gravity",), samples=int(sys.argv[2]))
        with prepare(load_articulation(sys.argv[1]), config) as job:
            compute_rows(job, 0, job.rows, sys.argv[3], threads=2, chunk=4096)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    words = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return int(subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout) * 1024


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_memory_does_not_grow_with_the_rows(suffix: str, tmp_path: Path) -> None:
    few, many = (peak_memory(ARM, rows, tmp_path / f"{rows}{suffix}") for rows in (20_000, 1_000_000))
    assert (tmp_path / f"1000000{suffix}").stat().st_size > 110e6
    assert many < few + 12e6


def test_work_that_does_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "memory_left", lambda: (10_000_000, "the machine has"))
    with job(samples=10**8) as given, pytest.raises(MemoryShortageError, match=r"need \d+ MB, the machine has 10 MB"):
        written(tmp_path / "out.h5", given, chunk=10**7)
    assert not list(tmp_path.iterdir())


def test_memory_left_sees_the_process_s_limit() -> None:
    code = "from artsim.sim.foundation.memory import memory_left; print(*memory_left(), sep='|')"
    limit = 1 << 30
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    left, what = done.stdout.strip().split("|")
    assert 0 < int(left) < limit
    assert "ulimit -v" in what


@pytest.mark.parametrize("version", [1, 2])
def test_memory_left_sees_control_groups(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent's limit holds too, and cached files make way."""
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    top = tmp_path / "memory" if version == 1 else tmp_path
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "cache")
    limit, usage, cache = names if version == 1 else ("memory.max", "memory.current", "file")
    for folder, most, used in ((top / "a", 5_000_000, 4_000_000), (top / "a" / "b", 9_000_000, 1_000_000)):
        folder.mkdir(parents=True)
        (folder / limit).write_text(f"{most}\n")
        (folder / usage).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 7\n{cache} 500000\n")
    lines = "4:memory,cpu:/a/b\n1:name=systemd:/x\n" if version == 1 else "0::/a/b\n"
    proc = tmp_path / "cgroup"
    proc.write_text(lines)
    real = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, **k: real(proc if str(self) == "/proc/self/cgroup" else self, **k)
    )
    assert memory.memory_left() == (1_500_000, "the control group's limit leaves")


# --- the configuration -----------------------------------------------------------------------------------------------

CONFIG = BatchConfig(
    model="robot.urdf",
    load={"base": "floating", "packages": {"a": "b"}},
    gravity=(0.0, 0.0, -1.6),
    quantities=("mass_matrix", "jacobian"),
    links=("tool0",),
    packed=True,
    samples=10,
    velocity=1.0,
)


def test_a_configuration_survives_json() -> None:
    assert BatchConfig.from_json(CONFIG.to_json()) == CONFIG


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"quantities": ["gravity"]}',
        '{"quantities": ["gravity"], "samples": 1, "input": "x.npy"}',
        '{"quantities": ["gravity"], "samples": "1"}',
        '{"quantities": ["gravity"], "samples": true}',
        '{"quantities": "gravity", "samples": 1}',
        '{"quantities": [1], "samples": 1}',
        '{"quantities": ["gravity"], "samples": 1, "reduced": 1}',
        '{"quantities": ["gravity"], "samples": 1, "links": ["tool0"]}',
        '{"quantities": ["gravity"], "samples": 1, "packed": true}',
        '{"quantities": ["jacobian"], "samples": 1, "links": ["a", "a"]}',
        '{"quantities": ["gravity"], "samples": 1, "gravity": [0, 0]}',
        '{"quantities": ["gravity"], "samples": 1, "gravity": [0, 0, NaN]}',
        '{"quantities": ["gravity"], "samples": 1, "on_error": "go"}',
        '{"quantities": ["gravity"], "samples": 1, "sample": 1}',
        "[" * 100_000,
    ],
)
def test_wrong_configurations(text: str) -> None:
    with pytest.raises(UsageError):
        BatchConfig.from_json(text)


def test_the_digest_is_of_what_decides_the_bytes(tmp_path: Path) -> None:
    def digest(model: Path = ARM, **options: Any) -> str:
        values = {"quantities": ("mass_matrix", "link_position"), "samples": 10, **options}
        load = values.pop("load", {})
        with prepare(load_articulation(model, **load), BatchConfig(model=str(model), load=load, **values)) as given:
            return given.digest

    first = digest()
    assert len(first) == 64
    assert digest(on_error="skip") == first
    copy = tmp_path / "other.urdf"
    copy.write_bytes(ARM.read_bytes())
    assert digest(copy, load={"strict": True}) == first
    copy.write_text(ARM.read_text() + "\n")
    others = [
        digest(copy),
        digest(load={"base": "floating"}),
        digest(gravity=(0.0, 0.0, -1.0)),
        digest(quantities=("mass_matrix",)),
        digest(quantities=("link_position", "mass_matrix")),
        *(digest(**{name: True}) for name in ("reduced", "packed", "float32")),
        digest(at="origin"),
        digest(links=("tool0",)),
        digest(samples=11),
        digest(seed=1),
        digest(distribution="normal"),
    ]
    np.save(tmp_path / "a.npy", np.zeros((10, 7)))
    np.save(tmp_path / "b.npy", np.ones((10, 7)))
    (tmp_path / "c.npy").write_bytes((tmp_path / "a.npy").read_bytes())
    others += [digest(samples=None, input=str(tmp_path / f"{name}.npy")) for name in "ab"]
    assert len({first, *others}) == 1 + len(others)
    assert digest(samples=None, input=str(tmp_path / "c.npy")) == others[-2]


def test_the_same_job_of_the_same_configuration(tmp_path: Path) -> None:
    with job(ARM, "gravity", seed=9) as given:
        written(tmp_path / "a.h5", given)
    with artsim.open(tmp_path / "a.h5") as batch:
        config = BatchConfig.from_json(str(batch.provenance["config"]))
    assert config == given.config
    with prepare(load_articulation(config.model, **config.load), replace(config, on_error="skip")) as again:
        assert again.digest == given.digest
        written(tmp_path / "b.h5", again, threads=2, chunk=9)
    assert same_bytes(contents(tmp_path / "a.h5"), contents(tmp_path / "b.h5"))
