"""The Python controller of a run, which only a command line that was typed may choose."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from artsim.cli.options import is_file
from artsim.sim.foundation.errors import MissingInputError, UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.simulate import ControllerFunction


def typed_controller(ctx: click.Context, config: RunConfig) -> ControllerFunction | None:
    """Load the Python controller of a run, if it has one.

    Raises UsageError for a controller that was not typed on the command line: neither a file from somebody else nor the
    environment may choose what code runs here.
    """
    if not config.is_python:
        return None
    if ctx.get_parameter_source("controller") != click.core.ParameterSource.COMMANDLINE:
        raise UsageError(
            f"controller {config.controller!r} is not run: Python controllers run only when typed on the command line; "
            f"look at the file, then give --controller {config.controller}, or another --controller"
        )
    return python_function("--controller", config.controller, 0)


def typed_policy(ctx: click.Context, words: str | None) -> Callable[..., Any] | str | None:
    """Load the policy FILE.py:FUNCTION of a rollout; another word is the name of an ONNX file.

    Raises UsageError for a function that was not typed on the command line, MissingInputError.
    """
    typed = ctx.get_parameter_source("policy") == click.core.ParameterSource.COMMANDLINE
    if words is not None and ".py:" in words and not typed:
        raise UsageError(f"--policy {words!r} is not run: Python functions run only when typed on the command line")
    return policy_of(words)


def policy_of(words: str | None) -> Callable[..., Any] | str | None:
    """The function FILE.py:FUNCTION; other words as they are, which name an ONNX file. Raises MissingInputError."""
    return words if words is None or ".py:" not in words else python_function("--policy", words, 2)


def policy_file(words: str) -> str:
    """The file of a policy."""
    return words.rpartition(":")[0] if ".py:" in words else words


def python_function(option: str, words: str, time: int) -> Callable[..., Any]:
    """Load FILE.py:FUNCTION, whose argument number `time` is the time [s]. Raises MissingInputError, UsageError."""
    import runpy

    path, _, name = words.rpartition(":")
    if not is_file(path):
        raise MissingInputError(f"{option}: {path}: no such file")
    sys.path.insert(
        0, str(Path(path).resolve().parent)
    )  # so that it can import modules beside it, as when Python runs it
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is the result's
            scope = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{option}: {path}: {type(error).__name__}: {error}") from error
    if not callable(scope.get(name)):
        raise UsageError(f"{option}: {path} has no function {name!r}")
    function = scope[name]

    def ask(*given: Any) -> Any:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return function(*given)
        except (Exception, SystemExit) as error:
            told = f"{option}: {name} at t = {given[time]:.6g} s: {type(error).__name__}: {error}"
            raise UsageError(told) from error

    ask.__qualname__ = f"{Path(path).name}:{name}"
    return ask


def resumed_controller(ctx: click.Context, words: str) -> ControllerFunction | None:
    """Load the Python controller typed beside --resume; one set in the environment is not run."""
    typed = ctx.get_parameter_source("controller") == click.core.ParameterSource.COMMANDLINE
    if typed and ".py:" not in words:
        raise UsageError(f"--controller {words}: --resume takes the Python function that controlled the run")
    return python_function("--controller", words, 0) if typed else None
