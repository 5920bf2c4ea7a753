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
    is_finite,
    settings_of,
)
from artsim.sim.runs.settings import SETTINGS

BOTH, POSITION, ROTATION = "pose", "position", "rotation"
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
    only: str = COMMON(
        BOTH, "The part of the poses that counts.", choices=(BOTH, POSITION, ROTATION), metavar="position|rotation"
    )
    frame: str = COMMON("world", "Link in whose frame the poses are.", metavar="LINK")
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
        "stop",
        "What follows rows that are not reached: exit code 3 (stop), or 0 and a warning (skip).",
        choices=("stop", "skip"),
    )

    def __post_init__(self) -> None:
        for name, setting in IK_SETTINGS.items():
            setting.check(name, getattr(self, name))
        if not self.link:
            raise UsageError("give --link NAME, the link that is to be at the pose")
        if len(set(self.link)) < len(self.link):
            raise UsageError("--link names a link twice")
        if (self.input is None) == (not self.pose):
            raise UsageError("give --pose X,Y,Z[,R,P,Y] or --input FILE" + ("" if self.pose == () else ", only one"))
        if self.pose and len(self.pose) != len(self.link):
            raise UsageError(f"{len(self.pose)} poses for {len(self.link)} links: give one --pose for each --link")
        for name in ("ground", "self_collide"):
            if getattr(self, name) and not self.clear:
                raise UsageError(f"--{name.replace('_', '-')} is for --clear")
        if self.clear and self.path:
            raise UsageError("--clear finds configurations row by row, and --path one from the other: give one of them")
        if self.pose and self.path:
            raise UsageError("--path is for the rows of --input")

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
