"""Shared by the commands with a viewer: options, the server, and the loop that a signal ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from artsim.cli.numbers import Whole
from artsim.cli.progress import caught_signals

R = TypeVar("R")

VIEWER_OPTIONS = (
    click.option(
        "--port",
        type=Whole(0, 65535),
        default=0,
        envvar="ARTSIM_PORT",
        help="Port of the page on 127.0.0.1; default: a free port.",
    ),
    click.option("--browser", is_flag=True, help="Open the page in the web browser."),
)


def viewer_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of the page: `port` and `browser`."""
    for option in reversed(VIEWER_OPTIONS):
        command = option(command)
    return command


@contextlib.contextmanager
def served(title: str, port: int) -> Iterator[Any]:
    """Start a server on this machine and stop it at the end. Raises UsageError without viser or for a taken port."""
    from artsim.io.viewer.server import start_server, stop_server

    server = start_server(title, port)
    try:
        yield server
    finally:
        stop_server(server)


def show(server: Any, run: Callable[[Callable[[], bool]], None], *, browser: bool) -> None:
    """Print the page's address and run until a signal, which determines the exit code."""
    from artsim.io.viewer.server import url_of

    with caught_signals() as caught:
        click.echo(f"viewer at {url_of(server)}, for this machine only; Ctrl-C ends it")
        if "SSH_CONNECTION" in os.environ:
            port = server.get_port()
            click.echo(
                f"from where you sit: ssh -L {port}:127.0.0.1:{port} to this machine, then open that address; "
                f"if {port} is taken there: ssh -L 9000:127.0.0.1:{port}, then http://127.0.0.1:9000"
            )
        if browser:
            import webbrowser

            webbrowser.open(url_of(server))
        run(lambda: bool(caught))
    raise SystemExit(128 + caught[0])
