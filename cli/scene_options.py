"""Options and arguments of commands that take one model or a scene: how models are read, placed and kept apart."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from artsim.cli.options import Base, is_file, model_options, set_arguments
from artsim.loaders.elements import parse_number
from artsim.loaders.load import SceneEntry, load_articulation, load_scene
from artsim.loaders.read_options import ReadOptions
from artsim.loaders.scene import scene_names
from artsim.sim.articulation.description import Articulation, Pose
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.runs.reading import OF_MODEL

R = TypeVar("R")

SCENE_OPTIONS = (
    click.option(
        "--place",
        multiple=True,
        metavar="[NAME=]X,Y,Z[,R,P,Y]",
        help="Position [m] and roll, pitch, yaw [rad, or 90deg] of a model; NAME is its file name without suffix.",
    ),
    click.option(
        "--srdf",
        multiple=True,
        metavar="[NAME=]FILE",
        help="SRDF file of a model: pairs in its disable_collisions do not collide, all other links of the robot do.",
    ),
    click.option(
        "--loops",
        multiple=True,
        metavar="[NAME=]FILE",
        help="TOML file of loops that close a model's tree, [[loop]] tables: connect, weld, hinge, slider, "
        "cylindrical, planar, joint (any free axes), distance, gear and tendon; rigid or with frequency and "
        "damping_ratio, k and d, or compliance and compliance_damping; on free axes with limits, friction, damping, "
        "stiffness and drive.",
    ),
)


class SceneOptions(NamedTuple):
    """Options of reading models, their bases by name (fixed or floating), their places, SRDFs and files of loops."""

    load: ReadOptions
    bases: dict[str, Base]
    place: tuple[str, ...]
    srdf: tuple[str, ...]
    loops: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if no option asks for a placed, renamed or filtered model."""
        return not (self.place or self.srdf or self.loops or self.bases.keys() - {""})

    def recorded(self, articulation: Articulation) -> dict[str, Any]:
        """The entries of a run's configuration that say how its model was read."""
        return {**{name: self.load[name] for name in OF_MODEL}, "base": articulation.base}


def scene_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of loading one or several models; the command receives them as one argument, `scene`."""

    @functools.wraps(command)
    def wrapped(*args: Any, load_options: ReadOptions, bases: dict[str, Base], **kwargs: Any) -> R:
        placed = {name: kwargs.pop(name) for name in ("place", "srdf", "loops")}
        return command(*args, scene=SceneOptions(load_options, bases, **placed), **kwargs)

    decorated: Callable[..., R] = model_options(wrapped)
    for option in reversed(SCENE_OPTIONS):
        decorated = option(decorated)
    return decorated


def models_argument(*, required: bool = True) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """The argument `models`: files, or names and files."""
    return click.argument(
        "models",
        nargs=-1,
        required=required,
        metavar="[NAME=]MODEL… [NAME:=VALUE]…",
        shell_complete=_complete_model,
    )


def _complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    from artsim.cli.completion import complete_model  # for a shell alone

    return complete_model(incomplete)


def without_arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the models from the NAME:=VALUE words between them."""
    models = [word for word in words if ":=" not in word or is_file(word)]
    return models, [word for word in words if word not in models]


def input_files(words: Sequence[str], scene: SceneOptions) -> list[str]:
    """The files from which models, SRDFs and loops are read."""
    words, _ = without_arguments(words)
    beside = [word if is_file(word) else word.partition("=")[2] for word in (*scene.srdf, *scene.loops)]
    return [file for _, file in scene_names(words, is_file)] + beside


def load_models(words: Sequence[str], scene: SceneOptions) -> Articulation:
    """Load the single model as it is, or the scene that was asked for.

    Raises UsageError for names that no model has, and the errors of load_articulation and load_scene.
    """
    words, arguments = without_arguments(words)
    if not words:
        raise UsageError("there is no MODEL beside NAME:=VALUE")
    set_arguments(scene.load, arguments)
    models = scene_names(words, is_file)
    if len(models) == 1 and not models[0][0] and scene.is_plain:
        return load_articulation(models[0][1], **scene.load)
    names = [name for name, _ in models]
    bases = scene.bases
    places = {name: read_place(text) for name, text in by_name("--place", scene.place, names)}
    files = dict(by_name("--srdf", scene.srdf, names))
    loops = dict(by_name("--loops", scene.loops, names))
    wanted = {name: bases[name] for name in bases if name}
    for name in wanted:
        if name not in names:
            raise UsageError(f"--base: {unknown(name, names)}")
    entries = [
        SceneEntry(name, file, wanted.get(name), places.get(name, Pose()), files.get(name, ""), loops.get(name, ""))
        for name, file in models
    ]
    return load_scene(entries, default_base=bases.get(""), **scene.load)


def by_name(flag: str, words: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Read [NAME=]VALUE words as pairs; with one model the name may be left out."""
    pairs: list[tuple[str, str]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or (flag in ("--srdf", "--loops") and is_file(word)):
            if len(names) > 1:
                raise UsageError(f"{flag}: {word!r} is of which model? Give NAME=…; there are {', '.join(names)}")
            name, value = names[0], word
        if name not in names:
            raise UsageError(f"{flag}: {unknown(name, names)}")
        if not value:
            raise UsageError(f"{flag}: {word!r} names nothing")
        if any(name == known for known, _ in pairs):
            raise UsageError(f"{flag}: {f'model {name!r}' if name else 'the model'} has two")
        pairs.append((name, value))
    return pairs


def unknown(name: str, names: Sequence[str]) -> str:
    """The error line for a model name that does not exist."""
    known = [known for known in names if known]
    if not known:
        return f"there is one model, without a name, and none called {name!r}"
    return f"no model is called {name!r}{nearest(name, known) or '; there are ' + ', '.join(known)}"


def _angle(word: str) -> float:
    """An angle in rad, or with the suffix deg. Raises ValueError."""
    text = word.strip()
    return math.radians(parse_number(text.removesuffix("deg"))) if text.endswith("deg") else parse_number(text)


def read_place(text: str) -> Pose:
    """Read X,Y,Z or X,Y,Z,ROLL,PITCH,YAW [m, rad]; angles may have the suffix deg."""
    words = text.split(",")
    try:
        numbers = [parse_number(word) for word in words[:3]]
        numbers += map(_angle, words[3:])
    except ValueError as error:
        raise UsageError(f"--place: {error}") from None
    if len(numbers) not in (3, 6):
        raise UsageError(f"--place: {text!r} has {len(numbers)} numbers, want X,Y,Z or X,Y,Z,ROLL,PITCH,YAW")
    x, y, z, roll, pitch, yaw = (*numbers, 0.0, 0.0, 0.0)[:6]
    return Pose((x, y, z), quaternion_from_rpy(roll, pitch, yaw))
