"""Geoms and contacts as the description keeps them, against MuJoCo's compiled arrays."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Geom, Surface
from tests.loaders.test_mjcf import BOX, assert_refused, read, world

TETRA = 'vertex="0 0 0  1 0 0  0 2 0  0 0 .5"'
MESH = f'<asset><mesh name="m" {TETRA} refpos=".1 .2 .3" refquat="1 2 3 4" scale="1 .5 2"/></asset>'


def geoms(text: str) -> tuple[list[Geom], mujoco.MjModel]:
    """All geoms in MuJoCo's order, and MuJoCo's model."""
    articulation = read(text)
    return [geom for link in articulation.links for geom in link.geoms], mujoco.MjModel.from_xml_string(text)


SURFACES = [
    "",
    'contype="2" conaffinity="5" condim="6" priority="-3" solmix=".3" margin=".01" gap=".02" adhesion="4" group="4"',
    'solref=".1" solimp=".8 .9" friction=".5"',
    'class="soft" solimp=".7" friction=".4 .3" surfacevel="1 2"',
    'contype="0" conaffinity="0" condim="1" solref="-100 -5"',
]


@pytest.mark.parametrize("attributes", SURFACES)
def test_surfaces_are_mujoco_s(attributes: str) -> None:
    soft = '<geom solref=".2 .7" solimp=".1 .2 .3 .4 3" friction="1 2 3" surfacevel="3 4 5"/>'
    soft = f'<default class="soft">{soft}</default>'
    found, model = geoms(world(f'<geom size="1" {attributes}/>', f"<default>{soft}</default>"))
    geom, surface = found[0], found[0].surface
    numbers = (surface.type_bits, surface.affinity_bits, surface.dimension, surface.priority, surface.mix)
    names = ("contype", "conaffinity", "condim", "priority", "solmix")
    assert numbers == tuple(getattr(model, f"geom_{name}")[0] for name in names)
    assert (surface.margin, surface.gap, geom.group) == (model.geom_margin[0], model.geom_gap[0], model.geom_group[0])
    assert np.allclose(surface.softness.reference or (0.02, 1), model.geom_solref[0])
    assert np.allclose(surface.softness.impedance or (0.9, 0.95, 0.001, 0.5, 2), model.geom_solimp[0])
    assert np.allclose(geom.friction or (), model.geom_friction[0])
    assert np.allclose(surface.velocity, model.geom_surfacevel[0])
    assert surface.adhesion == model.geom_adhesion[0]
    assert geom.role == ("visual" if 'contype="0"' in attributes else "collision")
    assert surface != Surface() or not attributes


@pytest.mark.parametrize("frame", ["", '<compiler fitaabb="true"/>'])
@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box", "ellipsoid"])
def test_primitives_fitted_to_meshes(kind: str, frame: str) -> None:
    geom = f'<geom type="{kind}" mesh="m" pos="1 2 3" euler="10 20 30" fitscale="1.5"/>'
    found, model = geoms(world(f"<body><joint/>{geom}</body>", frame + MESH))
    assert found[0].kind == kind
    assert np.allclose(found[0].size, model.geom_size[0][: len(found[0].size)], atol=1e-9)
    assert np.allclose(found[0].pose.position, model.geom_pos[0], atol=1e-9)
    assert np.allclose(
        found[0].pose.rotation, model.geom_quat[0] * np.sign(model.geom_quat[0] @ found[0].pose.rotation)
    )


def test_points_of_a_mesh_are_where_mujoco_has_them() -> None:
    """Geom's docstring says how; MuJoCo's own vertices are in its centred frame."""
    found, model = geoms(world('<geom type="mesh" mesh="m" pos="1 2 3" euler="10 20 30"/>', MESH))
    geom = found[0]
    points = np.array(TETRA.split('"')[1].split(), float).reshape(-1, 3)

    def rotated(quaternion: tuple[float, ...], vectors: np.ndarray) -> np.ndarray:
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, np.array(quaternion))
        return vectors @ matrix.reshape(3, 3).T

    w, x, y, z = geom.mesh_pose.rotation
    inside = rotated((w, -x, -y, -z), points - np.array(geom.mesh_pose.position)) * np.array(geom.scale)
    ours = rotated(geom.pose.rotation, inside) + np.array(geom.pose.position)
    theirs = rotated(tuple(model.geom_quat[0]), model.mesh_vert) + model.geom_pos[0]
    assert np.allclose(ours[np.lexsort(ours.round(5).T)], theirs[np.lexsort(theirs.round(5).T)], atol=1e-6)


def test_colours() -> None:
    more = '<asset><material name="red" rgba="1 0 0 1"/></asset>'
    found, model = geoms(world('<geom size="1" material="red"/><geom size="1" rgba="0 1 0 .5"/><geom size="1"/>', more))
    assert [geom.material and geom.material.name for geom in found] == ["red", "", None]
    assert found[0].material
    assert found[0].material.rgba == tuple(model.mat_rgba[0])
    assert found[1].material
    assert found[1].material.rgba == tuple(model.geom_rgba[1])


def test_pairs_and_exclusions() -> None:
    bodies = "".join(f'<body name="{name}"><joint/><geom name="g{name}" size=".1"/></body>' for name in "ab")
    pairs = """<contact><pair geom1="ga" geom2="gb"/>
      <pair name="p" class="k" geom1="gb" geom2="ga" friction="1 2" solref=".1" solreffriction=".3 .4"/>
      <exclude body1="a" body2="b"/></contact>
      <default><default class="k"><pair condim="4" margin=".1" gap=".2"/></default></default>"""
    text = world(bodies, pairs)
    articulation = read(text)
    plain, pair = articulation.contact_pairs
    assert (plain.geom_a, plain.geom_b, plain.dimension, plain.friction, plain.margin) == ("ga", "gb", None, None, None)
    model = mujoco.MjModel.from_xml_string(text)
    assert (pair.name, pair.dimension, pair.margin, pair.gap) == ("p", 4, 0.1, 0.2)
    assert (model.pair_dim[1], model.pair_margin[1], model.pair_gap[1]) == (4, 0.1, 0.2)
    assert np.allclose(pair.friction or (), model.pair_friction[1])
    assert np.allclose(pair.softness.reference or (), model.pair_solref[1])
    assert np.allclose(pair.friction_reference or (), model.pair_solreffriction[1])
    assert articulation.no_contact == (("a", "b"),)
    assert_refused(world(bodies, '<contact><pair geom1="ga"/></contact>'), "has no 'geom2' attribute")
    assert_refused(world(bodies, '<contact><pair geom1="ga" geom2="gc"/></contact>'), "geom2 'gc' does not exist")
    assert_refused(world('<geom size="1" condim="2"/>'), "condim is 2, want 1, 3, 4 or 6")


def test_what_does_not_move_the_robot_is_read_over() -> None:
    more = """<size njmax="5"/><statistic extent="2"/><visual><map znear=".1"/></visual>
      <custom><numeric name="n" data="1 2"/><text name="t" data="x"/><tuple name="u">
      <element objtype="body" objname="b"/></tuple></custom>
      <asset><texture name="t" type="2d" builtin="checker" width="8" height="8"/>
      <material name="m" texture="t"/></asset>"""
    articulation = read(world(f'<body name="b">{BOX}<joint/><camera name="c"/><light name="l"/></body>', more))
    assert articulation.notes == ()


def test_a_fitted_mesh_that_is_not_there_gives_no_mass(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    asset = '<asset><mesh name="m" file="no.stl"/></asset>'
    path.write_text(world(f'<body>{BOX}<joint/><geom type="box" mesh="m" mass="0"/></body>', asset))
    assert load_articulation(path).links[1].geoms[1].size == ()
