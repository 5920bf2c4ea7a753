"""Completion in a shell: models, and the names of a typed model's joints, links, actuators and recorded variables.

click completes commands, options and choices by itself; `eval "$(_ARTSIM_COMPLETE=bash_source artsim)"` turns it on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

MODELS = (".urdf", ".xml", ".sdf", ".xacro", ".mjcf", ".world")


class BashNames(BashComplete):
    """bash's completion, which puts no space after the = of a name whose value follows."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", "COMPREPLY+=($value)\n            [[ $value == *[=/,] ]] && compopt -o nospace"
    )


add_completion_class(BashNames)


def complete_model(incomplete: str) -> list[CompletionItem]:
    """Robots that are shipped with artsim, model files, and folders."""
    from artsim.loaders.names import bundled

    shipped = [name for name in bundled() if name.startswith(incomplete)]
    return [CompletionItem(word) for word in (*shipped, *_files(incomplete))]


def _files(incomplete: str) -> list[str]:
    """The model files and folders whose path begins with a text."""
    typed, _, start = incomplete.rpartition("/")
    before = f"{typed}/" if "/" in incomplete else ""
    found: list[str] = []
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        for path in sorted(Path(before or ".").expanduser().iterdir()):
            if path.name.startswith(start) and not (path.name.startswith(".") and not start):
                if path.is_dir():
                    found.append(f"{before}{path.name}/")
                elif path.suffix.lower() in MODELS:
                    found.append(f"{before}{path.name}")
    return found


def complete_names(name: str, kind: str, incomplete: str) -> list[CompletionItem]:
    """The names of a kind for the option of a setting, with the = after which their value follows."""
    if name == "record":
        return _recorded(incomplete)
    after = "" if name == "keyframe" else "="
    known = _names(_typed_models(), kind)
    return [CompletionItem(f"{word}{after}") for word in known if word.startswith(incomplete)]


def _recorded(incomplete: str) -> list[CompletionItem]:
    """Variables that can be recorded, after the last comma, with the + of those that are recorded besides."""
    from artsim.io.format.schema import RECORDED

    before, comma, last = incomplete.rpartition(",")
    sign = last[: len(last) - len(last.lstrip("+-"))]
    words = (f"{before}{comma}{sign}{name}" for name in (*RECORDED, "energy"))
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _typed_models() -> list[str]:
    """The models among the typed words, which click leaves out behind an option that lacks its value."""
    from artsim.loaders.names import bundled

    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[2:]
    shipped = bundled()
    files = {word: word.rpartition("=")[2] for word in words if not word.startswith("-")}
    return [word for word, file in files.items() if file in shipped or _is_model(Path(file))]


def _is_model(path: Path) -> bool:
    return path.suffix.lower() in MODELS and path.is_file()


def _names(models: Sequence[str], kind: str) -> Iterable[str]:
    """The names of a kind in the model that was typed; none without one, or if it cannot be read."""
    from artsim.loaders.load import SceneEntry, load_articulation, load_scene
    from artsim.loaders.scene import scene_names
    from artsim.sim.articulation.compile_model import compile_model
    from artsim.sim.equipment.equip import labels_of
    from artsim.sim.runs.patterns import names_of

    with contextlib.suppress(Exception):  # a shell has no place for a message
        entries = [SceneEntry(name, file) for name, file in scene_names(models, lambda word: Path(word).is_file())]
        if len(entries) == 1 and not entries[0].name:
            robot = load_articulation(entries[0].file, meshes=False, ignore_unsupported=True)
        else:
            robot = load_scene(entries, meshes=False, ignore_unsupported=True)
        if kind == "link":
            return [link.name for link in robot.links]
        if kind == "keyframe":
            return [keyframe.name for keyframe in robot.keyframes]
        compiled = compile_model(robot)
        return names_of(robot, compiled.model, compiled.labels, labels_of(robot))[kind].known
    return ()
