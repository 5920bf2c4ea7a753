"""Trajectories of a robot through way points, in time: what `Robot.trajectory` and `artsim trajectory` share.

A path is a spline or straight lines in the coordinates of the robot's hinges and sliders, or straight lines of a link,
for which the inverse kinematics finds configurations so densely that the spline through them is straight to 1e-7 m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import FREE, Compiled, Model
from artsim.sim.articulation.narrowed_limits import finite_range, stated_limits
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import StoppedError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.evaluator import numbers
from artsim.sim.trajectories.curves import Piece, lengths, smooth, straight, through_samples
from artsim.sim.trajectories.fastest import Passage
from artsim.sim.trajectories.jerk_limited import point_to_point
from artsim.sim.trajectories.joint_motion import Motion, motion, movable
from artsim.sim.trajectories.timing import Limits, Mover, forces_along, timed
from artsim.sim.trajectories.tool_lines import ToolLines, tool_lines

TOPP_RA, RUCKIG = TIMINGS = ("topp-ra", "ruckig")
_SAME = 1e-9  # [m or rad] between way points that are one
_OFF = 1e-6  # [m or rad] by which a way point may be beyond a limit, or a follower off its leader
_STRAIGHT = 1e-7  # [m or rad] by which a tool may leave its line
_FOUND = (1e-9, 1e-9)  # [m, rad] of the inverse kinematics
_SAMPLES, _MOST_SAMPLES = 48, 6144  # configurations on a line
_STARTS = 12  # configurations of the first pose that are tried
_JUMP = 0.5  # [rad or m] between two samples, by which a joint cannot move along a line
_AT = 1.0 - 1e-4  # share of a limit from which it counts as reached
_MOST_ROWS = 10_000_000
_LOOKED_AT = 1001  # moments of a part of the motion, beside its rows, at which shares of limits are told

KINDS = ("target", "velocity", "acceleration", "torque")
WITH_DRIVES, WITH_COMPUTED_TORQUE = ("target", "velocity", "torque"), ("target", "velocity", "acceleration")
ByJoint = Mapping[str, float] | float | None


class Planning(Protocol):
    """The part of Robot that is needed here."""

    @property
    def articulation(self) -> Articulation: ...
    @property
    def compiled(self) -> Compiled: ...
    @property
    def model(self) -> Model: ...
    @property
    def nq(self) -> int: ...
    @property
    def links(self) -> tuple[str, ...]: ...
    @property
    def dofs(self) -> tuple[str, ...]: ...
    @property
    def coords(self) -> tuple[str, ...]: ...
    @property
    def has_constraints(self) -> bool: ...
    @property
    def reference(self) -> Real: ...
    def compute(self, qpos: ArrayLike, *given: Any, **options: Any) -> dict[str, Array]: ...
    def ik(self, targets: Any, *given: Any, **options: Any) -> dict[str, Array]: ...


@dataclass(frozen=True)
class Trajectory:
    """A motion through way points, row by row at even times; its last row is at rest at the last way point.

    Attributes:
        time: (rows,) [s].
        qpos, qvel, qacc: (rows, nq), (rows, nv), (rows, nv) of all joints, followers too.
        torque: (rows, nv) that motors give against inertia, gravity, springs, dampers and friction; 0 for followers.
        duration: of the motion [s], which ends within the last interval.
        way_points: (k,) times at which the way points are passed, of rounded corners the nearest place [s].
        driven: names of the dofs that are driven: the columns of `inputs`.
        used: the largest share of each limit that a dof uses, by kind (velocity, acceleration, torque) and name.
    """

    time: Real
    qpos: Real
    qvel: Real
    qacc: Real
    torque: Real
    duration: float
    way_points: Real
    driven: tuple[str, ...]
    used: Mapping[str, Mapping[str, float]]
    dofs: tuple[str, ...]
    dof_coord: Array

    def inputs(self, kinds: Sequence[str] = WITH_DRIVES) -> dict[str, Array]:
        """The arrays of a control file: time, those of these kinds (rows, driven), and names.

        Targets, velocities and torques are for drives, which then have errors to correct alone; the controller
        computed-torque finds torques by itself and takes accelerations: WITH_COMPUTED_TORQUE. Raises UsageError.
        """
        for kind in kinds:
            if kind not in KINDS:
                raise UsageError(f"inputs: {kind!r} is not known{nearest(kind, KINDS)}")
        at = [self.dofs.index(name) for name in self.driven]
        tables = dict(zip(KINDS, (self.qpos[:, self.dof_coord], self.qvel, self.qacc, self.torque), strict=True))
        return {"time": self.time, **{kind: tables[kind][:, at] for kind in kinds}, "names": np.array(self.driven)}

    @property
    def reached(self) -> list[tuple[str, str]]:
        """The limits that are reached: kind and name."""
        return [(kind, name) for kind, shares in self.used.items() for name, share in shares.items() if share >= _AT]


class _Leg(NamedTuple):
    """A timed part of the motion: its duration, motion and forces at times, and when way points are passed."""

    duration: float
    at: Callable[[Real], tuple[Motion, Real]]
    passed: list[tuple[float, float]]  # number of the way point, time


def trajectory(
    robot: Planning,
    points: ArrayLike,
    link: str | None,
    quaternion: ArrayLike | None,
    start: ArrayLike | None,
    given: Mapping[str, ByJoint],
    *,
    from_start: bool,
    lines: bool,
    blend: float,
    timing: str,
    dt: float,
) -> Trajectory:
    """See Robot.trajectory; `given` are the limits of velocity, acceleration, torque and jerk."""
    _refuse_robot(robot)
    jerk = given["jerk"]
    _refuse_numbers(lines, blend, timing, dt, jerk, link)
    base = robot.reference if start is None else _table("start", start, robot.nq)[0]
    limits = _limits(robot, given)
    base = _at_rest(robot.model, base, base[_coords(robot.model)][None])[0]
    mover = Mover(robot.model, base, _dynamics(robot), robot.dofs)
    if link is None:
        if quaternion is not None:
            raise UsageError("quaternions are those of a link: give its name")
        path = _joint_path(robot, base, points, limits, from_start, lines, blend)
    elif lines:
        path = _tool_path(robot, base, link, points, quaternion, from_start, blend)
    else:
        found = _found(robot, base, link, points, quaternion, int(from_start))
        path = _joint_path(robot, base, found, limits, from_start, False, 0.0)
    _refuse_beyond(robot, mover, path)
    if timing == RUCKIG:
        legs = _point_to_point(mover, path, limits, jerk, robot)
    else:
        _refuse_unbounded(mover, path, limits)
        legs = [_fastest_leg(mover, piece, limits) for piece in path]
    return _sampled(mover, legs, limits, dt)


# ------------------------------------------------------------------ requests


def _refuse_robot(robot: Planning) -> None:
    model = robot.model
    if (model.joint_type == FREE).any():
        raise UsageError("a floating base has no motor: trajectories are for robots on a fixed base (--base fixed)")
    if robot.has_constraints:
        raise UsageError(
            "trajectories are for robots without loops and without couplings that are not exact; mimics are"
        )
    if not len(movable(model)):
        raise UsageError("this robot has no hinge or slider")


def _refuse_numbers(lines: bool, blend: float, timing: str, dt: float, jerk: ByJoint, link: str | None) -> None:
    if timing not in TIMINGS:
        raise UsageError(f"timing is {timing!r}, want {' or '.join(TIMINGS)}{nearest(timing, TIMINGS)}")
    if not 0.0 <= blend < math.inf:
        raise UsageError(f"blend is {blend!r}, want a length from 0")
    if blend and not lines:
        raise UsageError("--blend rounds the corners of straight lines (--lines)")
    if not 0.0 < dt < math.inf:
        raise UsageError(f"dt is {dt!r}, want a time above 0 [s]")
    if timing == RUCKIG and jerk is None:
        raise UsageError("Ruckig moves from point to point within limits of jerk: give --max-jerk")
    if timing != RUCKIG and jerk is not None:
        raise UsageError("--max-jerk is for --timing ruckig, motions from point to point")
    if timing == RUCKIG and lines and (link is not None or blend):
        raise UsageError("Ruckig moves joints from point to point; straight lines of a link are for --timing topp-ra")


def _limits(robot: Planning, given: Mapping[str, ByJoint]) -> Limits:
    """The limits: given ones, or those of the file."""
    model, dofs = robot.model, robot.dofs
    speed = np.full(len(dofs), np.inf)
    for joint in robot.articulation.joints:
        if joint.velocity is not None and joint.velocity > 0.0 and joint.name in robot.compiled.labels.joint_dofs:
            speed[robot.compiled.labels.joint_dofs[joint.name]] = joint.velocity
    speed = _given("velocity", given["velocity"], speed, robot)
    bent = _given("acceleration", given["acceleration"], np.full(len(dofs), np.inf), robot)
    force = _given("torque", given["torque"], np.array(model.effort), robot)
    return Limits(speed, bent, force[model.independent_dof])


def _given(what: str, values: ByJoint, otherwise: Real, robot: Planning) -> Real:
    """Limits (nv,) of independent dofs by one number, or of dofs by their names."""
    found = otherwise.copy()
    if values is None:
        return found
    named: Mapping[str, float]
    if isinstance(values, Mapping):
        named = values
    else:
        named = {robot.dofs[k]: values for k in movable(robot.model).tolist()}
    for name, value in named.items():
        if name not in robot.dofs:
            raise UsageError(f"--max-{what}: {name!r} is not a joint of this robot{nearest(name, robot.dofs)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
            raise UsageError(f"--max-{what} {name} is {value!r}, want a number above 0")
        found[robot.dofs.index(name)] = value
    return found


def _table(what: str, values: ArrayLike, width: int) -> Real:
    """Finite numbers (rows, width)."""
    table = np.atleast_2d(numbers(what, values))
    if table.ndim != 2 or table.shape[1] != width:
        raise UsageError(f"{what} has shape {np.shape(values)}, want (N, {width})")
    odd = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(odd):
        raise UsageError(f"{what}: row {odd[0]} is not finite: {table[odd[0]].tolist()}")
    return np.array(table, float)


# ------------------------------------------------------------------ paths


def _coords(model: Model) -> Array:
    """The coordinates of the movable dofs."""
    coords: Array = model.dof_coord[movable(model)]
    return coords


def _at_rest(model: Model, base: Real, y: Real) -> Real:
    """Configurations (rows, nq) at coordinates (rows, n) of the movable dofs; followers follow."""
    return motion(model, base, y, *np.zeros((2, *y.shape))).q


def _joint_path(
    robot: Planning, base: Real, points: ArrayLike, limits: Limits, from_start: bool, lines: bool, blend: float
) -> list[Piece]:
    """The path through configurations."""
    model = robot.model
    columns, coords = movable(model), _coords(model)
    table = _table("way points", points, robot.nq)
    want = _at_rest(model, base, table[:, coords])
    off = np.abs(want - table) > _OFF
    if off.any():
        row, coord = (int(n) for n in np.argwhere(off)[0])
        raise UsageError(
            f"way point {row} (counted from 0): {robot.coords[coord]} is {table[row, coord]:.6g}, but follows another "
            f"joint or cannot be moved: {want[row, coord]:.6g}"
        )
    y = table[:, coords]
    if from_start:
        y = np.concatenate([base[coords][None], y])
    y = _distinct(y)
    scale = np.where(np.isfinite(limits.velocity[columns]), limits.velocity[columns], 1.0)
    if lines:
        return straight(y, scale, blend * _shrunk(y, scale, blend))
    return [smooth(y, scale)]


def _shrunk(y: Real, scale: Real, blend: float) -> float:
    """The mean of the lines' lengths over scales, over their lengths in rad and m: blends are given in these."""
    if blend <= 0.0:
        return 1.0
    return float(lengths(y, scale)[-1] / lengths(y, np.ones(len(scale)))[-1])


