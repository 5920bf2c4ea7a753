"""The options that make a scene: several models, where they stand, which of their links do not touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from artsim.cli.options import Base, LoadOptions, is_file
from artsim.loaders.elements import parse_number, quaternion_from_rpy
from artsim.loaders.load import SceneEntry, load_scene
from artsim.loaders.scene import scene_names
from artsim.sim.description import Articulation, Pose
from artsim.sim.errors import UsageError, nearest

R = TypeVar("R")

SCENE_OPTIONS = (
    click.option(
        "--place",
        multiple=True,
        metavar="[NAME=]X,Y,Z[,R,P,Y]",
        help="Where a model stands [m], and roll, pitch, yaw [rad]; NAME is the file's without suffix.",
    ),
    click.option(
        "--srdf",
        multiple=True,
        metavar="[NAME=]FILE",
        help="An SRDF: its disable_collisions do not touch; all other links of the robot do.",
    ),
)


def scene_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a scene; `load_models` uses them."""
    for option in reversed(SCENE_OPTIONS):
        command = option(command)
    return command


def load_models(
    words: Sequence[str],
    load_options: LoadOptions,
    bases: Mapping[str, Base],
    place: Sequence[str],
    srdf: Sequence[str],
) -> Articulation | None:
    """The scene that was asked for; None where it is one model as it is, which needs none of this.

    Raises UsageError for names that no model has, and what load_scene raises.
    """
    models = scene_names(words, is_file)
    if len(models) == 1 and not models[0][0] and not place and not srdf and not bases.keys() - {""}:
        return None
    names = [name for name, _ in models]
    places = {name: read_place(text) for name, text in by_name("--place", place, names)}
    files = dict(by_name("--srdf", srdf, names))
    wanted = {name: bases[name] for name in bases if name}
    for name in wanted:
        if name not in names:
            raise UsageError(f"--base: {unknown(name, names)}")
    entries = [
        SceneEntry(name, file, wanted.get(name), places.get(name, Pose()), files.get(name, "")) for name, file in models
    ]
    return load_scene(entries, default_base=bases.get(""), **{k: v for k, v in load_options.items() if k != "base"})  # type: ignore[arg-type]


def by_name(flag: str, words: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """[NAME=]VALUE as pairs; the name may be left out where there is one model."""
    pairs = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or (flag == "--srdf" and is_file(word)):
            if len(names) > 1:
                raise UsageError(f"{flag}: {word!r} is of which model? Give NAME=…; there are {', '.join(names)}")
            name, value = names[0], word
        if name not in names:
            raise UsageError(f"{flag}: {unknown(name, names)}")
        pairs.append((name, value))
    return pairs


def unknown(name: str, names: Sequence[str]) -> str:
    """The line about a model that is not there."""
    known = [known for known in names if known]
    if not known:
        return f"there is one model, without a name, and none called {name!r}"
    return f"no model is called {name!r}{nearest(name, known) or '; there are ' + ', '.join(known)}"


def read_place(text: str) -> Pose:
    """X,Y,Z or X,Y,Z,ROLL,PITCH,YAW."""
    try:
        numbers = [parse_number(word) for word in text.split(",")]
    except ValueError as error:
        raise UsageError(f"--place: {error}") from None
    if len(numbers) not in (3, 6):
        raise UsageError(f"--place: {text!r} has {len(numbers)} numbers, want X,Y,Z or X,Y,Z,ROLL,PITCH,YAW")
    x, y, z, roll, pitch, yaw = (*numbers, 0.0, 0.0, 0.0)[:6]
    return Pose((x, y, z), quaternion_from_rpy(roll, pitch, yaw))
