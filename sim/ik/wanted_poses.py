"""Target: the pose that is wanted of a link, as users give it, and its tables checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

WORLD = "world"
_UNIT = 1e-3  # by how much the length of a quaternion or an axis may differ from 1: files round
_WIDTHS = {"position": 3, "quaternion": 4, "look_at": 3}


@dataclass(frozen=True)
class Target:
    """The pose that is wanted of a link's frame: a position, a rotation, both, or a point to look at.

    Attributes:
        link: its name; None: the target is a position of the robot's centre of mass.
        position: (3,) or (N, 3) [m]; None: any.
        quaternion: (4,) or (N, 4), (w, x, y, z) of unit length; None: any.
        look_at: (3,) or (N, 3) [m], a point at which `axis` is to look.
        axis: (3,) unit direction in the link's frame.
        frame: the link in whose frame these are, or "world".
        weight: of the position's error [1/m], where not all targets can be reached.
        rotation_weight: of the rotation's error [1/rad].
    """

    link: str | None
    position: ArrayLike | None = None
    quaternion: ArrayLike | None = None
    look_at: ArrayLike | None = None
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    frame: str = WORLD
    weight: float = 1.0
    rotation_weight: float = 1.0

    def __str__(self) -> str:
        return "the centre of mass" if self.link is None else repr(self.link)

    @property
    def places(self) -> bool:
        """True if a position is wanted."""
        return self.position is not None

    @property
    def turns(self) -> bool:
        """True if a rotation is wanted, or a direction."""
        return self.quaternion is not None or self.look_at is not None


def target_list(
    targets: str | Target | Sequence[Target], position: ArrayLike | None, quaternion: ArrayLike | None
) -> list[Target]:
    """The targets that the arguments of `Robot.ik` mean. Raises UsageError."""
    if isinstance(targets, str):
        return [Target(targets, position, quaternion)]
    if position is not None or quaternion is not None:
        raise UsageError("position and quaternion are for a link that is given by its name; a Target has its own")
    listed: list[Any] = [*targets] if isinstance(targets, (list, tuple)) else [targets]
    for target in listed:
        if not isinstance(target, Target):
            raise UsageError(f"targets: want the name of a link, or artsim.Target, not {target!r}")
    if not listed:
        raise UsageError("targets: none is given")
    return listed


def check_target(target: Target, links: Sequence[str]) -> None:
    """Refuse a target of an unknown link or frame, without a pose, or with a weight that is not positive."""
    for link in (target.link, None if target.frame == WORLD else target.frame):
        if link is not None and link not in links:
            raise UsageError(f"link {link!r} does not exist{nearest(str(link), links)}")
    if not (target.places or target.turns):
        raise UsageError(f"target {target}: give a position, a quaternion or both, or a point to look at")
    if target.link is None and (target.turns or target.frame != WORLD):
        raise UsageError("the target of the centre of mass is a position in the world")
    if target.look_at is not None and (target.places or target.quaternion is not None):
        raise UsageError(f"target {target}: look_at stands alone; give its position as a second target")
    for name in ("weight", "rotation_weight"):
        value = getattr(target, name)
        if not (isinstance(value, (int, float)) and 0.0 < value < math.inf):
            raise UsageError(f"target {target}: {name} is {value!r}, want a number above 0")
    axis = _table(target, "axis", target.axis, 3)
    if axis.shape != (3,) or not abs(float(np.linalg.norm(axis)) - 1.0) <= _UNIT:
        raise UsageError(f"target {target}: axis is {axis.tolist()}, want a direction of length 1")


def pose_tables(targets: Sequence[Target], first: int = 0) -> tuple[Real, Real, bool]:
    """Positions (N, nt, 3), of look_at the points, and unit quaternions (N, nt, 4) of all targets; True if they are of
    a single row.

    Targets of a single pose serve all rows. Raises UsageError naming the target, and the row that is not a pose,
    counted from `first`.
    """
    given = {
        (n, name): _checked(target, name, _table(target, name, getattr(target, name), width), first)
        for n, target in enumerate(targets)
        for name, width in _WIDTHS.items()
        if getattr(target, name) is not None
    }
    counts = {len(values) for values in given.values() if values.ndim > 1}
    if len(counts) > 1:
        told = ", ".join(
            f"{name} of {targets[n]} {len(values)}" for (n, name), values in given.items() if values.ndim > 1
        )
        raise UsageError(f"targets have different numbers of rows: {told}")
    rows = counts.pop() if counts else 1
    position, quaternion = np.zeros((rows, len(targets), 3)), np.zeros((rows, len(targets), 4))
    quaternion[..., 0] = 1.0
    for (n, name), values in given.items():
        (quaternion if name == "quaternion" else position)[:, n] = values
    return position, quaternion, not any(values.ndim > 1 for values in given.values())


def _table(target: Target, name: str, values: Any, width: int) -> Array:
    try:
        table = np.asarray(values)
        if table.dtype.kind in "cmMOUS":
            raise TypeError
        table = np.asarray(table, float)
    except (TypeError, ValueError):
        raise UsageError(f"target {target}: {name} is not a table of numbers") from None
    if table.shape != (width,) and (table.ndim != 2 or table.shape[1] != width):
        raise UsageError(f"target {target}: {name} has shape {table.shape}, want ({width},) or (N, {width})")
    return table


def _checked(target: Target, name: str, values: Real, first: int) -> Real:
    """The values, quaternions normalised. Raises UsageError naming the first row that is wrong."""
    rows = values.reshape(-1, values.shape[-1])

    def where(row: int) -> str:
        return f"{name} of row {first + row}" if values.ndim > 1 else name

    odd = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(odd):
        raise UsageError(f"target {target}: {where(odd[0])} is not finite: {rows[odd[0]].tolist()}")
    if name != "quaternion":
        return values
    length = np.linalg.norm(rows, axis=1)
    odd = np.flatnonzero(~(np.abs(length - 1.0) <= _UNIT))
    if len(odd):
        raise UsageError(
            f"target {target}: {where(odd[0])} has length {length[odd[0]]:.6g}, want 1 (w, x, y, z): "
            f"{rows[odd[0]].tolist()}"
        )
    unit: Real = (rows / length[:, None]).reshape(values.shape)
    return unit