def _distinct(points: Real) -> Real:
    """Points that do not repeat the one before. Raises UsageError for fewer than two."""
    moved = np.concatenate([[True], np.abs(np.diff(points, axis=0)).max(axis=1) > _SAME])
    if moved.sum() < 2:
        raise UsageError("a trajectory needs two different way points")
    return points[moved]


def _found(robot: Planning, base: Real, link: str, points: ArrayLike, quaternion: ArrayLike | None, first: int) -> Real:
    """Configurations (k, nq) for poses of a link, each near the one before; `first`: the number of the first pose."""
    position = _table("way points", points, 3)
    found = robot.ik(link, position, _turns(quaternion, len(position)), start=base, path=True, tolerance=_FOUND)
    missed = np.flatnonzero(found["status"])
    if len(missed):
        raise StoppedError(f"way point {first + missed[0]} (counted from 0) is not reached: {_away(found, missed[0])}")
    return np.array(found["qpos"])


def _turns(quaternion: ArrayLike | None, rows: int) -> Real | None:
    """Quaternions (rows, 4), each on the side of the one before."""
    if quaternion is None:
        return None
    table = _table("quaternions", quaternion, 4)
    if len(table) == 1 and rows > 1:
        table = np.repeat(table, rows, axis=0)
    if len(table) != rows:
        raise UsageError(f"there are {len(table)} quaternions for {rows} positions")
    return table


