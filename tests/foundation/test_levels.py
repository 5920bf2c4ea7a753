"""Kernels for other processors: built for any level, taken from the package, the same bytes wherever a level runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from artsim.sim.foundation import jit, object_cache, targets
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import bind, build, file_name
from tests.foundation.small_entries import entry, make_table

HERE = Path(__file__).resolve().parent
SINES = entry("sines", "tests.foundation.small_kernels")
compiles = pytest.mark.skipif(
    jit.disabled() or jit._checked() or targets.level() not in targets.LEVELS,
    reason="kernels are built for levels by numba, to be run on Linux",
)
_MACHINES = {"x86_64": 62, "aarch64": 183}  # ELF's numbers


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel for each level."""
    folder = tmp_path_factory.mktemp("kernels")
    build([(SINES, 1)], targets.LEVELS, folder)
    return folder


@compiles
def test_a_kernel_is_built_for_each_level(built: Path) -> None:
    for level, target in targets.LEVELS.items():
        _, _, code = object_cache.read(built / level / file_name(SINES, 1, level), level) or ("", [], b"")
        assert code[:4] == b"\x7fELF"
        assert int.from_bytes(code[18:20], "little") == _MACHINES[target.triple.partition("-")[0]]
        other = next(each for each in targets.LEVELS if each != level)
        assert object_cache.read(built / level / file_name(SINES, 1, level), other) is None


@compiles
def test_what_is_built_is_left_and_what_is_stale_goes(built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "kernels"))
    level = targets.level()
    name = folder / level / file_name(SINES, 1, level)
    before = name.with_suffix(".o").stat().st_mtime_ns
    (folder / level / "sines-1-of-older-sources.o").write_bytes(b"")
    build([(SINES, 1)], [level], folder)
    assert name.with_suffix(".o").stat().st_mtime_ns == before
    assert sorted(path.name for path in (folder / level).iterdir()) == [f"{name.name}.json", f"{name.name}.o"]


def _sines(level: str, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.setenv("ARTSIM_LEVEL", level)
    table = make_table(64, 1)
    table.angle[:] = np.random.default_rng(0).uniform(-50, 50, 64)
    bind(SINES, 1, table)()
    return np.stack([table.sine, table.cosine])


@compiles
def test_each_level_that_the_processor_has_runs_from_the_package(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler; x86-64-v2 lacks fused products, whose rounding differs."""
    monkeypatch.setattr(object_cache, "_SHIPPED", built)
    monkeypatch.setattr(jit, "_loaded", {})
    monkeypatch.setattr(jit, "compiled", None)
    found = {level: _sines(level, monkeypatch) for level in targets.LEVELS if targets.has_level(level)}
    assert targets.level() in found
    angle = np.random.default_rng(0).uniform(-50, 50, 64)
    for each in found.values():
        assert np.abs(each - [np.sin(angle), np.cos(angle)]).max() < 1e-15
    if {"x86-64-v3", "x86-64-v4"} <= set(found):
        assert np.array_equal(found["x86-64-v3"], found["x86-64-v4"])


@compiles
@pytest.mark.parametrize("damage", ["cut short", "one byte", "of another level"])
def test_a_damaged_kernel_of_the_package_is_not_run(
    damage: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "kernels"))
    level = targets.level()
    path = (folder / level / file_name(SINES, 1, level)).with_suffix(".o")
    code = bytearray(path.read_bytes())
    if damage == "of another level":
        other = next(each for each in targets.LEVELS if each != level)
        code = bytearray((folder / other / file_name(SINES, 1, other)).with_suffix(".o").read_bytes())
    elif damage == "one byte":
        code[len(code) // 2] ^= 1
    else:
        del code[len(code) // 2 :]
    path.write_bytes(code)
    monkeypatch.setattr(object_cache, "_SHIPPED", folder)
    monkeypatch.setattr(object_cache, "_folders", lambda: iter(()))
    assert object_cache.find(file_name(SINES, 1, level), level) is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("x86-64-v5", "want one of x86-64-v4, .*did you mean 'x86-64-v"), ("other", "this processor has")],
)
def test_a_level_that_cannot_be_had_is_refused(wanted: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wanted == "other":
        wanted = next(level for level in targets.LEVELS if not targets.has_level(level))
    monkeypatch.setenv("ARTSIM_LEVEL", wanted)
    with pytest.raises(UsageError, match=said):
        targets.level()


def test_the_flags_of_a_processor_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
    for level, others in (("x86-64-v2", {"x86-64-v3", "x86-64-v4"}), ("x86-64-v3", {"x86-64-v4"})):
        monkeypatch.setattr(targets, "_flags", lambda level=level: targets.LEVELS[level].flags)
        assert targets.has_level(level)
        assert not any(map(targets.has_level, others))
    monkeypatch.setattr(targets.platform, "machine", lambda: "arm64")
    assert targets.has_level("aarch64")
    assert not targets.has_level("x86-64-v2")


@compiles
def test_a_run_made_at_one_level_is_verified_at_it(tmp_path: Path) -> None:
    """On this processor, whose own level is a better one; its own bytes differ from those of x86-64-v2."""
    lower = [level for level in targets.LEVELS if targets.has_level(level)][-1]
    if lower == targets.level():
        pytest.skip("the processor has one level")
    robot = HERE.parents[1] / "robots" / "arm7.urdf"
    command = [sys.executable, "-c", "from artsim.cli.main import start; start()"]
    done = {}
    for level in (lower, targets.level()):
        out = tmp_path / f"{level}.h5"
        environment = os.environ | {"ARTSIM_LEVEL": level}
        subprocess.run([*command, "run", robot, "--steps", "50", "-q", "-o", out], check=True, env=environment)
        verified = subprocess.run([*command, "replay", "--verify", out], capture_output=True, text=True, check=True)
        assert "every byte equal" in verified.stdout
        from artsim.io.readers.recording import open_recording

        with open_recording(out) as recording:
            assert recording.provenance["level"] == level
            done[level] = recording["qvel"][:]
    one, other = done.values()
    assert not np.array_equal(one, other)
    assert np.abs(one - other).max() < 1e-9
