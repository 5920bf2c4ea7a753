"""`artsim report`: the loads of motors in a stored run or rollout, beside their limits."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import click

from artsim.cli.tables import aligned
from artsim.io.readers.open_output import open_output
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.runs.motor_loads import MotorLoad, motor_loads, plain
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError, printable

_NONE = 1e-12  # share of the largest force or speed of all that is shown as 0


@click.command(short_help="Say how hard a stored simulation drives its motors.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.h5")
@click.option("--json", "as_json", is_flag=True, help="Print the loads as one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the loads as CSV.")
def report(file: Path, as_json: bool, as_csv: bool) -> None:
    """Print how hard the motors of FILE.h5, an output of `artsim run` or `artsim rollout`, work, joint by joint: peak
    and RMS of the force, its share of the largest force, the time at that, speed likewise, and the largest power.

    Forces are those of inputs, controllers, drives and actuators in the recorded rows, of all samples of a rollout.
    """
    if as_json and as_csv:
        raise UsageError("give --json or --csv")
    with open_output(file) as output:
        if not isinstance(output, Recording | RolloutRecording):
            raise UsageError(f"{file}: is no output of `artsim run` or `artsim rollout`; only these hold motions")
        loads = motor_loads(output, load_stored)
    if as_json:
        click.echo(json.dumps({"motors": [plain(load) for load in loads]}))
    elif as_csv:
        table = csv.DictWriter(sys.stdout, [*plain(loads[0])] if loads else ["name"], lineterminator="\n")
        table.writeheader()
        table.writerows(plain(load) for load in loads)
    else:
        for line in _lines(loads):
            click.echo(printable(line))


def _lines(loads: list[MotorLoad]) -> list[str]:
    """The loads as a table, then a sentence each on motors at their largest force and at their velocity limit."""
    if not loads:
        return ["no motor has acted, and none has a largest force"]
    cells: list[tuple[str, ...]] = [
        ("", "peak", "RMS", "of the limit", "at the limit", "speed", "of its limit", "power")
    ]
    least = _NONE * max(load.peak for load in loads), _NONE * max(load.speed for load in loads)
    for load in loads:
        moves, acts = load.speed > least[1], load.peak > least[0]
        cells.append(
            (
                load.name,
                f"{load.peak if acts else 0.0:.3g} {load.unit}",
                f"{load.rms if acts else 0.0:.3g}",
                _share(load.share if acts else 0.0, load.limit),
                f"{load.at_limit:.3g} s" if load.at_limit else "",
                f"{load.speed:.3g} {'m/s' if load.unit == 'N' else 'rad/s'}" if moves else "",
                _share(load.speed_share, load.speed_limit) if moves else "",
                f"{load.power:.3g} W" if moves and acts else "",
            )
        )
    lines = aligned(cells)
    full = sorted((load for load in loads if load.at_limit > 0), key=lambda load: -load.at_limit)
    if full:
        told = ", ".join(f"{load.name} for {load.at_limit:.3g} s" for load in full[:6])
        more = f", and {len(full) - 6} more" if len(full) > 6 else ""
        lines.append(f"at their largest force: {told}{more}")
    fast = [load.name for load in loads if load.at_speed_limit > 0]
    if fast:
        lines.append(f"at their velocity limit, or faster: {', '.join(fast)}")
    return lines


def _share(share: float, limit: float) -> str:
    return "no limit" if limit == float("inf") else f"{100.0 * share:.3g} % of {limit:.4g}"
