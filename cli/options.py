"""Options that several commands share, each defined once: how a model file and its meshes are read."""

from __future__ import annotations

import contextlib
import functools
import inspect
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import click

from artsim.cli.numbers import Number, Whole
from artsim.cli.setting_options import option_of
from artsim.loaders.read_options import DEFAULTS, ReadOptions
from artsim.sim.foundation.errors import ArtsimError, MissingInputError, UsageError
from artsim.sim.foundation.files import read_start
from artsim.sim.runs.reading import OF_MODEL

R = TypeVar("R")
STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
Base = Literal["fixed", "floating"]
_POSITIVE = Number(0, 1e9, min_open=True, max_open=True)


class OneModelOptions(ReadOptions, total=False):
    """The options of commands of one model, of which `load_articulation` reads loops, too."""

    loops: str | None


def reading_words(options: ReadOptions | OneModelOptions) -> list[str]:
    """The options as typed on a command line, as far as they decide whether and how a model is read."""
    words = [word for name, folder in options["packages"].items() for word in ("--package", f"{name}={folder}")]
    valued = {
        "--mesh-root": options["mesh_root"],
        "--density": options["density"],
        "--max-faces": options["max_faces"],
        "--loops": options.get("loops"),
    }
    words += [word for name, value in valued.items() if value is not None for word in (name, f"{value}")]
    flags = {
        "--no-meshes": not options["meshes"],
        "--balance-inertia": options["balance_inertia"],
        "--ignore-unsupported": options["ignore_unsupported"],
        "--xacro": options["xacro"],
    }
    return [*words, *(name for name, given in flags.items() if given)]


