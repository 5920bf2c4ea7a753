"""viser's server restricted to this machine: bound to 127.0.0.1, same origin only. The file that imports viser.

The sharing service is off.

Otherwise a page of another site could open a websocket to it, which browsers permit, or reach it through a host name
that resolves to 127.0.0.1 (DNS rebinding). Host must therefore name this machine, and Origin must be the same. viser
has no option for this and binds to every interface by default.
"""

from __future__ import annotations

import contextlib
import http
import io
import logging
import re
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from artsim.sim.foundation.errors import UsageError

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"
_FORBIDDEN = f"this page is for this machine only: open it as {HOST} or localhost, over ssh -L too\n"
_constructing = threading.Lock()


def start_server(title: str, port: int = 0) -> viser.ViserServer:
    """Start a server; port 0 selects a free one. Raises UsageError: viser is not installed, the port is in use."""
    try:
        import viser
    except ImportError:
        raise UsageError('the viewer needs viser: pip install "artsim[view]"') from None

    class LocalServer(viser.ViserServer):
        def request_share_url(self, verbose: bool = True) -> None:
            """Ignore every request to hand data to a sharing service."""

    with _constructing, _guarded_handshakes(), contextlib.redirect_stdout(io.StringIO()):  # viser prints a banner
        server = LocalServer(host=HOST, port=port, label=title, verbose=False)
    if port and server.get_port() != port:
        taken = server.get_port()
        stop_server(server)
        raise UsageError(f"port {port} is in use; {taken} is free")
    server.gui.configure_theme(show_share_button=False, show_logo=False)
    server.gui.main_panel.dock_right()
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Stop the server without viser's printed line."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def url_of(server: viser.ViserServer) -> str:
    """The URL of the server's page."""
    return f"http://{HOST}:{server.get_port()}"


@contextlib.contextmanager
def _guarded_handshakes() -> Iterator[None]:
    """Make servers that `websockets` starts within the block check the origin of each request first."""
    from websockets.asyncio import server as module

    serve = module.serve
    told = {name: _one_line_logger(name) for name in ("artsim.viewer", "asyncio")}

    def guarded(*arguments: Any, **options: Any) -> Any:
        answer = options.pop("process_request")

        def process_request(connection: Any, request: Any) -> Any:
            if not is_own(request.headers):
                return connection.respond(http.HTTPStatus.FORBIDDEN, _FORBIDDEN)
            return answer(connection, request)

        return serve(*arguments, process_request=process_request, **{**options, "logger": told["artsim.viewer"]})

    module.serve = guarded  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        module.serve = serve  # type: ignore[misc]


def _one_line_logger(name: str) -> logging.Logger:
    """A logger that reports in one line a malformed message of a page, or one for an unknown control."""

    class OneLine(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            what = record.getMessage() if error is None else f"{type(error).__name__}: {error}"
            sys.stderr.write(f"warning: the viewer leaves a message of its page out: {what[:200]!a}\n")

    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [OneLine(logging.ERROR)], False
    return logger


def is_own(headers: Any) -> bool:
    """True if a request addresses this machine by its own name and, if it names an origin, comes from the same page.

    The port may be another one: that of `ssh -L 9000:127.0.0.1:8080` as the browser knows it.
    """
    hosts = headers.get_all("Host")
    if len(hosts) != 1 or not re.fullmatch(rf"(?:{re.escape(HOST)}|localhost)(?::\d{{1,5}})?", hosts[0]):
        return False
    origins = headers.get_all("Origin")
    if not origins:  # browsers send an Origin with every websocket request
        return "websocket" not in headers.get("Upgrade", "").lower()
    return list(origins) == [f"http://{hosts[0]}"]
