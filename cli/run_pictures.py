"""Pictures of a run at its end: `--html` and `--plot` of `artsim run`, also of a run whose file is not kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from artsim.cli.options import refuse_own_input
from artsim.cli.progress import storage_errors
from artsim.cli.run_output import Destination
from artsim.cli.terminal import warn
from artsim.io.output_file.claim import check_output
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import UsageError

R = TypeVar("R")


class Pictures(NamedTuple):
    """The files of a run's pictures: a page that plays it, and a figure over time; None for none."""

    html: Path | None
    plot: Path | None

    @property
    def files(self) -> list[Path]:
        return [file for file in self if file is not None]

    def check(self, to: Destination, *inputs: str | None) -> None:
        """Refuse pictures that cannot be written, or that are another output or one of the inputs."""
        for file in self.files:
            refuse_own_input(file, *inputs)
            check_output(file, force=to.force)
        if self.plot is not None:
            from artsim.io.exports.figures import check_figure

            check_figure(self.plot)
        outputs = [file.absolute() for file in (to.output, *self.files) if file is not None]
        if len({*outputs}) < len(outputs):
            raise UsageError("two outputs have the same file")

    @contextmanager
    def kept(self, to: Destination) -> Iterator[Destination]:
        """The destination of the run; where its file is not to be kept but pictures are drawn, a temporary one."""
        if to.output is not None or not self.files:
            yield to
            return
        import tempfile  # a run without pictures is started faster without it

        with tempfile.TemporaryDirectory(prefix="artsim-run-") as folder:
            yield to._replace(output=Path(folder) / f"{self.files[0].stem}.h5", checkpoint=0)

    def draw(self, file: Path, robot: Articulation, *, quiet: bool) -> dict[str, int]:
        """Draw the pictures of the run in `file`; the sizes of the written files [bytes] by their names."""
        from artsim.io.readers.recording import open_recording
        from artsim.sim.geometry.solids import with_pieces

        notes: list[str] = []
        with open_recording(file) as recording, storage_errors():
            if self.html is not None:
                from artsim.io.exports.formats import write
                from artsim.io.exports.request import Export

                drawn = with_pieces(robot, recording.kept)
                notes += write("html", Export(recording, self.html, lambda: drawn))
            if self.plot is not None:
                from artsim.io.exports.figures import draw

                notes += draw([recording], self.plot)
        if not quiet:
            warn(notes)
        return {str(path): path.stat().st_size for path in self.files}


def picture_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add these options; the command receives `pictures: Pictures`."""

    @functools.wraps(command)
    def wrapped(*args: Any, html: Path | None, plot: Path | None, **kwargs: Any) -> R:
        return command(*args, pictures=Pictures(html, plot), **kwargs)

    decorated: Callable[..., R] = wrapped
    for name, metavar, told in (
        ("--plot", "FILE.png", "Figure over time, as by `artsim plot`; .svg and .pdf, too."),
        ("--html", "FILE.html", "Page that plays the run offline."),
    ):
        decorated = click.option(name, type=click.Path(path_type=Path), metavar=metavar, help=told)(decorated)
    return decorated
