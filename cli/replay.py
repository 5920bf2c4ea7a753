"""`artsim replay`: show a stored simulation, or simulate it again and compare the result byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from artsim.cli.main import restart
from artsim.cli.numbers import FACTOR, FROM_0, Number, Whole
from artsim.cli.options import SAMPLES, mesh_options
from artsim.cli.stored_robot import loaded_instead, stored_robot
from artsim.cli.terminal import warn
from artsim.cli.viewer import served, show, viewer_options
from artsim.io.gate.seal import is_whole
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.differences import Difference
from artsim.io.readers.ik_recording import IkRecording
from artsim.io.readers.open_output import open_output
from artsim.io.readers.output import Output
from artsim.io.readers.recording import Recording
from artsim.io.runs.provenance import made_elsewhere
from artsim.io.runs.replay import TOLERANCE, Load
from artsim.io.runs.replay import verify as verify_run
from artsim.loaders.stored import load_stored
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import StoppedError, UsageError, printable
from artsim.sim.foundation.targets import at_level, has_level, level

_UNSEALED = (
    "; it has no seal: it was changed after it was written, or its writer was killed; who wrote what else it holds "
    "(command, dates, notes, foreign data) is not known"
)


@click.command(short_help="Show a stored simulation, or run it again and compare.")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@SAMPLES
@click.option("--verify", is_flag=True, help="Simulate again from the content of the file and compare byte for byte.")
@click.option(
    "--tolerance",
    type=FROM_0,
    default=TOLERANCE,
    show_default=True,
    help="Largest difference of rows that --verify accepts, relative to the largest value of the variable, if another "
    "processor or other versions wrote the file.",
)
@click.option(
    "--threads",
    type=Whole(1),
    default=1,
    show_default=True,
    help="Number of threads with which rollouts and batches are verified.",
)
@click.option(
    "--rate",
    type=FACTOR,
    default=1.0,
    show_default=True,
    metavar="X",
    help="Playback speed: simulated seconds shown per second.",
)
@click.option("--loop", is_flag=True, help="Restart the playback when it reaches the end.")
@click.option("--start", type=FROM_0, default=0.0, metavar="T", help="Time at which the playback starts [s].")
@click.option("--step", type=Whole(1), metavar="N", help="Show every N-th row, 30 per second, regardless of --rate.")
@click.option("--paused", is_flag=True, help="Start with the playback paused.")
@click.option(
    "--spacing", type=Number(), metavar="M", help="Distance between runs shown side by side [m]; 0: superimposed."
)
@click.option(
    "--model",
    metavar="MODEL",
    help="Model file that replaces the stored robot; it must have the same text as the model in FILE.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Accept a --model whose text differs from the stored one, if links, joints and actuators agree.",
)
@viewer_options
@mesh_options
def replay(
    files: tuple[Path, ...],
    samples: tuple[int, ...],
    verify: bool,
    tolerance: float,
    threads: int,
    rate: float,
    loop: bool,
    start: float,
    step: int | None,
    paused: bool,
    spacing: float | None,
    model: str | None,
    force: bool,
    port: int,
    browser: bool,
    packages: Mapping[str, Path],
    mesh_root: Path | None,
) -> None:
    """Show FILE, an output of `artsim run`, or with --sample one of `artsim rollout`, in a browser; several side by
    side. Outputs of `artsim batch` and `artsim ik` can only be verified.

    The page is served to this machine only, until Ctrl-C. With --verify nothing is shown: every file is simulated
    again, and the exit code is 0 if every byte is equal, 3 if not.
    """
    load = None if model is None else loaded_instead(model, packages, mesh_root, force=force, meshes=not verify)
    if verify:
        if samples:
            raise UsageError("--verify takes whole files; leave --sample out")
        _restart_at_level(files)
        for file in files:
            verify_file(file, load or load_stored, tolerance, threads)
        return
    from artsim.io.rollouts.samples import opened_runs
    from artsim.io.viewer.motion import Motion
    from artsim.io.viewer.player import Playback, Player

    how = Playback(rate, loop, start, step or 0, spacing, not paused)
    with contextlib.ExitStack() as stack:
        recordings = stack.enter_context(opened_runs(files, samples, load or load_stored))
        runs: list[tuple[str, Motion, Articulation]] = []
        for recording in recordings:
            robot = stored_robot(recording, packages, mesh_root, load)
            runs.append((recording.path.name, Motion(recording, robot), robot))
        server = stack.enter_context(served(f"artsim: {', '.join(name for name, _, _ in runs)}", port))
        player = Player(server, runs, how)
        warn(player.notes)
        show(server, player.run, browser=browser)


def verify_file(file: Path, load: Load, tolerance: float, threads: int) -> None:
    """Simulate or compute a file again, by kernels of the level that made it where the processor has it.

    Raises StoppedError, which names the first difference.
    """
    with open_output(file) as output:
        elsewhere, kind, made_at = made_elsewhere(output), type(output), _level_of(output)
    with at_level(made_at):
        difference = what = again = None
        for again in (0.0, tolerance) if elsewhere else (0.0,):
            what, difference = _first_difference(file, kind, load, again, threads)
            if difference is None:
                break
    if difference is not None:
        where = "" if difference.step is None else f" at {what} {difference.step}"
        entry = f", in {difference.name!r}" if difference.name else ""
        raise StoppedError(f"{file}: {difference.dataset} differs first{where}{entry}")
    told = f"reproduced within {again:g} of the largest values" if again else "reproduced, every byte equal"
    told += f" (made elsewhere: {elsewhere})" if elsewhere else ""
    told += "" if is_whole(file) else _UNSEALED
    click.echo(printable(f"{file}: {told}"))


def _level_of(output: Output) -> str:
    """The level of the kernels that made an output; empty in older files."""
    return str(output.provenance.get("level", ""))


def _restart_at_level(files: Sequence[Path]) -> None:
    """Begin anew at the level that made all the files, if it is another one: numpy then computes as it did, too."""
    levels = set()
    for file in files:
        with open_output(file) as output:
            levels.add(_level_of(output))
    if len(levels) == 1 and levels != {level()} and has_level(*levels):
        restart(ARTSIM_LEVEL=levels.pop())


def _first_difference(
    file: Path, kind: type[Output], load: Load, tolerance: float, threads: int
) -> tuple[str, Difference | None]:
    """The word for a row of the file, and the first difference between the file and the one made again."""
    if kind is Recording:
        return "step", verify_run(file, load, tolerance=tolerance)
    if kind is BatchRecording:
        from artsim.io.batches.verify import verify_batch

        return "row", verify_batch(file, load, threads=threads, tolerance=tolerance)
    if kind is IkRecording:
        from artsim.io.batches.verify_ik import verify_ik

        return "row", verify_ik(file, load, threads=threads, tolerance=tolerance)
    from artsim.io.rollouts.rollout import verify_rollout

    return "sample", verify_rollout(file, load, threads=threads, tolerance=tolerance)
