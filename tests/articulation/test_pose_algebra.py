"""Quaternions and poses as tuples, against rotation matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.pose_algebra import (
    about,
    compose,
    cross,
    from_columns,
    inverse,
    multiply,
    quaternion_from_z,
    rotate,
)
from artsim.sim.foundation.rotations import rotation_matrix


def unit(generator: np.random.Generator, count: int) -> tuple[float, ...]:
    values = generator.normal(size=count)
    return tuple((values / np.linalg.norm(values)).tolist())


@pytest.mark.parametrize("seed", range(20))
def test_against_matrices(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = unit(generator, 4), unit(generator, 4)
    v: tuple[float, ...] = tuple(generator.normal(size=3).tolist())
    A, B = rotation_matrix(a), rotation_matrix(b)
    np.testing.assert_allclose(rotate(a, v), A @ v, rtol=0, atol=1e-14)  # type: ignore[arg-type]
    np.testing.assert_allclose(rotation_matrix(multiply(a, b)), A @ B, rtol=0, atol=1e-14)  # type: ignore[arg-type]
    np.testing.assert_allclose(cross(v, (1.0, -2.0, 0.5)), np.cross(v, (1, -2, 0.5)), rtol=0, atol=1e-14)  # type: ignore[arg-type]
    again = from_columns(*(tuple(column) for column in A.T.tolist()))  # type: ignore[arg-type]
    np.testing.assert_allclose(rotation_matrix(again), A, rtol=0, atol=1e-14)
    axis = unit(generator, 3)
    np.testing.assert_allclose(rotate(about(axis, 0.7), axis), axis, rtol=0, atol=1e-14)  # type: ignore[arg-type]
    np.testing.assert_allclose(rotate(quaternion_from_z(axis), (0, 0, 1)), axis, rtol=0, atol=1e-14)
    pose = Pose(v, a)  # type: ignore[arg-type]
    found = compose(inverse(pose), pose)
    np.testing.assert_allclose(found.position, (0, 0, 0), rtol=0, atol=1e-14)
    assert math.isclose(abs(found.rotation[0]), 1.0, rel_tol=1e-14)
