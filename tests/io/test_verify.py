"""What became of a file since it was written: a changed byte is found, wherever it is, and reading never hangs."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.gate import probe as probe_module
from artsim.io.gate import seal
from artsim.io.gate.probe import probe
from artsim.io.readers.recording import open_recording
from artsim.io.runs.recovery import recover
from artsim.sim.foundation.errors import ModelError
from tests.cli.test_bad_inputs import artsim as command
from tests.cli.test_cli_run import good, refused
from tests.conftest import ROOT
from tests.io.test_recover import killed

ROBOTS = ROOT / "robots"


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with contacts and checkpoints."""
    path = tmp_path_factory.mktemp("verify") / "run.h5"
    robot = artsim.load(ROBOTS / "quadruped.urdf", base="floating")
    artsim.simulate(robot, steps=60, ground=True, checkpoint=20, output=path).close()
    return path


def place_of(path: Path, dataset: str) -> int:
    """Where the bytes of a dataset begin in the file."""
    with h5py.File(path) as file:
        found = file[dataset].id
        return int(found.get_offset() if found.get_offset() is not None else found.get_chunk_info(0).byte_offset)


def text(words: bytes) -> Callable[[Path], int]:
    return lambda path: path.read_bytes().index(words) + 2


def data(name: str, more: int = 0) -> Callable[[Path], int]:
    return lambda path: place_of(path, name) + more


# where a bit is flipped, the exit code, and a word of what is told
FLIPS: dict[str, tuple[Callable[[Path], int], int, str]] = {
    "positions": (data("trajectory/qpos", 8 * 19 * 30), 3, "qpos differs first at step 30, in 'root.x'"),
    "a contact": (data("contact/depth", 8), 3, "contact/depth differs first"),
    "time": (data("trajectory/time", 8 * 7), 3, "time differs first at step 7"),
    "the inputs": (data("controls/torque", 16), 65, "checksum"),
    "the final state": (data("final/qvel", 16), 65, "checksum"),
    "the warm start": (data("final/impulse", 9), 65, "checksum"),
    "a checkpoint": (data("checkpoint/qpos", 16), 65, "checksum"),
    "the count of rows": (data("trajectory/n_valid"), 65, "checksum"),
    "the status": (data("trajectory/status"), 65, "checksum"),
    "a label": (text(b"root.vx"), 65, "checksum"),
    "the model's text": (text(b"<robot"), 65, "checksum"),
    "an attribute": (text(b"CF-1.11"), 65, "checksum"),
    "the configuration": (text(b'"midpoint"'), 65, "checksum"),
    "the seal": (lambda path: path.stat().st_size - 30, 65, "checksum"),
    "HDF5's own": (lambda path: 60, 65, "checksum"),
}


@pytest.mark.parametrize("what", FLIPS)
def test_a_flipped_bit_is_found(run_file: Path, what: str, tmp_path: Path) -> None:
    find, code, word = FLIPS[what]
    path = tmp_path / "flipped.h5"
    content = bytearray(run_file.read_bytes())
    content[find(run_file)] ^= 1
    path.write_bytes(content)
    refused(code, "replay", "--verify", path, words=(word,))
    if code == 65:
        with pytest.raises(ModelError, match="checksum"):
            open_recording(path)


def test_any_byte_but_those_of_rows_is_sealed(run_file: Path, tmp_path: Path) -> None:
    """Of bytes drawn at random: the seal finds each, or it is one of a chunk of rows."""
    content, random = run_file.read_bytes(), np.random.default_rng(0)
    with h5py.File(run_file) as file:
        rows = [item.id for group in ("trajectory", "contact") for item in file[group].values() if item.chunks]
        spared = seal.merged(seal.chunks_of(rows))
    path, found = tmp_path / "flipped.h5", 0
    for place in random.integers(len(content), size=300).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        in_rows = any(start <= place < stop for start, stop in spared)
        assert in_rows or seal.is_whole(path) is not True, place
        found += not in_rows
    assert found > 30