def _away(found: Mapping[str, Array], row: int) -> str:
    units = {"position_error": "m", "rotation_error": "rad"}
    return ", ".join(f"{float(found[name][row]):.3g} {unit}" for name, unit in units.items() if name in found) + " away"


def _tool_path(
    robot: Planning,
    base: Real,
    link: str,
    points: ArrayLike,
    quaternion: ArrayLike | None,
    from_start: bool,
    blend: float,
) -> list[Piece]:
    """The path of straight lines of a link."""
    position = _table("way points", points, 3)
    turn = _turns(quaternion, len(position))
    if link not in robot.links:
        raise UsageError(f"link {link!r} does not exist{nearest(link, robot.links)}")
    if from_start:
        now = robot.compute(base, quantities=("link_pose",), links=(link,))
        position = np.concatenate([now["link_position"].reshape(1, 3), position])
        turn = None if turn is None else np.concatenate([now["link_quaternion"].reshape(1, 4), turn])
    moved = np.abs(np.diff(position, axis=0)).max(axis=1) > _SAME
    if turn is not None:
        turn = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        moved |= np.abs((turn[1:] * turn[:-1]).sum(axis=1)) < 1.0 - _SAME**2
    keep = np.concatenate([[True], moved])
    if keep.sum() < 2:
        raise UsageError("a trajectory needs two different way points")
    position, turn = position[keep], None if turn is None else turn[keep]
    lines = tool_lines(position, turn, blend)
    reasons: list[str] = []
    for start in [base] if from_start else _starts(robot, base):
        first = robot.ik(link, position[0], None if turn is None else turn[0], start=start, tolerance=_FOUND)
        if int(first["status"]):
            reasons.append(
                "way point 0 (counted from 0) is not reached: "
                + _away({name: np.atleast_1d(values) for name, values in first.items()}, 0)
            )
            break
        made = _followed(robot, link, lines, np.array(first["qpos"]))
        if not isinstance(made, str):
            return made
        reasons.append(made)
    raise StoppedError(reasons[0])


