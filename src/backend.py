"""setuptools' build backend, which on request makes wheels that carry the compiled kernels.

`pip wheel . -C kernels=all`, or a list of levels such as `-C kernels=x86-64-v3,aarch64` (sim/foundation/
targets.py). Such a wheel needs no compiler at its first use on these processors under Linux; elsewhere it compiles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

_ROOT = Path(__file__).parents[1]
_KERNELS = _ROOT / "src" / "artsim" / "kernels"
_LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64")

Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a build needs; with kernels, what artsim needs to run."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    if _levels(config_settings):
        with (_ROOT / "pyproject.toml").open("rb") as stream:
            needed += tomllib.load(stream)["project"]["dependencies"]
    return needed


def build_wheel(directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel, with the kernels asked for and no others."""
    if levels := _levels(config_settings):
        options = [word for level in levels for word in ("--level", level)]
        start = "from artsim.cli.main import start; start()"
        command = [sys.executable, "-c", start, "warmup", *options, "--into", str(_KERNELS)]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(_ROOT / "src")})
    for folder in _KERNELS.glob("*"):
        if folder.name not in levels:
            shutil.rmtree(folder)
    shutil.rmtree(_ROOT / "build" / "lib" / "artsim" / "kernels", ignore_errors=True)
    return str(build_meta.build_wheel(directory, config_settings, metadata_directory))


def _levels(config_settings: Settings) -> list[str]:
    wanted = str((config_settings or {}).get("kernels", ""))
    levels = list(_LEVELS) if wanted == "all" else [word for word in wanted.split(",") if word]
    if unknown := [level for level in levels if level not in _LEVELS]:
        raise SystemExit(f"kernels={wanted}: {unknown[0]} is no level; want all, or some of {','.join(_LEVELS)}")
    return levels
