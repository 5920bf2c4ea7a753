"""`artsim batch` as users meet it: own processes, judged by exit code, words and file."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import artsim
from artsim.io.readers.batch_recording import BatchRecording
from artsim.sim.quantities.catalogue import DERIVATIVES, QUANTITIES
from tests.conftest import ROOT

ARM = ROOT / "robots" / "arm7.urdf"
GRIPPER = ROOT / "robots" / "parallel_gripper.urdf"
SLOWLY = [
    *(sys.executable, "-m", "artsim", "batch", str(ARM), "--samples", "2000000", "--compute", "gravity"),
    *("--chunk", "8"),
]
SAMPLES = ("--samples", 100, "--compute", "gravity")


def batch(
    *arguments: object, stdin: bytes | None = None, limits: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """`artsim batch …` in a process of its own."""
    words = [sys.executable, "-m", "artsim", "batch", *map(str, arguments)]
    done = subprocess.run(words, input=stdin, capture_output=True, timeout=300, preexec_fn=limits)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def good(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A call that must succeed."""
    done = batch(*arguments, **more)
    assert done.returncode == 0, done.stderr
    return done


def refused(code: int, *arguments: object, words: tuple[str, ...] = (), lines: int = 1, **more: Any) -> str:
    """A call that must fail with this code, these words, on one line (click's usage errors have four)."""
    done = batch(*arguments, **more)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    if not done.stderr.startswith("Usage:"):
        assert len(done.stderr.splitlines()) == lines, done.stderr
    return done.stderr


def table(path: Path, rows: int = 50, width: int = 7) -> Path:
    np.save(path, np.random.default_rng(1).uniform(-1, 1, (rows, width)))
    return path


# --- what it does ----------------------------------------------------------------------------------------------------


def test_from_a_file_to_labelled_rows(tmp_path: Path) -> None:
    given = table(tmp_path / "q.npy")
    done = good(ARM, "--input", given, "--compute", "gravity,link_pose", "-o", tmp_path / "out.h5")
    assert done.stdout == ""
    assert re.fullmatch(r"50 rows in \S+ s: [\d,]+ rows/s; wrote \S+out\.h5 \(\S+ MB\)\n", done.stderr)
    robot = artsim.load(ARM)
    expected = robot.compute(np.load(given), quantities=["gravity", "link_pose"])
    with artsim.open(tmp_path / "out.h5") as output:
        assert isinstance(output, BatchRecording)
        assert output.variables == ("qpos", "gravity", "link_position", "link_quaternion", "status")
        for name, values in expected.items():
            assert output[name].tobytes() == values.tobytes()
        assert output.labels.dof == robot.dofs
        assert output.provenance["command"].startswith("batch ")
        assert output.model_text == ARM.read_text()


def test_options_reach_the_result(tmp_path: Path) -> None:
    given = table(tmp_path / "q.npy", width=len(artsim.load(GRIPPER).coords))
    options = ("--compute", "gravity,jacobian,mass_matrix", "--reduced", "--at", "origin", "--packed", "--float32")
    more = ("--gravity", "0,0,-1.62", "--links", "left_finger", "--threads", 2, "--chunk", 16)
    good(GRIPPER, "--input", given, *options, *more, "-o", tmp_path / "out.h5")
    robot = artsim.load(GRIPPER, gravity=(0, 0, -1.62))
    expected = robot.compute(
        np.load(given),
        quantities=["gravity", "jacobian", "mass_matrix"],
        reduced=True,
        at="origin",
        packed=True,
        links=["left_finger"],
    )
    with h5py.File(tmp_path / "out.h5") as file:
        for name, values in expected.items():
            assert file["batch"][name][()].tobytes() == values.astype("f4").tobytes(), name
        assert file["batch"].attrs["at"] == "origin"