def _starts(robot: Planning, base: Real) -> list[Real]:
    """The base, and configurations drawn within the limits."""
    model = robot.model
    low, high = stated_limits(model)
    generator = np.random.Generator(np.random.Philox(key=0))
    found = [base]
    for _ in range(_STARTS - 1):
        start = base.copy()
        for k in movable(model).tolist():
            ends = finite_range(float(low[k]), float(high[k]), bool(model.dof_linear[k]))
            start[model.dof_coord[k]] = generator.uniform(*ends)
        found.append(start)
    return found


def _followed(robot: Planning, link: str, lines: Sequence[ToolLines], start: Real) -> list[Piece] | str:
    """Pieces along lines from a configuration; or why there are none."""
    pieces: list[Piece] = []
    for n, line in enumerate(lines):
        count = _SAMPLES * (len(line.at) - 1)
        while True:
            made = _sampled_line(robot, link, line, start, count, n)
            if not isinstance(made, tuple):
                return made
            curve, off, last = made
            if off <= _STRAIGHT:
                break
            count *= 2
            if count > _MOST_SAMPLES * (len(line.at) - 1):
                return (
                    f"between way points {_span(line, n)} (counted from 0) joints cannot follow a straight line: it "
                    f"leads along a limit or a singular configuration ({off:.2g} m or rad off)"
                )
        numbers_of = n + np.arange(float(len(line.at)))
        pieces.append(Piece(curve, line.at, numbers_of))
        start = last
    return pieces


def _span(line: ToolLines, n: int) -> str:
    return f"{n} and {n + len(line.at) - 1}"


