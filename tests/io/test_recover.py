"""Files of runs that were killed: made clean, and told apart from those of runs that ended otherwise."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from artsim.io.format import schema
from artsim.io.readers.recording import open_recording
from artsim.io.runs.recovery import recover
from artsim.sim.foundation.errors import BusyError, ModelError, OutputError, StorageError
from tests.cli.test_cli_run import ARM, good, refused
from tests.io.test_io import new, other_writer, write_run

WRITER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    from test_io import *
    names = ("qpos", "qvel", "contacts")
    labels = LABELS._replace(geom=("box",))
    options = {"compress": sys.argv[3] or None, "steps_total": 10**9, "force": True}
    recorder = new(Path(sys.argv[1]), labels=labels, variables=names, **options)
    for k in range(10**6):
        row = np.arange(recorder.rows, recorder.rows + 700, dtype=float)[:, None]
        touches = two_contacts_a_row(700)
        touches["depth"][:] = np.arange(2 * recorder.rows, 2 * recorder.rows + 1400)
        recorder.write({"qpos": row + np.zeros(5), "qvel": row + np.zeros(4)}, tables={"contact": touches})
        if k == 2:
            print("ready", flush=True)
"""


def killed(path: Path, compress: str = "") -> None:
    """A file whose writer was killed while it wrote."""
    words = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), str(Path(__file__).parent), compress]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate()


@pytest.mark.parametrize("compress", ["", "gzip", "zstd"])
def test_a_killed_run_is_made_clean(tmp_path: Path, compress: str) -> None:
    for _ in range(2):
        path = tmp_path / "run.h5"
        killed(path, compress)
        with open_recording(path) as run:
            rows = run.n_valid
            assert run.state == "killed"
            assert rows >= 2100
        with pytest.raises(OSError, match="consistency flags"):
            h5py.File(path, "r")
        clean = tmp_path / "clean.h5"
        assert recover(path, clean) == (clean, rows, "killed")
        before = path.read_bytes()
        assert recover(path) == (path, rows, "killed")
        assert recover(path) == (path, rows, "interrupted")  # there is nothing left to do
        assert path.read_bytes() == clean.read_bytes() != before
        assert not list(tmp_path.glob("*.recovering"))
        check_whole(path, rows)


def check_whole(path: Path, rows: int) -> None:
    """As others read it, without a warning; rows are those that were written, and no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_dataset(path, group="trajectory", engine="h5netcdf") as data:
            assert (data["qpos"].values == np.arange(rows)[:, None]).all()
            assert data.sizes["time"] == int(data["n_valid"]) == rows
        with xarray.open_dataset(path, group="contact", engine="h5netcdf") as data:
            assert (data["depth"].values == np.arange(2 * rows)).all()
            assert data.sizes["row"] == int(data["n_valid"]) == 2 * rows
    if shutil.which("h5dump"):
        done = subprocess.run(["h5dump", "-d", "/trajectory/n_valid", str(path)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    with open_recording(path) as run:
        assert (run.state, run.status) == ("interrupted", schema.INTERRUPTED)
        assert len(run.contacts["depth"]) == 2 * rows


def test_what_is_not_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "run.h5", tmp_path / "other.h5"
    process = other_writer(path)
    try:
        with pytest.raises(BusyError, match="is being written"):
            recover(path)
    finally:
        process.kill()
        process.communicate()
    monkeypatch.setattr("artsim.io.runs.recovery.room", lambda _: (100, "no space left on the disk: it has"))
    with pytest.raises(StorageError, match="100 bytes"):
        recover(path)
    monkeypatch.undo()
    with pytest.raises(OutputError, match="cannot create"):
        recover(path, tmp_path / "none" / "clean.h5")
    with open_recording(path) as run:
        assert run.state == "killed"
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ModelError, match="damaged"):
        recover(path, other)
    assert not other.exists()


def test_a_run_killed_at_its_very_end_is_complete(tmp_path: Path) -> None:
    """Its status is there, only its marks were not taken away."""
    path = tmp_path / "run.h5"
    write_run(path)
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        file.swmr_mode = True
        file.flush()
        marked = path.read_bytes()
    path.write_bytes(marked)
    assert recover(path).state == "complete"
    with h5py.File(path) as file:
        assert file["trajectory/status"][()] == schema.COMPLETE


def test_a_run_that_fails_at_once_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new(tmp_path / "run.h5"):
        raise ZeroDivisionError
    code = tmp_path / "broken.py"
    code.write_text("def broken(t, qpos, qvel):\n    return 1 / 0\n")
    refused(2, "run", ARM, "--controller", f"{code}:broken", "-o", tmp_path / "run.h5", words=("division",))
    assert list(tmp_path.iterdir()) == [code]


def test_the_command_and_what_info_says(tmp_path: Path) -> None:
    path, clean = tmp_path / "run.h5", tmp_path / "clean.h5"
    killed(path)
    assert "killed, so incomplete (artsim recover" in good("info", path).stdout
    assert json.loads(good("info", path, "--json").stdout)["state"] == "killed"
    assert "rows recovered" in good("recover", path, "-o", clean).stdout
    refused(73, "recover", path, "-o", clean, words=("--force",))
    refused(2, "recover", path, "-o", path, words=("input itself",))
    assert "interrupted" in good("info", clean).stdout
    assert "is clean already: interrupted" in good("recover", clean).stdout
    refused(66, "recover", tmp_path / "none.h5", words=("no such file",))
    refused(65, "recover", ARM, words=("XML",))