def test_npz(tmp_path: Path) -> None:
    good(ARM, *SAMPLES, "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive:
        expected = artsim.load(ARM).compute(archive["qpos"], quantities=["gravity"])
        assert archive["gravity"].tobytes() == expected["gravity"].tobytes()


def test_json(tmp_path: Path) -> None:
    done = good(ARM, *SAMPLES, "--json", "-o", tmp_path / "out.h5")
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert (told["rows"], told["failed"], told["complete"]) == (100, 0, True)
    assert told["output"] == str(tmp_path / "out.h5")
    assert told["bytes"] == (tmp_path / "out.h5").stat().st_size


def test_quiet(tmp_path: Path) -> None:
    done = good(ARM, "--samples", 5, "--compute", "bias", "-q", "-o", tmp_path / "out.h5")
    assert done.stderr == done.stdout == ""


def test_standard_input(tmp_path: Path) -> None:
    text = "\n".join(["joint_1,joint_2,joint_3,joint_4,joint_5,joint_6,joint_7", "0,0.5,0,1,0,0,0", "0,1,0,0,0,2,0"])
    good(ARM, "--input", "-", "--compute", "gravity", "-o", tmp_path / "a.h5", stdin=text.encode())
    good("-", "--samples", 5, "--compute", "gravity", "-o", tmp_path / "b.h5", stdin=ARM.read_bytes())
    with artsim.open(tmp_path / "a.h5") as output:
        assert output["qpos"].tolist() == [[0, 0.5, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 2, 0]]
    refused(2, "-", "--input", "-", "--compute", "gravity", "-o", tmp_path / "c.h5", words=("standard input",))


def test_a_batch_file_and_a_run_are_inputs(tmp_path: Path) -> None:
    velocity = ("--samples", 20, "--velocity", 1, "--compute", "bias")
    good(ARM, *velocity, "-o", tmp_path / "a.h5")
    good(ARM, "--input", tmp_path / "a.h5", "--compute", "bias", "-o", tmp_path / "b.h5")
    with artsim.open(tmp_path / "a.h5") as a, artsim.open(tmp_path / "b.h5") as b:
        for name in ("qpos", "qvel", "bias"):
            assert a[name].tobytes() == b[name].tobytes()


def test_info(tmp_path: Path) -> None:
    good(GRIPPER, "--samples", 12, "--compute", "jacobian", "--reduced", "-o", tmp_path / "out.h5")
    words = [sys.executable, "-m", "artsim", "info", str(tmp_path / "out.h5")]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "batch of urdf robot 'parallel_gripper'" in told
    assert "12 rows, 0 failed; independent coordinates" in told
    assert re.search(r"^jacobian +sample 12, link \d+, twist 6, independent_dof 1 ", told, re.M)
    content = json.loads(subprocess.run([*words, "--json"], capture_output=True, text=True, check=True).stdout)
    assert (content["kind"], content["rows"], content["failed"]) == ("batch", 12, 0)
    assert content["config"]["quantities"] == ["jacobian"]


def test_zero_inputs_are_worth_a_word(tmp_path: Path) -> None:
    done = good(ARM, "--samples", 5, "--compute", "inverse_dynamics", "--velocity", 1, "-o", tmp_path / "out.h5")
    assert "warning: qacc is zero in every sample; --acceleration draws it" in done.stderr
    assert "qvel" not in done.stderr


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--samples", 5), ("--compute", *(name for name in QUANTITIES if name not in DERIVATIVES), "derivatives")),
        (("--samples", 5, "--compute", ","), ("--compute",)),
        (("--samples", 5, "--compute", "gravit"), ("did you mean 'gravity'?",)),
        (("--compute", "gravity"), ("--input", "--samples")),
        (("--input", "q.npy", *SAMPLES), ("only one of them",)),
        (("--input", "q.npy", "--compute", "gravity", "--seed", 1), ("--seed is for --samples",)),
        (("--input", "q.npy", "--compute", "bias", "--velocity", 1), ("--velocity is for --samples",)),
        ((*SAMPLES, "--velocity", 1), ("--velocity does nothing",)),
        ((*SAMPLES, "--wrench", 1), ("--wrench does nothing",)),
        ((*SAMPLES, "--links", "tool0"), ("--links",)),
        ((*SAMPLES, "--packed"), ("--packed",)),
        (("--samples", 5, "--compute", "jacobian", "--links", "tool"), ("did you mean 'tool0'?",)),
        (("--samples", 5, "--compute", "jacobian", "--links", "tool0,tool0"), ("twice",)),
        (("--samples", 5, "--compute", "jacobian", "--links", ""), ("names no link",)),
        (("--samples", -5, "--compute", "gravity"), ("--samples",)),
        (("--samples", "many", "--compute", "gravity"), ("--samples",)),
        ((*SAMPLES, "--threads", 0), ("--threads",)),
        ((*SAMPLES, "--chunk", 0), ("--chunk",)),
        ((*SAMPLES, "--seed", 2**64), ("seed",)),
        (("--samples", 5, "--compute", "bias", "--velocity", "nan"), ("--velocity",)),
        ((*SAMPLES, "--gravity", "1,2"), ("--gravity",)),
        ((*SAMPLES, "--at", "tip"), ("--at",)),
        ((*SAMPLES, "--distribution", "cauchy"), ("--distribution",)),
        ((*SAMPLES, "--on-error", "ignore"), ("--on-error",)),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) and "--compute" in value else "",
)
def test_wrong_options(options: tuple[object, ...], words: tuple[str, ...], tmp_path: Path) -> None:
    refused(2, ARM, *options, "-o", tmp_path / "out.h5", words=words)
    assert not list(tmp_path.iterdir())


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    given = table(tmp_path / "q.npy")
    taken = tmp_path / "taken.h5"
    taken.write_bytes(b"taken")
    refused(2, ARM, *SAMPLES, words=("--output",))
    refused(2, ARM, *SAMPLES, "-o", tmp_path / "out.txt", words=(".npz",))
    refused(73, ARM, *SAMPLES, "-o", taken, words=("--force",))
    refused(73, ARM, *SAMPLES, "-o", tmp_path / "no" / "out.h5", words=("does not exist",))
    (tmp_path / "folder.h5").mkdir()
    refused(73, ARM, *SAMPLES, "-o", tmp_path / "folder.h5", "--force", words=("directory",))
    copy = tmp_path / "q.npz"
    np.savez(copy, qpos=np.load(given))
    refused(2, ARM, "--input", copy, "--compute", "gravity", "-o", copy, "--force", words=("the input itself",))
    good(ARM, *SAMPLES, "-o", taken, "--force")
    inside = f"{taken}:/batch/qpos"
    refused(2, ARM, "--input", inside, "--compute", "gravity", "-o", taken, "--force", words=("the input itself",))


