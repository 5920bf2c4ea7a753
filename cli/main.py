"""The `artsim` command: imports only the subcommand asked for, and turns errors into one line and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TextIO

import click

from artsim import __version__
from artsim.cli.terminal import one_line, without_foreign_hints
from artsim.sim.foundation.errors import (
    ArtsimError,
    MemoryShortageError,
    MissingInputError,
    StorageError,
    UsageError,
    nearest,
)
from artsim.sim.foundation.targets import level, settle_libraries

# The short help of each command stands here so that `artsim --help` imports no command.
COMMANDS = {
    "run": "Simulate a robot and write the result to an HDF5 file.",
    "compute": "Compute rigid-body quantities of one configuration.",
    "batch": "Compute rigid-body quantities for many configurations.",
    "linearize": "Find linear models of a robot about a state.",
    "ik": "Find configurations for poses of links.",
    "trajectory": "Find the fastest motion through way points.",
    "rollout": "Simulate many variations of a run.",
    "replay": "Show a stored simulation, or run it again and compare.",
    "view": "Show a robot with a slider for every joint.",
    "plot": "Draw a stored simulation over time, or a map of the workspace.",
    "report": "Say how hard a stored simulation drives its motors.",
    "export": "Write a stored simulation in another format.",
    "check": "Validate a robot file and print its tree.",
    "convert": "Write a robot in another format, with a proof.",
    "edit": "Change a robot, and write it as a file.",
    "attach": "Fix one robot to a link of another, as one file.",
    "info": "Say what a robot file or an output file holds.",
    "recover": "Recover the output file of a run that was killed.",
    "bench": "Time the steps of a robot, phase by phase.",
    "warmup": "Compile and cache the engine's kernels.",
}


class ArtsimGroup(click.Group):
    """The group of commands, each of which is a module artsim.cli.<name> with a click command of that name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands whose module exists."""
        return [name for name in COMMANDS if importlib.util.find_spec(f"artsim.cli.{name}")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(importlib.import_module(f"artsim.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words begin with; an unknown one is refused with the nearest."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            ctx.fail(f"no command {name!r}{nearest(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in the help without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line; printing the help can fail like any other output."""
        with exit_codes(debug=False):
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush stdout, so that a failed write is reported here and not while Python shuts down."""
        with exit_codes(debug=ctx.params["debug"], options=lambda: self._options(ctx)):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def _options(self, ctx: click.Context) -> set[str]:
        """The options of the command that was called."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        return set() if command is None else {option for param in command.params for option in param.opts}


@contextlib.contextmanager
def exit_codes(*, debug: bool, options: Callable[[], set[str]] | None = None) -> Iterator[None]:
    """Turn every failure into one line on stderr and its exit code.

    `options`: those of the command; hints at others, for which some other command has a use, are left out.
    """
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        drop_output(sys.stdout)
        raise SystemExit(141) from None
    except ArtsimError as error:
        told = str(error) if options is None else without_foreign_hints(str(error), options())
        stop(told, error.exit_code, debug=debug)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            drop_output(sys.stdout)
            named = f"{error.filename}: " if error.filename else ""
            stop(f"{named}cannot write: {error.strerror}", StorageError.exit_code, debug=debug)
        if error.errno == errno.ENAMETOOLONG:
            stop(f"{str(error.filename)[:60]}…: {error.strerror}", MissingInputError.exit_code, debug=debug)
        stop_internal(error, debug=debug)
    except MemoryError as error:  # numpy's says how much was wanted, ours too
        wanted = f": {error}" if str(error) else ""
        stop(f"not enough memory for this{wanted}", MemoryShortageError.exit_code, debug=debug)
    except UnicodeEncodeError:
        stop("a file's name is no valid text (UTF-8)", UsageError.exit_code, debug=debug)
    except Exception as error:
        stop_internal(error, debug=debug)


def stop(message: str, exit_code: int, *, debug: bool) -> NoReturn:
    """Print the message and exit; with --debug print the traceback first."""
    if debug:
        import traceback

        traceback.print_exc()
    try:
        click.echo(one_line(message), err=True)
    except OSError:  # stderr has no reader: the exit code still reports the failure
        drop_output(sys.stderr)
    raise SystemExit(exit_code) from None


def stop_internal(error: Exception, *, debug: bool) -> NoReturn:
    """Report an internal error and exit."""
    stop(f"internal error: {type(error).__name__}: {error} (--debug shows where)", ArtsimError.exit_code, debug=debug)


def drop_output(stream: TextIO) -> None:
    """Discard buffered output of a stream without a reader; otherwise Python complains when it shuts down."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(cls=ArtsimGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="artsim")
@click.option("--debug", is_flag=True, envvar="ARTSIM_DEBUG", help="Print the traceback of an error.")
def cli(debug: bool) -> None:
    """Simulate articulated robots: URDF, MJCF or SDF in, labelled HDF5 out."""


def _open_standard_streams() -> None:
    """Open streams that the caller closed (`>&-`) on the null device; else the next file opened would become stdout."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.dup2(null := os.open(os.devnull, os.O_RDWR), number)
                if null > 2:
                    os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def main() -> None:
    """Run the command line. --debug may stand anywhere on it."""
    if not sys.warnoptions:  # Python's lines would stand beside a refusal; numbers are checked on input and output
        warnings.simplefilter("ignore")
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    if "_ARTSIM_COMPLETE" in os.environ:  # click's own variable: a shell asks for completions
        importlib.import_module("artsim.cli.completion")
    cli.main(arguments, prog_name="artsim")


def start() -> None:
    """Run `main` in a process of its own with a fast start and end, which saves 0.1 s in a run of a few steps."""
    gc.set_threshold(100_000, 20, 20)  # imported modules persist; the collector would traverse them repeatedly
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads of numpy's BLAS do not help with small matrices
    _settled.update(settle_libraries(level()))
    done: list[bool] = []
    atexit.register(_leave, done)  # the first to be registered is the last to be called
    try:
        main()
    except SystemExit as end:
        done.append(not end.code)
        raise


_settled: dict[str, str] = {}  # variables of the environment that `start` has set


def restart(**environment: str) -> None:
    """Begin this command anew with variables of the environment changed; do nothing in a process of somebody else."""
    if _settled and os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        start_anew = "from artsim.cli.main import start; start()"
        before = {name: value for name, value in os.environ.items() if name not in _settled}
        os.execve(sys.executable, [sys.executable, "-c", start_anew, *sys.argv[1:]], before | environment)


def _leave(done: list[bool]) -> None:
    """Exit at once after everything is written and closed: the system frees memory 50 ms faster than Python."""
    if done == [True]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
