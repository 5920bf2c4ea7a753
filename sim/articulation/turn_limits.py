"""Swing and twist of ball and free joints in numpy: rates of the twist, and configurations beyond limits.

The kernels' twins of these functions are in swing_twist.py and constraints/turn_limit_rows.py.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator

import numpy as np

from artsim.sim.articulation.model import (
    FLATNESS_Y,
    FLATNESS_Z,
    SWING_Y,
    TWIST_LOWER,
    TWIST_UPPER,
    Labels,
    Model,
)
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

_SLACK = 1e-9  # [rad] beyond a limit that is rounding
_UPSIDE_DOWN = math.radians(179.0)  # [rad] swing beyond which a twist has no limit


def twist_of(rotation: Real) -> Real:
    """The twist (…,) about x of unit quaternions (…, 4), within ±π [rad]."""
    w, x = rotation[..., 0], rotation[..., 1]
    twist: Real = 2.0 * np.arctan2(np.where(w < 0, -x, x), np.abs(w))
    return twist


def twist_rates(rotation: Real) -> Real:
    """(3,) the rates of the twist about x by the angular velocity, in the turned frame's axes; that about x alone
    where the twist is undefined."""
    w, x, y, z = (float(entry) for entry in rotation)
    square = w * w + x * x
    if square <= math.cos(_UPSIDE_DOWN / 2) ** 2:
        return np.array([1.0, 0.0, 0.0])
    return np.array([1.0, (x * y - w * z) / square, (w * y + x * z) / square])


def about_axis(model: Model, q: Real, turn: int) -> Real:
    """The rotations (…, 4), at q (…, nq), of the ball of which `turn` is a rotation, its axes renamed so that this one
    is x."""
    body = int(model.dof_body[turn])
    axis, n = turn - int(model.body_dof[body]), int(model.body_coord[body])
    order = [0, *(1 + (axis + k) % 3 for k in range(3))]
    rotation: Real = q[..., n : n + 4][..., order]
    return rotation


def axis_couplings(model: Model) -> list[tuple[int, int, Real, int]]:
    """Rotation of the ball, dof of the coordinate, terms and follower of each coupling of an axis of a ball."""
    columns = (model.axis_turn.tolist(), model.axis_dof.tolist(), model.axis_terms, model.axis_follower.tolist())
    return list(zip(*columns, strict=True))


def follow_axes(model: Model, q: Real, kept: Container[int] = ()) -> None:
    """Set followers in couplings with an axis of a ball, joints or axes of balls, from their leaders in q (…, nq);
    coordinates in `kept` stay. A ball keeps its swing."""
    for turn, dof, (a, b, constant), follower in axis_couplings(model):
        coord, body = int(model.dof_coord[dof]), int(model.dof_body[turn])
        here = twist_of(about_axis(model, q, turn))
        if follower == dof and coord not in kept:
            q[..., coord] = -(a * here + constant) / b
        first, axis = int(model.body_coord[body]), turn - int(model.body_dof[body])
        if follower == turn and not any(n in kept for n in range(first, first + 4)):
            half = 0.5 * (-(b * q[..., coord] + constant) / a - here)
            w, x, y, z = (first, *(first + 1 + (axis + k) % 3 for k in range(3)))
            c, s = np.cos(half), np.sin(half)
            old = q[..., [w, x, y, z]]
            q[..., w], q[..., x] = c * old[..., 0] - s * old[..., 1], c * old[..., 1] + s * old[..., 0]
            q[..., y], q[..., z] = c * old[..., 2] + s * old[..., 3], c * old[..., 3] - s * old[..., 2]


def untied_axes(model: Model, labels: Labels) -> list[str]:
    """A note that quantities of configurations are those without the couplings of balls' axes, if there are any."""
    names = [labels.dofs[follower] for _, _, _, follower in axis_couplings(model)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    told = f"{', '.join(names[:3])}{more}: couplings with axes of ball joints are rows of runs"
    return [f"{told}; quantities of configurations, reduced ones too, are without them"] if names else []


def within_turns(model: Model, dof: int, rotation: Real) -> Real:
    """Map uniform rotations (rows, 4) to rotations that are uniform within the limits of swing and twist of the joint
    whose first rotation is `dof`: in the twist, and in the tip of x over the sphere's part in the cone, direction by
    direction; w ≥ 0."""
    t = int(model.dof_turn[dof])
    if t < 0:
        return rotation
    bounds, frame = model.turn_range[t], model.turn_frame[t]
    inner = np.concatenate([rotation[:, :1], rotation[:, 1:] @ frame], axis=1)
    twist = twist_of(inner)
    y, z = _swing_direction(inner)
    share = np.minimum(inner[:, 2] ** 2 + inner[:, 3] ** 2, 1.0)  # of the sphere that is nearer to x
    if np.isfinite(bounds[SWING_Y]):
        share = share * np.sin(_edge(bounds, y, z) / 2) ** 2
    if np.isfinite(bounds[TWIST_UPPER]):
        twist = bounds[TWIST_LOWER] + (twist + np.pi) / (2 * np.pi) * (bounds[TWIST_UPPER] - bounds[TWIST_LOWER])
    along, across = np.sqrt(1 - share), np.sqrt(share)
    c, s = np.cos(twist / 2), np.sin(twist / 2)
    made = np.stack([along * c, along * s, across * (y * c + z * s), across * (z * c - y * s)], axis=1)
    made[:, 1:] = made[:, 1:] @ frame.T
    made *= np.copysign(1.0, made[:, :1])
    return made


def _limited(model: Model, labels: Labels) -> Iterator[tuple[str, int, slice]]:
    """Name, number and quaternion of the joints with limits of swing and twist."""
    for name, dofs in labels.joint_dofs.items():
        t = -1 if dofs.stop - dofs.start < 3 else int(model.dof_turn[dofs.stop - 3])
        if t >= 0:
            end = labels.joint_coords[name].stop
            yield name, t, slice(end - 4, end)


def beyond_turns(model: Model, labels: Labels, q: Real) -> list[tuple[Array, str, Real, Real]]:
    """Configurations among q (rows, nq) beyond limits of swing and twist, for each limit: (rows,) True beyond it, the
    limit in words, (rows,) the angle, (rows, 2) its bounds [rad]."""
    found = []
    for name, t, where in _limited(model, labels):
        rotation = q[:, where] / np.linalg.norm(q[:, where], axis=1, keepdims=True)
        inner = np.concatenate([rotation[:, :1], rotation[:, 1:] @ model.turn_frame[t]], axis=1)
        bounds = model.turn_range[t]
        across, along = np.hypot(inner[:, 2], inner[:, 3]), np.hypot(inner[:, 0], inner[:, 1])
        swing = 2.0 * np.arctan2(across, along)
        if np.isfinite(bounds[TWIST_UPPER]):
            middle = 0.5 * (bounds[TWIST_LOWER] + bounds[TWIST_UPPER])
            twist = middle + (twist_of(inner) - middle + np.pi) % (2 * np.pi) - np.pi
            ends = np.tile(bounds[[TWIST_LOWER, TWIST_UPPER]], (len(q), 1))
            odd = (twist < ends[:, 0] - _SLACK) | (twist > ends[:, 1] + _SLACK)
            found.append((odd & (swing < _UPSIDE_DOWN), f"the twist of {name}", twist, ends))
        if np.isfinite(bounds[SWING_Y]):
            edge = _edge(bounds, *_swing_direction(inner))
            ends = np.stack([np.zeros(len(q)), edge], axis=1)
            found.append((swing > edge + _SLACK, f"the swing of {name}", swing, ends))
    return found


def _swing_direction(rotation: Real) -> tuple[Real, Real]:
    """Components (rows,) along y and z of the axis of the swings of rotations (rows, 4), in the parent's frame; y where
    there is no swing."""
    half = 0.5 * twist_of(rotation)
    sign = np.where(rotation[:, 0] < 0, -1.0, 1.0)
    y = sign * (np.cos(half) * rotation[:, 2] - np.sin(half) * rotation[:, 3])
    z = sign * (np.cos(half) * rotation[:, 3] + np.sin(half) * rotation[:, 2])
    size = np.hypot(y, z)
    y, size = np.where(size > 0, y, 1.0), np.where(size > 0, size, 1.0)
    return y / size, z / size


def _edge(bounds: Real, y: Real, z: Real) -> Real:
    """The largest swings (rows,) about unit vectors (0, y, z) [rad]."""
    edge: Real = 4.0 * np.arctan(1.0 / np.sqrt(y * y * bounds[FLATNESS_Y] + z * z * bounds[FLATNESS_Z]))
    return edge


def start_notes(model: Model, labels: Labels, q: Real) -> list[str]:
    """Notes on a start (nq,) beyond limits of swing and twist, and on limits of twist without one of swing."""
    notes = [
        f"{what} starts at {value[0]:.6g}, outside its limits [{ends[0, 0]:.6g}, {ends[0, 1]:.6g}]"
        for odd, what, value, ends in beyond_turns(model, labels, q[None])
        if odd[0]
    ]
    loose = [
        name
        for name, t, _ in _limited(model, labels)
        if np.isfinite(model.turn_range[t, TWIST_UPPER]) and model.turn_range[t, SWING_Y : SWING_Y + 2].max() >= np.pi
    ]
    if loose:
        more = f" and {len(loose) - 3} more" if len(loose) > 3 else ""
        notes.append(
            f"the twist of {', '.join(loose[:3])}{more} has no limit beyond a swing of 179 degrees, where it is "
            "undefined: limit the swing too"
        )
    return notes
