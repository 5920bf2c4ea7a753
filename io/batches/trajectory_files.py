"""Way points of trajectories read from files, and trajectories written as control files that runs follow."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from artsim.io.batches.csv_output import STDOUT
from artsim.io.inputs.configurations import open_input
from artsim.io.inputs.pose_files import PoseFile
from artsim.io.output_file.claim import check_output
from artsim.io.output_file.whole_file import written_whole
from artsim.sim.articulation.model import Labels
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.trajectory import Trajectory

SUFFIXES = (".csv", ".npz", ".h5", ".hdf5")

_MOST = 10_000  # way points


def read_way_points(file: str, labels: Labels, link: str | None) -> tuple[Real, Real | None]:
    """Configurations (k, nq) and None; or positions (k, 3) of a link, and its quaternions (k, 4) if the file has any.

    Raises the errors of open_input and PoseFile; UsageError for too many rows, and for poses without positions.
    """
    if link is None:
        source = open_input(file, labels, ("qpos",), ())
        try:
            _refuse_many(file, source.rows)
            points = np.empty((source.rows, len(labels.coords)))
            source.read(0, source.rows, {"qpos": points})
        finally:
            source.close()
        return points, None
    with PoseFile(file, (link,)) as poses:
        _refuse_many(file, poses.rows)
        found = poses.read(0, poses.rows)
    if "position" not in found:
        raise UsageError(f"{file}: way points of a link need positions")
    turn = found.get("quaternion")
    return found["position"][:, 0], None if turn is None else turn[:, 0]


def _refuse_many(file: str, rows: int) -> None:
    if rows > _MOST:
        raise UsageError(f"{file}: {rows} way points, want at most {_MOST}")


def check_trajectory_output(output: Path, *, force: bool) -> None:
    """Refuse an output that cannot be written; - is CSV on standard output. Raises UsageError, OutputError."""
    if str(output) == STDOUT:
        return
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{output}: trajectories are written as {', '.join(SUFFIXES[:3])}, or - for CSV on stdout")
    check_output(output, force=force)


def write_trajectory(found: Trajectory, output: Path, kinds: Sequence[str]) -> None:
    """Write a trajectory as a control file with these kinds of inputs. Raises UsageError, StorageError.

    .npz and .h5 also hold qpos, qvel and qacc of all joints, the --input of `artsim batch`.
    """
    if output.suffix.lower() == ".csv":
        data = trajectory_text(found, kinds).encode()
        with written_whole(output, len(data)) as partial:
            partial.write_bytes(data)
        return
    arrays = {**found.inputs(kinds), "qpos": found.qpos, "qvel": found.qvel, "qacc": found.qacc}
    with written_whole(output) as partial:
        if output.suffix.lower() == ".npz":
            np.savez(partial, **arrays)  # type: ignore[arg-type]
        else:
            _write_h5(partial, arrays)


def trajectory_text(found: Trajectory, kinds: Sequence[str]) -> str:
    """A trajectory as CSV: time, and inputs of these kinds of each driven joint."""
    given = found.inputs(kinds)
    names = [f"{name}.{kind}" for kind in kinds for name in found.driven]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *names])
    writer.writerows(np.column_stack([given["time"], *(given[kind] for kind in kinds)]).tolist())
    return text.getvalue()


def _write_h5(path: Path, arrays: dict[str, Array]) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            if values.dtype.kind == "U":
                file.create_dataset(name, data=values.astype(object), dtype=h5py.string_dtype())
            else:
                file.create_dataset(name, data=values)
