"""Every public URDF loads, or is refused for a reason that stands here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError

Array = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = pytest.mark.corpus

# urdfdom loads these, artsim refuses them.
REFUSED = {
    "urdf.example-robot-data.alex_description_urdf_alex_psyonic_hands": "mimics 'index_q1', which does not exist",
    "urdf.pybullet_data.cube_no_rotation": "lower 1 is greater than upper -1",
}
# urdfdom refuses these, artsim reads them.
ACCEPTED = frozenset({"urdf.pybullet_data.spherical_joint_limit"})  # spherical joints


def test_loads_or_is_refused_for_a_reason(corpus_urdf: dict[str, Any]) -> None:
    refused = ""
    try:
        load_articulation(corpus_urdf["path"])
    except ModelError as error:
        refused = str(error)
    if corpus_urdf["id"] in REFUSED:
        assert REFUSED[corpus_urdf["id"]] in refused
    elif corpus_urdf["expect"] == "load" or corpus_urdf["id"] in ACCEPTED:
        assert refused == ""
    else:
        assert refused != ""
    assert "\n" not in refused


def test_counts_are_those_of_the_index(corpus_urdf: dict[str, Any]) -> None:
    if corpus_urdf["expect"] != "load" or corpus_urdf["id"] in REFUSED:
        pytest.skip("not loaded")
    articulation = load_articulation(corpus_urdf["path"], meshes=False)
    kinds = Counter({"free": "floating"}.get(joint.kind, joint.kind) for joint in articulation.joints)
    assert dict(kinds) == corpus_urdf["joints"]
    assert len(articulation.links) == corpus_urdf["nbody"]
    ignored = sum("the mimic is ignored" in note.message for note in articulation.notes)
    assert len(articulation.couplings) + ignored == corpus_urdf["mimic"]
    positions = {link.name: index for index, link in enumerate(articulation.links)}
    assert all(positions[joint.parent] < positions[joint.child] for joint in articulation.joints)


def test_masses_and_poses_are_pinocchios(corpus_urdf: dict[str, Any]) -> None:
    if corpus_urdf["oracle"] is None or corpus_urdf["id"] in REFUSED:
        pytest.skip("no reference values")
    articulation = load_articulation(corpus_urdf["path"], meshes=False)
    with oracle(corpus_urdf) as file:
        mass = sum(link.inertial.mass for link in articulation.links if link.inertial is not None)
        assert mass == pytest.approx(float(file.attrs["mass_all_links"]), rel=1e-12, abs=1e-15)
        group = file["open"]
        names = [name.decode() for name in group["joint_names"][()]]
        known = {joint.name: joint.kind for joint in articulation.joints}
        if any(known[name] in ("free", "planar") for name in names):
            pytest.skip("its coordinates are Pinocchio's own")
        order = [name.decode() for name in file["link_names"][()]]
        for theta, position, quaternion in zip(group["theta"], group["pos"], group["quat"], strict=True):
            poses = forward_kinematics(articulation, dict(zip(names, theta, strict=True)))
            reach = 1.0 + np.abs(position).max()
            for name, p, q in zip(order, position, quaternion, strict=True):
                rotation, origin = poses[name]
                np.testing.assert_allclose(origin, p, rtol=0, atol=1e-11 * reach)
                np.testing.assert_allclose(rotation, matrix(q), rtol=0, atol=1e-11)


def forward_kinematics(articulation: Articulation, theta: dict[str, float]) -> dict[str, tuple[Array, Array]]:
    """Every link's rotation and origin, the slow obvious way."""
    poses: dict[str, tuple[Array, Array]] = {articulation.links[0].name: (np.eye(3), np.zeros(3))}
    for joint in articulation.joints:
        rotation, origin = poses[joint.parent]
        origin = origin + rotation @ np.array(joint.pose.position)
        rotation = rotation @ matrix(np.array(joint.pose.rotation))
        axis, value = np.array(joint.axis), theta.get(joint.name, 0.0)
        if joint.kind == "prismatic":
            origin = origin + rotation @ axis * value
        elif joint.kind in ("revolute", "continuous"):
            rotation = rotation @ matrix(np.array([np.cos(value / 2), *(np.sin(value / 2) * axis)]))
        poses[joint.child] = rotation, origin
    return poses


def matrix(quaternion: Array) -> Array:
    """The rotation of a quaternion (w, x, y, z)."""
    w, *v = quaternion
    x, y, z = v
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + 2 * w * cross + 2 * cross @ cross)


def oracle(entry: dict[str, Any]) -> h5py.File:
    """The reference values of a model."""
    root = Path(entry["path"])
    while not (root / "index.json").is_file():
        root = root.parent
    return h5py.File(root / entry["oracle"])
