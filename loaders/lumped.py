"""The inertia of links that fixed joints hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from artsim.sim.articulation.description import Joint, Link, Pose
from artsim.sim.foundation.rotations import Real, rotation_matrix, symmetric


def lumped_moments(body: Sequence[Link], above: Mapping[str, Joint]) -> tuple[float, float, float]:
    """Principal moments [kg m²], ascending, of a body's links about their common centre of mass.

    The links come parents first, the topmost before all; `above` has the fixed joint of each other one by its name.
    """
    poses: dict[str, tuple[Real, Real]] = {body[0].name: (np.eye(3), np.zeros(3))}
    masses, centres, inertias = [0.0], [np.zeros(3)], [np.zeros((3, 3))]
    for link in body:
        if link is not body[0]:
            poses[link.name] = placed(poses[above[link.name].parent], above[link.name].pose)
        if link.inertial is not None:
            turn, centre = placed(poses[link.name], link.inertial.pose)
            masses.append(link.inertial.mass)
            centres.append(centre)
            inertias.append(turn @ symmetric(link.inertial.inertia) @ turn.T)
    weights, points = np.array(masses), np.array(centres)
    total = weights.sum()
    arms = points - (weights @ points / total if total > 0 else 0.0)
    spread = np.einsum("k,ki,kj->ij", weights, arms, arms)
    low, middle, high = np.linalg.eigvalsh(sum(inertias) + np.trace(spread) * np.eye(3) - spread).tolist()
    return low, middle, high


def placed(outer: tuple[Real, Real], pose: Pose) -> tuple[Real, Real]:
    """Rotation and origin [m] of a frame in a body, from its pose in another frame of it."""
    rotation, origin = outer
    return rotation @ rotation_matrix(pose.rotation), origin + rotation @ np.array(pose.position)
