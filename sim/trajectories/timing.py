"""The pieces of a path in time: fastest within limits of velocity, acceleration and joint force.

Forces are those of the robot's inverse dynamics, against which stand its springs, dampers and friction. Along a path
q(s) they are τ = a s̈ + b ṡ² + c + d ṡ, where d, of dampers, is not linear in x = ṡ²: from above the tangent of √x at
the last passage bounds it, from below its chord up to x a little above that passage's; passages are repeated until
their time stays.

Limits are kept where they are looked at: at 24 places of each stretch of the grid. Where the motion exceeds one
between two places of the grid, that limit is narrowed there by the excess, and the path is timed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.rotations import Real
from artsim.sim.trajectories.curves import Piece
from artsim.sim.trajectories.fastest import Passage, PathLimits, StuckError, fastest
from artsim.sim.trajectories.joint_motion import Motion, motion, on_leaders, resisted

KEPT = 1e-7  # share of a limit by which it may be exceeded
_LEAST, _MOST = 400, 6000  # stretches of a grid
_OF_KNOT = 8  # stretches between two knots
_WITHIN = 24  # places of a stretch that are looked at, its ends among them
_ROUNDS = 6  # of narrowing, after which the grid is refined
_DAMPED_ROUNDS = 20  # the same where dampers make tangents and chords of the last passage
_SETTLED = 1e-4  # share of the duration by which the last of these may still have been faster
_FASTER = 1.3  # by how much x may grow from passage to passage, up to where the chord of a damper leads
_HUGE = 1e100
_SLOW = 1e-4  # share of the largest x below which dampers are bounded by the tangent there

Dynamics = Callable[[Motion], Real]
"""Joint forces (rows, nu) that produce a motion, of inertia and gravity."""


class Limits(NamedTuple):
    """Limits of all dofs, inf where there is none; of the places of a path with a first axis."""

    velocity: Real  # (…, nv) [rad/s or m/s]
    acceleration: Real  # (…, nv) [rad/s² or m/s²]
    force: Real  # (…, nu) of the independent ones [N m or N]


class Mover(NamedTuple):
    """A robot that moves: its arrays, the coordinates that do not move, inverse dynamics and names."""

    model: Model
    base: Real  # (nq,)
    dynamics: Dynamics
    dofs: tuple[str, ...]

    def motion(self, piece: Piece, s: Real, rate: Real, bend: Real) -> Motion:
        """The motion at lengths s (rows,), which change by `rate` ṡ and s̈ `bend`."""
        y1, y2 = piece.curve(s, 1), piece.curve(s, 2)
        return motion(
            self.model, self.base, piece.curve(s), y1 * rate[:, None], y1 * bend[:, None] + y2 * rate[:, None] ** 2
        )

    def forces(self, moved: Motion) -> Real:
        """The forces (rows, nu) of the independent dofs' motors."""
        springs, friction, dampers = resisted(self.model, moved.q, moved.v)
        return self.dynamics(moved) + on_leaders(self.model, moved.q, springs + friction + dampers)


class _Terms(NamedTuple):
    """Velocities, accelerations and forces at the places of a grid."""

    grid: Real  # (N + 1,)
    velocity: Real  # (N + 1, nv) q'
    acceleration: Real  # (N + 1, nv) q''
    force: tuple[Real, Real, Real, Real]  # (N + 1, nu) a, b, c, d of a s̈ + b ṡ² + c + d ṡ


def timed(mover: Mover, piece: Piece, limits: Limits) -> Passage:
    """The fastest passage of a piece. Raises StoppedError naming the joint and the place where there is none."""
    count = int(np.clip(_OF_KNOT * (len(piece.knots) - 1), _LEAST, _MOST))
    worst = 1.0
    while count <= _MOST:
        terms = _terms(mover, piece, count)
        narrowed, x, before = _everywhere(limits, len(terms.grid)), None, np.inf
        damped = bool(terms.force[3].any())
        for _ in range(_DAMPED_ROUNDS if damped else _ROUNDS):
            try:
                passage = fastest(_path_limits(terms, narrowed, x))
            except StuckError as stuck:
                raise StoppedError(_reason(mover, piece, terms, limits, stuck.place)) from None
            x, settled = passage.x, not damped or passage.duration > (1.0 - _SETTLED) * before
            before = passage.duration
            excess = _excess(mover, piece, passage, limits)
            worst = max(float(each.max(initial=0.0)) for each in excess)
            if settled and worst <= 1.0 + KEPT:
                return passage
            narrowed = Limits(*(_narrowed(*pair) for pair in zip(narrowed, excess, strict=True)))
        count *= 2
    raise StoppedError(
        f"from way point {_told(piece.points[0])} to {_told(piece.points[-1])} no motion was found that keeps limits "
        f"between the places where it is timed: they are exceeded by {100.0 * (worst - 1.0):.3g} %"
    )