def test_seals(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    assert seal.is_whole(path) is None
    with path.open("r+b") as stream:
        seal.seal(stream.fileno(), [(50, 60), (20, 30), (28, 40), (60, 61)])
    assert seal.merged([(50, 60), (20, 30), (28, 40), (60, 61)]) == [(20, 40), (50, 61)]
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        expected = {True} if 20 <= place < 40 or 50 <= place < 61 else {False, None}
        assert seal.is_whole(path) in expected, place
    for size in range(200, len(content)):
        path.write_bytes(content[:size])
        assert seal.is_whole(path) in (False, None)


def test_what_others_write_takes_the_seal_away(run_file: Path, tmp_path: Path) -> None:
    """HDF5 cuts what is behind its end when it writes: a file changed on purpose is compared like any other."""
    path = tmp_path / "changed.h5"
    path.write_bytes(run_file.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs["note"] = "mine"
    assert seal.is_whole(path) is None
    assert "no seal" in good("replay", "--verify", path).stdout
    assert "seal" not in good("replay", "--verify", run_file).stdout


def put(place: str, value: object) -> Callable[[h5py.File, str], object]:
    return lambda file, group: file[place].__setitem__(..., value)


def named(place: str, name: str, value: str) -> Callable[[h5py.File, str], object]:
    return lambda file, group: file[place.replace("ROWS", group)].attrs.__setitem__(name, value)


# what somebody changes in a file whose rows are in a group, and what is told of it; None: that the seal is gone
FACTS: dict[str, tuple[Callable[[h5py.File, str], object], str | None]] = {
    "masses": (put("model/link_mass", 7.0), "model/link_mass differs"),
    "a limit": (put("model/joint_upper", 9.0), "model/joint_upper differs"),
    "a parent": (put("model/joint_parent", "elsewhere"), "model/joint_parent differs"),
    "a unit": (named("ROWS/qpos", "units", "deg"), "qpos units differs"),
    "a format": (named("model", "format", "sdf"), "model format differs"),
    "a comment of the source": (
        lambda file, group: put("model/source", file["model/source"][()] + b"<!-- safe -->")(file, group),
        "model sha256 differs",
    ),
    "the command": (named("provenance", "command", "run good.urdf"), None),
    "foreign data": (lambda file, group: file.create_dataset(f"{group}/mine", data=np.ones(3)), None),
    "a foreign group": (lambda file, group: file.create_group("mine"), None),
}


@pytest.mark.parametrize("kind", ["trajectory", "rollout", "batch"])
@pytest.mark.parametrize("what", FACTS)
def test_facts_beside_rows_are_compared_or_told(
    run_file: Path, others: dict[str, Path], kind: str, what: str, tmp_path: Path
) -> None:
    """The robot's facts and units are those that the content gives again; of all else the seal tells."""
    change, told = FACTS[what]
    path = tmp_path / "changed.h5"
    path.write_bytes((run_file if kind == "trajectory" else others[kind]).read_bytes())
    with h5py.File(path, "r+") as file:
        change(file, kind)
    done = CliRunner().invoke(cli, ["replay", "--verify", str(path)])
    assert (done.exit_code, (told or "it has no seal") in done.output) == (0 if told is None else 3, True), done.output


def endless() -> None:
    while True:
        pass


def hungry() -> None:
    np.ones(1 << 28)


@pytest.mark.parametrize("look", [endless, lambda: ctypes.string_at(0)], ids=["endless", "crash"])
def test_what_reading_may_do(look: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe_module, "CPU_SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(ModelError, match="does not come to an end" if look is endless else "crashes"):
        probe(tmp_path / "x.h5", look)
    assert time.monotonic() - began < 30


def test_a_look_is_bounded_in_memory(tmp_path: Path) -> None:
    def look() -> None:
        try:
            hungry()
        except MemoryError:
            raise ModelError("too much") from None

    with pytest.raises(ModelError, match="too much"):
        probe(tmp_path / "x.h5", look)
    hungry()  # here it is allowed


def test_runs_from_elsewhere_may_differ_a_little(run_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.h5"

    def written(cpu: str, versions: dict[str, str], error: float) -> None:
        path.write_bytes(run_file.read_bytes())
        with h5py.File(path, "r+") as file:
            facts = file["provenance"].attrs
            facts["cpu"] = cpu or facts["cpu"]
            facts["versions"] = json.dumps(json.loads(facts["versions"]) | versions)
            file["trajectory/qvel"][20, 3] += error

    written("", {}, 1e-9)
    refused(3, "replay", "--verify", path, words=("qvel", "step 20"))
    written("z80", {}, 1e-9)
    told = good("replay", "--verify", path).stdout
    assert "within 1e-06" in told
    assert "cpu z80" in told
    refused(3, "replay", "--verify", path, "--tolerance", 1e-12, words=("qvel", "step 20"))
    written("", {"numba": "0.1"}, 1e-3)
    refused(3, "replay", "--verify", path, words=("qvel", "step 20"))


def test_rollouts(tmp_path: Path) -> None:
    path = tmp_path / "rollout.h5"
    words = (
        "--samples",
        20,
        "--steps",
        30,
        "--spread",
        0.1,
        "--randomise",
        "mass=0.9:1.1",
        "--seed",
        3,
        "--threads",
        2,
    )
    good("rollout", ROBOTS / "two_finger_gripper.urdf", *words, "-o", path)
    for threads in (1, 2):
        assert "every byte equal" in good("replay", "--verify", path, "--threads", threads).stdout
    with h5py.File(path, "r+") as file:
        file["rollout/qvel"][13, 5, 2] += 1e-12
    refused(3, "replay", "--verify", path, words=("qvel differs first at sample 13",))


@pytest.mark.parametrize("each", [False, True], ids=["inputs of all", "inputs of each"])
def test_rollouts_with_inputs_over_time(each: bool, tmp_path: Path) -> None:
    """What all samples share is in the file once; the control file is not needed again."""
    path, inputs = tmp_path / "rollout.h5", tmp_path / "inputs.npz"
    torque = np.random.default_rng(1).uniform(-1, 1, (10, 4, 7) if each else (4, 7))
    np.savez(inputs, time=[0.0, 0.004, 0.01, 0.02], torque=torque)
    words = ("--samples", 10, "--steps", 15, "--control", inputs, "--velocity-spread", 0.1)
    good("rollout", ROBOTS / "arm7.urdf", *words, "-o", path)
    inputs.unlink()
    with h5py.File(path) as file:
        assert file["controls/torque"].shape == torque.shape
        assert file["controls/torque"][()].tobytes() == torque.tobytes()
        assert file["controls/target"].shape == (4, 7)
        assert list(file["controls/start_step"]) == [0, 2, 5, 10]
    with artsim.open(path) as rollout:
        assert [one.torque.tobytes() for one in rollout.controls] == [
            x.tobytes() for x in (torque if each else [torque])
        ]
    for threads in (1, 2):
        assert "every byte equal" in good("replay", "--verify", path, "--threads", threads).stdout
    with h5py.File(path, "r+") as file:
        file["controls/torque"][(6, 1, 0) if each else (1, 0)] += 1e-9
    refused(3, "replay", "--verify", path, words=(f"qpos differs first at sample {6 if each else 0}",))
    with h5py.File(path, "r+") as file:
        del file["controls/torque"]
        file["controls/torque"] = np.zeros((9, 4, 7))
    refused(65, "replay", "--verify", path, words=("/controls/torque has shape (9, 4, 7)",))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind but a finished run."""
    folder = tmp_path_factory.mktemp("others")
    paths = {name: folder / f"{name}.h5" for name in ("rollout", "batch", "given", "index", "recovered")}
    arm = ROBOTS / "arm7.urdf"
    good("rollout", arm, "--samples", 12, "--steps", 8, "--spread", 0.2, "-o", paths["rollout"])
    words = ("--compute", "gravity,mass_matrix,jacobian")
    good("batch", arm, *words, "--samples", 200, "--seed", 5, "-o", paths["batch"])
    good("batch", arm, *words, "--samples", 200, "--seed", 5, "--shards", 3, "-o", paths["index"])
    good("batch", arm, "--compute", "gravity", "--float32", "--input", paths["batch"], "-o", paths["given"])
    killed(paths["recovered"])
    recover(paths["recovered"])
    return paths


@pytest.mark.parametrize("kind", ["rollout", "batch", "given", "index", "recovered"])
def test_a_flipped_bit_is_found_in_every_kind_of_file(kind: str, others: dict[str, Path], tmp_path: Path) -> None:
    """Beside rows by whoever opens it; in rows by computing them again."""
    whole = others[kind]
    for shard in whole.parent.glob(f"{whole.stem}.shard-*"):
        (tmp_path / shard.name).write_bytes(shard.read_bytes())
    content, path = whole.read_bytes(), tmp_path / whole.name
    path.write_bytes(content)
    assert seal.is_whole(path) is True
    if kind != "recovered":
        assert "every byte equal" in good("replay", "--verify", path, "--threads", 2).stdout
    places = [
        content.index(b"CF-1.11"),
        content.index(b"joint_1" if kind != "recovered" else b"box"),
        len(content) - 30,
    ]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        for words in (("info", path), ("replay", "--verify", path)):
            told = command(*words)
            assert told.exit_code == 65, (words, told.output)
            assert "checksum" in told.stderr


ROWS = {
    "rollout": ("rollout/qvel", 3, "qvel differs first at sample 3"),
    "batch": ("batch/mass_matrix", 170, "mass_matrix differs first at row 170, in 'joint_1, joint_1'"),
    "given": ("batch/gravity", 31, "gravity differs first at row 31, in 'joint_1'"),
    "an input drawn": ("batch/qpos", 0, "qpos differs first at row 0, in 'joint_1'"),
}


@pytest.mark.parametrize("what", ROWS)
def test_a_flipped_bit_in_rows_is_found_by_computing_them_again(
    what: str, others: dict[str, Path], tmp_path: Path
) -> None:
    name, row, told = ROWS[what]
    content, path = bytearray(others.get(what, others["batch"]).read_bytes()), tmp_path / "flipped.h5"
    path.write_bytes(content)
    with h5py.File(path) as file:
        data = file[name]
        place = data.id.get_offset() + row * data.id.get_type().get_size() * int(np.prod(data.shape[1:]))
    content[place] ^= 1
    path.write_bytes(content)
    good("info", path)
    refused(3, "replay", "--verify", path, words=(told,))


BATCHES: dict[str, tuple[str, ...]] = {
    "rows that fail": ("arm7.urdf", "--compute", "gravity,mass_matrix", "--input", "poses.npy", "--on-error", "skip"),
    "packed floats": ("arm7.urdf", "--compute", "mass_matrix", "--packed", "--float32", "--samples", "100"),
    "wrenches": ("arm7.urdf", "--compute", "external_force", "--samples", "30", "--wrench", "2", "--links", "tool0"),
    "a file of several inputs": ("arm7.urdf", "--compute", "inverse_dynamics", "--input", "motion.npz"),
    "reduced": (
        *("two_finger_gripper.urdf", "--compute", "mass_matrix,jacobian", "--reduced", "--samples", "77"),
        *("--at", "origin", "--gravity", "0,0,-3"),
    ),
    "floating": ("quadruped.urdf", "--base", "floating", "--compute", "momentum", "--samples", "99", "--velocity", "1"),
    "MJCF": ("clamp.xml", "--compute", "bias", "--samples", "99", "--velocity", "1"),
    "no rows": ("arm7.urdf", "--compute", "gravity", "--samples", "0"),
}


@pytest.mark.parametrize("what", BATCHES)
def test_every_kind_of_batch_is_computed_again_to_the_same_bytes(what: str, tmp_path: Path) -> None:
    random, path = np.random.default_rng(0), tmp_path / "batch.h5"
    poses = random.uniform(-1, 1, (50, 7))
    np.savez(tmp_path / "motion.npz", qpos=poses, qvel=poses + 1, qacc=poses - 1, wrench=np.ones((50, 9, 6)))
    poses[7, 2] = np.nan
    np.save(tmp_path / "poses.npy", poses)
    robot, *words = BATCHES[what]
    words = [str(tmp_path / word) if word.startswith(("poses", "motion")) else word for word in words]
    told = command("batch", ROBOTS / robot, *words, "-o", path)
    assert told.exit_code == 0, told.stderr
    told = command("replay", "--verify", path, "--threads", "2")
    assert (told.exit_code, told.stdout) == (0, f"{path}: reproduced, every byte equal\n")


def test_a_shard_and_what_is_wrong_with_it(others: dict[str, Path], tmp_path: Path) -> None:
    shards = sorted(others["index"].parent.glob("index.shard-*"))
    assert "every byte equal" in good("replay", "--verify", *shards).stdout
    for path in (*shards, others["index"]):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    second = tmp_path / shards[1].name
    with h5py.File(second) as file:
        data = file["batch/jacobian"]
        first, place = int(file["batch"].attrs["first_row"]), data.id.get_offset()
    content = bytearray(second.read_bytes())
    content[place] ^= 1
    second.write_bytes(content)
    refused(3, "replay", "--verify", second, words=("jacobian differs first at row 0",))
    refused(3, "replay", "--verify", tmp_path / "index.h5", words=(f"jacobian differs first at row {first}",))


def test_a_model_in_which_nothing_moves(tmp_path: Path) -> None:
    """Its inputs have no columns, and one row all the same."""
    model, out = tmp_path / "still.xml", tmp_path / "still.h5"
    model.write_text('<mujoco><worldbody><geom type="box" size="1 1 1"/></worldbody></mujoco>')
    good("run", model, "--steps", 10, "-o", out)
    with h5py.File(out) as file:
        assert file["controls/start_step"][:].tolist() == [0]
    assert "every byte equal" in good("replay", "--verify", out).stdout