def is_file(word: str) -> bool:
    """True if a typed word is a file; a typed list of numbers can be longer than a file name may be."""
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def read_input(path: Path, most: int) -> bytes:
    """Read a typed file, or wait for a pipe and read it. Raises MissingInputError, and UsageError for a device or for
    more than `most` bytes.
    """
    try:
        about = path.stat()
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISFIFO(about.st_mode)):
            raise UsageError(f"{path}: is neither a file nor a pipe")
        if stat.S_ISFIFO(about.st_mode) and not str(path).startswith(STREAMS):
            raise UsageError(f"{path}: is a named pipe, which may never end; want a file")
        if stat.S_ISREG(about.st_mode):
            data = read_start(path, most + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(most + 1)
    except ArtsimError:
        raise
    except (OSError, ValueError) as error:
        raise MissingInputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most:
        raise UsageError(f"{path}: more than {most} bytes")
    return data


def read_packages(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Path]:
    """Read each NAME=DIR; the folders must exist."""
    packages: dict[str, Path] = {}
    for value in values:
        name, equals, folder = value.partition("=")
        if not (name and equals and folder):
            raise click.BadParameter(f"{value!r} is not NAME=DIR")
        if not Path(folder).is_dir():
            raise click.BadParameter(f"{folder!r} is not a folder")
        packages[name] = Path(folder)
    return packages


def read_bases(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Base]:
    """Read each [NAME=]fixed|floating, by name; the base given without a name stands under ""."""
    bases: dict[str, Base] = {}
    for value in values:
        name, _, base = value.rpartition("=")
        if base not in ("fixed", "floating"):
            raise click.BadParameter(f"{value!r} is not fixed, floating, NAME=fixed or NAME=floating")
        bases[name] = cast(Base, base)
    return bases


def set_arguments(load: ReadOptions, words: Sequence[str]) -> None:
    """Store NAME:=VALUE words as arguments of xacro macros.

    Raises UsageError for a word that is not NAME:=VALUE, and for arguments without --xacro.
    """
    pairs = [word.partition(":=") for word in words]
    for name, sign, value in pairs:
        if not sign or not name.isidentifier():
            raise UsageError(f"{name + sign + value!r} is not NAME:=VALUE")
    if pairs and not load["xacro"]:
        raise UsageError(f"{words[0]} is an argument of xacro macros, which --xacro expands")
    load["arguments"] = {name: value for name, _, value in pairs}


def refuse_own_input(output: Path, *inputs: str | None) -> None:
    """Raise UsageError when the output is one of the inputs, which `--force` would destroy."""
    for name in inputs:
        same = False
        with contextlib.suppress(OSError, ValueError):
            same = bool(name) and name != "-" and output.exists() and output.samefile(str(name))
        if same:
            raise UsageError(f"--output {output} is the input itself")


MESH_OPTIONS = (
    click.option(
        "--package",
        "packages",
        callback=read_packages,
        multiple=True,
        metavar="NAME=DIR",
        help="Folder that package://NAME/ stands for; may be repeated.",
    ),
    click.option(
        "--mesh-root",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        envvar="ARTSIM_MESH_ROOT",
        help="Further folder from which meshes may be read.",
    ),
)

LOAD_OPTIONS = (
    option_of(
        "base",
        OF_MODEL["base"],
        type=str,
        callback=read_bases,
        multiple=True,
        default=None,
        metavar="[NAME=]fixed|floating",
        envvar="ARTSIM_BASE",
    ),
    *MESH_OPTIONS,
    click.option("--no-meshes", is_flag=True, envvar="ARTSIM_NO_MESHES", help="Do not look for mesh files."),
    click.option(
        "--max-xml-mb",
        type=_POSITIVE,
        default=DEFAULTS["max_xml_mb"],
        show_default=True,
        metavar="MB",
        envvar="ARTSIM_MAX_XML_MB",
        help="Largest model file that is read [MB]; larger ones are refused.",
    ),
    click.option(
        "--max-faces",
        type=Whole(1),
        metavar="N",
        envvar="ARTSIM_MAX_FACES",
        help="Largest number of triangles of a mesh; larger meshes are refused. Default: 2000000.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        envvar="ARTSIM_STRICT",
        help="Refuse a model that is incomplete or ambiguous instead of guessing; end with exit code 3 where a run "
        "would only warn that its result is wrong, or a batch that rows are beyond joint limits.",
    ),
    option_of("balance_inertia", OF_MODEL["balance_inertia"], envvar="ARTSIM_BALANCE_INERTIA"),
    option_of("density", OF_MODEL["density"], type=_POSITIVE, metavar="KG/M3", envvar="ARTSIM_DENSITY"),
    option_of("ignore_unsupported", OF_MODEL["ignore_unsupported"], envvar="ARTSIM_IGNORE_UNSUPPORTED"),
    click.option(
        "--xacro",
        is_flag=True,
        help="Expand xacro macros first, in a child process with limits. Macros are programs that can read files of "
        "this machine and run code: use this option only for files that you trust.",
    ),
)


LOOPS_OF_ONE = click.option(
    "--loops",
    metavar="FILE",
    envvar="ARTSIM_LOOPS",
    help="TOML file of loops that close the model's tree, as for `artsim run`; gears act, the others are left open.",
)

SAMPLES = click.option(
    "--sample",
    "samples",
    type=Whole(0),
    multiple=True,
    metavar="K",
    help="Sample of an output of `artsim rollout`, counted from 0; may be repeated.",
)


def mesh_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that locate a stored model's meshes: `packages` and `mesh_root`."""
    for option in reversed(MESH_OPTIONS):
        command = option(command)
    return command


def model_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of loading a model; the command receives them as one argument, `load_options: ReadOptions`.

    A command of scenes also takes `bases`, the bases of named models; for any other command a named base is an error,
    and it reads the loops of its one model.
    """
    takes_bases = "bases" in inspect.signature(command, follow_wrapped=False).parameters

    @functools.wraps(command)
    def wrapped(*args: Any, base: dict[str, Base], no_meshes: bool, **kwargs: Any) -> R:
        named = next((name for name in base if name), None)
        if takes_bases:
            kwargs["bases"] = base
        elif named is not None:
            raise UsageError(f"--base {named}={base[named]}: there is one model, which needs no name")
        own = {"base", "meshes", "arguments"}
        known = sorted(DEFAULTS.keys() - own | (set() if takes_bases else {"loops"}))
        read = {name: kwargs.pop(name) for name in known}
        options = {**read, "base": base.get("", "fixed"), "meshes": not no_meshes, "arguments": {}}
        return command(*args, load_options=options, **kwargs)

    decorated: Callable[..., R] = wrapped
    for option in reversed((*LOAD_OPTIONS, *(() if takes_bases else (LOOPS_OF_ONE,)))):
        decorated = option(decorated)
    return decorated