def _sampled_line(
    robot: Planning, link: str, line: ToolLines, start: Real, count: int, number: int
) -> tuple[Callable[..., Any], float, Real] | str:
    """The curve through configurations on a line, by how much the link leaves it, and the last configuration."""
    s = np.linspace(0.0, line.at[-1], count + 1)
    position, turn = line.poses(s)
    found = robot.ik(link, position, turn, start=start, path=True, attempts=1, tolerance=_FOUND)
    q = np.array(found["qpos"])
    missed = np.flatnonzero(found["status"])
    jumps = np.flatnonzero(found["jump"] > _JUMP)
    if len(missed) or len(jumps):
        row = int(min([*missed[:1], *jumps[:1]]))
        where = number + float(np.interp(s[row], line.at, np.arange(len(line.at))))
        why = _away(found, row) if len(missed) and missed[0] == row else "a joint would have to jump"
        return f"the straight line leaves the reach at way point {where:.3g} (counted from 0): {why}"
    curve = through_samples(s, q[:, _coords(robot.model)])
    between = 0.5 * (s[:-1] + s[1:])
    y = curve(between)
    there = _at_rest(robot.model, start, y)
    pose = robot.compute(there, quantities=("link_pose",), links=(link,))
    position, turn = line.poses(between)
    off = float(np.linalg.norm(pose["link_position"][:, 0] - position, axis=1).max())
    if turn is not None:
        dot = np.abs((pose["link_quaternion"][:, 0] * turn).sum(axis=1))
        off = max(off, float(2.0 * np.sqrt(np.maximum(2.0 - 2.0 * dot, 0.0)).max()))
    return curve, off, q[-1]


def _refuse_beyond(robot: Planning, mover: Mover, path: Sequence[Piece]) -> None:
    """Refuse a path that leaves the position limits."""
    low, high = stated_limits(robot.model)
    scalar = robot.model.dof_coord >= 0
    for piece in path:
        s = np.unique(np.concatenate([np.linspace(0.0, piece.knots[-1], 2001), piece.knots]))
        q = mover.motion(piece, s, np.zeros(len(s)), np.zeros(len(s))).q[:, np.maximum(robot.model.dof_coord, 0)]
        over = np.where(scalar, np.maximum(low - q, q - high), -1.0)
        if over.max() > _OFF:
            row, k = (int(n) for n in np.unravel_index(int(np.argmax(over)), over.shape))
            at = float(np.interp(s[row], piece.knots, piece.points))
            between = "" if at == int(at) else "; straight lines, or more way points, keep within them"
            raise UsageError(
                f"{robot.dofs[k]} is {over[row, k]:.3g} beyond its limit at way point {at:.3g} (counted from 0)"
                f"{between}"
            )


# ------------------------------------------------------------------ time


def _dynamics(robot: Planning) -> Callable[[Motion], Real]:
    def forces(moved: Motion) -> Real:
        found = robot.compute(moved.q, moved.v, moved.a, quantities=("inverse_dynamics",), reduced=True)
        return np.array(found["inverse_dynamics"])

    return forces


def _moving(mover: Mover, path: Sequence[Piece]) -> list[int]:
    """The movable dofs that a path moves, by their numbers among these."""
    moved = [np.abs(piece.curve(np.linspace(0.0, piece.knots[-1], 101), 1)).max(axis=0) for piece in path]
    largest = np.max(moved, axis=0)
    return [int(k) for k in np.flatnonzero(largest > 1e-9 * largest.max())]


def _refuse_unbounded(mover: Mover, path: Sequence[Piece], limits: Limits) -> None:
    """Refuse a motion that no limit of acceleration or force bounds, and motors without force."""
    columns, independent = movable(mover.model), mover.model.dof_independent
    moving = [int(columns[k]) for k in _moving(mover, path)]
    for k in moving:
        if limits.force[independent[k]] <= 0.0:
            raise UsageError(f"the largest force of {mover.dofs[k]} is 0; give another (--max-torque)")
    if not any(np.isfinite(limits.acceleration[k]) or np.isfinite(limits.force[independent[k]]) for k in moving):
        raise UsageError(
            f"{mover.dofs[moving[0]]} has no limit of force or acceleration: give --max-torque or --max-acceleration"
        )


