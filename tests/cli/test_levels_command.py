"""`artsim warmup` for other processors, and the settings of the build backend."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from artsim.cli import warmup
from artsim.cli.main import cli
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.targets import LEVELS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("backend", ROOT / "src" / "backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("words", [["--level", "x86-64-v3"], ["--into", "folder"]])
def test_level_and_folder_go_together(words: list[str]) -> None:
    done = CliRunner().invoke(cli, ["warmup", *words])
    assert done.exit_code == 2
    assert "--level and --into go together" in done.stderr


def test_what_is_built_for_levels_is_what_warmup_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def names(kernels: Iterable[tuple[Entry, int]]) -> list[tuple[str, int]]:
        return [(entry.name + entry.variant, width) for entry, width in kernels]

    monkeypatch.setattr(warmup, "build", lambda kernels, levels, into: asked.append((names(kernels), levels, into)))
    monkeypatch.setattr(warmup, "warm", lambda kernels: asked.append((names(kernels),)))
    words = [word for level in LEVELS for word in ("--level", level)]
    assert CliRunner().invoke(warmup.warmup, [*words, "--into", str(tmp_path)]).exit_code == 0
    assert CliRunner().invoke(warmup.warmup, []).exit_code == 0
    assert asked[0] == (asked[1][0], tuple(LEVELS), tmp_path)
    assert CliRunner().invoke(warmup.warmup, ["--more"]).exit_code == 0
    more = asked[2][0]
    assert len(set(more)) == len(more) and set(asked[1][0]) < set(more)
    assert {("solve_by_pgs_sweeps", 1), ("advance", 1), ("cast_rays", 1), ("simulate_ruled", 1)} <= {*more}


def test_warmup_says_why_kernels_compile_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "warm", lambda kernels: None)
    monkeypatch.setattr(warmup, "slower", lambda: "slower, since numba 9 does not fit: calls typed once")
    done = CliRunner().invoke(warmup.warmup, [])
    assert done.stdout.endswith("\nthey compile slower, since numba 9 does not fit: calls typed once\n")


def test_the_backend_builds_the_levels_that_are_asked_for(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = []
    monkeypatch.setattr(backend, "_KERNELS", tmp_path / "kernels")
    monkeypatch.setattr(backend, "_ROOT", tmp_path)
    monkeypatch.setattr(backend.subprocess, "run", lambda command, **_: commands.append(command))
    monkeypatch.setattr(backend.build_meta, "build_wheel", lambda *_: "a.whl")
    (tmp_path / "kernels" / "x86-64-v2").mkdir(parents=True)
    assert backend.build_wheel("out", {"kernels": "x86-64-v3,aarch64"}) == "a.whl"
    assert commands[0][3:] == [
        *("warmup", "--level", "x86-64-v3", "--level", "aarch64", "--into", str(tmp_path / "kernels"))
    ]
    assert not (tmp_path / "kernels" / "x86-64-v2").exists()
    assert backend.build_wheel("out") == "a.whl"
    assert len(commands) == 1
    with pytest.raises(SystemExit, match="x86-64-v9 is no level"):
        backend.build_wheel("out", {"kernels": "x86-64-v9"})


def test_the_backend_knows_the_levels_and_asks_for_a_compiler_with_them_only(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.build_meta, "get_requires_for_build_wheel", lambda _: [])
    assert tuple(LEVELS) == backend._LEVELS
    assert not any(name.startswith("numba") for name in backend.get_requires_for_build_wheel())
    assert any(name.startswith("numba") for name in backend.get_requires_for_build_wheel({"kernels": "all"}))
