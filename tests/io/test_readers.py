"""Outputs in other people's readers: labelled, without a warning, with contacts and Jacobians in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import artsim
from artsim.io.readers.recording import Recording
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT

xarray: Any = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")

LEG = ROOT / "robots" / "leg.xml"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run in which a leg falls onto the ground, and a batch of the same robot."""
    folder = tmp_path_factory.mktemp("readers")
    robot = artsim.load(LEG)
    record = (*RunConfig().record, "jacobian", "mass_matrix", "energy")
    run = artsim.simulate(robot, steps=150, record=record, output=folder / "run.h5")
    assert isinstance(run, Recording)
    qpos = run["qpos"]
    run.close()
    np.save(folder / "q.npy", qpos)
    command = ["batch", LEG, "--input", folder / "q.npy", "--compute", "gravity,mass_matrix,jacobian"]
    words = [sys.executable, "-m", "artsim", *map(str, command), "-o", str(folder / "batch.h5"), "--quiet"]
    subprocess.run(words, check=True)
    return {"run": folder / "run.h5", "batch": folder / "batch.h5"}


@pytest.mark.parametrize("kind", ["run", "batch"])
def test_xarray_opens_every_group_without_a_warning(files: dict[str, Path], kind: str) -> None:
    with h5py.File(files[kind]) as file:
        groups = [name for name, item in file.items() if isinstance(item, h5py.Group)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for group in groups:
            with xarray.open_dataset(files[kind], group=group, engine="h5netcdf") as data:
                data.load()
            for name, variable in data.data_vars.items():
                assert variable.attrs["units"] and variable.attrs["long_name"], name
                unlabelled = [dim for dim in variable.dims if dim not in data.coords and dim != "sample"]
                assert not unlabelled, (name, unlabelled)


def test_entries_by_name_in_xarray(files: dict[str, Path]) -> None:
    with artsim.open(files["run"]) as run:
        assert isinstance(run, Recording)
        foot, knee = run.labels.link.index("foot"), run.labels.dof.index("knee")
        with xarray.open_dataset(files["run"], group="trajectory", engine="h5netcdf") as data:
            of_knee = data.jacobian.sel(jacobian_column="foot,knee")
            assert of_knee.values.tolist() == run["jacobian"][:, foot, :, knee].tolist()
            dense = np.zeros_like(run["jacobian"])
            dense[:, data.jacobian_link, :, data.jacobian_dof] = data.jacobian.values.swapaxes(0, 1)
            assert dense.tobytes() == run["jacobian"].tobytes()
        with xarray.open_dataset(files["run"], group="contact", engine="h5netcdf") as data:
            assert set(data.link.values[data.link_b.values]) & {"foot", "shank", "thigh", "trunk"}
            assert data.force.sel(direction="normal").values.min() >= 0 and data.sizes["row"] > 0
        with xarray.open_dataset(files["batch"], group="batch", engine="h5netcdf") as data:
            assert data.jacobian.sel(link="foot", dof="knee").dims == ("sample", "twist")
            np.testing.assert_allclose(data.jacobian.values, run["jacobian"], rtol=0, atol=1e-13)


def test_pandas(files: dict[str, Path]) -> None:
    pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_dataset(files["run"], group="trajectory", engine="h5netcdf") as data:
            table = data.qpos.to_pandas()
            assert table["knee"].to_numpy().tolist() == data.qpos.sel(coord="knee").values.tolist()
            assert table.index[1] == 0.002
            frame = data.link_position.to_dataframe()
            assert frame.loc[(0.0, "foot", "z"), "link_position"] == float(
                data.link_position[0].sel(link="foot", xyz="z")
            )
        with xarray.open_dataset(files["batch"], group="batch", engine="h5netcdf") as data:
            assert data.gravity.to_pandas()["knee"].notna().all()


@pytest.mark.parametrize("kind", ["run", "batch"])
@pytest.mark.parametrize("tool", [("h5ls", "-r", "-v"), ("h5dump", "-H"), ("h5dump", "-d", "/{group}/link")])
def test_hdf5_tools(files: dict[str, Path], kind: str, tool: tuple[str, ...]) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    group = "trajectory" if kind == "run" else "batch"
    words = [word.format(group=group) for word in tool]
    done = subprocess.run([*words, files[kind]], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr
    assert ("foot" if "-d" in tool else "jacobian") in done.stdout


@pytest.mark.parametrize("kind", ["run", "batch"])
def test_h5glance(files: dict[str, Path], kind: str) -> None:
    pytest.importorskip("h5glance")
    words = [sys.executable, "-W", "error", "-m", "h5glance", str(files[kind])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "jacobian" in done.stdout and "float64" in done.stdout