def _fastest_leg(mover: Mover, piece: Piece, limits: Limits) -> _Leg:
    passage: Passage = timed(mover, piece, limits)
    whole: Real = np.arange(math.ceil(piece.points[0]), math.floor(piece.points[-1]) + 1.0)
    at = np.interp(np.interp(whole, piece.points, piece.knots), passage.grid, passage.time)
    passed = list(zip(whole.tolist(), at.tolist(), strict=True))
    return _Leg(passage.duration, lambda time: forces_along(mover, piece, passage, time), passed)


def _point_to_point(mover: Mover, path: Sequence[Piece], limits: Limits, jerk: ByJoint, robot: Planning) -> list[_Leg]:
    columns = movable(mover.model)
    largest = _given("jerk", jerk, np.full(len(mover.dofs), np.inf), robot)[columns]
    of_columns = {"velocity": limits.velocity[columns], "acceleration": limits.acceleration[columns], "jerk": largest}
    for k in _moving(mover, path):
        for what, values in of_columns.items():
            if not np.isfinite(values[k]):
                raise UsageError(
                    f"{mover.dofs[columns[k]]} has no limit of {what}, which Ruckig needs: give --max-{what}"
                )
    legs = []
    for piece in path:
        for n, (a, b) in enumerate(zip(piece.knots[:-1], piece.knots[1:], strict=True)):
            made = point_to_point(mover, piece.curve(a), piece.curve(b), limits, largest)
            number = float(piece.points[n])
            legs.append(_Leg(made.duration, made.at, [(number, 0.0), (number + 1.0, made.duration)]))
    return legs


def _sampled(mover: Mover, legs: Sequence[_Leg], limits: Limits, dt: float) -> Trajectory:
    """The rows of a motion at even times."""
    begins = np.concatenate([[0.0], np.cumsum([leg.duration for leg in legs])])
    duration = float(begins[-1])
    if duration / dt > _MOST_ROWS:
        raise UsageError(f"the motion of {duration:.4g} s has more than {_MOST_ROWS} rows of {dt:g} s: give another dt")
    rows = math.ceil(duration / dt - 1e-9) + 1
    time: Real = np.float64(dt) * np.arange(rows)
    of = np.clip(np.searchsorted(begins, time, "right") - 1, 0, len(legs) - 1)
    parts = [
        leg.at(np.minimum(time[of == n] - begins[n], leg.duration)) for n, leg in enumerate(legs) if (of == n).any()
    ]
    q, v, a = (np.concatenate([getattr(moved, name) for moved, _ in parts]) for name in ("q", "v", "a"))
    force = np.concatenate([each for _, each in parts])
    v[-1] = a[-1] = 0.0
    force[-1] = mover.forces(Motion(q[-1:], v[-1:], a[-1:]))[0]
    model = mover.model
    torque = np.zeros((rows, len(mover.dofs)))
    torque[:, model.independent_dof] = force
    passed = {n: begins[k] + at for k, leg in enumerate(legs) for n, at in leg.passed}
    driven = tuple(mover.dofs[k] for k in movable(model).tolist())
    used = _used(mover, [*parts, *(leg.at(np.linspace(0.0, leg.duration, _LOOKED_AT)) for leg in legs)], limits)
    way_points = np.array([passed[n] for n in sorted(passed)])
    return Trajectory(time, q, v, a, torque, duration, way_points, driven, used, mover.dofs, np.array(model.dof_coord))


def _used(mover: Mover, parts: Sequence[tuple[Motion, Real]], limits: Limits) -> dict[str, dict[str, float]]:
    """The largest share of each limit in parts of the motion, by kind and by the names of dofs that have one."""
    independent = tuple(mover.dofs[k] for k in mover.model.independent_dof.tolist())
    kinds = {
        "velocity": (mover.dofs, [moved.v for moved, _ in parts], limits.velocity),
        "acceleration": (mover.dofs, [moved.a for moved, _ in parts], limits.acceleration),
        "torque": (independent, [force for _, force in parts], limits.force),
    }
    found = {}
    for kind, (names, tables, bounds) in kinds.items():
        largest = np.max([np.abs(table).max(axis=0) for table in tables], axis=0).tolist()
        triples = zip(names, largest, bounds.tolist(), strict=True)
        found[kind] = {name: value / bound for name, value, bound in triples if math.isfinite(bound) and bound > 0.0}
    return found
