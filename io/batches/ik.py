"""Configurations found for poses of links, from a file of poses into a file, by blocks in constant memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from artsim.io.batches.batch import writer_of
from artsim.io.batches.ik_config import BLANK, IkConfig
from artsim.io.batches.ik_rows import Poses
from artsim.io.format import schema
from artsim.io.output_file.batch_file import Column, Content
from artsim.io.output_file.model_record import model_record
from artsim.io.runs.named import file_labels
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.ik.clear_search import find_clear
from artsim.sim.ik.search_records import OPEN, REACHED
from artsim.sim.ik.solver import PoseSearch
from artsim.sim.ik.wanted_poses import Target, pose_tables
from artsim.sim.quantities.reach import pose_search
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.clear_poses import Clearance
from artsim.sim.runs.patterns import meant_by
from artsim.sim.runs.start import initial_qpos

FLIP = 0.5  # [rad or m] change of a coordinate from row to row from which a path is told to jump
_BLOCK = 1 << 15  # rows found at a time
_TOLD_ROWS = 5  # number of rows that are named


@dataclass(frozen=True)
class IkJob:
    """A configuration with its robot and its poses, which the context manager closes."""

    config: IkConfig
    robot: Robot
    poses: Poses

    @property
    def rows(self) -> int:
        """Number of poses."""
        return self.poses.rows

    @cached_property
    def start(self) -> Real:
        """The coordinates (nq,) from which the search starts."""
        return initial_qpos(self.robot.compiled, self.config.q0, [])

    @cached_property
    def search(self) -> PoseSearch:
        """The search, for targets without tables. Raises UsageError."""
        config, robot = self.config, self.robot
        return pose_search(
            robot.articulation,
            robot.compiled,
            robot.equipped,
            self._targets({name: np.zeros((1, *self._row(f"target_{name}"))) for name in self.poses.names}),
            move=self._moved(),
            posture=config.posture,
            tolerance=config.tolerance,
            attempts=config.attempts,
            iterations=config.iterations,
            seed=config.seed,
            path=config.path,
            dt=config.dt,
        )

    def _targets(self, wanted: Mapping[str, Array]) -> list[Target]:
        """The targets of rows of poses (rows, links, …): links at poses, links that look, a centre of mass."""
        config = self.config
        found = [
            Target(
                link,
                _of(wanted, "position", n),
                _of(wanted, "quaternion", n),
                frame=config.frame,
                **self._weights(link),
            )
            for n, link in enumerate(config.link)
        ]
        for n, (name, typed) in enumerate(config.points.items()):
            point: Any = wanted["point"][:, n] if "point" in wanted else typed
            if name in config.look_at:
                axis = config.look_axis.get(name, Target.axis)
                found.append(Target(name, look_at=point, axis=axis, frame=config.frame, **self._weights(name)))
            else:
                found.append(Target(None, point, **self._weights(name)))
        return found

    def _row(self, name: str) -> tuple[int, ...]:
        """The shape of a row of a variable."""
        config = self.config
        sizes = {"xyz": 3, "quat": 4, "target_link": len(config.link), "point_target": len(config.points)}
        sizes["coord"] = self.robot.nq
        return tuple(sizes[dim] for dim in schema.TABLE[f"ik/{name}"].dims[1:])

    def _weights(self, name: str) -> dict[str, Any]:
        """The weights that are given for a link, or for the centre of mass."""
        return dict(zip(("weight", "rotation_weight"), self.config.weight.get(name, ()), strict=False))

    def _moved(self) -> tuple[str, ...] | None:
        """The joints that --move names, patterns expanded."""
        if self.config.move is None:
            return None
        joints, independent = self.robot.labels.joint_dofs, {*self.robot.model.independent_dof.tolist()}
        leading = [name for name, dofs in joints.items() if dofs.start in independent]
        found: dict[str, None] = {}
        for word in self.config.move:
            matches = meant_by(word, joints, leading)
            if not matches:
                raise UsageError(f"--move: {word!r} is not a joint of this robot{nearest(word, joints)}")
            found |= dict.fromkeys(matches)
        return tuple(found)

    def found(self, threads: int, chunk: int | None = None) -> Iterator[tuple[int, dict[str, Array]]]:
        """The first row of each block, and its results with the wanted poses."""
        step = _BLOCK if chunk is None else chunk
        start = self.start[None]
        for first in range(0, self.rows, step):
            wanted = self.poses.read(first, min(first + step, self.rows))
            position, quaternion, _ = pose_tables(self._targets(wanted), first)
            results = self._results((position, quaternion), start, threads, first)
            if self.config.path:
                start = results["qpos"][-1:].copy()
            if self.config.on_error == BLANK:
                missed = results["status"] != REACHED
                results["qpos"][missed | (results["depth"] > 0) if "depth" in results else missed] = np.nan
            yield first, {**{f"target_{name}": values for name, values in wanted.items()}, **results}

    def _results(self, wanted: tuple[Real, Real], start: Real, threads: int, first: int) -> dict[str, Array]:
        if self.clearance is None:
            return self.search.solve(*wanted, start, threads, first)
        return find_clear(self.search, self.clearance, wanted, start, threads, first)

    @cached_property
    def clearance(self) -> Clearance | None:
        """The check for overlaps of shapes; None unless asked for. Raises UsageError, ModelError."""
        if not self.config.clear:
            return None
        ground, own = self.config.ground, self.config.self_collide
        return Clearance(self.robot, ground=ground, self_collide=own, notes=self.notes)

    @cached_property
    def notes(self) -> list[str]:
        """What is told of the shapes."""
        return []

    def content(self, provenance: Mapping[str, str | int | float]) -> Content:
        """The content of a file of all rows."""
        search, config = self.search, self.config
        labels = file_labels(self.robot.labels)._replace(target_link=config.link)
        if "point" in self.poses.names:
            labels = labels._replace(point_target=tuple(config.points))
        names = [f"target_{name}" for name in self.poses.names] + ["qpos", "status", *search.errors]
        names += ["iterations", "attempts", *(["jump"] if self.config.path else [])]
        names += ["depth"] if self.config.clear else []
        columns = {}
        for name in (name for name in schema.IK_VARIABLES if name in names):
            variable = schema.TABLE[f"ik/{name}"]
            columns[name] = Column(variable.dims[1:], self._row(name), variable.dtype)
        return Content(
            rows=self.rows,
            columns=columns,
            labels=labels,
            model=model_record(self.robot.articulation, None if self.clearance is None else self.clearance.kept),
            facts={"frame": self.config.frame, "only": self.config.only},
            provenance={**provenance, "config": self.config.to_json(), "seed": self.config.seed},
            group="ik",
        )

    def close(self) -> None:
        """Close the poses."""
        self.poses.close()

    def __enter__(self) -> IkJob:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _of(tables: Mapping[str, Array], name: str, target: int) -> Array | None:
    """The rows (N, …) of one target; None: any."""
    return tables[name][:, target] if name in tables else None


def prepare_ik(articulation: Articulation, config: IkConfig) -> IkJob:
    """Compile the robot and open the poses. Raises UsageError, ModelError, and the errors of PoseFile."""
    robot = Robot.of(articulation)
    job = IkJob(config, robot, Poses(config))
    try:
        _ = job.search, job.start, job.clearance
    except BaseException:
        job.close()
        raise
    return job


@dataclass
class Tally:
    """What is told of the rows that are done."""

    rows: int = 0
    reached: int = 0
    open: int = 0
    missed_rows: tuple[int, ...] = ()  # the first of them
    farthest: tuple[float, float] = (0.0, 0.0)  # largest errors of rows that are not reached [m, rad]
    worst: tuple[float, float, float] = (0.0, 0.0, 0.0)  # largest errors of rows that are [m, rad, m or rad]
    iterations: int = 0
    touching: int = 0  # reached rows in which shapes are inside each other
    deepest: float = 0.0  # [m]
    flips: tuple[int, ...] = ()  # the first rows of a path that jump
    flip_count: int = 0

    def see(self, first: int, found: Mapping[str, Array]) -> None:
        """Count the rows of a block."""
        status = found["status"]
        missed = np.flatnonzero(status != REACHED)
        self.rows += len(status)
        self.reached += len(status) - len(missed)
        self.open += int(np.count_nonzero(status == OPEN))
        self.missed_rows = (*self.missed_rows, *(missed[:_TOLD_ROWS] + first).tolist())[:_TOLD_ROWS]
        self.iterations += int(found["iterations"].sum())
        there = np.flatnonzero(status == REACHED)
        names = ("position_error", "rotation_error", "constraint_error")
        worst = [float(found[name][there].max(initial=0.0)) if name in found else 0.0 for name in names]
        a, b, c = (max(pair) for pair in zip(self.worst, worst, strict=True))
        self.worst = a, b, c
        far = [float(found[name][missed].max(initial=0.0)) if name in found else 0.0 for name in names[:2]]
        self.farthest = max(self.farthest[0], far[0]), max(self.farthest[1], far[1])
        if "depth" in found:
            self.touching += int(np.count_nonzero(found["depth"][there] > 0))
            self.deepest = max(self.deepest, float(found["depth"][there].max(initial=0.0)))
        if "jump" in found:
            flips = np.flatnonzero(found["jump"] > FLIP) + first
            flips = flips[flips > 0]  # the way from the start to the first pose is none of the path's
            self.flip_count += len(flips)
            self.flips = (*self.flips, *flips.tolist())[:_TOLD_ROWS]


@dataclass
class IkOutcome:
    """The outcome of a job."""

    tally: Tally
    seconds: float  # for reading, computing and writing, without loading and compiling
    bytes: int
    complete: bool


def write_ik(
    job: IkJob,
    output: str | os.PathLike[str],
    *,
    threads: int,
    chunk: int | None = None,
    force: bool = False,
    provenance: Mapping[str, str | int | float] | None = None,
    progress: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> IkOutcome:
    """Find all rows of a job into one complete file, or none; - is CSV on standard output.

    Raises what BatchWriter and the poses raise, and UsageError naming the row that is no pose.
    """
    tally, complete = Tally(), True
    with writer_of(output, job.content(provenance or {}), force=force) as writer:
        began = time.perf_counter()
        for first, found in job.found(threads, chunk):
            writer.write(first, len(found["status"]), found)
            tally.see(first, found)
            if progress is not None:
                progress(tally.rows)
            if stop is not None and stop():
                complete = False
                break
        if complete:
            writer.commit()
        return IkOutcome(tally, time.perf_counter() - began, writer.bytes, complete)


def same_file(output: Path, config: IkConfig) -> tuple[str | None, ...]:
    """The inputs of a job, which its output must not be."""
    read = [part for file in config.files for part in (file, file.rpartition(":")[0])]
    return config.model, config.load.get("loops"), *read