def test_inputs_that_cannot_be(tmp_path: Path) -> None:
    """Rows 107 to 109 of what must be refused, and some more."""
    output = ("-o", tmp_path / "out.h5")
    np.save(tmp_path / "narrow.npy", np.zeros((5, 6)))
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    (tmp_path / "text.csv").write_text("1,2,3,4,5,6,7\n1,2,3,x,5,6,7\n")
    refused(65, ARM, "--input", tmp_path / "narrow.npy", "--compute", "gravity", *output, words=("(5, 6)", "7"))
    refused(65, ARM, "--input", tmp_path / "objects.npy", "--compute", "gravity", *output)
    refused(65, ARM, "--input", tmp_path / "text.csv", "--compute", "gravity", *output, words=(":2:", "'x'"))
    refused(66, ARM, "--input", tmp_path / "none.npy", "--compute", "gravity", *output)
    refused(2, ARM, "--input", table(tmp_path / "q.npy"), "--compute", "bias", *output, words=("qvel",))
    refused(66, tmp_path / "none.urdf", *SAMPLES, *output)
    assert not (tmp_path / "out.h5").exists()
    assert not (tmp_path / "out.h5.partial").exists()


def test_107_rows_that_fail(tmp_path: Path) -> None:
    rows = np.zeros((20, 7))
    rows[[2, 5]] = np.nan
    np.save(tmp_path / "q.npy", rows)
    options = (ARM, "--input", tmp_path / "q.npy", "--compute", "gravity", "-o", tmp_path / "out.h5")
    told = refused(3, *options, lines=2, words=("2 of 20 rows", "2, 5", "--on-error skip"))
    assert "wrote" in told
    with artsim.open(tmp_path / "out.h5") as output:
        assert output["status"].tolist() == [int(k in (2, 5)) for k in range(20)]
        assert np.isnan(output["gravity"]).any(axis=1).tolist() == [k in (2, 5) for k in range(20)]
    done = good(*options, "--force", "--on-error", "skip")
    assert "warning: " in done.stderr and "2 of 20 rows" in done.stderr
    assert json.loads(good(*options, "--force", "--on-error", "skip", "--json").stdout)["failed_rows"] == [2, 5]


