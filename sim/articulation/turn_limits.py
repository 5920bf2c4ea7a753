"""Swing and twist of ball and free joints in numpy: rates of the twist, and what is beyond limits.

The kernels' twins of these are in swing_twist.py and constraints/turn_limit_rows.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

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
from artsim.sim.foundation.spatial import Real

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
    """The rotation (4,) of the ball of which `turn` is a rotation, its axes renamed so that this one is x."""
    body = int(model.dof_body[turn])
    axis, n = turn - int(model.body_dof[body]), int(model.body_coord[body])
    order = [0, *(1 + (axis + k) % 3 for k in range(3))]
    rotation: Real = np.asarray(q[n : n + 4], float)[order]
    return rotation


def _limited(model: Model, labels: Labels) -> Iterator[tuple[str, int, slice]]:
    """Name, number and quaternion of the joints with limits of swing and twist."""
    for name, dofs in labels.joint_dofs.items():
        t = -1 if dofs.stop - dofs.start < 3 else int(model.dof_turn[dofs.stop - 3])
        if t >= 0:
            end = labels.joint_coords[name].stop
            yield name, t, slice(end - 4, end)


def beyond_turns(model: Model, labels: Labels, q: Real) -> list[tuple[Array, str, Real, Real]]:
    """What is beyond limits of swing and twist among configurations q (rows, nq), for each limit: (rows,) whether it
    is, the limit in words, (rows,) the angle, (rows, 2) its bounds [rad]."""
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
            edge = _edge(bounds, inner)
            ends = np.stack([np.zeros(len(q)), edge], axis=1)
            found.append((swing > edge + _SLACK, f"the swing of {name}", swing, ends))
    return found


def _edge(bounds: Real, rotation: Real) -> Real:
    """The largest swing (rows,) in the directions of the swings of rotations (rows, 4) [rad]."""
    half = 0.5 * twist_of(rotation)
    y = np.cos(half) * rotation[:, 2] - np.sin(half) * rotation[:, 3]
    z = np.cos(half) * rotation[:, 3] + np.sin(half) * rotation[:, 2]
    size = np.maximum(y * y + z * z, 1e-300)
    square = (y * y * bounds[FLATNESS_Y] + z * z * bounds[FLATNESS_Z]) / size
    edge: Real = 4.0 * np.arctan2(1.0, np.sqrt(np.maximum(square, 1e-300)))
    return np.where(size > 1e-300, edge, np.pi)


def start_notes(model: Model, labels: Labels, q: Real) -> list[str]:
    """Notes on a start (nq,) beyond limits of swing and twist, and on twists that nothing keeps where they have a
    limit."""
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