def _everywhere(limits: Limits, places: int) -> Limits:
    """Limits (places, …) that are the same at all places."""
    return Limits(*(np.repeat(each[None], places, axis=0) for each in limits))


def _narrowed(limit: Real, excess: Real) -> Real:
    """Limits (N + 1, …) narrowed at both ends of the stretches (N, …) in which they are exceeded."""
    over = np.maximum(excess, 1.0) ** (1.0 + 1e-3)
    none = np.ones((1, excess.shape[1]))
    return limit / np.maximum(np.concatenate([over, none]), np.concatenate([none, over]))


def _terms(mover: Mover, piece: Piece, count: int) -> _Terms:
    grid = np.unique(np.concatenate([np.linspace(piece.knots[0], piece.knots[-1], count + 1), piece.knots]))
    grid = grid[np.concatenate([[True], np.diff(grid) > 1e-9 * grid[-1]])]
    grid[-1] = piece.knots[-1]
    one, none = np.ones(len(grid)), np.zeros(len(grid))
    still = mover.motion(piece, grid, none, none)
    along = mover.motion(piece, grid, one, none)
    pushed = mover.motion(piece, grid, none, one)
    springs, friction, dampers = resisted(mover.model, along.q, along.v)
    rest = mover.dynamics(still)
    force = (
        mover.dynamics(pushed) - rest,
        mover.dynamics(along) - rest,
        rest + on_leaders(mover.model, along.q, springs + friction),
        on_leaders(mover.model, along.q, dampers),
    )
    return _Terms(grid, along.v, along.a, force)


def _path_limits(terms: _Terms, limits: Limits, x: Real | None) -> PathLimits:
    """The rows of a path's limits, (N + 1, …) each; `x`: that of the last passage."""
    with np.errstate(divide="ignore"):
        top = ((limits.velocity / np.abs(terms.velocity)).min(axis=1)) ** 2
    top = np.minimum(top, 1e12)
    about = top
    if x is not None and terms.force[3].any():
        about = np.maximum(x, _SLOW * x.max())
        top = np.minimum(top, _FASTER * about)
    bounded = np.isfinite(limits.acceleration[0]) & (np.abs(terms.velocity).max(axis=0) > 0.0)
    a, b = ((each / limits.acceleration)[:, bounded] for each in (terms.velocity, terms.acceleration))
    rows = [(a, b, -np.ones_like(a)), (-a, -b, -np.ones_like(a))]
    strong = np.isfinite(limits.force[0])
    a, b, c, d = ((each / limits.force)[:, strong] for each in terms.force)
    for sign in (1.0, -1.0):
        drag = sign * d
        from_above, from_below = np.maximum(drag, 0.0), np.minimum(drag, 0.0)
        root = np.sqrt(about)[:, None]
        slope = from_above / (2.0 * root) + from_below / np.sqrt(top)[:, None]
        rows.append((sign * a, sign * b + slope, sign * c - 1.0 + from_above * root / 2.0))
    a, b, c = (np.concatenate(each, axis=1) for each in zip(*rows, strict=True))
    return PathLimits(terms.grid, a, b, c, top)


def _excess(mover: Mover, piece: Piece, passage: Passage, limits: Limits) -> tuple[Real, Real, Real]:
    """The largest shares of the limits in each stretch (N, …) of velocities, accelerations and forces."""
    moved = mover.motion(piece, *passage.between(_WITHIN))
    parts = zip((moved.v, moved.a, mover.forces(moved)), limits, strict=True)
    v, a, force = (np.abs(each / limit).reshape(-1, _WITHIN, len(limit)).max(axis=1) for each, limit in parts)
    return v, a, force


def _reason(mover: Mover, piece: Piece, terms: _Terms, limits: Limits, place: int) -> str:
    """The joint and the place at which a robot cannot move within its limits."""
    at = float(np.interp(terms.grid[place], piece.knots, piece.points))
    where = f"at {_told(at)} on the way between way points (counted from 0)"
    held = np.abs(terms.force[2]) / limits.force
    worst = np.unravel_index(int(np.argmax(held)), held.shape)
    if held[worst] > 1.0:
        at = float(np.interp(terms.grid[worst[0]], piece.knots, piece.points))
        name = mover.dofs[mover.model.independent_dof[worst[1]]]
        return (
            f"{name} is too weak for the robot's weight at way point {_told(at)} (counted from 0): "
            f"{abs(terms.force[2][worst]):.4g} of {limits.force[worst[1]]:.4g} N m or N"
        )
    return f"no velocity is within the limits {where}"


def _told(point: float) -> str:
    return f"{point:.3g}"


def forces_along(mover: Mover, piece: Piece, passage: Passage, time: Real) -> tuple[Motion, Real]:
    """The motion and the forces at times of a passage."""
    moved = mover.motion(piece, *passage.at(time))
    force = mover.forces(moved)
    return moved._replace(v=np.where(np.abs(moved.v) > 1.0 / _HUGE, moved.v, 0.0)), force
