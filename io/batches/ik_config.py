"""IkConfig and the one table of the settings of `artsim ik`, from which it has its options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from artsim.io.batches.configuration import LOADING, NO_OPTION, SEEDS
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.runs.reading import COMMON
from artsim.sim.runs.setting import (
    NAMES,
    NUMBER,
    NUMBERS,
    TEXT,
    Bounds,
    Group,
    Kind,
    by_name,
    is_finite,
    settings_of,
)
from artsim.sim.runs.settings import SETTINGS

BOTH, POSITION, ROTATION = "pose", "position", "rotation"
MASS_CENTRE = "com"  # the centre of mass among the names of links
STOP, SKIP, BLANK = "stop", "skip", "blank"
POSES = Kind(
    "poses",
    "tuples of 3, 6 or 7 numbers",
    lambda value: (
        isinstance(value, tuple) and all(isinstance(pose, tuple) and len(pose) in (3, 6, 7) for pose in value)
    ),
    lambda value: tuple(map(tuple, value)),
)
TOLERANCES = Kind(
    "tolerances",
    "two numbers: of lengths, of angles",
    lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(is_finite, value)),
    tuple,
)
GridAxis = tuple[float] | tuple[float, float, int]
"""An entry of a pose: one value; or the ends of its range and the number of its values, both ends included."""


def _is_grid(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) in (0, 3, 6, 7) and all(map(_is_axis, value))


def _is_axis(value: Any) -> bool:
    if not (isinstance(value, tuple) and len(value) in (1, 3) and all(map(is_finite, value))):
        return False
    return len(value) == 1 or (value[0] <= value[1] and isinstance(value[2], int) and 1 <= value[2] <= MOST_VALUES)


def _are_finite(value: Any, *counts: int) -> bool:
    return isinstance(value, tuple) and len(value) in counts and all(map(is_finite, value))


MOST_VALUES = 1_000_000
GRID = Kind(
    "grid",
    f"3, 6 or 7 entries, each a number, or two in order and a count from 1 to {MOST_VALUES}",
    _is_grid,
    lambda value: tuple(map(tuple, value)),
)


def _is_point(value: Any) -> bool:
    return _are_finite(value, 3) or (isinstance(value, str) and value != "")


POINT = Kind(
    "point",
    "three finite numbers, or a file",
    _is_point,
    lambda value: tuple(value) if isinstance(value, list) else value,
)
POINTS = by_name("points", "three finite numbers, or a file, by link", _is_point)
AXES = by_name("axes", "three finite numbers by link", lambda value: _are_finite(value, 3))
WEIGHTS = by_name(
    "weights", "one or two numbers above 0 by link", lambda value: _are_finite(value, 1, 2) and min(value) > 0
)
COUNTS = Bounds("a whole number from 1", 1, 1 << 20)
CLEAR = Group("Contacts")
SEARCH = Group("Search")
PATHS = Group("Paths")
RESULTS = Group("Results")


@dataclass(frozen=True)
class IkConfig:
    """The configuration of an inverse kinematics: targets, poses and how the robot is loaded; enough to repeat it.

    Raises UsageError: contradictory values, or values of a wrong type (they may come from a file).
    """

    model: str = NO_OPTION("-", "File of the model.")
    load: Mapping[str, Any] = NO_OPTION(LOADING, "Options of load_articulation.")

    link: tuple[str, ...] = COMMON((), "Link whose frame is to be at the pose; may be repeated.", NAMES, metavar="NAME")
    pose: tuple[tuple[float, ...], ...] = COMMON(
        (),
        "Pose of the link: position [m], and roll, pitch, yaw [rad, or with a suffix: 90deg] or a quaternion; for "
        "several links one each, in their order.",
        POSES,
        metavar="X,Y,Z[,R,P,Y|,QW,QX,QY,QZ]",
    )
    input: str | None = COMMON(
        None,
        "Poses, a row each: .npy, .npz, .csv, .h5, FILE.h5:/dataset, or - for standard input; position and quaternion, "
        "or link_position and link_quaternion as `artsim batch` writes them.",
        TEXT,
        metavar="FILE",
    )
    grid: tuple[GridAxis, ...] = COMMON(
        (),
        "Poses on a grid, every combination: as --pose, where LOW:HIGH:N in place of a number is N values; the last "
        "entry changes fastest.",
        GRID,
        metavar="X,Y,Z[,R,P,Y|,QW,QX,QY,QZ]",
    )
    look_at: Mapping[str, tuple[float, ...] | str] = COMMON(
        POINTS,
        "Point at which an axis of a link looks [m], z without --look-axis; or a file of points, one for each row.",
        metavar="LINK=X,Y,Z|FILE",
    )
    look_axis: Mapping[str, tuple[float, ...]] = COMMON(
        AXES, "Axis that looks, of length 1 in the link's frame.", metavar="LINK=X,Y,Z"
    )
    com: tuple[float, ...] | str | None = COMMON(
        None,
        "Place of the robot's centre of mass in the world [m]; or a file of places, one for each row.",
        POINT,
        metavar="X,Y,Z|FILE",
    )
    weight: Mapping[str, tuple[float, ...]] = COMMON(
        WEIGHTS,
        "Weights of a link's errors of position and of rotation or look, where not all targets can be had; `com` for "
        "the centre of mass; default: 1.",
        metavar="LINK=W[,W]",
    )
    only: str = COMMON(
        BOTH, "The part of the poses that counts.", choices=(BOTH, POSITION, ROTATION), metavar="position|rotation"
    )
    frame: str = COMMON("world", "Link in whose frame poses and --look-at are.", metavar="LINK")
    q0: Mapping[str, float] = COMMON(
        NUMBERS,
        "Coordinate from which the search starts, and which joints that do not move keep; default: the pose of the "
        "file.",
        metavar="JOINT=VALUE",
    )
    move: tuple[str, ...] | None = COMMON(
        None, "Joints that may move, names or patterns; default: all that move the link, and loops with them.", NAMES
    )
    posture: Mapping[str, float] = COMMON(
        NUMBERS, "Coordinate that is wished for where the poses leave a choice.", metavar="JOINT=VALUE"
    )

    clear: bool = CLEAR(
        False,
        "Look for configurations in which no shapes are inside each other, among those that may touch in a run; takes "
        "some 0.1 ms a row.",
    )
    ground: bool = CLEAR(False, "With --clear: nor in level ground at height 0.")
    self_collide: bool = CLEAR(False, SETTINGS["self_collide"].meaning)

    tolerance: tuple[float, ...] = SEARCH(
        (1e-6, 1e-6), "Error up to which a pose is reached [m, rad].", TOLERANCES, metavar="LENGTH,ANGLE"
    )
    attempts: int = SEARCH(100, "Starts for each row: the first is --q0, others are drawn.", bounds=COUNTS, metavar="N")
    iterations: int = SEARCH(50, "Iterations from each start.", bounds=COUNTS, metavar="N")
    seed: int = SEARCH(0, "Seed of the drawn starts.", bounds=SEEDS, metavar="N")

    path: bool = PATHS(False, "Rows follow each other in time: each starts where the one before it ended.")
    dt: float | None = PATHS(
        None,
        "Time from row to row [s]: joints go no farther than their velocity limits allow.",
        NUMBER,
        bounds=Bounds("a time above 0", 0, open=True),
        metavar="S",
    )

    on_error: str = RESULTS(
        STOP,
        "What follows rows that are not reached: exit code 3 (stop), 0 and a warning (skip), or also NaN for their "
        "coordinates (blank).",
        choices=(STOP, SKIP, BLANK),
    )

    def __post_init__(self) -> None:
        for name, setting in IK_SETTINGS.items():
            setting.check(name, getattr(self, name))
        self._check_targets()
        for name in ("ground", "self_collide"):
            if getattr(self, name) and not self.clear:
                raise UsageError(f"--{name.replace('_', '-')} is for --clear")
        if self.clear and self.path:
            raise UsageError("--clear finds configurations row by row, and --path one from the other: give one of them")
        if self.path and not self.files:
            raise UsageError("--path is for the rows of --input")

    def _check_targets(self) -> None:
        poses = {"--pose": self.pose != (), "--input": self.input is not None, "--grid": self.grid != ()}
        given = [flag for flag, there in poses.items() if there]
        if not self.link and (given or not (self.look_at or self.com)):
            raise UsageError("give --link NAME, the link that is to be at the pose")
        if len(set(self.link)) < len(self.link):
            raise UsageError("--link names a link twice")
        if self.link and len(given) != 1:
            wanted = "--pose X,Y,Z[,R,P,Y], --input FILE or --grid X0:X1:N,…"
            raise UsageError(f"give {wanted}" + (f", not {' and '.join(given)}" if given else ""))
        if self.pose and len(self.pose) != len(self.link):
            raise UsageError(f"{len(self.pose)} poses for {len(self.link)} links: give one --pose for each --link")
        if self.grid and len(self.link) > 1:
            raise UsageError("--grid is for one --link")
        if len(self.grid) == 7 and any(len(axis) > 1 for axis in self.grid[3:]):
            raise UsageError("--grid: the entries of a quaternion are numbers; angles R,P,Y may be ranges")
        if self.com is not None and MASS_CENTRE in self.look_at:
            raise UsageError(f"--look-at: a link called {MASS_CENTRE!r} cannot be told from the centre of mass")
        for link in self.look_axis:
            if link not in self.look_at:
                raise UsageError(f"--look-axis: {link!r} looks at nothing (--look-at){nearest(link, self.look_at)}")
        known = [*self.link, *self.look_at, *([] if self.com is None else [MASS_CENTRE])]
        for name in self.weight:
            if name not in known:
                raise UsageError(f"--weight: {name!r} has no target{nearest(name, known)}")

    @property
    def points(self) -> dict[str, tuple[float, ...] | str]:
        """The points of links that look, and of the centre of mass, by name."""
        return {**self.look_at, **({} if self.com is None else {MASS_CENTRE: self.com})}

    @property
    def files(self) -> list[str]:
        """The files of rows."""
        of_points = [point for point in self.points.values() if isinstance(point, str)]
        return [*([] if self.input is None else [self.input]), *of_points]

    def to_json(self) -> str:
        """The configuration as one JSON object."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> IkConfig:
        """Read a configuration that `to_json` wrote. Raises UsageError."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise UsageError("ik configuration: not JSON") from None
        if not isinstance(content, dict):
            raise UsageError("ik configuration: not a JSON object")
        for name, value in content.items():
            if name not in IK_SETTINGS:
                raise UsageError(f"ik configuration: {name!r} is not known{nearest(name, IK_SETTINGS)}")
            content[name] = IK_SETTINGS[name].kind.plain(value)
        return cls(**content)


IK_SETTINGS = settings_of(IkConfig)
"""The lines of the table by name, in the order of the help."""