# --- faults ----------------------------------------------------------------------------------------------------------


def test_f1_no_space(tmp_path: Path) -> None:
    """Found before anything is computed; nothing is left."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))

    for suffix in ("h5", "npz"):
        output = tmp_path / f"out.{suffix}"
        told = refused(74, ARM, "--samples", 10**6, "--compute", "gravity", "-o", output, limits=limits)
        assert re.search(r"the file needs 113\d{6} bytes", told)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_behind_stderr_is_told_by_the_exit_code(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "artsim", "batch", str(ARM), *map(str, SAMPLES), "-o", str(tmp_path / "out.h5")]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(words, stderr=full).returncode == 74
        assert subprocess.run(words, stderr=full).returncode == 73


def test_file_names_that_are_no_text(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff")
    model, given = tmp_path / f"{odd}.urdf", tmp_path / f"{odd}.npy"
    model.write_bytes(ARM.read_bytes())
    with given.open("wb") as stream:
        np.save(stream, np.zeros((3, 7)))
    for suffix in ("h5", "npz"):
        good(model, "--input", given, "--compute", "gravity", "-o", tmp_path / f"{odd}.{suffix}")
    with artsim.open(tmp_path / f"{odd}.h5") as output:
        assert isinstance(output, BatchRecording)
        assert output.model["path"].endswith("\\udcff.urdf")
        assert output.config["input"] == str(given)


def test_f6_no_memory(tmp_path: Path) -> None:
    """Rows stream; a block of 10^8 rows does not fit, which is found before anything is computed."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    output = tmp_path / "out.h5"
    options = ("--compute", "gravity", "--threads", 2, "-o", output)
    told = refused(71, ARM, "--samples", 10**8, *options, "--chunk", 10**8, limits=limits)
    assert re.search(r"need \d{5,} MB, the address space limit \(ulimit -v\) leaves \d{3,4} MB", told)
    assert not list(tmp_path.iterdir())
    good(ARM, "--samples", 2 * 10**6, *options, limits=limits)


def stopped(process: subprocess.Popen[bytes], output: Path, number: int) -> int:
    """Send a signal once rows are being written; the exit code."""
    partial = output.with_name(output.name + ".partial")
    deadline = time.monotonic() + 120
    while not (partial.exists() and partial.stat().st_size > 10**6) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert b"Traceback" not in told
    return process.returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("suffix", ["h5", "npz"])
def test_f2_signals(number: int, code: int, suffix: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{suffix}"
    process = subprocess.Popen([*SLOWLY, "-o", str(output)], stderr=subprocess.PIPE)
    assert stopped(process, output, number) == code
    assert not list(tmp_path.iterdir())


def test_a_killed_process_leaves_a_partial_file_that_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    process = subprocess.Popen([*SLOWLY, "-o", str(output)], stderr=subprocess.PIPE)
    assert stopped(process, output, signal.SIGKILL) == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5.partial"]
    good(ARM, *SAMPLES, "-o", output)
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]


def test_help_and_a_batch_with_warm_kernels_import_nothing_heavy(tmp_path: Path) -> None:
    if os.environ.get("NUMBA_BOUNDSCHECK") or os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("kernels are not loaded from objects")
    good(ARM, *SAMPLES, "-o", tmp_path / "warm.h5")
    code = "import sys, atexit; atexit.register(lambda: print(*{m.split('.')[0] for m in sys.modules}))\n"
    code += "from artsim.cli.main import main\nmain()\n"
    for arguments in (["--help"], [ARM, *SAMPLES, "-q", "-o", tmp_path / "out.h5"]):
        words = [sys.executable, "-c", code, "batch", *map(str, arguments)]
        loaded = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())
        assert not loaded & {"numba", "trimesh", "scipy", "rich", "collada", "xarray"}
        assert arguments != ["--help"] or not loaded & {"h5py", "llvmlite"}
