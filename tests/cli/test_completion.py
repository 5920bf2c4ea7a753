"""What a shell offers on <TAB>: robots and files, names of the typed model, variables; and bash's function itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

START = "from artsim.cli.main import main; main()"


def offered(*words: str, folder: Path = ROOT) -> list[str]:
    """The words that are offered for the last one."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_ARTSIM_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", START], cwd=folder, env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert not done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "ar"), ["arm7"]),
        (("run", "robots/qua"), ["robots/quadruped.urdf"]),
        (("check", "rob"), ["robots/"]),
        (("run", "arm7", "--q0", "joint_"), [f"joint_{n}=" for n in range(1, 8)]),
        (("run", "robots/clamp.xml", "--control", ""), ["grip="]),
        (("run", "robots/leg.xml", "--keyframe", "cr"), ["crouched"]),
        (("run", "arm7", "--wrench", "t"), ["tool0="]),
        (("run", "a=arm7", "b=robots/leg.xml", "--damping", "b/k"), ["b/knee="]),
        (("run", "arm7", "--record", "qpos,+link_p"), ["qpos,+link_position"]),
        (("run", "robots/none.urdf", "--q0", "j"), []),
        (("run", "arm7", "--solver", "new"), ["newton"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_words_that_are_offered(words: tuple[str, ...], expected: list[str]) -> None:
    assert offered("artsim", *words) == expected


def test_a_damaged_model_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.urdf").write_text("<robot><link/>")
    assert offered("artsim", "run", "bad.urdf", "--q0", "", folder=tmp_path) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_puts_no_space_behind_a_name(tmp_path: Path) -> None:
    """bash's own function, with a stand-in for `compopt`, which acts within a completion only."""
    (tmp_path / "artsim").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{START}" "$@"\n')
    (tmp_path / "artsim").chmod(0o755)
    script = """eval "$(_ARTSIM_COMPLETE=bash_source artsim)"
compopt() { echo "$@"; }
COMP_WORDS=(artsim run arm7 --q0 joint_7); COMP_CWORD=4
_artsim_completion artsim; echo "${COMPREPLY[@]}"
COMP_WORDS=(artsim run arm); COMP_CWORD=2; COMPREPLY=()
_artsim_completion artsim; echo "${COMPREPLY[@]}"
"""
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["-o nospace", "joint_7=", "arm7"], done.stderr
